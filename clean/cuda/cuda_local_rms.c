/* Computes the local noise, and the factor by which the search divides it out, as
 * cpu_local_rms.c does. */
#include "cuda_local_rms.h"

#include <math.h>

#include "clean_scales.h"
#include "cuda_noise.h"
#include "cuda_spectra.h"
#include "tess_const.h"
#include "tess_device.h"

/* σ is at least this share of the deepest negative value in the window. */
static const double OF_MINIMUM = 0.3;

/* Convolves the plane with the window: plane := the result. The spectrum of the first
 * residual is not needed yet. */
static tess_status convolve(clean_work *work, double width_px)
{
    tess_status status = TESS_OK;
    void *spectrum = work->layers.residual[0];
    const double steepness = 4 * log(2) / (width_px * width_px);
    TESS_TRY(cuda_forward(work, spectrum));
    TESS_TRY(
        cuda_pad_gaussian(&work->shape, steepness / TESS_PI, steepness, work->plane));
    TESS_TRY(cuda_forward(work, work->product));
    TESS_TRY(
        cuda_back(work, spectrum, (cuda_factors){.psf = work->product, .scale = 1}));
cleanup:
    return status;
}

tess_status cuda_local_rms(clean_work *work, const void *mean, double *least)
{
    tess_status status = TESS_OK;
    const tess_clean_opts *opts = &work->setup->opts;
    const cuda_shape *shape = &work->shape;
    const double width_px = opts->local.window_beams * clean_beam_px(opts);
    void *sigma = work->mask.factor_rows;
    const cuda_pixels pixels = {.value = sigma, .bytes = (int)work->bytes.real};
    cuda_row_sum sum;
    TESS_TRY(cuda_pad(shape, mean, true, work->plane));
    TESS_TRY(convolve(work, width_px));
    TESS_TRY(cuda_take_root(shape, work->plane, false, sigma));
    /* near edges and the horizon a part of the window has no pixels */
    TESS_TRY(cuda_pad_valid(shape, work->mask.is_nan, work->plane));
    TESS_TRY(convolve(work, width_px));
    TESS_TRY(cuda_take_root(shape, work->plane, true, sigma));
    if (opts->local.kind == TESS_CLEAN_LOCAL_RMS_WITH_MIN)
        TESS_TRY(cuda_raise_to_minima(shape, mean, (int64_t)(width_px / 2), OF_MINIMUM,
                                      work->plane, sigma));
    TESS_TRY(cuda_sums(work, &pixels, &sum));
    TESS_TRY(cuda_to_factor(shape, sum.least, opts->local.strength, sigma));
    *least = isfinite(sum.least) ? sum.least : 0;
cleanup:
    return status;
}
