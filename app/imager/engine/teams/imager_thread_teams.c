/* Chooses how many outputs a rank makes at a time, each by a team of its threads. */
#include "imager_thread_teams.h"

#include <math.h>

#include "imager_estimate.h"
#include "imager_window.h"

/* Share of a rank's memory that samples, images and the sums of a plane of all teams
 * may take: as of teams of ranks. */
static const double MEMORY_SHARE = 0.6;

/* Several teams must be faster by this factor: with one team, results come in the order
 * of outputs, and less memory is needed. */
static const double WORTH = 0.95;

/* Share of the work on an output that one thread does while the others of its team
 * wait: lists of bricks and pieces, the fit of the beam, the begin and the end of
 * loops. With 16 threads, 128 MeerKAT channels of 1024² pixels took .4 of the time of
 * one thread. */
static const double ALONE_SHARE = 0.1;

/* OpenMP makes the threads of inner teams anew for each loop [s of an output]. */
static const double INNER_TEAM_S = 0.02;

/* Cells of sums for each cell of a plane: bricks overlap. */
static const double OVERLAP = 2;

/* Time of a thread beside a device: for a visibility, which is taken, weighed and
 * copied; for a pixel, whose rows are copied and measured; and for an output, whose
 * work is enqueued and waited for [s]. */
static const double BESIDE_VIS_S = 100e-9, BESIDE_PIXEL_S = 5e-9, BESIDE_S = 5e-3;

/* Bytes of a visibility on a device, with what sorts it. Share of the cells of all
 * w-planes of which a device holds sums; MeerKAT has half of it. */
static const double DEVICE_VIS_BYTES = 64, DEVICE_SUMS_SHARE = 0.6;

/* Lines of a plane on a device, and batches of lines and rows, in units of the image.
 */
static const double DEVICE_LINES = 6;

/* Share of the device memory that is free which all teams may take. */
static const double DEVICE_SHARE = 0.8;

/* Time that the job's device needs for an output; 0: there is no device [s]. */
static double device_s(const imager_job *job, int64_t num_vis)
{
    const tess_grid_plan *plan = job->plan;
    if (!job->backend->lanes) return 0;
    return tess_grid_device_cost_vis(plan) * (double)num_vis +
           tess_grid_device_cost_plane(plan) * plan->num_planes * job->num_images;
}

/* Time that one thread needs for an output, beside the device if there is one [s]. */
static double thread_s(const imager_job *job, const imager_teams_need *need,
                       int64_t num_vis)
{
    const double pixels = (double)job->geom.nx * (double)job->geom.ny * job->num_images;
    tess_layout layout = *job->layout;
    imager_job one = *job;
    layout.threads = 1;
    one.layout = &layout;
    if (!job->backend->lanes)
        return imager_estimate_output(&one, 1, num_vis, need->vis_bytes);
    return BESIDE_S + BESIDE_VIS_S * (double)num_vis + BESIDE_PIXEL_S * pixels;
}

/* Time that a team of `threads` threads needs for an output [s]. */
static double output_s(const imager_job *job, const imager_teams_need *need,
                       int64_t num_vis, int threads, bool inner)
{
    const double alone = thread_s(job, need, num_vis);
    return alone * (ALONE_SHARE + (1 - ALONE_SHARE) / threads) +
           (inner && threads > 1 ? INNER_TEAM_S : 0) + device_s(job, num_vis);
}

/* Memory of a team: samples of its output, its planes and images, the sums of one
 * plane, what cleaning takes, images that are being written, and images that wait for
 * earlier outputs. */
static double team_bytes(const imager_job *job, double samples, double output_bytes)
{
    const tess_grid_plan *plan = job->plan;
    const double sums = OVERLAP * (double)plan->nu * (double)plan->nv *
                        (plan->is_double ? 16 : 8) * job->num_images;
    return samples + imager_planes_bytes(job) + imager_finishing_bytes(job) + sums +
           job->memory.clean_bytes + 3 * output_bytes;
}

/* Most teams for which the job's device has lanes and memory. Images that are cleaned
 * live there, too. */
static double most_lanes(const imager_job *job, int64_t num_vis)
{
    const tess_grid_plan *plan = job->plan;
    const double value = plan->is_double ? 16 : 8;
    const double cells = (double)plan->nu * (double)plan->nv;
    if (!job->backend->lanes) return INFINITY;
    const double bytes =
        job->memory.device_bytes + DEVICE_VIS_BYTES * (double)num_vis +
        value * cells *
            (DEVICE_LINES +
             job->num_images * (1 + DEVICE_SUMS_SHARE * plan->num_planes));
    const double room = (double)job->backend->room() - job->memory.device_mean_bytes;
    return fmin(job->backend->lanes->most, DEVICE_SHARE * room / bytes);
}

/* Bytes that a rank holds for all of its teams. */
static double shared_bytes(const imager_job *job, double kept)
{
    return imager_base_bytes(job) - job->memory.clean_bytes -
           job->memory.backlog_bytes + kept;
}

/* Bytes of the samples of all outputs on a rank, if they are kept. */
static double kept_bytes(const imager_teams_need *need, int rank_teams)
{
    double all = 0;
    if (!need->kept) return 0;
    for (int64_t k = 0; k < need->outputs->num; ++k)
        all += (double)need->outputs->extent[k].num_vis;
    return (need->vis_bytes + need->row_bytes) * all / rank_teams;
}

static tess_status check_forced(const imager_job *job, const char *together)
{
    tess_status status = TESS_OK;
    const int threads = job->layout->threads, forced = job->layout->forced.thread_teams;
    if (forced > threads)
        TESS_FAIL(TESS_ERR_USAGE, "TESS_FORCE: thread-teams=%d: a rank has %d threads",
                  forced, threads);
    if (job->backend->lanes && forced > job->backend->lanes->most)
        TESS_FAIL(TESS_ERR_USAGE, "TESS_FORCE: thread-teams=%d: a GPU has %d lanes",
                  forced, job->backend->lanes->most);
    if (forced > 1 && together)
        TESS_FAIL(TESS_ERR_USAGE,
                  "TESS_FORCE: thread-teams=%d: %s, so all threads work together",
                  forced, together);
cleanup:
    return status;
}

/* Finds the number of teams that is fastest, among those for which there is memory. A
 * device does the work of all of them. */
static int fastest(const imager_job *job, const imager_teams_need *need, int64_t most,
                   double room, double each)
{
    const int64_t vis = output_table_most_vis(need->outputs);
    const int threads = job->layout->threads;
    const double lanes = most_lanes(job, vis), of_device = device_s(job, vis);
    int best = 1;
    double least = WORTH * (double)most * output_s(job, need, vis, threads, false);
    for (int num = 2; num <= threads && num <= most && num * each <= room; ++num) {
        const double rounds = ceil((double)most / num);
        const double seconds =
            fmax(rounds * output_s(job, need, vis, threads / num, true),
                 (double)most * of_device);
        if (num > lanes) break;
        if (need->checkpoints && seconds / rounds > IMAGER_CHECKPOINT_ROUND_S) continue;
        if (seconds >= least) continue;
        least = seconds;
        best = num;
    }
    return best;
}

tess_status imager_thread_teams_choose(const imager_job *job,
                                       const imager_teams_need *need, int rank_teams,
                                       double output_bytes, const char *together,
                                       imager_thread_teams *teams)
{
    tess_status status = TESS_OK;
    const int threads = job->layout->threads, forced = job->layout->forced.thread_teams;
    const int64_t left = need->outputs->num - need->first_output;
    const double samples = (need->vis_bytes + need->row_bytes) *
                           (double)output_table_most_vis(need->outputs);
    /* else a rank holds those of the outputs of a round, which are copied, too */
    const double each =
        team_bytes(job, samples, output_bytes) + (need->kept ? 0 : samples);
    const double room = MEMORY_SHARE * (double)job->memory.rank_bytes -
                        shared_bytes(job, kept_bytes(need, rank_teams));
    *teams =
        (imager_thread_teams){.num = 1, .threads = threads, .sample_bytes = samples};
    TESS_TRY(check_forced(job, together));
    if (forced > 0)
        teams->num = forced;
    else if (!together)
        teams->num =
            fastest(job, need, (left + rank_teams - 1) / rank_teams, room, each);
    teams->threads = threads / teams->num;
cleanup:
    return status;
}

int64_t imager_thread_team_bytes(const imager_job *job,
                                 const imager_thread_teams *teams, double kept)
{
    const double shared = shared_bytes(job, kept), all = (double)job->memory.rank_bytes;
    const double room = all > shared ? all - shared : 0;
    return (int64_t)(shared + room / teams->num);
}
