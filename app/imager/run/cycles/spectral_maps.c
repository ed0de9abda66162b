/* Maps of spectra: the channels' images at one resolution, fitted pixel by pixel. */
#include "spectral_maps.h"

#include <string.h>

#include "tess_mem.h"
#include "tess_spectrum.h"

/* The images of one polarisation. */
typedef struct spectra {
    const image_run *run;
    const majors_channel *channel;
    int num_channels, pol;
    tess_clean_images images;
    double *weight, *freq_hz, *sigma, **value; /* [num_channels] */
} spectra;

double spectral_maps_bytes(const tess_image_opts *opts, double pixels)
{
    const int maps = image_map_count(opts);
    return maps > 0 ? pixels * 8 *
                          ((double)maps * opts->num_pol + (double)opts->channels_out)
                    : 0;
}

static const imager_product *product_of(const spectra *job, int channel,
                                        image_kind kind)
{
    return job->channel[channel].product +
           image_kinds_place(&job->run->output.kinds, kind) + job->pol;
}

/* ---- a polarisation ---- */

static void free_values(spectra *job)
{
    for (int c = 0; job->value && c < job->num_channels; ++c)
        tess_free(job->value[c]);
    tess_free(job->value);
    tess_free(job->weight);
    tess_free(job->freq_hz);
    tess_free(job->sigma);
}

/* Local. */
static tess_status allocate(spectra *job)
{
    tess_status status = TESS_OK;
    const tess_join_choice *join = &job->run->opts->clean.join;
    const imager_rows *rows = &product_of(job, 0, IMAGE_MODEL)->rows;
    job->weight = tess_alloc_zero(job->num_channels, sizeof *job->weight);
    job->freq_hz = tess_alloc_zero(job->num_channels, sizeof *job->freq_hz);
    job->sigma = tess_alloc_zero(job->num_channels, sizeof *job->sigma);
    job->value = tess_alloc_zero(job->num_channels, sizeof *job->value);
    if (!job->weight || !job->freq_hz || !job->sigma || !job->value)
        TESS_FAIL(TESS_ERR_ALLOC, "spectra of images");
    job->images = (tess_clean_images){.nx = rows->nx,
                                      .ny = job->run->opts->ny,
                                      .row_first = rows->row_first,
                                      .num_rows = rows->num_rows,
                                      .num_images = job->num_channels,
                                      .weight = job->weight,
                                      .join.spectrum = join->spectrum,
                                      .join.num_terms = join->num_terms,
                                      .join.freq_hz = job->freq_hz};
    for (int c = 0; c < job->num_channels; ++c) {
        job->freq_hz[c] = job->channel[c].freq_hz;
        job->weight[c] = product_of(job, c, IMAGE_RESIDUAL)->sum_weights;
        job->sigma[c] = job->channel[c].found[job->pol].residual_rms_jy;
    }
cleanup:
    return status;
}

/* A channel's image with the beam of the mean. Collective. */
static tess_status restore(spectra *job, int c, const tess_fits_beam *beam)
{
    tess_status status = TESS_OK;
    const imager_product *residual = product_of(job, c, IMAGE_RESIDUAL);
    const int64_t pixels = job->images.num_rows * job->images.nx;
    imager_rows image = residual->rows;
    image.value = NULL;
    if (!(job->weight[c] > 0)) return TESS_OK;
    image.value = tess_alloc(pixels, image.is_double ? sizeof(double) : sizeof(float));
    job->value[c] = tess_alloc(pixels, sizeof **job->value);
    TESS_TRY(tess_comm_agree(job->run->comm,
                             image.value && job->value[c] ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(majors_restore(job->run, beam, &product_of(job, c, IMAGE_MODEL)->rows,
                            &residual->rows, &image));
    imager_pixels(&image, 0, pixels, job->value[c]);
cleanup:
    tess_free(image.value);
    return status;
}

/* Local. */
static tess_status allocate_maps(const spectra *job, image_map *map)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < image_map_count(job->run->opts); ++k) {
        map[k].pol = job->pol;
        TESS_TRY(imager_rows_zero(job->images.row_first, job->images.num_rows,
                                  job->images.nx, &map[k].rows));
    }
cleanup:
    return status;
}

/* map[k] in the order of image_map_kind. Local. */
static tess_status fit(const spectra *job, image_map *map)
{
    const int terms = job->images.join.num_terms;
    tess_spectrum_maps maps;
    memset(&maps, 0, sizeof maps);
    for (int k = 0; k < terms; ++k) {
        maps.term[k] = map[2 * k].rows.value;
        maps.error[k] = map[2 * k + 1].rows.value;
    }
    if (terms > 1) {
        maps.index = map[2 * terms].rows.value;
        maps.index_error = map[2 * terms + 1].rows.value;
    }
    return tess_spectrum_fit(&job->images, (const double *const *)job->value,
                             job->sigma, job->run->opts->layout.threads, &maps);
}

static bool has_data(const spectra *job)
{
    for (int c = 0; c < job->num_channels; ++c)
        if (job->weight[c] > 0) return true;
    return false;
}

/* Maps of one polarisation, blank where it has no data. Collective. */
static tess_status make_pol(spectra *job, const tess_fits_beam *beam, image_map *map)
{
    tess_status status = allocate(job);
    if (status == TESS_OK) status = allocate_maps(job, map);
    TESS_TRY(tess_comm_agree(job->run->comm, status));
    for (int c = 0; c < job->num_channels; ++c)
        TESS_TRY(restore(job, c, beam));
    if (has_data(job)) status = fit(job, map);
    for (int k = 0; !has_data(job) && k < image_map_count(job->run->opts); ++k)
        imager_rows_blank(&map[k].rows);
    TESS_TRY(tess_comm_agree(job->run->comm, status));
cleanup:
    free_values(job);
    return status;
}

/* ---- all ---- */

tess_status spectral_maps_make(const image_run *run, const majors_channel *channel,
                               int num_channels, const struct imager_found *beam,
                               image_files *files)
{
    tess_status status = TESS_OK;
    const int count = image_map_count(run->opts);
    if (count == 0) return TESS_OK;
    files->map = tess_alloc_zero((int64_t)count * run->num_pol, sizeof *files->map);
    TESS_TRY(tess_comm_agree(run->comm, files->map ? TESS_OK : TESS_ERR_ALLOC));
    files->num_maps = count * run->num_pol;
    for (int p = 0; p < run->num_pol; ++p) {
        spectra job = {
            .run = run, .channel = channel, .num_channels = num_channels, .pol = p};
        TESS_TRY(make_pol(&job, &beam[p].beam, files->map + p * count));
    }
cleanup:
    if (status != TESS_OK) spectral_maps_free(files);
    return status;
}

void spectral_maps_free(image_files *files)
{
    for (int k = 0; k < files->num_maps; ++k)
        imager_rows_free(&files->map[k].rows);
    tess_free(files->map);
    files->map = NULL;
    files->num_maps = 0;
}
