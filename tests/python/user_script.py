"""A user's script, for mypy --strict and to run: usage: user_script.py OBS.uvfits"""
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import tessera
from tessera.wgridder import dirty2ms, last_report, ms2dirty
from tessera.wgridder.experimental import dirty2vis, vis2dirty


def grid(uvw: npt.NDArray[np.float64], freq: npt.NDArray[np.float64],
         vis: npt.NDArray[np.complex64]) -> npt.NDArray[np.float32]:
    dirty: npt.NDArray[np.float32] = vis2dirty(
        uvw=uvw, freq=freq, vis=vis, npix_x=64, npix_y=64, pixsize_x=1e-4, pixsize_y=1e-4,
        epsilon=1e-4, do_wgridding=True, wgt=None, mask=np.ones(vis.shape, np.uint8))
    back: npt.NDArray[np.complex64] = dirty2vis(
        uvw=uvw, freq=freq, dirty=dirty, pixsize_x=1e-4, pixsize_y=1e-4, epsilon=1e-4)
    older = ms2dirty(uvw, freq, back, None, 64, 64, 1e-4, 1e-4, epsilon=1e-4)
    dirty2ms(uvw, freq, older, epsilon=1e-4, pixsize_x=1e-4, pixsize_y=1e-4)
    report = last_report()
    if report is not None:
        print(report["plan"])
    return dirty


def main(obs: Path) -> int:
    print(tessera.__version__, tessera.library_version())
    described: dict[str, Any] = tessera.info(obs, flags=True)
    print(described["telescope"])
    images: tessera.Images = tessera.image(obs, size=(64, 64), scale="12asec", threads=2,
                                           weight="natural", stokes=("I",))
    peak: float = images.dirty.data.max()
    beam = images.psf.beam_deg
    print(peak, beam[0] if beam else None, images.select(kind="psf")[0].channel)
    model = np.zeros((64, 64), np.float32)
    model[32, 32] = peak
    predicted: tessera.Predictions = tessera.predict(obs, model=model, scale=5.8e-5)
    found: tessera.Prediction = predicted[0]
    tessera.image([obs], size=64, scale=5.8e-5, subtract=model)
    with tessera.Session(obs, size=64, scale=5.8e-5) as session:
        left: npt.NDArray[np.float64] = session.residual(model, channel=0)
        weights: tessera.Weights = session.weights()
        print(left.shape == session.shape, weights.num_vis, session.polarisations[0])
    try:
        tessera.predict(obs, model=model, scale="12 apples")
    except tessera.UsageError as error:
        print(error)
    dirty = grid(found.uvw, found.freq_hz, np.ascontiguousarray(found.vis[:, :, 0]))
    return dirty.size


if __name__ == "__main__":
    print(main(Path(sys.argv[1])))
