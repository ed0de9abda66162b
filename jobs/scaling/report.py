#!/usr/bin/env python3
"""report.md of a study made by run.sh, with its pictures when plot.py has made them.

usage: report.py FOLDER

Reads FOLDER/study.json, system.json and metrics.json.
"""
import json
import os
import statistics
import sys

import model
import summary

PICTURES = {"strong": "Strong scaling: time, speed-up and efficiency",
            "weak": "Weak scaling: time and efficiency",
            "stages": "Seconds in each stage",
            "model": "The model and what it says of more ranks",
            "communication": "Share of communication; stages beside the triad"}
RANKS = (1, 10, 100, 1000, 10000)
# Stages that move data, beside the triad.
COMPARED = ("read", "exchange", "sort", "grid", "reduce", "fft", "correct")


def load(folder, name):
    with open(os.path.join(folder, name)) as f:
        return json.load(f)


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(str(v) for v in row) + " |" for row in rows] + [""]


def picture(folder, name):
    for form in ("svg", "png"):
        if os.path.exists(os.path.join(folder, f"{name}.{form}")):
            return [f"![{PICTURES[name]}]({name}.{form})", ""]
    return []


def percent(value, digits=0):
    return "" if value is None else f"{100 * value:.{digits}f} %"


def short(value, digits=3):
    return "not known" if value is None else f"{value:.{digits}g}"


def layout(p):
    return f"{p['ranks']} × {p['threads']}"


def shared(p):
    return " (shared)" if p["ranks"] * p["threads"] > p["units"] else ""


def repeats(study):
    """What a time is of, by how often each layout ran."""
    counts = [p["runs"] for kind in ("strong", "weak")
              for p in summary.points(study, kind)]
    least, most = min(counts), max(counts)
    if most == 1:
        return "Times are of one run of each layout"
    often = f"{most}" if least == most else f"{least} to {most}"
    return f"Times are medians of {often} runs of each layout, in alternating order"


def head(study, system):
    cpu, program = system["cpu"], system["imaging_code"]
    sets = [s for s in study["sets"] if s["simulate"] is not None]
    where = (f"{cpu['cores_usable']} cores of {cpu['model']}"
             f"{' in a virtual machine' if cpu['virtual_machine'] else ''}, "
             f"{short(system['memory_gb'])} GB, {system['operating_system']['name']}")
    gpus = sorted({g["model"] for g in system["gpu"]})
    if study["settings"]["backend"] == "cuda":
        where += f"; {len(system['gpu'])} × {', '.join(gpus)}"
    lines = ["# How `tessera image` scales", "",
             f"{where}; tessera {program['version']}, {program['launcher']}; "
             f"{study['runs'][0]['started'][:10]}. {repeats(study)}, from the program's "
             "start after MPI_Init to its end with images written; *cores* are those in "
             "use, *(shared)* marks more ranks × threads than cores.", "", "```sh",
             study["settings"]["command"]]
    if sets:
        lines += ["# strong set: tessera simulate " + " ".join(sets[0]["simulate"])]
    return lines + [f"# images: --accuracy {study['settings']['accuracy']} --backend "
                    f"{study['settings']['backend']} {study['settings']['extra']}",
                    f"# started by: {study['launch'] or 'itself, without a launcher'}",
                    "```", ""]


def disturbance(study):
    shares = sorted(r["others_share"] for r in study["runs"])
    return [f"Other processes used {percent(shares[len(shares) // 2], 1)} of this node's "
            f"cores during the median run, {percent(shares[-1], 1)} during the most "
            "disturbed one.", ""]


def scaling(points, word):
    rows = [(layout(p) + shared(p), p["units"], f"{p['visibilities'] / 1e6:.3g}",
             f"{p['size']}²", f"{p['seconds']:.3f}",
             f"{p['seconds_min']:.3f} – {p['seconds_max']:.3f} ({p['runs']})",
             f"{p['wall_s']:.3f}", f"{p['speedup']:.2f}", percent(p["efficiency"]),
             percent(p["communication"], 1), f"{p['peak_rank_gb']:.2f}",
             f"{p['peak_gb']:.2f}") for p in points]
    return table(["ranks × threads", word, "Mvis", "pixels", "seconds", "range (runs)",
                  "with launcher", "speed-up", "efficiency", "in MPI", "GB a rank",
                  "GB in all"], rows)


def hybrids(points):
    """How far apart layouts on all cores are."""
    full = [p for p in points if p["units"] == points[-1]["units"] and not shared(p)]
    if len(full) < 2:
        return []
    best = min(full, key=lambda p: p["seconds"])
    rest = ", ".join(f"{layout(p)}: {percent(p['seconds'] / best['seconds'] - 1)} slower"
                     for p in full if p is not best)
    return [f"Of the layouts on all {best['units']} cores {layout(best)} is the fastest "
            f"({rest}).", ""]


def memory(points):
    one = [p for p in points if p["ranks"] == 1]
    rest = [p for p in points if p["ranks"] > 1 and p["threads"] == 1]
    if not one or not rest:
        return []
    whole = max(p["peak_rank_gb"] for p in one)
    words = ", ".join(f"{p['peak_rank_gb'] / whole * p['ranks']:.2f}/{p['ranks']} on "
                      f"{p['ranks']}" for p in rest)
    beyond = [p["peak_rank_gb"] - whole / p["ranks"] for p in rest]
    excess = ", ".join(f"{b:.2f} on {p['ranks']}" for b, p in zip(beyond, rest))
    return [f"Memory of the largest rank, of the {whole:.2f} GB of a single one: {words} "
            f"ranks. That is at most its 1/P and a constant of {max(beyond):.2f} GB: "
            f"{excess}.", ""]


def speed_up(name, points, last, triad):
    """(first layout, speed-up, of the cores, of the triad's) of a stage on the last
    layout, over the first one, or the first of several ranks, as it takes more than 1 % of
    its time; None: of neither."""
    several = [p for p in points if p["ranks"] > 1]
    first = next((p for p in points[:1] + several[:1]
                  if p["stages"][name] > 0.01 * p["seconds"]), None)
    if first is None or first["units"] >= last["units"] or not last["stages"][name]:
        return None
    ratio = first["stages"][name] / last["stages"][name]
    gain = triad.get(first["units"]) and triad[last["units"]] / triad[first["units"]]
    return (layout(first), ratio, ratio * first["units"] / last["units"],
            ratio / gain if gain else None)


def on_all_cores(own):
    """The layout of most ranks on the most cores, which has all stages."""
    return max((p for p in own if p["units"] == own[-1]["units"]),
               key=lambda p: p["ranks"])


def waiting(study, points):
    """What of the time in MPI falls to which stage, and how long ranks wait for each other
    because cores are unlike."""
    last = on_all_cores([p for p in points if not shared(p)] or points)
    mpi = {s: t for s, t in last["mpi"].items() if t is not None}
    lines = []
    if last["ranks"] > 1 and mpi:
        lines += [f"In MPI, waiting for other ranks included, {layout(last)} is "
                  f"{percent(last['communication'], 1)} of the time; means over ranks:", ""]
        lines += table(["stage", "seconds", "in MPI"],
                       [(s, f"{last['stages'][s]:.3f}", f"{t:.3f}") for s, t in mpi.items()
                        if t >= 0.005 * last["seconds"]])
    rounds = study.get("unevenness")
    if rounds and last["imbalance"] is not None:
        usual = statistics.median(rounds)
        lines += [f"Where {last['units']} cores grid the same at once, each on its own and "
                  f"without MPI, the slowest takes {percent(usual)} longer than the mean "
                  f"(rounds: {', '.join(percent(r) for r in sorted(rounds))}). Ranks that "
                  f"meet after every stage would wait {percent(usual / (1 + usual))} of "
                  "their time for that alone. The slowest rank's gridding was "
                  f"{percent(last['imbalance'])} above the mean, by processor time.", ""]
    return lines


def bandwidth(study, points):
    """Stages' speed-ups on all cores as shares of the triad's."""
    triad = {int(n): g for n, g in study["triad"].items()}
    if study["settings"]["backend"] == "cuda":
        return []
    own = [p for p in points if not shared(p)]
    last = on_all_cores(own)
    per_node = min(last["units"], max(triad, default=1))
    if 1 not in triad or per_node not in triad or last is own[0]:
        return []
    gain = triad[per_node] / triad[1]
    per_units = triad | {last["units"]: triad[per_node]}
    found = {name: speed_up(name, own, last, per_units) for name in COMPARED}
    rows = [(name, f[0], f"{f[1]:.2f}", percent(f[2]), percent(f[3]))
            for name, f in found.items() if f]
    return [f"A triad moves {triad[1]:.1f} GB/s on one core and {triad[per_node]:.1f} "
            f"GB/s on {per_node}: {gain:.2f} times as much. Stages of {layout(last)}, over "
            "those of the fewest cores that have them (two ranks exchange half of the "
            "data, P ranks 1 − 1/P), and as shares of what cores and triad gain from there:",
            ""] + table(["stage", "over", "speed-up", "of the cores", "of the triad's"],
                        rows)


def coefficients(fitted):
    rows = []
    for stage, terms in fitted.coefficients.items():
        words = " + ".join(f"{c:.3g}" + ("" if n == "1" else f" · {n}")
                           for n, c in terms.items() if c > 0)
        if words:
            rows.append((stage, words))
    return table(["stage", "seconds"], rows)


def left_out(check):
    if check is None:
        return ["Too few layouts to leave the largest out.", ""]
    rows = [(p["scaling"], layout(p), f"{p['measured_s']:.3f}", f"{p['predicted_s']:.3f}",
             f"{100 * p['error']:+.1f} %") for p in check["points"]]
    return [f"Fitted to the {check['fitted_to']} layouts of fewer than "
            f"{check['left_out']} ranks × threads, the model says of those:", ""] + \
        table(["scaling", "ranks × threads", "measured, s", "predicted, s", "error"],
              rows)


def assumptions(fitted, study):
    cores = "GPUs" if study["settings"]["backend"] == "cuda" else "cores"
    return [
        "Assumed, beyond what was measured:", "",
        f"- nodes like this one, of {fitted.node_cores} {cores}, of the same memory "
        "bandwidth;",
        f"- a network of {model.NETWORK_GB_PER_S:g} GB/s a node and direction, and "
        f"{1e6 * model.MESSAGE_S:g} µs for each message to each other rank in each round "
        "of exchange and reduction;",
        f"- a file system of {model.FILES_GB_PER_S:g} GB/s for all nodes together, up to "
        "which each node reads and writes as here;",
        f"- {fitted.bytes['V']:.3g} bytes sent for a visibility and "
        f"{fitted.bytes['G']:.3g} for an image's pixel and plane, the most measured here, "
        "all of them to other nodes but 1/nodes;",
        "- bricks and planes cut as evenly over many ranks as here, no rank slower than "
        "others, and terms in log2 P going on as between the few ranks measured;",
        "- more data are a larger field: visibilities and pixels in proportion, planes as "
        "here.", ""]


def extrapolation(study, fitted):
    base = summary.points(study, "strong")[0]
    shares = (1, 100, 10000)
    imagined = [model.imagined(base, 1, s) for s in shares]
    header = ["ranks"] + [f"{summary.count_text(p['visibilities'])} visibilities, "
                          f"{p['size']:.0f}²" for p in imagined]
    rows = [[r] + [short(fitted.seconds(model.imagined(base, r, s))) for s in shares]
            for r in RANKS]
    return table(header, rows)


def quality(found):
    if not found:
        return []
    rows = [(name, short(found[name], 4), summary.FIELDS[name]) for name in
            ("dirty_rms_jy_beam", "dirty_rms_difference", "psnr_db", "ssim", "flux_error",
             "astrometric_error_beam", "dynamic_range")]
    return ["## Quality of the image", "",
            f"The strong set's image, beside that of {found['reference']}.", ""] + \
        table(["field of metrics.json", "value", "meaning"], rows)


def report(folder):
    study, system = load(folder, "study.json"), load(folder, "system.json")
    metrics = load(folder, "metrics.json")
    strong, weak = summary.points(study, "strong"), summary.points(study, "weak")
    word = "GPUs" if study["settings"]["backend"] == "cuda" else "cores"
    fitted = model.of_study(study)
    lines = head(study, system) + disturbance(study)
    lines += ["## Strong scaling", ""] + picture(folder, "strong") + scaling(strong, word)
    lines += hybrids(strong) + memory(strong)
    if weak:
        lines += ["## Weak scaling", "", "Visibilities and pixels in proportion to "
                  "ranks × threads, pixels of one size.", ""]
        lines += picture(folder, "weak") + scaling(weak, word)
    lines += ["## Stages", "", "*other* is what lies between the stages: waiting for "
              "other ranks, setting up, ending.", ""] + picture(folder, "stages")
    lines += ["## Communication and memory bandwidth", ""]
    lines += picture(folder, "communication") + waiting(study, strong)
    lines += bandwidth(study, strong)
    lines += ["## Model", "", "Seconds of the stages as sums of terms of the data flow "
              "(`jobs/scaling/model.py`): V visibilities, A pixels, G = A × planes, F = "
              "A log2(A) × planes, P ranks, n cores in use, b the triad's n cores in units "
              "of one; *moved* × (1 − 1/P). Least absolute deviations, coefficients ≥ 0.", ""]
    if picture(folder, "model"):
        lines += picture(folder, "model")
        lines += ["Coloured bands reach to what the model says that is fitted without the "
                  "largest layouts.", ""]
    lines += coefficients(fitted)
    lines += left_out(model.check(study))
    lines += assumptions(fitted, study)
    lines += ["Seconds of ranks of one thread, each on a core of its own:", ""]
    lines += extrapolation(study, fitted) + quality(metrics["quality"])
    lines += ["## Files", "", "`study.csv` and `study.json` hold every run, "
              "`system.json` the machine and program, `metrics.json` the fields of the astroCAMP "
              "community benchmark protocol (v0.1) for each layout, with their meanings; "
              "null is what cannot be measured here.", ""]
    return "\n".join(lines)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    path = os.path.join(sys.argv[1], "report.md")
    with open(path, "w") as f:
        f.write(report(sys.argv[1]))
    print(path)


if __name__ == "__main__":
    main()
