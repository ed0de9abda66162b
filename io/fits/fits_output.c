/* Writes a file of pixels: header, pixels of each rank, sums of all, and the name. */
#define _GNU_SOURCE
#include "fits_output.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "held_files.h"
#include "tess_mem.h"
#include "tess_out_file.h"

/* Pixels are converted and written in pieces that stay in cache between the two. The
 * kernel lets one thread at a time write to a file: four convert as fast as one writes.
 */
enum { PIECE = 1 << 19, MOST_THREADS = 4 };

/* Pieces of at least this size are sent to the disk at once. The system sends planes of
 * a cube that are smaller together, which takes fewer calls and fewer disk accesses. */
enum { START_BYTES = 1 << 20 };

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BIG_ENDIAN_32(x) __builtin_bswap32(x)
#define BIG_ENDIAN_64(x) __builtin_bswap64(x)
#else
#define BIG_ENDIAN_32(x) (x)
#define BIG_ENDIAN_64(x) (x)
#endif

/* ---- beginning ---- */

static int64_t num_planes(const tess_image_meta *meta)
{
    return meta->cube ? (int64_t)meta->cube->num_freq * meta->cube->num_stokes : 1;
}

tess_status fits_output_check(const char *path, const tess_image_meta *meta,
                              int64_t row_first, int64_t num_rows)
{
    tess_status status = TESS_OK;
    int64_t pixels, bytes;
    const int64_t planes = num_planes(meta);
    if (meta->nx < 1 || meta->ny < 1 ||
        __builtin_mul_overflow(meta->nx, meta->ny, &pixels) ||
        __builtin_mul_overflow(pixels, planes, &pixels) ||
        __builtin_mul_overflow(pixels, (int64_t)sizeof(double) * 2, &bytes))
        TESS_FAIL(TESS_ERR_USAGE, "%s: image size %lld x %lld is out of range", path,
                  (long long)meta->nx, (long long)meta->ny);
    if (num_rows < 0 ||
        (num_rows > 0 && (row_first < 0 || row_first > meta->ny - num_rows)))
        TESS_FAIL(TESS_ERR_INTERNAL, "%s: rows %lld + %lld are not in the image", path,
                  (long long)row_first, (long long)num_rows);
    if (!(meta->scale_rad > 0) || !isfinite(meta->scale_rad))
        TESS_FAIL(TESS_ERR_USAGE, "%s: pixel size must be positive", path);
cleanup:
    return status;
}

int64_t fits_output_bytes(const tess_image_meta *meta, bool is_double)
{
    return meta->nx * meta->ny * num_planes(meta) * (is_double ? 8 : 4);
}

static int64_t whole_blocks(int64_t bytes)
{
    return (bytes + TESS_FITS_BLOCK - 1) / TESS_FITS_BLOCK * TESS_FITS_BLOCK;
}

/* Rank 0 finds the size of the header, makes the temporary file, and reserves disk
 * space. */
static tess_status begin(const tess_image_meta *meta, bool is_double, bool overwrite,
                         fits_output *file)
{
    tess_status status = TESS_OK;
    const tess_fits_stats none = {0};
    char *header = NULL;
    TESS_TRY(tess_fits_header_build(file->path, meta, is_double, &none, &header,
                                    &file->header_bytes));
    TESS_TRY(tess_out_file_begin(file->path, overwrite, file->temp, &file->fd));
    TESS_TRY(tess_out_file_reserve(
        file->fd, file->path,
        file->header_bytes + whole_blocks(fits_output_bytes(meta, is_double))));
cleanup:
    tess_free(header);
    return status;
}

tess_status fits_output_begin(tess_comm *comm, const tess_image_meta *meta,
                              bool is_double, bool overwrite, fits_output *file)
{
    tess_status status = TESS_OK;
    file->fd = -1;
    fits_output_clear(file);
    if (tess_comm_rank(comm) == 0) status = begin(meta, is_double, overwrite, file);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_bcast(comm, file->temp, sizeof file->temp, 0));
    TESS_TRY(tess_comm_bcast(comm, &file->header_bytes, sizeof file->header_bytes, 0));
cleanup:
    return status;
}

/* ---- pixels ---- */

void fits_output_clear(fits_output *file)
{
    file->sum = 0;
    file->min = INFINITY;
    file->max = -INFINITY;
}

/* Turns the bits of a float into an integer of the same order, and back. */
static inline int32_t order_of(uint32_t bits)
{
    return (int32_t)(bits ^ ((uint32_t)((int32_t)bits >> 31) >> 1));
}

static float float_of(int32_t order)
{
    /* the same turns back */
    const uint32_t bits = (uint32_t)order_of((uint32_t)order);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Finds bits and range in loops of their own, which as integers both vectorise.
 * Infinities become NaN as well, because FITS readers treat only NaN as blank. */
static void convert_float(const float *in, uint32_t *out, int64_t count,
                          fits_output *file)
{
    const uint32_t exponent = 0x7F800000u, quiet = 0x7FC00000u;
    uint64_t sum = 0;
    for (int64_t k = 0; k < count; ++k) {
        uint32_t bits;
        memcpy(&bits, &in[k], sizeof bits);
        bits = (bits & exponent) == exponent ? quiet : bits;
        sum += bits;
        out[k] = BIG_ENDIAN_32(bits);
    }
    int32_t min = INT32_MAX, max = INT32_MIN;
    for (int64_t k = 0; k < count; ++k) {
        uint32_t bits;
        memcpy(&bits, &in[k], sizeof bits);
        const int32_t order = order_of(bits);
        const bool blank = (bits & exponent) == exponent;
        const int32_t low = blank ? INT32_MAX : order, high = blank ? INT32_MIN : order;
        min = low < min ? low : min;
        max = high > max ? high : max;
    }
    file->sum = tess_fits_fold(file->sum) + (uint64_t)tess_fits_fold(sum);
    if (min > max) return; /* all are blank */
    file->min = fmin(file->min, (double)float_of(min));
    file->max = fmax(file->max, (double)float_of(max));
}

static void convert_double(const double *in, uint64_t *out, int64_t count,
                           fits_output *file)
{
    const uint64_t exponent = 0x7FF0000000000000u, quiet = 0x7FF8000000000000u;
    uint64_t sum = 0;
    for (int64_t k = 0; k < count; ++k) {
        uint64_t bits;
        memcpy(&bits, &in[k], sizeof bits);
        bits = (bits & exponent) == exponent ? quiet : bits;
        sum += (bits >> 32) + (bits & UINT32_MAX);
        out[k] = BIG_ENDIAN_64(bits);
    }
    double min = INFINITY, max = -INFINITY;
    for (int64_t k = 0; k < count; ++k)
        if (isfinite(in[k])) {
            min = in[k] < min ? in[k] : min;
            max = in[k] > max ? in[k] : max;
        }
    file->sum = tess_fits_fold(file->sum) + (uint64_t)tess_fits_fold(sum);
    file->min = fmin(file->min, min);
    file->max = fmax(file->max, max);
}

/* Writes the pixels from the k-th on, by way of `piece`. */
static tess_status write_piece(fits_output *file, const fits_slab *slab, int64_t k,
                               void *piece)
{
    tess_status status = TESS_OK;
    const int64_t size = slab->is_double ? 8 : 4;
    const int64_t part = slab->count - k < PIECE ? slab->count - k : PIECE;
    const int64_t at = slab->offset + k * size;
    if (slab->is_double)
        convert_double((const double *)slab->pixels + k, piece, part, file);
    else
        convert_float((const float *)slab->pixels + k, piece, part, file);
    TESS_TRY(tess_out_file_write(file->fd, file->path, piece, part * size, at));
    if (part * size >= START_BYTES) tess_out_file_start(file->fd, at, part * size);
cleanup:
    return status;
}

static void add_stats(const fits_output *part, fits_output *file)
{
    file->sum = (uint64_t)tess_fits_fold(file->sum) + tess_fits_fold(part->sum);
    file->min = fmin(file->min, part->min);
    file->max = fmax(file->max, part->max);
}

/* Writes all pieces of a slab by `threads`, each of which has sums of its own. */
static tess_status write_pieces(fits_output *file, const fits_slab *slab, int threads)
{
    tess_status status = TESS_OK;
    const int64_t pieces = (slab->count + PIECE - 1) / PIECE;
    if (threads > MOST_THREADS) threads = MOST_THREADS;
    if (threads > pieces) threads = (int)pieces;
    if (threads < 1) threads = 1;
#pragma omp parallel num_threads(threads)
    {
        fits_output part = *file;
        tess_status mine = TESS_OK;
        void *piece = tess_alloc(PIECE, sizeof(double));
        if (!piece)
            mine = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                     "%s: no memory to write it", file->path);
        part.sum = 0;
#pragma omp for schedule(dynamic)
        for (int64_t k = 0; k < pieces; ++k)
            if (mine == TESS_OK) mine = write_piece(&part, slab, k * PIECE, piece);
#pragma omp critical(fits_image)
        {
            add_stats(&part, file);
            if (mine != TESS_OK) status = mine;
        }
        tess_free(piece);
    }
    return status;
}

tess_status fits_output_open(fits_output *file)
{
    tess_status status = TESS_OK;
    if (file->fd < 0) file->fd = open(file->temp, O_WRONLY | O_CLOEXEC);
    if (file->fd < 0)
        TESS_FAIL(TESS_ERR_IO,
                  "%s: cannot be written on every node: %s; choose a shared folder",
                  file->path, strerror(errno));
cleanup:
    return status;
}

tess_status fits_output_write(fits_output *file, const fits_slab *slab, int threads)
{
    return slab->count > 0 ? write_pieces(file, slab, threads) : TESS_OK;
}

tess_status fits_output_sum(tess_comm *comm, const fits_output *file,
                            tess_fits_stats *stats)
{
    tess_status status = TESS_OK;
    int64_t sum = (int64_t)tess_fits_fold(file->sum);
    double range[2] = {-file->min, file->max};
    TESS_TRY(tess_comm_allreduce_i64(comm, &sum, 1, TESS_SUM));
    TESS_TRY(tess_comm_allreduce_f64(comm, range, 2, TESS_MAX));
    *stats = (tess_fits_stats){tess_fits_fold((uint64_t)sum), -range[0], range[1]};
cleanup:
    return status;
}

/* ---- the end ---- */

tess_status fits_output_end(fits_output *file, const tess_image_meta *meta,
                            bool is_double, const tess_fits_stats *stats)
{
    tess_status status = TESS_OK;
    static const char zeros[TESS_FITS_BLOCK];
    const int64_t used = fits_output_bytes(meta, is_double);
    int64_t bytes;
    char *header = NULL;
    TESS_TRY(
        tess_fits_header_build(file->path, meta, is_double, stats, &header, &bytes));
    if (file->header_bytes != bytes)
        TESS_FAIL(TESS_ERR_INTERNAL, "%s: header changed its length", file->path);
    TESS_TRY(tess_out_file_write(file->fd, file->path, zeros, whole_blocks(used) - used,
                                 bytes + used));
    TESS_TRY(tess_out_file_write(file->fd, file->path, header, bytes, 0));
cleanup:
    tess_free(header);
    return status;
}

tess_status fits_output_hold(bool root, fits_output *file, tess_held_files *held)
{
    tess_status status = TESS_OK;
    char nothing[TESS_OUT_FILE_NAME] = "";
    if (file->fd < 0) return TESS_OK;
    TESS_TRY(tess_held_add(held, root ? file->temp : nothing, file->path,
                           held->overwrite, file->fd));
    file->fd = -1;
cleanup:
    return status;
}

void fits_output_leave(bool root, fits_output *file)
{
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
    if (root) tess_out_file_discard(file->temp);
    file->temp[0] = '\0';
}
