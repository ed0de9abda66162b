/* Makes the visibilities of a benchmark: reads a workload's .npz file, or makes up
 * tracks. */
#define _GNU_SOURCE
#include "bench_set.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "draw.h"
#include "tess_bench.h"
#include "tess_const.h"
#include "tess_log.h"
#include "tess_mem.h"

/* ---- .npz: a zip archive of stored .npy files, found by their local headers ---- */

static uint64_t little(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int k = bytes - 1; k >= 0; --k) value = value << 8 | at[k];
    return value;
}

/* Position and size of the data of a stored member; 0 when it is not there. */
static int64_t find_member(FILE *file, const char *wanted, int64_t *bytes)
{
    unsigned char head[30], extra[64];
    char name[64];
    for (int64_t at = 0;;) {
        if (fseek(file, (long)at, SEEK_SET) || fread(head, 1, 30, file) != 30) return 0;
        if (little(head, 4) != 0x04034b50) return 0;
        const int name_bytes = (int)little(head + 26, 2);
        const int extra_bytes = (int)little(head + 28, 2);
        if (little(head + 8, 2) != 0 || name_bytes >= 64 || extra_bytes > 64) return 0;
        if (fread(name, 1, (size_t)name_bytes, file) != (size_t)name_bytes) return 0;
        if (fread(extra, 1, (size_t)extra_bytes, file) != (size_t)extra_bytes) return 0;
        name[name_bytes] = '\0';
        *bytes = (int64_t)little(head + 22, 4);
        /* zip64: the first extra field holds the sizes */
        if (*bytes == 0xffffffff) *bytes = (int64_t)little(extra + 4, 8);
        at += 30 + name_bytes + extra_bytes;
        if (strcmp(name, wanted) == 0) return at;
        at += *bytes;
    }
}

/* The values of an array: what follows the .npy header. */
static void *read_array(FILE *file, const char *name, int64_t element, int64_t *count)
{
    unsigned char head[10];
    int64_t bytes, at = find_member(file, name, &bytes);
    if (at == 0 || fseek(file, (long)at, SEEK_SET) || fread(head, 1, 10, file) != 10) {
        fprintf(stderr, "grid_kernel: no stored %s\n", name);
        return NULL;
    }
    const int64_t skip = 10 + (int64_t)little(head + 8, 2);
    void *values = tess_alloc(bytes - skip, 1);
    if (!values || fseek(file, (long)(at + skip), SEEK_SET) ||
        fread(values, 1, (size_t)(bytes - skip), file) != (size_t)(bytes - skip)) {
        fprintf(stderr, "grid_kernel: cannot read %s\n", name);
        tess_free(values);
        return NULL;
    }
    *count = (bytes - skip) / element;
    return values;
}

bool bench_set_read(const char *path, bench_set *set)
{
    int64_t n = 0, vis = 0;
    *set = (bench_set){0};
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "grid_kernel: cannot open %s\n", path);
        return false;
    }
    set->uvw_m = read_array(file, "uvw.npy", 24, &set->num_rows);
    set->inv_lambda = read_array(file, "freq.npy", 8, &set->num_chan);
    set->vis = read_array(file, "vis.npy", 8, &vis);
    int64_t *pixels = read_array(file, "npix.npy", 8, &n);
    double *cell = read_array(file, "cell_asec.npy", 8, &n);
    const bool good = set->uvw_m && set->inv_lambda && set->vis && pixels && cell &&
                      vis == set->num_rows * set->num_chan;
    if (good) {
        set->num_pixels = *pixels;
        set->scale_rad = *cell * TESS_PI / 180 / 3600;
        for (int64_t c = 0; c < set->num_chan; ++c)
            set->inv_lambda[c] /= TESS_SPEED_OF_LIGHT_M_S;
    }
    tess_free(pixels);
    tess_free(cell);
    fclose(file);
    if (!good) bench_set_free(set);
    return good;
}

/* ---- made up ---- */

bool bench_set_make(int64_t num_times, bench_set *set)
{
    enum { ANTENNAS = 64, CHANNELS = 16, BASELINES = ANTENNAS * (ANTENNAS - 1) / 2 };
    double east[ANTENNAS], north[ANTENNAS];
    draw random = {20};
    *set = (bench_set){.num_rows = num_times * BASELINES,
                       .num_chan = CHANNELS,
                       .num_pixels = 4096,
                       .scale_rad = 2 * TESS_PI / 180 / 3600};
    const int64_t num_vis = set->num_rows * CHANNELS;
    set->uvw_m = tess_alloc(set->num_rows, 3 * sizeof *set->uvw_m);
    set->inv_lambda = tess_alloc(CHANNELS, sizeof *set->inv_lambda);
    set->vis = tess_alloc(num_vis, 2 * sizeof *set->vis);
    if (!set->uvw_m || !set->inv_lambda || !set->vis) return false;
    for (int a = 0; a < ANTENNAS; ++a) {
        const double radius = 4000 * pow(draw_uniform(&random, 0, 1), 2);
        const double angle = draw_uniform(&random, 0, TESS_TWO_PI);
        east[a] = radius * cos(angle);
        north[a] = radius * sin(angle);
    }
    for (int c = 0; c < CHANNELS; ++c)
        set->inv_lambda[c] = (1.25e9 + 4e6 * c) / TESS_SPEED_OF_LIGHT_M_S;
    for (int64_t t = 0; t < num_times; ++t)
        tess_bench_track(ANTENNAS, east, north, -0.26 + 5.83e-4 * (double)t,
                         set->uvw_m + 3 * BASELINES * t);
    for (int64_t k = 0; k < 2 * num_vis; ++k)
        set->vis[k] = (float)draw_uniform(&random, -1, 1);
    return true;
}

void bench_set_free(bench_set *set)
{
    tess_free(set->uvw_m);
    tess_free(set->inv_lambda);
    tess_free(set->vis);
    *set = (bench_set){0};
}

/* ---- FMA rate ---- */

#if defined(__x86_64__)
/* Twelve chains hide the latency of two FMA units. */
enum { FMA_CHAINS = 12 };
#define FMA_LOOP(name, vector, lanes, set1, fmadd, flags)                            \
    __attribute__((target(flags))) static double name(int64_t rounds)                \
    {                                                                                \
        vector x[FMA_CHAINS];                                                        \
        const vector a = set1(0.999f), b = set1(0.001f);                             \
        for (int k = 0; k < FMA_CHAINS; ++k) x[k] = set1((float)k);                  \
        for (int64_t r = 0; r < rounds; ++r)                                         \
            _Pragma("GCC unroll 12") for (int k = 0; k < FMA_CHAINS; ++k)            \
                x[k] = fmadd(x[k], a, b);                                            \
        for (int k = 1; k < FMA_CHAINS; ++k) x[0] = fmadd(x[0], a, x[k]);            \
        volatile float keep = x[0][0];                                               \
        (void)keep;                                                                  \
        return (double)rounds * FMA_CHAINS * (lanes) * 2;                            \
    }
FMA_LOOP(fma_avx512, __m512, 16, _mm512_set1_ps, _mm512_fmadd_ps, "avx512f,fma")
FMA_LOOP(fma_avx2, __m256, 8, _mm256_set1_ps, _mm256_fmadd_ps, "avx2,fma")
#endif

static double fma_portable(int64_t rounds)
{
    volatile float x = 1;
    for (int64_t r = 0; r < rounds; ++r) x = x * 0.999f + 0.001f;
    return (double)rounds * 2;
}

double bench_fma_rate(double seconds)
{
    double (*loop)(int64_t) = fma_portable;
    double flop = 0, spent = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        loop = fma_avx512;
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        loop = fma_avx2;
#endif
    const double start = bench_cpu_now();
    while (spent < seconds) {
        flop += loop(200000);
        spent = bench_cpu_now() - start;
    }
    return flop / spent;
}

double bench_cpu_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
