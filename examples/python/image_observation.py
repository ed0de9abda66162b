"""Images an observation in memory and prints the brightest pixel of each image.

usage: python image_observation.py OBS SIZE SCALE, for example obs.uvfits 1024 1.5asec
"""
import sys

import numpy as np

import tessera

images = tessera.image(sys.argv[1], size=int(sys.argv[2]), scale=sys.argv[3])
for kind in ("dirty", "psf"):
    data = np.squeeze(getattr(images, kind).data)
    y, x = np.unravel_index(np.nanargmax(data), data.shape)
    print(f"{kind}: {data[y, x]:g} Jy/beam at pixel ({x}, {y})")
