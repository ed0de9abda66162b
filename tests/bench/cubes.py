#!/usr/bin/env python3
"""Cubes by ranks, by threads and cleaned, and beside WSClean: elapsed and processor time.

usage: cubes.py [--ranks 1,2,4,8,16] [--threads 1,16] [--teams 0,1] [--channels 512] [--size 1024]
                [--visibilities 31e6] [--clean] [--wsclean] [--memory SIZE --scratch DIR]
                [--repeat 3] [--backend cpu] [--csv FILE]

An observation of MeerKAT is simulated once. Each layout makes the cube of all channels, in
turns; times are medians of wall time around the program. "efficiency" is that of the first
layout's ranks and threads. "in stages" is the share of the run's seconds that its profile names;
"waits" is the share of a rank's time in MPI, where it waits for others, too. With --clean the
channels are cleaned one by one (--niter 1000 --auto-threshold 4). With --teams several ranks
form these numbers of teams, those that divide them; 0: the number that they choose. So
`--clean --backend cuda --ranks 1,2 --teams 0,1,2` compares one GPU with two that make whole
channels, by choice and forced, and two that share planes. With --wsclean a
MeasurementSet is imaged, with PSFs, in turns with `wsclean -channels-out`, at the given threads. With
--memory and --scratch, samples that do not fit are parted on scratch, and read again
for every few channels where they are not, in turns. Nothing judges the figures.
"""
import argparse
import csv
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from e2e import BIN, Suite, mpi_environment, mpiexec, simulate, write_sky  # noqa: E402

INTEGRATION_S, BASELINES = 8, 2016
CLEAN = ["--niter", "1000", "--auto-threshold", "4"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--ranks", default="1,2,4,8,16")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--teams", default="0")
    parser.add_argument("--channels", type=int, default=512)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--scale", default="2asec")
    parser.add_argument("--visibilities", type=float, default=31e6)
    parser.add_argument("--clean", action="store_true")
    parser.add_argument("--wsclean", action="store_true")
    parser.add_argument("--memory")
    parser.add_argument("--scratch")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--csv")
    return parser.parse_args()


def observe(suite, args):
    """An observation of about so many visibilities."""
    steps = max(1, round(args.visibilities / args.channels / BASELINES))
    sky = suite.path("sky.csv")
    write_sky(sky, [dict(ra="60deg", dec="-30deg", flux_jy=1.0),
                    dict(ra="60.1deg", dec="-30.05deg", flux_jy=.7)])
    near = ["--max-radius", "2km"] if args.wsclean else []
    return simulate(suite.path("cube.ms" if args.wsclean else "cube.uvfits"), sky,
                    layout="meerkat", dec="-30deg", freq="1.3GHz", channels=args.channels,
                    width=f"{25.6e6 / args.channels}Hz", duration=f"{steps * INTEGRATION_S}s",
                    integration=f"{INTEGRATION_S}s", extra=["--noise", ".1Jy", *near])


def timed(command, env=None):
    """(elapsed, processor) seconds of a command."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, env=env, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (time.perf_counter() - start, after.ru_utime + after.ru_stime -
            before.ru_utime - before.ru_stime)


def image(suite, args, obs, ranks, threads, more=(), teams=0):
    force = {"TESS_FORCE": f"teams={teams}"} if teams else {}
    profile = suite.path("profile.json")
    command = [BIN, "image", obs, "-o", suite.path("out"), "--channels-out",
               str(args.channels), "--size", str(args.size), "--scale", args.scale,
               "--threads", str(threads), "--backend", args.backend, "--cube", "--overwrite",
               "--no-sync", "--quiet", "--profile", profile, *more]
    if not args.clean and not args.wsclean:
        command.append("--no-psf")
    if args.clean:
        command += CLEAN
    if ranks > 1:
        command = [mpiexec(), "-n", str(ranks), *command]
    elapsed, processor = timed(command, os.environ | mpi_environment() | force)
    with open(profile) as file:
        totals = json.load(file)["totals"]
    stages = sum(s["mean_seconds"] for s in totals["stages"].values())
    return {"elapsed_s": elapsed, "processor_s": processor,
            "in_stages": stages / totals["seconds"],
            "waits": totals["communication_fraction"]}


def wsclean(suite, args, obs, threads):
    elapsed, processor = timed(
        ["wsclean", "-quiet", "-name", suite.path("wsc"), "-channels-out",
         str(args.channels), "-j", str(threads), "-make-psf", "-niter", "0", "-size",
         str(args.size), str(args.size), "-scale", args.scale, "-weight", "briggs", "0", obs])
    return {"elapsed_s": elapsed, "processor_s": processor, "in_stages": 0, "waits": 0}


def teams_of(args, ranks):
    """The numbers of teams that so many ranks form, in turns."""
    wanted = [int(n) for n in args.teams.split(",")]
    return [n for n in wanted if n == 0 or ranks % n == 0] if ranks > 1 else [0]


def cases_of(suite, args, obs):
    """(name, cores, function) of all that is timed in a turn."""
    cases = [(f"{r} x {t}" + (f", teams: {n}" if n else ""), r * t,
              lambda r=r, t=t, n=n: image(suite, args, obs, r, t, teams=n))
             for r in map(int, args.ranks.split(","))
             for t in map(int, args.threads.split(","))
             for n in teams_of(args, r)]
    if args.memory:
        less = ["--memory", args.memory]
        cases += [("read again", 1, lambda: image(suite, args, obs, 1, 1, less)),
                  ("on scratch", 1, lambda: image(
                      suite, args, obs, 1, 1, [*less, "--scratch", args.scratch]))]
    if args.wsclean:
        cases += [(f"wsclean -j {t}", int(t), lambda t=t: wsclean(suite, args, obs, t))
                  for t in args.threads.split(",")]
    return cases


def main():
    args, suite = arguments(), Suite("bench_cubes")
    if args.wsclean and not shutil.which("wsclean"):
        raise SystemExit("wsclean is not installed")
    obs = observe(suite, args)
    cases = cases_of(suite, args, obs)
    runs = {name: [] for name, _, _ in cases}
    for _ in range(args.repeat):
        for name, _, make in cases:
            runs[name].append(make())
    rows = []
    for name, cores, _ in cases:
        row = {k: statistics.median(r[k] for r in runs[name]) for k in runs[name][0]}
        first = rows[0] if rows else row | {"cores": cores}
        row["efficiency"] = first["elapsed_s"] * first["cores"] / row["elapsed_s"] / cores
        rows.append({"layout": name, "cores": cores} | row)
    print("| layout | elapsed [s] | processor [s] | efficiency | in stages | waits |")
    print("|---|---|---|---|---|---|")
    for r in rows:
        print(f"| {r['layout']} | {r['elapsed_s']:.2f} | {r['processor_s']:.2f} | "
              f"{r['efficiency']:.0%} | {r['in_stages']:.0%} | {r['waits']:.0%} |")
    if args.csv:
        with open(args.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
