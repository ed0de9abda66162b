#!/usr/bin/env python3
"""What befalls checkpoints while they are written: disks without room, in a mount namespace
of this test's own, for all ranks or for one of them; SIGKILL to a rank at each call that
makes a checkpoint; and files of others in the folder. A run goes on without a checkpoint
that finds no room, the one before stays and is continued from, and what is no file of
tessera's stays as it is.
"""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "oracle"))

from e2e import FULL, Suite, mpiexec, take_forced
from checkpoints import (MANY_STEPS, STOPPED, command, end, fresh, generation,
                         make_observation, middle_observation, reference, same, start)

LACKS = "the run goes on without a new checkpoint: "
AGAIN = "checkpoints can be written again"


def enter_namespace():
    """Run this script again in a mount namespace of its own: what is mounted there is seen
    by nobody else, and goes when it ends. False where that is not allowed."""
    if os.environ.get("TESS_TEST_NAMESPACE"):
        return os.environ["TESS_TEST_NAMESPACE"] == "yes"
    os.environ["TESS_TEST_NAMESPACE"] = "no"
    for words in (["unshare", "-m"], ["unshare", "-r", "-m"]):
        probe = [*words, "mount", "-t", "tmpfs", "none", "/mnt"]
        if shutil.which("unshare") and subprocess.run(probe, capture_output=True).returncode == 0:
            os.environ["TESS_TEST_NAMESPACE"] = "yes"
            os.execvp(words[0], [*words, sys.executable, *sys.argv])
    return False


def errors(err):
    return [s for s in err.splitlines() if s.startswith("tessera: error:")]


def warnings(err):
    return [s for s in err.splitlines() if s.startswith("tessera: warning:")]


def start_wrapped(suite, options, ranks, wrapped, words):
    """As start(), but rank `wrapped` is started by `words`."""
    one = command(suite, options, 1)
    line = [mpiexec()] if ranks > 1 else []
    for rank in range(ranks):
        own = [*words, *one] if rank == wrapped else one
        line += [*([":"] if rank else []), "-n", "1", *own] if ranks > 1 else own
    line, env = take_forced(line)
    return subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            env=env, text=True, start_new_session=True)


def small_disk(suite, kilobytes, filler):
    """Words that start a program which sees a disk of its own in place of the folder, with a
    file of so many bytes on it."""
    return ["unshare", "-m", "sh", "-c",
            f'mount -t tmpfs -o size={kilobytes}k none "$0" && '
            f'head -c {filler} /dev/zero >"$0/filler" && exec "$@"', suite.path("saved")]


def fill(path):
    """A file that takes all the room there is."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(file, bytes(4096))
    except OSError:
        os.close(file)


def left_in(suite):
    return sorted(os.listdir(suite.path("saved")))


def check_one_small(suite, options, wanted):
    """One rank has a small disk: too small for images, for any file, or, where it is the first
    rank, for the text alone."""
    several = [(2, 0), (2, 1), (3, 1)] if mpiexec() else []
    for ranks, small in [(1, 0), *several]:
        for what, kilobytes, filler in [("images", 16, 1), ("a file", 4, 1), ("a text", 8, 1)]:
            if what == "a text" and small > 0:
                continue
            fresh(suite)
            os.mkdir(suite.path("saved"))
            label = f"{ranks} ranks, no room for {what} on rank {small}"
            status, err = end(start_wrapped(suite, [*options, "--checkpoint-every", "0.001"],
                                            ranks, small,
                                            small_disk(suite, kilobytes, filler)), 60)
            suite.equal(f"{label}: status", status, 0)
            if status != 0:
                print(err[-2000:])
            place = r"checkpoint" if what == "a text" else rf"checkpoint-\d+-{small}"
            suite.true(f"{label}: one warning, of what and why: {warnings(err)}",
                       len(warnings(err)) == 1 and re.search(
                           rf"{LACKS}.*/{place}: .*No space left", warnings(err)[0]))
            suite.equal(f"{label}: errors", errors(err), [])
            same(suite, label, wanted, None)
            if small > 0:
                suite.true(f"{label}: nothing is left", not os.path.exists(suite.path("saved")))


def check_bookmark_small(suite):
    """Data that are read in blocks: one rank has no room for the densities that it has made of
    the first block. The checkpoints of all ranks are then without what was read."""
    options = [middle_observation(suite), "--size", "160,120", "--scale", "25asec", "--no-psf",
               "--weight", "uniform", *MANY_STEPS]
    for ranks, small in [(1, 0), (2, 0), (2, 1), (3, 1)] if mpiexec() else [(1, 0)]:
        fresh(suite)
        os.mkdir(suite.path("saved"))
        label = f"{ranks} ranks, no room for densities on rank {small}"
        status, err = end(start_wrapped(
            suite, [*options, "--memory", "6MB" if ranks == 1 else "12MB", "--max-time", "0.001"], ranks, small,
            small_disk(suite, 32, 1)), 60)
        suite.equal(f"{label}: status", status, STOPPED)
        if status != STOPPED:
            print(err[-2000:])
        suite.true(f"{label}: says so, once: {warnings(err)}",
                   len([s for s in warnings(err) if "no room for what has been read" in s]) == 1
                   and LACKS not in err)


def end_with_room(suite, options, ranks, filler):
    """Continues a run on a full disk and makes room once it has said so. A run that is complete before
    it sees the room, on a machine in use, begins again from the same checkpoint. (status, messages)"""
    saved, kept, image = (suite.path(name) for name in ("saved", "kept", "run-dirty.fits"))
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(saved, kept, ignore=shutil.ignore_patterns("filler"))
    for _ in range(5):
        child = start(suite, [*options, "--resume", "--checkpoint-every", "0.001"], ranks)
        told = ""
        for line in child.stderr:
            told += line
            if LACKS in line:
                os.remove(filler)
            if AGAIN in line:
                break
        status, _ = end(child)
        if AGAIN in told or status != 0:
            break
        os.remove(image)
        shutil.copytree(kept, saved, dirs_exist_ok=True)
        fill(filler)
    return status, told


def check_all_small(suite, options, wanted, ranks):
    """All ranks see one full disk. Who is to stop says that nothing was saved; what was saved
    before is continued from, once there is room."""
    fresh(suite)
    os.mkdir(suite.path("saved"))
    filler = os.path.join(suite.path("saved"), "filler")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", suite.path("saved")],
                   check=True)
    label = f"a full disk, {ranks} ranks"
    stop = [*options, "--resume", "--max-time", "0.001"]
    for _ in range(3):
        status, err = end(start(suite, stop, ranks))
    suite.equal(f"{label}: stopped before: status", status, STOPPED)
    before = left_in(suite)
    number = generation(os.path.join(suite.path("saved"), "checkpoint"))
    fill(filler)
    status, err = end(start(suite, stop, ranks))
    suite.equal(f"{label}: to be stopped: status", status, 3)
    suite.true(f"{label}: says what to do: {errors(err)}",
               len(errors(err)) == 1 and "make room" in errors(err)[0])
    suite.true(f"{label}: says why: {warnings(err)}",
               len(warnings(err)) == 1 and "No space left" in warnings(err)[0])
    suite.equal(f"{label}: files", left_in(suite), sorted([*before, "filler"]))
    suite.equal(f"{label}: checkpoint",
                generation(os.path.join(suite.path("saved"), "checkpoint")), number)
    status, told = end_with_room(suite, options, ranks, filler)
    suite.equal(f"{label}: room returns: status", status, 0)
    suite.true(f"{label}: one warning, then checkpoints again",
               told.count(LACKS) == 1 and AGAIN in told)
    same(suite, label, wanted, None)
    suite.equal(f"{label}: files in the end", left_in(suite), [])
    subprocess.run(["umount", suite.path("saved")], check=True)


def check_killed(suite, options, wanted):
    """SIGKILL to a rank as it makes the n-th call of a kind that checkpoints are made by:
    what is left is continued from, to the same images."""
    probe = ["strace", "-qq", "-o", os.devnull, "-e", "trace=fsync", "true"]
    if not shutil.which("strace") or subprocess.run(probe, capture_output=True).returncode != 0:
        suite.skipped("no strace, or it may not trace")
        return
    plans = [("fsync", [1, 2, 3, 4, 6, 7]), ("rename", [1, 2, 3, 5, 6]), ("unlinkat", [1, 2])]
    if FULL:
        plans = [(call, range(1, 16)) for call in ("fsync", "rename", "unlinkat", "ftruncate")]
    for call, times in plans:
        for n in times:
            ranks = [1, 2, 3][n % 3] if mpiexec() else 1
            victim = n % 2 if ranks > 1 and call != "unlinkat" else 0
            fresh(suite)
            words = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={call}", "-e",
                     f"inject={call}:signal=KILL:when={n}"]
            every = [*options, "--checkpoint-every", "0.001", "--resume"]
            status, _ = end(start_wrapped(suite, every, ranks, victim, words))
            label = f"killed at {call} {n} of rank {victim} of {ranks}"
            if (os.path.exists(suite.path("run-dirty.fits"))
                    and not os.path.exists(suite.path("saved", "checkpoint"))):
                # It makes fewer such calls, or died when all was done: nothing to continue.
                same(suite, f"{label}, at its end", wanted, None)
                continue
            suite.true(f"{label}: status {status}", status not in (0, None))
            status, err = end(start(suite, every, ranks))
            suite.equal(f"{label}: status of what continues", status, 0)
            suite.equal(f"{label}: warnings", warnings(err), [])
            if status != 0:
                print(err[-2000:])
            same(suite, label, wanted, None)
            suite.true(f"{label}: nothing is left", not os.path.exists(suite.path("saved")))


def check_others(suite, options, wanted):
    """Files of others in the folder stay; one that has a name that is needed is refused."""
    names = ["checkpoint.pt", "checkpoint-best", "checkpoint-1-0.bak",
             "checkpoint.tessera-0badcafe-7-0.tmp", "checkpoint-01-0", "notes"]
    saved = suite.path("saved")
    for ranks in [1, 3] if mpiexec() else [1]:
        fresh(suite)
        os.mkdir(saved)
        for name in names:
            with open(os.path.join(saved, name), "w") as f:
                f.write(name)
        label = f"others' files, {ranks} ranks"
        status, err = end(start(suite, [*options, "--checkpoint-every", "0.001"], ranks))
        suite.equal(f"{label}: status", status, 0)
        same(suite, label, wanted, None)
        suite.equal(f"{label}: names", left_in(suite), sorted(names))
        suite.true(f"{label}: contents", all(
            open(os.path.join(saved, n)).read() == n for n in left_in(suite)))
        for name, make in [("checkpoint", lambda p: open(p, "w").write("a user's")),
                           ("checkpoint-1-0", lambda p: os.symlink("notes", p)),
                           ("checkpoint.previous", os.mkdir)]:
            path = os.path.join(saved, name)
            make(path)
            for more in ([], ["--resume"], ["--overwrite"]):
                label = f"{name} is another's, {ranks} ranks, {' '.join(more)}"
                status, err = end(start(suite, [*options, *more], ranks))
                suite.equal(f"{label}: status", status, 3)
                suite.true(f"{label}: one line with its name: {errors(err)}",
                           len(errors(err)) == 1 and path + ":" in errors(err)[0])
                suite.equal(f"{label}: names", left_in(suite), sorted([*names, name]))
            suite.true(f"{name} stays", os.path.islink(path) or os.path.isdir(path)
                       or os.path.exists(path) and open(path).read() == "a user's")
            subprocess.run(["rm", "-r", path], check=False)
        suite.true("the link's target stays", open(os.path.join(saved, "notes")).read() == "notes")


def main():
    mounts = enter_namespace()
    suite = Suite("written_checkpoints")
    obs = make_observation(suite, 3000, w_factor=8)
    options = [obs, "--size", "160,120", "--scale", "25asec", "--no-psf", "--reproducible",
               *MANY_STEPS]
    wanted = reference(suite, options)
    check_others(suite, options, wanted)
    check_killed(suite, options, wanted)
    if mounts:
        check_one_small(suite, options, wanted)
        check_bookmark_small(suite)
        for ranks in [1, 3] if mpiexec() else [1]:
            check_all_small(suite, options, wanted, ranks)
    else:
        suite.skipped("no mount namespaces")
    suite.finish()


if __name__ == "__main__":
    main()
