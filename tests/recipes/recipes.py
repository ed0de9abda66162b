#!/usr/bin/env python3
"""The recipes of CONTRIBUTING.md: each worked example is put into a copy of the source.

    python3 tests/recipes/recipes.py --check      # compiles what each example touches
    python3 tests/recipes/recipes.py              # builds them all, and sees them work

An example is a folder here: edits.patch changes files of the source, and SOURCES says where the
other files go. --check wants a build folder (--build) for the commands of its compiler.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
from mutants import Tree  # noqa: E402

# The files that an example adds, and where they go.
SOURCES = {
    "option": {},
    "format": {"vis_text.c": "io/vis/vis_text.c"},
    "operation": {"test_grid_peak.c": "tests/unit/test_grid_peak.c"},
    "minor_cycle": {"cpu_sdi.c": "clean/cpu/cpu_sdi.c"},
    "primary_beam": {},
}
# The most files that an addition may touch, with its tests, its page of the manual and a line of
# CHANGELOG.md, which no example has.
MOST_FILES = {"option": 6, "format": 6, "minor_cycle": 6}
# A file that an example adds is compiled as this one, of the same module, is.
COMPILED_AS = {"io/vis/vis_text.c": "tess_vis.c", "clean/cpu/cpu_sdi.c": "cpu_loop.c",
               "tests/unit/test_grid_peak.c": "test_sort.c"}

failures = []


def expect(what, is_true, more=""):
    print(f"  {'ok' if is_true else 'FAIL'}    {what}", flush=True)
    if not is_true:
        failures.append(what)
        print(more)


def run(*command, **more):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", **more)


def edits(name):
    return HERE / name / "edits.patch"


def files_of(name):
    """All files that an example touches."""
    changed = re.findall(r"^\+\+\+ b/(\S+)", edits(name).read_text(), re.M)
    return changed + list(SOURCES[name].values())


def put(name, source):
    """Puts an example into a copy of the source."""
    done = run("patch", "-p1", "-F0", "--no-backup-if-mismatch", "-i", edits(name), cwd=source)
    expect(f"{name}: its edits fit", done.returncode == 0, done.stdout)
    for file, place in SOURCES[name].items():
        shutil.copy(HERE / name / file, source / place)


def check_figures():
    for name, most in MOST_FILES.items():
        count = len(files_of(name)) + 1
        expect(f"{name}: touches {count} files with CHANGELOG.md, at most {most}", count <= most)


# ---- compiled alone ----

def copy_source(to):
    """The source without what is built; nothing that was there is kept."""
    def left_out(folder, names):
        return [name for name in names if pathlib.Path(folder) == ROOT
                and re.match(r"build|out$|\.git$", name)]

    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(ROOT, to, ignore=left_out)


def command_for(name, commands):
    """The command that compiles a file, or a file like it."""
    like = COMPILED_AS.get(name)
    for entry in commands:
        file = entry["file"]
        if file == str(ROOT / name) or (like and os.path.basename(file) == like):
            return entry, file
    return None, None


def link_headers(build, work, source):
    """The folders of public headers that the build has in modules/, for the copy."""
    for link in (build / "modules").glob("*/*.h"):
        to = work / "modules" / link.parent.name / link.name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.unlink(missing_ok=True)
        to.symlink_to(source / link.resolve().relative_to(ROOT))


def compile_alone(name, work, build, commands):
    """Compiles a source of the copy with the options of the build, to nothing."""
    entry, file = command_for(name, commands)
    if entry is None:
        print(f"  skip  {name}: this build does not have it")
        return

    def moved(word):
        """A folder of headers: of the copy; what the build generates stays."""
        path = pathlib.Path(word[2:])
        if not word.startswith("-I") or ROOT not in path.parents:
            return word
        if build / "modules" in path.parents:
            return f"-I{work / 'modules' / path.name}"
        return word if build in path.parents else f"-I{work / 'source' / path.relative_to(ROOT)}"

    words = shlex.split(entry["command"])
    words = words[:words.index("-o")] + words[words.index("-o") + 2:]
    words = [moved(word) for word in words
             if word not in ("-c", file) and not word.endswith("ccache")]
    done = run(*words, "-Werror", "-fsyntax-only", work / "source" / name, cwd=entry["directory"])
    expect(f"{name}: compiles", done.returncode == 0, done.stdout[-2000:])


def check(options):
    check_figures()
    build = options.build.resolve()
    commands = json.loads((build / "compile_commands.json").read_text())
    source = options.work / "source"
    copy_source(source)
    link_headers(build, options.work, source)
    for name in SOURCES:
        put(name, source)
    touched = sorted({file for name in SOURCES for file in files_of(name)
                      if file.endswith(".c")})
    for file in touched:
        compile_alone(file, options.work, build, commands)


# ---- built, and seen to work ----

def see_option(tessera, work, tree):
    shown = run(tessera, "image", "--help").stdout
    expect("option: --help has it", "--object=TEXT" in shown)
    manual = (tree.source / "docs/manual/image.md").read_text()
    expect("option: the manual has it", "--object" in manual)
    expect("option: its test passes", tree.test("e2e.selections") == "passed")


def see_format(tessera, work, tree):
    text = work / "one.vis"
    text.write_text("#visibilities 60 -30 1.4e9\n5e9 0 1 100 -20 3 1 0 1\n")
    shown = run(tessera, "info", text)
    expect("format: tessera info opens it", shown.returncode == 0 and "text" in shown.stdout,
           shown.stdout)


def see_minor_cycle(tessera, work, tree):
    sky = work / "sky.csv"
    sky.write_text("name,ra,dec,flux_jy\nA,60.02deg,-30.01deg,1.5\n")
    obs, out = work / "obs.uvfits", work / "sdi"
    made = run(tessera, "simulate", "--layout", "vla-d", "--sky", sky, "--ra", "60deg",
               "--dec=-30deg", "--duration", "20min", "--freq", "1.4GHz", "--overwrite", "-o", obs)
    expect("minor_cycle: an observation", made.returncode == 0, made.stdout)
    made = run(tessera, "image", obs, "-o", out, "--size", "256", "--scale", "10asec", "--niter", "2000",
               "--threshold", "30mJy", "--minor-cycle", "sdi", "--overwrite")
    expect("minor_cycle: cleans it", made.returncode == 0, made.stdout)
    stats = run(tessera, "stats", f"{out}-image.fits").stdout
    peak = re.search(r"peak\s+([-+.\de]+)", stats)
    expect("minor_cycle: the source has its flux",
           peak and abs(float(peak.group(1)) - 1.5) < 0.05, stats)


def see_primary_beam(tessera, work, tree):
    out = work / "beam"
    made = run(tessera, "image", work / "obs.uvfits", "-o", out, "--size", "256", "--scale", "10asec",
               "--primary-beam", "wsrt", "--pbcor", "--overwrite")
    expect("primary_beam: images are corrected", made.returncode == 0
           and os.path.exists(f"{out}-dirty-pb.fits"), made.stdout)


def see_operation(tessera, work, tree):
    test = tree.build / "tests/unit_test_grid_peak"
    for backend in ("cpu", "cuda"):
        env = dict(os.environ, TESS_TEST_BACKEND=backend, TESS_EMULATED="1000000000000")
        done = run(test, env=env)
        expect(f"operation: its test passes on {backend}", done.returncode == 0, done.stdout)


def see(options):
    tree = Tree(options.work, options)
    for name in SOURCES:
        put(name, tree.source)
    run("cmake", tree.build)  # for tests that are new
    for target in ("tessera", "unit_test_grid_peak", "unit_test_uvfits", "unit_test_primary_beam",
                   "mpi_test_clean"):
        built = tree.make(target)
        expect(f"{target} is built", built.returncode == 0, built.stdout[-3000:])
    if failures:
        return
    tessera = tree.build / "bin/tessera"
    for step in (see_option, see_format, see_minor_cycle, see_primary_beam, see_operation):
        step(tessera, options.work, tree)
    for test in ("unit.uvfits", "unit.primary_beam", "mpi.clean.np1", "mpi.clean.np3"):
        expect(f"{test} passes", tree.test(test) == "passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build-recipes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("cmake", nargs="*", metavar="-DNAME=VALUE",
                        help="more options of cmake, after --")
    options = parser.parse_args()
    options.work = options.work.resolve()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.check:
        check(options)
    else:
        see(options)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
