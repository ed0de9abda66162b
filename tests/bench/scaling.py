#!/usr/bin/env python3
"""jobs/scaling: a small study from measuring to its report, and what its model finds.

The report's numbers are computed here once more from study.json; the committed example
is checked in the same way. Times themselves are not judged.
"""
import csv
import os
import re
import statistics
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from e2e import BIN, ROOT, Suite, mpi_environment, mpiexec, run  # noqa: E402

SCALING = os.path.join(ROOT, "jobs", "scaling")
sys.path.insert(0, SCALING)
import machine  # noqa: E402
import model  # noqa: E402
import report  # noqa: E402
import summary  # noqa: E402

STAGES = summary.STAGES + ["other"]
TRIAD = {"1": 10.0, "2": 19.0, "4": 28.0, "8": 34.0}
# What metrics.json and system.json must hold (protocol v0.1, sections 5.1 and 6).
METRICS = ["runtime_s", "energy_to_solution_j", "carbon_to_solution_gco2e",
           "peak_memory_gb", "average_power_w", "utilisation", "parallel_efficiency"]
QUALITY = ["dirty_rms_jy_beam", "psnr_db", "ssim", "flux_error", "astrometric_error_beam",
           "dynamic_range"]
SYSTEM = ["cpu", "gpu", "memory_gb", "storage", "interconnect", "operating_system",
          "imaging_code", "power", "carbon_intensity"]


# ---- the model ----

def point(ranks, threads, vis, size, planes=9):
    return {"kind": "strong", "ranks": ranks, "threads": threads,
            "units": ranks * threads, "visibilities": vis, "size": size, "planes": planes,
            "stage_bytes": {"exchange": 30 * vis, "reduce": 8 * size**2, "read": 27 * vis,
                            "write": 8 * size**2}}


def made_up():
    """(true coefficients, points timed by them)"""
    rng = np.random.default_rng(4)
    bandwidth = model.Bandwidth(TRIAD, 8)
    layouts = ((1, 1), (2, 1), (4, 1), (8, 1), (2, 4), (4, 2))
    points = [point(r, t, v, s) for r, t in layouts
              for v, s in ((1e6, 1024), (4e6, 1024), (4e6, 3000), (3e7, 4096))]
    truth = {}
    for stage, names in model.TERMS.items():
        usual = [model.term(n, model.quantities(points[-1], bandwidth)) for n in names]
        truth[stage] = {n: float(rng.uniform(0.5, 1.5)) / max(u, 1e-9)
                        for n, u in zip(names, usual)}
    truth["write"]["A"] = 0.0  # at the border of what is allowed
    for p in points:
        q = model.quantities(p, bandwidth)
        p["stages"] = {s: sum(c * model.term(n, q) for n, c in truth[s].items())
                       for s in STAGES}
        p["seconds"] = sum(p["stages"].values())
    return truth, points


def check_recovery(suite):
    truth, points = made_up()
    fitted = model.Model(points, TRIAD, 8)
    # Exact data, and matrices conditioned up to 1e6 after scaling: 1e-16 x 1e6, squared
    # where a wrong set of free terms has to be told from the right one.
    worst = max(abs(fitted.coefficients[s][n] - c) / max(truth[s].values())
                for s in STAGES for n, c in truth[s].items())
    suite.below("known coefficients come back", worst, 1e-6)
    seen = max(abs(fitted.seconds(p) / p["seconds"] - 1) for p in points)
    suite.below("and the times", seen, 1e-9)
    rest = model.Model([p for p in points if p["units"] < 8], TRIAD, 8)
    left = max(abs(rest.seconds(p) / p["seconds"] - 1) for p in points)
    suite.below("also those of runs left out", left, 1e-6)
    noisy = [dict(p) for p in points]
    rng = np.random.default_rng(5)
    for p in noisy:
        p["stages"] = {s: v * (1 + 0.05 * rng.standard_normal())
                       for s, v in p["stages"].items()}
    rough = model.Model(noisy, TRIAD, 8)
    suite.below("with 5 % noise a stage, times to 5 %",
                max(abs(rough.seconds(p) / p["seconds"] - 1) for p in points), 0.05)


def check_nnls(suite):
    """Karush-Kuhn-Tucker conditions: they tell the minimum of a convex function."""
    rng = np.random.default_rng(3)
    worst, negative = 0.0, 0
    for _ in range(50):
        a = rng.standard_normal((12, 6)) + 0.5
        b = rng.standard_normal(12)
        x = model.nnls(a, b)
        slope = a.T @ (b - a @ x)
        negative += int(x.min() < 0)
        worst = max(worst, slope.max(), np.abs(slope[x > 0]).max(initial=0.0))
    suite.equal("no coefficient is negative", negative, 0)
    suite.below("slopes at the minimum", worst, 1e-10)


def check_bandwidth(suite):
    b = model.Bandwidth(TRIAD, 8)
    suite.below("one core", abs(b(1) - 1), 1e-12)
    suite.below("between measured ones", abs(b(3) - 2.35), 1e-12)
    suite.below("three nodes and a half-empty one", abs(b(28) - (3 * 3.4 + 2.8)), 1e-12)


# ---- a study ----

def tables(text):
    """Rows of all tables of a report below their headings, as lists of words."""
    found, heading = {}, ""
    for line in text.splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("|") and not line.startswith("|---"):
            found.setdefault(heading, []).append([c.strip() for c in
                                                  line.strip("|").split("|")])
    return found


def number(text):
    return float(re.search(r"-?[\d.]+(e[-+]\d+)?", text).group())


def check_table(suite, what, rows, study, kind):
    """Times and efficiencies of a report's table, from the runs."""
    head, body = rows[0], rows[1:]
    at = {name: head.index(name) for name in ("seconds", "efficiency", "cores")}
    cores = study["settings"]["cores"]
    times, works = {}, {}
    for r in study["runs"]:
        if r["kind"] == kind:
            key = (r["ranks"], r["threads"])
            times.setdefault(key, []).append(r["seconds"])
            works[key] = r["ranks"] * r["threads"] if kind == "weak" else 1
    suite.equal(f"{what}: a row a layout", len(body), len(times))
    medians = {k: statistics.median(v) for k, v in times.items()}
    base = medians[(1, 1)]
    wrong = 0
    for row in body:
        key = tuple(int(v) for v in re.findall(r"\d+", row[0])[:2])
        used = min(key[0] * key[1], cores)
        expected = base / medians[key] * works[key] / works[(1, 1)] / used
        wrong += abs(number(row[at["seconds"]]) - medians[key]) > 6e-4
        wrong += abs(number(row[at["efficiency"]]) / 100 - expected) > 6e-3
        wrong += int(row[at["cores"]]) != used
    suite.equal(f"{what}: medians and efficiencies are of the runs", wrong, 0)


def without_model(text):
    """A fit may round otherwise with another linear algebra library."""
    return re.sub(r"## Model\n.*?(?=## )", "", text, flags=re.S)


def check_report(suite, what, folder):
    """report.md beside study.json and metrics.json of a folder."""
    with open(os.path.join(folder, "report.md")) as f:
        text = f.read()
    suite.true(f"{what}: report is that of its data",
               without_model(text) == without_model(report.report(folder)))
    study, found = report.load(folder, "study.json"), tables(text)
    check_table(suite, f"{what}, strong", found["Strong scaling"], study, "strong")
    check_table(suite, f"{what}, weak", found["Weak scaling"], study, "weak")
    metrics = report.load(folder, "metrics.json")
    rows = {(p["scaling"], p["ranks"], p["threads"]): p for p in metrics["points"]}
    suite.true(f"{what}: metrics hold the protocol's fields",
               all(m in p for p in rows.values() for m in METRICS) and
               all(m in metrics["quality"] for m in QUALITY) and
               all(m in metrics["fields"] for m in METRICS + QUALITY))
    own = [r for r in study["runs"] if (r["kind"], r["ranks"], r["threads"]) ==
           ("strong", 1, 1)]
    median = statistics.median(r["seconds"] for r in own)
    suite.below(f"{what}: runtime", abs(rows[("strong", 1, 1)]["runtime_s"] - median),
                1e-9)
    system = report.load(folder, "system.json")
    suite.true(f"{what}: system.json holds its fields", all(s in system for s in SYSTEM))
    for name in re.findall(r"\]\(([^)]+)\)", text):
        suite.true(f"{what}: {name} is there", os.path.exists(os.path.join(folder, name)))
    with open(os.path.join(folder, "study.csv"), newline="") as f:
        lines = list(csv.DictReader(f))
    suite.equal(f"{what}: a line a run", len(lines), len(study["runs"]))
    suite.true(f"{what}: of the same times", all(
        float(a["seconds"]) == b["seconds"] and
        float(a["fft_max_s"]) == b["stages"]["fft"]["max_s"]
        for a, b in zip(lines, study["runs"])))


def study_command(folder, layouts, *more):
    return ["bash", os.path.join(SCALING, "run.sh"), "--out", folder, "--visibilities",
            "2e5", "--size", "512", "--scale", "2asec", "--layouts", layouts, "--cores",
            "2", *more]


def check_study(suite):
    folder = suite.path("study")
    env = mpi_environment() | {"TESS_BIN": BIN, "PYTHON": sys.executable}
    layouts = "1x1,1x2,2x1" if mpiexec() else "1x1,1x2"
    command = study_command(folder, layouts, "--repeat", "2")
    if not suite.ran("run.sh", run(command, 300, env=env)):
        return
    check_report(suite, "study", folder)
    with open(os.path.join(folder, "report.md")) as f:
        text = f.read()
    suite.true("study: says how often layouts ran", "medians of 2 runs" in text)
    study = report.load(folder, "study.json")
    runs = study["runs"]
    # of two cores the slower is at most twice the mean
    suite.true("study: how unlike two cores are",
               len(study["unevenness"]) > 1 and
               all(0 <= u <= 1 for u in study["unevenness"]))
    suite.true("study: says what ranks wait for", "the slowest takes" in text)
    if mpiexec():
        # A run takes 50 ms, and a busy machine may stop one rank for as long between two
        # stages. So stages never tell more than there is, and one run is undisturbed.
        between = [r["communication"] - sum(s["mpi_s"] for s in r["stages"].values()) /
                   r["seconds"] for r in runs if r["ranks"] == 2]
        suite.true("study: time in MPI by stage is part of that in all",
                   min(between) > -.01)
        suite.below("study: and all of it but what is between stages", min(between), .1)
    order = [(r["ranks"], r["threads"], r["set"]) for r in runs]
    suite.true("the second round goes backwards",
               order[len(order) // 2:] == order[:len(order) // 2][::-1])
    quality = report.load(folder, "metrics.json")["quality"]
    # 1e-4 is what --accuracy promises, of the image's norm, which is below its peak.
    suite.true("the image is as good as asked for", quality["psnr_db"] > 80 and
               abs(quality["dirty_rms_difference"]) < 1e-4)
    path = os.path.join(folder, "study.json")
    machine.write_json(path, study | {"runs": runs[:-1]})
    suite.ran("a study that was interrupted", run(
        [sys.executable, os.path.join(SCALING, "measure.py"), *command[2:]], 300, env=env))
    more = report.load(folder, "study.json")["runs"]
    suite.true("goes on with the run that is missing", more[:-1] == runs[:-1] and
               more[-1]["repeat"] == runs[-1]["repeat"] and len(more) == len(runs))
    suite.ran("a study without time for more", run(
        [sys.executable, os.path.join(SCALING, "measure.py"), *command[2:-1], "3",
         "--within", "0"], 300, env=env))
    suite.equal("makes no third round", len(report.load(folder, "study.json")["runs"]),
                len(runs))
    result = run(study_command(folder, layouts, "--accuracy", "1e-3"), 300, env=env)
    suite.true("other options are refused", result.status != 0 and
               "other options" in result.err)


def check_exchange(suite, folder):
    """Its speed-up, from the fewest ranks that exchange, beside the triad's from there."""
    study = report.load(folder, "study.json")
    took = {(r["ranks"], r["threads"]): r["stages"]["exchange"]["mean_s"]
            for r in study["runs"] if r["kind"] == "strong"}
    gain = took[(2, 1)] / took[(32, 1)]
    of_triad = gain * study["triad"]["2"] / study["triad"]["32"]
    with open(os.path.join(folder, "report.md")) as f:
        text = f.read()
    suite.true("example: speed-up of the exchange", f"| exchange | 2 × 1 | {gain:.2f} | "
               f"{100 * gain / 16:.0f} % | {100 * of_triad:.0f} % |" in text)
    suite.true("example: says that layouts ran once", "Times are of one run" in text)


def check_example(suite):
    folder = os.path.join(SCALING, "example")
    check_report(suite, "example", folder)
    check_exchange(suite, folder)
    files = [f.path for f in os.scandir(folder) if f.is_file()]  # gcf/ is another study's
    size = sum(map(os.path.getsize, files))
    suite.below("example: bytes", size, 500e3)
    kept = ""
    for name in files:
        with open(name) as f:
            kept += f.read()
    suite.true("example: no folders of the machine it was made on",
               not re.search(r"/(root|home|tmp|work)/", kept))


def main():
    suite = Suite("scaling")
    check_nnls(suite)
    check_bandwidth(suite)
    check_recovery(suite)
    check_study(suite)
    check_example(suite)
    suite.finish()


if __name__ == "__main__":
    main()
