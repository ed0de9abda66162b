#!/usr/bin/env python3
"""Plots of the tables that `tessera bench gcf --study` has written.

    plots.py FOLDER [png|svg]

Draws NAME.png for each NAME.csv: rates over what the table varies, a line for each
strategy, and published figures as crosses; for the data sets bars of milliseconds beside
the published ones. Status 3: there is no matplotlib.
"""
import csv
import os
import sys

NO_MATPLOTLIB = 3

# The column that a table varies, and the name of that axis.
AXES = {"size": ("gcf", "width of the GCF [cells]"),
        "points": ("visibilities", "visibilities"),
        "image": ("size", "cells of the grid along each axis"),
        "pol": ("polarisations", "polarisations"),
        "precision": ("precision", "precision"),
        "atomics": ("variant", "additions"),
        "computed": ("variant", "functions"),
        "sets": ("order", "data set")}
MARKS = "os^vD<>Pp*"


def rows_of(folder, name):
    path = os.path.join(folder, name + ".csv")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf8") as file:
        return list(csv.DictReader(file))


def distinct(rows, column):
    return list(dict.fromkeys(row[column] for row in rows))


def panels_of(rows, axis):
    """Rows that differ in nothing but strategy and what the axis shows, by title."""
    columns = [c for c in ("operation", "order", "gcf", "polarisations", "precision",
                           "variant") if c != axis]
    panels = {}
    for row in rows:
        words = [row[c] + {"gcf": " cells", "polarisations": " pol"}.get(c, "")
                 for c in columns if c == "operation" or len(distinct(rows, c)) > 1]
        panels.setdefault(", ".join(w for w in words if w), []).append(row)
    return panels


def draw_rates(axes, rows, axis, label, strategies):
    words = [row[axis] or "usual" for row in rows]
    numbers = all(w.replace(".", "").isdigit() for w in words)
    ticks = list(dict.fromkeys(words))
    place = float if numbers else ticks.index
    for k, strategy in enumerate(strategies):
        of = [row for row in rows if row["strategy"] == strategy]
        axes.plot([place(row[axis] or "usual") for row in of],
                  [float(row["gflops"]) for row in of], marker=MARKS[k % len(MARKS)],
                  color=f"C{k % 10}", label=strategy)
    said = {(row[axis], row["published"], row["published_what"]) for row in rows
            if row["published_unit"] == "GFLOP/s"}
    if said:
        axes.plot([place(s[0] or "usual") for s in said], [float(s[1]) for s in said], "kx",
                  markersize=9, label="published")
    axes.set_yscale("log")
    if numbers:
        axes.set_xscale("log")
        if axis != "visibilities":
            axes.set_xticks([float(t) for t in ticks], ticks)
            axes.minorticks_off()
    else:
        axes.set_xticks(range(len(ticks)), ticks)
    axes.set_xlabel(label)


def draw_sets(axes, rows):
    sets, strategies = distinct(rows, "order"), distinct(rows, "strategy")
    width = 0.8 / (len(strategies) + 1)
    for k, strategy in enumerate(strategies):
        of = [row for row in rows if row["strategy"] == strategy]
        axes.bar([sets.index(row["order"]) + k * width for row in of],
                 [1e3 * float(row["all_s"]) for row in of], width, label=strategy)
    said = {(row["order"], row["published"], row["published_what"]) for row in rows
            if row["published"]}
    if said:
        axes.bar([sets.index(s[0]) + len(strategies) * width for s in said],
                 [float(s[1]) for s in said], width, color="0.7",
                 label=", ".join(sorted({s[2] for s in said})) + " (published)")
    axes.set_yscale("log")
    axes.set_ylabel("ms, all stages")
    axes.set_xticks([k + 0.4 - width / 2 for k in range(len(sets))], sets)
    axes.legend(fontsize="small")


def draw(plt, name, rows, path):
    axis, label = AXES[name]
    panels = {"": rows} if name == "sets" else panels_of(rows, axis)
    strategies = distinct(rows, "strategy")
    figure, grid = plt.subplots(1, len(panels), figsize=(max(4.2, 3.6 * len(panels)), 3.8),
                                sharey=True, squeeze=False)
    for axes, (title, of) in zip(grid[0], panels.items()):
        if name == "sets":
            draw_sets(axes, of)
        else:
            draw_rates(axes, of, axis, label, strategies)
        axes.set_title(title, fontsize="medium")
        axes.grid(True, alpha=0.3)
    if name != "sets":
        grid[0][0].set_ylabel("GFLOP/s")
        lines = {line.get_label(): line for axes in grid[0] for line in axes.get_lines()}
        figure.legend(lines.values(), lines.keys(), fontsize="small", loc="center right")
    figure.tight_layout(rect=(0, 0, 1 if name == "sets" else 1 - 1.1 / figure.get_figwidth(),
                              1))
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main():
    folder, form = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "png"
    try:
        import matplotlib
    except ImportError:
        sys.exit(NO_MATPLOTLIB)
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    for name in AXES:
        rows = rows_of(folder, name)
        if rows:
            draw(plt, name, rows, os.path.join(folder, f"{name}.{form}"))


if __name__ == "__main__":
    main()
