/* Makes up a frame and a PSF, and times the steps of convolving them. */
#include "tess_bench_convolve.h"

#include <math.h>
#include <string.h>

#include "frame_step.h"
#include "tess_bench_list.h"
#include "tess_log.h"
#include "tess_mem.h"

/* A frame, a PSF, their convolution by the definition, and room for that of a step. */
typedef struct bench_frames {
    frame_shape shape;
    float *psf, *frame, *literal, *out;
} bench_frames;

/* What is told to whom. */
typedef struct bench_run {
    const tess_bench_convolve_case *what;
    bench_frames frames;
    double *seconds; /* [repeat] */
    tess_bench_convolve_tell *tell;
    void *context;
} bench_run;

/* ---- what is convolved ---- */

/* Uniform in [0, 1): Knuth's 64-bit generator, the same everywhere. */
static float draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(*state >> 40) * 0x1p-24F;
}

/* A core and the wings of light that a surface scatters, (1 + (r/r0)²)^−1.4, of sum 1.
 * It is not symmetric, so that a mirrored PSF shows up. */
static void fill_psf(const frame_shape *shape, float *psf)
{
    double sum = 0;
    for (int pass = 0; pass < 2; ++pass)
        for (int64_t j = 0; j < shape->ky; ++j)
            for (int64_t i = 0; i < shape->kx; ++i) {
                const double y = (double)(j - shape->ky / 2);
                const double x = (double)(i - shape->kx / 2) + 0.2 * y + 0.3;
                const double value = pow(1 + x * x + 1.5 * y * y, -1.4);
                if (pass == 0)
                    sum += value;
                else
                    psf[j * shape->kx + i] = (float)(value / sum);
            }
}

static tess_status make_frames(const tess_bench_convolve_case *what,
                               bench_frames *frames)
{
    tess_status status = TESS_OK;
    const int64_t pixels = what->nx * what->ny;
    uint64_t random = 20;
    frames->shape = (frame_shape){what->nx, what->ny, what->kx, what->ky};
    frames->psf = tess_alloc(what->kx * what->ky, sizeof *frames->psf);
    frames->frame = tess_alloc(pixels, sizeof *frames->frame);
    frames->literal = tess_alloc(pixels, sizeof *frames->literal);
    frames->out = tess_alloc(pixels, sizeof *frames->out);
    if (!frames->psf || !frames->frame || !frames->literal || !frames->out)
        TESS_FAIL(TESS_ERR_ALLOC, "frames of %lld × %lld pixels", (long long)what->nx,
                  (long long)what->ny);
    for (int64_t k = 0; k < pixels; ++k)
        frames->frame[k] = draw(&random);
    fill_psf(&frames->shape, frames->psf);
cleanup:
    return status;
}

static void free_frames(bench_frames *frames)
{
    tess_free(frames->psf);
    tess_free(frames->frame);
    tess_free(frames->literal);
    tess_free(frames->out);
}

/* ---- one step ---- */

static tess_status once(const frame_step *step, frame_plan *plan, bench_frames *frames,
                        double *seconds)
{
    const double start = tess_time_now();
    const tess_status status = step->execute(plan, frames->frame, frames->out);
    *seconds = tess_time_now() - start;
    return status;
}

static tess_status upload(const frame_step *step, frame_plan *plan,
                          const bench_frames *frames, double *seconds)
{
    const double start = tess_time_now();
    const tess_status status = step->upload(plan, frames->frame);
    *seconds += tess_time_now() - start;
    return status;
}

static tess_status download(const frame_step *step, frame_plan *plan,
                            bench_frames *frames, double *seconds)
{
    const double start = tess_time_now();
    const tess_status status = step->download(plan, frames->out);
    *seconds += tess_time_now() - start;
    return status;
}

/* Once to warm up, then as often as counts. What a step before has left does not count
 * as a result. */
static tess_status time_step(bench_run *run, const frame_step *step, int threads,
                             tess_bench_convolve_row *row)
{
    tess_status status = TESS_OK;
    bench_frames *frames = &run->frames;
    frame_plan *plan = NULL;
    const int64_t pixels = frames->shape.nx * frames->shape.ny;
    const double start = tess_time_now();
    TESS_TRY(step->create(&frames->shape, frames->psf, threads, &plan));
    row->setup_s = tess_time_now() - start;
    memset(frames->out, 0xff, (size_t)pixels * sizeof *frames->out); /* NaN */
    if (step->upload) TESS_TRY(upload(step, plan, frames, &row->copy_s));
    TESS_TRY(once(step, plan, frames, &row->frame_s));
    for (int k = 0; k < run->what->repeat; ++k)
        TESS_TRY(once(step, plan, frames, &run->seconds[k]));
    row->frame_s = tess_bench_median(run->seconds, run->what->repeat);
    if (step->download) TESS_TRY(download(step, plan, frames, &row->copy_s));
cleanup:
    step->destroy(plan);
    return status;
}

static tess_status check(const bench_run *run, const frame_step *step,
                         tess_bench_convolve_row *row)
{
    tess_status status = TESS_OK;
    const bench_frames *frames = &run->frames;
    const frame_error error = frame_compare(
        step, &frames->shape, frames->psf, frames->frame, frames->literal, frames->out);
    row->difference = error.difference;
    row->bound = error.bound;
    if (!(row->difference <= row->bound))
        TESS_FAIL(TESS_ERR_INTERNAL,
                  "step '%s' is %.3g away from the literal sum: rounding explains %.3g",
                  step->name, row->difference, row->bound);
cleanup:
    return status;
}

static tess_status time_and_tell(bench_run *run, const frame_step *step, int threads,
                                 double *seconds)
{
    tess_status status = TESS_OK;
    tess_bench_convolve_row row = {.step = step->name, .what = step->what};
    row.threads = step->upload ? 0 : threads;
    TESS_TRY(time_step(run, step, threads, &row));
    TESS_TRY(check(run, step, &row));
    *seconds = row.frame_s;
    run->tell(&row, run->context);
cleanup:
    return status;
}

/* The literal sum takes long, so one frame is enough, and no frame warms up. */
static tess_status literal(bench_run *run)
{
    tess_status status = TESS_OK;
    const frame_step *step = &frame_step_literal;
    bench_frames *frames = &run->frames;
    frame_plan *plan = NULL;
    tess_bench_convolve_row row = {
        .step = step->name, .what = step->what, .threads = 1};
    TESS_TRY(step->create(&frames->shape, frames->psf, 1, &plan));
    const double start = tess_time_now();
    TESS_TRY(step->execute(plan, frames->frame, frames->literal));
    row.frame_s = tess_time_now() - start;
    run->tell(&row, run->context);
cleanup:
    step->destroy(plan);
    return status;
}

/* ---- all of them ---- */

/* Blocks by 1, 2, 4, … threads, and the most. */
static tess_status find_threads(bench_run *run, int *enough)
{
    tess_status status = TESS_OK;
    double best = INFINITY;
    *enough = 1;
    for (int threads = 1;; threads *= 2) {
        double seconds = 0;
        if (threads > run->what->threads) threads = run->what->threads;
        TESS_TRY(time_and_tell(run, &frame_step_blocks, threads, &seconds));
        if (seconds < 0.95 * best) {
            best = seconds;
            *enough = threads;
        }
        if (threads == run->what->threads) break;
    }
cleanup:
    return status;
}

static tess_status run_steps(bench_run *run, int *enough)
{
    tess_status status = TESS_OK;
    double seconds = 0;
    TESS_TRY(literal(run));
    TESS_TRY(time_and_tell(run, &frame_step_lines, 1, &seconds));
    TESS_TRY(time_and_tell(run, &frame_step_simd, 1, &seconds));
    TESS_TRY(find_threads(run, enough));
    TESS_TRY(time_and_tell(run, &frame_step_fft, 1, &seconds));
    if (*enough > 1) TESS_TRY(time_and_tell(run, &frame_step_fft, *enough, &seconds));
    for (int k = 0; run->what->device && frame_device_step(k); ++k)
        TESS_TRY(time_and_tell(run, frame_device_step(k), 1, &seconds));
cleanup:
    return status;
}

tess_status tess_bench_convolve_run(const tess_bench_convolve_case *what,
                                    tess_bench_convolve_tell *tell, void *context,
                                    int *enough)
{
    tess_status status = TESS_OK;
    bench_run run = {.what = what, .tell = tell, .context = context};
    int found = 1;
    if (what->kx > what->nx || what->ky > what->ny)
        TESS_FAIL(TESS_ERR_USAGE,
                  "a PSF of %lld × %lld pixels is larger than a frame of %lld × %lld",
                  (long long)what->kx, (long long)what->ky, (long long)what->nx,
                  (long long)what->ny);
    run.seconds = tess_alloc(what->repeat, sizeof *run.seconds);
    if (!run.seconds) TESS_FAIL(TESS_ERR_ALLOC, "times of frames");
    TESS_TRY(make_frames(what, &run.frames));
    TESS_TRY(run_steps(&run, &found));
    *enough = found;
cleanup:
    free_frames(&run.frames);
    tess_free(run.seconds);
    return status;
}
