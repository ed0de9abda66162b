"""Phase self-calibration of a MeasurementSet: image and clean, predict MODEL_DATA, solve for a
phase of each antenna and interval, write CORRECTED_DATA, and image again.

usage: python self_calibrate.py OBS.ms SIZE SCALE [INTERVAL_S [ROUNDS]]
       python self_calibrate.py --simulate OBS.ms

The second line first makes a set to try it on: MeerKAT observes three sources, with antenna
phases that wander by tens of degrees. It needs numpy and python-casacore.
"""
import sys

import numpy as np
from casacore.tables import makecoldesc, table

import tessera

SKY = """name,ra,dec,flux_jy
A,60deg,-30deg,1
B,60.03deg,-29.99deg,0.4
C,59.96deg,-30.03deg,0.15
"""


def simulate(path):
    """A set whose antennas have phases that wander from minute to minute. One row in a hundred is
    lost: its samples are NaN, and flagged."""
    with open(path + ".csv", "w") as file:
        file.write(SKY)
    tessera.simulate(layout="meerkat", antennas=24, sky=path + ".csv", ra="60deg", dec="-30deg",
                     freq="1.28GHz", channels=2, duration="1h", integration="30s", noise="50mJy",
                     start="2026-01-01T20:00:00", output=path)
    with table(path, readonly=False, ack=False) as main:
        times, interval = np.unique(main.getcol("TIME"), return_inverse=True)
        steps = np.random.default_rng(5).normal(size=(len(times), 24))
        phase = 0.5 * steps[0] + np.cumsum(0.1 * steps, axis=0)
        gain = np.exp(1j * phase)
        first, second = (gain[interval, main.getcol(name)] for name in ("ANTENNA1", "ANTENNA2"))
        data, flags = main.getcol("DATA"), main.getcol("FLAG")
        data *= (first * second.conj())[:, None, None]
        data[::100], flags[::100] = np.nan, True
        main.putcol("DATA", data)
        main.putcol("FLAG", flags)


def stefcal(data, power, rounds=100):
    """Gains of unit size with data[p, q] = Σ V conj(M) and power[p, q] = Σ |M|² of all samples
    of a baseline (Salvini & Wijnholds 2014, A&A 571, A97, algorithm 1)."""
    gain = np.ones(len(data), complex)
    for step in range(rounds):
        before = gain
        weight = power @ np.abs(gain) ** 2
        gain = np.where(weight > 0, (data @ gain) / np.where(weight > 0, weight, 1), 1)
        gain /= np.where(gain == 0, 1, np.abs(gain))
        if step % 2:
            gain = (gain + before) / 2  # which is what makes it converge
            if np.linalg.norm(gain - before) < 1e-6 * np.linalg.norm(gain):
                break
    return np.exp(1j * np.angle(gain * np.conj(gain[0])))  # the first antenna has phase 0


def solve(path, interval_s):
    """The phase of each antenna in each interval, from DATA and MODEL_DATA; and the interval of
    each row."""
    with table(path, ack=False) as main:
        vis, model = main.getcol("DATA"), main.getcol("MODEL_DATA")
        good = ~main.getcol("FLAG")
        p, q, time = (main.getcol(name) for name in ("ANTENNA1", "ANTENNA2", "TIME"))
    corr = [0, vis.shape[-1] - 1]  # the parallel hands
    # a flagged sample may be NaN, and a weight of 0 would leave it so
    row_data = np.where(good, vis * model.conj(), 0)[..., corr].sum((1, 2))
    row_power = np.where(good, np.abs(model) ** 2, 0)[..., corr].sum((1, 2))
    interval = ((time - time.min()) // interval_s).astype(int)
    antennas = max(p.max(), q.max()) + 1
    gains = np.ones((interval.max() + 1, antennas), complex)
    for k in range(len(gains)):
        rows = (interval == k) & (p != q)
        data = np.zeros((antennas, antennas), complex)
        power = np.zeros((antennas, antennas))
        np.add.at(data, (p[rows], q[rows]), row_data[rows])
        np.add.at(power, (p[rows], q[rows]), row_power[rows])
        gains[k] = stefcal(data + data.conj().T, power + power.T)
    return gains, interval


def apply(path, gains, interval):
    """CORRECTED_DATA: the data over the gains."""
    with table(path, readonly=False, ack=False) as main:
        if "CORRECTED_DATA" not in main.colnames():
            description = main.getcoldesc("DATA")
            main.addcols(makecoldesc("CORRECTED_DATA", {**description, "comment": "calibrated"}))
        p, q = main.getcol("ANTENNA1"), main.getcol("ANTENNA2")
        turn = gains[interval, p].conj() * gains[interval, q]
        main.putcol("CORRECTED_DATA", main.getcol("DATA") * turn[:, None, None])


def image(path, size, scale, column, name, **options):
    """Clean, and say the dynamic range: the peak over the rms of the residual. Files that begin
    with `name` are written."""
    made = tessera.image(path, size=size, scale=scale, datacolumn=column, weight="briggs:0",
                         niter=20000, auto_mask=6, auto_threshold=3, output=name, overwrite=True,
                         **options)
    peak, left = np.nanmax(made.image.data), np.nanstd(made.residual.data)
    print(f"{column}: peak {peak:.4g} Jy/beam, rms of the residual {left * 1e3:.4g} mJy/beam, "
          f"dynamic range {peak / left:.0f}", flush=True)


def self_calibrate(path, size, scale, interval_s, rounds):
    """Each round images what the last one has corrected, and solves for the phases of DATA."""
    column, name = "DATA", path.rstrip("/").removesuffix(".ms")
    for k in range(rounds):
        image(path, size, scale, column, f"{name}-round{k}", update_model=True)
        gains, interval = solve(path, interval_s)
        apply(path, gains, interval)
        print(f"round {k + 1}: phases of {gains.shape[1]} antennas in {len(gains)} intervals, rms "
              f"{np.rad2deg(np.angle(gains).std()):.1f} deg", flush=True)
        column = "CORRECTED_DATA"
    image(path, size, scale, column, f"{name}-calibrated")


if sys.argv[1] == "--simulate":
    simulate(sys.argv[2])
    self_calibrate(sys.argv[2], 512, "2asec", 60, 3)
else:
    INTERVAL_S, ROUNDS = (sys.argv[4:] + ["60", "2"][len(sys.argv) - 4:])[:2]
    self_calibrate(sys.argv[1], int(sys.argv[2]), sys.argv[3], float(INTERVAL_S), int(ROUNDS))
