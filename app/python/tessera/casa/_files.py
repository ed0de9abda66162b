"""Files of CASA's names: from those that tessera has written, in a folder of their own, to
imagename.image.fits ..."""
from __future__ import annotations

import os
import re
import shutil
import tempfile
from types import TracebackType
from typing import Optional

from .. import _library as lib

# CASA's ending for a kind of tessera; "" leaves the file out.
_KINDS = {"image": "image", "residual": "residual", "model": "model", "psf": "psf",
          "mask": "mask", "pb": "pb", "image-pb": "image.pbcor", "dirty": "", "weight-pb": "",
          "residual-pb": "", "model-pb": "", "dirty-pb": "", "psf-pb": "", "weight": "weight"}
# The same for the mean of channels whose spectra were fitted.
_TERMS = {"image": "", "residual": "residual.tt0", "psf": "psf.tt0", "model": "model.tt0",
          "spectral-index": "alpha", "spectral-index-error": "alpha.error", "pb": "pb.tt0",
          "image-pb": "image.tt0.pbcor", "weight": "weight.tt0"}
_NAME = re.compile(r"work(-cube|-MFS)?-([a-z0-9-]+)\.fits$")
_TERM = re.compile(r"terms-(\d+)$")


def ending(name: str, fits_spectra: bool) -> Optional[str]:
    """What CASA calls tessera's file work-KIND.fits, without imagename; None: nothing."""
    match = _NAME.match(name)
    if not match:
        return None
    part, kind = match.groups()
    if not fits_spectra:
        return _KINDS.get(kind) or None if part != "-MFS" else None
    if part == "-cube":
        return "model.cube" if kind == "model" else None
    term = _TERM.match(kind)
    return f"image.tt{term.group(1)}" if term else _TERMS.get(kind) or None


def is_ours(path: str) -> bool:
    """Whether a file may be replaced: one that tessera wrote, and no link."""
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        header = file.read(8 * 2880)
    return b"ORIGIN  = 'tessera" in header


class Folder:
    """A folder beside the images in which tessera writes them; it goes at the end."""

    def __init__(self, imagename: str) -> None:
        self.imagename = imagename
        self._placed: set[str] = set()
        parent = os.path.dirname(imagename) or "."
        try:
            self.path = tempfile.mkdtemp(prefix="." + os.path.basename(imagename) + ".",
                                         dir=parent)
        except OSError as error:
            raise lib.FileError(f"imagename={imagename!r}: {error.strerror}: {parent}") from None
        self.output = os.path.join(self.path, "work")

    def begin_from(self, model: str, is_cube: bool) -> None:
        """Put a model where --continue finds it."""
        name = "-cube-model.fits" if is_cube else "-model.fits"
        os.symlink(os.path.abspath(model), self.output + name)

    def write_regions(self, text: str) -> str:
        """A file of regions in CASA's format; its name."""
        path = os.path.join(self.path, "mask.crtf")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#CRTFv0\n{text}\n")
        return path

    def _place(self, source: str, end: str) -> None:
        target = f"{self.imagename}.{end}"
        os.replace(source, target)
        self._placed.add(target)

    def finish(self, fits_spectra: bool, leave_out: set[str], dirty_as: list[str]) -> list[str]:
        """Give the images their names.

        Returns
        -------
        list
            images of earlier calls, which this call has not replaced. A mask is none: it may be
            this call's input.
        """
        for name in sorted(os.listdir(self.path)):
            source = os.path.join(self.path, name)
            end = ending(name, fits_spectra)
            if end and end not in leave_out and not os.path.islink(source):
                self._place(source, end + ".fits")
            elif _NAME.match(name) and name.endswith("dirty.fits"):
                for other in dirty_as:
                    copy = source + "." + other
                    shutil.copyfile(source, copy)
                    self._place(copy, other + ".fits")
        return sorted({*_products(self.imagename)} - self._placed - {f"{self.imagename}.mask.fits"})

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _products(imagename: str) -> list[str]:
    """The files that are there of the names that tclean gives images.

    Raises
    ------
    FileError : the folder cannot be listed
    """
    parent, base = os.path.split(imagename)
    ends = {end for end in (*_KINDS.values(), *_TERMS.values(), "model.cube") if end}
    try:
        names = os.listdir(parent or ".")
    except OSError as error:
        raise lib.FileError(f"imagename={imagename!r}: {error.strerror}: {parent}") from None
    return [os.path.join(parent, name) for name in names
            if name.startswith(base + ".") and name.endswith(".fits") and
            (name[len(base) + 1:-5] in ends or re.match(r"image\.tt\d+\.fits$", name[len(base) + 1:]))]


def check_replaced(imagename: str) -> None:
    """Refuse names of files that tessera did not write.

    Raises
    ------
    FileError : such a file is there, and would be replaced; or the folder cannot be listed
    """
    for path in _products(imagename):
        if not is_ours(path):
            raise lib.FileError(f"{path}: is not a file of tessera, and would be replaced; take "
                                "another imagename, or remove it")


def free_name(imagename: str) -> str:
    """imagename, or with the first number behind it of which there are no images."""
    name, number = imagename, 0
    while any(os.path.exists(f"{name}.{kind}.fits")
              for kind in ("image", "residual", "psf", "residual.tt0")):
        number += 1
        name = f"{imagename}_{number}"
    return name
