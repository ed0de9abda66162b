#!/usr/bin/env python3
"""The public, self-calibrated EHT observation of M87 (2017-04-11): pixels of 1 micro-
arcsecond, imaged, beam fitted, PNG made."""
import json
import os
import struct

import numpy as np

from e2e import Suite, data_folder, read_image, tessera


def main():
    obs = data_folder("data", "uvfits", "hops_lo_3601_M87+zbl-dtcal_selfcal.uvfits")
    suite = Suite("eht_m87")
    prefix, profile = suite.path("m87"), suite.path("m87.json")
    result = tessera("image", obs, "--size", 256, "--scale", "1uas", "--weight",
                     "briggs:0", "--preview", "--profile", profile, "-o", prefix)
    if suite.ran("image", result):
        with open(profile) as f:
            totals = json.load(f)["totals"]
        suite.equal("visibilities", totals["visibilities"], 5877)
        image, header = read_image(prefix + "-dirty.fits")
        suite.true("image is finite", np.isfinite(image).all())
        suite.below("peak / 0.164654 - 1", abs(image.max() / 0.164654 - 1), 1e-3)
        uas = 3.6e9
        # WSClean's fit of the same PSF: 21.54 x 12.64 uas at 114.7 deg.
        suite.below("beam major / 21.54 uas - 1", abs(header["BMAJ"] * uas / 21.54 - 1),
                    0.01)
        suite.below("beam minor / 12.64 uas - 1", abs(header["BMIN"] * uas / 12.64 - 1),
                    0.01)
        check_png(suite, prefix)
    check_ring(suite, obs)
    suite.finish()


def check_ring(suite, obs):
    """README's example shows the ring, 42 micro-arcseconds across: brighter than what is
    inside and outside of it."""
    prefix = suite.path("ring")
    if not suite.ran("uniform weighting",
                     tessera("image", obs, "--size", 128, "--scale", "1uas", "--weight",
                             "uniform", "--no-psf", "-o", prefix)):
        return
    image = read_image(prefix + "-dirty.fits")[0].squeeze()
    y, x = np.mgrid[:128, :128] - 64
    radius = np.hypot(x - 2, y - 4)  # about the middle of the dark spot

    def mean(least, most):
        return image[(radius >= least) & (radius < most)].mean()

    suite.below("inside / ring", mean(0, 8) / mean(19, 23), 0.3)
    suite.below("outside / ring", mean(34, 40) / mean(19, 23), 0.6)


def check_png(suite, prefix):
    pictures = [f for f in os.listdir(suite.work) if f.endswith(".png")]
    if suite.true(f"PNG made: {pictures}", "m87-dirty.png" in pictures):
        with open(prefix + "-dirty.png", "rb") as f:
            start = f.read(24)
        suite.equal("PNG signature", start[:8], b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", start[16:24])
        suite.true(f"PNG of {width} x {height}", min(width, height) >= 256)


if __name__ == "__main__":
    main()
