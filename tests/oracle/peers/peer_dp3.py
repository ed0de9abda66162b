#!/usr/bin/env python3
"""DP3 calibrates with the MODEL_DATA that tessera writes, by the manual's command, and predicts
tessera's lists of sources as tessera does. Skipped (77) without DP3 and casacore's Python module.

DP3 is `DP3` on PATH, or `DP3.py` beside TESS_CASA_PYTHON: `. tests/setup.sh; tess_setup_casa
FOLDER` installs it.
"""
import os
import shlex
import shutil
import sys
import tarfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (Suite, casacore_python, data_folder, dp3_program, fits_module, have_ms, read_image, run,
                 simulate, skip, tessera)
from peer_casa import (ANTENNAS, CHANNELS, CLEAN, DEC, NOISE_JY, RA, SOURCES, dynamic_range,
                       recipe)

MINUTES, INTEGRATION_S, STEP_RAD = 30, 30, 0.05
HEAD = ("Format = Name, Type, Ra, Dec, I, Q, U, V, SpectralIndex, LogarithmicSI, "
        "ReferenceFrequency='1.0e9', MajorAxis, MinorAxis, Orientation\n")
# Powers, polynomials, Gaussians and polarisation, near the centre and four degrees from it.
POINTS = """a,POINT,04:00:00,-30.00.00,1,0.1,0.05,0.02,[],true,,,,
b,POINT,04:00:07.2,-29.59.24,0.4,0,0,0,[-0.7,0.1],true,,,,
c,POINT,03:59:50.4,-30.01.48,0.15,0,0,0,[-0.3,0.2],false,,,,
d,POINT,04:10:50.4,-33.31.48,0.8,0.1,0.2,0.4,[],true,,,,
"""
GAUSSIANS = """e,GAUSSIAN,04:00:07.2,-29.59.24,0.4,0,0,0,[],true,,20,10,45
f,GAUSSIAN,03:59:30,-30.10.00,0.6,0,0,0,[],true,,8,8,0
"""
FLUX = {"points": 2.35, "gaussians": 1.0}
SKY = HEAD + "".join(f"s{k},POINT,{RA + ra}deg,{DEC + dec}deg,{flux},0,0,0,[],true,,,,\n"
                     for k, (ra, dec, flux) in enumerate(SOURCES))

CORRUPT = """
import numpy as np
from casacore.tables import table
with table("obs.ms", readonly=False, ack=False) as main:
    interval = np.unique(main.getcol("TIME"), return_inverse=True)[1]
    steps = np.random.default_rng(5).normal(size=(interval.max() + 1, %d))
    gain = np.exp(1j * (0.5 * steps[0] + np.cumsum(%g * steps, axis=0)))
    p, q = (gain[interval, main.getcol(c)] for c in ("ANTENNA1", "ANTENNA2"))
    data, flags = main.getcol("DATA") * (p * q.conj())[:, None, None], main.getcol("FLAG")
    data[::100], flags[::100] = np.nan, True
    main.putcol("DATA", data)
    main.putcol("FLAG", flags)
"""
# rms of what CORRECTED_DATA has beyond MODEL_DATA, in parallel hands.
LEFT = """
import numpy as np
from casacore.tables import table
with table("obs.ms", ack=False) as main:
    good = ~main.getcol("FLAG")[..., [0, 3]]
    left = (main.getcol("%s") - main.getcol("MODEL_DATA"))[..., [0, 3]][good]
print(np.sqrt(np.mean(np.abs(left) ** 2)))
"""
DIFFERENCE = """
import numpy as np
from casacore.tables import table
own, found = (table(path, ack=False).getcol(column) for path, column in
              (("obs.ms", "MODEL_DATA"), ("dp3.ms", "DATA")))
print(%s)
"""
MOST, L2 = (DIFFERENCE % number for number in (
    "np.abs(own - found).max()", "np.linalg.norm(own - found) / np.linalg.norm(found)"))


class Peer:
    """Runs DP3, and what reads its tables, in the test's folder."""

    def __init__(self, suite, program, python):
        self.suite, self.program, self.python = suite, program, python
        # DP3 does not start with several threads in OpenBLAS
        self.env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "HOME": suite.work}

    def dp3(self, what, arguments):
        result = run([self.program, *arguments], 120, cwd=self.suite.work, env=self.env)
        return self.suite.ran(f"DP3: {what}", result)

    def tables(self, what, program):
        """What the program prints, as a number; NaN when it fails."""
        result = run([self.python, "-c", program], 120, cwd=self.suite.work)
        return float(result.out or 0) if self.suite.ran(what, result) else np.nan

    def tessera(self, what, *args):
        return self.suite.ran(what, tessera(*args, cwd=self.suite.work))


def write(suite, name, text):
    with open(suite.path(name), "w") as file:
        file.write(text)
    return name


def check_gaincal(suite, peer):
    """The manual's line, with tessera's own model of a corrupted sky, and with the true one."""
    words = shlex.split(recipe("With DP3", "sh").replace("\\\n", ""))
    suite.equal("the manual's command", words[0], "DP3")
    first, second = suite.path("first"), suite.path("second")
    peer.tessera("image and MODEL_DATA", "image", "obs.ms", "-o", first, *CLEAN, "--auto-mask", "6",
                 "--update-model")
    if not peer.dp3("gaincal", words[1:]):
        return
    peer.tessera("image CORRECTED_DATA", "image", "obs.ms", "-o", second, *CLEAN, "--auto-mask", "6")
    before, after = dynamic_range(first), dynamic_range(second)
    suite.true(f"dynamic range {before:.0f}, then {after:.0f}", before < 50 and after > 3 * before)
    peer.tessera("predict the sky", "predict", "obs.ms", "--model", "sky.txt", "--column",
                 "MODEL_DATA", "--overwrite")
    peer.dp3("gaincal once more", words[1:])
    noise = np.sqrt(2) * NOISE_JY  # of complex samples
    suite.true("DATA are not the model", peer.tables("DATA", LEFT % "DATA") > 5 * noise)
    # The phase of an antenna takes a random step of STEP_RAD in each integration. A solution is the
    # mean of n = 4 integrations, whose mean square distance from it is (n² - 1) / 6n squared steps.
    drift = STEP_RAD * np.sqrt(2 * 15 / 24) * np.sqrt(sum(flux ** 2 for *_, flux in SOURCES))
    suite.below("rms of CORRECTED_DATA less the model (Jy)",
                peer.tables("CORRECTED_DATA", LEFT % "CORRECTED_DATA"), 1.02 * np.hypot(noise, drift))


def check_prediction(suite, peer, name, text, limit, why):
    write(suite, name, text)
    shutil.rmtree(suite.path("dp3.ms"), ignore_errors=True)
    peer.tessera(f"predict {name}", "predict", "obs.ms", "--model", name, "--column", "MODEL_DATA",
                 "--overwrite")
    if peer.dp3(f"predict {name}", ["msin=obs.ms", "msout=dp3.ms", "steps=[predict]",
                                    f"predict.sourcedb={name}"]):
        suite.below(f"{name}: predictions of DP3 and tessera, {why} (Jy)",
                    peer.tables("difference", MOST), limit)


def check_predictions(suite, peer):
    check_prediction(suite, peer, "points.txt", HEAD + POINTS, FLUX["points"] * 6e-8,
                     "rounded to single precision")
    # tessera's Gaussians have the first order of w, and DP3's have none
    check_prediction(suite, peer, "gaussians.txt", HEAD + GAUSSIANS, FLUX["gaussians"] * 2e-4, "w")
    # --multiscale writes Gaussians, too
    peer.tessera("a list of components", "image", "obs.ms", "-o", "listed", *CLEAN, "--auto-mask",
                 "6", "--datacolumn", "CORRECTED_DATA", "--save-source-list")
    with open(suite.path("listed-sources.txt")) as file:
        text = file.read()
    total = read_image(suite.path("listed-model.fits"))[0]
    suite.true(f"it has {text.count('POINT')} components", text.count("POINT") > 3)
    check_prediction(suite, peer, "listed.txt", text, np.abs(total).sum() * 1.2e-7,
                     "rounded to single precision")


def write_facet_sky(suite, folder):
    """Three points on pixels in each of three facets: a model image, and DP3's patches, a facet each."""
    fits = fits_module()
    from astropy.wcs import WCS
    with fits.open(os.path.join(folder, "wsclean-dd-dirty.fits")) as file:
        header = file[0].header
    random, image, text = np.random.default_rng(3), np.zeros((1, 1, 512, 512), "f4"), ""
    for facet, columns in enumerate(((370, 500), (210, 300), (10, 150))):
        for k in range(3):
            x, y = int(random.integers(*columns)), int(random.integers(20, 490))
            image[0, 0, y, x] = random.uniform(.5, 3)
            ra, dec = WCS(header).celestial.all_pix2world(x, y, 0)
            where = f"{float(ra):.10f}deg,{float(dec):.10f}deg"
            text += (f",,dir{facet},{where}\n" if k == 0 else "") + \
                f"s{facet}{k},POINT,dir{facet},{where},{image[0, 0, y, x]:.9f},,\n"
    fits.writeto(suite.path("facets.fits"), image, header, output_verify="silentfix")
    return write(suite, "facets.txt", "Format = Name, Type, Patch, Ra, Dec, I, ReferenceFrequency='150e6', "
                 "SpectralIndex='[]'\n" + text)


def check_facets(suite, peer):
    """Predictions of facets with the amplitudes and phases of an h5parm, each by its own program."""
    if os.environ.get("TESS_HAVE_HDF5", "ON") != "ON":
        return
    folder = data_folder("data", "facets")
    sky, solutions = write_facet_sky(suite, folder), os.path.join(folder, "solutions.h5")
    for name in ("obs.ms", "dp3.ms"):
        shutil.rmtree(suite.path(name), ignore_errors=True)
    with tarfile.open(os.path.join(folder, "obs.ms.tgz")) as packed:
        packed.extractall(suite.work)
    peer.tessera("predict facets", "predict", "obs.ms", "--model", "facets.fits", "--column", "MODEL_DATA",
                 "--facets", os.path.join(folder, "facets.reg"), "--facet-solutions", solutions, "--accuracy", "1e-6")
    of = "h5parmpredict.applycal."
    if peer.dp3("predict facets", ["msin=obs.ms", "msout=dp3.ms", "steps=[h5parmpredict]",
                                   f"h5parmpredict.sourcedb={sky}", f"{of}parmdb={solutions}",
                                   f"{of}correction=phase000", f"{of}steps=[amp,phase]",
                                   f"{of}amp.correction=amplitude000", f"{of}phase.correction=phase000"]):
        suite.below("predictions of DP3 and tessera with solutions of facets: the accuracy asked for",
                    peer.tables("difference", L2), 1e-6)


def main():
    program, python = dp3_program(), casacore_python()
    if not program:
        skip("DP3 is not there; have it on PATH, or set TESS_CASA_PYTHON")
    fits_module()
    if not have_ms() or not python:
        skip("no MeasurementSets, or no casacore")
    suite = Suite("dp3")
    peer = Peer(suite, program, python)
    write(suite, "sky.txt", SKY)
    simulate(suite.path("obs.ms"), suite.path("sky.txt"), layout="meerkat",
             duration=f"{MINUTES}min", integration=f"{INTEGRATION_S}s", freq="1.28GHz", width="2MHz",
             channels=CHANNELS, pol="XX,XY,YX,YY",
             extra=["--antennas", ANTENNAS, "--noise", f"{NOISE_JY}Jy"])
    suite.ran("antenna phases", run([python, "-c", CORRUPT % (ANTENNAS, STEP_RAD)], 60, cwd=suite.work))
    check_gaincal(suite, peer)
    check_predictions(suite, peer)
    check_facets(suite, peer)
    suite.finish()


if __name__ == "__main__":
    main()
