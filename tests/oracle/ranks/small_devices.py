#!/usr/bin/env python3
"""Devices that are too small for the sums of all bricks make images and predictions in
parts, the same to rounding, each rank by what its own device has; and one that has no room
for the images themselves is a clear error that leaves nothing behind.

Devices are emulated (TESS_CUDA=EMULATED), with the bytes of memory that TESS_EMULATED says.
"""
import os
import re
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import ASEC, Suite, forced, l2_error, mpi_environment, mpiexec, read_image, skip, tessera
import uvfits

LARGE, SMALL, TINY = 10 ** 12, 2500000, 300000
# Images of 2048^2 pixels in double precision and a plane are taken to need 1.201e9 bytes on one
# device, and 1.168e9 on each of two that share them.
SHARED = 1185 * 10 ** 6
# Too small for whole images, for which 1e9 bytes are to be free beside them; large enough for all
# sums of bricks.
THROUGH_HOST = 2 * 10 ** 8
# Sums of a few thousand values in single precision, in two orders (see any_ranks.py).
ROUNDING = 3e-6
IN_PARTS = "transformed in parts"
SEVERAL_BLOCKS = forced(block_planes=2)

# (label, bytes of the devices, ranks, options)
CASES = [
    ("one block of planes", SMALL, 1, []),
    ("several blocks", SMALL, 1, SEVERAL_BLOCKS),
    ("one brick at a time", 1600000, 1, []),
    ("samples in sets", f"{SMALL}:1500000", 1, []),
    ("IQ, Briggs weights", 3 * SMALL, 1, ["--stokes", "I,Q", "--weight", "briggs:0"]),
    ("cleaned, samples in sets", f"{LARGE}:3500000", 1, ["--niter", "20", "--nmiter", "2"]),
    ("double precision", 2 * SMALL, 1, ["--accuracy", "1e-7"]),
    ("passes over the data", SMALL, 1, [*forced(passes=3), *SEVERAL_BLOCKS]),
    ("with checkpoints", SMALL, 1, ["--checkpoint", "WORK/saved", *SEVERAL_BLOCKS]),
    ("two ranks", SMALL, 2, []),
    ("one of two is small", f"{SMALL},{LARGE}", 2, []),
    ("one of three is small", f"{SMALL},{LARGE},{LARGE}", 3, []),
    ("two share planes, one is small", f"{LARGE},{SMALL}", 2,
     [*forced(passes=2), *SEVERAL_BLOCKS]),
]


def make_observation(suite):
    rng = np.random.default_rng(4)
    rows, channels = 2000, 4
    uvw = uvfits.random_tracks(rows, 900.0, 2.5, seed=8)
    shape = (rows, channels, 4)
    vis = 1 + 0.3 * (rng.normal(size=shape) + 1j * rng.normal(size=shape))
    path = suite.path("obs.uvfits")
    uvfits.write(path, uvw, 1.2e9 + 4e7 * np.arange(channels), vis,
                 rng.uniform(0.5, 2, shape))
    return path


def run(devices, *args, ranks=1, env=None):
    overwrite = ["--overwrite"] if args[0] != "plan" else []
    return tessera(*args, "--backend", "cuda", *overwrite, ranks=ranks,
                   env={**mpi_environment(), "TESS_EMULATED": str(devices), **(env or {})})


def image(suite, obs, name, devices, *options, ranks=1):
    """The run, and its images."""
    prefix = suite.path(name)
    result = run(devices, "image", obs, "--size", "200,160", "--scale", "25asec", "--threads",
                 "1", "--weight", "natural", *options, "-o", prefix, ranks=ranks)
    names = sorted(n for n in os.listdir(suite.work)
                   if n.startswith(name + "-") and n.endswith(".fits"))
    images = {n[len(name):]: read_image(suite.path(n))[0] for n in names}
    for n in names:
        os.remove(suite.path(n))
    return result, images


def check_images(suite, obs):
    for label, devices, ranks, options in CASES:
        if ranks > 1 and not mpiexec():
            continue
        options = [o.replace("WORK", suite.work) for o in options]
        result, wanted = image(suite, obs, "large", LARGE, *options, ranks=ranks)
        suite.ran(f"{label}: large devices", result)
        suite.true(f"{label}: there all sums have room", IN_PARTS not in result.err)
        result, found = image(suite, obs, "small", devices, *options, ranks=ranks)
        suite.ran(f"{label}: small devices", result)
        suite.true(f"{label}: parts are told of", IN_PARTS in result.err)
        if "--niter" in options:
            suite.equal(f"{label}: images and visibilities are told to stay in host memory, once each",
                        result.err.count("they stay in host memory"), 2)
        suite.equal(f"{label}: images", list(found), list(wanted))
        for kind in found:
            limit = 1e-11 if "1e-7" in options else ROUNDING
            suite.below(f"{label} {kind}: L2", l2_error(found[kind], wanted[kind]), limit)


def check_weights(suite, obs):
    """What headers tell of weights is the same where they are in the memory of a device."""
    for weight in ("natural", "briggs:0"):
        told = []
        for backend in ("cpu", "cuda"):
            result = tessera("image", obs, "--size", "200", "--scale", "25asec", "--weight", weight, "--wsclean-files",
                             "--overwrite", "-o", suite.path("weights"), "--backend", backend,
                             env={**mpi_environment(), "TESS_EMULATED": str(LARGE)})
            if suite.ran(f"{weight} weights, {backend}", result):
                header = read_image(suite.path("weights-dirty.fits"))[1]
                told.append([header[k] for k in ("WSCENVIS", "WSCIMGWG", "WSCVWSUM")])
        suite.below(f"{weight} weights: keywords of a device", np.abs(np.divide(*told) - 1).max(), 1e-6)


def device_bytes(result):
    """Most memory of a device that the log of a run tells, 0 where it tells none."""
    found = re.search(r"of its GPU ([0-9.]+) ([KMG]iB)", result.err)
    return float(found[1]) * 1024 ** (1 + "KMG".index(found[2][0])) if found else 0


def check_shared(suite, obs):
    """Images and planes that are too large for each of two devices, which share them: each
    takes half of the memory and 3 tenths, for sums of bricks and lines on their way. In the
    corners the correction of the taper makes rounding larger than in the images above."""
    if not mpiexec():
        return
    options = ["--size", "2048", "--scale", "3asec", "--no-psf", "-v", "--accuracy", "1e-7"]
    result, wanted = image(suite, obs, "large", LARGE, *options)
    suite.ran("shared: one large device", result)
    alone = device_bytes(result)
    suite.true("shared: the log tells the memory of the device", alone > 8 * 2048 ** 2)
    result, found = image(suite, obs, "small", SHARED, *options, ranks=2)
    suite.ran("shared: two small devices", result)
    suite.true("shared: they say so", "devices share w-planes" in result.err)
    suite.true("shared: and what bounds the stream of rows",
               re.search(r"busy: readers \d+ %, link \d+ %, device \d+ %; bound by the", result.err))
    suite.below("shared: memory of a device over that of one", device_bytes(result) / alone,
                1.3 / 2)
    suite.below("shared: L2", l2_error(found["-dirty.fits"], wanted["-dirty.fits"]), 1e-10)


def check_shared_through_host(suite, obs):
    """The same where samples pass through memory of the host: several outputs, and predictions in
    another precision than that of the file."""
    if not mpiexec():
        return
    pixels = ["--accuracy", "1e-7", "-v"]
    options = ["--size", "1024", "--scale", "6asec", "--no-psf", "--channels-out", "2", *pixels]
    _, wanted = image(suite, obs, "large", LARGE, *options)
    result, found = image(suite, obs, "small", THROUGH_HOST, *options, ranks=2)
    check_shares(suite, "channels through the host", result)
    suite.equal("channels through the host: images", list(found), list(wanted))
    for kind in found:
        suite.below(f"channels through the host {kind}: L2", l2_error(found[kind], wanted[kind]), 1e-10)
    model = np.zeros((1024, 1024))
    model[340, 451], model[700, 900] = 1.0, 2.5
    path = uvfits.write_model(suite.path("model.fits"), model, 6 * ASEC)
    vis = []
    for room, ranks in ((LARGE, 1), (THROUGH_HOST, 2)):
        out = suite.path("predicted.uvfits")
        result = run(room, "predict", obs, "--model", path, *pixels, "-o", out, ranks=ranks)
        if not suite.ran(f"prediction through the host, {ranks} ranks", result):
            return
        vis.append(uvfits.read(out)[2])
    check_shares(suite, "prediction through the host", result)
    error = np.linalg.norm(vis[1] - vis[0]) / np.linalg.norm(vis[0])
    suite.below("prediction through the host: L2", error, 1e-7)


def check_scales(suite, obs):
    """Two devices share the scales of minor loops if each has room for those of the whole image."""
    if not mpiexec():
        return
    clean = ["--size", "100,80", "--multiscale", "--niter", "3", "--nmiter", "1", "-v", *forced(device_rows=1)]
    result, _ = image(suite, obs, "lacks", f"{LARGE}:20000", *clean)
    found = re.search(r"they would take ([0-9.]+) KiB of the device", result.err)
    if not suite.true("what minor loops take is told", found):
        return
    room = int(1.5 * float(found[1]) * 2 ** 10)
    result, _ = image(suite, obs, "scales", f"{LARGE}:{room}", *clean, ranks=2)
    suite.ran("room for the image on each of two devices", result)
    suite.true("its scales are shared", "2 devices share the scales" in result.err)


def check_lent(suite, obs):
    """Buffers that devices have lent each other are taken from their room once: images that are cleaned live on
    devices that have room for them, for their planes and once for buffers."""
    if not mpiexec():
        return
    args = ["--size", "512", "--scale", "12asec", "--accuracy", "1e-7", "--reproducible",
            "--niter", "2", "--nmiter", "1"]
    plan = run(LARGE, "plan", obs, *args, ranks=2)
    found = re.search("([0-9]+) MiB images and minor loops", plan.out)
    if not suite.true("what images take is told", found):
        return
    # device_share.c: images, PSFs and models; buffers of two times a device's share of an image
    share = 16 * 512 ** 2 / 2
    planes, buffers = share * (0.5 * 3 + 2.5) + 1e9, 2 * share
    # half as much as buffers is for samples, less than 200 bytes for each of 4000, and for whole MiB
    result, _ = image(suite, obs, "lent", int(float(found[1]) * 2 ** 20 + planes + 1.5 * buffers), *args, ranks=2)
    suite.ran("buffers are lent", result)
    suite.true("room for images beside buffers that are lent", "no room for images that" not in result.err)


def check_divided(suite, obs):
    """Ranks with one device divide its memory, and plan with their parts."""
    if not mpiexec():
        return
    args = ["--size", "200,160", "--scale", "25asec", "--niter", "20"]
    for ranks, devices, part in ((2, f"{8 << 30}", 4), (3, f"{8 << 30},{12 << 30}", 4)):
        plan = run(devices, "plan", obs, *args, ranks=ranks, env={"TESS_EMULATED_SHARED": "1"})
        suite.ran(f"{ranks} ranks, devices of {devices}", plan)
        told = re.search(r"GPU memory +about \d+ MiB of ([0-9.]+) GiB", plan.out)
        suite.below(f"{ranks} ranks, devices of {devices}: {told[1]} less {part} GiB", abs(float(told[1]) - part), .01)


def check_shares(suite, label, result):
    suite.ran(label, result)
    suite.true(f"{label}: the devices share planes", "devices share w-planes" in result.err)
    suite.true(f"{label}: which are not transformed in parts", IN_PARTS not in result.err)


def check_flat(suite, obs):
    """Images of fewer rows than an exchange has room for: the rows of all slabs of lines, of a
    rank that has more rows than the mean, are what it sends at most."""
    if not mpiexec():
        return
    options = ["--size", "63,5", "--reproducible", "--niter", "3", "-v"]
    _, wanted = image(suite, obs, "one", LARGE, *options)
    for ranks in (2, 3, 4):
        result, found = image(suite, obs, "flat", LARGE, *options, ranks=ranks)
        check_shares(suite, f"flat images, {ranks} ranks", result)
        suite.true(f"flat images, {ranks} ranks: the same",
                   list(found) == list(wanted) and all(np.array_equal(found[k], wanted[k])
                                                       for k in wanted))


def check_prediction(suite, obs):
    model = np.zeros((160, 160))
    model[40, 51], model[80, 80], model[120, 15] = 1.0, -0.4, 2.5
    path = uvfits.write_model(suite.path("model.fits"), model, 25 * ASEC)
    for options in ([], SEVERAL_BLOCKS):
        for ranks, devices in ((1, SMALL), (2, f"{SMALL},{LARGE}")):
            if ranks > 1 and not mpiexec():
                continue
            label = f"prediction, {ranks} ranks {' '.join(options)}"
            vis = []
            for room in (LARGE, devices):
                out = suite.path("predicted.uvfits")
                result = run(room, "predict", obs, "--model", path, *options, "-o", out,
                             ranks=ranks)
                if not suite.ran(label, result):
                    return
                suite.equal(f"{label}: in parts", IN_PARTS in result.err, room != LARGE)
                vis.append(uvfits.read(out)[2])
            error = np.linalg.norm(vis[1] - vis[0]) / np.linalg.norm(vis[0])
            suite.below(f"{label}: L2", error, ROUNDING)


def check_moved(suite, obs):
    """A run that is stopped on a machine with a GPU goes on on one without, and the other way, to about
    the same residual image."""
    there = {**mpi_environment(), "TESS_EMULATED": str(LARGE)}
    here = {k: v for k, v in there.items() if k != "TESS_EMULATED"}
    args = ["image", obs, "--size", "200,160", "--scale", "25asec", "--threads", "1", "--niter", "20", "--nmiter", "2",
            "--backend", "auto"]
    suite.ran("all on the processor", tessera(*args, "-o", suite.path("unmoved"), env=here))
    wanted = read_image(suite.path("unmoved-residual.fits"))[0]
    for label, first, second in (("from a GPU", there, here), ("to a GPU", here, there)):
        kept = [*args, "-o", suite.path("moved"), "--checkpoint", suite.path(label.replace(" ", "-")), "--resume"]
        for _ in range(30):  # each goes on for a few planes
            stopped = tessera(*kept, "--overwrite", "--max-time", "0.001s", env=first)
            if stopped.status != 75 or "major 1:" in stopped.err:
                break
        suite.ran(f"{label}: stopped", stopped, 75)
        suite.true(f"{label}: behind a minor loop", "major 1:" in stopped.err)
        result = tessera(*kept, "--overwrite", env=second)
        suite.ran(f"{label}: continued", result)
        suite.true(f"{label}: from the checkpoint", "continuing from checkpoint" in result.err)
        suite.below(f"{label}: residual image, L2",
                    l2_error(read_image(suite.path("moved-residual.fits"))[0], wanted), 1e-4)


def check_errors(suite, obs):
    result, images = image(suite, obs, "none", TINY)
    suite.equal("no room at all: status", result.status, 4)
    suite.equal("no room at all: lines", len(result.errors()), 1)
    suite.true("no room at all: says so", "no device memory for" in result.err)
    suite.equal("no room at all: nothing is left", images, {})
    result, images = image(suite, obs, "none", SMALL, "--reproducible")
    suite.equal("never in parts when reproducible: status", result.status, 4)
    suite.equal("never in parts when reproducible: lines", len(result.errors()), 1)
    if mpiexec():
        result, images = image(suite, obs, "none", f"{LARGE},{TINY}", ranks=2)
        suite.equal("none on one of two: status", result.status, 4)


def main():
    suite = Suite("small_devices")
    obs = make_observation(suite)
    result, _ = image(suite, obs, "there", LARGE)
    if result.status == 4:
        skip("no emulated device in this build")
    check_images(suite, obs)
    check_weights(suite, obs)
    check_shared(suite, obs)
    check_shared_through_host(suite, obs)
    check_flat(suite, obs)
    check_scales(suite, obs)
    check_lent(suite, obs)
    check_divided(suite, obs)
    check_prediction(suite, obs)
    check_moved(suite, obs)
    check_errors(suite, obs)
    suite.finish()


if __name__ == "__main__":
    main()
