#!/usr/bin/env python3
"""Spoil a MeasurementSet in one way, by casacore.

usage: spoil_ms.py MS WAY

WAY: rows (removes them all); frequency, frequency-inf; uvw, antenna, antenna-negative,
data, data-inf, weight (negative), weight-nan, row-weight, row-weight-nan (those of a set
without WEIGHT_SPECTRUM): all rows, with `-some` only rows 0, 3, 6 ...; channels (the
window has one more than the data); shape, shape-first, shape-more, shape-none (the DATA
of one row, the first or the middle one, has a channel less than its window, a channel
more, or is not there); half-COLUMN (tiled, with cells in the first half of the rows
alone; half-other: WEIGHT_SPECTRUM with cells of another shape in the other half);
flag_row; dcomplex (DATA in double precision); random-N (a value, a row or a column of some table, chosen by the
number N, which is said).

A script of its own because python3-casacore may belong to another interpreter than the
tests'. Exit status 77 without casacore.
"""
import os
import random
import shutil
import sys

try:
    import numpy as np
    from casacore.tables import makearrcoldesc, maketabdesc, table
except ImportError:
    sys.exit(77)


def spoil_window(ms, way):
    with table(ms + "::SPECTRAL_WINDOW", readonly=False, ack=False) as t:
        freq = t.getcol("CHAN_FREQ")
        if way == "channels":
            longer = np.append(freq, freq[:, -1:] + 1e6, axis=1)
            for name in ("CHAN_FREQ", "CHAN_WIDTH", "EFFECTIVE_BW", "RESOLUTION"):
                for row in range(t.nrows()):
                    t.putcell(name, row, longer[row])
            t.putcol("NUM_CHAN", t.getcol("NUM_CHAN") + 1)
        else:
            freq[:, -1] = np.inf if way.endswith("inf") else np.nan
            t.putcol("CHAN_FREQ", freq)


def spoil_shape(t, way):
    """DATA once more as a column of any shapes, one of them wrong."""
    data = t.getcol("DATA")
    t.removecols("DATA")
    t.addcols(maketabdesc(makearrcoldesc("DATA", 0j, ndim=2, valuetype="complex",
                                         datamanagertype="TiledShapeStMan",
                                         datamanagergroup="AnyData")))
    wrong = 0 if way == "shape-first" else t.nrows() // 2
    for row in range(t.nrows()):
        if row != wrong:
            t.putcell("DATA", row, data[row])
        elif way == "shape-more":
            t.putcell("DATA", row, np.append(data[row], data[row][:1], axis=0))
        elif way != "shape-none":
            t.putcell("DATA", row, data[row][:-1])


def spoil_half(t, column):
    """A column as CASA's concat leaves it of a set that has it and one that has not."""
    other, column = column == "other", "WEIGHT_SPECTRUM" if column == "other" else column
    cells = t.getcol("DATA" if column == "CORRECTED_DATA" else column)
    for name in {column, "WEIGHT_SPECTRUM"} if column == "WEIGHT" else {column}:
        if name in t.colnames():
            t.removecols(name)
    kind = {"f": "float", "c": "complex", "b": "boolean"}[cells.dtype.kind]
    t.addcols(maketabdesc(makearrcoldesc(column, cells.flat[0].item(), valuetype=kind,
                                         ndim=cells.ndim - 1)),
              {"TYPE": "TiledShapeStMan", "NAME": "Half",
               "DEFAULTTILESHAPE": [*cells.shape[:0:-1], 100]})
    half = len(cells) // 2
    for row in range(len(cells) if other else half):
        cell = cells[row] if row < half else cells[row][:-1]
        t.putcell(column, row, 4 * cell if column == "WEIGHT_SPECTRUM" else cell)


def spoil_type(t):
    """DATA in double precision, as numpy has it."""
    data = t.getcol("DATA")
    t.removecols("DATA")
    t.addcols(maketabdesc(makearrcoldesc("DATA", 0j, ndim=2, valuetype="dcomplex")))
    t.putcol("DATA", data.astype("c16"))


SUBTABLES = ("", "", "", "ANTENNA", "FIELD", "DATA_DESCRIPTION", "POLARIZATION",
             "SPECTRAL_WINDOW", "OBSERVATION")


def change_value(t, rng):
    """Some cells of some column become what no set should hold."""
    column = rng.choice(t.colnames())
    rows = range(t.nrows()) if rng.random() < .5 else [rng.randrange(t.nrows())]
    number = rng.choice((0, -1, 1, 1000, 2**31 - 1, -2**31))
    for row in rows:
        if not t.iscelldefined(column, row):
            continue
        cell = t.getcell(column, row)
        if isinstance(cell, str):
            cell = rng.choice(("", "x" * 5000, "\x1b[31m"))
        elif isinstance(cell, np.ndarray) and cell.size:
            flat = cell.reshape(-1)
            if cell.dtype.kind in "fc":
                flat[rng.randrange(cell.size):] = rng.choice((np.nan, np.inf, number))
            elif cell.dtype.kind == "i":
                flat[rng.randrange(cell.size):] = number
            else:
                continue
        elif isinstance(cell, float):
            cell = rng.choice((np.nan, np.inf, float(number)))
        elif isinstance(cell, int) and not isinstance(cell, bool):
            cell = number
        t.putcell(column, row, cell)
    return f"{number} or the like in {column}"


def change_shape(t, rng):
    """The array of one cell of some column of any shape gets another."""
    arrays = [c for c in t.colnames() if t.nrows() and t.iscelldefined(c, 0) and
              isinstance(t.getcell(c, 0), np.ndarray)]
    column, row = rng.choice(arrays), rng.randrange(t.nrows())
    cell = t.getcell(column, row)
    t.putcell(column, row, np.zeros([n + rng.choice((-1, 0, 1)) for n in cell.shape],
                                    cell.dtype))
    return f"another shape in row {row} of {column}"


def spoil_at_random(ms, seed):
    rng = random.Random(seed)
    name = rng.choice(SUBTABLES)
    with table(ms + ("::" + name if name else ""), readonly=False, ack=False) as t:
        way = rng.choice(("value", "value", "value", "shape", "column", "row", "rows"))
        if way == "value":
            done = change_value(t, rng)
        elif way == "shape":
            done = change_shape(t, rng)
        elif way == "column":
            done = "without " + rng.choice(t.colnames())
            t.removecols(done.removeprefix("without "))
        elif way == "row":
            t.addrows(1)
            done = "with an empty row more"
        else:
            t.removerows([rng.randrange(t.nrows())])
            done = "with a row less"
    print(f"{name or 'main table'} {done}")


VALUES = {"uvw": ("UVW", np.nan), "antenna": ("ANTENNA2", 1000),
          "antenna-negative": ("ANTENNA1", -1), "data": ("DATA", np.nan),
          "data-inf": ("DATA", np.inf), "weight": ("WEIGHT_SPECTRUM", -1),
          "weight-nan": ("WEIGHT_SPECTRUM", np.nan), "row-weight": ("WEIGHT", -1),
          "row-weight-nan": ("WEIGHT", np.nan)}


def main(ms, way):
    if way.startswith("random-"):
        spoil_at_random(ms, int(way.removeprefix("random-")))
        return
    if way == "channels" or way.startswith("frequency"):
        spoil_window(ms, way)
        return
    if way == "rows":  # tiled columns let go of no rows, so a copy with none
        with table(ms, ack=False) as t:
            t.copy(ms + ".bare", deep=True, copynorows=True).close()
        shutil.rmtree(ms)
        os.rename(ms + ".bare", ms)
        return
    with table(ms, readonly=False, ack=False) as t:
        step = 3 if way.endswith("-some") else 1
        column, value = VALUES.get(way.removesuffix("-some"), (None, None))
        if column:
            if column == "WEIGHT":
                t.removecols("WEIGHT_SPECTRUM")
            values = t.getcol(column)
            values[::step] = value
            t.putcol(column, values)
        elif way.startswith("half-"):
            spoil_half(t, way.removeprefix("half-"))
        elif way.startswith("shape"):
            spoil_shape(t, way)
        elif way == "dcomplex":
            spoil_type(t)
        elif way == "flag_row":
            t.putcol("FLAG_ROW", np.arange(t.nrows()) % 3 == 0)
        else:
            sys.exit(f"{way} is not known")


main(*sys.argv[1:])
