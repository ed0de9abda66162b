/* Takes what is asked for from h5parm files: which tables, antennas, directions, times
 * and frequencies, and what is refused. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "solutions.h"
#include "tess_const.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_text.h"
#include "tess_words.h"

static const char *const kind_names[] = {"amplitude", "phase",    "tec",
                                         "clock",     "rotation", "rotationmeasure"};

/* An open file, and what has been taken before. */
typedef struct gathering {
    const tess_solutions_opts *opts;
    tess_solutions *into;
    int file; /* which of the options' */
    const char *path;
    h5parm *open;
    tess_solution_source *source; /* [num_sources], NULL: not needed so far */
    int64_t num_sources;
    tess_solution_name *antenna; /* [into->num_antennas], or NULL: not known yet */
    bool *is_found;              /* [num_tables] that some file of the group has */
    char names[256];             /* of the tables of the last file */
} gathering;

static int group_of(const gathering *at)
{
    return solution_group(at->file, at->opts->num_files, at->opts->num_groups);
}

/* The times and frequencies of the data that a file has solutions of. */
static tess_solution_reach reach_of(const gathering *at)
{
    const tess_solutions_opts *opts = at->opts;
    return opts->num_groups > 0
               ? opts->reach[group_of(at)]
               : (tess_solution_reach){{opts->time_mjd_s[0], opts->time_mjd_s[1]},
                                       {opts->freq_hz[0], opts->freq_hz[1]}};
}

/* ---- picks ---- */

static void pick_free(h5parm_pick *pick)
{
    for (int k = 0; k < H5PARM_AXES; ++k)
        tess_free(pick->index[k]);
}

/* Picks [first, end) of an axis. */
static tess_status pick_range(int which, int64_t first, int64_t end, h5parm_pick *pick)
{
    tess_status status = TESS_OK;
    pick->num[which] = end - first;
    pick->index[which] = tess_alloc(end - first, sizeof **pick->index);
    if (!pick->index[which])
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for an axis of solutions");
    for (int64_t k = first; k < end; ++k)
        pick->index[which][k - first] = k;
cleanup:
    return status;
}

static int64_t find_text(const h5parm_axis *axis, const char *text)
{
    for (int64_t k = 0; k < axis->length; ++k)
        if (strcmp(axis->text[k], text) == 0) return k;
    return -1;
}

/* ---- times and frequencies ---- */

/* Picks the values of an ascending axis that are used within limits: [0] to [1], and
 * all of them if both are 0. */
static tess_status pick_within(const h5parm_axis *axis, int which,
                               const double limits[2], h5parm_pick *pick)
{
    int64_t first = 0, end = axis->length;
    const bool has_limits = axis->number && (limits[0] != 0 || limits[1] != 0);
    while (has_limits && first + 1 < end && axis->number[first + 1] <= limits[0])
        ++first;
    while (has_limits && end - 1 > first && axis->number[end - 2] >= limits[1])
        --end;
    return pick_range(which, first, end, pick);
}

/* Whether a range reaches below or above an axis by more than a step. */
static bool is_beyond(const h5parm_axis *axis, double low, double high)
{
    const int64_t last = axis->length - 1;
    if (!axis->number || last < 1) return false;
    return low < axis->number[0] - (axis->number[1] - axis->number[0]) ||
           high > axis->number[last] + (axis->number[last] - axis->number[last - 1]);
}

static tess_status check_overlap(const gathering *at, const h5parm_table *table)
{
    tess_status status = TESS_OK;
    const h5parm_axis *time = &table->axis[H5PARM_TIME];
    const h5parm_axis *freq = &table->axis[H5PARM_FREQ];
    const tess_solution_reach reach = reach_of(at);
    const double *times = reach.time_mjd_s, *freqs = reach.freq_hz;
    char own[80], data[80], end[40];
    if ((times[0] != 0 || times[1] != 0) && is_beyond(time, times[1], times[0])) {
        tess_words_time(time->number[0], own, sizeof own);
        tess_words_time(time->number[time->length - 1], end, sizeof end);
        tess_words_time(times[0], data, sizeof data);
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: %s has no solutions at the times of the data, %s and later: its "
                  "are %s to %s",
                  at->path, table->name, data, own, end);
    }
    if ((freqs[0] != 0 || freqs[1] != 0) && is_beyond(freq, freqs[0], freqs[1])) {
        tess_words_band(freq->number[0], freq->number[freq->length - 1], own,
                        sizeof own);
        tess_words_band(freqs[0], freqs[1], data, sizeof data);
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: %s has no solutions at the frequencies of the data, %s: its are "
                  "%s",
                  at->path, table->name, data, own);
    }
cleanup:
    return status;
}

/* ---- antennas ---- */

/* The first table with antennas names them, unless the options do. */
static tess_status name_antennas(gathering *at, const h5parm_axis *axis)
{
    tess_status status = TESS_OK;
    const tess_solutions_opts *opts = at->opts;
    if (at->antenna) goto cleanup;
    const int64_t num = opts->antenna ? opts->num_antennas : axis->length;
    at->antenna = tess_alloc_zero(num, sizeof *at->antenna);
    if (!at->antenna) TESS_FAIL(TESS_ERR_ALLOC, "no memory for names of antennas");
    for (int64_t k = 0; k < num; ++k)
        snprintf(at->antenna[k], sizeof at->antenna[k], "%s",
                 opts->antenna ? opts->antenna[k] : axis->text[k]);
    at->into->num_antennas = num;
cleanup:
    return status;
}

static bool is_of_file(const gathering *at, int64_t antenna)
{
    return !at->into->antenna || at->into->antenna[antenna].group == group_of(at);
}

/* Picks the antennas whose solutions are in the file. */
static tess_status pick_antennas(gathering *at, const h5parm_table *table,
                                 h5parm_pick *pick)
{
    tess_status status = TESS_OK;
    const h5parm_axis *axis = &table->axis[H5PARM_ANT];
    int64_t num = 0;
    if (axis->place < 0) return pick_range(H5PARM_ANT, 0, 1, pick);
    TESS_TRY(name_antennas(at, axis));
    for (int64_t k = 0; k < at->into->num_antennas; ++k)
        num += is_of_file(at, k);
    TESS_TRY(pick_range(H5PARM_ANT, 0, num, pick));
    num = 0;
    for (int64_t k = 0; k < at->into->num_antennas; ++k) {
        const int64_t found = find_text(axis, at->antenna[k]);
        if (!is_of_file(at, k)) continue;
        pick->index[H5PARM_ANT][num++] = found;
        if (found < 0)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: %s has no antenna '%s'; its %lld antennas begin with '%s'",
                      at->path, table->name, at->antenna[k], (long long)axis->length,
                      axis->text[0]);
    }
cleanup:
    return status;
}

/* ---- directions ---- */

static double angle_between(double ra, double dec, double other_ra, double other_dec)
{
    const double half_ra = sin(0.5 * (other_ra - ra));
    const double half_dec = sin(0.5 * (other_dec - dec));
    const double square =
        half_dec * half_dec + cos(dec) * cos(other_dec) * half_ra * half_ra;
    return 2 * asin(fmin(sqrt(square), 1));
}

/* Finds the nearest direction of the file for each of the options. */
static tess_status match_directions(gathering *at)
{
    tess_status status = TESS_OK;
    const tess_solutions_opts *opts = at->opts;
    tess_solution_match *match = at->into->match + at->file * opts->num_directions;
    if (at->source) goto cleanup;
    TESS_TRY(h5parm_sources(at->open, &at->source, &at->num_sources));
    for (int64_t k = 0; k < opts->num_directions; ++k) {
        match[k].separation_rad = INFINITY;
        match[k].is_only = at->num_sources == 1;
        for (int64_t j = 0; j < at->num_sources; ++j) {
            const double angle =
                angle_between(opts->direction[k][0], opts->direction[k][1],
                              at->source[j].ra_rad, at->source[j].dec_rad);
            if (!(angle < match[k].separation_rad)) continue;
            match[k].separation_rad = angle;
            memcpy(match[k].name, at->source[j].name, sizeof match[k].name);
        }
    }
cleanup:
    return status;
}

/* Picks each direction that is matched once. */
static tess_status pick_directions(gathering *at, const h5parm_table *table,
                                   solution_values *held, h5parm_pick *pick)
{
    tess_status status = TESS_OK;
    const h5parm_axis *axis = &table->axis[H5PARM_DIR];
    const int64_t num = at->opts->num_directions;
    held->held = tess_alloc_zero(num, sizeof *held->held);
    if (!held->held) TESS_FAIL(TESS_ERR_ALLOC, "no memory for directions");
    if (axis->place >= 0) TESS_TRY(match_directions(at));
    TESS_TRY(pick_range(H5PARM_DIR, 0, tess_min_i64(num, axis->length), pick));
    if (axis->length == 1) goto cleanup; /* whatever its name is */
    pick->num[H5PARM_DIR] = 0;
    for (int64_t k = 0; k < num; ++k) {
        const char *name = at->into->match[at->file * num + k].name;
        const int64_t found = find_text(axis, name);
        int64_t j = 0;
        if (found < 0)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: %s has no direction '%s', which the file has", at->path,
                      table->name, name);
        while (j < pick->num[H5PARM_DIR] && pick->index[H5PARM_DIR][j] != found)
            ++j;
        held->held[k] = j;
        if (j == pick->num[H5PARM_DIR])
            pick->index[H5PARM_DIR][pick->num[H5PARM_DIR]++] = found;
    }
cleanup:
    return status;
}

/* ---- polarisations ---- */

/* Where XX, XY, YX and YY are: of one, two or four polarisations. */
static tess_status pick_polarisations(const gathering *at, const h5parm_table *table,
                                      h5parm_pick *pick)
{
    tess_status status = TESS_OK;
    static const char *const names[2][4] = {{"XX", "XY", "YX", "YY"},
                                            {"RR", "RL", "LR", "LL"}};
    const h5parm_axis *axis = &table->axis[H5PARM_POL];
    const int64_t num = axis->length;
    TESS_TRY(pick_range(H5PARM_POL, 0, num, pick));
    if (num != 1 && num != 2 && num != 4)
        TESS_FAIL(TESS_ERR_INPUT, "%s: %s has %lld polarisations; 1, 2 and 4 are read",
                  at->path, table->name, (long long)num);
    for (int feed = 0; feed < 2 && num > 1; ++feed)
        for (int64_t k = 0; k < num; ++k) {
            const int64_t found = find_text(axis, names[feed][num == 2 ? 3 * k : k]);
            if (found >= 0) pick->index[H5PARM_POL][k] = found;
        }
cleanup:
    return status;
}

/* ---- tables ---- */

static tess_status find_kind(const gathering *at, const h5parm_table *table,
                             solution_kind *kind)
{
    tess_status status = TESS_OK;
    int k = 0;
    while (k < NUM_SOLUTION_KINDS && strcasecmp(table->type, kind_names[k]) != 0)
        ++k;
    if (k == NUM_SOLUTION_KINDS)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: %s is of the type '%s'; amplitude, phase, tec, clock, rotation "
                  "and rotationmeasure are read",
                  at->path, table->name, table->type);
    *kind = (solution_kind)k;
cleanup:
    return status;
}

/* Copies the picked numbers of an axis; no axis: NULL. */
static tess_status copy_numbers(const h5parm_table *table, const h5parm_pick *pick,
                                int which, double **numbers)
{
    tess_status status = TESS_OK;
    if (!table->axis[which].number) goto cleanup;
    *numbers = tess_alloc(pick->num[which], sizeof **numbers);
    if (!*numbers) TESS_FAIL(TESS_ERR_ALLOC, "no memory for an axis of solutions");
    for (int64_t k = 0; k < pick->num[which]; ++k)
        (*numbers)[k] = table->axis[which].number[pick->index[which][k]];
cleanup:
    return status;
}

/* Each direction has a value that counts. */
static tess_status check_values(const gathering *at, const h5parm_table *table,
                                const h5parm_pick *pick, const solution_values *held)
{
    tess_status status = TESS_OK;
    const int64_t each = solution_values_count(held) / held->num[H5PARM_DIR];
    for (int64_t k = 0; k < held->num[H5PARM_DIR]; ++k) {
        int64_t good = 0;
        for (int64_t j = 0; j < each && good == 0; ++j)
            good += !isnan(held->value[k * each + j]);
        tess_solution_name *names = table->axis[H5PARM_DIR].text;
        if (good == 0)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: %s has no value that counts%s%s: all are "
                      "NaN or have the weight 0",
                      at->path, table->name, names ? " of direction " : "",
                      names ? names[pick->index[H5PARM_DIR][k]] : "");
    }
cleanup:
    return status;
}

/* The values of a pick. */
static tess_status take_values(const gathering *at, const h5parm_table *table,
                               const h5parm_pick *pick, solution_values *held)
{
    tess_status status = TESS_OK;
    double bytes = sizeof(double);
    for (int k = 0; k < H5PARM_AXES; ++k) {
        held->num[k] = pick->num[k];
        bytes *= (double)pick->num[k];
    }
    if (bytes > (double)tess_mem_node_limit_bytes())
        TESS_FAIL(TESS_ERR_RESOURCE, "%s: %s needs %s of memory", at->path, table->name,
                  tess_mem_text(bytes));
    held->value = tess_alloc(solution_values_count(held), sizeof *held->value);
    if (!held->value)
        TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory for values of %s", at->path,
                  table->name);
    TESS_TRY(copy_numbers(table, pick, H5PARM_TIME, &held->time_mjd_s));
    TESS_TRY(copy_numbers(table, pick, H5PARM_FREQ, &held->freq_hz));
    TESS_TRY(h5parm_values(at->open, table, pick, held->value));
    TESS_TRY(check_values(at, table, pick, held));
cleanup:
    return status;
}

static tess_status take_table(gathering *at, const char *name)
{
    tess_status status = TESS_OK;
    h5parm_table table = {.num_axes = 0};
    h5parm_pick pick = {.num = {0}};
    const tess_solution_reach reach = reach_of(at);
    solution_values *held = &at->into->table[at->into->num_tables];
    *held = (solution_values){.file = at->file, .is_beam = h5parm_is_beam(at->open)};
    TESS_TRY(h5parm_table_open(at->open, name, &table));
    at->into->num_tables++; /* what it holds from now on is freed with the others */
    snprintf(held->name, sizeof held->name, "%s", table.name);
    TESS_TRY(find_kind(at, &table, &held->kind));
    TESS_TRY(check_overlap(at, &table));
    TESS_TRY(pick_directions(at, &table, held, &pick));
    TESS_TRY(pick_antennas(at, &table, &pick));
    TESS_TRY(
        pick_within(&table.axis[H5PARM_TIME], H5PARM_TIME, reach.time_mjd_s, &pick));
    TESS_TRY(pick_within(&table.axis[H5PARM_FREQ], H5PARM_FREQ, reach.freq_hz, &pick));
    TESS_TRY(pick_polarisations(at, &table, &pick));
    TESS_TRY(take_values(at, &table, &pick, held));
cleanup:
    h5parm_table_free(&table);
    pick_free(&pick);
    return status;
}

/* ---- factors ---- */

/* Whether amplitude and phase can be of one matrix, or a phase alone. */
static tess_status check_factor(const char *path, const tess_solutions *into,
                                const solution_factor *factor)
{
    tess_status status = TESS_OK;
    const solution_values *amplitude =
        factor->amplitude >= 0 ? &into->table[factor->amplitude] : NULL;
    const solution_values *other =
        factor->other >= 0 ? &into->table[factor->other] : NULL;
    const int64_t num = amplitude ? amplitude->num[H5PARM_POL] : 1;
    const int64_t num_other = other ? other->num[H5PARM_POL] : 1;
    if ((num_other == 4 && num != 4) || (num == 4 && num_other == 2))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: %s has %lld polarisations, and its amplitude has %lld", path,
                  other->name, (long long)num_other, (long long)num);
    if (other && other->kind >= SOLUTION_ROTATION && num_other > 1)
        TESS_FAIL(TESS_ERR_INPUT, "%s: %s, a rotation, has %lld polarisations", path,
                  other->name, (long long)num_other);
cleanup:
    return status;
}

/* An amplitude and a phase of one file join. */
static void add_factor(tess_solutions *into, int table)
{
    const solution_values *held = &into->table[table];
    const bool is_amplitude = held->kind == SOLUTION_AMPLITUDE;
    const bool is_gain = is_amplitude || held->kind == SOLUTION_PHASE;
    for (int k = 0; is_gain && k < into->num_factors; ++k) {
        solution_factor *factor = &into->factor[k];
        int *mine = is_amplitude ? &factor->amplitude : &factor->other;
        const int partner = is_amplitude ? factor->other : factor->amplitude;
        if (*mine >= 0 || into->table[partner].file != held->file ||
            into->table[partner].kind > SOLUTION_PHASE)
            continue;
        *mine = table;
        return;
    }
    into->factor[into->num_factors++] =
        is_amplitude ? (solution_factor){table, -1} : (solution_factor){-1, table};
}

/* ---- files ---- */

static const char *const usual_tables[] = {"amplitude000", "phase000"};

static tess_status take_file(gathering *at)
{
    tess_status status = TESS_OK;
    const tess_solutions_opts *opts = at->opts;
    const char *const *name = opts->num_tables > 0 ? opts->table : usual_tables;
    const int num = opts->num_tables > 0 ? opts->num_tables : 2;
    const int before = at->into->num_tables;
    TESS_TRY(h5parm_open(at->path, &at->open));
    for (int k = 0; k < num; ++k) {
        if (!h5parm_has_table(at->open, name[k])) continue;
        at->is_found[k] = true;
        TESS_TRY(take_table(at, name[k]));
    }
    h5parm_table_names(at->open, at->names, sizeof at->names);
    if (at->into->num_tables == before)
        TESS_FAIL(TESS_ERR_INPUT, "%s: has no solution table '%s'%s; it has: %s",
                  at->path, name[0], num > 1 ? " or another of those asked for" : "",
                  *at->names ? at->names : "none");
cleanup:
    h5parm_close(at->open);
    at->open = NULL;
    tess_free(at->source);
    at->source = NULL;
    return status;
}

/* Whether some antenna has the solutions of the file at hand: a prediction of one
 * observation needs no files of others. */
static bool is_needed(const gathering *at)
{
    const tess_solutions *into = at->into;
    int64_t k = 0;
    while (into->antenna && k < into->num_antennas && !is_of_file(at, k))
        ++k;
    return !into->antenna || k < into->num_antennas;
}

/* Whether the file at hand is the last one of its group. */
static bool ends_group(const gathering *at)
{
    const int num = at->opts->num_files, groups = at->opts->num_groups;
    return (at->file + 1) % (groups > 0 ? num / groups : num) == 0;
}

/* Every table that is asked for is in some file of each group. */
static tess_status check_found(gathering *at)
{
    tess_status status = TESS_OK;
    const tess_solutions_opts *opts = at->opts;
    for (int k = 0; k < opts->num_tables; ++k) {
        if (!at->is_found[k])
            TESS_FAIL(TESS_ERR_INPUT, "%s: has no solution table '%s'; it has: %s",
                      at->path, opts->table[k], at->names);
        at->is_found[k] = false;
    }
cleanup:
    return status;
}

static tess_status take_files(gathering *at)
{
    tess_status status = TESS_OK;
    const tess_solutions_opts *opts = at->opts;
    for (at->file = 0; at->file < opts->num_files; ++at->file) {
        if (!is_needed(at)) continue;
        at->path = opts->path[at->file];
        TESS_TRY(take_file(at));
        if (ends_group(at)) TESS_TRY(check_found(at));
    }
cleanup:
    return status;
}

static bool is_beam(const tess_solutions *of, const solution_factor *factor)
{
    return of->table[factor->amplitude >= 0 ? factor->amplitude : factor->other]
        .is_beam;
}

/* Beams stand between the sky and all other gains: their factors go behind the others,
 * and both stay in their order. */
static void place_beams(tess_solutions *into)
{
    for (int k = 1; k < into->num_factors; ++k) {
        const solution_factor factor = into->factor[k];
        int at = k;
        while (at > 0 && !is_beam(into, &factor) &&
               is_beam(into, &into->factor[at - 1])) {
            into->factor[at] = into->factor[at - 1];
            --at;
        }
        into->factor[at] = factor;
    }
}

static tess_status add_factors(const tess_solutions_opts *opts, tess_solutions *into)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < into->num_tables; ++k)
        add_factor(into, k);
    for (int k = 0; k < into->num_factors; ++k) {
        const solution_factor *factor = &into->factor[k];
        const int table = factor->amplitude >= 0 ? factor->amplitude : factor->other;
        TESS_TRY(check_factor(opts->path[into->table[table].file], into, factor));
    }
    place_beams(into);
cleanup:
    return status;
}

/* Refuses a name that is there twice: its gains would be applied twice. */
static tess_status check_names(const char *const *name, int num)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < num; ++k)
        for (int j = 0; j < k; ++j)
            if (strcmp(name[j], name[k]) == 0)
                TESS_FAIL(TESS_ERR_USAGE,
                          "solutions: '%s' is named twice; its gains would be applied "
                          "twice",
                          name[k]);
cleanup:
    return status;
}

/* Counts the antennas of each group. */
static tess_status place_antennas(const tess_solutions_opts *opts, tess_solutions *into)
{
    tess_status status = TESS_OK;
    int64_t *num = tess_alloc_zero(opts->num_groups, sizeof *num);
    into->antenna = tess_alloc_zero(opts->num_antennas, sizeof *into->antenna);
    if (!num || !into->antenna)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for antennas of solutions");
    for (int64_t k = 0; k < opts->num_antennas; ++k) {
        const int group = opts->antenna_group[k];
        into->antenna[k] = (solution_antenna){group, num[group]++};
    }
cleanup:
    tess_free(num);
    return status;
}

/* Files and antennas in groups. */
static tess_status make_groups(const tess_solutions_opts *opts, tess_solutions *into)
{
    tess_status status = TESS_OK;
    if (opts->num_groups == 0) return check_names(opts->path, opts->num_files);
    if (opts->num_files % opts->num_groups != 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "solutions: %d files are not as many for each of %d observations",
                  opts->num_files, opts->num_groups);
    const int each = opts->num_files / opts->num_groups;
    for (int k = 0; k < opts->num_groups; ++k)
        TESS_TRY(check_names(opts->path + k * each, each));
    into->num_groups = opts->num_groups;
    TESS_TRY(place_antennas(opts, into));
cleanup:
    return status;
}

tess_status solutions_gather(const tess_solutions_opts *opts, tess_solutions *into)
{
    tess_status status = TESS_OK;
    const int64_t most = (int64_t)opts->num_files * tess_max_i64(opts->num_tables, 2);
    gathering at = {.opts = opts, .into = into};
    at.is_found =
        tess_alloc_zero(tess_max_i64(opts->num_tables, 2), sizeof *at.is_found);
    TESS_TRY(make_groups(opts, into));
    TESS_TRY(check_names(opts->table, opts->num_tables));
    into->num_files = opts->num_files;
    into->num_directions = opts->num_directions;
    into->num_antennas = opts->antenna ? opts->num_antennas : 0;
    into->table = tess_alloc_zero(most, sizeof *into->table);
    into->factor = tess_alloc_zero(most, sizeof *into->factor);
    into->match =
        tess_alloc_zero(opts->num_files * opts->num_directions, sizeof *into->match);
    if (!at.is_found || !into->table || !into->factor || !into->match)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for solutions");
    for (int64_t k = 0; k < opts->num_files * opts->num_directions; ++k)
        into->match[k].is_only = true; /* unless a table has directions */
    TESS_TRY(take_files(&at));
    TESS_TRY(add_factors(opts, into));
cleanup:
    tess_free(at.antenna);
    tess_free(at.is_found);
    return status;
}
