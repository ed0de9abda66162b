#!/usr/bin/env python3
"""Two observations with exact images (direct sums in double, numpy): a VLA-D snapshot
series and a wide-band MeerKAT core; natural, uniform, Briggs, PSF, cube, prediction.

Limits: at --accuracy 1e-10 the image is within 1e-10 (relative L2) of the direct sum, whose
own rounding is near 1e-15; a predicted visibility is single precision in its file, 6e-8.
"""
import os
import sys
import tarfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import Suite, data_folder, have_ms, l2_error, read_image, tessera
import uvfits

# Case, size, pixel, and (weight, expected image) of each.
CASES = {
    "case-a": (("192,160", "10asec"),
               [("natural", "dirty_natural"), ("uniform", "dirty_uniform_w232x192"),
                ("briggs:0", "dirty_briggs0_w232x192")]),
    "case-c": (("160", "15asec"),
               [("natural", "dirty_natural"), ("briggs:0", "dirty_briggs0_w192x192")]),
}
ACCURACY = 1e-10


def unpack(suite, folder, case):
    with tarfile.open(os.path.join(folder, case + ".ms.tgz")) as archive:
        top = archive.getnames()[0].split("/")[0]
        archive.extractall(suite.work)
    return suite.path(top)


def check_images(suite, case, obs, form, expected):
    (size, scale), rows = CASES[case]
    for weight, name in rows:
        label = f"{case}-{form}-{weight.replace(':', '')}"
        ran, prefix = suite.image(label, obs, "--size", size, "--scale", scale,
                                  "--weight", weight, "--accuracy", str(ACCURACY))
        if not ran:
            continue
        image, _ = read_image(prefix + "-dirty.fits")
        suite.below(f"{label}: L2 error", l2_error(image, expected[f"out_{name}"]), ACCURACY)
        if weight == "natural" and "out_psf_natural" in expected:
            psf, _ = read_image(prefix + "-psf.fits")
            suite.below(f"{label}: PSF L2 error",
                        l2_error(psf, expected["out_psf_natural"]), ACCURACY)


def check_cube(suite, obs, expected):
    """One image per channel; the flagged channel, zeros there, is NaN and says so."""
    (size, scale), _ = CASES["case-c"]
    ran, prefix = suite.image("cube", obs, "--size", size, "--scale", scale, "--weight",
                              "natural", "--accuracy", str(ACCURACY), "--channels-out", "12",
                              "--no-psf")
    if not ran:
        return
    for k, (plane, sum_weights) in enumerate(zip(expected["out_dirty_natural_cube"],
                                                 expected["chan_sumwt"])):
        image, header = read_image(f"{prefix}-{k:04d}-dirty.fits")
        if sum_weights > 0:
            suite.below(f"cube {k}: L2 error", l2_error(image, plane), ACCURACY)
            suite.below(f"cube {k}: SUMWT", abs(header["SUMWT"] / sum_weights - 1), 1e-6)
        else:
            suite.true(f"cube {k}: empty channel is NaN", np.isnan(image).all())
            suite.equal(f"cube {k}: SUMWT", header["SUMWT"], 0.0)
        suite.below(f"cube {k}: frequency", abs(header["CRVAL3"] / expected["freq"][k] - 1),
                    1e-12)
    mean, _ = read_image(prefix + "-MFS-dirty.fits")
    suite.below("cube mean: L2 error", l2_error(mean, expected["out_dirty_natural"]),
                ACCURACY)


def check_prediction(suite, case, folder, obs, expected):
    out = suite.path(case + "-predicted.uvfits")
    result = tessera("predict", obs, "--model", os.path.join(folder, case + "-model.fits"),
                     "--accuracy", "1e-7", "-o", out)
    if not suite.ran(f"predict {case}", result):
        return
    uvw, _, vis, _, codes = uvfits.read(out)
    suite.equal(f"{case} predicted: correlations", list(codes[:2]), [-5, -6])
    wanted = expected["predict"]
    known = np.isfinite(wanted)
    error = (np.linalg.norm((vis[..., 0] - wanted)[known])
             / np.linalg.norm(wanted[known]))
    suite.below(f"{case} predicted: L2 error", error, 1e-7 + 6e-8)
    suite.below(f"{case} predicted: uvw moved [m]",
                np.abs(uvw - expected["uvw"]).max(), 1e-9)


def main():
    folder = data_folder("oracle", "cases")
    suite = Suite("oracle_cases")
    for case in CASES:
        here = os.path.join(folder, case)
        expected = np.load(os.path.join(here, case + ".npz"))
        obs = os.path.join(here, case + ".uvfits")
        check_images(suite, case, obs, "uvfits", expected)
        if have_ms():
            check_images(suite, case, unpack(suite, here, case), "ms", expected)
        check_prediction(suite, case, here, obs, expected)
        if case == "case-c":
            check_cube(suite, obs, expected)
    suite.finish()


if __name__ == "__main__":
    main()
