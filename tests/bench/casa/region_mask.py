"""Cleaning within regions that were drawn before."""
import sys

from casatasks import exportfits, tclean

with open("regions.crtf", "w") as file:
    file.write("#CRTFv0\ncircle[[128pix, 128pix], 8pix]\n"
               "rotbox[[188pix, 173pix], [14pix, 10pix], 20deg]\n")
common = dict(vis=sys.argv[1], imsize=256, cell="0.1arcsec", weighting="briggs", robust=0.5)
tclean(imagename="dirty", niter=0, **common)
tclean(imagename="clean", niter=300, gain=0.1, threshold="5mJy", mask="regions.crtf", **common)
for name in ("dirty.image", "clean.image", "clean.residual"):
    exportfits(name, name + ".fits", overwrite=True)
