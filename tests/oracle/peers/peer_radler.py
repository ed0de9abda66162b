#!/usr/bin/env python3
"""Minor loops against Radler on the same float32 arrays: iterations, model, residual. Skipped where
the Python package `radler` is not installed. With several scales, sources stay clear of what wraps in
Radler, which pads the residual by a tenth, and neither scales nor the local rms. Residuals between
major iterations are those of numpy, which do not wrap.

Radler raises mgain to 1 − (1 − mgain)^p in the first major iterations: p is 1.2, 1.2 and 1.1. It is
told to begin with the fourth. A mask goes to Radler as a FITS file. Radler 1.2 goes on with the
automatic mask in the same call, with thresholds of its own; here another major iteration comes first,
as in WSClean. So its two phases are compared as two jobs, the second with the first one's components
as a mask."""
import os
import sys

import numpy as np

try:
    import radler as rd
except ImportError:
    print("radler is not installed")
    sys.exit(77)

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import clean_scene as scene

WORK = os.environ.get("TESS_WORK", "/tmp/peer_radler")
BEAM = 4.0
PIXEL = 1e-5
MGAIN, FIRST = .8, 3


def make_settings(shape, multiscale=False, mask=None, **options):
    settings = rd.Settings()
    ny, nx = shape
    settings.trimmed_image_width, settings.trimmed_image_height = nx, ny
    settings.pixel_scale.x = settings.pixel_scale.y = PIXEL
    settings.minor_iteration_count = 100000
    settings.major_loop_gain = MGAIN
    settings.thread_count = 1
    settings.algorithm_type = rd.AlgorithmType.multiscale if multiscale else rd.AlgorithmType.generic_clean
    for name, value in options.items():
        owner = settings
        *path, last = name.split("__")
        for part in path:
            owner = getattr(owner, part)
        setattr(owner, last, value)
    if mask is not None:
        from astropy.io import fits
        os.makedirs(WORK, exist_ok=True)
        path = os.path.join(WORK, "mask.fits")
        fits.writeto(path, mask.astype(np.float32), overwrite=True)
        settings.fits_mask = path
    return settings


def radler(dirty, psf, majors=1, model=None, **options):
    """Iterations of each major iteration; whether another one is wanted; the model, which is
    continued; the residual that Radler leaves."""
    model = np.zeros_like(dirty, np.float32) if model is None else model.astype(np.float32)
    residual, beam = np.empty_like(model), psf.astype(np.float32)
    join = {k: options.pop(k) for k in ("frequencies", "weights", "n_deconvolution_groups") if k in options}
    job = rd.Radler(make_settings(dirty.shape[-2:], **options), beam, residual, model, BEAM * PIXEL, **join)
    counts, again = [], True
    while again and len(counts) < majors:
        for left, image, own, shape in zip(*map(scene.stack, (residual, dirty, model, psf))):
            left[:] = image - scene.convolve(own.astype(float), shape)
        again = job.perform(FIRST + len(counts))
        counts.append(job.iteration_number - sum(counts))
    return counts, again, model.astype(float), residual.astype(float)


def field(side=512, noise=1e-3, seed=3, edge=None, blobs=8):
    psf = scene.make_psf(side, side).astype(np.float32).astype(float)
    sky = scene.make_sky(side, side, 40, blobs, seed, edge=side // 4 if edge is None else edge)
    dirty = scene.convolve(sky, psf) + np.random.default_rng(seed).normal(0, noise, (side, side))
    return dirty.astype(np.float32).astype(float), psf


def judge(name, reports, own, counts, again, model):
    """Iterations of all major iterations within 1 %, models within 1 % of the largest component."""
    count, total = [int(r["iterations"]) for r in reports], sum(counts)
    difference = np.abs(own - model).max() / np.abs(model).max()
    print(f"{name}: iterations {count}, Radler {counts}; model differs by {difference:.2g} of its largest "
          f"value; again {reports[-1]['again']:.0f} {again:d}; flux {own.sum():.6g} {model.sum():.6g}",
          flush=True)
    return (len(count) == len(counts) and abs(sum(count) - total) <= .01 * total and difference < .01
            and reports[-1]["again"] == again)


def ours(dirty, psf, **options):
    return scene.run(WORK, dirty, psf, niter=100000, mgain=MGAIN, beam=BEAM, **options)


def compare(name, dirty, psf, own, theirs, mask=None, majors=1):
    counts, again, model, _ = radler(dirty, psf, majors, mask=mask, **theirs)
    reports, found, _, _ = ours(dirty, psf, mask=mask, loops=majors, **own)
    return judge(name, reports, found, counts, again, model)


def channels(blobs):
    """Images of channels, each with its own PSF, of sources with spectra."""
    side, rng = 512, np.random.default_rng(9)
    freq = np.array([.9, 1.0, 1.1, 1.2]) * 1e9
    skies = [scene.make_sky(side, side, 15, blobs, seed, edge=side // 4) for seed in range(3)]
    psf = [scene.make_psf(side, side, 5 + c, BEAM * (1e9 / f) ** .5) for c, f in enumerate(freq)]
    dirty = [scene.convolve(sum((f / 1e9) ** a * s for a, s in zip((-.8, 0, -1.5), skies)), p) +
             rng.normal(0, 1e-2, (side, side)) for f, p in zip(freq, psf)]
    return [np.array(images, np.float32).astype(float) for images in (dirty, psf)] + [freq]


def joined():
    """Channels together. Radler fits polynomials of logarithms without weights: theirs are equal."""
    dirty, psf, freq = channels(2)
    points, psf2, _ = channels(0)
    weight = np.array([2., 1., 1.5, 1.])
    text = lambda values: ",".join(map(repr, map(float, values)))
    own = {"weights": text(weight), "freqs": text(freq)}
    theirs = {"weights": weight, "frequencies": np.array([freq - 5e7, freq + 5e7]).T.copy()}
    fit = lambda mode, terms: {"spectral_fitting__mode": getattr(rd.SpectralFittingMode, mode),
                               "spectral_fitting__terms": terms}
    pol, log = fit("polynomial", 2), {**fit("log_polynomial", 2), "weights": np.ones(4)}
    mine = {"spectrum": 1, "terms": 2}
    logs = {"spectrum": 2, "terms": 2, "weights": "1,1,1,1"}
    sigma, squares = {"auto_threshold_sigma": 4.}, {"squared_joins": True}
    scales = {"multiscale": True}
    cases = [("joined", {}, {}),
             ("joined squares", {"squared": 1}, squares),
             ("joined polynomial", mine, pol),
             ("joined polynomial of three terms", {**mine, "terms": 3}, fit("polynomial", 3)),
             ("joined polynomial of logarithms", logs, log),
             ("averaged", {**mine, "cleaned": 2}, {**pol, "n_deconvolution_groups": 2}),
             ("joined multiscale", {"multiscale": 1}, scales),
             ("joined multiscale polynomial", {"multiscale": 1, **mine}, {**scales, **pol}),
             ("joined multiscale logarithms", {"multiscale": 1, **logs}, {**scales, **log})]
    deep = [("joined to 4 sigma", {}, {}), ("joined squares to 4 sigma", {"squared": 1}, squares),
            ("joined polynomial to 4 sigma", mine, pol)]
    return [(name, dirty, psf, {**own, **a}, {**theirs, **b}) for name, a, b in cases] + [
        (name, points, psf2, {**own, "auto_threshold": 4, **a}, {**theirs, **sigma, **b}, None, 20)
        for name, a, b in deep]


def auto_mask(name, dirty, psf, own, theirs):
    """To 5 σ, then to 3 σ where components are, of any channel."""
    counts, again, model, _ = radler(dirty, psf, 20, auto_threshold_sigma=5., **theirs)
    rest, again, model, _ = radler(dirty, psf, 20, model, mask=(scene.stack(model) != 0).any(0),
                                   auto_threshold_sigma=3., **theirs)
    reports, found, _, _ = ours(dirty, psf, loops=20, auto_mask=5, auto_threshold=3, **own)
    phases = [int(r["phase"]) for r in reports]
    return judge(name, reports, found, counts + rest, again, model) and phases == (
        [1] * len(counts) + [2] * len(rest))


def main():
    dirty, psf = field()
    edges, _ = field(edge=0, blobs=3)
    points, _ = field(blobs=0, noise=5e-3)
    hole = dirty - 2 * np.roll(psf, (-60, 70), (0, 1))  # what the floor by minima sees
    mask = np.zeros(dirty.shape)
    mask[150:330, 130:300] = 1
    scales, window = {"multiscale": True}, rd.LocalRmsMethod.rms_window
    local = {"auto_threshold_sigma": 3.0, "local_rms__window": 8.}
    cases = [
        ("single scale", dirty, {}, {}),
        ("to the edges", edges, {}, {}),
        ("to 3 sigma", points, {"auto_threshold": 3}, {"auto_threshold_sigma": 3.0}, None, 20),
        ("mask", dirty, {}, {}, mask),
        ("no negative", dirty, {"no_negative": 1}, {"allow_negative_components": False}),
        ("border", dirty, {"border": 30}, {"border_ratio": .3}),
        ("multiscale", dirty, {"multiscale": 1}, scales),
        ("multiscale majors", dirty, {"multiscale": 1, "auto_threshold": 3},
         {**scales, "auto_threshold_sigma": 3.0}, None, 20),
        ("multiscale mask", dirty, {"multiscale": 1}, scales, mask),
        ("multiscale scales", dirty, {"multiscale": 1, "scales": "0,10,30"},
         {**scales, "multiscale__scale_list": [0., 10., 30.]}),
        ("gaussian", dirty, {"multiscale": 1, "gaussian": 1},
         {**scales, "multiscale__shape": rd.MultiscaleShape.gaussian}),
        ("local rms", hole, {"local_rms": 1, "auto_threshold": 3, "window": 8},
         {**local, "local_rms__method": window}),
        ("local rms with minimum", hole, {"local_rms": 2, "auto_threshold": 3, "window": 8},
         {**local, "local_rms__method": rd.LocalRmsMethod.rms_and_minimum_window}),
        ("multiscale local rms", dirty, {"multiscale": 1, "scales": "0,16,32", "local_rms": 1,
                                         "auto_threshold": 3, "window": 16},
         {**scales, "multiscale__scale_list": [0., 16., 32.], "local_rms__method": window,
          "auto_threshold_sigma": 3.0, "local_rms__window": 16.}, mask),
    ]
    wanted = lambda name: len(sys.argv) < 2 or name in sys.argv[1:]
    cases = [(case[0], case[1], psf, *case[2:]) for case in cases] + joined()
    bad = [case[0] for case in cases if wanted(case[0]) and not compare(*case)]
    name, channels_of_points, psfs, own, theirs, *_ = next(c for c in cases if c[0] == "joined to 4 sigma")
    own = {k: v for k, v in own.items() if k != "auto_threshold"}
    theirs = {k: v for k, v in theirs.items() if k != "auto_threshold_sigma"}
    for name, *case in (("auto-mask", points, psf, {}, {}),
                        ("joined auto-mask", channels_of_points, psfs, own, theirs)):
        if wanted(name) and not auto_mask(name, *case):
            bad.append(name)
    assert not bad, bad


if __name__ == "__main__":
    main()
