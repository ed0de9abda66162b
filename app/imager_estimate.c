/* What a run will need: memory of a rank and seconds of each stage, for `tessera
 * plan`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "imager.h"
#include "tess_mem.h"

/* Rates of one core of a present server (2.5 to 4 GHz, AVX2 or better), measured on
 * runs of 2 to 30 million visibilities. */
static const double READ_BYTES_PER_S = 200e6;     /* a rank, samples prepared */
static const double EXCHANGE_BYTES_PER_S = 0.5e9; /* packed, sent and unpacked */
static const double REDUCE_BYTES_PER_S = 1.5e9;
static const double WEIGH_VIS_S = 80e-9;
static const double START_S = 0.1; /* kernel and FFT planning */
static const double WRITE_PIXEL_S = 10e-9;
static const double DEVICE_PIXEL_S = 10e-12; /* corrected on a device */

/* Runs of a brick that one track of a baseline makes, about, by what was measured. */
static const double RUNS_OF_TRACK = 8;

/* A collective call, for each step of its tree, and a message to one more rank. */
static const double COLLECTIVE_S = 10e-6, MESSAGE_S = 3e-6;
/* Collective calls of an output beside those of its batches of planes, and of a batch.
 */
static const double OUTPUT_CALLS = 60, BATCH_CALLS = 6;

/* Of a density, for each pixel that is covered: half a plane of double precision. */
static const double DENSITY_CELL_BYTES = 4;

/* Share of a grid's lines, and of their cells, that bricks cover: not known before
 * samples are sorted. MeerKAT at 1.3 GHz: two thirds and a fifth. */
static const double LINES_COVERED = 0.7, CELLS_COVERED = 0.3;

/* First plane of a brick's block; how many planes the kernel may begin at there. */
static double starts_of(const tess_grid_plan *plan, const tess_brick_list *bricks,
                        int64_t k, int *first)
{
    int64_t block, tile_u, tile_v;
    tess_grid_brick_of_key(plan, bricks->key[k], &block, &tile_u, &tile_v);
    *first = (int)block * plan->block_planes;
    return fmin(plan->num_planes - plan->w_support + 1 - *first, plan->block_planes);
}

/* Planes that a brick's sum is likely to have: with k runs at random among the B starts
 * of its block, their range is (B − 1)(k − 1)/(k + 1) on average. Runs of a baseline
 * follow each other in one brick and have nearly one w: RUNS_OF_TRACK count as one. */
static double planes_of(const tess_grid_plan *plan, const tess_brick_list *bricks,
                        int64_t k, double run_length)
{
    int first;
    const double in_block = starts_of(plan, bricks, k, &first);
    const double runs =
        fmax(1, (double)bricks->num_vis[k] / run_length / RUNS_OF_TRACK);
    return plan->w_support + (in_block - 1) * (runs - 1) / (runs + 1);
}

/* Bytes of this rank's brick sums, in all and at a time: planes of a block are complete
 * after the next one. */
static tess_status sum_bytes(const imager_job *job, const tess_brick_list *own,
                             double run_length, double *all, double *window)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = job->plan;
    const double layer = (double)tess_grid_brick_lines(plan) *
                         (double)tess_grid_brick_stride(plan) *
                         (plan->is_double ? 16 : 8) * job->num_images;
    double *of_block = tess_alloc_zero(plan->num_blocks, sizeof *of_block);
    *all = *window = 0;
    if (!of_block) TESS_FAIL(TESS_ERR_ALLOC, "blocks of w-planes");
    for (int64_t k = 0; k < own->num_bricks; ++k) {
        const double bytes = planes_of(plan, own, k, run_length) * layer;
        of_block[own->key[k] / (plan->tiles_u * plan->tiles_v)] += bytes;
        *all += bytes;
    }
    for (int k = 0; k < plan->num_blocks; ++k)
        *window = fmax(*window, of_block[k] + (k > 0 ? of_block[k - 1] : 0));
cleanup:
    tess_free(of_block);
    return status;
}

/* Samples of the slice, or of a set of blocks. */
static double own_bytes(const imager_workload *work)
{
    return work->cached ? work->sample_bytes + work->dealt_bytes : work->block_bytes;
}

/* What of these is kept while bricks are gridded: what has all been sent is not. */
static double bytes_beside_sums(const imager_job *job, const imager_workload *work)
{
    const bool given_up =
        work->cached && work->num_outputs == 1 && tess_comm_size(job->comm) > 1;
    return given_up ? 0 : own_bytes(work);
}

/* Of how many planes this rank's sums will be held at a time, 0: of all. Collective. */
static tess_status planes_at_once(const imager_job *job, const imager_workload *work,
                                  const tess_brick_list *own, int *planes)
{
    const double samples = bytes_beside_sums(job, work);
    const double received = tess_comm_size(job->comm) > 1 ? work->owned_bytes : 0;
    return imager_plane_window(job,
                               IMAGER_BASE_BYTES + imager_planes_bytes(job) + samples +
                                   received +
                                   (double)work->num_runs * (double)sizeof(tess_run),
                               own, planes);
}

/* Planes [first, end) that a brick's sum is likely to have: those that its range
 * covers, on average over where in the block this may begin. */
static double planes_within(const tess_grid_plan *plan, const tess_brick_list *bricks,
                            int64_t k, double run_length, int first, int end)
{
    int begin;
    const double range = planes_of(plan, bricks, k, run_length);
    const double starts = starts_of(plan, bricks, k, &begin);
    const int others = (int)(starts - 1 - (range - plan->w_support));
    double sum = 0;
    for (int s = begin; s <= begin + others; ++s)
        sum += fmax(0, fmin(s + range, end) - fmax(s, first));
    return sum / (others + 1);
}

/* Bytes of this rank's sums when they are held of so many planes at a time. */
static double window_bytes(const imager_job *job, const tess_brick_list *own,
                           double run_length, int planes)
{
    const tess_grid_plan *plan = job->plan;
    const double layer = (double)tess_grid_brick_lines(plan) *
                         (double)tess_grid_brick_stride(plan) *
                         (plan->is_double ? 16 : 8) * job->num_images;
    double most = 0;
    for (int first = 0; first < plan->num_planes; first += planes) {
        double held = 0;
        for (int64_t k = 0; k < own->num_bricks; ++k)
            held += planes_within(plan, own, k, run_length, first, first + planes);
        most = fmax(most, held);
    }
    return most * layer;
}

/* Share of the grid's lines that any brick covers. Collective. */
static tess_status occupied_share(const imager_job *job, const tess_brick_list *own,
                                  double *share)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = job->plan;
    int64_t *touched = tess_alloc_zero(plan->tiles_u + 1, sizeof *touched), tiles = 0;
    TESS_TRY(tess_comm_agree(job->comm, touched ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t k = 0; k < own->num_bricks; ++k) {
        const int64_t tile_u = own->key[k] / plan->tiles_v % plan->tiles_u;
        touched[tile_u] = touched[tile_u + 1] =
            1; /* a brick's halo is in the next one */
    }
    TESS_TRY(tess_comm_allreduce_i64(job->comm, touched, plan->tiles_u + 1, TESS_MAX));
    for (int64_t k = 0; k < plan->tiles_u; ++k)
        tiles += touched[k];
    *share = (double)tiles / (double)plan->tiles_u;
cleanup:
    tess_free(touched);
    return status;
}

static void estimate_memory(const imager_job *job, const imager_workload *work,
                            double sums, double all_sums, double lines,
                            imager_estimate *estimate)
{
    const tess_grid_plan *plan = job->plan;
    const int ranks = tess_comm_size(job->comm), f = job->fft_ranks;
    const double value = plan->is_double ? 16 : 8;
    const double pixels = (double)job->geom.nx * (double)job->geom.ny;
    const bool sent = ranks > 1 || !work->cached;
    const double own = own_bytes(work), beside = bytes_beside_sums(job, work);
    const double runs = (double)sizeof(tess_run) * (double)work->num_runs;
    const double received = sent ? work->owned_bytes + runs : runs;
    const double flight =
        ranks > 1 ? fmin((double)tess_exchange_flight_bytes(ranks), 4 * own) : 0;
    const double groups = (double)ranks / f,
                 planes = plan->num_planes * job->num_images;
    const double pieces = ranks > 1 ? all_sums * fmin(groups, planes) / planes +
                                          all_sums * ranks / planes / f
                                    : 0;
    const double images = job->num_images * pixels * value / 2 / f;
    const double plane_lines =
        lines * (double)plan->nu * (double)job->geom.ny * value / f * (f > 1 ? 3 : 1);
    const double products = (8 * job->num_images + value / 2) * pixels / ranks;
    estimate->reading = fmin(2 * work->read_bytes, work->file_bytes);
    estimate->samples = own + received;
    estimate->sums = sums;
    estimate->planes = images + plane_lines + pieces;
    const double tables =
        plan->projection ? (double)tess_gcf_bytes(tess_projection_table(plan)) : 0;
    /* buffers of files are given up when all samples are kept */
    const double densities = work->num_densities * DENSITY_CELL_BYTES * lines * pixels;
    const double kept = IMAGER_BASE_BYTES + tables + work->mean_bytes + densities +
                        (work->cached ? 0 : estimate->reading);
    const double loading = IMAGER_BASE_BYTES + own + 1.5 * estimate->reading;
    /* what flies is given up before runs are sorted from one array to another */
    const double sorting =
        kept + fmax(own + received + flight, beside + received + runs);
    const double gridding = kept + beside + received + sums + estimate->planes;
    const double finishing = kept + beside + received + images + products;
    estimate->peak = fmax(fmax(loading, sorting), fmax(gridding, finishing));
}

/* What a device of each rank does of it, in place of threads. */
static void estimate_device_time(const imager_job *job, const imager_workload *work,
                                 imager_estimate *estimate)
{
    const tess_grid_plan *plan = job->plan;
    const double ranks = tess_comm_size(job->comm);
    const double outputs = (double)work->num_outputs;
    const double pixels = (double)job->geom.nx * (double)job->geom.ny;
    const double planes = (double)plan->num_planes * job->num_images;
    double *s = estimate->seconds;
    s[TESS_STAGE_SORT] = 0; /* counted with gridding */
    s[TESS_STAGE_GRID] = tess_grid_device_cost_vis(plan) * (double)work->num_vis;
    s[TESS_STAGE_FFT] = tess_grid_device_cost_plane(plan) * planes * outputs / ranks;
    s[TESS_STAGE_CORRECT] = DEVICE_PIXEL_S * pixels * job->num_images * outputs / ranks;
}

static void estimate_time(const imager_job *job, const imager_workload *work,
                          double lines, double new_sums, int sets,
                          imager_estimate *estimate)
{
    const tess_grid_plan *plan = job->plan;
    const tess_costs *costs = &plan->costs;
    const int ranks = tess_comm_size(job->comm), f = job->fft_ranks;
    const double threads = job->layout->threads;
    const double pixels = (double)job->geom.nx * (double)job->geom.ny;
    const double share = pixels * job->num_images / ranks / threads;
    double *s = estimate->seconds, largest, mean;
    int64_t split;
    tess_partition_balance(job->partition, &largest, &mean, &split);
    const double outputs = (double)work->num_outputs;
    const double per_plane = tess_grid_cost_plane(plan, lines);
    const double batches = ceil((double)plan->num_planes * job->num_images * f / ranks);
    s[TESS_STAGE_READ] = work->num_reads * work->file_bytes / READ_BYTES_PER_S;
    if (work->num_densities > 0)
        s[TESS_STAGE_WEIGHT] = WEIGH_VIS_S * (double)work->num_vis / threads;
    s[TESS_STAGE_PLAN] = START_S;
    s[TESS_STAGE_SORT] = costs->sort_s * (double)work->num_vis / threads;
    s[TESS_STAGE_EXCHANGE] = work->deal_s;
    if (ranks > 1) {
        s[TESS_STAGE_EXCHANGE] += work->owned_bytes * outputs / EXCHANGE_BYTES_PER_S;
        s[TESS_STAGE_REDUCE] = estimate->sums * outputs / REDUCE_BYTES_PER_S;
    }
    s[TESS_STAGE_GRID] =
        (largest / threads + new_sums / costs->touch_bytes_s +
         (sets - 1) * imager_set_s(job, (double)work->num_vis / ranks)) *
        outputs;
    s[TESS_STAGE_FFT] = batches * per_plane * outputs / (f * threads);
    s[TESS_STAGE_CORRECT] = costs->correct_s * share * outputs;
    if (job->backend->start) estimate_device_time(job, work, estimate);
    s[TESS_STAGE_WRITE] = WRITE_PIXEL_S * pixels * job->num_images * outputs / ranks;
}

/* Every rank knows the largest of all. Collective. */
static tess_status largest_of_all(tess_comm *comm, imager_estimate *estimate)
{
    tess_status status = TESS_OK;
    double memory[5] = {estimate->peak, estimate->reading, estimate->samples,
                        estimate->sums, estimate->planes};
    TESS_TRY(tess_comm_allreduce_f64(comm, memory, 5, TESS_MAX));
    TESS_TRY(
        tess_comm_allreduce_f64(comm, estimate->seconds, TESS_NUM_STAGES, TESS_MAX));
    estimate->peak = memory[0];
    estimate->reading = memory[1];
    estimate->samples = memory[2];
    estimate->sums = memory[3];
    estimate->planes = memory[4];
    estimate->total_s = 0;
    for (int k = 0; k < TESS_NUM_STAGES; ++k)
        estimate->total_s += estimate->seconds[k];
cleanup:
    return status;
}

/* What passes over data that are not kept need of memory and reading, when they are
 * `*several`, which all ranks agree on. Collective. */
static tess_status plan_passes(const imager_job *job, const tess_brick_list *own,
                               imager_workload *work, double *window, int *sets,
                               bool *several)
{
    tess_status status = TESS_OK;
    imager_passes passes = {0};
    TESS_TRY(imager_passes_choose(
        job, own, work->vis_bytes,
        imager_held_bytes(job, work->block_bytes, work->read_bytes), INT64_MAX,
        &passes));
    *several = passes.num_reads > 1;
    if (!*several) goto cleanup;
    *window = fmin(*window, passes.sums_bytes);
    *sets = passes.num_windows;
    work->owned_bytes = passes.sample_bytes; /* with their runs */
    work->num_runs = 0;
    if (!work->scratch) work->num_reads += passes.num_reads - 1;
cleanup:
    imager_passes_free(&passes);
    return status;
}

tess_status imager_estimate_make(const imager_job *job, const imager_workload *work,
                                 const tess_brick_list *bricks,
                                 imager_estimate *estimate)
{
    tess_status status = TESS_OK;
    imager_workload found = *work;
    tess_brick_list own = {0};
    double all = 0, window = 0, lines = 0;
    int planes = 0, sets = 1;
    bool several = false;
    const double run_length =
        work->num_runs > 0 ? fmax(1, (double)work->num_vis / (double)work->num_runs)
                           : 1;
    *estimate = (imager_estimate){0};
    TESS_TRY(imager_owned_bricks(job, bricks, &own));
    status = sum_bytes(job, &own, run_length, &all, &window);
    TESS_TRY(tess_comm_agree(job->comm, status));
    TESS_TRY(occupied_share(job, &own, &lines));
    if (!work->cached)
        TESS_TRY(plan_passes(job, &own, &found, &window, &sets, &several));
    if (!several) TESS_TRY(planes_at_once(job, work, &own, &planes));
    if (planes > 0) {
        sets = (job->plan->num_planes + planes - 1) / planes;
        window = fmin(window, window_bytes(job, &own, run_length, planes));
    }
    estimate_memory(job, &found, window, all, lines, estimate);
    estimate_time(job, &found, lines, sets > 1 ? window : all, sets, estimate);
    TESS_TRY(largest_of_all(job->comm, estimate));
cleanup:
    tess_brick_list_free(&own);
    return status;
}

/* ---- before samples are sorted ---- */

double imager_estimate_output(const imager_job *job, int ranks, int64_t num_vis,
                              double vis_bytes)
{
    const tess_grid_plan *plan = job->plan;
    int groups, f;
    imager_shares(job, ranks, &groups, &f);
    const double threads = job->layout->threads, n = ranks;
    const double planes = (double)plan->num_planes * job->num_images;
    const double value = plan->is_double ? 16 : 8;
    const double pixels = (double)job->geom.nx * (double)job->geom.ny;
    const double batches = ceil(planes * f / n);
    const double lines = planes * LINES_COVERED * (double)plan->nu * value;
    double seconds = (tess_grid_cost_vis(plan) + plan->costs.sort_s) * (double)num_vis /
                         n / threads +
                     batches * tess_grid_cost_plane(plan, LINES_COVERED) / f / threads +
                     (plan->costs.correct_s / threads + WRITE_PIXEL_S) * pixels *
                         job->num_images / n;
    if (num_vis == 0) return WRITE_PIXEL_S * pixels * job->num_images / n;
    if (ranks == 1) return seconds;
    seconds += vis_bytes * (double)num_vis * (1 - 1 / n) / n / EXCHANGE_BYTES_PER_S;
    /* tile sums; lines that ranks of a slab pass on; rows of groups that are summed */
    seconds += lines * CELLS_COVERED * (double)plan->nv / n / REDUCE_BYTES_PER_S;
    seconds += lines * (double)job->geom.ny * (1 - 1.0 / f) / n / REDUCE_BYTES_PER_S;
    if (f < ranks)
        seconds += job->num_images * pixels * value / 2 / f / REDUCE_BYTES_PER_S;
    return seconds + (OUTPUT_CALLS + BATCH_CALLS * batches) *
                         (COLLECTIVE_S * log2(n) + MESSAGE_S * (n - 1));
}

double imager_estimate_deal(const imager_job *job, const imager_outputs *outputs,
                            int ranks, double vis_bytes)
{
    const double pixels = (double)job->geom.nx * (double)job->geom.ny;
    double num_vis = 0, means = 0;
    for (int64_t k = 0; k < outputs->num; ++k)
        num_vis += (double)outputs->extent[k].num_vis;
    if (outputs->num_channels > 1)
        means = (double)outputs->num * job->num_images * pixels * sizeof(double);
    return vis_bytes * num_vis / ranks / EXCHANGE_BYTES_PER_S +
           means / ranks / REDUCE_BYTES_PER_S;
}
