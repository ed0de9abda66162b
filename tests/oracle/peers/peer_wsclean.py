#!/usr/bin/env python3
"""A simulated wide field imaged and predicted by tessera and by WSClean, both at high
accuracy. Skipped without WSClean or MeasurementSets.

Limits: dirty image and PSF to 1e-5 of the peak everywhere and predictions to 1e-5 of the
largest visibility (WSClean's gridder works in single precision; its best is near 1e-6),
WCS within 1e-3 pixels, beam within 1e-4 (the same fit; on PSFs with a pedestal, as natural
weights make here, it passes on differences of the PSF several times larger). The rank
filter is off in both, as by default in tessera, and for one run on in both.
"""
import os
import re
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (FULL, MS_COLUMN, Suite, beam_difference, casacore_python, have_ms,
                 offset_radec, peak_error, read_image, run, simulate, skip, tessera,
                 wcs_difference, write_sky)
import uvfits

RA, DEC = 60.0, -26.0
WEIGHTS = ["natural", "uniform", "briggs:-1", "briggs:0", "briggs:1"]
RANK_FILTER = 3                  # WSClean's default
SIZE, SCALE = 512, 70.0          # 10 degrees
ACCURACY = "1e-6"
# ⌈1.2 N⌉ of the widths 100, 104, 108 and 102 is 0, 1, 2 and 3 more than a multiple of
# four, to which WSClean rounds the sides of its grid of weights up.
SIZES = [(100, 100), (104, 104), (108, 108), (102, 102), (104, 102), (100, 108)]
SIZES_SCALE = 15.0


def make_observation(suite, layout, freq):
    """Sources all over ten degrees, observed far from the zenith: a large w."""
    rng = np.random.default_rng(11)
    sources = []
    for k, (l, m) in enumerate(rng.uniform(-0.08, 0.08, (15, 2))):
        ra, dec = offset_radec(RA, DEC, l, m)
        sources.append(dict(name=f"S{k}", ra=f"{ra:.9f}deg", dec=f"{dec:.9f}deg",
                            flux_jy=round(rng.uniform(0.2, 3), 3)))
    sky = write_sky(suite.path("sky.csv"), sources)
    return simulate(suite.path("wide.ms"), sky, layout=layout, ra=f"{RA}deg",
                    dec=f"{DEC}deg", start="2026-01-01T16:30:00", duration="30min",
                    integration="6min", freq=freq, width="2MHz", channels=4,
                    extra=["--noise", "1Jy", "--seed", "3"])


def wsclean(suite, obs, name, weight, rank_filter, size=(SIZE, SIZE), scale=SCALE):
    kind = weight.replace(":", " ").split()
    return run(["wsclean", "-name", suite.path(name), "-size", *map(str, size),
                "-scale", f"{scale}asec", "-weight", *kind, "-weighting-rank-filter",
                str(rank_filter), "-make-psf", "-niter", "0", "-use-wgridder", "-wgridder-accuracy",
                ACCURACY, "-no-small-inversion", "-pol", "I", "-reorder", "-j", "2",
                "-no-update-model-required", "-temp-dir", suite.work, obs], 300)


def check_weight(suite, obs, weight, rank_filter=0):
    """Images, WCS and beam of one weighting; returns the dirty image, or None."""
    label = weight.replace(":", "") + (f"-rank{rank_filter}" if rank_filter else "")
    ran, prefix = suite.image(label, obs, "--size", SIZE, "--scale", f"{SCALE}asec",
                              "--weight", weight, "--accuracy", ACCURACY,
                              "--weighting-rank-filter", rank_filter)
    peer = wsclean(suite, obs, "peer-" + label, weight, rank_filter)
    if not ran or not suite.ran(f"wsclean {label}", peer):
        return None
    for kind in ("psf", "dirty"):
        image, header = read_image(f"{prefix}-{kind}.fits")
        reference, peer_header = read_image(suite.path(f"peer-{label}-{kind}.fits"))
        suite.below(f"{label} {kind}: difference / peak", peak_error(image, reference),
                    1e-5)
        suite.below(f"{label} {kind}: WCS difference [pixel]",
                    wcs_difference(header, peer_header, reference.shape), 1e-3)
    suite.below(f"{label}: beam", beam_difference(header, peer_header), 1e-4)
    return image


def check_weights(suite, obs):
    """All weightings; returns what the rank filter changes, of the peak."""
    images = {weight: check_weight(suite, obs, weight) for weight in WEIGHTS}
    plain, filtered = images["uniform"], check_weight(suite, obs, "uniform", RANK_FILTER)
    if plain is not None and filtered is not None:
        peers = [read_image(suite.path(f"peer-{label}-dirty.fits"))[0]
                 for label in ("uniform", f"uniform-rank{RANK_FILTER}")]
        effect, expected = peak_error(filtered, plain), peak_error(peers[1], peers[0])
        suite.below("effect of the rank filter, difference from WSClean's",
                    abs(effect - expected), 2e-5)
        return effect
    return 0


def check_sizes(suite):
    """Weights of images whose grids of weights are rounded in each possible way."""
    sky = write_sky(suite.path("small.csv"), [dict(ra=f"{RA}deg", dec=f"{DEC}deg",
                                                   flux_jy=1)])
    obs = simulate(suite.path("small.ms"), sky, ra=f"{RA}deg", dec=f"{DEC}deg",
                   start="2026-01-01T16:30:00", duration="10min", integration="2min",
                   extra=["--noise", "1Jy", "--seed", "5"])
    for width, height in SIZES:
        for weight in ("natural", "uniform", "briggs:0"):
            label = f"{weight.replace(':', '')}-{width}x{height}"
            ran, prefix = suite.image(label, obs, "--size", f"{width},{height}", "--scale",
                                      f"{SIZES_SCALE}asec", "--weight", weight,
                                      "--accuracy", ACCURACY, "--no-psf")
            peer = wsclean(suite, obs, "peer-" + label, weight, 0, (width, height),
                           SIZES_SCALE)
            if not ran or not suite.ran(f"wsclean {label}", peer):
                continue
            suite.below(f"{label}: difference / peak",
                        peak_error(read_image(f"{prefix}-dirty.fits")[0],
                                   read_image(suite.path(f"peer-{label}-dirty.fits"))[0]),
                        1e-5)
    shutil.rmtree(obs)


def check_prediction(suite, obs, python):
    rng = np.random.default_rng(2)
    model = np.zeros((SIZE, SIZE))
    at = rng.integers(8, SIZE - 8, (40, 2))
    model[at[:, 0], at[:, 1]] = rng.uniform(0.1, 2, len(at))
    path = uvfits.write_model(suite.path("truth-model.fits"), model.astype("f4"),
                              np.deg2rad(SCALE / 3600), RA, DEC, 150e6)
    peer = run(["wsclean", "-predict", "-name", suite.path("truth"), "-size", str(SIZE),
                str(SIZE), "-scale", f"{SCALE}asec", "-use-wgridder",
                "-wgridder-accuracy", ACCURACY, "-pol", "I", "-reorder", "-j", "2",
                "-temp-dir", suite.work, obs], 300)
    mine = tessera("predict", obs, "--model", path, "--accuracy", ACCURACY, "--column",
                   "TESSERA_MODEL")
    if not (suite.ran("wsclean -predict", peer) and suite.ran("predict", mine)):
        return
    columns = {}
    for column in ("MODEL_DATA", "TESSERA_MODEL", "DATA"):
        out = suite.path(column + ".npy")
        read = run([python, MS_COLUMN, obs, column, out], 120)
        if not suite.ran(f"read column {column}", read):
            return
        columns[column] = np.load(out)
    theirs = columns["MODEL_DATA"]
    difference = np.abs(columns["TESSERA_MODEL"] - theirs).max() / np.abs(theirs).max()
    suite.below("prediction: difference / largest", difference, 1e-5)
    suite.equal("prediction: shape", columns["TESSERA_MODEL"].shape,
                columns["DATA"].shape)


def main():
    if not shutil.which("wsclean") or not have_ms():
        skip("needs wsclean and MeasurementSet support")
    suite = Suite("wsclean_full" if FULL else "wsclean")
    version = re.search(r"version (\S+)", run(["wsclean", "--version"], 60).out)
    check_sizes(suite)
    print("WSClean", version.group(1) if version else "of unknown version")
    for layout, freq in ([("mwa", "150MHz"), ("vla-d", "1.4GHz"), ("ska1-low", "110MHz")]
                         if FULL else [("mwa", "150MHz")]):
        obs = make_observation(suite, layout, freq)
        effect = check_weights(suite, obs)
        if layout == "mwa":  # crowded cells; the filter does nothing where there are none
            suite.true("the rank filter did something", effect > 1e-3)
        python = casacore_python()
        if python:
            check_prediction(suite, obs, python)
        shutil.rmtree(obs)
    suite.finish()


if __name__ == "__main__":
    main()
