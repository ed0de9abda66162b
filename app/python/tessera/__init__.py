"""tessera: fast and accurate radio-interferometric gridding and imaging.

    tessera.wgridder.vis2dirty, dirty2vis    arrays in memory, as ducc0.wgridder
    tessera.image                            observations in files to images in memory

All errors of the library are `tessera.Error`, and also the fitting one of ValueError,
OSError and MemoryError.
"""
from . import wgridder
from ._library import (Error, FileError, InputError, ResourceError, UsageError,
                       library as _loaded)
from .imager import Image, Images, image
from ._version import VERSION as __version__

__all__ = ["wgridder", "image", "Image", "Images", "Error", "UsageError", "InputError", "FileError", "ResourceError",
           "library_version"]


def library_version():
    """Version and git revision of the library in use."""
    return _loaded.tess_version_full().decode()
