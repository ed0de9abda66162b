#!/usr/bin/env python3
"""Joint mosaics: sets of several pointings that tessera simulates, with the beams of their dishes, against direct sums
(mosaic_sums.py): round beams, unlike dishes, and a beam that turns on the sky; the images that it makes of them, and
what their pointings are predicted to see of a model."""
import os
import sys
from dataclasses import replace

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import mosaic_sums  # noqa: E402
import uvfits  # noqa: E402
from e2e import (ASEC, Suite, casacore_python, have_ms, l2_error, mpiexec, offset_radec, read_image,  # noqa: E402
                 simulate, skip, tessera)
from primary_beams import pattern, write_cube  # noqa: E402

RA, DEC, N = 60.0, -30.0, 64  # degrees, pixels


class Pattern:
    """The beam of primary_beams.py, as a voltage."""
    turns = True

    @staticmethod
    def voltage(x, y, freq_hz):
        return np.sqrt(pattern(np.rad2deg(x), np.rad2deg(y), freq_hz))


def write_table(path, columns, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([columns] + [",".join(map(str, row)) for row in rows]) + "\n")
    return path


def write_sources(suite, name, reach_asec, fluxes=(2.0, 1.0, 0.5)):
    """Points at different distances from the middle; the list as (RA, Dec, Jy)."""
    reach = np.deg2rad(reach_asec / 3600)
    places = [offset_radec(RA, DEC, reach * l, reach * m) for l, m in ((0.1, 0.25), (-0.9, 0.3), (0.6, -0.7))]
    sources = [(ra, dec, flux) for (ra, dec), flux in zip(places, fluxes)]
    path = write_table(suite.path(f"{name}.csv"), "ra,dec,flux_jy",
                       [(f"{ra:.12f}deg", f"{dec:.12f}deg", flux) for ra, dec, flux in sources])
    return sources, path


def unlike_array(suite):
    """Dishes of 12 m and of 7 m at ALMA's site."""
    rng = np.random.default_rng(4)
    rows = [(*np.round(rng.uniform(-50, 50, 2), 3), 0, 12) for _ in range(5)]
    rows += [(*np.round(rng.uniform(-20, 20, 2), 3), 0, 7) for _ in range(4)]
    return write_table(suite.path("ALMA.csv"), "# lon=-67.755 lat=-23.023 alt=5000\neast,north,up,diameter", rows)


def simulated(suite, name, sources, words):
    """A set, its rows and its sources; None for rows that cannot be read."""
    path = simulate(suite.path(f"{name}.ms"), sources[1], ra=f"{RA}deg", dec=f"{DEC}deg", start="2026-01-01",
                    extra=("--overwrite", "--threads", "1", "--hour-angle=-1h", *words[1]), **words[0])
    return path, mosaic_sums.read_pointings(suite, path)


def hexagon(suite):
    sources = write_sources(suite, "hexagon", 1000)
    words = (dict(layout="vla-d", duration="15min", integration="60s", channels=3, width="40MHz"),
             ("--antennas", "8", "--max-radius", "150m", "--pointings", "hex:7,15amin", "--scan", "2min",
              "--primary-beam", "airy:25,2", "--object", "H"))
    path, obs = simulated(suite, "hexagon", sources, words)
    dishes = mosaic_sums.Dishes([mosaic_sums.Airy(25, 2)], [0] * 8)
    return path, obs, dishes, sources[0]


def unlike(suite):
    sources = write_sources(suite, "unlike", 45)
    pointings = write_table(suite.path("pointings.csv"), "name,ra,dec",
                            [(n, f"{ra:.12f}deg", f"{dec:.12f}deg") for n, (ra, dec) in
                             zip("ABC", (offset_radec(RA, DEC, l * 1e-4, m * 1e-4)
                                         for l, m in ((1.5, 0), (-0.75, 1.3), (-0.75, -1.3))))])
    words = (dict(layout=unlike_array(suite), duration="12min", integration="60s", channels=2, width="1GHz",
                  freq="100GHz"), ("--pointings", pointings, "--primary-beam", "auto"))
    path, obs = simulated(suite, "unlike", sources, words)
    dishes = mosaic_sums.Dishes([mosaic_sums.Airy(10.7, .75), mosaic_sums.Airy(6.25, .75)], [0] * 5 + [1] * 4)
    return path, obs, dishes, sources[0]


def turning(suite):
    sources = write_sources(suite, "turning", 700)
    cube = write_cube(suite.path("beam.fits"), [1.1e9, 1.2e9, 1.3e9], False, False)
    words = (dict(layout="meerkat", duration="3h", integration="900s", freq="1.2GHz", channels=1),
             ("--antennas", "6", "--max-radius", "250m", "--pointings", "hex:2,0.3deg", "--primary-beam", cube))
    path, obs = simulated(suite, "turning", sources, words)
    return path, obs, mosaic_sums.Dishes([Pattern()], [0] * 6), sources[0]


def check_simulated(suite, name, obs, dishes, sources, limit):
    """Visibilities are the sums over the sources in the beams of their pointings."""
    wanted = mosaic_sums.received(obs, sources, dishes)
    suite.below(f"{name}: simulated visibilities, L2 error", l2_error(obs.vis, wanted), limit)
    other = mosaic_sums.received(obs, sources, mosaic_sums.Dishes([mosaic_sums.Airy(20)], 0 * dishes.of_antenna))
    suite.true(f"{name}: the test would see another beam", l2_error(obs.vis, other) > 10 * limit)


def check_fields(suite, hexagon_obs, unlike_obs):
    """Scans take turns; a hexagon's pointings are as far from the middle as from their neighbours."""
    obs, away = hexagon_obs, np.deg2rad(15 / 60)
    suite.equal("fields of a hexagon", obs.names, [f"H_{k}" for k in range(7)])
    steps = np.unique(obs.time)
    first = [np.argmax(obs.time == t) for t in steps]
    suite.equal("the field of each minute", obs.field[first].tolist(), [k // 2 % 7 for k in range(15)])
    suite.equal("the scan of each minute", obs.scan[first].tolist(), [k // 2 + 1 for k in range(15)])
    l, m, _ = mosaic_sums.cosines(*np.rad2deg(obs.centre.T), np.deg2rad([RA, DEC]))
    ring = np.hypot(l, m)[1:], np.hypot(np.diff(l[[1, 2, 3, 4, 5, 6, 1]]), np.diff(m[[1, 2, 3, 4, 5, 6, 1]]))
    suite.below("the hexagon", max(np.hypot(l[0], m[0]), *(np.abs(np.array(side) / away - 1).max() for side in ring)),
                1e-9)
    suite.true("antennas point to phase centres", np.array_equal(obs.centre, obs.pointing))
    suite.equal("fields of a file", unlike_obs.names, ["A", "B", "C"])
    suite.equal("diameters", sorted(set(unlike_obs.diameter)), [7.0, 12.0])


def check_refused(suite, sky):
    common = ("simulate", "--layout", "vla-d", "--sky", sky, "--duration", "10min", "--freq", "1.4GHz")
    here = ("--ra", f"{RA}deg", f"--dec={DEC}deg")
    wrong = write_table(suite.path("wrong.csv"), "ra,decl", [("60deg", "-30deg")])
    for what, status, text, args in (
            ("several fields in UVFITS", 2, "MeasurementSet", (*here, "--pointings", "hex:7,1amin", "-o", "no.uvfits")),
            ("too short", 2, "there are 7 pointings",
             (*here, "--pointings", "hex:7,1amin", "--scan", "5min", "-o", "no.ms")),
            ("no number", 2, "'hex:7'", (*here, "--pointings", "hex:7", "-o", "no.ms")),
            ("no centre", 2, "--ra is missing", ("--pointings", "hex:7,1amin", "-o", "no.ms")),
            ("no pointings", 2, "--scan", (*here, "--scan", "1min", "-o", "no.ms")),
            ("no columns", 3, "ra and dec", ("--pointings", wrong, "-o", "no.ms")),
            ("no beam", 2, "'parkes'", (*here, "--primary-beam", "parkes", "-o", "no.ms")),
            ("beams of nowhere", 3, "not at 1400 MHz", (*here, "--primary-beam", "meerkat-uhf", "-o", "no.ms"))):
        result = tessera(*common, *args, cwd=suite.work)
        suite.ran(what, result, status)
        suite.true(f"{what}: one line with '{text}'", len(result.errors()) == 1 and text in result.errors()[0])
    suite.true("nothing is left", not os.path.exists(suite.path("no.ms")))


# ---- images and predictions ----

def pixels(scale):
    """Directions of the pixels, in degrees."""
    x = np.arange(N) - N // 2
    return offset_radec(RA, DEC, -x[None, :] * scale * ASEC, x[:, None] * scale * ASEC)


def difference(image, wanted, inside):
    return np.abs(image - wanted)[inside].max() / np.abs(wanted[inside]).max()


def check_image(suite, name, made, scale, beam, weight):
    """Images of even noise and of fluxes, the beam of the mosaic and the mean square of its beams. Beams are tabulated
    to some 1e-6; `beam` has the limits of those of files, which are interpolated."""
    path, obs, dishes, _ = made
    words, limit = beam
    weights = obs.weight if weight == "natural" else mosaic_sums.briggs(obs, 0, N, scale, np.deg2rad([RA, DEC]))
    good, prefix = suite.image(f"{name}-{weight[:3]}", path, "--mosaic", "--size", N, "--scale", f"{scale}asec",
                               "--center", f"{RA}deg,{DEC}deg", "--weight", weight, "--pb-limit", "0.1", "--accuracy",
                               "1e-6", "--threads", "1", *words)
    if not good:
        return
    joint = mosaic_sums.Mosaic(obs, dishes, weights, *pixels(scale))
    flux = joint.flat_sky(obs.vis)
    read = {kind: read_image(f"{prefix}-{kind}.fits")[0] for kind in ("dirty", "dirty-pb", "pb", "weight")}
    inside, clear = np.isfinite(read["pb"]), np.abs(joint.beam - 0.1) > limit
    label = f"{name}, {weight}"
    suite.true(f"{label}: cut at the limit", (inside == (joint.beam >= 0.1))[clear].all() and 0 < inside.sum() < N * N)
    inside &= joint.beam > 0.1
    for kind, wanted in (("pb", joint.beam), ("dirty", flux * joint.beam), ("dirty-pb", flux)):
        suite.below(f"{label}: -{kind} against direct sums", difference(read[kind], wanted, inside), limit)
    # a pixel near --pointing-limit may be on either side of it
    suite.below(f"{label}: -weight against direct sums",
                difference(read["weight"], joint.mean_square_beam, np.ones((N, N), bool)), max(limit, 5e-4))


def check_predicted(suite, name, made, scale, beam):
    """Each pointing sees the pixels of a model times its beam."""
    path, obs, dishes, _ = made
    words, limit = beam
    model = np.zeros((N, N))
    for y, x, flux in ((30, 33, 2.0), (12, 40, 1.0), (41, 14, 0.7), (3, 3, 1.5)):
        model[y, x] = flux
    file = suite.path(f"{name}-model.fits")
    uvfits.write_model(file, model, scale * ASEC, RA, DEC)
    result = tessera("predict", path, "--model", file, "--mosaic", "--column", "SEEN", "--accuracy", "1e-6", *words)
    if not suite.ran(f"predict --mosaic of {name}", result):
        return
    seen = mosaic_sums.read_pointings(suite, path, "SEEN")
    # channels count alike
    joint = mosaic_sums.Mosaic(obs, dishes, np.ones_like(obs.weight), *pixels(scale))
    suite.below(f"{name}: predicted visibilities, L2 error", l2_error(seen.vis, joint.predicted(model)), limit)
    if len(obs.freq) > 1:
        check_subtracted(suite, name, path, scale, words, file)


def check_set(suite, name, made, scale, beam):
    """Of the NAME of a set, the models in true flux are predicted, each with the beam of its own channel. A model as
    the data see it is told of once."""
    path, obs, dishes, _ = made
    words, limit = beam
    prefix, model = suite.path(f"{name}-set"), np.zeros((N, N))
    model[30, 33], model[12, 40], model[3, 3] = 2.0, 1.0, 1.5
    for k, freq in enumerate(obs.freq):
        for kind, factor in (("model-pb", 1 + k), ("model", 0.5)):
            uvfits.write_model(f"{prefix}-{k:04d}-{kind}.fits", factor * model, scale * ASEC, RA, DEC, freq_hz=freq)
    result = tessera("predict", path, "--model", prefix, "--mosaic", "--column", "SET", "--accuracy", "1e-6", *words)
    if not suite.ran(f"predict --mosaic of a set, {name}", result):
        return
    suite.true("no warning of a set in true flux", "true flux" not in result.err)
    seen = mosaic_sums.read_pointings(suite, path, "SET")
    wanted = np.empty_like(seen.vis)
    for k, freq in enumerate(obs.freq):
        one = replace(obs, freq=obs.freq[k:k + 1], vis=obs.vis[:, k:k + 1], weight=np.ones((len(obs.vis), 1)))
        wanted[:, k:k + 1] = (1 + k) * mosaic_sums.Mosaic(one, dishes, one.weight, *pixels(scale)).predicted(model)
    suite.below(f"{name}: a set, L2 error", l2_error(seen.vis, wanted), limit)
    result = tessera("predict", path, "--model", f"{prefix}-0001-model.fits", "--mosaic", "--column", "SET",
                     "--overwrite", *words)
    suite.ran(f"predict --mosaic of a model as the data see it, {name}", result)
    suite.true("one warning names the model in true flux", result.err.count("set-0001-model-pb.fits") == 1)


def check_name(suite, path, scale):
    """NAME of a mosaic of one channel means its model of fluxes: predicted, and subtracted."""
    good, prefix = suite.image("named", path, "--mosaic", "--size", N, "--scale", f"{scale}asec", "--niter", "20",
                               "--threads", "1")
    if not good:
        return
    seen = []
    for column, model in (("OF_NAME", prefix), ("OF_FILE", f"{prefix}-model-pb.fits")):
        suite.ran(f"predict --mosaic, {column}", tessera("predict", path, "--mosaic", "--model", model, "--column", column))
        seen.append(mosaic_sums.read_pointings(suite, path, column).vis)
    suite.true("predict --mosaic --model NAME", np.array_equal(*seen) and np.abs(seen[0]).max() > 0)
    less = [suite.image(f"less-{k}", path, "--mosaic", "--size", N, "--scale", f"{scale}asec", "--threads", "1",
                        "--subtract", model)[1] for k, model in enumerate((prefix, f"{prefix}-model-pb.fits"))]
    suite.true("image --mosaic --subtract NAME", np.array_equal(
        *(read_image(f"{name}-dirty.fits")[0] for name in less), equal_nan=True))


def check_subtracted(suite, name, path, scale, words, model):
    """What pointings are predicted to see of a model is subtracted by --subtract, as from a column: also of images
    around another centre than the model's, and of some of the channels, of which the beam is that of these alone."""
    result = tessera("predict", path, "--model", model, "--mosaic", "--column", "SEEN", "--overwrite", "--channels", "1:2",
                     "--accuracy", "1e-6", *words)
    if not suite.ran(f"predict --mosaic of a channel, {name}", result):
        return
    options = [path, "--mosaic", "--size", N, "--scale", f"{scale}asec", "--center",
               f"{RA + 3 * scale / 3600}deg,{DEC}deg", "--channels", "1:2", "--threads", "1", "--accuracy", "1e-6", *words]
    dirty = []
    for how, less in (("all", []), ("column", ["--subtract-column", "SEEN"]), ("model", ["--subtract", model])):
        good, prefix = suite.image(f"{name}-less-{how}", *options, *less, ranks=2 if how == "model" and mpiexec() else 1)
        if not good:
            return
        dirty.append(read_image(f"{prefix}-dirty.fits")[0])
    inside = np.isfinite(dirty[0])
    largest = np.abs(dirty[0] - dirty[1])[inside].max()
    suite.true(f"{name}: a column is subtracted", largest > 1e-2)
    # 1e-6 of --accuracy, of predictions that are shared by ranks in another way
    suite.below(f"{name}: --subtract and --subtract-column", np.abs(dirty[2] - dirty[1])[inside].max() / largest, 1e-5)


def check_updated(suite, name, made, scale):
    """--update-model predicts what each pair of dishes sees of the model of fluxes."""
    path, obs, dishes, _ = made
    good, prefix = suite.image(f"{name}-updated", path, "--mosaic", "--size", N, "--scale", f"{scale}asec", "--center",
                               f"{RA}deg,{DEC}deg", "--niter", "20", "--update-model", "--model-column", "SEEN_TOO",
                               "--threads", "1", "--accuracy", "1e-6")
    if not good:
        return
    seen = mosaic_sums.read_pointings(suite, path, "SEEN_TOO")
    joint = mosaic_sums.Mosaic(obs, dishes, np.ones_like(obs.weight), *pixels(scale))
    model = np.nan_to_num(read_image(f"{prefix}-model-pb.fits")[0])
    suite.below(f"{name}: model column, L2 error", l2_error(seen.vis, joint.predicted(model)), 1e-5)


def check_predictions_refused(suite, path, model):
    for what, status, text, args in (
            ("an output", 2, "--column", ("--mosaic", "--primary-beam", "airy:25", "-o", "no.uvfits")),
            ("several fields", 2, "fields", ("--primary-beam", "airy:25", "--column", "NO")),
            ("no beam", 2, "'parkes'", ("--mosaic", "--primary-beam", "parkes", "--column", "NO"))):
        result = tessera("predict", path, "--model", model, *args, cwd=suite.work)
        suite.ran(f"predict: {what}", result, status)
        suite.true(f"predict: {what}: one line with '{text}'",
                   len(result.errors()) == 1 and text in result.errors()[0])


def check_ranks(suite, obs, words):
    path = suite.path("ranks.ms")
    result = tessera(*words, "-o", path, ranks=2)
    if suite.ran("simulate on two ranks", result):
        other = mosaic_sums.read_pointings(suite, path)
        suite.true("the same rows on two ranks", np.array_equal(other.vis, obs.vis) and
                   np.array_equal(other.field, obs.field) and np.array_equal(other.uvw, obs.uvw))


def main():
    suite = Suite("simulated_mosaics")
    if not have_ms() or not casacore_python():
        skip("no MeasurementSets, or no casacore for Python")
    made = {name.__name__: name(suite) for name in (hexagon, unlike, turning)}
    # Visibilities are rounded to single precision; the file of the beam that turns is interpolated.
    for name, limit in (("hexagon", 1e-7), ("unlike", 1e-7), ("turning", 2e-3)):
        _, obs, dishes, sources = made[name]
        check_simulated(suite, name, obs, dishes, sources, limit)
    round_beam = ("--primary-beam", "airy:25,2"), 1e-5
    cube = ("--primary-beam", suite.path("beam.fits")), 1e-2
    for weight in ("natural", "briggs:0"):
        check_image(suite, "hexagon", made["hexagon"], 50, round_beam, weight)
    check_image(suite, "turning", made["turning"], 40, cube, "natural")
    # beams of a pair of unlike dishes are negative beyond the first null of the larger one
    check_image(suite, "unlike", made["unlike"], 2, (("--primary-beam", "auto"), 1e-5), "natural")
    check_predicted(suite, "hexagon", made["hexagon"], 50, round_beam)
    check_set(suite, "hexagon", made["hexagon"], 50, round_beam)
    check_predicted(suite, "turning", made["turning"], 40, cube)
    check_predicted(suite, "unlike", made["unlike"], 2, (("--primary-beam", "auto"), 1e-5))
    check_updated(suite, "unlike", made["unlike"], 2)
    check_name(suite, made["unlike"][0], 2)
    check_predictions_refused(suite, made["hexagon"][0], suite.path("hexagon-model.fits"))
    check_fields(suite, made["hexagon"][1], made["unlike"][1])
    check_refused(suite, suite.path("hexagon.csv"))
    if mpiexec():
        check_ranks(suite, made["hexagon"][1],
                    ("simulate", "--layout", "vla-d", "--sky", suite.path("hexagon.csv"), "--ra", f"{RA}deg",
                     f"--dec={DEC}deg", "--start", "2026-01-01", "--hour-angle=-1h", "--duration", "15min",
                     "--integration", "60s", "--freq", "1.4GHz", "--chan-width", "40MHz", "--channels", "3",
                     "--antennas", "8", "--max-radius", "150m", "--pointings", "hex:7,15amin", "--scan", "2min",
                     "--primary-beam", "airy:25,2", "--object", "H"))
    suite.finish()


if __name__ == "__main__":
    main()
