/* Prepares arrays in the background: their pages are there when they are first written
 * to. */
#include "tess_prefault.h"

#include "tess_mem.h"
#include "tess_worker.h"

/* Smallest size of a page. */
enum { PAGE = 4096 };

struct tess_prefault {
    tess_worker *worker;
    char **array; /* [count] */
    int count;
    int64_t bytes; /* bytes of each array */
};

static void touch(void *argument)
{
    const tess_prefault *with = argument;
    for (int k = 0; k < with->count; ++k) {
        char *array = with->array[k] = tess_alloc(with->bytes, 1);
        for (int64_t at = 0; array && at < with->bytes; at += PAGE)
            *(volatile char *)(array + at) = 0;
    }
}

tess_prefault *tess_prefault_start(int count, int64_t bytes)
{
    tess_prefault *with = tess_alloc_zero(1, sizeof *with);
    if (!with) return NULL;
    with->count = count;
    with->bytes = bytes;
    with->array = tess_alloc_zero(count, sizeof *with->array);
    with->worker = with->array ? tess_worker_create() : NULL;
    if (!with->worker) {
        tess_prefault_destroy(with);
        return NULL;
    }
    tess_worker_start(with->worker, touch, with);
    return with;
}

void *tess_prefault_take(tess_prefault *with, int which)
{
    void *array;
    if (!with) return NULL;
    tess_worker_wait(with->worker);
    array = with->array[which];
    with->array[which] = NULL;
    return array;
}

void tess_prefault_destroy(tess_prefault *with)
{
    if (!with) return;
    tess_worker_destroy(with->worker);
    for (int k = 0; with->array && k < with->count; ++k)
        tess_free(with->array[k]);
    tess_free(with->array);
    tess_free(with);
}
