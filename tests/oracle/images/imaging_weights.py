#!/usr/bin/env python3
"""--store-imaging-weights: the column IMAGING_WEIGHT_SPECTRUM against its definition in numpy, and against
WSClean's column of the same command line, with flags and uneven weights, on one to three ranks. What is not
selected keeps its values. Other columns stay as they are; a UVFITS file gets one line.

Limits: factors are stored in single precision (6e-8), and are made of sums of single-precision weights in double
precision; a few such roundings are 1e-6.
"""
import os
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (ASEC, BIN, C_M_S, Suite, casacore_python, have_ms, mpiexec, read_image, run, simulate, tessera,
                 write_sky)

SIZE, SCALE, ROUNDING = 200, 6.0, 1e-6
OURS = os.path.join(os.path.dirname(BIN), "tessera-wsclean")
FIELD = f"-size {SIZE} {SIZE} -scale {SCALE}asec"
COLUMN = "IMAGING_WEIGHT_SPECTRUM"

# Uneven weights, flags, and baselines beyond the grid.
SPOIL = """
import sys
import numpy as np
import casacore.tables as ct
rng = np.random.default_rng(3)
main = ct.table(sys.argv[1], readonly=False, ack=False)
weight = main.getcol("WEIGHT_SPECTRUM")
weight *= rng.uniform(.2, 2, weight.shape[:2])[..., None]
main.putcol("WEIGHT_SPECTRUM", weight)
flag = main.getcol("FLAG")
flag[rng.uniform(size=flag.shape[:2]) < .2] = True
main.putcol("FLAG", flag)
uvw = main.getcol("UVW")
uvw[::50] *= 20
main.putcol("UVW", uvw)
"""

READ = """
import sys
import numpy as np
import casacore.tables as ct
main = ct.table(sys.argv[1], ack=False)
np.savez(sys.argv[2], **{k: main.getcol(k) for k in main.colnames() if k not in ("FLAG_CATEGORY", "TIME")})
"""

LINES = [
    ("natural", "-weight natural"),
    ("natural-taper", "-weight natural -taper-gaussian 60"),
    ("uniform", "-weight uniform -weighting-rank-filter 0"),
    ("rank-filter", "-weight uniform"),
    ("rank-filter-size", "-weight uniform -weighting-rank-filter 2 -weighting-rank-filter-size 7"),
    ("rank-filter-wide", "-weight briggs -1 -weighting-rank-filter 1.1 -weighting-rank-filter-size 150"),
    ("rank-filter-none", "-weight uniform -weighting-rank-filter-size 1"),
    ("rank-filter-low", "-weight uniform -weighting-rank-filter 0.5"),
    ("natural-edge", "-weight natural -taper-edge 3000"),
    ("edge-tukey", "-weight briggs 0 -taper-edge-tukey 15000 -weighting-rank-filter-size 20"),
    ("edge-both", "-weight uniform -taper-edge 1500 -taper-edge-tukey 9000 -size 200 150 -super-weight 2 -pol XX,YY"),
    ("briggs", "-weight briggs 0.5 -weighting-rank-filter 0"),
    ("briggs-taper", "-weight briggs -0.5 -taper-gaussian 40 -minuv-l 200 -maxuv-l 5000 -taper-inner-tukey 300"),
    ("channels", "-weight briggs 0 -channels-out 2"),
    ("joined", "-weight briggs 0 -channels-out 2 -join-channels -niter 5 -mgain 0.8 -no-update-model-required"),
    ("polarisations", "-weight uniform -pol XX,YY"),
    ("part", "-weight uniform -interval 2 5 -channel-range 1 3"),
    ("metres", "-weight briggs 0 -minuvw-m 300"),
]
# Lines that run on one to three ranks.
MANY_RANKS = ("rank-filter", "rank-filter-wide", "edge-tukey", "joined", "part")


def table(suite, python, obs):
    """The columns of a set."""
    out = suite.path("table.npz")
    if not suite.ran(f"reading {os.path.basename(obs)}", run([python, "-c", READ, obs, out], 60)):
        return None
    with np.load(out) as columns:
        return {name: columns[name] for name in columns}


def make_set(suite, python):
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    obs = simulate(suite.path("obs.ms"), sky, layout="meerkat", duration="40min", integration="300s", freq="1.28GHz",
                   width="40MHz", channels=4, pol="XX,XY,YX,YY", extra=("--antennas", "24"))
    return obs if suite.ran("flags and weights", run([python, "-c", SPOIL, obs], 60)) else None


def copy(suite, obs, name):
    path = suite.path(name + ".ms")
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(obs, path)
    return path


def definition(columns, weighting, robust, size, scale):
    """Factors by the manual's definition, of Stokes I and all channels together."""
    freq = 1.28e9 + 40e6 * (np.arange(4) - 1.5)
    uv = columns["UVW"][:, None, :2] * freq[:, None] / C_M_S
    n = int(np.ceil(np.ceil(1.2 * size) / 4)) * 4
    uv = np.where(uv[..., 1:] < 0, -uv, uv)
    x = np.floor(uv[..., 0] * n * scale * ASEC + n // 2).astype(int)
    y = np.floor(uv[..., 1] * n * scale * ASEC).astype(int)
    inside = (np.abs(uv) < 1 / (2 * scale * ASEC)).all(-1)
    weight = np.minimum(columns["WEIGHT_SPECTRUM"][..., 0], columns["WEIGHT_SPECTRUM"][..., 3]).astype("f8")
    good = inside & ~columns["FLAG"][..., 0] & ~columns["FLAG"][..., 3]
    x, y = np.where(inside, x, 0), np.where(inside, y, 0)
    cell = np.zeros((n, n))
    np.add.at(cell, (y[good], x[good]), weight[good])
    if weighting == "natural":
        factor = np.ones((n, n))
    elif weighting == "uniform":
        factor = np.divide(1, cell, out=np.zeros_like(cell), where=cell > 0)
    else:
        factor = 1 / (1 + cell * (5 * 10 ** -robust) ** 2 / ((cell ** 2).sum() / cell.sum()))
    return np.where(inside, factor[y, x], 0)


def difference(found, wanted):
    """Largest difference, relative to the value that is wanted."""
    if found.shape != wanted.shape:
        return np.inf
    scale = np.where(wanted > 0, wanted, 1)
    return (np.abs(found - wanted) / scale).max()


def check_definition(suite, python, obs):
    before = table(suite, python, obs)
    # in the large image, some cells have flagged samples of a rank, and no other sample of it nearby
    for what, option, ranks, size, scale in (("natural", "natural", 1, SIZE, SCALE), ("uniform", "uniform", 2, SIZE, SCALE),
                                             ("briggs", "briggs:0.7", 3, SIZE, SCALE),
                                             ("briggs, large", "briggs:0.7", 3, 1600, 2.0)):
        ranks = ranks if mpiexec() else 1
        mine = copy(suite, obs, "defined")
        ran = suite.image("defined", mine, "--size", size, "--scale", f"{scale}asec", "--weight", option, "--no-psf",
                          "--store-imaging-weights", ranks=ranks)[0]
        after = table(suite, python, mine) if ran else None
        if not after:
            continue
        wanted = definition(before, what, 0.7, size, scale)
        for corr in (0, 3):
            suite.below(f"{what}, correlation {corr}: difference from the definition",
                        difference(after[COLUMN][..., corr], wanted), ROUNDING)
        suite.true(f"{what}: some samples are beyond the grid", (wanted == 0).any())
        suite.true(f"{what}: cross-hands have none", (after[COLUMN][..., 1:3] == 0).all())
        suite.equal(f"{what}: columns that have changed",
                    [k for k in before if not np.array_equal(before[k], after[k], equal_nan=True)], [])


def check_peer(suite, python, obs):
    """The same command lines through WSClean, which writes the column of data that it does not reorder. Where a cell
    has flagged samples only, its factors are 0 with natural weights. It counts the weights of Stokes I four times, so
    that uniform ones are a quarter."""
    for name, options in LINES:
        theirs, mine = copy(suite, obs, "theirs"), copy(suite, obs, "mine")
        words = f"-quiet -no-small-inversion -no-reorder {FIELD} {options} -store-imaging-weights -name".split()
        peer = run(["nice", "wsclean", *words, suite.path("theirs"), theirs], 120)
        if not suite.ran(f"wsclean {name}", peer):
            continue
        wanted = table(suite, python, theirs)
        for ranks in (1, 2, 3) if mpiexec() and name in MANY_RANKS else (1,):
            launcher = [mpiexec(), "-n", str(ranks)] if ranks > 1 else []
            ran = run([*launcher, OURS, *words, suite.path("mine"), mine], 120)
            found = table(suite, python, mine) if suite.ran(f"tessera-wsclean {name}, {ranks} ranks", ran) else None
            if found:
                factors, reference = found[COLUMN], wanted[COLUMN]
                if "natural" in name:
                    suite.true(f"{name}: others are flagged", wanted["FLAG"][(factors > 0) & (reference == 0)].all())
                    factors = np.where(reference > 0, factors, 0)
                if "uniform" in options and "-pol" not in options:
                    factors = factors / 4
                suite.true(f"{name}: there are weights", (reference > 0).any())
                suite.below(f"{name}, {ranks} ranks: difference from WSClean's", difference(factors, reference), ROUNDING)


# Weights of 0, NaN, and flags of one correlation.
EMPTY = """
import sys
import numpy as np
import casacore.tables as ct
rng = np.random.default_rng(4)
main = ct.table(sys.argv[1], readonly=False, ack=False)
weight, flag, data = (main.getcol(name) for name in ("WEIGHT_SPECTRUM", "FLAG", "DATA"))
weight[rng.uniform(size=weight.shape[:2]) < .1] = 0
weight[..., 3][rng.uniform(size=weight.shape[:2]) < .1] = 0
flag[..., 1][rng.uniform(size=flag.shape[:2]) < .1] = True
data[rng.uniform(size=data.shape[:2]) < .1] = np.nan
for name, column in (("WEIGHT_SPECTRUM", weight), ("FLAG", flag), ("DATA", data)):
    main.putcol(name, column)
"""


def check_counts(suite, python, obs):
    """WSClean's keywords of the visibilities that are left of flags, weights of 0 and NaN. Its WSCENVIS is that of the
    first polarisation in all."""
    spoiled = copy(suite, obs, "counted")
    if not suite.ran("weights of 0", run([python, "-c", EMPTY, spoiled], 60)):
        return
    for name, options, parts in (("counts", "-weight natural", ("",)), ("counts-pol", "-weight briggs 0 -pol XX,YY",
                                                                         ("-XX", "-YY"))):
        words = f"-quiet -no-small-inversion -use-wgridder -reorder -make-psf {FIELD} {options} -name".split()
        if not all(suite.ran(f"{os.path.basename(program)} {name}", run([program, *words, suite.path(to), spoiled], 120))
                   for program, to in (("wsclean", "theirs"), (OURS, "mine"))):
            continue
        for part in parts:
            theirs, mine = (read_image(suite.path(f"{to}{part}-dirty.fits"))[1] for to in ("theirs", "mine"))
            suite.true(f"{name}{part}: some are left out", 0 < mine["WSCNVIS"] < 7000)
            for key in ("WSCNVIS", "WSCVWSUM", "WSCIMGWG") + (("WSCENVIS",) if part != "-YY" else ()):
                suite.below(f"{name}{part}: {key}", abs(mine[key] / theirs[key] - 1), ROUNDING)


def check_kept(suite, python, obs):
    """A second run leaves what it does not select; each image's samples have its own factors."""
    parts = copy(suite, obs, "parts")
    common = ("--size", SIZE, "--scale", f"{SCALE}asec", "--weight", "natural", "--no-psf", "--store-imaging-weights")
    ran = suite.image("parts", parts, *common, "--stokes", "IQ", "--intervals", "0:3")[0]
    first = table(suite, python, parts) if ran else None
    if not first or not suite.image("parts", parts, *common, "--intervals", "3:8", "--channels", "0:2")[0]:
        return
    second = table(suite, python, parts)
    early = first[COLUMN].any((1, 2))
    suite.true("the first run has weighed a part", early.any() and not early.all())
    suite.true("the second has kept it", np.array_equal(first[COLUMN][early], second[COLUMN][early]))
    late = second[COLUMN][~early]
    suite.true("the second has weighed two channels", late[:, :2].any() and not late[:, 2:].any())
    each = copy(suite, obs, "each")
    if suite.image("each", each, *common[:4], "--weight", "uniform", "--no-psf", "--store-imaging-weights",
                   "--channels-out", 4, "--intervals-out", 2, "--reproducible")[0]:
        sums = cell_sums(table(suite, python, each))
        suite.true(f"{len(sums)} cells", len(sums) > 1000)
        suite.below("uniform: sum of an image's weights in a cell, difference from 1", np.abs(sums - 1).max(), ROUNDING)


def cell_sums(columns):
    """Sums of imaging weights over the good samples of each image that have the same factor, which with uneven
    weights are those of a cell."""
    half = len(columns["UVW"]) // 2
    sums = []
    for part in (slice(0, half), slice(half, None)):
        for channel in range(4):
            factor, weight, flag = (columns[k][part, channel, 0].astype(t) for k, t in (
                (COLUMN, "f8"), ("WEIGHT_SPECTRUM", "f8"), ("FLAG", bool)))
            good = (factor > 0) & ~flag
            same, at = np.unique(factor[good], return_inverse=True)
            sums += list(np.bincount(at, weight[good] * factor[good], len(same)))
    return np.array(sums)


def check_bad(suite):
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    obs = simulate(suite.path("obs.uvfits"), sky, duration="10min")
    for ranks in (1, 2) if mpiexec() else (1,):
        made = tessera("image", obs, "--size", 64, "--scale", "6asec", "--store-imaging-weights", "-o",
                       suite.path("bad"), ranks=ranks)
        suite.equal(f"UVFITS, {ranks} ranks: status", made.status, 2)
        suite.true(f"UVFITS, {ranks} ranks: one line: {made.errors()}",
                   len(made.errors()) == 1 and "writes a column of MeasurementSets" in made.errors()[0])


def main():
    suite = Suite("imaging_weights")
    check_bad(suite)
    python = casacore_python()
    if have_ms() and python:
        obs = make_set(suite, python)
        if obs:
            check_definition(suite, python, obs)
            check_kept(suite, python, obs)
            if shutil.which("wsclean"):
                check_peer(suite, python, obs)
                check_counts(suite, python, obs)
            else:
                suite.skipped("WSClean is not installed")
    suite.finish()


if __name__ == "__main__":
    main()
