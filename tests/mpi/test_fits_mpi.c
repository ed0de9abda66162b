/* FITS images and previews written by several ranks: the same bytes for any cutting
 * into slabs, empty slabs included; when one rank fails all of them return. */
#define _GNU_SOURCE
#include <fitsio.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "preview_file.h"
#include "tess_const.h"
#include "tess_fits.h"
#include "tess_mem.h"

#define CHECK(condition)                                                               \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "rank %d, line %d: %s\n", tess_comm_rank(comm), __LINE__,  \
                    #condition);                                                       \
            tess_comm_abort(comm, 1);                                                  \
        }                                                                              \
    } while (0)

static tess_image_meta sample_meta(int64_t nx, int64_t ny)
{
    return (tess_image_meta){.nx = nx,
                             .ny = ny,
                             .ra_rad = 1,
                             .dec_rad = 0.5,
                             .scale_rad = TESS_RAD_PER_ASEC,
                             .freq_hz = 1e9,
                             .stokes = 1,
                             .beam.major_rad = 9 * TESS_RAD_PER_ASEC,
                             .beam.minor_rad = 6 * TESS_RAD_PER_ASEC,
                             .unit = "JY/BEAM",
                             .names.object = "test"};
}

static double pixel(int64_t k)
{
    return k % 1013 == 5 ? (double)NAN : cos(0.37 * (double)k) * (k % 97 == 0 ? 40 : 1);
}

/* Slab of a rank: even, all on the last rank, reversed order, or cut at random. */
static void slab_of(int kind, int rank, int size, int64_t ny, int64_t *first,
                    int64_t *count)
{
    if (kind == 2) rank = size - 1 - rank;
    *first = ny * rank / size;
    *count = ny * (rank + 1) / size - *first;
    if (kind == 1) {
        *first = 0;
        *count = rank == size - 1 ? ny : 0;
    } else if (kind == 3 && size > 1) { /* rank 0 has one row, rank 1 all but that */
        *first = rank == 0 ? 0 : 1;
        *count = rank == 0 ? 1 : (rank == 1 ? ny - 1 : 0);
    }
}

static char *file_bytes(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *data = NULL;
    *size = 0;
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    data = malloc(*size + 1);
    if (data && fread(data, 1, *size, file) != *size) *size = 0;
    fclose(file);
    return data;
}

static int same_files(const char *a, const char *b)
{
    size_t size_a, size_b;
    char *data_a = file_bytes(a, &size_a), *data_b = file_bytes(b, &size_b);
    const int same =
        size_a > 0 && size_a == size_b && memcmp(data_a, data_b, size_a) == 0;
    free(data_a);
    free(data_b);
    return same;
}

static int check_sums(const char *path)
{
    fitsfile *fits = NULL;
    int failed = 0, data = 0, all = 0;
    fits_open_diskfile(&fits, path, READONLY, &failed);
    fits_verify_chksum(fits, &data, &all, &failed);
    fits_close_file(fits, &failed);
    return !failed && data == 1 && all == 1;
}

/* Write rank's slab of the test image as FITS and PNG. */
static tess_status write_slab(tess_comm *comm, const char *stem,
                              const tess_image_meta *meta, bool is_double,
                              int64_t first, int64_t count)
{
    tess_status status = TESS_OK;
    char path[256];
    double *wide = tess_alloc(count * meta->nx, sizeof *wide);
    float *narrow = tess_alloc(count * meta->nx, sizeof *narrow);
    for (int64_t k = 0; k < count * meta->nx; ++k) {
        wide[k] = pixel(first * meta->nx + k);
        narrow[k] = (float)wide[k];
    }
    const void *rows = is_double ? (const void *)wide : (const void *)narrow;
    snprintf(path, sizeof path, "%s.fits", stem);
    TESS_TRY(tess_fits_write(comm, path, true, meta,
                             &(tess_fits_rows){.row_first = first,
                                               .num_rows = count,
                                               .is_double = is_double,
                                               .pixel = rows}));
    snprintf(path, sizeof path, "%s.png", stem);
    TESS_TRY(write_preview(comm, path, true, meta,
                           &(tess_fits_rows){.row_first = first,
                                             .num_rows = count,
                                             .is_double = is_double,
                                             .pixel = rows}));
cleanup:
    tess_free(wide);
    tess_free(narrow);
    return status;
}

static void same_for_all_cuts(tess_comm *comm, const char *folder, int64_t nx,
                              int64_t ny)
{
    const int rank = tess_comm_rank(comm), size = tess_comm_size(comm);
    const tess_image_meta meta = sample_meta(nx, ny);
    tess_comm *self = NULL;
    char whole[256], parts[256], a[300], b[300];
    CHECK(tess_comm_split(comm, rank, 0, &self) == TESS_OK);
    snprintf(whole, sizeof whole, "%s/whole", folder);
    snprintf(parts, sizeof parts, "%s/parts", folder);
    for (int kind = 0; kind < 8; ++kind) {
        const bool is_double = kind >= 4;
        int64_t first, count;
        if (rank == 0)
            CHECK(write_slab(self, whole, &meta, is_double, 0, ny) == TESS_OK);
        slab_of(kind % 4, rank, size, ny, &first, &count);
        CHECK(write_slab(comm, parts, &meta, is_double, first, count) == TESS_OK);
        if (rank == 0) {
            snprintf(a, sizeof a, "%s.fits", whole);
            snprintf(b, sizeof b, "%s.fits", parts);
            CHECK(same_files(a, b));
            CHECK(check_sums(b));
            snprintf(a, sizeof a, "%s.png", whole);
            snprintf(b, sizeof b, "%s.png", parts);
            CHECK(same_files(a, b));
        }
        CHECK(tess_comm_barrier(comm) == TESS_OK);
    }
    tess_comm_free(self);
}

/* Rows missing, rows out of range on one rank, a target that exists: all ranks return
 * an error and no file stays. */
static void all_ranks_fail(tess_comm *comm, const char *folder)
{
    const int rank = tess_comm_rank(comm), size = tess_comm_size(comm);
    const tess_image_meta meta = sample_meta(8, 16);
    float image[8 * 16] = {0};
    char path[256];
    int64_t first, count;
    slab_of(0, rank, size, 16, &first, &count);
    snprintf(path, sizeof path, "%s/bad.fits", folder);
    const bool last = rank == size - 1;
    CHECK(tess_fits_write(comm, path, false, &meta,
                          &(tess_fits_rows){.row_first = first,
                                            .num_rows = last ? count - 1 : count,
                                            .pixel = image}) == TESS_ERR_INTERNAL);
    CHECK(tess_fits_write(comm, path, false, &meta,
                          &(tess_fits_rows){.row_first = last ? 16 : first,
                                            .num_rows = count,
                                            .pixel = image}) ==
          (last ? TESS_ERR_INTERNAL : TESS_ERR_PEER));
    CHECK(write_preview(comm, path, false, &meta,
                        &(tess_fits_rows){.row_first = last ? 16 : first,
                                          .num_rows = count,
                                          .pixel = image}) ==
          (last ? TESS_ERR_INTERNAL : TESS_ERR_PEER));
    snprintf(path, sizeof path, "%s/none/bad.fits", folder);
    CHECK(tess_fits_write(comm, path, false, &meta,
                          &(tess_fits_rows){
                              .row_first = first, .num_rows = count, .pixel = image}) ==
          (rank == 0 ? TESS_ERR_IO : TESS_ERR_PEER));
    CHECK(write_preview(comm, path, false, &meta,
                        &(tess_fits_rows){
                            .row_first = first, .num_rows = count, .pixel = image}) ==
          (rank == 0 ? TESS_ERR_IO : TESS_ERR_PEER));
    snprintf(path, sizeof path, "%s/good.fits", folder);
    CHECK(tess_fits_write(comm, path, false, &meta,
                          &(tess_fits_rows){.row_first = first,
                                            .num_rows = count,
                                            .pixel = image}) == TESS_OK);
    CHECK(tess_fits_write(comm, path, false, &meta,
                          &(tess_fits_rows){
                              .row_first = first, .num_rows = count, .pixel = image}) ==
          (rank == 0 ? TESS_ERR_IO : TESS_ERR_PEER));
    tess_error_clear();
    if (rank == 0) CHECK(unlink(path) == 0);
}

int main(int argc, char **argv)
{
    tess_comm *comm = NULL;
    char folder[64] = "test_fits_mpi_XXXXXX";
    setenv("SOURCE_DATE_EPOCH", "1700000000", 1); /* equal images are equal files */
    if (tess_comm_start(&argc, &argv, &comm) != TESS_OK) return 1;
    const int rank = tess_comm_rank(comm);
    if (rank == 0) CHECK(mkdtemp(folder) != NULL);
    CHECK(tess_comm_bcast(comm, folder, sizeof folder, 0) == TESS_OK);
    same_for_all_cuts(comm, folder, 33, 7);
    same_for_all_cuts(comm, folder, 301, 1501);
    all_ranks_fail(comm, folder);
    if (rank == 0) {
        static const char *const names[] = {"whole.fits", "whole.png", "parts.fits",
                                            "parts.png"};
        for (int k = 0; k < 4; ++k) {
            char path[128];
            snprintf(path, sizeof path, "%s/%s", folder, names[k]);
            CHECK(unlink(path) == 0);
        }
        CHECK(rmdir(folder) == 0); /* nothing temporary was left in it */
    }
    tess_comm_finish(comm);
    return 0;
}
