/* Reads columns of binary tables behind an image. */
#define _GNU_SOURCE
#include "fits_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fits_guard.h"
#include "fits_keys.h"

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
