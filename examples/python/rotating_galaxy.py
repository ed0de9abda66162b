"""From a set to maps of moments: a simulated galaxy that rotates, imaged in LSRK.

The disk is inclined by 60 degrees and turns with 140 km/s, its hydrogen recedes by 1000 km/s.
tessera simulates the observation, predicts the galaxy into it, and images it in channels of 8 km/s;
spectral_cube, or numpy without it, makes the maps of flux and mean velocity. With matplotlib they
are drawn to FOLDER/galaxy-moments.png.

usage: python rotating_galaxy.py FOLDER [TESSERA]
"""
import os
import subprocess
import sys

import numpy as np
from astropy.io import fits

C_KM_S, REST_HZ = 299792.458, 1420405751.77
RA, DEC, SIDE, PIXEL_ASEC = 150.0, 20.0, 128, 15
SYSTEMIC_KM_S, ROTATION_KM_S, DISPERSION_KM_S, FLUX_JY_KM_S = 1000, 140, 10, 100
CHANNELS, WIDTH_HZ = 64, 30e3

folder = sys.argv[1]
tessera = sys.argv[2] if len(sys.argv) > 2 else "tessera"
empty, galaxy, model = (os.path.join(folder, name) for name in (
    "empty.uvfits", "galaxy.uvfits", "galaxy-sky.fits"))
size = ["--size", str(SIDE), "--scale", f"{PIXEL_ASEC}asec", "--overwrite", "--quiet"]
first_hz = REST_HZ * (1 - SYSTEMIC_KM_S / C_KM_S) - CHANNELS / 2 * WIDTH_HZ


def run(*words):
    subprocess.run([tessera, *words], check=True)


def disk():
    """Surface brightness [Jy km/s per pixel] and mean velocity of each pixel."""
    y, x = np.mgrid[:SIDE, :SIDE] - SIDE // 2
    along, across = (x + y) / np.sqrt(2), (y - x) / np.sqrt(2) / np.cos(np.deg2rad(60))
    radius = np.hypot(along, across) * PIXEL_ASEC
    flux = np.exp(-radius / 120) * (radius < 450)
    speed = ROTATION_KM_S * (1 - np.exp(-radius / 60)) * np.sin(np.deg2rad(60))
    with np.errstate(invalid="ignore"):
        velocity = SYSTEMIC_KM_S + speed * np.nan_to_num(along * PIXEL_ASEC / radius)
    return flux * FLUX_JY_KM_S / flux.sum(), velocity


def write_model(doppler):
    """Each pixel's Gaussian line, in the channels of the data, which are topocentric."""
    flux, velocity = disk()
    freq = first_hz + WIDTH_HZ * np.arange(CHANNELS)
    at = C_KM_S * (1 - freq * doppler / REST_HZ)[:, None, None]
    line = np.exp(-.5 * ((at - velocity) / DISPERSION_KM_S)**2)
    header = fits.Header(dict(
        CTYPE1="RA---SIN", CRVAL1=RA, CRPIX1=SIDE // 2 + 1, CDELT1=-PIXEL_ASEC / 3600,
        CTYPE2="DEC--SIN", CRVAL2=DEC, CRPIX2=SIDE // 2 + 1, CDELT2=PIXEL_ASEC / 3600,
        CTYPE3="FREQ", CRVAL3=first_hz, CRPIX3=1, CDELT3=WIDTH_HZ, CUNIT3="Hz",
        CTYPE4="STOKES", CRVAL4=1, CRPIX4=1, CDELT4=1, BUNIT="Jy/pixel", EQUINOX=2000.0,
        CUNIT1="deg", CUNIT2="deg", RADESYS="FK5"))
    fits.writeto(model, (line * flux / DISPERSION_KM_S / np.sqrt(2 * np.pi))[None].astype("f4"),
                 header, overwrite=True)


def observe():
    """The Doppler factor of the observation is in the header of any image in LSRK."""
    sky = os.path.join(folder, "empty.csv")
    with open(sky, "w") as out:
        out.write(f"name,ra,dec,flux_jy\nS,{RA}deg,{DEC}deg,1e-6\n")
    run("simulate", "--layout", "vla-d", "--sky", sky, "--ra", f"{RA}deg", f"--dec={DEC}deg",
        "--start", "2026-03-01T05:00:00", "--duration", "2h", "--integration", "120s",
        "--freq", f"{first_hz + (CHANNELS - 1) / 2 * WIDTH_HZ!r}Hz", "--chan-width", f"{WIDTH_HZ}Hz", "--channels", str(CHANNELS),
        "-o", empty, "--overwrite", "--quiet")
    probe = os.path.join(folder, "probe")
    run("image", empty, "-o", probe, *size, "--frame", "lsrk", "--nchan", "1", "--no-psf")
    velosys = fits.getheader(probe + "-dirty.fits")["VELOSYS"] / 1e3
    write_model(np.sqrt((C_KM_S + velosys) / (C_KM_S - velosys)))
    run("predict", empty, "--model", model, "-o", galaxy, "--overwrite", "--quiet")


def moments(path):
    """Flux [Jy/beam km/s] and mean velocity [km/s] of each pixel, of what is above a hundredth of
    the peak."""
    try:
        import astropy.units as u
        from spectral_cube import SpectralCube
        cube = SpectralCube.read(path).with_spectral_unit(u.km / u.s)
        cube.allow_huge_operations = True
        bright = cube.with_mask(cube > .01 * cube.max())
        return bright.moment(order=0).value, bright.moment(order=1).value
    except ImportError:
        data, header = fits.getdata(path)[0], fits.getheader(path)
        velocity = (header["CRVAL3"] + header["CDELT3"] * np.arange(len(data))) / 1e3
        data = np.where(data > .01 * np.nanmax(data), data, 0)
        flux = data.sum(0)
        with np.errstate(invalid="ignore"):
            mean = (data * velocity[:, None, None]).sum(0) / flux
        return flux * header["CDELT3"] / 1e3, mean


def draw(flux, velocity):
    try:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return
    edge = SIDE * PIXEL_ASEC / 120
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), constrained_layout=True)
    for axis, values, title, colours in zip(axes, (flux, velocity), (
            "flux [Jy/beam km/s]", "velocity in LSRK [km/s]"), ("inferno", "RdBu_r")):
        shown = axis.imshow(values, origin="lower", extent=[edge, -edge, -edge, edge], cmap=colours)
        figure.colorbar(shown, ax=axis)
        axis.set(title=title, xlabel="East [arcmin]", xlim=(9, -9), ylim=(-9, 9))
    axes[0].set_ylabel("North [arcmin]")
    figure.savefig(os.path.join(folder, "galaxy-moments.png"), dpi=80)


observe()
run("image", galaxy, "-o", os.path.join(folder, "galaxy"), *size, "--cube", "--frame", "lsrk",
    "--restfreq", f"{REST_HZ!r}Hz", "--velocity", "radio", "--start", "830km/s", "--width", "8km/s",
    "--nchan", "43", "--niter", "20000", "--multiscale", "--threshold", "0.5mJy")
flux, velocity = moments(os.path.join(folder, "galaxy-cube-image.fits"))
draw(flux, velocity)
truth, turning = disk()
inner = truth > .2 * truth.max()
with fits.open(os.path.join(folder, "galaxy-cube-model.fits")) as hdus:
    total = hdus[0].data.sum() * hdus[0].header["CDELT3"] / 1e3
print(f"flux {total:.2f} Jy km/s of {FLUX_JY_KM_S}, velocities to "
      f"{np.sqrt(np.nanmean((velocity - turning)[inner]**2)):.2f} km/s")
