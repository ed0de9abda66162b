#!/usr/bin/env python3
"""tessera mosaic: pixels against the sums of numpy, with positions by spherical trigonometry and
Lanczos' kernel from its definition, and by WCSLIB (astropy); `reproject` where it is installed; true
fluxes; one beam for all; cubes, and the memory that they take; any number of ranks; what is refused."""
import hashlib
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from e2e import BIN, SLOWER, Suite, fits_module, mpiexec, run, tessera  # noqa: E402

SCALE, FWHM, PB_FWHM = 4.0, 14.0, 500.0  # arcsec
CENTERS = ((120.0, -30.0), (120.11, -29.97), (119.95, -29.9))  # degrees
SIZES = ((200, 180), (190, 201), (180, 180))
SOURCES = ((120.03, -29.98, 1.0), (119.99, -29.93, .5), (120.1, -30.02, .7))  # degrees, Jy
NOISE = (1e-4, 2e-4, 1e-4)


def project(ra, dec, ra0, dec0):
    """Direction cosines of directions, in degrees."""
    ra, dec, ra0, dec0 = map(np.deg2rad, (ra, dec, ra0, dec0))
    return (np.cos(dec) * np.sin(ra - ra0),
            np.sin(dec) * np.cos(dec0) - np.cos(dec) * np.sin(dec0) * np.cos(ra - ra0))


def directions(l, m, ra0, dec0):
    """The reverse, in degrees."""
    ra0, dec0 = np.deg2rad((ra0, dec0))
    n = np.sqrt(1 - l * l - m * m)
    dec = np.arcsin(m * np.cos(dec0) + n * np.sin(dec0))
    return np.rad2deg(ra0 + np.arctan2(l, n * np.cos(dec0) - m * np.sin(dec0))), np.rad2deg(dec)


def grid(nx, ny, scale=SCALE):
    step = np.deg2rad(scale / 3600)
    return np.meshgrid(-(np.arange(nx) - nx // 2) * step, (np.arange(ny) - ny // 2) * step)


def gaussian(l, m, fwhm):
    return np.exp(-4 * np.log(2) * (l * l + m * m) / np.deg2rad(fwhm / 3600) ** 2)


def pointing(k, fwhm=FWHM):
    """An image of pointing k, and its primary beam."""
    l, m = grid(*SIZES[k])
    sky, beam = np.zeros(l.shape), gaussian(l, m, PB_FWHM)
    for ra, dec, flux in SOURCES:
        at = project(ra, dec, *CENTERS[k])
        sky += flux * gaussian(l - at[0], m - at[1], fwhm)
    noise = np.random.default_rng(k).normal(0, NOISE[k], l.shape)
    return sky * beam + noise, np.where(beam < .2, np.nan, beam)


def write(path, image, center, fwhm=FWHM, unit="Jy/beam", freq=(1.4e9, 1e7), kind=">f8", **more):
    fits = fits_module()
    planes = image if image.ndim == 3 else image[None]
    hdu = fits.PrimaryHDU(planes[None].astype(kind))
    ny, nx = image.shape[-2:]
    for axis, (kind, value, pixel, step, its) in enumerate((
            ("RA---SIN", center[0], nx // 2 + 1, -SCALE / 3600, "deg"),
            ("DEC--SIN", center[1], ny // 2 + 1, SCALE / 3600, "deg"),
            ("FREQ", freq[0], 1, freq[1], "Hz"), ("STOKES", 1, 1, 1, "")), 1):
        for key, of in (("CTYPE", kind), ("CRVAL", value), ("CRPIX", pixel), ("CDELT", step), ("CUNIT", its)):
            hdu.header[f"{key}{axis}"] = of
    hdu.header.update(BUNIT=unit, EQUINOX=2000.0, RADESYS="FK5", BMAJ=fwhm / 3600, BMIN=fwhm / 3600, BPA=0.0, **more)
    hdu.writeto(path)


def read(path):
    with fits_module().open(path) as file:
        return file[0].data[0], file[0].header


def kernel(distance):
    return np.where(np.abs(distance) < 3, np.sinc(distance) * np.sinc(distance / 3), 0)


def sample(image, x, y, linear):
    """Values at places, NaN beside the image."""
    first_x, first_y = np.floor(x).astype(int), np.floor(y).astype(int)
    reach = (0, 1) if linear else range(-2, 4)
    wide = np.pad(image, 8, constant_values=np.nan)

    def weights(place, first):
        if linear:
            return np.stack([1 - (place - first), place - first])
        taps = np.stack([kernel(place - first - k) for k in reach])
        return taps / taps.sum(0)

    wx, wy = weights(x, first_x), weights(y, first_y)
    value = np.zeros(x.shape)
    for j, a in zip(reach, wy):
        for i, b in zip(reach, wx):
            at = np.clip(first_y + j + 8, 0, wide.shape[0] - 1), np.clip(first_x + i + 8, 0, wide.shape[1] - 1)
            value += a * b * wide[at]
    return value


def by_trigonometry(header, k):
    """Where the pixels of the mosaic lie in image k."""
    ra, dec = directions(*grid(header["NAXIS1"], header["NAXIS2"], header["CDELT2"] * 3600), header["CRVAL1"],
                         header["CRVAL2"])
    x, y = project(ra, dec, *CENTERS[k])
    step = np.deg2rad(SCALE / 3600)
    return SIZES[k][0] // 2 - x / step, SIZES[k][1] // 2 + y / step


def reference(pointings, header, linear, places=by_trigonometry):
    """Flux, beam and noise of the mosaic from the definition."""
    flux, weight = np.zeros((2, header["NAXIS2"], header["NAXIS1"]))
    for k, ((image, beam), noise) in enumerate(zip(pointings, NOISE)):
        x, y = places(header, k)
        image = np.where(np.isnan(beam), np.nan, image)
        d, b = sample(image, x, y, linear), sample(beam, x, y, True)
        good = np.isfinite(d) & np.isfinite(b)
        flux += np.where(good, b * d / noise ** 2, 0)
        weight += np.where(good, b * b / noise ** 2, 0)
    weight[weight == 0] = np.nan
    with np.errstate(all="ignore"):
        return flux / weight, np.sqrt(weight / np.nanmax(weight)), 1 / np.sqrt(weight)


def make_pointings(suite, name="p", kind=">f8"):
    paths, made = [], []
    for k, center in enumerate(CENTERS):
        image, beam = (part.astype(kind).astype("f8") for part in pointing(k))
        paths.append(suite.path(f"{name}{k}-image.fits"))
        write(paths[-1], image, center, kind=kind)
        write(suite.path(f"{name}{k}-pb.fits"), beam, center, unit="", kind=kind)
        made.append((image, beam))
    return paths, made


def worst(image, expected):
    """The largest difference; infinite if other pixels are NaN."""
    if not (np.isnan(image) == np.isnan(expected)).all():
        return np.inf
    return np.nanmax(np.abs(image - expected)) / np.nanmax(np.abs(expected))


# Lanczos' weights are interpolated in a table, to 2e-6 of the largest pixel (mosaic_lines.h), of which a flux is more by
# the smallest beam that counts, .2.
TABLE = 2e-6 / .2


def compare(suite, kind, out, made, limits):
    """The mosaic against numpy: images to the first of the limits, beams and noise to the second. Returns the header."""
    flux, header = read(f"{out}-image-pb.fits")
    expected = reference(made, header, "linear" in kind)
    for name, wanted, limit in zip(("image-pb", "pb", "noise"), expected, (limits[0], limits[1], limits[1])):
        suite.below(f"{kind}: {name} against numpy", worst(read(f"{out}-{name}.fits")[0][0], wanted), limit)
    suite.below(f"{kind}: even noise", worst(read(f"{out}-image.fits")[0][0], expected[0] * expected[1]), limits[0])
    return flux, header


def make_mosaic(suite, kind, paths, out):
    return suite.ran(f"{kind} mosaic", tessera("mosaic", *paths, "-o", out, "--interpolation", kind.split()[0], "--noise",
                                               ",".join(map(str, NOISE))))


def check_wcslib(suite, paths, made):
    """The mosaic of check_sums() with the places that astropy finds by WCSLIB, which are its own to 1e-9 pixels; and one
    image that `reproject` brings to another centre."""
    from astropy.wcs import WCS
    images = [read(path)[1] for path in paths]

    def by_wcslib(header, k):
        x, y = np.meshgrid(np.arange(header["NAXIS1"]), np.arange(header["NAXIS2"]))
        return WCS(images[k]).celestial.all_world2pix(*WCS(header).celestial.all_pix2world(x, y, 0), 0)
    flux, header = read(suite.path("linear-image-pb.fits"))
    for name, wanted in zip(("image-pb", "pb", "noise"), reference(made, header, True, by_wcslib)):
        suite.below(f"{name} with WCSLIB's places", worst(read(suite.path(f"linear-{name}.fits"))[0][0], wanted), 1e-8)
    try:
        from reproject import reproject_interp
    except ImportError:
        suite.skipped("reproject is not installed")
        return
    out = suite.path("moved")
    if suite.ran("one image at another centre", tessera("mosaic", paths[1], "-o", out, "--primary-beam", "none", "--center",
                                                        "120.05deg,-29.99deg", "--interpolation", "linear")):
        got, header = read(f"{out}-image.fits")
        target = WCS(header).celestial
        wanted = reproject_interp((made[1][0], WCS(images[1]).celestial), target, got[0].shape, order="bilinear",
                                  return_footprint=False)
        both = np.isfinite(got[0]) & np.isfinite(wanted)
        suite.true("of the same pixels, but for those at edges", both.sum() > .97 * np.isfinite(wanted).sum())
        suite.below("reproject", np.abs(got[0] - wanted)[both].max() / np.abs(wanted[both]).max(), 1e-8)


def check_single(suite):
    """Images in single precision are interpolated in it: to 6e-8, 8 of which add up, over the smallest beam."""
    paths, made = make_pointings(suite, "s", ">f4")
    for kind, limit in (("linear in single precision", 3e-6), ("lanczos in single precision", TABLE + 3e-6)):
        out = suite.path(kind.replace(" ", "-"))
        if make_mosaic(suite, kind, paths, out):
            compare(suite, kind, out, made, (limit, 3e-6))
            suite.equal(f"{kind}: the file's", read(f"{out}-image.fits")[1]["BITPIX"], -32)


def check_wide(suite):
    """Far from their centres, where rows of one image are parabolas in another, and turned against each other. Places
    that are found to 1e-6 pixels change a value by .3 of that, over the smallest beam."""
    global SCALE, FWHM, PB_FWHM, CENTERS, SOURCES
    before = SCALE, FWHM, PB_FWHM, CENTERS, SOURCES
    SCALE, FWHM, PB_FWHM = 600.0, 2100.0, 75000.0
    CENTERS, SOURCES = ((120.0, -30.0), (134.0, -24.0), (110.0, -38.0)), ((124.0, -28.0, 1.0), (116.0, -34.0, .5))
    paths, made = make_pointings(suite, "w")
    out = suite.path("wide-field")
    if make_mosaic(suite, "linear over 60 degrees", paths, out):
        compare(suite, "linear over 60 degrees", out, made, (2e-6, 2e-6))
    SCALE, FWHM, PB_FWHM, CENTERS, SOURCES = before


def check_noise(suite):
    """The noise of a large image is that of every second of its pixels along each axis."""
    image = np.random.default_rng(9).normal(0, 1e-3, (2051, 2083)).astype(">f4")
    image[100:104] = np.nan
    write(suite.path("large.fits"), image, CENTERS[0], kind=">f4")
    some = image[::2, ::2].astype("f8")
    some = some[np.isfinite(some)]
    wanted = 1.4826 * np.median(np.abs(some - np.median(some)))
    for ranks in (1, 3) if mpiexec() else (1,):
        out = suite.path(f"large{ranks}")
        if suite.ran("a large image", tessera("mosaic", suite.path("large.fits"), "-o", out, "--primary-beam", "none",
                                              ranks=ranks)):
            noise = read(f"{out}-noise.fits")[0]
            # 1.4826 of five digits, and pixels of single precision
            suite.below(f"noise on {ranks} ranks", abs(np.nanmax(noise) / wanted - 1), 1e-5)


def check_sums(suite, paths, made):
    for kind, limit in (("linear", 1e-9), ("lanczos", TABLE)):
        out = suite.path(kind)
        if not make_mosaic(suite, kind, paths, out):
            continue
        flux, header = compare(suite, kind, out, made, (limit, 1e-9))
        suite.equal(f"{kind}: the beam", round(header["BMAJ"] * 3600, 6), FWHM)
    # Of the last mosaic. Lanczos' kernel changes the peak of a beam of 3.5 pixels by up to .9 %, once
    # in the mosaic and once here.
    for ra, dec, true in SOURCES:
        l, m = project(ra, dec, header["CRVAL1"], header["CRVAL2"])
        step = np.deg2rad(SCALE / 3600)
        x, y = header["CRPIX1"] - 1 - l / step, header["CRPIX2"] - 1 + m / step
        found = sample(flux[0], np.array([x]), np.array([y]), False)[0]
        suite.below(f"a source of {true} Jy has {found:.4f}", abs(found / true - 1), .01)


def digest(out):
    names = ("image", "image-pb", "pb", "noise")
    return [hashlib.sha256(read(f"{out}-{name}.fits")[0].tobytes()).hexdigest() for name in names]


def check_ranks(suite, paths):
    """Beams that differ, so that images are convolved; noise that is measured."""
    other = suite.path("wide-image.fits")
    image, beam = pointing(1, 17.0)
    write(other, image, CENTERS[1], 17.0)
    write(suite.path("wide-pb.fits"), beam, CENTERS[1], unit="")
    found = []
    for ranks in (1, 2, 3) if mpiexec() else (1,):
        out = suite.path(f"ranks{ranks}")
        result = tessera("mosaic", paths[0], other, paths[2], "-o", out, "--reproducible", ranks=ranks)
        suite.ran(f"mosaic on {ranks} ranks", result)
        found.append(digest(out))
    suite.true("the same bits on all ranks", all(f == found[0] for f in found))
    flux, header = read(suite.path("ranks1-image-pb.fits"))
    suite.below("the beam is the largest", abs(header["BMAJ"] * 3600 - 17), 1e-6)
    suite.below("peak of a source that was convolved", abs(np.nanmax(flux) - 1), .03)  # it lies between pixels


def check_one(suite, paths, made):
    """An image alone is itself, and a corrected one is as good as an uncorrected one."""
    out = suite.path("one")
    suite.ran("one image", tessera("mosaic", paths[2], "-o", out, "--primary-beam", "none", "--center",
                                   f"{CENTERS[2][0]}deg,{CENTERS[2][1]}deg", "--size", "180"))
    suite.below("its pixels", worst(read(f"{out}-image.fits")[0][0], made[2][0]), 1e-15)
    write(suite.path("p0-image-pb.fits"), made[0][0] / made[0][1], CENTERS[0])
    for name, path in (("raw", paths[0]), ("divided", suite.path("p0-image-pb.fits"))):
        suite.ran(f"{name} image", tessera("mosaic", path, "-o", suite.path(name), "--noise", "1mJy"))
    write(suite.path("p0.pb.fits"), made[0][1], CENTERS[0], unit="")
    for kind, image in (("image", made[0][0]), ("image.pbcor", made[0][0] / made[0][1])):
        write(suite.path(f"p0.{kind}.fits"), image, CENTERS[0])
        suite.ran(f"CASA's .{kind}", tessera("mosaic", suite.path(f"p0.{kind}.fits"), "-o", suite.path(kind),
                                             "--noise", "1mJy"))
    raw, *others = [read(suite.path(f"{name}-image-pb.fits"))[0][0]
                    for name in ("raw", "divided", "image", "image.pbcor")]
    suite.below("images that are divided by the beam, and CASA's", max(worst(image, raw) for image in others), 1e-12)


def check_cube(suite, made):
    """Two channels that fall, of which the mosaic is a cube whose channels rise."""
    paths = []
    for k in range(2):
        image, beam = made[k]
        paths.append(suite.path(f"c{k}-cube-image.fits"))
        write(paths[-1], np.stack([image, 2 * image]), CENTERS[k], freq=(1.4e9, -1e7))
        write(suite.path(f"c{k}-cube-pb.fits"), np.stack([beam, beam]), CENTERS[k], unit="", freq=(1.4e9, -1e7))
    out = suite.path("cube")
    suite.ran("mosaic of cubes", tessera("mosaic", *paths, "-o", out, ranks=2 if mpiexec() else 1))
    flux, header = read(f"{out}-image-pb.fits")
    suite.equal("planes rise", (header["NAXIS3"], header["CRVAL3"], header["CDELT3"]), (2, 1.39e9, 1e7))
    suite.below("the second plane is half of the first", worst(2 * flux[1], flux[0]), 1e-9)


# A small process, whose own memory does not count for its child, runs the words and prints the child's most kilobytes.
MOST_KB = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""


def check_memory(suite):
    """Planes are joined one after the other: more of them take no more memory than an eighth of theirs."""
    if SLOWER > 1:  # sanitizers keep memory that has been given back
        return
    side, peak = 512, {}
    plane = np.random.default_rng(2).normal(0, 1, (side, side)).astype(">f4")
    for planes in (2, 40):
        path = suite.path(f"{planes}-planes.fits")
        write(path, np.broadcast_to(plane, (planes, side, side)), CENTERS[0], kind=">f4")
        result = run([sys.executable, "-c", MOST_KB, BIN, "mosaic", path, path, "-o", suite.path(f"long{planes}"),
                      "--primary-beam", "none", "--quiet", "--threads", "1"], 60)
        if not suite.ran(f"a mosaic of {planes} planes", result):
            return
        peak[planes] = 1024 * int(result.out)
    suite.below(f"memory of 38 more planes, by their bytes {peak}", (peak[40] - peak[2]) / (38 * plane.nbytes), .125)


def check_models(suite, paths):
    out = suite.path("model")
    suite.ran("beams by a model", tessera("mosaic", *paths, "-o", out, "--primary-beam", "airy:100"))
    beam, header = read(f"{out}-pb.fits")
    suite.equal("unit of the beam", header.get("BUNIT", ""), "")
    suite.below("largest beam", abs(np.nanmax(beam) - 1), 1e-12)


def check_refused(suite, paths, made):
    write(suite.path("model.fits"), made[0][0], CENTERS[0], unit="Jy/pixel")
    write(suite.path("alone-image.fits"), made[0][0], CENTERS[0])
    write(suite.path("other-image.fits"), made[0][0], CENTERS[0], freq=(1.5e9, 1e7))
    write(suite.path("other-pb.fits"), made[0][1], CENTERS[0], freq=(1.5e9, 1e7))
    away = ("--center", "200deg,10deg", "--size", "64")
    write(suite.path("away-image.fits"), made[0][0], CENTERS[0])
    write(suite.path("away-pb.fits"), made[0][1], CENTERS[2], unit="")
    write(suite.path("renamed-image.fits"), made[0][0], CENTERS[0], BTYPE="Beam")
    write(suite.path("w-MFS-psf.fits"), made[0][0], CENTERS[0], BTYPE="Intensity")  # as WSClean has it
    write(suite.path("c.psf.fits"), made[0][0], CENTERS[0])
    cases = [((suite.path("model.fits"),), 3, "Jy/pixel"),
             *(((paths[0], suite.path(f"{name}.fits"), "--primary-beam", "none"), 3, "point spread function")
               for name in ("renamed-image", "w-MFS-psf", "c.psf")),
             ((suite.path("away-image.fits"),), 3, "lie elsewhere"),
             ((*paths, "--scale", "1e-6asec"), 3, "choose larger"),
             ((*paths, "--noise", "1mJy,0,1mJy"), 2, "above 0"),
             ((suite.path("alone-image.fits"),), 3, "alone-pb.fits"),
             ((paths[0], suite.path("other-image.fits")), 3, "plane 1"),
             ((suite.path("absent-image.fits"),), 3, "absent-image.fits"),
             ((paths[0], *away), 3, "no image has a pixel"),
             ((*paths, "--beam-size", "3asec"), 3, "does not contain"),
             ((*paths, "--noise", "1mJy"), 2, "1 values for 3 images"),
             ((*paths, "--primary-beam", "nonsense"), 2, "nonsense"), ((), 2, "no image given")]
    for k, (args, status, word) in enumerate(cases):
        out = suite.path(f"refused{k}")
        result = tessera("mosaic", *args, "-o", out, ranks=2 if mpiexec() and k in (1, 10) else 1)
        suite.equal(f"{word}: status", result.status, status)
        suite.true(f"one line says why: {result.errors()}", len(result.errors()) == 1 and word in result.errors()[0])
        suite.true("no file", not any(name.startswith(f"refused{k}-") for name in os.listdir(suite.path(""))))
    write(suite.path("q-other.fits"), made[1][0], CENTERS[1])
    write(suite.path("q-pb.fits"), made[1][1], CENTERS[1], unit="")
    own = tessera("mosaic", suite.path("q-other.fits"), "-o", suite.path("q"), "--overwrite")
    suite.equal(f"a beam that is read stays: {own.errors()}", own.status, 3)
    suite.equal("an output that is there", tessera("mosaic", *paths, "-o", suite.path("linear")).status, 3)


def main():
    suite = Suite("mosaics")
    paths, made = make_pointings(suite)
    check_sums(suite, paths, made)
    check_wcslib(suite, paths, made)
    check_single(suite)
    check_wide(suite)
    check_noise(suite)
    check_ranks(suite, paths)
    check_one(suite, paths, made)
    check_cube(suite, made)
    check_memory(suite)
    check_models(suite, paths)
    check_refused(suite, paths, made)
    suite.finish()


if __name__ == "__main__":
    main()
