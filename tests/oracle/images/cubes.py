#!/usr/bin/env python3
"""Cubes that `tessera image --cube` writes, and model cubes and sets that are read.

Pixels are those of separate files bit by bit, on any number of ranks and teams. astropy,
casacore and, where it is installed, spectral_cube find frequencies, Stokes parameters and
the beam of each plane. Predictions of cubes, sets and polynomials are compared with direct
sums, at --accuracy 1e-8.
"""
import contextlib
import ctypes
import fcntl
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
import warnings

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (BACKEND, BIN, FULL, Suite, casacore_python, fits_module, forced, mpi_environment, mpiexec,
                 read_image, run, skip, take_forced, tessera)
from fields_and_cubes import NX, NY, SCALE, Samples
import uvfits

CHANNELS, OUT = 8, 4
IMAGE = ["--size", f"{NX},{NY}", "--scale", "60asec", "--threads", "1", "--reproducible"]
CLEAN = ["--niter", "40", "--stokes", "IQU"]
KINDS = ("dirty", "psf", "model", "residual", "image")
RANKS = (1, 2, 3, 4) if mpiexec() else (1,)
EPS, STORED = 1e-8, 1e-7  # of predictions, and of single precision in UVFITS


def observe(suite):
    """Channels 2 and 3, the second output channel, have no data."""
    def flag(s):
        s.weight[:, 2:4] = -1.0
    return Samples(suite, "obs", channels=CHANNELS, corrs=4, change=flag)


def cube(prefix, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of checksums
        with fits_module().open(f"{prefix}-cube-{kind}.fits", checksum=True) as hdus:
            tables = {h.name: (h.data.copy(), h.header) for h in hdus[1:]}
            return np.array(hdus[0].data), hdus[0].header, tables


def plane(prefix, channel, pol, kind):
    name = f"{prefix}-{channel:04d}-{pol}-{kind}.fits"
    if kind == "psf" and not os.path.exists(name):
        return None
    return read_image(name)


def check_planes(suite, label, prefix, separate):
    """Pixels, the tables' numbers and the mean."""
    for kind in KINDS:
        pixels, header, tables = cube(prefix, kind)
        planes, beams = tables["PLANES"][0], tables["BEAMS"][0]
        suite.equal(f"{label} {kind}: NCHAN, NPOL", [tables["BEAMS"][1][k] for k in
                                                     ("NCHAN", "NPOL")],
                    [OUT, pixels.shape[0]])
        same, told = True, True
        for p, pol in enumerate("IQU"[:pixels.shape[0]]):
            for c in range(OUT):
                image, head = plane(separate, c, pol, kind)
                row = p * OUT + c
                same &= np.array_equal(image, pixels[p, c], equal_nan=True)
                told &= [planes[k][row] for k in ("CHAN", "POL", "SUMWT", "NVIS", "FREQ")] \
                    == [c, p, head["SUMWT"], head["NVIS"], head["CRVAL3"]]
                told &= (int(planes["DATASUM"][row]) == int(head["DATASUM"])
                         and planes["NMAJOR"][row] == head.get("NMAJOR", 0))
                if c == 1:  # without data: the table of planes has none, and BEAMS a neighbour's
                    told &= planes["BMAJ"][row] == 0 and "BMAJ" not in head
                    head = plane(separate, 0, pol, kind)[1]
                beam = [head.get(k, 0.0) for k in ("BMAJ", "BMIN", "BPA")]
                told &= np.allclose([beams[k][row] for k in ("BMAJ", "BMIN", "BPA")],
                                    np.multiply(beam, [3600, 3600, 1]), rtol=1e-6)
                told &= (beams["CHAN"][row], beams["POL"][row]) == (c, p)
        suite.true(f"{label} {kind}: pixels of {pixels.shape}", same)
        suite.true(f"{label} {kind}: numbers of planes", told)
        suite.true(f"{label} {kind}: range", np.allclose(
            [header["DATAMIN"], header["DATAMAX"]], [np.nanmin(pixels), np.nanmax(pixels)],
            rtol=1e-12, atol=0))  # 14 digits are written
        suite.true(f"{label} {kind}: the channel without data is "
                   + ("0" if kind == "model" else "blank"),
                   (pixels[:, 1] == 0).all() if kind == "model"
                   else np.isnan(pixels[:, 1]).all())
        suite.true(f"{label} {kind}: no file of a channel",
                   not os.path.exists(f"{prefix}-0000-I-{kind}.fits"))
        if kind != "psf":
            suite.true(f"{label} {kind}: mean of Q", np.array_equal(
                read_image(f"{prefix}-MFS-Q-{kind}.fits")[0],
                read_image(f"{separate}-MFS-Q-{kind}.fits")[0]))


def check_pixels(suite, s):
    """By each channel, by teams of ranks, and cleaned together."""
    args = [*IMAGE, "--channels-out", str(OUT)]
    ran, alone = suite.image("alone", s.path, *args, *CLEAN)
    ran2, joined = suite.image("joined", s.path, *args, *CLEAN, "--join-channels")
    if not (ran and ran2):
        return None
    runs = [(r, [], alone) for r in RANKS] + [(r, ["--join-channels"], joined)
                                              for r in RANKS[:2]]
    runs += [(3, forced(teams=3), alone)] if len(RANKS) > 1 else []
    runs += [(1, ["--threads", "3", *forced(thread_teams=3)], alone)]
    runs += [(2, ["--threads", "2", *forced(teams=2, thread_teams=2)], alone)][:len(RANKS) - 1]
    for ranks, more, separate in runs:
        label = " ".join(["cube", str(ranks), *more])
        ran, prefix = suite.image(label.replace(" ", "-"), s.path, *args, *CLEAN, *more,
                                  "--cube", ranks=ranks)
        if ran:
            check_planes(suite, label, prefix, separate)
            left = [n for n in os.listdir(suite.work) if n.count(".") > 1]
            suite.equal(f"{label}: nothing else is left", left, [])
    return suite.path("cube-1")


def devices(room):
    """The environment of emulated devices that have all memory but tell of this room."""
    return {**mpi_environment(), "TESS_EMULATED": f"{10 ** 12}:{room}"}


# Room for the images of a whole channel beside its planes, and too little for planes.
MUCH, LITTLE = 10 ** 12, 5 * 10 ** 8
CLEANED = ["--channels-out", str(OUT), "--niter", "20"]
LARGE = ["--size", "1000"]
BY_TWO, BY_LANES = "of each of 2 teams of 1 rank", "each with a lane of the GPU"


def check_choice(suite, s):
    """Each GPU makes whole channels that are cleaned one by one, unless the host has no room for that, there are
    fewer channels with data than GPUs, or channels have something in common."""
    cases = [(1, LARGE, "1 team of 1 rank"), (2, LARGE, "2 teams of 1 rank"), (4, [], "1 team of 4 ranks"),
             (2, [*LARGE, "--memory", "400MB"], "1 team of 2 ranks")]
    if FULL:
        cases += [(2, ["--checkpoint", suite.path("unused")], "2 teams of 1 rank"),
                  (2, ["--mf-weighting", "--weight", "briggs:0"], "1 team of 2 ranks")]
    images = {}
    for ranks, more, by in cases:
        label = " ".join([f"{ranks} GPUs", *more])
        plan = tessera("plan", s.path, *IMAGE, *CLEANED, *more, "--backend", BACKEND, ranks=ranks, env=devices(MUCH))
        if suite.ran(label, plan):
            suite.true(f"{label}: {by}", f"{OUT} sets of images by {by}\n" in plan.out)
        if more == LARGE:
            images[ranks] = int(re.search(r"(\d+) MiB images and minor loops", plan.out)[1])
    check_means(suite, s, images)


def check_means(suite, s, images):
    """A GPU has room for the channels in its lanes, which are whole, and once for means over channels if it makes all
    channels. GPUs that make other channels have means in host memory."""
    mean = 8 * len(KINDS) * 1000 ** 2 / 2 ** 20
    for name, ranks, more in (("alone", 1, ["--channels-out", "1"]),
                              ("lanes", 1, ["--threads", "2", *forced(thread_teams=2)]),
                              ("lanes of two", 2, ["--threads", "2", *forced(teams=2, thread_teams=2)])):
        plan = tessera("plan", s.path, *IMAGE, *CLEANED, *LARGE, *more, "--backend", BACKEND, ranks=ranks,
                       env=devices(MUCH))
        if not suite.ran(f"memory of GPUs: {name}", plan):
            return
        images[name] = int(re.search(r"(\d+) MiB images and minor loops", plan.out)[1])
    wanted = {1: images["alone"] + mean, 2: images["alone"], "lanes": 2 * images["alone"] + mean,
              "lanes of two": 2 * images["alone"]}
    for name, bytes_of in wanted.items():  # up to three numbers that are rounded to MiB
        suite.below(f"memory of GPUs, {name}: {images[name]} less {bytes_of:.1f} MiB", abs(images[name] - bytes_of), 2)


def check_whole_channels(suite, s):
    """They are the same as of one GPU: one on each of two at a time, some in lanes of each, and one on both where a
    GPU has no room for it."""
    args = [*IMAGE, *CLEANED, "--cube", "--verbose"]
    ran, one = suite.image("whole", s.path, *args)
    cases = [("lanes", MUCH, ["--threads", "2", *forced(thread_teams=2)], [BY_TWO, BY_LANES]),
             ("no room", LITTLE, [], ["no room for the images of a whole channel"])]
    if FULL:
        cases += [("whole channels", MUCH, [], [BY_TWO])]
    for more in [[*forced(teams=1)], ["--mf-weighting", "--weight", "briggs:0"]]:
        plan = tessera("plan", s.path, *IMAGE, *CLEANED, *more, "--backend", BACKEND, ranks=2, env=devices(LITTLE))
        if suite.ran(f"little room, {more}", plan):
            suite.true(f"{more}: little room is not why", cases[1][3][0] not in plan.err)
    for name, room, more, words in cases:
        result = tessera("image", s.path, *args, *more, "-o", suite.path("each"), "--overwrite", ranks=2,
                         env=devices(room))
        if suite.ran(name, result) and ran:
            suite.true(f"{name}: the log says so", all(w in result.err for w in words))
            suite.true(f"{name}: the same pixels", all(
                np.array_equal(cube(one, kind)[0], cube(suite.path("each"), kind)[0], equal_nan=True)
                for kind in KINDS))


def check_intervals(suite, s):
    """Cubes of intervals by teams, which have several of them open; and no PSF."""
    args = [*IMAGE, "--channels-out", str(OUT), "--intervals-out", "3", "--no-psf"]
    ran, separate = suite.image("times", s.path, *args)
    for ranks, more in [(1, []), (1, ["--threads", "4", *forced(thread_teams=2)]),
                        (3, forced(teams=3))][:len(RANKS) + 1]:
        ran2, prefix = suite.image(f"times{ranks}", s.path, *args, *more, "--cube",
                                   "--preview", ranks=ranks)
        if not (ran and ran2):
            continue
        for t in range(3):
            pixels, header, tables = cube(f"{prefix}-t{t:04d}", "dirty")
            suite.true(f"interval {t}, {ranks} ranks: pixels", all(np.array_equal(
                read_image(f"{separate}-t{t:04d}-{c:04d}-dirty.fits")[0], pixels[0, c],
                equal_nan=True) for c in range(OUT)))
            suite.true(f"interval {t}: no beams", not header["CASAMBM"]
                       and list(tables) == ["PLANES"])
        pngs = sorted(n for n in os.listdir(suite.work)
                      if n.startswith(f"times{ranks}") and n.endswith(".png"))
        suite.equal("previews of the means", pngs,
                    [f"times{ranks}-t{t:04d}-MFS-dirty.png" for t in range(3)])


def check_one_channel(suite, s):
    """A cube of one channel holds the Stokes parameters; correlations count downwards."""
    for stokes, code, step in (("IV", 1, 3), ("YY,XX", -5, -1)):
        ran, prefix = suite.image("one", s.path, *IMAGE, "--stokes", stokes, "--cube")
        ran2, separate = suite.image("ones", s.path, *IMAGE, "--stokes", stokes)
        if not (ran and ran2):
            continue
        pixels, header, _ = cube(prefix, "dirty")
        suite.equal(f"{stokes}: STOKES axis", [header[k] for k in
                                               ("NAXIS4", "CRVAL4", "CDELT4")],
                    [2, code, step])
        names = ("I", "V") if stokes == "IV" else ("XX", "YY")
        suite.true(f"{stokes}: planes in the order of codes", all(np.array_equal(
            read_image(f"{separate}-{names[p]}-dirty.fits")[0], pixels[p, 0])
            for p in range(2)))


def check_one_plane(suite, s):
    """The beam of an only plane is in the header, also of a cube that a stopped run finishes."""
    ran, separate = suite.image("lone", s.path, *IMAGE, "--niter", "20")
    for label, more in (("one plane", []), ("one plane, kept", [
            "--checkpoint", suite.path("lone-saved"), "--resume"]), ("no PSF", ["--no-psf"])):
        clean = [] if "--no-psf" in more else ["--niter", "20"]
        ran2, prefix = suite.image("lones", s.path, *IMAGE, *clean, *more, "--cube")
        if not (ran and ran2):
            continue
        _, header, tables = cube(prefix, "image" if clean else "dirty")
        wanted = read_image(f"{separate}-image.fits")[1] if clean else {}
        suite.equal(f"{label}: tables", list(tables), ["PLANES"])
        suite.equal(f"{label}: beam", [header.get(k) for k in ("CASAMBM", "BMAJ", "BMIN", "BPA")],
                    [None] + [wanted.get(k) for k in ("BMAJ", "BMIN", "BPA")])


def check_stopped(suite, s):
    """Stopped again and again, and continued by more ranks; once more from a checkpoint that
    is older than the finished cubes."""
    if len(RANKS) == 1:
        suite.skipped("cubes of runs that are stopped: no mpirun")
        return
    args = [s.path, *IMAGE, "--channels-out", str(OUT), "--intervals-out", "2", "--niter", "20",
            "--cube"]
    ran, whole = suite.image("unstopped", *args)
    prefix, saved, older = (suite.path(n) for n in ("stopped", "saved", "older"))
    kept = [*args, "-o", prefix, "--checkpoint", saved, "--resume"]
    unfinished = prefix + "-t0000-cube-image.fits.unfinished"
    stop = ["--max-time", "0.001s"]
    for k, (ranks, more, left) in enumerate([(2, forced(teams=2), True),
                                             (2, forced(teams=2), False),
                                             (1, [], False), (1, [], False)]):
        suite.ran(f"stopped {k}", tessera("image", *kept, *more, *stop, ranks=ranks), 75)
        suite.true(f"stopped {k}: the first interval's cubes", os.path.exists(unfinished) == left
                   and os.path.exists(unfinished[:-len(".unfinished")]) != left)
        if left:
            shutil.copytree(saved, older)
            with contextlib.ExitStack() as other_run:
                for kind in KINDS:
                    file = open(unfinished.replace("image", kind), "rb")
                    fcntl.flock(other_run.enter_context(file), fcntl.LOCK_EX)
                for label, other in (("anew", suite.path("own")), ("resumed", saved)):
                    result = tessera("image", *args, "-o", prefix, "--checkpoint", other, *(
                        ["--resume"] if other == saved else ["--overwrite"]))
                    suite.true(f"{label} beside a run that writes {result.errors()}",
                               result.status == 3 and len(result.errors()) == 1
                               and "another run is writing it" in result.errors()[0]
                               and os.path.exists(unfinished))
    suite.ran("continued", tessera("image", *kept, ranks=RANKS[-1]))
    check_as_whole(suite, "stopped and continued", prefix, whole)
    os.rename(older, saved)
    suite.ran("from an older checkpoint", tessera("image", *kept, *forced(teams=2),
                                                  ranks=2))
    check_as_whole(suite, "from an older checkpoint", prefix, whole)
    path = suite.path("foreign-t0000-cube-dirty.fits.unfinished")
    with open(path, "w") as file:
        file.write("mine")
    result = tessera("image", *args, "-o", suite.path("foreign"), "--checkpoint", saved)
    suite.true(f"a file that tessera did not make stays {result.errors()}",
               result.status == 3 and len(result.errors()) == 1
               and open(path).read() == "mine")


def saved_tables(prefix):
    """How often the log says that tables of unfinished cubes were saved."""
    with open(prefix + ".log", encoding="utf8") as log:
        return log.read().count("saved the tables of unfinished cubes")


def has_unfinished(suite):
    """Whether a run that is killed has begun a cube."""
    return any("stopped-killed" in name and name.endswith(".unfinished") for name in os.listdir(suite.work))


def check_killed(suite, s):
    """Tables of unfinished cubes are saved with checkpoints alone. A run that is killed anywhere leaves no cube
    under its final name but complete ones, and goes on from its last checkpoint."""
    args = [s.path, *IMAGE, "--channels-out", str(OUT), "--intervals-out", "2", "--niter", "20", "--cube"]
    began = time.monotonic()
    ran, whole = suite.image("unkilled", *args)
    took = time.monotonic() - began
    for name, every, times in (("rare", [], 0), ("often", ["--checkpoint-every", "0.000001s"], 2 * (OUT - 1))):
        prefix = suite.path("stopped-" + name)
        suite.ran(f"checkpoints that are {name}", tessera("image", *args, "-o", prefix, "--checkpoint", suite.path(
            "checkpoints-" + name), *every))
        suite.equal(f"{name}: tables are saved", saved_tables(prefix), times)
    prefix = suite.path("stopped-killed")
    command = ["image", *args, "-o", prefix, "--checkpoint", suite.path("killed"), "--resume"]
    killed, unfinished = 0, 0
    for k in range(6):
        words, env = take_forced([BIN, *command, "--checkpoint-every", "0.000001s"])
        child = subprocess.Popen(words, stderr=subprocess.DEVNULL, env=env)
        if k == 0:  # a busy machine may begin no cube within the times that follow
            while child.poll() is None and not has_unfinished(suite):
                time.sleep(.002)
        else:
            time.sleep(took * (.35 + .1 * k))
        if child.poll() is not None:
            suite.equal("killed before, and ended", child.returncode, 0)
            break
        child.send_signal(signal.SIGKILL)
        child.wait()
        killed += 1
        unfinished += has_unfinished(suite)
        finished = [f"{prefix}-t{t:04d}-cube-{kind}.fits" for t in range(2) for kind in KINDS]
        suite.true(f"killed {k}: cubes under final names are complete", all(
            (cube(name[:name.index("-cube-")], name[name.index("-cube-") + 6:-5])[2]["PLANES"][0]["DATASUM"][[0, 2, 3]]
             > 0).all() for name in finished if os.path.exists(name)))
        if all(os.path.exists(name) for name in finished):  # it had come to its end
            break
    else:
        suite.ran("killed, and continued", tessera(*command))
    suite.true(f"killed {killed} times, {unfinished} with unfinished cubes", unfinished > 0)
    check_as_whole(suite, "killed and continued", prefix, whole)


def check_as_whole(suite, label, prefix, whole):
    for t in range(2):
        for kind in KINDS:
            pixels, header, tables = cube(f"{prefix}-t{t:04d}", kind)
            wanted, head, others = cube(f"{whole}-t{t:04d}", kind)
            suite.true(f"{label}: {kind} {t}", np.array_equal(pixels, wanted, equal_nan=True)
                       and header["DATASUM"] == head["DATASUM"]
                       and all(np.allclose(np.array(tables[n][0].tolist()),
                                           np.array(others[n][0].tolist()), rtol=1e-6,
                                           equal_nan=True) for n in others))
    suite.equal(f"{label}: nothing unfinished", [n for n in os.listdir(suite.work)
                                                 if "stopped-" in n and "unfinished" in n], [])


# ---- readers ----

CASACORE = """
import sys
from casacore.images import image
import numpy as np
im = image(sys.argv[1])
axis = im.coordinates().get_coordinate("spectral")
beams = im.info()["imageinfo"]["perplanebeams"]
print(im.shape(), axis.get_referencevalue(), axis.get_increment(),
      beams["nChannels"], beams["nStokes"])
for k in range(beams["nChannels"]):
    print(beams["*%d" % k]["major"]["value"])
np.save(sys.argv[2], im.getdata())
"""


def check_casacore(suite, prefix):
    python = casacore_python()
    if not python or run([python, "-c", "import casacore.images"], 60).status != 0:
        suite.skipped("what casacore reads of cubes")
        return
    path = suite.path("casacore.npy")
    result = run([python, "-c", CASACORE, prefix + "-cube-image.fits", path], 60)
    if not suite.ran("casacore opens a cube", result):
        return
    pixels, header, tables = cube(prefix, "image")
    lines = result.out.strip().splitlines()[-OUT - 1:]
    suite.equal("casacore: shape, frequencies, beams", lines[0],
                f"{list(pixels.shape)} {header['CRVAL3']} {header['CDELT3']} {OUT} 3")
    suite.true("casacore: beams of planes", np.allclose(
        [float(x) for x in lines[1:]], tables["BEAMS"][0]["BMAJ"][:OUT]))
    found = np.load(path)
    good = np.isfinite(pixels)
    suite.true("casacore: pixels", np.array_equal(found[good], pixels[good]))


def check_spectral_cube(suite, prefix):
    try:
        from spectral_cube import SpectralCube, StokesSpectralCube
    except ImportError:
        suite.skipped("what spectral_cube reads of cubes: it is not installed")
        return
    pixels, header, tables = cube(prefix, "image")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = SpectralCube.read(prefix + "-cube-image.fits")
        stokes = StokesSpectralCube.read(prefix + "-cube-image.fits")
    wanted = header["CRVAL3"] + header["CDELT3"] * np.arange(OUT)
    suite.true("spectral_cube: frequencies", np.allclose(read.spectral_axis.value, wanted,
                                                         rtol=1e-12))
    good = tables["PLANES"][0]["SUMWT"][:OUT] > 0
    suite.true("spectral_cube: beams of planes", np.allclose(
        np.array([b.major.to_value("arcsec") for b in read.unmasked_beams])[good],
        tables["BEAMS"][0]["BMAJ"][:OUT][good]))
    suite.true("spectral_cube: pixels", np.array_equal(
        read.unmasked_data[:].value, pixels[0], equal_nan=True))
    suite.equal("spectral_cube: Stokes", [str(x) for x in stokes.components], list("IQU"))


def check_axis(suite, prefix):
    from astropy.wcs import WCS
    _, header, _ = cube(prefix, "image")
    separate = [read_image(suite.path(f"alone-{c:04d}-I-image.fits"))[1]["CRVAL3"]
                for c in range(OUT)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sky = WCS(header)
    found = sky.all_pix2world([[3, 4, c, 0] for c in range(OUT)], 0)[:, 2]
    suite.true("astropy: frequencies", np.allclose(found, separate, rtol=1e-12))


def check_listed(suite, s):
    """Three output channels of eight are not equidistant: the axis is a table."""
    from astropy.wcs import WCS
    args = [*IMAGE, "--channels-out", "3"]
    ran, prefix = suite.image("three", s.path, *args, "--niter", "20", "--cube")
    ran2, separate = suite.image("threes", s.path, *args, "--niter", "20")
    if not (ran and ran2):
        return
    wanted = [read_image(f"{separate}-{c:04d}-model.fits")[1]["CRVAL3"] for c in range(3)]
    path = prefix + "-cube-model.fits"
    with fits_module().open(path) as hdus, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        suite.equal("table of frequencies: axis", hdus[0].header["CTYPE3"], "FREQ-TAB")
        sky = WCS(hdus[0].header, fobj=hdus)
        found = sky.all_pix2world([[3, 4, c, 0] for c in range(3)], 0)[:, 2]
    suite.true(f"table of frequencies: {found}", np.allclose(found, wanted, rtol=1e-12))
    outs = []
    for model in (path, separate):
        outs.append(suite.path(f"listed{len(outs)}.uvfits"))
        suite.ran("predict " + os.path.basename(model), tessera(
            "predict", s.path, "--model", model, "--threads", "1", "-o", outs[-1],
            "--overwrite"))
    suite.true("table of frequencies: predictions", np.array_equal(
        uvfits.read(outs[0])[2], uvfits.read(outs[1])[2]))


# ---- models ----

class Model:
    """Planes of Stokes I and Q at frequencies, as a cube and as a set of files."""

    def __init__(self, suite, name, freq, planes):
        self.freq, self.planes = np.array(freq), np.array(planes)  # [stokes][freq][y][x]
        first = uvfits.write_model(suite.path("first.fits"), self.planes[0, 0], SCALE,
                                   freq_hz=freq[0])
        header = fits_module().getheader(first)
        header["CDELT3"] = freq[1] - freq[0] if len(freq) > 1 else 1e6
        self.header = header
        self.path = self.write(suite, name)
        self.set = suite.path(name + "-set")
        for c, f in enumerate(freq):
            for p, pol in enumerate("IQ"[:len(planes)]):
                uvfits.write_model(f"{self.set}-{c:04d}-{pol}-model.fits",
                                   self.planes[p, c], SCALE, freq_hz=f, stokes=p + 1)

    def write(self, suite, name, **cards):
        header = self.header.copy()
        header.update(cards)
        path = suite.path(name + ".fits")
        fits_module().writeto(path, self.planes, header, overwrite=True)
        return path


def random_planes(num, seed):
    rng = np.random.default_rng(seed)
    planes = np.zeros((2, num, NY, NX))
    for p in range(2):
        for c in range(num):
            at = rng.integers(4, min(NX, NY) - 4, (5, 2))
            planes[p, c, at[:, 0], at[:, 1]] = rng.normal(size=5)
    return planes


def stokes_of(path):
    _, freq, vis, _, _ = uvfits.read(path)
    return freq, np.stack([(vis[..., 0] + vis[..., 1]) / 2, (vis[..., 0] - vis[..., 1]) / 2])


def check_prediction(suite, label, s, wanted, *args, ranks=1):
    out = suite.path("predicted.uvfits")
    result = tessera("predict", s.path, *args, "--accuracy", str(EPS), "-o", out,
                     "--overwrite", ranks=ranks)
    if not suite.ran(label, result):
        return result
    _, found = stokes_of(out)
    for p, pol in enumerate("IQ"):
        error = np.linalg.norm(found[p] - wanted[p]) / np.linalg.norm(wanted[p])
        suite.below(f"{label}: Stokes {pol}", error, EPS + STORED)
    return result


def direct(s, image_at):
    """Stokes visibilities of image_at(stokes, freq_hz) of each channel."""
    return [np.concatenate([uvfits.direct_predict(s.uvw, s.freq[k:k + 1],
                                                  image_at(p, s.freq[k]), SCALE)
                            for k in range(len(s.freq))], 1) for p in range(2)]


def check_nearest(suite, s):
    """Three planes for eight channels; a descending axis; a set; memory for one plane."""
    freq = s.freq[0] + np.array([0.4, 3.3, 6.2]) * 2e7
    model = Model(suite, "nearest", freq, random_planes(3, 5))

    def nearest(p, f):
        return model.planes[p, np.abs(model.freq - f).argmin()]
    wanted = direct(s, nearest)
    for ranks in RANKS[::2]:
        for name, path in (("cube", model.path), ("set", model.set)):
            result = check_prediction(suite, f"nearest of a {name}, {ranks} ranks", s, wanted,
                                      "--model", path, *forced(passes=str(ranks)),
                                      ranks=ranks)
            suite.true("the log says so", "nearest of the model's 3 channels" in result.err)
    model.planes = model.planes[:, ::-1]
    path = model.write(suite, "descending", CRVAL3=freq[2], CDELT3=freq[0] - freq[1])
    check_prediction(suite, "descending frequencies", s, wanted, "--model", path)
    model.planes = model.planes[:, ::-1]
    return model, wanted


def check_polynomial(suite, s):
    """Planes of a straight line, and of a parabola that a line is fitted to."""
    freq = s.freq[0] + np.array([0.5, 2.5, 4.5, 6.5]) * 2e7
    middle = 0.5 * (freq[0] + freq[-1])
    terms = random_planes(3, 9)

    def image(p, f, count, x=lambda f: f / middle - 1):
        return sum(terms[p, t] * (10 * x(f)) ** t for t in range(count))
    line = Model(suite, "line", freq, [[image(p, f, 2) for f in freq] for p in range(2)])
    for ranks in RANKS[::2]:
        result = check_prediction(
            suite, f"polynomial, {ranks} ranks", s, direct(s, lambda p, f: image(p, f, 2)),
            "--model", line.path, "--fit-spectral-pol", "2", ranks=ranks)
        suite.true("the log says so", "polynomial of 2 terms" in result.err)
    for p, pol in enumerate("IQ"):
        path = uvfits.write_model(f"{line.set}-0001-{pol}-model.fits", np.zeros((NY, NX)),
                                  SCALE, freq_hz=freq[1], stokes=p + 1)
        fits_module().setval(path, "SUMWT", value=0.0)
    check_prediction(suite, "polynomial less a channel without data", s,
                     direct(s, lambda p, f: image(p, f, 2)), "--model", line.set,
                     "--fit-spectral-pol", "2")
    bent = Model(suite, "bent", freq, [[image(p, f, 3) for f in freq] for p in range(2)])

    def fitted(p, f):
        fit = np.polynomial.polynomial.polyfit(freq / middle - 1, bent.planes[p].reshape(
            len(freq), -1), 1)
        return (fit[0] + fit[1] * (f / middle - 1)).reshape(NY, NX)
    check_prediction(suite, "least squares", s, direct(s, fitted), "--model", bent.set,
                     "--fit-spectral-pol", "2")


def check_subtract(suite, s, model, wanted):
    """What is left of the model's own visibilities, channel by channel."""
    path = suite.path("own.uvfits")
    vis = np.zeros(s.vis.shape, "c8")
    vis[..., 0], vis[..., 1] = wanted[0] + wanted[1], wanted[0] - wanted[1]
    uvfits.write(path, s.uvw, s.freq, vis, np.ones_like(s.weight))
    args = [*IMAGE, "--weight", "natural", "--accuracy", "1e-6", "--channels-out", str(OUT),
            "--stokes", "IQ", "--no-psf"]
    ran, whole = suite.image("whole", path, *args)
    for ranks in RANKS[::2]:
        for what in (model.path, model.set):
            ran2, left = suite.image("left", path, *args, "--subtract", what, "--cube",
                                     ranks=ranks)
            if not (ran and ran2):
                continue
            peak = np.nanmax(np.abs(read_image(whole + "-0000-I-dirty.fits")[0]))
            suite.below(f"--subtract {os.path.basename(what)}, {ranks} ranks",
                        np.nanmax(np.abs(cube(left, "dirty")[0])) / peak, 1e-5)


def check_continue(suite, s):
    """From a cube or from files, and from other channels."""
    args = [s.path, *IMAGE, "--channels-out", str(OUT), "--niter"]
    for name, more in (("file", []), ("cube", ["--cube"])):
        ran, prefix = suite.image(f"went-{name}", *args, "30", *more)
        for way, how in (("files", []), ("cubes", ["--cube"])):
            for path in [n for n in os.listdir(suite.work) if n.startswith("went-" + name)]:
                shutil.copy(suite.path(path), suite.path(f"{way}-" + path))
            ran, to = suite.image(f"{way}-went-{name}", *args, "60", "--continue", *how)
    reference = [read_image(suite.path(f"files-went-file-{c:04d}-model.fits"))[0]
                 for c in range(OUT)]
    suite.true("continued models are more than none", np.abs(reference[0]).max() > 0)
    for name in ("file", "cube"):
        suite.true(f"from {name}s to files", all(np.array_equal(read_image(suite.path(
            f"files-went-{name}-{c:04d}-model.fits"))[0], reference[c]) for c in range(OUT)))
        suite.true(f"from {name}s to a cube", np.array_equal(
            cube(suite.path(f"cubes-went-{name}"), "model")[0][0], reference))
    ran, prefix = suite.image("went-cube", s.path, *IMAGE, "--channels-out", "2", "--niter",
                              "0", "--cube")
    result = tessera("image", s.path, *IMAGE, "--channels-out", "2", "--niter", "60",
                     "--continue", "--cube", "--overwrite", "-o", prefix)
    suite.ran("from four channels to two", result)
    suite.true("the log says so", "nearest of the model's 4 channels" in result.err)


class Sky:
    """Spectra of some pixels, at any frequency: straight lines and power laws, of either sign."""

    def __init__(self, seed=12):
        rng = np.random.default_rng(seed)
        self.flux, self.slope = np.zeros((2, NY, NX))
        at = rng.integers(4, min(NX, NY) - 4, (6, 2))
        self.flux[at[:, 0], at[:, 1]] = rng.uniform(.5, 2, 6) * rng.choice([-1, 1], 6)
        self.slope[at[:, 0], at[:, 1]] = rng.uniform(-2, 1, 6)

    def line(self, freq):
        return self.flux * (1 + self.slope * (freq / 1.07e9 - 1))

    def power(self, freq):
        return self.flux * (freq / 1.07e9) ** self.slope

    def write(self, prefix, freq, image):
        for c, f in enumerate(freq):
            uvfits.write_model(f"{prefix}-{c:04d}-model.fits", image(f), SCALE, freq_hz=f)

    def write_cube(self, suite, prefix, freq, image):
        """Frequencies in GHz, from the highest to the lowest."""
        first = uvfits.write_model(suite.path("first.fits"), image(freq[0]), SCALE)
        header = fits_module().getheader(first)
        header.update(CUNIT3="GHz", CRVAL3=freq[-1] / 1e9, CDELT3=(freq[0] - freq[1]) / 1e9)
        planes = np.array([image(f) for f in freq[::-1]])[None]
        fits_module().writeto(f"{prefix}-cube-model.fits", planes, header, overwrite=True)


# Models of other channels, what each run says of them, and how much they may differ: a
# file in single precision holds the values that are continued.
def continued_cases(s, sky):
    between, some = (s.freq[0] + np.array(k) * 2e7 for k in ([.5, 2.5, 4.5, 6.5], [0, 2.5, 5, 7.5]))

    def nearest(freq, image):
        return lambda f: image(freq[np.abs(freq - f).argmin()])
    return [("nearest", between, sky.line, [], nearest(between, sky.line), "the nearest of the model's 4"),
            ("line", between, sky.line, ["--fit-spectral-pol", "2"], sky.line, "a polynomial of at most 2 terms"),
            ("power", between, sky.power, ["--fit-spectral-log-pol", "2"], sky.power,
             "a polynomial of logarithms of at most 2 terms"),
            ("some", some, sky.line, ["--fit-spectral-pol", "2"], sky.line, "a polynomial of at most 2 terms"),
            ("few", some[1:3], sky.line, ["--fit-spectral-pol", "4"], sky.line, "at most 4 terms"),
            ("same", s.freq, nearest(between, sky.line), ["--fit-spectral-pol", "2"], nearest(between, sky.line),
             None)]


def check_continued_spectra(suite, s):
    """Channels that a model lacks take the fit that cleaning uses, or the nearest channel. The threshold is
    above all peaks: the model that is written is the one that cleaning begins with."""
    sky = Sky()
    args = [s.path, *IMAGE, "--channels-out", str(CHANNELS), "--join-channels", "--niter", "5", "--threshold",
            "1000Jy", "--continue"]
    for name, freq, image, fit, wanted, words in continued_cases(s, sky):
        for ranks, how in [(1, "files"), (2, "cube"), (3, "files")][:len(RANKS[:3])]:
            label = f"{how} of {name}, {ranks} ranks"
            prefix = suite.path(f"spectra-{name}-{ranks}")
            sky.write(prefix, freq, image) if how == "files" else sky.write_cube(suite, prefix, freq, image)
            result = tessera("image", *args, *fit, *(["--cube"] if how == "cube" else []), "--overwrite", "-o", prefix,
                             ranks=ranks)
            if not suite.ran(label, result):
                continue
            for c in (0, 1, 4, 5, 6, 7):  # 2 and 3 have no data
                found = (cube(prefix, "model")[0][0, c] if how == "cube"
                         else read_image(f"{prefix}-{c:04d}-model.fits")[0])
                expected = wanted(s.freq[c])
                suite.below(f"{label}: model of channel {c}", np.abs(found - expected).max() /
                            np.abs(expected).max(), 1e-6)
            suite.true(f"{label}: the log says so", words is None or words in result.err)


class Opened:
    """How often files of a folder whose names end so are opened, by Linux's inotify."""

    IN_OPEN = 0x20

    def __init__(self, folder, end):
        self.libc, self.end = ctypes.CDLL(None), end
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK)
        self.libc.inotify_add_watch(self.fd, os.fsencode(folder), self.IN_OPEN)

    def count(self):
        found, names = b"", []
        with contextlib.suppress(BlockingIOError):
            while True:
                found += os.read(self.fd, 1 << 16)
        os.close(self.fd)
        while found:
            length = struct.unpack_from("iIII", found)[3]
            names.append(found[16:16 + length].rstrip(b"\0").decode())
            found = found[16 + length:]
        return sum(name.endswith(self.end) for name in names)


def check_opened_once(suite, s):
    """Each file of a set that is continued is opened for its header, once, and for its pixels: the number of
    channels makes no difference to that."""
    counts = {}
    for channels in (2, 8):
        folder = suite.path(f"opened-{channels}")
        os.mkdir(folder)
        prefix = os.path.join(folder, "set")
        Sky().write(prefix, s.freq[0] + (np.arange(channels) + .25) * 1.6e8 / channels, Sky().line)
        opened = Opened(folder, "-model.fits")
        suite.ran(f"continue {channels} channels", tessera(
            "image", s.path, *IMAGE, "--channels-out", str(channels), "--niter", "5", "--threshold", "1000Jy",
            "--continue", "--cube", "-o", prefix))
        counts[channels] = opened.count() / channels
    suite.true(f"times that a file of a set is opened {counts}", 0 < counts[8] <= counts[2])


def check_gaps(suite, s):
    """A set that lacks a file is refused by name, wherever it is read."""
    sky, freq = Sky(), s.freq[0] + np.array([.5, 2.5, 4.5, 6.5]) * 2e7
    for gap in (0, 2):
        prefix = suite.path(f"gap{gap}")
        sky.write(prefix, freq, sky.line)
        missing = f"{prefix}-{gap:04d}-model.fits"
        os.remove(missing)
        for ranks in RANKS[:3]:
            for label, args in [
                    ("predict", ["predict", s.path, "--model", prefix, "-o", suite.path("no.uvfits")]),
                    ("--subtract", ["image", s.path, *IMAGE, "--subtract", prefix, "-o", suite.path("no")]),
                    ("--continue", ["image", s.path, *IMAGE, "--channels-out", "8", "--niter", "5", "--continue",
                                    "--overwrite", "-o", prefix])]:
                result = tessera(*args, ranks=ranks)
                suite.ran(f"{label}, {ranks} ranks, without channel {gap}", result, 3)
                suite.true(f"one line {result.errors()}", len(result.errors()) == 1
                           and missing + ": is missing" in result.errors()[0])


def check_bad_axes(suite, s):
    """A cube's frequency axis that cannot be used is told in one line by whatever reads it, on any ranks."""
    sky, freq = Sky(), s.freq[0] + np.array([.5, 2.5, 4.5, 6.5]) * 2e7
    prefix = suite.path("axes")
    path = prefix + "-cube-model.fits"
    for cards, words in [(dict(CTYPE3="VRAD"), "axis of velocities"), (dict(CDELT3=0.0), "frequency axis"),
                         (dict(CUNIT3="m"), "must be Hz"), (dict(CTYPE3="FREQ-LOG"), "not linear"),
                         (dict(CRVAL3=9.0), "none of the data's")]:
        sky.write_cube(suite, prefix, freq, sky.line)
        for key, value in cards.items():
            fits_module().setval(path, key, value=value)
        for ranks in RANKS[:3]:
            for label, args in [
                    ("predict", ["predict", s.path, "--model", path, "-o", suite.path("no.uvfits")]),
                    ("--subtract", ["image", s.path, *IMAGE, "--subtract", prefix, "-o", suite.path("no")]),
                    ("--continue", ["image", s.path, *IMAGE, "--channels-out", "8", "--niter", "5", "--continue",
                                    "--join-channels", "--fit-spectral-pol", "2", "--cube", "--overwrite", "-o",
                                    prefix])][:3 if ranks < 3 else 1]:
                result = tessera(*args, ranks=ranks)
                suite.ran(f"{label}, {ranks} ranks, {cards}", result, 3)
                suite.true(f"one line {result.errors()}", len(result.errors()) == 1 and words in result.errors()[0])


# ---- what is refused ----

def check_refused(suite, s, model):
    image = [s.path, *IMAGE, "--channels-out", str(OUT), "-o", suite.path("no")]
    for label, args, status, words in [
            ("cross-hands", ["--stokes", "XX,XY", "--cube"], 2, "cross-hands"),
            ("unequal steps", ["--stokes", "IQV", "--cube"], 2, "equal steps"),
            ("WSClean's files", ["--wsclean-files", "--cube"], 2, "exclude each other")]:
        result = tessera("image", *image, *args)
        suite.ran(label, result, status)
        suite.true(f"{label}: one line", len(result.errors()) == 1
                   and words in result.errors()[0])
    short = suite.path("short")
    for c in range(2):
        for pol in "IQ"[:2 - c]:
            shutil.copy(f"{model.set}-0000-{pol}-model.fits",
                        f"{short}-{c:04d}-{pol}-model.fits")
    fits_module().setval(f"{short}-0001-I-model.fits", "CRVAL3", value=1.1e9)
    other = suite.path("other")
    for c in range(2):
        shutil.copy(f"{model.set}-0000-I-model.fits", f"{other}-{c:04d}-model.fits")
    fits_module().setval(f"{other}-0001-model.fits", "CDELT2", value=0.02)
    same = suite.path("same")
    for c in range(2):
        shutil.copy(f"{model.set}-0000-I-model.fits", f"{same}-{c:04d}-model.fits")
    for label, path, words in [
            ("another axis", model.write(suite, "bad1", CTYPE3="WAVE"), "FREQ and STOKES"),
            ("no step", model.write(suite, "bad2", CDELT3=0.0), "frequency axis"),
            ("below 0 Hz", model.write(suite, "bad3", CDELT3=-1e9), "frequency axis"),
            ("logarithms", model.write(suite, "bad4", CTYPE3="FREQ-LOG"), "not linear"),
            ("no table", model.write(suite, "bad5", CTYPE3="FREQ-TAB", PS3_0="F",
                                     PS3_1="F"), "no table"),
            ("unit", model.write(suite, "bad6", CUNIT3="m/s"), "must be Hz"),
            ("elsewhere", model.write(suite, "bad7", CRVAL3=5e9), "none of the data's"),
            ("correlations", model.write(suite, "bad8", CRVAL4=-5.0, CDELT4=-1.0),
             "no plane of Stokes"),
            ("lacking Stokes", short, short + "-0001-Q-model.fits: is missing"), ("one frequency", same, "one frequency"),
            ("other pixels", other, "are not those of"),
            ("no file", suite.path("nothing"), "cannot be opened")]:
        result = tessera("predict", s.path, "--model", path, "-o", suite.path("no.uvfits"))
        suite.ran(label, result, 3)
        suite.true(f"{label}: one line {result.errors()}", len(result.errors()) == 1
                   and words in result.errors()[0])
    result = tessera("predict", s.path, "--model", model.path, "--fit-spectral-pol", "4",
                     "-o", suite.path("no.uvfits"))
    suite.ran("more terms than channels", result, 3)
    small = [s.path, "--size", "40", "--scale", "30asec", "--subtract", model.path, "-o",
             suite.path("no")]
    suite.ran("another scale", tessera("image", *small), 3)
    ran, prefix = suite.image("kept", s.path, *IMAGE, "--channels-out", "2", "--cube")
    with open(prefix + "-cube-dirty.fits", "rb") as f:
        before = f.read()
    result = tessera("image", s.path, *IMAGE, "--channels-out", "2", "--cube", "-o", prefix)
    suite.ran("an existing cube is kept", result, 3)
    with open(prefix + "-cube-dirty.fits", "rb") as f:
        suite.true("as it was", f.read() == before)


def check_plan(suite, s):
    result = tessera("plan", s.path, *IMAGE, "--channels-out", str(OUT), "--stokes", "IQ",
                     "--cube")
    suite.ran("plan", result)
    suite.true("plan tells the cubes' size",
               f"{NX} x {NY} pixels x {OUT} channels x 2 Stokes" in result.out)


def check_memory(suite):
    """A rank's memory of 4096 channels is that of 64 and a table: less than 1 kB of each."""
    many, peak = 4096, {}
    s = Samples(suite, "many", rows=120, channels=many)
    for num in (64, many):
        profile = suite.path(f"memory{num}.json")
        result = tessera("image", s.path, *IMAGE, "--channels-out", str(num), "--cube", "--no-psf",
                         "--profile", profile, "-o", suite.path(f"memory{num}"))
        if not suite.ran(f"{num} channels", result):
            return
        with open(profile) as f:
            peak[num] = json.load(f)["totals"]["peak_memory_bytes"]
    suite.below(f"memory of each further channel: {peak} [B]",
                (peak[many] - peak[64]) / (many - 64), 1024)


def main():
    if fits_module() is None:
        skip("astropy is not there")
    suite = Suite("cubes")
    s = observe(suite)
    if BACKEND != "cpu":  # what is computed; how files are written is no matter of devices
        model, wanted = check_nearest(suite, s)
        check_polynomial(suite, s)
        check_subtract(suite, s, model, wanted)
        if mpiexec():
            check_choice(suite, s)
            check_whole_channels(suite, s)
        suite.finish()
        return
    prefix = check_pixels(suite, s)
    if prefix:
        check_axis(suite, prefix)
        check_casacore(suite, prefix)
        check_spectral_cube(suite, prefix)
    check_intervals(suite, s)
    check_one_channel(suite, s)
    check_one_plane(suite, s)
    check_stopped(suite, s)
    check_killed(suite, s)
    check_listed(suite, s)
    model, wanted = check_nearest(suite, s)
    check_polynomial(suite, s)
    check_subtract(suite, s, model, wanted)
    check_continue(suite, s)
    check_continued_spectra(suite, s)
    check_opened_once(suite, s)
    check_gaps(suite, s)
    check_bad_axes(suite, s)
    check_refused(suite, s, model)
    check_plan(suite, s)
    if FULL:
        check_memory(suite)
    suite.finish()


if __name__ == "__main__":
    main()
