#!/usr/bin/env python3
"""Cleaning that is stopped again and again, inside minor loops and between major iterations, and
continued on other numbers of ranks, makes the images of a run that never stopped, bit by bit."""
import glob
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
import numpy as np  # noqa: E402

from e2e import (BACKEND, BIN, FULL, Suite, forced, mpiexec, read_image,  # noqa: E402
                 simulate, take_forced, tessera, write_sky)

SKY = [dict(ra="60.02deg", dec="-29.99deg", flux_jy=1.0, q=.2),
       dict(ra="59.97deg", dec="-30.03deg", flux_jy=.4, q=.1),
       dict(ra="60.01deg", dec="-30.02deg", flux_jy=.8, major="50asec", minor="30asec", pa="20deg")]
GRID = ["--size", "128,112", "--scale", "5asec", "--reproducible"]
MOST_RUNS = 120

# A GPU's driver takes a second to start, and this test starts tessera a hundred times. What it tests is
# the host's work, which is the same beside an emulated device.
FEW = BACKEND != "cpu" and "TESS_EMULATED" not in os.environ and not FULL


def observe(suite):
    return simulate(suite.path("obs.uvfits"), write_sky(suite.path("sky.csv"), SKY),
                    layout="meerkat", duration="1h", integration="300s", freq="1.28GHz",
                    width="10MHz", channels=4, extra=("--antennas", "24", "--noise", "0.1"))


def images(prefix):
    return {path[len(prefix):]: read_image(path)[0] for path in glob.glob(prefix + "-*.fits")}


def sources(prefix):
    if not os.path.exists(prefix + "-sources.txt"):
        return ""
    with open(prefix + "-sources.txt") as file:
        return file.read()


def same(suite, what, prefix, whole):
    found, expected = images(prefix), images(whole)
    suite.equal(f"{what}: files", sorted(found), sorted(expected))
    differ = [name for name in expected
              if name in found and not np.array_equal(found[name], expected[name], equal_nan=True)]
    suite.equal(f"{what}: images that differ", differ, [])
    suite.true(f"{what}: the same list of sources", sources(prefix) == sources(whole))


def remove(prefix, folder):
    for path in glob.glob(prefix + "[-.]*"):
        os.remove(path)
    shutil.rmtree(folder, ignore_errors=True)


def stop_and_go(suite, what, options, whole, rank_cycle):
    """Each run stops as soon as it has done something."""
    prefix, folder = suite.path("stopped"), suite.path("stops")
    remove(prefix, folder)
    clean, inside = 0, 0
    for k in range(MOST_RUNS):
        ranks = rank_cycle[k % len(rank_cycle)]
        result = tessera("image", *options, "--checkpoint", folder, "--resume", "--max-time",
                         "0.001", "-o", prefix, ranks=ranks, timeout=120)
        clean += "cleaning goes on after" in result.err
        inside += bool(re.search(r"cleaning goes on after 0 major", result.err))
        if result.status != 75:
            break
    suite.ran(f"{what}: the last of {k + 1} runs", result)
    suite.true(f"{what}: runs that went on cleaning: {clean}", clean > 1)
    if "--multiscale" in options:  # a single scale has one sub-minor loop
        suite.true(f"{what}: of them inside the first minor loop: {inside}", inside > 0)
    suite.true(f"{what}: no checkpoint is left", not os.path.exists(folder))
    same(suite, what, prefix, whole)


def stop_in_dirty_image(suite, obs, ranks):
    """Samples of planes that were done before a run was stopped are of use to later images: in
    memory, and on scratch."""
    options = [obs, "--size", "512", "--scale", "120asec", "--reproducible", "--accuracy", "1e-2",
               "--niter", "60", "--nmiter", "2", *forced(block_planes=1), "--threads", "1"]
    good, whole = suite.image("wide", *options)
    prefix, folder = suite.path("dirty"), suite.path("dirty-stops")
    if not good:
        return
    scratch = ["--scratch", suite.work, *forced(passes=3)]
    cases = [(8, []), (12, scratch)] + ([(12, []), (8, scratch)] if FULL else [])
    for stops, more in cases:
        what = f"{stops} stops in the dirty image, {' '.join(more[:1])} {ranks} ranks"
        remove(prefix, folder)
        command = ["image", *options, *more, "--checkpoint", folder, "--resume", "-o", prefix]
        for _ in range(stops):
            tessera(*command, "--max-time", "0.001", ranks=ranks, timeout=120)
        result = tessera(*command, ranks=ranks)
        suite.ran(what, result)
        suite.true(f"{what}: a part was left", "continuing from" in result.err and
                   "cleaning goes on" not in result.err)
        same(suite, what, prefix, whole)


def saved(folder):
    """What tells a checkpoint from the one before; None if there is none."""
    try:
        return os.stat(os.path.join(folder, "checkpoint")).st_mtime_ns
    except OSError:
        return None


def kill_after(command, folder, seconds):
    """Kills a run so long after it has saved a checkpoint of its own. Its status: -SIGKILL, or what it
    ended with before."""
    words, env = take_forced(command)
    before = saved(folder)
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    while child.poll() is None and saved(folder) == before:
        time.sleep(.002)
    time.sleep(seconds)
    child.send_signal(signal.SIGKILL)
    return child.wait()


def kill_and_go(suite, options, whole, kills):
    """Killed at any time after a checkpoint, of which there are as many as can be. A run that begins
    is killed at once, others after up to half of what a whole run takes on this machine; one that
    ends before is judged by its images."""
    prefix, folder = suite.path("killed"), suite.path("kills")
    remove(prefix, folder)
    command = [BIN, "image", *options, "--checkpoint", folder, "--resume", "--checkpoint-every",
               "0.01", "-o", prefix]
    if BACKEND != "cpu":
        command += ["--backend", BACKEND]
    rng = random.Random(7)
    begin = time.monotonic()
    suite.ran("a run that is left alone", tessera(*command[1:]))
    seconds = time.monotonic() - begin
    remove(prefix, folder)
    killed = late = 0
    for k in range(kills):
        after = rng.uniform(0, seconds) / 2 if saved(folder) else 0
        status = kill_after(command, folder, after)
        if status == -signal.SIGKILL and not saved(folder):
            status = 0 if images(prefix) else status  # a checkpoint is given up once all images have names
        if status == 0:
            same(suite, f"kill {k} came too late", prefix, whole)
            remove(prefix, folder)
            late += 1
            continue
        suite.equal(f"kill {k}: status", status, -signal.SIGKILL)
        suite.true(f"kill {k}: a checkpoint is left", saved(folder) is not None)
        killed += 1
    suite.true(f"{killed} kills in time, {late} late", killed > 0)
    left = saved(folder) is not None
    result = tessera("image", *options, "--checkpoint", folder, "--resume", "-o", prefix)
    suite.ran(f"after {kills} kills", result)
    suite.equal(f"after {kills} kills: goes on", "continuing from" in result.err, left)
    same(suite, f"after {kills} kills", prefix, whole)


def many_channels(suite):
    """The models of many channels are in one checkpoint."""
    obs = simulate(suite.path("many.uvfits"), suite.path("sky.csv"), layout="meerkat", duration="20min",
                   integration="300s", freq="1.28GHz", width="2MHz", channels=48,
                   extra=("--antennas", "16", "--noise", "0.1"))
    options = [obs, "--size", "48", "--scale", "12asec", "--reproducible", "--niter", "200", "--nmiter", "2",
               "--stokes", "IQ", "--channels-out", "48", "--join-channels"]
    good, whole = suite.image("many", *options)
    if good:
        stop_and_go(suite, "many channels", options, whole, (1,))


def densities_of_channels(suite, obs):
    """Channels on scratch with a density each: a density that was freed is in no checkpoint, which
    a freed array shows that has other bytes. A device has no samples on scratch: they stay in memory
    between images, and are 466 KiB, which is to be less than 0.45 of what a rank may use."""
    memory = "1MB" if BACKEND == "cpu" else "2MB"
    options = [obs, "--size", "64", "--scale", "5asec", "--reproducible", "--niter", "60", "--nmiter", "3",
               "--channels-out", "2", "--join-channels", "--no-mf-weighting", "--weight", "uniform",
               "--memory", memory, "--scratch", suite.work, *forced(passes=3, scratch=1), "--threads", "1"]
    os.environ["MALLOC_PERTURB_"] = "165"
    good, whole = suite.image("densities", *options)
    if good:
        stop_and_go(suite, "densities of channels", options, whole, (1,))
    del os.environ["MALLOC_PERTURB_"]


def main():
    suite = Suite("clean_checkpoints")
    obs = observe(suite)
    if not FEW:
        many_channels(suite)
        densities_of_channels(suite, obs)
    several = (1,)
    if mpiexec():
        several = (1, 3, 2, 4) if FULL else (1, 1, 3, 1, 1, 2)
    cases = {"multiscale": ["--niter", "400", "--auto-threshold", "4", "--auto-mask", "6",
                            "--multiscale", "--nmiter", "3", "--stokes", "IQ",
                            "--save-first-residual", "--save-source-list"],
             "channels": ["--niter", "150", "--nmiter", "2", "--channels-out", "2", "--save-source-list",
                          *forced(teams=1, thread_teams=1)],
             "joined": ["--niter", "300", "--auto-threshold", "4", "--auto-multithresh",
                        "--sidelobe-threshold", "0.5", "--nmiter", "3", "--multiscale", "--channels-out", "4", "--join-channels", "--fit-spectral-pol",
                        "2", "--deconvolution-channels", "2", "--stokes", "IQ", "--join-polarizations",
                        "--save-first-residual", "--save-source-list"],
             "masks": ["--niter", "300", "--auto-threshold", "3", "--auto-multithresh", "--cycleniter",
                       "20", "--sidelobe-threshold", "0.5", "--fast-noise", "no", "--nmiter", "6",
                       "--stokes", "IQ"],
             "joined by an automatic mask": [
                 "--niter", "300", "--auto-threshold", "4", "--auto-mask", "6", "--nmiter", "3",
                 "--multiscale", "--channels-out", "4", "--join-channels", "--fit-spectral-pol", "2",
                 "--deconvolution-channels", "2", "--stokes", "IQ", "--join-polarizations"],
             # facets are put around peaks of a first image, of which the first run keeps a file
             "facets": ["--niter", "100", "--nmiter", "2", "--facets", "2", "--facet-beam", "airy:13.5",
                        "--psf-per-facet", "--channels-out", "2", *forced(teams=1)],
             "cross-hands": ["--niter", "150", "--nmiter", "2", "--stokes", "XX,YY"]}
    if not FULL:
        cases = {what: cases[what] for what in ("multiscale", "facets", "joined")[:1 if FEW else 3]}
    for what, more in cases.items():
        options = [obs, *GRID, *more]
        good, whole = suite.image(what, *options)
        if good:
            stop_and_go(suite, what, options, whole, several)
    stop_in_dirty_image(suite, obs, 2 if mpiexec() else 1)
    options = [obs, *GRID, *cases["multiscale"]]
    kill_and_go(suite, options, suite.path("multiscale"), 20 if FULL else 6)
    refused = tessera("image", *options, "--gain", ".2", "--checkpoint", suite.path("kills"),
                      "-o", suite.path("other"))
    suite.ran("other options in an empty folder", refused)
    suite.finish()


main()
