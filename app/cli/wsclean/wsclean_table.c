/* The table of WSClean's options, and how it is searched and printed. A row says what
 * an option becomes in tessera; wsclean_words.c puts the command together. */
#include "wsclean_table.h"

#include <ctype.h>
#include <string.h>

#include "cli_help.h"

/* Rows of one kind. */
#define BECOMES(name, arguments, becomes, remark, where)                               \
    {                                                                                  \
        name, arguments, WSCLEAN_BECOMES, becomes, remark, where, 0                    \
    }
#define CHOICE(name, arguments, becomes, remark, where)                                \
    {                                                                                  \
        name, arguments, WSCLEAN_CHOICE, becomes, remark, where, 0                     \
    }
#define IGNORED(name, arguments, remark)                                               \
    {                                                                                  \
        name, arguments, WSCLEAN_IGNORED, NULL, remark, WSCLEAN_PREDICT, 0             \
    }
#define ONLY(name, arguments, only, remark)                                            \
    {                                                                                  \
        name, arguments, WSCLEAN_ONLY, NULL, remark, WSCLEAN_PREDICT, only             \
    }
#define REFUSED(name, arguments, remark)                                               \
    {                                                                                  \
        name, arguments, WSCLEAN_REFUSED, NULL, remark, WSCLEAN_PREDICT, 0             \
    }

/* Options that all kinds of runs have. */
#define ANYWHERE (WSCLEAN_PREDICT | WSCLEAN_RESTORE | WSCLEAN_DRAW)

/* Remarks of several options. */
#define ACCURATE "gridding keeps --accuracy (-wgridder-accuracy), whatever the gridder"
#define PLANNED  "the planner chooses; ranks of mpirun -n N share the work"
#define UNSORTED "observations are read in parallel, and never copied"
#define NO_ATERMS                                                                      \
    "beams do not vary from pixel to pixel here; use -facet-regions with "             \
    "-apply-facet-beam, or -apply-primary-beam"
#define OF_BEAMS                                                                       \
    "beams of stations are files of tessera-station-beams, which has such an option"
#define OF_ATERMS "a facet has the a-term at its direction, which is not resampled"
#define MADE_ANEW                                                                      \
    "it is made anew of the same data, which takes as long as a major iteration"
#define NO_OTHER                                                                       \
    "there are --multiscale and single-scale cleaning; leave it out or use "           \
    "-multiscale"
#define SQUARES                                                                        \
    "without effect with -squared-channel-joining: squares have no sign; joined "      \
    "polarisations have that of their sum"
#define NO_NOISE "use tessera simulate --noise"

const wsclean_option wsclean_options[] = {
    /* general */
    CHOICE("name", "NAME", "-o NAME", "default: wsclean", ANYWHERE),
    BECOMES("j", "N", "--threads %1", "threads of each rank", ANYWHERE),
    BECOMES("abs-mem", "N", "--memory %1GiB", "of the node",
            WSCLEAN_PREDICT | WSCLEAN_NONZERO),
    BECOMES("mem", "PERCENT", "--memory %1%", "of what the job may use on the node",
            WSCLEAN_PREDICT | WSCLEAN_NONZERO),
    BECOMES("temp-dir", "DIR", "--scratch %1", "for data larger than memory", 0),
    BECOMES("verbose", NULL, "--verbose", NULL, ANYWHERE),
    BECOMES("v", NULL, "--verbose", NULL, ANYWHERE),
    BECOMES("quiet", NULL, "--quiet", NULL, ANYWHERE),
    CHOICE("update-model-required", NULL, "--update-model",
           "the default where images are cleaned", WSCLEAN_PREDICT),
    CHOICE("no-update-model-required", NULL, "no --update-model", NULL,
           WSCLEAN_PREDICT),
    CHOICE("no-dirty", NULL, "--no-dirty",
           "where nothing is cleaned: --dirty-as-image, NAME-image.fits alone", 0),
    BECOMES("save-first-residual", NULL, "--save-first-residual",
            "of the data; WSClean's is what the first minor loop leaves",
            WSCLEAN_CLEAN),
    CHOICE("dry-run", NULL, "--translate-only", NULL, ANYWHERE),
    CHOICE("version", NULL, "--version", NULL, WSCLEAN_PREDICT),
    IGNORED("log-time", NULL, "each line of the log has its time"),
    IGNORED("reorder", NULL, UNSORTED),
    IGNORED("no-reorder", NULL, UNSORTED),
    IGNORED("parallel-reordering", "N", UNSORTED),
    IGNORED("save-reordered", NULL, UNSORTED),
    IGNORED("reuse-reordered", NULL, UNSORTED),
    IGNORED("in-memory", NULL, UNSORTED),
    IGNORED("sort-ms", NULL, UNSORTED),
    IGNORED("parallel-gridding", "N", PLANNED),
    IGNORED("no-work-on-master", NULL, PLANNED),
    IGNORED("channel-to-node", "LIST", PLANNED),
    IGNORED("max-mpi-message-size", "SIZE", PLANNED),
    IGNORED("model-storage-manager", "NAME", "MODEL_DATA is made as DATA is stored"),
    REFUSED("save-weights", NULL, "the grid of weights is not written; leave it out"),
    REFUSED("save-uv", NULL,
            "leave it out: it is the Fourier transform of NAME-residual.fits, or of "
            "NAME-dirty.fits, which numpy.fft makes"),
    IGNORED("reuse-psf", "NAME", MADE_ANEW),
    IGNORED("reuse-dirty", "NAME", MADE_ANEW),

    /* weights */
    CHOICE("weight", "KIND", "--weight KIND, --weight briggs:R",
           "default: uniform; -weight briggs R has two words", 0),
    CHOICE("weighting-rank-filter", "X", "--weighting-rank-filter X",
           "default: 3; below 1 there is no filter", 0),
    CHOICE("weighting-rank-filter-size", "N", "--weighting-rank-filter-size N",
           "default: 16; below 2 there is no filter", 0),
    CHOICE("mf-weighting", NULL, "--mf-weighting", "default with -join-channels", 0),
    CHOICE("no-mf-weighting", NULL, "--no-mf-weighting", NULL, 0),
    BECOMES("super-weight", "F", "--super-weight %1",
            "WSClean forgets it where -weight follows", WSCLEAN_CELLS),
    BECOMES("taper-gaussian", "FWHM/asec", "--taper-gaussian %1",
            "arcseconds without a unit", WSCLEAN_NONZERO),
    BECOMES("taper-tukey", "LAMBDA", "--taper-tukey %1", "before the end of -maxuv-l",
            WSCLEAN_NONZERO),
    BECOMES("taper-inner-tukey", "LAMBDA", "--taper-inner-tukey %1", "from -minuv-l on",
            WSCLEAN_NONZERO),
    BECOMES("taper-edge", "LAMBDA", "--taper-edge %1", "of the grid of weights",
            WSCLEAN_NONZERO),
    BECOMES("taper-edge-tukey", "LAMBDA", "--taper-edge-tukey %1", "from there inwards",
            WSCLEAN_NONZERO),
    REFUSED("use-weights-as-taper", NULL,
            "the density counts the data's weights; leave it out"),
    BECOMES("store-imaging-weights", NULL, "--store-imaging-weights",
            "when images are made; of all polarisations", 0),
    ONLY("visibility-weighting-mode", "MODE", "normal",
         "weights are taken as they are stored"),
    REFUSED(
        "no-normalize-for-weighting", NULL,
        "images are in Jy/beam; leave it out (the sum of weights is in the header)"),

    /* images */
    BECOMES("size", "WIDTH HEIGHT", "--size %1,%2", NULL, WSCLEAN_DRAW),
    CHOICE("scale", "ANGLE/deg", "--scale ANGLE",
           "degrees without a unit; default: 0.01", WSCLEAN_DRAW),
    CHOICE("pol", "LIST", "--stokes LIST --density first",
           "default: I; all have the first one's weights; XY and YX together are a "
           "complex "
           "image, XY and XYi",
           WSCLEAN_PREDICT),
    CHOICE("channels-out", "N", "--channels-out N",
           "equal numbers of channels each, unless there is -gap-channel-division or "
           "-channel-division-frequencies",
           WSCLEAN_PREDICT),
    CHOICE("intervals-out", "N", "--intervals-out N", NULL, WSCLEAN_PREDICT),
    CHOICE("shift", "RA DEC", "--shift RA,DEC",
           "in the tangent plane of the phase centre", WSCLEAN_PREDICT),
    BECOMES("padding", "FACTOR", "--padding %1",
            "of the grid of weights; that of visibilities is as large as the accuracy "
            "needs",
            WSCLEAN_CELLS),
    CHOICE("make-psf", NULL, "no --no-psf", "the default where images are cleaned", 0),
    CHOICE("make-psf-only", NULL, "--no-dirty", NULL, 0),
    BECOMES("wgridder-accuracy", "E", "--accuracy %1", "a promise here",
            WSCLEAN_PREDICT),
    IGNORED("gridder", "NAME", ACCURATE),
    IGNORED("use-wgridder", NULL, ACCURATE),
    IGNORED("use-idg", NULL, ACCURATE),
    IGNORED("idg-mode", "MODE", ACCURATE),
    IGNORED("direct-ft", NULL, ACCURATE),
    IGNORED("direct-ft-precision", "KIND", ACCURATE),
    IGNORED("wtowers-subgrid-size", "N", ACCURATE),
    IGNORED("wtowers-kernel-size", "N", ACCURATE),
    IGNORED("wtowers-w-kernel-size", "N", ACCURATE),
    IGNORED("wtowers-padding", "F", ACCURATE),
    IGNORED("wtowers-w-padding", "F", ACCURATE),
    IGNORED("wtowers-accuracy", "E", ACCURATE),
    IGNORED("grid-mode", "KIND", ACCURATE),
    IGNORED("kernel-size", "N", ACCURATE),
    IGNORED("oversampling", "N", ACCURATE),
    IGNORED("nwlayers", "N", ACCURATE),
    IGNORED("nwlayers-factor", "F", ACCURATE),
    IGNORED("nwlayers-for-size", "WIDTH HEIGHT", ACCURATE),
    IGNORED("small-inversion", NULL,
            "images are always made in full, which is not slower"),
    IGNORED("no-small-inversion", NULL, "images are always made in full"),
    IGNORED("baseline-averaging", "LAMBDA",
            "data are gridded as they are, without the smearing of averages"),
    CHOICE("gap-channel-division", NULL, "--gap-channel-division",
           "with several -channels-out", WSCLEAN_PREDICT),
    CHOICE("channel-division-frequencies", "LIST",
           "--channel-division-frequencies LIST", "the same; Hz", WSCLEAN_PREDICT),
    REFUSED("simulate-noise", "FLUX", NO_NOISE),
    REFUSED("simulate-baseline-noise", "FILE", NO_NOISE),

    /* visibilities */
    BECOMES("data-column", "NAME", "--datacolumn %1", NULL, 0),
    CHOICE("minuv-l", "LAMBDA", "--uvrange LAMBDA: --cut-cells", NULL, WSCLEAN_NONZERO),
    CHOICE("maxuv-l", "LAMBDA", "--uvrange :LAMBDA --cut-cells", NULL, WSCLEAN_NONZERO),
    BECOMES("channel-range", "START END", "--channels %1:%2", NULL, WSCLEAN_PREDICT),
    BECOMES("interval", "START END", "--intervals %1:%2", NULL, WSCLEAN_PREDICT),
    BECOMES("spws", "LIST", "--spw %1", NULL, WSCLEAN_PREDICT),
    CHOICE("field", "LIST", "--field LIST", "default: 0",
           WSCLEAN_PREDICT | WSCLEAN_DRAW),
    BECOMES("minuvw-m", "METRES", "--minuvw-m %1", NULL, WSCLEAN_NONZERO),
    BECOMES("maxuvw-m", "METRES", "--maxuvw-m %1", NULL, WSCLEAN_NONZERO),
    BECOMES("even-timesteps", NULL, "--even-timesteps", NULL, 0),
    BECOMES("odd-timesteps", NULL, "--odd-timesteps", NULL, 0),
    IGNORED("maxw", "PERCENT",
            "all w are gridded, also those that WSClean leaves out to save time"),

    /* cleaning */
    CHOICE("niter", "N", "--niter N", NULL, 0),
    BECOMES("nmiter", "N", "--nmiter %1", NULL, WSCLEAN_CLEAN),
    BECOMES("gain", "G", "--gain %1", NULL, WSCLEAN_CLEAN),
    CHOICE("mgain", "M", "--mgain M",
           "default: 1; the last residual is of the data in any case", WSCLEAN_CLEAN),
    BECOMES("threshold", "FLUX", "--threshold %1", NULL, WSCLEAN_CLEAN),
    BECOMES("abs-threshold", "FLUX", "--threshold %1", NULL, WSCLEAN_CLEAN),
    BECOMES("auto-threshold", "K", "--auto-threshold %1", NULL, WSCLEAN_CLEAN),
    BECOMES("auto-mask", "K", "--auto-mask %1", NULL, WSCLEAN_CLEAN | WSCLEAN_NONZERO),
    REFUSED("abs-auto-mask", "FLUX",
            "the mask ends at a number of standard deviations; use -auto-mask"),
    BECOMES("auto-mask-nmiter", "N", "--auto-mask-nmiter %1",
            "of newer versions; without it, -nmiter alone is the limit",
            WSCLEAN_CLEAN | WSCLEAN_NONZERO | WSCLEAN_MASKED),
    BECOMES("force-mask-rounds", "N", "--force-mask-rounds %1",
            "of a version for ASKAP", WSCLEAN_CLEAN | WSCLEAN_NONZERO | WSCLEAN_MASKED),
    BECOMES("fits-mask", "FILE", "--fits-mask %1", NULL, WSCLEAN_CLEAN),
    BECOMES("casa-mask", "FILE", "--casa-mask %1", NULL, WSCLEAN_CLEAN),
    BECOMES("horizon-mask", "ANGLE/deg", "--horizon-mask %1", "degrees without a unit",
            WSCLEAN_CLEAN | WSCLEAN_NONZERO),
    BECOMES("local-rms", NULL, "--local-rms", NULL, WSCLEAN_CLEAN),
    BECOMES("local-rms-window", "N", "--local-rms --local-rms-window %1", NULL,
            WSCLEAN_CLEAN),
    BECOMES("local-rms-method", "KIND", "--local-rms --local-rms-method %1", NULL,
            WSCLEAN_CLEAN),
    BECOMES("local-rms-strength", "F", "--local-rms --local-rms-strength %1",
            "the search is on residual / (local rms)^F", WSCLEAN_CLEAN),
    REFUSED("local-rms-image", "FILE", "the local rms is measured; use -local-rms"),
    BECOMES("multiscale", NULL, "--multiscale", NULL, WSCLEAN_CLEAN),
    BECOMES("multiscale-scales", "LIST", "--multiscale-scales %1", "pixels",
            WSCLEAN_CLEAN | WSCLEAN_MULTISCALE),
    BECOMES("multiscale-scale-bias", "B", "--multiscale-scale-bias %1", NULL,
            WSCLEAN_CLEAN | WSCLEAN_MULTISCALE),
    BECOMES("multiscale-max-scales", "N", "--multiscale-max-scales %1", NULL,
            WSCLEAN_CLEAN | WSCLEAN_MULTISCALE | WSCLEAN_BY_BEAM),
    BECOMES("multiscale-shape", "KIND", "--multiscale-shape %1", NULL,
            WSCLEAN_CLEAN | WSCLEAN_MULTISCALE),
    BECOMES("multiscale-gain", "G", "--multiscale-gain %1", NULL,
            WSCLEAN_CLEAN | WSCLEAN_MULTISCALE),
    IGNORED("multiscale-convolution-padding", "F", "convolutions do not wrap"),
    IGNORED("no-multiscale-fast-subminor", NULL, "the components are the same"),
    IGNORED("no-fast-subminor", NULL, "the components are the same"),
    BECOMES("no-negative", NULL, "--no-negative", SQUARES,
            WSCLEAN_CLEAN | WSCLEAN_SIGNED),
    IGNORED("negative", NULL, "the default"),
    BECOMES("stop-negative", NULL, "--stop-negative", SQUARES,
            WSCLEAN_CLEAN | WSCLEAN_SIGNED),
    BECOMES("clean-border", "PERCENT", "--clean-border %1", NULL, WSCLEAN_CLEAN),
    BECOMES(
        "continue", NULL, "--continue",
        "predicts NAME-model.fits, and does not read MODEL_DATA; NAME-dirty.fits is "
        "the data's, and WSClean's what the model leaves",
        WSCLEAN_CLEAN),
    CHOICE("join-channels", NULL, "--join-channels", NULL, 0),
    BECOMES("join-polarizations", NULL, "--join-polarizations", NULL, WSCLEAN_CLEAN),
    CHOICE("link-polarizations", "LIST", "--link-polarizations LIST", NULL,
           WSCLEAN_CLEAN),
    BECOMES("squared-channel-joining", NULL, "--squared-channel-joining", NULL,
            WSCLEAN_CLEAN | WSCLEAN_JOINED),
    CHOICE("fit-spectral-pol", "N", "--fit-spectral-pol N",
           "at most as many terms as there are channels to fit",
           WSCLEAN_CLEAN | WSCLEAN_JOINED | WSCLEAN_NONZERO),
    CHOICE("fit-spectral-log-pol", "N", "--fit-spectral-log-pol N",
           "the same; the channels have their weights",
           WSCLEAN_CLEAN | WSCLEAN_JOINED | WSCLEAN_NONZERO),
    BECOMES("deconvolution-channels", "M", "--deconvolution-channels %1", NULL,
            WSCLEAN_CLEAN | WSCLEAN_JOINED | WSCLEAN_NONZERO),
    IGNORED("parallel-deconvolution", "SIZE",
            "an image is cleaned whole, over all ranks; beside -local-rms it has an "
            "effect: see below"),
    IGNORED("deconvolution-threads", "N", PLANNED),
    IGNORED("major-iteration-mode", "KIND",
            "each major iteration ends where -mgain says"),
    IGNORED("skip-final-iteration", NULL,
            "the last residual is that of the data in any case"),
    REFUSED("component-optimization", "KIND", NO_OTHER),
    REFUSED("fit-rm", NULL,
            "polynomials are fitted to spectra; use -squared-channel-joining"),
    REFUSED("mgain-boosting", "F",
            "-mgain holds in each major iteration; leave it out"),
    BECOMES("save-source-list", NULL, "--save-source-list", NULL, WSCLEAN_CLEAN),
    REFUSED("force-spectrum", "FILE", "spectra are fitted; use -fit-spectral-pol"),
    REFUSED("spectral-correction", "FREQ TERMS",
            "spectra are fitted; use -fit-spectral-pol"),
    REFUSED("python-deconvolution", "FILE", NO_OTHER),
    REFUSED("iuwt", NULL, NO_OTHER),
    REFUSED("iuwt-snr-test", NULL, NO_OTHER),
    IGNORED("no-iuwt-snr-test", NULL, "the default"),
    REFUSED("moresane-ext", "PROGRAM", NO_OTHER),
    REFUSED("moresane-arg", "LIST", NO_OTHER),
    REFUSED("moresane-sl", "LIST", NO_OTHER),
    REFUSED("asp", NULL, NO_OTHER),

    /* restoring */
    BECOMES("beam-size", "FWHM/asec", "--beam-size %1", "arcseconds without a unit",
            WSCLEAN_NONZERO | WSCLEAN_RESTORE),
    BECOMES("beam-shape", "MAJOR/asec MINOR/asec ANGLE/deg", "--beam-shape %1,%2,%3",
            "arcseconds and degrees without a unit", WSCLEAN_RESTORE),
    BECOMES("circular-beam", NULL, "--circular-beam", NULL, WSCLEAN_FITTED),
    IGNORED("elliptical-beam", NULL, "the default"),
    IGNORED("fit-beam", NULL, "the default"),
    IGNORED("fit-beam-with-negatives", NULL, "the default"),
    CHOICE("no-fit-beam", NULL, "--theoretic-beam",
           "no effect beside -beam-size, -beam-shape and a later -fit-beam", 0),
    BECOMES("theoretic-beam", NULL, "--theoretic-beam", NULL, WSCLEAN_FOUND),
    BECOMES("beam-fitting-size", "F", "--beam-fitting-size %1", NULL, WSCLEAN_FITTED),
    CHOICE("restore", "RESIDUAL MODEL IMAGE",
           "tessera restore RESIDUAL MODEL -o IMAGE --overwrite",
           "the beam: -beam-shape, -beam-size, or that of RESIDUAL's header",
           WSCLEAN_RESTORE),
    CHOICE("restore-list", "RESIDUAL LIST IMAGE",
           "tessera restore RESIDUAL LIST -o IMAGE --overwrite",
           "sources are drawn at their places, between pixels, too", WSCLEAN_RESTORE),
    CHOICE("draw-model", "LIST", "tessera draw LIST -o NAME.fits --terms N --overwrite",
           "of newer versions; needs -size and -scale", WSCLEAN_DRAW),
    CHOICE("draw-spectral-terms", "N", "--terms N", "default: 1", WSCLEAN_DRAW),
    CHOICE("draw-centre", "RA DEC", "--center RA,DEC",
           "of tessera draw; default: --obs OBS, the phase centre of the observation",
           WSCLEAN_DRAW),
    CHOICE("draw-frequencies", "FREQ BANDWIDTH", "--freq FREQ --bandwidth BANDWIDTH",
           "of tessera draw; default: the band of the observation", WSCLEAN_DRAW),
    IGNORED("sinc-window-size", "N", "the window of points is 64 pixels wide"),

    /* models */
    CHOICE(
        "predict", NULL,
        "tessera predict OBS --model NAME-model.fits --column MODEL_DATA --overwrite",
        "several channels, intervals or polarisations: tessera image --predict-models",
        WSCLEAN_PREDICT),
    CHOICE("model-column", "NAME", "--model-column NAME",
           "of tessera predict: --column NAME", WSCLEAN_PREDICT),
    CHOICE("subtract-model", NULL, "--subtract-column MODEL_DATA",
           "in all major iterations; by WSClean in the first alone", 0),

    /* beams and facets */
    CHOICE("apply-primary-beam", NULL, "--primary-beam auto --pbcor",
           "beams of MeerKAT, VLA, ATCA, GMRT and ALMA; of others --primary-beam of "
           "tessera image reads files",
           0),
    CHOICE("primary-beam-limit", "LEVEL", "--pb-limit LEVEL",
           "default: 0.005; with -apply-primary-beam", 0),
    REFUSED("reuse-primary-beam", NULL, "beams are computed anew; leave it out"),
    REFUSED("grid-with-beam", NULL, NO_ATERMS),
    BECOMES(
        "aterm-config", "FILE", "--facet-aterms %1",
        "with -facet-regions: facets take tec, diagonal and dldm at their directions; "
        "gains do not vary inside a facet, which has to be small",
        WSCLEAN_PREDICT),
    BECOMES("facet-regions", "FILE", "--facets %1", "pixels of no facet are NaN",
            WSCLEAN_PREDICT),
    CHOICE("apply-facet-solutions", "FILE NAMES",
           "--facet-solutions FILE --soltabs NAMES",
           "also full Jones matrices, which images of Stokes I take with "
           "-diagonal-visibilities, and tables of other types; several files are those "
           "of several observations (--solutions-per-observation), and of one their "
           "product",
           WSCLEAN_PREDICT),
    BECOMES("select-facets", "NAMES", "--select-facets %1", NULL, WSCLEAN_PREDICT),
    BECOMES("feather-size", "N", "--facet-feather %1",
            "default: 1 % of the side of a square of the image's area", 0),
    CHOICE("scalar-visibilities", NULL, "--scalar-visibilities",
           "the default of images of Stokes I with -apply-facet-solutions",
           WSCLEAN_PREDICT),
    CHOICE("diagonal-visibilities", NULL, "no --scalar-visibilities", NULL,
           WSCLEAN_PREDICT),
    CHOICE("diagonal-solutions", NULL, "no --scalar-visibilities", NULL,
           WSCLEAN_PREDICT),
    BECOMES("apply-facet-beam", NULL, "--facet-beam auto",
            "with -facet-regions: beams of MeerKAT, VLA, ATCA, GMRT and ALMA; those of "
            "stations are a file of tessera-station-beams for -apply-facet-solutions",
            WSCLEAN_PREDICT),
    CHOICE("dd-psf-grid", "WIDTH HEIGHT", "--psf-per-facet",
           "with -facet-regions: each facet has its PSF, whatever the grid",
           WSCLEAN_PREDICT),
    IGNORED("use-differential-lofar-beam", NULL, OF_BEAMS),
    IGNORED("mwa-path", "DIR", OF_BEAMS),
    IGNORED("save-psf-pb", NULL, "the PSF is that of gains of 1"),
    IGNORED("pb-grid-size", "N", "beams are computed where they are needed"),
    IGNORED("beam-model", "NAME", OF_BEAMS),
    IGNORED("beam-mode", "NAME", OF_BEAMS),
    IGNORED("beam-normalisation-mode", "NAME", OF_BEAMS),
    IGNORED("beam-aterm-update", "SECONDS", OF_BEAMS),
    IGNORED("aterm-kernel-size", "N", OF_ATERMS),
    IGNORED("save-aterms", NULL, OF_ATERMS),
    CHOICE("facet-beam-update", "SECONDS", "--facet-beam-update SECONDS",
           "of beams that turn, with -apply-facet-beam", WSCLEAN_PREDICT),
    IGNORED("shared-facet-reads", NULL, "data are read once for all facets"),
    IGNORED("shared-facet-writes", NULL,
            "visibilities are written once for all facets"),
    IGNORED("compound-tasks", NULL, PLANNED),
    CHOICE("no-solution-directions-check", NULL, "--any-solution-direction",
           "with -apply-facet-solutions; a warning tells how far directions are",
           WSCLEAN_PREDICT),
    IGNORED("apply-time-frequency-smearing", NULL,
            "it is a factor of beams of stations, which tessera-station-beams has not"),
    IGNORED("scalar-beam", NULL, "beams are the same for all polarisations"),
    {0},
};

/* Names of older and newer versions of WSClean, and those of the table. */
static const struct {
    const char *other, *name;
} other_names[] = {
    {"mfs-weighting", "mf-weighting"},
    {"no-mfs-weighting", "no-mf-weighting"},
    {"gkernelsize", "kernel-size"},
    {"wstack-kernel-size", "kernel-size"},
    {"wstack-grid-mode", "grid-mode"},
    {"wstack-oversampling", "oversampling"},
    {"wstack-nwlayers", "nwlayers"},
    {"wstack-nwlayers-factor", "nwlayers-factor"},
    {"wstack-nwlayers-for-size", "nwlayers-for-size"},
    {"min-grid-resolution", "small-inversion"},
    {"no-min-grid-resolution", "no-small-inversion"},
    {"pb-undersampling", "pb-grid-size"},
    {"rms-background", "local-rms"},
    {"rms-background-window", "local-rms-window"},
    {"rms-background-method", "local-rms-method"},
    {"rms-background-image", "local-rms-image"},
};
enum { NUM_OTHER_NAMES = sizeof other_names / sizeof *other_names };

/* ---- looking options up ---- */

/* A word of the command line without its dashes in front. */
static const char *without_dashes(const char *word)
{
    const size_t dashes = strspn(word, "-");
    return word + (dashes < 2 ? dashes : 2);
}

/* Whether two names are the same but for dashes within. */
static bool same_name(const char *a, const char *b)
{
    for (;; ++a, ++b) {
        a += strspn(a, "-");
        b += strspn(b, "-");
        if (*a != *b) return false;
        if (*a == '\0') return true;
    }
}

const wsclean_option *wsclean_find(const char *word)
{
    const char *name = without_dashes(word);
    for (int k = 0; k < NUM_OTHER_NAMES; ++k)
        if (same_name(other_names[k].other, name)) name = other_names[k].name;
    for (const wsclean_option *option = wsclean_options; option->name; ++option)
        if (same_name(option->name, name)) return option;
    return NULL;
}

const wsclean_option *wsclean_nearest(const char *word)
{
    const char *name = without_dashes(word);
    const size_t length = strlen(name);
    const wsclean_option *nearest = NULL;
    /* a near name differs in at most three letters, and in a third of them */
    int least = length < 7 ? (int)(length + 2) / 3 + 1 : 4;
    for (const wsclean_option *option = wsclean_options; option->name; ++option) {
        const int distance = cli_distance(name, length, option->name);
        if (distance >= least) continue;
        least = distance;
        nearest = option;
    }
    return length > 1 ? nearest : NULL;
}

int wsclean_num_arguments(const wsclean_option *option)
{
    int count = option->arguments ? 1 : 0;
    for (const char *c = option->arguments; c && *c; ++c)
        count += *c == ' ';
    return count;
}

const char *wsclean_argument(const wsclean_option *option, int k, char *text,
                             size_t size)
{
    const char *word = option->arguments;
    for (; k > 0; --k)
        word = strchr(word, ' ') + 1;
    snprintf(text, size, "%.*s", (int)strcspn(word, " "), word);
    char *unit = strchr(text, '/');
    if (unit) *unit++ = '\0';
    return unit;
}

/* ---- printing ---- */

/* What an option becomes, with the names of its arguments. */
static void print_becomes(FILE *out, const wsclean_option *option)
{
    char name[32];
    for (const char *c = option->becomes; *c; ++c) {
        if (*c == '%' && isdigit((unsigned char)c[1])) {
            wsclean_argument(option, *++c - '1', name, sizeof name);
            fputs(name, out);
        } else
            fputc(*c, out);
    }
}

static void print_option(FILE *out, const wsclean_option *option)
{
    char name[32];
    fprintf(out, "-%s", option->name);
    for (int k = 0; k < wsclean_num_arguments(option); ++k) {
        wsclean_argument(option, k, name, sizeof name);
        fprintf(out, " %s", name);
    }
}

/* The remark of an option, and its other names. */
static void print_remark(FILE *out, const wsclean_option *option)
{
    const char *before = option->remark && *option->remark ? "; also " : "also ";
    fputs(option->remark ? option->remark : "", out);
    for (int k = 0; k < NUM_OTHER_NAMES; ++k) {
        if (strcmp(other_names[k].name, option->name) != 0) continue;
        fprintf(out, "%s`-%s`", before, other_names[k].other);
        before = ", ";
    }
}

void wsclean_print_manual(FILE *out)
{
    fputs("| WSClean | tessera | remark |\n|---|---|---|\n", out);
    for (const wsclean_option *option = wsclean_options; option->name; ++option) {
        fputs("| `", out);
        print_option(out, option);
        fputs("` | ", out);
        if (option->becomes) {
            fputc('`', out);
            print_becomes(out, option);
            fputc('`', out);
        } else if (option->way == WSCLEAN_ONLY)
            fprintf(out, "not needed where it is %s, else refused", option->only);
        else
            fputs(option->way == WSCLEAN_IGNORED ? "not needed" : "refused", out);
        fputs(" | ", out);
        print_remark(out, option);
        fputs(" |\n", out);
    }
}

void wsclean_print_help(FILE *out)
{
    for (const wsclean_option *option = wsclean_options; option->name; ++option) {
        if (!option->becomes) continue;
        fputs("  ", out);
        print_option(out, option);
        fputs("\n      ", out);
        print_becomes(out, option);
        fputs("\n", out);
    }
}
