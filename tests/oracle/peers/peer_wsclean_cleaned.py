#!/usr/bin/env python3
"""Images cleaned by tessera and by WSClean with the same options: of a simulated field, and of every
observation of the reference data that both can clean. Skipped without WSClean or MeasurementSets.

Limits: restored images within 3 σ + 1 % of the local brightness (σ: WSClean's of the residual; the
local brightness: the largest value within a beam), residual rms within 5 %, model flux within 2 %.
Most agree to 1e-6. Where peaks differ by less than the images do, minor loops choose other components;
what follows from that stays below the final threshold of 3 σ. Observations of the EHT have five to
eight stations: their models are not unique, and only the residual rms is compared.

WSClean 3.1 does not raise mgain in the first major iteration, as 3.7 does.
"""
import os
import re
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (ASEC, FULL, Suite, casacore_python, data_folder, fits_module, have_ms, offset_radec,
                 read_image, run, simulate, skip, write_sky)
from reference_images import find_observation, table_rows

KINDS = ("dirty", "model", "residual", "image")
CLEAN = {"niter": 100000, "mgain": .8, "auto-threshold": 3, "auto-mask": 5}
ACCURACY = "1e-6"
RA, DEC, SIZE, SCALE = 60.0, -30.0, 360, 4.0
# WSClean images pixels of microarcseconds of a copy whose frequencies are so many times lower.
SLOWER = 1e6
# Observations that the fast tier cleans, and how; --full cleans all in both ways. (WSClean takes
# 20 s of a processor for one of LOFAR's.)
FAST = {"mojave-J1033": "multiscale", "SR1_M87_2017_095_lo": "single"}
EHT = ("SR1_", "ER6_", "hops_")
# Their PSFs have sidelobes near 1 all over the image. What wraps in WSClean's convolutions, and not
# here, changes what large kernels find; ties between peaks far apart, which rounding decides, change
# the rest. They are imaged twice as large, and cleaned in the middle.
SPARSE = EHT + ("lofar-",)


def clean_options(dashes, options):
    """--name value, or -name value for WSClean; True has no value."""
    out = []
    for name, value in options.items():
        out += [dashes + name] + ([] if value is True else [str(value)])
    return out


def wsclean(suite, obs, name, size, scale, options, pol="I"):
    return run(["nice", "wsclean", "-name", suite.path("peer-" + name), "-size", str(size), str(size),
                "-scale", scale, "-weight", "briggs", "0", "-weighting-rank-filter", "0",
                "-use-wgridder", "-wgridder-accuracy", ACCURACY, "-no-small-inversion", "-pol", pol,
                "-reorder", "-j", "2", "-no-update-model-required", "-temp-dir", suite.work,
                *clean_options("-", {**CLEAN, **options}), obs], 600)


def largest_nearby(image, radius):
    """The largest value without sign within a square of 2 radius + 1 pixels."""
    image = np.abs(image)
    for axis in (0, 1):
        around = np.pad(image, [(radius, radius) if a == axis else (0, 0) for a in (0, 1)])
        windows = np.lib.stride_tricks.sliding_window_view(around, 2 * radius + 1, axis)
        image = windows.max(-1)
    return image


def compare(suite, what, mine, theirs, rms_only=False):
    """All images of one output."""
    own = {kind: read_image(f"{mine}-{kind}.fits") for kind in KINDS}
    peer = {kind: read_image(f"{theirs}-{kind}.fits") for kind in KINDS}
    left, header = peer["residual"]
    good = np.isfinite(left)
    rms = [np.sqrt(np.mean(k["residual"][0][good] ** 2)) for k in (own, peer)]
    suite.below(f"{what}: residual rms, {rms[1]:.3g} Jy/beam", abs(rms[0] / rms[1] - 1), .05)
    if rms_only:
        return
    sigma = 1.4826 * np.median(np.abs(left[good] - np.median(left[good])))
    image = np.where(good, peer["image"][0], 0)
    beam = int(np.ceil(peer["image"][1]["BMAJ"] / abs(header["CDELT2"])))
    allowed = 3 * sigma + .01 * largest_nearby(image, beam)
    difference = np.where(good, np.abs(own["image"][0] - peer["image"][0]), 0)
    suite.below(f"{what}: restored images, of 3 σ + 1 %", (difference / allowed).max(), 1)
    flux = [k["model"][0].sum() for k in (own, peer)]
    suite.below(f"{what}: model flux, {flux[1]:.4g} Jy", abs(flux[0] - flux[1]),
                .02 * abs(flux[1]))


def clean(suite, name, obs, options, size=SIZE, scale=f"{SCALE}asec", pol="I", peer_obs=None,
          peer_scale=None, more=()):
    """Clean by both; whether both ran."""
    ran, _ = suite.image(name, obs, "--size", size, "--scale", scale, "--weight", "briggs:0",
                         "--density", "first", "--accuracy", ACCURACY, "--stokes", pol,
                         *clean_options("--", {**CLEAN, **options}), *more, timeout=600)
    column = [m for m in more if m.endswith("DATA")]
    extra = {"data-column": column[0]} if column else {}
    result = wsclean(suite, peer_obs or obs, name, size, peer_scale or scale, {**options, **extra},
                     pol)
    return suite.ran(f"wsclean {name}", result) and ran


# ---- a simulated field ----

def make_field(suite, name, with_gaussians):
    """Points of 1 Jy to 10 mJy, and Gaussians, in noise; a tenth polarised."""
    rng = np.random.default_rng(4)
    sources = []
    for k in range(26 if with_gaussians else 20):
        x, y = rng.uniform(-.4 * SIZE, .4 * SIZE, 2)
        ra, dec = offset_radec(RA, DEC, -x * SCALE * ASEC, y * SCALE * ASEC)
        source = dict(ra=f"{ra:.9f}deg", dec=f"{dec:.9f}deg")
        if k < 20:
            flux = 10 ** rng.uniform(-2, 0)
        else:
            flux, width = rng.uniform(.5, 2), rng.uniform(20, 100)
            source.update(major=f"{width:.2f}asec", minor=f"{.7 * width:.2f}asec", pa="30deg")
        sources.append(dict(flux_jy=round(flux, 4), q=round(.1 * flux, 5), **source))
    sky = write_sky(suite.path(name + ".csv"), sources)
    return simulate(suite.path(name + ".ms"), sky, layout="meerkat", ra=f"{RA}deg", dec=f"{DEC}deg",
                    duration="2h", integration="300s", freq="1.28GHz", width="10MHz", channels=4,
                    extra=("--antennas", "48", "--noise", "0.2", "--seed", "2"))


def write_mask(path, like, edge):
    """Set where pixels are at least `edge` of the side from all edges."""
    with fits_module().open(like) as hdus:
        header = hdus[0].header
        data = np.zeros_like(hdus[0].data)
        pixels = int(edge * data.shape[-1])
        data[..., pixels:-pixels, pixels:-pixels] = 1
    for key in ("CHECKSUM", "DATASUM"):
        header.remove(key, ignore_missing=True)
    fits_module().writeto(path, data, header)
    return path


def simulated(suite):
    points = make_field(suite, "points", False)
    both = make_field(suite, "both", True)
    scales = {"multiscale": True}
    cases = {"single": (points, {}), "multiscale": (both, scales)}
    if FULL:
        cases["points-multiscale"] = (points, scales)
        cases["gaussian-kernels"] = (both, {**scales, "multiscale-shape": "gaussian"})
        cases["given-scales"] = (both, {**scales, "multiscale-scales": "0,5,12,30"})
        cases["local-rms"] = (points, {"local-rms": True})
        # WSClean 3.1 aborts with -multiscale and -local-rms
        cases["local-rms-with-min"] = (points, {"local-rms": True,
                                                "local-rms-method": "rms-with-min"})
        cases["no-negative"] = (both, {**scales, "no-negative": True})
        cases["border"] = (points, {"clean-border": 20})
    for name, (obs, options) in cases.items():
        if clean(suite, name, obs, options):
            compare(suite, name, suite.path(name), suite.path("peer-" + name))
    if not os.path.exists(suite.path("single-dirty.fits")):
        return
    mask = write_mask(suite.path("mask.fits"), suite.path("single-dirty.fits"), .25)
    if clean(suite, "masked", points, {"fits-mask": mask}):
        compare(suite, "masked", suite.path("masked"), suite.path("peer-masked"))
    channels = {**scales, "channels-out": 2}
    if clean(suite, "channels", both, channels, pol="IQ"):
        for middle in [f"-{c}-{s}" for c in ("0000", "0001", "MFS") for s in "IQ"]:
            compare(suite, "channels" + middle, suite.path("channels") + middle,
                    suite.path("peer-channels") + middle)


# ---- the reference data ----

DIVIDE = """
import sys, casacore.tables as ct
window = ct.table(sys.argv[1] + "/SPECTRAL_WINDOW", readonly=False, ack=False)
for name in ("CHAN_FREQ", "CHAN_WIDTH", "EFFECTIVE_BW", "RESOLUTION", "REF_FREQUENCY", "TOTAL_BANDWIDTH"):
    for row in range(window.nrows()):
        window.putcell(name, row, window.getcell(name, row) / float(sys.argv[2]))
"""


def peer_copy(suite, python, obs, name, is_small):
    """A MeasurementSet of a UVFITS file, with lower frequencies for the smallest pixels; None where
    it cannot be made."""
    if obs.endswith(".ms"):
        return obs
    copy = suite.path(name + ".ms")
    made = run([python, data_folder("tools", "uvfits2ms.py"), obs, copy], 300)
    if made.status == 0 and is_small:
        made = run([python, "-c", DIVIDE, copy, str(SLOWER)], 60)
    return copy if suite.ran(f"{name}: a MeasurementSet", made) else None


def check_set(suite, python, data, name, row):
    obs, more = find_observation(data, name)
    size, scale = (s.strip() for s in row["size"].split(" x "))
    pol = list(row["pols"])[0]
    is_small = scale == "0.000001asec"
    copy = peer_copy(suite, python, obs, name, is_small)
    if not copy:
        return
    masked = {}
    if name.startswith(SPARSE):
        size = str(2 * int(size))
        ran, like = suite.image("like", obs, "--size", size, "--scale", scale, "--no-psf", *more)
        if not ran:
            return
        masked["fits-mask"] = write_mask(suite.path(f"{name}-mask.fits"), like + "-dirty.fits", .375)
    for kind, options in (("single", {}), ("multiscale", {"multiscale": True})):
        label = f"{name}-{kind}"
        if not FULL and FAST[name] != kind:
            continue
        if clean(suite, label, obs, {**options, **masked}, size, scale, pol, copy,
                 "1asec" if is_small else scale, more):
            compare(suite, label, suite.path(label), suite.path("peer-" + label),
                    name.startswith(EHT))
    if copy != obs:
        shutil.rmtree(copy)


def main():
    if not shutil.which("wsclean") or not have_ms():
        skip("needs wsclean and MeasurementSet support")
    suite = Suite("wsclean_cleaned_full" if FULL else "wsclean_cleaned")
    version = re.search(r"version (\S+)", run(["wsclean", "--version"], 60).out)
    print("WSClean", version.group(1) if version else "of unknown version")
    simulated(suite)
    python = casacore_python()
    data = data_folder("data")
    for (name, weight), row in table_rows(os.path.join(data, "REFERENCE.md")).items():
        if python and weight == "br0" and (FULL or name in FAST):
            check_set(suite, python, data, name, row)
    suite.finish()


if __name__ == "__main__":
    main()
