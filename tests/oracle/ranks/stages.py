#!/usr/bin/env python3
"""--dump-stages: what each stage of each output made is the same on one rank and on three,
with the data in memory and streamed; a changed sample is found where it first shows."""
import os
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import Suite, mpiexec, skip, tessera
import uvfits

ROWS, CHANNELS = 5000, 4
IMAGE = ["--size", "60,54", "--scale", "60asec", "--weight", "uniform"]


def observe(suite, name, spoil=False):
    rng = np.random.default_rng(3)
    shape = (ROWS, CHANNELS, 2)
    vis = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    if spoil:
        vis[:, 2:] *= 1.01          # the second output channel only
    path = suite.path(name + ".uvfits")
    uvfits.write(path, uvfits.random_tracks(ROWS, 400.0), 1e9 + 2e7 * np.arange(CHANNELS),
                 vis, 1.0)
    return path


def dump(suite, name, obs, *args, ranks=1):
    folder = suite.path("stages-" + name)
    ran, _ = suite.image(name, obs, *IMAGE, "--dump-stages", folder, *args, ranks=ranks)
    return folder if ran else None


def names_of(outputs):
    """Two maps of samples, and two stages of the dirty image and the PSF."""
    return sorted(f"{stage}-{output}-{k}.stage.fits" for output in outputs for k in (0, 1)
                  for stage in ("0-samples", "1-transformed", "2-corrected"))


def compare(suite, what, a, b, status=0):
    # Ranks change the order of sums, in single precision.
    result = tessera("compare", a, b, "--rtol", "1e-5", "--atol", "1e-5")
    suite.ran(what, result, status)
    return result


def check_outputs(suite, obs):
    for what, args, outputs in [
            ("one", [], ["t0000-0000"]),
            ("channels", ["--channels-out", "2"], ["t0000-0000", "t0000-0001"]),
            ("intervals", ["--intervals-out", "2"], ["t0000-0000", "t0001-0000"])]:
        one = dump(suite, what + "1", obs, *args)
        many = dump(suite, what + "3", obs, *args, ranks=3)
        # 20000 samples and 5000 rows, 48 bytes each, do not fit into a share of 700 kB
        streamed = dump(suite, what + "-streamed", obs, *args, "--memory", "700kB")
        with open(suite.path(what + "-streamed.log")) as f:
            text = f.read()
        suite.true(f"{what}: data are not kept",
                   "data are streamed" in text or "data are read again" in text)
        for folder in (one, many, streamed):
            if folder:
                suite.equal(f"{what}: files", sorted(os.listdir(folder)),
                            names_of(outputs))
        if one and many:
            compare(suite, f"{what}: one rank and three", one, many)
        if one and streamed:
            compare(suite, f"{what}: in memory and streamed", one, streamed)
    return suite.path("stages-channels1")


def check_difference(suite, good):
    """Of two output channels the second differs, from its samples on."""
    bad = dump(suite, "bad", observe(suite, "bad", spoil=True), "--channels-out", "2",
               ranks=3)
    if bad:
        result = compare(suite, "a changed channel", good, bad, 5)
        suite.true(f"is found first in its samples: {result.errors()}",
                   "0-samples-t0000-0001-1" in "".join(result.errors()))


def check_folder(suite, obs):
    folder = suite.path("stages-one1")
    args = ["image", obs, *IMAGE, "-o", suite.path("again"), "--dump-stages"]
    result = tessera(*args, folder, ranks=3)
    suite.ran("stages of another run", result, 3)
    suite.true(f"the line names --overwrite: {result.errors()}",
               "--overwrite" in "".join(result.errors()))
    shutil.copy(os.path.join(folder, names_of(["t0000-0000"])[0]),
                os.path.join(folder, "0-samples-t0007-0000-0.stage.fits"))
    suite.ran("stages replaced", tessera(*args, folder, "--overwrite"))
    suite.equal("none of the other run's is left", sorted(os.listdir(folder)),
                names_of(["t0000-0000"]))
    linked = suite.path("stages-linked")
    os.makedirs(linked)
    link = os.path.join(linked, names_of(["t0000-0000"])[0])
    os.symlink("theirs", link)
    suite.ran("somebody's link by the name of a stage",
              tessera("image", obs, *IMAGE, "-o", suite.path("linked"), "--dump-stages", linked,
                      ranks=3), 3)
    suite.true("the link is there", os.path.islink(link))
    suite.equal("nothing else is", os.listdir(linked), [os.path.basename(link)])
    suite.ran("it is replaced if asked for", tessera(*args, linked, "--overwrite"))
    suite.true("by an image", not os.path.islink(link) and os.path.isfile(link))
    result = tessera(*args, obs, "--overwrite")
    suite.ran("a file in place of the folder", result, 3)
    suite.true(f"the line says so: {result.errors()}",
               "is a file" in "".join(result.errors()))


def main():
    if not mpiexec():
        skip("no MPI launcher")
    suite = Suite("stages")
    obs = observe(suite, "good")
    check_difference(suite, check_outputs(suite, obs))
    check_folder(suite, obs)
    suite.finish()


if __name__ == "__main__":
    main()
