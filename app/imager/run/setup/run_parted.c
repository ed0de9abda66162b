/* Parts the samples of a run by output on scratch, in the first pass over the data. */
#include "run_parted.h"

#include <math.h>

#include "parted_spool.h"
#include "residual.h"
#include "tess_log.h"
#include "tess_mem.h"

/* A batch is as large as possible, because the samples of some outputs are a part of
 * each batch: the disk then reads few, large parts. It takes this share of the samples
 * that may be held, so that there is room for a second one when the disk is measured,
 * and no more bytes than this, which is enough for any disk. */
static const double BATCH_SHARE = 0.4;
enum { MOST_BATCH_BYTES = 1 << 30 };

/* Finds the number of blocks in a batch. Collective. */
static tess_status choose_batch(image_run *run, int64_t num_blocks)
{
    const tess_samples like = tess_source_samples(run->source);
    const double room =
        BATCH_SHARE * IMAGE_CACHE_SHARE * (double)run->job.memory.rank_bytes;
    int64_t num_rows, num_vis;
    tess_source_slice(run->source, &num_rows, &num_vis);
    const double block = ((double)num_vis * (double)tess_samples_vis_bytes(&like) +
                          IMAGE_ROW_BYTES * (double)num_rows) /
                         fmax(1, (double)tess_source_own_blocks(run->source));
    run->holds.batch_blocks =
        1 + (int64_t)fmin(fmin(room, MOST_BATCH_BYTES) / fmax(block, 1),
                          (double)num_blocks);
    return tess_comm_allreduce_i64(run->comm, &run->holds.batch_blocks, 1, TESS_MIN);
}

tess_status image_part_start(image_run *run, int64_t num_blocks, double reads)
{
    tess_status status = TESS_OK;
    if (!run->opts->scratch || run->outputs.num == 1 || run->holds.stay) return TESS_OK;
    run->holds.reads = reads;
    status = parted_spool_create(run->opts->scratch, &run->outputs, &run->holds.parted);
    TESS_TRY(tess_comm_agree(run->comm, status));
    TESS_TRY(choose_batch(run, num_blocks));
cleanup:
    return status;
}

bool image_part_ends(const image_run *run, int64_t block, int64_t num_blocks)
{
    return !run->holds.parted || block == num_blocks ||
           block % run->holds.batch_blocks == 0;
}

void image_part_give_up(image_run *run)
{
    parted_spool_destroy(run->holds.parted);
    run->holds.parted = NULL;
    run->holds.parts = false;
}

/* Decides whether further batches are parted. Reading the first one took `source_s`,
 * and writing it `write_s`. Without scratch, data are read again for each group of
 * outputs whose samples fit into memory. Ranks decide together, because they take the
 * samples of an output together. Collective. */
static tess_status weigh_scratch(image_run *run, double source_s, double write_s)
{
    tess_status status = TESS_OK;
    const tess_samples like = tess_source_samples(run->source);
    double read_s = 0;
    status = parted_spool_probe(run->holds.parted, &like, &write_s, &read_s);
    TESS_TRY(tess_comm_agree(run->comm, status));
    int64_t keep = write_s + read_s < run->holds.reads * source_s;
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &keep, 1, TESS_MIN));
    tess_log_info("%s of samples take %.3g s to read, %.3g s to write to a scratch "
                  "file, parted by output, and %.3g s to read back: %s",
                  tess_mem_text((double)parted_spool_bytes(run->holds.parted)),
                  source_s, write_s, read_s,
                  keep ? "data are read once"
                       : "the observations are read again for every few outputs");
    if (!keep) image_part_give_up(run);
cleanup:
    return status;
}

tess_status image_part_batch(image_run *run, tess_status read, part_batch *batch)
{
    tess_status status = TESS_OK;
    const double mark = tess_time_now();
    parted_spool *parted = run->holds.parted;
    TESS_TRY(tess_comm_agree(run->comm, read));
    if (image_subtracts_early(run))
        TESS_TRY(residual_of_set(&run->less.predictor, 1, &batch->samples));
    status = parted_spool_add(parted, batch->row_time, run->opts->layout.threads,
                              &batch->samples);
    TESS_TRY(tess_comm_agree(run->comm, status));
    if (parted_spool_batches(parted) == 1 && !run->job.layout->forced.scratch)
        TESS_TRY(weigh_scratch(run, mark - batch->since, tess_time_now() - mark));
cleanup:
    return status;
}

tess_status image_part_again(image_run *run, int64_t num_blocks)
{
    tess_status status = TESS_OK;
    part_batch batch = {.samples = tess_source_samples(run->source),
                        .since = tess_time_now()};
    double **row_time = run->outputs.num_intervals > 1 ? &batch.row_time : NULL;
    tess_source_rewind(run->source);
    for (int64_t k = 0; k < num_blocks && run->holds.parted; ++k) {
        if (status == TESS_OK)
            status = tess_source_next(run->source, &batch.samples, row_time, NULL);
        if (!image_part_ends(run, k + 1, num_blocks)) continue;
        TESS_TRY(image_part_batch(run, status, &batch));
        batch.samples.num_rows = batch.samples.num_vis = 0;
        batch.since = tess_time_now();
    }
cleanup:
    tess_samples_free(&batch.samples);
    tess_free(batch.row_time);
    return status;
}

tess_status image_part_hold(image_run *run, int64_t first, int64_t end)
{
    run->all = tess_source_samples(run->source);
    return parted_spool_read(run->holds.parted, first, end, 0,
                             parted_spool_batches(run->holds.parted), &run->all,
                             &run->parts);
}
