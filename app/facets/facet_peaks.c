/* Finds the directions of facets in an image: its largest pixels. */
#include <math.h>
#include <stdio.h>

#include "facet_outline.h"
#include "tess_mem.h"
#include "tess_minmax.h"

/* A pixel and its number, row · nx + column; −1: there is none. */
typedef struct pixel_peak {
    double value;
    int64_t index;
} pixel_peak;

static bool is_larger(const pixel_peak *one, const pixel_peak *other)
{
    if (one->index < 0 || other->index < 0) return one->index > other->index;
    return one->value > other->value ||
           (!(one->value < other->value) && one->index < other->index);
}

/* The largest pixel of this rank. */
static pixel_peak largest_here(const tess_rows *rows)
{
    pixel_peak best = {0, -1};
    for (int64_t k = 0; k < tess_rows_count(rows); ++k) {
        const pixel_peak pixel = {tess_rows_pixel(rows, k),
                                  rows->row_first * rows->nx + k};
        if (isfinite(pixel.value) && is_larger(&pixel, &best)) best = pixel;
    }
    return best;
}

/* The largest pixel of all ranks. Collective. */
static tess_status find_largest(tess_comm *comm, const tess_rows *rows,
                                pixel_peak *of_rank, pixel_peak *largest)
{
    tess_status status = TESS_OK;
    const pixel_peak own = largest_here(rows);
    TESS_TRY(tess_comm_allgather(comm, &own, sizeof own, of_rank));
    *largest = (pixel_peak){0, -1};
    for (int k = 0; k < tess_comm_size(comm); ++k)
        if (is_larger(&of_rank[k], largest)) *largest = of_rank[k];
cleanup:
    return status;
}

/* Makes pixels around a peak NaN, up to a distance in pixels. */
static void blank_around(const tess_rows *rows, int64_t index, double distance)
{
    const int64_t x = index % rows->nx, y = index / rows->nx;
    const int64_t reach = (int64_t)fmin(ceil(distance), 1e9);
    const int64_t begin = tess_max_i64(y - reach, rows->row_first);
    const int64_t end = tess_min_i64(y + reach + 1, rows->row_first + rows->num_rows);
    for (int64_t row = begin; row < end; ++row)
        for (int64_t at = tess_max_i64(x - reach, 0);
             at < tess_min_i64(x + reach + 1, rows->nx); ++at)
            if (!(hypot((double)(at - x), (double)(row - y)) > distance))
                tess_rows_set(rows, (row - rows->row_first) * rows->nx + at,
                              (double)NAN);
}

tess_status tess_facets_peaks(tess_comm *comm, const tess_facet_image *image,
                              const tess_rows *rows, double least, int64_t most,
                              double separation_rad, tess_region **out,
                              int64_t *num_out)
{
    tess_status status = TESS_OK;
    const double distance = separation_rad / image->geom.scale_rad;
    int64_t num = 0;
    pixel_peak *of_rank = tess_alloc(tess_comm_size(comm), sizeof *of_rank);
    tess_region *direction = tess_alloc_zero(most, sizeof *direction);
    TESS_TRY(tess_comm_agree(comm, of_rank && direction ? TESS_OK : TESS_ERR_ALLOC));
    while (num < most) {
        pixel_peak peak;
        TESS_TRY(find_largest(comm, rows, of_rank, &peak));
        if (peak.index < 0 || !(peak.value > least)) break;
        tess_region *region = &direction[num];
        const double at[2] = {(double)(peak.index % rows->nx),
                              (double)(peak.index / rows->nx)};
        blank_around(rows, peak.index, distance);
        if (!facet_direction(image, at, &region->ra_rad, &region->dec_rad)) continue;
        region->has_point = true;
        snprintf(region->name, sizeof region->name, "dir%lld", (long long)++num);
    }
    *out = direction;
    *num_out = num;
    direction = NULL;
cleanup:
    tess_free(of_rank);
    tess_free(direction);
    return status;
}
