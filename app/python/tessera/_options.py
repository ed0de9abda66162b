"""Options of the library's calls, and what takes them: values as the command line has
them, models as the library takes them."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _library as lib

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
# A pixel size: "1.5asec", radians, or an astropy Quantity.
Angle = Any
# The value of an option; None and False leave it out.
Option = Union[None, bool, int, float, str, bytes, "os.PathLike[str]", Sequence[Any], Any]


def text_of(name: str, value: Any) -> Optional[str]:
    """An option's value as the command line has it; None for a switch."""
    if value is True or (isinstance(value, np.bool_) and bool(value)):
        return None
    if isinstance(value, (str, bytes, os.PathLike)):
        return os.fsdecode(value)
    sky = getattr(value, "icrs", None)  # an astropy SkyCoord
    if sky is not None:
        return f"{float(sky.ra.deg)!r}deg,{float(sky.dec.deg)!r}deg"
    if hasattr(value, "to_value"):
        return _quantity(name, value)
    if name == "scale":  # radians
        return f"{float(value)!r}rad"
    if isinstance(value, (tuple, list)):
        return ",".join(str(text_of(name, v)) for v in value)
    if isinstance(value, float):
        return repr(float(value))
    return str(value)


# Units of astropy in which options are given, with the words of the command line.
_UNITS = (("rad", "rad"), ("Jy", "Jy"), ("Jy / beam", "Jy"), ("Hz", "Hz"), ("km / s", "km/s"),
          ("s", "s"), ("m", ""), ("", ""))


def _quantity(name: str, value: Any) -> str:
    """An astropy Quantity as the command line has it."""
    for unit, word in _UNITS:
        try:
            return f"{float(value.to_value(unit))!r}{word}"
        except ValueError:  # UnitConversionError
            continue
    raise lib.UsageError(f"{name}: {value} has no unit that options have: an angle, a flux, a "
                         "frequency, a velocity, a time or a length")


class Call:
    """A handle of the library whose options are set by name; owns what the call gives."""

    def __init__(self, create: Callable[[Any], int], set_option: Callable[..., int],
                 destroy: Callable[[Any], None]) -> None:
        self.handle = ctypes.c_void_p()
        self._set, self._destroy = set_option, destroy
        self._held: list[Any] = []  # what the library points to
        lib.check(create(ctypes.byref(self.handle)))

    def set(self, name: str, value: Optional[str] = None) -> None:
        option = lib.text("the name of an option", name)
        lib.check(self._set(self.handle, option,
                            None if value is None else lib.text(name, value)))

    def set_all(self, options: dict[str, Any]) -> None:
        """Options as Python names them; None and False leave one out."""
        for key, value in options.items():
            name = key.rstrip("_").replace("_", "-")  # continue_ is Python's spelling
            if value is None or value is False or (isinstance(value, np.bool_) and
                                                   not value):
                continue
            self.set(name, text_of(name, value))

    def hold(self, thing: Any) -> Any:
        self._held.append(thing)
        return thing

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self._destroy(self.handle)


def is_path(model: Any) -> bool:
    return isinstance(model, (str, bytes, os.PathLike))


def model_of(pixels: Any, scale: Optional[Angle], call: Call) -> lib.Model:
    """The library's description of a model array, of which the call keeps a copy where
    that is needed."""
    array = np.asarray(pixels)
    if array.dtype.kind not in "fiu":
        raise lib.ArrayTypeError(f"the model has type {array.dtype}, not float32 or float64")
    if array.ndim not in (2, 3) or (array.ndim == 3 and not 1 <= array.shape[0] <= 4):
        raise lib.UsageError(f"the model has shape {array.shape}, not (ny, nx) or (1 to 4 "
                             "Stokes parameters, ny, nx)")
    real = np.float32 if array.dtype == np.float32 else np.float64
    array = call.hold(np.ascontiguousarray(array, real))
    model = lib.Model()
    model.ny, model.nx = array.shape[-2:]
    model.num_stokes = array.shape[0] if array.ndim == 3 else 1
    model.is_double = real is np.float64
    model.pixel = array.ctypes.data
    if scale is not None:
        model.scale = lib.text("scale", str(text_of("scale", scale)))
    call.hold(model)
    return model


def array_of(owner: Any, address: Optional[int], shape: tuple[int, ...],
             dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The library's memory as an array, which keeps `owner`."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if size == 0 or not address:
        return np.zeros(shape, dtype)
    memory: Any = (ctypes.c_char * size).from_address(address)
    memory.owner = owner
    array: npt.NDArray[Any] = np.frombuffer(memory, dtype).reshape(shape)
    return array
