"""The tessera library through ctypes: where it is, its structures, its errors."""
import ctypes
import ctypes.util
import os
import subprocess
import sys

from ._version import VERSION

SERIES = ".".join(VERSION.split(".")[:2])
SONAME = f"libtessera.so.{SERIES}"


class Error(Exception):
    """A call of the library failed; the text is the library's own message."""


class UsageError(Error, ValueError):
    """An argument is out of range, or asks for what cannot be done."""


class InputError(Error, ValueError):
    """Data are bad: not finite, not readable, nothing left to image."""


class FileError(Error, OSError):
    """A file cannot be read or written."""


class ResourceError(Error, MemoryError):
    """Memory, or a device, is not there."""


# tess_status of tess_api.h
_OK, _INTERNAL, _USAGE, _INPUT, _IO, _ALLOC, _RESOURCE, _DIFFERENT, _STOPPED, _PEER = range(10)
_ERRORS = {_USAGE: UsageError, _INPUT: InputError, _IO: FileError, _ALLOC: ResourceError,
           _RESOURCE: ResourceError}

c_i64, c_f64, c_bool, c_int = (ctypes.c_int64, ctypes.c_double, ctypes.c_bool,
                               ctypes.c_int)


class ArrayOpts(ctypes.Structure):
    """tess_array_opts"""
    _fields_ = [("nx", c_i64), ("ny", c_i64), ("step_l", c_f64), ("step_m", c_f64),
                ("center_l", c_f64), ("center_m", c_f64), ("accuracy", c_f64),
                ("do_w", c_bool), ("negate_w", c_bool), ("divide_by_n", c_bool),
                ("double_grid", c_bool), ("padding_min", c_f64), ("padding_max", c_f64),
                ("threads", c_int)]


class ArrayVis(ctypes.Structure):
    """tess_array_vis"""
    _fields_ = [("is_double", c_bool), ("num_rows", c_i64), ("num_chan", c_i64),
                ("uvw", ctypes.c_void_p), ("uvw_step_row", c_i64),
                ("uvw_step_axis", c_i64), ("freq", ctypes.c_void_p), ("freq_step", c_i64),
                ("vis", ctypes.c_void_p), ("vis_step_row", c_i64),
                ("vis_step_chan", c_i64), ("weight", ctypes.c_void_p),
                ("weight_step_row", c_i64), ("weight_step_chan", c_i64),
                ("mask", ctypes.c_void_p), ("mask_step_row", c_i64),
                ("mask_step_chan", c_i64)]


class ArrayImage(ctypes.Structure):
    """tess_array_image"""
    _fields_ = [("is_double", c_bool), ("data", ctypes.c_void_p), ("step_x", c_i64),
                ("step_y", c_i64)]


class ArrayReport(ctypes.Structure):
    """tess_array_report"""
    _fields_ = [("num_vis", c_i64), ("grid_u", c_i64), ("grid_v", c_i64),
                ("num_planes", c_int), ("support", c_int), ("threads", c_int),
                ("double_grid", c_bool), ("error_estimate", c_f64),
                ("rounding_estimate", c_f64), ("grid_utilisation", c_f64),
                ("prepare_s", c_f64), ("plan_s", c_f64), ("sort_s", c_f64),
                ("grid_s", c_f64), ("join_s", c_f64), ("fft_s", c_f64),
                ("correct_s", c_f64), ("total_s", c_f64), ("peak_bytes", c_i64),
                ("plan", ctypes.c_char * 512)]


class ImageInfo(ctypes.Structure):
    """tess_image_info"""
    _fields_ = [("kind", ctypes.c_char_p), ("polarisation", ctypes.c_char_p),
                ("interval", c_i64), ("channel", c_i64), ("nx", c_i64), ("ny", c_i64),
                ("is_double", c_bool), ("pixel", ctypes.c_void_p), ("ra_rad", c_f64),
                ("dec_rad", c_f64), ("scale_rad", c_f64), ("freq_hz", c_f64),
                ("bandwidth_hz", c_f64), ("beam_major_rad", c_f64),
                ("beam_minor_rad", c_f64), ("beam_pa_rad", c_f64),
                ("sum_weights", c_f64), ("num_vis", c_f64), ("header", ctypes.c_void_p),
                ("header_bytes", c_i64)]


def _candidates():
    """Paths to try, in order."""
    given = os.environ.get("TESSERA_LIBRARY")
    if given:  # a file or a folder; nothing else is looked for then
        return [os.path.join(given, SONAME) if os.path.isdir(given) else given]
    paths = []
    try:
        folder = subprocess.run(["pkg-config", "--variable=libdir", "tessera"],
                                capture_output=True, text=True, timeout=20,
                                check=True).stdout.strip()
        paths.append(os.path.join(folder, SONAME))
    except (OSError, subprocess.SubprocessError):
        pass
    paths.append(SONAME)  # the loader's own search: LD_LIBRARY_PATH, ldconfig
    here = os.path.dirname(os.path.abspath(__file__))
    for prefix in (sys.prefix, os.path.expanduser("~/.local"), "/usr/local", "/usr",
                   "/opt/tessera", os.path.join(here, "..", "..", "..", "..")):
        for name in ("lib", "lib64", f"lib/{os.uname().machine}-linux-gnu"):
            path = os.path.join(prefix, name, SONAME)
            if os.path.exists(path):
                paths.append(path)
    return paths


def _load():
    tried = []
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            tried.append(f"  {path}: {error}")
            continue
        library.tess_version.restype = ctypes.c_char_p
        version = library.tess_version().decode()
        if version.split(".")[:2] == SERIES.split("."):
            return library
        tried.append(f"  {path}: version {version}")
    raise ImportError(f"no tessera library {SERIES} found; install it (cmake --install) or "
                      "set TESSERA_LIBRARY to its file or folder. Tried:\n" +
                      "\n".join(tried))


library = _load()
library.tess_last_error.restype = ctypes.c_char_p
library.tess_status_text.restype = ctypes.c_char_p
library.tess_version_full.restype = ctypes.c_char_p
_P = ctypes.POINTER
library.tess_array_opts_default.argtypes = [_P(ArrayOpts)]
library.tess_array_opts_default.restype = None
library.tess_vis_to_dirty.argtypes = [_P(ArrayOpts), _P(ArrayVis), _P(ArrayImage),
                                      _P(ArrayReport)]
library.tess_dirty_to_vis.argtypes = [_P(ArrayOpts), _P(ArrayImage), _P(ArrayVis),
                                      _P(ArrayReport)]


library.tess_image_create.argtypes = [_P(ctypes.c_void_p)]
library.tess_image_set.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
library.tess_image_run.argtypes = [ctypes.c_void_p]
library.tess_image_count.argtypes = [ctypes.c_void_p]
library.tess_image_count.restype = c_i64
library.tess_image_get.argtypes = [ctypes.c_void_p, c_i64]
library.tess_image_get.restype = _P(ImageInfo)
library.tess_image_destroy.argtypes = [ctypes.c_void_p]
library.tess_image_destroy.restype = None


def check(status):
    """Raise the exception of a failed call."""
    if status != _OK:
        message = library.tess_last_error().decode(errors="replace")
        raise _ERRORS.get(status, Error)(message)
