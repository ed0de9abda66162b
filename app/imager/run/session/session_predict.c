/* Predicts the visibilities of a model image at all rows of the observations. The
 * visibility sets of a session hold good samples only. Therefore positions are read
 * once more, and are planned for as `tessera predict` plans for the rows of a file. */
#include <string.h>

#include "image_facets.h"
#include "predicted_rows.h"
#include "session_private.h"
#include "source_origins.h"
#include "tess_log.h"
#include "tess_mem.h"

/* ---- rows ---- */

static void free_rows(session_rows *rows)
{
    tess_free(rows->uvw_m);
    tess_free(rows->time_mjd_s);
    tess_free(rows->antenna1);
    tess_free(rows->antenna2);
}

void session_predictor_free(session_predictor *predictor)
{
    for (int k = 0; predictor->rows && k < predictor->num_segments; ++k)
        free_rows(&predictor->rows[k]);
    tess_free(predictor->rows);
    session_free_pointings(predictor);
    if (predictor->source) imager_predictor_free(&predictor->predictor);
    image_facets_free(predictor->facets);
    tess_source_close(predictor->source);
    *predictor = (session_predictor){0};
}

static tess_status grow_rows(session_rows *rows, int64_t count)
{
    tess_status status = TESS_OK;
    int64_t old[3] = {rows->capacity, rows->capacity, rows->capacity};
    if (tess_grow((void **)&rows->uvw_m, &old[0], count, 3 * sizeof(double)) ||
        tess_grow((void **)&rows->time_mjd_s, &old[1], count, sizeof(double)) ||
        tess_grow((void **)&rows->antenna1, &old[2], count, sizeof(int32_t)) ||
        tess_grow((void **)&rows->antenna2, &rows->capacity, count, sizeof(int32_t)))
        TESS_FAIL(TESS_ERR_ALLOC, "rows to predict");
cleanup:
    return status;
}

static tess_status keep_block(session_rows *rows, const tess_vis_block *block)
{
    tess_status status = TESS_OK;
    const int64_t at = rows->num_rows;
    const size_t count = (size_t)block->num_rows;
    TESS_TRY(grow_rows(rows, at + block->num_rows));
    memcpy(rows->uvw_m + 3 * at, block->uvw_m, 3 * count * sizeof *rows->uvw_m);
    memcpy(rows->time_mjd_s + at, block->time_mjd_s, count * sizeof *rows->time_mjd_s);
    memcpy(rows->antenna1 + at, block->antenna1, count * sizeof *rows->antenna1);
    memcpy(rows->antenna2 + at, block->antenna2, count * sizeof *rows->antenna2);
    rows->num_rows += block->num_rows;
cleanup:
    return status;
}

/* Reads the positions of every row of this rank's slice. Local. */
static tess_status read_rows(session_predictor *predictor)
{
    tess_status status = TESS_OK;
    tess_vis_block *block;
    const tess_recipe *recipe;
    tess_source_rewind(predictor->source);
    for (;;) {
        TESS_TRY(tess_source_next_block(predictor->source, &block, &recipe));
        if (!block) break;
        for (int k = 0; k < predictor->num_segments; ++k)
            if (predictor->rows[k].recipe == recipe)
                TESS_TRY(keep_block(&predictor->rows[k], block));
    }
    tess_source_rest(predictor->source);
cleanup:
    return status;
}

/* The number of a reader's field in its file. */
static int32_t field_of(const session_predictor *predictor, int reader)
{
    const tess_vis_meta *meta =
        tess_vis_reader_meta(tess_source_reader(predictor->source, reader));
    return meta->field[meta->field_selected].id;
}

static tess_status list_segments(session_predictor *predictor)
{
    tess_status status = TESS_OK;
    predictor->num_segments = tess_source_num_segments(predictor->source);
    predictor->rows = tess_alloc_zero(predictor->num_segments, sizeof *predictor->rows);
    if (!predictor->rows) TESS_FAIL(TESS_ERR_ALLOC, "segments");
    for (int k = 0; k < predictor->num_segments; ++k) {
        session_rows *rows = &predictor->rows[k];
        rows->segment = tess_source_segment(predictor->source, k, &rows->recipe);
        rows->reader = tess_source_segment_reader(predictor->source, k);
        rows->field = predictor->pointing ? field_of(predictor, rows->reader) : -1;
    }
cleanup:
    return status;
}

/* Opens the observations, and the patches of predictions. Collective. */
static tess_status open_source(const image_session *session, session_predictor *to,
                               imager_model *model)
{
    tess_status status = TESS_OK;
    const image_run *run = &session->run;
    const tess_image_opts *opts = run->opts;
    tess_selection selection = opts->selection;
    selection.wanted.positions_only = true;
    TESS_TRY(
        tess_source_open(run->comm, opts->obs, opts->num_obs, &selection, &to->source));
    TESS_TRY(session_add_facets(session, to, model));
    const tess_pol first = {.code = tess_source_info_of(to->source)->corr[0]};
    if (run->whole.mosaic) status = tess_source_keep_origins(to->source, 0);
    if (status == TESS_OK)
        status = tess_source_setup(to->source, &first, 1, 0, image_is_double(run),
                                   opts->layout.threads, TESS_BLOCK_BYTES);
    if (status == TESS_OK &&
        tess_source_info_of(to->source)->num_chan != run->info->num_chan)
        status = tess_error_record(TESS_ERR_INPUT, __FILE__, __LINE__, __func__,
                                   "an observation has changed since it was opened");
    TESS_TRY(tess_comm_agree(run->comm, status));
    if (run->whole.mosaic) TESS_TRY(session_open_pointings(session, to));
cleanup:
    return status;
}

tess_status session_open_rows(image_session *session)
{
    tess_status status = TESS_OK;
    const image_run *run = &session->run;
    session_predictor made = {.layout = run->opts->layout};
    imager_model model = {
        .geom = run->whole.geom, .num_stokes = run->num_pol, .scale = 1};
    double mark = tess_time_now();
    if (session->predictor.source) return TESS_OK;
    TESS_TRY(open_source(session, &made, &model));
    status = list_segments(&made);
    if (status == TESS_OK) status = read_rows(&made);
    TESS_TRY(tess_comm_agree(run->comm, status));
    made.layout.forced.fft_ranks = run->job.ranks.fft_ranks;
    session->predictor.layout = made.layout;
    if (!made.pointing)
        TESS_TRY(imager_predictor_create(run->comm, &model, &run->opts->gridding,
                                         &session->predictor.layout, run->profile,
                                         &made.predictor));
    session->predictor = made;
    made = (session_predictor){0};
    tess_profile_lap(run->profile, TESS_STAGE_READ, &mark);
cleanup:
    session_predictor_free(&made);
    return status;
}

/* ---- predictions ---- */

static tess_status check_polarisations(const image_run *run)
{
    tess_status status = TESS_OK;
    for (int p = 1; p < run->num_pol; ++p)
        if (predicted_is_stokes(&run->pol[p]) != predicted_is_stokes(&run->pol[0]))
            TESS_FAIL(TESS_ERR_USAGE,
                      "a session of Stokes parameters and correlations together does "
                      "not predict: --stokes has both");
cleanup:
    return status;
}

tess_status image_session_predict(image_session *session, int64_t interval,
                                  int64_t channel, const double *model,
                                  const image_session_part *part,
                                  image_predictions *predictions)
{
    tess_status status = TESS_OK;
    facet_gains plain;
    image_run *run = &session->run;
    tess_rows rows[2 * TESS_MAX_POL];
    imager_predictor *predictor = &session->predictor.predictor;
    session_prediction what = {predictor, run->pol, run->num_pol};
    session_arrays given = {.model = model != NULL};
    TESS_TRY(session_agree(session, interval, channel, &given));
    if (!given.model) TESS_FAIL(TESS_ERR_USAGE, "no model is given");
    TESS_TRY(check_polarisations(run));
    TESS_TRY(session_open_rows(session));
    TESS_TRY(session_choose_part(session, part, &plain));
    if (session->predictor.facets) { /* which make correlations */
        what.pol = session->predictor.facets->held;
        what.num_pol = session->predictor.facets->num_held;
    }
    session_model_rows(session, model, rows);
    if (session->predictor.pointing)
        return session_predict_pointings(session, interval, channel, rows, predictions);
    predictor->rows = rows;
    status = session_predict(session, interval, channel, &what, predictions);
    predictor->rows = NULL;
cleanup:
    return status;
}
