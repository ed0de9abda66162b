"""Direct sums of joint mosaics: sets of several pointings, what their antennas receive, and the images of Cornwell
(1988, A&A 202, 316) and of Sault, Staveley-Smith and Brouw (1996, A&AS 120, 375).

    obs = read_pointings(suite, "obs.ms")                     # rows, the field of each, fields and antennas
    dishes = Dishes([Airy(10.7, .75), Airy(6.25, .75)], obs.diameter < 9.5)
    vis = received(obs, [(ra, dec, flux)], dishes)            # [row][channel], sources in degrees and Jy
    joint = Mosaic(obs, dishes, weight, ra, dec)              # at these directions
    joint.beam, joint.flat_sky(vis), joint.mean_square_beam

A group is the rows of a field and of a pair of kinds of dishes. With the weight W_g, the dirty image D_g and the power
beam B_g of each, P = sum W_g B_g^2, the image of even noise is sum W_g B_g D_g / sqrt(P max P), that of fluxes
sum W_g B_g D_g / P, and the beam of the mosaic sqrt(P / max P).
"""
from dataclasses import dataclass

import numpy as np

from e2e import ASEC, C_M_S, casacore_python, run

READ = """
import sys
import numpy as np
import casacore.tables as ct
main = ct.table(sys.argv[1], ack=False)
columns = {k: main.getcol(k) for k in ("UVW", "ANTENNA1", "ANTENNA2", "TIME", "FIELD_ID", "SCAN_NUMBER", "FLAG")}
columns["DATA"] = main.getcol(sys.argv[3])
columns["WEIGHT"] = main.getcol("WEIGHT_SPECTRUM")
columns["FREQ"] = ct.table(sys.argv[1] + "/SPECTRAL_WINDOW", ack=False).getcol("CHAN_FREQ")[0]
antennas, fields = (ct.table(sys.argv[1] + name, ack=False) for name in ("/ANTENNA", "/FIELD"))
columns["POSITION"], columns["DIAMETER"] = antennas.getcol("POSITION"), antennas.getcol("DISH_DIAMETER")
columns["CENTRE"], columns["POINTING"] = (fields.getcol(k)[:, 0] for k in ("PHASE_DIR", "REFERENCE_DIR"))
columns["NAME"] = np.array(fields.getcol("NAME"))
np.savez(sys.argv[2], **columns)
"""


# ---- observations ----

@dataclass
class Pointings:
    """Rows of a MeasurementSet of several fields, of Stokes I."""
    uvw: np.ndarray  # [row][3], metres
    antenna: np.ndarray  # [row][2]
    time: np.ndarray  # [row], MJD seconds
    field: np.ndarray  # [row]
    scan: np.ndarray  # [row]
    freq: np.ndarray  # [channel]
    vis: np.ndarray  # [row][channel], the mean of the parallel correlations
    weight: np.ndarray  # [row][channel]; 0: flagged
    site: np.ndarray  # geocentric, the middle of the antennas
    diameter: np.ndarray  # [antenna]
    centre: np.ndarray  # [field][2], phase centres: RA, Dec in radians
    pointing: np.ndarray  # [field][2]
    names: list  # of fields


def read_pointings(suite, path, column="DATA"):
    """The rows of a set, or None without casacore."""
    python, out = casacore_python(), suite.path("rows.npz")
    if not python or not suite.ran(f"reading {path}", run([python, "-c", READ, path, out, column], 60)):
        return None
    with np.load(out) as of:
        weight = np.where(of["FLAG"], 0, of["WEIGHT"])[..., [0, -1]].min(-1).astype("f8")
        return Pointings(of["UVW"], np.stack([of["ANTENNA1"], of["ANTENNA2"]], 1), of["TIME"], of["FIELD_ID"],
                         of["SCAN_NUMBER"], of["FREQ"], of["DATA"][..., [0, -1]].mean(-1).astype("c16"), weight,
                         of["POSITION"].mean(0), of["DIAMETER"], of["CENTRE"], of["POINTING"], of["NAME"].tolist())


def cosines(ra, dec, centre):
    """l, m and n - 1 of directions (degrees) from a centre (radians)."""
    ra, dec = np.deg2rad(ra) - centre[0], np.deg2rad(dec)
    l = np.cos(dec) * np.sin(ra)
    m = np.sin(dec) * np.cos(centre[1]) - np.cos(dec) * np.sin(centre[1]) * np.cos(ra)
    r2 = l * l + m * m
    return l, m, -r2 / (1 + np.sqrt(1 - r2))


def angle(obs, field, time):
    """The parallactic angle of a field by ERFA's apparent place and hd2pa; UT1 is UTC."""
    import erfa
    lon, lat, height = erfa.gc2gd(1, obs.site)
    _, _, hour, dec, _, _ = erfa.atco13(*obs.pointing[field], 0, 0, 0, 0, 2400000.5, time / 86400, 0.0, lon, lat,
                                        height, 0, 0, 0, 0, 0, 0.5)
    return float(erfa.hd2pa(hour, dec, lat))


# ---- dishes ----

def j1(x):
    """The Bessel function by its integral, J1(x) = 1/pi int cos(t - x sin t) dt. By the Jacobi-Anger expansion
    (DLMF 10.12.1) n points leave an error of about J_(2n - 1)(x): rounding, where x < 100."""
    t = (np.arange(100) + 0.5) * np.pi / 100
    return np.cos(t - np.multiply.outer(x, np.sin(t))).mean(-1)


class Airy:
    """The voltage of a disk whose middle is blocked."""
    turns = False

    def __init__(self, diameter_m, blocked_m=0.0):
        self.diameter_m, self.share = diameter_m, blocked_m / diameter_m

    @staticmethod
    def disk(u):
        return np.where(u < 1e-6, 1.0, 2 * j1(u) / np.where(u < 1e-6, 1, u))

    def voltage(self, x, y, freq_hz):
        u = np.pi * self.diameter_m * np.hypot(x, y) * freq_hz / C_M_S
        share = self.share ** 2
        part = share * self.disk(u * self.share) if share else 0
        return (self.disk(u) - part) / (1 - share)


class Polynomials:
    """The voltage of a beam whose power, as far as it is above 0, is a polynomial in (r f)^2 of the nearest of the
    frequencies (MHz) that are listed, r in arcminutes and f in GHz."""
    turns = False

    def __init__(self, coefficients):
        self.at_mhz = np.array(list(coefficients))
        self.coefficients = np.array([(1, *of) for of in coefficients.values()])

    def voltage(self, x, y, freq_hz):
        nearest = np.abs(np.subtract.outer(self.at_mhz, np.asarray(freq_hz) / 1e6)).argmin(0)
        square = (np.rad2deg(np.arcsin(np.hypot(x, y))) * 60 * freq_hz / 1e9) ** 2
        power = sum(c * square ** k for k, c in enumerate(np.moveaxis(self.coefficients[nearest], -1, 0)))
        return np.sqrt(np.maximum(power, 0))


class Dishes:
    """Kinds of dishes, and that of each antenna."""

    def __init__(self, kinds, of_antenna):
        self.kinds, self.of_antenna = kinds, np.asarray(of_antenna, int)

    def pair(self, obs):
        """The kinds of the antennas of each row, the lower one first."""
        return np.sort(self.of_antenna[obs.antenna], 1)

    def power(self, pair, l, m, freq_hz, turned=0.0):
        """What a pair receives from direction cosines at a parallactic angle."""
        product = 1.0
        for kind in (self.kinds[k] for k in pair):
            s, c = np.sin(turned), np.cos(turned)
            at = (m * s - l * c, m * c + l * s) if kind.turns else (l, m)
            product = product * kind.voltage(*at, freq_hz)
        return product

    def turn(self):
        return any(kind.turns for kind in self.kinds)


def groups(obs, dishes):
    """Fields and pairs of kinds that have rows, with a mask of these."""
    pair = dishes.pair(obs)
    for field in np.unique(obs.field):
        for kinds in np.unique(pair, axis=0):
            rows = (obs.field == field) & (pair == kinds).all(1)
            if rows.any():
                yield int(field), tuple(kinds), rows


# ---- visibilities ----

def phasor(obs, rows, place):
    """exp(2 pi i (u l + v m + w (n - 1))) of a direction, [row][channel]."""
    turns = (obs.uvw[rows] @ np.array(place))[:, None] * obs.freq / C_M_S
    return np.exp(2j * np.pi * (turns - np.rint(turns)))


def received(obs, sources, dishes):
    """Visibilities [row][channel] of points (RA, Dec, Jy; or Jy of each channel), at the beam of each time."""
    vis = np.zeros(obs.uvw.shape[:1] + obs.freq.shape, "c16")
    for field, pair, rows in groups(obs, dishes):
        for time in np.unique(obs.time[rows]) if dishes.turn() else [None]:
            at = rows if time is None else rows & (obs.time == time)
            turned = 0.0 if time is None else angle(obs, field, time)
            for ra, dec, flux in sources:
                power = dishes.power(pair, *cosines(ra, dec, obs.pointing[field])[:2], obs.freq, turned)
                vis[at] += flux * power * phasor(obs, at, cosines(ra, dec, obs.centre[field]))
    return vis


# ---- weights ----

def rotated(obs, centre):
    """uvw in the frame of a centre (radians), for the cells of imaging weights."""
    def axes(ra, dec):
        return np.array([[-np.sin(ra), np.cos(ra), 0],
                         [-np.sin(dec) * np.cos(ra), -np.sin(dec) * np.sin(ra), np.cos(dec)],
                         [np.cos(dec) * np.cos(ra), np.cos(dec) * np.sin(ra), np.sin(dec)]])
    uvw = np.empty_like(obs.uvw)
    for field in np.unique(obs.field):
        rows = obs.field == field
        uvw[rows] = obs.uvw[rows] @ axes(*obs.centre[field]) @ axes(*centre).T
    return uvw


def briggs(obs, robust, size, scale_asec, centre):
    """Imaging weights [row][channel] from the density of all pointings' samples together."""
    uv = rotated(obs, centre)[:, None, :2] * obs.freq[:, None] / C_M_S
    n = int(np.ceil(np.ceil(1.2 * size) / 4)) * 4
    uv = np.where(uv[..., 1:] < 0, -uv, uv)
    x = np.floor(uv[..., 0] * n * scale_asec * ASEC + n // 2).astype(int)
    y = np.floor(uv[..., 1] * n * scale_asec * ASEC).astype(int)
    weight = np.where((np.abs(uv) < 1 / (2 * scale_asec * ASEC)).all(-1), obs.weight, 0)
    x, y, cell = np.where(weight > 0, x, 0), np.where(weight > 0, y, 0), np.zeros((n, n))
    np.add.at(cell, (y, x), weight)
    return weight / (1 + cell * (5 * 10 ** -robust) ** 2 / ((cell ** 2).sum() / cell.sum()))[y, x]


# ---- images ----

class Mosaic:
    """Sums over groups at directions (degrees, of any shape). The beam of a group is the mean over its channels, by
    weight, and over the times of its field; it counts where that is at least `limit`."""

    def __init__(self, obs, dishes, weight, ra, dec, limit=0.02):
        self.obs, self.weight, self.ra, self.dec = obs, weight, ra, dec
        self.groups = []
        for field, pair, rows in groups(obs, dishes):
            l, m, _ = cosines(ra, dec, obs.pointing[field])
            turned = [angle(obs, field, t) for t in np.unique(obs.time[obs.field == field])] if dishes.turn() else [0.0]
            channel = weight[rows].sum(0)
            beam = sum(w * np.mean([dishes.power(pair, l, m, f, q) for q in turned], 0)
                       for w, f in zip(channel, obs.freq)) / channel.sum()
            self.groups.append((field, rows, weight[rows].sum(), np.where(np.abs(beam) >= limit, beam, 0)))
        self.square = sum(w * beam ** 2 for _, _, w, beam in self.groups)
        self.mean_square_beam = self.square / sum(w for _, _, w, _ in self.groups)

    @property
    def beam(self):
        return np.sqrt(self.square / self.square.max())

    def dirty(self, vis, field, rows):
        """The dirty image of a group's samples."""
        image, weight = np.zeros(self.ra.size), self.weight[rows]
        places = np.stack(cosines(self.ra.ravel(), self.dec.ravel(), self.obs.centre[field]), 1)
        for k, place in enumerate(places):
            image[k] = (weight * vis[rows] * np.conj(phasor(self.obs, rows, place))).sum().real
        return image.reshape(self.ra.shape) / weight.sum()

    def flat_sky(self, vis):
        """The image of fluxes; NaN where no group counts. Times the beam of the mosaic, its noise is even."""
        total = sum(w * beam * self.dirty(vis, field, rows) for field, rows, w, beam in self.groups)
        with np.errstate(all="ignore"):
            return total / np.where(self.square > 0, self.square, np.nan)

    def predicted(self, model):
        """Visibilities [row][channel] of an image of fluxes: each group sees it through its beam."""
        vis = np.zeros(self.obs.uvw.shape[:1] + self.obs.freq.shape, "c16")
        for field, rows, _, beam in self.groups:
            for at in zip(*np.nonzero(model * beam)):
                place = cosines(self.ra[at], self.dec[at], self.obs.centre[field])
                vis[rows] += model[at] * beam[at] * phasor(self.obs, rows, place)
        return vis
