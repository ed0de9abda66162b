/* Decides where the images of a run that cleans live. On a device they are not copied
 * between major cycles. They come before samples: these are copied to a device that has
 * no room for both. */
#include "image_place.h"

#include "channel_group.h"
#include "device_share.h"
#include "imager_targets.h"
#include "imager_window.h"
#include "majors.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Pixels of a beam's width, as images usually have them. Beam and scales follow from
 * the longest baseline, which is not known before data are read. */
static const double USUAL_BEAM = 4;

/* Whether images may live on a device. */
static bool may_live_there(const image_run *run)
{
    return image_is_cleaned(run->opts) && run->job.backend->place &&
           run->job.layout->forced.device_rows != TESS_IMAGES_HERE;
}

/* What images and minor loops take of a rank's memory: models, residuals and minor
 * loops; dirty images, PSFs and what is restored. */
static double images_bytes(const image_run *run)
{
    image_run of = *run;
    imager_extent *extent = &of.job.extent;
    const double pixels = (double)run->opts->nx * (double)run->opts->ny;
    const double value = image_is_double(run) ? 8 : 4;
    if (!(extent->uvw_max_lambda > 0))
        extent->uvw_max_lambda = 1 / (USUAL_BEAM * run->opts->scale_rad);
    return majors_device_bytes(&of) +
           3 * run->num_pol * value * pixels / tess_comm_size(run->comm);
}

/* Teams that clean their channels one by one add up their images in host memory
 * (channel_mean.c). */
static bool means_live_there(const image_run *run)
{
    return may_live_there(run) && (run->teams.num == 1 || image_shares_channels(run));
}

void image_place_expect(image_run *run)
{
    imager_memory *memory = &run->job.memory;
    memory->device_bytes = may_live_there(run) ? images_bytes(run) : 0;
    memory->device_mean_bytes = means_live_there(run) ? memory->mean_bytes : 0;
}

double image_place_bytes(const image_run *run)
{
    const imager_memory *memory = &run->job.memory;
    return imager_teams_at_once(&run->teams) * memory->device_bytes +
           memory->device_mean_bytes;
}

/* Planes of images and models. Devices that are connected have lent the buffers of
 * exchanges, which are no part of their room any more. */
static double planes_bytes(const image_run *run)
{
    const imager_job *job = &run->job;
    if (imager_job_num_targets(job) > 1)
        return imager_device_planes_bytes(job, imager_job_in_turn(job));
    const double pixels = imager_target_pixels(job);
    const double value = image_is_double(run) ? 16 : 8;
    const int sharers = job->ranks.fft_ranks;
    const double lent =
        job->ranks.devices ? device_share_buffers(pixels, value, sharers) : 0;
    return device_share_bytes(pixels, job->num_images + job->model.num, value,
                              sharers) -
           lent;
}

/* What is taken of the device before the images are: planes, and residuals of samples
 * that are there. */
static double other_bytes(const image_run *run)
{
    const double value = image_is_double(run) ? 16 : 8;
    const double residuals =
        run->all.resident ? (double)run->all.num_vis * run->num_pol * value : 0;
    return residuals + planes_bytes(run);
}

tess_status image_place_choose(image_run *run)
{
    tess_status status = TESS_OK;
    imager_job *job = &run->job;
    imager_memory *memory = &job->memory;
    const int at_once = imager_teams_at_once(&run->teams);
    int64_t fits;
    image_place_expect(run);
    memory->device_rows = false;
    if (!may_live_there(run)) return TESS_OK;
    fits = image_place_bytes(run) + at_once * other_bytes(run) <
               (double)job->backend->room() ||
           job->layout->forced.device_rows == TESS_IMAGES_THERE;
    TESS_TRY(tess_comm_allreduce_i64(run->teams.all, &fits, 1, TESS_MIN));
    memory->device_rows = fits != 0;
    if (!fits)
        tess_log_info("the GPU has no room for images that are cleaned, which take %s: "
                      "they stay in host memory",
                      tess_mem_text(image_place_bytes(run)));
    if (!fits) memory->device_bytes = memory->device_mean_bytes = 0;
cleanup:
    return status;
}
