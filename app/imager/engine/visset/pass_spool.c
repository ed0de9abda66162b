/* Keeps the passes of a visibility set, as they are gridded, in a scratch file. */
#include "pass_spool.h"

#include "imager_passes.h"
#include "scratch_file.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Where a pass lies in the file: its arrays follow one another. */
typedef struct kept_pass {
    int64_t at, num_rows, num_vis, num_runs, num_bricks;
} kept_pass;

struct pass_spool {
    scratch_file *file;
    int64_t num_passes, capacity_passes, bytes;
    kept_pass *pass;
    tess_samples samples;   /* samples of the pass that was read last */
    tess_brick_list bricks; /* bricks of that pass */
};

tess_status pass_spool_create(const char *folder, const tess_samples *like,
                              pass_spool **spool_out)
{
    tess_status status = TESS_OK;
    pass_spool *spool = tess_alloc_zero(1, sizeof *spool);
    if (!spool) TESS_FAIL(TESS_ERR_ALLOC, "scratch file");
    spool->samples = (tess_samples){.is_double = like->is_double,
                                    .num_pol = like->num_pol,
                                    .num_weight = like->num_weight,
                                    .inv_lambda = like->inv_lambda};
    TESS_TRY(scratch_file_create(folder, &spool->file));
    *spool_out = spool;
    spool = NULL;
cleanup:
    pass_spool_destroy(spool);
    return status;
}

/* Frees the arrays of the samples, which stay samples of the same kind. */
void pass_spool_rest(pass_spool *spool)
{
    tess_samples *samples = &spool->samples;
    const tess_samples kind = {.is_double = samples->is_double,
                               .num_pol = samples->num_pol,
                               .num_weight = samples->num_weight,
                               .inv_lambda = samples->inv_lambda};
    tess_samples_free(samples);
    *samples = kind;
    tess_brick_list_free(&spool->bricks);
}

void pass_spool_destroy(pass_spool *spool)
{
    if (!spool) return;
    pass_spool_rest(spool);
    scratch_file_destroy(spool->file);
    tess_free(spool->pass);
    tess_free(spool);
}

int64_t pass_spool_bytes(const pass_spool *spool)
{
    return spool->bytes;
}

/* Writes or reads all arrays of a pass at `*at`, which advances. */
static tess_status move_pass(const pass_spool *spool, const tess_samples *samples,
                             const tess_brick_list *bricks, int64_t *at, bool to_file)
{
    tess_status status = TESS_OK;
    const int64_t num = bricks->num_bricks;
    enum { BRICK_PARTS = 4 };
    tess_samples_part parts[TESS_SAMPLES_PARTS + BRICK_PARTS];
    tess_samples_part *const of_bricks = parts + TESS_SAMPLES_PARTS;
    tess_samples_list(samples, parts);
    of_bricks[0] =
        (tess_samples_part){bricks->run, bricks->num_runs * (int64_t)sizeof(tess_run)};
    of_bricks[1] = (tess_samples_part){bricks->key, num * (int64_t)sizeof *bricks->key};
    of_bricks[2] =
        (tess_samples_part){bricks->num_vis, num * (int64_t)sizeof *bricks->num_vis};
    /* the index of no bricks may be NULL */
    of_bricks[3] = (tess_samples_part){
        bricks->first_run,
        num > 0 ? (num + 1) * (int64_t)sizeof *bricks->first_run : 0};
    for (int k = 0; k < TESS_SAMPLES_PARTS + BRICK_PARTS; ++k)
        TESS_TRY(
            scratch_file_move(spool->file, parts[k].data, parts[k].bytes, at, to_file));
cleanup:
    return status;
}

tess_status pass_spool_write(pass_spool *spool, const tess_samples *samples,
                             const tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    int64_t at = spool->bytes;
    if (tess_grow((void **)&spool->pass, &spool->capacity_passes, spool->num_passes + 1,
                  sizeof *spool->pass))
        TESS_FAIL(TESS_ERR_ALLOC, "list of passes");
    spool->pass[spool->num_passes] = (kept_pass){
        at, samples->num_rows, samples->num_vis, bricks->num_runs, bricks->num_bricks};
    TESS_TRY(move_pass(spool, samples, bricks, &at, true));
    ++spool->num_passes;
    spool->bytes = at;
cleanup:
    return status;
}

/* Makes room for a pass. */
static tess_status reserve(const kept_pass *pass, tess_samples *samples,
                           tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    samples->num_rows = samples->num_vis = 0;
    TESS_TRY(tess_samples_reserve(samples, pass->num_rows, pass->num_vis));
    samples->num_rows = pass->num_rows;
    samples->num_vis = pass->num_vis;
    tess_brick_list_free(bricks);
    TESS_TRY(imager_make_counts(pass->num_bricks, false, bricks));
    bricks->num_bricks = pass->num_bricks;
    bricks->first_run[0] = 0;
    bricks->run = tess_alloc(pass->num_runs, sizeof *bricks->run);
    if (!bricks->run) TESS_FAIL(TESS_ERR_ALLOC, "runs of a pass");
    bricks->num_runs = bricks->capacity_runs = pass->num_runs;
cleanup:
    return status;
}

tess_status pass_spool_read(pass_spool *spool, int64_t k, tess_samples **samples,
                            tess_brick_list **bricks)
{
    tess_status status = TESS_OK;
    const kept_pass *pass = &spool->pass[k], *next = pass + 1;
    int64_t at = pass->at;
    TESS_TRY(reserve(pass, &spool->samples, &spool->bricks));
    TESS_TRY(move_pass(spool, &spool->samples, &spool->bricks, &at, false));
    if (k + 1 < spool->num_passes) {
        const int64_t end = k + 2 < spool->num_passes ? next[1].at : spool->bytes;
        scratch_file_fetch(spool->file, next->at, end - next->at);
    }
    *samples = &spool->samples;
    *bricks = &spool->bricks;
cleanup:
    return status;
}
