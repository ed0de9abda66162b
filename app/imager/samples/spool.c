/* Keeps samples and their bricks in a scratch file. */
#include "spool.h"

#include "tess_log.h"
#include "tess_mem.h"
#include "tess_samples.h"

/* A record: its arrays lie one after the other. */
typedef struct spool_record {
    int64_t at, num_rows, num_vis, num_runs, num_bricks;
} spool_record;

struct tess_spool {
    scratch_file *file;
    int64_t num_records, capacity_records, bytes;
    spool_record *record;
    tess_samples like; /* no samples, of the kind of those in the records */
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
    tess_free(spool->record);
    tess_free(spool);
}

int64_t tess_spool_records(const tess_spool *spool)
{
    return spool->num_records;
}

int64_t tess_spool_bytes(const tess_spool *spool)
{
    return spool->bytes;
}

tess_samples tess_spool_samples(const tess_spool *spool)
{
    return spool->like;
}

/* ---- arrays ---- */

enum { BRICK_PARTS = 4, MOST_PARTS = TESS_SAMPLES_PARTS + BRICK_PARTS };

/* Lists the arrays of a record; returns their number. */
static int list_parts(const tess_samples *samples, const tess_brick_list *bricks,
                      tess_samples_part parts[MOST_PARTS])
{
    tess_samples_part *const of_bricks = parts + TESS_SAMPLES_PARTS;
    tess_samples_list(samples, parts);
    if (!bricks) return TESS_SAMPLES_PARTS;
    const int64_t num = bricks->num_bricks;
    of_bricks[0] =
        (tess_samples_part){bricks->run, bricks->num_runs * (int64_t)sizeof(tess_run)};
    of_bricks[1] = (tess_samples_part){bricks->key, num * (int64_t)sizeof *bricks->key};
    of_bricks[2] =
        (tess_samples_part){bricks->num_vis, num * (int64_t)sizeof *bricks->num_vis};
    /* the index of no bricks may be NULL */
    of_bricks[3] = (tess_samples_part){
        bricks->first_run,
        num > 0 ? (num + 1) * (int64_t)sizeof *bricks->first_run : 0};
    return MOST_PARTS;
}

/* Writes or reads all arrays of a record at `*at`, which advances. */
static tess_status move_record(const tess_spool *spool, const tess_samples *samples,
                               const tess_brick_list *bricks, int64_t *at, bool to_file)
{
    tess_status status = TESS_OK;
    tess_samples_part parts[MOST_PARTS];
    const int num = list_parts(samples, bricks, parts);
    for (int k = 0; k < num; ++k)
        TESS_TRY(
            scratch_file_move(spool->file, parts[k].data, parts[k].bytes, at, to_file));
cleanup:
    return status;
}

tess_status tess_spool_write(tess_spool *spool, const tess_samples *samples,
                             const tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    int64_t at = spool->bytes;
    if (tess_grow((void **)&spool->record, &spool->capacity_records,
                  spool->num_records + 1, sizeof *spool->record))
        TESS_FAIL(TESS_ERR_ALLOC, "list of records of samples");
    spool->like = tess_samples_like(samples);
    spool->record[spool->num_records] =
        (spool_record){.at = at,
                       .num_rows = samples->num_rows,
                       .num_vis = samples->num_vis,
                       .num_runs = bricks ? bricks->num_runs : 0,
                       .num_bricks = bricks ? bricks->num_bricks : 0};
    TESS_TRY(move_record(spool, samples, bricks, &at, true));
    ++spool->num_records;
    spool->bytes = at;
cleanup:
    return status;
}

/* Makes an empty list of as many bricks and runs as the record has. */
static tess_status reserve_bricks(const spool_record *record, tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    tess_brick_list_free(bricks);
    TESS_TRY(tess_brick_list_make_counts(record->num_bricks, false, bricks));
    bricks->num_bricks = record->num_bricks;
    bricks->first_run[0] = 0;
    bricks->run = tess_alloc(record->num_runs, sizeof *bricks->run);
    if (!bricks->run) TESS_FAIL(TESS_ERR_ALLOC, "runs of a pass");
    bricks->num_runs = bricks->capacity_runs = record->num_runs;
cleanup:
    return status;
}

tess_status tess_spool_read(tess_spool *spool, int64_t k, tess_samples *samples,
                            tess_brick_list *bricks)
{
    tess_status status = TESS_OK;
    const spool_record *record = &spool->record[k];
    int64_t at = record->at;
    samples->num_rows = samples->num_vis = 0;
    TESS_TRY(tess_samples_reserve(samples, record->num_rows, record->num_vis));
    samples->num_rows = record->num_rows;
    samples->num_vis = record->num_vis;
    if (bricks) TESS_TRY(reserve_bricks(record, bricks));
    TESS_TRY(move_record(spool, samples, bricks, &at, false));
    if (k + 1 < spool->num_records) {
        const int64_t end =
            k + 2 < spool->num_records ? spool->record[k + 2].at : spool->bytes;
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
    TESS_TRY(tess_spool_read(spool, 0, samples, NULL));
    *read_s = tess_time_now() - mark;
cleanup:
    return status;
}
