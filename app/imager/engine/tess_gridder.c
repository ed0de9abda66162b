/* Grids samples to one image, and degrids an image to samples, by the steps of the
 * engine on one rank. The library calls it for arrays in memory. */
#include "tess_gridder.h"

#include <math.h>

#include "imager_job.h"
#include "imager_window.h"
#include "tess_mem.h"
#include "tess_samples.h"

struct tess_gridder {
    tess_samples *samples; /* samples of the caller */
    tess_layout layout;
    tess_profile profile;
    imager_job job;
    tess_brick_list runs;
    tess_gridder_report report;
};

static void lap(double *mark, double *seconds)
{
    const double now = tess_time_now();
    *seconds += now - *mark;
    *mark = now;
}

/* Finds the planes that each brick touches, once for all sets of planes. */
static tess_status find_planes(tess_gridder *gridder)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = gridder->job.plan;
    tess_brick_list *runs = &gridder->runs;
    const bool in_order = tess_samples_in_order(gridder->samples);
    runs->planes = tess_alloc(runs->num_bricks, sizeof *runs->planes);
    if (!runs->planes)
        TESS_FAIL(TESS_ERR_ALLOC, "planes of %lld bricks", (long long)runs->num_bricks);
#pragma omp parallel for num_threads(plan->opts.threads) schedule(dynamic, 16)
    for (int64_t b = 0; b < runs->num_bricks; ++b)
        runs->planes[b] =
            tess_brick_list_planes(plan, gridder->samples, in_order, runs, b);
cleanup:
    return status;
}

tess_status tess_gridder_create(const tess_geom *geom, const tess_grid_opts *opts,
                                tess_samples *samples, bool forward, void *pixels,
                                tess_gridder **gridder)
{
    tess_status status = TESS_OK;
    double mark = tess_time_now();
    tess_gridder *made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "gridder");
    imager_job *job = &made->job;
    made->samples = samples;
    made->layout.threads = opts->threads;
    job->layout = &made->layout;
    job->profile = &made->profile;
    job->geom = *geom;
    job->memory.pixels = pixels;
    job->num_pol = job->num_images = job->ranks.num_groups = job->ranks.fft_ranks = 1;
    job->memory.rank_bytes = INT64_MAX; /* the caller has set no limit */
    TESS_TRY(tess_comm_self(&job->comm));
    TESS_TRY(tess_backend_find("cpu", &job->backend));
    TESS_TRY(tess_grid_plan_create(&job->geom, opts, job->backend, &job->plan));
    lap(&mark, &made->report.plan_s);
    TESS_TRY(
        tess_brick_list_make(job->plan, samples, samples->weight != NULL, &made->runs));
    TESS_TRY(find_planes(made));
    lap(&mark, &made->report.sort_s);
    TESS_TRY(imager_job_partition(job, &made->runs, forward));
    lap(&mark, &made->report.plan_s);
    *gridder = made;
    made = NULL;
cleanup:
    tess_gridder_destroy(made);
    return status;
}

/* ---- planes whose sums are held at a time ---- */

/* A call holds sums of bricks, the lines of a plane, the list of runs and the image.
 * These may take together as much as the caller's visibilities and this number of
 * images: about what a whole plane of the grid, its image and half as much again take.
 * Sums of fewer bytes than SMALL_BYTES are not worth a limit. */
static const double IMAGES_HELD = 10, SMALL_BYTES = 64e6;

/* Each set of planes computes the kernel values of a visibility again, which takes
 * about as long as adding it to a fifth of its planes. Fewer planes are not held at a
 * time. */
enum { PARTS_OF_SUPPORT = 5 };

/* What a call holds. */
typedef struct held_sizes {
    double brick;  /* bytes of the sum of a brick in one plane */
    double others; /* bytes of all but sums */
    double room;   /* bytes that all may take */
} held_sizes;

static held_sizes sizes_of(const tess_gridder *gridder)
{
    const tess_grid_plan *plan = gridder->job.plan;
    const tess_brick_list *runs = &gridder->runs;
    const double value = plan->is_double ? 16 : 8;
    const double ny = (double)plan->target.geom.ny, nx = (double)plan->target.geom.nx;
    const double image = nx * ny * value / 2;
    int64_t lines = 0, block, tile_u, tile_v, last = -1;
    for (int64_t b = 0; b < runs->num_bricks; ++b) { /* in order of tile_u in a block */
        tess_grid_brick_of_key(plan, runs->key[b], &block, &tile_u, &tile_v);
        if (tile_u != last) lines += plan->tile;
        last = tile_u;
    }
    lines = lines < plan->nu ? lines : plan->nu;
    const double vis = (double)tess_samples_vis_bytes(gridder->samples);
    return (held_sizes){.brick = (double)tess_grid_brick_lines(plan) *
                                 (double)tess_grid_brick_stride(plan) * value,
                        .others = (double)lines * ny * value + image +
                                  (double)runs->num_runs * (double)sizeof *runs->run,
                        .room = IMAGES_HELD * image +
                                vis * (double)gridder->samples->num_vis};
}

/* The most bricks that `at_once` planes touch, counted plane by plane. */
static double bricks_of_largest_set(const int64_t *bricks_of_plane, int num_planes,
                                    int at_once)
{
    double largest = 0;
    for (int first = 0; first < num_planes; first += at_once) {
        double bricks = 0;
        for (int p = first; p < num_planes && p < first + at_once; ++p)
            bricks += (double)bricks_of_plane[p];
        largest = fmax(largest, bricks);
    }
    return largest;
}

/* The largest number of planes whose sums have room, in as few sets as that leaves. 0:
 * all. The choice is the same in each call of the same arrays. */
static tess_status choose_window(const tess_gridder *gridder, int *window)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = gridder->job.plan;
    const tess_brick_list *runs = &gridder->runs;
    const held_sizes held = sizes_of(gridder);
    const int planes = plan->num_planes;
    const int fewest = (plan->w_support + PARTS_OF_SUPPORT - 1) / PARTS_OF_SUPPORT;
    imager_sums_size size;
    int64_t *count = tess_alloc_zero(planes, sizeof *count);
    if (!count) TESS_FAIL(TESS_ERR_ALLOC, "bricks of planes");
    *window = 0;
    TESS_TRY(imager_own_sums(&gridder->job, runs, &size));
    if (size.all <= fmax(SMALL_BYTES, held.room - held.others)) goto cleanup;
    for (int64_t b = 0; b < runs->num_bricks; ++b)
        for (int32_t p = runs->planes[b].first; p < runs->planes[b].end; ++p)
            ++count[p];
    for (int sets = 2; sets <= planes; ++sets) {
        const int at_once = (planes + sets - 1) / sets;
        if (at_once < fewest) break;
        *window = at_once;
        const double sums = held.brick * bricks_of_largest_set(count, planes, at_once);
        if (sums <= fmax(SMALL_BYTES, held.room - held.others)) break;
    }
cleanup:
    tess_free(count);
    return status;
}

tess_status tess_gridder_image(tess_gridder *gridder)
{
    tess_status status = TESS_OK;
    tess_steps *steps = gridder->job.steps;
    int window;
    TESS_TRY(choose_window(gridder, &window));
    TESS_TRY(window > 0 ? tess_steps_image_by_planes(steps, window, gridder->samples,
                                                     &gridder->runs, false)
                        : tess_steps_image(steps, 0, tess_steps_count(steps), true,
                                           gridder->samples, &gridder->runs, false));
cleanup:
    return status;
}

tess_status tess_gridder_predict(tess_gridder *gridder)
{
    tess_status status = TESS_OK;
    tess_steps *steps = gridder->job.steps;
    int window;
    TESS_TRY(choose_window(gridder, &window));
    TESS_TRY(window > 0 ? tess_steps_predict_by_planes(steps, window, gridder->samples,
                                                       &gridder->runs)
                        : tess_steps_predict(steps, gridder->samples, &gridder->runs));
cleanup:
    return status;
}

const tess_grid_plan *tess_gridder_plan(const tess_gridder *gridder)
{
    return gridder->job.plan;
}

void *tess_gridder_pixels(const tess_gridder *gridder)
{
    return tess_planes_image(gridder->job.planes, 0);
}

void tess_gridder_report_make(const tess_gridder *gridder, tess_gridder_report *report)
{
    const tess_profile *profile = &gridder->profile;
    const double *seconds = profile->stage_seconds;
    *report = gridder->report;
    report->join_s = profile->join_s;
    report->fft_s =
        seconds[TESS_STAGE_FFT] + seconds[TESS_STAGE_REDUCE] - profile->join_s;
    report->grid_utilisation = profile->grid.utilisation;
}

void tess_gridder_destroy(tess_gridder *gridder)
{
    if (!gridder) return;
    tess_brick_list_free(&gridder->runs);
    imager_job_free(&gridder->job);
    tess_comm_free(gridder->job.comm);
    tess_free(gridder);
}
