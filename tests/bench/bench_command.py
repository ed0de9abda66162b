#!/usr/bin/env python3
"""tessera bench: a smoke test of its table, and that what it times is worked on.

What a degridder reads off is the same sum on one thread and on several, to the rounding of
the precision; times are not judged.
"""
import csv
import io
import os
import sys

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
    sums = [float(table(suite, "degrid", *cpu, "--vis", "5e4", "--size", "256",
                        "--accuracy", accuracy, "--threads", threads)[0]["sum"])
            for accuracy in ("1e-4", "1e-8") for threads in ("1", "3")]
    suite.true("something is read off", all(s > 0 for s in sums))
    suite.below("single: threads", abs(sums[1] / sums[0] - 1), 1e-6)
    suite.below("double: threads", abs(sums[3] / sums[2] - 1), 1e-13)
    for options in ([], ["grid", "degrid"], ["both"], ["grid", "--order", "sorted"],
                    ["grid", "--accuracy", "1e-4,"], ["grid", "--vis", "none"]):
        result = tessera("bench", *options)
        suite.equal(f"bench {' '.join(options)}: status", result.status, 2)
    suite.finish()


if __name__ == "__main__":
    main()
