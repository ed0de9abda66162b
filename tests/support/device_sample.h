/* What the tests of devices that take a file's rows share: a small file, what may be
 * changed in it, and the small image of it. */
#ifndef DEVICE_SAMPLE_H
#define DEVICE_SAMPLE_H

#include "tess_const.h"
#include "tess_gcf_grid.h"
#include "tess_imager.h"
#include "tess_imager_predict.h"
#include "uvfits_sample.h"

enum { SIZE = 48, PIXELS = SIZE * SIZE, GROUPS = 60 };

/* Sums of a few hundred values in single precision, in two orders. */
static const double ROUNDING = 3e-6;

/* ---- files ---- */

static int header_bytes(const char *path)
{
    char card[81] = "";
    int bytes = 0;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    do {
        assert_int_equal(fread(card, 1, 80, file), 80);
        bytes += 80;
    } while (strncmp(card, "END     ", 8) != 0);
    fclose(file);
    return (bytes + 2879) / 2880 * 2880;
}

/* Values of a group of four bytes each. */
static int group_values(const sample *s)
{
    char names[16][16];
    return split_params(s, names) +
           s->num_complex * s->num_stokes * s->num_chan * s->num_if;
}

/* Value `index` of a group becomes `value`. */
static void patch(const char *path, const sample *s, int group, int index, float value)
{
    uint32_t bits;
    unsigned char bytes[4];
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    memcpy(&bits, &value, sizeof bits);
    for (int k = 0; k < 4; ++k)
        bytes[k] = (unsigned char)(bits >> (24 - 8 * k));
    fseek(file, header_bytes(path) + 4L * (group * group_values(s) + index), SEEK_SET);
    assert_int_equal(fwrite(bytes, 1, 4, file), 4);
    fclose(file);
}

/* ---- images ---- */

static tess_w_mode w_mode = TESS_W_STACKING;
static tess_device_planes planes; /* whole images, or shared; 0: chosen */

/* With them where w is projected, by the strategy that both backends have. */
static tess_projection_opts tables(void)
{
    tess_projection_opts opts;
    tess_projection_opts_default(&opts);
    opts.strategy = &tess_gcf_tiled;
    opts.cached = false;
    return opts;
}

enum { PICTURES = 8 };

typedef struct pictures {
    double pixel[PICTURES][PIXELS]; /* dirty and PSF, of I (or any other), Q, U, V; of a
                                       cleaned image dirty, PSF, image, residual, model
                                     */
} pictures;

static double *pixel_of(pictures *to, const tess_image_product *product)
{
    static const char stokes[] = "IQUV";
    static const char *const cleaned[] = {"image", "residual", "model"};
    const char *found = strchr(stokes, product->polarisation[0]);
    const long pol = found ? found - stokes : 0;
    for (int k = 0; k < 3; ++k)
        if (strcmp(product->kind, cleaned[k]) == 0) return to->pixel[2 + k];
    return to->pixel[2 * pol + (strcmp(product->kind, "psf") == 0)];
}

static tess_status take(void *context, const tess_image_product *product)
{
    double *pixel = pixel_of(context, product);
    for (int64_t k = 0; k < product->num_rows * SIZE; ++k)
        pixel[product->row_first * SIZE + k] =
            product->is_double ? ((const double *)product->pixel)[k]
                               : (double)((const float *)product->pixel)[k];
    return TESS_OK;
}

static tess_image_opts options(const char *const *obs, int num_obs)
{
    return (tess_image_opts){.obs = obs,
                             .num_obs = num_obs,
                             .take = take,
                             .nx = SIZE,
                             .ny = SIZE,
                             .scale_rad = 1.5 * TESS_RAD_PER_DEG / 3600,
                             .weights.weighting = TESS_NATURAL,
                             .num_pol = 1,
                             .pol = {1},
                             .gridding = {.accuracy = 1e-4, .w_mode = TESS_W_STACKING},
                             .layout = {.threads = 3, .forced.kernel_planes = 1},
                             .channels_out = 1,
                             .intervals_out = 1,
                             .make_psf = true};
}

/* Relative L2 of a against b; 0 when neither was made. */
static double difference(const double a[PIXELS], const double b[PIXELS])
{
    double sum = 0, all = 0;
    for (int k = 0; k < PIXELS; ++k) {
        sum += (a[k] - b[k]) * (a[k] - b[k]);
        all += b[k] * b[k];
    }
    return sum > 0 ? sqrt(sum / all) : 0;
}

/* The same pictures were made, `num` of them, and they agree. */
static void assert_alike(const pictures *a, const pictures *b, int num, double rounding)
{
    static const double nothing[PIXELS];
    int made = 0;
    for (int k = 0; k < PICTURES; ++k) {
        made += memcmp(b->pixel[k], nothing, sizeof nothing) != 0;
        assert_true(difference(a->pixel[k], b->pixel[k]) <= rounding);
    }
    assert_int_equal(made, num);
}

/* ---- predictions ---- */

static unsigned char *contents(const char *path, long *bytes)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *bytes = ftell(file);
    rewind(file);
    unsigned char *all = malloc((size_t)*bytes);
    assert_non_null(all);
    assert_int_equal(fread(all, 1, (size_t)*bytes, file), (size_t)*bytes);
    fclose(file);
    return all;
}

static float value_of(const unsigned char *at)
{
    float value;
    const uint32_t bits =
        (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Two files of the sample's layout: the visibilities agree within a share of the
 * largest, everything else byte for byte. */
static void compare_files(const char *const path[2], const sample *s, double rounding)
{
    char names[16][16];
    long bytes[2];
    unsigned char *all[2];
    double largest = 0, apart = 0;
    const long params = split_params(s, names), first = header_bytes(path[0]);
    const long values = group_values(s);
    for (int k = 0; k < 2; ++k)
        all[k] = contents(path[k], &bytes[k]);
    assert_int_equal(bytes[0], bytes[1]);
    for (long at = 0; at < bytes[0]; at += 4) {
        const long value = (at - first) / 4 % values;
        const bool data = at >= first && at < first + 4 * values * s->num_groups;
        if (data && value >= params && (value - params) % 3 != 2) {
            const double a = (double)value_of(all[0] + at),
                         b = (double)value_of(all[1] + at);
            largest = fmax(largest, fabs(a));
            apart = fmax(apart, fabs(a - b));
        } else
            assert_memory_equal(all[0] + at, all[1] + at, 4);
    }
    assert_true(largest > 0 && apart <= rounding * largest);
    for (int k = 0; k < 2; ++k)
        free(all[k]);
}

/* Predicted into path[0] on the host and path[1] on the device. Collective. */
static void assert_same_predictions(tess_comm *comm, const char *const path[2],
                                    const char *obs, const char *model, const sample *s,
                                    const tess_selection *selection, int passes,
                                    double accuracy, double rounding)
{
    tess_profile profile[2];
    int64_t count[4];
    for (int k = 0; k < 2; ++k) {
        tess_predict_opts opts = {.obs = obs,
                                  .model = model,
                                  .output = path[k],
                                  .selection = *selection,
                                  .gridding = {.accuracy = accuracy,
                                               .w_mode = w_mode,
                                               .backend = k ? "cuda" : "cpu"},
                                  .layout = {.threads = 3,
                                             .forced.kernel_planes = 1,
                                             .forced.passes = passes,
                                             .forced.device_planes = planes},
                                  .overwrite = true};
        opts.gridding.projection = tables();
        tess_profile_start(&profile[k]);
        assert_int_equal(tess_imager_predict(comm, &opts, &profile[k]), TESS_OK);
    }
    for (int k = 0; k < 2; ++k) {
        count[k] = profile[k].stream.bytes;
        count[2 + k] = profile[k].visibilities;
    }
    assert_int_equal(tess_comm_allreduce_i64(comm, count, 4, TESS_SUM), TESS_OK);
    assert_int_equal(count[0], 0);
    assert_true(count[1] > 0);
    assert_int_equal(count[2], count[3]);
    if (tess_comm_rank(comm) == 0) compare_files(path, s, rounding);
    assert_int_equal(tess_comm_barrier(comm), TESS_OK);
}

#endif
