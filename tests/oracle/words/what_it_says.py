#!/usr/bin/env python3
"""What the program prints: examples of --help that parse, --version, recommendations of
info that work, the stages of a plan, reasons of compare, options that do not apply."""
import csv
import json
import os
import re
import shlex
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (ASEC, C_M_S, ROOT, Suite, casacore_python, fits_module, forced, have_ms,
                 mpiexec, read_image, run, simulate, tessera, write_sky)
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


def less_to_do(line):
    """Options that make an example of bench short."""
    if line.startswith("bench convolve"):
        return ["--size", "97,45", "--psf", "5,7", "--repeat", "1"]
    if not line.startswith("bench"):
        return []
    small = {"bench calibrate": [], "bench gcf": ["--size", "256", "--gcf", "8,32"]}
    return ["--vis", "1e4", "--repeat", "1", *small.get(" ".join(line.split()[:2]), ["--size", "256"])]


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
            result = tessera(*shlex.split(line), *less_to_do(line), cwd=empty)
            # 4: an image too large for this machine is refused before files are opened
            suite.true(f"tessera {line}: status {result.status}, {result.errors()}",
                       result.status in ((0, 4) if command == "bench" else (3, 4)))


def check_convolve(suite):
    """A line for each step, all within their bounds, of the first rank only; one line for
    what does not fit."""
    command = ("bench", "convolve", "--size", "97,45", "--psf", "5,7", "--repeat", "1",
               "--threads", "2", "--csv")
    for ranks in (1, 2):
        result = tessera(*command, ranks=ranks)
        if not suite.ran(f"bench convolve on {ranks}", result):
            continue
        rows = list(csv.DictReader(result.out.splitlines()))
        steps = [row["step"] + row["threads"] for row in rows]
        suite.equal("bench convolve: steps", [s for s in steps if s[-1] != "0"][:6],
                    ["literal1", "lines1", "simd1", "blocks1", "blocks2", "fft1"])
        suite.true("bench convolve: differences within bounds",
                   all(float(row["difference"]) <= float(row["bound"]) for row in rows))
    for bad in (("--psf", "98,7"), ("--size", "97"), ("--size", "97,45,3"), ("--psf", "0,1")):
        result = tessera(*command, *bad, ranks=2)
        suite.true(f"bench convolve {bad}: one line, status 2: {result.errors()}",
                   result.status == 2 and len(result.errors()) == 1 and not result.out)


def check_built(suite, text):
    """A line for each part that a build may have, which agrees with what it does."""
    labels = ("MPI", "OpenMP", "GPUs", "processor code", "fast memory", "MeasurementSets", "solutions")
    built = {label: line[len(label):].strip() for line in text.splitlines()[3:]
             for label in labels if line.startswith(label + " ")}
    if not suite.equal("--version: parts", sorted(built), sorted(labels)):
        return
    suite.true(f"--version: every part has words {built}", all(built.values()))
    suite.equal("--version: MeasurementSets", not built["MeasurementSets"].startswith("none"),
                have_ms())
    if mpiexec():
        suite.true(f"--version: MPI {built['MPI']}", re.search(r"\d+\.\d+", built["MPI"]))
    there = "TESS_ISA" in os.environ or re.search(r"; here: (\w+)", built["processor code"])
    suite.true("--version: the code for this processor is among what is built",
               there is True or there[1] in built["processor code"].split(";")[0])


def check_version(suite):
    first = tessera("--version").out
    suite.true("tessera --version", first.startswith("tessera "))
    check_built(suite, first)
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
    for name, first, corrs, option, can in [
            ("linear", -5, 2, "I", "IQ"), ("circular", -1, 2, "I", "IV"),
            ("full", -1, 4, "I", "IQUV"), ("stokes", 1, 1, "I", "I"),
            ("one-hand", -5, 1, "XX", "XX"), ("cross-hand", -7, 1, "XY", "XY"),
            ("it's one", -5, 2, "I", "IQ")]:
        result = tessera("info", observe(suite, name, first, corrs))
        suite.true(f"info {name}: {can} can be imaged", f"--stokes {can} can be" in result.out)
        found = re.search(r"tessera (image .*)", result.out)
        if not suite.true(f"info {name} recommends a command", found is not None):
            continue
        words = shlex.split(found.group(1))
        given = words[words.index("--stokes") + 1] if "--stokes" in words else None
        suite.equal(f"info {name}: --stokes", given, option)
        words[words.index("NAME")] = suite.path(name)
        suite.ran(f"what info {name} recommends", tessera(*words))


def check_info_flags(suite):
    """The flagged share of each field and window, in the table and in JSON; the command is
    for the field with most that is not flagged."""
    names = ["ALPHA", "BE TA", "GAMMA"]
    rng = np.random.default_rng(5)
    of_row = np.arange(240) % 3
    weight = np.where(rng.uniform(size=(240, 3, 2)) < 0.2, -1.0, 1.0)
    weight[of_row == 0] = -1
    weight[of_row == 2, 0] = -1
    path = suite.path("fields.uvfits")
    uvfits.write(path, uvfits.random_tracks(240, 400.0), 1e9 + 1e7 * np.arange(3),
                 np.ones((240, 3, 2)), weight,
                 sources=[(n, 60.0 + k, -30.0) for k, n in enumerate(names)],
                 source_of_row=of_row)
    share = [(weight[of_row == k] <= 0).mean() for k in range(3)]
    for ranks in RANKS:
        shown, given = (tessera("info", path, *words, ranks=ranks) for words in ([], ["--json"]))
        if not suite.ran(f"info of fields, {ranks} ranks", shown):
            return
        table = re.findall(r"^ +\d+  (\S.{19}) +([\d.]+)$",
                           shown.out[shown.out.index("Flagged samples"):], re.M)
        suite.equal("fields of the table", [n.strip() for n, _ in table], names)
        for (_, value), expected, name in zip(table, share, names):
            suite.below(f"{name}: {value} %, expected {100 * expected}",  # two decimals
                        abs(float(value) - 100 * expected), 0.005 + 1e-9)
        found = json.loads(given.out)
        cells = {c["name"]: c for c in found["flags"]}
        suite.equal("fields of the JSON", sorted(cells), names)
        for k, name in enumerate(names):
            suite.equal(f"{name}: samples", cells[name]["samples"], weight[of_row == k].size)
            suite.below(f"{name}: share", abs(cells[name]["flagged_share"] - share[k]), 1e-12)
        suite.equal("samples of all", (found["samples"], found["flagged"]),
                    (weight.size, int((weight <= 0).sum())))
        suite.equal("rows of all", found["rows"], 240)
        suite.equal("Stokes parameters", found["stokes"], "IQ")
        line = re.search(r"tessera (image .*)", shown.out)[1]
        suite.equal("the same command", found["suggested_command"], "tessera " + line)
        words = shlex.split(line)
        suite.equal("its field", words[words.index("--field") + 1], "BE TA")
        words[words.index("NAME")] = suite.path(f"field{ranks}")
        suite.ran("it works", tessera(*words))


def check_info_windows(suite):
    """The share in each window of a MeasurementSet, from its flags."""
    python = casacore_python()
    if not have_ms() or not python:
        return
    sky = write_sky(suite.path("two.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    made = simulate(suite.path("flagged.ms"), sky, duration="6min")
    script = os.path.join(ROOT, "tests", "faults", "spoil_ms.py")
    suite.ran("rows flagged", run([python, script, made, "flag_row"], 60))
    result = tessera("info", made, "--json")
    if suite.ran("info of a flagged MeasurementSet", result):
        cells = json.loads(result.out)["flags"]
        rows = json.loads(result.out)["rows"]
        suite.equal("one field and window", [(c["field"], c["spw"]) for c in cells], [(0, 0)])
        suite.below("a third is flagged", abs(cells[0]["flagged_share"] - -(-rows // 3) / rows),
                    1e-12)


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


def refused(suite, what, words, *args, status=2):
    """One line with these words, and this status, on one rank and on three."""
    for ranks in RANKS:
        result = tessera("image", *args, "--overwrite", "-q", "-o", suite.path("refused"),
                         ranks=ranks)
        suite.ran(f"{what}, {ranks} ranks", result, status)
        line = result.errors()[0] if result.errors() else ""
        for word in words:
            suite.true(f"{what}: {word!r} in {line!r}", word in line)
        suite.equal(f"{what}: lines", len(result.errors()), 1)


def warned(suite, what, words, *args, count=1):
    """So many warnings, of which the last has these words."""
    for ranks in RANKS:
        result = tessera("image", *args, "--overwrite", "-q", "-o", suite.path("warned"),
                         ranks=ranks)
        suite.ran(f"{what}, {ranks} ranks", result)
        lines = [line for line in result.err.splitlines() if "warning: " in line]
        suite.equal(f"{what}: warnings {lines}", len(lines), count)
        for word in words:
            suite.true(f"{what}: {word!r} in {lines[-1:]}", lines and word in lines[-1])


SMALL = ["--size", "32", "--scale", "60asec"]


def check_options(suite):
    """Options of other programs, near ones, and values in two words."""
    obs = observe(suite, "options")
    for words, meant in [
            (["-size", "64"], "did you mean --size?"),
            (["--pol", "IQ"], "did you mean --stokes IQ?"),
            (["--robust", "0"], "did you mean --weight briggs:0?"),
            (["--robust=-0.5"], "did you mean --weight briggs:-0.5?"),
            (["--imsize", "64"], "did you mean --size 64?"),
            (["--SIZE", "64"], "did you mean --size?"),
            (["--s", "64"], "it may be --size, --scale, --shift, --stokes"),
            (["-s", "64"], "one of --size, --scale, --stokes"),
            (["--stoke-s", "I"], "did you mean --stokes?"),
            (["--weight", "briggs", "0"], "did you mean --weight briggs:0?"),
            (["--size", "64", "48"], "did you mean --size 64,48?"),
            (["--scale", "1", "asec"], "did you mean --scale 1asec?"),
            (["--weight", "0"], "did you mean briggs:0?"),
            (["--weighting", "briggs", "--robust", "0.5"],
             "did you mean --weight briggs:R, with the number of --robust?"),
            (["--deconvolver", "mtmfs"], "--join-channels --fit-spectral-pol NTERMS?"),
            (["--specmode", "cube"], "did you mean --frame lsrk --cube"),
            (["-join-channels"], "did you mean --join-channels")]:
        refused(suite, " ".join(words), [meant], obs, *SMALL, *words)
    plain = [obs, *SMALL, "--overwrite", "-q", "--no-psf", "-o"]
    images = {}
    for name, words in [("plain", ["--scale", "20asec", "--weight", "briggs:0"]),
                        ("quote", ["--scale", '20"', "--weight", "briggs 0"]),
                        ("minute", ["--scale", "0.333333333333333333'", "--weight", "robust:0"]),
                        ("word", ["--scale", "20 arcsec", "--weight", "Robust=0"])]:
        result = tessera("image", *plain, suite.path(name), *words, "--stokes", "i")
        if suite.ran(f"{name}: {words}", result):
            images[name] = read_image(suite.path(name + "-dirty.fits"))[0]
            suite.true(f"{name}: the same image", np.array_equal(images[name],
                                                                 images["plain"]))
    names = ["SIMULATED", "simulated", "Simulated"]
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    for ending in [".uvfits"] + ([".ms"] if have_ms() else []):
        made = simulate(suite.path("named" + ending), sky, duration="2min")
        for field in names:
            result = tessera("image", made, *SMALL, "--overwrite", "-q", "--no-psf",
                             "--field", field, "-o", suite.path("field"))
            suite.ran(f"--field {field} of {ending}", result)
        refused(suite, f"--field of another name of {ending}", ["3C286", "SIMULATED"], made,
                *SMALL, "--field", "3C286")


def check_stokes(suite):
    """What correlations cannot make, what they lack, and what can be made."""
    for name, first, corrs, asked, words in [
            ("circular", -1, 2, "IQUV", ["Q and U cannot be made from RR,LL",
                                         "RL,LR are missing", "--stokes IV can be"]),
            ("linear", -5, 2, "iquv", ["U and V cannot be made from XX,YY",
                                       "XY,YX are missing", "--stokes IQ can be"]),
            ("one", -5, 1, "I", ["I cannot be made from XX", "YY is missing",
                                 "--stokes XX can be"]),
            ("linear", -5, 2, "RR", ["RR cannot be made from XX,YY"])]:
        refused(suite, f"{name}: --stokes {asked}", words, observe(suite, name, first, corrs),
                *SMALL, "--stokes", asked)
    obs = [observe(suite, "circular", -1, 2), observe(suite, "full", -1, 4)]
    warned(suite, "one of two sets cannot make Q", ["circular.uvfits: 240 rows are left out",
                                                     "RL,LR are missing"],
           *obs, "--size", "32", "--scale", "1asec", "--stokes", "Q")
    if have_ms():
        sky = write_sky(suite.path("one.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
        made = simulate(suite.path("circular.ms"), sky, duration="2min",
                        extra=("--pol", "RR,LL"))
        refused(suite, "MeasurementSet: --stokes IQUV", ["Q and U cannot", "--stokes IV"],
                made, *SMALL, "--stokes", "IQUV")


def reach(path, freq, shortest=0.0, longest=np.inf):
    """The largest |u| or |v| of baselines of such lengths, in wavelengths."""
    uvw = uvfits.read(path)[0]
    u, v = (np.abs(uvw[:, k, None]) * freq / C_M_S for k in (0, 1))
    length = np.hypot(u, v)
    return np.maximum(u, v)[(length >= shortest) & (length <= longest)].max()


def check_scale(suite):
    """Pixels that are too large: the scale that is named keeps all, of what is selected,
    and is less than three digits below the largest that does."""
    obs = observe(suite, "long")
    freq = 1e9 + 1e7 * np.arange(3)
    for what, scale, select, lengths in [
            ("all too long", "30deg", [], (0, np.inf)), ("many too long", "5amin", [], (0, np.inf)),
            ("many of a range", "5amin", ["--uvrange", "100:700"], (100, 700))]:
        # without a PSF, whose beam such pixels may hide, too
        options = ["--size", "2" if "deg" in scale else "32", "--no-psf", *select]
        result = tessera("image", obs, "--scale", scale, *options, "--overwrite", "-q", "-o",
                         suite.path("coarse"))
        suite.ran(what, result, 2 if "deg" in scale else 0)
        found = re.search(r"--scale \S+ is too large .* --scale ([\d.]+)(amin|asec)",
                          result.err)
        if not suite.true(f"{what}: a scale is named: {result.err.strip()}", found):
            continue
        asec = float(found[1]) * (60 if found[2] == "amin" else 1)
        largest = 0.5 / reach(obs, freq, *lengths) / ASEC
        suite.true(f"{what}: {asec} asec, largest {largest}",
                   largest * 0.99 <= asec < largest)
        words = ["--scale", f"{found[1]}{found[2]}", *options]
        kept = dict(last_lines(tessera("image", obs, *words, "--overwrite", "-o",
                                       suite.path("coarse"))))
        suite.true(f"{what}: that scale keeps all", " used, " in kept["visibilities"]
                   and "beyond the grid" not in kept["visibilities"])
        if "deg" in scale:
            refused(suite, what, [found[0]], obs, "--scale", scale, *options)
        else:
            warned(suite, what, [found[0]], obs, "--scale", scale, *options)
    refused(suite, "all outside --uvrange", ["240", "outside --uvrange"][1:], obs, *SMALL,
            "--uvrange", "1M:")


def check_channels(suite):
    """--channels beyond a window: clipped with a warning, or refused."""
    sets = [observe(suite, "three")]
    if have_ms():
        sky = write_sky(suite.path("chan.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
        sets.append(simulate(suite.path("three.ms"), sky, duration="2min",
                             extra=("--channels", "3")))
    few = ["--size", "32", "--scale", "1asec"]
    for obs in sets:
        warned(suite, f"clipped channels of {os.path.basename(obs)}",
               ["--channels 1:99", "the 3 channels"], obs, *few, "--channels", "1:99")
        warned(suite, f"all channels of {os.path.basename(obs)}", [], obs, *few,
               "--channels", "1:3", count=0)
        refused(suite, f"channels of {os.path.basename(obs)} that are not there",
                ["3:5", "3"], obs, *few, "--channels", "3:5")


def check_no_w(suite):
    """--w none: one warning with the largest phase that is left out and the distance of 0.1 rad, if any
    phase is larger."""
    obs, small, wide = observe(suite, "flat"), 32, 256
    uvw = uvfits.read(obs)[0]
    turns = 2 * np.pi * np.abs(uvw[:, 2]).max() * (1e9 + 2e7) / C_M_S  # rad for each n - 1

    def phase(side, scale=60 * ASEC):  # at the corner, of pixel 0
        return turns * (1 - np.sqrt(1 - 2 * (side // 2 * scale) ** 2))

    suite.true(f"phases {phase(small)}, {phase(wide)}", phase(small) < .1 < phase(wide))
    options = ["--scale", "60asec", "--no-psf", "--w"]
    warned(suite, "a narrow field", [], obs, "--size", small, *options, "none", count=0)
    warned(suite, "a wide field with w", [], obs, "--size", wide, *options, "auto", count=0)
    warned(suite, "a wide field without w", [f"up to {phase(wide):.2g} rad", "--w auto"], obs, "--size",
           wide, *options, "none")
    said = tessera("plan", obs, "--size", wide, "--scale", "60asec", "--w", "none")
    found = re.search(r"0\.1 rad beyond ([\d.]+)(deg|amin|asec)", said.err)
    if suite.true(f"a distance is named by plan: {said.err.strip()}", found):
        asec = float(found[1]) * {"deg": 3600, "amin": 60, "asec": 1}[found[2]]
        # rounded down to three digits
        suite.below("its phase less 0.1 rad, of it", abs(
            turns * (1 - np.cos(asec * ASEC)) / .1 - 1), .02)


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
    result = tessera("plan", obs, "--size", 512, "--scale", "20asec", "--niter", 9999,
                     "--auto-threshold", 3)
    suite.ran("plan of cleaning", result)
    found = re.search(r"guess +from sources up to about \S+ \S+ and noise of \S+ \S+: (\d+) "
                      r"major iterations, (\S+) s of residual images; (\S+) minor ones, (\S+) s",
                      result.out)
    time = re.search(r"time +about .* clean (\S+) s", result.out)
    suite.true(f"what cleaning takes is guessed, and counted: {result.out[-700:]}", found and time
               and time.group(1) == found.group(4) and int(found.group(1)) > 0)


def check_compare(suite):
    """Images of different sizes: the reason, and no numbers of pixels."""
    paths = [uvfits.write_model(suite.path(f"{n}.fits"), np.ones((n, n)), 60 * ASEC)
             for n in (16, 24)]
    result = tessera("compare", *paths)
    suite.ran("compare images of different sizes", result, 5)
    suite.true(f"reason only: {result.out.strip()}", "16 pixels" in result.out
               and "24" in result.out and "L2" not in result.out)


LABELS = ["observation", "data column", "visibilities", "weighting", "beam", "peak", "rms",
          "noise", "seconds", "files"]
UNITS = {"Jy": 1, "mJy": 1e-3, "uJy": 1e-6, "nJy": 1e-9}
STAGES = "stage         slowest"


def last_lines(result):
    """Label and text of the lines that end the log, in order."""
    found = []
    for line in reversed(result.err.splitlines()):
        match = re.match(r"\[ *[\d.]+ s\] ([^:]+): +(.*)", line)
        if not match or match[1] == "plan":
            break
        found.insert(0, (match[1], match[2]))
    return found


def flux(text):
    number, unit = re.match(r"(\S+) (\w+)/beam", text).groups()
    return float(number) * UNITS[unit]


def make_noise(suite, name, same=False, rows=4000):
    """Nothing but noise of the weights, a few samples of which are not used."""
    rng = np.random.default_rng(5)
    shape = (rows, 4, 2)
    weight = rng.uniform(20, 300, shape).astype("f4")
    weight[..., 1] = weight[..., 0]     # both hands, as those of most receivers
    sigma = 1 / np.sqrt(weight)
    vis = sigma * (rng.normal(size=shape) + 1j * rng.normal(size=shape))
    weight[:7, 1] = -1                  # flagged, as is what has no weight in UVFITS
    weight[7:9, 2] = 0
    vis[9, 0] = np.nan
    path = suite.path(name + ".uvfits")
    uvw = uvfits.random_tracks(rows, 450.0)
    uvw[-3:] = 4000, 0, 0               # beyond the grid
    uvfits.write(path, uvw, 1e9 + 1e7 * np.arange(4), vis, weight)
    good = np.ones(shape[:2], bool)
    good[:7, 1] = good[7:9, 2] = good[9, 0] = good[-3:] = False
    return path, weight[..., 0], good


def check_last_lines(suite):
    """What an astronomer wants to know, on any number of ranks: numbers that are those of
    the files, and a noise that is there. Stages and memory are for --verbose and logs."""
    fits = fits_module()
    from astropy.coordinates import SkyCoord
    from astropy.wcs import WCS
    obs, weight, good = make_noise(suite, "noise")
    image = ("image", obs, "--size", "96,80", "--scale", "20asec", "--reproducible",
             "--overwrite")
    for weighting, words in (("natural", "natural"), ("briggs:0.5", "Briggs, robust 0.5"),
                             ("uniform", "uniform"), ("XX", "Briggs, robust 0")):
        prefix, profile = suite.path("told"), suite.path("told.json")
        options = ["--stokes", "XX"] if weighting == "XX" else ["--weight", weighting]
        lines = {}
        for ranks, more in [(r, m) for r in RANKS for m in ([], ["--memory", "2MB"])]:
            label = " ".join([weighting, str(ranks), *more])
            result = tessera(*image, *options, *more, "--profile", profile, "-o", prefix,
                             ranks=ranks)
            if not suite.ran(f"last lines, {label}", result):
                continue
            found = lines[label] = last_lines(result)
            suite.equal(f"{label}: labels", [name for name, _ in found], LABELS)
            suite.true(f"{label}: no stages on the terminal", STAGES not in result.err
                       and "in communication" not in result.err)
        found = dict(next(iter(lines.values())))
        for label, other in lines.items():
            suite.equal(f"{label}: as on one rank",
                        [text for name, text in other if name != "seconds"],
                        [text for name, text in found.items() if name != "seconds"])
        with open(profile) as f, open(prefix + ".log") as log:
            totals, told = json.load(f)["totals"], log.read()
        suite.true("stages in log and profile", STAGES in told and "hosts: " in told
                   and "memory per rank at most" in told and totals["stages"]["grid"])
        with fits.open(prefix + "-dirty.fits") as hdus:
            pixels, header = np.array(hdus[0].data[0, 0], "f8"), hdus[0].header
        suite.equal("weighting", found["weighting"], words)
        suite.equal("visibilities", found["visibilities"], f"{good.sum()} used, "
                    f"{good.size - good.sum()} ignored: 9 flagged, 1 not finite, 12 beyond the grid (too long for --scale)")
        suite.equal("the profile's", totals["visibilities"], good.sum())
        # three digits, four of the peak
        beam = re.match(r"(\S+) x (\S+) arcsec, PA (\S+) deg", found["beam"])
        for text, key, unit in zip(beam.groups(), ("BMAJ", "BMIN", "BPA"), (3600, 3600, 1)):
            suite.below(f"{weighting}: {key}", abs(float(text) / header[key] / unit - 1), 6e-3)
        y, x = np.unravel_index(np.abs(pixels).argmax(), pixels.shape)
        suite.below(f"{weighting}: peak", abs(flux(found["peak"]) / pixels[y, x] - 1), 6e-4)
        ra, dec = found["peak"].split(" at ")[1].split()
        place = WCS(header).celestial.pixel_to_world(x, y)
        # told to 1 arcsec and 0.1 s
        suite.below(f"{weighting}: place of the peak [arcsec]", place.separation(SkyCoord(
            ra, dec, unit=("hourangle", "deg"), frame=place.frame)).arcsec, 1.0)
        rms = np.sqrt(np.mean(pixels ** 2))
        suite.below(f"{weighting}: rms", abs(flux(found["rms"]) / rms - 1), 6e-3)
        noise = flux(found["noise"])
        suite.true("expected from weights", found["noise"].endswith("from the weights"))
        # the rms of n independent pixels scatters by 1/sqrt(2 n); the beam has some 20
        # pixels in natural weighting: n > 380, so that 5 sigma are 0.18
        suite.below(f"{weighting}: noise / rms - 1", abs(noise / rms - 1), 0.18)
        if weighting == "natural":      # of two hands, each of that weight
            exact = 1 / np.sqrt(2 * weight[good].sum())
            suite.below("natural: noise", abs(noise / exact - 1), 6e-3)
    result = tessera(*image, "--verbose", "-o", suite.path("told"))
    suite.true("--verbose: stages, and then the last lines", STAGES in result.err and
               "memory per rank at most" in result.err and "hosts: " in result.err and
               [name for name, _ in last_lines(result)][-10:] == LABELS)
    suite.true("--quiet: nothing", not tessera(*image, "--quiet", "-o",
                                               suite.path("told")).err)


def check_last_lines_of_many(suite):
    """A line for each of a few images, ranges of many: never more than twelve lines. The
    numbers of teams of ranks are those of one."""
    obs, weight, good = make_noise(suite, "many")
    image = ("image", obs, "--size", "96,80", "--scale", "20asec", "--reproducible",
             "--overwrite", "--weight", "natural")
    few = ["--channels-out", "2"]
    many = ["--channels-out", "4", "--intervals-out", "2", "--stokes", "I,XX"]
    for options in (few, many):
        wanted = None
        for ranks, more in [(1, [])] + [(3, []), (3, forced(teams=3))][:len(RANKS) * 2 - 2]:
            label = " ".join([*options, str(ranks), *more])
            result = tessera(*image, *options, *more, "-o", suite.path("of-many"),
                             ranks=ranks)
            if not suite.ran(label, result):
                continue
            found = [line for line in last_lines(result) if line[0] != "seconds"]
            suite.true(f"{label}: {len(found)} lines", 9 <= len(found) <= 11)
            wanted = wanted or found
            suite.equal(f"{label}: as on one rank", found, wanted)
            told = dict(found)
            if options == few:
                suite.equal(f"{label}: images", told["images"], "3")
                for name, chans in (("0000", [0, 1]), ("0001", [2, 3]), ("MFS", range(4))):
                    used = good[:, chans]
                    exact = 1 / np.sqrt(2 * weight[:, chans][used].sum())
                    noise = flux(told[name].split("from the weights ")[1])
                    suite.below(f"{label}: noise of {name}", abs(noise / exact - 1), 6e-3)
                suite.equal(f"{label}: files", told["files"].split(" in ")[0], ", ".join(
                    f"of-many-{name}" for name in
                    ["0000-dirty.fits", "0000-psf.fits", "0001-dirty.fits", "0001-psf.fits",
                     "MFS-dirty.fits", "MFS-psf.fits"]) + ", of-many.conf, of-many.log")
            else:
                suite.equal(f"{label}: images", told["images"], "20")
                low, high = re.match(r"(.*) \(.*-MFS-I\) to (.*) \(.*-XX\) expected",
                                     told["noise"]).groups()
                suite.true(f"{label}: noise {low} {high}", 0 < flux(low) < flux(high))
                suite.true(f"{label}: files {told['files']}",
                           "t0000-0000-I-dirty.fits ... " in told["files"]
                           and "(30 files)" in told["files"])


def check_no_beam(suite):
    """One warning that says why, and no beam in the headers."""
    fits, freq = fits_module(), np.array([1e9])
    tracks = uvfits.random_tracks(400, 450.0)
    line, point = tracks.copy(), np.zeros_like(tracks)
    line[:, 1:] = 0
    for name, uvw, size, scale, says in (
            ("narrow", tracks, "64", "100asec", "smaller --scale"),
            ("line", line, "128", "20asec", "one direction"),
            ("point", point, "64", "20asec", "length 0"),
            ("few", tracks, "2", "20asec", "larger --size")):
        obs = suite.path(name + ".uvfits")
        uvfits.write(obs, uvw, freq, np.ones((400, 1, 2), "c8"), np.ones((400, 1, 2)))
        for ranks in RANKS:
            prefix, label = suite.path(f"{name}-{ranks}"), f"no beam, {name}, {ranks} ranks"
            result = tessera("image", obs, "--size", size, "--scale", scale, "-o", prefix,
                             "--weight", "natural", ranks=ranks)
            if not suite.ran(label, result):
                continue
            warned = [s for s in result.err.splitlines() if "no beam" in s]
            suite.true(f"{label}: {warned}", len(warned) == 1 and says in warned[0]
                       and warned[0].startswith("tessera: warning: "))
            suite.equal(f"{label}: last lines", dict(last_lines(result))["beam"],
                        "none could be fitted")
            for kind in ("dirty", "psf"):
                suite.true(f"{label}: header of {kind}", not {"BMAJ", "BMIN", "BPA"} & set(
                    fits.getheader(f"{prefix}-{kind}.fits")))


def main():
    suite = Suite("what_it_says")
    for check in (check_help, check_convolve, check_version, check_info, check_info_flags,
                  check_info_windows, check_info_numbers,
                  check_data_column, check_options, check_stokes, check_scale, check_channels, check_no_w,
                  check_plan, check_compare, check_last_lines,
                  check_last_lines_of_many, check_no_beam):
        check(suite)
    suite.finish()


if __name__ == "__main__":
    main()
