#!/usr/bin/env python3
"""--checkpoint and --resume: a run that was stopped or killed is continued, and its images
are those of a run that was not: byte by byte with --reproducible, to rounding without (the
limits of any_ranks.py; on a GPU, where every run adds in another order, a tenth of the
accuracy asked for, what its image may differ from a CPU's).

Stopped: by a time limit that leaves time for one batch of planes after the other; by
SIGUSR1 to one rank and by SIGTERM, between planes and while data are read; after every
single block of data that do not fit into memory, whose next run goes on behind it; killed
(all of the process group at once, or one rank, by SIGKILL) at random moments. The number of
ranks changes from run to run. A checkpoint that was damaged is replaced by the one before,
and one that finds no room for what has been read is written without.
"""
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))

from e2e import (BACKEND, BIN, FULL, SLOWER, Suite, forced, l2_error, mpi_environment, mpiexec,
                 read_image, take_forced, tessera, unsignalled_environment)
from rank_processes import ranks_left, ranks_of
import uvfits

STOPPED = 75
MOST_RUNS = 60
MANY_STEPS = forced(block_planes=2)
TO_ROUNDING = 1e-6 if BACKEND == "cpu" else 1e-5


def make_observation(suite, rows, channels=4, name="obs.uvfits", w_factor=1, stokes="XX,YY"):
    rng = np.random.default_rng(4)
    uvw = uvfits.random_tracks(rows, 900.0, 2.5, seed=8) * [1, 1, w_factor]
    shape = (rows, channels, len(stokes.split(",")))
    vis = 1 + 0.3 * (rng.normal(size=shape) + 1j * rng.normal(size=shape))
    path = suite.path(name)
    uvfits.write(path, uvw, 1.2e9 + 1.6e8 / channels * np.arange(channels), vis,
                 rng.uniform(0.5, 2, shape), corr_first=-5 if stokes == "XX,YY" else 1)
    return path


def data_of(suite, name):
    names = sorted(n for n in os.listdir(suite.work)
                   if n.startswith(name + "-") and n.endswith(".fits"))
    return {n[len(name) + 1:]: read_image(suite.path(n))[0] for n in names}


def remove(suite, name):
    for n in os.listdir(suite.work):
        if n in (name + ".conf", name + ".log") or (
                n.startswith(name + "-") and n.endswith(".fits")):
            os.remove(suite.path(n))


def same(suite, label, reference, limit):
    """The images called `run` are the reference's; limit None: byte by byte."""
    images = data_of(suite, "run")
    suite.equal(f"{label}: images", sorted(images), sorted(reference))
    for kind in sorted(set(images) & set(reference)):
        if limit is None:
            suite.true(f"{label} {kind}: the same bytes",
                       images[kind].tobytes() == reference[kind].tobytes())
        else:
            suite.below(f"{label} {kind}: L2", l2_error(images[kind], reference[kind]),
                        limit)


def command(suite, options, ranks):
    words = [BIN, "image", "--backend", BACKEND, *options, "--threads", "1", "-o", suite.path("run"),
             "--checkpoint", suite.path("saved")]
    return [mpiexec(), "-n", str(ranks), *words] if ranks > 1 else words


def start(suite, options, ranks, before=None, more=()):
    env = unsignalled_environment() if "--max-time" in options else mpi_environment()
    words, env = take_forced(command(suite, options, ranks), env)
    return subprocess.Popen(words, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, env={**env, **dict(more)}, text=True,
                            start_new_session=True, preexec_fn=before)


def end(child, timeout=120):
    try:
        _, err = child.communicate(timeout=timeout * SLOWER)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        return None, child.communicate()[1]
    return child.returncode, err


def reference(suite, options):
    ran, _ = suite.image("whole", "--backend", BACKEND, *options, "--threads", "1")
    images = data_of(suite, "whole") if ran else {}
    remove(suite, "whole")
    return images


def fresh(suite):
    remove(suite, "run")
    shutil.rmtree(suite.path("saved"), ignore_errors=True)


def check_limit(suite, label, options, rank_cycle, limit):
    """Never time for more than a batch of planes: always stopped, always further."""
    wanted = reference(suite, options)
    fresh(suite)
    generations, status = [], STOPPED
    while status == STOPPED and len(generations) < MOST_RUNS:
        ranks = rank_cycle[len(generations) % len(rank_cycle)]
        more = ["--resume"] if generations else []
        status, err = end(start(suite, [*options, *more, "--max-time", "0.001"], ranks))
        saved = os.path.join(suite.path("saved"), "checkpoint")
        generations.append(generation(saved) if os.path.exists(saved) else None)
    suite.equal(f"{label}: status in the end", status, 0)
    if status != 0:
        print(err[-2000:])
    suite.true(f"{label}: stopped {len(generations) - 1} times", len(generations) > 3)
    steps = generations[:-1]
    suite.true(f"{label}: every run goes on", all(b > a for a, b in zip(steps, steps[1:])))
    suite.true(f"{label}: checkpoints are gone", not os.path.exists(suite.path("saved")))
    same(suite, label, wanted, limit)


def generation(path):
    with open(path) as f:
        words = f.read().split()
    return int(words[words.index("generation") + 1])


def wait_for(path, child):
    while not os.path.exists(path) and child.poll() is None:
        time.sleep(0.002)


def launcher_hands_on_signals():
    """A wrapper of mpirun, as containers have them, may keep SIGUSR1 to itself."""
    child = subprocess.Popen(
        [mpiexec(), "-n", "1", "sh", "-c", "trap 'exit 7' USR1; echo; sleep 5 & wait"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=mpi_environment(), text=True,
        start_new_session=True)
    child.stdout.readline()
    child.send_signal(signal.SIGUSR1)
    return end(child)[0] == 7


def check_signals(suite, options):
    """Of so many planes, each saved, that there is time for a signal to arrive."""
    options = [make_observation(suite, 1000, name="steep.uvfits", w_factor=100),
               *options[1:]]
    wanted = reference(suite, options)
    options = [*options, "--checkpoint-every", "0.001"]
    for number, ranks in [(signal.SIGUSR1, 1), (signal.SIGUSR1, 3), (signal.SIGTERM, 1)]:
        if ranks > 1 and not (mpiexec() and launcher_hands_on_signals()):
            suite.skipped("no launcher that hands signals on")
            continue
        for _ in range(5):  # the signal may come late where the machine is busy
            fresh(suite)
            child = start(suite, options, ranks)
            wait_for(os.path.join(suite.path("saved"), "checkpoint"), child)
            child.send_signal(number)
            status, err = end(child)
            if status != 0:
                break
        label = f"{signal.Signals(number).name} on {ranks} ranks"
        suite.equal(f"{label}: status", status, STOPPED)
        told = [s for s in err.splitlines() if "--resume" in s]
        suite.equal(f"{label}: says how to go on, once", len(told), 1)
        suite.true(f"{label}: no image yet", not data_of(suite, "run"))
        status, err = end(start(suite, [*options, "--resume"], ranks))
        suite.equal(f"{label}: status of what continues", status, 0)
        same(suite, label, wanted, None)


def check_early_signal(suite, options):
    """A warning that comes while the options are read is not lost, also where MPI has put a
    handler of its own in place."""
    wanted = reference(suite, options)
    config = suite.path("slow.conf")
    os.mkfifo(config)
    taker = os.environ.get("TESS_MPI_TAKES_SIGNAL")
    cases = [("SIGUSR1 at once", 1, {})]
    if taker and launcher_hands_on_signals():
        cases.append(("SIGUSR1 at once, which MPI takes", 2, {"LD_PRELOAD": taker}))
    for label, ranks, more in cases:
        fresh(suite)
        child = start(suite, [*options, "--config", config], ranks, more=more)
        with open(config, "w") as f:  # which waits for the run to read it
            child.send_signal(signal.SIGUSR1)
            f.write("# no options\n")
        status, err = end(child)
        if not suite.equal(f"{label}: status", status, STOPPED):
            print(err)
    suite.equal("what continues", end(start(suite, [*options, "--resume"], 1))[0], 0)
    same(suite, "SIGUSR1 at once", wanted, None)


def wait_for_line(child, text):
    """What the program says until it says `text`."""
    told = ""
    for line in child.stderr:
        told += line
        if text in line:
            break
    return told


def check_reading(suite, ranks):
    """Stopped while data are looked through that do not fit into memory, before there is a
    plan, and while they are read once more after a pass: it does not read to the end."""
    label = f"reading on {ranks} ranks"
    if ranks > 1 and not (mpiexec() and launcher_hands_on_signals()):
        suite.skipped("no launcher that hands signals on")
        return
    obs = make_observation(suite, 150000, name="long.uvfits", w_factor=30)
    options = [obs, "--size", "160,120", "--scale", "25asec", "--weight", "uniform",
               "--reproducible", "--memory", f"{16 * ranks}MB", *MANY_STEPS]
    wanted = reference(suite, options)
    for _ in range(5):  # the signal may come late where the machine is busy
        fresh(suite)
        child = start(suite, options, ranks)
        wait_for(os.path.join(suite.path("saved"), "checkpoint"), child)
        child.send_signal(signal.SIGUSR1)
        status, err = end(child)
        if "plan: " not in err:
            break
    suite.equal(f"{label}: stopped in the first: status", status, STOPPED)
    suite.true(f"{label}: had not planned", "plan: " not in err)
    for _ in range(5):
        child = start(suite, [*options, "--resume"], ranks)
        told = wait_for_line(child, "pass 2 of ")
        child.send_signal(signal.SIGUSR1)
        status, err = end(child)
        if "pass 4 of" not in err:
            break
        fresh(suite)
    suite.true(f"{label}: streamed", "data are streamed" in told)
    if BACKEND == "cuda" and status == 0:
        suite.skipped("a GPU's last passes were over before the signal was seen")
        return
    suite.equal(f"{label}: stopped after the first pass: status", status, STOPPED)
    suite.true(f"{label}: soon", "pass 4 of" not in err)
    status, err = end(start(suite, [*options, "--resume"], ranks))
    suite.equal(f"{label}: status of what continues", status, 0)
    suite.true(f"{label}: says that it continues", "continuing from checkpoint" in err)
    same(suite, label, wanted, None)


def check_bookmark(suite, label, options, rank_cycle, stages, limit):
    """Data that do not fit into memory, and never time for more than a block of them: each
    run reads on where the one before was stopped; on another number of ranks, from the
    beginning, which `rank_cycle` is for."""
    wanted = reference(suite, options)
    fresh(suite)
    status, told, runs = STOPPED, "", 0
    while status == STOPPED and runs < 3 * MOST_RUNS:
        ranks = rank_cycle[min(runs, len(rank_cycle) - 1)]
        status, err = end(start(suite, [*options, "--resume", "--max-time", "0.001"], ranks))
        told += err
        runs += 1
    suite.equal(f"{label}: status after {runs} runs", status, 0)
    if status != 0:
        print(err[-2000:])
    suite.true(f"{label}: streamed", "data are streamed" in told)
    suite.true(f"{label}: stopped {runs - 1} times", runs > 10)
    for stage in stages:
        suite.true(f"{label}: '{stage}'", stage in told)
    same(suite, label, wanted, limit)


def middle_observation(suite):
    return make_observation(suite, 40000, name="middle.uvfits", w_factor=30)


def check_bookmarks(suite):
    # long rows of one correlation come in few blocks, each of which is a run
    obs = make_observation(suite, 2600, channels=64, name="wide.uvfits", w_factor=10, stokes="I")
    options = [obs, "--size", "160,120", "--scale", "25asec", "--no-psf", *MANY_STEPS]
    exact = [*options, "--weight", "uniform", "--reproducible"]
    survey, again = "the survey of the data goes on after", "what they had read is read again"
    first, second = (f"going on in pass {k} over the data, after" for k in (1, 2))
    check_bookmark(suite, "bookmark", [*exact, "--memory", "5MB", *forced(passes=2)],
                   [1], [survey, first, second], None)
    if FULL:
        check_bookmark(suite, "bookmark, natural weights",
                       [*options, "--weight", "natural", "--memory", "5MB",
                        *forced(passes=2)], [1], [survey, second], TO_ROUNDING)
    if mpiexec():
        check_bookmark(suite, "bookmark on several ranks", [*exact, "--memory", "10MB", *forced(passes=2)],
                       [2] * 21 + [3], [survey, first, again, second], None)


def small_files():
    """No file gets larger; who tries is told so."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))


def check_no_room(suite):
    """What has been read does not fit on the disk: the checkpoint is written without."""
    options = [middle_observation(suite), "--size", "160,120", "--scale", "25asec",
               "--no-psf", "--reproducible", "--memory", "6MB", *MANY_STEPS]
    wanted = reference(suite, options)
    fresh(suite)
    for _ in range(MOST_RUNS):
        status, err = end(start(suite, [*options, "--resume", "--max-time", "0.001"], 1,
                                small_files))
        if status != STOPPED or "no room for what has been read" in err:
            break
    suite.equal("no room: status", status, STOPPED)
    suite.true("no room: says so", "no room for what has been read" in err)
    status, err = end(start(suite, [*options, "--resume"], 1))
    suite.equal("no room: status of what continues", status, 0)
    same(suite, "no room", wanted, None)


def check_means(suite):
    """Stopped between output channels, and again, on other ranks, while data are read once
    more: the mean over channels has what it had."""
    if not mpiexec():
        return
    options = [middle_observation(suite), "--size", "160,120", "--scale", "25asec",
               "--no-psf", "--reproducible", "--memory", "6MB", "--channels-out", "4",
               *forced(teams=1)]
    wanted = reference(suite, options)
    fresh(suite)
    runs, made = 0, 0
    while not 1 <= made < 4 and runs < 4 * MOST_RUNS:
        status, err = end(start(suite, [*options, "--resume", "--max-time", "0.001"], 1))
        made = len([n for n in data_of(suite, "run") if n[0] == "0"])
        runs += 1
        if status != STOPPED:
            break
    suite.equal(f"means: status after {runs} runs, {made} channels", status, STOPPED)
    for ranks in (2, 3, 2):
        status, err = end(start(suite, [*options, "--resume", "--max-time", "0.001"], ranks))
        suite.equal(f"means, on {ranks} ranks: status", status, STOPPED)
    status, err = end(start(suite, [*options, "--resume"], 2))
    suite.equal("means: status of what continues", status, 0)
    same(suite, "means", wanted, None)


def check_outputs(suite):
    """Stopped while the second of several outputs is read: the first is not made again."""
    obs = make_observation(suite, 150000, name="long.uvfits", w_factor=30)
    options = [obs, "--size", "160,120", "--scale", "25asec", "--weight", "uniform",
               "--reproducible", "--channels-out", "2", "--no-psf", "--memory", "10MB",
               *MANY_STEPS]
    wanted = reference(suite, options)
    for _ in range(5):
        fresh(suite)
        child = start(suite, [*options, "--verbose"], 1)
        told = wait_for_line(child, "-0000-dirty.fits")
        child.send_signal(signal.SIGUSR1)
        status, err = end(child)
        if status == STOPPED:
            break
    suite.equal("in the second output: status", status, STOPPED)
    suite.true("in the second output: one was complete", "-0000-dirty.fits" in told)
    status, err = end(start(suite, [*options, "--resume"], 1))
    suite.equal("in the second output: status of what continues", status, 0)
    suite.true("in the second output: goes on after the first", ": 1 outputs done" in err)
    same(suite, "in the second output", wanted, None)


def check_kills(suite, options, kills):
    """SIGKILL at random moments to all, or to one rank, whose end the launcher makes that
    of all; each run continues what the one before left."""
    wanted = reference(suite, options)
    fresh(suite)
    options = [*options, "--checkpoint-every", "0.001", "--resume"]
    begin = time.monotonic()
    status, _ = end(start(suite, options, 2 if mpiexec() else 1))
    seconds = time.monotonic() - begin
    suite.equal("a run that is left alone: status", status, 0)
    same(suite, "left alone", wanted, None)
    fresh(suite)
    rng = random.Random(3)
    late = last = 0
    saved = os.path.join(suite.path("saved"), "checkpoint")
    for k in range(kills):
        alone = k % 2 == 1 and mpiexec()
        child = start(suite, options,
                      rng.choice([2, 3] if alone else [1, 2, 3]) if mpiexec() else 1)
        try:
            child.wait(timeout=rng.uniform(0.1, 1.0) * seconds)
            done = True
        except subprocess.TimeoutExpired:
            done = False
        ended = None, ""
        if alone and not done and kill_one(suite, rng):
            ended = end(child, 15)
            # mpirun itself may hang when its last rank has ended (in PMIx's finalize)
            left = ranks_left([suite.path("saved")])
            suite.true(f"kill {k}, of one rank: status {ended[0]}, ranks left {left}",
                       not left)
        elif not done:
            os.killpg(child.pid, signal.SIGKILL)
        kill_ranks(suite)
        status, err = ended if ended[0] is not None else end(child)
        if done:
            suite.equal(f"kill {k} came too late: status", status, 0)
            if status != 0:
                print(err[-2000:])
        if done or (data_of(suite, "run") and not os.path.exists(saved)):
            # the images are there, and what had been saved has been given up after them
            same(suite, f"kill {k} came too late", wanted, None)
            fresh(suite)
            late += 1
            last = 0
        elif os.path.exists(saved):
            now = generation(saved)
            suite.true(f"kill {k}: checkpoint {now} after {last}", now >= last)
            last = now
    status, err = end(start(suite, options, 3 if mpiexec() else 1))
    suite.equal(f"after {kills} kills, {late} of them late: status", status, 0)
    if status != 0:
        print(err[-2000:])
    same(suite, f"after {kills} kills", wanted, None)
    suite.true("checkpoints are gone", not os.path.exists(suite.path("saved")))


def kill_one(suite, rng):
    """One of the ranks, if any is left."""
    ranks = ranks_of([suite.path("saved")])
    try:
        os.kill(rng.choice(ranks), signal.SIGKILL)
        return True
    except (IndexError, OSError):
        return False


def kill_ranks(suite):
    """Ranks have process groups of their own: end those of this test's output."""
    for pid in ranks_of([suite.path("saved")]):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


def damage(path):
    with open(path, "r+b") as f:
        f.seek(-100, 2)
        f.write(b"damaged")


def newest_file(suite, rank=0, before=0):
    """A rank's file of the newest checkpoint, or of one before it."""
    number = generation(os.path.join(suite.path("saved"), "checkpoint")) - before
    return os.path.join(suite.path("saved"), f"checkpoint-{number}-{rank}")


def check_previous(suite, options):
    """The newest checkpoint is damaged on the disk: its files on two ranks, or it lacks
    one, or its text is cut short."""
    wanted = reference(suite, options)
    ranks = 3 if mpiexec() else 1
    text = os.path.join(suite.path("saved"), "checkpoint")

    def damage_files():
        for rank in {0, ranks - 1}:
            damage(newest_file(suite, rank))

    for label, spoil in [("damaged files", damage_files),
                         ("a missing file",
                          lambda: os.remove(newest_file(suite, ranks - 1))),
                         ("a text cut short",
                          lambda: os.truncate(text, os.path.getsize(text) // 2))]:
        fresh(suite)
        for k in range(2):
            status, _ = end(start(suite, [*options, "--max-time", "0.001", "--resume"],
                                  ranks))
            suite.equal(f"{label}: stopped: status", status, STOPPED)
        number = generation(text)
        kept = {n.split("-")[1] for n in os.listdir(suite.path("saved")) if "-" in n}
        suite.equal(f"{label}: checkpoints kept", kept, {str(number - 1), str(number)})
        spoil()
        status, err = end(start(suite, [*options, "--resume"], ranks))
        suite.equal(f"{label}: status", status, 0)
        told = [s for s in err.splitlines() if s.startswith("tessera: ")]
        suite.true(f"{label}: one warning, of what was damaged: {told}",
                   len(told) == 1 and f"number {number - 1}: " in told[0])
        same(suite, label, wanted, None)
        suite.true(f"{label}: checkpoints are gone",
                   not os.path.exists(suite.path("saved")))


def check_refusals(suite, obs, options):
    fresh(suite)
    stop = [*options, "--max-time", "0.001"]
    suite.equal("stopped: status", end(start(suite, stop, 1))[0], STOPPED)

    def refused(label, words, *texts):
        status, err = end(start(suite, words, 1))
        lines = [s for s in err.splitlines() if s.startswith("tessera: error:")]
        suite.equal(f"{label}: status", status, 3)
        suite.true(f"{label}: one line that says {texts}",
                   len(lines) == 1 and all(t in lines[0] for t in texts))

    refused("without --resume", options, "--resume")
    other = [w if w != "25asec" else "20asec" for w in options]
    refused("another scale", [*other, "--resume"], "25asec", "20asec")
    refused("one more option", [*options, "--resume", "--no-psf"], "no-psf")
    before = os.stat(obs)
    os.utime(obs, (before.st_atime, before.st_mtime + 10))
    refused("a changed observation", [*options, "--resume"], obs)
    os.utime(obs, (before.st_atime, before.st_mtime))
    path = newest_file(suite)
    damage(path)
    damage(newest_file(suite, before=1))
    refused("two damaged files", [*options, "--resume"], path, "damaged")
    os.truncate(path, os.path.getsize(path) // 2)
    refused("a file cut short", [*options, "--resume"], path, "short")
    text = os.path.join(suite.path("saved"), "checkpoint")
    os.truncate(text, os.path.getsize(text) // 2)
    refused("a text cut short", [*options, "--resume"], text)
    suite.equal("begin again: status", end(start(suite, [*options, "--overwrite"], 1))[0], 0)

    for label, words in [("no folder", ["--resume"]), ("no folder", ["--max-time", "1h"])]:
        result = tessera("image", *options, "-o", suite.path("x"), *words)
        suite.equal(f"{label} for {words[0]}: status", result.status, 2)
    result = tessera("image", *options, "-o", suite.path("x"), "--checkpoint",
                     suite.path("none", "saved"))
    suite.equal("a folder that cannot be made: status", result.status, 3)


def check_kernels(suite, obs):
    """A file of convolution functions is an input like the observation."""
    options = [obs, "--size", "160,120", "--scale", "25asec", "--w", "projection",
               "--channels-out", "4", "--no-psf"]
    gcf = suite.path("kernels.fits")
    result = tessera("image", *options, "-o", suite.path("made"), "--write-gcf", gcf)
    suite.ran("kernels are written", result)
    fresh(suite)
    options += ["--gcf", gcf, "--max-time", "0.001"]
    suite.equal("stopped with kernels: status", end(start(suite, options, 1))[0], STOPPED)
    at = os.stat(gcf)
    os.utime(gcf, (at.st_atime, at.st_mtime + 10))
    status, err = end(start(suite, [*options, "--resume"], 1))
    suite.equal("changed kernels: status", status, 3)
    suite.true("changed kernels: says so", gcf in err)
    os.utime(gcf, (at.st_atime, at.st_mtime))
    suite.equal("the same kernels: status",
                end(start(suite, [*options[:-2], "--resume"], 1))[0], 0)


def check_cost(suite, obs):
    """What the profile and the log tell of checkpoints: each of both 160 x 120 images."""
    fresh(suite)
    profile = suite.path("cost.json")
    status, err = end(start(suite, [
        obs, "--size", "160,120", "--scale", "25asec", "--checkpoint-every", "0.001s",
        "--profile", profile, "--verbose", *MANY_STEPS], 1))
    suite.equal("cost: status", status, 0)
    if status != 0:
        return
    with open(profile) as f:
        totals = json.load(f)["totals"]
    told = totals["checkpoints"]
    suite.true("cost: some were written, in some of the time",
               told["number"] > 0 and 0 < told["seconds"] < totals["seconds"])
    suite.equal("cost: bytes", told["bytes"], told["number"] * 2 * 160 * 120 * 4)
    suite.true("cost: in the log", "one every 10 minutes takes" in err)


def check_other_backend(suite, options):
    """Its sums are not the same bit for bit."""
    fresh(suite)
    stop = [*options, "--max-time", "0.001"]
    suite.equal("stopped on the GPU: status", end(start(suite, stop, 1))[0], STOPPED)
    status, err = end(start(suite, [*stop, "--resume", "--backend", "cpu"], 1))
    suite.equal("another backend: status", status, 3)
    suite.true("another backend: says so", "had 'backend = cuda'" in err)


def main():
    suite = Suite("checkpoints" if BACKEND == "cpu" else f"checkpoints-{BACKEND}")
    obs = make_observation(suite, 3000)
    image = [obs, "--size", "160,120", "--scale", "25asec", "--weight", "briggs:0",
             *MANY_STEPS]
    several = [1, 3, 2] if mpiexec() else [1]
    exact = [*image, "--reproducible"]
    check_limit(suite, "reproducible", [*exact, "--no-psf"], several, None)
    check_limit(suite, "to rounding", [*image, "--no-psf"], several[::-1], TO_ROUNDING)
    check_limit(suite, "double, two groups", [*image, "--accuracy", "1e-9", "--no-psf"],
                [4, 2] if mpiexec() else [1], 1e-12)
    check_limit(suite, "passes", [*exact, "--no-psf", *forced(passes=3)], several, None)
    check_limit(suite, "channels",
                [obs, "--size", "160,120", "--scale", "25asec", "--w", "none",
                 "--reproducible", "--channels-out", "4", "--no-psf"], several, None)
    if BACKEND == "cuda":
        check_other_backend(suite, exact)
    if BACKEND == "cpu":
        check_kernels(suite, obs)
    check_cost(suite, obs)
    check_signals(suite, exact)
    check_early_signal(suite, exact)
    for ranks in (1, 3):
        check_reading(suite, ranks)
    if BACKEND == "cpu":
        check_bookmarks(suite)
        check_no_room(suite)
        if FULL:
            check_means(suite)
    check_outputs(suite)
    check_refusals(suite, obs, image)
    check_previous(suite, [*exact, "--no-psf"])
    check_kills(suite, exact, 50 if FULL else 4)
    if BACKEND == "cpu":
        # too large for two and three ranks, while one keeps them in memory
        check_kills(suite, [middle_observation(suite), *exact[1:], "--memory", "12MB"],
                    20 if FULL else 2)
    suite.finish()


if __name__ == "__main__":
    main()
