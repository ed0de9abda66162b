"""A CLEAN of one's own over a session: Hoegbom's minor cycles in numpy, major cycles by
tessera. The observation is read, weighted and sorted once.

usage: python clean.py OBS SIZE SCALE MODEL.npy, for example obs.uvfits 1024 1.5asec model.npy
"""
import sys

import numpy as np

import tessera

GAIN, MAJOR_GAIN, MAJORS, THRESHOLD = 0.1, 0.8, 7, 4  # the last in sigma of the residual


def overlap(centre, size, psf_size):
    """Slices of the image and of the PSF where the PSF, put at a pixel, covers the image."""
    first = centre - psf_size // 2
    begin, end = max(first, 0), min(first + psf_size, size)
    return slice(begin, end), slice(begin - first, end - first)


def minor_cycles(residual, psf, model, stop):
    """Subtract a share of the largest peak, as a PSF, until no peak exceeds `stop`."""
    while True:
        y, x = np.unravel_index(np.argmax(np.abs(residual)), residual.shape)
        flux = GAIN * residual[y, x]
        if abs(residual[y, x]) <= stop:
            return
        model[y, x] += flux
        rows, psf_rows = overlap(y, residual.shape[0], psf.shape[0])
        columns, psf_columns = overlap(x, residual.shape[1], psf.shape[1])
        residual[rows, columns] -= flux * psf[psf_rows, psf_columns]


def clean(session):
    """Model and residual image."""
    psf = session.psf()
    model = np.zeros(session.shape)
    residual = session.dirty()
    for major in range(MAJORS):
        sigma = 1.4826 * np.median(np.abs(residual - np.median(residual)))
        peak = np.abs(residual).max()
        print(f"major {major}: peak {peak:.4g} Jy/beam, sigma {sigma:.4g}, "
              f"model {model.sum():.4g} Jy")
        if peak <= THRESHOLD * sigma:
            break
        minor_cycles(residual, psf, model, max((1 - MAJOR_GAIN) * peak, THRESHOLD * sigma))
        residual = session.residual(model)  # of the data and the whole model
    return model, residual


with tessera.Session(sys.argv[1], size=int(sys.argv[2]), scale=sys.argv[3]) as opened:
    found, left = clean(opened)
print(f"left: rms {left.std():.4g} Jy/beam, model {found.sum():.4g} Jy")
np.save(sys.argv[4], found)
