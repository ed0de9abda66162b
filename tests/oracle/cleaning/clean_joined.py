#!/usr/bin/env python3
"""Minor loops of several images, channels and polarisations, against CLEAN in numpy, component by
component: what a pixel is chosen by, each image's own value, spectra that are fitted, channels that
are averaged, and what must hold after any loop."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import clean_scene as scene
from e2e import FULL

WORK = os.environ.get("TESS_WORK", "/tmp/clean_joined")
FREQ = np.array([.9, 1.0, 1.15, 1.4]) * 1e9
WEIGHT = np.array([3., 1., 2., .5])
SHARE = WEIGHT / WEIGHT.sum()
SCALES, BEAM = [0, 12, 24], 4.


def text(values):
    return ",".join(f"{v:.17g}" for v in values)


def channels(ny=72, nx=80, noise=1e-3, pols=1, blobs=4):
    """Dirty images and PSFs [channels · pols]: every channel has its own beam, and sources have
    spectra of their own. Polarised sources are not where the strongest ones of I are."""
    rng = np.random.default_rng(11)
    dirty, psfs = [], []
    skies = [scene.make_sky(ny, nx, 9, blobs, seed) for seed in range(4, 8)]
    slopes = [-1.5, .5, -.7, 0]
    for c, freq in enumerate(FREQ):
        psf = scene.make_psf(ny, nx, 1 + c, BEAM * (FREQ[1] / freq) ** .5) * (1 + .01 * c)
        for p in range(pols):
            total = sum((freq / 1e9) ** slopes[k] * np.roll(skies[k], 5 * p, 0) * (.6 if p else 1) *
                        (-1 if p and k % 2 else 1) for k in range(4))
            dirty.append(scene.convolve(total, psf) + rng.normal(0, noise, (ny, nx)))
            psfs.append(psf)
    return np.array(dirty), np.array(psfs)


def mean(values):
    return np.tensordot(SHARE, values, 1)


def squares(values):
    return np.sqrt(np.tensordot(SHARE, values ** 2, 1))


def roots(linked, factor=1.):
    """The mean over channels of sqrt(factor · Σ S²) over the linked polarisations."""
    def metric(values):
        each = values.reshape((len(FREQ), -1) + values.shape[1:])[:, linked]
        return np.tensordot(SHARE, np.sqrt(factor * (each ** 2).sum(1)), 1)
    return metric


def polynomial(terms, freq=FREQ, weight=WEIGHT, at=None):
    """The values of a weighted least-squares polynomial in ν/ν0 − 1, by a fit of numpy."""
    at = freq if at is None else at
    nu0 = (WEIGHT * FREQ).sum() / WEIGHT.sum()
    return lambda values: np.polyval(
        np.polyfit(freq / nu0 - 1, values, terms - 1, w=np.sqrt(weight)), at / nu0 - 1)


def check(name, mine, found, expected, residual=None, last=None, slack=1e-11):
    assert len(found) == len(expected), (name, len(found), len(expected))
    assert np.array_equal(found[:, :-mine], expected[:, :-mine]), name
    error = np.abs(found - expected).max() / np.abs(expected[:, -mine:]).max()
    assert error < slack, (name, error)
    if residual is not None:
        assert np.abs(residual - last).max() < slack * np.abs(last).max() * 10, name


def searches():
    """A single scale, all pixels candidates: Högbom's loop."""
    dirty, psf = channels()
    both, psf2 = channels(pols=2)
    centre = lambda share, psfs: (share * psfs[:, psfs.shape[1] // 2, psfs.shape[2] // 2]).sum() / share.sum()
    pol_share = np.repeat(SHARE, 2)
    one = pol_share * np.tile([0, 1], len(FREQ))
    cases = [("mean", dirty, psf, mean, SHARE, {}),
             ("squared", dirty, psf, squares, SHARE, {"squared": 1}),
             ("roots", both, psf2, roots([0, 1]), pol_share, {"pols": 2}),
             ("half", both, psf2, roots([0, 1], .5), pol_share, {"pols": 2, "pol_share": .5}),
             ("linked", both, psf2, lambda v: mean(v[1::2]), one, {"pols": 2, "linked": "01"}),
             ("all squares", both, psf2, lambda v: np.sqrt(np.tensordot(pol_share, v ** 2, 1)), pol_share,
              {"pols": 2, "squared": 1}),
             ("polynomial", dirty, psf, mean, SHARE,
              {"spectrum": 1, "terms": 2, "freqs": text(FREQ), "fit": polynomial(2)}),
             ("three terms", dirty, psf, squares, SHARE,
              {"squared": 1, "spectrum": 1, "terms": 3, "freqs": text(FREQ), "fit": polynomial(3)})]
    for name, images, psfs, metric, share, options in cases:
        fit = options.pop("fit", lambda values: values)
        expected, last = scene.joined_hogbom(images, psfs, 200, metric, fit, centre=centre(share, psfs))
        weights = np.repeat(WEIGHT, options.get("pols", 1))
        _, model, residual, found = scene.run(WORK, images, psfs, niter=200, mgain=1, double=1,
                                              weights=text(weights), **options)
        check(name, len(images), found[:, 1:], expected, residual, last, 1e-10)


def multiscale():
    dirty, psf = channels()
    for name, metric, options in (
            ("mean", mean, {}), ("squared", squares, {"squared": 1}),
            ("fit", mean, {"spectrum": 1, "terms": 2, "freqs": text(FREQ), "fit": polynomial(2)})):
        fit = options.pop("fit", lambda values: values)
        expected, sky, last = scene.multiscale(dirty, psf, SCALES, BEAM, metric=metric, fit=fit, share=SHARE,
                                               mgain=.7)
        _, model, residual, found = scene.run(
            WORK, dirty, psf, niter=100000, multiscale=1, beam=BEAM, double=1, scales=text(SCALES),
            weights=text(WEIGHT), mgain=.7, **options)
        check(name, len(FREQ), found, expected, residual, last, 1e-9)
        assert len(set(found[:, 0])) > 1, "one scale only"
        assert np.abs(model - sky).max() < 1e-9 * np.abs(sky).max(), name


def channel_noise(images, share):
    """What is expected of share · noise² of a channel: the lower quartile over some pixels."""
    pixels = images.reshape(len(images), -1)
    pixels = pixels[:, ::pixels.shape[1] // 4096 | 1][:, :4096]
    off = np.sort((share[:, None] * (pixels - share @ pixels) ** 2).sum(0))
    part = 2 / 9 / (len(images) - 1)
    return off[len(off) // 4] / (len(images) - 1) / (1 - part - .674489750196082 * part ** .5) ** 3


def log_polynomial():
    """Components are the constant mean, or such functions of frequency: these are more probable than
    others nearby, and fit better than the mean."""
    dirty, psf = channels(noise=1e-2)
    nu0 = (WEIGHT * FREQ).sum() / WEIGHT.sum()
    x = np.log10(FREQ / nu0)
    _, _, _, found = scene.run(WORK, dirty, psf, niter=100, mgain=1, double=1, weights=text(WEIGHT),
                               spectrum=2, terms=2, freqs=text(FREQ))
    residual, (_, ny, nx) = dirty.copy(), dirty.shape
    centre = (SHARE * psf[:, ny // 2, nx // 2]).sum()
    known, constant = channel_noise(dirty, SHARE) * (.1 / centre) ** 2, 0
    for _, at, *flux in found:
        y, x_pixel = divmod(int(at), nx)
        values, flux = .1 / centre * residual[:, y, x_pixel], np.array(flux)
        slope, log_flux = np.polyfit(x, np.log10(np.abs(flux)), 1)
        sign = np.sign(flux[0])
        again = sign * 10 ** (log_flux + slope * x)
        assert np.abs(again - flux).max() < 1e-9 * np.abs(flux).max()
        misfit = lambda function: (SHARE * (values - function) ** 2).sum()
        # half of the misfit is that of each degree of freedom
        s2 = max(known, misfit(flux) / 2, 1e-12 * (SHARE * values ** 2).sum())
        gain = (misfit(SHARE @ values) - misfit(flux)) / s2
        if abs(slope) < 1e-9:
            assert np.abs(flux / (SHARE @ values) - 1).max() < 1e-9
            constant += 1
        else:
            cost = lambda a, b: misfit(sign * 10 ** (a + b * x)) + s2 * (b / 2) ** 2
            assert gain > 2 and abs(slope) <= 2 * gain ** .5, (gain, slope)
            least = cost(log_flux, slope)
            # iterations know the misfit of the step before
            for da, db in ((5e-3, 0), (-5e-3, 0), (0, .1), (0, -.1)):
                assert least <= cost(log_flux + da, slope + db), (least, da, db)
        pixels = np.zeros((ny, nx))
        pixels[y, x_pixel] = 1
        residual -= flux[:, None, None] * np.array([scene.convolve(pixels, p) for p in psf])
    assert 0 < constant < len(found) / 2, (constant, len(found))


def log_bounds():
    """Noise alone, also where channels are averaged: no channel gets more than the noise allows, and few
    components have a slope. Strong sources have the spectra of their values, by one term or several."""
    ny, nx, freq = 96, 100, np.linspace(1, 2, 8) * 1e9
    rng = np.random.default_rng(5)
    psf = np.array([scene.make_psf(ny, nx, 3, BEAM)] * 8)
    alone = np.array([scene.convolve(rng.normal(0, 1, (ny, nx)), p) for p in psf])
    options = dict(niter=3000, mgain=1, double=1, auto_threshold=2, spectrum=2, freqs=text(freq), gain=.1)
    for terms, more in ((2, {}), (4, {}), (4, {"cleaned": 4}), (2, {"cleaned": 2})):
        report, model, residual, found = scene.run(WORK, alone, psf, terms=terms, **options, **more)
        assert np.isfinite(model).all() and np.isfinite(residual).all(), (terms, more)
        most = np.abs(alone.mean(0)).max()
        assert np.abs(model).max() < 4 * most, (terms, more, np.abs(model).max() / most)
        slopes = np.ptp(found[:, 2:], axis=1) > 1e-9 * np.abs(found[:, 2:]).max(1)
        assert len(found) > 50 and slopes.mean() < .4, (terms, more, slopes.mean())
    alphas, places = np.linspace(-2, 1, 12), [(y, x) for y in (20, 45, 70) for x in (20, 40, 60, 80)]
    sky = np.zeros((8, ny, nx))
    for alpha, at in zip(alphas, places):
        sky[(slice(None), *at)] = (freq / 1.4e9) ** alpha
    dirty = np.array([scene.convolve(s, p) for s, p in zip(sky, psf)]) + 1e-3 * alone
    for terms, more in ((2, {}), (3, {"cleaned": 4})):
        _, model, _, _ = scene.run(WORK, dirty, psf, terms=terms, **{**options, "auto_threshold": 5, "niter": 20000},
                                   **more)
        for alpha, (y, x) in zip(alphas, places):
            flux = model[:, y - 1:y + 2, x - 1:x + 2].sum((1, 2))
            found = np.polyfit(np.log(freq), np.log(flux), 1)[0]
            # averages of steep spectra are not those at the mean frequency
            assert abs(found - alpha) < (.1 if more else .05), (terms, alpha, found)


def many():
    """More images than a warp or a block has threads: each gets its share of what one image gets."""
    psf = scene.make_psf(40, 44, 3, BEAM)
    dirty = scene.convolve(scene.make_sky(40, 44, 5, 1), psf)
    share = np.linspace(.5, 1.5, 70)
    options = dict(niter=40, mgain=1, double=1)
    _, _, _, expected = scene.run(WORK, dirty, psf, **options)
    _, _, _, found = scene.run(WORK, share[:, None, None] * dirty, np.array([psf] * 70), **options)
    assert np.array_equal(found[:, 1], expected[:, 1])
    assert np.abs(found[:, 2:] - expected[:, 2:] * share).max() < 1e-9 * np.abs(expected[:, 2]).max()


def averaged():
    """Two channels are cleaned for four: of averages by weight, and spread by the fit. Channels without
    data take the fitted values."""
    dirty, psf = channels()
    groups = [slice(0, 2), slice(2, 4)]
    average = lambda images: np.array([(WEIGHT[g, None, None] * images[g]).sum(0) / WEIGHT[g].sum()
                                       for g in groups])
    weight = np.array([WEIGHT[g].sum() for g in groups])
    freq = np.array([(WEIGHT[g] * FREQ[g]).sum() for g in groups]) / weight
    _, alone, _, expected = scene.run(WORK, average(dirty), average(psf), niter=300, mgain=1, double=1,
                                      weights=text(weight), spectrum=1, terms=2, freqs=text(freq))
    _, model, residual, found = scene.run(WORK, dirty, psf, niter=300, mgain=1, double=1,
                                          weights=text(WEIGHT), spectrum=1, terms=2, freqs=text(FREQ),
                                          cleaned=2)
    check("averaged", 2, found, expected, slack=1e-9)
    assert np.array_equal(residual, dirty)
    spread = polynomial(2, freq, weight, FREQ)
    for at in zip(*np.nonzero(alone[0])):
        assert np.abs(spread(alone[(slice(None), *at)]) - model[(slice(None), *at)]).max() < 1e-9
    assert (alone[0] != 0).sum() > 10


def no_data():
    """An image of weight 0 is blank: the others are cleaned as they are without it, and it gets what the
    fit says."""
    dirty, psf = channels()
    some = [0, 1, 3]
    options = dict(niter=300, mgain=1, double=1, spectrum=1, terms=2)
    _, alone, _, expected = scene.run(WORK, dirty[some], psf[some], weights=text(WEIGHT[some]),
                                      freqs=text(FREQ[some]), **options)
    weight = WEIGHT * [1, 1, 0, 1]
    dirty[2] = psf[2] = np.nan
    _, model, residual, found = scene.run(WORK, dirty, psf, weights=text(weight), freqs=text(FREQ), **options)
    check("no data", 3, np.delete(found, 4, 1), expected, slack=1e-12)
    assert np.array_equal(model[some], alone) and np.isnan(residual[2]).all()
    nu0 = (weight * FREQ).sum() / weight.sum()
    for at in zip(*np.nonzero(alone[0])):
        values = np.polyval(np.polyfit(FREQ[some] / nu0 - 1, alone[(slice(None), *at)], 1,
                                       w=np.sqrt(WEIGHT[some])), FREQ[2] / nu0 - 1)
        assert abs(values - model[(2, *at)]) < 1e-9


def noise():
    """σ is that of the linear mean. That of squares and roots is their own, and thresholds count from
    their median."""
    dirty, psf = channels(noise=.1, blobs=0)
    both, psf2 = channels(noise=.1, blobs=0, pols=2)
    for images, psfs, metric, is_linear, options in (
            (dirty, psf, mean, True, {}), (dirty, psf, squares, False, {"squared": 1}),
            (both, psf2, roots([0, 1]), False, {"pols": 2})):
        left = metric(images)
        median = np.median(left)
        sigma = 1.4826022185 * np.median(np.abs(left - median))
        weights = text(np.repeat(WEIGHT, options.get("pols", 1)))
        report = scene.run(WORK, images, psfs, niter=5, double=1, weights=weights, auto_threshold=3,
                           **options)[0][0]
        assert abs(report["sigma"] / sigma - 1) < 1e-8, (report["sigma"], sigma)
        expected = 3 * sigma + (0 if is_linear else median)
        assert abs(report["final"] / expected - 1) < 1e-8, (report["final"], expected)


def local_rms():
    """The lowest local noise is that of the linear mean, also where a channel has no data."""
    dirty, psf = channels(noise=.1)
    ny, nx = dirty.shape[1:]
    y, x = np.mgrid[:ny, :nx]
    window = np.exp(-4 * np.log(2) * ((y - ny // 2) ** 2 + (x - nx // 2) ** 2) / 24. ** 2)
    for weight in (WEIGHT, WEIGHT * [1, 1, 0, 1]):
        left = np.tensordot(weight / weight.sum(), dirty, 1)
        square, share = (scene.convolve(image, window) for image in (left ** 2, np.ones((ny, nx))))
        sigma = np.sqrt(square / share).min()
        for ranks in (1, 3):
            report = scene.run(WORK, dirty, psf, ranks=ranks, niter=5, beam=4, window=6, local_rms=1,
                               double=1, weights=text(weight))[0][0]
            assert abs(report["sigma"] / sigma - 1) < 1e-8, (report["sigma"], sigma)


def same_bits():
    """Any number of ranks and threads."""
    dirty, psf = channels(pols=2)
    weights = text(np.repeat(WEIGHT, 2))
    for options in ({"multiscale": 1, "beam": BEAM}, {"squared": 1, "auto_mask": 5}, {"spectrum": 2}):
        first = None
        # threads of several ranks wait long for one another at each scale: --full has them
        both = 2 if FULL or "multiscale" not in options else 1
        for ranks, threads, slabs in ((1, 1, 0), (1, 3, 0), (2, both, 0), (3, 1, 1), (4, 1, 2)):
            got = scene.run(WORK, dirty, psf, ranks=ranks, threads=threads, slabs=slabs, loops=2, pols=2,
                            niter=2000, auto_threshold=3, repeatable=1, weights=weights, terms=2,
                            freqs=text(FREQ), **{"spectrum": 1, **options})
            first = first or got
            for k in (1, 2, 3):
                assert got[k].tobytes() == first[k].tobytes(), (ranks, threads, slabs, k)


if __name__ == "__main__":
    searches()
    multiscale()
    log_polynomial()
    log_bounds()
    many()
    averaged()
    no_data()
    noise()
    local_rms()
    same_bits()
