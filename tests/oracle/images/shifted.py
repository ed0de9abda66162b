#!/usr/bin/env python3
"""--shift: an image beside the phase centre is a part of a larger one around it, in the same tangent plane,
on one and three ranks, also where --center has moved that plane. Its PSF is that of a source in its middle.
Models that are cleaned there are written to headers, lists and MODEL_DATA at their places, and subtracted
from there.

Limits: two images of accuracy 1e-5 each, which differ by less than 1e-4 of the peak at any pixel.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (ASEC, BACKEND, Suite, have_ms, mpiexec, offset_radec, peak_error, read_image, simulate, tessera,
                 write_sky)

RA, DEC, SCALE, SIZE, LARGE = 60.0, -30.0, 10.0, 160, 720
X, Y = 210, -170  # pixels to the East and to the North
SPOT = offset_radec(RA, DEC, X * SCALE * ASEC, Y * SCALE * ASEC)
SHIFT = ("--shift", f"{SPOT[0]:.12f}deg,{SPOT[1]:.12f}deg")
COMMON = ("--scale", f"{SCALE}asec", "--weight", "natural", "--accuracy", "1e-5")
CENTRE = ("--center", "60.3deg,-29.8deg")


def part(large):
    """The pixels of the shifted image in the large one."""
    column, row = LARGE // 2 - X - SIZE // 2, LARGE // 2 + Y - SIZE // 2
    return large[row:row + SIZE, column:column + SIZE]


def make_set(suite, extension):
    """Sources in and beside the shifted image."""
    rng = np.random.default_rng(7)
    sources = []
    for k in range(12):
        x, y = (X, Y) if k < 8 else (0, 0)
        dx, dy = rng.uniform(-.35 * SIZE, .35 * SIZE, 2)
        ra, dec = offset_radec(RA, DEC, (x + dx) * SCALE * ASEC, (y + dy) * SCALE * ASEC)
        sources.append(dict(ra=f"{ra:.9f}deg", dec=f"{dec:.9f}deg", flux_jy=round(10 ** rng.uniform(-1, .2), 4)))
    return simulate(suite.path("obs." + extension), write_sky(suite.path("sky.csv"), sources), layout="meerkat",
                    ra=f"{RA}deg", dec=f"{DEC}deg", start="2026-01-01T18:00:00", duration="6h", integration="900s",
                    freq="1.28GHz", width="20MHz", extra=("--antennas", "30", "--max-radius", "2km"))


def check_parts(suite, obs):
    for what, more in (("phase centre", ()), ("centre", CENTRE), ("no w", ("--w", "none"))):
        spot = offset_radec(60.3, -29.8, X * SCALE * ASEC, Y * SCALE * ASEC)
        shift = ("--shift", f"{spot[0]:.12f}deg,{spot[1]:.12f}deg") if more == CENTRE else SHIFT
        # of the first, where the telescope is pointed at the phase centre, the primary beam as well
        beam = () if more else ("--primary-beam", "meerkat")
        ran, large = suite.image("large", obs, *COMMON, "--size", LARGE, "--no-psf", *more, *beam)
        if not ran:
            continue
        whole, header = read_image(large + "-dirty.fits")
        for ranks in (1, 3) if mpiexec() and not more else (1,):
            ran, small = suite.image(f"small-{ranks}", obs, *COMMON, *shift, "--size", SIZE, *more, *beam, ranks=ranks)
            if not ran:
                continue
            if beam:
                own, whole_beam = (read_image(name + "-pb.fits")[0] for name in (small, large))
                suite.below(f"primary beam, {ranks} ranks", peak_error(own, part(whole_beam)), 1e-6)
            image, own = read_image(small + "-dirty.fits")
            if what != "no w":  # which gives the middle's phase to all of the image
                suite.below(f"{what}, {ranks} ranks: difference from the part / peak", peak_error(image, part(whole)), 1e-4)
            suite.equal(f"{what}, {ranks} ranks: reference position", (own["CRVAL1"], own["CRVAL2"]),
                        (header["CRVAL1"], header["CRVAL2"]))
            suite.below(f"{what}, {ranks} ranks: reference pixel",
                        max(abs(own["CRPIX1"] - (SIZE // 2 + 1 + X)), abs(own["CRPIX2"] - (SIZE // 2 + 1 - Y))), 1e-6)
            psf = read_image(small + "-psf.fits")[0]
            suite.below(f"{what}, {ranks} ranks: PSF in the middle", abs(psf[SIZE // 2, SIZE // 2] - 1), 1e-4)


def check_clean(suite, obs):
    """Cleaned images, and what their models become."""
    ran, made = suite.image("cleaned", obs, *COMMON, *SHIFT, "--size", SIZE, "--niter", 500, "--auto-threshold", 4,
                            "--save-source-list", *(("--update-model",) if obs.endswith(".ms") else ()))
    if not ran:
        return
    dirty, residual = (read_image(f"{made}-{kind}.fits")[0] for kind in ("dirty", "residual"))
    suite.below("residual / dirty", np.abs(residual).max() / np.abs(dirty).max(), .1)
    out = suite.path("restored.fits")
    if suite.ran("restore the list", tessera("restore", made + "-residual.fits", made + "-sources.txt", "-o", out)):
        suite.below("the list, restored: difference / peak",
                    peak_error(read_image(out)[0], read_image(made + "-image.fits")[0]), 1e-5)
    compare = [("--subtract of the same pixels", SHIFT, SIZE, ("--subtract", made + "-model.fits"))]
    if obs.endswith(".ms"):
        compare.append(("MODEL_DATA", SHIFT, SIZE, ("--subtract-column", "MODEL_DATA")))
        compare.append(("MODEL_DATA, large", (), LARGE, ("--subtract-column", "MODEL_DATA")))
    compare.append(("--subtract from a large image", (), LARGE, ("--subtract", made + "-model.fits")))
    drawn = suite.path("drawn.fits")
    if suite.ran("draw the list in a large image",
                 tessera("draw", made + "-sources.txt", "-o", drawn, "--size", LARGE, "--scale", f"{SCALE}asec", "--center",
                         f"{RA}deg,{DEC}deg")):
        compare.append(("--subtract of other pixels", SHIFT, SIZE, ("--subtract", drawn)))
    for what, shift, size, options in compare:
        ran, left = suite.image("left", obs, *COMMON, *shift, "--size", size, "--no-psf", *options)
        if ran:
            image = read_image(left + "-dirty.fits")[0]
            image = part(image) if size == LARGE else image
            suite.below(f"{what}: difference from the residual / peak",
                        np.abs(image - residual).max() / np.abs(dirty).max(), 1e-4)
    ran, again = suite.image("cleaned", obs, *COMMON, *SHIFT, "--size", SIZE, "--niter", 1000, "--auto-threshold", 4,
                             "--continue", "--preview")
    if ran:
        suite.true("a preview", os.path.exists(again + "-image.png"))
    suite.image("cleaned", obs, *COMMON, "--size", SIZE, "--niter", 9, "--continue", status=3)


def check_bad(suite, obs):
    for what, options, words in (("w-projection", ("--w", "projection", *SHIFT), "around the phase centre only"),
                                 ("the other side", ("--shift", "240deg,30deg"), "90 degrees or more"),
                                 ("no position", ("--shift", "60deg"), "--shift")):
        made = tessera("image", obs, *COMMON, "--size", SIZE, "-o", suite.path("bad"), *options)
        suite.equal(f"{what}: status", made.status, 2)
        suite.true(f"{what}: one line: {made.errors()}", len(made.errors()) == 1 and words in made.errors()[0])


def main():
    suite = Suite("shifted" + ("" if BACKEND == "cpu" else "_" + BACKEND))
    obs = make_set(suite, "ms" if have_ms() else "uvfits")
    check_parts(suite, obs)
    if have_ms():
        check_parts(suite, make_set(suite, "uvfits"))
    check_clean(suite, obs)
    check_bad(suite, obs)
    suite.finish()


if __name__ == "__main__":
    main()
