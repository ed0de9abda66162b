#!/usr/bin/env python3
"""`tessera plan` against the run it is about: memory of a rank, seconds of a stage, and how often a job cleans.

Memory is promised within 15 %, and what --memory allows is kept to, or said to be too little.
Seconds are shown and never judged: they depend on the machine and on what else it does.
The fast tier takes a few cases of each kind; --full takes all of them, and goes over a matrix of
ranks, polarisations, outputs and limits.
"""
import contextlib
import glob
import json
import os
import re
import resource
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import uvfits
from e2e import (BIN, FULL, SLOWER, Suite, forced, have_ms, l2_error, mistaken_end, mpiexec,
                 read_image, run, simulate, tessera, write_sky)

LIMIT = 0.15
# Of a rank that takes less, the program and its libraries are about half: how much they are
# depends on what was built in, and is no matter of a plan.
LEAST_MIB = 100
# Memory that MPI and other libraries of a rank reserve beside: in steps of this.
ROOM_MIB = 16
# More w-planes than any of these images has.
ALL_PLANES = 1000
CASES = [(1, 2, []), (3, 1, forced(fft_ranks=3)), (1, 1, ["--stokes", "IQUV"]),
         (1, 1, ["--memory", "240MiB", *forced(passes=2)]),
         (2, 1, ["--accuracy", "1e-8"]), (1, 1, ["--channels-out", "4", "--no-psf"]),
         (1, 1, ["--no-psf", "--weight", "uniform"]), (2, 1, []),
         (1, 1, ["--accuracy", "1e-7"]), (1, 1, ["--intervals-out", "4"]),
         (1, 1, forced(passes=3)),
         (2, 1, ["--memory", "400MiB", *forced(passes=2)])]
# With cleaning. A team that cleans a channel by itself has more of its images on each rank.
CLEANED = [(4, ["--channels-out", "4", *forced(teams=4)]), (2, []),
           (1, ["--channels-out", "4"])]
# With --subtract of a model of this many pixels: that of the image, whose plan it then
# shares, or of others.
SIZE, OTHER_SIZE, SCALE_ASEC = 1600, 2000, 0.6
SUBTRACTED = [(2, SIZE, ["--stokes", "IQUV"]),
              (2, SIZE, ["--memory", "400MiB", *forced(passes=2)]),
              (1, SIZE, ["--no-psf", *forced(batch=-1)]), (2, OTHER_SIZE, []),
              (1, SIZE, []), (1, SIZE, forced(passes=2)),
              (1, SIZE, ["--memory", "240MiB"]), (2, SIZE, ["--channels-out", "4"]),
              (1, SIZE, ["--accuracy", "1e-7"]), (1, OTHER_SIZE, ["--no-psf"])]
# Cases that get this share of the memory that they use without a limit.
LIMITED = [(2, ["--channels-out", "2"], 0.9),
           (1, ["--stokes", "IQUV", "--reproducible"], 0.7),
           (1, ["--channels-out", "4"], 0.8), (3, ["--channels-out", "4"], 0.9),
           (2, ["--stokes", "IQUV", "--intervals-out", "4"], 0.6)]
# By so many facets times as many, which grid nodes of tracks in place of samples. Sets, of these
# channels and integrations, are larger than that of other cases, so that samples count. Rows of many
# channels have many nodes, and long integrations more.
SOME_CHANNELS, MANY_CHANNELS, ONE_CHANNEL = (16, "8s"), (512, "80s"), (1, "2s")
BY_FACETS = [(1, 2, SOME_CHANNELS, ["--no-psf"]), (1, 5, SOME_CHANNELS, ["--no-psf"]),
             (1, 3, SOME_CHANNELS, ["--no-psf", "--stokes", "XX,YY"]),
             (1, 3, SOME_CHANNELS, ["--niter", "50", "--nmiter", "2"]),
             (1, 3, SOME_CHANNELS, ["--no-psf", *forced(passes=2)]),
             (2, 3, SOME_CHANNELS, []), (2, 3, SOME_CHANNELS, ["--niter", "50", "--nmiter", "2"]),
             (1, 8, ONE_CHANNEL, ["--no-psf"]), (1, 5, MANY_CHANNELS, ["--no-psf"]),
             (1, 3, MANY_CHANNELS, ["--no-psf"]), (2, 3, MANY_CHANNELS, []),
             (1, 3, MANY_CHANNELS, ["--no-psf", "--reproducible"])]
# How many of the cases above the fast tier takes, of those at the front.
FAST = {"cases": 6, "cleaned": 1, "facets": 1, "subtracted": 4, "limited": 2}
MATRIX = [(ranks, ["--stokes", stokes, *outputs])
          for ranks in (1, 2, 3, 4) for stokes in ("I", "IQUV", "XX,YY")
          for outputs in ([], ["--channels-out", "4"], ["--intervals-out", "4"])]
MATRIX_LIMITS = (0.9, 0.6)


def predicted(text):
    """Peak memory [MiB] and {stage: seconds} of the plan's last lines."""
    memory = float(re.search(r"memory a rank about (\d+) MiB", text).group(1))
    line = re.search(r"time +about [^:]*: (.*)", text).group(1)
    return memory, {k: float(v) for k, v in re.findall(r"(\w+) ([0-9.e+-]+) s", line)}


def taken(kind, cases):
    """The cases of a kind that this tier takes."""
    return cases if FULL else cases[:FAST[kind]]


def check_cleaned(suite, options):
    """What cleaning keeps is counted."""
    cycles = ("50", "2") if FULL else ("20", "1")
    for ranks, more in taken("cleaned", CLEANED):
        if ranks > 1 and not mpiexec():
            continue
        label = f"{ranks} x cleaned {' '.join(more)}"
        found = measured(suite, label, ranks, [*options, "--threads", 1, "--niter", cycles[0],
                                               "--nmiter", cycles[1], *more])
        if found:
            compare_memory(suite, label, *found[:2])


def write_facets(path, num):
    """num by num facets of the image, beside which nothing is left over."""
    edge = SIZE * SCALE_ASEC / 7200 * 1.01 * np.linspace(-1, 1, num + 1)
    with open(path, "w", encoding="utf-8") as file:
        for y0, y1 in zip(edge, edge[1:]):
            for x0, x1 in zip(edge, edge[1:]):
                corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
                text = ",".join(f"{60 + x / np.cos(np.deg2rad(40)):.8f},{40 + y:.8f}" for x, y in corners)
                file.write(f"polygon({text})\n")
    return path


def check_facets(suite, observe, pixels):
    """What targets take of the samples and of residuals is counted, and nodes of tracks are."""
    made = {}
    for ranks, num, kind, more in taken("facets", BY_FACETS):
        channels, integration = kind
        if ranks > 1 and not mpiexec():
            continue
        if kind not in made:
            made[kind] = observe("uvfits", "XX,YY", integration, channels)
        obs = made[kind]
        label = f"{ranks} x {num * num} facets, {channels} channels {' '.join(more)}"
        found = measured(suite, label, ranks, [obs, *pixels, "--threads", 1, "--facets",
                                               write_facets(suite.path("facets.reg"), num), *more])
        if found:
            compare_memory(suite, label, *found[:2])


# Skies that are cleaned: number of points, flux of the brightest [Jy], number of Gaussians, size,
# and options. How often they are cleaned is guessed, by one who does not know their sources.
GUESSED = [(1, 1, 0, 1024, []), (10, 1, 0, 1024, []), (100, .5, 0, 1024, []),
           (100, 1, 10, 1024, ["--multiscale", "--auto-mask", "5"]),
           (30, .05, 0, 2048, []), (300, 2, 0, 2048, []),
           (50, 1, 5, 2048, ["--multiscale", "--auto-mask", "5"]),
           (100, 1, 10, 1024, ["--multiscale", "--channels-out", "4", "--join-channels"]),
           (50, 1, 0, 1024, ["--channels-out", "4"]),
           (100, 1, 0, 1024, ["--stokes", "IQUV"])]
GUESS = 2  # within this factor


def processor_seconds():
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def guessed_sky(suite, points, peak, gaussians):
    """Fluxes of which as many are above a flux as its reciprocal says."""
    rng = np.random.default_rng(points + gaussians)
    sources = [dict(flux_jy=peak / (k + 1), ra=f"{60 + .12 * rng.uniform(-1, 1):.6f}deg",
                    dec=f"{40 + .1 * rng.uniform(-1, 1):.6f}deg") for k in range(points)]
    for source in sources[:gaussians]:
        width = f"{rng.uniform(5, 40):.1f}asec"
        source.update(major=width, minor=width)
    return write_sky(suite.path("guessed.csv"), sources)


def check_guesses(suite, cases):
    """The plan of a job that cleans tells the number of its major iterations within a factor. That of minor ones, and
    seconds of processors, are shown: they are guessed by one who does not know how many sources there are."""
    for k, (points, peak, gaussians, size, more) in enumerate(cases):
        pol = "XX,XY,YX,YY" if "IQUV" in more else "XX,YY"
        obs = simulate(suite.path("guessed.uvfits"), guessed_sky(suite, points, peak, gaussians),
                       layout="meerkat", dec="40deg", duration="3h", integration="60s", channels=16,
                       pol=pol, extra=["--noise", "0.3", "--overwrite", "--antennas", "40",
                                       "--min-elevation", "5deg"])
        options = [obs, "--size", size, "--scale", "1.5asec", "--niter", 1000000,
                   "--auto-threshold", 3, "--threads", 1, *more]
        label = f"{points} points, {gaussians} Gaussians, {size} {' '.join(more)}"
        with environment(TESS_CALIBRATION="on", TESS_CACHE_DIR=suite.path("costs")):
            planned = tessera("plan", *options)
        before = processor_seconds()
        done, prefix = suite.image(f"guessed{k}", *options, timeout=600)
        took = processor_seconds() - before
        if not done or not suite.ran(f"plan {label}", planned):
            continue
        headers = [read_image(path)[1] for path in glob.glob(prefix + "-*model.fits")]
        majors, minors = (max(header.get(key, 0) for header in headers) for key in ("NMAJOR", "NITER"))
        told = re.search(r"(\S+) major iterations.*; (\S+) minor ones", planned.out)
        print(f"   {label}: {told[2]} minor iterations told, {minors} made;", re.search("time +about .* s:", planned.out)[0],
              f"{took:.2f} s taken")
        suite.true(f"{label}: {told[1]} major iterations told, {majors} made",
                   1 / GUESS <= float(told[1]) / majors <= GUESS)


def check_subtracted(suite, obs, all_hands, pixels):
    """A model, its sums and what is subtracted from are counted."""
    scale_rad = np.deg2rad(SCALE_ASEC / 3600)
    for ranks, size, more in taken("subtracted", SUBTRACTED):
        if ranks > 1 and not mpiexec():
            continue
        image = np.zeros((size, size))
        image[size // 2, size // 2] = 1
        model = uvfits.write_model(suite.path("model.fits"), image, scale_rad, dec_deg=40.0)
        of = all_hands if "IQUV" in more else obs
        label = f"{ranks} x less a model of {size} pixels {' '.join(more)}"
        found = measured(suite, label, ranks,
                         [of, *pixels, "--threads", 1, "--subtract", model, *more])
        if found:
            compare_memory(suite, label, *found[:2])


def check_mosaic(suite):
    """Planes of one pointing at a time, and those of all where data are gone over without scratch."""
    sky = write_sky(suite.path("field.csv"), [dict(ra="60deg", dec="40deg", flux_jy=1)])
    obs = simulate(suite.path("pointings.ms"), sky, layout="vla-d", dec="40deg", duration="1050s", integration="15s",
                   channels=16, extra=["--pointings", "hex:7,15amin", "--scan", "150s"])
    options = [obs, "--mosaic", "--size", "1600", "--scale", "2asec", "--threads", 1]
    for more in [], forced(passes=2), [*forced(passes=2), "--scratch", suite.work]:
        label = f"mosaic {' '.join(more)}"
        found = measured(suite, label, 1, [*options, *more])
        if found:
            compare_memory(suite, label, *found[:2])


def check_measured(suite, options):
    """A plan that measures the machine says so; a run this small is gridded as without."""
    cache = suite.path("cache")
    grids = []
    with environment(TESS_CALIBRATION="on", TESS_CACHE_DIR=cache):
        for more, measured in [([], True), ([], True), (["--reproducible"], False),
                               (["--checkpoint", suite.path("saved")], False),
                               (["--no-calibration"], False),
                               (forced(num_vis=1000000000), True)]:
            planned = tessera("plan", *options, "--threads", 2, *more)
            if not suite.ran(f"plan {' '.join(more)}", planned):
                continue
            suite.true(f"plan {' '.join(more)}: says whether costs were measured",
                       ("costs         measured on this machine" in planned.out) == measured)
            grids.append(re.search(r"grid +(.*)", planned.out).group(1))
    suite.true("small runs have the same plan with and without", len(set(grids[:5])) == 1)
    suite.true("costs are kept in two files",
               len([f for f in os.listdir(cache) if f.endswith(".json")]) == 2)
    if mpiexec():
        check_teams(suite, options, cache)


def check_teams(suite, options, cache):
    """A small run forms its teams by the built-in costs, so its plan does."""
    teams = []
    for calibration in ("on", "off"):
        with environment(TESS_CALIBRATION=calibration, TESS_CACHE_DIR=cache):
            planned = tessera("plan", *options, "--channels-out", "4", "--niter", "50", "--threads",
                              1, ranks=2)
        if suite.ran(f"plan of channels, calibration {calibration}", planned):
            teams.append(re.search(r"outputs +(.*)", planned.out).group(1))
    suite.equal("teams with and without measured costs", len(set(teams)), 1)


def check_passes(suite, options):
    """Passes over data keep to --memory, sums of bricks included, and make the same
    image: they need 330 MiB when nothing bounds them."""
    images = []
    for limit in (2048, 240, 200):
        profile = suite.path("passes.json")
        ran, prefix = suite.image(f"passes-{limit}", *options, *forced(passes=2),
                                  "--threads", 1, "--memory", f"{limit}MiB",
                                  "--profile", profile)
        if not ran:
            return
        images.append(read_image(prefix + "-dirty.fits")[0])
        with open(profile) as f:
            peak = json.load(f)["totals"]["peak_memory_bytes"] / 2 ** 20
        if SLOWER == 1:  # sanitizers have memory of their own
            suite.below(f"passes in {limit} MiB: MiB", peak, limit)
    for image in images[1:]:
        suite.true("passes by windows of planes: same pixels",
                   (image == images[0]).all())


def measured(suite, label, ranks, options):
    """What was planned, and the totals of the run's profile and what it warned of; or None."""
    planned = tessera("plan", *options, ranks=ranks)
    profile = suite.path("profile.json")
    result = tessera("image", *options, "--profile", profile, "--overwrite", "-o",
                     suite.path("measured"), ranks=ranks)
    if not suite.ran(f"plan {label}", planned) or not suite.ran(label, result):
        return None
    with open(profile) as f:
        totals = json.load(f)["totals"]
    return planned, totals, "needs about" in result.err


def compare_memory(suite, label, planned, totals):
    """Returns what was used [MiB]."""
    memory, seconds = predicted(planned.out)
    peak = totals["peak_memory_bytes"] / 2 ** 20
    print(f"   {label}: memory {memory:.0f} MiB planned, {peak:.0f} used; seconds:",
          ", ".join(f"{k} {v:g}/{totals['stages'][k]['seconds']:.2f}"
                    for k, v in seconds.items()))
    if SLOWER == 1 and peak >= LEAST_MIB:  # sanitizers have memory of their own
        suite.below(f"{label}: memory planned, of that used, less 1",
                    abs(memory / peak - 1), LIMIT)
    return peak


def check_memory(suite, ranks, options, more, limits):
    """Without --memory, and with shares of what that used: kept to, or said not to be."""
    label = f"{ranks} x {' '.join(more)}"
    options = [*options, "--threads", 1, *more]
    free = measured(suite, label, ranks, options)
    if not free:
        return
    used = compare_memory(suite, label, *free[:2])
    for limit in limits:
        allowed = int(limit * ranks * used)
        label = f"{ranks} x {' '.join(more)} in {allowed} MiB"
        found = measured(suite, label, ranks, [*options, "--memory", f"{allowed}MiB"])
        if not found:
            continue
        peak = compare_memory(suite, label, *found[:2])
        if SLOWER == 1:
            suite.true(f"{label}: {ranks * peak:.0f} used, or said to be too little",
                       ranks * peak <= allowed or found[2])


def limited_to(mib):
    return ["prlimit", f"--data={mib << 20}"]


def room_mib():
    """What the program needs to start: cuFFT alone has 265 MiB of writable data."""
    room = ROOM_MIB
    while run([*limited_to(room), BIN, "--version"], 60).status and room < 4096:
        room += ROOM_MIB
    return room


def check_limits(suite, options):
    """A rank that cannot get more than its share of --memory, as prlimit sees to, makes the
    same image with it. A rank that is told of more memory than there is fails: it takes all
    planes at once, and gets half of what one plane at a time needs. A run that chooses the
    number of planes may take few of them where memory is slow to get, and then it fits."""
    if SLOWER > 1 or not shutil.which("prlimit"):
        suite.skipped("address sanitizers need memory of their own, or no prlimit")
        return
    room = room_mib()
    for ranks, limit, choices in ((1, 240, {"passes": 2}), (2, 400, {})):
        if ranks > 1 and not mpiexec():
            continue
        images = {}
        for name, given, told, status, more in (
                ("free", None, 4096, 0, {}), ("bounded", limit, limit, 0, {}),
                ("misled", limit // 2, 4096, 4, {"plane_window": ALL_PLANES})):
            prefix = suite.path(name)
            bound = limited_to(given // ranks + room) if given else []
            launch = [mpiexec(), "-n", str(ranks)] if ranks > 1 else []
            result = mistaken_end(run(
                [*launch, *bound, BIN, "image", *options, "--threads", "1", "--memory",
                 f"{told}MiB", *forced(**choices, **more), "--overwrite", "-o", prefix], 120))
            label = f"{ranks} ranks, {name}, told of {told} MiB"
            if suite.ran(label, result, status) and status == 0:
                images[name] = read_image(prefix + "-dirty.fits")[0]
            if status == 4:
                suite.true(f"{label}: says so", "not enough memory" in result.err)
        if len(images) == 2:
            suite.below(f"{ranks} ranks in {limit} MiB: L2 to unbounded",
                        l2_error(images["bounded"], images["free"]),
                        0 if ranks == 1 else 1e-6)


def check_device(suite, options):
    """A device's costs are its own; where there is none, one is emulated by builds that can."""
    with environment(TESS_EMULATED="100000000000"):
        for more in ([], ["--w", "projection"]):
            cpu, device = (tessera("plan", *options, *more, "--backend", name, "--threads", 1)
                           for name in ("cpu", "cuda"))
            if device.status != 0 or not suite.ran("plan", cpu):
                return
            grid = [predicted(planned.out)[1].get("grid", 0) for planned in (cpu, device)]
            suite.true(f"a device grids {' '.join(more)} by its own costs",
                       0 < grid[1] < grid[0] / 10)
            suite.true("whose they are is said", "those of an H200" in device.out)


@contextlib.contextmanager
def environment(**values):
    """These variables while it lasts."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def main():
    suite = Suite("plan_estimates")
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="40deg", flux_jy=1)])

    def observe(suffix, pol, integration="40s", channels=16):
        return simulate(suite.path(f"vla-{len(pol)}-{integration}-{channels}.{suffix}"), sky, layout="vla-a",
                        dec="40deg", duration="6000s", integration=integration, channels=channels,
                        pol=pol, extra=["--max-radius", "20km", "--hour-angle=-1h"])

    obs, all_hands = (observe("uvfits", pol) for pol in ("XX,YY", "XX,XY,YX,YY"))
    pixels = ["--size", str(SIZE), "--scale", f"{SCALE_ASEC}asec"]
    options = [obs, *pixels]
    for ranks, threads, more in taken("cases", CASES):
        if ranks > 1 and not mpiexec():
            continue
        of = all_hands if "IQUV" in more else obs
        label = f"{ranks} x {threads} {' '.join(more)}"
        found = measured(suite, label, ranks, [of, *pixels, "--threads", threads, *more])
        if not found:
            continue
        planned, totals, _ = found
        compare_memory(suite, label, planned, totals)
        seconds = predicted(planned.out)[1]
        suite.true(f"{label}: costs are the built-in ones",
                   "costs         built in" in planned.out)
        suite.true(f"{label}: seconds of the main stages",
                   all(seconds.get(k, 0) > 0 for k in ("read", "grid", "fft", "write")))
    cases = [(ranks, more, [limit]) for ranks, more, limit in taken("limited", LIMITED)]
    if FULL:
        cases += [(ranks, more, MATRIX_LIMITS) for ranks, more in MATRIX]
        cases += [(ranks, ["--w", "projection", "--oversampling", "8"], MATRIX_LIMITS)
                  for ranks in (1, 2)]
    for ranks, more, limits in cases:
        if ranks == 1 or mpiexec():
            check_memory(suite, ranks, [all_hands if "IQUV" in more else obs, *pixels], more,
                         limits)
    if FULL and have_ms():
        table = observe("ms", "XX,YY")
        for ranks in (1, 2) if mpiexec() else (1,):
            check_memory(suite, ranks, [table, *pixels], ["--channels-out", "4"],
                         MATRIX_LIMITS)
    check_cleaned(suite, options)
    check_facets(suite, observe, pixels)
    if FULL and SLOWER == 1:
        check_guesses(suite, GUESSED)
    check_subtracted(suite, obs, all_hands, pixels)
    if FULL and have_ms():
        check_mosaic(suite)
    check_passes(suite, options)
    check_limits(suite, options)
    check_measured(suite, options)
    check_device(suite, options)
    suite.finish()


if __name__ == "__main__":
    main()
