#!/usr/bin/env python3
"""MeasurementSets damaged at random never end the program by a signal: bytes of their
files are changed, cut off or zeroed, and values, rows and columns of their tables are
changed by casacore itself. Each run ends, with one line that names the set where it does
not succeed; on one rank and on three. Sets that once crashed it are tried first.

usage: ms_damage.py [--full] [--seed N] [--count N]
"""
import os
import random
import shutil
import sys
import tarfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "faults"))
from bad_input import IMAGE, RANKS  # noqa: E402
from e2e import (ASEC, FULL, ROOT, SLOWER, Suite, casacore_python, have_ms, run,  # noqa: E402
                 simulate, skip, tessera, write_sky)
import uvfits  # noqa: E402

SPOIL = os.path.join(HERE, "..", "faults", "spoil_ms.py")
# What a damaged set may be called: fine (the damage is where nothing is read), in need of
# a choice that its damage has made ambiguous, damaged, or too large for this machine.
ENDS = (0, 2, 3, 4)
# A damaged length has casacore fill 2 GB before it finds the file too short: 7 s of a processor, which
# took more than a minute where others had 20 processes on each. What hangs does so for longer.
TIMEOUT = 600


def option(name, otherwise):
    return int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else otherwise


def commands(suite, ms, model):
    """One of each that reads a set."""
    out = suite.path("out")
    return {"info": ["info", ms],
            "plan": ["plan", ms, *IMAGE],
            "image": ["image", ms, *IMAGE, "-o", out, "--overwrite"],
            "predict": ["predict", ms, "--model", model, "--center=60deg,-30deg", "-o",
                        out + ".uvfits", "--overwrite"]}


def judge(suite, what, result, ms, allowed=ENDS):
    """True when it ended as it should; only what does not is printed."""
    lines = result.errors()
    good = not result.hung and result.status in allowed and (
        result.status == 0 or (len(lines) == 1 and ms in lines[0]))
    if not good:
        suite.record(False, f"{what}: status {result.status}"
                            f"{' (hung)' if result.hung else ''}, {lines or result.err[-500:]}")
    return good


def check_known(suite, model):
    """Sets that ended the program by SIGABRT, SIGSEGV and SIGFPE."""
    base = os.environ.get("TESS_TEST_DATA") or os.path.join(ROOT, "..", "shared")
    folder = os.path.join(base, "data", "hostile")
    archives = sorted(f for f in os.listdir(folder) if f.endswith(".ms.tgz")) \
        if os.path.isdir(folder) else []
    if not archives:
        suite.skipped("no reference data (data/hostile); set TESS_TEST_DATA")
    for name in archives:
        with tarfile.open(os.path.join(folder, name)) as archive:
            archive.extractall(suite.work)
        ms = suite.path(name.removesuffix(".tgz"))
        for what, command in commands(suite, ms, model).items():
            several = len(RANKS) > 1 and (FULL or what == "image")
            for ranks in (1, 2, 3) if several else (1,):
                result = tessera(*command, ranks=ranks, timeout=TIMEOUT)
                label = f"{name}, {what}, {ranks} ranks"
                if judge(suite, label, result, ms, (3,)):
                    suite.record(True, f"{label}: {result.errors()[0]}")
        shutil.rmtree(ms)


# One byte of a simulated set: file, place, value. The first made the shape of a tile huge, on
# which casacore crashes where several cells are read before any other; the second the size
# of a cache, for which it takes whatever memory there is.
KNOWN_BYTES = [("table.f5", 228, 0xCE), ("DATA_DESCRIPTION/table.f0", 41, 0xA8)]


def check_known_bytes(suite, good, model):
    # the address sanitizer's own memory allows no limit: the second would take all there is
    for name, at, value in KNOWN_BYTES if SLOWER == 1 else KNOWN_BYTES[:1]:
        ms = suite.path("byte.ms")
        shutil.copytree(good, ms)
        with open(os.path.join(ms, name), "r+b") as f:
            f.seek(at)
            f.write(bytes([value]))
        for what, command in commands(suite, ms, model).items():
            result = tessera(*command, timeout=TIMEOUT)
            label = f"byte {at} of {name} is {value}, {what}"
            if judge(suite, label, result, ms, (3,)):
                suite.record(True, f"{label}: {result.errors()[0]}")
        shutil.rmtree(ms)


def files_of(ms):
    """Those that are read: of the main table and of some subtables."""
    found = []
    for name in ("", "ANTENNA", "DATA_DESCRIPTION", "FIELD", "OBSERVATION",
                 "POLARIZATION", "SPECTRAL_WINDOW"):
        folder = os.path.join(ms, name)
        found += [os.path.join(folder, f) for f in os.listdir(folder)
                  if f.startswith("table.") and f not in ("table.lock", "table.info")]
    return sorted(f for f in found if os.path.getsize(f) > 0)


def damage_bytes(ms, rng):
    """Change one file or two; returns what was done."""
    done = []
    for _ in range(rng.choice((1, 1, 2))):
        path = rng.choice(files_of(ms))
        size = os.path.getsize(path)
        with open(path, "rb") as f:
            raw = bytearray(f.read())
        way = rng.choice(("flip", "flip", "flip", "number", "number", "zero", "cut",
                          "grow", "swap"))
        # most of what can go wrong is in headers: at the start, or the end
        at = rng.choice((rng.randrange(size), rng.randrange(min(size, 1000)),
                         size - 1 - rng.randrange(min(size, 1000))))
        if way == "flip":
            for _ in range(rng.choice((1, 2, 8))):
                raw[min(size - 1, at + rng.randrange(16))] = rng.randrange(256)
        elif way == "number":  # of four bytes, of either order
            number = rng.choice((0, 1, -1, 2**31 - 1, -2**31, 65536, 2**24, 1000))
            raw[at:at + 4] = number.to_bytes(4, rng.choice(("big", "little")), signed=True)
        elif way == "zero":
            end = min(size, at + rng.choice((4, 64, 4096)))
            raw[at:end] = bytes(end - at)
        elif way == "cut":
            del raw[at:]
        elif way == "grow":
            raw += rng.randbytes(rng.choice((1, 100, 5000)))
        else:
            other = rng.randrange(size)
            raw[at:at + 64], raw[other:other + 64] = raw[other:other + 64], raw[at:at + 64]
        with open(path, "wb") as f:
            f.write(raw)
        done.append(f"{way} at {at} of {os.path.relpath(path, ms)}")
    return ", ".join(done)


def damage_values(ms, rng, python):
    """Have casacore change a value, a row or a column; None where it refuses."""
    seed = rng.randrange(1 << 30)
    done = run([python, SPOIL, ms, f"random-{seed}"], 120)
    return f"random-{seed}: {done.out.strip()}" if done.status == 0 else None


def check_random(suite, sets, model, seed, count):
    rng = random.Random(seed)
    python = casacore_python()
    if not python:
        suite.skipped("values of tables: casacore's Python module is not there")
    ends, failures = {}, 0
    for k in range(count):
        ms = suite.path("damaged.ms")
        shutil.rmtree(ms, ignore_errors=True)
        shutil.copytree(rng.choice(sets), ms)
        by_value = python and k % 4 == 3
        what = damage_values(ms, rng, python) if by_value else damage_bytes(ms, rng)
        if what is None:
            continue
        every = commands(suite, ms, model)
        # `info` reads everything and starts quickly; the others now and then
        name = rng.choice(("info", "info", "info", "plan", "image", "predict"))
        ranks = rng.choice(RANKS) if k % 8 == 0 else 1
        result = tessera(*every[name], ranks=ranks, timeout=TIMEOUT)
        label = f"seed {seed}, number {k}, {name}, {ranks} ranks: {what}"
        if not judge(suite, label, result, ms):
            failures += 1
            if FULL or "--keep" in sys.argv:
                shutil.copytree(ms, suite.path(f"failed-{seed}-{k}.ms"))
        ends[result.status] = ends.get(result.status, 0) + 1
    suite.equal(f"seed {seed}: bad ends of {count} (statuses {ends})", failures, 0)
    suite.true("some are refused and some are not", ends.get(3, 0) > count // 10 and
               ends.get(0, 0) > count // 20)


def main():
    if not have_ms():
        skip("built without MeasurementSets")
    suite = Suite("ms_damage")
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    sets = [simulate(suite.path("good.ms"), sky, duration="4min", integration="2min",
                     channels=2)]
    small = os.path.join(os.environ.get("TESS_TEST_DATA") or
                         os.path.join(ROOT, "..", "shared"), "data", "ms", "lofar-bda.ms")
    if os.path.isdir(small):  # written by another package, with other storage managers
        sets.append(shutil.copytree(small, suite.path("lofar.ms")))
        for folder, _, names in os.walk(sets[-1]):
            os.chmod(folder, 0o755)
            for name in names:
                os.chmod(os.path.join(folder, name), 0o644)
    model = uvfits.write_model(suite.path("model.fits"), np.ones((64, 64)), 60 * ASEC)
    check_known(suite, model)
    check_known_bytes(suite, sets[0], model)
    check_random(suite, sets, model, option("--seed", 1),
                 option("--count", 1500 if FULL else 40))
    suite.finish()


if __name__ == "__main__":
    main()
