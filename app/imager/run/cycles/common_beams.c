/* Finds one beam for the channels of an interval that are cleaned one by one
 * (--common-beam): their PSFs are made before the first channel is restored. Cleaned
 * cubes would have to be held or read again otherwise, with the means and pictures that
 * are made of them. */
#include "channel_group.h"
#include "image_beam.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Makes the channels of a round, one by each team; beam[outputs] gets those of this
 * rank's channel if the rank is the first of its team. Collective. */
static tess_status make_round(image_run *run, int64_t first, int64_t end,
                              tess_fits_beam *beam)
{
    tess_status status = TESS_OK;
    const int64_t own = first + run->teams.own;
    tess_fits_beam found = {0};
    channel_group group = {0};
    status = channel_group_create(run, own, own < end, &group);
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    TESS_TRY(group_images_deal(run, &group, first, end));
    if (own < end) status = group_images_beam(&group, &found);
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    if (own < end && tess_comm_rank(run->comm) == 0) beam[own] = found;
cleanup:
    channel_group_free(&group);
    return status;
}

/* Gives all ranks the beams that one rank has of each output, and joins those of each
 * interval. Collective. */
static tess_status join_all(image_run *run, tess_fits_beam *beam)
{
    enum { NUMBERS = sizeof *beam / sizeof(double) };
    tess_status status = TESS_OK;
    const int64_t channels = run->outputs.num_channels;
    TESS_TRY(tess_comm_allreduce_f64(run->teams.all, &beam->major_rad,
                                     NUMBERS * run->outputs.num, TESS_SUM));
    for (int64_t t = 0; t < run->outputs.num_intervals && status == TESS_OK; ++t)
        status = image_beam_join(&run->means, t, beam + t * channels, channels);
    TESS_TRY(tess_comm_agree(run->teams.all, status));
cleanup:
    return status;
}

tess_status common_beams_find(image_run *run)
{
    tess_status status = TESS_OK;
    const output_table *outputs = &run->outputs;
    tess_fits_beam *beam = NULL;
    if (!run->opts->clean.beam.common || outputs->num_channels == 1 ||
        image_joins_channels(run->opts))
        return TESS_OK;
    tess_log_info("--common-beam: the PSFs of all channels are made first");
    run->holds.again = true;
    beam = tess_alloc_zero(outputs->num, sizeof *beam);
    TESS_TRY(tess_comm_agree(run->teams.all, beam ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t first = 0, end; first < outputs->num; first = end) {
        end = first + run->teams.num;
        if (end > outputs->num) end = outputs->num;
        TESS_TRY(make_round(run, first, end, beam));
    }
    TESS_TRY(join_all(run, beam));
cleanup:
    run->holds.again = false;
    tess_free(beam);
    return status;
}
