/* Forms the teams of a run, once its job is planned. */
#include "image_teams.h"

#include <math.h>

#include "device_share.h"
#include "image_names.h"
#include "image_place.h"
#include "imager_estimate.h"
#include "imager_targets.h"
#include "imager_thread_teams.h"
#include "imager_window.h"
#include "majors.h"
#include "run_parted.h"
#include "run_samples.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"

/* Counts the memory that cleaning keeps while images are made, and refuses too much.
 * Collective. */
static tess_status count_cleaning(image_run *run)
{
    tess_status status = TESS_OK;
    imager_job *job = &run->job;
    if (!image_is_cleaned(run->opts)) return TESS_OK;
    job->memory.clean_bytes = majors_bytes(run);
    double lacking = job->memory.clean_bytes - (double)job->memory.rank_bytes;
    TESS_TRY(tess_comm_allreduce_f64(run->comm, &lacking, 1, TESS_MAX));
    if (lacking > 0)
        TESS_FAIL(
            TESS_ERR_ALLOC,
            "cleaning needs at least %s a rank, which may use %s; use more ranks, "
            "more --memory or a smaller --size",
            tess_mem_text((double)job->memory.rank_bytes + lacking),
            tess_mem_text((double)job->memory.rank_bytes));
cleanup:
    return status;
}

/* What a rank's GPU holds of images that are cleaned if it makes whole channels: its
 * part of those that are cleaned together and of their means, or a channel that it
 * cleans alone. */
static tess_status cleaned_bytes(const image_run *run, double *bytes)
{
    tess_status status = TESS_OK;
    image_run alone = *run;
    tess_comm *self = NULL;
    if (!image_joins_channels(run->opts)) {
        TESS_TRY(tess_comm_self(&self));
        alone.comm = self;
    }
    image_place_expect(&alone);
    *bytes = alone.job.memory.device_bytes;
    if (!self) *bytes += alone.job.memory.device_mean_bytes;
cleanup:
    tess_comm_free(self);
    return status;
}

/* Whether every GPU has room for the images and planes of a whole channel, beside what
 * it holds of those that are cleaned. Collective. */
static tess_status find_device_room(const image_run *run, bool *has_room)
{
    tess_status status = TESS_OK;
    const imager_job *job = &run->job;
    const double value = job->plan->is_double ? 16 : 8;
    double cleaned = 0;
    int64_t here;
    *has_room = true;
    if (!job->backend->room || run->outputs.num == 1) return TESS_OK;
    status = cleaned_bytes(run, &cleaned);
    TESS_TRY(tess_comm_agree(run->comm, status));
    here = cleaned + device_share_bytes(imager_target_pixels(job),
                                        job->num_images + job->model.num, value, 1) <
           (double)job->backend->room();
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &here, 1, TESS_MIN));
    *has_room = here != 0;
cleanup:
    return status;
}

/* Why all ranks work together on every channel that is cleaned with others, or NULL. A
 * checkpoint keeps the sets of these channels for all ranks. */
static const char *joined_together(const image_run *run, bool kept, bool has_room)
{
    if (run->opts->checkpoint.folder)
        return "channels that are cleaned together have a checkpoint";
    if (!has_room) return "a GPU has no room for the images of a channel";
    return kept ? NULL
                : "data of channels that are cleaned together are streamed or on "
                  "scratch";
}

/* Why all ranks work together on every output, or NULL. */
static const char *why_together(const image_run *run, bool kept, bool has_room)
{
    if (run->outputs.num == 1) return "there is one output";
    if (run->whole.patches) return "an output has several images";
    if (run->checkpoint.sums_wait) return "the checkpoint has part of an output";
    if (image_joins_channels(run->opts)) return joined_together(run, kept, has_room);
    if (run->opts->weights.shared_density) return "all channels share their density";
    if (!kept && !run->holds.parts && image_subtracts_early(run))
        return "a model of other pixels is subtracted from data that are streamed";
    return NULL;
}

static imager_teams_need teams_need(const image_run *run, bool kept, bool has_room)
{
    const tess_samples like =
        run->mode == DATA_CACHED ? run->all : tess_source_samples(run->source);
    return (imager_teams_need){
        .outputs = &run->outputs,
        .first_output = image_outputs_done(run),
        .vis_bytes = (double)tess_samples_vis_bytes(&like),
        .row_bytes = IMAGE_ROW_BYTES * (double)run->outputs.num_channels *
                     (double)run->info->num_rows / (double)run->info->num_vis,
        .kept = kept,
        .dealt = run->holds.parts,
        .together = why_together(run, kept, has_room),
        .cleaned = image_is_cleaned(run->opts),
        .joined = image_joins_channels(run->opts),
        .has_room = has_room,
        .checkpoints = run->opts->checkpoint.folder != NULL};
}

/* Tells that no GPU makes whole channels because one lacks room, if each would make
 * them otherwise. `has_room` is the same on all ranks. Collective. */
static tess_status tell_no_room(const image_run *run, bool kept, bool has_room)
{
    tess_status status = TESS_OK;
    int num = 1;
    if (has_room) return TESS_OK;
    const imager_teams_need roomy = teams_need(run, kept, true);
    status = imager_teams_choose(&run->job, &roomy, &num);
    TESS_TRY(tess_comm_agree(run->comm, status));
    if (num > 1)
        tess_log_info(
            "all GPUs work on each channel: one has no room for the images of "
            "a whole channel");
cleanup:
    return status;
}

/* Counts the memory that means over channels and cleaning take beside the images that
 * are made. Collective. */
static tess_status count_images(image_run *run)
{
    tess_status status = TESS_OK;
    const image_kinds kinds =
        image_kinds_of(run->opts, run->num_pol, image_num_psf(run));
    run->output.kinds = run->means.kinds = kinds;
    if (run->outputs.num_channels > 1)
        run->job.memory.mean_bytes = (double)sizeof(double) * image_kinds_all(&kinds) *
                                     (double)run->whole.geom.nx *
                                     (double)run->whole.geom.ny /
                                     tess_comm_size(run->comm);
    TESS_TRY(count_cleaning(run));
cleanup:
    return status;
}

/* Bytes of an output's images on this rank, in the precision of the plan, and once more
 * where files have another precision. */
static double output_bytes(const image_run *run)
{
    const double rows = (double)run->whole.geom.nx * (double)run->whole.geom.ny /
                        tess_comm_size(run->comm);
    const double value = run->job.plan->is_double ? 8 : 4;
    const double file =
        run->opts->gridding.accuracy < TESS_SINGLE_FILE_ACCURACY ? 8 : 4;
    image_corrected list[IMAGE_MOST_CORRECTED];
    const double corrected =
        run->num_pol * image_corrected_list(run->opts, list) * file;
    const double images =
        image_kinds_all(&run->output.kinds) * (file == value ? value : value + file);
    return rows * (images + corrected);
}

/* An output is written while the next one is made, if its images take an eighth of
 * every rank's memory at most. Runs with checkpoints count an output as made when it is
 * on the disk, and sets that are cleaned together are written one after the other.
 * With a device, whose images leave the host's memory to files, threads write several
 * files of an output at a time even so, and those of an only output, whose samples have
 * been freed. A plan counts the files that its run will write. Collective. */
static tess_status choose_backlog(image_run *run)
{
    tess_status status = TESS_OK;
    const double bytes = output_bytes(run);
    const bool overlaps =
        !image_joins_channels(run->opts) && run->outputs.num > run->teams.num;
    const bool has_device = run->job.backend->start &&
                            (run->teams.num == 1 || image_joins_channels(run->opts));
    const bool is_only = run->outputs.num == 1;
    int64_t fits = bytes <= (double)run->job.memory.rank_bytes / 8;
    if (run->opts->checkpoint.folder || (!overlaps && !has_device && !is_only))
        return TESS_OK;
    TESS_TRY(tess_comm_allreduce_i64(run->teams.all, &fits, 1, TESS_MIN));
    run->output.together = fits != 0;
    if (fits && overlaps) run->job.memory.backlog_bytes = bytes;
cleanup:
    return status;
}

/* Streams data if a team cannot keep the samples of an output. Collective. */
static tess_status check_team_memory(image_run *run, int num_teams)
{
    tess_status status = TESS_OK;
    bool fits = true;
    if (run->mode == DATA_PER_OUTPUT)
        TESS_TRY(
            image_fits_all(run, num_teams * image_largest_output_bytes(run), &fits));
    if (!fits) {
        run->mode = DATA_STREAMED;
        tess_log_info("data are streamed: a team cannot keep the samples of an output");
    }
    /* what is on scratch is of all ranks' slices, and a team reads its own */
    if (run->mode == DATA_STREAMED && run->holds.parted) image_part_give_up(run);
cleanup:
    return status;
}

/* Lets teams sum up their own images for the means over channels, so that the images
 * are exchanged once and not in every round, if every rank has an eighth of its memory
 * for these sums. Their order is that of teams: not with --reproducible; and
 * checkpoints hold the sums over all teams. Collective. */
static tess_status choose_sums(image_run *run)
{
    tess_status status = TESS_OK;
    const double bytes = run->job.memory.mean_bytes * tess_comm_size(run->teams.all) /
                         run->teams.members;
    int64_t fits = bytes <= (double)run->job.memory.rank_bytes / 8 &&
                   !run->opts->layout.reproducible && !run->opts->checkpoint.folder &&
                   !image_joins_channels(run->opts) && run->outputs.num_channels > 1;
    TESS_TRY(tess_comm_allreduce_i64(run->teams.all, &fits, 1, TESS_MIN));
    run->teams.sums_means = fits != 0;
    if (fits) run->job.memory.mean_bytes += bytes;
cleanup:
    return status;
}

/* Why all threads of a rank work together on every output whatever the options, or
 * NULL.
 */
static const char *threads_held(const image_run *run, bool kept)
{
    if (run->outputs.num <= run->teams.num) return "each team has one output";
    if (run->job.layout->threads == 1) return "each rank has one thread";
    if (tess_comm_size(run->job.comm) > 1) return "a team has several ranks";
    if (imager_job_num_targets(&run->job) > 1) return "an output has several images";
    return kept ? NULL : "data are streamed";
}

/* Why all threads of a rank work together on every output, or NULL. */
static const char *threads_together(const image_run *run, bool kept)
{
    const tess_image_opts *opts = run->opts;
    if (image_joins_channels(opts)) return "channels are cleaned together";
    if (run->whole.patches) return "an output has several images";
    if (run->checkpoint.sums_wait || run->checkpoint.cycle_waits)
        return "the checkpoint has part of an output";
    if (opts->beside.dump_stages) return "stages are written";
    if (run->job.plan->projection) return "w-projection shares its work among threads";
    return threads_held(run, kept);
}

/* Chooses how many outputs a rank makes at a time. Samples of some outputs at a time
 * are in memory, too, where those of all are not. Collective. */
static tess_status choose_thread_teams(image_run *run, const imager_teams_need *need)
{
    tess_status status = TESS_OK;
    imager_thread_teams *teams = &run->teams.of_threads;
    bool kept = true;
    int64_t num;
    if (!need->kept)
        TESS_TRY(image_fits_all(run, image_largest_output_bytes(run), &kept));
    if (run->teams.num > 1) kept = need->kept || run->holds.parts;
    status = imager_thread_teams_choose(&run->job, need, run->teams.num,
                                        run->job.memory.backlog_bytes,
                                        threads_together(run, kept), teams);
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    num = teams->num;
    TESS_TRY(tess_comm_allreduce_i64(run->teams.all, &num, 1, TESS_MIN));
    teams->num = (int)num;
    teams->threads = run->job.layout->threads / teams->num;
    if (num > 1) image_bookmark_free(&run->checkpoint.bookmark);
    if (num > 1)
        tess_log_info(
            "%lld sets of images are made at a time on a rank, by teams of %d "
            "thread%s%s",
            (long long)num, teams->threads, teams->threads == 1 ? "" : "s",
            run->job.backend->lanes ? ", each with a lane of the GPU" : "");
cleanup:
    return status;
}

/* Whether outputs can be written and added to means as they are made, and not in rounds
 * of all ranks: teams add them up by themselves, or there is one team of ranks. Lists
 * of sources and primary beams are joined by all ranks, checkpoints are written between
 * rounds, and rows on a device are written by one thread. */
static bool ends_alone(const image_run *run, bool kept)
{
    const tess_image_opts *opts = run->opts;
    const imager_teams *teams = &run->teams;
    const bool several = teams->num > 1 || teams->of_threads.num > 1;
    const bool sums =
        teams->num == 1 || teams->sums_means || run->outputs.num_channels == 1;
    return several && sums && kept && !run->job.backend->start && !run->whole.patches &&
           !image_joins_channels(opts) && !opts->checkpoint.folder &&
           !opts->beside.primary_beam.model && !opts->clean.save_sources;
}

/* Turns of ranks take no longer than this together [s], because a rank that fails says
 * so when the round ends; and there are at most so many, because a round has a table of
 * its outputs. Of several intervals each has so many at least. */
static const double ROUND_S = 60;
enum { MOST_TURNS = 16, LEAST_TURNS = 4 };

/* Share of a rank's memory that samples of later turns may take, with the messages in
 * which they come. */
static const double DEALT_SHARE = 1.0 / 8;

/* Bytes of the largest output's samples, which a rank of several teams is sent, and of
 * the message. */
static double sent_bytes(const image_run *run, const imager_teams_need *need)
{
    if (run->teams.num == 1) return 0;
    return 2 * (need->vis_bytes + need->row_bytes) *
           (double)output_table_most_vis(&run->outputs) / run->teams.members;
}

/* Turns of teams of ranks that time and memory allow. */
static double most_turns(const image_run *run, const imager_teams_need *need)
{
    const imager_teams *teams = &run->teams;
    const double seconds =
        imager_estimate_output(&run->job, teams->members,
                               output_table_most_vis(&run->outputs), need->vis_bytes);
    const double room = DEALT_SHARE * (double)run->job.memory.rank_bytes;
    const double bytes = imager_teams_at_once(teams) * sent_bytes(run, need);
    return 1 + fmin(ROUND_S / seconds, room / bytes);
}

/* Lets each team make several outputs in a round, so that no team waits for the slowest
 * one behind each output. Teams of ranks are sent the samples of all of these when the
 * round begins. A round ends with an interval, so intervals need some turns each.
 * Collective. */
static tess_status choose_turns(image_run *run, const imager_teams_need *need)
{
    tess_status status = TESS_OK;
    imager_teams *teams = &run->teams;
    const int at_once = imager_teams_at_once(teams);
    const int64_t each = (int64_t)teams->num * at_once;
    const int64_t channels = run->outputs.num_channels, num = run->outputs.num;
    const int64_t needed = ((channels > 1 ? channels : num) + each - 1) / each;
    int64_t turns = tess_min_i64(needed, MOST_TURNS);
    if (!ends_alone(run, need->kept)) return TESS_OK;
    if (channels > 1 && channels < num && needed < LEAST_TURNS) return TESS_OK;
    if (teams->num > 1) turns = (int64_t)fmin((double)turns, most_turns(run, need));
    TESS_TRY(tess_comm_allreduce_i64(teams->all, &turns, 1, TESS_MIN));
    if (turns <= 1) return TESS_OK;
    teams->turns = (int)turns;
    run->job.memory.dealt_bytes =
        (double)((turns - 1) * at_once) * sent_bytes(run, need);
    tess_log_detail("a team makes up to %d outputs before all ranks meet",
                    teams->turns);
cleanup:
    return status;
}

/* All ranks work together if the samples of a round, which teams would send and
 * receive, do not fit into memory beside those on scratch. Collective. */
static tess_status keep_parts(image_run *run, int *num)
{
    tess_status status = TESS_OK;
    bool fits = true;
    if (*num == 1 || !run->holds.parts || run->mode != DATA_PER_OUTPUT) return TESS_OK;
    TESS_TRY(image_fits_all(run, 2.0 * *num * image_largest_output_bytes(run), &fits));
    if (!fits) {
        tess_log_info("all ranks work together: the samples of a round of teams do not "
                      "fit into memory");
        *num = 1;
    }
cleanup:
    return status;
}

tess_status image_form_teams(image_run *run, bool kept)
{
    tess_status status = TESS_OK;
    imager_teams_need need;
    bool has_room;
    int num;
    image_place_expect(run);
    TESS_TRY(count_images(run));
    image_place_expect(run); /* with the means */
    TESS_TRY(find_device_room(run, &has_room));
    need = teams_need(run, kept, has_room);
    status = imager_teams_choose(&run->job, &need, &num);
    TESS_TRY(tess_comm_agree(run->comm, status));
    TESS_TRY(keep_parts(run, &num));
    if (num == 1) {
        TESS_TRY(tell_no_room(run, kept, has_room));
        TESS_TRY(choose_backlog(run));
        TESS_TRY(choose_thread_teams(run, &need));
        TESS_TRY(choose_turns(run, &need));
        return TESS_OK;
    }
    TESS_TRY(check_team_memory(run, num));
    TESS_TRY(imager_teams_form(run->comm, num, &run->teams));
    image_bookmark_free(&run->checkpoint.bookmark); /* blocks are dealt anew */
    run->job.comm = run->teams.team;
    if (!need.joined) run->comm = run->output.comm = run->teams.team;
    image_place_expect(run); /* of a team that cleans by itself, whole images */
    run->job.ranks.num_outputs = (run->outputs.num + num - 1) / num;
    run->job.ranks.num_teams = num;
    run->job.ranks.fft_ranks = 0;
    status = imager_job_share(&run->job);
    /* a team that cleans by itself has the images of its output on fewer ranks */
    if (status == TESS_OK && !need.joined) status = count_cleaning(run);
    if (status == TESS_OK && !image_deals_samples(run))
        status = tess_source_deal(run->source, run->job.comm);
    TESS_TRY(tess_comm_agree(run->teams.all, status));
    TESS_TRY(choose_sums(run));
    TESS_TRY(choose_backlog(run));
    TESS_TRY(choose_thread_teams(run, &need));
    TESS_TRY(choose_turns(run, &need));
cleanup:
    return status;
}
