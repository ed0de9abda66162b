"""Gridding of visibilities in memory, with the functions of `ducc0.wgridder`.

The arguments and their meaning are those of ducc0.wgridder's functions of the same names:

    dirty[i,j] = Σ_k wgt_k Re{vis_k exp(+2πi(u x + v y − w(n−1)))} / n        vis2dirty
    vis_k      = wgt_k Σ_ij dirty[i,j]/n exp(−2πi(u x + v y − w(n−1)))        dirty2vis

with (u,v,w) = uvw·freq/c, x = center_x + (i − npix_x//2)·pixsize_x,
y = center_y + (j − npix_y//2)·pixsize_y and n = √(1 − x² − y²). The 1/n is left out with
`divide_by_n=False` and, like w and n − 1, with `do_wgridding=False`. The two functions are
adjoints of one another.

As in ducc0, a flip of u or v reverses the image around its own centre: with flip_u,
x = center_x − (i − npix_x//2)·pixsize_x in the sums above, u as given.

To image a MeasurementSet's uvw with East to the left and North up, give `flip_v=True` and
show `dirty.T`: see examples/python/wgridder_tour.py.

`ms2dirty` and `dirty2ms` are ducc0's older forms of them, and `tessera.wgridder.experimental`
has the two under the name that ducc0's users import them from.

Arguments of no effect: `allow_nshift`, `nu` and `nv`. Errors are those of tessera, which are
RuntimeErrors like ducc0's, and also the fitting one of ValueError, TypeError and MemoryError.

Beyond what ducc0 does: arrays of bool may be masks; frequencies may descend; image sizes may be odd or smaller than 32; epsilon may be anything
up to 1e-2 (a larger one is taken as 1e-2); a value that is not finite is an error which
names its place unless it is masked or has weight 0.

>>> import numpy as np
>>> from tessera.wgridder import vis2dirty
>>> rng = np.random.default_rng(1)
>>> uvw = rng.normal(0, 1e3, (100, 3))           # metres
>>> freq = np.array([1.0e9, 1.1e9])              # Hz
>>> vis = np.ones((100, 2), "c8")                # a source of 1 Jy in the middle
>>> dirty = vis2dirty(uvw=uvw, freq=freq, vis=vis, npix_x=64, npix_y=64,
...                   pixsize_x=1e-5, pixsize_y=1e-5, epsilon=1e-5, do_wgridding=True)
>>> float(round(dirty[32, 32], 1))
200.0
"""
from __future__ import annotations

import ctypes
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from .. import _library as lib

__all__ = ["vis2dirty", "dirty2vis", "ms2dirty", "dirty2ms", "experimental",
           "last_report"]

# Their types are those of the data, or follow from them.
RealArray = npt.NDArray[Any]
ComplexArray = npt.NDArray[Any]
Positions = npt.NDArray[np.float64]
Mask = npt.NDArray[Any]

# Finer accuracies need a double-precision grid; those below the rounding of single-precision
# results are refused.
_SINGLE_ACCURACY, _SINGLE_ROUNDING = 1e-5, 1e-7
_MOST_PIXELS = 1 << 20  # along an axis

_REPORT: Optional[dict[str, Any]] = None


def last_report() -> Optional[dict[str, Any]]:
    """Times and plan of the last call in this process, a dict: seconds `prepare_s`,
    `plan_s`, `sort_s`, `grid_s` (gridding or degridding), `join_s` (tile sums to or from
    planes), `fft_s` (FFT and w-screens), `correct_s`, `total_s`; `plan` in words;
    `num_vis`, `num_planes`, `support`, `grid_u`, `grid_v`, `threads`, `grid_utilisation`,
    `error_estimate`, `rounding_estimate`, `peak_bytes`. None before any call."""
    return _REPORT


def _address(array: Optional[npt.NDArray[Any]]) -> Optional[int]:
    if array is None:
        return None
    address: int = array.ctypes.data
    return address


def _opts(shape: tuple[int, ...], pixsize_x: float, pixsize_y: float, center_x: float,
          center_y: float, epsilon: float, do_wgridding: bool, nthreads: int, flip_u: bool,
          flip_v: bool, flip_w: bool, divide_by_n: bool, sigma_min: float, sigma_max: float,
          double_precision_accumulation: bool, is_single: bool) -> lib.ArrayOpts:
    opts = lib.ArrayOpts()
    lib.library.tess_array_opts_default(ctypes.byref(opts))
    # exp(+2πi(u x + v y − w(n−1))) is the library's sum at l = −x, m = −y; a flip of u
    # or v reverses the image's axis.
    opts.nx, opts.ny = shape
    opts.step_l, opts.center_l = (1 if flip_u else -1) * float(pixsize_x), -float(center_x)
    opts.step_m, opts.center_m = (1 if flip_v else -1) * float(pixsize_y), -float(center_y)
    opts.accuracy = float(epsilon)
    opts.do_w = bool(do_wgridding)
    opts.negate_w = bool(flip_w)
    opts.divide_by_n = bool(divide_by_n)
    opts.double_grid = bool(double_precision_accumulation) or (
        is_single and _SINGLE_ROUNDING <= opts.accuracy < _SINGLE_ACCURACY)
    opts.padding_min, opts.padding_max = float(sigma_min), float(sigma_max)
    opts.threads = lib.whole("nthreads", nthreads, 32)
    return opts


def _positions(uvw: Any, freq: Any) -> tuple[Positions, Positions]:
    uvw, freq = np.asarray(uvw), np.asarray(freq)
    if uvw.ndim != 2 or uvw.shape[1] != 3:
        raise lib.UsageError(f"uvw has shape {uvw.shape}, not (nrows, 3)")
    if freq.ndim != 1:
        raise lib.UsageError(f"freq has shape {freq.shape}, not (nchan,)")
    for name, array in (("uvw", uvw), ("freq", freq)):
        if array.dtype != np.float64:
            raise lib.ArrayTypeError(f"{name} has type {array.dtype}, not float64")
    return uvw, freq


def _size_of(npix_x: int, npix_y: int) -> tuple[int, ...]:
    size = lib.whole("npix_x", npix_x, 32), lib.whole("npix_y", npix_y, 32)
    if not 0 <= min(size) <= max(size) <= _MOST_PIXELS:
        raise lib.UsageError(f"an image of {size[0]} x {size[1]} pixels; each must be 1 to "
                             f"{_MOST_PIXELS}")
    return size


def _optional(array: Any, name: str, shape: tuple[int, ...],
              dtype: npt.DTypeLike) -> Optional[npt.NDArray[Any]]:
    if array is None:
        return None
    given: npt.NDArray[Any] = np.asarray(array)
    if given.dtype == np.bool_ and dtype == np.uint8:
        given = given.view(np.uint8)
    if given.shape != shape:
        raise lib.UsageError(f"{name} has shape {given.shape}, not {shape}")
    if given.dtype != dtype:
        raise lib.ArrayTypeError(f"{name} has type {given.dtype}, not {np.dtype(dtype)}")
    return given if given.flags.aligned else given.copy()


def _vis_struct(uvw: Positions, freq: Positions, vis: ComplexArray,
                wgt: Optional[RealArray], mask: Optional[Mask]) -> lib.ArrayVis:
    out = lib.ArrayVis()
    out.is_double = vis.dtype == np.complex128
    out.num_rows, out.num_chan = vis.shape
    out.uvw = _address(uvw)
    out.uvw_step_row, out.uvw_step_axis = uvw.strides
    out.freq = _address(freq)
    out.freq_step = freq.strides[0]
    for name, array in (("vis", vis), ("weight", wgt), ("mask", mask)):
        setattr(out, name, _address(array))
        if array is not None:
            setattr(out, name + "_step_row", array.strides[0])
            setattr(out, name + "_step_chan", array.strides[1])
    return out


def _image_struct(dirty: RealArray) -> lib.ArrayImage:
    out = lib.ArrayImage()
    out.is_double = dirty.dtype == np.float64
    out.data = _address(dirty)
    out.step_x, out.step_y = dirty.strides
    return out


def _output(array: Any, name: str, shape: tuple[int, ...],
            dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The caller's output array, checked, or a new one."""
    if array is None:
        try:
            return np.empty(shape, dtype)
        except MemoryError as error:
            raise lib.ResourceError(f"{name}: {error}") from None
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
        raise lib.UsageError(f"{name} must be an array of shape {shape} and type "
                         f"{np.dtype(dtype)}")
    if not array.flags.writeable:
        raise lib.UsageError(f"{name} is read-only")
    if not array.flags.aligned:
        raise lib.UsageError(f"{name} does not lie at a multiple of its type's size")
    return array


def _finish(status: int, report: lib.ArrayReport, verbosity: int, what: str) -> None:
    global _REPORT
    lib.check(status)
    shown = {name: getattr(report, name) for name in
             (field[0] for field in report._fields_)}
    shown["plan"] = report.plan.decode()
    _REPORT = shown
    if verbosity > 0:
        stages = ", ".join(f"{name[:-2]} {shown[name]:.4f} s" for name in
                           ("prepare_s", "plan_s", "sort_s", "grid_s", "join_s", "fft_s",
                            "correct_s", "total_s"))
        print(f"tessera {what}: {shown['num_vis']} visibilities, {shown['threads']} "
              f"threads; {shown['plan']}\n  {stages}; threads "
              f"{100 * shown['grid_utilisation']:.0f} % busy in grid, peak "
              f"{shown['peak_bytes'] / 2**20:.0f} MiB", flush=True)


def vis2dirty(*, uvw: Positions, freq: Positions, vis: ComplexArray,
              wgt: Optional[RealArray] = None, npix_x: int = 0, npix_y: int = 0,
              pixsize_x: float, pixsize_y: float, epsilon: float,
              do_wgridding: bool = False, nthreads: int = 1, verbosity: int = 0,
              mask: Optional[Mask] = None, flip_u: bool = False, flip_v: bool = False,
              flip_w: bool = False, divide_by_n: bool = True,
              dirty: Optional[RealArray] = None, sigma_min: float = 1.1,
              sigma_max: float = 2.6, center_x: float = 0.0, center_y: float = 0.0,
              allow_nshift: bool = True,
              double_precision_accumulation: bool = False) -> RealArray:
    """Converts visibilities to a dirty image.

    Parameters
    ----------
    uvw : numpy.ndarray((nrows, 3), dtype=numpy.float64)
        baselines in metres, as a MeasurementSet stores them
    freq : numpy.ndarray((nchan,), dtype=numpy.float64)
        channel frequencies in Hz
    vis : numpy.ndarray((nrows, nchan), dtype=numpy.complex64 or numpy.complex128)
        the visibilities; their type decides the precision of the calculation
    wgt : numpy.ndarray((nrows, nchan), float of the same precision as `vis`), optional
        multiplied to the visibilities before gridding
    npix_x, npix_y : int
        image size; taken from `dirty` when that is given (then 0, or the same)
    pixsize_x, pixsize_y : float
        pixel size in projected radians
    epsilon : float
        accuracy: relative L2 error of the image, and of the visibilities of any pixel.
        An image of N pixels whose visibilities cancel, so that its norm is less than
        sqrt(N sum |wgt vis|^2), is relative to that instead.
        At least 1e-12 for complex128, and with double_precision_accumulation; at least 1e-7
        for complex64, which is gridded in double precision below 1e-5. Larger than 1e-2 is
        taken as 1e-2
    do_wgridding : bool
        if False, w is taken as 0
    nthreads : int
        number of threads; 0: OMP_NUM_THREADS, or all cores of the allocation
    verbosity : int
        1 prints the plan and the seconds of each stage; see also last_report()
    mask : numpy.ndarray((nrows, nchan), dtype=numpy.uint8 or bool), optional
        visibilities with mask 0 are left out
    flip_u, flip_v, flip_w : bool
        multiply that coordinate by −1; centers are not flipped: with flip_u,
        exp(+2πi(u x + ...)) has x = center_x − (i − npix_x//2)·pixsize_x
    divide_by_n : bool
        divide the image by n
    dirty : numpy.ndarray((npix_x, npix_y), float of the same precision), optional
        where the image is written
    sigma_min, sigma_max : float
        allowed grid size over image size; below 1.15 is taken as 1.15
    center_x, center_y : float
        position of pixel (npix_x//2, npix_y//2) relative to the phase centre, in
        projected radians
    allow_nshift : bool
        of no effect: the shift that saves w-planes is always made, at no cost
    double_precision_accumulation : bool
        grid and transform complex64 visibilities in double precision

    Returns
    -------
    numpy.ndarray((npix_x, npix_y), float of the same precision as `vis`)
        the dirty image; pixels beyond the horizon are 0

    Raises
    ------
    ValueError, TypeError (type of an array), MemoryError; all are `tessera.Error`, which is
    a RuntimeError.

    Arrays may have any strides. Contiguous ones are used in place, but for uvw, which is
    copied, as weights are where there is a mask.
    """
    uvw, freq = _positions(uvw, freq)
    vis = np.asarray(vis)
    if vis.dtype not in (np.complex64, np.complex128):
        raise lib.ArrayTypeError(f"vis has type {vis.dtype}, not complex64 or complex128")
    shape = (uvw.shape[0], freq.shape[0])
    vis = np.asarray(_optional(vis, "vis", shape, vis.dtype))
    real = np.float64 if vis.dtype == np.complex128 else np.float32
    wgt = _optional(wgt, "wgt", shape, real)
    mask = _optional(mask, "mask", shape, np.uint8)
    size = _size_of(npix_x, npix_y)
    if isinstance(dirty, np.ndarray) and dirty.ndim == 2:
        size = tuple(given or found for given, found in zip(size, dirty.shape))
    dirty = _output(dirty, "dirty", size, real)
    opts = _opts(size, pixsize_x, pixsize_y, center_x, center_y, epsilon, do_wgridding,
                 nthreads, flip_u, flip_v, flip_w, divide_by_n, sigma_min, sigma_max,
                 double_precision_accumulation, real == np.float32)
    report = lib.ArrayReport()
    status = lib.library.tess_vis_to_dirty(opts, _vis_struct(uvw, freq, vis, wgt, mask),
                                           _image_struct(dirty), report)
    _finish(status, report, verbosity, "vis2dirty")
    return dirty


def dirty2vis(*, uvw: Positions, freq: Positions, dirty: RealArray,
              wgt: Optional[RealArray] = None, pixsize_x: float, pixsize_y: float,
              epsilon: float, do_wgridding: bool = False, nthreads: int = 1,
              verbosity: int = 0, mask: Optional[Mask] = None, flip_u: bool = False,
              flip_v: bool = False, flip_w: bool = False, divide_by_n: bool = True,
              vis: Optional[ComplexArray] = None, sigma_min: float = 1.1,
              sigma_max: float = 2.6, center_x: float = 0.0, center_y: float = 0.0,
              allow_nshift: bool = True) -> ComplexArray:
    """Converts a dirty image to visibilities: the adjoint of vis2dirty().

    Parameters
    ----------
    dirty : numpy.ndarray((npix_x, npix_y), dtype=numpy.float32 or numpy.float64)
        the image; its type decides the precision of the calculation
    wgt : numpy.ndarray((nrows, nchan), same type as `dirty`), optional
        multiplied to the visibilities
    mask : numpy.ndarray((nrows, nchan), dtype=numpy.uint8 or bool), optional
        visibilities with mask 0 are returned as 0
    vis : numpy.ndarray((nrows, nchan), complex of the same precision), optional
        where the visibilities are written

    The others are those of vis2dirty().

    Returns
    -------
    numpy.ndarray((nrows, nchan), complex of the same precision as `dirty`)
    """
    uvw, freq = _positions(uvw, freq)
    dirty = np.asarray(dirty)
    if dirty.dtype not in (np.float32, np.float64):
        raise lib.ArrayTypeError(f"dirty has type {dirty.dtype}, not float32 or float64")
    if dirty.ndim != 2:
        raise lib.UsageError(f"dirty has shape {dirty.shape}, not (npix_x, npix_y)")
    shape = (uvw.shape[0], freq.shape[0])
    wgt = _optional(wgt, "wgt", shape, dirty.dtype)
    mask = _optional(mask, "mask", shape, np.uint8)
    vis = _output(vis, "vis", shape,
                  np.complex128 if dirty.dtype == np.float64 else np.complex64)
    opts = _opts(dirty.shape, pixsize_x, pixsize_y, center_x, center_y, epsilon,
                 do_wgridding, nthreads, flip_u, flip_v, flip_w, divide_by_n, sigma_min,
                 sigma_max, False, dirty.dtype == np.float32)
    report = lib.ArrayReport()
    status = lib.library.tess_dirty_to_vis(opts, _image_struct(dirty),
                                           _vis_struct(uvw, freq, vis, wgt, mask), report)
    _finish(status, report, verbosity, "dirty2vis")
    return vis


def ms2dirty(uvw: Positions, freq: Positions, ms: ComplexArray,
             wgt: Optional[RealArray] = None, npix_x: int = 0, npix_y: int = 0,
             pixsize_x: float = 0.0, pixsize_y: float = 0.0, nu: int = 0, nv: int = 0,
             epsilon: float = 0.0, do_wstacking: bool = False, nthreads: int = 1,
             verbosity: int = 0, mask: Optional[Mask] = None,
             double_precision_accumulation: bool = False) -> RealArray:
    """Converts visibilities to a dirty image: an older form of vis2dirty(), whose
    arguments may be given by their place.

    Parameters
    ----------
    ms : numpy.ndarray((nrows, nchan), dtype=numpy.complex64 or numpy.complex128)
        the visibilities: `vis` of vis2dirty()
    npix_x, npix_y, pixsize_x, pixsize_y, epsilon
        must be given
    nu, nv : int
        of no effect, as in ducc0
    do_wstacking : bool
        `do_wgridding` of vis2dirty()

    The others are those of vis2dirty(), as are what is returned and raised.
    """
    return vis2dirty(uvw=uvw, freq=freq, vis=ms, wgt=wgt, npix_x=npix_x, npix_y=npix_y,
                     pixsize_x=pixsize_x, pixsize_y=pixsize_y, epsilon=epsilon,
                     do_wgridding=do_wstacking, nthreads=nthreads, verbosity=verbosity,
                     mask=mask,
                     double_precision_accumulation=double_precision_accumulation)


def dirty2ms(uvw: Positions, freq: Positions, dirty: RealArray,
             wgt: Optional[RealArray] = None, pixsize_x: float = 0.0,
             pixsize_y: float = 0.0, nu: int = 0, nv: int = 0, epsilon: float = 0.0,
             do_wstacking: bool = False, nthreads: int = 1, verbosity: int = 0,
             mask: Optional[Mask] = None) -> ComplexArray:
    """Converts a dirty image to visibilities: an older form of dirty2vis(), whose
    arguments may be given by their place.

    Parameters
    ----------
    pixsize_x, pixsize_y, epsilon
        must be given
    nu, nv : int
        of no effect, as in ducc0
    do_wstacking : bool
        `do_wgridding` of dirty2vis()

    The others are those of dirty2vis(), as are what is returned and raised.
    """
    return dirty2vis(uvw=uvw, freq=freq, dirty=dirty, wgt=wgt, pixsize_x=pixsize_x,
                     pixsize_y=pixsize_y, epsilon=epsilon, do_wgridding=do_wstacking,
                     nthreads=nthreads, verbosity=verbosity, mask=mask)


from . import experimental  # noqa: E402  (it takes its functions from here)
