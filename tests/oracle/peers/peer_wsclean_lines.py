#!/usr/bin/env python3
"""Command lines of WSClean, unchanged, through WSClean and through tessera-wsclean: the same files by
the same names, with the same positions, beams and units in their headers, and the same pixels. The
lines are of the kind that pipelines use. Skipped without WSClean or MeasurementSets. The fast tier takes some lines
of each kind, and those whose files later checks need.

Limits: dirty images and PSFs to 1e-5 of the peak; restored images as peer_wsclean_cleaned.py has
them, 3 σ + 1 % of the local brightness. Beams agree to 1e-3. Where WSClean does something else, the
line has other limits, or that file is not compared:
- WSClean's last residual with -mgain 1 is not made from the data;
- the unit of its mean model image is Jy/beam;
- it makes no mean of first residuals;
- its dirty images of XY are of XY alone, and what it cleans is of XY and YX together.
"""
import os
import re
import shutil
import sys
from datetime import datetime

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import (ASEC, BIN, FULL, MS_COLUMN, Suite, casacore_python, fits_module, have_ms,
                 mpiexec, offset_radec, peak_error, read_image, run, simulate, skip, wcs_difference, write_sky)
from peer_wsclean_cleaned import largest_nearby, write_mask

RA, DEC, SIZE, SCALE = 60.0, -30.0, 320, 4.0
OURS = os.path.join(os.path.dirname(BIN), "tessera-wsclean")
FIELD = f"-size {SIZE} {SIZE} -scale {SCALE}asec"
EXACT = "-no-small-inversion -use-wgridder -wgridder-accuracy 1e-6"
# Of complex images WSClean's other gridder makes the imaginary ones. It is some 1e-3 off, and leaves the
# visibilities of its longest baselines out of predictions.
STACKED = ("-no-small-inversion -nwlayers 60 -kernel-size 11 -oversampling 4095 -padding 1.6 -wgridder-accuracy 1e-6 "
           "-weight briggs 0")
QUICK = "-log-time -abs-mem 2 -parallel-reordering 2 -no-update-model-required"
# Files that tessera writes beside WSClean's.
MORE = re.compile(r"(-(terms-\d+|spectral-index)(-error)?|-MFS-first-residual)\.fits$")
# Limits of dirty images and PSFs, of beams, and whether restored images are compared, or their limit.
SAME = (1e-5, 1e-3, True)
OTHER_RESIDUAL = (1e-5, 1e-3, False)
STACKED_SAME, STACKED_OTHER = (2e-3, 1e-3, .01), (2e-3, 1e-3, False)

# What the fast tier takes.
FAST = {"plain", "defaults", "two-sets", "selected", "shift-clean", "edge", "super", "spans", "oxkat-whole",
        "caracal-list", "polkat", "lwa", "snapshots", "few-channels", "theoretic", "cross-hands"}


def lines(mask):
    """Name, options, number of observations and limits of each line."""
    return [
        # what WSClean does by itself
        ("plain", f"{FIELD} -weight natural", 1, SAME),
        ("defaults", f"{FIELD} -niter 500 -no-update-model-required", 1, OTHER_RESIDUAL),
        ("psf", f"{FIELD} -weight briggs 0.5 -make-psf", 1, SAME),
        ("psf-only", f"{FIELD} -make-psf-only -niter 100", 1, SAME),
        ("no-dirty", f"{FIELD} -no-dirty -pol IQ -channels-out 2 -weight briggs 0", 1, SAME),
        ("no-dirty-psf", f"{FIELD} -no-dirty -make-psf -niter 0", 1, SAME),
        ("degrees", f"-size {SIZE} 288 -scale 0.001 -pol XX,yy -weight uniform -make-psf", 1, SAME),
        ("two-sets", f"{FIELD} -weight briggs -0.5 -weighting-rank-filter 0 -channels-out 2 -make-psf", 2, SAME),
        ("uneven", f"{FIELD} -weight briggs -0.5 -channels-out 3 -make-psf", 2, SAME),
        ("selected", f"{FIELD} -channel-range 1 3 -interval 2 9 -field 0 -spws 0 -make-psf", 1, SAME),
        ("lengths", f"{FIELD} -weight briggs 0 -minuv-l 200 -maxuv-l 9000 -make-psf", 1, SAME),
        ("natural-lengths", f"{FIELD} -weight natural -minuv-l 300 -make-psf", 1, SAME),
        ("metres", f"{FIELD} -minuvw-m 300 -maxuvw-m 2500 -make-psf", 1, SAME),
        ("shift", f"{FIELD} -shift 04h00m40s -29d50m00s -weight briggs 0 -make-psf", 1, SAME),
        ("shift-clean", f"{FIELD} -shift 04:00:08 -30.01.20.0 -weight briggs 0 -niter 500 -mgain 0.8 -channels-out 2 "
                        "-auto-threshold 4 -no-update-model-required", 1, SAME),
        ("even", f"{FIELD} -even-timesteps -make-psf", 1, SAME),
        ("odd", f"{FIELD} -odd-timesteps -interval 1 9 -intervals-out 2 -make-psf", 1, SAME),
        # weights
        ("taper", f"{FIELD} -taper-gaussian 30 -channels-out 2 -make-psf", 1, SAME),
        ("natural-taper", f"{FIELD} -weight natural -taper-gaussian 1amin -make-psf", 1, SAME),
        ("briggs-taper", f"{FIELD} -weight briggs 0 -pol IQ -taper-gaussian 20 -taper-inner-tukey 400 "
                         "-minuv-l 100 -niter 500 -mgain 0.8 -no-update-model-required", 1, SAME),
        ("tukey", f"{FIELD} -maxuv-l 9000 -taper-tukey 3000 -taper-inner-tukey 500 -make-psf", 1, SAME),
        ("edge", f"{FIELD} -weight uniform -weighting-rank-filter-size 40 -taper-edge 2000 -taper-edge-tukey 9000 -make-psf",
         1, SAME),
        ("rank-size", f"{FIELD} -weight briggs -1 -weighting-rank-filter 1.2 -weighting-rank-filter-size 90 -pol XX,YY "
                      "-channels-out 2 -make-psf", 1, SAME),
        ("padding", f"{FIELD} -padding 1.7 -weight briggs 0 -make-psf", 1, SAME),
        ("super", f"{FIELD} -weight uniform -super-weight 2.5 -weighting-rank-filter 0 -make-psf", 1, SAME),
        ("super-briggs", f"-size {SIZE} 300 -scale 0.001 -weight briggs 0 -super-weight 0.7 -padding 1.5 -pol IQ", 1,
         SAME),
        # of steps of ten minutes there is nothing to average
        ("averaged", f"{FIELD} -weight briggs 0 -baseline-averaging 5 -niter 300 -mgain 0.8 -no-update-model-required",
         1, SAME),
        ("spans", f"{FIELD} -intervals-out 2 -channels-out 2 -niter 200 -mgain 0.8 -no-dirty "
                  f"-no-update-model-required", 1, SAME),
        # oxkat's kind
        ("oxkat", f"{QUICK} -data-column DATA -field 0 {FIELD} -weight briggs -0.3 -parallel-deconvolution "
                  "2560 -niter 60000 -gain 0.15 -mgain 0.9 -channels-out 2 -fit-spectral-pol 2 "
                  "-join-channels -padding 1.2 -auto-mask 5 -auto-threshold 3 -make-psf -save-first-residual",
         1, SAME),
        ("oxkat-mask", f"{QUICK} -data-column DATA {FIELD} -weight briggs 0.0 -niter 60000 -mgain 0.8 "
                       f"-fits-mask {mask} -threshold 0.01 -local-rms", 1, SAME),
        ("oxkat-local-rms", f"{QUICK} -data-column DATA {FIELD} -weight briggs -0.3 -parallel-deconvolution 2560 -niter "
                            "60000 -gain 0.15 -mgain 0.9 -local-rms -auto-mask 4.5 -auto-threshold 3", 1, SAME),
        # as its generate_syscall_wsclean writes them, for nodes of 225 GB
        ("oxkat-whole", "-log-time -abs-mem 225 -parallel-reordering 8 -data-column DATA -field 0 -mem 90 "
                        f"{FIELD} -use-wgridder -no-update-model-required -weight briggs -0.3 "
                        "-parallel-deconvolution 2560 -niter 60000 -gain 0.15 -mgain 0.9 -channels-out 2 "
                        "-fit-spectral-pol 2 -join-channels -padding 1.2 -nwlayers-factor 3 -auto-threshold 3 "
                        f"-auto-mask 5 -pol I -fits-mask {mask}", 1, SAME),
        # caracal's kind, with old spellings
        ("caracal", f"-j 2 -datacolumn DATA {FIELD} -weight briggs 0 -niter 1000000 -nmiter 6 -mgain 0.85 "
                    "-gain 0.1 -auto-threshold 3 -auto-mask 6 -pol i -channelsout 2 -joinchannels "
                    f"-multiscale -multiscale-scales 0,8,20 -fitsmask {mask} -padding 1.2 "
                    "-no-update-model-required", 1, SAME),
        ("caracal-list", f"-j 2 -absmem 100 -datacolumn DATA -pol I -weight briggs 0 {FIELD} -padding 1.3 "
                         "-niter 1000000 -mgain 0.9 -gain 0.1 -auto-threshold 5 -auto-mask 10 -minuvw-m 0 "
                         "-taper-gaussian 0 -nwlayers-factor 3 -save-source-list -no-update-model-required", 1, SAME),
        # polkat's kind
        ("polkat", f"{QUICK} {FIELD} -weight briggs 0 -pol IQUV -niter 2000 -mgain 0.9 -channels-out 2 "
                   "-join-polarizations -join-channels -auto-threshold 4 -beam-size 45", 1, SAME),
        ("polkat-qu", f"{QUICK} {FIELD} -weight briggs 0 -pol QU -niter 500 -mgain 0.9 -channels-out 2 "
                      "-join-polarizations -join-channels -squared-channel-joining -auto-threshold 4 "
                      "-no-mf-weighting -circular-beam", 1, SAME),
        ("polkat-joined", f"{QUICK} {FIELD} -weight briggs -0.5 -pol IQUV -join-polarizations -niter 800 -mgain 0.85 "
                          "-auto-mask 6 -auto-threshold 4", 1, SAME),
        # of a survey with the LWA
        ("lwa", f"{FIELD} -niter 3000 -threshold 0.05 -weight natural -multiscale -multiscale-scale-bias 0.9 -mgain 0.6 "
                "-nonegative -joinpolarizations -pol xx,yy -channelrange 1 3 -no-update-model-required", 1, SAME),
        # of solar images with the OVRO-LWA
        ("ovro", f"-mem 4 -no-reorder -no-dirty -no-update-model-required -horizon-mask 5deg {FIELD} -weight briggs 0 "
                 "-minuv-l 10 -auto-threshold 3 -niter 3000 -mgain 0.8 -beam-fitting-size 2 -pol I", 1, SAME),
        # of snapshots with LOFAR
        ("snapshots", f"-make-psf -intervals-out 3 -padding 1.6 -interval 0 6 -auto-threshold 5 -channels-out 4 "
                      f"-deconvolution-channels 3 -fit-spectral-pol 3 {FIELD} -join-channels -minuv-l 50 -maxuv-l 5000 "
                      "-mgain 0.8 -multiscale -niter 0 -nmiter 0 -no-update-model-required -parallel-deconvolution 1500 "
                      "-no-reorder -taper-gaussian 40asec -weight briggs -0.25", 1, SAME),
        # the taper determines the biases of scales
        ("tapered-scales", f"{QUICK} {FIELD} -weight briggs -0.25 -taper-gaussian 50asec -multiscale -multiscale-scales "
                           "0,8,16,32 -niter 3000 -mgain 0.8 -channels-out 2 -join-channels -fit-spectral-pol 2 "
                           "-auto-threshold 3.5 -auto-mask 5 -padding 1.4 -save-source-list", 1, SAME),
        # of cubes and of Q and U with MeerKAT
        ("cube", f"-log-time -abs-mem 2 -parallel-reordering 16 -make-psf -no-dirty -no-mf-weighting "
                 f"-no-update-model-required -data-column DATA -field 0 -weight briggs 0.5 {FIELD} -channels-out 4 -niter "
                 "500 -auto-threshold 5 -mgain 0.9", 1, SAME),
        ("qu", f"-no-update-model-required -verbose -reorder {FIELD} -pol QU -mgain 0.85 -niter 1000 -auto-threshold 3 "
               "-join-polarizations -squared-channel-joining -log-time -no-mf-weighting", 1, SAME),
        # of VLBI
        ("vlbi", f"-data-column DATA {FIELD} -niter 5000 -no-update-model-required -auto-mask 5 -auto-threshold 1.5 "
                 "-local-rms -weight briggs -1 -channels-out 2 -join-channels -stop-negative -minuvw-m 300 "
                 "-taper-gaussian 0.0 -mgain 0.8", 1, SAME),
        # several of these together
        ("multiscale-joined", f"{QUICK} -mem 90 -data-column DATA -field 0 {FIELD} -weight briggs -0.3 "
                              "-parallel-deconvolution 1024 -niter 20000 -gain 0.15 -mgain 0.9 -channels-out 2 "
                              "-fit-spectral-pol 2 -join-channels -padding 1.2 -nwlayers-factor 3 -multiscale "
                              f"-multiscale-scales 0,6,15 -auto-mask 5 -auto-threshold 2 -fits-mask {mask} "
                              "-save-source-list -circular-beam", 1, SAME),
        ("small-taper", f"{QUICK} {FIELD} -weight briggs -0.3 -taper-gaussian 6asec -minuv-l 164 -maxuv-l 8000 -niter "
                        "500 -mgain 0.85 -threshold 20mJy -fit-beam -elliptical-beam", 1, SAME),
        ("spans-joined", f"{QUICK} {FIELD} -weight briggs 0 -interval 1 9 -intervals-out 2 -channels-out 2 "
                         "-join-channels -niter 400 -mgain 0.8 -auto-threshold 4", 1, SAME),
        ("few-channels", f"{FIELD} -weight briggs 0 -channels-out 4 -join-channels -fit-spectral-pol 3 "
                         "-deconvolution-channels 2 -niter 500 -mgain 0.8 -auto-threshold 4 -no-update-model-required",
         1, SAME),
        ("uneven-joined", f"{QUICK} {FIELD} -weight briggs 0 -channels-out 3 -join-channels -fit-spectral-log-pol 2 "
                          "-local-rms -local-rms-method rms-with-min -niter 500 -mgain 0.85 -auto-mask 5 "
                          "-auto-threshold 4", 2, SAME),
        ("beam-box", f"{FIELD} -weight briggs -0.5 -make-psf -beam-fitting-size 2", 1, SAME),
        ("beam-box-taper", f"{FIELD} -weight briggs 0 -taper-gaussian 25 -make-psf -beam-fitting-size 1.5", 1, SAME),
        # the defaults of flint, in smaller
        ("flint", f"-abs-mem 4 -local-rms -size {SIZE} {SIZE} -scale 1.5asec -auto-mask 4 -auto-threshold 2 "
                  "-channels-out 4 -gain 0.1 -mgain 0.7 -nmiter 3 -niter 2000 -multiscale-scale-bias 0.75 "
                  "-fit-spectral-pol 2 -weight briggs -0.5 -data-column DATA -join-channels -minuv-l 200 "
                  "-no-update-model-required -beam-fitting-size 1.25 -pol i -save-source-list", 1, SAME),
        ("gaps", f"{FIELD} -weight natural -gap-channel-division -channels-out 3 -make-psf", 1, SAME),
        ("divided", f"{FIELD} -weight natural -channel-division-frequencies 1.27e9 -channels-out 3 -make-psf", 1, SAME),
        ("divided-gaps", f"{FIELD} -weight briggs 0 -gap-channel-division -channel-division-frequencies 1.29e9 -channels-out "
                         "2 -join-channels -niter 200 -mgain 0.8 -no-update-model-required", 1, SAME),
        ("no-fit-beam", f"{FIELD} -weight briggs 0 -no-fit-beam -beam-size 60 -circular-beam -niter 300 -mgain 0.8 "
                        "-auto-threshold 4 -no-update-model-required", 1, SAME),
        ("circular", f"{FIELD} -weight natural -make-psf -circular-beam", 1, SAME),
        ("theoretic", f"{FIELD} -weight natural -taper-gaussian 50 -channels-out 2 -theoretic-beam -make-psf "
                      "-visibility-weighting-mode normal", 1, SAME),
        ("theoretic-clean", f"{FIELD} -weight briggs 0 -niter 300 -mgain 0.8 -channels-out 2 -join-channels "
                            "-theoretic-beam -no-update-model-required", 1, SAME),
        ("shape", f"{FIELD} -weight natural -niter 300 -mgain 0.8 -beam-shape 60 40 30deg "
                  "-no-update-model-required", 1, SAME),
    ]


def make_sets(suite):
    """Points and Gaussians with polarisation and noise, observed twice."""
    rng = np.random.default_rng(9)
    sources = []
    for k in range(14):
        x, y = rng.uniform(-.35 * SIZE, .35 * SIZE, 2)
        ra, dec = offset_radec(RA, DEC, -x * SCALE * ASEC, y * SCALE * ASEC)
        flux = 10 ** rng.uniform(-1.3, .2)
        extent = dict(major="60asec", minor="40asec", pa="30deg") if k < 2 else {}
        sources.append(dict(ra=f"{ra:.9f}deg", dec=f"{dec:.9f}deg", flux_jy=round(flux, 4),
                            q=round(.2 * flux, 5), u=round(-.1 * flux, 5), v=round(.05 * flux, 5),
                            spectral_index=-.7, ref_freq="1.28GHz", **extent))
    sky = write_sky(suite.path("sky.csv"), sources)
    return [simulate(suite.path(f"{name}.ms"), sky, layout="meerkat", ra=f"{RA}deg", dec=f"{DEC}deg",
                     start=start, duration="2h", integration="600s", freq="1.28GHz", width="20MHz",
                     channels=4, pol="XX,XY,YX,YY",
                     extra=("--antennas", "40", "--noise", "0.1", "--seed", seed))
            for name, start, seed in (("first", "2026-01-01T18:00:00", "2"),
                                      ("second", "2026-01-01T21:00:00", "3"))]


DIVIDE = """
import sys, casacore.tables as ct
fields = ct.table(sys.argv[1] + "/FIELD", readonly=False, ack=False)
fields.addrows(2)
for name in fields.colnames():
    for row in (1, 2):
        fields.putcell(name, row, fields.getcell(name, 0))
main = ct.table(sys.argv[1], readonly=False, ack=False)
rows = main.nrows()
main.putcol("FIELD_ID", [3 * k // rows for k in range(rows)])
"""


def check_fields(suite, obs):
    """A set of three fields, of which two are chosen."""
    python = casacore_python()
    if not python:
        return
    several = suite.path("fields.ms")
    shutil.copytree(obs, several)
    if not suite.ran("several fields", run([python, "-c", DIVIDE, several], 60)):
        return
    for name, field in (("field", ""), ("fields", "-field 0,2 "), ("all-fields", "-field 0,1,2 ")):
        check_line(suite, name, f"{field}{FIELD} -niter 200 -mgain 0.8 -weight briggs 0", [several], SAME)
    shutil.copy(suite.path("plain-image.fits"), suite.path("chosen-model.fits"))
    check_prediction(suite, several, "chosen", "-field 0,2")
    check_line(suite, "every-field", f"-field all {FIELD} -weight natural -make-psf", [several], SAME)
    check_all_fields(suite, python, several)


def model_column(suite, python, obs, *options):
    """MODEL_DATA of all rows after a run that cleans and updates it; None if that failed."""
    ran = suite.image("updated", obs, "--overwrite", "--size", SIZE, "--scale", f"{SCALE}asec", "--niter", "200",
                      "--accuracy", "1e-6", "--update-model", *options)[0]
    out = suite.path("column.npy")
    read = run([python, MS_COLUMN, obs, "MODEL_DATA", out], 120)
    return np.load(out) if ran and suite.ran("reading MODEL_DATA", read) else None


def check_all_fields(suite, python, obs):
    """--center takes all fields: MODEL_DATA of each is that of a list of them."""
    found = model_column(suite, python, obs, "--center", f"{RA}deg,{DEC}deg", "--weight", "natural")
    wanted = model_column(suite, python, obs, "--field", "0,1,2", "--weight", "natural")
    if wanted is None or found is None:
        return
    rows = len(wanted)
    for k in range(3):
        part = slice(-(-k * rows // 3), -(-(k + 1) * rows // 3))
        suite.true(f"field {k}: its model is not empty", np.abs(wanted[part]).max() > .1)
        suite.below(f"field {k}: MODEL_DATA with --center / largest",
                    np.abs(found[part] - wanted[part]).max() / np.abs(wanted).max(), 1e-5)


def images(suite, name):
    """The FITS files of a run, without their common beginning."""
    prefix = f"{name}-"
    return {file[len(prefix) - 1:] for file in os.listdir(suite.work)
            if file.startswith(prefix) and file.endswith(".fits")}


def check_date(suite, what, mine, theirs):
    """WSClean rounds times down to a tenth of a second, and by the errors of a double sometimes to one less. Its
    PSFs have the time of what was made before, or day 0."""
    if what.endswith("-psf"):
        return
    dates = [datetime.fromisoformat(text + "00") for text in (mine, theirs)]
    suite.true(f"{what}: DATE-OBS {mine} and {theirs}", len(mine) == len(theirs)
               and abs((dates[0] - dates[1]).total_seconds()) < .11)


def check_headers(suite, what, mine, theirs, shape, beam_limit):
    suite.below(f"{what}: WCS [pixel]", wcs_difference(mine, theirs, shape), 1e-3)
    if not ("-MFS-" in what and what.endswith("-model")):
        suite.equal(f"{what}: unit", mine["BUNIT"], theirs["BUNIT"].strip())
    for key in ("BTYPE", "BSCALE", "BZERO"):
        suite.equal(f"{what}: {key}", mine[key], theirs[key])
    check_date(suite, what, mine["DATE-OBS"], theirs["DATE-OBS"])
    suite.equal(f"{what}: Stokes", mine["CRVAL4"], theirs["CRVAL4"])
    suite.below(f"{what}: frequency", abs(mine["CRVAL3"] / theirs["CRVAL3"] - 1), 1e-9)
    suite.below(f"{what}: width", abs(mine["CDELT3"] / theirs["CDELT3"] - 1), 1e-9)
    if theirs["BMAJ"] > 0:
        for key in ("BMAJ", "BMIN"):
            suite.below(f"{what}: {key}", abs(mine[key] / theirs[key] - 1), beam_limit)


# Keywords of the program, of its gridder, and of how many components it has found.
OTHERS = ("WSCVERSI", "WSCVDATE", "WSCGKRNL", "WSCNWLAY", "WSCMAJOR", "WSCMINOR")
# Of the mean they are the first channel's in WSClean.
OF_CHANNELS = ("WSCNVIS", "WSCENVIS", "WSCVWSUM", "WSCNORMF")


def check_keywords(suite, what, mine, theirs, options):
    """WSClean's own keywords. It adds weights up in other orders, with errors of 1e-7, and the largest weight is in
    single precision. Visibilities whose imaging weights are 0, by -minuv-l, -maxuv-l or far out by a taper, count
    here; and a PSF that is made alone is not cleaned."""
    for key in [k for k in theirs if k.startswith("WSC") and k not in OTHERS]:
        value = theirs[key]
        if key in OF_CHANNELS and ("-MFS-" in what or not theirs["WSCNVIS"]):
            continue
        if key in ("WSCNVIS", "WSCVWSUM") and (
                "uv-l" in options or "-taper-gaussian" in options or "-taper-edge" in options):
            continue
        if key == "WSCFIELD" and value > 1e9 or key == "WSCNITER" and "-make-psf-only" in options:
            continue
        if key == "WSCMGAIN" and not mine.get("WSCNITER"):
            continue
        if isinstance(value, str) or value == 0:
            suite.equal(f"{what}: {key}", mine.get(key), value)
        else:
            suite.below(f"{what}: {key}", abs(mine.get(key, 0) / value - 1), 1e-6)


def check_line(suite, name, options, sets, limits, exact=EXACT):
    """One command line through both programs."""
    common = f"{exact} {options}".split()
    peer = run(["nice", "wsclean", "-quiet", "-reorder", "-temp-dir", suite.work, "-j", "2", *common, "-name",
                suite.path("peer-" + name), *sets], 300)
    mine = run([OURS, "-quiet", *common, "-name", suite.path(name), *sets], 300)
    if not (suite.ran(f"wsclean {name}", peer) and suite.ran(f"tessera-wsclean {name}", mine)):
        return
    theirs, ours = images(suite, "peer-" + name), images(suite, name)
    suite.equal(f"{name}: files", sorted(k for k in ours if not MORE.search(k)), sorted(theirs))
    if "-horizon-mask.fits" in theirs & ours:
        theirs.discard("-horizon-mask.fits")
        check_mask(suite, name)
    for file in sorted(theirs & ours):
        check_file(suite, name, file, limits)
        headers = [read_image(suite.path(prefix + name + file))[1] for prefix in ("", "peer-")]
        check_keywords(suite, name + file[:-len(".fits")], *headers, options)


def check_mask(suite, name):
    """WSClean's mask has no position and no frequency."""
    mine, theirs = (read_image(suite.path(prefix + name + "-horizon-mask.fits"))[0] for prefix in ("", "peer-"))
    suite.true(f"{name}: the same mask near the horizon, of {mine.size} pixels {(mine != 0).sum():.0f}",
               np.array_equal(mine, theirs))


def check_horizon(suite, mask):
    """An image of half of the sky by baselines of some wavelengths, with the mask of the user, and none, on one rank
    and three."""
    obs = simulate(suite.path("wide.ms"), suite.path("sky.csv"), layout="meerkat", ra=f"{RA}deg", dec=f"{DEC}deg",
                   duration="10min", freq="8MHz", width="100kHz", channels=2, extra=("--antennas", "30"))
    wide = f"-size {SIZE} {SIZE} -scale 0.2deg -weight natural -niter 5 -mgain 0.8 -no-update-model-required"
    line = f"{wide} -horizon-mask 48deg"
    check_line(suite, "horizon", line, [obs], OTHER_RESIDUAL)
    with fits_module().open(suite.path("horizon-dirty.fits")) as hdus:
        data = np.zeros_like(hdus[0].data)
        data[..., 20:250, 100:310] = 1
        fits_module().writeto(mask, data, hdus[0].header, overwrite=True)
    check_line(suite, "horizon-masked", f"{line} -fits-mask {mask} -pol XX,YY -channels-out 2", [obs], OTHER_RESIDUAL)
    several = [mpiexec(), "-n", "3", OURS] if mpiexec() else [OURS]
    ran = run([*several, "-quiet", *f"{EXACT} {line} -name".split(), suite.path("ranks"), obs], 300)
    if suite.ran("a mask of three ranks", ran):
        mine, one = (read_image(suite.path(f"{name}-horizon-mask.fits"))[0] for name in ("ranks", "horizon"))
        suite.true("three ranks: the same mask", 0 < mine.sum() < mine.size and np.array_equal(mine, one))


def check_file(suite, name, file, limits):
    image_limit, beam_limit, compares = limits
    what = name + file[:-len(".fits")]
    image, header = read_image(suite.path(name + file))
    reference, peer_header = read_image(suite.path("peer-" + name + file))
    check_headers(suite, what, header, peer_header, reference.shape, beam_limit)
    if file.endswith(("-dirty.fits", "-psf.fits")) and "-XY" not in file:
        suite.below(f"{what}: difference / peak", peak_error(image, reference), image_limit)
    if not file.endswith("-image.fits") or not compares:
        return
    residual = suite.path("peer-" + name + file.replace("-image", "-residual"))
    if not os.path.exists(residual) or compares is not True:
        suite.below(f"{what}: difference / peak", peak_error(image, reference),
                    image_limit if compares is True else compares)
        return
    left = read_image(residual)[0]
    sigma = 1.4826 * np.median(np.abs(left - np.median(left)))
    beam = int(np.ceil(peer_header["BMAJ"] / abs(peer_header["CDELT2"])))
    allowed = 3 * sigma + .01 * largest_nearby(reference, beam)
    suite.below(f"{what}: restored images, of what is allowed",
                (np.abs(image - reference) / allowed).max(), 1)


def check_prediction(suite, obs, name, options, exact=EXACT, limit=1e-5):
    """Model images NAME-...-model.fits through both into MODEL_DATA, where pipelines read them."""
    python = casacore_python()
    if not python:
        return
    columns = []
    for program in (["wsclean", "-reorder", "-temp-dir", suite.work], [OURS]):
        ran = run([*program, "-predict", *f"{exact} {FIELD} {options}".split(), "-name", suite.path(name), obs],
                  300)
        if not suite.ran(f"{os.path.basename(program[0])} -predict {name}", ran):
            return
        out = suite.path("column.npy")
        read = run([python, MS_COLUMN, obs, "MODEL_DATA", out], 120)
        if not suite.ran("reading MODEL_DATA", read):
            return
        columns.append(np.load(out))
    theirs, ours = columns
    largest = np.abs(theirs).max(axis=(0, 1))
    suite.true(f"{name}: the model is not empty", largest.max() > .1)
    if exact == STACKED:
        suite.true(f"{name}: no correlation is empty", largest.min() > .1)
        ours = np.where(theirs == 0, 0, ours)
    suite.below(f"{name}: MODEL_DATA: difference / largest", np.abs(ours - theirs).max() / largest.max(), limit)


def check_cross_hands(suite, obs):
    """All four correlations: XX, YY, and XY and YX as a complex image. Of that alone WSClean searches the sum of
    the real and the imaginary part, and finds other components."""
    clean = "-niter 1000 -mgain 0.8 -threshold 0.05 -no-update-model-required"
    for name, more, limits in (
            ("cross-hands", "-pol xx,xy,yx,yy -join-polarizations", STACKED_SAME),
            ("cross-hands-linked", "-pol xx,xy,yx,yy -link-polarizations xx,yy", STACKED_SAME),
            ("cross-hands-alone", "-pol yx,xy -join-polarizations -channels-out 2 -join-channels", STACKED_OTHER)):
        if FULL or name in FAST:
            check_line(suite, name, f"{FIELD} {clean} {more}", [obs], limits, STACKED)
    check_prediction(suite, obs, "peer-cross-hands", "-pol xx,xy,yx,yy", STACKED, 2e-3)


# A list with sources between pixels is drawn there, and by WSClean at the nearest pixel; and that turns
# Gaussians by the angle in radians taken for degrees. So these have neither.
LISTED = """Format = Name, Type, Ra, Dec, I, SpectralIndex, LogarithmicSI, ReferenceFrequency='1e9', MajorAxis, MinorAxis, Orientation

a,POINT,04:00:00.0,-30.00.00.0,1.0,[-0.7,0.1],true,1e9,,,
b,POINT,04:00:00.0,-30.00.00.0,0.5,[-0.7,0.1],false,1e9,,,
c,GAUSSIAN,04:00:00.0,-30.00.00.0,2.0,[],false,1e9,60,30,0
"""


def check_restored(suite, name, options, words, ranks=1, limit=1e-5):
    """-restore or -restore-list through both: pixels and headers."""
    common = [*options.split(), *words]
    peer = run(["wsclean", "-quiet", *common, suite.path(f"peer-{name}.fits")], 120)
    command = [OURS, "-quiet", *common, suite.path(f"{name}.fits")]
    mine = run([mpiexec(), "-n", str(ranks), *command] if ranks > 1 else command, 120)
    if not (suite.ran(f"wsclean {name}", peer) and suite.ran(f"tessera-wsclean {name}", mine)):
        return
    image, header = read_image(suite.path(f"{name}.fits"))
    reference, peer_header = read_image(suite.path(f"peer-{name}.fits"))
    check_headers(suite, name, header, peer_header, reference.shape, 1e-6)
    suite.below(f"{name}: BPA", abs(header["BPA"] - peer_header["BPA"]), 1e-6)
    suite.below(f"{name}: difference / peak", peak_error(image, reference), limit)


def check_restoring(suite):
    """Models and lists back onto residuals, of both programs' runs."""
    listed = suite.path("listed.txt")
    with open(listed, "w") as out:
        out.write(LISTED)
    several = [k for k in (1, 3) if k == 1 or mpiexec()]
    for run_name in ("caracal-list", "peer-caracal-list"):
        residual, model = (suite.path(f"{run_name}-{kind}.fits") for kind in ("residual", "model"))
        sources = suite.path(f"{run_name}-sources.txt")
        for ranks in several:
            check_restored(suite, f"{run_name}-restored-{ranks}", "-restore", [residual, model], ranks)
            # WSClean's lists have positions to a millisecond, a part of a pixel
            check_restored(suite, f"{run_name}-from-list-{ranks}", "-restore-list", [residual, sources], ranks,
                           1e-3 if run_name.startswith("peer") else 1e-5)
        check_restored(suite, f"{run_name}-size", "-beam-size 30 -restore", [residual, model])
        check_restored(suite, f"{run_name}-shape", "-beam-shape 60 0.5amin 30 -restore-list", [residual, listed])


def check_subtracted(suite, obs):
    """MODEL_DATA, which predictions have left there, is subtracted."""
    check_line(suite, "subtracted", f"{FIELD} -subtract-model -data-column DATA -weight briggs 0 -make-psf", [obs], SAME)
    whole, left = (read_image(suite.path(f"{name}-dirty.fits"))[0] for name in ("whole", "subtracted"))
    suite.true("what is subtracted is in the image", np.abs(whole - left).max() > .1 * np.abs(whole).max())


def main():
    if not shutil.which("wsclean") or not have_ms():
        skip("needs wsclean and MeasurementSet support")
    suite = Suite("wsclean_lines")
    sets = make_sets(suite)
    ran, prefix = suite.image("mask", sets[0], "--size", SIZE, "--scale", f"{SCALE}asec", "--no-psf")
    mask = write_mask(suite.path("mask.fits"), prefix + "-dirty.fits", .1) if ran else ""
    for name, options, num_sets, limits in lines(mask):
        if FULL or name in FAST:
            check_line(suite, name, options, sets[:num_sets], limits)
    shutil.copy(suite.path("plain-image.fits"), suite.path("predicted-model.fits"))
    check_prediction(suite, sets[0], "predicted", "")
    check_fields(suite, sets[0])
    check_prediction(suite, sets[0], "peer-polkat", "-pol IQUV -channels-out 2")
    check_line(suite, "whole", f"{FIELD} -data-column DATA -weight briggs 0 -make-psf", sets[:1], SAME)
    check_subtracted(suite, sets[0])
    check_horizon(suite, suite.path("wide.fits"))
    check_restoring(suite)
    check_cross_hands(suite, sets[0])
    # of another set: WSClean leaves cross-hands as they were where the model has Stokes I alone
    check_prediction(suite, sets[1], "peer-spans", "-intervals-out 2 -channels-out 2")
    # as oxkat writes it
    check_prediction(suite, sets[1], "peer-oxkat-whole", "-log-time -abs-mem 225 -parallel-reordering 8 -padding 1.2 "
                     "-field 0 -channels-out 2")
    check_prediction(suite, sets[1], "peer-shift-clean", "-shift 04:00:08 -30.01.20.0 -channels-out 2")
    suite.finish()


if __name__ == "__main__":
    main()
