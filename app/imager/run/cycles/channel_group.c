/* The channels of a group, and the rounds in which their images are made. */
#include "channel_group.h"

#include "image_backlog.h"
#include "image_output.h"
#include "imager_teams.h"
#include "tess_mem.h"

/* Channels with data in their own order: the ranks of the group make them one by one.
 */
static int in_order(const channel_group *group)
{
    int count = 0;
    for (int c = 0; c < group->num_channels; ++c)
        if (group->channel[c].has_data) group->order[count++] = c;
    return count;
}

tess_status channel_group_create(image_run *run, int64_t first_output, int num_channels,
                                 channel_group *group)
{
    tess_status status = TESS_OK;
    const output_table *outputs = &run->outputs;
    const bool shared = image_shares_channels(run);
    *group = (channel_group){.run = run,
                             .first_output = first_output,
                             .at_once = shared ? run->teams.num : 1};
    group->channel = tess_alloc_zero(num_channels, sizeof *group->channel);
    group->order = tess_alloc(num_channels, sizeof *group->order);
    group->rows = tess_alloc_zero(group->at_once, sizeof *group->rows);
    if (!group->channel || !group->order || !group->rows)
        TESS_FAIL(TESS_ERR_ALLOC, "a group of %d channels", num_channels);
    group->num_channels = num_channels;
    for (int c = 0; c < num_channels; ++c) {
        group->channel[c].output = first_output + c;
        group->channel[c].has_data = outputs->extent[first_output + c].num_vis > 0;
    }
    group->num_with_data =
        shared ? imager_teams_order(outputs, first_output, num_channels, group->order)
               : in_order(group);
cleanup:
    return status;
}

static void free_images(imager_product *product)
{
    for (int k = 0; k < TESS_MAX_IMAGES; ++k)
        tess_rows_free(&product[k].rows);
}

void channel_group_free_density(const channel_group *group, group_channel *channel)
{
    image_bookmark_forget(&group->run->checkpoint.bookmark, BOOKMARK_DENSITY);
    tess_density_destroy(channel->density);
    channel->density = NULL;
}

void channel_group_free_sources(channel_group *group)
{
    for (int c = 0; c < group->num_channels; ++c) {
        group_channel *channel = &group->channel[c];
        free_images(channel->made);
        visset_free(&channel->set);
        channel_group_free_density(group, channel);
        image_data_free(&channel->data);
    }
}

void channel_group_free(channel_group *group)
{
    if (!group->run) return;
    channel_group_free_sources(group);
    for (int c = 0; c < group->num_channels; ++c)
        image_backlog_keep_products(group->run->output.backlog,
                                    group->channel[c].product, TESS_MAX_IMAGES);
    tess_free(group->channel);
    tess_free(group->order);
    tess_free(group->rows);
    *group = (channel_group){0};
}

group_channel *channel_group_first(const channel_group *group)
{
    int c = 0;
    while (c < group->num_channels - 1 && !group->channel[c].has_data)
        ++c;
    return &group->channel[c];
}

int channel_group_size(const channel_group *group, int first)
{
    const int left = group->num_with_data - first;
    return left < group->at_once ? left : group->at_once;
}

group_channel *channel_group_at(const channel_group *group, int first, int team)
{
    return &group->channel[group->order[first + team]];
}

group_channel *channel_group_own(const channel_group *group, int first)
{
    const int own = group->at_once > 1 ? group->run->teams.own : 0;
    return own < channel_group_size(group, first) ? channel_group_at(group, first, own)
                                                  : NULL;
}

imager_product *channel_group_response(const image_run *run, group_channel *channel)
{
    if (!image_has_response(run->opts)) return NULL;
    return channel->product + image_kinds_place(&run->output.kinds, IMAGE_PRIMARY_BEAM);
}
