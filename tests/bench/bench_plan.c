/* Makes the gridder's plan and samples from a benchmark's set. */
#include "bench_plan.h"
#include "tess_samples.h"

#include <math.h>
#include <string.h>

tess_status bench_plan(const bench_set *set, double accuracy, int threads,
                       tess_grid_plan **plan)
{
    tess_status status = TESS_OK;
    const tess_backend *backend;
    const tess_geom geom = {
        .nx = set->num_pixels, .ny = set->num_pixels, .scale_rad = set->scale_rad};
    tess_grid_opts grid;
    tess_grid_opts_default(&grid);
    grid.accuracy = accuracy;
    grid.threads = threads;
    grid.num_vis = set->num_rows * set->num_chan;
    grid.w_min_lambda = INFINITY;
    for (int64_t row = 0; row < set->num_rows; ++row)
        for (int64_t c = 0; c < set->num_chan; c += set->num_chan - 1) {
            const double w = fabs(set->uvw_m[3 * row + 2]) * set->inv_lambda[c];
            grid.w_min_lambda = fmin(grid.w_min_lambda, w);
            grid.w_max_lambda = fmax(grid.w_max_lambda, w);
        }
    TESS_TRY(tess_backend_find("cpu", &backend));
    TESS_TRY(tess_grid_plan_create(&geom, &grid, backend, plan));
cleanup:
    return status;
}

tess_status bench_samples(const bench_set *set, bool is_double, tess_samples *samples)
{
    tess_status status = TESS_OK;
    const int64_t num_vis = set->num_rows * set->num_chan;
    *samples = (tess_samples){.is_double = is_double,
                              .num_pol = 1,
                              .num_weight = 1,
                              .inv_lambda = set->inv_lambda};
    TESS_TRY(tess_samples_reserve(samples, set->num_rows, num_vis));
    memcpy(samples->uvw_m, set->uvw_m, (size_t)set->num_rows * 3 * sizeof(double));
    for (int64_t row = 0; row < set->num_rows; ++row) {
        samples->chan_base[row] = 0;
        samples->num_chan[row] = (int32_t)set->num_chan;
        samples->vis_first[row] = row * set->num_chan;
    }
    for (int64_t k = 0; k < num_vis; ++k)
        if (is_double) {
            ((double *)samples->vis)[2 * k] = set->vis[2 * k];
            ((double *)samples->vis)[2 * k + 1] = set->vis[2 * k + 1];
            ((double *)samples->weight)[k] = 1;
        } else {
            ((float *)samples->vis)[2 * k] = set->vis[2 * k];
            ((float *)samples->vis)[2 * k + 1] = set->vis[2 * k + 1];
            ((float *)samples->weight)[k] = 1;
        }
    samples->num_rows = set->num_rows;
    samples->num_vis = num_vis;
cleanup:
    return status;
}
