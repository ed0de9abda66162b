#!/usr/bin/env python3
"""Every row of the reference table: real observations imaged by WSClean 3.1.

Limits: dirty image and PSF to 1e-5 of the peak everywhere (the references were gridded
at 1e-6 and checked against direct sums at 5e-6 of the peak), WCS within 1e-3 pixels,
beam within 1e-4: the same fit, of PSFs that agree to 1e-5 (a fit that WSClean breaks off
after 500 steps passes on their difference a few times larger).
"""
import os
import re
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (FULL, Suite, beam_difference, data_folder, have_ms, peak_error,
                 read_image, wcs_difference)

WEIGHTS = {"nat": "natural", "br0": "briggs:0"}
# WSClean's fit collapsed to a beam 0.003 pixels wide, which tessera does not write.
BEAM_FAILED = {("ER6_SGRA_2017_096_lo_casa", "br0")}
BEAM_LIMIT = 1e-4
# A few of each instrument and format in the fast tier; all rows with --full.
FAST = ("SR1_M87_2017_095_lo", "SR1_M87_2017_101_hi", "ER6_SGRA", "hops", "BLLACMAY13",
        "3C273DEC16", "mojave", "vlba", "lofar", "ovro")


def table_rows(path):
    """The table's rows as dicts, Stokes of one run gathered."""
    runs = {}
    for line in open(path):
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if len(cells) != 10 or cells[2] not in WEIGHTS:
            continue
        name, pol, weight, size = cells[:4]
        run = runs.setdefault((name, weight), dict(pols={}, size=size))
        x, y = map(int, re.findall(r"\d+", cells[5]))
        ra, dec = map(float, cells[6].split())
        run["pols"][pol] = dict(peak=float(cells[4]), x=x, y=y, ra=ra, dec=dec)
    return runs


def find_observation(data, name):
    """Observation and options of a row's name."""
    if name.startswith("lofar-3C48"):
        column = "CORRECTED_DATA" if name.endswith("corrected") else "DATA"
        return os.path.join(data, "ms", "lofar-3C48-msss.ms"), ["--datacolumn", column]
    if name == "ovro-lwa-27MHz":
        return os.path.join(data, "ms", name + ".ms"), []
    files = os.listdir(os.path.join(data, "uvfits"))
    # The table leaves out what follows a name, and the declination of a source's name.
    short = {f: re.sub(r"(J\d{4})\+\d{4}", r"\1", f) for f in files}
    found = ([f for f in files if f in (name + ".UVP", name + ".uvfits")]
             or [f for f in files if short[f].startswith(name)])
    assert len(found) == 1, (name, found)
    return os.path.join(data, "uvfits", found[0]), []


def existing(prefix, *endings):
    """The first of the files that is there."""
    for ending in endings:
        if os.path.exists(prefix + ending):
            return prefix + ending
    return prefix + endings[0]


def check_image(suite, what, mine, theirs, peak=None):
    image, header = read_image(mine)
    reference, reference_header = read_image(theirs)
    suite.below(f"{what}: difference / peak", peak_error(image, reference), 1e-5)
    # The references' headers hold positions to 12 decimals of a degree.
    suite.below(f"{what}: WCS difference [pixel]",
                wcs_difference(header, reference_header, reference.shape),
                1e-3 + 1e-12 / header["CDELT2"])
    if peak:
        at = image[peak["y"], peak["x"]]
        suite.below(f"{what}: value at the listed peak", abs(at / peak["peak"] - 1), 2e-5)
        check_listed_position(suite, what, header, peak)
    return header, reference_header


def check_listed_position(suite, what, header, peak):
    from astropy.wcs import WCS
    ra, dec = WCS(header, fix=False).celestial.wcs_pix2world(peak["x"], peak["y"], 0)
    away = np.hypot(((ra - peak["ra"] + 180) % 360 - 180) * np.cos(np.deg2rad(dec)),
                    dec - peak["dec"])
    suite.below(f"{what}: listed RA, Dec [deg]", away, 2e-9)


def check_row(suite, data, name, weight, run):
    obs, options = find_observation(data, name)
    if obs.endswith(".ms") and not have_ms():
        return
    size, scale = (s.strip() for s in run["size"].split(" x "))
    pols = list(run["pols"])
    stokes = "".join(pols) if pols[0] in "IQUV" else ",".join(pols)
    label = f"{name}-{weight}"
    ran, prefix = suite.image(label, obs, "--size", size, "--scale", scale, "--weight",
                              WEIGHTS[weight], "--stokes", stokes, "--density", "first",
                              "--accuracy", "1e-6", *options)
    if not ran:
        return
    reference = os.path.join(data, "reference", label)
    for pol in pols:
        ending = f"-{pol}-dirty.fits" if len(pols) > 1 else "-dirty.fits"
        check_image(suite, f"{label} {pol}", prefix + ending, reference + ending,
                    run["pols"][pol])
    psf = existing(prefix, "-psf.fits", f"-{pols[0]}-psf.fits")
    headers = check_image(suite, f"{label} PSF", psf, reference + "-psf.fits")
    if (name, weight) not in BEAM_FAILED:
        suite.below(f"{label}: beam", beam_difference(*headers), BEAM_LIMIT)


def main():
    data = data_folder("data")
    suite = Suite("reference_images")
    for (name, weight), run in table_rows(os.path.join(data, "REFERENCE.md")).items():
        if FULL or name.startswith(FAST):
            check_row(suite, data, name, weight, run)
    suite.finish()


if __name__ == "__main__":
    main()
