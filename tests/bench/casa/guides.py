#!/usr/bin/env python3
"""Scripts as CASA's guides have them, run by CASA's tclean and by that of tessera.casa on the same
sets. The scripts are the other files of this folder; their import is all that differs. Dirty images
agree to 1e-3 of the peak, cleaned ones to three times the noise and a percent. Mosaics, where CASA's
gridding is less exact, are compared with direct sums and true fluxes, too.

    python guides.py --full [SCRIPT...] [--table]

--table prints the figures as the table of docs/results/casa.md. Skipped (77) without --full, and
without CASA (see tests/oracle/peers/peer_casa.py).
"""
import glob
import json
import os
import resource
import shutil
import sys
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "oracle"))

from e2e import (ASEC, BIN, FULL, ROOT, Suite, data_folder, fits_module, offset_radec, run, simulate, skip,
                 write_sky)
from mosaic_sums import Dishes, Mosaic, Polynomials, read_pointings
from peer_casa import Casa, casa_python

fits = fits_module()
DIRTY, CLEAN = 1e-3, 1
ACCURACY = 1e-4  # of tessera's gridding
SIDE = 200  # of the images of mosaics
# The power of the VLA's beam at the frequencies (MHz) around 15 GHz that Perley measured (2016, EVLA Memo 195), in
# (arcminutes GHz)^2. Both imagers take the nearest one at each channel. Some pixels of the inner quarter have beams
# just below .02, where tessera counts no pointing; with a mean of the two they would count.
BEAM_15GHZ = {14948: (-1.393e-3, 7.16e-7, -1.37e-10), 15052: (-1.402e-3, 7.38e-7, -1.48e-10)}
POINTS = ((0, 0, 1.0), (60, 45, .5), (-70, 50, .2), (50, -80, .1))  # pixels, Jy
PIXELS = {"pointings": 2.0}  # asec; others .1
# A script and its set.
SCRIPTS = {"continuum": "mojave", "multiscale": "m87", "line_cube": "line", "selfcal": "gains",
           "wide_band": "band", "polarisation": "polar", "region_mask": "field",
           "auto_mask": "field", "taper_robust": "field", "mosaic": "pointings"}
IMAGING = ("tclean", "exportfits")  # the tasks that both have
UVFITS = {"mojave": "mojave-J1033+6051-15GHz.uvfits", "m87": "mojave-M87-8GHz.uvfits"}
# How the set is simulated, beyond what all have.
SIMULATED = {"field": {}, "gains": {}, "polar": dict(pol="RR,RL,LR,LL"),
             "line": dict(channels=8, width="1MHz"),
             "band": dict(channels=8, width="128MHz", freq="1.5GHz"),
             # so compact that w, which CASA ignores in mosaics, has no effect
             "pointings": dict(layout="vla-d", freq="15GHz", integration="20s", start="2026-01-01T04:00:00", extra=(
                 "--noise", "0.05", "--max-radius", "300m", "--pointings", "hex:7,80asec",
                 "--primary-beam", "auto"))}
# Both have the same primary beam for this telescope.
RENAME = """
tb.open(VIS + "/OBSERVATION", nomodify=False)
tb.putcol("TELESCOPE_NAME", np.array(["EVLA"]))
tb.close()
"""
# Each antenna gets phases that stay as they are.
CORRUPT = """
tb.open(VIS, nomodify=False)
phase = np.random.default_rng(5).normal(size=30) * 0.4
p, q = (np.exp(1j * phase)[tb.getcol(c)] for c in ("ANTENNA1", "ANTENNA2"))
tb.putcol("DATA", tb.getcol("DATA") * p * q.conj())
tb.close()
"""


def sky_of(suite, name):
    pixel = PIXELS.get(name, .1) / 3600
    rows = [dict(ra=f"{60 - x * pixel / np.cos(np.radians(20)):.8f}deg",
                 dec=f"{20 + y * pixel:.8f}deg", flux_jy=flux,
                 **(dict(q=.1 * flux, u=-.05 * flux) if name == "polar" else {}),
                 **(dict(spectral_index=-.7, ref_freq="1.5GHz") if name == "band" else {}))
            for x, y, flux in POINTS]
    return write_sky(suite.path(name + ".csv"), rows)


def set_of(suite, casa, name):
    """The MeasurementSet that both read; made once."""
    path = suite.path(name + ".ms")
    if os.path.exists(path):
        return path
    if name in SIMULATED:
        how = dict(pol="RR,LL", layout="vla-a", dec="20deg", duration="1h", integration="120s",
                   freq="5GHz", width="16MHz", channels=2, extra=("--noise", "0.05"))
        simulate(path, sky_of(suite, name), **{**how, **SIMULATED[name]})
        if name == "gains":
            casa.run("phases of antennas", f"VIS = {path!r}\n{CORRUPT}")
        if name == "pointings":
            casa.run("name of the telescope", f"VIS = {path!r}\n{RENAME}")
    else:
        source = data_folder("data", "uvfits", UVFITS[name])
        casa.run(f"importuvfits of {name}", f"importuvfits(fitsfile={source!r}, vis={path!r})")
    return path


def perform(casa, which, script, source):
    """Run a script on a copy of the set; its result, its folder, and its processor and elapsed
    seconds, and the processor seconds that its calls of tclean and exportfits took."""
    folder = casa.suite.path(f"{script}-{which}")
    os.makedirs(folder)
    vis = os.path.join(folder, "obs.ms")
    shutil.copytree(source, vis)
    with open(os.path.join(HERE, script + ".py")) as file:
        text = file.read()
    if which == "tessera":
        text = text.replace("from casatasks import", "from tessera.casa import")
    with open(os.path.join(folder, "script.py"), "w") as file:
        file.write(text)
    env = {**casa.env, "OMP_NUM_THREADS": "2", "PYTHONPATH": os.path.join(ROOT, "app", "python"),
           "TESSERA_LIBRARY": os.path.join(os.path.dirname(os.path.dirname(BIN)), "lib")}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    result = run([casa.python, os.path.join(HERE, "timed.py"), "script.py", vis, "times.json"], 1500,
                 cwd=folder, env=env)
    elapsed, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    imaging = 0.0
    if result.status == 0:
        with open(os.path.join(folder, "times.json"), encoding="utf-8") as file:
            imaging = sum(s[0] for name, s in json.load(file).items() if name in IMAGING)
    return result, folder, (spent, elapsed, imaging)


def data(folder, name):
    with fits.open(os.path.join(folder, name)) as file:
        return np.nan_to_num(file[0].data.astype(float).squeeze())


def inner(image):
    """The inner quarter: towards the edges CASA's gridding is less exact."""
    return image[(..., *(slice(n // 4, 3 * n // 4) for n in image.shape[-2:]))]


def noise_of(image):
    return 1.4826 * np.median(np.abs(image - np.median(image)))


def dirty_apart(folders):
    """The largest difference of dirty images, of the peak."""
    worst = 0.0
    for path in sorted(glob.glob(os.path.join(folders["casa"], "*dirty.image.fits"))):
        a, b = (data(folders[w], os.path.basename(path)) for w in ("casa", "tessera"))
        worst = max(worst, np.abs(inner(a) - inner(b)).max() / np.abs(a).max())
    return worst


def clean_apart(folders):
    """The largest difference of cleaned images, of three times the noise and a percent."""
    if not os.path.exists(os.path.join(folders["casa"], "clean.image.fits")):
        return None
    noise = noise_of(inner(data(folders["casa"], "clean.residual.fits")))
    a, b = (inner(data(folders[w], "clean.image.fits")) for w in ("casa", "tessera"))
    return (np.abs(a - b) / (3 * noise + .01 * np.abs(a))).max()


def square_places(side, step):
    """Every `step`-th pixel of a square around the middle, and this itself."""
    at = step * (np.arange(side // step) - side // step // 2)
    return np.array([(x, y) for y in at for x in at])


def true_mosaic(suite, path):
    """What both estimate: the dirty image of even noise by direct sums, at every fourth pixel of the inner
    quarter, and what the sources leave in the cleaned one; the places of both."""
    obs = read_pointings(suite, path)
    dishes = Dishes([Polynomials(BEAM_15GHZ)], np.zeros(len(obs.diameter), int))
    centre, scale = np.rad2deg(obs.centre[0]), PIXELS["pointings"] * ASEC

    def mosaic_at(places):
        return Mosaic(obs, dishes, obs.weight, *offset_radec(*centre, -places[:, 0] * scale, places[:, 1] * scale))

    largest = mosaic_at(square_places(SIDE, 1)).square.max()  # of all pixels: there the beam of the mosaic is 1
    places, sources = square_places(SIDE // 2, 4), np.array([(x, y) for x, y, _ in POINTS])
    sky, at_sources = mosaic_at(places), mosaic_at(sources)
    beam = np.sqrt(at_sources.square / largest)
    seen, fluxes = beam > .2, beam * [flux for _, _, flux in POINTS]
    return sky.flat_sky(obs.vis) * np.sqrt(sky.square / largest), places, fluxes[seen], sources[seen]


def at_places(image, places):
    return image[SIDE // 2 + places[:, 1], SIDE // 2 + places[:, 0]]


def check_mosaic(suite, source, folders):
    """Tells how far each is from the truth; tessera's are within its accuracy, and three times the noise and a
    percent. Returns CASA's error of the dirty image."""
    dirty, places, fluxes, sources = true_mosaic(suite, source)
    noise = noise_of(inner(data(folders["casa"], "clean.residual.fits")))
    errors = {}
    for which, folder in folders.items():
        made, clean = (data(folder, f"{name}.image.fits") for name in ("dirty", "clean"))
        errors[which] = (np.abs(at_places(made, places) - dirty).max() / np.abs(dirty).max(),
                         (np.abs(at_places(clean, sources) - fluxes) / (3 * noise + .01 * fluxes)).max())
        print(f"  mosaic: {which}: dirty image from the direct sum {errors[which][0]:.1e} of the peak, fluxes from "
              f"the true ones {errors[which][1]:.2f} of 3 sigma + 1 %")
    suite.below("mosaic: tessera from the direct sum", errors["tessera"][0], ACCURACY)
    suite.below("mosaic: tessera from the true fluxes", errors["tessera"][1], CLEAN)
    return errors["casa"][0]


def compare(suite, casa, script):
    """The row of the table."""
    source, folders, seconds = set_of(suite, casa, SCRIPTS[script]), {}, {}
    for which in ("tessera", "casa"):
        result, folders[which], seconds[which] = perform(casa, which, script, source)
        if not suite.ran(f"{script}: {which}", result):
            return None
    dirty, clean = dirty_apart(folders), clean_apart(folders)
    error = check_mosaic(suite, source, folders) if script == "mosaic" else 0.0
    suite.below(f"{script}: dirty images, of the peak", dirty, DIRTY + error)
    if clean is not None:
        suite.below(f"{script}: cleaned images, of 3 sigma + 1 %", clean, CLEAN)
    spent, elapsed, imaging = ([seconds[w][k] for w in ("casa", "tessera")] for k in range(3))
    told = "" if clean is None else f"{clean:.2f}"
    return (f"| {script} | {dirty:.1e} | {told} | {spent[0]:.1f} / {spent[1]:.1f} s | "
            f"{elapsed[0]:.1f} / {elapsed[1]:.1f} s | {spent[0] / spent[1]:.1f} | "
            f"{imaging[0]:.1f} / {imaging[1]:.2f} s | {imaging[0] / imaging[1]:.1f} |")


def main():
    if not FULL:
        skip("takes minutes: --full")
    suite = Suite("casa_guides")
    casa = Casa(suite, casa_python())
    chosen = [word for word in sys.argv[1:] if word in SCRIPTS] or list(SCRIPTS)
    rows = [compare(suite, casa, script) for script in chosen]
    if "--table" in sys.argv:
        print("\n".join(row for row in rows if row))
    suite.finish()


if __name__ == "__main__":
    main()
