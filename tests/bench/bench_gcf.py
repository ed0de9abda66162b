#!/usr/bin/env python3
"""tessera bench gcf: a smoke test of its table, and that its strategies do the same work.

Results differ by rounding (a random walk over the points of a cell, or the cells of a
point) and, of 'factored', by the error asked of its kernels; times are not judged.
"""
import csv
import io
import math
import os
import sys

from astropy.io import fits

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from e2e import Suite, tessera  # noqa: E402

SMALL = ("--vis", "2e3", "--size", "512", "--repeat", "1", "--threads", "2", "--planes",
         "3", "--quiet")


def table(suite, *options, size=None):
    less = SMALL + ("--size", size) if size else SMALL
    result = tessera("bench", "gcf", *options, *less)
    if not suite.ran("gcf " + " ".join(options), result):
        return []
    return list(csv.DictReader(io.StringIO(result.out)))


def other_ways(suite):
    """Switches that studies compared: the same sums, named in the table."""
    for switches, name in ((["--sort", "layer"], "sort=layer"), (["--pieces", "3"], "pieces=3"),
                           (["--tile-factor", "2"], "tile-factor=2"),
                           (["--normalise"], "normalise"),
                           (["--extra", "both"], "formula extra=both")):
        rows = table(suite, "--gcf", "16", "--strategy", "tiled", *switches)
        suite.equal(f"{name}: said", [row["switches"] for row in rows], [name])
    suite.true("tiles of few points", 0 < int(table(
        suite, "--gcf", "16", "--strategy", "tiled", "--tile-factor", "1",
        "--order", "tracks")[0]["atomic_points"]) < 4032)
    rows = table(suite, "--gcf", "16", "--strategy", "serial", "--cube")
    suite.equal("cube: said", [row["switches"] for row in rows], ["cube"])
    rows = table(suite, "--gcf", "16", "--strategy", "serial,atomic,private",
                 "--precision", "double")
    for row in rows:
        suite.below(f"{row['strategy']}: difference", float(row["difference"]), 1e-13)
    rows = table(suite, "--gcf", "16", "--atomics", "plain")
    suite.equal("plain additions are said to be wrong",
                [(row["strategy"], row["switches"]) for row in rows],
                [("atomic", "atomics=plain(WRONG)")])
    rows = table(suite, "--gcf", "16", "--strategy", "serial", "--intensity",
                 suite.path("map"))
    map_ = fits.getdata(suite.path("map.fits")).astype(float)
    suite.equal("map: its shape", map_.shape, (512, 512))
    suite.equal("map: updates", map_.sum(), int(rows[0]["visibilities"]) * 16.0 ** 2)
    with open(suite.path("map.png"), "rb") as file:
        suite.equal("map: a picture", file.read(8), b"\x89PNG\r\n\x1a\n")


def on_a_device(suite):
    """The active box, on a device or its emulation, where the build has one."""
    os.environ["TESS_EMULATED"] = "1000000000000"
    options = ("bench", "gcf", "--backend", "cuda", "--strategy", "tiled", "--gcf", "8",
               "--vis", "200", "--size", "64", "--repeat", "1", "--energy", "0", "--quiet")
    found = tessera(*options, "--active-box")
    merged = tessera(*options, "--merge", "--oversampling", "1")
    del os.environ["TESS_EMULATED"]
    if found.status != 0:
        return
    row = list(csv.DictReader(io.StringIO(found.out)))[0]
    suite.equal("active box: said", row["switches"], "active-box")
    lines, cells = map(int, row["box"].split("x"))
    suite.true("active box: its size", 8 < lines < 64 and 8 < cells < 64)
    suite.true("active box: time saved is a number", math.isfinite(float(row["saved_s"])))
    row = list(csv.DictReader(io.StringIO(merged.out)))[0]
    suite.below("merged on a device", int(row["merged"]), int(row["visibilities"]))
    suite.below("merged on a device: rates", float(row["gflops"]), float(row["all_gflops"]))


def main():
    suite = Suite("bench_gcf")
    both = ("--operation", "grid,degrid", "--gcf", "8,64", "--error", "1e-4", "--strategy",
            "serial,atomic,tiled,factored")
    rows = table(suite, *both, "--pol", "1,4", "--precision", "single,double")
    suite.equal("every combination", len(rows), 2 * 2 * 4 * 2 * 2)
    rows += table(suite, *both, "--pol", "2", "--order",
                  "sorted,tracks,baselines")
    suite.equal("all orders", len(rows), 64 + 3 * 2 * 4 * 2)
    for row in rows:
        factored = float(row["rank"]) > 0
        suite.equal(f"{row['strategy']} {row['gcf']}: factored", factored,
                    row["strategy"] == "factored" and row["gcf"] == "64")
        rounding = {"single": 2e-5, "double": 1e-13}[row["precision"]]
        suite.below(" ".join((row["operation"], row["strategy"], row["order"], row["gcf"],
                              row["polarisations"], row["precision"])),
                    float(row["difference"]), rounding + (1.5e-4 if factored else 0))
        work = 8e-9 * (int(row["visibilities"]) * int(row["gcf"]) ** 2 *
                       int(row["polarisations"]))
        seconds = float(row["sort_s"]) + float(row["seconds"])
        suite.below("rate is of sorting and gridding",
                    abs(float(row["gflops"]) * seconds / work - 1), 0.05)
    suite.true("visibilities inside the grid", all(
        int(row["visibilities"]) >= 2000 for row in rows))
    rows = table(suite, "--gcf", "16", "--least-cells", "0", "--strategy",
                 "tiled,factored")
    suite.true("narrow kernels factor when asked to", float(rows[1]["rank"]) >= 1)
    rows = table(suite, "--gcf", "16", "--order", "tracks", "--oversampling", "1", "--merge",
                 "--strategy", "serial,tiled", size="64")
    for row in rows:
        suite.below(f"{row['strategy']}: visibilities are merged", int(row["merged"]),
                    0.9 * int(row["visibilities"]))
        suite.below(f"{row['strategy']} merged: difference", float(row["difference"]), 2e-5)
        suite.below(f"{row['strategy']} merged: both rates", abs(
            float(row["all_gflops"]) * int(row["merged"]) /
            (float(row["gflops"]) * int(row["visibilities"])) - 1), 1e-3)
    rows = table(suite, "--order", "synthetic,low-82", "--shrink", "0.04", "--strategy",
                 "serial,tiled")
    suite.equal("published sets, smaller",
                [(row["order"], row["size"], row["planes"], row["oversampling"])
                 for row in rows[::2]], [("synthetic", "164", "29", "4"),
                                         ("low-82", "400", "16", "4")])
    for row in rows:
        suite.true(f"{row['order']}: as many updates as the study",
                   0 < float(row["study_cells"]) <= float(row["cells"]))
        suite.below(f"{row['order']} {row['strategy']}: difference",
                    float(row["difference"]), 2e-5)
    other_ways(suite)
    on_a_device(suite)
    os.environ["TESS_CACHE_DIR"] = suite.path("cache")
    found = tessera("bench", "--tune", *SMALL)  # that of gcf
    suite.ran("gcf --tune", found)
    best = [line.split(",")[4] for line in found.out.splitlines() if line.endswith(",1")]
    kept = [name for name in os.listdir(suite.path("cache"))
            if name.startswith("strategies-")]
    suite.equal("tuning tables", len(kept), 1)
    with open(suite.path("cache", kept[0]), encoding="utf8") as file:
        suite.equal("what was fastest is kept",
                    [line.split()[4] for line in file.readlines()[1:]], best)
    text = tessera("bench", "gcf", "--gcf", "8", "--markdown", "--merge", *SMALL)
    suite.equal("markdown, merged", [line.count("|") for line in text.out.splitlines()],
                [15] * 5)
    text = tessera("bench", "gcf", "--gcf", "8", "--markdown", *SMALL)
    suite.equal("markdown", [line.count("|") for line in text.out.splitlines()], [13] * 5)
    for options in (["--gcf", "12"], ["--gcf", "520"], ["--strategy", "fast"],
                    ["--pol", "3"], ["--precision", "half"], ["--order", "none"], ["--shrink", "0"],
                    ["--operation", "image"], ["--size", "64", "--gcf", "128"],
                    ["--strategy", "tiled,tiled"], ["--strategy", "scatter"],
                    ["--backend", "cuda", "--strategy", "serial"], ["more"],
                    ["--strategy", "serial", "--atomics", "cas"], ["--atomics", "none"],
                    ["--strategy", "tiled", "--arrays"], ["--center-radius", "9"],
                    ["--sort", "chosen"], ["--extra", "none"],
                    ["--backend", "cuda", "--strategy", "gather", "--divergent"],
                    ["--gcf", "8,16", "--intensity", "map"]):
        result = tessera("bench", "gcf", *options)
        suite.equal(f"bench gcf {' '.join(options)}: status", result.status, 2)
    suite.true("help says its name", "tessera bench gcf" in
               tessera("bench", "gcf", "--help").out)
    suite.finish()


if __name__ == "__main__":
    main()
