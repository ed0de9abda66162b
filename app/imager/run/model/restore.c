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
#include "model_cube.h"
#include "pixel_places.h"
#include "source.h"
#include "tess_clean.h"
#include "tess_common_beam.h"
#include "tess_fits_cube.h"
#include "tess_held_files.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"
#include "tess_words.h"

/* An image that is made, and this rank's rows of it. */
typedef struct canvas {
    tess_comm *comm;
    const tess_restore_job *job;
    tess_fits_model pixels; /* of the image whose pixels it has */
    tess_image_meta meta;
    tess_image_meta *plane; /* [num_planes] of the residual; `meta` is one of these */
    int num_planes;
    tess_fits_beam common; /* of all planes; zeros: each has its own */
    bool is_double;        /* in the file */
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

static tess_rows rows_of(const canvas *to, const double *value)
{
    const tess_rows like = tess_rows_of(to->meta.nx, to->meta.ny, to->row_first,
                                        to->num_rows, TESS_PIXEL_DOUBLE);
    return tess_rows_borrow(&like, value);
}

static tess_clean_images images_of(const canvas *to)
{
    return (tess_clean_images){.nx = to->meta.nx,
                               .ny = to->meta.ny,
                               .row_first = to->row_first,
                               .num_rows = to->num_rows,
                               .num_images = 1};
}

static tess_clean_beam beam_of(const canvas *to)
{
    const tess_fits_beam *beam = &to->meta.beam;
    return (tess_clean_beam){.major_px = beam->major_rad / to->meta.scale_rad,
                             .minor_px = beam->minor_rad / to->meta.scale_rad,
                             .angle_rad = beam->pa_rad};
}

/* Rows in single precision take the place of those in double precision. */
static void round_rows(canvas *to)
{
    const int64_t count = to->num_rows * to->meta.nx;
    float *single = (float *)to->rows;
    for (int64_t k = 0; !to->is_double && k < count; ++k) {
        const float value = (float)to->rows[k];
        memcpy(&single[k], &value, sizeof value);
    }
}

/* Whether a plane of a cube was made of nothing. */
static bool is_empty(const canvas *to, int k)
{
    const tess_image_meta *plane = &to->plane[k];
    const double sum = plane->gridded.sum_weights;
    return to->num_planes > 1 && !isnan(sum) && !(sum > 0);
}

/* Write the rows to a file that waits for its name. Collective. */
static tess_status hold_canvas(canvas *to, const char *path, tess_held_files *held)
{
    round_rows(to);
    to->meta.history = to->job->command_line;
    to->meta.gridded.wsclean.typed = to->job->typed;
    const tess_fits_rows rows = {.row_first = to->row_first,
                                 .num_rows = to->num_rows,
                                 .is_double = to->is_double,
                                 .pixel = to->rows};
    return tess_fits_hold(to->comm, path, held, &to->meta, &rows);
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

/* The beam of each plane: that of the option, or of the header or the table. A plane
 * without data needs none. */
static tess_status take_beams(const tess_restore_opts *opts, canvas *to)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < to->num_planes; ++k) {
        tess_image_meta *plane = &to->plane[k];
        const bool has_none = !(plane->beam.major_rad > 0);
        if (is_empty(to, k)) continue;
        if (opts->beam.major_rad > 0)
            plane->beam = opts->beam;
        else if (has_none && to->num_planes == 1)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: its header has no beam (BMAJ, BMIN, BPA); give one with "
                      "--beam-shape",
                      opts->residual);
        else if (has_none)
            TESS_FAIL(
                TESS_ERR_INPUT,
                "%s: plane %d has no beam (table BEAMS, or BMAJ, BMIN, BPA); give "
                "one with --beam-shape",
                opts->residual, k + 1);
    }
cleanup:
    return status;
}

/* Finds the beam of least area that contains those of all planes. TESS_ERR_ALLOC.
 * Local. */
static tess_status join_beams(canvas *to)
{
    tess_status status = TESS_OK;
    tess_clean_beam common; /* in radians, in place of pixels */
    tess_clean_beam *beam = tess_alloc_zero(to->num_planes, sizeof *beam);
    if (!beam) TESS_FAIL(TESS_ERR_ALLOC, "beams of %d planes", to->num_planes);
    for (int k = 0; k < to->num_planes; ++k) {
        const tess_fits_beam *own = &to->plane[k].beam;
        if (!is_empty(to, k))
            beam[k] = (tess_clean_beam){own->major_rad, own->minor_rad, own->pa_rad};
    }
    tess_common_beam(beam, to->num_planes, &common);
    to->common = (tess_fits_beam){common.major_px, common.minor_px, common.angle_rad};
cleanup:
    tess_free(beam);
    return status;
}

/* Local. */
static tess_status open_residual(const tess_restore_opts *opts, bool for_list,
                                 canvas *to)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_fits_meta_read(opts->residual, &to->pixels, &to->meta));
    if (for_list) TESS_TRY(tess_fits_check_j2000(&to->pixels)); /* as the list is */
    to->num_planes = to->pixels.num_freq * to->pixels.num_stokes;
    to->plane = tess_alloc(to->num_planes, sizeof *to->plane);
    if (!to->plane) TESS_FAIL(TESS_ERR_ALLOC, "%d planes", to->num_planes);
    to->plane[0] = to->meta;
    if (to->num_planes > 1)
        TESS_TRY(tess_fits_planes(&to->pixels, &to->meta, to->plane));
    TESS_TRY(take_beams(opts, to));
    if (opts->common) TESS_TRY(join_beams(to));
    to->is_double = to->pixels.bitpix == -64;
    TESS_TRY(divide_rows(to));
cleanup:
    return status;
}

/* What is put onto a residual: an image of the same planes, or a list. */
typedef struct restored_model {
    bool is_list;
    drawn_list drawn;
    tess_fits_model image;
} restored_model;

/* Channels of a model may lie so far from the residual's, in frequency. */
static const double SAME_FREQUENCY = 1e-6;

/* Planes of several have to be of the same channels and Stokes parameters. Local. */
static tess_status check_planes(const canvas *to, const tess_fits_model *model)
{
    tess_status status = TESS_OK;
    const tess_fits_model *residual = &to->pixels;
    tess_image_meta header = {0}, *plane = NULL;
    if (model->num_freq != residual->num_freq ||
        model->num_stokes != residual->num_stokes)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: it has %d channels of %d Stokes parameters, and the residual %d "
                  "of %d",
                  model->path, model->num_freq, model->num_stokes, residual->num_freq,
                  residual->num_stokes);
    if (to->num_planes == 1) return TESS_OK;
    plane = tess_alloc(to->num_planes, sizeof *plane);
    if (!plane) TESS_FAIL(TESS_ERR_ALLOC, "%d planes", to->num_planes);
    TESS_TRY(tess_fits_planes(model, &header, plane));
    for (int k = 0; k < to->num_planes; ++k) {
        const double apart_hz = fabs(plane[k].freq_hz - to->plane[k].freq_hz);
        if (plane[k].stokes != to->plane[k].stokes ||
            !(apart_hz <= SAME_FREQUENCY * to->plane[k].freq_hz))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: plane %d is Stokes %s at %.6g Hz, and the residual's %s at "
                      "%.6g Hz",
                      model->path, k + 1, tess_corr_name(plane[k].stokes),
                      plane[k].freq_hz, tess_corr_name(to->plane[k].stokes),
                      to->plane[k].freq_hz);
    }
cleanup:
    tess_free(plane);
    return status;
}

/* Warns that the header of an image has another unit than its values are taken in: a
 * residual and a model may have been given in the wrong order. */
static void warn_of_unit(const canvas *to, const tess_fits_model *image,
                         const char *other, const char *taken)
{
    if (tess_comm_rank(to->comm) == 0 && strcasecmp(image->unit, other) == 0)
        tess_log_warn("%s: its unit is %s; its values are taken as %s", image->path,
                      image->unit, taken);
}

/* Local. */
static tess_status open_image(const char *path, const canvas *to, restored_model *model)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_fits_open(path, &model->image));
    warn_of_unit(to, &to->pixels, "Jy/pixel", "Jy/beam");
    warn_of_unit(to, &model->image, "Jy/beam", "Jy/pixel");
    TESS_TRY(pixel_places_check(&model->image, &to->pixels, "the residual"));
    TESS_TRY(check_planes(to, &model->image));
cleanup:
    return status;
}

/* ---- restoring ---- */

/* Collective. */
static tess_status add_image(canvas *to, const tess_fits_model *model, int k)
{
    tess_status status = TESS_OK;
    const tess_clean_beam beam = beam_of(to);
    const tess_clean_opts opts = {.is_double = to->is_double,
                                  .repeatable = to->job->repeatable,
                                  .threads = to->job->threads};
    double *rows = tess_alloc(to->num_rows * to->meta.nx, sizeof *rows);
    if (!rows)
        status = TESS_ERR_ALLOC;
    else
        status = model_pixels_read(model, k / model->num_freq, k % model->num_freq,
                                   to->row_first, to->num_rows, rows);
    TESS_TRY(tess_comm_agree(to->comm, status));
    const tess_rows pixels = rows_of(to, rows), image = rows_of(to, to->rows);
    TESS_TRY(tess_clean_restore(to->comm, &opts, &beam, &pixels, &image, &image));
cleanup:
    tess_free(rows);
    return status;
}

/* Collective. */
static tess_status add_list(canvas *to, drawn_list *drawn)
{
    tess_status status = TESS_OK;
    const tess_clean_images images = images_of(to);
    const tess_clean_beam beam = beam_of(to);
    TESS_TRY(tess_comm_agree(to->comm, drawn_list_take_flux(drawn, &to->meta, 0, 0)));
    tess_draw_restored(&images, &beam, drawn->source, drawn->num, to->job->threads,
                       to->rows);
cleanup:
    return status;
}

/* Convolves the residual of a plane to the beam of all, which becomes the plane's.
 * Collective. */
static tess_status widen(canvas *to)
{
    tess_status status = TESS_OK;
    const tess_rows image = rows_of(to, to->rows);
    const tess_clean_opts opts = {.is_double = to->is_double,
                                  .repeatable = to->job->repeatable,
                                  .threads = to->job->threads};
    const tess_clean_beam own = beam_of(to);
    if (!(to->common.major_rad > 0)) return TESS_OK;
    to->meta.beam = to->common;
    const tess_clean_beam common = beam_of(to);
    TESS_TRY(tess_common_beam_widen(to->comm, &opts, &own, &common, &image));
cleanup:
    return status;
}

/* Plane k becomes the canvas. Collective. */
static tess_status restore_plane(canvas *to, restored_model *model, int k)
{
    tess_status status = TESS_OK;
    const int num_freq = to->pixels.num_freq;
    to->meta = to->plane[k];
    status = tess_fits_read(&to->pixels, k / num_freq, k % num_freq, to->row_first,
                            to->num_rows, TESS_PIXEL_DOUBLE, to->rows);
    TESS_TRY(tess_comm_agree(to->comm, status));
    if (is_empty(to, k)) return TESS_OK;
    TESS_TRY(widen(to));
    TESS_TRY(model->is_list ? add_list(to, &model->drawn)
                            : add_image(to, &model->image, k));
cleanup:
    return status;
}

static void name_restored(tess_image_meta *meta)
{
    meta->caption = "restored image";
    snprintf(meta->unit, sizeof meta->unit, "Jy/beam");
}

/* Collective. */
static tess_status restore_image(canvas *to, restored_model *model,
                                 tess_held_files *held)
{
    tess_status status = TESS_OK;
    TESS_TRY(restore_plane(to, model, 0));
    name_restored(&to->meta);
    TESS_TRY(hold_canvas(to, to->job->output, held));
cleanup:
    return status;
}

/* Plane by plane, each with its beam. Collective. */
static tess_status restore_cube(canvas *to, restored_model *model,
                                tess_held_files *held)
{
    tess_status status = TESS_OK;
    const int num = to->pixels.num_freq;
    tess_cube_axes axes;
    tess_fits_cube *cube = NULL;
    double *freq_hz = tess_alloc(2 * num, sizeof *freq_hz);
    TESS_TRY(tess_comm_agree(to->comm, freq_hz ? TESS_OK : TESS_ERR_ALLOC));
    const bool falls = tess_fits_axes_of(&to->pixels, to->plane, freq_hz, &axes);
    tess_image_meta header = to->plane[falls ? num - 1 : 0];
    header.cube = &axes;
    header.beam = (tess_fits_beam){0};
    header.history = to->job->command_line;
    header.gridded.wsclean.typed = to->job->typed;
    name_restored(&header);
    TESS_TRY(tess_fits_cube_create(to->comm, to->job->output, to->job->overwrite,
                                   &header, 0, to->is_double, &cube));
    for (int k = 0; k < to->num_planes; ++k) {
        TESS_TRY(restore_plane(to, model, k));
        round_rows(to);
        const tess_cube_plane plane = {.freq = falls ? num - 1 - k % num : k % num,
                                       .stokes = k / num,
                                       .meta = &to->meta,
                                       .row_first = to->row_first,
                                       .num_rows = to->num_rows,
                                       .rows = to->rows};
        TESS_TRY(tess_fits_cube_write(to->comm, &plane, to->job->threads, cube));
    }
    TESS_TRY(tess_fits_cube_finish(to->comm, held, cube));
cleanup:
    tess_fits_cube_destroy(cube);
    tess_free(freq_hz);
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
    restored_model model = {0};
    TESS_TRY(check_output(comm, &opts->job, opts->job.output, inputs, 2));
    TESS_TRY(is_list(comm, opts->model, &model.is_list));
    TESS_TRY(tess_comm_agree(comm, open_residual(opts, model.is_list, &to)));
    TESS_TRY(model.is_list
                 ? drawn_list_read(comm, opts->model, &to.meta, &model.drawn)
                 : tess_comm_agree(comm, open_image(opts->model, &to, &model)));
    TESS_TRY((to.num_planes > 1 ? restore_cube : restore_image)(&to, &model, &held));
    TESS_TRY(tess_held_publish(comm, &held));
    tess_words_tell("files", "%s", opts->job.output);
cleanup:
    tess_held_free(&held);
    drawn_list_free(&model.drawn);
    tess_free(to.plane);
    tess_free(to.rows);
    return status;
}

/* ---- drawing ---- */

/* Centre, and band where none is given, of an observation. Collective. */
static tess_status take_observation(tess_comm *comm, tess_draw_opts *opts)
{
    tess_status status = TESS_OK;
    const tess_selection selection = {
        .field = opts->field, .wanted = {.positions_only = true, .uvw_only = true}};
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
                                 .spectral.rest_hz = opts->freq_hz,
                                 .stokes = opts->stokes};
    if (opts->like) {
        TESS_TRY(tess_fits_meta_read(opts->like, &to->pixels, &to->meta));
        TESS_TRY(tess_fits_check_j2000(&to->pixels)); /* as the list is */
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
