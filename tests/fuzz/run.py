"""Runs fuzzers: regression seeds first, then inputs that libFuzzer derives from seeds.

    python3 tests/fuzz/run.py --programs build-fuzz/fuzz --tessera build-fuzz/bin/tessera \\
        --seconds 20 uvfits model
    python3 tests/fuzz/run.py --programs DIR --corpus DIR --executions 1000000 --jobs 16

With --corpus a folder for each fuzzer is kept there and minimised at the end. It may be
made once with --tessera and --seconds 0, and used elsewhere without tessera: it then has
those seeds that reach code which no other reaches. What ends a fuzzer is a defect: the input is kept in the
working folder and its report printed. Exit status 0 without defects, 1 with, 77 when the
programs were not built.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import seeds as make_seeds

HERE = pathlib.Path(__file__).resolve().parent
NAMES = ["uvfits", "model", "kernels", "csv", "sources", "config", "checkpoint", "resume",
         "frequencies", "beam", "regions", "aterms", "h5parm"]
LIMITS = ["-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-max_len=65536"]


def environment(place, leaks):
    """Sanitizers end the program at the first error; memory that is not there is none."""
    return dict(os.environ, TESS_CALIBRATION="off", XDG_CACHE_HOME=str(place),
                ASAN_OPTIONS=f"allocator_may_return_null=1:detect_leaks={int(leaks)}",
                UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1:"
                              f"suppressions={HERE.parent / 'ubsan.supp'}")


class Fuzzer:
    def __init__(self, name, options, place):
        self.name = name
        self.program = options.programs.resolve() / f"fuzz_{name}"
        self.work = options.work.resolve() / name
        self.place = place  # in memory, for what the fuzzer writes
        self.leaks = not options.no_leaks
        self.corpus = self.work / "corpus"
        self.seeds = self.work / "seeds"
        self.regression = self.work / "regression"
        shutil.rmtree(self.work, ignore_errors=True)
        for folder in (self.seeds, self.regression):
            folder.mkdir(parents=True)
        if options.corpus:
            self.corpus = options.corpus.resolve() / name
        self.corpus.mkdir(parents=True, exist_ok=True)

    def start(self, *arguments, log):
        return subprocess.Popen(
            [self.program, f"-artifact_prefix={self.work}/", *LIMITS,
             f"-detect_leaks={int(self.leaks)}", *map(str, arguments)], cwd=self.place, env=environment(self.place, self.leaks),
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def run(self, *arguments):
        """Exit status and output of one process."""
        path = self.work / "log"
        with open(path, "wb") as log:
            status = self.start(*arguments, log=log).wait()
        return status, path.read_text(errors="replace")

    def make(self, tessera):
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.place))
        make = make_seeds.Tessera(tessera, folder)
        try:
            getattr(make_seeds, self.name)(make, self.seeds, self.regression,
                                           self.program)
        except subprocess.CalledProcessError as error:
            sys.exit(f"{self.name}: seeds cannot be made: {error}")

    def report(self, what, output):
        """Print a defect, and where its input is."""
        found = re.findall(r"Test unit written to (\S+)", output)
        running = re.findall(r"^Running: (\S+)", output, re.M)
        at = found[-1] if found else running[-1] if running else "?"
        print(f"{self.name}: {what}: the input is {at}")
        if found and pathlib.Path(at).is_file():
            output = self.run(at)[1]
        print("\n".join(output.splitlines()[-60:]), flush=True)

    def replay(self):
        """Each regression seed once."""
        files = sorted(self.regression.iterdir())
        if not files:
            return True
        status, output = self.run("-close_fd_mask=1", *files)
        if status:
            self.report("a regression seed", output)
        return status == 0

    def fuzz(self, options):
        """All processes at once, on one corpus; True when none found a defect."""
        share = ["-close_fd_mask=3", "-print_final_stats=1", "-reload=1", self.corpus,
                 self.seeds, self.regression]
        if options.executions:
            share.insert(0, f"-runs={-(-options.executions // options.jobs)}")
        else:
            share.insert(0, f"-max_total_time={options.seconds}")
        logs = [self.work / f"log-{k}" for k in range(options.jobs)]
        processes = []
        for k, path in enumerate(logs):
            with open(path, "wb") as log:
                seed = options.seed + k if options.seed else 0
                processes.append(self.start(f"-seed={seed}", *share, log=log))
        statuses = [process.wait() for process in processes]
        texts = [path.read_text(errors="replace") for path in logs]
        runs = [int(n) for text in texts
                for n in re.findall(r"stat::number_of_executed_units:\s*(\d+)", text)]
        covered = [int(n) for text in texts for n in re.findall(r" cov: (\d+)", text)]
        print(f"{self.name}: {sum(runs)} executions, {max(covered, default=0)} edges, "
              f"{len(list(self.corpus.iterdir()))} inputs in the corpus", flush=True)
        for status, text in zip(statuses, texts):
            if status:
                self.report("a defect", text)
        if runs and not any(statuses):
            assert sum(runs) > 0 and covered, "the fuzzer reached no code"
        return not any(statuses)

    def minimise(self):
        """The kept corpus becomes the fewest inputs that reach as much."""
        smaller = self.work / "smaller"
        smaller.mkdir()
        status, output = self.run("-merge=1", "-close_fd_mask=3", smaller, self.corpus,
                                  self.seeds, self.regression)
        if status:
            self.report("merging the corpus", output)
            return False
        shutil.rmtree(self.corpus)
        shutil.move(smaller, self.corpus)
        print(f"{self.name}: {len(list(self.corpus.iterdir()))} inputs are kept")
        return True


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--programs", type=pathlib.Path, required=True,
                        help="folder of fuzz_NAME")
    parser.add_argument("--tessera", type=pathlib.Path, help="program that makes seeds")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("fuzz-work"))
    parser.add_argument("--corpus", type=pathlib.Path, help="folder of kept inputs")
    parser.add_argument("--seconds", type=int, default=20, help="for each fuzzer")
    parser.add_argument("--executions", type=int, help="for each fuzzer, not --seconds")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--no-leaks", action="store_true",
                        help="where the leak checker cannot stop threads (gVisor)")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    options = parser.parse_args()
    if not all((options.programs / f"fuzz_{name}").exists() for name in options.names):
        print("the fuzzers were not built (TESS_FUZZ=ON, with clang)")
        return 77
    good = True
    shm = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    for name in options.names:
        with tempfile.TemporaryDirectory(dir=shm, prefix="tess-fuzz-") as place:
            fuzzer = Fuzzer(name, options, place)
            if options.tessera:
                fuzzer.make(options.tessera.resolve())
            fine = fuzzer.replay()
            if options.executions or options.seconds:
                fine = fuzzer.fuzz(options) and fine
            if fine and options.corpus:
                fine = fuzzer.minimise()
            good = good and fine
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
