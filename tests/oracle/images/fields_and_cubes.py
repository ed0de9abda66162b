#!/usr/bin/env python3
"""Choices of what goes into which image: fields, phase centres, several observations,
channels, intervals, correlations, flagged and non-finite samples, residuals.

Everything is compared with direct sums over the same samples, at --accuracy 1e-8.
"""
import glob
import json
import os
import re
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import check_wcs
from e2e import (ASEC, C_M_S, Suite, casacore_python, forced, l2_error, mpiexec, read_image, run,
                 tessera)
import uvfits

NX, NY, SCALE = 60, 54, 60 * ASEC
IMAGE = ["--size", f"{NX},{NY}", "--scale", "60asec", "--weight", "natural",
         "--accuracy", "1e-8"]
LIMIT = 1e-8
RANKS = (1, 3) if mpiexec() else (1,)


class Samples:
    """One file's visibilities, on disk and in memory."""

    def __init__(self, suite, name, rows=900, channels=4, corrs=2, seed=1, change=None,
                 **write):
        rng = np.random.default_rng(seed)
        self.freq = 1.0e9 + 2e7 * np.arange(channels)
        shape = (rows, channels, corrs)
        self.vis = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype("c8")
        self.weight = rng.uniform(0.5, 1.5, shape).astype("f4")
        self.uvw = uvfits.random_tracks(rows, 450.0, 3.0, seed=seed + 50)
        if change:
            change(self)
        self.path = suite.path(name + ".uvfits")
        self.uvw = uvfits.write(self.path, self.uvw, self.freq, self.vis, self.weight,
                                **write)
        self.i, self.wi = uvfits.stokes_i(self.vis[..., :2].astype("c16"),
                                          self.weight[..., :2].astype("f8"))

    def dirty(self, rows=slice(None), chans=slice(None)):
        return uvfits.direct_dirty(self.uvw[rows], self.freq[chans], self.i[rows, chans],
                                   self.wi[rows, chans], NX, NY, SCALE)


def compare(suite, what, path, expected, limit=LIMIT):
    if not os.path.exists(path):
        suite.true(f"{what}: {os.path.basename(path)} exists", False)
        return None
    image, header = read_image(path)
    suite.below(f"{what}: L2 error", l2_error(image, expected), limit)
    return header


def check_blank(suite, what, prefix, freq_hz, width_hz, kinds=("dirty", "psf")):
    """Images without visibilities: NaN, nominal frequency, no beam."""
    for kind in kinds:
        path = f"{prefix}-{kind}.fits"
        image, header = read_image(path)
        suite.true(f"{what}, {kind}: is NaN", np.isnan(image).all())
        suite.equal(f"{what}, {kind}: numbers", [header.get(key) for key in (
            "CRVAL3", "CDELT3", "SUMWT", "NVIS", "BMAJ", "FREQMEAN")],
            [freq_hz, width_hz, 0, 0, None, None])


def check_no_data(suite):
    """Channels, an interval and single polarisations without visibilities, by themselves
    and in means; previews of them; one line that says so."""
    def flag(s):
        s.weight[480:] = -1.0           # the second half of the time
        s.weight[:, 1:3] = -1.0
        s.weight[:, 0, 2:] = -1.0       # U and V of one channel
    s = Samples(suite, "gaps", rows=960, corrs=4, change=flag)
    u = combined(s, 2, 3, .5, .5)
    args = ["--stokes", "IU", "--channels-out", "4", "--intervals-out", "2"]
    runs = [(1, ["--reproducible"]), (1, ["--memory", "1MB"]), (3, forced(teams=3))]
    for ranks, more in runs[:2] if len(RANKS) == 1 else runs:
        label = " ".join(["gaps", str(ranks), *more])
        prefix = suite.path(label.replace(" ", "-"))
        result = tessera("image", s.path, *IMAGE, *args, *more, "-o", prefix, ranks=ranks)
        if not suite.ran(label, result):
            continue
        warned = [line for line in result.err.splitlines() if "usable visibilities" in line]
        suite.true(f"{label}: two warnings {warned}", len(warned) == 2
                   and "6 of 8 outputs" in warned[0] and "U" in warned[1]
                   and "t0000-0001 to t0000-0002, t0001-0000 to t0001-0003" in warned[0])
        for k in range(4):
            for pol in "IU":
                where = f"{prefix}-t0001-{k:04d}-{pol}"
                check_blank(suite, f"{label}: t1 {k} {pol}", where, s.freq[k], 2e7)
        check_blank(suite, f"{label}: t1 mean", f"{prefix}-t0001-MFS-I", s.freq.mean(), 8e7)
        check_blank(suite, f"{label}: U of a channel", f"{prefix}-t0000-0000-U", s.freq[0],
                    2e7)
        compare(suite, f"{label}: I beside it", f"{prefix}-t0000-0000-I-dirty.fits",
                s.dirty(chans=[0]))
        compare(suite, f"{label}: mean of I", f"{prefix}-t0000-MFS-I-dirty.fits", s.dirty())
        compare(suite, f"{label}: mean of U", f"{prefix}-t0000-MFS-U-dirty.fits",
                uvfits.direct_dirty(s.uvw, s.freq, *u, NX, NY, SCALE))
    ran, prefix = suite.image("halves", s.path, *IMAGE, "--channels", "0:1", "--preview",
                              "--intervals-out", "2")
    if ran:
        for kind in ("dirty", "psf"):
            suite.true(f"preview of no data, {kind}",
                       os.path.getsize(f"{prefix}-t0001-{kind}.png") > 2000)
        suite.ran("NaN compares with NaN", tessera(
            "compare", prefix + "-t0001-dirty.fits", prefix + "-t0001-psf.fits",
            "--pixels-only"))
        suite.ran("and not with numbers", tessera(
            "compare", prefix + "-t0001-dirty.fits", prefix + "-t0000-dirty.fits",
            "--pixels-only"), 5)


def check_channels(suite):
    """Cubes, an empty channel, and the mean of all."""
    def flag(s):
        s.weight[:, 2] = -1.0
    s = Samples(suite, "cube", change=flag)
    for ranks in RANKS:
        ran, prefix = suite.image(f"cube{ranks}", s.path, *IMAGE, "--channels-out", "4",
                                  ranks=ranks)
        if not ran:
            continue
        sums = s.wi.sum(0)
        for k in range(4):
            path = f"{prefix}-{k:04d}-dirty.fits"
            if k == 2:
                check_blank(suite, "empty channel", f"{prefix}-{k:04d}", s.freq[k], 2e7)
                continue
            header = compare(suite, f"channel {k}", path, s.dirty(chans=[k]))
            if header:
                suite.below(f"channel {k}: frequency",
                            abs(header["CRVAL3"] / s.freq[k] - 1), 1e-12)
                suite.below(f"channel {k}: mean frequency",
                            abs(header["FREQMEAN"] / s.freq[k] - 1), 1e-12)
                suite.below(f"channel {k}: SUMWT",
                            abs(header["SUMWT"] / sums[k] - 1), 1e-6)
        compare(suite, "MFS", prefix + "-MFS-dirty.fits", s.dirty())
    ran, prefix = suite.image("some", s.path, *IMAGE, "--channels", "1:4", "--no-psf")
    if ran:
        compare(suite, "--channels 1:4", prefix + "-dirty.fits", s.dirty(chans=[1, 3]))
        suite.true("--no-psf makes none", not os.path.exists(prefix + "-psf.fits"))


def check_file_names(suite):
    """Interval, channel and Stokes parameter are in every name, previews' too, as soon as
    there are several of them, and not before. Equal weights have one PSF, of the first."""
    def differ(s):
        s.weight[..., 2:] *= 2          # so that Q has other weights than I
    for name, change, psf in (("names", None, "I"), ("named", differ, "IU")):
        s = Samples(suite, name, rows=960, corrs=4, seed=3, change=change)
        if not change:
            s.weight[:] = 1.0
            uvfits.write(s.path, s.uvw, s.freq, s.vis, s.weight)
        for label, times, channels, pols in (
                ("all", ["-t0000", "-t0001"], ["-0000", "-0001", "-MFS"], "IU"),
                ("stokes", [""], [""], "IU"), ("channels", [""], ["-0000", "-0001", "-MFS"], "I"),
                ("times", ["-t0000", "-t0001"], [""], "U")):
            prefix = suite.path(f"{name}-{label}")
            result = tessera("image", s.path, *IMAGE, "--stokes", pols, "--channels-out",
                             max(1, len(channels) - 1), "--intervals-out", len(times),
                             "--preview", "-o", prefix)
            if not suite.ran(f"names: {label}", result):
                continue
            wanted = [prefix + ".conf", prefix + ".log"]
            for time in times:
                for channel in channels:
                    for kind in ("dirty", "psf"):
                        several = pols if kind == "dirty" else psf
                        for pol in several if len(pols) > 1 else [""]:
                            stem = f"{prefix}{time}{channel}{'-' if pol else ''}{pol}-{kind}"
                            wanted += [stem + ".fits", stem + ".png"]
            suite.equal(f"names: {name}, {label}", sorted(glob.glob(prefix + "*")),
                        sorted(wanted))


def check_frequencies(suite):
    """Channels of a cube are regular, whatever is flagged: centre and width of the band,
    the mean of the visibilities apart from them."""
    def flag(s):
        s.weight[:, 0] = -1.0           # of the first pair, one channel
        s.weight[100:, 3] = -1.0        # of the second pair, most of one
    s = Samples(suite, "pairs", change=flag)
    for ranks in RANKS:
        ran, prefix = suite.image(f"pairs{ranks}", s.path, *IMAGE, "--channels-out", "2",
                                  "--no-psf", ranks=ranks)
        if not ran:
            continue
        for name, chans in (("0000", [0, 1]), ("0001", [2, 3]), ("MFS", [0, 1, 2, 3])):
            header = compare(suite, f"{name} of pairs", f"{prefix}-{name}-dirty.fits",
                             s.dirty(chans=chans))
            if not header:
                continue
            good = s.wi[:, chans] > 0
            wanted = dict(CRVAL3=s.freq[chans].mean(), CDELT3=2e7 * len(chans),
                          FREQMEAN=(good * s.freq[chans]).sum() / good.sum(),
                          RESTFRQ=s.freq.mean(), NVIS=good.sum())
            for key, value in wanted.items():
                suite.below(f"{name} of pairs: {key}", abs(header[key] / value - 1), 1e-12)


def check_odd_sizes(suite):
    """Images and PSFs of odd sizes: their middle pixel is the phase centre."""
    s = Samples(suite, "odd", rows=400)
    ones = np.ones_like(s.i)
    for nx, ny in ((61, 53), (60, 53), (61, 54)):
        ran, prefix = suite.image(f"odd{nx}x{ny}", s.path, "--size", f"{nx},{ny}",
                                  "--scale", "60asec", "--weight", "natural", "--accuracy",
                                  "1e-8")
        if not ran:
            continue
        for kind, value in (("dirty", s.i), ("psf", ones)):
            header = compare(suite, f"{nx} x {ny} {kind}", f"{prefix}-{kind}.fits",
                             uvfits.direct_dirty(s.uvw, s.freq, value, s.wi, nx, ny, SCALE))
            if header:
                suite.equal(f"{nx} x {ny} {kind}: reference pixel",
                            (header["CRPIX1"], header["CRPIX2"]),
                            (nx // 2 + 1, ny // 2 + 1))
                suite.equal(f"{nx} x {ny} {kind}: BTYPE", header["BTYPE"],
                            "Beam" if kind == "psf" else "Intensity")
        psf, _ = read_image(prefix + "-psf.fits")
        suite.equal(f"{nx} x {ny}: place of the PSF's peak",
                    np.unravel_index(psf.argmax(), psf.shape), (ny // 2, nx // 2))


def check_all_sky(suite):
    """The whole sky above the horizon; beyond it there is nothing."""
    def shorten(s):
        s.uvw *= 5e-3                   # within 14 wavelengths, which 2 degrees allow
    s = Samples(suite, "sky", rows=200, change=shorten)
    ran, prefix = suite.image("sky", s.path, "--size", "57,55", "--scale", "2deg")
    if ran:
        image, header = read_image(prefix + "-dirty.fits")
        l, m = uvfits.pixel_lm(57, 55, np.deg2rad(2))
        suite.true("all sky: NaN beyond the horizon",
                   np.array_equal(np.isnan(image), l * l + m * m >= 1))


def check_intervals(suite):
    """Snapshots: 900 rows of 120 baselines each 10 s are 8 timesteps."""
    s = Samples(suite, "snap")
    ran, prefix = suite.image("snap", s.path, *IMAGE, "--intervals-out", "2", "--no-psf")
    if ran:
        step = np.arange(len(s.uvw)) // 120
        for k, rows in enumerate((step < 4, step >= 4)):
            compare(suite, f"interval {k}", f"{prefix}-t{k:04d}-dirty.fits", s.dirty(rows))
        found = glob.glob(prefix + "*-dirty.fits")
        suite.equal("intervals written", len(found), 2)
    # rows are 10 s each about 00:00:00, 00:00:10 ...: from start of the first to end
    day = "2025-12-31T23:59:55.000", "2026-01-01T00:00:"
    spans = {"snap-t0000": (day[0], day[1] + "35.000", 40.0),
             "snap-t0001": (day[1] + "35.000", day[1] + "75.000", 40.0),
             "part": (day[1] + "05.000", day[1] + "25.000", 20.0),
             "whole": (day[0], day[1] + "75.000", 80.0)}
    suite.image("whole", s.path, *IMAGE, "--no-psf")
    suite.image("part", s.path, *IMAGE, "--no-psf", "--intervals", "1:3")
    for name, span in spans.items():
        _, header = read_image(suite.path(name + "-dirty.fits"))
        span = [t.replace(":00:75", ":01:15") if isinstance(t, str) else t for t in span]
        suite.equal(f"{name}: times", [header.get(k) for k in
                                       ("DATE-OBS", "DATE-END", "TELAPSE")], span)
        suite.equal(f"{name}: degrees", (header["CRVAL1"], header["CRVAL2"]),
                    (60.0, -30.0))
        suite.true(f"{name}: version", header["ORIGIN"].split()[0] == "tessera"
                   and header["ORIGIN"].split()[1][0].isdigit()
                   and header["ORIGIN"] in str(header["HISTORY"]))


def check_fields(suite):
    """A multi-source file needs --field; each field is its own rows."""
    fields = [("ALPHA", 60.0, -30.0), ("BETA", 61.0, -29.0)]
    s = Samples(suite, "multi", sources=fields, source_of_row=np.arange(900) % 2)
    result = tessera("image", s.path, *IMAGE, "-o", suite.path("nofield"))
    suite.ran("two fields without --field", result, 2)
    for k, (name, ra, dec) in enumerate(fields):
        ran, prefix = suite.image(name, s.path, *IMAGE, "--field", name)
        if ran:
            header = compare(suite, f"field {name}", prefix + "-dirty.fits",
                             s.dirty(np.arange(900) % 2 == k))
            suite.below(f"field {name}: RA", abs(header["CRVAL1"] - ra), 1e-9)
            suite.below(f"field {name}: Dec", abs(header["CRVAL2"] - dec), 1e-9)
    check_some_fields(suite)


def check_some_fields(suite):
    """A list of fields of one phase centre."""
    fields = [("ALPHA", 60.0, -30.0), ("BETA", 61.0, -29.0), ("GAMMA", 60.0, -30.0)]
    of_row = np.arange(900) % 3
    s = Samples(suite, "some", sources=fields, source_of_row=of_row)
    for choice in ("ALPHA,GAMMA", "1,3"):
        for ranks in RANKS:
            ran, prefix = suite.image(f"some{choice}{ranks}", s.path, *IMAGE, "--field", choice, ranks=ranks)
            if ran:
                compare(suite, f"fields {choice} on {ranks} ranks", prefix + "-dirty.fits", s.dirty(of_row != 1))
    result = tessera("image", s.path, *IMAGE, "-o", suite.path("some"), "--field", "ALPHA,BETA")
    suite.ran("fields of two phase centres", result, 3)
    result = tessera("image", s.path, *IMAGE, "-o", suite.path("some"), "--field", "ALPHA,DELTA")
    suite.ran("a field that is not there", result, 2)


def frame(ra_deg, dec_deg):
    """Rows: unit vectors along u (East), v (North) and w of a phase centre."""
    ra, dec = np.deg2rad(ra_deg), np.deg2rad(dec_deg)
    return np.array([[-np.sin(ra), np.cos(ra), 0],
                     [-np.sin(dec) * np.cos(ra), -np.sin(dec) * np.sin(ra), np.cos(dec)],
                     [np.cos(dec) * np.cos(ra), np.cos(dec) * np.sin(ra), np.sin(dec)]])


def rotated(s, old, new):
    """uvw and Stokes I of the samples about another phase centre."""
    uvw = s.uvw @ (frame(*new) @ frame(*old).T).T
    turns = (s.uvw[:, 2:] - uvw[:, 2:]) * s.freq[None] / C_M_S
    return uvw, s.i * np.exp(2j * np.pi * (turns - np.rint(turns)))


def check_mosaic(suite):
    """All fields of one file, rotated together by --center."""
    fields = [("ALPHA", 60.0, -30.0), ("BETA", 60.4, -29.8)]
    middle = (60.2, -29.9)
    of_row = np.arange(900) % 2
    s = Samples(suite, "mosaic", sources=fields, source_of_row=of_row)
    uvw, value = np.empty_like(s.uvw), np.empty_like(s.i)
    for k, (_, ra, dec) in enumerate(fields):
        turned = rotated(s, (ra, dec), middle)
        uvw[of_row == k] = turned[0][of_row == k]
        value[of_row == k] = turned[1][of_row == k]
    expected = uvfits.direct_dirty(uvw, s.freq, value, s.wi, NX, NY, SCALE)
    for ranks in RANKS:
        ran, prefix = suite.image(f"mosaic{ranks}", s.path, *IMAGE, "--center",
                                  "60.2deg,-29.9deg", ranks=ranks)
        if ran:
            compare(suite, f"fields together on {ranks} ranks", prefix + "-dirty.fits",
                    expected)


def check_centres(suite):
    """Two pointings: an error, unless --center says where to rotate them to."""
    centres = [(60.0, -30.0), (60.4, -29.8)]
    middle = (60.2, -29.9)
    sets = [Samples(suite, f"point{k}", seed=k + 5, ra_deg=ra, dec_deg=dec)
            for k, (ra, dec) in enumerate(centres)]
    paths = [s.path for s in sets]
    result = tessera("image", *paths, *IMAGE, "-o", suite.path("apart"))
    suite.ran("differing phase centres without --center", result, 3)
    parts = [rotated(s, c, middle) for s, c in zip(sets, centres)]
    expected = uvfits.direct_dirty(
        np.concatenate([p[0] for p in parts]), sets[0].freq,
        np.concatenate([p[1] for p in parts]), np.concatenate([s.wi for s in sets]),
        NX, NY, SCALE)
    for ranks in RANKS:
        ran, prefix = suite.image(f"centre{ranks}", *paths, *IMAGE, "--center",
                                  "60.2deg,-29.9deg", ranks=ranks)
        if ran:
            header = compare(suite, f"--center on {ranks} ranks", prefix + "-dirty.fits",
                             expected)
            suite.below("--center: CRVAL", abs(header["CRVAL1"] - 60.2)
                        + abs(header["CRVAL2"] + 29.9), 1e-9)
    same = [Samples(suite, f"same{k}", seed=k + 15, rows=400) for k in range(2)]
    ran, prefix = suite.image("together", *[s.path for s in same], *IMAGE)
    if ran:
        both = uvfits.direct_dirty(
            np.concatenate([s.uvw for s in same]), same[0].freq,
            np.concatenate([s.i for s in same]), np.concatenate([s.wi for s in same]),
            NX, NY, SCALE)
        compare(suite, "two observations", prefix + "-dirty.fits", both)


def combined(s, a, b, factor_a, factor_b):
    """A Stokes parameter of two correlations, good where both are."""
    w = s.weight[..., [a, b]].astype("f8")
    good = (w > 0).all(-1)
    value = s.vis[..., a].astype("c16") * factor_a + s.vis[..., b] * factor_b
    return np.where(good, value, 0), np.where(good, w.min(-1), 0.0)


def check_polarisation(suite):
    """All four Stokes parameters, and the correlations by themselves."""
    def flag(s):
        s.weight[::7, :, 1] = -1.0
        s.weight[::5, :, 2] = 0.0
    s = Samples(suite, "full", corrs=4, change=flag)
    rules = {"I": (0, 1, .5, .5), "Q": (0, 1, .5, -.5), "U": (2, 3, .5, .5),
             "V": (2, 3, -.5j, .5j)}

    def sum_of(value, weight):
        return uvfits.direct_dirty(s.uvw, s.freq, value, weight, NX, NY, SCALE)

    ran, prefix = suite.image("stokes", s.path, *IMAGE, "--stokes", "IQUV")
    if ran:
        for name, rule in rules.items():
            header = compare(suite, f"Stokes {name}", f"{prefix}-{name}-dirty.fits",
                             sum_of(*combined(s, *rule)))
            suite.equal(f"Stokes {name}: code", header and header["CRVAL4"],
                        1.0 + "IQUV".index(name))
    ran, prefix = suite.image("corr", s.path, *IMAGE, "--stokes", "XX,XY")
    if ran:
        one = {k: (np.where(s.weight[..., c] > 0, s.vis[..., c].astype("c16"), 0),
                   np.maximum(s.weight[..., c].astype("f8"), 0))
               for k, c in (("XX", 0), ("XY", 2))}
        compare(suite, "XX", prefix + "-XX-dirty.fits", sum_of(*one["XX"]))
        compare(suite, "XY", prefix + "-XY-dirty.fits", sum_of(*one["XY"]))
        compare(suite, "XYi", prefix + "-XYi-dirty.fits",
                sum_of(-1j * one["XY"][0], one["XY"][1]))


def joint(sets, value_of):
    """The direct sum over several sets, of (uvw, frequencies, values, weights) each."""
    sums = [uvfits.direct_dirty(s.uvw, s.freq, *value_of(s), NX, NY, SCALE) for s in sets]
    weights = [value_of(s)[1].sum() for s in sets]
    return sum(image * weight for image, weight in zip(sums, weights)) / sum(weights)


def first_corr(s):
    return s.vis[..., 0].astype("c16"), s.weight[..., 0].astype("f8")


def check_single_hands(suite):
    """XX in one set and YY in another: an image of each from its own set, Stokes I from
    both, with a line that says so."""
    xx = Samples(suite, "hand-xx", rows=480, corrs=1)
    yy = Samples(suite, "hand-yy", rows=480, corrs=1, seed=2, corr_first=-6)
    expected = {"XX": joint([xx], first_corr), "YY": joint([yy], first_corr),
                "I": joint([xx, yy], first_corr)}
    for ranks in RANKS:
        for asked, warnings in (("XX,YY", ["hand-xx.uvfits: 480 rows are left out of some",
                                           "hand-yy.uvfits: 480 rows are left out of some"]),
                                ("I", ["stands for Stokes I"])):
            what = f"--stokes {asked}, {ranks} ranks"
            prefix = suite.path(f"hands{ranks}")
            result = tessera("image", xx.path, yy.path, *IMAGE, "--stokes", asked, "-q",
                             "--overwrite", "-o", prefix, ranks=ranks)
            lines = [line for line in result.err.splitlines() if "warning: " in line]
            if not suite.ran(what, result):
                continue
            suite.true(f"{what}: {lines}", len(lines) == len(warnings) and all(
                word in line for word, line in zip(warnings, lines)))
            for name in asked.split(","):
                pol = f"-{name}" if "," in asked else ""
                compare(suite, f"{what}: {name}", f"{prefix}{pol}-dirty.fits", expected[name])
    result = tessera("image", xx.path, yy.path, *IMAGE, "--stokes", "IQ", "-q", "-o",
                     suite.path("hands-Q"))
    suite.ran("Stokes Q of them", result, 2)
    suite.true(f"Stokes Q of them: {result.err}", "no spectral window has what Q takes" in
               result.err and result.err.count("\n") == 1)
    ran, prefix = suite.image("hands-joined", xx.path, yy.path, *IMAGE, "--stokes", "XX,YY",
                              "--channels-out", "2", "--join-channels", "--niter", "20")
    if ran:
        for name in ("XX", "YY"):
            image = read_image(f"{prefix}-MFS-{name}-residual.fits")[0]
            suite.true(f"joined channels, {name}", np.isfinite(image).all())


def check_far_row(suite):
    """Planes between a row of w = 3e9 m and all others cost nothing, on any number of
    ranks; a line tells of them."""
    def change(s):
        s.uvw[7, 2] = 3e9
    s = Samples(suite, "far-row", rows=300, channels=1, change=change)
    value = s.dirty()
    model = np.zeros((NY, NX))
    model[20, 31], model[40, 12] = 2.0, -0.7
    path = uvfits.write_model(suite.path("far-model.fits"), model, SCALE)
    s.i = s.i - uvfits.direct_predict(s.uvw, s.freq, model, SCALE)
    residual = s.dirty()
    cases = [(1, []), (1, forced(plane_window=9)), (1, forced(passes=2)),
             (1, ["--reproducible"]), *[(ranks, []) for ranks in RANKS[1:]]]
    for ranks, options in cases:
        what = f"a row far out, {ranks} ranks {' '.join(options)}"
        prefix = suite.path("far")
        result = tessera("image", s.path, *IMAGE, *options, "-q", "--overwrite", "-o", prefix,
                         ranks=ranks)
        if suite.ran(what, result):
            compare(suite, what, prefix + "-dirty.fits", value, 2 * LIMIT)
            suite.true(f"{what}: {result.err}", "w-planes: |w| of some rows" in result.err and
                       "--maxuvw-m" in result.err)
    ran, prefix = suite.image("far-residual", s.path, *IMAGE, "--subtract", path)
    if ran:
        compare(suite, "residual with a row far out", prefix + "-dirty.fits", residual,
                4 * LIMIT)
    result = tessera("plan", s.path, *IMAGE)
    suite.ran("plan with a row far out", result)
    found = re.search(r"time +about ([\d.e+-]+) s", result.out)
    suite.true(f"its time: {result.out}", found and float(found[1]) < 10)

    def spread(s):
        s.uvw[:, 2] = np.linspace(0, 3e9, 300)
    s = Samples(suite, "far-rows", rows=300, channels=1, change=spread)
    result = tessera("plan", s.path, "--size", "18000", "--scale", "0.2asec", "-q")
    suite.ran("plan with all rows far out", result)
    suite.true(f"it takes hours: {result.err}", re.search(
        r"warning: the transforms of \d+ w-planes take about [\d.e+]+ hours, because .w. "
        r"reaches 1e\+10 wavelengths.*--maxuvw-m", result.err))


def imaging_weights(s, weight, density_weight, robust):
    """Briggs weights by the definition in grid/density/tess_weight.h, or uniform (robust None)."""
    nx, ny = (4 * int(np.ceil(np.ceil(1.2 * n) / 4)) for n in (NX, NY))
    u, v = (s.uvw[:, k, None] * s.freq / C_M_S for k in (0, 1))
    sign = np.where(v < 0, -1.0, 1.0)
    at = (np.floor(sign * v * ny * SCALE).astype(int),
          np.floor(sign * u * nx * SCALE + nx // 2).astype(int))
    cells = np.zeros((ny // 2, nx))
    np.add.at(cells, at, density_weight)
    here = cells[at]
    if robust is None:
        return np.where(here > 0, weight / np.where(here > 0, here, 1), 0)
    f2 = (5 * 10.0**-robust)**2 / ((cells**2).sum() / cells.sum())
    return weight / (1 + here * f2)


def check_density(suite):
    """--density: whose visibilities make the density, on any number of ranks."""
    def flag(s):
        s.weight[::7, :, 1] = -1.0
        s.weight[::5, :, 2] = 0.0
        s.weight[40:90, :, 0] = 0.0     # cells that only U and V have
    s = Samples(suite, "density", corrs=4, change=flag)
    value_i, weight_i = combined(s, 0, 1, .5, .5)
    value_u, weight_u = combined(s, 2, 3, .5, .5)
    for weighting, robust in (("uniform", None), ("briggs:0", 0.0)):
        for density, of_u in (("own", weight_u), ("first", weight_i)):
            weight = imaging_weights(s, weight_u, of_u, robust)
            expected = uvfits.direct_dirty(s.uvw, s.freq, value_u, weight, NX, NY, SCALE)
            for ranks in RANKS:
                label = f"{weighting} density {density} on {ranks} ranks"
                ran, prefix = suite.image(
                    label.replace(" ", "-").replace(":", ""), s.path, *IMAGE, "--weight",
                    weighting, "--density", density, "--stokes", "I,U", ranks=ranks)
                if not ran:
                    continue
                compare(suite, f"{label}: U", prefix + "-U-dirty.fits", expected)
                with open(prefix + ".conf") as f:
                    suite.true(f"{label}: kept", f"density = {density}\n" in f.read())


def check_bad_samples(suite):
    """Non-finite values, weights and uvw are left out and counted."""
    def spoil(s):
        s.vis[3, 0, 0] = np.nan
        s.vis[4, 1, 1] = np.inf
        s.weight[5, 2, 0] = np.nan
        s.weight[6, 3, 1] = np.inf
        s.weight[7, :, :] = -2.0
        s.uvw[8, 0] = np.nan
        s.uvw[9, 2] = np.inf
    s = Samples(suite, "spoilt", change=spoil)
    good = np.isfinite(s.uvw).all(1)
    profile = suite.path("profile.json")
    for ranks in RANKS:
        ran, prefix = suite.image(f"spoilt{ranks}", s.path, *IMAGE, "--profile", profile,
                                  ranks=ranks)
        if not ran:
            continue
        compare(suite, "bad samples left out", prefix + "-dirty.fits", s.dirty(good))
        with open(profile) as f:
            totals = json.load(f)["totals"]
        suite.equal("visibilities", totals["visibilities"], 900 * 4 - 4 - 4 - 8)
        suite.equal("ignored in all", sum(totals["ignored"].values()), 16)


def check_subtract(suite):
    """--subtract images the difference between data and the model's visibilities."""
    s = Samples(suite, "major", rows=600)
    model = np.zeros((NY, NX))
    model[20, 31], model[40, 12] = 2.0, -0.7
    path = uvfits.write_model(suite.path("model.fits"), model, SCALE)
    s.i = s.i - uvfits.direct_predict(s.uvw, s.freq, model, SCALE)
    for ranks in RANKS:
        ran, prefix = suite.image(f"residual{ranks}", s.path, *IMAGE, "--subtract", path,
                                  ranks=ranks)
        if not ran:
            continue
        ending = ("-residual.fits" if os.path.exists(prefix + "-residual.fits")
                  else "-dirty.fits")
        # Prediction and imaging each have the accuracy asked for.
        compare(suite, f"residual on {ranks} ranks", prefix + ending, s.dirty(),
                2 * LIMIT)


def check_headers(suite):
    """Checksums, axes and positions of all images made above, by astropy."""
    paths = sorted(glob.glob(suite.path("*-dirty.fits"))
                   + glob.glob(suite.path("*-psf.fits")))
    suite.true(f"{len(paths)} headers to check, of 1 rank and more",
               len(paths) > 30 and suite.path("cube3-MFS-psf.fits") in paths
               or len(RANKS) == 1)
    for path in paths:
        faults = list(check_wcs.check(path))
        if faults:
            suite.true(f"header of {os.path.basename(path)}: {faults}", False)
    check_by_fitsverify(suite, paths)
    check_by_casacore(suite, paths)


def check_by_fitsverify(suite, paths):
    if not shutil.which("fitsverify"):
        suite.skipped("fitsverify is not installed")
        return
    result = run(["fitsverify", "-q", *paths], 120)
    lines = result.out.strip().splitlines()
    bad = [line for line in lines if not line.startswith("verification OK")]
    suite.true(f"fitsverify finds {len(paths)} files in order: {bad or 'yes'}",
               result.status == 0 and not bad and len(lines) == len(paths))


CASACORE = """
import sys
import casacore.images
for path in sys.argv[1:]:
    image = casacore.images.image(path)
    print(path, image.unit(), image.imageinfo()["imagetype"],
          image.coordinates().get_coordinate("spectral").get_restfrequency(),
          image.getdata().size, sep="|")
"""


def check_by_casacore(suite, paths):
    """It opens them as images, of the right kind, and logs nothing."""
    python = casacore_python()
    if not python:
        suite.skipped("python3-casacore is not installed")
        return
    result = run([python, "-c", CASACORE, *paths], 120)
    if "Observatories" in result.err:
        suite.skipped("casacore's table of observatories is not installed")
        return
    suite.true(f"casacore says nothing: {(result.out + result.err)[-300:]!r}"
               if result.status or result.err else "casacore says nothing",
               result.status == 0 and not result.err)
    lines = [line.split("|") for line in result.out.splitlines()]
    suite.true(f"casacore opens {len(lines)} of {len(paths)}",
               [line[0] for line in lines] == paths)
    suite.true("units, kinds and rest frequencies by casacore", all(
        unit == "Jy/beam" and kind == ("Beam" if "-psf" in path else "Intensity")
        and float(rest) > 0 for path, unit, kind, rest, _ in lines))


def main():
    suite = Suite("fields_and_cubes")
    for check in (check_channels, check_no_data, check_file_names, check_frequencies, check_odd_sizes,
                  check_all_sky, check_intervals, check_fields, check_mosaic,
                  check_centres, check_polarisation, check_single_hands, check_far_row,
                  check_density, check_bad_samples,
                  check_subtract, check_headers):
        check(suite)
    suite.finish()


if __name__ == "__main__":
    main()
