"""Observations that stay open: images of them less one model after another."""
from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterator, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._data import Named, Observation
from ._options import Angle, Call, Path, is_path, text_of
from .commands import Prediction, Predictions
from .imager import EachMajor, Images, Run, header_of, write_fits

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._typed import ImageOptions

__all__ = ["Session", "Weights"]


class Weights:
    """What an output is made of.

    Attributes
    ----------
    sum : float
        sum of the imaging weights
    freq_hz : float
        mean frequency of the visibilities; 0 without any
    num_vis : int
        visibilities that are imaged
    """

    def __init__(self, made: lib.SessionWeights) -> None:
        self.sum: float = made.sum
        self.freq_hz: float = made.freq_hz
        self.num_vis: int = made.num_vis

    def __repr__(self) -> str:
        return (f"<tessera.Weights sum {self.sum:.6g}, {self.num_vis} visibilities, "
                f"{self.freq_hz / 1e6:.6g} MHz>")


class _Predicted:
    """Predictions of the library, as long as any array refers to them."""

    def __init__(self) -> None:
        self.handle = ctypes.c_void_p()

    def __del__(self) -> None:
        lib.library.tess_predictions_destroy(self.handle)


def _file_of(model: Any, num_terms: int) -> lib.ModelFile:
    return lib.ModelFile(lib.text("model", model),
                         lib.whole("fit_spectral_pol", num_terms, 32))


def _output_of(interval: int, channel: int) -> tuple[int, int]:
    return lib.whole("interval", interval), lib.whole("channel", channel)


_DEGREES = {"deg": 1.0, "amin": 1 / 60, "asec": 1 / 3600, "mas": 1 / 3.6e6,
            "uas": 1 / 3.6e9, "rad": 180 / np.pi}


def _degrees(value: Any) -> float:
    if isinstance(value, (int, float)):
        return float(value)
    text = str(text_of("beam", value))
    for unit, factor in sorted(_DEGREES.items(), key=lambda item: -len(item[0])):
        if text.endswith(unit):
            try:
                return float(text[:-len(unit)]) * factor
            except ValueError:
                break
    raise lib.UsageError(f"beam: {value!r} is no angle, like 6asec")


def _beam_rad(beam: Any) -> list[float]:
    """FWHM of both axes and position angle; zeros: that of the output."""
    if beam is None:
        return [0.0, 0.0, 0.0]
    parts = list(beam) if isinstance(beam, (tuple, list)) else [beam, beam, 0.0]
    if len(parts) != 3:
        raise lib.UsageError(f"beam: {beam!r} is no size, and not (major, minor, angle)")
    return [float(np.deg2rad(_degrees(part))) for part in parts]


class Session:
    """Observations that are read, weighted and sorted once, and imaged as often as asked:
    what a deconvolution of your own calls.

    Parameters are those of `tessera.image`: observations, `size`, `scale` and options.
    Options of files ("output", "subtract", "checkpoint") play no part; models may be
    arrays or files. With `scratch`,
    visibilities that do not fit into memory are kept in a file in that folder.

    An output is an output channel (`channels_out`) of an interval (`intervals_out`); most
    sessions have one. Images are float64 arrays of shape (ny, nx), or
    (polarisations, ny, nx) with several `stokes`: row 0 is South, column 0 East. They are
    NaN beyond the horizon, and everywhere where an output has no visibilities.

    With `facets`, an image is made by facets, with `facet_solutions` in the gains of
    their directions; `solutions()` gives them others, for a self-calibration that reads
    the data once. Images are as the data see them, and models are in true flux: an
    image over `response()` is, too.

    With `mosaic=True`, images are those of `tessera image --mosaic`, of even noise, and
    blank where the beam of the mosaic is below `pb_limit`. Models are in true flux, and
    each pointing sees them through its `primary_beam`.

    Calls of several threads take turns. A session belongs to the process that opened it:
    a process that is forked from it, as by multiprocessing, opens one of its own.

    Attributes
    ----------
    shape : shape of the images
    polarisations : names of the images of an output, like ["I", "Q"]
    facets : names of the facets; empty without the option `facets`
    num_channels, num_intervals : number of outputs
    scale_rad : size of a pixel
    ra_rad, dec_rad : position of pixel [ny//2, nx//2]

    >>> with tessera.Session("obs.ms", size=1024, scale="1.5asec") as session:
    ...     model = np.zeros(session.shape)                    # doctest: +SKIP
    ...     residual = session.residual(model)                 # doctest: +SKIP
    """

    def __init__(self, obs: Union[Observation, Sequence[Observation]], *,
                 size: Union[int, str, Sequence[int]], scale: Angle,
                 **options: Unpack[ImageOptions]) -> None:
        library = lib.library
        self._lock, self._process = threading.RLock(), os.getpid()
        self._call: Optional[Call] = Call(library.tess_session_create,
                                          library.tess_session_set,
                                          library.tess_session_destroy)
        self._named = Named(obs)
        self._paths: list[str] = self._named.names
        self._options: dict[str, Any] = dict(size=size, scale=scale, **options)
        for path in self._paths:
            self._call.set("obs", path)
        self._call.set_all(self._options)
        try:
            lib.check(library.tess_session_open(self._call.handle))
        except lib.InputError:
            self._named.raise_error()
            raise
        info = library.tess_session_info_of(self._call.handle).contents
        self.num_intervals: int = info.num_intervals
        self.num_channels: int = info.num_channels
        self.scale_rad: float = info.scale_rad
        self.ra_rad: float = info.ra_rad
        self.dec_rad: float = info.dec_rad
        self.polarisations: list[str] = [
            library.tess_session_polarisation(self._call.handle, k).decode()
            for k in range(info.num_pol)]
        self.facets: list[str] = [
            library.tess_session_facet(self._call.handle, k).decode()
            for k in range(library.tess_session_num_facets(self._call.handle))]
        planes = (info.num_pol,) if info.num_pol > 1 else ()
        self.shape: tuple[int, ...] = planes + (info.ny, info.nx)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[ctypes.c_void_p]:
        """The handle for a call, during which no other thread closes the session."""
        if os.getpid() != self._process:
            raise lib.UsageError(
                f"the session belongs to process {self._process}, which this one was "
                "forked from; open a session in this process")
        with self._lock:
            call = self._call
            if call is None:
                raise lib.UsageError("the session is closed")
            yield call.handle

    def _image(self, channel: int, interval: int, model: Optional[npt.NDArray[np.float64]],
               with_psf: bool) -> list[npt.NDArray[np.float64]]:
        images = [np.empty(self.shape) for _ in range(1 + with_psf)]
        output = _output_of(interval, channel)
        with self._turn() as handle:
            lib.check(lib.library.tess_session_image(
                handle, *output, None if model is None else model.ctypes.data,
                images[0].ctypes.data, images[1].ctypes.data if with_psf else None))
        return images

    def _pixels(self, model: npt.ArrayLike) -> npt.NDArray[np.float64]:
        pixels = np.asarray(model)
        if pixels.dtype.kind not in "fiu":
            raise lib.ArrayTypeError(f"the model has type {pixels.dtype}, not float64")
        if pixels.shape != self.shape:
            raise lib.UsageError(f"the model has shape {pixels.shape}, the session's images "
                                 f"{self.shape}")
        return np.ascontiguousarray(pixels, np.float64)

    def _array(self, model: Any, fit_spectral_pol: int) -> npt.NDArray[np.float64]:
        if fit_spectral_pol:
            raise lib.UsageError("fit_spectral_pol: an array is of one channel; the channels "
                                 "of files can be fitted")
        return self._pixels(model)

    def dirty(self, channel: int = 0, interval: int = 0) -> npt.NDArray[np.float64]:
        """The dirty image of an output in Jy/beam."""
        return self._image(channel, interval, None, False)[0]

    def psf(self, channel: int = 0, interval: int = 0) -> npt.NDArray[np.float64]:
        """The point spread function of an output; 1 at pixel [ny//2, nx//2]."""
        return self._image(channel, interval, None, True)[1]

    def residual(self, model: Union[npt.ArrayLike, Path], channel: int = 0,
                 interval: int = 0, fit_spectral_pol: int = 0) -> npt.NDArray[np.float64]:
        """The image of an output less a model, in Jy/beam.

        The visibilities of `model`, an array of the session's shape in Jy/pixel, are
        predicted and subtracted from the data, and the difference is imaged. Pixels that
        are not finite count as 0. Nothing accumulates from call to call.

        `model` may also name files, as `subtract` of `tessera.image` does: a FITS image, a
        cube with a FREQ axis, or the NAME of NAME-cube-model.fits, of a set
        NAME-0000-model.fits, NAME-0001-model.fits ... or of NAME-model.fits, of pixels of
        the size of the session's. Where a model has several channels, each channel of the data takes the
        nearest of them in frequency. With `fit_spectral_pol=N` it takes the value of a
        polynomial of N terms, which is fitted to each pixel through the model's channels.
        """
        if is_path(model):
            image = np.empty(self.shape)
            file, output = _file_of(model, fit_spectral_pol), _output_of(interval, channel)
            with self._turn() as handle:
                lib.check(lib.library.tess_session_image_file(
                    handle, *output, ctypes.byref(file), image.ctypes.data, None))
            return image
        return self._image(channel, interval, self._array(model, fit_spectral_pol),
                           False)[0]

    def solutions(self, facet_solutions: Union[None, Path, Sequence[Path]] = None,
                  soltabs: Union[None, str, Sequence[str]] = None) -> None:
        """Give the facets the solutions of h5parm files, in place of those that they have.

        The arguments are those of the options of these names; None: no solutions. Nothing
        is read but these files. Solutions that mix feeds (full Jones) need a session that
        was opened with such, or with all of `stokes`.

        Raises
        ------
        tessera.UsageError : the session has no facets, or holds too few correlations
        tessera.InputError : the file does not fit the observations or the facets; they
            keep the solutions that they have
        """
        names = [None if value is None else lib.text(name, text_of(name, value))
                 for name, value in (("facet_solutions", facet_solutions),
                                     ("soltabs", soltabs))]
        with self._turn() as handle:
            lib.check(lib.library.tess_session_solutions(handle, *names))
            self._options.update(facet_solutions=facet_solutions, soltabs=soltabs)

    def response(self, channel: int = 0, interval: int = 0) -> npt.NDArray[np.float64]:
        """What images of an output are over to be in true flux: the root of the response of
        the facets, which is NaN in no facet and 1 without gains, or the beam of a mosaic,
        not cut."""
        response = np.empty(self.shape)
        with self._turn() as handle:
            lib.check(lib.library.tess_session_response(
                handle, *_output_of(interval, channel), response.ctypes.data))
        return response

    def predict(self, model: Union[npt.ArrayLike, Path], channel: int = 0,
                interval: int = 0, fit_spectral_pol: int = 0, facet: Optional[str] = None,
                gains: bool = True) -> Predictions:
        """The visibilities of a model at all rows of an output, flagged or not.

        `model` is an array of the session's shape in Jy/pixel. The result is what
        `tessera.predict` makes of the same model, in its form: a list with a Prediction
        for each spectral window of each observation, whose `.vis` is the array
        (rows, channels, correlations) of the only one. It has the rows of the output's
        interval and the channels of its output channel. A session of Stokes parameters
        predicts all correlations from them. A session of correlations predicts each from
        its own image; the others are 0.

        `model` may also name files, as `model` of `tessera.predict` does: an image, a cube
        or a set, of any pixels. Channels of the data take the nearest channel of the
        model, or with `fit_spectral_pol=N` the value of a polynomial, as `residual` says.
        All correlations are predicted from the Stokes parameters of such a model.

        Of a mosaic, there is a prediction for each spectral window of each field
        (`.field`): what its pointing sees of the model, as of `tessera predict --mosaic`,
        with the beam of the output's channels. Models are arrays.

        With facets, `facet` names the one whose part of the model is predicted (None: all),
        and with `gains=False` gains are 1: what a calibration of each direction needs.
        Models are arrays then.

        The session keeps good visibilities only. The first call therefore reads the
        positions of all rows once more. They are kept for the next calls, as are, for
        models that are arrays, the plan and the planes of prediction. A mosaic plans each
        field anew in each call. The plan grows when an output has other |w| than those
        before, after which predictions differ within `accuracy` from earlier ones of the
        same output; with `reproducible=True` they do not.
        """
        predicted, output = _Predicted(), _output_of(interval, channel)
        try:
            if is_path(model):
                if facet is not None:
                    raise lib.UsageError("facet: parts of models that are arrays are predicted")
                file = _file_of(model, fit_spectral_pol)
                with self._turn() as handle:
                    lib.check(lib.library.tess_session_predict_file(
                        handle, *output, ctypes.byref(file), ctypes.byref(predicted.handle)))
            else:
                pixels = self._array(model, fit_spectral_pol)
                name = None if facet is None else lib.text("facet", facet)
                with self._turn() as handle:
                    lib.check(lib.library.tess_session_predict_facet(
                        handle, *output, pixels.ctypes.data, name, bool(gains),
                        ctypes.byref(predicted.handle)))
        except lib.InputError:
            self._named.raise_error()  # of a function that fills in the rows, read once more
            raise
        count = lib.library.tess_predictions_count(predicted.handle)
        return Predictions(
            Prediction(predicted,
                       lib.library.tess_predictions_get(predicted.handle, k).contents)
            for k in range(count))

    def read_model(self, model: Path, channel: int = 0, interval: int = 0,
                   fit_spectral_pol: int = 0) -> npt.NDArray[np.float64]:
        """The model in files for an output, in Jy/pixel, to go on from it.

        `model` names an image, a cube or a set, as `residual` says, of the session's
        pixels. An output channel gets the model's channel of its own frequency. Where the
        model has none, it gets the nearest one in frequency, or with `fit_spectral_pol=N`
        the value at its centre of the polynomial of N terms that is fitted to each pixel
        through the model's channels. Pixels that are not finite become 0.

        With gains of facets or of a mosaic, models are in true flux: the name of a set means
        NAME-0000-model-pb.fits ..., if they are there, and so with cubes and single images.
        Where `mosaic` or `facet_beam` acts, models that have been seen through a beam are
        refused in place of these.
        """
        pixels, file = np.empty(self.shape), _file_of(model, fit_spectral_pol)
        output = _output_of(interval, channel)
        with self._turn() as handle:
            lib.check(lib.library.tess_session_read_model(
                handle, *output, ctypes.byref(file), pixels.ctypes.data))
        return pixels

    def beam(self, channel: int = 0, interval: int = 0
             ) -> Optional[tuple[float, float, float]]:
        """The beam that is fitted to the PSF of an output: FWHM of both axes and position
        angle from North through East, in degrees; None where none can be fitted. The first
        call makes the PSF."""
        beam = (lib.c_f64 * 3)()
        with self._turn() as handle:
            lib.check(lib.library.tess_session_beam(handle, *_output_of(interval, channel),
                                                    beam))
        major, minor, angle = (float(np.rad2deg(b)) for b in beam)
        return (major, minor, angle) if major > 0 else None

    def restore(self, model: npt.ArrayLike, residual: Optional[npt.ArrayLike] = None,
                channel: int = 0, interval: int = 0,
                beam: Union[None, Angle, Sequence[Any]] = None) -> npt.NDArray[np.float64]:
        """The restored image in Jy/beam: the model, convolved with a beam, plus a residual.

        Parameters
        ----------
        model : array of the session's shape, in Jy/pixel
        residual : array of the session's shape, in Jy/beam, optional
            default: self.residual(model)
        beam : (major, minor, position angle) or a circular beam's FWHM, optional
            degrees, or texts like "6asec", or astropy Quantities; default: self.beam()
        """
        pixels = self._pixels(model)
        rest = self.residual(pixels, channel, interval) if residual is None else \
            self._pixels(residual)
        restored = np.empty(self.shape)
        arrays = lib.Restored(pixels.ctypes.data, rest.ctypes.data, restored.ctypes.data)
        arrays.beam_rad[:] = _beam_rad(beam)
        with self._turn() as handle:
            lib.check(lib.library.tess_session_restore(
                handle, *_output_of(interval, channel), ctypes.byref(arrays)))
        return restored

    def _cards(self, kind: str, channel: int, interval: int, polarisation: int) -> str:
        header, size = ctypes.c_void_p(), lib.c_i64()
        with self._turn() as handle:
            lib.check(lib.library.tess_session_header(
                handle, *_output_of(interval, channel), lib.text("kind", kind),
                lib.whole("polarisation", polarisation, 32), ctypes.byref(header),
                ctypes.byref(size)))
            return ctypes.string_at(header, size.value).decode("ascii")

    def header(self, kind: str = "image", channel: int = 0, interval: int = 0,
               polarisation: int = 0) -> Any:
        """The header that `tessera.image` would give an image of this kind, "dirty", "psf",
        "model", "residual" or "image": astropy.io.fits.Header, or a dict without astropy."""
        return header_of(self._cards(kind, channel, interval, polarisation))

    @property
    def wcs(self) -> Any:
        """astropy.wcs.WCS of the two celestial axes, for plots and positions.

        Raises
        ------
        ImportError : astropy is not installed
        """
        from astropy.wcs import WCS
        return WCS(self.header("dirty")).celestial

    def write_fits(self, path: Path, image: npt.ArrayLike, kind: str = "image",
                   channel: int = 0, interval: int = 0, polarisation: int = 0,
                   overwrite: bool = False) -> None:
        """Write an image (ny, nx) of the session with the header of its kind, by astropy.

        Raises
        ------
        tessera.UsageError : it has another shape; astropy is not installed
        tessera.FileError : the file is there already, or cannot be written
        """
        pixels = np.asarray(image)
        if pixels.shape != self.shape[-2:]:
            raise lib.UsageError(f"the image has shape {pixels.shape}, and not "
                                 f"{self.shape[-2:]}; write each polarisation by itself")
        write_fits(path, pixels, self._cards(kind, channel, interval, polarisation), overwrite)

    def clean(self, *, each_major: Optional[EachMajor] = None,
              **options: Unpack[ImageOptions]) -> Images:
        """Clean all outputs, on the visibilities that the session holds.

        Parameters
        ----------
        each_major : function, optional
            is called with a tessera.Major after each minor loop; if it returns False, cleaning
            ends, and the images are restored with what has been found. It must not call
            tessera itself.
        **options
            those of `tessera.image` for cleaning and restoring: niter=10000, which is needed,
            auto_threshold=3, auto_mask=5, threshold="1mJy", mgain=0.8, multiscale=True, fits_mask="mask.fits",
            beam_size="6asec", ... What the session holds, like its size, primary_beam or
            mosaic, stays as it was opened: other values are refused, and False and None
            are as good as none.

        Returns
        -------
        Images
            `.image`, `.model`, `.residual`, `.dirty`, `.psf` and `.select(...)`, as of
            `tessera.image`; means over channels are not made

        Raises
        ------
        tessera.UsageError : no niter, or an option that is of opening a session
        """
        for name in ("facet_solutions", "soltabs"):
            given, held = options.get(name), self._options.get(name)
            if given is not None and (held is None or
                                      text_of(name, given) != text_of(name, held)):
                raise lib.UsageError(f"{name}: solutions() gives an open session others")
        run = Run()
        for path in self._paths:
            run.set("obs", path)
        run.set_all({**self._options, **options})
        run.watch(each_major)
        with self._turn() as handle:
            run.finish(lib.library.tess_session_clean(handle, run.handle))
        return run.images()

    def weights(self, channel: int = 0, interval: int = 0, polarisation: int = 0) -> Weights:
        """What an output is made of, for one of its polarisations."""
        made = lib.SessionWeights()
        output = _output_of(interval, channel)
        pol = lib.whole("polarisation", polarisation, 32)
        with self._turn() as handle:
            lib.check(lib.library.tess_session_weights_of(handle, *output, pol,
                                                          ctypes.byref(made)))
        return Weights(made)

    def close(self) -> None:
        """Give the visibilities up. The session cannot be used after it.

        A call that another thread is in ends first; calls that wait for it are refused.
        """
        if os.getpid() != self._process:  # the lock may be held by a thread of the parent
            self._call = None
            return
        with self._lock:
            self._call = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()
