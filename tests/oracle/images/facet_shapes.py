#!/usr/bin/env python3
"""Images of facets of odd shapes, with slopes, and with solutions of other kinds, against direct sums with gains: a
facet with a hole in which another one lies, a concave one that the edge of the image cuts in two, polygons beyond the
image; scalar gains, axes in another order, values between times and beyond their ends, and two correlations."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import facet_sums  # noqa: E402
import uvfits  # noqa: E402
from facet_scene import ANTENNAS, FREQ, NX, NY, ROWS, SCALE, START_S, STEP, direction, write_regions  # noqa: E402
from e2e import Suite, have_h5py, l2_error, mpiexec, read_image, tessera  # noqa: E402

ASK = ("--size", f"{NX},{NY}", "--scale", f"{SCALE}asec", "--weight", "natural", "--accuracy", 1e-6, "--no-psf")
LIMIT = 1e-6  # the accuracy that is asked for
# Columns and rows of corners. Between x = 52 and 60, beyond the image, the two arms of the last one are joined.
FRAME = [(-9, -9), (28.4, -9), (28.4, 33.3), (-9, 33.3)]
HOLE = [(8.3, 8.2), (19.4, 9.7), (18.4, 19.7), (7.3, 18.2)]
ARMS = [(30.3, 2.4), (60, 2.4), (60, 37.6), (33.2, 37.6), (33.2, 27.3), (52, 27.3), (52, 13.6), (30.3, 13.6)]
BEYOND = [(70, 5), (90, 5), (80, 20)]


def pixels(path):
    return read_image(path)[0].squeeze().astype(float)


def polygon(corners, sign=""):
    return f"{sign}polygon(" + ",".join("%.9f,%.9f" % direction(*at) for at in corners) + ")\n"


def write_shapes(path):
    """The first polygon has no pixel, the second one's direction is that of its point, the others' are centroids."""
    with open(path, "w", encoding="utf-8") as file:
        file.write("fk5\n" + polygon(BEYOND) + polygon(FRAME) + polygon(HOLE, "-") +
                   "point(%.9f,%.9f) # text=frame\n" % direction(24, 5) + polygon(HOLE) + polygon(ARMS))
    return path


def inside(*shapes):
    """Pixels in an odd number of polygons."""
    x, y = np.meshgrid(np.arange(NX), np.arange(NY))
    region = facet_sums.Region(np.array(shapes[0]), holes=[np.array(shape) for shape in shapes[1:]])
    return region.inside(x, y, lambda a, b: (a, b))


def write_solutions(path, places, axes, pols, seed=4):
    """An h5parm of amplitudes and phases at `places` (columns and rows), with these axes in this order. Returns times,
    frequencies, and values in the order dir, ant, time, freq, pol."""
    import h5py
    random = np.random.default_rng(seed)
    time, freq = START_S + np.array([22.0, 55.0, 95.0]), FREQ[:3:2] + 1e6
    names = [b"[d%d]" % k for k in range(len(places))]
    axis = {"dir": np.array(names), "ant": np.array([b"A%02d" % k for k in range(ANTENNAS)]), "time": time, "freq": freq,
            "pol": np.array([b"XX", b"YY"][:pols])}
    shape = [len(axis[key]) if key in axes else 1 for key in facet_sums.ORDER]
    amplitude, phase = random.uniform(.6, 1.5, shape), random.uniform(-3, 3, shape)
    with h5py.File(path, "w") as file:
        group = file.create_group("sol000")
        group["source"] = np.array([(n, np.deg2rad(direction(*at))) for n, at in zip(names, places)],
                                   dtype=[("name", "S128"), ("dir", "f4", (2,))])
        for name, values in (("amplitude", amplitude), ("phase", phase)):
            table = group.create_group(name + "000")
            table.attrs["TITLE"] = np.bytes_(name)
            own = np.transpose(values, [facet_sums.ORDER.index(k) for k in axes] +
                               [k for k, key in enumerate(facet_sums.ORDER) if key not in axes])
            own = own.reshape([len(axis[key]) for key in axes])
            for key in axes:
                table[key] = axis[key]
            for key, numbers in (("val", own), ("weight", np.ones(own.shape))):
                table.create_dataset(key, data=numbers).attrs["AXES"] = np.bytes_(",".join(axes))
    return time, freq, amplitude, phase


def around(axis, at, linear):
    """The indices of both neighbours of a place, and the share of the second; beyond the ends, that of the end."""
    if not linear:
        near = np.abs(at[:, None] - axis).argmin(1)
        return near, near, np.zeros(len(at))
    high = np.clip(np.searchsorted(axis, at), 1, len(axis) - 1)
    return high - 1, high, np.clip((at - axis[high - 1]) / (axis[high] - axis[high - 1]), 0, 1)


def taken(solutions, place, linear):
    """Gains [antenna, step, channel, feed] at the data's times and frequencies. Phases go the shorter way round."""
    time, freq, amplitude, phase = solutions
    steps = START_S + 10.0 * np.arange(12)
    (t0, t1, late), (f0, f1, high) = around(time, steps, linear), around(freq, FREQ, linear)
    if phase.shape[3] == 1:  # without an axis of frequencies
        f0 = f1 = np.zeros(len(FREQ), int)
    parts = [((1 - late, t0), (1 - high, f0)), ((1 - late, t0), (high, f1)), ((late, t1), (1 - high, f0)),
             ((late, t1), (high, f1))]
    near = phase[place][:, np.where(late > .5, t1, t0)][:, :, np.where(high > .5, f1, f0)]
    sums = [0, 0]
    for (a, t), (b, f) in parts:
        share = (a[:, None] * b)[..., None]
        sums[0] = sums[0] + share * amplitude[place][:, t][:, :, f]
        turn = phase[place][:, t][:, :, f] - near
        sums[1] = sums[1] + share * (turn - 2 * np.pi * np.rint(turn / (2 * np.pi)))
    return np.broadcast_to(sums[0] * np.exp(1j * (near + sums[1])), sums[0].shape[:3] + (2,)) \
        if sums[0].shape[-1] == 1 else sums[0] * np.exp(1j * (near + sums[1]))


def truth_of(obs, gains):
    """The image of Stokes I of a facet, and the root of its response."""
    uvw, vis, weight = obs
    first, second = np.triu_indices(ANTENNAS, 1)
    pair, step = np.arange(ROWS) % len(first), np.arange(ROWS) // len(first)
    pairs = gains[first[pair], step] * gains[second[pair], step].conj()
    seen, power = (pairs.conj() * vis[..., :2]).mean(-1), (np.abs(pairs) ** 2).mean(-1)
    root = np.sqrt((power * weight).sum() / weight.sum())
    return uvfits.direct_dirty(uvw, FREQ, seen, weight, NX, NY, STEP) / root, root


def write_observation(path, corrs):
    random = np.random.default_rng(2)
    vis = random.normal(size=(ROWS, 4, corrs)) + 1j * random.normal(size=(ROWS, 4, corrs))
    weight = np.repeat(random.uniform(.5, 2, (ROWS, 4, 1)), corrs, -1).astype("f4")
    uvfits.write(path, uvfits.random_tracks(ROWS, 900.0, seed=5), FREQ, vis, weight, antennas=ANTENNAS)
    uvw, _, vis, weight, _ = uvfits.read(path)
    return uvw, vis, weight.min(-1)


def image(suite, name, obs, regions, *args, ranks=1):
    """The dirty image and its roots, and what the run says."""
    out = suite.path(name)
    made = tessera("image", obs, "-o", out, *ASK, "--facets", regions, *args, ranks=ranks)
    if not suite.ran(name, made):
        return None, None, ""
    return pixels(f"{out}-dirty.fits"), pixels(f"{out}-pb.fits"), made.err


def check_truth(suite, name, masks, images, data, gains):
    """Compares the image and the root of the response with direct sums, facet by facet, each with its gains."""
    found, root = images
    for k, mask in enumerate(masks):
        truth, true_root = truth_of(data, gains[k])
        suite.below(f"{name}, facet {k}: direct sum", l2_error(found[mask], truth[mask]), LIMIT)
        suite.below(f"{name}, facet {k}: root", np.abs(root[mask] / true_root - 1).max(), LIMIT)


def check_shapes(suite):
    """Each pixel is of the facet that it lies in, and of no other one, whatever the shapes are."""
    obs, regions, solutions = (suite.path(name) for name in ("obs.uvfits", "shapes.reg", "shapes.h5"))
    data = write_observation(obs, 4)
    write_shapes(regions)
    masks = [inside(FRAME, HOLE), inside(HOLE), inside(ARMS)]
    y, x = np.mgrid[:NY, :NX]
    places = [(24, 5), *((x[mask].mean(), y[mask].mean()) for mask in masks[1:])]
    written = write_solutions(solutions, places, ("pol", "freq", "dir", "time", "ant"), 2)
    for ranks in (1, 3) if mpiexec() else (1,):
        found, root, told = image(suite, f"shapes-{ranks}", obs, regions, "--facet-solutions", solutions,
                                  "--facet-feather", 0, ranks=ranks)
        if found is None:
            return
        check_truth(suite, f"{ranks} ranks", masks, (found, root), data, [taken(written, k, False) for k in range(len(masks))])
        share = 100 * (1 - np.mean(sum(masks)))
        suite.true("pixels of no facet are not imaged", np.array_equal(np.isnan(found), ~np.any(masks, 0)))
        suite.true(f"and are told of: {share:.3g} %", f"{share:.3g} % of the pixels are in no facet" in told)
        suite.true("as is a polygon beyond the image", "1 others are outside of the image" in told)


def check_slopes(suite):
    """Across a border the image is the sum of both facets' with weights that fall along a sine, and so is the root."""
    obs, regions, solutions = suite.path("obs.uvfits"), write_regions(suite.path("two.reg")), suite.path("two.h5")
    data, feather = write_observation(obs, 4), 8
    written = write_solutions(solutions, [(12, 18), (38, 18)], facet_sums.ORDER, 2)
    found, root, _ = image(suite, "slopes", obs, regions, "--facet-solutions", solutions, "--facet-feather", feather)
    if found is None:
        return
    y, x = np.mgrid[:NY, :NX]
    across = np.array([44.5, -(28.4 - 18.3)]) / np.hypot(44.5, 28.4 - 18.3)
    away = (x - 18.3) * across[0] + (y + 9) * across[1]
    right = .5 + .5 * np.sin(np.pi / 2 * np.clip(2 * away / feather, -1, 1))
    (left, left_root), (other, other_root) = (truth_of(data, taken(written, k, False)) for k in (0, 1))
    there = np.isfinite(found)
    suite.equal("rows of the image", int(there.any(1).sum()), 36)
    there &= y < 35.5 - feather / 2  # within half a feather of the border's end other edges are nearer than it
    suite.below("slopes: direct sums", l2_error(found[there], ((1 - right) * left + right * other)[there]), LIMIT)
    suite.below("slopes: roots", l2_error(root[there], ((1 - right) * left_root + right * other_root)[there]), LIMIT)


def check_tables(suite):
    """Scalar gains, with and without axes, nearest and linear, beyond both ends of times and frequencies; and Stokes I
    of two correlations."""
    regions, solutions = suite.path("two.reg"), suite.path("tables.h5")
    masks = [inside([(-9, -9), (17.3, -9), (27.4, 35.5), (-9, 35.5)]), inside([(19.3, -9), (60, -9), (60, 35.5), (29.4, 35.5)])]
    for corrs, pols, axes, linear in ((2, 2, ("time", "freq", "ant", "dir", "pol"), True), (4, 1, ("dir", "time", "ant"), True),
                                      (2, 1, ("ant", "freq", "pol", "dir", "time"), False)):
        obs, name = suite.path(f"obs{corrs}.uvfits"), f"{corrs} correlations, {','.join(axes)}, {pols}"
        data = write_observation(obs, corrs)
        written = write_solutions(solutions, [(12, 18), (38, 18)], axes, pols)
        found, root, _ = image(suite, f"tables-{corrs}-{pols}", obs, regions, "--facet-solutions", solutions, "--overwrite",
                               "--facet-feather", 0, "--solution-interpolation", "linear" if linear else "nearest")
        if found is None:
            continue
        check_truth(suite, name, masks, (found, root), data, [taken(written, k, linear) for k in range(len(masks))])


def main():
    suite = Suite("facet_shapes")
    if not have_h5py():
        suite.finish()
    check_shapes(suite)
    check_slopes(suite)
    check_tables(suite)
    suite.finish()


main()
