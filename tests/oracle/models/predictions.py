#!/usr/bin/env python3
"""Where `tessera predict` writes: a new UVFITS of a MeasurementSet with its rows' times,
antennas and weights, and columns that are replaced only on demand; on one rank and on
three. And what: the visibilities of any single pixel are within --accuracy of the direct
sum, in a wide field the centre's too (one end of the range of n - 1), the file's single
precision (6e-8) added."""
import os
import re
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (ASEC, C_M_S, MS_COLUMN, Suite, casacore_python, fits_module, forced, have_ms,
                 mpiexec, run, simulate, tessera, write_sky)
import uvfits

RANKS = (1, 3) if mpiexec() else (1,)
EPS, STORED = 1e-6, 6e-8
SIDE, SCALE = 32, 60 * ASEC


def rows_of(path):
    """Parameters of the rows beside uvw."""
    with fits_module().open(path) as hdus:
        data = hdus[0].data
        return {name: np.array(data.par(name), "f8")
                for name in ("DATE", "BASELINE", "INTTIM")}


def make_model(suite):
    image = np.zeros((SIDE, SIDE))
    image[5, 9], image[16, 16], image[30, 2] = 1.0, -0.4, 2.5
    return uvfits.write_model(suite.path("model.fits"), image, SCALE), image


def check_new_file(suite, ms, same, model, image):
    """The MS and the UVFITS file `same` are one simulation."""
    uvw, freq, _, weight, _ = uvfits.read(same)
    wanted, rows = uvfits.direct_predict(uvw, freq, image, SCALE), rows_of(same)
    # both have single-precision uvw, the prediction is made for the MS's double ones
    turns = np.abs(uvw).max() * freq.max() / C_M_S * np.hypot(SIDE, SIDE) / 2 * SCALE
    limit = EPS + STORED + 2 * np.pi * turns * 3 * STORED
    suite.true("some rows are flagged", 0 < (weight <= 0).sum() < weight.size)
    for ranks in RANKS:
        for passes in (1, 3):
            out = suite.path("new.uvfits")
            label = f"MS to UVFITS, {ranks} ranks, {passes} passes"
            result = tessera("predict", ms, "--model", model, "--accuracy", str(EPS),
                             *forced(passes=str(passes)), "--overwrite", "-o", out,
                             ranks=ranks)
            if not suite.ran(label, result):
                continue
            found = uvfits.read(out)
            suite.true(f"{label}: uvw", np.array_equal(found[0], uvw))
            suite.true(f"{label}: weights", np.array_equal(found[3], weight))
            for name, values in rows_of(out).items():
                suite.true(f"{label}: {name}", np.array_equal(values, rows[name]))
            for k in range(2):
                error = np.linalg.norm(found[2][..., k] - wanted) / np.linalg.norm(wanted)
                suite.below(f"{label}: correlation {k}", error, limit)


def column(suite, ms, name):
    """A column's values, or None when they cannot be read."""
    out, python = suite.path("column.npy"), casacore_python()
    if not python or run([python, MS_COLUMN, ms, name, out], 60).status != 0:
        return None
    return np.load(out)


def check_columns(suite, ms, model):
    observed = column(suite, ms, "DATA")
    predict = ("predict", ms, "--model", model, "--column")
    for ranks in RANKS:
        copy = suite.path("copy.ms")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(ms, copy)
        predict = ("predict", copy, "--model", model, "--column")
        suite.ran(f"a new column, {ranks} ranks",
                  tessera(*predict, "MODEL_DATA", ranks=ranks))
        for name in ("DATA", "MODEL_DATA"):
            result = tessera(*predict, name, ranks=ranks)
            suite.ran(f"existing {name}, {ranks} ranks", result, 3)
            errors = result.errors()
            suite.true("one line that says so", len(errors) == 1 and name in errors[0]
                       and "--overwrite" in errors[0])
        if observed is not None:
            suite.true("DATA are untouched",
                       np.array_equal(column(suite, copy, "DATA"), observed))
        for name in ("MODEL_DATA", "DATA"):
            suite.ran(f"{name} with --overwrite, {ranks} ranks",
                      tessera(*predict, name, "--overwrite", ranks=ranks))
        if observed is not None:
            suite.true("DATA are predicted", np.array_equal(
                column(suite, copy, "DATA"), column(suite, copy, "MODEL_DATA")))


def others(cards):
    return [str(card) for card in cards if card.keyword not in ("HISTORY", "CHECKSUM",
                                                                "DATASUM")]


def check_history(suite, observation, model):
    """HISTORY cards say what made the visibilities, without a terminal's escapes; nothing
    else of the file changes, however much room its header had, and sums that no longer
    hold are left out."""
    fits = fits_module()
    escapes = suite.path("mo\x1b[31mdel.fits")
    shutil.copy(model, escapes)
    for lines in (0, 20, 36):           # a block of a header has 36 cards
        source = suite.path("told.uvfits")
        with fits.open(observation) as hdus:
            for k in range(lines):
                hdus[0].header.add_history(f"line {k}")
            hdus.writeto(source, overwrite=True, checksum=lines > 0)
            before = fits.open(source)
        for ranks in RANKS:
            out, label = suite.path("telling.uvfits"), f"HISTORY, {lines} lines, {ranks} ranks"
            result = tessera("predict", source, "--model", escapes, "-o", out, "--overwrite",
                             ranks=ranks)
            if not suite.ran(label, result):
                continue
            with fits.open(out) as after:
                told = [str(line) for line in after[0].header["HISTORY"]]
                text = "".join(line[2:] if line.startswith("  ") else line
                               for line in told[lines:]).replace(" ", "")
                suite.equal(f"{label}: lines of the source", told[:lines],
                            [f"line {k}" for k in range(lines)])
                suite.true(f"{label}: {told[lines:]}", re.match(r"tessera [0-9]", told[lines])
                           and "tesserapredict" in text and "--overwrite" in text
                           and "mo?[31mdel.fits" in told[-1] + text
                           and "\x1b" not in text)
                suite.equal(f"{label}: other cards", others(after[0].header.cards),
                            others(before[0].header.cards))
                suite.true(f"{label}: no sums", "CHECKSUM" not in after[0].header
                           and "DATASUM" not in after[0].header)
                suite.true(f"{label}: uvw", all(np.array_equal(
                    after[0].data.par(k), before[0].data.par(k)) for k in range(3)))
                suite.equal(f"{label}: tables", [h.name for h in after],
                            [h.name for h in before])
                suite.true(f"{label}: table of antennas", np.array_equal(
                    after[1].data["STABXYZ"], before[1].data["STABXYZ"]))
            if shutil.which("fitsverify"):
                # what it has against the source, it may have against the copy
                found = [run(["fitsverify", "-q", path], 60).out.split(",", 1)[-1]
                         for path in (source, out)]
                suite.equal(f"{label}: fitsverify", found[1], found[0])
        before.close()


HISTORY = """
import sys
from casacore.tables import table
rows = table(sys.argv[1] + "/HISTORY", ack=False)
for row in rows:
    print(row["APPLICATION"], row["ORIGIN"], row["MESSAGE"], *row["CLI_COMMAND"], sep="|")
"""


def check_history_of_column(suite, ms, model):
    """A row more in the HISTORY table; a set without that table is written to all the
    same, with a warning. The images of a set tell their column."""
    fits, python = fits_module(), casacore_python()
    for ranks in RANKS:
        copy, prefix = suite.path("told.ms"), suite.path("told")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(ms, copy)
        predict = ("predict", copy, "--model", model, "--overwrite", "--column")
        suite.ran(f"HISTORY of a set, {ranks} ranks",
                  tessera(*predict, "MODEL_DATA", ranks=ranks))
        if python:
            rows = run([python, "-c", HISTORY, copy], 60).out.splitlines()
            suite.equal(f"{ranks} ranks: rows", len(rows), 2)
            words = rows[-1].split("|")
            suite.true(f"{ranks} ranks: {words}", words[0] == "tessera"
                       and re.match(r"tessera [0-9]", words[1]) and "MODEL_DATA" in words[2]
                       and model in words[2] and words[3].startswith("tessera predict ")
                       and "--column MODEL_DATA" in words[3])
        for name in ("DATA", "MODEL_DATA"):
            suite.ran(f"image of {name}", tessera(
                "image", copy, "--size", 32, "--scale", "60asec", "--datacolumn", name,
                "--overwrite", "-o", prefix, ranks=ranks))
            for kind in ("dirty", "psf"):
                suite.equal(f"DATACOL, {ranks} ranks, {kind}", fits.getheader(
                    f"{prefix}-{kind}.fits")["DATACOL"], name)
        shutil.rmtree(os.path.join(copy, "HISTORY"))
        result = tessera(*predict, "MODEL_DATA", ranks=ranks)
        suite.ran(f"no HISTORY, {ranks} ranks", result)
        suite.true(f"no HISTORY: {result.err[-300:]}",
                   len(re.findall("warning: .*HISTORY", result.err)) == 1)


def check_units(suite, observation, image):
    """Jy/pixel or nothing said; Jy/beam with a warning; no other unit, and no pixel that is not finite."""
    fits = fits_module()
    for ranks in RANKS:
        for unit, pixel, status, word in (
                ("JY/PIXEL", 1, 0, None), ("Jy/pixel", 1, 0, None), (None, 1, 0, None),
                ("JY/BEAM", 1, 0, "JY/BEAM"), ("K", 1, 3, "'K'"), ("mJy/pixel", 1, 3, "mJy"),
                ("JY/PIXEL", np.nan, 3, "pixel (8, 21) of the model is blank (NaN)"),
                ("JY/PIXEL", -np.inf, 3, "pixel (8, 21) of the model is infinite")):
            values = image.copy()
            values[20, 7] = pixel
            model = uvfits.write_model(suite.path("unit.fits"), values, SCALE)
            with fits.open(model, mode="update") as hdus:
                del hdus[0].header["BUNIT"]
                if unit:
                    hdus[0].header["BUNIT"] = unit
            for layout in ([], forced(fft_ranks=3))[:2 if ranks == 3 else 1]:
                out, label = suite.path("unit.uvfits"), f"{unit}, a pixel of {pixel}, {ranks} ranks"
                result = tessera("predict", observation, "--model", model, "-o", out,
                                 "--overwrite", *layout, ranks=ranks)
                suite.ran(label, result, status)
                said = [s for s in result.err.splitlines() if s.startswith("tessera: ")]
                suite.equal(f"{label}: lines", len(said), 1 if word else 0)
                if word and said:
                    suite.true(f"{label}: {said[0]}", word in said[0])


def check_horizon(suite, observation):
    """Blank pixels beyond the horizon are 0."""
    y, x = np.mgrid[:32, :32] - 16
    beyond = np.hypot(x, y) * np.deg2rad(5) > 1.2
    found = []
    for name, value in (("zero", 0), ("nan", np.nan)):
        image = np.where(beyond, value, 0)
        image[17, 14] = 1
        model = uvfits.write_model(suite.path(f"{name}.fits"), image, np.deg2rad(5))
        out = suite.path(f"{name}.uvfits")
        suite.ran(f"horizon: {name}", tessera("predict", observation, "--model", model, "-o", out), 0)
        found.append(fits_module().getdata(out).copy())
    suite.true("blank pixels beyond the horizon", beyond.any() and np.array_equal(
        found[0]["DATA"], found[1]["DATA"]))


def check_pixels(suite):
    side, scale, freq = 256, np.deg2rad(10) / 256, 1e9 + 5e7 * np.arange(2)
    extent = 0.47 / scale * C_M_S / freq[-1]
    uvw = uvfits.random_tracks(800, extent, 3, seed=3)
    obs, out = suite.path("pixels.uvfits"), suite.path("pixels-out.uvfits")
    uvw = uvfits.write(obs, uvw, freq, np.ones((800, 2, 2), "c8"), np.ones((800, 2, 2)))
    for name, at in (("corner", (0, 0)), ("edge", (side // 2, 0)),
                     ("centre", (side // 2, side // 2)), ("any", (37, 201))):
        image = np.zeros((side, side))
        image[at] = 1
        model = uvfits.write_model(suite.path("pixel.fits"), image, scale)
        wanted = uvfits.direct_predict(uvw, freq, image, scale)
        for accuracy in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
            label = f"{name} at {accuracy:g}"
            result = tessera("predict", obs, "--model", model, "--accuracy", str(accuracy),
                             "--overwrite", "-o", out)
            if suite.ran(label, result):
                found = uvfits.read(out)[2][..., 0]
                suite.below(f"{label}: L2 error",
                            np.linalg.norm(found - wanted) / np.linalg.norm(wanted),
                            accuracy + STORED)
    check_windows(suite, ("predict", obs, "--model", model, "--overwrite", "-o", out), out)


def check_windows(suite, predict, out):
    """However many planes are held at a time, the same but for the rounding of sums."""
    for accuracy, rounding in (("1e-4", 3e-7), ("1e-7", STORED)):
        found = {}
        for planes in (1, 3, 1000):
            for ranks in (1, 2):
                label = f"{accuracy}, {planes} planes at a time, {ranks} ranks"
                if suite.ran(label, tessera(*predict, "--accuracy", accuracy,
                                            *forced(plane_window=planes), ranks=ranks)):
                    found[label] = uvfits.read(out)[2]
        first = next(iter(found.values()))
        for label, vis in found.items():
            suite.below(f"{label}: difference",
                        np.linalg.norm(vis - first) / np.linalg.norm(first), rounding)


def main():
    suite = Suite("predictions")
    fits_module()
    check_pixels(suite)
    if not have_ms():
        suite.finish()
        return
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    # the source rises through 18 degrees: rows below are flagged
    common = dict(duration="20min", integration="60s", channels=3,
                  extra=("--hour-angle=-2.5h", "--noise", "0.5Jy", "--min-elevation",
                         "18deg"))
    ms, same = (simulate(suite.path("set" + ending), sky, **common)
                for ending in (".ms", ".uvfits"))
    simulate(suite.path("good.uvfits"), sky, duration="2min", channels=1)
    model, image = make_model(suite)
    check_new_file(suite, ms, same, model, image)
    check_columns(suite, ms, model)
    check_history(suite, suite.path("good.uvfits"), model)
    check_history_of_column(suite, ms, model)
    check_units(suite, suite.path("good.uvfits"), image)
    check_horizon(suite, suite.path("good.uvfits"))
    suite.finish()


if __name__ == "__main__":
    main()
