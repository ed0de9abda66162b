/* Gives one image's samples, set after set, from memory, the observations or a scratch
 * file. */
#include <math.h>

#include "imager_window.h"
#include "sample_sets.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Sets are read at least this many times after the first time: once bricks or weights
 * have been counted, two passes or more go over data that do not fit into memory. */
enum { LEAST_READS_AGAIN = 2 };

/* Decides whether the next passes read a scratch file or the observations. Reading the
 * first set took `source_s`. The disk is measured with this set, and writing the set
 * took `write_s`. */
static tess_status weigh_spool(sample_sets *data, double source_s, double write_s)
{
    tess_status status = TESS_OK;
    double read_s;
    TESS_TRY(tess_spool_probe(data->spool, &data->block, &write_s, &read_s));
    const bool keep =
        write_s + LEAST_READS_AGAIN * read_s < LEAST_READS_AGAIN * source_s;
    tess_log_info(
        "%s of samples take %.3g s to read, %.3g s to write to a scratch file "
        "and %.3g s to read back: %s",
        tess_mem_text((double)tess_spool_bytes(data->spool)), source_s, write_s, read_s,
        keep ? "this rank uses one" : "this rank reads the observations again");
    if (keep) return TESS_OK;
    tess_spool_destroy(data->spool);
    data->spool = NULL;
cleanup:
    return status;
}

/* Keeps a set that has been read for the first time. */
static tess_status keep_set(sample_sets *data, int64_t k, double source_s)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    TESS_TRY(tess_spool_write(data->spool, &data->block, NULL));
    if (k == 0 && !data->force_scratch)
        TESS_TRY(weigh_spool(data, source_s, tess_time_now() - start));
    if (!data->spool || k < data->num_sets - 1) return TESS_OK;
    tess_source_rest(data->source);
    tess_log_info("%s of samples are kept in a scratch file of this rank",
                  tess_mem_text((double)tess_spool_bytes(data->spool)));
cleanup:
    return status;
}

/* Reads a set of samples that are parted by output on scratch into data->block. */
static tess_status read_parted(sample_sets *data, int64_t k)
{
    tess_status status = TESS_OK;
    tess_samples batches = tess_samples_like(&data->block);
    sample_parts parts = {0};
    data->block.num_rows = data->block.num_vis = 0;
    TESS_TRY(parted_spool_read(data->parted, data->output, data->output + 1,
                               k * data->set_batches, (k + 1) * data->set_batches,
                               &batches, &parts));
    TESS_TRY(sample_parts_take(&parts, parted_spool_outputs(data->parted), data->output,
                               &batches, &data->block));
cleanup:
    sample_parts_free(&parts);
    tess_samples_free(&batches);
    return status;
}

/* Reads a set into data->block: from the observations or, if there is a spool, from
 * these for the first time only. */
static tess_status read_set(sample_sets *data, int64_t k)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    if (data->parted) return read_parted(data, k);
    if (data->spool && k < tess_spool_records(data->spool))
        return tess_spool_read(data->spool, k, &data->block, NULL);
    if (k == 0)
        tess_source_rewind(data->source);
    else if (k != data->next_set)
        tess_source_skip_to(data->source, k * data->set_blocks);
    data->next_set = k + 1;
    data->block.num_rows = data->block.num_vis = 0;
    for (int64_t j = 0; j < data->set_blocks; ++j)
        TESS_TRY(tess_source_next(data->source, &data->block, NULL, NULL));
    /* a run that continues in the middle of a pass keeps sets from the next pass on */
    if (data->spool && k == tess_spool_records(data->spool))
        TESS_TRY(keep_set(data, k, tess_time_now() - start));
cleanup:
    return status;
}

static tess_status scale(const sample_sets *data, tess_samples *samples)
{
    return tess_samples_scale(samples, data->vis_scale, data->weight_scale,
                              data->threads);
}

tess_status sample_sets_get(sample_sets *data, int64_t k, tess_samples **samples)
{
    tess_status status = TESS_OK;
    if (data->in_memory) {
        *samples = &data->cached;
        if (!data->is_scaled) TESS_TRY(scale(data, &data->cached));
        data->is_scaled = true;
        if (data->density)
            TESS_TRY(tess_density_apply(data->density, &data->cached, 0,
                                        data->cached.num_rows, data->threads));
        data->density = NULL;
        return TESS_OK;
    }
    TESS_TRY(read_set(data, k));
    data->largest_set_bytes =
        fmax(data->largest_set_bytes, imager_samples_bytes(&data->block));
    TESS_TRY(scale(data, &data->block));
    if (data->density)
        TESS_TRY(tess_density_apply(data->density, &data->block, 0,
                                    data->block.num_rows, data->threads));
    *samples = &data->block;
cleanup:
    return status;
}
