/* Estimates what a run will need: the memory of a rank, and the time of each stage. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "imager_estimate.h"
#include "imager_job.h"
#include "imager_passes.h"
#include "imager_targets.h"
#include "imager_window.h"
#include "output_table.h"
#include "tess_mem.h"
#include "visset_way.h"

/* Rates of one core of a present server (2.5 to 4 GHz, AVX2 or better), measured on
 * runs of 2 to 30 million visibilities. */
static const double READ_BYTES_PER_S = 200e6;     /* samples read and prepared */
static const double EXCHANGE_BYTES_PER_S = 0.5e9; /* packed, sent and unpacked */
static const double REDUCE_BYTES_PER_S = 1.5e9;
static const double WEIGH_VIS_S = 80e-9;
static const double START_S = 0.1; /* planning of the kernel and of FFTs */
static const double WRITE_PIXEL_S = 10e-9;
static const double DEVICE_PIXEL_S = 10e-12; /* correction of a pixel on a device */

/* Time of a collective call for each step of its tree, and of a message to one more
 * rank. */
static const double COLLECTIVE_S = 10e-6, MESSAGE_S = 3e-6;
/* Number of collective calls of an output beside those of its batches of planes, and of
 * a batch. */
static const double OUTPUT_CALLS = 60, BATCH_CALLS = 6;

/* Bytes of a density for each pixel that is covered: half a plane of double precision.
 */
static const double DENSITY_CELL_BYTES = 4;

/* Share of a grid's lines, and of their cells, that bricks cover; it is not known
 * before samples are sorted. MeerKAT at 1.3 GHz has two thirds and a fifth. */
static const double LINES_COVERED = 0.7, CELLS_COVERED = 0.3;

/* ---- sums of bricks ---- */

/* Bytes of a brick's sum in one plane of one image. */
static double layer_bytes(const tess_grid_plan *plan)
{
    return (double)tess_grid_brick_lines(plan) * (double)tess_grid_brick_stride(plan) *
           (plan->is_double ? 16 : 8);
}

/* Sums of a rank's bricks, for one image. */
typedef struct plane_load {
    double *own;   /* [num_planes] bytes of sums of this rank */
    double *total; /* [num_planes] bytes of sums of all ranks */
    double *block; /* [num_blocks] bytes of sums of this rank, in a window */
} plane_load;

static void free_load(plane_load *load)
{
    tess_free(load->own);
    tess_free(load->total);
    tess_free(load->block);
}

/* Collective. */
static tess_status make_load(const imager_job *job, const tess_brick_list *own,
                             plane_load *load)
{
    tess_status status = TESS_OK;
    const tess_grid_plan *plan = job->plan;
    load->own = tess_alloc_zero(plan->num_planes, sizeof *load->own);
    load->total = tess_alloc_zero(plan->num_planes, sizeof *load->total);
    load->block = tess_alloc_zero(plan->num_blocks, sizeof *load->block);
    const bool ready = load->own && load->total && load->block;
    TESS_TRY(tess_comm_agree(job->comm, ready ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t k = 0; k < own->num_bricks; ++k) {
        const double parts = (double)imager_brick_parts(job, own->num_vis[k]);
        for (int32_t p = own->planes[k].first; p < own->planes[k].end; ++p)
            load->own[p] += parts * layer_bytes(plan);
    }
    memcpy(load->total, load->own, (size_t)plan->num_planes * sizeof *load->total);
    TESS_TRY(
        tess_comm_allreduce_f64(job->comm, load->total, plan->num_planes, TESS_SUM));
cleanup:
    return status;
}

/* Whether any rank has visibilities in planes [first, end). */
static bool has_load(const imager_job *job, const plane_load *load, int first, int end)
{
    for (int p = first; p < end && p < job->plan->num_planes; ++p)
        if (load->total[p] > 0) return true;
    return false;
}

/* Bytes of each block's sums, of all images, in planes [first, end). */
static void load_blocks(const imager_job *job, const tess_brick_list *own, int first,
                        int end, plane_load *load)
{
    const tess_grid_plan *plan = job->plan;
    memset(load->block, 0, (size_t)plan->num_blocks * sizeof *load->block);
    for (int64_t k = 0; k < own->num_bricks; ++k) {
        const tess_plane_span span = own->planes[k];
        const int begin = span.first > first ? span.first : first;
        const int stop = span.end < end ? span.end : end;
        if (begin >= stop) continue;
        load->block[own->key[k] / (plan->tiles_u * plan->tiles_v)] +=
            (stop - begin) * layer_bytes(plan) * job->num_images *
            (double)imager_brick_parts(job, own->num_vis[k]);
    }
}

/* Bytes of this rank's sums in all and at a time, if those of a block are held until
 * its planes are complete, which is after the next block. */
static void sums_by_blocks(const imager_job *job, const tess_brick_list *own,
                           plane_load *load, double *all, double *at_once)
{
    *all = *at_once = 0;
    load_blocks(job, own, 0, job->plan->num_planes, load);
    for (int b = 0; b < job->plan->num_blocks; ++b) {
        *all += load->block[b];
        *at_once = fmax(*at_once, load->block[b] + (b > 0 ? load->block[b - 1] : 0));
    }
}

/* Bytes of this rank's sums if sums of this number of planes are held at a time. The
 * largest array of one set of planes serves the first block of the next set, if it is
 * large enough (steps_give_up_live). */
static double sums_by_planes(const imager_job *job, const tess_brick_list *own,
                             int planes, plane_load *load)
{
    const int end = job->plan->num_planes;
    double most = 0, spare = 0;
    for (int first = 0; first < end; first += planes) {
        double held = 0, largest = 0, left = spare;
        if (!has_load(job, load, first, first + planes)) continue;
        load_blocks(job, own, first, first + planes, load);
        for (int b = 0; b < job->plan->num_blocks; ++b) {
            if (load->block[b] == 0) continue;
            const double array = fmax(load->block[b], left);
            left = 0;
            held += array;
            largest = fmax(largest, array);
        }
        most = fmax(most, held + left);
        spare = fmax(largest, left);
    }
    return most;
}

/* Largest size of the parts of this rank's sums on their way to the ranks that
 * transform the planes, and of the parts that arrive for its own planes: planes [first,
 * end) of every image, in batches of one plane for each group of F ranks that share a
 * plane. */
static double pieces_of(const imager_job *job, const plane_load *load, int first,
                        int end)
{
    const tess_grid_plan *plan = job->plan;
    const int ranks = tess_comm_size(job->comm), f = job->ranks.fft_ranks;
    const int groups = ranks / f, mine = tess_comm_rank(job->comm) / f;
    const int count = (end - first) * job->num_images;
    /* without the padding of a line */
    const double packed =
        (double)tess_grid_brick_lines(plan) / (double)tess_grid_brick_stride(plan);
    double most = 0;
    for (int at = 0; at < count && ranks > 1; at += groups) {
        double bytes = 0;
        for (int g = 0; g < groups && at + g < count; ++g) {
            const int p = first + (at + g) / job->num_images;
            bytes += load->own[p];
            if (g != mine) continue;
            bytes += (load->total[p] - load->own[p]) / f - load->own[p] / f;
        }
        most = fmax(most, bytes * packed);
    }
    return most;
}

/* As pieces_of, the most of all windows of this number of planes; 0: of one window of
 * all planes. */
static double pieces_bytes(const imager_job *job, const plane_load *load, int planes)
{
    const int end = job->plan->num_planes, step = planes > 0 ? planes : end;
    double most = 0;
    for (int first = 0; first < end; first += step)
        most = fmax(
            most, pieces_of(job, load, first, first + step < end ? first + step : end));
    return most;
}

/* ---- samples ---- */

/* Whether samples are gridded where they were read. */
static bool in_place(const imager_job *job, const imager_workload *work)
{
    return tess_comm_size(job->comm) == 1 && work->cached &&
           job->layout->forced.passes <= 1;
}

/* Bytes of the samples of the slice, or of a set of blocks. Of several outputs, the
 * samples of one are counted separately. */
static double own_bytes(const imager_workload *work)
{
    return work->cached ? work->sample_bytes + work->copy_bytes : work->block_bytes;
}

/* Bytes of these samples that stay while bricks are gridded; samples that have all been
 * sent do not. */
static double bytes_beside_sums(const imager_job *job, const imager_workload *work)
{
    const bool several = work->num_outputs > 1 || work->copy_bytes > 0;
    if (!work->cached || in_place(job, work) || job->layout->forced.passes > 1)
        return own_bytes(work);
    return several ? work->sample_bytes : 0;
}

/* Samples that this rank will hold while bricks are gridded, `beside` of them not its
 * own. */
static visset_held held_beside(const imager_job *job, const imager_workload *work,
                               double beside)
{
    return (visset_held){.kept = beside,
                         .reading = work->cached ? 0 : work->read_bytes,
                         .owned = (in_place(job, work) ? 0 : work->owned_bytes) +
                                  (double)work->num_runs * (double)sizeof(tess_run)};
}

/* ---- a model that is subtracted ---- */

/* What this rank needs to subtract the job's model, and to take the targets' views. */
typedef struct model_load {
    double derived; /* bytes of the array of all residuals, or of a batch, and of what
                       targets take of these or of the samples */
    double later;   /* bytes of the residuals that cleaning makes after first images */
    double sums;    /* bytes of the sums of the model's bricks */
    double beside;  /* bytes of the samples' sums, while those of the model are held */
    bool at_once; /* model and residuals are transformed in turns, in batches: lines of
                     both are held */
} model_load;

/* Whether the first images are of residuals. A run that cleans makes its first images
 * of the data, with PSFs. */
static bool subtracts(const imager_job *job)
{
    return job->model.is_shared && job->memory.clean_bytes == 0;
}

/* Whether memory for residuals counts. A run that cleans several targets holds
 * residuals beside what each target takes of them, which is more than PSFs take. */
static bool holds_residuals(const imager_job *job)
{
    return job->model.is_shared &&
           (job->memory.clean_bytes == 0 || imager_job_num_targets(job) > 1);
}

/* Number of the model's images for each image that is gridded. */
static double model_share(const imager_job *job)
{
    return subtracts(job) ? (double)job->model.num / job->num_images : 0;
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
        /* the halo of a brick lies in the next one */
        touched[tile_u] = touched[tile_u + 1] = 1;
    }
    TESS_TRY(tess_comm_allreduce_i64(job->comm, touched, plan->tiles_u + 1, TESS_MAX));
    for (int64_t k = 0; k < plan->tiles_u; ++k)
        tiles += touched[k];
    *share = (double)tiles / (double)plan->tiles_u;
cleanup:
    tess_free(touched);
    return status;
}

/* Other ranks' lines that this rank holds, in units of its own. Ranks of a node read
 * them where they lie, in whole pages of memory: their own rows of each line. Between
 * nodes lines are sent and received. */
static double others_lines(const imager_job *job, bool one_node)
{
    const double value = job->plan->is_double ? 16 : 8, page = 4096;
    const double line_bytes = (double)job->geom.ny * value;
    const int f = job->ranks.fft_ranks;
    if (f == 1) return 0;
    const double share = fmin(1, 1.0 / f + page / line_bytes); /* of another's pages */
    return one_node ? fmin(2, (f - 1) * share) : 2;
}

/* Whether all ranks of the team are on one node. Collective. */
static tess_status on_one_node(const imager_job *job, bool *one_node)
{
    tess_status status = TESS_OK;
    tess_comm *node = NULL;
    TESS_TRY(tess_comm_node(imager_team(job), &node));
    *one_node = tess_comm_size(node) == tess_comm_size(imager_team(job));
cleanup:
    tess_comm_free(node);
    return status;
}

/* What gridding takes on this rank. */
typedef struct grid_load {
    double sums;   /* bytes of brick sums that are held at a time */
    double pieces; /* bytes of parts of these on their way to the planes */
    double lines;  /* share of the grid's lines that bricks cover */
    double planes; /* planes that have visibilities */
    int sets;      /* sets of these whose sums are held at a time */
    bool one_node; /* all ranks of the team are on one node */
} grid_load;

/* Counts the planes that have visibilities, and their sets of this number of planes; 0:
 * one set. */
static void count_planes(const imager_job *job, const plane_load *load, int at_once,
                         grid_load *grid)
{
    const int planes = job->plan->num_planes;
    grid->sets = at_once > 0 ? 0 : 1;
    for (int p = 0; p < planes; ++p)
        grid->planes += load->total[p] > 0;
    for (int p = 0; at_once > 0 && p < planes; p += at_once)
        grid->sets += has_load(job, load, p, p + at_once);
}

/* Bytes of an image on this rank, of all targets that are held at a time. */
static double bytes_of_image(const imager_job *job)
{
    const double value = job->plan->is_double ? 16 : 8;
    return imager_target_pixels(job) * value / 2 / job->ranks.fft_ranks;
}

/* Bytes of the lines of a plane on this rank. Targets are transformed one after the
 * other, and a target's lines are freed behind its planes (tess_planes_rest). */
static double lines_bytes(const imager_job *job, const grid_load *load)
{
    const double value = job->plan->is_double ? 16 : 8;
    double rows = 0;
    for (int k = 0; k < imager_job_num_targets(job); ++k)
        rows = fmax(rows, (double)imager_job_geom(job, k)->ny);
    return load->lines * (double)job->plan->nu * rows * value / job->ranks.fft_ranks;
}

/* Bytes of the images of the job's model on this rank. */
static double model_images_bytes(const imager_job *job)
{
    return job->model.is_shared ? job->model.num * bytes_of_image(job) : 0;
}

/* Bytes of these, and of their lines beside those of the images. */
static double model_bytes(const imager_job *job, const grid_load *load,
                          const model_load *model)
{
    const double lines = 1 + others_lines(job, load->one_node);
    return model_images_bytes(job) +
           (model->at_once ? lines * lines_bytes(job, load) : 0);
}

/* Bytes of samples that this rank receives, with their runs. */
static double received_bytes(const imager_job *job, const imager_workload *work)
{
    const double runs = (double)sizeof(tess_run) * (double)work->num_runs;
    return in_place(job, work) ? runs : work->owned_bytes + runs;
}

/* Bytes of samples in flight. Parts of windows that nothing has been put into take no
 * memory, and what stays on its rank does not go through windows. */
static double flight_bytes(const imager_job *job, const imager_workload *work)
{
    const int ranks = tess_comm_size(job->comm);
    const double sent = work->copy_bytes > 0 ? work->copy_bytes : own_bytes(work);
    return fmin((double)tess_exchange_flight_bytes(ranks),
                (sent + work->owned_bytes) * (1 - 1.0 / ranks));
}

static void estimate_parts(const imager_job *job, const imager_workload *work,
                           const grid_load *load, const model_load *model,
                           imager_estimate *estimate)
{
    const double lines = lines_bytes(job, load);
    estimate->reading = fmin(2 * work->read_bytes, work->file_bytes);
    estimate->samples = own_bytes(work) + received_bytes(job, work) + model->derived;
    estimate->sums = fmax(load->sums, model->beside + model->sums);
    /* pieces have become lines before lines are transposed */
    estimate->planes = job->num_images * bytes_of_image(job) + lines +
                       fmax(load->pieces, others_lines(job, load->one_node) * lines) +
                       model_bytes(job, load, model);
}

/* Bytes while bricks are gridded and planes are transformed, which take `all` with what
 * cleaning keeps. A run that cleans makes PSFs first, and then keeps images while it
 * makes residuals without PSFs. */
static double gridding_bytes(const imager_job *job, const model_load *model,
                             const imager_estimate *parts, double all)
{
    const double first = all - job->memory.clean_bytes;
    const double psfs = 1 - (double)job->num_pol / job->num_images;
    const double of_psfs = psfs * (parts->sums + job->num_images * bytes_of_image(job));
    return job->memory.clean_bytes > 0 ? fmax(first, all - of_psfs + model->later)
                                       : all;
}

/* The largest sum of the parts that are needed at the same time. */
static double peak_bytes(const imager_job *job, const imager_workload *work,
                         const grid_load *load, const model_load *model,
                         const imager_estimate *parts)
{
    const double base = imager_base_bytes(job), own = own_bytes(work);
    const double beside = bytes_beside_sums(job, work);
    const double received = received_bytes(job, work);
    const double runs = (double)sizeof(tess_run) * (double)work->num_runs;
    const double densities = work->num_densities * DENSITY_CELL_BYTES * load->lines *
                             (double)job->geom.nx * (double)job->geom.ny;
    /* if all samples are kept, buffers of files have been freed, and so have densities,
     * which have been applied to the samples */
    const double kept = base + (work->cached ? 0 : densities + parts->reading);
    const double loading = base - imager_means_beside(job) - job->memory.clean_bytes -
                           job->memory.backlog_bytes +
                           (work->cached ? work->sample_bytes : own) +
                           1.5 * parts->reading;
    /* ranks send their parts of a density to one another and get the sums back: an
     * array at the owners of its pages, and one of what returns */
    const double parts_of_densities = tess_comm_size(job->comm) > 1 ? 2 * densities : 0;
    const double weighing =
        kept + own + parts_of_densities + (work->cached ? densities : 0);
    /* messages are freed before runs are sorted from one array to another */
    const double sorting =
        kept + fmax(own + received + flight_bytes(job, work), beside + received + runs);
    const double gridding = gridding_bytes(job, model, parts,
                                           kept + beside + received + model->derived +
                                               parts->sums + parts->planes);
    /* samples of this output have been freed; those of all others stay */
    const double waiting = work->copy_bytes > 0 ? work->sample_bytes : 0;
    const double finishing = kept + (work->cached ? waiting : own) +
                             model_images_bytes(job) + imager_finishing_bytes(job);
    /* the images of the last output are held while means are made of them */
    const double adding = base - job->memory.clean_bytes - imager_means_beside(job) +
                          (work->cached ? beside : own) + job->memory.mean_bytes +
                          work->adding_bytes;
    const double making = fmax(fmax(gridding, finishing), adding);
    return fmax(fmax(loading, weighing), fmax(sorting, making));
}

/* How often samples are gridded: for all outputs, and for all targets of each. */
static double images_of_samples(const imager_job *job, const imager_workload *work)
{
    return (double)work->num_outputs * imager_job_num_targets(job);
}

/* Time that the device of each rank takes, instead of threads. */
static void estimate_device_time(const imager_job *job, const imager_workload *work,
                                 double planes, imager_estimate *estimate)
{
    const tess_grid_plan *plan = job->plan;
    const double ranks = tess_comm_size(job->comm);
    const double outputs = images_of_samples(job, work);
    const double pixels = (double)job->geom.nx * (double)job->geom.ny;
    const double transforms = planes * job->num_images;
    double *s = estimate->seconds;
    s[TESS_STAGE_SORT] = 0; /* the time is counted with gridding */
    s[TESS_STAGE_GRID] = tess_grid_device_cost_vis(plan) * (double)work->num_vis *
                         imager_job_num_targets(job);
    s[TESS_STAGE_FFT] =
        tess_grid_device_cost_plane(plan) * transforms * outputs / ranks;
    s[TESS_STAGE_CORRECT] = DEVICE_PIXEL_S * pixels * job->num_images * outputs / ranks;
}

static void estimate_time(const imager_job *job, const imager_workload *work,
                          const grid_load *load, double new_sums,
                          imager_estimate *estimate)
{
    const tess_grid_plan *plan = job->plan;
    const tess_costs *costs = &plan->costs;
    const int ranks = tess_comm_size(job->comm), f = job->ranks.fft_ranks;
    const double threads = job->layout->threads;
    const double both = 1 + model_share(job); /* imaging, and prediction */
    const double pixels = (double)job->geom.nx * (double)job->geom.ny;
    const double share = pixels * job->num_images / ranks / threads;
    double *s = estimate->seconds, largest, mean;
    int64_t split;
    tess_partition_balance(job->partition, &largest, &mean, &split);
    const double outputs = images_of_samples(job, work);
    const double per_plane = tess_grid_cost_plane(plan, load->lines);
    const double batches = ceil(load->planes * job->num_images * f / ranks);
    estimate->num_reads = work->num_reads;
    s[TESS_STAGE_READ] = work->num_reads * work->file_bytes / READ_BYTES_PER_S;
    if (work->num_densities > 0)
        s[TESS_STAGE_WEIGHT] = WEIGH_VIS_S * (double)work->num_vis / threads;
    s[TESS_STAGE_PLAN] = START_S;
    s[TESS_STAGE_SORT] = costs->sort_s * (double)work->num_vis / threads;
    s[TESS_STAGE_EXCHANGE] = work->deal_s;
    if (ranks > 1) {
        s[TESS_STAGE_EXCHANGE] +=
            work->owned_bytes * (double)work->num_outputs / EXCHANGE_BYTES_PER_S;
        s[TESS_STAGE_REDUCE] = estimate->sums * outputs / REDUCE_BYTES_PER_S;
    }
    s[TESS_STAGE_GRID] =
        (largest / threads + new_sums / costs->touch_bytes_s +
         (load->sets - 1) * imager_set_s(job, (double)work->num_vis / ranks)) *
        both * outputs;
    s[TESS_STAGE_FFT] = batches * per_plane * both * outputs / (f * threads);
    s[TESS_STAGE_CORRECT] = costs->correct_s * share * outputs;
    if (job->backend->start) estimate_device_time(job, work, load->planes, estimate);
    s[TESS_STAGE_WRITE] = WRITE_PIXEL_S * pixels * job->num_images * outputs / ranks;
}

/* Takes the largest needs of all ranks. Collective. */
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

/* Whether passes over data are kept on scratch: several images are made of them. */
static bool keeps_passes(const imager_job *job, const imager_workload *work)
{
    const bool several = job->memory.clean_bytes > 0 || imager_job_in_turn(job);
    return several && work->scratch && !work->cached && !job->backend->grid->load;
}

/* Adds the memory and the reading that passes over data need if there are several, on
 * which all ranks agree (`*several`). Finds how many planes' sums the passes hold, and
 * the largest number of passes that add to the same planes. Collective. */
static tess_status plan_passes(const imager_job *job, const tess_brick_list *own,
                               imager_workload *work, int *planes, bool *several,
                               int *in_turn)
{
    tess_status status = TESS_OK;
    imager_passes passes = {0};
    const visset_held held = held_beside(job, work, own_bytes(work));
    /* passes that are kept on scratch serve residual images, too */
    const bool kept = job->memory.clean_bytes > 0 && keeps_passes(job, work);
    const bool less_model = subtracts(job) || kept;
    /* residuals take more than the values of sources */
    const visset_asked asked = {.samples = &work->kind,
                                .less_model = less_model,
                                .of_sources = work->makes_sources && !less_model};
    TESS_TRY(visset_choose_passes(job, &held, &asked, own, &passes));
    *several = passes.num_reads > 1;
    if (!*several) goto cleanup;
    *planes = passes.planes_at_once;
    *in_turn = imager_passes_in_turn(job, &passes);
    work->owned_bytes = passes.sample_bytes; /* this includes their runs */
    work->num_runs = 0;
    if (!work->scratch && !work->cached) work->num_reads += passes.num_reads - 1;
cleanup:
    imager_passes_free(&passes);
    return status;
}

/* Bytes of what is made of the samples. Targets take of residuals when the residuals of
 * all of them have been made. Sources have no residuals. */
static double derived_bytes(const imager_job *job, const imager_workload *work,
                            const tess_samples *samples, const tess_brick_list *own,
                            const residual_way *way)
{
    const visset_asked images = {.samples = samples, .bricks = own};
    const visset_asked psf = {
        .samples = samples, .bricks = own, .of_sources = work->makes_sources};
    const double residuals = way->bytes - way->sums_bytes;
    const double taken = visset_taken_bytes(job, &images);
    const double of_psf = visset_taken_bytes(job, &psf);
    if (residuals == 0) return fmax(taken, of_psf);
    return fmax(of_psf, way->in_batches
                            ? residuals
                            : fmax(residuals, residual_made_bytes(samples) + taken));
}

/* Finds the number of planes whose sums are held at a time with all samples in memory,
 * as the run will decide, and what the run's model and targets take. Collective. */
static tess_status plan_sums(const imager_job *job, const imager_workload *work,
                             const tess_brick_list *own, plane_load *load,
                             double at_once, int *planes, model_load *model)
{
    tess_status status = TESS_OK;
    tess_grid_plan plan = *job->plan;
    imager_job run = *job;
    tess_samples samples = work->kind;
    const visset_held held = held_beside(job, work, bytes_beside_sums(job, work));
    const bool less_model = holds_residuals(job);
    const visset_asked asked = {.samples = &samples,
                                .bricks = own,
                                .less_model = less_model,
                                .of_sources = work->makes_sources && !less_model};
    visset_way way;
    plan.costs = work->costs;
    run.plan = &plan;
    samples.num_vis = 0;
    samples.num_rows = work->num_rows;
    for (int64_t k = 0; k < own->num_bricks; ++k)
        samples.num_vis += own->num_vis[k];
    TESS_TRY(visset_choose_way(&run, &held, &asked, own, &way));
    *planes = way.planes;
    model->derived = derived_bytes(job, work, &samples, own, &way.residual);
    if (!less_model && job->memory.clean_bytes > 0)
        model->later = residual_bytes(job, &samples);
    if (!less_model) goto cleanup;
    if (way.residual.planes > 0)
        at_once = sums_by_planes(job, own, way.residual.planes, load);
    model->sums = model_share(job) * at_once;
    model->beside = way.residual.in_batches ? at_once : 0;
    model->at_once = subtracts(job) && way.residual.in_batches;
cleanup:
    return status;
}

/* A pass predicts its share of the bricks while the sums of earlier passes are held.
 * Its residuals are counted with its samples. */
static model_load passes_load(const imager_job *job, double sums, int in_turn)
{
    const double share = sums / in_turn;
    return (model_load){.sums = model_share(job) * share, .beside = sums - share};
}

/* Whether data that do not fit are gridded for all targets at once: they are, unless
 * passes over them are kept on scratch (visset_create). */
static bool goes_over_together(const imager_job *job, const imager_workload *work)
{
    const bool over = !work->cached || job->layout->forced.passes > 1;
    return over && !keeps_passes(job, work);
}

tess_status imager_estimate_make(const imager_job *planned, const imager_workload *work,
                                 const tess_brick_list *bricks,
                                 imager_estimate *estimate)
{
    tess_status status = TESS_OK;
    imager_job run = *planned;
    const imager_job *job = &run;
    imager_workload found = *work;
    tess_brick_list own = {0};
    plane_load load = {0};
    model_load model = {0};
    double all = 0, sums = 0, lines = 0;
    int planes = 0, in_turn = 1;
    bool several = false;
    grid_load grid = {0};
    *estimate = (imager_estimate){0};
    if (goes_over_together(planned, work)) run.targets.in_turn = false;
    TESS_TRY(imager_owned_bricks(job, bricks, &own));
    TESS_TRY(make_load(job, &own, &load));
    sums_by_blocks(job, &own, &load, &all, &sums);
    TESS_TRY(occupied_share(job, &own, &lines));
    if (!work->cached || job->layout->forced.passes > 1)
        TESS_TRY(plan_passes(job, &own, &found, &planes, &several, &in_turn));
    if (!several) TESS_TRY(plan_sums(job, work, &own, &load, sums, &planes, &model));
    /* passes that take a share of each block's bricks are transformed at the end */
    if (in_turn > 1 && planes == 0) sums = all;
    if (planes > 0) sums = sums_by_planes(job, &own, planes, &load);
    if (several) model = passes_load(job, sums, in_turn);
    count_planes(job, &load, planes, &grid);
    TESS_TRY(on_one_node(job, &grid.one_node));
    grid.sums = sums;
    grid.pieces = pieces_bytes(job, &load, planes);
    grid.lines = lines;
    estimate_parts(job, &found, &grid, &model, estimate);
    estimate->peak = peak_bytes(job, &found, &grid, &model, estimate);
    estimate_time(job, &found, &grid, grid.sets > 1 ? sums : all, estimate);
    TESS_TRY(largest_of_all(job->comm, estimate));
cleanup:
    free_load(&load);
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
    /* bytes of tile sums; of lines that ranks of a slab exchange; of rows of groups
     * that are summed */
    seconds += lines * CELLS_COVERED * (double)plan->nv / n / REDUCE_BYTES_PER_S;
    seconds += lines * (double)job->geom.ny * (1 - 1.0 / f) / n / REDUCE_BYTES_PER_S;
    if (f < ranks)
        seconds += job->num_images * pixels * value / 2 / f / REDUCE_BYTES_PER_S;
    return seconds + (OUTPUT_CALLS + BATCH_CALLS * batches) *
                         (COLLECTIVE_S * log2(n) + MESSAGE_S * (n - 1));
}

double imager_estimate_deal(const imager_job *job, const output_table *outputs,
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

double imager_estimate_rows(const imager_job *job, const output_table *outputs,
                            int ranks)
{
    const double pixels = (double)job->geom.nx * (double)job->geom.ny;
    const double bytes = sizeof(double) + (job->plan->is_double ? 8 : 4);
    const double images = (double)outputs->num * job->num_pol;
    return images * bytes * pixels * (1 - 1.0 / ranks) / ranks / REDUCE_BYTES_PER_S;
}
