#!/usr/bin/env python3
"""Options and files that other end-to-end tests leave out: NAME.conf given back,
--uvrange, --spw, FLAG_ROW, uvw of type -L-NCP, predictions of a model of four Stokes
parameters; against direct sums."""
import os
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (ASEC, C_M_S, ROOT, Suite, casacore_python, have_ms, l2_error, mpiexec,
                 read_image, run, simulate, tessera, write_sky)
import uvfits

N, SCALE = 40, 60 * ASEC
IMAGE = ["--size", str(N), "--scale", "60asec", "--weight", "natural", "--accuracy", "1e-8"]
LIMIT = 1e-8
ROWS, CHANNELS = 600, 4
FREQ = 1e9 + 2e7 * np.arange(CHANNELS)
RANKS = (1, 3) if mpiexec() else (1,)


class Observation:
    def __init__(self, suite, name, corrs=2, **write):
        rng = np.random.default_rng(9)
        shape = (ROWS, CHANNELS, corrs)
        self.vis = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype("c8")
        self.weight = rng.uniform(0.5, 1.5, shape).astype("f4")
        self.path = suite.path(name + ".uvfits")
        self.uvw = uvfits.write(self.path, uvfits.random_tracks(ROWS, 450.0), FREQ,
                                self.vis, self.weight, **write)

    def dirty(self, keep=True):
        value, weight = uvfits.stokes_i(self.vis[..., :2].astype("c16"),
                                        self.weight[..., :2].astype("f8"))
        return uvfits.direct_dirty(self.uvw, FREQ, value, np.where(keep, weight, 0), N, N,
                                   SCALE)


def check_image(suite, what, expected, *args, limit=LIMIT):
    for ranks in RANKS:
        ran, prefix = suite.image(f"{what}{ranks}", *args, *IMAGE, ranks=ranks)
        if ran:
            image, _ = read_image(prefix + "-dirty.fits")
            suite.below(f"{what}, {ranks} ranks: L2 error", l2_error(image, expected), limit)


def check_config(suite, obs):
    """NAME.conf makes the same image again; the command line goes before it."""
    ran, prefix = suite.image("first", obs.path, "--size", "40,36", "--scale", "50asec",
                              "--weight", "briggs:-0.5", "--channels", "1:3", "--accuracy",
                              "1e-6", "--no-psf")
    if not ran:
        return
    again = suite.path("again")
    result = tessera("image", "--config", prefix + ".conf", "-o", again)
    if suite.ran("its options given back", result):
        a, b = (read_image(p + "-dirty.fits")[0] for p in (prefix, again))
        suite.true("the same image", np.array_equal(a, b))
        suite.true("and no PSF", not os.path.exists(again + "-psf.fits"))
        kept = [[s for s in open(p + ".conf") if not s.startswith(("#", "output"))]
                for p in (prefix, again)]
        suite.equal("the same options", kept[1], kept[0])
    other = suite.path("other")
    result = tessera("image", "--config", prefix + ".conf", "--size", "24", "-o", other)
    if suite.ran("with another size", result):
        suite.equal("is of that size", read_image(other + "-dirty.fits")[0].shape, (24, 24))


def check_uvrange(suite, obs):
    length = np.hypot(obs.uvw[:, :1], obs.uvw[:, 1:2]) * FREQ / C_M_S
    keep = (length >= 300) & (length <= 1200)
    suite.true("--uvrange leaves some", 0.1 < keep.mean() < 0.9)
    check_image(suite, "uvrange", obs.dirty(keep), obs.path, "--uvrange", "300:1200")


def check_ncp(suite):
    """AIPS's names of uvw about a pole are the usual ones."""
    obs = Observation(suite, "ncp", cards={f"PTYPE{k + 1}": f"{c}-L-NCP"
                                           for k, c in enumerate(("UU", "VV", "WW"))})
    check_image(suite, "ncp", obs.dirty(), obs.path)


def check_four_stokes(suite):
    """A model with a STOKES axis of four: V_XX = I + Q, V_XY = U + iV and so on."""
    obs = Observation(suite, "four", corrs=4)
    rng = np.random.default_rng(1)
    model = np.where(rng.uniform(size=(4, N, N)) < 0.01, rng.normal(size=(4, N, N)), 0.0)
    path = uvfits.write_model(suite.path("model.fits"), model, SCALE)
    i, q, u, v = (uvfits.direct_predict(obs.uvw, FREQ, plane, SCALE) for plane in model)
    expected = np.stack([i + q, i - q, u + 1j * v, u - 1j * v], -1)
    for ranks in RANKS:
        out = suite.path(f"predicted{ranks}.uvfits")
        result = tessera("predict", obs.path, "--model", path, "--accuracy", "1e-7", "-o",
                         out, ranks=ranks)
        if suite.ran(f"predict I, Q, U, V on {ranks} ranks", result):
            vis = uvfits.read(out)[2]
            for k, name in enumerate(("XX", "YY", "XY", "YX")):
                wanted = expected[..., k]
                # 6e-8: visibilities are stored in single precision
                suite.below(f"predicted {name}, {ranks} ranks",
                            np.linalg.norm(vis[..., k] - wanted) / np.linalg.norm(wanted),
                            1e-7 + 6e-8)


def check_flag_row(suite):
    """A third of the rows flagged by FLAG_ROW alone."""
    python = casacore_python()
    if not have_ms() or not python:
        return
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60.05deg", dec="-30deg", flux_jy=1)])
    ms, same = (simulate(suite.path("flags" + ending), sky, duration="6min",
                         extra=("--noise", "1Jy")) for ending in (".ms", ".uvfits"))
    script = os.path.join(ROOT, "tests", "faults", "spoil_ms.py")
    suite.ran("rows flagged", run([python, script, ms, "flag_row"], 60))
    uvw, freq, vis, weight, _ = uvfits.read(same)
    weight[::3] = 0
    value, weight = uvfits.stokes_i(vis, weight)
    expected = uvfits.direct_dirty(uvw, freq, value, weight, N, N, SCALE)
    # the MS has uvw in double precision, the direct sum those of the UVFITS file
    turns = np.abs(uvw).max() * freq.max() / C_M_S * N / 2 * SCALE * np.sqrt(2)
    check_image(suite, "flag_row", expected, ms,
                limit=LIMIT + 2 * np.pi * turns * 3 * 6e-8)


def check_spw(suite):
    """IFs of a file by their numbers."""
    path = suite.path("ifs.uvfits")
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60.05deg", dec="-30deg", flux_jy=1)])
    whole = simulate(suite.path("one.uvfits"), sky, duration="6min",
                     extra=("--noise", "1Jy"))
    split_ifs(whole, path)
    uvw, freq, vis, weight, _ = uvfits.read(path)
    suite.equal("channels of two IFs", len(freq), CHANNELS)
    value, weight = uvfits.stokes_i(vis, weight)
    second = slice(CHANNELS // 2, CHANNELS)
    expected = uvfits.direct_dirty(uvw, freq[second], value[:, second], weight[:, second],
                                   N, N, SCALE)
    check_image(suite, "spw", expected, path, "--spw", "1")
    result = tessera("image", path, *IMAGE, "--spw", "2", "-o", suite.path("absent"))
    suite.ran("a window that is not there", result, 2)


def split_ifs(whole, path):
    """The same samples as two IFs of half the channels: only headers change."""
    from astropy.io import fits
    shutil.copy(whole, path)
    uvw, freq, vis, weight, _ = uvfits.read(whole)
    half = len(freq) // 2
    with open(path, "rb") as f:
        header = fits.Header.fromfile(f)
        rows = f.read()
    before = len(header.tostring(padding=True))
    axis = {header[f"CTYPE{k}"].strip(): k for k in range(2, header["NAXIS"] + 1)}
    header[f"NAXIS{axis['FREQ']}"], header[f"NAXIS{axis['IF']}"] = half, 2
    for key in ("CHECKSUM", "DATASUM"):
        header.remove(key, ignore_missing=True)
    head = header.tostring(padding=True).encode()
    assert len(head) == before
    count = header["GCOUNT"] * (header["PCOUNT"] + vis[0].size * 3) * 4
    data = rows[:count + -count % 2880]
    tables = []
    with fits.open(whole) as hdus:
        for hdu in hdus[1:]:
            if hdu.name == "AIPS FQ":
                width = float(np.ravel(hdu.data["CH WIDTH"])[0])
                columns = [fits.Column("FRQSEL", "1J", array=[1]),
                           fits.Column("IF FREQ", "2D", unit="HZ",
                                       array=[[0.0, half * width]]),
                           fits.Column("CH WIDTH", "2E", unit="HZ", array=[[width] * 2]),
                           fits.Column("TOTAL BANDWIDTH", "2E", unit="HZ",
                                       array=[[half * width] * 2]),
                           fits.Column("SIDEBAND", "2J", array=[[1, 1]])]
                hdu = fits.BinTableHDU.from_columns(columns, name="AIPS FQ", ver=1)
                hdu.header["NO_IF"] = 2
            tables.append(hdu.copy())
    with open(path, "wb") as f:
        f.write(head + data + uvfits.table_bytes(tables))


BANDS = ((1.0e9, 8e6, 5), (1.1e9, 2e7, 4), (1.5e9, 1e7, 3))


def parts_of(freq, num, at_gaps, splits):
    """Where each output channel begins, as WSClean divides ascending frequencies."""
    begins, edges = [], np.concatenate([[0], np.searchsorted(freq, splits), [len(freq)]])
    for g, (first, end) in enumerate(zip(edges[:-1], edges[1:])):
        count = num * (g + 1) // (len(splits) + 1) - num * g // (len(splits) + 1)
        gaps = np.diff(freq[first:end])
        largest = sorted(range(1, end - first), key=lambda k: (-gaps[k - 1], -k))[:count - 1]
        own = sorted([0, *largest]) if at_gaps else [k * (end - first) // count for k in range(count)]
        begins += [first + k for k in own]
    return [*begins, len(freq)]


def check_division(suite):
    """Output channels part at the largest gaps, at given frequencies, or both."""
    sky = write_sky(suite.path("one.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    sets = [simulate(suite.path(f"band{k}.uvfits"), sky, duration="2min", freq=f"{freq}Hz", width=f"{width}Hz",
                     channels=num) for k, (freq, width, num) in enumerate(BANDS)]
    freq = np.concatenate([uvfits.read(path)[1] for path in sets])
    width = np.concatenate([np.full(num, width) for _, width, num in BANDS])
    cut = "--channel-division-frequencies"
    for num, gaps, splits in ((3, True, []), (5, True, []), (4, False, [1.45e9]), (4, True, [1.05e9]),
                              (5, False, [1.05e9, 1.45e9])):
        args = ["--gap-channel-division"] * gaps + ([cut, ",".join(map(str, splits))] if splits else [])
        what = f"{num} channels {' '.join(args)}"
        ran, prefix = suite.image("divided", *sets, *IMAGE, "--no-psf", "--overwrite", "--channels-out", str(num), *args)
        begins = parts_of(freq, num, gaps, splits)
        for c in range(num) if ran else ():
            header = read_image(f"{prefix}-{c:04d}-dirty.fits")[1]
            of = slice(begins[c], begins[c + 1])
            low, high = (freq - width / 2)[of].min(), (freq + width / 2)[of].max()
            suite.true(f"{what}: channel {c}", np.allclose([header["CRVAL3"], header["CDELT3"]],
                                                           [(low + high) / 2, high - low], rtol=1e-9))
    for splits in ("1.45GHz,1.46GHz", "1.45GHz,1.1GHz", "1.45GHz,"):
        result = tessera("image", *sets, *IMAGE, "--channels-out", "3", cut, splits, "-o", suite.path("undivided"))
        suite.equal(f"{cut} {splits}: status and lines", (result.status, len(result.errors())), (2, 1))


def check_expressions(suite):
    """CASA's expressions choose the rows and channels that other options, or conditions, choose; of
    a MeasurementSet and, where they can be, of UVFITS."""
    if not have_ms():
        return
    sky = write_sky(suite.path("chosen.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    sets = {end: simulate(suite.path("chosen" + end), sky, duration="40min", integration="600s",
                          channels=8, extra=("--antennas", "7", "--noise", "1"))
            for end in (".ms", ".uvfits")}
    image = ["--size", "48", "--scale", "100asec", "--no-psf", "--reproducible"]
    made = {}

    def make(what, obs, *args):
        ran, prefix = suite.image(f"chosen{len(made)}", obs, *image, *args)
        made[what] = read_image(prefix + "-dirty.fits")[0] if ran else None
        return made[what]

    time = "2026/01/01/20:00:00~2026/01/02/19:00:00"  # more than there is
    first = "ANTENNA1 < 4 && ANTENNA2 < 4"
    pairs = [(("--select-spw", "0:2~5"), ("--channels", "2:6")),
             (("--select-spw", "0:0~1;6~7"), ("--select-spw", "0:6~7;0~1", "--timerange", time)),
             (("--antenna", "0,1,2,3&"), ("--select-taql", first)),
             (("--select-field", "SIMUL*", "--scan", "0~9"), ())]
    for one, other in pairs:
        a, b = (make(words, sets[".ms"], *words) for words in (one, other))
        suite.true(f"{one} chooses what {other} does", a is not None and np.array_equal(a, b))
    whole = made[()]
    suite.true("an expression changes the image",
               whole is not None and not np.array_equal(made[pairs[2][0]], whole))
    for words in (("--antenna", "0,1,2,3&"), ("--timerange", "<2026/01/01/22:00:00")):
        a, b = (make((words, end), path, *words) for end, path in sets.items())
        if a is not None and b is not None:
            suite.below(f"{words}: UVFITS as the MeasurementSet", l2_error(b, a), 1e-4)
    late = ("--timerange", ">2027/01/01/00:00:00")
    for words, said in ((("--scan", "x~"), "casacore says: Scan Expression"),
                        (("--select-spw", "9"), "casacore says"),
                        (("--select-taql", "ANTENNA1 ="), "casacore says"),
                        (("--scan", "77"), "no rows are left by --scan '77'"),
                        (("--scan", "0~9", *late),
                         f"no rows are left by --scan '0~9', --timerange '{late[1]}'"),
                        (("--select-spw", "0:0~1", "--channels", "4:6"),
                         "no rows or channels are left by --channels, --select-spw '0:0~1'")):
        result = tessera("image", sets[".ms"], *image, *words, "-o", suite.path("none"),
                         ranks=RANKS[-1] if "x~" in words else 1)
        suite.ran(f"{words}", result, 2)
        suite.true(f"{words}: {said!r} in {result.err[-200:]!r}", said in result.err)
    for words, said in ((("--scan", "1"), "--scan is for MeasurementSets"),
                        (late, "no rows are left by --timerange"),
                        (("--field", "0", *late), "no rows are left by --timerange")):
        result = tessera("image", sets[".uvfits"], *image, *words, "-o", suite.path("none"))
        suite.ran(f"{words} of UVFITS", result, 2)
        suite.true(f"{words}: {said!r} in {result.err[-200:]!r}", said in result.err)


def main():
    suite = Suite("selections")
    obs = Observation(suite, "plain")
    check_config(suite, obs)
    check_uvrange(suite, obs)
    check_ncp(suite)
    check_four_stokes(suite)
    check_flag_row(suite)
    check_spw(suite)
    check_division(suite)
    check_expressions(suite)
    suite.finish()


if __name__ == "__main__":
    main()
