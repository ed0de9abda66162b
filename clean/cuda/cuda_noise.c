/* Sums and medians of images on the device. */
#include "cuda_noise.h"

#include <math.h>

#include "clean_channel_noise.h"
#include "row_deviation.h"
#include "tess_device.h"
#include "tess_mem.h"

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

/* ---- of channels ---- */

/* value[CLEAN_NOISE_SAMPLES][num_images] := those of the samples' pixels. */
static tess_status take_samples(const clean_work *work, const cuda_slot *slot,
                                double *value)
{
    tess_status status = TESS_OK;
    const int images = work->setup->images.num_images;
    const int64_t bytes = CLEAN_NOISE_SAMPLES * images * (int64_t)sizeof *value;
    void *there = NULL;
    TESS_TRY(tess_device_alloc(bytes, "noise of channels", &there));
    TESS_TRY(cuda_take_samples(&work->shape, CLEAN_NOISE_SAMPLES,
                               clean_noise_step(work->setup), images, slot->there,
                               work->mask.is_nan, there));
    TESS_TRY(tess_device_download(value, there, bytes));
cleanup:
    tess_device_free(there);
    return status;
}

tess_status cuda_channel_noise(const clean_work *work, const cuda_slot *slot,
                               double *noise)
{
    tess_status status = TESS_OK;
    const clean_join *join = &work->setup->join;
    const int images = work->setup->images.num_images;
    double *sample = tess_alloc(CLEAN_NOISE_SAMPLES, sizeof *sample);
    double *value = tess_alloc((int64_t)CLEAN_NOISE_SAMPLES * images, sizeof *value);
    if (!sample || !value) TESS_FAIL(TESS_ERR_ALLOC, "noise of channels");
    TESS_TRY(take_samples(work, slot, value));
    for (int p = 0; p < join->num_pol; ++p) {
        noise[p] = 0;
        if (!clean_noise_matters(join, p)) continue;
        for (int64_t k = 0; k < CLEAN_NOISE_SAMPLES; ++k)
            sample[k] = isnan(value[k * images])
                            ? CLEAN_NOISE_BLANK
                            : clean_noise_sample(join, p, value + k * images);
        noise[p] = clean_noise_of(join, p, sample);
    }
cleanup:
    tess_free(sample);
    tess_free(value);
    return status;
}
