#!/usr/bin/env python3
"""Channels and polarisations cleaned together by tessera and by WSClean with the same options, of a
simulated field of sources with spectra, wide in frequency. Skipped without WSClean or MeasurementSets.

Limits: of every channel and of the mean, residual rms within 5 %, model flux within 2 %; restored
images within 3 σ + 1 % of the local brightness, as in peer_wsclean_cleaned.py.

Where components are found in squares, WSClean 3.1 measures the noise of the linear mean, and cleans
into the noise: thresholds are in Jy there.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import ASEC, FULL, Suite, have_ms, offset_radec, run, simulate, skip, write_sky
from peer_wsclean_cleaned import ACCURACY, CLEAN, clean_options, compare

RA, DEC, SIZE, SCALE = 60.0, -30.0, 320, 5.0
CHANNELS = 4
JOINED = {"join-channels": True, "channels-out": CHANNELS}
FIT = {**JOINED, "fit-spectral-pol": 2}
FLUX = {"auto-threshold": None, "threshold": .004}
CASES = [("joined", JOINED), ("fit", FIT), ("no-mf", {**FIT, "no-mf-weighting": True}),
         ("scales", {**FIT, "multiscale": True, "auto-mask": 5}),
         ("squared", {**JOINED, **FLUX, "squared-channel-joining": True}),
         ("averaged", {"join-channels": True, "channels-out": 8, "fit-spectral-pol": 2,
                       "deconvolution-channels": 4})]

POLARISED = [("linked", {**JOINED, "link-polarizations": "I"}),
             ("stokes", {"join-polarizations": True, "squared-channel-joining": True, **JOINED, **FLUX})]


def make_field(suite):
    """Points of 1 Jy to 10 mJy and some Gaussians, with spectral indices of −1.5 to .5, in noise."""
    rng = np.random.default_rng(14)
    sources = []
    for k in range(24):
        x, y = rng.uniform(-.4 * SIZE, .4 * SIZE, 2)
        ra, dec = offset_radec(RA, DEC, -x * SCALE * ASEC, y * SCALE * ASEC)
        source = dict(ra=f"{ra:.9f}deg", dec=f"{dec:.9f}deg", ref_freq="1.2GHz",
                      spectral_index=round(rng.uniform(-1.5, .5), 3))
        flux = 10 ** rng.uniform(-2, 0)
        if k >= 20:
            flux, width = rng.uniform(.5, 2), rng.uniform(20, 60)
            source.update(major=f"{width:.2f}asec", minor=f"{.7 * width:.2f}asec", pa="30deg")
        sources.append(dict(flux_jy=round(flux, 4), q=round(.2 * flux * rng.uniform(-1, 1), 5),
                            u=round(.2 * flux * rng.uniform(-1, 1), 5), **source))
    sky = write_sky(suite.path("sky.csv"), sources)
    return simulate(suite.path("wide.ms"), sky, layout="meerkat", ra=f"{RA}deg", dec=f"{DEC}deg",
                    duration="2h", integration="300s", freq="1.2GHz", width="50MHz", channels=8,
                    pol="XX,XY,YX,YY", extra=("--antennas", "40", "--noise", "0.1", "--seed", "3"))


def wsclean(suite, obs, name, options, pol):
    return run(["nice", "wsclean", "-name", suite.path("peer-" + name), "-size", str(SIZE), str(SIZE),
                "-scale", f"{SCALE}asec", "-weight", "briggs", "0", "-weighting-rank-filter", "0",
                "-use-wgridder", "-wgridder-accuracy", ACCURACY, "-no-small-inversion", "-pol", pol,
                "-j", "2", "-no-update-model-required", "-temp-dir", suite.work,
                *clean_options("-", options), obs], 600)


def in_jy(options):
    """Thresholds with their unit, which WSClean does not take."""
    return {"threshold": f"{options['threshold']}Jy"} if "threshold" in options else {}


def both(suite, obs, name, options, pol="I", middles=None):
    """Clean by both and compare all images."""
    options = {**CLEAN, "auto-mask": None, **options}
    options = {k: v for k, v in options.items() if v is not None}
    ran, prefix = suite.image(name, obs, "--size", SIZE, "--scale", f"{SCALE}asec", "--weight",
                              "briggs:0", "--density", "first", "--accuracy", ACCURACY, "--stokes", pol,
                              *clean_options("--", {**options, **in_jy(options)}), timeout=600)
    if not (suite.ran(f"wsclean {name}", wsclean(suite, obs, name, options, pol)) and ran):
        return
    channels = options.get("channels-out", 1)
    outputs = [f"-{c:04d}" for c in range(channels)] + ["-MFS"] if channels > 1 else [""]
    for output in outputs:
        for stokes in [""] if len(pol) == 1 else [f"-{s}" for s in pol]:
            compare(suite, f"{name}{output}{stokes}", prefix + output + stokes,
                    suite.path("peer-" + name) + output + stokes)


def main():
    suite = Suite("wsclean_joined")
    if not have_ms():
        skip("tessera was built without MeasurementSets")
    if run(["wsclean", "-version"], 60).status != 0:
        skip("wsclean is not installed")
    obs = make_field(suite)
    for name, options in CASES if FULL else CASES[1:3]:
        both(suite, obs, name, options)
    for name, options in POLARISED if FULL else POLARISED[:1]:
        both(suite, obs, name, options, "IQU")
    suite.finish()


if __name__ == "__main__":
    main()
