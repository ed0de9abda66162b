/* Cleans all channels of an interval together. Their visibility sets are made one after
 * the other, by all ranks or by teams, and share one plan; each has the job while its
 * images are made. */
#include "channel_group.h"

#include <string.h>

#include "channel_rounds.h"
#include "image_cubes.h"
#include "image_output.h"
#include "image_primary_beam.h"
#include "imager_teams_rows.h"
#include "majors.h"
#include "spectral_maps.h"
#include "tess_log.h"
#include "tess_mem.h"

/* A channel's samples, the images that are made of them, and those that are written. */
typedef struct joined_channel {
    sample_sets data;
    bool has_data;
    double variance[2 * TESS_MAX_POL];
    double freq_hz;        /* mean by weight */
    tess_density *density; /* applied as samples go to scratch, while its set is made */
    visset set;            /* set of this rank's team; zeros: it is another team's */
    imager_product made[TESS_MAX_IMAGES], product[TESS_MAX_IMAGES];
    struct imager_found found[TESS_MAX_POL];
} joined_channel;

typedef struct joined {
    image_run *run;
    int64_t interval;
    int num_channels;
    joined_channel *channel; /* [num_channels] */
    majors_channel *cleaned; /* [num_channels] */
    channel_rounds rounds;
} joined;

/* What all ranks learn of a channel from those that have made its images. */
typedef struct joined_facts {
    double freq_hz, sum_weights[TESS_MAX_IMAGES], effective_vis[TESS_MAX_IMAGES];
} joined_facts;

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
    TESS_TRY(channel_rounds_create(all->run, all->interval, &all->rounds));
    for (int k = 0; k < all->rounds.num; ++k)
        all->channel[all->rounds.channel[k]].has_data = true;
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
        tess_density_destroy(channel->density);
    }
    tess_free(all->channel);
    tess_free(all->cleaned);
    channel_rounds_free(&all->rounds);
}

/* ---- dirty images ---- */

static joined_channel *channel_at(const joined *all, int first, int team)
{
    return &all->channel[all->rounds.channel[first + team]];
}

/* Makes the set of a channel, its dirty images and PSFs. Collective in the team. */
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

/* Sends the samples of a round's channels to the teams that make their images.
 * Collective. */
static tess_status deal(joined *all, int first)
{
    tess_status status = TESS_OK;
    image_run *run = all->run;
    const int size = channel_rounds_size(&all->rounds, first);
    const int own = channel_rounds_own(&all->rounds, first);
    tess_samples mine = {0}, *of_team = tess_alloc_zero(size, sizeof *of_team);
    double mark = tess_time_now();
    TESS_TRY(tess_comm_agree(run->comm, of_team ? TESS_OK : TESS_ERR_ALLOC));
    for (int g = 0; g < size; ++g) {
        sample_sets *data = &channel_at(all, first, g)->data;
        of_team[g] = data->cached;
        data->cached = (tess_samples){0};
    }
    TESS_TRY(imager_teams_send(&run->teams, size, of_team, &mine));
    if (own >= 0) {
        all->channel[own].data.cached = mine;
        mine = (tess_samples){0};
    }
    tess_profile_lap(run->profile, TESS_STAGE_EXCHANGE, &mark);
cleanup:
    for (int g = 0; of_team && g < size; ++g)
        tess_samples_free(&of_team[g]);
    tess_free(of_team);
    tess_samples_free(&mine);
    return status;
}

/* Sends the rows of the images that each team has made to all ranks. Collective. */
static tess_status spread_images(joined *all, int first)
{
    tess_status status = TESS_OK;
    image_run *run = all->run;
    const int size = channel_rounds_size(&all->rounds, first);
    const int own = channel_rounds_own(&all->rounds, first);
    for (int k = 0; k < run->job.num_images; ++k) {
        imager_rows mine = {0};
        if (own >= 0) mine = all->channel[own].made[k].rows;
        for (int g = 0; g < size; ++g) {
            all->rounds.rows[g] = &channel_at(all, first, g)->made[k].rows;
            *all->rounds.rows[g] = (imager_rows){0};
        }
        status = imager_teams_spread(&run->teams, &run->job, size,
                                     own >= 0 ? &mine : NULL, all->rounds.rows);
        imager_rows_free(&mine);
        TESS_TRY(status);
    }
cleanup:
    return status;
}

static joined_facts facts_of(const joined_channel *channel)
{
    joined_facts facts = {.freq_hz = channel->freq_hz};
    for (int k = 0; k < TESS_MAX_IMAGES; ++k) {
        facts.sum_weights[k] = channel->made[k].sum_weights;
        facts.effective_vis[k] = channel->made[k].effective_vis;
    }
    return facts;
}

/* Sends what teams know of their channels to all ranks. Collective. */
static tess_status share_facts(joined *all, int first)
{
    tess_status status = TESS_OK;
    const image_run *run = all->run;
    const int own = channel_rounds_own(&all->rounds, first);
    joined_facts mine = {0};
    joined_facts *facts = tess_alloc(tess_comm_size(run->comm), sizeof *facts);
    if (own >= 0) mine = facts_of(&all->channel[own]);
    TESS_TRY(tess_comm_agree(run->comm, facts ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_allgather(run->comm, &mine, sizeof mine, facts));
    for (int g = 0; g < channel_rounds_size(&all->rounds, first); ++g) {
        joined_channel *channel = channel_at(all, first, g);
        const joined_facts *of_team = &facts[g * run->teams.members];
        channel->freq_hz = of_team->freq_hz;
        for (int k = 0; k < TESS_MAX_IMAGES; ++k) {
            channel->made[k].sum_weights = of_team->sum_weights[k];
            channel->made[k].effective_vis = of_team->effective_vis[k];
        }
    }
cleanup:
    tess_free(facts);
    return status;
}

/* Makes the dirty images and PSFs of a round's channels. Collective. */
static tess_status begin_round(joined *all, int first)
{
    tess_status status = TESS_OK;
    image_run *run = all->run;
    const bool shared = image_shares_channels(run);
    const int size = channel_rounds_size(&all->rounds, first);
    const int own = channel_rounds_own(&all->rounds, first);
    double mark;
    for (int g = 0; g < size; ++g) {
        const int c = all->rounds.channel[first + g];
        joined_channel *channel = &all->channel[c];
        TESS_TRY(image_weighted_data(run, output_of(all, c), &channel->data,
                                     channel->variance, &channel->density));
    }
    if (shared) TESS_TRY(deal(all, first));
    if (own >= 0) status = make_images(run, &all->channel[own]);
    TESS_TRY(tess_comm_agree(run->comm, status));
    mark = tess_time_now();
    if (shared) {
        TESS_TRY(spread_images(all, first));
        TESS_TRY(share_facts(all, first));
    }
    tess_profile_lap(run->profile, TESS_STAGE_REDUCE, &mark);
    for (int g = 0; g < size; ++g) {
        const int c = all->rounds.channel[first + g];
        joined_channel *channel = &all->channel[c];
        TESS_TRY(image_measure_made(run, output_of(all, c), channel->variance,
                                    channel->made, channel->found));
    }
cleanup:
    return status;
}

/* ---- cleaning, and files ---- */

/* Frees all samples once the last interval's channels have copies. */
static void give_up_all(image_run *run, int64_t interval)
{
    if (interval < run->outputs.num_intervals - 1) return;
    tess_samples_free(&run->all);
    tess_free(run->row_time);
    run->row_time = NULL;
}

/* Describes a channel for major cycles. */
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
    status = majors_clean(run, all->cleaned, all->num_channels,
                          image_shares_channels(run) ? &all->rounds : NULL);
    run->job.keeper = NULL;
    return status;
}

/* Makes the images of an interval without data. Collective. */
static tess_status make_blank(joined *all)
{
    tess_status status = TESS_OK;
    for (int c = 0; c < all->num_channels; ++c)
        TESS_TRY(image_empty_products(all->run, all->channel[c].product));
cleanup:
    return status;
}

/* How the images of the first channel with data were cleaned: all were cleaned
 * together. */
static const struct imager_found *first_found(const joined *all)
{
    int c = 0;
    while (c < all->num_channels - 1 && !all->channel[c].has_data)
        ++c;
    return all->channel[c].found;
}

/* Writes the files of all channels and of their mean. Collective. */
static tess_status write_all(joined *all, channel_mean *mean)
{
    tess_status status = TESS_OK;
    image_run *run = all->run;
    struct imager_found found[TESS_MAX_POL];
    const int64_t first = output_of(all, 0), end = first + all->num_channels;
    TESS_TRY(channel_mean_start(run, mean));
    TESS_TRY(image_cubes_open(&run->means, first, end));
    for (int c = 0; c < all->num_channels; ++c) {
        joined_channel *channel = &all->channel[c];
        const imager_extent *extent = &run->outputs.extent[output_of(all, c)];
        TESS_TRY(image_primary_beam_make(run, output_of(all, c), channel->product));
        TESS_TRY(image_files_write(&run->output, all->interval, c, channel->product,
                                   extent, channel->found));
        image_files_log(&run->output, all->interval, c);
        channel_mean_add(run, channel->product, mean);
        imager_extent_join(&mean->extent, extent);
    }
    TESS_TRY(image_cubes_close(&run->means, first, end));
    memcpy(found, first_found(all), (size_t)run->num_pol * sizeof *found);
    TESS_TRY(channel_mean_finish(run, all->interval, mean, found));
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
    TESS_TRY(tess_comm_agree(run->comm, allocate(&all)));
    TESS_TRY(image_share_density(run, interval));
    for (int first = 0; first < all.rounds.num; first += all.rounds.at_once)
        TESS_TRY(begin_round(&all, first));
    give_up_all(run, interval);
    TESS_TRY(all.rounds.num > 0 ? clean(&all) : make_blank(&all));
    TESS_TRY(write_all(&all, mean));
cleanup:
    free_all(&all);
    return status;
}
