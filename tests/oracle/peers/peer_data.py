#!/usr/bin/env python3
"""Visibilities that pyuvdata and xradio hold, as observations of the Python module: UVData that
pyuvdata has read, and processing sets that xradio has converted and opened, make the images of
the file that they were made of.

Skipped (77) without both. TESS_DATA_PYTHON is an interpreter that imports them:
`. tests/setup.sh; tess_setup_data FOLDER`.
"""
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), os.path.join(HERE, "..", "..", "python")]
from e2e import Suite, have_ms, simulate, skip, write_sky  # noqa: E402

PYTHON = os.environ.get("TESS_DATA_PYTHON")
try:
    import xarray
    from pyuvdata import UVData
    from xradio.measurement_set import convert_msv2_to_processing_set, open_processing_set
except ImportError:
    if not PYTHON or os.path.abspath(sys.executable) == os.path.abspath(PYTHON):
        skip("pyuvdata and xradio are not there; set TESS_DATA_PYTHON")
    os.execv(PYTHON, [PYTHON, *sys.argv])
from module import tessera  # noqa: E402

OPTIONS = dict(size=(96, 64), scale="20asec", threads=2, reproducible=True)


def differs(image, wanted):
    """Largest difference of two dirty images, of the peak."""
    return np.abs(image.dirty.data - wanted.dirty.data).max() / np.abs(wanted.dirty.data).max()


def check_uvdata(suite, uvfits):
    wanted = tessera.image(uvfits, primary_beam="auto", **OPTIONS)
    uvd = UVData.from_file(uvfits)
    image = tessera.image(uvd, primary_beam="auto", **OPTIONS)
    suite.below("UVData", differs(image, wanted), 1e-5)
    suite.equal("its visibilities", image.dirty.num_vis, wanted.dirty.num_vis)
    suite.below("its beam", np.abs(np.subtract(image.select(kind="pb")[0].data,
                                               wanted.select(kind="pb")[0].data)).max(), 1e-5)
    suite.equal("its telescope", image.dirty.header["TELESCOP"], wanted.dirty.header["TELESCOP"])
    uvd.flag_array[:100] = True
    uvd.flag_array[:, 1] = True
    flagged = tessera.image(uvd, **OPTIONS).dirty.num_vis
    suite.equal("flags", flagged, (uvd.Nblts - 100) * (uvd.Nfreqs - 1))
    uvd.phase(lon=np.deg2rad(60.02), lat=np.deg2rad(-30), cat_name="EAST", cat_type="sidereal",
              select_mask=np.arange(uvd.Nblts) % 2 == 0)
    try:
        tessera.image(uvd, **OPTIONS)
        suite.true("two phase centres are refused", False)
    except tessera.UsageError as error:
        suite.true(f"two phase centres: {error}", "phase_center=NUMBER" in str(error))
    number = next(k for k, c in uvd.phase_center_catalog.items() if c["cat_name"] == "EAST")
    one = tessera.image(tessera.Data.of_uvdata(uvd, number), **OPTIONS).dirty
    suite.below("the one asked for", abs(one.header["CRVAL1"] - 60.02), 1e-9)


def check_reading(suite, path):
    """A chunk is decompressed once, and not for each block of rows that is asked for."""
    window = tessera.Data.of_processing_set(path).windows[0]
    every = window.read(slice(0, window.num_rows), slice(0, 4))
    loaded, isel = [], xarray.DataArray.isel

    def count(array, *args, **more):
        loaded.append(array.name)
        return isel(array, *args, **more)
    xarray.DataArray.isel = count
    parts = [window.read(slice(at, min(at + 700, window.num_rows)), slice(1, 3))
             for at in range(0, window.num_rows, 700)]
    xarray.DataArray.isel = isel
    suite.equal("what is loaded", sorted(loaded), ["FLAG", "UVW", "VISIBILITY", "WEIGHT"])
    for name in ("uvw", "time_mjd_s", "antenna1", "antenna2"):
        suite.true(f"blocks of rows: {name}", np.array_equal(
            np.concatenate([getattr(part, name) for part in parts]), getattr(every, name)))
    suite.true("blocks of rows: vis", np.array_equal(
        np.concatenate([part.vis for part in parts]), every.vis[:, 1:3]))


def check_processing_set(suite, ms):
    wanted = tessera.image(ms, primary_beam="auto", **OPTIONS)
    for what, chunks in (("in one piece", None),
                         ("in chunks", dict(time=2, baseline_id=100, frequency=2))):
        path = suite.path(f"{what.replace(' ', '-')}.ps.zarr")
        convert_msv2_to_processing_set(ms, path, main_chunksize=chunks)
        image = tessera.image(path, primary_beam="auto", **OPTIONS)
        suite.below(f"a processing set {what}", differs(image, wanted), 1e-5)
        suite.equal("its visibilities", image.dirty.num_vis, wanted.dirty.num_vis)
        suite.equal("its telescope", image.dirty.header["TELESCOP"], wanted.dirty.header["TELESCOP"])
        suite.below("its beam", np.abs(np.subtract(image.select(kind="pb")[0].data,
                                                   wanted.select(kind="pb")[0].data)).max(), 1e-5)
    check_reading(suite, suite.path("in-one-piece.ps.zarr"))
    tree = open_processing_set(path)
    image = tessera.image(tree, **OPTIONS)
    suite.below("its tree", differs(image, wanted), 1e-5)
    with tessera.Session(tree, **OPTIONS) as session:
        left = session.clean(niter=500, auto_threshold=3)
        suite.below("cleaned in a session", np.abs(left.residual.data).max(), .05)


def main():
    suite = Suite("peer_data")
    if not have_ms():
        skip("without MeasurementSets nothing is converted")
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60.05deg", dec="-30.04deg", flux_jy=1),
                                            dict(ra="59.9deg", dec="-30.02deg", flux_jy=.5)])
    uvfits, ms = (simulate(suite.path(name), sky, duration="6min", integration="60s")
                  for name in ("obs.uvfits", "obs.ms"))
    check_uvdata(suite, uvfits)
    check_processing_set(suite, ms)
    suite.finish()


if __name__ == "__main__":
    main()
