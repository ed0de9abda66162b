#!/usr/bin/env python3
"""Correction for the primary beam: what has been attenuated channel by channel comes back with
its flux, whatever the weights and however channels are put together; beams of FITS files turn
as numpy and ERFA turn them; the pointing centre need not be the image's; and bad input.
"""
import os
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import uvfits
from mosaic_sums import j1
from e2e import (ASEC, C_M_S, Suite, casacore_python, fits_module, forced, have_ms, mpiexec,
                 read_image, run, simulate, tessera, write_sky)

N, SCALE = 128, 30 * ASEC
RANKS = (1, 2, 3, 4) if mpiexec() else (1,)
IMAGE = ["--size", str(N), "--scale", "30asec", "--accuracy", "1e-7", "--threads", "1"]
DISH_M, BLOCKED_M = 13.5, 2.0
AIRY = ["--primary-beam", f"airy:{DISH_M},{BLOCKED_M}", "--pbcor"]
FLUX, X, Y = 2.5, 94, 41  # of the source, and its pixel


def airy(sine, freq_hz):
    """Power of a disk whose middle is blocked."""
    def disk(u):
        return np.where(u < 1e-6, 1.0, 2 * j1(u) / np.where(u < 1e-6, 1, u))
    u = np.pi * DISH_M * np.abs(sine) * freq_hz / C_M_S
    share = (BLOCKED_M / DISH_M) ** 2
    return ((disk(u) - share * disk(u * BLOCKED_M / DISH_M)) / (1 - share)) ** 2


def write_source(path, channels=8, seed=3, rows=900, even=False):
    """One source, whose flux falls with the beam of each channel, and weights that differ from
    channel to channel and between XX and YY, or with `even` are 1."""
    rng = np.random.default_rng(seed)
    freq = 1.0e9 + 1e8 * np.arange(channels)
    uvw = uvfits.stored_uvw(uvfits.random_tracks(rows, 450.0, 0.1, seed=seed))
    l, m = -(X - N // 2) * SCALE, (Y - N // 2) * SCALE
    turns = (uvw @ [l, m, uvfits.n_minus_1(l, m)])[:, None] * freq / C_M_S
    vis = FLUX * airy(np.hypot(l, m), freq) * np.exp(2j * np.pi * turns)
    weight = rng.uniform(0.5, 1.5, (rows, channels, 2)) * np.linspace(1, 3, channels)[:, None]
    weight[:, 2, 1] *= 0.2
    weight[rng.random((rows, channels)) < 0.1] = -1
    if even:
        weight = np.ones_like(weight)
    uvfits.write(path, uvw, freq, np.repeat(vis[..., None], 2, -1).astype("c8"),
                 weight.astype("f4"))
    return path


def at_source(path):
    image, _ = read_image(path)
    return image[Y, X]


def check_cut(suite, label, prefix, kind, limit=0.2):
    """A corrected image is the image over the beam, and blank where that is below the limit, but for
    a model, which is 0 there; so are the beam and its square."""
    image, _ = read_image(f"{prefix}-{kind}.fits")
    beam, header = read_image(f"{prefix}-pb.fits")
    weight, _ = read_image(f"{prefix}-weight-pb.fits")
    corrected, _ = read_image(f"{prefix}-{kind}-pb.fits")
    inside = np.isfinite(beam)
    suite.true(f"{label}: the beam is cut at {limit}, and 1 in the middle",
               beam[inside].min() >= limit and beam[inside].min() < limit + 0.05
               and 0.99 < beam[N // 2, N // 2] <= 1 + 1e-6 and 0 < inside.sum() < inside.size)
    suite.true(f"{label}: blank where the beam is",
               (corrected[~inside] == 0 if kind == "model" else np.isnan(corrected[~inside])).all() and
               np.isfinite(corrected[inside]).all() and (np.isfinite(weight) == inside).all())
    suite.below(f"{label}: image over beam",
                np.abs(corrected * beam - image)[inside].max() / np.abs(image).max(), 3e-7)
    suite.below(f"{label}: the weight is the square", np.abs(weight - beam ** 2)[inside].max(), 1e-6)
    suite.equal(f"{label}: the beam has no unit", header.get("BUNIT", ""), "")


def check_flux(suite, obs):
    """The source's flux, in the dirty image, where nothing but its beam changes it."""
    for weighting in ("natural", "uniform", "briggs:0.5"):
        for label, more, names in (
                ("one channel", [], [""]),
                ("two channels", ["--channels-out", "2"], ["-0000", "-0001", "-MFS"]),
                ("two weights", ["--stokes", "XX,YY"], ["-XX", "-YY"])):
            good, prefix = suite.image("flux", obs, *IMAGE, *AIRY, "--weight", weighting, *more)
            for name in names if good else []:
                flux = at_source(f"{prefix}{name}-dirty-pb.fits")
                suite.below(f"{weighting}, {label}{name}: flux", abs(flux / FLUX - 1), 3e-6)
    good, prefix = suite.image("low", obs, *IMAGE, *AIRY, "--pb-limit", "0.35")
    if good:
        check_cut(suite, "--pb-limit", prefix, "dirty", 0.35)
    good, prefix = suite.image("psf", obs, *IMAGE, *AIRY, "--no-dirty", "--stokes", "XX,YY",
                               "--weight", "briggs:0.5")
    if good:
        suite.true("with PSFs alone: the beams", all(
            np.array_equal(read_image(f"{prefix}-{pol}-pb.fits")[0],
                           read_image(suite.path(f"flux-{pol}-pb.fits"))[0], equal_nan=True)
            for pol in ("XX", "YY")))
        suite.true("with PSFs alone: nothing to correct",
                   not os.path.exists(prefix + "-XX-dirty-pb.fits"))
    large = write_source(suite.path("large.uvfits"), rows=20000)
    result = tessera("image", large, *IMAGE, *AIRY, "--memory", "1200kB", "--overwrite", "-o",
                     suite.path("streamed"))
    if suite.ran("streamed", result):
        suite.true("data are streamed", "data are streamed" in result.err)
        suite.below("streamed: flux",
                    abs(at_source(suite.path("streamed-dirty-pb.fits")) / FLUX - 1), 3e-6)


def check_sums(suite, prefix):
    """CLFLUX is the sum of the model as it is seen, and in corrected images that of the corrected model. The file has it
    in single precision, of which a sum has the rounding."""
    for kinds, model in ((("model", "image"), "model"), (("model-pb", "residual-pb", "image-pb"), "model-pb")):
        total = read_image(f"{prefix}-{model}.fits")[0].sum(dtype=float)
        for kind in kinds:
            header = read_image(f"{prefix}-{kind}.fits")[1]
            suite.below(f"CLFLUX of {kind}, {total:.4f} Jy", abs(header["CLFLUX"] / total - 1), 1e-6)


def check_cleaned(suite, obs):
    """CLEAN leaves the source to a thousandth in channels, and to a hundredth in a band in which
    what is seen of it falls by half."""
    clean = ["--niter", "2000", "--threshold", "0.5mJy", "--weight", "briggs:0"]
    good, prefix = suite.image("clean", obs, *IMAGE, *AIRY, *clean)
    if good:
        check_cut(suite, "cleaned", prefix, "image")
        check_cut(suite, "cleaned", prefix, "model")
        check_cut(suite, "cleaned", prefix, "residual")
        suite.below("cleaned: flux", abs(at_source(prefix + "-image-pb.fits") / FLUX - 1), 1e-2)
        check_sums(suite, prefix)
        suite.true("cleaned: no corrected dirty image, but a residual",
                   not os.path.exists(prefix + "-dirty-pb.fits")
                   and os.path.exists(prefix + "-residual-pb.fits"))
    good, prefix = suite.image("joined", obs, *IMAGE, *AIRY, *clean, "--channels-out", "3",
                               "--join-channels", "--fit-spectral-pol", "2")
    for name in ("-0001", "-0002", "-MFS") if good else ():
        check_cut(suite, f"joined{name}", prefix + name, "image")
        suite.below(f"joined{name}: flux",
                    abs(at_source(f"{prefix}{name}-image-pb.fits") / FLUX - 1), 5e-3)


def check_cubes(suite, obs):
    """The planes of cubes are the images of channels."""
    more = ["--channels-out", "2", "--stokes", "XX,YY"]
    good, prefix = suite.image("planes", obs, *IMAGE, *AIRY, *more)
    also, cube = suite.image("cube", obs, *IMAGE, *AIRY, *more, "--cube", ranks=RANKS[-1])
    for kind in ("pb", "weight-pb", "dirty-pb") if good and also else ():
        planes, header = read_image(f"{cube}-cube-{kind}.fits")
        wanted = np.array([[read_image(f"{prefix}-{c:04d}-{pol}-{kind}.fits")[0] for c in range(2)]
                           for pol in ("XX", "YY")])
        suite.equal(f"cube of {kind}: shape", planes.shape, wanted.shape)
        suite.true(f"cube of {kind}: its planes",
                   np.allclose(planes, wanted, rtol=0, atol=1e-6, equal_nan=True))
        suite.true(f"cube of {kind}: the mean of channels is beside it",
                   os.path.exists(f"{cube}-MFS-XX-{kind}.fits")
                   and not os.path.exists(f"{cube}-0000-XX-{kind}.fits"))
        suite.equal(f"cube of {kind}: unit", header.get("BUNIT", ""), "Jy/beam" if "dirty" in kind else "")


def check_axis(suite):
    """The beam of a channel of an axis is the mean over its width, as over the channels of the data that it is made of:
    here four, whose weights are alike."""
    even = write_source(suite.path("even.uvfits"), even=True)
    made = {}
    for name, options in (("parts", ("--channels-out", "2")),
                          ("axis", ("--frame", "topo", "--width", "4", "--nchan", "2", "--interpolation", "nearest"))):
        good, prefix = suite.image(name, even, *IMAGE, *AIRY, "--weight", "natural", *options)
        if not good:
            return
        made[name] = read_image(f"{prefix}-0000-pb.fits")[0]
    suite.below("the beam of a wide channel of an axis", np.nanmax(np.abs(made["axis"] - made["parts"])), 1e-6)


def check_ranks(suite, obs):
    """The same numbers on any number of ranks, and of teams of ranks."""
    more = ["--channels-out", "4", "--reproducible"]
    good, prefix = suite.image("one", obs, *IMAGE, *AIRY, *more)
    for ranks in RANKS[1:] if good else ():
        good, other = suite.image(f"ranks{ranks}", obs, *IMAGE, *AIRY, *more, ranks=ranks)
        for name in ("-0001-pb", "-MFS-pb", "-MFS-dirty-pb") if good else ():
            a, b = read_image(f"{prefix}{name}.fits")[0], read_image(f"{other}{name}.fits")[0]
            suite.true(f"{ranks} ranks: {name}", np.array_equal(a, b, equal_nan=True))
    joins = ["--channels-out", "3", "--join-channels", "--niter", "20", "--reproducible",
             "--pb-mask", "0.4"]
    good, prefix = suite.image("one", obs, *IMAGE, *AIRY, *joins)
    also, other = suite.image("joins", obs, *IMAGE, *AIRY, *joins, *forced(teams=len(RANKS) // 2 or 1),
                              ranks=RANKS[-1])
    for name in ("-0002-pb", "-MFS-pb", "-0002-model") if good and also else ():
        a, b = read_image(f"{prefix}{name}.fits")[0], read_image(f"{other}{name}.fits")[0]
        suite.true(f"joined on {RANKS[-1]} ranks: {name}", np.array_equal(a, b, equal_nan=True))
    if good:
        beams = [read_image(f"{prefix}-000{c}-pb.fits")[0] for c in range(3)]
        model = read_image(prefix + "-0002-model.fits")[0]
        suite.true("--pb-mask: components only where a beam is above it",
                   np.any(model != 0) and not np.any(model[np.max(beams, 0) <= 0.4]))


def check_empty_mask(suite, obs):
    """A level that no channel which is cleaned reaches in the image is refused; one that some reach is not."""
    away = 1.4  # degrees to the West of the pointing, so that column 0 is the nearest
    place = ["--center", f"{60 - away / np.cos(np.pi / 6):.9f}deg,-30deg"]
    nearest = np.sin(np.deg2rad(away)) - N // 2 * SCALE
    freq = 1.0e9 + 1e8 * np.arange(8)
    level = airy(nearest, freq[3:5]).mean()  # reached by the lower half of the band alone
    clean = [*IMAGE, *AIRY, "--niter", "3", "--channels-out", "2", "--no-dirty"]
    for what, args, some in (
            ("the pointing", ["--pb-mask", "1"], False),
            ("beside the pointing", [*place, "--pb-mask", f"{1.01 * airy(nearest, freq[0]):.6f}"], False),
            ("a channel", [*place, "--pb-mask", f"{level:.6f}"], True),
            ("the other channel", [*place, "--pb-mask", f"{level:.6f}", "--channel-mask", "1"], False)):
        for ranks in (1,) if some else (1, RANKS[-1]):
            prefix = suite.path(f"mask{some}")
            result = tessera("image", obs, *clean, *args, "-o", prefix, "--overwrite", ranks=ranks)
            suite.ran(f"--pb-mask, {what}, {ranks} ranks", result, 0 if some else 3)
            if some:
                suite.equal("and the empty mask of the other channel is told", result.err.count("its mask is empty"), 1)
                continue
            suite.true(f"one line {result.errors()}", len(result.errors()) == 1 and
                       "leaves nothing to clean" in result.errors()[0])
            suite.true("no file", not [n for n in os.listdir(suite.work) if n.startswith("maskFalse")])


def check_stale(suite, obs):
    """One line warns of models that another run of the same NAME has left, of either scale of flux."""
    name, out = suite.path("stale"), suite.path("stale.uvfits")
    for end, of, args in (("-0000-model", "-model", []), ("-model-pb", "-model-pb", AIRY[:2]), ("-cube-model", "-model", [])):
        shutil.copy(f"{suite.path('clean')}{of}.fits", f"{name}{end}.fits")
        if end == "-0000-model":
            shutil.copy(f"{suite.path('clean')}{of}.fits", f"{name}-model.fits")
        result = tessera("predict", obs, "--model", name, *args, "--overwrite", "-o", out, ranks=RANKS[-1])
        told = [line for line in result.err.splitlines() if "is of another run" in line]
        taken = end.replace("0000", "NNNN")
        suite.ran(f"models {end} and others", result)
        suite.true(f"one warning {told}", len(told) == 1 and f"{name}{taken}.fits is taken in place of " in told[0])
    result = tessera("image", obs, *IMAGE, "--subtract", name, "-o", suite.path("staled"), ranks=RANKS[-1])
    suite.true("--subtract warns of a set and of an image", result.err.count("is of another run") == 1
               and f"{name}-NNNN-model.fits and {name}-model.fits; one of them" in result.err)


def check_names(suite, obs):
    """NAME of a run with one channel means its models: as the data see them, or of fluxes where a beam acts."""
    def predicted(*args):
        out = suite.path("named.uvfits")
        result = tessera("predict", obs, "--model", *args, "--accuracy", "1e-7", "--overwrite", "-o", out)
        suite.true(f"predict {args}: no warning", "warning" not in result.err)
        return uvfits.read(out)[2] if suite.ran(f"predict {args}", result) else np.zeros(1)
    prefix, beam = suite.path("clean"), AIRY[:2]  # of check_cleaned()
    seen, through = predicted(prefix), predicted(prefix, *beam)
    suite.true("models as the data see them", np.array_equal(seen, predicted(f"{prefix}-model.fits")))
    suite.true("models of fluxes", np.array_equal(through, predicted(f"{prefix}-model-pb.fits", *beam)))
    os.mkdir(prefix)
    suite.true("a folder of this name hides no models", np.array_equal(seen, predicted(prefix)))
    os.rmdir(prefix)
    os.mkdir(suite.path("folder"))
    suite.true("which are others", not np.array_equal(seen, through))
    names = [suite.image(name, obs, *IMAGE, "--subtract", model)[1]
             for name, model in (("less", prefix), ("file", f"{prefix}-model.fits"))]
    suite.true("--subtract NAME", np.array_equal(*(read_image(f"{name}-dirty.fits")[0] for name in names)))
    good, both = suite.image("both", obs, *IMAGE, *AIRY[:2], "--niter", "20", "--stokes", "IQ")
    for stokes in "IQ" if good else "":
        one = predicted(f"{both}-{stokes}-model.fits") + (one if stokes == "Q" else 0)
    if good:
        # of single precision, the sum of both
        suite.below("both Stokes parameters", np.abs(predicted(both) - one).max() / np.abs(one).max(), 1e-6)
    for what, words, args in (("without --pbcor", "with --pbcor", [both, *beam]),
                              ("a name of nothing", "nothing", [suite.path("nothing"), *beam]),
                              ("a folder", "is a folder", [suite.path("folder")])):
        for ranks in (1, RANKS[-1]):
            result = tessera("predict", obs, "--model", *args, "-o", suite.path("no.uvfits"), ranks=ranks)
            suite.ran(f"{what}, {ranks} ranks", result, 3)
            suite.true(f"one line {result.errors()}", len(result.errors()) == 1 and words in result.errors()[0])


# ---- beams that turn ----

def pattern(x, y, freq_hz):
    """Power at x and y [deg]: an ellipse beside the middle, 1 there."""
    def power(x, y):
        width = 1.2e9 / freq_hz
        return np.exp(-((x - 0.06) / (0.25 * width)) ** 2 - (y / (0.4 * width)) ** 2)
    return power(x, y) / power(0.0, 0.0)


def write_cube(path, freq_hz, voltage, east):
    """The pattern as a cube of 0.02 deg steps, whose columns go with azimuth. `east`: axis 1 is
    L, which grows to the East, and falls from column to column."""
    fits = fits_module()
    step = -0.02 if east else 0.02
    axis = np.arange(-45, 46) * 0.02
    x, y = np.meshgrid(axis, axis)
    planes = np.stack([pattern(x, y, f) for f in freq_hz])
    if voltage:
        planes = np.sqrt(planes)
        planes = np.stack([planes * np.cos(3 * x), planes * np.sin(3 * x)])
    hdu = fits.PrimaryHDU(planes.astype("f4"))
    axes = [("L" if east else "AZ", "deg", 46, 0.0, step), ("M" if east else "EL", "deg", 46, 0.0, 0.02),
            ("FREQ", "Hz", 1, freq_hz[0], freq_hz[1] - freq_hz[0])]
    for k, (name, unit, pixel, value, delta) in enumerate(axes + ([("COMPLEX", "", 1, 1, 1)] if voltage
                                                                  else [])):
        hdu.header.update({f"CTYPE{k + 1}": name, f"CUNIT{k + 1}": unit, f"CRPIX{k + 1}": pixel,
                           f"CRVAL{k + 1}": value, f"CDELT{k + 1}": delta})
    hdu.writeto(path, overwrite=True)
    return path


def angles_of(obs, ra_deg, dec_deg):
    """Parallactic angles of the integrations, by ERFA's hour angle, declination and hd2pa of
    the apparent place. (North of date is 0.2 degrees from that of J2000.)"""
    import erfa
    with fits_module().open(obs) as hdus:
        days = np.unique(np.round(hdus[0].data.par("DATE"), 7))
        antennas = hdus["AIPS AN"]
        site = [antennas.header[k] for k in ("ARRAYX", "ARRAYY", "ARRAYZ")]
        site = site + antennas.data["STABXYZ"].mean(0) if np.hypot(*site[:2]) > 1e6 else \
            antennas.data["STABXYZ"].mean(0)
    lon, lat, height = erfa.gc2gd(1, np.asarray(site, "f8"))
    angles = []
    for day in days:
        _, _, hour, dec, _, _ = erfa.atco13(np.deg2rad(ra_deg), np.deg2rad(dec_deg), 0, 0, 0, 0,
                                            day, 0.0, 0.0, lon, lat, height, 0, 0, 0, 0, 0, 0.5)
        angles.append(float(erfa.hd2pa(hour, dec, lat)))
    return np.array(angles)


def check_turning(suite):
    """Against the mean of turned patterns. The ellipse's edge changes by 1 % in 0.3 degrees."""
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    freq = [1.1e9, 1.2e9, 1.3e9]
    for name, dec, voltage, east in (("south", -55.0, False, False), ("north", -10.0, True, False),
                                     ("east", -45.0, False, True)):
        obs = simulate(suite.path(f"{name}.uvfits"), sky, layout="meerkat", dec=f"{dec}deg",
                       duration="3h", integration="900s", freq="1.2GHz", width="1MHz", channels=1,
                       extra=("--antennas", "6", "--hour-angle", "0.5h"))
        cube = write_cube(suite.path(f"{name}.fits"), freq, voltage, east)
        angles = angles_of(obs, 60.0, dec)
        suite.true(f"{name}: {len(angles)} angles, {np.rad2deg(np.ptp(angles)):.0f} deg apart",
                   len(angles) == 12 and np.ptp(angles) > 0.2)
        prefix = suite.path("turned")
        good = suite.ran(name, tessera("image", obs, *IMAGE, "--primary-beam", cube, "--pb-limit",
                                       "0.05", "--weight", "natural", "--overwrite", "-o", prefix))
        if not good:
            continue
        l, m = (np.rad2deg(a) for a in uvfits.pixel_lm(N, N, SCALE))
        wanted = np.mean([pattern(m * np.sin(q) - l * np.cos(q), m * np.cos(q) + l * np.sin(q), 1.2e9)
                          for q in angles], axis=0)
        beam, _ = read_image(prefix + "-pb.fits")
        both = np.isfinite(beam)
        suite.true(f"{name}: cut at the limit", (both == (wanted >= 0.05)).mean() > 0.99)
        suite.below(f"{name}: beam against numpy", np.abs(beam - wanted)[both].max(), 5e-3)
        turned_back = np.mean([pattern(-m * np.sin(q) - l * np.cos(q), m * np.cos(q) - l * np.sin(q),
                                       1.2e9) for q in angles], axis=0)
        suite.true(f"{name}: the test would see another sense", np.abs(beam - turned_back)[both].max() > 0.05)


# ---- the pointing centre ----

def separation(header, ra_deg, dec_deg):
    """Sine of each pixel's distance from a position."""
    from astropy.coordinates import SkyCoord
    from astropy.wcs import WCS
    x, y = np.meshgrid(np.arange(N), np.arange(N))
    ra, dec = WCS(header, fix=False).celestial.wcs_pix2world(x, y, 0)
    return np.sin(SkyCoord(ra, dec, unit="deg").separation(SkyCoord(ra_deg, dec_deg, unit="deg")).rad)


def check_pointing(suite, obs):
    """With another centre of the image, and with a phase centre that was moved later."""
    center = ["--center", "60.3deg,-30.2deg"]
    good, prefix = suite.image("center", obs, *IMAGE, *AIRY, *center, "--channels", "0:1")
    if good:
        beam, header = read_image(prefix + "-pb.fits")
        wanted = airy(separation(header, 60.0, -30.0), 1e9)
        both = np.isfinite(beam)
        suite.below("--center: beam", np.abs(beam - wanted)[both].max(), 3e-6)
        suite.true("--center: cut", (both == (wanted >= 0.2)).mean() > 0.999 and not both.all())
    python = casacore_python()
    if not have_ms() or not python:
        return
    ms = simulate(suite.path("moved.ms"), suite.path("sky.csv"), channels=1, duration="4min")
    script = ("import sys, numpy; from casacore.tables import table; "
              "t = table(sys.argv[1] + '::FIELD', readonly=False, ack=False); "
              "t.putcol('PHASE_DIR', t.getcol('PHASE_DIR') + numpy.deg2rad([0.2, 0.1]))")
    suite.ran("move PHASE_DIR", run([python, "-c", script, ms], 60))
    good, prefix = suite.image("moved", ms, *IMAGE, *AIRY)
    if good:
        beam, header = read_image(prefix + "-pb.fits")
        both = np.isfinite(beam)
        suite.below("REFERENCE_DIR: beam",
                    np.abs(beam - airy(separation(header, 60.0, -30.0), 1.4e9))[both].max(), 3e-6)
        suite.below("REFERENCE_DIR: the image is where PHASE_DIR is", abs(header["CRVAL1"] - 60.2), 1e-9)


# ---- bad input ----

def write_other(path, **header):
    """Samples at the same centre, or elsewhere, of this header."""
    uvw = uvfits.random_tracks(300, 450.0, 0.1, seed=9)
    uvfits.write(path, uvw, np.array([1e9, 1.1e9]), np.ones((300, 2, 2), "c8"), np.ones((300, 2, 2), "f4"), **header)
    return path


def check_telescopes(suite):
    """`auto` is the beam of one telescope, whatever its name is spelt like."""
    vla, evla, meerkat = (write_other(suite.path(f"{name}.uvfits"), cards={"TELESCOP": name})
                          for name in ("VLA", "EVLA", "MeerKAT"))
    auto = ["--primary-beam", "auto", *IMAGE, "--no-psf"]
    suite.image("one telescope", vla, evla, *auto)
    for kind in ([], ["--mosaic"]):
        for ranks in (1, RANKS[-1]):
            result = tessera("image", vla, meerkat, *auto, *kind, "-o", suite.path("bad"), ranks=ranks)
            suite.ran(f"two telescopes, {ranks} ranks", result, 3)
            suite.true(f"one line with both: {result.errors()}",
                       len(result.errors()) == 1 and "of VLA and MeerKAT" in result.errors()[0])


def check_errors(suite, obs):
    elsewhere = write_other(suite.path("elsewhere.uvfits"), ra_deg=60.5)
    cube = write_cube(suite.path("narrow.fits"), [1.0e9, 1.05e9], False, False)
    poly = suite.path("beam.txt")
    with open(poly, "w") as file:
        file.write("1GHz 2GHz poly 1 -1e-3 oops\n")
    for what, status, text, args in (
            ("no beam", 2, "--pbcor needs a beam", [obs, "--pbcor"]),
            ("no mosaic", 2, "--pointing-limit is for pointings", [obs, *AIRY, "--pointing-limit", ".1"]),
            ("no taper", 2, "--taper-at says where a taper acts", [obs, "--taper-at", "visibilities"]),
            ("no density", 2, "--density-frame has no effect with --weight natural",
             [obs, "--density-frame", "lsrk", "--weight", "natural"]),
            ("no density to sum", 2, "--density-box has no effect with --weight natural",
             [obs, "--density-box", "3", "--weight", "natural"]),
            ("a model that is none", 2, "'parkes' is no primary beam", [obs, "--primary-beam", "parkes"]),
            ("a level", 2, "--pb-limit", [obs, *AIRY, "--pb-limit", "2"]),
            ("a telescope", 3, "telescope 'TEST'", [obs, "--primary-beam", "auto"]),
            ("a range", 3, "550 to 900, 980 to 1500 MHz, not at 1600 MHz", [obs, "--primary-beam", "gmrt"]),
            ("a cube's range", 3, "not at 1100 MHz", [obs, "--primary-beam", cube]),
            ("a file's line", 3, "line 1: 'oops'", [obs, "--primary-beam", "poly:" + poly]),
            ("a file that is not there", 3, "none.fits", [obs, "--primary-beam", "none.fits"]),
            ("two pointings", 3, "points elsewhere", [obs, elsewhere, *AIRY, "--center", "60deg,-30deg"])):
        for ranks in (1, RANKS[-1]):
            result = tessera("image", *args[:1], *args[1:], *IMAGE, "-o", suite.path("bad"), ranks=ranks)
            suite.ran(f"{what}, {ranks} ranks", result, status)
            suite.true(f"{what}: one line with '{text}'",
                       len(result.errors()) == 1 and text in result.errors()[0])
    suite.true("nothing is left", not [n for n in os.listdir(suite.work) if n.startswith("bad-")])
    result = tessera("image", obs, elsewhere, *IMAGE, "--center", "60deg,-30deg", "-o", suite.path("join"))
    suite.ran("two pointings without a beam", result)
    suite.true("two pointings: a warning",
               "several pointings are joined without weights of primary beams" in result.err)


def main():
    suite = Suite("primary_beams")
    obs = write_source(suite.path("source.uvfits"))
    check_flux(suite, obs)
    check_cleaned(suite, obs)
    check_empty_mask(suite, obs)
    check_names(suite, obs)
    check_stale(suite, obs)
    check_cubes(suite, obs)
    check_axis(suite)
    check_ranks(suite, obs)
    check_turning(suite)
    check_pointing(suite, obs)
    check_telescopes(suite)
    check_errors(suite, obs)
    suite.finish()


if __name__ == "__main__":
    main()
