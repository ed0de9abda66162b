#!/usr/bin/env python3
"""Output channels and intervals made side by side by teams of ranks.

Their images are those of one rank, to rounding (1e-12 in double precision, as between any
two layouts), and bit for bit with --reproducible, means over channels included; however
samples are kept, and when a run is stopped and continued by other teams.
"""
import json
import os
import re
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import Suite, fits_module, forced, l2_error, mpiexec, read_image, skip, tessera
from fields_and_cubes import NX, NY, Samples

EPS = 1e-9
ROUNDING = 1e-12
CLEANED = 1e-9  # a fit of the beam multiplies rounding
STEPS, PER_STEP = 30, 120  # integrations, and rows of one by uvfits.write
NAMES = [f"-t{t:04d}-{c}-{k}" for t in range(2) for c in ("0000", "0001", "0002", "MFS")
         for k in ("dirty", "psf")]
OUTPUTS = ["--channels-out", "3", "--intervals-out", "2"]
IMAGE = ["--size", f"{NX},{NY}", "--scale", "60asec", "--threads", "1", *OUTPUTS]
# Six outputs on ranks, teams: even, uneven and idle teams in the last round.
LAYOUTS = [(2, 2), (3, 3), (4, 2), (4, 4)]
# Memory a rank [kB] as in one_plan.py.
MODES = {"cached": (None, None), "again": (700, "read again for every few outputs"),
         "streamed": (285, "are streamed")}


def observe(suite):
    """The second channel is empty in the first interval, the third in both."""
    def flag(s):
        s.weight[:STEPS // 2 * PER_STEP, 1] = -1.0
        s.weight[:, 2] = -1.0
    return Samples(suite, "cube", rows=STEPS * PER_STEP, channels=3, change=flag)


def images(prefix):
    return {n: read_image(f"{prefix}{n}.fits") for n in NAMES}


def run(suite, label, obs, *more, ranks=1, status=0):
    prefix = suite.path("out")
    result = tessera("image", obs, *IMAGE, *more, "--overwrite", "-o", prefix, ranks=ranks)
    suite.ran(label, result, status)
    return prefix, result


def check_equal(suite, label, prefix, reference):
    for name, (image, header) in images(prefix).items():
        wanted, wanted_header = reference[name]
        suite.true(f"{label} {name}: as on one rank",
                   np.array_equal(image, wanted, equal_nan=True))
        suite.true(f"{label} {name}: its numbers too", all(
            header.get(k) == wanted_header.get(k)
            for k in ("SUMWT", "CRVAL3", "BMAJ", "DATE-OBS", "DATE-END")))


def check_layouts(suite, obs):
    double = ["--accuracy", str(EPS), "--weight", "uniform", "--stokes", "I,XX"]
    names = [n.replace("-dirty", "-I-dirty").replace("-psf", "-I-psf") for n in NAMES]
    prefix, _ = run(suite, "one rank", obs, *double)
    wanted = {n: read_image(f"{prefix}{n}.fits")[0] for n in names}
    for mode, (kilobytes, says) in MODES.items():
        for ranks, teams in LAYOUTS if mode == "cached" else LAYOUTS[2:3]:
            label = f"{mode}, {teams} teams of {ranks} ranks"
            memory = ["--memory", f"{kilobytes * ranks}kB"] if kilobytes else []
            prefix, result = run(suite, label, obs, *double, *memory, *forced(teams=teams), "--verbose", ranks=ranks)
            suite.true(f"{label}: kept so", not says or says in result.err)
            suite.true(f"{label}: said so", f"each of {teams} teams" in result.err)
            suite.equal(f"{label}: files in the log", result.err.count("wrote "),
                        len(glob_of(prefix)))
            made = {n: read_image(f"{prefix}{n}.fits")[0] for n in names}
            blank = [n for n in names if np.isnan(wanted[n]).all()]
            suite.true(f"{label}: {len(blank)} outputs without data are NaN",
                       blank and all(np.isnan(made[n]).all() for n in blank))
            worst = max(l2_error(made[n], wanted[n]) for n in names if n not in blank)
            suite.below(f"{label}: L2 to one rank", worst, ROUNDING)


def check_threads(suite, obs):
    """Teams of threads, bit for bit, also where the samples of some outputs fit alone."""
    exact = ["--reproducible", "--weight", "briggs:0"]
    prefix, _ = run(suite, "by all threads", obs, *exact)
    wanted = images(prefix)
    for mode in ("cached", "again"):
        kilobytes, says = MODES[mode]
        label = f"{mode}, 2 teams of threads"
        memory = ["--memory", f"{kilobytes}kB"] if kilobytes else []
        prefix, result = run(suite, label, obs, *exact, *memory, "--threads", "2",
                             *forced(thread_teams=2))
        suite.true(f"{label}: kept so", not says or says in result.err)
        suite.true(f"{label}: said so", "2 sets of images are made at a time" in result.err)
        check_equal(suite, label, prefix, wanted)
    for label, options, why in [
            ("too few threads", [], "a rank has 1 thread"),
            ("stages", ["--threads", "2", "--dump-stages", suite.path("stages")],
             "stages are written, so all threads")]:
        _, result = run(suite, label, obs, *exact, *options, *forced(thread_teams=2), status=2)
        suite.true(f"{label}: said why", why in result.err)


def check_turns(suite):
    """Teams that make several outputs before all ranks meet: every image, mean and line of the
    log is there, of ranks to rounding and of threads bit for bit; one channel is empty."""
    def flag(s):
        s.weight[:, 3] = -1.0
    obs = Samples(suite, "turns", rows=STEPS * PER_STEP, channels=9, change=flag).path
    options = [*IMAGE, "--channels-out", "9", "--intervals-out", "1", "--cube", "--niter", "5",
               "--weight", "briggs:0", "--accuracy", str(EPS), "--verbose", "--overwrite"]
    prefix = suite.path("turns")
    kinds = [f"{k}{e}" for k in ("cube-", "MFS-") for e in ("dirty", "psf", "model", "image")
             if (k, e) != ("MFS-", "model")]

    def made(label, *more, ranks=1):
        result = tessera("image", obs, *options, *more, "-o", prefix, ranks=ranks)
        suite.ran(label, result, 0)
        return result, {k: fits_module().getdata(f"{prefix}-{k}.fits") for k in kinds}

    one, wanted = made("turns, one rank")
    for label, more, ranks in [("2 teams", forced(teams=2), 2), ("3 teams", forced(teams=3), 3),
                               ("2 teams of 2 ranks", forced(teams=2), 4),
                               ("2 teams of threads", ["--threads", "2", *forced(thread_teams=2)], 1),
                               ("2 teams with 2 teams of threads",
                                ["--threads", "2", *forced(teams=2, thread_teams=2)], 2)]:
        label = f"turns, {label}"
        result, found = made(label, *more, ranks=ranks)
        suite.true(f"{label}: said so", "outputs before all ranks meet" in result.err)
        suite.equal(f"{label}: files in the log", result.err.count("wrote "),
                    one.err.count("wrote "))
        for kind in kinds:
            blank = np.isnan(wanted[kind])
            suite.true(f"{label}: {kind}: what is NaN", np.array_equal(blank, np.isnan(found[kind])))
            if ranks == 1:
                suite.true(f"{label}: {kind}: bit for bit",
                           np.array_equal(wanted[kind], found[kind], equal_nan=True))
            else:
                suite.below(f"{label}: {kind}: L2 to one rank",
                            l2_error(found[kind][~blank], wanted[kind][~blank]), CLEANED)


def check_shared(suite, obs):
    """What teams of threads have in common: a density of all channels and one primary beam,
    a mask; and they go on from checkpoints, also of all threads."""
    mask, saved = suite.path("mask.fits"), suite.path("saved-threads")
    shared = ["--reproducible", "--weight", "uniform", "--mf-weighting", "--niter", "5",
              "--primary-beam", "airy:13.5,1", "--pbcor", "--fits-mask", mask]
    pixels = np.zeros((NY, NX), dtype=np.float32)
    pixels[NY // 4:3 * NY // 4, NX // 4:3 * NX // 4] = 1
    fits_module().PrimaryHDU(pixels).writeto(mask, overwrite=True)
    made = {}
    for teams, more in [(1, []), (2, ["--max-time", "0.001s"]), (3, ["--max-time", "0.001s"]),
                        (1, [])]:
        kept = ["--checkpoint", saved, "--resume"] if made else []
        prefix, result = run(suite, f"shared, {teams} teams", obs, *shared, *kept, *more,
                             "--threads", "3", *forced(thread_teams=teams),
                             status=75 if more else 0)
        if result.status == 0:
            made[len(made)] = {n: fits_module().getdata(os.path.join(os.path.dirname(prefix), n))
                               for n in sorted(glob_of(prefix)) if n.endswith(".fits")}
    suite.true("shared: bit for bit", len(made) == 2
               and made[0].keys() == made[1].keys() and len(made[0]) > 20 and all(
        np.array_equal(made[0][n], made[1][n], equal_nan=True) for n in made[0]))


def glob_of(prefix):
    """Images and NAME.conf."""
    folder, name = os.path.split(prefix)
    return [f for f in os.listdir(folder) if f.startswith(name)
            and f.endswith((".fits", ".conf"))]


def check_reproducible(suite, obs):
    exact = ["--reproducible", "--weight", "briggs:0"]
    prefix, _ = run(suite, "reproducible, one rank", obs, *exact)
    wanted = images(prefix)
    for ranks, teams in LAYOUTS:
        label = f"reproducible, {teams} teams of {ranks} ranks"
        prefix, _ = run(suite, label, obs, *exact, *forced(teams=teams), ranks=ranks)
        check_equal(suite, label, prefix, wanted)
    # Stopped after every round, and continued by others.
    saved = ["--checkpoint", suite.path("saved")]
    status, rounds = 75, 0
    for ranks, teams in [(2, 2), (4, 2), (3, 3)]:
        last = (ranks, teams) == (3, 3)
        prefix, result = run(
            suite, f"round {rounds}", obs, *exact, *saved, "--resume", *forced(teams=teams), *([] if last else ["--max-time", "0.001s"]), ranks=ranks,
            status=0 if last else status)
        rounds += 1
    check_equal(suite, "continued", prefix, wanted)


def check_subtracted(suite, obs):
    """Teams subtract a model of the image's pixels, each for its outputs. A blank pixel is
    refused in one line."""
    exact, model = ["--reproducible", "--weight", "natural"], suite.path("model.fits")
    prefix, _ = run(suite, "for a model", obs, *exact)
    with fits_module().open(f"{prefix}-t0000-MFS-dirty.fits") as file:
        pixels, header = file[0].data, file[0].header
        pixels[...] = 0
        pixels[0, 0, 40, 20] = 0.5
        header["BUNIT"] = "Jy/pixel"
        file.writeto(model, overwrite=True)
        pixels[0, 0, 3, 3] = np.nan
        file.writeto(suite.path("blank.fits"), overwrite=True)
    less = [*exact, "--subtract", model]
    prefix, _ = run(suite, "subtracted, one rank", obs, *less)
    wanted = images(prefix)
    for ranks, teams in LAYOUTS:
        label = f"subtracted, {teams} teams of {ranks} ranks"
        prefix, _ = run(suite, label, obs, *less, *forced(teams=teams), ranks=ranks)
        check_equal(suite, label, prefix, wanted)
    ranks, teams = LAYOUTS[-1]
    refused = tessera("image", obs, *IMAGE, *exact, "--subtract", suite.path("blank.fits"), "-o",
                      suite.path("refused"), *forced(teams=teams), ranks=ranks)
    suite.ran("a blank pixel", refused, 3)
    suite.equal("a blank pixel: lines", len(refused.errors()), 1)


def check_choice(suite, obs):
    """The planner's choice, in the plan and in the profile."""
    profile = suite.path("profile.json")
    small = ["--weight", "natural"]
    planned = tessera("plan", obs, *IMAGE, *small, ranks=3)
    suite.ran("plan", planned)
    suite.true("small outputs: a team each",
               re.search(r"outputs +6 sets of images by 3 teams of 1 rank\n", planned.out))
    run(suite, "chosen", obs, *small, "--profile", profile, ranks=3)
    with open(profile) as f:
        plan = json.load(f)["plan"]
    suite.true("chosen: in the profile", "; 3 teams," in plan)
    single = tessera("plan", obs, "--size", "60", "--scale", "60asec", ranks=2)
    suite.true("one output: nothing of teams", "sets of images" not in single.out)
    # Images that fit when all ranks share them, and not when each has its own.
    planned = tessera("plan", obs, *IMAGE[2:], "--size", "900", *small, "--memory", "60MiB",
                      *forced(fft_ranks=2), ranks=2)
    suite.ran("plan of large images", planned)
    suite.true("large images: all ranks together",
               "by 1 team of 2 ranks" in planned.out)
    _, result = run(suite, "4 teams of 3 ranks", obs, *forced(teams=4), ranks=3,
                    status=2)
    suite.true("said why", "does not divide 3 ranks" in result.err)
    for label, options, why in [
            ("one output", [], "there is one output, so"),
            ("one density", ["--channels-out", "3", "--mf-weighting", "--weight", "uniform"],
             "all channels share their density, so")]:
        result = tessera("image", obs, "--size", "60", "--scale", "60asec", *options, *forced(teams=3),
                         "-o", suite.path("together"), ranks=3)
        suite.ran(f"teams for {label}", result, 2)
        suite.equal(f"teams for {label}: one line", len(result.errors()), 1)
        suite.true(f"teams for {label}: said why", why in result.err)


def main():
    if not mpiexec():
        skip("no MPI launcher")
    suite = Suite("teams")
    obs = observe(suite).path
    check_layouts(suite, obs)
    check_reproducible(suite, obs)
    check_threads(suite, obs)
    check_turns(suite)
    check_shared(suite, obs)
    check_subtracted(suite, obs)
    check_choice(suite, obs)
    suite.finish()


if __name__ == "__main__":
    main()
