/* Visibilities of the calling program: descriptions of sets become those of a reader,
 * and blocks of the reader are the caller's arrays. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_calls.h"
#include "tess_mem.h"
#include "tess_vis_caller.h"
#include "tessera/tess_data.h"

/* What a reader calls. */
typedef struct caller {
    bool (*read)(void *context, const tess_data_rows *rows);
    void *context;
} caller;

static bool read_rows(void *context, const tess_vis_caller_rows *rows)
{
    const caller *to = context;
    const tess_vis_block *block = rows->to;
    const tess_data_rows asked = {.window = rows->window,
                                  .row_first = rows->row_first,
                                  .num_rows = rows->num_rows,
                                  .chan_first = rows->chan_first,
                                  .num_chan = rows->num_chan,
                                  .num_corr = block->num_corr,
                                  .uvw_m = block->uvw_m,
                                  .time_mjd_s = block->time_mjd_s,
                                  .integration_s = block->integration_s,
                                  .antenna1 = block->antenna1,
                                  .antenna2 = block->antenna2,
                                  .vis = block->vis,
                                  .weight = block->weight};
    return to->read(to->context, &asked);
}

static tess_status check_window(const tess_data_window *window, int number)
{
    tess_status status = TESS_OK;
    if (window->num_rows < 0 || window->num_chan < 1 || window->num_corr < 1 ||
        window->num_corr > TESS_MAX_CORR || !window->freq_hz || !window->chan_width_hz)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "window %d has %lld rows, %lld channels and %d correlations; there may "
            "be 1 channel or more, and 1 to 4 correlations",
            number, (long long)window->num_rows, (long long)window->num_chan,
            window->num_corr);
    for (int64_t k = 0; k < window->num_chan; ++k)
        if (!(window->freq_hz[k] > 0) || !isfinite(window->freq_hz[k]) ||
            !(window->chan_width_hz[k] > 0))
            TESS_FAIL(
                TESS_ERR_USAGE,
                "channel %lld of window %d: the frequency %g Hz or its width %g Hz "
                "is not above 0",
                (long long)k, number, window->freq_hz[k], window->chan_width_hz[k]);
    for (int k = 0; k < window->num_corr; ++k)
        if (tess_corr_parse(window->corr[k]) == 0)
            TESS_FAIL(TESS_ERR_USAGE, "'%s' is no correlation, like XX, RR or I",
                      window->corr[k] ? window->corr[k] : "");
cleanup:
    return status;
}

static tess_status copy_window(const tess_data_window *window, int number,
                               tess_vis_segment *segment)
{
    tess_status status = TESS_OK;
    const int64_t chans = window->num_chan;
    TESS_TRY(check_window(window, number));
    segment->num_rows = window->num_rows;
    segment->num_chan = chans;
    segment->num_corr = window->num_corr;
    for (int k = 0; k < window->num_corr; ++k)
        segment->corr[k] = tess_corr_parse(window->corr[k]);
    segment->freq_hz = tess_alloc(chans, sizeof *segment->freq_hz);
    segment->chan_width_hz = tess_alloc(chans, sizeof *segment->chan_width_hz);
    segment->chan_spw = tess_alloc(chans, sizeof *segment->chan_spw);
    if (!segment->freq_hz || !segment->chan_width_hz || !segment->chan_spw)
        TESS_FAIL(TESS_ERR_ALLOC, "channels");
    for (int64_t k = 0; k < chans; ++k) {
        segment->freq_hz[k] = window->freq_hz[k];
        segment->chan_width_hz[k] = window->chan_width_hz[k];
        segment->chan_spw[k] = number;
    }
cleanup:
    return status;
}

static void copy_antennas(const tess_data_set *set, tess_vis_antenna *antenna)
{
    for (int k = 0; k < set->num_antennas; ++k) {
        snprintf(antenna[k].name, sizeof antenna[k].name, "%d", k);
        for (int c = 0; c < 3 && set->antenna_xyz_m; ++c)
            antenna[k].xyz_m[c] = set->antenna_xyz_m[3 * k + c];
        if (set->antenna_diameter_m) antenna[k].diameter_m = set->antenna_diameter_m[k];
    }
}

static void fill_field(const tess_data_set *set, tess_vis_field *field)
{
    snprintf(field->name, sizeof field->name, "%s", set->object ? set->object : "0");
    snprintf(field->frame, sizeof field->frame, "J2000");
    field->ra_rad = field->pointing_rad[0] = set->ra_rad;
    field->dec_rad = field->pointing_rad[1] = set->dec_rad;
}

static tess_status fill_meta(const tess_data_set *set, tess_vis_meta *meta)
{
    tess_status status = TESS_OK;
    if (set->num_windows < 1 || set->num_antennas < 1 || !set->read ||
        !isfinite(set->ra_rad) || !isfinite(set->dec_rad))
        TESS_FAIL(TESS_ERR_USAGE, "a set in memory needs a window, antennas, a phase "
                                  "centre and a function that reads");
    if (!(set->time_start_mjd_s <= set->time_end_mjd_s) ||
        !isfinite(set->time_end_mjd_s - set->time_start_mjd_s))
        TESS_FAIL(TESS_ERR_USAGE,
                  "a set in memory begins before it ends, at times that "
                  "are numbers");
    meta->segment = tess_alloc_zero(set->num_windows, sizeof *meta->segment);
    meta->field = tess_alloc_zero(1, sizeof *meta->field);
    meta->antenna = tess_alloc_zero(set->num_antennas, sizeof *meta->antenna);
    if (!meta->segment || !meta->field || !meta->antenna)
        TESS_FAIL(TESS_ERR_ALLOC, "description of a set");
    meta->num_segments = set->num_windows;
    meta->num_fields = 1;
    meta->num_antennas = set->num_antennas;
    meta->equinox = 2000;
    meta->ra_rad = set->ra_rad;
    meta->dec_rad = set->dec_rad;
    meta->time_start_mjd_s = set->time_start_mjd_s;
    meta->time_end_mjd_s = set->time_end_mjd_s;
    snprintf(meta->telescope, sizeof meta->telescope, "%s",
             set->telescope ? set->telescope : "");
    snprintf(meta->object, sizeof meta->object, "%s", set->object ? set->object : "");
    fill_field(set, meta->field);
    copy_antennas(set, meta->antenna);
    for (int k = 0; k < set->num_windows; ++k)
        TESS_TRY(copy_window(&set->window[k], k, &meta->segment[k]));
cleanup:
    return status;
}

tess_status tess_data_add(const tess_data_set *set, char name[32])
{
    tess_status status = api_call_begin();
    tess_vis_caller_set made = {.read = read_rows, .release = tess_free};
    caller *to = NULL;
    if (status != TESS_OK) return status;
    to = tess_alloc(1, sizeof *to);
    if (!to) TESS_FAIL(TESS_ERR_ALLOC, "a set of visibilities");
    *to = (caller){set->read, set->context};
    made.context = to;
    TESS_TRY(fill_meta(set, &made.meta));
    status = tess_vis_caller_add(&made, name);
    made.meta = (tess_vis_meta){0};
    TESS_TRY(status);
    to = NULL;
cleanup:
    tess_vis_meta_free(&made.meta);
    tess_free(to);
    return api_call_end(status);
}

void tess_data_remove(const char *name)
{
    tess_vis_caller_remove(name);
}
