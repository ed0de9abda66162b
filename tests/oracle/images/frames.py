#!/usr/bin/env python3
"""Sets whose directions are in another frame than J2000 are the set in J2000, or refused:
phase centres, uvw, lists of sources; and images in other frames."""
import os
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (ASEC, MS_COLUMN, Suite, casacore_python, fits_module, have_ms, l2_error,
                 read_image, run, simulate, skip, tessera, write_sky)
import uvfits

IMAGE = ["--size", "48", "--scale", "60asec", "--weight", "natural", "--no-psf"]
# the accuracy of images is 1e-4 by default, and much better where plans are the same
LIMIT = 1e-5
MAS_DEG = 1 / 3.6e6
FOLDER = os.path.dirname(os.path.abspath(__file__))


class Frames:
    """Copies of a set in J2000, in other frames."""

    def __init__(self, suite, python):
        self.suite, self.python = suite, python
        # far from the centre, where turned uvw are seen
        self.sky = write_sky(suite.path("sky.csv"), [
            dict(name="A", ra="60.3deg", dec="-29.8deg", flux_jy=1),
            dict(name="B", ra="59.9deg", dec="-30.3deg", flux_jy=2)])
        self.list = suite.path("sky.txt")
        with open(self.list, "w") as f:
            f.write("Format = Name, Type, Ra, Dec, I\n"
                    "A, POINT, 04:01:12, -29.48.00, 1\nB, POINT, 03:59:36, -30.18.00, 2\n")
        self.base = simulate(suite.path("base.ms"), self.sky, duration="4min", channels=2)
        self.image = self.dirty("base", self.base)

    def dirty(self, name, *args):
        done, prefix = self.suite.image(name, *args, *IMAGE)
        return read_image(prefix + "-dirty.fits") if done else None

    def copy(self, way):
        """The set in a frame, and what the script says of it."""
        path = self.suite.path(way + ".ms")
        shutil.copytree(self.base, path)
        done = run([self.python, os.path.join(FOLDER, "ms_frame.py"), path, way], 60)
        self.suite.ran(f"{way} is made", done)
        return path, [float(word) for word in done.out.split()]

    def column(self, path, column):
        out = self.suite.path("column.npy")
        run([self.python, MS_COLUMN, path, column, out], 60)
        return np.load(out)

    def refused(self, what, says, *args):
        result = tessera(*args)
        self.suite.ran(what, result, 3)
        self.suite.true(f"{what}: says {says!r}", says in result.err)


def check_same(frames, what, made):
    """An image of a set in another frame is that of the set in J2000, which the header
    says: casacore's conversions to a frame and back close to .03 mas."""
    suite = frames.suite
    if made is None:
        return
    (pixels, header), (expected, reference) = made, frames.image
    suite.equal(f"{what}: RADESYS", header["RADESYS"], "FK5")
    for key in ("CRVAL1", "CRVAL2", "EQUINOX"):
        suite.below(f"{what}: {key}", abs(header[key] - reference[key]), 0.1 * MAS_DEG)
    suite.below(f"{what}: L2 error", l2_error(pixels, expected), LIMIT)


def check_sets(frames):
    suite, made, place = frames.suite, {}, {}
    for way in ("B1950", "GALACTIC", "ICRS"):
        made[way], place[way] = frames.copy(way)
        check_same(frames, way, frames.dirty(way, made[way]))
    codes, _ = frames.copy("codes")
    center = ["--center", "60deg,-30deg"]
    check_same(frames, "codes of rows", frames.dirty("codes", codes, *center))
    check_same(frames, "two sets", frames.dirty("two", frames.base, made["GALACTIC"]))
    result = tessera("predict", made["B1950"], "--model", frames.list, "--column", "LISTED")
    if suite.ran("a list, B1950", result):
        data = frames.column(made["B1950"], "DATA")
        listed = frames.column(made["B1950"], "LISTED")
        suite.below("a list, B1950", l2_error(listed, data), LIMIT)
    return place


def check_refused(frames):
    for way, says, *more in (("numbers-B1950", "--center", frames.base),
                             ("numbers-AZELGEO", "AZELGEO"), ("moves", "NUM_POLY"),
                             ("ephemeris", "EPHEMERIS_ID")):
        path, _ = frames.copy(way)
        out = frames.suite.path("refused")
        frames.refused(f"{way} is refused", says, "image", *more, path, *IMAGE, "-o", out)


def check_uvfits(frames, place):
    """The same samples at B1950 and at J2000; single precision has uvw by 6e-8."""
    suite, rng = frames.suite, np.random.default_rng(3)
    uvw, freq = uvfits.random_tracks(300, 450.0), 1e9 + 2e7 * np.arange(2)
    vis = rng.normal(size=(300, 2, 2)) + 1j * rng.normal(size=(300, 2, 2))
    c, s = np.cos(place[2]), np.sin(place[2])
    turned = uvw @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])
    same, other = suite.path("same.uvfits"), suite.path("other.uvfits")
    uvfits.write(same, uvw, freq, vis, np.ones(vis.shape), ra_deg=60.0, dec_deg=-30.0)
    uvfits.write(other, turned, freq, vis, np.ones(vis.shape), ra_deg=place[0],
                 dec_deg=place[1], cards={"EPOCH": 1950.0})
    made = [frames.dirty(f"uvfits{k}", path) for k, path in enumerate((same, other))]
    if all(made):
        (expected, _), (pixels, header) = made
        suite.equal("UVFITS of B1950: RADESYS", header["RADESYS"], "FK5")
        suite.below("UVFITS of B1950: place", abs(header["CRVAL1"] - 60) +
                    abs(header["CRVAL2"] + 30), 0.1 * MAS_DEG)
        suite.below("UVFITS of B1950: L2 error", l2_error(pixels, expected), 1e-5)


def check_images(frames):
    """Models in ICRS by their numbers, or 23 mas from them; none in FK4."""
    suite, model = frames.suite, frames.suite.path("model.fits")
    uvfits.write_model(model, np.ones((16, 16)), 60 * ASEC)
    predict = ["predict", frames.base, "--model", model, "--overwrite", "--column", "PIXELS"]
    fits_module().setval(model, "RADESYS", value="ICRS")
    suite.ran("a model in ICRS", tessera(*predict))
    fits_module().setval(model, "RADESYS", value="FK4")
    fits_module().setval(model, "EQUINOX", value=1950.0)
    frames.refused("a model in FK4 is refused", "J2000", *predict)


def main():
    python = casacore_python()
    if not have_ms() or not python:
        skip("needs MeasurementSets and casacore's Python module")
    frames = Frames(Suite("frames"), python)
    if frames.image is not None:
        check_uvfits(frames, check_sets(frames)["B1950"])
        check_refused(frames)
        check_images(frames)
    frames.suite.finish()


if __name__ == "__main__":
    main()
