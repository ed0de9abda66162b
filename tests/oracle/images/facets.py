#!/usr/bin/env python3
"""tessera facets: pixels of facets against a polygon test of numpy, tessellations of lists of
sources, region files as they are in the wild, pictures, solutions against what h5py reads, and
what is refused."""
import os
import re
import struct
import subprocess
import sys
import tarfile
import zlib

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import facet_sums  # noqa: E402
from e2e import Suite, data_folder, fits_module, have_h5py, mpiexec, tessera  # noqa: E402

RA, DEC, SIZE, SCALE = 125.0, 34.0, 512, 15.0  # degrees, degrees, pixels, arcsec
WHERE = ("--size", SIZE, "--scale", f"{SCALE}asec", "--ra", f"{RA}deg", "--dec", f"{DEC}deg")


def pixels(ra, dec, ra0=RA, dec0=DEC, size=SIZE, scale=SCALE):
    """Columns and rows of directions (degrees), from 0."""
    ra, dec, ra0, dec0 = map(np.deg2rad, (ra, dec, ra0, dec0))
    x = np.cos(dec) * np.sin(ra - ra0)
    y = np.sin(dec) * np.cos(dec0) - np.cos(dec) * np.sin(dec0) * np.cos(ra - ra0)
    step = np.deg2rad(scale / 3600)
    return size // 2 - x / step, size // 2 + y / step


def inside(polygon, size=SIZE):
    """Which pixels are in a polygon of columns and rows."""
    x, y = np.meshgrid(np.arange(size), np.arange(size))
    odd = np.zeros(x.shape, bool)
    for (x0, y0), (x1, y1) in zip(polygon, np.roll(polygon, -1, axis=0)):
        crosses = (y0 <= y) != (y1 <= y)
        if y0 != y1:
            odd ^= crosses & (x0 + (y - y0) * (x1 - x0) / (y1 - y0) <= x)
    return odd


def polygons(path):
    """Vertices of the polygons of a region file in decimal degrees."""
    with open(path, encoding="utf-8") as file:
        found = re.findall(r"^polygon\((.*?)\)", file.read(), re.M)
    return [np.array(re.split(r"[ ,]+", text.strip()), float).reshape(-1, 2) for text in found]


def rows(text):
    """Name, direction (degrees), pixels and box of each line of a table."""
    found = re.findall(r"^  (\S+) +(\d+):(\d+):([\d.]+) (-?)(\d+):(\d+):([\d.]+) +(\d+)  "
                       r"(-?\d+):(-?\d+), (-?\d+):(-?\d+), (\d+) x (\d+)", text, re.M)
    return [(f[0], 15 * (int(f[1]) + int(f[2]) / 60 + float(f[3]) / 3600),
             (-1 if f[4] else 1) * (int(f[5]) + int(f[6]) / 60 + float(f[7]) / 3600),
             int(f[8]), tuple(map(int, f[9:13]))) for f in found]


def colours(path):
    """Pixels of a PNG of three bytes, by the filters that it has."""
    with open(path, "rb") as file:
        data = file.read()
    width, height = struct.unpack(">II", data[16:24])
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + length] if kind == b"IDAT" else b""
        at += length + 12
    lines = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, 3 * width + 1)
    return lines[:, 1:].reshape(height, width, 3) if not lines[:, 0].any() else None


def check_pixels(suite, regions):
    results = [tessera("facets", regions, *WHERE, ranks=n) for n in ((1, 2) if mpiexec() else (1,))]
    suite.ran("facets of a region file", results[0])
    suite.equal("the same table on all ranks", {r.out for r in results}, {results[0].out})
    table = rows(results[0].out)
    suite.equal("names", [row[0] for row in table], ["dir0", "dir1", "dir2"])
    for row, polygon in zip(table, polygons(regions)):
        mine = inside(np.stack(pixels(*polygon.T), -1))
        x, y = np.nonzero(mine.any(0))[0], np.nonzero(mine.any(1))[0]
        suite.equal(f"{row[0]}: pixels", row[3], int(mine.sum()))
        wide, high = x[-1] + 1 - x[0], y[-1] + 1 - y[0]  # made even
        suite.equal(f"{row[0]}: columns and rows", row[4],
                    (x[0], x[0] + wide + wide % 2, y[0], y[0] + high + high % 2))
    suite.below("direction of the point", np.hypot(table[0][1] - 124.12640843, table[0][2] - 33.91078614), 1e-4)


def check_tessellation(suite, regions, truth):
    """Cells of the five brightest sources: each pixel's nearest."""
    with open(truth, encoding="utf-8") as file:
        known = [line.strip().split(",") for line in file][1:]
    text, out = suite.path("list.txt"), suite.path("cells.reg")
    with open(text, "w", encoding="utf-8") as file:
        file.write("Format = Name, Type, Ra, Dec, I\n")
        file.writelines(f"{k[0]},POINT,{k[2]},{k[3]},{k[4]}\n" for k in known)
        file.write(f"far,POINT,{RA + 30}deg,{DEC}deg,100\n")
        close = known[0]  # a component of a brighter source, and none of its own
        file.write(f"close,POINT,{float(close[2][:-3]) + .01}deg,{close[3]},4.9\n")
    made = tessera("facets", text, "--number", 5, "--separation", "60asec", *WHERE, "-o", out)
    if not suite.ran("facets of five sources", made):
        return
    suite.equal("a table of five", [row[0] for row in rows(made.out)], [f"dir{k}" for k in range(1, 6)])
    again = tessera("facets", out, *WHERE)
    suite.ran("the region file is read", again)
    suite.equal("the same facets", rows(again.out), rows(made.out))
    suite.true("no pixel is left", "in no facet" not in again.out)
    brightest = sorted(known, key=lambda k: -float(k[4]))[:5]
    at = np.array([pixels(float(k[2][:-3]), float(k[3][:-3])) for k in brightest])
    x, y = np.meshgrid(np.arange(SIZE), np.arange(SIZE))
    nearest = np.argmin([np.hypot(x - a, y - b) for a, b in at], 0)
    suite.equal("pixels of the nearest sources", [row[3] for row in rows(made.out)],
                [int((nearest == k).sum()) for k in range(5)])
    suite.equal("an output that is there", tessera("facets", text, *WHERE, "-o", out).status, 3)


def check_picture(suite, regions, image):
    picture = suite.path("facets.png")
    drawn = tessera("facets", regions, "--like", image, "--png", picture, "--feather", 6)
    if not suite.ran("facets over an image", drawn):
        return
    suite.equal("boxes with a feather", rows(drawn.out)[0][4][2:], (0, SIZE))
    found = colours(picture)
    if found is None:
        suite.skipped("the picture has filters")
        return
    red, green, blue = (found[..., k].astype(int) for k in range(3))
    marked = (green > red + 25) & (green > blue + 10)  # no colour of the image is green
    suite.true(f"{marked.sum()} pixels of outlines: two borders of 512, and crosses", marked.sum() > 1000)


def check_wild(suite, folder):
    """Region files of pipelines: what they hold, and what is no facet."""
    four = tessera("facets", os.path.join(folder, "four-facets.reg"), "--size", 400, "--scale", "3amin",
                   "--center", "124.8deg,-43deg")
    suite.ran("four facets without labels", four)
    suite.equal("their names", [row[0] for row in rows(four.out)], ["facet1", "facet2", "facet3", "facet4"])
    path, where = os.path.join(folder, "labels.reg"), ("--size", 512, "--scale", "0.01deg", "--center", "24deg,32deg")
    overlap = tessera("facets", path, *where)
    suite.true(f"facets that overlap by .08 degrees: {overlap.errors()}", overlap.status == 3 and
               "labels.reg: line 23: facet 'CygTJ' overlaps facet 'CygA' of line 13" in overlap.errors()[0])
    apart = suite.path("labels.reg")
    with open(path, encoding="utf-8") as file, open(apart, "w", encoding="utf-8") as out:
        out.write(file.read().replace("22.92,31.87, 22.94,30.5", "23.0,31.87, 23.0,30.5"))
    labels = tessera("facets", apart, *where)
    suite.ran("facets with labels and points", labels)
    table = rows(labels.out)
    suite.equal("labels behind polygons and points", [row[0] for row in table], ["CygA", "CygAO", "CygTJ", "facet4"])
    suite.below("the last point counts", np.hypot(table[2][1] - 22.92, table[2][2] - 31.87), 1e-4)
    for name in ("box.reg", "boxes.reg"):
        boxes = tessera("facets", os.path.join(folder, name), *WHERE)
        suite.equal(f"{name}: status", boxes.status, 3)
        suite.true(f"one line says why: {boxes.errors()}", len(boxes.errors()) == 1 and name in boxes.errors()[0]
                   and "no polygon" in boxes.errors()[0])


def check_refused(suite, regions):
    with open(regions, encoding="utf-8") as file:
        text = file.read()
    first = next(line for line in text.splitlines() if line.startswith("polygon"))
    cases = [("overlap", text + first + "\n", ("line 10", "overlaps facet 'dir0' of line 4")),
             ("outside", "fk5\npolygon(10,10,11,10,11,11)\n", ("line 2", "no pixel in the image")),
             ("short", text + "polygon(1,2,3,4)\n", ("line 10", "less than three"))]
    for ranks in (1, 3) if mpiexec() else (1,):
        for name, content, words in cases[:1 if ranks > 1 else None]:
            path, out = suite.path(name + ".reg"), suite.path("none.reg")
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
            result = tessera("facets", path, *WHERE, "-o", out, ranks=ranks)
            suite.equal(f"{name}, {ranks} ranks: status", result.status, 3)
            suite.true(f"one line says why: {result.errors()}", len(result.errors()) == 1 and
                       all(word in result.errors()[0] for word in (name + ".reg",) + words))
            suite.true("no file", not os.path.exists(out))
    for args, words in [((), "no facets given"), ((regions,), "are needed"),
                        ((regions, *WHERE, "--png", "a.png"), "--like IMAGE.fits"),
                        ((regions, *WHERE, "--number", 3), "no list of sources"),
                        ((regions, *WHERE, "--separation", "9asec"), "of which --separation takes some"),
                        (("--solutions", "none.h5", *WHERE, "--separation", "9asec"), "sources of a list")]:
        result = tessera("facets", *args)
        suite.true(f"usage: {result.errors()}", result.status == 2 and words in result.errors()[0])


# ---- solutions ----

ORDER = ("dir", "ant", "time", "freq", "pol")


def stored(path):
    """Amplitudes and phases in the order above, axes by name, and directions, by h5py."""
    import h5py
    with h5py.File(path, "r") as file:
        group = file["sol000"]
        tables = [group[name] for name in ("amplitude000", "phase000")]
        axes = [table["val"].attrs["AXES"].decode().split(",") for table in tables]
        values = [np.transpose(table["val"][:], [a.index(k) for k in ORDER]) for table, a in zip(tables, axes)]
        weights = [np.transpose(table["weight"][:], [a.index(k) for k in ORDER]) for table, a in zip(tables, axes)]
        axis = {k: tables[0][k][:] for k in ORDER}
        return values, weights, axis, np.array(group["source"]["dir"], float)


def nearest(axis, at):
    return int(np.argmin(np.abs(axis - at)))


def ask(path, how, axis, where, questions):
    """Answers of solution_gains: whether each counts, and its matrix."""
    text = "\n".join([f"{len(axis['ant'])} {len(where)}", *(name.decode() for name in axis["ant"]),
                      *("%.17g %.17g" % tuple(w) for w in where),
                      *("%d %d %.17g %.17g" % q for q in questions)])
    result = subprocess.run([os.environ["TESS_SOLUTION_GAINS"], path, "amplitude000,phase000", how], input=text,
                            text=True, capture_output=True, timeout=60, check=False)
    found = np.array([line.split() for line in result.stdout.splitlines()], float)
    if result.returncode or len(found) != len(questions):
        return None, result.stderr
    return found[:, 0] > 0, found[:, 1::2] + 1j * found[:, 2::2]


def check_gains(suite, path):
    """Matrices at places between and beyond the values, against arrays of h5py."""
    (amplitude, phase), weights, axis, where = stored(path)
    random = np.random.default_rng(3)
    time, freq = (axis[k] for k in ("time", "freq"))
    questions = [(int(random.integers(len(axis["ant"]))), int(random.integers(len(where))),
                  random.uniform(time[0] - 100, time[-1] + 100), random.uniform(freq[0] - 1e6, freq[-1] + 1e6))
                 for _ in range(200)]
    good, found = ask(path, "nearest", axis, where, questions)
    if good is None:
        suite.true(f"{os.path.basename(path)} is read: {found}", False)
        return
    worst, wrong = 0, 0
    for q, counts, matrix in zip(questions, good, found):
        at = (q[1], q[0], nearest(time, q[2]), nearest(freq, q[3]))
        gain = amplitude[at] * np.exp(1j * phase[at])
        full = {1: [0, None, None, 0], 2: [0, None, None, 1], 4: [0, 1, 2, 3]}[len(gain)]
        here = np.array([0 if k is None else gain[k] for k in full])
        is_good = np.isfinite(here).all() and weights[0][at].all() and weights[1][at].all()
        wrong += counts != is_good
        worst = max(worst, np.abs(matrix - here * is_good).max() if is_good else np.abs(matrix).max())
    suite.equal(f"{os.path.basename(path)}: values that count otherwise", wrong, 0)
    suite.below(f"{os.path.basename(path)}: matrices", worst, 1e-12 * np.nanmax(amplitude))


def check_linear(suite, path):
    """Bilinear in time and frequency: amplitudes, and phases the shorter way round."""
    (amplitude, phase), _, axis, where = stored(path)
    time, freq = axis["time"], axis["freq"]
    questions = [(a, d, time[1] + 0.3 * (time[2] - time[1]), freq[0] + 0.8 * (freq[1] - freq[0]))
                 for a in range(len(axis["ant"])) for d in range(len(where))]
    _, found = ask(path, "linear", axis, where, questions)
    worst = 0
    for (a, d, _, _), matrix in zip(questions, found):
        share = np.array([[.7 * .2, .7 * .8], [.3 * .2, .3 * .8]])[..., None]
        near = phase[d, a, 1, 1]
        turn = np.angle(np.exp(1j * (phase[d, a, 1:3, :2] - near)))
        gain = (share * amplitude[d, a, 1:3, :2]).sum((0, 1)) * np.exp(1j * (near + (share * turn).sum((0, 1))))
        worst = max(worst, np.abs(matrix[[0, 3]] - gain).max())
    suite.below(f"{os.path.basename(path)}: linear", worst, 1e-12)


def check_table(suite, folder, regions):
    """Ranges of values, and facets around the directions of solutions."""
    path = os.path.join(folder, "solutions.h5")
    (amplitude, phase), _, _, _ = stored(path)
    ranks = 2 if mpiexec() else 1
    shown = tessera("facets", regions, *WHERE, "--solutions", path, ranks=ranks)
    suite.ran(f"solutions of facets on {ranks} ranks", shown)
    found = re.findall(r"^  (dir\d) +\[(dir\d)\] +\S+ +(\S+) to (\S+) +(\S+) to (\S+) rad", shown.out, re.M)
    suite.equal("directions by angle", [(f[0], f[1]) for f in found], [(f"dir{k}",) * 2 for k in range(3)])
    for k, row in enumerate(found):
        mine = [f(v[k]) for v in (amplitude, phase) for f in (np.min, np.max)]
        suite.below(f"dir{k}: ranges", np.abs(np.array(row[2:], float) - mine).max(), 0.006)
    change = re.findall(r"^  (dir\d) +(dir\d) +([\d.]+)amin +over 100 % +([\d.]+)deg +over 100 % +([\d.]+)asec",
                        shown.out, re.M)
    suite.equal("neighbours towards which gains change fastest", [row[:2] for row in change],
                [("dir0", "dir1"), ("dir1", "dir0"), ("dir2", "dir1")])
    made = tessera("facets", "--solutions", path, *WHERE)
    suite.equal("facets around directions", [row[0] for row in rows(made.out)], [f"[dir{k}]" for k in range(3)])


def check_refused_solutions(suite, folder, regions):
    import h5py
    path, away, empty = os.path.join(folder, "solutions.h5"), suite.path("away.h5"), suite.path("empty.h5")
    for name in (away, empty):
        with open(path, "rb") as file, open(name, "wb") as out:
            out.write(file.read())
    with h5py.File(away, "a") as file:
        source = file["sol000/source"][:]
        source["dir"][1] += (0, .03)
        file["sol000/source"][:] = source
    with h5py.File(empty, "a") as file:
        file["sol000/phase000/val"][...] = np.nan
    cases = [((path, "--soltabs", "phase007"), ("solutions.h5", "'phase007'", "amplitude000, phase000")),
             ((away,), ("away.h5", "facet 'dir1'", "more than half")),
             ((empty,), ("empty.h5", "phase000", "[dir0]", "NaN")),
             ((regions,), ("facets.reg", "no HDF5 file")), ((path + "x",), ("solutions.h5x",))]
    for k, (args, words) in enumerate(cases):
        out = suite.path(f"refused-{k}.reg")
        result = tessera("facets", regions, *WHERE, "-o", out, "--solutions", *args)
        suite.equal(f"{os.path.basename(args[0])}: status", result.status, 3)
        suite.true(f"one line says why: {result.err.strip()}", len(result.err.splitlines()) == 1 and
                   all(word in result.err for word in words) and not os.path.exists(out))


def check_sums(suite, folder, regions):
    """The direct sums that facets are compared with: they give WSClean's dirty image, and the data of the truth.

    Limits: WSClean gridded with an error of 1e-6, and keeps gains and pixels in single precision. Noise of .02 in
    both parts of 199,000 samples has this rms to 0.2 %, five standard deviations of which are 1 %."""
    with tarfile.open(os.path.join(folder, "obs.ms.tgz")) as packed:
        packed.extractall(suite.path("sums"))
    obs = facet_sums.read_set(suite, suite.path("sums/obs.ms"))
    if not obs:
        return
    image = fits_module().getdata(os.path.join(folder, "wsclean-dd-dirty.fits"))[0, 0]
    gains = facet_sums.Gains([os.path.join(folder, "solutions.h5")], ["amplitude000", "phase000"])
    weight, step = facet_sums.briggs(obs, 0, SIZE, SCALE), np.deg2rad(SCALE / 3600)
    with open(os.path.join(folder, "truth.csv"), encoding="utf-8") as file:
        truth = np.array([[float(v.rstrip("deg")) for v in line.split(",")[1:]] for line in file.readlines()[1:]])
    model, worst = 0, 0
    for k, region in enumerate(facet_sums.read_regions(regions)):
        jones, good = gains.of(obs, region.direction())
        mine = truth[truth[:, 0] == k]
        l, m = obs.cosines(mine[:, 1], mine[:, 2])
        model = model + facet_sums.predict(obs, zip(l, m, mine[:, 3]), jones, good)
        x, y = (np.append(SIZE // 2 + np.round(sign * at / step).astype(int), place)
                for sign, at, place in ((-1, l, 256 - 150 * (k - 1)), (1, m, 100)))
        sums = facet_sums.dirty(obs, weight, jones, good, (SIZE // 2 - x) * step, (y - SIZE // 2) * step, joint=True)
        worst = max(worst, np.abs(sums - image[y, x]).max() / np.abs(image).max())
    suite.below("direct sums against WSClean's dirty image", worst, 1e-6)
    noise = np.concatenate([(obs.data - model).real.ravel(), (obs.data - model).imag.ravel()]).std()
    suite.below("direct sums against the data: noise", abs(noise / .02 - 1), .01)


def check_solutions(suite, folder, regions):
    if not have_h5py():
        return
    check_sums(suite, folder, regions)
    for name in ("solutions.h5", "real/lofar-diagonal.h5", "real/lofar-fulljones.h5"):
        check_gains(suite, os.path.join(folder, name))
    check_linear(suite, os.path.join(folder, "solutions.h5"))
    check_table(suite, folder, regions)
    check_refused_solutions(suite, folder, regions)


def main():
    suite = Suite("facets")
    folder = data_folder("data", "facets")
    regions = os.path.join(folder, "facets.reg")
    check_pixels(suite, regions)
    check_tessellation(suite, regions, os.path.join(folder, "truth.csv"))
    check_picture(suite, regions, os.path.join(folder, "wsclean-ddc-image.fits"))
    check_wild(suite, os.path.join(folder, "real"))
    check_refused(suite, regions)
    check_solutions(suite, folder, regions)
    suite.finish()


if __name__ == "__main__":
    main()
