/* Plans of w-projection. */
#include "projection_plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tess_const.h"
#include "tess_mem.h"
#include "tess_projection_pieces.h"

/* The grid is twice as wide as the image: w-kernels have tapers that fall over the
 * other half. Where the field is so wide that this would pass l = ±1, it is less. */
static const double PADDING = 2, LEAST_PADDING = 1.2, WIDEST_FIELD = 2;

/* Offsets and planes may use up this share of the accuracy together. Where they do not
 * reach the accuracy, the error of planes is at least this share of that of offsets. */
static const double SHARE = 0.95, PLANES_SHARE = 0.3;

/* Taper and factors may add these shares of the error. */
static const double TAPER_SHARE = 0.1, FACTOR_SHARE = 0.1;

/* Taps below this part of the error, relative to the largest tap, are left out. Those
 * around a kernel together weigh several times as much. */
static const double CUT_SHARE = 0.05;

/* An image may be expected, or measured, to be wrong by at most this part of itself. */
static const double MOST_ERROR = 0.3;

/* The kernels of a user are for a grid of whole cells, to this part of its field. */
static const double FIELD_WITHIN = 1e-6;

enum {
    OVERSAMPLING = 8, /* where none reaches the accuracy; else a multiple of it */
    LEAST_TILE =
        64, /* cells: as wide as kernels, so that halos are not most of a sum */
    LARGEST_TILE = 256,
    LEAST_FACTORED = 64, /* cells of kernels that a GPU is to take as products */
    SPARE_CELLS = 2 /* a visibility moves by up to half an offset: see piece_points */
};

static const int64_t DEFAULT_BYTES = (int64_t)2 << 30;

void tess_projection_opts_default(tess_projection_opts *opts)
{
    *opts = (tess_projection_opts){
        .tuned = true, .cached = true, .most_bytes = DEFAULT_BYTES};
}

void projection_destroy(tess_projection *projection)
{
    if (!projection) return;
    tess_gcf_plan_destroy(projection->gridder);
    tess_gcf_destroy(projection->gcf);
    tess_free(projection->taper_line[0]);
    tess_free(projection->taper_line[1]);
    tess_free(projection);
}

static tess_gcf_spacing spacing_of(bool is_linear)
{
    return is_linear ? TESS_GCF_LINEAR : TESS_GCF_SQRT;
}

/* ---- choice ---- */

/* Computes n − 1 over the image: its mean, and its rms distance from the mean. */
static double spread_of(const tess_geom *geom, double *mean)
{
    enum { SIDE = 33 };
    double sum = 0, square = 0;
    for (int j = 0; j < SIDE; ++j)
        for (int i = 0; i < SIDE; ++i) {
            const double l = tess_geom_l(geom, (geom->nx - 1) * i / (SIDE - 1));
            const double m = tess_geom_m(geom, (geom->ny - 1) * j / (SIDE - 1));
            const double nm1 = tess_geom_nm1(l * l + m * m);
            sum += nm1;
            square += nm1 * nm1;
        }
    *mean = sum / (SIDE * SIDE);
    return sqrt(fmax(square / (SIDE * SIDE) - *mean * *mean, 0));
}

/* See tess_projection.h. */
static double offset_error(const tess_grid_plan *plan, int oversampling)
{
    return TESS_PI * sqrt(2.0) / 6 / oversampling / plan->projection->padding;
}

/* Computes the error of `num_planes` planes, for w that are spread evenly. The mean
 * square of distances in w is twice as large if planes are evenly spaced in √w as if
 * they are evenly spaced in w. */
static double plane_error(const tess_grid_plan *plan, int num_planes)
{
    const tess_projection *projection = plan->projection;
    if (num_planes == 1) return 0;
    return TESS_TWO_PI / sqrt(12.0) * (projection->opts.is_linear ? 1 : sqrt(2.0)) *
           plan->opts.w_max_lambda * projection->nm1_spread / (num_planes - 1);
}

/* Computes the error of offsets and planes together. */
static double layout_error(const tess_grid_plan *plan, const tess_gcf_layout *layout)
{
    return hypot(offset_error(plan, layout->oversampling),
                 plane_error(plan, layout->num_planes));
}

static int planes_for(const tess_grid_plan *plan, double error)
{
    if (plan->opts.w_max_lambda <= 0) return 1;
    const double planes = ceil(plane_error(plan, 2) / error) + 1;
    return planes < 2                     ? 2
           : planes > TESS_GCF_MAX_PLANES ? TESS_GCF_MAX_PLANES
                                          : (int)planes;
}

/* Finds the narrowest taper whose aliases stay below the error. */
static int choose_taper(double padding, double error)
{
    for (int support = TESS_MIN_SUPPORT; support < TESS_MAX_SUPPORT; support += 2) {
        tess_kernel kernel;
        tess_kernel_create(support, padding, &kernel);
        if (kernel.error <= error) return support;
    }
    return TESS_MAX_SUPPORT;
}

/* Estimates the bytes of tables. Kernels are as wide as the largest fringe in the part
 * of the field where tapers have not fallen. */
static double table_bytes(const tess_grid_plan *plan, const tess_gcf_opts *opts)
{
    const int planes = opts->layout.num_planes,
              half = opts->layout.oversampling / 2 + 1;
    const double field = fmax(opts->field_l, opts->field_m);
    const double edge = (1 - 0.5 / opts->padding) * field;
    const double gradient = edge / sqrt(fmax(1 - 2 * edge * edge, 0.04));
    double cells = 0;
    for (int p = 0; p < planes; ++p) {
        const double at = planes > 1 ? (double)p / (planes - 1) : 0;
        const double w = opts->layout.w_max_lambda *
                         (opts->layout.spacing == TESS_GCF_SQRT ? at * at : at);
        const double support =
            fmin(2 * w * gradient * field + opts->taper_support + TESS_GCF_STEP,
                 opts->max_support);
        cells += support * support;
    }
    return cells * half * half * (plan->is_double ? 16 : 8);
}

/* Returns the error that planes may have beside the error of offsets. */
static double planes_share(const tess_grid_plan *plan, double offsets)
{
    const double all = SHARE * plan->opts.accuracy;
    return fmax(PLANES_SHARE * offsets, sqrt(fmax(all * all - offsets * offsets, 0)));
}

static void set_oversampling(const tess_grid_plan *plan, int oversampling,
                             tess_gcf_layout *layout)
{
    const double offsets = offset_error(plan, oversampling);
    layout->oversampling = oversampling;
    layout->num_planes = planes_for(plan, planes_share(plan, offsets));
}

/* Chooses offsets and planes: those that are asked for, or the smallest tables that
 * reach the accuracy. If tables would take too much memory, there are fewer planes. */
static void choose_layout(const tess_grid_plan *plan, tess_gcf_opts *opts)
{
    const tess_projection_opts *asked = &plan->projection->opts;
    const double most = (double)asked->most_bytes;
    double least = INFINITY;
    int best = asked->oversampling > 0 ? asked->oversampling : OVERSAMPLING;
    for (int q = OVERSAMPLING;
         q <= TESS_GCF_MAX_OVERSAMPLING && asked->oversampling == 0;
         q += OVERSAMPLING) {
        set_oversampling(plan, q, &opts->layout);
        const double bytes = table_bytes(plan, opts);
        if (offset_error(plan, q) > 0.95 * SHARE * plan->opts.accuracy ||
            bytes > fmin(least, most))
            continue;
        least = bytes;
        best = q;
    }
    set_oversampling(plan, best, &opts->layout);
    while (table_bytes(plan, opts) > most && opts->layout.num_planes > 8)
        opts->layout.num_planes = opts->layout.num_planes * 3 / 4;
}

static tess_status choose_grid(tess_grid_plan *plan)
{
    tess_status status = TESS_OK;
    const tess_geom *geom = &plan->target.geom;
    const int64_t longest = geom->nx > geom->ny ? geom->nx : geom->ny;
    const double field = (double)longest * geom->scale_rad;
    double padding = PADDING;
    do {
        if (padding < LEAST_PADDING)
            TESS_FAIL(TESS_ERR_USAGE,
                      "an image of %.3g degrees is too wide for w-projection, whose "
                      "grid has to be wider; use --w stacking",
                      field / TESS_RAD_PER_DEG);
        plan->nu = tess_geom_fft_size((int64_t)ceil(padding * (double)geom->nx));
        plan->nv = tess_geom_fft_size((int64_t)ceil(padding * (double)geom->ny));
        padding -= 0.01;
    } while ((double)(plan->nu > plan->nv ? plan->nu : plan->nv) * geom->scale_rad >
             WIDEST_FIELD);
    plan->projection->padding =
        fmin((double)plan->nu / (double)geom->nx, (double)plan->nv / (double)geom->ny);
cleanup:
    return status;
}

/* ---- errors that are too large ---- */

/* Gives advice that makes the larger part of the error smaller. */
static const char *advice_of(const tess_grid_plan *plan, const tess_gcf_layout *layout)
{
    const bool few_planes = plane_error(plan, layout->num_planes) >
                            offset_error(plan, layout->oversampling);
    return few_planes
               ? "a smaller --oversampling or more --memory makes room for tables of "
                 "more planes of w, a smaller field needs fewer"
               : "more --oversampling helps";
}

const char *tess_projection_advice(const tess_grid_plan *plan)
{
    return advice_of(plan, &plan->projection->gcf->layout);
}

static tess_status refuse_error(const tess_grid_plan *plan,
                                const tess_gcf_layout *layout, double error,
                                const char *how)
{
    tess_status status = TESS_OK;
    const tess_geom *geom = &plan->target.geom;
    const int64_t longest = geom->nx > geom->ny ? geom->nx : geom->ny;
    if (error <= MOST_ERROR) return TESS_OK;
    TESS_FAIL(TESS_ERR_USAGE,
              "w-projection of %.3g degrees with w of up to %.4g wavelengths, by %d "
              "plane%s of oversampling %d, is %s to be off by %.2g of the image, which "
              "is more than %g: %s, and --w stacking keeps any accuracy",
              (double)longest * geom->scale_rad / TESS_RAD_PER_DEG,
              plan->opts.w_max_lambda, layout->num_planes,
              layout->num_planes == 1 ? "" : "s", layout->oversampling, how, error,
              MOST_ERROR, advice_of(plan, layout));
cleanup:
    return status;
}

tess_status tess_projection_accept(const tess_grid_plan *plan, double measured_error)
{
    /* a user's convolution functions may be of something else than a plain image */
    if (plan->projection->taper_line[0]) return TESS_OK;
    return refuse_error(plan, &plan->projection->gcf->layout, measured_error,
                        "measured");
}

/* ---- tables ---- */

static tess_status make_tables(tess_grid_plan *plan, const tess_gcf_opts *opts)
{
    tess_status status = TESS_OK;
    tess_projection *projection = plan->projection;
    const int last = opts->layout.num_planes - 1;
    TESS_TRY(projection->opts.cached ? tess_gcf_create_cached(opts, &projection->gcf,
                                                              &projection->was_cached)
                                     : tess_gcf_create(opts, &projection->gcf));
    if (projection->gcf->plane[last].is_cut)
        TESS_FAIL(TESS_ERR_USAGE,
                  "w-kernels at w of %.3g wavelengths are wider than %d cells, all "
                  "there is room for in a grid of %lld × %lld cells; use --w stacking, "
                  "or a larger --size with the same --scale",
                  plan->opts.w_max_lambda, opts->max_support, (long long)plan->nu,
                  (long long)plan->nv);
cleanup:
    return status;
}

/* Chooses the strategy that was the fastest when it was tuned. Without tuning it is
 * `factored`, but on a GPU only if kernels are so wide that they are products. */
static void choose_strategy(tess_grid_plan *plan, tess_gcf_grid_opts *opts)
{
    const tess_projection_opts *asked = &plan->projection->opts;
    const int support = plan->projection->gcf->max_support;
    const tess_gcf_tuning wanted = {.backend = opts->backend,
                                    .degrid = plan->opts.worst_pixel,
                                    .is_double = plan->is_double,
                                    .num_pol = plan->opts.num_pol,
                                    .support = support};
    tess_gcf_tuning found;
    if (asked->tuned && tess_gcf_tuned(&wanted, &found)) {
        opts->strategy = found.strategy;
        opts->shape = found.shape;
    } else if (opts->backend == TESS_GCF_DEVICE)
        opts->strategy =
            support < LEAST_FACTORED ? &tess_gcf_tiled : &tess_gcf_factored;
    else
        opts->strategy = &tess_gcf_factored;
}

static tess_status make_gridder(tess_grid_plan *plan, double error)
{
    tess_status status = TESS_OK;
    tess_projection *projection = plan->projection;
    const bool predicts = plan->opts.worst_pixel;
    tess_gcf_grid_opts opts;
    tess_gcf_grid_opts_default(&opts);
    /* the backend of a device grids samples from there */
    opts.backend = plan->backend->start ? TESS_GCF_DEVICE : TESS_GCF_CPU;
    opts.strategy = projection->opts.strategy;
    if (!opts.strategy) choose_strategy(plan, &opts);
    projection->opts.strategy = opts.strategy;
    if (!tess_gcf_strategy_there(opts.backend, opts.strategy, predicts))
        TESS_FAIL(TESS_ERR_USAGE, "there is no strategy '%s' to %s with backend %s",
                  tess_gcf_strategy_name(opts.strategy),
                  predicts ? "predict" : "make images", plan->backend->name);
    opts.threads = plan->opts.threads;
    opts.factor_error = fmax(FACTOR_SHARE * error, 1e-7);
    /* factors cost less than merging */
    opts.merge = opts.backend == TESS_GCF_CPU &&
                 (opts.strategy != &tess_gcf_factored ||
                  projection->gcf->max_support < opts.least_cells);
    TESS_TRY(tess_gcf_plan_create(projection->gcf, &opts, &projection->gridder));
    if (projection_outer_threads(plan) > 1) /* bricks are shared, not what is in one */
        tess_gcf_plan_set_threads(projection->gridder, 1);
cleanup:
    return status;
}

/* Makes bricks as wide as the kernels, so that what is added to the grid is not mostly
 * halo. Bricks must not meet themselves around the edge of the grid. */
static void choose_tile(tess_grid_plan *plan)
{
    const int64_t shorter = plan->nu < plan->nv ? plan->nu : plan->nv;
    plan->footprint = plan->projection->gcf->max_support + SPARE_CELLS;
    plan->tile = LEAST_TILE;
    while (plan->tile < LARGEST_TILE && plan->tile < plan->footprint)
        plan->tile *= 2;
    while (plan->tile > TESS_TILE && plan->tile + plan->footprint > shorter)
        plan->tile /= 2;
}

const tess_gcf *tess_projection_table(const tess_grid_plan *plan)
{
    return plan->projection ? plan->projection->gcf : NULL;
}

/* ---- a user's kernels ---- */

/* Finds the number of cells of a grid that has the field of the kernels. */
static tess_status fit_axis(double field, double scale_rad, int64_t pixels,
                            int64_t *cells)
{
    tess_status status = TESS_OK;
    const double wanted = field / scale_rad;
    *cells = (int64_t)floor(wanted + 0.5);
    if (*cells % 2 != 0 || fabs(wanted - (double)*cells) > FIELD_WITHIN * wanted ||
        (double)*cells < LEAST_PADDING * (double)pixels)
        TESS_FAIL(
            TESS_ERR_INPUT,
            "the convolution functions are for a grid with a field of %.9g "
            "direction cosines, which is %.6g pixels of the image; that has to be "
            "even, and %.6g at least",
            field, wanted, LEAST_PADDING * (double)pixels);
cleanup:
    return status;
}

static tess_status fit_grid(tess_grid_plan *plan)
{
    tess_status status = TESS_OK;
    const tess_projection_kernels *kernels = plan->projection->opts.kernels;
    const tess_geom *geom = &plan->target.geom;
    TESS_TRY(fit_axis(kernels->field_l, geom->scale_rad, geom->nx, &plan->nu));
    TESS_TRY(fit_axis(kernels->field_m, tess_geom_scale_m(geom), geom->ny, &plan->nv));
    plan->projection->padding =
        fmin((double)plan->nu / (double)geom->nx, (double)plan->nv / (double)geom->ny);
    if (kernels->w_max_lambda < plan->opts.w_max_lambda * (1 - FIELD_WITHIN))
        TESS_FAIL(TESS_ERR_INPUT,
                  "the convolution functions end at w of %.6g wavelengths, and the "
                  "visibilities at %.6g",
                  kernels->w_max_lambda, plan->opts.w_max_lambda);
cleanup:
    return status;
}

/* Returns the value at whole numbers (i, j) of 1/Q cell from the middle of the grid's
 * axes, the first of which runs against u. */
static const double *user_sample(const tess_projection_kernels *kernels, int plane,
                                 int64_t i, int64_t j)
{
    const int64_t middle = kernels->support * kernels->oversampling / 2;
    const int64_t side = kernels->is_uneven ? 2 * middle + 1 : middle + 1;
    const int64_t u = kernels->is_uneven ? middle - i : llabs(i);
    const int64_t v = kernels->is_uneven ? middle + j : llabs(j);
    return kernels->value + 2 * ((plane * side + u) * side + v);
}

static void user_value(const void *context, int plane, double x, double y,
                       double value[2])
{
    const tess_projection_kernels *kernels = context;
    const int64_t most = kernels->support * kernels->oversampling / 2;
    const int64_t i = (int64_t)floor(x * kernels->oversampling + 0.5);
    const int64_t j = (int64_t)floor(y * kernels->oversampling + 0.5);
    value[0] = value[1] = 0;
    if (llabs(i) > most || llabs(j) > most) return;
    memcpy(value, user_sample(kernels, plane, i, j), 2 * sizeof *value);
}

/* Finds the cells outside of which a plane is zero. */
static int user_support(const tess_projection_kernels *kernels, int plane)
{
    const int64_t q = kernels->oversampling, most = kernels->support * q / 2;
    int64_t outermost = 0;
    for (int64_t i = -most; i <= most; ++i)
        for (int64_t j = -most; j <= most; ++j) {
            const double *value = user_sample(kernels, plane, i, j);
            const int64_t ring = llabs(i) > llabs(j) ? llabs(i) : llabs(j);
            if (ring > outermost && (value[0] != 0 || value[1] != 0)) outermost = ring;
        }
    const int64_t cells = 2 * ((outermost + q - 1) / q);
    return (int)((cells + TESS_GCF_STEP - 1) / TESS_GCF_STEP * TESS_GCF_STEP) +
           (cells == 0 ? TESS_GCF_STEP : 0);
}

/* Sums plane 0 across each axis. The transforms of the sums are the taper. */
static tess_status user_taper(tess_projection *projection)
{
    tess_status status = TESS_OK;
    const tess_projection_kernels *kernels = projection->opts.kernels;
    const int64_t most = kernels->support * kernels->oversampling / 2;
    double sum = 0;
    projection->taper_half = (int)most;
    for (int axis = 0; axis < 2; ++axis) {
        double *line = tess_alloc_zero(2 * most + 1, 2 * sizeof *line);
        projection->taper_line[axis] = line;
        if (!line) TESS_FAIL(TESS_ERR_ALLOC, "taper of convolution functions");
        for (int64_t i = -most; i <= most; ++i)
            for (int64_t j = -most; j <= most; ++j) {
                const double *value = user_sample(kernels, 0, i, j);
                const int64_t at = 2 * (most + (axis ? j : i));
                line[at] += value[0];
                line[at + 1] += value[1];
            }
    }
    for (int64_t k = 0; k <= 2 * most; ++k)
        sum += projection->taper_line[0][2 * k];
    if (!(sum > 0))
        TESS_FAIL(TESS_ERR_INPUT,
                  "the convolution function of w = 0 has a sum of %g, "
                  "which has to be more than 0",
                  sum);
    /* so that the product of both is the transform: Ĝ(p,0)·Ĝ(0,q)/Ĝ(0,0), and a cell's
     * worth of samples counts once */
    const double scale = 1 / (sqrt(sum) * kernels->oversampling);
    for (int axis = 0; axis < 2; ++axis)
        for (int64_t k = 0; k <= 4 * most + 1; ++k)
            projection->taper_line[axis][k] *= scale;
cleanup:
    return status;
}

void projection_taper(const tess_projection *projection, int axis, int64_t count,
                      const double *p, double *taper)
{
    const int most = projection->taper_half;
    const double *line = projection->taper_line[axis];
    if (!line) {
        tess_gcf_taper(projection->taper_support, projection->padding, count, p, taper);
        return;
    }
    /* the real part of Σ line(x) exp(−2πi x p) */
    for (int64_t k = 0; k < count; ++k) {
        const double step = TESS_TWO_PI * p[k] / projection->opts.oversampling;
        taper[k] = 0;
        for (int x = -most; x <= most; ++x)
            taper[k] += line[2 * (x + most)] * cos(step * x) +
                        line[2 * (x + most) + 1] * sin(step * x);
    }
}

static tess_status use_kernels(tess_grid_plan *plan)
{
    tess_status status = TESS_OK;
    tess_projection *projection = plan->projection;
    const tess_projection_kernels *kernels = projection->opts.kernels;
    const tess_gcf_layout layout = {.num_planes = kernels->num_planes,
                                    .w_max_lambda = kernels->w_max_lambda,
                                    .spacing = spacing_of(kernels->is_linear),
                                    .oversampling = kernels->oversampling,
                                    .is_uneven = kernels->is_uneven,
                                    .is_double = plan->is_double,
                                    .threads = plan->opts.threads};
    int *support = NULL;
    TESS_TRY(fit_grid(plan));
    tess_kernel_create(TESS_MIN_SUPPORT, projection->padding, &plan->kernel);
    plan->kernel.error = 0; /* not known: theirs */
    projection->opts.oversampling = kernels->oversampling;
    projection->opts.is_linear = kernels->is_linear;
    TESS_TRY(user_taper(projection));
    support = tess_alloc(kernels->num_planes, sizeof *support);
    if (!support) TESS_FAIL(TESS_ERR_ALLOC, "planes of convolution functions");
    for (int p = 0; p < kernels->num_planes; ++p) {
        support[p] = user_support(kernels, p);
        if (support[p] + SPARE_CELLS + TESS_TILE > plan->nu ||
            support[p] + SPARE_CELLS + TESS_TILE > plan->nv)
            TESS_FAIL(TESS_ERR_INPUT,
                      "a convolution function of %d cells has no room in a grid of "
                      "%lld × %lld cells",
                      support[p], (long long)plan->nu, (long long)plan->nv);
    }
    TESS_TRY(
        tess_gcf_create_from(&layout, support, user_value, kernels, &projection->gcf));
cleanup:
    tess_free(support);
    return status;
}

/* ---- plans ---- */

/* Makes the w-kernels of this plan. */
static tess_status compute_kernels(tess_grid_plan *plan)
{
    tess_status status = TESS_OK;
    const tess_grid_opts *opts = &plan->opts;
    tess_gcf_opts gcf;
    tess_gcf_opts_default(&gcf);
    tess_projection *projection = plan->projection;
    TESS_TRY(choose_grid(plan));
    const int64_t shorter = plan->nu < plan->nv ? plan->nu : plan->nv;
    gcf.layout = (tess_gcf_layout){.w_max_lambda = opts->w_max_lambda,
                                   .spacing = spacing_of(projection->opts.is_linear),
                                   .is_double = plan->is_double,
                                   .threads = opts->threads};
    gcf.field_l = (double)plan->nu * plan->target.geom.scale_rad;
    gcf.field_m = (double)plan->nv * tess_geom_scale_m(&plan->target.geom);
    gcf.padding = projection->padding;
    gcf.max_support =
        (int)fmin(TESS_GCF_MAX_SUPPORT, (double)((shorter - TESS_TILE - SPARE_CELLS) /
                                                 TESS_GCF_STEP * TESS_GCF_STEP));
    if (gcf.max_support < gcf.min_support)
        TESS_FAIL(TESS_ERR_USAGE,
                  "an image of %lld × %lld pixels is too small for "
                  "w-projection; use --w stacking",
                  (long long)plan->target.geom.nx, (long long)plan->target.geom.ny);
    choose_layout(plan, &gcf);
    const double error = layout_error(plan, &gcf.layout);
    TESS_TRY(refuse_error(plan, &gcf.layout, error, "expected")); /* before tables */
    projection->opts.oversampling = gcf.layout.oversampling;
    projection->taper_support = choose_taper(projection->padding, TAPER_SHARE * error);
    gcf.taper_support = projection->taper_support;
    gcf.cut = projection->cut = CUT_SHARE * error;
    tess_kernel_create(projection->taper_support, projection->padding, &plan->kernel);
    TESS_TRY(make_tables(plan, &gcf));
cleanup:
    return status;
}

tess_status projection_plan(tess_grid_plan *plan, const tess_projection_opts *asked)
{
    tess_status status = TESS_OK;
    plan->projection = tess_alloc_zero(1, sizeof *plan->projection);
    if (!plan->projection) TESS_FAIL(TESS_ERR_ALLOC, "plan of w-projection");
    tess_projection *projection = plan->projection;
    projection->opts = *asked;
    if (!tess_geom_is_plain(&plan->target.geom))
        TESS_FAIL(TESS_ERR_USAGE,
                  "w-projection makes images of square pixels around the phase centre "
                  "only, where its kernels are even in u and v: use --w stacking with "
                  "--shift, or --center, which moves the phase centre");
    projection->nm1_spread = spread_of(&plan->target.geom, &projection->nm1_mean);
    TESS_TRY(asked->kernels ? use_kernels(plan) : compute_kernels(plan));
    projection->opts.kernels = NULL;             /* the caller's may not live as long */
    if (projection->gcf->layout.num_planes == 1) /* which w has no part in */
        projection->nm1_mean = 0;
    const double error = layout_error(plan, &projection->gcf->layout);
    TESS_TRY(make_gridder(plan, error));
    choose_tile(plan);
    plan->error_estimate = hypot(error, plan->kernel.error);
cleanup:
    return status;
}

tess_status projection_corrections(tess_grid_plan *plan)
{
    tess_status status = TESS_OK;
    const tess_projection *projection = plan->projection;
    const tess_grid_field *field = &plan->field;
    double *place =
        tess_alloc(field->nx > field->ny ? field->nx : field->ny, sizeof *place);
    if (!place) TESS_FAIL(TESS_ERR_ALLOC, "grid correction");
    for (int axis = 0; axis < 2; ++axis) {
        const int64_t count = axis ? field->ny : field->nx;
        double *correction = axis ? plan->correction.v : plan->correction.u;
        for (int64_t k = 0; k < count; ++k)
            place[k] = (double)(k - count / 2) / (double)(axis ? plan->nv : plan->nu);
        projection_taper(projection, axis, count, place, correction);
        for (int64_t k = 0; k < count; ++k)
            correction[k] = 1 / correction[k];
    }
cleanup:
    tess_free(place);
    return status;
}

/* ---- for logs and planners ---- */

/* Estimates the seconds that a cell of a kernel takes on one core: 8 FLOP, and its tap,
 * which comes from the second level of cache or beyond. */
static const double CELL_S = 0.4e-9;

double projection_cells(const tess_grid_plan *plan)
{
    const tess_gcf *gcf = plan->projection->gcf;
    double cells = 0;
    for (int p = 0; p < gcf->layout.num_planes; ++p) /* w are not known here */
        cells += (double)gcf->plane[p].support * gcf->plane[p].support;
    return cells / gcf->layout.num_planes;
}

double projection_cost_vis(const tess_grid_plan *plan)
{
    return CELL_S * projection_cells(plan) * plan->opts.num_pol;
}

void projection_text(const tess_grid_plan *plan, char *text, int size)
{
    const tess_projection *projection = plan->projection;
    const tess_gcf *gcf = projection->gcf;
    const int planes = gcf->layout.num_planes;
    char cut[32] = "";
    if (projection->cut > 0)
        snprintf(cut, sizeof cut, ", cut at %.1e,", projection->cut);
    snprintf(
        text, (size_t)size,
        "%lld x %lld grid, w-projection, %d kernel%s of %d to %d cells%s spaced in "
        "%s, oversampling %d, %.1f MiB of tables%s, strategy %s, tiles of %d cells, "
        "padding %.2f, %s precision, %s %.1e",
        (long long)plan->nu, (long long)plan->nv, planes, planes == 1 ? "" : "s",
        gcf->plane[0].support, gcf->max_support, cut,
        gcf->layout.spacing == TESS_GCF_SQRT ? "sqrt(w)" : "w",
        gcf->layout.oversampling, (double)tess_gcf_bytes(gcf) / 0x1p20,
        projection->was_cached ? " (cached)" : "",
        tess_gcf_strategy_name(projection->opts.strategy), plan->tile,
        projection->padding, plan->is_double ? "double" : "single", "error estimate",
        plan->error_estimate);
}

int projection_outer_threads(const tess_grid_plan *plan)
{
    /* a strategy may be about how threads share points */
    const bool inside = plan->projection && tess_gcf_strategy_wants_threads(
                                                plan->projection->opts.strategy);
    return inside ? 1 : plan->opts.threads;
}

void projection_phase(const tess_projection *projection, double w_lambda,
                      double phase[2])
{
    const tess_gcf *gcf = projection->gcf;
    const double between =
        w_lambda - gcf->plane[tess_gcf_plane_of(gcf, w_lambda)].w_lambda;
    const double angle = -TESS_TWO_PI * between * projection->nm1_mean;
    phase[0] = cos(angle);
    phase[1] = sin(angle);
}
