"""Self-calibration of phases: image, predict, solve, apply, image again."""
import sys

import casatasks
from casatasks import exportfits, tclean

vis = sys.argv[1]
common = dict(vis=vis, imsize=256, cell="0.1arcsec", weighting="briggs", robust=0.5)
tclean(imagename="dirty", niter=0, datacolumn="data", **common)
tclean(imagename="before", niter=200, datacolumn="data", threshold="5mJy",
       savemodel="modelcolumn", **common)
casatasks.gaincal(vis=vis, caltable="phase.cal", solint="inf", combine="", calmode="p",
                  refant="0", minsnr=0)
casatasks.applycal(vis=vis, gaintable=["phase.cal"], applymode="calonly")
tclean(imagename="clean", niter=500, datacolumn="corrected", threshold="2mJy", **common)
for name in ("dirty.image", "clean.image", "clean.residual"):
    exportfits(name, name + ".fits", overwrite=True)
