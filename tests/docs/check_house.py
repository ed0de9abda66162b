#!/usr/bin/env python3
"""The map of the house holds: it names all rooms of modules, rooms include no header and call
no function of a later room, names have no other room's prefix, texts name files that are
there, no source lacks an opening comment, no header of the imager is long, no sources of a
folder call one another in a circle, no format is told by its name, no file but a backend's
own names its device, no struct is wide or function long, and functions that design pages
name are there."""
import os
import re
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
MODULES = ("base", "mpi", "fft", "clean", "grid", "degrid", "io", "app")
# Rooms of a module, which see those before them; "": the module's folder itself.
ROOMS = {
    "base": ("numbers", "memory", "machine", "text", "files", "device", "images", "profile",
             ""),
    "clean": ("", "cpu", "cuda"),
    "grid": ("bricks", "tile", "projection", "density", ""),
    "io": ("files", "fits", "vis", "preview", "checkpoint", "regions", "solutions", "aterms"),
    "app/imager": (
        "samples",
        "engine/machine", "engine/images", "engine/steps", "engine/plan", "engine/exchange",
        "engine/predict", "engine/visset", "engine/teams", "engine/device", "engine",
        "run/checkpoint", "run/output", "run/setup", "run/model", "run/cycles", "run/session",
        "run"),
    "app/cli": ("values", "line", "job", "options", "commands", "", "wsclean")}
# The first room that sees all public headers of its module and of later rooms.
ALL_PUBLIC = {"app/imager": "run/checkpoint"}
# What is defined in a part of a module has its prefix, if it has one of these, and no other's.
PREFIXES = {"app/imager/engine": "imager", "app/imager/run": "image"}
# Modules of their own in the folder of another.
INNER = ("grid/kernel", "grid/gcf")
HEADER_LINES = 150
MEMBERS = 25
FUNCTION_LINES = 50
# Switches of options, whose cases are short.
SWITCHES = ("app/cli/commands/cmd_simulate.c", "app/cli/options/image_args.c")
# Fast memory is given back as other memory is, and is made of it where there is none.
CIRCLES = ("base/memory/fast_memkind.c", "base/memory/fast_none.c", "base/memory/tess_mem.c")


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


def rooms(module):
    """The number of each file's room in ROOMS, of a module."""
    found = {}
    for path in sources(module):
        folder = os.path.dirname(path)
        if folder not in INNER:
            room = os.path.relpath(folder, module)
            found[path] = ROOMS[module].index("" if room == "." else room)
    return found


def unnamed_rooms():
    """Rooms that the map does not name, and names without a room."""
    named = re.findall(r"^\| `([\w/]+)/` \|", text_of("docs/design/house.md"), re.M)
    there = {os.path.join(module, room).rstrip("/") for module in ROOMS
             for room in ROOMS[module]}
    return sorted(set(named) - {room for room in named if room.startswith("tests/")} ^ there)


def counted(module, name, room):
    """The room that a header or a function counts as one of: public ones are seen earlier."""
    first = ROOMS[module].index(ALL_PUBLIC.get(module, ROOMS[module][0]))
    return min(room, first) if name.startswith("tess_") else room


def later_headers():
    """Includes of a header of a later room, as 'file: header'."""
    found = []
    for module in ROOMS:
        room_of = rooms(module)
        header_in = {name: counted(module, name, room) for name, room in
                     ((os.path.basename(path), room) for path, room in room_of.items())}
        found += [f"{path}: {header}" for path, room in room_of.items()
                  for header in included(path) if header_in.get(header, -1) > room]
    return found


def missing_files():
    """Names of the project's files in texts, as 'file: name', where no file is."""
    tops = MODULES + ("cmake", "docs", "examples", "include", "jobs", "tests")
    name = re.compile(rf"(?<![\w/.$}}-])(?:{'|'.join(tops)})/[\w/.-]+"
                      r"\.(?:c|h|cc|cu|cuh|py|md|sh|cmake|in)\b(?!\.\w)")
    texts = ["CONTRIBUTING.md", "NOTICE", "README.md", "CMakeLists.txt"]
    for top in tops:
        for base, _, names in sorted(os.walk(os.path.join(ROOT, top))):
            texts += [os.path.relpath(os.path.join(base, own), ROOT) for own in sorted(names)
                      if own.endswith((".c", ".h", ".cc", ".cu", ".cuh", ".py", ".md", ".txt",
                                       ".sh", ".cmake", ".in"))]
    texts.remove("tests/recipes/recipes.py")  # which names the files that recipes would add
    return [f"{path}: {found}" for path in texts for found in name.findall(text_of(path))
            if not os.path.exists(os.path.join(ROOT, found))
            and not os.path.exists(os.path.join(ROOT, os.path.dirname(path), found))]


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


def long_functions():
    """Functions of C, as 'file:line: lines', from brace to brace."""
    found = []
    for path in sources(*MODULES):
        if not path.endswith(".c") or path in SWITCHES:
            continue
        lines = text_of(path).split("\n")
        for begin in (k for k, line in enumerate(lines) if line == "{"):
            count = lines.index("}", begin) - begin - 1
            if count > FUNCTION_LINES:
                found.append(f"{path}:{begin}: {count}")
    return found


def functions_of(text):
    """Names of the functions that a source defines for others."""
    heads = re.findall(r"^(?!static\b|typedef\b)\w[\w \*]*?\b(\w+)\([^;{}]*\)\s*\{", text, re.M)
    return {name for name in heads if name not in ("if", "for", "while", "switch")}


def reached(calls, source):
    """Sources that a source calls, by way of others or not."""
    found, next_ones = set(), [source]
    while next_ones:
        for other in calls[next_ones.pop()] - found:
            found.add(other)
            next_ones.append(other)
    return found


def code_of(path):
    """A source without comments and includes."""
    return re.sub(r"/\*.*?\*/|^#\s*include.*?$", "", text_of(path), flags=re.S | re.M)


def defined(path):
    """Names that a source defines or declares: its own, of functions, types and constants."""
    code = code_of(path)
    names = [os.path.basename(path)]
    names += re.findall(r"^\w[^\n({=]*?\b(\w+)\(", code, re.M)
    names += re.findall(r"^(?:\}|typedef [^\n({]*?)\s*\b(\w+);", code, re.M)
    names += re.findall(r"\b(?:struct|enum|union) (\w+)\s*\{", code)
    for values in re.findall(r"\benum\b[^;{]*\{([^}]*)\}", code):
        names += re.findall(r"(?:^|,)\s*(\w+)", values)
    return names


def foreign_prefixes():
    """Names with the prefix of another part of the module, as 'file: name'."""
    found = []
    for path in sources("app/imager"):
        own = next((of for part, of in PREFIXES.items() if path.startswith(part)), "")
        found += [f"{path}: {name}" for name in sorted(set(defined(path)))
                  if name.lower().split("_")[0] in set(PREFIXES.values()) - {own}]
    return found


def later_functions():
    """Calls of a function that a later room of the module defines, as 'file: function'."""
    found = []
    for module in ROOMS:
        room_of = {path: room for path, room in rooms(module).items() if path.endswith(".c")}
        code = {path: code_of(path) for path in room_of}
        room_in = {name: counted(module, name, room) for path, room in room_of.items()
                   for name in functions_of(code[path])}
        found += [f"{path}: {name}" for path, room in room_of.items()
                  for name in sorted(set(re.findall(r"\b(\w+)\(", code[path])))
                  if room_in.get(name, -1) > room]
    return found


def circles():
    """Sources of one folder that call one another in a circle."""
    folders = {}
    for path in sources(*MODULES):
        if path.endswith(".c"):
            folders.setdefault(os.path.dirname(path), []).append(path)
    found = []
    for paths in folders.values():
        text = {path: code_of(path) for path in paths}
        owns = {path: functions_of(text[path]) for path in paths}
        words = {path: set(re.findall(r"\b(\w+)\b", text[path])) for path in paths}
        calls = {path: {other for other in paths
                        if other != path and (owns[other] - owns[path]) & words[path]}
                 for path in paths}
        found += [path for path in paths
                  if path in reached(calls, path) and path not in CIRCLES]
    return found


def against_order():
    """Files of the processors' backend of CLEAN that include one which stands below them in
    the list at the head of cpu_work.h."""
    head = text_of("clean/cpu/cpu_work.h").split("*/")[0].split("stand above them here:")[1]
    order = re.findall(r"\bcpu_\w+", head)
    there = {path: os.path.splitext(os.path.basename(path))[0] for path in sources("clean/cpu")}
    found = [f"{path}: not in the list" for path, name in there.items()
             if name.replace("_isa", "") not in order]
    for path, name in there.items():
        below = order[order.index(name.replace("_isa", "")) + 1:] if not found else []
        found += [f"{path}: {header}" for header in included(path)
                  if header[:-2] in below]
    return found


def told_by_name():
    """Lines that compare a format of visibilities by its name or by its address."""
    words = re.compile(r'cmp\([^;]*"(UVFITS|MS|\.ms)"|[!=]= &tess_vis_format_')
    return [f"{path}: {found.group()}" for path in sources("io", "app")
            for found in words.finditer(code_of(path))]


def design_pages():
    folder = os.path.join("docs", "design")
    for name in sorted(os.listdir(os.path.join(ROOT, folder))):
        if name.endswith(".md"):
            yield name, text_of(os.path.join(folder, name))


def absent_functions():
    """Functions that a design page names, and that no source has, or not the one of its row."""
    found = []
    known = set(re.findall(r"\b(\w+)\(", "".join(map(text_of, sources(*MODULES)))))
    for page, text in design_pages():
        found += [f"{page}: {name}()" for name in re.findall(r"`(\w+)\(\)`", text)
                  if name not in known]
        found += [f"{page}: {name}() in {path}" for name, path in
                  re.findall(r"\| `(\w+)\(\)` \| `([\w/.]+)` \|", text)
                  if not os.path.exists(os.path.join(ROOT, path))
                  or not re.search(rf"^\w[^;=]*\b{name}\([^;]*?\)\n{{", text_of(path), re.M)]
        drawn = set(re.findall(r"\b(?:tess|imager|image|residual|predicted)_\w+", "".join(
            re.findall(r"^```\n(.*?)^```$", text, re.M | re.S))))
        found += [f"{page}: {name} of a drawing" for name in sorted(drawn - known)]
    return found


def one_device():
    """Lines outside of a backend's own files and of the registry that name its device."""
    own = re.compile(r"cuda[^/]*$|base/tess_backend\.[ch]$|\.cuh?$")
    return [f"{path}: {line.strip()}" for path in sources(*MODULES) if not own.search(path)
            for line in text_of(path).splitlines() if "cuda" in line.lower()]


def main():
    failed = 0
    for what, found in (
            ("rooms that the map does not name", unnamed_rooms()),
            ("names of files that are not there", missing_files()),
            ("includes of a later room's header", later_headers()),
            ("calls of a later room's function", later_functions()),
            ("names with the prefix of another room", foreign_prefixes()),
            ("sources that do not say what they are for", without_opening()),
            (f"headers of the imager above {HEADER_LINES} lines", long_headers()),
            ("sources that call one another in a circle", circles()),
            ("files of clean/cpu that include one below them", against_order()),
            ("formats that are told by their names", told_by_name()),
            ("names of a device outside of its backend", one_device()),
            ("functions of design pages that are not there", absent_functions()),
            (f"functions of more than {FUNCTION_LINES} lines", long_functions()),
            (f"structs of more than {MEMBERS} members", wide_structs())):
        print(f"  {'FAIL' if found else 'ok  '}    {what}: {len(found)}")
        for line in found:
            print(f"            {line}")
        failed += len(found) > 0
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
