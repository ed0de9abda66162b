#!/usr/bin/env python3
"""tessera restore and draw. A model put back onto its residual is the restored image of the run that made
both, as is the list of its components, on one and three ranks. Sources between pixels, rotated Gaussians
and spectra against numpy; images that are drawn predict what their lists predict. Bad inputs end with one
line and the right status, and leave no file.

Limits: single precision of the files, 1e-6 of the peak. Drawn points: 1e-3 of the total flux up to 0.8 of the
longest baselines that the pixels sample (a window of 64 pixels).
"""
import os
import re
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (ASEC, Suite, beam_difference, fits_module, l2_error, mpiexec, offset_radec, peak_error,
                 read_image, simulate, tessera, wcs_difference, write_sky)

RA, DEC, SIZE, SCALE, FREQ = 60.0, -30.0, 240, 4.0, 1.28e9
HEAD = "Format = Name, Type, Ra, Dec, I, Q, SpectralIndex, LogarithmicSI, ReferenceFrequency='1.0e9', MajorAxis, " \
       "MinorAxis, Orientation\n\n"
# Pixel, flux in Stokes I and Q, spectrum, and Gaussian, of a list; the last is beyond the image.
SOURCES = [(100.3, 77.8, 1.0, .1, "", True, None), (130.0, 120.0, .5, 0, "-0.7,0.1", True, None),
           (60.2, 150.9, 2.0, -.3, "", True, (48, 24, 30)), (170.7, 60.1, .7, 0, "-0.3,0.05", False, (7, 3, 110)),
           (300.0, 100.0, 5.0, 0, "", True, None)]


def write_list(path, sources=SOURCES, head=HEAD):
    with open(path, "w") as out:
        out.write(head)
        for k, (x, y, flux, q, terms, is_log, gaussian) in enumerate(sources):
            ra, dec = offset_radec(RA, DEC, -(x - SIZE // 2) * SCALE * ASEC, (y - SIZE // 2) * SCALE * ASEC)
            shape = ",".join(str(v) for v in gaussian) if gaussian else ",,"
            out.write(f"s{k},{'GAUSSIAN' if gaussian else 'POINT'},{ra:.10f}deg,{dec:.10f}deg,{flux},{q},[{terms}],"
                      f"{str(is_log).lower()},,{shape}\n")
    return path


def spectrum(source, freq):
    """Stokes I at frequencies."""
    flux, terms = source[2], [float(t) for t in source[4].split(",") if t]
    ratio = freq / 1e9
    if source[5]:
        return flux * ratio ** sum(c * np.log10(ratio) ** k for k, c in enumerate(terms))
    return flux + sum(c * (ratio - 1) ** (k + 1) for k, c in enumerate(terms))


def band_flux(source, freq, width):
    at = freq + width * (np.arange(2000) + .5 - 1000) / 2000
    return np.mean(spectrum(source, at) * np.ones_like(at))


def widths(major, minor, angle):
    """Squared FWHM of a Gaussian in pixels, as a matrix of (x to the West, y to the North)."""
    c, s = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    turn = np.array([[-s, c], [c, s]])
    return turn.T @ np.diag([(major / SCALE) ** 2, (minor / SCALE) ** 2]) @ turn


def restored(beam, fluxes):
    """The image of SOURCES with a beam, Jy/beam."""
    y, x = np.indices((SIZE, SIZE))
    image, own = np.zeros((SIZE, SIZE)), widths(*beam)
    for source, flux in zip(SOURCES, fluxes):
        both = own + (widths(*source[6]) if source[6] else 0)
        inverse, dx, dy = np.linalg.inv(both), x - source[0], y - source[1]
        exponent = inverse[0, 0] * dx ** 2 + 2 * inverse[0, 1] * dx * dy + inverse[1, 1] * dy ** 2
        image += flux * np.sqrt(np.linalg.det(own) / np.linalg.det(both)) * np.exp(-4 * np.log(2) * exponent)
    return image


def make_images(suite):
    rng = np.random.default_rng(4)
    sources = []
    for k in range(9):
        x, y = rng.uniform(-.35 * SIZE, .35 * SIZE, 2)
        ra, dec = offset_radec(RA, DEC, -x * SCALE * ASEC, y * SCALE * ASEC)
        extent = dict(major="60asec", minor="40asec", pa="30deg") if k < 2 else {}
        sources.append(dict(ra=f"{ra:.9f}deg", dec=f"{dec:.9f}deg", flux_jy=round(10 ** rng.uniform(-1, .2), 4), **extent))
    obs = simulate(suite.path("obs.uvfits"), write_sky(suite.path("sky.csv"), sources), layout="meerkat", ra=f"{RA}deg",
                   dec=f"{DEC}deg", start="2026-01-01T18:00:00", duration="2h", integration="600s", freq="1.28GHz",
                   width="20MHz", extra=("--antennas", "30", "--noise", "0.05", "--seed", "1"))
    ran, prefix = suite.image("made", obs, "--size", SIZE, "--scale", f"{SCALE}asec", "--niter", 400, "--multiscale",
                              "--auto-threshold", 3, "--save-source-list")
    return obs, prefix if ran else None


def make_band(suite):
    """Four channels with polarisation, of which the last is flagged."""
    sky = write_sky(suite.path("band.csv"), [dict(ra=f"{RA}deg", dec=f"{DEC}deg", flux_jy=1, q=.2, spectral_index=-2,
                                                  ref_freq="1.28GHz")])
    obs = simulate(suite.path("band.uvfits"), sky, layout="meerkat", ra=f"{RA}deg", dec=f"{DEC}deg",
                   start="2026-01-01T18:00:00", duration="1h", integration="600s", freq="1.28GHz", width="60MHz",
                   channels=4, pol="XX,XY,YX,YY", extra=("--antennas", "30", "--noise", "0.05", "--seed", "1"))
    with fits_module().open(obs, mode="update") as hdus:
        hdus[0].data["DATA"][..., 3, :, 2] = -1
    return obs


def restore(suite, what, *args, ranks=1, status=0):
    out = suite.path(what + ".fits")
    made = tessera("restore", *args, "-o", out, ranks=ranks)
    return out if suite.ran(f"restore {what}", made, status) else None


def check_run(suite, made):
    """The model and the list of a run, back onto its residual."""
    reference, header = read_image(made + "-image.fits")
    for what, model, limit in (("model", made + "-model.fits", 1e-7), ("list", made + "-sources.txt", 1e-6)):
        paths = {}
        for ranks in (1, 3) if mpiexec() else (1,):
            paths[ranks] = restore(suite, f"{what}-{ranks}", made + "-residual.fits", model, "--reproducible", ranks=ranks)
        if None in paths.values():
            continue
        image, own = read_image(paths[1])
        suite.below(f"{what}: difference from the run's image / peak", peak_error(image, reference), limit)
        suite.below(f"{what}: WCS [pixel]", wcs_difference(own, header, image.shape), 1e-6)
        suite.below(f"{what}: beam", beam_difference(own, header), 1e-9)
        for key in ("BUNIT", "CRVAL3", "CDELT3", "CRVAL4", "DATE-OBS", "DATE-END", "TELESCOP", "OBJECT", "BITPIX", "NVIS",
                    "OBSGEO-X", "WEIGHT"):
            suite.equal(f"{what}: {key}", own[key], header[key])
        if 3 in paths:
            suite.true(f"{what}: pixels of three ranks are those of one",
                       np.array_equal(read_image(paths[3])[0], image))


def cube_tables(path):
    """What the tables of a cube's planes tell, but for sums of pixels."""
    with fits_module().open(path) as hdus:
        return {(hdu.name, name): np.array(hdu.data[name]) for hdu in hdus[1:] for name in hdu.data.names
                if name not in ("DATASUM", "DATAMIN", "DATAMAX", "NITER", "NMAJOR", "CLTHRESH", "CLFLUX")}


def check_cube(suite, obs):
    """A model cube back onto its residual cube is the restored cube of the run that made both, also where channels
    fall in frequency or one has no data; and a list."""
    ran, made = suite.image("cube", obs, "--size", SIZE, "--scale", f"{SCALE}asec", "--niter", 200, "--auto-threshold", 3,
                            "--channels-out", 4, "--stokes", "IQ", "--cube")
    if not ran:
        return
    residual, model, whole = (f"{made}-cube-{kind}.fits" for kind in ("residual", "model", "image"))
    reference, header = read_image(whole)
    wanted = cube_tables(whole)
    paths = {}
    for ranks in (1, 3) if mpiexec() else (1,):
        paths[ranks] = restore(suite, f"cube-{ranks}", residual, model, "--reproducible", ranks=ranks)
    if None in paths.values():
        return
    image, own = read_image(paths[1])
    suite.equal("cube: planes", image.shape, reference.shape)
    suite.true("cube: the channel without data is empty", np.isnan(reference[:, 3]).all())
    suite.below("cube: difference from the run's / peak", peak_error(image, reference), 1e-7)
    for key in ("BUNIT", "CTYPE3", "CRVAL3", "CDELT3", "CRVAL4", "CDELT4", "DATE-OBS", "TELESCOP", "CASAMBM", "BITPIX"):
        suite.equal(f"cube: {key}", own[key], header[key])
    found = cube_tables(paths[1])
    suite.equal("cube: columns of tables", sorted(found), sorted(wanted))
    suite.below("cube: tables, relative difference", max(
        np.abs(found[k] - wanted[k]).max() / max(np.abs(wanted[k]).max(), 1) for k in wanted), 1e-9)
    if 3 in paths:
        suite.true("cube: pixels of three ranks are those of one",
                   np.array_equal(read_image(paths[3])[0], image, equal_nan=True))
    check_cube_order(suite, residual, model, image)
    check_cube_list(suite, residual)


def check_cube_order(suite, residual, model, image):
    """As other programs write cubes: channels that fall in frequency, with a table of beams alone."""
    for what, path in (("residual", residual), ("model", model)):
        with fits_module().open(path) as hdus:
            header = hdus[0].header
            header["CRVAL3"] += (hdus[0].data.shape[1] - 1) * header["CDELT3"]
            header["CDELT3"] *= -1
            hdus[0].data = hdus[0].data[:, ::-1]
            beams = [hdu for hdu in hdus[1:] if hdu.name == "BEAMS"]
            for hdu in beams:
                hdu.data["CHAN"] = 3 - hdu.data["CHAN"]
            fits_module().HDUList([hdus[0], *beams]).writeto(suite.path(f"falling-{what}.fits"), checksum=False)
    out = restore(suite, "falling", suite.path("falling-residual.fits"), suite.path("falling-model.fits"))
    if out:
        # single-precision beams
        suite.below("falling: difference / peak", peak_error(read_image(out)[0], image), 1e-6)
        suite.true("falling: frequencies rise", read_image(out)[1]["CDELT3"] > 0)
    restore(suite, "frequencies", residual, suite.path("falling-model.fits"), status=3)


def check_cube_list(suite, residual):
    beam = (21.0, 13.0, 65.0)
    out = restore(suite, "cube-list", residual, write_list(suite.path("sources.txt")), "--beam-shape", "21asec,13asec,65deg")
    if not out:
        return
    image, own = read_image(out)
    left = read_image(residual)[0]
    for k in range(3):
        freq, width = own["CRVAL3"] + k * own["CDELT3"], own["CDELT3"]
        fluxes = [band_flux(s, freq, width) for s in SOURCES]
        suite.below(f"cube, list, channel {k}: difference / peak",
                    peak_error(image[0, k] - left[0, k], restored(beam, fluxes)), 1e-6)
        q = [s[3] / s[2] * f for s, f in zip(SOURCES, fluxes)]
        suite.below(f"cube, list, Stokes Q, channel {k}: difference / peak",
                    peak_error(image[1, k] - left[1, k], restored(beam, q)), 1e-5)


def check_log(suite, log, made):
    """What a log says of the residual and the restored image of a name, against numpy."""
    with open(log, encoding="utf-8") as file:
        text = file.read()
    units = {"Jy": 1, "mJy": 1e-3, "uJy": 1e-6, "nJy": 1e-9}
    wanted = {}
    for label, kind in (("residual", "residual"), ("restored", "image")):
        image, header = read_image(f"{made}-{kind}.fits")
        peak = image.flat[np.abs(image).argmax()]
        deviation = 1.4826022 * np.median(np.abs(image - np.median(image)))
        wanted[label, "1.4826 MAD"] = deviation
        wanted[label, "peak"], wanted[label, "rms"] = peak, np.sqrt(np.mean(image ** 2))
        wanted[label, "dynamic range"] = peak / deviation
        beam = np.pi / 4 / np.log(2) * header["BMAJ"] * header["BMIN"] / header["CDELT2"] ** 2
        wanted[label, "flux"] = image.sum() / beam
    told = {"residual": ("peak", "rms", "1.4826 MAD"), "restored": ("1.4826 MAD", "dynamic range", "flux")}
    for label, names in told.items():
        line = re.search(rf"{label}: +(.*)", text)
        for name in names if suite.true(f"log: a line of '{label}'", line) else ():
            found = re.search(rf"{name} ([-+.e0-9]+) ?(\w*)", line[1])
            value = float(found[1]) * units.get(found[2], 1) if found else np.nan
            suite.below(f"log: {label}, {name}, {value:.4g}", abs(value / wanted[label, name] - 1), 5e-3)


def check_sources(suite, made):
    """A list with a beam of its own, against numpy."""
    residual, header = read_image(made + "-residual.fits")
    beam = (21.0, 13.0, 65.0)
    out = restore(suite, "sources", made + "-residual.fits", write_list(suite.path("sources.txt")), "--beam-shape",
                  "21asec,13asec,65deg")
    if not out:
        return
    fluxes = [band_flux(s, header["CRVAL3"], header["CDELT3"]) for s in SOURCES]
    image, own = read_image(out)
    suite.below("sources: image less residual, difference / peak",
                peak_error(image - residual, restored(beam, fluxes)), 1e-6)
    suite.below("sources: BMAJ", abs(own["BMAJ"] * 3600 / beam[0] - 1), 1e-9)
    drawn = suite.path("stokes-q.fits")
    if suite.ran("draw Stokes Q with a beam", tessera("draw", suite.path("sources.txt"), "-o", drawn, "--like",
                                                      made + "-image.fits", "--stokes", "Q", "--beam-shape",
                                                      "21asec,13asec,65deg")):
        # Q keeps its ratio to I
        q = [s[3] / s[2] * f for s, f in zip(SOURCES, fluxes)]
        image, own = read_image(drawn)
        suite.below("Stokes Q: difference / peak", peak_error(image, restored(beam, q)), 1e-6)
        suite.equal("Stokes Q: unit and Stokes", (own["BUNIT"], own["CRVAL4"]), ("Jy/beam", 2))


def check_like_cube(suite, made):
    """Frequency and width of a cube's first channel in GHz and from a table, and those that are told."""
    text = write_list(suite.path("like.txt"), SOURCES[:4])
    with fits_module().open(made + "-image.fits") as hdus:
        planes, header = np.repeat(hdus[0].data, 3, axis=1), hdus[0].header
    table = fits_module().BinTableHDU.from_columns(
        [fits_module().Column("FREQ", "3D", unit="GHz", array=[[1.3, 1.31, 1.5]])], name="FREQUENCIES")
    axes = {"GHz": dict(CTYPE3="FREQ", CRVAL3=1.5, CDELT3=-.02, CRPIX3=1.0),
            "table": dict(CTYPE3="FREQ-TAB", CRVAL3=1.0, CDELT3=1.0, CRPIX3=1.0, PS3_0="FREQUENCIES", PS3_1="FREQ")}
    wanted = {"GHz": (1.5e9, 2e7), "table": (1.3e9, 1e7)}
    for name, axis in axes.items():
        header.update(axis, CUNIT3="GHz")
        like = suite.path(f"like-{name}.fits")
        fits_module().HDUList([fits_module().PrimaryHDU(planes, header), table]).writeto(like)
        for width in (None, 3e8):
            drawn = suite.path(f"like-{name}-{width}-drawn.fits")
            more = () if width is None else ("--bandwidth", width)
            result = tessera("draw", text, "-o", drawn, "--like", like, *more)
            if not suite.ran(f"draw like a cube, {name}, {width}", result):
                continue
            freq, band = wanted[name][0], width or wanted[name][1]
            image, own = read_image(drawn)
            suite.below(f"like a cube, {name}, {width}: frequency", abs(own["CRVAL3"] / freq - 1), 1e-12)
            suite.below(f"like a cube, {name}, {width}: width", abs(own["CDELT3"] / band - 1), 1e-12)
            total = sum(band_flux(s, freq, band) for s in SOURCES[:4])
            suite.below(f"like a cube, {name}, {width}: flux of the band", abs(image.sum() / total - 1), 1e-6)
            suite.true(f"like a cube, {name}: the log says which channel", "3 channels" in result.err)


def visibilities(suite, obs, model):
    out = suite.path("predicted.uvfits")
    if not suite.ran(f"predict {os.path.basename(model)}",
                     tessera("predict", obs, "--model", model, "-o", out, "--overwrite", "--accuracy", "1e-6")):
        return None, None
    with fits_module().open(out) as hdus:
        data = hdus[0].data
        vis = np.array(data["DATA"], "f8").squeeze()
        names = [next(n for n in data.parnames if n.startswith(axis)) for axis in ("UU", "VV")]
        uv = np.stack([np.array(data.par(n), "f8") for n in names])
    return vis[..., 0] + 1j * vis[..., 1], np.abs(uv).max(0) * FREQ


def check_drawn(suite, obs, made):
    """An image that is drawn predicts what its list predicts."""
    inside = write_list(suite.path("inside.txt"), SOURCES[:4])
    common = ("--size", SIZE, "--scale", f"{SCALE}asec", "--center", f"{RA}deg,{DEC}deg", "--freq", "1.28GHz")
    paths = {}
    for ranks in (1, 3) if mpiexec() else (1,):
        paths[ranks] = suite.path(f"drawn-{ranks}.fits")
        suite.ran(f"draw on {ranks}", tessera("draw", inside, "-o", paths[ranks], *common, ranks=ranks))
    image, header = read_image(paths[1])
    of_obs = suite.path("of-obs.fits")
    for ranks in paths:
        made_of = tessera("draw", inside, "-o", of_obs, *common[:4], "--obs", obs, "--overwrite", ranks=ranks)
        if suite.ran(f"draw where an observation points, on {ranks}", made_of):
            own = read_image(of_obs)[1]
            suite.below("drawn where an observation points: WCS [pixel]", wcs_difference(own, header, image.shape), 1e-6)
            wanted = read_image(made + "-dirty.fits")[1]
            suite.equal("drawn for the observation's band", (own["CRVAL3"], own["CDELT3"]),
                        (wanted["CRVAL3"], wanted["CDELT3"]))
    total = sum(spectrum(s, FREQ) for s in SOURCES[:4])
    suite.below("drawn: sum of pixels / flux", abs(image.sum() / total - 1), 1e-6)
    suite.equal("drawn: unit", header["BUNIT"], "Jy/pixel")
    suite.below("drawn: WCS [pixel]", wcs_difference(header, read_image(made + "-image.fits")[1], image.shape), 1e-6)
    if 3 in paths:
        suite.true("drawn: pixels of three ranks are those of one", np.array_equal(read_image(paths[3])[0], image))
    flat = write_list(suite.path("flat.txt"), [s[:3] + (0, "") + s[5:] for s in SOURCES[:4]])
    suite.ran("draw Stokes I without spectra", tessera("draw", flat, "-o", suite.path("flat.fits"), *common))
    found, length = visibilities(suite, obs, suite.path("flat.fits"))
    wanted, _ = visibilities(suite, obs, flat)
    if found is None or wanted is None:
        return
    near = length < .8 / (2 * SCALE * ASEC)
    suite.true("some baselines are longer than half of that", (length[near] > .4 / (2 * SCALE * ASEC)).any())
    suite.below("drawn: predicted visibilities, difference / flux",
                np.abs(found - wanted)[near].max() / sum(s[2] for s in SOURCES[:4]), 1e-3)


def check_terms(suite):
    """Terms of spectra add up to the flux nearby."""
    text = write_list(suite.path("terms.txt"), SOURCES[:4])
    made = tessera("draw", text, "-o", suite.path("taylor.fits"), "--size", SIZE, "--scale", f"{SCALE}asec", "--center",
                   f"{RA}deg,{DEC}deg", "--freq", "1.28GHz", "--terms", 5)
    if not suite.ran("draw terms", made):
        return
    x = .05
    sums = [read_image(suite.path(f"taylor-term-{k}.fits"))[0].sum() for k in range(5)]
    found = sum(s * x ** k for k, s in enumerate(sums))
    wanted = sum(spectrum(s, FREQ * (1 + x)) for s in SOURCES[:4])
    suite.below("terms: flux 5 % above their frequency", abs(found / wanted - 1), 1e-6)
    suite.true("terms: the second is not zero", abs(sums[1]) > .01 * abs(sums[0]))


def check_bad(suite, made):
    """One line, the status, and no file."""
    residual, model, out = made + "-residual.fits", made + "-model.fits", suite.path("bad.fits")
    text = write_list(suite.path("good.txt"))
    broken = write_list(suite.path("broken.txt"), [(1, 1, "bright", 0, "", True, None)])
    small = suite.path("small.fits")
    tessera("draw", text, "-o", small, "--size", 64, "--scale", "4asec", "--center", "60deg,-30deg", "--freq", "1e9")
    moved = suite.path("moved.fits")
    tessera("draw", text, "-o", moved, "--size", SIZE, "--scale", f"{SCALE}asec", "--center", "60.01deg,-30deg", "--freq",
            "1e9")
    with fits_module().open(residual) as hdus:
        cube = np.repeat(hdus[0].data, 2, axis=1)
        fits_module().writeto(suite.path("cube.fits"), cube, hdus[0].header)
        hdus[0].header["CDELT1"] *= 1.01
        hdus[0].writeto(suite.path("oblong.fits"))
    with fits_module().open(residual) as hdus:
        hdus[0].header["CUNIT3"] = "m"
        hdus[0].writeto(suite.path("metres.fits"))
    where = ("--size", 64, "--scale", "4asec", "--center", "60deg,-30deg")
    cases = [("other shape", ("restore", residual, small), 3, "64 x 64 pixels, the residual"),
             ("other place", ("restore", residual, moved), 3, "pixels from those of the residual"),
             ("no beam", ("restore", moved, text), 3, "has no beam"),
             ("planes", ("restore", suite.path("cube.fits"), model), 3, "the residual 2 of 1"),
             ("pixels that are not square", ("restore", suite.path("oblong.fits"), text), 3, "pixels are not square"),
             ("a list that does not parse", ("restore", residual, broken), 3, "line 3, column 'I'"),
             ("no list", ("draw", suite.path("sky.csv"), *where), 3, "no header of a list"),
             ("no residual", ("restore", suite.path("none.fits"), model), 3, "none.fits"),
             ("no model", ("restore", residual), 2, "are needed"),
             ("a beam that is none", ("restore", residual, model, "--beam-shape", "6asec"), 2, "is not a beam"),
             ("no frequency", ("draw", text, *where), 3, "the image no frequency"),
             ("like pixels that are not square", ("draw", text, "--like", suite.path("oblong.fits")), 3,
              "pixels are not square"),
             ("an axis in metres", ("draw", text, "--like", suite.path("metres.fits")), 3, "must be Hz"),
             ("no pixels", ("draw", text, "--size", 64), 2, "--center or --obs are needed"),
             ("two centres", ("draw", text, *where, "--obs", "obs.uvfits"), 2, "exclude each other"),
             ("a band around nothing", ("draw", text, *where, "--bandwidth", "1MHz"), 2, "a band around --freq"),
             ("no observation", ("draw", text, *where[:4], "--obs", suite.path("none.ms")), 3, "none.ms"),
             ("both pixels", ("draw", text, "--like", model, "--size", 64), 2, "--like gives")]
    for ranks in (1, 3) if mpiexec() else (1,):
        for what, args, status, words in cases if ranks == 1 else cases[:6]:
            result = tessera(*args, "-o", out, ranks=ranks)
            suite.equal(f"{what}, {ranks} ranks: status", result.status, status)
            suite.true(f"{what}, {ranks} ranks: one line says so: {result.errors()}",
                       len(result.errors()) == 1 and words in result.errors()[0])
            suite.true(f"{what}, {ranks} ranks: no file", not os.path.exists(out))
    swapped = tessera("restore", model, residual, "-o", suite.path("swapped.fits"), "--beam-size", "20asec")
    suite.ran("residual and model in the wrong order", swapped)
    suite.true("both units are warned of", "taken as Jy/beam" in swapped.err and "taken as Jy/pixel" in swapped.err)
    before = read_image(model)[0]
    suite.equal("an output that is there", tessera("restore", residual, model, "-o", small).status, 3)
    suite.equal("an output that is the model", tessera("restore", residual, model, "-o", model, "--overwrite").status, 3)
    suite.true("the model is as it was", l2_error(read_image(model)[0], before) == 0)


def main():
    suite = Suite("restore")
    obs, made = make_images(suite)
    if made:
        check_run(suite, made)
        check_cube(suite, make_band(suite))
        check_log(suite, made + ".log", made)
        check_sources(suite, made)
        check_drawn(suite, obs, made)
        check_terms(suite)
        check_like_cube(suite, made)
        check_bad(suite, made)
    suite.finish()


if __name__ == "__main__":
    main()
