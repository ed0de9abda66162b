/* Convolution on a GPU as a sum in the image. A block makes a tile of the result; the
 * part of the frame that it needs, and the taps, are in shared memory. A PSF is taken
 * in parts of PART × PART taps, so that shared memory suffices for any size. */
#include "frame_device.h"

#include "tess_gcf_device.cuh"
#include "tess_mem.h"

namespace
{

/* A thread makes ROWS pixels of a column, a block COLUMNS × TALL. */
enum {
    PART = 12,
    ROWS = 16,
    COLUMNS = 32,
    THREADS = 256,
    TALL = THREADS / COLUMNS * ROWS,
    WIDTH = COLUMNS + PART - 1,
    HEIGHT = TALL + PART - 1
};

struct cuda_shape {
    int nx, ny, kx, ky;
    int tiles_x, parts_x, parts_y;
};

struct cuda_plan {
    frame_device memory; /* first */
    cuda_shape shape;
    int64_t tiles;
    void *taps; /* device float [parts_y][parts_x][PART i][PART j], 0 beyond the PSF */
};

__device__ inline int wrapped(int at, int n)
{
    if (at >= 0 && at < n) return at;
    const int rest = at % n;
    return rest < 0 ? rest + n : rest;
}

/* Work a thread: ROWS pixels, for each tap of a column of taps one addition to each of
 * them; it reads ROWS + PART − 1 values of the frame and PART taps of shared memory for
 * ROWS × PART of these. Shared memory: 24 KiB of the frame and .6 KiB of taps. Nothing
 * is atomic. Limit: arithmetic in single precision. */
__global__ void direct_kernel(cuda_shape shape, const float *taps, const float *frame,
                              float *out)
{
    __shared__ float part[HEIGHT * WIDTH];
    __shared__ float tap[PART * PART];
    const int column = threadIdx.x % COLUMNS, top = threadIdx.x / COLUMNS * ROWS;
    const int x0 = (int)(blockIdx.x % shape.tiles_x) * COLUMNS;
    const int y0 = (int)(blockIdx.x / shape.tiles_x) * TALL;
    float sum[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        sum[r] = 0;
    for (int p = 0; p < shape.parts_y * shape.parts_x; ++p) {
        const int from_y = y0 + p / shape.parts_x * PART - shape.ky / 2;
        const int from_x = x0 + p % shape.parts_x * PART - shape.kx / 2;
        __syncthreads(); /* the part before was read */
        for (int k = threadIdx.x; k < HEIGHT * WIDTH; k += THREADS)
            part[k] = frame[(int64_t)wrapped(from_y + k / WIDTH, shape.ny) * shape.nx +
                            wrapped(from_x + k % WIDTH, shape.nx)];
        if (threadIdx.x < PART * PART)
            tap[threadIdx.x] = taps[p * PART * PART + threadIdx.x];
        __syncthreads();
        for (int i = 0; i < PART; ++i) {
            float here[PART];
#pragma unroll
            for (int j = 0; j < PART; ++j)
                here[j] = tap[i * PART + j];
#pragma unroll
            for (int t = 0; t < ROWS + PART - 1; ++t) {
                const float value = part[(top + t) * WIDTH + column + i];
#pragma unroll
                for (int r = 0; r < ROWS; ++r)
                    if (t >= r && t - r < PART) sum[r] += here[t - r] * value;
            }
        }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        if (x0 + column < shape.nx && y0 + top + r < shape.ny)
            out[(int64_t)(y0 + top + r) * shape.nx + x0 + column] = sum[r];
}

int parts_of(int64_t count, int size)
{
    return (int)((count + size - 1) / size);
}

/* The taps as the kernel reads them, in host memory. */
float *make_taps(const cuda_shape *shape, const float *psf)
{
    float *taps = (float *)tess_alloc_zero((int64_t)shape->parts_y * shape->parts_x,
                                           PART * PART * 4);
    for (int j = 0; taps && j < shape->ky; ++j)
        for (int i = 0; i < shape->kx; ++i) {
            const int64_t p = (int64_t)(j / PART) * shape->parts_x + i / PART;
            taps[(p * PART + i % PART) * PART + j % PART] =
                psf[(int64_t)j * shape->kx + i];
        }
    return taps;
}

void destroy(frame_plan *plan_v)
{
    cuda_plan *plan = (cuda_plan *)plan_v;
    if (!plan) return;
    frame_device_free(&plan->memory);
    tess_device_free(plan->taps);
    tess_free(plan);
}

tess_status create(const frame_shape *shape, const float *psf, int,
                   frame_plan **plan_out)
{
    tess_status status = TESS_OK;
    float *taps = NULL;
    int64_t bytes = 0;
    cuda_plan *plan = (cuda_plan *)tess_alloc_zero(1, sizeof *plan);
    if (!plan) TESS_FAIL(TESS_ERR_ALLOC, "convolution on a GPU");
    plan->shape = {(int)shape->nx,
                   (int)shape->ny,
                   (int)shape->kx,
                   (int)shape->ky,
                   parts_of(shape->nx, COLUMNS),
                   parts_of(shape->kx, PART),
                   parts_of(shape->ky, PART)};
    plan->tiles = (int64_t)plan->shape.tiles_x * parts_of(shape->ny, TALL);
    bytes = (int64_t)plan->shape.parts_y * plan->shape.parts_x * PART * PART *
            (int64_t)sizeof(float);
    taps = make_taps(&plan->shape, psf);
    if (!taps) TESS_FAIL(TESS_ERR_ALLOC, "PSF");
    TESS_TRY(frame_device_take(shape, &plan->memory));
    TESS_TRY(tess_device_alloc(bytes, "PSF", &plan->taps));
    TESS_TRY(tess_device_upload(plan->taps, taps, bytes));
    *plan_out = (frame_plan *)plan;
    plan = NULL;
cleanup:
    tess_free(taps);
    destroy((frame_plan *)plan);
    return status;
}

tess_status execute(frame_plan *plan_v, const float *, float *)
{
    tess_status status = TESS_OK;
    const cuda_plan *plan = (const cuda_plan *)plan_v;
    tess_launch(direct_kernel, plan->tiles, THREADS, 0, plan->shape,
               (const float *)plan->taps, (const float *)plan->memory.frame,
               (float *)plan->memory.out);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(tess_device_wait());
cleanup:
    return status;
}

} // namespace

const frame_step frame_step_device = {"cuda",
                                    "tiles in shared memory",
                                    false,
                                    false,
                                    create,
                                    execute,
                                    destroy,
                                    frame_device_upload,
                                    frame_device_download};
