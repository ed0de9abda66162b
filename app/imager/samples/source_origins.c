/* Numbers the antennas and fields of all observations, so that rows can keep where they
 * come from. */
#include "source_origins.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "source_private.h"
#include "tess_log.h"
#include "tess_mem.h"

/* An antenna or a field of a reader. */
typedef struct item {
    int reader, index;
} item;

/* Whether two items are the same antenna, or the same field. */
typedef bool same_item(const tess_source *source, item a, item b);

static const tess_vis_antenna *antenna_at(const tess_source *source, item at)
{
    return &tess_vis_reader_meta(source->reader[at.reader])->antenna[at.index];
}

/* Antennas without a name are told apart by where they are in their file's list. */
static bool same_antenna(const tess_source *source, item a, item b)
{
    const char *name = antenna_at(source, a)->name;
    if (source->origins.splits_antennas &&
        source->origins.set[a.reader] != source->origins.set[b.reader])
        return false;
    return strcmp(name, antenna_at(source, b)->name) == 0 &&
           (name[0] != '\0' || a.index == b.index);
}

/* A reader has one field, the selected one. */
static const tess_vis_field *field_at(const tess_source *source, item at)
{
    const tess_vis_meta *meta = tess_vis_reader_meta(source->reader[at.reader]);
    return &meta->field[meta->field_selected];
}

static bool same_field(const tess_source *source, item a, item b)
{
    const tess_vis_field *one = field_at(source, a), *other = field_at(source, b);
    return one->ra_rad == other->ra_rad && one->dec_rad == other->dec_rad &&
           one->pointing_rad[0] == other->pointing_rad[0] &&
           one->pointing_rad[1] == other->pointing_rad[1];
}

/* Numbers `count` items of a reader: those that are among the first `*num_known` get
 * the number that they have there, and others are added. */
static void number_items(const tess_source *source, same_item *same, item at, int count,
                         item *known, int32_t *num_known, int32_t *number)
{
    for (at.index = 0; at.index < count; ++at.index) {
        int32_t k = 0;
        while (k < *num_known && !same(source, at, known[k]))
            ++k;
        if (k == *num_known) known[(*num_known)++] = at;
        number[at.index] = k;
    }
}

static int num_antennas(const tess_source *source, int reader)
{
    return tess_vis_reader_meta(source->reader[reader])->num_antennas;
}

/* Numbers the antennas and the field of each reader. */
static tess_status number_all(tess_source *source)
{
    tess_status status = TESS_OK;
    source_origins *origins = &source->origins;
    int64_t most = 0;
    for (int k = 0; k < source->num_obs; ++k)
        most += num_antennas(source, k);
    item *antennas = tess_alloc(most, sizeof *antennas);
    item *fields = tess_alloc(source->num_obs, sizeof *fields);
    origins->antenna = tess_alloc_zero(source->num_obs, sizeof *origins->antenna);
    origins->field = tess_alloc(source->num_obs, sizeof *origins->field);
    if (!antennas || !fields || !origins->antenna || !origins->field)
        TESS_FAIL(TESS_ERR_ALLOC, "origins of rows");
    for (int k = 0; k < source->num_obs; ++k) {
        const item at = {.reader = k};
        const int count = num_antennas(source, k);
        origins->antenna[k] = tess_alloc(count, sizeof *origins->antenna[k]);
        if (!origins->antenna[k]) TESS_FAIL(TESS_ERR_ALLOC, "origins of rows");
        number_items(source, same_antenna, at, count, antennas,
                     &origins->all.num_antennas, origins->antenna[k]);
        number_items(source, same_field, at, 1, fields, &origins->all.num_fields,
                     &origins->field[k]);
    }
cleanup:
    tess_free(antennas);
    tess_free(fields);
    return status;
}

/* ---- time ---- */

/* Times from the begin of the first integration to the last one [s]. */
typedef struct stretch {
    double first_s, end_s;
} stretch;

static stretch stretch_of(const tess_source *source, int reader)
{
    const tess_vis_meta *meta = tess_vis_reader_meta(source->reader[reader]);
    return (stretch){meta->time_start_mjd_s - 0.5 * meta->integration_s,
                     meta->time_end_mjd_s};
}

static int by_begin(const void *a, const void *b)
{
    const stretch *one = a, *other = b;
    return (one->first_s > other->first_s) - (one->first_s < other->first_s);
}

/* Joins the k-th stretch and the one behind it. */
static void join_next(stretch *all, int k, int *num)
{
    all[k].end_s = fmax(all[k].end_s, all[k + 1].end_s);
    --*num;
    memmove(all + k + 1, all + k + 2, (size_t)(*num - k - 1) * sizeof *all);
}

/* Of `num` stretches, the one behind which the pause is shortest. */
static int shortest_pause(const stretch *all, int num)
{
    int best = 0;
    for (int k = 1; k + 1 < num; ++k)
        if (all[k + 1].first_s - all[k].end_s < all[best + 1].first_s - all[best].end_s)
            best = k;
    return best;
}

/* Lists the times of all observations, in their order. Those that overlap are one
 * stretch, and so are those with the shortest pauses if there would be more than
 * `most`. */
static void list_stretches(const tess_source *source, int most, stretch *all, int *num)
{
    *num = 0;
    for (int k = 0; k < source->num_obs; ++k) {
        all[*num] = stretch_of(source, k);
        *num += all[*num].first_s <= all[*num].end_s; /* else it has none */
    }
    if (*num == 0) all[(*num)++] = (stretch){0, 0};
    qsort(all, (size_t)*num, sizeof *all, by_begin);
    for (int k = 0; k + 1 < *num;)
        if (all[k + 1].first_s <= all[k].end_s)
            join_next(all, k, num);
        else
            ++k;
    while (*num > most)
        join_next(all, shortest_pause(all, *num), num);
}

/* Finds the stretch of each reader, and the antennas of each stretch, which are those
 * from the lowest number of its readers to the highest. */
static void place_readers(tess_source *source, const stretch *all, int num)
{
    source_origins *origins = &source->origins;
    tess_origins_stretch *to = origins->all.stretch;
    int32_t end[TESS_ORIGINS_STRETCHES] = {0}, most = 0;
    for (int k = 0; k < num; ++k)
        to[k].antenna = origins->all.num_antennas;
    for (int reader = 0; reader < source->num_obs; ++reader) {
        int k = num - 1;
        while (k > 0 && stretch_of(source, reader).first_s < all[k].first_s)
            --k;
        origins->stretch[reader] = k;
        for (int a = 0; a < num_antennas(source, reader); ++a) {
            const int32_t antenna = origins->antenna[reader][a];
            if (antenna < to[k].antenna) to[k].antenna = antenna;
            if (antenna >= end[k]) end[k] = antenna + 1;
        }
    }
    for (int k = 0; k < num; ++k)
        if (end[k] - to[k].antenna > most) most = end[k] - to[k].antenna;
    /* whatever a number says, its antennas are among all */
    for (int k = 0; k < num; ++k)
        if (to[k].antenna > origins->all.num_antennas - most)
            to[k].antenna = origins->all.num_antennas - most;
    origins->all.most_antennas = most;
    origins->all.num_stretches = num;
}

/* The first interval of a stretch begins with its first integration, so that the times
 * of later integrations, which files round, lie within intervals and not where these
 * meet. */
static tess_status cut_stretches(const stretch *all, double interval_s,
                                 tess_origins *origins)
{
    tess_status status = TESS_OK;
    double intervals = 0;
    origins->interval_s = interval_s;
    origins->num_intervals = 1;
    for (int k = 0; k < origins->num_stretches; ++k)
        intervals += 1 + floor((all[k].end_s - all[k].first_s) / interval_s);
    if (!(tess_origins_count(origins) * intervals <= (double)INT32_MAX))
        TESS_FAIL(
            TESS_ERR_USAGE,
            "%.0f intervals of %.6g s, %d antennas and %d fields make more origins "
            "of rows than can be numbered; select fewer times or observations, or "
            "average the data in time",
            intervals, interval_s, origins->most_antennas, origins->num_fields);
    origins->num_intervals = 0;
    for (int k = 0; k < origins->num_stretches; ++k) {
        origins->stretch[k].time_first_s = all[k].first_s;
        origins->stretch[k].interval = origins->num_intervals;
        origins->num_intervals +=
            1 + (int32_t)floor((all[k].end_s - all[k].first_s) / interval_s);
    }
cleanup:
    return status;
}

/* Without a length there is one interval. */
static tess_status cut_time(tess_source *source, double interval_s)
{
    tess_status status = TESS_OK;
    const bool cuts = interval_s > 0;
    int num;
    stretch *all = tess_alloc(source->num_obs, sizeof *all);
    source->origins.stretch =
        tess_alloc(source->num_obs, sizeof *source->origins.stretch);
    if (!all || !source->origins.stretch) TESS_FAIL(TESS_ERR_ALLOC, "origins of rows");
    list_stretches(source, cuts ? TESS_ORIGINS_STRETCHES : 1, all, &num);
    place_readers(source, all, num);
    TESS_TRY(
        cut_stretches(all, cuts ? interval_s : (double)INFINITY, &source->origins.all));
cleanup:
    tess_free(all);
    return status;
}

tess_status tess_source_keep_origins(tess_source *source, double interval_s)
{
    tess_status status = TESS_OK;
    source_origins_free(source);
    if (source->selection.wanted.uvw_only)
        TESS_FAIL(TESS_ERR_INTERNAL,
                  "rows that are read for uvw alone have no origins");
    TESS_TRY(number_all(source));
    TESS_TRY(cut_time(source, interval_s));
cleanup:
    if (status != TESS_OK) source_origins_free(source);
    return status;
}

int tess_source_set(const tess_source *source, int reader)
{
    return source->origins.set[reader];
}

void tess_source_split_antennas(tess_source *source)
{
    source->origins.splits_antennas = true;
}

bool source_keeps_origins(const tess_source *source)
{
    return source->origins.all.num_intervals > 0;
}

tess_row_origins source_origins_of(const tess_source *source, int obs)
{
    const source_origins *origins = &source->origins;
    if (!source_keeps_origins(source)) return (tess_row_origins){0};
    return (tess_row_origins){.origins = &origins->all,
                              .num_antennas = num_antennas(source, obs),
                              .antenna = origins->antenna[obs],
                              .field = origins->field[obs],
                              .stretch = origins->stretch[obs]};
}

void source_origins_free(tess_source *source)
{
    source_origins *origins = &source->origins;
    for (int k = 0; origins->antenna && k < source->num_obs; ++k)
        tess_free(origins->antenna[k]);
    tess_free(origins->antenna);
    tess_free(origins->field);
    tess_free(origins->stretch);
    origins->antenna = NULL;
    origins->field = origins->stretch = NULL;
    origins->all = (tess_origins){0};
}

/* The first reader that has an antenna of this number, and its place there; false: none
 * has. */
static bool find_antenna(const tess_source *source, int32_t antenna, item *found)
{
    if (!source_keeps_origins(source)) return false;
    for (int k = 0; k < source->num_obs; ++k)
        for (int index = 0; index < num_antennas(source, k); ++index) {
            *found = (item){k, index};
            if (source->origins.antenna[k][index] == antenna) return true;
        }
    return false;
}

const tess_vis_antenna *tess_source_antenna(const tess_source *source, int32_t antenna)
{
    item found;
    return find_antenna(source, antenna, &found) ? antenna_at(source, found) : NULL;
}

const int32_t *tess_source_antennas(const tess_source *source, int reader)
{
    return source->origins.antenna[reader];
}

int32_t tess_source_stretch(const tess_source *source, int reader)
{
    return source->origins.stretch[reader];
}

int tess_source_antenna_set(const tess_source *source, int32_t antenna)
{
    item found;
    return find_antenna(source, antenna, &found) ? source->origins.set[found.reader]
                                                 : -1;
}

const tess_vis_field *tess_source_field(const tess_source *source, int32_t field)
{
    if (!source_keeps_origins(source)) return NULL;
    for (int k = 0; k < source->num_obs; ++k)
        if (source->origins.field[k] == field) return field_at(source, (item){k, 0});
    return NULL;
}
