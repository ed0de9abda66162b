/* Maps of spectra: the channels' images at one resolution, fitted pixel by pixel. */
#include "spectral_maps.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tess_log.h"
#include "tess_mem.h"
#include "tess_spectrum.h"

/* The images of one polarisation. */
typedef struct spectra {
    const image_run *run;
    const group_channel *channel;
    int num_channels, pol;
    tess_clean_images images;
    double *weight, *freq_hz, *sigma; /* [num_channels] */
    tess_rows *value; /* [num_channels] images with the beam of the mean */
    tess_rows misfit; /* of the pixels: see tess_spectrum_maps */
} spectra;

/* No more pixels than about this are fitted with more terms. */
enum { MOST_TRIED = 4096 };

/* A number of terms is enough if it fits this share of the pixels that are tried. */
static const double ENOUGH = 0.95;

double spectral_maps_bytes(const tess_image_opts *opts, double pixels)
{
    const int maps = image_map_count(opts);
    const double real = opts->gridding.accuracy < TESS_SINGLE_ACCURACY ? 8 : 4;
    return maps > 0 ? pixels * (8 * (double)maps * opts->num_pol +
                                real * (double)opts->channels_out + sizeof(float))
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
        tess_rows_free(&job->value[c]);
    tess_free(job->value);
    tess_free(job->weight);
    tess_free(job->freq_hz);
    tess_free(job->sigma);
    tess_rows_free(&job->misfit);
}

/* Local. */
static tess_status allocate(spectra *job)
{
    tess_status status = TESS_OK;
    const tess_join_choice *join = &job->run->opts->clean.join;
    const tess_rows *rows = &product_of(job, 0, IMAGE_MODEL)->rows;
    job->weight = tess_alloc_zero(job->num_channels, sizeof *job->weight);
    job->freq_hz = tess_alloc_zero(job->num_channels, sizeof *job->freq_hz);
    job->sigma = tess_alloc_zero(job->num_channels, sizeof *job->sigma);
    job->value = tess_alloc_zero(job->num_channels, sizeof *job->value);
    if (!job->weight || !job->freq_hz || !job->sigma || !job->value)
        TESS_FAIL(TESS_ERR_ALLOC, "spectra of images");
    job->misfit = tess_rows_like(rows, TESS_PIXEL_SINGLE);
    TESS_TRY(tess_rows_alloc(&job->misfit));
    job->images = (tess_clean_images){.nx = rows->nx,
                                      .ny = job->run->opts->ny,
                                      .row_first = rows->row_first,
                                      .num_rows = rows->num_rows,
                                      .num_images = job->num_channels,
                                      .weight = job->weight,
                                      .join.spectrum = join->spectrum,
                                      .join.num_terms = join->num_terms,
                                      .join.freq_hz = job->freq_hz,
                                      .join.nu0_hz = majors_reference_hz(job->run)};
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
    tess_rows *image = &job->value[c];
    if (!(job->weight[c] > 0)) return TESS_OK;
    *image = tess_rows_like(&residual->rows, residual->rows.type);
    TESS_TRY(tess_comm_agree(job->run->comm, tess_rows_alloc(image)));
    TESS_TRY(majors_restore(job->run, beam, &product_of(job, c, IMAGE_MODEL)->rows,
                            &residual->rows, image));
cleanup:
    return status;
}

/* Local. */
static tess_status allocate_maps(const spectra *job, image_map *map)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < image_map_count(job->run->opts); ++k) {
        map[k].pol = job->pol;
        map[k].rows =
            tess_rows_of(job->images.nx, job->images.ny, job->images.row_first,
                         job->images.num_rows, TESS_PIXEL_DOUBLE);
        TESS_TRY(tess_rows_alloc_zero(&map[k].rows));
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
        maps.term[k] = map[2 * k].rows;
        maps.error[k] = map[2 * k + 1].rows;
    }
    if (terms > 1) {
        maps.index = map[2 * terms].rows;
        maps.index_error = map[2 * terms + 1].rows;
    }
    maps.misfit = job->misfit;
    return tess_spectrum_fit(&job->images, job->value, job->sigma,
                             job->run->opts->layout.threads, &maps);
}

static bool has_data(const spectra *job)
{
    for (int c = 0; c < job->num_channels; ++c)
        if (job->weight[c] > 0) return true;
    return false;
}

/* ---- too few terms ---- */

/* The numbers of pixels with a spectrum, and of those whose spectrum is not of as many
 * terms as are fitted. Collective. */
static tess_status count_misfits(const spectra *job, int64_t *told, int64_t *poor)
{
    tess_status status = TESS_OK;
    int64_t count[2] = {0, 0};
    tess_rows view = {0};
    TESS_TRY(tess_comm_agree(job->run->comm, tess_rows_view(&job->misfit, &view)));
    for (int64_t k = 0; k < tess_rows_count(&view); ++k) {
        const double misfit = tess_rows_pixel(&view, k);
        count[0] += !isnan(misfit);
        count[1] += misfit > 1;
    }
    TESS_TRY(tess_comm_allreduce_i64(job->run->comm, count, 2, TESS_SUM));
    *told = count[0];
    *poor = count[1];
cleanup:
    tess_rows_free(&view);
    return status;
}

static void tell_misfit(const spectra *job, int64_t told, int64_t poor,
                        const tess_spectrum_trial *trial)
{
    const image_run *run = job->run;
    const int terms = job->images.join.num_terms;
    char name[8] = "", advice[80] = "and no larger number of terms does";
    int enough = terms + 1;
    while (enough <= TESS_CLEAN_MOST_TERMS &&
           (double)trial->fitted[enough] < ENOUGH * (double)trial->tried)
        ++enough;
    if (enough <= TESS_CLEAN_MOST_TERMS)
        snprintf(advice, sizeof advice, "%d terms do", enough);
    if (run->num_pol > 1) tess_pol_name(&run->pol[job->pol], name);
    if (tess_comm_rank(run->comm) == 0)
        tess_log_warn("spectra%s%s: %d term%s not fit %lld of %lld pixels "
                      "within their noise; %s",
                      *name ? " of " : "", name, terms, terms == 1 ? " does" : "s do",
                      (long long)poor, (long long)told, advice);
}

/* Says if spectra have too few terms, and how many would do, which is found by fits of
 * more terms. Collective. */
static tess_status check_terms(const spectra *job)
{
    tess_status status = TESS_OK;
    tess_spectrum_trial trial = {.misfit = &job->misfit};
    int64_t told, poor, sum[TESS_CLEAN_MOST_TERMS + 2];
    TESS_TRY(count_misfits(job, &told, &poor));
    if (poor == 0) return TESS_OK;
    trial.each = 1 + poor / MOST_TRIED;
    TESS_TRY(tess_comm_agree(
        job->run->comm, tess_spectrum_try(&job->images, job->value, job->sigma,
                                          job->run->opts->layout.threads, &trial)));
    memcpy(sum, trial.fitted, sizeof trial.fitted);
    sum[TESS_CLEAN_MOST_TERMS + 1] = trial.tried;
    TESS_TRY(tess_comm_allreduce_i64(job->run->comm, sum, TESS_CLEAN_MOST_TERMS + 2,
                                     TESS_SUM));
    memcpy(trial.fitted, sum, sizeof trial.fitted);
    trial.tried = sum[TESS_CLEAN_MOST_TERMS + 1];
    tell_misfit(job, told, poor, &trial);
cleanup:
    return status;
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
        if (status == TESS_OK) status = tess_rows_blank(&map[k].rows);
    TESS_TRY(tess_comm_agree(job->run->comm, status));
    if (has_data(job)) TESS_TRY(check_terms(job));
cleanup:
    free_values(job);
    return status;
}

/* ---- all ---- */

tess_status spectral_maps_make(const channel_group *group,
                               const struct image_found *beam, image_files *files)
{
    tess_status status = TESS_OK;
    const image_run *run = group->run;
    const int count = image_map_count(run->opts);
    if (count == 0) return TESS_OK;
    files->map = tess_alloc_zero((int64_t)count * run->num_pol, sizeof *files->map);
    TESS_TRY(tess_comm_agree(run->comm, files->map ? TESS_OK : TESS_ERR_ALLOC));
    files->num_maps = count * run->num_pol;
    for (int p = 0; p < run->num_pol; ++p) {
        spectra job = {.run = run,
                       .channel = group->channel,
                       .num_channels = group->num_channels,
                       .pol = p};
        const tess_fits_beam restored = image_found_restored(&beam[p]);
        TESS_TRY(make_pol(&job, &restored, files->map + p * count));
    }
cleanup:
    if (status != TESS_OK) spectral_maps_free(files);
    return status;
}

void spectral_maps_free(image_files *files)
{
    for (int k = 0; k < files->num_maps; ++k)
        tess_rows_free(&files->map[k].rows);
    tess_free(files->map);
    files->map = NULL;
    files->num_maps = 0;
}
