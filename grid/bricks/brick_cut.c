/* Cuts bricks into parts of a fixed number of samples. */
#include "tess_bricks.h"
#include "tess_mem.h"

/* Returns how many bricks the cuts add, at most. They add a run for each. */
static int64_t num_cuts(const tess_brick_list *list, int64_t most)
{
    int64_t cuts = 0;
    for (int64_t b = 0; b < list->num_bricks; ++b)
        cuts += (list->num_vis[b] - 1) / most;
    return cuts;
}

/* Cuts brick `b`, and copies the parts to the end of `out`, which has room for them. */
static void copy_cut(const tess_brick_list *list, int64_t b, int64_t most,
                     tess_brick_list *out)
{
    int64_t room = 0;
    for (int64_t r = list->first_run[b]; r < list->first_run[b + 1]; ++r) {
        tess_run rest = list->run[r];
        while (rest.count > 0) {
            if (room == 0) {
                out->key[out->num_bricks] = list->key[b];
                out->num_vis[out->num_bricks] = 0;
                out->first_run[out->num_bricks++] = out->num_runs;
                room = most;
            }
            tess_run *run = &out->run[out->num_runs++];
            *run = rest;
            if (run->count > room) run->count = (int32_t)room;
            rest.first += run->count;
            rest.chan += run->count;
            rest.count -= run->count;
            room -= run->count;
            out->num_vis[out->num_bricks - 1] += run->count;
        }
    }
}

tess_status tess_brick_list_cut(tess_brick_list *list, int64_t most)
{
    tess_status status = TESS_OK;
    const int64_t cuts = num_cuts(list, most);
    tess_brick_list out = {.capacity_runs = list->num_runs + cuts};
    if (cuts == 0) return TESS_OK;
    out.run = tess_alloc(out.capacity_runs, sizeof *out.run);
    out.key = tess_alloc(list->num_bricks + cuts, sizeof *out.key);
    out.first_run = tess_alloc(list->num_bricks + cuts + 1, sizeof *out.first_run);
    out.num_vis = tess_alloc(list->num_bricks + cuts, sizeof *out.num_vis);
    if (!out.run || !out.key || !out.first_run || !out.num_vis)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld parts of bricks",
                  (long long)cuts);
    for (int64_t b = 0; b < list->num_bricks; ++b)
        copy_cut(list, b, most, &out);
    out.first_run[out.num_bricks] = out.num_runs;
    tess_brick_list_free(list);
    *list = out;
    out = (tess_brick_list){0};
cleanup:
    tess_brick_list_free(&out);
    return status;
}
