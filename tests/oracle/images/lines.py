#!/usr/bin/env python3
"""Spectral lines: `tessera image --uvcontsub` against fits of numpy and direct sums, of
UVFITS with two IFs and of MeasurementSets whose windows differ, on any number of ranks; and
the one beam of --common-beam against a search of numpy."""
import copy
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (ASEC, C_M_S, HERE, Suite, casacore_python, fits_module, forced, have_ms, l2_error,
                 mpi_environment, mpiexec, peak_error, read_image, run, simulate, tessera,
                 write_sky)
from selections import split_ifs
import uvfits

N, SCALE = 40, 60 * ASEC
IMAGE = ["--size", str(N), "--scale", "60asec", "--weight", "natural", "--accuracy", "1e-8",
         "--reproducible", "--no-psf"]
# What is left of a sample is rounded to single precision.
LIMIT = 1e-8 + 6e-8
ROWS, HALF = 240, 16
WIDTH = 1e6
FREQ = 1e9 + WIDTH * np.arange(2 * HALF)
RANKS = (1, 2, 3, 4) if mpiexec() else (1,)


def left_of_fit(freq, is_line, order, vis, weight):
    """vis less the polynomial of each row and correlation, and weights of rows that have one."""
    left, kept = np.array(vis, "c16"), np.array(weight, "f8")
    unfit = 0
    powers = np.vander((freq - freq.mean()) / np.ptp(freq), order + 1)
    for row in range(len(vis)):
        lost = False
        for corr in range(vis.shape[2]):
            good = (weight[row, :, corr] > 0) & np.isfinite(vis[row, :, corr])
            use = good & ~is_line
            if use.sum() <= order:
                kept[row, :, corr] = 0
                lost |= good.any()
                continue
            root = np.sqrt(weight[row, use, corr].astype("f8"))
            found = np.linalg.lstsq(powers[use] * root[:, None],
                                    vis[row, use, corr].astype("c16") * root, rcond=None)[0]
            left[row, :, corr] -= powers @ found
        unfit += lost
    return left, kept, unfit


def make_samples(rng, rows, freq, corrs=2):
    """A curved continuum of some Jy, lines, noise, flags and weights that differ."""
    x = (freq - freq.mean()) / np.ptp(freq)
    shape = (rows, 1, corrs)
    draw = lambda: rng.normal(size=shape) + 1j * rng.normal(size=shape)
    vis = draw() + draw() * x[None, :, None] + draw() * x[None, :, None] ** 2
    vis = vis + 0.1 * (rng.normal(size=(rows, len(freq), corrs)) + 0j)
    weight = rng.uniform(0.2, 3, vis.shape)
    weight[rng.uniform(size=vis.shape) < 0.1] = -1
    vis[3, 5, 0] = np.nan
    return vis.astype("c8"), weight.astype("f4")


def window_lines(channels, *spans):
    number = np.arange(channels)
    return np.any([(number >= a) & (number <= b) for a, b in spans], axis=0) \
        if spans else np.zeros(channels, bool)


def told_unfit(result):
    return [s for s in (result.out + result.err).splitlines() if "too few good channels" in s]


class TwoIfs:
    """A UVFITS file of two IFs; in some rows, lines alone are good."""

    def __init__(self, suite):
        rng = np.random.default_rng(7)
        whole, self.path = suite.path("whole.uvfits"), suite.path("ifs.uvfits")
        vis, weight = make_samples(rng, ROWS, FREQ)
        weight[7, :5] = weight[7, 9:HALF] = -1
        self.uvw = uvfits.write(whole, uvfits.random_tracks(ROWS, 450.0), FREQ, vis, weight)
        split_ifs(whole, self.path)
        self.vis, self.weight = vis, weight

    def left(self, order, first, second):
        parts = [left_of_fit(FREQ[s], is_line, order, self.vis[:, s], self.weight[:, s])
                 for s, is_line in ((slice(0, HALF), first), (slice(HALF, None), second))]
        value, weight = uvfits.stokes_i(*(np.concatenate([p[k] for p in parts], 1)
                                          for k in (0, 1)))
        return value, weight, parts[0][2] + parts[1][2]

    def dirty(self, order, first, second, channels):
        value, weight, _ = self.left(order, first, second)
        return uvfits.direct_dirty(self.uvw, FREQ[channels], value[:, channels],
                                   weight[:, channels], N, N, SCALE)


def check_ifs(suite, obs):
    """Windows with lines of their own, also where few channels are imaged; bits of ranks."""
    first, second = window_lines(HALF, (5, 8)), window_lines(HALF, (0, 2), (14, 15))
    args = [obs.path, *IMAGE, "--uvcontsub", "2", "--line-channels", "0:5~8,1:0-2;14~15",
            "--channels-out", "2"]
    bits = {}
    for ranks in RANKS:
        ran, prefix = suite.image(f"ifs{ranks}", *args, ranks=ranks)
        if ran:
            bits[ranks] = [read_image(f"{prefix}-{c:04d}-dirty.fits")[0] for c in (0, 1)]
    for c, half in enumerate((slice(0, HALF), slice(HALF, None))):
        suite.below(f"IF {c}: L2 error", l2_error(bits[1][c],
                                                  obs.dirty(2, first, second, half)), LIMIT)
    for ranks in RANKS[1:]:
        suite.true(f"bits of {ranks} ranks", np.array_equal(bits[ranks], bits[1]))
    device = {**mpi_environment(), "TESS_EMULATED": "1000000000000"}
    result = tessera("image", *args, "--backend", "cuda", "-o", suite.path("device"), env=device)
    if result.status == 4:
        suite.skipped("rows of a device: built without one")
    elif suite.ran("on a device", result):
        suite.below("on a device: L2 error", l2_error(
            read_image(suite.path("device-0000-dirty.fits"))[0], bits[1][0]), LIMIT)
    some = np.r_[5:9, HALF + 5:HALF + 9]
    ran, prefix = suite.image("some", *args[:-2], "--channels", "5:9")
    if ran:
        suite.below("--channels: L2 error", l2_error(read_image(prefix + "-dirty.fits")[0],
                                                     obs.dirty(2, first, second, some)), LIMIT)


def check_model(suite, obs):
    """--subtract takes a model out of all channels of the rows before the fit."""
    pixels, offset, flux = np.zeros((N, N)), (12, -9), 5.0
    pixels[N // 2 + offset[1], N // 2 + offset[0]] = flux
    model = uvfits.write_model(suite.path("bright.fits"), pixels, SCALE)
    l, m = -offset[0] * SCALE, offset[1] * SCALE
    path = obs.uvw @ [l, m, uvfits.n_minus_1(l, m)]
    less = copy.copy(obs)
    less.vis = obs.vis - flux * np.exp(2j * np.pi * path[:, None] * FREQ / C_M_S)[..., None]
    lines = window_lines(HALF, (5, 8))
    some = np.r_[5:9, HALF + 5:HALF + 9]
    for ranks, more, channels in ((RANKS[-1], [], slice(None)), (1, ["--channels", "5:9"], some)):
        ran, prefix = suite.image(f"model{ranks}", obs.path, *IMAGE, "--uvcontsub", "1",
                                  "--line-channels", "5~8", "--subtract", model, *more, ranks=ranks)
        if ran:
            suite.below(f"a model before the fit, {ranks} ranks: L2 error", l2_error(
                read_image(prefix + "-dirty.fits")[0], less.dirty(1, lines, lines, channels)),
                5e-6)  # columns of 5 Jy are of single precision
    suite.equal("a model before the fit: files that are left", [
        name for name in os.listdir(suite.work) if "subtracted" in name], [])


def check_lists(suite, obs):
    """Numbers of all windows, frequencies, none; and the rows that are flagged."""
    few = ["--uvcontsub", "1", "--line-channels"]
    both = window_lines(HALF, (5, 8))
    by_freq = [FREQ[k] - 0.4 * WIDTH for k in (4, 9)]
    cases = (("5~8", both, both), ("none", both & False, both & False),
             (f"{1e-6 * by_freq[0]}~{1e-6 * by_freq[1]}MHz", window_lines(HALF, (4, 9)),
              both & False))
    for text, first, second in cases:
        result = tessera("image", obs.path, *IMAGE, *few, text, "--overwrite", "-o",
                         suite.path("list"))
        if suite.ran(text, result):
            suite.below(f"{text}: L2 error",
                        l2_error(read_image(suite.path("list-dirty.fits"))[0],
                                 obs.dirty(1, first, second, slice(None))), LIMIT)
            count = obs.left(1, first, second)[2]
            lines = told_unfit(result)
            suite.equal(f"{text}: rows that are flagged are told",
                        [int(s.split("warning: ")[1].split()[0]) for s in lines],
                        [count] if count else [])


def check_windows(suite):
    """A MeasurementSet of two windows: of other widths, overlapping, one of them descending."""
    python = casacore_python()
    if not have_ms() or not python:
        return
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60.05deg", dec="-30deg", flux_jy=1)])
    ms = simulate(suite.path("windows.ms"), sky, duration="4min", channels=HALF, freq="1GHz",
                  width="1MHz")
    result = run([python, os.path.join(HERE, "ms_column.py"), ms, "UVW",
                  suite.path("uvw.npy")], 60)
    if not suite.ran("rows of a set", result):
        return
    rows = len(np.load(suite.path("uvw.npy")))
    rng = np.random.default_rng(3)
    freq = [1e9 + WIDTH * np.arange(HALF), 1.021e9 - 1.5e6 * np.arange(10)]
    cells = {"freq0": freq[0], "width0": np.full(HALF, WIDTH), "freq1": freq[1],
             "width1": np.full(10, -1.5e6)}
    for k in (0, 1):
        vis, weight = make_samples(rng, (rows + 1 - k) // 2, freq[k])
        cells.update({f"vis{k}": vis, f"weight{k}": np.abs(weight), f"flag{k}": weight < 0})
    np.savez(suite.path("cells.npz"), **cells)
    script = os.path.join(HERE, "two_windows.py")
    if not suite.ran("two windows", run([python, script, ms, suite.path("cells.npz"),
                                         suite.path("uvw.npy")], 60)):
        return
    uvw = np.load(suite.path("uvw.npy"))
    lines = [window_lines(HALF, (3, 6)), window_lines(10, (0, 1))]
    for label, more, wanted in (("all", [], (slice(None),) * 2),
                                ("some", ["--channels", "12:16"], (slice(12, 16), slice(0, 0)))):
        image, total = np.zeros((N, N)), 0
        for k in (0, 1):
            left = left_of_fit(freq[k], lines[k], 1, cells[f"vis{k}"],
                               np.where(cells[f"flag{k}"], -1, cells[f"weight{k}"]))
            value, weight = (a[:, wanted[k]] for a in uvfits.stokes_i(*left[:2]))
            reach = np.abs(uvw[k::2, :2]).max(-1)[:, None] * freq[k][wanted[k]] / C_M_S
            weight = np.where(reach < 0.5 / SCALE, weight, 0)
            if value.size:
                image += weight.sum() * uvfits.direct_dirty(
                    uvw[k::2], freq[k][wanted[k]], value, weight, N, N, SCALE)
                total += weight.sum()
        ran, prefix = suite.image(f"windows-{label}", ms, *IMAGE, "--uvcontsub", "1",
                                  "--line-channels", "0:3~6,1:0~1", *more,
                                  ranks=RANKS[-1])
        if ran:
            suite.below(f"windows, {label} channels: L2 error",
                        l2_error(read_image(prefix + "-dirty.fits")[0], image / total), LIMIT)


def check_refused(suite, obs):
    """One line and status 2."""
    for what, args in (
            ("no list", ["--uvcontsub", "1"]),
            ("no order", ["--line-channels", "5~8"]),
            ("no such order", ["--uvcontsub", "10", "--line-channels", "5~8"]),
            ("not a list", ["--uvcontsub", "1", "--line-channels", "8~5"]),
            ("windows in some items", ["--uvcontsub", "1", "--line-channels", "0:5~8,3~4"]),
            ("nothing to fit", ["--uvcontsub", "1", "--line-channels", "1:0~14"]),
            ("no such channels", ["--uvcontsub", "1", "--line-channels", "16~20"]),
            ("no such window", ["--uvcontsub", "1", "--line-channels", "2:5~8"]),
            ("no such frequency", ["--uvcontsub", "1", "--line-channels", "2~3GHz"])):
        result = tessera("image", obs.path, *IMAGE, *args, "-o", suite.path("refused"))
        if suite.ran(what, result, 2):
            suite.equal(f"{what}: lines of errors", len(result.errors()), 1)
        if what == "no such channels":
            suite.true(f"it names them: {result.errors()}", "ifs.uvfits has no channels 16~20" in result.err)


# ---- one beam for all channels ----

SIDE, PIXEL = 96, 40 * ASEC
CLEAN = ["--size", str(SIDE), "--scale", "40asec", "--niter", "60", "--reproducible", "--threads",
         "1", "--channels-out", "4", "--accuracy", "1e-7"]


def widths(beam):
    """The squared widths of a beam (BMAJ, BMIN, BPA in degrees) along x (West) and y [pixels]."""
    major, minor = np.deg2rad(beam[0]) / PIXEL, np.deg2rad(beam[1]) / PIXEL
    c, s = np.cos(np.deg2rad(beam[2])), np.sin(np.deg2rad(beam[2]))
    axes = np.array([[-s, c], [c, s]])
    return axes.T @ np.diag([major ** 2, minor ** 2]) @ axes


def beam_of(header):
    return np.array([header[k] for k in ("BMAJ", "BMIN", "BPA")])


def smeared(image, matrix):
    """An image convolved with the Gaussian of these widths and unit sum, beyond whose edges
    there is nothing."""
    ky, kx = np.meshgrid(np.fft.fftfreq(4 * SIDE), np.fft.fftfreq(4 * SIDE), indexing="ij")
    power = matrix[0, 0] * kx ** 2 + matrix[1, 1] * ky ** 2 + 2 * matrix[0, 1] * kx * ky
    padded = np.zeros((4 * SIDE, 4 * SIDE))
    padded[:SIDE, :SIDE] = image
    padded = np.fft.ifft2(np.fft.fft2(padded) * np.exp(-np.pi ** 2 * power / (4 * np.log(2))))
    return padded.real[:SIDE, :SIDE]


def least_area(own):
    """The least area of an ellipse that contains those of the matrices, by a search over
    angles and ratios of axes."""
    angle, ratio, reach, least = 0.0, 1.5, np.array([np.pi / 2, 1.5]), np.inf
    for _ in range(60):
        grid = np.stack(np.meshgrid(*[np.linspace(-r, r, 21) for r in reach]), -1).reshape(-1, 2)
        tries = np.abs(grid[:, 1] + ratio), grid[:, 0] + angle
        c, s, grow = np.cos(tries[1]), np.sin(tries[1]), np.exp(tries[0])
        inverse = np.stack([np.stack([s * s / grow + c * c * grow, s * c * (grow - 1 / grow)], -1),
                            np.stack([s * c * (grow - 1 / grow), c * c / grow + s * s * grow], -1)],
                           -2)
        area = np.max([np.linalg.eigvals(inverse @ a).real.max(-1) for a in own], axis=0)
        best = area.argmin()
        if area[best] < least:
            least, ratio, angle = area[best], tries[0][best], tries[1][best]
        reach *= 0.75
    return least


def make_channels(suite):
    """Four channels over an octave, whose rows differ, so that none of the beams contains the
    others; a point source and noise. No baseline is good in the third channel."""
    rng = np.random.default_rng(11)
    freq = np.array([1.0, 1.1, 1.2, 1.3]) * 1e9
    uvw = uvfits.random_tracks(400, 250.0, 0.01)
    uvw[:, 0] *= 1.3
    vis = 1 + 0.05 * (rng.normal(size=(400, 4, 2)) + 1j * rng.normal(size=(400, 4, 2)))
    weight = np.ones(vis.shape, "f4")
    turned = uvw[:, 0] * np.cos(0.7) + uvw[:, 1] * np.sin(0.7)
    weight[np.abs(turned) > 130, 0] = -1
    weight[np.abs(uvw[:, 0]) > 120, 3] = -1
    weight[:, 2] = -1
    path = suite.path("beams.uvfits")
    uvfits.write(path, uvw, freq, vis.astype("c8"), weight)
    return path


def check_restored(suite, label, prefix, common, own):
    """Pixels and headers of the channels' restored images."""
    for c in (0, 1, 3):
        name = f"{prefix}-{c:04d}-"
        image, header = read_image(name + "image.fits")
        model, residual = (read_image(name + kind + ".fits")[0] for kind in ("model", "residual"))
        suite.true(f"{label} channel {c}: beams of its headers",
                   np.allclose(beam_of(header), common, rtol=1e-9)
                   and np.allclose(beam_of(read_image(name + "residual.fits")[1]), own[c]))
        target, before = widths(common), widths(own[c])
        area = np.sqrt(np.linalg.det(target))
        wanted = smeared(residual, target - before) * area / np.sqrt(np.linalg.det(before))
        inverse, at = np.linalg.inv(target), np.arange(SIDE)
        for y, x in zip(*np.nonzero(model)):
            dx, dy = np.meshgrid(at - x, at - y)
            wanted += model[y, x] * np.exp(-4 * np.log(2) * (
                inverse[0, 0] * dx ** 2 + inverse[1, 1] * dy ** 2 + 2 * inverse[0, 1] * dx * dy))
        # a Gaussian that has no width along one axis rings from the edge of the image, by an
        # amount that depends on how the image is padded
        suite.below(f"{label} channel {c}: restored", peak_error(image, wanted), 1e-4)


def check_common_beam(suite):
    """Each channel alone, by teams, together; the smallest beam that contains all."""
    path = make_channels(suite)
    ran, plain = suite.image("plain", path, *CLEAN)
    if not ran:
        return
    own = {c: beam_of(read_image(f"{plain}-{c:04d}-psf.fits")[1]) for c in (0, 1, 3)}
    bits = None
    for label, ranks, more in (("alone", 1, []), ("teams", 3, forced(teams=3)),
                               ("threads", 1, ["--threads", "2", *forced(thread_teams=2)]),
                               ("cube", 1, ["--cube"]), ("joined", 1, ["--join-channels"])):
        ran, prefix = suite.image(f"common-{label}", path, *CLEAN, "--common-beam", *more,
                                  ranks=min(ranks, len(RANKS)))
        if not ran:
            continue
        if label == "cube":
            with fits_module().open(prefix + "-cube-image.fits") as hdus:
                beams, pixels = hdus["BEAMS"].data.copy(), np.array(hdus[0].data)
                suite.true("the table of beams has one", np.allclose(
                    [beams["BMAJ"] / 3600, beams["BMIN"] / 3600, beams["BPA"]],
                    common[:, None], rtol=1e-6))
                suite.true("a cube has the same pixels", all(np.array_equal(
                    pixels[0, c], bits[c], equal_nan=True) for c in range(4)))
            out = suite.path("again.fits")
            if suite.ran("restore --common-beam", tessera(
                    "restore", prefix + "-cube-residual.fits", prefix + "-cube-model.fits",
                    "--common-beam", "--overwrite", "-o", out, ranks=min(2, len(RANKS)))):
                with fits_module().open(out) as again:
                    suite.true("it finds this beam", np.allclose(
                        again["BEAMS"].data["BMAJ"], beams["BMAJ"], rtol=1e-6))
                    suite.below("and these pixels", max(peak_error(
                        again[0].data[0, c], pixels[0, c]) for c in (0, 1, 3)), 1e-9)
            continue
        if label == "joined":
            own = {c: beam_of(read_image(f"{prefix}-{c:04d}-psf.fits")[1]) for c in (0, 1, 3)}
        common = beam_of(read_image(f"{prefix}-0000-image.fits")[1])
        matrices, target = [widths(b) for b in own.values()], widths(common)
        suite.true(f"{label}: none of the beams is the common one",
                   all(np.linalg.det(m) < 0.999 * np.linalg.det(target) for m in matrices))
        suite.true(f"{label}: it contains all", all(
            np.linalg.eigvalsh(target - m).min() > -1e-8 * target.max() for m in matrices))
        suite.below(f"{label}: its area over the least one", np.sqrt(np.linalg.det(target))
                    / least_area(matrices) - 1, 1e-6)
        check_restored(suite, label, prefix, common, own)
        images = [read_image(f"{prefix}-{c:04d}-image.fits")[0] for c in range(4)]
        if label in ("teams", "threads"):
            suite.true(f"{label}: the same bits", all(np.array_equal(a, b, equal_nan=True)
                                                   for a, b in zip(images, bits)))
        mean, header = read_image(prefix + "-MFS-image.fits")
        weight = [read_image(f"{prefix}-{c:04d}-image.fits")[1]["SUMWT"] for c in (0, 1, 3)]
        suite.true(f"{label}: the mean has this beam, too", np.allclose(beam_of(header), common))
        suite.below(f"{label}: the mean is that of the channels", peak_error(
            mean, np.average([images[c] for c in (0, 1, 3)], axis=0, weights=weight)), 1e-6)
        bits = images
    for args in (["--common-beam", "--beam-size", "6asec"], ["--common-beam", "--niter", "0"],
                 ["--common-beam", "--checkpoint", suite.path("saved")]):
        suite.ran(" ".join(args[:3]), tessera("image", path, *CLEAN, *args, "-o",
                                              suite.path("refused")), 2)


# ---- channels that are cleaned, and what is subtracted before ----

def cleaned_pixels(prefix, channels):
    """The pixels that have components, of each channel."""
    return [set(zip(*np.nonzero(read_image(f"{prefix}-{c:04d}-model.fits")[0])))
            for c in range(channels)]


def check_masks(suite):
    """--channel-mask, and mask cubes: planes by frequency, also from high to low."""
    fits = fits_module()
    freq, spots = 1e9 + 1e6 * np.arange(4), [(20, 12), (9, 30)]
    model = np.zeros((N, N))
    for y, x in spots:
        model[y, x] = 1
    uvw = uvfits.random_tracks(300, 450.0)
    vis = uvfits.direct_predict(uvw, freq, model, SCALE)[..., None] * np.ones(2)
    path = suite.path("spots.uvfits")
    uvfits.write(path, uvw, freq, vis.astype("c8"), np.ones(vis.shape, "f4"))
    args = [path, *IMAGE[:6], "--threads", "1", "--channels-out", "4", "--niter", "30",
            "--stop-negative"]
    for text in ("1;3", "1000.9~1001.1MHz,1003MHz"):
        ran, prefix = suite.image("some", *args, "--channel-mask", text, "--save-source-list")
        if ran:
            with open(prefix + "-sources.txt", encoding="utf-8") as file:
                flux = sum(float(line.split(",")[4]) for line in file if ",POINT," in line)
            mean = read_image(prefix + "-MFS-model.fits")[0].sum()
            suite.below(f"--channel-mask {text}: flux of the mean's list", abs(flux / mean - 1), 1e-5)
            suite.equal(f"--channel-mask {text}: channels with components",
                        [len(p) > 0 for p in cleaned_pixels(prefix, 4)],
                        [False, True, False, True])
            suite.true(f"--channel-mask {text}: the others are dirty", np.array_equal(
                *(read_image(f"{prefix}-0002-{kind}.fits")[0] for kind in ("image", "dirty"))))
    for label, rows, step, start in (("as the channels", (0, 1, 0, 1), 1e6, 1e9),
                                     ("from high to low", (1, 0, 1, 0), -1e6, 1.003e9),
                                     ("other frequencies", (0, 1, 0, 1), 1e6, 2e9)):
        planes = np.zeros((1, len(rows), N, N))
        for k, row in enumerate(rows):
            planes[0, k][spots[row]] = 1
        mask = suite.path("mask.fits")
        image, header = read_image(suite.path("some-0000-dirty.fits"))
        header["CRVAL3"], header["CDELT3"], header["CRPIX3"] = start, step, 1.0
        fits.PrimaryHDU(planes, header).writeto(mask, overwrite=True)
        ran, prefix = suite.image("masked", *args, "--fits-mask", mask)
        if ran:
            suite.equal(f"a mask cube, {label}", cleaned_pixels(prefix, 4),
                        [{spots[row]} for row in (0, 1, 0, 1)])
    check_empty_masks(suite, args, planes, header)
    wide = suite.path("wide.fits")
    fits.PrimaryHDU(np.ones((N, N), dtype=np.float32)).writeto(wide)
    result = tessera("image", *args, "--channel-mask", "1", "--fits-mask", wide, "--auto-threshold",
                     "1", "-o", suite.path("noise"))
    suite.equal("a mask of noise, the first channel not cleaned: one warning",
                result.err.count("the mask lets noise be cleaned"), 1)
    for args_refused in (["--channel-mask", "4"], ["--channel-mask", "0:1"],
                         ["--channel-mask", "1", "--join-channels"]):
        suite.ran(" ".join(args_refused), tessera("image", *args, *args_refused, "-o",
                                                  suite.path("refused")), 2)


def check_empty_masks(suite, args, planes, header):
    """Channels whose mask is empty are not cleaned; a mask without any pixel is refused."""
    mask, regions = suite.path("lines.fits"), suite.path("lines.crtf")
    planes[0, ::2] = 0
    fits_module().PrimaryHDU(planes, header).writeto(mask)
    pixel = "#CRTFv0\nbox[[{0}pix, {0}pix], [{1}pix, {1}pix]]"
    with open(regions, "w", encoding="utf-8") as file:
        file.write(pixel.format(0, 2 * N) + ", range=[1chan, 1chan]\n")
    for path, cleaned in ((mask, [1, 3]), (regions, [1])):
        for ranks in {1, RANKS[-1]}:
            ran, prefix = suite.image("empty", *args, "--mask", path, ranks=ranks)
            if not ran:
                continue
            suite.equal(f"{path}, {ranks} ranks: channels that are cleaned",
                        [c for c, found in enumerate(cleaned_pixels(prefix, 4)) if found], cleaned)
            suite.true("a channel without a mask is dirty", np.array_equal(
                *(read_image(f"{prefix}-0002-{kind}.fits")[0] for kind in ("image", "dirty"))))
    none, beside = suite.path("none.fits"), suite.path("beside.crtf")
    fits_module().PrimaryHDU(0 * planes, header).writeto(none)
    with open(beside, "w", encoding="utf-8") as file:
        file.write(pixel.format(3 * N, 4 * N) + "\n")
    for path, words in ((none, "nothing is set"), (beside, "no region has a pixel")):
        result = tessera("image", *args, "--mask", path, "-o", suite.path("refused"), ranks=RANKS[-1])
        suite.ran(f"{path} is refused", result, 3)
        suite.true(f"one line says why: {result.errors()}", len(result.errors()) == 1
                   and path in result.errors()[0] and words in result.errors()[0])


def check_subtract(suite):
    """A continuum model that is subtracted before lines are cleaned: as if it were not there."""
    freq = 1e9 + 1e6 * np.arange(4)
    continuum, line = np.zeros((N, N)), np.zeros((N, N))
    continuum[25, 11], continuum[8, 20], line[20, 30] = 2, 1, 0.1
    uvw = uvfits.random_tracks(300, 450.0)
    model = uvfits.write_model(suite.path("continuum.fits"), continuum, SCALE)
    vis = [uvfits.direct_predict(uvw, freq, image, SCALE)[..., None] * np.ones(2)
           for image in (line, continuum)]
    paths = [suite.path(name + ".uvfits") for name in ("line", "both")]
    for path, value in zip(paths, (vis[0], vis[0] + vis[1])):
        uvfits.write(path, uvw, freq, value.astype("c8"), np.ones(value.shape, "f4"))
    args = ["--size", "64", "--scale", "60asec", "--niter", "30", "--accuracy", "1e-7",
            "--channels-out", "2", "--threads", "1"]
    ran, alone = suite.image("line", paths[0], *args)
    for ranks in (1, 2)[:len(RANKS)]:
        for size in ("64", str(N)):  # on a plan of its own in any case
            ran2, prefix = suite.image("both", paths[1], *args, "--size", size, "--subtract", model,
                                       ranks=ranks)
            if ran and ran2 and size == "64":
                suite.below(f"--subtract and --niter, {ranks} ranks", max(
                    peak_error(*(read_image(f"{p}-{c:04d}-image.fits")[0] for p in (prefix, alone)))
                    for c in (0, 1)), 1e-5)
            elif ran2:
                suite.below("on the model's pixels: what is left of the continuum", np.abs(
                    read_image(prefix + "-0000-residual.fits")[0]).max(), 0.02)


def main():
    suite = Suite("lines")
    obs = TwoIfs(suite)
    check_ifs(suite, obs)
    check_model(suite, obs)
    check_lists(suite, obs)
    check_windows(suite)
    check_refused(suite, obs)
    check_common_beam(suite)
    check_masks(suite)
    check_subtract(suite)
    suite.finish()


if __name__ == "__main__":
    main()
