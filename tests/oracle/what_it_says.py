#!/usr/bin/env python3
"""What the program prints: examples of --help that parse, --version, recommendations of
info that work, the stages of a plan, reasons of compare, options that do not apply."""
import json
import os
import re
import shlex

import numpy as np

from e2e import ASEC, Suite, mpiexec, tessera
import uvfits

COMMANDS = ("image", "predict", "simulate", "info", "plan", "compare", "bench")
RANKS = (1, 3) if mpiexec() else (1,)


def examples(help_text):
    """Command lines below "Examples:", without launcher and program."""
    lines = help_text[help_text.index("Example"):].splitlines()[1:]
    found = []
    for line in lines:
        if re.match(r"  \S", line):
            found.append(line.strip())
        elif found and re.match(r"    +\S", line):
            found[-1] = found[-1].rstrip("\\") + " " + line.strip()
        elif found and not line.strip():
            break
    return [re.sub(r"^.*?\btessera ", "", line) for line in found if "tessera" in line]


def check_help(suite):
    """Every example gets as far as a file that is not there; those of bench, which reads
    none, run with less to do."""
    empty = suite.path("empty")
    os.makedirs(empty)
    for command in COMMANDS:
        result = tessera(command, "--help")
        if not suite.ran(f"{command} --help", result):
            continue
        lines = examples(result.out)
        suite.true(f"{command}: examples", bool(lines)
                   and all(line.startswith(command + " ") for line in lines))
        for line in lines:
            less = ["--vis", "1e4", "--repeat", "1"] if command == "bench" else []
            result = tessera(*shlex.split(line), *less, cwd=empty)
            # 4: an image too large for this machine is refused before files are opened
            suite.true(f"tessera {line}: status {result.status}, {result.errors()}",
                       result.status in ((0, 4) if command == "bench" else (3, 4)))


def check_version(suite):
    first = tessera("--version").out
    suite.true("tessera --version", first.startswith("tessera "))
    for command in COMMANDS:
        result = tessera(command, "--version")
        suite.ran(f"{command} --version", result)
        suite.equal(f"{command} --version prints", result.out, first)


def observe(suite, name, first=-5, corrs=2):
    rng = np.random.default_rng(2)
    shape = (240, 3, corrs)
    vis = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    path = suite.path(name + ".uvfits")
    uvfits.write(path, uvfits.random_tracks(240, 400.0), 1e9 + 1e7 * np.arange(3), vis, 1.0,
                 corr_first=first)
    return path


def check_info(suite):
    """The command that info recommends works, whatever the correlations are."""
    for name, first, corrs, option in [
            ("linear", -5, 2, None), ("full", -1, 4, None), ("stokes", 1, 1, None),
            ("one-hand", -5, 1, "XX"), ("cross-hand", -7, 1, "XY")]:
        result = tessera("info", observe(suite, name, first, corrs))
        found = re.search(r"tessera (image .*)", result.out)
        if not suite.true(f"info {name} recommends a command", found is not None):
            continue
        words = shlex.split(found.group(1))
        given = words[words.index("--stokes") + 1] if "--stokes" in words else None
        suite.equal(f"info {name}: --stokes", given, option)
        words[words.index("NAME")] = suite.path(name)
        suite.ran(f"what info {name} recommends", tessera(*words))


def check_info_numbers(suite):
    """A window whose frequencies descend, at a right ascension that is negative in its
    file: info gives the step from channel to channel and an angle of 0 to 360 degrees."""
    freq = 1e9 - 1e7 * np.arange(3)
    path = suite.path("descending.uvfits")
    uvfits.write(path, uvfits.random_tracks(240, 400.0), freq, np.ones((240, 3, 2)), 1.0,
                 ra_deg=-172.3)
    result = tessera("info", path, "--json")
    if not suite.ran("info of a descending window", result):
        return
    found = json.loads(result.out)
    suite.equal("right ascension", found["fields"][0]["ra_deg"], 187.7)
    window = found["spectral_windows"][0]
    suite.equal("first channel", window["first_channel_hz"], 1e9)
    suite.equal("step to the next", window["channel_width_hz"], -1e7)
    suite.equal("edges", (window["freq_min_hz"], window["freq_max_hz"]), (0.975e9, 1.005e9))


def check_data_column(suite):
    obs = observe(suite, "columns")
    for ranks in RANKS:
        result = tessera("image", obs, "--size", 32, "--scale", "60asec", "--datacolumn",
                         "MODEL_DATA", "-o", suite.path("column"), ranks=ranks)
        suite.ran(f"--datacolumn of UVFITS, {ranks} ranks", result, 2)
        suite.true(f"one line that says so: {result.errors()}", len(result.errors()) == 1
                   and "MODEL_DATA" in result.errors()[0])


def check_plan(suite):
    """A time of each stage; they add up to the whole."""
    obs = observe(suite, "planned")
    for ranks in RANKS:
        result = tessera("plan", obs, "--size", 512, "--scale", "20asec", ranks=ranks)
        if not suite.ran(f"plan, {ranks} ranks", result):
            continue
        line = next((s for s in result.out.splitlines() if s.startswith("time")), "")
        whole, _, rest = line.partition(":")
        total = float(re.search(r"about ([\d.e+-]+) s", whole)[1]) if rest else 0
        parts = {name: float(s) for name, s in re.findall(r"(\w+) ([\d.e+-]+) s", rest)}
        if suite.true(f"stages: {line}", {"read", "sort", "grid", "fft", "write"}
                      <= set(parts)):
            suite.true("all take time", min(parts.values()) > 0)
            # two digits are printed of each
            suite.below("sum of stages / whole - 1", abs(sum(parts.values()) / total - 1),
                        0.1)


def check_compare(suite):
    """Images of different sizes: the reason, and no numbers of pixels."""
    paths = [uvfits.write_model(suite.path(f"{n}.fits"), np.ones((n, n)), 60 * ASEC)
             for n in (16, 24)]
    result = tessera("compare", *paths)
    suite.ran("compare images of different sizes", result, 5)
    suite.true(f"reason only: {result.out.strip()}", "16 pixels" in result.out
               and "24" in result.out and "L2" not in result.out)


def main():
    suite = Suite("what_it_says")
    for check in (check_help, check_version, check_info, check_info_numbers,
                  check_data_column, check_plan, check_compare):
        check(suite)
    suite.finish()


if __name__ == "__main__":
    main()
