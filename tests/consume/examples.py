#!/usr/bin/env python3
"""The programs of examples/ run on an installed copy: C by find_package, Python by the
source tree's module, shell by PATH. The installed files are listed, too."""
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from e2e import (BIN, FULL, ROOT, Suite, casacore_python, dp3_program, have_ms, mpiexec, run, simulate,  # noqa: E402
                 write_sky)

EXAMPLES = os.path.join(ROOT, "examples")
SANITIZED = os.environ.get("TESS_TEST_SLOWER", "1") != "1"

# What an installation holds, besides the library and its headers.
INSTALLED = [
    "bin/tessera", "share/bash-completion/completions/tessera",
    "share/zsh/site-functions/_tessera", "share/tessera/jobs/submit.sh",
    "share/tessera/jobs/job.sh", "share/tessera/jobs/slurm-cpu.sh",
    "share/tessera/jobs/scaling/run.sh", "share/tessera/tests/bench/triad.c",
    "share/tessera/examples/c/grid_arrays.c", "share/doc/tessera/LICENSE",
    "share/doc/tessera/NOTICE", "share/doc/tessera/README.md",
    "share/doc/tessera/CHANGELOG.md", "share/doc/tessera/manual/tutorial.md",
    "share/doc/tessera/results/cpu.md"]
COMMANDS = ("", "-image", "-predict", "-simulate", "-info", "-plan", "-compare", "-bench")
# Words that a manual page must hold.
IN_MANUAL_PAGE = {"-image": ["--size", "--no-calibration", "EXAMPLES"], "": ["COMMAND"]}


def install(suite):
    prefix = suite.path("prefix")
    build = os.path.dirname(os.path.dirname(BIN))
    suite.ran("cmake --install", run(["cmake", "--install", build, "--prefix", prefix], 300))
    return prefix


def check_installed(suite, prefix):
    for name in INSTALLED:
        suite.true(f"installed: {name}", os.path.isfile(os.path.join(prefix, name)))
    suite.true("jobs/quickstart.sh, which needs the source, is not installed",
               not os.path.exists(os.path.join(prefix, "share/tessera/jobs/quickstart.sh")))
    if SANITIZED or not shutil.which("help2man"):
        suite.skipped("manual pages: no help2man, or a sanitized build")
        return
    for command in COMMANDS:
        path = os.path.join(prefix, "share", "man", "man1", f"tessera{command}.1")
        if not suite.true(f"tessera{command}(1)", os.path.isfile(path)):
            continue
        with open(path) as page:
            text = page.read().replace("\\-", "-")
        suite.true(f"tessera{command}(1) says what it should",
                   all(word in text for word in IN_MANUAL_PAGE.get(command, [".SH"])))


def check_jobs(suite, prefix, env):
    """The installed submit.sh plans with the program on PATH."""
    result = run(["bash", os.path.join(prefix, "share/tessera/jobs/submit.sh"), "--help"],
                 60, env=env)
    suite.ran("installed submit.sh --help", result)


def check_completion(suite, env):
    script = ('source "$1"; COMP_WORDS=(tessera {}); COMP_CWORD={}; _tessera; '
              'echo "${{COMPREPLY[@]}}"')
    path = os.path.join(ROOT, "app", "cli", "completion", "tessera.bash")
    for words, at, expected in (("im", 1, "image"), ("image --wei", 2,
                                "--weight --weighting-rank-filter --weighting-rank-filter-size"),
                                ("image --no-cal", 2, "--no-calibration")):
        result = run(["bash", "-c", script.format(words, at), "bash", path], 60, env=env)
        suite.equal(f"completion of 'tessera {words}'", result.out.strip(), expected)


def brightest(text):
    return re.findall(r"^(\w+)[^:]*: (\S+) Jy/beam at pixel \((\d+), (\d+)\)", text, re.M)


def check_c(suite, prefix, obs, env):
    build = suite.path("build-c")
    good = suite.ran("cmake -S examples/c", run(
        ["cmake", "-S", os.path.join(EXAMPLES, "c"), "-B", build,
         f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release"], 300))
    if not good or not suite.ran("its build", run(["cmake", "--build", build], 300)):
        return
    result = run([os.path.join(build, "grid_arrays")], 60, env=env)
    if suite.ran("grid_arrays", result):
        value, total = re.match(r"(\S+) of (\d+)", result.out).groups()
        # the default accuracy, 1e-4, of the largest possible sum
        suite.below("grid_arrays: sum of weights", abs(float(value) / int(total) - 1), 1e-4)
    result = run([os.path.join(build, "image_observation"), obs, "256", "10asec"], 60,
                 env=env)
    if suite.ran("image_observation", result):
        suite.equal("its images", [found[::2] + found[3:] for found in
                                   brightest(result.out)],
                    [("dirty", "128", "128"), ("psf", "128", "128")])
    check_ranks(suite, os.path.join(build, "clean_ranks"), obs, env)


def check_ranks(suite, program, obs, env):
    """A CLEAN on ranks finds the source, bit by bit the same on any number of them."""
    if not mpiexec():
        return
    found = {}
    for ranks in (1, 3):
        result = run([mpiexec(), "-n", str(ranks), program, obs, "256", "10asec"], 300,
                     env={**env, "OMP_NUM_THREADS": "1"})
        if not suite.ran(f"clean_ranks on {ranks} ranks", result):
            return
        found[ranks] = result.out
    suite.equal("clean_ranks: components of 1 and of 3 ranks", found[3], found[1])
    components = re.findall(r"^(\S+) Jy at pixel \((\d+), (\d+)\)", found[1], re.M)
    near = [float(flux) for flux, x, y in components
            if abs(int(x) - 128) <= 1 and abs(int(y) - 128) <= 1]
    # five cycles leave at most .2^5 of it, which the accuracy of 1e-4 adds to
    suite.below("clean_ranks: flux of the source (Jy)", abs(sum(near) - 1.5), 1.5 * 1e-3)
    result = run([mpiexec(), "-n", "2", program, "none.uvfits", "256", "10asec"], 60, env=env)
    suite.true("clean_ranks ends without an observation", result.status != 0 and
               "none.uvfits" in result.err)


def check_python(suite, obs, env):
    env = {**env, "PYTHONPATH": os.path.join(ROOT, "app", "python"),
           "TESSERA_LIBRARY": os.path.join(os.path.dirname(os.path.dirname(BIN)), "lib"),
           "PYTHONDONTWRITEBYTECODE": "1"}
    result = run([sys.executable, os.path.join(EXAMPLES, "python", "image_observation.py"),
                  obs, "256", "10asec"], 120, env=env)
    if suite.ran("image_observation.py", result):
        suite.equal("its images", [found[::2] + found[3:] for found in
                                   brightest(result.out)],
                    [("dirty", "128", "128"), ("psf", "128", "128")])


    result = run([sys.executable, os.path.join(EXAMPLES, "python", "subtract_model.py"),
                  obs, "256", "10asec", suite.path("predicted.uvfits")], 120, env=env)
    if suite.ran("subtract_model.py", result):
        found = brightest(result.out)
        suite.equal("the pixel that it subtracts", [f[::2] + f[3:] for f in found[:1]],
                    [("before", "128", "128")])
        # the source lies on the pixel: the gridder's error is left
        suite.below("what is left (Jy/beam)", float(found[1][1]), 1.5 * 1e-3)
        suite.true("its file", os.path.isfile(suite.path("predicted.uvfits")))


    check_notebook(suite, obs, env)
    check_cube_model(suite, obs, env)
    check_solvers(suite, obs, env)
    check_galaxy(suite, env)
    check_calibration(suite, env)
    if FULL:
        check_directions(suite, env)


# matplotlib where there is none: what the notebook calls of it.
NO_MATPLOTLIB = """
import pathlib, sys, types
plots = types.ModuleType("matplotlib.pyplot")
plots.subplot = lambda projection: types.SimpleNamespace(imshow=lambda pixels, **more: pixels,
                                                         set=lambda **labels: None)
plots.colorbar = lambda pixels, label: pathlib.Path(sys.argv[4]).write_text(str(pixels.max()))
plots.savefig = lambda path: None
sys.modules.update({"matplotlib": types.ModuleType("matplotlib"), "matplotlib.pyplot": plots})
sys.modules["matplotlib"].pyplot = plots
"""


def check_notebook(suite, obs, env):
    """Cleaning, restoring and plotting take ten lines at most."""
    path, picture = os.path.join(EXAMPLES, "python", "notebook.py"), suite.path("sky.png")
    with open(path) as file:
        text = file.read()
    lines = [line for line in text.split("# %%", 1)[1].splitlines()[1:]
             if line.strip() and line[0] != "#"]
    suite.true(f"notebook.py: {len(lines)} lines", len(lines) <= 10)
    has = run([sys.executable, "-c", "import matplotlib"], 60, env=env).status == 0
    script = suite.path("notebook.py")
    with open(script, "w") as file:
        file.write(("" if has else NO_MATPLOTLIB) + text)
    result = run([sys.executable, script, obs, "256", "10asec", picture], 120,
                 env={**env, "MPLBACKEND": "Agg"})
    if suite.ran("notebook.py", result) and has:
        suite.true("its picture", os.path.getsize(picture) > 5000)
    elif result.status == 0:
        with open(picture) as file:
            suite.below("its restored peak (mJy)", abs(float(file.read()) - 1500), 15)


def check_cube_model(suite, obs, env):
    """A model of two channels, as a cube and as files, leaves little of the source."""
    for name, more in (("files", []), ("cube", ["--cube"])):
        made = suite.path("made-" + name)
        if not suite.ran(f"image of two channels, {name}", run(
                [BIN, "image", obs, "-o", made, "--size", "256", "--scale", "10asec", "--channels-out", "2",
                 "--niter", "500", "--threshold", "10mJy", *more], 120, env=env)):
            return
        for terms in ([], ["2"]):
            result = run([sys.executable, os.path.join(EXAMPLES, "python", "cube_model.py"), obs, "256", "10asec",
                          made, *terms], 120, env=env)
            if not suite.ran(f"cube_model.py, {name} {terms}", result):
                continue
            flux = float(re.search(r"model: (\S+) Jy", result.out)[1])
            before, after = map(float, re.search(r"before: (\S+) .*after: (\S+) ", result.out).groups())
            # what the threshold leaves
            suite.below(f"its flux, {name} {terms} (Jy)", abs(flux - 1.5), 0.012)
            suite.below(f"what is left, {name} {terms} (Jy/beam)", after, 0.012)
            suite.below("of the source", abs(before - 1.5), 1.5 * 1e-3)
            suite.equal("channels that are predicted", len(re.findall("Jy predicted", result.out)), 4)


def check_galaxy(suite, env):
    """The map of mean velocities is that of the disk to a third of a channel."""
    os.makedirs(suite.path("galaxy"), exist_ok=True)
    result = run([sys.executable, os.path.join(EXAMPLES, "python", "rotating_galaxy.py"),
                  suite.path("galaxy"), BIN], 120, env=env)
    if suite.ran("rotating_galaxy.py", result):
        flux, velocity = re.search(r"flux (\S+) Jy.*velocities to (\S+) km/s", result.out).groups()
        # what the threshold leaves of the faint outer disk, and pixels that a beam blurs
        suite.below("its flux (Jy km/s)", abs(float(flux) - 100), 5)
        suite.below("its velocities (km/s)", float(velocity), 8 / 3)


def check_calibration(suite, env):
    """Self-calibration raises the dynamic range from round to round, by a factor of 10 and more,
    although samples that are flagged are NaN."""
    python = casacore_python()
    if not have_ms() or not python:
        return
    result = run([python, os.path.join(EXAMPLES, "python", "self_calibrate.py"), "--simulate",
                  suite.path("selfcal.ms")], 300, env=env)
    if not suite.ran("self_calibrate.py", result):
        return
    reached = [int(found) for found in re.findall(r"dynamic range (\d+)", result.out)]
    suite.true(f"its dynamic range grows: {reached}", len(reached) == 4 and sorted(reached) == reached)
    suite.true("by a factor of 10", reached[-1] > 10 * reached[0])
    peak = re.findall(r"peak (\S+) Jy/beam", result.out)
    # phases of a minute leave some of the wandering within it
    suite.below("the peak of its source of 1 Jy", abs(float(peak[-1]) - 1), 0.06)
    suite.true("its models go to MODEL_DATA",
               run([python, "-c", "import sys; from casacore.tables import table; "
                    "assert 'MODEL_DATA' in table(sys.argv[1], ack=False).colnames()",
                    suite.path("selfcal.ms")], 60).status == 0)


def check_directions(suite, env):
    """Self-calibration of facets raises the dynamic range from round to round, by a factor of 10."""
    python = casacore_python()
    if not have_ms() or not python or run([python, "-c", "import h5py"], 60).status != 0:
        return
    result = run([python, os.path.join(EXAMPLES, "python", "direction_dependent.py"), "--simulate",
                  suite.path("directions.ms")], 900, env=env)
    if not suite.ran("direction_dependent.py", result):
        return
    reached = [int(found) for found in re.findall(r"dynamic range (\d+)", result.out)]
    suite.true(f"its dynamic range grows: {reached}", len(reached) == 4 and sorted(reached) == reached)
    suite.true("by a factor of 10", reached[-1] > 10 * reached[0])
    if not dp3_program():
        return
    result = run([python, os.path.join(EXAMPLES, "python", "ddecal.py"), "--simulate", suite.path("dp3.ms")], 900,
                 env={**env, "DP3": dp3_program()})
    if suite.ran("ddecal.py", result):
        reached = [int(found) for found in re.findall(r"dynamic range (\d+)", result.out)]
        suite.true(f"its dynamic range grows by a factor of 10: {reached}",
                   len(reached) == 4 and sorted(reached) == reached and reached[-1] > 10 * reached[0])


def check_solvers(suite, obs, env):
    """Two deconvolutions over a session find the source, which lies on a pixel."""
    import numpy as np
    model = suite.path("model.npy")
    for name, args, limit in (("clean.py", [model], 0.01),
                              ("nonnegative.py", ["60", model], 0.15)):
        result = run([sys.executable, os.path.join(EXAMPLES, "python", name), obs, "256",
                      "10asec", *args], 300, env=env)
        if not suite.ran(name, result):
            continue
        found = np.load(model)
        suite.equal(f"{name}: its brightest pixel",
                    tuple(map(int, np.unravel_index(found.argmax(), found.shape))),
                    (128, 128))
        # gradients leave it spread over some pixels, less the penalty of 2 %
        suite.below(f"{name}: flux around the source (Jy)",
                    abs(found[120:137, 120:137].sum() - 1.5), 1.5 * limit)


def check_shell(suite, sky, obs, env):
    from e2e import fits_module, read_image
    fits = fits_module()
    model = suite.path("model.fits")
    run_image = run(["tessera", "image", obs, "-o", suite.path("start"), "--size", "256",
                     "--scale", "10asec", "--no-psf"], 120, env=env)
    if not suite.ran("image for the model", run_image):
        return
    with fits.open(suite.path("start-dirty.fits")) as image:
        image[0].data[...] = 0
        image[0].data[..., 128, 128] = 1.5
        image[0].header["BUNIT"] = "Jy/pixel"
        image.writeto(model)
    result = run(["bash", os.path.join(EXAMPLES, "shell", "residual.sh"), obs, model, "256",
                  "10asec", suite.path("r")], 300, env=env)
    if suite.ran("residual.sh", result):
        # The source lies on the model's pixel: the residual is the gridder's error.
        residual = abs(read_image(suite.path("r-residual-dirty.fits"))[0]).max()
        suite.below("residual.sh: largest residual (Jy/beam)", residual, 1.5 * 1e-3)
    if not mpiexec():
        return
    result = run(["bash", os.path.join(EXAMPLES, "shell", "cube.sh"), obs, "256", "10asec",
                  suite.path("c")], 300, env=env)
    suite.ran("cube.sh", result)


def main():
    suite = Suite("examples")
    prefix = install(suite)
    env = {**os.environ, "PATH": os.path.join(prefix, "bin") + ":" + os.environ["PATH"],
           "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1.5)])
    obs = simulate(suite.path("obs.uvfits"), sky, duration="20min", integration="60s")
    check_installed(suite, prefix)
    check_jobs(suite, prefix, env)
    check_completion(suite, env)
    if not SANITIZED:  # a sanitized library needs its runtime loaded before the program
        check_c(suite, prefix, obs, env)
        check_python(suite, obs, env)
    check_shell(suite, sky, obs, env)
    suite.finish()


if __name__ == "__main__":
    main()
