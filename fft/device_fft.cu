/* Implements tess_device_fft.h by cuFFT. Both directions share their work space. */
#include "tess_device_fft.h"

#include "device_plan.h"
#include "tess_device.h"
#include "tess_mem.h"

enum { FORWARD, BACK, WAYS };

struct tess_device_fft {
    bool is_double, made[WAYS];
    cufftHandle plan[WAYS];
    void *work;
};

static tess_status make(tess_device_fft *fft, int way, int64_t lx, int64_t ly,
                        size_t *bytes)
{
    tess_status status = TESS_OK;
    device_plan_shape shape = {2, {ly, lx}, 1, CUFFT_R2C};
    if (fft->is_double)
        shape.type = way == FORWARD ? CUFFT_D2Z : CUFFT_Z2D;
    else
        shape.type = way == FORWARD ? CUFFT_R2C : CUFFT_C2R;
    TESS_TRY(device_plan_make(&shape, &fft->plan[way], bytes));
    fft->made[way] = true;
cleanup:
    return status;
}

tess_status tess_device_fft_create(int64_t lx, int64_t ly, bool is_double,
                                   tess_device_fft **fft_out)
{
    tess_status status = TESS_OK;
    size_t bytes[WAYS] = {0, 0}, most = 0;
    tess_device_fft *fft = (tess_device_fft *)tess_alloc_zero(1, sizeof *fft);
    if (!fft) TESS_FAIL(TESS_ERR_ALLOC, "transforms of images");
    fft->is_double = is_double;
    for (int way = 0; way < WAYS; ++way) {
        TESS_TRY(make(fft, way, lx, ly, &bytes[way]));
        most = bytes[way] > most ? bytes[way] : most;
    }
    TESS_TRY(tess_device_alloc((int64_t)most, "transforms of images", &fft->work));
    for (int way = 0; way < WAYS; ++way)
        DEVICE_CUFFT(cufftSetWorkArea(fft->plan[way], fft->work));
    *fft_out = fft;
    fft = NULL;
cleanup:
    tess_device_fft_destroy(fft);
    return status;
}

void tess_device_fft_destroy(tess_device_fft *fft)
{
    if (!fft) return;
    for (int way = 0; way < WAYS; ++way)
        if (fft->made[way]) device_plan_free(fft->plan[way]);
    tess_device_free(fft->work);
    tess_free(fft);
}

double tess_device_fft_bytes(int64_t lx, int64_t ly, bool is_double)
{
    return (double)(lx / 2 + 1) * (double)ly * (is_double ? 16 : 8);
}

tess_status tess_device_fft_forward(tess_device_fft *fft, void *image, void *spectrum)
{
    tess_status status = TESS_OK;
    if (fft->is_double)
        DEVICE_CUFFT(cufftExecD2Z(fft->plan[FORWARD], (cufftDoubleReal *)image,
                                  (cufftDoubleComplex *)spectrum));
    else
        DEVICE_CUFFT(cufftExecR2C(fft->plan[FORWARD], (cufftReal *)image,
                                  (cufftComplex *)spectrum));
cleanup:
    return status;
}

tess_status tess_device_fft_back(tess_device_fft *fft, void *spectrum, void *image)
{
    tess_status status = TESS_OK;
    if (fft->is_double)
        DEVICE_CUFFT(cufftExecZ2D(fft->plan[BACK], (cufftDoubleComplex *)spectrum,
                                  (cufftDoubleReal *)image));
    else
        DEVICE_CUFFT(cufftExecC2R(fft->plan[BACK], (cufftComplex *)spectrum,
                                  (cufftReal *)image));
cleanup:
    return status;
}
