/* Tessellations: the brightest sources of a list, and the Voronoi cells around
 * directions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "facet_outline.h"
#include "tess_mem.h"

/* ---- the brightest sources ---- */

/* Sorted with stable order: list order where fluxes are equal. */
static int compare_flux(const void *a, const void *b)
{
    const tess_listed_source *left = *(const tess_listed_source *const *)a;
    const tess_listed_source *right = *(const tess_listed_source *const *)b;
    if (left->flux_jy[0] != right->flux_jy[0])
        return left->flux_jy[0] < right->flux_jy[0] ? 1 : -1;
    return (left > right) - (left < right);
}

static bool in_image(const tess_facet_image *image, const tess_listed_source *source)
{
    double at[2];
    return facet_place(image, source->ra_rad, source->dec_rad, at) && at[0] >= -0.5 &&
           at[1] >= -0.5 && at[0] < (double)image->geom.nx - 0.5 &&
           at[1] < (double)image->geom.ny - 0.5;
}

static bool is_apart(const tess_region *direction, int64_t num,
                     const tess_listed_source *source, double separation_rad)
{
    for (int64_t k = 0; k < num; ++k)
        if (!(tess_facets_angle(direction[k].ra_rad, direction[k].dec_rad,
                                source->ra_rad, source->dec_rad) > separation_rad))
            return false;
    return true;
}

tess_status tess_facets_brightest(const tess_facet_image *image,
                                  const tess_source_list *list, int64_t most,
                                  double separation_rad, tess_region **out,
                                  int64_t *num_out)
{
    tess_status status = TESS_OK;
    int64_t num_sources = 0, num = 0;
    const tess_listed_source **source = NULL;
    tess_region *direction = NULL;
    if (most <= 0 || most > list->num_sources) most = list->num_sources;
    source = tess_alloc(list->num_sources, sizeof *source);
    direction = tess_alloc_zero(most, sizeof *direction);
    if (!source || !direction)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld sources",
                  (long long)list->num_sources);
    for (int64_t k = 0; k < list->num_sources; ++k)
        if (in_image(image, &list->source[k])) source[num_sources++] = &list->source[k];
    /* components of one source are one direction */
    const double same_rad = 0.01 * image->geom.scale_rad;
    qsort(source, (size_t)num_sources, sizeof *source, compare_flux);
    for (int64_t k = 0; k < num_sources && num < most; ++k) {
        if (!is_apart(direction, num, source[k], fmax(separation_rad, same_rad)))
            continue;
        tess_region *region = &direction[num++];
        region->has_point = true;
        region->ra_rad = source[k]->ra_rad;
        region->dec_rad = source[k]->dec_rad;
        snprintf(region->name, sizeof region->name, "dir%lld", (long long)num);
    }
    *out = direction;
    *num_out = num;
    direction = NULL;
cleanup:
    tess_free(source);
    tess_free(direction);
    return status;
}

double tess_facets_separation(const tess_geom *geom, int64_t number)
{
    const double area = (double)geom->nx * (double)geom->ny;
    return sqrt(area / (double)number) / 3 * geom->scale_rad;
}

/* ---- cells ---- */

/* A convex polygon, and room for what is left when it is cut. */
typedef struct cell_outline {
    double (*corner)[2], (*kept)[2]; /* [capacity] */
    int64_t num, capacity;
} cell_outline;

/* Keeps what is at least as close to `mine` as to `other`: n·p <= c, n being the vector
 * from the one to the other. */
static void cut_cell(cell_outline *cell, const double mine[2], const double other[2])
{
    const double nx = other[0] - mine[0], ny = other[1] - mine[1];
    const double c = 0.5 * (nx * (other[0] + mine[0]) + ny * (other[1] + mine[1]));
    int64_t kept = 0;
    /* a cut adds one corner; rounding adds none that the capacity has no room for */
    for (int64_t k = 0; k < cell->num && kept + 2 <= cell->capacity; ++k) {
        const double *from = cell->corner[k];
        const double *to = cell->corner[(k + 1) % cell->num];
        const double over = nx * from[0] + ny * from[1] - c;
        const double next = nx * to[0] + ny * to[1] - c;
        if (over <= 0) {
            cell->kept[kept][0] = from[0];
            cell->kept[kept++][1] = from[1];
        }
        if ((over < 0 && next > 0) || (over > 0 && next < 0)) {
            const double part = over / (over - next);
            cell->kept[kept][0] = from[0] + part * (to[0] - from[0]);
            cell->kept[kept++][1] = from[1] + part * (to[1] - from[1]);
        }
    }
    double(*swap)[2] = cell->corner;
    cell->corner = cell->kept;
    cell->kept = swap;
    cell->num = kept;
}

static void begin_cell(const tess_geom *geom, cell_outline *cell)
{
    const double x[2] = {-0.5, (double)geom->nx - 0.5};
    const double y[2] = {-0.5, (double)geom->ny - 0.5};
    for (int k = 0; k < 4; ++k) {
        cell->corner[k][0] = x[k == 1 || k == 2];
        cell->corner[k][1] = y[k >= 2];
    }
    cell->num = 4;
}

static tess_status add_cell(const tess_facet_image *image, const tess_region *direction,
                            const cell_outline *cell, tess_region_list *cells)
{
    tess_status status = TESS_OK;
    if (cell->num < 3) goto cleanup;
    TESS_TRY(tess_region_list_add(cells, direction));
    for (int64_t k = 0; k < cell->num; ++k) {
        double ra_rad, dec_rad;
        if (!facet_direction(image, cell->corner[k], &ra_rad, &dec_rad))
            TESS_FAIL(TESS_ERR_INPUT,
                      "the image reaches beyond the horizon, where facets have no "
                      "corners; make it smaller");
        TESS_TRY(tess_region_list_add_vertex(cells, ra_rad, dec_rad));
    }
cleanup:
    return status;
}

/* Places of the directions in pixels, at[num_directions]. */
static tess_status place_directions(const char *path, const tess_facet_image *image,
                                    const tess_region *direction,
                                    int64_t num_directions, double (*at)[2])
{
    tess_status status = TESS_OK;
    static const double SAME = 1e-3; /* [pixels] */
    for (int64_t k = 0; k < num_directions; ++k) {
        if (!facet_place(image, direction[k].ra_rad, direction[k].dec_rad, at[k]))
            TESS_FAIL(
                TESS_ERR_INPUT,
                "%s: direction '%s' is more than 90 degrees from the image's centre",
                path, direction[k].name);
        for (int64_t j = 0; j < k; ++j)
            if (hypot(at[k][0] - at[j][0], at[k][1] - at[j][1]) < SAME)
                TESS_FAIL(TESS_ERR_INPUT, "%s: directions '%s' and '%s' are the same",
                          path, direction[j].name, direction[k].name);
    }
cleanup:
    return status;
}

tess_status tess_facets_tessellate(const char *path, const tess_facet_image *image,
                                   const tess_region *direction, int64_t num_directions,
                                   tess_region_list *out)
{
    tess_status status = TESS_OK;
    cell_outline cell = {.capacity = 2 * num_directions + 8};
    tess_region_list cells = {0};
    double(*at)[2] = tess_alloc(num_directions, sizeof *at);
    cell.corner = tess_alloc(cell.capacity, sizeof *cell.corner);
    cell.kept = tess_alloc(cell.capacity, sizeof *cell.kept);
    if (!at || !cell.corner || !cell.kept)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld facets",
                  (long long)num_directions);
    TESS_TRY(place_directions(path, image, direction, num_directions, at));
    for (int64_t k = 0; k < num_directions; ++k) {
        begin_cell(&image->geom, &cell);
        for (int64_t j = 0; j < num_directions && cell.num > 0; ++j)
            if (j != k) cut_cell(&cell, at[k], at[j]);
        TESS_TRY(add_cell(image, &direction[k], &cell, &cells));
    }
    *out = cells;
    cells = (tess_region_list){0};
cleanup:
    tess_free(at);
    tess_free(cell.corner);
    tess_free(cell.kept);
    tess_region_list_free(&cells);
    return status;
}
