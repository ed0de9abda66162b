#!/usr/bin/env python3
"""Channels and polarisations that are cleaned together: residuals are those of the whole models, means
and their restored images, spectra of simulated sources, and the same bits on any number of ranks and
threads, in memory or on scratch. What an empty channel and mistakes lead to."""
import os
import re
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from cleaned import images, lines, refused, restored, same_files
from e2e import (ASEC, BACKEND, C_M_S, FULL, Suite, fits_module, forced, mpiexec, offset_radec,
                 read_image, simulate, tessera, write_sky)
from restore import check_log
import uvfits

RA, DEC, N, SCALE = 60.0, -30.0, 256, 5.0
GRID = ["--size", str(N), "--scale", f"{SCALE}asec"]
CLEAN = ["--niter", "20000", "--auto-threshold", "4", "--join-channels"]
FREQ_HZ, WIDTH_HZ, CHANNELS = 1.1e9, 60e6, 8


def make_sky(suite, name, points, q=0.0):
    sources = [dict(ra=f"{ra:.9f}deg", dec=f"{dec:.9f}deg", flux_jy=flux, spectral_index=index,
                    ref_freq="1.2GHz", q=round(q * flux, 6))
               for (x, y, flux, index) in points
               for ra, dec in [offset_radec(RA, DEC, -x * SCALE * ASEC, y * SCALE * ASEC)]]
    return write_sky(suite.path(name), sources)


def observe(suite, name, sky, antennas=32, noise=.1, seed=1, pol="XX,YY", integration="300s"):
    return simulate(suite.path(name), sky, layout="meerkat", ra=f"{RA}deg", dec=f"{DEC}deg",
                    duration="2h", integration=integration, freq=f"{FREQ_HZ / 1e9}GHz",
                    width=f"{WIDTH_HZ / 1e6}MHz", channels=CHANNELS, pol=pol,
                    extra=("--antennas", antennas, "--noise", noise, "--seed", seed))


def grid_of_points(rng, step=32, flux=(.02, .5)):
    """Points in the middle of pixels, far from one another."""
    places = range(-N // 2 + step, N // 2 - step + 1, step)
    return [(x, y, round(10 ** rng.uniform(*np.log10(flux)), 5), round(rng.uniform(-1.6, .6), 3))
            for x in places for y in places]


def at(image, x, y):
    return image[N // 2 + y, N // 2 + x]


def spectra(suite):
    """Spectral indices of points: 90 % within twice their error, and not biased; with polynomials of
    logarithms, too, whose terms are those of power laws."""
    alpha, errors = {"pol": [], "log-pol": []}, {"pol": [], "log-pol": []}
    for seed in range(3 if FULL else 2):
        points = grid_of_points(np.random.default_rng(seed))
        obs = observe(suite, f"spectra{seed}.uvfits", make_sky(suite, f"spectra{seed}.csv", points),
                      antennas=48, noise=.25, seed=seed + 10)
        for fit, terms in (("pol", 4), ("log-pol", 2)):
            good, out = suite.image(f"{fit}{seed}", obs, *GRID, *CLEAN, "--channels-out", CHANNELS,
                                    f"--fit-spectral-{fit}", terms, timeout=300)
            if not good:
                return
            index, header = read_image(out + "-MFS-spectral-index.fits")
            error = read_image(out + "-MFS-spectral-index-error.fits")[0]
            first, _ = read_image(out + "-MFS-terms-0.fits")
            sigma = read_image(out + "-MFS-terms-0-error.fits")[0]
            told, off = np.isfinite(index), []
            suite.true(f"{fit}: an index where the first term is 5 σ",
                       np.array_equal(told, np.abs(first) >= 5 * sigma * (1 - 1e-6)))
            suite.true(f"{fit}: keywords of the spectrum", header.get("CLTERMS") == terms and
                       abs(header["CLNU0"] / FREQ_HZ - 1) < .05)
            for x, y, flux, true in points:
                if not at(told, x, y):
                    continue
                alpha[fit].append(at(index, x, y) - true)
                errors[fit].append(at(error, x, y))
                expected = flux * (header["CLNU0"] / 1.2e9) ** true
                off.append(at(first, x, y) / expected - 1)
            suite.below(f"{fit}: fluxes at ν0, median of deviations", np.median(np.abs(off)), .03)
    for fit in alpha:
        off, error = np.array(alpha[fit]), np.array(errors[fit])
        within = (np.abs(off) < 2 * error).mean()
        print(f"{fit}: {len(off)} points, errors {error.min():.3f} to {error.max():.3f}, "
              f"mean of deviations {off.mean():.4f}, of deviations over errors {np.std(off / error):.3f}")
        suite.true(f"{fit}: many points", len(off) > 60)
        suite.true(f"{fit}: {within:.3f} of indices within twice their error", within >= .9)
        suite.below(f"{fit}: bias of the index", abs((off / error ** 2).sum() / (1 / error ** 2).sum()), .02)


def observe_octave(suite, name, points, channels):
    """1 to 2 GHz with the VLA."""
    return simulate(suite.path(name), make_sky(suite, name.replace("uvfits", "csv"), points), layout="vla-d",
                    ra=f"{RA}deg", dec=f"{DEC}deg", duration="1h", integration="300s", freq="1.5GHz",
                    width=f"{1000 / channels}MHz", channels=channels, pol="XX,YY", extra=("--noise", .1))


def index_of(out, x, y):
    """The spectral index of a point of an octave, and its error."""
    return (read_image(f"{out}-MFS-spectral-index{kind}.fits")[0][80 + y // 2, 80 + x // 2]
            for kind in ("", "-error"))


def octave(suite):
    """Functions of many terms neither follow the noise nor blow up beyond the averaged channels. Where
    terms are too few, errors hold the misfit, and the log tells how many do."""
    alphas = np.round(np.linspace(-2, 1, 12), 3)
    points = [(x, y, .3, alpha) for alpha, (x, y) in
              zip(alphas, [(x, y) for x in (-60, -20, 20, 60) for y in (-40, 0, 40)])]
    obs = observe_octave(suite, "octave.uvfits", points, 16)
    grid = ["--size", "160", "--scale", "10asec", *CLEAN, "--auto-threshold", "3"]
    good, out = suite.image("octave-log", obs, *grid, "--channels-out", "16", "--deconvolution-channels", "4",
                            "--fit-spectral-log-pol", "4")
    for c in range(16 if good else 0):
        model, residual = (read_image(f"{out}-{c:04d}-{kind}.fits")[0] for kind in ("model", "residual"))
        sigma = 1.4826 * np.median(np.abs(residual))
        suite.true(f"octave: channel {c}", model.max() < 1 and model.min() > -sigma and
                   np.abs(residual).max() < 10 * sigma)
    good, out = suite.image("octave-2", obs, *grid, "--channels-out", "16", "--fit-spectral-pol", "2")
    if not good:
        return
    (index, error), told = index_of(out, *points[0][:2]), open(out + ".log").read()
    suite.below("octave: two terms, deviation over error", abs(index + 2) / error, 8)
    found = re.search("2 terms do not fit ([0-9]+) of [0-9]+ pixels within their noise; ([0-9]+) terms do", told)
    if suite.true("octave: two terms are too few, and three", found and found[2] == "4"):
        good, out = suite.image("octave-more", obs, *grid, "--channels-out", "16", "--fit-spectral-pol",
                                found[2])
        index, error = index_of(out, *points[0][:2])
        suite.below(f"octave: {found[2]} terms, deviation over error", abs(index + 2) / error, 3)
        suite.true("octave: they do", "do not fit" not in open(out + ".log").read())
    obs = observe_octave(suite, "noise.uvfits", [(0, 0, 1e-9, 0)], 8)
    for name, args in (("alone", []), ("averaged", ["--deconvolution-channels", "4"])):
        good, out = suite.image(f"noise-{name}", obs, *grid[:-1], "2", "--channels-out", "8",
                                "--fit-spectral-log-pol", "3", *args)
        models = [read_image(f"{out}-{c:04d}-model.fits")[0] for c in range(8)]
        dirty = read_image(out + "-MFS-dirty.fits")[0]
        suite.below(f"noise {name}: the models, of the mean's peak",
                    np.abs(models).max() / np.abs(dirty).max(), 3)


def means(suite, obs):
    """MFS images are means by weight, but for the restored one; residuals are those of the models."""
    good, out = suite.image("means", obs, *GRID, *CLEAN, "--channels-out", "4", "--fit-spectral-pol", "2",
                            "--weight", "natural")
    if not good:
        return
    channels = [images(f"{out}-{c:04d}") for c in range(4)]
    mean = images(out + "-MFS")
    weight = np.array([c["image"][1]["SUMWT"] for c in channels])
    for kind in ("dirty", "psf", "model", "residual"):
        expected = sum(w * c[kind][0] for w, c in zip(weight, channels)) / weight.sum()
        suite.below(f"MFS {kind} is the mean, of the peak",
                    np.abs(mean[kind][0] - expected).max() / np.abs(expected).max(), 1e-5)
    again = restored(mean["model"][0], mean["residual"][0], mean["image"][1])
    suite.below("MFS image against numpy, of the peak",
                np.abs(again - mean["image"][0]).max() / np.abs(again).max(), 1e-5)
    for c in (0, 3):
        _, other = suite.image(f"less{c}", obs, *GRID, "--weight", "natural", "--channels",
                               f"{2 * c}:{2 * c + 2}", "--subtract", f"{out}-{c:04d}-model.fits")
        expected = read_image(other + "-dirty.fits")[0]
        suite.below(f"residual of channel {c} against --subtract, of the peak",
                    np.abs(channels[c]["residual"][0] - expected).max() /
                    np.abs(channels[c]["dirty"][0]).max(), 1e-5)
    # a polynomial of two terms in the mean frequencies, which are those of equal weights here
    freq = np.array([FREQ_HZ + WIDTH_HZ * (2 * c - 3) for c in range(4)])
    nu0 = mean["image"][1]["CLNU0"]
    models = np.array([c["model"][0] for c in channels])
    y, x = np.nonzero(models[0])
    design = np.stack([np.ones(4), freq / nu0 - 1])
    left = models[:, y, x].T - np.linalg.lstsq(design.T, models[:, y, x], rcond=None)[0].T @ design
    suite.below("models are of two terms", np.abs(left).max() / np.abs(models).max(), 1e-4)
    suite.true("and have many components", len(y) > 10)


def same_bits(suite, obs):
    """Any number of ranks and threads, samples in memory or on scratch."""
    args = ["--niter", "1500", "--nmiter", "3", "--auto-threshold", "4", "--auto-mask", "6", "--multiscale",
            "--reproducible", "--channels-out", "4", "--join-channels", "--fit-spectral-pol", "2",
            "--size", "150,123", "--scale", "8asec", "--stokes", "IQ", "--join-polarizations"]
    layouts = [(1, []), (1, ["--threads", "3"])]
    if mpiexec():
        layouts += [(2, ["--threads", "2"]), (3, []), (4, [])]
    if BACKEND == "cpu":
        layouts += [(2 if mpiexec() else 1, forced(passes=2))]
    prefixes = []
    for ranks, more in layouts:
        name = f"r{ranks}" + "".join(more).replace("--", "-").replace("/", "")
        good, prefix = suite.image(name, obs, *args, *more, ranks=ranks, timeout=300)
        if good:
            prefixes.append(prefix)
    middles = [f"-{c}-{s}" for c in ("0000", "0003", "MFS") for s in "IQ"]
    same_files(suite, "joined", prefixes, middles, ("dirty", "model", "residual", "image"))
    same_files(suite, "joined", prefixes, ["-MFS-I"], ("terms-0", "spectral-index"))


def on_scratch(suite, obs):
    """Visibilities of all channels that are kept on scratch give the same images; without it they are
    refused."""
    args = [obs, "--size", "64", "--scale", "16asec", "--niter", "300", "--nmiter", "3", "--reproducible",
            "--channels-out", "4", "--join-channels", "--fit-spectral-pol", "2"]
    folder = suite.path("scratch")
    os.makedirs(folder, exist_ok=True)
    good, whole = suite.image("in-memory", *args)
    for ranks in (1, 2) if mpiexec() else (1,):
        less = ["--memory", f"{3 * ranks}MB"]
        log = tessera("image", *args, *less, "--scratch", folder, "--overwrite", "-o", suite.path("spooled"),
                      ranks=ranks)
        if suite.ran("on scratch", log) and good:
            suite.true("visibilities are on scratch", lines(log, "of sorted samples are kept in a scratch"))
            same_files(suite, f"{ranks} ranks", [whole, suite.path("spooled")], ["-0000", "-MFS"],
                       ("dirty", "model", "residual", "image"))
        refused(suite, "no scratch", [*args, *less], 4, ranks=(ranks,))


def continued(suite, obs):
    """A run that goes on from an earlier one's models ends where one run would; intervals, too."""
    args = [*GRID, *CLEAN, "--channels-out", "3", "--reproducible", "--intervals-out", "2", "--no-dirty"]
    good, whole = suite.image("whole", obs, *args)
    first, parts = suite.image("parts", obs, *args, "--nmiter", "1")
    if not (good and first):
        return
    more = tessera("image", obs, *args, "--continue", "--overwrite", "-o", parts)
    if not suite.ran("continued", more):
        return
    for middle in ("-t0000-0002", "-t0001-MFS"):
        one, two = images(whole, ("image",), middle), images(parts, ("image",), middle)
        suite.below(f"continued{middle}, of the peak", np.abs(one["image"][0] - two["image"][0]).max() /
                    np.abs(one["image"][0]).max(), .01)
    with fits_module().open(parts + "-t0001-0002-model.fits", mode="update") as hdus:
        hdus[0].data[..., 5, 7] = np.nan
    result = tessera("image", obs, *args, "--continue", "--overwrite", "-o", parts, ranks=2 if mpiexec() else 1)
    suite.ran("continued from a model with a blank pixel", result, 3)
    suite.true(f"it is named: {result.err[-300:]}", "0002-model.fits: pixel (8, 6) of the model is blank" in result.err)


def empty_channel(suite, obs):
    """A channel whose visibilities are flagged gets the fitted model and is blank otherwise; the others
    are cleaned as they are without it."""
    flagged = suite.path("flagged.uvfits")
    shutil.copy(obs, flagged)
    with fits_module().open(flagged, mode="update") as hdus:
        hdus[0].data["DATA"][..., 2:4, :, 2] = -1
        hdus[0].data["DATA"][::3, ..., 5, :, 2] = -1
    uvw, freq, _, weight, _ = uvfits.read(flagged)
    reach = np.abs(uvw[:, :2]).max(1)[:, None] * freq / C_M_S < .5 / (SCALE * ASEC)
    weight = (np.where(weight > 0, weight, 0).min(-1) * reach).sum(0)
    args = [*GRID, *CLEAN, "--channels-out", "4", "--fit-spectral-pol", "2", "--weight", "natural"]
    good, out = suite.image("empty", flagged, *args)
    if not good:
        return
    models = [read_image(f"{out}-{c:04d}-model.fits")[0] for c in range(4)]
    for kind in ("dirty", "psf", "residual", "image"):
        suite.true(f"the empty channel's {kind} is blank", np.isnan(read_image(
            f"{out}-0001-{kind}.fits")[0]).all())
    around = (models[0] + models[2]) / 2
    suite.below("its model is the fitted one, of the peak",
                np.abs(models[1] - around).max() / np.abs(around).max(), .02)
    suite.true("and has components", np.count_nonzero(models[1]) > 10)
    mean, header = read_image(out + "-MFS-image.fits")
    suite.true("the mean is not blank", np.isfinite(mean).all())
    suite.below("ν0 is the mean by weight", abs(header["CLNU0"] / ((weight * freq).sum() / weight.sum()) - 1),
                1e-7)


def polarisations(suite):
    """Components of all Stokes parameters lie where their roots are found, or where I is."""
    points = grid_of_points(np.random.default_rng(5), step=64, flux=(.1, .5))
    obs = observe(suite, "polarised.uvfits", make_sky(suite, "polarised.csv", points, q=.2))
    for name, more in (("roots", ["--join-polarizations"]), ("linked", ["--link-polarizations", "I"])):
        good, out = suite.image(name, obs, *GRID, "--niter", "20000", "--auto-threshold", "6",
                                "--stokes", "IQ", *more)
        if not good:
            continue
        found = [read_image(f"{out}-{s}-model.fits")[0] for s in "IQ"]
        suite.true(f"{name}: the same pixels have components",
                   np.array_equal(found[0] != 0, found[1] != 0) and np.count_nonzero(found[0]) > 5)
        for x, y, flux, index in points:
            box = np.s_[N // 2 + y - 3:N // 2 + y + 4, N // 2 + x - 3:N // 2 + x + 4]
            ratio = found[1][box].sum() / found[0][box].sum()
            suite.below(f"{name}: Q / I of a point of {flux} Jy", abs(ratio / .2 - 1), .15)


def negative(suite):
    """Roots have the sign of the sum over polarisations: for XX and YY that of Stokes I."""
    points = [(-60, -60, 1.6, .2), (60, -60, -.8, .2), (-60, 60, .5, -.8), (60, 60, .6, .1)]
    sources = []
    for x, y, flux, q in points:
        ra, dec = offset_radec(RA, DEC, -x * SCALE * ASEC, y * SCALE * ASEC)
        sources.append(dict(ra=f"{ra:.9f}deg", dec=f"{dec:.9f}deg", flux_jy=flux, q=q))
    obs = observe(suite, "negative.uvfits", write_sky(suite.path("negative.csv"), sources))
    for stokes, more, wanted in (
            ("I,Q", [], [1, 1, 1, 1]), ("I,Q", ["--no-negative"], [1, 0, 0, 1]), ("XX,YY", ["--no-negative"], [1, 0, 1, 1]),
            ("XX,YY", ["--no-negative", "--multiscale", "--multiscale-scales", "0,6"], [1, 0, 1, 1]),
            ("I,Q", ["--stop-negative"], [1, 0, 0, 0])):
        for ranks in (1, 3) if mpiexec() else (1,):
            good, out = suite.image("signs", obs, *GRID, "--niter", "20000", "--threshold", "0.1", "--stokes", stokes,
                                    "--join-polarizations", *more, ranks=ranks)
            if not good:
                continue
            model = read_image(f"{out}-{stokes.split(',')[0]}-model.fits")[0]
            # components of positive sidelobes lie beside a negative source
            found = [int(np.abs(model[N // 2 + y - 1:N // 2 + y + 2, N // 2 + x - 1:N // 2 + x + 2]).sum() > .15)
                     for x, y, _, _ in points]
            suite.equal(f"{stokes} {' '.join(more)}, {ranks} ranks: sources with components", found, wanted)


def weighting(suite, obs):
    """--join-channels weighs by the density of all channels; --no-mf-weighting by each one's own."""
    args = [*GRID, "--niter", "10", "--channels-out", "2", "--weight", "uniform"]
    psf = {}
    for name, more in (("mf", ["--join-channels"]), ("own", ["--join-channels", "--no-mf-weighting"]),
                       ("one by one", []), ("mf one by one", ["--mf-weighting"])):
        good, out = suite.image("weights" + name.replace(" ", ""), obs, *args, *more)
        if good:
            psf[name] = read_image(out + "-0000-psf.fits")[0]
    suite.true("the same weights", np.array_equal(psf["own"], psf["one by one"]) and
               np.array_equal(psf["mf"], psf["mf one by one"]))
    suite.true("other weights", np.abs(psf["mf"] - psf["own"]).max() > .01)


def told(suite, obs):
    """The log has a line for each major iteration of all channels, and measures their mean. Of few
    images each has lines of its own."""
    log = tessera("image", obs, *GRID, *CLEAN, "--channels-out", "4", "--nmiter", "2", "-o",
                  suite.path("told"))
    if suite.ran("the log", log):
        suite.equal("a line for each major iteration",
                    len(lines(log, r"major \d+: .* 4 channels joined")), 2)
        suite.true("and why cleaning ended", lines(log, r"cleaned: .* in 2 majors, .* until the number of major"))
        check_log(suite, suite.path("told") + ".log", suite.path("told-MFS"))
    log = tessera("image", obs, *GRID, *CLEAN, "--channels-out", "2", "--nmiter", "1", "-o", suite.path("few"))
    if suite.ran("two channels and their mean", log):
        found = [float(line[1]) for line in lines(log, r"residual: .*1\.4826 MAD ([-+.e0-9]+)")]
        suite.true(f"residuals of each image are told: {found}", len(found) == 3 and min(found) > 0)
    log = tessera("image", obs, *GRID, *CLEAN, "--nmiter", "1", "-o", suite.path("single"))
    if suite.ran("one channel", log):
        suite.true("a join of one channel is noted", lines(log, r"--join-channels: there is one channel"))


def mistakes(suite, obs):
    clean = [obs, *GRID, "--niter", "100", "--channels-out", "4"]
    join = [*clean, "--join-channels"]
    for what, args in {
            "more terms than channels": [*join, "--fit-spectral-pol", "5"],
            "terms than averaged channels": [*join, "--fit-spectral-pol", "3",
                                             "--deconvolution-channels", "2"],
            "two fits": [*join, "--fit-spectral-pol", "2", "--fit-spectral-log-pol", "2"],
            "a fit without a join": [*clean, "--fit-spectral-pol", "2"],
            "averages without a fit": [*join, "--deconvolution-channels", "2"],
            "more averages than channels": [*join, "--fit-spectral-pol", "2",
                                            "--deconvolution-channels", "5"],
            "a link to what is not imaged": [*join, "--stokes", "IQ", "--link-polarizations", "IV"],
            "squares of one image": [*clean, "--squared-channel-joining"],
            "negative squares": [*join, "--squared-channel-joining", "--no-negative"],
            "both weightings": [*join, "--mf-weighting", "--no-mf-weighting"],
            "more images than a checkpoint holds": [
                obs, *GRID, "--niter", "100", "--stokes", "IQ", "--channels-out", "1500", "--join-channels",
                "--checkpoint", suite.path("folder")],
            "no cleaning": [obs, *GRID, "--channels-out", "4", "--join-channels"]}.items():
        refused(suite, what, args, 2, ranks=(1,))
    if BACKEND == "cpu":
        refused(suite, "too little memory", [*join, "--memory", "60MB", "--size", "1024"], 4, ranks=(1,))


def main():
    suite = Suite("joined")
    points = grid_of_points(np.random.default_rng(3), step=64, flux=(.1, 1))
    obs = observe(suite, "points.uvfits", make_sky(suite, "points.csv", points, q=.1))
    spectra(suite)
    means(suite, obs)
    same_bits(suite, obs)
    if BACKEND == "cpu":
        octave(suite)
        on_scratch(suite, obs)
        continued(suite, obs)
        empty_channel(suite, obs)
        polarisations(suite)
        negative(suite)
        weighting(suite, obs)
        told(suite, obs)
        mistakes(suite, obs)
    suite.finish()


main()
