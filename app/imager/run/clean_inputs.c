/* Reads masks and models of earlier runs, and compares their pixels with the images'.
 */
#include "clean_inputs.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "model_cube.h"
#include "pixel_places.h"
#include "tess_casa_image.h"
#include "tess_mem.h"

/* Rows of a mask that are read at a time: about a tile of an image of CASA. */
enum { ROWS_AT_ONCE = 64 };

static tess_status check_pixels(const image_run *run, const tess_fits_model *fits)
{
    const tess_image_opts *opts = run->opts;
    const tess_fits_pixels pixels = {
        .nx = opts->nx, .ny = opts->ny, .num_stokes = 1, .scale_rad = opts->scale_rad};
    tess_fits_model image;
    tess_fits_open_pixels(&pixels, run->info->ra_rad, run->info->dec_rad, &image);
    image.crpix_x += run->info->turn[0] / opts->scale_rad;
    image.crpix_y -= run->info->turn[1] / opts->scale_rad;
    return pixel_places_check(fits, &image, "the image");
}

/* ---- masks ---- */

/* An image in a file of either format. */
typedef struct mask_file {
    tess_fits_model header;
    tess_casa_image *casa; /* NULL: FITS */
} mask_file;

static void close_mask(mask_file *mask)
{
    tess_casa_image_close(mask->casa);
}

/* Local. */
static tess_status open_mask(const image_run *run, mask_file *mask)
{
    tess_status status = TESS_OK;
    const tess_clean_choice *choice = &run->opts->clean;
    const tess_fits_model *header = &mask->header;
    const int64_t channels = run->opts->channels_out;
    *mask = (mask_file){0};
    TESS_TRY(choice->casa_mask
                 ? tess_casa_image_open(choice->casa_mask, &mask->header, &mask->casa)
                 : tess_fits_open(choice->fits_mask, &mask->header));
    TESS_TRY(check_pixels(run, header));
    if (header->num_freq != 1 && header->num_freq != channels)
        TESS_FAIL(
            TESS_ERR_INPUT,
            "%s: it has %d frequency planes; give one, or one for each of the %lld "
            "output channels",
            header->path, header->num_freq, (long long)channels);
cleanup:
    return status;
}

static tess_status read_rows(const mask_file *mask, int stokes, int freq, int64_t first,
                             int64_t count, double *out)
{
    return mask->casa
               ? tess_casa_image_read(mask->casa, stokes, freq, first, count, out)
               : tess_fits_read(&mask->header, stokes, freq, first, count, out);
}

/* The plane of a polarisation, or the first one. */
static int plane_of(const tess_fits_model *fits, int stokes)
{
    for (int k = 0; k < fits->num_stokes && k < 4; ++k)
        if (fits->stokes[k] == stokes) return k;
    return 0;
}

/* Local. */
static tess_status read_mask(const image_run *run, int64_t channel, int pol,
                             int64_t row_first, int64_t num_rows, uint8_t **out)
{
    tess_status status = TESS_OK;
    mask_file mask = {0};
    const int64_t nx = run->opts->nx;
    double *rows = tess_alloc(ROWS_AT_ONCE * nx, sizeof *rows);
    uint8_t *set = tess_alloc_zero(num_rows * nx, sizeof *set);
    if (!rows || !set) TESS_FAIL(TESS_ERR_ALLOC, "rows of a mask");
    TESS_TRY(open_mask(run, &mask));
    const int plane = plane_of(&mask.header, run->pol[pol].code);
    const int freq = mask.header.num_freq > 1 ? (int)channel : 0;
    for (int64_t j = 0; j < num_rows; j += ROWS_AT_ONCE) {
        const int64_t count = j + ROWS_AT_ONCE < num_rows ? ROWS_AT_ONCE : num_rows - j;
        TESS_TRY(read_rows(&mask, plane, freq, row_first + j, count, rows));
        for (int64_t k = 0; k < count * nx; ++k)
            set[j * nx + k] = !isnan(rows[k]) && (rows[k] < 0 || rows[k] > 0);
    }
    *out = set;
    set = NULL;
cleanup:
    close_mask(&mask);
    tess_free(rows);
    tess_free(set);
    return status;
}

static bool has_mask(const image_run *run)
{
    return run->opts->clean.fits_mask || run->opts->clean.casa_mask;
}

tess_status clean_inputs_mask(const image_run *run, int64_t channel, int pol,
                              int64_t row_first, int64_t num_rows, uint8_t **mask)
{
    *mask = NULL;
    if (!has_mask(run)) return TESS_OK;
    return tess_comm_agree(run->comm,
                           read_mask(run, channel, pol, row_first, num_rows, mask));
}

/* ---- models ---- */

/* The plane of a model that an image continues. */
typedef struct model_file {
    tess_fits_model single;
    model_cube *cube; /* NULL: that single image */
    int plane, stokes;
} model_file;

static void close_model(model_file *model)
{
    model_cube_free(model->cube);
}

/* The plane of a cube that is nearest to an output channel. */
static tess_status find_plane(const image_run *run, int64_t channel, int pol,
                              model_file *model)
{
    tess_status status = TESS_OK;
    const model_cube *cube = model->cube;
    double freq_hz, width_hz;
    output_table_band(&run->outputs, run->info, channel, &freq_hz, &width_hz);
    model->plane = model_cube_nearest(cube, freq_hz);
    while (model->stokes < cube->num_stokes &&
           cube->stokes[model->stokes] != run->pol[pol].code)
        ++model->stokes;
    if (model->stokes == cube->num_stokes)
        TESS_FAIL(TESS_ERR_INPUT, "%s: it lacks a Stokes parameter of the images",
                  cube->file[0].path);
cleanup:
    return status;
}

/* The image of the channel, where images of channels are written, or the cube. Where it
 * is not there, the other one will do, or a set of other channels. Local. */
static tess_status open_model(const image_run *run, int64_t interval, int64_t channel,
                              int pol, model_file *model)
{
    tess_status status = TESS_OK;
    char *name = NULL;
    char *path = image_files_name(&run->output, interval, channel, pol, IMAGE_MODEL);
    *model = (model_file){0};
    if (!path) TESS_FAIL(TESS_ERR_ALLOC, "name of a model");
    name = image_files_stem(&run->output, interval);
    if (!name) TESS_FAIL(TESS_ERR_ALLOC, "name of a model");
    const tess_image_beside *beside = &run->opts->beside;
    const bool several = beside->cube || run->opts->channels_out > 1;
    /* WSClean has a file for each channel, and misses one that is not there */
    const bool other = several && !beside->as_wsclean && access(path, F_OK) != 0;
    if (beside->cube || other) {
        TESS_TRY(model_cube_open_set(name, &model->cube));
        TESS_TRY(check_pixels(run, &model->cube->file[0]));
        TESS_TRY(find_plane(run, channel, pol, model));
    } else {
        TESS_TRY(tess_fits_open(path, &model->single));
        TESS_TRY(check_pixels(run, &model->single));
    }
cleanup:
    if (status != TESS_OK) close_model(model);
    free(path); /* from asprintf */
    free(name);
    return status;
}

/* Local. */
static tess_status read_model(const image_run *run, int64_t interval, int64_t channel,
                              int pol, imager_rows *rows)
{
    tess_status status = TESS_OK;
    model_file model = {0};
    double *value = rows->value;
    TESS_TRY(open_model(run, interval, channel, pol, &model));
    TESS_TRY(model.cube ? model_cube_read(model.cube, model.plane, model.stokes,
                                          rows->row_first, rows->num_rows, value)
                        : tess_fits_read(&model.single, 0, 0, rows->row_first,
                                         rows->num_rows, value));
    for (int64_t k = 0; k < rows->num_rows * rows->nx; ++k)
        if (!isfinite(value[k])) value[k] = 0;
cleanup:
    close_model(&model);
    return status;
}

tess_status clean_inputs_model(const image_run *run, tess_comm *comm, int64_t interval,
                               int64_t channel, int pol, imager_rows *rows)
{
    return tess_comm_agree(comm, read_model(run, interval, channel, pol, rows));
}

/* ---- before data are read ---- */

/* Say once which planes of a cube are continued. */
static tess_status tell_model(const image_run *run, const model_cube *cube)
{
    tess_status status = TESS_OK;
    const int64_t channels = run->opts->channels_out;
    double width_hz, *freq_hz = tess_alloc(channels, sizeof *freq_hz);
    if (!freq_hz) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    for (int64_t c = 0; c < channels; ++c)
        output_table_band(&run->outputs, run->info, c, &freq_hz[c], &width_hz);
    TESS_TRY(model_cube_check(cube, freq_hz, channels, true));
cleanup:
    tess_free(freq_hz);
    return status;
}

static tess_status check_model(const image_run *run, int64_t interval, int64_t channel,
                               int pol)
{
    tess_status status = TESS_OK;
    model_file model = {0};
    TESS_TRY(open_model(run, interval, channel, pol, &model));
    if (model.cube && interval == 0 && channel == 0 && pol == 0)
        TESS_TRY(tell_model(run, model.cube));
cleanup:
    close_model(&model);
    return status;
}

static tess_status check_models(const image_run *run)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    for (int64_t t = 0; t < opts->intervals_out; ++t)
        for (int64_t c = 0; c < opts->channels_out; ++c)
            for (int p = 0; p < run->num_pol; ++p)
                TESS_TRY(check_model(run, t, c, p));
cleanup:
    return status;
}

static tess_status check_all(const image_run *run)
{
    tess_status status = TESS_OK;
    mask_file mask = {0};
    if (has_mask(run)) TESS_TRY(open_mask(run, &mask));
    if (run->opts->clean.continues || run->opts->clean.only_model)
        TESS_TRY(check_models(run));
cleanup:
    close_mask(&mask);
    return status;
}

tess_status clean_inputs_check(const image_run *run)
{
    const bool first = tess_comm_rank(run->comm) == 0;
    return tess_comm_agree(run->comm, first ? check_all(run) : TESS_OK);
}
