/* The object of a CLEAN: creation, PSFs and masks. */
#include <math.h>
#include <string.h>

#include "clean_object.h"
#include "clean_opts.h"
#include "clean_scales.h"
#include "tess_mem.h"
#include "tess_real.h"

static int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void clean_inside(const clean_setup *setup, int scale, int64_t x_range[2],
                  int64_t y_range[2])
{
    const int64_t edge = clean_scale_border(setup->scale_px[scale]);
    const int64_t border_x = max_of(edge, setup->border_x);
    const int64_t border_y = max_of(edge, setup->border_y);
    x_range[0] = border_x;
    x_range[1] = setup->images.nx - border_x;
    y_range[0] = border_y;
    y_range[1] = setup->images.ny - border_y;
}

bool clean_records(const tess_clean *clean)
{
    return clean->setup.opts.auto_mask > 0 && clean->facts.phase == 1;
}

bool clean_is_masked(const tess_clean *clean)
{
    return clean->setup.opts.auto_mask > 0 && clean->facts.phase == 2;
}

/* Everything but the communicator, the weights and the backend's memory. */
static void setup_fill(clean_setup *setup, const tess_clean_images *images,
                       const tess_clean_opts *opts)
{
    setup->images = *images;
    setup->opts = *opts;
    setup->num_scales = tess_clean_scales(images, opts, setup->scale_px, setup->bias);
    setup->opts.scale_px = NULL;
    setup->images.weight = NULL;
    setup->border_x = (int64_t)lround(opts->border_percent / 100 * (double)images->nx);
    setup->border_y = (int64_t)lround(opts->border_percent / 100 * (double)images->ny);
}

static tess_status setup_weights(clean_setup *setup, const double *weight)
{
    tess_status status = TESS_OK;
    const int count = setup->images.num_images;
    double sum = 0;
    setup->weight = tess_alloc(count, sizeof *setup->weight);
    if (!setup->weight) TESS_FAIL(TESS_ERR_ALLOC, "weights of %d images", count);
    for (int k = 0; k < count; ++k)
        sum += weight ? weight[k] : 1;
    if (!(sum > 0)) TESS_FAIL(TESS_ERR_INPUT, "no image to clean has data");
    for (int k = 0; k < count; ++k)
        setup->weight[k] = (weight ? weight[k] : 1) / sum;
cleanup:
    return status;
}

static tess_status allocate(tess_clean *clean, const double *weight)
{
    tess_status status = TESS_OK;
    const tess_clean_images *images = &clean->setup.images;
    clean->log.found.num_images = images->num_images;
    clean->has_psf = tess_alloc_zero(images->num_images, sizeof *clean->has_psf);
    if (clean->setup.opts.auto_mask > 0) {
        clean->found =
            tess_alloc_zero(images->num_rows * images->nx, sizeof *clean->found);
        if (!clean->found) TESS_FAIL(TESS_ERR_ALLOC, "automatic mask");
    }
    if (!clean->has_psf) TESS_FAIL(TESS_ERR_ALLOC, "images to clean");
    TESS_TRY(setup_weights(&clean->setup, weight));
cleanup:
    return status;
}

tess_status tess_clean_create(tess_comm *comm, const tess_clean_images *images,
                              const tess_clean_opts *opts, tess_clean **clean_out)
{
    tess_status status = TESS_OK;
    tess_clean *clean = NULL;
    TESS_TRY(tess_comm_agree(comm, clean_opts_check(images, opts)));
    clean = tess_alloc_zero(1, sizeof *clean);
    TESS_TRY(tess_comm_agree(comm, clean ? TESS_OK : TESS_ERR_ALLOC));
    setup_fill(&clean->setup, images, opts);
    clean->setup.comm = comm;
    clean->ops = opts->ops ? opts->ops : &tess_clean_ops_cpu;
    clean->facts.phase = 1;
    TESS_TRY(tess_comm_agree(comm, allocate(clean, images->weight)));
    TESS_TRY(clean->ops->create(&clean->setup, &clean->work));
    *clean_out = clean;
    clean = NULL;
cleanup:
    tess_clean_destroy(clean);
    return status;
}

void tess_clean_destroy(tess_clean *clean)
{
    if (!clean) return;
    if (clean->work) clean->ops->destroy(clean->work);
    clean_components_free(&clean->log.found);
    tess_free(clean->log.loop);
    tess_free(clean->setup.weight);
    tess_free(clean->mask);
    tess_free(clean->found);
    tess_free(clean->has_psf);
    tess_free(clean);
}

void tess_clean_bytes(const tess_clean_images *images, const tess_clean_opts *opts,
                      int num_ranks, double *rank_bytes, double *node_bytes)
{
    clean_setup setup = {0};
    setup_fill(&setup, images, opts);
    (opts->ops ? opts->ops : &tess_clean_ops_cpu)
        ->bytes(&setup, num_ranks, rank_bytes, node_bytes);
    if (opts->auto_mask > 0)
        *rank_bytes += (double)(images->num_rows * images->nx) * sizeof(uint32_t);
}

tess_status tess_clean_set_psf(tess_clean *clean, int image, const void *rows)
{
    tess_status status = TESS_OK;
    const tess_clean_images *images = &clean->setup.images;
    const int64_t row = images->ny / 2 - images->row_first;
    double centre = -INFINITY;
    if (row >= 0 && row < images->num_rows)
        centre = tess_real_at(rows, images->rows_are_double,
                              row * images->nx + images->nx / 2);
    if (isnan(centre)) centre = -INFINITY;
    TESS_TRY(tess_comm_allreduce_f64(clean->setup.comm, &centre, 1, TESS_MAX));
    if (!(centre > 0) && clean->setup.weight[image] > 0)
        TESS_FAIL(TESS_ERR_INPUT, "the PSF is not positive at its centre");
    TESS_TRY(clean->ops->set_psf(clean->work, image, rows));
    clean->has_psf[image] = true;
cleanup:
    return status;
}

tess_status tess_clean_set_mask(tess_clean *clean, const uint8_t *rows)
{
    tess_status status = TESS_OK;
    tess_comm *comm = clean->setup.comm;
    const int64_t pixels = clean->setup.images.num_rows * clean->setup.images.nx;
    int64_t set = 0;
    uint8_t *mask = rows ? tess_alloc(pixels, 1) : NULL;
    TESS_TRY(tess_comm_agree(comm, mask || !rows ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t k = 0; mask && k < pixels; ++k)
        set += mask[k] = rows[k] != 0;
    TESS_TRY(tess_comm_allreduce_i64(comm, &set, 1, TESS_SUM));
    if (set == 0 && rows) TESS_FAIL(TESS_ERR_INPUT, "nothing is set in the mask");
    tess_free(clean->mask);
    clean->mask = mask;
    mask = NULL;
cleanup:
    tess_free(mask);
    return status;
}

void tess_clean_mark_model(tess_clean *clean, const double *const *model)
{
    const tess_clean_images *images = &clean->setup.images;
    if (!clean->found || clean->setup.num_scales > 1) return;
    for (int i = 0; i < images->num_images; ++i)
        for (int64_t k = 0; k < images->num_rows * images->nx; ++k)
            if (model[i][k] != 0 && isfinite(model[i][k])) clean->found[k] |= 1;
}

void tess_clean_set_calls(tess_clean *clean, const tess_clean_calls *calls)
{
    clean->calls = *calls;
}
