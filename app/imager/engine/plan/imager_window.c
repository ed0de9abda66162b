/* Chooses the number of w-planes whose brick sums are held at a time. */
#include <math.h>

#include "imager_job.h"
#include "imager_targets.h"
#include "imager_window.h"
#include "tess_calibrate.h"
#include "tess_gcf.h"
#include "tess_keep.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_samples.h"

/* Memory of the program and its libraries before any data: 42 MiB when it reads UVFITS,
 * 58 MiB with casacore's tables, 8 MiB of which are code for GPUs. Memory of MPI, which
 * runs of one rank do not start. */
enum { PROGRAM_BYTES = 50 << 20, MPI_BYTES = 10 << 20 };

double imager_means_beside(const imager_job *job)
{
    return job->ranks.num_outputs > 1 ? job->memory.mean_bytes : 0;
}

double imager_base_bytes(const imager_job *job)
{
    const tess_grid_plan *plan = job->plan;
    const bool alone = tess_comm_size(job->comm) == 1 && job->ranks.num_teams <= 1;
    const double tables =
        plan->projection ? (double)tess_gcf_bytes(tess_projection_table(plan)) : 0;
    return PROGRAM_BYTES + (alone ? 0 : MPI_BYTES) + tables + imager_means_beside(job) +
           job->memory.clean_bytes + job->memory.backlog_bytes +
           job->memory.dealt_bytes + job->memory.joined_bytes;
}

double imager_target_pixels(const imager_job *job)
{
    double pixels = 0;
    for (int k = 0; k < imager_job_num_targets(job); ++k) {
        const tess_geom *geom = imager_job_geom(job, k);
        const double own = (double)geom->nx * (double)geom->ny;
        pixels = imager_job_in_turn(job) ? fmax(pixels, own) : pixels + own;
    }
    return pixels;
}

/* All targets are finished before they are used. Sums whose memory serves another
 * output are copied to rows; other sums are freed one
 * after the other, or become the rows. */
double imager_finishing_bytes(const imager_job *job)
{
    const double value = job->plan->is_double ? 8 : 4, n = job->num_images;
    const int ranks = tess_comm_size(job->comm);
    const double pixels = imager_target_pixels(job);
    const double image = value * pixels / job->ranks.fft_ranks,
                 rows = value * pixels / ranks;
    if (job->ranks.num_outputs > 1) return n * image + n * rows;
    if (job->ranks.fft_ranks == ranks) return n * image;
    return fmax(n * image + rows, image + n * rows);
}

tess_status imager_tell_need(imager_job *job, double bytes)
{
    tess_status status = TESS_OK;
    if (job->backend->start) return TESS_OK; /* most of this memory is on the device */
    TESS_TRY(tess_comm_allreduce_f64(job->comm, &bytes, 1, TESS_MAX));
    if (job->told.need || bytes <= (double)job->memory.rank_bytes) return TESS_OK;
    job->told.need = true;
    if (tess_comm_rank(job->comm) == 0)
        tess_log_warn("a rank may use %s, but needs about %s; more --memory or ranks "
                      "help, and so do fewer outputs or polarisations in a run",
                      tess_mem_text((double)job->memory.rank_bytes),
                      tess_mem_text(bytes));
cleanup:
    return status;
}

double imager_samples_bytes(const tess_samples *samples)
{
    return (double)samples->num_vis * (double)tess_samples_vis_bytes(samples) +
           (double)samples->num_rows * (double)tess_samples_row_bytes(samples);
}

imager_sums_size imager_sums_size_of(const imager_job *job,
                                     const int64_t *bricks_of_block, double num_vis)
{
    const tess_grid_plan *plan = job->plan;
    const int starts = plan->num_planes - plan->w_support + 1;
    const double layer = (double)tess_grid_brick_lines(plan) *
                         (double)tess_grid_brick_stride(plan) *
                         (plan->is_double ? 16 : 8) * job->num_images;
    /* planes of a block are complete after the next block; a plane is touched from as
     * many blocks as have starts less than a support away */
    const int reach = (plan->w_support + plan->block_planes - 2) / plan->block_planes;
    imager_sums_size size = {.num_vis = num_vis,
                             .touch_bytes_s = plan->costs.touch_bytes_s};
    double before = 0;
    for (int b = 0; b < plan->num_blocks; ++b) {
        const int left = starts - b * plan->block_planes;
        const int here = left < plan->block_planes ? left : plan->block_planes;
        const double bytes =
            layer * (double)bricks_of_block[b] * (plan->w_support + here - 1);
        double touching = 0;
        for (int c = b - reach < 0 ? 0 : b - reach; c <= b; ++c)
            touching += layer * (double)bricks_of_block[c];
        size.all = fmax(size.all, bytes + before);
        size.plane = fmax(size.plane, touching);
        before = bytes;
    }
    return size;
}

double imager_set_s(const imager_job *job, double num_vis)
{
    const tess_costs *costs = &job->plan->costs;
    const int support = job->plan->kernel.support, is_double = job->plan->is_double;
    /* measured: this takes about as long as adding the sums to one plane of one more
     * image */
    return (costs->vis_s[is_double][support] +
            job->num_images * costs->update_s[is_double][support]) *
           num_vis / job->layout->threads;
}

/* Time that depends on the number of sets of planes. Memory of sums is new for the
 * first set alone. */
static double seconds_of_sets(const imager_job *job, const imager_sums_size *size,
                              int sets, double bytes)
{
    return (sets - 1) * imager_set_s(job, size->num_vis) + bytes / size->touch_bytes_s;
}

double imager_window_bytes(const imager_sums_size *size, int planes_at_once)
{
    return planes_at_once > 0 ? fmin(size->all, planes_at_once * size->plane)
                              : size->all;
}

int imager_planes_at_once(const imager_job *job, const imager_sums_size *size,
                          double room)
{
    const int planes = job->plan->num_planes;
    int best = 0;
    double least =
        size->all <= room ? seconds_of_sets(job, size, 1, size->all) : (double)INFINITY;
    for (int sets = 2; sets <= planes; ++sets) {
        const int at_once = (planes + sets - 1) / sets;
        const double bytes = imager_window_bytes(size, at_once);
        const double seconds = seconds_of_sets(job, size, sets, bytes);
        if (bytes > room || seconds >= least) continue;
        best = at_once;
        least = seconds;
    }
    return isinf(least) ? 1 : best; /* if not even the sums of one plane fit, one plane
                                       at a time needs the least memory */
}

int64_t imager_brick_parts(const imager_job *job, int64_t num_vis)
{
    const int64_t most = imager_part_vis(job);
    if (!job->layout->reproducible || num_vis <= most) return 1;
    return (num_vis + most - 1) / most;
}

double imager_count_blocks(const imager_job *job, const tess_brick_list *bricks,
                           int64_t *bricks_of_block)
{
    const int64_t per_block = job->plan->tiles_u * job->plan->tiles_v;
    double num_vis = 0;
    for (int64_t b = 0; b < bricks->num_bricks; ++b) {
        bricks_of_block[bricks->key[b] / per_block] +=
            imager_brick_parts(job, bricks->num_vis[b]);
        num_vis += (double)bricks->num_vis[b];
    }
    return num_vis;
}

/* If sums take more bytes than this, the rate at which the system gives memory is
 * measured. 8 MiB are enough for that. */
static const double PROBED_BYTES = 64e6;

/* Rate at which the sums get memory [bytes/s]. It is the rate at which the system gives
 * new memory, the known one or one that is measured now: 30 GB/s on one machine and .3
 * GB/s on another. What is kept of earlier arrays takes no time. */
static double touch_rate(const imager_job *job, const imager_sums_size *size)
{
    const tess_costs *costs = &job->plan->costs;
    double rate = costs->touch_bytes_s;
    if (job->layout->reproducible || !tess_calibrate_allowed()) return rate;
    const double kept = (double)tess_keep_idle_bytes();
    if (kept >= size->all) return (double)INFINITY;
    if (!costs->measured && size->all >= PROBED_BYTES)
        rate = tess_calibrate_touch(job->layout->threads, rate);
    return rate * size->all / (size->all - kept);
}

tess_status imager_own_sums(const imager_job *job, const tess_brick_list *bricks,
                            imager_sums_size *size)
{
    tess_status status = TESS_OK;
    int64_t *count = tess_alloc_zero(job->plan->num_blocks, sizeof *count);
    TESS_TRY(tess_comm_agree(imager_team(job), count ? TESS_OK : TESS_ERR_ALLOC));
    const double num_vis = imager_count_blocks(job, bricks, count);
    *size = imager_sums_size_of(job, count, num_vis);
cleanup:
    tess_free(count);
    return status;
}

tess_status imager_tell_sums(imager_job *job, const tess_brick_list *bricks,
                             int planes_at_once, double other_bytes)
{
    tess_status status = TESS_OK;
    imager_sums_size size;
    TESS_TRY(imager_own_sums(job, bricks, &size));
    TESS_TRY(imager_tell_need(job, other_bytes +
                                       imager_window_bytes(&size, planes_at_once)));
cleanup:
    return status;
}

/* Says once that memory limits the number of planes, because planes are then gridded
 * more slowly. The images of major iterations may alternate between several numbers:
 * only the log has these. */
static void tell_window(imager_job *job, int planes, bool is_limited)
{
    imager_told *told = &job->told;
    const bool is_news = is_limited && !told->is_limited;
    if (planes == told->window && !is_news) return;
    told->window = planes;
    told->is_limited |= is_limited;
    /* if there are many images, the difference is small */
    (is_news && job->ranks.num_outputs <= 1 ? tess_log_info : tess_log_detail)(
        "%d w-plane%s %s gridded at a time%s", planes, planes == 1 ? "" : "s",
        planes == 1 ? "is" : "are", is_limited ? ", as memory allows" : "");
}

tess_status imager_plane_window(imager_job *job, double other_bytes,
                                const tess_brick_list *bricks, int *planes_at_once)
{
    tess_status status = TESS_OK;
    imager_sums_size size;
    /* less the room: the rank with the least room has the largest number */
    double room = -((double)job->memory.rank_bytes - other_bytes);
    const int force = job->layout->forced.plane_window;
    *planes_at_once = 0;
    if (job->ranks.num_groups > 1 || job->backend->start ||
        job->plan->num_planes == 1 || force < 0)
        return TESS_OK;
    if (force > 0) {
        *planes_at_once = force;
        return TESS_OK;
    }
    TESS_TRY(imager_own_sums(job, bricks, &size));
    double most[5] = {
        size.all, size.plane, size.num_vis, room,
        -touch_rate(job, &size)}; /* the slowest rate, because all wait for that rank */
    TESS_TRY(tess_comm_allreduce_f64(imager_team(job), most, 5, TESS_MAX));
    size = (imager_sums_size){most[0], most[1], most[2], -most[4]};
    room = -most[3];
    *planes_at_once = imager_planes_at_once(job, &size, room);
    if (*planes_at_once > 0) tell_window(job, *planes_at_once, size.all > room);
cleanup:
    return status;
}
