/* Largest rate of single- and double-precision fused multiply-adds of this machine, for
 * the benches to relate kernels to. Prints one line of JSON.
 *
 * usage: fma_peak THREADS     compile with: cc -O3 -march=native -pthread fma_peak.c
 *
 * Ten independent chains hide the latency of two FMA units (4 to 5 cycles each). */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__AVX512F__)
enum { BYTES = 64 };
#elif defined(__AVX__)
enum { BYTES = 32 };
#else
enum { BYTES = 16 };
#endif
enum { CHAINS = 10, REPEAT = 8, MAX_THREADS = 1024 };
static const long STEPS = 20000000; /* 30 ms */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The empty asm keeps the compiler from seeing that the values never change much. */
#define CHAIN_LOOP(NAME, REAL)                                                       \
    typedef REAL NAME##_vector __attribute__((vector_size(BYTES)));                  \
    static double NAME(long steps)                                                   \
    {                                                                                \
        NAME##_vector sum[CHAINS], factor, term;                                     \
        for (int k = 0; k < BYTES / (int)sizeof(REAL); ++k) {                        \
            factor[k] = (REAL)0.999;                                                 \
            term[k] = (REAL)1e-3;                                                    \
        }                                                                            \
        for (int c = 0; c < CHAINS; ++c) sum[c] = term * (REAL)c;                    \
        for (long n = 0; n < steps; ++n) {                                           \
            _Pragma("GCC unroll 10") for (int c = 0; c < CHAINS; ++c)                \
                sum[c] = sum[c] * factor + term;                                     \
            __asm__ volatile("");                                                    \
        }                                                                            \
        NAME##_vector total = sum[0];                                                \
        for (int c = 1; c < CHAINS; ++c) total += sum[c];                            \
        return (double)total[0];                                                     \
    }
CHAIN_LOOP(chain_single, float)
CHAIN_LOOP(chain_double, double)

typedef struct job {
    double (*loop)(long steps);
    pthread_barrier_t *start;
    double seconds, result;
} job;

static void *work(void *argument)
{
    job *mine = argument;
    pthread_barrier_wait(mine->start);
    const double begin = now();
    mine->result += mine->loop(STEPS);
    mine->seconds = now() - begin;
    return NULL;
}

/* Best of a number of rounds, as the machine may be shared; the threads' own clocks, as
 * some begin late. */
static double gflops(double (*loop)(long steps), int threads, int lanes)
{
    double best = 0;
    for (int round = 0; round < REPEAT; ++round) {
        pthread_t thread[MAX_THREADS];
        job jobs[MAX_THREADS];
        pthread_barrier_t start;
        double rate = 0;
        pthread_barrier_init(&start, NULL, (unsigned)threads);
        for (int t = 0; t < threads; ++t) {
            jobs[t] = (job){.loop = loop, .start = &start};
            if (pthread_create(&thread[t], NULL, work, &jobs[t]) != 0) exit(1);
        }
        for (int t = 0; t < threads; ++t) {
            pthread_join(thread[t], NULL);
            rate += 2e-9 * lanes * CHAINS * (double)STEPS / jobs[t].seconds;
        }
        pthread_barrier_destroy(&start);
        if (rate > best) best = rate;
    }
    return best;
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    if (threads < 1 || threads > MAX_THREADS) return 2;
    printf("{\"threads\": %d, \"vector_bytes\": %d, \"single_gflops\": %.1f, "
           "\"double_gflops\": %.1f}\n",
           threads, BYTES, gflops(chain_single, threads, BYTES / 4),
           gflops(chain_double, threads, BYTES / 8));
    return 0;
}
