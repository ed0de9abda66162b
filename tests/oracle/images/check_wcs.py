"""Check FITS images with astropy, which must not even warn: checksums, the meaning of
every axis, and that each pixel's sky position is the one of the orthographic projection
about the phase centre.

    python3 check_wcs.py IMAGE.fits... [--like OTHER.fits]

With --like, pixel size and coordinates must also equal those of another image. Exits 0
when all is well, 1 with a line per fault, 77 when astropy is not there."""
import argparse
import sys
import warnings

try:
    import numpy as np
    from astropy.io import fits
    from astropy.wcs import WCS
except ImportError:
    print("astropy is not installed: skipped")
    sys.exit(77)

AXES = ("RA---SIN", "DEC--SIN", "FREQ", "STOKES")
DIGITS = 5e-14  # the least that 20 columns hold: 14 digits, sign and exponent
ARCSEC_PIXEL_TOLERANCE = 1e-3  # pixels; double precision in degrees allows 1e-4 at 1 uas


def sky_of(header, l, m):
    """RA and Dec [deg] of direction cosines, by the definition of the SIN projection."""
    ra0, dec0 = np.deg2rad(header["CRVAL1"]), np.deg2rad(header["CRVAL2"])
    n = np.sqrt(1 - l**2 - m**2)
    dec = np.arcsin(np.clip(m * np.cos(dec0) + n * np.sin(dec0), -1, 1))
    ra = ra0 + np.arctan2(l, n * np.cos(dec0) - m * np.sin(dec0))
    return np.rad2deg(ra) % 360, np.rad2deg(dec)


def check_header(header):
    """Faults of the axes and units."""
    for axis, name in enumerate(AXES, 1):
        if header.get(f"CTYPE{axis}") != name:
            yield f"CTYPE{axis} is {header.get(f'CTYPE{axis}')!r}, not {name!r}"
    if header["NAXIS"] != 4:
        yield f"has {header['NAXIS']} axes, not 4"
    if not header["CDELT1"] < 0 < header["CDELT2"]:
        yield "East is not to the left or North not up"
    if header["CDELT1"] != -header["CDELT2"]:
        yield "pixels are not square"
    for axis in (1, 2):
        if header[f"CRPIX{axis}"] != header[f"NAXIS{axis}"] // 2 + 1:
            yield f"CRPIX{axis} is {header[f'CRPIX{axis}']}"
    if not 0 <= header["CRVAL1"] < 360:
        yield f"CRVAL1 is {header['CRVAL1']}"
    if header["BUNIT"].upper() not in ("JY/BEAM", "JY/PIXEL"):
        yield f"BUNIT is {header['BUNIT']!r}"
    if "BMAJ" in header and not header["BMAJ"] >= header["BMIN"] > 0:
        yield "BMAJ, BMIN are not a beam"


def check_positions(header):
    """Faults of the pixel positions, in pixels."""
    nx, ny, scale = header["NAXIS1"], header["NAXIS2"], np.deg2rad(header["CDELT2"])
    i, j = np.meshgrid(np.unique(np.linspace(0, nx - 1, 9).astype(int)),
                       np.unique(np.linspace(0, ny - 1, 9).astype(int)))
    l, m = -(i - nx // 2) * scale, (j - ny // 2) * scale
    inside = l**2 + m**2 < 0.98
    i, j, l, m = i[inside], j[inside], l[inside], m[inside]
    wcs = WCS(header)
    found = wcs.all_pix2world(np.stack([i, j, 0 * i, 0 * i], 1), 0)
    ra, dec = sky_of(header, l, m)
    off_ra = (found[:, 0] - ra + 180) % 360 - 180
    off = np.hypot(off_ra * np.cos(np.deg2rad(dec)), found[:, 1] - dec)
    # towards the horizon a pixel spans more sky; close to a pole RA is ill-conditioned
    tolerance = ARCSEC_PIXEL_TOLERANCE * header["CDELT2"] + 1e-12 / np.sqrt(1 - l**2 - m**2)
    if np.any(off > tolerance):
        yield f"positions are off by up to {np.max(off) / header['CDELT2']:.3g} pixels"
    if not np.allclose(found[:, 2], header["CRVAL3"], rtol=1e-12):
        yield "frequency axis is wrong"
    if not np.allclose(found[:, 3], header["CRVAL4"]):
        yield "Stokes axis is wrong"
    if wcs.wcs.radesys not in ("FK5", "FK4", "ICRS"):
        yield f"RADESYS is {wcs.wcs.radesys!r}"


def check_like(header, other):
    """Faults against another image's header."""
    for key in ("NAXIS1", "NAXIS2", "CRPIX1", "CRPIX2", "CRVAL4"):
        if header[key] != other[key]:
            yield f"{key} is {header[key]}, the other's {other[key]}"
    for key, tolerance in (("CDELT1", 1e-9), ("CDELT2", 1e-9), ("CRVAL3", 1e-6)):
        if abs(header[key] / other[key] - 1) > tolerance:
            yield f"{key} is {header[key]}, the other's {other[key]}"
    for axis in (1, 2):
        off = (header[f"CRVAL{axis}"] - other[f"CRVAL{axis}"] + 180) % 360 - 180
        # 15 digits of 360 degrees are the most that other programs write
        if abs(off) > max(1e-3 * header["CDELT2"], 1e-12):
            yield f"CRVAL{axis} is off by {off / header['CDELT2']:.3g} pixels"


def check(path, like=None):
    """All faults of one file, as text."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with fits.open(path, checksum=True) as opened:
            opened.verify("exception")
            header = opened[0].header
            data = opened[0].data
            if "CHECKSUM" not in header or "DATASUM" not in header:
                yield "has no checksum"
            finite = data[np.isfinite(data)]
            for key, value in (("DATAMIN", np.min), ("DATAMAX", np.max)):
                if finite.size and abs(header[key] / value(finite) - 1) > DIGITS:
                    yield f"{key} is wrong"
            yield from check_header(header)
            yield from check_positions(header)
            if like:
                yield from check_like(header, fits.getheader(like))
    for warning in warned:
        yield f"{warning.category.__name__}: {str(warning.message).strip()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("images", nargs="+")
    parser.add_argument("--like")
    args = parser.parse_args()
    faults = [f"{path}: {fault}" for path in args.images for fault in check(path, args.like)]
    print("\n".join(faults) or f"{len(args.images)} images are well")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
