#!/usr/bin/env python3
"""What installs tessera elsewhere: environment module, recipes of Spack and EasyBuild, Apptainer definitions.

The module is loaded for real by each module system found (Environment Modules, Lmod), and
a program is compiled with what it sets alone. There is no Spack and no Apptainer in
Debian: the recipe runs with Spack's directives recorded by stand-ins, and its options are
compared with the project's; of the definition, packages and options are.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "oracle"))
from e2e import BIN, ROOT, Suite, run  # noqa: E402

PACKAGES = os.path.join(ROOT, "jobs", "packages")
EASYBUILD = os.path.join(PACKAGES, "easybuild")
RECIPE = os.path.join(PACKAGES, "spack", "packages", "tessera", "package.py")
# Where eb and the linters of Spack are: `. tests/setup.sh; tess_setup_linters FOLDER`.
LINTERS = os.path.dirname(os.environ.get("TESS_LINT_PYTHON", sys.executable))
MODULE_SYSTEMS = {"Environment Modules": "/usr/share/modules/init/bash",
                  "Lmod": "/usr/share/lmod/lmod/init/bash"}
SANITIZED = os.environ.get("TESS_TEST_SLOWER", "1") != "1"


def text_of(*parts):
    with open(os.path.join(ROOT, *parts)) as f:
        return f.read()


def project_version():
    return re.search(r"project\(tessera VERSION ([\d.]+)", text_of("CMakeLists.txt")).group(1)


# ---- environment module ----

LOAD = """
. {init}
module use {prefix}/share/modulefiles
module load tessera || exit 1
test "$(command -v tessera)" = {prefix}/bin/tessera || exit 2
test "$(tessera --version)" = "$({binary} --version)" || exit 3
cc -o {work}/by_module {source} -ltessera -lm && {work}/by_module || exit 4
pkg-config --exists tessera || exit 5
module help tessera 2>&1 | grep -q find_package || exit 6
module unload tessera
test -z "${{TESSERA_ROOT:-}}" && test "$(command -v tessera)" != {prefix}/bin/tessera
"""


def check_module(suite):
    prefix = suite.path("prefix")
    build = os.path.dirname(os.path.dirname(BIN))
    if not suite.ran("cmake --install", run(
            ["cmake", "--install", build, "--prefix", prefix], 300)):
        return
    words = open_text(prefix, "share", "modulefiles", "tessera", project_version())
    suite.true("the module names the folder installed to", f'"{prefix}"' in words and
               not re.search(r"@\w+@", words))
    for name, init in MODULE_SYSTEMS.items():
        if not os.path.exists(init) or SANITIZED:
            suite.skipped(f"module load: no {name}, or a sanitized library")
            continue
        script = LOAD.format(init=init, prefix=prefix, binary=BIN, work=suite.work,
                             source=os.path.join(HERE, "consume.c"))
        suite.ran(f"module load tessera, by {name}", run(["bash", "-c", script], 300))
    staged = suite.path("staged")
    env = dict(os.environ, DESTDIR=staged)
    suite.ran("cmake --install with DESTDIR", run(
        ["cmake", "--install", build, "--prefix", "/opt/tessera"], 300, env=env))
    words = open_text(staged + "/opt/tessera", "share", "modulefiles", "tessera",
                      project_version())
    suite.true("a staged module names its final folder", '"/opt/tessera"' in words)


def open_text(*parts):
    with open(os.path.join(*parts)) as f:
        return f.read()


# ---- Spack ----

class Recorder:
    """Stands in for Spack's package class: notes directives, answers with defaults."""

    def __init__(self):
        self.directives = []

    def directive(self, name):
        def note(*args, **more):
            self.directives.append((name, args, more))
        return note

    def named(self, name):
        return [(args, more) for n, args, more in self.directives if n == name]


def load_recipe():
    """(recipe's class, Recorder)"""
    recorder = Recorder()

    class Package:
        run_tests = False

        @staticmethod
        def define(name, value):
            return f"-D{name}={value}"

        def define_from_variant(self, name, variant):
            known = [args[0] for args, _ in recorder.named("variant")] + ["cuda"]
            if variant not in known:
                raise KeyError(variant)
            return self.define(name, self.chosen.get(variant, True))

    names = {"spack": {}, "spack.package": {n: recorder.directive(n) for n in
             ("version", "variant", "depends_on", "conflicts")}}
    for place, base in (("cmake", "CMakePackage"), ("cuda", "CudaPackage")):
        names[f"spack_repo.builtin.build_systems.{place}"] = {base: type(base, (), {})}
    for parent in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        names[parent] = {}
    names["spack_repo.builtin.build_systems.cmake"]["CMakePackage"] = Package
    for name, content in names.items():
        module = types.ModuleType(name)
        module.__dict__.update(content)
        sys.modules[name] = module
    found = {}
    exec(compile(open_text(RECIPE), RECIPE, "exec"), found)
    return found["Tessera"], recorder


def cmake_options():
    """Names of the project's own options, and those of CMake that it reads."""
    text = text_of("CMakeLists.txt") + text_of("cmake", "cuda.cmake")
    return set(re.findall(r"(?:option|set)\((TESS_\w+) ", text)) | {
        "CMAKE_CUDA_ARCHITECTURES"}


def check_spack(suite):
    recipe, recorder = load_recipe()
    suite.equal("Spack: version", [a[0] for a, _ in recorder.named("version")],
                [project_version()])
    package = recipe()
    package.chosen = {"cuda": True}
    package.spec = types.SimpleNamespace(
        satisfies=lambda text: text == "+cuda",
        variants={"cuda_arch": types.SimpleNamespace(value=("80", "90"))})
    args = package.cmake_args()
    suite.true("Spack: GPU architectures", "-DCMAKE_CUDA_ARCHITECTURES=80;90" in args)
    unknown = [a for a in args if a[2:].split("=")[0] not in cmake_options()]
    suite.equal("Spack: options that the project does not have", unknown, [])
    needs = {re.split(r"[@: ]", a[0])[0] for a, _ in recorder.named("depends_on")}
    # What cmake/dependencies.cmake looks for, by Spack's names of it.
    wanted = {"fftw", "cfitsio", "cminpack", "jansson", "erfa", "libpng", "mpi", "casacore", "hdf5",
              "cmake", "pkgconfig", "c", "cxx"}
    suite.equal("Spack: needed and not asked for", sorted(wanted - needs), [])
    looked = set(re.findall(r"pkg_check_modules\(\w+ REQUIRED IMPORTED_TARGET (\w+)\)",
                            text_of("cmake", "dependencies.cmake")))
    suite.equal("Spack: the project needs no more", sorted(looked),
                ["cfitsio", "cminpack", "fftw3", "fftw3f", "jansson"])
    repository = open_text(PACKAGES, "spack", "repo.yaml")
    suite.true("Spack: repo.yaml", "namespace: tessera" in repository)


# ---- Apptainer ----

def sections(text, stage):
    """{section: its lines} of a stage of the definition."""
    parts = re.split(r"(?m)^Bootstrap: .*$", text)
    body = next(p for p in parts if re.search(rf"(?m)^Stage: {stage}$", p))
    found = re.split(r"(?m)^%(\w+).*$", body)
    return dict(zip(found[1::2], found[2::2]))


def packages_of(script):
    found = re.findall(r"apt-get install((?:[^\n]*\\\n)*[^\n]*)", script)
    return {w for line in found for w in line.split() if w[0] not in "-\\"}


def check_apptainer(suite):
    text = open_text(PACKAGES, "tessera.def")
    build, final = sections(text, "build"), sections(text, "final")
    setup = text_of("tests", "setup.sh")
    usual = re.search(r'TESS_BUILD_PACKAGES="([^"]+)"', setup).group(1)
    suite.equal("Apptainer: packages to build with, beside those of tests/setup.sh",
                packages_of(build["post"]) ^ set(usual.replace("\\", " ").split()),
                {"python3"})
    options = set(re.findall(r"-D(TESS_\w+)=", build["post"]))
    suite.equal("Apptainer: unknown options", options - cmake_options(), set())
    for stage, found in (("build", build), ("final", final)):
        done = subprocess.run(["sh", "-n"], input=found["post"], text=True,
                              capture_output=True)
        suite.equal(f"Apptainer: sh -n, %post of {stage}", (done.returncode, done.stderr),
                    (0, ""))
    check_runtime_packages(suite, packages_of(final["post"]))


def check_cuda_definition(suite):
    """The definition for GPUs is the other one, but for where it comes from and what is CUDA's."""
    plain, cuda = (sections(open_text(PACKAGES, name), "build")["post"]
                   for name in ("tessera.def", "tessera-cuda.def"))
    suite.equal("CUDA: packages to build with", packages_of(cuda), packages_of(plain))
    suite.true("CUDA: options", re.findall(r"-D(TESS_\w+)=", cuda) ==
               re.findall(r"-D(TESS_\w+)=", plain) and "-DTESS_CUDA=ON" in cuda and
               "CMAKE_CUDA_ARCHITECTURES=80;90" in cuda)
    for stage in ("build", "final"):
        script = sections(open_text(PACKAGES, "tessera-cuda.def"), stage)["post"]
        done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True)
        suite.equal(f"CUDA: sh -n, %post of {stage}", (done.returncode, done.stderr), (0, ""))


# ---- EasyBuild ----

def check_easybuild(suite):
    """The recipe is Python that sets names."""
    version = project_version()
    path = os.path.join(EASYBUILD, f"tessera-{version}-foss-2023b.eb")
    found = {"SOURCE_TAR_GZ": "%(name)s-%(version)s.tar.gz", "SHLIB_EXT": "so"}
    exec(compile(open_text(path), path, "exec"), found)
    suite.equal("EasyBuild: name and version", (found["name"], found["version"]),
                ("tessera", version))
    unknown = set(re.findall(r"-D(\w+)=", found["configopts"])) - cmake_options()
    suite.equal("EasyBuild: options that the project does not have", unknown, set())
    needs = {name.lower() for name, _ in found["dependencies"] + found["builddependencies"]}
    suite.equal("EasyBuild: needed and not asked for (FFTW and MPI are foss's)",
                sorted({"cfitsio", "cminpack", "jansson", "erfa", "libpng", "casacore", "hdf5",
                        "cmake", "pkgconf"} - needs), [])
    check_eb(suite, path)


def check_eb(suite, path):
    """EasyBuild itself: the style of the recipes, and whether there are recipes of all that is needed."""
    eb = os.path.join(LINTERS, "eb")
    modules = glob.glob("/usr/lib/*/modulecmd.tcl")
    if not os.path.exists(eb) or not modules:
        suite.skipped("EasyBuild's checks: no eb (tess_setup_linters), or no Environment Modules")
        return
    home = suite.path("modules")
    os.makedirs(os.path.join(home, "libexec"))
    os.symlink(modules[0], os.path.join(home, "libexec", "modulecmd.tcl"))
    usual = [eb, "--allow-use-as-root-and-accept-consequences", "--modules-tool=EnvironmentModules",
             "--module-syntax=Tcl", "--allow-modules-tool-mismatch"]
    env = dict(os.environ, MODULESHOME=home, HOME=home, PATH=LINTERS + ":" + os.environ["PATH"])
    styled = run([*usual, "--check-style", *glob.glob(os.path.join(EASYBUILD, "*.eb"))], 120, env=env)
    suite.true("eb --check-style", styled.status == 0 and styled.out.count("[PASS]") == 3)
    found = run([*usual, "--dry-run", f"--robot={EASYBUILD}:", "--", path], 120, env=env)
    if not suite.true("eb --dry-run --robot finds recipes of all that is needed", found.status == 0 and
                      "casacore/3.5.0-foss-2023b" in found.out):
        print(found.out[-1000:], found.err[-1000:])


def check_style(suite):
    """Spack's recipe as the linters see it that `spack style` runs, with its settings."""
    for linter, *settings in (
            ("black", "-l", "99", "--check"), ("isort", "--profile", "black", "-l", "99", "-p", "spack", "--check"),
            ("flake8", "--max-line-length", "99", "--extend-ignore=F403,F405")):
        program = os.path.join(LINTERS, linter)
        if not os.path.exists(program):
            suite.skipped(f"{linter} is not installed (tess_setup_linters)")
            continue
        suite.ran(f"{linter} of Spack's recipe", run([program, *settings, RECIPE], 60))


def check_runtime_packages(suite, listed):
    """Every library that the program names is of a package that the image installs, or of
    one that those depend on (on the Debian that the image has)."""
    release = open_text("/etc/os-release") if os.path.exists("/etc/os-release") else ""
    if "bookworm" not in release or not shutil.which("objdump") or SANITIZED:
        suite.skipped("Apptainer: libraries' packages: not on Debian 12, or no objdump")
        return
    needed = re.findall(r"NEEDED\s+(\S+)", run(["objdump", "-p", BIN], 60).out)
    places = dict(re.findall(r"(\S+) => (\S+)", run(["ldd", BIN], 60).out))
    owners = set()
    for name in needed:
        path = os.path.realpath(places.get(name, "/"))
        owner = run(["dpkg", "-S", path], 60).out.split(":")[0]
        if owner:
            owners.add(owner)
    tree = run(["apt-cache", "depends", "--recurse", "--installed", "--no-recommends",
                "--no-suggests", *sorted(listed)], 60).out
    reached = set(re.findall(r"^\s*(?:\|?Depends: )?([a-z0-9.+-]+)$", tree, re.M))
    suite.equal("Apptainer: libraries of packages not installed",
                sorted(owners - reached - listed), [])


def main():
    suite = Suite("packages")
    check_module(suite)
    check_spack(suite)
    check_apptainer(suite)
    check_cuda_definition(suite)
    check_easybuild(suite)
    check_style(suite)
    suite.finish()


if __name__ == "__main__":
    main()
