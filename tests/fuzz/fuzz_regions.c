/* Region files of ds9, as `tessera facets` reads them: facets in an image, weights that
 * sum to 1, and a file that is written and read again as it was. And regions of ds9 and
 * CASA for masks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_file.h"
#include "tess_comm.h"
#include "tess_facets.h"
#include "tess_mask_regions.h"
#include "tess_mem.h"
#include "tess_region_file.h"

enum { NX = 40, NY = 24 };

static tess_status write_again(const tess_region_list *list)
{
    tess_status status = TESS_OK;
    tess_region_list again = {0};
    char *text = NULL;
    TESS_TRY(tess_region_file_text(list, &text));
    fuzz_assert(tess_region_file_parse("again", text, &again) == TESS_OK,
                "what was written can be read");
    fuzz_assert(again.num_regions == list->num_regions &&
                    again.num_vertices == list->num_vertices,
                "nothing is lost");
    for (int64_t k = 0; k < list->num_vertices; ++k)
        fuzz_assert(fabs(again.vertex[k][1] - list->vertex[k][1]) < 2e-12,
                    "positions are kept");
    for (int64_t k = 0; k < list->num_regions; ++k)
        fuzz_assert(list->region[k].is_hole ||
                        strcmp(again.region[k].name, list->region[k].name) == 0,
                    "names are kept");
cleanup:
    tess_free(text);
    tess_region_list_free(&again);
    return status;
}

/* Weights of a row: each in [0, 1], 1 or 0 in sum. */
static void check_row(const tess_facets *facets, tess_facet_work *work, int64_t row)
{
    double weight[NX], sum[NX] = {0};
    for (int64_t k = 0; k < facets->num_facets; ++k) {
        tess_facets_weights(facets, work, k, row, 0, NX, weight);
        for (int x = 0; x < NX; ++x) {
            fuzz_assert(weight[x] >= 0 && weight[x] <= 1, "weights are parts of 1");
            sum[x] += weight[x];
        }
    }
    for (int x = 0; x < NX; ++x)
        fuzz_assert(sum[x] == 0 || fabs(sum[x] - 1) < 1e-9, "weights sum to 1");
}

static tess_status make_facets(const char *path, const tess_region_list *list,
                               const tess_facet_image *image, double feather)
{
    tess_status status = TESS_OK;
    tess_facets facets = {0};
    tess_facet_work *work = NULL;
    TESS_TRY(tess_facets_create(path, list, image, feather, &facets));
    TESS_TRY(tess_facet_work_create(&facets, &work));
    for (int64_t k = 0; k < facets.num_facets; ++k) {
        const tess_facet_box *box = &facets.facet[k].box;
        fuzz_assert(box->x0 >= 0 && box->x1 <= NX && box->y0 >= 0 && box->y1 <= NY &&
                        isfinite(facets.facet[k].ra_rad),
                    "facets are in the image");
    }
    for (int64_t row = 0; row < NY && facets.num_facets < 50; row += 5)
        check_row(&facets, work, row);
cleanup:
    tess_facet_work_destroy(work);
    tess_facets_free(&facets);
    return status;
}

static tess_status read_regions(const char *path)
{
    tess_status status = TESS_OK;
    static const tess_facet_image near = {
        {.nx = NX, .ny = NY, .scale_rad = 3e-4}, 0.1745, 0.01};
    static const tess_facet_image wide = {
        {.nx = NX, .ny = NY, .scale_rad = 0.04, .l0 = 0.1}, 2, -1.2};
    tess_region_list list = {0};
    TESS_TRY(tess_region_file_read(fuzz_comm(), path, &list));
    TESS_TRY(write_again(&list));
    fuzz_check(make_facets(path, &list, &near, 0));
    fuzz_check(make_facets(path, &list, &near, 7));
    fuzz_check(make_facets(path, &list, &wide, 3));
cleanup:
    tess_region_list_free(&list);
    return status;
}

static void check_mask(const tess_mask_regions *all, const tess_mask_region *r)
{
    fuzz_assert(isfinite(r->centre[0]) && isfinite(r->centre[1]) && r->half[0] >= 0 &&
                    r->half[1] >= 0 && isfinite(r->half[0] + r->half[1]),
                "regions have a size");
    fuzz_assert(r->first_vertex >= 0 && r->num_vertices >= 0 &&
                    r->first_vertex + r->num_vertices <= all->num_vertices,
                "vertices are there");
    fuzz_assert(r->shape != TESS_MASK_POLYGON || r->num_vertices >= 3,
                "polygons have corners");
    fuzz_assert(r->shape != TESS_MASK_CORNERS || r->num_vertices == 2,
                "boxes have two");
}

static tess_status read_masks(const char *path)
{
    tess_status status = TESS_OK;
    tess_mask_regions all = {0};
    TESS_TRY(tess_mask_regions_read(fuzz_comm(), path, &all));
    fuzz_assert(all.num > 0, "a file has regions");
    for (int64_t k = 0; k < all.num; ++k)
        check_mask(&all, &all.region[k]);
cleanup:
    tess_mask_regions_free(&all);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    fuzz_check(read_regions(path));
    fuzz_check(read_masks(path));
    return 0;
}
