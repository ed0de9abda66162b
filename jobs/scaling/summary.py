"""Medians, speed-ups and efficiencies of a study, and metrics.json.

Efficiency counts what works, not ranks: `units` is the cores in use (ranks x threads, at
most the cores there are), or the GPUs with backend cuda. With the time T, the share s of
the largest set that is imaged and the units n, of this layout and of the one with the
fewest units,

    speed-up = (s/T) / (s0/T0) n0        efficiency = speed-up / n

which is T0 n0 / (T n) in strong scaling and T0/T in weak scaling on n times the cores.
"""
import re
import statistics

# Stages as the program's profile names them; `other` is what lies between them: waiting
# for slower ranks, setting up, ending.
STAGES = ["read", "weight", "plan", "partition", "exchange", "sort", "grid", "reduce",
          "fft", "correct", "write"]

FIELDS = {
    "runtime_s": "seconds, Tc: from the program's start after MPI_Init to its end, "
                 "images written; median of the runs",
    "wall_s": "seconds with the launcher and MPI_Init; median",
    "throughput_vis_per_s": "visibilities / runtime_s (a visibility: a row x a channel)",
    "peak_memory_gb": "GB, largest resident size of each rank, summed over ranks",
    "peak_memory_rank_gb": "GB, of the largest rank",
    "energy_to_solution_j": "joules, Ec: processor packages and GPUs; null: unreadable",
    "average_power_w": "watts, Ec / Tc",
    "carbon_to_solution_gco2e": "g CO2e, Ec x the intensity given by --carbon",
    "visibilities_per_joule": "visibilities / Ec",
    "utilisation": "CPU seconds of all ranks / (wall_s x units), at most 1; waiting in "
                   "MPI counts as busy, see communication_fraction; null on several nodes",
    "communication_fraction": "share of the ranks' time inside MPI, waiting included",
    "parallel_efficiency": "see speed-up and efficiency in jobs/scaling/summary.py",
    "dirty_rms_jy_beam": "Jy/beam, rms about the mean of the dirty image, pixels nearer "
                         "than three beams to a source of the model left out",
    "dirty_rms_difference": "(it - that of the reference image) / that",
    "psnr_db": "dB, peak of the reference^2 / mean square difference from it",
    "ssim": "mean structural similarity with the reference (Gaussian window, 1.5 pixels)",
    "flux_error": "median relative error of the fluxes of the simulation's sources",
    "astrometric_error_beam": "median offset of these sources, in FWHM of the beam",
    "dynamic_range": "peak of the dirty image / dirty_rms_jy_beam",
}


def units(run, settings):
    """Cores in use, or GPUs."""
    if settings["backend"] == "cuda":
        return min(run["ranks"], max(1, settings["gpus"]))
    return min(run["ranks"] * run["threads"], settings["cores"])


def count_text(count):
    """Such as 29 million."""
    for size, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if count >= 0.95 * size:
            return f"{count / size:.3g} {name}"
    return f"{count:.3g}"


def planes_of(plan):
    """w-planes of the plan that a profile tells in words."""
    found = re.search(r"(\d+) w-planes", plan)
    return int(found.group(1)) if found else 1


def median_of(runs, pick):
    known = [pick(r) for r in runs]
    return None if None in known else statistics.median(known)


def one_point(runs, settings, share):
    """Medians over the runs of one layout; the times of stages are means over ranks, and
    add up to the run's."""
    first = runs[0]
    seconds = sorted(r["seconds"] for r in runs)
    point = {k: first[k] for k in ("kind", "set", "ranks", "threads", "size")}
    stages = {s: statistics.median(r["stages"][s]["mean_s"] for r in runs)
              for s in STAGES}
    time_s = statistics.median(seconds)
    stages["other"] = max(0.0, time_s - sum(stages.values()))
    return point | {
        "share": share, "units": units(first, settings), "planes": first["planes"],
        "runs": len(runs), "visibilities": first["visibilities"], "seconds": time_s,
        "seconds_min": seconds[0], "seconds_max": seconds[-1],
        "wall_s": median_of(runs, lambda r: r["wall_s"]),
        "cpu_s": median_of(runs, lambda r: r["cpu_s"]),
        "communication": statistics.median(r["communication"] for r in runs),
        "peak_gb": max(r["peak_memory_sum_bytes"] for r in runs) / 1e9,
        "peak_rank_gb": max(r["peak_memory_bytes"] for r in runs) / 1e9,
        "joules": median_of(runs, joules_of), "stages": stages,
        "mpi": {s: median_of(runs, lambda r, s=s: r["stages"][s].get("mpi_s"))
                for s in STAGES},
        "imbalance": median_of(runs, lambda r: r.get("imbalance")),
        "stage_bytes": {s: first["stages"][s]["bytes"] for s in STAGES}}


def joules_of(run):
    known = [v for v in (run["cpu_joules"], run["gpu_joules"]) if v is not None]
    return sum(known) if known else None


def points(study, kind):
    """Medians of the layouts of strong or weak scaling in order of units, ranks."""
    shares = {(s["kind"], s["name"]): s["share"] for s in study["sets"]}
    groups = {}
    for run in study["runs"]:
        if run["kind"] == kind:
            groups.setdefault((run["ranks"], run["threads"]), []).append(run)
    found = [one_point(runs, study["settings"], shares[(kind, runs[0]["set"])])
             for runs in groups.values()]
    found.sort(key=lambda p: (p["units"], p["ranks"], p["threads"]))
    for p in found:
        base = found[0]
        p["speedup"] = (p["share"] / p["seconds"] / (base["share"] / base["seconds"]) *
                        base["units"])
        p["efficiency"] = p["speedup"] / p["units"]
    return found


def metrics_of(p, carbon):
    energy = p["joules"]
    busy = None
    if p["cpu_s"] is not None:
        busy = min(1.0, p["cpu_s"] / (p["wall_s"] * p["units"]))
    return {
        "scaling": p["kind"], "ranks": p["ranks"], "threads": p["threads"],
        "units": p["units"], "runs": p["runs"], "visibilities": p["visibilities"],
        "image_size": p["size"], "runtime_s": p["seconds"],
        "runtime_min_s": p["seconds_min"], "runtime_max_s": p["seconds_max"],
        "wall_s": p["wall_s"], "throughput_vis_per_s": p["visibilities"] / p["seconds"],
        "peak_memory_gb": p["peak_gb"], "peak_memory_rank_gb": p["peak_rank_gb"],
        "energy_to_solution_j": energy,
        "average_power_w": None if energy is None else energy / p["seconds"],
        "carbon_to_solution_gco2e":
            None if energy is None or carbon is None else energy / 3.6e6 * carbon,
        "visibilities_per_joule": p["visibilities"] / energy if energy else None,
        "utilisation": busy, "communication_fraction": p["communication"],
        "parallel_efficiency": p["efficiency"]}


def metrics(study, carbon):
    """The content of metrics.json."""
    rows = [metrics_of(p, carbon) for kind in ("strong", "weak")
            for p in points(study, kind)]
    return {"protocol": "fields of the astroCAMP community benchmark protocol v0.1, "
                        "sections 3.1 and 6; the data are not one of its tasks",
            "fields": FIELDS, "points": rows, "quality": study.get("quality")}
