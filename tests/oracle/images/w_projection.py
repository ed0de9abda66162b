#!/usr/bin/env python3
"""Images and predictions of --w projection: against direct sums, against what the program
says of its error, against w-stacking, as adjoints, and on any number of ranks.

A visibility is gridded at the nearest of Q offsets on each axis: an rms error of
0.74/(Q padding), padding 2 (grid/projection/tess_projection.h), is all that an image differs by, but
for 30 % of that, at most, from planes, and less from tapers and cuts. The visibilities are
noise and their offsets at random, so that errors add up as their squares do; 20000
visibilities and 4096 pixels leave a scatter of a few percent.
"""
import json
import os
import re
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (ASEC, BACKEND, C_M_S, FULL, Suite, forced, l2_error, mpiexec, read_image,
                 simulate, tessera, write_sky)
import uvfits

SIZE = 64
FREQ = 1.0e9 + 5e7 * np.arange(2)
# The first is what the others are compared with.
STRATEGIES = (("serial", "atomic", "tiled", "factored") if BACKEND == "cpu" else
              ("tiled", "factored"))


class Observation:
    """Noise on random tracks; a field of 3 degrees, w up to twice u: a turn and a half
    at the corners."""

    def __init__(self, suite, name, rows, w_ratio=2.0, field_deg=3.0):
        self.scale = np.deg2rad(field_deg) / SIZE
        rng = np.random.default_rng(11)
        extent = 0.47 / self.scale * 299792458.0 / FREQ[-1]
        uvw = uvfits.random_tracks(rows, extent, w_ratio, seed=5)
        shape = (rows, len(FREQ), 2)
        vis = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype("c8")
        weight = rng.uniform(0.5, 1.5, shape).astype("f4")
        weight[rng.uniform(size=shape) < 0.05] = -1.0
        self.path = suite.path(name + ".uvfits")
        self.uvw = uvfits.write(self.path, uvw, FREQ, vis, weight)
        self.vis, self.weight = uvfits.stokes_i(vis.astype("c16"), weight.astype("f8"))
        self.image = self.direct(self.vis)
        self.psf = self.direct(np.ones_like(self.vis))

    def direct(self, vis):
        return uvfits.direct_dirty(self.uvw, FREQ, vis, self.weight, SIZE, SIZE, self.scale)

    def options(self):
        return [self.path, "--size", str(SIZE), "--scale",
                f"{float(self.scale / ASEC)!r}asec", "--weight", "natural"]


def offset_error(oversampling):
    return 0.74 / (2 * oversampling)


def image(suite, obs, label, *options, ranks=1):
    profile = suite.path("profile.json")
    how = [] if "--w" in options else ["--w", "projection"]
    ran, prefix = suite.image(label, *obs.options(), "--profile", profile, *how, *options,
                              ranks=ranks)
    if not ran:
        return None
    found = {kind: read_image(f"{prefix}-{kind}.fits")[0] for kind in ("dirty", "psf")}
    with open(profile, encoding="utf8") as file:
        found["said"] = json.load(file).get("projection_error")
    return found


def check_errors(suite, obs):
    """Of images: as many as the offsets alone make, and as the program measures."""
    for oversampling in (4, 8, 32):
        label = f"oversampling-{oversampling}"
        found = image(suite, obs, label, "--oversampling", oversampling)
        if not found:
            continue
        expected = offset_error(oversampling)
        error = l2_error(found["dirty"], obs.image)
        suite.below(f"{label}: L2 error", error, 1.15 * expected)
        suite.below(f"{label}: less than expected", 0.8 * expected, error)
        suite.below(f"{label}: PSF L2 error", l2_error(found["psf"], obs.psf), expected)
        suite.below(f"{label}: the measured error is that", abs(found["said"] / error - 1),
                    0.15)
    found = image(suite, obs, "accuracy-1e-2", "--accuracy", "1e-2")
    if found:
        suite.below("accuracy 1e-2 is kept", l2_error(found["dirty"], obs.image), 1e-2)
    found = image(suite, obs, "linear", "--w-spacing", "linear")
    if found:
        suite.below("planes even in w", l2_error(found["dirty"], obs.image),
                    1.15 * offset_error(8))


def check_strategies(suite, obs):
    """All give one image: to rounding, or to what factors leave out, a tenth of the error;
    kernels of 40 cells and more are factored."""
    images = {s: image(suite, obs, s, "--strategy", s, "--threads", 2) for s in STRATEGIES}
    if not all(images.values()):
        return
    for strategy in STRATEGIES[1:]:
        limit = 0.1 * offset_error(8) if strategy == "factored" else 1e-6
        suite.below(f"{strategy} against {STRATEGIES[0]}",
                    l2_error(images[strategy]["dirty"], images[STRATEGIES[0]]["dirty"]),
                    limit)


def check_ranks(suite, obs):
    """Ranks share bricks of the grid: sums are rounded in another order, which a large gain
    of the grid correction raises (as in any_ranks.py)."""
    for strategy in ("tiled", "factored") if FULL else ("factored",):
        one = image(suite, obs, f"one-{strategy}", "--strategy", strategy)
        for ranks in (2, 3, 4) if mpiexec() else ():
            found = image(suite, obs, f"{ranks}-{strategy}", "--strategy", strategy,
                          ranks=ranks)
            for kind in ("dirty", "psf") if one and found else ():
                suite.below(f"{strategy}, {ranks} ranks, {kind}",
                            l2_error(found[kind], one[kind]), 1e-6)
    one = image(suite, obs, "one-double", "--accuracy", "1e-8")
    if one and mpiexec():
        found = image(suite, obs, "3-double", "--accuracy", "1e-8", *forced(passes=2, fft_ranks=3), ranks=3)
        if found:
            suite.below("double, 3 ranks, 2 passes",
                        l2_error(found["dirty"], one["dirty"]), 1e-12)


def check_stacking(suite, obs):
    """Of the same data; and without w both differ by far more."""
    projected = image(suite, obs, "projected", "--oversampling", 16)
    stacked = image(suite, obs, "stacked", "--w", "stacking")
    flat = image(suite, obs, "flat", "--w", "none")
    if projected and stacked and flat:
        suite.below("projection against stacking",
                    l2_error(projected["dirty"], stacked["dirty"]), 1.15 * offset_error(16))
        suite.below("w matters here", 0.5, l2_error(flat["dirty"], stacked["dirty"]))
        suite.true("stacking measures no error", stacked["said"] is None)


def predict(suite, obs, label, model, *options, ranks=1):
    out = suite.path("predicted.uvfits")
    result = tessera("predict", obs.path, "--model", model, "--w", "projection",
                     "--overwrite", "-o", out, *options, ranks=ranks)
    return uvfits.read(out)[2] if suite.ran(label, result) else None


def check_predictions(suite, obs):
    """Against direct sums; and Re<V, Px> = <P'V, x>, to the single precision of files."""
    rng = np.random.default_rng(5)
    model = rng.normal(size=(SIZE, SIZE))
    path = uvfits.write_model(suite.path("model.fits"), model, obs.scale)
    exact = uvfits.direct_predict(obs.uvw, FREQ, model, obs.scale)
    one = predict(suite, obs, "predict", path, "--oversampling", 32)
    if one is not None:
        suite.below("prediction: L2 error", l2_error(one[..., 0], exact),
                    1.15 * offset_error(32))
    for ranks in (2, 4) if mpiexec() else ():
        found = predict(suite, obs, f"predict-{ranks}", path, "--oversampling", 32,
                        ranks=ranks)
        if found is not None and one is not None:
            suite.below(f"prediction on {ranks} ranks", l2_error(found, one), 1e-6)
    same = ["--accuracy", "1e-8", "--oversampling", 8, "--strategy", "tiled"]
    predicted = predict(suite, obs, "predict-double", path, *same)
    imaged = image(suite, obs, "image-double", *same)
    if predicted is not None and imaged:
        left = np.sum(obs.weight * (np.conj(obs.vis) * predicted[..., 0]).real)
        right = np.sum(obs.weight) * np.sum(imaged["dirty"] * model)
        scale = np.sqrt(np.sum(obs.weight * np.abs(obs.vis) ** 2) *
                        np.sum(obs.weight * np.abs(predicted[..., 0]) ** 2))
        suite.below("image and prediction are adjoint", abs(left - right) / scale, 1e-7)


def check_cache(suite, obs):
    """A table is computed by one run, and by one of the ranks, and read by others."""
    options = ["--oversampling", 8, "--accuracy", "1e-2"]
    os.environ["TESS_CACHE_DIR"] = suite.path("another-cache")
    made = image(suite, obs, "made", *options, ranks=2 if mpiexec() else 1)
    files = os.listdir(os.environ["TESS_CACHE_DIR"])
    tables = [name for name in files if name.startswith("gcf-")]
    suite.equal("tables in the cache", len(tables), 1)
    read = image(suite, obs, "read", *options)
    anew = image(suite, obs, "anew", "--no-kernel-cache", *options)
    if made and read and anew:
        suite.equal("from the cache", l2_error(read["dirty"], anew["dirty"]), 0.0)
    profile = json.load(open(suite.path("profile.json"), encoding="utf8"))
    suite.true("--no-kernel-cache computes", "(cached)" not in profile["plan"])


def check_tuning(suite, obs):
    """What is chosen is what bench gcf --tune kept, unless a run is to be the same on any
    machine."""
    folder = os.environ["TESS_CACHE_DIR"] = suite.path("tuning-cache")
    suite.ran("tune", tessera("bench", "gcf", "--tune", "--vis", "1e3", "--size", "512",
                              "--repeat", "1", "--planes", "2", "--quiet"))
    (name,) = os.listdir(folder)
    with open(os.path.join(folder, name), encoding="utf8") as file:
        lines = file.read()
    with open(os.path.join(folder, name), "w", encoding="utf8") as file:
        file.write(lines.replace("factored", "tiled"))
    before = os.environ.pop("TESS_CALIBRATION", None)
    for options, strategy in ([], "tiled"), (["--reproducible"], "factored"):
        image(suite, obs, "tuned", *options)
        with open(suite.path("profile.json"), encoding="utf8") as file:
            plan = json.load(file)["plan"]
        suite.true(f"{options}: strategy {strategy}", f"strategy {strategy}" in plan)
        suite.true(f"{options}: where kernels end",
                   re.search(r"cells, cut at \d\.\de-\d", plan))
    if before is not None:
        os.environ["TESS_CALIBRATION"] = before


def check_plan(suite, obs):
    """What plan estimates counts the tables."""
    peak = []
    for oversampling in (8, 32):
        result = tessera("plan", *obs.options(), "--w", "projection", "--oversampling",
                         oversampling)
        if suite.ran(f"plan {oversampling}", result):
            peak.append(float(re.search(r"memory a rank about (\d+) MiB", result.out)[1]))
            tables = float(re.search(r"([\d.]+) MiB of tables", result.out)[1])
    suite.below("the plan's memory holds the tables", 0.9 * tables, peak[1] - peak[0])


def check_user_kernels(suite, obs):
    """Kernels written and read again are the same ones, but for the precision of the file
    and for the taper, which is taken from them, cut as they are."""
    cube = suite.path("kernels[1].fits")  # a name, not CFITSIO's first extension
    own = image(suite, obs, "own", "--oversampling", 8, "--write-gcf", cube)
    read = image(suite, obs, "read-kernels", "--gcf", cube, ranks=2 if mpiexec() else 1)
    if own and read:
        suite.below("kernels of a file: L2 error", l2_error(read["dirty"], obs.image),
                    1.15 * offset_error(8))
        suite.below("kernels of a file, their PSF", l2_error(read["psf"], own["psf"]),
                    0.1 * offset_error(8))
    model = suite.path("model.fits")
    predicted = predict(suite, obs, "predict-kernels", model, "--gcf", cube)
    if predicted is not None:
        exact = uvfits.direct_predict(obs.uvw, FREQ, read_image(model)[0], obs.scale)
        suite.below("prediction with them: L2 error", l2_error(predicted[..., 0], exact),
                    1.15 * offset_error(8))
    box_kernels(suite, obs)
    uneven_kernels(suite, obs, cube, model)
    check_bad_kernels(suite, obs, cube)


def box_kernels(suite, obs):
    """Any even function will do: a triangle, one plane, w = 0. A source at the phase centre
    is then imaged exactly there."""
    from astropy.io import fits
    support, oversampling = 8, 4
    line = np.maximum(1 - np.abs(np.arange(-16, 17)) / 8.0, 0)
    cube = np.zeros((2, 1, 33, 33), "f4")
    cube[0, 0] = np.outer(line, line)
    write_cube(fits, suite.path("triangle.fits"), cube, support, oversampling, 1e9,
               128 * obs.scale)
    found = image(suite, obs, "triangle", "--gcf", suite.path("triangle.fits"))
    if found:
        suite.below("triangle: PSF at its centre",
                    abs(found["psf"][SIZE // 2, SIZE // 2] - 1), 1e-3)


def leaning(data, oversampling, u, v):
    """Kernels, two cells wider, of a response 1 + U sin(pi l') + V sin(pi m'), l' and m'
    being parts of the grid's field: differences of kernels half a cell aside."""
    data = np.pad(data, ((0, 0), (0, 0), (oversampling,) * 2, (oversampling,) * 2))
    kernel, half = data[0] + 1j * data[1], oversampling // 2
    # A = sum G(x) exp(-2 pi i x p): G(x + s) is exp(2 pi i s p) A
    out = kernel.copy()
    for share, axis in ((u, 1), (v, 2)):
        out += share * (np.roll(kernel, -half, axis) - np.roll(kernel, half, axis)) / 2j
    return np.stack([out.real, out.imag])


def uneven_kernels(suite, obs, cube, model):
    """An antenna's response that leans to one side: what it takes from the image, which
    that of w = 0 tells, is made up for, so that images and predictions are exact. The
    response is one of l or of m, as a product of both would be."""
    from astropy.io import fits
    with fits.open(cube) as file:
        data, keys = file[0].data.astype(float), file[0].header
        keys = {k: keys[k] for k in keys if k.startswith("GCF")}
    keys["GCFSUPP"] += 2
    path = suite.path("leaning.fits")
    exact = uvfits.direct_predict(obs.uvw, FREQ, read_image(model)[0], obs.scale)
    for name, u, v in (("u", 0.4, 0), ("v", 0, -0.4)):
        write_cube(fits, path, leaning(data, keys["GCFOVER"], u, v), None, None, None, None,
                   **keys)
        found = image(suite, obs, f"leaning-{name}", "--gcf", path)
        if found:
            suite.below(f"kernels that lean along {name}: L2 error",
                        l2_error(found["dirty"], obs.image), 1.2 * offset_error(8))
        predicted = predict(suite, obs, f"predict-leaning-{name}", model, "--gcf", path)
        if predicted is not None:
            suite.below(f"prediction, leaning along {name}: L2 error",
                        l2_error(predicted[..., 0], exact), 1.2 * offset_error(8))
        other_planes(suite, obs, path, (u, v), data, keys)


def other_planes(suite, obs, path, lean, data, keys):
    """Where w = 0 has no such response, that of the other planes is seen, on its side."""
    from astropy.io import fits
    changed = leaning(data, keys["GCFOVER"], *lean)
    changed[:, 0] = leaning(data, keys["GCFOVER"], 0, 0)[:, 0]
    write_cube(fits, path, changed, None, None, None, None, **keys)
    found = image(suite, obs, f"planes that lean {lean}", "--gcf", path)
    w = np.abs(obs.uvw[:, 2:] * FREQ / 299792458.0)
    first = np.rint((data.shape[1] - 1) * np.sqrt(w / keys["GCFWMAX"])) == 0
    l, m = uvfits.pixel_lm(SIZE, SIZE, obs.scale)
    response = (1 + lean[0] * np.sin(np.pi * l / keys["GCFFLDL"]) +
                lean[1] * np.sin(np.pi * m / keys["GCFFLDM"]))
    expected = obs.direct(obs.vis * first) + response * obs.direct(obs.vis * ~first)
    if found:
        suite.below(f"planes but the first lean {lean}: L2 error",
                    l2_error(found["dirty"], expected), 1.2 * offset_error(8))


def write_cube(fits, path, cube, support, oversampling, w_max, field, **more):
    header = fits.Header()
    keys = dict(GCFSUPP=support, GCFOVER=oversampling, GCFWSPAC="SQRT", GCFWMAX=w_max,
                GCFFLDL=field, GCFFLDM=field)
    keys.update(more)
    for key, value in keys.items():
        if value is not None:
            header[key] = value
    fits.writeto(path, cube, header, overwrite=True)


def check_bad_kernels(suite, obs, cube):
    """Each is named, with status 3."""
    from astropy.io import fits
    with fits.open(cube) as file:
        data, keys = file[0].data.copy(), file[0].header
        keys = {k: keys[k] for k in keys if k.startswith("GCF")}
    spoiled = data.copy()
    spoiled[1, 2, 3, 4] = np.nan
    cases = [("GCFSUPP", data, {"GCFSUPP": None}), ("even", data, {"GCFSUPP": 9}),
             ("GCFOVER", data, {"GCFOVER": 65}), ("whole", data, {"GCFOVER": 8.5}),
             ("GCFWSPAC", data, {"GCFWSPAC": "CUBIC"}), ("GCFWMAX", data, {"GCFWMAX": -1.0}),
             ("wavelengths", data, {"GCFWMAX": 10.0}), ("pixels", data, {"GCFOVER": 4}),
             ("field", data, {"GCFFLDL": 1.01 * keys["GCFFLDL"]}),
             ("4 axes", data[0], {}), ("finite", spoiled, {})]
    bad = suite.path("bad.fits")
    for words, values, changed in cases:
        more = {**keys, **changed}
        write_cube(fits, bad, values, None, None, None, None, **more)
        result = tessera("image", *obs.options(), "-o", suite.path("none"), "--overwrite",
                         "--w", "projection", "--gcf", bad)
        said = " ".join(result.errors())
        suite.true(f"{words}: status {result.status}, {said}",
                   result.status == 3 and words in said)
    result = tessera("image", *obs.options(), "-o", suite.path("none"), "--w",
                     "projection", "--gcf", suite.path("missing.fits"))
    suite.equal("a missing file: status", result.status, 3)


def check_refusals(suite, obs):
    for words, options in [
            ("--w projection only", ["--strategy", "tiled"]),
            ("--w projection only", ["--w", "stacking", "--oversampling", "8"]),
            ("not a strategy", ["--w", "projection", "--strategy", "fast"]),
            ("--backend cuda only", ["--w", "projection", "--backend", "cpu",
                                     "--strategy", "gather"]),
            ("not a spacing", ["--w", "projection", "--w-spacing", "even"]),
            ("65", ["--w", "projection", "--oversampling", "65"])]:
        result = tessera("image", *obs.options(), "-o", suite.path("none"), *options)
        suite.equal(f"{' '.join(options)}: status", result.status, 2)
        suite.true(f"{' '.join(options)}: {result.errors()}",
                   words in " ".join(result.errors()))
    wide = ["--size", "64", "--scale", "1.6deg"]
    result = tessera("image", obs.path, *wide, "-o", suite.path("none"), "--w",
                     "projection")
    suite.equal("too wide a field: status", result.status, 2)


def refused(suite, label, words, options, command="image", ranks=1):
    """Status 2, one line of error that has these words, and no image."""
    out = suite.path("refused")
    result = tessera(command, *options, *(["-o", out] if command == "image" else []),
                     ranks=ranks)
    suite.equal(f"{label}: status", result.status, 2)
    said = result.errors()
    suite.true(f"{label}: {said}",
               len(said) == 1 and all(word in said[0] for word in words))
    suite.true(f"{label}: no image", not [f for f in os.listdir(suite.work)
                                          if f.startswith("refused-")])


def tables(suite):
    return sorted(f for f in os.listdir(suite.path("cache")) if f.endswith(".table"))


def check_large_errors(suite):
    """An image that would be off by more than .3 of itself is refused: before any tables are
    made, where that is expected, and before gridding, where it is measured."""
    low = simulate(suite.path("low.uvfits"),
                   write_sky(suite.path("low.csv"), [dict(ra="60deg", dec="-44deg", flux_jy=1)]),
                   dec="-44deg", integration="300s", freq="2.3GHz", channels=2,
                   start="2026-01-01")
    wide = ["--size", "256", "--scale", f"{10 * 3600 / 256}asec", "--w", "projection"]
    before = tables(suite)
    for command, ranks in (("plan", 1), ("image", 1), ("image", 2)):
        if ranks == 1 or mpiexec():
            refused(suite, f"10 degrees, {command} by {ranks}",
                    ["expected", "smaller --oversampling", "--w stacking"],
                    [low, *wide, "--oversampling", "64"], command, ranks)
    refused(suite, "one offset", ["expected", "more --oversampling"],
            [low, "--size", "64", "--scale", "60asec", "--w", "projection",
             "--oversampling", "1"])
    suite.equal("no tables were made", tables(suite), before)
    check_measured_refusal(suite)


def check_measured_refusal(suite):
    """Eight planes, as little memory allows no more, and w halfway between the last two: up
    to sqrt(2) * sqrt(3) times the error expected of w spread evenly."""
    scale, w_max, planes = np.deg2rad(3.0) / SIZE, 4000.0, 8
    uvw = uvfits.random_tracks(200, 0.47 / scale, 0.0)
    uvw[:, 2] = w_max * ((planes - 1.5) / (planes - 1)) ** 2
    uvw[0, 2] = w_max
    shape = (len(uvw), 1, 2)
    path = suite.path("halfway.uvfits")
    uvfits.write(path, uvw * C_M_S / FREQ[0], FREQ[:1], np.ones(shape, "c8"),
                 np.ones(shape, "f4"))
    options = [path, "--size", SIZE, "--scale", f"{float(scale / ASEC)!r}asec", "--w",
               "projection", "--oversampling", "16", "--memory", "8MiB"]
    planned = tessera("plan", *options)
    if suite.ran("plan of w halfway", planned):
        suite.true("of eight planes", f"{planes} kernels" in planned.out)
        expected = float(re.search(r"error estimate ([0-9.e+-]+)", planned.out)[1])
        suite.below("its expected error", expected, 0.3)
    for ranks in (1, 2) if mpiexec() else (1,):
        refused(suite, f"w halfway, {ranks} ranks", ["measured", "--w stacking"], options,
                ranks=ranks)


def main():
    suite = Suite("w_projection")
    os.environ["TESS_CACHE_DIR"] = suite.path("cache")
    obs = Observation(suite, "obs", rows=20000 if FULL else 5000)
    check_errors(suite, obs)
    check_strategies(suite, Observation(suite, "steep", rows=1000, w_ratio=6.0))
    check_ranks(suite, obs)
    check_stacking(suite, obs)
    check_predictions(suite, obs)
    check_user_kernels(suite, obs)
    if BACKEND == "cpu":  # what follows is the host's
        check_cache(suite, obs)
        check_tuning(suite, obs)
        check_plan(suite, obs)
        check_refusals(suite, obs)
        check_large_errors(suite)
    suite.finish()


if __name__ == "__main__":
    main()
