"""Beams of stations (LOFAR, SKA-Low, MWA, OSKAR) in the directions of facets, computed by EveryBeam and written
as an h5parm, which `tessera facets --solutions` and `--facet-solutions` read beside calibrations:

    tessera-station-beams obs.ms facets.reg -o beams.h5
    tessera-station-beams obs.ms calibration.h5 -o beams.h5    # at the directions of solutions

The file has Jones matrices (amplitude000 and phase000 of XX, XY, YX, YY) of each station, every two minutes and
every megahertz. EveryBeam (PyPI: everybeam), python-casacore and h5py have to be installed; the library of tessera
is not needed. docs/manual/facets.md says more.
"""
from __future__ import annotations

import argparse
import atexit
import math
import os
import re
import sys
import tempfile
import time
from typing import Any, NamedTuple, Sequence

import numpy as np
import numpy.typing as npt

USAGE, INPUT, RESOURCE = 2, 3, 4
POLARISATIONS = ("XX", "XY", "YX", "YY")
MODES = {"none": "none", "preapplied": "pre_applied", "amplitude": "amplitude", "full": "full"}

Floats = npt.NDArray[np.float64]


class Failure(Exception):
    """What ends the program: one line, and the exit status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Direction(NamedTuple):
    """A direction in radians (J2000)."""
    name: str
    ra: float
    dec: float


class Observation(NamedTuple):
    """What beams depend on: times (MJD) in seconds, frequencies in Hz, positions in metres."""
    time: Floats
    freq: Floats
    stations: list[str]
    position: Floats


# ---- directions ----

def angle(text: str, hours: bool) -> float:
    """Degrees of a coordinate: decimal, or sexagesimal with hours of right ascension."""
    match = re.fullmatch(r"([+-]?)([\d.]+)(?:([:hd])([\d.]+)[:m]([\d.]+)s?|d|deg)?", text.strip())
    if not match:
        raise ValueError(text)
    sign = -1.0 if match[1] else 1.0
    sign = 1.0 if match[1] == "+" else sign
    degrees = float(match[2])
    if match[3]:
        degrees += float(match[4]) / 60 + float(match[5]) / 3600
        degrees *= 15.0 if hours and match[3] != "d" else 1.0
    return sign * degrees


def centroid(ra: Floats, dec: Floats) -> tuple[float, float]:
    """The centroid of a polygon of degrees, in the plane that touches the sphere at its first vertex."""
    x = (ra - ra[0] + 180) % 360 - 180
    x = x * math.cos(math.radians(float(dec.mean())))
    y = dec - dec[0]
    cross = x * np.roll(y, -1) - np.roll(x, -1) * y
    area = float(cross.sum()) / 2
    if abs(area) < 1e-12:
        return float(ra[0] + x.mean()), float(dec.mean())
    middle = [float(((v + np.roll(v, -1)) * cross).sum()) / (6 * area) for v in (x, y)]
    return (float(ra[0]) + middle[0] / math.cos(math.radians(float(dec.mean()))), float(dec[0]) + middle[1])


def numbers(text: str, path: str, line: int) -> tuple[Floats, Floats]:
    """Right ascensions and declinations of a shape."""
    words = re.split(r"[\s,]+", text.strip())
    try:
        pairs = [(angle(words[k], True), angle(words[k + 1], False)) for k in range(0, len(words), 2)]
    except (ValueError, IndexError):
        raise Failure(INPUT, f"{path}: line {line}: '{text}' is no list of right ascensions and declinations") from None
    return np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])


def regions(path: str, text: str) -> list[Direction]:
    """The directions of the polygons of a region file of ds9: their points, or else their centroids."""
    found: list[Direction] = []
    named = False
    for line, row in enumerate(text.splitlines(), 1):
        frame = re.match(r"\s*(fk4|b1950|galactic|ecliptic|image|physical|wcs\w*)\b", row, re.I)
        if frame:
            raise Failure(INPUT, f"{path}: line {line}: coordinates are '{frame[1]}'; fk5 and icrs are read")
        shape = re.match(r"\s*(?:(?:fk5|icrs|j2000)\s*;)?\s*(polygon|point)\s*\(?([^)#]*)\)?", row, re.I)
        if not shape:
            continue
        ra, dec = numbers(shape[2], path, line)
        label = re.search(r"text\s*=\s*(?:\{([^}]*)\}|\"([^\"]*)\"|'([^']*)'|(\S+))", row)
        name = next((part for part in label.groups() if part), "") if label else ""
        if shape[1].lower() == "polygon":
            if len(ra) < 3:
                raise Failure(INPUT, f"{path}: line {line}: a polygon has less than three vertices")
            named = bool(name)
            place = centroid(ra, dec)
            found.append(Direction(name or f"facet{len(found) + 1}", math.radians(place[0]), math.radians(place[1])))
        elif found:
            name = found[-1].name if named or not name else name
            found[-1] = Direction(name, math.radians(float(ra[0])), math.radians(float(dec[0])))
    if not found:
        raise Failure(INPUT, f"{path}: has no polygon; facets are polygons of a region file of ds9")
    return [Direction(d.name if d.name.startswith("[") else f"[{d.name}]", d.ra % (2 * math.pi), d.dec) for d in found]


def solved(path: str) -> list[Direction]:
    """The directions of an h5parm."""
    import h5py
    try:
        with h5py.File(path, "r") as file:
            group = next(file[name] for name in sorted(file) if name.startswith("sol"))
            return [Direction(row["name"].decode().rstrip("\0 "), float(row["dir"][0]), float(row["dir"][1]))
                    for row in group["source"][:]]
    except (OSError, StopIteration, KeyError, ValueError) as error:
        raise Failure(INPUT, f"{path}: has no directions (sol000/source): {error or 'no group of solutions'}") from None


def directions(path: str) -> list[Direction]:
    """The directions of a region file or of an h5parm."""
    try:
        with open(path, "rb") as file:
            head = file.read(8)
            text = "" if head == b"\x89HDF\r\n\x1a\n" else (head + file.read()).decode("utf-8", "replace")
    except OSError as error:
        raise Failure(INPUT, f"{path}: {error.strerror}") from None
    return regions(path, text) if text else solved(path)


# ---- observations ----

def middles(first: float, last: float, step: float) -> Floats:
    """Middles of the equal parts of a range that are at most `step` long."""
    parts = max(1, math.ceil((last - first) / step - 1e-9))
    return np.asarray(first + (np.arange(parts) + 0.5) * (last - first) / parts)


def read_set(path: str, field: int, update_s: float, step_hz: float) -> Observation:
    """Times, frequencies and stations of a MeasurementSet."""
    from casacore.tables import table
    try:
        main = table(path, ack=False)
        times = main.query(f"FIELD_ID=={field}", columns="TIME").getcol("TIME")
        antennas = table(f"{path}/ANTENNA", ack=False)
        windows = table(f"{path}/SPECTRAL_WINDOW", ack=False)
        freq = np.concatenate([np.ravel(windows.getcell("CHAN_FREQ", k)) for k in range(windows.nrows())])
        width = np.concatenate([np.ravel(windows.getcell("CHAN_WIDTH", k)) for k in range(windows.nrows())])
        names, position = list(antennas.getcol("NAME")), antennas.getcol("POSITION")
    except RuntimeError as error:
        raise Failure(INPUT, f"{path}: is no MeasurementSet that can be read: {first_line(error)}") from None
    if len(times) == 0:
        raise Failure(INPUT, f"{path}: has no rows of field {field}")
    half = float(np.abs(width).max()) / 2
    return Observation(middles(float(times.min()), float(times.max()), update_s),
                       middles(float(freq.min()) - half, float(freq.max()) + half, step_hz), names,
                       np.asarray(position, float))


def first_line(error: BaseException) -> str:
    """The first line of a message that has some words, without casacore's time in front."""
    lines = [re.sub(r"^\S+ \S+\s+SEVERE\s+\S+ \(file.*?\)\+?\s*", "", row).strip() for row in str(error).splitlines()]
    return next((row for row in lines if row), "unknown error")


# ---- EveryBeam ----

def find_measures() -> None:
    """EveryBeam's own casacore looks for its tables of leap seconds and of the Earth's rotation in a folder of the
    machine that built it. Unless the user has said where they are, those of python-casacore or of the system are
    taken."""
    if "CASARCFILES" in os.environ or os.path.exists(os.path.expanduser("~/.casarc")):
        return
    import casacore
    places = [os.path.join(os.path.dirname(str(casacore.__file__)), "data"), os.path.expanduser("~/.casa/data"),
              os.path.expanduser("~/.casarc/data"), "/usr/share/casacore/data", "/var/lib/casacore/data"]
    for place in places:
        if os.path.isdir(os.path.join(place, "geodetic", "TAI_UTC")):
            with tempfile.NamedTemporaryFile("w", suffix=".casarc", delete=False) as file:
                file.write(f"measures.directory: {place}\n")
            atexit.register(os.unlink, file.name)
            os.environ["CASARCFILES"] = file.name
            return


def load_telescope(options: argparse.Namespace) -> Any:
    """EveryBeam's telescope of a set."""
    data = os.path.join(sys.prefix, "share", "everybeam")  # where its wheel puts coefficients
    if os.path.isdir(data):
        os.environ.setdefault("EVERYBEAM_DATADIR", data)
    find_measures()
    import everybeam
    try:
        return everybeam.load_telescope(
            options.obs, data_column=options.datacolumn,
            beam_normalisation_mode=getattr(everybeam.BeamNormalisationMode, MODES[options.normalise]),
            element_response_model=options.element_response, coeff_path=options.coeff_path)
    except Exception as error:
        raise Failure(INPUT, f"{options.obs}: EveryBeam has no beam of it: {first_line(error)}") from None


def responses(telescope: Any, obs: Observation, where: Sequence[Direction], field: int = 0
              ) -> npt.NDArray[np.complex128]:
    """Matrices [time][freq][station][direction][4] of a telescope, which has station_response(time, station, freq,
    ra, dec, field)."""
    if telescope.nr_stations != len(obs.stations):
        raise Failure(INPUT, f"EveryBeam knows {telescope.nr_stations} stations, and the set has {len(obs.stations)}")
    out = np.empty((len(obs.time), len(obs.freq), len(obs.stations), len(where), 4), complex)
    told = start = time.monotonic()
    for number, at in enumerate(np.ndindex(*out.shape[:-1])):
        if time.monotonic() - told > 30:
            told = time.monotonic()
            left = (told - start) * (out[..., 0].size / number - 1)
            print(f"{number} of {out[..., 0].size} matrices, {left:.0f} s left", file=sys.stderr)
        try:
            matrix = telescope.station_response(obs.time[at[0]], at[2], obs.freq[at[1]], where[at[3]].ra,
                                                where[at[3]].dec, field)
        except RuntimeError as error:
            raise Failure(RESOURCE, f"EveryBeam fails for station {obs.stations[at[2]]}: {first_line(error)}") from None
        out[at] = np.ravel(matrix)
    return out


# ---- files ----

def write_h5parm(path: str, obs: Observation, where: Sequence[Direction], jones: npt.NDArray[np.complex128]) -> None:
    """Write amplitudes and phases of matrices [time][freq][station][direction][4]. Those that are not finite get the
    weight 0."""
    import h5py
    names = [name.encode()[:127] for name in (d.name for d in where)]
    stations = [name.encode() for name in obs.stations]
    width = f"S{max(16, max(map(len, stations)) + 1)}"
    axes = {"time": obs.time, "freq": obs.freq, "ant": np.array(stations, width), "dir": np.array(names, "S128"),
            "pol": np.array([name.encode() for name in POLARISATIONS], "S3")}
    good = np.isfinite(jones)
    values = {"amplitude": np.where(good, np.abs(np.where(good, jones, 0)), 0),
              "phase": np.where(good, np.angle(np.where(good, jones, 0)), 0)}
    with h5py.File(path, "w") as file:
        group = file.create_group("sol000")
        group.attrs["h5parm_version"] = np.bytes_("1.0")
        group.attrs["KIND"] = np.bytes_("beam")  # between the sky and the solutions of other files
        group["source"] = np.array([(name, (d.ra, d.dec)) for name, d in zip(names, where)],
                                   [("name", "S128"), ("dir", "<f4", (2,))])
        group["antenna"] = np.array(list(zip(stations, obs.position)),
                                    [("name", width), ("position", "<f4", (3,))])
        for kind, value in values.items():
            table = group.create_group(f"{kind}000")
            table.attrs["TITLE"] = np.bytes_(kind)
            for name, axis in axes.items():
                table[name] = axis
            for name, array in (("val", value), ("weight", good.astype("f4"))):
                table.create_dataset(name, data=array).attrs["AXES"] = np.bytes_(",".join(axes))


def write_whole(path: str, overwrite: bool, obs: Observation, where: Sequence[Direction],
                jones: npt.NDArray[np.complex128]) -> None:
    """Write a file that gets its name when it is whole."""
    partial = f"{path}.{os.getpid()}.tmp"
    try:
        write_h5parm(partial, obs, where, jones)
        if overwrite:
            os.replace(partial, path)
        else:
            os.link(partial, path)  # fails where there is a file by now
    except OSError as error:
        raise Failure(INPUT, f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        if os.path.lexists(partial):
            os.unlink(partial)


# ---- the program ----

def quantity(units: dict[str, float]) -> Any:
    """A parser of numbers above 0 with one of these units."""
    def parse(text: str) -> float:
        match = re.fullmatch(r"([\d.]+(?:e[+-]?\d+)?)([A-Za-z]*)", text)
        if not match or match[2] not in units or not float(match[1]) > 0:
            raise argparse.ArgumentTypeError(f"'{text}' is no number with one of the units {', '.join(filter(None, units))}")
        return float(match[1]) * units[match[2]]
    return parse


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="tessera-station-beams", description="Write the beams of stations in the directions of facets as an "
        "h5parm, by EveryBeam: of LOFAR, SKA-Low, MWA, OSKAR and AARTFAAC.")
    add = parser.add_argument
    add("obs", metavar="OBS.ms", help="the observation")
    add("directions", metavar="FACETS", help="a region file of ds9, or an h5parm with directions")
    add("-o", "--output", metavar="BEAMS.h5", required=True, help="the file to write")
    add("--update", metavar="TIME", type=quantity({"s": 1, "min": 60, "h": 3600, "": 1}), default=120.0,
        help="time between beams, like 30s (default 2min)")
    add("--freq-step", metavar="FREQ", type=quantity({"Hz": 1, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9}), default=1e6,
        help="bandwidth of a beam, like 200kHz (default 1MHz)")
    add("--normalise", choices=list(MODES), default="preapplied",
        help="what the beam in the middle of the field is: divided out as the data say that it has been (preapplied, "
        "the default), the unit matrix (full), of mean amplitude 1 (amplitude), or as it is (none)")
    add("--datacolumn", metavar="NAME", default="DATA", help="the column whose keywords tell that (default DATA)")
    add("--field", metavar="N", type=int, default=0, help="number of the field (default 0)")
    add("--element-response", metavar="MODEL", default="default",
        help="EveryBeam's model of elements: default, hamaker, lobes, oskar_dipole, skala40_wave, gridded_eep, ...")
    add("--coeff-path", metavar="PATH", default="", help="coefficients of the model, which MWA needs")
    add("--overwrite", action="store_true", help="replace an existing file")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace) -> None:
    """The work of the program."""
    if os.path.lexists(options.output) and not options.overwrite:
        raise Failure(INPUT, f"{options.output}: is there already; --overwrite replaces it")
    where = directions(options.directions)
    obs = read_set(options.obs, options.field, options.update, options.freq_step)
    jones = responses(load_telescope(options), obs, where, options.field)
    write_whole(options.output, options.overwrite, obs, where, jones)
    print(f"{options.output}: beams of {len(obs.stations)} stations in {len(where)} directions, at {len(obs.time)} "
          f"times and {len(obs.freq)} frequencies")


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0, 2 (usage), 3 (bad input), 4 (EveryBeam or another package is not there)."""
    options = parse(arguments)
    try:
        run(options)
    except Failure as failure:
        print(f"tessera-station-beams: error: {failure}", file=sys.stderr)
        return failure.status
    except ImportError as error:
        print(f"tessera-station-beams: error: {error.name or error} is not installed here: pip install everybeam "
              "python-casacore h5py", file=sys.stderr)
        return RESOURCE
    return 0


if __name__ == "__main__":
    sys.exit(main())
