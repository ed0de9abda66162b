"""A jet in several scales, with natural weights."""
import sys

from casatasks import exportfits, tclean

common = dict(vis=sys.argv[1], spw="0", imsize=[256, 256], cell=["0.2marcsec"], weighting="natural")
tclean(imagename="dirty", niter=0, **common)
tclean(imagename="clean", deconvolver="multiscale", scales=[0, 5, 15], niter=500, gain=0.1,
       threshold="5mJy", **common)
for name in ("dirty.image", "clean.image", "clean.residual"):
    exportfits(name, name + ".fits", overwrite=True)
