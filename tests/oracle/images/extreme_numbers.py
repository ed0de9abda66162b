#!/usr/bin/env python3
"""Weights, visibilities and models of 1e-42 or 1e+36, whose products leave the range of
single precision: images and predictions are those of ordinary numbers, times a power of
two.

Limits: multiplying by a power of two is exact, so images are equal to the last bit; where
pixels or predicted visibilities are denormal, single precision holds them to 2^-150, half
of its smallest number. Direct sums are reached to the accuracy asked for. --backend cuda:
a GPU adds in any order, so that images differ by the rounding of sums.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import BACKEND, Suite, l2_error, mpiexec, read_image, tessera
from fields_and_cubes import NX, NY, SCALE, imaging_weights
import uvfits

ROWS, CHANNELS = 9600, 4
ACCURACY = 1e-4
IMAGE = ["--size", f"{NX},{NY}", "--scale", "60asec", "--accuracy", str(ACCURACY),
         "--threads", "1"]
WEIGHTS = ["natural", "uniform", "briggs:0"]
# Binary exponents of weights and of visibilities.
EXPONENTS = [(-130, 0), (0, -130), (-70, -60), (-140, -140), (110, 0), (120, 120),
             (120, -140)] if BACKEND == "cpu" else [(-140, -140), (120, -140)]
ROUNDING = 0.0 if BACKEND == "cpu" else 1e-5
RANKS = 2 if mpiexec() else 1
STREAMED = 590      # memory [kB] of a rank that cannot hold these data


class Scene:
    """Samples with few bits: they are exact where they are denormal."""

    def __init__(self, suite):
        rng = np.random.default_rng(3)
        shape = (ROWS, CHANNELS, 2)
        self.suite, self.freq = suite, 1.0e9 + 2e7 * np.arange(CHANNELS)
        parts = [np.rint(64 * rng.normal(size=shape)) / 64 for _ in range(2)]
        self.vis = parts[0] + 1j * parts[1]
        self.weight = np.rint(8 * rng.uniform(0.5, 1.5, shape)) / 8
        self.uvw = uvfits.random_tracks(ROWS, 450.0, 3.0, seed=53)

    def write(self, name, of_weight=0, of_vis=0):
        """A file of weights and visibilities times 2^these, which may be arrays."""
        path = self.suite.path(name + ".uvfits")
        self.uvw = uvfits.write(path, self.uvw, self.freq,
                                np.ldexp(1.0, of_vis) * self.vis,
                                np.ldexp(self.weight, of_weight))
        return path


def images(suite, name, obs, *more, ranks=1, kinds=("dirty", "psf")):
    ran, prefix = suite.image(name, obs, *IMAGE, *more, ranks=ranks)
    if ran and "--memory" in more:
        with open(prefix + ".log") as log:
            suite.true(f"{name}: streamed", "data are streamed" in log.read())
    return [read_image(f"{prefix}-{kind}.fits") if ran else (np.full((1, 1), np.nan), {})
            for kind in kinds]


def same(suite, what, found, expected, exponent=0):
    """Equal times 2^exponent, as single precision holds it."""
    if found.shape != expected.shape:
        return suite.true(f"{what}: shapes", False)
    limit = 2.0 ** (-150 - exponent) if exponent < 0 else 0.0
    limit += ROUNDING * np.abs(expected).max()
    return suite.below(f"{what}: largest difference",
                       np.abs(found * 2.0 ** -exponent - expected).max(), limit)


def check_scaled(suite, scene, base):
    for weight in WEIGHTS:
        dirty, psf = images(suite, "base", base, "--weight", weight)
        for a, b in EXPONENTS:
            label = f"{weight}, weights 2^{a}, visibilities 2^{b}"
            obs = scene.write("scaled", a, b)
            found = images(suite, "scaled", obs, "--weight", weight)
            same(suite, f"{label}: dirty", found[0][0], dirty[0], b)
            same(suite, f"{label}: PSF", found[1][0], psf[0])
            times = 1 if weight == "uniform" else 2.0 ** a
            suite.below(f"{label}: SUMWT",
                        abs(found[0][1].get("SUMWT", np.nan) / times / dirty[1]["SUMWT"] - 1),
                        max(ROUNDING, 1e-12))  # 20 characters of a FITS card


def check_ways(suite, scene, base):
    """Streamed, on several ranks, reproducibly and one output after the other."""
    obs = scene.write("small", -130, -120)
    memory = ["--memory", f"{STREAMED * RANKS}kB"]
    for weight in ("natural", "briggs:0", "uniform"):
        options = ["--weight", weight, "--reproducible"]
        dirty, psf = images(suite, "base", base, *options)
        for what, more, ranks in (("ranks", [], RANKS), ("streamed", memory, RANKS)):
            found = images(suite, what, obs, *options, *more, ranks=ranks)
            same(suite, f"{weight}, {what}: dirty", found[0][0], dirty[0], -120)
            same(suite, f"{weight}, {what}: PSF", found[1][0], psf[0])
    exponent = np.array([0, 0, -130, -130])[:, None]
    obs = scene.write("uneven", exponent, exponent)
    kinds = [f"{k:04d}-dirty" for k in range(2)]
    split = ["--channels-out", "2", "--weight", "briggs:0"]
    expected = images(suite, "base", base, *split, kinds=kinds)
    for what, more in (("kept", []), ("streamed", ["--memory", f"{STREAMED}kB"])):
        found = images(suite, "split", obs, *split, *more, kinds=kinds)
        for k in range(2):
            same(suite, f"{what}, channel {k}, 2^-130 of it", found[k][0], expected[k][0],
                 -130 * k)


def check_wide_range(suite, scene):
    """Weights over the whole of single precision: what is lost is below the rounding of
    sums, and uniform weights count what is alone in a cell however small it is."""
    exponent = np.random.default_rng(9).integers(-140, 100, (ROWS, CHANNELS, 1))
    obs = scene.write("wide", exponent)
    value = scene.vis.mean(-1)
    natural = np.ldexp(scene.weight, exponent).min(-1)
    for weight, imaging in (
            ("natural", natural),
            ("uniform", imaging_weights(scene, natural, natural, None)),
            ("briggs:0", imaging_weights(scene, natural, natural, 0.0))):
        expected = uvfits.direct_dirty(scene.uvw, scene.freq, value, imaging, NX, NY, SCALE)
        found, = images(suite, "wide", obs, "--weight", weight, kinds=["dirty"])
        suite.below(f"{weight} weights from 2^-140 to 2^100: L2 error",
                    l2_error(found[0], expected), ACCURACY)


def check_model(suite, base):
    """Tiny models are predicted, and subtracted from tiny data."""
    rng = np.random.default_rng(6)
    image = np.where(rng.uniform(size=(NY, NX)) < 0.02, rng.uniform(1, 2, (NY, NX)), 0)
    expected = {}
    for exponent in (0, -130, 90):
        model = uvfits.write_model(suite.path("model.fits"), image * 2.0 ** exponent, SCALE)
        out = suite.path("predicted.uvfits")
        for ranks in sorted({1, RANKS}):
            result = tessera("predict", base, "--model", model, "--accuracy", str(ACCURACY),
                             "--threads", "1", "--overwrite", "-o", out, ranks=ranks)
            if not suite.ran(f"predict 2^{exponent} on {ranks} ranks", result):
                continue
            vis = uvfits.read(out)[2].astype("c16")
            expected.setdefault(ranks, vis)
            same(suite, f"predicted, model 2^{exponent} on {ranks} ranks",
                 vis.view("f8"), expected[ranks].view("f8"), exponent)
        whole, = images(suite, "whole", out, "--no-psf", kinds=["dirty"])
        for memory in ([], ["--memory", f"{STREAMED}kB"]):
            rest, = images(suite, "rest", out, "--no-psf", *memory, "--subtract", model,
                           kinds=["dirty"])
            # the file's visibilities, and then those predicted, are rounded to 2^-150
            suite.below(f"model 2^{exponent} {' '.join(memory)}: left of it",
                        np.abs(rest[0]).max(),
                        np.abs(whole[0]).max() * ACCURACY + 2.0 ** -149)


def main():
    suite = Suite("extreme_numbers")
    scene = Scene(suite)
    base = scene.write("base")
    check_scaled(suite, scene, base)
    check_ways(suite, scene, base)
    check_wide_range(suite, scene)
    check_model(suite, base)
    suite.finish()


if __name__ == "__main__":
    main()
