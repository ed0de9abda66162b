#!/usr/bin/env python3
"""tessera.Session of mosaics: images, predictions and cleaning against those of `tessera image --mosaic` and of `tessera
predict`. With --full: beams that turn, dishes that differ, outputs, and a column that `tessera predict --mosaic` writes."""
import dataclasses
import os
import sys
import warnings

import numpy as np

from module import HERE, tessera
from e2e import BACKEND, FULL, Suite, casacore_python, have_ms, l2_error, offset_radec, simulate, tessera as program
import mosaic_sums
import uvfits

sys.path.insert(0, os.path.join(HERE, "..", "oracle", "images"))
from primary_beams import write_cube  # noqa: E402
from simulated_mosaics import Pattern  # noqa: E402

N, SCALE, ROWS = 96, 50, 90  # pixels, arcsec
CENTRE = "60deg,-30deg"
FREQ = 1.4e9 + 5e7 * np.arange(2)
POINTINGS = (("p0", 60.0, -29.7), ("p1", 60.3, -30.2), ("p2", 59.6, -30.1))
OPTIONS = dict(size=N, scale=f"{SCALE}asec", center=CENTRE, weight="natural", reproducible=True, threads=1,
               accuracy=1e-6, backend=BACKEND)
MOSAIC = dict(mosaic=True, primary_beam="airy:25,2", pb_limit=.3, **OPTIONS)
PREDICT = dict(center=CENTRE, threads=1, accuracy=1e-6, backend=BACKEND)
CLEAN = dict(niter=60, nmiter=2, mgain=.6)
KINDS = ("dirty", "psf", "model", "residual", "image", "pb", "weight", "noise", "model-pb", "residual-pb", "image-pb")
EDGE = 22  # pixels from a pointing to where the beam that turns is near half its power along its longer axis
ROUNDING = 2e-6  # files are of single precision, and sums are made on plans that differ


def write_observation(path, seed=3):
    """Three pointings as sources of one file, of which the last sees one channel of the second half of the time."""
    random = np.random.default_rng(seed)
    rows = 3 * ROWS
    uvw = uvfits.random_tracks(rows, 250.0, seed=seed)
    vis = random.normal(size=(rows, 2, 2)) + 1j * random.normal(size=(rows, 2, 2)) + 3
    weight = np.repeat(random.uniform(.5, 2, (rows, 2, 1)), 2, -1).astype("f4")
    source = np.repeat(np.arange(3), ROWS)
    weight[source == 2, 0] = 0
    uvfits.write(path, uvw, FREQ, vis, weight, sources=list(POINTINGS), source_of_row=source)
    return path, source


def points(suite):
    """A model of fluxes, as an array and as a file."""
    model = np.zeros((N, N))
    for y, x, flux in ((48, 40, 1.0), (24, 60, 2.0), (68, 66, .7), (4, 6, 1.5)):
        model[y, x] = flux
    path = suite.path("model.fits")
    uvfits.write_model(path, model, np.deg2rad(SCALE / 3600), freq_hz=FREQ[0])
    return model, path


def same(a, b):
    return np.array_equal(np.asarray(a, "f4"), np.asarray(b, "f4"), equal_nan=True)


def apart(a, b):
    return l2_error(np.nan_to_num(a), np.nan_to_num(b)) if (np.isnan(a) == np.isnan(b)).all() else np.inf


def select(images, kind, **of):
    return images.select(kind=kind, **of)[0].data


def check_images(suite, what, session, images, outputs=((0, 0),)):
    for interval, channel in outputs:
        of = dict(interval=interval, channel=channel)
        beam = select(images, "pb", **of)  # cut
        made = {"dirty": session.dirty(**of), "psf": session.psf(**of),
                "pb": np.where(np.isfinite(beam), session.response(**of), np.nan)}
        for kind, image in made.items():
            suite.below(f"{what}: {kind} of output {interval}, {channel}", apart(image, select(images, kind, **of)),
                        ROUNDING)


def check_residuals(suite, obs, source, model, options):
    """The residual of each channel is the image of the data less the prediction. Returns uvw, data and weights."""
    session = tessera.Session(obs, channels_out=2, **options)
    uvw, _, vis, weight, _ = uvfits.read(obs)
    predicted = np.zeros_like(vis)
    for channel in range(2):
        for k, field in enumerate(session.predict(model, channel=channel)):
            predicted[source == k, channel] = field.vis[:, 0]
    other = suite.path("less.uvfits")
    uvfits.write(other, uvw, FREQ, vis - predicted, weight, sources=list(POINTINGS), source_of_row=source)
    left = tessera.Session(other, channels_out=2, **options)
    for channel in range(2):
        suite.below(f"a residual of channel {channel}", apart(session.residual(model, channel), left.dirty(channel)), 1e-5)
    return uvw, vis, weight


def check_models(suite, obs, source, model, file):
    """Predictions of each field, and residuals, of one channel at a time, whose beam is the same for both."""
    session = tessera.Session(obs, channels_out=2, **MOSAIC)
    both = [session.predict(model, channel=k) for k in range(2)]
    suite.equal("predictions of each field", [p.field for p in both[0]], [1, 2, 3])
    for k, (name, *_) in enumerate(POINTINGS):
        for channel in range(2):
            truth = tessera.predict(obs, model=file, field=name, primary_beam="airy:25,2", channels=f"{channel}:{channel + 1}",
                                    **PREDICT)
            suite.below(f"field {name}, channel {channel}", l2_error(both[channel][k].vis, truth[0].vis), ROUNDING)
    uvw, vis, weight = check_residuals(suite, obs, source, model, MOSAIC)
    one = suite.path("one.uvfits")
    uvfits.write(one, uvw, FREQ[1:], vis[:, 1:], weight[:, 1:], sources=list(POINTINGS), source_of_row=source)
    suite.below("the residual that the program makes", apart(tessera.Session(one, **MOSAIC).residual(model), tessera.image(
        one, subtract=file, **MOSAIC).dirty.data), 1e-5)


def check_clean(suite, obs, how, **more):
    """Cleaned, and restored from the model of fluxes, as by the program; images stay what they are meanwhile."""
    images = tessera.image(obs, **MOSAIC, **CLEAN, **how, **more)
    session = tessera.Session(obs, **MOSAIC, **more)
    before = session.dirty()
    made = session.clean(**CLEAN, **how)
    for kind in KINDS:
        suite.true(f"{kind} of cleaning {how} {more}", all(
            same(select(made, kind, channel=k), select(images, kind, channel=k)) for k in range(session.num_channels)))
    if more:
        return
    suite.true("images after cleaning", np.array_equal(session.dirty(), before, equal_nan=True))
    residual = session.residual(np.nan_to_num(select(images, "model-pb")))
    suite.below("the residual of the model of fluxes", apart(residual, select(images, "residual")), ROUNDING)
    restored = session.restore(select(images, "model-pb"), residual)
    suite.below("restored", apart(restored, select(images, "image")), ROUNDING)
    suite.below("the beam", abs(session.beam()[0] / select_beam(images) - 1), 1e-6)


def select_beam(images):
    return images.select(kind="image")[0].beam_deg[0]


def check_empty(suite, obs):
    """An output that no visibility is of has neither images nor a beam of the mosaic."""
    session = tessera.Session(obs, field="p2", channels_out=2, **MOSAIC)
    suite.true("an output without data", np.isnan(session.dirty(0)).all() and np.isnan(session.response(0)).all())
    suite.true("another one", np.isfinite(session.dirty(1)).any() and np.isfinite(session.response(1)).any())


def check_read(suite, obs, model):
    """NAME means the models of fluxes, beside which there are those that beams have been applied to."""
    name, session = suite.path("made"), tessera.Session(obs, channels_out=2, **MOSAIC)
    for channel, freq in enumerate(FREQ):
        for end, factor in (("model", .5), ("model-pb", 1)):
            uvfits.write_model(f"{name}-{channel:04d}-{end}.fits", factor * (channel + 1) * model,
                               np.deg2rad(SCALE / 3600), freq_hz=freq)
    for channel in range(2):
        suite.true(f"the model of fluxes of channel {channel}", same(session.read_model(name, channel), (channel + 1) * model))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        session.read_model(f"{name}-0000-model.fits")
    suite.true("a warning of a file as the data see it", any("in true flux" in str(w.message) for w in caught))


def check_held(suite, obs):
    """What a session holds stays as it was opened, also in calls that clean; its own options may be given again."""
    session = tessera.Session(obs, **MOSAIC)
    made = session.clean(niter=1, mosaic=True, primary_beam="airy:25,2", pb_limit=.3, pbcor=True, no_dirty=True)
    suite.equal("the session's own options, and none of a dirty image", [
        k for k in KINDS if not made.select(kind=k)], ["dirty"])
    single = tessera.Session(obs, field="p0", **OPTIONS)
    for what, call, words in (
            ("a mosaic of one pointing", lambda: single.clean(niter=1, mosaic=True), "--mosaic says what a session holds"),
            ("a beam of it", lambda: single.clean(niter=1, primary_beam="auto"), "opened without it"),
            ("another beam", lambda: session.clean(niter=1, primary_beam="airy:20"), "opened with 'airy:25,2'"),
            ("another limit", lambda: session.clean(niter=1, pb_limit=.1), "opened with '0.3'"),
            ("weights of all channels", lambda: session.clean(niter=1, mf_weighting=True), "--mf-weighting says"),
            ("files", lambda: session.clean(niter=1, output=suite.path("no")), "--output says")):
        try:
            call()
            suite.true(f"{what}: refused", False)
        except tessera.UsageError as error:
            suite.true(f"{what}: {error}", words in str(error) and "\n" not in str(error))
    suite.true("after that, it cleans", len(session.clean(niter=1).select(kind="image")) == 1)


def check_refused(suite, obs):
    session = tessera.Session(obs, **MOSAIC)
    zero = np.zeros(session.shape)

    def opened(**options):
        return lambda: tessera.Session(obs, **{**MOSAIC, **options})
    for what, call, words in (
            ("facets", opened(facets="4"), "--mosaic cannot be combined with --facets"),
            ("w-projection", opened(w="projection", reproducible=False), "--mosaic cannot be combined with --w projection"),
            ("a beam without a mosaic", opened(mosaic=False, pb_limit=None), "--primary-beam needs --mosaic"),
            ("weights", opened(store_imaging_weights=True), "imaging weights"),
            ("a residual of a file", lambda: session.residual("model.fits"), "arrays"),
            ("a prediction of a file", lambda: session.predict("model.fits"), "arrays"),
            ("a facet", lambda: session.predict(zero, facet="F0"), "no facets"),
            ("solutions", lambda: session.solutions("x.h5"), "no facets"),
            ("a limit without a mosaic", opened(mosaic=False, primary_beam=None), "--pb-limit has no effect without --mosaic"),
            ("--pb-mask", lambda: session.clean(niter=10, pb_mask=.5), "of a mosaic, --pb-limit"),
            ("a choice of scales", lambda: session.clean(niter=10, multiscale_choice="fit"), "without --multiscale"),
            ("--save-source-list", lambda: session.clean(niter=10, save_source_list=True), "--save-source-list")):
        try:
            call()
            suite.true(f"{what}: refused", False)
        except tessera.UsageError as error:
            suite.true(f"{what}: {error}", words in str(error) and "\n" not in str(error))


# ---- full ----

def check_outputs(suite, obs):
    """Outputs of which each has weights, and so beams, of its own."""
    options = dict(channels_out=2, intervals_out=2, **MOSAIC)
    outputs = [(i, c) for i in range(2) for c in range(2)]
    check_images(suite, "outputs", tessera.Session(obs, **options), tessera.image(obs, **options), outputs)
    check_clean(suite, obs, {}, channels_out=2)
    check_clean(suite, obs, dict(multiscale=True, auto_mask=5))


def check_turning(suite, model, file):
    """A beam that turns is the mean over the integrations of an interval; a column of predict --mosaic."""
    sky = suite.path("sky.csv")
    with open(sky, "w", encoding="utf-8") as to:
        to.write("ra,dec,flux_jy\n60deg,-30deg,1\n")
    path, cube = suite.path("turning.ms"), write_cube(suite.path("beam.fits"), [1.1e9, 1.2e9, 1.3e9], False, False)
    simulate(path, sky, layout="meerkat", duration="4h", integration="600s", freq="1.2GHz", channels=2,
             width="50MHz", ra="60deg", dec="-30deg", start="2026-01-01", extra=(
                 "--antennas", "5", "--max-radius", "250m", "--pointings", "hex:2,0.3deg", "--overwrite"))
    options = {**MOSAIC, "primary_beam": cube, "intervals_out": 2}
    session = tessera.Session(path, **options)
    check_images(suite, "a beam that turns", session, tessera.image(path, **options), ((0, 0), (1, 0)))
    check_rectangle(suite, path, options)
    whole = tessera.Session(path, **{**options, "intervals_out": 1})
    result = program("predict", path, "--mosaic", "--model", file, "--primary-beam", cube, "--column", "SEEN",
                     "--accuracy", "1e-6")
    if not suite.ran("predict --mosaic", result):
        return
    seen = mosaic_sums.read_pointings(suite, path, "SEEN")
    for made in whole.predict(model):
        suite.below(f"the column of field {made.field}",
                    l2_error(made.vis[..., [0, -1]].mean(-1), seen.vis[seen.field == made.field]), ROUNDING)
    check_half(suite, session, seen, model)


def check_half(suite, session, obs, model):
    """Of an interval, the beam is the mean over its integrations: direct sums, with a beam whose file is interpolated."""
    steps = np.unique(obs.time)
    half = obs.time >= steps[len(steps) // 2]
    rows = {name: getattr(obs, name)[half] for name in ("uvw", "antenna", "time", "field", "scan", "vis", "weight")}
    later = dataclasses.replace(obs, **rows)
    x = (np.arange(N) - N // 2) * np.deg2rad(SCALE / 3600)
    joint = mosaic_sums.Mosaic(later, mosaic_sums.Dishes([Pattern()], [0] * 5), np.ones_like(later.weight),
                               *offset_radec(60, -30, -x[None, :], x[:, None]))
    seen = joint.predicted(model)
    for made in session.predict(model, interval=1):
        suite.below(f"half of the time of field {made.field}",
                    l2_error(made.vis[..., [0, -1]].mean(-1), seen[later.field == made.field]), 1e-2)


def check_rectangle(suite, path, options):
    """A pixel that an interval sees at --pointing-limit is predicted, though the mean over all times is below it there."""
    low, high = (tessera.Session(path, **{**options, "intervals_out": 6, "pointing_limit": limit}) for limit in (.02, .5))
    worst, seen = 0, 0
    for angle in np.arange(0, 2 * np.pi, np.pi / 12):
        model = np.zeros((N, N))
        model[N // 2 + int(round(EDGE * np.sin(angle))), N // 2 + int(round(EDGE * np.cos(angle)))] = 1
        for interval in range(6):
            for a, b in zip(low.predict(model, interval=interval), high.predict(model, interval=interval)):
                power = np.abs(a.vis).max()
                if power > .51:
                    seen += 1
                    worst = max(worst, np.abs(a.vis - b.vis).max())
    suite.true(f"{seen} pixels above a limit", seen > 0)
    suite.below("pixels above the limit in an interval", worst, 1e-5)


def check_unlike(suite, obs, source, model):
    """Dishes that differ: all pairs of them together make a field's rows."""
    path = suite.path("dishes.txt")
    with open(path, "w", encoding="utf-8") as to:
        to.write("A0[0-3] airy:25,2\n* airy:15\n")
    options = {**MOSAIC, "primary_beam": f"antennas:{path}"}
    session = tessera.Session(obs, **options)
    check_images(suite, "unlike dishes", session, tessera.image(obs, **options))
    check_residuals(suite, obs, source, model, options)


def main():
    suite = Suite("session_mosaic")
    obs, source = write_observation(suite.path("obs.uvfits"))
    model, file = points(suite)
    check_images(suite, "a mosaic", tessera.Session(obs, **MOSAIC), tessera.image(obs, **MOSAIC))
    check_models(suite, obs, source, model, file)
    check_clean(suite, obs, {})
    check_empty(suite, obs)
    check_read(suite, obs, model)
    check_refused(suite, obs)
    check_held(suite, obs)
    if FULL:
        check_outputs(suite, obs)
        check_unlike(suite, obs, source, model)
        if have_ms() and casacore_python():
            check_turning(suite, model, file)
    suite.finish()


main()
