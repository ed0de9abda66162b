/* Measures how long one core takes for each part of the work. Each part is done as in a
 * run. */
#define _GNU_SOURCE
#include <math.h>
#include <time.h>

#include "tess_calibrate.h"
#include "tess_const.h"
#include "tess_fft.h"
#include "tess_grid.h"
#include "tess_mem.h"
#include "tess_planes.h"
#include "tess_samples.h"

/* Number of visibilities. There are so many in a brick that the time of its sums is
 * small. */
enum { ROWS = 256, CHANNELS = 16, PIXELS = 40 };
static const double FIELD_RAD = 4e-3,
                    LONGEST = 0.45; /* baseline, as a share of the grid's width */

/* Each time is measured so often, and the shortest counts: other measurements were
 * disturbed by caches and clocks. */
enum { TIMES = 4 };

/* Largest support that is measured. */
static const int LAST_SUPPORT[2] = {9, 14};

/* Cells and pixels of a plane along each axis, and pixels of a narrow plane. FFTW
 * measures its plans from this product of lines and length on. */
enum { CELLS = 640, SIDE = 480, NARROW = 32, TILE_LINES = 22 };
static const int64_t MANY_PLANES = 1000000;

/* Processor time of this thread, which alone works here: other work of the machine does
 * not count. */
static double own_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double *inv_lambda_of(double *table)
{
    for (int c = 0; c < CHANNELS; ++c)
        table[c] = 1 + 0.01 * c;
    return table;
}

/* Makes rows anywhere on the grid, with channels along a track. */
static tess_status make_samples(bool is_double, const double *inv_lambda,
                                tess_samples *samples)
{
    tess_status status = TESS_OK;
    uint64_t state = 7; /* state of Knuth's random generator */
    *samples = (tess_samples){.is_double = is_double,
                              .num_pol = 1,
                              .num_weight = 1,
                              .inv_lambda = inv_lambda};
    TESS_TRY(tess_samples_reserve(samples, ROWS, ROWS * CHANNELS));
    samples->num_rows = ROWS;
    samples->num_vis = ROWS * CHANNELS;
    for (int64_t row = 0; row < ROWS; ++row) {
        samples->chan_base[row] = 0;
        samples->num_chan[row] = CHANNELS;
        samples->vis_first[row] = row * CHANNELS;
        for (int axis = 0; axis < 3; ++axis) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            samples->uvw_m[3 * row + axis] = LONGEST * PIXELS / FIELD_RAD *
                                             ((double)(state >> 11) * 0x1p-52 - 1) /
                                             inv_lambda[CHANNELS - 1];
        }
    }
    for (int64_t k = 0; k < 3 * samples->num_vis;
         ++k) { /* two parts of a visibility, and a weight */
        void *to = k < 2 * samples->num_vis ? samples->vis : samples->weight;
        const int64_t at = k < 2 * samples->num_vis ? k : k - 2 * samples->num_vis;
        if (is_double)
            ((double *)to)[at] = 1;
        else
            ((float *)to)[at] = 1;
    }
cleanup:
    return status;
}

static tess_status make_plan(bool is_double, int support, int64_t pixels,
                             tess_grid_plan **plan)
{
    tess_status status = TESS_OK;
    const tess_backend *cpu;
    const tess_geom geom = {
        .nx = pixels, .ny = pixels, .scale_rad = FIELD_RAD / (double)pixels};
    tess_grid_opts opts;
    tess_grid_opts_default(&opts);
    opts.accuracy = 0.1; /* any kernel will do */
    opts.support = support;
    opts.precision = is_double ? TESS_PRECISION_DOUBLE : TESS_PRECISION_SINGLE;
    opts.padding_min = opts.padding_max = 1.4;
    opts.w_max_lambda = LONGEST * PIXELS / FIELD_RAD;
    opts.num_vis = ROWS * CHANNELS;
    TESS_TRY(tess_backend_find("cpu", &cpu));
    TESS_TRY(tess_grid_plan_create(&geom, &opts, cpu, plan));
cleanup:
    return status;
}

/* Shortest time of gridding all bricks [s]. */
static tess_status time_grid(const tess_grid_plan *plan, const tess_samples *samples,
                             const tess_brick_list *bricks, double *seconds)
{
    tess_status status = TESS_OK;
    tess_brick_sums sums = {.num_pol = 1};
    const tess_grid_ops *ops = plan->backend->grid;
    tess_grid_report report = {.busy_share = 1};
    TESS_TRY(ops->begin(plan, samples, bricks, 0, bricks->num_bricks, &sums));
    *seconds = INFINITY;
    for (int k = 0; k < TIMES; ++k) {
        const double start = own_time();
        TESS_TRY(ops->grid(plan, samples, bricks, 0, false, &sums, &report));
        *seconds = fmin(*seconds, own_time() - start);
    }
cleanup:
    tess_brick_sums_free(&sums);
    return status;
}

/* Multiplies the built-in costs of each support by a factor. */
static void scale_support(bool is_double, int support, double factor, tess_costs *costs)
{
    costs->vis_s[is_double][support] =
        factor * tess_costs_builtin.vis_s[is_double][support];
    costs->update_s[is_double][support] =
        factor * tess_costs_builtin.update_s[is_double][support];
}

static tess_status measure_support(const tess_samples *samples, int support,
                                   double *factor, tess_costs *costs)
{
    tess_status status = TESS_OK;
    tess_grid_plan *plan = NULL;
    tess_brick_list bricks = {0};
    double seconds = 0;
    TESS_TRY(make_plan(samples->is_double, support, PIXELS, &plan));
    const double start = own_time();
    TESS_TRY(tess_brick_list_make(plan, samples, true, &bricks));
    costs->sort_s =
        fmin(costs->sort_s, (own_time() - start) / (double)samples->num_vis);
    TESS_TRY(time_grid(plan, samples, &bricks, &seconds));
    *factor = seconds / (double)samples->num_vis / tess_grid_cost_vis(plan);
cleanup:
    tess_brick_list_free(&bricks);
    tess_grid_plan_destroy(plan);
    return status;
}

static tess_status measure_gridding(bool is_double, tess_costs *costs)
{
    tess_status status = TESS_OK;
    double table[CHANNELS], factor = 1;
    tess_samples samples = {0};
    TESS_TRY(make_samples(is_double, inv_lambda_of(table), &samples));
    for (int w = TESS_MIN_SUPPORT; w <= TESS_MAX_SUPPORT; ++w) {
        /* larger supports have the factor of the last one */
        if (w <= LAST_SUPPORT[is_double])
            TESS_TRY(measure_support(&samples, w, &factor, costs));
        scale_support(is_double, w, factor, costs);
    }
cleanup:
    tess_samples_free(&samples);
    return status;
}

/* ---- planes ---- */

/* Fills a plane with tiles and their halos, like brick sums. */
static tess_status make_pieces(bool is_double, void **values, tess_piece **pieces_out,
                               int64_t *count)
{
    tess_status status = TESS_OK;
    const int64_t tiles = CELLS / TESS_TILE, size = TILE_LINES * TILE_LINES;
    const int64_t bytes = is_double ? 16 : 8;
    tess_piece *piece = tess_alloc(tiles * tiles, sizeof *piece);
    *values = tess_alloc_zero(tiles * tiles * size, (size_t)bytes);
    *pieces_out = piece;
    if (!piece || !*values) TESS_FAIL(TESS_ERR_ALLOC, "pieces of a plane");
    *count = 0;
    for (int64_t u = 0; u < tiles; ++u)
        for (int64_t v = 0; v < tiles; ++v, ++*count) {
            const int64_t left = CELLS - u * TESS_TILE;
            piece[*count] = (tess_piece){
                .line = (int32_t)(u * TESS_TILE),
                .num_lines = (int32_t)(left < TILE_LINES ? left : TILE_LINES),
                .cell = (int32_t)(v * TESS_TILE),
                .num_cells = TILE_LINES,
                .stride = TILE_LINES,
                .data = (char *)*values + *count * size * bytes,
                .order = *count};
        }
cleanup:
    return status;
}

/* Shortest time of adding a plane to an image of nx × SIDE pixels [s]. */
static tess_status time_plane(bool is_double, int64_t nx, tess_plane_job *job,
                              double *seconds)
{
    tess_status status = TESS_OK;
    tess_comm *comm = NULL;
    tess_planes *planes = NULL;
    const tess_backend *cpu;
    const int64_t slab[2] = {0, CELLS};
    const tess_planes_opts opts = {.nx = nx,
                                   .ny = SIDE,
                                   .nu = CELLS,
                                   .nv = CELLS,
                                   .scale_rad = 1e-5,
                                   .do_w = true,
                                   .is_double = is_double,
                                   .forward = true,
                                   .num_images = 1,
                                   .threads = 1,
                                   .fft_ranks = 1,
                                   .slab_line = slab,
                                   .num_planes = MANY_PLANES};
    tess_planes_times times = {0};
    tess_status own = TESS_OK;
    TESS_TRY(tess_comm_self(&comm));
    TESS_TRY(tess_backend_find("cpu", &cpu));
    TESS_TRY(tess_planes_create(comm, cpu->planes, &opts, &planes));
    *seconds = INFINITY;
    for (int k = 0; k < TIMES; ++k) {
        const double start = own_time();
        TESS_TRY(tess_planes_accumulate(planes, job, &own, &times));
        TESS_TRY(own);
        *seconds = fmin(*seconds, own_time() - start);
    }
cleanup:
    tess_planes_destroy(planes);
    tess_comm_free(comm);
    return status;
}

/* Time of a transform of CELLS values [s]. */
static tess_status time_fft(bool is_double, double *seconds)
{
    tess_status status = TESS_OK;
    enum { LINES = 300 };
    tess_fft *fft = NULL;
    void *line = tess_alloc_zero(CELLS, is_double ? 16 : 8);
    void *out = tess_alloc_zero(CELLS, is_double ? 16 : 8);
    if (!line || !out) TESS_FAIL(TESS_ERR_ALLOC, "line of a plane");
    TESS_TRY(tess_fft_create(CELLS, true, is_double, MANY_PLANES * CELLS, &fft));
    *seconds = INFINITY;
    for (int k = 0; k < TIMES; ++k) {
        const double start = own_time();
        for (int j = 0; j < LINES; ++j)
            tess_fft_execute(fft, line, out);
        *seconds = fmin(*seconds, (own_time() - start) / LINES);
    }
cleanup:
    tess_fft_destroy(fft);
    tess_free(line);
    tess_free(out);
    return status;
}

static tess_status measure_planes(bool is_double, tess_costs *costs)
{
    tess_status status = TESS_OK;
    void *values = NULL;
    tess_piece *piece = NULL;
    tess_plane_job job = {.active = true, .w_lambda = 1000};
    double fft = 0, wide = 0, narrow = 0;
    TESS_TRY(make_pieces(is_double, &values, &piece, &job.num_pieces));
    job.piece = piece;
    TESS_TRY(time_fft(is_double, &fft));
    TESS_TRY(time_plane(is_double, SIDE, &job, &wide));
    TESS_TRY(time_plane(is_double, NARROW, &job, &narrow));
    costs->fft_flop_s[is_double] = fft / (5 * CELLS * log2(CELLS));
    const double pixel = fmax(0, wide - narrow) / ((SIDE - NARROW) * (double)SIDE);
    const double lines = wide - fft * (CELLS + SIDE) - pixel * SIDE * (double)SIDE;
    costs->pixel_s[is_double] = pixel;
    costs->line_s[is_double] = fmax(0, lines) / (CELLS * (double)(CELLS + SIDE));
cleanup:
    tess_free(values);
    tess_free(piece);
    return status;
}

static tess_status measure_correction(tess_costs *costs)
{
    tess_status status = TESS_OK;
    enum { ROW = 1024, NUM_ROWS = 32 };
    tess_grid_plan *plan = NULL;
    double *row = tess_alloc(ROW, sizeof *row);
    if (!row) TESS_FAIL(TESS_ERR_ALLOC, "row of an image");
    TESS_TRY(make_plan(false, 6, ROW, &plan));
    costs->correct_s = INFINITY;
    for (int k = 0; k < TIMES; ++k) {
        const double start = own_time();
        for (int j = 0; j < NUM_ROWS; ++j)
            tess_grid_correction_row(plan, j, row);
        costs->correct_s =
            fmin(costs->correct_s, (own_time() - start) / (ROW * NUM_ROWS));
    }
cleanup:
    tess_free(row);
    tess_grid_plan_destroy(plan);
    return status;
}

tess_status tess_calibrate_core(tess_costs *costs)
{
    tess_status status = TESS_OK;
    tess_costs found = *costs;
    found.sort_s = INFINITY;
    for (int d = 0; d < 2; ++d) {
        TESS_TRY(measure_gridding(d, &found));
        TESS_TRY(measure_planes(d, &found));
    }
    TESS_TRY(measure_correction(&found));
    found.measured = true;
    *costs = found;
cleanup:
    return status;
}
