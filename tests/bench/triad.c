/* Memory bandwidth of this machine on a number of cores: a[i] = b[i] + s c[i] over
 * arrays much larger than the caches, each thread on arrays of its own that it has
 * touched first, as ranks and their threads are. Prints one line of JSON: GB/s of the
 * three arrays as the program sees them (24 bytes an element; the cache's reading of
 * what it is about to overwrite is not counted), best of the rounds, as in McCalpin's
 * STREAM.
 *
 * usage: triad THREADS [MIB]     arrays of MIB a thread, default 64
 *                                compile with: cc -O3 -march=native -pthread triad.c */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 12, MAX_THREADS = 1024 };

typedef struct job {
    long count; /* elements of each array */
    pthread_barrier_t *together;
    double *begin_s, *end_s; /* [ROUNDS], of this thread */
    int failed;
} job;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void triad(double *restrict a, const double *restrict b,
                  const double *restrict c, long count)
{
    for (long i = 0; i < count; ++i)
        a[i] = b[i] + 3.0 * c[i];
}

static void *work(void *argument)
{
    job *mine = argument;
    double *a = malloc(3 * (size_t)mine->count * sizeof *a);
    mine->failed = a == NULL;
    for (long i = 0; a && i < 3 * mine->count; ++i)
        a[i] = (double)(i % 7);
    for (int round = 0; round < ROUNDS; ++round) {
        pthread_barrier_wait(mine->together);
        mine->begin_s[round] = now();
        if (a) triad(a, a + mine->count, a + 2 * mine->count, mine->count);
        mine->end_s[round] = now();
        __asm__ volatile("" : : "r"(a) : "memory");
    }
    free(a);
    return NULL;
}

/* GB/s of the best round, from its first thread's begin to its last one's end. */
static double best_rate(const job *jobs, int threads)
{
    double best = 0;
    for (int round = 1; round < ROUNDS; ++round) { /* the first one warms up */
        double begin = jobs[0].begin_s[round], end = jobs[0].end_s[round];
        for (int t = 1; t < threads; ++t) {
            if (jobs[t].begin_s[round] < begin) begin = jobs[t].begin_s[round];
            if (jobs[t].end_s[round] > end) end = jobs[t].end_s[round];
        }
        const double rate = 24e-9 * (double)jobs[0].count * threads / (end - begin);
        if (rate > best) best = rate;
    }
    return best;
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    const long mib = argc > 2 ? atol(argv[2]) : 64;
    static pthread_t thread[MAX_THREADS];
    static job jobs[MAX_THREADS];
    static double begin_s[MAX_THREADS][ROUNDS], end_s[MAX_THREADS][ROUNDS];
    pthread_barrier_t together;
    if (threads < 1 || threads > MAX_THREADS || mib < 1) {
        fprintf(stderr, "usage: triad THREADS [MIB]\n");
        return 2;
    }
    if (pthread_barrier_init(&together, NULL, (unsigned)threads) != 0) return 1;
    for (int t = 0; t < threads; ++t) {
        jobs[t] = (job){mib << 17, &together, begin_s[t], end_s[t], 0};
        if (pthread_create(&thread[t], NULL, work, &jobs[t]) != 0) return 1;
    }
    int failed = 0;
    for (int t = 0; t < threads; ++t) {
        pthread_join(thread[t], NULL);
        failed = failed || jobs[t].failed;
    }
    pthread_barrier_destroy(&together);
    if (failed) {
        fprintf(stderr, "triad: no memory for 3 arrays of %ld MiB a thread\n", mib);
        return 1;
    }
    printf("{\"threads\": %d, \"gb_per_s\": %.4g}\n", threads,
           best_rate(jobs, threads));
    return 0;
}
