/* Makes mosaics: opens the images, sums plane after plane, and writes the files. */
#define _GNU_SOURCE
#include "tess_mosaic.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mosaic_plane.h"
#include "tess_const.h"
#include "tess_fits_cube.h"
#include "tess_held_files.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"
#include "tess_words.h"

/* A file of the mosaic. */
typedef struct mosaic_file {
    mosaic_product product;
    const char *suffix, *caption, *unit;
    char *path;           /* from malloc() */
    tess_fits_cube *cube; /* NULL: the file has one plane */
} mosaic_file;

/* The files of a mosaic, by whether its images have primary beams. */
typedef struct mosaic_files {
    mosaic_file file[MOSAIC_PRODUCTS];
    int num;
    bool is_double;
    tess_held_files held;
} mosaic_files;

static void choose_files(const tess_mosaic_opts *opts, mosaic_files *files)
{
    static const mosaic_file with_beams[] = {
        {MOSAIC_FLAT, "image", "mosaic", "Jy/beam", NULL, NULL},
        {MOSAIC_FLUX, "image-pb", "corrected mosaic", "Jy/beam", NULL, NULL},
        {MOSAIC_BEAM, "pb", "primary beam", "", NULL, NULL},
        {MOSAIC_NOISE, "noise", "noise", "Jy/beam", NULL, NULL}};
    static const mosaic_file without[] = {
        {MOSAIC_FLUX, "image", "mosaic", "Jy/beam", NULL, NULL},
        {MOSAIC_NOISE, "noise", "noise", "Jy/beam", NULL, NULL}};
    const bool has_beams = strcmp(opts->primary_beam, "none") != 0;
    files->num = has_beams ? 4 : 2;
    memcpy(files->file, has_beams ? with_beams : without,
           (size_t)files->num * sizeof *files->file);
    files->held = (tess_held_files){
        .overwrite = opts->overwrite, .threads = opts->threads, .last = true};
}

/* Collective. */
static tess_status name_files(tess_comm *comm, const tess_mosaic_opts *opts,
                              mosaic_files *files)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < files->num; ++k) {
        mosaic_file *file = &files->file[k];
        if (asprintf(&file->path, "%s-%s.fits", opts->output, file->suffix) < 0) {
            file->path = NULL;
            TESS_FAIL(TESS_ERR_ALLOC, "names of files");
        }
        if (tess_comm_rank(comm) != 0) continue;
        TESS_TRY(tess_out_check_target(file->path, opts->overwrite));
        for (int i = 0; i < opts->num_images; ++i)
            TESS_TRY(tess_out_check_other(file->path, opts->path[i]));
    }
cleanup:
    return tess_comm_agree(comm, status);
}

/* No file replaces a primary beam that is read. Collective. */
static tess_status check_beams_stay(const mosaic_job *job, const mosaic_files *files)
{
    tess_status status = TESS_OK;
    const char *model = tess_primary_beam_file(job->opts->primary_beam);
    for (int k = 0; k < files->num && tess_comm_rank(job->comm) == 0; ++k) {
        TESS_TRY(tess_out_check_other(files->file[k].path, model));
        for (int i = 0; i < job->opts->num_images; ++i)
            if (job->input[i].has_beam_file)
                TESS_TRY(tess_out_check_other(files->file[k].path,
                                              job->input[i].beam_file.path));
    }
cleanup:
    return tess_comm_agree(job->comm, status);
}

static void name_meta(const mosaic_file *file, tess_image_meta *meta)
{
    meta->caption = file->caption;
    snprintf(meta->unit, sizeof meta->unit, "%s", file->unit);
    if (file->product == MOSAIC_BEAM) meta->beam = (tess_fits_beam){0};
}

/* ---- images ---- */

/* Collective. */
static tess_status open_images(mosaic_job *job)
{
    tess_status status = TESS_OK;
    const tess_mosaic_opts *opts = job->opts;
    job->input = tess_alloc_zero(opts->num_images, sizeof *job->input);
    TESS_TRY(tess_comm_agree(job->comm, job->input ? TESS_OK : TESS_ERR_ALLOC));
    for (int k = 0; k < opts->num_images; ++k)
        TESS_TRY(mosaic_input_open(job->comm, opts, k, k > 0 ? job->input : NULL,
                                   &job->input[k]));
    status = mosaic_frame_find(job->input, opts->num_images, &job->frame);
    TESS_TRY(tess_comm_agree(job->comm, status));
cleanup:
    return status;
}

/* Local. */
static tess_status divide_rows(mosaic_job *job)
{
    tess_status status = TESS_OK;
    const int64_t rank = tess_comm_rank(job->comm), size = tess_comm_size(job->comm);
    mosaic_sums *sums = &job->sums;
    sums->nx = job->frame.nx;
    sums->row_first = job->frame.ny * rank / size;
    sums->num_rows = job->frame.ny * (rank + 1) / size - sums->row_first;
    sums->flux = tess_alloc(sums->num_rows * sums->nx, sizeof *sums->flux);
    sums->weight = tess_alloc(sums->num_rows * sums->nx, sizeof *sums->weight);
    if (!sums->flux || !sums->weight)
        TESS_FAIL(TESS_ERR_ALLOC, "%lld x %lld pixels of the mosaic",
                  (long long)sums->nx, (long long)sums->num_rows);
cleanup:
    return status;
}

/* Local. */
static tess_status fill_weights(mosaic_job *job)
{
    tess_status status = TESS_OK;
    if (job->opts->kernel != TESS_MOSAIC_LANCZOS) return TESS_OK;
    job->weights = tess_alloc(1, sizeof *job->weights);
    if (!job->weights) TESS_FAIL(TESS_ERR_ALLOC, "weights of Lanczos' kernel");
    mosaic_weights_fill(job->weights);
cleanup:
    return status;
}

static void tell_frame(const mosaic_job *job)
{
    char ra[48], dec[48];
    if (tess_comm_rank(job->comm) != 0) return;
    tess_words_ra(job->frame.ra_rad, 2, ra, sizeof ra);
    tess_words_dec(job->frame.dec_rad, 1, dec, sizeof dec);
    tess_words_tell("mosaic", "%d images, %lld x %lld pixels of %.4g asec around %s %s",
                    job->opts->num_images, (long long)job->frame.nx,
                    (long long)job->frame.ny, job->frame.scale_rad / TESS_RAD_PER_ASEC,
                    ra, dec);
}

/* ---- planes ---- */

/* The largest weight of a plane; 0: no image has counted. Collective. */
static tess_status find_largest(const mosaic_job *job, double *largest)
{
    const mosaic_sums *sums = &job->sums;
    double most = 0;
#pragma omp parallel for schedule(static) num_threads(job->opts->threads)              \
    reduction(max                                                                      \
              : most)
    for (int64_t k = 0; k < sums->num_rows * sums->nx; ++k)
        most = fmax(most, sums->weight[k]);
    *largest = most;
    return tess_comm_allreduce_f64(job->comm, largest, 1, TESS_MAX);
}

/* Collective. */
static tess_status write_plane(const mosaic_job *job, int plane,
                               const tess_image_meta *meta, const void *rows,
                               mosaic_file *file, mosaic_files *files)
{
    const mosaic_sums *sums = &job->sums;
    const int num_freq = job->input[0].image.num_freq;
    tess_image_meta own = *meta;
    name_meta(file, &own);
    if (file->cube) {
        const tess_cube_plane to = {.freq = plane % num_freq,
                                    .stokes = plane / num_freq,
                                    .meta = &own,
                                    .row_first = sums->row_first,
                                    .num_rows = sums->num_rows,
                                    .rows = rows};
        return tess_fits_cube_write(job->comm, &to, job->opts->threads, file->cube);
    }
    const tess_fits_rows to = {.row_first = sums->row_first,
                               .num_rows = sums->num_rows,
                               .is_double = files->is_double,
                               .pixel = rows};
    return tess_fits_hold(job->comm, file->path, &files->held, &own, &to);
}

/* Collective. */
static tess_status make_plane(mosaic_job *job, int plane, mosaic_files *files,
                              void *rows, bool *has_data)
{
    tess_status status = TESS_OK;
    tess_image_meta meta;
    double largest;
    /* planes of a file whose frequencies fall are written in the reverse order */
    const int num = job->input[0].image.num_freq;
    const bool falls =
        tess_fits_frequencies_fall(&job->input[0].image, job->input[0].plane);
    const int to = falls ? plane / num * num + num - 1 - plane % num : plane;
    TESS_TRY(mosaic_plane_sum(job, plane, &meta));
    TESS_TRY(find_largest(job, &largest));
    if (largest > 0) *has_data = true;
    for (int k = 0; k < files->num; ++k) {
        const mosaic_taken taken = {files->file[k].product, largest, files->is_double};
        mosaic_plane_take(job, &taken, rows);
        TESS_TRY(write_plane(job, to, &meta, rows, &files->file[k], files));
    }
cleanup:
    return status;
}

/* Create the cubes of several planes. freq_hz[2 * num_freq] is the caller's, and
 * outlives the cubes. Collective. */
static tess_status create_cubes(const mosaic_job *job, double *freq_hz,
                                mosaic_files *files)
{
    tess_status status = TESS_OK;
    const mosaic_input *first = &job->input[0];
    tess_cube_axes axes;
    const bool falls = tess_fits_axes_of(&first->image, first->plane, freq_hz, &axes);
    tess_image_meta header = first->plane[falls ? first->image.num_freq - 1 : 0];
    header.nx = job->frame.nx;
    header.ny = job->frame.ny;
    header.ra_rad = job->frame.ra_rad;
    header.dec_rad = job->frame.dec_rad;
    header.scale_rad = job->frame.scale_rad;
    header.l0 = header.m0 = 0;
    header.cube = &axes;
    header.beam = (tess_fits_beam){0};
    header.cleaned = (tess_fits_cleaned){0};
    header.history = job->opts->command_line;
    for (int k = 0; k < files->num; ++k) {
        mosaic_file *file = &files->file[k];
        tess_image_meta own = header;
        name_meta(file, &own);
        TESS_TRY(tess_fits_cube_create(job->comm, file->path, job->opts->overwrite,
                                       &own, 0, files->is_double, &file->cube));
    }
cleanup:
    return status;
}

/* Collective. */
static tess_status make_planes(mosaic_job *job, mosaic_files *files)
{
    tess_status status = TESS_OK;
    const mosaic_sums *sums = &job->sums;
    const int num_planes = job->input[0].num_planes;
    const int num_freq = job->input[0].image.num_freq;
    bool has_data = false;
    double *freq_hz = tess_alloc(2 * num_freq, sizeof *freq_hz);
    void *rows = tess_alloc(sums->num_rows * sums->nx,
                            files->is_double ? sizeof(double) : sizeof(float));
    TESS_TRY(tess_comm_agree(job->comm, freq_hz && rows ? TESS_OK : TESS_ERR_ALLOC));
    if (num_planes > 1) TESS_TRY(create_cubes(job, freq_hz, files));
    for (int k = 0; k < num_planes; ++k)
        TESS_TRY(make_plane(job, k, files, rows, &has_data));
    if (!has_data)
        TESS_FAIL(TESS_ERR_INPUT, "no image has a pixel in the mosaic; see --center, "
                                  "--size and --pb-limit");
    for (int k = 0; k < files->num; ++k)
        if (files->file[k].cube)
            TESS_TRY(
                tess_fits_cube_finish(job->comm, &files->held, files->file[k].cube));
cleanup:
    for (int k = 0; k < files->num; ++k)
        tess_fits_cube_destroy(files->file[k].cube);
    tess_free(freq_hz);
    tess_free(rows);
    return status;
}

static void free_job(mosaic_job *job)
{
    for (int k = 0; job->input && k < job->opts->num_images; ++k)
        mosaic_input_free(&job->input[k]);
    tess_free(job->input);
    tess_free(job->sums.flux);
    tess_free(job->sums.weight);
    tess_free(job->weights);
    mosaic_strips_free(&job->strips);
}

tess_status tess_mosaic(tess_comm *comm, const tess_mosaic_opts *opts)
{
    tess_status status = TESS_OK;
    mosaic_job job = {.comm = comm, .opts = opts, .frame = opts->frame};
    mosaic_files files = {0};
    choose_files(opts, &files);
    TESS_TRY(name_files(comm, opts, &files));
    TESS_TRY(open_images(&job));
    TESS_TRY(check_beams_stay(&job, &files));
    status = divide_rows(&job);
    if (status == TESS_OK) status = fill_weights(&job);
    TESS_TRY(tess_comm_agree(comm, status));
    tell_frame(&job);
    for (int k = 0; k < opts->num_images; ++k)
        files.is_double |= job.input[k].image.bitpix == -64;
    TESS_TRY(make_planes(&job, &files));
    TESS_TRY(tess_held_publish(comm, &files.held));
    tess_words_tell("files", "%s-image.fits and %d others", opts->output,
                    files.num - 1);
cleanup:
    for (int k = 0; k < files.num; ++k)
        free(files.file[k].path);
    tess_held_free(&files.held);
    free_job(&job);
    return status;
}
