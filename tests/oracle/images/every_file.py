#!/usr/bin/env python3
"""Every observation of the reference data opens; all-flagged ones say so; oddities (a
single cross-hand, empty WEIGHT_SPECTRUM, windows of different channel counts) are imaged.
Also `plan`, which runs nothing, and `compare`, which finds differences."""
import glob
import os
import sys
import tarfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (ASEC, Suite, data_folder, fits_module, have_ms, l2_error,
                 mpiexec, read_image, tessera)
import uvfits

ALL_FLAGGED = ("1133866760", "1131733552", "meerkat-cdfs-allflagged")


def check_info(suite, path):
    name = os.path.basename(path)
    result = tessera("info", path)
    if suite.ran(f"info {name}", result):
        suite.true(f"info {name} says something", len(result.out.splitlines()) > 5)
    if name.startswith(ALL_FLAGGED):
        result = tessera("image", path, "--size", 64, "--scale", "1amin", "-o",
                         suite.path("flagged"))
        suite.ran(f"image of {name}, all flagged", result, 3)
        suite.true(f"{name}: the line says so: {result.errors()}",
                   len(result.errors()) == 1 and "flagged" in result.errors()[0])


def check_single_cross_hand(suite, data):
    """PAPER has XY alone: two real images, against the direct sum."""
    path = os.path.join(data, "uvfits", "zen.2456865.60537.xy.uvcRREAAM.uvfits")
    uvw, freq, vis, weight, codes = uvfits.read(path)
    suite.equal("PAPER: correlations", list(codes), [-7])
    vis, weight = vis[..., 0], weight[..., 0]
    weight = np.where(np.isfinite(vis) & (weight > 0), weight, 0)
    weight[np.linalg.norm(uvw, axis=1) == 0] = 0      # autocorrelations
    vis = np.where(weight > 0, vis, 0)
    size, scale = 40, 1800 * ASEC
    ran, prefix = suite.image("paper", path, "--size", size, "--scale", "30amin",
                              "--weight", "natural", "--stokes", "XY", "--accuracy",
                              "1e-7")
    if not ran:
        return
    found = sorted(os.path.basename(f) for f in glob.glob(prefix + "*-dirty.fits"))
    suite.equal("PAPER: images", found, ["paper-XY-dirty.fits", "paper-XYi-dirty.fits"])
    for name, value in (("XY", vis), ("XYi", -1j * vis)):
        image, _ = read_image(f"{prefix}-{name}-dirty.fits")
        exact = uvfits.direct_dirty(uvw, freq, value, weight, size, size, scale)
        suite.below(f"PAPER {name}: L2 error", l2_error(image, exact), 1e-7)


def check_odd_sets(suite, data):
    with tarfile.open(os.path.join(data, "ms", "alma-mssel-small.ms.tgz")) as archive:
        top = archive.getnames()[0].split("/")[0]
        archive.extractall(suite.work)
    alma = suite.path(top)
    suite.ran("info of ALMA", tessera("info", alma))
    result = tessera("image", alma, "--size", 64, "--scale", "0.5asec", "-o",
                     suite.path("alma-all"))
    suite.ran("ALMA, two fields, without --field", result, 2)
    result = tessera("image", alma, "--field", "0", "--size", 64, "--scale", "0.5asec",
                     "-o", suite.path("alma-flagged"))
    suite.ran("ALMA, first field, all flagged", result, 3)
    for name, args in (("alma", [alma, "--field", "1", "--scale", "0.5asec"]),
                       ("bda", [os.path.join(data, "ms", "lofar-bda.ms"), "--scale",
                                "4asec"])):
        ran, prefix = suite.image(name, *args, "--size", 64, "--weight", "natural")
        if ran:
            image, _ = read_image(prefix + "-dirty.fits")
            suite.true(f"{name}: finite and not zero",
                       np.isfinite(image).all() and image.any())


def check_plan_and_compare(suite, data):
    path = os.path.join(data, "uvfits", "BLLACMAY13.UVP")
    options = [path, "--size", 128, "--scale", "30uas"]
    before = set(os.listdir(suite.work))
    for ranks in (1, 3) if mpiexec() else (1,):
        result = tessera("plan", *options, ranks=ranks, cwd=suite.work)
        suite.ran(f"plan on {ranks} ranks", result)
        suite.true("plan names planes, support and memory",
                   all(w in result.out.lower() for w in ("plane", "support", "memory")))
    suite.equal("plan writes nothing", set(os.listdir(suite.work)), before)
    ran, prefix = suite.image("compared", *options)
    if not ran:
        return
    dirty, other = prefix + "-dirty.fits", suite.path("other.fits")
    suite.ran("compare with itself", tessera("compare", dirty, dirty, "--rtol", "1e-7"))
    with fits_module().open(dirty) as hdus:
        hdus[0].data[..., 7, 9] += 1e-3 * np.abs(hdus[0].data).max()
        hdus.writeto(other)
    suite.ran("compare with a changed pixel",
              tessera("compare", dirty, other, "--rtol", "1e-5"), 5)
    suite.ran("compare within the tolerance",
              tessera("compare", dirty, other, "--rtol", "1e-5", "--atol", "1e3"))
    suite.ran("compare with a missing file",
              tessera("compare", dirty, suite.path("absent.fits")), 3)


def main():
    data = data_folder("data")
    suite = Suite("every_file")
    files = sorted(glob.glob(os.path.join(data, "uvfits", "*")))
    if have_ms():
        files += sorted(glob.glob(os.path.join(data, "ms", "*.ms")))
    for path in files:
        check_info(suite, path)
    check_single_cross_hand(suite, data)
    if have_ms():
        check_odd_sets(suite, data)
    check_plan_and_compare(suite, data)
    suite.finish()


if __name__ == "__main__":
    main()
