#!/usr/bin/env python3
"""tessera's gridder against ducc0's, stage by stage, and its jobs against WSClean's.

usage: cpu_vs_ducc.py [--names meerkat-29M,vla-2M,low-10M] [--data FOLDER]
                      [--accuracy 1e-3,1e-4,1e-5] [--double 1e-8] [--threads 1,2]
                      [--repeat 5] [--no-arrays] [--no-jobs] [--new-memory]
                      [--csv FILE] [--smoke]

Arrays: vis2dirty and dirty2vis of both on the same arrays in this process, in turns, the
order changing each time. ducc0's stages are those it prints with verbosity=1, tessera's
those of tessera.wgridder.last_report():

  grid    from visibilities to finished planes (and back): ducc0's "gridding proper",
          index, and its allocating and zeroing of grids; tessera's sorting, gridding,
          and adding of tile sums to lines of planes (or cutting these into tiles)
  fft     FFT, w-screens
  plan    choice of kernel and grid, FFT plans
  other   scan, correction of the image, conversions
  total   the call as a whole

The share of the FMA peak counts 4·W³ operations a visibility in tessera's gridding without
sorting and adding tile sums (ducc0's "gridding proper"), against the peak measured in the
same run. Memory is what the process grows by during a first call, which is not timed. With
the GNU C library, memory that either program gives up stays with the process for the calls
that follow, a second of which is not timed either: what is timed otherwise, and with
--new-memory, is also a kernel or hypervisor that provides pages, at 10 GB/s or .3. Jobs:
process start to FITS, dirty image and PSF from a MeasurementSet with natural weights, and
prediction into MODEL_DATA of a copy of it, read through the page cache; their memory is the
process's largest resident size, and comes from the system.

Medians are printed as Markdown, every single time is written as CSV. Nothing here judges:
--smoke runs a small piece to see that it works. Data are found in FOLDER (NAME.npz,
NAME.ms) or made there, see workloads.py. TESSERA_LIBRARY names the library's folder
(default: lib/ beside the program's bin/).
"""
import argparse
import csv
import ctypes
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from e2e import BIN, ROOT, mpi_environment, run, skip, tessera  # noqa: E402
import uvfits  # noqa: E402
import workloads  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "app", "bench"))
from bench_peer import Captured, ducc_stages  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "app", "python"))
os.environ.setdefault("TESSERA_LIBRARY",
                      os.path.join(os.path.dirname(os.path.dirname(BIN)), "lib"))

def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--names", default="vla-2M,meerkat-29M,low-10M")
    parser.add_argument("--data", default=os.path.join(ROOT, "build", "bench"))
    parser.add_argument("--accuracy", default="1e-3,1e-4,1e-5")
    parser.add_argument("--double", default="", help="accuracies in double precision")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--times", type=int, help="integrations, instead of the usual")
    parser.add_argument("--no-arrays", action="store_true")
    parser.add_argument("--no-jobs", action="store_true")
    parser.add_argument("--new-memory", action="store_true",
                        help="have each call take its memory from the system")
    parser.add_argument("--csv")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--full", action="store_true", help="as ctest calls it: ignored")
    options = parser.parse_args()
    if options.smoke:
        options.names, options.times, options.repeat = "vla-2M", 3, 1
        options.accuracy, options.double, options.threads = "1e-3", "1e-7", "2"
        options.data = os.environ.get("TESS_WORK", options.data)
    return options


# ---- measuring one call ----

# A heap that gives nothing back to the system, and is one for all threads: large arrays
# would be mapped, and unmapped, apart from it.
KEEPING = {"GLIBC_TUNABLES": "glibc.malloc.mmap_max=0:glibc.malloc.arena_max=1:"
                             f"glibc.malloc.trim_threshold={1 << 50}"}
# Calls that are not timed: one whose growth is measured, before which all memory is given
# back, and one that gets it anew.
UNTIMED = 2
SMOKE_SIZE = 512  # pixels


def keep_memory():
    """Start again with a malloc that gives nothing back to the system."""
    if any(os.environ.get(key) != value for key, value in KEEPING.items()):
        sys.stdout.flush()
        os.execve(sys.executable, [sys.executable] + sys.argv, {**os.environ, **KEEPING})


class Memory:
    """What the process grows by while something runs [bytes]; None where the system does
    not tell."""

    def __init__(self):
        try:
            ctypes.CDLL(None).malloc_trim(0)
        except AttributeError:  # another C library
            pass
        self.start = self.value("VmRSS")
        try:
            with open("/proc/self/clear_refs", "w") as f:
                f.write("5")  # forget the largest size
        except OSError:
            self.start = None

    @staticmethod
    def value(key):
        with open("/proc/self/status") as f:
            found = re.search(rf"^{key}:\s+(\d+) kB", f.read(), re.M)
        return int(found.group(1)) * 1024 if found else None

    def grown(self):
        peak = self.value("VmHWM")
        return None if self.start is None or peak is None else peak - self.start


def tessera_stages(report):
    stages = {"kernel": report["grid_s"], "sort": report["sort_s"],
              "join": report["join_s"], "fft": report["fft_s"], "plan": report["plan_s"]}
    return stages, {"support": report["support"], "planes": report["num_planes"],
                    "cells": f"{report['grid_u']}x{report['grid_v']}"}


def timed(program, module, function, arguments):
    """One call: its result, seconds by stage, and plan."""
    cpu = time.process_time()
    start = time.perf_counter()
    with Captured() as captured:
        result = getattr(module, function)(verbosity=1, **arguments)
    total = time.perf_counter() - start
    cpu = time.process_time() - cpu
    if program == "ducc0":
        stages, plan = ducc_stages(captured.text)
        stages["join"] = 0  # its tiles are added to planes in "gridding proper"
    else:
        stages, plan = tessera_stages(module.last_report())
    stages["grid"] = stages["sort"] + stages["kernel"] + stages["join"]
    stages["other"] = total - stages["grid"] - stages["fft"] - stages["plan"]
    stages["total"], stages["cpu"] = total, cpu
    return result, stages, plan


# ---- arrays ----

def compare_arrays(data, threads, accuracy, double, repeat):
    """{(function, program): [stages, ...]}, plans."""
    from ducc0 import wgridder as ducc
    from tessera import release_memory, wgridder as tess
    modules = {"tessera": tess, "ducc0": ducc}
    cell = np.deg2rad(float(data["cell_asec"]) / 3600)
    size = int(data["npix"])
    vis = data["vis"].astype("c16" if double else "c8")
    common = dict(uvw=data["uvw"], freq=data["freq"], pixsize_x=cell, pixsize_y=cell,
                  epsilon=float(accuracy), do_wgridding=True, nthreads=threads,
                  flip_v=True, divide_by_n=False)
    times, plans, dirty, grown = {}, {}, {}, {}
    for turn in range(repeat + UNTIMED):
        order = list(modules) if turn % 2 == 0 else list(modules)[::-1]
        for function in ("vis2dirty", "dirty2vis"):
            for program in order:
                more = (dict(vis=vis, npix_x=size, npix_y=size)
                        if function == "vis2dirty" else dict(dirty=dirty[program]))
                if turn == 0:
                    release_memory()  # of the function before: this one's growth is whole
                key, memory = (function, program), Memory() if turn == 0 else None
                result, stages, plan = timed(program, modules[program], function,
                                             {**common, **more})
                if turn == 0:
                    grown[key] = memory.grown()
                if turn >= UNTIMED:
                    times.setdefault(key, []).append({**stages, "memory": grown[key]})
                plans[program] = plan
                if function == "vis2dirty":
                    dirty[program] = result
                del result
    difference = (np.linalg.norm(dirty["tessera"] - dirty["ducc0"]) /
                  np.linalg.norm(dirty["ducc0"]))
    return times, plans, float(difference)


def fma_peak(folder, threads):
    """GFLOP/s of fused multiply-adds, {"single": ..., "double": ...}, or None."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    program = os.path.join(folder, "fma_peak")
    if not compiler:
        return None
    if not os.path.exists(program):
        os.makedirs(folder, exist_ok=True)
        built = run([compiler, "-O3", "-march=native", "-pthread",
                     os.path.join(HERE, "fma_peak.c"), "-o", program], 120)
        if built.status != 0:
            print("fma_peak.c was not compiled:", built.err[-300:])
            return None
    shown = run([program, str(threads)], 120)
    found = json.loads(shown.out)
    return {"single": found["single_gflops"], "double": found["double_gflops"]}


def median(values):
    kept = [v for v in values if v is not None]
    return statistics.median(kept) if kept else float("nan")


def print_arrays(title, times, plans, difference, num_vis, peak):
    print(f"\n**{title}**: " + "; ".join(
        f"{p} {v['cells']} grid x {v['planes']}, support {v['support']}"
        for p, v in plans.items()) + f"; images differ by {difference:.1e}\n")
    print("| | program | grid: sort + kernel + join | fft | plan | other | total | CPU s | "
          "MiB | FMA |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for function in ("vis2dirty", "dirty2vis"):
        medians = {}
        for program in ("tessera", "ducc0"):
            stages = times[function, program]
            m = {k: median([s[k] for s in stages]) for k in stages[0]}
            medians[program] = m
            flops = 4 * plans[program]["support"] ** 3 * num_vis
            share = flops / m["kernel"] / peak / 1e9 if peak and m["kernel"] else 0
            print(f"| {function} | {program} | {m['grid']:.3f}: {m['sort']:.3f} + "
                  f"{m['kernel']:.3f} + {m['join']:.3f} | {m['fft']:.3f} | "
                  f"{m['plan']:.3f} | {m['other']:.3f} | "
                  f"{m['total']:.3f} | {m['cpu']:.2f} | {m['memory'] / 2**20:.0f} | "
                  f"{100 * share:.1f} % |")
        ratio = {}
        for stage in ("grid", "kernel", "fft", "total", "memory"):
            pairs = zip(times[function, "ducc0"], times[function, "tessera"])
            ratio[stage] = median([d[stage] / t[stage] for d, t in pairs
                                   if d[stage] and t[stage]])
        turns = list(zip(times[function, "ducc0"], times[function, "tessera"]))
        least = {k: min(d[k] / t[k] for d, t in turns if t[k]) for k in ("total", "cpu")}
        mean = {k: median([d[k] / t[k] for d, t in turns if t[k]]) for k in least}
        print(f"| | least, median ratio | wall {least['total']:.2f}, {mean['total']:.2f} | "
              f"processors {least['cpu']:.2f}, {mean['cpu']:.2f} | | | | | growth of the "
              f"process: {1 / ratio['memory']:.2f} x ducc0's | |")
        print(f"| | **ducc0 / tessera** | **{ratio['grid']:.2f}**: kernel "
              f"{ratio['kernel']:.2f} | **{ratio['fft']:.2f}** | | | "
              f"**{ratio['total']:.2f}** | | {ratio['memory']:.2f} | |", flush=True)


def array_rows(name, accuracy, threads, double, times, plans, peak):
    for (function, program), turns in times.items():
        for turn, stages in enumerate(turns):
            yield dict(workload=name, accuracy=accuracy, threads=threads,
                       precision="double" if double else "single", what=function,
                       program=program, turn=turn, fma_peak_gflops=peak or "",
                       **plans[program],
                       **{k: f"{v:.6f}" if isinstance(v, float) else v
                          for k, v in stages.items()})


# ---- jobs ----

def timed_job(command):
    """Seconds and largest resident size of a process that must succeed. The size is
    looked up while it runs: the one that wait4 tells may be this process's."""
    with tempfile.TemporaryFile() as out:
        start = time.perf_counter()
        child = subprocess.Popen(
            [str(c) for c in command], stdout=out, stderr=out,
            env={k: v for k, v in mpi_environment().items() if KEEPING.get(k) != v})
        peak = 0
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        while pid == 0:
            peak = max(peak, peak_of(child.pid))
            time.sleep(0.005)
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            out.seek(0)
            sys.exit(f"{command[0]} failed:\n{out.read().decode(errors='replace')[-2000:]}")
    return dict(total=seconds, cpu=usage.ru_utime + usage.ru_stime, memory=peak)


def peak_of(pid):
    """Largest resident size of a process so far [bytes], 0 when it has ended."""
    try:
        with open(f"/proc/{pid}/status") as f:
            found = re.search(r"^VmHWM:\s+(\d+) kB", f.read(), re.M)
    except OSError:
        return 0
    return int(found.group(1)) * 1024 if found else 0


def job_commands(ms, data, accuracy, threads, out):
    size, scale = int(data["npix"]), f"{float(data['cell_asec'])}asec"
    peer = ["wsclean", "-j", threads, "-use-wgridder", "-wgridder-accuracy", accuracy]
    return {
        ("image", "tessera"): [BIN, "image", ms, "-o", out + "-t", "--size", size, "--scale",
                               scale, "--weight", "natural", "--accuracy", accuracy,
                               "--threads", threads, "--overwrite", "--quiet"],
        ("image", "WSClean"): peer + ["-name", out + "-w", "-size", size, size, "-scale",
                                      scale, "-weight", "natural", "-make-psf", "-niter",
                                      "0", "-no-small-inversion", "-pol", "I",
                                      "-no-update-model-required", ms],
        ("predict", "tessera"): [BIN, "predict", ms, "--model", out + "-model.fits",
                                 "--column", "MODEL_DATA", "--accuracy", accuracy,
                                 "--threads", threads, "--overwrite", "--quiet"],
        ("predict", "WSClean"): peer + ["-predict", "-name", out, "-pol", "I", ms],
    }


def make_model(data, out):
    size = int(data["npix"])
    model = np.zeros((size, size), "f4")
    model[tuple(np.random.default_rng(9).integers(0, size, (2, 100)))] = 1.0
    uvfits.write_model(out + "-model.fits", model,
                       np.deg2rad(float(data["cell_asec"]) / 3600), float(data["ra_deg"]),
                       float(data["dec_deg"]), float(data["freq"].mean()))


def compare_jobs(name, ms, data, options, threads, accuracy):
    folder = os.path.join(options.data, "jobs")
    os.makedirs(folder, exist_ok=True)
    copy = os.path.join(folder, os.path.basename(ms))
    if not os.path.isdir(copy):
        shutil.copytree(ms, copy)
    out = os.path.join(folder, name)
    make_model(data, out)
    times = {}
    for turn in range(options.repeat):
        commands = list(job_commands(copy, data, accuracy, threads, out).items())
        for key, command in commands if turn % 2 == 0 else commands[::-1]:
            times.setdefault(key, []).append(timed_job(command))
    print(f"\n**{name}**, jobs, accuracy {accuracy}, {threads} threads\n")
    print("| | program | total s | CPU s | peak MiB |")
    print("|---|---|---|---|---|")
    for what in ("image", "predict"):
        for program in ("tessera", "WSClean"):
            m = {k: median([t[k] for t in times[what, program]])
                 for k in ("total", "cpu", "memory")}
            print(f"| {what} | {program} | {m['total']:.2f} | {m['cpu']:.2f} | "
                  f"{m['memory'] / 2**20:.0f} |")
        ratio = median([w["total"] / t["total"] for w, t in
                        zip(times[what, "WSClean"], times[what, "tessera"])])
        print(f"| | **WSClean / tessera** | **{ratio:.2f}** | | |", flush=True)
    for (what, program), turns in times.items():
        for turn, found in enumerate(turns):
            yield dict(workload=name, accuracy=accuracy, threads=threads,
                       precision="single", what=what, program=program, turn=turn,
                       **{k: f"{v:.6f}" if isinstance(v, float) else v
                          for k, v in found.items()})


# ---- all ----

def find_data(name, options):
    """The workload's arrays and MeasurementSet: those in the folder, else made there."""
    base = os.path.join(options.data, name)
    if options.times is None and os.path.exists(base + ".npz"):
        ms = base + ".ms"
        return np.load(base + ".npz"), ms if os.path.isdir(ms) else None
    data, _, ms = workloads.make_data(name, options)
    return data, ms


def measure(name, options):
    rows = []
    stored, ms = find_data(name, options)
    data = {k: stored[k] for k in stored}
    if options.smoke:
        data["npix"] = min(int(data["npix"]), SMOKE_SIZE)
    threads = [int(t) for t in options.threads.split(",")]
    asked = [(a, False) for a in options.accuracy.split(",") if a]
    asked += [(a, True) for a in options.double.split(",") if a]
    for count in [] if options.no_arrays else threads:
        for accuracy, double in asked:
            precision = "double" if double else "single"
            peaks = fma_peak(options.data, count)
            peak = peaks and peaks[precision]
            times, plans, difference = compare_arrays(data, count, accuracy, double,
                                                      options.repeat)
            print_arrays(f"{name}, {accuracy} {precision}, {count} threads, FMA peak "
                         f"{peak or 0:.0f} GFLOP/s", times, plans, difference,
                         data["vis"].size, peak)
            rows += array_rows(name, accuracy, count, double, times, plans, peak)
    if not options.no_jobs and ms and shutil.which("wsclean"):
        accuracy = "1e-4" if "1e-4" in options.accuracy else asked[0][0]
        rows += compare_jobs(name, ms, data, options, threads[-1], accuracy)
    return rows


def main():
    options = arguments()
    if not os.access(BIN, os.X_OK):
        skip(f"{BIN} is not built")
    try:
        import ducc0
    except ImportError:
        skip("ducc0 is not installed")
    try:
        import tessera as module
    except ImportError as error:
        sys.exit(str(error))
    workloads.generator()
    if not options.new_memory:
        keep_memory()
    shown = tessera("--version", timeout=60).out.strip().splitlines()
    print(f"{shown[0]}; library {module.library_version()}; ducc0 {ducc0.__version__}; "
          f"{shown[2]}; medians of {options.repeat}", flush=True)
    rows = []
    for name in options.names.split(","):
        rows += measure(name, options)
    if options.csv:
        keys = list(dict.fromkeys(k for row in rows for k in row))
        with open(options.csv, "w", newline="") as f:
            writer = csv.DictWriter(f, ["tess_version"] + keys)
            writer.writeheader()
            writer.writerows(dict(tess_version=module.library_version(), **r)
                             for r in rows)
    if options.smoke:
        shutil.rmtree(options.data, ignore_errors=True)
        done = {(r["what"], r["program"]) for r in rows}
        wanted = {(f, p) for f in ("vis2dirty", "dirty2vis") for p in ("tessera", "ducc0")}
        sys.exit(0 if wanted <= done else 1)


if __name__ == "__main__":
    main()
