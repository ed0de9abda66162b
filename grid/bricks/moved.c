/* Checks that samples and runs that come back from a checkpoint are as gridding needs
 * them. A run of another brick, or a row beyond the channel table, would lead gridding
 * out of its arrays. */
#include "tess_moved.h"

#include <math.h>

#include "locate.h"
#include "tess_samples.h"

static bool is_origin(const tess_origins *origins, int32_t number)
{
    return number >= 0 && number < tess_origins_count(origins);
}

bool tess_samples_are_sound(const tess_samples *samples, int64_t num_chan)
{
    for (int64_t row = 0; row < samples->num_rows; ++row) {
        const int64_t base = samples->chan_base[row], count = samples->num_chan[row];
        const int64_t first = samples->vis_first[row];
        if (base < 0 || count < 0 || base + count > num_chan || first < 0 ||
            first > samples->num_vis - count ||
            (samples->origins && !is_origin(samples->origins, samples->origin[row])))
            return false;
    }
    return true;
}

/* No baseline is so long [wavelengths]. Beyond this length, numbers of cells are no
 * integers. */
static const double MOST_LAMBDA = 1e12;

/* Whether a channel of a row lies in this brick, and within the planes of the plan,
 * apart from rounding. */
static bool is_in_brick(const tess_grid_plan *plan, const double uvw_m[3],
                        double inv_lambda, int64_t brick)
{
    for (int k = 0; k < 3; ++k)
        if (!(fabs(uvw_m[k] * inv_lambda) < MOST_LAMBDA)) return false;
    if (plan->opts.do_w) {
        /* the first plane of the kernel; where polynomials go through all planes, w may
         * lie anywhere between those, and half of them beyond */
        const double plane = tess_plane_coordinate(plan, fabs(uvw_m[2]) * inv_lambda) -
                             0.5 * plan->w_support;
        const double slack = plan->along_w.padding > 0 ? 0 : 0.5 * plan->w_support;
        if (!(plane > -2 - slack &&
              plane < plan->num_planes - plan->w_support + 1 + slack))
            return false;
    }
    return tess_brick_key_of(plan, uvw_m, inv_lambda) == brick;
}

static bool run_is_sound(const tess_grid_plan *plan, const tess_samples *samples,
                         const tess_run *run)
{
    if (run->row < 0 || run->row >= samples->num_rows || run->count < 1) return false;
    const int64_t before = run->first - samples->vis_first[run->row];
    if (before < 0 || before > samples->num_chan[run->row] - run->count ||
        run->chan != samples->chan_base[run->row] + before)
        return false;
    for (int32_t c = 0; c < run->count; ++c)
        if (!is_in_brick(plan, samples->uvw_m + 3 * (int64_t)run->row,
                         samples->inv_lambda[run->chan + c], run->brick))
            return false;
    return true;
}

bool tess_runs_are_sound(const tess_grid_plan *plan, const tess_samples *samples,
                         const tess_run *run, int64_t num_runs)
{
    for (int64_t k = 0; k < num_runs; ++k)
        if (!run_is_sound(plan, samples, &run[k])) return false;
    return true;
}
