#!/usr/bin/env python3
"""What becomes of WSClean's command lines: the words of tessera's command, the one line that a bad
line gets, what the log says, and the same on several ranks."""
import os
import shlex
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from e2e import BIN, Suite, fits_module, have_ms, mpiexec, read_image, run, simulate, write_sky

OURS = os.path.join(os.path.dirname(BIN), "tessera-wsclean")
BASE = "-size 64 48 -scale 2asec"
IMAGE = "image -o wsclean --overwrite --wsclean-files --scale 2asec --size 64,48"
UNIFORM = "--weight uniform --weighting-rank-filter 3"
CLEAN = "--niter 9 --mgain 1"

# A command line, and the words of tessera's command without the observations.
TRANSLATED = [
    (BASE, f"{IMAGE} --stokes I {UNIFORM} --field 0 --no-psf"),
    ("-size 64 48", "image -o wsclean --overwrite --wsclean-files --scale 0.01deg --size 64,48 --stokes I "
                    f"{UNIFORM} --field 0 --no-psf"),
    (f"{BASE} -scale 0.001", f"{IMAGE} --stokes I {UNIFORM} --field 0 --no-psf".replace("2asec",
                                                                                      "0.001deg")),
    # units as WSClean has them
    ("-size 64 48 -scale 2Asec -taper-gaussian 0.5ARCMIN",
     f"{IMAGE} --taper-gaussian 0.5amin --stokes I {UNIFORM} --field 0 --no-psf"),
    ("-size 64 48 -scale 2arcsec -niter 9 -threshold 3mjy -beam-size 1arcmin -no-update-model-required",
     f"{IMAGE} --threshold 3mJy --beam-size 1amin --stokes I {UNIFORM} --field 0 {CLEAN}"),
    (f"{BASE} -scale 1masec -niter 9 -threshold 1E-3 -no-update-model-required",
     f"{IMAGE} --threshold 1E-3 --stokes I {UNIFORM} --field 0 {CLEAN}".replace("2asec", "1mas")),
    (f"{BASE} -make-psf -weight briggs -0.5 -weighting-rank-filter 0",
     f"{IMAGE} --stokes I --weight briggs:-0.5 --weighting-rank-filter 0 --field 0"),
    (f"{BASE} -weighting-rank-filter-size 24 -taper-edge 100 -taper-edge-tukey 50",
     f"{IMAGE} --taper-edge 100 --taper-edge-tukey 50 --stokes I {UNIFORM} --weighting-rank-filter-size 24 --field 0 "
     "--no-psf"),
    (f"{BASE} -weighting-rank-filter-size 1 -taper-edge 0",
     f"{IMAGE} --stokes I {UNIFORM} --field 0 --no-psf".replace("filter 3", "filter 0")),
    (f"{BASE} -weighting-rank-filter .9", f"{IMAGE} --stokes I {UNIFORM} --field 0 --no-psf".replace("filter 3", "filter 0")),
    (f"{BASE} -niter 9 -auto-mask 5 -auto-mask-nmiter 2 -no-update-model-required",
     f"{IMAGE} --auto-mask 5 --auto-mask-nmiter 2 --stokes I {UNIFORM} --field 0 {CLEAN}"),
    (f"{BASE} -niter 9 -local-rms-strength 0.5 -no-update-model-required",
     f"{IMAGE} --local-rms --local-rms-strength 0.5 --stokes I {UNIFORM} --field 0 {CLEAN}"),
    (f"{BASE} -theoretic-beam -visibility-weighting-mode normal -local-rms-strength 1.0",
     f"{IMAGE} --theoretic-beam --stokes I {UNIFORM} --field 0 --no-psf"),
    (f"{BASE} -pol qi,u", f"{IMAGE} --stokes I,Q,U --density first {UNIFORM} --field 0 --no-psf"),
    (f"{BASE} -pol yyxx", f"{IMAGE} --stokes XX,YY --density first {UNIFORM} --field 0 --no-psf"),
    (f"{BASE} -pol yyyxxyxx", f"{IMAGE} --stokes XX,XY,YX,YY --density first {UNIFORM} --field 0 --no-psf"),
    (f"{BASE} -field 0,2", f"{IMAGE} --stokes I {UNIFORM} --field 0,2 --no-psf"),
    (f"{BASE} -field all", f"{IMAGE} --stokes I {UNIFORM} --field all --no-psf"),
    (f"{BASE} -shift 4h00m01s -30.00.10.5", f"{IMAGE} --stokes I {UNIFORM} --field 0 --shift 4h00m01s,-30:00:10.5 --no-psf"),
    (f"{BASE} -subtract-model", f"{IMAGE} --stokes I {UNIFORM} --field 0 --subtract-column MODEL_DATA --no-psf"),
    (f"{BASE} -subtract-model -model-column OTHER",
     f"{IMAGE} --stokes I {UNIFORM} --field 0 --subtract-column OTHER --no-psf"),
    (f"{BASE} -minuv-l 10 -maxuv-l 99.5 -interval 2 5 -channel-range 0 3",
     f"{IMAGE} --intervals 2:5 --channels 0:3 --stokes I {UNIFORM} --uvrange 10:99.5 --cut-cells --field 0 --no-psf"),
    (f"{BASE} -super-weight 2", f"{IMAGE} --super-weight 2 --stokes I {UNIFORM} --field 0 --no-psf"),
    (f"{BASE} -baseline-averaging 2.5", f"{IMAGE} --stokes I {UNIFORM} --field 0 --no-psf"),
    (f"{BASE} -niter 9 -no-update-model-required -horizon-mask 5",
     f"{IMAGE} --horizon-mask 5deg --stokes I {UNIFORM} --field 0 {CLEAN}"),
    (f"{BASE} -niter 9 -pol IQ -join-polarizations -nonegative -no-update-model-required",
     f"{IMAGE} --join-polarizations --no-negative --stokes I,Q --density first {UNIFORM} --field 0 {CLEAN}"),
    # 0 is none
    (f"{BASE} -taper-gaussian 0.0asec -maxuv-l 0 -minuvw-m 0 -beam-size 0 -mem 0",
     f"{IMAGE} --stokes I {UNIFORM} --field 0 --no-psf"),
    (f"{BASE} -minuv-l 0.0 -maxuv-l 99",
     f"{IMAGE} --stokes I {UNIFORM} --uvrange :99 --cut-cells --field 0 --no-psf"),
    (f"{BASE} -maxuv-l 99", f"{IMAGE} --stokes I {UNIFORM} --uvrange :99 --cut-cells --field 0 --no-psf"),
    (f"{BASE} -niter 9", f"{IMAGE} --stokes I {UNIFORM} --field 0 {CLEAN} --update-model"),
    (f"{BASE} -niter 9 -no-update-model-required -mgain 0.8 -no-dirty",
     f"{IMAGE} --stokes I {UNIFORM} --field 0 --niter 9 --mgain 0.8 --no-dirty"),
    (f"{BASE} -niter 9 -no-update-model-required -update-model-required",
     f"{IMAGE} --stokes I {UNIFORM} --field 0 {CLEAN} --update-model"),
    (f"{BASE} -niter 9 -data-column MODEL_DATA",
     f"{IMAGE} --datacolumn MODEL_DATA --stokes I {UNIFORM} --field 0 {CLEAN}"),
    (f"{BASE} -niter 9 -make-psf-only -auto-mask 3",
     f"{IMAGE} --stokes I {UNIFORM} --field 0 --no-dirty"),
    # what has no effect without cleaning, without joined channels, and without scales
    (f"{BASE} -auto-mask 3 -multiscale", f"{IMAGE} --stokes I {UNIFORM} --field 0 --no-psf"),
    (f"{BASE} -niter 9 -fit-spectral-pol 2 -multiscale-scales 0,4",
     f"{IMAGE} --stokes I {UNIFORM} --field 0 {CLEAN} --update-model"),
    (f"{BASE} -niter 9 -channelsout 2 -joinchannels -fitspectralpol 2",
     f"{IMAGE} --channels-out 2 --stokes I {UNIFORM} --field 0 {CLEAN} --update-model --join-channels "
     "--fit-spectral-pol 2"),
    # as many terms as there are channels to fit
    (f"{BASE} -niter 9 -channels-out 4 -join-channels -fit-spectral-log-pol 3 -deconvolution-channels 2",
     f"{IMAGE} --deconvolution-channels 2 --channels-out 4 --stokes I {UNIFORM} --field 0 {CLEAN} --update-model "
     "--join-channels --fit-spectral-log-pol 2"),
    # the peak of squares has no sign
    (f"{BASE} -niter 9 -channels-out 2 -joinchannels -squared-channel-joining -nonegative -stop-negative "
     "-no-update-model-required",
     f"{IMAGE} --squared-channel-joining --channels-out 2 --stokes I {UNIFORM} --field 0 {CLEAN} --join-channels"),
    (f"{BASE} -niter 9 -nonegative -no-update-model-required",
     f"{IMAGE} --no-negative --stokes I {UNIFORM} --field 0 {CLEAN}"),
    (f"{BASE} -niter 0 -no-dirty", f"{IMAGE} --stokes I {UNIFORM} --field 0 --niter 0 --dirty-as-image --no-psf"),
    (f"{BASE} -no-dirty -make-psf", f"{IMAGE} --stokes I {UNIFORM} --field 0 --dirty-as-image"),
    # names of older and newer versions
    (f"{BASE} -mfsweighting -gkernelsize 7 -wstack-nwlayers-for-size 9 9 -no-min-grid-resolution -rms-background-window 9",
     f"{IMAGE} --stokes I {UNIFORM} --field 0 --mf-weighting --no-psf"),
    (f"{BASE} -niter 9 -rms-background-window 9 -no-update-model-required",
     f"{IMAGE} --local-rms --local-rms-window 9 --stokes I {UNIFORM} --field 0 {CLEAN}"),
    (f"{BASE} -no-fit-beam", f"{IMAGE} --stokes I {UNIFORM} --field 0 --no-psf --theoretic-beam"),
    (f"{BASE} -no-fit-beam -fit-beam", f"{IMAGE} --stokes I {UNIFORM} --field 0 --no-psf"),
    (f"{BASE} -no-fit-beam -beam-size 9", f"{IMAGE} --beam-size 9asec --stokes I {UNIFORM} --field 0 --no-psf"),
    (f"{BASE} -niter 9 -auto-mask 5 -force-mask-rounds 6 -no-update-model-required",
     f"{IMAGE} --auto-mask 5 --force-mask-rounds 6 --stokes I {UNIFORM} --field 0 {CLEAN}"),
    # local noise in one part, and in several
    (f"{BASE} -niter 9 -auto-mask 5 -local-rms -parallel-deconvolution 64 -no-update-model-required",
     f"{IMAGE} --auto-mask 5 --local-rms --stokes I {UNIFORM} --field 0 {CLEAN} --local-rms-strength 0"),
    (f"{BASE} -niter 9 -auto-mask 5 -local-rms -parallel-deconvolution 63 -no-update-model-required",
     f"{IMAGE} --auto-mask 5 --local-rms --stokes I {UNIFORM} --field 0 {CLEAN} --force-mask-rounds 6"),
    (f"{BASE} -niter 9 -auto-mask 0 -local-rms -parallel-deconvolution 63 -no-update-model-required",
     f"{IMAGE} --local-rms --stokes I {UNIFORM} --field 0 {CLEAN}"),
    (f"{BASE} -niter 9 -auto-mask 5 -parallel-deconvolution 64 -no-update-model-required",
     f"{IMAGE} --auto-mask 5 --stokes I {UNIFORM} --field 0 {CLEAN}"),
    (f"{BASE} -force-mask-rounds 6 -pb-undersampling 4 -dd-psf-grid 1 1.0 -fit-beam-with-negatives",
     f"{IMAGE} --stokes I {UNIFORM} --field 0 --no-psf"),
    (f"{BASE} -gap-channel-division -channel-division-frequencies 1.4e9,1.5e9 -channels-out 4",
     f"{IMAGE} --channels-out 4 --gap-channel-division --channel-division-frequencies 1.4e9,1.5e9 --stokes I {UNIFORM} "
     "--field 0 --no-psf"),
    # facets: Stokes I has mean gains, unless both hands are kept
    (f"{BASE} -niter 9 -facet-regions f.reg -apply-facet-solutions s.h5 amplitude000,phase000 -feather-size 4",
     f"{IMAGE} --facets f.reg --facet-feather 4 --stokes I {UNIFORM} --field 0 {CLEAN} --update-model "
     "--facet-solutions s.h5 --soltabs amplitude000,phase000 --scalar-visibilities"),
    (f"{BASE} -niter 9 -facet-regions f.reg -apply-facet-beam -facet-beam-update 60 -aterm-config a.txt",
     f"{IMAGE} --facets f.reg --facet-beam auto --facet-aterms a.txt --stokes I {UNIFORM} "
     f"--field 0 {CLEAN} --update-model --facet-beam-update 60s"),
    (f"{BASE} -facet-regions f.reg -facet-beam-update 60 -dd-psf-grid 3 3",
     f"{IMAGE} --facets f.reg --stokes I {UNIFORM} --field 0 --no-psf"),
    (f"{BASE} -niter 9 -facet-regions f.reg -apply-facet-solutions s.h5 a,p -diagonal-visibilities -select-facets A,B "
     "-dd-psf-grid 3 3",
     f"{IMAGE} --facets f.reg --select-facets A,B --stokes I {UNIFORM} --field 0 {CLEAN} --update-model "
     "--facet-solutions s.h5 --soltabs a,p --psf-per-facet"),
    (f"{BASE} -facet-regions f.reg -apply-facet-solutions s.h5,b.h5 a,p -diagonal-visibilities",
     f"{IMAGE} --facets f.reg --stokes I {UNIFORM} --field 0 --no-psf --facet-solutions s.h5,b.h5 --soltabs a,p"),
    (f"{BASE} -pol IQUV -facet-regions f.reg -apply-facet-solutions s.h5 a,p -no-solution-directions-check "
     "-shared-facet-reads -shared-facet-writes",
     f"{IMAGE} --facets f.reg --stokes I,Q,U,V --density first {UNIFORM} --field 0 --no-psf --facet-solutions s.h5 "
     "--soltabs a,p --any-solution-direction"),
    (f"{BASE} -facet-regions f.reg -apply-facet-solutions s.h5 a,p -diagonal-solutions -feather-size 0",
     f"{IMAGE} --facets f.reg --facet-feather 0 --stokes I {UNIFORM} --field 0 --no-psf --facet-solutions s.h5 --soltabs a,p"),
    # joined channels share their density also where nothing is cleaned
    (f"{BASE} -channels-out 2 -join-channels",
     f"{IMAGE} --channels-out 2 --stokes I {UNIFORM} --field 0 --mf-weighting --no-psf"),
    (f"{BASE} -channels-out 2 -join-channels -no-mf-weighting",
     f"{IMAGE} --channels-out 2 --stokes I {UNIFORM} --field 0 --no-mf-weighting --no-psf"),
    (f"{BASE} -store-imaging-weights -weight natural",
     f"{IMAGE} --store-imaging-weights --stokes I --weight natural --weighting-rank-filter 0 --field 0 --no-psf"),
    # options that have no effect are left out
    (f"{BASE} -weight natural -padding 1.3 -super-weight 2 -circular-beam -beam-size 6 -beam-fitting-size 9",
     f"{IMAGE} --beam-size 6asec --stokes I --weight natural --weighting-rank-filter 0 --field 0 --no-psf"),
    (f"{BASE} -theoretic-beam -circular-beam -beam-fitting-size 9",
     f"{IMAGE} --theoretic-beam --stokes I {UNIFORM} --field 0 --no-psf"),
    (f"{BASE} -no-fit-beam -circular-beam -beam-size 6",
     f"{IMAGE} --beam-size 6asec --stokes I {UNIFORM} --field 0 --no-psf"),
    (f"{BASE} -niter 9 -multiscale -multiscale-scales 0,4 -multiscale-max-scales 3 -no-update-model-required",
     f"{IMAGE} --multiscale --multiscale-scales 0,4 --stokes I {UNIFORM} --field 0 {CLEAN}"),
    (f"{BASE} -weight natural -padding 1.3 -taper-gaussian 20",
     f"{IMAGE} --padding 1.3 --taper-gaussian 20asec --stokes I --weight natural --weighting-rank-filter 0 --field 0 "
     "--no-psf"),
    (f"{BASE} -niter 9 -multiscale-gain .3 -multiscale-shape gaussian -force-mask-rounds 6 -no-update-model-required",
     f"{IMAGE} --stokes I {UNIFORM} --field 0 {CLEAN}"),
    (f"{BASE} -taper-gaussian 20 -taper-tukey 9 -taper-inner-tukey 8 -minuvw-m 7 -maxuvw-m 70 -odd-timesteps",
     f"{IMAGE} --taper-gaussian 20asec --taper-tukey 9 --taper-inner-tukey 8 --minuvw-m 7 --maxuvw-m 70 "
     f"--odd-timesteps --stokes I {UNIFORM} --field 0 --no-psf"),
    (f"{BASE} -beam-shape 20 1amin -30 -padding 1.3 -reorder --mem 50",
     f"{IMAGE} --beam-shape 20asec,1amin,-30deg --padding 1.3 --memory 50% --stokes I {UNIFORM} --field 0 --no-psf"),
    ("-predict -name p -mem 50 -size 9 9",
     "predict --model p-model.fits --column MODEL_DATA --overwrite --memory 50% --field 0"),
    (f"{BASE} -niter 9 -model-column OTHER",
     f"{IMAGE} --stokes I {UNIFORM} --field 0 {CLEAN} --update-model --model-column OTHER"),
    (f"{BASE} -predict -name p -channels-out 2 -pol iq -spws 1",
     "image -o p --overwrite --wsclean-files --predict-models --model-column MODEL_DATA --size 64,48 --scale 2asec "
     "--stokes I,Q --spw 1 --channels-out 2 --field 0"),
    # sizes are those of the models
    ("-predict -name p -channels-out 2",
     "image -o p --overwrite --wsclean-files --predict-models --model-column MODEL_DATA --stokes I --channels-out 2 "
     "--field 0"),
    ("-predict -name p -model-column OTHER",
     "predict --model p-model.fits --column OTHER --overwrite --field 0"),
]

# The same of lines without observations.
ALONE = [
    ("-j 2 -size 9 9 -restore a.fits b.fits c.fits", "restore a.fits b.fits -o c.fits --overwrite --threads 2"),
    ("-beam-shape 9 6asec 30 -restore-list a.fits b.txt c.fits",
     "restore a.fits b.txt -o c.fits --overwrite --beam-shape 9asec,6asec,30deg"),
    ("-restore a.fits b.fits c.fits -beam-size 8", "restore a.fits b.fits -o c.fits --overwrite --beam-size 8asec"),
    # as rapthor writes it
    ("-j 4 -draw-model sky.txt -draw-spectral-terms 2 -name m -draw-centre 12:00:00.0 +45.00.00.0 "
     "-draw-frequencies 150000000.0 1000000.0 -size 1024 512 -scale 0.001",
     "draw sky.txt -o m.fits --overwrite --scale 0.001deg --terms 2 --center 12:00:00.0,+45:00:00.0 "
     "--freq 150000000.0 --bandwidth 1000000.0 --threads 4 --size 1024,512"),
    # as WSClean's manual has it
    ("-draw-model sky.txt -sinc-window-size 256 -size 9 9 -scale 1arcsec -name m o.ms",
     "draw sky.txt -o m.fits --overwrite --scale 1asec --terms 1 --obs o.ms --field 0 --size 9,9"),
]

# Options that two or more of eighteen public pipelines use.
IN_USE = """
size scale niter name mgain join-channels channels-out gridder
weight auto-threshold no-update-model-required multiscale fit-spectral-pol auto-mask
pol parallel-deconvolution minuv-l maxuv-l fits-mask data-column
taper-gaussian nmiter predict multiscale-scales multiscale-scale-bias mem abs-mem local-rms idg-mode
deconvolution-channels temp-dir save-source-list reorder parallel-gridding parallel-reordering padding
log-time local-rms-window channel-range wgridder-accuracy weighting-rank-filter
use-differential-lofar-beam join-polarizations intervals-out interval field baseline-averaging
apply-primary-beam abs-threshold facet-regions apply-facet-solutions apply-facet-beam facet-beam-update
grid-with-beam no-negative model-column make-psf no-reorder beam-size verbose dd-psf-grid
scalar-visibilities continue beam-shape circular-beam fit-beam clean-border multiscale-max-scales
link-polarizations restore-list taper-inner-tukey nwlayers-factor odd-timesteps no-dirty gain
shared-facet-reads diagonal-visibilities model-storage-manager squared-channel-joining stop-negative
no-mf-weighting minuvw-m draw-model local-rms-method aterm-config
""".split()

# A bad command line, and what the error says.
REFUSED = [
    (f"{BASE} -mem 101 x.ms", "--memory: '101' is"),
    (f"{BASE} -niter many x.ms", "--niter: 'many' is"),
    (f"{BASE} -niter -5 x.ms", "--niter: '-5' is"),
    (f"{BASE} -channels-outt 2 x.ms", "-channels-outt: unknown option of WSClean; did you mean -channels-out?"),
    (f"{BASE} -frobnicate x.ms", "-frobnicate: unknown option of WSClean; leave it out"),
    (f"{BASE} -grid-with-beam x.ms", "-grid-with-beam: not supported: beams do not vary from pixel to pixel"),
    (f"{BASE} -visibility-weighting-mode unit x.ms", "-visibility-weighting-mode unit: only normal is supported"),
    # all of a line are named at once
    (f"{BASE} -grid-with-beam -frobnicate 2 -niter 9 -apply-facet-beam -dd-psf-grid 3 3 x.ms",
     "-grid-with-beam, -frobnicate, -dd-psf-grid, -apply-facet-beam: not supported; --translate-only tells why"),
    (f"{BASE} -dd-psf-grid 1 2 x.ms", "-dd-psf-grid: not supported without -facet-regions"),
    (f"{BASE} -facet-regions f.reg -apply-facet-solutions a.h5,b.h5,c.h5 p x.ms y.ms",
     "-apply-facet-solutions: 3 files for 2 observations"),
    ("-size 64", "-size: needs 2 values (WIDTH HEIGHT)"),
    ("-size 64 -scale 1asec -name x", "-size: needs 2 values (WIDTH HEIGHT), and -scale is an option"),
    (f"{BASE} -niter -mgain 0.8", "-niter: needs 1 value (N), and -mgain is an option"),
    (f"{BASE} -weight briggs -niter 1", "-weight: needs 2 values (KIND R), and -niter is an option"),
    (f"{BASE} -weight briggs", "-weight: needs 2 values (KIND R)"),
    (f"{BASE} x.ms -quiet", "-quiet: options come before the observations"),
    (BASE, "no observation given; put a MeasurementSet behind the options (see"),
    (f"{BASE} -weight briggs x.ms", "no observation given; put a MeasurementSet behind the options (-weight has taken "
                                    "'x.ms' as its value)"),
    ("-scale 2asec -size 64 ./x.ms", "no observation given; put a MeasurementSet behind the options (-size has taken "
                                     "'./x.ms' as its value)"),
    (f"{BASE} -pol IX x.ms", "-pol: 'IX' names no polarisations"),
    ("-restore a.fits b.fits", "-restore: needs 3 values (RESIDUAL MODEL IMAGE)"),
    ("-draw-model a.txt -size 9 9 -scale 1", "-draw-model needs -draw-centre, or an observation"),
    ("-draw-model a.txt -size 9 9 x.ms", "-draw-model needs -scale"),
]


# Options of lines of public pipelines and scripts, and those of them that are refused: of facets, a-terms and
# beams of stations.
PIPELINES = {
    "oxkat": (
        "-log-time -abs-mem 225 -parallel-reordering 8 -data-column CORRECTED_DATA -field 0 -size 10240 10240 -scale "
        "1.1asec -use-wgridder -no-update-model-required -weight briggs -0.3 -parallel-deconvolution 2560 -niter 120000 "
        "-gain 0.15 -mgain 0.9 -channels-out 8 -fit-spectral-pol 4 -join-channels -padding 1.2 -local-rms "
        "-local-rms-strength 0.5 -auto-mask 4.5 -auto-threshold 1.0 -pol I",
        ""),
    "mightee-pol": (
        "-abs-mem 225 -parallel-reordering 8 -no-dirty -no-update-model-required -data-column CORRECTED_DATA -size 6144 "
        "6144 -scale 1.5asec -pol QU -join-polarizations -join-channels -squared-channel-joining -no-mf-weighting "
        "-channels-out 250 -weight briggs 0.0 -niter 50000 -gain 0.1 -mgain 0.9 -auto-threshold 4 -padding 1.2 "
        "-nwlayers-factor 3 -taper-gaussian 12asec -minuv-l 20",
        ""),
    "polkat-v": (
        "-log-time -abs-mem 225 -parallel-reordering 8 -size 8192 8192 -scale 1.1asec -pol IV -link-polarizations I "
        "-no-update-model-required -weight briggs -0.7 -niter 100000 -mgain 0.9 -channels-out 8 -join-channels "
        "-circular-beam -multiscale -multiscale-scales 0,3,9 -local-rms -local-rms-window 30 -fits-mask m.fits -threshold "
        "1e-5 -parallel-deconvolution 2560",
        ""),
    "caracal": (
        "-log-time -j 16 -absmem 100 -datacolumn DATA -size 3600 3600 -scale 2asec -weight briggs -0.5 -niter 1000000 "
        "-mgain 0.95 -gain 0.1 -auto-threshold 3 -auto-mask 20 -pol I -channelsout 8 -joinchannels -fit-spectral-pol 4 "
        "-padding 1.3 -multiscale -multiscale-scales 0,10,20,30 -local-rms -nmiter 20 -taper-gaussian 0 -save-source-list "
        "-clean-border 5 -minuvw-m 0",
        ""),
    "bullet": (
        "-reorder -size 8192 8192 -scale 1.1arcsec -data-column DATA -weight briggs -0.5 -weighting-rank-filter 3 "
        "-auto-mask 3.0 -auto-threshold 1 -niter 50000 -clean-border 2 -mgain 0.8 -fit-beam -join-channels "
        "-gap-channel-division -channels-out 6 -pol I -multiscale -parallel-deconvolution 1024 -use-wgridder -mem 50",
        ""),
    "facetselfcal": (
        "-size 5000 5000 -scale 2asec -data-column DATA -update-model-required -reorder -weight briggs -0.5 -clean-border "
        "1 -parallel-reordering 4 -gain 0.1 -mgain 0.7 -nmiter 30 -padding 1.4 -join-channels -channels-out 16 -local-rms "
        "-local-rms-strength 0.5 -auto-mask 3.0 -auto-threshold 0.5 -multiscale -multiscale-scale-bias 0.8 "
        "-multiscale-max-scales 7 -fit-spectral-pol 3 -pol i -gridder wgridder -fit-beam -niter 300000",
        ""),
    "facetselfcal-facets": (
        "-size 4000 4000 -scale 2.5asec -data-column DATA -update-model-required -reorder -weight briggs -0.5 -gain 0.1 "
        "-mgain 0.7 -nmiter 30 -join-channels -channels-out 16 -local-rms -local-rms-strength 0.5 -auto-mask 3.0 "
        "-auto-threshold 0.5 -multiscale -fit-spectral-pol 3 -pol i -gridder wgridder -dd-psf-grid 3 3 -niter 200000 "
        "-facet-regions facets.reg -apply-facet-solutions merged.h5 amplitude000,phase000 -apply-facet-beam "
        "-facet-beam-update 600 -use-differential-lofar-beam -parallel-gridding 6 -shared-facet-reads",
        ""),
    "facetselfcal-predict": (
        "-predict -size 22500 22500 -scale 0.4arcsec -channels-out 3 -gridder wgridder -padding 1.2 -name x "
        "-channel-division-frequencies 136000000,152000000 -parallel-reordering 6",
        ""),
    "sub-archive": (
        "-no-update-model-required -size 2000 2000 -reorder -weight briggs -0.5 -weighting-rank-filter 3 -clean-border 1 "
        "-mgain 0.8 -no-fit-beam -data-column DATA -join-channels -channels-out 6 -padding 1.2 -multiscale "
        "-multiscale-scales 0,4,8,16,32,64,128,256 -auto-mask 3.0 -auto-threshold 2.5 -taper-gaussian 60.0arcsec "
        "-circular-beam -beam-size 60.0arcsec -pol i -scale 15.0arcsec -niter 100000 -minuv-l 0 -baseline-averaging 2.0",
        ""),
    "sub-archive-idg": (
        "-no-update-model-required -size 2000 2000 -reorder -weight briggs -0.5 -mgain 0.8 -no-fit-beam -data-column DATA "
        "-join-channels -channels-out 6 -multiscale -auto-mask 3.0 -auto-threshold 2.5 -circular-beam -beam-size 60arcsec "
        "-pol i -scale 15arcsec -niter 100000 -use-idg -idg-mode cpu -aterm-kernel-size 16 -aterm-config aconfig.txt",
        "-aterm-config"),
    "lofar-vlbi": (
        "-gridder wgridder -no-update-model-required -minuv-l 80.0 -size 45000 45000 -weighting-rank-filter 3 -reorder "
        "-weight briggs -1.5 -parallel-reordering 4 -mgain 0.75 -data-column DATA -auto-mask 2.5 -auto-threshold 1.0 -pol "
        "i -scale 0.1arcsec -niter 0 -multiscale-scale-bias 0.6 -parallel-deconvolution 2600 -multiscale "
        "-multiscale-max-scales 9 -nmiter 0 -no-reorder -no-dirty -mem 75 -channels-out 6 -join-channels "
        "-fit-spectral-pol 3 -local-rms -local-rms-window 50 -taper-gaussian 0.3asec",
        ""),
    "lofar-vlbi-delay": (
        "-no-update-model-required -minuv-l 1500.0 -size 1600 1600 -reorder -weight briggs -1.5 -clean-border 1 "
        "-parallel-reordering 4 -mgain 0.8 -data-column DATA -padding 1.4 -join-channels -channels-out 6 -auto-mask 2.5 "
        "-auto-threshold 0.5 -fit-spectral-pol 3 -pol i -baseline-averaging 6.135923151542564 -use-wgridder -scale "
        "0.04arcsec -nmiter 9 -niter 15000",
        ""),
    "linc": (
        "-auto-threshold 3 -auto-mask 5 -channels-out 6 -deconvolution-channels 3 -fit-spectral-pol 3 -join-channels -j 8 "
        "-maxuv-l 20000 -minuv-l 80 -mgain 0.8 -multiscale -multiscale-scale-bias 0.7 -niter 20000 -nmiter 5 -no-dirty "
        "-no-update-model-required -parallel-deconvolution 1500 -pol I -save-source-list -scale 0.0008 -size 2500 2500 "
        "-taper-gaussian 10asec -temp-dir /tmp -use-wgridder -weight briggs -0.5 -local-rms -local-rms-window 40 -abs-mem "
        "20 -apply-primary-beam",
        ""),
    "rapthor": (
        "-no-update-model-required -save-source-list -local-rms-strength 0.8 -local-rms-window 25 -local-rms-method "
        "rms-with-min -join-channels -fit-spectral-pol 3 -pol I -size 5000 5000 -niter 9000000 -nmiter 12 -minuv-l 80 "
        "-maxuv-l 1000000 -mgain 0.85 -multiscale -scale 0.0003472 -channels-out 8 -deconvolution-channels 4 "
        "-taper-gaussian 0.0 -weight briggs -0.5 -auto-mask 5 -auto-mask-nmiter 2 -auto-threshold 1 -abs-mem 90 -j 16 "
        "-deconvolution-threads 14 -parallel-deconvolution 2000 -dd-psf-grid 1 1 -gridder wgridder -parallel-gridding 6 "
        "-log-time -skip-final-iteration -temp-dir /tmp -multiscale-shape gaussian -multiscale-scale-bias 0.7 "
        "-model-storage-manager stokes-i",
        ""),
    "rapthor-facets": (
        "-no-update-model-required -save-source-list -local-rms -join-channels -pol IQUV -link-polarizations I -size 5000 "
        "5000 -niter 9000000 -nmiter 8 -mgain 0.85 -scale 0.0003472 -channels-out 8 -auto-mask-nmiter 1 -apply-facet-beam "
        "-facet-beam-update 120 -use-differential-lofar-beam -facet-regions r.reg -apply-facet-solutions s.h5 phase000 "
        "-diagonal-visibilities -shared-facet-writes -compound-tasks",
        ""),
    "lilf-wide": (
        "-parallel-gridding 4 -size 10000 10000 -scale 9arcsec -weight briggs -0.5 -niter 1000000 -gridder wgridder "
        "-minuv-l 30 -mgain 0.85 -parallel-deconvolution 32 -join-channels -fit-spectral-pol 3 -channels-out 6 "
        "-deconvolution-channels 3 -multiscale -multiscale-scale-bias 0.65 -pol i -beam-size 45asec -reorder "
        "-parallel-reordering 4 -nmiter 12 -auto-threshold 2.0 -auto-mask 4.0 -local-rms -local-rms-window 50 "
        "-local-rms-strength 0.5 -data-column CORRECTED_DATA_AMPL",
        ""),
    "lilf-params": (
        "-no-update-model-required -scale 3arcsec -size 2000 2000 -weight briggs -0.3 -niter 100000 -mgain 0.85 "
        "-auto-threshold 3 -auto-mask 5 -join-channels -fit-spectral-pol 3 -channels-out 9 -deconvolution-channels 3 "
        "-multiscale -multiscale-scales 0,8,16,32 -multiscale-scale-bias 0.6 -multiscale-gain 0.15 -reuse-psf img/clean "
        "-reuse-dirty img/clean",
        ""),
    "lodess": (
        "-no-update-model-required -minuv-l 80.0 -size 8192 8192 -reorder -parallel-deconvolution 2048 -weight briggs "
        "-0.5 -weighting-rank-filter 3 -clean-border 1 -parallel-reordering 4 -mgain 0.8 -fit-beam -data-column DATA "
        "-padding 1.4 -join-channels -channels-out 8 -auto-mask 2.5 -auto-threshold 0.5 -pol i -baseline-averaging "
        "2.396844981071314 -use-wgridder -scale 8.0arcsec -niter 150000",
        ""),
    "aartfaac": (
        "-size 2300 2300 -scale 0.05 -j 23 -interval 3 4 -no-update-model-required -pol I -weight briggs 0.0 -niter 0 "
        "-no-dirty -auto-mask 3 -auto-threshold 0.3 -local-rms -mgain 0.8 -fit-beam -clean-border 21 -data-column "
        "SUBTRACTED_DATA",
        ""),
    "woden": (
        "-scale 0.02 -size 2048 2048 -niter 10000 -auto-threshold 0.5 -auto-mask 3 -pol I -multiscale -weight briggs 0 -j "
        "10 -mgain 0.85 -no-update-model-required -abs-mem 30 -grid-with-beam -use-idg -idg-mode cpu -pb-undersampling 4 "
        "-mwa-path /opt/beams",
        "-grid-with-beam"),
    "mwa": (
        "-size 4096 4096 -j 8 -mwa-path /opt/beams -auto-threshold 1 -auto-mask 3 -multiscale -niter 1000000 -mgain 0.85 "
        "-save-source-list -data-column CORRECTED_DATA -scale 0.004 -weight uniform -small-inversion -make-psf -pol I "
        "-pb-undersampling 4 -channels-out 8 -join-channels -fit-spectral-pol 2",
        ""),
    "gleam-x": (
        "-mgain 0.95 -niter 0 -apply-primary-beam -mwa-path /opt/beams -multiscale -multiscale-gain 0.15 -nmiter 5 "
        "-auto-mask 3 -auto-threshold 1 -size 8000 8000 -scale 0.0069 -weight briggs 0.5 -pol I -join-channels "
        "-channels-out 4 -save-source-list -fit-spectral-pol 2 -minuv-l 48 -taper-inner-tukey 24 -j 38",
        ""),
    "mwa-sun": (
        "-size 512 512 -scale 773asec -niter 0 -make-psf-only -no-fit-beam -pol i -j 4 -quiet",
        ""),
    "apertif": (
        "-mem 100 -no-dirty -weight natural -super-weight 1.0 -weighting-rank-filter-size 16 -size 1024 1024 -scale "
        "2.6asec -channels-out 1 -grid-mode kb -kernel-size 7 -oversampling 63 -make-psf-only -pol xx -intervals-out 1 "
        "-data-column DATA -gain 0.1 -mgain 1.0 -multiscale-scale-bias 0.6 -fit-beam -no-fit-beam",
        ""),
    "racs-low": (
        "-abs-mem 100 -mgain 0.70 -force-mask-rounds 6 -nmiter 15 -niter 500000 -local-rms -auto-mask 5.0 "
        "-local-rms-window 125 -auto-threshold 1.0 -size 7500 7500 -scale 0.3asec -weight briggs 0.5 -pol I -use-wgridder "
        "-join-channels -channels-out 8 -data-column DATA -log-time",
        ""),
    "spice-racs": (
        "-pol IQU -j 8 -verbose -channels-out 36 -scale 2asec -size 4096 4096 -join-polarizations -join-channels "
        "-squared-channel-joining -mgain 0.7 -niter 1000000 -auto-mask 3 -force-mask-rounds 7 -auto-threshold 0.5 "
        "-gridder wgridder -weight briggs -0.5 -log-time -mem 256 -abs-mem 90 -minuv-l 300 -nmiter 0 -local-rms "
        "-local-rms-window 60 -no-mf-weighting",
        ""),
    "hera": (
        "-size 512 512 -scale 500asec -weight briggs 0 -niter 500 -pol XX,YY -join-polarizations -data-column DATA "
        "-channel-range 150 900 -channels-out 3 -intervals-out 2 -mgain 0.8 -no-update-model-required "
        "-weighting-rank-filter 3 -no-small-inversion -beam-size 2700",
        ""),
    "vla-mosaic": (
        "-use-idg -grid-with-beam -aterm-kernel-size 16 -multiscale -field all -mem 10 -temp-dir /tmp -weight briggs 0 "
        "-size 8192 8192 -scale 500masec -niter 1000000 -nmiter 10 -mgain 0.5 -auto-threshold 1 -auto-mask 5 "
        "-channels-out 4 -join-channels -local-rms -parallel-deconvolution 4000",
        "-grid-with-beam"),
    "everybeam": (
        "-size 4000 4000 -scale 2asec -niter 100000 -mgain 0.8 -auto-threshold 3 -use-idg -idg-mode hybrid "
        "-beam-aterm-update 600 -grid-with-beam -use-differential-lofar-beam -beam-model hamaker -primary-beam-limit 0.1 "
        "-pb-grid-size 64 -save-aterms",
        "-grid-with-beam"),
    "gmrt": (
        "-j 16 -size 7200 7200 -scale 1.2asec -weight briggs -0.2 -niter 150000 -mgain 0.85 -gain 0.1 -auto-mask 5 "
        "-auto-threshold 1 -local-rms -local-rms-window 50 -local-rms-method rms-with-min -channels-out 6 -join-channels "
        "-fit-spectral-log-pol 2 -no-negative -data-column CORRECTED_DATA -update-model-required -maxw 99 -v",
        ""),
}


def check_pipelines(suite):
    """Lines of pipelines are translated, but for the options that are told here."""
    for name, (options, refused) in PIPELINES.items():
        made = run([OURS, "-translate-only", *options.split(), "a.ms"], 60)
        told = [line.split()[1].rstrip(":") for line in made.out.splitlines() if line.startswith("# ")]
        suite.equal(f"{name}: refused", (made.status, ", ".join(told)), (2 if refused else 0, refused))


def check_aterms(suite):
    """A-terms of facets are not those of pixels: a warning says what differs."""
    line = [OURS, "-translate-only", *BASE.split(), "-facet-regions", "f.reg"]
    for more, warns in ((["-aterm-config", "a.txt"], True), (["-use-idg"], False)):
        made = run([*line, *more, "a.ms"], 60)
        suite.equal(f"{more[0]}: {made.err.strip()}", "do not vary inside one" in made.err, warns)


def check_solutions_of_sets(suite):
    """Of several observations and as many files of solutions, each has one, in images and in predictions."""
    facets = ["-facet-regions", "f.reg", "-apply-facet-solutions", "s.h5,b.h5", "a,p", "-diagonal-visibilities"]
    made = run([OURS, "-translate-only", *BASE.split(), *facets, "a.ms", "b.ms"], 60)
    suite.true(f"an image of two: {made.out.strip()}", "--facet-solutions s.h5,b.h5 --soltabs a,p "
               "--solutions-per-observation" in made.out)
    made = run([OURS, "-translate-only", "-predict", *facets, "a.ms", "b.ms"], 60)
    suite.equal("predictions of one each", [line.partition("--facet-solutions ")[2] for line in made.out.splitlines()],
                ["s.h5 --soltabs a,p a.ms", "b.h5 --soltabs a,p b.ms"])
    made = run([OURS, "-translate-only", *BASE.split(), *facets[:3], "s.h5", *facets[4:], "a.ms", "b.ms"], 60)
    suite.true("one file is that of both", "--solutions-per" not in made.out and "s.h5" in made.out)


def check_translation(suite):
    for line, words in TRANSLATED:
        made = run([OURS, "-translate-only", *line.split(), "a b.ms"], 60)
        suite.equal(f"'{line}' is", (made.status, shlex.split(made.out)), (0, ["tessera", *words.split(),
                                                                               "a b.ms"]))
    for line, words in ALONE:
        made = run([OURS, "-translate-only", *line.split()], 60)
        suite.equal(f"'{line}' is", (made.status, shlex.split(made.out)), (0, ["tessera", *words.split()]))
    two = run([OURS, "--translate-only", "-predict", "a.ms", "b.ms"], 60)
    suite.equal("-predict of two sets is two commands", len(two.out.splitlines()), 2)
    check_solutions_of_sets(suite)
    check_aterms(suite)


def check_table(suite):
    """The options in use are in the table, and at most a quarter of them is refused."""
    table = run([OURS, "-table"], 60).out.splitlines()
    rows = {row.split("`")[1].split()[0][1:]: row for row in table if row.startswith("| `")}
    suite.equal("options in use that are not in the table", [k for k in IN_USE if k not in rows], [])
    refused = [k for k in IN_USE if k in rows and "| refused |" in rows[k]]
    suite.below(f"refused of {len(IN_USE)}, {' '.join(refused)}", len(refused), len(IN_USE) / 4)


def check_refusals(suite):
    for line, text in REFUSED:
        made = run([OURS, *line.split()], 60)
        suite.equal(f"'{line}': status", made.status, 2)
        suite.true(f"'{line}': one line with '{text}'", len(made.errors()) == 1
                   and made.errors()[0].startswith("tessera: error: " + text))


def check_reasons(suite):
    """--translate-only lists what is refused, with reasons, as comments of a shell."""
    for ranks in ([], [mpiexec(), "-n", "2"]) if mpiexec() else ([],):
        made = run([*ranks, OURS, *f"-translate-only {BASE} -apply-facet-beam -niter 9 -chanels-out 2 -save-uv "
                    "x.ms".split()], 60)
        told = made.out.splitlines()
        suite.equal("reasons: status and number", (made.status, len(told), len(made.errors())), (2, 3, 1))
        for text, line in zip(("-chanels-out: unknown option of WSClean; did you mean -channels-out?",
                               "-save-uv: not supported: ",
                               "-apply-facet-beam: not supported without -facet-regions"), told):
            suite.true(f"reasons: '{text}'", line.startswith("# " + text))


def check_runs(suite):
    """Files, log and several ranks. Of UVFITS there is no MODEL_DATA to write."""
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1, q=.5)])
    obs = simulate(suite.path("obs.uvfits"), sky, duration="10min")
    line = ("-size 64 64 -scale 5asec -mem 50 -pol IQ -niter 50 -mgain 0.8 -reorder -threshold 0.05 "
            "-fit-spectral-pol 2").split()
    made = run([BIN, "wsclean", "-quiet", *line, "-name", suite.path("one"), obs], 120)
    if not suite.ran("tessera wsclean", made):
        return
    files = sorted(f for f in os.listdir(suite.work) if f.startswith("one-"))
    suite.equal("files", files, sorted(["one-psf.fits"] + [
        f"one-{s}-{kind}.fits" for s in "IQ" for kind in ("dirty", "image", "model", "residual")]))
    suite.equal("--quiet prints", made.err, "")
    told = "".join(read_image(suite.path("one-I-image.fits"))[1]["HISTORY"])
    typed = " ".join(["wsclean -quiet", *line, "-name", suite.path("one"), obs])
    suite.true("HISTORY begins with the line, and then the command", told.startswith(typed + " tessera ")
               and " tessera image -o " in told)
    with open(suite.path("one.log"), encoding="utf-8") as file:
        log = file.read()
    for text in ("-reorder is left out: observations are read in parallel",
                 "-fit-spectral-pol is left out: it has no effect here",
                 "the last residual is that of the data", "never by WSClean's small inversion"):
        suite.equal(f"'{text}' in the log", log.count(text), 1)
    check_names(suite, obs)
    check_one_psf(suite, obs)
    check_weights(suite, obs)
    if not mpiexec():
        return
    two = run([mpiexec(), "-n", "2", OURS, *line, "-name", suite.path("two"), obs], 120)
    if suite.ran("two ranks", two):
        images = [read_image(suite.path(name + "-Q-image.fits"))[0] for name in ("one", "two")]
        suite.below("two ranks: difference", np.abs(images[1] - images[0]).max(), 1e-4)
    wrong = run([mpiexec(), "-n", "2", OURS, "-nitter", "5", obs], 120)
    suite.equal("two ranks: status of a mistake", wrong.status, 2)
    suite.equal("two ranks: lines of a mistake", len(wrong.errors()), 1)


def check_names(suite, obs):
    """UVFITS is told by what the file holds: without columns there is no --update-model, and without
    fields no --field."""
    for name in ("named_otherwise", "named.ms"):
        os.symlink(obs, suite.path(name))
        made = run([OURS, "-translate-only", *f"{BASE} -niter 9".split(), suite.path(name)], 60)
        suite.true(f"UVFITS called {name}: no words of MeasurementSets", made.status == 0
                   and "--update-model" not in made.out and "--field" not in made.out)


def check_weights(suite, obs):
    """Keywords of weights: of two channels, and of their mean the sums. Stokes I weighs four times the smaller
    weight; as many visibilities of the largest weight as WSCENVIS tells have the same sum."""
    with fits_module().open(obs) as hdus:
        weight = hdus[0].data["DATA"][..., 2].reshape(len(hdus[0].data), -1, 2)
        weight *= np.random.default_rng(3).uniform(.1, 1, weight.shape)
        hdus[0].data["DATA"][..., 2] = weight.reshape(hdus[0].data["DATA"].shape[:-1])
        hdus.writeto(suite.path("uneven.uvfits"))
    parts = np.split(4 * weight.min(-1), 2, axis=1)
    line = "-size 64 64 -scale 5asec -weight natural -channels-out 2 -no-dirty -name".split()
    for ranks in (1, 3) if mpiexec() else (1,):
        start = [mpiexec(), "-n", str(ranks)] if ranks > 1 else []
        made = run([*start, OURS, "-quiet", *line, suite.path("keys"), suite.path("uneven.uvfits")], 120)
        if not suite.ran(f"keywords, {ranks} ranks", made):
            return
        for name, of in (("0000", parts[:1]), ("0001", parts[1:]), ("MFS", parts)):
            header = read_image(suite.path(f"keys-{name}-image.fits"))[1]
            total = sum(part.sum(dtype=float) for part in of)
            for key, value in (("WSCIMGWG", total), ("WSCNORMF", total), ("WSCVWSUM", total),
                               ("WSCENVIS", sum(part.sum(dtype=float) / part.max() for part in of)),
                               ("WSCNVIS", sum(part.size for part in of))):
                suite.below(f"{name}, {ranks} ranks: {key}", abs(header[key] / value - 1), 1e-6)


def check_one_psf(suite, obs):
    """The one PSF is the first one's also where polarisations have other weights."""
    with fits_module().open(obs) as hdus:
        hdus[0].data["DATA"][..., 1, 2] *= np.linspace(.1, 1, len(hdus[0].data)).reshape(-1, *[1] * 4)
        hdus.writeto(suite.path("weights.uvfits"))
    made = run([OURS, *"-size 64 64 -scale 5asec -pol XX,YY -weight natural -make-psf -name".split(),
                suite.path("weights"), suite.path("weights.uvfits")], 120)
    own = run([BIN, "image", suite.path("weights.uvfits"), "-o", suite.path("own"), "--stokes", "XX,YY",
               "--weight", "natural", "--size", "64", "--scale", "5asec"], 120)
    if not (suite.ran("other weights", made) and suite.ran("tessera's own names", own)):
        return
    suite.equal("PSFs", [f for f in os.listdir(suite.work) if f.startswith("weights-")
                         and f.endswith("psf.fits")], ["weights-psf.fits"])
    psf, first, second = (read_image(suite.path(name + "-psf.fits"))[0]
                          for name in ("weights", "own-XX", "own-YY"))
    suite.below("the PSF and that of XX", np.abs(psf - first).max(), 1e-5)
    suite.true("that of YY is another one", np.abs(psf - second).max() > 1e-3)


def check_sets(suite):
    """A dirty image has two names, and MODEL_DATA is written where a set is cleaned."""
    sky = write_sky(suite.path("sky.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1)])
    obs = simulate(suite.path("obs.ms"), sky, duration="10min")
    for name, more in (("dirty", []), ("clean", ["-niter", "20", "-threshold", "0.1"])):
        made = run([OURS, *"-size 64 64 -scale 5asec -j 1".split(), *more, "-name", suite.path(name), obs],
                   120)
        if suite.ran(name, made):
            image = read_image(suite.path(name + "-image.fits"))[0]
            suite.below(f"{name}: peak", abs(image.max() - 1), .05)
    later = simulate(suite.path("later.ms"), sky, duration="10min", start="2026-01-01T22:00:00")
    for steps in ("-intervals-out 2", "-interval 0 2", "-odd-timesteps"):
        several = run([OURS, *f"-quiet -size 64 64 -scale 5asec {steps} -name".split(), suite.path("steps"), obs,
                       later], 120)
        suite.equal(f"{steps} of sets of other times: status", several.status, 2)
        suite.true(f"{steps} of sets of other times: it is said", "later.ms has other times" in several.err)
        alike = run([OURS, *f"-quiet -size 64 64 -scale 5asec {steps} -name".split(), suite.path("steps"), obs,
                     obs], 120)
        suite.ran(f"{steps} of sets of the same times", alike)
    suite.equal("dirty files", sorted(f for f in os.listdir(suite.work) if f.startswith("dirty-")),
                ["dirty-dirty.fits", "dirty-image.fits"])
    check_models(suite, obs)
    check_conjugate(suite, write_sky(suite.path("four.csv"), [dict(ra="60deg", dec="-30deg", flux_jy=1, u=.4, v=.3)]))
    column = run([BIN, "image", obs, "-o", suite.path("model"), "--size", "64", "--scale", "5asec",
                  "--datacolumn", "MODEL_DATA"], 120)
    if suite.ran("image of MODEL_DATA", column):
        suite.below("peak of MODEL_DATA", abs(read_image(suite.path("model-dirty.fits"))[0].max() - 1), .2)


def check_conjugate(suite, sky):
    """MODEL_DATA of YX is that of the sky whose XY is cleaned: here a source in the middle."""
    obs = simulate(suite.path("four.ms"), sky, duration="10min", pol="XX,XY,YX,YY")
    made = run([OURS, *"-size 64 64 -scale 5asec -j 1 -pol xy,yx -join-polarizations -niter 1 -gain 1 "
                "-name".split(), suite.path("conjugate"), obs], 120)
    column = run([BIN, "image", obs, "-o", suite.path("four"), "--size", "64", "--scale", "5asec", "--datacolumn",
                  "MODEL_DATA", "--stokes", "IUV"], 120)
    if not (suite.ran("-pol xy,yx", made) and suite.ran("image of all correlations", column)):
        return
    for stokes, wanted in (("I", 0), ("U", .4), ("V", .3)):
        peak = read_image(suite.path(f"four-{stokes}-dirty.fits"))[0].max()
        suite.below(f"MODEL_DATA, peak of {stokes}", abs(peak - wanted), 1e-3)


def check_models(suite, obs):
    """-predict of the models of several channels gives what cleaning has written."""
    line = "-channels-out 2 -pol XX,YY -name".split() + [suite.path("several")]
    for more in ("-size 64 64 -scale 5asec -niter 30 -mgain 0.8 -threshold 0.05", "-predict -model-column PREDICTED"):
        if not suite.ran(f"several channels {more}", run([OURS, *more.split(), *line, obs], 120)):
            return
    images = []
    for column in ("MODEL_DATA", "PREDICTED"):
        made = run([BIN, "image", obs, "-o", suite.path(column), "--size", "64", "--scale", "5asec",
                    "--datacolumn", column, "--stokes", "XX,YY", "--reproducible"], 120)
        if suite.ran(f"image of {column}", made):
            images.append([read_image(suite.path(f"{column}-{c}-dirty.fits"))[0] for c in ("XX", "YY")])
    if len(images) == 2:
        suite.true("the models are not empty", np.abs(images[0]).max() > .5)
        suite.below("difference of the columns", np.abs(np.subtract(*images)).max(), 1e-6)
    lacking = run([OURS, "-predict", *line, "-channels-out", "3", obs], 120)
    suite.equal("a model is not there: status", lacking.status, 3)
    suite.true("a model is not there: it is named", "several-0002-XX-model.fits" in lacking.err)


def main():
    suite = Suite("wsclean_words")
    check_translation(suite)
    check_pipelines(suite)
    check_table(suite)
    check_refusals(suite)
    check_reasons(suite)
    check_runs(suite)
    if have_ms():
        check_sets(suite)
    suite.finish()


if __name__ == "__main__":
    main()
