#!/usr/bin/env python3
"""Data that do not fit into memory, kept in scratch files: the same images, number for
number, with the observations read twice in all, or passes of sorted samples read again
for every major cycle; samples of many outputs, parted by output while the observations
are read once; and disks that are full or not there.
"""
import json
import os
import re
import resource
import signal
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import BIN, SLOWER, Suite, forced, mpiexec, read_image, take_forced, tessera
from fields_and_cubes import NX, NY, SCALE, Samples
import uvfits

STEPS, PER_STEP = 80, 120
RANKS = (1, 2, 3, 4) if mpiexec() else (1,)
IMAGE = ["--size", f"{NX},{NY}", "--scale", "60asec", "--accuracy", "1e-9", "--threads", "1"]
# Memory a rank [kB] for which one_plan.py streams these data on 1 to 4 ranks; and for which
# a rank holds the samples of some outputs.
MEMORY, SOME = 590, 1800
STREAMED = "data are streamed"


def run(suite, label, obs, ranks, *more, memory=MEMORY, says=STREAMED):
    """Images, and bytes that were read of the observations and sent by that stage."""
    prefix, profile = suite.path("out"), suite.path("profile.json")
    result = tessera("image", obs, *IMAGE, "--memory", f"{memory * ranks}kB", *more,
                     "--profile", profile, "--overwrite", "-o", prefix, ranks=ranks)
    if not suite.ran(label, result):
        return {}, 0
    suite.true(f"{label}: {says}", says in result.err)
    with open(profile) as f:
        read = json.load(f)["totals"]["stages"]["read"]["bytes"]
    names = [n for n in os.listdir(suite.work) if n.startswith("out-")
             and n.endswith(".fits")]
    images = {n: read_image(suite.path(n))[0] for n in names}
    for n in names:
        os.remove(suite.path(n))
    return images, read


def check_same(suite, obs, model):
    folder = suite.path("scratch")
    os.makedirs(folder, exist_ok=True)
    cases = [("passes", ["--weight", "uniform", *forced(passes=3)]),
             ("clean", ["--niter", "20", "--nmiter", "2", "--reproducible"]),
             ("outputs", ["--weight", "briggs:0", "--channels-out", "2", "--intervals-out",
                          "2", "--reproducible", *forced(teams=1)]),
             ("model", ["--weight", "natural", "--subtract", model, "--stokes", "I,XX"])]
    for ranks in RANKS:
        for name, more in cases[:5 - ranks]:
            label = f"{name} on {ranks} ranks"
            wanted, read_again = run(suite, label, obs, ranks, *more)
            images, read = run(suite, f"{label}, scratch", obs, ranks, *more, "--scratch",
                               folder, *forced(scratch=1))
            suite.equal(f"{label}: images", sorted(images), sorted(wanted))
            suite.true(f"{label}: the same images", len(wanted) > 0 and all(
                np.array_equal(images[n], wanted[n]) for n in images))
            suite.true(f"{label}: less was read", read < 0.9 * read_again)
            if name == "passes":  # survey and once more, of survey, count and 3 passes
                suite.below(f"{label}: of what was read, part that is", read / read_again,
                            2 / 5 + 0.05)
            suite.equal(f"{label}: files left", os.listdir(folder), [])


def check_parted(suite, obs):
    """Samples of many outputs: one reading parts them, whether the samples of some outputs
    fit at a time or those of none, also for teams of ranks; and `plan` says so."""
    folder = suite.path("scratch")
    many = ["--weight", "briggs:0", "--channels-out", "4", "--intervals-out", "4",
            "--stokes", "I,XX", "--reproducible"]
    again = "read again for every few outputs"
    wanted, read_again = run(suite, "in groups", obs, 1, *many, memory=SOME, says=again)
    whole = ["--scratch", folder]
    cases = [(1, SOME, "read once, and parted", {}), (1, MEMORY, STREAMED, {}),
             (2, SOME, "read once, and parted", {"teams": 2})]
    for ranks, memory, says, layout in cases if mpiexec() else cases[:2]:
        label = f"parted, {says}, {ranks} ranks"
        images, read = run(suite, label, obs, ranks, *many, *whole,
                           *forced(scratch=1, **layout), memory=memory, says=says)
        suite.true(f"{label}: the same images", len(wanted) > 0 and all(
            np.array_equal(images.get(n), wanted[n]) for n in wanted))
        if ranks == 1:  # intervals have read the times before
            suite.true(f"{label}: read once: {read} of {read_again}", read < 0.5 * read_again)
        suite.equal(f"{label}: files left", os.listdir(folder), [])
    plans = [tessera("plan", obs, *IMAGE, *many, "--memory", f"{SOME}kB", *more)
             for more in ([], whole)]
    suite.true("plan: reads again", re.search(
        r"do not fit into memory: read [3-9] times; with --scratch DIR once", plans[0].out))
    suite.true("plan: parts", "read once, and parted by output on scratch" in plans[1].out)


def check_choice(suite, obs):
    """Whichever is faster: one line says which, and it is what is done."""
    folder = suite.path("scratch")
    for ranks in RANKS[:2]:
        label = f"chosen by {ranks} ranks"
        prefix = suite.path("chosen")
        wanted, again = run(suite, label, obs, ranks, "--weight", "natural",
                            *forced(passes=3))
        result = tessera("image", obs, *IMAGE, "--memory", f"{MEMORY * ranks}kB", "--weight",
                         "natural", *forced(passes=3), "--scratch", folder,
                         "--overwrite", "-o", prefix, ranks=ranks)
        suite.ran(f"{label}: scratch", result)
        said = re.search(r"take (\S+) s to read, (\S+) s to write to a scratch file and "
                         r"(\S+) s to read back: this rank (uses one|reads)", result.err)
        suite.true(f"{label}: says what it costs", said)
        source, write, back = (float(said[k]) for k in (1, 2, 3))
        if abs(write + 2 * back - 2 * source) > 0.02 * source: # more than is rounded off
            suite.equal(f"{label}: the faster way", said[4],
                        "uses one" if write + 2 * back < 2 * source else "reads")
        suite.true(f"{label}: the same image", len(wanted) > 0 and all(
            np.array_equal(read_image(prefix + n[3:])[0], image)
            for n, image in wanted.items()))
        suite.equal(f"{label}: files left", os.listdir(folder), [])


def check_disks(suite, obs):
    def one_line(label, status, err, words):
        suite.equal(f"{label}: status", status, 3)
        lines = [x for x in err.splitlines() if "tessera: error" in x]
        suite.equal(f"{label}: lines of error", len(lines), 1)
        suite.true(f"{label}: names the folder: {lines}", lines and words in lines[0])
        suite.equal(f"{label}: images left",
                    [n for n in os.listdir(suite.work) if n.startswith("disk-")], [])

    for ranks in RANKS[:2]:
        none = suite.path("no", "folder")
        result = tessera("image", obs, *IMAGE, "--memory", f"{MEMORY * ranks}kB",
                         "--scratch", none, "-o", suite.path("disk"), ranks=ranks)
        one_line(f"no folder, {ranks} ranks", result.status, result.err, none)

    # A limit on the size of files, that images stay below, stands in for a full disk.
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))

    folder = suite.path("scratch")
    for label, more in (("full disk", []), ("full, parted", ["--channels-out", "4"])):
        command, env = take_forced(
            [BIN, "image", obs, *IMAGE, "--memory", f"{MEMORY}kB", "--scratch", folder,
             *more, *forced(scratch=1), "-o", suite.path("disk")])
        child = subprocess.run(command, preexec_fn=limit, capture_output=True, text=True,
                               timeout=60 * SLOWER, env=env)
        one_line(label, child.returncode, child.stderr, folder)
        suite.equal(f"{label}: files left", os.listdir(folder), [])


def main():
    suite = Suite("scratch")
    obs = Samples(suite, "long", rows=STEPS * PER_STEP, channels=4).path
    model = np.zeros((NY, NX))
    model[20, 31], model[40, 12] = 2.0, -0.7
    model = uvfits.write_model(suite.path("model.fits"), model, SCALE)
    check_same(suite, obs, model)
    check_parted(suite, obs)
    check_choice(suite, obs)
    check_disks(suite, obs)
    suite.finish()


if __name__ == "__main__":
    main()
