#!/usr/bin/env python3
"""UVFITS that tessera writes, as pyuvdata reads it with all its checks: antenna positions
and times give the uvw in the file, data phased to the only source are its flux, and
numbers are those that our own reading finds. Skipped (77) without pyuvdata.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import Suite, offset_radec, simulate, skip, tessera, write_sky
import uvfits

try:
    from astropy.time import Time
    from pyuvdata import UVData
except ImportError:
    skip("pyuvdata is not installed")

START, RA, DEC = "2023-03-01T06:00:00", 185.0, 20.0
L, M, FLUX = 9e-4, -6e-4, 1.5
SIDE, SCALE = 128, 3e-5  # of a model whose pixels (-30, -20) from the centre is L, M
DURATION, INTEGRATION, CHANNELS = 10, 1, 4  # minutes
# Largest |uv| is 1 km. UVW of pyuvdata include polar motion and the aberration by the
# Earth's rotation, up to 0.5 and 0.32 arcsec, which simulations leave out, and its angle
# of North is that of a point 0.5 deg away: sin(0.5 deg) tan(20 deg) of the 62 arcsec by
# which precession turns the field there, 0.2 arcsec.
UVW_MM = 1e6 * np.deg2rad((0.5 + 0.32 + 0.2) / 3600)
DATE_S = 86400 * 2.0 ** -25  # single-precision part of a day


def read(path):
    data = UVData()
    data.read_uvfits(path, run_check=True, check_extra=True, run_check_acceptability=True,
                     strict_uvw_antpos_check=True)
    return data


def check_file(suite, label, path, codes):
    """pyuvdata counts baselines from the other antenna: uvw and phases are negative."""
    data = read(path)
    uvw, freq, vis, weight, found_codes = uvfits.read(path)
    suite.equal(f"{label}: correlations", data.polarization_array.tolist(), codes)
    suite.equal(f"{label}: our reading's", found_codes.tolist(), codes)
    suite.equal(f"{label}: frequencies", data.freq_array.tolist(), freq.tolist())
    suite.true(f"{label}: data", np.array_equal(data.data_array,
                                                vis.conj().astype("c8")))
    suite.true(f"{label}: flags", np.array_equal(data.flag_array, weight <= 0))
    suite.true(f"{label}: weights", np.array_equal(data.nsample_array,
                                                   np.abs(weight).astype("f4")))
    suite.true(f"{label}: uvw", np.array_equal(data.uvw_array, -uvw))
    centre = data.phase_center_catalog[data.phase_center_id_array[0]]
    suite.below(f"{label}: phase centre (deg)",
                np.hypot(np.rad2deg(centre["cat_lon"]) - RA,
                         np.rad2deg(centre["cat_lat"]) - DEC), 1e-12)
    middles = (np.arange(DURATION // INTEGRATION) + 0.5) * INTEGRATION * 60
    times = Time(np.unique(data.time_array), format="jd") - Time(START)
    suite.below(f"{label}: times (s)", np.abs(times.sec - middles).max(), DATE_S)
    suite.equal(f"{label}: integration (s)", np.unique(data.integration_time).tolist(),
                [60.0 * INTEGRATION])
    again = data.copy()
    again.set_uvws_from_antenna_positions(update_vis=False)
    suite.below(f"{label}: uvw from antennas and times (mm)",
                1e3 * np.abs(again.uvw_array - data.uvw_array).max(), UVW_MM)
    return data


def check_source(suite, label, data, parallel):
    """With the source as phase centre its visibilities are its flux."""
    ra, dec = offset_radec(RA, DEC, L, M)
    data.phase(lon=np.deg2rad(ra), lat=np.deg2rad(dec), cat_name="source",
               phase_frame="fk5", epoch=2000.0, use_ant_pos=False)
    error = np.abs(data.data_array[..., :parallel] - FLUX).max() / FLUX
    # aberration stretches a field by up to v/c, which pyuvdata's apparent positions have
    # and an imager leaves out
    turns = np.abs(data.uvw_array).max() / 0.21 * np.hypot(L, M)
    suite.below(f"{label}: phased to the source", error, 2 * np.pi * turns * 1e-4)


def main():
    suite = Suite("peer_pyuvdata")
    ra, dec = offset_radec(RA, DEC, L, M)
    sky = write_sky(suite.path("sky.csv"), [dict(ra=f"{ra:.12f}deg", dec=f"{dec:.12f}deg",
                                                 flux_jy=FLUX)])
    dut1 = Time(START).delta_ut1_utc  # of the tables that pyuvdata takes
    image = np.zeros((SIDE, SIDE))
    image[SIDE // 2 - 20, SIDE // 2 - 30] = FLUX
    model = uvfits.write_model(suite.path("model.fits"), image, SCALE, RA, DEC)
    for pol, codes, parallel in (("XX,YY,XY,YX", [-5, -6, -7, -8], 2),
                                 ("RR,LL", [-1, -2], 2), ("I", [1], 1)):
        label = "simulate " + pol
        path = simulate(suite.path(pol[:2] + ".uvfits"), sky, ra=f"{RA}deg",
                        dec=f"{DEC}deg", start=START, duration=f"{DURATION}min",
                        integration=f"{INTEGRATION}min", channels=CHANNELS, pol=pol,
                        extra=(f"--dut1={dut1:.6f}",))
        check_source(suite, label, check_file(suite, label, path, codes), parallel)
        label = "predict " + pol
        out = suite.path("predicted.uvfits")
        result = tessera("predict", path, "--model", model, "--accuracy", "1e-6",
                         "--overwrite", "-o", out)
        if suite.ran(label, result):
            check_source(suite, label, check_file(suite, label, out, codes), parallel)
    suite.finish()


if __name__ == "__main__":
    main()
