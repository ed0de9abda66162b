/* Convolution on a GPU by transforms, with that of the PSF kept from frame to frame;
 * padded as frame_fft.c does it. Its kernels move each value once: memory bandwidth
 * limits them. */
#include "frame_device.h"

#include "tess_convolve.h"
#include "tess_cuda_launch.cuh"
#include "tess_device_fft.h"
#include "tess_mem.h"

namespace
{

enum { THREADS = 256 };

struct cufft_plan {
    frame_device memory;  /* first */
    int64_t lx, ly, half; /* half: lx/2 + 1 */
    tess_device_fft *fft;
    void *image;    /* device float [ly][lx] */
    void *spectrum; /* device complex [ly][half] */
    void *kept;     /* so too, of the PSF */
};

int64_t blocks_of(int64_t count)
{
    return (count + THREADS - 1) / THREADS;
}

/* A thread a value of image[ly][lx]: the frame with what wraps around, then zeros. */
__global__ void extend_kernel(frame_shape shape, int64_t lx, int64_t ly,
                              const float *frame, float *image)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= lx * ly) return;
    const int64_t y = k / lx, x = k % lx;
    float value = 0;
    if (y < shape.ny + shape.ky - 1 && x < shape.nx + shape.kx - 1) {
        int64_t row = y - shape.ky / 2, column = x - shape.kx / 2;
        row += row < 0 ? shape.ny : row >= shape.ny ? -shape.ny : 0;
        column += column < 0 ? shape.nx : column >= shape.nx ? -shape.nx : 0;
        value = frame[row * shape.nx + column];
    }
    image[k] = value;
}

/* A thread a value: times the conjugate of the PSF's, normalised. */
__global__ void multiply_kernel(int64_t count, float scale, const float2 *kept,
                                float2 *spectrum)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k >= count) return;
    const float2 a = spectrum[k], b = kept[k];
    spectrum[k] =
        make_float2(scale * (a.x * b.x + a.y * b.y), scale * (a.y * b.x - a.x * b.y));
}

/* A thread a pixel of the result. */
__global__ void crop_kernel(int64_t nx, int64_t ny, int64_t lx, const float *image,
                            float *out)
{
    const int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (k < nx * ny) out[k] = image[k / nx * lx + k % nx];
}

void destroy(frame_plan *plan_v)
{
    cufft_plan *plan = (cufft_plan *)plan_v;
    if (!plan) return;
    frame_device_free(&plan->memory);
    tess_device_fft_destroy(plan->fft);
    tess_device_free(plan->image);
    tess_device_free(plan->spectrum);
    tess_device_free(plan->kept);
    tess_free(plan);
}

tess_status transform_psf(cufft_plan *plan, const float *psf)
{
    tess_status status = TESS_OK;
    const int64_t line = (int64_t)sizeof(float);
    TESS_TRY(tess_device_zero(plan->image, plan->lx * plan->ly * line));
    TESS_TRY(tess_device_upload_rows(
        plan->image, plan->lx * line, psf, plan->memory.shape.kx * line,
        plan->memory.shape.kx * line, plan->memory.shape.ky));
    TESS_TRY(tess_device_fft_forward(plan->fft, plan->image, plan->kept));
cleanup:
    return status;
}

tess_status create(const frame_shape *shape, const float *psf, int,
                   frame_plan **plan_out)
{
    tess_status status = TESS_OK;
    int64_t bytes = 0;
    cufft_plan *plan = (cufft_plan *)tess_alloc_zero(1, sizeof *plan);
    if (!plan) TESS_FAIL(TESS_ERR_ALLOC, "convolution by transforms on a GPU");
    plan->lx = tess_convolve_length(shape->nx + shape->kx - 1);
    plan->ly = tess_convolve_length(shape->ny + shape->ky - 1);
    plan->half = plan->lx / 2 + 1;
    bytes = plan->half * plan->ly * 2 * (int64_t)sizeof(float);
    TESS_TRY(frame_device_take(shape, &plan->memory));
    TESS_TRY(tess_device_fft_create(plan->lx, plan->ly, false, &plan->fft));
    TESS_TRY(tess_device_alloc(bytes, "frame", &plan->image));
    TESS_TRY(tess_device_alloc(bytes, "spectrum of a frame", &plan->spectrum));
    TESS_TRY(tess_device_alloc(bytes, "spectrum of the PSF", &plan->kept));
    TESS_TRY(transform_psf(plan, psf));
    *plan_out = (frame_plan *)plan;
    plan = NULL;
cleanup:
    destroy((frame_plan *)plan);
    return status;
}

tess_status execute(frame_plan *plan_v, const float *, float *)
{
    tess_status status = TESS_OK;
    cufft_plan *plan = (cufft_plan *)plan_v;
    const int64_t values = plan->half * plan->ly, pixels = plan->lx * plan->ly;
    tess_launch(extend_kernel, blocks_of(pixels), THREADS, 0, plan->memory.shape,
               plan->lx, plan->ly, (const float *)plan->memory.frame,
               (float *)plan->image);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(tess_device_fft_forward(plan->fft, plan->image, plan->spectrum));
    tess_launch(multiply_kernel, blocks_of(values), THREADS, 0, values,
               (float)(1 / (double)pixels), (const float2 *)plan->kept,
               (float2 *)plan->spectrum);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(tess_device_fft_back(plan->fft, plan->spectrum, plan->image));
    tess_launch(crop_kernel, blocks_of(plan->memory.shape.nx * plan->memory.shape.ny),
               THREADS, 0, plan->memory.shape.nx, plan->memory.shape.ny, plan->lx,
               (const float *)plan->image, (float *)plan->memory.out);
    TESS_CUDA_LAUNCHED();
    TESS_TRY(tess_device_wait());
cleanup:
    return status;
}

} // namespace

const frame_step frame_step_device_fft = {"cufft",
                                     "cuFFT, the PSF's transform is kept",
                                     false,
                                     true,
                                     create,
                                     execute,
                                     destroy,
                                     frame_device_upload,
                                     frame_device_download};
