"""The masks of --auto-multithresh on whole images (Kepley et al. 2020, PASP 132, 024505), in numpy
alone: thresholds, regions, convolution with the beam, and growth."""
import numpy as np

DEFAULTS = dict(sidelobe=3.0, noise=5.0, low_noise=1.5, negative=0.0, smooth=1.0, beam_frac=0.3,
                cut=0.01, grow=75)


def noise_of(image):
    """Median, and 1.4826 times the median of the distances from it."""
    middle = np.nanmedian(image)
    return middle, 1.482602218505602 * np.nanmedian(np.abs(image - middle))


def gaussian(shape, beam):
    """A beam of height 1 around the pixel (ny // 2, nx // 2); x grows to the West."""
    major, minor, angle = beam
    y, x = np.indices(shape)
    north, east = y - shape[0] // 2, -(x - shape[1] // 2)
    along = (east * np.sin(angle) + north * np.cos(angle)) / major
    across = (east * np.cos(angle) - north * np.sin(angle)) / minor
    return np.exp(-4 * np.log(2) * (along ** 2 + across ** 2))


def main_lobe(psf):
    """Axes [pixels] and position angle of the Gaussian that fits the pixels around the centre above
    .35 of it best, by Gauss's and Newton's steps."""
    ny, nx = psf.shape
    psf = psf / psf[ny // 2, nx // 2]
    lobe = np.zeros(psf.shape, bool)
    lobe[ny // 2, nx // 2] = True
    lobe = grown(lobe, psf >= 0.35, psf.size)
    y, x = np.nonzero(lobe)
    x, y, value = x - nx // 2, y - ny // 2, psf[lobe]
    terms = np.stack([x * x, y * y, x * y], 1).astype(float)
    found = np.linalg.lstsq(terms * value[:, None], -np.log(value) * value, rcond=None)[0]
    for _ in range(20):
        model = np.exp(-terms @ found)
        found = found + np.linalg.lstsq(-terms * model[:, None], value - model, rcond=None)[0]
    a, b, c = found
    slow, fast = np.linalg.eigvalsh([[a, c / 2], [c / 2, b]])
    return 2 * np.sqrt(np.log(2) / slow), 2 * np.sqrt(np.log(2) / fast), 0.5 * np.arctan2(c, a - b)


def sidelobe_level(psf, beam):
    psf = psf / psf[psf.shape[0] // 2, psf.shape[1] // 2]
    return max(-psf.min(), (psf - gaussian(psf.shape, beam)).max())


def pruned(mask, least):
    """Without regions of fewer pixels; pixels are neighbours by their edges."""
    kept, left = np.zeros_like(mask), mask.copy()
    while left.any():
        region = np.zeros_like(mask)
        region[np.unravel_index(left.argmax(), mask.shape)] = True
        region = grown(region, left, mask.size)
        left &= ~region
        if region.sum() >= least:
            kept |= region
    return kept


def grown(mask, within, steps):
    mask = mask & within
    for _ in range(steps):
        wide = mask.copy()
        wide[1:] |= mask[:-1]
        wide[:-1] |= mask[1:]
        wide[:, 1:] |= mask[:, :-1]
        wide[:, :-1] |= mask[:, 1:]
        wide &= within
        if (wide == mask).all():
            break
        mask = wide
    return mask


def smoothed(mask, beam, factor, cut):
    """Convolved with the beam, nothing wrapping around, and cut at a share of the largest value."""
    if not mask.any():
        return mask
    ny, nx = mask.shape
    shape = (2 * ny, 2 * nx)
    kernel = np.fft.ifftshift(gaussian(shape, (factor * beam[0], factor * beam[1], beam[2])))
    wide = np.fft.irfft2(np.fft.rfft2(mask, shape) * np.fft.rfft2(kernel), shape)[:ny, :nx]
    return wide > cut * wide.max()


def next_mask(before, residual, level, beam, **options):
    """One round: the mask before it (None: there was none) and what the residual adds to it."""
    o = {**DEFAULTS, **options}
    middle, sigma = noise_of(residual)
    least = o["beam_frac"] * np.pi / (4 * np.log(2)) * beam[0] * beam[1]
    sidelobe = o["sidelobe"] * level * np.nanmax(np.abs(residual))
    found = pruned(residual > middle + max(sidelobe, o["noise"] * sigma), least)
    mask = smoothed(found, beam, o["smooth"], o["cut"])
    if before is not None:
        within = residual > middle + max(sidelobe, o["low_noise"] * sigma)
        more = pruned(grown(before, within, o["grow"]), least)
        mask = mask | before | smoothed(more, beam, o["smooth"], o["cut"])
    if o["negative"] > 0:
        below = residual < middle - max(sidelobe, o["negative"] * sigma)
        mask = mask | smoothed(below, beam, o["smooth"], o["cut"])
    return mask & np.isfinite(residual)
