"""Several pointings in one image. Of more than 200 pixels a side, CASA samples its convolution functions
at 4 points per cell in place of 10, and leaves 35 mJy uncleaned."""
import sys

from casatasks import exportfits, tclean

common = dict(vis=sys.argv[1], imsize=200, cell="2arcsec", weighting="natural", gridder="mosaic",
              phasecenter=0, pblimit=0.2)
tclean(imagename="dirty", niter=0, **common)
tclean(imagename="clean", niter=1000, threshold="2mJy", **common)
for name in ("dirty.image", "clean.image", "clean.residual"):
    exportfits(name, name + ".fits", overwrite=True)
