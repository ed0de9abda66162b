/* Opens model images, and puts them onto model planes. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "imager_job.h"
#include "imager_model.h"
#include "imager_targets.h"
#include "model_cube.h"
#include "tess_const.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_real.h"
#include "tess_scale.h"

/* Tolerances [pixels]. The reference position of a model may lie POINTING_TOLERANCE
 * from the phase centre. Over the width of the image, its pixels may add up to
 * POINTING_TOLERANCE more or less than those of the grid, and may differ by
 * PIXEL_TOLERANCE in height and width. */
static const double POINTING_TOLERANCE = 0.01;
static const double PIXEL_TOLERANCE = 1e-4;

/* Largest sum of a model's pixels. Visibilities, none of which can exceed this sum, are
 * written in single precision (below 3e38), and grid corrections multiply pixels by
 * less than 1e8. */
static const double MOST_FLUX_JY = 1e30;

/* Places the model where its header says: the reference pixel is the phase centre, and
 * may lie outside of the image. */
static tess_status place_model(imager_model *model)
{
    tess_status status = TESS_OK;
    const tess_fits_model *fits = &model->fits;
    const double scale = fits->scale_y_rad;
    tess_geom *geom = &model->geom;
    *geom = (tess_geom){.nx = fits->nx,
                        .ny = fits->ny,
                        .scale_rad = scale,
                        .l0 = scale * (fits->crpix_x - 1 - (double)(fits->nx / 2)),
                        .m0 = -scale * (fits->crpix_y - 1 - (double)(fits->ny / 2))};
    const double l =
        fmax(fabs(tess_geom_l(geom, 0)), fabs(tess_geom_l(geom, fits->nx - 1)));
    const double m =
        fmax(fabs(tess_geom_m(geom, 0)), fabs(tess_geom_m(geom, fits->ny - 1)));
    if (!(l <= TESS_GEOM_FARTHEST && m <= TESS_GEOM_FARTHEST))
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: the model reaches far beyond the half-sky around the phase centre",
            fits->path);
cleanup:
    return status;
}

static tess_status check_planes(imager_model *model)
{
    tess_status status = TESS_OK;
    const tess_fits_model *fits = &model->fits;
    const model_cube *cube = model->cube;
    const int num_stokes = cube ? cube->num_stokes : fits->num_stokes;
    const int *stokes = cube ? cube->stokes : fits->stokes;
    for (int s = 0; s < 4; ++s) {
        model->stokes_index[s] = -1;
        for (int k = 0; k < num_stokes; ++k)
            if (stokes[k] == s + 1) model->stokes_index[s] = k;
        if (model->stokes_index[s] >= 0) model->stokes[model->num_stokes++] = s + 1;
    }
    if (model->num_stokes == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: it has no plane of Stokes I, Q, U or V",
                  fits->path);
cleanup:
    return status;
}

/* Refuses units other than Jy/pixel, which is also assumed if the header has no unit. A
 * model in Jy/beam is accepted, and imager_model_warn() tells of it. */
static tess_status check_unit(const tess_fits_model *fits, bool *per_beam)
{
    tess_status status = TESS_OK;
    static const char *const per_pixel[] = {"",           "JY/PIXEL", "JY/PIX",
                                            "JY PIXEL-1", "JY PIX-1", "JY/PIXEL-1"};
    const char *unit = fits->unit;
    while (*unit == ' ')
        ++unit;
    for (size_t k = 0; k < sizeof per_pixel / sizeof *per_pixel; ++k)
        if (strcasecmp(unit, per_pixel[k]) == 0) goto cleanup;
    *per_beam = strcasecmp(unit, "JY/BEAM") == 0 || strcasecmp(unit, "JY BEAM-1") == 0;
    if (!*per_beam)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: its unit (BUNIT) is '%s'; give a model in JY/PIXEL", fits->path,
                  unit);
cleanup:
    return status;
}

/* Opens one image or several. */
static tess_status open_file(const model_name *name, imager_model *model)
{
    tess_status status = TESS_OK;
    char *single = NULL;
    TESS_TRY(model_cube_open(name, &model->cube, &single));
    if (model->cube)
        model->fits = model->cube->file[0];
    else
        TESS_TRY(tess_fits_open(single, &model->fits));
cleanup:
    tess_free(single);
    return status;
}

void imager_model_close(imager_model *model)
{
    model_cube_free(model->cube);
    model->cube = NULL;
}

tess_status imager_model_open(const model_name *name, const tess_fits_pixels *pixels,
                              double ra_rad, double dec_rad, double scale_rad,
                              imager_model *model)
{
    tess_status status = TESS_OK;
    *model = (imager_model){.scale = 1};
    if (name->path)
        TESS_TRY(open_file(name, model));
    else
        tess_fits_open_pixels(pixels, ra_rad, dec_rad, &model->fits);
    TESS_TRY(tess_fits_check_j2000(&model->fits));
    tess_fits_settle(&model->fits, ra_rad, dec_rad);
    const tess_fits_model *fits = &model->fits;
    const double scale = fits->scale_y_rad;
    if (!(scale > 0) || !(fits->scale_x_rad < 0) ||
        fabs(fits->scale_x_rad + scale) > PIXEL_TOLERANCE * scale / (double)fits->nx)
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: its pixels must be square, East to the left (CDELT %.6g, %.6g deg)",
            fits->path, fits->scale_x_rad / TESS_RAD_PER_DEG, scale / TESS_RAD_PER_DEG);
    if (scale_rad > 0 &&
        fabs(scale - scale_rad) > POINTING_TOLERANCE * scale / (double)fits->nx)
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: its pixels are %.6g deg wide, the image's %.6g deg; subtract a model "
            "with the pixels of the image",
            fits->path, scale / TESS_RAD_PER_DEG, scale_rad / TESS_RAD_PER_DEG);
    const double dra = remainder(fits->ra_rad - ra_rad, TESS_TWO_PI) * cos(dec_rad);
    const double apart = hypot(dra, fits->dec_rad - dec_rad);
    if (apart > POINTING_TOLERANCE * scale)
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: the model's reference position lies %.6g deg from the phase centre "
            "of the observation; use a model of this pointing (or --center)",
            fits->path, apart / TESS_RAD_PER_DEG);
    TESS_TRY(check_unit(fits, &model->per_beam));
    TESS_TRY(place_model(model));
    TESS_TRY(check_planes(model));
cleanup:
    if (status != TESS_OK) imager_model_close(model);
    return status;
}

void imager_model_warn(const imager_model *model, tess_comm *comm)
{
    if (model->per_beam && tess_comm_rank(comm) == 0)
        tess_log_warn("%s: its unit is %s; its values are taken as Jy/pixel",
                      model->fits.path, model->fits.unit);
}

bool imager_model_is_on(const imager_model *model, const tess_geom *geom,
                        double accuracy)
{
    const tess_geom *own = &model->geom;
    const double pixels = (double)(geom->nx > geom->ny ? geom->nx : geom->ny);
    if (own->nx != geom->nx || own->ny != geom->ny || model->cube) return false;
    /* A baseline is shorter than half a wavelength per pixel, so that a shift of pixels
     * by `place` turns a phase by at most this much. */
    const double place = fmax(fabs(own->l0 - geom->l0), fabs(own->m0 - geom->m0)) +
                         0.5 * pixels * fabs(own->scale_rad - geom->scale_rad);
    return 0.5 * TESS_TWO_PI * place / geom->scale_rad < 0.1 * accuracy;
}

/* ---- model to grid ---- */

/* Sums over those pixels of a model that this rank has. */
typedef struct model_sums {
    double flux_jy;    /* sum of the magnitudes of pixels */
    double largest_jy; /* largest magnitude of a pixel */
} model_sums;

static void add_pixels(const double *value, int64_t count, model_sums *sums)
{
    for (int64_t i = 0; i < count; ++i) {
        sums->flux_jy += fabs(value[i]);
        sums->largest_jy = fmax(sums->largest_jy, fabs(value[i]));
    }
}

enum { BLOCK_ROWS = 16 }; /* rows that a thread reads at a time */

/* Some rows of a Stokes plane. */
typedef struct model_block {
    int stokes;
    int64_t row, num_rows;
    int64_t first; /* this rank's first row */
} model_block;

/* The width of what is read of a model: its own, also where a target has a part. */
static int64_t read_width(const imager_job *job, const imager_model *model)
{
    return model->parts.num > 0 ? model->fits.nx : job->geom.nx;
}

/* Takes the part of the target at work out of a row of the model, in place, and weighs
 * it; weight[nx] is work memory. */
static tess_status take_part(const imager_job *job, const imager_model *model,
                             int64_t row, double *pixel, double *weight)
{
    tess_status status = TESS_OK;
    const imager_parts *parts = &model->parts;
    const int target = job->targets.aim;
    if (parts->num == 0) return TESS_OK;
    TESS_TRY(parts->weigh(parts->context, target, row, weight));
    const double *from = pixel + parts->first[target][0];
    for (int64_t i = 0; i < job->geom.nx; ++i)
        pixel[i] = fabs(weight[i]) > 0 ? weight[i] * from[i] : 0;
cleanup:
    return status;
}

/* Loads a block of rows onto the planes, and adds its pixels to `sums`. `value` has
 * room for one row more than the block. */
static tess_status load_rows(const imager_job *job, const imager_model *model,
                             tess_planes *planes, const model_block *block,
                             double *value, model_sums *sums)
{
    tess_status status = TESS_OK;
    const int64_t nx = job->geom.nx, real_bytes = job->plan->is_double ? 8 : 4;
    const int64_t row = block->row, num_rows = block->num_rows;
    const int64_t width = read_width(job, model);
    const int64_t above =
        model->parts.num > 0 ? model->parts.first[job->targets.aim][1] : 0;
    const int plane = model->stokes_index[model->stokes[block->stokes] - 1];
    double *correction = value + num_rows * width;
    TESS_TRY(model->cube ? model_cube_read(model->cube, model->part, plane, above + row,
                                           num_rows, value)
                         : model_pixels_read(&model->fits, plane, 0, above + row,
                                             num_rows, value));
    for (int64_t k = 0; k < num_rows; ++k) {
        double *pixel = value + k * width;
        TESS_TRY(take_part(job, model, row + k, pixel, correction));
        add_pixels(pixel, nx, sums);
        imager_model_put_row(job, model->scale, row + k, pixel, correction,
                             (char *)tess_planes_image(planes, block->stokes) +
                                 (row + k - block->first) * nx * real_bytes);
    }
cleanup:
    return status;
}

/* Loads block k of the rows of all Stokes planes. `value` has room for the rows of a
 * block and one more. */
static tess_status load_block(const imager_job *job, const imager_model *model,
                              tess_planes *planes, int64_t k, double *value,
                              model_sums *sums)
{
    int64_t first, count;
    tess_planes_rows(planes, &first, &count);
    const int64_t parts = (count + BLOCK_ROWS - 1) / BLOCK_ROWS;
    const int64_t at = k % parts * BLOCK_ROWS;
    const model_block block = {.stokes = (int)(k / parts),
                               .row = first + at,
                               .num_rows =
                                   count - at < BLOCK_ROWS ? count - at : BLOCK_ROWS,
                               .first = first};
    return load_rows(job, model, planes, &block, value, sums);
}

/* Loads this rank's rows of every Stokes plane from the file, and sums their pixels. */
static tess_status load_model(const imager_job *job, const imager_model *model,
                              tess_planes *planes, model_sums *sums)
{
    tess_status status = TESS_OK;
    int64_t first, count;
    double flux_jy = 0, largest_jy = 0;
    tess_planes_rows(planes, &first, &count);
    const int64_t parts = (count + BLOCK_ROWS - 1) / BLOCK_ROWS;
#pragma omp parallel num_threads(job->layout->threads) \
        reduction(+ : flux_jy) reduction(max : largest_jy)
    {
        tess_status own = TESS_OK;
        model_sums mine = {0};
        double *value =
            tess_alloc((BLOCK_ROWS + 1) * read_width(job, model), sizeof *value);
        if (!value)
            own = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                    "model rows");
#pragma omp for schedule(dynamic)
        for (int64_t k = 0; k < model->num_stokes * parts; ++k)
            if (own == TESS_OK) own = load_block(job, model, planes, k, value, &mine);
        tess_free(value);
        flux_jy += mine.flux_jy;
        largest_jy = mine.largest_jy;
        if (own != TESS_OK) {
#pragma omp critical(tess_model_rows)
            status = own;
        }
    }
    *sums = (model_sums){flux_jy, largest_jy};
    return status;
}

/* Refuses a model of too much flux, and chooses the scale
 * of its values. Collective. */
static tess_status check_model(const imager_job *job, imager_model *model,
                               const tess_planes *planes, model_sums *sums)
{
    tess_status status = TESS_OK;
    int64_t first, rows;
    tess_planes_rows(planes, &first, &rows);
    TESS_TRY(tess_comm_allreduce_i64(job->comm, &rows, 1, TESS_SUM));
    TESS_TRY(tess_comm_allreduce_f64(job->comm, &sums->flux_jy, 1, TESS_SUM));
    TESS_TRY(tess_comm_allreduce_f64(job->comm, &sums->largest_jy, 1, TESS_MAX));
    model->is_checked = true;
    model->scale = tess_scale_for(sums->largest_jy, job->plan->is_double);
    /* rows are counted more than once if several groups of ranks transform planes */
    const double share = (double)job->geom.ny / (double)rows;
    if (share * sums->flux_jy > MOST_FLUX_JY)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: pixels add up to %.3g Jy; predictions are made of at most %.0e",
                  model->fits.path, share * sums->flux_jy, MOST_FLUX_JY);
cleanup:
    return status;
}

/* Loads a model. Its scale is chosen from its pixels: the first time it is loaded
 * without a scale, and again if it turns out to need one. */
tess_status imager_model_load(const imager_job *job, imager_model *model,
                              tess_planes *planes)
{
    tess_status status = TESS_OK;
    model_sums sums;
    TESS_TRY(tess_comm_agree(job->comm, load_model(job, model, planes, &sums)));
    if (!model->is_checked) {
        TESS_TRY(check_model(job, model, planes, &sums));
        if (model->scale != 1)
            TESS_TRY(tess_comm_agree(job->comm, load_model(job, model, planes, &sums)));
    }
    TESS_TRY(
        tess_comm_agree(job->comm, imager_model_place(job, planes, model->num_stokes)));
cleanup:
    return status;
}

tess_status imager_model_weigh(const imager_job *job, const imager_model *model,
                               const tess_rows *rows)
{
    tess_status status = TESS_OK;
    double *weight = tess_alloc(rows->nx, sizeof *weight);
    if (!weight) TESS_FAIL(TESS_ERR_ALLOC, "weights of a part of a model");
    for (int64_t row = 0; row < rows->num_rows; ++row) {
        double *pixel = tess_rows_at(rows, row * rows->nx);
        TESS_TRY(model->parts.weigh(model->parts.context, job->targets.aim,
                                    rows->row_first + row, weight));
        for (int64_t i = 0; i < rows->nx; ++i)
            pixel[i] = fabs(weight[i]) > 0 ? weight[i] * pixel[i] : 0;
    }
cleanup:
    tess_free(weight);
    return status;
}

/* Loads all parts, and adds up their sums. Local. */
static tess_status load_all_parts(imager_job *job, const imager_model *model,
                                  model_sums *sums)
{
    tess_status status = TESS_OK;
    *sums = (model_sums){0};
    for (int k = 0; k < model->parts.num; ++k) {
        model_sums own;
        imager_job_aim(job, k);
        TESS_TRY(load_model(job, model, job->planes, &own));
        sums->flux_jy += own.flux_jy;
        sums->largest_jy = fmax(sums->largest_jy, own.largest_jy);
    }
cleanup:
    imager_job_aim(job, 0);
    return status;
}

tess_status imager_model_load_parts(imager_job *job, imager_model *model)
{
    tess_status status = TESS_OK;
    model_sums sums;
    TESS_TRY(tess_comm_agree(job->comm, load_all_parts(job, model, &sums)));
    if (!model->is_checked) {
        TESS_TRY(check_model(job, model, job->planes, &sums));
        if (model->scale != 1)
            TESS_TRY(tess_comm_agree(job->comm, load_all_parts(job, model, &sums)));
    }
    for (int k = 0; k < model->parts.num && status == TESS_OK; ++k) {
        imager_job_aim(job, k);
        job->model.scale = 1; /* the scale is the model's */
        status = imager_model_place(job, job->planes, model->num_stokes);
    }
    imager_job_aim(job, 0);
    TESS_TRY(tess_comm_agree(job->comm, status));
cleanup:
    return status;
}
