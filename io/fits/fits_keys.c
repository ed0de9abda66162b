/* Opens FITS images with CFITSIO, and reads their keywords and the tables behind them.
 */
#define _GNU_SOURCE
#include "fits_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fits_guard.h"
#include "tess_input.h"

/* Opens a plain FITS file. CFITSIO would also accept compressed files, URLs and
 * templates, but pixels are read at offsets of the file itself. `*fd_out` is the open
 * file. */
tess_status fits_open_plain(const char *path, int64_t *file_bytes, int *fd_out)
{
    tess_status status = TESS_OK;
    char start[10] = "";
    struct stat info;
    /* without waiting for who writes to a named pipe */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) TESS_TRY(tess_input_check_limit(path));
    if (fd < 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
    if (fstat(fd, &info) != 0 || S_ISDIR(info.st_mode))
        TESS_FAIL(TESS_ERR_INPUT, "%s: is a folder, not a FITS file", path);
    if (!S_ISREG(info.st_mode))
        TESS_FAIL(TESS_ERR_INPUT, "%s: is not a regular file", path);
    const ssize_t got = pread(fd, start, 9, 0);
    if (got < 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    const char *unpacker = tess_input_unpacker(start, got);
    if (unpacker)
        TESS_FAIL(TESS_ERR_INPUT, "%s: is compressed; run %s on it", path, unpacker);
    if (got < 9 || strncmp(start, "SIMPLE  =", 9) != 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: is not a FITS file", path);
    *file_bytes = (int64_t)info.st_size;
    *fd_out = fd;
    fd = -1;
cleanup:
    if (fd >= 0) close(fd);
    return status;
}

/* Reads a keyword. An absent or valueless keyword leaves `value` as it is. */
void fits_get_number(fitsfile *fits, const char *key, double *value, int *failed)
{
    double found;
    int missing = 0;
    if (*failed) return;
    fits_read_key(fits, TDOUBLE, key, &found, NULL, &missing);
    if (missing == 0)
        *value = found;
    else if (missing != KEY_NO_EXIST && missing != VALUE_UNDEFINED)
        *failed = missing;
}

void fits_get_text(fitsfile *fits, const char *key, char *value, size_t size,
                   int *failed)
{
    char found[FLEN_VALUE] = "";
    int missing = 0;
    if (*failed) return;
    fits_read_key(fits, TSTRING, key, found, NULL, &missing);
    if (missing == 0) {
        size_t used = strlen(found);
        while (used > 0 && found[used - 1] == ' ')
            found[--used] = '\0';
        snprintf(value, size, "%.*s", (int)size - 1, found);
    } else if (missing != KEY_NO_EXIST && missing != VALUE_UNDEFINED)
        *failed = missing;
}

/* Moves to the first HDU that is an image with pixels. */
static tess_status find_image(fitsfile *fits, int fd, int64_t file_bytes,
                              const char *path)
{
    tess_status status = TESS_OK;
    int failed = 0, type = IMAGE_HDU;
    for (bool more = true; more;) {
        int num_axes = 0;
        if (type == IMAGE_HDU) fits_get_img_dim(fits, &num_axes, &failed);
        if (failed) TESS_FAIL(TESS_ERR_INPUT, "%s: a header in it is damaged", path);
        if (num_axes > 0) goto cleanup;
        TESS_TRY(fits_guard_next(fits, fd, file_bytes, path, &type, &more));
    }
    TESS_FAIL(TESS_ERR_INPUT, "%s: holds no image", path);
cleanup:
    fits_clear_errmsg();
    return status;
}

tess_status fits_image_open(const char *path, fits_image_file *file)
{
    tess_status status = TESS_OK;
    *file = (fits_image_file){.fd = -1};
    TESS_TRY(fits_open_plain(path, &file->bytes, &file->fd));
    TESS_TRY(fits_guard_open(file->fd, file->bytes, path, &file->fits));
    TESS_TRY(find_image(file->fits, file->fd, file->bytes, path));
cleanup:
    return status;
}

void fits_image_close(fits_image_file *file)
{
    if (file->fits) fits_close_file(file->fits, &(int){0});
    if (file->fd >= 0) close(file->fd);
    fits_clear_errmsg();
    *file = (fits_image_file){.fd = -1};
}

/* ---- tables ---- */

void fits_table_close(fits_table *from)
{
    if (from->fits) fits_close_file(from->fits, &(int){0});
    if (from->fd >= 0) close(from->fd);
    fits_clear_errmsg();
    *from = (fits_table){.fd = -1};
}

/* Whether CFITSIO is at a binary table of this name. */
static bool is_at(fitsfile *fits, int type, const char *name)
{
    char found[FLEN_VALUE] = "";
    int missing = 0;
    if (type != BINARY_TBL) return false;
    fits_read_key(fits, TSTRING, "EXTNAME", found, NULL, &missing);
    fits_clear_errmsg();
    return missing == 0 && strcmp(found, name) == 0;
}

tess_status fits_table_find(const char *path, const char *name, fits_table *out)
{
    tess_status status = TESS_OK;
    int64_t bytes;
    bool more = true;
    int type = IMAGE_HDU;
    fits_table from = {.fd = -1};
    *out = (fits_table){.fd = -1};
    TESS_TRY(fits_open_plain(path, &bytes, &from.fd));
    TESS_TRY(fits_guard_open(from.fd, bytes, path, &from.fits));
    while (more && !is_at(from.fits, type, name))
        TESS_TRY(fits_guard_next(from.fits, from.fd, bytes, path, &type, &more));
    if (!more) goto cleanup;
    *out = from;
    from = (fits_table){.fd = -1};
cleanup:
    fits_table_close(&from);
    return status;
}

bool fits_table_column(const fits_table *from, const char *name, int64_t count,
                       double *out)
{
    int number = 0, failed = 0, code = 0, any = 0;
    long repeat = 0, width = 0, rows = 0;
    double blank = NAN;
    char column[FLEN_VALUE];
    snprintf(column, sizeof column, "%s", name);
    fits_get_colnum(from->fits, CASESEN, column, &number, &failed);
    fits_get_coltype(from->fits, number, &code, &repeat, &width, &failed);
    fits_get_num_rows(from->fits, &rows, &failed);
    if (failed || code < 0 || code == TSTRING || rows < 0 || repeat < 1 ||
        (double)rows * (double)repeat < (double)count)
        failed = BAD_ROW_NUM;
    fits_read_col(from->fits, TDOUBLE, number, 1, 1, count, &blank, out, &any, &failed);
    fits_clear_errmsg();
    return failed == 0;
}
