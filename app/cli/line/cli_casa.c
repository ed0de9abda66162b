/* What the parameters of CASA's tclean are here. A parameter whose name differs from
 * that of an option by dashes alone, like growiterations, is found by that. */
#include "cli_casa.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A parameter, and one of its values or NULL for any. `option` is the option that
 * `advice` is about: nothing is said where a subcommand does not have it; NULL: advice
 * holds for all. A word in braces stands for the value that the user gave,
 * and for itself if there is none. */
typedef struct casa_word {
    const char *word, *value, *option, *advice;
} casa_word;

static const casa_word words[] = {
    {"vis", NULL, NULL, "observations have no option; write them after the options"},
    {"selectdata", NULL, NULL, "leave it out: each option selects by itself"},
    {"intent", NULL, "select-intent", "did you mean --select-intent {INTENT}?"},
    {"observation", NULL, "select-taql",
     "did you mean --select-taql 'OBSERVATION_ID == {N}'?"},
    {"imsize", NULL, "size", "did you mean --size {N}?"},
    {"cell", NULL, "scale", "did you mean --scale {ANGLE}?"},
    {"projection", NULL, "size", "leave it out: images are in the SIN projection"},
    {"startmodel", NULL, "continue",
     "name it NAME-model.fits, and use --continue with -o NAME"},
    {"specmode", "mfs", "size", "leave it out: all channels make one image"},
    {"specmode", "cont", "size", "leave it out: all channels make one image"},
    {"specmode", "cubedata", "channels-out",
     "did you mean --channels-out N --cube, channels as in the data?"},
    {"specmode", NULL, "frame",
     "did you mean --frame lsrk --cube, with --start, --width and --nchan?"},
    {"reffreq", NULL, "reference-freq", "did you mean --reference-freq {FREQ}?"},
    {"outframe", NULL, "frame", "did you mean --frame {FRAME}, in small letters?"},
    {"veltype", NULL, "velocity", "did you mean --velocity {radio|optical}?"},
    {"perchanweightdensity", "false", "mf-weighting", "did you mean --mf-weighting?"},
    {"perchanweightdensity", NULL, "mf-weighting",
     "leave it out, or use --no-mf-weighting with --join-channels: each channel is "
     "weighted by itself"},
    {"gridder", "standard", "w",
     "leave it out, or did you mean --w none? By default w is corrected for where it "
     "matters"},
    {"gridder", "wproject", "w",
     "leave it out: w is corrected for by stacking; did you mean --w projection?"},
    {"gridder", "widefield", "w", "leave it out: w is corrected for by stacking"},
    {"gridder", "wprojectft", "w", "leave it out: w is corrected for by stacking"},
    {"gridder", "mosaic", "mosaic", "did you mean --mosaic?"},
    {"gridder", "awproject", "primary-beam",
     "there is no A-projection; did you mean --primary-beam auto --pbcor?"},
    {"gridder", NULL, "w", "did you mean --w METHOD?"},
    {"facets", NULL, "w", "leave it out: w is corrected for by stacking"},
    {"wprojplanes", NULL, "w", "leave it out: planes follow from --accuracy"},
    {"vptable", NULL, "primary-beam", "did you mean --primary-beam MODEL?"},
    {"mosweight", NULL, NULL, "leave it out: fields are weighted together"},
    {"normtype", NULL, "pbcor",
     "leave it out: images are flat in noise; --pbcor corrects for the beam"},
    {"deconvolver", "hogbom", "niter", "leave it out: --niter N cleans with points"},
    {"deconvolver", "clark", "niter", "leave it out: --niter N cleans with points"},
    {"deconvolver", "clarkstokes", "join-polarizations",
     "did you mean --join-polarizations?"},
    {"deconvolver", "multiscale", "multiscale", "did you mean --multiscale?"},
    {"deconvolver", "asp", "multiscale",
     "the nearest to it is --multiscale, which chooses its scales by the beam"},
    {"deconvolver", "mem", "multiscale",
     "the nearest to it is --multiscale, for extended emission"},
    {"deconvolver", NULL, "fit-spectral-pol",
     "did you mean --channels-out N --join-channels --fit-spectral-pol NTERMS?"},
    {"nterms", NULL, "fit-spectral-pol",
     "did you mean --fit-spectral-pol {N}, with --join-channels?"},
    {"scales", NULL, "multiscale-scales", "did you mean --multiscale-scales {LIST}?"},
    {"smallscalebias", NULL, "multiscale-scale-bias",
     "the nearest to it is --multiscale-scale-bias B, of other numbers"},
    {"largestscale", NULL, "multiscale-max-scales",
     "did you mean --multiscale-max-scales N?"},
    {"fusedthreshold", NULL, "multiscale", "leave it out: it is of CASA's asp alone"},
    {"restoration", NULL, "niter", "leave it out: what is cleaned is restored"},
    {"restoringbeam", "common", "common-beam", "did you mean --common-beam?"},
    {"restoringbeam", NULL, "beam-size", "did you mean --beam-size {ANGLE}?"},
    {"outlierfile", NULL, NULL,
     "image the outliers first, and --subtract their models"},
    {"weighting", "briggs", "weight",
     "did you mean --weight briggs:R, with the number of --robust?"},
    {"weighting", "briggsabs", "weight",
     "the nearest to it is --weight briggs:R, by relative weights"},
    {"weighting", "briggsbwtaper", "weight",
     "the nearest to it is --weight briggs:R, with the number of --robust"},
    {"weighting", "superuniform", "density-box",
     "did you mean --weight uniform --density-box 3?"},
    {"weighting", "radial", "weight",
     "there are --weight natural, uniform and briggs:R"},
    {"weighting", NULL, "weight", "did you mean --weight {WEIGHTING}?"},
    {"robust", NULL, "weight", "did you mean --weight briggs:{R}?"},
    {"noise", NULL, "weight", "it is of CASA's briggsabs; use --weight briggs:R"},
    {"npixels", NULL, "density-box", "did you mean --density-box N?"},
    {"uvtaper", NULL, "taper-gaussian", "did you mean --taper-gaussian {FWHM}?"},
    {"nsigma", NULL, "auto-threshold", "did you mean --auto-threshold {K}?"},
    {"usemask", "user", "mask", "did you mean --mask FILE?"},
    {"usemask", "pb", "pb-mask", "did you mean --pb-mask LEVEL?"},
    {"usemask", NULL, "auto-multithresh", "did you mean --auto-multithresh?"},
    {"nmajor", NULL, "nmiter", "did you mean --nmiter {N}?"},
    {"dogrowprune", NULL, "grow-prune", "did you mean --grow-prune yes or no?"},
    {"interactive", NULL, NULL,
     "leave it out: masks come from --mask FILE or --auto-multithresh"},
    {"restart", NULL, "continue", "did you mean --continue?"},
    {"savemodel", "none", "update-model", "leave it out: models are not written"},
    {"savemodel", NULL, "update-model", "did you mean --update-model?"},
    {"calcpsf", "false", "no-psf", "did you mean --no-psf?"},
    {"calcpsf", NULL, NULL, "leave it out: the PSF is made"},
    {"calcres", NULL, NULL, "leave it out: residuals are made as they are needed"},
    {"psfcutoff", NULL, "beam-fitting-size",
     "the nearest to it is --beam-fitting-size F, in beams"},
    {"parallel", NULL, NULL, "leave it out: start tessera by mpirun -n N"},
    {"verbose", NULL, "auto-multithresh", "leave it out: the log has a line for it"},
    {"fullsummary", NULL, NULL, "leave it out: the log and --profile tell all"},
    {"cfcache", NULL, NULL, "leave it out: it is of CASA's A-projection alone"},
    {"aterm", NULL, NULL, "leave it out: it is of CASA's A-projection alone"},
    {"psterm", NULL, NULL, "leave it out: it is of CASA's A-projection alone"},
    {"wbawp", NULL, NULL, "leave it out: it is of CASA's A-projection alone"},
    {"conjbeams", NULL, NULL, "leave it out: it is of CASA's A-projection alone"},
    {"usepointing", NULL, NULL, "leave it out: it is of CASA's A-projection alone"},
    {"computepastep", NULL, NULL, "leave it out: it is of CASA's A-projection alone"},
    {"rotatepastep", NULL, NULL, "leave it out: it is of CASA's A-projection alone"},
    {"pointingoffsetsigdev", NULL, NULL,
     "leave it out: it is of CASA's A-projection alone"},
    {"psfphasecenter", NULL, NULL, "leave it out: it is of CASA's mosaics alone"},
};

static bool is_value(const casa_word *word, const char *value)
{
    return !word->value || strcasecmp(word->value, value) == 0;
}

/* Writes the advice with the value in place of the braces. */
static void write_advice(const char *advice, const char *value, char *text, size_t size)
{
    const char *open = strchr(advice, '{'), *close = open ? strchr(open, '}') : NULL;
    if (!close)
        snprintf(text, size, "%s", advice);
    else if (*value)
        snprintf(text, size, "%.*s%s%s", (int)(open - advice), advice, value,
                 close + 1);
    else
        snprintf(text, size, "%.*s%.*s%s", (int)(open - advice), advice,
                 (int)(close - open - 1), open + 1, close + 1);
}

bool cli_casa_advise(const char *word, const char *value, cli_has_option *has,
                     const void *context, char *text, size_t size)
{
    for (size_t k = 0; k < sizeof words / sizeof *words; ++k) {
        const casa_word *w = &words[k];
        if (strcmp(w->word, word) != 0 || !is_value(w, value)) continue;
        if (w->option && !has(context, w->option)) continue;
        write_advice(w->advice, value, text, size);
        return true;
    }
    return false;
}
