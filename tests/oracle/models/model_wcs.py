#!/usr/bin/env python3
"""Model images whose reference pixel lies anywhere: inside or outside the image, at the
centre of a pixel or between pixels.

Predictions and residuals are compared with direct sums over the pixels' positions, which
astropy finds in the header. Predictions are stored in single precision: 6e-8.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import ASEC, Suite, fits_module, forced, l2_error, mpiexec, read_image, skip, tessera
from fields_and_cubes import IMAGE, LIMIT, SCALE, Samples
import uvfits

STORED = 6e-8
EPS = 1e-8
RANKS = (1, 3) if mpiexec() else (1,)
# Shifts of the reference pixel from the middle [pixels], and sizes.
CASES = [((0.0, 0.0), (48, 40)), ((0.5, -0.5), (48, 40)), ((0.3137, 0.25), (31, 45)),
         ((11.0, -7.0), (48, 40)), ((-17.61, 19.5), (33, 32)), ((60.25, 80.0), (20, 21)),
         ((0.4, 0.0), (1, 1))]


def rel_l2(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def check_direct_sum(suite, path, shift, scale):
    """The test's own idea of where pixels are is astropy's."""
    from astropy.wcs import WCS
    with fits_module().open(path) as hdus:
        header = hdus[0].header
    wcs = WCS(header).celestial
    ra, dec = wcs.wcs_pix2world([0.0], [0.0], 0)
    ra0, dec0 = np.deg2rad(header["CRVAL1"]), np.deg2rad(header["CRVAL2"])
    ra, dec = np.deg2rad(ra[0]), np.deg2rad(dec[0])
    l = np.cos(dec) * np.sin(ra - ra0)
    m = np.sin(dec) * np.cos(dec0) - np.cos(dec) * np.sin(dec0) * np.cos(ra - ra0)
    nx, ny = header["NAXIS1"], header["NAXIS2"]
    away = np.hypot(l - (nx // 2 + shift[0]) * scale, m + (ny // 2 + shift[1]) * scale)
    suite.below("first pixel's place by astropy [pixels]", away / scale, 1e-6)


def check_prediction(suite, s):
    """Every shift, on one and several ranks, planes whole and in slabs; a wide field, in
    which an error of place would show in n as well."""
    scale = 400 * ASEC
    rng = np.random.default_rng(3)
    for k, (shift, (nx, ny)) in enumerate(CASES):
        image = rng.normal(size=(ny, nx))
        path = uvfits.write_model(suite.path(f"model{k}.fits"), image, scale, shift=shift)
        check_direct_sum(suite, path, shift, scale)
        wanted = uvfits.direct_predict(s.uvw, s.freq, image, scale, shift)
        for ranks in RANKS:
            for slabs in ([], forced(fft_ranks=3))[:2 if ranks == 3 else 1]:
                out = suite.path("predicted.uvfits")
                result = tessera("predict", s.path, "--model", path, "--accuracy", str(EPS),
                                 "--threads", "1", "--overwrite", "-o", out, *slabs,
                                 ranks=ranks)
                label = f"{nx} x {ny}, shift {shift}, {ranks} ranks {' '.join(slabs)}"
                if suite.ran(label, result):
                    vis = uvfits.read(out)[2]
                    suite.below(label, rel_l2(vis[..., 0], wanted), STORED + EPS)


def check_stokes(suite):
    """Four Stokes planes, shifted."""
    s = Samples(suite, "four", rows=200, corrs=4)
    rng = np.random.default_rng(5)
    shift, scale = (-3.3, 5.75), 100 * ASEC
    image = rng.normal(size=(4, 24, 30))
    path = uvfits.write_model(suite.path("iquv.fits"), image, scale, shift=shift)
    out = suite.path("iquv.uvfits")
    result = tessera("predict", s.path, "--model", path, "--accuracy", str(EPS), "-o", out)
    if not suite.ran("IQUV", result):
        return
    i, q, u, v = (uvfits.direct_predict(s.uvw, s.freq, p, scale, shift) for p in image)
    vis = uvfits.read(out)[2]
    for k, (name, wanted) in enumerate((("XX", i + q), ("YY", i - q), ("XY", u + 1j * v),
                                        ("YX", u - 1j * v))):
        suite.below(f"IQUV shifted: {name}", rel_l2(vis[..., k], wanted), 2 * STORED + EPS)


def check_subtract(suite):
    """A cutout of other size and reference pixel is subtracted where it belongs."""
    s = Samples(suite, "cutout", rows=600)
    rng = np.random.default_rng(7)
    shift = (9.5, -4.25)
    image = rng.normal(size=(17, 22))
    path = uvfits.write_model(suite.path("cutout.fits"), image, SCALE, shift=shift)
    model = uvfits.direct_predict(s.uvw, s.freq, image, SCALE, shift)
    s.i = s.i - model
    expected = s.dirty()
    # prediction and imaging each have the accuracy asked for
    size = 1 + np.linalg.norm(model) / np.linalg.norm(s.i)
    for ranks in RANKS:
        ran, prefix = suite.image(f"cutout{ranks}", s.path, *IMAGE, "--subtract", path,
                                  ranks=ranks)
        if ran:
            found, _ = read_image(prefix + "-dirty.fits")
            suite.below(f"cutout subtracted on {ranks} ranks", l2_error(found, expected),
                        (1 + size) * LIMIT)


def check_refused(suite, s):
    """What a shift cannot mend is refused, and said."""
    image = np.ones((20, 20))
    scale = 400 * ASEC
    elsewhere = uvfits.write_model(suite.path("elsewhere.fits"), image, scale, ra_deg=60.5)
    far = uvfits.write_model(suite.path("far.fits"), image, scale, shift=(1100.0, 0.0))
    oblong = uvfits.write_model(suite.path("oblong.fits"), image, scale, shift=(0.5, 0.5))
    with fits_module().open(oblong, mode="update") as hdus:
        hdus[0].header["CDELT2"] *= 1.5
    for path, word in ((elsewhere, "phase centre"), (far, "half-sky"), (oblong, "square")):
        for ranks in RANKS:
            out = suite.path("refused.uvfits")
            result = tessera("predict", s.path, "--model", path, "-o", out, ranks=ranks)
            suite.ran(f"{path[len(suite.work) + 1:]} on {ranks} ranks", result, 3)
            errors = result.errors()
            suite.true("one line that says why", len(errors) == 1 and word in errors[0])


def main():
    try:
        import astropy.wcs  # noqa: F401
    except ImportError:
        skip("astropy is not installed")
    suite = Suite("model_wcs")
    s = Samples(suite, "track", rows=300)
    check_prediction(suite, s)
    check_stokes(suite)
    check_subtract(suite)
    check_refused(suite, s)
    suite.finish()


if __name__ == "__main__":
    main()
