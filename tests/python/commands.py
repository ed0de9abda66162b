#!/usr/bin/env python3
"""tessera.predict(), info() and simulate(): the same as the program's files, models as
arrays, errors as exceptions."""
import gc
import json
import os
import sys

import numpy as np

from module import environment
from e2e import (C_M_S, Suite, casacore_python, fits_module, have_ms, run, simulate,
                 tessera as program)
import tessera
import uvfits

fits = fits_module()
SCALE = 12 / 3600  # degrees


def write_model(path, planes):
    """A FITS image whose middle pixel is the phase centre."""
    planes = np.asarray(planes)
    ny, nx = planes.shape[-2:]
    header = fits.Header(dict(
        CTYPE1="RA---SIN", CTYPE2="DEC--SIN", CRVAL1=60.0, CRVAL2=-30.0, CDELT1=-SCALE,
        CDELT2=SCALE, CRPIX1=nx // 2 + 1, CRPIX2=ny // 2 + 1, CUNIT1="deg", CUNIT2="deg",
        BUNIT="Jy/pixel"))
    if planes.ndim == 3:
        header.update(CTYPE3="STOKES", CRPIX3=1, CRVAL3=1, CDELT3=1)
    fits.writeto(path, planes, header)
    return path


def some_model(shape):
    rng = np.random.default_rng(7)
    model = np.zeros(shape)
    places = tuple(rng.integers(0, n, 12) for n in shape)
    model[places] = rng.uniform(-1, 2, 12)
    return model


def direct_sum(model, prediction):
    """Stokes I of a prediction: the sum over a model's pixels in double precision."""
    ny, nx = model.shape
    j, i = np.nonzero(model)
    scale = np.deg2rad(SCALE)
    l, m = -(i - nx // 2) * scale, (j - ny // 2) * scale
    n = np.sqrt(1 - l * l - m * m)
    u, v, w = (prediction.uvw[:, k, None] * prediction.freq_hz / C_M_S for k in range(3))
    turns = (u[..., None] * l + v[..., None] * m + w[..., None] * (n - 1))
    return np.exp(2j * np.pi * turns) @ model[j, i]


def check_predict(suite, obs):
    """Against the direct sum, and against the program's file."""
    model = some_model((70, 96))
    predictions = tessera.predict(obs, model=model, scale="12asec", accuracy=1e-6, threads=2)
    found = predictions[0]
    suite.true(f"{predictions}", len(predictions) == 1 and predictions.vis is found.vis and
               found.vis.dtype == np.complex64 and found.vis.shape[1:] == (4, 2) and
               found.correlations == ("XX", "YY"))
    sums = direct_sum(model, found)
    for k in range(2):
        suite.below(f"correlation {k} of a model array, direct sum",
                    float(np.linalg.norm(found.vis[..., k] - sums) / np.linalg.norm(sums)),
                    1e-6)
    out = suite.path("out.uvfits")
    result = program("predict", obs, "--model", write_model(suite.path("m.fits"), model),
                     "-o", out, "--accuracy", "1e-6", "--threads", "2")
    suite.ran("predict by the program", result)
    written = uvfits_vis(out)
    suite.true("as the program's of a file", np.array_equal(found.vis, written))
    forms = {
        "of a file": dict(model=suite.path("m.fits")),
        "of a path": dict(model=__import__("pathlib").Path(suite.path("m.fits"))),
        "of a Fortran array": dict(model=np.asfortranarray(model), scale="12asec"),
        "of every other pixel": dict(model=np.repeat(model, 2, 1)[:, ::2], scale="12asec"),
        "of a list": dict(model=model.tolist(), scale="12asec"),
        "scale in radians": dict(model=model, scale=float(np.deg2rad(SCALE)))}
    for what, given in forms.items():
        again = tessera.predict(obs, accuracy=1e-6, threads=2, **given).vis
        # radians of the file, of the text and of the float differ in their last digits
        suite.below(f"the same {what}", float(np.abs(again - found.vis).max()), 2e-6)
    back = suite.path("back.uvfits")
    suite.equal("with an output nothing is returned", tessera.predict(
        obs, model=model, scale="12asec", accuracy=1e-6, output=back, threads=2), [])
    suite.true("which it writes", np.array_equal(uvfits_vis(back), written))


def uvfits_vis(path):
    with fits.open(path) as file:
        data = file[0].data["DATA"]  # rows, (Dec, RA, IF,) channels, correlations, 3
        data = data.reshape(len(data), -1, data.shape[-2], 3)
        return (data[..., 0] + 1j * data[..., 1].astype("c8")).astype("c8")


def check_stokes(suite, obs):
    """Planes of a model are I, Q, U, V: XX = I + Q, YY = I - Q."""
    intensity, q = some_model((32, 32)), 0.3 * some_model((32, 32))[::-1]
    found = tessera.predict(obs, model=np.stack([intensity, q]), scale="12asec",
                            accuracy=1e-6)[0]
    i_sum, q_sum = direct_sum(intensity, found), direct_sum(q, found)
    for k, sums in enumerate((i_sum + q_sum, i_sum - q_sum)):
        # each plane keeps ε of its own norm
        size = np.linalg.norm(i_sum) + np.linalg.norm(q_sum)
        suite.below(f"model of I and Q, {found.correlations[k]}",
                    float(np.linalg.norm(found.vis[..., k] - sums) / size), 1e-6)


def check_selection(suite, obs):
    model = some_model((32, 32))
    every = tessera.predict(obs, model=model, scale="12asec")[0]
    some = tessera.predict(obs, model=model, scale="12asec", channels="1:3")[0]
    suite.true("channels=", np.array_equal(some.freq_hz, every.freq_hz[1:3]) and
               np.abs(some.vis - every.vis[:, 1:3]).max() < 1e-3)
    ant = json.loads(program("info", obs, "--json", "--antennas").out)["antennas"]
    suite.true("antennas, times and positions", every.antenna1.max() < len(ant) and
               every.antenna2.max() < len(ant) and len(every.uvw) == len(every.vis) and
               np.all(np.diff(every.time_mjd_s) >= 0) and
               np.linalg.norm(every.uvw, axis=1).max() > 100)


def check_lifetime(suite, obs):
    predictions = tessera.predict(obs, model=some_model((32, 32)), scale="12asec")
    vis = predictions.vis
    kept, part = vis.copy(), vis[7:9]
    del predictions, vis
    gc.collect()
    for _ in range(3):
        tessera.predict(obs, model=some_model((32, 32)) + 1, scale="12asec")
    suite.true("arrays live as long as they are used", np.array_equal(part, kept[7:9]))


def check_not_finite(suite):
    """Rows without a position are 0; NaN pixels count as 0, with a warning."""
    obs, model = suite.path("hole.uvfits"), some_model((32, 32))
    uvw = uvfits.random_tracks(240, 400.0)
    uvw[5] = np.nan
    uvfits.write(obs, uvw, np.array([1e9]), np.ones((240, 1, 2)), np.ones((240, 1, 2)))
    info = tessera.info(obs)
    field = info["fields"][0]
    found = tessera.predict(obs, model=model, scale="12asec", quiet=True)[0]
    suite.true(f"a row without position at {field['ra_deg']}, {field['dec_deg']}",
               len(found.vis) == 240 and np.all(found.vis[5] == 0) and
               np.all(found.vis[6] != 0))


def check_ms(suite, sky):
    if not have_ms():
        return
    obs = tessera.simulate(suite.path("obs.ms"), layout="vla-d", sky=sky, ra="60deg",
                           dec="-30deg", duration="4min", integration="60s", freq="1.4GHz",
                           channels=3, pol=("XX", "XY", "YX", "YY"))
    model = some_model((32, 32))
    model = np.stack([model, 0.1 * model, 0.2 * model, 0.3 * model])
    found = tessera.predict(obs, model=model, scale="12asec", accuracy=1e-6)[0]
    suite.true("predict from an MS", found.vis.shape[1:] == (3, 4) and
               found.correlations == ("XX", "XY", "YX", "YY"))
    suite.equal("into a column", tessera.predict(
        obs, model=model, scale="12asec", accuracy=1e-6, column="MODEL_DATA"), [])
    try:
        tessera.predict(obs, model=model, scale="12asec", column="MODEL_DATA")
        suite.true("a column that exists: no exception", False)
    except OSError as error:
        suite.true(f"a column that exists: {error}", "MODEL_DATA" in str(error))
    residual = tessera.image(obs, size=32, scale="12asec", datacolumn="MODEL_DATA",
                             subtract=model[:1], stokes="I", no_psf=True, accuracy=1e-6)
    suite.below("which holds the model", float(np.abs(residual.dirty.data).max()),
                2e-6 * float(np.abs(model[0]).sum()))
    python = casacore_python()
    if not python:
        return
    code = ("import sys, numpy; from casacore.tables import table; "
            "t = table(sys.argv[1], ack=False); "
            "numpy.save(sys.argv[2], t.getcol('MODEL_DATA')); t.close()")
    result = run([python, "-c", code, obs, suite.path("column.npy")], 60)
    if suite.ran("casacore reads the column", result):
        column = np.load(suite.path("column.npy"))
        suite.true("it is what is returned", np.array_equal(column, found.vis))


def check_info(suite, obs):
    printed = program("info", obs, "--json")
    suite.ran("info by the program", printed)
    suite.equal("info() is info --json", tessera.info(obs), json.loads(printed.out))
    suite.equal("of a field", tessera.info(obs, field=1)["rows"],
                json.loads(printed.out)["rows"])


def check_simulate(suite, sky):
    """The same set as the program's: all but the date of its making."""
    mine, theirs = suite.path("mine.uvfits"), suite.path("theirs.uvfits")
    simulate(theirs, sky, duration="10min", integration="60s",
             extra=("--sefd", "400Jy", "--autocorrelations", "yes"))
    name = tessera.simulate(mine, layout="vla-d", sky=sky, ra="60deg", dec="-30deg",
                            start="2026-01-01T20:00:00", duration="10min",
                            integration="60s", freq="1.4GHz", chan_width="4MHz",
                            channels=4, pol="XX,YY", sefd="400Jy", autocorrelations=True)
    suite.equal("simulate() returns the name", name, mine)
    with fits.open(mine) as one, fits.open(theirs) as other:
        suite.true("its data are the program's",
                   one[0].data.tobytes() == other[0].data.tobytes())


def raises(suite, what, kind, word, call):
    try:
        call()
        suite.true(f"{what}: no exception", False)
    except kind as error:
        suite.true(f"{what}: {error}", word in str(error) and
                   isinstance(error, tessera.Error))


def check_errors(suite, obs, sky):
    model = np.zeros((8, 8))

    def predict(**changes):
        given = {**dict(obs=obs, model=model, scale="12asec"), **changes}
        return tessera.predict(given.pop("obs"), **given)

    raises(suite, "no scale", ValueError, "scale", lambda: predict(scale=None))
    raises(suite, "a scale without unit", ValueError, "12", lambda: predict(scale="12"))
    raises(suite, "a scale for a file", ValueError, "scale",
           lambda: predict(model=suite.path("m.fits")))
    raises(suite, "a model of one axis", ValueError, "(8,)", lambda: predict(model=model[0]))
    raises(suite, "five planes", ValueError, "(5, 8, 8)",
           lambda: predict(model=np.zeros((5, 8, 8))))
    raises(suite, "no pixels", ValueError, "0 x 8",
           lambda: predict(model=np.zeros((8, 0))))
    raises(suite, "a complex model", TypeError, "complex128",
           lambda: predict(model=model + 1j))
    raises(suite, "a model beyond the sky", ValueError, "half-sky",
           lambda: predict(scale="30deg"))
    raises(suite, "no such file", OSError, "none", lambda: predict(obs="none.uvfits"))
    raises(suite, "no such model", OSError, "none.fits",
           lambda: predict(model="none.fits", scale=None))
    raises(suite, "an existing output", OSError, "obs.uvfits", lambda: predict(output=obs))
    raises(suite, "output and column", ValueError, "exclude",
           lambda: predict(output="x.uvfits", column="MODEL_DATA"))
    raises(suite, "an unknown option", ValueError, "bogus", lambda: predict(bogus=1))
    raises(suite, "--help", ValueError, "help", lambda: predict(help=True))
    raises(suite, "info of nothing", OSError, "none", lambda: tessera.info("none.uvfits"))
    raises(suite, "info of a field that is not there", ValueError, "field 77",
           lambda: tessera.info(obs, field=77))

    def observe(**changes):
        return tessera.simulate(**{**dict(
            output=suite.path("never.uvfits"), layout="vla-d", sky=sky, ra="60deg",
            dec="-30deg", duration="10min", freq="1.4GHz"), **changes})

    raises(suite, "an unknown layout", ValueError, "nowhere", lambda: observe(layout="nowhere"))
    raises(suite, "a layout list", ValueError, "list-layouts",
           lambda: observe(list_layouts=True))
    raises(suite, "a wrong unit", ValueError, "freq", lambda: observe(freq="1.4 parsec"))
    suite.true("nothing was written", not os.path.exists(suite.path("never.uvfits")))
    raises(suite, "several predictions, one asked for", ValueError, "predictions",
           lambda: tessera.Predictions([]).vis)


def check_quiet(suite, obs):
    """Nothing on either stream unless asked for."""
    code = ("import sys, tessera, numpy as np; o, log = sys.argv[1:]; tessera.info(o); "
            "tessera.predict(o, model=np.ones((8, 8)), scale='12asec', log=log)")
    for log, wanted in (("quiet", False), ("info", True)):
        result = run([sys.executable, "-c", code, obs, log], 120, env=environment())
        suite.ran(f"a process with log={log}", result)
        suite.true(f"stdout and stderr with log={log}", not result.out and
                   bool(result.err) == wanted)


def check_others(suite, obs):
    """restore, draw, compare, stats and plan are those of the program."""
    images = tessera.image(obs, size=64, scale="12asec", niter=20, save_source_list=True,
                           output=suite.path("c"))
    name = suite.path("c")
    tessera.restore(f"{name}-residual.fits", f"{name}-model.fits", output=suite.path("r.fits"))
    same = tessera.compare(suite.path("r.fits"), f"{name}-image.fits", rtol=1e-5, pixels_only=True)
    suite.true(f"restore makes the image of the run: {same.text.strip()}", same and
               same.text.startswith("agrees"))
    wide = tessera.restore(f"{name}-residual.fits", f"{name}-model.fits",
                           output=suite.path("w.fits"), beam_size="90asec")
    suite.true("images that differ", not tessera.compare(wide, f"{name}-image.fits"))
    found = tessera.stats(f"{name}-image.fits", suite.path("w.fits"))
    suite.true(f"stats: {found[0]}", len(found) == 2 and found[0]["nx"] == 64 and
               abs(found[0]["peak"] / images.image.data.max() - 1) < 1e-4 and
               abs(found[0]["flux"] - 1.5) < .5)
    drawn = tessera.draw(f"{name}-sources.txt", output=suite.path("d.fits"), obs=obs, size=64,
                         scale="12asec")
    with fits.open(drawn) as file:
        suite.below("draw", abs(file[0].data.sum() / images.model.data.sum() - 1), 1e-3)
    suite.true("plan", "memory" in tessera.plan(obs, size=64, scale="12asec"))


def main():
    suite = Suite("python_commands")
    sky, obs = suite.path("sky.csv"), suite.path("obs.uvfits")
    with open(sky, "w") as file:
        file.write("name,ra,dec,flux_jy\na,60.03deg,-30.01deg,1\nb,59.96deg,-29.97deg,.5\n")
    simulate(obs, sky, duration="10min", integration="60s")
    check_predict(suite, obs)
    check_stokes(suite, obs)
    check_selection(suite, obs)
    check_lifetime(suite, obs)
    check_not_finite(suite)
    check_ms(suite, sky)
    check_info(suite, obs)
    check_simulate(suite, sky)
    check_others(suite, obs)
    check_errors(suite, obs, sky)
    check_quiet(suite, obs)
    suite.finish()


if __name__ == "__main__":
    main()
