/* A-terms: configurations, and images, as a configuration of two names them. Input that
 * begins as FITS does is an image. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aterms.h"
#include "fuzz_file.h"
#include "tess_mem.h"

/* Larger inputs only take longer. */
enum { MOST_TEXT = 1 << 16 };

static const double directions[][2] = {{1e-4, 2e-4}, {6.2831, -1e-4}};

static const char config_path[] = "fuzz-aterms.txt";

static void write_config(const char *image, int which)
{
    FILE *file = fopen(config_path, "w");
    const char *const type[] = {"tec", "diagonal", "diagonal", "dldm"};
    if (!file ||
        fprintf(file, "aterms = [a]\na.type = %s\na.images = [%s%s%s]\n", type[which],
                image, which == 2 ? "," : "", which == 2 ? image : "") < 0 ||
        fclose(file) != 0)
        abort();
}

static tess_status read_image(const char *path, int which)
{
    tess_status status = TESS_OK;
    tess_aterms *aterms = NULL;
    const tess_aterms_opts opts = {.path = config_path,
                                   .num_antennas = 2,
                                   .num_directions = 2,
                                   .direction = directions};
    write_config(path, which);
    TESS_TRY(tess_aterms_read(fuzz_comm(), &opts, &aterms));
    for (int k = 0; k < 8; ++k) {
        double jones[4][2], shift[2];
        const bool counts = tess_aterms_jones(aterms, k & 1, (k >> 1) & 1,
                                              5e9 + 100 * k, 1e8 * (1 + k), jones);
        for (int j = 0; j < 4; ++j)
            fuzz_assert(counts ? isfinite(jones[j][0]) && isfinite(jones[j][1])
                               : jones[j][0] == 0 && jones[j][1] == 0,
                        "matrices are finite, or zero");
        if (tess_aterms_shift(aterms, (k >> 1) & 1, 5e9 + 100 * k, 1e8, shift))
            fuzz_assert(isfinite(shift[0]) && isfinite(shift[1]), "shifts are finite");
    }
cleanup:
    tess_aterms_free(aterms);
    return status;
}

static tess_status read_text(const uint8_t *data, size_t size)
{
    tess_status status = TESS_OK;
    aterm_config config = {0};
    char *text = tess_alloc_zero((int64_t)size + 1, 1);
    if (!text) TESS_FAIL(TESS_ERR_ALLOC, "no memory for a text");
    if (size > 0) memcpy(text, data, size);
    TESS_TRY(aterm_config_parse("a.txt", text, &config));
    for (int k = 0; k < config.num_terms; ++k)
        fuzz_assert(config.term[k].num_images > 0 && *config.term[k].image[0],
                    "terms have images");
cleanup:
    aterm_config_free(&config);
    tess_free(text);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > MOST_TEXT) return 0;
    if (size < 6 || memcmp(data, "SIMPLE", 6) != 0) {
        fuzz_check(read_text(data, size));
        return 0;
    }
    const char *path = fuzz_file(data, size);
    for (int which = 0; which < 4; ++which)
        fuzz_check(read_image(path, which));
    return 0;
}
