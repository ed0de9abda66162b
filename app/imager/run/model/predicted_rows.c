/* Samples of the rows of an observation, and the correlations that a prediction makes
 * of them. */
#include "predicted_rows.h"

#include "tess_mem.h"

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
