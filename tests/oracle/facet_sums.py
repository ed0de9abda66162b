"""Direct sums with gains, for what is imaged and predicted by facets. Region files and h5parms are read here
anew, by a few lines and h5py, so that nothing of tessera is in the results.

    obs = read_set(suite, "obs.ms")                       # uvw, antennas, times, frequencies, correlations
    facets = read_regions("facets.reg")
    gains = Gains(["solutions.h5"], ["amplitude000", "phase000"])
    jones, good = gains.of(obs, facets[0].direction())    # [antenna][time][channel][2][2] of one direction
    image = dirty(obs, weight, jones, good, l, m)         # Stokes I at these direction cosines
    vis = predict(obs, [(l, m, flux)], jones, good)       # [row][channel][4]

A gain matrix stands between the sky and a correlation: V = G1 S G2^H, XX XY YX YY. Values of time and frequency are
the nearest ones, those beyond the ends the last ones. peak_ratios() reads the fluxes of sources in images by facets.
"""
import re
from dataclasses import dataclass, field

import numpy as np

from e2e import ASEC, C_M_S, casacore_python, fits_module, run

ORDER = ("dir", "ant", "time", "freq", "pol")
RAD_HZ_PER_TECU = -8.44797245e9

READ = """
import sys
import numpy as np
import casacore.tables as ct
main = ct.table(sys.argv[1], ack=False)
keys = ("UVW", "ANTENNA1", "ANTENNA2", "TIME", "FLAG", sys.argv[3])
columns = {("DATA" if k == sys.argv[3] else k): main.getcol(k) for k in keys}
name = "WEIGHT_SPECTRUM" if "WEIGHT_SPECTRUM" in main.colnames() else "WEIGHT"
weight = main.getcol(name)
columns["WEIGHT"] = np.broadcast_to(weight if weight.ndim == 3 else weight[:, None], columns["DATA"].shape)
columns["FREQ"] = ct.table(sys.argv[1] + "/SPECTRAL_WINDOW", ack=False).getcol("CHAN_FREQ")[0]
columns["NAME"] = np.array(ct.table(sys.argv[1] + "/ANTENNA", ack=False).getcol("NAME"))
columns["CENTRE"] = ct.table(sys.argv[1] + "/FIELD", ack=False).getcol("PHASE_DIR")[0].ravel()
np.savez(sys.argv[2], **columns)
"""


# ---- observations ----

@dataclass
class Observation:
    """Rows of a MeasurementSet with four correlations, or two, XX and YY."""
    uvw: np.ndarray  # [row][3], metres
    antenna: np.ndarray  # [row][2]
    time: np.ndarray  # [step], MJD seconds, with the step of each row
    step: np.ndarray
    freq: np.ndarray
    data: np.ndarray  # [row][channel][correlation]
    weight: np.ndarray
    names: list
    centre: np.ndarray  # RA, Dec in radians

    def parallel(self, columns):
        """XX and YY, or what stands for them."""
        return columns[..., [0, -1]]

    def cosines(self, ra, dec):
        """l and m of directions in degrees."""
        ra, dec = np.deg2rad(ra) - self.centre[0], np.deg2rad(dec)
        return (np.cos(dec) * np.sin(ra), np.sin(dec) * np.cos(self.centre[1]) -
                np.cos(dec) * np.sin(self.centre[1]) * np.cos(ra))


def read_set(suite, path, column="DATA"):
    """The rows of a set, or None without casacore. Weights of flagged samples are 0."""
    python, out = casacore_python(), suite.path("rows.npz")
    if not python or not suite.ran(f"reading {path}", run([python, "-c", READ, path, out, column], 60)):
        return None
    with np.load(out) as columns:
        time, step = np.unique(columns["TIME"], return_inverse=True)
        weight = np.where(columns["FLAG"], 0, columns["WEIGHT"]).astype("f8")
        names = [name.decode() if isinstance(name, bytes) else str(name) for name in columns["NAME"]]
        return Observation(columns["UVW"], np.stack([columns["ANTENNA1"], columns["ANTENNA2"]], 1), time, step,
                           columns["FREQ"], columns["DATA"].astype("c16"), weight, names, columns["CENTRE"])


# ---- region files ----

@dataclass
class Region:
    vertices: np.ndarray  # [vertex][2], degrees
    name: str = ""
    point: tuple = ()
    holes: list = field(default_factory=list)

    def direction(self):
        return self.point

    def inside(self, x, y, place):
        """Which pixels are inside; `place(ra, dec)` is where a direction lies."""
        odd = np.zeros(np.broadcast(x, y).shape, bool)
        for polygon in [self.vertices] + self.holes:
            at = np.stack(place(polygon[:, 0], polygon[:, 1]), 1)
            for (x0, y0), (x1, y1) in zip(at, np.roll(at, -1, axis=0)):
                if y0 != y1:
                    odd ^= ((y0 <= y) != (y1 <= y)) & (x0 + (y - y0) * (x1 - x0) / (y1 - y0) <= x)
        return odd


def read_regions(path):
    """Polygons in decimal degrees with their points and names."""
    found = []
    with open(path, encoding="utf-8") as text:
        for line in text:
            shape = re.match(r"\s*(?:fk5;)?\s*(-?)(polygon|point)\s*\(([^)]*)\)", line)
            if not shape:
                continue
            numbers = np.array(re.split(r"[ ,]+", shape[3].strip()), float).reshape(-1, 2)
            name = re.search(r"text=\{?([^}\s]*)", line)
            if shape[2] == "point":
                found[-1].point = tuple(numbers[0])
            elif shape[1]:
                found[-1].holes.append(numbers)
            else:
                found.append(Region(numbers))
            if name and not found[-1].name:
                found[-1].name = name[1]
    return found


# ---- solutions ----

def nearest(axis, at):
    return np.abs(np.asarray(at)[:, None] - axis[None]).argmin(1)


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


class Gains:
    """Products of the tables of h5parms, in the order of the files."""

    def __init__(self, paths, tables):
        self.paths, self.tables = paths, tables

    def of(self, obs, direction):
        """Matrices [antenna][step][channel][2][2] of a direction in degrees, and which of them count."""
        shape = (len(obs.names), len(obs.time), len(obs.freq))
        product, good = np.broadcast_to(np.eye(2, dtype="c16"), shape + (2, 2)), np.ones(shape, bool)
        for path in self.paths:
            matrix, counts = self.of_file(path, obs, np.deg2rad(direction))
            product, good = product @ matrix, good & counts
        return product, good

    def of_file(self, path, obs, direction):
        import h5py
        with h5py.File(path, "r") as file:
            group = file[[name for name in file if name.startswith("sol")][0]]
            source = group["source"][:]
            away = [separation(direction, place) for place in source["dir"].astype("f8")]
            name = text(source["name"][int(np.argmin(away))])
            found = [self.values(group[table], obs, name) for table in self.tables if table in group]
        pols = max(value.shape[-1] for _, value, _ in found)
        entries, good = np.ones((pols,), "c16"), True
        for kind, value, counts in found:
            entries = entries * (value if kind == "amplitude" else np.exp(1j * phase(kind, value, obs.freq)))
            good = good & counts.all(-1)
        matrix = np.zeros(entries.shape[:-1] + (4,), "c16")
        for k in range(4):
            if pols == 4 or k in (0, 3):
                matrix[..., k] = entries[..., k if pols == 4 else min(k, pols - 1)]
        return matrix.reshape(matrix.shape[:-1] + (2, 2)), good

    @staticmethod
    def values(table, obs, name):
        """Kind, values [antenna][step][channel][pol] and which of them count."""
        axes = text(table["val"].attrs["AXES"]).split(",")
        out = []
        for key in ("val", "weight"):
            value = table[key][:].astype("f8")
            value = np.transpose(value, [axes.index(k) for k in ORDER if k in axes])
            for place, k in enumerate(ORDER):
                value = value if k in axes else np.expand_dims(value, place)
            out.append(value)
        value, weight = out
        pick = {"dir": [[text(t) for t in table["dir"][:]].index(name)] if value.shape[0] > 1 else [0]}
        if "ant" in axes:
            known = [text(t) for t in table["ant"][:]]
            pick["ant"] = [known.index(k) for k in obs.names]
        else:
            pick["ant"] = [0] * len(obs.names)
        for key, at in (("time", obs.time), ("freq", obs.freq)):
            pick[key] = nearest(table[key][:], at) if key in axes else [0] * len(at)
        where = np.ix_(pick["dir"], pick["ant"], pick["time"], pick["freq"], range(value.shape[-1]))
        value, weight = value[where][0], weight[where][0]
        good = np.isfinite(value) & (weight != 0)
        return text(table.attrs["TITLE"]), np.where(good, value, 0), good


def phase(kind, value, freq):
    if kind == "tec":
        return RAD_HZ_PER_TECU * value / freq[:, None]
    return 2 * np.pi * freq[:, None] * value if kind == "clock" else value


def separation(a, b):
    """Angle between directions (radians)."""
    d_ra, s, c = b[0] - a[0], np.sin([a[1], b[1]]), np.cos([a[1], b[1]])
    return np.arctan2(np.hypot(c[1] * np.sin(d_ra), c[0] * s[1] - s[0] * c[1] * np.cos(d_ra)),
                      s[0] * s[1] + c[0] * c[1] * np.cos(d_ra))


# ---- weights ----

def briggs(obs, robust, size, scale):
    """Imaging weights [row][channel] of Stokes I, in the cells of an image of size^2 pixels of `scale` arcsec."""
    uv = obs.uvw[:, None, :2] * obs.freq[:, None] / C_M_S
    n = int(np.ceil(np.ceil(1.2 * size) / 4)) * 4
    uv = np.where(uv[..., 1:] < 0, -uv, uv)
    x = np.floor(uv[..., 0] * n * scale * ASEC + n // 2).astype(int)
    y = np.floor(uv[..., 1] * n * scale * ASEC).astype(int)
    weight = obs.parallel(obs.weight).min(-1)
    weight = np.where((np.abs(uv) < 1 / (2 * scale * ASEC)).all(-1), weight, 0)
    x, y, cell = np.where(weight > 0, x, 0), np.where(weight > 0, y, 0), np.zeros((n, n))
    np.add.at(cell, (y, x), weight)
    return weight / (1 + cell * (5 * 10 ** -robust) ** 2 / ((cell ** 2).sum() / cell.sum()))[y, x]


# ---- sums ----

def turn(obs, l, m):
    """exp(2 pi i (u l + v m + w (n - 1))) of a direction, [row][channel]."""
    place = obs.uvw @ np.array([l, m, np.sqrt(1 - l * l - m * m) - 1])
    return np.exp(2j * np.pi * place[:, None] * obs.freq / C_M_S)


def rows(obs, jones, good):
    """Matrices of both antennas of each row, and which samples count."""
    first, second = (jones[obs.antenna[:, k], obs.step] for k in (0, 1))
    return first, second, good[obs.antenna[:, 0], obs.step] & good[obs.antenna[:, 1], obs.step]


def predict(obs, sources, jones, good):
    """Visibilities [row][channel][4] of unpolarised points (l, m, flux), as antennas with these gains see them."""
    first, second, counts = rows(obs, jones, good)
    sky = sum(flux * turn(obs, l, m) for l, m, flux in sources)
    seen = first @ np.conj(np.swapaxes(second, -1, -2)) * (sky * counts)[..., None, None]
    return seen.reshape(seen.shape[:-2] + (4,))


def stokes_i(obs, jones, good, joint=False):
    """Stokes I of each sample as its adjoint gains see it, and the square of these gains, for diagonal matrices: the
    mean of XX and YY with gains of their own, or, `joint`, as WSClean 3.1 makes it, with the mean of their gains."""
    first, second, counts = rows(obs, jones, good)
    gain = np.stack([first[..., k, k] * np.conj(second[..., k, k]) for k in (0, 1)], -1)
    if joint:
        gain = np.broadcast_to(gain.mean(-1, keepdims=True), gain.shape)
    return (np.conj(gain) * obs.parallel(obs.data)).mean(-1) * counts, (np.abs(gain) ** 2).mean(-1) * counts, counts


def response(obs, weight, jones, good, joint=False):
    """Weighted mean of the squared gains: its root is what a true flux is multiplied by in the dirty image."""
    _, square, counts = stokes_i(obs, jones, good, joint)
    return (square * weight).sum() / (weight * counts).sum()


def dirty(obs, weight, jones, good, l, m, joint=False):
    """The dirty image of Stokes I at direction cosines, over the root of the response."""
    seen, square, counts = stokes_i(obs, jones, good, joint)
    total = np.sqrt((square * weight).sum() * (weight * counts).sum())
    return np.array([(seen * weight * np.conj(turn(obs, a, b))).sum().real for a, b in zip(l, m)]) / total


def peak_ratios(path, ra_deg, dec_deg, flux_jy):
    """The flux of each source in an image over its true one: of the pixels around its peak, a parabola."""
    from astropy.wcs import WCS
    with fits_module().open(path) as file:
        image, wcs = file[0].data.squeeze().astype(float), WCS(file[0].header).celestial
    ratios = []
    for x, y, flux in zip(*wcs.all_world2pix(ra_deg, dec_deg, 0), flux_jy):
        y, x = (int(v) for v in np.round((y, x)))
        part = image[y - 2:y + 3, x - 2:x + 3]
        at = np.unravel_index(part.argmax(), part.shape)
        y, x = y - 2 + at[0], x - 2 + at[1]
        peak = image[y, x]
        for low, high in ((image[y - 1, x], image[y + 1, x]), (image[y, x - 1], image[y, x + 1])):
            peak -= (low - high) ** 2 / 8 / (low - 2 * image[y, x] + high)
        ratios.append(peak / flux)
    return np.array(ratios)
