"""Skies, PSFs and dirty images for tests of minor loops, and CLEAN written down in numpy: the plain
loop of Högbom, and multiscale CLEAN by its definition, with every image convolved as a whole."""
import os
import subprocess

import numpy as np

import e2e

ARRAYS = os.environ.get("TESS_CLEAN_ARRAYS", "build/tests/clean_arrays")
MPIEXEC = os.environ.get("TESS_MPIEXEC") or "mpirun"
if e2e.BACKEND != "cpu":
    e2e.need_backend()
    os.environ["TESS_TEST_BACKEND"] = e2e.BACKEND  # which clean_arrays tests


def convolve(image, psf):
    """image ∗ psf, whose centre is at (ny//2, nx//2), zero outside its pixels; in double."""
    ny, nx = image.shape
    shape = (2 * ny, 2 * nx)
    spectrum = np.fft.rfft2(image, shape) * np.fft.rfft2(psf, shape)
    return np.fft.irfft2(spectrum, shape)[ny // 2:ny // 2 + ny, nx // 2:nx // 2 + nx]


def make_psf(ny, nx, seed=1, beam=4.0):
    """The PSF of random arcs of a plane of spatial frequencies: with sidelobes, not symmetric."""
    rng = np.random.default_rng(seed)
    v, u = np.meshgrid(np.fft.fftfreq(2 * ny), np.fft.rfftfreq(2 * nx), indexing="ij")
    radius = np.hypot(u, v) * beam
    weight = np.exp(-3 * radius ** 2) * (rng.random(u.shape) < .3) * (radius > .004 * beam)
    psf = np.fft.irfft2(weight, (2 * ny, 2 * nx))
    psf = np.roll(psf, (ny // 2, nx // 2), (0, 1))[:ny, :nx]
    ramp = 1 + .05 * (np.arange(nx) - nx // 2) / nx  # not symmetric, as with w
    return psf / psf[ny // 2, nx // 2] * ramp


def make_sky(ny, nx, points, blobs, seed=2, edge=0):
    """Points and Gaussians, [Jy/pixel]."""
    rng = np.random.default_rng(seed)
    sky = np.zeros((ny, nx))
    for _ in range(points):
        y, x = rng.integers(edge, ny - edge), rng.integers(edge, nx - edge)
        sky[y, x] += 10 ** rng.uniform(-2, .3)
    yy, xx = np.mgrid[:ny, :nx]
    for _ in range(blobs):
        y, x = rng.uniform(edge + ny / 8, ny * 7 / 8 - edge), rng.uniform(edge + nx / 8, nx * 7 / 8 - edge)
        size = rng.uniform(2, min(ny, nx) / 20)
        blob = np.exp(-.5 * ((yy - y) ** 2 + (xx - x) ** 2) / size ** 2)
        sky += rng.uniform(.5, 3) * blob / blob.sum() * size
    return sky


def run(folder, dirty, psf, mask=None, model=None, ranks=1, **options):
    """clean_arrays' reports, model, residual and components."""
    os.makedirs(folder, exist_ok=True)
    for name, array, kind in (("dirty", dirty, "f8"), ("psf", psf, "f8"), ("mask", mask, "u1"),
                              ("model", model, "f8")):
        path = os.path.join(folder, name)
        if array is None:
            if os.path.exists(path):
                os.remove(path)
            continue
        np.ascontiguousarray(array, kind).tofile(path)
    ny, nx = dirty.shape[-2:]
    if dirty.ndim == 3:
        options.setdefault("images", len(dirty))
    command = [ARRAYS, folder, str(nx), str(ny)] + [f"{k}={v}" for k, v in options.items()]
    if ranks > 1:
        command = [MPIEXEC, "-n", str(ranks)] + command
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "on processors" not in done.stderr, done.stderr  # a device lacks nothing of these
    reports = []
    for line in done.stdout.splitlines():
        words = line.split()
        if words[0] == "end":
            reports.append({"scales": []})
        if words[0] == "scale":
            reports[-1]["scales"].append([float(w) for w in words[1:]])
            continue
        reports[-1].update({words[k]: float(words[k + 1]) for k in range(0, len(words), 2)})
    read = lambda name: np.fromfile(os.path.join(folder, name)).reshape(dirty.shape)
    cleaned = int(options.get("images", 1))
    if "cleaned" in options:
        cleaned = int(options["cleaned"]) * int(options.get("pols", 1))
    components = np.fromfile(os.path.join(folder, "components")).reshape(-1, 2 + cleaned)
    return reports, read("found-model"), read("residual"), components


def hogbom(dirty, psf, count, gain=.1, threshold=0.):
    """Components (pixel, flux), the residual."""
    ny, nx = dirty.shape
    residual = dirty.copy()
    centre = psf[ny // 2, nx // 2]
    padded = np.zeros((3 * ny, 3 * nx))
    padded[ny:2 * ny, nx:2 * nx] = psf
    found = []
    for _ in range(count):
        at = int(np.argmax(np.abs(residual)))
        y, x = divmod(at, nx)
        if abs(residual[y, x]) <= threshold:
            break
        flux = gain * residual[y, x] / centre
        found.append((at, flux))
        top, left = ny + ny // 2 - y, nx + nx // 2 - x
        residual -= flux * padded[top:top + ny, left:left + nx]
    return np.array(found), residual


def kernel(alpha, ny, nx):
    """The tapered quadratic of unit sum, centred in an image."""
    y, x = np.mgrid[:ny, :nx]
    r = np.hypot(y - ny // 2, x - nx // 2)
    if alpha == 0:
        return (r == 0).astype(float)
    width = 2 * int(np.ceil(alpha / 2)) + 1
    shape = .5 * (1 + np.cos(2 * np.pi * r / (width + 1))) * (1 - (r / alpha) ** 2)
    shape[(r > (width + 1) / 2) | (r >= alpha)] = 0
    return shape / shape.sum()


def stack(image):
    """Images as an array of several."""
    return image if image.ndim == 3 else image[None]


def first(values):
    """What a pixel of a single image is chosen by."""
    return values[0]


def joined_hogbom(dirty, psf, count, metric, fit=lambda values: values, gain=.1, centre=1., threshold=0.):
    """Högbom's loop over several images: a component where the metric of all is largest, with each
    image's own value there times gain / centre, or what `fit` makes of these. Components (pixel,
    flux...), residuals."""
    images, ny, nx = dirty.shape
    residual = dirty.copy()
    padded = np.zeros((images, 3 * ny, 3 * nx))
    padded[:, ny:2 * ny, nx:2 * nx] = psf
    found = []
    for _ in range(count):
        joined = metric(residual)
        at = int(np.argmax(np.abs(joined)))
        y, x = divmod(at, nx)
        if abs(joined[y, x]) <= threshold:
            break
        flux = fit(gain / centre * residual[:, y, x])
        found.append((at, *flux))
        top, left = ny + ny // 2 - y, nx + nx // 2 - x
        residual -= flux[:, None, None] * padded[:, top:top + ny, left:left + nx]
    return np.array(found), residual


def multiscale(dirty, psf, scales, beam, gain=.1, mgain=.8, bias=.6, step=.8, threshold=0.,
               niter=100000, metric=first, fit=lambda values: values, share=(1.,)):
    """One minor loop: components (scale, pixel, flux...), model, residual. Of several images: `metric`
    makes one of their residuals at a scale, `share` is each one's in the mean PSF, `fit` changes the
    values of a component."""
    dirty, psf, flat = stack(dirty), stack(psf), dirty.ndim == 2
    images, ny, nx = dirty.shape
    kernels = [kernel(a, ny, nx) for a in scales]
    biases = [1 if a == 0 else bias ** -np.log2(a / (2 * beam)) for a in scales]
    at_scale = lambda image, s: image if scales[s] == 0 else convolve(image, kernels[s])
    joined = lambda residual, s: metric(np.array([at_scale(image, s) for image in residual]))
    inside = []
    for a in scales:
        edge = int(np.ceil(a / 2))
        mask = np.zeros((ny, nx), bool)
        mask[edge:ny - edge, edge:nx - edge] = True
        inside.append(mask)
    wide = np.pad(psf, ((0, 0), (ny // 2, ny - ny // 2), (nx // 2, nx - nx // 2)))
    wide_kernel = [kernel(a, 2 * ny, 2 * nx) for a in scales]
    once = [[p if a == 0 else convolve(p, wide_kernel[s]) for p in wide] for s, a in enumerate(scales)]
    twice = [np.array([p if scales[s] == 0 else convolve(p, wide_kernel[s]) for p in o])
             for s, o in enumerate(once)]
    cy, cx = ny // 2 + ny // 2, nx // 2 + nx // 2
    centre = [sum(w * p[cy, cx] for w, p in zip(share, o)) / sum(share) for o in once]
    active = [True] * len(scales)
    peaks = np.zeros(len(scales))
    residual, model, found = dirty.copy(), np.zeros_like(dirty), []

    def measure():
        for s in range(len(scales)):
            if active[s]:
                image = np.where(inside[s], np.abs(joined(residual, s)), 0)
                peaks[s] = image.max() * biases[s]
        return max((s for s in range(len(scales)) if active[s]), key=lambda s: (peaks[s], -s))

    best = measure()
    major = max(peaks[best] * (1 - mgain), threshold)
    repeats = 0
    while peaks[best] > major and len(found) < niter and repeats < max(8, 3 * len(scales) // 2):
        until = max(step * peaks[best], major)
        repeats += until == major
        image = np.where(inside[best], joined(residual, best), 0)
        ys, xs = np.nonzero(np.abs(image) >= until / biases[best])
        values = np.array([at_scale(r, best)[ys, xs] for r in residual])
        delta = np.zeros_like(dirty)
        while len(found) < niter:
            chosen = metric(values)
            k = int(np.argmax(np.abs(chosen)))
            if abs(chosen[k]) <= until / biases[best]:
                break
            flux = fit(gain / centre[best] * values[:, k])
            found.append((best, ys[k] * nx + xs[k], *flux))
            delta[:, ys[k], xs[k]] += flux
            dy, dx = cy + ys - ys[k], cx + xs - xs[k]
            ok = (dy >= 0) & (dy < 2 * ny) & (dx >= 0) & (dx < 2 * nx)
            values[:, ok] -= flux[:, None] * twice[best][:, dy[ok], dx[ok]]
        component = np.array([at_scale(image, best) for image in delta])
        model += component
        residual = residual - np.array([convolve(c, p) for c, p in zip(component, psf)])
        before = peaks.copy()
        active = [s == best or before[s] > (1 - gain) * before[best] for s in range(len(scales))]
        best = measure()
    return (np.array(found), model[0], residual[0]) if flat else (np.array(found), model, residual)
