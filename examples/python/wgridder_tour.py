# %% [markdown]
# # A tour of tessera's gridder
#
# Run it as a script, `python wgridder_tour.py [FOLDER]`, or cell by cell in an editor or
# Jupyter (`jupytext`). It makes visibilities of a few sources, images them, checks the
# image against a direct sum, predicts visibilities back, and cleans a little.
# It needs numpy and matplotlib.

# %%
import os
import sys
import time

import matplotlib.pyplot as plt
import numpy as np

import tessera
from tessera.wgridder import dirty2vis, last_report, vis2dirty

FOLDER = sys.argv[1] if len(sys.argv) > 1 else "tour"
os.makedirs(FOLDER, exist_ok=True)
print("tessera", tessera.library_version())


def save(name):
    plt.savefig(os.path.join(FOLDER, name), dpi=110, bbox_inches="tight")
    plt.close()


# %% [markdown]
# ## Baselines
#
# 40 antennas in a log-spiral, two hours around transit. `uvw` are metres, as a
# MeasurementSet stores them: u to the East, v to the North, w to the source.

# %%
C_M_S = 299792458.0
DEC, LATITUDE = np.deg2rad(-30), np.deg2rad(-31)
rng = np.random.default_rng(1)
turn = np.linspace(0, 4 * np.pi, 40)
antennas = (60 * np.exp(0.24 * turn))[:, None] * np.stack(
    [np.cos(turn), np.sin(turn), 0 * turn], axis=1) + rng.normal(0, 5, (40, 3))


def baselines(hour_angle):
    """uvw of all pairs at an hour angle; antennas are East, North, up of the site."""
    first, second = np.triu_indices(len(antennas), 1)
    east, north, up = (antennas[second] - antennas[first]).T
    x = -np.sin(LATITUDE) * north + np.cos(LATITUDE) * up
    y = east
    z = np.cos(LATITUDE) * north + np.sin(LATITUDE) * up
    sin_h, cos_h = np.sin(hour_angle), np.cos(hour_angle)
    u = sin_h * x + cos_h * y
    v = -np.sin(DEC) * (cos_h * x - sin_h * y) + np.cos(DEC) * z
    w = np.cos(DEC) * (cos_h * x - sin_h * y) + np.sin(DEC) * z
    return np.stack([u, v, w], axis=1)


uvw = np.concatenate([baselines(h) for h in np.deg2rad(np.arange(-15, 15, 0.5))])
freq = np.linspace(1.3e9, 1.5e9, 8)
print(f"{uvw.shape[0]} rows x {freq.size} channels")

plt.figure(figsize=(4.5, 4.5))
plt.plot(uvw[:, 0], uvw[:, 1], ",k", -uvw[:, 0], -uvw[:, 1], ",k")
plt.xlabel("u [m]")
plt.ylabel("v [m]")
plt.title("baselines")
save("1-baselines.png")

# %% [markdown]
# ## A sky, and its visibilities
#
# The functions have ducc0.wgridder's arguments. With `flip_v=True` the first axis of an
# image runs to the West and the second to the North for uvw of a MeasurementSet, so
# `image.T` with `origin="lower"` shows East to the left and North up.
# `divide_by_n=False` leaves out the 1/n, so that a pixel's value is a source's flux.

# %%
NPIX, CELL = 512, np.deg2rad(8 / 3600)
common = dict(uvw=uvw, freq=freq, pixsize_x=CELL, pixsize_y=CELL, epsilon=1e-5,
              do_wgridding=True, divide_by_n=False, flip_v=True, nthreads=0)
sky = np.zeros((NPIX, NPIX), "f4")
for x, y, flux in [(256, 256, 1.0), (300, 280, 0.6), (120, 400, 0.8), (430, 90, 0.5)]:
    sky[x, y] = flux
vis = dirty2vis(dirty=sky, **common)
noise = rng.normal(0, 1, vis.shape) + 1j * rng.normal(0, 1, vis.shape)
vis += noise.astype("c8")
print(f"predicted {vis.size} visibilities in {last_report()['total_s']:.2f} s")

# %% [markdown]
# ## The dirty image
#
# `wgt` may be any weights: with all equal to 1/N a source of 1 Jy has a peak of 1. The
# point spread function is the image of visibilities that are all 1.

# %%
weight = np.full(vis.shape, 1 / vis.size, "f4")
dirty = vis2dirty(vis=vis, wgt=weight, npix_x=NPIX, npix_y=NPIX, **common)
psf = vis2dirty(vis=np.ones_like(vis), wgt=weight, npix_x=NPIX, npix_y=NPIX, **common)
print("plan:", last_report()["plan"])
print(f"PSF in the middle: {psf[NPIX // 2, NPIX // 2]:.5f}")


def show(axis, image, title, **limits):
    shown = axis.imshow(image.T, origin="lower", cmap="inferno", **limits)
    axis.set_title(title)
    plt.colorbar(shown, ax=axis, shrink=0.75, label="Jy/beam")


figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.5))
show(axes[0], dirty, "dirty image")
show(axes[1], psf, "point spread function", vmin=-0.1, vmax=0.3)
save("2-dirty.png")

# %% [markdown]
# ## Is it right?
#
# A direct sum at 100 random pixels, in double precision. ε = 1e-5 is a promise for the
# relative error over the image.

# %%
pixels = rng.integers(0, NPIX, (100, 2))
x, y = ((pixels - NPIX // 2) * CELL).T
nm1 = np.sqrt(1 - x**2 - y**2) - 1
direct = np.zeros(100)
for channel, hertz in enumerate(freq):
    u, v, w = (uvw * hertz / C_M_S).T
    for k in range(100):
        turns = u * x[k] - v * y[k] - w * nm1[k]  # flip_v
        direct[k] += np.sum((vis[:, channel] * np.exp(2j * np.pi * turns)).real) / vis.size
error = np.sqrt(np.mean((dirty[tuple(pixels.T)] - direct)**2) / np.mean(dirty**2))
print(f"rms error over rms of the image: {error:.1e}")

plt.figure(figsize=(5.5, 4))
accuracies, errors, seconds = [1e-2, 1e-3, 1e-4, 1e-5, 1e-7, 1e-9], [], []
for epsilon in accuracies:
    kind, real = ("c8", "f4") if epsilon >= 1e-5 else ("c16", "f8")
    start = time.perf_counter()
    image = vis2dirty(vis=vis.astype(kind), wgt=np.full(vis.shape, 1 / vis.size, real),
                      npix_x=NPIX, npix_y=NPIX, **{**common, "epsilon": epsilon})
    seconds.append(time.perf_counter() - start)
    errors.append(np.sqrt(np.mean((image[tuple(pixels.T)] - direct)**2) /
                          np.mean(image**2)))
plt.loglog(accuracies, errors, "o-", label="measured")
plt.loglog(accuracies, accuracies, "k--", label="asked for")
for epsilon, error, spent in zip(accuracies, errors, seconds):
    plt.annotate(f"{spent:.2f} s", (epsilon, error), (6, -10), fontsize=8,
                 textcoords="offset points")
plt.xlabel("epsilon")
plt.ylabel("relative error")
plt.legend()
save("3-accuracy.png")

# %% [markdown]
# ## Adjoint
#
# The two functions are adjoints to rounding, which is what iterative methods need:
# ⟨vis, P x⟩ = ⟨Pᴴ vis, x⟩.

# %%
model = rng.normal(size=sky.shape).astype("f8")
data = (rng.normal(size=vis.shape) + 1j * rng.normal(size=vis.shape))
left = np.vdot(dirty2vis(dirty=model, **common), data).real
right = np.vdot(model, vis2dirty(vis=data, npix_x=NPIX, npix_y=NPIX, **common))
print(f"adjointness: {abs(left - right) / abs(left):.1e}")

# %% [markdown]
# ## A small CLEAN
#
# Högbom's minor cycle on the image; each major cycle predicts the model's visibilities
# and images what is left. It is here to show the calls, not to be fast.

# %%
components, residual = np.zeros_like(sky), dirty.copy()
middle = NPIX // 2
for major in range(3):
    for minor in range(60):
        peak = np.unravel_index(np.argmax(residual), residual.shape)
        flux = 0.2 * residual[peak]
        components[peak] += flux
        shifted = np.roll(psf, (peak[0] - middle, peak[1] - middle), axis=(0, 1))
        residual -= flux * shifted
    left = vis - dirty2vis(dirty=components, **common)
    residual = vis2dirty(vis=left, wgt=weight, npix_x=NPIX, npix_y=NPIX, **common)
    print(f"major cycle {major + 1}: largest residual {np.abs(residual).max():.4f}")

figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.5))
show(axes[0], residual, "residual", vmin=-0.02, vmax=0.02)
show(axes[1], components, "components", vmax=0.1)
save("4-clean.png")

# %% [markdown]
# ## From a file
#
# `tessera.image` reads observations and makes weighted images with headers; the
# options are those of `tessera image --help`:
#
# ```python
# images = tessera.image("obs.ms", size=2048, scale="1.5asec", weight="briggs:0")
# plt.subplot(projection=images.dirty.celestial()).imshow(images.dirty.data, origin="lower")
# ```
print("plots are in", FOLDER)
