/* Divides channels into rounds, and says which team makes which channel. */
#include "channel_rounds.h"

#include "tess_mem.h"

/* Channels with data in their own order: all ranks make them one by one. */
static int in_order(const output_table *outputs, int64_t first, int num, int *order)
{
    int count = 0;
    for (int c = 0; c < num; ++c)
        if (outputs->extent[first + c].num_vis > 0) order[count++] = c;
    return count;
}

tess_status channel_rounds_create(const image_run *run, int64_t interval,
                                  channel_rounds *rounds)
{
    tess_status status = TESS_OK;
    const output_table *outputs = &run->outputs;
    const int num = (int)outputs->num_channels;
    const int64_t first = interval * num;
    const bool shared = image_shares_channels(run);
    *rounds = (channel_rounds){.run = run, .at_once = shared ? run->teams.num : 1};
    rounds->channel = tess_alloc(num, sizeof *rounds->channel);
    rounds->rows = tess_alloc_zero(rounds->at_once, sizeof *rounds->rows);
    if (!rounds->channel || !rounds->rows)
        TESS_FAIL(TESS_ERR_ALLOC, "rounds of %d channels", num);
    rounds->num = shared ? imager_teams_order(outputs, first, num, rounds->channel)
                         : in_order(outputs, first, num, rounds->channel);
cleanup:
    return status;
}

void channel_rounds_free(channel_rounds *rounds)
{
    tess_free(rounds->channel);
    tess_free(rounds->rows);
    *rounds = (channel_rounds){0};
}

int channel_rounds_size(const channel_rounds *rounds, int first)
{
    const int left = rounds->num - first;
    return left < rounds->at_once ? left : rounds->at_once;
}

int channel_rounds_own(const channel_rounds *rounds, int first)
{
    const int own = rounds->at_once > 1 ? rounds->run->teams.own : 0;
    return own < channel_rounds_size(rounds, first) ? rounds->channel[first + own] : -1;
}
