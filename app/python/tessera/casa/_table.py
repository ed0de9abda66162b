"""What becomes of each parameter of CASA's tasks, value by value.

`_translate.py` does what this table says, and a test holds both together. The page of the
manual is made of the table; this file stands alone, so that it can be run without the library:

    python app/python/tessera/casa/_table.py > docs/manual/from-casa.md
"""
from __future__ import annotations

from typing import Any, NamedTuple

DONE, APPROXIMATED, IGNORED, REFUSED = "done", "approximated", "ignored", "refused"


class Row(NamedTuple):
    """A parameter with one of its values, or with a kind of values."""
    name: str
    values: str
    status: str  # DONE ... REFUSED
    how: str
    # A call that has this value, beside vis, imagename, imsize and cell, and the options of
    # tessera image that come of it. A value of None: the option is not given.
    example: dict[str, Any] = {}
    options: dict[str, Any] = {}


def _select(name: str, option: str, values: str, value: str) -> Row:
    return Row(name, values, DONE, f"`--{option}`, in the syntax of MSSelection", {name: value},
               {option.replace("-", "_"): value})


_SPLIT = "split the rows off first, with CASA's mstransform or split"
_OF_AWPROJECT = "CASA reads it with `gridder` awproject only, which is refused"

TCLEAN: tuple[Row, ...] = (
    Row("vis", "a name, or a list of names", DONE,
        "observations: MeasurementSets, and UVFITS files, too"),
    Row("selectdata", "True, False", DONE, "with False, the selections below are not read",
        dict(selectdata=False, scan="3"), dict(select_scan=None)),
    Row("field", "''", APPROXIMATED,
        "the only field; a set with several needs the name of one, but for a mosaic",
        dict(field=""), dict(field=None)),
    Row("field", "'', with gridder='mosaic'", DONE, "all fields",
        dict(field="", gridder="mosaic"), dict(field=None, mosaic=True)),
    Row("field", "names and numbers, like '3C273' or '0,3'", DONE, "`--field`",
        dict(field="0,3"), dict(field="0,3")),
    _select("field", "select-field", "patterns and ranges, like 'M*' or '2~5'", "2~5"),
    Row("spw", "windows, and the same channels of all, like '0~2' or '0:10~20'", DONE,
        "`--spw` and `--channels`", dict(spw="0~2:10~20"), dict(spw="0-2", channels="10:21")),
    _select("spw", "select-spw", "other channels in each, frequencies, names", "0:1~2,1:5~9"),
    _select("timerange", "select-time", "times", "10:00:00~10:30:00"),
    Row("uvrange", "one range in metres or wavelengths, like '>1klambda' or '10~200m'", DONE,
        "`--uvrange` in wavelengths, `--minuvw-m` and `--maxuvw-m` in metres",
        dict(uvrange="1~20klambda"), dict(uvrange="1000.0:20000.0")),
    _select("uvrange", "select-uvrange", "several ranges", "0~100m,300~400m"),
    _select("antenna", "select-antenna", "antennas and baselines", "0~9&"),
    _select("scan", "select-scan", "scans", "3~5"),
    Row("observation", "numbers", REFUSED, _SPLIT, dict(observation="1")),
    _select("intent", "select-intent", "intents", "*TARGET*"),
    Row("datacolumn", "'corrected'", DONE, "CORRECTED_DATA if it is there, else DATA",
        dict(datacolumn="corrected"), dict(datacolumn=None)),
    Row("datacolumn", "'data', 'model'", DONE, "`--datacolumn DATA`, `MODEL_DATA`",
        dict(datacolumn="data"), dict(datacolumn="DATA")),
    Row("datacolumn", "'residual'", DONE, "CORRECTED_DATA less MODEL_DATA",
        dict(datacolumn="residual"),
        dict(datacolumn="CORRECTED_DATA", subtract_column="MODEL_DATA")),
    Row("imagename", "a name", DONE, "`imagename.image.fits` ..., see below"),
    Row("imagename", "a list of names", REFUSED, "call tclean once for each",
        dict(imagename=["a", "b"])),
    Row("imsize", "n, [n], [n, m]", DONE, "`--size`", dict(imsize=[320, 256]),
        dict(size="320,256")),
    Row("cell", "one size, or two equal ones", DONE, "`--scale`; a number is in arcseconds",
        dict(cell=["2arcsec", "2arcsec"]), dict(scale="2asec")),
    Row("cell", "two different sizes", REFUSED, "pixels are square: take the smaller size",
        dict(cell=["2arcsec", "3arcsec"])),
    Row("phasecenter", "''", DONE, "that of the field", dict(phasecenter="")),
    Row("phasecenter", "'', with gridder='mosaic'", APPROXIMATED,
        "the middle of the pointings; CASA takes the first one", dict(gridder="mosaic"),
        dict(center=None)),
    Row("phasecenter", "'J2000 12h30m49 +12d23m28', 'ICRS ...'", DONE,
        "`--center`; ICRS is taken as J2000, which differs by .02 arcseconds; a SkyCoord, too",
        dict(phasecenter="J2000 12h30m49.4 12d23m28"), dict(center="12:30:49.4,12:23:28")),
    Row("phasecenter", "a number of a field", DONE, "`--center` at the centre of this field"),
    Row("phasecenter", "B1950, galactic, planets, TRACKFIELD", REFUSED,
        "give the position in J2000", dict(phasecenter="TRACKFIELD")),
    Row("stokes", "'I', 'IV', 'IQUV', 'RRLL', 'XX' ...", DONE,
        "`--stokes`; with several, `--cube`, so that a file has all of them",
        dict(stokes="RRLL"), dict(stokes="RR,LL", cube=True)),
    Row("stokes", "'pseudoI'", APPROXIMATED,
        "`--stokes I`: samples of which one hand is flagged are left out",
        dict(stokes="pseudoI"), dict(stokes="I")),
    Row("projection", "'SIN'", DONE, "the projection of all images", dict(projection="SIN")),
    Row("projection", "others", REFUSED, "regrid the images, with reproject or CASA's imregrid",
        dict(projection="TAN")),
    Row("startmodel", "a FITS image or cube of the same pixels", DONE, "`--continue` from it",
        dict(startmodel="m.model.fits")),
    Row("startmodel", "images of CASA, Taylor terms", REFUSED,
        "write one image as FITS first, with CASA's exportfits",
        dict(startmodel=["m.tt0", "m.tt1"])),
    Row("specmode", "'mfs', 'cont'", DONE, "one image of all channels", dict(specmode="mfs"),
        dict(cube=None)),
    Row("specmode", "'mvc'", APPROXIMATED, "as 'mfs': the sum is the same",
        dict(specmode="mvc"), dict(cube=None)),
    Row("specmode", "'cube'", DONE, "`--cube --frame`",
        dict(specmode="cube", outframe="LSRK"), dict(cube=True, frame="lsrk")),
    Row("specmode", "'cubedata'", DONE, "`--cube --frame topo`: the channels of the data",
        dict(specmode="cubedata"), dict(cube=True, frame="topo")),
    Row("specmode", "'cubesource'", REFUSED,
        "no frame moves with the source: take specmode='cube', outframe='BARY'",
        dict(specmode="cubesource")),
    Row("reffreq", "''", DONE, "the middle of the band",
        dict(reffreq="", deconvolver="mtmfs"), dict(reference_freq="middle")),
    Row("reffreq", "a frequency", DONE, "`--reference-freq`: Taylor terms are about it",
        dict(reffreq="1.4GHz", deconvolver="mtmfs"), dict(reference_freq="1.4GHz")),
    Row("nchan", "-1, n", DONE, "`--nchan`", dict(specmode="cube", nchan=8), dict(nchan=8)),
    Row("start", "'', a frequency, a velocity", DONE, "`--start`",
        dict(specmode="cube", start="-300km/s"), dict(start="-300km/s")),
    Row("start", "a number of a channel", APPROXIMATED,
        "`--start`, counted from the end of the data at which the cube begins",
        dict(specmode="cube", start=5), dict(start="5")),
    Row("start", "records of measures", REFUSED, "write it as text, like start='1.4195GHz'",
        dict(specmode="cube", start={"m0": 1})),
    Row("width", "'', a number of channels, a frequency, a velocity", DONE, "`--width`",
        dict(specmode="cube", width="5km/s"), dict(width="5km/s")),
    Row("outframe", "'LSRK', 'BARY', 'TOPO', 'GALACTO', ''", DONE,
        "`--frame`; '' is LSRK", dict(specmode="cube", outframe="bary"), dict(frame="bary")),
    Row("outframe", "'LSRD', 'LGROUP', 'CMB', 'REST'", REFUSED,
        "take LSRK or BARY, and shift the axis of the cube",
        dict(specmode="cube", outframe="CMB")),
    Row("veltype", "'radio'", DONE, "velocities are c(1 - f/f0); the axis is of frequency",
        dict(specmode="cube", width="5km/s"), dict(velocity=None)),
    Row("veltype", "'optical'", DONE,
        "`--velocity optical`, if start or width is a velocity; the axis is of velocity then",
        dict(specmode="cube", width="5km/s", veltype="optical"), dict(velocity="optical")),
    Row("veltype", "others", REFUSED, "take 'radio' or 'optical'",
        dict(specmode="cube", width="5km/s", veltype="true")),
    Row("restfreq", "[], one frequency", DONE, "`--restfreq`",
        dict(specmode="cube", restfreq=["1420.405752MHz"]), dict(restfreq="1420.405752MHz")),
    Row("restfreq", "several", REFUSED, "give one, and make a cube for each line",
        dict(specmode="cube", restfreq=["1.1GHz", "1.2GHz"])),
    Row("interpolation", "'linear', 'nearest'", DONE, "`--interpolation`",
        dict(specmode="cube", interpolation="nearest"), dict(interpolation="nearest")),
    Row("interpolation", "'cubic'", APPROXIMATED, "linear",
        dict(specmode="cube", interpolation="cubic"), dict(interpolation="linear")),
    Row("perchanweightdensity", "True", DONE, "each channel of a cube has its own density",
        dict(specmode="cube", weighting="briggs"), dict(mf_weighting=None)),
    Row("perchanweightdensity", "False", DONE, "`--mf-weighting`",
        dict(specmode="cube", weighting="briggs", perchanweightdensity=False),
        dict(mf_weighting=True)),
    Row("gridder", "'standard', 'gridft', 'ft'", DONE,
        "`--w none`: w is ignored, as in CASA, so that sources far from the centre are smeared; "
        "a warning tells how far out, and 'wproject' corrects it",
        dict(gridder="standard"), dict(w="none")),
    Row("gridder", "'wproject', 'wprojectft', 'widefield'", DONE,
        "w is corrected to the accuracy of gridding, 1e-4", dict(gridder="wproject"),
        dict(w=None)),
    Row("gridder", "'mosaic', 'mosaicft', 'ftmosaic', 'imagemosaic'", DONE,
        "`--mosaic --primary-beam auto --pb-limit`; w is corrected, too",
        dict(gridder="mosaic", pblimit=0.1), dict(mosaic=True, primary_beam="auto", pb_limit=0.1)),
    Row("gridder", "'awproject', 'awprojectft', 'awp2', 'awphpg'", REFUSED,
        "take gridder='wproject' and pbcor=True", dict(gridder="awproject")),
    Row("facets", "1", DONE, "one image", dict(facets=1)),
    Row("facets", "more", APPROXIMATED, "one image, in which w is corrected everywhere",
        dict(gridder="widefield", facets=3)),
    Row("psfphasecenter", "any", IGNORED, "the PSF of a mosaic is the mean of those of its pointings",
        dict(psfphasecenter="1")),
    Row("wprojplanes", "any", APPROXIMATED,
        "tessera chooses the planes so that images are right to 1e-4",
        dict(gridder="wproject", wprojplanes=128)),
    Row("vptable", "''", DONE, "`--primary-beam auto`: that of the telescope",
        dict(pbcor=True), dict(primary_beam="auto")),
    Row("vptable", "a table", REFUSED,
        "call tessera.image with primary_beam='poly:FILE' or a FITS image of the beam",
        dict(pbcor=True, vptable="vp.tab")),
    Row("mosweight", "False", DONE, "one density for the samples of all pointings",
        dict(mosweight=False), {}),
    Row("mosweight", "True", APPROXIMATED,
        "one density for the samples of all pointings, as with False", dict(mosweight=True), {}),
    *(Row(name, "any", IGNORED, _OF_AWPROJECT, {name: value}) for name, value in (
        ("aterm", False), ("psterm", True), ("wbawp", False))),
    Row("conjbeams", "any", IGNORED,
        "the beam of an image is the mean of those of its channels", dict(conjbeams=True)),
    Row("cfcache", "any", IGNORED, _OF_AWPROJECT, dict(cfcache="x.cf")),
    Row("usepointing", "any", IGNORED, "antennas point to REFERENCE_DIR of the field",
        dict(usepointing=True)),
    *(Row(name, "any", IGNORED, _OF_AWPROJECT, {name: value}) for name, value in (
        ("computepastep", 5.0), ("rotatepastep", 5.0), ("pointingoffsetsigdev", [1.0]))),
    Row("pblimit", "a level", APPROXIMATED,
        "`--pb-limit`: .image.pbcor is blank below it; other images are not, but those of mosaics",
        dict(pbcor=True, pblimit=0.1), dict(pb_limit=0.1)),
    Row("pblimit", "below 0", DONE, "nothing is blank but where the beam is 0",
        dict(pbcor=True, pblimit=-0.1), dict(pb_limit=1e-6)),
    Row("normtype", "'flatnoise'", DONE, "what images of one field and of mosaics are", {}),
    Row("normtype", "others", IGNORED, "minor cycles work on the image of even noise; .image.pbcor "
        "is that of fluxes", dict(normtype="flatsky")),
    Row("deconvolver", "'hogbom'", DONE, "minor loops subtract the whole PSF",
        dict(deconvolver="hogbom", niter=9), dict(niter=9)),
    Row("deconvolver", "'clark', 'clarkstokes', 'clark_exp', 'clarkstokes_exp'", APPROXIMATED,
        "as 'hogbom', which is as fast here; with 'clarkstokes' and several Stokes parameters "
        "`--join-polarizations`",
        dict(deconvolver="clarkstokes", stokes="IQUV", niter=9),
        dict(join_polarizations=True)),
    Row("deconvolver", "'multiscale'", DONE,
        "`--multiscale --multiscale-choice fit`: as in CASA, the scale that lowers the residual most",
        dict(deconvolver="multiscale", scales=[0, 5, 15], niter=9),
        dict(multiscale=True, multiscale_choice="fit")),
    Row("deconvolver", "'mtmfs'", APPROXIMATED,
        "channels that are cleaned together, with a polynomial of nterms terms for each "
        "component: `--channels-out --join-channels --fit-spectral-pol`",
        dict(deconvolver="mtmfs", niter=9),
        dict(join_channels=True, fit_spectral_pol=2, channels_out=8)),
    Row("deconvolver", "'asp'", APPROXIMATED,
        "`--multiscale`, whose scales follow from the beam and reach to the image's size",
        dict(deconvolver="asp", niter=9), dict(multiscale=True, multiscale_scales=None)),
    Row("deconvolver", "'mem'", REFUSED, "take deconvolver='multiscale'",
        dict(deconvolver="mem", niter=9)),
    Row("scales", "a list of pixels", DONE,
        "`--multiscale-scales` of 1.65 s - 2.5, at least the smaller of s and 2: tessera's components are as "
        "wide as those of CASA then",
        dict(deconvolver="multiscale", scales=[0, 10], niter=9), dict(multiscale_scales="0,14")),
    Row("nterms", "1 to 16", DONE, "`--fit-spectral-pol`, of four times as many channels",
        dict(deconvolver="mtmfs", nterms=3, niter=9),
        dict(fit_spectral_pol=3, channels_out=12)),
    Row("smallscalebias", "0", DONE, "scales are chosen by their fit alone",
        dict(deconvolver="multiscale", scales=[0, 6], niter=9),
        dict(multiscale_choice="fit", multiscale_scale_bias=None)),
    Row("smallscalebias", "others, -1 to 1", APPROXIMATED,
        "`--multiscale-scale-bias` of .6 + .4 b in place of the fit: larger values prefer small "
        "scales, too",
        dict(deconvolver="multiscale", scales=[0, 6], smallscalebias=.5, niter=9),
        dict(multiscale_scale_bias=.8)),
    Row("fusedthreshold", "any", IGNORED, "'asp' is not fused with another algorithm",
        dict(deconvolver="asp", fusedthreshold=.1)),
    Row("largestscale", "-1", DONE, "no limit", dict(deconvolver="asp", niter=9)),
    Row("largestscale", "pixels", APPROXIMATED,
        "scales of 0, 4, 8, 16 ... pixels up to it",
        dict(deconvolver="asp", largestscale=20, niter=9),
        dict(multiscale_scales="0,4,8,16")),
    Row("restoration", "True, False", DONE, "with False there is no .image",
        dict(restoration=False)),
    Row("restoringbeam", "'', one size, [major, minor, angle]", DONE,
        "`--beam-size`, `--beam-shape`; '' is `--lobe-beam`, fitted to the main lobe of the PSF",
        dict(restoringbeam=["8arcsec", "6arcsec", "30deg"], niter=9),
        dict(beam_shape="8asec,6asec,30deg")),
    Row("restoringbeam", "'common'", DONE, "`--common-beam`",
        dict(specmode="cube", restoringbeam="common", niter=9), dict(common_beam=True)),
    Row("pbcor", "True, False", DONE,
        "`--primary-beam auto --pbcor`; .pb is made with pbcor=True, and of mosaics", dict(pbcor=True),
        dict(pbcor=True, primary_beam="auto")),
    Row("outlierfile", "a file", REFUSED,
        "make imsize larger, or subtract a model of the outliers: tessera.image(subtract=...)",
        dict(outlierfile="out.txt")),
    Row("weighting", "'natural', 'uniform', 'briggs'", DONE,
        "`--weight`, `--padding 1` for CASA's cells of the density, and `--hand-weight mean`. "
        "Sides of the image that are not even have a cell more. `--density-frame lsrk` counts "
        "cells at CASA's frequencies",
        dict(weighting="briggs", robust=.5, imsize=250),
        dict(weight="briggs:0.5", padding=1.0, hand_weight="mean", density_frame="lsrk",
             super_weight=252 / 250)),
    Row("weighting", "'superuniform'", DONE,
        "`--weight uniform --density-box`: a density of the cells up to npixels around each (3 with "
        "npixels=0)",
        dict(weighting="superuniform"), dict(weight="uniform", density_box=3)),
    Row("weighting", "'briggsbwtaper'", APPROXIMATED,
        "Briggs weights by the density of all channels, without the taper in bandwidth",
        dict(weighting="briggsbwtaper", perchanweightdensity=False, specmode="cube"),
        dict(weight="briggs:0.5", mf_weighting=True)),
    Row("weighting", "'briggsabs', 'radial'", REFUSED, "take weighting='briggs'",
        dict(weighting="radial")),
    Row("robust", "-2 to 2", DONE, "`--weight briggs:R`",
        dict(weighting="briggs", robust=-1.0), dict(weight="briggs:-1.0")),
    Row("noise", "any", IGNORED, "it belongs to 'briggsabs'", dict(noise="2.0Jy")),
    Row("npixels", "0", DONE, "cells as they are", dict(weighting="uniform", npixels=0),
        dict(super_weight=None)),
    Row("npixels", "more, with 'superuniform'", DONE, "`--density-box`",
        dict(weighting="superuniform", npixels=1), dict(density_box=1)),
    Row("npixels", "more, with others", REFUSED,
        "CASA makes empty images of it: take weighting='superuniform'",
        dict(weighting="uniform", npixels=1)),
    Row("uvtaper", "'', one size of the sky or of baselines", DONE,
        "`--taper-gaussian --taper-at visibilities`; 10klambda, where weights are halved, are "
        "2 ln 2 / pi / 10000 rad",
        dict(uvtaper=["10klambda"]),
        dict(taper_gaussian="9.101871863asec", taper_at="visibilities")),
    Row("uvtaper", "[major, minor, angle]", DONE, "`--taper-gaussian MAJ,MIN,PA`",
        dict(uvtaper=["8arcsec", "2arcsec", "30deg"]),
        dict(taper_gaussian="8.0asec,2.0asec,30.0deg")),
    Row("niter", "n", DONE, "`--niter`", dict(niter=500), dict(niter=500)),
    Row("gain", "a share", DONE, "`--gain`", dict(niter=9, gain=.2), dict(gain=.2)),
    Row("threshold", "Jy, or text with a unit", DONE, "`--threshold`",
        dict(niter=9, threshold="2mJy"), dict(threshold="2mJy")),
    Row("nsigma", "k", DONE, "`--auto-threshold`: k times 1.4826 MAD of the residual",
        dict(niter=9, nsigma=3.0), dict(auto_threshold=3.0)),
    Row("cycleniter", "-1", DONE, "no limit", dict(niter=9, cycleniter=-1)),
    Row("cycleniter", "n", DONE, "`--cycleniter`", dict(niter=9, cycleniter=5),
        dict(cycleniter=5)),
    Row("cyclefactor", "f", DONE, "`--cyclefactor`", dict(niter=9, cyclefactor=1.5),
        dict(cyclefactor=1.5)),
    Row("minpsffraction", "f", DONE, "`--min-psf-fraction`",
        dict(niter=9, minpsffraction=.1), dict(min_psf_fraction=.1)),
    Row("maxpsffraction", "f", DONE, "`--max-psf-fraction`",
        dict(niter=9, maxpsffraction=.5), dict(max_psf_fraction=.5)),
    Row("interactive", "False", DONE, "no window opens", dict(interactive=False)),
    Row("interactive", "True", REFUSED,
        "a script has no window: draw a mask in CARTA or ds9, and pass it as mask; "
        "Session.clean() calls a function of yours after each major cycle",
        dict(interactive=True)),
    Row("nmajor", "-1, n", DONE, "`--nmiter`; -1 is no limit", dict(niter=9, nmajor=4),
        dict(nmiter=4)),
    Row("fullsummary", "False, True", APPROXIMATED,
        "summaryminor has what each minor cycle ended with", dict(fullsummary=True)),
    Row("usemask", "'user'", DONE, "`mask`", dict(usemask="user")),
    Row("usemask", "'pb'", DONE, "`--pb-mask`", dict(niter=9, usemask="pb", pbmask=.3),
        dict(pb_mask=.3)),
    Row("usemask", "'auto-multithresh'", DONE, "`--auto-multithresh`",
        dict(niter=9, usemask="auto-multithresh"), dict(auto_multithresh=True)),
    Row("mask", "''", DONE, "components anywhere", dict(mask="")),
    Row("mask", "a FITS image", DONE, "`--fits-mask`", dict(niter=9, mask="m.fits"),
        dict(fits_mask="m.fits")),
    Row("mask", "an image of CASA", DONE, "`--casa-mask`", dict(niter=9, mask="FOLDER"),
        dict(casa_mask="FOLDER")),
    Row("mask", "a file of regions (CRTF, ds9), or a region as text", DONE, "`--mask`",
        dict(niter=9, mask="m.crtf"), dict(mask="m.crtf")),
    Row("mask", "a list", REFUSED, "join the masks into one", dict(niter=9, mask=["a", "b"])),
    Row("pbmask", "a level", DONE, "`--pb-mask`", dict(niter=9, usemask="pb", pbmask=.4),
        dict(pb_mask=.4)),
    *(Row(name, "any", DONE, f"`--{option}`",
          {"niter": 9, "usemask": "auto-multithresh", name: value},
          {option.replace("-", "_"): "no" if value is False else value})
      for name, option, value in (
          ("sidelobethreshold", "sidelobe-threshold", 2.0),
          ("noisethreshold", "noise-threshold", 4.25),
          ("lownoisethreshold", "low-noise-threshold", 2.0),
          ("negativethreshold", "negative-threshold", 15.0),
          ("smoothfactor", "smooth-factor", 2.0), ("minbeamfrac", "min-beam-frac", .5),
          ("cutthreshold", "cut-threshold", .1), ("growiterations", "grow-iterations", 50),
          ("dogrowprune", "grow-prune", False),
          ("minpercentchange", "min-percent-change", 1.0))),
    Row("verbose", "False, True", DONE, "with True the log is shown on stderr",
        dict(verbose=True), dict(log="info")),
    Row("fastnoise", "True, False", DONE, "`--fast-noise`, of 'auto-multithresh'",
        dict(niter=9, usemask="auto-multithresh", fastnoise=False), dict(fast_noise="no")),
    Row("restart", "True", DONE,
        "goes on from imagename.model.fits if it is there; replaces the other images"),
    Row("restart", "False", DONE, "takes the next free name, imagename_1 ..."),
    Row("savemodel", "'none'", DONE, "no column", dict(savemodel="none"),
        dict(update_model=None)),
    Row("savemodel", "'modelcolumn'", DONE, "`--update-model`: MODEL_DATA",
        dict(niter=9, savemodel="modelcolumn"), dict(update_model=True)),
    Row("savemodel", "'virtual'", APPROXIMATED,
        "as 'modelcolumn': the column takes room on the disk, and gaincal reads it likewise",
        dict(niter=9, savemodel="virtual"), dict(update_model=True)),
    Row("savemodel", "'modelcolumn' and 'virtual', with specmode='cube'", REFUSED,
        "channels of a cube are not those of the data; call ft(vis, model='imagename.model', usescratch=True) "
        "afterwards, which takes the nearest channel of the cube",
        dict(niter=9, savemodel="modelcolumn", specmode="cube")),
    Row("savemodel", "the same of a mosaic that is a cube, or of several Stokes parameters or terms", REFUSED,
        "models of mosaics are written of one image of Stokes I; tessera.image(mosaic=True, output='NAME', ...) makes "
        "the others, and tessera.predict(vis, mosaic=True, model='NAME', column='MODEL_DATA') writes what each field sees",
        dict(niter=9, savemodel="modelcolumn", stokes="IQUV", gridder="mosaic")),
    Row("calcres", "True, False", APPROXIMATED, "the residual is made anew in any case",
        dict(calcres=False)),
    Row("calcpsf", "True, False", APPROXIMATED, "the PSF is made anew in any case",
        dict(calcpsf=False)),
    Row("psfcutoff", ".35", DONE, "`--lobe-beam`", dict(psfcutoff=.35), dict(lobe_beam=True)),
    Row("psfcutoff", "others", IGNORED, "the level is .35",
        dict(psfcutoff=.5)),
    Row("parallel", "False, True", DONE,
        "all threads of the process work in any case; for several nodes run the program with MPI",
        dict(parallel=True)),
)

FT: tuple[Row, ...] = (
    Row("vis", "a name", DONE, "a MeasurementSet, whose column MODEL_DATA is written"),
    Row("field", "a name or number", DONE, "`--field`"),
    Row("field", "'' or a list, of several fields", REFUSED,
        "call it once for each field, as with field='0'; of a mosaic, tclean with "
        "savemodel='modelcolumn' writes the model that each field sees"),
    Row("spw", "windows", DONE, "`--spw`"),
    Row("model", "a FITS image or cube", DONE, "`tessera predict --model`; a list of tessera's "
        "sources, too"),
    Row("model", "a list of Taylor terms", REFUSED,
        "give the cube of the channels' models, imagename.model.cube.fits"),
    Row("nterms", "1", DONE, "one image"),
    Row("nterms", "more", REFUSED, "give imagename.model.cube.fits as model"),
    Row("reffreq", "any", IGNORED, "it belongs to Taylor terms"),
    Row("complist", "a table", REFUSED, "give a list of sources as text, as model"),
    Row("incremental", "False", DONE, "what is in the column is replaced"),
    Row("incremental", "True", REFUSED, "join the models into one image, and predict that"),
    Row("usescratch", "True", DONE, "the column is written"),
    Row("usescratch", "False", APPROXIMATED, "the column is written in any case"),
)

UVCONTSUB: tuple[Row, ...] = (
    Row("vis", "a name", DONE, "the set, which is not changed"),
    Row("outputvis", "a name", APPROXIMATED,
        "a small file that tells tclean what to subtract while it reads vis; no other program "
        "reads it"),
    Row("field", "''", DONE, "that of tclean"),
    Row("field", "others", REFUSED, "select it in tclean"),
    Row("spw", "''", DONE, "all windows"),
    Row("spw", "others", REFUSED, "select them in tclean"),
    Row("scan", "any but ''", REFUSED, _SPLIT),
    Row("intent", "any but ''", REFUSED, _SPLIT),
    Row("array", "any but ''", REFUSED, _SPLIT),
    Row("observation", "any but ''", REFUSED, _SPLIT),
    Row("datacolumn", "'data', 'corrected'", DONE, "`--datacolumn`"),
    Row("fitspec", "'', channels like '0:0~20;40~60'", DONE,
        "the channels that are fitted: `--line-channels` has the others"),
    Row("fitspec", "frequencies, records of fields", REFUSED, "give channels"),
    Row("fitmethod", "any", IGNORED, "both methods of CASA find the same polynomial"),
    Row("fitorder", "0 to 9", DONE, "`--uvcontsub ORDER`"),
    Row("writemodel", "False", DONE, "no column"),
    Row("writemodel", "True", REFUSED, "predict a model of the continuum, with ft"),
)


def names(table: tuple[Row, ...]) -> list[str]:
    """The parameters of a task, in its order."""
    return list(dict.fromkeys(row.name for row in table))


def share_done(table: tuple[Row, ...]) -> float:
    """Share of the parameters of which some value is done or approximated."""
    found = {row.name for row in table if row.status in (DONE, APPROXIMATED)}
    return len(found) / len(names(table))


_HEAD = """\
# From CASA

<!-- made by app/python/tessera/casa/_table.py: edit it, and run it again -->
`tessera.casa` has CASA's tasks by their names and with their parameters, so that a script of CASA needs
another import:

```python
from tessera.casa import tclean, uvcontsub, exportfits, predict_model as ft

found = tclean(vis="target.ms", imagename="target", imsize=1024, cell="1.5arcsec", weighting="briggs",
               robust=0.5, deconvolver="multiscale", scales=[0, 5, 15], niter=100000, nsigma=3.0,
               savemodel="modelcolumn")
found["iterdone"], found["nmajordone"], found["stopcode"]
```

Parameters have the meaning of CASA 6.7. A name that tclean does not have is an error that names the nearest
one. The table below says for each value what becomes of it:

| | |
|---|---|
| done | as CASA does it |
| approximated | nearly so; the text says how |
| ignored | the value plays no part; the text says why. A warning tells of values other than the default |
| refused | a `tessera.UsageError` with the reason and the nearest value that works |

{share:.0f} % of the parameters of tclean have values that are done or approximated.

## Files

Files have CASA's names with `.fits`:

| file | holds |
|---|---|
| `imagename.image.fits` | the restored image; without `niter` the dirty image |
| `imagename.residual.fits`, `.psf.fits`, `.model.fits` | the residual, the point spread function, the model |
| `imagename.pb.fits`, `.image.pbcor.fits` | with `pbcor=True`: the primary beam, and the image divided by it |
| `imagename.weight.fits`, `.pb.fits` | of mosaics: the mean square of the beams of the pointings by their weights, and the root of this over its largest value |
| `imagename.mask.fits` | the mask, if tessera has made one |
| `imagename.image.tt0.fits`, `.tt1.fits` ... | with mtmfs: the Taylor terms of the restored image |
| `imagename.residual.tt0.fits`, `.psf.tt0.fits`, `.model.tt0.fits` | with mtmfs: those of the mean over the channels |
| `imagename.alpha.fits`, `.alpha.error.fits` | with mtmfs: the spectral index and its error |
| `imagename.model.cube.fits` | with mtmfs: the models of the channels, from which a restart goes on |

Files of an earlier call are replaced. Those that a call does not make stay, as in CASA, and a warning names
them: `.image.pbcor.fits` after a call with `pbcor=False`. A file of one of these names that tessera did not write
is never replaced: the call ends with an error before it begins. Where a parameter names an image, `x.model` finds
`x.model.fits`.

## What tclean returns

A dictionary with CASA's keys: `iterdone`, `nmajordone`, `niter`, `threshold`, `nsigma`, `loopgain`, `stopcode`,
`stopDescription`, `summaryminor` (`[field][channel][stokes]`, with lists of `iterDone`, `peakRes`, `modelFlux`
and `cycleThresh`), and `imagename`, the name without `.image.fits`. Stop codes are CASA's: 1 number of
iterations, 2 threshold, 4 no change of the peak, 5 divergence, 7 nothing to clean, 8 `nsigma`, 9 `nmajor`.
"""


def _rows(table: tuple[Row, ...]) -> str:
    lines = ["| parameter | value | | |", "|---|---|---|---|"]
    for row in table:
        lines.append(f"| `{row.name}` | {row.values} | {row.status} | {row.how} |")
    return "\n".join(lines)


def page() -> str:
    """The page of the manual."""
    return "\n".join((
        _HEAD.format(share=100 * share_done(TCLEAN)),
        "## tclean", "", _rows(TCLEAN), "",
        "## predict_model (ft)", "", _rows(FT), "",
        "## uvcontsub", "", _rows(UVCONTSUB), "",
        "## exportfits and importfits", "",
        "Images are FITS files already. `exportfits(imagename, fitsimage, overwrite=False)` copies "
        "`imagename.fits` to\nanother name, and `importfits(fitsimage, imagename, overwrite=False)` "
        "a FITS image to `imagename.fits`. Images of\nCASA, which are folders, need CASA's own "
        "exportfits.", ""))


if __name__ == "__main__":
    print(page(), end="")
