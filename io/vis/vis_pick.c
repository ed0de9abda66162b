/* Chooses rows by the names of antennas and by times, without casacore. */
#define _GNU_SOURCE
#include "vis_pick.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <erfa.h>

#include "tess_const.h"
#include "tess_mem.h"
#include "tess_parse.h"

struct vis_pick {
    int num;                /* antennas */
    uint8_t *pair;          /* [num][num] baselines that are chosen; NULL: all */
    double first_s, last_s; /* times that are chosen [MJD s] */
};

/* What is being read, for messages. */
typedef struct picking {
    const tess_vis_meta *meta;
    vis_pick *pick;
    double day_mjd_s; /* begin of the first day */
} picking;

/* ---- antennas ---- */

/* Marks the antennas of one word. */
static tess_status mark_antenna(const picking *p, const char *word, uint8_t *is_in)
{
    tess_status status = TESS_OK;
    int64_t number = -1;
    bool found = false;
    for (int k = 0; k < p->pick->num; ++k)
        if (strcmp(word, "*") == 0 || strcmp(word, p->meta->antenna[k].name) == 0) {
            is_in[k] = 1;
            found = true;
        }
    if (found) return TESS_OK;
    if (tess_parse_integer(word, 0, p->pick->num - 1, &number) != TESS_OK) {
        tess_error_clear();
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s: --antenna: there is no '%.60s'; tessera info --antennas lists "
                  "those there are",
                  p->meta->path, word);
    }
    is_in[number] = 1;
cleanup:
    return status;
}

/* Marks the antennas of a list; changes its text. */
static tess_status mark_list(const picking *p, char *list, uint8_t *is_in)
{
    tess_status status = TESS_OK;
    for (char *word; (word = strsep(&list, ",")) != NULL;) {
        word += strspn(word, " \t");
        word[strcspn(word, " \t")] = '\0';
        TESS_TRY(mark_antenna(p, word, is_in));
    }
cleanup:
    return status;
}

/* Chooses, or leaves out, baselines of antennas of `a` with those of `b`. */
static void set_pairs(const vis_pick *pick, const uint8_t *a, const uint8_t *b,
                      bool chooses)
{
    for (int i = 0; i < pick->num; ++i)
        for (int k = 0; k < pick->num; ++k)
            if (i != k && a[i] && b[k])
                pick->pair[i * pick->num + k] = pick->pair[k * pick->num + i] = chooses;
}

/* One of the expressions that ';' joins. */
static tess_status take_baselines(const picking *p, char *text, bool is_first)
{
    tess_status status = TESS_OK;
    const int num = p->pick->num;
    uint8_t *one = tess_alloc_zero(num, 1), *other = tess_alloc_zero(num, 1);
    text += strspn(text, " \t");
    const bool leaves = *text == '!';
    char *second = strchr(text, '&');
    if (!one || !other) TESS_FAIL(TESS_ERR_ALLOC, "antennas");
    if (second) *second++ = '\0';
    memset(other, 1, (size_t)num);
    if (leaves && is_first) set_pairs(p->pick, other, other, true);
    if (second) memset(other, 0, (size_t)num);
    TESS_TRY(mark_list(p, text + leaves, one));
    if (second && second[strspn(second, " \t")])
        TESS_TRY(mark_list(p, second, other));
    else if (second)
        memcpy(other, one, (size_t)num);
    set_pairs(p->pick, one, other, !leaves);
cleanup:
    tess_free(one);
    tess_free(other);
    return status;
}

static tess_status take_antennas(const picking *p, const char *text)
{
    tess_status status = TESS_OK;
    const int num = p->pick->num;
    char *copy = tess_strdup(text), *rest = copy;
    p->pick->pair = tess_alloc_zero((int64_t)num * num, 1);
    if (!copy || !p->pick->pair) TESS_FAIL(TESS_ERR_ALLOC, "antennas");
    for (char *part; (part = strsep(&rest, ";")) != NULL;)
        TESS_TRY(take_baselines(p, part, part == copy));
cleanup:
    tess_free(copy);
    return status;
}

/* ---- times ---- */

/* Reads a time of day; returns the number of characters, 0: it is none. */
static int read_clock(const char *text, double *seconds)
{
    int hours, minutes, used = 0, more = 0;
    double rest = 0;
    if (sscanf(text, "%2d:%2d%n", &hours, &minutes, &used) < 2 || used == 0 ||
        hours < 0 || minutes < 0 || minutes > 59)
        return 0;
    if (sscanf(text + used, ":%lf%n", &rest, &more) == 1 && rest >= 0 && rest < 61)
        used += more;
    *seconds = hours * 3600 + minutes * 60 + rest;
    return used;
}

/* Reads a time [MJD s]; the whole text has to be one. */
static tess_status read_time(const picking *p, const char *text, double *mjd_s)
{
    tess_status status = TESS_OK;
    int year, month, day, used = 0, clock_used;
    char between = 0;
    double zero, mjd, seconds = 0;
    *mjd_s = p->day_mjd_s;
    text += strspn(text, " \t");
    if (sscanf(text, "%4d/%2d/%2d%n", &year, &month, &day, &used) == 3 ||
        sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &used) == 3) {
        if (eraCal2jd(year, month, day, &zero, &mjd) != 0) used = 0;
        *mjd_s = mjd * TESS_SECONDS_PER_DAY;
        between = used > 0 ? text[used] : (char)0;
        if (between == '/' || between == 'T') ++used;
    } else
        used = 0;
    clock_used = read_clock(text + used, &seconds);
    *mjd_s += seconds;
    used += clock_used;
    if (used == 0 || text[used + (int)strspn(text + used, " \t")])
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s: --timerange: '%.60s' is not a time; write it like "
                  "2026/01/31/20:15:00",
                  p->meta->path, text);
cleanup:
    return status;
}

static tess_status take_times(const picking *p, const char *text)
{
    tess_status status = TESS_OK;
    char *copy = tess_strdup(text), *until = copy ? strchr(copy, '~') : NULL;
    const char *begin = copy ? copy + strspn(copy, " \t") : NULL;
    if (!copy) TESS_FAIL(TESS_ERR_ALLOC, "times");
    if (*begin == '>')
        TESS_TRY(read_time(p, begin + 1, &p->pick->first_s));
    else if (*begin == '<')
        TESS_TRY(read_time(p, begin + 1, &p->pick->last_s));
    else if (until) {
        *until = '\0';
        TESS_TRY(read_time(p, begin, &p->pick->first_s));
        TESS_TRY(read_time(p, until + 1, &p->pick->last_s));
    } else
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s: --timerange '%.60s' has no end; write it like 20:00:00~20:30:00",
                  p->meta->path, text);
cleanup:
    tess_free(copy);
    return status;
}

/* ---- both ---- */

/* Refuses expressions of other kinds. */
static tess_status check_kinds(const tess_vis_expressions *by,
                               const tess_vis_meta *meta)
{
    tess_status status = TESS_OK;
    const char *option = by->field     ? "select-field"
                         : by->spw     ? "select-spw"
                         : by->scan    ? "scan"
                         : by->uvrange ? "select-uvrange"
                         : by->intent  ? "select-intent"
                         : by->taql    ? "select-taql"
                                       : NULL;
    if (option)
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s: --%s is for MeasurementSets; files of other formats have "
                  "--field, --spw, --channels, --uvrange, --antenna and --timerange",
                  meta->path, option);
cleanup:
    return status;
}

tess_status vis_pick_create(const tess_vis_expressions *by, const tess_vis_meta *meta,
                            double first_mjd_s, vis_pick **pick_out)
{
    tess_status status = TESS_OK;
    vis_pick *pick = NULL;
    TESS_TRY(check_kinds(by, meta));
    *pick_out = NULL;
    if (!by->antenna && !by->time) return TESS_OK;
    pick = tess_alloc_zero(1, sizeof *pick);
    if (!pick) TESS_FAIL(TESS_ERR_ALLOC, "choice of rows");
    *pick =
        (vis_pick){.num = meta->num_antennas, .first_s = -INFINITY, .last_s = INFINITY};
    const picking p = {
        meta, pick, floor(first_mjd_s / TESS_SECONDS_PER_DAY) * TESS_SECONDS_PER_DAY};
    if (by->antenna) TESS_TRY(take_antennas(&p, by->antenna));
    if (by->time) TESS_TRY(take_times(&p, by->time));
    *pick_out = pick;
    pick = NULL;
cleanup:
    vis_pick_destroy(pick);
    return status;
}

void vis_pick_destroy(vis_pick *pick)
{
    if (!pick) return;
    tess_free(pick->pair);
    tess_free(pick);
}

bool vis_pick_has(const vis_pick *pick, int antenna1, int antenna2, double time_mjd_s)
{
    if (!(time_mjd_s >= pick->first_s && time_mjd_s <= pick->last_s)) return false;
    if (!pick->pair) return true;
    return antenna1 >= 0 && antenna2 >= 0 && antenna1 < pick->num &&
           antenna2 < pick->num && pick->pair[antenna1 * pick->num + antenna2];
}
