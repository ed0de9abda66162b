/* Images at a scale, their peaks and candidates: the device finds those of each row. */
#include "cuda_slot.h"

#include <math.h>

#include "cuda_spectra.h"
#include "tess_device.h"
#include "tess_mem.h"

static bool is_first_image(const cuda_slot *slot)
{
    return slot->mean == slot->image[0];
}

static tess_status fill_mean(const clean_work *work, const cuda_join *join,
                             const void *factor, cuda_slot *slot)
{
    if (is_first_image(slot)) return TESS_OK;
    return cuda_mean(&work->shape, join, slot->there, factor, slot->mean);
}

/* The join of what the slot holds. If layers are sums, the first is the mean. */
static cuda_join join_of(const clean_work *work)
{
    cuda_join join = work->joined.join;
    if (!work->layers.are_sums) return join;
    return (cuda_join){.num_pol = 1,
                       .num_channels = 1,
                       .share = work->joined.one,
                       .largest = work->joined.one};
}

tess_status cuda_slot_mean(const clean_work *work, cuda_slot *slot)
{
    const cuda_join join = join_of(work);
    return fill_mean(work, &join, work->mask.factor, slot);
}

tess_status cuda_slot_magnitude(const clean_work *work, cuda_slot *slot)
{
    cuda_join join = join_of(work);
    join.is_signed = false;
    return fill_mean(work, &join, work->mask.factor, slot);
}

tess_status cuda_slot_linear(const clean_work *work, cuda_slot *slot)
{
    cuda_join join = join_of(work);
    join.roots = join.squares = false;
    return fill_mean(work, &join, NULL, slot);
}

tess_status cuda_make_scale(clean_work *work, int scale, cuda_slot *slot)
{
    tess_status status = TESS_OK;
    slot->scale = scale;
    slot->version = work->version;
    if (work->mean.spectrum)
        return cuda_make_image(work, scale, work->mean.spectrum, work->mask.factor,
                               slot->mean);
    work->mean.scale = -1;
    TESS_TRY(cuda_make_images(work, slot));
    TESS_TRY(cuda_slot_mean(work, slot));
cleanup:
    return status;
}

/* ---- rows ---- */

static cuda_search search_of(const clean_work *work, const cuda_slot *slot)
{
    cuda_search search = {.mean = slot->mean,
                          .allowed = work->mask.allowed,
                          .found = work->mask.found.pixels.value,
                          .bit = UINT32_C(1) << slot->scale,
                          .positive = work->setup->opts.no_negative};
    clean_inside(work->setup, slot->scale, search.x_range, search.y_range);
    return search;
}

tess_status cuda_slot_peak(clean_work *work, const cuda_slot *slot, clean_peak *peak)
{
    tess_status status = TESS_OK;
    const int64_t rows = work->shape.ny;
    const cuda_search search = search_of(work, slot);
    const cuda_row_peak *row = work->rows.here;
    *peak = (clean_peak){0, -1};
    TESS_TRY(cuda_row_peaks(&work->shape, &search, work->rows.there));
    TESS_TRY(tess_device_download(work->rows.here, work->rows.there,
                                  rows * (int64_t)sizeof *row));
    for (int64_t y = 0; y < rows; ++y)
        if (row[y].x >= 0 && fabs(row[y].value) > fabs(peak->value))
            *peak = (clean_peak){row[y].value, y * work->shape.nx + row[y].x};
cleanup:
    return status;
}

/* Counts the candidates of each row, into work->rows.here. */
static tess_status count_rows(clean_work *work, const cuda_search *search, double from,
                              int64_t *pixels)
{
    tess_status status = TESS_OK;
    const int64_t rows = work->shape.ny;
    const int64_t *count = work->rows.here;
    TESS_TRY(cuda_row_counts(&work->shape, search, from, work->rows.there));
    TESS_TRY(tess_device_download(work->rows.here, work->rows.there,
                                  rows * (int64_t)sizeof *count));
    *pixels = 0;
    for (int64_t y = 0; y < rows; ++y)
        *pixels += count[y];
cleanup:
    return status;
}

tess_status cuda_slot_count(clean_work *work, const cuda_slot *slot, double from,
                            int64_t *pixels)
{
    const cuda_search search = search_of(work, slot);
    return count_rows(work, &search, from, pixels);
}

/* ---- lists ---- */

static tess_status allocate(const clean_work *work, cuda_list *list)
{
    tess_status status = TESS_OK;
    const int64_t whole = list->count * (int64_t)sizeof(int32_t);
    const int64_t wide = list->count * (int64_t)sizeof(double);
    void *there = NULL;
    TESS_TRY(tess_device_alloc(whole, "candidates", &there));
    list->x = there;
    TESS_TRY(tess_device_alloc(whole, "candidates", &there));
    list->y = there;
    TESS_TRY(tess_device_alloc(wide * list->num_layers, "candidates", &there));
    list->value = there;
    if (work->mask.factor) {
        TESS_TRY(tess_device_alloc(wide, "candidates", &there));
        list->factor = there;
    }
cleanup:
    return status;
}

tess_status cuda_list_make(clean_work *work, const cuda_slot *slot, double from,
                           cuda_list *list_out)
{
    tess_status status = TESS_OK;
    const int64_t rows = work->shape.ny;
    const cuda_search search = search_of(work, slot);
    int64_t *first = work->rows.here, place = 0;
    cuda_list list = {.num_layers = work->layers.count};
    TESS_TRY(count_rows(work, &search, from, &list.count));
    if (list.count > INT32_MAX) /* cuda_cycle numbers them so */
        TESS_FAIL(TESS_ERR_RESOURCE,
                  "%lld pixels may have components: a device lists at most %d; raise "
                  "--auto-threshold or --threshold, give a mask, or use --backend cpu",
                  (long long)list.count, INT32_MAX);
    for (int64_t y = 0; y < rows; ++y) {
        const int64_t own = first[y];
        first[y] = place;
        place += own;
    }
    TESS_TRY(allocate(work, &list));
    TESS_TRY(
        tess_device_upload(work->rows.there, first, rows * (int64_t)sizeof *first));
    TESS_TRY(cuda_fill_list(&work->shape, &search, from, work->rows.there, slot->there,
                            work->mask.factor, &list));
    *list_out = list;
    list = (cuda_list){0};
cleanup:
    cuda_list_free(&list);
    return status;
}

void cuda_list_free(cuda_list *list)
{
    tess_device_free(list->x);
    tess_device_free(list->y);
    tess_device_free(list->value);
    tess_device_free(list->factor);
    tess_device_free(list->of);
    *list = (cuda_list){0};
}
