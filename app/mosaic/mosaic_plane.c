/* Sums a plane of a mosaic up, image after image, and makes rows of files of it. */
#include "mosaic_plane.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tess_common_beam.h"
#include "tess_const.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_real.h"
#include "tess_words.h"

/* ---- the beam of all ---- */

static bool is_same(const tess_clean_beam *a, const tess_clean_beam *b)
{
    return a->major_px == b->major_px && a->minor_px == b->minor_px &&
           a->angle_rad == b->angle_rad;
}

/* The beam that is asked for, which has to contain those of the images, or the smallest
 * that does; widths are in radians in place of pixels. Local. */
static tess_status find_beam(const mosaic_job *job, int plane, tess_fits_beam *beam)
{
    tess_status status = TESS_OK;
    const tess_fits_beam *asked = &job->opts->beam;
    const int num = job->opts->num_images;
    const tess_clean_beam wanted = {asked->major_rad, asked->minor_rad, asked->pa_rad};
    tess_clean_beam common, *own = tess_alloc_zero(num + 1, sizeof *own);
    if (!own) TESS_FAIL(TESS_ERR_ALLOC, "beams of %d images", num);
    for (int k = 0; k < num; ++k) {
        const tess_fits_beam *of = &job->input[k].plane[plane].beam;
        if (!mosaic_input_is_empty(&job->input[k], plane))
            own[k] = (tess_clean_beam){of->major_rad, of->minor_rad, of->pa_rad};
    }
    own[num] = wanted;
    tess_common_beam(own, num + 1, &common);
    if (asked->major_rad > 0 && !is_same(&common, &wanted))
        TESS_FAIL(
            TESS_ERR_INPUT,
            "the beam that is asked for does not contain those of all images; the "
            "smallest that does is %.4g x %.4g asec at %.4g deg",
            common.major_px / TESS_RAD_PER_ASEC, common.minor_px / TESS_RAD_PER_ASEC,
            common.angle_rad / TESS_RAD_PER_DEG);
    *beam = (tess_fits_beam){common.major_px, common.minor_px, common.angle_rad};
cleanup:
    tess_free(own);
    return status;
}

/* ---- sums ---- */

static void tell_image(const mosaic_job *job, int k, int plane, double noise_jy)
{
    const mosaic_input *input = &job->input[k];
    char noise[48];
    if (tess_comm_rank(job->comm) != 0) return;
    if (!(noise_jy > 0)) {
        tess_log_warn("%s: plane %d has no noise that could be measured; it does not "
                      "count (--noise tells it)",
                      input->image.path, plane + 1);
        return;
    }
    tess_words_flux(noise_jy, 3, noise, sizeof noise);
    if (plane == 0)
        tess_log_info("image %d of %d: %s, noise %s", k + 1, job->opts->num_images,
                      input->image.path, noise);
}

/* The pixels of this rank's rows that an image reaches, and how they lie in it. */
static mosaic_box find_box(const mosaic_job *job, const mosaic_grid *grid,
                           mosaic_way *there)
{
    const mosaic_grid all = mosaic_grid_of_frame(&job->frame);
    const mosaic_way back = mosaic_way_between(grid, &all);
    const mosaic_box whole = {{0, grid->nx}, {0, grid->ny}};
    const int64_t end = job->sums.row_first + job->sums.num_rows;
    mosaic_box box = mosaic_way_box(&back, &whole, 1);
    *there = mosaic_way_between(&all, grid);
    mosaic_way_choose_stride(there, &box); /* the same on all ranks */
    if (box.y[0] < job->sums.row_first) box.y[0] = job->sums.row_first;
    if (box.y[1] > end) box.y[1] = end;
    return box;
}

/* Collective. */
static tess_status add_image(mosaic_job *job, int k, int plane,
                             const tess_fits_beam *beam)
{
    tess_status status = TESS_OK;
    const mosaic_image of = {&job->input[k], plane};
    const mosaic_grid grid = mosaic_grid_of_image(&of.input->image);
    const int64_t reach = mosaic_kernel_reach(job->opts->kernel);
    const mosaic_strip *strip;
    double noise_jy = job->opts->noise_jy ? job->opts->noise_jy[k] : 0;
    mosaic_way there;
    const mosaic_box box = find_box(job, &grid, &there);
    const mosaic_box needed = mosaic_way_box(&there, &box, reach);
    TESS_TRY(mosaic_strip_make(job->comm, job->opts, &of, beam, needed.y, &noise_jy,
                               &job->strips, &strip));
    tell_image(job, k, plane, noise_jy);
    const mosaic_source source = {strip, &there, job->weights, noise_jy};
    if (noise_jy > 0) mosaic_sums_add(&source, &box, job->opts->threads, &job->sums);
cleanup:
    return status;
}

/* The header of the first image with data, or of the first one. */
static void make_meta(const mosaic_job *job, int plane, const tess_fits_beam *beam,
                      tess_image_meta *meta)
{
    const int num = job->opts->num_images;
    int first = 0;
    while (first < num && mosaic_input_is_empty(&job->input[first], plane))
        ++first;
    *meta = job->input[first < num ? first : 0].plane[plane];
    meta->nx = job->frame.nx;
    meta->ny = job->frame.ny;
    meta->ra_rad = job->frame.ra_rad;
    meta->dec_rad = job->frame.dec_rad;
    meta->scale_rad = job->frame.scale_rad;
    meta->l0 = meta->m0 = 0;
    meta->beam = *beam;
    meta->gridded = (tess_fits_gridded){0};
    meta->cleaned = (tess_fits_cleaned){0};
    for (int k = 0; k < num; ++k) {
        const tess_image_meta *of = &job->input[k].plane[plane];
        if (of->time_start_mjd_s > 0)
            meta->time_start_mjd_s = fmin(meta->time_start_mjd_s, of->time_start_mjd_s);
        meta->time_end_mjd_s = fmax(meta->time_end_mjd_s, of->time_end_mjd_s);
        if (strcmp(meta->names.object, of->names.object) != 0)
            snprintf(meta->names.object, sizeof meta->names.object, "mosaic");
    }
    meta->history = job->opts->command_line;
}

tess_status mosaic_plane_sum(mosaic_job *job, int plane, tess_image_meta *meta)
{
    tess_status status = TESS_OK;
    const mosaic_sums *sums = &job->sums;
    const size_t bytes = (size_t)(sums->num_rows * sums->nx) * sizeof *sums->flux;
    tess_fits_beam beam;
    TESS_TRY(tess_comm_agree(job->comm, find_beam(job, plane, &beam)));
    memset(sums->flux, 0, bytes);
    memset(sums->weight, 0, bytes);
    for (int k = 0; k < job->opts->num_images; ++k)
        if (!mosaic_input_is_empty(&job->input[k], plane))
            TESS_TRY(add_image(job, k, plane, &beam));
    make_meta(job, plane, &beam, meta);
cleanup:
    return status;
}

/* ---- products ---- */

static double pixel_of(mosaic_product product, double flux, double weight,
                       double largest)
{
    if (!(weight > 0)) return (double)NAN;
    switch (product) {
    case MOSAIC_FLAT:
        return flux / weight * sqrt(weight / largest);
    case MOSAIC_FLUX:
        return flux / weight;
    case MOSAIC_BEAM:
        return sqrt(weight / largest);
    case MOSAIC_NOISE:
        return 1 / sqrt(weight);
    case MOSAIC_PRODUCTS:
        break;
    }
    return (double)NAN;
}

void mosaic_plane_take(const mosaic_job *job, const mosaic_taken *taken, void *rows)
{
    const mosaic_sums *sums = &job->sums;
#pragma omp parallel for schedule(static) num_threads(job->opts->threads)
    for (int64_t k = 0; k < sums->num_rows * sums->nx; ++k)
        tess_real_set(
            rows, taken->is_double, k,
            pixel_of(taken->product, sums->flux[k], sums->weight[k], taken->largest));
}
