#!/usr/bin/env python3
"""The Slurm scripts of jobs/, submitted to a Slurm of the test's own: jobs that reach
their time limit, or get its early signal, are queued again until their image is there,
which has the bytes of one made without interruption; arrays; what submit.sh fills in.

Slurm's shortest limit is a minute. tessera stops a minute before the end of its job, so
in such a job as soon as it has done anything at all. For the early signal ranks are held
(SIGSTOP) until it has come, so that it does not come too late on any machine.

--full: a job that is killed at its limit goes on from what had been saved before.
"""
import os
import re
import shlex
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("../oracle", "../faults"):
    sys.path.insert(0, os.path.join(HERE, folder))

from checkpoints import make_observation
from e2e import (BIN, FULL, ROOT, SLOWER, Suite, forced, have_ms, mpi_environment, mpiexec,
                 read_image, simulate, skip, take_forced, write_sky)
from own_slurm import NoSlurm, OwnSlurm

JOBS = os.path.join(ROOT, "jobs")
SIZE = ["--size", "160,120", "--scale", "25asec", "--reproducible"]
# One checkpoint after the other: two ranks make an image each, twice, and their mean.
CUBE = [*SIZE, "--w", "none", "--channels-out", "4", "--no-psf"]
# Many steps in one image, and an end that is not near.
STACK = [*SIZE, *forced(block_planes=2), "--max-time", "1h"]
# None that means anything: in a job of a minute it could come before bash can take it.
NO_SIGNAL = "--signal=B:CONT@1"
# Nodes of one host reach each other by the loopback only, and shared memory of each would bear
# the names of the other's.
NODES_OF_ONE_HOST = dict(OMPI_MCA_btl="tcp,self",
                         OMPI_MCA_btl_tcp_if_include="127.0.0.1/8")
PATIENCE = 100 * SLOWER


def data_of(suite, name):
    names = sorted(n for n in os.listdir(suite.work)
                   if n.startswith(name + "-") and n.endswith(".fits"))
    return {n[len(name) + 1:]: read_image(suite.path(n))[0].tobytes() for n in names}


class Jobs:
    def __init__(self, suite, slurm):
        self.suite, self.slurm = suite, slurm

    def submit(self, label, script, resources, words, **more):
        """Job's number. Its output is LABEL.out (LABEL.log would be tessera's own)."""
        words, more = take_forced(words, more)
        result = self.slurm.run(
            "sbatch", "--parsable", f"--output={label}.out", *resources,
            os.path.join(JOBS, script), *words, cwd=self.suite.work, TESSERA=BIN,
            TESSERA_JOBS=JOBS, **more)
        if not self.suite.equal(f"{label}: sbatch", result.returncode, 0):
            print(result.stdout)
            return None
        return result.stdout.strip()

    def log(self, label):
        try:
            with open(self.suite.path(f"{label}.out"), errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def ended(self, label, job, restarts=None):
        """The job comes to a good end; at least `restarts` times queued again."""
        facts = self.slurm.wait_job(job, PATIENCE)
        good = self.suite.equal(f"{label}: state", facts.get("JobState"), "COMPLETED")
        if restarts is not None:
            count = int(facts.get("Restarts", -1))
            good &= self.suite.true(f"{label}: queued again {count} times (at least "
                                    f"{restarts})", count >= restarts)
        if not good:
            print(facts, self.log(label)[-6000:], self.slurm.run("squeue").stdout)
        return good

    def same(self, label, name, wanted):
        self.suite.true(f"{label}: the bytes of one uninterrupted run",
                        bool(wanted) and data_of(self.suite, name) == wanted)

    def says(self, label, *texts):
        log = self.log(label)
        for text in texts:
            if not self.suite.true(f"{label}: says {text!r}", re.search(text, log)):
                print(log[-4000:])


def reference(suite, name, obs, options):
    options = [w for w in options if w not in ("--max-time", "1h")]
    suite.image(name, obs, *options, "--threads", "1")
    return data_of(suite, name)


def ranks_of(suite, name):
    """Processes of tessera itself in the suite's folder, not those of the same test run
    beside it, that have this word on their command line."""
    found = []
    folder = os.path.realpath(suite.work)
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            if (words[0] == BIN.encode() and name.encode() in words
                    and os.readlink(f"/proc/{number}/cwd") == folder):
                found.append(int(number))
        except OSError:
            pass
    return found


def signal_all(numbers, what):
    for number in numbers:
        try:
            os.kill(number, what)
        except OSError:
            pass


def hold(suite, label, name, ranks):
    """Stop the ranks of a run as soon as it has begun to save; their numbers."""
    end = time.monotonic() + PATIENCE
    saved = suite.path(name + ".saved", "checkpoint")
    while time.monotonic() < end and not os.path.exists(saved):
        time.sleep(0.002)
    held = ranks_of(suite, name)
    signal_all(held, signal.SIGSTOP)
    suite.equal(f"{label}: ranks at work", len(held), ranks)
    return held


def start_limit(jobs, obs):
    """By srun, on one node; ends before its limit again and again."""
    return jobs.submit("limit", "slurm-cpu.sh",
                       ["--nodes=1", "--ntasks-per-node=2", "--cpus-per-task=1",
                        "--mem=1G", "--time=1", NO_SIGNAL],
                       [obs, "-o", "limit", *CUBE], TESSERA_LAUNCH="srun")


def end_limit(jobs, job, wanted):
    if job and jobs.ended("limit", job, 2):
        jobs.same("limit", "limit", wanted)
        jobs.says("limit", r"srun --mpi=pmi\w* ", r"rank 0 on \S+: cores \d",
                  "on 2 ranks, 1 thread each", "status 75", "status 0")
        check_binding(jobs)


def check_binding(jobs):
    """Ranks of a node share no core."""
    cores = dict(re.findall(r"rank ([01]) on \S+: cores (\S+)", jobs.log("limit")))
    config = jobs.slurm.run("scontrol", "show", "config").stdout
    if "task/affinity" in config:
        jobs.suite.true(f"limit: a core for each rank {cores}",
                        len(set(cores.values())) == 2)


def start_signal(jobs, obs):
    """By mpirun, on two nodes; told by Slurm's early signal to the script's shell."""
    return jobs.submit("early", "slurm-cpu.sh",
                       ["--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=1",
                        "--mem=1G", "--time=1", "--signal=B:USR1@20"],
                       [obs, "-o", "early", *STACK], TESSERA_LAUNCH="mpirun",
                       **NODES_OF_ONE_HOST)


def wait_signal(jobs):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and "told to stop" not in jobs.log("early"):
        time.sleep(0.2)
    jobs.says("early", "told to stop")


def end_signal(jobs, job, wanted):
    if job and jobs.ended("early", job, 1):
        jobs.same("early", "early", wanted)
        jobs.says("early", r"mpirun -n 2 .*--checkpoint early\.saved", "status 75",
                  "status 0")


def make_shared(suite):
    """One observation of four channels for all tasks of an array."""
    if not have_ms():
        return make_observation(suite, 500)
    sky = write_sky(suite.path("sky.csv"),
                    [dict(ra="60deg", dec="-30deg", flux_jy=1, ref_freq="1.4GHz")])
    return simulate(suite.path("shared.ms"), sky, duration="20min")


def start_array(jobs, obs):
    return jobs.submit("array", "slurm-array.sh",
                       ["--array=0-1", "--cpus-per-task=1", "--mem=500M", "--time=5"],
                       ["channels:4:2", obs, "-o", "part", *SIZE])


def end_array(jobs, job, obs):
    suite = jobs.suite
    for task in (0, 1) if job else ():
        if jobs.ended(f"array {task}", f"{job}_{task}"):
            channels = ["--channels", f"{2 * task}:{2 * task + 2}"]
            wanted = reference(suite, f"alone{task}", obs, [*SIZE, *channels])
            jobs.same(f"array {task}", f"part-{task:04d}", wanted)


def check_submit(jobs, obs):
    """What submit.sh fills in, and that it is what runs."""
    suite, slurm = jobs.suite, jobs.slurm
    words = [obs, "-o", "filled", *SIZE]

    def submit(*options, name="filled"):
        return slurm.run("bash", os.path.join(JOBS, "submit.sh"), *options,
                         *[name if w == "filled" else w for w in words],
                         cwd=suite.work, TESSERA=BIN)

    dry = submit("--dry-run", "--extra", "--comment=tried")
    suite.equal("submit.sh --dry-run: status", dry.returncode, 0)
    for line in [r"--nodes=1", r"--cpus-per-task=1", r"--ntasks-per-node=1",
                 r"--mem=\d+M", r"--time=\d+", r"--comment=tried",
                 r"--signal=B:USR1@\d+", r"--job-name=filled"]:
        suite.true(f"submit.sh --dry-run: {line}",
                   re.search(f"^#SBATCH {line}$", dry.stdout, re.M))
    suite.true("submit.sh --dry-run: nothing submitted",
               not os.path.exists(suite.path("filled.job")))
    more = submit("-n", "--threads", "1", "--nodes", "2")
    for line in [r"--nodes=2", r"--ntasks-per-node=[2-9]", r"--cpus-per-task=1"]:
        suite.true(f"submit.sh --nodes 2: {line}",
                   re.search(f"^#SBATCH {line}", more.stdout, re.M))
    array = submit("-n", "--array", "channels:2")
    suite.true("submit.sh --array: tasks and channels",
               "--array=0-1\n" in array.stdout and "set -- channels:4:2 " in array.stdout)
    gpus = submit("-n", "--gpus", "2")
    suite.true("submit.sh --gpus: a rank for each",
               "--gpus-per-node=2\n" in gpus.stdout
               and "--ntasks-per-node=2\n" in gpus.stdout
               and "--backend cuda" in gpus.stdout)
    for label, options, text in [("no such array", ["--array", "x:2"], "channels:N"),
                                 ("too many", ["--array", "channels:9"], "4 channels"),
                                 ("no number", ["--nodes", "0"], "positive"),
                                 ("an image option", ["--mem", "1"], "--mem")]:
        result = submit("-n", *options)
        suite.true(f"submit.sh, {label}: refused",
                   result.returncode == 2 and text in result.stdout)
    result = submit("--extra", "--output=filled.out")
    job = re.search(r"Submitted batch job (\d+)", result.stdout)
    if suite.true("submit.sh: submitted", job):
        return job.group(1)
    print(result.stdout)
    return None


def check_memory(jobs, obs):
    """Without --memory, what has been allocated on the node: 400 MiB for each of two."""
    plan = ["srun", "--mpi=pmix", BIN, "plan", obs, *SIZE]
    jobs.slurm.run("sbatch", "--wait", "--ntasks=1", "--cpus-per-task=2", "--time=1",
                   "--mem-per-cpu=400M", "--output=memory.out", "--wrap",
                   shlex.join(plan), cwd=jobs.suite.work)
    jobs.says("memory", f"of {0.85 * 800:.1f} MiB")  # 15 % are left for the unplanned


def end_submit(jobs, job, obs):
    if job and jobs.ended("filled", job):
        jobs.same("filled", "filled", reference(jobs.suite, "plain", obs, SIZE))
        jobs.suite.true("filled: checkpoints are gone",
                        not os.path.exists(jobs.suite.path("filled.saved")))


def check_killed(jobs, obs, wanted):
    """Held until Slurm ends it: nothing but what has been saved is left."""
    job = jobs.submit("killed", "slurm-cpu.sh",
                      ["--nodes=1", "--ntasks-per-node=2", "--cpus-per-task=1",
                       "--mem=1G", "--time=1", NO_SIGNAL],
                      [obs, "-o", "killed", *STACK], TESSERA_SAVE="0.001")
    if not job:
        return
    hold(jobs.suite, "killed", "killed", 2)
    facts = jobs.slurm.wait_job(job, PATIENCE + 60)
    jobs.suite.equal("killed: state", facts.get("JobState"), "TIMEOUT")
    jobs.slurm.run("scontrol", "requeue", job)
    if jobs.ended("killed", job):
        jobs.same("killed", "killed", wanted)
        jobs.says("killed", "continuing from checkpoint")


def check(suite, slurm):
    jobs = Jobs(suite, slurm)
    obs = make_observation(suite, 3000)
    shared = make_shared(suite)
    early = start_signal(jobs, obs)
    held = hold(suite, "early", "early", 2) if early else []
    try:
        limit = start_limit(jobs, obs)
        array = start_array(jobs, shared)
        filled = check_submit(jobs, obs)
        check_memory(jobs, obs)
        cube = reference(suite, "cube", obs, CUBE)
        stack = reference(suite, "stack", obs, STACK)
        wait_signal(jobs)
    finally:
        signal_all(held, signal.SIGCONT)
    end_array(jobs, array, shared)
    end_submit(jobs, filled, obs)
    end_limit(jobs, limit, cube)
    end_signal(jobs, early, stack)
    if FULL:
        check_killed(jobs, obs, stack)


def main():
    if not mpiexec():
        skip("no MPI")
    suite = Suite("slurm_jobs")
    os.environ.update(mpi_environment())
    try:
        with OwnSlurm(suite.path("slurm"), nodes=4) as slurm:
            check(suite, slurm)
    except NoSlurm as why:
        skip(f"Slurm: {why}")
    suite.finish()


if __name__ == "__main__":
    main()
