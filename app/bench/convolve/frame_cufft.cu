/* frame_device.h's transforms by cuFFT. */
#include <cufft.h>

#include "frame_device.h"
#include "tess_device.h"
#include "tess_mem.h"

struct frame_device_fft {
    bool made[2];
    cufftHandle plan[2]; /* forward, back */
};

enum { FORWARD, BACK };

#define TESS_CUFFT(call)                                                               \
    do {                                                                               \
        const cufftResult tess_cufft_result = (call);                                  \
        if (tess_cufft_result != CUFFT_SUCCESS)                                        \
            TESS_FAIL(tess_cufft_result == CUFFT_ALLOC_FAILED ? TESS_ERR_ALLOC         \
                                                              : TESS_ERR_RESOURCE,     \
                      "cuFFT of a frame: error %d", (int)tess_cufft_result);           \
    } while (0)

static tess_status make(frame_device_fft *fft, int way, int64_t lx, int64_t ly)
{
    tess_status status = TESS_OK;
    TESS_CUFFT(cufftPlan2d(&fft->plan[way], (int)ly, (int)lx,
                           way == FORWARD ? CUFFT_R2C : CUFFT_C2R));
    fft->made[way] = true;
    TESS_CUFFT(cufftSetStream(fft->plan[way], tess_device_stream()));
cleanup:
    return status;
}

tess_status frame_device_fft_create(int64_t lx, int64_t ly, frame_device_fft **fft_out)
{
    tess_status status = TESS_OK;
    frame_device_fft *fft = (frame_device_fft *)tess_alloc_zero(1, sizeof *fft);
    if (!fft) TESS_FAIL(TESS_ERR_ALLOC, "transforms of frames");
    TESS_TRY(make(fft, FORWARD, lx, ly));
    TESS_TRY(make(fft, BACK, lx, ly));
    *fft_out = fft;
    fft = NULL;
cleanup:
    frame_device_fft_destroy(fft);
    return status;
}

void frame_device_fft_destroy(frame_device_fft *fft)
{
    if (!fft) return;
    for (int way = 0; way < 2; ++way)
        if (fft->made[way]) cufftDestroy(fft->plan[way]);
    tess_free(fft);
}

tess_status frame_device_fft_forward(frame_device_fft *fft, float *image, void *spectrum)
{
    tess_status status = TESS_OK;
    TESS_CUFFT(cufftExecR2C(fft->plan[FORWARD], image, (cufftComplex *)spectrum));
cleanup:
    return status;
}

tess_status frame_device_fft_back(frame_device_fft *fft, void *spectrum, float *image)
{
    tess_status status = TESS_OK;
    TESS_CUFFT(cufftExecC2R(fft->plan[BACK], (cufftComplex *)spectrum, image));
cleanup:
    return status;
}
