#!/usr/bin/env python3
"""Channels that are cleaned together, whose images teams of ranks make side by side.

All files are those of one rank: bit for bit with --reproducible, and otherwise to rounding; with channels
that are as many as teams, more or fewer, of different lengths or empty, with Stokes parameters joined,
spectra fitted, and weights of one density or of each channel's own.
"""
import json
import os
import re
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from cleaned import lines, refused, same_files
from e2e import (FULL, Suite, fits_module, forced, mpiexec, offset_radec, read_image, simulate, skip,
                 tessera, write_sky)
from e2e import ASEC

RA, DEC, SCALE = 60.0, -30.0, 8.0
GRID = ["--size", "120,90", "--scale", f"{SCALE}asec", "--threads", "1"]
CLEAN = ["--niter", "300", "--nmiter", "3", "--auto-threshold", "4", "--join-channels"]
# Ranks, teams: of one rank and of two, as many as channels with data and more.
LAYOUTS = [(2, 2), (3, 3), (4, 2), (4, 4)]
KINDS = ("dirty", "psf", "model", "residual", "image")
# Relative to the peak: cleaning multiplies what gridding in double precision leaves.
ROUNDING = 1e-11


def observe(suite):
    """Six channels of 60 MHz: the second is empty, the fifth has a third of its visibilities."""
    points = [(-30, 10, .8, -1.2), (12, -20, .5, .4), (40, 25, .3, -.7)]
    sources = [dict(ra=f"{ra:.9f}deg", dec=f"{dec:.9f}deg", flux_jy=flux, spectral_index=index,
                    ref_freq="1.2GHz", q=.2 * flux)
               for x, y, flux, index in points
               for ra, dec in [offset_radec(RA, DEC, -x * SCALE * ASEC, y * SCALE * ASEC)]]
    obs = simulate(suite.path("six.uvfits"), write_sky(suite.path("sky.csv"), sources), layout="meerkat",
                   ra=f"{RA}deg", dec=f"{DEC}deg", duration="2h", integration="300s", freq="1.1GHz",
                   width="60MHz", channels=6, extra=("--antennas", 16, "--noise", ".05", "--seed", 4))
    flagged = suite.path("flagged.uvfits")
    shutil.copy(obs, flagged)
    with fits_module().open(flagged, mode="update") as hdus:
        hdus[0].data["DATA"][..., 1, :, 2] = -1
        weight = hdus[0].data["DATA"][..., 4, :, 2]
        weight[np.arange(len(weight)) % 3 > 0] = -1
    return flagged


# With the layouts that the fast tier takes of them.
CASES = {
    # one density of all channels, six channels of which one is empty
    "spectra": (["--channels-out", "6", "--fit-spectral-pol", "2", "--stokes", "IQ", "--join-polarizations",
                 "--weight", "briggs:0", "--save-source-list"],
                [f"-{c}-{s}" for c in ("0000", "0001", "0004", "MFS") for s in "IQ"], [(2, 2), (4, 2)]),
    # densities of their own, three channels of two intervals, which the run cleans one after the other
    "own weights": (["--channels-out", "3", "--no-mf-weighting", "--weight", "uniform", "--multiscale",
                     "--intervals-out", "2", "--save-first-residual", "--auto-mask", "6"],
                    [f"-t000{t}-{c}" for t in (0, 1) for c in ("0000", "0001", "0002", "MFS")],
                    [(3, 3), (4, 4)])}


def check_reproducible(suite, obs):
    for what, (more, middles, layouts) in CASES.items():
        options = [obs, *GRID, *CLEAN, *more, "--reproducible"]
        name = what.replace(" ", "-")
        good, one = suite.image(f"{name}-1", *options)
        prefixes = [one]
        for ranks, teams in LAYOUTS if FULL else layouts:
            good, prefix = suite.image(f"{name}-{ranks}-{teams}", *options, *forced(teams=teams), ranks=ranks)
            if good:
                prefixes.append(prefix)
        kinds = (*KINDS, "first-residual") if "--save-first-residual" in more else KINDS
        for middle in middles:
            same_files(suite, what, prefixes, [middle],
                       [k for k in kinds if k != "psf" or not middle.endswith("Q")])
        for prefix in prefixes[1:]:
            suite.true(f"{what}: a model that is not empty",
                       np.any(read_image(f"{prefix}{middles[0]}-model.fits")[0]))
        if "--fit-spectral-pol" in more:
            same_files(suite, what, prefixes, ["-MFS-I"], ("terms-0", "terms-1"))
            texts = [open(prefix + "-sources.txt").read() for prefix in prefixes]
            suite.true(f"{what}: a list of sources", texts[0].count("POINT") > 2)
            suite.true(f"{what}: the same on all layouts", all(text == texts[0] for text in texts))


def check_continued(suite, obs):
    """Teams begin with residuals of models that one rank has made, and that a mask has bounded."""
    options = [obs, *GRID, *CLEAN, "--channels-out", "3", "--nmiter", "1", "--reproducible"]
    good, first = suite.image("first", *options)
    mask = first + "-MFS-model.fits"
    prefixes = []
    layouts = [(1, 1), *(LAYOUTS[1:3] if FULL else [(4, 2)])]
    for ranks, teams in layouts:
        prefix = suite.path(f"more-{ranks}-{teams}")
        for c in ("0000", "0001", "0002"):
            shutil.copy(f"{first}-{c}-model.fits", f"{prefix}-{c}-model.fits")
        result = tessera("image", *options, "--continue", "--fits-mask", mask, "--overwrite", *forced(teams=teams),
                         "-o", prefix, ranks=ranks)
        if suite.ran(f"continued by {teams} teams of {ranks} ranks", result):
            prefixes.append(prefix)
    if good and len(prefixes) == len(layouts):
        same_files(suite, "continued", prefixes, ["-0000", "-0002", "-MFS"], KINDS)
        before, after = (read_image(f"{p}-0000-model.fits")[0] for p in (first, prefixes[0]))
        suite.true("continued: other fluxes in the same pixels",
                   not np.array_equal(before, after) and not np.any(after[before == 0]))


def numbers(header):
    return [header.get(k) for k in ("SUMWT", "BMAJ", "BMIN", "NITER", "NMAJOR", "CRVAL3")]


def check_rounding(suite, obs):
    """Two ranks of a team share its planes, or have some each: rows lie in another order then."""
    options = [obs, *GRID, *CLEAN, "--accuracy", "1e-9", "--channels-out", "3", "--fit-spectral-pol", "2",
               "--stokes", "IQ", "--join-polarizations"]
    good, one = suite.image("all", *options, *forced(teams=1), ranks=2)
    if not good:
        return
    large = [(4, 4, ["--threads", "2"])] if FULL else []  # eight threads wait long for one another
    for ranks, teams, more in [(2, 2, []), (3, 3, forced(passes=2)), (4, 2, forced(fft_ranks=1)),
                               (4, 2, forced(fft_ranks=2)), *large]:
        label = f"{teams} teams of {ranks} ranks {' '.join(more)}".strip()
        prefix = suite.path("teams")
        log = tessera("image", *options, *more, *forced(teams=teams), "--overwrite", "--verbose", "-o", prefix,
                      ranks=ranks)
        if not suite.ran(label, log):
            continue
        suite.true(f"{label}: said so", f"each of {teams} teams" in log.err)
        suite.equal(f"{label}: lines of major iterations", len(lines(log, r"major \d+: .* 3 channels")), 3)
        for middle in ("-0000-I", "-0002-Q", "-MFS-I"):
            for kind in KINDS if middle.endswith("I") else KINDS[2:]:
                image, header = read_image(f"{prefix}{middle}-{kind}.fits")
                expected, wanted = read_image(f"{one}{middle}-{kind}.fits")
                suite.below(f"{label}{middle}-{kind}, of the peak",
                            np.abs(image - expected).max() / np.abs(expected).max(), ROUNDING)
                suite.true(f"{label}{middle}-{kind}: its numbers", np.allclose(
                    np.array(numbers(header), float), np.array(numbers(wanted), float), rtol=1e-9,
                    equal_nan=True))


def check_choice(suite, obs):
    """What is planned is done, and told in the profile; with a checkpoint, one team."""
    options = [obs, *GRID, *CLEAN, "--channels-out", "6"]
    planned = tessera("plan", *options, ranks=3)
    suite.ran("plan", planned)
    suite.true("small channels: a team each",
               re.search(r"outputs +6 sets of images by 3 teams of 1 rank\n", planned.out))
    profile = suite.path("profile.json")
    for more, teams in (([], 3), (["--checkpoint", suite.path("kept")], 1)):
        good, _ = suite.image("chosen", *options, *more, "--profile", profile, ranks=3)
        if good:
            with open(profile) as f:
                suite.true(f"{teams} teams in the profile", f"; {teams} teams," in json.load(f)["plan"])
    refused(suite, "teams and a checkpoint", [*options, *forced(teams=3), "--checkpoint",
                                              suite.path("other")], 2, ranks=(3,))
    # Images that fit when all ranks share them, and not when each has its own.
    for memory, by in (("250MB", "1 team of 2 ranks"), ("4GB", "2 teams of 1 rank")):
        large = tessera("plan", *options, "--size", "300", "--memory", memory, ranks=2)
        suite.ran(f"plan of large images, {memory}", large)
        suite.true(f"large images, {memory}: by {by}", f"by {by}\n" in large.out)


def main():
    if not mpiexec():
        skip("no MPI launcher")
    suite = Suite("joined_teams")
    obs = observe(suite)
    check_reproducible(suite, obs)
    check_continued(suite, obs)
    check_rounding(suite, obs)
    check_choice(suite, obs)
    suite.finish()


if __name__ == "__main__":
    main()
