"""Subtracts the brightest pixel of an observation's image, as a model array, and says what is
left; what is predicted of it goes to a file if one is named.

usage: python subtract_model.py OBS SIZE SCALE [OUT.uvfits], for example obs.uvfits 1024 1.5asec
"""
import sys

import numpy as np

import tessera

obs, size, scale = sys.argv[1], int(sys.argv[2]), sys.argv[3]
dirty = tessera.image(obs, size=size, scale=scale, no_psf=True).dirty.data
y, x = np.unravel_index(np.nanargmax(dirty), dirty.shape)
model = np.zeros_like(dirty)
model[y, x] = dirty[y, x]  # Jy/pixel
print(f"before: {dirty[y, x]:g} Jy/beam at pixel ({x}, {y})")

left = tessera.image(obs, size=size, scale=scale, no_psf=True, subtract=model).dirty.data
y, x = np.unravel_index(np.nanargmax(left), left.shape)
print(f"after: {left[y, x]:g} Jy/beam at pixel ({x}, {y})")

for found in tessera.predict(obs, model=model, scale=scale):
    print(f"predicted: {np.abs(found.vis).mean():g} Jy on {found.uvw.shape[0]} rows, "
          f"{','.join(found.correlations)}")
if len(sys.argv) > 4:
    tessera.predict(obs, model=model, scale=scale, output=sys.argv[4])
