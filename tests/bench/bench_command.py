#!/usr/bin/env python3
"""tessera bench: a smoke test of its table, and that what it times is worked on.

What a degridder reads off is the same sum on one thread and on several, to the rounding of
the precision; times are not judged.
"""
import csv
import importlib.util
import io
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from e2e import Suite, tessera  # noqa: E402

COLUMNS = ["operation", "backend", "threads", "order", "visibilities", "size", "accuracy",
           "precision", "support", "planes", "nu", "nv", "sort_s", "seconds", "mvis_per_s",
           "sum", "version"]


def table(suite, *options):
    result = tessera("bench", *options, "--quiet")
    if not suite.ran(" ".join(("bench",) + options), result):
        return []
    rows = list(csv.DictReader(io.StringIO(result.out)))
    suite.equal("columns", list(rows[0]), COLUMNS)
    return rows


def check_peers(suite):
    """ducc0 on the same visibilities; a peer that is not there is an error."""
    case = ("--backend", "cpu", "--repeat", "1", "--vis", "5e4", "--size", "256")
    os.environ["TESS_PYTHON"] = sys.executable
    for operation in ("grid", "degrid"):
        if importlib.util.find_spec("ducc0") is None:
            break
        for order in ("tracks", "random"):
            own, peer = table(suite, operation, *case, "--accuracy", "1e-4,1e-8", "--order",
                              order, "--compare", "ducc0")[2:]
            suite.equal("names", (own["backend"], peer["backend"]), ("cpu", "ducc0"))
            suite.equal("the same case", [own[c] for c in COLUMNS[2:8] if c != "backend"],
                        [peer[c] for c in COLUMNS[2:8] if c != "backend"])
            suite.true("the peer took time", float(peer["seconds"]) > 0 and
                       int(peer["support"]) >= 4)
    with tempfile.TemporaryDirectory() as empty:
        python = os.path.join(empty, "python3")
        with open(python, "w") as f:  # one that has no packages
            f.write(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
        os.chmod(python, 0o755)
        os.environ.update(TESS_PYTHON=python, TMPDIR=empty)
        result = tessera("bench", "grid", *case, "--accuracy", "1e-4", "--compare",
                         "cufinufft", "-q")
        suite.equal("no peer: status", result.status, 4)
        suite.true("no peer: told so", "cufinufft is not installed" in result.err)
        suite.equal("no peer: nothing left behind", os.listdir(empty), ["python3"])
    del os.environ["TESS_PYTHON"], os.environ["TMPDIR"]


def main():
    suite = Suite("bench_command")
    cpu = ("--backend", "cpu", "--repeat", "1")
    rows = table(suite, "grid", *cpu, "--vis", "4e4,1e5", "--size", "256,300",
                 "--accuracy", "1e-2,1e-6", "--order", "tracks,random", "--threads", "2")
    cases = {(r["order"], r["visibilities"], r["size"], r["accuracy"]) for r in rows}
    suite.equal("every combination once", (len(cases), len(rows)), (16, 16))
    suite.true("support grows with accuracy, and so does precision",
               {(int(r["support"]) > 6, r["precision"]) for r in rows} ==
               {(False, "single"), (True, "double")})
    suite.true("rates are of the seconds", all(
        abs(float(r["mvis_per_s"]) * float(r["seconds"]) * 1e6 / int(r["visibilities"]) - 1)
        < 0.01 for r in rows))
    rows = table(suite, "grid", *cpu, "--vis", "4e4", "--size", "256", "--accuracy", "1e-3",
                 "--support", "5,7,9", "--precision", "single,double")
    suite.equal("supports and precisions, every combination once",
                [(r["support"], r["precision"]) for r in rows],
                [(w, p) for w in ("5", "7", "9") for p in ("single", "double")])
    rows = table(suite, "grid", *cpu, "--vis", "4e4", "--size", "256", "--support", "4,12",
                 "--accuracy", "1e-2,1e-8")
    suite.equal("a support that is too narrow for an accuracy is left out",
                [(r["support"], r["accuracy"]) for r in rows],
                [("4", "0.01"), ("12", "0.01"), ("12", "1e-08")])
    read = [float(r["sum"]) for r in
            table(suite, "degrid", *cpu, "--vis", "4e4", "--size", "256", "--accuracy",
                  "1e-4", "--support", "8", "--precision", "single,double")]
    suite.true("something is read off in both precisions", len(read) == 2 and min(read) > 0)
    sums = [float(table(suite, "degrid", *cpu, "--vis", "5e4", "--size", "256",
                        "--accuracy", accuracy, "--threads", threads)[0]["sum"])
            for accuracy in ("1e-4", "1e-8") for threads in ("1", "3")]
    suite.true("something is read off", all(s > 0 for s in sums))
    suite.below("single: threads", abs(sums[1] / sums[0] - 1), 1e-6)
    suite.below("double: threads", abs(sums[3] / sums[2] - 1), 1e-13)
    check_peers(suite)
    for options in ([], ["grid", "degrid"], ["both"], ["grid", "--order", "sorted"],
                    ["grid", "--accuracy", "1e-4,"], ["grid", "--vis", "none"],
                    ["grid", "--compare", "wsclean"], ["grid", "--support", "2"],
                    ["grid", "--support", "17"], ["grid", "--support", "6.5"],
                    ["grid", "--precision", "half"]):
        result = tessera("bench", *options)
        suite.equal(f"bench {' '.join(options)}: status", result.status, 2)
    suite.finish()


if __name__ == "__main__":
    main()
