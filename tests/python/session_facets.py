#!/usr/bin/env python3
"""tessera.Session by facets: images, predictions and cleaning against those of tessera.image() and tessera.predict(),
and solutions that change while the data, which are gone meanwhile, are not read again."""
import os
import pathlib

import numpy as np

from module import tessera
from e2e import FULL, Suite, l2_error, skip
from facet_scene import ANTENNAS, FREQ, NX, NY, ROWS, SCALE, STEP, write_gains, write_regions
import uvfits

try:
    import h5py  # noqa: F401
except ImportError:
    skip("h5py is not installed")

OPTIONS = dict(size=(NX, NY), scale=f"{SCALE}asec", weight="natural", reproducible=True, threads=2, accuracy=1e-6)
CLEAN = dict(niter=200, nmiter=2, mgain=.6)
INSIDE = (6, 4), (40, 20)  # columns and rows of a pixel in either facet


def write_observation(path):
    random = np.random.default_rng(2)
    uvw = uvfits.random_tracks(ROWS, 900.0, seed=5)
    vis = random.normal(size=(ROWS, 4, 4)) + 1j * random.normal(size=(ROWS, 4, 4)) + [4, 4, 0, 0]
    weight = np.repeat(random.uniform(.5, 2, (ROWS, 4, 1)), 4, -1).astype("f4")
    uvfits.write(path, uvw, FREQ, vis, weight, antennas=ANTENNAS)
    return path


def same(a, b):
    return np.array_equal(a.astype("f4"), np.asarray(b).astype("f4"), equal_nan=True)


def apart(a, b):
    return l2_error(np.nan_to_num(a), np.nan_to_num(b))


def select(images, kind):
    return images.select(kind=kind)[0].data


def check_solutions(suite, obs, regions, gains):
    """Images with the solutions of each moment; a file of data that is gone is not read."""
    facets = dict(facets=regions, **OPTIONS)
    plain = tessera.image(obs, **facets)
    made = [tessera.image(obs, facet_solutions=path, **facets) for path in gains]
    fresh = [tessera.Session(obs, facet_solutions=path, **facets) for path in gains]
    session = tessera.Session(obs, **facets)
    suite.true("names of facets", session.facets == ["F0", "F1"])
    os.rename(obs, obs + ".gone")
    for turn in range(2):
        suite.below(f"turn {turn}: without solutions", apart(session.dirty(), plain.dirty.data), 2e-6)
        suite.true(f"turn {turn}: responses of 1", (session.response() == 1).all())
        for path, images, other in zip(gains, made, fresh):
            session.solutions(path)
            suite.below(f"turn {turn}: dirty image", apart(session.dirty(), images.dirty.data), 2e-6)
            suite.below(f"turn {turn}: PSF", apart(session.psf(), images.psf.data), 2e-6)
            suite.below(f"turn {turn}: response", apart(session.response(), select(images, "pb")), 1e-6)
            suite.true(f"turn {turn}: what a session gives that begins with these", all(
                np.array_equal(a, b, equal_nan=True) for a, b in zip(
                    (session.dirty(), session.psf(), session.response()),
                    (other.dirty(), other.psf(), other.response()))))
        session.solutions()
    os.rename(obs + ".gone", obs)


def check_models(suite, obs, regions, solutions):
    """Predictions of all facets and of each, with gains and without, and residuals."""
    facets = dict(facets=regions, **OPTIONS)
    model = np.zeros((NY, NX))
    for k, (x, y) in enumerate(INSIDE):
        model[y, x] = k + 1
    name = suite.path("model.fits")
    uvfits.write_model(name, model, STEP, freq_hz=FREQ[0])
    session = tessera.Session(obs, facet_solutions=solutions, **facets)
    keys = {"threads": 2, "accuracy": 1e-6}

    def truth(**options):
        return tessera.predict(obs, model=name, facets=regions, **options, **keys)[0].vis

    for what, asked, options in (
            ("all facets", {}, dict(facet_solutions=solutions)),
            ("all facets without gains", dict(gains=False), {}),
            ("a facet", dict(facet="F1"), dict(facet_solutions=solutions, select_facets="F1")),
            ("a facet without gains", dict(facet="F0", gains=False), dict(select_facets="F0"))):
        suite.below(f"prediction of {what}", l2_error(session.predict(model, **asked)[0].vis, truth(**options)), 2e-6)
    both = sum(session.predict(model, facet=facet)[0].vis for facet in session.facets)
    suite.below("facets add up", l2_error(both, session.predict(model)[0].vis), 1e-6)
    check_residual(suite, obs, session, model, facets)
    session.solutions()
    suite.below("predictions follow the solutions", l2_error(session.predict(model)[0].vis, truth()), 2e-6)


def check_residual(suite, obs, session, model, facets):
    """The residual is the image of the data less the prediction; components are restored as images show them."""
    uvw, _, vis, weight, _ = uvfits.read(obs)
    predicted = session.predict(model)[0]
    order = [predicted.correlations.index(name) for name in ("XX", "YY", "XY", "YX")]
    other = suite.path("residual.uvfits")
    uvfits.write(other, uvw, FREQ, vis - predicted.vis[..., order], weight, antennas=ANTENNAS)
    left = tessera.Session(other, facet_solutions=suite.path("gains2.h5"), **facets)
    suite.below("a residual", l2_error(np.nan_to_num(session.residual(model)), np.nan_to_num(left.dirty())), 1e-5)
    shown = session.restore(model, np.zeros((NY, NX)), beam=.01)
    for x, y in INSIDE:
        suite.below("a component as images show it", abs(shown[y, x] / (model * session.response())[y, x] - 1), 1e-3)


def check_read(suite, obs, regions, solutions):
    """NAME means the models that predict() of the session's gains multiplies: of fluxes with gains, else as data see them."""
    name, session = suite.path("kept"), tessera.Session(obs, facets=regions, **OPTIONS)
    for end, flux in (("model", 1), ("model-pb", 2), ("pb", 1)):
        uvfits.write_model(f"{name}-{end}.fits", np.full((NY, NX), float(flux)), STEP, freq_hz=FREQ[0])
    for what, path, flux in (("without gains", None, 1), ("with gains", solutions, 2), ("without them again", None, 1)):
        session.solutions(path)
        suite.true(f"the model {what}", same(session.read_model(name), np.full((NY, NX), flux)))
    os.remove(f"{name}-model-pb.fits")
    session.solutions(solutions)
    suite.true("gains multiply a model that a beam has been applied to", (session.read_model(name) == 1).all())


def check_clean(suite, obs, regions, solutions):
    """Cleaned in a session whose solutions came later, with the PSF of each facet, as by tessera.image()."""
    facets = dict(facets=regions, **OPTIONS)
    for more in ({}, dict(psf_per_facet=True))[0 if FULL else 1:]:
        images = tessera.image(obs, facet_solutions=solutions, **facets, **CLEAN, **more)
        session = tessera.Session(obs, **facets, **more)
        session.solutions(solutions)
        made = session.clean(**CLEAN)
        for kind in ("dirty", "psf", "model", "residual", "image", "pb", "image-pb", "model-pb"):
            suite.true(f"{kind} of cleaning {more}", same(select(made, kind), select(images, kind)))


def check_forms(suite, obs, regions, solutions):
    """The session's own solutions may be given again in another form."""
    session = tessera.Session(obs, facets=regions, facet_solutions=solutions, soltabs="amplitude000,phase000", **OPTIONS)
    made = session.clean(niter=1, facet_solutions=[pathlib.Path(solutions)], soltabs=["amplitude000", "phase000"])
    suite.equal("the same solutions in another form", len(made.select(kind="image")), 1)


def check_options_before_solutions(suite, obs, regions, gains):
    """Options of solutions that come later, and of beams that another call does not fit."""
    session = tessera.Session(obs, facets=regions, solution_interpolation="linear", lobe_beam=True, **OPTIONS)
    session.solutions(gains[0])
    session.solutions(gains[1])
    given = tessera.Session(obs, facets=regions, solution_interpolation="linear", facet_solutions=gains[1], **OPTIONS)
    suite.true("an option before its solutions", same(session.dirty(), given.dirty()))
    if FULL:
        made, other = (s.clean(**CLEAN, beam_size="40asec") for s in (session, given))
        suite.true("and when it cleans", same(select(made, "image"), select(other, "image")))


def check_refused(suite, obs, regions, solutions, full):
    session = tessera.Session(obs, facets=regions, facet_solutions=solutions, **OPTIONS)
    before = session.dirty()
    plain = tessera.Session(obs, **OPTIONS)
    for what, call, error, words in (
            ("a facet that is not there", lambda: session.predict(before, facet="F7"), tessera.UsageError, "F7"),
            ("a facet of a session without", lambda: plain.predict(before, facet="F0"), tessera.UsageError, "no facets"),
            ("solutions without facets", lambda: plain.solutions(solutions), tessera.UsageError, "no facets"),
            ("four gains for two correlations", lambda: session.solutions(full), tessera.UsageError, "correlations"),
            ("a table that is not there", lambda: session.solutions(solutions, "tec000"), tessera.InputError, "tec000"),
            ("solutions of a call", lambda: session.clean(niter=1, facet_solutions=full), tessera.UsageError,
             "facet_solutions: solutions() gives"),
            ("other facets", lambda: session.clean(niter=1, facets="4"), tessera.UsageError, "--facets says what"),
            ("a model in a file", lambda: session.residual("model.fits"), tessera.UsageError, "arrays")):
        try:
            call()
            suite.true(f"{what}: refused", False)
        except error as caught:
            suite.true(f"{what}: {caught}", words in str(caught))
    suite.true("the facets keep their gains", np.array_equal(session.dirty(), before, equal_nan=True))
    all_four = tessera.Session(obs, facets=regions, stokes="IQUV", **OPTIONS)
    all_four.solutions(full)
    made = tessera.image(obs, facets=regions, stokes="IQUV", facet_solutions=full, **OPTIONS)
    for k, name in enumerate("IQUV"):
        suite.below(f"with all correlations they are taken: {name}", apart(
            all_four.dirty()[k], made.select(kind="dirty", polarisation=name)[0].data), 2e-6)


def main():
    suite = Suite("session_facets")
    obs, regions = write_observation(suite.path("obs.uvfits")), write_regions(suite.path("facets.reg"))
    gains = [suite.path("gains2.h5"), suite.path("one.h5"), suite.path("gains4.h5")]
    write_gains(gains[0], 2, bad=True)
    write_gains(gains[1], 2, one=True)
    write_gains(gains[2], 4)
    check_solutions(suite, obs, regions, gains[:2])
    check_models(suite, obs, regions, gains[0])
    check_clean(suite, obs, regions, gains[0])
    check_read(suite, obs, regions, gains[0])
    check_forms(suite, obs, regions, gains[0])
    check_options_before_solutions(suite, obs, regions, gains[:2])
    check_refused(suite, obs, regions, gains[0], gains[2])
    suite.finish()


main()
