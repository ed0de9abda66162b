/* Picks the runs of some rows out of bricks. */
#include "tess_bricks.h"
#include "tess_mem.h"

/* Appends the runs of a brick that are wanted, and the brick if there are any. */
static void pick_brick(const tess_brick_list *list, int64_t b, const bool *wanted,
                       tess_brick_list *out)
{
    const int64_t first = out->num_runs;
    int64_t num_vis = 0;
    for (int64_t r = list->first_run[b]; r < list->first_run[b + 1]; ++r) {
        if (!wanted[list->run[r].row]) continue;
        out->run[out->num_runs++] = list->run[r];
        num_vis += list->run[r].count;
    }
    if (out->num_runs == first) return;
    const int64_t to = out->num_bricks++;
    out->key[to] = list->key[b];
    out->first_run[to] = first;
    out->num_vis[to] = num_vis;
    if (out->planes) out->planes[to] = list->planes[b];
}

tess_status tess_brick_list_pick(const tess_brick_list *list, const bool *wanted,
                                 tess_brick_list *out)
{
    tess_status status = TESS_OK;
    tess_brick_list own = {0};
    for (int64_t r = 0; r < list->num_runs; ++r)
        own.capacity_runs += wanted[list->run[r].row];
    own.run = tess_alloc(own.capacity_runs, sizeof *own.run);
    if (!own.run) TESS_FAIL(TESS_ERR_ALLOC, "runs of bricks");
    TESS_TRY(tess_brick_list_make_counts(list->num_bricks, list->planes != NULL, &own));
    for (int64_t b = 0; b < list->num_bricks; ++b)
        pick_brick(list, b, wanted, &own);
    own.first_run[own.num_bricks] = own.num_runs;
    *out = own;
    own = (tess_brick_list){0};
cleanup:
    tess_brick_list_free(&own);
    return status;
}
