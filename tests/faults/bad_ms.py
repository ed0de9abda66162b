#!/usr/bin/env python3
"""Damaged MeasurementSets end in one line and exit status 3, samples that are not finite
or without weight are counted, and a set that cannot be written to is as it was; on one
rank and on three; and nothing hangs.
"""
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bad_input import (IMAGE, RANKS, TIMEOUT, Faults, simulation, stop_job,  # noqa: E402
                       tree_digest, wait_for)
from e2e import (ASEC, BIN, Suite, casacore_python, have_ms, mpi_environment,  # noqa: E402
                 mpiexec, read_image, run, simulate, skip, tessera, write_sky)
import uvfits  # noqa: E402

CHANNELS = 2
SPOIL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "spoil_ms.py")
HOLD = os.path.join(os.path.dirname(SPOIL), "lock_ms.py")
# Storage managers' files of a set that simulate has made: the data and their header,
# flags, uvw, columns of one value per row and of one value in all.
FILES = ("table.f2_TSM0", "table.f2", "table.f3_TSM0", "table.f5_TSM0", "table.f1",
         "table.f0")


class Sets:
    """Copies of a small set, each damaged in one way."""

    def __init__(self, faults):
        self.faults, self.suite = faults, faults.suite
        sky = write_sky(self.suite.path("sky.csv"),
                        [dict(ra="60deg", dec="-30deg", flux_jy=1)])
        self.good = simulate(self.suite.path("good.ms"), sky, duration="4min",
                             integration="2min", channels=CHANNELS)
        self.python = casacore_python()

    def copy(self, name):
        path = self.suite.path(name + ".ms")
        shutil.copytree(self.good, path)
        return path

    def spoilt(self, way):
        """A copy spoilt by casacore's Python module, or None without one."""
        if not self.python:
            self.suite.skipped(f"{way}: casacore's Python module is not there")
            return None
        path = self.copy(way)
        done = run([self.python, SPOIL, path, way], 120)
        return path if self.suite.ran(f"spoilt: {way}", done) else None


def check_structure(sets):
    bad, suite = sets.faults.bad, sets.suite
    bad("MS without the chosen column", 2, "image", sets.good, *IMAGE, "--datacolumn",
        "ROTTEN_DATA", says="ROTTEN_DATA")
    bad("MS without the chosen window", 2, "image", sets.good, *IMAGE, "--spw", "5",
        says="has no spectral window 5 (--spw); it has 0 to")
    bad("MS without the chosen field", 2, "image", sets.good, *IMAGE, "--field", "3",
        says="field 3")
    bad("MS without the chosen channels", 2, "image", sets.good, *IMAGE, "--channels",
        "7:9", says="--channels")
    bad("MS without the chosen polarisation", 2, "image", sets.good, *IMAGE, "--stokes",
        "RR", says="--stokes")
    for name in ("SPECTRAL_WINDOW", "FIELD", "ANTENNA", "POLARIZATION",
                 "DATA_DESCRIPTION"):
        broken = sets.copy("no-" + name)
        shutil.rmtree(os.path.join(broken, name))
        bad(f"MS without {name}", 3, "image", broken, *IMAGE, says=broken)
    broken = sets.copy("cut")
    os.truncate(os.path.join(broken, "table.dat"), 100)
    bad("MS with a truncated table", 3, "image", broken, *IMAGE, says=broken)
    for name in FILES:
        size = os.path.getsize(os.path.join(sets.good, name))
        for what, length in (("absent", None), ("empty", 0), ("cut", size // 2)):
            broken = sets.copy(f"{name}-{what}")
            path = os.path.join(broken, name)
            if length is None:
                os.remove(path)
            else:
                os.truncate(path, length)
            bad(f"MS with {name} {what}", 3, "image", broken, *IMAGE, says=broken)
    suite.equal("the first set still works", tessera("info", sets.good).status, 0)
    checker = os.path.join(os.path.dirname(BIN), "tessera-ms-check")
    read = [{"SCAN_NUMBER", "STATE_ID", "STATE"} & set(run([checker, column, sets.good], 60)
                                                       .out.replace("/", " ").split())
            for column in ("", "+")]
    suite.equal("what expressions select by is read first, too", [len(r) for r in read], [0, 3])


def check_contents(sets):
    bad = sets.faults.bad
    for way, says in (("rows", "no rows"), ("frequency", "channel 1"),
                      ("frequency-inf", "channel 1"), ("uvw", "nothing to image"),
                      ("data", "nothing to image"), ("data-inf", "nothing to image"),
                      ("weight", "nothing to image"), ("weight-nan", "nothing to image"),
                      ("row-weight", "nothing to image"),
                      ("row-weight-nan", "nothing to image"),
                      ("antenna", "antennas 0 and 1000 of 27"),
                      ("antenna-some", "antennas 0 and 1000 of 27"),
                      ("antenna-negative", "antennas -1 and"),
                      ("channels", "spectral window"), ("shape-first", "spectral window"),
                      ("shape", "row 351 has no DATA"),
                      ("shape-more", "row 351 has no DATA"),
                      ("shape-none", "row 351 has no DATA"),
                      ("half-CORRECTED_DATA", "row 351 has no CORRECTED_DATA"),
                      ("half-FLAG", "row 351 has no FLAG"),
                      ("half-WEIGHT", "row 351 has no WEIGHT of"),
                      ("dcomplex", "DATA holds visibilities in double precision")):
        broken = sets.spoilt(way)
        if broken:
            bad(f"MS with bad {way}", 3, "image", broken, *IMAGE, says=says)


def check_managers(sets):
    """A storage manager that casacore does not have is named."""
    broken = sets.copy("manager")
    path = os.path.join(broken, "table.dat")
    with open(path, "rb") as f:
        text = f.read()
    with open(path, "wb") as f:
        f.write(text.replace(b"TiledColumnStMan", b"OtherColumnStMan"))
    for command in (["image", broken, *IMAGE], ["info", broken]):
        result = tessera(*command, "-o", sets.suite.path("x")) if command[0] == "image" else \
            tessera(*command)
        sets.faults.judge(f"{command[0]} of another storage manager", result, 3,
                          "othercolumnstman, a storage manager that casacore does not have")


def check_half_spectra(sets):
    """WEIGHT is the weight of rows that WEIGHT_SPECTRUM has no cell for, or one of another
    shape: half of the weights are four times those of the set without a fault."""
    suite = sets.suite
    args = ["--size", "64", "--scale", "15asec", "--weight", "natural"]  # of all baselines

    def sum_of_weights(name, ms, ranks):
        good, prefix = suite.image(name, ms, *args, ranks=ranks, timeout=TIMEOUT)
        return read_image(prefix + "-dirty.fits")[1]["SUMWT"] if good else np.nan
    whole = sum_of_weights("whole", sets.good, 1)
    for way in ("half-WEIGHT_SPECTRUM", "half-other"):
        broken = sets.spoilt(way)
        for ranks in RANKS if broken else ():
            suite.below(f"{way}, {ranks} ranks: weights", abs(
                sum_of_weights(way, broken, ranks) / whole - 2.5), 1e-5)


def check_columns(sets):
    """Columns that cannot be written are refused before images are made."""
    clean = ["image", sets.good, *IMAGE, "--niter", "1", "--update-model", "--model-column"]
    for column, says in (("UVW", "does not hold visibilities"), ("1ST", "is no column name")):
        sets.faults.bad(f"MODEL_DATA by the name of {column}", 2, *clean, column, says=says)


def check_counts(sets):
    """Every third row is bad: ignored, counted by reason, the rest imaged."""
    suite = sets.suite
    # the scale keeps all baselines on the grid, so that each reason is the only one
    args = ["--size", "64", "--scale", "15asec"]
    for way, reason in (("uvw-some", "not_finite"), ("data-some", "not_finite"),
                        ("data-inf-some", "not_finite"),
                        ("weight-some", "weight_not_positive"),
                        ("weight-nan-some", "not_finite"),
                        ("row-weight-some", "weight_not_positive"),
                        ("row-weight-nan-some", "not_finite")):
        broken = sets.spoilt(way)
        if not broken:
            continue
        for ranks in RANKS:
            profile = suite.path("profile.json")
            good, _ = suite.image(way, broken, *args, "--profile", profile, ranks=ranks,
                                  timeout=TIMEOUT)
            if not good:
                continue
            with open(profile) as f:
                totals = json.load(f)["totals"]
            rows = 27 * 26 // 2 * 2  # baselines, integrations
            expected = dict.fromkeys(totals["ignored"], 0)
            expected[reason] = rows // 3 * CHANNELS  # of Stokes I, XX and YY together
            suite.equal(f"{way}, {ranks} ranks: ignored", totals["ignored"], expected)


def check_stopped(sets):
    """A prediction that is stopped leaves the set as it was; one that is killed can be
    made again."""
    suite = sets.suite
    sky = suite.path("sky.csv")
    ms = simulate(suite.path("long.ms"), sky, duration="8h", integration="20s",
                  channels=16)
    model = uvfits.write_model(suite.path("model.fits"), np.ones((64, 64)), 60 * ASEC)
    command = [BIN, "predict", ms, "--model", model, "--column", "MODEL_DATA",
               "--threads", "1", "--accuracy", "1e-4"]
    before, entries = tree_digest(ms), os.listdir(ms)

    def added():
        return sorted(set(os.listdir(ms)) - set(entries) - {"table.lock"})

    def writing():
        return any(f.endswith("_TSM0") and os.path.getsize(os.path.join(ms, f)) > 1 << 20
                   for f in added())
    for ranks in RANKS:
        ends = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
        for number in ends if ranks == 1 else ends[:2]:
            label = f"{number.name}, predict to a column, {ranks} ranks"
            stop_job(suite, label, command, ranks, number, writing)
            suite.equal(f"{label}: left behind", wait_for([], added), [])
            suite.true(f"{label}: the set is as it was", tree_digest(ms) == before)
    label = "SIGKILL, predict to a column"
    stop_job(suite, label, command, 1, signal.SIGKILL, writing)
    after = tree_digest(ms)
    suite.true(f"{label}: what was there is as it was",
               all(after.get(f) == before[f] for f in before))
    suite.ran("predict after all that", tessera(*command[1:]))
    suite.equal("what holds disk back is gone", [f for f in added() if "reserve" in f], [])
    suite.ran("image what is predicted", tessera("image", ms, *IMAGE, "--datacolumn",
                                                 "MODEL_DATA", "-o", suite.path("after")))


def check_stopped_images(sets):
    """A run that has made its images, and is stopped while it writes a column, leaves the set as
    it was; one that is killed can be continued."""
    suite = sets.suite
    sky = suite.path("sky.csv")
    ms = simulate(suite.path("images.ms"), sky, duration="3h", integration="20s", channels=16)
    short = simulate(suite.path("short.ms"), sky, duration="2min", integration="20s", channels=16)
    before, entries = tree_digest(ms), os.listdir(ms)

    def added():
        return sorted(set(os.listdir(ms)) - set(entries) - {"table.lock"})

    def writing():
        return any(f.endswith("_TSM0") and os.path.getsize(os.path.join(ms, f)) > 1 << 20
                   for f in added())
    model = ["--niter", "1", "--update-model"]
    for what, ranks, obs, more in (("--update-model", 1, [ms], model),
                                   ("--update-model", RANKS[-1], [ms], model),
                                   ("--update-model of two sets", 1, [short, ms], model),
                                   ("--store-imaging-weights", 1, [ms],
                                    ["--store-imaging-weights"])):
        label = f"SIGTERM, {what}, {ranks} ranks"
        stop_job(suite, label, [BIN, "image", *obs, *IMAGE, *more, "--threads", "1",
                                "--overwrite", "-o", suite.path("stopped")],
                 ranks, signal.SIGTERM, writing)
        suite.equal(f"{label}: left behind", wait_for([], added), [])
        suite.true(f"{label}: the set is as it was", tree_digest(ms) == before)
    label = "SIGKILL, --update-model with a checkpoint"
    command = [BIN, "image", ms, *IMAGE, *model, "--threads", "1", "--checkpoint",
               suite.path("saved"), "-o", suite.path("continued")]
    stop_job(suite, label, command, 1, signal.SIGKILL, writing)
    result = tessera(*command[1:], "--resume", ranks=RANKS[-1])
    suite.ran(f"{label}: it is continued", result)
    suite.true(f"{label}: no image is made again", "1 outputs done" in result.err
               and "major 1" not in result.err)
    suite.ran(f"{label}: the column is there", tessera("image", ms, *IMAGE, "--datacolumn",
                                                       "MODEL_DATA", "-o", suite.path("other")))


def trace(command, log, *more):
    """The command under strace, which knows its reads."""
    return run(["strace", "-f", "-qq", "-y", "-o", log, "-e", "trace=read", *more, *command],
               TIMEOUT)


def reads_of(log, folder):
    """Which of the reads of the process are of files in the folder, and of which files."""
    found, count, process = [], 0, None
    for line in open(log, errors="replace"):
        called = re.match(r"(\d+) +read\(\d+<([^>]*)>", line)
        process = process or (called and called[1])
        if called and called[1] == process:
            count += 1
            if folder in called[2]:
                found.append((count, called[2]))
    return found


def type_of(ms):
    with open(os.path.join(ms, "table.info")) as f:
        return f.readline().rstrip("\n")


def can_trace(suite, call):
    """Whether strace may trace a system call here; counts what is skipped if not."""
    probe = ["strace", "-qq", "-o", os.devnull, "-e", f"trace={call}", "true"]
    if shutil.which("strace") and run(probe, 60).status == 0:
        return True
    suite.skipped("no strace, or it may not trace")
    return False


def check_failing_reads(sets):
    """A disk that fails once while casacore reads again what it has written of a new set."""
    suite = sets.suite
    if not can_trace(suite, "read"):
        return
    sky = write_sky(suite.path("reads.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    log, new = suite.path("reads.log"), suite.path("reads.ms")
    command = [BIN, *simulation(sky, new)]
    suite.ran("before a read fails", trace(command, log))
    reads = reads_of(log, ".reads.ms.tessera-")
    locks = [k for k, name in reads if name.endswith("/table.lock")]
    info = [k for k, name in reads if name.endswith(".tmp/table.info")]
    others = [k for k, name in reads if k not in locks + info]
    suite.true("casacore reads what it has written", len(others) > 20)
    statuses = []
    for number in sorted(locks[:4] + info + others[::max(1, len(others) // 12)]):
        shutil.rmtree(new, ignore_errors=True)
        result = trace(command, os.devnull, "-e", f"inject=read:error=EIO:when={number}")
        statuses.append(result.status)
        label = f"read {number} fails"
        if result.status == 0:  # of a file that was empty
            suite.ran(f"{label}: the set", tessera("info", new))
            suite.equal(f"{label}: its type", type_of(new), "Type = Measurement Set")
            continue
        sets.faults.judge(label, result, 3, "reads.ms")
        suite.equal(f"{label}: left", [f for f in os.listdir(suite.work) if "reads.ms" in f], [])
    suite.true("some reads matter", 3 in statuses)
    ms = simulate(suite.path("history.ms"), sky, duration="2min", integration="20s", channels=2)
    model = uvfits.write_model(suite.path("history.fits"), np.ones((64, 64)), 60 * ASEC)
    predict = [BIN, "predict", ms, "--model", model, "--column", "MODEL_DATA", "--overwrite"]
    for number in (1, 2):
        result = trace(predict, os.devnull, "-P", os.path.join(ms, "HISTORY", "table.f0"), "-e",
                       f"inject=read:error=EIO:when={number}")
        suite.ran(f"read {number} of HISTORY fails", result)
        suite.true("a warning tells", "HISTORY table cannot be written" in result.err)
    for number in (1, 2):
        result = trace(predict, os.devnull, "-P", os.path.join(ms, "table.info"), "-e",
                       f"inject=read:error=EIO:when={number}")
        suite.equal(f"read {number} of table.info fails: what is there", type_of(ms),
                    "Type = Measurement Set")


def check_two_writers(sets):
    """Of two runs that write columns of one set, the second ends at once."""
    sky = write_sky(sets.suite.path("two.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    ms = simulate(sets.suite.path("two.ms"), sky, duration="2min", integration="20s", channels=2)
    model = uvfits.write_model(sets.suite.path("two.fits"), np.ones((64, 64)), 60 * ASEC)
    predict = ["predict", ms, "--model", model, "--column", "MODEL_DATA"]
    before = tree_digest(ms)
    other = os.open(ms, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    for ranks in RANKS:
        sets.faults.judge(f"a set that another run writes, {ranks} ranks",
                          tessera(*predict, ranks=ranks, timeout=TIMEOUT), 3, "another run")
    sets.suite.true("the set is as it was", tree_digest(ms) == before)
    os.close(other)
    sets.suite.ran("after the other run", tessera(*predict))


def held_by(sets, ms, how):
    """A program of casacore that holds the set, once it does (lock_ms.py)."""
    child = subprocess.Popen([sets.python, HOLD, ms, how], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    sets.suite.equal(f"{how}: held", child.stdout.readline(), "held\n")
    return child


def let_go(child):
    child.communicate("go\n", TIMEOUT)


def wait_and_stop(sets, label, command):
    """A run that waits for a lock says so at once, and a signal ends it."""
    child = subprocess.Popen([BIN, *map(str, command)], stderr=subprocess.PIPE, text=True,
                             stdout=subprocess.DEVNULL, env=mpi_environment())
    line = child.stderr.readline()
    child.send_signal(signal.SIGTERM)
    sets.suite.equal(f"{label}: stopped while it waits", child.wait(TIMEOUT), -signal.SIGTERM)
    sets.suite.true(f"{label}: {line!r}", "waiting for process " in line)


def check_locks(sets):
    """Sets that programs of casacore have locked are waited for, and keep their columns."""
    suite, ms = sets.suite, sets.copy("locked")
    if not sets.python:
        suite.skipped("locks: casacore's Python module is not there")
        return
    model = uvfits.write_model(suite.path("locked.fits"), np.ones((64, 64)), 60 * ASEC)
    update = ["image", ms, *IMAGE, "-o", suite.path("updated"), "--niter", "2",
              "--update-model", "--quiet", "--overwrite"]
    predict = ["predict", ms, "--model", model, "--column", "MODEL_DATA", "--overwrite"]
    other = held_by(sets, ms, "write")
    wait_and_stop(sets, "update-model", update)
    for command in (["info", ms], ["plan", ms, *IMAGE], update, predict,
                    [*simulation(suite.path("sky.csv"), ms), "--overwrite"]):
        sets.faults.judge(f"a locked set: {command[0]}", tessera(*command, "--lock-timeout", 0),
                          3, f"process {other.pid} holds casacore's write lock")
    for ranks in RANKS[1:]:
        sets.faults.judge(f"a locked set, {ranks} ranks",
                          tessera(*update, "--lock-timeout", 0, ranks=ranks), 3, "write lock")
    waits = subprocess.Popen([BIN, *map(str, update)], stderr=subprocess.PIPE, text=True,
                             stdout=subprocess.DEVNULL, env=mpi_environment())
    suite.true("waits", "for process " in waits.stderr.readline())
    let_go(other)
    suite.equal("goes on after the wait", waits.wait(TIMEOUT), 0)
    read = [sets.python, "-c", "import sys, casacore.tables as c\n"
            "print('MODEL_DATA' in c.table(sys.argv[1], ack=False).colnames())", ms]
    suite.equal("the column is there", run(read, TIMEOUT).out, "True\n")
    other = held_by(sets, ms, "read")
    suite.ran("a set that another program reads", tessera("info", ms, "--lock-timeout", 0))
    sets.faults.judge("is not written", tessera(*predict, "--lock-timeout", 0), 3, "read lock")
    let_go(other)
    other = held_by(sets, ms, "open")
    result = tessera(*predict[:-2], "OTHER_DATA")
    suite.ran("a set that another program has open", result)
    suite.true("is warned of", f"process {other.pid} has it open" in result.err)
    let_go(other)


def check_closed_streams(sets):
    """Messages of a run whose standard streams are closed go into no file that it opens."""
    suite = sets.suite
    model = uvfits.write_model(suite.path("streams.fits"), np.ones((64, 64)), 60 * ASEC)
    found = []
    for name, closed in (("open-streams", ""), ("closed-streams", "<&- >&- 2>&-"),
                         ("no-messages", "2>&-")):
        ms = sets.copy(name)
        open(os.path.join(ms, "table.lock"), "w").close()
        predict = [BIN, "predict", ms, "--model", model, "--column", "MODEL_DATA", "--accuracy",
                   "1e-4", "--threads", "1"]
        run(["sh", "-c", f'"$@" {closed}; echo $? > "$0"', suite.path("status"), *predict],
            TIMEOUT)
        suite.equal(f"{name}: status", open(suite.path("status")).read(), "0\n")
        found.append({f: d for f, d in tree_digest(ms).items() if "HISTORY" not in f})
        suite.equal(f"{name}: files that differ",
                    [f for f in found[0] if found[0][f] != found[-1].get(f)], [])


def environment_without_files(suite):
    """A sanitizer looks at the type of an object through a pipe, and without files for one it takes each type for a
    wrong one: it is told to say nothing of types. It still checks memory."""
    suppressions = suite.path("types.supp")
    known = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ubsan.supp")
    with open(suppressions, "w") as out, open(known) as file:
        out.write(file.read() + "vptr:*\n")
    env = mpi_environment()
    env["UBSAN_OPTIONS"] = f"{env.get('UBSAN_OPTIONS', '')}:suppressions={suppressions}"
    return env


def check_open_files(sets):
    """A new set that needs more files than may be open leaves nothing."""
    suite = sets.suite
    env = environment_without_files(suite)
    sky = write_sky(suite.path("files.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    new, folder = os.path.join(suite.path("few"), "x.ms"), suite.path("few")
    os.mkdir(folder)
    for files in range(14, 40, 2):
        limited = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", BIN]
        result = run([*limited, *simulation(sky, new)], TIMEOUT, env=env)
        if result.status == 0:
            break
        sets.faults.judge(f"{files} open files", result, 4, "too many files")
        suite.equal(f"{files} open files: left", os.listdir(folder), [])


def check_user_signals(sets):
    """SIGUSR1 to all processes of a job does not end the one that checks a set."""
    suite, script = sets.suite, sets.suite.path("check.sh")
    with open(script, "w") as out:
        out.write("#!/bin/sh\necho 0 WEIGHT\nkill -USR1 $$\nkill -USR2 $$\necho done\n")
    os.chmod(script, 0o755)
    os.environ["TESS_MS_CHECK"] = script
    suite.ran("signals while a set is checked",
              tessera("image", sets.good, *IMAGE, "-o", suite.path("signals")))
    del os.environ["TESS_MS_CHECK"]


def check_variables(sets):
    """casacore replaces variables in names, as a shell does. No other folder is touched."""
    suite, name = sets.suite, "a${TESS_BIN}.ms"
    folder = suite.path("variables")
    os.mkdir(folder)
    sky = write_sky(suite.path("names.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    path = os.path.join(folder, name)
    os.environ["TESS_BIN"] = "other"
    for ranks in RANKS:
        sets.faults.judge(f"a new set of such a name, {ranks} ranks",
                          tessera(*simulation(sky, path), ranks=ranks), 3, "casacore replaces $")
        suite.equal("what is left", os.listdir(folder), [])
    shutil.copytree(sets.good, path)
    sets.faults.bad("a set of such a name", 3, "image", path, *IMAGE, says="casacore replaces $")


def check_failing_disk(sets):
    """A disk that fails when casacore closes a set, where no exception reaches a caller."""
    suite = sets.suite
    if not can_trace(suite, "rename"):
        return
    sky = write_sky(suite.path("failing.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    ms = simulate(suite.path("failing.ms"), sky, duration="2min", integration="20s", channels=2)
    model = uvfits.write_model(suite.path("failing.fits"), np.ones((64, 64)), 60 * ASEC)
    predict = ["predict", ms, "--model", model, "--column", "MODEL_DATA", "--overwrite"]
    suite.ran("before the disk fails", tessera(*predict))
    traced = ["strace", "-f", "-qq", "-o", os.devnull, "-e", "trace=rename", "-e",
              "inject=rename:error=EIO:when=1+", BIN, *predict]
    for ranks in RANKS[:2]:
        more = [":", "-n", str(ranks - 1), BIN, *predict] if ranks > 1 else []
        start = [mpiexec(), "-n", "1"] if ranks > 1 else []
        result = run([*start, *traced, *more], TIMEOUT, env=mpi_environment())
        sets.faults.judge(f"a failing disk, {ranks} ranks", result, 3, "failing.ms")


def main():
    if not have_ms():
        skip("built without MeasurementSets")
    chosen = [a for a in sys.argv[1:] if not a.startswith("-")]  # all parts when empty
    sets = Sets(Faults(Suite("bad_ms")))
    for part in (check_structure, check_contents, check_managers, check_half_spectra, check_columns,
                 check_counts, check_stopped, check_stopped_images, check_failing_reads,
                 check_two_writers, check_locks, check_variables, check_open_files,
                 check_closed_streams, check_user_signals, check_failing_disk):
        if not chosen or part.__name__ in chosen:
            part(sets)
    sets.suite.finish()


if __name__ == "__main__":
    main()
