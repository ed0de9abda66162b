/* What the calls of a session have in common: the rows of models, and agreement of all
 * ranks on arguments. */
#include "session_private.h"
#include "tess_imager_session.h"

void session_model_rows(const image_session *session, const double *model,
                        tess_rows *rows)
{
    const image_session_facts *facts = &session->facts;
    const tess_rows like = tess_rows_of(facts->nx, facts->ny, facts->row_first,
                                        facts->num_rows, TESS_PIXEL_DOUBLE);
    const int64_t pixels = tess_rows_count(&like);
    for (int p = 0; p < facts->num_pol; ++p)
        rows[p] = tess_rows_borrow(&like, pixels > 0 ? model + p * pixels : NULL);
}

/* TESS_ERR_USAGE: the session has no such output. Local. */
static tess_status check_output(const image_session *session, int64_t interval,
                                int64_t channel)
{
    tess_status status = TESS_OK;
    const output_table *outputs = &session->run.outputs;
    if (interval < 0 || interval >= outputs->num_intervals || channel < 0 ||
        channel >= outputs->num_channels)
        TESS_FAIL(TESS_ERR_USAGE,
                  "there is no output channel %lld of interval %lld; the session has "
                  "%lld and %lld of them",
                  (long long)channel, (long long)interval,
                  (long long)outputs->num_channels, (long long)outputs->num_intervals);
cleanup:
    return status;
}

tess_status session_agree(const image_session *session, int64_t interval,
                          int64_t channel, session_arrays *arrays)
{
    tess_status status = TESS_OK;
    static const char *const names[] = {"model", "image", "PSF"};
    enum { NUM_ARRAYS = sizeof names / sizeof *names };
    bool *const given[NUM_ARRAYS] = {&arrays->model, &arrays->image, &arrays->psf};
    const bool has_rows = session->facts.num_rows > 0;
    /* the largest and the smallest output; whether any rank passes an array, and
     * whether any rank lacks it */
    int64_t most[4 + 2 * NUM_ARRAYS] = {interval, -interval, channel, -channel};
    for (int k = 0; k < NUM_ARRAYS; ++k) {
        most[4 + 2 * k] = has_rows && *given[k];
        most[5 + 2 * k] = has_rows && !*given[k];
    }
    status = check_output(session, interval, channel);
    TESS_TRY(tess_comm_agree(session->run.comm, status));
    TESS_TRY(tess_comm_allreduce_i64(session->run.comm, most,
                                     sizeof most / sizeof *most, TESS_MAX));
    if (most[0] != -most[1] || most[2] != -most[3])
        TESS_FAIL(TESS_ERR_USAGE, "the ranks ask for different outputs");
    for (int k = 0; k < NUM_ARRAYS; ++k) {
        if (most[4 + 2 * k] && most[5 + 2 * k])
            TESS_FAIL(TESS_ERR_USAGE, "%s array: some ranks pass one and others none",
                      names[k]);
        *given[k] = most[4 + 2 * k];
    }
cleanup:
    return status;
}
