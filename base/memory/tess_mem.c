/* Allocates aligned memory with checked sizes, and finds out how much memory the
 * process has used. */
#define _GNU_SOURCE
#include "tess_mem.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fast_mem.h"
#include "tess_keep.h"

enum { ALIGNMENT = 64, MEBI = 1048576 };

/* Bytes of freed small arrays that stay at the end of the heap: those of an output of a
 * cube, whose samples and runs are some ten arrays, for the next output. Plans do not
 * count them: they are at most this part of what a process may use. */
enum { SMALL_KEPT = 12 * TESS_KEEP_FROM, SMALL_PART = 32 };

void *tess_alloc(int64_t count, size_t size)
{
    size_t bytes;
    if (count < 0 || __builtin_mul_overflow((size_t)count, size, &bytes)) return NULL;
    if (bytes > (size_t)INT64_MAX - 4 * MEBI) return NULL;
    if (bytes >= TESS_KEEP_FROM) return tess_keep_alloc(bytes);
    bytes = (bytes / ALIGNMENT + 1) * ALIGNMENT;
    void *pointer = aligned_alloc(ALIGNMENT, bytes);
    if (!pointer && tess_keep_release() > 0) pointer = aligned_alloc(ALIGNMENT, bytes);
    return pointer;
}

void *tess_alloc_zero(int64_t count, size_t size)
{
    void *pointer = tess_alloc(count, size);
    if (pointer) memset(pointer, 0, (size_t)count * size);
    return pointer;
}

char *tess_strdup(const char *text)
{
    if (!text) return NULL;
    const size_t bytes = strlen(text) + 1;
    char *copy = tess_alloc((int64_t)bytes, 1);
    if (copy) memcpy(copy, text, bytes);
    return copy;
}

int tess_grow(void **array, int64_t *capacity, int64_t needed, size_t size)
{
    if (needed <= *capacity) return 0;
    int64_t grown = *capacity < 16 ? 16 : *capacity * 2;
    if (grown < needed) grown = needed;
    void *bigger = tess_alloc(grown, size);
    if (!bigger) return -1;
    if (*array) memcpy(bigger, *array, (size_t)*capacity * size);
    tess_free(*array);
    *array = bigger;
    *capacity = grown;
    return 0;
}

void tess_free(void *pointer)
{
    if (!tess_keep_free(pointer) && !fast_mem_free(pointer)) free(pointer);
}

void tess_mem_keep_no_arrays(int64_t bytes)
{
    const int64_t part = bytes / SMALL_PART;
    const int kept = part < SMALL_KEPT ? (int)part : SMALL_KEPT;
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, TESS_KEEP_FROM);
    mallopt(M_TRIM_THRESHOLD, kept);
#else
    (void)kept;
#endif
}

void tess_mem_trim(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* The largest amount of memory that Linux has seen this program use [bytes], or −1. */
static int64_t high_water_bytes(void)
{
    char line[256];
    long long kibi = -1;
    FILE *file = fopen("/proc/self/status", "r");
    if (!file) return -1;
    while (kibi < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %lld kB", &kibi) != 1) kibi = -1;
    fclose(file);
    return kibi < 0 ? -1 : (int64_t)kibi * 1024;
}

/* The peak by the resource usage, where Linux tells no high-water mark. The usage of a
 * process survives exec(), so it includes the memory of the program that started this
 * one. */
int64_t tess_mem_peak_bytes(void)
{
    struct rusage usage;
    const int64_t high_water = high_water_bytes();
    if (high_water >= 0) return high_water;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
    return (int64_t)usage.ru_maxrss * 1024;
}

int64_t tess_mem_resident_bytes(void)
{
    long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%*d %lld", &pages) != 1) pages = 0;
    fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

const char *tess_mem_text(double bytes)
{
    static _Thread_local char text[8][32];
    static _Thread_local unsigned next;
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int k = 0;
    while (bytes >= 1024.0 && k < 5) {
        bytes /= 1024.0;
        ++k;
    }
    char *out = text[next++ % 8];
    snprintf(out, sizeof text[0], k ? "%.1f %s" : "%.0f %s", bytes, unit[k]);
    return out;
}
