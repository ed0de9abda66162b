/* Unnamed files on scratch, that hold what does not fit into memory. */
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

struct scratch_file {
    int number;
    char *folder; /* for messages */
};

/* A file that has no name from its beginning, or, where the file system cannot do that,
 * very soon. */
static int open_unnamed(const char *folder)
{
    char *path = NULL;
    int number = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (number >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return number;
    if (asprintf(&path, "%s/tessera-scratch-XXXXXX", folder) < 0) return -1;
    number = mkostemp(path, O_CLOEXEC);
    if (number >= 0) unlink(path);
    free(path); /* from asprintf */
    return number;
}

tess_status scratch_file_create(const char *folder, scratch_file **file_out)
{
    tess_status status = TESS_OK;
    scratch_file *file = tess_alloc_zero(1, sizeof *file);
    if (!file) TESS_FAIL(TESS_ERR_ALLOC, "scratch file");
    file->number = -1;
    file->folder = tess_strdup(folder);
    if (!file->folder) TESS_FAIL(TESS_ERR_ALLOC, "scratch file");
    file->number = open_unnamed(folder);
    if (file->number < 0)
        TESS_FAIL(TESS_ERR_IO, "%s: no scratch file can be made there: %s", folder,
                  strerror(errno));
    *file_out = file;
    file = NULL;
cleanup:
    scratch_file_destroy(file);
    return status;
}

void scratch_file_destroy(scratch_file *file)
{
    if (!file) return;
    if (file->number >= 0) close(file->number);
    tess_free(file->folder);
    tess_free(file);
}

tess_status scratch_file_move(const scratch_file *file, void *data, int64_t bytes,
                              int64_t *at, bool to_file)
{
    tess_status status = TESS_OK;
    char *part = data;
    for (int64_t done = 0; done < bytes;) {
        const int64_t rest = bytes - done;
        const size_t count = (size_t)(rest < MOST_AT_ONCE ? rest : MOST_AT_ONCE);
        const off_t place = (off_t)(*at + done);
        const ssize_t moved = to_file ? pwrite(file->number, part + done, count, place)
                                      : pread(file->number, part + done, count, place);
        if (moved < 0 && errno == EINTR) continue;
        if (moved <= 0)
            TESS_FAIL(TESS_ERR_IO, "%s: %s of samples cannot be %s there: %s",
                      file->folder, tess_mem_text((double)(*at + bytes)),
                      to_file ? "written" : "read",
                      moved < 0 ? strerror(errno) : "no space, or cut short");
        done += moved;
    }
    *at += bytes;
cleanup:
    return status;
}

void scratch_file_fetch(const scratch_file *file, int64_t at, int64_t bytes)
{
    posix_fadvise(file->number, (off_t)at, (off_t)bytes, POSIX_FADV_WILLNEED);
}

tess_status scratch_file_settle(const scratch_file *file)
{
    tess_status status = TESS_OK;
    if (fdatasync(file->number) != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: samples cannot be written there: %s", file->folder,
                  strerror(errno));
cleanup:
    return status;
}

void scratch_file_drop(const scratch_file *file, int64_t bytes)
{
    posix_fadvise(file->number, 0, (off_t)bytes, POSIX_FADV_DONTNEED);
}
