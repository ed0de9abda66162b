#!/usr/bin/env python3
"""A device that is lost, at any moment of a run, ends all ranks, with one message and
the right status; nothing is left under a final name, nor any temporary file.

Devices are emulated (TESS_CUDA=EMULATED): tests/emulated/device_emulated.c counts what is
asked of them and loses one at its N-th operation, which shows at once or, as errors of a
CUDA device do, at the next call that waits.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))

from e2e import ASEC, FULL, Suite, mpi_environment, mpiexec, skip, tessera
from rank_processes import ranks_left
import uvfits

# Where in a run, in shares of its operations, besides the first and the last one.
SHARES = [0.04, 0.08, 0.15, 0.22, 0.3, 0.4, 0.5, 0.57, 0.66, 0.75, 0.84, 0.91, 0.97]


def make_inputs(suite):
    rng = np.random.default_rng(4)
    rows, channels = 400, 4
    uvw = uvfits.random_tracks(rows, 900.0, 2.5, seed=8)
    shape = (rows, channels, 4)
    obs, model = suite.path("obs.uvfits"), np.zeros((96, 96))
    uvfits.write(obs, uvw, 1.2e9 + 4e7 * np.arange(channels),
                 1 + 0.3 * (rng.normal(size=shape) + 1j * rng.normal(size=shape)),
                 np.ones(shape))
    model[40, 51], model[70, 20] = 1.0, -0.4
    return obs, uvfits.write_model(suite.path("model.fits"), model, 25 * ASEC)


def cases_of(suite, obs, model):
    image = ["image", obs, "--size", "96", "--scale", "25asec", "-o", suite.path("out")]
    return [
        ("image, decoded on devices", [*image, "--stokes", "IQ"]),
        ("reproducible image", [*image, "--weight", "natural", "--reproducible"]),
        ("w-projection", [*image, "--w", "projection", "--accuracy", "1e-2"]),
        ("prediction", ["predict", obs, "--model", model, "-o", suite.path("out.uvfits")]),
    ]


class Lost:
    """A run with its device `number` lost at an operation, or with all as they should."""

    def __init__(self, suite, words, ranks, number=0, operation=0, late=False):
        for name in os.listdir(suite.work):
            if name.startswith(("out", "operations")):
                os.remove(suite.path(name))
        env = {**mpi_environment(), "TESS_EMULATED": str(10 ** 12),
               "TESS_EMULATED_LOG": suite.path("operations"), "OMP_NUM_THREADS": "1"}
        if operation:
            env["TESS_EMULATED_FAIL"] = f"{number}:{operation}{':late' if late else ''}"
        self.result = tessera(*words, "--backend", "cuda", "--threads", "1", ranks=ranks,
                              timeout=60, env=env)
        self.lost = os.path.exists(suite.path(f"operations.{number}.lost"))
        self.left = sorted(n for n in os.listdir(suite.work)
                           if n not in ("obs.uvfits", "model.fits", "out.log")
                           and not n.startswith("operations"))
        self.ranks = ranks_left([words[words.index("-o") + 1]])


def operations_of(suite, ranks):
    """How many each rank's device has done."""
    return [int(open(suite.path(f"operations.{k}")).read()) for k in range(ranks)]


def check(suite, label, words, ranks, number, operation, late):
    lost = Lost(suite, words, ranks, number, operation, late)
    errors = lost.result.errors()
    label = f"{label}, {ranks} ranks: {number} at {operation}{' late' if late else ''}"
    if not suite.true(f"{label}: the device was lost", lost.lost):
        return
    suite.true(f"{label}: ends by itself", not lost.result.hung)
    suite.equal(f"{label}: status", lost.result.status, 4)
    suite.equal(f"{label}: messages", len(errors), 1)
    suite.true(f"{label}: it says what happened {errors}",
               len(errors) == 1 and "CUDA: unspecified launch failure" in errors[0])
    suite.equal(f"{label}: files left", lost.left, [])
    suite.equal(f"{label}: ranks left", lost.ranks, [])


def check_case(suite, label, words, ranks, turn):
    whole = Lost(suite, words, ranks)
    suite.ran(f"{label}, {ranks} ranks", whole.result)
    suite.true(f"{label}, {ranks} ranks: output {whole.left}", len(whole.left) > 0)
    counts = operations_of(suite, ranks)
    few = 6 if ranks == 1 else 1
    shares = SHARES if FULL else [SHARES[(turn + 5 * k) % len(SHARES)] for k in range(few)]
    if FULL or ranks == 1 or turn % 2:
        shares = [0, *shares]
    for k, share in enumerate(shares):
        number = (turn + k) % ranks
        check(suite, label, words, ranks, number, max(1, round(share * counts[number])),
              (turn // 4 + k) % 2 == 1)
    check(suite, label, words, ranks, 0, counts[0], turn % 3 == 0)  # files are written next


def check_transforms(suite, label, words):
    """An error that shows where a step of a plane's transform waits for the device, on one
    rank alone: the others, who go on to the next step together, hear of it."""
    ranks, number = 3, 1
    suite.ran(f"{label}, transforms", Lost(suite, words, ranks).result)
    operations = operations_of(suite, ranks)[number]
    for percent in range(70, 80):
        check(suite, f"{label}, transforms", words, ranks, number,
              round(percent / 100 * operations), True)


def main():
    suite = Suite("lost_devices")
    obs, model = make_inputs(suite)
    cases = cases_of(suite, obs, model)
    if Lost(suite, cases[0][1], 1).result.status == 4:
        skip("no emulated device in this build")
    turn = 0
    for ranks in (1, 2, 3, 4) if mpiexec() else (1,):
        for label, words in cases:
            check_case(suite, label, words, ranks, turn)
            turn += 1
    if mpiexec():
        check_transforms(suite, *cases[1])
    suite.finish()


if __name__ == "__main__":
    main()
