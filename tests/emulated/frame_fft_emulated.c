/* The transforms of app/bench/convolve/frame_device.h in host memory, by FFTW. */
#include <fftw3.h>

#include "device_emulated.h"
#include "frame_device.h"
#include "tess_mem.h"

struct frame_device_fft {
    int64_t lx, ly;
};

tess_status frame_device_fft_create(int64_t lx, int64_t ly, frame_device_fft **fft_out)
{
    tess_status status = TESS_OK;
    frame_device_fft *fft = tess_alloc_zero(1, sizeof *fft);
    if (!fft) TESS_FAIL(TESS_ERR_ALLOC, "transforms of frames");
    fft->lx = lx;
    fft->ly = ly;
    *fft_out = fft;
cleanup:
    return status;
}

void frame_device_fft_destroy(frame_device_fft *fft)
{
    tess_free(fft);
}

static tess_status run(fftwf_plan plan)
{
    tess_status status = TESS_OK;
    if (!plan) TESS_FAIL(TESS_ERR_INTERNAL, "FFTW makes no plan for a frame");
    if (device_emulated_enqueues(&status)) fftwf_execute(plan);
cleanup:
    if (plan) fftwf_destroy_plan(plan);
    return status;
}

tess_status frame_device_fft_forward(frame_device_fft *fft, float *image,
                                     void *spectrum)
{
    return run(fftwf_plan_dft_r2c_2d((int)fft->ly, (int)fft->lx, image, spectrum,
                                     FFTW_ESTIMATE));
}

tess_status frame_device_fft_back(frame_device_fft *fft, void *spectrum, float *image)
{
    return run(fftwf_plan_dft_c2r_2d((int)fft->ly, (int)fft->lx, spectrum, image,
                                     FFTW_ESTIMATE));
}
