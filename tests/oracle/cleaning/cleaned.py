#!/usr/bin/env python3
"""Cleaned images: residuals are those of the whole model, restored images are the model at the
beam's resolution on the residual, fluxes are those of the sky, and nothing depends on ranks or
threads. What masks, earlier models, beams and mistakes lead to."""
import os
import pty
import re
import shutil
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (ASEC, BACKEND, BIN, C_M_S, FULL, Suite, casacore_python, fits_module,
                 forced, have_ms, mpi_environment, mpiexec, offset_radec, read_image, run,
                 simulate, tessera, write_sky)
import multithresh_numpy
import uvfits

KINDS = ("dirty", "psf", "model", "residual", "image")
N, SCALE = 256, 4 * ASEC
GRID = ["--size", str(N), "--scale", "4asec"]
# Points far from one another and from the edges: of 1 Jy to .09 Jy in noise of about .24 mJy.
POINTS = [(-70, 40, 1.0), (55, -62, 0.6), (20, 80, 0.3), (-30, -75, 0.8), (95, 10, 0.09)]
LEAST_SNR = 300
GAUSSIAN = (0, 0, 2.0, 60.0)  # pixels from the centre, flux [Jy], FWHM [arcsec]: 7.5 beams
LARGE = (5, -8, 20.0, 160.0)  # 20 beams, 50 mJy/beam
FAR = [(-95, 85, 0.8), (100, -90, 0.1)]  # points beside it
RA, DEC = 60.0, -30.0


def place(x, y):
    """Position of a pixel counted from the image's centre."""
    ra, dec = offset_radec(RA, DEC, -x * SCALE, y * SCALE)
    return {"ra": f"{ra:.9f}deg", "dec": f"{dec:.9f}deg"}


def make_sky(path, points=POINTS, gaussian=GAUSSIAN, q=0.0):
    sources = [dict(flux_jy=flux, q=q * flux, **place(x, y)) for x, y, flux in points]
    if gaussian:
        x, y, flux, fwhm = gaussian
        sources.append(dict(flux_jy=flux, major=f"{fwhm}asec", minor=f"{fwhm}asec",
                            **place(x, y)))
    return write_sky(path, sources)


def observe(suite, name, sky, channels=4, extra=("--noise", "0.05"), **more):
    return simulate(suite.path(name), sky, layout="meerkat", duration="2h", integration="300s",
                    freq="1.28GHz", width="10MHz", channels=channels,
                    extra=("--antennas", "32", *extra), **more)


def images(prefix, kinds=KINDS, middle=""):
    return {kind: read_image(f"{prefix}{middle}-{kind}.fits") for kind in kinds}


def beam_kernel(header, shape):
    """The header's beam, of height 1, its centre at the first pixel."""
    ny, nx = shape
    y = np.fft.fftfreq(ny, 1 / ny)[:, None]
    x = np.fft.fftfreq(nx, 1 / nx)[None, :]
    major, minor = header["BMAJ"] / header["CDELT2"], header["BMIN"] / header["CDELT2"]
    pa = np.deg2rad(header["BPA"])
    along = y * np.cos(pa) - x * np.sin(pa)  # x grows to the West
    across = y * np.sin(pa) + x * np.cos(pa)
    return np.exp(-4 * np.log(2) * ((along / major) ** 2 + (across / minor) ** 2))


def restored(model, residual, header):
    """model ∗ beam + residual, without wrapping."""
    ny, nx = model.shape
    shape = (2 * ny, 2 * nx)
    spectrum = np.fft.rfft2(np.nan_to_num(model), shape) * np.fft.rfft2(beam_kernel(header, shape))
    return np.fft.irfft2(spectrum, shape)[:ny, :nx] + residual


def same_files(suite, what, prefixes, middles=("",), kinds=KINDS):
    """Pixels of several runs agree bit by bit."""
    for middle in middles:
        for kind in kinds:
            first = read_image(f"{prefixes[0]}{middle}-{kind}.fits")[0]
            for other in prefixes[1:]:
                image = read_image(f"{other}{middle}-{kind}.fits")[0]
                suite.true(f"{what}: {os.path.basename(other)}{middle}-{kind} has the same bits",
                           np.array_equal(first, image, equal_nan=True))


def lines(result, pattern):
    return [m for m in (re.search(pattern, line) for line in result.err.splitlines()) if m]


def check_residual(suite, what, obs, prefix, image, *args):
    """The residual is the image of the data less the whole model, made by another way: the
    model is subtracted where samples are read."""
    _, other = suite.image("subtracted", obs, *GRID, *args, "--subtract", prefix + "-model.fits")
    expected = read_image(other + "-dirty.fits")[0]
    scale = np.nanmax(np.abs(image["dirty"][0]))
    suite.below(f"{what}: residual against --subtract, of the peak",
                np.nanmax(np.abs(image["residual"][0] - expected)) / scale, 1e-6)


def check_restored(suite, what, image):
    again = restored(image["model"][0], image["residual"][0], image["image"][1])
    scale = np.nanmax(np.abs(image["image"][0]))
    suite.below(f"{what}: restored image against numpy, of the peak",
                np.nanmax(np.abs(again - image["image"][0])) / scale, 2e-6)


def check_fluxes(suite, what, image, points=POINTS, gaussian=None):
    """Points by the peaks of the restored image, within 1 %; the Gaussian by the model around it,
    within 3 %."""
    left = image["residual"][0]
    sigma = 1.4826 * np.median(np.abs(left - np.median(left)))
    suite.true(f"{what}: points are of S/N {min(p[2] for p in points) / sigma:.0f} or more",
               min(p[2] for p in points) > LEAST_SNR * sigma)
    for x, y, flux in points:
        found = image["image"][0][N // 2 + y - 2:N // 2 + y + 3, N // 2 + x - 2:N // 2 + x + 3].max()
        suite.below(f"{what}: point of {flux} Jy", abs(found / flux - 1), .01)
    if not gaussian:
        return
    x, y, flux, fwhm = gaussian
    half = int(1.5 * fwhm / 4)
    part = image["model"][0][N // 2 + y - half:N // 2 + y + half + 1,
                             N // 2 + x - half:N // 2 + x + half + 1]
    suite.below(f"{what}: Gaussian of {flux} Jy", abs(part.sum() / flux - 1), .03)


def check_header(suite, what, header, log):
    """Keywords of how an image was cleaned agree with the log."""
    majors = lines(log, r"major \d+: (\d+) iteration")
    suite.equal(f"{what}: NMAJOR", header.get("NMAJOR"), len(majors))
    suite.equal(f"{what}: NITER", header.get("NITER"), sum(int(m.group(1)) for m in majors))
    suite.equal(f"{what}: unit", header["BUNIT"], "Jy/beam")


def single_scale(suite, obs):
    args = ["--niter", "20000", "--auto-threshold", "5"]
    prefix = suite.path("points")
    log = tessera("image", obs, *GRID, *args, "--preview", "-o", prefix)
    if not suite.ran("single scale", log):
        return
    image = images(prefix)
    check_residual(suite, "single scale", obs, prefix, image)
    check_restored(suite, "single scale", image)
    check_fluxes(suite, "single scale", image)
    check_header(suite, "single scale", image["image"][1], log)
    suite.equal("the model's unit", image["model"][1]["BUNIT"], "Jy/pixel")
    suite.true("no keyword of cleaning in the dirty image", "NITER" not in image["dirty"][1])
    model = image["model"][0]
    suite.below("CLFLUX is the model's sum", abs(image["model"][1]["CLFLUX"] / model.sum() - 1), 1e-5)
    for kind in ("image", "residual", "dirty", "psf"):
        suite.true(f"preview of {kind}", os.path.exists(f"{prefix}-{kind}.png"))
    suite.true("no preview of the model", not os.path.exists(prefix + "-model.png"))
    sigma = 1.4826 * np.median(np.abs(image["residual"][0] - np.median(image["residual"][0])))
    suite.below("the residual's peak, in noise", np.abs(image["residual"][0]).max() / sigma, 5.5)
    # σ of the residual with which the last major iteration began
    suite.below("CLTHRESH against 5 σ", abs(image["image"][1]["CLTHRESH"] / (5 * sigma) - 1), .1)
    suite.true("the log says why it ended", lines(log, r"cleaned: .* until the final threshold of"))
    return prefix


def multiscale(suite, obs):
    args = ["--niter", "20000", "--auto-threshold", "3", "--auto-mask", "5", "--multiscale"]
    prefix = suite.path("scales")
    log = tessera("image", obs, *GRID, *args, "-o", prefix)
    if not suite.ran("multiscale", log):
        return
    image = images(prefix)
    check_residual(suite, "multiscale", obs, prefix, image)
    check_restored(suite, "multiscale", image)
    check_fluxes(suite, "multiscale", image, gaussian=GAUSSIAN)
    check_scales(suite, obs, log)
    suite.true("phase 2 is told", lines(log, r"automatic mask"))
    suite.equal("CLSCALES > 1", image["image"][1]["CLSCALES"] > 1, True)


def check_scales(suite, obs, log):
    """Scales are 4, 8, ... of the beams that the longest baseline lets expect, in pixels."""
    uvw, freq, _, _, _ = uvfits.read(obs)
    beam = C_M_S / freq.max() / np.linalg.norm(uvw, axis=1).max() / SCALE
    used = {float(s) for line in lines(log, r"major \d+: .*scales (.*), peak")
            for s in re.findall(r"([\d.]+) \(", line.group(1))} - {0}
    suite.true(f"large scales were used: {sorted(used)}", len(used) > 1)
    for scale in used:
        doublings = np.log2(scale / (4 * beam))  # of four digits
        suite.below(f"scale of {scale} pixels", abs(doublings - np.rint(doublings)), 1e-3)


def large_source(suite):
    """A source of 20 beams."""
    obs = observe(suite, "large.uvfits", make_sky(suite.path("large.csv"), FAR, LARGE))
    good, prefix = suite.image("large", obs, *GRID, "--niter", "20000", "--auto-threshold", "3",
                               "--auto-mask", "5", "--multiscale")
    if not good:
        return
    image = images(prefix)
    beam = image["image"][1]["BMAJ"] * 3600
    suite.below("large source: 20 beams", abs(LARGE[3] / beam - 20), .5)
    check_fluxes(suite, "large source", image, FAR, LARGE)


def ranks_and_threads(suite, obs):
    """All images have the same bits on any number of ranks and threads."""
    args = ["--niter", "2000", "--auto-threshold", "4", "--multiscale", "--reproducible",
            "--channels-out", "2", "--stokes", "IQ", "--nmiter", "4", "--size", "150,123",
            "--scale", "6asec"]
    middles = [f"-{c}-{s}" for c in ("0000", "0001", "MFS") for s in "IQ"]
    kinds = ("dirty", "model", "residual", "image")
    layouts = [(1, []), (1, ["--threads", "3"]), (1, forced(passes=2))]
    if mpiexec():
        layouts += [(2, ["--threads", "2"]), (3, []), (4, forced(teams=2))]
        layouts += [(7, [])] if FULL else []
    if BACKEND != "cpu":
        layouts = layouts[:1] + layouts[2:4]
    prefixes = []
    for ranks, more in layouts:
        name = f"r{ranks}" + "".join(more).replace("--", "-")
        good, prefix = suite.image(name, obs, *args, *more, ranks=ranks, timeout=300)
        if good:
            prefixes.append(prefix)
    same_files(suite, "any ranks", prefixes, middles, kinds)
    check_means(suite, prefixes[0])
    if mpiexec() and BACKEND == "cpu":
        groups_of_ranks(suite, obs)


def groups_of_ranks(suite, obs):
    """Ranks that share planes in groups of two: their rows are not in the order of ranks."""
    args = [*GRID, "--niter", "500", "--auto-threshold", "5", "--nmiter", "2"]
    good, alone = suite.image("alone", obs, *args)
    for ranks, more in ((4, forced(fft_ranks=2)), (4, forced(pw=2))):
        done, out = suite.image("groups" + more[0], obs, *args, *more, ranks=ranks)
        if not (good and done):
            continue
        a, b = images(alone), images(out)
        suite.below(f"{more}: restored image, of the peak",
                    np.abs(a["image"][0] - b["image"][0]).max() / a["image"][0].max(), 1e-4)
        suite.equal(f"{more}: iterations", b["image"][1]["NITER"], a["image"][1]["NITER"])


def check_means(suite, prefix):
    """MFS images are means by weight."""
    for kind in ("model", "residual", "image"):
        parts = [read_image(f"{prefix}-000{c}-I-{kind}.fits") for c in range(2)]
        weight = [header["SUMWT"] for _, header in parts]
        mean = sum(w * p[0] for w, p in zip(weight, parts)) / sum(weight)
        mfs = read_image(f"{prefix}-MFS-I-{kind}.fits")[0]
        suite.below(f"MFS {kind}", np.abs(mfs - mean).max() / np.abs(mean).max(), 1e-6)


def write_mask(path, like, pixels, shift=0.0, planes=1):
    fits = fits_module()
    with fits.open(like) as hdus:
        header = hdus[0].header.copy()
    header["CRPIX1"] += shift
    for key in ("CHECKSUM", "DATASUM"):
        header.remove(key, ignore_missing=True)
    data = np.zeros((1, planes) + pixels.shape, "f4")
    data[:] = pixels
    fits.PrimaryHDU(data, header).writeto(path, overwrite=True)
    return path


def masks(suite, obs, prefix):
    args = [*GRID, "--niter", "500", "--nmiter", "2"]
    pixels = np.zeros((N, N))
    x, y, _ = POINTS[1]
    pixels[N // 2 + y - 5:N // 2 + y + 6, N // 2 + x - 5:N // 2 + x + 6] = 1
    pixels[:20] = np.nan
    like = prefix + "-dirty.fits"
    mask = write_mask(suite.path("mask.fits"), like, pixels)
    good, out = suite.image("masked", obs, *args, "--fits-mask", mask)
    if good:
        model = read_image(out + "-model.fits")[0]
        inside = np.nan_to_num(pixels) > 0
        suite.true("components where the mask is set", np.any(model[inside] != 0))
        suite.true("none where it is not", not np.any(model[~inside] != 0))
    mistakes = {"of another size": write_mask(suite.path("small.fits"), like, pixels[:-2, :-2]),
                "off by .2 pixel": write_mask(suite.path("shifted.fits"), like, pixels, shift=.2),
                "with nothing set": write_mask(suite.path("empty.fits"), like, 0 * pixels),
                "with 3 planes": write_mask(suite.path("planes.fits"), like, pixels, planes=3),
                "that is not there": suite.path("nowhere.fits")}
    for what, path in mistakes.items():
        refused(suite, f"a mask {what}", [obs, *args, "--fits-mask", path], 3)
    regions(suite, obs, args, out, (N // 2 + x, N // 2 + y))
    casa_mask(suite, obs, args, mask, out)
    unplaced_masks(suite, obs, args, mask, out)
    near = write_mask(suite.path("near.fits"), like, pixels, shift=.05)
    suite.image("near", obs, *args, "--fits-mask", near)
    by_channel = np.stack([pixels, np.roll(pixels, 9, 1)])[None]
    fits = fits_module()
    header = fits.getheader(mask)
    fits.PrimaryHDU(by_channel.astype("f4"), header).writeto(suite.path("channels.fits"))
    good, out = suite.image("channels", obs, *args, "--channels-out", "2", "--fits-mask",
                            suite.path("channels.fits"))
    for c in range(2 if good else 0):
        model = read_image(f"{out}-000{c}-model.fits")[0]
        suite.true(f"channel {c} has a mask of its own",
                   not np.any(model[~(np.nan_to_num(by_channel[0, c]) > 0)] != 0))


def regions(suite, obs, args, same_as, middle):
    """A box in a file of CASA or of ds9 is as good a mask as an image."""
    x, y = middle
    texts = {"crtf": f"#CRTFv0\nbox[[{x - 5}pix, {y - 5}pix], [{x + 5}pix, {y + 5}pix]]\n"
                     "circle[[240deg, 30deg], 1deg]\n",
             "ds9": f"# DS9\nimage\ncircle({x + 1},{y + 1},30)\nbox({x + 1},{y + 1},61,61,0)\n"
                    f"-box({x + 1},{y + 1},61,61,90)\nbox({x + 1},{y + 1},10.5,10.5,0)\n"}
    for name, text in texts.items():
        with open(suite.path(name), "w") as file:
            file.write(text)
        beyond = ["1 of 2 regions", "beyond the horizon"] if name == "crtf" else []
        log, out = told(suite, f"regions of {name}", obs, *args, "--mask", suite.path(name),
                        words=beyond, count=len(beyond) // 2)
        if log.status == 0:
            same_files(suite, f"--mask {name}", [same_as, out], kinds=("model",))


def unplaced_masks(suite, obs, args, mask, same_as):
    """A mask with East to the right, or without positions, counts pixel by pixel, which is said."""
    fits = fits_module()
    east, bare = suite.path("east-right.fits"), suite.path("bare.fits")
    data, header = fits.getdata(mask), fits.getheader(mask)
    header["CDELT1"] *= -1
    fits.PrimaryHDU(data, header).writeto(east)
    fits.PrimaryHDU(data.squeeze()).writeto(bare)
    for path, words in ((east, "CDELT1 > 0"), (bare, "no RA and DEC")):
        log, out = told(suite, words, obs, *args, "--fits-mask", path,
                        words=[words, "taken for those of the image"])
        if log.status == 0:
            same_files(suite, words, [same_as, out], kinds=("model",))
    fits.PrimaryHDU(data.squeeze()[:-2]).writeto(suite.path("bare-small.fits"))
    refused(suite, "a mask of another size, without positions",
            [obs, *args, "--fits-mask", suite.path("bare-small.fits")], 3)
    fits.PrimaryHDU(data, header).writeto(suite.path("bare.fits.gz"))
    refused(suite, "a compressed mask", [obs, *args, "--fits-mask", suite.path("bare.fits.gz")], 3)


def casa_mask(suite, obs, args, mask, same_as):
    """An image of CASA is as good a mask as FITS."""
    python = casacore_python()
    if not python or not have_ms():
        return
    casa = suite.path("mask.casa")
    made = run([python, "-c", "import casacore.images as c, sys; "
                "c.image(sys.argv[1]).saveas(sys.argv[2])", mask, casa], 60)
    if not suite.ran("casacore writes a mask", made):
        return
    good, out = suite.image("casa", obs, *args, "--casa-mask", casa)
    if good:
        same_files(suite, "--casa-mask", [same_as, out], kinds=("model", "image"))
    refused(suite, "a mask that is no image of CASA", [obs, *args, "--casa-mask", obs], 3)
    refused(suite, "two masks", [obs, *args, "--casa-mask", casa, "--mask", mask], 2)


def automatic_masks(suite, obs):
    """Masks of --auto-multithresh are those of numpy in the dirty image and the residual after one
    major iteration, and no component lies outside."""
    kinds = ("dirty", "psf", "first-residual", "model", "mask")
    args = [*GRID, "--niter", "3000", "--nmiter", "2", "--save-first-residual", "--cyclefactor", "1.5",
            "--auto-multithresh", "--sidelobe-threshold", "0.4", "--negative-threshold", "7",
            "--reproducible"]
    good, out = suite.image("automatic", obs, *args)
    if not good:
        return
    image = images(out, kinds)
    psf = image["psf"][0]
    beam = multithresh_numpy.main_lobe(psf)
    level = multithresh_numpy.sidelobe_level(psf, beam)
    mask = None
    for kind in ("dirty", "first-residual"):
        mask = multithresh_numpy.next_mask(mask, image[kind][0], level, beam, sidelobe=0.4,
                                           negative=7)
    suite.below("automatic masks: pixels that are not as numpy's",
                np.count_nonzero(mask != (image["mask"][0] > 0)), 0)
    suite.true(f"automatic masks: of {mask.sum()} pixels", 100 < mask.sum() < mask.size / 2)
    suite.true("automatic masks: components inside", np.any(image["model"][0][mask]))
    suite.true("automatic masks: and none outside", not np.any(image["model"][0][~mask]))
    if mpiexec():
        good, other = suite.image("automatic3", obs, *args, ranks=3)
        if good:
            same_files(suite, "automatic masks: any ranks", [out, other], kinds=("mask", "model"))
    result = tessera("image", obs, *GRID, "--niter", "9", "--auto-multithresh", "--sidelobe-threshold", "50",
                     "--no-sync", "-o", suite.path("unmasked"))
    suite.ran("an automatic mask without a pixel", result)
    suite.true("one warning tells that nothing was cleaned", result.err.count("try a --sidelobe-threshold below 50") == 1)
    suite.true("and the summary", "until an automatic mask without a pixel" in result.err)
    refused(suite, "two automatic masks",
            [obs, *GRID, "--niter", "9", "--auto-multithresh", "--auto-mask", "5"], 2, ranks=(1,))


def refused(suite, what, args, status, ranks=(1, 3)):
    """One line, the right status, and no file."""
    for n in ranks if mpiexec() else (1,):
        out = suite.path("refused")
        result = tessera("image", *args, "-o", out, ranks=n)
        suite.ran(f"{what}, {n} ranks", result, status)
        suite.equal(f"{what}, {n} ranks: error lines", len(result.errors()), 1)
        suite.equal(f"{what}, {n} ranks: images",
                    [k for k in KINDS if os.path.exists(f"{out}-{k}.fits")], [])


def continued(suite, obs):
    """A run that goes on from an earlier one's model ends where one run would."""
    args = [*GRID, "--niter", "20000", "--auto-threshold", "5", "--reproducible"]
    good, whole = suite.image("whole", obs, *args)
    good = good and suite.image("parts", obs, *args, "--nmiter", "1", "--save-first-residual")[0]
    if not good:
        return
    parts = suite.path("parts")
    first = read_image(parts + "-residual.fits")[0]
    suite.true("the first residual is the one after the first major",
               np.array_equal(read_image(parts + "-first-residual.fits")[0], first))
    shutil.copy(parts + "-model.fits", suite.path("first-model.fits"))
    good, _ = suite.image("parts", obs, *args, "--continue")
    if good:
        a, b = images(whole), images(parts)
        suite.true("the dirty image is of the data", np.array_equal(a["dirty"][0], b["dirty"][0]))
        scale = np.abs(a["image"][0]).max()
        suite.below("restored images", np.abs(a["image"][0] - b["image"][0]).max() / scale, 1e-3)
        rms = [np.sqrt(np.mean(i["residual"][0] ** 2)) for i in (a, b)]
        suite.below("residual rms", abs(rms[1] / rms[0] - 1), .01)
        check_restored(suite, "continued", b)
    args = [obs, "--niter", "100", "--continue"]
    refused(suite, "--continue without a model", [*args, *GRID], 3)
    result = tessera("image", *args, "--size", "200", "--scale", "4asec", "--overwrite", "-o",
                     parts)
    suite.ran("--continue on another grid", result, 3)
    suite.true("the model is still there", os.path.exists(parts + "-model.fits"))


def beams(suite, obs):
    args = [*GRID, "--niter", "50", "--no-dirty"]
    good, out = suite.image("size", obs, *args, "--beam-size", "30asec")
    if good:
        image = images(out, ("psf", "model", "residual", "image"))
        suite.below("--beam-size", abs(image["image"][1]["BMAJ"] * 3600 - 30), 1e-9)
        check_restored(suite, "--beam-size", image)
        suite.true("--no-dirty", not os.path.exists(out + "-dirty.fits"))
    good, out = suite.image("shape", obs, *args, "--beam-shape", "40asec,20asec,30deg")
    if good:
        image = images(out, ("psf", "model", "residual", "image"))
        suite.below("--beam-shape", abs(image["image"][1]["BPA"] - 30), 1e-9)
        check_restored(suite, "--beam-shape", image)
    good, out = suite.image("circular", obs, *args, "--circular-beam")
    if good:
        header = read_image(out + "-image.fits")[1]
        suite.equal("--circular-beam", header["BMIN"], header["BMAJ"])
    # one pixel a beam: no fit
    result = tessera("image", obs, "--size", "64", "--scale", "60asec", "--niter", "10",
                     "--overwrite", "-o", suite.path("coarse"))
    if suite.ran("a PSF without a beam", result):
        suite.equal("one warning, which asks for --beam-size",
                    len(lines(result, r"no beam could be fitted.*--beam-size")), 1)
        suite.true("a beam in the restored image's header",
                   read_image(suite.path("coarse-image.fits"))[1].get("BMAJ", 0) > 0)


READ_COLUMNS = """
import sys, numpy as np, casacore.tables as t
table = t.table(sys.argv[1], ack=False)
np.savez(sys.argv[2], uvw=table.getcol("UVW"), time=table.getcol("TIME"),
         model=table.getcol("MODEL_DATA"), flag=table.getcol("FLAG"),
         freq=t.table(sys.argv[1] + "/SPECTRAL_WINDOW", ack=False).getcol("CHAN_FREQ")[0])
"""


def predicted(model, uvw, freq):
    """Direct sum of a model's pixels at one row and channel."""
    y, x = np.nonzero(model)
    l, m = -(x - N // 2) * SCALE, (y - N // 2) * SCALE
    u, v, w = uvw * freq / 299792458.0
    phase = 2 * np.pi * (u * l + v * m + w * (np.sqrt(1 - l * l - m * m) - 1))
    return np.sum(model[y, x] * np.exp(1j * phase))


def model_column(suite):
    """MODEL_DATA is the direct sum of each output's own model, in flagged rows, too."""
    python = casacore_python()
    if not python or not have_ms():
        return
    sky = make_sky(suite.path("column.csv"), q=.2)
    obs = simulate(suite.path("column.ms"), sky, layout="meerkat", duration="30min",
                   integration="300s", freq="1.28GHz", width="10MHz", channels=4,
                   extra=("--antennas", "16", "--noise", "0.02", "--min-elevation", "60deg"))
    args = [*GRID, "--niter", "300", "--stokes", "IQ", "--channels-out", "2", "--intervals-out",
            "2", "--accuracy", "1e-5", "--update-model"]
    for ranks, more in ((1, []), (3, forced(passes=2)), (2, forced(teams=2)),
                        (2, [*forced(teams=2), "--reproducible"])):
        if ranks > 1 and not mpiexec():
            continue
        good, out = suite.image("column", obs, *args, *more, ranks=ranks)
        columns = suite.path("columns.npz")
        if not (good and suite.ran("MODEL_DATA can be read",
                                   run([python, "-c", READ_COLUMNS, obs, columns], 60))):
            return
        suite.below(f"--update-model, {ranks} ranks: against direct sums",
                    column_error(out, np.load(columns)), 1e-4)
    result = tessera("image", suite.path("both.uvfits"), *args, "-o", suite.path("refused"))
    suite.ran("--update-model of UVFITS", result, 2)
    refused(suite, "imaging what is to be replaced", [obs, *args, "--datacolumn", "MODEL_DATA"], 2)


def column_error(prefix, columns):
    """Largest difference at some rows, of the largest visibility."""
    times = np.unique(columns["time"])
    rows = np.random.default_rng(1).choice(len(columns["time"]), 40, replace=False)
    worst = largest = 0.0
    for row in rows:
        t = int(np.searchsorted(times, columns["time"][row]) >= len(times) // 2)
        for c, freq in enumerate(columns["freq"]):
            i, q = (read_image(f"{prefix}-t000{t}-000{c // 2}-{s}-model.fits")[0] for s in "IQ")
            vis = [predicted(image, columns["uvw"][row], freq) for image in (i, q)]
            expected = np.array([vis[0] + vis[1], vis[0] - vis[1]])
            worst = max(worst, np.abs(expected - columns["model"][row, c]).max())
            largest = max(largest, np.abs(expected).max())
    return worst / largest


def limits(suite, obs):
    """What ends cleaning, and is said."""
    prefix = suite.path("limits")
    cases = {"--nmiter": (["--nmiter", "2"], r"number of major iterations"),
             "--auto-mask-nmiter": (["--niter", "9000", "--auto-mask", "9", "--auto-threshold", "1",
                                     "--auto-mask-nmiter", "1"], r"in the mask \(--auto-mask-nmiter\)"),
             "--force-mask-rounds": (["--niter", "9000", "--auto-mask", "30", "--auto-threshold", "20", "--mgain", "1",
                                      "--force-mask-rounds", "3"], r"final threshold"),
             "--niter": (["--niter", "37", "--mgain", "1"], r"number of iterations"),
             "--threshold": (["--threshold", "200mJy"], r"threshold of 200 mJy"),
             "--stop-negative": (["--stop-negative", "--niter", "100000"], r"a negative component")}
    for what, (more, words) in cases.items():
        log = tessera("image", obs, *GRID, "--niter", "500", *more, "--overwrite", "-o", prefix)
        if suite.ran(what, log):
            suite.true(f"{what} is said to have ended it", lines(log, r"cleaned: .*" + words))
        if what == "--auto-mask-nmiter":
            suite.equal("major iterations in the mask", len(lines(log, r"major \d.*automatic mask")), 1)
        if what == "--force-mask-rounds":
            masked = ["automatic mask" in line for line in log.err.splitlines() if "] major" in line]
            suite.true(f"the mask grows in three major iterations: {masked}", len(masked) > 3 and masked.index(True) == 3)
        if what == "--niter":
            suite.equal("as many iterations", read_image(prefix + "-image.fits")[1]["NITER"], 37)
            check_residual(suite, "mgain 1", obs, prefix, images(prefix))
    good, out = suite.image("positive", obs, *GRID, "--niter", "3000", "--no-negative")
    if good:
        suite.true("--no-negative", read_image(out + "-model.fits")[0].min() >= 0)
    good, out = suite.image("border", obs, *GRID, "--niter", "300", "--clean-border", "30")
    if good:
        model, edge = read_image(out + "-model.fits")[0], int(np.ceil(.3 * N))
        inside = model[edge:N - edge, edge:N - edge]
        suite.true("--clean-border", np.count_nonzero(model) == np.count_nonzero(inside) > 0)
    suite.image("local", obs, *GRID, "--niter", "1000", "--auto-threshold", "4", "--local-rms",
                "--local-rms-window", "20")


def warnings(log):
    return [line for line in log.err.splitlines() if "warning: " in line]


def told(suite, what, obs, *args, words=(), count=1):
    """So many warnings, the first with these words; returns the log and the files' prefix."""
    prefix = suite.path("told-" + re.sub(r"\W+", "-", what))
    log = tessera("image", obs, *args, "--overwrite", "-o", prefix)
    suite.ran(what, log)
    found = warnings(log)
    suite.equal(f"{what}: warnings {found}", len(found), count)
    for word in words:
        suite.true(f"{what}: {word!r}", found and word in found[0])
    return log, prefix


def honest_endings(suite, points):
    """What cleaning leaves is compared with the noise that weights let expect; no run of sources
    that are all in the image is warned of."""
    clean = ["--size", "256", "--scale", "3.4asec", "--niter", "20000", "--auto-threshold", "5"]
    log, prefix = told(suite, "all inside", points, *clean, count=0)
    sigmas = lines(log, r"until the final threshold of .*, ([\d.]+) sigma of the residual")
    left, header = read_image(prefix + "-residual.fits")
    sigma = 1.4826 * np.median(np.abs(left - np.median(left)))
    suite.true("the threshold in sigma of the last residual", len(sigmas) == 1 and
               abs(float(sigmas[0].group(1)) * sigma / header["CLTHRESH"] - 1) < .02)
    suite.true("which is near the noise", not lines(log, "times the expected noise"))
    sky = make_sky(suite.path("outside.csv"), [*POINTS, (400, 150, 50.0)], None)
    obs = observe(suite, "outside.uvfits", sky)
    log, _ = told(suite, "a bright source outside", obs, *clean, words=[
        "not at the noise", "times the noise that the weights let expect", "larger --size",
        "--subtract", "self-calibrate", "--accuracy"])
    suite.true("the residual line says how far above the noise", lines(
        log, r"residual: .*, ([\d.]+) times the expected noise"))
    told(suite, "which was to be shallow", obs, *clean, "--threshold", "20Jy", count=0)
    negative = make_sky(suite.path("negative.csv"), [(10, 20, -1.0)], None)
    log, _ = told(suite, "a negative peak", observe(suite, "negative.uvfits", negative), *clean,
                  count=0)
    suite.true("a negative peak: dynamic range", lines(log, r"dynamic range \d"))


def limited_accuracy(suite):
    """100 Jy at an accuracy of 1e-3: told before the first major iteration, with one that does."""
    sky = make_sky(suite.path("bright.csv"), [(-21.25, 34, 100.0)], None)
    obs = observe(suite, "bright.uvfits", sky)
    clean = ["--size", "128", "--scale", "3.4asec", "--niter", "20000", "--auto-threshold", "5"]
    log, prefix = told(suite, "100 Jy at 1e-3", obs, *clean, "--accuracy", "1e-3", words=[
        "--accuracy 0.001 limits the dynamic range", "peak of ", "would do"])
    suite.true("told before the first major iteration",
               log.err.index("limits the dynamic range") < log.err.index("major 1: "))
    found = re.search(r"--accuracy (\S+) would do", log.err)
    if not found:
        return
    _, enough = told(suite, "that accuracy", obs, *clean, "--accuracy", found.group(1), count=0)
    args = [*clean[:4], "--accuracy", "1e-10"]
    for name, limit in ((prefix, np.inf), (enough, 1)):
        _, exact = suite.image("exact", obs, *args, "--subtract", name + "-model.fits")
        truth, left = (read_image(f)[0] for f in (exact + "-dirty.fits", name + "-residual.fits"))
        noise = 1.4826 * np.median(np.abs(truth - np.median(truth)))
        error = np.abs(left - truth).max() / noise
        suite.below("residual's error in sigma", error, limit)
        suite.true("which is large at 1e-3", limit == 1 or error > 3)


def cleaned_noise(suite):
    """Thresholds and masks that let noise be cleaned; scales that cannot be used."""
    sky = make_sky(suite.path("noise.csv"), [(0, 0, 1e-6)], None)
    obs = observe(suite, "noise.uvfits", sky, channels=1)
    clean = ["--size", "96", "--scale", "3.4asec", "--niter", "200", "--nmiter", "2"]
    told(suite, "noise to 1 sigma", obs, *clean, "--auto-threshold", "1", words=[
        "--auto-threshold 1 lets noise be cleaned", "32 %", "--auto-mask"])
    told(suite, "a mask from 2 sigma", obs, *clean, "--auto-threshold", "1", "--auto-mask", "2",
         words=["--auto-mask 2 lets noise be cleaned"])
    told(suite, "a mask from 5 sigma", obs, *clean, "--auto-threshold", "1", "--auto-mask", "5",
         count=0)
    log, prefix = told(suite, "a mask below the threshold", obs, *clean[:4], "--niter", "9999",
                       "--auto-threshold", "5", "--auto-mask", "3",
                       words=["--auto-mask 3 is below --auto-threshold 5"])
    left, header = read_image(prefix + "-residual.fits")
    sigma = 1.4826 * np.median(np.abs(left - np.median(left)))
    suite.below("the threshold told is the mask's: 3 sigma",
                abs(header["CLTHRESH"] / sigma - 3), .5)
    told(suite, "scales as wide as the image", obs, *clean, "--auto-threshold", "4",
         "--multiscale", "--multiscale-scales", "0,20,95,200",
         words=["2 of 4 scales, from 95 pixels on", "are ignored", "larger --size"])
    y, x = np.mgrid[:96, :96]
    for what, pixels, count in (("wide", x < 60, 1), ("small", np.hypot(x, y) < 20, 0)):
        mask = write_mask(suite.path(what + "-mask.fits"), prefix + "-residual.fits", pixels)
        told(suite, f"a {what} mask", obs, *clean, "--auto-threshold", "1", "--fits-mask", mask,
             words=["the mask lets noise be cleaned: it has 6", "32 %"][:2 * count], count=count)


def silences(command):
    """Runs a command with a terminal for its stderr; its status, the longest time in which it showed
    nothing, and the time that it took."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen([str(word) for word in command], stderr=theirs,
                             stdout=subprocess.DEVNULL, env=mpi_environment())
    os.close(theirs)
    begin = last = time.monotonic()
    longest = 0.0
    while True:
        try:
            text = os.read(ours, 1 << 16)
        except OSError:  # nobody writes any more
            text = b""
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
        if not text:
            os.close(ours)
            return child.wait(), longest, last - begin


def never_silent(suite, size, *args):
    """A run under a terminal shows its progress all the time: each second, and on a slow or busy machine at least
    twenty times."""
    obs = observe(suite, f"long{size}.uvfits", make_sky(suite.path("long.csv")), channels=8,
                  pol="XX,XY,YX,YY")
    status, longest, took = silences([
        BIN, "image", obs, "--size", size, "--scale", "1asec", "--niter", "20000",
        "--auto-threshold", "3", "--auto-mask", "5", "--multiscale", "-o",
        suite.path(f"long{size}"), *args])
    suite.equal(f"{size} pixels under a terminal: status", status, 0)
    suite.below(f"{size} pixels under a terminal: longest silence of {took:.0f} s", longest, max(5, took / 20))


def what_is_told(suite, obs):
    """Lines of major iterations name the images that are cleaned by themselves, as their files
    are named. That memory limits the number of planes is said once, not for each image."""
    apart = ["--niter", "50", "--nmiter", "1", "--channels-out", "2", "--stokes", "I,XX"]
    cases = {"each image": ([*apart, "--intervals-out", "2"],
                            [f"t{t}-{c}-{s}" for t in ("0000", "0001") for c in ("0000", "0001")
                             for s in ("I", "XX")]),
             "joined channels": ([*apart, "--join-channels"], ["I", "XX"]),
             "joined polarisations": ([*apart, "--join-polarizations"], ["0000", "0001"])}
    for what, (args, names) in cases.items():
        log = tessera("image", obs, *GRID, *args, "-o", suite.path("told-" + what.split()[1]))
        if suite.ran(what, log):  # threads may clean several images at a time
            suite.equal(f"{what}: names of what is cleaned",
                        sorted(m.group(1) for m in lines(log, r"major 1 of (\S+): ")), sorted(names))
    log = tessera("image", obs, *GRID, "--niter", "2000", "--nmiter", "3", "--memory", "45MiB",
                  "-o", suite.path("told-memory"))
    if suite.ran("little memory", log):
        suite.equal("little memory: lines of planes", len(lines(log, "gridded at a time, as")), 1)


def mistakes(suite, obs):
    clean = [obs, *GRID, "--niter", "100"]
    for more in (["--gain", "0"], ["--gain", "1.5"], ["--mgain", "0"], ["--mgain", "1.01"],
                 ["--threshold", "-1"], ["--auto-threshold", "-1"], ["--auto-mask", "x"],
                 ["--multiscale", "--multiscale-scales", "0,8,4"],
                 ["--multiscale-scales", "0,8"], ["--beam-shape", "1asec"], ["--no-psf"],
                 ["--local-rms-method", "median"], ["--beam-shape", "1asec,2asec,0deg"]):
        refused(suite, " ".join(more), clean + more, 2, ranks=(1,))
    refused(suite, "cleaning options without --niter", [obs, *GRID, "--mgain", ".5"], 2)


def all_sky(suite):
    """Pixels beyond the horizon stay NaN, and are never components; a flat array has w near 0."""
    sky = write_sky(suite.path("wide.csv"), [dict(flux_jy=5, ra="60deg", dec="-30deg"),
                                             dict(flux_jy=3, ra="100deg", dec="-10deg")])
    obs = simulate(suite.path("wide.uvfits"), sky, layout="mwa", duration="4min",
                   integration="120s", freq="60MHz", channels=1,
                   extra=("--max-radius", "100m", "--noise", "0.5"))
    for size in (160, 298):
        good, out = suite.image(f"sky{size}", obs, "--size", size, "--scale", "0.7deg", "--weight", "natural", "--niter", "200",
                                "--auto-threshold", "5")
        if good:
            check_sky(suite, images(out), size)
    whole, more = (read_image(suite.path(f"sky{size}-dirty.fits"))[0] for size in (160, 298))
    suite.below("all sky: a larger image / peak", np.nanmax(np.abs(more[69:-69, 69:-69] - whole)) / np.nanmax(whole),
                1e-3)
    check_horizon(suite, obs)
    predicted = tessera("predict", obs, "--model", suite.path("sky298-model.fits"), "-o", suite.path("sky.uvfits"))
    suite.ran("prediction of the larger model", predicted)


def check_horizon(suite, obs):
    """Components as far from the horizon as is asked for, and where a mask is set."""
    y, x = np.mgrid[:160, :160] - 80
    radius = np.hypot(x, y) * np.deg2rad(.7)
    model = read_image(suite.path("sky160-model.fits"))[0]
    suite.true("horizon mask: there are components on both sides of it",
               np.any(model[radius >= np.cos(np.deg2rad(50))]) and np.any(model[radius < .1]))
    mask = write_mask(suite.path("east.fits"), suite.path("sky160-dirty.fits"), x < 0)
    for name, more, allowed in (("alone", [], True), ("and a mask", ["--fits-mask", mask], x < 0)):
        for ranks in (1, 3) if mpiexec() else (1,):
            ran, out = suite.image("horizon", obs, "--size", 160, "--scale", "0.7deg", "--weight", "natural", "--niter",
                                   "200", "--auto-threshold", "5", "--horizon-mask", "50deg", *more,
                                   ranks=ranks)
            if ran:
                found = read_image(out + "-model.fits")[0] != 0
                suite.true(f"horizon mask {name}, {ranks} ranks: components", np.any(found))
                suite.true(f"horizon mask {name}, {ranks} ranks: no others",
                           not np.any(found & ~(allowed & (radius < np.cos(np.deg2rad(50))))))


def check_sky(suite, image, size):
    y, x = np.mgrid[:size, :size] - size // 2
    beyond = np.hypot(x, y) * np.deg2rad(.7) >= 1
    for kind in ("dirty", "residual", "image"):
        suite.true(f"all sky: {kind} is NaN beyond the horizon only",
                   np.array_equal(np.isnan(image[kind][0]), beyond))
    suite.true("all sky: the model is 0 there", not np.any(image["model"][0][beyond]))
    suite.true("all sky: and has components", np.any(image["model"][0]))


def main():
    suite = Suite("cleaned")
    points = observe(suite, "points.uvfits", make_sky(suite.path("points.csv"), gaussian=None))
    both = observe(suite, "both.uvfits", make_sky(suite.path("both.csv"), q=.1))
    prefix = single_scale(suite, points)
    multiscale(suite, both)
    large_source(suite)
    ranks_and_threads(suite, both)
    if BACKEND == "cpu" and prefix:
        masks(suite, points, prefix)
        automatic_masks(suite, both)
        continued(suite, points)
        beams(suite, points)
        limits(suite, points)
        honest_endings(suite, points)
        limited_accuracy(suite)
        cleaned_noise(suite)
        if FULL:
            never_silent(suite, 4096, "--nmiter", "4", "--stokes", "IQUV")
        what_is_told(suite, points)
        mistakes(suite, points)
        all_sky(suite)
        model_column(suite)
    suite.finish()


if __name__ == "__main__":
    main()
