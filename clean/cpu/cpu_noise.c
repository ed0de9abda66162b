/* Measures the noise of an image: the median absolute deviation and the root mean
 * square, which are exactly the same on any number of ranks; and the noise of channels.
 */
#include "cpu_noise.h"

#include <math.h>
#include <stdlib.h>

#include "row_deviation.h"
#include "tess_exact.h"
#include "tess_mem.h"
#include "tess_omp.h"
#include "tess_real.h"

tess_status cpu_deviation(const clean_work *work, const void *rows, clean_noise *noise)
{
    tess_status status = TESS_OK;
    const row_pixels pixels = {.value = rows,
                               .is_double = work->is_double,
                               .count = work->pixels,
                               .is_blank = work->is_nan,
                               .threads = work->setup->opts.threads};
    double middle, deviation;
    *noise = (clean_noise){0, 0};
    TESS_TRY(row_deviation(work->setup->comm, &pixels, &middle, &deviation));
    *noise = (clean_noise){ROW_SIGMA_PER_DEVIATION * deviation, middle};
cleanup:
    return status;
}

tess_status cpu_rms(const clean_work *work, double *rms)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    tess_comm *comm = setup->comm;
    const int threads = setup->opts.threads;
    int64_t count = work->num_valid;
    tess_exact *sum = tess_alloc_zero(threads, sizeof *sum);
    TESS_TRY(tess_comm_agree(comm, sum ? TESS_OK : TESS_ERR_ALLOC));
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t k = 0; k < work->pixels; ++k) {
        double mean = 0;
        if (work->is_nan[k]) continue;
        for (int i = 0; i < setup->images.num_images; ++i)
            if (setup->join.share[i] > 0)
                mean += setup->join.share[i] * tess_rows_pixel(&work->room.view[i], k);
        tess_exact_add(&sum[tess_omp_thread()], mean * mean);
    }
    for (int t = 1; t < threads; ++t)
        for (int w = 0; w < TESS_EXACT_WORDS; ++w)
            sum->word[w] += sum[t].word[w];
    TESS_TRY(tess_comm_allreduce_i64(comm, &count, 1, TESS_SUM));
    TESS_TRY(tess_comm_allreduce_i64(comm, sum->word, TESS_EXACT_WORDS, TESS_SUM));
    *rms = count > 0 ? sqrt(tess_exact_value(sum) / (double)count) : 0;
cleanup:
    tess_free(sum);
    return status;
}

/* ---- of channels ---- */

/* Values of a pixel's channels differ from one another by noise and sidelobes. That
 * tells slopes of components from chance. Most pixels of an image have no source. At a
 * pixel without one, Σ w (value − mean)² / (K − 1) of K channels is expected to be s²,
 * and the lower quartile over pixels is the same for any source. It is taken from a few
 * pixels at regular distances, the same on any number of ranks. */

/* Pixels that are looked at, and the value of a pixel without data. */
enum { SAMPLES = 4096, BLANK = -1 };

/* The quartile of χ² over its number of degrees of freedom (Wilson & Hilferty 1931,
 * PNAS 17, 684), whose mean is 1. */
static double quartile_of_chi2(int degrees)
{
    static const double QUARTILE = -0.674489750196082; /* of a Gaussian */
    const double part = 2.0 / (9.0 * degrees), root = 1 - part + QUARTILE * sqrt(part);
    return root * root * root;
}

static int count_channels(const clean_work *work, int pol)
{
    const clean_join *join = &work->setup->join;
    int count = 0;
    for (int c = 0; c < join->num_channels; ++c)
        count += cpu_has_data(work, c * join->num_pol + pol);
    return count;
}

/* Σ w (value − mean)² over the channels of a pixel. */
static double spread_of(const clean_work *work, const cpu_slot *slot, int pol,
                        int64_t pixel)
{
    const clean_join *join = &work->setup->join;
    double sum = 0, weights = 0, squares = 0;
    for (int c = 0; c < join->num_channels; ++c) {
        const int k = c * join->num_pol + pol;
        if (!cpu_has_data(work, k)) continue;
        sum += join->weight[k] * tess_real_at(slot->image[k], work->is_double, pixel);
        weights += join->weight[k];
    }
    for (int c = 0; c < join->num_channels; ++c) {
        const int k = c * join->num_pol + pol;
        if (!cpu_has_data(work, k)) continue;
        const double off =
            tess_real_at(slot->image[k], work->is_double, pixel) - sum / weights;
        squares += join->weight[k] * off * off;
    }
    return squares;
}

/* Takes this rank's share of the samples; others are 0. Steps are odd, so that samples
 * lie in all columns of usual images. */
static void take_samples(const clean_work *work, const cpu_slot *slot, int pol,
                         double *sample)
{
    const tess_clean_images *images = &work->setup->images;
    const int64_t step = images->nx * images->ny / SAMPLES | 1;
    const int64_t first = images->row_first * images->nx;
    for (int k = 0; k < SAMPLES; ++k) {
        const int64_t at = k * step - first;
        sample[k] = 0;
        if (at >= 0 && at < work->pixels)
            sample[k] = work->is_nan[at] ? BLANK : spread_of(work, slot, pol, at);
        else if (k * step >= images->nx * images->ny && images->row_first == 0)
            sample[k] = BLANK;
    }
}

static int by_value(const void *a, const void *b)
{
    const double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* The lower quartile of the samples that are not blank; 0 if there are none. */
static double quartile(double *sample)
{
    int blank = 0;
    qsort(sample, SAMPLES, sizeof *sample, by_value);
    while (blank < SAMPLES && sample[blank] < 0)
        ++blank;
    return blank < SAMPLES ? sample[blank + (SAMPLES - blank) / 4] : 0;
}

tess_status cpu_channel_noise(const clean_work *work, const cpu_slot *slot,
                              double *noise)
{
    tess_status status = TESS_OK;
    const clean_join *join = &work->setup->join;
    double *sample = NULL;
    for (int p = 0; p < join->num_pol; ++p)
        noise[p] = 0;
    if (join->spectrum.kind != TESS_CLEAN_LOG_POLYNOMIAL) return TESS_OK;
    sample = tess_alloc(SAMPLES, sizeof *sample);
    TESS_TRY(tess_comm_agree(work->setup->comm, sample ? TESS_OK : TESS_ERR_ALLOC));
    for (int p = 0; p < join->num_pol; ++p) {
        const int degrees = count_channels(work, p) - 1;
        if (degrees < 1) continue;
        take_samples(work, slot, p, sample);
        TESS_TRY(tess_comm_allreduce_f64(work->setup->comm, sample, SAMPLES, TESS_SUM));
        noise[p] = quartile(sample) / (degrees * quartile_of_chi2(degrees));
    }
cleanup:
    tess_free(sample);
    return status;
}
