#!/usr/bin/env python3
"""tessera-station-beams: directions of region files, h5parms that tessera reads back (with a telescope that is a
formula), what is refused, and, where EveryBeam is installed (TESS_EVERYBEAM_PYTHON, or the tests' Python), the beams of
a LOFAR set against EveryBeam's own answers.

Limits: phases and amplitudes are stored in double precision.
"""
import importlib.util
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from e2e import ROOT, Suite, data_folder, have_ms, lacks, run, tessera  # noqa: E402
import facets  # noqa: E402 (of a room that e2e knows)

PROGRAM = os.path.join(ROOT, "app", "python", "tessera", "station_beams.py")

# The answers of EveryBeam for the places of a file, to compare with what is in it.
ANSWERS = """
import sys
import types
import h5py
import numpy as np
sys.path.insert(0, sys.argv[1])
import station_beams as beams
telescope = beams.load_telescope(types.SimpleNamespace(obs=sys.argv[2], datacolumn="DATA", normalise="full",
                                                       element_response="default", coeff_path=""))
with h5py.File(sys.argv[3], "r") as file:
    table, where = file["sol000/amplitude000"], file["sol000/source"]["dir"].astype(float)
    value = table["val"][:] * np.exp(1j * file["sol000/phase000/val"][:])
    time, freq = table["time"][:], table["freq"][:]
worst = 0
for t, f, s, d in ((0, 0, 0, 0), (-1, -1, 3, 1), (0, -1, 7, 2)):
    answer = telescope.station_response(time[t], s, freq[f], *where[d]).ravel()
    worst = max(worst, np.abs(answer - value[t, f, s, d]).max())
print("worst", worst, "middle", np.abs(value[:, :, :, 0] - [1, 0, 0, 1]).max(), value.shape)
"""


class Formula:
    """A telescope of two stations, whose matrices tell all that they are asked for."""
    nr_stations = 2

    @staticmethod
    def station_response(time, station, freq, ra, dec, field=0):
        if station == 1 and ra > 2.19:
            return np.full((2, 2), np.nan)
        scale = (1 + station) * freq / 1e8 * np.exp(1j * (time - 5e9) / 300)
        return scale * np.array([[1 + ra, dec], [.1j, 2 - dec]])


def load():
    spec = importlib.util.spec_from_file_location("station_beams", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    sys.modules["station_beams"] = module
    spec.loader.exec_module(module)
    return module


def check_directions(suite, beams, folder):
    found = beams.directions(os.path.join(folder, "facets.reg"))
    suite.equal("names of facets", [d.name for d in found], ["[dir0]", "[dir1]", "[dir2]"])
    suite.below("points of facets", np.abs(np.degrees([found[2].ra, found[2].dec]) - [125.87431964, 33.98169464]).max(),
                1e-9)
    labels = beams.directions(os.path.join(folder, "real", "labels.reg"))
    suite.equal("labels behind polygons and points", [d.name for d in labels],
                ["[CygA]", "[CygAO]", "[CygTJ]", "[facet4]"])
    square = beams.regions("a.reg", "polygon(12h00m00s,-1:00:00,12:08:00,-1:0:0,182,1,180,1)")
    suite.below("the centroid of a square", np.abs(np.degrees([square[0].ra - np.pi, square[0].dec]) - [1, 0]).max(),
                1e-9)
    four = beams.directions(os.path.join(folder, "real", "four-facets.reg"))
    suite.equal("facets without labels", [d.name for d in four], [f"[facet{k}]" for k in range(1, 5)])
    for name, text, words in (("box", "box(1,2,3,4,0)", "no polygon"), ("short", "\npolygon(1,2,3,4)", "line 2"),
                              ("odd", "polygon(1,2,3,4,5)", "line 1"), ("frame", "galactic", "'galactic'")):
        try:
            beams.regions("a.reg", text)
            suite.true(f"{name}: refused", False)
        except beams.Failure as failure:
            suite.true(f"{name}: {failure}", words in str(failure) and failure.status == 3)
    return found


def check_file(suite, beams, folder, where):
    """What is written is what tessera reads."""
    if not facets.have_h5py():
        return
    path, size = suite.path("beams.h5"), ("--size", 512, "--scale", "15asec", "--center", "125deg,34deg")
    obs = beams.Observation(np.array([5e9 + 60, 5e9 + 180]), np.array([1.2e8, 1.4e8, 1.5e8]), ["CS001HBA0", "A"],
                            np.zeros((2, 3)))
    jones = beams.responses(Formula, obs, where)
    beams.write_whole(path, False, obs, where, jones)
    axis = {"ant": [name.encode() for name in obs.stations]}
    questions = [(a, d, t, f) for a in (0, 1) for d in range(3) for t in obs.time for f in obs.freq]
    good, found = facets.ask(path, "nearest", axis, [(d.ra, d.dec) for d in where], questions)
    if good is None:
        suite.true(f"the file is read: {found}", False)
        return
    wanted = np.array([np.ravel(Formula.station_response(t, a, f, where[d].ra, where[d].dec))
                       for a, d, t, f in questions])
    suite.equal("matrices that count", list(good), list(np.isfinite(wanted).all(-1)))
    suite.below("matrices", np.abs(found - np.where(good[:, None], wanted, 0)).max(), 1e-12)
    shown = tessera("facets", os.path.join(folder, "facets.reg"), *size, "--solutions",
                    f"{path},{os.path.join(folder, 'solutions.h5')}")
    suite.true(f"stations of another set: {shown.errors()}", shown.status == 3 and "antenna" in shown.err)
    alone = tessera("facets", os.path.join(folder, "facets.reg"), *size, "--solutions", path)
    suite.ran("beams of facets", alone)
    suite.equal("each facet has its direction", alone.out.count("[dir"), 3)
    suite.equal("directions of a file", [d.name for d in beams.directions(path)], [d.name for d in where])
    try:
        beams.write_whole(path, False, obs, where, jones)
        suite.true("an existing file is refused", False)
    except beams.Failure as failure:
        suite.equal("an existing file is refused", failure.status, 3)
    suite.equal("nothing else is left", [n for n in os.listdir(suite.path("")) if n.startswith("beams.h5.")], [])


def check_everybeam(suite, obs, folder):
    """The program itself: without EveryBeam one line, with it its answers."""
    python = os.environ.get("TESS_EVERYBEAM_PYTHON", sys.executable)
    regions, out = suite.path("around.reg"), suite.path("lofar.h5")
    with open(regions, "w", encoding="utf-8") as file:  # the first is the phase centre of the set
        for x, y in ((24.42208, 33.15976), (25.1, 33.4), (23.6, 32.5)):
            file.write(f"polygon({x - .1},{y - .1},{x + .1},{y - .1},{x},{y + .1})\npoint({x},{y})\n")
    taken = run([python, PROGRAM, obs, regions, "-o", regions], 60)
    suite.true(f"an output that is there: {taken.err.strip()}", taken.status == 3 and "is there already" in taken.err)
    wrong = run([python, PROGRAM, obs, regions + "x", "-o", out], 60)
    suite.true(f"no regions: {wrong.err.strip()}", wrong.status == 3 and "around.regx" in wrong.err)
    if run([python, "-c", "import everybeam, h5py, casacore"], 60).status != 0:
        lacks("beams of a LOFAR set: EveryBeam is not installed (TESS_EVERYBEAM_PYTHON)")
        none = run([python, PROGRAM, obs, regions, "-o", out], 60)
        suite.true(f"without EveryBeam: {none.err.strip()}", none.status == 4 and "pip install" in none.err and
                   len(none.err.splitlines()) == 1 and not os.path.exists(out))
        return
    made = run([python, PROGRAM, obs, regions, "-o", out, "--update", "2s", "--freq-step", "100kHz",
                "--normalise", "full"], 120)
    if not suite.ran(f"beams of a LOFAR set: {made.err[-200:]}", made):
        return
    answer = run([python, "-c", ANSWERS, os.path.dirname(PROGRAM), obs, out], 120)
    words = answer.out.split()
    suite.ran(f"EveryBeam's own answers: {answer.out.strip()}", answer)
    suite.below("matrices of EveryBeam", float(words[1]), 1e-6)
    suite.below("a full normalisation makes the phase centre 1", float(words[3]), 1e-4)
    shown = tessera("facets", regions, "--size", 2048, "--scale", "5asec", "--center", "24.42208deg,33.15976deg",
                    "--solutions", out)
    suite.ran("tessera reads them", shown)
    other = run([python, PROGRAM, os.path.join(folder, "meerkat-cdfs-allflagged.ms"), regions, "-o", out,
                 "--overwrite"], 60)
    suite.true(f"no stations: {other.err.strip()[-200:]}", other.status == 3 and "EveryBeam has no beam" in other.err)


def main():
    suite = Suite("station beams")
    beams, folder = load(), data_folder("data", "facets")
    where = check_directions(suite, beams, folder)
    check_file(suite, beams, folder, where)
    if have_ms():
        check_everybeam(suite, data_folder("data", "ms", "lofar-3C48-msss.ms"), data_folder("data", "ms"))
    suite.finish()


if __name__ == "__main__":
    main()
