#!/usr/bin/env python3
"""--reproducible: the data of every image are the same, byte by byte, on any number of
ranks and threads, however the work is laid out. And they are as good as without it: their
relative L2 difference is a fifth of the accuracy asked for at most (see any_ranks.py).
--backend cuda: the same on any number of ranks that share one GPU or have their own.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (ASEC, BACKEND, FULL, Suite, forced, l2_error, mpi_environment, mpiexec,
                 read_image, skip, tessera)
import uvfits

# (ranks, options): how a run differs from that of one rank and one thread.
FAST = [(1, ["--threads", "2"]), (2, ["--threads", "2"]), (3, []), (4, [])]
LARGE = [(1, ["--threads", "3"]), (2, []), (3, []), (4, ["--threads", "2"]), (7, []),
         (16, [])]
# With a device each, ranks meet several times for every plane, and 16 on few processors mostly wait for their
# turns: they take 14 times the processor time of 4 (7 take twice). Two cases have so many.
MANY_DEVICES = ("natural", "channels")
# Many small parts of bricks, which ranks share; several bricks of planes.
CUT = forced(chunk=8, split=1, block_planes=2)

CASES = [
    ("natural", ["--weight", "natural"]),
    ("uniform, cut", ["--weight", "uniform", *CUT]),
    ("Briggs, IQUV, cut", ["--weight", "briggs:0", "--stokes", "IQUV", *CUT]),
    ("double", ["--weight", "briggs:0.5", "--accuracy", "1e-9", *CUT]),
    ("passes", ["--weight", "uniform", *forced(passes=3), *CUT]),
    ("channels", ["--weight", "briggs:0", "--channels-out", "2"]),
    ("rank filter", ["--weight", "uniform", "--weighting-rank-filter", "2", "--stokes",
                     "I,Q"]),
    ("maps of spectra", ["--channels-out", "2", "--niter", "50", "--join-channels",
                         "--fit-spectral-pol", "1", "--accuracy", "1e-9"]),
    ("narrow", ["--weight", "natural", "--w", "none", *CUT]),
]


def layouts_of(label, fast):
    """The layouts of a case of the full tier, or those of the fast one."""
    if not FULL:
        return fast
    return LARGE if BACKEND == "cpu" or label in MANY_DEVICES else LARGE[:-1]


def make_observation(suite, rows, channels=4, name="obs.uvfits", flat=0):
    """Crowded towards the centre of the uv-plane; weights of several magnitudes, which
    differ between correlations; some flagged. The first `flat` rows have little w, so that
    most of these fall into one block of w-planes."""
    rng = np.random.default_rng(4)
    uvw = uvfits.random_tracks(rows, 900.0, 2.5, seed=8)
    uvw *= rng.uniform(0.02, 1, (rows, 1)) ** 2
    uvw[:flat, 2] *= 1e-3
    shape = (rows, channels, 4)
    vis = 1 + 0.3 * (rng.normal(size=shape) + 1j * rng.normal(size=shape))
    weight = 10 ** rng.uniform(-2, 2, shape)
    weight[rng.uniform(size=shape) < 0.05] *= -1
    path = suite.path(name)
    uvfits.write(path, uvw, 1.2e9 + 4e7 * np.arange(channels), vis, weight)
    return path


def data_bytes(path):
    """What follows a FITS file's header."""
    with open(path, "rb") as f:
        content = f.read()
    end = next(k for k in range(0, len(content), 80) if content[k:k + 8] == b"END     ")
    return content[(end // 2880 + 1) * 2880:]


def images_of(suite, name):
    names = sorted(n for n in os.listdir(suite.work)
                   if n.startswith(name + "-") and n.endswith(".fits"))
    return {n[len(name) + 1:]: suite.path(n) for n in names}


def check(suite, obs, label, options, layouts):
    options = [obs, "--size", "200,160", "--scale", "25asec", "--backend", BACKEND,
               *options]
    ran, _ = suite.image("one", *options, "--reproducible", "--threads", "1")
    free, _ = suite.image("free", *options)
    if not (ran and free):
        return
    one = {kind: data_bytes(path) for kind, path in images_of(suite, "one").items()}
    accuracy = float(options[options.index("--accuracy") + 1]) \
        if "--accuracy" in options else 1e-4
    for kind, path in images_of(suite, "free").items():
        suite.below(f"{label} {kind}: L2 to an image that is not reproducible",
                    l2_error(read_image(path)[0], read_image(suite.path(f"one-{kind}"))[0]),
                    accuracy / 5)
    for ranks, layout in layouts:
        how = f"{label}: {ranks} ranks {' '.join(layout)}"
        ran, _ = suite.image("many", *options, "--reproducible",
                             *(layout or ["--threads", "1"]), ranks=ranks)
        many = images_of(suite, "many")
        suite.equal(f"{how}: images", sorted(many), sorted(one))
        different = [kind for kind in one if ran and data_bytes(many[kind]) != one[kind]]
        suite.equal(f"{how}: images that differ", different, [])
        for path in [*many.values()]:
            os.remove(path)
    for path in [*images_of(suite, "one").values(), *images_of(suite, "free").values()]:
        os.remove(path)


def device_image(suite, obs, name, devices, *options, ranks=1):
    """A run with emulated devices of this room, and the bytes of its images' data."""
    result = tessera("image", obs, "--size", "200,160", "--scale", "25asec", "--backend",
                     "cuda", "--reproducible", "--weight", "natural", "--overwrite", *options,
                     "-o", suite.path(name), ranks=ranks,
                     env={**mpi_environment(), "TESS_EMULATED": devices})
    images = images_of(suite, name)
    data = {kind: data_bytes(path) for kind, path in images.items()}
    for path in images.values():
        os.remove(path)
    return result, data


def room_for(*rooms):
    """Emulated devices that have all memory but tell of this room for samples."""
    return ",".join(f"{10 ** 12}:{room}" for room in rooms)


# How two devices make channels that are cleaned together, and what the log says of it.
A_CHANNEL_EACH = "of each of 2 teams of 1 rank"
LINKED = [("devices with a channel each", dict(device_rows=1), [A_CHANNEL_EACH, "came to this GPU"]),
          ("devices that share planes", dict(device_rows=1, teams=1),
           ["devices share w-planes", "came to this GPU"]),
          ("devices with a channel each, images in host memory", dict(device_rows=2), [A_CHANNEL_EACH])]


def check_device_rows(suite, obs):
    """Images that live on the device are cleaned, restored, summed to means, fitted and
    written as those of host memory are. Two devices move them without the host."""
    options = ["--niter", "20", "--nmiter", "2", "--auto-mask", "5", "--channels-out", "2",
               "--join-channels", "--fit-spectral-pol", "2", "--save-first-residual",
               "--horizon-mask", "89.5deg"]
    result, host = device_image(suite, obs, "host", room_for(10 ** 12), *options,
                                *forced(device_rows=2))
    suite.ran("images in host memory", result)
    for label, choices, words in LINKED:
        result, device = device_image(suite, obs, "device", room_for(10 ** 12), *options, "--verbose",
                                      *forced(**choices), ranks=2)
        suite.ran(label, result)
        suite.true(f"{label}: the same bytes", device == host and len(host) > 15)
        suite.true(f"{label}: the log says so", all(w in result.err for w in words))


def check_small_device(suite, obs):
    """An emulated device without room for all samples: they come in passes, and one that
    cannot take the samples of a pass either says so."""
    result, one = device_image(suite, obs, "one", room_for(10 ** 12))
    suite.ran("one pass", result)
    for ranks in (1, 2):
        result, many = device_image(suite, obs, "many", room_for(4000000 if FULL else 2000000),
                                    ranks=ranks)
        suite.ran(f"passes for the device, {ranks} ranks", result)
        suite.true("there was more than one", "pass 2 of" in result.err)
        suite.true(f"passes for the device, {ranks} ranks: the same bytes", many == one)
    # one pass after all, but samples that are sent again for each image
    result, one = device_image(suite, obs, "one", room_for(10 ** 12), "--niter", "5")
    suite.ran("cleaned: samples are held", result)
    result, many = device_image(suite, obs, "many", room_for(10 ** 7), "--niter", "5")
    suite.ran("cleaned: samples are sent again", result)
    suite.true("cleaned: the same bytes", many == one)
    check_device_rows(suite, obs)
    result, _ = device_image(suite, obs, "many", room_for(100000), *forced(passes=1))
    suite.equal("no room: status", result.status, 4)
    suite.true("no room: says so", "at once" in result.err)


# A room for all samples at once. That of images that are cleaned is enough for the samples and not
# for minor loops. So these run on processors there, as in the rooms below: processors fuse products
# and sums, and have PSFs of other transforms, so that minor loops of devices round in another way.
ALL_ROOM, CLEAN_ROOM = room_for(10 ** 12), room_for(2500000)
MINOR_LOOPS = "minor loops run on processors"

# (label, room of the devices [bytes], that of all samples, options): what samples ask for and
# sums leave.
SMALL_ROOMS = [
    ("a brick or few", room_for(600000), ALL_ROOM, []),
    ("some bricks", room_for(1000000), ALL_ROOM, []),
    ("devices differ", room_for(600000, 2000000), ALL_ROOM, []),
    ("cleaned", room_for(600000), CLEAN_ROOM,
     ["--channels", "0:1", "--stokes", "I,Q", "--join-polarizations", "--niter", "10", "--mgain", "0.6"]),
    ("channels", room_for(600000), CLEAN_ROOM, ["--channels-out", "4", "--niter", "5", "--join-channels"]),
]


def made_of_samples(data):
    """All but restored images. A device that has no room for their transforms leaves them to
    processors, whose transforms round in another way."""
    return {kind: bytes for kind, bytes in data.items() if not kind.endswith("-image.fits")}


def check_largest_pass(suite):
    """Passes are uneven where most samples have little w. The largest of them fits every
    rank's device all the same, and their number changes no bit."""
    obs = make_observation(suite, rows=3000, name="flat.uvfits", flat=2500)
    for label, devices, whole, options in SMALL_ROOMS:
        by_processors = whole == CLEAN_ROOM
        options = [*forced(block_planes=2), *options]
        result, one = device_image(suite, obs, "one", whole, *options)
        suite.ran(f"{label}: one pass", result)
        suite.true(f"{label}: there was one", "pass 2 of" not in result.err)
        suite.equal(f"{label}: minor loops on processors", MINOR_LOOPS in result.err, by_processors)
        for ranks in (1, 2, 3, 4):
            result, many = device_image(suite, obs, "many", devices, *options, ranks=ranks)
            suite.ran(f"{label}: passes, {ranks} ranks", result)
            suite.true(f"{label}: {ranks} ranks: the same bytes",
                       made_of_samples(many) == made_of_samples(one))
            suite.true(f"{label}: {ranks} ranks: there were several", "pass 2 of" in result.err)
            suite.equal(f"{label}: {ranks} ranks: minor loops on processors",
                        MINOR_LOOPS in result.err, by_processors)


def main():
    if not mpiexec():
        skip("no MPI launcher")
    suite = Suite("reproducible" if BACKEND == "cpu" else f"reproducible-{BACKEND}")
    obs = make_observation(suite, rows=6000 if FULL else 3000)
    if "TESS_EMULATED" in os.environ:
        check_small_device(suite, obs)
        check_largest_pass(suite)
    for k, (label, options) in enumerate(CASES):
        check(suite, obs, label, options, layouts_of(label, FAST if k < 3 else FAST[2:]))
    # Without room for the data in memory they are read in passes; the image is the same.
    small = ["--weight", "briggs:0", *CUT]
    check(suite, obs, "streamed", small, [(2, ["--memory", "4MB"])])
    # One pass is enough where most of them are ignored; each cycle makes it anew.
    long = make_observation(suite, rows=20000, channels=8, name="long.uvfits")
    check(suite, long, "streamed at once", ["--weight", "natural", "--niter", "5"],
          [(ranks, ["--memory", "4MB", *forced(passes=1)]) for ranks in (1, 2)])
    # Nor does it matter how many planes are held at a time.
    windows = [(1, forced(plane_window=3)), (2, forced(plane_window=1))]
    for cut in ([], CUT):
        check(suite, obs, f"planes at a time {' '.join(cut)}",
              ["--weight", "natural", "--accuracy", "1e-9", *cut], windows)
    model = uvfits.write_model(suite.path("model.fits"), np.eye(64), 25 * ASEC)
    check(suite, obs, "subtract", ["--weight", "natural", "--subtract", model],
          layouts_of("subtract", FAST[2:]))

    options = [obs, "--size", "64", "--scale", "25asec", "--reproducible", "-o",
               suite.path("bad")]
    for extra in (["--backend", "cuda", "--w", "projection"], forced(pw=2),
                  forced(fft_ranks=1)):
        result = tessera("image", *options, *extra, ranks=2)
        suite.equal(f"{' '.join(extra)}: status", result.status, 2)
        suite.equal(f"{' '.join(extra)}: one line", len(result.errors()), 1)
    suite.finish()


if __name__ == "__main__":
    main()
