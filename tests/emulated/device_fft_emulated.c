/* tess_device_fft.h in host memory, by FFTW. */
#include "tess_device_fft.h"

#include <fftw3.h>

#include "device_emulated.h"
#include "tess_device.h"
#include "tess_mem.h"

struct tess_device_fft {
    int64_t lx, ly;
    bool is_double;
    void *work;
};

tess_status tess_device_fft_create(int64_t lx, int64_t ly, bool is_double,
                                   tess_device_fft **fft_out)
{
    tess_status status = TESS_OK;
    tess_device_fft *fft = tess_alloc_zero(1, sizeof *fft);
    if (!fft) TESS_FAIL(TESS_ERR_ALLOC, "transforms of images");
    *fft = (tess_device_fft){.lx = lx, .ly = ly, .is_double = is_double};
    TESS_TRY(tess_device_alloc((int64_t)tess_device_fft_bytes(lx, ly, is_double),
                               "transforms of images", &fft->work));
    *fft_out = fft;
    fft = NULL;
cleanup:
    tess_device_fft_destroy(fft);
    return status;
}

void tess_device_fft_destroy(tess_device_fft *fft)
{
    if (!fft) return;
    tess_device_free(fft->work);
    tess_free(fft);
}

double tess_device_fft_bytes(int64_t lx, int64_t ly, bool is_double)
{
    return (double)(lx / 2 + 1) * (double)ly * (is_double ? 16 : 8);
}

static tess_status run_single(fftwf_plan plan)
{
    tess_status status = TESS_OK;
    if (!plan) TESS_FAIL(TESS_ERR_INTERNAL, "FFTW makes no plan for an image");
    if (device_emulated_enqueues(&status)) fftwf_execute(plan);
cleanup:
    if (plan) fftwf_destroy_plan(plan);
    return status;
}

static tess_status run_double(fftw_plan plan)
{
    tess_status status = TESS_OK;
    if (!plan) TESS_FAIL(TESS_ERR_INTERNAL, "FFTW makes no plan for an image");
    if (device_emulated_enqueues(&status)) fftw_execute(plan);
cleanup:
    if (plan) fftw_destroy_plan(plan);
    return status;
}

tess_status tess_device_fft_forward(tess_device_fft *fft, void *image, void *spectrum)
{
    const int lx = (int)fft->lx, ly = (int)fft->ly;
    return fft->is_double ? run_double(fftw_plan_dft_r2c_2d(ly, lx, image, spectrum,
                                                            FFTW_ESTIMATE))
                          : run_single(fftwf_plan_dft_r2c_2d(ly, lx, image, spectrum,
                                                             FFTW_ESTIMATE));
}

tess_status tess_device_fft_back(tess_device_fft *fft, void *spectrum, void *image)
{
    const int lx = (int)fft->lx, ly = (int)fft->ly;
    return fft->is_double ? run_double(fftw_plan_dft_c2r_2d(ly, lx, spectrum, image,
                                                            FFTW_ESTIMATE))
                          : run_single(fftwf_plan_dft_c2r_2d(ly, lx, spectrum, image,
                                                             FFTW_ESTIMATE));
}
