#!/usr/bin/env python3
"""What threads that wait cost: tessera as it is, with OMP_WAIT_POLICY=passive, and with
threads that spin for milliseconds whatever else runs (GOMP_SPINCOUNT=300000), in turns.

usage: waiting.py [--processors 2] [--busy 0,2] [--jobs cube,image,call] [--repeat 3]
                  [--channels 256] [--rows 20000] [--csv FILE] [--smoke]

  cube   `tessera image` of 256 channels of 512 x 512 pixels
  image  `tessera image` of 500 x 500 pixels from the same observation
  call   tessera.wgridder.vis2dirty of 20 000 rows, the mean of a process's calls

--busy gives numbers of loops that do nothing but run beside the jobs, on the same
processors. Seconds are wall time and processor time. Medians and their ratios are printed
as Markdown, every single time is written as CSV. Nothing here judges: --smoke runs a small
piece to see that it works. Figures of a machine on which others work mean nothing.
"""
import argparse
import csv
import os
import resource
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
import module  # noqa: E402, finds tessera
from e2e import BIN, Suite, mpi_environment, simulate, write_sky  # noqa: E402

POLICIES = {"as it is": {}, "passive": {"OMP_WAIT_POLICY": "passive"},
            "spinning": {"GOMP_SPINCOUNT": "300000"}}
CALLS = """
import sys, time
import numpy as np
import tessera
rows, calls, threads = map(int, sys.argv[1:])
rng = np.random.default_rng(3)
uvw = rng.normal(0, 300, (rows, 3)) * (1, 1, .1)
freq = np.linspace(1e9, 1.1e9, 4)
vis = rng.normal(size=(rows, 4, 2)).astype(np.float32).view(np.complex64)[..., 0]
for k in range(calls + 1):
    if k == 1: wall, cpu = time.perf_counter(), time.process_time()
    tessera.wgridder.vis2dirty(uvw=uvw, freq=freq, vis=vis, npix_x=512, npix_y=512,
                               pixsize_x=5e-5, pixsize_y=5e-5, epsilon=1e-4,
                               nthreads=threads)
print((time.perf_counter() - wall) / calls, (time.process_time() - cpu) / calls)
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--processors", type=int, default=2)
    parser.add_argument("--busy", default="0,2")
    parser.add_argument("--jobs", default="cube,image,call")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--channels", type=int, default=256)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--csv")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--full", action="store_true", help="as ctest calls it: ignored")
    options = parser.parse_args()
    if options.smoke:
        options.busy, options.repeat, options.channels, options.rows = "1", 1, 4, 1000
    options.busy = [int(n) for n in options.busy.split(",")]
    options.jobs = options.jobs.split(",")
    return options


def environment(policy):
    env = {k: v for k, v in {**mpi_environment(), **module.environment()}.items()
           if k not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_NUM_THREADS")}
    return {**env, **POLICIES[policy]}


def time_program(env, *args):
    """Wall and processor seconds of a run."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([BIN, "image", *args, "--overwrite", "--no-sync"], env=env, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def time_job(job, suite, obs, options, env):
    if job == "call":
        calls = 2 if options.smoke else 40
        done = subprocess.run([sys.executable, "-c", CALLS, str(options.rows), str(calls),
                               str(options.processors)],
                              env=env, check=True, text=True, stdout=subprocess.PIPE)
        wall, cpu = done.stdout.split()
        return float(wall), float(cpu)
    out = ["-o", suite.path(job), "--scale", "10asec"]
    if job == "cube":
        return time_program(env, obs, *out, "--size", "512", "--channels-out",
                            str(options.channels))
    return time_program(env, obs, *out, "--size", "500")


def start_busy(count):
    """Loops that end with this process."""
    code = f"import os\nwhile os.getppid() == {os.getpid()}: sum(range(100000))"
    return [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]


def measure(suite, obs, options, busy):
    """Rows of job, policy, repetition, wall and processor seconds."""
    others, rows = start_busy(busy), []
    try:
        for job in options.jobs:
            for k in range(options.repeat):
                turns = list(POLICIES)
                for policy in turns[k % 3:] + turns[:k % 3]:
                    wall, cpu = time_job(job, suite, obs, options, environment(policy))
                    rows.append((busy, job, policy, k, wall, cpu))
                    print(*rows[-1], sep=",", flush=True)
    finally:
        for other in others:
            other.kill()
            other.wait()
    return rows


def print_table(rows, options):
    print(f"\n| on {options.processors} processors | busy loops | as it is "
          "| passive (ratio) | spinning (ratio) | processor time of these |")
    print("|---|---|---|---|---|---|")
    for busy in options.busy:
        for job in options.jobs:
            wall, cpu = ([statistics.median(r[column] for r in rows
                                            if r[:3] == (busy, job, policy))
                          for policy in POLICIES] for column in (4, 5))
            print(f"| {job} | {busy} | **{wall[0]:.3g}** | " + " | ".join(
                f"{other:.3g} ({wall[0] / other:.2f})" for other in wall[1:]) +
                " | " + ", ".join(f"{seconds:.3g}" for seconds in cpu) + " |")


def main():
    options = arguments()
    some = sorted(os.sched_getaffinity(0))[:options.processors]
    os.sched_setaffinity(0, some)
    options.processors = len(some)
    suite = Suite("waiting_bench")
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    obs = simulate(suite.path("obs.uvfits"), sky, integration="300s",
                   channels=options.channels, width="1MHz")
    print("busy_loops,job,policy,repeat,wall_s,processor_s")
    rows = [row for busy in options.busy for row in measure(suite, obs, options, busy)]
    if options.csv:
        version = subprocess.run([BIN, "--version"], text=True, stdout=subprocess.PIPE,
                                 check=True).stdout.splitlines()[0]
        with open(options.csv, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["tess_version", "processors", "busy_loops", "job", "policy",
                             "repeat", "wall_s", "processor_s"])
            writer.writerows([version, options.processors, *row] for row in rows)
    print_table(rows, options)
    suite.true("every time is there", len(rows) == len(POLICIES) * options.repeat *
               len(options.jobs) * len(options.busy))
    suite.finish()


if __name__ == "__main__":
    main()
