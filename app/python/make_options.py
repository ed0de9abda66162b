"""Writes tessera/_typed.py: the options of `tessera image`, `predict` and others as types of
keyword arguments, so that editors complete them, and mypy finds those that are not there.

    python app/python/make_options.py TESSERA [--check]

TESSERA is the program. With --check nothing is written, and the exit status says whether the file
is what the program's options make.
"""
import keyword
import os
import re
import subprocess
import sys

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tessera", "_typed.py")
OPTION = re.compile(r"^ {2,6}(?:-\w, )?--([a-z][a-z0-9-]*)(?:=(\S+))?(?: {2,}| |$)(.*)")
# Options of the command line alone, and arguments that functions name themselves.
LEFT_OUT = {"config", "quiet", "verbose", "help", "help-all", "version", "usage", "list-layouts",
            "obs"}
OWN = {"image": {"size", "scale", "subtract"},
       "predict": {"model", "scale", "output", "column"},
       "restore": {"output"}, "draw": {"output"}, "plan": {"size", "scale"},
       "simulate": {"output", "layout", "sky", "ra", "dec", "duration", "freq",
                    "autocorrelations"}}
# Types by the word that the help has for a value.
TYPES = {"N": "Union[int, str]", "M": "Union[float, str]", "K": "Union[float, str]",
         "G": "Union[float, str]", "X": "Union[float, str]", "F": "Union[float, int, str]",
         "P": "Union[float, str]", "B": "Union[float, str]", "E": "Union[float, str]",
         "ORDER": "Union[int, str]", "FILE": "Path", "DIR": "Path", "NAME": "Path",
         "FILE.json": "Path", "MODEL.fits": "Path"}
HEAD = '''"""Options as types of keyword arguments. Made by make_options.py of the program's help."""
from __future__ import annotations

from typing import Optional, TypedDict, Union

from ._options import Option, Path
'''


def options_of(program, command):
    """(name, word of its value or None) of each option."""
    env = {k: v for k, v in os.environ.items() if k != "ARGP_HELP_FMT"}
    text = subprocess.run([program, command, "--help-all"], capture_output=True, text=True,
                          check=True, env=env).stdout
    found = {}
    for line in text.splitlines():
        match = OPTION.match(line)
        left_out = (LEFT_OUT - ({"obs"} if command == "draw" else set())) | OWN[command]
        if match and match.group(1) not in left_out:
            found.setdefault(match.group(1), match.group(2))  # examples come later
    return sorted(found.items())


def type_of(value):
    word = "bool" if value is None else TYPES.get(value, "Option")
    return word if word == "Option" else f"Optional[{word}]"  # None leaves an option out


def spelled(name):
    key = name.replace("-", "_")
    return key + "_" if keyword.iskeyword(key) else key


def typed(program):
    parts = [HEAD]
    for command in sorted(OWN):
        parts.append(f'\n\nclass {command.capitalize()}Options(TypedDict, total=False):\n'
                     f'    """Those of `tessera {command}`; log shows lines on stderr."""\n'
                     '    log: str\n')
        parts += [f"    {spelled(name)}: {type_of(value)}\n"
                  for name, value in options_of(program, command)]
    return "".join(parts)


def main():
    text = typed(sys.argv[1])
    if "--check" in sys.argv:
        with open(FILE, encoding="utf-8") as file:
            same = file.read() == text
        sys.exit(0 if same else "app/python/tessera/_typed.py is not that of the options: run "
                                "python3 app/python/make_options.py TESSERA")
    with open(FILE, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
