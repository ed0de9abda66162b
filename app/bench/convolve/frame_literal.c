/* The convolution of tess_bench_convolve.h as its definition is written. */
#include <string.h>

#include "frame_step.h"
#include "tess_mem.h"

struct frame_plan {
    frame_shape shape;
    float *psf;
};

static void destroy(frame_plan *plan)
{
    if (!plan) return;
    tess_free(plan->psf);
    tess_free(plan);
}

static tess_status create(const frame_shape *shape, const float *psf, int threads,
                          frame_plan **plan_out)
{
    tess_status status = TESS_OK;
    const int64_t taps = shape->kx * shape->ky;
    frame_plan *plan = tess_alloc_zero(1, sizeof *plan);
    (void)threads;
    if (!plan) TESS_FAIL(TESS_ERR_ALLOC, "literal convolution");
    plan->shape = *shape;
    plan->psf = tess_alloc(taps, sizeof *plan->psf);
    if (!plan->psf) TESS_FAIL(TESS_ERR_ALLOC, "PSF of %lld values", (long long)taps);
    memcpy(plan->psf, psf, (size_t)taps * sizeof *psf);
    *plan_out = plan;
    plan = NULL;
cleanup:
    destroy(plan);
    return status;
}

/* nx and ny are added so that the dividend of each remainder is positive. */
static tess_status execute(frame_plan *plan, const float *frame, float *out)
{
    const int64_t nx = plan->shape.nx, ny = plan->shape.ny;
    const int64_t kx = plan->shape.kx, ky = plan->shape.ky;
    for (int64_t y = 0; y < ny; ++y)
        for (int64_t x = 0; x < nx; ++x) {
            float sum = 0;
            for (int64_t j = 0; j < ky; ++j)
                for (int64_t i = 0; i < kx; ++i)
                    sum +=
                        plan->psf[j * kx + i] * frame[(y + j - ky / 2 + ny) % ny * nx +
                                                      (x + i - kx / 2 + nx) % nx];
            out[y * nx + x] = sum;
        }
    return TESS_OK;
}

const frame_step frame_step_literal = {.name = "literal",
                                       .what = "the definition: remainders",
                                       .create = create,
                                       .execute = execute,
                                       .destroy = destroy};
