/* Counts and applies imaging weights of samples in device memory, while the pages of
 * the density are summed over ranks in host memory. */
#include "tess_density_device.h"

#include <string.h>

#include "density_pages.h"
#include "tess_device.h"
#include "tess_mem.h"
#include "weight_device.h"

/* So many pages go to the device, or come from there, in one copy. */
enum { AT_ONCE = 256 };
static const int64_t PAGE_BYTES = DENSITY_PAGE_CELLS * (int64_t)sizeof(double);

/* Pages [first, end) of a copy: neighbours that are there, from `first` on. */
static int64_t end_of_run(const unsigned char *there, int64_t num_pages, int64_t first)
{
    int64_t end = first;
    while (end < num_pages && end < first + AT_ONCE && there[end])
        ++end;
    return end;
}

static tess_status fetch_pages(tess_density *density, const double *cell,
                               const unsigned char *touched)
{
    tess_status status = TESS_OK;
    const int64_t num_pages = density_num_pages(density_layout_of(density));
    double *run = tess_alloc(AT_ONCE * DENSITY_PAGE_CELLS, sizeof *run);
    if (!run) TESS_FAIL(TESS_ERR_ALLOC, "weight density");
    for (int64_t k = 0, end; k < num_pages; k = end + (end == k)) {
        end = end_of_run(touched, num_pages, k);
        if (end == k) continue;
        TESS_TRY(tess_device_download(run, cell + k * DENSITY_PAGE_CELLS,
                                      (end - k) * PAGE_BYTES));
        for (int64_t p = k; p < end; ++p) {
            double *page = density_page_made(density, p);
            if (!page) TESS_FAIL(TESS_ERR_ALLOC, "weight density");
            for (int c = 0; c < DENSITY_PAGE_CELLS; ++c)
                page[c] += run[(p - k) * DENSITY_PAGE_CELLS + c];
        }
    }
cleanup:
    tess_free(run);
    return status;
}

static tess_status send_pages(const tess_density *density, double *cell)
{
    tess_status status = TESS_OK;
    const int64_t num_pages = density_num_pages(density_layout_of(density));
    double *run = tess_alloc(AT_ONCE * DENSITY_PAGE_CELLS, sizeof *run);
    unsigned char *there = tess_alloc_zero(num_pages, sizeof *there);
    if (!run || !there) TESS_FAIL(TESS_ERR_ALLOC, "weight density");
    for (int64_t k = 0; k < num_pages; ++k)
        there[k] = density_page(density, k) != NULL;
    for (int64_t k = 0, end; k < num_pages; k = end + (end == k)) {
        end = end_of_run(there, num_pages, k);
        for (int64_t p = k; p < end; ++p)
            memcpy(run + (p - k) * DENSITY_PAGE_CELLS, density_page(density, p),
                   (size_t)PAGE_BYTES);
        if (end > k)
            TESS_TRY(tess_device_upload(cell + k * DENSITY_PAGE_CELLS, run,
                                        (end - k) * PAGE_BYTES));
    }
cleanup:
    tess_free(run);
    tess_free(there);
    return status;
}

tess_status density_device_add(tess_density *density,
                               const tess_device_samples *samples)
{
    tess_status status = TESS_OK;
    const density_layout *layout = density_layout_of(density);
    const int64_t num_pages = density_num_pages(layout);
    double *cell = NULL;
    unsigned char *on_device = NULL, *touched = tess_alloc(num_pages, sizeof *touched);
    if (!touched) TESS_FAIL(TESS_ERR_ALLOC, "weight density");
    TESS_TRY(
        tess_device_alloc(num_pages * PAGE_BYTES, "weight density", (void **)&cell));
    TESS_TRY(tess_device_alloc(num_pages, "weight density", (void **)&on_device));
    TESS_TRY(tess_device_zero(cell, num_pages * PAGE_BYTES));
    TESS_TRY(tess_device_zero(on_device, num_pages));
    TESS_TRY(weight_device_add(layout, samples, cell, on_device));
    TESS_TRY(tess_device_download(touched, on_device, num_pages));
    TESS_TRY(fetch_pages(density, cell, touched));
cleanup:
    tess_device_free(cell);
    tess_device_free(on_device);
    tess_free(touched);
    return status;
}

tess_status density_device_apply(const tess_density *density,
                                 const tess_device_samples *samples,
                                 double *sum_weights, double *largest)
{
    tess_status status = TESS_OK;
    const density_layout *layout = density_layout_of(density);
    const int64_t bytes = density_num_pages(layout) * PAGE_BYTES;
    const int64_t sum_bytes = samples->num_weight * (int64_t)sizeof *sum_weights;
    double *cell = NULL, *sum = NULL;
    TESS_TRY(tess_device_alloc(bytes, "weight density", (void **)&cell));
    TESS_TRY(tess_device_alloc(2 * sum_bytes, "weight density", (void **)&sum));
    TESS_TRY(tess_device_zero(sum, 2 * sum_bytes));
    TESS_TRY(send_pages(density, cell));
    TESS_TRY(weight_device_apply(layout, cell, samples, sum));
    TESS_TRY(tess_device_download(sum_weights, sum, sum_bytes));
    TESS_TRY(tess_device_download(largest, sum + samples->num_weight, sum_bytes));
cleanup:
    tess_device_free(cell);
    tess_device_free(sum);
    return status;
}
