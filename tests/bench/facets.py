#!/usr/bin/env python3
"""Times dirty images of one observation as one image and by facets with solutions, and prints a line of
CSV for each run: seconds, those of processors, and the peak memory of the largest process. --set makes
the observation first, as clean_wsclean.py does; --size and --scale give another image of it. Facets are
equal rectangles, and each has solutions of its own every four minutes and four channels. --ranks: the
same on several ranks, with as many threads in all. --wsclean: WSClean, too, with its facets and the same
solutions. --smoke: a small one, to show that it runs. Skipped without h5py."""
import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time

import numpy as np

try:
    import h5py
except ImportError:
    h5py = None

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import clean_wsclean
from e2e import BIN, casacore_python, mpi_environment, mpiexec, offset_radec, skip

WORK = clean_wsclean.WORK
PROFILE = os.path.join(WORK, "profile.json")
SOLUTION_S, SOLUTION_CHANNELS = 240.0, 4
DESCRIBE = """
import sys
import numpy as np
from casacore.tables import table
ms, out = sys.argv[1:]
np.savez(out, antennas=table(ms + "/ANTENNA", ack=False).getcol("NAME"),
         times=np.unique(table(ms, ack=False).getcol("TIME")),
         freq=table(ms + "/SPECTRAL_WINDOW", ack=False).getcell("CHAN_FREQ", 0))
"""


def rectangles(count):
    """Borders x0, x1, y0, y1 of so many facets, as shares of the image: rows of about equal numbers."""
    rows = max(1, round(count ** .5))
    numbers = [count * (k + 1) // rows - count * k // rows for k in range(rows)]
    return [(i / n, (i + 1) / n, k / rows, (k + 1) / rows) for k, n in enumerate(numbers) for i in range(n)]


def write_regions(path, count, side):
    """Returns the directions of the facets [degrees]."""
    directions = []
    with open(path, "w", encoding="utf-8") as file:
        file.write("fk5\n")
        for k, (x0, x1, y0, y1) in enumerate(rectangles(count)):
            def radec(x, y):
                return offset_radec(clean_wsclean.RA, clean_wsclean.DEC, (.5 - x) * side, (y - .5) * side)
            corners = [radec(x, y) for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))]
            directions.append(radec((x0 + x1) / 2, (y0 + y1) / 2))
            file.write("polygon(" + ",".join("%.9f,%.9f" % corner for corner in corners) + ")\n")
            file.write("point(%.9f,%.9f) # text=F%d\n" % (*directions[-1], k))
    return directions


def write_solutions(path, obs, directions):
    """Amplitudes around 1 and phases of half a radian, of two feeds."""
    facts = path + ".npz"
    subprocess.run([casacore_python(), "-c", DESCRIBE, obs, facts], check=True)
    with np.load(facts) as known:
        antennas, times, freq = (known[name] for name in ("antennas", "times", "freq"))
    step = max(1, round(SOLUTION_S / (times[1] - times[0])))
    axis = {"time": times[step // 2::step] if len(times) > step else times[:1],
            "freq": freq[SOLUTION_CHANNELS // 2::SOLUTION_CHANNELS],
            "ant": np.array([name.encode() for name in antennas]),
            "dir": np.array([b"[F%d]" % k for k in range(len(directions))], "S16"),
            "pol": np.array([b"XX", b"YY"])}
    shape = tuple(len(values) for values in axis.values())
    rng = np.random.default_rng(3)
    values = {"amplitude": 1 + .1 * rng.normal(size=shape), "phase": .5 * rng.normal(size=shape)}
    with h5py.File(path, "w") as file:
        group = file.create_group("sol000")
        group["source"] = np.array(list(zip(axis["dir"], np.deg2rad(directions))),
                                   dtype=[("name", "S128"), ("dir", "f4", (2,))])
        group["antenna"] = np.array([(name, (0, 0, 0)) for name in axis["ant"]],
                                    dtype=[("name", "S16"), ("position", "f4", (3,))])
        for name, numbers in values.items():
            table = group.create_group(name + "000")
            table.attrs["TITLE"] = np.bytes_(name)
            for key, of_axis in axis.items():
                table[key] = of_axis
            for key, data in (("val", numbers), ("weight", np.ones(shape))):
                table.create_dataset(key, data=data).attrs["AXES"] = np.bytes_("time,freq,ant,dir,pol")


def measure(command):
    """Seconds, and those of processors."""
    begin, before = time.time(), clean_wsclean.processor_seconds()
    subprocess.run(command, env=mpi_environment(), stdout=subprocess.DEVNULL, check=True)
    return time.time() - begin, clean_wsclean.processor_seconds() - before


def peak_of(program):
    """Memory of the largest process [MiB]: tessera's profile tells; of WSClean that of all children so
    far, of which it is the largest."""
    if program == "tessera":
        with open(PROFILE, encoding="utf-8") as file:
            return json.load(file)["totals"]["peak_memory_bytes"] / 2 ** 20
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def by_facets(count, files):
    if count == 0:
        return []
    return ["--facets", files[count][0], "--facet-solutions", files[count][1], "--soltabs",
            "amplitude000,phase000"]


def tessera(obs, size, scale, threads, ranks, facets):
    command = [BIN, "image", obs, "-o", os.path.join(WORK, "t"), "--size", str(size), "--scale",
               f"{scale}asec", "--threads", str(max(1, threads // ranks)), "--profile", PROFILE,
               "--overwrite", "-q", *facets]
    return [mpiexec(), "-n", str(ranks), *command] if ranks > 1 else command


def wsclean(obs, size, scale, threads, facets):
    own = ["-facet-regions", facets[1], "-apply-facet-solutions", facets[3], facets[5]] if facets else []
    return ["wsclean", "-quiet", "-name", os.path.join(WORK, "w"), "-size", str(size), str(size), "-scale",
            f"{scale}asec", "-weight", "briggs", "0", "-weighting-rank-filter", "0", "-use-wgridder",
            "-wgridder-accuracy", "1e-4", "-no-small-inversion", "-pol", "I", "-no-update-model-required",
            "-j", str(threads), "-temp-dir", WORK, *own, obs]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=sorted(clean_wsclean.SETS), default="meerkat-29M")
    parser.add_argument("--size", type=int)
    parser.add_argument("--scale", type=float, help="arcsec")
    parser.add_argument("--facets", default="1,10,50")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ranks", default="1")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--wsclean", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    if h5py is None or not casacore_python():
        skip("h5py or casacore's Python module is not installed")
    if args.wsclean and not shutil.which("wsclean"):
        skip("WSClean is not installed")
    os.makedirs(WORK, exist_ok=True)
    name, repeat = ("smoke", 1) if args.smoke else (args.set, args.repeat)
    obs, size, scale = clean_wsclean.observe(name)
    size, scale = args.size or size, args.scale or scale
    counts = [int(word) for word in args.facets.split(",")]
    files = {}
    for count in counts:
        files[count] = [os.path.join(WORK, f"{name}-{size}-{count}.{end}") for end in ("reg", "h5")]
        directions = write_regions(files[count][0], count, np.deg2rad(size * scale / 3600))
        write_solutions(files[count][1], obs, directions)
    print("CSV program,set,size,threads,ranks,facets,seconds,cpu_seconds,peak_mib", flush=True)
    for _ in range(repeat):
        for count in [0, *counts]:
            facets = by_facets(count, files)
            runs = [("tessera", ranks, tessera(obs, size, scale, args.threads, ranks, facets))
                    for ranks in (int(word) for word in args.ranks.split(","))]
            if args.wsclean:
                runs.append(("wsclean", 1, wsclean(obs, size, scale, args.threads, facets)))
            for program, ranks, command in runs:
                seconds, spent = measure(command)
                print(f"CSV {program},{name},{size},{args.threads},{ranks},{count},{seconds:.2f},{spent:.2f},"
                      f"{peak_of(program):.0f}", flush=True)


if __name__ == "__main__":
    main()
