/* Reads this rank's slice of all observations block by block, while a second thread
 * reads the next block. */
#include "source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tess_const.h"
#include "tess_hash.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_sky_place.h"
#include "tess_worker.h"

/* Phase centres closer than this are one: the precision of single-precision positions
 * in real headers [rad] (1 milliarcsecond). */
static const double SAME_CENTER_RAD = 5e-9;

typedef struct part {
    int obs, segment;
    int64_t num_rows, num_chan;
    int64_t chan_base;
    tess_recipe recipe;
    bool usable; /* has the correlations asked for */
} part;

typedef struct span {
    int part;
    int64_t row_first, num_rows;
    double time_first, time_last; /* of its rows, known once it has been read */
} span;

/* The block that is read ahead. */
typedef struct source_reading {
    tess_vis_block block[2]; /* the reading thread fills block[turn] */
    int turn;
    tess_worker *worker; /* the reading thread, once there is something to read */
    bool at_start;       /* rewound, and nothing taken or changed since */
    bool in_turn;        /* blocks are read when they are asked for */
    tess_status status;  /* of the block that was read last */
} source_reading;

struct tess_source {
    tess_comm *comm;
    tess_selection selection;
    int num_obs, obs_read; /* obs_read: that the last block came from */
    int64_t capacity_obs;
    tess_vis_reader **reader; /* [num_obs] files, or fields of them */
    tess_source_info info;
    double *freq_hz, *width_hz, *inv_lambda;
    int num_parts;
    part *parts;
    int num_pol, num_weight, threads;
    bool is_double;
    int64_t block_bytes;
    int64_t num_spans, next_span; /* this rank's blocks */
    span *spans;
    const bool *chan_wanted;
    tess_steps steps; /* with --even-timesteps and --odd-timesteps */
    source_reading reading;
    int64_t bytes_read; /* of the blocks handed out */
    tess_trace *trace;
};

/* ---- opening ---- */

/* The source owns the reader from here on, also when this fails. */
static tess_status keep_reader(tess_source *source, tess_vis_reader *reader)
{
    tess_status status = TESS_OK;
    if (tess_grow((void **)&source->reader, &source->capacity_obs, source->num_obs + 1,
                  sizeof *source->reader)) {
        tess_vis_close(reader);
        TESS_FAIL(TESS_ERR_ALLOC, "list of observations");
    }
    source->reader[source->num_obs++] = reader;
cleanup:
    return status;
}

static int fields_with_rows(const tess_vis_meta *meta)
{
    int count = 0;
    for (int k = 0; k < meta->num_fields; ++k)
        count += meta->field[k].num_rows > 0;
    return count;
}

/* Fields that --center rotates together: a reader for each one that has rows. */
static tess_status open_each_field(tess_source *source, const char *path,
                                   const tess_vis_select *select)
{
    tess_status status = TESS_OK;
    tess_vis_select one = *select;
    tess_vis_reader *every = NULL, *reader = NULL;
    one.any_field = true;
    TESS_TRY(tess_vis_open(path, &one, &every));
    const tess_vis_meta *meta = tess_vis_reader_meta(every);
    if (fields_with_rows(meta) <= 1) {
        reader = every;
        every = NULL;
        TESS_TRY(keep_reader(source, reader));
        return TESS_OK;
    }
    for (int k = 0; k < meta->num_fields; ++k) {
        char number[16];
        if (meta->field[k].num_rows == 0) continue;
        snprintf(number, sizeof number, "%d", meta->field[k].id);
        one.field = number;
        TESS_TRY(tess_vis_open(path, &one, &reader));
        TESS_TRY(keep_reader(source, reader));
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

static bool takes_all_fields(const tess_selection *s)
{
    return s->field ? strcasecmp(s->field, "all") == 0 : s->has_center;
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
        TESS_TRY(keep_reader(source, reader));
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
                             .spw = s->num_spw ? s->spw : NULL,
                             .num_spw = s->num_spw,
                             .chan_first = s->chan_first,
                             .chan_end = s->chan_end,
                             .model_only = s->positions_only,
                             .uvw_only = s->uvw_only};
}

/* One rank has the sets tried out before any opens them. */
static tess_status check_sets(const tess_selection *selection, const char *const *obs,
                              int num_obs)
{
    const tess_vis_select select = selected(selection);
    return tess_vis_check(obs, num_obs, &select);
}

static tess_status open_readers(tess_source *source, const char *const *obs,
                                int num_obs)
{
    tess_status status = TESS_OK;
    const tess_selection *s = &source->selection;
    const tess_vis_select select = selected(s);
    for (int k = 0; k < num_obs; ++k) {
        tess_vis_reader *reader = NULL;
        if (lists_fields(s)) {
            TESS_TRY(open_listed_fields(source, obs[k], &select));
            continue;
        }
        if (takes_all_fields(s)) {
            TESS_TRY(open_each_field(source, obs[k], &select));
            continue;
        }
        TESS_TRY(tess_vis_open(obs[k], &select, &reader));
        TESS_TRY(keep_reader(source, reader));
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
            "several pointings are joined without weights of primary beams; for "
            "a mosaic, image each alone with --pbcor");
}

static tess_status find_center(tess_source *source)
{
    tess_status status = TESS_OK;
    const tess_vis_meta *first = tess_vis_reader_meta(source->reader[0]);
    tess_source_info *info = &source->info;
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
    warn_of_pointings(source);
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
        source->selection = *selection;
    } else
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "observations");
    if (status == TESS_OK && tess_comm_rank(comm) == 0)
        status = check_sets(selection, obs, num_obs);
    TESS_TRY(tess_comm_agree(comm, status));
    status = open_readers(source, obs, num_obs);
    if (status == TESS_OK) status = make_parts(source);
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

static void wait_for_reader(tess_source *source)
{
    if (source->reading.worker) tess_worker_wait(source->reading.worker);
}

void tess_source_close(tess_source *source)
{
    if (!source) return;
    tess_worker_destroy(source->reading.worker);
    for (int k = 0; k < source->num_obs; ++k)
        tess_vis_close(source->reader[k]);
    for (int k = 0; k < 2; ++k)
        tess_vis_block_free(&source->reading.block[k]);
    tess_free(source->reader);
    tess_free(source->parts);
    tess_free(source->spans);
    tess_free(source->freq_hz);
    tess_free(source->width_hz);
    tess_free(source->inv_lambda);
    tess_free(source->steps.time);
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

int tess_source_num_readers(const tess_source *source)
{
    return source->num_obs;
}

tess_vis_reader *tess_source_reader(tess_source *source, int k)
{
    return source->reader[k];
}

/* ---- what is made of each part ---- */

/* Which of the images a part cannot make, and why; empty when it makes all. */
static void explain_part(const tess_source *source, const part *p, const tess_pol *pol,
                         int num_pol, char *text, size_t size)
{
    const tess_vis_meta *meta = tess_vis_reader_meta(source->reader[p->obs]);
    const tess_vis_segment *segment = &meta->segment[p->segment];
    tess_pol_explain(pol, num_pol, segment->corr, segment->num_corr, text, size);
}

/* Of several parts, those that lack a correlation are left out. */
static void warn_left_out(const tess_source *source, const tess_pol *pol, int num_pol)
{
    char why[256];
    for (int k = 0; k < source->num_parts; ++k) {
        const part *p = &source->parts[k];
        if (p->usable) continue;
        explain_part(source, p, pol, num_pol, why, sizeof why);
        tess_log_warn("%s: %lld rows are left out: %s",
                      tess_vis_reader_meta(source->reader[p->obs])->path,
                      (long long)p->num_rows, why);
    }
}

/* Rows that are turned are rotated, too, if by nothing. */
static void turn_recipe(const tess_source *source, tess_recipe *recipe)
{
    for (int k = 0; k < 3 && !recipe->rotate; ++k)
        recipe->rotation[k][k] = 1;
    recipe->rotate = recipe->turns = true;
    memcpy(recipe->turn, source->info.turn, sizeof recipe->turn);
}

static bool make_recipe(tess_source *source, part *p, const tess_pol *pol, int num_pol,
                        double uv_limit)
{
    const tess_vis_meta *meta = tess_vis_reader_meta(source->reader[p->obs]);
    const tess_vis_segment *segment = &meta->segment[p->segment];
    const tess_selection *s = &source->selection;
    tess_recipe *recipe = &p->recipe;
    *recipe = (tess_recipe){.num_pol = num_pol,
                            .shared_weight = source->num_weight == 1,
                            .chan_base = (int32_t)p->chan_base,
                            .inv_lambda = source->inv_lambda + p->chan_base,
                            .range = {uv_limit, s->cut_cells ? 0 : s->uv_min_lambda,
                                      s->cut_cells ? 0 : s->uv_max_lambda, s->uvw_min_m,
                                      s->uvw_max_m},
                            .time_first = -INFINITY,
                            .time_end = INFINITY};
    if (s->has_center) {
        recipe->rotate = true;
        tess_rotation_between(meta->ra_rad, meta->dec_rad, source->info.ra_rad,
                              source->info.dec_rad, recipe->rotation);
    }
    if (s->shift.given) turn_recipe(source, recipe);
    for (int k = 0; k < num_pol; ++k) {
        recipe->mix[k] = tess_pol_mix_of(&pol[k], segment->corr, segment->num_corr);
        if (recipe->mix[k].num == 0) return false;
    }
    return true;
}

/* Rows that are decoded where they lie in the file come in blocks that a core's caches
 * hold until they are prepared; others as many as fit, which tables like better. */
enum { CACHED_BLOCK_BYTES = 3 << 20 };

static int64_t block_bytes_for(const tess_source *source, const part *p)
{
    tess_vis_raw raw;
    const int64_t enough = (int64_t)CACHED_BLOCK_BYTES * source->threads;
    const bool streams = tess_vis_raw_rows(source->reader[p->obs], p->segment, &raw);
    return streams && enough < source->block_bytes ? enough : source->block_bytes;
}

/* This rank's slice of all usable rows, cut into blocks. */
static tess_status make_spans(tess_source *source)
{
    tess_status status = TESS_OK;
    const int rank = tess_comm_rank(source->comm), size = tess_comm_size(source->comm);
    int64_t total = 0, capacity = 0, before = 0;
    for (int k = 0; k < source->num_parts; ++k)
        if (source->parts[k].usable) total += source->parts[k].num_rows;
    const int64_t first = total * rank / size, end = total * (rank + 1) / size;
    tess_free(source->spans);
    source->spans = NULL;
    source->num_spans = source->next_span = 0;
    for (int k = 0; k < source->num_parts; ++k) {
        const part *p = &source->parts[k];
        if (!p->usable) continue;
        const tess_vis_meta *meta = tess_vis_reader_meta(source->reader[p->obs]);
        const int64_t row_bytes =
            64 + 12 * p->num_chan * meta->segment[p->segment].num_corr;
        const int64_t block_rows = block_bytes_for(source, p) / row_bytes + 1;
        int64_t row = first > before ? first - before : 0;
        const int64_t stop = end - before < p->num_rows ? end - before : p->num_rows;
        for (; row < stop; row += block_rows) {
            if (tess_grow((void **)&source->spans, &capacity, source->num_spans + 1,
                          sizeof *source->spans))
                TESS_FAIL(TESS_ERR_ALLOC, "list of blocks");
            source->spans[source->num_spans++] =
                (span){k, row, stop - row < block_rows ? stop - row : block_rows,
                       -INFINITY, INFINITY};
        }
        before += p->num_rows;
    }
cleanup:
    return status;
}

tess_status tess_source_setup(tess_source *source, const tess_pol *pol, int num_pol,
                              double uv_limit_lambda, bool is_double, int threads,
                              int64_t block_bytes)
{
    tess_status status = TESS_OK;
    int usable = 0;
    source->num_pol = num_pol;
    source->num_weight = num_pol > 1 ? num_pol : 1;
    source->is_double = is_double;
    source->threads = threads;
    for (int k = 0; k < source->num_parts; ++k) {
        part *p = &source->parts[k];
        p->usable = make_recipe(source, p, pol, num_pol, uv_limit_lambda);
        usable += p->usable;
    }
    if (usable == 0) {
        char why[256];
        explain_part(source, &source->parts[0], pol, num_pol, why, sizeof why);
        TESS_FAIL(TESS_ERR_USAGE, "%s: %s",
                  tess_vis_reader_meta(source->reader[0])->path, why);
    }
    if (tess_comm_rank(source->comm) == 0) warn_left_out(source, pol, num_pol);
    source->block_bytes = block_bytes;
    TESS_TRY(make_spans(source));
cleanup:
    return status;
}

tess_status tess_source_deal(tess_source *source, tess_comm *comm)
{
    wait_for_reader(source);
    source->reading.at_start = false;
    source->comm = comm;
    return make_spans(source);
}

int64_t tess_source_block_bytes(const tess_source *source)
{
    int64_t most = 0;
    for (int k = 0; k < source->num_parts; ++k) {
        const part *p = &source->parts[k];
        const int64_t bytes = p->usable ? block_bytes_for(source, p) : 0;
        if (bytes > most) most = bytes;
    }
    return most;
}

void tess_source_trace(tess_source *source, tess_trace *trace)
{
    source->trace = trace;
}

void tess_source_filter(tess_source *source, const bool *chan_wanted, double time_first,
                        double time_end)
{
    for (int k = 0; k < source->num_parts; ++k) {
        part *p = &source->parts[k];
        p->recipe.chan_wanted = chan_wanted ? chan_wanted + p->chan_base : NULL;
        p->recipe.time_first = time_first;
        p->recipe.time_end = time_end;
    }
    source->reading.at_start = false; /* other blocks may be wanted */
}

tess_samples tess_source_samples(const tess_source *source)
{
    return (tess_samples){.is_double = source->is_double,
                          .num_pol = source->num_pol,
                          .num_weight = source->num_weight,
                          .inv_lambda = source->inv_lambda};
}

void tess_source_slice(const tess_source *source, int64_t *num_rows, int64_t *num_vis)
{
    *num_rows = *num_vis = 0;
    for (int64_t k = 0; k < source->num_spans; ++k) {
        *num_rows += source->spans[k].num_rows;
        *num_vis +=
            source->spans[k].num_rows * source->parts[source->spans[k].part].num_chan;
    }
}

void tess_source_share_weights(tess_source *source)
{
    source->num_weight = 1;
    for (int k = 0; k < source->num_parts; ++k)
        source->parts[k].recipe.shared_weight = true;
}

/* Whether a span may have rows of the wanted times. */
static bool wanted(const tess_source *source, const span *s)
{
    const tess_recipe *recipe = &source->parts[s->part].recipe;
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

/* ---- rows as they are ---- */

int64_t tess_source_num_spans(const tess_source *source)
{
    return source->num_spans;
}

bool tess_source_rows_of(const tess_source *source, int64_t k, tess_source_rows *rows)
{
    const span *s = &source->spans[k];
    const part *p = &source->parts[s->part];
    *rows = (tess_source_rows){.recipe = &p->recipe,
                               .reader = source->reader[p->obs],
                               .segment = p->segment,
                               .row_first = s->row_first,
                               .num_rows = s->num_rows,
                               .num_chan = p->num_chan};
    return tess_vis_raw_rows(rows->reader, rows->segment, &rows->raw);
}

uint64_t tess_source_spans_hash(const tess_source *source)
{
    uint64_t hash = TESS_HASH_START;
    for (int64_t k = 0; k < source->num_spans; ++k) {
        const span *s = &source->spans[k];
        const int64_t rows[3] = {s->part, s->row_first, s->num_rows};
        hash = tess_hash(hash, rows, sizeof rows);
    }
    return hash;
}

void tess_source_count_bytes(tess_source *source, int64_t bytes)
{
    source->bytes_read += bytes;
}

/* ---- reading ---- */

static void read_span(void *argument)
{
    tess_source *source = argument;
    const span *s = &source->spans[source->next_span];
    const part *p = &source->parts[s->part];
    const double begin = tess_time_now();
    if (p->obs != source->obs_read) tess_vis_rest(source->reader[source->obs_read]);
    source->obs_read = p->obs;
    source->reading.status =
        tess_vis_read(source->reader[p->obs], p->segment, s->row_first, s->num_rows,
                      source->threads, &source->reading.block[source->reading.turn]);
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
    tess_vis_rest(source->reader[source->obs_read]);
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

static int64_t block_bytes_of(const tess_source *source, const tess_vis_block *block)
{
    const int64_t uvw = 3 * (int64_t)sizeof(double);
    const int64_t others = 2 * (int64_t)(sizeof(double) + sizeof(int32_t));
    const int64_t row = source->selection.uvw_only ? uvw : uvw + others;
    const int64_t sample = source->selection.positions_only ? 0 : 3 * sizeof(float);
    return block->num_rows * (row + block->num_chan * block->num_corr * sample);
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
    note_times(*block, s);
    source->bytes_read += block_bytes_of(source, *block);
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

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int64_t sort_unique(double *times, int64_t count)
{
    int64_t unique = 0;
    qsort(times, (size_t)count, sizeof *times, by_value);
    for (int64_t k = 0; k < count; ++k)
        if (unique == 0 || times[k] - times[unique - 1] > 1e-3)
            times[unique++] = times[k];
    return unique;
}

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
        *count = sort_unique(*times, *count + block->num_rows);
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
    *num_times = sort_unique(all, total / (int64_t)sizeof *times);
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
