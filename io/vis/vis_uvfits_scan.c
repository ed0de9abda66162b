/* Finds what the groups' parameters say about the whole file, and chooses from it. */
#define _GNU_SOURCE
#include "vis_uvfits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tess_const.h"
#include "tess_input.h"
#include "tess_mem.h"
#include "tess_words.h"
#include "vis_pick.h"

enum {
    MAX_LEADING = 65536, /* first groups, for the integration time */
    NUM_SPREAD = 2048,   /* groups over the whole of a large file, for its time range */
    BLOCK_BYTES = 4 << 20,
    PAGE_BYTES = 16384 /* longer groups: read their parameters alone */
};

/* A file of up to this size is looked through as a whole [bytes]. */
#define SMALL_FILE_BYTES ((int64_t)256 << 20)

/* Rows of one field in one frequency set-up. */
typedef struct row_span {
    int64_t num_rows;
    double time_min_s, time_max_s, uvw_min_m, uvw_max_m;
} row_span;

typedef struct group_scan {
    uvfits_state *state;
    tess_vis_meta *meta;
    bool by_source, by_setup; /* rows differ in field, in frequency set-up */
    vis_pick *pick;           /* rows that are chosen; NULL: all */
    int last_field;
    int64_t num_spans, span_capacity;
    row_span *spans; /* [field][setup] */
    int32_t *key;    /* [group] index into spans; NULL when all are alike */
    int64_t num_times, num_integrations;
    double *time_s, *integration_s; /* [MAX_LEADING] of the first groups */
    double previous_s;
    bool sorted;
} group_scan;

/* ---- one group ---- */

static tess_status find_field(group_scan *scan, const unsigned char *group,
                              int *field_out)
{
    tess_status status = TESS_OK;
    tess_vis_meta *meta = scan->meta;
    const uvfits_layout *layout = &scan->state->layout;
    const double value = uvfits_param_value(layout, &layout->param.source, group);
    if (!(fabs(value) < 1e9))
        TESS_FAIL(TESS_ERR_INPUT, "%s: a group has SOURCE = %g", meta->path, value);
    const int id = (int)lround(value);
    int field = scan->last_field;
    if (field >= meta->num_fields || meta->field[field].id != id)
        for (field = 0; field < meta->num_fields; ++field)
            if (meta->field[field].id == id) break;
    if (field == meta->num_fields) {
        char name[64];
        snprintf(name, sizeof name, "SOURCE %d", id);
        const double place_rad[2] = {meta->ra_rad, meta->dec_rad};
        TESS_TRY(uvfits_add_field(scan->state, meta, name, id, place_rad,
                                  &scan->state->frame));
    }
    scan->last_field = field;
    *field_out = field;
cleanup:
    return status;
}

static tess_status find_setup(const group_scan *scan, const unsigned char *group,
                              int *setup)
{
    tess_status status = TESS_OK;
    const uvfits_state *state = scan->state;
    const double value =
        uvfits_param_value(&state->layout, &state->layout.param.freqsel, group);
    for (int k = 0; k < state->num_setups; ++k)
        if (fabs(value - state->setup[k].id) < 0.5) {
            *setup = k;
            goto cleanup;
        }
    TESS_FAIL(TESS_ERR_INPUT, "%s: a group has FREQSEL = %g, which its FQ table lacks",
              state->path, value);
cleanup:
    return status;
}

static tess_status count_in_span(group_scan *scan, int64_t key, double time_s,
                                 double length_m)
{
    tess_status status = TESS_OK;
    void *spans = scan->spans;
    if (tess_grow(&spans, &scan->span_capacity, key + 1, sizeof *scan->spans) != 0)
        TESS_FAIL(TESS_ERR_ALLOC, "not enough memory to look through %s",
                  scan->state->path);
    scan->spans = spans;
    for (; scan->num_spans <= key; ++scan->num_spans)
        scan->spans[scan->num_spans] = (row_span){0, INFINITY, -INFINITY, INFINITY, 0};
    row_span *span = &scan->spans[key];
    ++span->num_rows;
    if (time_s < span->time_min_s) span->time_min_s = time_s;
    if (time_s > span->time_max_s && isfinite(time_s)) span->time_max_s = time_s;
    if (length_m > 0 && length_m < span->uvw_min_m) span->uvw_min_m = length_m;
    if (length_m > span->uvw_max_m && length_m <= TESS_LONGEST_BASELINE_M)
        span->uvw_max_m = length_m;
cleanup:
    return status;
}

/* An antenna that no AN table knows gets a name and no position. */
static tess_status know_antenna(group_scan *scan, int64_t subarray, int64_t number)
{
    tess_status status = TESS_OK;
    uvfits_state *state = scan->state;
    if (uvfits_antenna_index(state, subarray, number) >= 0) goto cleanup;
    if (subarray < 1 || subarray > state->num_subarrays) subarray = 1;
    tess_vis_antenna antenna = {0};
    snprintf(antenna.name, sizeof antenna.name, "ANT%lld", (long long)number);
    TESS_TRY(
        uvfits_add_antenna(state, scan->meta, (int)subarray - 1, number, &antenna));
cleanup:
    return status;
}

static double baseline_length_m(const uvfits_layout *layout, const unsigned char *group)
{
    const double u = uvfits_param_value(layout, &layout->param.uu, group);
    const double v = uvfits_param_value(layout, &layout->param.vv, group);
    const double w = uvfits_param_value(layout, &layout->param.ww, group);
    return TESS_SPEED_OF_LIGHT_M_S * sqrt(u * u + v * v + w * w);
}

static tess_status look_at_group(group_scan *scan, int64_t number,
                                 const unsigned char *group)
{
    tess_status status = TESS_OK;
    const uvfits_state *state = scan->state;
    const uvfits_layout *layout = &state->layout;
    int field = 0, setup = 0;
    int64_t antenna1, antenna2, subarray;
    if (scan->by_source) TESS_TRY(find_field(scan, group, &field));
    if (scan->by_setup) TESS_TRY(find_setup(scan, group, &setup));
    uvfits_group_antennas(layout, group, &antenna1, &antenna2, &subarray);
    TESS_TRY(know_antenna(scan, subarray, antenna1));
    TESS_TRY(know_antenna(scan, subarray, antenna2));
    const double time_s = uvfits_group_time(state, group);
    if (time_s < scan->previous_s) scan->sorted = false;
    scan->previous_s = time_s;
    if (scan->pick &&
        !vis_pick_has(scan->pick, uvfits_antenna_index(state, subarray, antenna1),
                      uvfits_antenna_index(state, subarray, antenna2), time_s)) {
        scan->key[number] = -1;
        goto cleanup;
    }
    const int64_t key = (int64_t)field * state->num_setups + setup;
    TESS_TRY(
        count_in_span(scan, key, time_s,
                      antenna1 == antenna2 ? 0 : baseline_length_m(layout, group)));
    if (scan->key) scan->key[number] = (int32_t)key;
    if (number < MAX_LEADING) {
        const double integration_s =
            uvfits_param_value(layout, &layout->param.inttim, group);
        if (isfinite(time_s)) scan->time_s[scan->num_times++] = time_s;
        if (integration_s > 0 && integration_s < 1e5)
            scan->integration_s[scan->num_integrations++] = integration_s;
    }
cleanup:
    return status;
}

/* ---- all of them, or some ---- */

static tess_status look_at_range(group_scan *scan, int64_t first, int64_t end,
                                 int64_t stride)
{
    tess_status status = TESS_OK;
    const uvfits_layout *layout = &scan->state->layout;
    const int64_t bytes = layout->group_bytes;
    const bool apart = stride > 1 || bytes > PAGE_BYTES;
    const int64_t at_once = apart ? 1 : BLOCK_BYTES / bytes;
    const int64_t used = apart ? layout->num_params * layout->value_bytes : bytes;
    unsigned char *buffer = tess_alloc(at_once, (size_t)used);
    if (!buffer)
        TESS_FAIL(TESS_ERR_ALLOC, "not enough memory to look through %s",
                  scan->state->path);
    for (int64_t number = first; number < end; number += at_once * stride) {
        const int64_t count = number + at_once <= end ? at_once : end - number;
        TESS_TRY(tess_input_read(scan->state->fd, scan->state->path, buffer,
                                 count * used, layout->data_offset + number * bytes));
        for (int64_t k = 0; k < (apart ? 1 : count); ++k)
            TESS_TRY(look_at_group(scan, number + k, buffer + k * used));
    }
cleanup:
    tess_free(buffer);
    return status;
}

static void forget(group_scan *scan)
{
    scan->num_spans = scan->num_times = scan->num_integrations = 0;
    scan->previous_s = -INFINITY;
    scan->sorted = true;
}

/* Large files of one field in time order are only sampled. Returns in `*complete`
 * whether every group was seen. */
static tess_status look_at_groups(group_scan *scan, bool *complete)
{
    tess_status status = TESS_OK;
    const uvfits_layout *layout = &scan->state->layout;
    const int64_t num_groups = layout->num_groups;
    const bool alike = !scan->by_source && !scan->by_setup && !scan->pick;
    /* without INTTIM several integrations must be seen */
    const int64_t leading =
        layout->param.inttim.num_terms > 0 ? NUM_SPREAD : MAX_LEADING;
    forget(scan);
    *complete = false;
    if (alike && scan->state->num_subarrays > 0 && num_groups > 2 * MAX_LEADING &&
        layout->group_bytes * num_groups > SMALL_FILE_BYTES) {
        TESS_TRY(look_at_range(scan, 0, leading, 1));
        TESS_TRY(look_at_range(scan, leading, num_groups, num_groups / NUM_SPREAD));
        TESS_TRY(look_at_range(scan, num_groups - 1, num_groups, 1));
        if (scan->sorted) goto cleanup;
        forget(scan);
    }
    TESS_TRY(look_at_range(scan, 0, num_groups, 1));
    *complete = true;
cleanup:
    return status;
}

/* ---- what comes of it ---- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int64_t count)
{
    if (count == 0) return 0;
    qsort(values, (size_t)count, sizeof *values, compare_doubles);
    return values[count / 2];
}

/* Returns the median of INTTIM, or else the median step between the times that occur.
 */
static double find_integration(group_scan *scan)
{
    if (scan->num_integrations > 0)
        return median(scan->integration_s, scan->num_integrations);
    int64_t num_steps = 0;
    qsort(scan->time_s, (size_t)scan->num_times, sizeof(double), compare_doubles);
    for (int64_t k = 1; k < scan->num_times; ++k) {
        const double step_s = scan->time_s[k] - scan->time_s[k - 1];
        if (step_s > 1e-3) scan->integration_s[num_steps++] = step_s;
    }
    return median(scan->integration_s, num_steps);
}

/* Lists the fields that have rows: "3C84 (1), 3C48 (2)". */
static void list_fields(const tess_vis_meta *meta, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; k < meta->num_fields && used + 40 < bytes; ++k)
        if (meta->field[k].num_rows > 0)
            used += (size_t)snprintf(text + used, bytes - used, "%s%.20s (%d)",
                                     used ? ", " : "", meta->field[k].name,
                                     meta->field[k].id);
}

/* Chooses the field with rows that is asked for by its name, or else by its number,
 * which "#" may precede. */
static tess_status choose_field(const tess_vis_select *select, tess_vis_meta *meta)
{
    tess_status status = TESS_OK;
    char choices[600];
    int found = -1, num_used = 0;
    list_fields(meta, choices, sizeof choices);
    if (!choices[0])
        TESS_FAIL(TESS_ERR_USAGE, "%s: no rows are left by %s", meta->path,
                  !select->by.time      ? "--antenna"
                  : !select->by.antenna ? "--timerange"
                                        : "--antenna and --timerange");
    if (select->field) {
        char *end = NULL;
        const char *number = select->field + (select->field[0] == '#');
        const long id = strtol(number, &end, 10);
        const bool is_number = end != number && *end == '\0';
        for (int k = 0; k < meta->num_fields && found < 0; ++k)
            if (strcasecmp(meta->field[k].name, select->field) == 0) found = k;
        for (int k = 0; k < meta->num_fields && found < 0; ++k)
            if (is_number && meta->field[k].id == id) found = k;
        if (found < 0 || meta->field[found].num_rows == 0)
            TESS_FAIL(TESS_ERR_USAGE, "%s: has no field %s; it has %s", meta->path,
                      select->field, choices);
    } else {
        for (int k = meta->num_fields - 1; k >= 0; --k)
            if (meta->field[k].num_rows > 0) {
                found = k;
                ++num_used;
            }
        if (num_used > 1 && !select->any_field)
            TESS_FAIL(
                TESS_ERR_USAGE,
                "%s: has %d fields; choose one with --field, or all with --mosaic, or "
                "without beams with --center: %s",
                meta->path, num_used, choices);
    }
    const tess_vis_field *field = &meta->field[found];
    meta->field_selected = found;
    meta->ra_rad = field->ra_rad;
    meta->dec_rad = field->dec_rad;
    if (field->name[0]) memcpy(meta->object, field->name, sizeof meta->object);
cleanup:
    return status;
}

static bool is_selected(const tess_vis_select *select, int spw)
{
    for (int k = 0; k < select->num_spw; ++k)
        if (select->spw[k] == spw) return true;
    return !select->spw || select->num_spw == 0;
}

static tess_status check_channels(const uvfits_state *state,
                                  const tess_vis_select *select, int64_t *first,
                                  int64_t *end)
{
    tess_status status = TESS_OK;
    const int64_t num_chan = state->layout.freq.length;
    const int64_t num_spw = state->num_setups * state->layout.chan_if.length;
    char range[48];
    *first = select->chan_first;
    *end = select->chan_end > 0 && select->chan_end < num_chan ? select->chan_end
                                                               : num_chan;
    if (*first < 0 || *first >= *end) {
        tess_words_range(*first, select->chan_end, range, sizeof range);
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s: --channels %s do not exist; its spectral windows have %lld "
                  "channel%s",
                  state->path, range, (long long)num_chan, num_chan == 1 ? "" : "s");
    }
    for (int k = 0; select->spw && k < select->num_spw; ++k)
        if (select->spw[k] < 0 || select->spw[k] >= num_spw)
            TESS_FAIL(TESS_ERR_USAGE,
                      "%s: has no spectral window (IF) %d; it has 0 to %lld",
                      state->path, select->spw[k], (long long)num_spw - 1);
cleanup:
    return status;
}

static tess_status fill_correlations(const uvfits_state *state,
                                     tess_vis_segment *segment)
{
    tess_status status = TESS_OK;
    const uvfits_axis *stokes = &state->layout.stokes;
    segment->num_corr = (int)stokes->length;
    if (!stokes->present) segment->corr[0] = 1;
    for (int k = 0; stokes->present && k < segment->num_corr; ++k) {
        const double code = stokes->crval + (k + 1 - stokes->crpix) * stokes->cdelt;
        const bool is_code = fabs(code) < 100 && fabs(code - round(code)) < 1e-3;
        segment->corr[k] = is_code ? (tess_corr)lround(code) : 0;
        if (strcmp(tess_corr_name(segment->corr[k]), "?") == 0)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: value %d of its STOKES axis is %g, which is neither I,Q,U,V "
                      "(1..4) nor a correlation (-1..-8)",
                      state->path, k + 1, code);
    }
cleanup:
    return status;
}

/* Allocates a segment and its rows, which own the memory also after a failure.
 * TESS_ERR_ALLOC. */
static tess_status make_channels(const uvfits_state *state, int64_t most,
                                 tess_vis_segment *segment, uvfits_rows *rows)
{
    tess_status status = TESS_OK;
    segment->freq_hz = tess_alloc(most, sizeof(double));
    segment->chan_width_hz = tess_alloc(most, sizeof(double));
    segment->chan_spw = tess_alloc(most, sizeof(int32_t));
    rows->chan_offset = tess_alloc(most, sizeof(int64_t));
    if (!segment->freq_hz || !segment->chan_width_hz || !segment->chan_spw ||
        !rows->chan_offset)
        TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for the channels of %s",
                  state->path);
cleanup:
    return status;
}

/* Appends channels [first, end) of an IF to the segment. */
static tess_status fill_if(const uvfits_state *state, int setup_number, int64_t k,
                           int64_t first, int64_t end, tess_vis_segment *segment,
                           uvfits_rows *rows)
{
    tess_status status = TESS_OK;
    const uvfits_layout *layout = &state->layout;
    const uvfits_setup *setup = &state->setup[setup_number];
    const double step_hz = setup->step_hz[k], width_hz = fabs(step_hz);
    if (layout->freq.length > 1 && !(width_hz > 0 && isfinite(width_hz)))
        TESS_FAIL(TESS_ERR_INPUT, "%s: its channels are %g Hz wide", state->path,
                  step_hz);
    for (int64_t chan = first; chan < end; ++chan) {
        const int64_t at = segment->num_chan++;
        const double freq_hz = layout->freq.crval +
                               ((double)(chan + 1) - layout->freq.crpix) * step_hz +
                               setup->if_freq_hz[k];
        if (!(freq_hz > 0 && isfinite(freq_hz)))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: channel %lld of IF %lld has the frequency %g Hz",
                      state->path, (long long)chan, (long long)k, freq_hz);
        segment->freq_hz[at] = freq_hz;
        /* one channel of no width: any positive width will do */
        segment->chan_width_hz[at] = width_hz > 0 && isfinite(width_hz) ? width_hz : 1;
        segment->chan_spw[at] = (int)(setup_number * layout->chan_if.length + k);
        rows->chan_offset[at] = layout->num_params + k * layout->chan_if.stride +
                                chan * layout->freq.stride;
    }
cleanup:
    return status;
}

static tess_status fill_channels(const uvfits_state *state,
                                 const tess_vis_select *select, int setup_number,
                                 tess_vis_segment *segment, uvfits_rows *rows)
{
    tess_status status = TESS_OK;
    const int64_t num_if = state->layout.chan_if.length;
    int64_t first, end;
    TESS_TRY(check_channels(state, select, &first, &end));
    segment->chan_first = first;
    TESS_TRY(make_channels(state, num_if * (end - first), segment, rows));
    for (int64_t k = 0; k < num_if; ++k)
        if (is_selected(select, (int)(setup_number * num_if + k)))
            TESS_TRY(fill_if(state, setup_number, k, first, end, segment, rows));
cleanup:
    return status;
}

/* Finds runs of triplets for the fast path, if it applies. */
static tess_status find_runs(const uvfits_state *state, const tess_vis_segment *segment,
                             uvfits_rows *rows)
{
    tess_status status = TESS_OK;
    const uvfits_layout *layout = &state->layout;
    const int num_corr = segment->num_corr;
    if (layout->bitpix != -32 || layout->bscale != 1 || layout->bzero != 0 ||
        layout->complex.length != 3 || layout->complex.stride != 1 ||
        (num_corr > 1 && layout->stokes.stride != 3))
        goto cleanup;
    rows->run = tess_alloc(segment->num_chan, sizeof *rows->run);
    if (!rows->run) TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for channels");
    for (int64_t chan = 0; chan < segment->num_chan; ++chan) {
        const int64_t offset = rows->chan_offset[chan];
        uvfits_run *last = &rows->run[rows->num_runs - (rows->num_runs > 0)];
        if (rows->num_runs > 0 && last->offset + 3 * last->count == offset)
            last->count += num_corr;
        else
            rows->run[rows->num_runs++] = (uvfits_run){
                .offset = offset, .first = chan * num_corr, .count = num_corr};
    }
cleanup:
    return status;
}

static tess_status list_rows(const group_scan *scan, int64_t key, int64_t num_rows,
                             uvfits_rows *rows)
{
    tess_status status = TESS_OK;
    if (num_rows == scan->state->layout.num_groups) goto cleanup;
    rows->group = tess_alloc(num_rows, sizeof *rows->group);
    if (!rows->group)
        TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for the rows of %s",
                  scan->state->path);
    int64_t at = 0;
    for (int64_t group = 0; group < scan->state->layout.num_groups; ++group)
        if (scan->key[group] == key) rows->group[at++] = group;
cleanup:
    return status;
}

static void widen(row_span *all, const row_span *part)
{
    all->time_min_s = fmin(all->time_min_s, part->time_min_s);
    all->time_max_s = fmax(all->time_max_s, part->time_max_s);
    all->uvw_min_m = fmin(all->uvw_min_m, part->uvw_min_m);
    all->uvw_max_m = fmax(all->uvw_max_m, part->uvw_max_m);
}

/* Adds the segment of a set-up whose rows are those of span `key`, or none if no
 * channel of the set-up is selected. */
static tess_status add_segment(const group_scan *scan, const tess_vis_select *select,
                               int setup, int64_t key, bool complete)
{
    tess_status status = TESS_OK;
    uvfits_state *state = scan->state;
    tess_vis_meta *meta = scan->meta;
    tess_vis_segment *segment = &meta->segment[meta->num_segments];
    uvfits_rows *rows = &state->rows[meta->num_segments];
    state->num_segments = ++meta->num_segments; /* freed with them on failure */
    TESS_TRY(fill_channels(state, select, setup, segment, rows));
    if (segment->num_chan == 0) {
        tess_free(segment->freq_hz);
        tess_free(segment->chan_width_hz);
        tess_free(segment->chan_spw);
        tess_free(rows->chan_offset);
        *segment = (tess_vis_segment){0};
        *rows = (uvfits_rows){0};
        state->num_segments = --meta->num_segments;
        return TESS_OK;
    }
    segment->num_rows = complete ? scan->spans[key].num_rows : state->layout.num_groups;
    TESS_TRY(fill_correlations(state, segment));
    TESS_TRY(find_runs(state, segment, rows));
    TESS_TRY(list_rows(scan, key, segment->num_rows, rows));
cleanup:
    return status;
}

/* Notes the extent of the rows of all segments. Baselines are known of a whole scan. */
static void note_span(const row_span *all, bool complete, tess_vis_meta *meta)
{
    if (all->time_max_s >= all->time_min_s) {
        meta->time_start_mjd_s = all->time_min_s;
        meta->time_end_mjd_s = all->time_max_s;
    }
    if (complete && all->uvw_max_m > 0) {
        meta->min_uvw_m = all->uvw_min_m;
        meta->max_uvw_m = all->uvw_max_m;
    }
}

static tess_status build_segments(const group_scan *scan, const tess_vis_select *select,
                                  bool complete)
{
    tess_status status = TESS_OK;
    uvfits_state *state = scan->state;
    tess_vis_meta *meta = scan->meta;
    meta->min_spw_chan = state->layout.freq.length;
    row_span all = {0, INFINITY, -INFINITY, INFINITY, 0};
    meta->segment = tess_alloc_zero(state->num_setups, sizeof *meta->segment);
    state->rows = tess_alloc_zero(state->num_setups, sizeof *state->rows);
    if (!meta->segment || !state->rows)
        TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for channels");
    for (int setup = 0; setup < state->num_setups; ++setup) {
        const int64_t key = (int64_t)meta->field_selected * state->num_setups + setup;
        if (key >= scan->num_spans || scan->spans[key].num_rows == 0) continue;
        const int before = meta->num_segments;
        TESS_TRY(add_segment(scan, select, setup, key, complete));
        if (meta->num_segments > before) widen(&all, &scan->spans[key]);
    }
    if (meta->num_segments == 0)
        TESS_FAIL(TESS_ERR_USAGE, "%s: field %s has no rows in the chosen --spw",
                  state->path, meta->object);
    note_span(&all, complete, meta);
cleanup:
    return status;
}

static void count_fields(const group_scan *scan, bool complete)
{
    tess_vis_meta *meta = scan->meta;
    for (int64_t key = 0; key < scan->num_spans; ++key)
        meta->field[key / scan->state->num_setups].num_rows +=
            scan->spans[key].num_rows;
    if (!complete) meta->field[0].num_rows = scan->state->layout.num_groups;
    if (scan->by_source && !scan->state->sources_listed && meta->num_fields == 1)
        memcpy(meta->field[0].name, meta->object, sizeof meta->field[0].name);
}

/* Times without a date are of the day of the first group. */
static tess_status choose_rows(const uvfits_state *state, const tess_vis_select *select,
                               const tess_vis_meta *meta, vis_pick **pick)
{
    tess_status status = TESS_OK;
    const uvfits_layout *layout = &state->layout;
    const int64_t bytes = layout->num_params * layout->value_bytes;
    unsigned char *group = NULL;
    if (!tess_vis_expresses(&select->by)) return TESS_OK;
    group = tess_alloc(bytes, 1);
    if (!group) TESS_FAIL(TESS_ERR_ALLOC, "not enough memory to read %s", state->path);
    TESS_TRY(
        tess_input_read(state->fd, state->path, group, bytes, layout->data_offset));
    TESS_TRY(vis_pick_create(&select->by, meta, uvfits_group_time(state, group), pick));
cleanup:
    tess_free(group);
    return status;
}

tess_status uvfits_scan(uvfits_state *state, const tess_vis_select *select,
                        tess_vis_meta *meta)
{
    tess_status status = TESS_OK;
    bool complete = false;
    group_scan scan = {.state = state, .meta = meta};
    scan.by_source = state->layout.param.source.num_terms > 0 &&
                     (!state->sources_listed || meta->num_fields > 1);
    scan.by_setup = state->layout.param.freqsel.num_terms > 0 && state->num_setups > 1;
    if (scan.by_source && !state->sources_listed) meta->num_fields = 0;
    TESS_TRY(choose_rows(state, select, meta, &scan.pick));
    const bool keeps_keys = scan.by_source || scan.by_setup || scan.pick;
    scan.time_s = tess_alloc(MAX_LEADING, sizeof(double));
    scan.integration_s = tess_alloc(MAX_LEADING, sizeof(double));
    if (keeps_keys) scan.key = tess_alloc(state->layout.num_groups, sizeof *scan.key);
    if (!scan.time_s || !scan.integration_s || (keeps_keys && !scan.key))
        TESS_FAIL(TESS_ERR_ALLOC, "not enough memory to look through %s", state->path);
    TESS_TRY(look_at_groups(&scan, &complete));
    count_fields(&scan, complete);
    meta->integration_s = state->integration_s = find_integration(&scan);
    TESS_TRY(choose_field(select, meta));
    TESS_TRY(build_segments(&scan, select, complete));
cleanup:
    vis_pick_destroy(scan.pick);
    tess_free(scan.spans);
    tess_free(scan.key);
    tess_free(scan.time_s);
    tess_free(scan.integration_s);
    return status;
}
