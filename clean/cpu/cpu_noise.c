/* Measures the noise of an image: the median absolute deviation and the root mean
 * square, which are exactly the same on any number of ranks; and the noise of channels.
 */
#include "cpu_noise.h"

#include <math.h>

#include "clean_channel_noise.h"
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

/* Takes this rank's share of the samples; others are 0. `value` has room for the images
 * of a pixel. */
static void take_samples(const clean_work *work, const cpu_slot *slot, int pol,
                         double *value, double *sample)
{
    const tess_clean_images *images = &work->setup->images;
    const int64_t step = clean_noise_step(work->setup);
    const int64_t first = images->row_first * images->nx;
    for (int k = 0; k < CLEAN_NOISE_SAMPLES; ++k) {
        const int64_t at = k * step - first;
        sample[k] = 0;
        if (at >= 0 && at < work->pixels) {
            for (int i = 0; i < images->num_images; ++i)
                value[i] = tess_real_at(slot->image[i], work->is_double, at);
            sample[k] = work->is_nan[at]
                            ? CLEAN_NOISE_BLANK
                            : clean_noise_sample(&work->setup->join, pol, value);
        } else if (k * step >= images->nx * images->ny && images->row_first == 0)
            sample[k] = CLEAN_NOISE_BLANK;
    }
}

tess_status cpu_channel_noise(const clean_work *work, const cpu_slot *slot,
                              double *noise)
{
    tess_status status = TESS_OK;
    const clean_join *join = &work->setup->join;
    tess_comm *comm = work->setup->comm;
    double *sample = NULL, *value = NULL;
    for (int p = 0; p < join->num_pol; ++p)
        noise[p] = 0;
    if (join->spectrum.kind != TESS_CLEAN_LOG_POLYNOMIAL) return TESS_OK;
    sample = tess_alloc(CLEAN_NOISE_SAMPLES, sizeof *sample);
    value = tess_alloc(work->setup->images.num_images, sizeof *value);
    TESS_TRY(tess_comm_agree(comm, sample && value ? TESS_OK : TESS_ERR_ALLOC));
    for (int p = 0; p < join->num_pol; ++p) {
        if (!clean_noise_matters(join, p)) continue;
        take_samples(work, slot, p, value, sample);
        TESS_TRY(tess_comm_allreduce_f64(comm, sample, CLEAN_NOISE_SAMPLES, TESS_SUM));
        noise[p] = clean_noise_of(join, p, sample);
    }
cleanup:
    tess_free(sample);
    tess_free(value);
    return status;
}
