#!/usr/bin/env python3
"""Lists of sources in the text format of DP3 and WSClean: predicted and simulated against a direct
sum in numpy, written by `image --save-source-list`, read by WSClean, written by WSClean and read
here, and refused with file, line and reason where they are damaged.

Predictions are direct sums in double precision, rounded to the file's single precision once: half a
unit in the last place, 6e-8, relative to what is stored.
"""
import os
import re
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (ASEC, C_M_S, MS_COLUMN, Suite, casacore_python, fits_module, forced, have_ms,
                 mpiexec, offset_radec, peak_error, read_image, run, simulate, tessera, write_sky)
import uvfits

STORED = 6e-8
RA, DEC, NU0 = 60.0, -30.0, 1.3e9
RANKS = (1, 2, 3, 4) if mpiexec() else (1,)
FORMAT = ("Format = Name, Type, Ra, Dec, I, SpectralIndex, LogarithmicSI, "
          f"ReferenceFrequency='{NU0:.1f}', MajorAxis, MinorAxis, Orientation\n\n")


# ---- lists in Python ----

def sexagesimal(value, separator, digits):
    """A number of hours or degrees in three parts; negative ones keep their sign."""
    units = round(abs(value) * 3600 * 10 ** digits)
    rest, units = units % (60 * 10 ** digits), units // (60 * 10 ** digits)
    return (f"{'-' if value < 0 else ''}{units // 60:02d}{separator}{units % 60:02d}{separator}"
            f"{rest // 10 ** digits:02d}.{rest % 10 ** digits:0{digits}d}")


def angle(text, degrees_per_unit):
    """The angle that three parts are [rad]."""
    sign = -1 if text.startswith("-") else 1
    parts = re.split(r":", text.lstrip("+-")) if ":" in text else text.lstrip("+-").split(".", 2)
    a, b, c = (float(p) for p in parts)
    return np.deg2rad(sign * (a + b / 60 + c / 3600) * degrees_per_unit)


def read_list(path):
    """Sources of a list as tessera and WSClean write them."""
    with open(path, encoding="ascii") as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    header = re.split(r",\s*", lines[0].split("=", 1)[1].strip())
    default = {k.split("=")[0].strip().lower(): k.split("=")[1].strip("' ") for k in header if "=" in k}
    names = [k.split("=")[0].strip().lower() for k in header]
    sources = []
    for line in lines[1:]:
        cells = re.findall(r"\[[^\]]*\]|[^,]+|(?<=,)(?=,|$)", line)
        cell = dict(default)
        cell.update({n: c.strip() for n, c in zip(names, cells) if c.strip()})
        sources.append(dict(
            name=cell["name"], type=cell["type"].upper(), ra=angle(cell["ra"], 15),
            dec=angle(cell["dec"], 1), flux=float(cell["i"]),
            terms=[float(t) for t in cell.get("spectralindex", "[]").strip("[]").split(",") if t],
            log=cell.get("logarithmicsi", "true") == "true",
            nu0=float(cell["referencefrequency"]),
            shape=[float(cell.get(k, 0)) for k in ("majoraxis", "minoraxis", "orientation")]))
    return sources


def write_list(path, sources):
    with open(path, "w", encoding="ascii") as file:
        file.write(FORMAT)
        for k, s in enumerate(sources):
            shape = ",".join(f"{v:.6f}" for v in s["shape"]) if s["type"] == "GAUSSIAN" else ",,"
            file.write(f"s0c{k},{s['type']},{sexagesimal(np.rad2deg(s['ra']) / 15, ':', 9)},"
                       f"{sexagesimal(np.rad2deg(s['dec']), '.', 8)},{s['flux']!r},"
                       f"[{','.join(map(repr, s['terms']))}],{str(s['log']).lower()},{s['nu0']!r},"
                       f"{shape}\n")
    return path


def flux_at(source, freq):
    x, y = freq / source["nu0"] - 1, np.log10(freq / source["nu0"])
    if source["log"]:
        return source["flux"] * (freq / source["nu0"]) ** sum(
            c * y ** k for k, c in enumerate(source["terms"]))
    return source["flux"] + sum(c * x ** (k + 1) for k, c in enumerate(source["terms"]))


def visibilities(sources, uvw, freq, ra0=RA, dec0=DEC):
    """V [rows, channels], summed in double."""
    ra0, dec0 = np.deg2rad([ra0, dec0])
    lam, total = freq / C_M_S, 0
    for s in sources:
        l = np.cos(s["dec"]) * np.sin(s["ra"] - ra0)
        m = np.sin(s["dec"]) * np.cos(dec0) - np.cos(s["dec"]) * np.sin(dec0) * np.cos(s["ra"] - ra0)
        turns = (uvw @ np.array([l, m, uvfits.n_minus_1(l, m)]))[:, None] * lam
        vis = flux_at(s, freq) * np.exp(2j * np.pi * (turns - np.rint(turns)))
        if s["type"] == "GAUSSIAN":
            sigma = np.array(s["shape"][:2]) * ASEC / np.sqrt(8 * np.log(2))
            pa = np.deg2rad(s["shape"][2])
            n = 1 + uvfits.n_minus_1(l, m)
            u, v = uvw[:, 0] - uvw[:, 2] * l / n, uvw[:, 1] - uvw[:, 2] * m / n
            along, across = u * np.sin(pa) + v * np.cos(pa), u * np.cos(pa) - v * np.sin(pa)
            size = (along * sigma[0]) ** 2 + (across * sigma[1]) ** 2
            vis = vis * np.exp(-2 * np.pi ** 2 * size[:, None] * lam ** 2)
        total = total + vis
    return total


def make_sources(points_alone=False):
    rng = np.random.default_rng(8)
    sources = []
    for k in range(24):
        ra, dec = offset_radec(RA, DEC, *rng.uniform(-.01, .01, 2))
        gaussian = not points_alone and k % 3 == 2
        sources.append(dict(
            type="GAUSSIAN" if gaussian else "POINT", ra=np.deg2rad(ra), dec=np.deg2rad(dec),
            flux=round(rng.uniform(-.2, 2), 6), log=k % 2 == 0, nu0=NU0 if k % 4 else 1.5e9,
            terms=[] if points_alone else [round(t, 5) for t in rng.uniform(-1, 1, k % 4)],
            shape=[round(rng.uniform(20, 90), 3), round(rng.uniform(5, 20), 3),
                   round(rng.uniform(0, 180), 3)] if gaussian else [0, 0, 0]))
    return sources


def error_of(vis, wanted):
    return max(np.linalg.norm(vis[..., k] - wanted) for k in range(vis.shape[-1])) \
        / np.linalg.norm(wanted)


# ---- predictions ----

def observations(suite):
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    more = dict(duration="20min", integration="120s", freq="1.3GHz", width="50MHz", channels=4,
                extra=["--overwrite"])
    sets = {"uvfits": simulate(suite.path("obs.uvfits"), sky, **more)}
    if have_ms():
        sets["ms"] = simulate(suite.path("obs.ms"), sky, **more)
    return sets


def check_predictions(suite, obs):
    uvw, freq, _, weight, _ = uvfits.read(obs)
    for what in ("points", "all"):
        # names tell nothing: the first line does
        path = write_list(suite.path(f"{what}.fits"), make_sources(what == "points"))
        wanted, first = visibilities(read_list(path), uvw, freq), None
        for ranks in RANKS:
            out, label = suite.path("predicted.uvfits"), f"{what}, {ranks} ranks"
            result = tessera("predict", obs, "--model", path, "--accuracy", "1e-6", "--overwrite",
                             "-o", out, ranks=ranks)
            if not suite.ran(label, result):
                continue
            found = uvfits.read(out)
            suite.below(f"{label}: L2 error", error_of(found[2], wanted), STORED)
            suite.true(f"{label}: uvw and weights", np.array_equal(found[0], uvw)
                       and np.array_equal(found[3], weight))
            first = found[2] if first is None else first
            suite.true(f"{label}: the same bits", np.array_equal(found[2], first))
        result = tessera("predict", obs, "--model", path, "--channels", "1:3", "--overwrite", "-o",
                         suite.path("part.uvfits"))
        if suite.ran(f"{what}, two channels", result):
            part = uvfits.read(suite.path("part.uvfits"))[2]
            suite.below(f"{what}, two channels: L2 error", error_of(part[:, 1:3], wanted[:, 1:3]),
                        STORED)
    with fits_module().open(out) as hdus:
        told = "".join(str(line) for line in hdus[0].header["HISTORY"])
    suite.true("HISTORY tells of the list", "list of sources" in told.replace("  ", ""))


def check_bad_rows(suite):
    """Rows without finite uvw get zeros; flagged rows are predicted."""
    rng = np.random.default_rng(3)
    uvw, freq = uvfits.random_tracks(50, 3000.0), np.array([1.3e9, 1.35e9])
    uvw[[3, 7]] = [[np.nan, 1, 2], [5, np.inf, 2]]
    weight = (rng.uniform(size=(50, 2, 2)) > .3).astype("f4")
    obs = suite.path("bad-rows.uvfits")
    uvw = uvfits.write(obs, uvw, freq, np.ones((50, 2, 2), "c8"), weight)
    path = write_list(suite.path("bad-rows.txt"), make_sources())
    result = tessera("predict", obs, "--model", path, "-o", suite.path("bad-predicted.uvfits"))
    if not suite.ran("rows without finite uvw", result):
        return
    vis, good = uvfits.read(suite.path("bad-predicted.uvfits"))[2], np.isfinite(uvw).all(1)
    suite.true("rows without finite uvw: zeros", good.sum() == 48 and not vis[~good].any())
    suite.below("the other rows: L2 error",
                error_of(vis[good], visibilities(read_list(path), uvw[good], freq)), STORED)


def check_simulated(suite):
    for suffix in ("csv", "txt"):
        path = write_list(suite.path(f"simulated.{suffix}"), make_sources())
        obs = simulate(suite.path("simulated.uvfits"), path, duration="10min", freq="1.3GHz",
                       width="50MHz", extra=["--overwrite"])
        uvw, freq, vis, _, _ = uvfits.read(obs)
        suite.below(f"simulated from a .{suffix}: L2 error",
                    error_of(vis, visibilities(read_list(path), uvw, freq)), STORED)


def column(suite, ms, name):
    out, python = suite.path("column.npy"), casacore_python()
    if not python or run([python, MS_COLUMN, ms, name, out], 60).status != 0:
        return None
    return np.load(out)


def without_data(suite, ms):
    """A copy of an MS without the column DATA, or None without casacore."""
    copy, python = suite.path("no-data.ms"), casacore_python()
    shutil.copytree(ms, copy)
    script = "import sys; from casacore.tables import table; " \
             "table(sys.argv[1], readonly=False, ack=False).removecols('DATA')"
    return copy if python and run([python, "-c", script, copy], 60).status == 0 else None


def check_columns(suite, ms):
    """uvw of the MS are double, those of the UVFITS single precision."""
    path = write_list(suite.path("column.txt"), make_sources())
    uvw = column(suite, ms, "UVW")
    _, freq, _, _, _ = uvfits.read(suite.path("obs.uvfits"))
    for ranks in RANKS[::2]:
        result = tessera("predict", ms, "--model", path, "--column", "MODEL_DATA", "--overwrite",
                         ranks=ranks)
        if not suite.ran(f"a column, {ranks} ranks", result) or uvw is None:
            continue
        suite.below(f"a column, {ranks} ranks: L2 error",
                    error_of(column(suite, ms, "MODEL_DATA"),
                             visibilities(read_list(path), uvw, freq)), STORED)
        result = tessera("predict", ms, "--model", path, "--overwrite", "-o",
                         suite.path("of-ms.uvfits"), ranks=ranks)
        if suite.ran(f"MS to UVFITS, {ranks} ranks", result):
            found = uvfits.read(suite.path("of-ms.uvfits"))
            # of the MS's uvw; the file's are rounded
            suite.below(f"MS to UVFITS, {ranks} ranks: L2 error",
                        error_of(found[2], visibilities(read_list(path), uvw, freq)), STORED)
    bare, out = without_data(suite, ms), suite.path("of-bare.uvfits")
    if bare and suite.ran("an MS without data", tessera("predict", bare, "--model", path, "-o", out)):
        suite.true("an MS without data: the same visibilities", np.array_equal(
            uvfits.read(out)[2], uvfits.read(suite.path("of-ms.uvfits"))[2]))


# ---- lists that cleaning writes ----

SIZE, SCALE = 256, 12.0


def make_field(suite):
    rng = np.random.default_rng(6)
    sources = []
    for k in range(14):
        x, y = np.rint(rng.uniform(-.35 * SIZE, .35 * SIZE, 2))
        ra, dec = offset_radec(RA, DEC, -x * SCALE * ASEC, y * SCALE * ASEC)
        wide = {12: dict(major="120asec", minor="100asec", pa="30deg", flux_jy=3),
                13: dict(major="300asec", minor="240asec", pa="30deg", flux_jy=8)}.get(k, {})
        sources.append({**dict(ra=f"{ra:.10f}deg", dec=f"{dec:.10f}deg", ref_freq="1.3GHz",
                               flux_jy=round(10 ** rng.uniform(-1, .5), 4),
                               spectral_index=round(rng.uniform(-1, .5), 2)), **wide})
    sky = write_sky(suite.path("field.csv"), sources)
    more = dict(duration="2h", integration="300s", freq="1.3GHz", width="50MHz", channels=4,
                extra=["--overwrite", "--noise", "0.05Jy"])
    return (simulate(suite.path("field.uvfits"), sky, **more),
            simulate(suite.path("field.ms"), sky, **more) if have_ms() else None)


CLEAN = ["--size", SIZE, "--scale", f"{SCALE}asec", "--niter", 400, "--nmiter", 2,
         "--save-source-list"]


def clean(suite, name, obs, *more, ranks=1, status=0):
    return suite.image(name, obs, *CLEAN, *more, ranks=ranks, status=status)


def pixels_of(sources, header, nx, ny):
    """The pixel that each source is in, and its distance from the middle of it."""
    ra0, dec0 = np.deg2rad([header["CRVAL1"], header["CRVAL2"]])
    ra, dec = (np.array([s[k] for s in sources]) for k in ("ra", "dec"))
    l = np.cos(dec) * np.sin(ra - ra0)
    m = np.sin(dec) * np.cos(dec0) - np.cos(dec) * np.sin(dec0) * np.cos(ra - ra0)
    x, y = nx // 2 - l / (SCALE * ASEC), ny // 2 + m / (SCALE * ASEC)
    i, j = np.rint(x).astype(int), np.rint(y).astype(int)
    return i, j, np.hypot(x - i, y - j).max()


def check_model(suite, what, sources, model, freq=None, limit=2e-7, beside=0):
    """A list of points, and what there is beside, is the model image: each pixel to the image's single
    precision."""
    image, header = read_image(model)
    i, j, away = pixels_of(sources, header, *image.shape[::-1])
    found = np.zeros_like(image)
    np.add.at(found, (j, i), [flux_at(s, freq or s["nu0"]) for s in sources])
    suite.below(f"{what}: positions [pixel]", away, 1e-6)
    suite.below(f"{what}: fluxes", peak_error(found + beside, image), limit)


def check_written(suite, obs):
    ran, prefix = clean(suite, "points", obs, "--reproducible")
    if not ran:
        return
    with open(prefix + "-sources.txt") as file:
        text = file.read()
    suite.true("header", re.match(
        r"Format = Name, Type, Ra, Dec, I, SpectralIndex, LogarithmicSI, "
        r"ReferenceFrequency='\d+\.\d+', MajorAxis, MinorAxis, Orientation\n\n", text))
    suite.true("digits of positions", re.search(
        r"\ns0c0,POINT,\d\d:\d\d:\d\d\.\d{9},-\d\d\.\d\d\.\d\d\.\d{8},", text))
    sources = read_list(prefix + "-sources.txt")
    check_model(suite, "points", sources, prefix + "-model.fits")
    suite.true("the mean frequency by weight is in the band",
               all(1.3e9 < s["nu0"] < 1.45e9 for s in sources))
    suite.true("points have no spectra", all(not s["terms"] for s in sources))
    for ranks in RANKS[1:]:
        ran, other = clean(suite, f"points-{ranks}", obs, "--reproducible", ranks=ranks)
        if ran:
            with open(other + "-sources.txt") as file:
                suite.true(f"the same list on {ranks} ranks", file.read() == text)
    compare_predictions(suite, "points", obs, prefix, 3e-6)


def compare_predictions(suite, what, obs, prefix, limit):
    """Of the list, and of the model image to 1e-6. Pixels of a Gaussian of σ = 3 pixels and more are
    a continuous one to exp(-2 π² σ² / 4). The list's n is linear over a Gaussian: 2 π w σ² is 3e-3 at
    the longest w and the widest scale, where little is left of its visibility."""
    vis = []
    for model in (prefix + "-model.fits", prefix + "-sources.txt"):
        out = suite.path("of-model.uvfits")
        if not suite.ran(f"{what}: predict {os.path.basename(model)}",
                         tessera("predict", obs, "--model", model, "--accuracy", "1e-6",
                                 "--overwrite", "-o", out)):
            return
        vis.append(uvfits.read(out)[2])
    suite.below(f"{what}: predictions of the list and of the image",
                np.linalg.norm(vis[1] - vis[0]) / np.linalg.norm(vis[0]), limit)


def check_multiscale(suite, obs):
    ran, prefix = clean(suite, "scales", obs, "--multiscale", "--multiscale-scales", "0,16,32")
    if not ran:
        return
    sources = read_list(prefix + "-sources.txt")
    widths = sorted({s["shape"][0] for s in sources if s["type"] == "GAUSSIAN"})
    fwhm = [2 * np.sqrt(2 * np.log(2)) * 3 * a / 16 * SCALE for a in (16, 32)]
    suite.below("widths of the scales", np.abs(np.array(widths) - fwhm).max()
                if len(widths) == 2 else np.inf, 1e-9)
    flux = read_image(prefix + "-model.fits")[0].sum()
    suite.below("flux of the model", abs(sum(s["flux"] for s in sources) / flux - 1), 1e-5)
    compare_predictions(suite, "scales", obs, prefix, 3e-4)
    suite.true("names count scales", {s["name"].split("c")[0] for s in sources} == {"s0", "s1", "s2"})


def check_spectra(suite, obs):
    """Terms that were fitted to channels give these channels' models. Components at a pixel are one
    source, and a sum of power laws is none: of indices that differ by one it differs by up to
    ln(ratio of frequencies)² / 8, 1e-3 here."""
    for option, terms, log in (("--fit-spectral-pol", 3, False), ("--fit-spectral-log-pol", 2, True)):
        ran, prefix = clean(suite, "joined", obs, "--channels-out", 4, "--join-channels", option,
                            terms)
        if not ran:
            continue
        sources = read_list(prefix + "-sources.txt")
        suite.true(f"{option}: terms", all(s["log"] == log for s in sources if s["terms"])
                   and max(len(s["terms"]) for s in sources) == terms - 1)
        for c in range(4):
            model = f"{prefix}-{c:04d}-model.fits"
            mean = read_image(model)[1]["FREQMEAN"]
            check_model(suite, f"{option}, channel {c}", sources, model, mean,
                        1e-3 if log else 2e-7)


def check_outputs(suite, obs):
    """Channels and intervals have lists of their own, and Stokes I is listed."""
    for ranks in RANKS[:2]:
        teams = forced(teams=2) if ranks > 1 else []
        ran, prefix = clean(suite, f"single-{ranks}", obs, "--channels-out", 2, *teams, ranks=ranks)
        for c in range(2) if ran else ():
            check_model(suite, f"channel {c} by itself, {ranks} ranks",
                        read_list(f"{prefix}-{c:04d}-sources.txt"), f"{prefix}-{c:04d}-model.fits")
        if ran:
            check_model(suite, f"mean of these, {ranks} ranks", read_list(prefix + "-sources.txt"),
                        prefix + "-MFS-model.fits")
    for join in [], ["--join-polarizations"]:
        ran, prefix = clean(suite, "stokes", obs, "--stokes", "QI", "--intervals-out", 2, *join)
        for t in range(2) if ran else ():
            check_model(suite, f"interval {t} of Stokes I {' '.join(join)}",
                        read_list(f"{prefix}-t{t:04d}-sources.txt"),
                        f"{prefix}-t{t:04d}-I-model.fits")
    ran, prefix = clean(suite, "mean", obs, "--channels-out", 4, "--join-channels")
    if ran:
        sources = read_list(prefix + "-sources.txt")
        check_model(suite, "joined without a fit: the mean", sources, prefix + "-MFS-model.fits")
        headers = [read_image(f"{prefix}-{c:04d}-model.fits")[1] for c in range(4)]
        mean = np.average([h["FREQMEAN"] for h in headers], weights=[h["SUMWT"] for h in headers])
        suite.below("joined without a fit: the mean frequency by weight",
                    max(abs(s["nu0"] / mean - 1) for s in sources), 1e-12)
    ran, prefix = clean(suite, "shifted", obs, "--center", "04:00:30,-30:05:00", "--size", "243,250")
    if ran:
        check_model(suite, "another centre", read_list(prefix + "-sources.txt"), prefix + "-model.fits")


def check_first_models(suite, obs):
    """Components of a model that was there before are not listed."""
    ran, prefix = clean(suite, "goes-on", obs, "--niter", 60)
    if not ran:
        return
    first = read_image(prefix + "-model.fits")[0]
    result = tessera("image", obs, *CLEAN, "--continue", "--overwrite", "-o", prefix)
    if suite.ran("--continue", result):
        check_model(suite, "--continue", read_list(prefix + "-sources.txt"), prefix + "-model.fits",
                    beside=first)
        suite.true("--continue: a warning", "not in the list" in result.err)


def check_ranks(suite, obs):
    """Gaussians with spectra: the same list, bit by bit, on any number of ranks."""
    texts = set()
    for ranks in RANKS:
        ran, prefix = clean(suite, f"ranks-{ranks}", obs, "--multiscale", "--multiscale-scales", "0,16",
                            "--channels-out", 4, "--join-channels", "--fit-spectral-pol", 2,
                            "--reproducible", ranks=ranks)
        if ran:
            with open(prefix + "-sources.txt") as file:
                texts.add(file.read())
    suite.true("Gaussians with spectra: the same list on any number of ranks",
               len(texts) == 1 and re.search(r"GAUSSIAN.*,\[[-\d.e]+\],false,", texts.pop()))


def check_words_of_wsclean(suite, ms):
    """`tessera wsclean -save-source-list` is `--save-source-list`."""
    prefix = suite.path("words")
    result = tessera("wsclean", "-size", SIZE, SIZE, "-scale", f"{SCALE}asec", "-niter", 50, "-mgain",
                     ".8", "-no-update-model-required", "-save-source-list", "-name", prefix, ms)
    if suite.ran("tessera wsclean -save-source-list", result):
        check_model(suite, "tessera wsclean", read_list(prefix + "-sources.txt"), prefix + "-model.fits")


def check_refusals(suite, obs):
    for what, args, status in (
            ("without Stokes I", ["--stokes", "Q"], 2),
            ("kernels that are no Gaussians",
             ["--multiscale", "--multiscale-shape", "tapered-quadratic"], 2)):
        result = tessera("image", obs, *CLEAN, *args, "-o", suite.path("refused"))
        suite.ran(what, result, status)
        suite.true(f"{what}: a line that says so", len(result.errors()) == 1
                   and "--save-source-list" in result.errors()[0])
    with open(suite.path("kept-sources.txt"), "w") as file:
        file.write("kept\n")
    result = tessera("image", obs, *CLEAN, "-o", suite.path("kept"))
    suite.ran("a list that exists", result, 3)
    with open(suite.path("kept-sources.txt")) as file:
        suite.true("a list that exists is kept", file.read() == "kept\n")


# ---- WSClean ----

def have_wsclean(suite):
    if shutil.which("wsclean"):
        return True
    suite.skipped("what WSClean reads and writes: it is not installed")
    return False


def check_restored(suite):
    """WSClean restores tessera's lists on its residuals as tessera does."""
    for name in ("points", "scales"):
        prefix = suite.path(name)
        if not os.path.exists(prefix + "-sources.txt"):
            continue
        out = suite.path(f"{name}-restored.fits")
        result = run(["wsclean", "-restore-list", prefix + "-residual.fits", prefix + "-sources.txt",
                      out], 120)
        if suite.ran(f"wsclean -restore-list {name}", result):
            suite.below(f"{name}: restored by WSClean and by tessera",
                        peak_error(read_image(out)[0], read_image(prefix + "-image.fits")[0]), 1e-5)


def check_read(suite, ms):
    """tessera's predictions of WSClean's lists are the visibilities of WSClean's models, to half of its
    last digit: .5 ms of time are 7.5e-3″, which is 1e-3 of phase at 4500 λ."""
    copy = suite.path("peer.ms")
    for name, options in (("points", []), ("scales", ["-multiscale", "-multiscale-scales", "0,16,32"]),
                          ("joined", ["-channels-out", "4", "-join-channels", "-fit-spectral-pol",
                                      "2"])):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(ms, copy)
        prefix = suite.path("peer-" + name)
        result = run(["wsclean", "-name", prefix, "-size", str(SIZE), str(SIZE), "-scale",
                      f"{SCALE}asec", "-niter", "300", "-mgain", ".8", "-save-source-list",
                      "-use-wgridder", "-wgridder-accuracy", "1e-6", "-no-small-inversion", "-j",
                      "2", "-reorder", "-temp-dir", suite.work, *options, copy], 300)
        if not suite.ran(f"wsclean -save-source-list, {name}", result):
            continue
        wanted = column(suite, copy, "MODEL_DATA")
        result = tessera("predict", copy, "--model", prefix + "-sources.txt", "--column",
                         "MODEL_DATA", "--overwrite")
        if not suite.ran(f"predict WSClean's list, {name}", result) or wanted is None:
            continue
        found = column(suite, copy, "MODEL_DATA")
        suite.below(f"WSClean's list, {name}: L2 difference from WSClean's model",
                    np.linalg.norm(found - wanted) / np.linalg.norm(wanted), 1e-3)


# ---- damage ----

def check_hostile(suite, obs):
    good = FORMAT + "a,POINT,04:00:00,-30.00.00,1,[],true,,,,\n"
    cases = {
        "cut in a position": (good + "b,POINT,04:00:0", "line 4"),
        "cut in a bracket": (good + "b,POINT,04:00:00,-30.00.00,1,[0.1,", "line 4"),
        "not a number": (good + "b,POINT,04:00:00,-30.00.00,nan\n", "line 4, column 'I'"),
        "huge": (good + "b,POINT,04:00:00,-30.00.00,1e9999\n", "line 4, column 'I'"),
        "too large for the file": (good + "b,POINT,04:00:00,-30.00.00,1e300\n", "precision"),
        "a spectrum that explodes": (good + "b,POINT,04:00:00,-30.00.00,1,[1e9],true\n", "precision"),
        "below the horizon": (good + "b,POINT,16:00:00,30.00.00,1\n", "line 4"),
        "no sources": (FORMAT, "without sources"),
        "an unknown type": (good + "b,DISK,04:00:00,-30.00.00,1\n", "line 4, column 'Type'"),
        "no columns": ("Format = \n", "line 1"),
        "binary": (good.encode() + bytes(range(256)) * 30, ""),
        "bytes without NUL": (good.encode() + bytes(range(128, 256)) * 30, "line 4"),
    }
    for what, (text, said) in cases.items():
        path = suite.path("hostile.txt")
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        for command in (["predict", obs, "--model", path, "-o", suite.path("hostile.uvfits")],
                        ["simulate", "--layout", "vla-d", "--sky", path, "--ra", "60deg", "--dec=-30deg",
                         "--duration", "2min", "--integration", "60s", "--freq", "1.4GHz", "-o",
                         suite.path("hostile.uvfits")]):
            for ranks in (1, 2) if command[0] == "predict" and len(RANKS) > 1 else (1,):
                label = f"{what}: {command[0]}, {ranks} ranks"
                result = tessera(*command, ranks=ranks)
                suite.ran(label, result, 3)
                errors = result.errors()
                suite.true(f"{label}: one line with file and reason", len(errors) == 1
                           and "hostile.txt" in errors[0] and said in errors[0])
                suite.true(f"{label}: nothing is left", not [
                    f for f in os.listdir(suite.work) if f.startswith("hostile.uvfits")])
    with open(suite.path("end.txt"), "w") as file:
        file.write(good.rstrip("\n"))
    suite.ran("no newline at the end", tessera(
        "predict", obs, "--model", suite.path("end.txt"), "-o", suite.path("end.uvfits")))
    for what, options in (("are summed on the processor", ("--backend", "cuda")),
                          ("say where their sources are", ("--center", "60deg,-30deg"))):
        result = tessera("predict", obs, "--model", suite.path("end.txt"), *options, "-o", suite.path("not.uvfits"))
        suite.ran(f"lists {what}", result, 2)
        suite.true(f"lists {what}: one line, and no file", len(result.errors()) == 1 and
                   not os.path.exists(suite.path("not.uvfits")))


def main():
    suite = Suite("source_lists")
    sets = observations(suite)
    check_predictions(suite, sets["uvfits"])
    check_bad_rows(suite)
    check_simulated(suite)
    if "ms" in sets:
        check_columns(suite, sets["ms"])
    field, field_ms = make_field(suite)
    check_written(suite, field)
    check_multiscale(suite, field)
    check_spectra(suite, field)
    check_outputs(suite, field)
    check_first_models(suite, field)
    check_ranks(suite, field)
    check_refusals(suite, field)
    if field_ms:
        check_words_of_wsclean(suite, field_ms)
    if have_wsclean(suite):
        check_restored(suite)
        if field_ms:
            check_read(suite, field_ms)
    check_hostile(suite, sets["uvfits"])
    suite.finish()


if __name__ == "__main__":
    main()
