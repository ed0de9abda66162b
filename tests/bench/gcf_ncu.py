#!/usr/bin/env python3
"""What limits the strategies of tessera bench gcf on a GPU: Nsight Compute around it.

    gcf_ncu.py [--tessera PATH] [--ncu PATH] [--kernels N] BENCH-GCF-OPTIONS...
    gcf_ncu.py ... --study FOLDER [--seconds S] BENCH-GCF-OPTIONS...

Runs the benchmark, then each of its lines once more under ncu, and prints the lines with
more columns, of the kernel that takes longest: its name and time, hit rates of both
caches, registers, warps, what each unit reached of its peak, and the busiest of them
('limiter', 'latency' where none reaches 60 %: Nsight Compute's own bound). With --study
it does so for the lines of all tables (NAME.csv) that `tessera bench gcf --study` has
left in FOLDER, from all over each: they get the columns, and report.md a section; after
S seconds those left stay without. Exits with 4 where ncu is missing or may not read the counters.
"""
import argparse
import csv
import io
import os
import re
import shutil
import subprocess
import sys
import time

BUSY = 60.0  # percent of peak from which a unit counts as the limit

UNITS = {
    "fma": "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    "fp64": "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active",
    "tensor": "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
    "issue": "sm__inst_issued.avg.pct_of_peak_sustained_active",
    "l1": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "l2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
}
OTHERS = {
    "us": "gpu__time_duration.sum",
    "l1_hit_pct": "l1tex__t_sector_hit_rate.pct",
    "l2_hit_pct": "lts__t_sector_hit_rate.pct",
    "registers": "launch__registers_per_thread",
    "warps_pct": "sm__warps_active.avg.pct_of_peak_sustained_active",
}
TO_US = {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3, "msecond": 1e3,
         "s": 1e6, "second": 1e6}


def leave(why):
    print(f"gcf_ncu.py: {why}", file=sys.stderr)
    sys.exit(4)


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return float("nan")


def kernels_of(text):
    """Kernels in ncu's CSV (--page raw): [{metric: value}], 'name' among them."""
    lines = text.splitlines()
    start = next((k for k, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        return []
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[start:]))))
    if not rows:
        return []
    units, found = rows[0], []
    for row in rows[1:]:
        one = {name: number(row.get(metric) or "")
               for name, metric in {**UNITS, **OTHERS}.items()}
        one["us"] *= TO_US.get(units.get(OTHERS["us"], "us"), 1)
        name = re.search(r"(\w+)[<(]", row["Kernel Name"])
        one["name"] = name.group(1) if name else row["Kernel Name"]
        found.append(one)
    return found


def limiter(kernel):
    """The busiest unit, or 'latency'."""
    unit = max(UNITS, key=lambda name: kernel[name] if kernel[name] == kernel[name] else -1)
    return unit if kernel[unit] >= BUSY else "latency"


def run(command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


SWITCHES = {"fast-math": ["--fast-math"], "compare-and-swap": ["--atomics", "cas"]}
COLUMNS = ["kernel", *OTHERS, *UNITS, "limiter"]


def options_of(row):
    """What makes a line of the benchmark alone, in place of lists before it."""
    given = [word for name in ("planes", "oversampling") if row.get(name)
             for word in ("--" + name, row[name])]
    return [*given, *SWITCHES.get(row.get("variant"), []),
            "--operation", row["operation"], "--strategy", row["strategy"], "--order",
            row["order"], "--vis", row["visibilities"], "--size", row["size"], "--gcf",
            row["gcf"], "--pol", row["polarisations"], "--precision", row["precision"],
            "--repeat", "1", "--energy", "0"]


def counters(arguments, bench, row):
    """What ncu has to say of a line, by column: of its longest kernel."""
    result = run([arguments.ncu, "--csv", "--page", "raw", "--target-processes", "all",
                  "--clock-control", "none", "--launch-count", str(arguments.kernels),
                  "--metrics",
                  ",".join([*UNITS.values(), *OTHERS.values()]), *bench, *options_of(row)])
    kernels = kernels_of(result.stdout)
    if not kernels:
        why = [line for line in (result.stdout + result.stderr).splitlines()
               if "ERR" in line or "error" in line.lower()]
        leave(f"{row['strategy']}: no counters: " +
              (why[0] if why else "ncu printed no kernels"))
    kernel = max(kernels, key=lambda one: one["us"])
    return {"kernel": kernel["name"], "limiter": limiter(kernel),
            **{name: f"{kernel[name]:.4g}" for name in [*OTHERS, *UNITS]}}


def rewrite(path, rows):
    with open(path + ".new", "w", newline="", encoding="utf8") as file:
        out = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    os.replace(path + ".new", path)


def section(found):
    """Markdown of what limits the lines (table, row)."""
    lines = ["", "## What limits them", "",
             "Of the kernel that takes longest, by Nsight Compute: hit rates of both caches, "
             "the busiest", "unit and what it reached of its peak.", "",
             "| table | operation | strategy | order | GCF | pols | precision | kernel | L1 | "
             "L2 | limiter |", "|---" * 11 + "|"]
    for name, row in found:
        percent = f" ({row[row['limiter']]} %)" if row["limiter"] in UNITS else ""
        what = " ".join(filter(None, (row["operation"], row["variant"])))
        cells = [name, what, row["strategy"], row["order"], row["gcf"], row["polarisations"],
                 row["precision"], row["kernel"], row["l1_hit_pct"] + " %",
                 row["l2_hit_pct"] + " %", row["limiter"] + percent]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def spread(number):
    """Numbers in this order are spread evenly however few of them are reached."""
    return int(f"{number:012b}"[::-1], 2)


def look_at_study(arguments, bench):
    """Columns for the tables of a folder, and the section of its report: lines from all
    over each table, since time may end before all have been looked at."""
    end = time.monotonic() + arguments.seconds
    tables = {}
    for name in sorted(os.listdir(arguments.study)):
        if name.endswith(".csv"):
            with open(os.path.join(arguments.study, name), encoding="utf8") as file:
                tables[name[:-len(".csv")]] = list(csv.DictReader(file))
    todo = [(spread(k), name, row) for name, rows in tables.items()
            for k, row in enumerate(rows) if row["backend"] == "cuda"]
    seen = {}
    for order, name, row in sorted(todo, key=lambda one: one[:2]):
        if time.monotonic() > end:
            break
        formula = ["--formula"] if name == "computed" else []
        seen[name, order] = counters(arguments, bench + formula, row)
    found = []
    for name, rows in tables.items():
        for k, row in enumerate(rows):
            of = seen.get((name, spread(k)))
            row.update(of or dict.fromkeys(COLUMNS, ""))
            if of:
                found.append((name, row))
        if rows:
            rewrite(os.path.join(arguments.study, name + ".csv"), rows)
    if found:
        with open(os.path.join(arguments.study, "report.md"), "a", encoding="utf8") as file:
            file.write(section(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", default="tessera")
    parser.add_argument("--ncu", default="ncu")
    parser.add_argument("--kernels", type=int, default=40,
                        help="launches to look at, of each strategy (default 40)")
    parser.add_argument("--study", metavar="FOLDER", help="tables that are there already")
    parser.add_argument("--seconds", type=float, default=600,
                        help="for how long, about, to look at a study (default 600)")
    arguments, options = parser.parse_known_args()
    if not shutil.which(arguments.ncu):
        leave(f"{arguments.ncu}: not found; Nsight Compute comes with CUDA")
    bench = [arguments.tessera, "bench", "gcf", "--backend", "cuda", *options]
    if arguments.study:
        look_at_study(arguments, bench)
        return
    timed = run(bench)
    if timed.returncode != 0:
        leave(timed.stderr.strip() or "tessera bench gcf failed")
    out = csv.writer(sys.stdout)
    for k, row in enumerate(csv.DictReader(io.StringIO(timed.stdout))):
        if k == 0:
            out.writerow([*row, *COLUMNS])
        of = counters(arguments, bench, row)
        out.writerow([*row.values(), *(of[name] for name in COLUMNS)])
        sys.stdout.flush()


if __name__ == "__main__":
    main()
