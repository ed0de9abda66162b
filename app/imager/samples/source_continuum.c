/* Subtracts a model and the continuum from rows when they are read. Rows are read with
 * all channels of their spectral windows, whichever of these are selected, because the
 * fit needs them; the selected ones are kept. */
#define _GNU_SOURCE
#include "source_private.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tess_channels.h"
#include "tess_input.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"

bool source_subtracts(const tess_source *source)
{
    const tess_selection *s = &source->selection;
    return (s->continuum.subtracts || s->wanted.less_model) &&
           !s->wanted.positions_only && !s->wanted.uvw_only;
}

/* ---- readers of whole rows ---- */

tess_status source_open_whole(tess_source *source, const char *path,
                              const tess_vis_select *select)
{
    tess_status status = TESS_OK;
    tess_vis_select all = *select;
    const int k = source->num_obs - 1;
    if (!source_subtracts(source)) return TESS_OK;
    if (tess_grow((void **)&source->whole.reader, &source->whole.capacity, k + 1,
                  sizeof *source->whole.reader))
        TESS_FAIL(TESS_ERR_ALLOC, "list of observations");
    source->whole.reader[k] = NULL;
    source->whole.num = k + 1;
    if (select->chan_first == 0 && select->chan_end == 0 && !select->by.spw)
        return TESS_OK;
    all.chan_first = all.chan_end = 0;
    all.all_channels = true;
    TESS_TRY(tess_vis_open(path, &all, &source->whole.reader[k]));
cleanup:
    return status;
}

static tess_vis_reader *whole_reader(const tess_source *source, int obs)
{
    tess_vis_reader *whole = source->whole.num > obs ? source->whole.reader[obs] : NULL;
    return whole ? whole : source->reader[obs];
}

void source_rest_reader(const tess_source *source, int obs)
{
    tess_vis_rest(source->reader[obs]);
    if (whole_reader(source, obs) != source->reader[obs])
        tess_vis_rest(whole_reader(source, obs));
}

static const tess_vis_segment *segments_of(tess_vis_reader *reader, int *num)
{
    const tess_vis_meta *meta = tess_vis_reader_meta(reader);
    *num = meta->num_segments;
    return meta->segment;
}

/* ---- which channels of whole rows a part has ---- */

static bool has_window(const tess_vis_segment *segment, int32_t window)
{
    for (int64_t c = 0; c < segment->num_chan; ++c)
        if (segment->chan_spw[c] == window) return true;
    return false;
}

/* Whether two segments are of the same rows. */
static bool same_rows(const tess_vis_segment *whole, const tess_vis_segment *some)
{
    return whole->num_rows == some->num_rows && whole->num_corr == some->num_corr &&
           memcmp(whole->corr, some->corr,
                  (size_t)some->num_corr * sizeof *some->corr) == 0 &&
           has_window(whole, some->chan_spw[0]);
}

/* The place in whole rows of channel `number` of a window. */
static int64_t place_of(const tess_vis_segment *whole, int32_t window, int64_t number)
{
    int64_t first = 0;
    while (first < whole->num_chan - 1 && whole->chan_spw[first] != window)
        ++first;
    return first + number;
}

/* Finds the whole segment of a part, not before segment `*next`, because selections
 * leave segments out and keep their order. Local. */
static tess_status find_whole(const tess_source *source, part *p, int *next)
{
    tess_status status = TESS_OK;
    int num_whole, num;
    const tess_vis_segment *whole =
        segments_of(whole_reader(source, p->obs), &num_whole);
    const tess_vis_segment *segment =
        &segments_of(source->reader[p->obs], &num)[p->segment];
    const bool is_whole = whole_reader(source, p->obs) == source->reader[p->obs];
    int k = is_whole ? p->segment : *next;
    while (k < num_whole && !same_rows(&whole[k], segment))
        ++k;
    if (k == num_whole)
        TESS_FAIL(TESS_ERR_INTERNAL, "rows of spectral window %d without its channels",
                  segment->chan_spw[0]);
    p->lines.segment = k;
    p->lines.num_chan = whole[k].num_chan;
    *next = source->selection.by.spw ? k : k + 1; /* which may name ranges of one */
    if (is_whole) return TESS_OK;
    p->lines.chan = tess_alloc(p->num_chan, sizeof *p->lines.chan);
    if (!p->lines.chan) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    for (int64_t c = 0, number = 0; c < p->num_chan; ++c) {
        const int32_t window = segment->chan_spw[c];
        number = c > 0 && segment->chan_spw[c - 1] == window ? number + 1
                                                             : segment->chan_first;
        p->lines.chan[c] = place_of(&whole[k], window, number);
    }
cleanup:
    return status;
}

/* ---- a model that is subtracted before ---- */

/* What messages call its file, which has no name of its own. */
static const char MODEL_FILE[] = "the model that is subtracted";

static int64_t row_bytes(const tess_vis_segment *segment)
{
    return segment->num_chan * segment->num_corr * 2 * (int64_t)sizeof(float);
}

/* Where the rows of a segment begin in the file: whole rows of all readers lie there,
 * one segment behind the other. */
static int64_t model_place(const tess_source *source, int obs, int segment)
{
    int64_t at = 0;
    for (int k = 0; k <= obs && k < source->num_obs; ++k) {
        int num;
        const tess_vis_segment *own = segments_of(whole_reader(source, k), &num);
        for (int s = 0; s < (k < obs ? num : segment); ++s)
            at += own[s].num_rows * row_bytes(&own[s]);
    }
    return at;
}

int64_t tess_source_model_bytes(const tess_source *source)
{
    return model_place(source, source->num_obs, 0);
}

tess_status tess_source_model_open(tess_source *source, int fd, bool removes,
                                   const char *temp)
{
    tess_status status = TESS_OK;
    char *name = removes ? tess_strdup(temp) : NULL;
    source->whole.model = (source_model){.opened = true, .fd = fd, .remove = name};
    if (removes && !name) TESS_FAIL(TESS_ERR_ALLOC, "name of a file");
cleanup:
    return status;
}

tess_status tess_source_model_put(tess_source *source, int k,
                                  const tess_vis_block *block)
{
    int num;
    const tess_vis_segment *segment =
        &segments_of(whole_reader(source, k), &num)[block->segment];
    if (block->num_rows == 0) return TESS_OK;
    return tess_out_file_write(source->whole.model.fd, MODEL_FILE, block->vis,
                               block->num_rows * row_bytes(segment),
                               model_place(source, k, block->segment) +
                                   block->row_first * row_bytes(segment));
}

tess_status tess_source_model_end(tess_source *source)
{
    tess_status status = TESS_OK;
    source->whole.model.ended = true;
    /* ranks of other nodes see what has left this one */
    if (fdatasync(source->whole.model.fd) != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", MODEL_FILE,
                  strerror(errno));
cleanup:
    return status;
}

static void close_model(source_model *model)
{
    if (!model->opened) return;
    if (model->fd >= 0) close(model->fd);
    if (model->remove) tess_out_file_discard(model->remove);
    tess_free(model->remove);
    *model = (source_model){0};
}

/* Subtracts the model from whole rows of a part. Local. */
static tess_status subtract_model(const tess_source *source, const part *p,
                                  tess_vis_block *block)
{
    tess_status status = TESS_OK;
    const int64_t count = 2 * block->num_rows * block->num_chan * block->num_corr;
    const int64_t row = 2 * block->num_chan * block->num_corr * (int64_t)sizeof(float);
    float *model = NULL;
    if (!source->whole.model.ended) return TESS_OK;
    model = tess_alloc(count, sizeof *model);
    if (!model) TESS_FAIL(TESS_ERR_ALLOC, "rows of a model");
    TESS_TRY(tess_input_read(
        source->whole.model.fd, MODEL_FILE, model, count * (int64_t)sizeof *model,
        model_place(source, p->obs, p->lines.segment) + block->row_first * row));
    for (int64_t k = 0; k < count; ++k)
        block->vis[k] -= model[k];
cleanup:
    tess_free(model);
    return status;
}

/* ---- channels with lines ---- */

/* Marks the channels of a segment that have lines, is_line[num_chan]; spans of the list
 * with some become true in `found`. NULL: nobody asks. Local. */
static void mark_lines(const tess_vis_segment *segment, const tess_channel_list *list,
                       bool *is_line, bool *found)
{
    int64_t number = 0;
    for (int64_t c = 0; c < segment->num_chan; ++c) {
        const bool goes_on = c > 0 && segment->chan_spw[c] == segment->chan_spw[c - 1];
        number = goes_on ? number + 1 : 0;
        const tess_channel channel = {.window = segment->chan_spw[c],
                                      .number = number,
                                      .freq_hz = segment->freq_hz[c],
                                      .width_hz = segment->chan_width_hz[c]};
        const bool has_line = tess_channels_have(list, &channel, found);
        if (is_line) is_line[c] = has_line;
    }
}

/* TESS_ERR_USAGE for a window that has too few channels without lines. */
static tess_status check_fit(const tess_source *source, const part *p,
                             const tess_vis_segment *segment)
{
    tess_status status = TESS_OK;
    const continuum *fit = &p->lines.fit;
    for (int k = 0; k < fit->num_windows; ++k) {
        const int64_t first = k > 0 ? fit->end[k - 1] : 0,
                      left = continuum_num_fitted(fit, k);
        if (left > fit->order) continue;
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s: --line-channels %s leaves %lld of the %lld channels of spectral "
                  "window %d, and --uvcontsub %d needs %d to fit; name fewer channels, "
                  "or leave the window out with --spw",
                  tess_vis_reader_meta(source->reader[p->obs])->path,
                  source->selection.continuum.line_channels, (long long)left,
                  (long long)(fit->end[k] - first), segment->chan_spw[first],
                  fit->order, fit->order + 1);
    }
cleanup:
    return status;
}

/* Whether --spw leaves out all windows of a span. */
static bool is_left_out(const tess_selection *s, const tess_channel_span *lines)
{
    for (int k = 0; k < s->num_spw; ++k)
        if (s->spw[k] >= lines->window_first && s->spw[k] <= lines->window_last)
            return false;
    return s->num_spw > 0;
}

/* TESS_ERR_USAGE for channels that no observation has, whether they are imaged or not.
 */
static tess_status check_found(const tess_source *source, const tess_channel_list *list)
{
    tess_status status = TESS_OK;
    bool found[TESS_MAX_CHANNEL_SPANS] = {false};
    char text[128];
    for (int k = 0; k < source->num_obs; ++k) {
        int num;
        const tess_vis_segment *segment = segments_of(whole_reader(source, k), &num);
        for (int s = 0; s < num; ++s)
            mark_lines(&segment[s], list, NULL, found);
    }
    for (int k = 0; k < list->num; ++k) {
        if (found[k] || is_left_out(&source->selection, &list->span[k])) continue;
        tess_channel_span_text(&list->span[k], text, sizeof text);
        if (source->num_obs > 1)
            TESS_FAIL(TESS_ERR_USAGE, "--line-channels: no observation has %s", text);
        TESS_FAIL(TESS_ERR_USAGE, "--line-channels: %s has no %s",
                  tess_vis_reader_meta(source->reader[0])->path, text);
    }
cleanup:
    return status;
}

static void tell(const tess_source *source)
{
    int64_t channels = 0, fitted = 0;
    for (int k = 0; k < source->num_parts; ++k) {
        const continuum *fit = &source->parts[k].lines.fit;
        channels += fit->num_chan;
        for (int w = 0; w < fit->num_windows; ++w)
            fitted += continuum_num_fitted(fit, w);
    }
    tess_log_info("continuum: polynomials of order %d, fitted to %lld of %lld channels "
                  "of the fields and windows, are subtracted",
                  source->selection.continuum.order, (long long)fitted,
                  (long long)channels);
}

/* Finds the channels that the continuum of each part is fitted to. Local. */
static tess_status find_fits(tess_source *source)
{
    tess_status status = TESS_OK;
    tess_channel_list *list = NULL;
    int num;
    list = tess_alloc(1, sizeof *list);
    if (!list) TESS_FAIL(TESS_ERR_ALLOC, "list of channels");
    TESS_TRY(tess_parse_channels(source->selection.continuum.line_channels, list));
    TESS_TRY(check_found(source, list));
    for (int k = 0; k < source->num_parts; ++k) {
        part *p = &source->parts[k];
        const tess_vis_segment *segment =
            &segments_of(whole_reader(source, p->obs), &num)[p->lines.segment];
        TESS_TRY(continuum_create(segment, source->selection.continuum.order,
                                  &p->lines.fit));
        mark_lines(segment, list, p->lines.fit.is_line, NULL);
    }
    for (int k = 0; k < source->num_parts; ++k) {
        const part *p = &source->parts[k];
        TESS_TRY(check_fit(
            source, p,
            &segments_of(whole_reader(source, p->obs), &num)[p->lines.segment]));
    }
    if (tess_comm_rank(source->comm) == 0) tell(source);
cleanup:
    tess_free(list);
    return status;
}

tess_status source_find_lines(tess_source *source)
{
    tess_status status = TESS_OK;
    int next = 0;
    if (!source_subtracts(source)) return TESS_OK;
    for (int k = 0; k < source->num_parts; ++k) {
        part *p = &source->parts[k];
        if (p->segment == 0) next = 0;
        TESS_TRY(find_whole(source, p, &next));
    }
    if (source->selection.continuum.subtracts) TESS_TRY(find_fits(source));
cleanup:
    return status;
}

void source_free_lines(tess_source *source)
{
    close_model(&source->whole.model);
    for (int k = 0; k < source->whole.num; ++k)
        tess_vis_close(source->whole.reader[k]);
    tess_free(source->whole.reader);
    for (int k = 0; source->parts && k < source->num_parts; ++k) {
        continuum_free(&source->parts[k].lines.fit);
        tess_free(source->parts[k].lines.chan);
    }
}

/* ---- rows ---- */

/* Moves the channels of the part together. They are in the order of whole rows, so that
 * no value is overwritten before it has moved. */
static void keep_selected(const part *p, tess_vis_block *block)
{
    const int64_t whole = block->num_chan, corrs = block->num_corr;
    block->segment = p->segment;
    if (!p->lines.chan) return;
    for (int64_t row = 0; row < block->num_rows; ++row)
        for (int64_t c = 0; c < p->num_chan; ++c) {
            const int64_t to = (row * p->num_chan + c) * corrs;
            const int64_t from = (row * whole + p->lines.chan[c]) * corrs;
            memmove(block->vis + 2 * to, block->vis + 2 * from,
                    (size_t)(2 * corrs) * sizeof *block->vis);
            memmove(block->weight + to, block->weight + from,
                    (size_t)corrs * sizeof *block->weight);
        }
    block->num_chan = p->num_chan;
}

int64_t source_read_chan(const part *p)
{
    return p->lines.num_chan > 0 ? p->lines.num_chan : p->num_chan;
}

tess_status source_read_rows(const tess_source *source, span *s, tess_vis_block *block)
{
    tess_status status = TESS_OK;
    const part *p = &source->parts[s->part];
    if (!source_subtracts(source))
        return tess_vis_read(source->reader[p->obs], p->segment, s->row_first,
                             s->num_rows, source->threads, block);
    TESS_TRY(tess_vis_read(whole_reader(source, p->obs), p->lines.segment, s->row_first,
                           s->num_rows, source->threads, block));
    TESS_TRY(subtract_model(source, p, block));
    if (source->selection.continuum.subtracts)
        TESS_TRY(
            continuum_subtract(&p->lines.fit, source->threads, block, &s->num_unfit));
    keep_selected(p, block);
cleanup:
    return status;
}

int64_t tess_source_num_unfit(const tess_source *source)
{
    int64_t count = 0;
    for (int64_t k = 0; k < source->num_spans; ++k)
        count += source->spans[k].num_unfit;
    return count;
}
