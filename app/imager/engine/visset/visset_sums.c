/* Sums over the samples of a visibility set: weights, and sums from which mean
 * frequencies follow. */
#include "visset_private.h"

#include "tess_exact.h"
#include "tess_real.h"

static void add_weights_exactly(const tess_samples *samples, int threads,
                                tess_exact *sums)
{
    for (int k = 0; k < samples->num_weight; ++k) {
#pragma omp parallel num_threads(threads)
        {
            tess_exact own = {0};
#pragma omp for schedule(static) nowait
            for (int64_t s = 0; s < samples->num_vis; ++s)
                tess_exact_add(
                    &own, tess_samples_weight(samples, s * samples->num_weight + k));
#pragma omp critical(tess_imager_exact)
            for (int j = 0; j < TESS_EXACT_WORDS; ++j)
                sums[k].word[j] += own.word[j];
        }
    }
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Sums and largest weights. */
static void add_weights(const tess_samples *samples, int threads, imager_sums *sums)
{
    for (int k = 0; k < samples->num_weight; ++k) {
        double sum = 0, most = sums->largest[k];
#pragma omp parallel for num_threads(threads) reduction(+ : sum) reduction(max : most) \
    schedule(static)
        for (int64_t s = 0; s < samples->num_vis; ++s) {
            const double weight =
                tess_samples_weight(samples, s * samples->num_weight + k);
            sum += weight;
            most = larger(weight, most);
        }
        if (!sums->exact) sums->weight[k] += sum;
        sums->largest[k] = most;
    }
}

/* Σ W over the weights of a sample. */
static double weight_of(const tess_samples *samples, int64_t sample)
{
    double sum = 0;
    for (int k = 0; k < samples->num_weight; ++k)
        sum += tess_samples_weight(samples, sample * samples->num_weight + k);
    return sum;
}

/* Adds Σ W ν/c of a row. */
static void add_row(const tess_samples *samples, int64_t row, double *sum,
                    tess_exact *exact)
{
    const double *inv_lambda = samples->inv_lambda + samples->chan_base[row];
    for (int64_t c = 0; c < samples->num_chan[row]; ++c) {
        const double value =
            weight_of(samples, samples->vis_first[row] + c) * inv_lambda[c];
        if (exact)
            tess_exact_add(exact, value);
        else
            *sum += value;
    }
}

static void add_frequencies(const tess_samples *samples, int threads, imager_sums *sums)
{
#pragma omp parallel num_threads(threads)
    {
        tess_exact own = {0};
        double sum = 0;
#pragma omp for schedule(static) nowait
        for (int64_t row = 0; row < samples->num_rows; ++row)
            add_row(samples, row, &sum, sums->exact ? &own : NULL);
#pragma omp critical(tess_imager_exact)
        {
            sums->inv_lambda += sum;
            for (int j = 0; sums->exact && j < TESS_EXACT_WORDS; ++j)
                sums->exact[sums->num_weight].word[j] += own.word[j];
        }
    }
}

/* Adds samples that the backend has made. No maps and no exact sums are wanted then. */
static tess_status add_resident(visset *set, const tess_samples *samples)
{
    tess_status status = TESS_OK;
    imager_sums *sums = &set->sums;
    tess_resident *resident = samples->resident;
    tess_samples home = tess_samples_like(samples);
    for (int k = 0; k < samples->num_weight; ++k) {
        sums->weight[k] += resident->sum_weights[k];
        sums->largest[k] = larger(resident->largest_weight[k], sums->largest[k]);
    }
    if (!sums->responses.sum) return TESS_OK;
    home.num_pol = 0; /* responses are sums of weights */
    TESS_TRY(resident->bring_home(resident, &home));
    TESS_TRY(visset_response_add(set, &home));
cleanup:
    tess_samples_free(&home);
    return status;
}

tess_status visset_add_sums(visset *set, const tess_samples *samples)
{
    const imager_job *job = set->job;
    imager_sums *sums = &set->sums;
    if (samples->resident) return add_resident(set, samples);
    if (sums->exact) add_weights_exactly(samples, job->layout->threads, sums->exact);
    add_weights(samples, job->layout->threads, sums);
    if (!set->single) add_frequencies(samples, job->layout->threads, sums);
    imager_map_add(&job->geom, samples, sums->map);
    return visset_response_add(set, samples);
}
