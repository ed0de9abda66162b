#!/usr/bin/env python3
"""Cleaned mosaics of simulated pointings against the true fluxes, by tessera and, where it is installed, by CASA.

usage: mosaic_truth.py [CASE ...] [--casa] [--threads 2] [--seen .975,.9] [--cleaning WORDS]

A case is an array with a hexagon of 7 or 19 pointings (CASES below). Its sky has wide Gaussians of pixels, of which the
shortest baseline of the set sees the shares --seen of the amplitude: one or two. This is how wide they are in all cases.
Four points lie at the .2 level of the weight, and others, twelve in all, anywhere above it, as many as have room. All
sources are cleaned within a mask to half the noise; --cleaning has other words for tessera. For each imager, a line of
CSV tells

flux        the worst relative error of the points' peaks in the image of fluxes, where the beam of the mosaic is above
            sqrt(.2): the .2 level of its weight
noise       what noise alone lets expect of it: the largest rms of one of them
lowest      the weight at the weakest of these places
fwhm        of the wide sources [arcsec]
extended    the relative errors of the sums over them
residual    the rms of the residual of even noise in proportion to the expected one, 1 / sqrt(max P)
seconds     of processors, user and system, of the imager alone; wall: by the clock

The same comes as a table at the end. Nothing judges them. TESS_CASA_PYTHON is an interpreter with CASA:
`. tests/setup.sh; tess_setup_casa FOLDER`.
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
         "unlike19": ("both/ALMA.csv", "ALMA", ALMA[2], NINETEEN, 26, 512, 0.6),
         "meerkat7": (*MEERKAT, SEVEN, 2000, 512, 25.0), "meerkat19": (*MEERKAT, NINETEEN, 2000, 768, 25.0)}
VISITS = 8  # integrations of a pointing
NITER, MGAIN, DEPTH = 20000, 0.8, 0.5  # DEPTH: in sigma of the residual
LEVEL = 0.2  # of the weight
WIDE = (((-.45, .3), 1.0), ((.5, -.5), 1.5))  # where wide sources are, in distances of pointings; their fluxes [Jy]


# ---- sets ----

def write_alma(path, unlike):
    """Dishes of 12 m, and of 7 m, within 80 m at ALMA's site. They are 1.25 times their size apart, as there."""
    rng = np.random.default_rng(12)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    rows = []
    for number, size, within in ((24, 12, 80), (10, 7, 25)):
        wanted = len(rows) + number
        while len(rows) < wanted:
            at = rng.uniform(-within, within, 2)
            if all(np.hypot(at[0] - e, at[1] - n) > 1.25 * (size + d) / 2 for e, n, d in rows):
                rows.append((*at, size))
    with open(path, "w", encoding="utf-8") as file:
        file.write("# lon=-67.755 lat=-23.023 alt=5000\neast,north,up,diameter\n")
        file.writelines(f"{e:.3f},{n:.3f},0,{d}\n" for e, n, d in rows if unlike or d == 12)
    return path


def fwhm_seen(share, shortest):
    """The FWHM [arcsec] of the Gaussian of which a baseline [wavelengths] sees this share of the amplitude:
    exp(-(pi FWHM u)^2 / (4 ln 2))."""
    return np.rad2deg(np.sqrt(-4 * np.log(2) * np.log(share)) / (np.pi * shortest)) * 3600


class Sky:
    """Pixels [Jy], points (row, column), and masks and FWHM [arcsec] of wide sources. `beam` is the mosaic's."""

    def __init__(self, case, beam, fwhm):
        _, _, _, _, spacing, size, self.scale = CASES[case]
        self.pixels, self.points, self.wide, self.fwhm = np.zeros((size, size)), [], [], fwhm
        self.y, self.x = np.mgrid[:size, :size] - size // 2
        self.reach = spacing / self.scale
        self.taken = np.zeros((size, size), bool)
        places = WIDE if len(fwhm) > 1 else (((0, 0), WIDE[1][1]),)
        for (at, flux), width in zip(places, np.array(fwhm) / self.scale):
            self.add_wide(at, flux, width)
        rng = np.random.default_rng(7)
        for low, high, number in ((1.02 * LEVEL, 1.3 * LEVEL, 4), (LEVEL, 1, 12)):
            self.add_points(rng, np.argwhere((beam ** 2 > low) & (beam ** 2 < high)), number)

    def add_wide(self, at, flux, width):
        away = np.hypot(self.x - round(at[0] * self.reach), self.y - round(at[1] * self.reach))
        blob = np.where(away < 1.6 * width, np.exp(-4 * np.log(2) * (away / width) ** 2), 0)
        self.pixels += flux * blob / blob.sum()
        self.wide.append(away < 1.7 * width)
        self.taken |= self.wide[-1]

    def add_points(self, rng, places, number):
        """Up to `number` in all, in a square each that nothing else is in."""
        for j, i in rng.permutation(places):
            near = self.taken[max(j - 13, 0):j + 14, max(i - 13, 0):i + 14]
            if len(self.points) < number and not near.any():
                near[:] = True
                self.points.append((j, i))
                self.pixels[j, i] += 10 ** rng.uniform(-.3, .3)

    def write(self, path):
        """The image, and a mask of circles beside it."""
        write_image(path, self.pixels, self.scale)
        circles = [(i, j, 9) for j, i in self.points] + [
            (*np.argwhere(mask).mean(0)[::-1].round(), np.sqrt(mask.sum() / np.pi)) for mask in self.wide]
        with open(path.replace("-sky.fits", ".crtf"), "w", encoding="utf-8") as file:
            file.write("#CRTFv0\n" + "".join(f"circle [[{i:.0f}pix, {j:.0f}pix], {r:.1f}pix]\n" for i, j, r in circles))


def write_image(path, image, scale):
    half, header = image.shape[0] // 2, fits_module().PrimaryHDU(image[None, None])
    for k, (name, value, pixel, step) in enumerate((("RA---SIN", RA, half + 1, -scale / 3600),
                                                    ("DEC--SIN", DEC, half + 1, scale / 3600),
                                                    ("FREQ", 1.4e9, 1, 1e6), ("STOKES", 1, 1, 1)), 1):
        header.header.update({f"CTYPE{k}": name, f"CRVAL{k}": value, f"CRPIX{k}": pixel, f"CDELT{k}": step})
    header.header.update(BUNIT="JY/PIXEL", EQUINOX=2000.0)
    header.writeto(path, overwrite=True)


def simulate(case, sky, path, noise):
    """A set of the pointings, of which CASA takes the beams that tessera takes."""
    layout, telescope, words, pointings, spacing, _, _ = CASES[case]
    if layout.endswith(".csv"):
        layout = write_alma(os.path.join(WORK, layout), "both" in layout)
    step = float(words[-1][:-1])
    run([BIN, "simulate", "--layout", layout, "--sky", sky, "--ra", f"{RA}deg", f"--dec={DEC}deg", *words, "--channels",
         CHANNELS, "--pointings", f"hex:{pointings},{spacing}asec", "--duration", f"{step * pointings * VISITS}s",
         "--primary-beam", "auto", "--noise", f"{noise}Jy", "--start", "2026-01-01", "--overwrite", "-o", path])
    # CASA takes these polynomials for the telescope EVLA
    run([casacore_python(), "-c", "import sys, casacore.tables as ct; t = ct.table(sys.argv[1] + '/OBSERVATION', "
         "readonly=False, ack=False); t.putcell('TELESCOPE_NAME', 0, sys.argv[2])", path, telescope])


COUNT = """
import sys
import numpy as np, casacore.tables as ct
t = ct.table(sys.argv[1], ack=False)
freq = ct.table(sys.argv[1] + "/SPECTRAL_WINDOW", ack=False).getcol("CHAN_FREQ")
u, v = t.getcol("UVW")[:, :2].T
print(t.nrows() * freq.size, np.hypot(u, v).min() * freq.min() / 299792458)
"""


def measure_set(path):
    """How many visibilities it has, and the shortest of its baselines [wavelengths], as projected."""
    told = subprocess.run([casacore_python(), "-c", COUNT, path], capture_output=True, text=True, check=True).stdout
    return int(told.split()[0]), float(told.split()[1])


def make_set(case, seen):
    """The set of a case, its sky, and the number of visibilities. A set without noise of one source tells first how
    short baselines are, and where the beam of the mosaic ends."""
    path, trial = (os.path.join(WORK, f"{case}{end}.ms") for end in ("", "-trial"))
    sources = os.path.join(WORK, "trial.csv")
    with open(sources, "w", encoding="utf-8") as file:
        file.write(f"ra,dec,flux_jy\n{RA}deg,{DEC}deg,1\n")
    simulate(case, sources, trial, 0)
    num_vis, shortest = measure_set(trial)
    run([BIN, "image", trial, "-o", trial[:-3], *image_words(case), "--no-psf"])
    beam = np.nan_to_num(read(f"{trial[:-3]}-pb.fits")[0])
    sky = Sky(case, beam, [fwhm_seen(share, shortest) for share in seen])
    sky.write(os.path.join(WORK, f"{case}-sky.fits"))
    simulate(case, os.path.join(WORK, f"{case}-sky.fits"), path, NOISE)
    return path, sky, num_vis


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


def image_words(case):
    _, _, _, _, _, size, scale = CASES[case]
    return ["--mosaic", "--size", size, "--scale", f"{scale}asec", "--center", f"{RA}deg,{DEC}deg", "--weight",
            "natural", "--overwrite"]


def by_tessera(case, path, threads, cleaning):
    out = os.path.join(WORK, f"{case}-tessera")
    words = cleaning.split() if cleaning else [
        "--multiscale", "--multiscale-scales", "0,6,14", "--auto-threshold", str(DEPTH), "--mask",
        os.path.join(WORK, f"{case}.crtf")]
    spent = run([BIN, "image", path, "-o", out, *image_words(case), "--niter", NITER, "--mgain", MGAIN, "--threads",
                 threads, *words])
    names = ("image-pb", "residual", "pb", "weight")
    return [read(f"{out}-{name}.fits") for name in names], spent


TCLEAN = """
import sys
from casatasks import tclean
case, vis, size, cell, centre, niter, nsigma = sys.argv[1:]
tclean(vis=vis, imagename=case, mask=case.replace("-casa", ".crtf"), imsize=int(size), cell=cell, phasecenter=centre,
       gridder="mosaic", weighting="natural", specmode="mfs", deconvolver="multiscale", scales=[0, 6, 14],
       niter=int(niter), nsigma=float(nsigma), usemask="user", pblimit=0.2, pbcor=True, usepointing=False,
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
                 f"J2000 {RA}deg {DEC}deg", NITER, DEPTH], **env)
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


def judge(images, sky, num_vis):
    (flux, header), (residual, _), (beam, _), (weight, _) = images
    truth = smoothed(sky.pixels, header, sky.scale)
    strong = np.nan_to_num(beam) >= np.sqrt(LEVEL)
    places = tuple(np.array([at for at in sky.points if strong[tuple(at)]]).T)
    sums = [abs(np.nansum(flux[mask]) / truth[mask].sum() - 1) for mask in sky.wide if strong[mask].all()]
    rms = 1.4826 * np.median(np.abs(residual[strong] - np.median(residual[strong])))
    expected = expected_rms(weight, num_vis)
    return dict(points=len(places[0]), flux=np.abs(flux[places] / truth[places] - 1).max(),
                # noise moves a peak by its rms in fluxes there
                noise=(expected / beam[places] / truth[places]).max(), lowest=beam[places].min() ** 2,
                fwhm=" ".join(f"{width:.3g}" for width in sky.fwhm),
                extended=" ".join(f"{error:.4f}" for error in sums), residual=rms / expected)


# ---- what is told ----

COLUMNS = ("case", "imager", "visibilities", "points", "flux", "noise", "lowest", "fwhm", "extended", "residual",
           "seconds", "wall")


def told(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def percent(text):
    return ", ".join(f"{100 * float(word):.2f} %" for word in str(text).split())


def print_table(lines, seen):
    """As docs/results/mosaics.md has it."""
    shares = " and ".join(f"{100 * share:.3g} %" for share in seen)
    print(f"\nWide sources: the shortest baseline sees {shares} of their amplitude.\n\n"
          "| case | by | visibilities | points | flux of points (noise) | wide sources | their flux | residual rms "
          "| processor seconds | seconds |\n|" + "---|" * 10)
    for line in lines:
        print(f"| `{line['case']}` | {line['imager']} | {line['visibilities']:,} | {line['points']} "
              f"| {percent(line['flux'])} ({percent(line['noise'])}) | {line['fwhm'].replace(' ', '″, ')}″ "
              f"| {percent(line['extended'])} | {line['residual']:.2f} | {line['seconds']:.2g} | {line['wall']:.2g} |")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1][7:])
    parser.add_argument("case", nargs="*", default=[])
    parser.add_argument("--casa", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seen", default=".975,.9")
    parser.add_argument("--cleaning", default="")
    args = parser.parse_args()
    os.makedirs(WORK, exist_ok=True)
    seen, lines = [float(share) for share in args.seen.split(",")], []
    print(",".join(COLUMNS))
    for case in args.case or CASES:
        path, sky, num_vis = make_set(case, seen)
        made = {"tessera": by_tessera(case, path, args.threads, args.cleaning)}
        if args.casa:
            made["CASA"] = by_casa(case, path, args.threads)
        for imager, (images, spent) in made.items():
            lines.append(dict(case=case, imager=imager, visibilities=num_vis, seconds=spent[0], wall=spent[1],
                              **judge(images, sky, num_vis)))
            print(",".join(told(lines[-1][name]) for name in COLUMNS), flush=True)
    print_table(lines, seen)


if __name__ == "__main__":
    main()
