/* What memory does for some threads. */
#include <math.h>
#include <string.h>

#include "calibrate.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Beyond the caches of most processors, and little enough to be quick. */
static const int64_t BYTES = 24 << 20;

/* Best of so many. */
enum { TIMES = 3 };

/* So much of the most is as good as the most: fewer threads then do. */
static const double ENOUGH = 0.95;

/* Begin of a thread's part of the bytes. */
static int64_t part(int thread, int threads)
{
    return BYTES / threads * thread;
}

/* Bytes of new memory a second. */
static tess_status touch_rate(int threads, double *rate)
{
    char *memory = tess_alloc(BYTES, 1);
    if (!memory) return TESS_ERR_ALLOC;
    const double start = tess_time_now();
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int k = 0; k < threads; ++k)
        memset(memory + part(k, threads), 1, (size_t)part(1, threads));
    *rate = fmax(*rate, (double)BYTES / (tess_time_now() - start));
    tess_free(memory);
    return TESS_OK;
}

/* Bytes read and written a second by so many threads. */
static double copy_rate(char *to, const char *from, int threads)
{
    double best = 0;
    for (int k = 0; k < TIMES; ++k) {
        const double start = tess_time_now();
#pragma omp parallel for num_threads(threads) schedule(static)
        for (int j = 0; j < threads; ++j)
            memcpy(to + part(j, threads), from + part(j, threads),
                   (size_t)part(1, threads));
        best = fmax(best, 2 * (double)BYTES / (tess_time_now() - start));
    }
    return best;
}

tess_status tess_calibrate_memory(int threads, tess_costs *costs)
{
    enum { MOST = 16 };
    tess_status status = TESS_OK;
    double rate[MOST]; /* of 1, 2, 4, … threads, and of all */
    int count = 0, number[MOST];
    char *from = tess_alloc_zero(BYTES, 1), *to = tess_alloc_zero(BYTES, 1);
    if (!from || !to) TESS_FAIL(TESS_ERR_ALLOC, "memory to measure");
    costs->touch_bytes_s = costs->copy_bytes_s = 0;
    for (int k = 0; k < TIMES; ++k)
        TESS_TRY(touch_rate(threads, &costs->touch_bytes_s));
    for (int n = 1; count + 1 < MOST && n < threads; n *= 2)
        number[count++] = n;
    number[count++] = threads;
    for (int k = 0; k < count; ++k) {
        rate[k] = copy_rate(to, from, number[k]);
        costs->copy_bytes_s = fmax(costs->copy_bytes_s, rate[k]);
    }
    for (int k = count - 1; k >= 0; --k)
        if (rate[k] >= ENOUGH * costs->copy_bytes_s) costs->copy_threads = number[k];
cleanup:
    tess_free(from);
    tess_free(to);
    return status;
}
