#!/usr/bin/env python3
"""The program, or a test program, under one of compute-sanitizer's tools.

  sanitize.py TOOL image|reproducible|predict|projection|lanes|clean tessera (TESS_BIN)
  sanitize.py TOOL shared|shared_predict                       two ranks, which share planes
  sanitize.py TOOL shared_clean                                two ranks, which share scales
  sanitize.py TOOL PROGRAM                                     a test program

TOOL is memcheck, racecheck or synccheck. Each rank has a tool of its own. Exit status 77: there
is no device, or no launcher of ranks. Environment: TESS_SANITIZER, the path of
compute-sanitizer; TESS_BIN; TESS_MPIEXEC; TESS_WORK, a scratch folder.
"""
import os
import shutil
import subprocess
import sys

SKIP, FOUND = 77, 99
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("TESS_BIN", os.path.join(ROOT, "build", "bin", "tessera"))
SANITIZER = os.environ.get("TESS_SANITIZER", "compute-sanitizer")
MPIEXEC = os.environ.get("TESS_MPIEXEC", "mpirun")
# Of the environment. The tools do not end if lanes load kernels while others work.
MORE = {"shared": {"TESS_FORCE": "device-planes=2"},
        "clean": {"TESS_FORCE": "clean-grids=1"},
        "shared_clean": {"TESS_FORCE": "device-planes=2"},
        "shared_predict": {"TESS_FORCE": "device-planes=2"},
        "lanes": {"TESS_FORCE": "thread-teams=4", "CUDA_MODULE_LOADING": "EAGER"}}

# Small: tools make kernels some hundred times slower.
IMAGE = ["--size", "256", "--scale", "4asec", "--backend", "cuda", "--no-calibration"]
CLEAN = ["--niter", "100", "--nmiter", "2", "--multiscale", "--auto-mask", "5"]


def tessera(*words):
    print("+", BIN, *words, flush=True)
    return subprocess.run([BIN, *words]).returncode


def simulate(path):
    return tessera("simulate", "--layout", "meerkat", "--sky",
                   os.path.join(ROOT, "jobs", "quickstart-sky.csv"), "--ra", "60deg",
                   "--dec=-30deg", "--duration", "10min", "--integration", "60s",
                   "--chan-width", "4MHz", "--channels", "8", "--freq", "1.28GHz", "--pol",
                   "RR,LL,RL,LR", "--overwrite", "-o", path)


def command_of(what, work):
    """The words of one of the runs, whose input is made first; a program stands for
    itself."""
    if os.path.sep in what:
        return [what]
    obs, out = os.path.join(work, "small.uvfits"), os.path.join(work, "out")
    if simulate(obs) != 0:
        sys.exit("simulate failed")
    if what in ("predict", "shared_predict"):
        model = ["image", obs, "--size", "256", "--scale", "4asec", "--no-calibration",
                 "--backend", "cpu", "--weight", "natural", "--no-psf", "--overwrite",
                 "-o", os.path.join(work, "model")]
        if tessera(*model) != 0:
            sys.exit("no image to predict from")
        return [BIN, "predict", obs, "--model", os.path.join(work, "model-dirty.fits"),
                "--backend", "cuda", "--no-calibration", "--overwrite",
                "-o",
                os.path.join(work, "predicted.uvfits")]
    options = {"image": ["--stokes", "IQUV"],
               "clean": [*CLEAN, "--channels-out", "4", "--join-channels", "--fit-spectral-log-pol", "2"],
               "shared_clean": CLEAN,
               "reproducible": ["--weight", "natural", "--reproducible"],
               "projection": ["--w", "projection"], "shared": [],
               "lanes": ["--threads", "4", "--channels-out", "8", "--cube", "--niter", "20"]}[what]
    return [BIN, "image", obs, *IMAGE, *options, "--overwrite", "-o", out]


def have_device():
    """Status 4 of the smallest benchmark: no such backend here."""
    words = [BIN, "bench", "grid", "--vis", "1e3", "--size", "64", "--accuracy", "1e-2",
             "--repeat", "1", "--backend", "cuda"]
    return subprocess.run(words, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode != 4


def main():
    tool, what = sys.argv[1:]
    if not have_device():
        print("skipped: there is no device")
        return SKIP
    ranks = 2 if what.startswith("shared") else 1
    if ranks > 1 and not MPIEXEC:
        print("skipped: there is no launcher of ranks")
        return SKIP
    work = os.environ.get("TESS_WORK", f"sanitize.{tool}")
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    words = [SANITIZER, "--tool", tool, "--error-exitcode", str(FOUND),
             *command_of(what, work)]
    if ranks > 1:
        words = [MPIEXEC, "-n", str(ranks), *words]
    print("+", *words, flush=True)
    status = subprocess.run(words, env={**os.environ, **MORE.get(what, {})}).returncode
    if status == FOUND:
        print(f"{tool} has found something")
    if status == 0:
        shutil.rmtree(work)
    return status


if __name__ == "__main__":
    sys.exit(main())
