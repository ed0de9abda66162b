#!/usr/bin/env python3
"""tessera bench gcf --study: each table has its lines, on the CPU and, where the build has
an emulated device, on that; published figures stand where they belong. Times are not judged.
"""
import csv
import importlib.util
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from e2e import BIN, Suite, tessera  # noqa: E402

SMALL = ("--gcf", "8,24", "--vis", "100,200", "--size", "128,192", "--shrink", "0.02",
         "--repeat", "1", "--threads", "2", "--quiet")
TABLES = ["size", "points", "image", "pol", "precision", "atomics", "computed", "sets"]
# Lines of a table for each strategy of a direction: sizes and orders, for instance.
CASES = {"size": 4, "points": 2, "image": 2, "pol": 6, "precision": 4}
GIVEN = {"size": ("gcf", ["8", "24"]), "points": ("visibilities", ["100", "200"]),
         "image": ("size", ["128", "192"]), "pol": ("polarisations", ["1", "2", "4"]),
         "precision": ("precision", ["single", "double"])}


def rows_of(folder, name):
    with open(os.path.join(folder, name + ".csv"), encoding="utf8") as file:
        return list(csv.DictReader(file))


def check_table(suite, folder, name, strategies):
    """`strategies`: of gridding, and of degridding."""
    rows = rows_of(folder, name)
    suite.equal(f"{name}: lines", len(rows), CASES[name] * sum(map(len, strategies)))
    for k, operation in enumerate(("grid", "degrid")):
        suite.equal(f"{name}: strategies to {operation}",
                    {row["strategy"] for row in rows if row["operation"] == operation},
                    set(strategies[k]))
    column, values = GIVEN[name]
    suite.equal(f"{name}: {column}", list(dict.fromkeys(row[column] for row in rows)),
                values)
    suite.true(f"{name}: something was timed", all(float(row["gflops"]) > 0 and
                                                   float(row["all_s"]) > 0 for row in rows))
    suite.true(f"{name}: same results", all(
        float(row["difference"]) < 2e-3 for row in rows))


def check_atomics(suite, folder, strategies):
    rows = rows_of(folder, "atomics")
    suite.equal("atomics: orders, precisions, ways and strategies", len(rows),
                2 * 2 * 2 * len(strategies))
    for way in ("native", "compare-and-swap"):
        suite.equal(f"atomics: {way}", {row["strategy"] for row in rows
                                        if row["variant"] == way}, set(strategies))
    suite.true("atomics: same results", all(
        float(row["difference"]) < 1e-4 for row in rows))


def check_computed(suite, folder, reads):
    """`reads`: the strategy with a table."""
    rows = rows_of(folder, "computed")
    suite.equal("computed: lines", len(rows), 2 * 2 * 2 * 2)
    suite.equal("computed: strategies", {row["strategy"] for row in rows},
                {reads, "computed"})
    suite.true("computed: same results", all(
        float(row["difference"]) < 1e-5 for row in rows))


def check_sets(suite, folder):
    rows = rows_of(folder, "sets")
    suite.equal("sets", [(row["order"], row["strategy"]) for row in rows],
                [(of, strategy) for of in ("synthetic", "low-30", "low-56", "low-82")
                 for strategy in ("tiled", "factored")])
    suite.true("sets: as many cells as the study", all(
        0 < float(row["study_cells"]) <= float(row["cells"]) for row in rows))
    suite.true("sets: no times beside those of parts of sets", all(
        row["published"] == "" for row in rows))


def check_report(suite, folder, tables, has_plots):
    with open(os.path.join(folder, "report.md"), encoding="utf8") as file:
        lines = file.read().split("\n")
    suite.equal("report: tables", sum(line.startswith("## ") for line in lines) -
                ("## Left out" in lines), len(tables))
    suite.equal("report: pictures", [line for line in lines if line.startswith("![](")],
                [f"![]({name}.png)" for name in tables] if has_plots else [])
    for k, line in enumerate(lines):
        if line.startswith("|---"):
            width = line.count("|")
            below = lines[k + 1:lines.index("", k)]
            suite.true(f"report: lines of {lines[k - 1][:40]}", len(below) > 0 and all(
                one.count("|") == width for one in [lines[k - 1]] + below))
    text = "\n".join(lines)
    for source in ("OxfordSKA/GPU-gridding", "NVIDIA/SKA-gpu-grid", "arXiv:1605.07023"):
        suite.true(f"report: {source}", source in text)


def run(suite, name, *options):
    folder = suite.path(name)
    result = tessera("bench", "gcf", "--study", "all", "--out", folder, *options, *SMALL,
                     timeout=400)
    suite.ran(f"study of {name}", result)
    suite.equal("says where", result.out.strip(), folder + "/report.md")
    has_plots = importlib.util.find_spec("matplotlib") is not None
    suite.equal("plots, or a word that there are none", has_plots,
                "without plots" not in result.err)
    return folder, has_plots


def on_cpu(suite):
    folder, has_plots = run(suite, "cpu")
    for name in CASES:
        check_table(suite, folder, name, (["atomic", "tiled", "factored"],) * 2)
    check_atomics(suite, folder, ["atomic"])
    check_computed(suite, folder, "atomic")
    check_sets(suite, folder)
    suite.equal("files", sorted(name for name in os.listdir(folder)
                                if not name.endswith(".png")),
                sorted([name + ".csv" for name in TABLES] + ["plots.py", "report.md"]))
    suite.equal("plots", sorted(name for name in os.listdir(folder)
                                if name.endswith(".png")),
                sorted(name + ".png" for name in TABLES) if has_plots else [])
    check_report(suite, folder, TABLES, has_plots)


def check_degridding_as_published(suite):
    """Degridding has the grid that figures were published for, gridding its own."""
    folder = suite.path("as_published")
    result = tessera("bench", "gcf", "--backend", "cuda", "--study", "size", "--out", folder,
                     "--strategy", "gather", "--gcf", "8,16", "--vis", "100", "--repeat",
                     "1", "--planes", "2", "--threads", "2", "--quiet")
    suite.ran("study on grids as published", result)
    suite.equal("grids as published", {(row["operation"], row["size"])
                                       for row in rows_of(folder, "size")},
                {("grid", "4096"), ("degrid", "8192")})


def on_device(suite):
    os.environ["TESS_EMULATED"] = "1000000000000"
    try:
        probe = tessera("bench", "gcf", "--backend", "cuda", "--strategy", "tiled", "--gcf",
                        "8", *SMALL[2:])
        if probe.status != 0:
            return
        folder, has_plots = run(suite, "device", "--backend", "cuda")
        both = ["tiled", "factored", "scatter", "gather", "window"]
        for name in CASES:
            check_table(suite, folder, name, (both + ["coarse", "warp"], both))
        check_computed(suite, folder, "gather")
        check_atomics(suite, folder, ["scatter", "warp", "window", "coarse"])
        check_sets(suite, folder)
        check_report(suite, folder, TABLES, has_plots)
        check_degridding_as_published(suite)
    finally:
        del os.environ["TESS_EMULATED"]


def limits(suite):
    """What does not fit into the time is left out and said; a figure that was published
    for the case stands beside it."""
    folder = suite.path("limits")
    script = os.path.join(HERE, "..", "..", "jobs", "scaling", "gcf.sh")
    result = subprocess.run(
        ["bash", script, "--out", folder, "--study", "size,sets", "--strategy", "tiled",
         "--operation", "grid", "--within", "0.01", "--repeat", "1", "--threads", "1",
         "--size", "256", "--planes", "2", "--quiet"], capture_output=True, text=True,
        check=False)
    suite.equal("gcf.sh", (result.returncode, result.stderr.replace("\n", "")[:200]
                           if result.returncode else ""), (0, ""))
    with open(os.path.join(folder, "report.md"), encoding="utf8") as file:
        text = file.read()
    suite.true("sets need longer", all(
        f"sets: grid, {name}, " in text for name in ("synthetic", "low-30", "low-82")))
    rows = rows_of(folder, "size")
    suite.true("no rates beside those of other grids", all(
        row["published"] == "" for row in rows))
    suite.true("fewer visibilities for wide functions",
               int(rows[-1]["visibilities"]) < int(rows[0]["visibilities"]))


def published(suite):
    """Rates that were published stand beside those of as many points on as large a grid."""
    rows = []
    for vis, size in (("4e5", "4096"), ("39999", "4096"), ("4e5", "2048")):
        folder = suite.path(f"published-{vis}-{size}")
        result = tessera("bench", "gcf", "--study", "size", "--out", folder, "--strategy",
                         "tiled", "--operation", "grid", "--gcf", "8,32", "--vis", vis,
                         "--size", size, "--repeat", "1", "--threads", "2", "--quiet")
        suite.ran(f"{vis} points on {size} cells", result)
        rows += rows_of(folder, "size")
    suite.equal("published rates", [
        (row["order"], row["visibilities"], row["size"], row["gcf"], row["published"])
        for row in rows if row["published"]],
        [("random", "400000", "4096", "32", "2400")])


def interrupted(suite):
    """A study that is ended in its second table leaves the first."""
    folder = suite.path("interrupted")
    process = subprocess.Popen([BIN, "bench", "gcf", "--study", "points,size", "--out",
                                folder, *SMALL], stdout=subprocess.DEVNULL)
    second = os.path.join(folder, "size.csv")
    while process.poll() is None and not os.path.exists(second):
        time.sleep(0.002)
    process.kill()
    process.wait()
    suite.equal("interrupted study: lines of the first table",
                len(rows_of(folder, "points")), 2 * 2 * 3)
    with open(os.path.join(folder, "report.md"), encoding="utf8") as file:
        suite.true("interrupted study: report", "## Number of points" in file.read())


def main():
    suite = Suite("gcf_study")
    os.environ["TESS_PYTHON"] = sys.executable
    on_cpu(suite)
    on_device(suite)
    limits(suite)
    published(suite)
    interrupted(suite)
    for options in (["--study", "all"], ["--study", "fastest", "--out", "x"],
                    ["--study", "size", "--out", "x", "--within", "0"]):
        result = tessera("bench", "gcf", *options)
        suite.equal(f"bench gcf {' '.join(options)}: status", result.status, 2)
    result = tessera("bench", "gcf", "--study", "points", "--out", "/proc/no/folder", *SMALL)
    suite.equal("a folder that cannot be made: status", result.status, 3)
    os.environ["TESS_PYTHON"] = suite.path("none")
    result = tessera("bench", "gcf", "--study", "points", "--out", suite.path("bare"), *SMALL)
    suite.ran("study without Python", result)
    suite.equal("it says so in one line", result.err.strip().count("\n"), 0)
    suite.true("and that plots are missing", "without plots" in result.err)
    suite.finish()


if __name__ == "__main__":
    main()
