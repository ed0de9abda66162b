/* Draws regions into rows of a mask, region after region and row by row. */
#include "mask_shapes.h"

#include <math.h>
#include <string.h>

#include "tess_geom.h"
#include "tess_log.h"
#include "tess_mem.h"

/* A region in pixels of the image. */
typedef struct drawn {
    const tess_mask_region *region;
    double centre[2], half[2], cosine, sine;
    double (*vertex)[2]; /* [region->num_vertices] */
    double low, high;    /* rows that it may have */
} drawn;

/* The pixel at a position; false where it is beyond the horizon. */
static bool place_of(const image_run *run, bool is_pixel, const double at[2],
                     double pixel[2])
{
    const tess_geom *geom = &run->whole.geom;
    double lmn[3];
    memcpy(pixel, at, 2 * sizeof *pixel);
    if (is_pixel) return true;
    if (!tess_sky_project(at[0], at[1], run->info->ra_rad, run->info->dec_rad, lmn))
        return false;
    pixel[0] = (double)(geom->nx / 2) - (lmn[0] - run->info->turn[0]) / geom->scale_rad;
    pixel[1] = (double)(geom->ny / 2) + (lmn[1] - run->info->turn[1]) / geom->scale_rad;
    return true;
}

/* Whether a region is of this channel. */
static bool is_of(const image_run *run, const tess_mask_region *region, int64_t channel)
{
    double freq_hz = (double)channel, width_hz;
    if (region->from > region->to || channel == MASK_ANY_CHANNEL) return true;
    if (region->by_freq)
        output_table_band(&run->outputs, run->info, channel, &freq_hz, &width_hz);
    return freq_hz >= region->from && freq_hz <= region->to;
}

/* Whether a pixel lies within a polygon: a ray from it to the right crosses its edges
 * an odd number of times. */
static bool is_within(const drawn *d, double x, double y)
{
    bool within = false;
    const int64_t num = d->region->num_vertices;
    for (int64_t k = 0, before = num - 1; k < num; before = k++) {
        const double *a = d->vertex[before], *b = d->vertex[k];
        if ((a[1] > y) == (b[1] > y)) continue;
        const double cross = a[0] + (y - a[1]) / (b[1] - a[1]) * (b[0] - a[0]);
        if (x < cross) within = !within;
    }
    return within;
}

static bool is_between(double a, double b, double x)
{
    return x >= fmin(a, b) && x <= fmax(a, b);
}

static bool has_pixel(const drawn *d, double x, double y)
{
    const double dx = x - d->centre[0], dy = y - d->centre[1];
    const double along = dx * d->cosine + dy * d->sine,
                 across = dy * d->cosine - dx * d->sine;
    const double u = along / d->half[0], v = across / d->half[1], r = hypot(dx, dy);
    switch (d->region->shape) {
    case TESS_MASK_ELLIPSE:
        return u * u + v * v <= 1;
    case TESS_MASK_ANNULUS:
        return r >= d->half[0] && r <= d->half[1];
    case TESS_MASK_BOX:
        return fabs(along) <= d->half[0] && fabs(across) <= d->half[1];
    case TESS_MASK_CORNERS:
        return is_between(d->vertex[0][0], d->vertex[1][0], x) &&
               is_between(d->vertex[0][1], d->vertex[1][1], y);
    case TESS_MASK_POLYGON:
        return is_within(d, x, y);
    }
    return false;
}

static void draw(const drawn *d, const tess_rows *mask)
{
    for (int64_t j = 0; j < mask->num_rows; ++j) {
        const double y = (double)(mask->row_first + j);
        if (y < d->low || y > d->high) continue;
        for (int64_t i = 0; i < mask->nx; ++i)
            if (has_pixel(d, (double)i, y))
                tess_rows_set(mask, j * mask->nx + i, !d->region->leaves);
    }
}

/* Brings a region to pixels; false where a part of it is beyond the horizon. */
static bool to_pixels(const image_run *run, const tess_mask_regions *regions, drawn *d)
{
    const tess_mask_region *region = d->region;
    const double unit = region->half_in_pixels ? 1 : run->whole.geom.scale_rad;
    d->low = INFINITY;
    d->high = -INFINITY;
    for (int64_t k = 0; k < region->num_vertices; ++k) {
        if (!place_of(run, region->at_pixels, regions->vertex[region->first_vertex + k],
                      d->vertex[k]))
            return false;
        d->low = fmin(d->low, d->vertex[k][1]);
        d->high = fmax(d->high, d->vertex[k][1]);
    }
    if (region->num_vertices > 0) return true;
    if (!place_of(run, region->at_pixels, region->centre, d->centre)) return false;
    d->half[0] = region->half[0] / unit;
    d->half[1] = region->half[1] / unit;
    d->cosine = cos(region->turn_rad);
    d->sine = sin(region->turn_rad);
    d->low = d->centre[1] - hypot(d->half[0], d->half[1]);
    d->high = d->centre[1] + hypot(d->half[0], d->half[1]);
    return true;
}

tess_status mask_shapes_check(const image_run *run, const tess_mask_regions *regions,
                              const char *path)
{
    tess_status status = TESS_OK;
    int64_t beyond = 0;
    double(*vertex)[2] = tess_alloc_zero(regions->num_vertices, sizeof *vertex);
    if (!vertex) TESS_FAIL(TESS_ERR_ALLOC, "regions of a mask");
    for (int64_t k = 0; k < regions->num; ++k) {
        drawn d = {.region = &regions->region[k],
                   .vertex = vertex + regions->region[k].first_vertex};
        beyond += !to_pixels(run, regions, &d);
    }
    if (beyond > 0)
        tess_log_warn("%s: %lld of %lld regions are left out, which reach beyond the "
                      "horizon of the image",
                      path, (long long)beyond, (long long)regions->num);
cleanup:
    tess_free(vertex);
    return status;
}

tess_status mask_shapes_draw(const image_run *run, const tess_mask_regions *regions,
                             int64_t channel, const tess_rows *mask)
{
    tess_status status = TESS_OK;
    double(*vertex)[2] = tess_alloc_zero(regions->num_vertices, sizeof *vertex);
    if (!vertex) TESS_FAIL(TESS_ERR_ALLOC, "regions of a mask");
    const bool begins_full = regions->region[0].leaves;
    if (tess_rows_count(mask) > 0)
        memset(mask->value, begins_full, (size_t)tess_rows_bytes(mask));
    for (int64_t k = 0; k < regions->num; ++k) {
        drawn d = {.region = &regions->region[k],
                   .vertex = vertex + regions->region[k].first_vertex};
        if (is_of(run, d.region, channel) && to_pixels(run, regions, &d))
            draw(&d, mask);
    }
cleanup:
    tess_free(vertex);
    return status;
}
