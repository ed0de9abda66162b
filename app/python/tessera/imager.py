"""Images of observations in files: the imager of the `tessera image` program."""
import ctypes
import os

import numpy as np

from . import _library as lib

__all__ = ["image", "Image", "Images"]

# Keywords of a FITS header that place pixels on the sky.
_WCS_KEYS = ("CTYPE", "CRPIX", "CRVAL", "CDELT", "CUNIT")
_WCS_ALONE = ("NAXIS", "LONPOLE", "LATPOLE", "RADESYS", "EQUINOX", "SPECSYS", "BUNIT",
              "BMAJ", "BMIN", "BPA")


class _Run:
    """Owner of the library's imager, which owns the pixels."""

    def __init__(self):
        self.handle = ctypes.c_void_p()
        lib.check(lib.library.tess_image_create(ctypes.byref(self.handle)))

    def set(self, name, value=None):
        lib.check(lib.library.tess_image_set(
            self.handle, name.encode(), None if value is None else os.fsencode(value)))

    def run(self):
        lib.check(lib.library.tess_image_run(self.handle))

    def images(self):
        count = lib.library.tess_image_count(self.handle)
        return [Image(self, lib.library.tess_image_get(self.handle, k).contents)
                for k in range(count)]

    def __del__(self):
        if getattr(self, "handle", None):
            lib.library.tess_image_destroy(self.handle)


def _cards(text):
    """A dict of a FITS header's value cards, for where astropy is not installed."""
    found = {}
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

    data : numpy.ndarray((ny, nx)), float32, or float64 for accuracies below 1e-6
        pixels in Jy/beam, row 0 South, column 0 East (show with origin="lower"), NaN
        beyond the horizon and, without visibilities, everywhere; the library's own
        memory, which lives as long as anything refers to it
    kind : "dirty" or "psf"
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

    def __init__(self, owner, info):
        real = np.float64 if info.is_double else np.float32
        size = info.nx * info.ny * np.dtype(real).itemsize
        memory = (ctypes.c_char * size).from_address(info.pixel)
        memory.owner = owner
        self.data = np.frombuffer(memory, real).reshape(info.ny, info.nx)
        self.kind, self.polarisation = info.kind.decode(), info.polarisation.decode()
        self.interval = info.interval
        self.channel = None if info.channel < 0 else info.channel
        self.freq_hz, self.bandwidth_hz = info.freq_hz, info.bandwidth_hz
        self.sum_weights, self.num_vis = info.sum_weights, info.num_vis
        beam = (info.beam_major_rad, info.beam_minor_rad, info.beam_pa_rad)
        self.beam_deg = tuple(np.rad2deg(beam).tolist()) if beam[0] > 0 else None
        self._header = ctypes.string_at(info.header, info.header_bytes).decode("ascii")

    @property
    def header(self):
        try:
            from astropy.io import fits
        except ImportError:
            return _cards(self._header)
        return fits.Header.fromstring(self._header)

    @property
    def wcs(self):
        return {key: value for key, value in _cards(self._header).items()
                if key in _WCS_ALONE or key[:5] in _WCS_KEYS or key[:5] == "NAXIS"}

    def celestial(self):
        """astropy.wcs.WCS of the two celestial axes, for plots and positions."""
        from astropy.wcs import WCS
        return WCS(self.header).celestial

    def __repr__(self):
        ny, nx = self.data.shape
        return (f"<tessera.Image {self.polarisation} {self.kind} {nx} x {ny}, "
                f"interval {self.interval}, channel {self.channel}, "
                f"{self.freq_hz / 1e6:.6g} MHz>")


class Images(list):
    """The images of a run, in the order in which the program writes its files."""

    def select(self, **wanted):
        """Those whose attributes are as given: select(kind="dirty", polarisation="Q")."""
        return Images(i for i in self
                      if all(getattr(i, key) == value for key, value in wanted.items()))

    def _first(self, kind):
        found = self.select(kind=kind)
        if not found:
            raise KeyError(f"there is no {kind} image")
        return found[0]

    @property
    def dirty(self):
        """The first dirty image."""
        return self._first("dirty")

    @property
    def psf(self):
        """The first point spread function."""
        return self._first("psf")


def _text(name, value):
    """An option's value as the command line has it; None for a switch."""
    if value is True:
        return None
    if name == "scale" and not isinstance(value, str):
        unit = getattr(value, "to_value", None)  # an astropy Quantity, or radians
        return f"{float(unit('rad') if unit else value)!r}rad"
    if isinstance(value, (tuple, list)):
        return ",".join(_text(name, v) for v in value)
    if isinstance(value, float):
        return repr(float(value))
    return str(value)


def image(obs, *, size, scale, **options):
    """Make dirty images and point spread functions of observations.

    Parameters
    ----------
    obs : path, or list of paths
        UVFITS files and MeasurementSets; several go into one image
    size : int or (int, int)
        pixels in x and y
    scale : str, float or astropy.units.Quantity
        pixel size: "1.5asec" (uas, mas, asec, amin, deg, rad), or radians
    **options
        those of `tessera image --help` by their long names, - written as _:
        weight="briggs:0" (the default; "natural", "uniform"), stokes="IQUV",
        accuracy=1e-4, channels_out=4, intervals_out=10, channels="0:8", field="3C273",
        spw="0,2", uvrange="1k:20k", center="12:30:49.4,+12:23:28", threads=2,
        memory="8GB", subtract="model.fits", w="none", no_psf=True, ...
        With output="NAME" (and overwrite=True, preview=True) the program's files are
        written too. log="info" shows progress on stderr.

    Returns
    -------
    Images
        a list; `.dirty` and `.psf` are the first of each, `.select(...)` finds others

    Raises
    ------
    ValueError (options, bad data), OSError (files), MemoryError; all are tessera.Error.

    >>> images = tessera.image("obs.ms", size=2048, scale="1.5asec")   # doctest: +SKIP
    >>> images.dirty.data.max(), images.dirty.beam_deg                 # doctest: +SKIP
    """
    run = _Run()
    paths = [obs] if isinstance(obs, (str, bytes, os.PathLike)) else list(obs)
    for path in paths:
        run.set("obs", path)
    for key, value in dict(size=size, scale=scale, **options).items():
        name = key.replace("_", "-")
        if value is None or value is False:
            continue
        run.set(name, _text(name, value))
    run.run()
    return Images(run.images())
