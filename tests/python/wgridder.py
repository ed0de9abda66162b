#!/usr/bin/env python3
"""tessera.wgridder over random geometries: against direct sums, and, where it can be had,
against ducc0.wgridder; adjointness, masks, weights, strides, types, and errors.

The promise is a relative L2 error of ε for results that do not cancel by chance: errors
are taken relative to the larger of the result's norm and the norm expected of terms in
random phase. ducc0's own error, at most the accuracy it is asked for, is added when it is
the reference.
"""
import doctest
import inspect
import io
import re
import resource
import sys
import threading
from contextlib import redirect_stdout

import numpy as np

from module import Geometry, in_child
from e2e import C_M_S, FULL, Suite  # noqa: E402  (module.py knows where it is)
import tessera
from tessera import wgridder

try:
    from ducc0 import wgridder as ducc
except ImportError:
    ducc = None

DUCC_ACCURACY = {"c8": 1e-5, "c16": 1e-12}


class Case:
    """Random data of one geometry, arrays of random layout."""

    def __init__(self, seed, big):
        self.seed = seed
        rng = self.rng = np.random.default_rng(seed)
        rows, chans = rng.integers(1, 2000 if big else 50), rng.integers(1, 10)
        if rng.random() < 0.15:  # one channel, or many
            rows, chans = (rows, 1) if rng.random() < 0.5 else (min(rows, 20), 300)
        self.type = "c8" if rng.random() < 0.5 else "c16"
        self.real = np.dtype(self.type).type(0).real.dtype
        smallest = -5 if self.type == "c8" else -12
        self.epsilon = 10 ** rng.uniform(smallest, -2)
        self.size = tuple(int(n) for n in (2 * rng.integers(16, 200, 2) if big
                                           else rng.integers(2, 50, 2)))
        field = 10 ** rng.uniform(-3, -0.7, 2)
        self.pixsize = tuple(float(f) / n for f, n in zip(field, self.size))
        self.center = (0.0, 0.0)
        if rng.random() < 0.7:
            self.center = tuple(rng.uniform(-0.45, 0.45, 2).tolist())
        # baselines up to the grid's edge, sometimes beyond: an image is periodic in uv
        wavelength_m = C_M_S / 1e9
        reach = wavelength_m * 0.5 * rng.choice([0.1, 1.0, 1.7])
        uvw = rng.uniform(-1, 1, (rows, 3)) * [reach / self.pixsize[0],
                                               reach / self.pixsize[1], 1]
        # w such that a few, or a hundred, turns of phase lie across the field
        uvw[:, 2] *= wavelength_m * 10 ** rng.uniform(-1, 1.5) / max(
            1e-5, abs(self._lowest_nm1()))
        self.uvw = self._layout(uvw)
        freq = np.linspace(1e9, 1e9 * rng.uniform(1, 1.9), chans)
        self.freq = freq if rng.random() < 0.7 else freq[::-1]
        shape = (rows, chans)
        self.vis = self._layout(self._complex(shape).astype(self.type))
        self.wgt = self.mask = None
        if rng.random() < 0.6:
            self.wgt = self._layout(rng.uniform(0.1, 2, shape).astype(self.real))
        if rng.random() < 0.5:
            kind = np.uint8 if rng.random() < 0.5 else np.bool_
            self.mask = self._layout((rng.random(shape) < 0.7).astype(kind))
        self.image = self._layout(rng.normal(size=self.size).astype(self.real))
        self.flips = tuple(bool(f) for f in rng.integers(0, 2, 3))
        self.settings = dict(
            uvw=self.uvw, freq=self.freq, wgt=self.wgt, mask=self.mask,
            pixsize_x=self.pixsize[0], pixsize_y=self.pixsize[1],
            center_x=self.center[0], center_y=self.center[1], epsilon=self.epsilon,
            do_wgridding=bool(rng.random() < 0.8), divide_by_n=bool(rng.integers(2)),
            flip_u=self.flips[0], flip_v=self.flips[1], flip_w=self.flips[2],
            nthreads=int(rng.integers(1, 3)))

    def _lowest_nm1(self):
        corner = sum((abs(c) + 0.5 * n * p)**2 for c, n, p in
                     zip(self.center, self.size, self.pixsize))
        return np.sqrt(max(0, 1 - corner)) - 1

    def _complex(self, shape):
        return self.rng.normal(size=shape) + 1j * self.rng.normal(size=shape)

    def _layout(self, array):
        """The same values, in one of several memory layouts."""
        kind = self.rng.integers(0, 6)
        if kind == 1:
            return np.asfortranarray(array)
        if kind == 2:
            wide = np.zeros((array.shape[0], 2 * array.shape[1] + 1), array.dtype)
            wide[:, 1::2] = array
            return wide[:, 1::2]
        if kind == 3:
            return array[::-1, ::-1].copy()[::-1, ::-1]
        if kind == 4:  # not aligned to its elements
            record = np.zeros(array.shape, np.dtype([("pad", "u1"), ("value", array.dtype)]))
            record["value"] = array
            return record["value"]
        return array

    def weights(self):
        total = np.ones(self.vis.shape)
        if self.wgt is not None:
            total = total * self.wgt
        return total if self.mask is None else total * (self.mask != 0)

    def geometry(self):
        return Geometry(self.uvw, self.freq, self.size, self.pixsize, self.center,
                        self.flips, self.settings["do_wgridding"],
                        self.settings["divide_by_n"])

    def position_rounding(self):
        """Phases of thousands of turns keep few digits of a turn, in either program and in
        the sums: three roundings of each, uncorrelated."""
        geometry = self.geometry()
        u, v, w = (np.abs(geometry.uvw[..., k]).max(initial=0) for k in range(3))
        turns = (u * np.abs(geometry.x).max() + v * np.abs(geometry.y).max() +
                 w * np.abs(geometry.nm1).max())
        return 3 * 2 * np.pi * turns * 2.0**-53

    def describe(self):
        s = self.settings
        return (f"seed {self.seed}: {self.type} {self.epsilon:.1e} {self.vis.shape} "
                f"{self.size} centre ({self.center[0]:.2f}, {self.center[1]:.2f}) "
                f"w {s['do_wgridding']:d} n {s['divide_by_n']:d}")

    def expected_norms(self):
        """Of image and visibilities, if terms have random phase; the 1/n may raise the
        image's."""
        weights = self.weights()
        n = self.geometry().n if self.settings["divide_by_n"] else np.ones(1)
        pixels = np.prod(self.size) * np.mean(1 / np.maximum(n, 0.05)**2)
        image = np.sqrt(0.5 * np.sum((weights * np.abs(self.vis))**2) * pixels)
        vis = np.sqrt(np.sum(weights**2) * np.sum(self.image.astype(float)**2))
        return image, vis


def relative(value, reference, expected):
    size = max(np.linalg.norm(reference), expected)
    difference = np.linalg.norm(value.astype(reference.dtype) - reference)
    return difference / size if size > 0 else difference


class Worst:
    """Largest ratio of an error to its limit over all cases, and where it was."""

    def __init__(self, suite):
        self.suite, self.found = suite, {}

    def add(self, what, value, limit, case):
        ratio = float(value / limit) if limit > 0 else (np.inf if value > 0 else 0.0)
        if not ratio <= self.found.get(what, (-1.0, ""))[0]:
            self.found[what] = (ratio, case.describe())

    def report(self):
        for what, (ratio, where) in sorted(self.found.items()):
            self.suite.below(f"{what}: worst error / limit ({where})", ratio, 1)


def check_case(case, worst):
    # images of the same memory order are gridded along the same axes, which is what makes
    # the two functions adjoint to rounding
    dirty = wgridder.vis2dirty(vis=case.vis, dirty=np.empty_like(case.image, order="K"),
                               **case.settings)
    report = wgridder.last_report()
    rounding = report["rounding_estimate"]
    vis = wgridder.dirty2vis(dirty=case.image, **case.settings)
    for busy in (report, wgridder.last_report()):
        idle = not 0 < busy["grid_utilisation"] <= 1.001 and busy["num_vis"] > 0
        worst.add("threads are busy", float(idle), 0.5, case)
    expected = case.expected_norms()
    limit = case.epsilon + case.position_rounding()
    weighted = case.weights() * case.vis
    terms = case.vis.size * np.prod(case.size)
    if terms < 2e7:
        geometry = case.geometry()
        worst.add("dirty, direct sum",
                  relative(dirty, geometry.dirty(weighted), expected[0]), limit, case)
        worst.add("vis, direct sum",
                  relative(vis, case.weights() * geometry.vis(case.image), expected[1]),
                  limit, case)
        lone = np.zeros_like(case.image)
        lone[-(case.seed % 2), -(case.seed // 2 % 2)] = 1  # a corner
        alone = wgridder.dirty2vis(dirty=lone, **case.settings)
        worst.add("vis of a lone corner pixel, direct sum",
                  relative(alone, case.weights() * geometry.vis(lone), 0), limit, case)
    # ducc0 wants even sizes, ascending frequencies, aligned arrays, and no bool
    if (ducc and min(case.size) >= 32 and not any(n % 2 for n in case.size) and
            np.all(np.diff(case.freq) >= 0)):
        against = {k: np.array(v) if isinstance(v, np.ndarray) else v
                   for k, v in case.settings.items()}
        against["epsilon"] = DUCC_ACCURACY[case.type]
        if case.mask is not None:
            against["mask"] = case.mask.astype(np.uint8)
        both = limit + against["epsilon"]
        reference = ducc.vis2dirty(vis=np.array(case.vis), npix_x=case.size[0],
                                   npix_y=case.size[1], **against)
        worst.add("dirty, ducc0", relative(dirty, reference, expected[0]), both, case)
        reference = ducc.dirty2vis(dirty=np.array(case.image), **against)
        worst.add("vis, ducc0", relative(vis, reference, expected[1]), both, case)
    # the same kernel values both ways: what is left is rounding, of grids whose values
    # the correction raises, and of the results' own precision
    one = np.vdot(vis.astype("c16"), case.vis.astype("c16")).real
    other = np.vdot(case.image.astype("f8"), dirty.astype("f8"))
    sizes = (np.linalg.norm(vis) * np.linalg.norm(case.vis) +
             np.linalg.norm(case.image) * np.linalg.norm(dirty))
    unit = np.finfo(case.real).eps
    if sizes > 0:
        worst.add("adjointness", abs(one - other) / sizes, 4 * (rounding + 4 * unit), case)
    masked = case.weights() == 0
    worst.add("masked visibilities are 0", np.abs(vis[masked]).max(initial=0), 0, case)
    check_outputs(case, dirty, vis, worst)


def check_outputs(case, dirty, vis, worst):
    """Given arrays are filled and returned, whatever their layout."""
    for axis in (0, 1):
        shape = list(case.size)
        shape[axis] *= 2
        wide = np.full(shape, 7, case.real)
        out = wide[::2] if axis == 0 else wide[:, 1::2]
        back = wgridder.vis2dirty(vis=case.vis, dirty=out, **case.settings)
        rest = wide[1::2] if axis == 0 else wide[:, ::2]
        worst.add("given dirty array", float(back is not out or np.any(rest != 7)), 0.5,
                  case)
        if dirty.flags.c_contiguous and dirty.shape[1] > 1:
            worst.add("dirty in another layout is the same",
                      np.abs(out - dirty).max(), 0, case)
    transposed = np.empty(case.size, case.real,
                          order="C" if dirty.flags.f_contiguous else "F")
    wgridder.vis2dirty(vis=case.vis, dirty=transposed, **case.settings)
    # the axes change places in the gridder: as accurate, but not the same sums
    worst.add("transposed dirty array",
              relative(transposed, dirty, case.expected_norms()[0]),
              2 * (case.epsilon + case.position_rounding()), case)
    out = np.full((case.vis.shape[0], 2 * case.vis.shape[1]), 7, case.type)
    back = wgridder.dirty2vis(dirty=case.image, vis=out[:, ::2], **case.settings)
    worst.add("given vis array", float(back.base is not out or np.any(out[:, 1::2] != 7)),
              0.5, case)
    worst.add("vis in another layout is the same", np.abs(out[:, ::2] - vis).max(), 0, case)


# ---- single properties ----

def small(**changes):
    """Arguments of a small call of vis2dirty, with changes."""
    rng = np.random.default_rng(5)
    uvw = rng.normal(0, 300, (20, 3))
    vis = (rng.normal(size=(20, 4)) + 1j * rng.normal(size=(20, 4))).astype("c8")
    out = dict(uvw=uvw, freq=np.linspace(1e9, 1.1e9, 4), vis=vis, npix_x=64, npix_y=32,
               pixsize_x=1e-4, pixsize_y=2e-4, epsilon=1e-4, do_wgridding=True)
    out.update(changes)
    return out


def small_prediction(**changes):
    out = small()
    del out["vis"], out["npix_x"], out["npix_y"]
    out["dirty"] = np.random.default_rng(6).normal(size=(64, 32)).astype("f4")
    out.update(changes)
    return out


def raises(suite, what, function, arguments, kinds, *words):
    try:
        function(**arguments)
    except kinds as error:
        missing = [w for w in words if w not in str(error)]
        suite.true(f"{what}: {error}" + (f" (without {missing})" if missing else ""),
                   not missing)
    except Exception as error:  # pylint: disable=broad-except
        suite.true(f"{what}: another exception: {type(error).__name__}: {error}", False)
    else:
        suite.true(f"{what}: no exception", False)


def changed(array, place, value):
    out = array.copy()
    out[place] = value
    return out


def check_fork(suite):
    """A child grids as its parent does, which has threads."""
    args = small(nthreads=2)
    expected = wgridder.vis2dirty(**args)
    same = in_child(lambda: np.array_equal(wgridder.vis2dirty(**args), expected))
    suite.equal("two threads in a child of a process with two threads", same, "True")


def check_errors(suite):
    a, b = wgridder.vis2dirty, wgridder.dirty2vis
    vis, uvw, freq = small()["vis"], small()["uvw"], small()["freq"]
    bad = (ValueError, TypeError)
    raises(suite, "uvw of shape (n, 2)", a, small(uvw=uvw[:, :2]), ValueError, "uvw")
    raises(suite, "uvw in single precision", a, small(uvw=uvw.astype("f4")), TypeError,
           "uvw")
    raises(suite, "vis of another shape", a, small(vis=vis[:, :3]), ValueError, "vis")
    raises(suite, "real vis", a, small(vis=vis.real), TypeError, "vis")
    raises(suite, "wgt of another type", a, small(wgt=np.ones(vis.shape)), TypeError, "wgt")
    raises(suite, "wgt of another shape", a, small(wgt=np.ones(4, "f4")), ValueError, "wgt")
    raises(suite, "mask of another type", a, small(mask=np.ones(vis.shape, "i4")),
           TypeError, "mask")
    raises(suite, "freq of two axes", a, small(freq=freq[None]), ValueError, "freq")
    raises(suite, "no image size", a, small(npix_x=0), ValueError, "0 x 32")
    raises(suite, "a huge image", a, small(npix_x=2**21, npix_y=0), bad)
    raises(suite, "sizes that contradict", a, small(dirty=np.zeros((32, 32), "f4")),
           ValueError, "dirty")
    raises(suite, "dirty of another type", a, small(dirty=np.zeros((64, 32))), ValueError,
           "dirty")
    fixed = np.zeros((64, 32), "f4")
    fixed.flags.writeable = False
    raises(suite, "read-only dirty", a, small(dirty=fixed), ValueError, "read-only")
    raises(suite, "ε beyond single precision", a, small(epsilon=1e-8), ValueError,
           "single precision")
    raises(suite, "ε of 0", a, small(epsilon=0), ValueError, "accuracy")
    raises(suite, "ε of 1e-15", a, small(vis=vis.astype("c16"), epsilon=1e-15), ValueError,
           "accuracy")
    raises(suite, "ε that is not a number", a, small(epsilon=np.nan), ValueError)
    raises(suite, "paddings that do not reach ε", a, small(epsilon=2e-5, sigma_max=1.16),
           ValueError, "padding")
    raises(suite, "pixels of size 0", a, small(pixsize_x=0), ValueError, "pixels")
    raises(suite, "a centre outside the sky", a, small(center_y=1.5), ValueError, "centre")
    raises(suite, "−1 threads", a, small(nthreads=-1), ValueError, "threads")
    for name in ("nthreads", "npix_x", "npix_y"):
        raises(suite, f"{name} beyond the integers of C", a, small(**{name: 2**32}),
               ValueError, name, "32 bits")
        raises(suite, f"{name} that is not whole", a, small(**{name: 1.5}), TypeError, name)
    raises(suite, "pixels fewer than 0", a, small(npix_x=-64), ValueError, "-64 x 32")
    raises(suite, "a centre that is not a number", a, small(center_x=np.nan), ValueError,
           "centre")
    raises(suite, "vis of another byte order", a, small(vis=vis.astype(">c8")), TypeError,
           "vis")
    raises(suite, "a negative frequency", a, small(freq=changed(freq, 2, -1e9)), ValueError,
           "channel 2")
    raises(suite, "NaN in uvw", a, small(uvw=changed(uvw, (3, 1), np.nan)), ValueError,
           "row 3")
    raises(suite, "infinite uvw, prediction", b,
           small_prediction(uvw=changed(uvw, (3, 2), np.inf)), ValueError, "row 3")
    raises(suite, "NaN in vis", a, small(vis=changed(vis, (5, 2), np.nan)), ValueError,
           "row 5", "channel 2")
    raises(suite, "NaN in wgt", a,
           small(wgt=changed(np.ones(vis.shape, "f4"), (1, 0), np.nan)), ValueError,
           "row 1", "channel 0")
    raises(suite, "NaN in the model", b,
           small_prediction(dirty=changed(small_prediction()["dirty"], (3, 4), np.nan)),
           ValueError, "not finite")
    raises(suite, "a model of one axis", b, small_prediction(dirty=np.zeros(4, "f4")),
           ValueError, "dirty")
    raises(suite, "vis to write of another shape", b,
           small_prediction(vis=np.zeros((20, 3), "c8")), ValueError, "vis")
    raises(suite, "RuntimeErrors, as ducc0's are", a, small(vis=vis[:, :3]), RuntimeError)
    raises(suite, "also of the library", a, small(epsilon=0), RuntimeError)
    raises(suite, "they are tessera's", a, small(vis=vis.real), tessera.UsageError)
    raises(suite, "they are tessera's", a, small(epsilon=1e-8), tessera.UsageError)


def check_ignored(suite):
    """What is masked or has weight 0 may be anything."""
    vis, uvw = small()["vis"], small()["uvw"]
    mask = np.ones(vis.shape, np.uint8)
    mask[4, 1] = mask[7] = 0
    without = wgridder.vis2dirty(**small(mask=mask))
    dirt = changed(vis, (4, 1), np.nan)
    dirt[7] = np.inf
    lost = changed(uvw, 7, np.nan)
    for what, more in (("mask", dict(mask=mask)), ("weight 0", dict(wgt=mask.astype("f4"))),
                       ("non-contiguous weight 0",
                        dict(wgt=np.asfortranarray(mask.astype("f4"))))):
        found = wgridder.vis2dirty(**small(vis=dirt, uvw=lost, **more))
        suite.true(f"NaN under {what} is ignored", np.array_equal(found, without))
    predicted = wgridder.dirty2vis(**small_prediction(uvw=lost, mask=mask))
    full = wgridder.dirty2vis(**small_prediction())
    suite.true("prediction of masked rows without position is 0",
               np.all(predicted[mask == 0] == 0) and np.all(np.isfinite(predicted)))
    suite.true("and that of the others is the same",
               np.allclose(predicted[mask != 0], full[mask != 0], rtol=0,
                           atol=1e-4 * np.abs(full).max()))


def check_empty(suite):
    zero = np.zeros((64, 32), "f4")
    none = small(uvw=np.zeros((0, 3)), vis=np.zeros((0, 4), "c8"))
    suite.true("no rows: image 0", np.array_equal(wgridder.vis2dirty(**none), zero))
    none = small(freq=np.zeros(0), vis=np.zeros((20, 0), "c8"))
    suite.true("no channels: image 0", np.array_equal(wgridder.vis2dirty(**none), zero))
    none = small(mask=np.zeros((20, 4), "u1"))
    suite.true("all masked: image 0", np.array_equal(wgridder.vis2dirty(**none), zero))
    found = wgridder.dirty2vis(**small_prediction(uvw=np.zeros((0, 3))))
    suite.true("no rows: no visibilities", found.shape == (0, 4) and found.dtype == "c8")
    found = wgridder.dirty2vis(**small_prediction(mask=np.zeros((20, 4), "u1")))
    suite.true("all masked: visibilities 0", np.all(found == 0))
    found = wgridder.dirty2vis(**small_prediction(dirty=zero))
    suite.true("empty sky: visibilities 0", np.all(found == 0))
    found = wgridder.vis2dirty(**small(vis=np.zeros((20, 4), "c8")))
    suite.true("visibilities 0: image 0", np.all(found == 0))


def check_switches(suite):
    double = {"vis": small()["vis"].astype("c16")}
    true = wgridder.vis2dirty(**small(**double, epsilon=1e-11))
    found = wgridder.vis2dirty(**small(double_precision_accumulation=True, epsilon=1e-9))
    suite.true("double precision accumulation returns single", found.dtype == np.float32)
    # half a unit in the last place of the result
    suite.below("and is as accurate as its type", relative(found, true, 0), 1e-7)
    suite.true("its grid is double", wgridder.last_report()["double_grid"])
    found = wgridder.vis2dirty(**small(epsilon=1e-6))
    suite.below("complex64 and ε of 1e-6", relative(found, true, 0), 1e-6)
    vis = wgridder.dirty2vis(**small_prediction(epsilon=1e-6))
    suite.true("which a double grid gives", wgridder.last_report()["double_grid"] and
               vis.dtype == np.complex64)
    wide = small_prediction()["dirty"].astype("f8")
    suite.below("float32 and ε of 1e-6", relative(
        vis, wgridder.dirty2vis(**small_prediction(dirty=wide, epsilon=1e-11)), 0), 1e-6)
    wgridder.vis2dirty(**small(sigma_min=2.2, sigma_max=2.4))
    report = wgridder.last_report()
    suite.true(f"sigma_min and sigma_max: {report['grid_u'] / 32:.2f}, "
               f"{report['grid_v'] / 64:.2f}",
               report["grid_u"] >= 2.2 * 32 and report["grid_v"] >= 2.2 * 64)
    suite.true("ε above 1e-2 is taken as 1e-2",
               np.array_equal(wgridder.vis2dirty(**small(epsilon=0.3)),
                              wgridder.vis2dirty(**small(epsilon=1e-2))))
    out = io.StringIO()
    with redirect_stdout(out):
        wgridder.vis2dirty(**small(verbosity=1))
        wgridder.dirty2vis(**small_prediction(verbosity=1))
    suite.true("verbosity prints plan and stages",
               all(w in out.getvalue() for w in ("vis2dirty", "dirty2vis", "support",
                                                 "grid", "fft", "peak")))
    out = io.StringIO()
    with redirect_stdout(out):
        wgridder.vis2dirty(**small())
    suite.true("and nothing is printed without it", out.getvalue() == "")
    report = wgridder.last_report()
    stages = sum(report[k] for k in ("prepare_s", "plan_s", "sort_s", "grid_s", "join_s",
                                     "fft_s", "correct_s"))
    suite.true("each takes time", all(report[k] > 0 for k in ("sort_s", "grid_s", "join_s",
                                                              "fft_s")))
    suite.true(f"stages add up to no more than the total: {stages} of {report['total_s']}",
               stages <= 1.001 * report["total_s"])


# ---- ducc0's other names ----

DUCC = {"experimental.vis2dirty": "uvw freq vis wgt npix_x npix_y pixsize_x pixsize_y epsilon "
        "do_wgridding nthreads verbosity mask flip_u flip_v flip_w divide_by_n dirty "
        "sigma_min sigma_max center_x center_y allow_nshift double_precision_accumulation",
        "experimental.dirty2vis": "uvw freq dirty wgt pixsize_x pixsize_y epsilon "
        "do_wgridding nthreads verbosity mask flip_u flip_v flip_w divide_by_n vis "
        "sigma_min sigma_max center_x center_y allow_nshift",
        "ms2dirty": "uvw freq ms wgt npix_x npix_y pixsize_x pixsize_y nu nv epsilon "
        "do_wstacking nthreads verbosity mask double_precision_accumulation",
        "dirty2ms": "uvw freq dirty wgt pixsize_x pixsize_y nu nv epsilon do_wstacking "
        "nthreads verbosity mask"}


def named(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def check_names(suite):
    """ducc0's functions with its arguments, in its order, and its defaults."""
    for name, arguments in DUCC.items():
        found = inspect.signature(named(wgridder, name)).parameters
        suite.equal(f"arguments of {name}", " ".join(found), arguments)
        if not ducc:
            continue
        text = named(ducc, name).__doc__.splitlines()[0]
        theirs = dict(re.findall(r"(\w+): [^=,]*(?:\[[^]]*\])?[^=,]*= ([^,)]+)", text))
        mine = {key: repr(p.default) for key, p in found.items()
                if p.default is not p.empty and key in theirs}
        suite.equal(f"defaults of {name}", mine, theirs)
        suite.equal(f"arguments of ducc0's {name}",
                    " ".join(re.findall(r"(\w+): ", text)), arguments)


def older(arguments):
    """Arguments of ms2dirty or dirty2ms."""
    names = {"vis": "ms", "do_wgridding": "do_wstacking"}
    return {names.get(key, key): value for key, value in arguments.items()}


def check_older(suite):
    """ms2dirty and dirty2ms by name and by place, against vis2dirty and dirty2vis, and
    ducc0's."""
    ask, back = small(), small_prediction()
    mask = np.ones(ask["vis"].shape, np.uint8)
    mask[3] = 0
    wgt = np.random.default_rng(9).uniform(0.5, 2, mask.shape).astype("f4")
    ask.update(wgt=wgt, mask=mask)
    back.update(wgt=wgt, mask=mask)
    dirty, vis = wgridder.vis2dirty(**ask), wgridder.dirty2vis(**back)
    suite.true("ms2dirty is vis2dirty",
               np.array_equal(wgridder.ms2dirty(**older(ask)), dirty))
    suite.true("dirty2ms is dirty2vis", np.array_equal(wgridder.dirty2ms(**older(back)), vis))
    uvw, freq = ask["uvw"], ask["freq"]
    place = (wgt, 64, 32, 1e-4, 2e-4, 0, 0, 1e-4, True, 1, 0, mask)
    suite.true("ms2dirty by place",
               np.array_equal(wgridder.ms2dirty(uvw, freq, ask["vis"], *place), dirty))
    place = place[:1] + place[3:]
    suite.true("dirty2ms by place",
               np.array_equal(wgridder.dirty2ms(uvw, freq, back["dirty"], *place), vis))
    for name in ("npix_x", "pixsize_y", "epsilon"):
        less = older(ask)
        del less[name]
        raises(suite, f"ms2dirty without {name}", wgridder.ms2dirty, less, ValueError)
    if ducc:  # both are within 1e-4
        suite.below("ms2dirty, ducc0",
                    relative(dirty, ducc.ms2dirty(**older(ask)), 0), 2e-4)
        suite.below("dirty2ms, ducc0",
                    relative(vis, ducc.dirty2ms(**older(back)), 0), 2e-4)


def pfb_calls(gridder, data, epsilon):
    """Calls as pfb-imaging makes them, of a module like ducc0.wgridder.experimental: image
    of a band, prediction of bands into slices of an array, and the two in one step."""
    uvw, freq, vis, wgt, mask = data
    where = dict(pixsize_x=1.5e-4, pixsize_y=1.5e-4, center_x=0.01, center_y=-0.02,
                 flip_u=False, flip_v=True, flip_w=False, do_wgridding=True,
                 divide_by_n=False, epsilon=epsilon, nthreads=2)
    more = dict(sigma_min=1.1, sigma_max=3.0)
    image = gridder.vis2dirty(uvw=uvw, freq=freq, vis=vis, wgt=wgt, mask=mask, npix_x=64,
                              npix_y=96, double_precision_accumulation=True, verbosity=0,
                              **where, **more)
    model = np.zeros((2, 64, 96), wgt.dtype)
    model[:, 20, 30] = (1, 2)
    bands = np.zeros(vis.shape, vis.dtype)
    for k in range(2):
        band = slice(2 * k, 2 * k + 2)
        bands[:, band] = gridder.dirty2vis(uvw=uvw, freq=freq[band], dirty=model[k],
                                           **where)
    out, kept = np.zeros((64, 96), wgt.dtype), np.zeros(vis.shape, vis.dtype)
    gridder.dirty2vis(uvw=uvw, freq=freq, dirty=model[1], mask=mask, vis=kept,
                      wgt=None, **where, **more)
    gridder.vis2dirty(uvw=uvw, freq=freq, vis=kept, wgt=wgt, mask=mask, dirty=out,
                      **where, **more)
    return image, bands, out


def check_pfb(suite):
    rng = np.random.default_rng(3)
    uvw = rng.normal(0, 400, (200, 3))
    freq = np.linspace(1e9, 1.2e9, 4)
    vis = (rng.normal(size=(200, 4)) + 1j * rng.normal(size=(200, 4))).astype("c8")
    wgt = rng.uniform(0.1, 2, vis.shape).astype("f4")
    mask = (rng.random(vis.shape) < 0.8).astype(np.uint8)
    for what, epsilon in (("single", 1e-4), ("single", 2e-6), ("double", 1e-7)):
        if what == "double":
            vis, wgt = vis.astype("c16"), wgt.astype("f8")
        data = (uvw, freq, vis, wgt, mask)
        image, bands, out = pfb_calls(wgridder.experimental, data, epsilon)
        suite.true(f"pfb-imaging's calls, {what} {epsilon}: types and shapes",
                   image.dtype == wgt.dtype and image.shape == (64, 96) and
                   bands.dtype == vis.dtype and np.any(out != 0))
        if not ducc:
            continue
        # ε of both programs, and the rounding of both results
        limit = 2 * (epsilon + np.finfo(wgt.dtype).eps)
        theirs = pfb_calls(ducc.experimental, data, epsilon)
        for name, one, other in zip(("image", "bands", "model to image"),
                                    (image, bands, out), theirs):
            suite.below(f"pfb-imaging's calls, {what} {epsilon}, {name}: ducc0",
                        relative(one, other, 0), limit)


def check_threads(suite):
    """Calls from several threads at once do not disturb one another's results or errors."""
    results, messages = {}, {}

    def work(k):
        if k % 2:
            for _ in range(20):
                try:
                    wgridder.vis2dirty(**small(freq=changed(small()["freq"], k % 4, -1)))
                except ValueError as error:
                    messages.setdefault(k, set()).add(str(error))
        else:
            results[k] = [wgridder.vis2dirty(**small(center_x=0.01 * k)) for _ in range(5)]

    workers = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    suite.true("threads have their own errors",
               all(len(m) == 1 and f"channel {k % 4} " in next(iter(m))
                   for k, m in messages.items()) and len(messages) == 3)
    suite.true("and their own images",
               all(np.array_equal(image, wgridder.vis2dirty(**small(center_x=0.01 * k)))
                   for k, images in results.items() for image in images)
               and len(results) == 3)


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def check_memory(suite):
    """A call takes the memory of the call before, which release_memory() gives back."""
    rng = np.random.default_rng(5)
    call = dict(uvw=rng.normal(0, 3000, (5000, 3)), freq=np.array([1e9]),
                vis=np.ones((5000, 1), "c16"), npix_x=1200, npix_y=1200, pixsize_x=2e-5,
                pixsize_y=2e-5, epsilon=1e-8, do_wgridding=True, nthreads=1,
                dirty=np.zeros((1200, 1200)))
    tessera.release_memory()
    images, counts = [], []
    for _ in range(4):
        before = faults()
        images.append(wgridder.vis2dirty(**call).copy())
        counts.append(faults() - before)
    released = tessera.release_memory()
    if released == 0:
        suite.skipped("memory of calls: a sanitized library keeps none")
        return
    suite.true("images in memory that was used before are the same, bit by bit",
               all(np.array_equal(images[0], image) for image in images[1:]))
    # each image's copy is new memory in any case
    own = images[0].nbytes // 4096
    suite.true(f"later calls get no new pages: faults {counts}",
               max(counts[2:]) < own + 500)
    suite.true(f"release_memory() gives {released >> 20} MiB back, once",
               released >= 8 << 20 and tessera.release_memory() == 0)


def main():
    suite = Suite("python_wgridder_full" if FULL else "python_wgridder")
    print(f"tessera {tessera.library_version()}")
    if not ducc:
        suite.skipped("comparisons with ducc0, which is not installed")
    worst = Worst(suite)
    hard = (97, 157, 158, 191, 315, 345)  # few visibilities, or a few pixels across
    for seed in range(600) if FULL else (*range(40), *hard):
        check_case(Case(seed, big=False), worst)
    for seed in range(1000, 1120 if FULL else 1010):
        check_case(Case(seed, big=True), worst)
    worst.report()
    check_errors(suite)
    check_ignored(suite)
    check_empty(suite)
    check_switches(suite)
    check_threads(suite)
    check_fork(suite)
    check_memory(suite)
    check_names(suite)
    check_older(suite)
    check_pfb(suite)
    failed, tried = doctest.testmod(wgridder)
    suite.true(f"the docstring's {tried} examples", failed == 0 and tried > 0)
    suite.finish()


if __name__ == "__main__":
    sys.exit(main())
