#!/usr/bin/env python3
"""Measures how `tessera image` scales: FOLDER/study.json, study.csv, system.json and
metrics.json. run.sh calls this and makes pictures and a report of it.

Strong scaling images one set on every layout of ranks x threads. Weak scaling gives each
layout a set and an image in proportion to its cores: the observation with fewer
integrations, the image with fewer pixels of the same size (a smaller field of view). On
every core of the largest layout both are the same run. An observation given by --obs has
strong scaling only.
"""
import argparse
import csv
import datetime
import json
import math
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import time

import machine
import quality
import summary
from machine import write_json

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BIN = os.environ.get("TESS_BIN", os.path.join(ROOT, "build", "bin", "tessera"))

# Simulated sets: array, observation, and the image that suits it. `rows` is baselines x
# channels, so that the number of visibilities is rows x integrations; the usual number of
# visibilities is at --visibilities' default.
ARRAYS = {
    "meerkat": dict(rows=2016 * 16, seconds=7200, size=4096, scale_asec=1.1, options="""
        --layout meerkat --ra 60deg --dec=-30deg --hour-angle=-1h --freq 1.28GHz
        --chan-width 4MHz --channels 16"""),
    "low": dict(rows=32640 * 16, seconds=600, size=8192, scale_asec=5, options="""
        --layout ska1-low --max-radius 20km --antennas 256 --ra 60deg --dec=-27deg
        --hour-angle 0.75h --freq 150MHz --chan-width 1MHz --channels 16"""),
}


def arguments(words):
    parser = argparse.ArgumentParser(
        prog="run.sh", description="Strong and weak scaling of tessera image.",
        epilog="Options of tessera image may follow after '--', such as -- --weight "
               "briggs:0 --memory 64GB.")
    add = parser.add_argument
    add("--out", required=True, metavar="FOLDER", help="gets all results")
    add("--obs", help="observation to image instead of a simulated one (strong scaling)")
    add("--size", type=int, help="pixels along an edge (with --obs: needed)")
    add("--scale", help="size of a pixel, like 1.5asec (with --obs: needed)")
    add("--sky", help="sources in --obs, a CSV as tessera simulate takes it")
    add("--array", choices=sorted(ARRAYS), default="meerkat",
        help="simulated set: narrow field (meerkat) or wide field (low)")
    add("--visibilities", type=float, default=2.9e7, help="of it, about (default 2.9e7)")
    add("--layouts", help="RANKSxTHREADS,... (default: 1 thread on 1, 2, 4 ... cores, "
                          "then all cores as fewer ranks of more threads)")
    add("--weak", choices=("yes", "no"), default="yes", help="weak scaling too")
    add("--repeat", type=int, default=3, help="runs of each layout (default 3)")
    add("--within", type=float, metavar="MINUTES", help="begin second and later runs "
        "of a layout only while they would end, by its earlier ones, within this time of "
        "the study's first run")
    add("--undisturbed", type=float, metavar="X", help="on a node shared with others: "
        "take a run again, 20 times at most, while they used more than this share of its "
        "cores")
    add("--backend", choices=("cpu", "cuda"), default="cpu")
    add("--accuracy", default="1e-4")
    add("--cores", type=int, help="cores of all nodes that may be used (default: this "
                                  "node's x nodes of the Slurm job)")
    add("--launch", help="how to start, such as 'mpirun -n {ranks} --map-by "
                         "slot:PE={threads}' or 'srun -n {ranks} -c {threads}'")
    add("--carbon", type=float, metavar="G", help="g CO2e per kWh of electricity")
    add("--timeout", type=float, default=3600, help="seconds that a run may take")
    add("--data", metavar="FOLDER", help="for sets and images (default OUT/data)")
    add("extra", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.obs and not (options.size and options.scale):
        parser.error("--obs needs --size and --scale")
    if options.repeat < 1 or options.visibilities < 1:
        parser.error("--repeat and --visibilities are at least 1")
    options.data = options.data or os.path.join(options.out, "data")
    return options


# ---- layouts ----

def usual_layouts(cores):
    """One thread on 1, 2, 4 ... ranks up to all cores, then all cores as hybrids."""
    ranks = [2**k for k in range(cores.bit_length()) if 2**k <= cores]
    found = [(r, 1) for r in ranks] + ([(cores, 1)] if cores not in ranks else [])
    return found + [(cores // t, t) for t in ranks[1:] if cores % t == 0]


def parse_layouts(text):
    """[(ranks, threads)] of "1x1,4x8"."""
    try:
        found = [tuple(int(v) for v in word.split("x")) for word in text.split(",")]
        if all(len(f) == 2 and min(f) > 0 for f in found):
            return found
    except ValueError:
        pass
    raise SystemExit(f"run.sh: --layouts {text}: not like 1x1,4x8")


def launch_template(options, cores):
    """Function (ranks, threads) -> words of the command that starts them, bound to cores
    of their own where there are enough."""
    if options.launch:
        return lambda r, t: shlex.split(options.launch.format(ranks=r, threads=t))
    if os.environ.get("TESS_PMI"):  # in a Slurm job
        return lambda r, t: ["srun", f"--mpi={os.environ['TESS_PMI']}", "-n", str(r), "-c",
                             str(t), "--cpu-bind=cores"]
    if not shutil.which("mpirun"):
        return lambda r, t: []  # one rank needs none

    def mpirun(ranks, threads):
        if ranks * threads > cores:
            return ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
        return ["mpirun", "--bind-to", "core", "--map-by", f"slot:PE={threads}",
                "-n", str(ranks)]
    return mpirun


# ---- data sets ----

def even(value):
    return max(64, 8 * round(value / 8))


def simulated_set(options, kind, share):
    """Description of the set of so large a share of the strong one."""
    array = ARRAYS[options.array]
    size = options.size or array["size"]
    scale = options.scale or f"{array['scale_asec']}asec"
    times = max(1, round(options.visibilities / array["rows"] * share))
    return {"name": f"{options.array}-{times}", "kind": kind, "size":
            even(size * math.sqrt(share)), "scale": scale, "share": share,
            "simulate": array["options"].split() + [
                "--duration", f"{array['seconds']}s",
                "--integration", f"{array['seconds'] / times:.6g}s"]}


def given_set(options):
    return {"name": os.path.basename(options.obs.rstrip("/")), "kind": "strong",
            "size": options.size, "scale": options.scale, "share": 1.0, "simulate": None,
            "path": options.obs}


def make_set(options, data):
    """The file of a set, simulated if it is not there, and read once."""
    if data["simulate"] is not None:
        data["path"] = os.path.join(options.data, data["name"] + ".uvfits")
        if not os.path.exists(data["path"]):
            print(f"simulating {data['name']}", flush=True)
            subprocess.run([BIN, "simulate", "--quiet", "--sky", sky_of(options),
                            *data["simulate"], "-o", data["path"]], check=True)
    if os.path.isfile(data["path"]):
        with open(data["path"], "rb") as f:
            while f.read(1 << 24):
                pass
    return data


def sky_of(options):
    if options.obs:
        return options.sky
    return options.sky or os.path.join(ROOT, "jobs", "quickstart-sky.csv")


def points_of(options, layouts):
    """[(set, ranks, threads)] of the study, sets made."""
    strong = make_set(options, given_set(options) if options.obs
                      else simulated_set(options, "strong", 1.0))
    points = [(strong, r, t) for r, t in layouts]
    if options.obs or options.weak == "no":
        return points
    most = max(r * t for r, t in layouts)
    fewest_threads = min(t for _, t in layouts)
    for r, t in layouts:
        if t == fewest_threads or r * t < most:  # hybrids of all cores: as strong
            data = simulated_set(options, "weak", r * t / most)
            points.append((make_set(options, data), r, t))
    return points


# ---- runs ----

def image_command(options, data, ranks, threads, launch, profile, output):
    return launch(ranks, threads) + [
        BIN, "image", data["path"], "-o", output, "--size", str(data["size"]), "--scale",
        data["scale"], "--accuracy", options.accuracy, "--backend", options.backend,
        "--threads", str(threads), "--profile", profile, "--overwrite", "--quiet",
        *(options.extra or ["--weight", "natural"])]


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def node_busy_seconds():
    """CPU seconds that all processes of this node have used, stolen ones included."""
    words = machine.read("/proc/stat").split("\n", 1)[0].split()[1:9]
    user, nice, system, _, _, irq, softirq, steal = (int(w) for w in words)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def timed(command, timeout):
    """(seconds, CPU seconds of the ranks and of all others on this node, exit status, its
    words)."""
    begin, cpu, busy = time.perf_counter(), cpu_seconds(), node_busy_seconds()
    done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                          timeout=timeout)
    cpu = cpu_seconds() - cpu
    return (time.perf_counter() - begin, cpu, max(0.0, node_busy_seconds() - busy - cpu),
            done.returncode, done.stdout + done.stderr)


def one_run(options, point, repeat, launch, nodes):
    data, ranks, threads = point
    profile = os.path.join(options.data, "profile.json")
    if os.path.exists(profile):
        os.remove(profile)
    started = now()
    wall, cpu, others, status, words = timed(
        image_command(options, data, ranks, threads, launch, profile,
                      os.path.join(options.data, "image-" + data["kind"])),
        options.timeout)
    # The profile is the last thing that a job writes. Open MPI's launcher now and then
    # mistakes the end of such a job for a failure.
    if not os.path.exists(profile):
        raise SystemExit(f"run.sh: {ranks} x {threads} ended with {status}:\n{words}")
    with open(profile) as f:
        return record(json.load(f), data, ranks, threads) | {
            "repeat": repeat, "started": started, "ended": now(),
            "wall_s": round(wall, 4), "cpu_s": round(cpu, 3) if nodes == 1 else None,
            "others_share": round(others / wall / machine.cores_here(), 3)}


def undisturbed_run(options, point, repeat, launch, nodes):
    """The first run that others on this node hardly disturbed, else the least so."""
    best = None
    for _ in range(1 if options.undisturbed is None else 20):
        run = one_run(options, point, repeat, launch, nodes)
        if best is None or run["others_share"] < best["others_share"]:
            best = run
        if best["others_share"] <= (options.undisturbed or 0):
            break
    return best


def record(profile, data, ranks, threads):
    """What a study keeps of a profile; seconds of stages are the slowest rank's ("max")
    and the mean over ranks."""
    total = profile["totals"]
    return {
        "kind": data["kind"], "set": data["name"], "ranks": ranks, "threads": threads,
        "size": data["size"], "planes": summary.planes_of(profile["plan"]),
        "visibilities": total["visibilities"], "seconds": total["seconds"],
        "communication": total["communication_fraction"],
        "imbalance": total["grid_imbalance"]["measured"],
        "sent_bytes": total["sent_bytes"],
        "peak_memory_bytes": total["peak_memory_bytes"],
        "peak_memory_sum_bytes": total["peak_memory_sum_bytes"],
        "cpu_joules": total["cpu_joules"], "gpu_joules": total["gpu_joules"],
        "stages": {name: {"max_s": s["seconds"], "mean_s": s["mean_seconds"],
                          "mpi_s": s["mpi_mean_seconds"], "bytes": s["bytes"]}
                   for name, s in total["stages"].items()}}


def key_of(run):
    return (run["kind"], run["set"], run["ranks"], run["threads"], run["repeat"])


def fits(options, key, study, begin):
    """Whether a run, not the first of its layout, would end within --within."""
    if options.within is None or key[-1] == 0:
        return True
    longest = max((run["wall_s"] for run in study["runs"] if key_of(run)[:-1] == key[:-1]),
                  default=0)
    return time.perf_counter() - begin + longest <= 60 * options.within


def run_all(options, points, launch, nodes, study, path):
    """All runs that `study` does not hold yet; every second round backwards, so that a
    machine that gets slower or faster does so to both ends of the list."""
    done = {key_of(run) for run in study["runs"]}
    begin = time.perf_counter()
    for repeat in range(options.repeat):
        for point in points[::-1] if repeat % 2 else points:
            data, ranks, threads = point
            key = (data["kind"], data["name"], ranks, threads, repeat)
            if key in done or not fits(options, key, study, begin):
                continue
            run = undisturbed_run(options, point, repeat, launch, nodes)
            study["runs"].append(run)
            write_json(path, study)
            print(f"{data['kind']:6} {ranks:4} x {threads:<3} {run['seconds']:9.3f} s, "
                  f"with launcher {run['wall_s']:9.3f} s, communication "
                  f"{100 * run['communication']:5.1f} %, others "
                  f"{100 * run['others_share']:3.0f} %", flush=True)


# ---- triad ----

def build_triad(folder):
    """The compiled tests/bench/triad.c, or None without a compiler."""
    target = os.path.join(folder, "triad")
    source = os.path.join(ROOT, "tests", "bench", "triad.c")
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        return None
    built = subprocess.run([compiler, "-O3", "-march=native", "-pthread", source, "-o",
                            target], capture_output=True)
    return target if built.returncode == 0 else None


def triad_rates(folder, counts):
    """{cores: GB/s} of this node, the better of two rounds."""
    program = build_triad(folder)
    rates = {}
    for _ in range(2 if program else 0):
        for count in counts:
            done = subprocess.run([program, str(count)], capture_output=True, text=True)
            if done.returncode == 0:
                rate = json.loads(done.stdout)["gb_per_s"]
                rates[count] = max(rate, rates.get(count, 0))
    return rates


# ---- how alike cores are ----

# Gridding that takes some tenths of a second, as a stage does; and how often.
EVEN_BENCH = ("bench", "grid", "--backend", "cpu", "--threads", "1", "--vis", "4e6",
              "--accuracy", "1e-4", "--repeat", "1", "--quiet")
EVEN_ROUNDS = 5


def unevenness(cores):
    """How far the slowest core is above the mean, less 1, when each grids the same at the
    same time without MPI: what ranks of equal shares wait for each other. One value of
    each round; a node's cores only."""
    chosen = machine.cpus_of_cores()[:cores]
    found = []
    for _ in range(EVEN_ROUNDS if len(chosen) == cores > 1 else 0):
        running = [subprocess.Popen(
            [BIN, *EVEN_BENCH], stdout=subprocess.PIPE, text=True,
            preexec_fn=lambda cpu=cpu: os.sched_setaffinity(0, {cpu})) for cpu in chosen]
        tables = [list(csv.DictReader(p.communicate()[0].splitlines())) for p in running]
        seconds = [float(t[0]["seconds"]) for t in tables if t]
        if len(seconds) == cores:
            found.append(round(max(seconds) * cores / sum(seconds) - 1, 4))
    return found


# ---- files ----

def write_csv(path, runs):
    stages = list(runs[0]["stages"])
    columns = ["kind", "set", "size", "ranks", "threads", "repeat", "started", "ended",
               "visibilities", "seconds", "wall_s", "cpu_s", "others_share",
               "communication", "sent_bytes",
               "peak_memory_bytes", "peak_memory_sum_bytes", "cpu_joules", "gpu_joules"]
    with open(path, "w", newline="") as f:
        table = csv.writer(f)
        table.writerow(columns + [f"{s}_max_s" for s in stages] +
                       [f"{s}_mean_s" for s in stages])
        for run in runs:
            table.writerow([run[c] for c in columns] +
                           [run["stages"][s]["max_s"] for s in stages] +
                           [run["stages"][s]["mean_s"] for s in stages])


def public_words(words):
    """A command as a reader may repeat it: no folders of this machine."""
    return " ".join(shlex.quote(re.sub(r"(^|=)/(?:[^/]*/)*", r"\1", w)) for w in words)


def open_study(options, path, cores, nodes):
    """The study so far. One of other options is not gone on with."""
    settings = {"command": "bash jobs/scaling/run.sh " + public_words(sys.argv[1:]),
                "backend": options.backend, "accuracy": options.accuracy,
                "extra": " ".join(options.extra) or "--weight natural", "cores": cores,
                "nodes": nodes, "gpus": len(machine.gpus()) * nodes}
    if not os.path.exists(path):
        return {"format": 1, "settings": settings, "triad": {}, "unevenness": [],
                "sets": [], "runs": []}
    with open(path) as f:
        study = json.load(f)
    if study["settings"] | {"command": ""} != settings | {"command": ""}:
        raise SystemExit(f"run.sh: {path} is a study with other options: remove it, or "
                         "choose another --out")
    return study


def main():
    options = arguments(sys.argv[1:])
    os.makedirs(options.out, exist_ok=True)
    os.makedirs(options.data, exist_ok=True)
    nodes = int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))
    cores = options.cores or machine.cores_here() * nodes
    layouts = parse_layouts(options.layouts) if options.layouts else usual_layouts(cores)
    path = os.path.join(options.out, "study.json")
    study = open_study(options, path, cores, nodes)
    launch = launch_template(options, cores)
    if max(r for r, _ in layouts) > 1 and not launch(2, 1):
        raise SystemExit("run.sh: no mpirun: only layouts of one rank can run")
    study["launch"] = public_words(launch(max(r for r, _ in layouts), layouts[-1][1]))
    points = points_of(options, layouts)
    study["sets"] = [{k: v for k, v in data.items() if k != "path"}
                     for data in {id(p[0]): p[0] for p in points}.values()]
    if not study["triad"]:
        per_node = cores // nodes
        counts = sorted({min(r * t, per_node) for r, t in layouts} | {1})
        study["triad"] = {str(n): g for n, g in
                          triad_rates(options.data, counts).items()}
    run_all(options, points, launch, nodes, study, path)
    if options.backend == "cpu" and not study.get("unevenness"):
        study["unevenness"] = unevenness(max(r * t for r, t in layouts))
    study["quality"] = quality.of_image(
        BIN, options, points[0][0], sky_of(options),
        os.path.join(options.data, "image-strong"))
    write_json(path, study)
    write_csv(os.path.join(options.out, "study.csv"), study["runs"])
    write_json(os.path.join(options.out, "system.json"),
               machine.describe(BIN, options.data, nodes, options.carbon))
    write_json(os.path.join(options.out, "metrics.json"),
               summary.metrics(study, options.carbon))


if __name__ == "__main__":
    main()
