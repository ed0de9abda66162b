"""A cube of narrow channels in the local standard of rest."""
import sys

from casatasks import exportfits, tclean

common = dict(vis=sys.argv[1], imsize=256, cell="0.1arcsec", specmode="cube", outframe="LSRK",
              start="4.998GHz", width="1.1MHz", nchan=3, interpolation="nearest",
              weighting="natural")
tclean(imagename="dirty", niter=0, **common)
tclean(imagename="clean", niter=400, threshold="20mJy", **common)
for name in ("dirty.image", "clean.image", "clean.residual"):
    exportfits(name, name + ".fits", overwrite=True)
