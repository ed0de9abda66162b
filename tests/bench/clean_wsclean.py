#!/usr/bin/env python3
"""Times whole jobs, from a MeasurementSet to restored images, of tessera and WSClean in turns, and
prints a line of CSV for each run: seconds, those of processors, residual rms, flux of the model.
Both clean multiscale to auto-threshold 3 with auto-mask 5, mgain .8. --set makes one of the
observations first: 400 point sources of .001 to 2 Jy and 25 Gaussians of 15 to 150 arcsec, with
noise. --join N: N channels that are cleaned together, with spectra of three terms; rms and flux are
those of the MFS images. --smoke: a small one, to show that it runs. Skipped without WSClean."""
import argparse
import os
import resource
import shutil
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))
from e2e import BIN, mpi_environment, offset_radec, read_image, skip

WORK = os.environ.get("TESS_WORK", "/tmp/clean_wsclean")
RA, DEC = 60.0, -30.0
# layout, frequency, channel width, channels, duration, integration, noise; size and pixel [arcsec]
SETS = {"vla-2M": (["--layout", "vla-a", "--freq", "1.4GHz", "--chan-width", "4MHz", "--channels", "16",
                    "--duration", "4h", "--integration", "47s", "--noise", "0.1Jy"], 2048, .5),
        "meerkat-29M": (["--layout", "meerkat", "--freq", "1.28GHz", "--chan-width", "13MHz",
                         "--channels", "16", "--duration", "2h", "--integration", "8s", "--noise",
                         "0.5Jy"], 4096, 1.1),
        "smoke": (["--layout", "meerkat", "--freq", "1.28GHz", "--chan-width", "13MHz", "--channels", "4",
                   "--antennas", "16", "--duration", "30min",
                   "--integration", "300s", "--noise", "0.05Jy"], 512, 3.0)}


def make_sky(path, size, pixel, points=400, gaussians=25, flux=(-3, .3), width=(15 / 1.1, 150 / 1.1)):
    """Points and then Gaussians inside the middle two thirds of the image, of fluxes [log10 Jy] and
    widths [pixels] in these ranges."""
    rng = np.random.default_rng(5)
    half = size * pixel / 3 * np.pi / 648000
    with open(path, "w") as file:
        file.write("ra,dec,flux_jy,major,minor,pa\n")
        for k in range(points + gaussians):
            ra, dec = offset_radec(RA, DEC, *rng.uniform(-half, half, 2))
            shape = ",,"
            if k >= points:
                major = rng.uniform(*width) * pixel
                shape = f"{major:.2f}asec,{major * rng.uniform(.4, 1):.2f}asec,{rng.uniform(0, 180):.1f}deg"
            file.write(f"{ra:.9f}deg,{dec:.9f}deg,{10 ** rng.uniform(*flux):.5f},{shape}\n")


def observe(name):
    options, size, pixel = SETS[name]
    obs = os.path.join(WORK, name + ".ms")
    if not os.path.exists(obs):
        sky = os.path.join(WORK, name + ".csv")
        make_sky(sky, size, pixel)
        subprocess.run([BIN, "simulate", *options, "--sky", sky, "--ra", f"{RA}deg", f"--dec={DEC}deg",
                        "-o", obs, "-q"], check=True, env=mpi_environment())
    return obs, size, pixel


def clean_tessera(obs, size, pixel, threads, joined):
    prefix = os.path.join(WORK, "t")
    return prefix, [BIN, "image", obs, "-o", prefix, "--size", str(size), "--scale", f"{pixel}asec",
                    "--niter", "1000000", "--auto-threshold", "3", "--auto-mask", "5", "--multiscale",
                    "--mgain", ".8", "--threads", str(threads), "--overwrite", "-q", *joined]


def clean_wsclean(obs, size, pixel, threads, joined):
    prefix = os.path.join(WORK, "w")
    return prefix, ["wsclean", "-quiet", "-name", prefix, "-size", str(size), str(size), "-scale",
                    f"{pixel}asec", "-niter", "1000000", "-auto-threshold", "3", "-auto-mask", "5",
                    "-multiscale", "-mgain", ".8", "-weight", "briggs", "0", "-weighting-rank-filter",
                    "0", "-use-wgridder", "-wgridder-accuracy", "1e-4", "-no-small-inversion", "-pol",
                    "I", "-no-update-model-required", "-j", str(threads), "-temp-dir", WORK,
                    *(word.replace("--", "-") for word in joined), obs]


def processor_seconds():
    """Of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=sorted(SETS), default="vla-2M")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--join", type=int, default=0, metavar="N")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if not shutil.which("wsclean"):
        skip("WSClean is not installed")
    os.makedirs(WORK, exist_ok=True)
    name, repeat = ("smoke", 1) if args.smoke else (args.set, args.repeat)
    obs, size, pixel = observe(name)
    joined, kind = [], ""
    if args.join:
        joined = ["--channels-out", str(args.join), "--join-channels", "--fit-spectral-pol", "3"]
        kind = "-MFS"
    print("CSV program,set,threads,seconds,cpu_seconds,residual_rms,model_flux", flush=True)
    for _ in range(repeat):
        for program, clean in (("tessera", clean_tessera), ("wsclean", clean_wsclean)):
            prefix, command = clean(obs, size, pixel, args.threads, joined)
            begin, spent = time.time(), processor_seconds()
            subprocess.run(command, check=True, env=mpi_environment(), stdout=subprocess.DEVNULL)
            seconds, spent = time.time() - begin, processor_seconds() - spent
            rms = np.std(read_image(f"{prefix}{kind}-residual.fits")[0])
            flux = np.sum(read_image(f"{prefix}{kind}-model.fits")[0])
            print(f"CSV {program},{name},{args.threads},{seconds:.2f},{spent:.2f},{rms:.5g},{flux:.5g}",
                  flush=True)


if __name__ == "__main__":
    main()
