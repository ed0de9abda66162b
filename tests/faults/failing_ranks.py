#!/usr/bin/env python3
"""One rank of several that dies or fails ends all of them, with one message and a
non-zero status, and nothing is left under a final name.

Ranks are given different command lines (mpiexec's A : B form): one has a damaged file, no
file, or an address space too small for its share, as one node of a job might. A rank that
fails while others are at work for long, or stopped, ends them without waiting for them.
"""
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

from e2e import BIN, FULL, SLOWER, Suite, forced, mpiexec, run, skip, take_forced
from rank_processes import hold, process_of, ranks_left, ranks_of, resume
import uvfits

HUNG_S = 120.0  # a run that has not ended by then does not end by itself


def make_observation(suite):
    rng = np.random.default_rng(4)
    rows, channels = 6000, 8
    uvw = uvfits.random_tracks(rows, 900.0, 2.5, seed=8)
    shape = (rows, channels, 2)
    path = suite.path("obs.uvfits")
    uvfits.write(path, uvw, 1.2e9 + 4e7 * np.arange(channels),
                 1 + 0.3 * (rng.normal(size=shape) + 1j * rng.normal(size=shape)),
                 np.ones(shape))
    return path


def image(suite, obs, *more):
    return [BIN, "image", obs, "--size", "2400", "--scale", "2asec", "--threads", "1",
            "--overwrite", *more, "-o", suite.path("out")]


def nothing_left(suite, label):
    left = [n for n in os.listdir(suite.work)
            if n.startswith("out") and not n.endswith(".log")]
    suite.equal(f"{label}: files left", left, [])


def remove_outputs(suite):
    for name in os.listdir(suite.work):
        if name.startswith("out"):
            os.remove(suite.path(name))


def start_ranks(words, *other):
    """Three ranks of this command line, or one of it and two of another one, once all of
    them run."""
    ranks = ["-n", "1", *words, ":", "-n", "2", *other] if other else ["-n", "3", *words]
    command, env = take_forced([mpiexec(), *ranks])
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, env=env, text=True,
                             start_new_session=True)
    while len(ranks_of([words[-1]])) < 3 and child.poll() is None:
        time.sleep(0.01)
    return child


def end_and_errors(child):
    """Waits for the launcher, not for ever; whether it ended by itself, and the program's
    error lines."""
    ended = True
    try:
        _, err = child.communicate(timeout=HUNG_S * SLOWER)
    except subprocess.TimeoutExpired:
        ended = False
        os.killpg(child.pid, signal.SIGKILL)
        _, err = child.communicate()
    return ended, [s for s in err.splitlines() if s.startswith("tessera: error:")]


def end_of(child):
    """Waits for the launcher, not for ever; whether it ended by itself."""
    return end_and_errors(child)[0]


def wait_for(text, path, child):
    """Until the file says so, or the run has ended."""
    while child.poll() is None:
        if os.path.exists(path) and text in open(path).read():
            return
        time.sleep(0.01)


# Three teams of one rank make a channel each, and all ranks clean them together.
JOINED_TEAMS = ["--channels-out", "3", "--niter", "20", "--nmiter", "2", "--join-channels", *forced(teams=3)]


def check_death(suite, words, last, kills):
    """SIGKILL to one rank at a random moment of its work.

    The rank is held before it is judged to be still at work: as long as the last file has
    not got its name, no rank can have passed MPI_Finalize, and its death has to show.
    """
    whole = start_ranks(words)
    begin = time.monotonic()
    whole.communicate()
    seconds = time.monotonic() - begin
    suite.equal(f"left alone, {seconds:.1f} s: status", whole.returncode, 0)
    suite.true("left alone: the last file is there", os.path.exists(last))
    rng = random.Random(6)
    done = 0
    for k in range(8 * kills):
        if done == kills:
            break
        os.remove(last) if os.path.exists(last) else None
        child = start_ranks(words)
        after = rng.uniform(0.1, 0.9) * seconds
        time.sleep(after)
        ranks = ranks_of([words[-1]])
        victim = rng.choice(ranks) if ranks else None
        if not victim or not hold(victim) or os.path.exists(last):
            resume(victim)
            end_of(child)
            suite.equal(f"kill {k} came too late: status", child.returncode, 0)
            seconds = after  # a run that was slow when it was left alone does not delay all kills
            continue
        os.kill(victim, signal.SIGKILL)
        suite.true(f"kill {k}: ends by itself", end_of(child))
        suite.true(f"kill {k}: status {child.returncode}", child.returncode != 0)
        suite.equal(f"kill {k}: ranks left", ranks_left([words[-1]]), [])
        done += 1
    suite.equal("kills in time", done, kills)


def check_failure(suite, label, well, ill, status, *texts):
    """Two ranks run `well`, the last one `ill`."""
    result = run([mpiexec(), "-n", "2", *well, ":", "-n", "1", *ill],
                 HUNG_S * SLOWER)
    suite.ran(label, result, status)
    lines = result.errors()
    suite.equal(f"{label}: messages", len(lines), 1)
    suite.true(f"{label}: it says {texts}",
               len(lines) == 1 and all(t in lines[0] for t in texts))
    nothing_left(suite, label)


# Images of 8000² pixels (256 MB), in the memory of processors.
BIG = ["--size", "8000", "--backend", "cpu"]
# MPI's threads would take address space for arenas of their own.
ONE_ARENA = ["env", "MALLOC_ARENA_MAX=1"]
# Bytes that are left for less than such an image. MPI and the system's libraries can crash or hang where they
# find no memory for themselves.
ROOM = 200_000_000


def peak_address_space(pid):
    """Bytes that a process has taken at most, 0 when it has ended."""
    try:
        with open(f"/proc/{pid}/status") as f:
            return next((1024 * int(line.split()[1]) for line in f if line.startswith("VmPeak")), 0)
    except OSError:
        return 0


def no_room_for_an_image(suite, obs):
    """Words before a command that limit its address space to what a small image takes here, and ROOM. How much
    the program and its libraries take depends on the machine: those of CUDA alone take 300 MB."""
    words = image(suite, obs, *BIG, "--size", "600")
    child = start_ranks([*ONE_ARENA, *words])
    peak = 0
    while child.poll() is None:
        peak = max([peak, *map(peak_address_space, ranks_of([words[-1]]))])
        time.sleep(0.005)
    suite.equal("a small image: status", child.returncode, 0)
    suite.true(f"a small image: {peak} bytes of address space", peak > 0)
    remove_outputs(suite)
    return [*ONE_ARENA, "prlimit", f"--as={peak + ROOM}"]


def check_team(suite, obs, limited):
    """One of three teams has too little memory: the others end after their output."""
    words = image(suite, obs, *BIG, "--accuracy", "1e-7", "--no-psf",
                  "--channels-out", "8", *forced(teams=3))
    result = run([mpiexec(), "-n", "2", *words, ":", "-n", "1", *limited, *words], HUNG_S)
    suite.ran("a team without memory", result, 4)
    suite.equal("a team without memory: messages", len(result.errors()), 1)
    only_images_left(suite, "a team without memory")


def check_joined_team(suite, obs, limited):
    """One of three teams has too little memory for a channel that is cleaned with theirs."""
    words = image(suite, obs, *BIG, *JOINED_TEAMS)
    result = run([mpiexec(), "-n", "2", *words, ":", "-n", "1", *limited, *words], HUNG_S)
    suite.ran("a team of joined channels without memory", result, 4)
    suite.equal("a team of joined channels without memory: messages", len(result.errors()), 1)
    nothing_left(suite, "a team of joined channels without memory")


def only_images_left(suite, label):
    """The first two of three teams may have written channels before they heard of the third one's
    failure: whole files, of whole blocks."""
    left = [n for n in os.listdir(suite.work) if n.startswith("out")]
    images = [n for n in left if n.endswith("-dirty.fits")]
    suite.equal(f"{label}: files that are no image of another team",
                [n for n in left if not n.endswith((".log", ".conf")) and
                 (n not in images or int(n.split("-")[1]) % 3 == 2)], [])
    suite.true(f"{label}: images are whole",
               all(os.path.getsize(suite.path(n)) % 2880 == 0 for n in images))
    remove_outputs(suite)


def ends_by_itself(suite, label, child, status, text):
    """One line that says `text`, and the end of all ranks, one of which is held."""
    ended, lines = end_and_errors(child)
    suite.true(f"{label}: ends by itself", ended)
    suite.equal(f"{label}: status", child.returncode, status)
    suite.equal(f"{label}: messages", len(lines), 1)
    suite.true(f"{label}: it says {text}", len(lines) == 1 and text in lines[0])


def check_held_reader(suite, obs):
    """The first rank waits for a file for ever, both others fail at one time."""
    pipe = suite.path("pipe.conf")
    os.mkfifo(pipe)
    words = image(suite, obs)
    well = [*words[:2], "--config", pipe, *words[2:]]
    child = start_ranks(well, *well[:2], "--config", pipe, *well[2:])
    ends_by_itself(suite, "two ranks fail, one reads", child, 2, "--config")
    suite.equal("two ranks fail, one reads: ranks left", ranks_left([words[-1]]), [])
    nothing_left(suite, "two ranks fail, one reads")
    os.remove(pipe)


def check_held_team(suite, obs):
    """One of three teams cannot write while another one is stopped at its work."""
    words = image(suite, obs, "--no-psf", "--channels-out", "8", *forced(teams=3))
    log = suite.path("out.log")
    os.remove(log) if os.path.exists(log) else None
    child = start_ranks(words)
    wait_for("tessera", log, child)  # MPI's own files are there
    ill, held = (process_of(rank, [words[-1]]) for rank in (2, 0))
    try:
        resource.prlimit(ill, resource.RLIMIT_FSIZE, (4096, 4096))
    except (OSError, TypeError) as error:
        print("the limit came too late:", error)
    wait_for("plan:", log, child)  # from here on teams work alone
    suite.true("a team that cannot write: another one is held", held and hold(held))
    ends_by_itself(suite, "a team that cannot write", child, 3, "0002-dirty.fits")
    suite.equal("a team that cannot write: ranks left", ranks_left([words[-1]]), [])
    only_images_left(suite, "a team that cannot write")


def main():
    if not mpiexec():
        skip("no MPI launcher")
    suite = Suite("failing_ranks")
    obs = make_observation(suite)
    check_death(suite, image(suite, obs, "--accuracy", "1e-7"), suite.path("out-psf.fits"), 12 if FULL else 3)
    check_death(suite, image(suite, obs, "--size", "600", *JOINED_TEAMS), suite.path("out-MFS-psf.fits"),
                12 if FULL else 2)
    remove_outputs(suite)
    size = os.path.getsize(obs)
    short = suite.path("short.uvfits")
    shutil.copy(obs, short)
    os.truncate(short, size - size // 4)
    check_failure(suite, "a file cut short on one rank", image(suite, obs),
                  image(suite, short), 3, short)
    check_failure(suite, "no file on one rank", image(suite, obs),
                  image(suite, suite.path("none.uvfits")), 3, "none.uvfits")
    check_held_reader(suite, obs)
    check_held_team(suite, obs)
    if "address" not in os.environ.get("TESS_SANITIZE", "") and SLOWER == 1:
        limited = no_room_for_an_image(suite, obs)
        words = image(suite, obs, *BIG, "--accuracy", "1e-7", "--no-psf", *forced(fft_ranks=1))
        check_failure(suite, "too little memory on one rank", words, [*limited, *words], 4, "memory")
        check_team(suite, obs, limited)
        check_joined_team(suite, obs, limited)
    suite.finish()


if __name__ == "__main__":
    main()
