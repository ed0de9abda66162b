/* planes_device.h on CUDA. Everything here but the transforms moves each value once and is
 * bound by memory bandwidth; threads take neighbouring values, so that accesses coalesce. */
#include "planes_device.h"

#include <math.h>

#include "device_plan.h"
#include "tess_cuda_complex.cuh"
#include "tess_cuda.h"
#include "tess_device.h"
#include "tess_mem.h"

/* ---- transforms ---- */

/* Plans are made for eighths of the most lines: a batch that is not full transforms a few
 * lines too many instead of needing a plan of its own. A repeatable transform has one
 * plan: those of other numbers of lines may work, and round, in another way. */
enum { FRACTIONS = 8 };

struct plane_fft {
    int64_t length, step;
    bool is_double, repeatable;
    void *work;
    size_t work_bytes;
    bool made[FRACTIONS + 1];
    cufftHandle plan[FRACTIONS + 1];
};

static tess_status make_plan(plane_fft *fft, int k)
{
    tess_status status = TESS_OK;
    const device_plan_shape shape = {1,
                                     {fft->length, 0},
                                     k * fft->step,
                                     fft->is_double ? CUFFT_Z2Z : CUFFT_C2C};
    size_t bytes = 0;
    if (fft->made[k]) return TESS_OK;
    TESS_TRY(device_plan_make(&shape, &fft->plan[k], &bytes));
    fft->made[k] = true;
    if (bytes > fft->work_bytes) {
        tess_device_free(fft->work);
        fft->work = NULL;
        fft->work_bytes = 0;
        TESS_TRY(tess_device_alloc((int64_t)bytes, "transforms of w-planes", &fft->work));
        fft->work_bytes = bytes;
    }
cleanup:
    return status;
}

tess_status plane_fft_create(int64_t length, int64_t most_lines, bool is_double,
                             bool repeatable, plane_fft **fft_out)
{
    tess_status status = TESS_OK;
    plane_fft *fft = (plane_fft *)tess_alloc_zero(1, sizeof *fft);
    if (!fft) TESS_FAIL(TESS_ERR_ALLOC, "FFT of %lld values", (long long)length);
    fft->length = length;
    fft->is_double = is_double;
    fft->repeatable = repeatable;
    fft->step = (most_lines + FRACTIONS - 1) / FRACTIONS;
    TESS_TRY(make_plan(fft, FRACTIONS));
    *fft_out = fft;
    fft = NULL;
cleanup:
    plane_fft_destroy(fft);
    return status;
}

void plane_fft_destroy(plane_fft *fft)
{
    if (!fft) return;
    for (int k = 0; k <= FRACTIONS; ++k)
        if (fft->made[k]) device_plan_free(fft->plan[k]);
    tess_device_free(fft->work);
    tess_free(fft);
}

tess_status plane_fft_execute(plane_fft *fft, void *lines, int64_t count, bool forward)
{
    tess_status status = TESS_OK;
    const int k =
        fft->repeatable ? (int)FRACTIONS : (int)((count + fft->step - 1) / fft->step);
    const int sign = forward ? CUFFT_FORWARD : CUFFT_INVERSE;
    if (count == 0) return TESS_OK;
    TESS_TRY(make_plan(fft, k));
    DEVICE_CUFFT(cufftSetWorkArea(fft->plan[k], fft->work));
    if (fft->is_double)
        DEVICE_CUFFT(cufftExecZ2Z(fft->plan[k], (cufftDoubleComplex *)lines,
                                (cufftDoubleComplex *)lines, sign));
    else
        DEVICE_CUFFT(cufftExecC2C(fft->plan[k], (cufftComplex *)lines, (cufftComplex *)lines,
                                sign));
cleanup:
    return status;
}

/* ---- launches ---- */

/* Call kernel<float>(...) or kernel<double>(...). */
#define LAUNCH(kernel, grid, block, ...)                                             \
    do {                                                                             \
        if (shape->is_double)                                                        \
            kernel<double><<<grid, block, 0, tess_device_stream()>>>(__VA_ARGS__);   \
        else                                                                         \
            kernel<float><<<grid, block, 0, tess_device_stream()>>>(__VA_ARGS__);    \
        TESS_CUDA_LAUNCHED();                                                        \
    } while (0)

static unsigned blocks_of(int64_t count, int per_block)
{
    return (unsigned)((count + per_block - 1) / per_block);
}

/* ---- pieces ---- */

enum { PIECE_THREADS = 128 };

/* A block adds one piece, and neighbouring threads take neighbouring cells. Pieces
 * overlap in their halos alone, so that few atomics meet. */
template <typename real>
__global__ void add_pieces_kernel(const tess_piece *pieces, const int32_t *slot_of_line,
                                  int64_t slot_first, int64_t num_slots, int64_t nv,
                                  void *lines_v)
{
    typedef typename cuda_complex<real>::type value;
    const tess_piece piece = pieces[blockIdx.x];
    value *lines = (value *)lines_v;
    for (int k = threadIdx.x; k < piece.num_lines * piece.num_cells; k += blockDim.x) {
        const int line = k / piece.num_cells, cell = k % piece.num_cells;
        const int64_t slot = slot_of_line[piece.line + line] - slot_first;
        if (slot < 0 || slot >= num_slots) continue;
        int64_t at = piece.cell + cell;
        if (at >= nv) at -= nv;
        add_complex(&lines[slot * nv + at], ((const value *)piece.data)[line * piece.stride + cell]);
    }
}

template <typename real>
__global__ void take_pieces_kernel(const tess_piece *pieces, const int32_t *slot_of_line,
                                   int64_t slot_first, int64_t num_slots, int64_t nv,
                                   const void *lines_v)
{
    typedef typename cuda_complex<real>::type value;
    const tess_piece piece = pieces[blockIdx.x];
    const value *lines = (const value *)lines_v;
    for (int k = threadIdx.x; k < piece.num_lines * piece.num_cells; k += blockDim.x) {
        const int line = k / piece.num_cells, cell = k % piece.num_cells;
        const int64_t slot = slot_of_line[piece.line + line] - slot_first;
        if (slot < 0 || slot >= num_slots) continue;
        int64_t at = piece.cell + cell;
        if (at >= nv) at -= nv;
        ((value *)piece.data)[line * piece.stride + cell] = lines[slot * nv + at];
    }
}

tess_status plane_add_pieces(const plane_shape *shape, const tess_piece *piece,
                             int64_t num_pieces, const int32_t *slot_of_line,
                             int64_t slot_first, int64_t num_slots, void *lines)
{
    tess_status status = TESS_OK;
    if (num_pieces == 0) return TESS_OK;
    LAUNCH(add_pieces_kernel, (unsigned)num_pieces, PIECE_THREADS, piece, slot_of_line,
           slot_first, num_slots, shape->nv, lines);
cleanup:
    return status;
}

/* A block makes one line. It reads every piece that may cover the line, and each of its
 * threads keeps to its own cells. The limit is the latency of pieces that do not cover
 * the line. */
template <typename real>
__global__ void sum_pieces_kernel(const tess_piece *pieces, const plane_line *line_of,
                                  int64_t nv, void *lines_v)
{
    typedef typename cuda_complex<real>::type value;
    const plane_line mine = line_of[blockIdx.x];
    value *line = (value *)lines_v + (int64_t)blockIdx.x * nv;
    for (int64_t k = threadIdx.x; k < nv; k += blockDim.x)
        line[k] = value{0, 0};
    for (int64_t p = mine.begin; p < mine.stop; ++p) {
        const int from = mine.line - pieces[p].line;
        if (from < 0 || from >= pieces[p].num_lines) continue;
        const tess_piece piece = pieces[p];
        const value *data = (const value *)piece.data + from * piece.stride;
        __syncthreads(); /* cells move from thread to thread with the piece */
        for (int cell = threadIdx.x; cell < piece.num_cells; cell += blockDim.x) {
            int64_t at = piece.cell + cell;
            if (at >= nv) at -= nv;
            line[at].x += data[cell].x;
            line[at].y += data[cell].y;
        }
    }
}

tess_status plane_sum_pieces(const plane_shape *shape, const tess_piece *piece,
                             const plane_line *line, int64_t num_lines, void *lines)
{
    tess_status status = TESS_OK;
    if (num_lines == 0) return TESS_OK;
    LAUNCH(sum_pieces_kernel, (unsigned)num_lines, PIECE_THREADS, piece, line, shape->nv,
           lines);
cleanup:
    return status;
}

tess_status plane_take_pieces(const plane_shape *shape, const tess_piece *piece,
                              int64_t num_pieces, const int32_t *slot_of_line,
                              int64_t slot_first, int64_t num_slots, const void *lines)
{
    tess_status status = TESS_OK;
    if (num_pieces == 0) return TESS_OK;
    LAUNCH(take_pieces_kernel, (unsigned)num_pieces, PIECE_THREADS, piece, slot_of_line,
           slot_first, num_slots, shape->nv, lines);
cleanup:
    return status;
}

/* ---- crop and pad: transposes through shared memory ---- */

enum { TILE = 32, TILE_ROWS = 8 };

/* A block transposes 32 lines × 32 rows. The padding of the tile keeps its columns in
 * different banks. */
template <typename real>
__global__ void crop_kernel(const void *lines_v, int64_t num_slots, int64_t nv, int64_t ny,
                            void *rows_v, int64_t row_stride, int64_t slot_first)
{
    typedef typename cuda_complex<real>::type value;
    __shared__ value tile[TILE][TILE + 1];
    const value *lines = (const value *)lines_v;
    value *rows = (value *)rows_v;
    const int64_t row0 = (int64_t)blockIdx.x * TILE, slot0 = (int64_t)blockIdx.y * TILE;
    for (int k = threadIdx.y; k < TILE; k += TILE_ROWS) {
        const int64_t slot = slot0 + k, row = row0 + threadIdx.x;
        if (slot >= num_slots || row >= ny) continue;
        const int64_t cell = row < ny / 2 ? nv - ny / 2 + row : row - ny / 2;
        tile[k][threadIdx.x] = lines[slot * nv + cell];
    }
    __syncthreads();
    for (int k = threadIdx.y; k < TILE; k += TILE_ROWS) {
        const int64_t row = row0 + k, slot = slot0 + threadIdx.x;
        if (slot >= num_slots || row >= ny) continue;
        rows[row * row_stride + slot_first + slot] = tile[threadIdx.x][k];
    }
}

/* Does the reverse of crop_kernel for all cells. Cells that belong to no row become
 * zero. */
template <typename real>
__global__ void pad_kernel(const void *rows_v, int64_t row_stride, int64_t slot_first,
                           int64_t num_slots, int64_t nv, int64_t ny, void *lines_v)
{
    typedef typename cuda_complex<real>::type value;
    __shared__ value tile[TILE][TILE + 1];
    const value *rows = (const value *)rows_v;
    value *lines = (value *)lines_v;
    const int64_t cell0 = (int64_t)blockIdx.x * TILE, slot0 = (int64_t)blockIdx.y * TILE;
    for (int k = threadIdx.y; k < TILE; k += TILE_ROWS) {
        const int64_t cell = cell0 + k, slot = slot0 + threadIdx.x;
        if (slot >= num_slots || cell >= nv) continue;
        const int64_t above = ny - ny / 2;
        value out = {0, 0};
        if (cell < above)
            out = rows[(cell + ny / 2) * row_stride + slot_first + slot];
        else if (cell >= nv - ny / 2)
            out = rows[(cell - (nv - ny / 2)) * row_stride + slot_first + slot];
        tile[k][threadIdx.x] = out;
    }
    __syncthreads();
    for (int k = threadIdx.y; k < TILE; k += TILE_ROWS) {
        const int64_t slot = slot0 + k, cell = cell0 + threadIdx.x;
        if (slot >= num_slots || cell >= nv) continue;
        lines[slot * nv + cell] = tile[threadIdx.x][k];
    }
}

tess_status plane_crop(const plane_shape *shape, const void *lines, int64_t num_slots,
                       void *rows, int64_t row_stride, int64_t slot_first)
{
    tess_status status = TESS_OK;
    const dim3 grid(blocks_of(shape->ny, TILE), blocks_of(num_slots, TILE));
    const dim3 block(TILE, TILE_ROWS);
    if (num_slots == 0) return TESS_OK;
    LAUNCH(crop_kernel, grid, block, lines, num_slots, shape->nv, shape->ny, rows,
           row_stride, slot_first);
cleanup:
    return status;
}

tess_status plane_pad(const plane_shape *shape, const void *rows, int64_t row_stride,
                      int64_t slot_first, int64_t num_slots, void *lines)
{
    tess_status status = TESS_OK;
    const dim3 grid(blocks_of(shape->nv, TILE), blocks_of(num_slots, TILE));
    const dim3 block(TILE, TILE_ROWS);
    if (num_slots == 0) return TESS_OK;
    LAUNCH(pad_kernel, grid, block, rows, row_stride, slot_first, num_slots, shape->nv,
           shape->ny, lines);
cleanup:
    return status;
}

/* ---- rows and columns ---- */

enum { ROW_THREADS = 256 };

template <typename real>
__global__ void spread_kernel(const void *rows_v, int64_t row_stride,
                              const int32_t *slot_of_line, int64_t nu, void *columns_v)
{
    typedef typename cuda_complex<real>::type value;
    const int64_t line = (int64_t)blockIdx.x * ROW_THREADS + threadIdx.x;
    if (line >= nu) return;
    const int32_t slot = slot_of_line[line];
    const value *row = (const value *)rows_v + (int64_t)blockIdx.y * row_stride;
    value out = {0, 0};
    if (slot >= 0) out = row[slot];
    ((value *)columns_v)[(int64_t)blockIdx.y * nu + line] = out;
}

template <typename real>
__global__ void gather_kernel(const void *columns_v, const int32_t *line_of_slot,
                              int64_t num_slots, int64_t nu, void *rows_v,
                              int64_t row_stride)
{
    typedef typename cuda_complex<real>::type value;
    const int64_t slot = (int64_t)blockIdx.x * ROW_THREADS + threadIdx.x;
    if (slot >= num_slots) return;
    const value *column = (const value *)columns_v + (int64_t)blockIdx.y * nu;
    ((value *)rows_v)[(int64_t)blockIdx.y * row_stride + slot] = column[line_of_slot[slot]];
}

/* blockIdx.y counts rows and ends at 65535. */
enum { MOST_ROWS = 65535 };

tess_status plane_spread(const plane_shape *shape, const void *rows, int64_t row_stride,
                         int64_t count, const int32_t *slot_of_line, void *columns)
{
    tess_status status = TESS_OK;
    const int64_t bytes = shape->is_double ? 16 : 8;
    for (int64_t k = 0; k < count; k += MOST_ROWS) {
        const int64_t here = count - k < MOST_ROWS ? count - k : (int64_t)MOST_ROWS;
        const dim3 grid(blocks_of(shape->nu, ROW_THREADS), (unsigned)here);
        LAUNCH(spread_kernel, grid, ROW_THREADS,
               (const char *)rows + k * row_stride * bytes, row_stride,
               slot_of_line, shape->nu, (char *)columns + k * shape->nu * bytes);
    }
cleanup:
    return status;
}

tess_status plane_gather(const plane_shape *shape, const void *columns, int64_t count,
                         const int32_t *line_of_slot, int64_t num_slots, void *rows,
                         int64_t row_stride)
{
    tess_status status = TESS_OK;
    const int64_t bytes = shape->is_double ? 16 : 8;
    for (int64_t k = 0; k < count && num_slots > 0; k += MOST_ROWS) {
        const int64_t here = count - k < MOST_ROWS ? count - k : (int64_t)MOST_ROWS;
        const dim3 grid(blocks_of(num_slots, ROW_THREADS), (unsigned)here);
        LAUNCH(gather_kernel, grid, ROW_THREADS,
               (const char *)columns + k * shape->nu * bytes, line_of_slot, num_slots,
               shape->nu, (char *)rows + k * row_stride * bytes, row_stride);
    }
cleanup:
    return status;
}

/* ---- w-screens ---- */

/* The turns w (n − 1 − center) may be hundreds. Their fraction, in [−½, ½], is
 * therefore formed in double precision, and its sine and cosine in the image's
 * precision. sincospi reduces its argument exactly. */
__device__ inline double screen_turns(const plane_shape &shape, double w_lambda, int64_t row,
                                      int64_t pixel)
{
    const double l = shape.l0 - (double)(pixel - shape.nx / 2) * shape.scale_rad;
    const double m = shape.m0 + (double)(row - shape.ny / 2) * shape.scale_m_rad;
    const double r2 = fmin(l * l + m * m, 1.0);
    const double nm1 = -r2 / (sqrt(1.0 - r2) + 1.0);
    const double turns = w_lambda * (nm1 - shape.nm1_center);
    return turns - floor(turns + 0.5);
}

__device__ inline float2 unit_phase(double turns, float)
{
    float2 out;
    sincospif(2.0f * (float)turns, &out.y, &out.x);
    return out;
}

__device__ inline double2 unit_phase(double turns, double)
{
    double2 out;
    sincospi(2.0 * turns, &out.y, &out.x);
    return out;
}

/* A thread works on a pixel: it reads a complex value, and reads and writes a real one.
 */
template <typename real>
__global__ void accumulate_kernel(const plane_shape shape, double w_lambda,
                                  const void *columns_v, int64_t first_row, void *image_v)
{
    typedef typename cuda_complex<real>::type value;
    const int64_t pixel = (int64_t)blockIdx.x * ROW_THREADS + threadIdx.x;
    const int64_t row = blockIdx.y, half = shape.nx / 2;
    if (pixel >= shape.nx) return;
    const int64_t line = pixel < half ? shape.nu - half + pixel : pixel - half;
    const value from = ((const value *)columns_v)[row * shape.nu + line];
    real *image = (real *)image_v + row * shape.nx + pixel;
    real out = from.x;
    if (shape.do_w) {
        const value phase =
            unit_phase(screen_turns(shape, w_lambda, first_row + row, pixel), (real)0);
        out = from.x * phase.x + from.y * phase.y;
    }
    *image += out;
}

template <typename real>
__global__ void unscreen_kernel(const plane_shape shape, double w_lambda,
                                const void *image_v, int64_t first_row, void *columns_v)
{
    typedef typename cuda_complex<real>::type value;
    const int64_t line = (int64_t)blockIdx.x * ROW_THREADS + threadIdx.x;
    const int64_t row = blockIdx.y, half = shape.nx / 2;
    if (line >= shape.nu) return;
    int64_t pixel = -1;
    if (line < shape.nx - half)
        pixel = line + half;
    else if (line >= shape.nu - half)
        pixel = line - (shape.nu - half);
    value out = {0, 0};
    if (pixel >= 0) {
        const real from = ((const real *)image_v)[row * shape.nx + pixel];
        out.x = from;
        if (shape.do_w) {
            const value phase =
                unit_phase(screen_turns(shape, w_lambda, first_row + row, pixel), (real)0);
            out.x = from * phase.x;
            out.y = from * phase.y;
        }
    }
    ((value *)columns_v)[row * shape.nu + line] = out;
}

tess_status plane_accumulate(const plane_shape *shape, double w_lambda,
                             const void *columns, int64_t first_row, int64_t count,
                             void *image)
{
    tess_status status = TESS_OK;
    const int64_t bytes = shape->is_double ? 16 : 8;
    for (int64_t k = 0; k < count; k += MOST_ROWS) {
        const int64_t here = count - k < MOST_ROWS ? count - k : (int64_t)MOST_ROWS;
        const dim3 grid(blocks_of(shape->nx, ROW_THREADS), (unsigned)here);
        LAUNCH(accumulate_kernel, grid, ROW_THREADS, *shape, w_lambda,
               (const char *)columns + k * shape->nu * bytes, first_row + k,
               (char *)image + k * shape->nx * bytes / 2);
    }
cleanup:
    return status;
}

tess_status plane_unscreen(const plane_shape *shape, double w_lambda, const void *image,
                           int64_t first_row, int64_t count, void *columns)
{
    tess_status status = TESS_OK;
    const int64_t bytes = shape->is_double ? 16 : 8;
    for (int64_t k = 0; k < count; k += MOST_ROWS) {
        const int64_t here = count - k < MOST_ROWS ? count - k : (int64_t)MOST_ROWS;
        const dim3 grid(blocks_of(shape->nu, ROW_THREADS), (unsigned)here);
        LAUNCH(unscreen_kernel, grid, ROW_THREADS, *shape, w_lambda,
               (const char *)image + k * shape->nx * bytes / 2, first_row + k,
               (char *)columns + k * shape->nu * bytes);
    }
cleanup:
    return status;
}

/* ---- exchange ---- */

template <typename real, bool packing>
__device__ void move_part(const plane_part &part, void *values_v)
{
    typedef typename cuda_complex<real>::type value;
    const tess_piece &piece = part.piece;
    value *values = (value *)values_v + part.offset;
    for (int k = threadIdx.x; k < piece.num_lines * piece.num_cells; k += blockDim.x) {
        value *cell = (value *)piece.data + k / piece.num_cells * piece.stride +
                      k % piece.num_cells;
        if (packing)
            values[k] = *cell;
        else
            *cell = values[k];
    }
}

template <typename real> __global__ void pack_kernel(const plane_part *part, void *values)
{
    move_part<real, true>(part[blockIdx.x], values);
}

template <typename real>
__global__ void unpack_kernel(const plane_part *part, const void *values)
{
    move_part<real, false>(part[blockIdx.x], (void *)values);
}

tess_status plane_pack(const plane_shape *shape, const plane_part *part, int64_t count,
                       void *values)
{
    tess_status status = TESS_OK;
    if (count == 0) return TESS_OK;
    LAUNCH(pack_kernel, (unsigned)count, PIECE_THREADS, part, values);
cleanup:
    return status;
}

tess_status plane_unpack(const plane_shape *shape, const plane_part *part, int64_t count,
                         const void *values)
{
    tess_status status = TESS_OK;
    if (count == 0) return TESS_OK;
    LAUNCH(unpack_kernel, (unsigned)count, PIECE_THREADS, part, values);
cleanup:
    return status;
}
