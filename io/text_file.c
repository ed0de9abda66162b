/* Reads text files of the user on one rank, and sends them to all. */
#include "tess_text_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tess_input.h"
#include "tess_mem.h"

/* Larger tables are not made by hand or script. */
#define MAX_BYTES ((int64_t)1 << 30)

static tess_status read_text(const char *path, const char *kind, char **text,
                             int64_t *bytes)
{
    tess_status status = TESS_OK;
    char *buffer = NULL;
    FILE *file = NULL;
    struct stat info;
    if (stat(path, &info) != 0) TESS_FAIL(TESS_ERR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode)) /* a named pipe, too, which would be waited for */
        TESS_FAIL(TESS_ERR_IO, "%s: not a regular file", path);
    file = fopen(path, "rb");
    if (!file) TESS_FAIL(tess_errno_status(errno), "%s: %s", path, strerror(errno));
    if (info.st_size > MAX_BYTES)
        TESS_FAIL(TESS_ERR_INPUT, "%s: %.1f GB is too large for a table of this kind",
                  path, (double)info.st_size * 1e-9);
    buffer = tess_alloc_zero((int64_t)info.st_size + 1, 1);
    if (!buffer) TESS_FAIL(TESS_ERR_ALLOC, "%s: table", path);
    const size_t got = fread(buffer, 1, (size_t)info.st_size, file);
    if (ferror(file)) TESS_FAIL(TESS_ERR_IO, "%s: %s", path, strerror(errno));
    if (memchr(buffer, '\0', got)) TESS_FAIL(TESS_ERR_INPUT, "%s: not %s", path, kind);
    *text = buffer;
    *bytes = (int64_t)got;
    buffer = NULL;
cleanup:
    if (file) fclose(file);
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
