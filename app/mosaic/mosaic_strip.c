/* Brings rows of an image to the ranks whose rows of the mosaic are made of them. */
#include "mosaic_strip.h"

#include <math.h>
#include <string.h>

#include "tess_common_beam.h"
#include "tess_mem.h"
#include "tess_row_stats.h"

void mosaic_strip_free(mosaic_strip *strip)
{
    tess_free(strip->image);
    tess_free(strip->beam);
    *strip = (mosaic_strip){0};
}

/* Local. */
static tess_status alloc_strip(int64_t nx, int64_t row_first, int64_t num_rows,
                               mosaic_strip *strip)
{
    tess_status status = TESS_OK;
    *strip = (mosaic_strip){.nx = nx, .row_first = row_first, .num_rows = num_rows};
    strip->image = tess_alloc(nx * num_rows, sizeof *strip->image);
    strip->beam = tess_alloc(nx * num_rows, sizeof *strip->beam);
    if (!strip->image || !strip->beam)
        TESS_FAIL(TESS_ERR_ALLOC, "%lld x %lld pixels of an image", (long long)nx,
                  (long long)num_rows);
cleanup:
    return status;
}

/* The rows [first, end) that a rank reads. */
static void share_of(int64_t ny, int rank, int size, int64_t rows[2])
{
    rows[0] = ny * rank / size;
    rows[1] = ny * (rank + 1) / size;
}

/* ---- this rank's share ---- */

static tess_clean_beam beam_in_pixels(const tess_fits_beam *beam, double scale_rad)
{
    return (tess_clean_beam){.major_px = beam->major_rad / scale_rad,
                             .minor_px = beam->minor_rad / scale_rad,
                             .angle_rad = beam->pa_rad};
}

/* Collective. */
static tess_status widen(tess_comm *comm, const tess_mosaic_opts *opts,
                         const mosaic_input *input, int plane,
                         const tess_fits_beam *beam, const tess_rows *rows)
{
    const tess_fits_beam *own = &input->plane[plane].beam;
    const double scale_rad = fabs(input->image.scale_y_rad);
    const tess_clean_beam from = beam_in_pixels(own, scale_rad);
    const tess_clean_beam to = beam_in_pixels(beam, scale_rad);
    const tess_clean_opts how = {.is_double = input->image.bitpix == -64,
                                 .repeatable = opts->repeatable,
                                 .threads = opts->threads};
    if (memcmp(own, beam, sizeof *own) == 0) return TESS_OK;
    return tess_common_beam_widen(comm, &how, &from, &to, rows);
}

static void blank_faint(const tess_mosaic_opts *opts, mosaic_strip *strip)
{
#pragma omp parallel for schedule(static) num_threads(opts->threads)
    for (int64_t k = 0; k < strip->nx * strip->num_rows; ++k)
        if (!(strip->beam[k] > 0 && strip->beam[k] >= opts->limit))
            strip->image[k] = strip->beam[k] = (double)NAN;
}

/* Reads the share of this rank, whole images of even noise, and then leaves out what
 * the beam is too faint for: beside that, sources would be convolved with nothing.
 * Collective. */
static tess_status read_share(tess_comm *comm, const tess_mosaic_opts *opts,
                              const mosaic_input *input, int plane,
                              const tess_fits_beam *beam, double *noise_jy,
                              mosaic_strip *share)
{
    tess_status status = TESS_OK;
    const tess_fits_model *image = &input->image;
    int64_t own[2];
    share_of(image->ny, tess_comm_rank(comm), tess_comm_size(comm), own);
    status = alloc_strip(image->nx, own[0], own[1] - own[0], share);
    if (status == TESS_OK)
        status = mosaic_input_read(opts, input, plane, own[0], own[1] - own[0],
                                   share->image, share->beam);
    TESS_TRY(tess_comm_agree(comm, status));
    const tess_rows like =
        tess_rows_of(image->nx, image->ny, own[0], own[1] - own[0], TESS_PIXEL_DOUBLE);
    const tess_rows rows = tess_rows_borrow(&like, share->image);
    TESS_TRY(widen(comm, opts, input, plane, beam, &rows));
    if (!(*noise_jy > 0)) {
        tess_row_stats stats;
        TESS_TRY(tess_row_stats_measure(comm, &rows, opts->threads, true, &stats));
        *noise_jy = stats.count > 0 && stats.noise > 0 ? stats.noise : 0;
    }
    blank_faint(opts, share);
cleanup:
    return status;
}

/* ---- exchange ---- */

/* The rows that both ranges have. */
static int64_t overlap(const int64_t a[2], const int64_t b[2], int64_t *first)
{
    const int64_t end = a[1] < b[1] ? a[1] : b[1];
    *first = a[0] > b[0] ? a[0] : b[0];
    return end > *first ? end - *first : 0;
}

/* Packs for each rank the rows that it wants: first those of the image, then those of
 * the beam. Local. */
static tess_status pack(const mosaic_strip *share, const int64_t *wanted, int size,
                        double **packed, int64_t *bytes)
{
    tess_status status = TESS_OK;
    const int64_t own[2] = {share->row_first, share->row_first + share->num_rows};
    int64_t first, count = 0;
    for (int k = 0; k < size; ++k) {
        const int64_t values = 2 * share->nx * overlap(own, wanted + 2 * k, &first);
        bytes[k] = values * (int64_t)sizeof(double);
        count += values;
    }
    double *to = *packed = tess_alloc(count, sizeof *to);
    if (!to) TESS_FAIL(TESS_ERR_ALLOC, "%lld pixels to send", (long long)count);
    for (int k = 0; k < size; ++k) {
        const int64_t values = share->nx * overlap(own, wanted + 2 * k, &first);
        const int64_t at = values > 0 ? (first - own[0]) * share->nx : 0;
        memcpy(to, share->image + at, (size_t)values * sizeof *to);
        memcpy(to + values, share->beam + at, (size_t)values * sizeof *to);
        to += 2 * values;
    }
cleanup:
    return status;
}

static void unpack(const double *from, int64_t ny, int size, mosaic_strip *strip)
{
    const int64_t own[2] = {strip->row_first, strip->row_first + strip->num_rows};
    for (int k = 0; k < size; ++k) {
        int64_t share[2], first;
        share_of(ny, k, size, share);
        const int64_t values = strip->nx * overlap(share, own, &first);
        const int64_t at = values > 0 ? (first - own[0]) * strip->nx : 0;
        memcpy(strip->image + at, from, (size_t)values * sizeof *from);
        memcpy(strip->beam + at, from + values, (size_t)values * sizeof *from);
        from += 2 * values;
    }
}

/* Collective. */
static tess_status exchange(tess_comm *comm, const mosaic_strip *share, int64_t ny,
                            const int64_t own[2], mosaic_strip *strip)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(comm);
    double *packed = NULL;
    void *received = NULL;
    int64_t *wanted = tess_alloc(4 * (int64_t)size, sizeof *wanted);
    TESS_TRY(tess_comm_agree(comm, wanted ? TESS_OK : TESS_ERR_ALLOC));
    int64_t *bytes = wanted + 2 * size;
    TESS_TRY(tess_comm_allgather(comm, own, 2 * (int64_t)sizeof *own, wanted));
    status = pack(share, wanted, size, &packed, bytes);
    if (status == TESS_OK)
        status = alloc_strip(share->nx, own[0], own[1] - own[0], strip);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_alltoallv(comm, packed, bytes, &received, bytes + size));
    unpack(received, ny, size, strip);
cleanup:
    tess_free(wanted);
    tess_free(packed);
    tess_free(received);
    return status;
}

tess_status mosaic_strip_make(tess_comm *comm, const tess_mosaic_opts *opts,
                              const mosaic_input *input, int plane,
                              const tess_fits_beam *beam, const int64_t wanted[2],
                              double *noise_jy, mosaic_strip *strip)
{
    tess_status status = TESS_OK;
    mosaic_strip share = {0};
    TESS_TRY(read_share(comm, opts, input, plane, beam, noise_jy, &share));
    if (tess_comm_size(comm) == 1) { /* it has all rows */
        *strip = share;
        return TESS_OK;
    }
    TESS_TRY(exchange(comm, &share, input->image.ny, wanted, strip));
cleanup:
    mosaic_strip_free(&share);
    return status;
}
