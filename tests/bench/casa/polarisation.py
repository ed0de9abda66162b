"""All Stokes parameters of a polarised field."""
import sys

from casatasks import exportfits, tclean

common = dict(vis=sys.argv[1], imsize=256, cell="0.1arcsec", stokes="IQUV", weighting="briggs",
              robust=0.5)
tclean(imagename="dirty", niter=0, **common)
tclean(imagename="clean", niter=600, gain=0.1, threshold="4mJy", **common)
for name in ("dirty.image", "clean.image", "clean.residual"):
    exportfits(name, name + ".fits", overwrite=True)
