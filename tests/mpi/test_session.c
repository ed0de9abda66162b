/* Sessions that ranks of a communicator share: images, residuals, weights and predicted
 * visibilities equal those of one process bit by bit, and a call that fails on one rank
 * returns on all. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "draw.h"
#include "rank_tests.h"
#include "session_pair.h"
#include "simulated.h"
#include "tess_const.h"
#include "tess_fits.h"
#include "tessera/tessera.h"

static tess_comm *world;
static char sky[64], short_one[64], long_one[64], beside[64];
static char models[64]; /* name of a set of models */
static char regions[64];

static int world_rank(void)
{
    return tess_comm_rank(world);
}

/* Whether all combinations are tried: tests/run.sh --full. */
static bool is_full(void)
{
    return getenv("TESS_TEST_MATRIX") != NULL;
}

/* ---- facets ---- */

/* Two facets, in which all pixels lie. */
static void write_regions(void)
{
    FILE *file = fopen(regions, "w");
    assert_non_null(file);
    fputs("polygon(61,29,59.99,29,60.01,31,61,31) # text={east}\npoint(60.1,30)\n"
          "polygon(59.99,29,59,29,59,31,60.01,31) # text={west}\npoint(59.9,30)\n",
          file);
    assert_int_equal(fclose(file), 0);
}

/* ---- models in files ---- */

/* Models of Stokes I and Q at three frequencies, and their pixels. */
enum { MODEL_CHANNELS = 3, MODEL_NX = 36, MODEL_NY = 30 };
static const double MODEL_SCALE_ASEC = 20;

static char *model_name(int channel, const char *stokes, char name[128])
{
    snprintf(name, 128, "%s-%04d-%s-model.fits", models, channel, stokes);
    return name;
}

static void write_model(tess_comm *self, int channel, int stokes)
{
    char name[128];
    double pixel[MODEL_NX * MODEL_NY] = {0};
    draw from = {100 + 10 * (uint64_t)channel + (uint64_t)stokes};
    const tess_image_meta meta = {.nx = MODEL_NX,
                                  .ny = MODEL_NY,
                                  .ra_rad = 60 * TESS_RAD_PER_DEG,
                                  .dec_rad = 30 * TESS_RAD_PER_DEG,
                                  .scale_rad = MODEL_SCALE_ASEC * TESS_RAD_PER_ASEC,
                                  .freq_hz = 1.385e9 + 4e7 * channel,
                                  .bandwidth_hz = 4e7,
                                  .stokes = stokes,
                                  .gridded = {.sum_weights = 1},
                                  .unit = "Jy/pixel"};
    for (int k = 0; k < POINTS; ++k)
        pixel[(int)draw_uniform(&from, 0, MODEL_NX * MODEL_NY)] = draw_normal(&from);
    assert_int_equal(
        tess_fits_write(
            self, model_name(channel, stokes == 1 ? "I" : "Q", name), true, &meta,
            &(tess_fits_rows){.num_rows = MODEL_NY, .is_double = true, .pixel = pixel}),
        TESS_OK);
}

static void write_models(void)
{
    tess_comm *self;
    assert_int_equal(tess_comm_self(&self), TESS_OK);
    for (int channel = 0; channel < MODEL_CHANNELS; ++channel)
        for (int stokes = 1; stokes <= 2; ++stokes)
            write_model(self, channel, stokes);
    tess_comm_free(self);
}

static void remove_models(void)
{
    char name[128];
    for (int channel = 0; channel < MODEL_CHANNELS; ++channel) {
        unlink(model_name(channel, "I", name));
        unlink(model_name(channel, "Q", name));
    }
}

static bool has_pixels_of_models(const tess_session_info *info)
{
    return fabs(info->scale_rad / (MODEL_SCALE_ASEC * TESS_RAD_PER_ASEC) - 1) < 1e-9;
}

/* Compares residuals of a set of models, and visibilities predicted from it: of the
 * nearest channels (`terms` 0), of polynomials of 2 terms, or of both (`terms` < 0).
 * Nearest channels are predicted on the rank and in the pass that hold the samples, so
 * that results agree to rounding. */
static void compare_files(pair *both, int64_t interval, int64_t channel, int terms,
                          MPI_Comm comm)
{
    const bool fits = has_pixels_of_models(both->all);
    pair rounded = *both;
    rounded.exact = false;
    for (int last = terms < 0 ? 2 : terms, k = terms < 0 ? 0 : terms; k <= last;
         k += 2) {
        const tess_model_file file = {models, k};
        tess_predictions *shared = NULL, *alone = NULL;
        const tess_status status = tess_session_image_file(
            both->shared, interval, channel, &file, both->image_part, NULL);
        if (fits && status != TESS_OK) fail_msg("%s", tess_last_error());
        assert_int_equal(tess_session_image_file(both->alone, interval, channel, &file,
                                                 both->image_all, NULL),
                         fits ? TESS_OK : TESS_ERR_INPUT);
        assert_true(fits == (status == TESS_OK));
        if (fits) assert_rows_equal(&rounded, both->image_part, both->image_all);
        assert_int_equal(
            tess_session_predict_file(both->shared, interval, channel, &file, &shared),
            TESS_OK);
        assert_int_equal(
            tess_session_predict_file(both->alone, interval, channel, &file, &alone),
            TESS_OK);
        assert_int_equal(tess_predictions_count(shared), tess_predictions_count(alone));
        for (int64_t s = 0; s < tess_predictions_count(alone); ++s)
            compare_segments(both->exact, tess_predictions_get(shared, s),
                             tess_predictions_get(alone, s), comm);
        tess_predictions_destroy(shared);
        tess_predictions_destroy(alone);
    }
}

static double power_of_rows(const tess_session_info *info, const double *rows)
{
    double power = 0;
    for (int64_t k = 0; k < count_of(info); ++k)
        power += rows[k] * rows[k];
    MPI_Allreduce(MPI_IN_PLACE, &power, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return power;
}

/* Each output has one channel. A model from a file leaves the residual, and predicts
 * the visibilities, that an array with the file's pixels of this channel does, to the
 * accuracy of both. Other channels of the file count, too. */
static void test_files_are_arrays(void **state)
{
    (void)state;
    static const char *const options[] = {
        "size", "36,30", "scale", "20asec", "stokes", "IQ", "channels-out", "6", NULL};
    pair both = open_pair(MPI_COMM_WORLD, options);
    const int64_t count = count_of(both.part);
    for (int terms = 0; terms <= 2; terms += 2)
        for (int64_t c = 0; c < both.all->num_channels; c += is_full() ? 1 : 2) {
            const tess_model_file file = {models, terms};
            assert_int_equal(
                tess_session_read_model(both.shared, 0, c, &file, both.model_part),
                TESS_OK);
            assert_int_equal(
                tess_session_read_model(both.alone, 0, c, &file, both.model_all),
                TESS_OK);
            assert_rows_equal(&both, both.model_part, both.model_all);
            assert_true(power_of_rows(both.part, both.model_part) > 0);
            assert_int_equal(tess_session_image(both.shared, 0, c, both.model_part,
                                                both.image_part, NULL),
                             TESS_OK);
            assert_int_equal(
                tess_session_image_file(both.shared, 0, c, &file, both.psf_part, NULL),
                TESS_OK);
            const double size = power_of_rows(both.part, both.image_part);
            for (int64_t k = 0; k < count; ++k)
                both.image_part[k] -= both.psf_part[k];
            assert_true(sqrt(power_of_rows(both.part, both.image_part) / size) < 3e-4);
        }
    close_pair(&both);
}

/* Six output channels take the nearest of three channels of a model, or the line
 * through them. */
static void test_channels_of_files(void **state)
{
    (void)state;
    static const char *const options[] = {"size",         "36,30", "scale", "20asec",
                                          "channels-out", "6",     NULL};
    tess_session *session = open_alone(options);
    const tess_session_info *info = tess_session_info_of(session);
    double *model = array_of(info), *other = array_of(info);
    const tess_model_file nearest = {models, 0}, line = {models, 2};
    bool differs = false;
    char name[128];
    for (int64_t c = 0; c < 6; ++c) {
        tess_session_weights of;
        assert_int_equal(tess_session_weights_of(session, 0, c, 0, &of), TESS_OK);
        const int best = (int)fmin(fmax(round((of.freq_hz - 1.385e9) / 4e7), 0), 2);
        const tess_model_file single = {model_name(best, "I", name), 0};
        assert_int_equal(tess_session_read_model(session, 0, c, &nearest, model),
                         TESS_OK);
        assert_int_equal(tess_session_read_model(session, 0, c, &single, other),
                         TESS_OK);
        assert_memory_equal(model, other, (size_t)count_of(info) * sizeof *model);
        assert_int_equal(tess_session_read_model(session, 0, c, &line, other), TESS_OK);
        differs = differs ||
                  memcmp(model, other, (size_t)count_of(info) * sizeof *model) != 0;
    }
    assert_true(differs);
    free(model);
    free(other);
    tess_session_destroy(session);
}

/* ---- all outputs ---- */

/* Models in files are taken by their nearest channels and by polynomials in turn. */
static void compare_all(MPI_Comm comm, const char *const *options)
{
    static int turn;
    const int terms = is_full() ? -1 : turn++ % 2 * 2;
    pair both = open_pair(comm, options);
    check_info(&both, comm);
    for (int64_t i = 0; i < both.all->num_intervals; ++i)
        for (int64_t c = 0; c < both.all->num_channels; ++c) {
            compare_weights(&both, i, c);
            compare_images(&both, i, c);
            compare_predictions(&both, i, c, comm);
        }
    compare_files(&both, both.all->num_intervals - 1, both.all->num_channels - 1, terms,
                  comm);
    close_pair(&both);
}

/* Predictions of what lies in a facet, and those of the other one. */
static void compare_facets(pair *both, MPI_Comm comm)
{
    for (int k = 0; k < 2; ++k) {
        const char *name = tess_session_facet(both->shared, k);
        tess_predictions *shared = NULL, *alone = NULL;
        assert_string_equal(name, k == 0 ? "east" : "west");
        assert_int_equal(tess_session_predict_facet(both->shared, 0, 0,
                                                    both->model_part, name, k, &shared),
                         TESS_OK);
        assert_int_equal(tess_session_predict_facet(both->alone, 0, 0, both->model_all,
                                                    name, k, &alone),
                         TESS_OK);
        compare_segments(both->exact, tess_predictions_get(shared, 0),
                         tess_predictions_get(alone, 0), comm);
        tess_predictions_destroy(shared);
        tess_predictions_destroy(alone);
    }
}

/* A list of no text and a text is not one of the text and none, nor is an empty text
 * none. */
static void check_texts(tess_session *session)
{
    static const char *const text[][2] = {{"a", NULL}, {NULL, "a"}, {"a", ""}};
    for (int k = 0; k < 2 && tess_comm_size(world) > 1; ++k) {
        const char *const *own = text[world_rank() > 0 ? 0 : k + 1];
        assert_int_equal(tess_session_solutions(session, own[0], own[1]),
                         TESS_ERR_USAGE);
        assert_non_null(strstr(tess_last_error(), "different arguments"));
    }
}

static void test_facets(void **state)
{
    (void)state;
    const char *const options[] = {"size", "45,31",  "scale", "20asec", "stokes",
                                   "IQ",   "facets", regions, NULL};
    if (world_rank() == 0) write_regions();
    assert_int_equal(tess_comm_barrier(world), TESS_OK);
    pair both = open_pair(MPI_COMM_WORLD, options);
    tess_predictions *none = NULL;
    assert_int_equal(tess_session_num_facets(both.shared), 2);
    assert_null(tess_session_facet(both.shared, 2));
    compare_images(&both, 0, 0);
    compare_predictions(&both, 0, 0, MPI_COMM_WORLD);
    compare_facets(&both, MPI_COMM_WORLD);
    assert_int_equal(tess_session_response(both.shared, 0, 0, both.image_part),
                     TESS_OK);
    for (int64_t k = 0; k < count_of(both.part); ++k)
        assert_true(both.image_part[k] == 1);
    const char *const other = world_rank() > 0 ? "west" : "north";
    assert_int_not_equal(tess_session_predict_facet(both.shared, 0, 0, both.model_part,
                                                    other, true, &none),
                         TESS_OK);
    assert_null(none);
    check_texts(both.shared);
    close_pair(&both);
}

/* A mosaic of two pointings, each an observation of its own, with beams of each output.
 */
static void test_mosaic(void **state)
{
    (void)state;
    const char *const options[] = {
        "size",         "45,31", "scale",         "40asec",    "obs",    beside,
        "mosaic",       NULL,    "primary-beam",  "airy:25,2", "weight", "natural",
        "channels-out", "2",     "intervals-out", "2",         NULL};
    if (!is_full() && getenv("TESS_NODE_RANKS")) return; /* nodes change nothing here */
    pair both = open_pair(MPI_COMM_WORLD, options);
    double *response = array_of(both.all);
    for (int64_t k = 0; k < 4; k += is_full() ? 1 : 3) {
        compare_images(&both, k / 2, k % 2);
        compare_predictions(&both, k / 2, k % 2, MPI_COMM_WORLD);
        assert_int_equal(
            tess_session_response(both.shared, k / 2, k % 2, both.image_part), TESS_OK);
        assert_int_equal(tess_session_response(both.alone, k / 2, k % 2, response),
                         TESS_OK);
        assert_rows_equal(&both, both.image_part, response);
    }
    free(response);
    close_pair(&both);
}

/* Sessions of one image, of several channels, times and polarisations, of double
 * precision, and of fewer rows of pixels than there are ranks. */
static void test_equals_one_process(void **state)
{
    (void)state;
    static const char *const options[][16] = {
        {"size", "48", "scale", "20asec", NULL},
        {"size", "45,31", "scale", "20asec", "channels-out", "2", "intervals-out", "2",
         "stokes", "IQUV", "weight", "uniform", NULL},
        {"size", "31,46", "scale", "20asec", "channels-out", "3", "stokes", "XX,XY",
         "accuracy", "1e-8", NULL},
        {"size", "40,3", "scale", "20asec", "stokes", "I,V", NULL},
        {"size", "40,1", "scale", "20asec", NULL},
    };
    for (size_t k = 0; k < sizeof options / sizeof *options; ++k)
        compare_all(MPI_COMM_WORLD, options[k]);
}

/* Each divisor of the number of ranks is tried as the number of ranks that share a
 * plane, and as the number of w-groups. Rows of images lie on other ranks then. */
static void test_shares(void **state)
{
    (void)state;
    static const char *const forced[] = {"force-fft-ranks", "force-pw"};
    const int size = tess_comm_size(world);
    for (int ranks = 1; ranks <= size; ++ranks)
        for (int k = 0; k < 2 && size % ranks == 0; ++k) {
            char text[16];
            snprintf(text, sizeof text, "%d", ranks);
            const char *const options[] = {"size",
                                           "37,29",
                                           "scale",
                                           "20asec",
                                           forced[k],
                                           text,
                                           "force-block-planes",
                                           "3",
                                           NULL};
            compare_all(MPI_COMM_WORLD, options);
        }
    /* left to the plan, which prediction has another one of */
    static const char *const chosen[] = {
        "size", "37,29", "scale", "20asec", "stokes", "IQUV", "force-block-planes",
        "1",    NULL};
    compare_all(MPI_COMM_WORLD, chosen);
}

/* Two parts of the ranks have a session each, while all of them share a third. */
static void test_parts_of_ranks(void **state)
{
    (void)state;
    static const char *const options[2][8] = {
        {"size", "33,20", "scale", "20asec", NULL},
        {"size", "24,18", "scale", "25asec", "stokes", "IQ", NULL}};
    const int color = world_rank() % 2;
    MPI_Comm part;
    pair all = open_pair(MPI_COMM_WORLD, options[0]);
    MPI_Comm_split(MPI_COMM_WORLD, color, -world_rank(), &part);
    compare_all(part, options[color]);
    compare_images(&all, 0, 0);
    MPI_Comm_free(&part);
    close_pair(&all);
}

/* ---- data that do not fit into memory ---- */

/* The memory of a rank has room for the images, and not for the samples of the long
 * observation. */
enum { MEMORY_KB = 400 };

/* Images of samples on scratch are those of samples in memory, for several outputs,
 * polarisations and weights. */
static void test_spooled(void **state)
{
    (void)state;
    char memory[32];
    snprintf(memory, sizeof memory, "%dkB", MEMORY_KB * tess_comm_size(world));
    observation = long_one;
    const char *const options[][18] = {
        {"size", "48", "scale", "20asec", "memory", memory, "scratch", ".", NULL},
        {"size", "45,31", "scale", "20asec", "channels-out", "2", "intervals-out", "2",
         "stokes", "IQUV", "weight", "uniform", "memory", memory, "scratch", ".", NULL},
        {"size", "31,46", "scale", "20asec", "stokes", "XX,XY", "accuracy", "1e-8",
         "weight", "natural", "memory", memory, "scratch", ".", NULL},
    };
    for (size_t k = 0; k < sizeof options / sizeof *options; ++k)
        compare_all(MPI_COMM_WORLD, options[k]);
    observation = short_one;
}

/* Without scratch the session says what it would need. */
static void test_too_little_memory(void **state)
{
    (void)state;
    static const char *const options[] = {"size", "48", "scale", "20asec", NULL};
    char memory[32];
    observation = long_one;
    tess_session *session = shared_session(MPI_COMM_WORLD, options);
    snprintf(memory, sizeof memory, "%dkB", MEMORY_KB * tess_comm_size(world));
    assert_int_equal(tess_session_set(session, "memory", memory), TESS_OK);
    assert_int_equal(tess_session_open(session), TESS_ERR_RESOURCE);
    assert_non_null(strstr(tess_last_error(), "iB on a rank"));
    assert_non_null(strstr(tess_last_error(), "--scratch DIR"));
    assert_int_equal(tess_session_set(session, "scratch", "no/folder"), TESS_OK);
    assert_int_equal(tess_session_open(session), TESS_ERR_IO);
    assert_int_equal(tess_session_set(session, "scratch", "."), TESS_OK);
    assert_int_equal(tess_session_open(session), TESS_OK);
    tess_session_destroy(session);
    observation = short_one;
}

/* ---- failures ---- */

/* What a call returns that fails on the last rank only. */
static void assert_fails_on_last(tess_status status, const char *message)
{
    const bool last = world_rank() == tess_comm_size(world) - 1;
    assert_int_equal(status, last ? TESS_ERR_USAGE : TESS_ERR_PEER);
    assert_non_null(strstr(tess_last_error(), last ? message : "another rank failed"));
}

static void test_calls_that_fail_on_one_rank(void **state)
{
    (void)state;
    static const char *const options[] = {
        "size", "36,30", "scale", "20asec", "stokes", "IQ", "channels-out", "2", NULL};
    const int last = tess_comm_size(world) - 1;
    pair both = open_pair(MPI_COMM_WORLD, options);
    const int64_t outside = world_rank() == last ? 2 : 0;
    const int64_t other = world_rank() == last ? 1 : 0;
    const double *some = world_rank() == last ? NULL : both.model_part;
    double *const image = both.image_part;
    tess_predictions *made = NULL;
    assert_fails_on_last(tess_session_image(both.shared, 0, outside, NULL, image, NULL),
                         "no output channel 2");
    assert_fails_on_last(
        tess_session_predict(both.shared, outside, 0, both.model_part, &made),
        "no output channel 0 of interval 2");
    assert_null(made);
    if (last > 0) {
        assert_int_equal(tess_session_image(both.shared, 0, other, NULL, image, NULL),
                         TESS_ERR_USAGE);
        assert_non_null(strstr(tess_last_error(), "different outputs"));
        assert_int_equal(tess_session_image(both.shared, 0, 0, some, image, NULL),
                         TESS_ERR_USAGE);
        assert_non_null(strstr(tess_last_error(), "model array: some ranks"));
        assert_int_equal(
            tess_session_image(both.shared, 0, 0, NULL, image,
                               world_rank() == last ? both.psf_part : NULL),
            TESS_ERR_USAGE);
        assert_int_equal(tess_session_predict(both.shared, 0, 0, some, &made),
                         TESS_ERR_USAGE);
        assert_null(made);
    }
    assert_int_equal(tess_session_image(both.shared, 0, 0, NULL, NULL, both.psf_part),
                     TESS_ERR_USAGE);
    assert_int_equal(tess_session_predict(both.shared, 0, 0, NULL, &made),
                     TESS_ERR_USAGE);
    compare_images(&both, 0, 1); /* the session is as it was */
    compare_predictions(&both, 0, 1, MPI_COMM_WORLD);
    close_pair(&both);
}

/* All ranks get an error, and the session stays as it was, if one rank alone has a set
 * of models, if the set lacks a file or polarisations, or has other pixels or a false
 * axis.
 */
static void test_files_that_are_refused(void **state)
{
    (void)state;
    static const char *const options[] = {"size", "36,30", "scale", "20asec", NULL};
    const int last = tess_comm_size(world) - 1;
    char name[128], other[160];
    pair both = open_pair(MPI_COMM_WORLD, options);
    double *const image = both.image_part;
    tess_predictions *made = NULL;
    const tess_model_file none = {"not-there", 0}, many = {models, 17},
                          fitted = {models, 4}, nothing = {NULL, 0},
                          own = {models, world_rank() == last ? 1 : 0};
    const tess_model_file set = {models, 0};
    assert_int_not_equal(tess_session_image_file(both.shared, 0, 0, &none, image, NULL),
                         TESS_OK);
    assert_int_equal(
        tess_session_image_file(both.alone, 0, 0, &none, both.image_all, NULL),
        TESS_ERR_IO);
    assert_int_equal(tess_session_image_file(both.shared, 0, 0, &many, image, NULL),
                     TESS_ERR_USAGE);
    assert_int_equal(tess_session_image_file(both.shared, 0, 0, &nothing, image, NULL),
                     TESS_ERR_USAGE);
    assert_int_equal(tess_session_image_file(both.shared, 0, 0, &fitted, image, NULL),
                     TESS_ERR_INPUT);
    assert_non_null(strstr(tess_last_error(), "4 terms"));
    assert_int_equal(tess_session_predict_file(both.shared, 0, 0, &fitted, &made),
                     TESS_ERR_INPUT);
    if (last > 0) {
        assert_int_equal(tess_session_predict_file(both.shared, 0, 0, &own, &made),
                         TESS_ERR_USAGE);
        assert_non_null(strstr(tess_last_error(), "different arguments"));
    }
    model_name(1, "Q", name);
    snprintf(other, sizeof other, "%s.away", name);
    tess_comm_barrier(world);
    if (world_rank() == 0) assert_int_equal(rename(name, other), 0);
    tess_comm_barrier(world);
    assert_int_equal(tess_session_image_file(both.shared, 0, 0, &set, image, NULL),
                     TESS_ERR_INPUT);
    assert_non_null(strstr(tess_last_error(), name));
    assert_non_null(strstr(tess_last_error(), "is missing"));
    assert_int_equal(tess_session_read_model(both.shared, 0, 0, &set, image),
                     TESS_ERR_INPUT);
    assert_int_equal(tess_session_predict_file(both.shared, 0, 0, &set, &made),
                     TESS_ERR_INPUT);
    assert_null(made);
    tess_comm_barrier(world);
    if (world_rank() == 0) assert_int_equal(rename(other, name), 0);
    tess_comm_barrier(world);
    compare_files(&both, 0, 0, -1, MPI_COMM_WORLD);
    close_pair(&both);
}

/* The session's pixels and polarisations. */
static void test_models_of_other_images(void **state)
{
    (void)state;
    static const char *const larger[] = {"size", "48", "scale", "20asec", NULL};
    static const char *const linear[] = {"size",   "36,30", "scale", "20asec",
                                         "stokes", "XX",    NULL};
    const tess_model_file set = {models, 0};
    tess_session *session = open_shared(MPI_COMM_WORLD, larger);
    double *model = array_of(tess_session_info_of(session));
    assert_int_equal(tess_session_read_model(session, 0, 0, &set, model),
                     TESS_ERR_INPUT);
    assert_non_null(strstr(tess_last_error(), "36 x 30 pixels"));
    tess_session_destroy(session);
    free(model);
    session = open_shared(MPI_COMM_WORLD, linear);
    model = array_of(tess_session_info_of(session));
    assert_int_equal(tess_session_read_model(session, 0, 0, &set, model),
                     TESS_ERR_INPUT);
    assert_non_null(strstr(tess_last_error(), "no plane of XX"));
    tess_session_destroy(session);
    free(model);
}

/* Opening fails if options differ between ranks, or if the observation is not there.
 * The session can be opened afterwards. */
static void test_opening_that_fails(void **state)
{
    (void)state;
    static const char *const options[] = {"size", "20", "scale", "20asec", NULL};
    const int last = tess_comm_size(world) - 1;
    tess_session *session = shared_session(MPI_COMM_WORLD, options);
    double image[20 * 20];
    assert_int_equal(tess_session_image(session, 0, 0, NULL, image, NULL),
                     TESS_ERR_USAGE);
    if (last > 0) {
        if (world_rank() == last) tess_session_set(session, "size", "22");
        assert_fails_on_last(tess_session_open(session), "other options than rank 0");
    }
    assert_int_equal(tess_session_set(session, "size", "none"), TESS_OK);
    assert_int_equal(tess_session_open(session), TESS_ERR_USAGE);
    assert_int_equal(tess_session_set(session, "size", "20"), TESS_OK);
    assert_int_equal(tess_session_open(session), TESS_OK);
    assert_int_equal(tess_session_image(session, 0, 0, NULL, image, NULL), TESS_OK);
    tess_session_destroy(session);
    session = shared_session(MPI_COMM_WORLD, options);
    assert_int_equal(tess_session_set(session, "obs", "not-there.uvfits"), TESS_OK);
    const tess_status status = tess_session_open(session);
    assert_int_not_equal(status, TESS_OK);
    assert_true(world_rank() > 0 || status == TESS_ERR_IO);
    tess_session_destroy(session);
    assert_int_equal(tess_session_create_mpi(MPI_Comm_c2f(MPI_COMM_NULL), &session),
                     TESS_ERR_USAGE);
}

/* ---- an observation ---- */

/* Linear feeds and eight channels; a source in the centre and a polarised one. */
static void simulate(const char *ra, const char *duration, const char *path)
{
    const char *const options[][2] = {
        {"layout", "vla-d"}, {"sky", sky},           {"ra", ra},
        {"dec", "30deg"},    {"duration", duration}, {"integration", "30s"},
        {"freq", "1.4GHz"},  {"chan-width", "2e7"},  {"channels", "6"},
        {"noise", "0.2"},    {"threads", "1"},       {"pol", "XX,YY,XY,YX"},
        {"antennas", "9"},   {"overwrite", NULL},    {"output", path}};
    write_text(sky, "name,l,m,flux_jy,q,u,v,spectral_index\n"
                    "A,0,0,2,0,0,0,-0.7\nB,1e-3,-6e-4,1,0.3,-0.2,0.1,0\n");
    simulate_with(options, sizeof options / sizeof *options);
}

static void test_simulate(void **state)
{
    (void)state;
    long process = getpid(); /* tests that run at the same time have other files */
    assert_int_equal(tess_comm_bcast(world, &process, sizeof process, 0), TESS_OK);
    snprintf(sky, sizeof sky, "session-ranks-%ld.csv", process);
    snprintf(short_one, sizeof short_one, "session-ranks-%ld.uvfits", process);
    snprintf(long_one, sizeof long_one, "session-long-%ld.uvfits", process);
    snprintf(beside, sizeof beside, "session-beside-%ld.uvfits", process);
    snprintf(models, sizeof models, "session-models-%ld", process);
    snprintf(regions, sizeof regions, "session-regions-%ld.reg", process);
    if (world_rank() == 0) {
        write_models();
        simulate("60deg", "2min", short_one);
        simulate("60.2deg", "2min", beside);
        simulate("60deg", "2h", long_one);
    }
    assert_int_equal(tess_comm_barrier(world), TESS_OK);
}

static void remove_files(void)
{
    tess_comm_barrier(world);
    if (world_rank() > 0) return;
    unlink(sky);
    unlink(regions);
    unlink(short_one);
    unlink(long_one);
    unlink(beside);
    remove_models();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_simulate), /* what all others read */
        cmocka_unit_test(test_equals_one_process),
        cmocka_unit_test(test_facets),
        cmocka_unit_test(test_mosaic),
        cmocka_unit_test(test_files_are_arrays),
        cmocka_unit_test(test_channels_of_files),
        cmocka_unit_test(test_files_that_are_refused),
        cmocka_unit_test(test_models_of_other_images),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_parts_of_ranks),
        cmocka_unit_test(test_spooled),
        cmocka_unit_test(test_too_little_memory),
        cmocka_unit_test(test_calls_that_fail_on_one_rank),
        cmocka_unit_test(test_opening_that_fails),
    };
    int provided;
    observation = short_one;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    if (tess_comm_of(MPI_Comm_c2f(MPI_COMM_WORLD), &world) != TESS_OK) return 1;
    TEST_ON_RANKS(world, tests);
    remove_files();
    tess_comm_finish(world);
    return 0;
}
