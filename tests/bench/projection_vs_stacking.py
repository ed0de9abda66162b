#!/usr/bin/env python3
"""W-projection against w-stacking at equal error, on the same data: whole runs of tessera
image, in turns, and what each is off by.

usage: projection_vs_stacking.py [--names vla-2M,...] [--data FOLDER] [--times N]
                                 [--oversampling 8,16] [--strategy factored,tiled]
                                 [--repeat 3] [--threads N] [--csv FILE] [--smoke]

Data are those of workloads.py. W-projection's error is what each of its runs measures
against direct sums; w-stacking is asked for that much (at most 1e-2, its largest), and
keeps it: its own is found by the difference of its image from one made at 1e-6. Seconds
are of gridding both images (dirty and PSF), and with it of planning (with tables of
w-kernels, computed and from the cache) and of transforms: all that differs. Medians;
nothing judges them.
"""
import argparse
import csv
import json
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
sys.path.insert(0, HERE)
from e2e import l2_error, read_image, tessera  # noqa: E402
from workloads import make_data  # noqa: E402

LARGEST = 1e-2
STAGES = ("plan", "grid", "fft")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--names", default="vla-2M")
    parser.add_argument("--data", default="build/bench")
    parser.add_argument("--times", type=int)
    parser.add_argument("--oversampling", default="8,64")
    parser.add_argument("--strategy", default="factored,tiled")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--csv")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--full", action="store_true", help="as ctest calls it: ignored")
    options = parser.parse_args()
    if options.smoke:
        options.names, options.times, options.repeat = "vla-2M", 2, 1
        options.oversampling, options.strategy = "4", "factored"
        options.data = os.environ.get("TESS_WORK", options.data)
    return options


class Runs:
    """Runs of one set of options: seconds by stage, error, image."""

    def __init__(self, options, data, name, words):
        self.name, self.words, self.seconds = name, words, []
        self.prefix = os.path.join(options.data, "versus-" + name.replace(" ", "-"))
        self.common = [data["uvfits"], "--size", data["size"], "--scale", data["scale"],
                       "--weight", "natural", "--threads", options.threads, "--quiet",
                       "--overwrite", "-o", self.prefix]

    def run(self):
        profile = self.prefix + ".json"
        result = tessera("image", *self.common, *self.words, "--profile", profile,
                         timeout=3600)
        if result.status != 0:
            sys.exit(f"{self.name}: {result.err[-2000:]}")
        with open(profile, encoding="utf8") as file:
            found = json.load(file)
        stages = found["totals"]["stages"]
        self.seconds.append([stages[k]["seconds"] for k in STAGES])
        self.measured = found.get("projection_error")
        return self

    def image(self):
        return read_image(self.prefix + "-dirty.fits")[0]

    def medians(self):
        return [statistics.median(column) for column in zip(*self.seconds)]


def workload(name, options):
    """What tessera needs to know of a set that workloads.py made."""
    data, path, _ = make_data(name, options)
    return {"uvfits": path, "size": int(data["npix"]),
            "scale": f"{float(data['cell_asec'])}asec"}


def compare(name, options):
    data, rows = workload(name, options), []
    exact = Runs(options, data, "exact", ["--accuracy", "1e-6", "--w", "stacking"])
    exact = exact.run().image()
    for q in options.oversampling.split(","):
        how = ["--w", "projection", "--oversampling", q]
        contenders = [Runs(options, data, f"projection {q} {s}", how + ["--strategy", s])
                      for s in options.strategy.split(",")]
        anew = Runs(options, data, f"anew {q}", contenders[0].words +
                    ["--no-kernel-cache"]).run()
        error = anew.measured
        contenders.append(Runs(options, data, f"stacking for {q}",
                               ["--w", "stacking", "--accuracy", min(error, LARGEST)]))
        for _ in range(options.repeat):
            for contender in contenders:
                contender.run()
        for contender in contenders:
            plan, grid, fft = contender.medians()
            rows.append(dict(
                set=name, gridding=contender.name, error=l2_error(contender.image(), exact),
                measured=contender.measured or "", plan_s=plan, grid_s=grid, fft_s=fft,
                tables_s=anew.seconds[0][0] if contender.measured else 0))
    return rows


def main():
    options = arguments()
    rows = [row for name in options.names.split(",") for row in compare(name, options)]
    print("| set | gridding | error | grid | FFT | plan, tables cached / computed |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {row['set']} | {row['gridding']} | {row['error']:.1e} | "
              f"{row['grid_s']:.2f} | {row['fft_s']:.2f} | {row['plan_s']:.2f} / "
              f"{row['tables_s']:.2f} |")
        if not (0 < row["error"] < 1 and row["grid_s"] > 0):
            sys.exit("a row without an error, or without work")
    if options.csv:
        with open(options.csv, "w", newline="", encoding="utf8") as file:
            out = csv.DictWriter(file, rows[0].keys())
            out.writeheader()
            out.writerows(rows)


if __name__ == "__main__":
    main()
