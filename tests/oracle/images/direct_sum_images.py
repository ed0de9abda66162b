#!/usr/bin/env python3
"""Accuracy that is promised is kept: images and predictions against direct sums.

For each accuracy: relative L2 error <= accuracy over the image, and rms error of each
of 8 x 8 blocks <= 2 accuracy x rms of the image (so that corners are no worse). A
prediction is stored in single precision: 6e-8 is added to its limit.
"""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import ASEC, FULL, Suite, l2_error, read_image, tessera, worst_block
import uvfits

SINGLE = [1e-2, 1e-3, 1e-4, 1e-5]
DOUBLE = [1e-6, 1e-8, 1e-10, 1e-12]
# name: size, field of view along the longer side [deg], |w| over |u|, rows, channels
SETS = {
    "narrow": ((64, 64), 0.5, 0.3, 1500, 3),
    "wide": ((64, 64), 10.0, 8.0, 1500, 3),
    "odd": ((61, 47), 4.0, 3.0, 1200, 2),
    "flat": ((96, 31), 6.0, 3.0, 1200, 1),
    "allsky": ((60, 60), 80.0, 1.0, 800, 2),
}


class Observation:
    """Random tracks and noise-like visibilities, in a UVFITS file and in memory."""

    def __init__(self, suite, name):
        (self.nx, self.ny), field_deg, w_ratio, rows, channels = SETS[name]
        self.name = name
        self.scale = np.deg2rad(field_deg) / max(self.nx, self.ny)
        self.freq = 1.0e9 + 5e7 * np.arange(channels)
        rng = np.random.default_rng(len(name))
        extent = 0.47 / self.scale * 299792458.0 / self.freq[-1]
        uvw = uvfits.random_tracks(rows, extent, w_ratio, seed=3)
        shape = (rows, channels, 2)
        vis = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype("c8")
        weight = rng.uniform(0.5, 1.5, shape).astype("f4")
        weight[rng.uniform(size=shape) < 0.05] = -1.0
        self.path = suite.path(name + ".uvfits")
        self.uvw = uvfits.write(self.path, uvw, self.freq, vis, weight)
        self.vis, self.weight = uvfits.stokes_i(vis.astype("c16"), weight.astype("f8"))
        self.image = uvfits.direct_dirty(self.uvw, self.freq, self.vis, self.weight,
                                         self.nx, self.ny, self.scale)
        self.psf = uvfits.direct_dirty(self.uvw, self.freq, np.ones_like(self.vis),
                                       self.weight, self.nx, self.ny, self.scale)

    def options(self):
        return [self.path, "--size", f"{self.nx},{self.ny}", "--scale",
                f"{float(self.scale / ASEC)!r}asec", "--weight", "natural"]


def check_image(suite, obs, accuracy):
    label = f"{obs.name}-{accuracy:.0e}"
    ran, prefix = suite.image(label, *obs.options(), "--accuracy", accuracy)
    if not ran:
        return
    for kind, exact in (("dirty", obs.image), ("psf", obs.psf)):
        image, header = read_image(f"{prefix}-{kind}.fits")
        suite.below(f"{label} {kind}: L2 error", l2_error(image, exact), accuracy)
        # The rms of a block's n pixels scatters by 1/sqrt(2n) about the promised one; the
        # PSF, one source whose errors are in step, reaches two such above.
        scatter = 2 / np.sqrt(2 * obs.nx * obs.ny / 64) if kind == "psf" else 0
        suite.below(f"{label} {kind}: worst block", worst_block(image, exact),
                    2 * accuracy * (1 + scatter))
    suite.equal(f"{label}: BITPIX", header["BITPIX"], -64 if accuracy < 1e-6 else -32)


def check_prediction(suite, obs, accuracy):
    label = f"{obs.name}-{accuracy:.0e} prediction"
    rng = np.random.default_rng(5)
    model = rng.normal(size=(obs.ny, obs.nx))
    model[rng.uniform(size=model.shape) < 0.7] = 0.0
    path = uvfits.write_model(suite.path("model.fits"), model, obs.scale)
    out = suite.path("predicted.uvfits")
    result = tessera("predict", obs.path, "--model", path, "--accuracy", accuracy,
                     "--overwrite", "-o", out)
    if not suite.ran(label, result):
        return
    exact = uvfits.direct_predict(obs.uvw, obs.freq, model, obs.scale)
    _, _, vis, _, _ = uvfits.read(out)
    for k in range(2):
        suite.below(f"{label}, correlation {k}: L2 error", l2_error(vis[..., k], exact),
                    accuracy + 6e-8)


def main():
    suite = Suite("direct_sum_full" if FULL else "direct_sum")
    wanted = SINGLE + DOUBLE
    for name in SETS:
        obs = Observation(suite, name)
        thin = wanted if FULL or name == "wide" else [1e-2, 1e-4, 1e-5, 1e-8, 1e-12]
        for accuracy in thin:
            check_image(suite, obs, accuracy)
        for accuracy in (wanted if FULL else [1e-3, 1e-5, 1e-7]):
            check_prediction(suite, obs, accuracy)
    suite.finish()


if __name__ == "__main__":
    main()
