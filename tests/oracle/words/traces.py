#!/usr/bin/env python3
"""--trace: what its file says is what the profile says.

A process for each rank, with a lane of stages, one of the reading thread, and one for each
thread that grids. In every lane spans are disjoint or nested; the stages' spans add up to
the profile's seconds, to which the profile rounds (a microsecond) and the trace (a
thousandth of one, at both ends of a span). The same files show that data which fit into
memory are read once, and that others are read while the pass before is gridded.
"""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import ASEC, Suite, forced, mpiexec, tessera
import uvfits


def load(path):
    with open(path) as f:
        return json.load(f)


def lanes_of(trace):
    """{(rank, lane name): [(begin, end, name)]} in microseconds."""
    names, spans = {}, {}
    for event in trace["traceEvents"]:
        key = event["pid"], event["tid"]
        if event["ph"] == "M" and event["name"] == "thread_name":
            names[key] = event["args"]["name"]
            spans.setdefault(key, [])
        elif event["ph"] == "X":
            spans[key].append((event["ts"], event["ts"] + event["dur"], event["name"]))
    return {(rank, names[rank, lane]): sorted(s, key=lambda x: (x[0], -x[1]))
            for (rank, lane), s in spans.items()}


def nested(spans):
    """Whether each span ends before the next begins, or holds it."""
    open_ends = []
    for begin, end, _ in spans:
        while open_ends and open_ends[-1] <= begin + 2e-3:
            open_ends.pop()
        if open_ends and end > open_ends[-1] + 2e-3:
            return False
        open_ends.append(end)
    return True


def check(suite, label, trace_path, profile_path, ranks, threads):
    trace, profile = load(trace_path), load(profile_path)
    lanes = lanes_of(trace)
    wanted = {(r, name) for r in range(ranks) for name in
              ["stages", "reading thread"] +
              [f"gridding thread {t}" for t in range(threads)]}
    suite.equal(f"{label}: lanes", sorted(lanes), sorted(wanted))
    names = [e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"]
    suite.equal(f"{label}: processes", [n.split(" on ")[0] for n in names],
                [f"rank {r}" for r in range(ranks)])
    suite.true(f"{label}: spans are nested", all(nested(s) for s in lanes.values()))
    worst = 0.0
    for rank in profile["ranks"]:
        spans = lanes[rank["rank"], "stages"]
        run = [s for s in spans if s[2] == "run"]
        suite.equal(f"{label}: one run on rank {rank['rank']}", len(run), 1)
        inside = all(run[0][0] <= b and e <= run[0][1] for b, e, _ in spans)
        suite.true(f"{label}: all stages within it", inside)
        for stage, told in rank["stages"].items():
            own = [e - b for b, e, name in spans if name == stage]
            allowed = 0.5e-6 + 1e-9 * len(own)
            worst = max(worst, abs(1e-6 * sum(own) - told["seconds"]) / allowed)
    suite.below(f"{label}: stages' spans against the profile, of what rounding may be",
                worst, 1.0 + 1e-6)
    first = min(b for s in lanes.values() for b, _, _ in s)
    # not from the epoch, nor from the start of the machine; a busy one may begin late
    suite.true(f"{label}: times count from the start", abs(first) < 60e6)


def check_overlap(suite, trace_path):
    """Of data that are read again, the second pass is being read before the first has been
    gridded."""
    lanes = lanes_of(load(trace_path))
    reads = [b for b, _, name in lanes[0, "reading thread"] if name == "read"]
    gridded = min(e for _, e, _ in lanes[0, "gridding thread 0"])
    # for their extent, to count bricks, and for each of the two passes
    blocks, rest = divmod(len(reads), 4)
    suite.equal(f"{len(reads)} blocks: four times all", rest, 0)
    before = sum(b < gridded for b in reads)
    suite.true(f"{before} of them are begun before the first pass is gridded, not "
               f"{3 * blocks}", before > 3 * blocks)


def check_read_once(suite, trace_path, profile_path, rows, channels):
    """Data that fit into memory are read once, for weights, PSF and dirty image. A row is
    48 bytes of coordinates, times and antennas, a sample 12 of a visibility and weight."""
    reads = [begin for begin, _, name in lanes_of(load(trace_path))[0, "reading thread"]
             if name == "read"]
    told = load(profile_path)["ranks"][0]["stages"]["read"]["bytes"]
    suite.true(f"{len(reads)} blocks: more than one", len(reads) > 1)
    suite.equal("bytes read: all data, once", told, rows * (48 + channels * 2 * 12))


def make_observation(suite, name, rows, channels):
    rng = np.random.default_rng(5)
    uvw = uvfits.random_tracks(rows, 900.0, 2.5, seed=8)
    shape = (rows, channels, 2)
    path = suite.path(name)
    uvfits.write(path, uvw, 1.2e9 + 4e7 * np.arange(channels),
                 1 + 0.3 * (rng.normal(size=shape) + 1j * rng.normal(size=shape)),
                 np.ones(shape))
    return path


def main():
    suite = Suite("traces")
    obs = make_observation(suite, "obs.uvfits", 3000, 4)
    trace, profile = suite.path("trace.json"), suite.path("profile.json")
    told = ["--trace", trace, "--profile", profile]
    image = [obs, "--size", "200", "--scale", "25asec", "--threads", "2", *told]
    for ranks, options in [(1, []), (3, ["--stokes", "I,Q"]), (2, forced(passes=2))]:
        if ranks > 1 and not mpiexec():
            continue
        ran, _ = suite.image("traced", *image, *options, ranks=ranks)
        if ran:
            check(suite, f"{ranks} ranks {' '.join(options)}", trace, profile, ranks, 2)
    # on one thread long enough for the reading thread to begin on any machine
    long = make_observation(suite, "long.uvfits", 60000, 8)
    ran, _ = suite.image("streamed", long, "--size", "150", "--scale", "33asec", "--threads",
                         "1", *told, "--weight", "natural", "--memory", "20MB",
                         "--accuracy", "1e-11", *forced(passes=2))
    if ran:
        check_overlap(suite, trace)
    ran, _ = suite.image("in memory", long, "--size", "150", "--scale", "33asec",
                         "--threads", "1", *told, "--weight", "briggs:0")
    if ran:
        check_read_once(suite, trace, profile, 60000, 8)
    left = [n for n in os.listdir(suite.path(".")) if ".tmp" in n]
    suite.equal("temporary files left", left, [])

    model = uvfits.write_model(suite.path("model.fits"), np.eye(64), 30 * ASEC)
    result = tessera("predict", obs, "--model", model, "-o", suite.path("p.uvfits"), *told,
                     "--overwrite")
    if suite.ran("predict", result):
        suite.true("predict: has stages", "grid" in
                   {s[2] for s in lanes_of(load(trace))[0, "stages"]})

    result = tessera("image", *image[:-4], "-o", suite.path("x"), "--trace",
                     suite.path("none/trace.json"))
    suite.equal("a trace that cannot be written: status", result.status, 3)
    result = tessera("image", *image[:-4], "-o", suite.path("x"), "--trace", obs)
    suite.equal("a trace in place of the observation: status", result.status, 3)
    suite.finish()


if __name__ == "__main__":
    main()
