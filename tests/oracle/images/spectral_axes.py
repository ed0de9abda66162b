#!/usr/bin/env python3
"""Output channels that are regular in a frame: `tessera image --frame`, --start, --width, --nchan,
--restfreq, --velocity and --interpolation.

Images are compared with direct sums over samples that numpy interpolates or sorts in, with Doppler
factors made of astropy's velocities. Headers are compared to 1 Hz, and so are the coordinates that
casacore and, where it is installed, spectral_cube find.
"""
import os
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (C_M_S, FULL, Suite, casacore_python, fits_module, forced, have_ms, l2_error, mpiexec, run,
                 simulate, tessera, write_sky)
import uvfits

RA, DEC, SIDE, PIXEL_ASEC = 60.0, -30.0, 32, 40
SCALE = PIXEL_ASEC * np.pi / 648000
CHANNELS, WIDTH, FIRST, REST = 24, 1000.0, 1.4200e9, 1420405751.77
STEP_S, STEPS, ANTENNAS = 600, 37, 4
START_MJD = 61041.625  # three hours before the transit
IMAGE = ["--size", SIDE, "--scale", f"{PIXEL_ASEC}asec", "--threads", "1", "--weight", "natural",
         "--no-psf", "--accuracy", "1e-5"]
LIMIT = 1e-4  # of images: a tenth of a hertz of 1 kHz, beside the accuracy
LSRK = np.array([290.0, -17317.26, 10001.42])
SITE = (5109271.5, 2006808.9, -3239130.7)


def towards(ra_deg, dec_deg):
    ra, dec = np.deg2rad(ra_deg), np.deg2rad(dec_deg)
    return np.array([np.cos(ra) * np.cos(dec), np.sin(ra) * np.cos(dec), np.sin(dec)])


def doppler(mjd, frame, ra_deg=RA, dec_deg=DEC):
    """Frequency in the frame over that at the array."""
    import astropy.units as u
    from astropy.coordinates import EarthLocation, get_body_barycentric_posvel
    from astropy.time import Time
    from astropy.utils import iers
    iers.conf.auto_download, iers.conf.iers_degraded_accuracy = False, "ignore"
    if frame == "topo":
        return np.ones(np.shape(mjd))
    time = Time(mjd, format="mjd", scale="utc")
    orbit = get_body_barycentric_posvel("earth", time)[1].xyz.to_value("m/s")
    turning = EarthLocation.from_geocentric(*SITE, unit=u.m).get_gcrs_posvel(time)[1]
    n = towards(ra_deg, dec_deg)
    legs = [n @ orbit, n @ turning.xyz.to_value("m/s")]
    if frame == "lsrk":
        legs.append(n @ LSRK)
    return np.prod([np.sqrt((1 - v / C_M_S) / (1 + v / C_M_S)) * np.ones(np.shape(mjd))
                    for v in legs], axis=0)


class Line:
    """A set of one source off the centre, whose spectrum is `profile` of the frequency in LSRK."""

    def __init__(self, suite, name, profile, channels=CHANNELS, first=FIRST, width=WIDTH,
                 offset=(3, 2), noise=0.0, cards=None, drop=()):
        rng = np.random.default_rng(len(name))
        pairs = ANTENNAS * (ANTENNAS - 1) // 2
        rows = pairs * STEPS
        self.freq = first + width * np.arange(channels)
        self.width = abs(width)
        self.mjd = START_MJD + np.repeat(np.arange(STEPS), pairs) * STEP_S / 86400
        uvw = uvfits.stored_uvw(uvfits.random_tracks(rows, 400.0, 0.5, seed=5))
        self.factor = doppler(self.mjd, "lsrk")
        flux = profile(self.freq[None] * self.factor[:, None])
        l, m = -offset[0] * SCALE, offset[1] * SCALE
        path = uvw @ [l, m, uvfits.n_minus_1(l, m)]
        phase = 2j * np.pi * path[:, None] * self.freq[None] / C_M_S
        vis = flux * np.exp(phase)
        if noise:
            vis = vis + noise * (rng.normal(size=vis.shape) + 1j * rng.normal(size=vis.shape))
        self.vis = np.repeat(vis[..., None], 2, -1).astype("c8")
        self.weight = rng.uniform(0.5, 1.5, vis.shape).astype("f4")[..., None].repeat(2, -1)
        for chan in drop:
            self.weight[:, chan] = -1
        self.path = suite.path(name + ".uvfits")
        # the helper's integrations are 10 s long
        self.uvw = uvfits.write(self.path, uvw, self.freq, self.vis, self.weight, ra_deg=RA,
                                dec_deg=DEC, antennas=ANTENNAS,
                                cards={"PSCAL5": STEP_S / 10, "PZERO5": 0.625,
                                       **(cards or {})})
        self.i, self.w = uvfits.stokes_i(self.vis.astype("c16"), self.weight.astype("f8"))


def linear(s, factor, centres, sub=1, width=None):
    """uvw over wavelengths, values and weights of an output channel each, from one set."""
    order = np.argsort(s.freq)
    freq = s.freq[order]
    out = []
    for centre in centres:
        parts = []
        for j in range(sub):
            at = centre + ((j + .5) / sub - .5) * (width or 0)
            f = at / factor
            k = np.clip(np.searchsorted(freq, f) - 1, 0, len(freq) - 2)
            a = (f - freq[k]) / (freq[k + 1] - freq[k])
            inside = (a > -1e-6) & (a < 1 + 1e-6)
            a = np.where(a < 1e-6, 0, np.where(a > 1 - 1e-6, 1, a))
            rows = np.arange(len(f))
            v0, v1 = (s.i[rows, order[k + d]] for d in (0, 1))
            w0, w1 = (s.w[rows, order[k + d]] for d in (0, 1))
            with np.errstate(divide="ignore", invalid="ignore"):
                w = np.where(a == 0, w0, np.where(a == 1, w1, np.where(
                    (w0 > 0) & (w1 > 0), 1 / ((1 - a) / w0 + a / w1), 0)))
            value = np.where(a == 0, v0, np.where(a == 1, v1, (1 - a) * v0 + a * v1))
            parts.append((s.uvw[inside] * f[inside, None] / C_M_S, value[inside], w[inside]))
        out.append([np.concatenate(x) for x in zip(*parts)])
    return out


def nearest(s, factor, centres, width):
    out = []
    for centre in centres:
        apart = s.freq[None] * factor[:, None] - centre
        row, chan = np.nonzero((apart >= -abs(width) / 2) & (apart < abs(width) / 2))
        out.append((s.uvw[row] * s.freq[chan, None] / C_M_S, s.i[row, chan], s.w[row, chan]))
    return out


def joined(*sets):
    return [[np.concatenate(x) for x in zip(*channel)] for channel in zip(*sets)]


def dirty(channel):
    uvw, vis, weight = channel
    if not (weight > 0).any():
        return np.full((SIDE, SIDE), np.nan)
    return uvfits.direct_dirty(uvw, np.array([C_M_S]), vis[:, None], weight[:, None], SIDE, SIDE,
                               SCALE)


def cube(prefix, kind="dirty"):
    with fits_module().open(f"{prefix}-cube-{kind}.fits") as hdus:
        return np.array(hdus[0].data)[0], hdus[0].header


def frequencies(header):
    """Of a cube's planes, by its header alone."""
    value = header["CRVAL3"] + np.arange(header["NAXIS3"]) * header["CDELT3"]
    if header["CTYPE3"] == "VRAD":
        return header["RESTFRQ"] * (1 - value / C_M_S)
    return header["RESTFRQ"] / (1 + value / C_M_S) if header["CTYPE3"] == "VOPT" else value


def compare(suite, label, prefix, channels):
    planes, header = cube(prefix)
    suite.equal(f"{label}: planes", len(planes), len(channels))
    expected = np.array([dirty(c) for c in channels])
    suite.true(f"{label}: planes without data",
               np.array_equal(np.isnan(expected), np.isnan(planes)))
    suite.below(f"{label}: L2 error", l2_error(np.nan_to_num(planes), np.nan_to_num(expected)),
                LIMIT)
    return header


def triangle(centre, half):
    return lambda f: np.maximum(0, 1 - np.abs(f - centre) / half)


def middle(factor):
    return (FIRST + 12 * WIDTH) * factor[0]


def check_line(suite, s, centre):
    """The default axis. A line of straight flanks is right by interpolation and smeared without."""
    start = FIRST * s.factor[0]
    step = WIDTH * s.factor[0]
    centres = start + step * np.arange(CHANNELS)
    suite.true("the shift changes by more than a channel",
               np.ptp(s.factor) * FIRST > WIDTH)
    fluxes = {}
    for kind in ("linear", "nearest"):
        ok, prefix = suite.image(f"line-{kind}", s.path, *IMAGE, "--cube", "--frame", "lsrk",
                                 "--interpolation", kind)
        if not ok:
            continue
        samples = linear(s, s.factor, centres) if kind == "linear" else \
            nearest(s, s.factor, centres, step)
        if kind == "nearest":  # channels at the ends may lie on either side of a border
            planes = cube(prefix)[0]
            fluxes[kind] = planes[:, SIDE // 2 + 2, SIDE // 2 + 3]
            suite.below("nearest: L2 error of the middle channels", l2_error(
                planes[2:-2], np.array([dirty(c) for c in samples[2:-2]])), LIMIT)
            continue
        header = compare(suite, kind, prefix, samples)
        fluxes[kind] = cube(prefix)[0][:, SIDE // 2 + 2, SIDE // 2 + 3]
        suite.below("channel frequencies [Hz]", np.abs(frequencies(header) - centres).max(), 1)
        suite.equal("keywords", [header.get(k) for k in ("CTYPE3", "CUNIT3", "SPECSYS",
                                                         "SSYSOBS", "RESTFRQ")],
                    ["FREQ", "Hz", "LSRK", "TOPOCENT", None])
        velocity = C_M_S * (s.factor[0]**2 - 1) / (s.factor[0]**2 + 1)
        suite.below("VELOSYS [m/s]", abs(header["VELOSYS"] - velocity), 0.3)
    truth = triangle(centre, 6 * WIDTH)(centres)
    flank = (truth > .2) & (truth < .8)  # a channel from the corners
    error = {k: np.abs(v - truth)[flank].max() for k, v in fluxes.items()}
    suite.below("linear: flux on the flanks", error["linear"], 0.01)
    suite.true(f"nearest: it is smeared, by {error['nearest']:.3g}", error["nearest"] > 0.005)
    total = np.nansum(fluxes["linear"]) / truth.sum()
    suite.below("linear: flux of the line", abs(total - 1), 0.01)
    inside = truth > 0
    place = (fluxes["linear"] * np.arange(CHANNELS))[inside].sum() / \
        fluxes["linear"][inside].sum()
    suite.below("linear: channel of the line", abs(
        place - (truth * np.arange(CHANNELS)).sum() / truth.sum()), 0.01)


def check_axes(suite, s):
    """--start, --width and --nchan in channels, Hz and km/s."""
    f0, w0 = FIRST * s.factor[0], WIDTH * s.factor[0]
    kms = REST / C_M_S * 1e3
    v0 = round((1 - (f0 + 15 * w0) / REST) * C_M_S / 1e3, 1)  # beside the line, km/s
    rest = ["--restfreq", f"{REST!r}"]
    radio = REST * (1 - (v0 - .6 - .3 * -np.arange(5)) * 1e3 / C_M_S)
    v1 = (REST / (f0 + 14 * WIDTH) - 1) * C_M_S
    optical = REST / (1 + (v1 + 250 * np.arange(4)) / C_M_S)
    cases = [
        ("channels", ["--start", "9", "--nchan", "5"], f0 + w0 * np.arange(9, 14), w0, "FREQ"),
        ("two channels", ["--width", "2", "--nchan", "12"],
         f0 + w0 * (.5 + 2 * np.arange(12)), 2 * w0, "FREQ"),
        ("Hz", ["--start", f"{float(f0 + 14200)!r}Hz", "--width", "-1.5kHz", "--nchan", "4"],
         f0 + 14200 - 1500 * np.arange(4), 1500, "FREQ"),
        ("km/s", [*rest, "--start", f"{v0 - .6}km/s", "--width", "0.3km/s", "--nchan", "5"],
         radio, .3 * kms, "FREQ"),
        ("radio", [*rest, "--start", f"{v0 - .6}km/s", "--width", "0.3km/s", "--nchan", "5",
                   "--velocity", "radio"], radio, .3 * kms, "VRAD"),
        ("optical", [*rest, "--start", f"{float(v1)!r}m/s", "--width", "0.25km/s", "--nchan", "4",
                     "--velocity", "optical"], optical, abs(optical[1] - optical[0]), "VOPT")]
    for label, options, centres, width, kind in cases:
        ok, prefix = suite.image("axis", s.path, *IMAGE, "--cube", "--frame", "lsrk", *options)
        if not ok:
            continue
        sub = int(np.ceil(width / w0 - 1e-3))
        header = compare(suite, label, prefix, linear(s, s.factor, centres, sub, width))
        suite.equal(f"{label}: axis", [header["CTYPE3"], header.get("RESTFRQ")],
                    [kind, REST if "--restfreq" in options else None])
        suite.below(f"{label}: frequencies [Hz]", np.abs(frequencies(header) - centres).max(),
                    .5)
    return prefix


def check_windows(suite, s, profile):
    """Windows that overlap, of another width and order, a gap, and frames."""
    other = Line(suite, "descending", profile, channels=10, first=FIRST + 20.3 * WIDTH,
                 width=-2 * WIDTH)
    centres = FIRST + WIDTH * np.arange(-2, CHANNELS + 4)
    args = ["--cube", "--start", f"{float(centres[0])!r}Hz", "--width", "1kHz", "--nchan",
            str(len(centres))]
    ok, prefix = suite.image("windows", s.path, other.path, *IMAGE, *args)
    one = np.ones(len(s.mjd))
    if ok:
        wide = [(u, v, .5 * w) for u, v, w in linear(other, one, centres)]
        both = joined(linear(s, one, centres), wide)
        header = compare(suite, "two windows", prefix, both)
        suite.equal("topocentric", [header["SPECSYS"], header["VELOSYS"]], ["TOPOCENT", 0])
    gap = Line(suite, "gap", profile, drop=(7, 8, 9))
    result = tessera("image", gap.path, *IMAGE, *args, "-o", suite.path("gap"))
    if suite.ran("flagged channels", result):
        compare(suite, "flagged channels", suite.path("gap"), linear(gap, one, centres))
        told = [line for line in result.err.splitlines() if "usable visibilities" in line]
        suite.true(f"planes without data are told once: {told}", len(told) == 1)
    ok, prefix = suite.image("coarse", other.path, *IMAGE, *args, "--interpolation", "nearest")
    if ok:
        half = 2 * WIDTH / 2
        samples = []
        for centre in centres:
            apart = centre - other.freq
            chan = np.nonzero((apart >= -half) & (apart < half))[0]
            samples.append([np.concatenate([x] if len(chan) else [x[:0]]) for x in (
                other.uvw * other.freq[chan[0]] / C_M_S, other.i[:, chan[0]],
                other.w[:, chan[0]])] if len(chan) else
                [np.zeros((0, 3)), np.zeros(0, "c16"), np.zeros(0)])
        compare(suite, "nearest in wide channels", prefix, samples)


def check_same(suite, s):
    """The same bits on any number of ranks, and the same image however data are read."""
    args = [s.path, *IMAGE, "--frame", "bary", "--cube", "--width", "4", "--reproducible"]
    result = tessera("image", *args, "-o", suite.path("same"))
    if not suite.ran("image same", result):
        return
    first = suite.path("same")
    suite.true("the log tells the axis", "] axis: 6 channels in BARYCENT, " in result.err)
    for ranks in (2, 3, 4) if mpiexec() else ():
        done, prefix = suite.image("ranks", *args, ranks=ranks)
        if done:
            suite.true(f"{ranks} ranks: the same bits", np.array_equal(
                cube(first)[0], cube(prefix)[0], equal_nan=True))
    done, prefix = suite.image("teams", *args, *forced(teams=3), ranks=3 if mpiexec() else 1)
    if done:
        suite.true("teams: the same bits", np.array_equal(cube(first)[0], cube(prefix)[0],
                                                          equal_nan=True))
    for label, more in (("each output read", ["--memory", "2MB"]),
                        ("streamed", ["--memory", "1MB"]), ("intervals", ["--intervals-out", "2"])):
        plain = [a for a in args if a != "--reproducible"]
        done, prefix = suite.image("otherwise", *plain, *more)
        if done and label != "intervals":
            suite.below(f"{label}: difference", l2_error(
                np.nan_to_num(cube(prefix)[0]), np.nan_to_num(cube(first)[0])), 2e-5)
    result = tessera("plan", *args, "--channels", "0:9999")
    suite.ran("plan", result)
    suite.equal("plan: observations are opened once", result.err.count("goes beyond"), 1)
    suite.true("plan: the axis", "axis " in result.out and "BARYCENT" in result.out)


def check_cleaned(suite, s):
    """Models are subtracted at the positions of the samples, whatever their frequency."""
    args = [a for a in IMAGE if a != "--no-psf"]
    ok, prefix = suite.image("clean", s.path, *args, "--frame", "lsrk", "--cube", "--start", "4",
                             "--nchan", "12", "--niter", "200", "--gain", "0.3", "--mgain", "0.8",
                             "--threshold", "2mJy", "--velocity", "radio", "--restfreq", f"{REST!r}")
    if ok:
        freq = frequencies(cube(prefix, "model")[1]) / 1e6
        result = tessera("predict", s.path, "--model", f"{prefix}-cube-model.fits", "-o",
                         suite.path("predicted.uvfits"))
        suite.ran("a model whose velocities are those of no channel of the data", result, 3)
        half = abs(freq[1] - freq[0]) / 2
        suite.true("its frequencies",
                   f" {freq.min() - half:.6g} to {freq.max() + half:.6g} MHz" in result.err)
        residual, image = cube(prefix, "residual")[0], cube(prefix, "image")[0]
        suite.below("cleaned: residual over peak", np.abs(residual).max() / image.max(), 5e-3)


READ = """
import sys
import numpy as np
from casacore.images import image
im = image(sys.argv[1])
axis = im.coordinates().get_coordinate("spectral")
print(axis.get_frame(), repr(axis.get_restfrequency()))
print(*[repr(im.toworld([0, k, 0, 0])[1]) for k in range(im.shape()[1])])
"""


def check_readers(suite, s):
    ok, prefix = suite.image("read", s.path, *IMAGE, "--frame", "lsrk", "--cube", "--restfreq",
                             f"{REST!r}", "--nchan", "6", "--velocity", "radio")
    if not ok:
        return
    path = f"{prefix}-cube-dirty.fits"
    wanted = frequencies(cube(prefix)[1])
    python = casacore_python()
    if python:
        result = run([python, "-c", READ, path], 60)
        if suite.ran("casacore opens a cube of velocities", result):
            lines = result.out.strip().splitlines()
            suite.equal("casacore: frame", lines[-2].split()[0], "LSRK")
            suite.below("casacore: frequencies [Hz]", np.abs(
                np.array(lines[-1].split(), float) - wanted).max(), 1)
    if shutil.which("fitsverify"):
        suite.ran("fitsverify", run(["fitsverify", "-e", path], 60))
    try:
        from spectral_cube import SpectralCube
    except ImportError:
        suite.skipped("spectral_cube is not installed")
        return
    read = SpectralCube.read(path)
    suite.equal("spectral_cube: unit", str(read.spectral_axis.unit), "m / s")
    suite.below("spectral_cube: velocities [m/s]", np.abs(
        read.spectral_axis.value - (1 - wanted / REST) * C_M_S).max(), 0.3)


SOURCE = """
import sys
from casacore.tables import default_ms_subtable, makearrcoldesc, maketabdesc, table
main = table(sys.argv[1], readonly=False, ack=False)
if sys.argv[2] == "source":
    lines = default_ms_subtable("SOURCE", sys.argv[1] + "/SOURCE", maketabdesc(
        makearrcoldesc("REST_FREQUENCY", 0.0, ndim=1, valuetype="double")))
    lines.addrows(2)
    for row, rest in enumerate((1.3e9, float(sys.argv[3]))):
        lines.putcell("SOURCE_ID", row, row)
        lines.putcell("SPECTRAL_WINDOW_ID", row, -1)
        lines.putcell("REST_FREQUENCY", row, [rest])
    main.putkeyword("SOURCE", lines)
    table(sys.argv[1] + "/FIELD", readonly=False, ack=False).putcell("SOURCE_ID", 0, 1)
else:
    table(sys.argv[1] + "/SPECTRAL_WINDOW", readonly=False, ack=False).putcell(
        "MEAS_FREQ_REF", 0, 1)
"""


def check_sets(suite):
    """Rest frequencies and frames that a MeasurementSet and a UVFITS file tell."""
    sky = write_sky(suite.path("one.csv"), [dict(ra=f"{RA}deg", dec=f"{DEC}deg", flux_jy=1)])
    named = Line(suite, "named", lambda f: 1 + 0 * f, channels=3, cards={"RESTFREQ": REST})
    options = [*IMAGE, "--cube", "--frame", "lsrk", "--width", "10km/s", "--nchan", "1"]
    options[options.index("--scale") + 1] = "10asec"
    ok, prefix = suite.image("named", named.path, *options)
    if ok:
        suite.equal("UVFITS: RESTFRQ", cube(prefix)[1].get("RESTFRQ"), REST)
    python = casacore_python()
    if not python or not have_ms():
        return
    observation = simulate(suite.path("set.ms"), sky, duration="4min", channels=4,
                           freq="1.42GHz", width="20kHz")
    suite.ran("SOURCE", run([python, "-c", SOURCE, observation, "source", repr(REST)], 60))
    ok, prefix = suite.image("set", observation, *options)
    if ok:
        header = cube(prefix)[1]
        suite.equal("MeasurementSet: RESTFRQ", header.get("RESTFRQ"), REST)
        suite.below("MeasurementSet: width [Hz]", abs(header["CDELT3"] - 1e4 * REST / C_M_S),
                    1e-3)
    suite.ran("MEAS_FREQ_REF", run([python, "-c", SOURCE, observation, "frame"], 60))
    ok, prefix = suite.image("same-frame", observation, *options)
    if ok:
        suite.equal("frequencies in LSRK stay", [round(cube(prefix)[1]["CRVAL3"] / 1e3, 3),
                                                 cube(prefix)[1].get("VELOSYS")],
                    [round((1.42e9 + 40e3 - 5e3 * REST / C_M_S) / 1e3, 3), None])
    options[options.index("lsrk")] = "bary"
    result = tessera("image", observation, *options, "-o", suite.path("bary"))
    suite.ran("frequencies in LSRK, --frame bary", result, 3)
    suite.true("it says so", "in the frame LSRK" in result.err)
    ok, prefix = suite.image("as-they-are", observation, "--size", "64", "--scale", "60asec", "--no-psf")
    if ok:
        header = fits_module().getheader(prefix + "-dirty.fits")
        suite.equal("frequencies in LSRK as they are", (header["SPECSYS"], "SSYSOBS" in header),
                    ("LSRK", False))


def check_refused(suite, s):
    """One line, and status 2 or 3."""
    there = ["--frame", "lsrk"]
    far = Line(suite, "far", lambda f: 1 + 0 * f, channels=3, first=FIRST + 9e6)
    gap = [far.path, *there, "--start", f"{FIRST + 5e6!r}Hz", "--nchan", "2", "--scale", "60asec"]
    cases = [
        ("division", [*there, "--channel-division-frequencies", "1.42GHz"], 2, "leave one of them"),
        ("continuum without lines", [*there, "--uvcontsub", "1"], 2, "--line-channels"),
        ("no rest frequency", [*there, "--start", "10km/s"], 2, "--restfreq"),
        ("outside", [*there, "--start", "1.3GHz", "--nchan", "3"], 2, "outside the data"),
        ("a gap, beside baselines that are too long", gap, 2, "none lies in the output channels"),
        ("optical", [*there, "--velocity", "optical", "--restfreq", "1.42GHz", "--width", "1kHz"],
         2, "--width in km/s"),
        ("frame", ["--frame", "helio"], 2, "none of topo"),
        ("start", ["--start", "x"], 2, "where an axis begins"),
        ("width", ["--width", "0"], 2, "not a width"),
        ("many", [*there, "--width", "1mm/s"], 2, "width"),
        ("too many", [*there, "--width", "1e-4Hz"], 2, "--nchan"),
        ("outputs", [*there, "--channels-out", "4"], 2, "--nchan"),
        ("weights", [*there, "--store-imaging-weights"], 2, "--store-imaging-weights"),
        ("models", [*there, "--niter", "5", "--update-model"], 2, "--update-model")]
    if not FULL:
        cases = cases[:7] + cases[10:12]
    options = [a for a in IMAGE if a != "--no-psf"]
    for label, more, status, words in cases:
        result = tessera("image", s.path, *options, *more, "--quiet", "-o",
                         suite.path("refused"))
        suite.ran(f"refused: {label}", result, status)
        errors = [e for e in result.err.splitlines() if e.strip()]
        suite.true(f"refused: {label}: one line {errors}", len(errors) == 1
                   and words in errors[0])


def main():
    suite = Suite("spectral_axes")
    factor = doppler(START_MJD + np.arange(STEPS) * STEP_S / 86400, "lsrk")
    centre = middle(factor)
    profile = triangle(centre, 6 * WIDTH)
    s = Line(suite, "line", profile)
    check_line(suite, s, centre)
    check_axes(suite, s)
    check_windows(suite, s, profile)
    check_same(suite, s)
    check_cleaned(suite, s)
    check_readers(suite, s)
    check_sets(suite)
    check_refused(suite, s)
    suite.finish()


if __name__ == "__main__":
    main()
