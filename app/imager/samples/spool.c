/* Keeps prepared samples in an unnamed scratch file, for passes over data that do not
 * fit into memory. */
#define _GNU_SOURCE
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tess_log.h"
#include "tess_mem.h"

/* Linux moves no more at a time. */
enum { MOST_AT_ONCE = 1 << 30 };

/* A set: its arrays one after the other. */
typedef struct spool_set {
    int64_t at, num_rows, num_vis;
} spool_set;

struct tess_spool {
    int file;
    char *folder; /* for messages */
    int64_t num_sets, capacity_sets, bytes;
    spool_set *set;
};

/* A file that has no name from its beginning, or, where the file system cannot do that,
 * very soon. */
static int open_unnamed(const char *folder)
{
    char *path = NULL;
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return file;
    if (asprintf(&path, "%s/tessera-scratch-XXXXXX", folder) < 0) return -1;
    file = mkostemp(path, O_CLOEXEC);
    if (file >= 0) unlink(path);
    free(path); /* from asprintf */
    return file;
}

tess_status tess_spool_create(const char *folder, tess_spool **spool_out)
{
    tess_status status = TESS_OK;
    tess_spool *spool = tess_alloc_zero(1, sizeof *spool);
    if (!spool) TESS_FAIL(TESS_ERR_ALLOC, "scratch file");
    spool->file = -1;
    spool->folder = tess_strdup(folder);
    if (!spool->folder) TESS_FAIL(TESS_ERR_ALLOC, "scratch file");
    spool->file = open_unnamed(folder);
    if (spool->file < 0)
        TESS_FAIL(TESS_ERR_IO, "%s: no scratch file can be made there: %s", folder,
                  strerror(errno));
    *spool_out = spool;
    spool = NULL;
cleanup:
    tess_spool_destroy(spool);
    return status;
}

void tess_spool_destroy(tess_spool *spool)
{
    if (!spool) return;
    if (spool->file >= 0) close(spool->file);
    tess_free(spool->folder);
    tess_free(spool->set);
    tess_free(spool);
}

int64_t tess_spool_sets(const tess_spool *spool)
{
    return spool->num_sets;
}

int64_t tess_spool_bytes(const tess_spool *spool)
{
    return spool->bytes;
}

/* ---- arrays ---- */

/* Move an array to or from the file at `*at`, which moves on. */
static tess_status move(const tess_spool *spool, tess_samples_part array, int64_t *at,
                        bool to_file)
{
    tess_status status = TESS_OK;
    char *data = array.data;
    for (int64_t done = 0; done < array.bytes;) {
        const int64_t rest = array.bytes - done;
        const size_t count = (size_t)(rest < MOST_AT_ONCE ? rest : MOST_AT_ONCE);
        const ssize_t moved =
            to_file ? pwrite(spool->file, data + done, count, (off_t)(*at + done))
                    : pread(spool->file, data + done, count, (off_t)(*at + done));
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0)
            TESS_FAIL(TESS_ERR_IO, "%s: %s of samples cannot be %s there: %s",
                      spool->folder, tess_mem_text((double)(*at + array.bytes)),
                      to_file ? "written" : "read",
                      moved < 0 ? strerror(errno) : "no space, or cut short");
        done += moved;
    }
    *at += array.bytes;
cleanup:
    return status;
}

tess_status tess_spool_write(tess_spool *spool, const tess_samples *samples)
{
    tess_status status = TESS_OK;
    tess_samples_part parts[TESS_SAMPLES_PARTS];
    int64_t at = spool->bytes;
    if (tess_grow((void **)&spool->set, &spool->capacity_sets, spool->num_sets + 1,
                  sizeof *spool->set))
        TESS_FAIL(TESS_ERR_ALLOC, "list of sets of samples");
    spool->set[spool->num_sets] = (spool_set){at, samples->num_rows, samples->num_vis};
    tess_samples_list(samples, parts);
    for (int k = 0; k < TESS_SAMPLES_PARTS; ++k)
        TESS_TRY(move(spool, parts[k], &at, true));
    ++spool->num_sets;
    spool->bytes = at;
cleanup:
    return status;
}

tess_status tess_spool_read(tess_spool *spool, int64_t k, tess_samples *samples)
{
    tess_status status = TESS_OK;
    const spool_set *set = &spool->set[k];
    tess_samples_part parts[TESS_SAMPLES_PARTS];
    int64_t at = set->at;
    samples->num_rows = samples->num_vis = 0;
    TESS_TRY(tess_samples_reserve(samples, set->num_rows, set->num_vis));
    samples->num_rows = set->num_rows;
    samples->num_vis = set->num_vis;
    tess_samples_list(samples, parts);
    for (int p = 0; p < TESS_SAMPLES_PARTS; ++p)
        TESS_TRY(move(spool, parts[p], &at, false));
    if (k + 1 < spool->num_sets) {
        const int64_t end =
            k + 2 < spool->num_sets ? spool->set[k + 2].at : spool->bytes;
        posix_fadvise(spool->file, (off_t)at, (off_t)(end - at), POSIX_FADV_WILLNEED);
    }
cleanup:
    return status;
}

tess_status tess_spool_probe(tess_spool *spool, tess_samples *samples, double *write_s,
                             double *read_s)
{
    tess_status status = TESS_OK;
    double mark = tess_time_now();
    if (fdatasync(spool->file) != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: samples cannot be written there: %s", spool->folder,
                  strerror(errno));
    *write_s += tess_time_now() - mark;
    posix_fadvise(spool->file, 0, (off_t)spool->bytes, POSIX_FADV_DONTNEED);
    mark = tess_time_now();
    TESS_TRY(tess_spool_read(spool, 0, samples));
    *read_s = tess_time_now() - mark;
cleanup:
    return status;
}
