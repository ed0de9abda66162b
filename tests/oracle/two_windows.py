#!/usr/bin/env python3
"""Divide the rows of a MeasurementSet of one spectral window among two.

usage: two_windows.py MS CELLS.npz UVW.npy

CELLS has vis0, weight0, flag0 [rows][channels][correlations] of the even rows and vis1 … of
the odd ones, which get the second window, and freq0, width0, freq1, width1 of the windows.
UVW becomes the uvw of all rows. A script of its own because python3-casacore may belong to another
interpreter than the tests'. Exit status 77 without casacore.
"""
import sys

try:
    import numpy as np
    from casacore.tables import makearrcoldesc, maketabdesc, table
except ImportError:
    sys.exit(77)

COLUMNS = {"DATA": ("vis", 0j, "complex"), "WEIGHT_SPECTRUM": ("weight", 0.0, "float"),
           "FLAG": ("flag", False, "boolean")}


def divide_rows(ms, cells):
    with table(ms, readonly=False, ack=False) as t:
        for column, (name, value, kind) in COLUMNS.items():
            if column in t.colnames():
                t.removecols(column)
            t.addcols(maketabdesc(makearrcoldesc(column, value, ndim=2, valuetype=kind)),
                      {"TYPE": "TiledShapeStMan", "NAME": "Any" + column,
                       "DEFAULTTILESHAPE": [2, 8, 64]})
            for row in range(t.nrows()):
                t.putcell(column, row, cells[f"{name}{row % 2}"][row // 2])
        t.putcol("DATA_DESC_ID", (np.arange(t.nrows()) % 2).astype("i4"))
        return t.getcol("UVW")


def make_windows(ms, cells):
    with table(ms + "::SPECTRAL_WINDOW", readonly=False, ack=False) as t:
        t.copyrows(t, startrowin=0, startrowout=1, nrow=1)
        for row in (0, 1):
            freq, width = cells[f"freq{row}"], cells[f"width{row}"]
            for column in ("CHAN_FREQ", "CHAN_WIDTH", "EFFECTIVE_BW", "RESOLUTION"):
                t.putcell(column, row, freq if column == "CHAN_FREQ" else width)
            t.putcell("NUM_CHAN", row, len(freq))
    with table(ms + "::DATA_DESCRIPTION", readonly=False, ack=False) as t:
        t.copyrows(t, startrowin=0, startrowout=1, nrow=1)
        t.putcell("SPECTRAL_WINDOW_ID", 1, 1)


cells = np.load(sys.argv[2])
np.save(sys.argv[3], divide_rows(sys.argv[1], cells))
make_windows(sys.argv[1], cells)
