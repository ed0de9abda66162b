/* tessera stats: peak, noise, beam and flux of FITS images. */
#define _GNU_SOURCE
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "options.h"
#include "tess_cli.h"
#include "tess_const.h"
#include "tess_fits_array.h"
#include "tess_geom.h"
#include "tess_mem.h"
#include "tess_print.h"
#include "tess_row_stats.h"
#include "tess_subcommands.h"
#include "tess_text.h"
#include "tess_threads.h"
#include "tess_words.h"

static const char doc[] =
    "Print peak, rms, noise, beam, flux and dynamic range of FITS images, of each "
    "plane."
    "\v"
    "The noise is 1.4826 times the median absolute deviation from the median, which "
    "sources of few pixels do not change. The dynamic range is the peak over the "
    "noise. "
    "The flux is the sum of the pixels, of an image in Jy/beam over the area of its "
    "beam. Blank pixels do not count.\n\n"
    "Examples:\n"
    "  tessera stats out-image.fits\n"
    "  tessera stats before-image.fits after-image.fits";

static const struct argp_child children[] = {
    {&tess_cli_common_argp, 0, "General:", 4},
    {0},
};

typedef struct stats_args {
    char **path; /* [num] */
    int64_t num, capacity;
} stats_args;

static error_t parse(int key, char *arg, struct argp_state *state)
{
    stats_args *args = state->input;
    void *array = (void *)args->path;
    if (key != ARGP_KEY_ARG) return ARGP_ERR_UNKNOWN;
    if (tess_grow(&array, &args->capacity, args->num + 1, sizeof *args->path))
        return ENOMEM;
    args->path = array;
    args->path[args->num++] = arg;
    return 0;
}

static const struct argp argp = {NULL, parse, "FILE...", doc, children, NULL, NULL};

/* ---- words ---- */

/* " at 04:00:00.0 -30:00:00" in a SIN projection, "" in others and beyond the horizon.
 */
static void write_position(const tess_fits_array *image, int64_t pixel, char *text,
                           size_t size)
{
    const tess_fits_axis *x = &image->axis[0], *y = &image->axis[1];
    const double unit = tess_fits_unit_rad(x->unit);
    const double dx = (double)(pixel % x->length) + 1 - x->pixel;
    const double dy = (double)(pixel / x->length) + 1 - y->pixel;
    const double l = unit * (image->matrix[0][0] * dx + image->matrix[0][1] * dy);
    const double m = unit * (image->matrix[1][0] * dx + image->matrix[1][1] * dy);
    const double n2 = 1 - l * l - m * m;
    const double lmn1[3] = {l, m, sqrt(fmax(n2, 0)) - 1};
    double ra_rad, dec_rad;
    char ra[48], dec[48];
    text[0] = '\0';
    if (strncmp(x->type, "RA---SIN", 8) != 0 || !(n2 >= 0)) return;
    tess_sky_place(lmn1, unit * x->value, unit * y->value, &ra_rad, &dec_rad);
    tess_words_ra(ra_rad, 2, ra, sizeof ra);
    tess_words_dec(dec_rad, 1, dec, sizeof dec);
    snprintf(text, size, " at %s %s", ra, dec);
}

/* "1.23 mJy/beam", or the number with the image's own unit. */
static void write_value(const tess_fits_array *image, double value, char *text,
                        size_t size)
{
    if (strcasecmp(image->unit, "Jy/beam") == 0)
        tess_words_flux(value, 5, text, size);
    else
        snprintf(text, size, "%.5g %s", value, image->unit);
}

static void print_pixel(const tess_fits_array *image, const char *label, int64_t pixel,
                        double value)
{
    char text[80], where[120];
    const long long width = image->axis[0].length;
    write_value(image, value, text, sizeof text);
    write_position(image, pixel, where, sizeof where);
    tess_print("  %-14s %s%s, pixel %lld,%lld\n", label, text, where, pixel % width + 1,
               pixel / width + 1);
}

static void print_value(const tess_fits_array *image, const char *label, double value,
                        const char *remark)
{
    char text[80];
    write_value(image, value, text, sizeof text);
    tess_print("  %-14s %s%s\n", label, text, remark);
}

/* Pixels of the beam's area; 0 without a beam. */
static double beam_pixels(const tess_fits_array *image)
{
    const double cell = fabs(image->matrix[0][0] * image->matrix[1][1] -
                             image->matrix[0][1] * image->matrix[1][0]);
    const double unit_deg = tess_fits_unit_rad(image->axis[0].unit) / TESS_RAD_PER_DEG;
    if (!(cell > 0) || !(unit_deg > 0)) return 0;
    return TESS_GAUSSIAN_AREA * image->beam_deg[0] * image->beam_deg[1] /
           (cell * unit_deg * unit_deg);
}

static void print_beam(const tess_fits_array *image, double sum)
{
    const double pixels = beam_pixels(image);
    const bool per_beam = strcasecmp(image->unit, "Jy/beam") == 0;
    if (pixels > 0)
        tess_print("  %-14s %.6g x %.6g arcsec, PA %.4g deg, %.5g pixels\n", "beam",
                   3600 * image->beam_deg[0], 3600 * image->beam_deg[1],
                   image->beam_deg[2], pixels);
    if (per_beam && pixels > 0) tess_print("  %-14s %.6g Jy\n", "flux", sum / pixels);
    if (strcasecmp(image->unit, "Jy/pixel") == 0)
        tess_print("  %-14s %.6g Jy\n", "flux", sum);
}

/* ---- files ---- */

static int64_t width_of(const tess_fits_array *image)
{
    return image->axis[0].length;
}

static int64_t height_of(const tess_fits_array *image)
{
    return image->num_axes > 1 ? image->axis[1].length : 1;
}

static void print_plane(const tess_fits_array *image, int64_t plane,
                        const tess_row_stats *stats)
{
    const int64_t nx = width_of(image), ny = height_of(image);
    const int64_t num_planes = image->num_pixels / (nx * ny);
    const int64_t blank = nx * ny - (int64_t)stats->count;
    char path[sizeof image->path];
    snprintf(path, sizeof path, "%s", image->path);
    tess_print("%s: %lld x %lld pixels", tess_text_clean(path), (long long)nx,
               (long long)ny);
    if (num_planes > 1)
        tess_print(", plane %lld of %lld", (long long)plane + 1, (long long)num_planes);
    if (blank > 0) tess_print(", %lld of them blank", (long long)blank);
    tess_print("\n");
    if (blank == nx * ny) return;
    print_pixel(image, "peak", (int64_t)stats->most_at, stats->most);
    print_pixel(image, "minimum", (int64_t)stats->least_at, stats->least);
    print_value(image, "rms", stats->rms, "");
    print_value(image, "noise", stats->noise, " (1.4826 MAD)");
    if (stats->noise > 0)
        tess_print("  %-14s %.5g\n", "dynamic range", stats->most / stats->noise);
    print_beam(image, stats->sum);
}

/* An image, and this rank's rows of a plane. */
typedef struct stats_job {
    tess_comm *comm;
    int threads;
    tess_fits_array image;
    tess_rows rows;
} stats_job;

/* Local. */
static tess_status open_image(const char *path, stats_job *job)
{
    tess_status status = TESS_OK;
    const int64_t rank = tess_comm_rank(job->comm), size = tess_comm_size(job->comm);
    TESS_TRY(tess_fits_array_open(path, &job->image));
    const int64_t ny = height_of(&job->image), first = ny * rank / size;
    job->rows = tess_rows_of(width_of(&job->image), ny, first,
                             ny * (rank + 1) / size - first, TESS_PIXEL_DOUBLE);
    TESS_TRY(tess_rows_alloc(&job->rows));
cleanup:
    return status;
}

/* Collective. */
static tess_status measure_plane(stats_job *job, int64_t plane)
{
    tess_status status = TESS_OK;
    const tess_rows *rows = &job->rows;
    const int64_t first = (plane * height_of(&job->image) + rows->row_first) * rows->nx;
    tess_row_stats stats;
    TESS_TRY(tess_comm_agree(
        job->comm, tess_fits_array_read(&job->image, first, tess_rows_count(rows),
                                        TESS_PIXEL_DOUBLE, rows->value)));
    TESS_TRY(tess_row_stats_measure(job->comm, rows, job->threads, true, &stats));
    if (tess_comm_rank(job->comm) == 0) print_plane(&job->image, plane, &stats);
cleanup:
    return status;
}

/* Collective. */
static tess_status measure_file(tess_comm *comm, const char *path, int threads)
{
    tess_status status = TESS_OK;
    stats_job job = {.comm = comm, .threads = threads};
    TESS_TRY(tess_comm_agree(comm, open_image(path, &job)));
    const int64_t pixels = width_of(&job.image) * height_of(&job.image);
    for (int64_t k = 0; k < job.image.num_pixels / pixels; ++k)
        TESS_TRY(measure_plane(&job, k));
cleanup:
    tess_rows_free(&job.rows);
    return status;
}

tess_status tess_cmd_stats(tess_comm *comm, int argc, char **argv)
{
    tess_status status = TESS_OK;
    int threads = 1;
    stats_args args = {0};
    tess_cli cli = {0};
    TESS_TRY(tess_cli_parse(comm, &argp, argc, argv, &args, &cli));
    if (cli.help) goto cleanup;
    if (args.num == 0) TESS_FAIL(TESS_ERR_USAGE, "no image given; name a FITS file");
    TESS_TRY(tess_threads_default(comm, &threads));
    for (int64_t k = 0; k < args.num; ++k)
        TESS_TRY(measure_file(comm, args.path[k], threads));
cleanup:
    tess_free((void *)args.path);
    tess_cli_free(&cli);
    return status;
}
