"""Direction-dependent self-calibration over a session: image and clean, predict each facet, solve for a
phase of each antenna, facet and interval, write the solutions as an h5parm, and image again with them.

usage: python direction_dependent.py OBS.ms FACETS.reg SIZE SCALE [INTERVAL_S [ROUNDS]]
       python direction_dependent.py --simulate OBS.ms

The second line first makes a set to try it on: the phases of MeerKAT's antennas differ between the
three facets of the image. It needs numpy, astropy, python-casacore and h5py.
"""
import re
import sys

import h5py
import numpy as np
from casacore.tables import table

import tessera

SKY = [(59.80, -30.02, 1.0), (59.86, -29.95, .5), (60.0, -30.05, .8), (60.03, -29.94, .6),
       (60.18, -29.98, .9), (60.15, -30.08, .4)]  # degrees, Jy; two in each facet
BORDERS = [59.6, 59.92, 60.1, 60.4]


def simulate(path, pol="XX,YY"):
    """A set whose antennas have a phase of their own in each facet, which turns with time."""
    options = dict(layout="meerkat", antennas=24, ra="60deg", dec="-30deg", freq="1.28GHz", channels=2,
                   duration="1h", integration="30s", start="2026-01-01T20:00:00", pol=pol, overwrite=True)
    random, total = np.random.default_rng(5), 0
    with open(path + ".reg", "w") as regions:
        for k, (east, west) in enumerate(zip(BORDERS, BORDERS[1:])):
            ra, dec, _ = SKY[2 * k]
            regions.write(f"polygon({east},-30.3,{west},-30.3,{west},-29.7,{east},-29.7)\n"
                          f"point({ra},{dec}) # text={{facet{k}}}\n")
            with open(path + ".csv", "w") as sky:
                sky.write("name,ra,dec,flux_jy\n" + "".join(
                    f"s{j},{r}deg,{d}deg,{s}\n" for j, (r, d, s) in enumerate(SKY[2 * k:2 * k + 2])))
            tessera.simulate(path, sky=path + ".csv", noise="20mJy" if k == 0 else "0Jy", **options)
            with table(path, ack=False) as main:
                time = main.getcol("TIME") - main.getcol("TIME").min()
                base, rate = random.normal(0, .6, 24), random.normal(0, .5, 24)
                gain = np.exp(1j * (base + rate * (time[:, None] / 1800 - 1)))
                first, second = (np.take_along_axis(gain, main.getcol(name)[:, None], 1)
                                 for name in ("ANTENNA1", "ANTENNA2"))
                total = total + main.getcol("DATA") * (first * second.conj())[..., None]
    with table(path, readonly=False, ack=False) as main:
        main.putcol("DATA", total)


def stefcal(data, power, gain, rounds=20):
    """Gains of unit size with data[p, q] = Σ V conj(M) and power[p, q] = Σ |M|² of all samples of a
    baseline (Salvini & Wijnholds 2014, A&A 571, A97, algorithm 1), from first ones on."""
    for _ in range(rounds):
        weight = power @ np.abs(gain) ** 2
        new = np.where(weight > 0, (data @ gain) / np.where(weight > 0, weight, 1), gain)
        gain = np.exp(1j * np.angle(new + gain))
    return gain * np.exp(-1j * np.angle(gain[0]))  # the first antenna has phase 0


def solve(vis, models, p, q, antennas, sweeps=20):
    """The phases [facet][antenna] of an interval: each facet in turn is solved for on what the
    others leave of the data (peeling, in sweeps)."""
    gains = np.ones((len(models), antennas), complex)
    parts = [model.copy() for model in models]
    rest = vis - sum(parts)
    for _ in range(sweeps):
        for k, model in enumerate(models):
            rest += parts[k]
            data, power = np.zeros((antennas, antennas), complex), np.zeros((antennas, antennas))
            np.add.at(data, (p, q), (rest * model.conj()).sum((1, 2)))
            np.add.at(power, (p, q), (np.abs(model) ** 2).sum((1, 2)))
            gains[k] = stefcal(data + data.conj().T, power + power.T, gains[k])
            parts[k] = model * (gains[k][p] * gains[k][q].conj())[:, None, None]
            rest -= parts[k]
    return gains


def read(path):
    """Parallel hands of the data, which are good, and antennas, times and names of antennas."""
    with table(path, ack=False) as main, table(f"{path}/ANTENNA", ack=False) as antenna:
        p, q, time = (main.getcol(key) for key in ("ANTENNA1", "ANTENNA2", "TIME"))
        good = ~main.getcol("FLAG")[..., [0, -1]] & (p != q)[:, None, None]
        vis = np.where(good, main.getcol("DATA")[..., [0, -1]], 0)
        return vis, good, p, q, time, antenna.getcol("NAME")


def calibrate(session, data, model, interval_s):
    """Middles of the intervals, and phases [interval][antenna][facet]."""
    vis, good, p, q, time, names = data
    models = [np.where(good, session.predict(model, facet=facet, gains=False)[0].vis[..., [0, -1]], 0)
              for facet in session.facets]
    number = ((time - time.min()) // interval_s).astype(int)
    found = []
    for k in range(number.max() + 1):
        rows = number == k
        found.append(solve(vis[rows], [m[rows] for m in models], p[rows], q[rows], len(names)))
    return time.min() + interval_s * (np.arange(len(found)) + .5), np.angle(found).swapaxes(1, 2)


def write_h5parm(path, times, names, facets, where, phases):
    """Phases [time][antenna][direction] as DP3, WSClean and tessera read them."""
    antennas, labels = np.array(names, "S32"), np.array([f"[{facet}]" for facet in facets], "S128")
    with h5py.File(path, "w") as file:
        group = file.create_group("sol000/phase000").parent
        group["source"] = np.array([(n, tuple(w)) for n, w in zip(labels, where)],
                                   [("name", "S128"), ("dir", "<f4", (2,))])
        group["phase000"].attrs["TITLE"] = np.bytes_("phase")
        for key, values in (("time", times), ("ant", antennas), ("dir", labels)):
            group["phase000"][key] = values
        for key, values in (("val", phases), ("weight", np.ones(phases.shape))):
            group["phase000"].create_dataset(key, data=values).attrs["AXES"] = np.bytes_("time,ant,dir")


CLEAN = dict(niter=20000, mgain=.7, auto_mask=6, auto_threshold=3)


def tell(name, image, residual):
    peak, left = np.nanmax(image), np.nanstd(residual)
    print(f"{name}: peak {peak:.4g} Jy/beam, rms of the residual {left * 1e3:.4g} mJy/beam, dynamic "
          f"range {peak / left:.0f}", flush=True)


def image(path, size, scale, name, regions, **options):
    """Clean, and say the dynamic range: the peak over the rms of the residual."""
    made = tessera.image(path, size=size, scale=scale, weight="briggs:0", **CLEAN,
                         output=name, overwrite=True, facets=regions, **options)
    tell(name, made.image.data, made.residual.data)


def read_facets(regions):
    """Names and directions of facets that have both."""
    with open(regions) as file:
        found = re.findall(r"point\(([-\d.]+),([-\d.]+)\).*text=\{?([^}\s]+)", file.read())
    return [f[2] for f in found], [np.radians([float(f[0]), float(f[1])]) for f in found]


def clean(session, name):
    """Clean, write the image and say its dynamic range; the model in true flux."""
    made = session.clean(**CLEAN)
    tell(name, made.image.data, made.residual.data)
    session.write_fits(f"{name}-image.fits", made.image.data, overwrite=True)
    return made.model.data / session.response()


def self_calibrate(path, regions, size, scale, interval_s, rounds):
    """The data are read once. Each round solves for the phases by the model of the image before."""
    facets, where = read_facets(regions)
    name, solutions, data = path.rstrip("/").removesuffix(".ms"), path + ".h5", read(path)
    with tessera.Session(path, size=size, scale=scale, weight="briggs:0", facets=regions) as session:
        model = clean(session, f"{name}-round0")
        for k in range(rounds):
            times, phases = calibrate(session, data, model, interval_s)
            order = [session.facets.index(facet) for facet in facets]
            write_h5parm(solutions, times, data[-1], facets, where, phases[..., order])
            session.solutions(solutions, "phase000")
            model = clean(session, f"{name}-round{k + 1}")


def main():
    if sys.argv[1] == "--simulate":
        simulate(sys.argv[2])
        self_calibrate(sys.argv[2], sys.argv[2] + ".reg", 720, "2.5asec", 300, 3)
        return
    interval_s, rounds = (sys.argv[5:] + ["120", "2"][len(sys.argv) - 5:])[:2]
    self_calibrate(*sys.argv[1:3], int(sys.argv[3]), sys.argv[4], float(interval_s), int(rounds))


if __name__ == "__main__":
    main()
