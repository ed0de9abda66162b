/* Input as a file in memory: nothing is left on a disk when a fuzzer is killed. */
#define _GNU_SOURCE
#include "fuzz_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

tess_comm *fuzz_comm(void)
{
    static tess_comm *comm;
    if (!comm && tess_comm_self(&comm) != TESS_OK) abort();
    return comm;
}

const char *fuzz_file(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char name[64];
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    }
    size_t done = 0;
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0) abort();
    while (done < size) {
        const ssize_t wrote = pwrite(fd, data + done, size - done, (off_t)done);
        if (wrote <= 0) abort();
        done += (size_t)wrote;
    }
    return name;
}

void fuzz_assert(int holds, const char *promise)
{
    if (holds) return;
    fprintf(stderr, "promise broken: %s\n", promise);
    abort();
}

void fuzz_check(tess_status status)
{
    if (status == TESS_ERR_INTERNAL)
        fprintf(stderr, "%s: %s\n", tess_error_origin(), tess_error_message());
    fuzz_assert(status != TESS_ERR_INTERNAL, "bad input is no internal error");
    fuzz_assert(status == TESS_OK || tess_error_message()[0],
                "each failure has a message");
    tess_error_clear();
}
