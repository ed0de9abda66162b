/* Puts a model, or a list of sources, onto a residual image with a beam; draws lists of
 * sources. Each rank has a share of the rows. */
#define _GNU_SOURCE
#include "tess_restore.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "drawn_list.h"
#include "pixel_places.h"
#include "source.h"
#include "tess_clean.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out.h"
#include "tess_out_file.h"
#include "tess_words.h"

/* An image that is made, and this rank's rows of it. */
typedef struct canvas {
    tess_comm *comm;
    const tess_restore_job *job;
    tess_fits_model pixels; /* of the image whose pixels it has */
    tess_image_meta meta;
    bool is_double; /* in the file */
    int64_t row_first, num_rows;
    double *rows; /* [num_rows][nx] */
} canvas;

/* ---- rows ---- */

/* Local. */
static tess_status divide_rows(canvas *to)
{
    tess_status status = TESS_OK;
    const int64_t rank = tess_comm_rank(to->comm), size = tess_comm_size(to->comm);
    to->row_first = to->meta.ny * rank / size;
    to->num_rows = to->meta.ny * (rank + 1) / size - to->row_first;
    to->rows = tess_alloc_zero(to->num_rows * to->meta.nx, sizeof *to->rows);
    if (!to->rows)
        TESS_FAIL(TESS_ERR_ALLOC, "%lld x %lld pixels of an image",
                  (long long)to->meta.nx, (long long)to->num_rows);
cleanup:
    return status;
}

static tess_clean_images images_of(const canvas *to)
{
    return (tess_clean_images){.nx = to->meta.nx,
                               .ny = to->meta.ny,
                               .row_first = to->row_first,
                               .num_rows = to->num_rows,
                               .num_images = 1,
                               .rows_are_double = true};
}

static tess_clean_beam beam_of(const canvas *to)
{
    const tess_fits_beam *beam = &to->meta.beam;
    return (tess_clean_beam){.major_px = beam->major_rad / to->meta.scale_rad,
                             .minor_px = beam->minor_rad / to->meta.scale_rad,
                             .angle_rad = beam->pa_rad};
}

/* Write the rows to a file that waits for its name; those in single precision are made
 * in place. Collective. */
static tess_status hold_canvas(canvas *to, const char *path, tess_held_files *held)
{
    const int64_t count = to->num_rows * to->meta.nx;
    float *single = (float *)to->rows;
    for (int64_t k = 0; !to->is_double && k < count; ++k) {
        const float value = (float)to->rows[k];
        memcpy(&single[k], &value, sizeof value);
    }
    to->meta.history = to->job->command_line;
    return tess_fits_hold(to->comm, path, held, &to->meta, to->is_double, to->row_first,
                          to->num_rows, to->rows);
}

static tess_held_files held_of(const tess_restore_job *job)
{
    return (tess_held_files){
        .overwrite = job->overwrite, .threads = job->threads, .last = true};
}

/* ---- inputs ---- */

/* Collective. */
static tess_status check_output(tess_comm *comm, const tess_restore_job *job,
                                const char *path, const char *const *inputs, int num)
{
    tess_status status = TESS_OK;
    if (tess_comm_rank(comm) == 0) {
        TESS_TRY(tess_out_check_target(path, job->overwrite));
        for (int k = 0; k < num; ++k)
            TESS_TRY(tess_out_check_other(path, inputs[k]));
    }
cleanup:
    return tess_comm_agree(comm, status);
}

static tess_status check_one_plane(const tess_fits_model *image)
{
    tess_status status = TESS_OK;
    if (image->num_freq > 1 || image->num_stokes > 1)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: it has %d planes; give an image of one channel and Stokes "
                  "parameter",
                  image->path, image->num_freq * image->num_stokes);
cleanup:
    return status;
}

/* Local. */
static tess_status open_residual(const tess_restore_opts *opts, canvas *to)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_fits_meta_read(opts->residual, &to->pixels, &to->meta));
    TESS_TRY(check_one_plane(&to->pixels));
    if (opts->beam.major_rad > 0) to->meta.beam = opts->beam;
    if (!(to->meta.beam.major_rad > 0))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: its header has no beam (BMAJ, BMIN, BPA); give one with "
                  "--beam-shape",
                  opts->residual);
    to->is_double = to->pixels.bitpix == -64;
    TESS_TRY(divide_rows(to));
    TESS_TRY(tess_fits_read(&to->pixels, 0, 0, to->row_first, to->num_rows, to->rows));
cleanup:
    return status;
}

/* Rows of a model image, which are freed by the caller. Local. */
static tess_status read_model(const char *path, const canvas *to, double **rows)
{
    tess_status status = TESS_OK;
    tess_fits_model model;
    TESS_TRY(tess_fits_open(path, &model));
    TESS_TRY(check_one_plane(&model));
    TESS_TRY(pixel_places_check(&model, &to->pixels, "the residual"));
    *rows = tess_alloc(to->num_rows * to->meta.nx, sizeof **rows);
    if (!*rows) TESS_FAIL(TESS_ERR_ALLOC, "rows of a model");
    TESS_TRY(tess_fits_read(&model, 0, 0, to->row_first, to->num_rows, *rows));
cleanup:
    return status;
}

/* ---- restoring ---- */

/* Collective. */
static tess_status add_model(canvas *to, const char *path)
{
    tess_status status = TESS_OK;
    const tess_clean_images images = images_of(to);
    const tess_clean_beam beam = beam_of(to);
    const tess_clean_opts opts = {.is_double = to->is_double,
                                  .repeatable = to->job->repeatable,
                                  .threads = to->job->threads};
    double *model = NULL;
    TESS_TRY(tess_comm_agree(to->comm, read_model(path, to, &model)));
    TESS_TRY(
        tess_clean_restore(to->comm, &images, &opts, &beam, model, to->rows, to->rows));
cleanup:
    tess_free(model);
    return status;
}

/* Collective. */
static tess_status add_list(canvas *to, const char *path)
{
    tess_status status = TESS_OK;
    const tess_clean_images images = images_of(to);
    const tess_clean_beam beam = beam_of(to);
    drawn_list drawn = {0};
    TESS_TRY(drawn_list_read(to->comm, path, &to->meta, &drawn));
    TESS_TRY(tess_comm_agree(to->comm, drawn_list_take_flux(&drawn, &to->meta, 0, 0)));
    tess_draw_restored(&images, &beam, drawn.source, drawn.num, to->job->threads,
                       to->rows);
cleanup:
    drawn_list_free(&drawn);
    return status;
}

/* A file that is named as lists are is one, so that its mistakes are told. Collective.
 */
static tess_status is_list(tess_comm *comm, const char *path, bool *is)
{
    const size_t length = strlen(path);
    *is = length > 4 && strcasecmp(path + length - 4, ".txt") == 0;
    return *is ? TESS_OK : tess_source_list_is(comm, path, is);
}

tess_status tess_restore(tess_comm *comm, const tess_restore_opts *opts)
{
    tess_status status = TESS_OK;
    const char *const inputs[] = {opts->residual, opts->model};
    canvas to = {.comm = comm, .job = &opts->job};
    tess_held_files held = held_of(&opts->job);
    bool list = false;
    TESS_TRY(check_output(comm, &opts->job, opts->job.output, inputs, 2));
    TESS_TRY(is_list(comm, opts->model, &list));
    TESS_TRY(tess_comm_agree(comm, open_residual(opts, &to)));
    TESS_TRY((list ? add_list : add_model)(&to, opts->model));
    to.meta.caption = "restored image";
    snprintf(to.meta.unit, sizeof to.meta.unit, "Jy/beam");
    TESS_TRY(hold_canvas(&to, opts->job.output, &held));
    TESS_TRY(tess_held_publish(comm, &held));
    tess_words_tell("files", "%s", opts->job.output);
cleanup:
    tess_held_free(&held);
    tess_free(to.rows);
    return status;
}

/* ---- drawing ---- */

/* Centre, and band where none is given, of an observation. Collective. */
static tess_status take_observation(tess_comm *comm, tess_draw_opts *opts)
{
    tess_status status = TESS_OK;
    const tess_selection selection = {
        .field = opts->field, .positions_only = true, .uvw_only = true};
    tess_source *source = NULL;
    double low = INFINITY, high = 0;
    if (!opts->obs) return TESS_OK;
    TESS_TRY(tess_source_open(comm, &opts->obs, 1, &selection, &source));
    const tess_source_info *info = tess_source_info_of(source);
    opts->ra_rad = info->ra_rad;
    opts->dec_rad = info->dec_rad;
    for (int64_t k = 0; k < info->num_chan; ++k) {
        low = fmin(low, info->freq_hz[k] - 0.5 * info->width_hz[k]);
        high = fmax(high, info->freq_hz[k] + 0.5 * info->width_hz[k]);
    }
    if (opts->freq_hz > 0) goto cleanup;
    opts->freq_hz = 0.5 * (low + high);
    if (!(opts->bandwidth_hz > 0)) opts->bandwidth_hz = high - low;
cleanup:
    tess_source_close(source);
    return status;
}

/* Say which of several planes an image is drawn like. */
static void tell_plane(const canvas *to, bool has_stokes)
{
    const tess_fits_model *image = &to->pixels;
    if (tess_comm_rank(to->comm) != 0) return;
    if (image->num_freq > 1)
        tess_log_warn(
            "%s: it has %d channels; the list is drawn at the first, %.9g MHz",
            image->path, image->num_freq, 1e-6 * to->meta.freq_hz);
    if (image->num_stokes > 1 && !has_stokes)
        tess_log_warn("%s: it has %d Stokes parameters; the first is drawn (--stokes)",
                      image->path, image->num_stokes);
}

/* Local. */
static tess_status open_canvas(const tess_draw_opts *opts, canvas *to)
{
    tess_status status = TESS_OK;
    to->meta = (tess_image_meta){.nx = opts->nx,
                                 .ny = opts->ny,
                                 .ra_rad = opts->ra_rad,
                                 .dec_rad = opts->dec_rad,
                                 .scale_rad = opts->scale_rad,
                                 .freq_hz = opts->freq_hz,
                                 .bandwidth_hz = opts->bandwidth_hz,
                                 .rest_hz = opts->freq_hz,
                                 .stokes = opts->stokes};
    if (opts->like) {
        TESS_TRY(tess_fits_meta_read(opts->like, &to->pixels, &to->meta));
        to->is_double = to->pixels.bitpix == -64;
        to->meta.gridded = (tess_fits_gridded){0};
        if (opts->stokes > 0) to->meta.stokes = opts->stokes;
        if (opts->bandwidth_hz > 0) to->meta.bandwidth_hz = opts->bandwidth_hz;
        tell_plane(to, opts->stokes > 0);
    }
    to->meta.beam = opts->beam;
    to->meta.caption = "model";
    snprintf(to->meta.unit, sizeof to->meta.unit,
             opts->beam.major_rad > 0 ? "Jy/beam" : "Jy/pixel");
    TESS_TRY(divide_rows(to));
cleanup:
    return status;
}

/* OUT-term-0.fits of OUT.fits or OUT. From malloc(). */
static char *name_of_term(const char *output, int term)
{
    char *path = NULL;
    const int length = tess_fits_is_name(output) ? (int)(strrchr(output, '.') - output)
                                                 : (int)strlen(output);
    return asprintf(&path, "%.*s-term-%d.fits", length, output, term) < 0 ? NULL : path;
}

static char *name_of(const tess_draw_opts *opts, int k)
{
    return opts->num_terms > 0 ? name_of_term(opts->job.output, k)
                               : strdup(opts->job.output);
}

/* Draw and write the image of one term. Collective. */
static tess_status draw_term(canvas *to, const tess_draw_opts *opts, drawn_list *drawn,
                             int k, const char *path, tess_held_files *held)
{
    tess_status status = TESS_OK;
    const tess_clean_images images = images_of(to);
    const tess_clean_beam beam = beam_of(to);
    const int threads = to->job->threads;
    TESS_TRY(tess_comm_agree(
        to->comm, drawn_list_take_flux(drawn, &to->meta, k, opts->num_terms)));
    memset(to->rows, 0, (size_t)(to->num_rows * to->meta.nx) * sizeof *to->rows);
    if (beam.major_px > 0)
        tess_draw_restored(&images, &beam, drawn->source, drawn->num, threads,
                           to->rows);
    else
        tess_draw_model(&images, drawn->source, drawn->num, threads, to->rows);
    TESS_TRY(hold_canvas(to, path, held));
cleanup:
    return status;
}

tess_status tess_draw(tess_comm *comm, const tess_draw_opts *asked)
{
    tess_status status = TESS_OK;
    tess_draw_opts own = *asked, *opts = &own;
    const char *const inputs[] = {opts->list, opts->like};
    const int num_images = opts->num_terms > 0 ? opts->num_terms : 1;
    canvas to = {.comm = comm, .job = &opts->job};
    tess_held_files held = held_of(&opts->job);
    drawn_list drawn = {0};
    char *path[TESS_SOURCE_LIST_TERMS] = {NULL};
    for (int k = 0; k < num_images; ++k) {
        path[k] = name_of(opts, k);
        TESS_TRY(tess_comm_agree(comm, path[k] ? TESS_OK : TESS_ERR_ALLOC));
        TESS_TRY(check_output(comm, &opts->job, path[k], inputs, 2));
    }
    TESS_TRY(take_observation(comm, opts));
    TESS_TRY(tess_comm_agree(comm, open_canvas(opts, &to)));
    TESS_TRY(drawn_list_read(comm, opts->list, &to.meta, &drawn));
    for (int k = 0; k < num_images; ++k)
        TESS_TRY(draw_term(&to, opts, &drawn, k, path[k], &held));
    TESS_TRY(tess_held_publish(comm, &held));
    tess_words_tell("sources", "%lld, in %s", (long long)drawn.num, path[0]);
cleanup:
    for (int k = 0; k < num_images; ++k)
        free(path[k]); /* from asprintf */
    tess_held_free(&held);
    drawn_list_free(&drawn);
    tess_free(to.rows);
    return status;
}
