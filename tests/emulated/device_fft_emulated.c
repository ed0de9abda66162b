/* tess_device_fft.h in host memory, by FFTW. */
#include "tess_device_fft.h"

#include <fftw3.h>

#include "device_emulated.h"
#include "tess_device.h"
#include "tess_fft.h"
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

/* ---- plans ---- */

/* Both precisions, in one thread at a time as the planner wants it: lanes transform
 * side by side. */
typedef struct image_plan {
    fftw_plan of_double;
    fftwf_plan of_single;
} image_plan;

static image_plan make_plan(const tess_device_fft *fft, void *in, void *out,
                            bool forward)
{
    const int lx = (int)fft->lx, ly = (int)fft->ly;
    image_plan plan = {0};
    tess_fft_lock_planner();
    if (fft->is_double && forward)
        plan.of_double = fftw_plan_dft_r2c_2d(ly, lx, in, out, FFTW_ESTIMATE);
    else if (fft->is_double)
        plan.of_double = fftw_plan_dft_c2r_2d(ly, lx, in, out, FFTW_ESTIMATE);
    else if (forward)
        plan.of_single = fftwf_plan_dft_r2c_2d(ly, lx, in, out, FFTW_ESTIMATE);
    else
        plan.of_single = fftwf_plan_dft_c2r_2d(ly, lx, in, out, FFTW_ESTIMATE);
    tess_fft_unlock_planner();
    return plan;
}

static void destroy_plan(const image_plan *plan)
{
    tess_fft_lock_planner();
    if (plan->of_double) fftw_destroy_plan(plan->of_double);
    if (plan->of_single) fftwf_destroy_plan(plan->of_single);
    tess_fft_unlock_planner();
}

static tess_status run(const tess_device_fft *fft, void *in, void *out, bool forward)
{
    tess_status status = TESS_OK;
    const image_plan plan = make_plan(fft, in, out, forward);
    if (!plan.of_double && !plan.of_single)
        TESS_FAIL(TESS_ERR_INTERNAL, "FFTW makes no plan for an image");
    if (!device_emulated_enqueues(&status)) goto cleanup;
    if (plan.of_double) fftw_execute(plan.of_double);
    if (plan.of_single) fftwf_execute(plan.of_single);
cleanup:
    destroy_plan(&plan);
    return status;
}

tess_status tess_device_fft_forward(tess_device_fft *fft, void *image, void *spectrum)
{
    return run(fft, image, spectrum, true);
}

tess_status tess_device_fft_back(tess_device_fft *fft, void *spectrum, void *image)
{
    return run(fft, spectrum, image, false);
}
