#!/usr/bin/env python3
"""How threads and ranks wait: the program and the Python module watch whether processors
are shared, also beside a runtime of OpenMP that was there before, unless the user has
chosen; ranks yield where they and their threads are more than the processors."""
import glob
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import BIN, ROOT, Suite, mpi_environment, mpiexec, run, skip

# The watcher's thread, as the kernel names it, and those that it has gathered so that
# threads wait shortly.
WATCHER = "tess-waiting"
OTHERS = """
import os
while os.getppid() == {parent}: pass
"""
# Calls gridding until threads wait shortly. Prints the largest number of the watcher's threads
# during the calls, and their number once they are gone, or a minute later.
MODULE = """
import ctypes, glob, sys, threading, time
if sys.argv[2]: ctypes.CDLL(sys.argv[2], mode=ctypes.RTLD_GLOBAL)
import numpy as np
import tessera
def count():
    found = 0
    for path in glob.glob("/proc/self/task/*/comm"):
        try:
            found += open(path).read().strip() == sys.argv[1]
        except OSError:
            pass
    return found
most, end = 0, threading.Event()
def look():
    global most
    while not end.wait(.01):
        most = max(most, count())
looker = threading.Thread(target=look)
looker.start()
rng = np.random.default_rng(1)
uvw, freq = rng.uniform(-300, 300, (20000, 3)), np.array([1e9, 1.1e9])
vis = np.ones((20000, 2), np.complex64)
for k in range(300):
    tessera.wgridder.vis2dirty(uvw=uvw, freq=freq, vis=vis, npix_x=128, npix_y=128,
                               pixsize_x=1e-4, pixsize_y=1e-4, epsilon=1e-4, nthreads=2)
    if most > 1: break
end.set()
looker.join()
begin = time.monotonic()
while count() and time.monotonic() < begin + 60: time.sleep(.05)
print(most, count())
"""
CHOSEN = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY",
          "OMPI_MCA_mpi_yield_when_idle", "OMP_NUM_THREADS")


def environment(**more):
    env = {k: v for k, v in mpi_environment().items() if k not in CHOSEN}
    return {**env, **more}


def count_of(pid):
    """The number of the watcher's threads in a process."""
    found = 0
    for path in glob.glob(f"/proc/{pid}/task/*/comm"):
        try:
            with open(path) as f:
                found += f.read().strip() == WATCHER
        except OSError:  # the thread has ended
            pass
    return found


def most_during(env, until, seconds):
    """The largest number of the watcher's threads in a run, which is ended when they are so
    many or after some seconds."""
    child = subprocess.Popen([BIN, "bench", "grid", "--vis", "3e6", "--size", "512",
                              "--threads", "2", "--repeat", "100"], env=env,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most, end = 0, time.monotonic() + seconds
    while child.poll() is None and time.monotonic() < end and most < until:
        most = max(most, count_of(child.pid))
        time.sleep(.005)
    child.kill()
    child.wait()
    return most


def check_program(suite):
    suite.true("program: waits shortly on a busy machine",
               most_during(environment(), 2, 60) >= 2)
    for name, value in (("OMP_WAIT_POLICY", "active"), ("GOMP_SPINCOUNT", "300000")):
        suite.equal(f"program: {name}={value} is the user's choice",
                    most_during(environment(**{name: value}), 1, 1), 0)


def check_module(suite):
    try:
        from module import environment as module_environment
    except SystemExit:
        suite.skipped("the Python module")
        return
    given = {**module_environment(), **environment()}
    given = {k: v for k, v in given.items() if k not in CHOSEN}
    path = re.search(r"(/\S*libgomp\S*)", run(["ldd", BIN], 60).out)
    for what, library in (("module", ""), ("module, runtime before", path and path[1])):
        if library is None:
            suite.skipped(f"{what}: another runtime than GNU's")
            continue
        result = run([sys.executable, "-c", MODULE, WATCHER, library], 120, env=given)
        if not suite.ran(what, result):
            continue
        most, after = map(int, result.out.split())
        suite.true(f"{what}: waits shortly on a busy machine", most >= 2)
        suite.equal(f"{what}: the watcher goes away", after, 0)


def yields(processors, *args, **more):
    """Whether Open MPI's ranks yield, as it says itself; None if it says nothing."""
    env = environment(OMPI_MCA_mpi_show_mca_params="all", **more)
    result = run(["taskset", "-c", processors, mpiexec(), "-n", "2", BIN, *args,
                  "--version"], 120, env=env)
    found = re.search(r"mpi_yield_when_idle=(\w+) \((\w+)", result.out + result.err)
    return found and (found[1] in ("true", "1"), found[2])


def check_ranks(suite):
    if not mpiexec():
        return
    some = sorted(os.sched_getaffinity(0))
    two = f"{some[0]},{some[1]}"
    enough = yields(two)
    if enough is None:
        suite.skipped("ranks: not Open MPI")
        return
    suite.true("ranks: two on two processors do not yield", not enough[0])
    suite.true("ranks: with two threads each they yield", yields(two, "--threads=2")[0])
    suite.true("ranks: as many threads by OMP_NUM_THREADS",
               yields(two, OMP_NUM_THREADS="2")[0])
    suite.true("ranks: the user's choice stays", not yields(
        two, OMP_NUM_THREADS="2", OMPI_MCA_mpi_yield_when_idle="0")[0])


def main():
    if len(os.sched_getaffinity(0)) < 2:
        skip("one processor")
    suite = Suite("waiting")
    check_ranks(suite)
    if "no OpenMP" in run([BIN, "--version"], 60).out:
        suite.skipped("threads: built without them")
        suite.finish()
    others = [subprocess.Popen([sys.executable, "-c", OTHERS.format(parent=os.getpid())])
              for _ in range(len(os.sched_getaffinity(0)))]
    try:
        check_program(suite)
        check_module(suite)
    finally:
        for other in others:
            other.kill()
            other.wait()
    suite.finish()


if __name__ == "__main__":
    sys.path.insert(0, os.path.join(ROOT, "tests", "python"))
    main()
