/* Decides whether devices share w-planes. If each device makes whole images, it
 * transforms all planes, and images are summed once at the end. If devices share
 * planes, each does 1/P of the transforms; but sums of bricks are sent to the devices
 * that transform their lines, and lines are sent between the two passes of a transform.
 */
#include "device_share.h"

#include <math.h>

#include "imager_targets.h"
#include "imager_window.h"
#include "tess_device.h"
#include "tess_device_comm.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"

/* A grid is at most 2.5 times as large as the image along each axis. A device holds an
 * image, and 2.5 times as many lines of a plane. */
static const double LINES_OF_IMAGE = 2.5;

/* Bytes beside images and planes: batches of lines, buffers, work space of transforms.
 */
static const double OTHER_BYTES = 1e9;

/* Largest number of bytes that a device sends in one exchange. Two such buffers are the
 * constant part of a device's memory for sharing. */
static const int64_t EXCHANGE_BYTES = 256 << 20, LEAST_PART = 256;

/* Images of this size or more are summed by NCCL if devices cannot read each other's
 * memory. The host's memory sums about 1.5 GB/s; connecting the devices by NCCL takes
 * 0.5 s. */
static const double NCCL_BYTES = 1e9;

/* Time of both passes over a cell of a w-plane, with its sums and w-screen. On an H100,
 * 75 planes of 20480 x 20480 cells in single precision take .40 s. */
static const double CELL_S = 1.27e-11;

/* Time that sharing adds to a plane: ranks list its pieces, and agree about it. Two
 * H100 take .3 ms more for those planes than half of that time; the host needs 1 ms for
 * a plane, which shows when planes are small. */
static const double PLANE_S = 0.7e-3;

/* In that field, .6 of a plane's lines have sums of bricks, which cover .1 of its
 * cells. */
static const double LINES = 0.6, COVERED = 0.1;

/* No link between devices has a higher rate [bytes/s]. */
static const double FASTEST_LINK = 1e12;

/* Exchanges that measure the links. The first one opens them, and the fastest of the
 * others counts: what disturbs one exchange of a millisecond shall not decide for the
 * whole run. */
enum { EXCHANGES = 5 };

/* Small images need less: a device's share of one. */
static double exchange_for(double pixels, double value_bytes, int sharers)
{
    const double share = pixels * value_bytes / sharers;
    return share < (double)EXCHANGE_BYTES ? share : (double)EXCHANGE_BYTES;
}

double device_share_buffers(double pixels, double value_bytes, int sharers)
{
    return sharers > 1 ? 2 * exchange_for(pixels, value_bytes, sharers) : 0;
}

double device_share_bytes(double pixels, int num_images, double value_bytes,
                          int sharers)
{
    return pixels * value_bytes * (0.5 * num_images + LINES_OF_IMAGE) / sharers +
           OTHER_BYTES + device_share_buffers(pixels, value_bytes, sharers);
}

static double value_bytes_of(const imager_job *job)
{
    return job->plan->is_double ? 16 : 8;
}

/* ---- connect ---- */

/* The most columns and rows that images of any target have. */
static tess_geom bounds_of(const imager_job *job)
{
    tess_geom bounds = job->geom;
    for (int k = 0; k < imager_job_num_targets(job); ++k) {
        const tess_geom *geom = imager_job_geom(job, k);
        bounds.nx = tess_max_i64(bounds.nx, geom->nx);
        bounds.ny = tess_max_i64(bounds.ny, geom->ny);
    }
    return bounds;
}

static double pixels_of(const tess_geom *geom)
{
    return (double)geom->nx * (double)geom->ny;
}

/* Bytes of a buffer with a part for each rank, and of a few lines. */
static int64_t exchange_bytes(const imager_job *job)
{
    const tess_geom geom = bounds_of(job);
    const int64_t forced = job->layout->forced.round_bytes;
    const int64_t least = 8 * geom.ny * (int64_t)value_bytes_of(job) +
                          LEAST_PART * tess_comm_size(job->comm);
    const int64_t wanted =
        forced > 0 ? forced
                   : (int64_t)exchange_for(pixels_of(&geom), value_bytes_of(job),
                                           tess_comm_size(job->comm));
    return wanted > least ? wanted : least;
}

/* Images that are cleaned on devices go from one to another in the memory in which they
 * are summed. */
static tess_status connect(imager_job *job, bool exchanges)
{
    const tess_geom geom = bounds_of(job);
    const double image = pixels_of(&geom) * value_bytes_of(job) / 2;
    const bool large = exchanges || image * job->num_images >= NCCL_BYTES;
    const double moved = job->memory.device_bytes > 0
                             ? fmax(fmin(image / 2, (double)EXCHANGE_BYTES),
                                    (double)LEAST_PART * tess_comm_size(job->comm))
                             : 0;
    const tess_device_comm_opts opts = {
        .sum_bytes = exchanges || !job->alone ? 0 : (int64_t)image,
        .exchange_bytes = exchanges ? exchange_bytes(job) : (int64_t)moved,
        .allowed = job->layout->forced.nccl ? TESS_SUM_BY_NCCL
                   : large                  ? TESS_SUM_BY_PEERS | TESS_SUM_BY_NCCL
                                            : TESS_SUM_BY_PEERS};
    tess_device_comm_destroy(job->ranks.devices);
    job->ranks.devices = NULL;
    return tess_device_comm_create(job->comm, &opts, &job->ranks.devices);
}

/* ---- cost ---- */

/* Every rank sends a part of its buffer to every other rank. */
static tess_status try_exchange(const imager_job *job, int64_t bytes,
                                tess_device_part *send, tess_device_rows *take,
                                void *to)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(job->comm);
    void *buffer;
    status = tess_device_comm_buffer(job->ranks.devices, &buffer);
    for (int k = 0; k < size; ++k) {
        send[k] = (tess_device_part){k * bytes, bytes};
        take[k] = (tess_device_rows){(char *)to + k * bytes, bytes, bytes, 1};
    }
    TESS_TRY(tess_device_comm_exchange(job->ranks.devices, status, send, take));
    status = tess_device_comm_arrive(job->ranks.devices);
    if (status == TESS_OK) status = tess_device_wait();
    TESS_TRY(tess_comm_agree(job->comm, status));
cleanup:
    return status;
}

/* Rate at which the slowest device sends to the others [bytes/s]. Collective. */
static tess_status measure_links(const imager_job *job, double *bytes_s)
{
    tess_status status = TESS_OK;
    const int size = tess_comm_size(job->comm);
    const int64_t bytes =
        tess_device_comm_room(job->ranks.devices) / 4 / size / LEAST_PART * LEAST_PART;
    tess_device_part *send = tess_alloc(size, sizeof *send);
    tess_device_rows *take = tess_alloc(size, sizeof *take);
    void *to = NULL;
    double seconds = 0, least_s = INFINITY;
    status = tess_device_alloc(bytes * size, "exchange over ranks", &to);
    TESS_TRY(tess_comm_agree(job->comm, send && take ? status : TESS_ERR_ALLOC));
    for (int turn = 0; turn < EXCHANGES; ++turn) {
        seconds = -tess_time_now();
        TESS_TRY(try_exchange(job, bytes, send, take, to));
        seconds += tess_time_now();
        if (turn > 0) least_s = fmin(least_s, seconds);
    }
    TESS_TRY(tess_comm_allreduce_f64(job->comm, &least_s, 1, TESS_MAX));
    *bytes_s = (double)(bytes * (size - 1)) / (least_s > 0 ? least_s : 1e-9);
cleanup:
    tess_free(send);
    tess_free(take);
    tess_device_free(to);
    return status;
}

/* Time that sharing saves [s]. The backend of a device sends what it has of one
 * plane while it transforms another, so that the slower of both counts. */
static double gain(const imager_job *job, double bytes_s)
{
    const tess_grid_plan *plan = job->plan;
    const double ranks = tess_comm_size(job->comm),
                 transforms = (double)plan->num_planes * job->num_images;
    const double cells = (double)plan->nu * (double)plan->nv;
    const double lines = LINES * (double)plan->nu * (double)job->geom.ny;
    const double sent =
        (COVERED * cells + lines) * value_bytes_of(job) * (ranks - 1) / (ranks * ranks);
    const double alone_s = cells * CELL_S * value_bytes_of(job) / 8;
    const double shared_s = fmax(alone_s / ranks, sent / bytes_s);
    return transforms * (alone_s - shared_s - PLANE_S);
}

/* ---- choice ---- */

/* The pixels of images whose planes a device holds at a time if it makes whole images:
 * those of the largest target, if targets may take turns (imager_job_choose_turns). */
static double pixels_alone(const imager_job *job)
{
    double largest = 0;
    if (!job->targets.may_turn) return imager_target_pixels(job);
    for (int k = 0; k < imager_job_num_targets(job); ++k)
        largest = fmax(largest, pixels_of(imager_job_geom(job, k)));
    return largest;
}

/* Whether whole images fit beside what is on every device. Collective. */
static tess_status fit_alone(const imager_job *job, bool *fit)
{
    int64_t here =
        device_share_bytes(pixels_alone(job), job->num_images, value_bytes_of(job), 1) <
        (double)job->backend->room();
    const tess_status status = tess_comm_allreduce_i64(job->comm, &here, 1, TESS_MIN);
    *fit = here != 0;
    return status;
}

/* Whether planes must be shared, whatever that costs. Collective. */
static tess_status must_share(const imager_job *job, bool *must)
{
    tess_status status = TESS_OK;
    bool fit;
    TESS_TRY(fit_alone(job, &fit));
    *must = !fit || job->layout->reproducible ||
            job->layout->forced.device_planes == TESS_SHARED_PLANES;
cleanup:
    return status;
}

static bool may_share(const imager_job *job)
{
    const tess_forced *forced = &job->layout->forced;
    return job->backend->start && tess_comm_size(job->comm) > 1 &&
           job->ranks.num_teams <= 1 && forced->pw == 0 && forced->fft_ranks == 0 &&
           forced->device_planes != TESS_WHOLE_IMAGES;
}

/* Whether devices exchange sums of bricks for every plane in any case, because they are
 * not alone with their samples. Without links these pass through host memory, so links
 * are not slower. Several targets may take turns, which those of shared planes cannot.
 */
static bool exchanges_sums(const imager_job *job)
{
    return !job->alone && imager_job_num_targets(job) == 1;
}

/* Connects devices that share planes, unless links make that slower. Collective. */
static tess_status try_sharing(imager_job *job)
{
    tess_status status = TESS_OK;
    bool shares;
    double bytes_s = 0;
    TESS_TRY(must_share(job, &shares));
    if (!shares && !exchanges_sums(job) && gain(job, FASTEST_LINK) <= 0) return TESS_OK;
    TESS_TRY(connect(job, true));
    if (job->ranks.devices && !shares) shares = exchanges_sums(job);
    if (job->ranks.devices && !shares) {
        TESS_TRY(measure_links(job, &bytes_s));
        shares = gain(job, bytes_s) > 0;
        tess_log_detail("devices exchange %s a second %s", tess_mem_text(bytes_s),
                        tess_device_comm_text(job->ranks.devices));
    }
    job->ranks.shares_planes = shares;
cleanup:
    return status;
}

tess_status device_share_choose(imager_job *job)
{
    tess_status status = TESS_OK;
    const bool sums = job->alone && (!job->worst_pixel || job->model.is_shared);
    job->ranks.shares_planes = false;
    if (may_share(job)) TESS_TRY(try_sharing(job));
    if (job->ranks.shares_planes) return imager_job_share(job);
    tess_device_comm_destroy(job->ranks.devices);
    job->ranks.devices = NULL;
    if (sums || job->memory.device_bytes > 0) TESS_TRY(connect(job, false));
cleanup:
    return status;
}
