#!/usr/bin/env python3
"""`pip install .` in a fresh environment, where the tests of this folder and
mypy --strict run against what was installed. In the fast tier the wheel uses the library
of the build; with --full it builds the library itself, which takes minutes.

Packages come from PyPI: the test is skipped where pip does not reach it.
"""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from e2e import (BIN, FULL, ROOT, SLOWER, Suite, have_ms, run, simulate,  # noqa: E402
                 skip, write_sky)

SOURCE, MODULE = ROOT, os.path.join(ROOT, "app", "python")
LIBRARY = os.environ.get("TESSERA_LIBRARY", os.path.join(
    os.path.dirname(os.path.dirname(BIN)), "lib"))
NEEDS = ["numpy", "astropy", "mypy"]
with open(os.path.join(MODULE, "tessera", "_version.py"), encoding="utf-8") as _file:
    SERIES = ".".join(_file.read().split('"')[-2].split(".")[:2])
SONAME = f"libtessera.so.{SERIES}"


class Fresh:
    """A new virtual environment, and the process environment of those who use it: nothing
    in it leads to a library by chance."""

    def __init__(self, suite):
        self.folder = suite.path("environment")
        made = run([sys.executable, "-m", "venv", self.folder], 120)
        if made.status != 0:
            skip(f"no virtual environment can be made (python3-venv): {made.out}{made.err}")
        self.python = os.path.join(self.folder, "bin", "python")
        lost = ("TESSERA_LIBRARY", "PYTHONPATH", "PKG_CONFIG_PATH", "LD_LIBRARY_PATH")
        self.env = {k: v for k, v in os.environ.items() if k not in lost}
        self.env.update(PYTHONDONTWRITEBYTECODE="1", PIP_DISABLE_PIP_VERSION_CHECK="1",
                        VIRTUAL_ENV=self.folder,
                        PATH=os.path.dirname(self.python) + ":" + os.environ["PATH"])
        self.keep_pip_settings()
        self.env["HOME"] = suite.path("home")  # nobody's ~/.local is looked into
        os.makedirs(self.env["HOME"])

    def keep_pip_settings(self):
        """pip's cache, and where it gets packages from, are the user's."""
        self.env.setdefault("PIP_CACHE_DIR", os.path.join(
            os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "pip"))
        for name in ("~/.pip/pip.conf", "~/.config/pip/pip.conf"):
            if os.path.exists(os.path.expanduser(name)):
                self.env.setdefault("PIP_CONFIG_FILE", os.path.expanduser(name))

    def run(self, arguments, seconds=120, **more):
        return run([self.python, *arguments], seconds * SLOWER, env={**self.env, **more})

    def pip(self, *arguments, seconds=600, **more):
        return self.run(["-m", "pip", "install", "-q", *arguments], seconds, **more)

    def finds_library(self):
        return self.run([os.path.join(MODULE, "tessera", "_find.py"),
                         SERIES]).status == 0

    def package(self):
        """The installed module's folder."""
        where = self.run(["-c", "import sysconfig; print(sysconfig.get_paths()['platlib'])"])
        return os.path.join(where.out.strip(), "tessera")


def install_needs(fresh):
    needs = fresh.pip("scikit-build-core>=0.10", *NEEDS)
    if needs.status != 0:
        skip(f"pip cannot install {', '.join(NEEDS)} (no network?): {needs.err[-300:]}")
    if fresh.pip("ducc0").status != 0:
        print("  ducc0 cannot be installed: comparisons with it are skipped")


def install(suite, fresh):
    """The module, as README says. Returns the environment that finds its library."""
    if not FULL:
        given = {"TESSERA_LIBRARY": LIBRARY}
        result = fresh.pip(SOURCE, **given)
        suite.ran("pip install, with an installed library", result)
        return given
    settings = []
    if fresh.finds_library():
        settings.append("--config-settings=cmake.define.TESSERA_BUNDLE=ON")
    result = fresh.pip(SOURCE, *settings, seconds=3000)
    suite.ran("pip install, without an installed library", result)
    return {}


def check_contents(suite, fresh, before):
    found = sorted(os.listdir(fresh.package()))
    suite.true(f"the wheel holds {found}",
               (SONAME in found) == FULL and "py.typed" in found and
               "CMakeLists.txt" not in found)
    if FULL and have_ms():
        suite.true("with the check of MeasurementSets, which can be run", os.access(
            os.path.join(fresh.package(), "tessera-ms-check"), os.X_OK))
    suite.equal("the source's folder is as it was", sorted(os.listdir(MODULE)), before)


def check_search(suite, fresh):
    """What is loaded, and what an import says where there is nothing."""
    code = ("import tessera; from tessera import _library; "
            "print(tessera.__version__, tessera.library_version(), _library.library._name)")
    nowhere = fresh.run(["-c", code], TESSERA_LIBRARY=suite.path("nowhere"))
    suite.true("TESSERA_LIBRARY comes first; nothing there is an ImportError that says so",
               nowhere.status != 0 and "ImportError" in nowhere.err and
               "nowhere" in nowhere.err)
    if FULL:
        found = fresh.run(["-c", code])
        suite.true(f"the wheel's library is found: {found.out}",
                   fresh.package() in found.out)
    elif shutil.which("pkg-config"):
        folder = suite.path("pkgconfig")
        os.makedirs(folder)
        with open(os.path.join(folder, "tessera.pc"), "w") as file:
            file.write(f"libdir={LIBRARY}\nName: tessera\nDescription: x\nVersion: 0\n")
        found = fresh.run(["-c", code], PKG_CONFIG_PATH=folder)
        suite.true(f"the library is found by pkg-config: {found.out}{found.err}",
                   found.status == 0 and LIBRARY in found.out)
    version = fresh.run(["-c", "import tessera; v = tessera.__version__; "
                         "assert tessera.library_version().split()[0] == v, v"],
                        **({} if FULL else {"TESSERA_LIBRARY": LIBRARY}))
    suite.ran("the module's version is the library's", version)


def check_old_library(suite, fresh):
    """A library of the series that lacks calls is passed over, in words."""
    if FULL or not shutil.which("cc"):
        return
    source, old = suite.path("old.c"), suite.path(SONAME)
    with open(source, "w") as file:
        file.write('const char *tess_version(void) { return "%s.0"; }\n' % SERIES)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", old, source], check=True)
    result = fresh.run(["-c", "import tessera"], TESSERA_LIBRARY=old)
    suite.true("an old library is an ImportError that says what it lacks",
               result.status != 0 and "too old" in result.err and "tess_" in result.err)


def check_types(suite, fresh, obs, given):
    script = os.path.join(HERE, "user_script.py")
    cache = f"--cache-dir={suite.path('mypy')}"
    result = fresh.run(["-m", "mypy", "--strict", cache, script], 300)
    suite.true(f"mypy --strict of a user's script: {result.out.strip()}", result.status == 0)
    result = fresh.run(["-m", "mypy", "--strict", cache, "-p", "tessera",
                        "--config-file", os.path.join(SOURCE, "pyproject.toml")], 300)
    suite.true(f"mypy --strict of the module: {result.out.strip()}", result.status == 0)
    wrong = suite.path("wrong.py")
    with open(wrong, "w") as file:
        file.write("import tessera\ntessera.info(3)\ntessera.image('a', size=8)\n"
                   "tessera.wgridder.vis2dirty(uvw=1)\nn: int = tessera.library_version()\n"
                   "tessera.image('a', size=8, scale=1.0, nitr=3)\n"
                   "tessera.casa.tclean('a', imsiez=3)\nimport tessera.casa\n")
    result = fresh.run(["-m", "mypy", "--strict", cache, wrong], 300)
    for line in (2, 3, 4, 5, 6, 7):
        suite.true(f"mypy finds the mistake in line {line}",
                   f"wrong.py:{line}: error" in result.out)
    result = fresh.run([script, obs], 120, **given)
    suite.ran("the script runs", result)


def check_tests(suite, fresh, given):
    """The other tests of this folder; in the fast tier, which runs all of them with the module
    of the source, two that need all its parts."""
    for name in ("casa", "data", *(("wgridder", "images", "commands", "session") if FULL else ())):
        result = fresh.run([os.path.join(HERE, f"{name}.py")], 300, TESS_TEST_INSTALLED="1",
                           TESS_WORK=suite.path(f"work-{name}"), TESS_BIN=BIN, **given)
        last = result.out.strip().splitlines()[-1:] if result.out else []
        if not suite.true(f"{name}.py with the installed module: {last}",
                          result.status == 0):
            print(result.out[-3000:], result.err[-3000:])


def main():
    suite = Suite("python_wheel")
    if SLOWER != 1:
        skip("a sanitized library needs its runtime loaded before Python")
    if not FULL and not os.path.exists(LIBRARY):
        skip("the library is not built")
    fresh = Fresh(suite)
    install_needs(fresh)
    before = sorted(os.listdir(MODULE))
    given = install(suite, fresh)
    if os.path.isdir(fresh.package()):
        sky = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
        obs = simulate(suite.path("obs.uvfits"), sky, duration="10min", integration="60s")
        check_contents(suite, fresh, before)
        check_search(suite, fresh)
        check_old_library(suite, fresh)
        check_types(suite, fresh, obs, given)
        check_tests(suite, fresh, given)
    suite.finish()


if __name__ == "__main__":
    main()
