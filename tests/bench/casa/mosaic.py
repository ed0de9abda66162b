"""Several pointings in one image."""
import sys

from casatasks import exportfits, tclean

common = dict(vis=sys.argv[1], imsize=256, cell="2arcsec", weighting="natural", gridder="mosaic",
              phasecenter=0, pblimit=0.2)
tclean(imagename="dirty", niter=0, **common)
tclean(imagename="clean", niter=1000, threshold="2mJy", **common)
for name in ("dirty.image", "clean.image", "clean.residual"):
    exportfits(name, name + ".fits", overwrite=True)
