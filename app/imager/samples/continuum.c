/* Fits polynomials in frequency to the rows of a block and subtracts them. The
 * polynomials are orthogonal under the weights of the row, and made by their recurrence
 * of three terms (Forsythe 1957, J. SIAM 5, 74): no system of equations is solved, and
 * coefficients of one order do not change with the order of the fit. */
#include "continuum.h"

#include <math.h>
#include <string.h>

#include "tess_log.h"
#include "tess_mem.h"

/* Where points lie at so few frequencies that no polynomial of the next order is left,
 * its square norm is that of rounding errors. Points of n different channels leave
 * about 1/n² of the norm of the order before, at least. */
static const double LEAST_NORM = 1e-20;

/* Arrays of [channels of a window][correlations] doubles that a fit needs. */
typedef struct fit_space {
    double *weight;  /* 0: the sample does not count */
    double *re, *im; /* values, 0 where they do not count */
    double *fit_re, *fit_im;
    double *now, *before; /* polynomials of this order and the one before */
} fit_space;

enum { NUM_ARRAYS = 7 };

/* Sums over the channels of a window, for each correlation. */
typedef struct fit_sums {
    double norm[TESS_MAX_CORR], shift[TESS_MAX_CORR];
    double re[TESS_MAX_CORR], im[TESS_MAX_CORR];
} fit_sums;

/* A window of a row. */
typedef struct fit_window {
    const double *place; /* [num_chan] */
    const bool *is_line; /* [num_chan] */
    int64_t num_chan;
    int num_corr;
    float *vis, *weight; /* of the block */
} fit_window;

/* ---- what is fitted ---- */

static void place_window(const double *freq_hz, int64_t first, int64_t end,
                         double *place)
{
    double low_hz = INFINITY, high_hz = -INFINITY;
    for (int64_t c = first; c < end; ++c) {
        low_hz = fmin(low_hz, freq_hz[c]);
        high_hz = fmax(high_hz, freq_hz[c]);
    }
    const double half_hz = 0.5 * (high_hz - low_hz);
    const double middle_hz = low_hz + half_hz;
    for (int64_t c = first; c < end; ++c)
        place[c] = half_hz > 0 ? (freq_hz[c] - middle_hz) / half_hz : 0;
}

tess_status continuum_create(const tess_vis_segment *segment, int order, continuum *fit)
{
    tess_status status = TESS_OK;
    const int64_t n = segment->num_chan;
    *fit = (continuum){.order = order, .num_chan = n};
    fit->is_line = tess_alloc_zero(n, sizeof *fit->is_line);
    fit->place = tess_alloc(n, sizeof *fit->place);
    fit->end = tess_alloc(n, sizeof *fit->end);
    if (!fit->is_line || !fit->place || !fit->end)
        TESS_FAIL(TESS_ERR_ALLOC, "continuum of %lld channels", (long long)n);
    for (int64_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n; ++end)
            if (segment->chan_spw[end] != segment->chan_spw[first]) break;
        place_window(segment->freq_hz, first, end, fit->place);
        fit->end[fit->num_windows++] = end;
    }
cleanup:
    return status;
}

void continuum_free(continuum *fit)
{
    tess_free(fit->is_line);
    tess_free(fit->place);
    tess_free(fit->end);
    *fit = (continuum){0};
}

int64_t continuum_num_fitted(const continuum *fit, int k)
{
    int64_t count = 0;
    for (int64_t c = k > 0 ? fit->end[k - 1] : 0; c < fit->end[k]; ++c)
        count += !fit->is_line[c];
    return count;
}

/* ---- fits ---- */

static fit_space space_at(double *memory, int64_t size)
{
    return (fit_space){.weight = memory,
                       .re = memory + size,
                       .im = memory + 2 * size,
                       .fit_re = memory + 3 * size,
                       .fit_im = memory + 4 * size,
                       .now = memory + 5 * size,
                       .before = memory + 6 * size};
}

static bool is_good(const float *vis, float weight)
{
    return weight > 0 && isfinite(weight) && isfinite(vis[0]) && isfinite(vis[1]);
}

/* Fills in the points of a fit, and begins with the polynomial of order 0. `points` and
 * `good` become the numbers of samples that are fitted, and that are good. */
static void take_points(const fit_window *window, const fit_space *space,
                        int64_t points[], int64_t good[])
{
    const int corrs = window->num_corr;
    for (int64_t c = 0; c < window->num_chan; ++c)
        for (int j = 0; j < corrs; ++j) {
            const int64_t k = c * corrs + j;
            const float *vis = window->vis + 2 * k;
            const bool is_used = is_good(vis, window->weight[k]);
            const bool counts = is_used && !window->is_line[c];
            points[j] += counts;
            good[j] += is_used;
            space->weight[k] = counts ? (double)window->weight[k] : 0;
            space->re[k] = counts ? (double)vis[0] : 0;
            space->im[k] = counts ? (double)vis[1] : 0;
            space->fit_re[k] = space->fit_im[k] = space->before[k] = 0;
            space->now[k] = 1;
        }
}

/* Sums of what is left of the values, times the polynomial. */
static void sum_points(const fit_window *window, const fit_space *space, fit_sums *sums)
{
    const int corrs = window->num_corr;
    *sums = (fit_sums){{0}, {0}, {0}, {0}};
    for (int64_t c = 0; c < window->num_chan; ++c)
        for (int j = 0; j < corrs; ++j) {
            const int64_t k = c * corrs + j;
            const double p = space->now[k], wp = space->weight[k] * p;
            sums->norm[j] += wp * p;
            sums->shift[j] += wp * p * window->place[c];
            sums->re[j] += wp * (space->re[k] - space->fit_re[k]);
            sums->im[j] += wp * (space->im[k] - space->fit_im[k]);
        }
}

/* Adds the term of this order, and makes the polynomial of the next one. */
static void add_term(const fit_window *window, const fit_sums *sums,
                     const double *norm_before, const fit_space *space)
{
    const int corrs = window->num_corr;
    double re[TESS_MAX_CORR], im[TESS_MAX_CORR], alpha[TESS_MAX_CORR],
        beta[TESS_MAX_CORR];
    for (int j = 0; j < corrs; ++j) {
        const double norm = sums->norm[j];
        const bool any = norm > 0;
        re[j] = any ? sums->re[j] / norm : 0;
        im[j] = any ? sums->im[j] / norm : 0;
        alpha[j] = any ? sums->shift[j] / norm : 0;
        beta[j] = any && norm_before[j] > 0 ? norm / norm_before[j] : 0;
    }
    for (int64_t c = 0; c < window->num_chan; ++c)
        for (int j = 0; j < corrs; ++j) {
            const int64_t k = c * corrs + j;
            const double p = space->now[k];
            space->fit_re[k] += re[j] * p;
            space->fit_im[k] += im[j] * p;
            space->now[k] =
                (window->place[c] - alpha[j]) * p - beta[j] * space->before[k];
            space->before[k] = p;
        }
}

/* Subtracts the fit from a correlation, or flags it. */
static void finish_corr(const fit_window *window, const fit_space *space, int j,
                        bool fits)
{
    for (int64_t c = 0; c < window->num_chan; ++c) {
        const int64_t k = c * window->num_corr + j;
        float *vis = window->vis + 2 * k;
        if (!fits) {
            window->weight[k] = TESS_WEIGHT_FLAGGED;
            continue;
        }
        vis[0] = (float)((double)vis[0] - space->fit_re[k]);
        vis[1] = (float)((double)vis[1] - space->fit_im[k]);
    }
}

/* Returns whether a correlation with good samples could not be fitted. */
static bool fit_window_of_row(const fit_window *window, int order,
                              const fit_space *space)
{
    int64_t points[TESS_MAX_CORR] = {0}, good[TESS_MAX_CORR] = {0};
    bool fits[TESS_MAX_CORR], any_unfit = false;
    double norm_before[TESS_MAX_CORR] = {0};
    take_points(window, space, points, good);
    for (int j = 0; j < window->num_corr; ++j)
        fits[j] = points[j] > order;
    for (int term = 0; term <= order; ++term) {
        fit_sums sums;
        sum_points(window, space, &sums);
        for (int j = 0; j < window->num_corr; ++j)
            fits[j] = fits[j] && sums.norm[j] > LEAST_NORM * norm_before[j];
        add_term(window, &sums, norm_before, space);
        memcpy(norm_before, sums.norm, sizeof norm_before);
    }
    for (int j = 0; j < window->num_corr; ++j) {
        finish_corr(window, space, j, fits[j]);
        any_unfit = any_unfit || (!fits[j] && good[j] > 0);
    }
    return any_unfit;
}

/* Returns the number of windows of the row that could not be fitted. */
static int64_t fit_row(const continuum *fit, const tess_vis_block *block, int64_t row,
                       const fit_space *space)
{
    int64_t num_unfit = 0;
    for (int k = 0; k < fit->num_windows; ++k) {
        const int64_t first = k > 0 ? fit->end[k - 1] : 0;
        const int64_t at = (row * block->num_chan + first) * block->num_corr;
        const fit_window window = {.place = fit->place + first,
                                   .is_line = fit->is_line + first,
                                   .num_chan = fit->end[k] - first,
                                   .num_corr = block->num_corr,
                                   .vis = block->vis + 2 * at,
                                   .weight = block->weight + at};
        num_unfit += fit_window_of_row(&window, fit->order, space);
    }
    return num_unfit;
}

tess_status continuum_subtract(const continuum *fit, int num_threads,
                               tess_vis_block *block, int64_t *num_unfit)
{
    tess_status status = TESS_OK;
    const int64_t size = fit->num_chan * block->num_corr, rows = block->num_rows;
    const int64_t parts = rows < num_threads ? (rows > 0 ? rows : 1) : num_threads;
    int64_t unfit = 0;
    double *memory = tess_alloc(parts * NUM_ARRAYS * size, sizeof *memory);
    if (!memory)
        TESS_FAIL(TESS_ERR_ALLOC, "continuum of %lld channels",
                  (long long)fit->num_chan);
#pragma omp parallel for num_threads((int)parts) schedule(static, 1)                   \
    reduction(+ : unfit)
    for (int64_t part = 0; part < parts; ++part) {
        const fit_space space = space_at(memory + part * NUM_ARRAYS * size, size);
        for (int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row)
            unfit += fit_row(fit, block, row, &space);
    }
    *num_unfit = unfit;
cleanup:
    tess_free(memory);
    return status;
}
