#!/usr/bin/env python3
"""Mosaics that are imaged together (`tessera image --mosaic`): dirty images are direct sums over the
samples of each pointing and pair of dishes, weighted by their beams; cleaned images have the true
fluxes, on any number of ranks and on an emulated device; and what is refused. With --full,
bits are compared on up to four ranks.
"""
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import uvfits
from e2e import (ASEC, C_M_S, FULL, Suite, fits_module, mpi_environment, mpiexec, offset_radec, read_image,
                 tessera)
from mosaic_sums import j1

N, SCALE, LIMIT, CUT = 160, 45 * ASEC, 0.05, 0.3
CENTER = (60.0, -30.0)
ROWS, CHANNELS = 700, 2
FREQ = 1.4e9 + 5e7 * np.arange(CHANNELS)
RANKS = ((1, 2, 3, 4) if FULL else (1, 2)) if mpiexec() else (1,)
DISHES = ((13.5, 2.0), (9.0, 0.0))  # diameter and what is blocked of it
ANTENNAS = 16
IMAGE = ["--mosaic", "--primary-beam", "airy:13.5,2", "--size", str(N), "--scale", "45asec",
         "--pb-limit", str(CUT), "--pointing-limit", str(LIMIT), "--threads", "1", "--accuracy", "1e-6"]
OFFSETS = np.array([(0, 16), (14, -8), (-14, -8)]) * SCALE * 1.25  # of the pointings
SOURCES = ((80, 80, 2.0), (62, 108, 1.0), (112, 60, 1.5))  # pixel and flux
NOISE = 0.1  # of a visibility
ACCURACY = 1e-3  # of images that are cleaned
ONE_POINTING = "1001500000"  # bytes: planes take 0.6e6 of one pointing, and 1.8e6 of all
TWO_DEVICES = "256000000"  # bytes: planes of all pointings take more than half of it alone
SMALL_DEVICE = "128000000"  # bytes: two batches of lines of 32 MiB, and no more than three


def relative(direction, center):
    """Direction cosines of directions from a centre (all in degrees)."""
    (ra, dec), (ra0, dec0) = np.deg2rad(direction), np.deg2rad(center)
    return (np.cos(dec) * np.sin(ra - ra0),
            np.sin(dec) * np.cos(dec0) - np.cos(dec) * np.sin(dec0) * np.cos(ra - ra0))


def pixel_direction(x, y):
    return offset_radec(*CENTER, -(x - N // 2) * SCALE, (y - N // 2) * SCALE)


POINTINGS = [offset_radec(*CENTER, *offset) for offset in OFFSETS]


def field(sine, freq_hz, kind):
    """Of a disk whose middle is blocked."""
    diameter, blocked = DISHES[kind]

    def disk(u):
        return np.where(u < 1e-6, 1.0, 2 * j1(u) / np.where(u < 1e-6, 1, u))
    u = np.pi * diameter * np.abs(sine) * freq_hz / C_M_S
    share = (blocked / diameter) ** 2
    return (disk(u) - share * disk(u * blocked / diameter)) / (1 - share)


def beam_of_pair(sine, freq_hz, pair):
    """The product of the fields: pair 0 is of two large dishes, 2 of two small ones."""
    return field(sine, freq_hz, int(pair == 2)) * field(sine, freq_hz, int(pair > 0))


class Observation:
    """One file with the pointings as its sources, of which the last has a tenth of the weight. The
    last half of the antennas is of small dishes if these are `unlike`."""

    def __init__(self, path, unlike, seed=5):
        rng = np.random.default_rng(seed)
        self.path, rows = path, 3 * ROWS
        self.uvw = uvfits.stored_uvw(uvfits.random_tracks(rows, 400.0, 0.2, seed=seed))
        self.which = np.repeat(np.arange(3), ROWS)
        first, second = np.triu_indices(ANTENNAS, 1)
        row = np.arange(rows) % len(first)
        small = (first >= ANTENNAS // 2).astype(int) + (second >= ANTENNAS // 2)
        self.pair = small[row] if unlike else np.zeros(rows, int)
        self.weight = rng.uniform(0.5, 1.5, (rows, CHANNELS)) * np.where(self.which == 2, 0.1, 1)[:, None]
        self.weight = self.weight.astype("f4").astype("f8")
        vis = NOISE / np.sqrt(self.weight) * (rng.normal(size=self.weight.shape) +
                                              1j * rng.normal(size=self.weight.shape))
        for p, t in self.groups():
            for x, y, flux in SOURCES:
                l, m = relative(pixel_direction(x, y), POINTINGS[p])
                vis[self.rows(p, t)] += (flux * beam_of_pair(np.hypot(l, m), FREQ, t) *
                                         np.conj(self.turns(p, t, l, m)))
        self.vis = vis.astype("c8")
        uvfits.write(path, self.uvw, FREQ, np.repeat(self.vis[..., None], 2, -1),
                     np.repeat(self.weight[..., None], 2, -1).astype("f4"),
                     sources=[(f"p{p}", *at) for p, at in enumerate(POINTINGS)], source_of_row=self.which)

    def groups(self):
        return [(p, t) for p in range(3) for t in sorted(set(self.pair))]

    def rows(self, p, t):
        return (self.which == p) & (self.pair == t)

    def turns(self, p, t, l, m):
        path_m = self.uvw[self.rows(p, t)] @ [l, m, uvfits.n_minus_1(l, m)]
        return np.exp(-2j * np.pi * path_m[:, None] * FREQ / C_M_S)

    def beams(self):
        """Sums of weights, and the mean beam by weight in all pixels, cut, of each group."""
        sums, beams = [], []
        directions = pixel_direction(np.arange(N)[None, :], np.arange(N)[:, None])
        for p, t in self.groups():
            sine = np.hypot(*relative(directions, POINTINGS[p]))
            share = self.weight[self.rows(p, t)].sum(0)
            power = sum(w * beam_of_pair(sine.ravel(), f, t).reshape(N, N) for w, f in zip(share, FREQ)) / share.sum()
            sums.append(share.sum())
            beams.append(np.where(np.abs(power) >= LIMIT, power, 0))
        return np.array(sums), np.array(beams)

    def sums_at(self, pixels, beams):
        """Σ W B D in some pixels, by direct sums."""
        out = np.zeros(len(pixels))
        for (p, t), beam in zip(self.groups(), beams):
            seen = self.rows(p, t)
            values = self.weight[seen] * self.vis[seen]
            for k, (x, y) in enumerate(pixels):
                if beam[y, x] != 0:
                    l, m = relative(pixel_direction(x, y), POINTINGS[p])
                    out[k] += beam[y, x] * (values * self.turns(p, t, l, m)).real.sum()
        return out


def check_dirty(suite, obs, more, ranks):
    """Images of a mosaic with natural weights against direct sums."""
    weights, beam = obs.beams()
    total = np.einsum("p,pyx->yx", weights, beam ** 2)
    pb = np.sqrt(total / total.max())
    inside = pb >= CUT
    border = np.abs(pb - CUT) < 1e-4
    pixels = [(x, y) for y, x in np.argwhere(inside)[::23]] + [s[:2] for s in SOURCES]
    at = tuple(np.array(pixels).T[::-1])
    even = obs.sums_at(pixels, beam) / np.sqrt(total[at] * total.max())
    label = f"{obs.path.split('/')[-1]}, {ranks} ranks"
    prefix = suite.path(f"all{ranks}")
    result = tessera("image", obs.path, *IMAGE, *more, "--weight", "natural", "--center",
                     f"{CENTER[0]}deg,{CENTER[1]}deg", "--no-psf", "--overwrite", "-o", prefix, ranks=ranks)
    if not suite.ran(label, result):
        return
    got = {kind: read_image(f"{prefix}-{kind}.fits")[0] for kind in ("dirty", "dirty-pb", "pb", "weight", "noise")}
    suite.true(f"{label}: pixels below the limit are NaN",
               ((np.isfinite(got["dirty"]) == inside) | border).all() and 0 < inside.sum() < inside.size)
    suite.below(f"{label}: beam", np.nanmax(np.abs(got["pb"] - pb)), 1e-5)
    suite.below(f"{label}: even noise", np.nanmax(np.abs(got["dirty"][at] - even)) / even.max(), 3e-6)
    suite.below(f"{label}: true flux", np.nanmax(np.abs(got["dirty-pb"] * got["pb"] - got["dirty"])), 1e-6)
    suite.below(f"{label}: weight", np.abs(got["weight"] - total / weights.sum())[~border].max(), 2e-5)
    values = got["dirty"][np.isfinite(got["dirty"])]
    mad = 1.4826 * np.median(np.abs(values - np.median(values)))
    suite.below(f"{label}: noise", np.nanmax(np.abs(got["noise"] * got["pb"] / mad - 1)), 1e-5)


def check_once(suite, obs):
    """Samples of all pointings go to their owners once: as many bytes as of an image that knows no pointings."""
    if len(RANKS) == 1:
        return
    sent, common = {}, [obs.path, "--size", N, "--scale", "45asec", "--weight", "natural", "--no-psf", "--threads", "1",
                        "--center", f"{CENTER[0]}deg,{CENTER[1]}deg"]
    for name, args in (("mosaic", IMAGE[:3]), ("image", [])):
        profile = suite.path(f"{name}.json")
        if suite.ran(f"profile of a {name}", tessera("image", *common, *args, "--profile", profile, "-o",
                                                     suite.path(f"sent-{name}"), ranks=2)):
            with open(profile, encoding="utf-8") as file:
                sent[name] = json.load(file)["totals"]["stages"]["exchange"]["bytes"]
    suite.true(f"bytes that are sent: {sent}", 0 < sent["mosaic"] < 1.1 * sent["image"])


def check_fluxes(suite, prefix):
    image, _ = read_image(f"{prefix}-image-pb.fits")
    noise, _ = read_image(f"{prefix}-noise.fits")
    for x, y, flux in SOURCES:
        suite.below(f"{prefix.split('/')[-1]}: flux at ({x}, {y}) is {flux}",
                    abs(image[y, x] - flux), 4 * noise[y, x] + 0.005 * flux)


CLEAN = ["--weight", "briggs:0", "--niter", "3000", "--mgain", "0.7", "--auto-threshold", "4",
         "--accuracy", str(ACCURACY)]


def check_cleaned(suite, obs):
    """CLEAN finds the true fluxes, also of a source that one pointing sees at its border."""
    for ranks in RANKS:
        result = tessera("image", obs.path, *IMAGE, *CLEAN, "--reproducible", "-o",
                         suite.path(f"clean{ranks}"), ranks=ranks)
        if not suite.ran(f"cleaned, {ranks} ranks", result):
            return
    _, header = read_image(suite.path("clean1-image-pb.fits"))
    suite.below("the centre is the mean of the pointings",
                max(abs(header["CRVAL1"] - CENTER[0]), abs(header["CRVAL2"] - CENTER[1])), 1e-4)
    check_fluxes(suite, suite.path("clean1"))
    model, _ = read_image(suite.path("clean1-model-pb.fits"))
    suite.below("model's flux", abs(np.nansum(model) / sum(s[2] for s in SOURCES) - 1), 0.03)
    for ranks in RANKS[1:]:
        check_bits(suite, suite.path("clean1"), suite.path(f"clean{ranks}"), f"{ranks} ranks")


def check_bits(suite, first, second, where):
    for kind in ("image", "image-pb", "model", "residual", "pb", "weight", "psf"):
        suite.true(f"{kind}: the same bits on {where}",
                   np.array_equal(read_image(f"{first}-{kind}.fits")[0], read_image(f"{second}-{kind}.fits")[0],
                                  equal_nan=True))


def check_device(suite, obs):
    """An emulated device has kernels of its own for the same accuracy, to which images agree. On ranks that share it,
    bits are the same."""
    env = {**mpi_environment(), "TESS_EMULATED": "1000000000000"}
    used = RANKS if FULL else RANKS[-1:]
    for ranks in used:
        result = tessera("image", obs.path, *IMAGE, *CLEAN, "--reproducible", "--backend", "cuda", "-o",
                         suite.path(f"device{ranks}"), ranks=ranks, env=env)
        if result.status == 4:
            suite.skipped("a mosaic on a device: built without one")
            return
        if not suite.ran(f"cleaned on a device, {ranks} ranks", result):
            return
    peak = np.nanmax(read_image(suite.path("clean1-image.fits"))[0])
    for kind, scale in (("image", peak), ("residual", peak), ("pb", 1), ("weight", 1), ("psf", 1)):
        wanted, got = (read_image(suite.path(f"{name}-{kind}.fits"))[0] for name in ("clean1", f"device{used[0]}"))
        suite.below(f"{kind}: a device beside processors, of the peak", np.nanmax(np.abs(got - wanted)) / scale,
                    ACCURACY)
    for ranks in used[1:]:
        check_bits(suite, suite.path(f"device{used[0]}"), suite.path(f"device{ranks}"), f"{ranks} ranks of a device")
    check_small_device(suite, obs, suite.path(f"device{used[-1]}"))


def check_small_device(suite, obs, large):
    """A device without room for the planes of all pointings holds those of one at a time, and makes the same bits."""
    words = (obs.path, *IMAGE, *CLEAN, "--reproducible", "--backend", "cuda")
    env = {**mpi_environment(), "TESS_EMULATED": SMALL_DEVICE}
    result = tessera("image", *words, "-o", suite.path("small"), env=env)
    if suite.ran("cleaned on a small device", result):
        suite.true("planes one after the other", "one after the other" in result.err)
        check_bits(suite, large, suite.path("small"), "a small device")
    plan = tessera("plan", *words, env=env)
    suite.ran("plan of a small device", plan)
    suite.true("the plan tells so", "3 facets or pointings, one after the other" in plan.out)
    if len(RANKS) == 1:
        return
    plan = tessera("plan", *words, ranks=2, env={**env, "TESS_EMULATED": TWO_DEVICES})
    suite.ran("plan of two small devices", plan)
    suite.true("which share w-planes, and so hold the planes of all",
               "share w-planes" in plan.out and "3 facets or pointings, held together" in plan.out)


def check_alone(suite, obs):
    """Devices with room for one pointing, and not for all beside 1e9 bytes, need not share w-planes."""
    if len(RANKS) == 1:
        return
    words, env = (obs.path, *IMAGE, "--backend", "cuda"), {**mpi_environment(), "TESS_EMULATED": ONE_POINTING}
    result = tessera("image", *words, "--verbose", "-o", suite.path("alone"), ranks=2, env=env)
    if result.status == 4:
        suite.skipped("a mosaic on two devices: built without one")
    elif suite.ran("two devices with room for one pointing", result):
        suite.true("no shared w-planes", "devices share w-planes" not in result.err)
        plan = tessera("plan", *words, ranks=2, env=env)
        suite.true("nor in the plan", plan.status == 0 and "share w-planes" not in plan.out)


def check_psf(suite, obs):
    """The PSF is that of all samples times the autocorrelation of the beam: how much of the sky pointings see
    together. So sidelobes end where beams do, and cleaning goes on into the noise."""
    result = tessera("image", obs.path, *IMAGE, "--weight", "natural", "--niter", "30000", "--mgain", "0.7",
                     "--auto-threshold", "1", "-o", suite.path("deep"))
    if not suite.ran("cleaned to 1 sigma", result):
        return
    suite.true("no divergence", "diverged" not in result.err)
    got, _ = read_image(suite.path("deep-psf.fits"))
    away = (np.arange(2 * N) - N) * SCALE
    power = np.mean([field(np.hypot(away[:, None], away[None, :]).ravel(), f, 0) ** 2 for f in FREQ], axis=0)
    power = np.where(power >= LIMIT, power, 0).reshape(2 * N, 2 * N)
    overlap = np.fft.fftshift(np.fft.ifft2(np.abs(np.fft.fft2(power)) ** 2).real)
    overlap /= overlap[N, N]
    worst = 0
    for dx, dy in ((0, 0), (2, 1), (15, 0), (0, -31), (24, 24), (-40, 9), (3, 48)):
        turns = obs.uvw @ [-dx * SCALE, dy * SCALE, 0]
        plain = (obs.weight * np.cos(2 * np.pi * turns[:, None] * FREQ / C_M_S)).sum() / obs.weight.sum()
        worst = max(worst, abs(got[N // 2 + dy, N // 2 + dx] - plain * overlap[N + dy, N + dx]))
    suite.below("PSF times what pointings see together", worst, 2e-3)


def check_auto_mask(suite, obs):
    """The automatic mask of a mosaic grows with the residuals of several major iterations, 10 at most, since the noise
    of the first one is that of sidelobes. --force-mask-rounds says of how many."""
    masked = {}
    for more in ((), ("--force-mask-rounds", "1")):
        result = tessera("image", obs.path, *IMAGE, "--weight", "natural", "--niter", "3000", "--mgain", "1",
                         "--auto-threshold", "3", "--auto-mask", "6", *more, "--overwrite", "-o", suite.path("masked"))
        if suite.ran(f"automatic mask {' '.join(more)}", result):
            masked[more[-1:]] = ["automatic mask" in line for line in result.err.splitlines() if "] major" in line]
    suite.true(f"the mask of a mosaic grows for longer: {masked}",
               masked["1",].index(True) == 1 < masked[()].index(True) <= 10)


def check_unlike(suite):
    """Arrays of two kinds of dishes, and two output channels of multiscale CLEAN."""
    obs = Observation(suite.path("unlike.uvfits"), True)
    path = suite.path("dishes.txt")
    with open(path, "w") as file:
        file.write("A0[0-7] airy:13.5,2\n* airy:9\n")
    kinds = ["--primary-beam", f"antennas:{path}"]
    check_dirty(suite, obs, kinds, RANKS[-1])
    result = tessera("image", obs.path, *IMAGE, *kinds, *CLEAN, "--channels-out", "2", "--join-channels",
                     "--multiscale", "-o", suite.path("unlike"))
    if suite.ran("unlike dishes, cleaned", result):
        for part in ("-0000", "-0001", "-MFS"):
            check_fluxes(suite, suite.path("unlike" + part))


def check_cube(suite, obs):
    """Channels that are regular in LSRK, each cleaned within masks that are found in it, or within regions that the
    second channel has none of."""
    regions = suite.path("sources.crtf")
    with open(regions, "w", encoding="utf-8") as file:
        file.write("#CRTFv0\n" + "".join(f"circle[[{x}pix, {y}pix], 4pix], range=[0chan, 0chan]\n"
                                         for x, y, _ in SOURCES))
    axis = ["--cube", "--frame", "lsrk", "--nchan", "2", "--interpolation", "nearest", "--niter", "3000", "--mgain", "0.7",
            "--auto-threshold", "4", "--accuracy", str(ACCURACY)]
    for name, cleaned, mask in (("found", (0, 1), ["--auto-multithresh"]), ("regions", (0,), ["--mask", regions])):
        prefix = suite.path(name)
        result = tessera("image", obs.path, *IMAGE, *axis, *mask, "-o", prefix)
        if not suite.ran(f"a cube in LSRK, masks {name}", result):
            continue
        (image, header), (noise, _), (model, _) = (
            read_planes(f"{prefix}-cube-{kind}.fits") for kind in ("image-pb", "noise", "model"))
        suite.equal(f"masks {name}: the axis", (header["CTYPE3"], header["SPECSYS"], len(image)), ("FREQ", "LSRK", 2))
        suite.equal(f"masks {name}: channels with components", tuple(np.nonzero(model.any((1, 2)))[0]), cleaned)
        for c in cleaned:
            for x, y, flux in SOURCES:
                suite.below(f"masks {name}: flux at ({x}, {y}) of channel {c} is {flux}", abs(image[c, y, x] - flux),
                            4 * noise[c, y, x] + 0.005 * flux)


def read_planes(path):
    with fits_module().open(path) as hdus:
        return np.array(hdus[0].data)[0], hdus[0].header


def check_single(suite, obs):
    """A mosaic of one pointing is the image of its field, with that field's beam, and its PSF: what the pointing sees
    at all, it sees together."""
    made = {}
    for name, args in (("one", ["--mosaic"]), ("plain", [])):
        image = [word for word in IMAGE if word not in ("--mosaic", "--pointing-limit", str(LIMIT))]
        result = tessera("image", obs.path, *image, *args, "--field", "p1", "-o", suite.path(name))
        suite.ran(f"a pointing alone: {name}", result)
        made[name] = [read_image(suite.path(f"{name}-{kind}.fits"))[0] for kind in ("dirty", "pb", "psf")]
    for kind, one, plain in zip(("dirty", "pb", "psf"), *made.values()):
        seen = one >= 0 if kind == "pb" else np.isfinite(one)
        suite.below(f"a mosaic of one pointing, {kind}",
                    np.abs(one - plain)[seen].max() / np.abs(plain[seen]).max(), 1e-5)


def check_checkpoints(suite, obs):
    """Cleaning that stops again and again, and goes on on another number of ranks, is that of a run that never
    stopped, bit by bit."""
    options = [obs.path, *IMAGE, "--reproducible", "--niter", "60", "--nmiter", "2", "--auto-mask", "5",
               "--auto-threshold", "3", "--save-first-residual"]
    lines = check_stopped(suite, "cleaning", options, ("image", "image-pb", "residual", "model", "model-pb",
                                                       "first-residual", "psf", "pb", "weight", "noise"))
    stops = sum("cleaning goes on after" in line for line in lines)
    suite.true(f"{stops} runs went on cleaning", stops > 1)
    # means over channels, of which a run that goes on makes some anew
    check_stopped(suite, "channels", [obs.path, *IMAGE, "--reproducible", "--no-psf", "--channels-out", "2"],
                  [f"{part}-{kind}" for part in ("0001", "MFS") for kind in ("dirty", "dirty-pb", "pb", "weight")])


def check_stopped(suite, name, options, kinds):
    """What runs say that stop again and again. The images are compared with those of a run that does not."""
    whole, prefix, said = suite.path(f"{name}-never"), suite.path(f"{name}-stopped"), []
    if not suite.ran(f"{name}: a run that never stops", tessera("image", *options, "-o", whole)):
        return said
    for k in range(60):
        result = tessera("image", *options, "--checkpoint", f"{prefix}-folder", "--resume", "--max-time", "0.001",
                         "-o", prefix, ranks=RANKS[k % len(RANKS)])
        said.append(result.err)
        if result.status != 75:
            break
    suite.ran(f"{name}: the last of {k + 1} runs", result)
    suite.true(f"{name}: runs were stopped", k > 0)
    for kind in kinds:
        suite.true(f"-{kind} of a run that was stopped", np.array_equal(
            *(read_image(f"{of}-{kind}.fits")[0] for of in (whole, prefix)), equal_nan=True))
    return said


def check_errors(suite, obs):
    for what, status, text, args in (
            ("no beam", 3, "no primary beam of telescope", ["--primary-beam", "auto"]),
            ("another sky", 3, "no pointing sees the image", ["--center", "60deg,-10deg"]),
            ("facets", 2, "--mosaic cannot be combined with --facets", ["--facets", "x.reg"])):
        result = tessera("image", obs.path, *IMAGE, *args, "-o", suite.path("bad"), ranks=RANKS[-1])
        suite.ran(what, result, status)
        suite.true(f"{what}: one line with '{text}'",
                   len(result.errors()) == 1 and text in result.errors()[0])

    result = tessera("image", obs.path, "--size", "64", "--scale", "45asec", "-o", suite.path("bad"))
    suite.ran("several fields", result, 2)
    suite.true(f"--mosaic is offered: {result.errors()}", len(result.errors()) == 1
               and "one with --field, or all with --mosaic" in result.errors()[0])


def main():
    suite = Suite("joint_mosaics")
    obs = Observation(suite.path("pointings.uvfits"), False)
    check_dirty(suite, obs, [], 1)
    check_once(suite, obs)
    check_cleaned(suite, obs)
    check_device(suite, obs)
    check_alone(suite, obs)
    check_psf(suite, obs)
    check_auto_mask(suite, obs)
    check_unlike(suite)
    check_cube(suite, obs)
    check_single(suite, obs)
    check_checkpoints(suite, obs)
    check_errors(suite, obs)
    suite.finish()


if __name__ == "__main__":
    main()
