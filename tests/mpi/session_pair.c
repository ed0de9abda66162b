/* Sessions of ranks beside the same ones of a process alone: all that both give is
 * compared. */
#define _GNU_SOURCE
#include "session_pair.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"

/* Relative rounding of sums in single precision whose order differs; see mpi.visset. */
static const double ROUNDING = 1e-5;

const char *observation;

/* ---- sessions ---- */

static bool is_forced(const char *name)
{
    return strncmp(name, "force-", 6) == 0;
}

/* Options that limit memory and give a disk in its place. They do not change images. */
static bool is_of_memory(const char *name)
{
    return strcmp(name, "memory") == 0 || strcmp(name, "scratch") == 0;
}

static bool is_exact(const char *const *options)
{
    for (int k = 0; options[k]; k += 2)
        if (is_forced(options[k])) return false;
    return true;
}

/* Adds a choice, "force-KEY" and its value, to TESS_FORCE. */
void force(const char *name, const char *value)
{
    char text[256];
    const char *before = getenv("TESS_FORCE");
    snprintf(text, sizeof text, "%s%s%s=%s", before ? before : "", before ? "," : "",
             name + strlen("force-"), value);
    assert_int_equal(setenv("TESS_FORCE", text, 1), 0);
}

/* Sets the options beside the observation: pairs of strings up to NULL. Sessions are
 * reproducible unless there are forced choices. Forced choices and limits of memory are
 * for the ranks, and not for the process alone. Sessions read the forced choices when
 * they are opened. */
static void set_options(tess_session *session, bool alone, const char *const *options)
{
    assert_int_equal(unsetenv("TESS_FORCE"), 0);
    assert_int_equal(tess_session_set(session, "obs", observation), TESS_OK);
    assert_int_equal(tess_session_set(session, "threads", "1"), TESS_OK);
    if (is_exact(options))
        assert_int_equal(tess_session_set(session, "reproducible", NULL), TESS_OK);
    for (int k = 0; options[k]; k += 2)
        if (alone && (is_forced(options[k]) || is_of_memory(options[k])))
            continue;
        else if (is_forced(options[k]))
            force(options[k], options[k + 1]);
        else
            assert_int_equal(tess_session_set(session, options[k], options[k + 1]),
                             TESS_OK);
}

tess_session *shared_session(MPI_Comm comm, const char *const *options)
{
    tess_session *session = NULL;
    MPI_Comm mine;
    MPI_Comm_dup(comm, &mine);
    assert_int_equal(tess_session_create_mpi(MPI_Comm_c2f(mine), &session), TESS_OK);
    MPI_Comm_free(&mine); /* the session has one of its own */
    set_options(session, false, options);
    return session;
}

tess_session *open_shared(MPI_Comm comm, const char *const *options)
{
    tess_session *session = shared_session(comm, options);
    if (tess_session_open(session) != TESS_OK) fail_msg("%s", tess_last_error());
    return session;
}

tess_session *open_alone(const char *const *options)
{
    tess_session *session = NULL;
    assert_int_equal(tess_session_create(&session), TESS_OK);
    set_options(session, true, options);
    assert_int_equal(tess_session_open(session), TESS_OK);
    return session;
}

/* ---- arrays ---- */

/* The number of values of an array [num_pol][rows][nx]. */
int64_t count_of(const tess_session_info *info)
{
    return info->num_pol * info->num_rows * info->nx;
}

double *array_of(const tess_session_info *info)
{
    const int64_t count = count_of(info);
    double *array = count > 0 ? calloc((size_t)count, sizeof *array) : NULL;
    assert_true(array || count == 0);
    return array;
}

/* Points in an image of all rows, the same on all ranks. */
static void fill_model(const tess_session_info *info, uint64_t seed, double *model)
{
    draw from = {seed};
    for (int k = 0; k < POINTS; ++k) {
        const int64_t at = (int64_t)draw_uniform(&from, 0, (double)count_of(info));
        model[at] = draw_normal(&from);
    }
    model[count_of(info) - 1] = (double)NAN; /* counts as 0 */
}

/* This rank's rows of an array of all rows. */
static void take_rows(const tess_session_info *info, const double *all, double *part)
{
    const int64_t count = info->num_rows * info->nx;
    for (int p = 0; p < info->num_pol && count > 0; ++p)
        memcpy(part + p * count, all + (p * info->ny + info->row_first) * info->nx,
               (size_t)count * sizeof *part);
}

/* ---- ranks against one process ---- */

pair open_pair(MPI_Comm comm, const char *const *options)
{
    pair both = {.shared = open_shared(comm, options),
                 .alone = open_alone(options),
                 .exact = is_exact(options)};
    both.part = tess_session_info_of(both.shared);
    both.all = tess_session_info_of(both.alone);
    both.model_part = array_of(both.part);
    both.image_part = array_of(both.part);
    both.psf_part = array_of(both.part);
    both.expected = array_of(both.part);
    both.model_all = array_of(both.all);
    both.image_all = array_of(both.all);
    both.psf_all = array_of(both.all);
    return both;
}

void close_pair(pair *both)
{
    tess_session_destroy(both->shared);
    tess_session_destroy(both->alone);
    free(both->model_part);
    free(both->image_part);
    free(both->psf_part);
    free(both->expected);
    free(both->model_all);
    free(both->image_all);
    free(both->psf_all);
}

/* Rows of all ranks are those of the image, each once. */
void check_info(const pair *both, MPI_Comm comm)
{
    const tess_session_info *part = both->part, *all = both->all;
    int64_t rows = part->num_rows;
    assert_true(all->row_first == 0 && all->num_rows == all->ny);
    assert_true(part->nx == all->nx && part->ny == all->ny);
    assert_true(part->num_channels == all->num_channels);
    assert_true(part->num_intervals == all->num_intervals);
    assert_true(part->num_pol == all->num_pol && part->is_double == all->is_double);
    assert_true(part->row_first >= 0 && part->row_first + part->num_rows <= all->ny);
    MPI_Allreduce(MPI_IN_PLACE, &rows, 1, MPI_INT64_T, MPI_SUM, comm);
    assert_true(rows == all->ny);
}

void assert_rows_equal(const pair *both, const double *part, const double *all)
{
    const size_t bytes = (size_t)count_of(both->part) * sizeof *part;
    take_rows(both->part, all, both->expected);
    if (both->exact && bytes > 0) assert_memory_equal(part, both->expected, bytes);
    double error = 0, size = 0;
    for (int64_t k = 0; k < count_of(both->part); ++k)
        error += pow(part[k] - both->expected[k], 2);
    for (int64_t k = 0; k < count_of(both->all); ++k)
        size += pow(all[k], 2);
    assert_true(sqrt(error) <= ROUNDING * sqrt(size));
}

void compare_weights(const pair *both, int64_t interval, int64_t channel)
{
    for (int p = 0; p < both->all->num_pol; ++p) {
        tess_session_weights shared, alone;
        assert_int_equal(
            tess_session_weights_of(both->shared, interval, channel, p, &shared),
            TESS_OK);
        assert_int_equal(
            tess_session_weights_of(both->alone, interval, channel, p, &alone),
            TESS_OK);
        assert_true(alone.num_vis > 0 && shared.num_vis == alone.num_vis);
        assert_true(both->exact ? shared.sum == alone.sum
                                : fabs(shared.sum / alone.sum - 1) < ROUNDING);
        /* a plain sum of frequencies: rounding of as many terms */
        assert_true(fabs(shared.freq_hz / alone.freq_hz - 1) < 1e-12);
        assert_string_equal(tess_session_polarisation(both->shared, p),
                            tess_session_polarisation(both->alone, p));
    }
}

/* PSFs of 1 at the centre, and images that are not blank. */
static void check_planes(const pair *both)
{
    const tess_session_info *all = both->all;
    const int64_t count = all->nx * all->ny,
                  centre = all->ny / 2 * all->nx + all->nx / 2;
    for (int p = 0; p < all->num_pol; ++p) {
        double power = 0;
        for (int64_t k = 0; k < count; ++k)
            power += pow(both->image_all[p * count + k], 2);
        assert_true(power > 0);
        assert_true(fabs(both->psf_all[p * count + centre] - 1) < 1e-3);
    }
}

/* The dirty image and the PSF, and residuals of two models. */
void compare_images(pair *both, int64_t interval, int64_t channel)
{
    assert_int_equal(tess_session_image(both->shared, interval, channel, NULL,
                                        both->image_part, both->psf_part),
                     TESS_OK);
    assert_int_equal(tess_session_image(both->alone, interval, channel, NULL,
                                        both->image_all, both->psf_all),
                     TESS_OK);
    assert_rows_equal(both, both->image_part, both->image_all);
    assert_rows_equal(both, both->psf_part, both->psf_all);
    check_planes(both);
    for (uint64_t seed = 11; seed < 13; ++seed) {
        double *const dirty = both->psf_all; /* has been compared */
        memcpy(dirty, both->image_all, (size_t)count_of(both->all) * sizeof *dirty);
        memset(both->model_all, 0, (size_t)count_of(both->all) * sizeof *dirty);
        fill_model(both->all, seed, both->model_all);
        take_rows(both->part, both->model_all, both->model_part);
        assert_int_equal(tess_session_image(both->shared, interval, channel,
                                            both->model_part, both->image_part, NULL),
                         TESS_OK);
        assert_int_equal(tess_session_image(both->alone, interval, channel,
                                            both->model_all, both->image_all, NULL),
                         TESS_OK);
        assert_memory_not_equal(dirty, both->image_all,
                                (size_t)count_of(both->all) * sizeof *dirty);
        assert_rows_equal(both, both->image_part, both->image_all);
    }
}

/* The number of rows of all ranks before this one. `*total` gets that of all ranks. */
static int64_t rows_before(MPI_Comm comm, int64_t own, int64_t *total)
{
    int64_t before = 0;
    MPI_Scan(&own, &before, 1, MPI_INT64_T, MPI_SUM, comm);
    MPI_Allreduce(&own, total, 1, MPI_INT64_T, MPI_SUM, comm);
    return before - own;
}

static double power_of(const float *value, int64_t count)
{
    double power = 0;
    for (int64_t k = 0; k < count; ++k)
        power += pow((double)value[k], 2);
    return power;
}

static void compare_vis(bool exact, const float *part, const float *all, int64_t count)
{
    double error = 0;
    if (exact) assert_memory_equal(part, all, (size_t)count * sizeof *all);
    for (int64_t k = 0; k < count; ++k)
        error += pow((double)part[k] - (double)all[k], 2);
    assert_true(power_of(all, count) > 0);
    assert_true(sqrt(error) <= ROUNDING * sqrt(power_of(all, count)));
}

void compare_segments(bool exact, const tess_predicted *part, const tess_predicted *all,
                      MPI_Comm comm)
{
    int64_t total;
    const int64_t before = rows_before(comm, part->num_rows, &total);
    const int64_t values = all->num_chan * all->num_corr * 2;
    const size_t rows = (size_t)part->num_rows;
    assert_true(total == all->num_rows && part->num_chan == all->num_chan);
    assert_int_equal(part->num_corr, all->num_corr);
    for (int c = 0; c < all->num_corr; ++c)
        assert_string_equal(part->corr[c], all->corr[c]);
    assert_memory_equal(part->freq_hz, all->freq_hz,
                        (size_t)all->num_chan * sizeof *all->freq_hz);
    if (rows == 0) return;
    assert_memory_equal(part->uvw_m, all->uvw_m + 3 * before,
                        3 * rows * sizeof *all->uvw_m);
    assert_memory_equal(part->time_mjd_s, all->time_mjd_s + before,
                        rows * sizeof *all->time_mjd_s);
    assert_memory_equal(part->antenna1, all->antenna1 + before,
                        rows * sizeof *all->antenna1);
    assert_memory_equal(part->antenna2, all->antenna2 + before,
                        rows * sizeof *all->antenna2);
    compare_vis(exact, part->vis, all->vis + before * values, part->num_rows * values);
}

/* The visibilities of a rank's rows of the observation are those of one process. */
void compare_predictions(pair *both, int64_t interval, int64_t channel, MPI_Comm comm)
{
    tess_predictions *shared = NULL, *alone = NULL;
    memset(both->model_all, 0, (size_t)count_of(both->all) * sizeof(double));
    fill_model(both->all, 17 + (uint64_t)channel, both->model_all);
    take_rows(both->part, both->model_all, both->model_part);
    assert_int_equal(tess_session_predict(both->shared, interval, channel,
                                          both->model_part, &shared),
                     TESS_OK);
    assert_int_equal(
        tess_session_predict(both->alone, interval, channel, both->model_all, &alone),
        TESS_OK);
    assert_true(tess_predictions_count(alone) > 0);
    assert_int_equal(tess_predictions_count(shared), tess_predictions_count(alone));
    for (int64_t k = 0; k < tess_predictions_count(alone); ++k)
        compare_segments(both->exact, tess_predictions_get(shared, k),
                         tess_predictions_get(alone, k), comm);
    tess_predictions_destroy(shared);
    tess_predictions_destroy(alone);
}
