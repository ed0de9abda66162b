#!/usr/bin/env python3
"""Times `tessera predict --column MODEL_DATA` and `wsclean -predict` of one model image on copies of
one MeasurementSet, in turns, and prints a line of CSV for each run: seconds for the first run on a copy
(the system clears memory for it, and a virtual machine asks its host for memory), for a column that is
made, and for one that is there already; and the relative L2 difference of what the two wrote. WSClean runs
with its default gridder and with -use-wgridder. --smoke: a small set, to show that it runs. Skipped
without WSClean or casacore's Python module."""
import argparse
import os
import shutil
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import clean_wsclean
from e2e import ASEC, BIN, casacore_python, mpi_environment, run, skip
import uvfits

WORK = clean_wsclean.WORK
PROGRAMS = {"tessera": [], "wsclean": [],
            "wgridder": ["-use-wgridder", "-wgridder-accuracy", "1e-4"]}
REMOVE = """
import sys
from casacore.tables import table
table(sys.argv[1], readonly=False, ack=False).removecols("MODEL_DATA")
"""
COMPARE = """
import sys
import numpy as np
from casacore.tables import table
a, b = (table(p, ack=False) for p in sys.argv[1:])
top = bottom = 0.0
for row in range(0, a.nrows(), 100000):
    x, y = (t.getcol("MODEL_DATA", row, min(100000, a.nrows() - row)) for t in (a, b))
    top += float((np.abs(x - y).astype("f8") ** 2).sum())
    bottom += float((np.abs(x).astype("f8") ** 2).sum())
print((top / bottom) ** .5)
"""


def make_model(path, size, pixel):
    """A tenth of a percent of the pixels, inside the middle two thirds."""
    rng = np.random.default_rng(7)
    image = np.zeros((size, size))
    at = rng.integers(size // 6, size - size // 6, (size * size // 1000, 2))
    image[at[:, 0], at[:, 1]] = rng.uniform(.001, .01, len(at))
    return uvfits.write_model(path, image, pixel * ASEC, clean_wsclean.RA, clean_wsclean.DEC)


def command(program, ms, prefix, size, pixel, threads):
    if program == "tessera":
        return [BIN, "predict", ms, "--model", prefix + "-model.fits", "--column", "MODEL_DATA",
                "--threads", str(threads), "--overwrite", "-q"]
    return ["wsclean", "-quiet", "-predict", "-name", prefix, "-size", str(size), str(size), "-scale",
            f"{pixel}asec", "-pol", "I", *PROGRAMS[program], "-j", str(threads), "-temp-dir", WORK,
            ms]


def seconds(words):
    subprocess.run(["sync"], check=True)
    begin = time.monotonic()
    done = subprocess.run(words, env=mpi_environment(), capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{words[0]}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return time.monotonic() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=sorted(clean_wsclean.SETS), default="meerkat-29M")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    python = casacore_python()
    if not shutil.which("wsclean") or not python:
        skip("wsclean, or casacore's Python module, is not there")
    if args.smoke:
        args.set, args.repeat = "smoke", 1
    os.makedirs(WORK, exist_ok=True)
    obs, size, pixel = clean_wsclean.observe(args.set)
    prefix = os.path.join(WORK, "column")
    make_model(prefix + "-model.fits", size, pixel)
    copies = {p: os.path.join(WORK, f"column-{p}.ms") for p in PROGRAMS}
    print("program,column,seconds", flush=True)
    for _ in range(args.repeat):
        for program, ms in copies.items():
            shutil.rmtree(ms, ignore_errors=True)
            shutil.copytree(obs, ms)
            for column in ("first", "made", "replaced"):
                if column == "made":
                    subprocess.run([python, "-c", REMOVE, ms], check=True)
                taken = seconds(command(program, ms, prefix, size, pixel, args.threads))
                print(f"{program},{column},{taken:.2f}", flush=True)
    told = run([python, "-c", COMPARE, copies["tessera"], copies["wgridder"]], 600)
    difference = float(told.out.split()[-1])
    print(f"difference,,{difference:.3g}")
    for ms in copies.values():
        shutil.rmtree(ms)
    if not difference < 5e-3:  # of random pixels WSClean 3.1 is off the direct sum by 1.8e-3
        sys.exit("the two wrote other visibilities")


if __name__ == "__main__":
    main()
