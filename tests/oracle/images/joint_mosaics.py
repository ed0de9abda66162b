#!/usr/bin/env python3
"""Mosaics that are imaged together (`tessera image --mosaic`): the dirty image is that of the
pointings' own dirty images by numpy, cleaned images have the true fluxes, on any number of ranks;
and what is refused.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import uvfits
from e2e import ASEC, C_M_S, Suite, mpiexec, offset_radec, read_image, tessera
from primary_beams import BLOCKED_M, DISH_M, airy

N, SCALE, LIMIT, CUT = 160, 45 * ASEC, 0.05, 0.3
CENTER = (60.0, -30.0)
ROWS, CHANNELS = 700, 2
FREQ = 1.4e9 + 5e7 * np.arange(CHANNELS)
RANKS = (1, 3) if mpiexec() else (1,)
IMAGE = ["--mosaic", "--primary-beam", f"airy:{DISH_M},{BLOCKED_M}", "--size", str(N), "--scale", "45asec",
         "--pb-limit", str(CUT), "--pointing-limit", str(LIMIT), "--threads", "1", "--accuracy", "1e-6"]
OFFSETS = np.array([(0, 16), (14, -8), (-14, -8)]) * SCALE * 1.25  # of the pointings
SOURCES = ((80, 80, 2.0), (62, 108, 1.0), (112, 60, 1.5))  # pixel and flux
NOISE = 0.1  # of a visibility


def relative(direction, center):
    """Direction cosines of directions from a centre (all in degrees)."""
    (ra, dec), (ra0, dec0) = np.deg2rad(direction), np.deg2rad(center)
    return (np.cos(dec) * np.sin(ra - ra0),
            np.sin(dec) * np.cos(dec0) - np.cos(dec) * np.sin(dec0) * np.cos(ra - ra0))


def pixel_direction(x, y):
    return offset_radec(*CENTER, -(x - N // 2) * SCALE, (y - N // 2) * SCALE)


POINTINGS = [offset_radec(*CENTER, *offset) for offset in OFFSETS]


def write_pointings(path, seed=5):
    """One file with the pointings as its sources, of which the last has a tenth of the weight; returns
    its visibilities' sums of weights [pointing, channel]."""
    rng = np.random.default_rng(seed)
    uvw = uvfits.stored_uvw(uvfits.random_tracks(3 * ROWS, 400.0, 0.2, seed=seed))
    which = np.repeat(np.arange(3), ROWS)
    vis = np.zeros((3 * ROWS, CHANNELS), complex)
    for p, pointing in enumerate(POINTINGS):
        for x, y, flux in SOURCES:
            l, m = relative(pixel_direction(x, y), pointing)
            path_m = uvw[which == p] @ [l, m, uvfits.n_minus_1(l, m)]
            vis[which == p] += (flux * airy(np.hypot(l, m), FREQ) *
                                np.exp(2j * np.pi * path_m[:, None] * FREQ / C_M_S))
    weight = rng.uniform(0.5, 1.5, vis.shape) * np.where(which == 2, 0.1, 1)[:, None]
    vis += NOISE / np.sqrt(weight) * (rng.normal(size=vis.shape) + 1j * rng.normal(size=vis.shape))
    both = np.repeat(weight[..., None], 2, -1).astype("f4")
    uvfits.write(path, uvw, FREQ, np.repeat(vis[..., None], 2, -1).astype("c8"), both,
                 sources=[(f"p{p}", *at) for p, at in enumerate(POINTINGS)], source_of_row=which)
    return np.array([both[which == p, :, 0].astype("f8").sum(0) for p in range(3)])


def beams(sums):
    """Mean beams of the pointings by weight, in all pixels, cut."""
    x = np.arange(N)
    out = []
    for p, pointing in enumerate(POINTINGS):
        directions = pixel_direction(x[None, :], x[:, None])
        l, m = relative(directions, pointing)
        share = sums[p] / sums[p].sum()
        power = sum(share[c] * airy(np.hypot(l, m).ravel(), FREQ[c]).reshape(N, N) for c in range(CHANNELS))
        out.append(np.where(power >= LIMIT, power, 0))
    return np.array(out)


def check_dirty(suite, obs, sums):
    """Weights of pointings, beams and images that were made alone make the mosaic."""
    weights, beam = sums.sum(1), beams(sums)
    alone = []
    for p in range(3):
        good, prefix = suite.image(f"p{p}", obs, "--field", f"p{p}", *IMAGE[3:], "--weight", "natural",
                                   "--center", f"{CENTER[0]}deg,{CENTER[1]}deg", "--no-psf")
        alone.append(read_image(prefix + "-dirty.fits")[0] if good else np.zeros((N, N)))
    total = np.einsum("p,pyx->yx", weights, beam ** 2)
    even = np.einsum("p,pyx,pyx->yx", weights, beam, alone) / np.sqrt(total * total.max() + 1e-300)
    pb = np.sqrt(total / total.max())
    inside = pb >= CUT
    for ranks in RANKS:
        result = tessera("image", obs, *IMAGE, "--weight", "natural", "--center",
                         f"{CENTER[0]}deg,{CENTER[1]}deg", "-o", suite.path(f"all{ranks}"), ranks=ranks)
        if not suite.ran(f"mosaic, {ranks} ranks", result):
            continue
        got = {kind: read_image(suite.path(f"all{ranks}-{kind}.fits"))[0]
               for kind in ("dirty", "dirty-pb", "pb", "weight", "noise")}
        label = f"{ranks} ranks"
        border = np.abs(pb - CUT) < 1e-4
        suite.true(f"{label}: pixels below the limit are NaN",
                   ((np.isfinite(got["dirty"]) == inside) | border).all() and 0 < inside.sum() < inside.size)
        suite.below(f"{label}: beam", np.nanmax(np.abs(got["pb"] - pb)), 1e-5)
        suite.below(f"{label}: even noise", np.nanmax(np.abs(got["dirty"] - even)) / even.max(), 3e-5)
        suite.below(f"{label}: true flux", np.nanmax(np.abs(got["dirty-pb"] * got["pb"] - got["dirty"])), 1e-6)
        suite.below(f"{label}: weight", np.abs(got["weight"] - total / weights.sum())[~border].max(), 2e-5)
        values = got["dirty"][np.isfinite(got["dirty"])]
        mad = 1.4826 * np.median(np.abs(values - np.median(values)))
        suite.below(f"{label}: noise", np.nanmax(np.abs(got["noise"] * got["pb"] / mad - 1)), 1e-5)


def check_cleaned(suite, obs):
    """CLEAN finds the true fluxes, also of a source that one pointing sees at its border."""
    for ranks in RANKS:
        result = tessera("image", obs, *IMAGE, "--weight", "briggs:0", "--niter", "3000", "--mgain", "0.7",
                         "--auto-threshold", "4", "--reproducible", "-o", suite.path(f"clean{ranks}"),
                         ranks=ranks)
        if not suite.ran(f"cleaned, {ranks} ranks", result):
            return
    image, header = read_image(suite.path("clean1-image-pb.fits"))
    noise, _ = read_image(suite.path("clean1-noise.fits"))
    suite.below("the centre is the mean of the pointings",
                max(abs(header["CRVAL1"] - CENTER[0]), abs(header["CRVAL2"] - CENTER[1])), 1e-4)
    for x, y, flux in SOURCES:
        suite.below(f"flux at ({x}, {y}) is {flux}",
                    abs(image[y, x] - flux), 4 * noise[y, x] + 0.005 * flux)
    model, _ = read_image(suite.path("clean1-model-pb.fits"))
    suite.below("model's flux", abs(np.nansum(model) / sum(s[2] for s in SOURCES) - 1), 0.03)
    for kind in ("image", "image-pb", "model", "pb", "psf") if len(RANKS) > 1 else ():
        suite.true(f"{kind}: the same bits on {RANKS[-1]} ranks",
                   np.array_equal(read_image(suite.path(f"clean1-{kind}.fits"))[0],
                                  read_image(suite.path(f"clean{RANKS[-1]}-{kind}.fits"))[0],
                                  equal_nan=True))


def check_errors(suite, obs):
    for what, status, text, args in (
            ("one pointing", 3, "all fields point to one direction", ["--field", "p1"]),
            ("no beam", 3, "no primary beam of telescope", ["--primary-beam", "auto"]),
            ("another sky", 3, "no pointing sees the image", ["--center", "60deg,-10deg"]),
            ("facets", 2, "--mosaic cannot be combined with --facets", ["--facets", "x.reg"])):
        result = tessera("image", obs, *IMAGE, *args, "-o", suite.path("bad"), ranks=RANKS[-1])
        suite.ran(what, result, status)
        suite.true(f"{what}: one line with '{text}'",
                   len(result.errors()) == 1 and text in result.errors()[0])


def main():
    suite = Suite("joint_mosaics")
    obs = suite.path("pointings.uvfits")
    sums = write_pointings(obs)
    check_dirty(suite, obs, sums)
    check_cleaned(suite, obs)
    check_errors(suite, obs)
    suite.finish()


if __name__ == "__main__":
    main()
