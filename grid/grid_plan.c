/* Chooses support, padding, w-planes and bricks. */
#include "tess_grid.h"

#include <math.h>
#include <stdio.h>

#include "correct.h"
#include "keys.h"
#include "projection_plan.h"
#include "tess_const.h"
#include "tess_isa.h"
#include "tess_mem.h"
#include "tess_samples.h"

enum { DEFAULT_CHUNK = 4096, DEFAULT_BLOCK = 8 };

/* The estimated error, for visibilities without order, may use up this share of ε. The
 * rest is for skies and coverages that put more of the error than of the image into the
 * field. Errors gather in the outer quarter of each axis, so a corner block has up to
 * four times the mean square, which is what the promise for blocks (2 ε) allows. */
static const double SHARE = 0.73;

/* That estimate is a mean over positions within a cell. A single visibility may lie
 * where its errors along u, v and w add up (to √3 of their rms sum) and all go into the
 * real part (√2): 3·2 times the mean square. Over n independent visibilities the excess
 * falls as 1/n; neighbours in time and frequency are not independent, so one in 32 is
 * counted. */
static const double LONE_EXCESS = 3 * 2 - 1, VIS_PER_INDEPENDENT = 32;

static const double MIN_PADDING = 1.15, MAX_PADDING = 2.6;

/* The kernel's error along w may reach this share of ε anywhere in the field while all
 * w lie within one step. They then meet the kernel at one fraction of a step, so errors
 * of visibilities agree in phase, and multiply the image. A block that holds all there
 * is to see has 8 times the rms of the image, and may be wrong by 2 ε. Over s steps the
 * phase turns s times, and what is common falls as 1/s. */
static const double W_SHARE = 0.25;
static const double MAX_W_PADDING = 4.0;

/* Most planes that one polynomial along w goes through. Its terms cancel, so that the
 * rounding of a visibility grows to about 1e-6 and 1e-13. */
enum { MOST_SINGLE = 6, MOST_DOUBLE = 10 };

/* The second largest alias may add so much to the error of the largest, which is the
 * same at every fraction of a cell: this is the ratio of the rms over fractions to the
 * largest. */
static const double NEXT_ALIAS = 1.1;

/* The kernel's error rises steeply at the very edge of the field. A small image has a
 * larger share of its pixels there than the mean allows for, so this many pixels around
 * it are left free. */
enum { MARGIN = 4 };

void tess_grid_opts_default(tess_grid_opts *opts)
{
    *opts = (tess_grid_opts){.accuracy = 1e-4,
                             .do_w = true,
                             .w_span_lambda = -1,
                             .num_pol = 1,
                             .threads = 1};
}

/* If the phase of w is never larger than this [rad], w is left out. */
static double w_phase(double nm1_min, double w_max_lambda)
{
    return TESS_TWO_PI * w_max_lambda * fabs(nm1_min);
}

bool tess_grid_w_negligible(const tess_geom *geom, double w_max_lambda, double accuracy)
{
    return w_phase(tess_geom_nm1_min(geom), w_max_lambda) < accuracy / 3;
}

int tess_grid_brick_lines(const tess_grid_plan *plan)
{
    return plan->tile + plan->footprint - 1;
}

/* A kernel row is stored with whole vectors of up to 64 bytes, which may run past the
 * support. There is room for the last start (tile − 1) and the vectors from there. */
int tess_grid_brick_stride(const tess_grid_plan *plan)
{
    const int values = 64 / (plan->is_double ? 16 : 8);
    const int vectors = (plan->footprint + values - 1) / values;
    const int cells = plan->tile - 1 + vectors * values;
    return (cells + values - 1) / values * values;
}

double tess_grid_cost_vis(const tess_grid_plan *plan)
{
    if (plan->projection) return projection_cost_vis(plan);
    return tess_costs_vis(&plan->costs, plan->kernel.support, plan->w_support,
                          plan->is_double, plan->opts.num_pol);
}

double tess_grid_cost_brick(const tess_grid_plan *plan)
{
    const double planes = fmin(plan->num_planes, plan->w_support + 2);
    return plan->costs.cell_s * planes * tess_grid_brick_lines(plan) *
           tess_grid_brick_stride(plan) * plan->opts.num_pol;
}

double tess_grid_cost_plane(const tess_grid_plan *plan, double occupied_lines)
{
    return tess_costs_plane(&plan->costs, plan->is_double, (double)plan->nu,
                            (double)plan->nv, (double)plan->field.nx,
                            (double)plan->field.ny, occupied_lines);
}

double tess_grid_cost(const tess_grid_plan *plan)
{
    return tess_grid_cost_vis(plan) * (double)plan->opts.num_vis +
           tess_grid_cost_plane(plan, 1) * plan->num_planes * plan->opts.num_pol;
}

/* By [is_double], on an H200 (docs/results/tables.md): a cell of a w-kernel, of
 * MeerKAT's tracks with kernels of 8 to 32 cells; a cell of a separable kernel and
 * plane; a cell of a plane transformed, screened and added. Sorting a visibility. */
static const double DEVICE_TAP_S[2] = {2e-12, 4e-12};
static const double DEVICE_UPDATE_S[2] = {.2e-12, .7e-12};
static const double DEVICE_CELL_S[2] = {20e-12, 40e-12};
static const double DEVICE_SORT_S = 80e-12;

double tess_grid_device_cost_vis(const tess_grid_plan *plan)
{
    const double support = plan->kernel.support;
    const double gridding =
        plan->projection
            ? DEVICE_TAP_S[plan->is_double] * projection_cells(plan)
            : DEVICE_UPDATE_S[plan->is_double] * support * support * plan->w_support;
    return DEVICE_SORT_S + gridding * plan->opts.num_pol;
}

double tess_grid_device_cost_plane(const tess_grid_plan *plan)
{
    return DEVICE_CELL_S[plan->is_double] * (double)plan->nu * (double)plan->nv;
}

/* The range of n − 1 over an image that w-planes are made for. In an image of a few
 * pixels near the phase centre it may be so small that the planes' distance would
 * overflow: planes then are closer than they need to be, though still far beyond the
 * largest w. */
static double nm1_range_of(const tess_geom *geom, const tess_grid_opts *opts)
{
    const double range = tess_geom_nm1_max(geom) - tess_geom_nm1_min(geom);
    return fmax(range, 1e-6 / fmax(1, opts->w_max_lambda));
}

/* Computes the number of planes, with support W, that the w range needs at this
 * padding. */
static int planes_needed(const tess_grid_plan *plan, int support, double padding)
{
    const tess_grid_opts *opts = &plan->opts;
    if (!opts->do_w) return 1;
    const double step = 1.0 / (padding * 2 * plan->field.nm1_half);
    const double span = (opts->w_max_lambda - opts->w_min_lambda) / step;
    return span < 1e8 ? (int)span + 1 + support : INT32_MAX;
}

/* Finds the number of cells of a grid along an axis of `pixels` pixels. There are at
 * least so many that a footprint does not meet itself. */
static int64_t cells_for(int64_t pixels, double padding)
{
    const int64_t cells = (int64_t)ceil(padding * (double)(pixels + MARGIN));
    const int64_t least = 2 * TESS_MAX_SUPPORT;
    return tess_geom_fft_size(cells > least ? cells : least);
}

/* Estimates the seconds that gridding and the planes take with this support and
 * padding, at the length next to it: a length that transforms faster may be a little
 * longer. */
static double cost_with(const tess_grid_plan *plan, int support, double padding)
{
    const tess_grid_opts *opts = &plan->opts;
    const double nx = (double)plan->field.nx, ny = (double)plan->field.ny;
    const double nu = (double)tess_geom_smooth_size((int64_t)(padding * nx));
    const double nv = (double)tess_geom_smooth_size((int64_t)(padding * ny));
    const double planes = planes_needed(plan, support, padding);
    return tess_costs_vis(&plan->costs, support, opts->do_w ? support : 1,
                          plan->is_double, opts->num_pol) *
               (double)opts->num_vis +
           planes * opts->num_pol *
               tess_costs_plane(&plan->costs, plan->is_double, nu, nv, nx, ny, 1);
}

/* Estimates the rounding error: half a unit in the last place for every value of the
 * grid and of its transform, raised by the grid correction. */
static double rounding_of(const tess_kernel *kernel, bool is_double, bool do_w)
{
    return (is_double ? 0x1p-53 : 0x1p-24) * pow(kernel->amplification, do_w ? 3 : 2);
}

/* Finds where the pixels of an image lie along w, from the lowest n − 1 to the highest.
 * They are spread evenly in a round image around the phase centre, but not in a narrow
 * one, whose pixels crowd at the end where n − 1 is flat. Of the images of a field, the
 * one that has most pixels at a place counts. */
static void share_out_pixels(const tess_geom *geom, tess_grid_field *field)
{
    enum { MOST_LINES = 64 };
    const double low = tess_geom_nm1_min(geom), high = tess_geom_nm1_max(geom);
    const int64_t lines_x = geom->nx < MOST_LINES ? geom->nx : MOST_LINES;
    const int64_t lines_y = geom->ny < MOST_LINES ? geom->ny : MOST_LINES;
    double all = 0, share[TESS_KERNEL_PLACES] = {0};
    if (high <= low) return;
    for (int64_t i = 0; i < lines_x; ++i)
        for (int64_t j = 0; j < lines_y; ++j) {
            const double l = tess_geom_l(geom, geom->nx * i / lines_x);
            const double m = tess_geom_m(geom, geom->ny * j / lines_y);
            if (l * l + m * m >= 1) continue;
            /* |x| over that of the edge */
            const double x =
                fabs(2 * (tess_geom_nm1(l * l + m * m) - low) / (high - low) - 1);
            const int place = (int)(sqrt(fmax(0, 1 - x)) * TESS_KERNEL_PLACES);
            ++share[place < TESS_KERNEL_PLACES ? place : TESS_KERNEL_PLACES - 1];
            ++all;
        }
    for (int k = 0; k < TESS_KERNEL_PLACES; ++k)
        field->place_share[k] = fmax(field->place_share[k], share[k] / fmax(1, all));
}

/* Describes the field of these images. An image with a narrower range of n − 1 than
 * another one uses a part of the kernel's range along w, where errors are smaller. */
static tess_grid_field field_of(const tess_geom *geom, int num_targets,
                                const tess_grid_opts *opts)
{
    tess_grid_field field = {0};
    for (int k = 0; k < num_targets; ++k) {
        if (geom[k].nx > field.nx) field.nx = geom[k].nx;
        if (geom[k].ny > field.ny) field.ny = geom[k].ny;
        field.nm1_min = fmin(field.nm1_min, tess_geom_nm1_min(&geom[k]));
        field.nm1_half = fmax(field.nm1_half, 0.5 * nm1_range_of(&geom[k], opts));
        share_out_pixels(&geom[k], &field);
    }
    return field;
}

/* Computes the mean square of the kernel's error along w: that of the pixels, or that
 * of a field which is evenly spread, whichever is larger. */
static double w_error2(const tess_grid_plan *plan, const tess_kernel *kernel)
{
    double sum = 0;
    for (int k = 0; k < TESS_KERNEL_PLACES; ++k)
        sum += plan->field.place_share[k] * kernel->place_error[k] *
               kernel->place_error[k];
    return fmax(sum, kernel->error * kernel->error);
}

/* Computes the relative L2 error of an image that is made with this kernel on every
 * axis. It is the error of the kernel itself, and of rounding, which decides in single
 * precision when the padding is small. */
static double image_error(const tess_grid_plan *plan, const tess_kernel *kernel)
{
    const bool do_w = plan->opts.do_w;
    const double rounding = rounding_of(kernel, plan->is_double, do_w);
    return sqrt(2 * kernel->error * kernel->error +
                (do_w ? w_error2(plan, kernel) : 0) + rounding * rounding);
}

double tess_grid_rounding(const tess_grid_plan *plan)
{
    return rounding_of(&plan->kernel, plan->is_double, plan->opts.do_w);
}

/* Computes the relative L2 error of the visibilities of the worst pixel. It lies at the
 * edge of the field on every axis. In w, this is the corner of the image as well as the
 * phase centre. The errors of the axes have any phase. */
static double pixel_error(const tess_grid_plan *plan, const tess_kernel *kernel)
{
    const double axes = plan->opts.do_w ? 3 : 2;
    const double unit = plan->is_double ? 0x1p-53 : 0x1p-24;
    return hypot(sqrt(axes) * kernel->largest_error,
                 unit * pow(kernel->largest_gain, axes));
}

/* Computes the largest relative error of the visibilities of one pixel, wherever the
 * visibilities and the pixel are. The errors of the axes are in phase. Rounding is that
 * of an image, with the gain of the edge. */
static double visibility_error(const tess_grid_plan *plan, const tess_kernel *kernel)
{
    const double axes = plan->opts.do_w ? 3 : 2;
    const double unit = plan->is_double ? 0x1p-53 : 0x1p-24;
    return NEXT_ALIAS * axes * kernel->largest_error +
           unit * pow(kernel->largest_gain, axes);
}

static double error_of(const tess_grid_plan *plan, const tess_kernel *kernel)
{
    if (!plan->opts.worst_pixel) return image_error(plan, kernel);
    return plan->opts.mean_visibility ? pixel_error(plan, kernel)
                                      : visibility_error(plan, kernel);
}

/* Computes the part of ε that is left for error_of. If w is left out, every pixel
 * counts as the farthest one does. At most a third of the promise is set aside for
 * that, because a caller who leaves out more wants no w in any case. `few`: a reserve
 * is kept for few visibilities. */
static double allowed_error(const tess_grid_plan *plan, bool few)
{
    const tess_grid_opts *opts = &plan->opts;
    const double num = fmax(1, (double)opts->num_vis / VIS_PER_INDEPENDENT);
    const double axes = opts->do_w ? 3 : 2; /* the errors of a single visibility may
                                               be in phase */
    double promise = opts->accuracy;
    if (!opts->worst_pixel)
        return SHARE * promise / sqrt(1 + (few ? LONE_EXCESS / num : 0));
    if (opts->mean_visibility) promise /= sqrt(1 + (few ? (axes - 1) / num : 0));
    if (opts->do_w) return promise;
    return promise -
           fmin(w_phase(plan->field.nm1_min, opts->w_max_lambda), promise / 3);
}

/* The least and the most padding: of the sensible ones, those that the caller allows.
 */
static double least_padding(const tess_grid_plan *plan)
{
    return fmax(MIN_PADDING, plan->opts.padding_min);
}

static double largest_padding(const tess_grid_plan *plan)
{
    const double asked = plan->opts.padding_max;
    return asked > 0 ? fmax(least_padding(plan), asked) : MAX_PADDING;
}

/* Computes log(error / allowed error) of a support at a padding. More than 0 is too
 * much. */
static double excess_of(int support, double padding, double allowed,
                        const tess_grid_plan *plan)
{
    tess_kernel kernel;
    tess_kernel_create(support, padding, &kernel);
    return log(error_of(plan, &kernel) / allowed);
}

/* Finds the smallest padding, to 0.01, at which this support reaches the error; 0 if
 * there is none. The logarithm of the error is nearly straight, so false position finds
 * it. Steps are kept away from both ends, so that these close in. */
static double padding_for(int support, double allowed, const tess_grid_plan *plan)
{
    const double within = 0.01, step = 0.45 * within;
    double low = least_padding(plan), high = largest_padding(plan);
    double above_low = excess_of(support, low, allowed, plan);
    if (above_low <= 0) return low;
    double above_high = excess_of(support, high, allowed, plan);
    if (above_high > 0) return 0;
    while (high - low > within) {
        double middle = low + (high - low) * above_low / (above_low - above_high);
        middle = fmin(fmax(middle, low + step), high - step);
        const double above = excess_of(support, middle, allowed, plan);
        *(above <= 0 ? &high : &low) = middle;
        *(above <= 0 ? &above_high : &above_low) = above;
    }
    return high;
}

/* Finds the support (0: none) and the padding that reach the error at least cost. */
static int cheapest_support(const tess_grid_plan *plan, double allowed,
                            double *best_padding)
{
    double least = INFINITY;
    int best_support = 0;
    const int only = plan->opts.support;
    const int first = only > 0 ? only : TESS_MIN_SUPPORT;
    const int last = only > 0 ? only : TESS_MAX_SUPPORT;
    for (int support = first; support <= last; ++support) {
        /* with the smallest padding, the cost grows with the support */
        if (cost_with(plan, support, least_padding(plan)) >= least) break;
        const double padding = padding_for(support, allowed, plan);
        if (padding <= 0) continue;
        const double cost = cost_with(plan, support, padding);
        if (cost < least) {
            least = cost;
            best_support = support;
            *best_padding = padding;
        }
        /* a wider kernel only pays if the padding becomes smaller, and it is the
         * smallest already */
        if (padding <= least_padding(plan) + 0.01) break;
    }
    return best_support;
}

static tess_status choose_kernel(tess_grid_plan *plan)
{
    tess_status status = TESS_OK;
    double best_padding = 0;
    int best_support = cheapest_support(plan, allowed_error(plan, true), &best_padding);
    if (best_support == 0) /* at the limit of the precision, there is no reserve */
        best_support =
            cheapest_support(plan, allowed_error(plan, false), &best_padding);
    if (best_support == 0)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "accuracy %g cannot be reached in %s precision with paddings up to %.2f; "
            "the smallest is %s with paddings up to %.2f",
            plan->opts.accuracy, plan->is_double ? "double" : "single",
            largest_padding(plan), plan->is_double ? "1e-12" : "1e-5", MAX_PADDING);
    plan->nu = cells_for(plan->field.nx, best_padding);
    plan->nv = cells_for(plan->field.ny, best_padding);
    tess_kernel_create(best_support, best_padding, &plan->kernel);
    plan->error_estimate = error_of(plan, &plan->kernel);
cleanup:
    return status;
}

/* Finds the largest error of the kernel for |x| ≤ edge. Its ripples are narrowest at
 * the edge. */
static double largest_error(const tess_kernel *kernel, double edge)
{
    enum { PLACES = 32 };
    double largest = 0;
    for (int k = 0; k < PLACES; ++k) {
        const double t = (double)k / PLACES;
        double error;
        tess_kernel_correction(kernel, edge * (1 - t * t), &error);
        if (error > largest) largest = error;
    }
    return largest;
}

/* Computes the range of w of the samples of one image, in steps between planes at this
 * padding. */
static double w_steps(const tess_grid_plan *plan, double padding)
{
    const tess_grid_opts *opts = &plan->opts;
    const double span_lambda = opts->w_span_lambda < 0
                                   ? opts->w_max_lambda - opts->w_min_lambda
                                   : opts->w_span_lambda;
    return span_lambda * 2 * plan->field.nm1_half * padding;
}

/* Computes the inverse of the distance of planes times the range of n − 1. It is the
 * kernel's padding, or more where w covers few steps (W_SHARE). The extra then costs
 * about one plane. */
static double w_padding_of(const tess_grid_plan *plan)
{
    const tess_grid_opts *opts = &plan->opts;
    double padding = plan->kernel.padding;
    if (opts->worst_pixel && !opts->mean_visibility)
        return padding; /* the error is good wherever w meets the kernel */
    while (padding < MAX_W_PADDING) {
        const double steps = fmax(1, w_steps(plan, padding));
        if (largest_error(&plan->kernel, 0.5 / padding) <=
            W_SHARE * plan->opts.accuracy * steps)
            break;
        padding *= 1.02;
    }
    return padding;
}

/* Seconds that depend on the planes, and on the support along w. */
static double cost_of_planes(const tess_grid_plan *plan, int planes, int w_support)
{
    const tess_grid_opts *opts = &plan->opts;
    return tess_costs_vis(&plan->costs, plan->kernel.support, w_support,
                          plan->is_double, opts->num_pol) *
               (double)opts->num_vis +
           tess_grid_cost_plane(plan, 1) * planes * opts->num_pol;
}

/* Has every visibility touch all planes if there are fewer of them then, with a smaller
 * cost and no larger error, however few steps w covers. Devices have kernels of one
 * support alone. */
static void try_few_planes(tess_grid_plan *plan)
{
    const tess_grid_opts *opts = &plan->opts;
    const double span = opts->w_max_lambda - opts->w_min_lambda;
    const int most = plan->is_double ? MOST_DOUBLE : MOST_SINGLE;
    const double allowed =
        opts->worst_pixel
            ? plan->kernel.largest_error
            : fmin(W_SHARE * opts->accuracy, sqrt(w_error2(plan, &plan->kernel)));
    const double cost = cost_of_planes(plan, plan->num_planes, plan->w_support);
    if (opts->kernel_planes || !plan->backend || plan->backend->grid->load) return;
    for (int count = 1; count <= most && count < plan->num_planes; ++count) {
        tess_kernel taps;
        const double length =
            tess_kernel_between_planes(count, span * plan->field.nm1_half, &taps);
        if (cost_of_planes(plan, count, count) >= cost) return;
        if (taps.largest_error > allowed) continue;
        plan->along_w = taps;
        plan->w_support = plan->num_planes = count;
        plan->w_step_lambda = span > 0 ? span / length : 1.0;
        plan->w_first_lambda =
            opts->w_min_lambda + 0.5 * span - 0.5 * (count - 1) * plan->w_step_lambda;
        return;
    }
}

/* Places planes for the kernel of u and v along w. */
static tess_status place_for_kernel(tess_grid_plan *plan)
{
    tess_status status = TESS_OK;
    const tess_grid_opts *opts = &plan->opts;
    const double padding = w_padding_of(plan);
    plan->w_step_lambda = 1.0 / (padding * 2 * plan->field.nm1_half);
    plan->num_planes = planes_needed(plan, plan->kernel.support, padding);
    if (plan->num_planes > 1000000)
        TESS_FAIL(
            TESS_ERR_RESOURCE,
            "w of up to %.3g wavelengths would need %d w-planes in this field; make "
            "the image smaller, or leave out longer baselines (--maxuvw-m)",
            opts->w_max_lambda, plan->num_planes);
    /* the footprint of the smallest w starts at plane 0: its first plane lies at most
     * W/2 below that w */
    plan->w_first_lambda =
        opts->w_min_lambda - (0.5 * plan->kernel.support - 1e-6) * plan->w_step_lambda;
cleanup:
    return status;
}

static tess_status place_planes(tess_grid_plan *plan)
{
    tess_status status = TESS_OK;
    const tess_grid_opts *opts = &plan->opts;
    plan->along_w = plan->kernel;
    plan->w_support = opts->do_w ? plan->kernel.support : 1;
    plan->num_planes = plan->num_blocks = plan->block_planes = 1;
    plan->w_step_lambda = 1.0;
    if (!opts->do_w) return TESS_OK;
    TESS_TRY(place_for_kernel(plan));
    try_few_planes(plan);
    const int starts = plan->num_planes - plan->w_support + 1;
    plan->block_planes = opts->block_planes > 0 ? opts->block_planes : DEFAULT_BLOCK;
    if (plan->block_planes < plan->w_support - 1 && starts > plan->block_planes &&
        opts->block_planes == 0)
        plan->block_planes = plan->w_support - 1;
    if (plan->block_planes > starts) plan->block_planes = starts;
    plan->num_blocks = (starts + plan->block_planes - 1) / plan->block_planes;
cleanup:
    return status;
}

/* Whether planes lie as the kernel of u and v needs them. */
static bool is_for_kernel(const tess_grid_plan *plan)
{
    return plan->along_w.padding > 0;
}

static tess_status make_corrections(tess_grid_plan *plan)
{
    tess_status status = TESS_OK;
    const tess_grid_field *field = &plan->field;
    tess_grid_correction *correction = &plan->correction;
    correction->u = tess_alloc(field->nx, sizeof *correction->u);
    correction->v = tess_alloc(field->ny, sizeof *correction->v);
    if (!correction->u || !correction->v)
        TESS_FAIL(TESS_ERR_ALLOC,
                  "no memory for the grid correction of %lld x %lld pixels",
                  (long long)field->nx, (long long)field->ny);
    if (plan->projection) return projection_corrections(plan);
    tess_kernel_correction_line(&plan->kernel, field->nx, 1.0 / (double)plan->nu,
                                correction->u);
    tess_kernel_correction_line(&plan->kernel, field->ny, 1.0 / (double)plan->nv,
                                correction->v);
    if (plan->opts.do_w && is_for_kernel(plan))
        tess_kernel_correction_fit(
            &plan->kernel, plan->field.nm1_half * plan->w_step_lambda, correction->w);
    else
        correction->w[0] = 1; /* polynomials between planes need none */
cleanup:
    return status;
}

/* Takes what the options say. The caller's structs may not live as long as the plan. */
static void take_opts(const tess_grid_opts *opts, const tess_backend *backend,
                      tess_grid_plan *plan)
{
    plan->opts = *opts;
    plan->costs = opts->costs ? *opts->costs : tess_costs_builtin;
    plan->opts.costs = NULL;
    plan->opts.projection = NULL;
    plan->backend = backend;
    plan->keys = key_table_best();
    plan->is_double = opts->precision == TESS_PRECISION_AUTO
                          ? opts->accuracy < TESS_SINGLE_ACCURACY
                          : opts->precision == TESS_PRECISION_DOUBLE;
    if (plan->opts.chunk <= 0) plan->opts.chunk = DEFAULT_CHUNK;
}

/* Makes the frame of images. Its target is the first of them, without its phase. */
static tess_status create_frame(const tess_geom *geom, int num_targets,
                                const tess_grid_opts *opts, const tess_backend *backend,
                                tess_grid_plan **plan_out)
{
    tess_status status = TESS_OK;
    tess_grid_plan *plan = tess_alloc_zero(1, sizeof *plan);
    if (!plan) TESS_FAIL(TESS_ERR_ALLOC, "gridding plan");
    take_opts(opts, backend, plan);
    plan->target.geom = *geom;
    plan->field = field_of(geom, num_targets, &plan->opts);
    if (opts->projection) {
        TESS_TRY(projection_plan(plan, opts->projection));
    } else {
        TESS_TRY(choose_kernel(plan));
        plan->tile = TESS_TILE;
        plan->footprint = plan->kernel.support;
    }
    TESS_TRY(place_planes(plan));
    TESS_TRY(make_corrections(plan));
    plan->tiles_u = (plan->nu + plan->tile - 1) / plan->tile;
    plan->tiles_v = (plan->nv + plan->tile - 1) / plan->tile;
    *plan_out = plan;
    plan = NULL;
cleanup:
    tess_grid_plan_destroy(plan);
    return status;
}

/* Makes an image the target of a plan. Its middle pixel is that of the field, so that
 * its correction is a part of the field's. */
static void take_target(const tess_geom *geom, tess_grid_plan *plan)
{
    tess_grid_target *target = &plan->target;
    const int64_t left = plan->field.nx / 2 - geom->nx / 2;
    const int64_t below = plan->field.ny / 2 - geom->ny / 2;
    *target = (tess_grid_target){.geom = *geom,
                                 .correct_u = plan->correction.u + left,
                                 .correct_v = plan->correction.v + below};
    if (plan->opts.do_w)
        target->nm1_center = 0.5 * (tess_geom_nm1_max(geom) + tess_geom_nm1_min(geom));
    target->phase = tess_geom_phase_of(geom, target->nm1_center, plan->opts.do_w);
}

static tess_status check_targets(const tess_geom *geom, int num_targets,
                                 const tess_grid_opts *opts)
{
    tess_status status = TESS_OK;
    if (num_targets > 1 && opts->projection)
        TESS_FAIL(TESS_ERR_USAGE, "w-projection makes images of one field at a time; "
                                  "use --w stacking for several");
    for (int k = 1; k < num_targets; ++k)
        if (geom[k].scale_rad != geom->scale_rad ||
            tess_geom_scale_m(&geom[k]) != tess_geom_scale_m(geom) ||
            geom[k].turned_l != geom->turned_l || geom[k].turned_m != geom->turned_m)
            TESS_FAIL(TESS_ERR_USAGE,
                      "images of one reading must have pixels of one size");
cleanup:
    return status;
}

tess_status tess_grid_plan_create_targets(const tess_geom *geom, int num_targets,
                                          const tess_grid_opts *opts,
                                          const tess_backend *backend,
                                          tess_grid_plan **plan)
{
    tess_status status = TESS_OK;
    tess_grid_plan *frame = NULL;
    for (int k = 0; k < num_targets; ++k)
        plan[k] = NULL;
    TESS_TRY(check_targets(geom, num_targets, opts));
    TESS_TRY(create_frame(geom, num_targets, opts, backend, &frame));
    for (int k = 1; k < num_targets; ++k) {
        plan[k] = tess_alloc(1, sizeof **plan);
        if (!plan[k]) TESS_FAIL(TESS_ERR_ALLOC, "gridding plan");
        *plan[k] = *frame;
        plan[k]->frame = frame;
        take_target(&geom[k], plan[k]);
    }
    take_target(&geom[0], frame);
    plan[0] = frame;
    frame = NULL;
cleanup:
    for (int k = 1; frame && k < num_targets; ++k) {
        tess_grid_plan_destroy(plan[k]);
        plan[k] = NULL;
    }
    tess_grid_plan_destroy(frame);
    return status;
}

tess_status tess_grid_plan_create(const tess_geom *geom, const tess_grid_opts *opts,
                                  const tess_backend *backend, tess_grid_plan **plan)
{
    return tess_grid_plan_create_targets(geom, 1, opts, backend, plan);
}

void tess_grid_plan_destroy(tess_grid_plan *plan)
{
    if (!plan) return;
    if (!plan->frame) {
        tess_free(plan->correction.u);
        tess_free(plan->correction.v);
        projection_destroy(plan->projection);
    }
    tess_free(plan);
}

void tess_grid_plan_text(const tess_grid_plan *plan, char *text, int size)
{
    if (plan->projection) {
        projection_text(plan, text, size);
        return;
    }
    snprintf(text, (size_t)size,
             "%lld x %lld grid, %d w-plane%s in %d block%s, support %d, padding %.2f, "
             "%s precision, %s %.1e",
             (long long)plan->nu, (long long)plan->nv, plan->num_planes,
             plan->num_planes == 1 ? "" : "s", plan->num_blocks,
             plan->num_blocks == 1 ? "" : "s", plan->kernel.support,
             (double)plan->nu / (double)plan->field.nx,
             plan->is_double ? "double" : "single",
             plan->opts.worst_pixel ? "error of the worst pixel" : "error estimate",
             plan->error_estimate);
}

int64_t tess_grid_brick_key(const tess_grid_plan *plan, int64_t block, int64_t tile_u,
                            int64_t tile_v)
{
    return (block * plan->tiles_u + tile_u) * plan->tiles_v + tile_v;
}

void tess_grid_brick_of_key(const tess_grid_plan *plan, int64_t key, int64_t *block,
                            int64_t *tile_u, int64_t *tile_v)
{
    *tile_v = key % plan->tiles_v;
    key /= plan->tiles_v;
    *tile_u = key % plan->tiles_u;
    *block = key / plan->tiles_u;
}

void tess_grid_correction_row(const tess_grid_plan *plan, int64_t j, double *out)
{
    static const correct_table *const table[TESS_NUM_ISA] =
        TESS_ISA_TABLES(correct_table);
    table[tess_isa_best()]->row(plan, j, out);
}

void tess_brick_sums_free(tess_brick_sums *sums)
{
    tess_free(sums->brick);
    if (sums->release)
        sums->release(sums->data);
    else
        tess_free(sums->data);
    *sums = (tess_brick_sums){0};
}

tess_status tess_grid_execute(const tess_grid_plan *plan, const tess_samples *samples,
                              const tess_brick_range *bricks, bool psf,
                              tess_brick_sums *sums, tess_grid_report *report)
{
    tess_status status = TESS_OK;
    tess_brick_sums made = {.window_first = sums->window_first,
                            .window_planes = sums->window_planes,
                            .spare = sums->spare};
    made.num_pol = samples->num_pol + (psf ? samples->num_weight : 0);
    TESS_TRY(plan->backend->grid->begin(plan, samples, bricks->list, bricks->first,
                                        bricks->end, &made));
    TESS_TRY(plan->backend->grid->grid(plan, samples, bricks->list, bricks->first, psf,
                                       &made, report));
    *sums = made;
    made = (tess_brick_sums){0};
cleanup:
    tess_brick_sums_free(&made);
    return status;
}
