#!/usr/bin/env python3
"""Minor loops against CLEAN in numpy, component by component; and what must hold after any loop."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import clean_scene as scene
from e2e import FULL

WORK = os.environ.get("TESS_WORK", "/tmp/clean_numpy")


def check_residual(dirty, psf, model, residual, slack):
    error = np.abs(dirty - scene.convolve(model, psf) - residual).max()
    assert error <= slack * np.abs(dirty).max(), (error, np.abs(dirty).max())


def hogbom_500():
    """All pixels are candidates, so that Clark's loop is Högbom's."""
    psf = scene.make_psf(128, 128)
    sky = scene.make_sky(128, 128, 30, 2)
    sky[0, 0] = sky[-1, 5] = 1.5  # at the edges
    dirty = scene.convolve(sky, psf)
    expected, last = scene.hogbom(dirty, psf, 500)
    reports, model, residual, found = scene.run(WORK, dirty, psf, niter=500, mgain=1, double=1)
    assert reports[0]["iterations"] == 500 and reports[0]["end"] == 4, reports
    assert np.array_equal(found[:, 1], expected[:, 0])
    # sums of 500 subtractions of values of the peak's size in double
    assert np.abs(found[:, 2] - expected[:, 1]).max() < 1e-12 * np.abs(dirty).max()
    assert np.abs(residual - last).max() < 1e-12 * np.abs(dirty).max()
    check_residual(dirty, psf, model, residual, 1e-13)
    assert abs(reports[0]["flux"] - model.sum()) < 1e-7 * abs(model).sum()
    for ranks, threads in ((3, 1), (2, 2)):
        again = scene.run(WORK, dirty, psf, ranks=ranks, threads=threads, niter=500, mgain=1,
                          double=1, slabs=1, repeatable=1)
        assert np.array_equal(found[:, 1], again[3][:, 1])
    _, model, residual, single = scene.run(WORK, dirty, psf, niter=500, mgain=1)
    # equal values within rounding may swap components of single precision
    assert (single[:, 1] == expected[:, 0]).mean() > .95
    check_residual(dirty, psf, model, residual, 1e-6)


def multiscale_by_text():
    for ny, nx, scales in ((128, 128, [0, 16, 32]), (90, 117, [0, 8, 16, 32])):
        psf = scene.make_psf(ny, nx)
        y, x = np.mgrid[:ny, :nx]
        edge = .1 * np.exp(-.5 * ((y - ny + 7) ** 2 + (x - 8.3) ** 2) / 5 ** 2)  # within the border
        dirty = scene.convolve(scene.make_sky(ny, nx, 8, 4) + edge, psf)
        expected, sky, last = scene.multiscale(dirty, psf, scales, 4.)
        reports, model, residual, found = scene.run(
            WORK, dirty, psf, niter=100000, multiscale=1, beam=4, double=1,
            scales=",".join(map(str, scales)))
        assert len(found) == len(expected), (len(found), len(expected))
        assert np.array_equal(found[:, :2], expected[:, :2])
        assert len(set(found[:, 0])) > 1, "one scale only"
        assert np.abs(found[:, 2] - expected[:, 2]).max() < 1e-11 * np.abs(expected[:, 2]).max()
        assert np.abs(model - sky).max() < 1e-11 * np.abs(sky).max()
        assert np.abs(residual - last).max() < 1e-11 * np.abs(dirty).max()
        check_residual(dirty, psf, model, residual, 1e-12)
        assert reports[0]["scales"][1][0] == scales[1]


def coarser_grids():
    """The residual at large scales by way of coarser grids: the same model, and an exact residual."""
    psf = scene.make_psf(192, 200)  # with frequencies for which a grid of scale 8 would be too coarse
    dirty = scene.convolve(scene.make_sky(192, 200, 9, 5), psf)
    dirty += scene.convolve(np.random.default_rng(3).normal(0, .01, dirty.shape), psf)
    options = {"niter": 100000, "multiscale": 1, "beam": 4, "scales": "0,8,24,48", "gaussian": 1,
               "repeatable": 1}
    exact = scene.run(WORK, dirty, psf, grids=2, **options)
    coarse = scene.run(WORK, dirty, psf, grids=1, **options)
    one, other = exact[0][0], coarse[0][0]
    assert not np.array_equal(exact[1], coarse[1]), "no coarser grid was used"
    assert len(set(coarse[3][:, 0])) > 1 and one["end"] == other["end"], (one, other)
    assert np.array_equal(exact[3][:, :2], coarse[3][:, :2]), "other components"
    for word in ("peak_start", "flux", "rms"):
        assert abs(other[word] / one[word] - 1) < 1e-5, (word, one, other)
    assert np.abs(exact[1] - coarse[1]).max() < 1e-5 * np.abs(exact[1]).max()
    check_residual(dirty, psf, coarse[1], coarse[2], 1e-5)


def shifts():
    """A shift of the sky shifts the model; a residual has what the model has not."""
    for ny, nx in ((96, 80), (81, 103), (128, 65)):
        psf = scene.make_psf(ny, nx)
        y, x = np.mgrid[:ny, :nx]
        # not symmetric: equal peaks would be ties
        sky = .1 * np.exp(-.5 * ((y - ny // 2 - .3) ** 2 / 6 ** 2 + (x - nx // 2 - .2) ** 2 / 5 ** 2))
        sky[sky < 1e-3] = 0
        sky[40:44, 30] += [1, .5, -.3, 2]
        mask = np.zeros((ny, nx))  # sidelobes that one image has and another has not
        mask[14:-14, 14:-14] = 1
        for options in ({}, {"multiscale": 1, "beam": 4}):
            models, used = [], []
            for dy, dx in ((0, 0), (7, -9), (-6, 5)):
                dirty, inside = scene.convolve(np.roll(sky, (dy, dx), (0, 1)), psf), np.roll(
                    mask, (dy, dx), (0, 1))
                _, model, residual, found = scene.run(WORK, dirty, psf, mask=inside, niter=300,
                                                      double=1, **options)
                check_residual(dirty, psf, model, residual, 1e-12)
                models.append(np.roll(model, (-dy, -dx), (0, 1)))
                used.append(len(set(found[:, 0])))
            for model in models[1:]:
                assert np.abs(models[0] - model).max() < 1e-9 * np.abs(models[0]).max(), (ny, nx, options)
            assert used[0] > 1 or not options, "one scale only"


def final_threshold():
    """Eight sub-minor loops at the final threshold end cleaning, though some pixels are above it."""
    psf = scene.make_psf(96, 120)
    noise = scene.convolve(np.random.default_rng(0).normal(0, .05, (96, 120)), psf)
    dirty = scene.convolve(scene.make_sky(96, 120, 12, 4), psf) + noise
    report = scene.run(WORK, dirty, psf, niter=100000, multiscale=1, beam=4, double=1, mgain=1,
                       threshold=.05 * np.abs(dirty).max(), scale_gain=.97)[0][0]
    assert report["loops"] == 8 and report["peak_end"] > report["final"], report
    assert report["end"] == 1 and report["again"] == 0, report


def local_rms():
    """The lowest local noise: of the pixels that a window has, near edges and the horizon, too."""
    for ny, nx, dead in ((96, 96, 0), (75, 102, 9)):
        psf = scene.make_psf(ny, nx)
        dirty = scene.convolve(scene.make_sky(ny, nx, 9, 2), psf)
        dirty += np.random.default_rng(6).normal(0, .05, dirty.shape)
        valid = np.ones((ny, nx))
        valid[:dead] = 0
        y, x = np.mgrid[:ny, :nx]
        window = np.exp(-4 * np.log(2) * ((y - ny // 2) ** 2 + (x - nx // 2) ** 2) / 24. ** 2)
        square, share = (scene.convolve(image, window) for image in (valid * dirty ** 2, valid))
        local = np.sqrt(square / np.where(valid > 0, share, np.inf))
        sigma = local[valid > 0].min()
        dirty[valid == 0] = np.nan
        for ranks in (1, 3):
            reports = scene.run(WORK, dirty, psf, ranks=ranks, niter=5, beam=4, window=6, local_rms=1,
                                double=1)[0]
            assert abs(reports[0]["sigma"] / sigma - 1) < 1e-8, (reports[0]["sigma"], sigma)
        for strength in (1, .5, 0):
            report = scene.run(WORK, dirty, psf, niter=5, beam=4, window=6, local_rms=1, strength=strength,
                               double=1)[0][0]
            factor = (sigma / np.where(valid > 0, local, np.inf)) ** strength
            peak = np.nanmax(np.abs(dirty * factor))
            assert abs(report["peak_start"] / peak - 1) < 1e-7, (strength, report["peak_start"], peak)


def same_bits():
    """Any number of ranks and threads."""
    psf = scene.make_psf(75, 88)
    dirty = scene.convolve(scene.make_sky(75, 88, 12, 3), psf)
    dirty += np.random.default_rng(5).normal(0, 1e-3, dirty.shape)
    dirty[:4] = np.nan
    for options in ({"multiscale": 1, "beam": 4, "gaussian": 1, "grids": 1}, {}):
        first = None
        # threads of several ranks wait long for one another at each scale: --full has them
        both = 2 if FULL or not options else 1
        for ranks, threads, slabs in ((1, 1, 0), (1, 4, 0), (2, both, 0), (3, 1, 1), (4, 1, 2), (7, 1, 0)):
            got = scene.run(WORK, dirty, psf, ranks=ranks, threads=threads, slabs=slabs, loops=2,
                            niter=3000, auto_threshold=3, auto_mask=5, repeatable=1, **options)
            if first is None:
                first = got
                assert np.isnan(got[2][:4]).all() and not np.isnan(got[2][4:]).any()
                assert (got[1][:4] == 0).all() or options
                continue
            for k in (1, 2, 3):
                assert got[k].tobytes() == first[k].tobytes(), (ranks, threads, slabs, k)


if __name__ == "__main__":
    hogbom_500()
    multiscale_by_text()
    coarser_grids()
    shifts()
    final_threshold()
    local_rms()
    same_bits()
