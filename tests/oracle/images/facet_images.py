#!/usr/bin/env python3
"""Images by facets: against direct sums with gains, on several ranks, without gains against
an image without facets, WSClean's dirty image of a set with solutions, cleaned fluxes, facets that are
made around sources, columns of facets, and what is refused."""
import csv
import json
import os
import re
import shutil
import sys
import tarfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import facet_sums  # noqa: E402
import uvfits  # noqa: E402
from mosaic_sums import j1  # noqa: E402
from facet_scene import (ANTENNAS, DEC, FREQ, NX, NY, RA, ROWS, SCALE, START_S, STEP, direction,  # noqa: E402
                         write_gains, write_regions)
from e2e import (FULL, Suite, casacore_python, data_folder, fits_module, have_h5py, have_ms, l2_error, lacks, mpiexec,  # noqa: E402
                 forced, read_image, run, simulate, tessera, write_sky)

# the correlations of UVFITS: XX, YY, XY, YX, by their feeds
FEEDS = [(0, 0), (1, 1), (0, 1), (1, 0)]
STOKES = np.array([[1, 1, 0, 0], [1, -1, 0, 0], [0, 0, 1, 1], [0, 0, -1j, 1j]]) / 2
CORRELATIONS = 2 * STOKES.conj().T
# Of what is left of the set with solutions, Jy/beam: .234e-3 with one PSF and .253e-3 with those of facets, and .335e-3
# and .295e-3 where minor loops take it that facets see all of one another's components.
RMS = 2.8e-4


def gains_of_rows(gains, facet):
    """Jones matrices [rows, channels, 2, 2] of both antennas, nearest in time and frequency."""
    first, second = np.triu_indices(ANTENNAS, 1)
    pair, step = np.arange(ROWS) % len(first), np.arange(ROWS) // len(first)
    time = np.abs(10.0 * step[:, None] - [15.0, 55.0, 95.0]).argmin(1)
    chan = np.abs(FREQ[:, None] - FREQ[::2]).argmin(1)
    out = []
    for antenna in (first[pair], second[pair]):
        values = gains[time[:, None], chan[None], antenna[:, None], facet]
        full = np.zeros(values.shape[:2] + (2, 2), complex)
        if values.shape[-1] == 2:
            full[..., 0, 0], full[..., 1, 1] = values[..., 0], values[..., 1]
        else:
            full[:] = values.reshape(full.shape)
        out.append(full)
    return out


def mixing_of(gains, facet):
    """What of each correlation of a source is in each of the samples: [..., to, from]."""
    g1, g2 = gains_of_rows(gains, facet)
    return np.stack([np.stack([g1[..., a, c] * g2[..., b, d].conj() for c, d in FEEDS], -1) for a, b in FEEDS], -2)


def truth_counts(gains, facet):
    """Which samples [rows, channels] have a solution."""
    return np.abs(mixing_of(gains, facet)).sum((-1, -2)) > 0


def truth_of(uvw, vis, weight, gains, facet, stokes, other=1):
    """The image of a facet, and the root of its response, from direct sums. `other` gains of pairs of antennas
    [..., 1, 1] are factors."""
    mixing = mixing_of(gains, facet) * other
    adjoint = np.swapaxes(mixing.conj(), -1, -2)
    taken = np.einsum("q,rcqk,rck->rc", STOKES[stokes], adjoint, vis)
    power = np.einsum("q,rcqk,rckj,j->rc", STOKES[stokes], adjoint, mixing, CORRELATIONS[:, stokes]).real
    counts = np.abs(mixing).sum((-1, -2)) > 0
    used = np.where(counts, weight, 0)
    root = np.sqrt((power * used).sum() / used.sum())
    return uvfits.direct_dirty(uvw, FREQ, taken, used, NX, NY, STEP) / root, root


def masks():
    """Pixels well inside either facet, and those of none."""
    x, y = np.meshgrid(np.arange(NX), np.arange(NY))
    across = x - (18.3 + (y + 9) * (28.4 - 18.3) / 44.5)
    return (across < -1) & (y < 35), (across > 1) & (y < 35), y > 36


def pixels(path):
    return read_image(path)[0].squeeze().astype(float)


def check_direct_sums(suite, obs, regions):
    """Diagonal gains to I, and full ones to I, Q, U, V: each facet against its sums."""
    random = np.random.default_rng(2)
    uvw = uvfits.random_tracks(ROWS, 900.0, seed=5)
    vis = random.normal(size=(ROWS, 4, 4)) + 1j * random.normal(size=(ROWS, 4, 4))
    weight = np.repeat(random.uniform(.5, 2, (ROWS, 4, 1)), 4, -1).astype("f4")
    uvfits.write(obs, uvw, FREQ, vis, weight, antennas=ANTENNAS)
    uvw, _, vis, weight, _ = uvfits.read(obs)
    where = ("--size", f"{NX},{NY}", "--scale", f"{SCALE}asec", "--weight", "natural", "--accuracy", 1e-6,
             "--facets", regions, "--reproducible", "--quiet")
    for pols, names in ((2, "I"), (4, "IQUV")):
        solutions = suite.path(f"gains{pols}.h5")
        gains = write_gains(solutions, pols, bad=pols == 2)
        made = {}
        for ranks in (1, 3) if mpiexec() and pols == 2 else (1,):
            out = suite.path(f"gains{pols}-{ranks}")
            result = tessera("image", obs, "-o", out, *where, "--stokes", names, "--facet-feather", 0,
                             "--facet-solutions", solutions, "--profile", f"{out}.json", ranks=ranks)
            if not suite.ran(f"facets with {pols} gains on {ranks} ranks", result):
                return
            if pols == 2:
                lack = int((~truth_counts(gains, 0) & (weight.min(-1) > 0)).sum())
                suite.true(f"it says what has no solution: {result.err.strip()}", f"facet F0 {lack} (" in result.err and
                           "facet F1" not in result.err)
                with open(f"{out}.json", encoding="utf-8") as file:
                    totals = json.load(file)["totals"]
                suite.true(f"so does the profile: {lack} samples", lack > 0 and totals["without_solution"] == lack)
                result = tessera("image", obs, "-o", f"{out}-fast", *where[:-2], "--quiet", "--stokes", names,
                                 "--facet-solutions", solutions, ranks=ranks)
                suite.true(f"so do groups of rows: {result.err.strip()}", f"facet F0 {lack} (" in result.err)
            made[ranks] = out
        if len(made) > 1:
            same = [pixels(f"{name}-{kind}.fits") for kind in ("dirty", "psf", "pb") for name in made.values()]
            suite.true("the same on three ranks", all(np.array_equal(a, b, equal_nan=True)
                                                      for a, b in zip(same[::2], same[1::2])))
        for stokes, name in enumerate(names):
            stem = made[1] + (f"-{name}" if len(names) > 1 else "")
            image, over, root = (pixels(f"{stem}-{kind}.fits") for kind in ("dirty", "dirty-pb", "pb"))
            for facet, mask in enumerate(masks()[:2]):
                truth, true_root = truth_of(uvw, vis, weight.min(-1), gains, facet, stokes)
                suite.below(f"{name} of facet {facet}: direct sum", l2_error(image[mask], truth[mask]), 1e-6)
                suite.below(f"{name} of facet {facet}: root", np.abs(root[mask] / true_root - 1).max(), 1e-6)
                suite.below(f"{name} of facet {facet}: true flux", np.abs(over * root / image - 1)[mask].max(), 1e-6)
            suite.true(f"{name}: pixels of no facet are not imaged", np.isnan(image[masks()[2]]).all())


def write_squares(path, num, size):
    """num by num facets of an image of `size` degrees."""
    edge = size / 2 * 1.01 * np.linspace(-1, 1, num + 1)
    with open(path, "w", encoding="utf-8") as file:
        for x, y in ((a, b) for a in range(num) for b in range(num)):
            corners = [(edge[x + a], edge[y + b]) for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))]
            file.write("polygon(" + ",".join("%.8f,%.8f" % (RA + a / np.cos(np.deg2rad(DEC)), DEC + b)
                                             for a, b in corners) + ")\n")
    return path


def check_tracks(suite):
    """Nodes of tracks are the same ones on any number of ranks, whose memory is less, also of bricks that two share."""
    size, num = (1600, 5) if FULL else (256, 2)
    sky = write_sky(suite.path("one.csv"), [dict(ra=f"{RA}deg", dec=f"{DEC}deg", flux_jy=1)])
    obs = simulate(suite.path("tracks.uvfits"), sky, ra=f"{RA}deg", dec=f"{DEC}deg", duration="10min",
                   integration="5s", channels=16 if FULL else 4, extra=["--noise", ".1"])
    regions = write_squares(suite.path("squares.reg"), num, size * 4 / 3600)
    made, peak = {}, {}
    for ranks in ((1, 2, 3, 7) if FULL else (1, 2, 3)) if mpiexec() else (1,):
        for tracks in (1, 2)[:2 if ranks == 1 else 1]:
            out = suite.path(f"tracks{tracks}-{ranks}")
            result = tessera("image", obs, "-o", out, "--size", size, "--scale", "4asec", "--no-psf", "--threads", 1,
                             "--reproducible", "--quiet", "--facets", regions, "--profile", f"{out}.json",
                             *forced(tracks=tracks, **({"split": 1} if ranks == 2 else {})), ranks=ranks)
            if not suite.ran(f"{num * num} facets, tracks={tracks}, on {ranks} ranks", result):
                return
            made[tracks, ranks] = pixels(f"{out}-dirty.fits")
            with open(f"{out}.json", encoding="utf-8") as file:
                peak[ranks] = json.load(file)["totals"]["peak_memory_bytes"]
    error = l2_error(made[1, 1], made[2, 1])
    suite.true(f"nodes are not the samples, and have their image: {error:.1e}", 0 < error < 1e-4)
    check_onwards(suite, [obs, "--size", size, "--scale", "4asec", "--no-psf", "--threads", 1, "--quiet", "--facets",
                          regions], made[2, 1])
    for ranks in (2, 3, 7):
        if (1, ranks) in made:
            suite.true(f"nodes on {ranks} ranks: the same image", np.array_equal(made[1, ranks], made[1, 1], equal_nan=True))
        if FULL and ranks in peak:  # the program, its libraries and MPI are more than half of that of one
            suite.below(f"largest memory of {ranks} ranks over that of one", peak[ranks] / peak[1], .9)


def check_onwards(suite, options, wanted):
    """Tracks that go from brick to brick: nodes of a rank lie in its planes of w, also if another rank has no samples;
    and rows of two ranks are put in the order of time, so that they have about as few nodes as those of one."""
    gridded = {}
    for ranks, more in ((1, {}), (2, {}), (4, {"pw": 2}))[:3 if mpiexec() else 1]:
        out = suite.path(f"onwards-{ranks}")
        result = tessera("image", *options, "-o", out, "--profile", f"{out}.json", *forced(tracks=1, **more), ranks=ranks)
        if suite.ran(f"tracks from brick to brick on {ranks} ranks", result):
            error = l2_error(pixels(f"{out}-dirty.fits"), wanted)
            suite.true(f"and the image of samples: {error:.1e}", 0 < error < 1e-4)
            with open(f"{out}.json", encoding="utf-8") as file:
                gridded[ranks] = json.load(file)["totals"]["stages"]["grid"]["visibilities"]
    if 2 in gridded:
        suite.below("nodes of two ranks over those of one", gridded[2] / gridded[1], 1.5)


def write_aterms(suite):
    """A TEC of each antenna that slopes along x, in an image of pixels of half a degree; and its configuration."""
    fits = fits_module()
    image, config = suite.path("tec.fits"), suite.path("aterms.txt")
    values = np.linspace(-.01, .02, ANTENNAS)[:, None, None] * (1 + .3 * np.arange(5)) + np.zeros((5, 1))
    file = fits.PrimaryHDU(values[None, None])
    for k, card in enumerate((("RA---SIN", RA, 3, -.5), ("DEC--SIN", DEC, 3, .5), ("ANTENNA", 0, 1, 1),
                              ("FREQ", FREQ[0], 1, 1e6), ("TIME", START_S, 1, 10)), 1):
        for key, value in zip(("CTYPE", "CRVAL", "CRPIX", "CDELT"), card):
            file.header[f"{key}{k}"] = value
    file.writeto(image, overwrite=True)
    with open(config, "w", encoding="utf-8") as out:
        out.write(f"# corrections\naterms = [tec]\ntec.images = [{image}]\ntec.window = hann\n")
    return config, lambda x: np.linspace(-.01, .02, ANTENNAS) * (1 + .3 * x)


def check_beams(suite, obs, regions):
    """The product of solutions, of a-terms, and of a primary beam in the directions of facets."""
    uvw, _, vis, weight, _ = uvfits.read(obs)
    solutions, out = suite.path("gains2.h5"), suite.path("beams")
    gains, (config, tec) = write_gains(solutions, 2), write_aterms(suite)
    made = tessera("image", obs, "-o", out, "--size", f"{NX},{NY}", "--scale", f"{SCALE}asec", "--weight", "natural",
                   "--accuracy", 1e-6, "--facets", regions, "--quiet", "--facet-feather", 0, "--no-psf",
                   "--facet-solutions", solutions, "--facet-aterms", config, "--facet-beam", "airy:40")
    if not suite.ran("facets with solutions, a-terms and beams", made):
        return
    image, root = pixels(f"{out}-dirty.fits"), pixels(f"{out}-pb.fits")
    first, second = (a[np.arange(ROWS) % 28] for a in np.triu_indices(ANTENNAS, 1))
    for facet, mask in enumerate(masks()[:2]):
        l, m = -(12 + 26 * facet - NX // 2) * STEP, (18 - NY // 2) * STEP
        u = np.pi * 40 * np.hypot(l, m) * FREQ / 299792458
        phase = -8.44797245e9 * tec(2 - np.rad2deg(l) / .5) / FREQ[:, None]
        other = (2 * j1(u) / u) ** 2 * np.exp(1j * (phase[:, first] - phase[:, second])).T
        truth, true_root = truth_of(uvw, vis, weight.min(-1), gains, facet, 0, other[..., None, None])
        suite.below(f"facet {facet}: direct sum with all gains", l2_error(image[mask], truth[mask]), 1e-6)
        suite.below(f"facet {facet}: root with all gains", np.abs(root[mask] / true_root - 1).max(), 1e-6)


def check_prediction(suite, obs, regions):
    """Correlations of a polarised model with full gains, of all facets and of one."""
    random = np.random.default_rng(7)
    uvw, _, vis, _, _ = uvfits.read(obs)
    model, solutions, out = suite.path("model.fits"), suite.path("gains4.h5"), suite.path("predicted.uvfits")
    gains = write_gains(solutions, 4)
    image = np.zeros((4, NY, NX))
    for stokes in range(4):
        image[stokes, random.integers(2, 33, 6), random.integers(2, 46, 6)] = random.normal(size=6)
    image *= masks()[0] | masks()[1]
    uvfits.write_model(model, image, STEP, freq_hz=FREQ[0])
    parts = [np.einsum("rcqk,kj,rcj->rcq", mixing_of(gains, facet), CORRELATIONS,
                       np.stack([uvfits.direct_predict(uvw, FREQ, image[s] * mask, STEP) for s in range(4)], -1))
             for facet, mask in enumerate(masks()[:2])]
    for args, ranks, truth in (((), 3 if mpiexec() else 1, parts[0] + parts[1]),
                               (("--select-facets", "F1"), 1, parts[1])):
        result = tessera("predict", obs, "--model", model, "-o", out, "--facets", regions,
                         "--facet-solutions", solutions, "--accuracy", 1e-6, "--overwrite", "--quiet", *args, ranks=ranks)
        if suite.ran(f"a prediction on {ranks} ranks {args}", result):
            suite.below("direct sum with gains", l2_error(uvfits.read(out)[2], truth), 1e-6)
    check_names(suite, ["predict", obs, "-o", out, "--facets", regions, "--facet-solutions", solutions, "--accuracy", 1e-6,
                        "--overwrite", "--quiet"], image, parts[0] + parts[1])


def check_names(suite, ask, image, truth):
    """Models that a beam has been applied to are multiplied by gains alone, and not by a beam once more."""
    name = suite.path("seen")
    for channel in range(2):
        for end in ("model", "pb"):
            uvfits.write_model(f"{name}-{channel:04d}-{end}.fits", image, STEP, freq_hz=FREQ[2 * channel])
    if suite.ran("gains of models as the data see them", tessera(*ask, "--model", name)):
        suite.below("direct sum of models as the data see them", l2_error(uvfits.read(ask[3])[2], truth), 1e-6)
    result = tessera(*ask, "--model", name, "--facet-beam", "airy:40")
    suite.ran("a beam of facets", result, 3)
    suite.true(f"one line {result.errors()}", len(result.errors()) == 1 and "with --pbcor" in result.errors()[0])


def check_polarised(suite, regions):
    """Full gains of polarised sources: images of I, Q, U and V are cleaned of what gains mix into one another."""
    obs, out, solutions = suite.path("polarised.uvfits"), suite.path("polarised"), suite.path("gains4.h5")
    gains, uvw = write_gains(solutions, 4), uvfits.random_tracks(ROWS, 900.0, seed=5)
    sources, vis = (((12, 12), (3, .5, -.4, .2)), ((38, 22), (2, -.3, .2, .15))), 0
    for facet, ((x, y), flux) in enumerate(sources):
        image = np.zeros((NY, NX))
        image[y, x] = 1
        seen = uvfits.direct_predict(uvfits.stored_uvw(uvw), FREQ, image, STEP)
        vis = vis + np.einsum("rcqk,kj,j,rc->rcq", mixing_of(gains, facet), CORRELATIONS, flux, seen)
    uvfits.write(obs, uvw, FREQ, vis, np.ones(vis.shape, "f4"), antennas=ANTENNAS)
    if not suite.ran("polarised sources", tessera(
            "image", obs, "-o", out, "--size", f"{NX},{NY}", "--scale", f"{SCALE}asec", "--weight", "natural", "--facets",
            regions, "--facet-solutions", solutions, "--stokes", "IQUV", "--niter", 5000, "--mgain", .6, "--threshold", "1mJy",
            "--quiet")):
        return
    for k, stokes in enumerate("IQUV"):
        image = pixels(f"{out}-{stokes}-image-pb.fits")
        for (x, y), flux in sources:  # V of the dirty image is wrong by up to a tenth of I
            suite.below(f"{stokes} of the source at {x}, {y}: error over I", abs(image[y, x] - flux[k]) / flux[0], .01)


def check_changes(suite, obs, regions):
    """A run tells how far gains hold as `tessera facets` does, and a prediction which facets lack solutions."""
    pixels_of = ("--size", f"{NX},{NY}", "--scale", f"{SCALE}asec")
    near, bad = suite.path("near.h5"), suite.path("bad.h5")
    write_gains(bad, 2, bad=True)
    shutil.copy(suite.path("gains2.h5"), near)
    import h5py
    with h5py.File(near, "a") as file:  # gains that differ little
        for table, value in (("amplitude000", 1), ("phase000", 0)):
            values = file[f"sol000/{table}/val"]
            values[...] = value + .02 * (values[:] - value)
    shown = tessera("facets", regions, *pixels_of, "--center", f"{RA}deg,{DEC}deg", "--solutions", near)
    errors = re.findall(r"^  (F\d) +F\d +\S+ +[\d.]+ % +\S+ +([\d.]+) % +(\S+)$", shown.out, re.M)
    result = tessera("image", obs, "-o", suite.path("near"), *pixels_of, "--no-psf", "--facets", regions,
                     "--facet-solutions", near, "--facet-feather", 0)
    told = re.findall(r"corner of facet (F\d) are wrong by ([\d.]+) %, and by 1 % within (\S+) of", result.err)
    suite.equal("how far gains hold", told, [max(errors, key=lambda e: float(e[1]))] if errors else "a table")
    away = change_gains(suite, "away.h5", move)
    for chosen, status in (("F0", 0), ("F1", 3)):
        result = tessera("image", obs, "-o", suite.path(f"only-{chosen}"), *pixels_of, "--no-psf", "--facets", regions,
                         "--facet-solutions", away, "--select-facets", chosen)
        suite.equal(f"{chosen} alone needs its solutions alone: {result.errors()}", result.status, status)
    model = suite.path("lacking.fits")
    uvfits.write_model(model, np.ones((NY, NX)) * 1e-3, STEP, freq_hz=FREQ[0])
    result = tessera("predict", obs, "--model", model, "-o", suite.path("lacking.uvfits"), "--facets", regions,
                     "--facet-solutions", bad, "--quiet")
    suite.true(f"a prediction tells what has no solution: {result.err.strip()}",
               "facet F0 (4.17 % of its solutions)" in result.err and "facet F1" not in result.err)


def check_ones(suite, obs, regions):
    """Facets without gains, and with gains of one, are an image without facets."""
    where = ("--size", f"{NX},{NY}", "--scale", f"{SCALE}asec", "--accuracy", 1e-5, "--quiet")
    ones = suite.path("ones.h5")
    write_gains(ones, 2, one=True)
    runs = {"plain": (), "facets": ("--facets", regions),
            "ones": ("--facets", regions, "--facet-solutions", ones, "--facet-feather", 6)}
    for name, more in runs.items():
        if not suite.ran(name, tessera("image", obs, "-o", suite.path(name), *where, *more)):
            return
    plain = pixels(suite.path("plain-dirty.fits"))
    for name in ("facets", "ones"):
        image = pixels(suite.path(f"{name}-dirty.fits"))
        there = np.isfinite(image)
        suite.equal(f"{name}: rows of the image", int(there.any(1).sum()), 36)
        suite.below(f"{name}: the image without facets, seams included", l2_error(image[there], plain[there]), 2e-5)
    psf = pixels(suite.path("facets-psf.fits"))
    there = psf != 0
    suite.equal("the PSF's peak", np.unravel_index(psf.argmax(), psf.shape), (NY // 2, NX // 2))
    suite.below("the PSF of a facet", l2_error(psf[there], pixels(suite.path("plain-psf.fits"))[there]), 2e-2)


def check_made(suite, obs):
    """Facets around sources of a list are those of `tessera facets`, and are what the run has used."""
    listed = suite.path("bright.txt")
    with open(listed, "w", encoding="utf-8") as file:
        file.write("Format = Name, Type, Ra, Dec, I\n")
        for k, at in enumerate(((10, 9), (30, 30), (11, 10), (41, 8))):
            ra, dec = direction(*at)
            file.write(f"s{k},POINT,{np.deg2rad(ra):.9f}rad,{np.deg2rad(dec):.9f}rad,{4 - k}\n")
    where = ("--size", f"{NX},{NY}", "--scale", f"{SCALE}asec", "--accuracy", 1e-5, "--quiet", "--reproducible")
    made, given, other = (suite.path(name) for name in ("made", "given", "other.reg"))
    if not suite.ran("facets of a list", tessera("image", obs, "-o", made, *where, "--facets", 2, "--facet-sources", listed,
                                                 ranks=2 if mpiexec() else 1)):
        return
    suite.ran("tessera facets", tessera("facets", listed, "--number", 2, "--like", f"{made}-dirty.fits", "-o", other))
    with open(f"{made}-facets.reg", encoding="utf-8") as file, open(other, encoding="utf-8") as same:
        suite.equal("the same regions", file.read(), same.read())
    suite.ran("these facets", tessera("image", obs, "-o", given, *where, "--facets", f"{made}-facets.reg"))
    suite.true("the same image", np.array_equal(*(pixels(f"{name}-dirty.fits") for name in (made, given))))
    os.remove(f"{made}-facets.reg")
    again = tessera("image", obs, "-o", made, *where, "--facets", 2, "--facet-sources", listed)
    suite.true(f"an image that exists: {again.errors()}", again.status == 3 and not os.path.exists(f"{made}-facets.reg"))


def change_gains(suite, name, change):
    """The file of diagonal gains with something changed."""
    import h5py
    shutil.copy(suite.path("gains2.h5"), suite.path(name))
    with h5py.File(suite.path(name), "a") as file:
        change(file["sol000"])
    return suite.path(name)


def check_missing(suite, regions):
    """Stokes parameters that correlations do not make are refused as without facets."""
    obs = suite.path("parallel.uvfits")
    uvfits.write(obs, uvfits.random_tracks(ROWS, 900.0, seed=5), FREQ, np.ones((ROWS, 4, 2), complex),
                 np.ones((ROWS, 4, 2), "f4"), antennas=ANTENNAS)
    result = tessera("image", obs, "-o", suite.path("missing"), "--size", NX, "--scale", f"{SCALE}asec", "--stokes", "IQUV",
                     "--facets", regions, "--facet-solutions", suite.path("gains2.h5"), "--quiet")
    suite.true(f"U and V of XX and YY: {result.errors()}", result.status == 2 and "XY,YX are missing" in result.errors()[0])


def check_sets(suite, obs, regions):
    """Two observations with solutions of their own: the second one, years later and with antennas of other names,
    has twice the flux and gains, so that both together make the image of one. The time between both has more
    integrations than rows could tell apart."""
    days = 20 * 365
    uvw, _, vis, weight, _ = uvfits.read(obs)
    later, solutions, own = suite.path("later.uvfits"), suite.path("gains2.h5"), suite.path("later-gains.h5")
    uvfits.write(later, uvw, FREQ, 2 * vis, weight, antennas=ANTENNAS, cards={"PZERO4": 61041.0 + days + 2400000.5})

    def change(group):
        group["amplitude000/val"][...] *= 2 ** .5
        for table in ("amplitude000", "phase000"):
            group[table]["time"][...] += 86400 * days
            for key in ("val", "weight"):
                group[table][key][...] = group[table][key][:][:, :, ::-1]
            group[table]["ant"][...] = group[table]["ant"][:][::-1]
    shutil.copy(change_gains(suite, "changed.h5", change), own)
    ask = ("--size", f"{NX},{NY}", "--scale", f"{SCALE}asec", "--weight", "natural", "--accuracy", 1e-6, "--facets",
           regions, "--no-psf", "--quiet")
    one, both = suite.path("one-set"), suite.path("both-sets")
    if not suite.ran("one observation", tessera("image", obs, "-o", one, *ask, "--facet-solutions", solutions)):
        return
    made = tessera("image", obs, later, "-o", both, *ask, "--facet-solutions", f"{solutions},{own}",
                   "--solutions-per-observation", ranks=2 if mpiexec() else 1)
    if suite.ran("two observations with solutions of their own", made):
        images = [pixels(f"{name}-dirty-pb.fits") for name in (one, both)]
        there = np.isfinite(images[0])
        suite.below("the image of one", l2_error(images[1][there], images[0][there]), 2e-6)


def check_epochs(suite):
    """Beams that turn, of observations a year apart: the response of both is the mean of those of each, whose parallactic
    angles are others. Updates begin with the first integration of each, as if it were alone."""
    sky = write_sky(suite.path("epochs.csv"), [dict(ra=f"{RA}deg", dec=f"{DEC}deg", flux_jy=1)])
    regions = write_squares(suite.path("epochs.reg"), 2, 1)
    epochs = [simulate(suite.path(f"epoch{k}.uvfits"), sky, layout="meerkat", ra=f"{RA}deg", dec=f"{DEC}deg",
                       duration="16min", integration="2min", freq="0.7GHz", channels=1, start=start, extra=["--antennas", 6])
              for k, start in enumerate(("2026-01-01T18:00:00", "2027-01-01T20:00:00"))]
    power = []
    for k, obs in enumerate((epochs[:1], epochs[1:], epochs)):
        out = suite.path(f"epochs{k}")
        if not suite.ran(f"beams of {len(obs)} observations", tessera(
                "image", *obs, "-o", out, "--size", 320, "--scale", "11asec", "--weight", "natural", "--facets", regions,
                "--facet-beam", "auto", "--facet-beam-update", "2min", "--facet-feather", 0, "--no-psf", "--quiet")):
            return
        power.append(pixels(f"{out}-pb.fits") ** 2)
    suite.true("parallactic angles differ", np.abs(power[0] - power[1]).max() > 1e-3)
    # sums of gains in single precision
    suite.below("response of both", np.abs(2 * power[2] / (power[0] + power[1]) - 1).max(), 1e-5)


def shift_axis(key, by):
    def change(group):
        for table in ("amplitude000", "phase000"):
            group[table][key][...] += by
    return change


def blank(group):
    group["phase000/val"][...] = np.nan


def move(group):
    source = group["source"][:]
    source["dir"][1] += (0, .02)
    group["source"][:] = source


def check_bad_solutions(suite, obs, regions):
    """Files of solutions that are no use: one line names the file and what is wrong in it, and the status is 3."""
    ask = ("image", obs, "--size", NX, "--scale", f"{SCALE}asec", "--facets", regions, "--quiet")
    empty = suite.path("empty.reg")
    with open(empty, "w", encoding="utf-8") as file:
        file.write("fk5\ncircle(60,-30,1)\n")
    cases = [(change_gains(suite, "later.h5", shift_axis("time", 1e5)), ("amplitude000", "at the times of the data")),
             (change_gains(suite, "higher.h5", shift_axis("freq", 1e9)), ("amplitude000", "at the frequencies")),
             (change_gains(suite, "blank.h5", blank), ("phase000", "NaN")),
             (change_gains(suite, "away.h5", move), ("facet 'F1'", "--any-solution-direction")),
             (change_gains(suite, "less.h5", lambda group: group.pop("phase000")), ("'phase000'", "it has: amplitude000"))]
    for ranks in (1, 3) if mpiexec() else (1,):
        for path, words in cases[:None if FULL else 2 if ranks > 1 else 5]:
            out = suite.path("bad")
            result = tessera(*ask, "-o", out, "--facet-solutions", path, "--soltabs", "amplitude000,phase000", ranks=ranks)
            name = os.path.basename(path)
            suite.equal(f"{name} on {ranks} ranks: status", result.status, 3)
            suite.true(f"one line says why: {result.errors()}", len(result.errors()) == 1 and
                       all(word in result.errors()[0] for word in (name, *words)))
            suite.true("no image", not os.path.exists(out + "-dirty.fits"))
        result = tessera("image", obs, "-o", suite.path("bad"), *ask[2:6], "--facets", empty, ranks=ranks)
        suite.true(f"no polygon on {ranks} ranks: {result.errors()}", result.status == 3 and
                   len(result.errors()) == 1 and "empty.reg" in result.errors()[0])
    result = tessera(*ask, "-o", suite.path("far"), "--facet-solutions", cases[3][0], "--any-solution-direction")
    suite.ran("a direction that is far away", result)
    suite.true(f"a warning tells: {result.err.strip()}", "nearest to facet 'F1'" in result.err)


def check_refused(suite, obs, regions):
    other = suite.path("other.h5")
    write_gains(other, 2, names=[b"B%02d" % k for k in range(ANTENNAS)])
    full, tables = suite.path("full.h5"), ("--soltabs", "amplitude000,phase000")
    write_gains(full, 4)
    where = ("--size", NX, "--scale", f"{SCALE}asec")
    ask = ("--facets", regions)
    cases = [((*ask, "--facet-solutions", other), 3, ("other.h5", "A00")),
             ((*ask, "--subtract", "model.fits"), 2, ("--subtract", "tessera predict --facets")),
             ((*ask, "--primary-beam", "airy:40"), 2, ("--primary-beam", "--facet-beam MODEL")),
             ((*ask, "--dump-stages", suite.path("stages")), 2, ("--dump-stages", "stages are those of one image")),
             ((*ask, "--any-solution-direction"), 2, ("--any-solution-direction", "--facet-solutions")),
             (("--facet-solutions", other), 2, ("--facets FILE",)),
             (("--facet-beam", "airy:40"), 2, ("--facets FILE",)),
             ((*ask, "--facet-beam-update", "60s"), 2, ("--facet-beam-update", "--facet-beam MODEL")),
             ((*ask, "--solution-interpolation", "linear"), 2, ("--solution-interpolation", "--facet-solutions")),
             ((*ask, "--psf-per-facet"), 2, ("--psf-per-facet", "--niter")),
             ((*ask, "--facet-sources", "list.txt"), 2, ("--facet-sources", "--facets N")),
             (("--facets", 3), 3, ("--facets 3", "no source")),
             ((*ask, "--facet-beam", "lofar"), 2, ("--facet-beam", "lofar")),
             ((*ask, "--facet-aterms", regions), 3, ("facets.reg", "key = value")),
             ((*ask, "--facet-solutions", other, "--stokes", "XX"), 2, ("Stokes parameters",)),
             ((*ask, "--facet-solutions", full, *tables, "--scalar-visibilities"), 2,
              ("mix feeds", "-diagonal-visibilities"))]
    for k, (args, status, words) in enumerate(cases):
        out = suite.path(f"refused-{k}")
        result = tessera("image", obs, "-o", out, *where, *args, "--quiet", ranks=2 if mpiexec() and k == 0 else 1)
        suite.equal(f"{args[-2:]}: status", result.status, status)
        suite.true(f"one line says why: {result.errors()}", len(result.errors()) == 1 and
                   all(word in result.errors()[0] for word in words))
        suite.true("no image", not os.path.exists(out + "-dirty.fits"))


# ---- a set with three facets, and WSClean's image of it ----


def fluxes(path, truth):
    """The flux of each source over its true one."""
    return facet_sums.peak_ratios(path, *([float(row[k].replace("deg", "")) for row in truth]
                                          for k in ("ra", "dec", "flux_jy")))


def column_of(suite, python, name):
    out = suite.path(f"{name}.npy")
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ms_column.py")
    suite.ran(f"column {name}", run([python, script, suite.path("obs.ms"), name, out], 120))
    return np.load(out)


def check_columns(suite, regions, solutions):
    """Columns of facets: their sum is MODEL_DATA, which cleaning has written, and one is that of its facet alone."""
    python = casacore_python()
    ask = ("predict", suite.path("obs.ms"), "--model", suite.path("cleaned"), "--facets", regions,
           "--facet-solutions", solutions, "--quiet")
    made = tessera(*ask, "--column-per-facet", ranks=2 if mpiexec() else 1)
    if not python or not suite.ran("columns of facets", made) or \
            not suite.ran("a facet", tessera(*ask, "--column", "ONE", "--select-facets", "dir1")):
        return
    suite.equal("nothing is warned of", made.err, "")
    parts = [column_of(suite, python, f"MODEL_DATA_dir{k}") for k in range(3)]
    suite.below("the columns' sum is MODEL_DATA", l2_error(sum(parts), column_of(suite, python, "MODEL_DATA")), 1e-5)
    suite.below("a column is that of its facet", l2_error(parts[1], column_of(suite, python, "ONE")), 1e-4)
    some = (*ask, "--column-per-facet", "--column", "SOME", "--select-facets")
    if suite.ran("a column of a chosen facet", tessera(*some, "dir1")):
        suite.below("it is that of the facet", l2_error(column_of(suite, python, "SOME_dir1"), parts[1]), 1e-4)
        suite.ran("no other facet has a column", tessera(*some, "dir0"))
    again = tessera(*ask, "--column-per-facet")
    suite.true(f"columns are kept: {again.errors()}", again.status == 3 and "MODEL_DATA_dir0" in again.errors()[0])
    with open(regions, encoding="utf-8") as file, open(suite.path("shared.reg"), "w", encoding="utf-8") as shared:
        shared.write(file.read().replace("text=dir0", "text={[dir 2]}").replace("text=dir2", "text=dir_2"))
    again = tessera(*ask[:4], "--facets", suite.path("shared.reg"), "--column-per-facet", "--quiet")
    suite.true(f"a shared name: {again.errors()}", again.status == 3 and "MODEL_DATA_dir_2" in again.errors()[0])


def check_peaks(suite, truth, ask):
    """Facets around peaks of a first image, and the PSF of each in cleaning."""
    ranks = 2 if mpiexec() else 1
    if not suite.ran("facets around peaks", tessera(*ask[:6], "-o", suite.path("peaks"), "--facets", 3, "--no-psf",
                                                    "--quiet", ranks=ranks)):
        return
    with open(suite.path("peaks-facets.reg"), encoding="utf-8") as file:
        points = [line[6:line.index(")")].split(",") for line in file if line.startswith("point(")]
    suite.equal("facets around peaks", len(points), 3)
    brightest = [np.hypot((float(row["ra"][:-3]) - float(ra)) * np.cos(np.deg2rad(float(dec))),
                          float(row["dec"][:-3]) - float(dec)) for ra, dec in points[:1] for row in truth]
    # without solutions, sources are not where they should be
    suite.below("the first lies near a source [pixels]", min(brightest) * 240, 10)
    if suite.ran("PSFs of facets", tessera(*ask, "-o", suite.path("psfs"), "--niter", 20000, "--mgain", .7,
                                           "--auto-threshold", 3, "--auto-mask", 5, "--psf-per-facet")):
        found = fluxes(suite.path("psfs-image-pb.fits"), truth)
        suite.below(f"true fluxes with PSFs of facets: {np.round(found, 3)}", np.abs(np.array(found) - 1).max(), .03)
        suite.below("rms with PSFs of facets", np.nanstd(pixels(suite.path("psfs-residual.fits"))), RMS)


def check_set(suite, folder):
    with tarfile.open(os.path.join(folder, "obs.ms.tgz")) as archive:
        archive.extractall(suite.path(""), filter="data") if hasattr(tarfile, "data_filter") \
            else archive.extractall(suite.path(""))
    regions, solutions = (os.path.join(folder, name) for name in ("facets.reg", "solutions.h5"))
    ask = ("image", suite.path("obs.ms"), "--size", 512, "--scale", "15asec", "--facets", regions,
           "--facet-solutions", solutions, "--soltabs", "amplitude000,phase000", "--quiet")
    if not suite.ran("a set with scalar gains", tessera(*ask, "-o", suite.path("scalar"), "--accuracy", 1e-6, "--no-psf",
                                                        "--scalar-visibilities", "--facet-feather", 0)):
        return
    image, peer = pixels(suite.path("scalar-dirty.fits")), pixels(os.path.join(folder, "wsclean-dd-dirty.fits"))
    for columns in (slice(0, 150), slice(215, 300), slice(370, 512)):
        suite.below(f"WSClean's dirty image in columns {columns.start} to {columns.stop}",
                    np.abs(image - peer)[:, columns].max() / np.abs(peer).max(), 1e-5)
    if not suite.ran("a set that is cleaned", tessera(*ask, "-o", suite.path("cleaned"), "--niter", 20000, "--mgain", .7,
                                                      "--auto-threshold", 3, "--auto-mask", 5,
                                                      "--save-source-list", "--update-model",
                                                      ranks=2 if mpiexec() else 1)):
        return
    if suite.ran("data less MODEL_DATA", tessera(*ask, "-o", suite.path("less"), "--subtract-column", "MODEL_DATA",
                                                 "--no-psf")):
        less, residual = (pixels(suite.path(f"{name}.fits")) for name in ("less-dirty", "cleaned-residual"))
        suite.below("MODEL_DATA has the gains of facets", np.abs(less - residual).max() / np.abs(peer).max(), 1e-5)
    with open(os.path.join(folder, "truth.csv"), encoding="utf-8") as file:
        truth = list(csv.DictReader(file))
    residual, root = (pixels(suite.path(f"cleaned-{name}.fits")) for name in ("residual", "pb"))
    noise = 1.482602218505602 * np.median(np.abs(residual - np.median(residual))) / root
    suite.below("the noise in true flux", np.abs(pixels(suite.path("cleaned-noise-pb.fits")) / noise - 1).max(), 1e-6)
    power = pixels(suite.path("cleaned-weight-pb.fits"))
    suite.below("the response is the square of its root", np.abs(power / root ** 2 - 1).max(), 1e-6)
    for kind in ("image", "model", "residual"):
        seen, true = (pixels(suite.path(f"cleaned-{kind}{end}.fits")) for end in ("", "-pb"))
        suite.below(f"the {kind} in true flux", l2_error(true * root, seen), 1e-6)
    found = fluxes(suite.path("cleaned-image-pb.fits"), truth)
    suite.below(f"true fluxes: {np.round(found, 3)}", np.abs(np.array(found) - 1).max(), .03)
    with open(suite.path("cleaned-sources.txt"), encoding="utf-8") as file:
        listed = sum(float(line.split(",")[4]) for line in file if ",POINT," in line)
    suite.below("flux of the list of sources", abs(listed / sum(float(row["flux_jy"]) for row in truth) - 1), .01)
    check_columns(suite, regions, solutions)
    check_peaks(suite, truth, ask)
    suite.below("rms of the residual", np.nanstd(pixels(suite.path("cleaned-residual.fits"))), RMS)


def main():
    suite = Suite("facet_images")
    if os.environ.get("TESS_HAVE_HDF5", "ON") != "ON":
        lacks("images by facets with solutions: built without HDF5")
        suite.finish()
    obs, regions = suite.path("obs.uvfits"), write_regions(suite.path("facets.reg"))
    if have_h5py():
        check_direct_sums(suite, obs, regions)
        check_beams(suite, obs, regions)
        check_prediction(suite, obs, regions)
        check_polarised(suite, regions)
        check_changes(suite, obs, regions)
        check_ones(suite, obs, regions)
        check_made(suite, obs)
        check_refused(suite, obs, regions)
        check_sets(suite, obs, regions)
        check_missing(suite, regions)
        check_bad_solutions(suite, obs, regions)
    check_epochs(suite)
    check_tracks(suite)
    if have_ms():
        check_set(suite, data_folder("data", "facets"))
    suite.finish()


main()
