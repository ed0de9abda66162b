/* The facet of a pixel, and the weights of facets in pixels. */
#include <string.h>

#include "image_facets.h"
#include "tess_mem.h"

static tess_status begin_weights(const patch_weigher *weigher, void **work)
{
    tess_status status = TESS_OK;
    tess_facet_work *begun = NULL;
    TESS_TRY(tess_facet_work_create(weigher->context, &begun));
    *work = begun;
cleanup:
    return status;
}

static void end_weights(void *work)
{
    tess_facet_work_destroy(work);
}

static void weigh(const patch_weigher *weigher, void *work, int64_t row, int64_t x0,
                  int64_t x1, double *weight)
{
    tess_facets_weights(weigher->context, work, weigher->patch, row, x0, x1, weight);
}

patch_weigher image_facets_weigher(const image_facets *facets, int target,
                                   bool of_model)
{
    return (patch_weigher){.begin = begin_weights,
                           .end = end_weights,
                           .weigh = weigh,
                           .context = of_model ? &facets->hard : &facets->facets,
                           .patch = facets->facet[target]};
}

tess_status image_facets_weigh(const void *context, int target, int64_t row,
                               double *weight)
{
    tess_status status = TESS_OK;
    const image_facets *facets = context;
    const tess_facet_box box = image_patches_box(&facets->patches, target);
    const patch_weigher weigher = image_facets_weigher(facets, target, true);
    void *work = NULL;
    TESS_TRY(begin_weights(&weigher, &work));
    weigh(&weigher, work, box.y0 + row, box.x0, box.x1, weight);
cleanup:
    end_weights(work);
    return status;
}

/* The last facet where borders overlap by less than a pixel, as find_row() has it. */
int image_facets_place(void *context, int64_t index)
{
    const image_facets *facets = context;
    int place = 0;
    const int64_t nx = facets->hard.image.geom.nx;
    const int64_t x = index % nx, y = index / nx;
    for (int k = 0; k < facets->patches.num; ++k) {
        const tess_facet_box *box = &facets->hard.facet[facets->facet[k]].box;
        double weight = 0;
        if (x < box->x0 || x >= box->x1 || y < box->y0 || y >= box->y1) continue;
        tess_facets_weights(&facets->hard, facets->work, facets->facet[k], y, x, x + 1,
                            &weight);
        if (weight > 0) place = k;
    }
    return place;
}

/* Sets the places of a row's pixels. `weight` has room for a row. */
static void find_row(const image_facets *facets, tess_facet_work *work, int64_t row,
                     double *weight, int16_t *place)
{
    memset(place, 0, (size_t)facets->hard.image.geom.nx * sizeof *place);
    for (int k = 0; k < facets->patches.num; ++k) {
        const tess_facet_box *box = &facets->hard.facet[facets->facet[k]].box;
        if (row < box->y0 || row >= box->y1) continue;
        tess_facets_weights(&facets->hard, work, facets->facet[k], row, box->x0,
                            box->x1, weight);
        for (int64_t x = box->x0; x < box->x1; ++x)
            if (weight[x - box->x0] > 0) place[x] = (int16_t)k;
    }
}

tess_status image_facets_places(void *context, int64_t row_first, int64_t num_rows,
                                int threads, int16_t *place)
{
    tess_status status = TESS_OK;
    const image_facets *facets = context;
    const int64_t nx = facets->hard.image.geom.nx;
    bool complete = true;
#pragma omp parallel num_threads(threads) reduction(&& : complete)
    {
        tess_facet_work *work = NULL;
        double *weight = tess_alloc(nx, sizeof *weight);
        complete = weight && tess_facet_work_create(&facets->hard, &work) == TESS_OK;
#pragma omp for schedule(dynamic, 16)
        for (int64_t k = 0; k < num_rows; ++k)
            if (complete) find_row(facets, work, row_first + k, weight, place + k * nx);
        tess_facet_work_destroy(work);
        tess_free(weight);
    }
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "places of pixels");
cleanup:
    return status;
}
