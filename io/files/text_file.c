/* Reads text files of the user on one rank, and sends them to all. */
#define _GNU_SOURCE
#include "tess_text_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tess_input.h"
#include "tess_mem.h"

/* Nobody makes larger tables by hand or script. */
#define MAX_BYTES ((int64_t)1 << 30)

static tess_status read_text(const char *path, const char *kind, char **text,
                             int64_t *bytes)
{
    tess_status status = TESS_OK;
    char *buffer = NULL;
    FILE *file = NULL;
    int fd = -1;
    int64_t size;
    TESS_TRY(tess_input_open(path, &fd, &size));
    if (size > MAX_BYTES)
        TESS_FAIL(TESS_ERR_INPUT, "%s: %.1f GB is too large for a table of this kind",
                  path, (double)size * 1e-9);
    buffer = tess_alloc_zero(size + 1, 1);
    file = fdopen(fd, "rb");
    if (!buffer || !file) TESS_FAIL(TESS_ERR_ALLOC, "%s: table", path);
    const size_t got = fread(buffer, 1, (size_t)size, file);
    if (ferror(file)) TESS_FAIL(TESS_ERR_IO, "%s: %s", path, strerror(errno));
    const char *unpacker = tess_input_unpacker(buffer, (int64_t)got);
    if (unpacker)
        TESS_FAIL(TESS_ERR_INPUT, "%s: is compressed; run %s on it", path, unpacker);
    if (memchr(buffer, '\0', got)) TESS_FAIL(TESS_ERR_INPUT, "%s: not %s", path, kind);
    *text = buffer;
    *bytes = (int64_t)got;
    buffer = NULL;
cleanup:
    if (file)
        fclose(file);
    else if (fd >= 0)
        close(fd);
    tess_free(buffer);
    return status;
}

tess_status tess_text_file_read(tess_comm *comm, const char *path, const char *kind,
                                char **text_out)
{
    tess_status status = TESS_OK;
    char *text = NULL;
    int64_t bytes = 0;
    if (tess_comm_rank(comm) == 0) status = read_text(path, kind, &text, &bytes);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_bcast(comm, &bytes, sizeof bytes, 0));
    if (!text) text = tess_alloc_zero(bytes + 1, 1);
    if (!text)
        status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                   "%s: table", path);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_bcast(comm, text, bytes, 0));
    *text_out = text;
    text = NULL;
cleanup:
    tess_free(text);
    return status;
}
