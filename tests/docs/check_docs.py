#!/usr/bin/env python3
"""Pages of the project: links lead somewhere, commands of the manual run, tables of results
name their command, and docs/ builds without a warning.

manual_commands.py says which blocks of the manual are run. A ```console block has to show
what its commands print today, and so has a table below `<!-- printed by: COMMAND -->`; --write
puts that into the pages.
"""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
import manual_commands  # noqa: E402
from e2e import BIN, ROOT, Suite, have_ms, mpi_environment, mpiexec, run  # noqa: E402

DOCS = os.path.join(ROOT, "docs")
README_LINES = 200
PRINTED = re.compile(r"(<!-- printed by: (.*?) -->\n).*?(<!-- end of what is printed -->)", re.S)
WRITE = "--write" in sys.argv
OPTIONED = ("image", "predict", "restore", "draw", "facets", "mosaic", "simulate", "info", "plan", "compare",
            "stats")


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


def manual_environment():
    """Environment in which the manual's commands find tessera, and a Python with astropy."""
    env = mpi_environment()
    env["PATH"] = os.pathsep.join([os.path.dirname(BIN), os.path.dirname(sys.executable),
                                   env["PATH"]])
    env.pop("ARGP_HELP_FMT", None)  # a user's own layout of --help
    return env


def check_commands(suite):
    """The blocks of each page, one after the other, by one shell that stops at a failure."""
    missing = [] if mpiexec() else ["mpirun"]
    missing += [] if have_ms() else [".ms"]
    shown = 0
    for name, text in manual_commands.pages():
        wanted = manual_commands.blocks(text)
        chosen = [(kind, body) for kind, body in wanted
                  if not (kind == "sh" and any(word in body for word in missing))
                  and not (kind == "console" and WRITE)]
        if not chosen:
            continue
        if len(chosen) < len(wanted) and not WRITE:
            suite.skipped(f"{name}.md: {len(wanted) - len(chosen)} blocks with "
                          + " or ".join(missing))
        shown += sum(kind == "console" for kind, _ in chosen)
        work = suite.path(manual_commands.folder(name, text))
        os.makedirs(work, exist_ok=True)
        result = run(["bash", "-c", manual_commands.script(chosen)], 300, cwd=work,
                     env=manual_environment())
        suite.ran(f"{name}.md: {len(chosen)} blocks run, and print what the page shows "
                  "(--write renews that)", result)
    suite.true(f"{shown} blocks of output in the manual", shown > 0 or WRITE)


def write_outputs(suite):
    """Puts into the pages what their ```console blocks print today."""
    for name, text in manual_commands.pages():
        work = suite.path(manual_commands.folder(name, text))
        os.makedirs(work, exist_ok=True)

        def renew(match):
            lines = ["```console"]
            for command, _ in manual_commands.console_commands(match.group(1)):
                result = run(["bash", "-c", f"({command}) 2>&1"], 60, cwd=work,
                             env=manual_environment())
                lines += ["$ " + command] + [s.rstrip() for s in result.out.splitlines()]
            return "\n".join(lines) + "\n```"

        today = re.sub(r"^```console\n(.*?)^```$", renew, text, flags=re.S | re.M)
        if today != text:
            with open(os.path.join(manual_commands.MANUAL, name + ".md"), "w",
                      encoding="utf-8") as file:
                file.write(today)


def with_tables(suite, text):
    """A page with the tables that its commands print today."""
    def renew(match):
        result = run(["bash", "-c", match.group(2)], 60, env=manual_environment())
        suite.ran(match.group(2), result)
        return match.group(1) + result.out + match.group(3)

    return PRINTED.sub(renew, text)


def check_tables(suite):
    """Tables of options are those of the program; --write renews them."""
    for name, text in manual_commands.pages():
        if not PRINTED.search(text):
            continue
        today = with_tables(suite, text)
        if WRITE and today != text:
            with open(os.path.join(manual_commands.MANUAL, name + ".md"), "w",
                      encoding="utf-8") as file:
                file.write(today)
        suite.true(f"{name}.md: tables as the program prints them", WRITE or today == text)


def check_options(suite):
    """The manual has every option. Those of bench are told by its --help, and belong to studies."""
    manual = "".join(text for _, text in manual_commands.pages())
    for command in OPTIONED:
        shown = run([BIN, command, "--help-all"], 60, env=manual_environment()).out
        options = re.findall(r"^ {2,6}(?:-\w, )?--([a-z][a-z0-9-]*)", shown, re.M)
        suite.true(f"{len(options)} options of {command}", len(options) > 5)
        suite.equal(f"lines of the help of {command} with another indentation", [
            line for line in shown.splitlines() if len(line) - len(line.lstrip(" ")) not in (0, 1, 2, 4, 6, 29)], [])
        suite.equal(f"options of {command} that the manual does not have", [
            name for name in options if not re.search(rf"--{name}(?![\w-])", manual)], [])


def first_block(text, heading):
    """The commands of the first block below a heading."""
    return re.search(rf"^## {heading}$.*?```sh\n(.*?)```", text, re.S | re.M).group(1)


def check_build_commands(suite):
    """docs/manual/install.md shows the commands of README's section Build, which
    tests/fresh/bare_machine.sh runs."""
    readme = first_block(manual_commands.read(os.path.join(ROOT, "README.md")), "Build")
    readme = "".join(line.replace("$SUDO", "sudo") for line in
                     readme.splitlines(keepends=True) if not line.startswith("SUDO="))
    section = re.search(r"^## On Debian and Ubuntu$(.*?)^## ",
                        dict(manual_commands.pages())["install"], re.S | re.M).group(1)
    suite.equal("commands of install.md", "".join(re.findall(r"```sh\n(.*?)```", section,
                                                             re.S)), readme)


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
    check_build_commands(suite)
    check_tables(suite)
    check_options(suite)
    check_commands(suite)
    if WRITE:
        write_outputs(suite)
    check_html(suite)
    suite.finish()


if __name__ == "__main__":
    main()
