#!/usr/bin/env python3
"""Cleaned mosaics of simulated pointings against the true fluxes, by tessera and, where it is installed, by CASA.

usage: mosaic_truth.py [CASE ...] [--casa] [--threads 2]

A case is an array with a hexagon of 7 or 19 pointings (CASES below). Sources are at most twelve points at some
distances from the middle, and two wide Gaussians of pixels, which a mask encloses. For each imager a line of CSV tells

flux        the worst relative error of the points' peaks in the image of fluxes, where the beam of the mosaic is above
            sqrt(.2): the .2 level of its weight
noise       what noise alone lets expect of it: the largest rms of one of them
extended    that of the sums over the wide sources, less those of the same pixels' truth
residual    the rms of the residual of even noise in proportion to the expected one, 1 / sqrt(max P)
seconds     of processors, user and system, of the imager alone; wall: by the clock

Nothing judges them. TESS_CASA_PYTHON is an interpreter with CASA: `. tests/setup.sh; tess_setup_casa FOLDER`.
"""
import argparse
import os
import resource
import subprocess
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from e2e import BIN, casacore_python, fits_module, mpi_environment  # noqa: E402
from peer_casa import CONFIG  # noqa: E402

WORK = os.environ.get("TESS_WORK", "/tmp/mosaic_truth")
CASA = os.environ.get("TESS_CASA_PYTHON")
RA, DEC, NOISE, CHANNELS = 60.0, -23.0, 0.3, 4
SEVEN, NINETEEN = 7, 19
# layout; telescope in the set; options of simulate; pointings, their distance [arcsec]; pixels, pixel [arcsec]
VLA = ("vla-d", "EVLA", ["--freq", "1.4GHz", "--chan-width", "4MHz", "--integration", "30s"])
ALMA = ("ALMA.csv", "ALMA", ["--freq", "100GHz", "--chan-width", "50MHz", "--integration", "20s"])
MEERKAT = ("meerkat", "MeerKAT", ["--max-radius", "700m", "--freq", "1.28GHz", "--chan-width", "4MHz",
                                  "--integration", "60s"])
CASES = {"vla7": (*VLA, SEVEN, 900, 512, 12.0), "vla19": (*VLA, NINETEEN, 900, 640, 12.0),
         "alma7": (*ALMA, SEVEN, 26, 400, 0.6), "alma19": (*ALMA, NINETEEN, 26, 512, 0.6),
         "unlike7": ("both/ALMA.csv", "ALMA", ALMA[2], SEVEN, 26, 400, 0.6),
         "meerkat7": (*MEERKAT, SEVEN, 2000, 512, 25.0), "meerkat19": (*MEERKAT, NINETEEN, 2000, 768, 25.0)}
VISITS = 8  # integrations of a pointing
NITER, MGAIN = 20000, 0.8


# ---- sets ----

def write_alma(path, unlike):
    """Dishes of 12 m, and of 7 m, within 80 m at ALMA's site."""
    rng = np.random.default_rng(12)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    rows = [(*rng.uniform(-80, 80, 2), 12) for _ in range(24)] + [(*rng.uniform(-25, 25, 2), 7) for _ in range(10)]
    with open(path, "w", encoding="utf-8") as file:
        file.write("# lon=-67.755 lat=-23.023 alt=5000\neast,north,up,diameter\n")
        file.writelines(f"{e:.3f},{n:.3f},0,{d}\n" for e, n, d in rows if unlike or d == 12)
    return path


def make_sky(case, path):
    """A FITS image of the sky; pixels of points with their fluxes; masks of the wide sources."""
    _, _, _, pointings, spacing, size, scale = CASES[case]
    reach = spacing / scale * (1 if pointings == SEVEN else 2)
    sky, half, rng = np.zeros((size, size)), size // 2, np.random.default_rng(7)
    y, x = np.mgrid[:size, :size]
    wide = []
    for at, fwhm, flux in (((-.45, .3), 10, 1.0), ((.5, -.5), 16, 1.5)):
        away = np.hypot(x - half - round(at[0] * reach), y - half - round(at[1] * reach))
        blob = np.where(away < 1.6 * fwhm, np.exp(-4 * np.log(2) * (away / fwhm) ** 2), 0)
        sky += flux * blob / blob.sum()
        wide.append(away < 1.7 * fwhm)
    taken, points = wide[0] | wide[1], []
    for _ in range(5000):  # as many as have room
        r, angle = reach * 1.25 * np.sqrt(rng.uniform()), rng.uniform(0, 2 * np.pi)
        i, j = half + int(round(r * np.cos(angle))), half + int(round(r * np.sin(angle)))
        near = (np.abs(x - i) < 14) & (np.abs(y - j) < 14)
        if len(points) < 12 and not (near & taken).any():
            taken |= near
            points.append((j, i, 10 ** rng.uniform(-.3, .3)))
            sky[j, i] += points[-1][2]
    write_image(path, sky, scale)
    with open(path.replace("-sky.fits", ".crtf"), "w", encoding="utf-8") as file:
        circles = [(i, j, 9) for j, i, _ in points] + [(*np.argwhere(mask).mean(0)[::-1].round(), np.sqrt(
            mask.sum() / np.pi)) for mask in wide]
        file.write("#CRTFv0\n" + "".join(f"circle [[{i:.0f}pix, {j:.0f}pix], {r:.1f}pix]\n" for i, j, r in circles))
    return sky, points, wide


def write_image(path, image, scale):
    half, header = image.shape[0] // 2, fits_module().PrimaryHDU(image[None, None])
    for k, (name, value, pixel, step) in enumerate((("RA---SIN", RA, half + 1, -scale / 3600),
                                                    ("DEC--SIN", DEC, half + 1, scale / 3600),
                                                    ("FREQ", 1.4e9, 1, 1e6), ("STOKES", 1, 1, 1)), 1):
        header.header.update({f"CTYPE{k}": name, f"CRVAL{k}": value, f"CRPIX{k}": pixel, f"CDELT{k}": step})
    header.header.update(BUNIT="JY/PIXEL", EQUINOX=2000.0)
    header.writeto(path, overwrite=True)


def make_set(case):
    layout, telescope, words, pointings, spacing, _, _ = CASES[case]
    sky = make_sky(case, os.path.join(WORK, f"{case}-sky.fits"))
    path = os.path.join(WORK, f"{case}.ms")
    if layout.endswith(".csv"):
        layout = write_alma(os.path.join(WORK, layout), "both" in layout)
    step = float(words[-1][:-1])
    run([BIN, "simulate", "--layout", layout, "--sky", os.path.join(WORK, f"{case}-sky.fits"), "--ra", f"{RA}deg",
         f"--dec={DEC}deg", *words, "--channels", str(CHANNELS), "--pointings", f"hex:{pointings},{spacing}asec",
         "--duration", f"{step * pointings * VISITS}s", "--primary-beam", "auto", "--noise", f"{NOISE}Jy",
         "--start", "2026-01-01", "--overwrite", "-o", path])
    # CASA takes these polynomials for the telescope EVLA
    run([casacore_python(), "-c", "import sys, casacore.tables as ct; t = ct.table(sys.argv[1] + '/OBSERVATION', "
         "readonly=False, ack=False); t.putcell('TELESCOPE_NAME', 0, sys.argv[2])", path, telescope])
    return path, sky


def run(command, **env):
    """Seconds of processors and of the clock."""
    before, mark = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([str(word) for word in command], env={**mpi_environment(), **env}, capture_output=True,
                          text=True, cwd=WORK, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))[:400]}\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, time.monotonic() - mark


# ---- imagers ----

def read(path):
    with fits_module().open(path) as file:
        return file[0].data.squeeze().astype("f8"), file[0].header


def by_tessera(case, path, threads):
    _, _, _, _, _, size, scale = CASES[case]
    out = os.path.join(WORK, f"{case}-tessera")
    spent = run([BIN, "image", path, "-o", out, "--mosaic", "--size", size, "--scale", f"{scale}asec", "--center",
                 f"{RA}deg,{DEC}deg", "--weight", "natural", "--niter", NITER, "--mgain", MGAIN, "--multiscale",
                 "--multiscale-scales", "0,6,14", "--auto-threshold", "1", "--mask",
                 os.path.join(WORK, f"{case}.crtf"), "--threads", threads, "--overwrite"])
    names = ("image-pb", "residual", "pb", "weight")
    return [read(f"{out}-{name}.fits") for name in names], spent


TCLEAN = """
import sys
from casatasks import tclean
case, vis, size, cell, centre, niter = sys.argv[1:]
tclean(vis=vis, imagename=case, mask=case.replace("-casa", ".crtf"), imsize=int(size), cell=cell, phasecenter=centre,
       gridder="mosaic", weighting="natural", specmode="mfs", deconvolver="multiscale", scales=[0, 6, 14],
       niter=int(niter), nsigma=1.0, usemask="user", pblimit=0.2, pbcor=True, usepointing=False,
       datacolumn="data", interactive=False)
"""
EXPORT = """
import sys
from casatasks import exportfits
for name in ("image.pbcor", "residual", "pb", "weight"):
    exportfits(f"{sys.argv[1]}.{name}", f"{sys.argv[1]}.{name}.fits", overwrite=True)
"""


def by_casa(case, path, threads):
    _, _, _, _, _, size, scale = CASES[case]
    config = os.path.join(WORK, "casa-site.py")
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG)
    env = dict(HOME=WORK, CASASITECONFIG=config, OMP_NUM_THREADS=str(threads))
    for name in os.listdir(WORK):
        if name.startswith(f"{case}-casa."):
            subprocess.run(["rm", "-rf", os.path.join(WORK, name)], check=True)
    spent = run([CASA, "-c", TCLEAN, f"{case}-casa", path, size, f"{scale}arcsec",
                 f"J2000 {RA}deg {DEC}deg", NITER], **env)
    run([CASA, "-c", EXPORT, f"{case}-casa"], **env)
    return [read(os.path.join(WORK, f"{case}-casa.{name}.fits"))
            for name in ("image.pbcor", "residual", "pb", "weight")], spent


# ---- truth ----

def smoothed(sky, header, scale):
    """Convolved to the restoring beam, in Jy/beam."""
    size = sky.shape[0]
    major, minor, pa = header["BMAJ"] * 3600 / scale, header["BMIN"] * 3600 / scale, np.deg2rad(header["BPA"])
    u, v = np.meshgrid(np.fft.fftfreq(size), np.fft.fftfreq(size))
    along, across = -u * np.sin(pa) + v * np.cos(pa), u * np.cos(pa) + v * np.sin(pa)
    factor = np.pi ** 2 / (4 * np.log(2))
    beam = np.exp(-factor * ((along * major) ** 2 + (across * minor) ** 2))
    area = np.pi * major * minor / (4 * np.log(2))
    return np.fft.ifft2(np.fft.fft2(sky) * beam).real * area


def expected_rms(weight, num_vis):
    """Of even noise: 1 / sqrt(max P) of natural weights, each sample the mean of two correlations."""
    return NOISE / np.sqrt(2 * num_vis * np.nanmax(weight))


def judge(case, images, sky, num_vis):
    (flux, header), (residual, _), (beam, _), (weight, _) = images
    pixels, points, wide = sky
    truth = smoothed(pixels, header, CASES[case][-1])
    strong = np.nan_to_num(beam) >= np.sqrt(.2)
    errors = [abs(flux[j, i] / truth[j, i] - 1) for j, i, _ in points if strong[j, i]]
    sums = [abs(np.nansum(flux[mask]) / truth[mask].sum() - 1) for mask in wide if strong[mask].all()]
    rms = 1.4826 * np.median(np.abs(residual[strong] - np.median(residual[strong])))
    expected = expected_rms(weight, num_vis)
    # noise moves a peak by its rms in fluxes there
    least = [expected / beam[j, i] / truth[j, i] for j, i, _ in points if strong[j, i]]
    return dict(points=len(errors), flux=max(errors), noise=max(least), extended=max(sums), residual=rms / expected)


def num_vis_of(case):
    _, _, _, pointings, _, _, _ = CASES[case]
    python = "import sys, casacore.tables as ct; print(ct.table(sys.argv[1], ack=False).nrows())"
    rows = subprocess.run([casacore_python(), "-c", python, os.path.join(WORK, f"{case}.ms")], capture_output=True,
                          text=True, check=True)
    return int(rows.stdout) * CHANNELS


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][7:])
    parser.add_argument("case", nargs="*", default=[])
    parser.add_argument("--casa", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    os.makedirs(WORK, exist_ok=True)
    print("case,imager,visibilities,points,flux,noise,extended,residual,seconds,wall")
    for case in args.case or CASES:
        path, sky = make_set(case)
        num_vis = num_vis_of(case)
        made = {"tessera": by_tessera(case, path, args.threads)}
        if args.casa:
            made["casa"] = by_casa(case, path, args.threads)
        for imager, (images, spent) in made.items():
            found = judge(case, images, sky, num_vis)
            print(f"{case},{imager},{num_vis},{found['points']},{found['flux']:.4f},{found['noise']:.4f},"
                  f"{found['extended']:.4f},{found['residual']:.3f},{spent[0]:.2f},{spent[1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
