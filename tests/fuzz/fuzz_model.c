/* FITS images as `predict`, `image --subtract` and `compare` read them. */
#include <math.h>
#include <stdbool.h>

#include "compare.h"
#include "fuzz_file.h"
#include "tess_fits.h"
#include "tess_mem.h"

/* Planes that are read of each image: as many as a small file can hold. */
enum { MOST_PLANES = 64, MOST_VALUES = 1 << 22 };

static tess_status read_planes(const tess_fits_model *model, double *rows)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < model->num_freq && k < MOST_PLANES; ++k)
        for (int s = 0; s < model->num_stokes; ++s)
            TESS_TRY(
                tess_fits_read(model, s, k, 0, model->ny, TESS_PIXEL_DOUBLE, rows));
cleanup:
    return status;
}

static tess_status predict(const char *path)
{
    tess_status status = TESS_OK;
    tess_fits_model model;
    double *rows = NULL;
    TESS_TRY(tess_fits_open(path, &model));
    fuzz_assert(model.nx > 0 && model.ny > 0 && model.num_freq > 0 &&
                    model.num_stokes > 0 && model.num_stokes <= 4,
                "sizes of an image are in range");
    fuzz_assert(isfinite(model.scale_x_rad) && isfinite(model.scale_y_rad),
                "pixels have a size");
    if (model.nx > MOST_VALUES / model.ny) return TESS_OK;
    rows = tess_alloc(model.nx * model.ny, sizeof *rows);
    if (!rows) TESS_FAIL(TESS_ERR_ALLOC, "rows of an image");
    TESS_TRY(read_planes(&model, rows));
cleanup:
    tess_free(rows);
    return status;
}

static tess_status compare(const char *path)
{
    tess_compare_opts opts;
    tess_compare_result result;
    tess_compare_opts_default(&opts);
    const tess_status status = tess_compare_files(path, path, &opts, &result);
    fuzz_assert(status != TESS_ERR_DIFFERENT, "a file is the same as itself");
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    fuzz_check(predict(path));
    fuzz_check(compare(path));
    return 0;
}
