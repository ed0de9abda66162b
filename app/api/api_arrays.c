/* Gridding of arrays in memory: from the caller's arrays to samples and an image of the
 * gridder, and back. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api_calls.h"
#include "tess_const.h"
#include "tess_gridder.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_samples.h"
#include "tess_scale.h"
#include "tess_threads.h"
#include "tess_waiting.h"
#include "tessera/tess_arrays.h"

/* The widest error that a kernel is made for, and the smallest in single precision. */
static const double LARGEST_ACCURACY = 1e-2, SINGLE_ACCURACY = 1e-5;
static const int64_t MAX_PIXELS = 1 << 20; /* along an axis */

/* One axis of the image as the gridder sees it: pixel k at
 * ±(center + (k − ⌊count/2⌋)·step), − on the l axis. */
typedef struct array_axis {
    int64_t count;
    double step, center;
    int uvw;           /* 0: belongs to the caller's u, 1: to v */
    double sign;       /* of that coordinate */
    int64_t byte_step; /* from pixel to pixel in the caller's image */
} array_axis;

typedef struct array_run {
    const tess_array_opts *opts;
    const tess_array_vis *vis;
    tess_array_image image;
    bool forward;    /* visibilities to image */
    array_axis l, m; /* along rows and columns of the gridder's image */
    bool borrows_vis, borrows_weight;
    double *inv_lambda;
    double inv_lambda_min, inv_lambda_max;
    double w_min_lambda, w_max_lambda;
    double largest_weight, largest_vis;
    double vis_scale, weight_scale, image_scale; /* what is gridded has been multiplied
                                                    by these powers of two */
    tess_samples samples;
    tess_geom geom;
    int threads;
    tess_gridder *gridder; /* NULL without visibilities */
    const tess_grid_plan *plan;
    tess_array_report report;
    double mark; /* time of the last lap */
} array_run;

void tess_array_opts_default(tess_array_opts *opts)
{
    *opts = (tess_array_opts){.accuracy = 1e-4, .do_w = true};
}

static void lap(array_run *run, double *seconds)
{
    const double now = tess_time_now();
    *seconds += now - run->mark;
    run->mark = now;
}

/* ---- checks and set-up ---- */

static tess_status check_sizes(const array_run *run)
{
    tess_status status = TESS_OK;
    const tess_array_opts *opts = run->opts;
    const tess_array_vis *vis = run->vis;
    if (opts->nx < 1 || opts->ny < 1 || opts->nx > MAX_PIXELS || opts->ny > MAX_PIXELS)
        TESS_FAIL(TESS_ERR_USAGE,
                  "an image of %lld x %lld pixels; each must be 1 to %lld",
                  (long long)opts->nx, (long long)opts->ny, (long long)MAX_PIXELS);
    if (vis->num_rows < 0 || vis->num_chan < 0 || vis->num_rows >= INT32_MAX ||
        vis->num_chan >= INT32_MAX)
        TESS_FAIL(TESS_ERR_USAGE,
                  "%lld rows x %lld channels; each must be 0 to 2^31 - 2",
                  (long long)vis->num_rows, (long long)vis->num_chan);
    if (!run->image.data) TESS_FAIL(TESS_ERR_USAGE, "no image array");
    if (vis->num_rows > 0 && vis->num_chan > 0 &&
        (!vis->uvw || !vis->freq || !vis->vis))
        TESS_FAIL(TESS_ERR_USAGE, "no array of %s",
                  !vis->uvw    ? "positions"
                  : !vis->freq ? "frequencies"
                               : "visibilities");
cleanup:
    return status;
}

static tess_status check_opts(const array_run *run)
{
    tess_status status = TESS_OK;
    const tess_array_opts *opts = run->opts;
    const double step_l = fabs(opts->step_l), step_m = fabs(opts->step_m);
    if (!(step_l > 0 && step_l < 1 && step_m > 0 && step_m < 1))
        TESS_FAIL(TESS_ERR_USAGE,
                  "pixels of %g x %g direction cosines; their size must be > 0 and < 1",
                  opts->step_l, opts->step_m);
    if (!(fabs(opts->center_l) <= 1 && fabs(opts->center_m) <= 1))
        TESS_FAIL(TESS_ERR_USAGE, "image centre l = %g, m = %g is not in the sky",
                  opts->center_l, opts->center_m);
    if (!(opts->accuracy > 0 && opts->accuracy < 1))
        TESS_FAIL(TESS_ERR_USAGE, "accuracy %g; it must be between 1e-12 and 1e-2",
                  opts->accuracy);
    if (!run->vis->is_double && !opts->double_grid && opts->accuracy < SINGLE_ACCURACY)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "accuracy %g is beyond single precision, which reaches %g; use double "
            "precision",
            opts->accuracy, SINGLE_ACCURACY);
    if (opts->threads < 0 || opts->threads > 65536)
        TESS_FAIL(TESS_ERR_USAGE, "%d threads", opts->threads);
    if (!(opts->padding_min >= 0 && opts->padding_max >= 0) ||
        (opts->padding_max > 0 && opts->padding_max < opts->padding_min))
        TESS_FAIL(TESS_ERR_USAGE, "paddings between %g and %g", opts->padding_min,
                  opts->padding_max);
cleanup:
    return status;
}

/* The gridder's rows run along the axis whose pixels are nearer to one another in the
 * caller's memory: nothing needs to be transposed, since u, l and v, m enter alike. Its
 * l grows towards smaller column numbers and its m with the row number. */
static void choose_axes(array_run *run)
{
    const tess_array_opts *opts = run->opts;
    const array_axis x = {opts->nx, opts->step_l,     opts->center_l, 0,
                          1,        run->image.step_x};
    const array_axis y = {opts->ny, opts->step_m,     opts->center_m, 1,
                          1,        run->image.step_y};
    const bool x_fast = llabs(x.byte_step) <= llabs(y.byte_step);
    run->l = x_fast ? x : y;
    run->m = x_fast ? y : x;
    if (run->l.step > 0) { /* l and u change sign together */
        run->l.center = -run->l.center;
        run->l.sign = -1;
    }
    if (run->m.step < 0) {
        run->m.center = -run->m.center;
        run->m.sign = -1;
    }
    run->l.step = fabs(run->l.step);
    run->m.step = fabs(run->m.step);
}

static int64_t value_bytes(bool is_double)
{
    return is_double ? 2 * (int64_t)sizeof(double) : 2 * (int64_t)sizeof(float);
}

/* Memory for samples; arrays that can be used in place are borrowed. */
static tess_status make_samples(array_run *run)
{
    tess_status status = TESS_OK;
    const tess_array_vis *vis = run->vis;
    tess_samples *samples = &run->samples;
    const bool is_double = vis->is_double || run->opts->double_grid;
    const bool same = is_double == vis->is_double;
    const int64_t bytes = value_bytes(is_double), chans = vis->num_chan;
    const int64_t num_vis = vis->num_rows * vis->num_chan;
    *samples = (tess_samples){.is_double = is_double,
                              .num_pol = 1,
                              .num_weight = vis->weight || vis->mask ? 1 : 0,
                              .num_rows = vis->num_rows,
                              .num_vis = num_vis,
                              .inv_lambda = run->inv_lambda};
    run->borrows_vis =
        same && vis->vis_step_chan == bytes && vis->vis_step_row == chans * bytes;
    run->borrows_weight = same && vis->weight && !vis->mask &&
                          vis->weight_step_chan == bytes / 2 &&
                          vis->weight_step_row == chans * bytes / 2;
    samples->uvw_m = tess_alloc(3 * vis->num_rows, sizeof *samples->uvw_m);
    samples->chan_base = tess_alloc_zero(vis->num_rows, sizeof *samples->chan_base);
    samples->num_chan = tess_alloc(vis->num_rows, sizeof *samples->num_chan);
    samples->vis_first = tess_alloc(vis->num_rows, sizeof *samples->vis_first);
    samples->vis = run->borrows_vis ? vis->vis : tess_alloc(num_vis, (size_t)bytes);
    if (run->borrows_weight) {
        /* the gridder reads weights only */
        memcpy(&samples->weight, &vis->weight, sizeof samples->weight);
    } else if (samples->num_weight > 0)
        samples->weight = tess_alloc(num_vis, (size_t)bytes / 2);
    else
        run->borrows_weight = true; /* there are none */
    if (!samples->uvw_m || !samples->chan_base || !samples->num_chan ||
        !samples->vis_first || !samples->vis ||
        (!samples->weight && !run->borrows_weight))
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld visibilities",
                  (long long)num_vis);
cleanup:
    return status;
}

static tess_status make_channels(array_run *run)
{
    tess_status status = TESS_OK;
    const tess_array_vis *vis = run->vis;
    run->inv_lambda = tess_alloc(vis->num_chan, sizeof *run->inv_lambda);
    if (!run->inv_lambda) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    run->inv_lambda_min = INFINITY;
    for (int64_t c = 0; c < vis->num_chan; ++c) {
        double freq_hz;
        memcpy(&freq_hz, (const char *)vis->freq + c * vis->freq_step, sizeof freq_hz);
        if (!(freq_hz > 0 && isfinite(freq_hz)))
            TESS_FAIL(TESS_ERR_INPUT, "frequency of channel %lld is %g Hz",
                      (long long)c, freq_hz);
        run->inv_lambda[c] = freq_hz / TESS_SPEED_OF_LIGHT_M_S;
        run->inv_lambda_min = fmin(run->inv_lambda_min, run->inv_lambda[c]);
        run->inv_lambda_max = fmax(run->inv_lambda_max, run->inv_lambda[c]);
    }
cleanup:
    return status;
}

/* ---- the caller's rows ---- */

static inline double load(const void *from, bool is_double)
{
    double full;
    float single;
    if (is_double) {
        memcpy(&full, from, sizeof full);
        return full;
    }
    memcpy(&single, from, sizeof single);
    return (double)single;
}

static inline void store(void *to, bool is_double, double value)
{
    const float single = (float)value;
    if (is_double)
        memcpy(to, &value, sizeof value);
    else
        memcpy(to, &single, sizeof single);
}

static inline const char *vis_at(const tess_array_vis *vis, int64_t row, int64_t chan)
{
    return (const char *)vis->vis + row * vis->vis_step_row + chan * vis->vis_step_chan;
}

/* Weight of a visibility: 0 when it is masked. */
static inline double weight_at(const tess_array_vis *vis, int64_t row, int64_t chan)
{
    if (vis->mask &&
        vis->mask[row * vis->mask_step_row + chan * vis->mask_step_chan] == 0)
        return 0;
    if (!vis->weight) return 1;
    return load((const char *)vis->weight + row * vis->weight_step_row +
                    chan * vis->weight_step_chan,
                vis->is_double);
}

static void load_uvw(const tess_array_vis *vis, int64_t row, double uvw_m[3])
{
    for (int k = 0; k < 3; ++k)
        memcpy(&uvw_m[k],
               (const char *)vis->uvw + row * vis->uvw_step_row +
                   k * vis->uvw_step_axis,
               sizeof *uvw_m);
}

/* Largest magnitudes of weights and of parts of values that are used. */
typedef struct array_largest {
    double weight, vis;
} array_largest;

/* Take over weight and value of a row's visibilities; returns how many are used, or −1
 * − c when channel c has one that is not finite. */
static int64_t take_row(const array_run *run, int64_t row, array_largest *largest)
{
    const tess_array_vis *vis = run->vis;
    const tess_samples *samples = &run->samples;
    const bool is_double = samples->is_double, in_double = vis->is_double;
    const int64_t first = row * vis->num_chan, element = is_double ? 8 : 4;
    const bool copy_vis = run->forward && !run->borrows_vis;
    int64_t used = 0;
    for (int64_t c = 0; c < vis->num_chan; ++c) {
        const double weight = weight_at(vis, row, c);
        double re = 0, im = 0;
        if (weight != 0 && run->forward) {
            const char *value = vis_at(vis, row, c);
            re = load(value, in_double);
            im = load(value + (in_double ? 8 : 4), in_double);
        }
        if (!isfinite(weight) || !isfinite(re) || !isfinite(im)) return -1 - c;
        if (copy_vis) {
            char *to = (char *)samples->vis + 2 * element * (first + c);
            store(to, is_double, re);
            store(to + element, is_double, im);
        }
        if (!run->borrows_weight)
            store((char *)samples->weight + element * (first + c), is_double, weight);
        used += weight != 0;
        if (fabs(weight) > largest->weight) largest->weight = fabs(weight);
        if (fabs(re) > largest->vis) largest->vis = fabs(re);
        if (fabs(im) > largest->vis) largest->vis = fabs(im);
    }
    return used;
}

/* Puts a row's place in the samples, and its position on the gridder's axes; returns
 * whether the position is finite. */
static bool place_row(array_run *run, int64_t row, double uvw_m[3])
{
    const tess_array_vis *vis = run->vis;
    tess_samples *samples = &run->samples;
    const double sign_w = run->opts->negate_w ? -1 : 1;
    load_uvw(vis, row, uvw_m);
    const bool finite = TESS_IS_BASELINE(uvw_m);
    samples->num_chan[row] = (int32_t)vis->num_chan;
    samples->vis_first[row] = row * vis->num_chan;
    samples->uvw_m[3 * row] = finite ? run->l.sign * uvw_m[run->l.uvw] : 0;
    samples->uvw_m[3 * row + 1] = finite ? run->m.sign * uvw_m[run->m.uvw] : 0;
    samples->uvw_m[3 * row + 2] = finite ? sign_w * uvw_m[2] : 0;
    return finite;
}

/* TESS_ERR_INPUT, which says what of a row is not finite. */
static tess_status refuse_row(const array_run *run, int64_t row)
{
    tess_status status = TESS_OK;
    array_largest largest = {0};
    const int64_t used = take_row(run, row, &largest);
    if (used < 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "visibility or weight of row %lld, channel %lld is not finite; mask "
                  "it or give it weight 0",
                  (long long)row, (long long)(-1 - used));
    TESS_FAIL(TESS_ERR_INPUT, "uvw of row %lld is not finite; mask the row",
              (long long)row);
cleanup:
    return status;
}

/* Takes positions and values of all rows, and finds the range of |w| and the largest
 * magnitudes. TESS_ERR_INPUT names the first row that is not finite. */
static tess_status take_rows(array_run *run)
{
    tess_status status = TESS_OK;
    const tess_array_vis *vis = run->vis;
    int64_t bad_row = INT64_MAX, num_vis = 0;
    double w_min = INFINITY, w_max = 0, largest_weight = 0, largest_vis = 0;
#pragma omp parallel for num_threads(run->threads) schedule(static) \
        reduction(+ : num_vis) reduction(min : bad_row, w_min) \
        reduction(max : w_max, largest_weight, largest_vis)
    for (int64_t row = 0; row < vis->num_rows; ++row) {
        double uvw_m[3];
        array_largest largest = {0};
        const int64_t used = take_row(run, row, &largest);
        const bool finite = place_row(run, row, uvw_m);
        if (used < 0 || (used > 0 && !finite)) bad_row = row < bad_row ? row : bad_row;
        if (used <= 0 || !finite) continue;
        num_vis += used;
        largest_weight = fmax(largest_weight, largest.weight);
        largest_vis = fmax(largest_vis, largest.vis);
        w_min = fmin(w_min, fabs(uvw_m[2]) * run->inv_lambda_min);
        w_max = fmax(w_max, fabs(uvw_m[2]) * run->inv_lambda_max);
    }
    if (bad_row < INT64_MAX) TESS_TRY(refuse_row(run, bad_row));
    run->report.num_vis = num_vis;
    run->w_min_lambda = w_min;
    run->w_max_lambda = w_max;
    run->largest_weight = largest_weight;
    run->largest_vis = largest_vis;
cleanup:
    return status;
}

/* A borrowed array becomes a copy, which may be changed. */
static tess_status own_array(void **array, int64_t bytes, bool *borrowed)
{
    tess_status status = TESS_OK;
    if (!*borrowed) return TESS_OK;
    void *copy = tess_alloc(bytes, 1);
    if (!copy) TESS_FAIL(TESS_ERR_ALLOC, "scaled visibilities");
    memcpy(copy, *array, (size_t)bytes);
    *array = copy;
    *borrowed = false;
cleanup:
    return status;
}

/* Multiply numbers of an array, [num_vis][parts], by a factor, but those of weight 0,
 * which may be anything, by 0. */
static void scale_array(const array_run *run, void *array, int parts, double factor)
{
    const tess_samples *samples = &run->samples;
    const bool is_double = samples->is_double;
    const int64_t element = is_double ? 8 : 4;
#pragma omp parallel for num_threads(run->threads) schedule(static)
    for (int64_t k = 0; k < samples->num_vis; ++k) {
        const bool used =
            !samples->weight ||
            load((const char *)samples->weight + element * k, is_double) != 0;
        for (int part = 0; part < parts; ++part) {
            char *at = (char *)array + element * (parts * k + part);
            store(at, is_double, used ? load(at, is_double) * factor : 0);
        }
    }
}

/* Very small or very large weights and visibilities, whose products would leave the
 * range of their type, are brought near 1. */
static tess_status scale_samples(array_run *run)
{
    tess_status status = TESS_OK;
    tess_samples *samples = &run->samples;
    const bool is_double = samples->is_double;
    const int64_t bytes = value_bytes(is_double) * samples->num_vis;
    run->vis_scale = tess_scale_for(run->largest_vis, is_double);
    run->weight_scale = tess_scale_for(run->largest_weight, is_double);
    if (run->vis_scale != 1) {
        TESS_TRY(own_array(&samples->vis, bytes, &run->borrows_vis));
        scale_array(run, samples->vis, 2, run->vis_scale);
    }
    if (run->weight_scale != 1) {
        TESS_TRY(own_array(&samples->weight, bytes / 2, &run->borrows_weight));
        scale_array(run, samples->weight, 1, run->weight_scale);
    }
cleanup:
    return status;
}

/* ---- plan ---- */

/* The caller's image, if sums can be made in it: it takes less memory then. */
static void *own_pixels(const array_run *run)
{
    const bool is_double = run->samples.is_double;
    const int64_t bytes = is_double ? sizeof(double) : sizeof(float);
    const bool is_aligned = (uintptr_t)run->image.data % (uintptr_t)bytes == 0;
    return run->forward && is_aligned && run->image.is_double == is_double &&
                   run->l.byte_step == bytes && run->m.byte_step == bytes * run->l.count
               ? run->image.data
               : NULL;
}

static tess_status make_plan(array_run *run)
{
    tess_status status = TESS_OK;
    tess_grid_opts grid;
    tess_gridder_report spent;
    tess_grid_opts_default(&grid);
    grid.accuracy = fmin(run->opts->accuracy, LARGEST_ACCURACY);
    grid.do_w = run->opts->do_w &&
                !tess_grid_w_negligible(&run->geom, run->w_max_lambda, grid.accuracy);
    grid.w_min_lambda = run->w_min_lambda;
    grid.w_max_lambda = run->w_max_lambda;
    grid.num_vis = run->report.num_vis;
    grid.threads = run->threads;
    grid.precision =
        run->samples.is_double ? TESS_PRECISION_DOUBLE : TESS_PRECISION_SINGLE;
    grid.padding_min = run->opts->padding_min;
    grid.padding_max = run->opts->padding_max;
    grid.worst_pixel = grid.mean_visibility = true;
    TESS_TRY(tess_gridder_create(&run->geom, &grid, &run->samples, run->forward,
                                 own_pixels(run), &run->gridder));
    tess_gridder_report_make(run->gridder, &spent);
    run->plan = tess_gridder_plan(run->gridder);
    run->report.sort_s = spent.sort_s;
    lap(run, &run->report.plan_s);
    run->report.plan_s -= spent.sort_s;
cleanup:
    return status;
}

static void note_plan(array_run *run)
{
    const tess_grid_plan *plan = run->plan;
    tess_array_report *report = &run->report;
    report->grid_u = plan->nu;
    report->grid_v = plan->nv;
    report->num_planes = plan->num_planes;
    report->support = plan->kernel.support;
    report->double_grid = plan->is_double;
    report->error_estimate = plan->error_estimate;
    report->rounding_estimate = tess_grid_rounding(plan);
    tess_grid_plan_text(plan, report->plan, (int)sizeof report->plan);
}

static tess_status choose_threads(array_run *run)
{
    tess_status status = TESS_OK;
    tess_comm *alone = NULL;
    run->threads = run->opts->threads;
    if (run->threads > 0) return TESS_OK;
    TESS_TRY(tess_comm_self(&alone));
    TESS_TRY(tess_threads_default(alone, &run->threads));
cleanup:
    tess_comm_free(alone);
    return status;
}

static tess_status start(array_run *run)
{
    tess_status status = TESS_OK;
    run->mark = tess_time_now();
    TESS_TRY(check_sizes(run));
    TESS_TRY(check_opts(run));
    choose_axes(run);
    run->geom = (tess_geom){.nx = run->l.count,
                            .ny = run->m.count,
                            .scale_rad = run->l.step,
                            .l0 = run->l.center,
                            .m0 = run->m.center,
                            .scale_m_rad = run->m.step};
    TESS_TRY(choose_threads(run));
    run->report.threads = run->threads;
    TESS_TRY(make_channels(run));
    TESS_TRY(make_samples(run));
    TESS_TRY(take_rows(run));
    if (run->forward) TESS_TRY(scale_samples(run));
    lap(run, &run->report.prepare_s);
    if (run->report.num_vis == 0) goto cleanup;
    TESS_TRY(make_plan(run));
    note_plan(run);
    lap(run, &run->report.plan_s);
cleanup:
    return status;
}

/* After the w-steps: whatever is not FFT is gridding, its set-up included. */
static void lap_steps(array_run *run)
{
    tess_gridder_report spent;
    double steps_s = 0;
    lap(run, &steps_s);
    tess_gridder_report_make(run->gridder, &spent);
    run->report.join_s = spent.join_s;
    run->report.fft_s = spent.fft_s;
    run->report.grid_s = steps_s - spent.fft_s - spent.join_s;
    run->report.grid_utilisation = spent.grid_utilisation;
}

static void finish(array_run *run, double begin, tess_array_report *report)
{
    if (run->borrows_vis) run->samples.vis = NULL;
    if (run->borrows_weight) run->samples.weight = NULL;
    tess_samples_free(&run->samples);
    tess_gridder_destroy(run->gridder);
    tess_free(run->inv_lambda);
    run->report.peak_bytes = tess_mem_peak_bytes();
    run->report.total_s = tess_time_now() - begin;
    if (report) *report = run->report;
}

/* ---- image rows ---- */

static char *pixel_at(const array_run *run, int64_t row, int64_t column)
{
    return (char *)run->image.data + row * run->m.byte_step + column * run->l.byte_step;
}

/* What a row of the sums is multiplied by, and the image before prediction. */
static void row_factor(const array_run *run, int64_t row, double *factor)
{
    const tess_geom *geom = &run->geom;
    const double m = tess_geom_m(geom, row);
    tess_grid_correction_row(run->plan, row, factor);
    for (int64_t i = 0; i < geom->nx; ++i) {
        if (isnan(factor[i])) factor[i] = 0; /* beyond the horizon */
        if (!run->opts->divide_by_n || !run->opts->do_w) continue;
        const double l = tess_geom_l(geom, i);
        factor[i] /= 1 + tess_geom_nm1(l * l + m * m);
    }
}

static void write_row(const array_run *run, const void *sums, const double *factor,
                      int64_t row)
{
    const int64_t nx = run->geom.nx;
    const bool is_double = run->plan->is_double;
    const double vis_unit = 1 / run->vis_scale, weight_unit = 1 / run->weight_scale;
    const char *from = (const char *)sums + row * nx * (is_double ? 8 : 4);
    for (int64_t i = 0; i < nx; ++i)
        store(pixel_at(run, row, i), run->image.is_double,
              factor[i] * load(from + i * (is_double ? 8 : 4), is_double) * vis_unit *
                  weight_unit);
}

/* False when a pixel is not finite. */
static bool read_row(const array_run *run, void *model, const double *factor,
                     int64_t row, double *largest)
{
    const int64_t nx = run->geom.nx;
    const bool is_double = run->plan->is_double;
    char *to = (char *)model + row * nx * (is_double ? 8 : 4);
    bool finite = true;
    for (int64_t i = 0; i < nx; ++i) {
        const double value = load(pixel_at(run, row, i), run->image.is_double);
        finite = finite && isfinite(value);
        if (fabs(value) > *largest) *largest = fabs(value);
        store(to + i * (is_double ? 8 : 4), is_double,
              factor[i] * (value * run->image_scale));
    }
    return finite;
}

/* All rows between the caller's image and the sums; the largest pixel that was read. */
static tess_status move_rows(const array_run *run, double *largest_out)
{
    tess_status status = TESS_OK;
    void *sums = tess_gridder_pixels(run->gridder);
    int64_t bad_row = INT64_MAX;
    bool short_of_memory = false;
    double largest = 0;
#pragma omp parallel num_threads(run->threads) reduction(min                           \
                                                         : bad_row)                    \
    reduction(||                                                                       \
              : short_of_memory) reduction(max                                         \
                                           : largest)
    {
        double *factor = tess_alloc(run->geom.nx, sizeof *factor);
        short_of_memory = !factor;
#pragma omp for schedule(dynamic, 16)
        for (int64_t row = 0; row < run->geom.ny; ++row) {
            if (!factor) continue;
            row_factor(run, row, factor);
            if (run->forward)
                write_row(run, sums, factor, row);
            else if (!read_row(run, sums, factor, row, &largest))
                bad_row = row < bad_row ? row : bad_row;
        }
        tess_free(factor);
    }
    if (short_of_memory) TESS_FAIL(TESS_ERR_ALLOC, "image rows");
    if (bad_row < INT64_MAX)
        TESS_FAIL(TESS_ERR_INPUT, "a pixel of image %s %lld is not finite",
                  run->m.uvw == 1 ? "row" : "column", (long long)bad_row);
    *largest_out = largest;
cleanup:
    return status;
}

/* The caller's image, as it is, and once more if its pixels need a scale. */
static tess_status read_image(array_run *run)
{
    tess_status status = TESS_OK;
    double largest;
    TESS_TRY(move_rows(run, &largest));
    run->image_scale = tess_scale_for(largest, run->samples.is_double);
    if (run->image_scale != 1) TESS_TRY(move_rows(run, &largest));
cleanup:
    return status;
}

static void clear_image(const array_run *run)
{
    for (int64_t row = 0; row < run->m.count; ++row)
        for (int64_t i = 0; i < run->l.count; ++i)
            store(pixel_at(run, row, i), run->image.is_double, 0);
}

/* ---- predicted visibilities ---- */

/* Weights, masks, the image's scale, and the caller's layout. */
static void give_rows(const array_run *run)
{
    const tess_array_vis *vis = run->vis;
    const tess_samples *samples = &run->samples;
    const bool from_double = samples->is_double, to_double = vis->is_double;
    const int64_t element = from_double ? 8 : 4;
    const bool nothing = run->report.num_vis == 0;
    const double unit = 1 / run->image_scale;
    if (run->borrows_vis && !vis->weight && !vis->mask && !nothing &&
        run->image_scale == 1)
        return;
#pragma omp parallel for num_threads(run->threads) schedule(static)
    for (int64_t row = 0; row < vis->num_rows; ++row)
        for (int64_t c = 0; c < vis->num_chan; ++c) {
            const double weight = nothing ? 0 : weight_at(vis, row, c);
            const int64_t at = samples->vis_first[row] + c;
            const char *from = (const char *)samples->vis + 2 * element * at;
            char *to =
                (char *)vis->vis + row * vis->vis_step_row + c * vis->vis_step_chan;
            double re = 0, im = 0;
            if (weight != 0) { /* others are undefined */
                re = load(from, from_double) * unit * weight;
                im = load(from + element, from_double) * unit * weight;
            }
            store(to, to_double, re);
            store(to + (to_double ? 8 : 4), to_double, im);
        }
}

/* ---- the two calls ---- */

tess_status tess_vis_to_dirty(const tess_array_opts *opts, const tess_array_vis *vis,
                              const tess_array_image *dirty, tess_array_report *report)
{
    tess_status status = api_call_begin();
    const double begin = tess_time_now();
    double largest;
    array_run run = {.opts = opts, .vis = vis, .image = *dirty, .forward = true};
    if (status != TESS_OK) return status;
    tess_waiting_begin(opts->threads);
    TESS_TRY(start(&run));
    if (run.report.num_vis == 0) {
        clear_image(&run);
        goto cleanup;
    }
    TESS_TRY(tess_gridder_image(run.gridder));
    lap_steps(&run);
    TESS_TRY(move_rows(&run, &largest));
    lap(&run, &run.report.correct_s);
cleanup:
    finish(&run, begin, report);
    tess_waiting_end();
    return api_call_end(status);
}

tess_status tess_dirty_to_vis(const tess_array_opts *opts,
                              const tess_array_image *dirty, const tess_array_vis *vis,
                              tess_array_report *report)
{
    tess_status status = api_call_begin();
    const double begin = tess_time_now();
    array_run run = {.opts = opts, .vis = vis, .image = *dirty, .image_scale = 1};
    if (status != TESS_OK) return status;
    tess_waiting_begin(opts->threads);
    TESS_TRY(start(&run));
    if (run.report.num_vis > 0) {
        TESS_TRY(read_image(&run));
        lap(&run, &run.report.correct_s);
        TESS_TRY(tess_gridder_predict(run.gridder));
        lap_steps(&run);
    }
    give_rows(&run);
    lap(&run, &run.report.correct_s);
cleanup:
    finish(&run, begin, report);
    tess_waiting_end();
    return api_call_end(status);
}
