#!/usr/bin/env python3
"""Write a column of a MeasurementSet to a .npy file.

usage: ms_column.py MS COLUMN OUT.npy

A script of its own because python3-casacore may belong to another interpreter than the
tests'. Exit status 77 without casacore.
"""
import sys

try:
    import numpy as np
    from casacore.tables import table
except ImportError:
    sys.exit(77)

source = table(sys.argv[1], ack=False)
np.save(sys.argv[3], source.getcol(sys.argv[2]))
source.close()
