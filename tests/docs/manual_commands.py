#!/usr/bin/env python3
"""The commands of docs/manual/ as a shell script, in the order of the manual. check_docs.py
runs it here, and tests/fresh/bare_machine.sh runs it on a bare machine. This file needs
nothing but Python's standard library.

A block that starts with ```sh holds commands. A block that starts with ```console holds
commands behind "$ " and, below each, what the command prints on standard output and error.
A comment above a block says where the block does not run:

    <!-- not run: REASON -->                       nowhere
    <!-- run on a bare machine only: REASON -->    in the second test alone

Each page has a folder of its own. A page with the comment `<!-- folder: PAGE -->` uses the
folder of that page.

    python3 tests/docs/manual_commands.py     prints the script for a bare machine
"""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MANUAL = os.path.join(ROOT, "docs", "manual")
BLOCK = re.compile(r"^(?:<!-- ((?:not )?run)\b([^>]*)-->\n)?```(sh|console)\n(.*?)^```$",
                   re.S | re.M)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def pages():
    """(name, text) of each page, in the order of the manual's table of contents."""
    contents = re.search(r"```{toctree}\n(.*?)```", read(os.path.join(MANUAL, "index.md")),
                         re.S).group(1)
    return [(name, read(os.path.join(MANUAL, name + ".md"))) for name in contents.split()]


def folder(name, text):
    """The name of the folder in which the commands of a page run."""
    other = re.search(r"<!-- folder: (\S+) -->", text)
    return other.group(1) if other else name


def blocks(text, bare=False):
    """(kind, commands) of each block of a page that runs."""
    return [(kind, body) for where, rest, kind, body in BLOCK.findall(text)
            if not where or (bare and where == "run" and "bare machine only" in rest)]


def console_commands(body):
    """(command, what it prints) of each command of a console block."""
    return [(command, printed) for command, printed in
            re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", body, re.M)]


def script(chosen):
    """Shell commands that run blocks, and that fail at the first command whose status is
    not 0 in a ```sh block, or whose output differs in a ```console block."""
    lines = ["set -eu", "unset ARGP_HELP_FMT"]  # a user's own layout of --help
    for kind, body in chosen:
        if kind == "sh":
            lines.append(body)
            continue
        for command, printed in console_commands(body):
            lines += ["cat >../expected <<'END_OF_OUTPUT'", printed + "END_OF_OUTPUT",
                      f"({command}) 2>&1 | sed 's/[[:space:]]*$//' >../printed",
                      "diff -u ../expected ../printed"]
    return "\n".join(lines) + "\n"


def bare_script():
    """A script that runs every page, for a machine that has tessera in $PATH."""
    lines = ["set -eu"]
    for name, text in pages():
        chosen = blocks(text, bare=True)
        if chosen:
            place = "~/manual/" + folder(name, text)
            lines += [f"echo '== {name}.md: {len(chosen)} blocks'",
                      f"mkdir -p {place}", f"(cd {place}", script(chosen) + ")"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(bare_script(), end="")
