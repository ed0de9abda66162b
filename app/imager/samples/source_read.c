/* Reads this rank's slice of all observations block by block, while a second thread
 * reads the next block. */
#include "source_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tess_log.h"
#include "tess_mem.h"
#include "tess_samples.h"
#include "tess_select.h"

/* Whether a span may have rows of the wanted times, and is the wanted reader's. */
static bool wanted(const tess_source *source, const span *s)
{
    const part *p = &source->parts[s->part];
    const tess_recipe *recipe = &p->recipe;
    if (source->reading.only_reader >= 0 && p->obs != source->reading.only_reader)
        return false;
    return s->time_last >= recipe->time_first && s->time_first < recipe->time_end;
}

int64_t tess_source_own_blocks(const tess_source *source)
{
    int64_t count = 0;
    for (int64_t k = 0; k < source->num_spans; ++k)
        count += wanted(source, &source->spans[k]);
    return count;
}

tess_status tess_source_num_blocks(tess_source *source, int64_t *num_blocks)
{
    *num_blocks = tess_source_own_blocks(source);
    return tess_comm_allreduce_i64(source->comm, num_blocks, 1, TESS_MAX);
}

static void wait_for_reader(tess_source *source)
{
    if (source->reading.worker) tess_worker_wait(source->reading.worker);
}

tess_status tess_source_deal(tess_source *source, tess_comm *comm)
{
    wait_for_reader(source);
    source->reading.at_start = false;
    source->comm = comm;
    return source_make_spans(source);
}

/* ---- reading ---- */

static void read_span(void *argument)
{
    tess_source *source = argument;
    span *s = &source->spans[source->next_span];
    const part *p = &source->parts[s->part];
    const double begin = tess_time_now();
    if (p->obs != source->reading.obs_read)
        source_rest_reader(source, source->reading.obs_read);
    source->reading.obs_read = p->obs;
    source->reading.status =
        source_read_rows(source, s, &source->reading.block[source->reading.turn]);
    tess_trace_add(source->trace, TESS_LANE_READER, "read", begin, tess_time_now());
}

static void skip_unwanted(tess_source *source)
{
    while (source->next_span < source->num_spans &&
           !wanted(source, &source->spans[source->next_span]))
        ++source->next_span;
}

/* Begin to read the next wanted span in the background; in this thread if that
 * fails. */
static void start_reading(tess_source *source)
{
    skip_unwanted(source);
    if (source->next_span >= source->num_spans || source->reading.in_turn) return;
    if (!source->reading.worker) source->reading.worker = tess_worker_create();
    if (source->reading.worker)
        tess_worker_start(source->reading.worker, read_span, source);
    else
        read_span(source);
}

void tess_source_rest(tess_source *source)
{
    tess_worker_destroy(source->reading.worker);
    source->reading.worker = NULL;
    source->reading.at_start = false;
    source_rest_reader(source, source->reading.obs_read);
    if (source->reading.regrid) source_regrid_rest(source->reading.regrid);
    for (int k = 0; k < 2; ++k)
        tess_vis_block_free(&source->reading.block[k]);
}

void tess_source_read_in_turn(tess_source *source, bool in_turn)
{
    wait_for_reader(source);
    source->reading.in_turn = in_turn && source->threads > 1;
    source->reading.at_start = false;
}

void tess_source_skip_to(tess_source *source, int64_t block)
{
    wait_for_reader(source);
    source->next_span = 0;
    for (int64_t k = 0; k < block && source->next_span < source->num_spans; ++k) {
        skip_unwanted(source);
        ++source->next_span;
    }
    source->reading.status = TESS_OK;
    source->reading.at_start = block == 0;
    start_reading(source);
}

void tess_source_rewind(tess_source *source)
{
    if (!source->reading.at_start) tess_source_skip_to(source, 0);
}

static void note_times(const tess_vis_block *block, span *s)
{
    s->time_first = INFINITY;
    s->time_last = -INFINITY;
    for (int64_t row = 0; row < block->num_rows; ++row) {
        s->time_first = fmin(s->time_first, block->time_mjd_s[row]);
        s->time_last = fmax(s->time_last, block->time_mjd_s[row]);
    }
}

static int64_t block_bytes_of(const tess_source *source, const span *s,
                              const tess_vis_block *block)
{
    const int64_t chans = source_read_chan(&source->parts[s->part]);
    const int64_t uvw = 3 * (int64_t)sizeof(double);
    const int64_t others = 2 * (int64_t)(sizeof(double) + sizeof(int32_t));
    const int64_t row = source->selection.wanted.uvw_only ? uvw : uvw + others;
    const int64_t sample =
        source->selection.wanted.positions_only ? 0 : 3 * sizeof(float);
    return block->num_rows * (row + chans * block->num_corr * sample);
}

int64_t tess_source_bytes(const tess_source *source)
{
    return source->bytes_read;
}

tess_status tess_source_next_block(tess_source *source, tess_vis_block **block,
                                   const tess_recipe **recipe)
{
    *block = NULL;
    *recipe = NULL;
    source->reading.at_start = false;
    if (source->next_span >= source->num_spans) return TESS_OK;
    if (source->reading.in_turn)
        read_span(source);
    else
        wait_for_reader(source);
    if (source->reading.status != TESS_OK) return source->reading.status;
    span *s = &source->spans[source->next_span++];
    *block = &source->reading.block[source->reading.turn];
    *recipe = &source->parts[s->part].recipe;
    source->reading.part = s->part;
    note_times(*block, s);
    source->bytes_read += block_bytes_of(source, s, *block);
    if (!source->reading.in_turn) source->reading.turn = 1 - source->reading.turn;
    start_reading(source);
    return TESS_OK;
}

tess_status tess_source_next(tess_source *source, tess_samples *samples,
                             double **row_time, tess_profile *profile)
{
    tess_status status = TESS_OK;
    tess_vis_block *block;
    const tess_recipe *recipe;
    TESS_TRY(tess_source_next_block(source, &block, &recipe));
    if (!block) return TESS_OK;
    if (source->reading.regrid)
        return source_regrid_block(
            source->reading.regrid,
            &(regrid_work){recipe, block, source->reading.part, source->threads},
            samples, row_time, profile);
    if (row_time) {
        int64_t capacity = samples->num_rows; /* grown to what is needed, no further */
        if (tess_grow((void **)row_time, &capacity, samples->num_rows + block->num_rows,
                      sizeof **row_time))
            TESS_FAIL(TESS_ERR_ALLOC, "times of rows");
    }
    TESS_TRY(tess_prepare_block(recipe, block, source->threads, samples,
                                row_time ? *row_time : NULL, profile));
cleanup:
    return status;
}

/* ---- times ---- */

/* Times that are no further apart are those of one integration [s]. */
static const double SAME_TIME_S = 1e-3;

static tess_status own_times(tess_source *source, double **times, int64_t *count)
{
    tess_status status = TESS_OK;
    int64_t capacity = 0;
    tess_vis_block *block;
    const tess_recipe *recipe;
    tess_source_rewind(source);
    for (;;) {
        TESS_TRY(tess_source_next_block(source, &block, &recipe));
        if (!block) break;
        if (tess_grow((void **)times, &capacity, *count + block->num_rows,
                      sizeof **times))
            TESS_FAIL(TESS_ERR_ALLOC, "times of rows");
        memcpy(*times + *count, block->time_mjd_s,
               (size_t)block->num_rows * sizeof **times);
        *count = tess_select_distinct(*times, *count + block->num_rows, SAME_TIME_S);
    }
cleanup:
    return status;
}

tess_status tess_source_times(tess_source *source, double **times_out,
                              int64_t *num_times)
{
    tess_status status = TESS_OK;
    double *times = NULL;
    void *all = NULL;
    int64_t count = 0, total = 0;
    int64_t *bytes = tess_alloc(tess_comm_size(source->comm), sizeof *bytes);
    status = bytes ? own_times(source, &times, &count) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(source->comm, status));
    TESS_TRY(tess_comm_allgatherv(source->comm, times, count * (int64_t)sizeof *times,
                                  &all, bytes));
    for (int k = 0; k < tess_comm_size(source->comm); ++k)
        total += bytes[k];
    *num_times = tess_select_distinct(all, total / (int64_t)sizeof *times, SAME_TIME_S);
    *times_out = all;
cleanup:
    tess_free(times);
    tess_free(bytes);
    return status;
}

tess_status tess_source_choose_steps(tess_source *source)
{
    tess_status status = TESS_OK;
    if (source->selection.time_steps == TESS_ALL_STEPS) return TESS_OK;
    TESS_TRY(tess_source_times(source, &source->steps.time, &source->steps.num));
    source->steps.first = source->selection.time_steps == TESS_ODD_STEPS;
    for (int k = 0; k < source->num_parts; ++k)
        source->parts[k].recipe.steps = &source->steps;
cleanup:
    return status;
}
