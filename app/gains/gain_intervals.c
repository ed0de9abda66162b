/* Intervals of time within which gains do not change. */
#include "gains.h"

#include <math.h>
#include <stdlib.h>

#include "tess_mem.h"

/* Ends that are closer to one another than this [s] are one. */
static const double SAME_S = 1e-3;

/* More steps than this are not made between two values of linear interpolation. */
static const double MOST_STEPS = 1000;

typedef struct ends {
    double *end;
    int64_t num, capacity;
    const double *limits;
} ends;

static tess_status add_end(ends *to, double time_mjd_s)
{
    tess_status status = TESS_OK;
    void *array = to->end;
    if (!(time_mjd_s > to->limits[0] && time_mjd_s < to->limits[1])) return TESS_OK;
    if (tess_grow(&array, &to->capacity, to->num + 1, sizeof *to->end) != 0)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for intervals of solutions");
    to->end = array;
    to->end[to->num++] = time_mjd_s;
cleanup:
    return status;
}

/* The nearest of two times changes in the middle between them. A line between them is
 * cut into steps. */
static tess_status add_values(const double *time, int64_t num, bool is_linear,
                              double step_s, ends *to)
{
    tess_status status = TESS_OK;
    for (int64_t k = 0; k + 1 < num && !is_linear; ++k)
        TESS_TRY(add_end(to, 0.5 * (time[k] + time[k + 1])));
    for (int64_t k = 0; k + 1 < num && is_linear; ++k) {
        const double length = time[k + 1] - time[k];
        const double steps =
            step_s > 0 ? fmin(fmax(ceil(length / step_s), 1), MOST_STEPS) : 1;
        for (double j = 0; j < steps; ++j)
            TESS_TRY(add_end(to, time[k] + j / steps * length));
        if (k + 2 == num) TESS_TRY(add_end(to, time[k + 1]));
    }
cleanup:
    return status;
}

/* Those of interest are the observation's, or else all of the solutions. */
static void find_limits(const tess_gains_opts *opts, const tess_solutions *solutions,
                        double limits[2])
{
    limits[0] = limits[1] = 0;
    if (opts->meta) {
        limits[0] = opts->meta->time_start_mjd_s;
        limits[1] = opts->meta->time_end_mjd_s;
        return;
    }
    const int num_tables = solutions ? tess_solutions_num_tables(solutions) : 0;
    for (int k = 0; k < num_tables; ++k) {
        int64_t num;
        const double *time = tess_solutions_times(solutions, k, &num);
        if (!time) continue;
        limits[0] = limits[0] != 0 ? fmin(limits[0], time[0]) : time[0];
        limits[1] = fmax(limits[1], time[num - 1]);
    }
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort_ends(ends *of)
{
    int64_t num = 0;
    if (of->num > 0) qsort(of->end, (size_t)of->num, sizeof *of->end, compare_times);
    for (int64_t k = 0; k < of->num; ++k)
        if (num == 0 || of->end[k] - of->end[num - 1] > SAME_S)
            of->end[num++] = of->end[k];
    of->num = num;
}

static tess_status add_sources(const tess_gains_opts *opts, const gain_sources *sources,
                               ends *to)
{
    tess_status status = TESS_OK;
    const int num_tables =
        sources->solutions ? tess_solutions_num_tables(sources->solutions) : 0;
    const int num_terms = sources->aterms ? tess_aterms_num(sources->aterms) : 0;
    int64_t num;
    for (int k = 0; k < num_tables; ++k) {
        const double *time = tess_solutions_times(sources->solutions, k, &num);
        if (time)
            TESS_TRY(
                add_values(time, num, opts->solutions.is_linear, opts->step_s, to));
    }
    for (int k = 0; k < num_terms; ++k) {
        const double *time = tess_aterms_times(sources->aterms, k, &num);
        TESS_TRY(add_values(time, num, false, 0, to));
    }
    if (!sources->beam) goto cleanup;
    const double *begin = gain_beam_updates(sources->beam, &num);
    for (int64_t k = 1; k < num; ++k)
        TESS_TRY(add_end(to, begin[k]));
cleanup:
    return status;
}

tess_status gain_intervals_find(const tess_gains_opts *opts,
                                const gain_sources *sources, gain_intervals *intervals)
{
    tess_status status = TESS_OK;
    ends found = {.limits = intervals->limits};
    find_limits(opts, sources->solutions, intervals->limits);
    TESS_TRY(add_sources(opts, sources, &found));
    sort_ends(&found);
    intervals->end_mjd_s = tess_alloc(found.num + 1, sizeof *intervals->end_mjd_s);
    if (!intervals->end_mjd_s)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for intervals of solutions");
    for (int64_t k = 0; k < found.num; ++k)
        intervals->end_mjd_s[k] = found.end[k];
    intervals->end_mjd_s[found.num] = INFINITY;
    intervals->num = found.num + 1;
cleanup:
    tess_free(found.end);
    return status;
}

double gain_intervals_middle(const gain_intervals *intervals, int64_t interval)
{
    const double begin =
        interval > 0 ? intervals->end_mjd_s[interval - 1] : intervals->limits[0];
    const double end = interval + 1 < intervals->num ? intervals->end_mjd_s[interval]
                                                     : intervals->limits[1];
    return 0.5 * (begin + end);
}
