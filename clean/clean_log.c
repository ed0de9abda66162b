/* The components of a minor loop. */
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
        (clean_past){scale, log->found.count - closed_count(log)};
    ++log->num_loops;
cleanup:
    return status;
}

void clean_log_clear(clean_log *log)
{
    log->num_loops = 0;
    clean_components_clear(&log->found);
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
