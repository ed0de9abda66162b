#!/usr/bin/env python3
"""Visibilities in memory as observations: arrays, UVData of pyuvdata, processing sets of xradio.
They make the images of the file that holds the same."""
import os
import types
import warnings

import numpy as np

from module import tessera
from e2e import Suite, forced, simulate, take_forced, write_sky
import uvfits

OPTIONS = dict(size=(64, 48), scale="20asec", threads=2, reproducible=True)
DAY_S, MJD_OF_JD, UNIX_MJD = 86400.0, 2400000.5, 40587


def predicted(obs, image):
    return tessera.predict(obs, model=image.data, scale="20asec")[0]


def arrays_of(found, **more):
    return tessera.Data.of_arrays(
        found.uvw, found.freq_hz, found.vis, correlations=found.correlations, ra_deg=60,
        dec_deg=-30, antenna1=found.antenna1, antenna2=found.antenna2,
        time_mjd_s=found.time_mjd_s, **more)


def uvdata_of(found):
    """What pyuvdata's class has for the same: baselines the other way round."""
    nant = int(found.antenna2.max()) + 1
    middle = types.SimpleNamespace(**{axis: types.SimpleNamespace(to_value=lambda unit: 1e6)
                                      for axis in "xyz"})
    return types.SimpleNamespace(
        data_array=np.conj(found.vis), uvw_array=-found.uvw,
        flag_array=np.zeros(found.vis.shape, bool), nsample_array=np.ones(found.vis.shape),
        time_array=found.time_mjd_s / DAY_S + MJD_OF_JD,
        integration_time=np.full(len(found.uvw), 60.0),
        ant_1_array=found.antenna1 + 10, ant_2_array=found.antenna2 + 10,
        freq_array=found.freq_hz, channel_width=np.full(len(found.freq_hz), 4e6),
        polarization_array=[{"XX": -5, "YY": -6}[c] for c in found.correlations],
        phase_center_id_array=np.zeros(len(found.uvw), int),
        phase_center_catalog={0: dict(cat_type="sidereal", cat_name="F", cat_lon=np.pi / 3,
                                      cat_lat=-np.pi / 6)},
        telescope=types.SimpleNamespace(name="VLA", antenna_numbers=np.arange(nant)[::-1] + 10,
                                        location=middle, antenna_diameters=None,
                                        antenna_positions=np.zeros((nant, 3))))


def check_arrays(suite, obs, found, wanted):
    image = tessera.image(arrays_of(found), **OPTIONS)
    suite.below("arrays make the image of the file", np.abs(image.dirty.data - wanted).max(), 1e-3)
    weight = np.ones(found.vis.shape, np.float32)
    weight[7] = 0
    one = tessera.image(arrays_of(found, weight=weight), **OPTIONS).dirty.num_vis
    suite.true("weights of 0 are flags", one == image.dirty.num_vis - len(found.freq_hz))
    own, like = (tessera.image(given, weight="briggs:0.5", niter=9, auto_threshold=3, **OPTIONS)
                 for given in (arrays_of(found), obs))
    keys = [key for key in like.image.header if key[:4] in ("CTYP", "CRPI", "CRVA", "CDEL", "BMAJ", "BMIN",
                                                            "BPA", "SUMW", "NVIS", "FREQ", "BUNI")]
    suite.true("Briggs weights, beams and headers", len(keys) > 20 and
               np.array_equal(own.psf.data, like.psf.data) and
               not np.array_equal(own.psf.data, image.psf.data) and
               [k for k in keys if own.image.header[k] != like.image.header[k]] == [])
    part = tessera.image(arrays_of(found), channels="1:3", **OPTIONS)
    like = tessera.image(obs, channels="1:3", **OPTIONS)
    suite.true("channels are chosen", part.dirty.num_vis == like.dirty.num_vis and
               np.array_equal(part.psf.data, like.psf.data))
    with tessera.Session(arrays_of(found), **OPTIONS) as session:
        suite.below("a session", np.abs(session.dirty() - image.dirty.data).max(), 1e-3)
        suite.true("which cleans", np.allclose(session.clean(niter=9).image.beam_deg,
                                               image.psf.beam_deg, rtol=1e-3))
        again = session.predict(np.asarray(image.dirty.data, float))[0]
    suite.true("predictions have the rows", np.array_equal(again.uvw, found.uvw) and
               np.array_equal(again.antenna2, found.antenna2))


def check_uvdata(suite, found, wanted):
    uvd = uvdata_of(found)
    image = tessera.image(uvd, primary_beam="auto", **OPTIONS)
    suite.below("UVData", np.abs(image.dirty.data - wanted).max(), 1e-3)
    suite.true("its telescope", image.dirty.header["TELESCOP"] == "VLA" and
               image.select(kind="pb")[0].data.max() > .9)
    uvd.phase_center_id_array[5:] = 3
    uvd.phase_center_catalog[3] = dict(cat_type="unprojected", cat_name="U")
    for what, call in (("several centres", lambda: tessera.image(uvd, **OPTIONS)),
                       ("a drift scan", lambda: tessera.Data.of_uvdata(uvd, 3))):
        try:
            call()
            suite.true(f"{what}: is refused", False)
        except tessera.UsageError as error:
            suite.true(f"{what}: {error}", True)
    first = tessera.image(tessera.Data.of_uvdata(uvd, 0), **OPTIONS)
    suite.equal("one of them", first.dirty.num_vis, 5 * len(found.freq_hz))


def check_processing_set(suite, found, wanted):
    """MSv4: dimensions of time and baseline."""
    try:
        import xarray
    except ImportError:
        suite.skipped("processing sets: xarray is not installed")
        return
    times = np.unique(found.time_mjd_s)
    shape = (len(times), len(found.uvw) // len(times))
    dims = ("time", "baseline_id", "frequency", "polarization")
    field = xarray.Dataset(dict(FIELD_PHASE_CENTER_DIRECTION=(
        ("field_name", "sky_dir_label"), [[np.pi / 3, -np.pi / 6]])), dict(field_name=["F"]))
    cube = found.vis.reshape(*shape, *found.vis.shape[1:])
    ms = xarray.Dataset(
        dict(VISIBILITY=(dims, cube, dict(field_and_source_xds=field)),
             WEIGHT=(dims, np.ones(cube.shape)), FLAG=(dims, np.zeros(cube.shape, bool)),
             UVW=(("time", "baseline_id", "uvw_label"), found.uvw.reshape(*shape, 3))),
        dict(time=("time", times - UNIX_MJD * DAY_S, dict(integration_time=dict(data=60.0))),
             frequency=("frequency", found.freq_hz, dict(channel_width=dict(data=4e6))),
             polarization=list(found.correlations),
             baseline_antenna1_name=("baseline_id", [f"a{k}" for k in found.antenna1[:shape[1]]]),
             baseline_antenna2_name=("baseline_id", [f"a{k}" for k in found.antenna2[:shape[1]]])))
    image = tessera.image(dict(only=ms), **OPTIONS)
    suite.below("a processing set", np.abs(image.dirty.data - wanted).max(), 1e-3)
    usual, tessera._data._ROWS_AT_ONCE = tessera._data._ROWS_AT_ONCE, 1  # pieces of one time
    window = tessera.Data.of_processing_set(dict(only=ms)).windows[0]
    tessera._data._ROWS_AT_ONCE = usual
    rows = slice(shape[1] - 3, 2 * shape[1] + 5)
    read = window.read(rows, slice(1, 3))
    suite.true("rows of three pieces", np.array_equal(read.vis, found.vis[rows, 1:3]) and
               np.array_equal(read.uvw, found.uvw[rows]))
    suite.equal("an image as xarray", image.dirty.to_xarray().dims, ("m", "l"))


def predict_later(window, place):
    """A session whose rows are read once, and are gone when prediction reads them once more."""
    gone = []

    def read(rows, channels):
        if gone:
            raise KeyError("gone")
        return window.read(rows, channels)
    data = tessera.Data([window._replace(read=read)], **place)
    with tessera.Session(data, **OPTIONS) as session:
        gone.append(True)
        session.predict(np.zeros(session.shape))


def check_errors(suite, found):
    def fails(rows, channels):
        raise KeyError("gone")
    window = arrays_of(found).windows[0]
    place = dict(ra_deg=60, dec_deg=-30, num_antennas=30, times_mjd_s=(5e9, 5e9))
    for what, kind, call in (
            ("what reading raises", KeyError,
             lambda: tessera.image(tessera.Data([window._replace(read=fails)], **place), **OPTIONS)),
            ("what prediction's reading raises", KeyError, lambda: predict_later(window, place)),
            ("a correlation that is none", tessera.UsageError, lambda: tessera.image(
                tessera.Data([window._replace(correlations=("XX", "ZZ"))], **place), **OPTIONS)),
            ("an end before the begin", tessera.UsageError, lambda: tessera.image(
                tessera.Data([window], **place | dict(times_mjd_s=(5e9, 4e9))), **OPTIONS)),
            ("a frequency of 0", tessera.UsageError, lambda: tessera.image(
                tessera.Data([window._replace(freq=0 * window.freq)], **place), **OPTIONS)),
            ("arrays that do not fit", tessera.UsageError, lambda: tessera.Data.of_arrays(
                found.uvw[:3], found.freq_hz, found.vis, ra_deg=0, dec_deg=0)),
            ("an output", tessera.UsageError, lambda: tessera.predict(
                arrays_of(found), model=np.zeros((8, 8)), scale="9asec", column="DATA")),
            ("a number", tessera.ArrayTypeError, lambda: tessera.image(3, **OPTIONS)),
            ("a name that is gone", tessera.FileError,
             lambda: tessera.image("memory:999", **OPTIONS))):
        try:
            call()
            suite.true(f"{what}: no error", False)
        except kind as error:
            suite.true(f"{what}: {error}", True)


def check_batches(suite):
    """A batch in which a plane of a model has no samples leaves the beam of the next plane as it is: the last window
    has the channel of the second one, and needs more planes of w."""
    random, scale, name = np.random.default_rng(1), np.deg2rad(50 / 3600), suite.path("set")
    image = np.zeros((64, 64))
    image[50, 12], image[20, 30] = 1, 2
    for k, freq in enumerate((1e9, 2e9)):
        uvfits.write_model(f"{name}-{k:04d}-model-pb.fits", image, scale, freq_hz=freq)
    first, second = np.triu_indices(10, 1)
    windows = [tessera.Data.of_arrays(
        random.normal(size=(45, 3)) * (200, 200, w_m), [freq], np.ones((45, 1)), ra_deg=60, dec_deg=-30, antenna1=first,
        antenna2=second, time_mjd_s=np.full(45, 5e9)).windows[0] for freq, w_m in ((1e9, 50), (2e9, 50), (2e9, 400))]
    data = tessera.Data(windows, ra_deg=60, dec_deg=-30, num_antennas=10, times_mjd_s=(5e9, 5e9 + 1))
    found = []
    for batches in (1, 3):
        os.environ["TESS_FORCE"] = take_forced(forced(passes=batches))[1]["TESS_FORCE"]
        found.append(tessera.predict(data, model=name, primary_beam="airy:25,2", accuracy=1e-6))
        del os.environ["TESS_FORCE"]
    for window, (one, three) in enumerate(zip(*found)):
        suite.below(f"batches of one window, window {window}", np.abs(one.vis - three.vis).max() / np.abs(one.vis).max(),
                    2e-6)


def main():
    suite = Suite("python_data")
    warnings.simplefilter("ignore", tessera.TesseraWarning)
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60.05deg", dec="-30.04deg", flux_jy=1)])
    obs = simulate(suite.path("obs.uvfits"), sky, duration="6min", integration="60s")
    model = tessera.image(obs, **OPTIONS).dirty
    found = predicted(obs, model)
    wanted = model.data - tessera.image(obs, subtract=model.data, **OPTIONS).dirty.data
    check_arrays(suite, obs, found, wanted)
    check_uvdata(suite, found, wanted)
    check_processing_set(suite, found, wanted)
    check_errors(suite, found)
    check_batches(suite)
    suite.finish()


if __name__ == "__main__":
    main()
