/* Samples of the rows of an observation, and the correlations that a prediction makes
 * of them. */
#include "predicted_rows.h"

#include "tess_mem.h"
#include "tess_real.h"

/* ---- correlations of a sample ---- */

/* The part of image pol[p] in a correlation. A cross-hand without an image is the
 * conjugate of the other one in the sky. */
static double complex coefficient(const tess_pol *pol, int num_pol, int p,
                                  tess_corr corr)
{
    double complex stokes[4];
    tess_pol_from_stokes(corr, stokes);
    if (predicted_is_stokes(&pol[p])) return stokes[pol[p].code - 1];
    const double complex part = pol[p].imaginary ? CMPLX(0, 1) : 1;
    if (pol[p].code == corr) return part;
    const bool is_conjugate = tess_pol_conjugate(pol[p].code) == corr;
    return is_conjugate && !tess_pol_has(pol, num_pol, corr) ? conj(part) : 0;
}

predicted_mix predicted_mix_of(const tess_pol *pol, int num_pol, const tess_corr *corr,
                               int num_corr, double scale)
{
    predicted_mix mix = {.num_corr = num_corr, .num_images = num_pol, .scale = scale};
    for (int c = 0; c < num_corr; ++c)
        for (int p = 0; p < num_pol; ++p)
            mix.coefficient[c][p] = coefficient(pol, num_pol, p, corr[c]);
    return mix;
}

void predicted_mix_sample(const predicted_mix *mix, const tess_samples *samples,
                          int64_t sample, double phase_re, double phase_im, float *out)
{
    /* C's complex product looks for infinities in each result, which takes longer than
     * the product itself */
    const double factor_re = phase_re / mix->scale, factor_im = phase_im / mix->scale;
    for (int c = 0; c < mix->num_corr; ++c) {
        double sum_re = 0, sum_im = 0;
        for (int s = 0; s < mix->num_images; ++s) {
            const int64_t at = 2 * (sample * samples->num_pol + mix->first + s);
            const double re = tess_real_at(samples->vis, samples->is_double, at);
            const double im = tess_real_at(samples->vis, samples->is_double, at + 1);
            const double mix_re = creal(mix->coefficient[c][s]);
            const double mix_im = cimag(mix->coefficient[c][s]);
            sum_re += mix_re * re - mix_im * im;
            sum_im += mix_re * im + mix_im * re;
        }
        out[2 * c] = (float)(sum_re * factor_re - sum_im * factor_im);
        out[2 * c + 1] = (float)(sum_re * factor_im + sum_im * factor_re);
    }
}

/* ---- rows ---- */

tess_status predicted_rows_reserve(predicted_rows *rows, int64_t num_rows,
                                   int64_t num_vis)
{
    tess_status status = TESS_OK;
    if (tess_grow((void **)&rows->row, &rows->capacity, num_rows, sizeof *rows->row))
        TESS_FAIL(TESS_ERR_ALLOC, "rows to predict");
    TESS_TRY(tess_samples_reserve(&rows->samples, num_rows, num_vis));
cleanup:
    return status;
}

tess_status predicted_rows_add(predicted_rows *rows, const tess_recipe *recipe,
                               const tess_vis_block *block, int64_t chan,
                               predicted_part *part)
{
    tess_status status = TESS_OK;
    const tess_samples *samples = &rows->samples;
    tess_recipe from_chan = *recipe;
    from_chan.chan_base += (int32_t)chan;
    *part = (predicted_part){.recipe = recipe,
                             .chan = chan,
                             .num_chan = block->num_chan,
                             .first = samples->num_rows};
    TESS_TRY(
        predicted_rows_reserve(rows, samples->num_rows + block->num_rows,
                               samples->num_vis + block->num_rows * block->num_chan));
    TESS_TRY(tess_prepare_positions(&from_chan, block, &rows->samples, rows->row));
    part->end = samples->num_rows;
cleanup:
    return status;
}

static void take_row(const predicted_rows *rows, const predicted_part *part,
                     const predicted_mix *mix, int64_t k, int64_t to_chan,
                     tess_vis_block *block)
{
    const int64_t row = rows->row[k];
    float *out = block->vis + 2 * (row * block->num_chan + to_chan) * block->num_corr;
    for (int64_t c = 0; c < part->num_chan; ++c) {
        double re = 1, im = 0;
        if (part->recipe->rotate)
            tess_rotation_phase(part->recipe, block->uvw_m + 3 * row,
                                part->recipe->inv_lambda[part->chan + c], &re, &im);
        predicted_mix_sample(mix, &rows->samples, rows->samples.vis_first[k] + c, re,
                             im, out + 2 * c * block->num_corr);
    }
}

void predicted_rows_take(const predicted_rows *rows, const predicted_part *part,
                         const predicted_mix *mix, int threads, int64_t to_chan,
                         tess_vis_block *block)
{
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t k = part->first; k < part->end; ++k)
        take_row(rows, part, mix, k, to_chan, block);
}

void predicted_rows_free(predicted_rows *rows)
{
    tess_samples_free(&rows->samples);
    tess_free(rows->row);
    *rows = (predicted_rows){0};
}
