"""How good the image of a study is: the scientific part of metrics.json.

The reference is tessera's own image of the same set at accuracy 1e-8, in double precision
(which tests/oracle compares with direct sums). Sources are fitted by compare_sources.py.
"""
import json
import math
import os
import subprocess
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import compare_sources  # noqa: E402

REFERENCE_ACCURACY = "1e-8"
SSIM_SIGMA = 1.5                      # pixels, Wang et al. 2004
SSIM_K1, SSIM_K2 = 0.01, 0.03
MASK_BEAMS = 3


def load(path):
    """(pixels[ny][nx] in double, the file as compare_sources reads it)."""
    image = compare_sources.Image(path)
    return np.array(image.data, dtype=float).reshape(image.ny, image.nx), image


def smooth(image):
    """Gaussian mean, 11 pixels wide, along both axes; edges are left away."""
    x = np.arange(-5, 6)
    kernel = np.exp(-0.5 * (x / SSIM_SIGMA) ** 2)
    kernel /= kernel.sum()
    for axis in (0, 1):
        n = image.shape[axis] - 10
        image = sum(w * np.take(image, range(k, k + n), axis)
                    for k, w in enumerate(kernel))
    return image


def ssim(image, reference):
    span = reference.max() - reference.min()
    c1, c2 = (SSIM_K1 * span) ** 2, (SSIM_K2 * span) ** 2
    mean, mean0 = smooth(image), smooth(reference)
    var = smooth(image**2) - mean**2
    var0 = smooth(reference**2) - mean0**2
    both = smooth(image * reference) - mean * mean0
    return float(np.mean((2 * mean * mean0 + c1) * (2 * both + c2) /
                         ((mean**2 + mean0**2 + c1) * (var + var0 + c2))))


def psnr_db(image, reference):
    square = np.mean((image - reference) ** 2)
    if square == 0:
        return None
    return float(10 * math.log10(np.max(np.abs(reference)) ** 2 / square))


def background(header, sources):
    """Mask of the pixels far from all sources."""
    beam = beam_pixels(header)
    y, x = np.mgrid[:header.ny, :header.nx]
    far = np.ones((header.ny, header.nx), bool)
    for s in sources:
        reach = MASK_BEAMS * beam + s["major"] / header.scale_deg
        far &= np.hypot(x - s["pixel"][0], y - s["pixel"][1]) > reach
    return far


def beam_pixels(header):
    axes = [float(header.card[k]) for k in ("BMAJ", "BMIN")]
    return math.sqrt(axes[0] * axes[1]) / header.scale_deg


def source_errors(name, sky, header):
    """(median relative flux error, median offset in beams) by compare_sources.py."""
    report = name + "-sources.json"
    subprocess.run([sys.executable, os.path.join(HERE, "..", "compare_sources.py"), sky,
                    name, "--json", report], capture_output=True)
    if not os.path.exists(report):
        return None, None
    with open(report) as f:
        rows = json.load(f)
    return (float(np.median([abs(r["found_jy"] / r["true_jy"] - 1) for r in rows])),
            float(np.median([r["offset_pixel"] for r in rows])) / beam_pixels(header))


def of_image(binary, options, data, sky, name):
    """Quality of NAME-dirty.fits, an image of the set `data`; makes the reference."""
    reference = name + "-reference"
    subprocess.run([binary, "image", data["path"], "-o", reference, "--size",
                    str(data["size"]), "--scale", data["scale"], "--accuracy",
                    REFERENCE_ACCURACY, "--backend", "cpu", "--overwrite", "--quiet",
                    *(options.extra or ["--weight", "natural"])], check=True)
    image, header = load(name + "-dirty.fits")
    truth, _ = load(reference + "-dirty.fits")
    sources = compare_sources.read_sky(sky, header) if sky else []
    far = background(header, sources)
    rms, rms0 = float(np.std(image[far])), float(np.std(truth[far]))
    flux, offset = source_errors(name, sky, header) if sky else (None, None)
    return {"reference": f"accuracy {REFERENCE_ACCURACY}, one rank",
            "accuracy": options.accuracy, "dirty_rms_jy_beam": rms,
            "dirty_rms_difference": rms / rms0 - 1, "psnr_db": psnr_db(image, truth),
            "ssim": ssim(image, truth), "flux_error": flux,
            "astrometric_error_beam": offset, "dynamic_range": float(image.max()) / rms}
