"""Images of observations in files: the imager of the `tessera image` program."""
from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._data import Named, Observation
from ._options import Angle, Call, Path, array_of, is_path, model_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._typed import ImageOptions

__all__ = ["image", "Image", "Images", "Major"]

# Keywords of a FITS header that place pixels on the sky.
_WCS_KEYS = ("CTYPE", "CRPIX", "CRVAL", "CDELT", "CUNIT")
_WCS_ALONE = ("NAXIS", "LONPOLE", "LATPOLE", "RADESYS", "EQUINOX", "SPECSYS", "BUNIT",
              "BMAJ", "BMIN", "BPA")


class Major(NamedTuple):
    """What a minor loop of cleaning has done.

    Attributes
    ----------
    interval, channel : of the image; channel is None for channels that are cleaned together
    polarisation : the first of those that are cleaned together
    major : number of the major iteration, from 1
    minor_iterations, iterations : of this minor loop, and of all so far
    peak_start, peak, threshold : largest residual before the loop and after it, and the value
        at which the loop ends, in Jy/beam
    rms : of the residual at the end of the loop
    flux : of the loop's components, in Jy
    end : why cleaning ends here: "threshold", "niter", "nmiter", "mask-nmiter", "negative",
        "stalled", "diverged", "nothing"; "" where it goes on
    """
    interval: int
    channel: Optional[int]
    polarisation: str
    major: int
    minor_iterations: int
    iterations: int
    peak_start: float
    peak: float
    threshold: float
    rms: float
    flux: float
    end: str


# Is called with a Major; False ends the cleaning of these images.
EachMajor = Callable[[Major], Any]


class Run(Call):
    """Owner of the library's imager, which owns the pixels."""

    def __init__(self) -> None:
        library = lib.library
        super().__init__(library.tess_image_create, library.tess_image_set,
                         library.tess_image_destroy)
        self._raised: list[BaseException] = []

    def watch(self, each_major: Optional[EachMajor]) -> None:
        """Call a function after each minor loop. What it raises ends cleaning, and the call."""
        if each_major is None:
            return
        call = each_major

        def tell(_: Any, told: Any) -> bool:
            major = told.contents
            try:
                return call(Major(
                    major.interval, None if major.channel < 0 else major.channel,
                    major.polarisation.decode(), major.major, major.minor_iterations,
                    major.iterations, major.peak_start, major.peak_end, major.threshold,
                    major.rms, major.flux_jy, major.end.decode())) is not False
            except BaseException as error:  # cannot pass through the library
                self._raised.append(error)
                return False

        lib.library.tess_image_watch(self.handle, self.hold(lib.Watcher(tell)), None)

    def run(self) -> None:
        self.finish(lib.library.tess_image_run(self.handle))

    def finish(self, status: int) -> None:
        """Raise what a watcher has raised, or what the library says."""
        raised, self._raised = self._raised, []
        if raised:
            raise raised[0]
        lib.check(status)

    def images(self) -> Images:
        count = lib.library.tess_image_count(self.handle)
        return Images(Image(self, lib.library.tess_image_get(self.handle, k).contents)
                      for k in range(count))


def cards_of(text: str) -> dict[str, Any]:
    """A dict of a FITS header's value cards, for where astropy is not installed."""
    found: dict[str, Any] = {}
    for at in range(0, len(text), 80):
        card = text[at:at + 80]
        if card[8:10] != "= ":
            continue
        value = card[10:].strip()
        if value.startswith("'"):
            end = 1
            while end < len(value) and (value[end] != "'" or value[end:end + 2] == "''"):
                end += 2 if value[end:end + 2] == "''" else 1
            found[card[:8].strip()] = value[1:end].replace("''", "'").rstrip()
            continue
        value = value.split("/")[0].strip()
        if value in ("T", "F"):
            found[card[:8].strip()] = value == "T"
        elif value:
            number = float(value.replace("D", "E"))
            whole = value.lstrip("+-").isdigit()
            found[card[:8].strip()] = int(value) if whole else number
    return found


def header_of(cards: str) -> Any:
    """astropy.io.fits.Header, or a dict without astropy."""
    try:
        from astropy.io import fits
    except ImportError:
        return cards_of(cards)
    return fits.Header.fromstring(cards)


def write_fits(path: Path, pixels: npt.NDArray[Any], cards: str, overwrite: bool) -> None:
    """Write pixels (ny, nx) with the axes of frequency and Stokes that the header has.

    Raises
    ------
    UsageError : astropy is not installed
    FileError : the file is there already, or cannot be written
    """
    try:
        from astropy.io import fits
    except ImportError:
        raise lib.UsageError("files are written by astropy, which is not installed; name an "
                             "output instead") from None
    header = fits.Header.fromstring(cards)
    axes = (1,) * (header["NAXIS"] - 2) + pixels.shape[-2:]
    file = fits.PrimaryHDU(np.asarray(pixels).reshape(axes), header)
    try:
        file.writeto(os.fsdecode(path), overwrite=overwrite)
    except OSError as error:
        raise lib.FileError(f"{os.fsdecode(path)}: {error.strerror or error}") from None


def nddata_of(pixels: npt.NDArray[Any], cards: str) -> Any:
    from astropy.nddata import CCDData
    from astropy.wcs import WCS
    header = header_of(cards)
    return CCDData(pixels, unit=header["BUNIT"].replace("JY", "Jy"), meta=header,
                   wcs=WCS(header).celestial)


def xarray_of(pixels: npt.NDArray[Any], cards: str) -> Any:
    import xarray  # type: ignore[import-not-found, unused-ignore]
    header = cards_of(cards)
    places = {name: np.deg2rad(header[f"CDELT{axis}"]) *
              (np.arange(size) + 1 - header[f"CRPIX{axis}"])
              for name, axis, size in (("l", 1, pixels.shape[-1]), ("m", 2, pixels.shape[-2]))}
    return xarray.DataArray(pixels, dims=("m", "l"), coords=places, name=header.get("BTYPE"),
                            attrs={k: v for k, v in header.items() if k not in
                                   ("SIMPLE", "BITPIX", "EXTEND")})


class Image:
    """One image.

    Attributes
    ----------
    data : numpy.ndarray((ny, nx)), float32, or float64 for accuracies below 1e-6
        pixels in Jy/beam, those of models in Jy/pixel; row 0 South, column 0 East (show with origin="lower"), NaN
        beyond the horizon and, without visibilities, everywhere; the library's own
        memory, which lives as long as anything refers to it
    kind : "dirty" or "psf"; of runs that clean also "model", "residual", "image" (restored)
        and "first-residual"; of a mean whose spectra were fitted "terms-0",
        "terms-0-error", ..., "spectral-index" and "spectral-index-error"; with
        primary_beam "pb", "weight-pb" and, with pbcor, "image-pb", ...
    polarisation : "I", "Q", ..., "XX", "XYi" (imaginary part of a cross-hand)
    interval, channel : number of the time interval and of the output channel; channel is
        None for the mean over all output channels
    freq_hz, bandwidth_hz : float
        centre and width of the band of its channels, flagged or not; the mean frequency
        of the visibilities is header["FREQMEAN"]
    sum_weights, num_vis : float
    beam_deg : (major, minor, position angle) in degrees, or None
    header : astropy.io.fits.Header as of the FITS file, or a dict without astropy
    wcs : dict of the keywords that place pixels on the sky
    """

    data: npt.NDArray[Any]
    kind: str
    polarisation: str
    interval: int
    channel: Optional[int]
    freq_hz: float
    bandwidth_hz: float
    sum_weights: float
    num_vis: float
    beam_deg: Optional[tuple[float, ...]]

    def __init__(self, owner: Any, info: lib.ImageInfo) -> None:
        self.data = array_of(owner, info.pixel, (info.ny, info.nx),
                             np.float64 if info.is_double else np.float32)
        self.kind, self.polarisation = info.kind.decode(), info.polarisation.decode()
        self.interval = info.interval
        self.channel = None if info.channel < 0 else info.channel
        self.freq_hz, self.bandwidth_hz = info.freq_hz, info.bandwidth_hz
        self.sum_weights, self.num_vis = info.sum_weights, info.num_vis
        beam = (info.beam_major_rad, info.beam_minor_rad, info.beam_pa_rad)
        self.beam_deg = tuple(np.rad2deg(beam).tolist()) if beam[0] > 0 else None
        self._header = ctypes.string_at(info.header, info.header_bytes).decode("ascii")

    @property
    def header(self) -> Any:
        return header_of(self._header)

    @property
    def wcs(self) -> dict[str, Any]:
        return {key: value for key, value in cards_of(self._header).items()
                if key in _WCS_ALONE or key[:5] in _WCS_KEYS or key[:5] == "NAXIS"}

    def write_fits(self, path: Path, overwrite: bool = False) -> None:
        """Write the image with its header, by astropy."""
        write_fits(path, self.data, self._header, overwrite)

    def to_nddata(self) -> Any:
        """The image as astropy.nddata.CCDData, with its unit and its WCS."""
        return nddata_of(self.data, self._header)

    def to_xarray(self) -> Any:
        """The image as xarray.DataArray: dimensions (m, l), which are direction cosines, and
        attributes of the header's keywords."""
        return xarray_of(self.data, self._header)

    def celestial(self) -> Any:
        """astropy.wcs.WCS of the two celestial axes, for plots and positions."""
        from astropy.wcs import WCS
        return WCS(self.header).celestial

    def __repr__(self) -> str:
        ny, nx = self.data.shape
        return (f"<tessera.Image {self.polarisation} {self.kind} {nx} x {ny}, "
                f"interval {self.interval}, channel {self.channel}, "
                f"{self.freq_hz / 1e6:.6g} MHz>")


class Images(list[Image]):
    """The images of a run, in the order in which the program writes its files."""

    def select(self, **wanted: Any) -> Images:
        """Those whose attributes are as given: select(kind="dirty", polarisation="Q")."""
        return Images(i for i in self
                      if all(getattr(i, key) == value for key, value in wanted.items()))

    def _first(self, kind: str) -> Image:
        found = self.select(kind=kind)
        if not found:
            raise KeyError(f"there is no {kind} image")
        return found[0]

    @property
    def dirty(self) -> Image:
        """The first dirty image."""
        return self._first("dirty")

    @property
    def psf(self) -> Image:
        """The first point spread function."""
        return self._first("psf")

    @property
    def model(self) -> Image:
        """The first model, of a run that cleans."""
        return self._first("model")

    @property
    def residual(self) -> Image:
        """The first residual image, of a run that cleans."""
        return self._first("residual")

    @property
    def image(self) -> Image:
        """The first restored image, of a run that cleans."""
        return self._first("image")


def image(obs: Union[Observation, Sequence[Observation]], *, size: Union[int, str, Sequence[int]],
          scale: Angle, subtract: Union[None, Path, npt.ArrayLike] = None,
          each_major: Optional[EachMajor] = None,
          **options: Unpack[ImageOptions]) -> Images:
    """Make images of observations: dirty images and point spread functions and, with
    niter=N, models, residuals and restored images.

    Parameters
    ----------
    obs : path, or list of paths
        UVFITS files and MeasurementSets; several go into one image. A tessera.Data, a UVData
        of pyuvdata, or a processing set of xradio may take the place of a path.
    size : int or (int, int)
        pixels in x and y
    scale : str, float or astropy.units.Quantity
        pixel size: "1.5asec" (uas, mas, asec, amin, deg, rad), or radians
    subtract : path, or array of shape (ny, nx) or (nstokes, ny, nx), optional
        subtracts the visibilities of this model first: a FITS image, or pixels in Jy/pixel
        of the image's size of pixel: row 0 is South, column 0 East, pixel [ny//2, nx//2]
        is the phase centre. The planes of a third axis are Stokes I, Q, U, V in this
        order, as many of them as there are. Pixels that are not finite count as 0.
    each_major : function, optional
        is called with a Major after each minor loop of cleaning; if it returns False, the
        cleaning of these images ends, and they are restored with what has been found. It may
        be called by several threads, and must not call tessera itself.
    **options
        those of `tessera image --help` by their long names, - written as _:
        weight="briggs:0" (the default; "natural", "uniform"), stokes="IQUV",
        accuracy=1e-4, channels_out=4, intervals_out=10, channels="0:8", field="3C273",
        spw="0,2", uvrange="1k:20k", center="12:30:49.4,+12:23:28", threads=2,
        memory="8GB", w="none", no_psf=True, niter=100000, auto_threshold=3, auto_mask=5,
        multiscale=True, ...
        With checkpoint="FOLDER", SIGTERM, SIGUSR1 and max_time="1h" end the run with an
        Error, and the same call with resume=True continues it. Images of output channels
        and intervals that were finished before are in the files of output="NAME", not in
        the list.
        With output="NAME" (and overwrite=True, preview=True) the program's files are
        written too. log="info" shows progress on stderr.

    Returns
    -------
    Images
        a list; `.dirty`, `.psf`, `.model`, `.residual` and `.image` are the first of each, `.select(...)` finds others

    Raises
    ------
    ValueError (options, bad data), TypeError (type of the model), OSError (files),
    MemoryError; all are tessera.Error.

    >>> images = tessera.image("obs.ms", size=2048, scale="1.5asec")   # doctest: +SKIP
    >>> images.dirty.data.max(), images.dirty.beam_deg                 # doctest: +SKIP
    """
    run, named = Run(), Named(obs)
    for name in named.names:
        run.set("obs", name)
    run.set_all(dict(size=size, scale=scale, **options))
    if is_path(subtract):
        run.set_all(dict(subtract=subtract))
    elif subtract is not None:
        lib.library.tess_image_subtract(run.handle, model_of(subtract, None, run))
    run.watch(each_major)
    try:
        run.run()
    except lib.InputError:
        named.raise_error()
        raise
    finally:
        named.close()
    return run.images()
