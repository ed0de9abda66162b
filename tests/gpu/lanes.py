#!/usr/bin/env python3
"""Lanes of a GPU that make channels of a cube side by side, run after run.

What is wrong between lanes shows in some runs only: transforms that began before the tables
of their plans were on the device ended two of three of these runs with an illegal memory
access. So the runs are many, and as large as such channels are. Images are those of one lane
bit by bit with --reproducible, dirty and cleaned.
"""
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "oracle"))

from e2e import FULL, Suite, fits_module, forced, skip, tessera

LANES, CHANNELS, RUNS = 16, 16, 20 if FULL else 8
IMAGE = ["--size", "1024", "--scale", "2asec", "--channels-out", str(CHANNELS), "--cube",
         "--backend", "cuda", "--threads", str(LANES), "--no-sync", "--overwrite", "--verbose"]
CLEAN = ["--niter", "300", "--auto-threshold", "4"]


def observe(suite):
    path, sky = suite.path("channels.uvfits"), suite.path("sky.csv")
    with open(sky, "w") as file:
        file.write("ra,dec,flux_jy\n60deg,-30deg,1\n60.1deg,-30.05deg,.5\n")
    result = tessera("simulate", "--layout", "meerkat", "--ra", "60deg", "--dec=-30deg",
                     "--sky", sky, "--freq", "1.3GHz", "--channels", str(CHANNELS),
                     "--chan-width", "200kHz", "--duration", "960s", "--integration", "8s",
                     "--noise", ".1Jy", "-o", path)
    return path if result.status == 0 else None


def run(suite, name, obs, *options):
    """The prefix of a run's files; None: it failed, which counts."""
    prefix = suite.path(name)
    result = tessera("image", obs, "-o", prefix, *IMAGE, *options)
    suite.equal(f"{name}: status", result.status, 0)
    if result.status != 0:
        print(result.err[-300:])
    return (prefix if result.status == 0 else None), result


def check_many(suite, obs):
    for k in range(RUNS):
        run(suite, f"run {k}".replace(" ", "-"), obs, *forced(thread_teams=LANES))
    for k in range(RUNS // 4):
        run(suite, f"cleaned-{k}", obs, *CLEAN, *forced(thread_teams=LANES))
    _, result = run(suite, "planned", obs)
    suite.true("lanes are the planner's choice",
               "each with a lane of the GPU" in result.err)


def check_bits(suite, obs):
    made = [run(suite, f"lanes-{lanes}", obs, *CLEAN, "--reproducible",
                *forced(thread_teams=lanes))[0] for lanes in (1, LANES)]
    if None in made:
        return
    for kind in ("dirty", "psf", "model", "residual", "image"):
        one, many = (fits_module().getdata(f"{prefix}-cube-{kind}.fits") for prefix in made)
        suite.true(f"{kind}: bits of one lane", np.array_equal(one, many, equal_nan=True))


def main():
    suite = Suite("lanes")
    obs = observe(suite)
    if obs is None:
        skip("no observation")
    if tessera("image", obs, "-o", suite.path("first"), *IMAGE, "--no-psf").status == 4:
        skip("there is no device")
    check_many(suite, obs)
    check_bits(suite, obs)
    return suite.finish()


if __name__ == "__main__":
    sys.exit(main())
