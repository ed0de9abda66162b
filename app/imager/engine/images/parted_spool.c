/* Keeps samples that are parted by output in a scratch file. */
#include "parted_spool.h"

#include <string.h>

#include "spool.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Outputs are gathered in memory of this size before they are written. */
enum { GATHER_BYTES = 8 << 20 };

/* A batch in the file: arrays of rows, blocks, visibilities, weights, from `at` on. */
typedef struct parted_batch {
    int64_t at, num_rows, num_blocks;
    int num_weight;
    bool has_origins;
    int64_t *first; /* [outputs + 1] first sample of each output */
} parted_batch;

struct parted_spool {
    scratch_file *file;
    const output_table *outputs;
    parted_batch *batch;
    int64_t num_batches, capacity, bytes;
};

tess_status parted_spool_create(const char *folder, const output_table *outputs,
                                parted_spool **spool_out)
{
    tess_status status = TESS_OK;
    parted_spool *spool = tess_alloc_zero(1, sizeof *spool);
    if (!spool) TESS_FAIL(TESS_ERR_ALLOC, "scratch file");
    spool->outputs = outputs;
    TESS_TRY(scratch_file_create(folder, &spool->file));
    *spool_out = spool;
    spool = NULL;
cleanup:
    parted_spool_destroy(spool);
    return status;
}

void parted_spool_destroy(parted_spool *spool)
{
    if (!spool) return;
    for (int64_t k = 0; k < spool->num_batches; ++k)
        tess_free(spool->batch[k].first);
    tess_free(spool->batch);
    scratch_file_destroy(spool->file);
    tess_free(spool);
}

int64_t parted_spool_batches(const parted_spool *spool)
{
    return spool->num_batches;
}

int64_t parted_spool_bytes(const parted_spool *spool)
{
    return spool->bytes;
}

const output_table *parted_spool_outputs(const parted_spool *spool)
{
    return spool->outputs;
}

/* ---- places in the file ---- */

static int64_t vis_bytes(const tess_samples *samples)
{
    return 2 * samples->num_pol * (samples->is_double ? 8 : 4);
}

static int64_t weight_bytes(const tess_samples *samples, int num_weight)
{
    return num_weight * (samples->is_double ? 8 : 4);
}

/* Where the first visibility of a batch is. */
static int64_t vis_at(const parted_batch *batch)
{
    const int64_t row = 3 * (int64_t)sizeof(double) + 2 * (int64_t)sizeof(int32_t) +
                        (batch->has_origins ? (int64_t)sizeof(int32_t) : 0);
    return batch->at + batch->num_rows * row +
           batch->num_blocks * (int64_t)sizeof(sample_block);
}

static int64_t weight_at(const parted_spool *spool, const parted_batch *batch,
                         const tess_samples *kind)
{
    return vis_at(batch) + batch->first[spool->outputs->num] * vis_bytes(kind);
}

/* Writes or reads rows from number `row` of the samples on, and blocks. */
static tess_status move_rows(const parted_spool *spool, const parted_batch *batch,
                             const tess_samples *samples, int64_t row,
                             sample_block *block, bool to_file)
{
    tess_status status = TESS_OK;
    const int64_t n = batch->num_rows;
    int64_t at = batch->at;
    const tess_samples_part parts[] = {
        {samples->uvw_m + 3 * row, 3 * n * (int64_t)sizeof *samples->uvw_m},
        {samples->chan_base + row, n * (int64_t)sizeof *samples->chan_base},
        {samples->num_chan + row, n * (int64_t)sizeof *samples->num_chan},
        {batch->has_origins ? samples->origin + row : NULL,
         batch->has_origins ? n * (int64_t)sizeof *samples->origin : 0},
        {block, batch->num_blocks * (int64_t)sizeof *block}};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; ++k)
        TESS_TRY(scratch_file_move(spool->file, parts[k].data, parts[k].bytes, &at,
                                   to_file));
cleanup:
    return status;
}

/* ---- writing ---- */

/* The end of the outputs, from `first` on, that are gathered together: one at least. */
static int64_t gather_end(const int64_t *first_of, int64_t num, int64_t first,
                          int64_t bytes)
{
    int64_t end = first + 1;
    while (end < num && (first_of[end + 1] - first_of[first]) * bytes <= GATHER_BYTES)
        ++end;
    return end;
}

static int64_t most_gathered(const int64_t *first_of, int64_t num, int64_t bytes)
{
    int64_t most = 0;
    for (int64_t k = 0, end; k < num; k = end) {
        end = gather_end(first_of, num, k, bytes);
        if (first_of[end] - first_of[k] > most) most = first_of[end] - first_of[k];
    }
    return most;
}

static tess_status write_outputs(const parted_spool *spool, const parted_batch *batch,
                                 const sample_parts *parts, int threads,
                                 const tess_samples *samples)
{
    tess_status status = TESS_OK;
    const int64_t num = spool->outputs->num, *first = batch->first;
    const int64_t vis = vis_bytes(samples);
    const int64_t weight = weight_bytes(samples, batch->num_weight);
    const int64_t most = most_gathered(first, num, vis + weight);
    char *room = tess_alloc(most, (size_t)(vis + weight));
    int64_t to_vis = vis_at(batch), to_weight = weight_at(spool, batch, samples);
    if (!room) TESS_FAIL(TESS_ERR_ALLOC, "samples on their way to scratch");
    for (int64_t k = 0, end; k < num; k = end) {
        end = gather_end(first, num, k, vis + weight);
        char *weights = room + (first[end] - first[k]) * vis;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
        for (int64_t j = k; j < end; ++j)
            sample_parts_gather(parts, spool->outputs, j, samples,
                                batch->num_weight < samples->num_weight,
                                room + (first[j] - first[k]) * vis,
                                weights + (first[j] - first[k]) * weight);
        TESS_TRY(scratch_file_move(spool->file, room, (first[end] - first[k]) * vis,
                                   &to_vis, true));
        TESS_TRY(scratch_file_move(spool->file, weights,
                                   (first[end] - first[k]) * weight, &to_weight, true));
    }
cleanup:
    tess_free(room);
    return status;
}

tess_status parted_spool_add(parted_spool *spool, const double *row_time, int threads,
                             tess_samples *samples)
{
    tess_status status = TESS_OK;
    sample_parts parts = {0};
    parted_batch batch = {
        .at = spool->bytes,
        .num_rows = samples->num_rows,
        .num_weight = tess_samples_one_weight(samples) ? 1 : samples->num_weight,
        .has_origins = samples->origins != NULL};
    TESS_TRY(sample_parts_make(spool->outputs, row_time, threads, samples, &parts));
    batch.num_blocks = parts.num_blocks;
    batch.first = tess_alloc(spool->outputs->num + 1, sizeof *batch.first);
    if (!batch.first || tess_grow((void **)&spool->batch, &spool->capacity,
                                  spool->num_batches + 1, sizeof *spool->batch))
        TESS_FAIL(TESS_ERR_ALLOC, "list of samples on scratch");
    sample_parts_count(&parts, spool->outputs, samples, batch.first);
    TESS_TRY(move_rows(spool, &batch, samples, 0, parts.block, true));
    TESS_TRY(write_outputs(spool, &batch, &parts, threads, samples));
    spool->bytes =
        weight_at(spool, &batch, samples) +
        batch.first[spool->outputs->num] * weight_bytes(samples, batch.num_weight);
    spool->batch[spool->num_batches++] = batch;
    batch.first = NULL;
cleanup:
    tess_free(batch.first);
    sample_parts_free(&parts);
    return status;
}

/* ---- reading ---- */

/* Gives each sample from number `first` on `num` weights, all as the one that it has.
 * The last sample comes first, so that no weight is overwritten before it is copied. */
static void repeat_weights(tess_samples *samples, int64_t first, int64_t count)
{
    const int64_t element = samples->is_double ? 8 : 4, num = samples->num_weight;
    char *weight = (char *)samples->weight + first * num * element;
    for (int64_t k = count - 1; k >= 0; --k)
        for (int64_t j = num - 1; j >= 0; --j)
            memmove(weight + (k * num + j) * element, weight + k * element,
                    (size_t)element);
}

/* Appends the samples that outputs [first, end) have in a batch. */
static tess_status read_batch(const parted_spool *spool, int64_t first, int64_t end,
                              const parted_batch *batch, tess_samples *samples,
                              sample_parts *parts)
{
    tess_status status = TESS_OK;
    const int64_t begin = batch->first[first], count = batch->first[end] - begin;
    const int64_t vis = vis_bytes(samples);
    const int64_t weight = weight_bytes(samples, batch->num_weight);
    int64_t from_vis = vis_at(batch) + begin * vis;
    int64_t from_weight = weight_at(spool, batch, samples) + begin * weight;
    sample_block *block = parts->block + parts->num_blocks;
    TESS_TRY(move_rows(spool, batch, samples, samples->num_rows, block, false));
    for (int64_t k = 0; k < batch->num_blocks; ++k)
        block[k].row_first += samples->num_rows;
    TESS_TRY(scratch_file_move(spool->file,
                               (char *)samples->vis + samples->num_vis * vis,
                               count * vis, &from_vis, false));
    TESS_TRY(scratch_file_move(spool->file,
                               (char *)samples->weight +
                                   samples->num_vis *
                                       weight_bytes(samples, samples->num_weight),
                               count * weight, &from_weight, false));
    if (batch->num_weight < samples->num_weight)
        repeat_weights(samples, samples->num_vis, count);
    samples->num_rows += batch->num_rows;
    parts->num_blocks += batch->num_blocks;
cleanup:
    return status;
}

/* Whether outputs [first, end) have samples in a batch. */
static bool has_samples(const parted_batch *batch, int64_t first, int64_t end)
{
    return batch->first[end] > batch->first[first];
}

/* Takes memory for the samples of outputs [first, end), which are in `num` batches from
 * this one on. */
static tess_status reserve(const parted_batch *batch, int64_t num, int64_t first,
                           int64_t end, tess_samples *samples, sample_parts *parts)
{
    tess_status status = TESS_OK;
    int64_t rows = 0, vis = 0, blocks = 0, batches = 0;
    for (int64_t k = 0; k < num; ++k) {
        if (!has_samples(&batch[k], first, end)) continue;
        rows += batch[k].num_rows;
        blocks += batch[k].num_blocks;
        vis += batch[k].first[end] - batch[k].first[first];
        ++batches;
    }
    TESS_TRY(tess_samples_reserve(samples, rows, vis));
    if (rows > 0)
        memset(samples->vis_first, 0, (size_t)rows * sizeof *samples->vis_first);
    parts->capacity = blocks;
    parts->block = tess_alloc(blocks, sizeof *parts->block);
    parts->batch_block = tess_alloc(batches + 1, sizeof *parts->batch_block);
    parts->batch_vis =
        tess_alloc(batches * (end - first + 1), sizeof *parts->batch_vis);
    if (!parts->block || !parts->batch_block || !parts->batch_vis)
        TESS_FAIL(TESS_ERR_ALLOC, "samples from scratch");
    parts->batch_block[0] = 0;
cleanup:
    return status;
}

tess_status parted_spool_read(const parted_spool *spool, int64_t first, int64_t end,
                              int64_t batch_first, int64_t batch_end,
                              tess_samples *samples, sample_parts *parts)
{
    tess_status status = TESS_OK;
    const int64_t stop =
        batch_end < spool->num_batches ? batch_end : spool->num_batches;
    const int64_t num = stop > batch_first ? stop - batch_first : 0;
    TESS_TRY(sample_parts_start(spool->outputs, parts));
    parts->first_output = first;
    parts->end_output = end;
    TESS_TRY(reserve(spool->batch + batch_first, num, first, end, samples, parts));
    for (int64_t k = batch_first; k < stop; ++k) {
        const parted_batch *batch = &spool->batch[k];
        int64_t *of_outputs = parts->batch_vis + parts->num_batches * (end - first + 1);
        if (!has_samples(batch, first, end)) continue;
        TESS_TRY(read_batch(spool, first, end, batch, samples, parts));
        for (int64_t j = first; j <= end; ++j)
            of_outputs[j - first] =
                samples->num_vis + batch->first[j] - batch->first[first];
        samples->num_vis = of_outputs[end - first];
        parts->batch_block[++parts->num_batches] = parts->num_blocks;
    }
cleanup:
    if (status != TESS_OK) sample_parts_free(parts);
    return status;
}

tess_status parted_spool_probe(const parted_spool *spool, const tess_samples *like,
                               double *write_s, double *read_s)
{
    tess_status status = TESS_OK;
    tess_samples samples = tess_samples_like(like);
    sample_parts parts = {0};
    double mark = tess_time_now();
    TESS_TRY(scratch_file_settle(spool->file));
    *write_s += tess_time_now() - mark;
    scratch_file_drop(spool->file, spool->bytes);
    mark = tess_time_now();
    TESS_TRY(parted_spool_read(spool, 0, spool->outputs->num, 0, 1, &samples, &parts));
    *read_s = tess_time_now() - mark;
cleanup:
    sample_parts_free(&parts);
    tess_samples_free(&samples);
    return status;
}
