/* Logs the components of one minor loop, in the order in which they were found. */
#include "clean_object.h"
#include "tess_mem.h"

static int64_t closed_count(const clean_log *log)
{
    int64_t count = 0;
    for (int64_t k = 0; k < log->num_loops; ++k)
        count += log->loop[k].count;
    return count;
}

tess_status clean_log_close(clean_log *log, int scale)
{
    tess_status status = TESS_OK;
    void *loop = log->loop;
    if (tess_grow(&loop, &log->room, log->num_loops + 1, sizeof *log->loop) != 0)
        TESS_FAIL(TESS_ERR_ALLOC, "sub-minor loops");
    log->loop = loop;
    log->loop[log->num_loops] =
        (clean_logged_loop){scale, log->found.count - closed_count(log)};
    ++log->num_loops;
cleanup:
    return status;
}

void clean_log_clear(clean_log *log)
{
    log->num_loops = 0;
    clean_components_clear(&log->found);
}

tess_status clean_log_spread(const clean_log *log, int scale, const clean_join *join,
                             clean_components *wide)
{
    tess_status status = TESS_OK;
    const int64_t images = log->found.num_images;
    int64_t from = 0;
    double *values = tess_alloc(wide->num_images, sizeof *values);
    if (!values) TESS_FAIL(TESS_ERR_ALLOC, "values of a component");
    clean_components_clear(wide);
    for (int64_t k = 0; k < log->num_loops; from += log->loop[k++].count) {
        const int64_t end = from + log->loop[k].count;
        for (int64_t c = from; log->loop[k].scale == scale && c < end; ++c) {
            clean_spectrum_spread(&join->spectrum, log->found.flux + c * images,
                                  values);
            TESS_TRY(clean_components_add(wide, log->found.index[c], values));
        }
    }
    TESS_TRY(clean_components_merge(wide));
cleanup:
    tess_free(values);
    return status;
}

tess_status clean_log_of_scale(const clean_log *log, int scale,
                               clean_components *merged)
{
    tess_status status = TESS_OK;
    int64_t from = 0;
    clean_components_clear(merged);
    for (int64_t k = 0; k < log->num_loops; ++k) {
        if (log->loop[k].scale == scale)
            TESS_TRY(
                clean_components_copy(merged, &log->found, from, log->loop[k].count));
        from += log->loop[k].count;
    }
    TESS_TRY(clean_components_merge(merged));
cleanup:
    return status;
}
