"""What the `tessera predict`, `info` and `simulate` programs do, from Python."""
from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._data import Named, Observation
from ._options import Angle, Call, Path, array_of, is_path, model_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._typed import (DrawOptions, PlanOptions, PredictOptions, RestoreOptions,
                         SimulateOptions)

__all__ = ["predict", "info", "simulate", "restore", "draw", "plan", "compare", "stats",
           "Prediction", "Predictions", "Comparison"]


class _Command(Call):
    """A command of the library and its results."""

    def __init__(self, name: str) -> None:
        library = lib.library
        super().__init__(lambda handle: library.tess_command_create(name.encode(), handle),
                         library.tess_command_set, library.tess_command_destroy)

    def run(self) -> None:
        lib.check(lib.library.tess_command_run(self.handle))

    def files(self, *paths: Any, name: str = "file") -> None:
        """The files of the command line, one after the other."""
        for path in paths:
            self.set(name, os.fsdecode(path))

    def text(self) -> str:
        text: bytes = lib.library.tess_command_text(self.handle)
        return text.decode(errors="replace")


class Prediction:
    """Predicted visibilities of rows that share channels and correlations: a spectral
    window of a MeasurementSet, or a whole UVFITS file.

    The arrays are the library's own memory, which lives as long as anything refers to it.
    Rows are in the file's order, flagged or not.

    Attributes
    ----------
    vis : numpy.ndarray((nrows, nchan, ncorr), dtype=numpy.complex64)
        visibilities in Jy; 0 in rows whose uvw is not finite
    uvw : numpy.ndarray((nrows, 3), dtype=numpy.float64)
        baselines in metres, as in the file
    time_mjd_s : numpy.ndarray((nrows,), dtype=numpy.float64)
        centres of the integrations: UTC, as seconds of the modified Julian date
    antenna1, antenna2 : numpy.ndarray((nrows,), dtype=numpy.int32)
        numbers of the antennas, as `info(...)["antennas"]` lists them
    freq_hz : numpy.ndarray((nchan,), dtype=numpy.float64)
        centres of the channels
    correlations : tuple of str
        ("XX", "YY"), ...: what the last axis of `vis` is
    field : int or None
        of a mosaic: the number of the field of the rows, as FIELD_ID has it
    """

    vis: npt.NDArray[np.complex64]
    uvw: npt.NDArray[np.float64]
    time_mjd_s: npt.NDArray[np.float64]
    antenna1: npt.NDArray[np.int32]
    antenna2: npt.NDArray[np.int32]
    freq_hz: npt.NDArray[np.float64]
    correlations: tuple[str, ...]
    field: Optional[int]

    def __init__(self, owner: Any, found: lib.Predicted) -> None:
        rows, chans, corrs = found.num_rows, found.num_chan, found.num_corr
        self.vis = array_of(owner, found.vis, (rows, chans, corrs), np.complex64)
        self.uvw = array_of(owner, found.uvw_m, (rows, 3), np.float64)
        self.time_mjd_s = array_of(owner, found.time_mjd_s, (rows,), np.float64)
        self.antenna1 = array_of(owner, found.antenna1, (rows,), np.int32)
        self.antenna2 = array_of(owner, found.antenna2, (rows,), np.int32)
        self.freq_hz = array_of(owner, found.freq_hz, (chans,), np.float64)
        self.correlations = tuple(found.corr[k].decode() for k in range(corrs))
        self.field = found.field if found.field >= 0 else None

    def __repr__(self) -> str:
        rows, chans, _ = self.vis.shape
        return (f"<tessera.Prediction {rows} rows x {chans} channels, "
                f"{','.join(self.correlations)}>")


class Predictions(list[Prediction]):
    """The predictions of a run, one for each spectral window, or one for a UVFITS file;
    empty when they were written to a file or column."""

    @property
    def vis(self) -> npt.NDArray[np.complex64]:
        """The visibilities of the only prediction: see Prediction.

        Raises
        ------
        ValueError : there are several, or none
        """
        if len(self) != 1:
            raise lib.UsageError(f"there are {len(self)} predictions; name one by its "
                                 "number, as in predictions[0].vis")
        return self[0].vis


def predict(obs: Observation, *, model: Union[Path, npt.ArrayLike], scale: Optional[Angle] = None,
            output: Optional[Path] = None, column: Optional[str] = None,
            **options: Unpack[PredictOptions]) -> Predictions:
    """Predict the visibilities of a model image, for every row of an observation.

    Parameters
    ----------
    obs : path
        a UVFITS file or a MeasurementSet
    model : path, or array of shape (ny, nx) or (nstokes, ny, nx)
        a FITS image, or pixels in Jy/pixel: row 0 is South, column 0 East, pixel
        [ny//2, nx//2] is the phase centre, as in `Image.data`. The planes of a third axis
        are Stokes I, Q, U, V in this order, as many of them as there are. Pixels that are
        not finite count as 0. A float32 array without gaps is used where it lies, as is a
        float64 one.
    scale : str, float or astropy.units.Quantity
        pixel size of a model array: "1.5asec" (uas, mas, asec, amin, deg, rad), or
        radians. A FITS image has its own.
    output : path, optional
        writes a copy of the observation with the predicted visibilities: UVFITS, or a
        MeasurementSet if the name ends in .ms
    column : str, optional
        writes them to this column of the MeasurementSet, like "MODEL_DATA"
    **options
        those of `tessera predict --help` by their long names, - written as _:
        accuracy=1e-4, channels="0:8", field="3C273", center="12:30:49.4,+12:23:28",
        threads=2, memory="8GB", overwrite=True, w="none", ... log="info" shows progress
        on stderr.

    Returns
    -------
    Predictions
        a list with a Prediction for each spectral window; `.vis` is the array of the only
        one. Empty with `output` or `column`.

    Raises
    ------
    ValueError (options, bad data), TypeError (type of the model), OSError (files),
    MemoryError; all are tessera.Error.

    >>> model = np.zeros((256, 256))
    >>> model[128, 100] = 1.5                                          # Jy
    >>> tessera.predict("obs.ms", model=model, scale="2asec").vis      # doctest: +SKIP
    """
    command, named = _Command("predict"), Named(obs)
    command.files(*named.names, name="obs")
    if is_path(model):
        if scale is not None:
            raise lib.UsageError("scale: a model in a file has its own pixel size")
        command.set_all(dict(model=model))
    else:
        if scale is None:
            raise lib.UsageError("scale is missing: the pixel size of the model array")
        lib.library.tess_command_model(command.handle, model_of(model, scale, command))
    command.set_all(dict(output=output, column=column, **options))
    try:
        command.run()
    except lib.InputError:
        named.raise_error()
        raise
    finally:
        named.close()
    count = lib.library.tess_command_count(command.handle)
    return Predictions(
        Prediction(command, lib.library.tess_command_predicted(command.handle, k).contents)
        for k in range(count))


def info(obs: Path, *, field: Union[None, str, int] = None,
         datacolumn: Optional[str] = None, flags: bool = False) -> dict[str, Any]:
    """Describe an observation, as `tessera info --json` does.

    Parameters
    ----------
    obs : path
        a UVFITS file or a MeasurementSet
    field : str or int, optional
        rows of this field only, by name or number
    datacolumn : str, optional
        column of a MeasurementSet (default CORRECTED_DATA if there, else DATA)
    flags : bool
        count flags however large the set is; without it, when that takes seconds

    Returns
    -------
    dict
        "telescope", "fields", "spectral_windows", "antennas", "rows", "max_uv_lambda",
        "suggested_scale_asec", "suggested_size", ...; names end in their units

    Raises
    ------
    ValueError (options, bad data), OSError (files), MemoryError; all are tessera.Error.

    >>> found = tessera.info("obs.ms")                                 # doctest: +SKIP
    >>> found["telescope"], found["suggested_scale_asec"]              # doctest: +SKIP
    """
    command = _Command("info")
    command.set("obs", os.fsdecode(obs))
    command.set_all(dict(datacolumn=datacolumn, flags=flags))
    if field is not None:
        command.set("field", str(field))
    command.run()
    found: dict[str, Any] = json.loads(lib.library.tess_command_text(command.handle))
    return found


def simulate(output: Path, *, layout: Path, sky: Path, ra: str, dec: str, duration: str,
             freq: str, autocorrelations: bool = False,
             **options: Unpack[SimulateOptions]) -> str:
    """Make an observation of a sky model: visibilities by the direct sum, in double
    precision, with noise if asked for.

    Parameters
    ----------
    output : path
        the set to write: a MeasurementSet if the name ends in .ms, else UVFITS
    layout : path or str
        a built-in array ("meerkat", "vla-a", ...: `tessera simulate --list-layouts`), or a
        CSV file of antenna positions
    sky : path
        a CSV file of sources, or a FITS image in Jy/pixel
    ra, dec : str
        phase centre, J2000: "4h00m00s", "-30d00m00s", or with a unit "60deg"
    duration : str
        length, like "2h"
    freq : str
        centre of the band, like "1.28GHz"
    autocorrelations : bool
        write these, too
    **options
        those of `tessera simulate --help` by their long names, - written as _:
        integration="8s", chan_width="1MHz", channels=16, pol="XX,YY", sefd="400Jy",
        seed=1, start="2026-01-01T20:00:00", antennas=64, threads=2, overwrite=True, ...
        log="info" shows progress on stderr.

    Returns
    -------
    str
        the name of the set, for a call of image() or info()

    Raises
    ------
    ValueError (options, bad data), OSError (files), MemoryError; all are tessera.Error.

    >>> obs = tessera.simulate("obs.uvfits", layout="meerkat", sky="sky.csv", ra="4h",
    ...                        dec="-30deg", duration="1h", freq="1.28GHz")   # doctest: +SKIP
    """
    command = _Command("simulate")
    command.set("autocorrelations", "yes" if autocorrelations else "no")
    command.set_all(dict(output=output, layout=layout, sky=sky, ra=ra, dec=dec,
                         duration=duration, freq=freq, **options))
    command.run()
    return os.fsdecode(output)


def restore(residual: Path, model: Path, *, output: Path,
            **options: Unpack[RestoreOptions]) -> str:
    """Convolve a model in a file with a beam, add a residual image, and write the restored
    image, as `tessera restore` does. `Session.restore` does so with arrays.

    Parameters
    ----------
    residual, model : path
        FITS images or cubes of the same pixels; the model may be a list of sources
    output : path
        the restored image
    **options
        those of `tessera restore --help`: beam_size="6asec", beam_shape="8asec,6asec,30deg",
        common_beam=True, overwrite=True, ...

    Returns
    -------
    str
        the name of the restored image

    Raises
    ------
    ValueError (options, bad data), OSError (files), MemoryError; all are tessera.Error.
    """
    command = _Command("restore")
    command.files(residual, model)
    command.set_all(dict(output=output, **options))
    command.run()
    return os.fsdecode(output)


def draw(sources: Path, *, output: Path, **options: Unpack[DrawOptions]) -> str:
    """Draw a list of sources as a FITS image, as `tessera draw` does.

    Parameters
    ----------
    sources : path
        a list as DP3 and WSClean write it
    output : path
        the image
    **options
        those of `tessera draw --help`: like="image.fits", or size=4096, scale="1.5asec" and
        obs="obs.ms" or center="4h00m00s,-30d00m00s"; freq, stokes, terms, beam_size, ...

    Returns
    -------
    str
        the name of the image
    """
    command = _Command("draw")
    command.files(sources)
    command.set_all(dict(output=output, **options))
    command.run()
    return os.fsdecode(output)


def plan(obs: Union[Path, Sequence[Path]], *, size: Union[int, str, Sequence[int]],
         scale: Angle, **options: Unpack[PlanOptions]) -> str:
    """How `tessera.image` would make an image with the same options, in the words of
    `tessera plan`: w-planes, memory and the time of each stage. It reads positions only.
    """
    command = _Command("plan")
    paths: Sequence[Any] = [obs] if isinstance(obs, (str, bytes, os.PathLike)) else list(obs)
    command.files(*paths, name="obs")
    command.set_all(dict(size=size, scale=scale, **options))
    command.run()
    return command.text()


class Comparison(NamedTuple):
    """What `compare` finds: whether all images agree, and a line for each pair of them."""
    agrees: bool
    text: str

    def __bool__(self) -> bool:
        return self.agrees


def compare(first: Path, second: Path, *, rtol: Optional[float] = None,
            atol: Optional[float] = None, pixels_only: bool = False) -> Comparison:
    """Compare two FITS images, or the images of two folders, as `tessera compare` does.

    Parameters
    ----------
    first, second : path
    rtol : float, optional
        relative tolerance (default 1e-5)
    atol : float, optional
        tolerance near zero as a fraction of the peak (default rtol times the rms)
    pixels_only : bool
        leave headers out

    Returns
    -------
    Comparison
        true if they agree; `.text` says how they differ
    """
    command = _Command("compare")
    command.files(first, second)
    command.set_all(dict(rtol=rtol, atol=atol, pixels_only=pixels_only, log="info"))
    status = lib.library.tess_command_run(command.handle)
    if status != lib.DIFFERENT:
        lib.check(status)
    return Comparison(status != lib.DIFFERENT, command.text())


_STATS_FILE = re.compile(r"^(\S.*): (\d+) x (\d+) pixels(?:, plane (\d+) of \d+)?")
_STATS_LINE = re.compile(r"^  (\S.*?)  +(-?[\d.e+-]+)(?: (\S+))?")
_PREFIXES = {"": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9, "k": 1e3, "M": 1e6}


def _in_units(value: str, unit: str) -> float:
    """1.2 mJy/beam in Jy/beam; other numbers as they are."""
    match = re.match(r"(.?)Jy", unit)
    return float(value) * (_PREFIXES.get(match.group(1), 1.0) if match else 1.0)


def stats(*files: Path) -> list[dict[str, Any]]:
    """Peak, noise, beam and flux of FITS images, as `tessera stats` prints them.

    Returns
    -------
    list of dict
        for each plane: "file", "plane" (from 1), "nx", "ny", and of planes with pixels
        "peak", "minimum", "rms", "noise" (1.4826 times the median absolute deviation),
        "dynamic range", "flux"; in Jy/beam, Jy/pixel and Jy, with five digits

    >>> tessera.stats("sky-image.fits")[0]["noise"]                    # doctest: +SKIP
    """
    command = _Command("stats")
    command.files(*files)
    command.run()
    found: list[dict[str, Any]] = []
    for line in command.text().splitlines():
        head, value = _STATS_FILE.match(line), _STATS_LINE.match(line)
        if head:
            found.append(dict(file=head.group(1), nx=int(head.group(2)), ny=int(head.group(3)),
                              plane=int(head.group(4) or 1)))
        elif value and value.group(1) != "beam":
            found[-1][value.group(1)] = _in_units(value.group(2), value.group(3) or "")
    return found
