#!/usr/bin/env python3
"""The map of the house holds: rooms of the imager include no header of a later room, no
source lacks an opening comment, and no header of the imager is long."""
import os
import re
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
MODULES = ("base", "mpi", "fft", "grid", "degrid", "clean", "io", "app")
ROOMS = ("samples", "engine", "run")
HEADER_LINES = 150


def sources(*folders):
    """Paths, from the root, of C, C++ and CUDA files in these folders."""
    for folder in folders:
        for base, _, names in sorted(os.walk(os.path.join(ROOT, folder))):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".cc", ".cu", ".cuh")):
                    yield os.path.relpath(os.path.join(base, name), ROOT)


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def included(path):
    """Names of the project's headers that a file includes."""
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', text_of(path), re.M)


def later_rooms():
    """Includes of a header of a later room, as 'file: header'."""
    folder = "app/imager/{}".format
    room_of = {os.path.basename(path): k for k, room in enumerate(ROOMS)
               for path in sources(folder(room)) if path.endswith(".h")}
    return [f"{path}: {header}" for k, room in enumerate(ROOMS)
            for path in sources(folder(room)) for header in included(path)
            if room_of.get(header, -1) > k]


def without_opening():
    return [path for path in sources(*MODULES)
            if not text_of(path).lstrip().startswith(("/*", "//"))]


def long_headers():
    lines = {path: text_of(path).count("\n") for path in sources("app/imager")
             if path.endswith(".h")}
    return [f"{path}: {count} lines" for path, count in lines.items()
            if count > HEADER_LINES]


def main():
    failed = 0
    for what, found in (
            ("includes of a later room's header", later_rooms()),
            ("sources that do not say what they are for", without_opening()),
            (f"headers of the imager above {HEADER_LINES} lines", long_headers())):
        print(f"  {'FAIL' if found else 'ok  '}    {what}: {len(found)}")
        for line in found:
            print(f"            {line}")
        failed += len(found) > 0
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
