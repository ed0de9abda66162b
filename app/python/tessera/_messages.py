"""Messages of the library: to `logging`, `warnings`, and a bar or function of the user's."""
from __future__ import annotations

import collections
import ctypes
import importlib
import logging
import os
import sys
import threading
import warnings
from typing import Any, Callable, NamedTuple, Optional, Union

from . import _library as lib

__all__ = ["TesseraWarning", "Step", "show_progress"]

logger = logging.getLogger("tessera")
logger.addHandler(logging.NullHandler())
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class TesseraWarning(UserWarning):
    """What the program `tessera` warns of on stderr."""


class Step(NamedTuple):
    """How far a step of a call has come.

    Attributes
    ----------
    label : what is done, like "gridding"
    done : how many visibilities, iterations ... are done
    share : the share of the step that is done, 0 to 1; 0 where that is not known
    ends : whether the step is over
    """
    label: str
    done: float
    share: float
    ends: bool


class _Messages(ctypes.Structure):
    """tess_messages"""
    Take = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
    Tell = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_double,
                            ctypes.c_double, ctypes.c_bool)
    _fields_ = [("take", Take), ("step", Tell), ("context", ctypes.c_void_p)]


# Kinds of messages: tess_message_kind of tess_api.h. Those of errors become exceptions.
_LEVELS = {0: logging.INFO, 1: logging.DEBUG, 2: logging.DEBUG, 3: logging.WARNING,
           4: logging.DEBUG}
_WARNING = 3
# Warnings of the call that is at work: an exception cannot pass through the library, and a
# filter may make one of a warning.
_waiting: collections.deque[str] = collections.deque()


def _take(_: Any, kind: int, text: bytes) -> None:
    message = text.decode(errors="replace")
    logger.log(_LEVELS.get(kind, logging.DEBUG), "%s", message)
    if kind == _WARNING:
        _waiting.append(message)


def _stack_level() -> int:
    """That of the first caller outside of this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame, level = frame.f_back, level + 1
    return level


def _issue_warnings() -> None:
    while _waiting:
        try:
            message = _waiting.popleft()
        except IndexError:  # another thread has issued it
            return
        warnings.warn(message, TesseraWarning, stacklevel=_stack_level())


class _Bars:
    """Progress bars of tqdm, one for each step."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm, self._bar, self._label = tqdm, None, ""  # type: Any, Any, str

    def __call__(self, step: Step) -> None:
        if self._bar is None or self._label != step.label:
            self.close()
            self._bar, self._label = self._tqdm(total=100, desc=step.label, leave=False,
                                                bar_format="{desc}: {bar} {n:.0f}%"), step.label
        self._bar.n = 100 * step.share
        self._bar.refresh()
        if step.ends:
            self.close()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None


_steps: Optional[Callable[[Step], Any]] = None
_lock = threading.Lock()


def _tell(_: Any, label: bytes, done: float, share: float, ends: bool) -> None:
    call = _steps
    if call is not None:
        with _lock:
            call(Step(label.decode(errors="replace"), done, share, ends))


_take_function, _tell_function = _Messages.Take(_take), _Messages.Tell(_tell)


def _connect() -> None:
    messages = _Messages(_take_function, _tell_function if _steps else _Messages.Tell(0), None)
    lib.library.tess_take_messages(ctypes.byref(messages))


def show_progress(how: Union[bool, Callable[[Step], Any]] = True) -> None:
    """Show how far calls have come, from now on.

    Parameters
    ----------
    how : function, or bool
        a function that is called with a Step a few times a second; True: a bar of tqdm, or,
        where tqdm is not installed, lines of `logging`; False: nothing

    The function may be called by other threads than the one that calls tessera, one call at
    a time. It must not call tessera itself.
    """
    global _steps
    if how is True:
        try:
            _steps = _Bars(importlib.import_module("tqdm.auto").tqdm)
        except ImportError:
            _steps = _log_step
    else:
        _steps = how or None
    _connect()


def _log_step(step: Step) -> None:
    if step.ends:
        logger.info("%s: done", step.label)


lib.library.tess_take_messages.argtypes = [ctypes.POINTER(_Messages)]
lib.library.tess_take_messages.restype = None
lib.after_calls.append(_issue_warnings)
_connect()
