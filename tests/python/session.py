#!/usr/bin/env python3
"""tessera.Session: residuals of open observations against those of tessera.image(), which
reads them anew, bit by bit with reproducible=True; outputs, polarisations, errors."""
import gc
import os
import pathlib
import threading

import numpy as np

from module import in_child
from e2e import Suite, simulate, write_sky
import tessera
import uvfits

SHAPE, OPTIONS = (70, 96), dict(size=(96, 70), scale="12asec", threads=2)


def points(rng, *shape):
    model = np.zeros(shape)
    for plane in model.reshape(-1, *shape[-2:]):
        plane[rng.integers(0, shape[-2], 7), rng.integers(0, shape[-1], 7)] = \
            rng.uniform(-1, 1, 7)
    return model


def same(suite, what, session_image, image):
    """A session's doubles are the pixels of the image, bit by bit."""
    suite.true(what, np.array_equal(session_image.astype(image.dtype), image,
                                    equal_nan=True))


def check_residuals(suite, obs):
    rng = np.random.default_rng(3)
    models = [points(rng, *SHAPE) for _ in range(20)]
    for accuracy in (1e-4, 1e-8):
        options = dict(OPTIONS, accuracy=accuracy, reproducible=True)
        session = tessera.Session(obs, **options)
        suite.true("shape", session.shape == SHAPE and session.polarisations == ["I"] and
                   (session.num_channels, session.num_intervals) == (1, 1))
        for model in models:
            last = session.residual(model)
        fresh = tessera.image(obs, subtract=models[-1], **options)
        same(suite, f"twenty cycles end at a fresh image, accuracy {accuracy}", last,
             fresh.dirty.data)
        same(suite, "so does the PSF", session.psf(), fresh.psf.data)
        suite.true("and the data are as they were",
                   np.array_equal(session.residual(np.zeros(SHAPE)), session.dirty()))
        plain = tessera.image(obs, **options)
        scale = np.linalg.norm(plain.dirty.data)
        suite.below("the dirty image", np.linalg.norm(session.dirty() - plain.dirty.data) /
                    scale, 2 * accuracy)
        suite.true("weights", session.weights().num_vis == plain.dirty.num_vis and
                   abs(session.weights().sum / plain.dirty.sum_weights - 1) < 1e-12 and
                   abs(session.weights().freq_hz / plain.dirty.header["FREQMEAN"] - 1) <
                   1e-9)


def check_outputs(suite, obs):
    """Outputs in turn: each has its own samples, weights and PSF."""
    rng = np.random.default_rng(4)
    options = dict(OPTIONS, channels_out=2, intervals_out=2, stokes="IQ",
                   reproducible=True)
    model = points(rng, 2, *SHAPE)
    session = tessera.Session(obs, **options)
    suite.true("shape of two Stokes parameters", session.shape == (2, *SHAPE) and
               session.polarisations == ["I", "Q"])
    images = tessera.image(obs, subtract=model, **options)
    for turn in range(2):
        for interval in range(2):
            for channel in (1, 0):
                left = session.residual(model, channel, interval)
                for k, name in enumerate(session.polarisations):
                    image = images.select(kind="dirty", polarisation=name, channel=channel,
                                          interval=interval)[0]
                    same(suite, f"turn {turn}, interval {interval}, channel {channel}, "
                         f"{name}", left[k], image.data)
    psf = images.select(kind="psf", channel=1, interval=0)[0]
    same(suite, "PSF of an output", session.psf(1, 0)[0], psf.data)
    suite.true("its weights",
               session.weights(1, 0).num_vis == psf.num_vis and
               abs(session.weights(1, 0).freq_hz / psf.header["FREQMEAN"] - 1) < 1e-9)


def check_cross_hand(suite, obs):
    """XY = U + iV: the model of a cross-hand has a real and an imaginary image."""
    rng = np.random.default_rng(5)
    u, v = points(rng, *SHAPE), points(rng, *SHAPE)
    options = dict(OPTIONS, stokes="XY", accuracy=1e-7)
    session = tessera.Session(obs, **options)
    suite.true("images of a cross-hand", session.polarisations == ["XY", "XYi"])
    images = tessera.image(obs, subtract=np.stack([0 * u, 0 * u, u, v]), **options)
    left = session.residual(np.stack([u, v]))
    for k, name in enumerate(session.polarisations):
        image = images.select(kind="dirty", polarisation=name)[0].data
        suite.below(f"residual of {name}", float(np.abs(left[k] - image).max()), 1e-6)
    suite.true("the model matters",
               float(np.abs(left - session.dirty()).max()) > 0.1)


def same_predictions(suite, what, found, expected):
    """Rows and visibilities, bit by bit."""
    suite.true(what, len(found) == len(expected) > 0 and all(
        np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True)
        for a, b in zip(found, expected)
        for name in ("vis", "uvw", "time_mjd_s", "antenna1", "antenna2", "freq_hz")) and
        all(a.correlations == b.correlations for a, b in zip(found, expected)))


def flag_some(suite, obs):
    """A copy in which the first third of all visibilities is flagged."""
    from astropy.io import fits
    path = suite.path("flagged.uvfits")
    with fits.open(obs) as file:
        data = file[0].data["DATA"]
        data[:len(data) // 3, ..., 2] = -1
        file.writeto(path, overwrite=True)
    return path


def check_predictions(suite, obs):
    """Predictions are those of tessera.predict(), in any order of models and outputs."""
    rng = np.random.default_rng(6)
    scale = OPTIONS["scale"]
    for accuracy in (1e-4, 1e-8):
        same_options = dict(accuracy=accuracy, threads=2)
        session = tessera.Session(obs, **dict(OPTIONS, **same_options))
        for turn in range(3):
            model = points(rng, *SHAPE) * 10. ** (20 * turn - 20)
            same_predictions(suite, f"prediction {turn}, accuracy {accuracy}",
                             session.predict(model),
                             tessera.predict(obs, model=model, scale=scale,
                                             **same_options))
            session.residual(model)
        last = session.predict(model)
        session.close()
        suite.true("predictions outlive their session",
                   float(np.abs(last.vis).max()) > 1 and last.vis.dtype == np.complex64)
    for threads in (1, 2):
        repeated = tessera.Session(obs, **dict(OPTIONS, reproducible=True, threads=threads))
        found = repeated.predict(model)
        if threads == 1:
            first = found
        same_predictions(suite, f"repeated by {threads} threads", found, first)
    suite.below("and accurate", np.linalg.norm(found.vis - last.vis) /
                np.linalg.norm(last.vis), 2e-4)
    session = tessera.Session(obs, stokes="IQUV", channels_out=2, intervals_out=2,
                              **OPTIONS)
    model = points(rng, 4, *SHAPE)
    chans = len(tessera.predict(obs, model=model, scale=scale)[0].freq_hz)
    for turn, channel in enumerate((0, 1, 0)):
        some = [session.predict(model, channel, interval)[0] for interval in range(2)]
        part = f"{channel * (chans // 2)}:{(channel + 1) * (chans // 2)}"
        every = tessera.predict(obs, model=model, scale=scale, channels=part,
                                threads=2)[0]
        joined = np.concatenate([s.vis for s in some])
        order = np.concatenate([s.time_mjd_s for s in some]), every.time_mjd_s
        suite.true(f"rows of intervals, turn {turn}", np.array_equal(*order) and
                   all(len(s.vis) > 0 for s in some))
        suite.below(f"two intervals of channel {channel}, turn {turn}", np.linalg.norm(
            joined - every.vis) / np.linalg.norm(every.vis), 2e-4)
        one = tessera.Session(obs, stokes="IQUV", channels=part, **OPTIONS)
        same_predictions(suite, f"a selection of channels, turn {turn}",
                         one.predict(model), [every])
    u, v = points(rng, *SHAPE), points(rng, *SHAPE)
    session = tessera.Session(obs, stokes="XY", **OPTIONS)
    found = session.predict(np.stack([u, v]))[0]
    expected = tessera.predict(obs, model=np.stack([0 * u, 0 * u, u, v]), scale=scale)[0]
    hands = [found.correlations.index(name) for name in ("XY", "YX")]
    others = [k for k in range(len(found.correlations)) if k not in hands]
    for name, hand in zip(("XY", "YX"), hands):
        suite.below(f"{name} from the two images of XY", np.linalg.norm(
            found.vis[..., hand] - expected.vis[..., hand]) /
            np.linalg.norm(expected.vis[..., hand]), 2e-4)
    suite.true("correlations without an image are 0", not found.vis[..., others].any())
    try:
        tessera.Session(obs, stokes="I,XX", **OPTIONS).predict(np.zeros((2, *SHAPE)))
        suite.true("I and XX together: no exception", False)
    except ValueError as error:
        suite.true(f"I and XX together: {error}", "correlations" in str(error))


def write_models(suite, name, freq, planes, **cards):
    """Planes of Stokes I as a cube and as a set: their names."""
    from astropy.io import fits
    scale = np.deg2rad(12 / 3600)
    for c, f in enumerate(freq):
        first = uvfits.write_model(suite.path(f"{name}-{c:04d}-model.fits"), planes[c], scale, freq_hz=f)
    header = fits.getheader(first)
    header.update(dict(dict(CRVAL3=freq[0], CDELT3=freq[1] - freq[0]), **cards))
    fits.writeto(suite.path(name + ".fits"), np.array(planes)[None], header, overwrite=True)
    return suite.path(name + ".fits"), pathlib.Path(suite.path(name))


def check_files(suite, obs):
    """Cubes and sets: each channel of the data takes the nearest of the model's, or the polynomial, as
    tessera.image(subtract=...) and tessera.predict() do."""
    rng = np.random.default_rng(8)
    scale, accuracy = OPTIONS["scale"], 1e-7
    freq = tessera.predict(obs, model=np.zeros(SHAPE), scale=scale)[0].freq_hz
    centres = freq[0] + (freq[-1] - freq[0]) * np.array([.05, .5, .95])
    planes = [points(rng, *SHAPE) for _ in centres]
    names = write_models(suite, "channels", centres, planes)
    options = dict(OPTIONS, accuracy=accuracy)
    whole, parts = tessera.Session(obs, **options), tessera.Session(obs, channels_out=len(freq), **options)
    for terms in (0, 2):
        fit = dict(fit_spectral_pol=terms) if terms else {}
        subtract = dict(subtract_spectral_pol=terms) if terms else {}
        left = tessera.image(obs, subtract=names[0], **subtract, **options).dirty.data
        expected = tessera.predict(obs, model=names[0], accuracy=accuracy, **fit)[0].vis
        suite.true("channels of the model differ", np.ptp(np.abs(expected).sum((0, 2))) > 0)
        for name in names:
            what = f"{type(name).__name__}, {terms} terms"
            found = whole.residual(name, **fit)
            suite.below(f"residual of a {what}", np.linalg.norm(found - left) / np.linalg.norm(left), 1e-5)
            predicted = whole.predict(name, **fit)[0].vis
            suite.below(f"prediction of a {what}", np.linalg.norm(predicted - expected) /
                        np.linalg.norm(expected), 2 * accuracy + 1e-7)
            for channel, f in enumerate(freq):
                x = (centres - centres.mean()) / np.ptp(centres)
                line = np.polynomial.polynomial.polyfit(x, np.array(planes).reshape(3, -1), 1)
                at = (f - centres.mean()) / np.ptp(centres)
                wanted = (line[0] + line[1] * at).reshape(SHAPE) if terms else \
                    planes[np.abs(centres - f).argmin()]
                read = parts.read_model(name, channel, **fit)
                suite.below(f"model of channel {channel} of a {what}", np.abs(read - wanted).max(), 1e-12)
                suite.below(f"residual of channel {channel} of a {what}", np.linalg.norm(
                    parts.residual(read, channel) - parts.residual(name, channel, **fit)) /
                    np.linalg.norm(left), 1e-5)
    single = uvfits.write_model(suite.path("single.fits"), planes[1], np.deg2rad(12 / 3600))
    suite.below("residual of an image", np.linalg.norm(whole.residual(single) - whole.residual(planes[1])) /
                np.linalg.norm(left), 1e-5)
    suite.true("read_model of an image", np.array_equal(whole.read_model(single), planes[1]))
    bad = {"no axis": (dict(CTYPE3="VRAD"), "axis of velocities"), "unit": (dict(CUNIT3="m"), "must be Hz"),
           "constant": (dict(CDELT3=0.0), "frequency axis"), "elsewhere": (dict(CRVAL3=9e9), "none of the data's"),
           "logarithms": (dict(CTYPE3="FREQ-LOG"), "not linear")}
    for what, (cards, words) in bad.items():
        path = write_models(suite, "bad", centres, planes, **cards)[0]
        for call in (whole.residual, whole.predict, whole.read_model):
            refused(suite, f"{what}, {call.__name__}", ValueError, words, lambda c=call, p=path: c(p))
    os.remove(suite.path("bad-0001-model.fits"))
    for call in (whole.residual, whole.predict, whole.read_model):
        refused(suite, f"a gap, {call.__name__}", ValueError, "is missing", lambda c=call: c(suite.path("bad")))
        refused(suite, f"no file, {call.__name__}", OSError, "nothing", lambda c=call: c(suite.path("nothing")))
        refused(suite, f"terms, {call.__name__}", ValueError, "17 terms",
                lambda c=call: c(names[0], fit_spectral_pol=17))
    refused(suite, "a fit of an array", ValueError, "one channel",
            lambda: whole.residual(planes[0], fit_spectral_pol=2))
    refused(suite, "more terms than channels", ValueError, "4 terms",
            lambda: whole.residual(names[0], fit_spectral_pol=4))


def refused(suite, what, kind, words, call):
    try:
        call()
        suite.true(f"{what}: no exception", False)
    except kind as error:
        suite.true(f"{what}: {error}", words in str(error) and "\n" not in str(error))


def check_two_observations(suite, obs, other):
    """Observations one after the other, each with its rows."""
    model = points(np.random.default_rng(7), *SHAPE)
    session = tessera.Session([obs, other], **OPTIONS)
    found = session.predict(model)
    single = [tessera.predict(path, model=model, scale=OPTIONS["scale"])[0]
              for path in (obs, other)]
    suite.true("a prediction for each observation", [p.vis.shape for p in found] ==
               [p.vis.shape for p in single] and
               all(np.array_equal(a.uvw, b.uvw) for a, b in zip(found, single)))
    for k in range(2):
        suite.below(f"observation {k} of two", np.linalg.norm(found[k].vis - single[k].vis) /
                    np.linalg.norm(single[k].vis), 2e-4)


def check_single_hands(suite, sky):
    """XX in one observation and YY in the other: each is predicted what it has."""
    sets = [simulate(suite.path(pol + ".uvfits"), sky, duration="4min", integration="60s", pol=pol)
            for pol in ("XX", "YY")]
    model = points(np.random.default_rng(9), *SHAPE)
    session = tessera.Session(sets, **OPTIONS)
    found = session.predict(model)
    suite.equal("correlations of each", [p.correlations for p in found], [("XX",), ("YY",)])
    suite.true("rows of each", all(p.vis.shape == found[0].vis.shape for p in found) and
               all(np.allclose(p.vis, found[0].vis, atol=1e-3) and p.vis.any() for p in found))


def check_errors(suite, obs):
    session = tessera.Session(obs, reproducible=True, **OPTIONS)
    cases = [("a model of another shape", ValueError, "shape",
              lambda: session.residual(np.zeros((3, 3)))),
             ("a complex model", TypeError, "complex",
              lambda: session.residual(np.zeros(SHAPE, complex))),
             ("a prediction of a channel that is not there", ValueError, "channel 2",
              lambda: session.predict(np.zeros(SHAPE), channel=2)),
             ("a prediction of another shape", ValueError, "shape",
              lambda: session.predict(np.zeros((3, 3)))),
             ("a channel that is not there", ValueError, "channel 1",
              lambda: session.dirty(channel=1)),
             ("a polarisation that is not there", ValueError, "polarisation 3",
              lambda: session.weights(polarisation=3)),
             ("no such file", OSError, "none.uvfits",
              lambda: tessera.Session(suite.path("none.uvfits"), **OPTIONS)),
             ("an unknown option", ValueError, "bogus",
              lambda: tessera.Session(obs, bogus=3, **OPTIONS)),
             ("too little memory", MemoryError, "memory",
              lambda: tessera.Session(obs, memory="1MB", **OPTIONS)),
             ("a channel beyond the integers of C", ValueError, "64 bits",
              lambda: session.dirty(channel=2**64)),
             ("an interval beyond them", ValueError, "64 bits",
              lambda: session.psf(interval=-2**63 - 1)),
             ("a polarisation beyond them", ValueError, "32 bits",
              lambda: session.weights(polarisation=2**32)),
             ("a number of terms beyond them", ValueError, "32 bits",
              lambda: session.residual(obs, fit_spectral_pol=2**32 + 1)),
             ("half a channel", TypeError, "whole",
              lambda: session.predict(np.zeros(SHAPE), channel=.5)),
             ("a channel before the first", ValueError, "channel -1",
              lambda: session.dirty(channel=-1)),
             ("a mask of a beam, of which there is none", ValueError, "--pb-limit says",
              lambda: session.clean(niter=9, pb_mask=.5)),
             ("a beam of a session without", ValueError, "opened without it",
              lambda: session.clean(niter=9, primary_beam="airy:25")),
             ("a correction for it", ValueError, "needs --mosaic",
              lambda: tessera.Session(obs, pbcor=True, **OPTIONS)),
             ("an option of cleaning at opening", ValueError, "the call that cleans",
              lambda: tessera.Session(obs, multiscale_choice="fit", **OPTIONS)),
             ("a NUL in a path", ValueError, "NUL",
              lambda: tessera.Session(obs + "\0.ms", **OPTIONS)),
             ("a NUL in an option", ValueError, "NUL",
              lambda: tessera.Session(obs, weight="natural\0x", **OPTIONS)),
             ("a NUL in the name of an option", ValueError, "NUL",
              lambda: tessera.Session(obs, **{"no_psf\0x": True}, **OPTIONS)),
             ("a NUL in a model", ValueError, "NUL",
              lambda: session.read_model("a\0b"))]
    for what, kind, word, call in cases:
        try:
            call()
            suite.true(f"{what}: no exception", False)
        except kind as error:
            suite.true(f"{what}: {error}", word in str(error) and
                       isinstance(error, tessera.Error))
    blank = np.full(SHAPE, np.nan)
    suite.true("blank pixels of a model count as 0",
               np.array_equal(session.residual(blank), session.dirty()))
    with session:
        pass
    try:
        session.dirty()
        suite.true("a closed session: no exception", False)
    except ValueError as error:
        suite.true(f"a closed session: {error}", "closed" in str(error))


def check_threads(suite, obs):
    """A session that is closed in a thread ends the calls of others, one way or the other."""
    expected = tessera.Session(obs, **OPTIONS).dirty()
    for turn in range(3):
        session, images, ends = tessera.Session(obs, **OPTIONS), [], []
        begun = threading.Event()

        def work():
            try:
                while True:
                    images.append(session.dirty())
                    begun.set()
            except ValueError as error:
                ends.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        begun.wait(60)
        session.close()
        count = len(images)
        for thread in threads:
            thread.join(60)
        suite.true(f"closed beside calls: {ends}", len(ends) == 3 and
                   all("closed" in end for end in ends) and len(images) <= count + 3 and
                   all(np.allclose(image, expected, atol=1e-4) for image in images))


def check_fork(suite, obs):
    """A child of a process with threads makes images; the session is its parent's."""
    session = tessera.Session(obs, **OPTIONS)
    expected = session.dirty()
    image = dict(OPTIONS, no_psf=True)

    def same():
        return np.allclose(tessera.image(obs, **image).dirty.data, expected, atol=1e-4)

    suite.equal("an image of a child", in_child(same), "True")
    for what, call in (("a call", session.dirty), ("another", session.weights)):
        text = in_child(call)
        suite.true(f"{what} in a child: {text}", text.startswith("UsageError") and
                   "forked" in text)
    suite.equal("closed in a child", in_child(session.close), "None")
    suite.true("the parent's session goes on", np.allclose(session.dirty(), expected, atol=1e-4))
    stop = threading.Event()

    def work():
        while not stop.is_set():
            session.dirty()

    thread = threading.Thread(target=work)
    thread.start()
    texts = [in_child(same) for _ in range(4)]
    stop.set()
    thread.join()
    suite.true(f"a child beside a call: {texts}", all(
        text == "True" or text.startswith("ResourceError") and "forked" in text
        for text in texts))


def check_several(suite, obs):
    """Sessions do not disturb one another."""
    first, second = (tessera.Session(obs, size=64, scale=s, reproducible=True)
                     for s in ("12asec", "20asec"))
    expected = first.dirty()
    second.dirty()
    suite.true("two at once", np.array_equal(first.dirty(), expected))
    del second
    gc.collect()
    suite.true("one of two", np.array_equal(first.dirty(), expected))


def check_finish(suite, obs):
    """Cleaning on the session's visibilities, beams, restored images, headers and files: all as
    tessera.image() makes them, bit by bit."""
    options = dict(OPTIONS, reproducible=True, stokes="IQ", channels_out=2, mf_weighting=True)
    cleaning = dict(niter=40, join_channels=True, join_polarizations=True, fit_spectral_pol=2)
    own, majors = tessera.image(obs, **options, **cleaning), []
    with tessera.Session(obs, **options) as session:
        before = session.dirty(1)
        images = session.clean(each_major=majors.append, **cleaning)
        for image in images:
            like = own.select(kind=image.kind, channel=image.channel,
                              polarisation=image.polarisation)[0]
            suite.true(f"{image} is that of tessera.image", np.array_equal(image.data, like.data) and
                       [k for k in like.header if k not in ("DATE", "HISTORY") and
                        image.header.get(k) != like.header[k]] == [])
        suite.true("a function is told of each major cycle",
                   majors[-1].end == "niter" and majors[-1].iterations == 40)
        suite.true("and the session is as it was", np.array_equal(session.dirty(1), before))
        channel = [[i.data.astype(float) for i in own.select(kind=kind, channel=1)]
                   for kind in ("model", "residual", "image")]
        restored = session.restore(channel[0], channel[1], channel=1)
        suite.below("a restored image", np.abs(restored - channel[2]).max(), 1e-6)
        image = own.select(kind="image", channel=1)[0]
        suite.true("its beam and header", np.allclose(session.beam(1), image.beam_deg) and
                   [k for k in image.header if k[:4] not in ("DATE", "HIST", "COMM", "NITE", "NMAJ") and
                    k[:2] != "CL" and k not in ("BITPIX", "DATAMIN", "DATAMAX") and
                    session.header("image", 1).get(k) != image.header[k]] == [])
        suite.true("its WCS", session.wcs.wcs.crval.tolist() == [60, -30])
        session.write_fits(suite.path("written.fits"), restored[0], channel=1)
        wide = session.restore(channel[0], channel[1], channel=1, beam="200asec")
        suite.true("a wider beam", wide.max() > restored.max())
    suite.true("a file", os.path.getsize(suite.path("written.fits")) > 4 * 96 * 70)
    for call in (lambda: tessera.Session(obs, niter=3, **OPTIONS),
                 lambda: tessera.Session(obs, **OPTIONS).clean(),
                 lambda: tessera.Session(obs, **OPTIONS).header("picture")):
        try:
            call()
            suite.true("is refused", False)
        except tessera.UsageError as error:
            suite.true(f"is refused: {error}", True)


def main():
    suite = Suite("python_session")
    sky = write_sky(suite.path("sky.csv"), [
        dict(ra="60.03deg", dec="-30.01deg", flux_jy=1, q=.1, u=.2, v=-.1),
        dict(ra="59.96deg", dec="-29.97deg", flux_jy=.5)])
    obs = simulate(suite.path("obs.uvfits"), sky, duration="20min", integration="60s",
                   pol="XX,XY,YX,YY")
    check_residuals(suite, obs)
    check_outputs(suite, obs)
    check_cross_hand(suite, obs)
    check_predictions(suite, obs)
    check_predictions(suite, flag_some(suite, obs))
    check_files(suite, simulate(suite.path("wide.uvfits"), sky, duration="4min", integration="60s",
                                pol="XX,XY,YX,YY", channels=4, width="20MHz"))
    check_two_observations(suite, obs, simulate(
        suite.path("other.uvfits"), sky, duration="4min", integration="60s",
        pol="XX,XY,YX,YY", start="2026-01-02T03:00:00"))
    check_single_hands(suite, sky)
    check_finish(suite, obs)
    check_errors(suite, obs)
    check_several(suite, obs)
    check_threads(suite, obs)
    check_fork(suite, obs)
    suite.finish()


if __name__ == "__main__":
    main()
