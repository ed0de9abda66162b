/* What is made of the rows of each part, and which of them a rank has. */
#include "source_private.h"

#include <math.h>
#include <string.h>

#include "tess_geom.h"
#include "tess_hash.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_samples.h"

/* ---- what is made of each part ---- */

static const tess_vis_segment *segment_of(const tess_source *source, const part *p)
{
    return &tess_vis_reader_meta(source->reader[p->obs])->segment[p->segment];
}

/* Which of the images a part cannot make, and why; empty when it makes all. */
static void explain_part(const tess_source *source, const part *p, const tess_pol *pol,
                         int num_pol, char *text, size_t size)
{
    const tess_vis_segment *segment = segment_of(source, p);
    tess_pol_explain(pol, num_pol, segment->corr, segment->num_corr, text, size);
}

/* Whether no part has both hands of Stokes I, but some have the one and some the other
 * (Hamaker, Bregman and Sault 1996: of an unpolarised source each is I). */
static bool has_single_hands(const tess_source *source)
{
    const tess_pol stokes_i = {.code = 1};
    tess_corr all[2 * TESS_MAX_CORR];
    int count = 0;
    const int room = (int)(sizeof all / sizeof *all);
    for (int k = 0; k < source->num_parts; ++k) {
        const tess_vis_segment *segment = segment_of(source, &source->parts[k]);
        if (tess_pol_mix_of(&stokes_i, segment->corr, segment->num_corr).num > 0)
            return false;
        for (int c = 0; c < segment->num_corr; ++c) {
            bool known = false;
            for (int j = 0; j < count; ++j)
                known = known || all[j] == segment->corr[c];
            if (!known && count < room) all[count++] = segment->corr[c];
        }
    }
    return tess_pol_mix_of(&stokes_i, all, count).num == 2;
}

/* What image a part makes of its correlations. */
static tess_pol_mix mix_of_part(const tess_source *source, const part *p,
                                const tess_pol *pol)
{
    const tess_vis_segment *segment = segment_of(source, p);
    return p->single_hand && pol->code == 1
               ? tess_pol_hand_of(pol, segment->corr, segment->num_corr)
               : tess_pol_mix_of(pol, segment->corr, segment->num_corr);
}

/* Warns of the images that parts are left out of because they lack a correlation. */
static void warn_left_out(const tess_source *source, const tess_pol *pol, int num_pol)
{
    char why[256];
    const char *path = tess_vis_reader_meta(source->reader[0])->path;
    if (source->parts[0].single_hand && tess_pol_has(pol, num_pol, 1))
        tess_log_warn(
            "%s: each spectral window has one parallel hand only, which stands "
            "for Stokes I as of sources without polarisation",
            path);
    for (int k = 0; k < source->num_parts; ++k) {
        const part *p = &source->parts[k];
        tess_pol lost[2 * TESS_MAX_POL];
        int count = 0;
        for (int j = 0; j < num_pol; ++j)
            if (p->recipe.mix[j].num == 0) lost[count++] = pol[j];
        if (count == 0) continue;
        explain_part(source, p, lost, count, why, sizeof why);
        tess_log_warn("%s: %lld rows are left out%s: %s",
                      tess_vis_reader_meta(source->reader[p->obs])->path,
                      (long long)p->num_rows,
                      count < num_pol ? " of some of the images" : "", why);
    }
}

/* Warns that --hand-weight mean finds no parallel hands. */
static void warn_no_hands(const tess_source *source)
{
    if (!source->selection.mean_weight) return;
    for (int k = 0; k < source->num_parts; ++k)
        for (int j = 0; j < source->num_pol; ++j)
            if (source->parts[k].recipe.mix[j].num_hands > 0) return;
    tess_log_warn("--hand-weight mean: %s has no parallel hands, and visibilities keep "
                  "their own weights",
                  tess_vis_reader_meta(source->reader[0])->path);
}

/* Rows that are turned are rotated, too, if by nothing. */
static void turn_recipe(const tess_source *source, tess_recipe *recipe)
{
    for (int k = 0; k < 3 && !recipe->rotate; ++k)
        recipe->rotation[k][k] = 1;
    recipe->rotate = recipe->turns = true;
    memcpy(recipe->turn, source->info.turn, sizeof recipe->turn);
}

/* Returns whether the part makes any of the images. */
static bool make_recipe(tess_source *source, part *p, const tess_pol *pol, int num_pol,
                        double uv_limit)
{
    const tess_vis_meta *meta = tess_vis_reader_meta(source->reader[p->obs]);
    const tess_vis_segment *segment = segment_of(source, p);
    const tess_selection *s = &source->selection;
    bool makes_any = false;
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
    recipe->origins = source_origins_of(source, p->obs);
    if (s->has_center) {
        recipe->rotate = true;
        tess_rotation_between(meta->ra_rad, meta->dec_rad, source->info.ra_rad,
                              source->info.dec_rad, recipe->rotation);
    }
    if (s->shift.given) turn_recipe(source, recipe);
    for (int k = 0; k < num_pol; ++k) {
        recipe->mix[k] = mix_of_part(source, p, &pol[k]);
        if (s->mean_weight)
            tess_pol_weigh_by_hands(&recipe->mix[k], segment->corr, segment->num_corr);
        makes_any = makes_any || recipe->mix[k].num > 0;
    }
    return makes_any;
}

/* TESS_ERR_USAGE for an image that no part makes. */
static tess_status check_all_made(const tess_source *source, const tess_pol *pol,
                                  int num_pol)
{
    tess_status status = TESS_OK;
    const part *first = &source->parts[0];
    for (int k = 0; k < num_pol; ++k) {
        char name[8], why[256];
        bool made = false;
        for (int j = 0; j < source->num_parts; ++j)
            made = made || source->parts[j].recipe.mix[k].num > 0;
        if (made) continue;
        const char *path = tess_vis_reader_meta(source->reader[first->obs])->path;
        explain_part(source, first, pol, num_pol, why, sizeof why);
        tess_pol_name(&pol[k], name);
        if (source->num_parts > 1)
            TESS_FAIL(TESS_ERR_USAGE, "%s: no spectral window has what %s takes: %s",
                      path, name, why);
        TESS_FAIL(TESS_ERR_USAGE, "%s: %s", path, why);
    }
cleanup:
    return status;
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

tess_status source_make_spans(tess_source *source)
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
            64 + 12 * source_read_chan(p) * meta->segment[p->segment].num_corr;
        const int64_t block_rows = block_bytes_for(source, p) / row_bytes + 1;
        int64_t row = first > before ? first - before : 0;
        const int64_t stop = end - before < p->num_rows ? end - before : p->num_rows;
        for (; row < stop; row += block_rows) {
            if (tess_grow((void **)&source->spans, &capacity, source->num_spans + 1,
                          sizeof *source->spans))
                TESS_FAIL(TESS_ERR_ALLOC, "list of blocks");
            source->spans[source->num_spans++] =
                (span){.part = k,
                       .row_first = row,
                       .num_rows = stop - row < block_rows ? stop - row : block_rows,
                       .time_first = -INFINITY,
                       .time_last = INFINITY};
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
    source->num_pol = num_pol;
    const bool single_hands = tess_pol_has(pol, num_pol, 1) && has_single_hands(source);
    source->num_weight = num_pol > 1 ? num_pol : 1;
    source->is_double = is_double;
    source->threads = threads;
    for (int k = 0; k < source->num_parts; ++k) {
        part *p = &source->parts[k];
        p->single_hand = single_hands;
        /* positions are those of all rows, whatever correlations these have */
        p->usable = make_recipe(source, p, pol, num_pol, uv_limit_lambda) ||
                    source->selection.wanted.positions_only;
    }
    if (!source->selection.wanted.positions_only) {
        TESS_TRY(check_all_made(source, pol, num_pol));
        if (tess_comm_rank(source->comm) == 0) {
            warn_left_out(source, pol, num_pol);
            warn_no_hands(source);
        }
    }
    source->block_bytes = block_bytes;
    TESS_TRY(source_make_spans(source));
cleanup:
    return status;
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
        p->recipe.chan_wanted =
            chan_wanted && !source->reading.regrid ? chan_wanted + p->chan_base : NULL;
        p->recipe.time_first = time_first;
        p->recipe.time_end = time_end;
    }
    if (source->reading.regrid)
        source_regrid_filter(source->reading.regrid, chan_wanted);
    source->reading.at_start = false; /* other blocks may be wanted */
}

void tess_source_choose_reader(tess_source *source, int k)
{
    source->reading.only_reader = k;
    source->reading.at_start = false; /* other blocks are wanted */
}

tess_samples tess_source_samples(const tess_source *source)
{
    return (tess_samples){.is_double = source->is_double,
                          .num_pol = source->num_pol,
                          .num_weight = source->num_weight,
                          .inv_lambda = source->info.inv_lambda,
                          .origins = source_keeps_origins(source) ? &source->origins.all
                                                                  : NULL};
}

void tess_source_slice(const tess_source *source, int64_t *num_rows, int64_t *num_vis)
{
    *num_rows = *num_vis = 0;
    for (int64_t k = 0; k < source->num_spans; ++k) {
        const span *s = &source->spans[k];
        int64_t rows = 1, vis = source->parts[s->part].num_chan;
        if (source->reading.regrid)
            source_regrid_most(source->reading.regrid, s->part, &rows, &vis);
        *num_rows += s->num_rows * rows;
        *num_vis += s->num_rows * vis;
    }
}

void tess_source_share_weights(tess_source *source)
{
    source->num_weight = 1;
    for (int k = 0; k < source->num_parts; ++k)
        source->parts[k].recipe.shared_weight = true;
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
    if (source->reading.regrid) return false;
    *rows = (tess_source_rows){.recipe = &p->recipe,
                               .reader = source->reader[p->obs],
                               .segment = p->segment,
                               .row_first = s->row_first,
                               .num_rows = s->num_rows,
                               .num_chan = p->num_chan};
    return !source_subtracts(source) &&
           tess_vis_raw_rows(rows->reader, rows->segment, &rows->raw);
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
