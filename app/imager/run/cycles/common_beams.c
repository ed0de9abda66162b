/* Finds one beam for the channels of an interval that are cleaned one by one
 * (--common-beam): their PSFs are made before the first channel is restored. Cleaned
 * cubes would have to be held or read again otherwise, with the means and pictures that
 * are made of them. */
#include "channel_group.h"
#include "image_beam.h"
#include "image_output.h"
#include "run_samples.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "thread_teams.h"

/* Outputs that teams make side by side. */
typedef struct beam_round {
    image_run *run;
    thread_teams teams;
    channel_group *group; /* [teams.num] */
} beam_round;

/* Begins the groups of the outputs [first, end): one output by each team. Collective.
 */
static tess_status begin(beam_round *round, int64_t first, int64_t end, int num)
{
    tess_status status = TESS_OK;
    image_run *run = round->run;
    for (int k = 0; k < num && status == TESS_OK; ++k) {
        const int64_t own = first + (int64_t)k * run->teams.num + run->teams.own;
        status = channel_group_create(run, own, own < end, &round->group[k]);
        round->group[k].wants_beam = true;
    }
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    TESS_TRY(group_images_deal(run, round->group, num, first, end));
cleanup:
    return status;
}

/* Makes the outputs [first, end), one by each team; beam[outputs] gets those of this
 * rank's outputs if the rank is the first of its team. Collective. */
static tess_status make_round(beam_round *round, int64_t first, int64_t end,
                              tess_fits_beam *beam)
{
    tess_status status = TESS_OK;
    image_run *run = round->run;
    const int64_t teams = run->teams.num;
    const int num = (int)((end - first + teams - 1) / teams);
    if (round->teams.team) {
        TESS_TRY(image_share_density(run, first / run->outputs.num_channels));
        TESS_TRY(image_hold_outputs(run, first, end));
    }
    TESS_TRY(begin(round, first, end, num));
    status = thread_teams_make(&round->teams,
                               &(team_work){.group = round->group, .num = num});
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    for (int k = 0; k < num; ++k)
        if (round->group[k].num_channels > 0 && tess_comm_rank(run->comm) == 0)
            beam[round->group[k].first_output] = round->group[k].beam;
cleanup:
    for (int k = 0; k < num; ++k)
        channel_group_free(&round->group[k]);
    return status;
}

/* Makes all outputs, interval by interval. Collective. */
static tess_status make_all(image_run *run, tess_fits_beam *beam)
{
    tess_status status = TESS_OK;
    const int64_t channels = run->outputs.num_channels;
    beam_round round = {.run = run};
    status = thread_teams_create(run, &round.teams);
    if (status == TESS_OK) {
        round.group = tess_alloc_zero(round.teams.num, sizeof *round.group);
        if (!round.group) status = TESS_ERR_ALLOC;
    }
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    for (int64_t first = 0, end; first < run->outputs.num; first = end) {
        end = tess_min_i64(first + (int64_t)run->teams.num * round.teams.num,
                           (first / channels + 1) * channels);
        TESS_TRY(make_round(&round, first, end, beam));
    }
cleanup:
    tess_free(round.group);
    thread_teams_free(&round.teams);
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
    TESS_TRY(make_all(run, beam));
    TESS_TRY(join_all(run, beam));
cleanup:
    run->holds.again = false;
    tess_free(beam);
    return status;
}
