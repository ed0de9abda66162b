/* Cleans all channels of an interval together. Their visibility sets are made one after
 * the other, and share one plan; each has the job while its images are made. */
#include "image_joined.h"

#include <string.h>

#include "image_beam.h"
#include "image_cubes.h"
#include "majors.h"
#include "spectral_maps.h"
#include "tess_log.h"
#include "tess_mem.h"

/* A channel's samples, what is made of them, and what is written. */
typedef struct joined_channel {
    sample_sets data;
    bool has_data;
    double variance[2 * TESS_MAX_POL];
    double freq_hz;        /* mean by weight */
    tess_density *density; /* while its set is made */
    visset set;
    imager_product made[TESS_MAX_IMAGES], product[TESS_MAX_IMAGES];
    struct imager_found found[TESS_MAX_POL];
} joined_channel;

typedef struct joined {
    image_run *run;
    int64_t interval;
    int num_channels;
    joined_channel *channel; /* [num_channels] */
    majors_channel *cleaned; /* [num_channels] */
} joined;

static int64_t output_of(const joined *all, int channel)
{
    return all->interval * all->num_channels + channel;
}

static tess_status allocate(joined *all)
{
    tess_status status = TESS_OK;
    all->channel = tess_alloc_zero(all->num_channels, sizeof *all->channel);
    all->cleaned = tess_alloc_zero(all->num_channels, sizeof *all->cleaned);
    if (!all->channel || !all->cleaned)
        TESS_FAIL(TESS_ERR_ALLOC, "channels that are cleaned together");
cleanup:
    return status;
}

static void free_all(joined *all)
{
    for (int c = 0; all->channel && c < all->num_channels; ++c) {
        joined_channel *channel = &all->channel[c];
        for (int k = 0; k < TESS_MAX_IMAGES; ++k) {
            imager_rows_free(&channel->made[k].rows);
            imager_rows_free(&channel->product[k].rows);
        }
        visset_free(&channel->set);
        image_data_free(&channel->data);
    }
    tess_free(all->channel);
    tess_free(all->cleaned);
}

/* The samples of a channel, weighted. Collective. */
static tess_status weigh(image_run *run, joined_channel *channel, int64_t output)
{
    tess_status status = TESS_OK;
    tess_density *density = NULL;
    TESS_TRY(image_data_for(run, output, &channel->data));
    const sample_sets *data = &channel->data;
    const int num_weight =
        data->in_memory ? data->cached.num_weight : data->block.num_weight;
    TESS_TRY(image_weigh(run, &channel->data, &density));
    image_variances(run, density, num_weight, data->weight_scale, channel->variance);
    TESS_TRY(image_apply_density(run, &channel->data, &density));
    /* of samples that are not in memory it is applied as they go to scratch */
    if (density) {
        channel->density = density;
        density = NULL;
    }
cleanup:
    tess_density_destroy(density);
    return status;
}

/* The set of a channel, its dirty images and PSFs. Collective in the team. */
static tess_status make_images(image_run *run, joined_channel *channel)
{
    tess_status status = TESS_OK;
    const imager_stages no_stages = {.comm = run->job.comm};
    const visset_request request = {.psf = true};
    TESS_TRY(
        visset_create(&run->job, &channel->data, false, &no_stages, &channel->set));
    if (channel->set.over && !channel->set.spool && !channel->data.in_memory)
        TESS_FAIL(TESS_ERR_RESOURCE,
                  "cleaning channels together cannot take passes over data");
    status = visset_image(&channel->set, &request, &no_stages, channel->made);
    visset_leave(&channel->set);
    TESS_TRY(status);
    channel->freq_hz = visset_freq_hz(&channel->set);
cleanup:
    tess_density_destroy(channel->density);
    channel->density = NULL;
    return status;
}

/* What is found of the images. Collective. */
static tess_status look_at_images(const joined *all, int c)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    joined_channel *channel = &all->channel[c];
    image_take_variances(run, channel->variance, channel->made);
    TESS_TRY(image_beam_find(&run->output, channel->made + run->num_pol,
                             image_num_psf(run),
                             &run->outputs.extent[output_of(all, c)], channel->found));
    for (int k = 1; k < run->num_pol; ++k)
        channel->found[k] = channel->found[0];
cleanup:
    return status;
}

/* The images of a channel, if it has data. Collective. */
static tess_status begin_channel(joined *all, int c)
{
    tess_status status = TESS_OK;
    joined_channel *channel = &all->channel[c];
    channel->has_data = all->run->outputs.extent[output_of(all, c)].num_vis > 0;
    if (!channel->has_data) return TESS_OK;
    TESS_TRY(weigh(all->run, channel, output_of(all, c)));
    TESS_TRY(make_images(all->run, channel));
    TESS_TRY(look_at_images(all, c));
cleanup:
    return status;
}

/* Once the last interval's channels have copies, nothing needs all samples. */
static void give_up_all(image_run *run, int64_t interval)
{
    if (interval < run->outputs.num_intervals - 1) return;
    tess_samples_free(&run->all);
    tess_free(run->row_time);
    run->row_time = NULL;
}

/* What major cycles want to know of a channel. */
static majors_channel cleaned_channel(const joined *all, int c)
{
    joined_channel *channel = &all->channel[c];
    return (majors_channel){.output = output_of(all, c),
                            .has_data = channel->has_data,
                            .set = channel->set.job ? &channel->set : NULL,
                            .made = channel->made,
                            .product = channel->product,
                            .found = channel->found,
                            .freq_hz = channel->freq_hz};
}

/* Collective. */
static tess_status clean(joined *all)
{
    tess_status status = TESS_OK;
    image_run *run = all->run;
    for (int c = 0; c < all->num_channels; ++c)
        all->cleaned[c] = cleaned_channel(all, c);
    if (run->opts->checkpoint.folder)
        imager_checkpoint_keep(&run->checkpoint, &run->job);
    status = majors_clean(run, all->cleaned, all->num_channels);
    run->job.keeper = NULL;
    return status;
}

/* The images of an interval without data. Collective. */
static tess_status make_blank(joined *all)
{
    tess_status status = TESS_OK;
    for (int c = 0; c < all->num_channels; ++c)
        TESS_TRY(image_empty_products(all->run, all->channel[c].product));
cleanup:
    return status;
}

/* How the images of the first channel with data were cleaned: all were together. */
static const struct imager_found *first_found(const joined *all)
{
    int c = 0;
    while (c < all->num_channels - 1 && !all->channel[c].has_data)
        ++c;
    return all->channel[c].found;
}

/* Files of all channels and of their mean. Collective. */
static tess_status write_all(joined *all, channel_mean *mean)
{
    tess_status status = TESS_OK;
    image_run *run = all->run;
    struct imager_found found[TESS_MAX_POL];
    const int64_t first = output_of(all, 0), end = first + all->num_channels;
    TESS_TRY(channel_mean_start(run, mean));
    TESS_TRY(image_cubes_open(&run->means, first, end));
    for (int c = 0; c < all->num_channels; ++c) {
        const joined_channel *channel = &all->channel[c];
        const imager_extent *extent = &run->outputs.extent[output_of(all, c)];
        TESS_TRY(image_files_write(&run->output, all->interval, c, channel->product,
                                   extent, channel->found));
        image_files_log(&run->output, all->interval, c);
        channel_mean_add(run, channel->product, mean);
        imager_extent_join(&mean->extent, extent);
    }
    TESS_TRY(image_cubes_close(&run->means, first, end));
    memcpy(found, first_found(all), (size_t)run->num_pol * sizeof *found);
    TESS_TRY(channel_mean_finish(run, mean, found));
    if (found[0].majors > 0)
        TESS_TRY(spectral_maps_make(run, all->cleaned, all->num_channels, found,
                                    &run->means));
    TESS_TRY(channel_mean_write(run, all->interval, mean, found));
cleanup:
    spectral_maps_free(&run->means);
    return status;
}

tess_status image_joined(image_run *run, int64_t interval, channel_mean *mean)
{
    tess_status status = TESS_OK;
    joined all = {.run = run,
                  .interval = interval,
                  .num_channels = (int)run->outputs.num_channels};
    bool any = false;
    TESS_TRY(tess_comm_agree(run->comm, allocate(&all)));
    TESS_TRY(image_share_density(run, interval));
    for (int c = 0; c < all.num_channels; ++c) {
        TESS_TRY(begin_channel(&all, c));
        any = any || all.channel[c].has_data;
    }
    give_up_all(run, interval);
    TESS_TRY(any ? clean(&all) : make_blank(&all));
    TESS_TRY(write_all(&all, mean));
cleanup:
    free_all(&all);
    return status;
}
