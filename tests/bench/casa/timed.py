"""Runs a script of this folder, and notes how long what it calls took.

    python timed.py SCRIPT OBS TIMES.json

The file has processor and elapsed seconds of the import of the tasks, and of all calls of each task
by its name; what is left are the start of Python and the script itself.
"""
import functools
import importlib
import json
import resource
import runpy
import sys
import time

# Modules that scripts take tasks from, and the tasks.
MODULES = ("casatasks", "tessera.casa")
TASKS = ("tclean", "exportfits", "gaincal", "applycal")


def spent():
    """Processor and elapsed seconds until now."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used), time.monotonic()


class Times(dict):
    """Seconds by name."""

    def add(self, name, before):
        self[name] = [old + now - then for old, now, then in
                      zip(self.get(name, (0, 0)), spent(), before)]

    def timed(self, name, task):
        @functools.wraps(task)
        def call(*args, **options):
            before = spent()
            try:
                return task(*args, **options)
            finally:
                self.add(name, before)
        return call


def main():
    script, obs, path = sys.argv[1:]
    times = Times()
    with open(script, encoding="utf-8") as file:
        text = file.read()
    for name in MODULES:
        if name not in text:
            continue
        before = spent()
        module = importlib.import_module(name)
        times.add("import", before)
        for task in TASKS:
            if hasattr(module, task):
                setattr(module, task, times.timed(task, getattr(module, task)))
    sys.argv = [script, obs]
    runpy.run_path(script, run_name="__main__")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(times, file)


if __name__ == "__main__":
    main()
