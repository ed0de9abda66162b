/* Sums responses of targets anew over the samples that a set holds, once gains have
 * changed. */
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

/* Sums the responses into the set, which has none. Collective. */
static tess_status count(visset *set)
{
    tess_status status = visset_response_create(set);
    if (status == TESS_OK)
        status = set->spool ? add_spooled(set) : visset_response_add(set, set->samples);
    TESS_TRY(tess_comm_agree(set->job->comm, status));
    TESS_TRY(visset_response_sum(set));
cleanup:
    return status;
}

tess_status visset_count_responses(visset *set, imager_responses *counted)
{
    tess_status status = TESS_OK;
    const imager_responses kept = set->sums.responses;
    imager_responses made;
    set->sums.responses = (imager_responses){0};
    status = count(set);
    made = set->sums.responses;
    set->sums.responses = kept;
    TESS_TRY(status);
    *counted = made;
    made = (imager_responses){0};
cleanup:
    imager_responses_free(&made);
    return status;
}
