/* Compares the pixels of two images by where they lie on the sky. */
#include "pixel_places.h"

#include <math.h>
#include <string.h>

#include "image_run.h"
#include "tess_geom.h"

/* Pixels of a file may lie so far from the image's [pixels]. */
static const double MOST_OFFSET = 0.1;

/* How far the file's pixel of a direction lies from the image's 0-based pixel x, y;
 * INFINITY where it is below the file's horizon, 0 where it is below the image's. */
static double offset_at(const tess_fits_model *file, const tess_fits_model *image,
                        double x, double y)
{
    double ra, dec, there[3];
    const double l = (x + 1 - image->crpix_x) * image->scale_x_rad;
    const double m = (y + 1 - image->crpix_y) * image->scale_y_rad;
    if (l * l + m * m > 1) return 0;
    const double lmn1[3] = {l, m, sqrt(1 - l * l - m * m) - 1};
    tess_sky_place(lmn1, image->ra_rad, image->dec_rad, &ra, &dec);
    if (!tess_sky_project(ra, dec, file->ra_rad, file->dec_rad, there)) return INFINITY;
    const double x_file = file->crpix_x - 1 + there[0] / file->scale_x_rad;
    const double y_file = file->crpix_y - 1 + there[1] / file->scale_y_rad;
    return fmax(fabs(x_file - x), fabs(y_file - y));
}

/* The largest offset of the centre and of points near the four edges. */
static double largest_offset(const tess_fits_model *file, const tess_fits_model *image)
{
    static const double place[5][2] = {{0, 0}, {.7, 0}, {-.7, 0}, {0, .7}, {0, -.7}};
    const double half_x = (double)(image->nx / 2), half_y = (double)(image->ny / 2);
    double largest = 0;
    for (int k = 0; k < 5; ++k)
        largest = fmax(largest, offset_at(file, image, half_x * (1 + place[k][0]),
                                          half_y * (1 + place[k][1])));
    return largest;
}

tess_status pixel_places_check(const tess_fits_model *file,
                               const tess_fits_model *image, const char *what)
{
    tess_status status = TESS_OK;
    if (file->nx != image->nx || file->ny != image->ny)
        TESS_FAIL(TESS_ERR_INPUT, "%s: it has %lld x %lld pixels, %s %lld x %lld",
                  file->path, (long long)file->nx, (long long)file->ny, what,
                  (long long)image->nx, (long long)image->ny);
    if (strcmp(file->frame, image->frame) != 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: its positions are in the frame %s, those of %s in %s; regrid it",
                  file->path, file->frame, what, image->frame);
    tess_fits_model placed = *file;
    tess_fits_settle(&placed, image->ra_rad, image->dec_rad);
    const double offset = largest_offset(&placed, image);
    if (!(offset <= MOST_OFFSET))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: its pixels lie up to %.3g pixels from those of %s; give one "
                  "with the same centre and --scale",
                  file->path, offset, what);
cleanup:
    return status;
}

tess_status pixel_places_check_run(const image_run *run, const tess_fits_model *file)
{
    const tess_image_opts *opts = run->opts;
    const tess_fits_pixels pixels = {
        .nx = opts->nx, .ny = opts->ny, .num_stokes = 1, .scale_rad = opts->scale_rad};
    tess_fits_model image;
    tess_fits_open_pixels(&pixels, run->info->ra_rad, run->info->dec_rad, &image);
    image.crpix_x += run->info->turn[0] / opts->scale_rad;
    image.crpix_y -= run->info->turn[1] / opts->scale_rad;
    return pixel_places_check(file, &image, "the image");
}
