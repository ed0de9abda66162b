"""Tapers and robustness, to choose a resolution."""
import sys

from casatasks import exportfits, tclean

for robust in (-2.0, 0.0, 2.0):
    for taper in ([], ["1.3arcsec"], ["60klambda"]):
        name = f"r{robust:g}-t{taper[0] if taper else 0}"
        tclean(vis=sys.argv[1], imagename=name, imsize=256, cell="0.1arcsec", weighting="briggs",
               robust=robust, uvtaper=taper, niter=0)
        exportfits(name + ".image", name + "-dirty.image.fits", overwrite=True)
