/* Passes over pixels whose places have gains of their own. Memory bandwidth limits
 * them. */
#include "cuda_each.cuh"
#include "cuda_search.h"

namespace
{

struct find_place {
    int64_t nx;
    const int16_t *place;
    cuda_list list;
    __device__ void operator()(int64_t k) const
    {
        list.of[k] = place[list.y[k] * nx + list.x[k]];
    }
};

/* Threads that mark the same place write the same number. */
struct mark_place {
    const double *model;
    const int16_t *place;
    int32_t *used;
    __device__ void operator()(int64_t k) const
    {
        if (model[k] != 0) used[place[k]] = 1;
    }
};

template <typename R> struct pad_place {
    int64_t nx, ny, lx;
    const double *model;
    const int16_t *place;
    int only;
    R *plane;
    __device__ void operator()(int64_t y, int64_t x) const
    {
        const int64_t k = y * nx + x;
        const bool is_there = y < ny && x < nx && place[k] == only;
        plane[y * lx + x] = is_there ? (R)model[k] : (R)0;
    }
};

template <typename R> struct crop_seen {
    int64_t nx, lx;
    const R *plane;
    const int16_t *place;
    const double *seen;
    R *image;
    __device__ void operator()(int64_t y, int64_t x) const
    {
        const int64_t k = y * nx + x;
        const double part = seen[place[k]] * (double)plane[y * lx + x];
        image[k] = (R)((double)image[k] - part);
    }
};

} // namespace

tess_status cuda_find_places(const cuda_shape *shape, const int16_t *place,
                             const cuda_list *list)
{
    return cuda_each(list->count, find_place{shape->nx, place, *list});
}

tess_status cuda_mark_places(const cuda_shape *shape, const void *model,
                             const int16_t *place, void *used)
{
    return cuda_each(shape->nx * shape->ny,
                     mark_place{(const double *)model, place, (int32_t *)used});
}

tess_status cuda_pad_place(const cuda_shape *shape, const void *model,
                           const int16_t *place, int only, void *plane)
{
    return CUDA_EACH_CELL(shape->ly, shape->lx, pad_place,
                          {shape->nx, shape->ny, shape->lx, (const double *)model,
                           place, only, cuda_of(plane)});
}

tess_status cuda_crop_seen(const cuda_shape *shape, const void *plane,
                           const int16_t *place, const double *seen, void *image)
{
    return CUDA_EACH_CELL(
        shape->ny, shape->nx, crop_seen,
        {shape->nx, shape->lx, cuda_of(plane), place, seen, cuda_of(image)});
}
