/* Limits the factors of a density's cells to a multiple of the mean around them. It
 * sums over the rows of the window first, and then over its columns. */
#include "density_pages.h"

#include "tess_mem.h"
#include "tess_minmax.h"

/* A sum of factors, and the number of cells that have one. */
typedef struct cell_sum {
    double sum;
    int64_t count;
} cell_sum;

struct rank_filter {
    double limit;
    int64_t reach;
    const density_layout *layout;
    double *const *page; /* [number], or NULL where no sample is */
    cell_sum *rows; /* [DENSITY_PAGE + 2 reach][DENSITY_PAGE], of a page's columns */
};

tess_status rank_filter_create(double limit, int64_t reach,
                               const density_layout *layout, double *const *page,
                               rank_filter **filter_out)
{
    tess_status status = TESS_OK;
    rank_filter *filter = tess_alloc_zero(1, sizeof *filter);
    if (!filter) TESS_FAIL(TESS_ERR_ALLOC, "rank filter");
    filter->limit = limit;
    filter->reach = reach;
    filter->layout = layout;
    filter->page = page;
    filter->rows =
        tess_alloc((DENSITY_PAGE + 2 * reach) * DENSITY_PAGE, sizeof *filter->rows);
    if (!filter->rows) TESS_FAIL(TESS_ERR_ALLOC, "rank filter");
    *filter_out = filter;
    filter = NULL;
cleanup:
    rank_filter_destroy(filter);
    return status;
}

void rank_filter_destroy(rank_filter *filter)
{
    if (!filter) return;
    tess_free(filter->rows);
    tess_free(filter);
}

/* Returns the factor of cell (i, j) of a grid, in which the cell lies. */
static double factor_at(const rank_filter *filter, int64_t which, int64_t i, int64_t j)
{
    const density_layout *layout = filter->layout;
    const int64_t number =
        (which * layout->pages_y + j / DENSITY_PAGE) * layout->pages_x +
        i / DENSITY_PAGE;
    const double *page = filter->page[number];
    return density_factor(
        layout, page ? page[(j % DENSITY_PAGE) * DENSITY_PAGE + i % DENSITY_PAGE] : 0);
}

/* Sums the cells [i − reach, i + reach) of row j. */
static cell_sum sum_of_row(const rank_filter *filter, int64_t which, int64_t i,
                           int64_t j)
{
    const density_layout *layout = filter->layout;
    const int64_t first = tess_max_i64(i - filter->reach, 0);
    const int64_t end = tess_min_i64(i + filter->reach, layout->nx);
    cell_sum row = {0};
    if (j < 0 || j >= layout->ny / 2) return row;
    for (int64_t x = first; x < end; ++x) {
        const double factor = factor_at(filter, which, x, j);
        row.sum += factor;
        row.count += factor > 0;
    }
    return row;
}

/* Caps a factor by the mean of the window around its cell, of which the sums of rows
 * are given. */
static double capped(const rank_filter *filter, const cell_sum *rows, double value)
{
    cell_sum window = {0};
    for (int64_t y = 0; y < 2 * filter->reach; ++y) {
        window.sum += rows[y * DENSITY_PAGE].sum;
        window.count += rows[y * DENSITY_PAGE].count;
    }
    if (window.count == 0) return value;
    const double most = filter->limit * window.sum / (double)window.count;
    return value < most ? value : most;
}

void rank_filter_page(rank_filter *filter, int64_t number, double *out)
{
    const density_layout *layout = filter->layout;
    const double *page = filter->page[number];
    const int64_t which = number / (layout->pages_x * layout->pages_y);
    const int64_t i0 = number % layout->pages_x * DENSITY_PAGE;
    const int64_t j0 = number / layout->pages_x % layout->pages_y * DENSITY_PAGE;
    for (int64_t y = 0; y < DENSITY_PAGE + 2 * filter->reach; ++y)
        for (int64_t x = 0; x < DENSITY_PAGE; ++x)
            filter->rows[y * DENSITY_PAGE + x] =
                sum_of_row(filter, which, i0 + x, j0 + y - filter->reach);
    for (int c = 0; c < DENSITY_PAGE_CELLS; ++c)
        if (density_factor(layout, page[c]) > 0)
            out[c] = capped(filter, filter->rows + c, density_factor(layout, page[c]));
}
