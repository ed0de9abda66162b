#!/usr/bin/env python3
"""Turn a MeasurementSet of J2000 into the same in another frame, by casacore.

usage: ms_frame.py MS WAY

WAY: B1950, GALACTIC, ICRS (the frame of the column); codes (a second field in B1950, by
codes in the rows of FIELD, has every other row); numbers-FRAME (the frame alone changes,
and the set is another); moves (a polynomial of time); ephemeris. Prints longitude and
latitude [deg] of the phase centre in the frame, and the position angle of the frame's
North in J2000 [rad].

A script of its own because python3-casacore may belong to another interpreter than the
tests'. Exit status 77 without casacore.
"""
import sys

try:
    import numpy as np
    from casacore import measures, quanta
    from casacore.tables import makescacoldesc, maketabdesc, table
except ImportError:
    sys.exit(77)

COLUMNS = ("PHASE_DIR", "DELAY_DIR", "REFERENCE_DIR")


def in_frame(frame, time_s, place):
    dm = measures.measures()
    dm.do_frame(dm.epoch("utc", quanta.quantity(time_s / 86400, "d")))

    def convert(lon, lat):
        to = dm.measure(dm.direction("J2000", f"{lon!r}rad", f"{lat!r}rad"), frame)
        return to["m0"]["value"], to["m1"]["value"]
    (lon, lat), (lon1, lat1) = convert(*place), convert(place[0], place[1] + 1e-4)
    turn = np.arctan2(np.cos(lat1) * np.sin(lon1 - lon),
                      np.cos(lat) * np.sin(lat1) -
                      np.sin(lat) * np.cos(lat1) * np.cos(lon1 - lon))
    return np.array([lon, lat]), -turn


def turned(uvw, north):
    c, s = np.cos(north), np.sin(north)
    return np.stack([c * uvw[:, 0] - s * uvw[:, 1], s * uvw[:, 0] + c * uvw[:, 1],
                     uvw[:, 2]], 1)


def set_codes(fields, place):
    fields.copyrows(fields, nrow=1)
    fields.addcols(maketabdesc([makescacoldesc(f"{c.split('_')[0].title()}Dir_Ref", 0,
                                               valuetype="int") for c in COLUMNS]))
    for column in COLUMNS:
        info = dict(fields.getcolkeyword(column, "MEASINFO"))
        info.pop("Ref")
        info.update(VarRefCol=f"{column.split('_')[0].title()}Dir_Ref",
                    TabRefTypes=["GALACTIC", "J2000", "B1950"],
                    TabRefCodes=np.array([0, 5, 9], "u4"))
        fields.putcolkeyword(column, "MEASINFO", info)
        fields.putcol(info["VarRefCol"], np.array([5, 9], "i4"))
        fields.putcell(column, 1, place[None])


def main(ms, way):
    frame = "B1950" if way == "codes" else way.removeprefix("numbers-")
    with table(ms, readonly=False, ack=False) as t, \
            table(ms + "::FIELD", readonly=False, ack=False) as fields:
        time, uvw = t.getcol("TIME"), t.getcol("UVW")
        place = fields.getcell("PHASE_DIR", 0)[0]
        if way == "moves":
            fields.putcell("PHASE_DIR", 0, np.array([place, [1e-7, 0]]))
            fields.putcol("NUM_POLY", np.array([1], "i4"))
            return
        if way == "ephemeris":
            fields.addcols(maketabdesc(makescacoldesc("EPHEMERIS_ID", 0, valuetype="int")))
            return
        if way.startswith("numbers-"):
            for column in COLUMNS:
                info = {**fields.getcolkeyword(column, "MEASINFO"), "Ref": frame}
                fields.putcolkeyword(column, "MEASINFO", info)
            return
        place, north = in_frame(frame, .5 * (time.min() + time.max()), place)
        if way == "codes":
            set_codes(fields, place)
            t.putcol("FIELD_ID", (np.arange(t.nrows()) % 2).astype("i4"))
            uvw[1::2] = turned(uvw[1::2], north)
        else:
            uvw = turned(uvw, north)
            for column in COLUMNS:
                info = {**fields.getcolkeyword(column, "MEASINFO"), "Ref": frame}
                fields.putcolkeyword(column, "MEASINFO", info)
                fields.putcell(column, 0, place[None])
        t.putcol("UVW", uvw)
        print(*np.rad2deg(place), north)


main(*sys.argv[1:])
