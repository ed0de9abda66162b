"""What the end-to-end tests share: running tessera, reading its FITS files, and checks
that are counted and printed one per line.

A test is a script: `suite = Suite("name")`, any number of checks, `suite.finish()`.
Exit status 0 when all checks hold, 1 when one does not, 77 when it has to be skipped.
`suite.skipped(why)` counts a case that cannot run here, while others do.

Environment (set by ctest):
  TESS_BIN         the program under test (default: build/bin/tessera)
  TESS_MPIEXEC     MPI launcher; without one, tests of several ranks are left out
  TESS_TEST_DATA   folder with reference data (default: ../shared beside the project)
  TESS_WORK        scratch folder of the test; removed when all checks hold
  TESS_HAVE_MS     ON when the program reads MeasurementSets
"""
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

SKIP = 77
C_M_S = 299792458.0
ASEC = np.pi / 648000.0
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MS_COLUMN = os.path.join(HERE, "ms_column.py")
BIN = os.environ.get("TESS_BIN", os.path.join(ROOT, "build", "bin", "tessera"))
FULL = "--full" in sys.argv
BACKEND = sys.argv[sys.argv.index("--backend") + 1] if "--backend" in sys.argv else "cpu"
SLOWER = int(os.environ.get("TESS_TEST_SLOWER", "1"))

# Tests of one room take cases of another.
for room in ("images", "models", "cleaning", "ranks", "words", "peers"):
    sys.path.append(os.path.join(HERE, room))


# What the test asked for in vain: the cases that need it are left out, and count as skipped.
LACKING = []


def skip(why):
    print("skipped:", why)
    sys.exit(SKIP)


def lacks(what):
    if what not in LACKING:
        LACKING.append(what)


def have_h5py():
    """Whether the program reads solutions, and this Python writes them."""
    if os.environ.get("TESS_HAVE_HDF5", "ON") != "ON":
        lacks("solutions: built without HDF5")
        return False
    try:
        import h5py  # noqa: F401
    except ImportError:
        lacks("solutions: h5py is not installed")
        return False
    return True


def mpiexec():
    """Launcher, or None when there is none."""
    launcher = os.environ.get("TESS_MPIEXEC")
    if launcher is None:  # empty: the program has been built without MPI
        launcher = shutil.which("mpirun") or shutil.which("mpiexec")
    if not launcher:
        lacks("several ranks: no MPI launcher")
    return launcher or None


def have_ms():
    if os.environ.get("TESS_HAVE_MS", "ON") in ("ON", "1", "TRUE"):
        return True
    lacks("MeasurementSets: built without them")
    return False


def data_folder(*parts):
    """A path of the reference data; skips the test when it is not there."""
    base = os.environ.get("TESS_TEST_DATA") or os.path.join(ROOT, "..", "shared")
    path = os.path.join(base, *parts)
    if not os.path.exists(path):
        skip(f"no reference data ({os.path.join(*parts)}); set TESS_TEST_DATA")
    return path


def fits_module():
    try:
        from astropy.io import fits
    except ImportError:
        skip("astropy is not installed")
    return fits


class Result:
    """What a run left: exit status, both streams, seconds, whether it hung."""

    def __init__(self, status, out, err, seconds, hung):
        self.status, self.out, self.err = status, out, err
        self.seconds, self.hung = seconds, hung

    def errors(self):
        """The program's own error lines."""
        return [s for s in self.err.splitlines() if s.startswith("tessera: error:")]


def need_backend():
    """Skips the test where there is no device for --backend."""
    result = tessera("bench", "grid", "--vis", "1e3", "--size", "64", "--accuracy", "1e-2",
                     "--repeat", "1", "--backend", BACKEND)
    if result.status == 4:
        skip(f"no backend {BACKEND} here: {' '.join(result.errors())}")


def mpi_environment():
    env = dict(os.environ)
    env.setdefault("OMPI_ALLOW_RUN_AS_ROOT", "1")
    env.setdefault("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    env.setdefault("OMPI_MCA_rmaps_base_oversubscribe", "1")
    env.setdefault("OMPI_MCA_hwloc_base_binding_policy", "none")
    env.setdefault("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
    env.setdefault("OMPI_MCA_pml", "ob1")
    env.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
    return env


def unsignalled_environment():
    """That of runs to which nobody sends a signal: once a rank has ended with an error status,
    Open MPI's launcher waits a second for the others, which end by themselves."""
    return {**mpi_environment(), "OMPI_MCA_odls_base_sigkill_timeout": "0"}


def forced(**choices):
    """A word for the choices that a run takes from the planner, forced(fft_ranks=2, passes=3).
    It stands among a command's words; take_forced() makes it a variable of the run."""
    return ["TESS_FORCE=" + ",".join(f"{key.replace('_', '-')}={value}"
                                     for key, value in choices.items())]


def take_forced(command, env=None):
    """A command without its words of forced(), and the environment that they make."""
    words = [str(word) for word in command]
    choices = [word[len("TESS_FORCE="):] for word in words if word.startswith("TESS_FORCE=")]
    env = dict(mpi_environment() if env is None else env)
    if choices:
        env["TESS_FORCE"] = ",".join(choices)
    return [word for word in words if not word.startswith("TESS_FORCE=")], env


def run(command, timeout, cwd=None, env=None, user=None):
    """Run a command in its own process group, which is ended as a whole if it hangs. Words
    of forced() among it count. `user`: the number of the user, and of the only group, to run it as (root's)."""
    start = time.monotonic()
    other = {} if user is None else dict(user=user, group=user, extra_groups=[])
    command, env = take_forced(command, env)
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             cwd=cwd, env=env, text=True,
                             errors="replace", start_new_session=True, **other)
    hung = False
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        hung = True
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
    return Result(child.returncode, out, err, time.monotonic() - start, hung)


def tessera(*args, ranks=1, timeout=120, cwd=None, env=None, user=None):
    """Run tessera, where the script was given a --backend, by that one, unless `args` have
    another. With one rank it is started directly, else through the launcher."""
    command = [BIN] + [str(a) for a in args]
    if BACKEND != "cpu" and args[0] in ("image", "predict") and "--backend" not in args:
        command += ["--backend", BACKEND]
    if ranks > 1:
        command = [mpiexec(), "-n", str(ranks)] + command
    return mistaken_end(run(command, timeout * SLOWER, cwd=cwd,
                            env=env or unsignalled_environment(), user=user))


def mistaken_end(result):
    """Open MPI 4's launcher takes one end of some thousand for improper, though the rank
    has finalised; it then says that the process had number 0 (github.com/open-mpi/ompi,
    issues 7833 and 9389). Such a run succeeded if the program's last lines are there."""
    mistaken = re.search(r"due to process rank \d+ with PID 0 on\s+node \S+ exiting",
                         result.err)
    if result.status == 1 and mistaken and re.search(r"\] seconds: ", result.err):
        result.status = 0
    return result


def dp3_program():
    """DP3 on PATH, or DP3.py beside TESS_CASA_PYTHON; None: it is not there."""
    beside = os.path.dirname(os.environ.get("TESS_CASA_PYTHON", ""))
    return shutil.which("DP3") or shutil.which(os.path.join(beside, "DP3.py"))


def casacore_python():
    """An interpreter that can import casacore, or None. python3-casacore may belong to
    another one than the tests'."""
    for name in (os.environ.get("TESS_CASACORE_PYTHON"), sys.executable,
                 "/usr/bin/python3"):
        if name and run([name, "-c", "import casacore.tables"], 60).status == 0:
            return name
    lacks("what tables hold: casacore's Python module is not there")
    return None


def simulate(out, sky, layout="vla-d", ra="60deg", dec="-30deg", duration="1h",
             integration="120s", freq="1.4GHz", width="4MHz", channels=4, pol="XX,YY",
             start="2026-01-01T20:00:00", extra=()):
    """Observation `out` of the sky (a CSV file) made by tessera itself."""
    result = tessera("simulate", "--layout", layout, "--sky", sky, "--ra", ra,
                     f"--dec={dec}", "--start", start, "--duration", duration,
                     "--integration", integration, "--freq", freq, "--chan-width", width,
                     "--channels", channels, "--pol", pol, *extra, "-o", out)
    if result.status != 0:
        print(result.out, result.err)
        raise SystemExit(f"simulate failed with status {result.status}")
    return out


SKY_COLUMNS = "name,ra,dec,flux_jy,q,u,v,spectral_index,ref_freq,major,minor,pa"


def write_sky(path, sources):
    """Sky model; each source a dict of the columns above, the absent ones 0."""
    names = SKY_COLUMNS.split(",")
    default = dict(name="S", q=0, u=0, v=0, spectral_index=0, ref_freq="1.4GHz",
                   major="0asec", minor="0asec", pa="0deg")
    with open(path, "w") as f:
        f.write(SKY_COLUMNS + "\n")
        for source in sources:
            f.write(",".join(str({**default, **source}[n]) for n in names) + "\n")
    return path


def offset_radec(ra_deg, dec_deg, l, m):
    """RA, Dec (deg) of direction cosines l, m about a phase centre (SIN projection)."""
    ra0, dec0 = np.deg2rad(ra_deg), np.deg2rad(dec_deg)
    n = np.sqrt(1 - l * l - m * m)
    dec = np.arcsin(m * np.cos(dec0) + n * np.sin(dec0))
    ra = ra0 + np.arctan2(l, n * np.cos(dec0) - m * np.sin(dec0))
    return np.rad2deg(ra), np.rad2deg(dec)


def read_image(path):
    """Image [ny, nx] as float64, and its header."""
    with fits_module().open(path) as hdus:
        return np.array(hdus[0].data, "f8").squeeze(), hdus[0].header.copy()


def peak_error(image, reference):
    """Largest difference over the largest reference value."""
    if image.shape != reference.shape:
        return np.inf
    if not (np.isfinite(image) == np.isfinite(reference)).all():
        return np.inf
    return np.nanmax(np.abs(image - reference)) / np.nanmax(np.abs(reference))


def l2_error(image, reference):
    if image.shape != reference.shape or not np.isfinite(image).all():
        return np.inf
    return np.linalg.norm(image - reference) / np.linalg.norm(reference)


def worst_block(image, reference, blocks=8):
    """Largest rms error of the blocks of a blocks × blocks cut, over the rms of all."""
    worst = 0.0
    difference = image - reference
    for rows in np.array_split(difference, blocks, axis=0):
        for part in np.array_split(rows, blocks, axis=1):
            worst = max(worst, np.sqrt(np.mean(part ** 2)))
    return worst / np.sqrt(np.mean(reference ** 2))


def sky_positions(header, shape):
    """RA, Dec (deg) of the corners and the centre, by astropy."""
    from astropy.wcs import WCS
    ny, nx = shape
    x = np.array([0, nx - 1, 0, nx - 1, nx // 2], float)
    y = np.array([0, 0, ny - 1, ny - 1, ny // 2], float)
    return WCS(header, fix=False).celestial.wcs_pix2world(x, y, 0)


def wcs_difference(header, reference, shape):
    """Largest distance between what two headers say of the same pixels, in pixels."""
    a, b = sky_positions(header, shape), sky_positions(reference, shape)
    same = np.isfinite(a[0]) & np.isfinite(b[0])
    if not (np.isfinite(a[0]) == np.isfinite(b[0])).all():
        return np.inf
    dra = (a[0] - b[0] + 180.0) % 360.0 - 180.0
    away = np.hypot(dra * np.cos(np.deg2rad(b[1])), a[1] - b[1])[same]
    return away.max() / abs(reference["CDELT2"])


def beam_difference(header, reference):
    """Largest relative difference of the beam's axes; the position angle counts as far
    as it turns an elliptical beam's ends."""
    major, minor = reference["BMAJ"], reference["BMIN"]
    worst = max(abs(header["BMAJ"] / major - 1), abs(header["BMIN"] / minor - 1))
    turn = np.deg2rad((header["BPA"] - reference["BPA"] + 90) % 180 - 90)
    return max(worst, abs(np.sin(turn)) * (major - minor) / major)


class Suite:
    """Counts checks; prints each as `ok` or `FAILED` with value and limit."""

    def __init__(self, name):
        self.name, self.passed, self.failed, self.not_run = name, 0, 0, []
        if not os.access(BIN, os.X_OK):
            skip(f"{BIN} is not built")
        if BACKEND != "cpu":
            need_backend()
        self.work = os.environ.get("TESS_WORK") or os.path.join(
            ROOT, "build", "tests", "work", name)
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)

    def path(self, *parts):
        return os.path.join(self.work, *parts)

    def record(self, good, text):
        self.passed += bool(good)
        self.failed += not good
        print("  ok     " if good else "  FAILED ", text, flush=True)
        return bool(good)

    def below(self, what, value, limit):
        """value <= limit; NaN fails."""
        return self.record(value <= limit, f"{what}: {value:.3g} (limit {limit:.3g})")

    def equal(self, what, value, expected):
        return self.record(value == expected, f"{what}: {value!r} (expected {expected!r})")

    def true(self, what, good):
        return self.record(good, what)

    def ran(self, what, result, status=0):
        """A run ended with the status expected; shows its streams when not."""
        good = self.record(result.status == status and not result.hung,
                           f"{what}: exit status {result.status} (expected {status})"
                           + (", HUNG" if result.hung else ""))
        if not good:
            print("\n".join((result.out[-2000:], result.err[-3000:])), flush=True)
        return good

    def skipped(self, why):
        """A case that cannot run here."""
        self.not_run.append(why)
        print("  skipped", why, flush=True)

    def image(self, name, *args, ranks=1, timeout=120, status=0):
        """`tessera image ... -o work/name`; returns whether it ran and the prefix."""
        prefix = self.path(name)
        result = tessera("image", *args, "--overwrite", "-o", prefix, ranks=ranks,
                         timeout=timeout)
        return self.ran(f"image {name}", result, status), prefix

    def finish(self):
        self.not_run += LACKING
        print(f"{self.name}: {self.passed} checks passed, {self.failed} failed, "
              f"{len(self.not_run)} cases skipped" + "".join(
                  f"\n  skipped: {why}" for why in self.not_run))
        if self.failed == 0 and "TESS_KEEP" not in os.environ:
            shutil.rmtree(self.work, ignore_errors=True)
        if self.not_run and not self.passed and not self.failed:
            sys.exit(SKIP)
        sys.exit(1 if self.failed or not self.passed else 0)
