"""Where the tessera library is. It imports no other part of the module, and nothing that
is not Python's own, so that the module's build can ask, too:

    python _find.py SERIES      prints the library's file
"""
from __future__ import annotations

import ctypes
import os
import subprocess
import sys

# What this module calls and earlier libraries of the series lack.
_NEEDED = ("tess_command_create", "tess_image_subtract", "tess_take_messages",
           "tess_session_clean", "tess_data_add")


def _candidates(name: str) -> list[str]:
    """Paths to try, in order."""
    given = os.environ.get("TESSERA_LIBRARY")
    if given:  # a file or a folder; nothing else is looked for then
        return [os.path.join(given, name) if os.path.isdir(given) else given]
    here = os.path.dirname(os.path.abspath(__file__))
    if os.path.exists(os.path.join(here, name)):  # the wheel's own
        return [os.path.join(here, name)]
    paths = []
    try:
        folder = subprocess.run(["pkg-config", "--variable=libdir", "tessera"],
                                capture_output=True, text=True, timeout=20,
                                check=True).stdout.strip()
        paths.append(os.path.join(folder, name))
    except (OSError, subprocess.SubprocessError):
        pass
    paths.append(name)  # the loader's own search: LD_LIBRARY_PATH, ldconfig
    for prefix in (sys.prefix, os.path.expanduser("~/.local"), "/usr/local", "/usr",
                   "/opt/tessera", os.path.join(here, "..", "..", "..", "..")):
        for folder in ("lib", "lib64", f"lib/{os.uname().machine}-linux-gnu"):
            path = os.path.join(prefix, folder, name)
            if os.path.exists(path):
                paths.append(path)
    return paths


def load(series: str) -> ctypes.CDLL:
    """The first library of this series, like "0.1".

    Raises
    ------
    ImportError : there is none; the message lists what was tried
    """
    tried = []
    for path in _candidates(f"libtessera.so.{series}"):
        try:
            library = ctypes.CDLL(path)
            library.tess_version.restype = ctypes.c_char_p
            version = library.tess_version().decode()
        except (OSError, AttributeError) as error:
            tried.append(f"  {path}: {error}")
            continue
        if version.split(".")[:2] != series.split("."):
            tried.append(f"  {path}: version {version}")
            continue
        lacking = [call for call in _NEEDED if not hasattr(library, call)]
        if not lacking:
            return library
        tried.append(f"  {path}: version {version}, too old: it lacks {lacking[0]}")
    raise ImportError(f"no tessera library {series} found; install it (cmake --install), or "
                      "set TESSERA_LIBRARY to its file or folder. Tried:\n" +
                      "\n".join(tried))


if __name__ == "__main__":
    try:
        print(load(sys.argv[1])._name)
    except ImportError as failure:
        sys.exit(str(failure))
