"""Automatic masks beside those of CASA's tclean (usemask "auto-multithresh"), on five sets: masks
overlap, and fluxes agree. Part of peer_casa.py with --full."""
import numpy as np

from e2e import read_image, simulate, tessera, write_sky

# Overlap of masks (intersection over union), and difference of fluxes, at least and at most.
OVERLAP, FLUX = 0.9, 0.02

POINTS = [(0, 0, 1.0, 0), (60, 45, .5, 0), (-70, 50, .2, 0), (50, -80, .1, 0)]
FIELDS = [(0, 0, 1.0, 0), (55, -40, .6, 6), (-60, -45, .8, 9), (-50, 70, .3, 4), (75, 60, .15, 0)]
EXTENDED = [(0, 0, 3.0, 14), (8, 12, 1.0, 5), (-60, 40, .3, 0)]
ABSORPTION = [(0, 0, 1.0, 0), (45, 40, -.35, 5), (-50, 30, .4, 4)]

# Name, layout, declination, frequency, pixel [asec], sources (x, y in pixels, Jy, FWHM in
# pixels), noise of a visibility [Jy], parameters of tclean, and options that are the same.
SETS = [
    ("points", "vla-d", -10, "8.4GHz", 2.0, POINTS, .05, {}, []),
    ("fields", "vla-d", 20, "5GHz", 3.0, FIELDS, .1, {"cyclefactor": 1.5}, []),
    ("extended", "meerkat", -30, "1.28GHz", 2.0, EXTENDED, .3, {"lownoisethreshold": 2.0},
     ["--low-noise-threshold", "2"]),
    ("absorption", "vla-d", 30, "8.4GHz", 2.0, ABSORPTION, .1, {"negativethreshold": 7.0},
     ["--negative-threshold", "7"]),
    ("slow", "meerkat", -40, "1.28GHz", 2.0, FIELDS, .3, {"fastnoise": False, "minbeamfrac": .5, "sidelobethreshold": 1.5},
     ["--fast-noise", "no", "--min-beam-frac", "0.5", "--sidelobe-threshold", "1.5"]),
]
SIDE = 256
SAMPLES = 351 * 60 * 2 * 2  # baselines, integrations, channels and hands

TCLEAN = """
import glob
for old in glob.glob(NAME + ".*"):
    shutil.rmtree(old)
tclean(vis=VIS, imagename=NAME, imsize=SIDE, cell=CELL, weighting="briggs", robust=0.5,
       deconvolver="hogbom", gridder="standard", pblimit=-0.1, niter=20000, nmajor=12, threshold=THRESHOLD,
       usemask="auto-multithresh", interactive=False, **PARAMETERS)
for kind in ("mask", "image", "model", "residual"):
    exportfits(NAME + "." + kind, NAME + "-" + kind + ".fits", overwrite=True)
"""


def observe(suite, name, layout, dec, freq, pixel, sources, noise):
    rows = []
    for x, y, flux, fwhm in sources:
        row = dict(ra=f"{60 - x * pixel / 3600 / np.cos(np.radians(dec)):.8f}deg",
                   dec=f"{dec + y * pixel / 3600:.8f}deg", flux_jy=flux)
        if fwhm:
            row.update(major=f"{fwhm * pixel}asec", minor=f"{fwhm * pixel * .7}asec", pa="30deg")
        rows.append(row)
    return simulate(suite.path(name + ".ms"), write_sky(suite.path(name + ".csv"), rows),
                    layout=layout, ra="60deg", dec=f"{dec}deg", duration="2h", integration="120s",
                    freq=freq, width="16MHz", channels=2, pol="RR,LL", start="2026-01-01",
                    extra=("--noise", str(noise)))


def flux_of(path, mask):
    """Sum of a restored image over the area of its beam."""
    image, header = read_image(path)
    return np.nansum(image[mask]) / (np.pi / (4 * np.log(2)) * header["BMAJ"] * header["BMIN"] /
                                     header["CDELT2"] ** 2)


def compare(suite, name, ours, theirs):
    """Masks, and fluxes of model and image within both masks."""
    a, b = (read_image(prefix + "-mask.fits")[0] > 0 for prefix in (ours, theirs))
    both, either = np.count_nonzero(a & b), np.count_nonzero(a | b)
    suite.below(f"{name}: what masks of {a.sum()} and {b.sum()} pixels do not share",
                1 - both / max(either, 1), 1 - OVERLAP)
    one, other = (np.nansum(read_image(p + "-model.fits")[0]) for p in (ours, theirs))
    suite.below(f"{name}: flux of the models, {one:.5g} and {other:.5g} Jy", abs(one / other - 1), FLUX)
    one, other = (flux_of(p + "-image.fits", a & b) for p in (ours, theirs))
    suite.below(f"{name}: flux of the images in both masks, {one:.5g} and {other:.5g} Jy",
                abs(one / other - 1), FLUX)


def check_masks(suite, casa):
    for name, layout, dec, freq, pixel, sources, noise, parameters, options in SETS:
        obs = observe(suite, name, layout, dec, freq, pixel, sources, noise)
        theirs, ours = suite.path(name + "-casa"), suite.path(name + "-ours")
        threshold = 5 * noise / np.sqrt(SAMPLES)
        values = dict(NAME=theirs, VIS=obs, SIDE=SIDE, CELL=f"{pixel}arcsec",
                      THRESHOLD=f"{threshold}Jy", PARAMETERS=parameters)
        program = "".join(f"{key} = {value!r}\n" for key, value in values.items()) + TCLEAN
        if casa.run(f"{name}: tclean", program, timeout=600) is None:
            continue
        beam = read_image(theirs + "-image.fits")[1]  # restored alike; it is not of the masks
        made = tessera("image", obs, "--size", SIDE, "--scale", f"{pixel}asec", "--weight", "briggs:0.5",
                       "--niter", 20000, "--nmiter", 12, "--threshold", f"{threshold}Jy",
                       "--auto-multithresh", "--cyclefactor", parameters.get("cyclefactor", 1), *options,
                       "--beam-shape", f"{beam['BMAJ']}deg,{beam['BMIN']}deg,{beam['BPA']}deg", "-o", ours)
        if suite.ran(f"{name}: cleaned", made):
            compare(suite, name, ours, theirs)
