/* The density of all channels of an interval together (--mf-weighting). */
#include "image_output.h"
#include "image_run.h"
#include "run_samples.h"
#include "tess_mem.h"

/* Add the samples of an output. Collective. */
static tess_status add_output(image_run *run, int64_t output, tess_density **density)
{
    tess_status status = TESS_OK;
    sample_sets data = {0};
    TESS_TRY(image_data_for(run, output, &data));
    const tess_samples *like = data.in_memory ? &data.cached : &data.block;
    if (!*density)
        TESS_TRY(
            image_create_density(run, like->num_weight, data.weight_scale, density));
    run->densities.scale = data.weight_scale;
    for (int64_t k = 0; k < data.num_sets && status == TESS_OK; ++k) {
        tess_samples *samples;
        status = sample_sets_get(&data, k, &samples);
        if (status == TESS_OK)
            status =
                tess_density_add(*density, samples, 0, samples->num_rows, data.threads);
    }
    TESS_TRY(tess_comm_agree(run->comm, status));
cleanup:
    image_data_free(&data);
    return status;
}

tess_status image_share_density(image_run *run, int64_t interval)
{
    tess_status status = TESS_OK;
    image_densities *densities = &run->densities;
    const int64_t channels = run->outputs.num_channels;
    tess_density *density = NULL;
    double mark = tess_time_now();
    if (!run->opts->weights.shared_density || channels == 1 ||
        run->opts->weights.weighting == TESS_NATURAL)
        return TESS_OK;
    if (densities->shared && densities->interval == interval) return TESS_OK;
    tess_density_destroy(densities->shared);
    densities->shared = NULL;
    for (int64_t k = interval * channels; k < (interval + 1) * channels; ++k)
        if (run->outputs.extent[k].num_vis > 0) TESS_TRY(add_output(run, k, &density));
    if (density) TESS_TRY(tess_density_finish(density, run->comm));
    densities->shared = density;
    densities->interval = interval;
    density = NULL;
    tess_profile_lap(run->profile, TESS_STAGE_WEIGHT, &mark);
cleanup:
    tess_density_destroy(density);
    return status;
}
