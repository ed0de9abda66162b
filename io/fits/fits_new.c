/* Creates files that CFITSIO writes, under a temporary name. */
#define _GNU_SOURCE
#include "fits_new.h"

#include <string.h>
#include <unistd.h>

enum { BLOCK = 2880, CARD = 80 };

/* Makes a file with the shortest header, because CFITSIO creates files by fopen(),
 * which would follow a link of that name. So CFITSIO is given a file that is there. */
static tess_status write_seed(int fd, const char *path)
{
    static const char *const cards[] = {"SIMPLE  =                    T",
                                        "BITPIX  =                    8",
                                        "NAXIS   =                    0", "END"};
    char block[BLOCK];
    memset(block, ' ', sizeof block);
    for (size_t k = 0; k < sizeof cards / sizeof *cards; ++k)
        memcpy(block + k * CARD, cards[k], strlen(cards[k]));
    return tess_out_file_write(fd, path, block, sizeof block, 0);
}

tess_status fits_new_begin(const char *path, bool overwrite,
                           char temp[TESS_OUT_FILE_NAME], fitsfile **fits)
{
    tess_status status = TESS_OK;
    int fd = -1, failed = 0;
    temp[0] = '\0';
    TESS_TRY(tess_out_file_begin(path, overwrite, temp, &fd));
    TESS_TRY(write_seed(fd, path));
    if (fits_open_diskfile(fits, temp, READWRITE, &failed)) {
        fits_clear_errmsg();
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written", path);
    }
cleanup:
    if (fd >= 0) close(fd);
    if (status != TESS_OK) {
        tess_out_file_discard(temp);
        temp[0] = '\0';
    }
    return status;
}

tess_status fits_new_close(const char *path, fitsfile *fits, int failed)
{
    tess_status status = TESS_OK;
    fits_close_file(fits, &failed); /* also when it has failed before */
    fits_clear_errmsg();
    if (failed)
        TESS_FAIL(TESS_ERR_IO,
                  "%s: cannot be written: see its folder and the space there is", path);
cleanup:
    return status;
}
