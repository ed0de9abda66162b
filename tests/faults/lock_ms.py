#!/usr/bin/env python3
"""Hold a MeasurementSet by casacore, as another program does.

usage: lock_ms.py MS HOW

HOW: write, read (hold that lock), auto (hold the write lock until another program asks for
it and the set is used again), open (have it open for writing, without a lock). It says "held",
waits for a line on its standard input, flags a row unless it only reads, and closes the set.

A script of its own because python3-casacore may belong to another interpreter than the
tests'.
"""
import sys
import time

from casacore.tables import table


def flag(held, row):
    flags = held.getcol("FLAG", row, 1)
    flags[:] = True
    held.putcol("FLAG", flags, row, 1)


def main():
    path, how = sys.argv[1:]
    options = {"auto": "auto", "open": "user"}.get(how, "permanent")
    held = table(path, readonly=how == "read", lockoptions=options, ack=False)
    if how in ("write", "auto"):
        flag(held, 0)
    print("held", flush=True)
    if how == "auto":  # a program that is at work: asked to, casacore lets go
        for _ in range(600):
            time.sleep(0.1)
            held.getcell("TIME", 0)
            if not held.haslock(True):
                break
    sys.stdin.readline()
    if how in ("write", "open"):
        held.lock(True)
        flag(held, 1)
    held.close()


if __name__ == "__main__":
    main()
