/* Sums responses of targets anew over the samples that a set holds, once gains have
 * changed. */
#include <string.h>

#include "imager_targets.h"
#include "tess_exact.h"
#include "tess_mem.h"
#include "visset_private.h"

/* Adds the samples that the set holds on scratch. Local. */
static tess_status add_spooled(visset *set)
{
    tess_status status = TESS_OK;
    tess_samples samples = tess_spool_samples(set->spool);
    tess_brick_list bricks = {0};
    for (int64_t k = 0; k < tess_spool_records(set->spool); ++k) {
        TESS_TRY(tess_spool_read(set->spool, k, &samples, &bricks));
        TESS_TRY(visset_response_add(set, &samples));
    }
cleanup:
    tess_samples_free(&samples);
    tess_brick_list_free(&bricks);
    return status;
}

tess_status visset_count_responses(visset *set)
{
    tess_status status = TESS_OK;
    const imager_job *job = set->job;
    const size_t num = (size_t)imager_job_num_targets(job);
    imager_sums *sums = &set->sums;
    if (!sums->response) return TESS_OK;
    memset(sums->response, 0, num * sizeof *sums->response);
    if (sums->exact_response)
        memset(sums->exact_response, 0,
               num * 2 * (size_t)job->view.num_pol * sizeof *sums->exact_response);
    memset(sums->unsolved, 0, num * sizeof *sums->unsolved);
    status = set->spool ? add_spooled(set) : visset_response_add(set, set->samples);
    TESS_TRY(tess_comm_agree(job->comm, status));
    TESS_TRY(visset_response_sum(set));
cleanup:
    return status;
}
