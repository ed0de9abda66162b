"""Continuum of a compact source: Briggs weights, one scale."""
import sys

from casatasks import exportfits, tclean

common = dict(vis=sys.argv[1], spw="0", imsize=256, cell="0.1marcsec", weighting="briggs",
              robust=0.5)
tclean(imagename="dirty", niter=0, **common)
tclean(imagename="clean", deconvolver="hogbom", niter=500, gain=0.1, threshold="10mJy", **common)
for name in ("dirty.image", "clean.image", "clean.residual"):
    exportfits(name, name + ".fits", overwrite=True)
