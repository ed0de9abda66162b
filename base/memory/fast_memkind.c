/* High-bandwidth memory (MCDRAM of a Xeon Phi, HBM of a Xeon Max), through the
 * hbwmalloc interface of memkind (Cantalupo et al. 2015, memkind: an extensible heap
 * memory manager for heterogeneous memory platforms). It is used if the library and
 * such memory are there at run time. Its policy is "preferred": when this memory is
 * full, other memory is used. */
#define _GNU_SOURCE
#include "fast_mem.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "tess_mem.h"

/* Smallest size of an array that is put into high-bandwidth memory, in huge pages.
 * Smaller arrays gain little from it, because they are in caches, and tess_free() then
 * need not look for them. */
enum { FAST_FROM = 8 << 20, HUGE_PAGE = 2 << 20 };

/* Largest number of blocks at a time. There are a few for each image. */
enum { MOST_BLOCKS = 256 };

static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    int (*align)(void **pointer, size_t alignment, size_t bytes);
    void (*release)(void *pointer);
    void *block[MOST_BLOCKS];
} fast = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

/* memcpy, because C knows no cast from data to functions. */
static bool find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static void load(void)
{
    int (*check)(void) = NULL;
    void *library = dlopen("libmemkind.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    if (find(library, "hbw_check_available", &check) &&
        find(library, "hbw_free", &fast.release) && check() == 0 &&
        find(library, "hbw_posix_memalign", &fast.align))
        return;
    dlclose(library);
}

/* Replace one of the blocks by another. Returns false if it is not among them. */
static bool replace_block(const void *from, void *to)
{
    bool found = false;
    pthread_mutex_lock(&fast.lock);
    for (int k = 0; k < MOST_BLOCKS && !found; ++k) {
        found = fast.block[k] == from;
        if (found) fast.block[k] = to;
    }
    pthread_mutex_unlock(&fast.lock);
    return found;
}

void *tess_alloc_fast(int64_t count, size_t size)
{
    size_t bytes;
    void *pointer = NULL;
    if (count < 0 || __builtin_mul_overflow((size_t)count, size, &bytes)) return NULL;
    if (bytes < FAST_FROM) return tess_alloc(count, size);
    pthread_once(&fast.once, load);
    if (!fast.align || fast.align(&pointer, HUGE_PAGE, bytes) != 0)
        return tess_alloc(count, size);
    madvise(pointer, bytes, MADV_HUGEPAGE); /* a hint, which the system may ignore */
    if (replace_block(NULL, pointer)) return pointer;
    fast.release(pointer);
    return tess_alloc(count, size);
}

const char *tess_fast_memory_text(void)
{
    pthread_once(&fast.once, load);
    return fast.align ? "by memkind, which finds some here"
                      : "by memkind, which is not here or finds none";
}

bool fast_mem_free(void *pointer)
{
    if (!pointer || (uintptr_t)pointer % HUGE_PAGE != 0) return false;
    if (!replace_block(pointer, NULL)) return false;
    fast.release(pointer);
    return true;
}
