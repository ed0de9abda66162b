"""The tessera library through ctypes: its structures, calls and errors."""
from __future__ import annotations

import ctypes
import errno
import operator
import os
from typing import Any, Callable

from ._find import load
from ._version import VERSION


class Error(RuntimeError):
    """A call failed; the text is mostly the library's own message. A RuntimeError, which is
    what ducc0.wgridder raises."""


class UsageError(Error, ValueError):
    """An argument is out of range, or asks for what cannot be done."""


class ArrayTypeError(UsageError, TypeError):
    """An array has another type than it must have."""


class InputError(Error, ValueError):
    """Data are bad: not finite, not readable, nothing left to image."""


class FileError(Error, OSError):
    """A file cannot be read or written."""


class NotFoundError(FileError, FileNotFoundError):
    """A file that is to be read is not there."""


class StoppedError(Error):
    """A run was stopped at a checkpoint; the same call with resume=True goes on."""


class ResourceError(Error, MemoryError):
    """Memory, or a device, is not there."""


# tess_status of tess_api.h
_OK, _INTERNAL, _USAGE, _INPUT, _IO, _ALLOC, _RESOURCE, _DIFFERENT, _STOPPED, _PEER = range(10)
_ERRORS = {_USAGE: UsageError, _INPUT: InputError, _IO: FileError, _ALLOC: ResourceError,
           _RESOURCE: ResourceError, _STOPPED: StoppedError}

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


class Model(ctypes.Structure):
    """tess_model"""
    _fields_ = [("nx", c_i64), ("ny", c_i64), ("num_stokes", c_int), ("is_double", c_bool),
                ("pixel", ctypes.c_void_p), ("scale", ctypes.c_char_p)]


class SessionInfo(ctypes.Structure):
    """tess_session_info"""
    _fields_ = [("num_intervals", c_i64), ("num_channels", c_i64), ("num_pol", c_int),
                ("nx", c_i64), ("ny", c_i64), ("row_first", c_i64), ("num_rows", c_i64),
                ("scale_rad", c_f64), ("ra_rad", c_f64), ("dec_rad", c_f64),
                ("is_double", c_bool)]


class Major(ctypes.Structure):
    """tess_major"""
    _fields_ = [("interval", c_i64), ("channel", c_i64), ("polarisation", ctypes.c_char_p),
                ("major", c_i64), ("minor_iterations", c_i64), ("iterations", c_i64),
                ("peak_start", c_f64), ("peak_end", c_f64), ("threshold", c_f64),
                ("rms", c_f64), ("flux_jy", c_f64), ("end", ctypes.c_char_p)]


Watcher = ctypes.CFUNCTYPE(c_bool, ctypes.c_void_p, ctypes.POINTER(Major))


class SessionWeights(ctypes.Structure):
    """tess_session_weights"""
    _fields_ = [("sum", c_f64), ("freq_hz", c_f64), ("num_vis", c_i64)]


class Restored(ctypes.Structure):
    """tess_restored"""
    _fields_ = [("model", ctypes.c_void_p), ("residual", ctypes.c_void_p),
                ("image", ctypes.c_void_p), ("beam_rad", c_f64 * 3)]


class ModelFile(ctypes.Structure):
    """tess_model_file"""
    _fields_ = [("path", ctypes.c_char_p), ("num_terms", c_int)]


class Predicted(ctypes.Structure):
    """tess_predicted"""
    _fields_ = [("num_rows", c_i64), ("num_chan", c_i64), ("num_corr", c_int),
                ("vis", ctypes.c_void_p), ("uvw_m", ctypes.c_void_p),
                ("time_mjd_s", ctypes.c_void_p), ("antenna1", ctypes.c_void_p),
                ("antenna2", ctypes.c_void_p), ("freq_hz", ctypes.c_void_p),
                ("corr", ctypes.POINTER(ctypes.c_char_p)), ("field", ctypes.c_int32)]


library = load(".".join(VERSION.split(".")[:2]))
library.tess_last_error.restype = ctypes.c_char_p
library.tess_status_text.restype = ctypes.c_char_p
library.tess_version_full.restype = ctypes.c_char_p
library.tess_release_memory.argtypes = []
library.tess_release_memory.restype = c_i64
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
library.tess_image_subtract.argtypes = [ctypes.c_void_p, _P(Model)]
library.tess_image_subtract.restype = None
library.tess_image_watch.argtypes = [ctypes.c_void_p, Watcher, ctypes.c_void_p]
library.tess_image_watch.restype = None

library.tess_session_create.argtypes = [_P(ctypes.c_void_p)]
library.tess_session_set.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
library.tess_session_open.argtypes = [ctypes.c_void_p]
library.tess_session_info_of.argtypes = [ctypes.c_void_p]
library.tess_session_info_of.restype = _P(SessionInfo)
library.tess_session_polarisation.argtypes = [ctypes.c_void_p, c_int]
library.tess_session_polarisation.restype = ctypes.c_char_p
library.tess_session_weights_of.argtypes = [ctypes.c_void_p, c_i64, c_i64, c_int,
                                            _P(SessionWeights)]
library.tess_session_image.argtypes = [ctypes.c_void_p, c_i64, c_i64, ctypes.c_void_p,
                                       ctypes.c_void_p, ctypes.c_void_p]
library.tess_session_beam.argtypes = [ctypes.c_void_p, c_i64, c_i64, c_f64 * 3]
library.tess_session_restore.argtypes = [ctypes.c_void_p, c_i64, c_i64, _P(Restored)]
library.tess_session_header.argtypes = [ctypes.c_void_p, c_i64, c_i64, ctypes.c_char_p, c_int,
                                        _P(ctypes.c_void_p), _P(c_i64)]
library.tess_session_clean.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
library.tess_session_num_facets.argtypes = [ctypes.c_void_p]
library.tess_session_facet.argtypes = [ctypes.c_void_p, ctypes.c_int]
library.tess_session_facet.restype = ctypes.c_char_p
library.tess_session_solutions.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
library.tess_session_response.argtypes = [ctypes.c_void_p, c_i64, c_i64, ctypes.c_void_p]
library.tess_session_predict_facet.argtypes = [
    ctypes.c_void_p, c_i64, c_i64, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_bool,
    ctypes.POINTER(ctypes.c_void_p)]
library.tess_session_predict.argtypes = [ctypes.c_void_p, c_i64, c_i64, ctypes.c_void_p,
                                         _P(ctypes.c_void_p)]
library.tess_session_image_file.argtypes = [ctypes.c_void_p, c_i64, c_i64, _P(ModelFile),
                                            ctypes.c_void_p, ctypes.c_void_p]
library.tess_session_read_model.argtypes = [ctypes.c_void_p, c_i64, c_i64, _P(ModelFile),
                                            ctypes.c_void_p]
library.tess_session_predict_file.argtypes = [ctypes.c_void_p, c_i64, c_i64,
                                              _P(ModelFile), _P(ctypes.c_void_p)]
library.tess_predictions_count.argtypes = [ctypes.c_void_p]
library.tess_predictions_count.restype = c_i64
library.tess_predictions_get.argtypes = [ctypes.c_void_p, c_i64]
library.tess_predictions_get.restype = _P(Predicted)
library.tess_predictions_destroy.argtypes = [ctypes.c_void_p]
library.tess_predictions_destroy.restype = None
library.tess_session_destroy.argtypes = [ctypes.c_void_p]
library.tess_session_destroy.restype = None

library.tess_command_create.argtypes = [ctypes.c_char_p, _P(ctypes.c_void_p)]
library.tess_command_set.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
library.tess_command_model.argtypes = [ctypes.c_void_p, _P(Model)]
library.tess_command_model.restype = None
library.tess_command_run.argtypes = [ctypes.c_void_p]
library.tess_command_text.argtypes = [ctypes.c_void_p]
library.tess_command_text.restype = ctypes.c_char_p
library.tess_command_count.argtypes = [ctypes.c_void_p]
library.tess_command_count.restype = c_i64
library.tess_command_predicted.argtypes = [ctypes.c_void_p, c_i64]
library.tess_command_predicted.restype = _P(Predicted)
library.tess_command_destroy.argtypes = [ctypes.c_void_p]
library.tess_command_destroy.restype = None


DIFFERENT = _DIFFERENT


def check(status: int) -> None:
    """Raise the exception of a failed call, and issue the warnings of any."""
    message = "" if status == _OK else library.tess_last_error().decode(errors="replace")
    for call in after_calls:
        call()
    if status == _OK:
        return
    kind = _ERRORS.get(status, Error)
    if kind is FileError and message.endswith(os.strerror(errno.ENOENT)):
        kind = NotFoundError
    raise kind(message)


# What other parts of the module do after each call of the library.
after_calls: list[Callable[[], None]] = []


# What ctypes would cut without a word: integers to their last bits, texts at a NUL.


def whole(name: str, value: Any, bits: int = 64) -> int:
    """A whole number for a signed integer of the library.

    Raises
    ------
    ArrayTypeError : it is no whole number
    UsageError : the library's type does not hold it
    """
    try:
        number = operator.index(value)
    except TypeError:
        if not (isinstance(value, float) and value.is_integer()):
            raise ArrayTypeError(f"{name}: {value!r} is no whole number") from None
        number = int(value)
    if not -2**(bits - 1) <= number < 2**(bits - 1):
        raise UsageError(f"{name}: {number} does not fit into an integer of {bits} bits")
    return number


def text(name: str, value: Any) -> bytes:
    """A str, bytes or path for a string of the library.

    Raises
    ------
    UsageError : it has a character that C strings or file names cannot have
    """
    try:
        encoded = os.fsencode(value)
    except UnicodeError:
        raise UsageError(f"{name}: {value!r} has a character that file names cannot "
                         "have") from None
    if b"\0" in encoded:
        raise UsageError(f"{name}: {value!r} has a NUL character")
    return encoded
