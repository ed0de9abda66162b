#!/usr/bin/env python3
"""The public, self-calibrated EHT observation of M87 (2017-04-11): pixels of 1 micro-
arcsecond, imaged, beam fitted, PNG made, cleaned."""
import json
import os
import struct
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

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
        check_png(suite, prefix + "-dirty.png")
    check_ring(suite, obs)
    check_small(suite, obs)
    suite.finish()


def check_small(suite, obs):
    """An image that is too small for the sidelobes of the ring is not cleaned to the noise, and
    this is said."""
    result = tessera("image", obs, "--size", "127,131", "--scale", "1uas", "--weight", "uniform",
                     "--niter", 10000, "--auto-threshold", 3, "--auto-mask", 5, "--multiscale", "-o",
                     suite.path("small"))
    if suite.ran("a small image", result):
        warned = [line for line in result.err.splitlines() if "warning: " in line]
        suite.true(f"a small image: {warned}", len(warned) == 1 and "not at the noise" in warned[0]
                   and "larger --size" in warned[0])


def check_ring(suite, obs):
    """README's example shows the ring, 42 micro-arcseconds across and brighter in the South. The
    dirty image shows it, too: brighter than what is inside and outside of it."""
    prefix = suite.path("ring")
    if not suite.ran("cleaned",
                     tessera("image", obs, "--size", 128, "--scale", "1uas", "--weight",
                             "uniform", "--niter", 10000, "--auto-threshold", 1,
                             "--clean-border", 25, "--beam-size", "20uas", "--preview",
                             "-o", prefix)):
        return
    with open(prefix + ".log") as log:
        suite.true("the example of the README has no warning", "warning" not in log.read())
    check_png(suite, prefix + "-image.png")
    y, x = np.mgrid[:128, :128] - 64

    def mean(image, about, least, most):
        radius = np.hypot(x - about[0], y - about[1])
        return image[(radius >= least) & (radius < most)].mean()

    dirty, spot = read_image(prefix + "-dirty.fits")[0].squeeze(), (2, 4)
    suite.below("dirty: inside / ring", mean(dirty, spot, 0, 8) / mean(dirty, spot, 19, 23), 0.3)
    suite.below("dirty: outside / ring", mean(dirty, spot, 34, 40) / mean(dirty, spot, 19, 23), 0.6)
    image, middle = read_image(prefix + "-image.fits")[0].squeeze(), (1, 2)
    rings = [mean(image, middle, r, r + 2) for r in range(0, 40, 2)]
    suite.below("radius of the ring, from 21", abs(2 * int(np.argmax(rings)) + 1 - 21), 3)
    suite.below("inside / ring", rings[0] / max(rings), 0.65)
    suite.below("outside / ring", rings[-1] / max(rings), 0.25)
    on_ring = np.abs(np.hypot(x - middle[0], y - middle[1]) - 21) < 6
    suite.below("North / South", image[on_ring & (y > 2)].mean() / image[on_ring & (y < 2)].mean(),
                0.7)
    # Briggs weighting gives the same flux
    suite.below("flux / 0.5 Jy - 1", abs(read_image(prefix + "-model.fits")[0].sum() / 0.5 - 1), 0.05)


def check_png(suite, path):
    if suite.true(f"PNG made: {os.path.basename(path)}", os.path.exists(path)):
        with open(path, "rb") as f:
            start = f.read(24)
        suite.equal("PNG signature", start[:8], b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", start[16:24])
        suite.true(f"PNG of {width} x {height}", min(width, height) >= 256)


if __name__ == "__main__":
    main()
