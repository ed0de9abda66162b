/* Brings samples into the channels of an axis, block by block as they are read. Their
 * visibilities are those of the files, or interpolated between two channels; so are
 * their weights. Nothing beyond the source knows of it: uvw of a row are multiplied by
 * what its wavelengths differ by from the table's. */
#include "source_axis.h"
#include "source_private.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "doppler_track.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_samples.h"

/* What is made of rows of a block that have one time. */
typedef struct shift {
    int64_t first, num; /* stretches */
    int64_t num_vis;
} shift;

/* Where the samples of a prepared row go. */
typedef struct row_place {
    int64_t shift, row_first, vis_first;
} row_place;

struct source_regrid {
    regrid_table table;
    int num_tracks, num_parts;
    doppler_track *track; /* [num_tracks] of the readers */
    int *reader;          /* [num_parts] */
    regrid_part *part;    /* [num_parts] */
    const bool *wanted;   /* [table.num], or NULL for all; borrowed */
    int64_t ends[2];      /* entries of the table that may be wanted */
    /* of the block that is being made */
    tess_samples prepared;
    double *time; /* [capacity_times] of its rows */
    row_place *place;
    shift *shift;
    int64_t capacity_times, capacity_places, capacity_shifts, num_shifts;
    regrid_lists lists;
};

void source_regrid_rest(source_regrid *regrid)
{
    tess_samples_free(&regrid->prepared);
    tess_free(regrid->time);
    tess_free(regrid->place);
    tess_free(regrid->shift);
    regrid->time = NULL;
    regrid->place = NULL;
    regrid->shift = NULL;
    regrid->capacity_times = regrid->capacity_places = regrid->capacity_shifts = 0;
}

void source_regrid_free(source_regrid *regrid)
{
    if (!regrid) return;
    source_regrid_rest(regrid);
    for (int k = 0; regrid->track && k < regrid->num_tracks; ++k)
        doppler_track_free(&regrid->track[k]);
    for (int k = 0; regrid->part && k < regrid->num_parts; ++k)
        regrid_part_free(&regrid->part[k]);
    regrid_table_free(&regrid->table);
    regrid_lists_free(&regrid->lists);
    tess_free(regrid->track);
    tess_free(regrid->part);
    tess_free(regrid->reader);
    tess_free(regrid);
}

void source_regrid_filter(source_regrid *regrid, const bool *wanted)
{
    const int64_t num = regrid->table.num;
    regrid->wanted = wanted;
    regrid->ends[0] = 0;
    regrid->ends[1] = num;
    if (!wanted) return;
    while (regrid->ends[0] < num && !wanted[regrid->ends[0]])
        ++regrid->ends[0];
    while (regrid->ends[1] > regrid->ends[0] && !wanted[regrid->ends[1] - 1])
        --regrid->ends[1];
}

void source_regrid_most(const source_regrid *regrid, int window, int64_t *rows,
                        int64_t *vis)
{
    *rows = regrid->part[window].most_rows;
    *vis = regrid->part[window].most_vis;
}

/* ---- making it ---- */

/* The frame to which frequencies of an observation are converted: none if they are in
 * that of the axis already. */
static tess_status frame_of(const tess_vis_meta *meta, tess_spectral_frame wanted,
                            tess_spectral_frame *frame)
{
    tess_status status = TESS_OK;
    const char *name = tess_spectral_frame_name(wanted);
    *frame = wanted;
    if (!meta->line.freq_frame[0]) return TESS_OK;
    if (strncasecmp(meta->line.freq_frame, name, strlen(name)) != 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: its frequencies are in the frame %s, and only topocentric ones "
                  "can be converted to %s; give --frame as the data have it",
                  meta->path, meta->line.freq_frame, name);
    *frame = TESS_TOPO;
cleanup:
    return status;
}

static tess_status make_tracks(source_regrid *regrid, const tess_source *source)
{
    tess_status status = TESS_OK;
    regrid->track = tess_alloc_zero(source->num_obs, sizeof *regrid->track);
    if (!regrid->track) TESS_FAIL(TESS_ERR_ALLOC, "Doppler factors");
    regrid->num_tracks = source->num_obs;
    for (int k = 0; k < source->num_obs; ++k) {
        const tess_vis_meta *meta = tess_vis_reader_meta(source->reader[k]);
        tess_doppler_view view = {
            .path = meta->path, .ra_rad = meta->ra_rad, .dec_rad = meta->dec_rad};
        tess_spectral_frame frame;
        TESS_TRY(frame_of(meta, regrid->table.axis.frame, &frame));
        tess_vis_site(meta, view.site_m);
        TESS_TRY(doppler_track_create(frame, &view, meta->time_start_mjd_s,
                                      meta->time_end_mjd_s, &regrid->track[k]));
    }
cleanup:
    return status;
}

static tess_status make_parts(source_regrid *regrid, const tess_source *source)
{
    tess_status status = TESS_OK;
    int64_t most = 0;
    const int num = source->num_parts;
    regrid->part = tess_alloc_zero(num, sizeof *regrid->part);
    regrid->reader = tess_alloc(num, sizeof *regrid->reader);
    if (!regrid->part || !regrid->reader) TESS_FAIL(TESS_ERR_ALLOC, "windows");
    regrid->num_parts = num;
    for (int k = 0; k < num; ++k) {
        const part *from = &source->parts[k];
        const tess_vis_meta *meta = tess_vis_reader_meta(source->reader[from->obs]);
        regrid_part *to = &regrid->part[k];
        regrid->reader[k] = from->obs;
        *to = (regrid_part){.num_chan = from->num_chan,
                            .freq_hz = source->freq_hz + from->chan_base,
                            .width_hz = source->width_hz + from->chan_base};
        most = tess_max_i64(most, from->num_chan);
        TESS_TRY(regrid_split(to, meta->segment[from->segment].chan_spw));
    }
    regrid->lists.low = tess_alloc(most, sizeof *regrid->lists.low);
    regrid->lists.high = tess_alloc(most, sizeof *regrid->lists.high);
    if (!regrid->lists.low || !regrid->lists.high)
        TESS_FAIL(TESS_ERR_ALLOC, "channels of the axis");
cleanup:
    return status;
}

/* What the data offer to an axis: ends of their channels in its frame, and the width of
 * the first. */
static tess_status find_offer(const source_regrid *regrid, const tess_source *source,
                              double doppler, channel_offer *offer)
{
    tess_status status = TESS_OK;
    const regrid_part *first = &regrid->part[0];
    const double width_hz = first->num_chan > 1 && first->piece[0].num > 1
                                ? fabs(first->freq_hz[1] - first->freq_hz[0])
                                : first->width_hz[0];
    *offer = (channel_offer){.low_hz = INFINITY,
                             .least_hz = INFINITY,
                             .width_hz = width_hz * doppler,
                             .rest_hz = source->info.meta->line.rest_hz};
    for (int p = 0; p < regrid->num_parts; ++p) {
        const regrid_part *window = &regrid->part[p];
        const doppler_track *track = &regrid->track[regrid->reader[p]];
        double begin;
        TESS_TRY(tess_doppler_factor(
            track->frame, &track->view,
            tess_vis_reader_meta(source->reader[regrid->reader[p]])->time_start_mjd_s,
            &begin));
        for (int64_t c = 0; c < window->num_chan; ++c) {
            const double half = 0.5 * window->width_hz[c];
            const double low = window->freq_hz[c] - half,
                         high = window->freq_hz[c] + half;
            offer->low_hz = fmin(offer->low_hz, low * begin);
            offer->high_hz = fmax(offer->high_hz, high * begin);
            offer->least_hz = fmin(offer->least_hz, low * window->bounds[0]);
            offer->most_hz = fmax(offer->most_hz, high * window->bounds[1]);
        }
    }
cleanup:
    return status;
}

/* The samples are counted in the channels of the axis from now on. */
static void take_table(const source_regrid *regrid, tess_source *source)
{
    tess_source_info *info = &source->info;
    const regrid_table *table = &regrid->table;
    info->num_chan = table->num;
    info->freq_hz = table->freq_hz;
    info->width_hz = table->width_hz;
    info->inv_lambda = table->inv_lambda;
    info->axis = &table->axis;
    info->num_vis = 0;
    for (int p = 0; p < source->num_parts; ++p)
        info->num_vis += source->parts[p].num_rows * regrid->part[p].most_vis;
}

static tess_status make(const tess_axis_opts *opts, tess_source *source)
{
    tess_status status = TESS_OK;
    channel_offer offer;
    double doppler;
    source_regrid *regrid = tess_alloc_zero(1, sizeof *regrid);
    if (!regrid) TESS_FAIL(TESS_ERR_ALLOC, "channels of the axis");
    regrid->table.nearest = opts->nearest;
    regrid->table.axis.frame = opts->frame;
    TESS_TRY(make_tracks(regrid, source));
    TESS_TRY(make_parts(regrid, source));
    for (int p = 0; p < source->num_parts; ++p)
        TESS_TRY(doppler_track_bounds(&regrid->track[regrid->reader[p]],
                                      &regrid->part[p].bounds[0],
                                      &regrid->part[p].bounds[1]));
    TESS_TRY(doppler_track_at(&regrid->track[0], source->info.meta->time_start_mjd_s,
                              &doppler));
    TESS_TRY(find_offer(regrid, source, doppler, &offer));
    TESS_TRY(channel_axis_choose(opts, &offer, &regrid->table.axis));
    TESS_TRY(
        regrid_table_make(&regrid->table, regrid->part, regrid->num_parts, doppler));
    source_regrid_filter(regrid, NULL);
    /* files in the frame of the axis do not tell the array's frequencies */
    regrid->table.axis.doppler =
        regrid->track[0].frame == opts->frame ? doppler : (double)NAN;
    regrid->table.axis.of_chan = regrid->table.output;
    take_table(regrid, source);
    source->reading.regrid = regrid;
    regrid = NULL;
cleanup:
    source_regrid_free(regrid);
    return status;
}

tess_status tess_source_regrid(tess_source *source, const tess_axis_opts *opts)
{
    tess_status status = TESS_OK;
    if (!opts->given) return TESS_OK;
    status = make(opts, source);
    return tess_comm_agree(source->comm, status);
}

/* ---- blocks ---- */

/* Finds what is made of the prepared rows, and where it goes behind the samples that
 * are there. */
static tess_status place_rows(source_regrid *regrid, int window, tess_samples *samples)
{
    tess_status status = TESS_OK;
    const tess_samples *from = &regrid->prepared;
    const regrid_part *chosen = &regrid->part[window];
    doppler_track *track = &regrid->track[regrid->reader[window]];
    regrid_lists *lists = &regrid->lists;
    int64_t row_at = samples->num_rows, vis_at = samples->num_vis;
    regrid->num_shifts = lists->num_entries = lists->num_stretches = 0;
    if (tess_grow((void **)&regrid->place, &regrid->capacity_places, from->num_rows,
                  sizeof *regrid->place))
        TESS_FAIL(TESS_ERR_ALLOC, "rows of a block");
    for (int64_t row = 0; row < from->num_rows; ++row) {
        const bool same = row > 0 && !(regrid->time[row] < regrid->time[row - 1]) &&
                          !(regrid->time[row] > regrid->time[row - 1]);
        if (!same) {
            double doppler;
            const int64_t stretches = lists->num_stretches, vis = lists->num_entries;
            if (tess_grow((void **)&regrid->shift, &regrid->capacity_shifts,
                          regrid->num_shifts + 1, sizeof *regrid->shift))
                TESS_FAIL(TESS_ERR_ALLOC, "times of rows");
            TESS_TRY(doppler_track_at(track, regrid->time[row], &doppler));
            TESS_TRY(regrid_append(&regrid->table, chosen, doppler, regrid->wanted,
                                   regrid->ends, lists));
            regrid->shift[regrid->num_shifts++] = (shift){
                stretches, lists->num_stretches - stretches, lists->num_entries - vis};
        }
        const shift *now = &regrid->shift[regrid->num_shifts - 1];
        regrid->place[row] = (row_place){regrid->num_shifts - 1, row_at, vis_at};
        row_at += now->num;
        vis_at += now->num_vis;
    }
    TESS_TRY(tess_samples_reserve(samples, row_at, vis_at));
    samples->num_rows = row_at;
    samples->num_vis = vis_at;
cleanup:
    return status;
}

/* The weight of a value between two: variances are interpolated, so that it is between
 * the two weights, and 0 if one of them is. */
static inline double weight_between(double one, double other, double part_of)
{
    if (!(part_of > 0)) return one;
    return one > 0 && other > 0 ? 1 / ((1 - part_of) / one + part_of / other) : 0;
}

/* Makes sample `to` of values of a row, whose first sample is `row_first`. */
static inline void make_sample(const tess_samples *from, const regrid_entry *entry,
                               double share, int64_t row_first, tess_samples *samples,
                               int64_t to)
{
    const bool is_double = samples->is_double;
    const int pols = samples->num_pol, weights = samples->num_weight;
    const int64_t one = row_first + entry->chan, other = row_first + entry->next;
    const double part_of = (double)entry->towards_next;
    for (int w = 0; w < weights; ++w)
        tess_real_set(samples->weight, is_double, to * weights + w,
                      share *
                          weight_between(tess_samples_weight(from, one * weights + w),
                                         tess_samples_weight(from, other * weights + w),
                                         part_of));
    for (int p = 0; p < pols; ++p) {
        const double weight =
            tess_samples_weight(samples, to * weights + (weights > 1 ? p : 0));
        for (int k = 0; k < 2; ++k) {
            const double a =
                tess_real_at(from->vis, is_double, 2 * (one * pols + p) + k);
            const double b =
                tess_real_at(from->vis, is_double, 2 * (other * pols + p) + k);
            const double value = part_of > 0 ? (1 - part_of) * a + part_of * b : a;
            tess_real_set(samples->vis, is_double, 2 * (to * pols + p) + k,
                          weight > 0 ? value : 0);
        }
    }
}

static void make_row(const source_regrid *regrid, int64_t row, tess_samples *samples,
                     double *row_time)
{
    const tess_samples *from = &regrid->prepared;
    const row_place *place = &regrid->place[row];
    const shift *now = &regrid->shift[place->shift];
    int64_t vis_at = place->vis_first;
    for (int64_t k = 0; k < now->num; ++k) {
        const regrid_stretch *stretch = &regrid->lists.stretch[now->first + k];
        const int64_t at = place->row_first + k;
        for (int axis = 0; axis < 3; ++axis)
            samples->uvw_m[3 * at + axis] =
                from->uvw_m[3 * row + axis] * stretch->scale;
        samples->chan_base[at] = (int32_t)stretch->base;
        samples->num_chan[at] = (int32_t)stretch->num;
        samples->vis_first[at] = vis_at;
        if (samples->origins) samples->origin[at] = from->origin[row];
        if (row_time) row_time[at] = regrid->time[row];
        for (int64_t j = 0; j < stretch->num; ++j)
            make_sample(from, &regrid->lists.entry[stretch->first + j], stretch->share,
                        from->vis_first[row], samples, vis_at + j);
        vis_at += stretch->num;
    }
}

/* Prepares the block's rows as they are in the files, with their times. */
static tess_status prepare(source_regrid *regrid, const regrid_work *work,
                           const tess_samples *like, tess_profile *profile)
{
    tess_status status = TESS_OK;
    tess_samples *prepared = &regrid->prepared;
    prepared->is_double = like->is_double;
    prepared->num_pol = like->num_pol;
    prepared->num_weight = like->num_weight;
    prepared->origins = like->origins;
    prepared->inv_lambda = work->recipe->inv_lambda;
    prepared->num_rows = prepared->num_vis = 0;
    if (tess_grow((void **)&regrid->time, &regrid->capacity_times,
                  work->block->num_rows, sizeof *regrid->time))
        TESS_FAIL(TESS_ERR_ALLOC, "times of rows");
    TESS_TRY(tess_prepare_block(work->recipe, work->block, work->threads, prepared,
                                regrid->time, profile));
cleanup:
    return status;
}

tess_status source_regrid_block(source_regrid *regrid, const regrid_work *work,
                                tess_samples *samples, double **row_time,
                                tess_profile *profile)
{
    tess_status status = TESS_OK;
    int64_t capacity = samples->num_rows;
    TESS_TRY(prepare(regrid, work, samples, profile));
    if (regrid->prepared.num_rows == 0) return TESS_OK;
    TESS_TRY(place_rows(regrid, work->part, samples));
    if (row_time && samples->num_rows > 0 &&
        tess_grow((void **)row_time, &capacity, samples->num_rows, sizeof **row_time))
        TESS_FAIL(TESS_ERR_ALLOC, "times of rows");
    double *times = row_time ? *row_time : NULL;
#pragma omp parallel for num_threads(work->threads) schedule(static)
    for (int64_t row = 0; row < regrid->prepared.num_rows; ++row)
        make_row(regrid, row, samples, times);
cleanup:
    return status;
}
