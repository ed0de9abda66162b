/* Sums and medians of images on the device. */
#include "cuda_noise.h"

#include <math.h>

#include "row_deviation.h"
#include "tess_device.h"

tess_status cuda_sums(const clean_work *work, const cuda_pixels *image,
                      cuda_row_sum *sum)
{
    tess_status status = TESS_OK;
    const int64_t rows = work->shape.ny;
    const cuda_row_sum *row = work->rows.here;
    *sum = (cuda_row_sum){.least = INFINITY};
    TESS_TRY(cuda_row_sums(&work->shape, image, work->mask.is_nan, work->rows.there));
    TESS_TRY(tess_device_download(work->rows.here, work->rows.there,
                                  rows * (int64_t)sizeof *row));
    for (int64_t y = 0; y < rows; ++y) {
        sum->squares += row[y].squares;
        sum->least = fmin(sum->least, row[y].least);
        sum->count += row[y].count;
    }
cleanup:
    return status;
}

/* Values of an image in the order of their keys. */
typedef struct ordered {
    const clean_work *work;
    const void *image;
    void *bins; /* device */
    int64_t here[CUDA_BINS];
} ordered;

static tess_status count_bins(row_values *from, uint64_t prefix, int shift)
{
    tess_status status = TESS_OK;
    const ordered *all = from->context;
    const cuda_order order = {.image = all->image,
                              .is_nan = all->work->mask.is_nan,
                              .distances = from->distances,
                              .centre = from->centre};
    TESS_TRY(tess_device_zero(all->bins, sizeof all->here));
    TESS_TRY(cuda_count_bins(&all->work->shape, &order, prefix, shift, all->bins));
    TESS_TRY(tess_device_download(from->bins, all->bins, sizeof all->here));
cleanup:
    return status;
}

tess_status cuda_deviation(const clean_work *work, const void *image,
                           clean_noise *noise)
{
    tess_status status = TESS_OK;
    const bool is_double = work->shape.is_double;
    const cuda_pixels pixels = {.value = (void *)(uintptr_t)image,
                                .bytes = is_double ? 8 : 4};
    ordered all = {.work = work, .image = image};
    row_values from = {.is_double = is_double,
                       .bits = CUDA_BIN_BITS,
                       .bins = all.here,
                       .count_bins = count_bins,
                       .context = &all};
    cuda_row_sum sum;
    double middle, deviation;
    TESS_TRY(tess_device_alloc(sizeof all.here, "order of pixels", &all.bins));
    TESS_TRY(cuda_sums(work, &pixels, &sum));
    from.count = sum.count;
    TESS_TRY(row_values_deviation(&from, &middle, &deviation));
    *noise = (clean_noise){ROW_SIGMA_PER_DEVIATION * deviation, middle};
cleanup:
    tess_device_free(all.bins);
    return status;
}
