#!/usr/bin/env python3
"""Pictures of a study made by run.sh.

usage: plot.py FOLDER [--format svg|png]

Reads FOLDER/study.json; writes strong, weak, stages, communication and model pictures
beside it. Needs matplotlib, no display.
"""
import argparse
import json
import os
import re
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator  # noqa: E402

import model  # noqa: E402
import summary  # noqa: E402

# Colours that the colour-blind tell apart (Okabe & Ito 2008), in order of threads a rank.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
GREY = "#8a8a8a"
STAGE_COLOURS = {
    "read": "#4477AA", "weight": "#AACCEE", "plan": "#DDDDDD", "partition": "#BBBBBB",
    "exchange": "#EE6677", "sort": "#CCBB44", "grid": "#228833", "reduce": "#AA3377",
    "fft": "#66CCEE", "correct": "#99DDBB", "write": "#222255", "other": "#EEEEEE"}
TIME_TICKS = [m * 10.0**e for e in range(-4, 7) for m in (1, 2, 5)]
SHARES = (1, 100, 10000)
MOST_RANKS = 10000


def set_style():
    plt.rcParams.update({
        "figure.dpi": 110, "savefig.bbox": "tight", "font.size": 10,
        "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 11,
        "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.grid": True,
        "grid.color": "#e6e6e6", "grid.linewidth": 0.8, "axes.axisbelow": True,
        "legend.frameon": False, "legend.fontsize": 9, "lines.linewidth": 1.8,
        "svg.hashsalt": "tessera"})


def shorten(path):
    """Hundredths of a point are enough for the paths of an SVG, and no indentation."""
    with open(path) as f:
        text = f.read()
    text = re.sub(r' d="[^"]*"', lambda m: re.sub(
        r"-?\d+\.\d+", lambda n: f"{float(n.group()):.2f}".rstrip("0").rstrip("."),
        m.group()), text)
    text = re.sub(r"\n\s+", "\n", text)
    with open(path, "w") as f:
        f.write(text)


def save(figure, folder, name, form):
    path = os.path.join(folder, f"{name}.{form}")
    figure.savefig(path, metadata={"Date": None} if form == "svg" else None)
    plt.close(figure)
    if form == "svg":
        shorten(path)
    return path


def plain(value):
    return f"{value:g}"


def workers(p):
    return p["ranks"] * p["threads"]


def log_axis(axis, values, plain_ticks=True):
    """Logarithmic to base 2, ticks where there are values."""
    ticks = sorted(set(values))
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks)
    axis.xaxis.set_minor_locator(NullLocator())
    if plain_ticks:
        axis.xaxis.set_major_formatter(FuncFormatter(lambda v, _: plain(v)))
    axis.set_xlim(ticks[0] / 1.25, ticks[-1] * 1.4)


def time_axis(axis, values):
    """From 0, or logarithmic with numbers such as 0.5, 1, 2 when times differ much."""
    if max(values) < 8 * min(values):
        axis.set_ylim(0, 1.1 * max(values))
        return
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    axis.set_yticks([v for v in TIME_TICKS if low <= v <= high])
    axis.yaxis.set_major_formatter(FuncFormatter(lambda v, _: plain(v)))
    axis.yaxis.set_minor_formatter(NullFormatter())
    axis.set_ylim(low, high)


def speedup_axis(axis, most):
    """From 0, or logarithmic to base 2 as the other axis is when there are many."""
    if most < 8:
        axis.set_ylim(0, None)
        return
    axis.set_yscale("log", base=2)
    axis.set_ylim(0.8, 1.3 * most)
    axis.yaxis.set_major_formatter(FuncFormatter(lambda v, _: plain(v)))


def by_threads(points):
    """{threads a rank: its points in order of workers}"""
    groups = {}
    for p in sorted(points, key=workers):
        groups.setdefault(p["threads"], []).append(p)
    return groups


def shade_beyond(axis, limit, points, label):
    """Where there are more ranks x threads than cores."""
    most = max(workers(p) for p in points)
    if most > limit:
        axis.axvspan(limit * 1.06, most * 1.4, color="#f3f1ec", zorder=0)
        axis.annotate(label, (0.985, 0.02), xycoords="axes fraction", ha="right",
                      va="bottom", fontsize=8, color="#777777")


def curves(axis, points, value, spread=None):
    """One curve for each number of threads; hollow where cores are shared."""
    for k, (threads, line) in enumerate(sorted(by_threads(points).items())):
        colour = COLOURS[k % len(COLOURS)]
        # aside a little, where several layouts use as many cores
        x, y = [workers(p) * 1.035**k for p in line], [value(p) for p in line]
        axis.plot(x, y, "-", color=colour,
                  label=f"{threads} thread{'s' if threads > 1 else ''} a rank")
        for p, px, py in zip(line, x, y):
            shared = workers(p) > p["units"]
            axis.plot(px, py, "o", ms=6.5, color=colour,
                      mfc="white" if shared else colour, mew=1.6)
            if spread:
                low, high = spread(p)
                axis.plot([px, px], [low, high], color=colour, lw=1, zorder=1)


def unit_word(study):
    return "GPUs" if study["settings"]["backend"] == "cuda" else "cores"


def limit_of(study, points):
    return max(p["units"] for p in points) if study["settings"]["backend"] == "cuda" \
        else study["settings"]["cores"]


def title_of(study, kind):
    """What was imaged, in a line."""
    data = [s for s in study["sets"] if s["kind"] == kind and s["share"] == 1.0] or \
        [s for s in study["sets"] if s["kind"] == kind]
    p = max(summary.points(study, kind), key=lambda p: p["visibilities"])
    return (f"{data[-1]['name'].split('-')[0]}, {p['visibilities'] / 1e6:.3g} million "
            f"visibilities, {p['size']}² pixels, ε = {study['settings']['accuracy']}")


def efficiency_axis(axis):
    axis.axhline(1, color=GREY, ls="--", lw=1)
    axis.set_ylim(0, max(1.12, axis.get_ylim()[1]))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.0f} %"))


def legend_below(figure, handles, labels, **options):
    """One legend below all axes; matplotlib before 3.7 can only put it over them."""
    version = tuple(int(k) for k in matplotlib.__version__.split(".")[:2])
    place = "outside lower center" if version >= (3, 7) else "lower center"
    figure.legend(handles, labels, loc=place, **options)


def over_workers(figure, axes, study, points, label):
    """Axes over ranks × threads, those on shared cores shaded, with one legend."""
    limit = limit_of(study, points)
    for axis in axes:
        axis.set_xlabel(label)
        log_axis(axis, sorted({workers(p) for p in points}))
        shade_beyond(axis, limit, points, f"more than the {limit} {unit_word(study)}")
    handles, labels = axes[0].get_legend_handles_labels()
    legend_below(figure, handles, labels, ncols=len(labels))


def strong(study, folder, form):
    points = summary.points(study, "strong")
    limit = limit_of(study, points)
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.5), layout="constrained")
    x = sorted({workers(p) for p in points})
    base = points[0]
    curves(axes[0], points, lambda p: p["seconds"],
           lambda p: (p["seconds_min"], p["seconds_max"]))
    axes[0].plot(x, [base["seconds"] * base["units"] / min(v, limit) for v in x], "--",
                 color=GREY, lw=1.2, label="ideal", zorder=1)
    axes[0].set(title="Time", ylabel="seconds after MPI_Init")
    time_axis(axes[0], [p[k] for p in points for k in ("seconds_min", "seconds_max")] +
              [base["seconds"] * base["units"] / limit])
    curves(axes[1], points, lambda p: p["speedup"])
    axes[1].plot(x, [min(v, limit) for v in x], "--", color=GREY, lw=1.2, zorder=1)
    axes[1].set(title="Speed-up", ylabel=f"times one of the {unit_word(study)}")
    speedup_axis(axes[1], max(x))
    curves(axes[2], points, lambda p: p["efficiency"])
    axes[2].set(title="Efficiency", ylabel=f"speed-up / {unit_word(study)} in use")
    efficiency_axis(axes[2])
    over_workers(figure, axes, study, points, "ranks × threads")
    figure.suptitle("Strong scaling: " + title_of(study, "strong"), x=0.01, ha="left",
                    fontsize=11)
    return save(figure, folder, "strong", form)


def weak(study, folder, form):
    points = summary.points(study, "weak")
    if not points:
        return None
    limit = limit_of(study, points)
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.5), layout="constrained")
    x = sorted({workers(p) for p in points})
    base = points[0]
    curves(axes[0], points, lambda p: p["seconds"],
           lambda p: (p["seconds_min"], p["seconds_max"]))
    axes[0].plot(x, [base["seconds"] * v / min(v, limit) for v in x], "--", color=GREY,
                 lw=1.2, label="ideal", zorder=1)
    axes[0].set(title="Time", ylabel="seconds after MPI_Init")
    axes[0].set_ylim(0, None)
    curves(axes[1], points, lambda p: p["efficiency"])
    axes[1].set(title="Efficiency", ylabel=f"of the {unit_word(study)} in use")
    efficiency_axis(axes[1])
    over_workers(figure, axes, study, points,
                 "ranks × threads, data and pixels in proportion")
    figure.suptitle("Weak scaling, at most " + title_of(study, "weak"), x=0.01, ha="left",
                    fontsize=11)
    return save(figure, folder, "weak", form)


def shown_stages(points):
    """Stages of at least a hundredth of some run."""
    return [s for s in summary.STAGES + ["other"]
            if any(p["stages"][s] > 0.01 * p["seconds"] for p in points)]


def label_of(p):
    return f"{p['ranks']} × {p['threads']}"


def stages(study, folder, form):
    kinds = [k for k in ("strong", "weak") if summary.points(study, k)]
    groups = [summary.points(study, k) for k in kinds]
    rows = max(len(g) for g in groups)
    figure, axes = plt.subplots(1, len(kinds), figsize=(11, 1.7 + 0.36 * rows),
                                layout="constrained", squeeze=False)
    names = shown_stages([p for g in groups for p in g])
    for axis, kind, points in zip(axes[0], kinds, groups):
        order = sorted(points, key=lambda p: (workers(p), p["threads"]))[::-1]
        left = [0.0] * len(order)
        for name in names:
            width = [p["stages"][name] for p in order]
            axis.barh(range(len(order)), width, left=left, height=0.72, label=name,
                      color=STAGE_COLOURS[name], edgecolor="white", linewidth=0.6)
            left = [a + b for a, b in zip(left, width)]
        for k, p in enumerate(order):
            axis.annotate(f" {p['seconds']:.3g} s", (left[k], k), va="center", fontsize=9)
        axis.set_yticks(range(len(order)), [label_of(p) for p in order])
        axis.set(title=f"{kind.capitalize()} scaling", xlabel="seconds, mean over ranks",
                 ylabel="ranks × threads")
        axis.set_xlim(0, 1.16 * max(left))
        axis.grid(axis="y", visible=False)
    handles, labels = axes[0][0].get_legend_handles_labels()
    legend_below(figure, handles, labels, ncols=len(labels),
                  columnspacing=1.0, handlelength=1.1)
    return save(figure, folder, "stages", form)


def communication(study, folder, form):
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
    points = summary.points(study, "strong")
    bars = [p for p in sorted(points, key=lambda p: (workers(p), p["threads"]))
            if p["ranks"] > 1]
    share = [100 * p["communication"] for p in bars]
    moved = [100 * (p["stages"]["exchange"] + p["stages"]["reduce"]) / p["seconds"]
             for p in bars]
    x = range(len(bars))
    axes[0].bar([v - 0.19 for v in x], share, 0.36, color="#EE6677",
                label="in MPI, waiting included")
    axes[0].bar([v + 0.19 for v in x], moved, 0.36, color="#AA3377",
                label="stages exchange and reduce")
    for v, (a, b) in enumerate(zip(share, moved)):
        for offset, height in ((-0.19, a), (0.19, b)):
            axes[0].annotate(f"{height:.0f}", (v + offset, height), ha="center",
                             va="bottom", fontsize=8)
    axes[0].set_xticks(list(x), [label_of(p) for p in bars],
                       rotation=45 if len(bars) > 5 else 0)
    axes[0].set(title="Communication", ylabel="% of the time", xlabel="ranks × threads")
    axes[0].set_ylim(0, 1.28 * max(share + moved + [8]))
    axes[0].grid(axis="x", visible=False)
    axes[0].legend(loc="upper left")
    bandwidth_panel(study, axes[1], points)
    return save(figure, folder, "communication", form)


def bandwidth_panel(study, axis, points):
    """Speed-up of the stages that compute, beside that of the triad."""
    line = [p for p in points if p["ranks"] * p["threads"] == p["units"]]
    best = {}
    for p in line:
        if p["units"] not in best or p["seconds"] < best[p["units"]]["seconds"]:
            best[p["units"]] = p
    line = [best[n] for n in sorted(best)]
    x = [p["units"] for p in line]
    for name in ("grid", "fft", "sort", "correct"):
        first = line[0]["stages"][name] * line[0]["units"]
        if first > 0.01 * line[0]["seconds"]:
            axis.plot(x, [first / p["stages"][name] for p in line], "o-", ms=5,
                      color=STAGE_COLOURS[name], label=name)
    if study["triad"] and study["settings"]["backend"] == "cpu":
        one = study["triad"].get("1")
        rates = {int(n): g / one for n, g in study["triad"].items()} if one else {}
        axis.plot(sorted(rates), [rates[n] for n in sorted(rates)], "s-", ms=5,
                  color="#111111", lw=1.4, label="triad (memory)")
    axis.plot(x, x, "--", color=GREY, lw=1.2, label="ideal")
    axis.set(title="Stages beside memory bandwidth", ylabel="speed-up",
             xlabel=f"{unit_word(study)}, best layout of each")
    speedup_axis(axis, max(x))
    log_axis(axis, x)
    axis.legend(loc="upper left", fontsize=8)


# ---- the model ----

def rank_steps():
    """1, 2, 4 ... and the last."""
    steps = [2**k for k in range(14) if 2**k < MOST_RANKS]
    return steps + [MOST_RANKS]


def fit_panel(study, fitted, axis):
    points = model.all_points(study)
    measured = [p["seconds"] for p in points]
    low, high = 0.8 * min(measured), 1.25 * max(measured)
    axis.plot([low, high], [low, high], "--", color=GREY, lw=1.2)
    axis.fill_between([low, high], [0.85 * low, 0.85 * high], [1.15 * low, 1.15 * high],
                      color="#f0f0f0", label="±15 %", lw=0)
    for kind, mark, colour in (("strong", "o", COLOURS[0]), ("weak", "s", COLOURS[1])):
        found = summary.points(study, kind)
        axis.plot([p["seconds"] for p in found], [fitted.seconds(p) for p in found], mark,
                  ms=6, color=colour, label=kind)
    left = model.check(study)
    if left:
        axis.plot([p["measured_s"] for p in left["points"]],
                  [p["predicted_s"] for p in left["points"]], "D", ms=7, mfc="none",
                  mew=1.6, color="#AA3377", label="predicted without\nthe largest runs")
    axis.set(title="Fit", xlabel="measured, seconds", ylabel="model, seconds",
             xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    for one in (axis.xaxis, axis.yaxis):
        one.set_ticks([v for v in TIME_TICKS if low <= v <= high])
        one.set_major_formatter(FuncFormatter(lambda v, _: plain(v)))
        one.set_minor_formatter(NullFormatter())
    axis.legend(loc="upper left", fontsize=8)


def without_largest(study):
    points = model.all_points(study)
    rest = [p for p in points if workers(p) < model.largest(points)]
    return model.of_study(study, rest) if len(rest) > 1 else None


def efficiencies(ranks, times):
    return [times[0] / (t * r) for t, r in zip(times, ranks)]


def extrapolations(study, fitted, other, axes):
    base = summary.points(study, "strong")[0]
    ranks = rank_steps()
    for k, share in enumerate(SHARES):
        imagined = [model.imagined(base, r, share) for r in ranks]
        label = (f"{summary.count_text(imagined[0]['visibilities'])} visibilities, "
                 f"{imagined[0]['size']:.0f}² pixels")
        times = [fitted.seconds(p) for p in imagined]
        axes[0].plot(ranks, times, "-", color=COLOURS[k], label=label)
        axes[1].plot(ranks, efficiencies(ranks, times), "-", color=COLOURS[k])
        if other:
            less = [other.seconds(p) for p in imagined]
            axes[0].fill_between(ranks, times, less, color=COLOURS[k], alpha=0.15, lw=0)
            axes[1].fill_between(ranks, efficiencies(ranks, times),
                                 efficiencies(ranks, less), color=COLOURS[k], alpha=0.15,
                                 lw=0)


def measured_on(axis, study):
    """Runs of one thread a rank, a core each."""
    found = [p for p in summary.points(study, "strong")
             if p["threads"] == 1 and workers(p) == p["units"]]
    axis.plot([p["ranks"] for p in found], [p["seconds"] for p in found], "o", ms=4.5,
              color=COLOURS[0])


def model_picture(study, folder, form):
    fitted, other = model.of_study(study), without_largest(study)
    figure, axes = plt.subplots(1, 3, figsize=(11.5, 3.7), layout="constrained")
    fit_panel(study, fitted, axes[0])
    extrapolations(study, fitted, other, axes[1:])
    measured = max(workers(p) for p in model.all_points(study))
    for axis in axes[1:]:
        axis.set_xscale("log")
        axis.axvspan(1, measured, color="#f3f1ec", zorder=0)
        axis.set_xlabel("ranks of one thread, a core each")
        axis.set_xlim(1, MOST_RANKS)
    measured_on(axes[1], study)
    axes[1].annotate("measured", (1.15, 0.02), xycoords=("data", "axes fraction"),
                     fontsize=8, color="#777777")
    axes[1].set(title="Extrapolated time", ylabel="seconds", yscale="log")
    axes[2].set(title="Extrapolated efficiency", ylabel="speed-up / ranks")
    efficiency_axis(axes[2])
    handles, labels = axes[1].get_legend_handles_labels()
    legend_below(figure, handles, labels, ncols=len(labels))
    return save(figure, folder, "model", form)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--format", choices=("svg", "png"), default="svg")
    options = parser.parse_args()
    with open(os.path.join(options.folder, "study.json")) as f:
        study = json.load(f)
    set_style()
    for draw in (strong, weak, stages, communication, model_picture):
        path = draw(study, options.folder, options.format)
        if path:
            print(path)


if __name__ == "__main__":
    sys.exit(main())
