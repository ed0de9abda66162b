/* Predicts models that differ between channels: each plane at the channels to which it
 * is nearest, or each term of the polynomial through planes at all channels. */
#include <string.h>

#include "output_table.h"
#include "predictor.h"
#include "tess_const.h"
#include "tess_mem.h"
#include "tess_real.h"
#include "tess_samples.h"

static double freq_hz(const tess_samples *samples, int64_t chan)
{
    return samples->inv_lambda[chan] * TESS_SPEED_OF_LIGHT_M_S;
}

/* ---- the nearest plane ---- */

/* Finds the plane that serves each channel of the table, as output channels:
 * chan_output has as many channels as the samples know. Local. */
static tess_status deal_channels(const model_cube *cube, const tess_samples *samples,
                                 output_table *deal)
{
    tess_status status = TESS_OK;
    int64_t num_chan = 0;
    for (int64_t row = 0; row < samples->num_rows; ++row)
        if (samples->chan_base[row] + samples->num_chan[row] > num_chan)
            num_chan = samples->chan_base[row] + samples->num_chan[row];
    *deal = (output_table){.num_channels = cube->num_planes,
                           .num_intervals = 1,
                           .num = cube->num_planes,
                           .num_chan = num_chan};
    deal->chan_output = tess_alloc(num_chan, sizeof *deal->chan_output);
    if (!deal->chan_output) TESS_FAIL(TESS_ERR_ALLOC, "channels of a model");
    for (int64_t k = 0; k < num_chan; ++k)
        deal->chan_output[k] = model_cube_nearest(cube, freq_hz(samples, k));
cleanup:
    return status;
}

/* Sets weights of the model's parts to those of the channels of a plane, unless they
 * are already. Local. */
static tess_status take_plane(imager_predictor *predictor, int plane)
{
    tess_status status = TESS_OK;
    const imager_parts *parts = &predictor->model.parts;
    if (!parts->take_plane || predictor->weighed == plane) return TESS_OK;
    TESS_TRY(parts->take_plane(parts->owner, predictor->model.cube, plane));
    predictor->weighed = plane;
cleanup:
    return status;
}

/* Predicts one plane at its channels. Collective. */
static tess_status predict_plane(imager_predictor *predictor, const output_table *deal,
                                 int plane, tess_samples *samples)
{
    tess_status status = TESS_OK;
    tess_samples chosen = tess_samples_like(samples);
    status = output_table_choose_rows(deal, plane, samples, NULL, &chosen);
    if (status == TESS_OK) status = take_plane(predictor, plane);
    TESS_TRY(tess_comm_agree(predictor->job.comm, status));
    predictor->model.part = plane;
    TESS_TRY(imager_predictor_run_part(predictor, &chosen));
    output_table_put_back(deal, plane, &chosen, NULL, 1 / predictor->model.scale,
                          samples);
cleanup:
    tess_samples_free(&chosen);
    return status;
}

/* Counts the ranks that need each plane. Collective. */
static tess_status count_users(imager_predictor *predictor, const output_table *deal,
                               int64_t *users)
{
    for (int64_t k = 0; k < deal->num_chan; ++k)
        users[deal->chan_output[k]] = 1;
    return tess_comm_allreduce_i64(predictor->job.comm, users, deal->num_channels,
                                   TESS_SUM);
}

static tess_status predict_planes(imager_predictor *predictor, tess_samples *samples)
{
    tess_status status = TESS_OK;
    const model_cube *cube = predictor->model.cube;
    output_table deal = {0};
    int64_t *users = tess_alloc_zero(cube->num_planes, sizeof *users);
    status = users ? deal_channels(cube, samples, &deal) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(predictor->job.comm, status));
    TESS_TRY(count_users(predictor, &deal, users));
    TESS_TRY(imager_predictor_expect(predictor, samples));
    for (int k = 0; k < cube->num_planes; ++k)
        if (users[k] > 0) TESS_TRY(predict_plane(predictor, &deal, k, samples));
cleanup:
    tess_free(deal.chan_output);
    tess_free(users);
    return status;
}

/* ---- the polynomial ---- */

/* Adds a term to samples: samples += factor of each channel · term / scale. */
static void add_term(const imager_predictor *predictor, const tess_samples *term,
                     tess_samples *samples)
{
    const imager_model *model = &predictor->model;
    const int64_t values = 2 * (int64_t)samples->num_pol;
#pragma omp parallel for num_threads(predictor->job.layout->threads) schedule(static)
    for (int64_t row = 0; row < samples->num_rows; ++row)
        for (int32_t c = 0; c < samples->num_chan[row]; ++c) {
            const double factor =
                model_cube_factor(model->cube, model->part,
                                  freq_hz(samples, samples->chan_base[row] + c)) /
                model->scale;
            const int64_t first = (samples->vis_first[row] + c) * values;
            for (int64_t k = first; k < first + values; ++k)
                tess_real_set(samples->vis, samples->is_double, k,
                              tess_real_at(samples->vis, samples->is_double, k) +
                                  factor *
                                      tess_real_at(term->vis, samples->is_double, k));
        }
}

static tess_status predict_terms(imager_predictor *predictor, tess_samples *samples)
{
    tess_status status = TESS_OK;
    tess_samples term = *samples; /* positions are borrowed */
    term.vis =
        tess_alloc(samples->num_vis * samples->num_pol, samples->is_double ? 16 : 8);
    TESS_TRY(tess_comm_agree(predictor->job.comm, term.vis ? TESS_OK : TESS_ERR_ALLOC));
    for (int t = 0; t < predictor->model.cube->num_terms; ++t) {
        predictor->model.part = t;
        TESS_TRY(imager_predictor_run_part(predictor, &term));
        add_term(predictor, &term, samples);
    }
cleanup:
    tess_free(term.vis);
    return status;
}

/* ---- all ---- */

tess_status imager_predictor_run(imager_predictor *predictor, tess_samples *samples)
{
    tess_status status = TESS_OK;
    const int64_t bytes =
        samples->num_vis * samples->num_pol * (samples->is_double ? 16 : 8);
    if (!predictor->model.cube) return imager_predictor_run_part(predictor, samples);
    if (bytes > 0) memset(samples->vis, 0, (size_t)bytes);
    TESS_TRY(predictor->model.cube->num_terms > 0 ? predict_terms(predictor, samples)
                                                  : predict_planes(predictor, samples));
    predictor->model.scale = 1; /* the scale of the samples' visibilities now */
cleanup:
    return status;
}
