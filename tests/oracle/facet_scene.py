"""Two facets whose border is slanted, gains of eight antennas in their directions, and the observation that
they belong to: what tests of images and of sessions by facets share."""
import numpy as np

from e2e import offset_radec

NX, NY, SCALE = 48, 40, 60.0  # pixels, arcsec
RA, DEC, START_S = 60.0, -30.0, 61041 * 86400.0
ANTENNAS, TIMES, ROWS = 8, 12, 12 * 28
FREQ = 150e6 + 4e6 * np.arange(4)
STEP = np.deg2rad(SCALE / 3600)


def direction(x, y):
    """Degrees of a column and a row."""
    return offset_radec(RA, DEC, -(x - NX // 2) * STEP, (y - NY // 2) * STEP)


def write_regions(path):
    """Two facets whose border is slanted, which reach beyond the image on three sides."""
    shapes = [[(-9, -9), (18.3, -9), (28.4, 35.5), (-9, 35.5)],
              [(18.3, -9), (60, -9), (60, 35.5), (28.4, 35.5)]]
    with open(path, "w", encoding="utf-8") as file:
        file.write("fk5\n")
        for k, shape in enumerate(shapes):
            text = ",".join("%.9f,%.9f" % direction(*at) for at in shape)
            file.write(f"polygon({text}) # text=F{k}\npoint(%.9f,%.9f)\n" % direction(12 + 26 * k, 18))
    return path


def write_gains(path, pols, names=None, bad=False, one=False):
    """An h5parm of gains [time, freq, ant, dir, pol]; with `bad`, one of them has weight 0."""
    import h5py
    random = np.random.default_rng(4)
    shape = (3, 2, ANTENNAS, 2, pols)
    amplitude, phase = random.uniform(.6, 1.5, shape), random.uniform(-2, 2, shape)
    if pols == 4:
        amplitude[..., 1:3] *= .2
    if one:
        amplitude[:], phase[:] = 1, 0
    weight = np.ones(shape)
    if bad:
        weight[1, :, 3, 0] = 0
    axis = {"time": START_S + np.array([15.0, 55.0, 95.0]), "freq": FREQ[::2],
            "ant": np.array(names or [b"A%02d" % k for k in range(ANTENNAS)]), "dir": np.array([b"[a]", b"[b]"]),
            "pol": np.array({2: [b"XX", b"YY"], 4: [b"XX", b"XY", b"YX", b"YY"]}[pols])}
    with h5py.File(path, "w") as file:
        group = file.create_group("sol000")
        group["source"] = np.array([(n, np.deg2rad(direction(12 + 26 * k, 18))) for k, n in enumerate(axis["dir"])],
                                   dtype=[("name", "S128"), ("dir", "f4", (2,))])
        group["antenna"] = np.array([(n, (0, 0, 0)) for n in axis["ant"]],
                                    dtype=[("name", "S16"), ("position", "f4", (3,))])
        for name, values in (("amplitude", amplitude), ("phase", phase)):
            table = group.create_group(name + "000")
            table.attrs["TITLE"] = np.bytes_(name)
            for key, numbers in axis.items():
                table[key] = numbers
            for key, numbers in (("val", values), ("weight", weight)):
                table.create_dataset(key, data=numbers).attrs["AXES"] = np.bytes_("time,freq,ant,dir,pol")
    return amplitude * np.exp(1j * phase) * (weight > 0)
