#!/usr/bin/env python3
"""Bad input gets one line from one rank, the right exit status, and leaves nothing under
a final name; on one rank and on three; and nothing hangs.

Also: header bytes changed at random never end the program by a signal.
"""
import bz2
import gzip
import hashlib
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..",
                                "oracle"))
from e2e import (ASEC, BIN, FULL, ROOT, SLOWER, Suite, fits_module, forced, have_ms,  # noqa: E402
                 mpi_environment, mpiexec, run, tessera, unsignalled_environment, write_sky)
import uvfits  # noqa: E402

IMAGE = ["--size", "64", "--scale", "60asec"]
RANKS = (1, 3) if mpiexec() else (1,)
TIMEOUT = 60
# What may stay behind after a failure: the log, which says why.
ALLOWED = (".log",)


class Faults:
    """Runs bad cases; each must fail cleanly."""

    def __init__(self, suite):
        self.suite = suite
        self.valid = suite.path("valid.uvfits")
        rng = np.random.default_rng(1)
        self.shape = (480, 3, 2)
        self.vis = rng.normal(size=self.shape) + 1j * rng.normal(size=self.shape)
        self.uvw = uvfits.random_tracks(480, 400.0)
        self.freq = 1.0e9 + 1e7 * np.arange(3)
        self.write("valid")

    def write(self, name, vis=None, weight=1.0, uvw=None, **options):
        path = self.suite.path(name + ".uvfits")
        uvfits.write(path, self.uvw if uvw is None else uvw, self.freq,
                     self.vis if vis is None else vis, weight, **options)
        return path

    def bad(self, what, status, *args, says="", out=None):
        """Run with -o in an empty folder (or `out`); check status, line, leftovers."""
        for ranks in RANKS:
            folder = tempfile.mkdtemp(dir=self.suite.work)
            target = out or os.path.join(folder, "x")
            if args[0] in ("predict", "simulate") and not out:
                target += ".uvfits"
            result = tessera(*args, "-o", target, ranks=ranks, timeout=TIMEOUT)
            self.judge(f"{what}, {ranks} rank{'s' * (ranks > 1)}", result, status, says)
            left = [f for f in os.listdir(folder) if not f.endswith(ALLOWED)]
            self.suite.equal(f"{what}: left behind", left, [])
            shutil.rmtree(folder)

    def judge(self, what, result, status, says=""):
        self.suite.ran(what, result, status)
        lines = result.errors()
        if not self.suite.equal(f"{what}: error lines", len(lines), 1):
            print(result.err[-1500:])
        elif says:
            self.suite.true(f"{what}: says {says!r}: {lines[0]}",
                            says.lower() in lines[0].lower())


def replace_card(path, out, key, card):
    """Copy a FITS file with one card of its primary header replaced."""
    with open(path, "rb") as f:
        raw = bytearray(f.read())
    at = 0
    while raw[at:at + 8].decode().strip() != key:
        at += 80
    raw[at:at + 80] = card.ljust(80).encode()
    with open(out, "wb") as f:
        f.write(raw)
    return out


def check_options(faults):
    valid, bad = faults.valid, faults.bad
    bad("size 0", 2, "image", valid, "--size", "0", "--scale", "60asec")
    bad("negative size", 2, "image", valid, "--size=-64", "--scale", "60asec")
    bad("negative scale", 2, "image", valid, "--size", "64", "--scale=-1asec")
    bad("zero scale", 2, "image", valid, "--size", "64", "--scale", "0asec")
    bad("scale not a number", 2, "image", valid, "--size", "64", "--scale", "nanasec")
    bad("no scale", 2, "image", valid, "--size", "64")
    bad("accuracy out of range", 2, "image", valid, *IMAGE, "--accuracy", "1e-20")
    bad("unknown option", 2, "image", valid, *IMAGE, "--brightness", "3")
    bad("unknown Stokes", 2, "image", valid, *IMAGE, "--stokes", "K")
    bad("unknown weighting", 2, "image", valid, *IMAGE, "--weight", "heavy")
    bad("no observation", 2, "image", *IMAGE)
    config = faults.suite.path("bad.conf")
    with open(config, "w") as f:
        f.write("size = 64\nscale = 60asec\nbrightnes = 3\n")
    bad("unknown key in a parameter file", 2, "image", valid, "--config", config,
        says="brightnes")
    bad("checkpoints in a file", 3, "image", valid, *IMAGE, "--checkpoint", config,
        says="needs a folder")
    bad("unknown key of TESS_FORCE", 2, "image", valid, *IMAGE, *forced(pages=2),
        says="there is no 'pages' (see docs/design/forced.md)")
    for ranks in RANKS:
        result = tessera("imagine", ranks=ranks, timeout=TIMEOUT)
        faults.judge(f"unknown subcommand, {ranks} ranks", result, 2)
        result = tessera("image", valid, *IMAGE, ranks=ranks, timeout=TIMEOUT)
        faults.judge(f"no -o, {ranks} ranks", result, 2)


def check_files(faults):
    valid, bad, path = faults.valid, faults.bad, faults.suite.path
    raw = open(valid, "rb").read()
    cut = {"empty": 0, "header": 1500, "first-rows": 2880 * 3 + 700,
           "rows": len(raw) // 2}
    bad("missing file", 3, "image", path("absent.uvfits"), *IMAGE, says="absent.uvfits")
    for name, size in cut.items():
        with open(path(name), "wb") as f:
            f.write(raw[:size])
        bad(f"truncated ({name})", 3, "image", path(name), *IMAGE, says=name)
    with open(path("text"), "w") as f:
        f.write("This is not FITS.\n" * 400)
    bad("not FITS", 3, "image", path("text"), *IMAGE, says="text")
    with open(path("noise"), "wb") as f:
        f.write(np.random.default_rng(0).bytes(20000))
    bad("random bytes", 3, "image", path("noise"), *IMAGE, says="noise")
    model = uvfits.write_model(path("plain.fits"), np.ones((8, 8)), ASEC)
    bad("FITS without groups", 3, "image", model, *IMAGE, says="plain.fits")
    bad("a folder", 3, "image", faults.suite.work, *IMAGE)
    for what, key, card in [
            ("zero rows", "GCOUNT", "GCOUNT  =                    0"),
            ("negative rows", "GCOUNT", "GCOUNT  =                   -5"),
            ("too many rows", "GCOUNT", "GCOUNT  =           9999999999"),
            ("huge axis", "NAXIS4", "NAXIS4  =           2147483647"),
            ("zero frequency", "CRVAL4", "CRVAL4  =                  0.0"),
            ("negative frequency", "CRVAL4", "CRVAL4  =               -1.0E9"),
            ("frequency not a number", "CRVAL4", "CRVAL4  = 'NaN     '"),
            ("infinite frequency", "CRVAL4", "CRVAL4  =              1.0E999"),
            ("unknown Stokes axis", "CRVAL3", "CRVAL3  =                 77.0"),
            ("no FREQ axis", "CTYPE4", "CTYPE4  = 'COLOUR  '"),
            ("no BASELINE", "PTYPE6", "PTYPE6  = 'NOTHING '")]:
        out = replace_card(valid, path("card.uvfits"), key, card)
        bad(what, 3, "image", out, *IMAGE, says="card.uvfits")


def check_hostile(faults):
    """Headers that ended the program inside CFITSIO."""
    folder = os.path.join(os.environ.get("TESS_TEST_DATA") or
                          os.path.join(ROOT, "..", "shared"), "data", "hostile")
    if not os.path.isdir(folder):
        faults.suite.skipped("no reference data (data/hostile); set TESS_TEST_DATA")
        return
    bad, suite = faults.bad, faults.suite
    blank, tiles = (os.path.join(folder, f) for f in ("blank-uvfits.fits",
                                                      "ztile-fpe.fits"))
    for path in (blank, tiles):
        name = os.path.basename(path)
        model = uvfits.write_model(suite.path("ones.fits"), np.ones((8, 8)), 60 * ASEC)
        bad(f"image of {name}", 3, "image", path, *IMAGE, says=name)
        bad(f"predict for {name}", 3, "predict", path, "--model", model, says=name)
        for ranks in RANKS:
            for command in (["info", path], ["plan", path, *IMAGE],
                            ["compare", path, path]):
                result = tessera(*command, ranks=ranks, timeout=TIMEOUT)
                faults.judge(f"{command[0]} of {name}, {ranks} ranks", result, 3, name)
        bad(f"{name} as a model", 3, "predict", faults.valid, "--model", path, says=name)
        bad(f"{name} as convolution functions", 3, "image", faults.valid, *IMAGE, "--w",
            "projection", "--gcf", path, says=name)
    # the integer that stands for no value, in data that have none: of no importance
    out = replace_card(faults.valid, suite.path("blank.uvfits"), "OBJECT",
                       "BLANK   = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'")
    suite.ran("BLANK is a text beside floating point", tessera("info", out))


def check_contents(faults):
    bad, write = faults.bad, faults.write
    bad("all flagged", 3, "image", write("flagged", weight=-1.0), *IMAGE, says="flagged")
    bad("all flagged, in a cube", 3, "image", write("flagged", weight=-1.0), *IMAGE,
        "--channels-out", "2", says="flagged")
    bad("all weights zero", 3, "image", write("zero", weight=0.0), *IMAGE)
    nan = np.full(faults.shape, np.nan + 1j * np.nan)
    bad("all data NaN", 3, "image", write("nan", vis=nan), *IMAGE)
    bad("all weights Inf", 3, "image", write("inf", weight=np.inf), *IMAGE)
    bad("all uvw NaN", 3, "image", write("uvw", uvw=faults.uvw * np.nan), *IMAGE)
    bad("all uvw Inf", 3, "image", write("uvwinf", uvw=faults.uvw * 0 + np.inf), *IMAGE)
    bad("all uvw absurd", 3, "image", write("absurd", uvw=faults.uvw * 0 + 1e37), *IMAGE,
        says="not finite")
    uvw = faults.uvw.copy()
    uvw[3] = 1e37
    model = uvfits.write_model(faults.suite.path("absurd.fits"), np.ones((64, 64)), 60 * ASEC)
    for command in (["predict", write("one", uvw=uvw), "--model", model, "-o",
                     faults.suite.path("one-predicted.uvfits")],
                    ["image", faults.suite.path("one.uvfits"), *IMAGE, "-o",
                     faults.suite.path("one-image")]):
        faults.suite.ran(f"{command[0]} with one absurd row", tessera(*command))
    bad("all baselines too long", 2, "image", faults.valid, "--size", "16", "--scale",
        "5deg")
    bad("image larger than the half-sky", 2, "image", faults.valid, "--size", "512",
        "--scale", "1deg")
    other = write("elsewhere", ra_deg=75.0)
    bad("differing phase centres", 3, "image", faults.valid, other, *IMAGE,
        says="--center")
    bad("channels out of range", 2, "image", faults.valid, *IMAGE, "--channels", "7:9")
    bad("channels without an end", 2, "image", faults.valid, *IMAGE, "--channels", "70:",
        says="--channels 70: do not exist")
    bad("intervals out of range", 2, "image", faults.valid, *IMAGE, "--intervals", "90:",
        says="--intervals 90: do not exist; there ")
    bad("unknown field", 2, "image", faults.valid, *IMAGE, "--field", "Betelgeuse",
        says="Betelgeuse")
    bad("unknown field number", 2, "image", faults.valid, *IMAGE, "--field", "3")
    bad("unknown window", 2, "image", faults.valid, *IMAGE, "--spw", "5")
    bad("polarisation that is not there", 2, "image", faults.valid, *IMAGE, "--stokes",
        "RR", says="--stokes")


def check_resources(faults):
    bad = faults.bad
    bad("a million pixels a side", 4, "image", faults.valid, "--size", "1000000",
        "--scale", "0.1asec", says="B")
    bad("too little memory", 4, "image", faults.valid, "--size", "2048", "--scale",
        "1asec", "--memory", "1MB")


def check_models(faults):
    path, bad = faults.suite.path, faults.bad
    ones = np.ones((32, 32))
    away = uvfits.write_model(path("away.fits"), ones, 60 * ASEC, ra_deg=80.0)
    fine = uvfits.write_model(path("fine.fits"), ones, 7 * ASEC)
    for what, model, image in [("of another pointing", away, True),
                               ("of another pixel scale", fine, True),
                               ("that is missing", path("no.fits"), True),
                               ("that is not an image", faults.valid, True)]:
        if model != fine:
            bad(f"predict with a model {what}", 3, "predict", faults.valid, "--model",
                model)
        if image:
            bad(f"subtract a model {what}", 3, "image", faults.valid, "--size", "32",
                "--scale", "60asec", "--subtract", model)
    packed = path("packed.fits")  # as a table, which CFITSIO calls an image
    hdus = fits_module()
    hdus.HDUList([hdus.PrimaryHDU(), hdus.CompImageHDU(
        ones.astype("f4"), hdus.getheader(fine))]).writeto(packed)
    bad("predict with a compressed model", 3, "predict", faults.valid, "--model", packed,
        says="funpack")
    faults.judge("compare with a compressed image", tessera("compare", packed, fine), 3,
                 "funpack")
    oblong = path("oblong.fits")
    with fits_module().open(path("fine.fits")) as hdus:
        hdus[0].header["CDELT2"] *= 2
        hdus.writeto(oblong)
    bad("predict with oblong pixels", 3, "predict", faults.valid, "--model", oblong)
    bright = path("bright.fits")
    with fits_module().open(uvfits.write_model(path("dim.fits"), ones, 60 * ASEC)) as hdus:
        hdus[0].data = 1e300 * hdus[0].data.astype("f8")
        hdus.writeto(bright)
    bad("predict with pixels beyond single precision", 3, "predict", faults.valid,
        "--model", bright, says="1.02e+303 Jy")
    good = uvfits.write_model(path("good.fits"), ones, 60 * ASEC)
    for ranks in RANKS:
        result = tessera("predict", faults.valid, "--model", good, "--column",
                         "MODEL_DATA", ranks=ranks, timeout=TIMEOUT)
        faults.judge(f"predict to a column of UVFITS, {ranks} ranks", result,
                     result.status if result.status in (2, 3) else 3)


def check_pipes(faults):
    """A named pipe that nobody writes to is not waited for."""
    valid, bad, pipe = faults.valid, faults.bad, faults.suite.path("pipe")
    os.mkfifo(pipe)
    model = uvfits.write_model(faults.suite.path("good.fits"), np.ones((64, 64)), 60 * ASEC)
    kernels = ["--w", "projection", "--gcf", pipe]
    for what, command in [
            ("an observation", ["image", pipe, *IMAGE]),
            ("a model", ["predict", valid, "--model", pipe]),
            ("a model to subtract", ["image", valid, *IMAGE, "--subtract", pipe]),
            ("kernels", ["predict", valid, "--model", model, *kernels]),
            ("a sky model", simulation(pipe, "x")[:-2])]:
        bad(f"a named pipe as {what}", 3, *command, says="regular file")
    for command in (["info", pipe], ["compare", pipe, model]):
        faults.judge(f"{command[0]} of a named pipe", tessera(*command, timeout=TIMEOUT), 3,
                     "regular file")


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def tree_digest(folder):
    """What all files of a folder hold, by their names; locks aside, which say who reads."""
    return {os.path.relpath(os.path.join(path, f), folder): digest(os.path.join(path, f))
            for path, _, files in os.walk(folder) for f in files if f != "table.lock"}


def check_outputs(faults):
    suite, valid = faults.suite, faults.valid
    folder = suite.path("kept")
    os.makedirs(folder)
    target = os.path.join(folder, "x")
    suite.ran("image once", tessera("image", valid, *IMAGE, "-o", target))
    files = {f: digest(os.path.join(folder, f)) for f in os.listdir(folder)
             if f.endswith(".fits")}
    for ranks in RANKS:
        result = tessera("image", valid, *IMAGE, "-o", target, ranks=ranks,
                         timeout=TIMEOUT)
        faults.judge(f"existing output, {ranks} ranks", result, 3, "--overwrite")
        suite.equal("existing files are untouched",
                    {f: digest(os.path.join(folder, f)) for f in files}, files)
    suite.ran("--overwrite", tessera("image", valid, *IMAGE, "--overwrite", "-o", target))
    faults.bad("output folder that is not there", 3, "image", valid, *IMAGE,
               out=suite.path("no", "such", "x"), says="no/such")
    faults.bad("output below a file", 3, "image", valid, *IMAGE, out=valid + "/x")


def state_of(path):
    """What a file, or a folder, holds, and when it was last written."""
    inner = tree_digest(path) if os.path.isdir(path) else digest(path)
    return inner, os.stat(path).st_mtime_ns


def simulation(sky, out):
    """The arguments that make a small observation."""
    return ["simulate", "--layout", "vla-d", "--sky", sky, "--ra", "60deg", "--dec=-30deg",
            "--start", "2026-01-01T20:00:00", "--duration", "4min", "--integration",
            "2min", "--freq", "1.4GHz", "--chan-width", "1MHz", "--channels", "2", "--pol",
            "XX,YY", "-o", out]


def check_existing(faults):
    """predict and simulate keep what is there unless --overwrite is given."""
    suite, path = faults.suite, faults.suite.path
    sky = write_sky(path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    model = uvfits.write_model(path("good.fits"), np.ones((64, 64)), 60 * ASEC)
    predicted, simulated, ms = (path("there" + end)
                                for end in ("-p.uvfits", "-s.uvfits", ".ms"))
    cases = [("predict", ["predict", faults.valid, "--model", model, "-o", predicted],
              predicted),
             ("simulate", simulation(sky, simulated), simulated)]
    if have_ms():
        cases += [("simulate to an MS", simulation(sky, ms), ms),
                  ("predict to a column", ["predict", ms, "--model", model, "--column",
                                           "MODEL_DATA"], ms)]
    for what, command, made in cases:
        suite.ran(f"{what}, once", tessera(*command, timeout=TIMEOUT))
        before, around = state_of(made), sorted(os.listdir(suite.work))
        for ranks in RANKS:
            label = f"existing output, {what}, {ranks} ranks"
            result = tessera(*command, ranks=ranks, timeout=TIMEOUT)
            faults.judge(label, result, 3, "--overwrite")
            suite.true(f"{label}: untouched", state_of(made) == before)
            suite.equal(f"{label}: beside it", sorted(os.listdir(suite.work)), around)
        suite.ran(f"{what}, --overwrite", tessera(*command, "--overwrite",
                                                  timeout=TIMEOUT))


NOBODY = 65534


class Unprivileged:
    """How to run tessera without the rights of root: as who, and in which environment.
    `why` says why not, where that is not possible: nobody may not reach the program."""

    def __init__(self, folder, observation):
        """`folder` is made nobody's, who must be able to read `observation`."""
        self.user, self.env, self.why = None, unsignalled_environment(), None
        if os.geteuid() != 0:
            return
        self.user = NOBODY
        home = os.path.join(folder, "home")
        os.makedirs(home)
        for path in (folder, home):
            os.chown(path, NOBODY, NOBODY)
        self.env.update(HOME=home, TMPDIR=home)
        try:
            result = run([BIN, "info", observation], TIMEOUT, env=self.env,
                         user=self.user)
        except OSError as error:
            self.why = str(error)
            return
        if result.status != 0:
            self.why = (result.errors() or [f"exit status {result.status}"])[0]


def check_own_files(faults):
    """No file beside the images that somebody else made is replaced, appended to or
    followed through a link, and a run that is refused leaves the log as it is."""
    suite, valid = faults.suite, faults.valid
    for ranks in RANKS:
        for name, text, link, says in [
                ("x.conf", "my notes\n", None, "--overwrite"),
                ("x.log", "my notes\n", None, "--overwrite"),
                ("x.log", None, "notes", "symbolic link"),
                ("x.log", None, "nowhere", "symbolic link"),
                ("x-psf.fits", None, "nowhere", "--overwrite"),
                ("p.json", "[1, 2]\n", None, "--overwrite"),
                ("t.json", "[1, 2]\n", None, "--overwrite"),
                ("x-dirty.fits", "my image\n", None, "--overwrite")]:
            folder = tempfile.mkdtemp(dir=suite.work)
            inside = {"notes": "mine\n", "mine.log": "mine\n"}
            if link:
                os.symlink(link, os.path.join(folder, name))
            else:
                inside[name] = text
            for other, words in inside.items():
                with open(os.path.join(folder, other), "w") as f:
                    f.write(words)
            entries = sorted(os.listdir(folder))
            what = f"{name} that is " + ("a link" if link else "of another")
            result = tessera("image", valid, *IMAGE, "-o", os.path.join(folder, "x"),
                             "--profile", os.path.join(folder, "p.json"), "--trace",
                             os.path.join(folder, "t.json"), ranks=ranks, timeout=TIMEOUT)
            faults.judge(f"{what}, {ranks} ranks", result, 3, says)
            suite.equal(f"{what}: files", sorted(os.listdir(folder)), entries)
            for other, words in inside.items():
                with open(os.path.join(folder, other)) as f:
                    suite.equal(f"{what}: {other}", f.read(), words)
    # the names of temporary files that versions before had
    folder = tempfile.mkdtemp(dir=suite.work)
    with open(os.path.join(folder, "notes"), "w") as f:
        f.write("mine\n")
    result = run(["sh", "-c", f"cd {folder}; for f in p.json t.json; do "
                  'ln -s notes $f.tmp$$; done; exec "$@"', "sh", BIN, "image", valid,
                  *IMAGE, "-o", "x", "--profile", "p.json", "--trace", "t.json"], TIMEOUT)
    suite.ran("links of temporary names", result)
    with open(os.path.join(folder, "notes")) as f:
        suite.equal("links of temporary names: where they lead", f.read(), "mine\n")
    # its own log it goes on with, unless it is refused
    log = os.path.join(folder, "x.log")
    size = os.path.getsize(log)
    for status, options in ((3, []), (2, ["--overwrite", "--spw", "5"]), (0, ["--overwrite"])):
        result = tessera("image", valid, *IMAGE, "-o", os.path.join(folder, "x"), *options)
        suite.ran(f"its own log, status {status}", result, status)
        suite.equal(f"its own log grows, status {status}", os.path.getsize(log) > size,
                    status == 0)


def check_killed(faults):
    """What a run that was killed has left goes with the next run of that name."""
    suite = faults.suite
    rng = np.random.default_rng(2)
    sky = write_sky(suite.path("many.csv"),
                    [dict(ra=f"{60 + d}deg", dec="-30deg", flux_jy=1)
                     for d in rng.uniform(-0.1, 0.1, 3000)])
    few = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    for ending in (".uvfits", ".ms") if have_ms() else (".uvfits",):
        folder = tempfile.mkdtemp(dir=suite.work)
        target = os.path.join(folder, "x" + ending)
        slow = simulation(sky, target)
        slow[slow.index("4min")], slow[slow.index("2min")] = "8h", "10s"
        for name in (f"x{ending}.1234.0.tmp", f".x{ending}.tmp.1234"):
            with open(os.path.join(folder, name), "w") as f:
                f.write("mine\n")
        theirs = sorted(os.listdir(folder))
        stop_job(suite, f"SIGKILL, {ending[1:]}", [BIN, *slow, "--threads", "1"], 1,
                 signal.SIGKILL, lambda: len(os.listdir(folder)) > len(theirs))
        suite.true(f"SIGKILL, {ending[1:]}: leaves something",
                   len(os.listdir(folder)) > len(theirs))
        suite.ran(f"after SIGKILL, {ending[1:]}",
                  tessera(*simulation(few, target), ranks=RANKS[-1]))
        suite.equal(f"after SIGKILL, {ending[1:]}: files", sorted(os.listdir(folder)),
                    sorted(theirs + ["x" + ending]))


def check_late_signals(faults):
    """A signal that comes when the outputs are complete does not make a failure of them."""
    suite = faults.suite
    for attempt in range(6):
        folder = tempfile.mkdtemp(dir=suite.work)
        last = os.path.join(folder, "x-psf.fits")
        child = subprocess.Popen([BIN, "image", faults.valid, *IMAGE, "-o",
                                  os.path.join(folder, "x")], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, env=mpi_environment(),
                                 preexec_fn=lambda: signal.signal(signal.SIGINT,
                                                                  signal.SIG_DFL))
        while child.poll() is None and not os.path.exists(last):
            pass
        child.send_signal(signal.SIGINT if attempt % 2 else signal.SIGTERM)
        suite.equal(f"late signal, attempt {attempt}: status", child.wait(TIMEOUT), 0)
        suite.equal(f"late signal, attempt {attempt}: files", sorted(os.listdir(folder)),
                    ["x-dirty.fits", "x-psf.fits", "x.conf", "x.log"])


def check_escapes(faults):
    """What a header says reaches the terminal without its escapes, and JSON with them
    spelt out."""
    suite = faults.suite
    text = "\x1b[31mRED\x07"
    odd = replace_card(faults.valid, suite.path("odd.uvfits"), "OBJECT",
                       f"OBJECT  = '{text}'")
    results = [tessera("info", odd), tessera("info", odd, "--json")]
    models = [uvfits.write_model(suite.path(f"{name}.fits"), np.ones((8, 8)), ASEC)
              for name in "ab"]
    odd_model = replace_card(models[0], suite.path("odd.fits"), "BUNIT",
                             f"BUNIT   = '{text}'")
    results += [tessera("compare", odd_model, models[1]), tessera("info", "no\x1b[31m.ms"),
                tessera("image", odd, *IMAGE, "-o", suite.path("odd"))]
    for result in results:
        suite.true(f"no control characters in {(result.out + result.err)[:300]!r}",
                   all(c >= " " or c == "\n" for c in result.out + result.err))
    suite.true("the rest of the text is there", all("[31m" in r.out + r.err
                                                    for r in results[:4]))


def check_cached_pipe(faults):
    """A named pipe in the cache is not waited for."""
    suite, cache = faults.suite, faults.suite.path("cache")
    env = dict(mpi_environment(), TESS_CACHE_DIR=cache)
    command = ["image", faults.valid, *IMAGE, "--w", "projection", "--accuracy", "1e-2",
               "--overwrite", "-o", suite.path("cached")]
    suite.ran("tables are kept", tessera(*command, env=env))
    tables = os.listdir(cache)
    suite.true("tables are kept: files", any(t.endswith(".table") for t in tables))
    for name in tables:
        os.remove(os.path.join(cache, name))
        os.mkfifo(os.path.join(cache, name))
    suite.ran("pipes in the cache", tessera(*command, env=env, timeout=TIMEOUT))


def check_permissions(faults):
    """Folders that may not be written to, by a user for whom that means something."""
    suite = faults.suite
    # Not below the work folder, which others may not be let into.
    folder = tempfile.mkdtemp(prefix="tessera-test-")
    try:
        os.chmod(folder, 0o755)
        valid = shutil.copy(faults.valid, folder)
        model = uvfits.write_model(os.path.join(folder, "good.fits"), np.ones((64, 64)),
                                   60 * ASEC)
        sky = write_sky(os.path.join(folder, "sky.csv"),
                        [dict(ra="60deg", dec="-30deg", flux_jy=1)])
        ms = os.path.join(folder, "set.ms") if have_ms() else None
        if ms:
            suite.ran("a set", tessera(*simulation(sky, ms)))
        other = Unprivileged(folder, valid)
        if other.why:
            suite.skipped(f"folders without write permission: not as nobody: {other.why}")
            return
        locked = os.path.join(folder, "locked")
        os.makedirs(locked)
        os.chmod(locked, 0o555)
        if ms:
            # files that may be written to in folders that may not: casacore fails late
            for path, _, files in os.walk(ms):
                for name in files if os.geteuid() == 0 else ():
                    os.chown(os.path.join(path, name), NOBODY, NOBODY)
                os.chmod(path, 0o555)
        target = os.path.join(locked, "x")
        cases = [("image", ["image", valid, *IMAGE, "-o", target]),
                 ("predict", ["predict", valid, "--model", model, "-o",
                              target + ".uvfits"]),
                 ("simulate", simulation(sky, target + ".uvfits"))]
        if ms:
            cases += [("simulate to an MS", simulation(sky, target + ".ms")),
                      ("predict to a column", ["predict", ms, "--model", model,
                                               "--column", "MODEL_DATA"])]
        before = tree_digest(ms) if ms else None
        for ranks in RANKS:
            for what, command in cases:
                what = f"no write permission, {what}, {ranks} ranks"
                result = tessera(*command, ranks=ranks, timeout=TIMEOUT, env=other.env,
                                 user=other.user)
                faults.judge(what, result, 3)
                suite.equal(f"{what}: left behind", os.listdir(locked), [])
            if ms:
                suite.true(f"the read-only MS is as it was, {ranks} ranks",
                           tree_digest(ms) == before)
    finally:
        for path, _, _ in os.walk(folder):
            os.chmod(path, 0o755)
        shutil.rmtree(folder)


def check_names(faults):
    """Every name is checked before anything is made, and no run replaces its input."""
    suite, valid = faults.suite, faults.valid
    four = faults.write("four", vis=np.concatenate([faults.vis] * 2, 2),
                        weight=np.where(np.arange(4) < 3, 1.0, 2.0))
    for ranks in RANKS:
        for taken, make in (("x-Q-psf.fits", lambda p: open(p, "w").close()),
                            ("x-I-psf.fits", lambda p: open(p, "w").close()),
                            ("x.conf", os.makedirs)):
            folder = tempfile.mkdtemp(dir=suite.work)
            make(os.path.join(folder, taken))
            result = tessera("image", four, *IMAGE, "--stokes", "IQUV", "-o",
                             os.path.join(folder, "x"), ranks=ranks, timeout=TIMEOUT)
            faults.judge(f"existing {taken}, {ranks} ranks", result, 3, taken)
            left = [f for f in os.listdir(folder) if not f.endswith(ALLOWED)]
            suite.equal(f"existing {taken}: left behind", left, [taken])
        model = uvfits.write_model(suite.path("m-dirty.fits"), np.ones((64, 64)), 60 * ASEC)
        named = suite.path("m-dirty.png")  # an observation of an image's name
        shutil.copy(valid, named)
        name, link = suite.path("m"), suite.path("link.uvfits")
        if not os.path.exists(link):
            os.link(valid, link)
        for what, command in [
                ("predict over the observation", ["predict", valid, "--model", model, "-o",
                                                  link]),
                ("predict over the model", ["predict", valid, "--model", model, "-o",
                                            model]),
                ("profile over the model", ["predict", valid, "--model", model, "-o",
                                            suite.path("p.uvfits"), "--profile", model]),
                ("residual over the model", ["image", valid, *IMAGE, "--subtract", model,
                                             "-o", name]),
                ("preview over the observation", ["image", named, *IMAGE, "--preview",
                                                  "-o", name]),
                ("profile over the observation", ["image", valid, *IMAGE, "-o", name,
                                                  "--profile", link]),
                ("plan's profile over the observation", ["plan", valid, *IMAGE,
                                                         "--profile", link]),
                ("kernels over the observation", ["image", valid, *IMAGE, "-o", name, "--w",
                                                  "projection", "--write-gcf", link]),
                ("kernels over the model", ["predict", valid, "--model", model, "-o",
                                            suite.path("p.uvfits"), "--w", "projection",
                                            "--write-gcf", model])]:
            before = digest(valid), digest(model), digest(named)
            result = tessera(*command, "--overwrite", ranks=ranks, timeout=TIMEOUT)
            faults.judge(f"{what}, {ranks} ranks", result, 3, "another output name")
            suite.equal(f"{what}: inputs", (digest(valid), digest(model), digest(named)),
                        before)


def check_long_names(faults):
    """Names that are too long for a file that is being written are refused before the work."""
    suite, valid = faults.suite, faults.valid
    model = uvfits.write_model(suite.path("long.fits"), np.ones((64, 64)), 60 * ASEC)
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    folder = tempfile.mkdtemp(dir=suite.work)
    longest = os.path.join(folder, "x" * 240)
    for what, command in [("image", ["image", valid, *IMAGE, "-o", longest[:-10]]),
                          ("predict", ["predict", valid, "--model", model, "-o", longest]),
                          ("simulate", simulation(sky, longest + ".uvfits"))]:
        for ranks in RANKS if what == "image" else (1,):
            result = tessera(*command, ranks=ranks, timeout=TIMEOUT)
            faults.judge(f"{what} of a long name, {ranks} ranks", result, 3, "is too long")
            suite.true(f"{what} of a long name: no work was done",
                       not re.search("plan: |wrote", result.err))
            suite.equal(f"{what} of a long name: left", os.listdir(folder), [])


def check_packed(faults):
    """Compressed files are refused with the program that unpacks them."""
    model = uvfits.write_model(faults.suite.path("unpacked.fits"), np.ones((64, 64)), 60 * ASEC)
    for module, program in ((bz2, "bunzip2"), (gzip, "gunzip"), (lzma, "unxz")):
        packed = []
        for path in (faults.valid, model):
            packed.append(f"{path}.{program}")
            with open(path, "rb") as plain, module.open(packed[-1], "wb") as to:
                shutil.copyfileobj(plain, to)
        faults.judge(f"an observation for {program}", tessera("info", packed[0]), 3,
                     f"run {program} on it")
        faults.bad(f"a model for {program}", 3, "predict", faults.valid, "--model", packed[1],
                   says=f"run {program} on it")


def check_stack(faults):
    """A stack that is too small is named; one that no thread could get is not asked for."""
    suite = faults.suite
    if SLOWER > 1:  # sanitizers need stacks of their own
        return
    for limit, status in ((100, 4), (900, 4), (1024, 0), (2 * 10 ** 12, 0)):
        limited = ["sh", "-c", f'ulimit -s {limit} 2>/dev/null || exit 77; exec "$@"', "sh", BIN]
        result = run([*limited, "image", faults.valid, *IMAGE, "--threads", "2", "--overwrite", "-o",
                      suite.path("stack")], TIMEOUT, env=mpi_environment())
        if result.status == 77:
            suite.skipped(f"ulimit -s {limit}: not allowed")
        elif status:
            faults.judge(f"ulimit -s {limit}", result, status, "(ulimit -s)")
        else:
            suite.ran(f"ulimit -s {limit}", result)


def check_twice(faults):
    """No file of a run replaces another, and a plan writes no kernels."""
    suite, valid, bad = faults.suite, faults.valid, faults.bad
    model = uvfits.write_model(suite.path("good.fits"), np.ones((64, 64)), 60 * ASEC)
    kernels = ["--w", "projection", "--accuracy", "1e-2", "--write-gcf"]
    folder = suite.path("beside")
    os.makedirs(folder)
    target, json = os.path.join(folder, "x"), os.path.join(folder, "x.json")
    image = ["image", valid, *IMAGE]
    predict = ["predict", valid, "--model", model]
    for what, out, command in [
            ("profile and trace", target, image + ["--profile", json, "--trace",
                                                   f"{folder}/./x.json"]),
            ("profile and image", target, image + ["--profile", target + "-dirty.fits"]),
            ("profile and log", target, image + ["--profile", target + ".log"]),
            ("trace and parameters", target, image + ["--trace", target + ".conf"]),
            ("kernels and PSF", target, image + kernels + [target + "-psf.fits"]),
            ("kernels and profile", target, image + kernels + [json, "--profile", json]),
            ("profile and trace of predict", json, predict + ["--profile", target,
                                                              "--trace", target]),
            ("kernels and output of predict", json, predict + kernels + [json])]:
        bad(f"one name for {what}", 3, *command, out=out, says="twice")
        suite.equal(f"one name for {what}: beside it",
                    [f for f in os.listdir(folder) if not f.endswith(ALLOWED)], [])
    there = shutil.copy(model, json)
    bad("kernels that exist", 3, *image, *kernels, there, says="--overwrite", out=target)
    suite.equal("kernels that exist are untouched", digest(there), digest(model))
    for ranks in RANKS:
        suite.ran("plan", tessera("plan", *image[1:], *kernels, there, ranks=ranks))
        suite.equal("plan writes no kernels", digest(there), digest(model))


def children_of(parent):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue  # ended meanwhile
        if int(fields[1]) == parent:
            found.append(int(name))
    return found


def stop_job(suite, label, command, ranks, number, under_way, launcher_only=False):
    """Start a job, and send it a signal once `under_way()` holds: to all its processes, as
    batch systems do, or to the launcher alone."""
    if ranks > 1:
        command = [mpiexec(), "-n", str(ranks)] + command
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, env=mpi_environment(),
                             # which a shell's background jobs start with ignored
                             preexec_fn=lambda: signal.signal(signal.SIGINT,
                                                              signal.SIG_DFL))
    end = time.monotonic() + TIMEOUT * SLOWER
    while time.monotonic() < end and child.poll() is None and not under_way():
        time.sleep(0.02)
    suite.true(f"{label}: under way", child.poll() is None and under_way())
    for process in ([] if launcher_only else children_of(child.pid)) + [child.pid]:
        os.kill(process, number)
    try:
        status = child.wait(TIMEOUT * SLOWER)
    except subprocess.TimeoutExpired:
        child.kill()
        status = 0
    suite.true(f"{label}: ended with status {status}", status != 0)


def wait_for(expected, found):
    """What `found()` returns once that is `expected`, or a while later: unfinished files
    may go a moment after the job."""
    end = time.monotonic() + TIMEOUT * SLOWER
    while found() != expected and time.monotonic() < end:
        time.sleep(0.02)
    return found()


def check_signals(faults):
    """A run that is told to stop takes its unfinished files with it."""
    suite = faults.suite
    rng = np.random.default_rng(2)
    sky = write_sky(suite.path("many.csv"),
                    [dict(ra=f"{60 + d}deg", dec="-30deg", flux_jy=1)
                     for d in rng.uniform(-0.1, 0.1, 3000)])
    cases = [(ranks, ending, number, False) for ranks in RANKS
             for ending in ((".uvfits", ".ms") if have_ms() else (".uvfits",))
             for number in (signal.SIGTERM, signal.SIGINT)]
    cases += [(ranks, ending, signal.SIGTERM, True)
              for ranks, ending, number, _ in cases
              if ranks > 1 and number == signal.SIGTERM]
    for ranks, ending, number, launcher_only in cases:
        folder = tempfile.mkdtemp(dir=suite.work)
        command = [BIN, "simulate", "--layout", "vla-d", "--sky", sky, "--ra", "60deg",
                   "--dec=-30deg", "--start", "2026-01-01T20:00:00", "--duration", "8h",
                   "--integration", "10s", "--freq", "1.4GHz", "--chan-width", "1MHz",
                   "--channels", "8", "--pol", "XX,YY", "--threads", "1", "-o",
                   os.path.join(folder, "x" + ending)]
        label = (f"{number.name}, {ending[1:]}, {ranks} ranks"
                 + ", to the launcher" * launcher_only)
        began = []

        def under_way():
            if os.listdir(folder):
                began.append(time.monotonic())
            return began and time.monotonic() > began[0] + 0.5
        stop_job(suite, label, command, ranks, number, under_way, launcher_only)
        suite.equal(f"{label}: left behind", wait_for([], lambda: os.listdir(folder)), [])


class SmallDisk:
    """A tmpfs of a given size, or None when it cannot be mounted."""

    def __init__(self, suite, kilobytes):
        self.path = suite.path("disk")
        os.makedirs(self.path, exist_ok=True)
        self.mounted = os.geteuid() == 0 and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", self.path],
            capture_output=True).returncode == 0

    def __enter__(self):
        return self.path if self.mounted else None

    def __exit__(self, *_):
        if self.mounted:
            subprocess.run(["umount", self.path], check=False)


def check_full_disk(faults):
    suite = faults.suite
    sky = write_sky(suite.path("sky.csv"),
                    [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    model = uvfits.write_model(suite.path("good.fits"), np.ones((64, 64)), 60 * ASEC)
    with SmallDisk(suite, 300) as disk:
        if disk is None:
            suite.skipped("full disk: a small tmpfs cannot be mounted")
            return
        for ranks in RANKS:
            for what, args in [
                    ("image", ["image", faults.valid, "--size", "512", "--scale",
                               "20asec", "-o", f"{disk}/x"]),
                    ("preview", ["image", faults.valid, "--size", "512", "--scale",
                                 "20asec", "--preview", "-o", f"{disk}/x"]),
                    ("predict", ["predict", faults.valid, "--model", model, "-o",
                                 f"{disk}/x.uvfits"]),
                    ("simulate", ["simulate", "--layout", "vla-d", "--sky", sky, "--ra",
                                  "60deg", "--dec=-30deg", "--start",
                                  "2026-01-01T04:00:00", "--duration", "1h",
                                  "--integration", "60s", "--freq", "1.4GHz",
                                  "--chan-width", "1MHz", "--channels", "8", "--pol",
                                  "XX,YY", "-o", f"{disk}/x.uvfits"])]:
                # Leaves too little room for any of the outputs.
                with open(f"{disk}/filler", "wb") as f:
                    f.write(b"x" * 260 * 1024)
                result = tessera(*args, ranks=ranks, timeout=TIMEOUT)
                faults.judge(f"full disk, {what}, {ranks} ranks", result, 3)
                left = [f for f in os.listdir(disk) if not f.endswith(ALLOWED)]
                suite.equal(f"full disk, {what}: left behind", left, ["filler"])
                for f in os.listdir(disk):
                    os.remove(f"{disk}/{f}")
    # The dirty image of 256² fits, the PSF does not; then both do, the preview does not.
    for kilobytes, extra in ((340, []), (340, ["--stokes", "Q,I", "--no-psf"]),
                             (264 + 20, ["--no-psf", "--preview"])):
        for ranks in RANKS:
            with SmallDisk(suite, kilobytes) as disk:
                what = f"the second file does not fit {' '.join(extra)}, {ranks} ranks"
                result = tessera("image", faults.valid, "--size", "256", "--scale", "20asec",
                                 *extra, "-o", f"{disk}/x", ranks=ranks, timeout=TIMEOUT)
                faults.judge(what, result, 3)
                left = [f for f in os.listdir(disk) if not f.endswith(ALLOWED)]
                suite.equal(f"{what}: left behind", left, [])


def check_file_limit(faults):
    """A limit of what a file may hold (ulimit -f) is met like a full disk."""
    suite, valid = faults.suite, faults.valid
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    model = uvfits.write_model(suite.path("good.fits"), np.ones((64, 64)), 60 * ASEC)
    # one rank, as MPI's shared memory is files, too
    for what, command in [
            ("image", ["image", valid, *IMAGE, "-o"]),
            ("predict", ["predict", valid, "--model", model, "-o"]),
            ("simulate", simulation(sky, "x")[:-1])] + [
            ("simulate to an MS", simulation(sky, "x")[:-1])] * have_ms():
        folder = tempfile.mkdtemp(dir=suite.work)
        target = os.path.join(folder, "x" + ".ms" * what.endswith("MS"))
        result = run(["sh", "-c", 'ulimit -f 10; exec "$@"', "sh", BIN, *command, target],
                     TIMEOUT)
        faults.judge(f"small files alone, {what}", result, 3, "too large")
        left = [f for f in os.listdir(folder) if not f.endswith(ALLOWED)]
        suite.equal(f"small files alone, {what}: left behind", left, [])

    if not mpiexec():
        return
    # MPI's shared memory is files, too. The limit is the ranks' alone: a launcher that
    # meets it may wait for ever after its job has ended.
    target = os.path.join(tempfile.mkdtemp(dir=suite.work), "x")
    result = run([mpiexec(), "-n", "2", "sh", "-c", 'ulimit -f 10; exec "$@"', "sh", BIN,
                  "image", valid, *IMAGE, "-o", target], TIMEOUT)
    suite.ran("small files alone, 2 ranks", result, 4)
    suite.true("small files alone, 2 ranks: says why", "ulimit -f" in result.err)
    left = [f for f in os.listdir(os.path.dirname(target)) if not f.endswith(ALLOWED)]
    suite.equal("small files alone, 2 ranks: left behind", left, [])


def check_open_files(faults):
    """A process that may open few files blames that limit, not what it reads."""
    suite = faults.suite
    model = uvfits.write_model(suite.path("good.fits"), np.ones((64, 64)), 60 * ASEC)
    said = 0
    for limit in range(3, 14):
        for command in (["info", faults.valid], ["compare", model, model]):
            result = run(["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", BIN, *command],
                         TIMEOUT)
            if result.status in (0, 127):  # 127: too few to load the program itself
                continue
            faults.judge(f"{limit} open files, {command[0]}", result, 4, "ulimit -n")
            said += 1
    suite.true("some limits are too low", said > 0)


def check_skies(faults):
    path = faults.suite.path
    common = ["--layout", "vla-d", "--ra", "60deg", "--dec=30deg", "--start",
              "2026-01-01T04:00:00", "--duration", "2min", "--integration", "60s",
              "--freq", "1.4GHz", "--chan-width", "1MHz", "--channels", "2", "--pol",
              "XX,YY"]
    with open(path("bad-sky.csv"), "w") as f:
        f.write("name,ra,dec,flux_jy\nA,60deg,30deg,1\nB,60deg,thirty,1\n")
    faults.bad("sky model with a bad number", 3, "simulate", "--sky",
               path("bad-sky.csv"), *common, says="bad-sky.csv")
    faults.bad("missing sky model", 3, "simulate", "--sky", path("none.csv"), *common)
    with open(path("bright-sky.csv"), "w") as f:
        f.write("name,ra,dec,flux_jy\nA,60deg,30deg,1e300\n")
    faults.bad("sky model beyond single precision", 3, "simulate", "--sky",
               path("bright-sky.csv"), *common, says="bright-sky.csv")


def check_damage(faults):
    """Bytes of the headers changed at random: any status but a signal or a hang."""
    suite = faults.suite
    raw = open(faults.valid, "rb").read()
    tables = raw.index(b"XTENSION")
    rng = np.random.default_rng(33)
    ends = {}
    for k in range(300 if FULL else 25):
        broken = bytearray(raw)
        start, stop = ((0, 2880 * 2) if k % 2 else (tables, len(raw)))
        for at in rng.integers(start, stop, 1 + k % 4):
            broken[at] = rng.choice(np.frombuffer(b" 0123456789-+E.'=/ABXYZ~\0\xff",
                                                  np.uint8))
        path = suite.path("damaged.uvfits")
        with open(path, "wb") as f:
            f.write(broken)
        result = tessera("image", path, *IMAGE, "--overwrite", "-o",
                         suite.path("damaged"), timeout=TIMEOUT)
        ends[result.status] = ends.get(result.status, 0) + 1
        # 2: a polarisation of --stokes that the header no longer has
        if result.hung or result.status not in (0, 2, 3, 4):
            suite.true(f"damaged header {k}: exit status {result.status}"
                       f"{' HUNG' * result.hung} {result.err[-500:]}", False)
            shutil.copy(path, suite.path(f"damaged-{k}.uvfits"))
    suite.true(f"damaged headers end with {ends}", set(ends) <= {0, 2, 3, 4})


def main():
    chosen = [a for a in sys.argv[1:] if not a.startswith("-")]  # all parts when empty
    suite = Suite("bad_input_full" if FULL else "bad_input")
    faults = Faults(suite)
    check = tessera("image", faults.valid, *IMAGE, "-o", suite.path("works"))
    suite.ran("the unspoilt observation", check)
    for part in (check_options, check_files, check_hostile, check_contents,
                 check_resources, check_models, check_pipes, check_outputs,
                 check_existing, check_own_files, check_killed, check_late_signals,
                 check_escapes, check_cached_pipe, check_permissions, check_names,
                 check_twice, check_long_names, check_packed, check_stack, check_signals, check_full_disk, check_file_limit,
                 check_open_files, check_skies,
                 check_damage):
        if not chosen or part.__name__ in chosen:
            part(faults)
    suite.finish()


if __name__ == "__main__":
    main()
