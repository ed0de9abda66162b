/* Opens the images of a mosaic, and reads rows of them and of their primary beams. */
#define _GNU_SOURCE
#include "mosaic_input.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "tess_const.h"
#include "tess_fits_cube.h"
#include "tess_geom.h"
#include "tess_mem.h"
#include "tess_real.h"
#include "tess_rows.h"
#include "tess_vis.h"

/* ---- headers ---- */

/* Whether a name of this length ends so; it is that much shorter then. */
static bool take_end(const char *path, int *length, const char *end)
{
    const int more = (int)strlen(end);
    const bool ends =
        *length > more && strncmp(path + *length - more, end, (size_t)more) == 0;
    if (ends) *length -= more;
    return ends;
}

/* The length of a name without the .fits at its end. */
static int length_of(const char *path)
{
    return tess_fits_is_name(path) ? (int)(strrchr(path, '.') - path)
                                   : (int)strlen(path);
}

/* Whether an image is a PSF, by its header, or by its name: headers of WSClean do not
 * tell a PSF from an image. */
static bool is_psf(const tess_fits_model *image)
{
    static const char *const ends[] = {"-psf", "-psf-pb", ".psf", ".psf.tt0"};
    bool is = image->is_psf;
    for (size_t k = 0; k < sizeof ends / sizeof *ends; ++k) {
        int length = length_of(image->path);
        is = is || take_end(image->path, &length, ends[k]);
    }
    return is;
}

/* Local. */
static tess_status read_headers(const char *path, mosaic_input *input)
{
    tess_status status = TESS_OK;
    tess_image_meta header;
    TESS_TRY(tess_fits_meta_read(path, &input->image, &header));
    TESS_TRY(tess_fits_check_j2000(&input->image));
    if (is_psf(&input->image))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: is a point spread function; a mosaic is made of images of the "
                  "sky, like NAME-image.fits",
                  path);
    if (strcasecmp(input->image.unit, "Jy/beam") != 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: its unit is '%s'; a mosaic is made of images in Jy/beam", path,
                  input->image.unit);
    input->num_planes = input->image.num_freq * input->image.num_stokes;
    input->plane = tess_alloc(input->num_planes, sizeof *input->plane);
    if (!input->plane)
        TESS_FAIL(TESS_ERR_ALLOC, "%s: %d planes", path, input->num_planes);
    input->plane[0] = header;
    if (input->num_planes > 1)
        TESS_TRY(tess_fits_planes(&input->image, &header, input->plane));
cleanup:
    return status;
}

bool mosaic_input_is_empty(const mosaic_input *input, int plane)
{
    const double sum = input->plane[plane].gridded.sum_weights;
    return input->num_planes > 1 && !isnan(sum) && !(sum > 0);
}

/* Each plane with data needs a beam. Local. */
static tess_status check_beams(const mosaic_input *input)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < input->num_planes; ++k)
        if (!mosaic_input_is_empty(input, k) && !(input->plane[k].beam.major_rad > 0))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: plane %d has no beam (table BEAMS, or BMAJ, BMIN, BPA), so "
                      "it cannot be brought to the beam of the others",
                      input->image.path, k + 1);
cleanup:
    return status;
}

/* Planes of two images are joined if they are of one Stokes parameter, and if neither
 * frequency lies outside of half the other's width. Local. */
static tess_status check_planes(const mosaic_input *first, const mosaic_input *input)
{
    tess_status status = TESS_OK;
    const tess_fits_model *one = &first->image, *other = &input->image;
    if (one->num_freq != other->num_freq || one->num_stokes != other->num_stokes)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: it has %d channels of %d Stokes parameters, and %s has %d of %d",
                  other->path, other->num_freq, other->num_stokes, one->path,
                  one->num_freq, one->num_stokes);
    for (int k = 0; k < input->num_planes; ++k) {
        const tess_image_meta *a = &first->plane[k], *b = &input->plane[k];
        const double width_hz = fmax(fabs(a->bandwidth_hz), fabs(b->bandwidth_hz));
        if (a->stokes != b->stokes || fabs(a->freq_hz - b->freq_hz) > 0.5 * width_hz)
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: plane %d is Stokes %s at %.6g Hz, and that of %s is %s at "
                      "%.6g Hz",
                      other->path, k + 1, tess_corr_name(b->stokes), b->freq_hz,
                      one->path, tess_corr_name(a->stokes), a->freq_hz);
    }
cleanup:
    return status;
}

/* ---- primary beams ---- */

/* CASA's NAME.pb.fits beside NAME.image.fits or NAME.image.pbcor.fits, also of .tt0. */
static bool name_casa_beam(const char *path, int length, char *beam, size_t size,
                           bool *is_divided)
{
    *is_divided = take_end(path, &length, ".pbcor");
    const bool is_term = take_end(path, &length, ".tt0");
    if (!take_end(path, &length, ".image") && !take_end(path, &length, ".residual"))
        return false;
    return snprintf(beam, size, "%.*s.pb%s.fits", length, path, is_term ? ".tt0" : "") <
           (int)size;
}

/* NAME-pb.fits beside NAME-image.fits or NAME-image-pb.fits; the latter has been
 * divided by it. False: the image has no such name, nor one of CASA's. */
static bool name_beam_file(const char *path, char *beam, size_t size, bool *is_divided)
{
    const char *name = strrchr(path, '/');
    int length = length_of(path);
    name = name ? name + 1 : path;
    if (name_casa_beam(path, length, beam, size, is_divided)) return true;
    *is_divided = take_end(path, &length, "-pb");
    while (path + length > name && path[length - 1] != '-')
        --length;
    if (path + length <= name + 1) return false;
    return snprintf(beam, size, "%.*spb.fits", length, path) < (int)size;
}

/* Whether pixels of two images lie at the same places, within a hundredth of one. */
static bool is_same_place(const tess_fits_model *a, const tess_fits_model *b)
{
    const double near_rad = 0.01 * fabs(b->scale_y_rad);
    const double over = (double)(b->nx > b->ny ? b->nx : b->ny);
    return fabs(a->ra_rad - b->ra_rad) * cos(b->dec_rad) < near_rad &&
           fabs(a->dec_rad - b->dec_rad) < near_rad &&
           fabs(a->crpix_x - b->crpix_x) < 0.01 &&
           fabs(a->crpix_y - b->crpix_y) < 0.01 &&
           over * fabs(a->scale_y_rad - b->scale_y_rad) < near_rad;
}

/* Local. */
static tess_status open_beam_file(const char *path, mosaic_input *input)
{
    tess_status status = TESS_OK;
    char file[sizeof input->image.path];
    tess_image_meta header;
    const tess_fits_model *image = &input->image, *beam = &input->beam_file;
    if (!name_beam_file(path, file, sizeof file, &input->is_corrected))
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: it is not called NAME-image.fits or NAME.image.fits, so that its "
            "primary beam NAME-pb.fits or NAME.pb.fits cannot be found; choose one "
            "with --primary-beam",
            path);
    if (access(file, F_OK) != 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: its primary beam %s is not there; make it with 'tessera image "
                  "--primary-beam', or choose one with --primary-beam",
                  path, file);
    TESS_TRY(tess_fits_meta_read(file, &input->beam_file, &header));
    if (beam->nx != image->nx || beam->ny != image->ny ||
        beam->num_freq != image->num_freq || beam->num_stokes != image->num_stokes)
        TESS_FAIL(TESS_ERR_INPUT, "%s: it has other pixels than %s", file, path);
    if (!is_same_place(beam, image))
        TESS_FAIL(TESS_ERR_INPUT, "%s: its pixels lie elsewhere than those of %s", file,
                  path);
    input->has_beam_file = true;
cleanup:
    return status;
}

/* Collective. */
static tess_status open_model(tess_comm *comm, const char *model, mosaic_input *input)
{
    tess_status status = TESS_OK;
    char unused[sizeof input->image.path];
    const int num = input->image.num_freq;
    double *freq_hz = tess_alloc(num, sizeof *freq_hz);
    TESS_TRY(tess_comm_agree(comm, freq_hz ? TESS_OK : TESS_ERR_ALLOC));
    for (int k = 0; k < num; ++k)
        freq_hz[k] = input->plane[k].freq_hz;
    (void)name_beam_file(input->image.path, unused, sizeof unused,
                         &input->is_corrected);
    const tess_primary_beam_request request = {.model = model,
                                               .telescope =
                                                   input->plane[0].names.telescope,
                                               .num_chan = num,
                                               .freq_hz = freq_hz};
    TESS_TRY(tess_primary_beam_open(comm, &request, &input->model));
cleanup:
    tess_free(freq_hz);
    return status;
}

tess_status mosaic_input_open(tess_comm *comm, const tess_mosaic_opts *opts, int k,
                              const mosaic_input *first, mosaic_input *input)
{
    tess_status status = TESS_OK;
    const char *path = opts->path[k];
    const bool by_files = strcmp(opts->primary_beam, "files") == 0;
    status = read_headers(path, input);
    if (status == TESS_OK) status = check_beams(input);
    if (status == TESS_OK && first) status = check_planes(first, input);
    if (status == TESS_OK && by_files) status = open_beam_file(path, input);
    TESS_TRY(tess_comm_agree(comm, status));
    if (!by_files && strcmp(opts->primary_beam, "none") != 0)
        TESS_TRY(open_model(comm, opts->primary_beam, input));
cleanup:
    return status;
}

void mosaic_input_free(mosaic_input *input)
{
    tess_free(input->plane);
    tess_primary_beam_close(input->model);
    *input = (mosaic_input){0};
}

/* ---- pixels ---- */

/* A beam that turns is averaged over so many parallactic angles, since an image does
 * not tell at which it was observed. */
enum { NUM_ANGLES = 32 };

static double reach_of(const tess_fits_model *image)
{
    const double x = fmax(image->crpix_x, (double)image->nx - image->crpix_x + 1);
    const double y = fmax(image->crpix_y, (double)image->ny - image->crpix_y + 1);
    return fmin(1, hypot(x * image->scale_x_rad, y * image->scale_y_rad));
}

/* Local. */
static tess_status fill_by_model(const mosaic_image *of, const mosaic_rows *rows,
                                 int threads, void *beam)
{
    tess_status status = TESS_OK;
    const tess_fits_model *image = &of->input->image;
    const bool is_double = image->bitpix == -64;
    double angle_rad[NUM_ANGLES];
    const double one = 1;
    for (int k = 0; k < NUM_ANGLES; ++k)
        angle_rad[k] = 2 * TESS_PI * k / NUM_ANGLES;
    const tess_beam_mean_of mean_of = {.num_chan = 1,
                                       .freq_hz = &of->input->plane[of->plane].freq_hz,
                                       .weight = &one,
                                       .num_angles = NUM_ANGLES,
                                       .angle_rad = angle_rad,
                                       .reach = reach_of(image),
                                       .threads = threads};
    tess_beam_mean *mean = NULL;
    TESS_TRY(tess_beam_mean_create(of->input->model, &mean_of, &mean));
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t row = 0; row < rows->num; ++row)
        for (int64_t i = 0; i < image->nx; ++i) {
            const double x = (double)(i + 1) - image->crpix_x;
            const double y = (double)(rows->first + row + 1) - image->crpix_y;
            tess_real_set(beam, is_double, row * image->nx + i,
                          tess_beam_mean_power(mean, x * image->scale_x_rad,
                                               y * image->scale_y_rad));
        }
cleanup:
    tess_beam_mean_destroy(mean);
    return status;
}

/* Rows of a file, of a plane of the image. Local, thread-safe. */
static tess_status read_rows(const tess_fits_model *file, const mosaic_image *of,
                             const mosaic_rows *rows, void *out)
{
    const int num_freq = of->input->image.num_freq;
    const int stokes = of->plane / num_freq, freq = of->plane % num_freq;
    return tess_fits_read(file, stokes, freq, rows->first, rows->num,
                          tess_pixel_of(of->input->image.bitpix == -64), out);
}

static void fill_with_one(bool is_double, int64_t count, int threads, void *beam)
{
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t k = 0; k < count; ++k)
        tess_real_set(beam, is_double, k, 1);
}

static void undo_correction(bool is_double, int64_t count, int threads,
                            const void *beam, void *image)
{
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t k = 0; k < count; ++k)
        tess_real_set(image, is_double, k,
                      tess_real_at(image, is_double, k) *
                          tess_real_at(beam, is_double, k));
}

/* Threads read rows of as many parts each. */
enum { PARTS_PER_THREAD = 4 };

/* Reads rows by all threads. Local. */
static tess_status read_parts(const tess_fits_model *file, const mosaic_image *of,
                              const mosaic_rows *rows, int threads, void *out)
{
    const int64_t row_bytes =
        file->nx * tess_pixel_bytes(tess_pixel_of(of->input->image.bitpix == -64));
    const int64_t parts = (int64_t)PARTS_PER_THREAD * threads;
    int worst = TESS_OK;
#pragma omp parallel for schedule(dynamic) num_threads(threads) reduction(max : worst)
    for (int64_t k = 0; k < parts; ++k) {
        const int64_t first = rows->num * k / parts, end = rows->num * (k + 1) / parts;
        const mosaic_rows some = {rows->first + first, end - first};
        const int status =
            (int)read_rows(file, of, &some, (char *)out + first * row_bytes);
        if (status > worst) worst = status;
    }
    return (tess_status)worst;
}

tess_status mosaic_input_read(const tess_mosaic_opts *opts, const mosaic_image *of,
                              const mosaic_rows *rows, void *image, void *beam)
{
    tess_status status = TESS_OK;
    const mosaic_input *input = of->input;
    const bool is_double = input->image.bitpix == -64;
    const int64_t count = rows->num * input->image.nx;
    TESS_TRY(read_parts(&input->image, of, rows, opts->threads, image));
    if (input->has_beam_file)
        TESS_TRY(read_parts(&input->beam_file, of, rows, opts->threads, beam));
    else if (input->model)
        TESS_TRY(fill_by_model(of, rows, opts->threads, beam));
    else
        fill_with_one(is_double, count, opts->threads, beam);
    if (input->is_corrected)
        undo_correction(is_double, count, opts->threads, beam, image);
cleanup:
    return status;
}
