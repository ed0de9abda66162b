/* Makes images of spectra, those of large scales by way of coarser grids: see
 * cpu_grids.h. */
#include "cpu_grids.h"

#include <math.h>
#include <string.h>

#include "cpu_columns.h"
#include "tess_exact.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_omp.h"
#include "tess_real.h"

/* So many columns of a spectrum stand for as many, when grids are chosen. */
enum { COLUMN_STEP = 4 };

struct cpu_grids {
    int *of_scale; /* [num_scales] number of a grid; −1: that of the pixels */
    bool chosen;
    tess_convolve *plan[CLEAN_GRIDS]; /* NULL: not needed so far */
    double *weight[CLEAN_GRIDS];
    char *cells; /* of a plane, as far as pixels of this rank are made of them */
    int64_t cells_bytes;
    char *room; /* [threads] a row of cells, and one of pixels */
    int64_t room_bytes;
    int64_t lx;     /* of the plan of pixels */
    double seconds; /* of the interpolation */
};

/* One image under way. */
typedef struct grid_pass {
    const clean_work *work;
    const void *spectrum, *kernel;
    tess_convolve_take *take;
    void *context;
    /* with a coarser grid */
    int cell;                /* pixels of a cell */
    int64_t highest, length; /* last column of the plane's spectrum; of its columns */
    tess_convolve_part part; /* cells of the plane */
} grid_pass;

/* ---- memory ---- */

tess_status cpu_grids_create(const clean_setup *setup, cpu_grids **grids_out)
{
    tess_status status = TESS_OK;
    cpu_grids *grids = NULL;
    *grids_out = NULL;
    if (!clean_is_multiscale(setup)) return TESS_OK;
    grids = tess_alloc_zero(1, sizeof *grids);
    if (!grids) TESS_FAIL(TESS_ERR_ALLOC, "grids of scales");
    grids->of_scale = tess_alloc(setup->num_scales, sizeof *grids->of_scale);
    if (!grids->of_scale) TESS_FAIL(TESS_ERR_ALLOC, "grids of scales");
    for (int s = 0; s < setup->num_scales; ++s)
        grids->of_scale[s] = -1;
    *grids_out = grids;
    grids = NULL;
cleanup:
    cpu_grids_free(grids);
    return status;
}

void cpu_grids_free(cpu_grids *grids)
{
    if (!grids) return;
    for (int g = 0; g < CLEAN_GRIDS; ++g) {
        tess_convolve_destroy(grids->plan[g]);
        tess_free(grids->weight[g]);
    }
    tess_free(grids->of_scale);
    tess_free(grids->cells);
    tess_free(grids->room);
    tess_free(grids);
}

void cpu_grids_forget(cpu_grids *grids)
{
    if (grids) grids->chosen = false;
}

/* The cells that this rank's pixels are made of. */
static tess_convolve_part part_of(const tess_clean_images *images, int cell)
{
    const int64_t after = CLEAN_GRID_CELLS - CLEAN_GRID_BEFORE;
    const int64_t first = images->row_first / cell;
    const int64_t last = (images->row_first + images->num_rows - 1) / cell;
    tess_convolve_part part = {.x_first = -CLEAN_GRID_BEFORE,
                               .num_x = (images->nx - 1) / cell + CLEAN_GRID_CELLS,
                               .y_first = first - CLEAN_GRID_BEFORE,
                               .num_y = last - first + CLEAN_GRID_BEFORE + after};
    if (images->num_rows == 0) part.num_y = 0;
    return part;
}

static int64_t cells_bytes(const clean_setup *setup, int cell)
{
    const tess_convolve_part part = part_of(&setup->images, cell);
    return part.num_x * part.num_y * (setup->opts.is_double ? 8 : 4);
}

/* A thread's row of cells, and the pixels of whole cells. */
static int64_t row_bytes(const clean_setup *setup, int cell)
{
    const tess_convolve_part part = part_of(&setup->images, cell);
    const int64_t pixels = part.num_x * (cell + 1);
    return (pixels * (setup->opts.is_double ? 8 : 4) + 63) / 64 * 64;
}

double cpu_grids_bytes(const clean_setup *setup, const tess_convolve_opts *transforms)
{
    double bytes = 0, room = 0;
    int64_t lx, ly;
    tess_convolve_lengths(transforms, &lx, &ly);
    for (int g = CLEAN_GRIDS - 1; g >= 0; --g) {
        const int cell = clean_grid_cell(g);
        tess_convolve_opts plan = *transforms;
        double plan_bytes, spectrum;
        if (!clean_grid_fits(setup, g, lx, ly)) continue;
        plan.coarser = cell;
        plan.num_rows = part_of(&setup->images, cell).num_y;
        tess_convolve_bytes(&plan, &plan_bytes, &spectrum);
        bytes += plan_bytes;
        room = (double)cells_bytes(setup, cell) +
               (double)row_bytes(setup, cell) * setup->opts.threads;
    }
    return bytes + room;
}

/* Allocates room for this grid and coarser ones. */
static tess_status make_room(const clean_work *work, int grid)
{
    tess_status status = TESS_OK;
    cpu_grids *grids = work->grids;
    const int cell = clean_grid_cell(grid);
    const int64_t cells = cells_bytes(work->setup, cell);
    const int64_t row = row_bytes(work->setup, cell);
    if (!grids->weight[grid]) {
        grids->weight[grid] = tess_alloc(cell * CLEAN_GRID_CELLS, sizeof(double));
        if (!grids->weight[grid]) TESS_FAIL(TESS_ERR_ALLOC, "grids of scales");
        clean_grid_weights(grid, grids->weight[grid]);
    }
    if (cells > grids->cells_bytes) {
        tess_free(grids->cells);
        grids->cells_bytes = 0;
        grids->cells = tess_alloc(cells, 1);
        if (!grids->cells) TESS_FAIL(TESS_ERR_ALLOC, "residual on a coarser grid");
        grids->cells_bytes = cells;
    }
    if (row > grids->room_bytes) {
        tess_free(grids->room);
        grids->room_bytes = 0;
        grids->room = tess_alloc(work->setup->opts.threads, (size_t)row);
        if (!grids->room) TESS_FAIL(TESS_ERR_ALLOC, "residual on a coarser grid");
        grids->room_bytes = row;
    }
cleanup:
    return status;
}

static tess_status use_grid(clean_work *work, int grid,
                            const tess_convolve_opts *transforms)
{
    tess_status status = TESS_OK;
    tess_comm *comm = work->setup->comm;
    tess_convolve_opts opts = *transforms;
    opts.coarser = clean_grid_cell(grid);
    TESS_TRY(tess_comm_agree(comm, make_room(work, grid)));
    if (!work->grids->plan[grid])
        TESS_TRY(tess_convolve_create(comm, &opts, &work->grids->plan[grid]));
cleanup:
    return status;
}

/* ---- the choice ---- */

/* The sums that the choice needs. */
typedef struct variance_sums {
    const clean_work *work;
    int64_t lx;
    uint8_t *row_grids; /* [length] number of grids that hold the frequency of a row */
    double *magnitude;  /* [threads][length] */
    tess_exact *sum;    /* [num_scales][CLEAN_GRIDS + 1] */
} variance_sums;

/* The largest magnitude of the PSFs of all places at a frequency of a column. */
static double largest_psf(const clean_work *work, int image, int64_t column, int64_t k)
{
    double largest = 0;
    for (int place = 0; place < clean_num_psf_places(work->setup); ++place) {
        void *psf = work->psf[place * work->setup->images.num_images + image];
        const void *line = cpu_column(work, psf, column);
        const double re = tess_real_at(line, work->is_double, 2 * k);
        const double im = tess_real_at(line, work->is_double, 2 * k + 1);
        largest = fmax(largest, sqrt(re * re + im * im));
    }
    return largest;
}

/* magnitude[k] := Σ over images of share · |PSF| in a column. */
static void sum_magnitudes(const clean_work *work, int64_t column, double *magnitude)
{
    const clean_join *join = &work->setup->join;
    memset(magnitude, 0, (size_t)work->length * sizeof *magnitude);
    for (int i = 0; i < work->setup->images.num_images; ++i) {
        if (!cpu_has_data(work, i)) continue;
        for (int64_t k = 0; k < work->length; ++k)
            magnitude[k] += join->share[i] * largest_psf(work, i, column, k);
    }
}

/* Adds a column's variance at all scales, by the number of grids that hold it. */
static void add_column(const variance_sums *sums, int64_t column, double frequency)
{
    const clean_work *work = sums->work;
    const int held = clean_grids_with(frequency);
    double *magnitude = sums->magnitude + tess_omp_thread() * work->length;
    sum_magnitudes(work, column, magnitude);
    for (int s = 0; s < work->setup->num_scales; ++s) {
        const char *kernel = work->kernel[s];
        double by_grids[CLEAN_GRIDS + 1] = {0};
        if (!kernel) continue;
        kernel += (size_t)column * cpu_line_bytes(work) / 2;
        for (int64_t k = 0; k < work->length; ++k) {
            const double value = tess_real_at(kernel, work->is_double, k);
            by_grids[tess_min_i64(held, sums->row_grids[k])] +=
                magnitude[k] * value * value;
        }
#pragma omp critical(cpu_grids)
        for (int g = 0; g <= CLEAN_GRIDS; ++g)
            tess_exact_add(&sums->sum[s * (CLEAN_GRIDS + 1) + g], by_grids[g]);
    }
}

static void add_columns(const variance_sums *sums)
{
    const clean_work *work = sums->work;
    const int64_t ly = work->length;
    int64_t first, count, length;
    tess_convolve_columns(work->plan, &first, &count, &length);
    for (int64_t k = 0; k < ly; ++k)
        sums->row_grids[k] =
            (uint8_t)clean_grids_with((double)tess_min_i64(k, ly - k) / (double)ly);
#pragma omp parallel for schedule(dynamic) num_threads(work->setup->opts.threads)
    for (int64_t k = 0; k < count; ++k)
        if ((first + k) % COLUMN_STEP == 0)
            add_column(sums, k, (double)(first + k) / (double)sums->lx);
}

/* variance[num_scales] := that of every COLUMN_STEP-th column of all ranks. */
static tess_status measure(const clean_work *work, int64_t lx,
                           clean_grid_variance *variance)
{
    tess_status status = TESS_OK;
    tess_comm *comm = work->setup->comm;
    const int num = work->setup->num_scales * (CLEAN_GRIDS + 1);
    variance_sums sums = {.work = work, .lx = lx};
    sums.row_grids = tess_alloc(work->length, 1);
    sums.magnitude =
        tess_alloc(work->setup->opts.threads * work->length, sizeof *sums.magnitude);
    sums.sum = tess_alloc_zero(num, sizeof *sums.sum);
    TESS_TRY(tess_comm_agree(
        comm, sums.row_grids && sums.magnitude && sums.sum ? TESS_OK : TESS_ERR_ALLOC));
    add_columns(&sums);
    for (int k = 0; k < num; ++k) {
        TESS_TRY(tess_comm_allreduce_i64(comm, sums.sum[k].word, TESS_EXACT_WORDS,
                                         TESS_SUM));
        variance[k / (CLEAN_GRIDS + 1)].by_grids[k % (CLEAN_GRIDS + 1)] =
            tess_exact_value(&sums.sum[k]);
    }
cleanup:
    tess_free(sums.row_grids);
    tess_free(sums.magnitude);
    tess_free(sums.sum);
    return status;
}

tess_status cpu_grids_choose(clean_work *work, const tess_convolve_opts *transforms)
{
    tess_status status = TESS_OK;
    cpu_grids *grids = work->grids;
    const clean_setup *setup = work->setup;
    clean_grid_variance variance[TESS_CLEAN_MOST_SCALES] = {0};
    int64_t ly;
    if (!grids || grids->chosen) return TESS_OK;
    tess_convolve_lengths(transforms, &grids->lx, &ly);
    if (!clean_grid_fits(setup, 0, grids->lx, ly)) return TESS_OK;
    TESS_TRY(measure(work, grids->lx, variance));
    for (int s = 0; s < setup->num_scales; ++s) {
        const int grid = clean_grid_of(setup, grids->lx, ly, &variance[s]);
        grids->of_scale[s] = work->kernel[s] ? grid : -1;
        if (grids->of_scale[s] < 0) continue;
        TESS_TRY(use_grid(work, grid, transforms));
        tess_log_debug("scale %.4g pixels: cells of %d pixels", setup->scale_px[s],
                       clean_grid_cell(grid));
    }
    grids->chosen = true;
cleanup:
    return status;
}

/* ---- images ---- */

static bool give_column(void *context, int64_t column, void *line)
{
    const grid_pass *pass = context;
    cpu_times_kernel(pass->work, pass->spectrum, pass->kernel, 1, column, line);
    return true;
}

static void take_row(void *context, int64_t row, void *line)
{
    const grid_pass *pass = context;
    pass->take(pass->context, row, line);
}

/* The low frequencies of a column. The highest one that the plane has is left out,
 * because its sign is not known there. */
static bool give_low(void *context, int64_t column, void *line)
{
    const grid_pass *pass = context;
    const clean_work *work = pass->work;
    const int64_t half = pass->length / 2;
    const size_t bytes = 2 * work->real_bytes;
    const double factor = 1.0 / (pass->cell * pass->cell);
    const int64_t low[2] = {0, half}, negative[2] = {work->length - half + 1, half - 1};
    if (column == pass->highest) return false;
    cpu_times_part(work, pass->spectrum, pass->kernel, column, low, factor, line);
    memset((char *)line + (size_t)half * bytes, 0, bytes);
    cpu_times_part(work, pass->spectrum, pass->kernel, column, negative, factor,
                   (char *)line + (size_t)(half + 1) * bytes);
    return true;
}

static void take_cells(void *context, int64_t row, void *line)
{
    const grid_pass *pass = context;
    const size_t bytes = (size_t)pass->part.num_x * pass->work->real_bytes;
    memcpy(pass->work->grids->cells + (size_t)row * bytes, line, bytes);
}

/* Makes a row of pixels of rows of cells, and gives it away. */
static void refine_row(const grid_pass *pass, int grid, int64_t row)
{
    const clean_work *work = pass->work;
    const cpu_grids *grids = work->grids;
    const tess_clean_images *images = &work->setup->images;
    const int64_t y = images->row_first + row, cell = pass->cell;
    const size_t bytes = (size_t)pass->part.num_x * work->real_bytes;
    char *room = grids->room + tess_omp_thread() * grids->room_bytes;
    const char *first =
        grids->cells +
        (size_t)(y / cell - CLEAN_GRID_BEFORE - pass->part.y_first) * bytes;
    const void *from = first + CLEAN_GRID_BEFORE * bytes, *line[CLEAN_GRID_CELLS];
    for (int c = 0; c < CLEAN_GRID_CELLS; ++c)
        line[c] = first + (size_t)c * bytes;
    if (y % cell != 0) {
        work->vector->weigh[work->is_double](
            line, grids->weight[grid] + y % cell * CLEAN_GRID_CELLS, pass->part.num_x,
            room);
        from = room;
    }
    char *made = room + bytes;
    work->vector->refine[work->is_double](from, grids->weight[grid], pass->cell,
                                          (images->nx - 1) / cell + 1, made);
    pass->take(pass->context, row, made);
}

static tess_status inverse_on_grid(clean_work *work, int grid, grid_pass *pass)
{
    tess_status status = TESS_OK;
    tess_convolve *plan = work->grids->plan[grid];
    int64_t first, columns;
    pass->cell = clean_grid_cell(grid);
    pass->part = part_of(&work->setup->images, pass->cell);
    tess_convolve_columns(plan, &first, &columns, &pass->length);
    pass->highest = work->grids->lx / (2 * pass->cell) - first;
    TESS_TRY(tess_convolve_inverse(plan, &pass->part, give_low, take_cells, pass));
    const double start = tess_time_now();
#pragma omp parallel for schedule(dynamic, 8) num_threads(work->setup->opts.threads)
    for (int64_t row = 0; row < work->setup->images.num_rows; ++row)
        refine_row(pass, grid, row);
    work->grids->seconds += tess_time_now() - start;
cleanup:
    return status;
}

tess_status cpu_inverse(clean_work *work, int scale, const void *spectrum,
                        tess_convolve_take *take, void *context)
{
    const int grid = work->grids && scale >= 0 ? work->grids->of_scale[scale] : -1;
    grid_pass pass = {.work = work,
                      .spectrum = spectrum,
                      .kernel = scale >= 0 ? work->kernel[scale] : NULL,
                      .take = take,
                      .context = context};
    if (grid >= 0) return inverse_on_grid(work, grid, &pass);
    return tess_convolve_inverse(work->plan, NULL, give_column, take_row, &pass);
}

void cpu_grids_spent(const cpu_grids *grids, double *transforms, double *seconds)
{
    *transforms = 0;
    *seconds = 0;
    if (!grids) return;
    *seconds = grids->seconds;
    for (int g = 0; g < CLEAN_GRIDS; ++g) {
        double own = 0, own_s = 0;
        if (grids->plan[g]) tess_convolve_spent(grids->plan[g], &own, &own_s);
        *transforms += own;
        *seconds += own_s;
    }
}
