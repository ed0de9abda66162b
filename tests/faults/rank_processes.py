"""Processes of tessera's ranks, as the tests of faults look for them, stop them and let them go on."""
import os
import signal
import time

from e2e import BIN, SLOWER

GONE_S = 30 * SLOWER  # the system ends a process that was killed sooner than that


def ranks_of(words):
    """Processes of tessera whose command line holds these words."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as f:
                line = f.read().split(b"\0")
        except OSError:
            continue
        if line[0] == BIN.encode() and all(w.encode() in line for w in words):
            found.append(int(name))
    return sorted(found)


def ranks_left(words):
    """Ranks that outlive their launcher. It does not wait for those that it killed, and the system takes a
    moment to end them."""
    end = time.monotonic() + GONE_S
    left = ranks_of(words)
    while left and time.monotonic() < end:
        time.sleep(0.05)
        left = ranks_of(words)
    return left


def process_of(rank, words):
    """The process of a rank, None when it has ended."""
    for pid in ranks_of(words):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                variables = f.read().split(b"\0")
        except OSError:
            continue
        names = (b"OMPI_COMM_WORLD_RANK=%d", b"PMI_RANK=%d")
        if any(name % rank in variables for name in names):
            return pid
    return None


def hold(pid):
    """Stops a process where it is, whatever else runs on; False if it had ended."""
    try:
        os.kill(pid, signal.SIGSTOP)
        while open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] not in "TtZX":
            time.sleep(0.001)
        return True
    except OSError:
        return False


def resume(pid):
    """Lets a held process go on, if there is one."""
    try:
        os.kill(pid, signal.SIGCONT) if pid else None
    except OSError:
        pass
