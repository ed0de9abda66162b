"""Cleaning within automatic masks, down to a multiple of the noise."""
import sys

from casatasks import exportfits, tclean

common = dict(vis=sys.argv[1], imsize=256, cell="0.1arcsec", weighting="briggs", robust=0.5)
tclean(imagename="dirty", niter=0, **common)
tclean(imagename="clean", niter=5000, nsigma=5.0, usemask="auto-multithresh", noisethreshold=5.0,
       sidelobethreshold=2.0, lownoisethreshold=1.5, minbeamfrac=0.3, nmajor=10, **common)
for name in ("dirty.image", "clean.image", "clean.residual"):
    exportfits(name, name + ".fits", overwrite=True)
