/** @file fits_folder.h  (tests)
 *  A folder for FITS files of a test, what they are made of, and what is in them.
 */
#ifndef TESS_TEST_FITS_FOLDER_H
#define TESS_TEST_FITS_FOLDER_H

#include <dirent.h>
#include <fitsio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tess_comm.h"
#include "tess_const.h"
#include "tess_fits.h"

typedef struct fixture {
    tess_comm *comm;
    char folder[64];
} fixture;

static inline int set_up(void **state)
{
    static fixture made;
    strcpy(made.folder, "test_fits_XXXXXX");
    if (!mkdtemp(made.folder)) return -1;
    *state = &made;
    return tess_comm_self(&made.comm) == TESS_OK ? 0 : -1;
}

/* Files in the test's folder; each is removed. */
static inline int empty_folder(const fixture *with)
{
    int count = 0;
    DIR *folder = opendir(with->folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char name[512];
        if (entry->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "%s/%s", with->folder, entry->d_name);
        unlink(name);
        ++count;
    }
    closedir(folder);
    return count;
}

static inline int tear_down(void **state)
{
    fixture *with = *state;
    empty_folder(with);
    rmdir(with->folder);
    tess_comm_free(with->comm);
    return 0;
}

static inline const char *in_folder(const fixture *with, const char *name)
{
    static char path[4][256];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", with->folder, name);
    return out;
}

static inline tess_image_meta sample_meta(int64_t nx, int64_t ny)
{
    tess_image_meta meta = {.nx = nx,
                            .ny = ny,
                            .ra_rad = -3.0,
                            .dec_rad = 0.3,
                            .scale_rad = 1e-6 * TESS_RAD_PER_ASEC / 3,
                            .freq_hz = 227070703125.0,
                            .bandwidth_hz = 1.856e9,
                            .gridded.freq_mean_hz = 227070703125.125,
                            .spectral.rest_hz = 2.28e11,
                            .stokes = 1,
                            .beam.major_rad = 3e-11,
                            .beam.minor_rad = 2e-11,
                            .beam.pa_rad = 0.5,
                            .gridded.sum_weights = 1.25e9,
                            .gridded.num_vis = 5877,
                            .equinox = 2000,
                            .time_start_mjd_s = 57854.0 * 86400 + 1925.25,
                            .time_end_mjd_s = 57854.0 * 86400 + 1985.25,
                            .place_m = {-1601185.4, -5041977.5, 3554875.9},
                            .names.telescope = "EHT",
                            .names.observer = "O'Neill",
                            .names.object = "M\xc3\xa9ssier 87",
                            .unit = "Jy/beam",
                            .gridded.weighting = "briggs 0"};
    meta.history =
        "tessera image a very long command line that has to be broken somewhere "
        "because it does not fit \xe2\x80\x94 at all\nsecond line\n\nlast";
    return meta;
}

static inline void check_sums(const char *path)
{
    fitsfile *fits = NULL;
    int failed = 0, data = 0, all = 0;
    fits_open_diskfile(&fits, path, READONLY, &failed);
    fits_verify_chksum(fits, &data, &all, &failed);
    fits_close_file(fits, &failed);
    assert_int_equal(failed, 0);
    assert_int_equal(data, 1);
    assert_int_equal(all, 1);
}

static inline void read_text(const char *path, const char *key, char text[FLEN_VALUE])
{
    fitsfile *fits = NULL;
    int failed = 0;
    fits_open_diskfile(&fits, path, READONLY, &failed);
    fits_read_key(fits, TSTRING, key, text, NULL, &failed);
    fits_close_file(fits, &failed);
    assert_int_equal(failed, 0);
}

static inline double read_number(const char *path, const char *key)
{
    char text[FLEN_VALUE];
    read_text(path, key, text);
    return strtod(text, NULL);
}

/* Bytes of a file. */
static inline char *bytes_of(const char *path, size_t *count)
{
    FILE *file = fopen(path, "rb");
    fseek(file, 0, SEEK_END);
    *count = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*count);
    assert_int_equal(fread(bytes, 1, *count, file), *count);
    fclose(file);
    return bytes;
}

#endif
