#!/usr/bin/env python3
"""Where the CPU gridder and degridder stand between the machine's two ceilings.

usage: roofline.py [FILE.npz | --times N] [--accuracy 1e-2,1e-3,1e-4,1e-5] [--repeat 3]
                   [--out roofline.svg] [--smoke]

Runs grid_kernel on one thread for each accuracy. The ceilings are the FMA rate that it
measures in the same run and the rate of copying an array much larger than the caches
(bytes read and written). FLOP are 4 W³ a visibility; bytes are what has to cross memory
once: visibilities and weights, runs and their positions, and the brick sums, which gridding
writes and degridding reads. Prints a table; draws it where matplotlib is installed.
"""
import argparse
import os
import re
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from e2e import BIN, skip  # noqa: E402

KERNEL = os.path.join(os.path.dirname(os.path.dirname(BIN)), "tests", "grid_kernel")
BYTES_RUN = 32 + 24  # tess_run, and its row's uvw


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--accuracy", default="1e-2,1e-3,1e-4,1e-5")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", default="roofline.svg")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--full", action="store_true", help="as ctest calls it: ignored")
    options = parser.parse_args()
    if options.smoke:
        options.times, options.repeat, options.accuracy = 1, 1, "1e-3"
        options.out = os.path.join(os.environ.get("TESS_WORK", "."), "roofline.svg")
    return options


def copy_rate(megabytes=256, turns=5):
    """GB/s read and written by one thread."""
    source = np.ones(megabytes * 2**17)
    target = np.zeros_like(source)
    best = np.inf
    for _ in range(turns):
        start = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - start)
    return 2 * source.nbytes / best / 1e9


def measure(options, accuracy):
    """One run of grid_kernel: FMA rate, points of gridding and degridding."""
    data = [options.file] if options.file else ["--times", str(options.times)]
    text = subprocess.run([KERNEL, *data, "--accuracy", accuracy, "--repeat",
                           str(options.repeat)], check=True, capture_output=True,
                          text=True).stdout
    found = re.search(r"(\d+) visibilities in (\d+) runs and \d+ bricks, (\d+) MB", text)
    num_vis, num_runs, sums_mb = (int(v) for v in found.groups())
    support = int(re.search(r"support (\d+)", text).group(1))
    peak = float(re.search(r"FMA ([\d.]+) GFLOP/s", text).group(1))
    size = 8 if "single precision" in text else 16
    points = []
    for stage in ("grid", "degrid"):
        rate = float(re.search(rf"^  {stage} .*?([\d.]+) GFLOP/s", text, re.M).group(1))
        samples = num_vis * (size + (size / 2 if stage == "grid" else 0))
        moved = samples + num_runs * BYTES_RUN + sums_mb * 1e6
        planes = support if "1 w-plane " not in text else 1
        flop = 4 * support * support * planes * num_vis
        points.append(dict(stage=stage, accuracy=accuracy, support=support, rate=rate,
                           intensity=flop / moved, double=size == 16))
    return peak, points


def draw(path, peak, bandwidth, points):
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed: no figure")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(5.2, 3.4))
    x = np.geomspace(1, 200, 200)
    axes.loglog(x, np.minimum(peak, bandwidth * x), "k-", lw=1)
    axes.text(200, peak * 1.05, f"{peak:.0f} GFLOP/s", ha="right", va="bottom", size=8)
    axes.text(1.1, bandwidth * 1.7, f"{bandwidth:.0f} GB/s", rotation=38, size=8)
    for stage, marker in (("grid", "o"), ("degrid", "s")):
        mine = [p for p in points if p["stage"] == stage]
        axes.loglog([p["intensity"] for p in mine], [p["rate"] for p in mine], marker,
                    ms=5, label=stage + "ding")
        for p in mine if stage == "grid" else []:
            axes.annotate(f"ε = {p['accuracy']}", (p["intensity"], p["rate"]), size=7,
                          xytext=(-2, 4), textcoords="offset points", rotation=55)
    axes.set(xlabel="FLOP per byte of memory", ylabel="GFLOP/s on one core",
             ylim=(1, 2 * peak))
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    figure.tight_layout()
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    figure.savefig(path)
    print("wrote", path)


def main():
    options = arguments()
    if not os.access(KERNEL, os.X_OK):
        skip(f"{KERNEL} is not built")
    bandwidth = copy_rate(16 if options.smoke else 256)
    peaks, points = [], []
    for accuracy in options.accuracy.split(","):
        peak, found = measure(options, accuracy)
        peaks.append(peak)
        points += found
    peak = max(peaks)
    print(f"ceilings: {peak:.0f} GFLOP/s single on one core, copying {bandwidth:.1f} GB/s")
    print("| ε | W | stage | FLOP/byte | GFLOP/s | of the ceiling |")
    print("|---|---|---|---|---|---|")
    for p in points:
        ceiling = min(peak / (2 if p["double"] else 1), bandwidth * p["intensity"])
        print(f"| {p['accuracy']} | {p['support']} | {p['stage']} | {p['intensity']:.1f} | "
              f"{p['rate']:.1f} | {100 * p['rate'] / ceiling:.0f} % |")
    draw(options.out, peak, bandwidth, points)


if __name__ == "__main__":
    main()
