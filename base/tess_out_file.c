#define _GNU_SOURCE
#include "tess_out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void tess_out_file_folder(const char *path, char folder[TESS_OUT_FILE_NAME])
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        snprintf(folder, TESS_OUT_FILE_NAME, ".");
    else if (slash == path)
        snprintf(folder, TESS_OUT_FILE_NAME, "/");
    else
        snprintf(folder, TESS_OUT_FILE_NAME, "%.*s", (int)(slash - path), path);
}

tess_status tess_out_check_target(const char *path, bool overwrite)
{
    tess_status status = TESS_OK;
    char folder[TESS_OUT_FILE_NAME];
    struct stat info;
    if (!path || !path[0] || strlen(path) > TESS_OUT_FILE_NAME - 64)
        TESS_FAIL(TESS_ERR_IO, "output name is empty or too long; choose another");
    if (path[strlen(path) - 1] == '/')
        TESS_FAIL(TESS_ERR_IO, "%s: is a folder; name a file in it", path);
    if (stat(path, &info) == 0) {
        if (S_ISDIR(info.st_mode))
            TESS_FAIL(TESS_ERR_IO, "%s: is a folder; choose another name", path);
        if (!overwrite)
            TESS_FAIL(TESS_ERR_IO,
                      "%s: exists already; give --overwrite or another name", path);
        if (!S_ISREG(info.st_mode))
            TESS_FAIL(TESS_ERR_IO, "%s: is not a regular file; choose another name",
                      path);
    } else if (errno != ENOENT && errno != ENOTDIR)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    tess_out_file_folder(path, folder);
    if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
        TESS_FAIL(TESS_ERR_IO, "%s: folder %s does not exist; make it first", path,
                  folder);
    if (access(folder, W_OK | X_OK) != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: folder %s cannot be written to: %s", path, folder,
                  strerror(errno));
cleanup:
    return status;
}

tess_status tess_out_file_create(const char *path, char temp[TESS_OUT_FILE_NAME],
                                 int *fd)
{
    tess_status status = TESS_OK;
    int opened = -1;
    /* Another host may use the same process number in the same folder: try again. */
    for (int attempt = 0; attempt < 100 && opened < 0; ++attempt) {
        const int length = snprintf(temp, TESS_OUT_FILE_NAME, "%s.%ld.%d.tmp", path,
                                    (long)getpid(), attempt);
        if (length < 0 || length >= TESS_OUT_FILE_NAME) {
            temp[0] = '\0';
            TESS_FAIL(TESS_ERR_IO, "%s: name is too long; choose a shorter one", path);
        }
        opened = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (opened < 0 && errno != EEXIST) break;
    }
    if (opened < 0) {
        temp[0] = '\0';
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be created: %s", path, strerror(errno));
    }
    tess_out_file_note(temp);
    *fd = opened;
cleanup:
    return status;
}

void tess_out_file_discard(const char *temp)
{
    if (!temp[0]) return;
    unlink(temp);
    tess_out_file_forget(temp);
}

tess_status tess_out_file_reserve(int fd, const char *path, int64_t bytes)
{
    tess_status status = TESS_OK;
    int failed;
    do
        failed = fallocate(fd, 0, 0, bytes);
    while (failed && errno == EINTR);
    if (failed && (errno == EOPNOTSUPP || errno == ENOSYS))
        failed = ftruncate(fd, bytes);
    if (failed)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot reserve %.3g MB on disk: %s", path,
                  1e-6 * (double)bytes, strerror(errno));
cleanup:
    return status;
}

tess_status tess_out_file_write(int fd, const char *path, const void *data,
                                int64_t bytes, int64_t offset)
{
    tess_status status = TESS_OK;
    const char *next = data;
    while (bytes > 0) {
        const size_t part = bytes < INT_MAX / 2 ? (size_t)bytes : INT_MAX / 2;
        const ssize_t done = pwrite(fd, next, part, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0)
            TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", path,
                      strerror(done < 0 ? errno : ENOSPC));
        next += done;
        offset += done;
        bytes -= done;
    }
cleanup:
    return status;
}

void tess_out_file_start(int fd, int64_t offset, int64_t bytes)
{
    (void)sync_file_range(fd, offset, bytes, SYNC_FILE_RANGE_WRITE);
}

tess_status tess_out_file_publish(const char *temp, const char *path, bool overwrite)
{
    tess_status status = TESS_OK;
    char folder[TESS_OUT_FILE_NAME];
    TESS_TRY(tess_out_check_target(path, overwrite));
    if (rename(temp, path) != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be renamed from %s: %s", path, temp,
                  strerror(errno));
    tess_out_file_forget(temp);
    /* The entry itself reaches the disk only with its folder; where folders cannot be
     * synchronised the file system does so on its own. */
    tess_out_file_folder(path, folder);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
cleanup:
    return status;
}
