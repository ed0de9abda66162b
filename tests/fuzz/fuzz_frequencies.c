/* Frequency axes of images and cubes, as `predict --model CUBE`, `image --continue` and
 * `draw --like` read them: linear ones, tables of frequencies, weights of planes. */
#include <math.h>
#include <stdbool.h>

#include "fuzz_file.h"
#include "model_cube.h"
#include "tess_fits.h"
#include "tess_mem.h"

/* Frequencies of several planes are usable as channels. */
static void check_order(const double *freq_hz, int num)
{
    for (int k = 0; k < num && num > 1; ++k) {
        fuzz_assert(isfinite(freq_hz[k]) && freq_hz[k] > 0, "frequencies are positive");
        fuzz_assert(k < 2 || (freq_hz[k] > freq_hz[k - 1]) == (freq_hz[1] > freq_hz[0]),
                    "frequencies have one order");
        fuzz_assert(k == 0 || freq_hz[k] < freq_hz[k - 1] ||
                        freq_hz[k] > freq_hz[k - 1],
                    "two planes differ in frequency");
    }
}

static tess_status read_frequencies(const char *path)
{
    tess_status status = TESS_OK;
    tess_fits_model model;
    double *freq_hz = NULL;
    bool *has_data = NULL;
    TESS_TRY(tess_fits_open(path, &model));
    freq_hz = tess_alloc(model.num_freq, sizeof *freq_hz);
    has_data = tess_alloc(model.num_freq, sizeof *has_data);
    if (!freq_hz || !has_data) TESS_FAIL(TESS_ERR_ALLOC, "planes of an image");
    TESS_TRY(tess_fits_frequencies(&model, freq_hz, has_data));
    check_order(freq_hz, model.num_freq);
cleanup:
    tess_free(freq_hz);
    tess_free(has_data);
    return status;
}

/* A cube's channels ascend, and each is the nearest to its own frequency. */
static tess_status open_cube(const char *path, int num_terms)
{
    tess_status status = TESS_OK;
    model_cube *cube = NULL;
    const model_name name = {.path = path, .num_terms = num_terms};
    TESS_TRY(model_cube_open(&name, &cube, NULL));
    for (int k = 0; k < cube->num_planes && cube->num_planes > 1; ++k)
        fuzz_assert(model_cube_nearest(cube, cube->freq_hz[k]) == k,
                    "a channel is the nearest to its frequency");
    TESS_TRY(model_cube_check(cube, cube->freq_hz, cube->num_planes, false));
cleanup:
    model_cube_free(cube);
    return status;
}

static tess_status read_meta(const char *path)
{
    tess_status status = TESS_OK;
    tess_fits_model image;
    tess_image_meta meta;
    TESS_TRY(tess_fits_meta_read(path, &image, &meta));
    fuzz_assert(image.num_freq == 1 || (isfinite(meta.freq_hz) && meta.freq_hz > 0),
                "the first of several channels has a frequency");
cleanup:
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    fuzz_check(read_frequencies(path));
    fuzz_check(open_cube(path, 0));
    fuzz_check(open_cube(path, 2));
    fuzz_check(read_meta(path));
    return 0;
}
