#!/usr/bin/env python3
"""Checkpoints whose numbers somebody has changed, with checksums that are right: a run that
continues from one refuses it, or makes something of it, but it neither crashes nor hangs.
Numbers of the text and of the files' headers: tests/unit/test_checkpoint.c. Here it is what
each rank has of data that are read in blocks, at every stage of a run.
"""
import os
import random
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))

from e2e import FULL, Suite, forced, mpiexec
from checkpoints import MANY_STEPS, STOPPED, end, fresh, generation, middle_observation, start

HEADER = 128  # bytes of a rank's file, the last 8 of which tell where its own part begins
NEXT_AT = 72  # in its own part, behind the section's number and eight numbers to compare
WORD = (1 << 64) - 1


def checksum(data):
    total = 0
    data += bytes(-len(data) % 8)
    for (word,) in struct.iter_unpack("<Q", data):
        total = (total ^ word) * 0x9E3779B97F4A7C15 & WORD
        total ^= total >> 32
    return total


def store(folder, rank, data):
    """A rank's file of the newest checkpoint, and a text that says so of it."""
    text_path = os.path.join(folder, "checkpoint")
    number = generation(text_path)
    with open(os.path.join(folder, f"checkpoint-{number}-{rank}"), "wb") as f:
        f.write(data)
    with open(text_path) as f:
        text = f.read()
    text = text[:text.rindex("checksum ")]
    lines = text.split("\n")
    first = next(k for k, line in enumerate(lines) if line.startswith("file "))
    lines[first + rank] = f"file {len(data)} {checksum(data):016x}"
    text = "\n".join(lines)
    with open(text_path, "w") as f:
        f.write(f"{text}checksum {checksum(text.encode()):016x}\n")


def load(folder, rank):
    number = generation(os.path.join(folder, "checkpoint"))
    with open(os.path.join(folder, f"checkpoint-{number}-{rank}"), "rb") as f:
        return f.read()


def own_begin(data):
    return struct.unpack_from("<q", data, HEADER - 8)[0]


# Runs, each stopped after one block, after which a checkpoint is kept: while data are looked
# through, densities and bricks are counted, and samples are received.
KEPT_AFTER = [0, 2, 5, 9, 14, 20, 27, 35]


def snapshots(suite, options, ranks, after):
    """Folders of a run that is stopped after every block: after these runs."""
    fresh(suite)
    kept, runs = [], 0
    while runs <= after[-1]:
        status, err = end(start(suite, [*options, "--resume", "--max-time", "0.001"], ranks))
        if status != STOPPED:
            break
        if runs in after:
            name = suite.path(f"kept-{ranks}-{runs}")
            shutil.copytree(suite.path("saved"), name)
            kept.append(name)
        runs += 1
    suite.equal(f"{ranks} ranks: stopped {runs} times: status", status, STOPPED)
    return kept


def changed(data, rng):
    """The file with one or two words of its own part changed, mostly near its beginning, where
    counts are."""
    begin = own_begin(data)
    words = bytearray(data)
    for _ in range(rng.choice([1, 1, 2])):
        num = (len(data) - begin) // 8
        at = begin + 8 * (rng.randrange(num) if rng.random() < 0.5
                          else min(rng.randrange(160), num - 1))
        was = struct.unpack_from("<Q", words, at)[0]
        value = rng.choice([0, 1, 2, WORD, 1 << 63, (1 << 63) - 1, 1 << 31, 1 << 32, 1 << 40,
                            1 << 61, was + 1, was - 1, was ^ 1 << rng.randrange(64),
                            rng.getrandbits(64), 0x7FF8000000000000, 0x7FEFFFFFFFFFFFFF])
        struct.pack_into("<Q", words, at, value & WORD)
    return bytes(words)


def errors(err):
    return [s for s in err.splitlines() if s.startswith("tessera: error:")]


def continue_from(suite, kept, options, ranks, rank, data):
    """Continue from a copy of a folder in which one rank's file has these data."""
    fresh(suite)
    shutil.copytree(kept, suite.path("saved"))
    store(suite.path("saved"), rank, data)
    return end(start(suite, [*options, "--resume"], ranks), 60)


def check_next(suite, options, kept, ranks):
    """The block that comes next is none of the data's, or another than on other ranks."""
    rank = ranks - 1
    data = bytearray(load(kept, rank))
    at = own_begin(data) + NEXT_AT
    for value, says in [(1 << 40, "a block that the data do not have"),
                        (-1, "a block that the data do not have"),
                        *([(0, "not at one place")] if ranks > 1 else [])]:
        struct.pack_into("<q", data, at, value)
        status, err = continue_from(suite, kept, options, ranks, rank, bytes(data))
        label = f"{ranks} ranks, block {value} on rank {rank}"
        suite.equal(f"{label}: status", status, 3)
        suite.true(f"{label}: one line: {errors(err)}",
                   len(errors(err)) == 1 and says in errors(err)[0])


def check(suite, ranks, after, each):
    options = [middle_observation(suite), "--size", "160,120", "--scale", "25asec", "--no-psf",
               "--weight", "uniform", "--memory", "6MB" if ranks == 1 else "12MB",
               *forced(passes=2), *MANY_STEPS]
    rng = random.Random(7 * ranks)
    folders = snapshots(suite, options, ranks, after)
    check_next(suite, options, folders[1], ranks)
    tried, refused, taken = 0, 0, 0
    for kept in folders:
        for k in range(each):
            rank = rng.randrange(ranks)
            data = load(kept, rank)
            # to the end, or the next block: what was read is then used, or written again
            more = [] if k % 2 == 0 else ["--max-time", "0.001"]
            status, err = continue_from(suite, kept, [*options, *more], ranks, rank,
                                        changed(data, rng))
            tried += 1
            refused += status in (3, 4)
            taken += status in (0, STOPPED)
            if status not in (0, 3, 4, STOPPED):
                suite.equal(f"{os.path.basename(kept)}, change {k} of rank {rank}: status",
                            status, "0, 3, 4 or 75")
                shutil.copytree(suite.path("saved"), f"{kept}-failed-{k}", dirs_exist_ok=True)
                print(err[-3000:])
            if status in (3, 4) and len(errors(err)) != 1:
                suite.equal(f"{os.path.basename(kept)}, change {k}: lines", errors(err), "one")
    suite.equal(f"{ranks} ranks: {refused} were refused, {taken} were taken, of",
                refused + taken, tried)


def main():
    suite = Suite("crafted_checkpoints")
    check(suite, 1, KEPT_AFTER, 40 if FULL else 4)
    if mpiexec():
        check(suite, 2, KEPT_AFTER if FULL else KEPT_AFTER[:4], 20 if FULL else 2)
    suite.finish()


if __name__ == "__main__":
    main()
