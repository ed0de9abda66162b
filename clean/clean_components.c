/* Lists of components. A list is in the order in which components were found, or is
 * merged: one entry for each pixel, sorted by pixel. */
#include "clean_components.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tess_mem.h"

static tess_status make_room(clean_components *list, int64_t count)
{
    tess_status status = TESS_OK;
    void *index = list->index, *flux = list->flux;
    if (tess_grow(&index, &list->index_room, count, sizeof *list->index) == 0)
        list->index = index;
    else
        TESS_FAIL(TESS_ERR_ALLOC, "%lld components", (long long)count);
    if (tess_grow(&flux, &list->flux_room, count * list->num_images,
                  sizeof *list->flux) == 0)
        list->flux = flux;
    else
        TESS_FAIL(TESS_ERR_ALLOC, "%lld components", (long long)count);
cleanup:
    return status;
}

tess_status clean_components_add(clean_components *list, int64_t index,
                                 const double *flux)
{
    tess_status status = TESS_OK;
    for (int i = 0; i < list->num_images; ++i)
        if (!isfinite(flux[i]))
            TESS_FAIL(TESS_ERR_INTERNAL,
                      "the component of pixel %lld is not finite in image %d",
                      (long long)index, i);
    TESS_TRY(make_room(list, list->count + 1));
    list->index[list->count] = index;
    memcpy(list->flux + list->count * list->num_images, flux,
           (size_t)list->num_images * sizeof *flux);
    ++list->count;
cleanup:
    return status;
}

tess_status clean_components_copy(clean_components *list, const clean_components *other,
                                  int64_t from, int64_t count)
{
    tess_status status = TESS_OK;
    const int64_t images = list->num_images;
    if (count == 0) return TESS_OK;
    TESS_TRY(make_room(list, list->count + count));
    memcpy(list->index + list->count, other->index + from,
           (size_t)count * sizeof *list->index);
    memcpy(list->flux + list->count * images, other->flux + from * images,
           (size_t)(count * images) * sizeof *list->flux);
    list->count += count;
cleanup:
    return status;
}

/* A component's pixel, and its place in the list, which breaks ties: the sort is
 * stable. */
typedef struct place {
    int64_t index, at;
} place;

static int by_place(const void *a, const void *b)
{
    const place *one = a, *other = b;
    if (one->index != other->index) return one->index < other->index ? -1 : 1;
    return one->at < other->at ? -1 : one->at > other->at;
}

tess_status clean_components_merge(clean_components *list)
{
    tess_status status = TESS_OK;
    const int64_t count = list->count, images = list->num_images;
    int64_t merged = 0;
    place *order = tess_alloc(count, sizeof *order);
    double *flux = tess_alloc_zero(count * images, sizeof *flux);
    if (!order || !flux) TESS_FAIL(TESS_ERR_ALLOC, "%lld components", (long long)count);
    for (int64_t k = 0; k < count; ++k)
        order[k] = (place){list->index[k], k};
    qsort(order, (size_t)count, sizeof *order, by_place);
    for (int64_t k = 0; k < count; ++k) {
        if (k == 0 || order[k].index != order[k - 1].index) ++merged;
        for (int64_t i = 0; i < images; ++i)
            flux[(merged - 1) * images + i] += list->flux[order[k].at * images + i];
        list->index[merged - 1] = order[k].index;
    }
    if (count > 0) memcpy(list->flux, flux, (size_t)(merged * images) * sizeof *flux);
    list->count = merged;
cleanup:
    tess_free(order);
    tess_free(flux);
    return status;
}

int64_t clean_components_from(const clean_components *list, int64_t index)
{
    int64_t low = 0, high = list->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (list->index[middle] < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void clean_components_clear(clean_components *list)
{
    list->count = 0;
}

void clean_components_free(clean_components *list)
{
    tess_free(list->index);
    tess_free(list->flux);
    *list = (clean_components){.num_images = list->num_images};
}
