/* Sums a density over squares of cells, for superuniform weights. It sums over the rows
 * of a square first, and then over its columns. */
#include "density_pages.h"

/* Cell (i, j) of a grid: one of v < 0 is the cell that its conjugates fall into. NULL:
 * it is beyond the grid, or on a page that is not there. */
static const double *cell_at(const density_layout *layout, double *const *page,
                             int64_t which, int64_t i, int64_t j)
{
    const int64_t x = j < 0 ? layout->nx - 1 - i : i, y = j < 0 ? -1 - j : j;
    if (x < 0 || x >= layout->nx || y >= layout->ny / 2) return NULL;
    const double *cell =
        page[(which * layout->pages_y + y / DENSITY_PAGE) * layout->pages_x +
             x / DENSITY_PAGE];
    return cell ? cell + y % DENSITY_PAGE * DENSITY_PAGE + x % DENSITY_PAGE : NULL;
}

void box_sum_page(const density_layout *layout, double *const *page, bool fixed,
                  int64_t reach, int64_t number, double *rows, double *out)
{
    const int64_t which = number / (layout->pages_x * layout->pages_y);
    const int64_t i0 = number % layout->pages_x * DENSITY_PAGE;
    const int64_t j0 = number / layout->pages_x % layout->pages_y * DENSITY_PAGE;
    for (int64_t at = 0; at < (DENSITY_PAGE + 2 * reach) * DENSITY_PAGE; ++at) {
        const int64_t i = i0 + at % DENSITY_PAGE, j = j0 - reach + at / DENSITY_PAGE;
        rows[at] = 0; /* an integer, too */
        for (int64_t x = i - reach; x <= i + reach; ++x) {
            const double *cell = cell_at(layout, page, which, x, j);
            if (cell) density_add_cell(fixed, &rows[at], cell);
        }
    }
    for (int c = 0; c < DENSITY_PAGE_CELLS; ++c) {
        const int64_t i = i0 + c % DENSITY_PAGE, j = j0 + c / DENSITY_PAGE;
        out[c] = 0;
        if (i >= layout->nx || j >= layout->ny / 2) continue;
        for (int64_t y = 0; y <= 2 * reach; ++y)
            density_add_cell(fixed, &out[c], &rows[c + y * DENSITY_PAGE]);
    }
}
