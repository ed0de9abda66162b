"""tessera: fast and accurate radio-interferometric gridding and imaging.

    tessera.image                            observations in files to images in memory
    tessera.Session                          observations that stay open, for deconvolution
    tessera.predict                          a model image to visibilities
    tessera.info, simulate                   describe an observation; make one
    tessera.wgridder.vis2dirty, dirty2vis    arrays in memory, as ducc0.wgridder
    tessera.release_memory                   give memory that is kept back to the system

All errors of the library are `tessera.Error`, which is a RuntimeError, and also the fitting
one of ValueError, TypeError, OSError and MemoryError.
"""
from . import wgridder
from ._data import Data, Rows, Window
from ._library import (ArrayTypeError, Error, FileError, InputError, NotFoundError,
                       ResourceError, StoppedError, UsageError, library as _loaded)
from ._messages import Step, TesseraWarning, show_progress
from ._version import VERSION as __version__
from .commands import (Comparison, Prediction, Predictions, compare, draw, info, plan, predict,
                       restore, simulate, stats)
from .imager import Image, Images, Major, image
from .session import Session, Weights

__all__ = ["wgridder", "image", "Image", "Images", "Session", "Weights", "predict",
           "Prediction", "Predictions", "info", "simulate", "restore", "draw", "plan", "compare",
           "Comparison", "stats", "Data", "Window", "Rows", "Error", "UsageError",
           "ArrayTypeError", "InputError", "FileError", "NotFoundError", "ResourceError",
           "StoppedError", "Major", "Step", "TesseraWarning", "show_progress",
           "library_version", "release_memory", "__version__"]


def release_memory() -> int:
    """Give the memory that the library keeps for its next call back to the system, and
    return its bytes. Memory in use stays as it is."""
    released: int = _loaded.tess_release_memory()
    return released


def library_version() -> str:
    """Version and git revision of the library in use."""
    version: bytes = _loaded.tess_version_full()
    return version.decode()
