"""A sparse, non-negative sky by gradients over a session: the smallest sum of W |V - P x|^2 and
of a penalty on the flux, with x >= 0. The gradient of the first is the residual image. The
penalty chooses among skies that fit alike: no baseline is so short that it sees a background.

usage: python nonnegative.py OBS SIZE SCALE STEPS MODEL.npy
"""
import sys

import numpy as np

import tessera

PENALTY = 0.02  # of the peak of the dirty image


def curvature(session, steps=8):
    """The largest eigenvalue of what imaging makes of a model, by power iteration."""
    dirty = session.dirty()
    x = np.random.default_rng(0).normal(size=session.shape)
    for _ in range(steps):
        x /= np.linalg.norm(x)
        x = dirty - session.residual(x)  # image of the visibilities of x
    return np.linalg.norm(x)


def solve(session, steps):
    """FISTA (Beck & Teboulle 2009): steps along the gradient with momentum."""
    step = 1 / (1.1 * curvature(session))
    penalty = PENALTY * session.dirty().max()
    x = previous = np.zeros(session.shape)
    t = 1.0
    for k in range(steps):
        t, before = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
        point = x + (before - 1) / t * (x - previous)
        residual = session.residual(point)
        previous, x = x, np.maximum(point + step * (residual - penalty), 0)
        print(f"step {k}: residual rms {residual.std():.4g} Jy/beam, model {x.sum():.4g} Jy")
    return x


with tessera.Session(sys.argv[1], size=int(sys.argv[2]), scale=sys.argv[3]) as opened:
    np.save(sys.argv[5], solve(opened, int(sys.argv[4])))
