#!/usr/bin/env python3
"""tessera.Session: residuals of open observations against those of tessera.image(), which
reads them anew, bit by bit with reproducible=True; outputs, polarisations, errors."""
import gc
import numpy as np

import module  # noqa: F401, finds tessera
from e2e import Suite, simulate, write_sky
import tessera

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


def check_errors(suite, obs):
    session = tessera.Session(obs, reproducible=True, **OPTIONS)
    cases = [("a model of another shape", ValueError, "shape",
              lambda: session.residual(np.zeros((3, 3)))),
             ("a complex model", TypeError, "complex",
              lambda: session.residual(np.zeros(SHAPE, complex))),
             ("a channel that is not there", ValueError, "channel 1",
              lambda: session.dirty(channel=1)),
             ("a polarisation that is not there", ValueError, "polarisation 3",
              lambda: session.weights(polarisation=3)),
             ("no such file", OSError, "none.uvfits",
              lambda: tessera.Session(suite.path("none.uvfits"), **OPTIONS)),
             ("an unknown option", ValueError, "bogus",
              lambda: tessera.Session(obs, bogus=3, **OPTIONS)),
             ("too little memory", MemoryError, "memory",
              lambda: tessera.Session(obs, memory="1MB", **OPTIONS))]
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
    check_errors(suite, obs)
    check_several(suite, obs)
    suite.finish()


if __name__ == "__main__":
    main()
