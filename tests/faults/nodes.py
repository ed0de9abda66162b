#!/usr/bin/env python3
"""Ranks on several nodes, which are network namespaces joined by a bridge: images, CLEAN and
predictions are those of one rank; a job whose node loses its link, or one of whose ranks is
stopped or killed, ends with one line and leaves no rank and no unfinished file behind; it is
resumed on fewer nodes. A link that comes back in time, and a job that is suspended as a whole,
change nothing.

Without namespaces the test is skipped."""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))

from e2e import BIN, FULL, SLOWER, Suite, forced, mpiexec, read_image, run, skip, tessera
from namespaces import Nodes, enter
import uvfits

STALL_S = 5  # the least that --stall-timeout takes
LATE_S = 60 * SLOWER  # a job that has not ended by then does not end by itself
STOPPED, NO_RESOURCE = 75, 4
# Many steps, between which a run writes checkpoints.
LONG = ["--size", "1200", "--scale", "4asec", "--accuracy", "1e-7", "--reproducible",
        *forced(block_planes=1), "--no-psf"]
CLEAN = ["--size", "300", "--scale", "16asec", "--niter", "400", "--nmiter", "8",
         "--auto-threshold", "1", "--reproducible", "--no-sync"]
# What the program says of these images and this threshold, beside the lines that a check expects.
BESIDE = ("its unit is Jy/beam", "--auto-threshold 1 lets noise be cleaned")


def make_observation(suite):
    rng = np.random.default_rng(4)
    rows, channels = 4000, 4
    shape = (rows, channels, 2)
    path = suite.path("obs.uvfits")
    uvfits.write(path, uvfits.random_tracks(rows, 900.0, 2.5, seed=8),
                 1.2e9 + 4e7 * np.arange(channels),
                 1 + 0.3 * (rng.normal(size=shape) + 1j * rng.normal(size=shape)),
                 np.ones(shape))
    return path


class Job:
    """A run over nodes, with a rank on each: `words` behind `tessera`."""

    def __init__(self, suite, nodes, words, ranks):
        self.suite, self.nodes, self.ranks = suite, nodes, ranks
        self.path = suite.path("stderr.txt")
        with open(self.path, "w") as err:
            self.child = nodes.start([BIN, *words, "--threads", "1"], ranks, err)

    def text(self):
        with open(self.path, errors="replace") as f:
            return f.read()

    def wait_for(self, what):
        """Until it is so; fails if the run has ended before."""
        while not what():
            if self.child.poll() is not None:
                self.suite.true(f"the run had not ended before: {self.text()[-500:]}", False)
                return
            time.sleep(0.005)

    def wait_for_start(self):
        self.wait_for(lambda: f"on {sum(self.ranks)} ranks" in self.text())

    def rank_on(self, k):
        """The process of the rank on a node."""
        return next((p for p in self.nodes.processes(k) if is_rank(p)), None)

    def signal_rank(self, k, number):
        pid = self.rank_on(k)
        if pid:
            os.kill(pid, number)
        return pid is not None

    def end(self, label):
        """Waits until no rank is left, and for the launcher. Its status, None if it hangs."""
        until = time.monotonic() + LATE_S
        while self.left() and time.monotonic() < until:
            time.sleep(0.05)
        self.suite.equal(f"{label}: ranks left", self.left(), [])
        try:
            return self.child.wait(LATE_S)
        except subprocess.TimeoutExpired:
            return None
        finally:
            self.nodes.clear()
            self.child.wait()

    def left(self):
        return [k for k in range(len(self.ranks)) if self.rank_on(k)]

    def lines(self):
        """What the program says, but for what it says of the model's unit and of CLEAN's threshold."""
        return [s for s in self.text().splitlines()
                if s.startswith("tessera: ") and not any(words in s for words in BESIDE)]


def is_rank(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            state = f.read().rsplit(")", 1)[1].split()[0]
        return os.readlink(f"/proc/{pid}/exe") == os.path.realpath(BIN) and state not in "ZX"
    except OSError:
        return False


def one_line(suite, label, job, *texts):
    lines = job.lines()
    suite.true(f"{label}: one line with {texts}: {lines}",
               len(lines) == 1 and all(t in lines[0] for t in texts))


def generation(suite):
    try:
        with open(suite.path("saved", "checkpoint")) as f:
            words = f.read().split()
        return int(words[words.index("generation") + 1])
    except (OSError, ValueError):
        return 0


def files(suite, *beside):
    """What a run named `run` has left, beside its log and the record of its options."""
    return sorted(n for n in os.listdir(suite.work) if n.startswith("run") and
                  not n.endswith((".log", ".conf", *beside)))


def forget(suite):
    for name in os.listdir(suite.work):
        if name.startswith("run"):
            os.remove(suite.path(name))
    shutil.rmtree(suite.path("saved"), ignore_errors=True)


def image(suite, obs, options, *more):
    return ["image", obs, *options, "-o", suite.path("run"), *more]


def saving(suite):
    return ["--checkpoint", suite.path("saved"), "--checkpoint-every", "0.05s",
            "--stall-timeout", f"{STALL_S}s"]


def same_as(suite, label, wanted):
    """The images of `run` are those of one rank, byte by byte."""
    found = {n[len("run"):]: read_image(suite.path(n))[0].tobytes()
             for n in files(suite) if n.endswith(".fits")}
    suite.equal(f"{label}: images", sorted(found), sorted(wanted))
    suite.true(f"{label}: the bytes of one rank", found == wanted)


def of_one_rank(suite, obs, options):
    suite.ran("one rank", tessera(*image(suite, obs, options, "--threads", "1")))
    wanted = {n[len("run"):]: read_image(suite.path(n))[0].tobytes()
              for n in files(suite) if n.endswith(".fits")}
    forget(suite)
    return wanted


def resume(suite, nodes, label, obs, options, ranks, wanted):
    """Goes on with what is saved, on these nodes."""
    job = Job(suite, nodes, image(suite, obs, options, *saving(suite), "--resume"), ranks)
    suite.equal(f"{label}, resumed on {ranks}: status", job.end(label), 0)
    suite.true(f"{label}: it had not begun again", "continuing from" in job.text())
    same_as(suite, f"{label}, resumed", wanted)
    forget(suite)


def check_same(suite, nodes, obs, options, ranks, wanted, label):
    job = Job(suite, nodes, image(suite, obs, options), ranks)
    suite.equal(f"{label} on {ranks}: status", job.end(label), 0)
    same_as(suite, f"{label} on {ranks}", wanted)
    forget(suite)


def check_cut(suite, nodes, obs, options, ranks, cut, fewer, wanted):
    """A node's link goes down after the second checkpoint."""
    label = f"{ranks}: node {cut} cut off"
    job = Job(suite, nodes, image(suite, obs, options, *saving(suite)), ranks)
    job.wait_for(lambda: generation(suite) >= 2)
    nodes.cut(cut)
    suite.equal(f"{label}: status", job.end(label), STOPPED)
    nodes.join(cut)
    first = 1 if cut == 0 else cut
    one_line(suite, label, job, f"rank {first} on node{first}", "have not answered"
             if cut == 0 and len(ranks) > 2 else "has not answered", suite.path("saved"))
    suite.equal(f"{label}: files left", files(suite), [])
    resume(suite, nodes, label, obs, options, fewer, wanted)


def check_told(suite, nodes, obs):
    """SIGTERM to the ranks of a job that is stuck, and would wait for ever."""
    label = "cut off, SIGTERM"
    more = [*saving(suite)[:-1], "never"]
    job = Job(suite, nodes, image(suite, obs, LONG, *more), [1, 1])
    job.wait_for(lambda: generation(suite) >= 2)
    nodes.cut(1)
    time.sleep(1)
    for k in (0, 1):
        suite.true(f"{label}: rank {k} was there", job.signal_rank(k, signal.SIGTERM))
    suite.equal(f"{label}: status", job.end(label), STOPPED)
    nodes.join(1)
    one_line(suite, label, job, "rank 1 on node1 has not answered")
    suite.equal(f"{label}: files left", files(suite), [])
    forget(suite)


def check_killed(suite, nodes, obs, ranks, fewer, wanted):
    label = f"{ranks}: a rank killed"
    job = Job(suite, nodes, image(suite, obs, LONG, *saving(suite)), ranks)
    job.wait_for(lambda: generation(suite) >= 2)
    suite.true(f"{label}: it was there", job.signal_rank(1, signal.SIGKILL))
    status = job.end(label)
    suite.true(f"{label}: status {status}", status not in (None, 0))
    resume(suite, nodes, label, obs, LONG, fewer, wanted)


def check_suspended(suite, nodes, obs, wanted):
    """All ranks stop for longer than the limit; then a link is down for a short time."""
    label = "suspended, and a short loss"
    job = Job(suite, nodes, image(suite, obs, LONG, "--stall-timeout", f"{STALL_S}s"), [1, 1])
    job.wait_for_start()
    job.signal_rank(1, signal.SIGSTOP)
    time.sleep(1)  # rank 0 waits for it inside MPI
    job.signal_rank(0, signal.SIGSTOP)
    time.sleep(STALL_S + 1)
    suite.true(f"{label}: it was there", job.signal_rank(0, signal.SIGCONT))
    time.sleep(0.3)  # rank 0 may judge rank 1
    job.signal_rank(1, signal.SIGCONT)
    time.sleep(1.2)
    nodes.cut(1)
    time.sleep(STALL_S / 2)
    nodes.join(1)
    suite.equal(f"{label}: status", job.end(label), 0)
    suite.equal(f"{label}: lines", job.lines(), [])
    same_as(suite, label, wanted)
    forget(suite)


def check_held(suite, nodes, obs, ranks):
    """A rank stops for ever, in a run without checkpoints."""
    label = f"{ranks}: a rank held"
    job = Job(suite, nodes, image(suite, obs, LONG, "--stall-timeout", f"{STALL_S}s"), ranks)
    job.wait_for_start()
    suite.true(f"{label}: it was there", job.signal_rank(1, signal.SIGSTOP))
    suite.equal(f"{label}: status", job.end(label), NO_RESOURCE)
    one_line(suite, label, job, "tessera: error:", "rank 1 on node1 has not answered",
             "--stall-timeout")
    suite.equal(f"{label}: files left", files(suite), [])


def check_predict(suite, nodes, obs, ranks, cut):
    """Predictions are those of one rank, and a node that is cut off ends them."""
    label = f"predict on {ranks}"
    suite.ran("model", tessera(*image(suite, obs, ["--size", "600", "--scale", "8asec"])))
    model = suite.path("model.fits")
    os.rename(suite.path("run-dirty.fits"), model)
    forget(suite)
    words = ["predict", obs, "--model", model, "--accuracy", "1e-9", "--stall-timeout",
             f"{STALL_S}s", "-o"]
    one, many = suite.path(f"one-{len(ranks)}.uvfits"), suite.path("run.uvfits")
    suite.ran("predict by one rank", tessera(*words, one, "--threads", "1"))
    job = Job(suite, nodes, [*words, many], ranks)
    suite.equal(f"{label}: status", job.end(label), 0)
    a, b = (uvfits.read(p)[2] for p in (one, many))
    suite.below(f"{label}: against one rank", np.linalg.norm(a - b) / np.linalg.norm(a), 1e-6)
    forget(suite)
    job = Job(suite, nodes, [*words, many], ranks)
    job.wait_for_start()
    job.signal_rank(cut, signal.SIGSTOP)
    nodes.cut(cut)
    job.signal_rank(cut, signal.SIGCONT)
    suite.equal(f"{label}, cut off: status", job.end(label), NO_RESOURCE)
    nodes.join(cut)
    one_line(suite, f"{label}, cut off", job, f"rank {cut} on node{cut}")
    suite.equal(f"{label}, cut off: files left", files(suite), [])


def main():
    if not mpiexec() or not re.search("Open MPI|OpenRTE", run([mpiexec(), "--version"], 60).out):
        skip("starting ranks on namespaces needs Open MPI")
    enter()
    suite = Suite("nodes")
    obs = make_observation(suite)
    nodes = Nodes(suite, 3 if FULL else 2)
    wanted = of_one_rank(suite, obs, LONG)
    check_cut(suite, nodes, obs, LONG, [1, 1], 1, [1], wanted)
    check_told(suite, nodes, obs)
    check_killed(suite, nodes, obs, [1, 1], [1], wanted)
    check_suspended(suite, nodes, obs, wanted)
    check_held(suite, nodes, obs, [1, 1])
    if FULL:
        cleaned = of_one_rank(suite, obs, CLEAN)
        for ranks in ([1, 1], [1, 1, 1], [2, 1, 1]):
            check_same(suite, nodes, obs, LONG, ranks, wanted, "image")
            check_same(suite, nodes, obs, CLEAN, ranks, cleaned, "CLEAN")
        check_predict(suite, nodes, obs, [1, 1], 1)
        check_predict(suite, nodes, obs, [1, 1, 1], 2)
        check_cut(suite, nodes, obs, LONG, [1, 1, 1], 1, [1, 0, 1], wanted)
        check_cut(suite, nodes, obs, LONG, [1, 1, 1], 0, [1], wanted)
        check_cut(suite, nodes, obs, CLEAN, [1, 1, 1], 2, [1, 1], cleaned)
        check_killed(suite, nodes, obs, [1, 1, 1], [1, 1], wanted)
        check_held(suite, nodes, obs, [1, 1, 1])
    nodes.close()
    suite.finish()


if __name__ == "__main__":
    main()
