/* Opens observations, and tells what is in them. */
#include "source_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tess_const.h"
#include "tess_geom.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Phase centres closer than this are one: the precision of single-precision positions
 * in real headers [rad] (1 milliarcsecond). */
static const double SAME_CENTER_RAD = 5e-9;

/* ---- opening ---- */

/* The source owns the reader of the set at `path` from here on, also when this fails.
 */
static tess_status keep_reader(tess_source *source, const char *path,
                               const tess_vis_select *select, tess_vis_reader *reader)
{
    tess_status status = TESS_OK;
    if (tess_grow((void **)&source->reader, &source->capacity_obs, source->num_obs + 1,
                  sizeof *source->reader)) {
        tess_vis_close(reader);
        TESS_FAIL(TESS_ERR_ALLOC, "list of observations");
    }
    source->reader[source->num_obs++] = reader;
    TESS_TRY(source_open_whole(source, path, select));
cleanup:
    return status;
}

/* Fields that are rotated to one centre: a reader for each one that has rows. */
static tess_status open_each_field(tess_source *source, const char *path,
                                   const tess_vis_select *select)
{
    tess_status status = TESS_OK;
    tess_vis_select one = *select;
    tess_vis_reader *every = NULL, *reader = NULL;
    one.any_field = true;
    TESS_TRY(tess_vis_open(path, &one, &every));
    const tess_vis_meta *meta = tess_vis_reader_meta(every);
    if (tess_vis_fields_with_rows(meta) <= 1) {
        reader = every;
        every = NULL;
        TESS_TRY(keep_reader(source, path, &one, reader));
        return TESS_OK;
    }
    for (int k = 0; k < meta->num_fields; ++k) {
        char number[16];
        if (meta->field[k].num_rows == 0) continue;
        snprintf(number, sizeof number, "%d", meta->field[k].id);
        one.field = number;
        TESS_TRY(tess_vis_open(path, &one, &reader));
        TESS_TRY(keep_reader(source, path, &one, reader));
    }
cleanup:
    tess_vis_close(every);
    return status;
}

/* Field `k` of the list, in `text`; false behind the last one. */
static bool selection_field(const tess_selection *selection, int k, char *text,
                            size_t size)
{
    const char *item = selection->field;
    for (; item && k > 0; --k) {
        item = strchr(item, ',');
        if (item) ++item;
    }
    if (item) snprintf(text, size, "%.*s", (int)strcspn(item, ","), item);
    return item != NULL;
}

static bool lists_fields(const tess_selection *s)
{
    return s->field && strchr(s->field, ',');
}

/* The fields of an expression are known once a set is open. */
static bool takes_all_fields(const tess_selection *s)
{
    if (s->field) return strcasecmp(s->field, "all") == 0;
    return s->has_center || s->joins_pointings || s->by.field;
}

/* A reader for each field of the list. */
static tess_status open_listed_fields(tess_source *source, const char *path,
                                      const tess_vis_select *select)
{
    tess_status status = TESS_OK;
    tess_vis_select one = *select;
    char field[256];
    one.field = field;
    for (int k = 0; selection_field(&source->selection, k, field, sizeof field); ++k) {
        tess_vis_reader *reader = NULL;
        TESS_TRY(tess_vis_open(path, &one, &reader));
        TESS_TRY(keep_reader(source, path, &one, reader));
    }
cleanup:
    return status;
}

/* What of the sets the selection reads. */
static tess_vis_select selected(const tess_selection *s)
{
    const bool several = lists_fields(s) || takes_all_fields(s);
    return (tess_vis_select){.data_column = s->data_column,
                             .subtract_column = s->subtract_column,
                             .field = several ? NULL : s->field,
                             .any_field = several,
                             .by = s->by,
                             .spw = s->num_spw ? s->spw : NULL,
                             .num_spw = s->num_spw,
                             .chan_first = s->wanted.whole ? 0 : s->chan_first,
                             .chan_end = s->wanted.whole ? 0 : s->chan_end,
                             .all_channels = s->wanted.whole,
                             .model_only = s->wanted.positions_only,
                             .wants_lines = s->wanted.lines,
                             .uvw_only = s->wanted.uvw_only};
}

/* One rank has the sets tried out before any opens them. */
static tess_status check_sets(const tess_selection *selection, const char *const *obs,
                              int num_obs)
{
    const tess_vis_select select = selected(selection);
    return tess_vis_check(obs, num_obs, &select);
}

/* Opens the set at `path`: with a reader, or one for each of its fields. */
static tess_status open_set(tess_source *source, const char *path)
{
    tess_status status = TESS_OK;
    const tess_selection *s = &source->selection;
    const tess_vis_select select = selected(s);
    tess_vis_reader *reader = NULL;
    if (lists_fields(s)) return open_listed_fields(source, path, &select);
    if (takes_all_fields(s)) return open_each_field(source, path, &select);
    TESS_TRY(tess_vis_open(path, &select, &reader));
    TESS_TRY(keep_reader(source, path, &select, reader));
cleanup:
    return status;
}

static tess_status open_readers(tess_source *source, const char *const *obs,
                                int num_obs)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < num_obs; ++k) {
        const int first = source->num_obs;
        TESS_TRY(open_set(source, obs[k]));
        if (tess_grow((void **)&source->origins.set, &source->origins.capacity_sets,
                      source->num_obs, sizeof *source->origins.set))
            TESS_FAIL(TESS_ERR_ALLOC, "list of observations");
        for (int j = first; j < source->num_obs; ++j)
            source->origins.set[j] = k;
    }
cleanup:
    return status;
}

static tess_status make_parts(tess_source *source)
{
    tess_status status = TESS_OK;
    int64_t channels = 0;
    for (int k = 0; k < source->num_obs; ++k) {
        const tess_vis_meta *meta = tess_vis_reader_meta(source->reader[k]);
        source->num_parts += meta->num_segments;
        for (int s = 0; s < meta->num_segments; ++s)
            channels += meta->segment[s].num_chan;
    }
    source->parts = tess_alloc_zero(source->num_parts, sizeof *source->parts);
    source->freq_hz = tess_alloc(channels, sizeof *source->freq_hz);
    source->width_hz = tess_alloc(channels, sizeof *source->width_hz);
    source->inv_lambda = tess_alloc(channels, sizeof *source->inv_lambda);
    if (!source->parts || !source->freq_hz || !source->width_hz || !source->inv_lambda)
        TESS_FAIL(TESS_ERR_ALLOC, "table of %lld channels", (long long)channels);
    int at = 0;
    for (int k = 0; k < source->num_obs; ++k) {
        const tess_vis_meta *meta = tess_vis_reader_meta(source->reader[k]);
        for (int s = 0; s < meta->num_segments; ++s) {
            const tess_vis_segment *segment = &meta->segment[s];
            source->parts[at++] = (part){.obs = k,
                                         .segment = s,
                                         .num_rows = segment->num_rows,
                                         .num_chan = segment->num_chan,
                                         .chan_base = source->info.num_chan};
            for (int64_t c = 0; c < segment->num_chan; ++c) {
                const int64_t to = source->info.num_chan++;
                source->freq_hz[to] = segment->freq_hz[c];
                source->width_hz[to] = segment->chan_width_hz[c];
                source->inv_lambda[to] = segment->freq_hz[c] / TESS_SPEED_OF_LIGHT_M_S;
            }
            source->info.num_rows += segment->num_rows;
            source->info.num_vis += segment->num_rows * segment->num_chan;
        }
    }
cleanup:
    return status;
}

/* Channels that --channels asks for and a window does not have. */
static void warn_clipped(const tess_source *source)
{
    const tess_selection *s = &source->selection;
    for (int k = 0; k < source->num_obs && s->chan_end > 0; ++k) {
        const tess_vis_meta *meta = tess_vis_reader_meta(source->reader[k]);
        const int64_t least = meta->min_spw_chan;
        if (s->chan_end <= least) continue;
        if (k > 0 &&
            strcmp(meta->path, tess_vis_reader_meta(source->reader[k - 1])->path) == 0)
            continue; /* another field of the same set */
        tess_log_warn("%s: --channels %lld:%lld goes beyond the %lld channels of a "
                      "spectral window; %s",
                      meta->path, (long long)s->chan_first, (long long)s->chan_end,
                      (long long)least,
                      s->chan_first < least ? "those that are there are taken"
                                            : "it is left out");
    }
}

static double separation(double ra0, double dec0, double ra1, double dec1)
{
    const double sd = sin(0.5 * (dec1 - dec0)), sr = sin(0.5 * (ra1 - ra0));
    return 2 * asin(fmin(1, sqrt(sd * sd + cos(dec0) * cos(dec1) * sr * sr)));
}

/* Joined, each pointing counts by its weights alone: the image of a mosaic would count
 * it by its primary beam, too. */
static void warn_of_pointings(const tess_source *source)
{
    const tess_vis_meta *first = tess_vis_reader_meta(source->reader[0]);
    int others = 0;
    for (int k = 1; k < source->num_obs; ++k) {
        const tess_vis_meta *meta = tess_vis_reader_meta(source->reader[k]);
        others += separation(first->ra_rad, first->dec_rad, meta->ra_rad,
                             meta->dec_rad) > SAME_CENTER_RAD;
    }
    if (others > 0 && tess_comm_rank(source->comm) == 0)
        tess_log_warn(
            "several pointings are joined without weights of primary beams; --mosaic "
            "joins them with these");
}

static const double *pointing_of(const tess_source *source, int reader)
{
    const tess_vis_meta *meta = tess_vis_reader_meta(source->reader[reader]);
    return meta->field[meta->field_selected].pointing_rad;
}

/* Whether an earlier reader has the same pointing. */
static bool is_known_pointing(const tess_source *source, int reader)
{
    const double *at = pointing_of(source, reader);
    for (int k = 0; k < reader; ++k) {
        const double *other = pointing_of(source, k);
        if (separation(at[0], at[1], other[0], other[1]) <= SAME_CENTER_RAD)
            return true;
    }
    return false;
}

/* Takes the mean of the pointings' directions as the centre. */
static tess_status center_pointings(tess_source *source)
{
    tess_status status = TESS_OK;
    tess_selection *selection = &source->selection;
    double sum[3] = {0};
    int count = 0;
    for (int k = 0; k < source->num_obs; ++k) {
        const double *at = pointing_of(source, k);
        if (is_known_pointing(source, k)) continue;
        ++count;
        sum[0] += cos(at[1]) * cos(at[0]);
        sum[1] += cos(at[1]) * sin(at[0]);
        sum[2] += sin(at[1]);
    }
    if (!(hypot(hypot(sum[0], sum[1]), sum[2]) > 0.1 * count))
        TESS_FAIL(TESS_ERR_INPUT, "the pointings are all over the sky; choose the "
                                  "image's centre with --center RA,DEC");
    selection->center_ra_rad = atan2(sum[1], sum[0]);
    if (selection->center_ra_rad < 0) selection->center_ra_rad += TESS_TWO_PI;
    selection->center_dec_rad = atan2(sum[2], hypot(sum[0], sum[1]));
    selection->has_center = true;
cleanup:
    return status;
}

static tess_status find_center(tess_source *source)
{
    tess_status status = TESS_OK;
    const tess_vis_meta *first = tess_vis_reader_meta(source->reader[0]);
    tess_source_info *info = &source->info;
    if (source->selection.joins_pointings && !source->selection.has_center)
        TESS_TRY(center_pointings(source));
    info->ra_rad = first->ra_rad;
    info->dec_rad = first->dec_rad;
    if (source->selection.has_center) {
        info->ra_rad = source->selection.center_ra_rad;
        info->dec_rad = source->selection.center_dec_rad;
    }
    for (int k = 0; k < source->num_obs && !source->selection.has_center; ++k) {
        const tess_vis_meta *meta = tess_vis_reader_meta(source->reader[k]);
        const double apart =
            separation(info->ra_rad, info->dec_rad, meta->ra_rad, meta->dec_rad);
        if (apart > SAME_CENTER_RAD)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: its phase centre lies %.6g deg from that of %s; choose the "
                      "images' centre with --center RA,DEC",
                      meta->path, apart / TESS_RAD_PER_DEG, first->path);
    }
    if (!source->selection.joins_pointings) warn_of_pointings(source);
cleanup:
    return status;
}

static tess_status find_turn(tess_source *source)
{
    tess_status status = TESS_OK;
    const tess_shift *shift = &source->selection.shift;
    tess_source_info *info = &source->info;
    if (shift->given && !tess_sky_project(shift->ra_rad, shift->dec_rad, info->ra_rad,
                                          info->dec_rad, info->turn))
        TESS_FAIL(TESS_ERR_USAGE,
                  "--shift: it is 90 degrees or more from the phase centre; --center "
                  "moves that");
cleanup:
    return status;
}

/* Add a column to the list, unless it is there, or there is no room. */
static void list_column(const char *column, char *list, size_t size)
{
    const size_t length = strlen(column), used = strlen(list);
    for (const char *at = list; *at && length > 0; at += *at == ',' ? 2 : 0) {
        const size_t listed = strcspn(at, ",");
        if (listed == length && strncmp(at, column, length) == 0) return;
        at += listed;
    }
    if (length == 0 || used + 2 + length >= size) return;
    if (used > 0) memcpy(list + used, ", ", 2);
    memcpy(list + used + (used > 0 ? 2 : 0), column, length + 1);
}

static void fill_info(tess_source *source)
{
    tess_source_info *info = &source->info;
    info->meta = tess_vis_reader_meta(source->reader[0]);
    info->freq_hz = source->freq_hz;
    info->width_hz = source->width_hz;
    info->inv_lambda = source->inv_lambda;
    info->time_first = INFINITY;
    info->time_end = -INFINITY;
    for (int k = 0; k < source->num_obs; ++k) {
        const tess_vis_meta *meta = tess_vis_reader_meta(source->reader[k]);
        info->time_first = fmin(info->time_first, meta->time_start_mjd_s);
        info->time_end = fmax(info->time_end, meta->time_end_mjd_s);
        list_column(meta->data_column, info->data_column, sizeof info->data_column);
    }
    info->num_corr = info->meta->segment[0].num_corr;
    memcpy(info->corr, info->meta->segment[0].corr, sizeof info->corr);
}

tess_status tess_source_open(tess_comm *comm, const char *const *obs, int num_obs,
                             const tess_selection *selection, tess_source **source_out)
{
    tess_status status = TESS_OK;
    tess_source *source = tess_alloc_zero(1, sizeof *source);
    if (source) {
        source->comm = comm;
        source->reading.only_reader = -1;
        source->selection = *selection;
    } else
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "observations");
    if (status == TESS_OK && tess_comm_rank(comm) == 0)
        status = check_sets(selection, obs, num_obs);
    TESS_TRY(tess_comm_agree(comm, status));
    status = open_readers(source, obs, num_obs);
    if (status == TESS_OK) status = make_parts(source);
    if (status == TESS_OK) status = source_find_lines(source);
    if (status == TESS_OK) status = find_center(source);
    if (status == TESS_OK) status = find_turn(source);
    if (status == TESS_OK && source->info.num_rows == 0)
        status = tess_error_record(TESS_ERR_USAGE, __FILE__, __LINE__, __func__,
                                   "%s: no rows are selected", obs[0]);
    TESS_TRY(tess_comm_agree(comm, status));
    fill_info(source);
    if (tess_comm_rank(comm) == 0) warn_clipped(source);
    *source_out = source;
    source = NULL;
cleanup:
    tess_source_close(source);
    return status;
}

void tess_source_close(tess_source *source)
{
    if (!source) return;
    tess_worker_destroy(source->reading.worker);
    for (int k = 0; k < source->num_obs; ++k)
        tess_vis_close(source->reader[k]);
    for (int k = 0; k < 2; ++k)
        tess_vis_block_free(&source->reading.block[k]);
    source_free_lines(source);
    tess_free(source->reader);
    tess_free(source->parts);
    tess_free(source->spans);
    tess_free(source->freq_hz);
    tess_free(source->width_hz);
    tess_free(source->inv_lambda);
    tess_free(source->steps.time);
    source_origins_free(source);
    tess_free(source->origins.set);
    source_regrid_free(source->reading.regrid);
    tess_free(source);
}

const tess_source_info *tess_source_info_of(const tess_source *source)
{
    return &source->info;
}

int tess_source_num_segments(const tess_source *source)
{
    return source->num_parts;
}

const tess_vis_segment *tess_source_segment(const tess_source *source, int k,
                                            const tess_recipe **recipe)
{
    const part *p = &source->parts[k];
    *recipe = p->usable ? &p->recipe : NULL;
    return &tess_vis_reader_meta(source->reader[p->obs])->segment[p->segment];
}

int tess_source_segment_reader(const tess_source *source, int k)
{
    return source->parts[k].obs;
}

int tess_source_num_readers(const tess_source *source)
{
    return source->num_obs;
}

tess_vis_reader *tess_source_reader(const tess_source *source, int k)
{
    return source->reader[k];
}
