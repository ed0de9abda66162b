/* Primary beams of the user, as `--primary-beam FILE.fits` and `--primary-beam
 * poly:FILE` read them, and their means. Input that begins as FITS does is a cube. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_file.h"
#include "primary_beam.h"
#include "tess_comm.h"
#include "tess_mem.h"

/* Pixels, planes and bands whose mean is made, and bytes of a text: each band takes
 * some ten thousand steps. */
enum { MOST_PIXELS = 1 << 16, MOST_PLANES = 16, MOST_BANDS = 4, MOST_TEXT = 4096 };

/* The mean over three frequencies and two angles is known everywhere. */
static tess_status make_mean(const tess_primary_beam *beam, const double freq_hz[3])
{
    tess_status status = TESS_OK;
    static const double weight[3] = {1, 2, 0.5}, angle_rad[2] = {0.1, 2};
    const tess_beam_mean_of of = {.num_chan = 3,
                                  .freq_hz = freq_hz,
                                  .weight = weight,
                                  .num_angles = 2,
                                  .angle_rad = angle_rad,
                                  .reach = 0.02,
                                  .threads = 1};
    tess_beam_mean *mean = NULL;
    TESS_TRY(tess_beam_mean_create(beam, &of, &mean));
    for (int k = 0; k < 9; ++k)
        fuzz_assert(
            !isnan(tess_beam_mean_power(mean, 0.004 * (k % 3), 0.004 * (k / 3))),
            "a beam's power is a number");
cleanup:
    tess_beam_mean_destroy(mean);
    return status;
}

static tess_status read_cube(const char *path)
{
    tess_status status = TESS_OK;
    tess_primary_beam beam = {.kind = BEAM_CUBE};
    double low_hz, high_hz;
    TESS_TRY(beam_cube_open(path, &beam.cube));
    beam_cube_range(&beam.cube, &low_hz, &high_hz);
    fuzz_assert(isfinite(high_hz) && low_hz <= high_hz, "a beam has a range");
    const tess_fits_axis *axis = beam.cube.array.axis;
    if (axis[0].length > MOST_PIXELS / axis[1].length ||
        beam.cube.num_freq > MOST_PLANES || beam.cube.num_feeds > MOST_PLANES)
        return TESS_OK;
    const double freq_hz[3] = {low_hz, 0.5 * (low_hz + high_hz), high_hz};
    TESS_TRY(make_mean(&beam, freq_hz));
cleanup:
    return status;
}

/* A beam as the program asks for it, at the middle of a band. */
static tess_status open_band(const char *path, const double freq_hz[3])
{
    tess_status status = TESS_OK;
    char model[128];
    const tess_primary_beam_request request = {
        .model = model, .num_chan = 1, .freq_hz = freq_hz};
    tess_primary_beam *beam = NULL;
    snprintf(model, sizeof model, "poly:%s", path);
    TESS_TRY(tess_primary_beam_open(fuzz_comm(), &request, &beam));
    TESS_TRY(make_mean(beam, freq_hz));
cleanup:
    tess_primary_beam_close(beam);
    return status;
}

/* The first bands, and the first of them as the program asks for it. */
static tess_status read_text(const char *path, char *text)
{
    tess_status status = TESS_OK;
    tess_primary_beam beam = {.kind = BEAM_POLYNOMIAL};
    const beam_polynomials *bands = &beam.polynomials;
    TESS_TRY(beam_polynomials_parse(path, text, &beam.polynomials));
    for (int k = 0; k < bands->num && k < MOST_BANDS; ++k) {
        const double middle_hz =
            0.5e6 * (bands->band[k].low_mhz + bands->band[k].high_mhz);
        const double freq_hz[3] = {middle_hz, middle_hz, middle_hz};
        TESS_TRY(k == 0 ? open_band(path, freq_hz) : make_mean(&beam, freq_hz));
    }
cleanup:
    beam_polynomials_free(&beam.polynomials);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    if (size > 6 && memcmp(data, "SIMPLE", 6) == 0) {
        fuzz_check(read_cube(path));
        return 0;
    }
    char *text = tess_alloc_zero((int64_t)size + 1, 1);
    if (!text || size > MOST_TEXT) {
        tess_free(text);
        return 0;
    }
    if (size > 0) memcpy(text, data, size);
    fuzz_check(read_text(path, text));
    tess_free(text);
    return 0;
}
