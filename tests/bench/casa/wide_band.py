"""A wide band in Taylor terms."""
import sys

from casatasks import exportfits, tclean

common = dict(vis=sys.argv[1], imsize=256, cell="0.1arcsec", weighting="briggs", robust=0.0)
tclean(imagename="dirty", niter=0, **common)
tclean(imagename="clean", deconvolver="mtmfs", nterms=2, scales=[0], niter=400, gain=0.1,
       threshold="5mJy", **common)
for name, other in (("dirty.image", "dirty.image"), ("clean.image.tt0", "clean.image"),
                    ("clean.residual.tt0", "clean.residual"), ("clean.alpha", "alpha")):
    exportfits(name, other + ".fits", overwrite=True)
