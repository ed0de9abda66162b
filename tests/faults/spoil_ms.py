#!/usr/bin/env python3
"""Spoil a MeasurementSet in one way, by casacore.

usage: spoil_ms.py MS rows|frequency|uvw|antenna|flag_row

A script of its own because python3-casacore may belong to another interpreter than the
tests'. Exit status 77 without casacore.
"""
import sys

try:
    import numpy as np
    from casacore.tables import table
except ImportError:
    sys.exit(77)

path, what = sys.argv[1:]
if what == "frequency":
    with table(path + "::SPECTRAL_WINDOW", readonly=False, ack=False) as t:
        t.putcol("CHAN_FREQ", t.getcol("CHAN_FREQ") * np.nan)
    sys.exit(0)
with table(path, readonly=False, ack=False) as t:
    if what == "rows":
        t.removerows(range(t.nrows()))
    elif what == "uvw":
        t.putcol("UVW", t.getcol("UVW") * np.nan)
    elif what == "antenna":
        t.putcol("ANTENNA2", t.getcol("ANTENNA2") + 1000)
    elif what == "flag_row":
        t.putcol("FLAG_ROW", np.arange(t.nrows()) % 3 == 0)
    else:
        sys.exit(f"{what} is not known")
