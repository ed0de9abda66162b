#!/usr/bin/env python3
"""Times the standard workloads with tessera and its peers, on one machine, in one run.

usage: workloads.py [--names vla-2M,meerkat-29M,low-10M] [--data FOLDER] [--times N]
                    [--repeat 3] [--accuracy 1e-4] [--threads N] [--ranks N]
                    [--csv FILE] [--smoke]

The workloads' generator is found through TESS_WORKLOADS (a folder with workloads.py),
else ../shared/workloads beside the project; without it the exit status is 77. Data are
made once in FOLDER (default build/bench) and kept. Every program runs --repeat times,
in turns, so that a busy moment hits all of them; medians are printed as a Markdown table
and written as CSV. Whole jobs read the observation, grid dirty image and PSF with natural
weights and write FITS; `dirty` is the gridding of one image from memory. Nothing here
judges the times; --smoke makes and runs a small piece, to see that it works.
"""
import argparse
import csv
import json
import os
import shutil
import statistics
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from e2e import (BIN, ROOT, casacore_python, have_ms, mpi_environment,  # noqa: E402
                 mpiexec, run, skip, tessera)
import uvfits  # noqa: E402

LONG = 3600
STAGES = ["read", "weight", "partition", "exchange", "sort", "grid", "reduce", "fft",
          "correct", "write"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--names", default="vla-2M")
    parser.add_argument("--data", default=os.path.join(ROOT, "build", "bench"))
    parser.add_argument("--times", type=int, help="integrations, instead of the usual")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--accuracy", default="1e-4")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--csv")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--full", action="store_true", help="as ctest calls it: ignored")
    options = parser.parse_args()
    if options.smoke:
        options.names, options.times, options.repeat = "vla-2M", 3, 1
        options.data = os.environ.get("TESS_WORK", options.data)
    return options


def generator():
    folder = os.environ.get("TESS_WORKLOADS") or os.path.join(ROOT, "..", "shared",
                                                              "workloads")
    path = os.path.join(folder, "workloads.py")
    if not os.path.exists(path):
        skip("no workloads.py; set TESS_WORKLOADS")
    return path


def make_data(name, options):
    """Paths of the workload's npz, UVFITS and MS (None without casacore)."""
    folder = os.path.join(options.data, f"{name}-{options.times or 'usual'}")
    base = os.path.join(folder, name)
    python = casacore_python() if have_ms() else None
    if not os.path.exists(base + ".npz"):
        os.makedirs(folder, exist_ok=True)
        command = [python or sys.executable, generator(), name, folder]
        command += ["--times", str(options.times)] if options.times else []
        result = run(command + (["--ms"] if python else []), LONG)
        if result.status != 0:
            sys.exit(f"workloads.py failed:\n{result.err[-2000:]}")
        print(result.out.strip(), flush=True)
    data = np.load(base + ".npz")
    if not os.path.exists(base + ".uvfits"):
        vis = np.repeat(data["vis"][:, :, None], 2, axis=2)
        uvfits.write(base + ".part", data["uvw"], data["freq"], vis, 1.0,
                     ra_deg=float(data["ra_deg"]), dec_deg=float(data["dec_deg"]))
        os.rename(base + ".part", base + ".uvfits")
    ms = base + ".ms"
    return data, base + ".uvfits", ms if os.path.isdir(ms) else None


class Times:
    """Seconds by (program, stage), several of each."""

    def __init__(self):
        self.seconds = {}

    def add(self, program, stage, seconds):
        self.seconds.setdefault((program, stage), []).append(seconds)

    def medians(self):
        return {key: statistics.median(v) for key, v in self.seconds.items()}


def time_tessera(times, label, obs, data, options, out):
    """A whole job and its stages, the slowest rank's."""
    profile = out + ".json"
    command = ["image", obs, "--size", int(data["npix"]), "--scale",
               f"{float(data['cell_asec'])}asec", "--weight", "natural", "--accuracy",
               options.accuracy, "--threads", options.threads, "--profile", profile,
               "--overwrite", "-o", out]
    result = tessera(*command, ranks=options.ranks, timeout=LONG)
    if result.status != 0:
        sys.exit(f"tessera failed:\n{result.err[-2000:]}")
    times.add(label, "job", result.seconds)
    with open(profile) as f:
        report = json.load(f)
    for stage in STAGES:
        spent = [r["stages"].get(stage, {}).get("seconds", 0.0) for r in report["ranks"]]
        times.add(label, stage, max(spent))
    return report["totals"]


def make_model(data, out):
    """A model image of 100 points, NAME-model.fits as WSClean looks for it."""
    size = int(data["npix"])
    scale = np.deg2rad(float(data["cell_asec"]) / 3600)
    model = np.zeros((size, size), "f4")
    rng = np.random.default_rng(9)
    model[tuple(rng.integers(0, size, (2, 100)))] = 1.0
    return uvfits.write_model(out + "-model.fits", model, scale, float(data["ra_deg"]),
                              float(data["dec_deg"]), float(data["freq"].mean()))


def time_predict(times, label, obs, model, options, *output):
    """From a model image to visibilities in a file, or in a column of an MS."""
    result = tessera("predict", obs, "--model", model, "--accuracy", options.accuracy,
                     "--threads", options.threads, "--overwrite", *output,
                     ranks=options.ranks, timeout=LONG)
    if result.status != 0:
        sys.exit(f"tessera predict failed:\n{result.err[-2000:]}")
    times.add(label, "predict job", result.seconds)


def time_ducc0(times, data, options):
    try:
        from ducc0.wgridder import dirty2ms, ms2dirty
    except ImportError:
        print("ducc0 is not installed: left out")
        return
    uvw = data["uvw"] * np.array([1.0, -1.0, 1.0])
    size = int(data["npix"])
    cell = np.deg2rad(float(data["cell_asec"]) / 3600)
    freq, vis = data["freq"], data["vis"]
    settings = (cell, cell, 0, 0, float(options.accuracy), True, options.threads)
    start = time.perf_counter()
    dirty = ms2dirty(uvw, freq, vis, None, size, size, *settings)
    times.add("ducc0", "dirty", time.perf_counter() - start)
    start = time.perf_counter()
    dirty2ms(uvw, freq, dirty, None, *settings)
    times.add("ducc0", "predict", time.perf_counter() - start)


def time_wsclean_predict(times, ms, options, out):
    """From out-model.fits to MODEL_DATA."""
    result = run(["wsclean", "-predict", "-name", out, "-use-wgridder",
                  "-wgridder-accuracy", options.accuracy, "-no-small-inversion", "-pol",
                  "I", "-j", str(options.threads), ms], LONG, env=mpi_environment())
    if result.status != 0:
        sys.exit(f"wsclean -predict failed:\n{result.err[-2000:]}")
    times.add("WSClean", "predict job", result.seconds)


def time_wsclean(times, ms, data, options, out):
    size = str(int(data["npix"]))
    result = run(["wsclean", "-name", out, "-size", size, size, "-scale",
                  f"{float(data['cell_asec'])}asec", "-weight", "natural", "-make-psf",
                  "-niter", "0", "-use-wgridder", "-wgridder-accuracy", options.accuracy,
                  "-no-small-inversion", "-pol", "I", "-j", str(options.threads),
                  "-no-update-model-required", ms], LONG, env=mpi_environment())
    if result.status != 0:
        sys.exit(f"wsclean failed:\n{result.err[-2000:]}")
    times.add("WSClean", "job", result.seconds)


def measure(name, options):
    data, uvfits_path, ms = make_data(name, options)
    out = os.path.join(os.path.dirname(uvfits_path), "out")
    times = Times()
    totals = {}
    model = make_model(data, out)
    for _ in range(options.repeat):
        totals = time_tessera(times, "tessera UVFITS", uvfits_path, data, options, out)
        if ms:
            time_tessera(times, "tessera MS", ms, data, options, out)
        time_predict(times, "tessera UVFITS", uvfits_path, model, options, "-o",
                     out + "-predicted.uvfits")
        time_ducc0(times, data, options)
        if ms and shutil.which("wsclean"):
            time_wsclean(times, ms, data, options, out)
            # the first to predict makes the column
            time_wsclean_predict(times, ms, options, out)
        if ms:
            time_predict(times, "tessera MS", ms, model, options, "--column",
                         "MODEL_DATA")
    medians = times.medians()
    for (program, stage), seconds in sorted(medians.items()):
        if stage == "grid" and seconds > 0:
            # Dirty image and PSF are gridded in one go.
            rate = totals["visibilities"] / seconds / 1e6
            print(f"{name}: {program} grids {rate:.1f} Mvis/s (dirty and PSF together)")
    return medians


def print_table(name, medians):
    programs = sorted({p for p, _ in medians})
    stages = [s for s in ["job", *STAGES, "dirty", "predict job", "predict"]
              if any((p, s) in medians for p in programs)]
    print(f"\n**{name}**, seconds\n")
    print("| | " + " | ".join(stages) + " |")
    print("|---|" + "---|" * len(stages))
    for program in programs:
        cells = [f"{medians[program, s]:.3g}" if (program, s) in medians else ""
                 for s in stages]
        print(f"| {program} | " + " | ".join(cells) + " |", flush=True)


def main():
    options = arguments()
    if not os.access(BIN, os.X_OK):
        skip(f"{BIN} is not built")
    generator()
    if options.ranks > 1 and not mpiexec():
        skip("no MPI launcher")
    shown = tessera("--version", timeout=60).out.strip().splitlines()
    version = shown[0] if shown else "unknown"
    print(f"{version}; {options.threads} threads, {options.ranks} ranks, accuracy "
          f"{options.accuracy}, medians of {options.repeat}")
    rows = []
    for name in options.names.split(","):
        medians = measure(name, options)
        print_table(name, medians)
        rows += [dict(tess_version=version, workload=name, program=p, stage=s,
                      seconds=f"{v:.4f}", threads=options.threads, ranks=options.ranks,
                      accuracy=options.accuracy, repeat=options.repeat)
                 for (p, s), v in sorted(medians.items())]
    if options.csv:
        with open(options.csv, "w", newline="") as f:
            writer = csv.DictWriter(f, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    if options.smoke:
        programs = {r["program"] for r in rows}
        print("timed:", ", ".join(sorted(programs)))
        shutil.rmtree(options.data, ignore_errors=True)
        sys.exit(0 if "tessera UVFITS" in programs else 1)


if __name__ == "__main__":
    main()
