#!/usr/bin/env python3
"""Simulated observations whose antennas have gains of their own in each of 3 to 20 facets, cleaned with their
solutions: true fluxes, and residuals beside those of the same sky and noise without gains and without facets. And the
same images on 1, 2, 3, 4 and 7 ranks. It needs --full, python3-casacore and h5py.

A source is isolated if no other one lies within five beams. A parabola through the pixels around a peak tells its flux.
This is a little too low, with facets and without them, so that both fluxes are compared with one another and with the
truth. Pixels are an eighth of the beam: larger ones would leave residuals of all sources that lie between pixels. Images
are cleaned to 2 sigma with the PSF of each facet, and those of 12 and 20 facets also deeply and without a mask, where
components on both sides of a border must not make residuals grow."""
import csv
import os
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import facet_sums  # noqa: E402
from e2e import (BIN, FULL, Suite, casacore_python, data_folder, have_h5py, have_ms, l2_error, mpiexec,  # noqa: E402
                 read_image, run, skip, tessera)

CASES = ((11, 3), (12, 7), (13, 12), (14, 20))  # seeds and facets
SIZE, SCALE, ISOLATED = 1280, 6.0, 300.0  # pixels, arcsec, arcsec
CLEAN = ("--niter", 60000, "--mgain", .7, "--auto-threshold", 2, "--auto-mask", 4, "--weight", "briggs:0")
DEEP_JY = 1.5e-3
DEEP = ("--niter", 60000, "--mgain", .6, "--threshold", f"{DEEP_JY}Jy", "--weight", "briggs:0")

WRITE = """
import sys
import numpy as np
from casacore.tables import table
with table(sys.argv[1], readonly=False, ack=False) as main:
    main.putcol("DATA", np.load(sys.argv[2]))
"""


def pixels(path):
    return read_image(path)[0].squeeze().astype(float)


def read_truth(folder):
    """Facets, right ascensions, declinations and fluxes, and which sources are isolated."""
    with open(os.path.join(folder, "truth.csv"), encoding="utf-8") as file:
        rows = [[float(row[k].rstrip("deg")) for k in ("facet", "ra", "dec", "flux_jy")] for row in csv.DictReader(file)]
    truth = np.array(rows)
    x, y = truth[:, 1] * np.cos(np.deg2rad(truth[:, 2].mean())), truth[:, 2]
    apart = np.hypot(x[:, None] - x, y[:, None] - y) + np.diag(np.full(len(x), np.inf))
    return truth, apart.min(1) > ISOLATED / 3600


def remove_gains(suite, folder, truth):
    """Makes a set with the same sky and noise, as antennas without gains see them."""
    obs = facet_sums.read_set(suite, os.path.join(folder, "obs.ms"))
    gains = facet_sums.Gains([os.path.join(folder, "solutions.h5")], ["amplitude000", "phase000"])
    change = 0
    for k, region in enumerate(facet_sums.read_regions(os.path.join(folder, "facets.reg"))):
        jones, good = gains.of(obs, region.direction())
        mine = truth[truth[:, 0] == k]
        l, m = obs.cosines(mine[:, 1], mine[:, 2])
        sources = list(zip(l, m, mine[:, 3]))
        plain = np.broadcast_to(np.eye(2, dtype="c16"), jones.shape)
        change = change + facet_sums.predict(obs, sources, plain, np.ones_like(good)) - \
            facet_sums.predict(obs, sources, jones, good)
    shutil.copytree(os.path.join(folder, "obs.ms"), os.path.join(folder, "plain.ms"))
    np.save(os.path.join(folder, "plain.npy"), (obs.data + change).astype("c8"))
    suite.ran("data without gains", run([casacore_python(), "-c", WRITE, os.path.join(folder, "plain.ms"),
                                         os.path.join(folder, "plain.npy")], 120))


def python_of_cases():
    """A Python with casacore and h5py, or None."""
    for python in (sys.executable, casacore_python()):
        if python and run([python, "-c", "import h5py, casacore.tables"], 60).status == 0:
            return python
    return None


def check_case(suite, seed, facets):
    folder = suite.path(f"case{seed}")
    with open(data_folder("tools", "facet_case.py"), encoding="utf-8") as file:
        text = file.read()
    assert "-.12, .12" in text, "facet_case.py has other borders"
    text = text.replace("-.12, .12", f"{-.36 / facets}, {.36 / facets}")  # borders do not cross
    made = run([python_of_cases(), "-c", text, folder, seed, "meerkat", facets], 600,
               env={**os.environ, "PATH": os.path.dirname(BIN) + os.pathsep + os.environ["PATH"]})
    if not suite.ran(f"case of {facets} facets", made):
        return None
    truth, alone = read_truth(folder)
    remove_gains(suite, folder, truth)
    size = ("--size", SIZE, "--scale", f"{SCALE}asec", "--quiet", *CLEAN)
    by_facets = ("--facets", os.path.join(folder, "facets.reg"), "--facet-solutions", os.path.join(folder, "solutions.h5"))
    for name, obs, more in (("facets", "obs.ms", (*by_facets, "--psf-per-facet")), ("plain", "plain.ms", ()), ("one", "obs.ms", ())):
        if not suite.ran(f"{name} of {facets} facets", tessera("image", os.path.join(folder, obs), "-o",
                                                               os.path.join(folder, name), *size, *more)):
            return None
    found, plain, one = (facet_sums.peak_ratios(os.path.join(folder, name), *truth[alone][:, 1:4].T)
                         for name in ("facets-image-pb.fits", "plain-image.fits", "one-image.fits"))
    noise = [np.nanstd(pixels(os.path.join(folder, f"{name}-residual.fits"))) for name in ("facets", "plain", "one")]
    what = f"{facets} facets, {alone.sum()} isolated sources"
    print(f"{what}: fluxes {found.min():.3f} to {found.max():.3f}, without gains {plain.min():.3f} to {plain.max():.3f}, "
          f"one calibration {one.min():.3f} to {one.max():.3f}; rms {noise[0] * 1e6:.0f}, {noise[1] * 1e6:.0f}, "
          f"{noise[2] * 1e6:.0f} uJy/beam", flush=True)
    suite.below(f"{what}: mean flux of one calibration", one.mean(), .9)
    suite.below(f"{what}: fluxes beside those without gains", np.abs(found / plain - 1).max(), .03)
    suite.below(f"{what}: true fluxes", np.abs(found - 1).max(), .03)
    suite.below(f"{what}: rms over that without gains", noise[0] / noise[1], 1.05)
    if facets > 10:
        check_deep(suite, folder, by_facets, facets, (truth, alone))
    return folder, by_facets


def check_deep(suite, folder, by_facets, facets, truth_of):
    """Without a mask, slopes as they are by themselves."""
    truth, alone = truth_of
    names, size = ("deep", "deep-plain"), ("--size", SIZE, "--scale", f"{SCALE}asec", "--quiet", *DEEP)
    for name, obs, more in zip(names, ("obs.ms", "plain.ms"), ((*by_facets, "--psf-per-facet"), ())):
        if not suite.ran(f"{name} of {facets} facets",
                         tessera("image", os.path.join(folder, obs), "-o", os.path.join(folder, name), *size, *more,
                                 timeout=1800)):
            return
    left, plain = (pixels(os.path.join(folder, f"{name}-residual.fits")) for name in names)
    found = facet_sums.peak_ratios(os.path.join(folder, "deep-image-pb.fits"), *truth[alone][:, 1:4].T)
    print(f"{facets} facets without a mask: fluxes {found.min():.3f} to {found.max():.3f}, rms {np.nanstd(left) * 1e6:.0f}, "
          f"{np.nanstd(plain) * 1e6:.0f} uJy/beam", flush=True)
    suite.below(f"{facets} facets without a mask: residual over the threshold", np.nanmax(np.abs(left)) / DEEP_JY, 2)
    suite.below(f"{facets} facets without a mask: rms over that without gains", np.nanstd(left) / np.nanstd(plain), 1.05)
    suite.below(f"{facets} facets without a mask: true fluxes", np.abs(found - 1).max(), .03)


def check_ranks(suite, folder, by_facets):
    """The same image, bit by bit."""
    ask = ("image", os.path.join(folder, "obs.ms"), "--size", 256, "--scale", "30asec", "--niter", 300, "--nmiter", 2,
           "--reproducible", "--quiet", "--overwrite", *by_facets)
    names = {ranks: suite.path(f"ranks{ranks}") for ranks in (1, 2, 3, 4, 7)}
    for ranks, name in names.items():
        suite.ran(f"{ranks} ranks", tessera(*ask, "-o", name, ranks=ranks, timeout=300))
    for ranks, name in list(names.items())[1:]:
        same = all(np.array_equal(pixels(f"{name}-{kind}.fits"), pixels(f"{names[1]}-{kind}.fits"), equal_nan=True)
                   for kind in ("dirty", "psf", "image", "model", "residual", "image-pb", "pb"))
        suite.true(f"{ranks} ranks: the same images", same)


def check_ones(suite, folder):
    """Without gains facets are the image without facets, seams included."""
    ask = ("image", os.path.join(folder, "plain.ms"), "--size", SIZE, "--scale", f"{SCALE}asec", "--no-psf",
           "--accuracy", 1e-4, "--quiet", "--overwrite")
    suite.ran("no facets", tessera(*ask, "-o", suite.path("none")))
    suite.ran("facets", tessera(*ask, "-o", suite.path("ones"), "--facets", os.path.join(folder, "facets.reg")))
    plain, image = (pixels(suite.path(f"{name}-dirty.fits")) for name in ("none", "ones"))
    there = np.isfinite(image)
    suite.below(f"{os.path.basename(folder)}: the image without facets, to 2 epsilon", l2_error(image[there], plain[there]),
                2e-4)


def main():
    if not FULL:
        skip("it is part of --full")
    if not have_h5py() or not have_ms() or not python_of_cases():
        skip("no MeasurementSets, no casacore, or no h5py")
    data_folder("tools", "facet_case.py")  # or the test is skipped
    suite = Suite("facet_cases")
    for seed, facets in CASES:
        made = check_case(suite, seed, facets)
        if made:
            check_ones(suite, made[0])
        if made and facets in (3, 12) and mpiexec():
            check_ranks(suite, *made)
    suite.finish()


main()
