/* Makes the density of visibilities on the uv-plane, in pages, for uniform and Briggs
 * weights. */
#include <math.h>
#include <string.h>

#include "density_pages.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_samples.h"

static const double WEIGHT_GRID_PADDING = 1.2; /* WSClean's */

/* Cells a side of the window of the rank filter. */
enum { RANK_CELLS = 16 };

struct tess_density {
    tess_weight_opts opts;
    density_layout layout;
    double **page;         /* [num_grids][pages_y][pages_x] or NULL */
    double mean_square[8]; /* Σ W² / Σ W of each grid, after the sum */
    double variance[8];    /* Σ W_c (factor of c)² of each grid, when finished */
    bool *counts;  /* [num_pages] this rank's copy of a page is the one that counts in
                      sums  over the ranks; NULL but in tess_density_finish */
    bool finished; /* pages are factors */
};

/* WSClean rounds the sides of its padded image up to a multiple of four, and its grid
 * of weights has the size of that image. With -super-weight F, it divides the number of
 * cells of a side by F and rounds it to an even number. */
static int64_t weight_grid_size(int64_t pixels, const tess_weight_opts *opts)
{
    const double padding = opts->padding > 0 ? opts->padding : WEIGHT_GRID_PADDING;
    const double fewer = opts->super_weight > 0 ? opts->super_weight : 1;
    const int64_t padded = ((int64_t)ceil((double)pixels * padding) + 3) / 4 * 4;
    const int64_t size = llround((double)padded / fewer);
    return size > 2 ? (size + 1) / 2 * 2 : 2;
}

static int64_t num_pages(const tess_density *density)
{
    return density_num_pages(&density->layout);
}

static void free_pages(const tess_density *density, double **pages)
{
    for (int64_t k = 0; pages && k < num_pages(density); ++k)
        tess_free(pages[k]);
    tess_free(pages);
}

/* Whether cells count what is around them, too. */
static bool boxes(const tess_density *density)
{
    return density->opts.box_cells > 0 && density->opts.weighting != TESS_NATURAL;
}

/* Lays out the grid of the density. An empty cell has the factor of no density, which
 * is 1 with natural and Briggs weights. Uniform weights have no factor there. */
static density_layout layout_for(const tess_geom *geom, const tess_weight_opts *opts,
                                 int num_weight)
{
    const int64_t nx = weight_grid_size(geom->nx, opts);
    const int64_t ny = weight_grid_size(geom->ny, opts);
    const double stretch = opts->stretch > 0 ? opts->stretch : 1;
    const tess_taper none = {0};
    return (density_layout){
        .num_grids = opts->first_density ? 1 : num_weight,
        .nx = nx,
        .ny = ny,
        .scale_x = (double)nx * geom->scale_rad * stretch,
        .scale_y = (double)ny * tess_geom_scale_m(geom) * stretch,
        .pages_x = (nx + DENSITY_PAGE - 1) / DENSITY_PAGE,
        .pages_y = (ny / 2 + DENSITY_PAGE) / DENSITY_PAGE,
        .empty_factor = opts->weighting != TESS_UNIFORM,
        .gauss = taper_gauss(opts->taper.at_visibilities ? &opts->taper : &none)};
}

tess_status tess_density_create(const tess_geom *geom, const tess_weight_opts *opts,
                                int num_weight, tess_density **density_out)
{
    tess_status status = TESS_OK;
    tess_density *density = tess_alloc_zero(1, sizeof *density);
    if (!density) TESS_FAIL(TESS_ERR_ALLOC, "weight density");
    density->opts = *opts;
    density->layout = layout_for(geom, opts, num_weight);
    density->page = tess_alloc_zero(num_pages(density), sizeof *density->page);
    if (!density->page) TESS_FAIL(TESS_ERR_ALLOC, "weight density");
    *density_out = density;
    density = NULL;
cleanup:
    tess_density_destroy(density);
    return status;
}

void tess_density_destroy(tess_density *density)
{
    if (!density) return;
    free_pages(density, density->page);
    tess_free(density->counts);
    tess_free(density);
}

double tess_density_quantum(double largest, int64_t num_vis)
{
    int exponent;
    frexp(largest * (double)num_vis, &exponent);
    return ldexp(1, exponent - 62);
}

const density_layout *density_layout_of(const tess_density *density)
{
    return &density->layout;
}

const double *density_page(const tess_density *density, int64_t number)
{
    return density->page[number];
}

/* Returns a page, which is made when it is first touched. If another thread makes it at
 * the same time, one of the two is dropped. */
double *density_page_made(tess_density *density, int64_t number)
{
    double *page = __atomic_load_n(&density->page[number], __ATOMIC_ACQUIRE);
    if (page) return page;
    double *fresh = tess_alloc_zero(DENSITY_PAGE_CELLS, sizeof *fresh),
           *expected = NULL;
    if (!fresh) return NULL;
    if (__atomic_compare_exchange_n(&density->page[number], &expected, fresh, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return fresh;
    tess_free(fresh);
    return expected;
}

/* Adds to a cell while other threads may do so, too. A page of integers has the size of
 * one of doubles, which it becomes in the end. */
static void add_to_cell(const tess_density *density, double *page, int cell,
                        double weight)
{
    const double quantum = density->opts.quantum;
    if (quantum > 0) {
        int64_t *fixed = (int64_t *)(void *)page;
#pragma omp atomic
        fixed[cell] += llrint(weight / quantum);
    } else {
#pragma omp atomic
        page[cell] += weight;
    }
}

static bool add_row(tess_density *density, const tess_samples *samples, int64_t row)
{
    const double u = samples->uvw_m[3 * row], v = samples->uvw_m[3 * row + 1];
    const double *inv_lambda = samples->inv_lambda + samples->chan_base[row];
    for (int32_t c = 0; c < samples->num_chan[row]; ++c)
        for (int k = 0; k < samples->num_weight; ++k) {
            const int64_t sample = samples->vis_first[row] + c;
            const double weight =
                tess_samples_weight(samples, sample * samples->num_weight + k);
            int64_t number;
            int cell;
            if (weight == 0) continue;
            if (!density_cell_of(&density->layout, k, u * inv_lambda[c],
                                 v * inv_lambda[c], &number, &cell))
                continue;
            /* weights that do not count find their factors there */
            double *page = density_page_made(density, number);
            if (!page) return false;
            if (k >= density->layout.num_grids) continue;
            add_to_cell(density, page, cell, weight);
        }
    return true;
}

tess_status tess_density_add(tess_density *density, const tess_samples *samples,
                             int64_t row_first, int64_t row_end, int num_threads)
{
    tess_status status = TESS_OK;
    bool complete = true;
    if (samples->resident)
        return samples->resident->add_density(samples->resident, density);
#pragma omp parallel for num_threads(num_threads) reduction(&& : complete)
    for (int64_t row = row_first; row < row_end; ++row)
        complete = add_row(density, samples, row) && complete;
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "no memory for the weight density");
cleanup:
    return status;
}

/* A page on its way to its owner, and back. */
typedef struct page_message {
    int64_t number;
    int64_t counts; /* on the way back it is 1 for one of the copies, and 0 for the
                       others */
    double cell[DENSITY_PAGE_CELLS];
} page_message;

static tess_status pack_pages(const tess_density *density, int size, page_message **out,
                              int64_t *bytes)
{
    tess_status status = TESS_OK;
    int64_t count = 0, at = 0;
    for (int64_t k = 0; k < num_pages(density); ++k)
        count += density->page[k] != NULL;
    page_message *message = tess_alloc(count, sizeof *message);
    if (!message)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to exchange %lld pages of weights",
                  (long long)count);
    for (int owner = 0; owner < size; ++owner)
        for (int64_t k = owner; k < num_pages(density); k += size) {
            if (!density->page[k]) continue;
            message[at].number = k;
            message[at].counts = 0;
            memcpy(message[at++].cell, density->page[k], sizeof message->cell);
            bytes[owner] += (int64_t)sizeof *message;
        }
    *out = message;
cleanup:
    return status;
}

static void add_page(const tess_density *density, double *to, const double *from)
{
    for (int c = 0; c < DENSITY_PAGE_CELLS; ++c)
        density_add_cell(density->opts.quantum > 0, &to[c], &from[c]);
}

/* Turns integers into weights. */
static void scale_page(const tess_density *density, double *page)
{
    for (int c = 0; density->opts.quantum > 0 && c < DENSITY_PAGE_CELLS; ++c) {
        int64_t fixed;
        memcpy(&fixed, &page[c], sizeof fixed);
        page[c] = (double)fixed * density->opts.quantum;
    }
}

/* Returns how many numbers sum up ΣW and ΣW² over the ranks: one for each grid, or one
 * for each page. A page has one owner, so these can be summed in the same order on any
 * number of ranks. */
static int64_t num_sums(const tess_density *density)
{
    return density->opts.quantum > 0 ? num_pages(density) : density->layout.num_grids;
}

/* Sums, at the owner, what the ranks have sent for each page, in the order of ranks.
 * Puts the sums back into all copies, and adds each page once to ΣW and ΣW². */
static tess_status sum_pages(const tess_density *density, page_message *message,
                             int64_t count, double *sum, double *sum_square)
{
    tess_status status = TESS_OK;
    double **total = tess_alloc_zero(num_pages(density), sizeof *total);
    if (!total) TESS_FAIL(TESS_ERR_ALLOC, "weight density");
    for (int64_t k = 0; k < count; ++k) {
        double **page = &total[message[k].number];
        message[k].counts = !*page;
        if (!*page)
            *page = message[k].cell;
        else
            add_page(density, *page, message[k].cell);
    }
    for (int64_t k = 0; k < num_pages(density); ++k)
        if (total[k]) scale_page(density, total[k]);
    for (int64_t k = 0; k < count; ++k)
        if (total[message[k].number] != message[k].cell)
            memcpy(message[k].cell, total[message[k].number], sizeof message[k].cell);
    for (int64_t k = 0; k < num_pages(density); ++k) {
        const int64_t which =
            density->opts.quantum > 0
                ? k
                : k / (density->layout.pages_x * density->layout.pages_y);
        for (int c = 0; total[k] && c < DENSITY_PAGE_CELLS; ++c) {
            sum[which] += total[k][c];
            sum_square[which] += total[k][c] * total[k][c];
        }
    }
cleanup:
    tess_free(total);
    return status;
}

/* Computes Σ W² / Σ W of a grid from the parts of both sums. */
static double mean_square_of(const tess_density *density, const double *sums, int which)
{
    const int64_t parts = num_sums(density), each = parts / density->layout.num_grids;
    double sum = 0, sum_square = 0;
    for (int64_t k = which * each; k < (which + 1) * each; ++k) {
        sum += sums[k];
        sum_square += sums[parts + k];
    }
    return sum > 0 ? sum_square / sum : 1;
}

static int64_t sum_of(const int64_t *counts, int num)
{
    int64_t sum = 0;
    for (int k = 0; k < num; ++k)
        sum += counts[k];
    return sum;
}

/* Copies pages that their owners have summed back to this rank's. */
static void take_back(const page_message *page, int64_t num, tess_density *density)
{
    for (int64_t k = 0; k < num; ++k) {
        memcpy(density->page[page[k].number], page[k].cell, sizeof page->cell);
        density->counts[page[k].number] = page[k].counts != 0;
    }
}

static tess_status sum_over_ranks(tess_density *density, tess_comm *comm)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(comm);
    const int64_t parts = num_sums(density);
    double *sums = tess_alloc_zero(2 * parts, sizeof *sums);
    page_message *send = NULL;
    void *at_owner = NULL, *returned = NULL;
    int64_t *counts = tess_alloc_zero(3 * size, sizeof *counts);
    density->counts = tess_alloc_zero(num_pages(density), sizeof *density->counts);
    if (!counts || !sums || !density->counts)
        status = TESS_ERR_ALLOC;
    else
        status = pack_pages(density, size, &send, counts);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_alltoallv(comm, send, counts, &at_owner, counts + size));
    tess_free(send);
    send = NULL;
    const int64_t received = sum_of(counts + size, size), own = sum_of(counts, size);
    status = sum_pages(density, at_owner, received / (int64_t)sizeof *send, sums,
                       sums + parts);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_alltoallv(comm, at_owner, counts + size, &returned,
                                 counts + 2 * size));
    take_back(returned, own / (int64_t)sizeof *send, density);
    TESS_TRY(tess_comm_allreduce_f64(comm, sums, 2 * parts, TESS_SUM));
    for (int k = 0; k < density->layout.num_grids; ++k)
        density->mean_square[k] = mean_square_of(density, sums, k);
cleanup:
    tess_free(sums);
    tess_free(send);
    tess_free(at_owner);
    tess_free(returned);
    tess_free(counts);
    return status;
}

/* The rank filter takes its mean over so many cells on each side of a cell. Cells
 * beyond the whole grid do not count. */
static int64_t rank_reach(const tess_density *density)
{
    const int64_t cells =
        density->opts.rank_cells > 0 ? density->opts.rank_cells : RANK_CELLS;
    return tess_min_i64(cells / 2,
                        tess_max_i64(density->layout.nx, density->layout.ny));
}

/* Makes those pages within `reach` cells of page k that are not there yet. */
static tess_status touch_around(tess_density *density, int64_t k, int64_t reach)
{
    tess_status status = TESS_OK;
    const int64_t nx = density->layout.pages_x, ny = density->layout.pages_y;
    const int64_t around = (reach + DENSITY_PAGE - 1) / DENSITY_PAGE;
    const int64_t x = k % nx, y = k / nx % ny, grid = k / (nx * ny);
    const int64_t x_end = tess_min_i64(x + around + 1, nx);
    const int64_t y_end = tess_min_i64(y + around + 1, ny);
    for (int64_t j = tess_max_i64(y - around, 0); j < y_end; ++j)
        for (int64_t i = tess_max_i64(x - around, 0); i < x_end; ++i)
            if (!density_page_made(density, (grid * ny + j) * nx + i))
                TESS_FAIL(TESS_ERR_ALLOC, "weight density");
cleanup:
    return status;
}

/* Makes those pages within `reach` cells of page k beyond v = 0, where conjugates are,
 * that are not there yet. */
static tess_status touch_conjugates(tess_density *density, int64_t k, int64_t reach)
{
    tess_status status = TESS_OK;
    const density_layout *layout = &density->layout;
    const int64_t nx = layout->pages_x, ny = layout->pages_y;
    const int64_t i0 = k % nx * DENSITY_PAGE, j0 = k / nx % ny * DENSITY_PAGE;
    const int64_t grid = k / (nx * ny);
    const int64_t first = tess_max_i64(layout->nx - DENSITY_PAGE - i0 - reach, 0);
    const int64_t end = tess_min_i64(layout->nx - i0 + reach, layout->nx);
    const int64_t rows = tess_min_i64(reach - j0, layout->ny / 2);
    for (int64_t j = 0; j * DENSITY_PAGE < rows; ++j)
        for (int64_t i = first / DENSITY_PAGE; i * DENSITY_PAGE < end; ++i)
            if (!density_page_made(density, (grid * ny + j) * nx + i))
                TESS_FAIL(TESS_ERR_ALLOC, "weight density");
cleanup:
    return status;
}

/* Makes the pages around each page, because sums over cells around a cell reach beyond
 * the border of a page, and with `conjugates` beyond v = 0. */
static tess_status touch_neighbours(tess_density *density, int64_t reach,
                                    bool conjugates)
{
    tess_status status = TESS_OK;
    const int64_t pages = num_pages(density);
    char *held = tess_alloc_zero(pages, 1);
    if (!held) TESS_FAIL(TESS_ERR_ALLOC, "weight density");
    for (int64_t k = 0; k < pages; ++k)
        held[k] = density->page[k] != NULL;
    for (int64_t k = 0; k < pages; ++k)
        if (held[k]) {
            TESS_TRY(touch_around(density, k, reach));
            if (conjugates) TESS_TRY(touch_conjugates(density, k, reach));
        }
cleanup:
    tess_free(held);
    return status;
}

/* Makes others the pages of a density. */
static void replace_pages(tess_density *density, double **fresh)
{
    for (int64_t k = 0; k < num_pages(density); ++k) {
        tess_free(density->page[k]);
        density->page[k] = fresh[k];
        fresh[k] = NULL;
    }
}

/* Sums a page over the squares around its cells into summed[number]; false: no memory.
 * `rows` is room for box_sum_page(). */
static bool sum_square_page(const tess_density *density, int64_t number, double *rows,
                            double **summed)
{
    if (!density->page[number]) return true;
    summed[number] = tess_alloc(DENSITY_PAGE_CELLS, sizeof **summed);
    if (!summed[number]) return false;
    box_sum_page(&density->layout, density->page, density->opts.quantum > 0,
                 density->opts.box_cells, number, rows, summed[number]);
    return true;
}

/* Sums what this rank has of the density over the square around each cell; the ranks
 * sum these sums. Each page is summed by one thread, in an order of its own, and is the
 * same with any number of them. */
static tess_status sum_squares(tess_density *density, int num_threads)
{
    tess_status status = TESS_OK;
    const int64_t reach = density->opts.box_cells;
    double **summed = tess_alloc_zero(num_pages(density), sizeof *summed);
    bool complete = true;
    if (!summed) TESS_FAIL(TESS_ERR_ALLOC, "weight density");
    TESS_TRY(touch_neighbours(density, reach, true));
#pragma omp parallel num_threads(num_threads) reduction(&& : complete)
    {
        double *rows =
            tess_alloc((DENSITY_PAGE + 2 * reach) * DENSITY_PAGE, sizeof *rows);
        complete = rows != NULL;
#pragma omp for schedule(dynamic)
        for (int64_t k = 0; k < num_pages(density); ++k)
            complete = complete && sum_square_page(density, k, rows, summed);
        tess_free(rows);
    }
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "weight density");
    replace_pages(density, summed);
cleanup:
    free_pages(density, summed);
    return status;
}

/* Returns f² of the grid of a page. */
static double robustness_of(const tess_density *density, int64_t page)
{
    const int64_t which = page / (density->layout.pages_x * density->layout.pages_y);
    return pow(5 * pow(10, -density->opts.robust), 2) / density->mean_square[which];
}

/* Turns densities into factors of weights. Natural weights have the factor 1; their
 * factors follow with the taper. */
static void to_factors(tess_density *density, int num_threads)
{
    if (density->opts.weighting == TESS_NATURAL) return;
    const bool uniform = density->opts.weighting == TESS_UNIFORM;
#pragma omp parallel for num_threads(num_threads) schedule(static)
    for (int64_t k = 0; k < num_pages(density); ++k) {
        const double f2 = robustness_of(density, k);
        double *page = density->page[k];
        for (int c = 0; page && c < DENSITY_PAGE_CELLS; ++c)
            if (page[c] > 0) page[c] = uniform ? 1 / page[c] : 1 / (1 + page[c] * f2);
    }
}

/* Computes the density of a cell from what to_factors() has made of it. */
static double weight_of(const tess_density *density, double f2, double value)
{
    switch (density->opts.weighting) {
    case TESS_UNIFORM:
        return 1 / value;
    case TESS_BRIGGS:
        return (1 / value - 1) / f2;
    default:
        return value;
    }
}

/* Returns the part of the variance that the cells of a page have. `page` is what
 * to_factors() has made, and `used` are the factors that multiply weights. */
static double variance_of(const tess_density *density, int64_t number,
                          const double *page, const double *used)
{
    const double f2 = robustness_of(density, number);
    double sum = 0;
    if (!density->counts[number]) return 0;
    for (int c = 0; c < DENSITY_PAGE_CELLS; ++c)
        if (page[c] > 0) sum += weight_of(density, f2, page[c]) * used[c] * used[c];
    return sum;
}

/* Adds up the variances of pages in their order, so that the sums are the same with any
 * number of threads. */
static void add_variances(tess_density *density, const double *variance)
{
    const int64_t pages = density->layout.pages_x * density->layout.pages_y;
    for (int64_t k = 0; k < num_pages(density); ++k)
        density->variance[k / pages] += variance[k];
}

/* Returns the taper that cells have. */
static tess_taper taper_of_cells(const tess_density *density)
{
    tess_taper taper = density->opts.taper;
    if (taper.at_visibilities) taper.fwhm_rad = 0;
    return taper;
}

/* Multiplies the factors of the cells of a page by the taper at their corners of least
 * u and v. */
static void taper_page(const tess_density *density, int64_t number,
                       const tess_taper *taper, double *used)
{
    const density_layout *layout = &density->layout;
    const double end_u = (double)(layout->nx / 2) / layout->scale_x;
    const double end_v = (double)(layout->ny / 2) / layout->scale_y;
    const int64_t i0 = number % layout->pages_x * DENSITY_PAGE - layout->nx / 2;
    const int64_t j0 = number / layout->pages_x % layout->pages_y * DENSITY_PAGE;
    if (tess_taper_is_none(taper)) return;
    for (int c = 0; c < DENSITY_PAGE_CELLS; ++c) {
        const double u = (double)(i0 + c % DENSITY_PAGE) / layout->scale_x;
        const double v = (double)(j0 + c / DENSITY_PAGE) / layout->scale_y;
        used[c] = density_factor(layout, used[c]) * taper_at(taper, u, v, end_u, end_v);
    }
}

/* Makes the final factors of a page from those of its density in `used`. Returns the
 * variance, for which all tapers are those at corners, and marks factors of 0, which
 * are not those of an empty cell. */
static double finish_page(const tess_density *density, int64_t number, double *used)
{
    const double *page = density->page[number];
    const tess_taper taper = taper_of_cells(density);
    const bool tapered = !tess_taper_is_none(&taper);
    double whole[DENSITY_PAGE_CELLS];
    memcpy(whole, used, sizeof whole);
    taper_page(density, number, &density->opts.taper, whole);
    const double variance = variance_of(density, number, page, whole);
    taper_page(density, number, &taper, used);
    for (int c = 0; tapered && c < DENSITY_PAGE_CELLS; ++c)
        if (!(used[c] > 0)) used[c] = -1;
    return variance;
}

/* Makes the final factors of all pages, and the variance of each page. */
static void finish_pages(const tess_density *density, int num_threads, double *variance)
{
    const bool natural = density->opts.weighting == TESS_NATURAL;
#pragma omp parallel for num_threads(num_threads) schedule(dynamic)
    for (int64_t k = 0; k < num_pages(density); ++k) {
        double used[DENSITY_PAGE_CELLS];
        if (!density->page[k]) continue;
        memcpy(used, density->page[k], sizeof used);
        for (int c = 0; natural && c < DENSITY_PAGE_CELLS; ++c)
            used[c] = 0; /* whose factor is 1 */
        variance[k] = finish_page(density, k, used);
        memcpy(density->page[k], used, sizeof used);
    }
}

/* Filters a page into filtered[number], and finishes it there; false: no memory. Pages
 * of the density stay as they are, because others are filtered by means over them. */
static bool filter_page(const tess_density *density, rank_filter *filter,
                        int64_t number, double **filtered, double *variance)
{
    if (!density->page[number]) return true;
    filtered[number] = tess_alloc_zero(DENSITY_PAGE_CELLS, sizeof **filtered);
    if (!filtered[number]) return false;
    rank_filter_page(filter, number, filtered[number]);
    variance[number] = finish_page(density, number, filtered[number]);
    return true;
}

/* The same with the rank filter. Each thread has a filter of its own, which is memory
 * to work in. */
static tess_status filter_ranks(tess_density *density, int num_threads,
                                double *variance)
{
    tess_status status = TESS_OK;
    double **filtered = tess_alloc_zero(num_pages(density), sizeof *filtered);
    bool complete = true;
    if (!filtered) TESS_FAIL(TESS_ERR_ALLOC, "weight density");
#pragma omp parallel num_threads(num_threads) reduction(&& : complete)
    {
        rank_filter *filter = NULL;
        complete =
            rank_filter_create(density->opts.rank_filter, rank_reach(density),
                               &density->layout, density->page, &filter) == TESS_OK;
#pragma omp for schedule(dynamic)
        for (int64_t k = 0; k < num_pages(density); ++k)
            complete = complete && filter_page(density, filter, k, filtered, variance);
        rank_filter_destroy(filter);
    }
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "weight density");
    replace_pages(density, filtered);
cleanup:
    free_pages(density, filtered);
    return status;
}

/* Turns the sum of all ranks' densities into factors. Local. */
static tess_status finish_factors(tess_density *density, bool filter, int num_threads)
{
    tess_status status = TESS_OK;
    double *variance = tess_alloc_zero(num_pages(density), sizeof *variance);
    if (!variance) TESS_FAIL(TESS_ERR_ALLOC, "weight density");
    to_factors(density, num_threads);
    if (filter)
        TESS_TRY(filter_ranks(density, num_threads, variance));
    else
        finish_pages(density, num_threads, variance);
    add_variances(density, variance);
cleanup:
    tess_free(variance);
    return status;
}

tess_status tess_density_finish(tess_density *density, tess_comm *comm, int num_threads)
{
    tess_status status = TESS_OK;
    const bool filter =
        density->opts.rank_filter > 0 && density->opts.weighting != TESS_NATURAL;
    if (boxes(density)) status = sum_squares(density, num_threads);
    if (status == TESS_OK && filter) /* which takes no conjugates */
        status = touch_neighbours(density, rank_reach(density), false);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(sum_over_ranks(density, comm));
    TESS_TRY(tess_comm_agree(comm, finish_factors(density, filter, num_threads)));
    TESS_TRY(tess_comm_allreduce_f64(comm, density->variance, density->layout.num_grids,
                                     TESS_SUM));
    density->finished = true;
cleanup:
    tess_free(density->counts);
    density->counts = NULL;
    return status;
}

tess_status tess_density_reach(tess_density *density, double u_lambda, double v_lambda)
{
    tess_status status = TESS_OK;
    int64_t number;
    int cell;
    for (int k = 0; k < density->layout.num_grids; ++k) {
        if (!density_cell_of(&density->layout, k, u_lambda, v_lambda, &number, &cell))
            return TESS_OK;
        if (!density_page_made(density, number))
            TESS_FAIL(TESS_ERR_ALLOC, "no memory for the weight density");
    }
cleanup:
    return status;
}

double tess_density_factor(const tess_density *density, int which, double u_lambda,
                           double v_lambda)
{
    int64_t number;
    int cell;
    if (!density_cell_of(&density->layout, which, u_lambda, v_lambda, &number, &cell) ||
        !density->page[number]) /* a density that was read back may lack pages */
        return 0;
    return density_factor(&density->layout, density->page[number][cell]) *
           density_gaussian(&density->layout.gauss, u_lambda, v_lambda);
}

static void apply_to_row(const tess_density *density, tess_samples *samples,
                         int64_t row)
{
    const double u = samples->uvw_m[3 * row], v = samples->uvw_m[3 * row + 1];
    const double *inv_lambda = samples->inv_lambda + samples->chan_base[row];
    for (int32_t c = 0; c < samples->num_chan[row]; ++c)
        for (int k = 0; k < samples->num_weight; ++k) {
            const int64_t at = (samples->vis_first[row] + c) * samples->num_weight + k;
            double weight = tess_samples_weight(samples, at);
            if (weight == 0) continue;
            weight *=
                tess_density_factor(density, k, u * inv_lambda[c], v * inv_lambda[c]);
            if (samples->is_double)
                ((double *)samples->weight)[at] = weight;
            else
                ((float *)samples->weight)[at] = (float)weight;
        }
}

tess_status tess_density_apply(const tess_density *density, tess_samples *samples,
                               int64_t row_first, int64_t row_end, int num_threads)
{
    if (samples->resident)
        return samples->resident->apply_density(samples->resident, density);
#pragma omp parallel for num_threads(num_threads)
    for (int64_t row = row_first; row < row_end; ++row)
        apply_to_row(density, samples, row);
    return TESS_OK;
}

double tess_density_variance(const tess_density *density, int which)
{
    return density->finished && !boxes(density) && which < density->layout.num_grids
               ? density->variance[which]
               : (double)NAN;
}

/* ---- as it is ---- */

bool tess_density_is_finished(const tess_density *density)
{
    return density->finished;
}

int64_t tess_density_most_bytes(const tess_density *density)
{
    return num_pages(density) * DENSITY_PAGE_CELLS * (int64_t)sizeof(double);
}

static int64_t count_pages(const tess_density *density)
{
    int64_t count = 0;
    for (int64_t k = 0; k < num_pages(density); ++k)
        count += density->page[k] != NULL;
    return count;
}

int64_t tess_density_bytes(const tess_density *density)
{
    return count_pages(density) * (int64_t)sizeof(page_message);
}

static tess_status write_pages(const tess_density *density, tess_mover *mover)
{
    tess_status status = TESS_OK;
    for (int64_t k = 0; k < num_pages(density); ++k) {
        if (!density->page[k]) continue;
        TESS_TRY(tess_move(mover, &k, sizeof k));
        TESS_TRY(tess_move(mover, density->page[k],
                           DENSITY_PAGE_CELLS * (int64_t)sizeof *density->page[k]));
    }
cleanup:
    return status;
}

static tess_status read_pages(tess_density *density, int64_t count, tess_mover *mover)
{
    tess_status status = TESS_OK;
    for (int64_t k = 0; k < count; ++k) {
        int64_t number = -1;
        TESS_TRY(tess_move(mover, &number, sizeof number));
        if (number < 0 || number >= num_pages(density))
            TESS_FAIL(TESS_ERR_INPUT, "checkpoint: weight density of another image");
        double *page = density_page_made(density, number);
        if (!page) TESS_FAIL(TESS_ERR_ALLOC, "weight density");
        TESS_TRY(tess_move(mover, page, DENSITY_PAGE_CELLS * (int64_t)sizeof *page));
    }
cleanup:
    return status;
}

tess_status tess_density_move(tess_density *density, tess_mover *mover)
{
    tess_status status = TESS_OK;
    int64_t head[2] = {density->finished, count_pages(density)};
    TESS_TRY(tess_move(mover, head, sizeof head));
    if (head[1] < 0 || head[1] > num_pages(density))
        TESS_FAIL(TESS_ERR_INPUT, "checkpoint: weight density of another image");
    TESS_TRY(tess_move(mover, density->mean_square, sizeof density->mean_square));
    TESS_TRY(tess_move(mover, density->variance, sizeof density->variance));
    density->finished = head[0] != 0;
    status = mover->reads ? read_pages(density, head[1], mover)
                          : write_pages(density, mover);
cleanup:
    return status;
}
