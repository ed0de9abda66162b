#!/usr/bin/env python3
"""Cubes and snapshots share one plan, however their samples are kept.

Set-up happens once, by the profile's counts and the log. Images equal those of separate
runs with the same plan, number for number; separately planned ones are within the sum of
both runs' accuracies. Samples that do not fit into memory are read again for each
image, or block by block: the same images then, up to the order of sums (1e-12 of double
precision, as between any two layouts).
"""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import C_M_S, Suite, forced, l2_error, mpiexec, read_image, tessera
from fields_and_cubes import NX, NY, SCALE, Samples
import uvfits

EPS = 1e-9
ROUNDING = 1e-12
PER_STEP = 120           # rows of one integration, by uvfits.write
RANKS = (1, 2, 3, 4) if mpiexec() else (1,)
STEPS = 80
# Memory a rank [kB]: on 1 to 4 ranks, 80 steps x 4 channels fit into none of them, a half of
# the steps and channels into the second, images (180 kB) into all.
MODES = {"cached": None, "again": 1600, "streamed": 590}
SAYS = {"cached": None, "again": "read again for every few outputs", "streamed": "are streamed"}


def options(weight):
    return ["--size", f"{NX},{NY}", "--scale", "60asec", "--weight", weight, "--accuracy",
            str(EPS), "--threads", "1"]


def memory_of(mode, ranks):
    return ["--memory", f"{MODES[mode] * ranks}kB"] if MODES[mode] else []


def w_range(s):
    w = np.abs(s.uvw[:, 2])[:, None] * s.freq / C_M_S
    return f"{w.min() * 0.9:.17g}:{w.max() * 1.1:.17g}"


def images(suite, prefix, names, kinds=("dirty", "psf")):
    return {(n, k): read_image(f"{prefix}{n}-{k}.fits")[0] for n in names for k in kinds}


def check_once(suite, what, profile, result):
    with open(profile) as f:
        totals = json.load(f)["totals"]
    suite.equal(f"{what}: gridding plans", totals["plans"], 1)
    suite.equal(f"{what}: transforms set up", totals["transforms"], 1)
    lines = [x for x in result.err.splitlines() if "w-plane" in x and "support" in x]
    suite.equal(f"{what}: plans in the log", len(lines), 1)


def run(suite, name, s, *args, ranks=1):
    """Prefix of the images, with profile and log looked at; None when it failed."""
    prefix, profile = suite.path(name), suite.path("profile.json")
    result = tessera("image", s.path, *args, "--profile", profile, "--overwrite", "-o",
                     prefix, ranks=ranks)
    if not suite.ran(name, result):
        return None, None
    check_once(suite, name, profile, result)
    return prefix, result


def check_same_plan(suite, s, ranks):
    """Three snapshots against three runs with the plan forced to be that one."""
    force = forced(w_range=w_range(s), num_vis=1000, teams=1)
    names = [f"-t{k:04d}" for k in range(3)]
    prefix, _ = run(suite, f"all{ranks}", s, *options("briggs:0"), *force,
                    "--intervals-out", "3", ranks=ranks)
    if not prefix:
        return
    for k, (begin, end) in enumerate([(0, 26), (26, 53), (53, 80)]):
        one, _ = run(suite, f"one{ranks}-{k}", s, *options("briggs:0"), *force,
                     "--intervals", f"{begin}:{end}", ranks=ranks)
        if not one:
            continue
        for kind in ("dirty", "psf"):
            a = read_image(f"{prefix}{names[k]}-{kind}.fits")[0]
            b = read_image(f"{one}-{kind}.fits")[0]
            suite.true(f"{ranks} ranks, interval {k}, {kind}: equal to its own run",
                       np.array_equal(a, b))


def check_modes(suite, s, ranks):
    """2 intervals x 2 channels, kept in each way, against images planned by themselves."""
    names = [f"-t{t:04d}-{c}" for t in range(2) for c in ("0000", "0001", "MFS")]
    out = ["--intervals-out", "2", "--channels-out", "2"]
    reference = None
    for mode in MODES:
        prefix, result = run(suite, f"{mode}{ranks}", s, *options("uniform"), *out,
                             *memory_of(mode, ranks), ranks=ranks)
        if not prefix:
            continue
        if SAYS[mode]:
            suite.true(f"{mode} on {ranks} ranks: said so", SAYS[mode] in result.err)
        found = images(suite, prefix, names)
        if reference is None:
            reference = found
            continue
        worst = max(l2_error(found[k], reference[k]) for k in reference)
        suite.below(f"{mode} on {ranks} ranks: L2 to cached", worst, ROUNDING)
    if not reference or ranks > 1:
        return
    for t, span in enumerate(("0:40", "40:80")):
        for c, chans in enumerate(("0:2", "2:4")):
            one, _ = run(suite, "alone", s, *options("uniform"), "--intervals", span,
                         "--channels", chans)
            if one:
                for kind in ("dirty", "psf"):
                    suite.below(f"interval {t}, channel {c}, {kind}: L2 to its own plan",
                                l2_error(reference[f"-t{t:04d}-{c:04d}", kind],
                                         read_image(f"{one}-{kind}.fits")[0]), 2 * EPS)


def check_streamed_model(suite, s):
    """--subtract acts on data that are streamed, too, and with several Stokes parameters
    of equal weights there is one PSF however data are kept."""
    model = np.zeros((NY, NX))
    model[20, 31], model[40, 12] = 2.0, -0.7
    path = uvfits.write_model(suite.path("model.fits"), model, SCALE)
    for ranks in RANKS[::2]:
        found = {}
        for mode in ("cached", "streamed"):
            prefix = suite.path(f"model-{mode}")
            result = tessera("image", s.path, *options("natural"), "--stokes", "I,Q",
                             "--subtract", path, "--overwrite", "-o", prefix,
                             *memory_of(mode, ranks), ranks=ranks)
            if not suite.ran(f"{mode} with a model on {ranks} ranks", result):
                return
            if mode == "streamed":
                suite.true("said so", SAYS[mode] in result.err)
            found[mode] = [read_image(f"{prefix}-{n}.fits")[0]
                           for n in ("I-dirty", "Q-dirty", "I-psf")]
        for a, b, n in zip(found["streamed"], found["cached"], ("I", "Q", "PSF")):
            # plans of the model's prediction may differ: its accuracy
            suite.below(f"streamed residual {n} on {ranks} ranks: L2 to cached",
                        l2_error(a, b), 2 * EPS)


def check_degenerate(suite):
    """One interval has all its w within one step of the planes: the shared plan must keep
    the accuracy for it as well."""
    def flatten(s):
        s.uvw[:PER_STEP, 2] = 30.0 + 1e-3 * np.arange(PER_STEP)
    s = Samples(suite, "flat", rows=4 * PER_STEP, channels=1, change=flatten)
    for eps in (1e-4, 1e-7):
        prefix, _ = run(suite, "flat-image", s, "--size", f"{NX},{NY}", "--scale",
                        "60asec", "--weight", "natural", "--accuracy", str(eps),
                        "--intervals-out", "4", "--no-psf")
        if prefix:
            expected = s.dirty(np.arange(len(s.uvw)) < PER_STEP)
            image = read_image(f"{prefix}-t0000-dirty.fits")[0]
            suite.below(f"interval of equal w at {eps}: L2", l2_error(image, expected), eps)


def main():
    suite = Suite("one_plan")
    s = Samples(suite, "series", rows=STEPS * PER_STEP)
    for ranks in RANKS:
        check_same_plan(suite, s, ranks)
        check_modes(suite, s, ranks)
    check_streamed_model(suite, s)
    check_degenerate(suite)
    suite.finish()


if __name__ == "__main__":
    main()
