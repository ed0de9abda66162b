/* Brings rows of an image to the ranks whose rows of the mosaic are made of them. */
#include "mosaic_strip.h"

#include <math.h>
#include <string.h>

#include "mosaic_lines.h"
#include "tess_common_beam.h"
#include "tess_mem.h"
#include "tess_real.h"
#include "tess_row_stats.h"

static void free_strip(mosaic_strip *strip)
{
    tess_free(strip->image);
    tess_free(strip->beam);
    *strip = (mosaic_strip){0};
}

void mosaic_strips_free(mosaic_strips *strips)
{
    free_strip(&strips->share);
    free_strip(&strips->own);
}

static int64_t pixel_bytes(const mosaic_strip *strip)
{
    return tess_pixel_bytes(tess_pixel_of(strip->is_double));
}

/* Gives a strip memory, which is undefined. Local. */
static tess_status take_memory(int64_t bytes, mosaic_strip *strip)
{
    tess_status status = TESS_OK;
    free_strip(strip);
    /* loops read a little beyond the last pixel, whose values do not matter */
    strip->image = tess_alloc_zero(bytes, 1);
    strip->beam = tess_alloc_zero(bytes, 1);
    if (!strip->image || !strip->beam)
        TESS_FAIL(TESS_ERR_ALLOC, "%s of an image and its beam",
                  tess_mem_text(2 * (double)bytes));
    strip->capacity_bytes = bytes;
cleanup:
    return status;
}

/* Makes room for rows. Local. */
static tess_status size_strip(const mosaic_image *of, int64_t row_first,
                              int64_t num_rows, mosaic_strip *strip)
{
    tess_status status = TESS_OK;
    const tess_fits_model *image = &of->input->image;
    const bool is_double = image->bitpix == -64;
    const int64_t bytes = (image->nx * num_rows + MOSAIC_BEYOND) *
                          tess_pixel_bytes(tess_pixel_of(is_double));
    if (bytes > strip->capacity_bytes) TESS_TRY(take_memory(bytes, strip));
    strip->nx = image->nx;
    strip->row_first = row_first;
    strip->num_rows = num_rows;
    strip->is_double = is_double;
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
                         const mosaic_image *of, const tess_fits_beam *beam,
                         const tess_rows *rows)
{
    const mosaic_input *input = of->input;
    const tess_fits_beam *own = &input->plane[of->plane].beam;
    const double scale_rad = fabs(input->image.scale_y_rad);
    const tess_clean_beam from = beam_in_pixels(own, scale_rad);
    const tess_clean_beam to = beam_in_pixels(beam, scale_rad);
    const tess_clean_opts how = {.is_double = input->image.bitpix == -64,
                                 .repeatable = opts->repeatable,
                                 .threads = opts->threads};
    if (memcmp(own, beam, sizeof *own) == 0) return TESS_OK;
    return tess_common_beam_widen(comm, &how, &from, &to, rows);
}

/* ---- noise ---- */

/* The noise of a large image is that of about this many of its pixels, in every k-th
 * column of every k-th row. The median absolute deviation of N independent values errs
 * by 1.17 / √N (Rousseeuw and Croux 1993, J. Am. Stat. Assoc. 88, 1273: an efficiency
 * of 37 %), here .11 %. Pixels of one beam are alike, so that all pixels would tell
 * little more than every k-th one. */
static const double SAMPLE = 1 << 20;

/* The pixels of a share that are looked at: of every k-th row and column. */
typedef struct sample {
    int64_t step, nx, row_first, num_rows;
} sample;

static sample choose_sample(const mosaic_strip *share, int64_t ny)
{
    const double pixels = (double)share->nx * (double)ny;
    sample of = {.step = (int64_t)fmax(1, floor(sqrt(pixels / SAMPLE)))};
    const int64_t end = share->row_first + share->num_rows;
    of.nx = (share->nx + of.step - 1) / of.step;
    of.row_first = (share->row_first + of.step - 1) / of.step;
    of.num_rows = (end + of.step - 1) / of.step - of.row_first;
    return of;
}

static void take_sample(const mosaic_strip *share, const sample *of, int threads,
                        const tess_rows *rows)
{
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t j = 0; j < of->num_rows; ++j) {
        const int64_t row = (of->row_first + j) * of->step - share->row_first;
        for (int64_t i = 0; i < of->nx; ++i)
            tess_rows_set(rows, j * of->nx + i,
                          tess_real_at(share->image, share->is_double,
                                       row * share->nx + i * of->step));
    }
}

/* 0: no pixel counts. Collective. */
static tess_status measure_noise(tess_comm *comm, const mosaic_strip *share, int64_t ny,
                                 int threads, double *noise_jy)
{
    tess_status status = TESS_OK;
    tess_row_stats stats;
    const sample of = choose_sample(share, ny);
    tess_rows rows = tess_rows_of(of.nx, (ny + of.step - 1) / of.step, of.row_first,
                                  of.num_rows, tess_pixel_of(share->is_double));
    TESS_TRY(tess_comm_agree(comm, tess_rows_alloc(&rows)));
    take_sample(share, &of, threads, &rows);
    TESS_TRY(tess_row_stats_measure(comm, &rows, threads, true, &stats));
    *noise_jy = stats.count > 0 && stats.noise > 0 ? stats.noise : 0;
cleanup:
    tess_rows_free(&rows);
    return status;
}

/* ---- what counts ---- */

static void blank_faint(const tess_mosaic_opts *opts, const mosaic_strip *strip)
{
    const int64_t count = strip->nx * strip->num_rows;
    const bool is_double = strip->is_double;
#pragma omp parallel for schedule(static) num_threads(opts->threads)
    for (int64_t k = 0; k < count; ++k) {
        const double beam = tess_real_at(strip->beam, is_double, k);
        if (beam > 0 && beam >= opts->limit) continue;
        tess_real_set(strip->beam, is_double, k, (double)NAN);
        tess_real_set(strip->image, is_double, k, (double)NAN);
    }
}

/* Reads the share of this rank, whole images of even noise, and then leaves out what
 * the beam is too faint for: beside that, sources would be convolved with nothing.
 * Collective. */
static tess_status read_share(tess_comm *comm, const tess_mosaic_opts *opts,
                              const mosaic_image *of, const tess_fits_beam *beam,
                              double *noise_jy, mosaic_strip *share)
{
    tess_status status = TESS_OK;
    const tess_fits_model *image = &of->input->image;
    int64_t own[2];
    share_of(image->ny, tess_comm_rank(comm), tess_comm_size(comm), own);
    const mosaic_rows wanted = {own[0], own[1] - own[0]};
    status = size_strip(of, wanted.first, wanted.num, share);
    if (status == TESS_OK)
        status = mosaic_input_read(opts, of, &wanted, share->image, share->beam);
    TESS_TRY(tess_comm_agree(comm, status));
    const tess_rows like = tess_rows_of(image->nx, image->ny, own[0], own[1] - own[0],
                                        tess_pixel_of(share->is_double));
    const tess_rows rows = tess_rows_borrow(&like, share->image);
    TESS_TRY(widen(comm, opts, of, beam, &rows));
    if (!(*noise_jy > 0))
        TESS_TRY(measure_noise(comm, share, image->ny, opts->threads, noise_jy));
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
                        char **packed, int64_t *bytes)
{
    tess_status status = TESS_OK;
    const int64_t own[2] = {share->row_first, share->row_first + share->num_rows};
    const int64_t row_bytes = share->nx * pixel_bytes(share);
    int64_t first, all = 0;
    for (int k = 0; k < size; ++k) {
        bytes[k] = 2 * row_bytes * overlap(own, wanted + 2 * k, &first);
        all += bytes[k];
    }
    char *to = *packed = tess_alloc(all, 1);
    if (!to) TESS_FAIL(TESS_ERR_ALLOC, "%lld bytes to send", (long long)all);
    for (int k = 0; k < size; ++k) {
        const int64_t half = row_bytes * overlap(own, wanted + 2 * k, &first);
        const int64_t at = half > 0 ? (first - own[0]) * row_bytes : 0;
        memcpy(to, (const char *)share->image + at, (size_t)half);
        memcpy(to + half, (const char *)share->beam + at, (size_t)half);
        to += 2 * half;
    }
cleanup:
    return status;
}

static void unpack(const char *from, int64_t ny, int size, const mosaic_strip *strip)
{
    const int64_t own[2] = {strip->row_first, strip->row_first + strip->num_rows};
    const int64_t row_bytes = strip->nx * pixel_bytes(strip);
    for (int k = 0; k < size; ++k) {
        int64_t share[2], first;
        share_of(ny, k, size, share);
        const int64_t half = row_bytes * overlap(share, own, &first);
        const int64_t at = half > 0 ? (first - own[0]) * row_bytes : 0;
        memcpy((char *)strip->image + at, from, (size_t)half);
        memcpy((char *)strip->beam + at, from + half, (size_t)half);
        from += 2 * half;
    }
}

/* Collective. */
static tess_status exchange(tess_comm *comm, const mosaic_image *of,
                            const mosaic_strip *share, const int64_t own[2],
                            mosaic_strip *strip)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(comm);
    char *packed = NULL;
    void *received = NULL;
    int64_t *wanted = tess_alloc(4 * (int64_t)size, sizeof *wanted);
    TESS_TRY(tess_comm_agree(comm, wanted ? TESS_OK : TESS_ERR_ALLOC));
    int64_t *bytes = wanted + 2 * size;
    TESS_TRY(tess_comm_allgather(comm, own, 2 * (int64_t)sizeof *own, wanted));
    status = pack(share, wanted, size, &packed, bytes);
    if (status == TESS_OK) status = size_strip(of, own[0], own[1] - own[0], strip);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_alltoallv(comm, packed, bytes, &received, bytes + size));
    unpack(received, of->input->image.ny, size, strip);
cleanup:
    tess_free(wanted);
    tess_free(packed);
    tess_free(received);
    return status;
}

tess_status mosaic_strip_make(tess_comm *comm, const tess_mosaic_opts *opts,
                              const mosaic_image *of, const tess_fits_beam *beam,
                              const int64_t wanted[2], double *noise_jy,
                              mosaic_strips *kept, const mosaic_strip **strip)
{
    tess_status status = TESS_OK;
    *strip = &kept->share;
    TESS_TRY(read_share(comm, opts, of, beam, noise_jy, &kept->share));
    if (tess_comm_size(comm) == 1) return TESS_OK; /* it has all rows */
    *strip = &kept->own;
    TESS_TRY(exchange(comm, of, &kept->share, wanted, &kept->own));
cleanup:
    return status;
}
