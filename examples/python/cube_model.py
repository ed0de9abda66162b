"""What is left of an observation less a model of several channels: a cube, or a set of files
MODEL-0000-model.fits ... as `tessera image --channels-out` writes them. Each channel of the
data takes the nearest channel of the model, or the value of a polynomial of TERMS terms
through the model's channels.

usage: python cube_model.py OBS SIZE SCALE MODEL [TERMS], for example obs.uvfits 1024 1.5asec out 2
"""
import sys

import numpy as np

import tessera

obs, size, scale, model = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
terms = int(sys.argv[5]) if len(sys.argv) > 5 else 0

with tessera.Session(obs, size=size, scale=scale) as session:
    before = session.dirty()
    left = session.residual(model, fit_spectral_pol=terms)
    flux = session.read_model(model, fit_spectral_pol=terms).sum()  # at the band's centre
    vis = session.predict(model, fit_spectral_pol=terms)[0].vis
print(f"model: {flux:.6g} Jy")
print(f"before: {np.abs(before).max():.6g} Jy/beam, after: {np.abs(left).max():.6g} Jy/beam")
for channel, of_channel in enumerate(np.abs(vis).mean((0, 2))):
    print(f"channel {channel}: {of_channel:.6g} Jy predicted")
