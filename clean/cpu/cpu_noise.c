/* Measures the noise of an image that is distributed by rows: the median absolute
 * deviation and the root mean square, which are exactly the same on any number of
 * ranks. */
#include <math.h>

#include "cpu_work.h"
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

tess_status cpu_rms(const clean_work *work, void *const *residual, double *rms)
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
                mean += setup->join.share[i] *
                        tess_real_at(residual[i], setup->images.rows_are_double, k);
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
