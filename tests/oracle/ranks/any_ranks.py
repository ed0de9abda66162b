#!/usr/bin/env python3
"""The same image on any number of ranks and however the work is laid out.

Every run is compared with one rank: to 1e-6 in single precision (2e-6 on devices) and 1e-12
in double, as relative L2 error (what accuracy means here), which is what the order of
summation may change. At single pixels the grid correction, largest in the corners, multiplies rounding
errors: there the limit is six times that, of the peak. Cutting the data into smaller
chunks or blocks changes what is summed first, also on one rank: it is compared with one
rank cut the same way, and may differ from the uncut by a fifth of the accuracy asked
for. Also predictions, idle ranks, and memory per rank.
"""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (ASEC, BACKEND, FULL, SLOWER, Suite, forced, l2_error, mpi_environment, mpiexec,
                 peak_error, read_image, skip, take_forced, tessera, unsignalled_environment)
import uvfits

CORNERS = 6.0
# Devices sum in single precision in an order of their own: two runs of one GPU differ by 1.3e-6
# (docs/results/gpu.md).
SINGLE = 1e-6 if BACKEND == "cpu" else 2e-6
# The system may count processor time by its ticks.
TICK_S = 0.02
# Of four ranks together. Images and planes of a rank of its own would be more than half of
# what is planned for.
SHORT_MIB = 500
# Choices that change the order of sums on one rank too.
CUTS = ("split", "chunk", "block-planes", "passes")

# (ranks, options) of the fast tier, whose idle ranks and predictions have seven, and, besides, of the
# full one.
FAST = [
    (2, []), (3, []), (4, []),
    (2, forced(pw=2)),
    (4, forced(pw=2)),
    (4, forced(pw=2, fft_ranks=2)),
    (4, forced(fft_ranks=4)),
    (3, forced(fft_ranks=3)),
    (4, forced(split=1, chunk=200)),
    (2, forced(passes=3)),
    (1, forced(passes=2, plane_window=3)),
    (3, forced(passes=2, plane_window=4)),
    (3, forced(block_planes=2)),
    (2, ["--threads", "2"]),
]
LARGE = [
    (ranks, [*layout, *chunk, *planes])
    for ranks in (1, 2, 3, 4, 6, 7)
    for divisor, layout in ((1, []), (2, forced(pw=2)), (3, forced(pw=3)),
                            (2, forced(fft_ranks=2)), (3, forced(fft_ranks=3)))
    for chunk in ([], forced(split=1, chunk=64))
    for planes in ([], forced(block_planes=3), forced(passes=2))
    if ranks % divisor == 0
]


def make_observation(suite, name, rows, channels=3):
    """Visibilities crowded towards the centre of the uv-plane, with a large w."""
    rng = np.random.default_rng(4)
    uvw = uvfits.random_tracks(rows, 900.0, 2.5, seed=8)
    uvw *= rng.uniform(0.02, 1, (rows, 1)) ** 2
    shape = (rows, channels, 2)
    vis = 1 + 0.3 * (rng.normal(size=shape) + 1j * rng.normal(size=shape))
    weight = rng.uniform(0.5, 2, shape)
    path = suite.path(name + ".uvfits")
    uvfits.write(path, uvw, 1.2e9 + 4e7 * np.arange(channels), vis, weight)
    return path


def cuts_of(layout):
    """The part of a layout's choices that one rank has as well."""
    _, env = take_forced(layout, {})
    given = dict(choice.split("=") for choice in env.get("TESS_FORCE", "").split(",") if choice)
    cuts = {key: value for key, value in given.items() if key in CUTS}
    return forced(**cuts) if cuts else []


def make_images(suite, name, options, ranks=1):
    ran, prefix = suite.image(name, *options, ranks=ranks)
    return {k: read_image(f"{prefix}-{k}.fits")[0] for k in ("dirty", "psf")} if ran else {}


def check_layouts(suite, obs, cases, accuracy, limit, weight):
    options = [obs, "--size", "200,160", "--scale", "25asec", "--weight", weight,
               "--accuracy", accuracy]
    tag = f"{accuracy}-{weight.replace(':', '')}"
    references = {(): make_images(suite, f"one-{tag}", options)}
    for ranks, layout in cases:
        label = f"{ranks} ranks {' '.join(layout)} {tag}"
        cuts = tuple(cuts_of(layout))
        if cuts not in references:
            references[cuts] = make_images(suite, "cut", options + list(cuts))
            for kind, image in references[cuts].items():
                suite.below(f"1 rank {' '.join(cuts)} {tag} {kind}: L2 to uncut",
                            l2_error(image, references[()][kind]), float(accuracy) / 5)
        images = make_images(suite, "many", options + layout, ranks)
        for kind, wanted in references[cuts].items():
            if not images:
                print("   in:", label)
                break
            suite.below(f"{label} {kind}: L2", l2_error(images[kind], wanted), limit)
            suite.below(f"{label} {kind}: largest / peak",
                        peak_error(images[kind], wanted), CORNERS * limit)


def check_idle_ranks(suite):
    """Three rows for seven ranks."""
    obs = make_observation(suite, "tiny", rows=3, channels=1)
    check_layouts(suite, obs, [(2, []), (7, [])], "1e-8", 1e-12, "natural")


def check_prediction(suite, obs):
    rng = np.random.default_rng(6)
    model = np.where(rng.uniform(size=(120, 150)) < 0.02, 1.0, 0.0)
    path = uvfits.write_model(suite.path("model.fits"), model, 30 * ASEC)
    vis = {}
    for ranks, layout in [(1, []), (3, []), (4, forced(pw=2)),
                          (4, forced(fft_ranks=2)), (7, [])]:
        out = suite.path("predicted.uvfits")
        result = tessera("predict", obs, "--model", path, "--accuracy", "1e-7",
                         "--overwrite", "-o", out, *layout, ranks=ranks)
        if not suite.ran(f"predict on {ranks} ranks {' '.join(layout)}", result):
            continue
        vis[ranks, tuple(layout)] = uvfits.read(out)[2]
    one = vis.pop((1, ()), None)
    for key, value in vis.items():
        # Visibilities are stored in single precision: half a unit in the last place.
        suite.below(f"prediction on {key}", np.abs(value - one).max() / np.abs(one).max(),
                    1.2e-7)


def memory_of(suite, obs, size, ranks):
    """What a profile tells of each rank of an image of so many pixels, or None."""
    profile = suite.path("profile.json")
    layout = forced(fft_ranks=str(ranks)) if ranks > 1 else []
    ran, _ = suite.image("large", obs, "--size", str(size), "--scale", "1.5asec",
                         "--weight", "natural", "--no-psf", "--threads", "1",
                         "--profile", profile, *layout, ranks=ranks, timeout=240)
    if not ran:
        return None
    with open(profile) as f:
        return json.load(f)["ranks"]


def check_memory(suite, obs):
    """With the FFT in slabs no rank holds a whole grid or image: of either, the largest
    buffer is a rank's share. Slabs of lines end at multiples of 16 and are cut by the
    occupied tiles they hold (tess_slabs_choose): a quarter of a share is allowed for that.
    In all a rank of P takes 1.3/P of what one alone does and a constant, which is what a
    rank of P takes for next to no image."""
    peak, whole = {}, None
    for ranks in (1, 2, 4):
        told = memory_of(suite, obs, 3000, ranks)
        if not told:
            return
        peak[ranks] = max(r["peak_memory_bytes"] for r in told)
        held = {k: max(r[k] for r in told) for k in ("image_slab_bytes", "plane_slab_bytes")}
        whole = whole or held
        suite.equal("image on one rank", whole["image_slab_bytes"], 4 * 3000 * 3000)
        for name, value in held.items() if ranks > 1 else ():
            suite.below(f"{name} on {ranks} ranks, of the whole", value / whole[name],
                        1.25 / ranks)
    print("   peak memory per rank:", {k: f"{v / 1e6:.0f} MB" for k, v in peak.items()})
    least = memory_of(suite, obs, 64, 4)
    if SLOWER == 1 and least:  # sanitizers have memory of their own
        constant = max(r["peak_memory_bytes"] for r in least)
        suite.below("memory per rank on 4 ranks but a constant, of that on 1",
                    (peak[4] - constant) / peak[1], 1.3 / 4)


def check_bytes(suite, obs):
    """The profile's bytes: one dirty image written; data read, sent, summed."""
    profile = suite.path("bytes.json")
    ran, _ = suite.image("bytes", obs, "--size", "200", "--scale", "20asec", "--no-psf",
                         "--profile", profile, *forced(fft_ranks=3), ranks=3)
    if not ran:
        return
    with open(profile) as f:
        stages = json.load(f)["totals"]["stages"]
    for name in ("read", "exchange", "reduce"):
        suite.true(f"bytes of stage {name}", stages[name]["bytes"] > 0)
    # the images, and the few numbers that ranks tell each other in between
    over = stages["write"]["bytes"] - 200 * 200 * 4
    suite.true("bytes of stage write", 0 <= over < 20000)


def check_balance(suite, obs):
    """Gridding's imbalance, predicted and measured by the ranks' own processor time, in
    the log and in the profile."""
    profile, ranks = suite.path("balance.json"), 3
    result = tessera("image", obs, "--size", "200", "--scale", "20asec", "--threads", "1",
                     "--accuracy", "1e-9", "--profile", profile, "--overwrite", "--verbose",
                     "-o", suite.path("balance"), ranks=ranks)
    if not suite.ran("balance", result):
        return
    with open(profile) as f:
        told = json.load(f)
    own = [r["grid_own_seconds"] for r in told["ranks"]]
    balance = told["totals"]["grid_imbalance"]
    suite.true(f"balance: no rank's own time {own} above its time in the stage", all(
        0 <= t <= r["stages"]["grid"]["seconds"] + TICK_S
        for t, r in zip(own, told["ranks"])))
    suite.true("balance: some time measured", sum(own) > 0)
    suite.below("balance: predicted", balance["predicted"], 0.1)
    measured = max(own) / np.mean(own) - 1
    suite.below("balance: measured, off that of the ranks' times",
                abs(balance["measured"] - measured), 1e-3)
    suite.true("balance: both in the log",
               f"busiest rank {100 * balance['measured']:.1f} % above the mean" in result.err
               and f"predicted {100 * balance['predicted']:.1f} %" in result.err)


def check_short_memory(suite, obs):
    """Planes that each rank would transform by itself are shared where memory for that is
    short; the image is that of one rank, and no rank takes more than it may."""
    options = [obs, "--size", "2000", "--scale", "2.25asec", "--weight", "natural",
               "--threads", "1"]
    wanted, ranks, profile = None, 4, suite.path("short.json")
    # FFTW measures a length when it first meets it, and ranks may then choose transforms
    # that round otherwise: where the grid correction's gain is large, by more than the limit
    make_images(suite, "first", options, ranks)
    for memory, sharers in ((4096, 1), (SHORT_MIB, ranks)):
        images = make_images(suite, "short", [*options, "--memory", f"{memory}MiB",
                                              "--profile", profile], ranks)
        if not images:
            return
        with open(profile) as f:
            told = json.load(f)
        suite.true(f"{memory} MiB: planes shared by {sharers}",
                   f"FFT groups of {sharers} ranks" in told["plan"])
        if SLOWER == 1:  # sanitizers have memory of their own
            suite.below(f"{memory} MiB: memory of a rank, of what it may take",
                        told["totals"]["peak_memory_bytes"] * ranks / memory / 2**20, 1)
        wanted = wanted or images
    for kind, image in images.items():
        suite.below(f"short of memory {kind}: L2", l2_error(image, wanted[kind]), 1e-6)


def check_nodes(suite, obs):
    """Images that are summed inside nodes first, and what then goes between these: as if
    two ranks were a node."""
    profile = suite.path("nodes.json")
    options = [obs, "--size", "200", "--scale", "20asec", *forced(fft_ranks=1)]
    wanted = make_images(suite, "one-node", options, 4)
    result = tessera("image", *options, "--profile", profile, "--overwrite", "--verbose",
                     "-o", suite.path("nodes"), ranks=4,
                     env=mpi_environment() | {"TESS_NODE_RANKS": "2"})
    if not suite.ran("two nodes", result) or not wanted:
        return
    for kind, image in wanted.items():
        suite.below(f"two nodes {kind}: L2 to one", l2_error(
            read_image(suite.path(f"nodes-{kind}.fits"))[0], image), 1e-6)
    with open(profile) as f:
        told = json.load(f)["totals"]
    # at least each of two images once; half of what ranks exchange stays on a node
    between = told["sent_between_nodes_bytes"]
    suite.true("two nodes: bytes between them", 2 * 4 * 200 * 200 <= between <
               told["sent_bytes"])
    suite.true("two nodes: said so", "between nodes" in result.err)


def check_alone(suite):
    """A process that no launcher started does not start MPI, whatever parameters of MPI's libraries
    users have set: with these, Open MPI would not start."""
    result = tessera("--version", env={**mpi_environment(), "OMPI_MCA_pml": "none", "PMIX_MCA_gds": "hash"})
    suite.ran("a process by itself", result)


def check_shared_device(suite, obs):
    """More ranks than GPUs: the log says that they wait for each other. The ranks see one GPU."""
    env = unsignalled_environment()
    env["CUDA_VISIBLE_DEVICES"] = env.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    for ranks, shares in ((1, False), (2, True)):
        result = tessera("image", obs, "-o", suite.path("shared"), "--size", 120, "--scale", "30asec",
                         "--no-psf", "--overwrite", ranks=ranks, env=env)
        suite.ran(f"{ranks} ranks, one GPU", result)
        suite.true(f"{ranks} ranks: {'say' if shares else 'do not say'} that they share a GPU",
                   ("share a GPU" in result.err) == shares)


def main():
    if not mpiexec():
        skip("no MPI launcher")
    suite = Suite("any_ranks_full" if FULL else "any_ranks")
    check_alone(suite)
    obs = make_observation(suite, "crowded", rows=4000)
    if FULL:
        for weight in ("natural", "uniform", "briggs:0"):
            check_layouts(suite, obs, LARGE, "1e-4", SINGLE, weight)
            check_layouts(suite, obs, LARGE, "1e-9", 1e-12, weight)
    else:
        check_layouts(suite, obs, FAST, "1e-4", SINGLE, "briggs:0")
        check_layouts(suite, obs, FAST[1::2], "1e-9", 1e-12, "uniform")
    check_idle_ranks(suite)
    check_prediction(suite, obs)
    if BACKEND == "cpu":  # a device's memory is not told
        check_memory(suite, obs)
        check_short_memory(suite, obs)
    else:
        check_shared_device(suite, obs)
    check_bytes(suite, obs)
    # enough for each rank to grid for several ticks
    check_balance(suite, make_observation(suite, "long", rows=60000, channels=8))
    check_nodes(suite, obs)
    suite.finish()


if __name__ == "__main__":
    main()
