/* Opens and reads files, and explains why a file cannot be opened. */
#define _GNU_SOURCE
#include "tess_input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

tess_status tess_errno_status(int error)
{
    return error == EMFILE || error == ENFILE ? TESS_ERR_RESOURCE : TESS_ERR_IO;
}

tess_status tess_input_open(const char *path, int *fd, int64_t *bytes)
{
    tess_status status = TESS_OK;
    struct stat info;
    int opened = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (opened < 0) TESS_TRY(tess_input_check_limit(path));
    if (opened < 0 || fstat(opened, &info) != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        TESS_FAIL(TESS_ERR_IO, "%s: is not a regular file", path);
    *fd = opened;
    *bytes = (int64_t)info.st_size;
    opened = -1;
cleanup:
    if (opened >= 0) close(opened);
    return status;
}

tess_status tess_input_read(int fd, const char *path, void *data, int64_t bytes,
                            int64_t offset)
{
    tess_status status = TESS_OK;
    char *to = data;
    while (bytes > 0) {
        const ssize_t got = pread(fd, to, (size_t)bytes, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            TESS_FAIL(TESS_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
        if (got == 0)
            TESS_FAIL(TESS_ERR_IO, "%s: ended early; did it change while it was read?",
                      path);
        to += got;
        offset += got;
        bytes -= got;
    }
cleanup:
    return status;
}

tess_status tess_input_check_limit(const char *path)
{
    tess_status status = TESS_OK;
    const int before = errno, fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0 && tess_errno_status(errno) == TESS_ERR_RESOURCE)
        TESS_FAIL(TESS_ERR_RESOURCE,
                  "%s: cannot be opened: too many files are open; raise their number "
                  "(ulimit -n)",
                  path);
    if (fd >= 0) close(fd);
    errno = before;
cleanup:
    return status;
}

void tess_input_keep_standard(void)
{
    static const int access[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream)
        if (fcntl(stream, F_GETFD) < 0) /* open() takes the lowest number */
            (void)open("/dev/null", access[stream]);
}

const char *tess_input_unpacker(const void *start, int64_t bytes)
{
    static const struct packing {
        const char *begins, *unpacker;
    } known[] = {{"\x1f\x8b", "gunzip"},
                 {"\x1f\x9d", "uncompress"},
                 {"BZh", "bunzip2"},
                 {"\xfd"
                  "7zXZ",
                  "unxz"},
                 {"\x28\xb5\x2f\xfd", "unzstd"},
                 {"PK\x03\x04", "unzip"}};
    for (size_t k = 0; k < sizeof known / sizeof *known; ++k) {
        const size_t length = strlen(known[k].begins);
        if (bytes >= (int64_t)length && memcmp(start, known[k].begins, length) == 0)
            return known[k].unpacker;
    }
    return NULL;
}
