#!/usr/bin/env python3
"""Major cycles by a session against runs of `tessera image --subtract`, in turns.

usage: session_majors.py [--majors 7] [--size 1024] [--duration 160min] [--repeat 3] [--threads N]
                         [--backend auto|cpu|cuda] [--meerkat] [--smoke]

An observation of the VLA is simulated (674 thousand visibilities by default), with --meerkat
one of MeerKAT (29 million, imaged at 4096 x 4096). A session makes the PSF, the dirty image
and a residual image of each of some models. Runs of the program make the same from files: each
reads, weights, sorts and plans again. Seconds are medians of wall time; the session's time has
its opening in it. Nothing judges them.
"""
import argparse
import os
import statistics
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
import module  # noqa: E402, F401, finds tessera
import tessera  # noqa: E402
from e2e import Suite, fits_module, simulate, tessera as program, write_sky  # noqa: E402

VLA = dict(scale="1.5asec", integration="40s", channels=8)
MEERKAT = dict(scale="1.1asec", size=4096, duration="2h", integration="8s", channels=16,
               layout="meerkat", freq="1.28GHz")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--majors", type=int, default=7)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--duration", default="160min")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--meerkat", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--full", action="store_true", help="as ctest calls it: ignored")
    options = parser.parse_args()
    options.set = MEERKAT if options.meerkat else VLA
    if options.meerkat:
        options.size, options.duration = MEERKAT["size"], MEERKAT["duration"]
    if options.smoke:
        options.majors, options.size, options.duration, options.repeat = 2, 256, "10min", 1
    return options


def models(options):
    rng = np.random.default_rng(9)
    made = np.zeros((options.majors, options.size, options.size))
    for model in made:
        at = rng.integers(0, options.size, (2, 20))
        model[at[0], at[1]] = rng.uniform(0.01, 0.1, 20)
    return made


def by_session(options, obs, made, residuals):
    """Residual images, and seconds since the session was open; those of each residual image
    are added to `residuals`."""
    with tessera.Session(obs, size=options.size, scale=options.set["scale"],
                         backend=options.backend, threads=options.threads) as session:
        opened = time.perf_counter()
        session.psf()
        left = []
        for model in made:
            start = time.perf_counter()
            left.append(session.residual(model))
            residuals.append(time.perf_counter() - start)
        return left, time.perf_counter() - opened


def by_program(suite, options, obs, made):
    fits = fits_module()
    prefix = suite.path("by-program")
    common = [obs, "-o", prefix, "--size", options.size, "--scale", options.set["scale"],
              "--backend", options.backend, "--threads", options.threads, "--overwrite",
              "--quiet"]
    suite.ran("dirty image and PSF", program("image", *common, timeout=600))
    with fits.open(prefix + "-dirty.fits") as file:
        header = file[0].header.copy()
    header["BUNIT"] = "Jy/pixel"
    left = []
    for model in made:
        name = suite.path("model.fits")
        fits.writeto(name, model[None, None], header, overwrite=True)
        suite.ran("residual image", program("image", *common, "--no-psf", "--subtract", name,
                                            timeout=600))
        with fits.open(prefix + "-dirty.fits") as file:
            left.append(file[0].data[0, 0])
    return left


def main():
    options = arguments()
    suite = Suite("session_majors")
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    simulated = {name: value for name, value in options.set.items()
                 if name not in ("scale", "size", "duration")}
    obs = simulate(suite.path("obs.uvfits"), sky, duration=options.duration, **simulated)
    made = models(options)
    seconds = {"session": [], "its images": [], "a residual": [], "program": []}
    for _ in range(options.repeat):
        start = time.perf_counter()
        left, images = by_session(options, obs, made, seconds["a residual"])
        seconds["session"].append(time.perf_counter() - start)
        seconds["its images"].append(images)
        start = time.perf_counter()
        found = by_program(suite, options, obs, made)
        seconds["program"].append(time.perf_counter() - start)
    for mine, file in zip(left, found):
        suite.below("residuals of both, L2", np.linalg.norm(mine - file) /
                    np.linalg.norm(file), 2e-4)
    median = {name: statistics.median(values) for name, values in seconds.items()}
    print(f"{options.majors} majors of {options.size} x {options.size}: session "
          f"{median['session']:.2f} s, of that images {median['its images']:.2f} s, a "
          f"residual image {median['a residual']:.3f} s; --subtract "
          f"{median['program']:.2f} s, ratio {median['program'] / median['session']:.2f}")
    suite.finish()


if __name__ == "__main__":
    main()
