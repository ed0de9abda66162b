#!/usr/bin/env python3
"""The map of the house holds: rooms of the imager include no header of a later room, no
source lacks an opening comment, no header of the imager is long, and no struct is wide."""
import os
import re
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
MODULES = ("base", "mpi", "fft", "clean", "grid", "degrid", "io", "app")
ROOMS = ("samples", "engine", "run")
HEADER_LINES = 150
MEMBERS = 25


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


def body_of(text, begin):
    """What is between the brace that ends at `begin` and its partner."""
    depth, end = 1, begin
    while depth and end < len(text):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return text[begin:end - 1]


def members(body):
    """Declarators of a struct, of which a nested struct is one."""
    count = depth = 0
    for character in body:
        depth += {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}.get(character, 0)
        count += depth == 0 and character in ",;"
    return count


def wide_structs():
    found = []
    for path in sources(*MODULES):
        if path.endswith(".cc"):  # constructors are no members
            continue
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text_of(path), flags=re.S)
        for match in re.finditer(r"\bstruct\s*(\w*)\s*\{", text):
            count = members(body_of(text, match.end()))
            if count > MEMBERS:
                found.append(f"{path}: struct {match.group(1)} has {count}")
    return found


def main():
    failed = 0
    for what, found in (
            ("includes of a later room's header", later_rooms()),
            ("sources that do not say what they are for", without_opening()),
            (f"headers of the imager above {HEADER_LINES} lines", long_headers()),
            (f"structs of more than {MEMBERS} members", wide_structs())):
        print(f"  {'FAIL' if found else 'ok  '}    {what}: {len(found)}")
        for line in found:
            print(f"            {line}")
        failed += len(found) > 0
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
