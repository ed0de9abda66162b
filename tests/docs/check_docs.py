#!/usr/bin/env python3
"""Pages of the project: links lead somewhere, commands of the manual run, tables of results
name their command, and docs/ builds without a warning.

A block of a page of docs/manual/ that starts with ```sh is run, in order, in one folder
for each page. A comment `<!-- not run...: reason -->` above it says why it is not. A block
that starts with ```console has commands behind "$ ", and below each what it prints, on
standard output or error: that is what it has to print today, in the folder that the page's
other blocks leave. --write puts what is printed into the pages.
"""
import difflib
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from e2e import BIN, ROOT, Suite, mpi_environment, mpiexec, run  # noqa: E402

DOCS = os.path.join(ROOT, "docs")
README_LINES = 200
WRITE = "--write" in sys.argv


def pages():
    found = [os.path.join(ROOT, name) for name in sorted(os.listdir(ROOT))
             if name.endswith(".md")]
    for folder in (DOCS, os.path.join(ROOT, "examples")):
        for base, _, names in sorted(os.walk(folder)):
            found += [os.path.join(base, name) for name in sorted(names)
                      if name.endswith(".md")]
    return found


def anchors(text):
    """Names that headings have as link targets."""
    return {re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()).strip().replace(" ", "-")
            for line in text.splitlines() if line.startswith("#")}


def check_links(suite):
    broken = []
    for page in pages():
        with open(page, encoding="utf-8") as file:
            text = file.read()
        for target in re.findall(r"\]\(([^)\s]+)\)|<img src=\"([^\"]+)\"", text):
            target = target[0] or target[1]
            if re.match(r"https?:", target):
                continue
            path, _, anchor = target.partition("#")
            full = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path \
                else page
            good = os.path.exists(full)
            if good and anchor and full.endswith(".md"):
                with open(full, encoding="utf-8") as file:
                    good = anchor in anchors(file.read())
            if not good:
                broken.append(f"{os.path.relpath(page, ROOT)}: {target}")
    suite.equal(f"links of {len(pages())} pages that lead nowhere", broken, [])


def blocks(text):
    """(runs?, commands) of each ```sh block."""
    for match in re.finditer(r"(<!-- not run[^>]*-->\n)?```sh\n(.*?)```", text, re.S):
        yield match.group(1) is None, match.group(2)


def check_commands(suite):
    """Each page's blocks, one after the other, by one shell that stops at a failure."""
    env = mpi_environment()
    env["PATH"] = os.path.dirname(BIN) + ":" + env["PATH"]
    env["PATH"] = os.path.dirname(sys.executable) + ":" + env["PATH"]  # astropy
    folder = os.path.join(DOCS, "manual")
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".md"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            wanted = [code for runs, code in blocks(file.read()) if runs]
        if not wanted:
            continue
        if not mpiexec() and any("mpirun" in code for code in wanted):
            suite.skipped(f"{name}: no MPI launcher")
            continue
        work = suite.path(name[:-3])
        os.makedirs(work)
        result = run(["bash", "-euc", "\n".join(wanted)], 300, cwd=work, env=env)
        suite.ran(f"{name}: {len(wanted)} blocks of commands", result)


CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.S | re.M)


def printed(suite, env, page, block):
    """The block as it would be today."""
    lines = []
    for line in block.splitlines():
        if not line.startswith("$ "):
            continue
        result = run(["bash", "-c", f"({line[2:]}) 2>&1"], 60, cwd=suite.path(page), env=env)
        lines += [line] + [text.rstrip() for text in result.out.splitlines()]
    return "\n".join(lines) + "\n"


def check_outputs(suite):
    """What pages show as printed by a command is what it prints."""
    env = mpi_environment()
    env["PATH"] = os.path.dirname(BIN) + ":" + env["PATH"]
    env.pop("ARGP_HELP_FMT", None)  # a user's own layout of help
    folder = os.path.join(DOCS, "manual")
    count = 0
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".md"):
            continue
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        os.makedirs(suite.path(name[:-3]), exist_ok=True)
        blocks = CONSOLE.findall(text)
        count += len(blocks)
        today = [printed(suite, env, name[:-3], block) for block in blocks]
        if WRITE and today != blocks:
            rest = iter(today)
            with open(path, "w", encoding="utf-8") as file:
                file.write(CONSOLE.sub(lambda _: f"```console\n{next(rest)}```", text))
            continue
        for block, now in zip(blocks, today):
            command = block.splitlines()[0]
            differs = difflib.unified_diff(block.splitlines(), now.splitlines(), name,
                                           "printed today", lineterm="", n=0)
            suite.equal(f"{name}, {command}: what differs (check_docs.py --write)",
                        list(differs), [])
    suite.true(f"{count} blocks of output in the manual", count > 0)


def check_results(suite):
    """A page of results says for each table what made it, on which machine."""
    folder = os.path.join(DOCS, "results")
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".md") or name == "index.md":
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            sections = re.split(r"^## ", file.read(), flags=re.M)[1:]
        for section in sections:
            title = section.splitlines()[0]
            if "|---" in section:
                suite.true(f"{name}, {title}: names its command",
                           re.search(r"`[^`]*(tests/|tessera |jobs/|mpirun |--)[^`]*`",
                                     section, re.S) is not None)


def check_readme(suite):
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        suite.below("lines of README.md", len(file.readlines()), README_LINES)


def check_html(suite):
    for python in (sys.executable, "/usr/bin/python3"):
        if run([python, "-c", "import sphinx, myst_parser"], 60).status == 0:
            result = run([python, "-m", "sphinx", "-W", "--keep-going", "-q", DOCS,
                          suite.path("html")], 300)
            suite.ran("docs/ to HTML without a warning", result)
            return
    suite.skipped("docs/ to HTML: no Sphinx with MyST")


def main():
    suite = Suite("docs")
    check_readme(suite)
    check_links(suite)
    check_results(suite)
    check_commands(suite)
    check_outputs(suite)
    check_html(suite)
    suite.finish()


if __name__ == "__main__":
    main()
