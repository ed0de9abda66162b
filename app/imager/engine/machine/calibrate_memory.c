/* Measures the rates of memory for several numbers of threads. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "tess_bricks.h"
#include "tess_calibrate.h"
#include "tess_decode.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_processors.h"

/* Bytes that are copied: more than most processors' caches hold, and few enough that
 * copying is quick. */
static const int64_t BYTES = 24 << 20;

/* Each rate is measured so often, and the best one counts. */
enum { TIMES = 3 };

/* A rate of this share of the highest rate counts as equal. The fewest threads that
 * reach it are enough. */
static const double ENOUGH = 0.95;

/* Bytes that a thread touches at a time: a huge page. */
enum { TOUCHED_BYTES = 2 << 20 };

/* First byte of a thread's part. */
static int64_t part(int thread, int threads)
{
    return BYTES / threads * thread;
}

typedef struct moment {
    double wall_s, cpu_s;
} moment;

static moment moment_now(void)
{
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return (moment){tess_time_now(), (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec};
}

/* Raises a rate to that at which the system now gives new memory: the first bytes of
 * pages that come from the system, not from what tess_keep.h has kept. Time that the
 * threads wait for a core does not count: it is due to other work, and another run, or
 * its plan, would find another rate. */
static tess_status touch_rate(int64_t bytes, int threads, double *rate)
{
    const size_t mapped = (size_t)bytes + TOUCHED_BYTES;
    char *all =
        mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return TESS_ERR_ALLOC;
    char *memory = all + TOUCHED_BYTES - (uintptr_t)all % TOUCHED_BYTES;
    madvise(all, mapped, MADV_HUGEPAGE); /* a hint: may be ignored */
    const moment start = moment_now();
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t k = 0; k < bytes; k += TOUCHED_BYTES)
        memset(memory + k, 1, TOUCHED_BYTES);
    const moment end = moment_now();
    const double together = fmin(threads, tess_processors());
    const double seconds =
        fmin(end.wall_s - start.wall_s, (end.cpu_s - start.cpu_s) / fmax(together, 1));
    *rate = fmax(*rate, (double)bytes / seconds);
    munmap(all, mapped);
    return TESS_OK;
}

double tess_calibrate_touch(int threads, double otherwise)
{
    const int64_t least = 4 * (int64_t)TOUCHED_BYTES;
    const int64_t bytes = threads > 4 ? threads * (int64_t)TOUCHED_BYTES : least;
    double rate = 0;
    return touch_rate(bytes, threads, &rate) == TESS_OK ? rate : otherwise;
}

/* ---- threads together ---- */

enum { CHUNK_BYTES = 1 << 20 };

/* The arrays that threads work on. */
typedef struct traffic_memory {
    char *from, *to; /* BYTES each */
} traffic_memory;

/* On a busy machine, fewer threads would seem to suffice than memory allows, for as
 * long as the file is kept. So times count only if threads had this share of their
 * cores. */
static const double AT_WORK = 0.85;

/* Raises a rate to that of the work since `start`, if the threads were not disturbed.
 */
static void note_rate(double amount, moment start, int threads, double *rate)
{
    const moment now = moment_now();
    const double wall = now.wall_s - start.wall_s;
    if (now.cpu_s - start.cpu_s < AT_WORK * threads * wall) return;
    *rate = fmax(*rate, amount / wall);
}

/* Raises `*rate` to the rate that `threads` threads reach, if that is higher. */
typedef tess_status traffic_rate(const traffic_memory *memory, int threads,
                                 double *rate);

/* Finds the rate of copying [bytes/s]: each byte is read and written. */
static tess_status copy_rate(const traffic_memory *memory, int threads, double *rate)
{
    const moment start = moment_now();
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int j = 0; j < threads; ++j)
        memcpy(memory->to + part(j, threads), memory->from + part(j, threads),
               (size_t)part(1, threads));
    note_rate(2 * (double)BYTES, start, threads, rate);
    return TESS_OK;
}

/* Number of runs that are sorted, whose bricks are in random order, and number of
 * bricks. */
enum { RUNS = 1 << 19, BRICKS = 4093 };

/* Finds the rate of sorting [runs/s]. */
static tess_status sort_rate(const traffic_memory *memory, int threads, double *rate)
{
    tess_status status = TESS_OK;
    (void)memory;
    tess_brick_list list = {.num_runs = RUNS,
                            .capacity_runs = RUNS,
                            .run = tess_alloc(RUNS, sizeof *list.run),
                            .spare = tess_alloc_zero(RUNS, sizeof *list.spare)};
    if (!list.run || !list.spare) TESS_FAIL(TESS_ERR_ALLOC, "runs to sort");
    for (int64_t k = 0; k < RUNS; ++k)
        list.run[k] = (tess_run){.brick = k * k % BRICKS, .count = 1};
    const moment start = moment_now();
    TESS_TRY(tess_brick_list_sort(&list, threads));
    note_rate(RUNS, start, threads, rate);
cleanup:
    tess_brick_list_free(&list);
    return status;
}

/* Finds the rate of reading [bytes/s]. Bytes of visibilities are decoded in chunks,
 * which pass through a thread's caches as chunks of a file do. */
static tess_status read_rate(const traffic_memory *memory, int threads, double *rate)
{
    tess_status status = TESS_OK;
    const decode_table *decode = decode_table_best();
    const int64_t triples = CHUNK_BYTES / 12, chunks = BYTES / (12 * triples);
    char *buffer = tess_alloc(threads, CHUNK_BYTES);
    if (!buffer) TESS_FAIL(TESS_ERR_ALLOC, "chunks of rows");
    const moment start = moment_now();
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int j = 0; j < threads; ++j)
        for (int64_t k = chunks * j / threads; k < chunks * (j + 1) / threads; ++k) {
            float *vis = (float *)(void *)(memory->to + 12 * triples * k);
            memcpy(buffer + (int64_t)j * CHUNK_BYTES, memory->from + 12 * triples * k,
                   (size_t)(12 * triples));
            decode->triples(buffer + (int64_t)j * CHUNK_BYTES, triples, vis,
                            vis + 2 * triples);
        }
    note_rate((double)BYTES, start, threads, rate);
cleanup:
    tess_free(buffer);
    return status;
}

/* Finds the fewest threads that are as good as the best, and the best rate; 0 if no
 * number of threads was ever undisturbed. */
static tess_status find_enough(traffic_rate *measure, const traffic_memory *memory,
                               int threads, int *enough, double *most)
{
    enum { MOST = 16 };
    tess_status status = TESS_OK;
    double rate[MOST] = {0}; /* rates of 1, 2, 4, … threads, and of all */
    int count = 0, number[MOST];
    bool disturbed = false;
    for (int n = 1; count + 1 < MOST && n < threads; n *= 2)
        number[count++] = n;
    number[count++] = threads;
    *most = 0;
    for (int k = 0; k < count; ++k) {
        for (int time = 0; time < TIMES; ++time)
            TESS_TRY(measure(memory, number[k], &rate[k]));
        *most = fmax(*most, rate[k]);
        disturbed = disturbed || rate[k] == 0;
    }
    *enough = 0;
    for (int k = count - 1; k >= 0 && !disturbed; --k)
        if (rate[k] >= ENOUGH * *most) *enough = number[k];
cleanup:
    return status;
}

tess_status tess_calibrate_memory(int threads, tess_costs *costs)
{
    static traffic_rate *const rate_of[TESS_NUM_TRAFFIC] = {
        [TESS_TRAFFIC_COPY] = copy_rate,
        [TESS_TRAFFIC_SORT] = sort_rate,
        [TESS_TRAFFIC_READ] = read_rate};
    tess_status status = TESS_OK;
    double most[TESS_NUM_TRAFFIC];
    const traffic_memory memory = {.from = tess_alloc_zero(BYTES, 1),
                                   .to = tess_alloc_zero(BYTES, 1)};
    if (!memory.from || !memory.to) TESS_FAIL(TESS_ERR_ALLOC, "memory to measure");
    costs->touch_bytes_s = 0;
    for (int k = 0; k < TIMES; ++k)
        TESS_TRY(touch_rate(BYTES, threads, &costs->touch_bytes_s));
    for (int k = 0; k < TESS_NUM_TRAFFIC; ++k)
        TESS_TRY(find_enough(rate_of[k], &memory, threads, &costs->enough_threads[k],
                             &most[k]));
    if (most[TESS_TRAFFIC_COPY] > 0) costs->copy_bytes_s = most[TESS_TRAFFIC_COPY];
cleanup:
    tess_free(memory.from);
    tess_free(memory.to);
    return status;
}
