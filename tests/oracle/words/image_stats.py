#!/usr/bin/env python3
"""tessera stats against numpy: images with a beam, with blank pixels, of several planes."""
import os
import re
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import Suite, fits_module, tessera

BEAM = (12 / 3600, 8 / 3600, 30.0)  # degrees
CELL = 2 / 3600


def write(path, data, unit, beam=BEAM):
    header = fits_module().Header()
    for axis, (kind, value, pixel, step, name) in enumerate((
            ("RA---SIN", 60, 33, -CELL, "deg"), ("DEC--SIN", -30, 25, CELL, "deg"),
            ("FREQ", 1.4e9, 1, 1e6, "Hz"), ("STOKES", 1, 1, 1, "")), 1):
        header.update({f"CTYPE{axis}": kind, f"CRVAL{axis}": value, f"CRPIX{axis}": pixel,
                       f"CDELT{axis}": step, f"CUNIT{axis}": name})
    header["BUNIT"] = unit
    if beam:
        header.update(dict(zip(("BMAJ", "BMIN", "BPA"), beam)))
    fits_module().writeto(path, data[None].astype("f4"), header)
    return path


def numbers(text):
    """Label and first number of each line, in Jy where the unit is one."""
    units = {"Jy": 1, "mJy": 1e-3, "uJy": 1e-6, "nJy": 1e-9}
    found = {}
    for line in text.splitlines():
        match = re.match(r"  ([a-z ]+?)  +(\S+)(?: (\w+))?", line)
        if match:
            found[match[1]] = float(match[2]) * units.get(match[3], 1)
    return found


def check_plane(suite, what, text, plane, unit):
    good = plane[np.isfinite(plane)].astype(float)
    noise = 1.4826 * np.median(np.abs(good - np.median(good)))
    beam = np.pi / (4 * np.log(2)) * BEAM[0] * BEAM[1] / CELL ** 2
    expected = {"peak": good.max(), "minimum": good.min(), "rms": np.sqrt(np.mean(good ** 2)),
                "noise": noise, "dynamic range": good.max() / noise,
                "flux": good.sum() / (beam if unit == "Jy/beam" else 1)}
    found = numbers(text)
    for key, value in expected.items():
        suite.below(f"{what}: {key}, {value:.5g}", abs(found.get(key, np.nan) / value - 1), 5.1e-5)


def main():
    suite = Suite("image_stats")
    rng = np.random.default_rng(3)
    data = rng.normal(2e-4, 1e-3, (2, 48, 64)).astype("f4")
    data[0, 30, 40], data[1, 5, 6] = 1.5, .25
    data[1, :7, 50:] = np.nan
    for unit in ("Jy/beam", "Jy/pixel"):
        path = write(suite.path(unit[3:] + ".fits"), data, unit)
        made = tessera("stats", path)
        if not suite.ran(f"stats of {unit}", made):
            continue
        planes = made.out.split(path)[1:]
        suite.equal(f"{unit}: planes", len(planes), 2)
        for k, text in enumerate(planes):
            check_plane(suite, f"{unit}, plane {k}", text, data[k], unit)
        suite.true(f"{unit}: blank pixels are told", "98 of them blank" in planes[1]
                   and "blank" not in planes[0])
    # 8 pixels to the West and 6 to the North of 4h -30 deg, in SIN projection
    l, m = -(40 - 32) * np.deg2rad(CELL), (30 - 24) * np.deg2rad(CELL)
    ra = 60 + np.rad2deg(np.arctan2(l, np.cos(np.deg2rad(-30)) - m * np.sin(np.deg2rad(-30))))
    text = f"0{int(ra // 15)}:{int(ra / 15 % 1 * 60):02d}:{ra / 15 * 60 % 1 * 60:05.2f}"
    suite.true(f"position of the peak {text}, pixel 41,31", f"at {text} -29:59:48.0, pixel 41,31" in made.out)
    nothing = tessera("stats", write(suite.path("nan.fits"), np.full((1, 4, 4), np.nan), "Jy/beam", None))
    suite.true("an image of blanks", nothing.status == 0 and "16 of them blank" in nothing.out)
    suite.equal("a file that is not there", tessera("stats", suite.path("none.fits")).status, 3)
    suite.equal("no file", tessera("stats").status, 2)
    suite.finish()


if __name__ == "__main__":
    main()
