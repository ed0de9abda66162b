#!/usr/bin/env python3
"""Times another program on the visibilities of a line of `tessera bench`.

    bench_peer.py PEER FOLDER

PEER is ducc0 or cufinufft. FOLDER holds case.json and raw arrays: uvw_m [rows][3] and
inv_lambda [channels] of double, vis [rows][channels] complex of the case's precision.
Prints a line of JSON with medians over the repetitions: sort_s, seconds, support (0 where
the program does not say), version. Status 3: the program is not installed.

ducc0: `wgridder` for the same image and accuracy. Its own report tells stages; the index
and (de)gridding proper are what tessera calls sorting and (de)gridding.
cufinufft: spreading or interpolation alone, in three dimensions, between the points and as
many cells and planes as tessera's plan has; sorting is its setpts.
"""
import json
import os
import re
import statistics
import sys
import tempfile

NOT_INSTALLED = 3
LIGHT_M_S = 299792458.0

# Lines of ducc0's report that belong to a stage; everything else is "other".
DUCC_STAGES = {"gridding proper": "kernel", "degridding proper": "kernel",
               "building index": "sort", "allocating grid": "sort",
               "zeroing grid": "sort", "FFT": "fft", "wscreen+grid correction": "fft",
               "parameter calculation": "plan"}


class Captured:
    """What is written to file descriptor 1 meanwhile, by whomever."""

    def __enter__(self):
        sys.stdout.flush()
        self.kept, self.file = os.dup(1), tempfile.TemporaryFile()
        os.dup2(self.file.fileno(), 1)
        return self

    def __exit__(self, *_):
        os.dup2(self.kept, 1)
        os.close(self.kept)
        self.file.seek(0)
        self.text = self.file.read().decode(errors="replace")
        self.file.close()


def ducc_stages(text):
    """Stage times of a ducc0 report, which pads them when one is 10 s or more, and its
    support."""
    stages = {"kernel": 0.0, "sort": 0.0, "fft": 0.0, "plan": 0.0}
    line = r"^\+- (.+?)\s*:\s+[\d.]+% \(\s*([\d.]+)s\)"
    for name, seconds in re.findall(line, text, re.M):
        if name in DUCC_STAGES:
            stages[DUCC_STAGES[name]] += float(seconds)
    missing = [stage for stage in ("kernel", "sort", "fft") if stages[stage] == 0]
    if missing:
        sys.exit(f"ducc0's report tells nothing of {', '.join(missing)}:\n{text}")
    support = re.search(r"supp=(\d+)", text)
    grid = re.search(r"grid=\((\d+x\d+)(?:x(\d+))?\)", text)
    planes = int(grid.group(2) or 1) if grid else 0
    return stages, {"support": int(support.group(1)) if support else 0, "planes": planes,
                    "cells": grid.group(1) if grid else ""}


def read_case(folder):
    """The case, with its arrays."""
    import numpy as np
    with open(os.path.join(folder, "case.json")) as f:
        case = json.load(f)
    real, value = (np.float64, np.complex128) if case["double"] else (np.float32,
                                                                      np.complex64)
    case["real"], case["complex"] = real, value
    for name, kind in (("uvw_m", np.float64), ("inv_lambda", np.float64), ("vis", value)):
        case[name] = np.fromfile(os.path.join(folder, name), kind)
    case["uvw_m"] = case["uvw_m"].reshape(-1, 3)
    case["vis"] = case["vis"].reshape(len(case["uvw_m"]), -1)
    return case


def ducc0(case):
    import ducc0
    import numpy as np
    size, pixel = case["size"], case["scale_rad"]
    common = dict(uvw=case["uvw_m"], freq=case["inv_lambda"] * LIGHT_M_S,
                  epsilon=case["accuracy"], do_wgridding=True, nthreads=case["threads"],
                  pixsize_x=pixel, pixsize_y=pixel, verbosity=1)
    if case["degrid"]:
        image = np.random.default_rng(1).random((size, size)).astype(case["real"])
        call = lambda: ducc0.wgridder.dirty2vis(dirty=image, **common)  # noqa: E731
    else:
        call = lambda: ducc0.wgridder.vis2dirty(  # noqa: E731
            vis=case["vis"], npix_x=size, npix_y=size, **common)
    found = []
    for _ in range(case["repeat"] + 1):
        with Captured() as captured:
            call()
        stages, plan = ducc_stages(captured.text)
        found.append((stages["sort"], stages["kernel"]))
    return found[1:], plan["support"], ducc0.__version__


def cufinufft(case):
    import cufinufft
    import cupy as cp
    import numpy as np
    turns = (case["uvw_m"][:, None, :] * case["inv_lambda"][None, :, None]).reshape(-1, 3)
    w = turns[:, 2] / np.ptp(turns[:, 2])
    inside = (case["planes"] - case["support"]) / case["planes"]
    x, y = (cp.asarray(2 * np.pi * turns[:, k] * case["scale_rad"], case["real"])
            for k in (0, 1))
    z = cp.asarray(2 * np.pi * inside * (w - (w.min() + w.max()) / 2), case["real"])
    values = cp.asarray(case["vis"].ravel())
    cells = (case["nu"], case["nv"], case["planes"])
    plan = cufinufft.Plan(2 if case["degrid"] else 1, cells, eps=case["accuracy"],
                          dtype=np.dtype(case["complex"]).name, gpu_spreadinterponly=1)
    given = cp.ones(cells, case["complex"]) if case["degrid"] else values
    found = []
    for _ in range(case["repeat"] + 1):
        begin, sorted_, end = (cp.cuda.Event() for _ in range(3))
        begin.record()
        plan.setpts(x, y, z)
        sorted_.record()
        plan.execute(given)
        end.record()
        end.synchronize()
        found.append((1e-3 * cp.cuda.get_elapsed_time(begin, sorted_),
                      1e-3 * cp.cuda.get_elapsed_time(sorted_, end)))
    return found[1:], 0, cufinufft.__version__


def main():
    peer, folder = sys.argv[1:]
    try:
        found, support, version = {"ducc0": ducc0, "cufinufft": cufinufft}[peer](
            read_case(folder))
    except ImportError as error:
        print(error, file=sys.stderr)
        sys.exit(NOT_INSTALLED)
    print(json.dumps({"sort_s": statistics.median(f[0] for f in found),
                      "seconds": statistics.median(f[1] for f in found),
                      "support": support, "version": version}))


if __name__ == "__main__":
    main()
