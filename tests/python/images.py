#!/usr/bin/env python3
"""tessera.image(): the same pixels and headers as the program's files, errors as
exceptions, lifetime of the arrays."""
import contextlib
import gc
import json
import logging
import os
import pathlib
import signal
import sys
import types
import warnings

import numpy as np

from module import environment
from e2e import BIN, ROOT, Suite, fits_module, run, simulate, tessera as program
import tessera
import uvfits

fits = fits_module()
# What a run in memory cannot know, or says in its own words.
OWN = ("CHECKSUM", "DATASUM", "DATE", "HISTORY", "COMMENT", "")


def same_header(mine, file):
    return [key for key in dict.fromkeys(list(mine) + list(file))
            if key not in OWN and mine.get(key) != file.get(key)]


def compare_with_files(suite, obs, what, names, args, **options):
    """`names`: the program's files in the order in which they come."""
    prefix = suite.path(what)
    result = program("image", obs, "-o", prefix, "--size", "96,70", "--scale", "12asec",
                     "--threads", "2", *args)
    images = tessera.image(obs, size=(96, 70), scale="12asec", threads=2, **options)
    if not suite.ran(f"{what}: the program", result):
        return images
    suite.equal(f"{what}: number of images", len(images), len(names))
    for name, image in zip(names, images):
        with fits.open(f"{prefix}-{name}.fits") as file:
            data = file[0].data[0, 0]
            suite.true(f"{what}: pixels of {name}", image.data.dtype.kind == "f" and
                       np.array_equal(image.data, data, equal_nan=True) and
                       image.data.dtype.itemsize == data.dtype.itemsize)
            different = same_header(image.header, file[0].header)
            suite.true(f"{what}: header of {name} {different}", not different)
    return images


def check_images(suite, obs):
    images = compare_with_files(suite, obs, "plain", ["dirty", "psf"], [])
    dirty = images.dirty
    cleaned = compare_with_files(
        suite, obs, "cleaned", ["dirty", "psf", "first-residual", "model", "residual", "image"],
        ["--niter", "30", "--save-first-residual"], niter=30, save_first_residual=True)
    suite.true("kinds of a run that cleans", cleaned.image is cleaned[5] and
               cleaned.model is cleaned[3] and cleaned.residual is cleaned[4])
    maps = ["terms-0", "terms-0-error", "terms-1", "terms-1-error", "spectral-index", "spectral-index-error"]
    kinds = ["dirty", "psf", "model", "residual", "image"]
    joined = compare_with_files(
        suite, obs, "joined", [f"{c}-{k}" for c in ("0000", "0001", "MFS") for k in kinds] +
        [f"MFS-{k}" for k in maps],
        ["--niter", "30", "--channels-out", "2", "--join-channels", "--fit-spectral-pol", "2"], niter=30,
        channels_out=2, join_channels=True, fit_spectral_pol=2)
    suite.equal("kinds of a run that fits spectra", [i.kind for i in joined], 3 * kinds + maps)
    for option in ("continue", "update_model"):
        try:
            tessera.image(obs, size=96, scale="12asec", niter=3, **{option: True})
            suite.true(f"{option} without files is refused", False)
        except ValueError as error:
            suite.true(f"{option} without files: {error}", "-o NAME" in str(error))
    suite.true("kinds", [(i.kind, i.polarisation) for i in images] ==
               [("dirty", "I"), ("psf", "I")] and images.psf is images[1])
    suite.true("beam", dirty.beam_deg is not None and
               abs(dirty.beam_deg[0] - dirty.header["BMAJ"]) < 1e-12)
    suite.true("wcs", dirty.wcs["CTYPE1"] == "RA---SIN" and dirty.wcs["NAXIS1"] == 96 and
               dirty.wcs["CDELT1"] == dirty.header["CDELT1"] and
               isinstance(dirty.wcs["NAXIS1"], int))
    place = dirty.celestial().pixel_to_world(48, 35)
    suite.below("its centre is the phase centre [deg]",
                abs(place.ra.deg - 60) + abs(place.dec.deg + 30), 1e-9)
    numbers = (dirty.freq_hz, dirty.sum_weights, dirty.num_vis)
    suite.true(f"numbers {numbers}", numbers == tuple(
        dirty.header[key] for key in ("CRVAL3", "SUMWT", "NVIS")))
    images = compare_with_files(
        suite, obs, "stokes", ["XX-dirty", "YY-dirty", "XX-psf"], ["--stokes", "XX,YY"],
        stokes=("XX", "YY"))
    suite.true("polarisations", [i.polarisation for i in images] == ["XX", "YY", "XX"])
    compare_with_files(
        suite, obs, "cube",
        ["0000-dirty", "0000-psf", "0001-dirty", "0001-psf", "MFS-dirty", "MFS-psf"],
        ["--channels-out", "2", "--weight", "natural", "--accuracy", "1e-8"],
        channels_out=2, weight="natural", accuracy=1e-8)
    images = compare_with_files(
        suite, obs, "times", ["t0000-dirty", "t0001-dirty"],
        ["--intervals-out", "2", "--no-psf", "--channels", "1:3"],
        intervals_out=2, no_psf=True, channels="1:3")
    suite.true("selection", [i.interval for i in images.select(kind="dirty")] == [0, 1] and
               not images.select(kind="psf"))
    try:
        images.psf
        suite.true("no PSF: KeyError", False)
    except KeyError:
        suite.true("no PSF: KeyError", True)


def check_no_data(suite):
    """A channel without visibilities is NaN, and has its nominal frequency."""
    shape, weight = (240, 2, 2), np.ones((240, 2, 2))
    weight[:, 1] = -1
    obs = suite.path("gap.uvfits")
    uvfits.write(obs, uvfits.random_tracks(240, 400.0), np.array([1e9, 1.01e9]),
                 np.ones(shape), weight)
    names = [f"{channel}-{kind}" for channel in ("0000", "0001", "MFS")
             for kind in ("dirty", "psf")]
    images = compare_with_files(suite, obs, "gap", names, ["--channels-out", "2"],
                                channels_out=2)
    for image in images.select(channel=1):
        suite.true(f"no data: {image!r}", np.isnan(image.data).all() and
                   image.freq_hz == 1.01e9 and image.bandwidth_hz == 1e7 and
                   image.num_vis == 0 and image.beam_deg is None)
    suite.true("the mean has data", np.isfinite(images.select(channel=None)[0].data).all())


def check_forms(suite, obs):
    """Options may be given as numbers, and the scale as radians or Quantity."""
    text = tessera.image([obs], size=64, scale="12asec").dirty.data
    rad = tessera.image(obs, size="64", scale=float(np.deg2rad(12 / 3600)))
    suite.true("scale in radians", np.array_equal(rad.dirty.data, text))
    from astropy import units
    quantity = tessera.image(obs, size=64, scale=0.2 * units.arcmin, preview=False)
    suite.below("scale as a Quantity", float(np.abs(quantity.dirty.data - text).max()),
                1e-5 * float(np.abs(text).max()))
    name = suite.path("written")
    written = tessera.image(obs, size=64, scale="12asec", output=name, preview=True)
    files = sorted(f for f in os.listdir(suite.work) if f.startswith("written"))
    suite.equal("output writes the program's files", files,
                ["written-dirty.fits", "written-dirty.png", "written-psf.fits",
                 "written-psf.png", "written.conf"])
    suite.true("and returns the images", np.array_equal(written.dirty.data, text))


def check_subtract(suite, obs):
    """A model array is the model of a file with the same pixels, whatever its type, size
    and memory layout; what is predicted of it is gone."""
    name, scale = suite.path("model.fits"), 12 / 3600
    rng = np.random.default_rng(1)
    model = np.zeros((40, 33))
    model[rng.integers(0, 40, 9), rng.integers(0, 33, 9)] = rng.uniform(0.1, 1, 9)
    card = dict(CTYPE1="RA---SIN", CTYPE2="DEC--SIN", CRVAL1=60.0, CRVAL2=-30.0, CRPIX1=17,
                CRPIX2=21, CDELT1=-scale, CDELT2=scale, CUNIT1="deg", CUNIT2="deg",
                BUNIT="Jy/pixel")
    fits.writeto(name, model, fits.Header(card))
    options = dict(size=64, scale="12asec", accuracy=1e-7)
    file = tessera.image(obs, subtract=name, **options).dirty.data
    for what, given in (("a double one", model), ("one without order", model[::-1][::-1]),
                        ("a Fortran one", np.asfortranarray(model)),
                        ("several planes", np.stack([model, 0 * model]))):
        array = tessera.image(obs, subtract=given, **options).dirty.data
        # the file's pixels, degrees in a header, differ in their last digit
        suite.below(f"subtract a model array, {what}: as of a file",
                    float(np.abs(array - file).max()), 1e-10)
    plain = tessera.image(obs, **options).dirty.data
    single = tessera.image(obs, subtract=model.astype("f4"), **options).dirty.data
    suite.below("a single-precision one", float(np.abs(single - file).max()),
                2 * model.sum() * np.finfo("f4").eps)
    suite.true("it changes the image", np.abs(plain - file).max() > 0.1)
    before = model.copy()
    tessera.image(obs, subtract=model, **options)
    suite.true("the array stays as it is", np.array_equal(model, before))


def check_subtracted_rows(suite, obs):
    """Without files of images, the rows of a model that is subtracted before a fit wait in the
    current folder, which nodes share. Nothing is left there."""
    folder, before = suite.path("current"), os.getcwd()
    call = dict(size=64, scale="12asec", subtract=np.ones((8, 8)), uvcontsub=0,
                line_channels="none")
    os.mkdir(folder)
    os.chdir(folder)
    with log_lines() as lines:
        tessera.image(obs, **call)
    os.chdir(before)
    told = [line for line in lines if "model is subtracted before" in line]
    suite.true(f"rows of a model lie in the current folder: {told}",
               len(told) == 1 and "lie in ./tessera-subtracted" in told[0])
    suite.equal("files that are left there", os.listdir(folder), [])


def check_errors(suite, obs):
    cases = [("an unknown option", ValueError, "bogus", dict(bogus=3)),
             ("a wrong value", ValueError, "weight", dict(weight="heavy")),
             ("a scale without unit", ValueError, "scale", dict(scale="12")),
             ("no such file", OSError, "none.uvfits", dict(obs=suite.path("none.uvfits"))),
             ("all flagged away", ValueError, "nothing", dict(uvrange="1M:2M")),
             ("too large", MemoryError, "need", dict(size=1 << 19)),
             ("an existing output", OSError, "exists", dict(output=suite.path("plain"))),
             ("help", ValueError, "help", dict(help=True)),
             ("a log of another kind", ValueError, "loud", dict(log="loud")),
             ("a model of one axis", ValueError, "shape", dict(subtract=np.zeros(64))),
             ("a model of text", OSError, "none", dict(subtract="none.fits")),
             ("a complex model", TypeError, "complex", dict(subtract=np.ones((64, 64), "c8"))),
             ("a NUL in an option", ValueError, "NUL", dict(weight="natural\0x")),
             ("a NUL in a name", ValueError, "NUL", dict(obs=obs + "\0b")),
             ("more channels than integers", ValueError, "channels-out",
              dict(channels_out=2**64 + 1)),
             ("a scale that is not a number", ValueError, "scale", dict(scale=np.nan)),
             ("a mask that is not a number", ValueError, "auto-mask",
              dict(niter=3, auto_mask=np.nan))]
    for what, kind, word, changes in cases:
        options = {**dict(obs=obs, size=64, scale="12asec"), **changes}
        try:
            tessera.image(options.pop("obs"), **options)
            suite.true(f"{what}: no exception", False)
        except kind as error:
            suite.true(f"{what}: {error}", word in str(error) and
                       isinstance(error, tessera.Error))
    again = tessera.image(obs, size=64, scale="12asec")
    suite.true("an error leaves nothing behind", len(again) == 2)


def check_checkpoint(suite, obs):
    """A run with checkpoints stops where it is asked to, and goes on from there."""
    options = dict(size=64, scale="12asec", niter=20, mgain=.5, reproducible=True)
    expected = tessera.image(obs, **options)
    signals = []
    before = signal.signal(signal.SIGTERM, lambda *_: signals.append(True))
    folder = suite.path("checkpoints")
    plain = tessera.image(obs, checkpoint=folder, **options)
    suite.true("with checkpoints", len(plain) == len(expected) and all(
        np.array_equal(a.data, b.data) for a, b in zip(plain, expected)))
    try:
        tessera.image(obs, checkpoint=folder, max_time="0.001", **options)
        suite.true("a run that may not last: no exception", False)
    except tessera.Error as error:
        suite.true(f"a run that may not last: {error}", "resume" in str(error))
    again = tessera.image(obs, checkpoint=folder, resume=True, **options)
    suite.true("resumed", len(again) == len(expected) and all(
        np.array_equal(a.data, b.data) for a, b in zip(again, expected)))
    os.kill(os.getpid(), signal.SIGTERM)
    suite.true("SIGTERM is the caller's again", signals == [True])
    signal.signal(signal.SIGTERM, before)
    trace = suite.path("trace.json")
    tessera.image(obs, size=64, scale="12asec", trace=trace)
    with open(trace) as file:
        suite.true("a trace", len(json.load(file)) > 0)


def check_lifetime(suite, obs):
    images = tessera.image(obs, size=64, scale="12asec")
    data = images.dirty.data
    kept, row = data.copy(), data[5]
    del images, data
    gc.collect()
    others = [tessera.image(obs, size=64, scale="20asec") for _ in range(3)]
    suite.true("arrays live as long as they are used", np.array_equal(row, kept[5]))
    suite.true("and belong to their run alone",
               all(not np.array_equal(o.dirty.data, kept) for o in others))


def check_quiet(suite, obs):
    """Nothing on either stream unless asked for."""
    code = ("import sys, tessera; "
            "tessera.image(sys.argv[1], size=64, scale='12asec', log=sys.argv[2])")
    for log, wanted in (("quiet", False), ("info", True)):
        result = run([sys.executable, "-c", code, obs, log], 120, env=environment())
        suite.ran(f"a process with log={log}", result)
        suite.true(f"stdout and stderr with log={log}", not result.out and
                   bool(result.err) == wanted)


def check_example(suite):
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        suite.skipped("the example: matplotlib is not there")
        return
    env = environment(MPLBACKEND="Agg", TESSERA=BIN)
    result = run([sys.executable, os.path.join(ROOT, "examples", "python",
                                               "wgridder_tour.py"),
                  suite.path("tour")], 300, env=env)
    suite.ran("the example", result)
    suite.true("its plots", sum(f.endswith(".png")
                                for f in os.listdir(suite.path("tour"))) >= 3)


def check_types(suite):
    """Types of keyword arguments are made of the program's options."""
    made = run([sys.executable, os.path.join(ROOT, "app", "python", "make_options.py"), BIN,
                "--check"], 60)
    suite.true(f"_typed.py has the options of today: {made.err.strip()}", made.status == 0)


@contextlib.contextmanager
def log_lines():
    """Lines of the log, while this lasts."""
    lines, handler, log = [], logging.Handler(), logging.getLogger("tessera")
    handler.emit = lambda record: lines.append(record.getMessage())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield lines
    log.removeHandler(handler)


def check_messages(suite, obs):
    """Warnings, lines of the log, steps and major cycles come to Python."""
    call = dict(size=32, scale="12asec", niter=9, nmiter=3, mgain=.3, auto_threshold=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        steps, majors = [], []
        tessera.show_progress(steps.append)
        with log_lines() as lines:
            images = tessera.image(obs, each_major=majors.append, **call)
        tessera.show_progress(False)
    suite.true("a warning of this line", any(
        w.category is tessera.TesseraWarning and w.filename == __file__ and
        "lets noise be cleaned" in str(w.message) for w in caught))
    suite.true(f"{len(lines)} lines of the log", any(line.startswith("major 1:") for line in lines))
    suite.true(f"{len(steps)} steps", any(s.label == "cleaning" and s.ends for s in steps))
    suite.true(f"{len(majors)} major cycles, until {majors[-1].end}",
               [m.major for m in majors] == list(range(1, len(majors) + 1)) and
               majors[-1].iterations == images.model.header["NITER"] and
               [bool(m.end) for m in majors] == [False] * (len(majors) - 1) + [True])
    stopped = tessera.image(obs, each_major=lambda major: False, **call)
    suite.equal("False ends cleaning", stopped.model.header["NMAJOR"], 1)
    try:
        tessera.image(obs, each_major=lambda major: 1 / 0, **call)
        raised = None
    except ZeroDivisionError as error:
        raised = error
    suite.true("what a function raises comes out of the call", raised is not None)
    for lacking in (dict(obs=obs + "-none"), dict(obs="none.ms"), dict(subtract="none.fits"),
                    dict(fits_mask="none.fits", niter=9), dict(mask="none.crtf", niter=9)):
        raised = None
        try:
            tessera.image(**{**dict(obs=obs, size=32, scale="12asec"), **lacking})
        except FileNotFoundError as error:
            raised = error
        suite.true(f"a file that is not there, {lacking}: {raised}", isinstance(raised, tessera.FileError))


def check_bars(suite, obs):
    """show_progress() draws a bar of tqdm for each step, and closes it."""
    bars = []

    class Bar:
        def __init__(self, total, desc, **more):
            self.total, self.desc, self.n, self.shown, self.closed = total, desc, 0, [], False
            bars.append(self)

        def refresh(self):
            self.shown.append(self.n)

        def close(self):
            self.closed = True

    usual = {name: sys.modules.get(name) for name in ("tqdm", "tqdm.auto")}
    sys.modules.update({"tqdm": types.ModuleType("tqdm"), "tqdm.auto": types.SimpleNamespace(tqdm=Bar)})
    try:
        tessera.show_progress()
    finally:
        for name, module in usual.items():
            sys.modules.pop(name) if module is None else sys.modules.update({name: module})
    tessera.image(obs, size=32, scale="12asec", niter=9, auto_threshold=1)
    tessera.show_progress(False)
    suite.true(f"{len(bars)} bars of tqdm, of {sorted({bar.desc for bar in bars})}",
               "cleaning" in {bar.desc for bar in bars} and all(
                   bar.closed and bar.shown and 0 <= min(bar.shown) and max(bar.shown) <= bar.total
                   for bar in bars))


def check_values(suite, obs):
    """Values of astropy; images as files and as NDData."""
    from astropy import units
    from astropy.coordinates import SkyCoord
    given = tessera.image(pathlib.Path(obs), size=32, scale=12 * units.arcsec,
                          center=SkyCoord("4h", "-30d"), niter=5, threshold=1 * units.mJy)
    plain = tessera.image(obs, size=32, scale="12asec", center="60deg,-30deg", niter=5,
                          threshold="1mJy")
    suite.true("SkyCoord, Quantity and Path", np.array_equal(given.image.data, plain.image.data))
    given.image.write_fits(suite.path("written.fits"))
    with fits.open(suite.path("written.fits")) as file:
        suite.true("a file of an image", file[0].data.shape == (1, 1, 32, 32) and
                   file[0].header["BMAJ"] == given.image.header["BMAJ"])
    suite.equal("NDData has the unit", str(given.image.to_nddata().unit), "Jy / beam")


def main():
    suite = Suite("python_images")
    sky, obs = suite.path("sky.csv"), suite.path("obs.uvfits")
    with open(sky, "w") as file:
        file.write("name,ra,dec,flux_jy\na,60.03deg,-30.01deg,1\nb,59.96deg,-29.97deg,.5\n")
    simulate(obs, sky, duration="20min", integration="60s")
    check_images(suite, obs)
    check_no_data(suite)
    check_forms(suite, obs)
    check_types(suite)
    check_messages(suite, obs)
    check_bars(suite, obs)
    check_values(suite, obs)
    check_subtract(suite, obs)
    check_subtracted_rows(suite, obs)
    check_errors(suite, obs)
    check_checkpoint(suite, obs)
    check_lifetime(suite, obs)
    check_quiet(suite, obs)
    check_example(suite)
    suite.finish()


if __name__ == "__main__":
    main()
