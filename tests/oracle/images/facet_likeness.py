#!/usr/bin/env python3
"""What a minor loop takes facets to see of one another's components is the likeness of their gains in the samples
that are cleaned: those of a channel or of joined channels, of an interval, and of each observation with its own
solutions. Two pixels on both sides of a border are cleaned, each in one step, and the second component tells it."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import uvfits  # noqa: E402
from facet_scene import ANTENNAS, FREQ, NX, NY, ROWS, SCALE, STEP, write_gains, write_regions  # noqa: E402
from e2e import Suite, have_h5py, mpiexec, read_image, tessera  # noqa: E402

FIRST, SECOND = (24, 18), (26, 18)  # pixels in facets F0 and F1
# an interval is half a millisecond longer on either side, of 40 s, and images are in single precision
TOLERANCE = 5e-5
BASELINES = ANTENNAS * (ANTENNAS - 1) // 2
# how far phases of F1 scatter [rad] by time and frequency of solutions: none in the beginning
SPREAD = np.array([[0, 0], [.4, .8], [.3, 2]])


def write_observation(path, steps, chans=slice(None), **more):
    """A source of 3 Jy in the first pixel, without gains: those of F0 are 1."""
    rows = steps * BASELINES
    uvw = uvfits.stored_uvw(uvfits.random_tracks(ROWS, 900.0, seed=5)[:rows])
    image = np.zeros((NY, NX))
    image[FIRST[1], FIRST[0]] = 3
    vis = np.repeat(uvfits.direct_predict(uvw, FREQ[chans], image, STEP)[..., None], 2, -1)
    uvfits.write(path, uvw, FREQ[chans], vis, np.ones(vis.shape, "f4"), antennas=ANTENNAS, **more)
    return path


def write_phases(path, spread, seed, later_s=0):
    """Solutions with phases in F1 alone; returns these [time, freq, antenna]."""
    import h5py
    phase = spread[..., None] * np.random.default_rng(seed).normal(size=(*spread.shape, ANTENNAS))
    write_gains(path, 2, one=True)
    with h5py.File(path, "a") as file:
        file["sol000/phase000/val"][:, :, :, 1] = phase[..., None]
        for table in ("amplitude000", "phase000"):
            file[f"sol000/{table}/time"][...] += later_s
    return phase


def cosines(phase, steps, chans):
    """Of the difference between both facets, of all baselines, at these integrations and channels."""
    time = np.abs(10.0 * np.asarray(steps)[:, None] - [15.0, 55.0, 95.0]).argmin(1)
    freq = np.abs(FREQ[list(chans)][:, None] - FREQ[::2]).argmin(1)
    first, second = np.triu_indices(ANTENNAS, 1)
    own = phase[time[:, None], freq[None]]
    return np.cos(own[..., first] - own[..., second]).ravel()


def write_mask(path):
    mask = np.zeros((NY, NX))
    for x, y in (FIRST, SECOND):
        mask[y, x] = 1
    return uvfits.write_model(path, mask, STEP, freq_hz=FREQ[0])


def measured(stem):
    """What of the first component is subtracted in the other facet, over the PSF."""
    dirty, psf, model = (read_image(f"{stem}-{kind}.fits")[0].squeeze().astype(float)
                         for kind in ("dirty", "psf", "model"))
    taken = dirty[SECOND[::-1]] - model[SECOND[::-1]]
    return taken / (model[FIRST[::-1]] * psf[NY // 2, NX // 2 + SECOND[0] - FIRST[0]])


def check(suite, name, args, wanted, ranks=1):
    """`wanted`: the likeness of each image, by the end of its name."""
    out = suite.path(name)
    result = tessera("image", *args, "-o", out, "--size", f"{NX},{NY}", "--scale", f"{SCALE}asec", "--weight", "natural",
                     "--accuracy", 1e-5, "--facets", suite.path("facets.reg"), "--facet-feather", 0, "--fits-mask",
                     suite.path("mask.fits"), "--niter", 2, "--gain", 1, "--mgain", 1, "--nmiter", 1, "--quiet", ranks=ranks)
    if suite.ran(name, result):
        for end, like in wanted.items():
            found = measured(out + end)
            suite.below(f"{name}{end}: likeness {found:.4f}, and {like.mean():.4f} of its samples",
                        abs(found - like.mean()), TOLERANCE)


def main():
    suite = Suite("facet_likeness")
    if not have_h5py():
        suite.finish()
    write_regions(suite.path("facets.reg"))
    write_mask(suite.path("mask.fits"))
    obs, gains = write_observation(suite.path("obs.uvfits"), 12), suite.path("gains.h5")
    phase = write_phases(gains, SPREAD, 1)
    ask, lower, upper, joined = (obs, "--facet-solutions", gains), (0, 1), (2, 3), range(4)
    check(suite, "channels", (*ask, "--channels-out", 2),
          {"-0000": cosines(phase, range(12), lower), "-0001": cosines(phase, range(12), upper)})
    check(suite, "axis", (*ask, "--frame", "topo", "--start", "152MHz", "--width", "8MHz", "--nchan", 2),
          {"-0000": cosines(phase, range(12), lower), "-0001": cosines(phase, range(12), upper)})
    both = cosines(phase, range(12), joined)
    check(suite, "joined", (*ask, "--channels-out", 2, "--join-channels"), {"-0000": both, "-0001": both})
    check(suite, "intervals", (*ask, "--intervals-out", 3),
          {f"-t000{k}": cosines(phase, range(4 * k, 4 * k + 4), joined) for k in range(3)})
    halves = [cosines(phase, steps, joined) for steps in (range(6), range(6, 12))]
    check(suite, "halves", (*ask, "--intervals-out", 2, "--channels-out", 2, "--join-channels"),
          {f"-t000{t}-000{c}": halves[t] for t in (0, 1) for c in (0, 1)}, 2 if mpiexec() else 1)
    next_day = {"PZERO4": 61042.0 + 2400000.5}
    later = write_observation(suite.path("later.uvfits"), 6, cards=next_day)
    own = write_phases(suite.path("later.h5"), SPREAD[::-1] / 2, 2, later_s=86400)
    each = ("--facet-solutions", f"{gains},{suite.path('later.h5')}", "--solutions-per-observation")
    check(suite, "observations", (obs, later, *each), {"": np.concatenate([both, cosines(own, range(6), joined)])})
    bands = (write_observation(suite.path("lower.uvfits"), 12, slice(0, 2)),
             write_observation(suite.path("upper.uvfits"), 6, slice(2, 4), cards=next_day))
    check(suite, "bands", (*bands, *each, "--frame", "topo", "--start", "152MHz", "--width", "8MHz", "--nchan", 2),
          {"-0000": cosines(phase, range(12), lower), "-0001": cosines(own, range(6), upper)})
    cross = write_observation(suite.path("cross.uvfits"), 6, corr_first=-7, cards=next_day)
    check(suite, "correlations", (obs, cross, *each), {"": both})  # XY and YX have no Stokes I
    suite.finish()


main()
