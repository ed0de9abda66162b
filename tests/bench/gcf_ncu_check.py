#!/usr/bin/env python3
"""gcf_ncu.py on what an ncu that is made up prints: the longest kernel of a strategy, what
limits it, and what is said where there are no counters.
"""
import csv
import io
import os
import re
import stat
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from e2e import Suite  # noqa: E402
from gcf_ncu import OTHERS, UNITS  # noqa: E402

METRICS = [*OTHERS.values(), *UNITS.values()]


def made_up_ncu(path, kernels):
    """An ncu that prints these kernels: (name, {metric: value}), or its refusal."""
    rows = io.StringIO()
    out = csv.writer(rows, quoting=csv.QUOTE_ALL)
    out.writerow(["ID", "Kernel Name", *METRICS])
    out.writerow(["", "", *("ns" if metric == OTHERS["us"] else "%" for metric in METRICS)])
    for k, (name, values) in enumerate(kernels):
        out.writerow([k, name, *(values.get(metric, "1") for metric in METRICS)])
    text = rows.getvalue() if kernels else "==ERROR== ERR_NVGPUCTRPERM - no permission\n"
    with open(path, "w", encoding="utf8") as file:
        file.write("#!/bin/sh\necho \"$@\" >> " + path + ".asked\n"
                   "echo '==PROF== Connected'\ncat << 'END'\n" + text + "END\n")
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def made_up_bench(path):
    """A tessera that prints two lines, and keeps what it was asked."""
    with open(path, "w", encoding="utf8") as file:
        file.write("#!/bin/sh\necho \"$@\" >> " + path + ".asked\ncat << 'END'\n"
                   "operation,strategy,order,visibilities,size,gcf,polarisations,precision\n"
                   "grid,tiled,random,500,256,64,1,single\n"
                   "grid,gather,random,500,256,64,1,single\nEND\n")
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


def made_up_study(folder):
    """Two tables of two lines, and a report."""
    os.makedirs(folder)
    columns = ("operation,backend,strategy,variant,order,visibilities,size,gcf,"
               "polarisations,precision,planes\n")
    with open(os.path.join(folder, "computed.csv"), "w", encoding="utf8") as file:
        file.write(columns +
                   "degrid,cuda,computed,fast-math,random,500,256,32,1,single,3\n"
                   "degrid,cpu,tiled,,random,500,256,32,1,single,3\n")
    with open(os.path.join(folder, "atomics.csv"), "w", encoding="utf8") as file:
        file.write(columns + "grid,cuda,warp,native,random,500,256,8,1,single,3\n"
                             "grid,cuda,warp,native,random,500,256,16,1,single,3\n")
    with open(os.path.join(folder, "report.md"), "w", encoding="utf8") as file:
        file.write("# A study\n")


def check_study(suite, *options):
    """A made-up study, an ncu that keeps what it was asked."""
    folder = suite.path("study")
    made_up_study(folder)
    result = run(*options, "--study", folder)
    suite.equal("study: status", (result.returncode, result.stderr), (0, ""))
    with open(os.path.join(folder, "computed.csv"), encoding="utf8") as file:
        rows = list(csv.DictReader(file))
    suite.equal("study: limiters", [row["limiter"] for row in rows], ["l1", ""])
    suite.equal("study: hits", [row["l2_hit_pct"] for row in rows], ["93.25", ""])
    with open(os.path.join(folder, "report.md"), encoding="utf8") as file:
        text = file.read()
    suite.true("study: report", text.startswith("# A study\n") and
               "| tile_kernel | 1 % | 93.25 % | l1 (81.5 %) |" in text)
    with open(suite.path("ncu.asked"), encoding="utf8") as file:
        asked = file.read()
    suite.true("study: the line's options", all(
        f" {word} " in asked + " " for word in
        ("--planes 3", "--formula", "--fast-math", "--strategy computed")))
    suite.equal("study: first a line of every table",
                [re.findall(r"--gcf (\d+)", line)[-1] for line in asked.splitlines()][-3:],
                ["8", "32", "16"])
    run(*options, "--study", folder, "--seconds", "0")
    with open(os.path.join(folder, "computed.csv"), encoding="utf8") as file:
        suite.equal("study: no time", [row["limiter"] for row in csv.DictReader(file)],
                    ["", ""])


def check_script(suite, ncu, bench):
    """jobs/scaling/gcf.sh hands its other options on, and looks at what came of them."""
    folder = suite.path("script")
    made_up_study(folder)
    script = os.path.join(HERE, "..", "..", "jobs", "scaling", "gcf.sh")
    result = subprocess.run(
        ["bash", script, "--ncu", "60", "--out", folder, "--within", "2"],
        capture_output=True, text=True, check=False,
        env={**os.environ, "TESS_BIN": bench, "TESS_PYTHON": sys.executable,
             "PATH": os.path.dirname(ncu) + ":" + os.environ["PATH"]})
    suite.equal("gcf.sh: status", (result.returncode, result.stderr), (0, ""))
    with open(bench + ".asked", encoding="utf8") as file:
        suite.equal("gcf.sh: what was asked", file.read().split("\n")[-2],
                    f"bench gcf --study=all --out {folder} --within 2")
    with open(os.path.join(folder, "computed.csv"), encoding="utf8") as file:
        suite.equal("gcf.sh: limiters", [row["limiter"] for row in csv.DictReader(file)],
                    ["l1", ""])


def run(*options):
    return subprocess.run([sys.executable, os.path.join(HERE, "gcf_ncu.py"), *options],
                          capture_output=True, text=True, check=False)


def main():
    suite = Suite("gcf_ncu")
    ncu, bench = suite.path("ncu"), suite.path("tessera")
    options = ("--ncu", ncu, "--tessera", bench, "--gcf", "64")
    made_up_bench(bench)
    made_up_ncu(ncu, [("void place_kernel(place_args)", {OTHERS["us"]: "5,000"}),
                      ("void <unnamed>::tile_kernel<float, 1>(gcf_cuda_job)",
                       {OTHERS["us"]: "2,500,000", UNITS["l1"]: "81.5", UNITS["fma"]: "55",
                        OTHERS["l2_hit_pct"]: "93.25"})])
    result = run(*options)
    suite.equal("status", result.returncode, 0)
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    suite.equal("the benchmark's lines", [(row["strategy"], row["gcf"]) for row in rows],
                [("tiled", "64"), ("gather", "64")])
    suite.equal("the longest kernel", rows[0]["kernel"], "tile_kernel")
    suite.equal("its microseconds", float(rows[0]["us"]), 2500.0)
    suite.equal("hits in L2", float(rows[0]["l2_hit_pct"]), 93.25)
    suite.equal("limiter", rows[0]["limiter"], "l1")
    with open(bench + ".asked", encoding="utf8") as file:
        suite.equal("what was asked of the benchmark", file.read().split("\n")[0],
                    "bench gcf --backend cuda --gcf 64")
    check_study(suite, *options)
    check_script(suite, ncu, bench)
    made_up_ncu(ncu, [("scatter_kernel", {OTHERS["us"]: "7", UNITS["l2"]: "40"})])
    rows = list(csv.DictReader(io.StringIO(run(*options).stdout)))
    suite.equal("nothing is busy", rows[0]["limiter"], "latency")
    made_up_ncu(ncu, [])
    refused = run(*options)
    suite.equal("no permission: status", refused.returncode, 4)
    suite.true("no permission: said", "ERR_NVGPUCTRPERM" in refused.stderr)
    suite.equal("no ncu: status", run("--ncu", suite.path("none")).returncode, 4)
    suite.finish()


if __name__ == "__main__":
    main()
