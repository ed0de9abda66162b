"""Visibilities in memory as observations: arrays, UVData objects of pyuvdata, and processing
sets of xradio, whose rows the library asks for block by block."""
from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import threading
from typing import Any, Callable, Iterator, NamedTuple, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._options import is_path

__all__ = ["Data", "Window", "Rows", "Observation"]

_MJD_OF_JD, _DAY_S = 2400000.5, 86400.0
_UNIX_MJD_S = 40587 * _DAY_S


class Rows(NamedTuple):
    """Rows of a window.

    Attributes
    ----------
    uvw : (nrows, 3) in metres, as a MeasurementSet has them: from antenna 2 to antenna 1
    time_mjd_s : (nrows,) centres of the integrations: UTC, seconds of the modified Julian date
    antenna1, antenna2 : (nrows,) numbers of antennas from 0
    vis : (nrows, nchan, ncorr) complex, in Jy
    weight : (nrows, nchan, ncorr); 0 or less: flagged
    integration_s : (nrows,) or a number
    """
    uvw: npt.NDArray[Any]
    time_mjd_s: npt.NDArray[Any]
    antenna1: npt.NDArray[Any]
    antenna2: npt.NDArray[Any]
    vis: npt.NDArray[Any]
    weight: npt.NDArray[Any]
    integration_s: Union[float, npt.NDArray[Any]] = 0.0


class Window(NamedTuple):
    """Rows that share their channels and correlations: a spectral window.

    Attributes
    ----------
    num_rows : int
    freq : (nchan,) centres of the channels in Hz
    width : (nchan,) their widths in Hz
    correlations : names, like ("XX", "YY"), ("RR", "LL") or ("I",)
    read : function
        read(rows, channels) returns the Rows of two slices; any thread may call it, one at a
        time
    """
    num_rows: int
    freq: npt.NDArray[Any]
    width: npt.NDArray[Any]
    correlations: Sequence[str]
    read: Callable[[slice, slice], Rows]


class _DataWindow(ctypes.Structure):
    """tess_data_window"""
    _fields_ = [("num_rows", lib.c_i64), ("num_chan", lib.c_i64),
                ("freq_hz", ctypes.c_void_p), ("chan_width_hz", ctypes.c_void_p),
                ("num_corr", lib.c_int), ("corr", ctypes.POINTER(ctypes.c_char_p))]


class _DataRows(ctypes.Structure):
    """tess_data_rows"""
    _fields_ = [("window", lib.c_int), ("row_first", lib.c_i64), ("num_rows", lib.c_i64),
                ("chan_first", lib.c_i64), ("num_chan", lib.c_i64), ("num_corr", lib.c_int),
                ("uvw_m", ctypes.c_void_p), ("time_mjd_s", ctypes.c_void_p),
                ("integration_s", ctypes.c_void_p), ("antenna1", ctypes.c_void_p),
                ("antenna2", ctypes.c_void_p), ("vis", ctypes.c_void_p),
                ("weight", ctypes.c_void_p)]


_Read = ctypes.CFUNCTYPE(lib.c_bool, ctypes.c_void_p, ctypes.POINTER(_DataRows))


class _DataSet(ctypes.Structure):
    """tess_data_set"""
    _fields_ = [("telescope", ctypes.c_char_p), ("object", ctypes.c_char_p),
                ("ra_rad", lib.c_f64), ("dec_rad", lib.c_f64),
                ("time_start_mjd_s", lib.c_f64), ("time_end_mjd_s", lib.c_f64),
                ("num_windows", lib.c_int), ("window", ctypes.POINTER(_DataWindow)),
                ("num_antennas", lib.c_int), ("antenna_xyz_m", ctypes.c_void_p),
                ("antenna_diameter_m", ctypes.c_void_p), ("read", _Read),
                ("context", ctypes.c_void_p)]


lib.library.tess_data_add.argtypes = [ctypes.POINTER(_DataSet), ctypes.c_char_p]
lib.library.tess_data_remove.argtypes = [ctypes.c_char_p]
lib.library.tess_data_remove.restype = None


def _fill(address: int, shape: tuple[int, ...], dtype: npt.DTypeLike, values: Any) -> None:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory: Any = (ctypes.c_char * size).from_address(address)
    array: npt.NDArray[Any] = np.frombuffer(memory, np.dtype(dtype)).reshape(shape)
    array[...] = values


class Data:
    """Visibilities in memory, in place of an observation's path: tessera.image(data, ...),
    Session(data, ...) and predict(data, ...).

    Parameters
    ----------
    windows : list of Window
    ra_deg, dec_deg : float
        phase centre, J2000
    num_antennas : int
    times_mjd_s : (float, float)
        first and last time: UTC, seconds of the modified Julian date
    telescope, object : str, optional
    antenna_xyz : (nant, 3) in metres, geocentric, optional
    antenna_diameter : (nant,) in metres, optional

    `Data.of_arrays`, `Data.of_uvdata` and `Data.of_processing_set` make one of what there is.
    """

    def __init__(self, windows: Sequence[Window], *, ra_deg: float, dec_deg: float,
                 num_antennas: int, times_mjd_s: tuple[float, float], telescope: str = "",
                 object: str = "", antenna_xyz: Optional[npt.ArrayLike] = None,
                 antenna_diameter: Optional[npt.ArrayLike] = None) -> None:
        self.windows = list(windows)
        self.ra_deg, self.dec_deg, self.num_antennas = ra_deg, dec_deg, num_antennas
        self.times_mjd_s, self.telescope, self.object = times_mjd_s, telescope, object
        self._xyz = None if antenna_xyz is None else np.ascontiguousarray(
            np.asarray(antenna_xyz, float).reshape(num_antennas, 3))
        self._diameter = None if antenna_diameter is None else np.ascontiguousarray(
            np.broadcast_to(np.asarray(antenna_diameter, float), num_antennas))
        self._lock = threading.Lock()
        self._raised: list[BaseException] = []

    def __repr__(self) -> str:
        return (f"<tessera.Data {self.telescope} {self.object}: " + ", ".join(
            f"{w.num_rows} rows x {len(w.freq)} channels" for w in self.windows) + ">")

    def _read(self, _: Any, asked: Any) -> bool:
        rows = asked.contents
        try:
            span = slice(rows.row_first, rows.row_first + rows.num_rows)
            chans = slice(rows.chan_first, rows.chan_first + rows.num_chan)
            with self._lock:
                found = self.windows[rows.window].read(span, chans)
            n, shape = rows.num_rows, (rows.num_rows, rows.num_chan, rows.num_corr)
            _fill(rows.uvw_m, (n, 3), np.float64, found.uvw)
            _fill(rows.time_mjd_s, (n,), np.float64, found.time_mjd_s)
            _fill(rows.integration_s, (n,), np.float64, found.integration_s)
            _fill(rows.antenna1, (n,), np.int32, found.antenna1)
            _fill(rows.antenna2, (n,), np.int32, found.antenna2)
            _fill(rows.vis, shape, np.complex64, found.vis)
            _fill(rows.weight, shape, np.float32, found.weight)
            return True
        except BaseException as error:  # cannot pass through the library
            self._raised.append(error)
            return False

    def raise_error(self) -> None:
        """Raise what reading has raised."""
        raised, self._raised = self._raised, []
        if raised:
            raise raised[0]

    @contextlib.contextmanager
    def named(self) -> Iterator[str]:
        """A name that stands for the data in the options of calls."""
        arrays = [(np.ascontiguousarray(w.freq, float), np.ascontiguousarray(
            np.broadcast_to(np.abs(np.asarray(w.width, float)), np.shape(w.freq))),
            (ctypes.c_char_p * len(w.correlations))(
                *(c.encode() for c in w.correlations))) for w in self.windows]
        windows = (_DataWindow * len(arrays))(*(
            _DataWindow(w.num_rows, len(f), f.ctypes.data, width.ctypes.data, len(corr), corr)
            for w, (f, width, corr) in zip(self.windows, arrays)))
        read = _Read(self._read)
        made = _DataSet(
            lib.text("telescope", self.telescope), lib.text("object", self.object),
            float(np.deg2rad(self.ra_deg)), float(np.deg2rad(self.dec_deg)), *self.times_mjd_s,
            len(windows), windows, self.num_antennas,
            None if self._xyz is None else self._xyz.ctypes.data,
            None if self._diameter is None else self._diameter.ctypes.data, read, None)
        name = ctypes.create_string_buffer(32)
        lib.check(lib.library.tess_data_add(ctypes.byref(made), name))
        try:
            yield name.value.decode()
        finally:
            lib.library.tess_data_remove(name)

    @classmethod
    def of_arrays(cls, uvw: npt.ArrayLike, freq: npt.ArrayLike, vis: npt.ArrayLike, *,
                  weight: Optional[npt.ArrayLike] = None, ra_deg: float, dec_deg: float,
                  correlations: Sequence[str] = ("I",),
                  antenna1: Optional[npt.ArrayLike] = None,
                  antenna2: Optional[npt.ArrayLike] = None,
                  time_mjd_s: Optional[npt.ArrayLike] = None,
                  width: Optional[npt.ArrayLike] = None, **more: Any) -> Data:
        """Data of plain arrays, which are used where they lie.

        Parameters
        ----------
        uvw : (nrows, 3) in metres, as a MeasurementSet has them
        freq : (nchan,) in Hz
        vis : (nrows, nchan) or (nrows, nchan, ncorr), complex, in Jy
        weight : of the same shape; 0: flagged; default 1
        width : widths of channels in Hz; default: their distance
        """
        uvw, freq, vis = np.asarray(uvw), np.atleast_1d(freq), np.asarray(vis)
        vis = vis[:, :, None] if vis.ndim == 2 else vis
        shape = (len(uvw), len(freq), len(correlations))
        if uvw.shape != (len(uvw), 3) or vis.shape != shape:
            raise lib.UsageError(f"uvw has shape {uvw.shape} and vis {vis.shape}; they may be "
                                 f"(nrows, 3) and (nrows, {len(freq)}, {len(correlations)})")
        weights = np.broadcast_to(np.float32(1), shape) if weight is None else \
            np.asarray(weight).reshape(shape)
        zero = np.zeros(len(uvw), np.int32)
        first = zero if antenna1 is None else np.asarray(antenna1)
        second = zero + 1 if antenna2 is None else np.asarray(antenna2)
        times = np.zeros(len(uvw)) + 51544.5 * _DAY_S if time_mjd_s is None else \
            np.asarray(time_mjd_s)
        if width is None:
            width = np.abs(np.diff(freq)).mean() if len(freq) > 1 else freq[0] * 1e-3

        def read(rows: slice, chans: slice) -> Rows:
            return Rows(uvw[rows], times[rows], first[rows], second[rows], vis[rows, chans],
                        weights[rows, chans])

        window = Window(len(uvw), freq, np.broadcast_to(np.asarray(width), freq.shape),
                        correlations, read)
        antennas = int(max(first.max(initial=0), second.max(initial=1))) + 1
        return cls([window], ra_deg=ra_deg, dec_deg=dec_deg, num_antennas=antennas,
                   times_mjd_s=(float(times.min()), float(times.max())) if len(times) else (0, 0),
                   **more)

    @classmethod
    def of_uvdata(cls, uvdata: Any, phase_center: Optional[int] = None) -> Data:
        """Data of a UVData object of pyuvdata, which is used where it lies. Its visibilities are
        phased to one centre, or `phase_center` is the number of one in its catalog."""
        return _of_uvdata(uvdata, phase_center)

    @classmethod
    def of_processing_set(cls, processing_set: Any, data_group: str = "base") -> Data:
        """Data of a processing set of xradio (MSv4): a DataTree, a dictionary of Datasets, or a
        path that xradio opens. Rows are loaded block by block."""
        return _of_processing_set(processing_set, data_group)


# What an observation may be.
Observation = Any


def data_of(obs: Any) -> Optional[Data]:
    """The Data that an object stands for; None: it is a path."""
    if isinstance(obs, Data):
        return obs
    if is_path(obs):
        path = os.fsdecode(obs).rstrip("/")
        zarr = any(os.path.exists(os.path.join(path, n)) for n in (".zgroup", "zarr.json"))
        return Data.of_processing_set(path) if zarr else None
    if hasattr(obs, "data_array") and hasattr(obs, "uvw_array"):
        return Data.of_uvdata(obs)
    if hasattr(obs, "children") or isinstance(obs, dict):
        return Data.of_processing_set(obs)
    return None


class Named:
    """Observations by their names, as long as it lives: paths, and names of data in memory."""

    def __init__(self, obs: Any) -> None:
        listed: list[Any] = list(obs) if isinstance(obs, (list, tuple)) else [obs]
        self._stack, self._data, self.names = contextlib.ExitStack(), [], []  # type: Any, Any, Any
        for one in listed:
            data = data_of(one)
            if data is None and not is_path(one):
                raise lib.ArrayTypeError(f"an observation of type {type(one).__name__} is none "
                                         "of a path, tessera.Data, UVData or processing set")
            self.names.append(os.fsdecode(one) if data is None else
                              self._stack.enter_context(data.named()))
            self._data += [] if data is None else [data]

    def raise_error(self) -> None:
        """Raise what reading of data in memory has raised."""
        for data in self._data:
            data.raise_error()

    def close(self) -> None:
        self._stack.close()

    def __del__(self) -> None:
        if hasattr(self, "_stack"):
            self._stack.close()


# ---- pyuvdata ----

# Polarisations of AIPS memo 117, as of FITS.
_POLARISATIONS = {1: "I", 2: "Q", 3: "U", 4: "V", -1: "RR", -2: "LL", -3: "RL", -4: "LR",
                  -5: "XX", -6: "YY", -7: "XY", -8: "YX"}


def _center_of(uvdata: Any, number: Optional[int]) -> tuple[int, float, float, str]:
    """Number, RA and Dec in degrees, and name of the phase centre."""
    used = np.unique(uvdata.phase_center_id_array)
    if number is None and len(used) != 1:
        raise lib.UsageError(f"the UVData object has {len(used)} phase centres, {used.tolist()}; "
                             "use tessera.Data.of_uvdata(uvdata, phase_center=NUMBER)")
    chosen = int(used[0] if number is None else number)
    found = uvdata.phase_center_catalog[chosen]
    if found["cat_type"] != "sidereal":
        raise lib.UsageError(f"phase centre {chosen} is {found['cat_type']}; phase the data to "
                             "a position with UVData.phase()")
    return (chosen, float(np.rad2deg(found["cat_lon"])), float(np.rad2deg(found["cat_lat"])),
            str(found["cat_name"]))


def _of_uvdata(uvd: Any, number: Optional[int]) -> Data:
    center, ra_deg, dec_deg, name = _center_of(uvd, number)
    of_center = np.asarray(uvd.phase_center_id_array) == center
    every = bool(of_center.all())
    places = np.flatnonzero(of_center)
    antennas = np.asarray(uvd.telescope.antenna_numbers)
    order = np.argsort(antennas)
    freq = np.asarray(uvd.freq_array).reshape(-1)
    width = np.broadcast_to(np.asarray(uvd.channel_width), freq.shape)
    spws = np.zeros(len(freq), int) if getattr(uvd, "flex_spw_id_array", None) is None else \
        np.asarray(uvd.flex_spw_id_array)

    def index(numbers: Any) -> Any:
        return order[np.searchsorted(antennas, numbers, sorter=order)]

    def reader(channels: Any) -> Callable[[slice, slice], Rows]:
        def read(rows: slice, chans: slice) -> Rows:
            at: Any = rows if every else places[rows]
            chan = channels[chans]
            good = ~np.asarray(uvd.flag_array[at][:, chan])
            # UVData has baselines from antenna 1 to antenna 2, and its visibilities are those
            # of this direction; in a MeasurementSet both are the other way round.
            return Rows(-np.asarray(uvd.uvw_array[at]),
                        (np.asarray(uvd.time_array[at]) - _MJD_OF_JD) * _DAY_S,
                        index(uvd.ant_1_array[at]), index(uvd.ant_2_array[at]),
                        np.conj(uvd.data_array[at][:, chan]),
                        np.where(good, uvd.nsample_array[at][:, chan], 0),
                        np.asarray(uvd.integration_time[at]))
        return read

    names = [_POLARISATIONS.get(int(p), str(p)) for p in uvd.polarization_array]
    windows = [Window(len(places), freq[spws == spw], width[spws == spw], names,
                      reader(np.flatnonzero(spws == spw))) for spw in np.unique(spws)]
    times = (np.asarray(uvd.time_array)[of_center] - _MJD_OF_JD) * _DAY_S
    where = uvd.telescope.location
    middle = [getattr(where, axis).to_value("m") for axis in ("x", "y", "z")]
    return Data(windows, ra_deg=ra_deg, dec_deg=dec_deg, num_antennas=len(antennas),
                times_mjd_s=(float(times.min()), float(times.max())),
                telescope=str(uvd.telescope.name or ""), object=name,
                antenna_xyz=np.asarray(uvd.telescope.antenna_positions) + middle,
                antenna_diameter=uvd.telescope.antenna_diameters)


# ---- xradio ----


def _datasets(found: Any) -> list[Any]:
    """The MSv4 of a processing set, in the order of their names."""
    if is_path(found):
        try:
            opened = importlib.import_module("xradio.measurement_set").open_processing_set
        except ImportError as error:
            raise lib.UsageError(f"{os.fsdecode(found)}: xradio, which opens processing sets, is "
                                 f"not installed (pip install 'xradio[zarr]'): {error}") from None
        found = opened(os.fsdecode(found))
    named = dict(getattr(found, "children", found))
    return [named[name] for name in sorted(named)]


def _field_center(ms: Any, group: str) -> tuple[float, float, str]:
    """RA and Dec in degrees, and the name of the field."""
    children = getattr(ms, "children", {})
    visibility = _variables(ms, group)[0]
    for name in (f"field_and_source_{group}_xds", "field_and_source_base_xds"):
        field = children.get(name) if children else ms.attrs.get(name)
        field = ms[visibility].attrs.get("field_and_source_xds") if field is None else field
        if field is not None and "FIELD_PHASE_CENTER_DIRECTION" in field:
            break
    if field is None:
        raise lib.InputError("the processing set tells no FIELD_PHASE_CENTER_DIRECTION")
    places = np.asarray(field["FIELD_PHASE_CENTER_DIRECTION"]).reshape(-1, 2)
    if np.abs(places - places[0]).max() > 1e-9:
        raise lib.UsageError("the processing set has several phase centres; select one")
    names = np.asarray(field.coords["field_name"]).reshape(-1) if "field_name" in field.coords \
        else [""]
    return float(np.rad2deg(places[0][0])), float(np.rad2deg(places[0][1])), str(names[0])


def _antennas_of(sets: Sequence[Any], numbers: dict[str, int]) -> dict[str, Any]:
    """Telescope, positions and diameters of antennas, as far as the processing set has them."""
    xyz, diameter = np.full((len(numbers), 3), np.nan), np.full(len(numbers), np.nan)
    telescope = ""
    for ms in sets:
        told = ms.attrs.get("observation_info", {})
        found = getattr(ms, "children", {}).get("antenna_xds", ms.attrs.get("antenna_xds"))
        if found is None:
            telescope = telescope or str(told.get("telescope_name", ""))
            continue
        telescope = telescope or str(found.attrs.get("overall_telescope_name") or
                                     told.get("telescope_name", ""))
        names = [str(name) for name in np.asarray(found["antenna_name"])]
        known = [k for k, name in enumerate(names) if name in numbers]
        at = [numbers[names[k]] for k in known]
        if "ANTENNA_POSITION" in found:
            xyz[at] = np.asarray(found["ANTENNA_POSITION"])[known]
        if "ANTENNA_DISH_DIAMETER" in found:
            diameter[at] = np.asarray(found["ANTENNA_DISH_DIAMETER"])[known]
    return dict(telescope=telescope,
                antenna_xyz=xyz if np.isfinite(xyz).all() else None,
                antenna_diameter=diameter if np.isfinite(diameter).all() else None)


def _variables(ms: Any, group: str) -> tuple[str, str, str, str]:
    """Names of the visibilities, weights, flags and uvw of a data group."""
    groups = ms.attrs.get("data_groups", {})
    if groups and group not in groups:
        raise lib.UsageError(f"there is no data group {group!r}: {', '.join(groups)}")
    chosen = groups.get(group, {})
    return (chosen.get("correlated_data", "VISIBILITY"), chosen.get("weight", "WEIGHT"),
            chosen.get("flag", "FLAG"), chosen.get("uvw", "UVW"))


def _of_processing_set(found: Any, group: str) -> Data:
    sets = _datasets(found)
    if not sets:
        raise lib.InputError("the processing set is empty")
    names: list[str] = []
    for ms in sets:
        for key in ("baseline_antenna1_name", "baseline_antenna2_name"):
            names += [str(n) for n in np.asarray(ms[key])]
    antennas = {name: k for k, name in enumerate(dict.fromkeys(names))}
    centers = [_field_center(ms, group) for ms in sets]
    if any(np.abs(np.subtract(c[:2], centers[0][:2])).max() > 1e-7 for c in centers):
        raise lib.UsageError("the processing set has several phase centres; select one with its "
                             "query()")
    times = np.concatenate([np.asarray(ms["time"]) for ms in sets]) + _UNIX_MJD_S
    kept: dict[tuple[int, int, int, int], list[Any]] = {}
    return Data([_window_of(ms, group, antennas, kept) for ms in sets], ra_deg=centers[0][0] % 360,
                dec_deg=centers[0][1], num_antennas=len(antennas), object=centers[0][2],
                times_mjd_s=(float(times.min()), float(times.max())),
                **_antennas_of(sets, antennas))


# Rows that are loaded at a time, at least: small pieces of a store take longer to find than to read.
_ROWS_AT_ONCE = 16384


def _times_stored_together(array: Any) -> int:
    """How many times a chunk of the store holds; 1 where the array is in memory."""
    told = array.encoding.get("preferred_chunks") or {}
    if "time" in told:
        return int(told["time"])
    chunks = array.encoding.get("chunks")
    return int(chunks[array.dims.index("time")]) if chunks else 1


def _window_of(ms: Any, group: str, antennas: dict[str, int],
               kept: dict[tuple[int, int, int, int], list[Any]]) -> Window:
    """A window whose rows are the baselines of the first time, then those of the next. A chunk
    of the store is decompressed as a whole, and kept until rows of the next one are asked for,
    of this window or another: all share `kept`."""
    variables = _variables(ms, group)
    first, second = (np.array([antennas[str(n)] for n in np.asarray(ms[key])])
                     for key in ("baseline_antenna1_name", "baseline_antenna2_name"))
    times = np.asarray(ms["time"]) + _UNIX_MJD_S
    baselines = len(first)
    length = ms["time"].attrs.get("integration_time", {"data": 0.0})
    length_s = float(length["data"] if isinstance(length, dict) else length)

    stored = _times_stored_together(ms[variables[0]])
    step = stored * max(1, _ROWS_AT_ONCE // (stored * baselines)) * baselines  # rows

    def load(part: int, chans: slice) -> list[Any]:
        """Visibilities, weights, flags and uvw of the rows from part * step on."""
        key = (id(ms), part, chans.start, chans.stop)
        if key not in kept:
            kept.clear()
            span = slice(part * step // baselines, (part + 1) * step // baselines)
            found = [np.asarray(ms[name].isel(time=span, **(
                {} if name == variables[3] else {"frequency": chans})).transpose(
                    "time", "baseline_id", ...)) for name in variables]
            kept[key] = [a.reshape(-1, *a.shape[2:]) for a in found]
        return kept[key]

    def read(rows: slice, chans: slice) -> Rows:
        pieces = [[a[max(rows.start - at, 0):rows.stop - at] for a in load(at // step, chans)]
                  for at in range(rows.start // step * step, rows.stop, step)]
        vis, weight, flag, uvw = (a[0] if len(a) == 1 else np.concatenate(a)
                                  for a in zip(*pieces))
        good = (flag == 0) & np.isfinite(uvw).all(axis=1)[:, None, None]
        row = np.arange(rows.start, rows.stop)
        return Rows(uvw, times[row // baselines], first[row % baselines],
                    second[row % baselines], vis, np.where(good, weight, 0), length_s)

    freq = np.asarray(ms["frequency"])
    width = ms["frequency"].attrs.get("channel_width", {"data": np.gradient(freq).mean()
                                                        if len(freq) > 1 else freq[0] * 1e-3})
    value = float(width["data"] if isinstance(width, dict) else width)
    return Window(len(times) * baselines, freq, np.full(len(freq), abs(value)),
                  [str(p) for p in np.asarray(ms["polarization"])], read)
