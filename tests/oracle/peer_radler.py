#!/usr/bin/env python3
"""Minor loops against Radler on the same float32 arrays: iterations, model, residual. Skipped where
the Python package `radler` is not installed. Sources stay clear of what wraps in Radler, which pads
the residual by a tenth and scales not at all: residuals are only told.

Radler raises mgain in the first major iteration to 1 − (1 − mgain)^1.2; it is given what that makes
.8 of. A mask goes to Radler as a FITS file."""
import os
import sys

import numpy as np

try:
    import radler as rd
except ImportError:
    print("radler is not installed")
    sys.exit(77)

import clean_scene as scene

WORK = os.environ.get("TESS_WORK", "/tmp/peer_radler")
BEAM = 4.0
PIXEL = 1e-5
MGAIN = 1 - .2 ** (1 / 1.2)


def radler(dirty, psf, multiscale=False, majors=1, mask=None, **options):
    """Iterations, whether another major is wanted, model, residual of Radler."""
    settings = rd.Settings()
    ny, nx = dirty.shape
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
    residual, model = dirty.astype(np.float32).copy(), np.zeros_like(dirty, np.float32)
    beam = psf.astype(np.float32).copy()
    job = rd.Radler(settings, beam, residual, model, BEAM * PIXEL)
    again = job.perform(0)
    return job.iteration_number, again, model.astype(float), residual.astype(float)


def field(side=512, noise=1e-3, seed=3):
    psf = scene.make_psf(side, side).astype(np.float32).astype(float)
    sky = scene.make_sky(side, side, 40, 8, seed, edge=side // 4)
    dirty = scene.convolve(sky, psf) + np.random.default_rng(seed).normal(0, noise, (side, side))
    return dirty.astype(np.float32).astype(float), psf


def compare(name, dirty, psf, ours, theirs, mask=None):
    count, again, model, residual = radler(dirty, psf, mask=mask, **theirs)
    reports, own, left, _ = scene.run(WORK, dirty, psf, mask=mask, niter=100000, mgain=.8, beam=BEAM,
                                      **ours)
    report = reports[0]
    scale = np.abs(model).max()
    print(f"{name}: {report['iterations']:.0f} iterations, Radler {count}; model differs by "
          f"{np.abs(own - model).max() / scale:.2g} of its largest value, residual by "
          f"{np.abs(left - residual).max() / np.abs(dirty).max():.2g} of the peak; again "
          f"{report['again']:.0f} {again}; flux {own.sum():.6g} {model.sum():.6g}", flush=True)
    return abs(report["iterations"] - count) / count, np.abs(own - model).max() / scale


def main():
    dirty, psf = field()
    mask = np.zeros(dirty.shape)
    mask[150:330, 130:300] = 1
    cases = [
        ("single scale", {}, {}, None),
        ("to 3 sigma", {"auto_threshold": 3}, {"auto_threshold_sigma": 3.0}, None),
        ("mask", {}, {}, mask),
        ("no negative", {"no_negative": 1}, {"allow_negative_components": False}, None),
        ("border", {"border": 30}, {"border_ratio": .3}, None),
        ("multiscale", {"multiscale": 1}, {"multiscale": True}, None),
        ("multiscale mask", {"multiscale": 1}, {"multiscale": True}, mask),
        ("multiscale scales", {"multiscale": 1, "scales": "0,10,30"},
         {"multiscale": True, "multiscale__scale_list": [0., 10., 30.]}, None),
        ("gaussian", {"multiscale": 1, "gaussian": 1},
         {"multiscale": True, "multiscale__shape": rd.MultiscaleShape.gaussian}, None),
        ("local rms", {"local_rms": 1, "auto_threshold": 3},
         {"auto_threshold_sigma": 3.0, "local_rms__method": rd.LocalRmsMethod.rms_window}, None),
        ("local rms with minimum", {"local_rms": 2, "auto_threshold": 3},
         {"auto_threshold_sigma": 3.0, "local_rms__method": rd.LocalRmsMethod.rms_and_minimum_window},
         None),
    ]
    bad = []
    for name, ours, theirs, where in cases:
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        iterations, model = compare(name, dirty, psf, ours, theirs, where)
        if iterations > .01 or model > .01:
            bad.append(name)
    assert not bad, bad


if __name__ == "__main__":
    main()
