/* Keeps prepared samples in a scratch file, for passes over data that do not fit into
 * memory. */
#include "spool.h"

#include "scratch_file.h"
#include "tess_log.h"
#include "tess_mem.h"

/* A set: its arrays one after the other. */
typedef struct spool_set {
    int64_t at, num_rows, num_vis;
} spool_set;

struct tess_spool {
    scratch_file *file;
    int64_t num_sets, capacity_sets, bytes;
    spool_set *set;
};

tess_status tess_spool_create(const char *folder, tess_spool **spool_out)
{
    tess_status status = TESS_OK;
    tess_spool *spool = tess_alloc_zero(1, sizeof *spool);
    if (!spool) TESS_FAIL(TESS_ERR_ALLOC, "scratch file");
    TESS_TRY(scratch_file_create(folder, &spool->file));
    *spool_out = spool;
    spool = NULL;
cleanup:
    tess_spool_destroy(spool);
    return status;
}

void tess_spool_destroy(tess_spool *spool)
{
    if (!spool) return;
    scratch_file_destroy(spool->file);
    tess_free(spool->set);
    tess_free(spool);
}

int64_t tess_spool_sets(const tess_spool *spool)
{
    return spool->num_sets;
}

int64_t tess_spool_bytes(const tess_spool *spool)
{
    return spool->bytes;
}

/* ---- arrays ---- */

tess_status tess_spool_write(tess_spool *spool, const tess_samples *samples)
{
    tess_status status = TESS_OK;
    tess_samples_part parts[TESS_SAMPLES_PARTS];
    int64_t at = spool->bytes;
    if (tess_grow((void **)&spool->set, &spool->capacity_sets, spool->num_sets + 1,
                  sizeof *spool->set))
        TESS_FAIL(TESS_ERR_ALLOC, "list of sets of samples");
    spool->set[spool->num_sets] = (spool_set){at, samples->num_rows, samples->num_vis};
    tess_samples_list(samples, parts);
    for (int k = 0; k < TESS_SAMPLES_PARTS; ++k)
        TESS_TRY(
            scratch_file_move(spool->file, parts[k].data, parts[k].bytes, &at, true));
    ++spool->num_sets;
    spool->bytes = at;
cleanup:
    return status;
}

tess_status tess_spool_read(tess_spool *spool, int64_t k, tess_samples *samples)
{
    tess_status status = TESS_OK;
    const spool_set *set = &spool->set[k];
    tess_samples_part parts[TESS_SAMPLES_PARTS];
    int64_t at = set->at;
    samples->num_rows = samples->num_vis = 0;
    TESS_TRY(tess_samples_reserve(samples, set->num_rows, set->num_vis));
    samples->num_rows = set->num_rows;
    samples->num_vis = set->num_vis;
    tess_samples_list(samples, parts);
    for (int p = 0; p < TESS_SAMPLES_PARTS; ++p)
        TESS_TRY(
            scratch_file_move(spool->file, parts[p].data, parts[p].bytes, &at, false));
    if (k + 1 < spool->num_sets) {
        const int64_t end =
            k + 2 < spool->num_sets ? spool->set[k + 2].at : spool->bytes;
        scratch_file_fetch(spool->file, at, end - at);
    }
cleanup:
    return status;
}

tess_status tess_spool_probe(tess_spool *spool, tess_samples *samples, double *write_s,
                             double *read_s)
{
    tess_status status = TESS_OK;
    double mark = tess_time_now();
    TESS_TRY(scratch_file_settle(spool->file));
    *write_s += tess_time_now() - mark;
    scratch_file_drop(spool->file, spool->bytes);
    mark = tess_time_now();
    TESS_TRY(tess_spool_read(spool, 0, samples));
    *read_s = tess_time_now() - mark;
cleanup:
    return status;
}
