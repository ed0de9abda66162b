"""Images of observations in files: the imager of the `tessera image` program."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._options import Angle, Call, Option, Path, array_of, is_path, model_of


__all__ = ["image", "Image", "Images"]

# Keywords of a FITS header that place pixels on the sky.
_WCS_KEYS = ("CTYPE", "CRPIX", "CRVAL", "CDELT", "CUNIT")
_WCS_ALONE = ("NAXIS", "LONPOLE", "LATPOLE", "RADESYS", "EQUINOX", "SPECSYS", "BUNIT",
              "BMAJ", "BMIN", "BPA")


class _Run(Call):
    """Owner of the library's imager, which owns the pixels."""

    def __init__(self) -> None:
        library = lib.library
        super().__init__(library.tess_image_create, library.tess_image_set,
                         library.tess_image_destroy)

    def run(self) -> None:
        lib.check(lib.library.tess_image_run(self.handle))

    def images(self) -> Images:
        count = lib.library.tess_image_count(self.handle)
        return Images(Image(self, lib.library.tess_image_get(self.handle, k).contents)
                      for k in range(count))


def _cards(text: str) -> dict[str, Any]:
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
        try:
            from astropy.io import fits
        except ImportError:
            return _cards(self._header)
        return fits.Header.fromstring(self._header)

    @property
    def wcs(self) -> dict[str, Any]:
        return {key: value for key, value in _cards(self._header).items()
                if key in _WCS_ALONE or key[:5] in _WCS_KEYS or key[:5] == "NAXIS"}

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


def image(obs: Union[Path, Sequence[Path]], *, size: Union[int, str, Sequence[int]],
          scale: Angle, subtract: Union[None, Path, npt.ArrayLike] = None,
          **options: Option) -> Images:
    """Make images of observations: dirty images and point spread functions and, with
    niter=N, models, residuals and restored images.

    Parameters
    ----------
    obs : path, or list of paths
        UVFITS files and MeasurementSets; several go into one image
    size : int or (int, int)
        pixels in x and y
    scale : str, float or astropy.units.Quantity
        pixel size: "1.5asec" (uas, mas, asec, amin, deg, rad), or radians
    subtract : path, or array of shape (ny, nx) or (nstokes, ny, nx), optional
        subtracts the visibilities of this model first: a FITS image, or pixels in Jy/pixel
        of the image's size of pixel: row 0 is South, column 0 East, pixel [ny//2, nx//2]
        is the phase centre. The planes of a third axis are Stokes I, Q, U, V in this
        order, as many of them as there are. Pixels that are not finite count as 0.
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
    run = _Run()
    paths: Sequence[Any] = [obs] if isinstance(obs, (str, bytes, os.PathLike)) else list(obs)
    for path in paths:
        run.set("obs", os.fsdecode(path))
    run.set_all(dict(size=size, scale=scale, **options))
    if is_path(subtract):
        run.set_all(dict(subtract=subtract))
    elif subtract is not None:
        lib.library.tess_image_subtract(run.handle, model_of(subtract, None, run))
    run.run()
    return run.images()
