/* Predicts what the pointings of a session's mosaic see of a model, as `tessera predict
 * --mosaic` does: field after field, since each sees other pixels and has a plan of its
 * own. */
#include "session_private.h"
#include "tess_mem.h"

tess_status session_open_pointings(const image_session *session, session_predictor *to)
{
    tess_status status = TESS_OK;
    const tess_beam_correction *beam = &session->opts.beside.primary_beam;
    const int num = tess_source_num_readers(to->source);
    predicted_view view = {
        .comm = session->run.comm,
        .source = to->source,
        .beam = {.model = beam->model, .limit = beam->pointing_limit},
        .geom = session->run.whole.geom,
        .threads = session->opts.layout.threads};
    to->pointing = tess_alloc_zero(num, sizeof *to->pointing);
    TESS_TRY(tess_comm_agree(view.comm, to->pointing ? TESS_OK : TESS_ERR_ALLOC));
    for (; view.reader < num; ++view.reader)
        TESS_TRY(predicted_pointing_create(&view, &to->pointing[view.reader]));
cleanup:
    return status;
}

void session_free_pointings(session_predictor *predictor)
{
    if (!predictor->pointing) return;
    for (int k = 0; k < tess_source_num_readers(predictor->source); ++k)
        predicted_pointing_free(predictor->pointing[k]);
    tess_free((void *)predictor->pointing);
}

/* Predicts what one pointing sees of a model, at its rows. Collective. */
static tess_status predict_pointing(const image_session *session, int64_t channel,
                                    int reader, const tess_rows *rows,
                                    image_predictions *predictions)
{
    tess_status status = TESS_OK;
    const image_run *run = &session->run;
    const session_predictor *of = &session->predictor;
    predicted_pointing *pointing = of->pointing[reader];
    const imager_model model = {.geom = run->whole.geom,
                                .num_stokes = run->num_pol,
                                .parts = predicted_pointing_parts(pointing),
                                .scale = 1};
    imager_predictor predictor = {0};
    TESS_TRY(imager_predictor_create(run->comm, &model, &session->opts.gridding,
                                     &of->layout, run->profile, &predictor));
    predictor.job.view = predicted_pointing_view(pointing, run->num_pol);
    predictor.rows = rows;
    const session_prediction what = {&predictor, run->pol, run->num_pol};
    TESS_TRY(session_predict_rows(session, channel, reader, &what, predictions));
cleanup:
    imager_predictor_free(&predictor);
    return status;
}

tess_status session_predict_pointings(const image_session *session, int64_t interval,
                                      int64_t channel, const tess_rows *rows,
                                      image_predictions *predictions)
{
    tess_status status = TESS_OK;
    const image_run *run = &session->run;
    const session_predictor *of = &session->predictor;
    const predicted_mean mean = {run->outputs.chan_output, channel,
                                 run->outputs.interval_begin + interval};
    image_predictions made = {0};
    status = session_copy_rows(session, interval, channel, &made);
    TESS_TRY(tess_comm_agree(run->comm, status));
    for (int k = 0; k < tess_source_num_readers(of->source); ++k) {
        status = predicted_pointing_choose(of->pointing[k], &mean);
        TESS_TRY(tess_comm_agree(run->comm, status));
        TESS_TRY(predict_pointing(session, channel, k, rows, &made));
    }
    *predictions = made;
    made = (image_predictions){0};
cleanup:
    image_predictions_free(&made);
    return status;
}
