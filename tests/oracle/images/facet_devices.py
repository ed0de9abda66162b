#!/usr/bin/env python3
"""Facets of samples that a GPU makes of a file's rows, and takes with gains of antennas: images, responses and
counts are those that processors make. So are those of samples that go through host memory, because the GPU has no
room for them or the order of sums is fixed, and those of several ranks. The fast tier takes diagonal gains on one
rank; --full takes all cases."""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import uvfits  # noqa: E402
from facet_scene import ANTENNAS, FREQ, NX, NY, ROWS, SCALE, write_gains, write_regions  # noqa: E402
from e2e import (BACKEND, FULL, Suite, forced, have_h5py, l2_error, lacks, mpi_environment, mpiexec, read_image,  # noqa: E402
                 tessera)

# Each backend makes images to the accuracy that was asked for, from a plan of its own.
ACCURACY = 1e-7
KINDS = ("dirty", "dirty-pb", "pb", "psf")
# 1e9 bytes are to be free beside images, which are 1e5 here, and samples have no room in the rest.
SMALL = 10 ** 9 + 2 * 10 ** 5


def write_observation(path, seed, antennas=ANTENNAS, rows=ROWS):
    """Correlations of noise, of which some are flagged alone, and some weights are no numbers."""
    random = np.random.default_rng(seed)
    vis = random.normal(size=(rows, 4, 4)) + 1j * random.normal(size=(rows, 4, 4))
    weight = random.uniform(.5, 2, (rows, 4, 4)).astype("f4")
    weight[random.random(weight.shape) < .05] *= -1
    weight[3, 1, 0], weight[70, 2, 1], vis[90, 0, 3] = np.nan, np.inf, np.nan
    uvfits.write(path, uvfits.random_tracks(rows, 900.0, seed=seed), FREQ, vis, weight, antennas=antennas, autos=True)
    return path


def swap_regions(suite):
    """Has the larger facet come behind the other one."""
    with open(suite.path("facets.reg"), encoding="utf-8") as file:
        first, *facets = file.readlines()
    with open(suite.path("facets.reg"), "w", encoding="utf-8") as file:
        file.writelines([first, *facets[2:], *facets[:2]])


def image(suite, name, obs, *args, ranks=1, env=None):
    """The images of a run and the totals of its profile, or None; and the run."""
    out = suite.path(name)
    result = tessera("image", *obs, "-o", out, "--size", f"{NX},{NY}", "--scale", f"{SCALE}asec", "--accuracy", ACCURACY,
                     "--profile", f"{out}.json", "--facets", suite.path("facets.reg"), "--overwrite", *args,
                     ranks=ranks, env={**mpi_environment(), **env} if env else None)
    if not suite.ran(name, result):
        return None, None, result
    with open(f"{out}.json", encoding="utf-8") as file:
        totals = json.load(file)["totals"]
    paths = [f"{out}-{kind}.fits" for kind in stems(args)]
    return {path[len(out):]: read_image(path)[0].squeeze().astype(float) for path in paths
            if os.path.exists(path)}, totals, result


def stems(args):
    """The kinds of images of a run, with their Stokes parameters if there are several."""
    return [f"{stokes}-{kind}" for stokes in "IQUV" for kind in KINDS] if "IQUV" in args else KINDS


def compare(suite, name, found, wanted, limit):
    """The same images, to a share of each."""
    suite.equal(f"{name}: images", list(found), list(wanted))
    for kind, image_ in found.items():
        there = np.isfinite(wanted[kind])
        suite.true(f"{name} {kind}: the same pixels", np.array_equal(there, np.isfinite(image_)))
        suite.below(f"{name} {kind}", l2_error(image_[there], wanted[kind][there]), limit)


def check(suite, name, obs, *args, streamed=True, limit=2 * ACCURACY, ranks=1, env=None):
    """A run on the device against one on processors; returns its images and what it says."""
    wanted, counts, _ = image(suite, f"{name}-cpu", obs, *args, "--backend", "cpu")
    found, totals, result = image(suite, name, obs, *args, ranks=ranks, env=env)
    if not wanted or not found:
        return None, result
    compare(suite, name, found, wanted, limit)
    suite.equal(f"{name}: the device takes rows", totals["streaming"]["bytes"] > 0, streamed)
    for key in ("visibilities", "ignored", "without_solution"):
        suite.equal(f"{name}: {key}", totals[key], counts[key])
    return found, result


def check_more(suite, obs, gains, full):
    """Other gains, images and numbers of ranks."""
    other = write_observation(suite.path("other.uvfits"), 9, ANTENNAS - 2, 200)
    check(suite, "full gains", obs, "--facet-solutions", full, "--stokes", "IQUV", "--weight", "uniform")
    check(suite, "gains of one", obs, "--weight", "natural")
    check(suite, "scalar visibilities", obs, "--facet-solutions", gains, "--scalar-visibilities")
    check(suite, "gains between solutions", obs, "--facet-solutions", gains, "--solution-interpolation", "linear")
    check(suite, "two observations", (*obs, other), "--facet-solutions", gains)
    check(suite, "another centre", obs, "--facet-solutions", gains, "--center", "60.1deg,-30.1deg")
    check(suite, "single precision", obs, "--facet-solutions", gains, "--accuracy", 1e-4, limit=2e-4)
    swap_regions(suite)
    for ranks in (2, 3) if mpiexec() else ():
        check(suite, f"{ranks} ranks", obs, "--facet-solutions", gains, ranks=ranks)
        for planes in (1, 2):
            check(suite, f"{ranks} ranks, planes {planes}", obs, "--facet-solutions", gains,
                  *forced(device_planes=planes), ranks=ranks)


def check_bits(suite, obs, gains):
    """The same bits on any number of ranks, whose samples go through host memory."""
    made = [check(suite, f"reproducible on {ranks}", obs, "--facet-solutions", gains, "--reproducible", ranks=ranks,
                  streamed=False)[0] for ranks in ((1, 2, 3) if mpiexec() else (1,))]
    for other in made[1:]:
        suite.true("reproducible: the same bits", all(np.array_equal(other[kind], made[0][kind], equal_nan=True)
                                                      for kind in made[0]))


def check_small(suite, obs, gains):
    """Devices without room: one line says that samples go through host memory."""
    _, result = check(suite, "a small device", obs, "--facet-solutions", gains, streamed=False,
                      env={"TESS_EMULATED": str(SMALL)})
    said = [line for line in result.err.splitlines() if "no room for all visibilities" in line]
    suite.equal(f"a small device: one line tells {said}", len(said), 1)


def main():
    suite = Suite("facet_devices")
    if BACKEND == "cpu":
        lacks("samples of facets on a device: there is no --backend cuda")
        suite.finish()
    if not have_h5py():
        suite.finish()
    obs = [write_observation(suite.path("obs.uvfits"), 6)]
    write_regions(suite.path("facets.reg"))
    gains, full = suite.path("gains2.h5"), suite.path("gains4.h5")
    write_gains(gains, 2, bad=True)
    write_gains(full, 4)
    check(suite, "diagonal gains", obs, "--facet-solutions", gains)
    if FULL:
        check_more(suite, obs, gains, full)
        check_bits(suite, obs, gains)
        if "TESS_EMULATED" in os.environ:
            check_small(suite, obs, gains)
    suite.finish()


main()
