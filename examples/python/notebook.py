"""Cells of a notebook: cleans an observation, restores it with a round beam, and plots it with
its coordinates. The lines between the cells' marks are all there is to it.

usage: python notebook.py OBS SIZE SCALE PICTURE.png, for example obs.uvfits 512 2asec sky.png
"""
import sys

OBS, SIZE, SCALE, PICTURE = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]

# %% clean
import tessera
session = tessera.Session(OBS, size=SIZE, scale=SCALE, weight="briggs:0")
images = session.clean(niter=10000, auto_threshold=3)

# %% restore
sky = session.restore(images.model.data, images.residual.data, beam=session.beam()[0])

# %% plot
import matplotlib.pyplot as plt
axes = plt.subplot(projection=session.wcs)
plt.colorbar(axes.imshow(sky * 1e3, origin="lower", vmax=sky.max() * 300), label="mJy/beam")
axes.set(xlabel="right ascension", ylabel="declination")
plt.savefig(PICTURE)
