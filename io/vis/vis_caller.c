/* Reads sets that the calling program holds. The list of them is state of the process,
 * as its files are: a name stands for a set in the options of a run. */
#define _GNU_SOURCE
#include "tess_vis_caller.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tess_mem.h"
#include "vis_format.h"

static const char prefix[] = "memory:";

typedef struct listed_set {
    tess_vis_caller_set set;
    char name[32];
    struct listed_set *next;
} listed_set;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static listed_set *first_set;
static int64_t num_added;

bool tess_vis_is_caller(const char *path)
{
    return strncmp(path, prefix, sizeof prefix - 1) == 0;
}

tess_status tess_vis_caller_add(const tess_vis_caller_set *set, char name[32])
{
    tess_status status = TESS_OK;
    tess_vis_meta meta = set->meta;
    listed_set *listed = tess_alloc_zero(1, sizeof *listed);
    if (!listed) TESS_FAIL(TESS_ERR_ALLOC, "a set of visibilities");
    listed->set = *set;
    pthread_mutex_lock(&lock);
    snprintf(listed->name, sizeof listed->name, "%s%lld", prefix,
             (long long)++num_added);
    listed->next = first_set;
    first_set = listed;
    pthread_mutex_unlock(&lock);
    snprintf(name, sizeof listed->name, "%s", listed->name);
    meta = (tess_vis_meta){0};
cleanup:
    tess_vis_meta_free(&meta);
    return status;
}

void tess_vis_caller_remove(const char *name)
{
    listed_set *found = NULL;
    pthread_mutex_lock(&lock);
    for (listed_set **at = &first_set; *at && !found; at = found ? at : &(*at)->next)
        if (strcmp((*at)->name, name) == 0) {
            found = *at;
            *at = found->next;
        }
    pthread_mutex_unlock(&lock);
    if (!found) return;
    if (found->set.release) found->set.release(found->set.context);
    tess_vis_meta_free(&found->set.meta);
    tess_free(found);
}

static const listed_set *find(const char *name)
{
    pthread_mutex_lock(&lock);
    const listed_set *found = first_set;
    while (found && strcmp(found->name, name) != 0)
        found = found->next;
    pthread_mutex_unlock(&lock);
    return found;
}

/* ---- reading ---- */

/* A reader: the windows that were selected, and their first channel. */
typedef struct caller_state {
    const tess_vis_caller_set *set;
    int *window; /* [meta.num_segments] */
    int64_t chan_first;
} caller_state;

static bool recognise(const char *path, const struct stat *info)
{
    (void)info;
    return tess_vis_is_caller(path);
}

static bool is_selected(const tess_vis_select *select, int window)
{
    for (int k = 0; k < select->num_spw; ++k)
        if (select->spw[k] == window) return true;
    return select->num_spw == 0;
}

/* Copies the selected channels of a window. */
static tess_status copy_segment(const tess_vis_segment *from,
                                const tess_vis_select *select, tess_vis_segment *to)
{
    tess_status status = TESS_OK;
    const int64_t first = select->chan_first,
                  end = select->chan_end > 0 ? select->chan_end : from->num_chan;
    if (first < 0 || end > from->num_chan || first >= end)
        TESS_FAIL(TESS_ERR_USAGE,
                  "there are no channels %lld to %lld: the window has %lld",
                  (long long)first, (long long)end - 1, (long long)from->num_chan);
    const size_t count = (size_t)(end - first);
    *to = *from;
    to->num_chan = end - first;
    to->chan_first = from->chan_first + first;
    to->freq_hz = tess_alloc(end - first, sizeof *to->freq_hz);
    to->chan_width_hz = tess_alloc(end - first, sizeof *to->chan_width_hz);
    to->chan_spw = tess_alloc(end - first, sizeof *to->chan_spw);
    if (!to->freq_hz || !to->chan_width_hz || !to->chan_spw)
        TESS_FAIL(TESS_ERR_ALLOC, "channels");
    memcpy(to->freq_hz, from->freq_hz + first, count * sizeof *to->freq_hz);
    memcpy(to->chan_width_hz, from->chan_width_hz + first,
           count * sizeof *to->chan_width_hz);
    memcpy(to->chan_spw, from->chan_spw + first, count * sizeof *to->chan_spw);
cleanup:
    return status;
}

static void *copied(const void *from, int64_t count, size_t size)
{
    void *to = tess_alloc(count, size);
    if (to) memcpy(to, from, (size_t)count * size);
    return to;
}

static tess_status check_field(const tess_vis_meta *meta, const tess_vis_select *select)
{
    tess_status status = TESS_OK;
    const char *field = select->field;
    if (field && strcmp(field, meta->field->name) != 0 && strcmp(field, "0") != 0 &&
        strcmp(field, "all") != 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "there is no field '%s': the set has one, %s, number 0", field,
                  meta->field->name);
cleanup:
    return status;
}

static tess_status open_set(const char *path, const tess_vis_select *select,
                            tess_vis_reader *reader)
{
    tess_status status = TESS_OK;
    const listed_set *listed = find(path);
    tess_vis_meta *meta = &reader->meta;
    caller_state *state = reader->state = tess_alloc_zero(1, sizeof *state);
    if (!listed) TESS_FAIL(TESS_ERR_IO, "%s: there is no such set in memory", path);
    if (!state) TESS_FAIL(TESS_ERR_ALLOC, "a reader of visibilities");
    const tess_vis_meta *all = &listed->set.meta;
    TESS_TRY(check_field(all, select));
    if (tess_vis_expresses(&select->by))
        TESS_FAIL(TESS_ERR_USAGE, "visibilities in memory have no rows selected by "
                                  "antenna, time, scan or the expressions of CASA; "
                                  "select them before the call");
    *meta = *all;
    meta->segment = tess_alloc_zero(all->num_segments, sizeof *meta->segment);
    meta->field = copied(all->field, 1, sizeof *meta->field);
    meta->antenna = copied(all->antenna, all->num_antennas, sizeof *meta->antenna);
    state->window = tess_alloc(all->num_segments, sizeof *state->window);
    meta->num_segments = 0;
    if (!meta->segment || !meta->field || !meta->antenna || !state->window)
        TESS_FAIL(TESS_ERR_ALLOC, "description of a set");
    state->set = &listed->set;
    state->chan_first = select->chan_first;
    meta->num_rows_total = 0;
    for (int k = 0; k < all->num_segments; ++k) {
        if (!is_selected(select, k)) continue;
        const int to = meta->num_segments++;
        TESS_TRY(copy_segment(&all->segment[k], select, &meta->segment[to]));
        state->window[to] = k;
        if (to == 0 || all->segment[k].num_chan < meta->min_spw_chan)
            meta->min_spw_chan = all->segment[k].num_chan;
        meta->num_rows_total += all->segment[k].num_rows;
    }
    if (meta->num_segments == 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "none of the windows of --spw is there: the set has %d",
                  all->num_segments);
    meta->field->num_rows = meta->num_rows_total;
    snprintf(meta->path, sizeof meta->path, "%s", path);
    snprintf(meta->format, sizeof meta->format, "memory");
cleanup:
    return status;
}

static tess_status read_rows(tess_vis_reader *reader, int segment, int64_t row_first,
                             int64_t num_rows, int num_threads, tess_vis_block *block)
{
    tess_status status = TESS_OK;
    const caller_state *state = reader->state;
    const tess_vis_caller_rows rows = {.window = state->window[segment],
                                       .row_first = row_first,
                                       .num_rows = num_rows,
                                       .chan_first = state->chan_first,
                                       .num_chan =
                                           reader->meta.segment[segment].num_chan,
                                       .to = block};
    (void)num_threads;
    if (!state->set->read(state->set->context, &rows))
        TESS_FAIL(TESS_ERR_INPUT,
                  "the caller's visibilities cannot be read: rows %lld "
                  "to %lld of window %d",
                  (long long)row_first, (long long)(row_first + num_rows) - 1,
                  rows.window);
    const int64_t count = num_rows * block->num_chan * block->num_corr;
    for (int64_t k = 0; k < count; ++k)
        if (!(block->weight[k] > 0) && !(block->weight[k] != block->weight[k]))
            block->weight[k] = TESS_WEIGHT_FLAGGED;
cleanup:
    return status;
}

static void close_set(tess_vis_reader *reader)
{
    caller_state *state = reader->state;
    if (state) tess_free(state->window);
    tess_free(state);
}

static tess_status create(tess_comm *comm, const char *path, const tess_vis_meta *meta,
                          tess_vis_reader *like, const char *column, bool overwrite,
                          tess_vis_writer *writer)
{
    tess_status status = TESS_OK;
    (void)comm, (void)meta, (void)like, (void)column, (void)overwrite, (void)writer;
    TESS_FAIL(TESS_ERR_USAGE, "%s: visibilities in memory are read, and not written",
              path);
cleanup:
    return status;
}

const tess_vis_format tess_vis_format_caller = {.name = "visibilities in memory",
                                                .sign = "a name memory:N",
                                                .suffix = ".memory",
                                                .recognise = recognise,
                                                .open = open_set,
                                                .read = read_rows,
                                                .close = close_set,
                                                .create = create};
