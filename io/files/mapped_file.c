/* Writes a large file in memory (tmpfs) by several threads through a mapping. */
#define _GNU_SOURCE
#include "mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tess_mem.h"

/* So much is reserved at a time, in 10 ms. */
static const int64_t STEP_BYTES = 64 << 20;

struct mapped_file {
    int fd;
    char path[1024]; /* for messages */
    int64_t bytes, reserved;
    int error; /* errno of what ended the reserving, or 0 */
    bool stop;
    char *pages;    /* MAP_FAILED until mapped */
    bool reserving; /* there is a thread */
    pthread_t thread;
    pthread_mutex_t lock; /* of reserved, error, stop */
    pthread_cond_t more;
};

/* Reserves the next step. Returns true if there is another one. */
static bool reserve_step(mapped_file *map)
{
    pthread_mutex_lock(&map->lock);
    const int64_t first = map->reserved;
    const bool stop = map->stop;
    pthread_mutex_unlock(&map->lock);
    const int64_t count =
        map->bytes - first < STEP_BYTES ? map->bytes - first : STEP_BYTES;
    int error = 0;
    if (stop || count == 0) return false;
    do
        error = fallocate(map->fd, 0, first, count) != 0 ? errno : 0;
    while (error == EINTR);
    pthread_mutex_lock(&map->lock);
    map->error = error;
    if (error == 0) map->reserved = first + count;
    pthread_cond_broadcast(&map->more);
    pthread_mutex_unlock(&map->lock);
    return error == 0;
}

static void *reserve(void *argument)
{
    while (reserve_step(argument))
        continue;
    return NULL;
}

tess_status mapped_file_create(int fd, const char *path, int64_t bytes,
                               mapped_file **map_out)
{
    tess_status status = TESS_OK;
    struct statfs info;
    mapped_file *map = NULL;
    if (bytes <= 0 || fstatfs(fd, &info) != 0 || info.f_type != TMPFS_MAGIC)
        return TESS_OK;
    map = tess_alloc_zero(1, sizeof *map);
    if (!map) TESS_FAIL(TESS_ERR_ALLOC, "%s", path);
    map->fd = fd;
    map->bytes = bytes;
    strncpy(map->path, path, sizeof map->path - 1);
    pthread_mutex_init(&map->lock, NULL);
    pthread_cond_init(&map->more, NULL);
    map->pages = MAP_FAILED;
    if (ftruncate(fd, bytes) != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    map->pages = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map->pages == MAP_FAILED)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be mapped: %s", path, strerror(errno));
    map->reserving = pthread_create(&map->thread, NULL, reserve, map) == 0;
    if (!map->reserving) reserve(map); /* before anything is written, then */
    *map_out = map;
    map = NULL;
cleanup:
    mapped_file_destroy(map);
    return status;
}

static tess_status await(mapped_file *map, int64_t bytes)
{
    tess_status status = TESS_OK;
    pthread_mutex_lock(&map->lock);
    while (map->reserved < bytes && map->error == 0)
        pthread_cond_wait(&map->more, &map->lock);
    const int error = map->reserved < bytes ? map->error : 0;
    pthread_mutex_unlock(&map->lock);
    if (error != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot reserve %.3g MB on disk: %s", map->path,
                  1e-6 * (double)map->bytes, strerror(error));
cleanup:
    return status;
}

tess_status mapped_file_write(mapped_file *map, const void *data, int64_t bytes,
                              int64_t offset)
{
    tess_status status = TESS_OK;
    TESS_TRY(await(map, offset + bytes));
    memcpy(map->pages + offset, data, (size_t)bytes);
cleanup:
    return status;
}

tess_status mapped_file_finish(mapped_file *map)
{
    return await(map, map->bytes);
}

void mapped_file_destroy(mapped_file *map)
{
    if (!map) return;
    pthread_mutex_lock(&map->lock);
    map->stop = true;
    pthread_mutex_unlock(&map->lock);
    if (map->reserving) pthread_join(map->thread, NULL);
    if (map->pages != MAP_FAILED) munmap(map->pages, (size_t)map->bytes);
    pthread_cond_destroy(&map->more);
    pthread_mutex_destroy(&map->lock);
    tess_free(map);
}
