/* Checkpoints of `tessera image`. A checkpoint holds the images to which planes have
 * been added, the list of these planes, and the means over channels. If data do not
 * stay in memory, it also holds what has been made of them so far (image_bookmark.c).
 * A run that continues reads, sorts and grids the rest again: only those bricks that
 * the remaining planes need. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "image_bookmark.h"
#include "image_checkpoint.h"
#include "imager_job.h"
#include "imager_product.h"
#include "imager_targets.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_stop.h"
#include "tess_watch.h"

/* The run ends this long before the batch job does [s], because writing images and
 * leaving takes time. */
static const double BATCH_MARGIN_S = 60;
/* The next step may take longer than the longest one so far, by this factor. */
static const double LONGER = 1.5;
/* Assumed rate of writing a bookmark before one has been written [bytes/s of a rank],
 * and the largest share of the run's time that writing bookmarks may take. */
static const double WRITE_BYTES_S = 2e8, COST_SHARE = 0.03;
/* Writing fewer bytes says nothing about the rate of a disk. */
static const double LEAST_MEASURED = 64 << 20;

/* Seconds until the batch job ends, less a margin; infinite when its end is not known.
 */
static double batch_seconds(void)
{
    const char *text = getenv("SLURM_JOB_END_TIME");
    char *rest;
    if (!text || !*text) return INFINITY;
    const double end = strtod(text, &rest);
    if (*rest || !(end > 0)) return INFINITY;
    return end - (double)time(NULL) - BATCH_MARGIN_S;
}

/* ---- starting ---- */

/* Whether a line tells the state of an observation. */
static bool is_of_observation(const tess_image_opts *opts, const char *line)
{
    for (int k = 0; k < opts->num_obs; ++k) {
        const size_t length = strlen(opts->obs[k]);
        if (strncmp(line, opts->obs[k], length) == 0 &&
            strncmp(line + length, ": ", 2) == 0)
            return true;
    }
    return false;
}

/* Names the first line that differs. Once all images are there, the run itself changes
 * observations whose columns it writes. */
static tess_status compare_identity(const tess_image_opts *opts,
                                    const tess_checkpoint_state *state)
{
    tess_status status = TESS_OK;
    const char *folder = opts->checkpoint.folder, *was = state->identity,
               *is = opts->checkpoint.identity;
    const bool may_change =
        (opts->clean.update_model || opts->beside.weights) &&
        state->outputs_done == opts->intervals_out * opts->channels_out;
    while (*was && *is) {
        const int a = (int)strcspn(was, "\n"), b = (int)strcspn(is, "\n");
        const bool is_free =
            may_change && is_of_observation(opts, was) && is_of_observation(opts, is);
        if (!is_free && (a != b || strncmp(was, is, (size_t)a) != 0)) break;
        was += a + (was[a] == '\n');
        is += b + (is[b] == '\n');
    }
    if (*was || *is)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: the checkpoint is of another run: it had '%.*s', now there is "
                  "'%.*s'",
                  folder, (int)strcspn(was, "\n"), was, (int)strcspn(is, "\n"), is);
cleanup:
    return status;
}

static tess_status make_folder(const char *folder)
{
    tess_status status = TESS_OK;
    struct stat found;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        TESS_FAIL(TESS_ERR_IO, "%s: folder of checkpoints cannot be made: %s", folder,
                  strerror(errno));
    if (stat(folder, &found) != 0 || !S_ISDIR(found.st_mode))
        TESS_FAIL(TESS_ERR_IO, "%s: is a file; --checkpoint needs a folder", folder);
    if (access(folder, W_OK | X_OK) != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: folder of checkpoints cannot be written to: %s",
                  folder, strerror(errno));
cleanup:
    return status;
}

static int64_t rows_bytes(const tess_checkpoint_rows *rows)
{
    return rows->num * rows->num_rows * rows->nx * rows->value_bytes;
}

/* The rows of the sums that this rank has. */
static tess_checkpoint_rows sums_rows(const imager_job *job)
{
    tess_checkpoint_rows rows = {.nx = job->geom.nx,
                                 .num = job->num_images,
                                 .value_bytes = job->plan->is_double ? sizeof(double)
                                                                     : sizeof(float)};
    tess_planes_rows(job->planes, &rows.row_first, &rows.num_rows);
    return rows;
}

/* Brings this rank's rows of the sums into host memory. After a failure the caller
 * frees copy[]. */
static tess_status fetch_sums(const imager_job *job, const void **sum, void **copy,
                              tess_checkpoint_rows *sums)
{
    tess_status status = TESS_OK;
    *sums = sums_rows(job);
    sums->image = sum;
    for (int k = 0; k < job->num_images; ++k) {
        void *rows;
        TESS_TRY(tess_planes_fetch(job->planes, k, &rows, &copy[k]));
        sum[k] = rows;
    }
cleanup:
    return status;
}

static int64_t count_done(const tess_checkpoint_state *state)
{
    int64_t count = 0;
    for (int64_t k = 0; k < state->num_done; ++k)
        count += state->done[k] == '1';
    return count;
}

/* Notes how much has been written, and how long it took. */
static void note_written(image_checkpoint *checkpoint, int64_t bytes, double seconds)
{
    if (seconds > checkpoint->time.write_s) checkpoint->time.write_s = seconds;
    if ((double)bytes > LEAST_MEASURED)
        checkpoint->time.bytes_s = (double)bytes / seconds;
    if (bytes == 0) return;
    ++checkpoint->profile->checkpoint.num;
    checkpoint->profile->checkpoint.seconds += seconds;
    checkpoint->profile->checkpoint.bytes += bytes;
}

/* Expected time of writing the bookmark [s]. */
static double bookmark_s(const image_checkpoint *checkpoint)
{
    return image_bookmark_bytes(&checkpoint->bookmark) / checkpoint->time.bytes_s;
}

/* Writes the checkpoint with the bookmark, or without it where the disk has no room for
 * that. Collective. */
static tess_status write_all(image_checkpoint *checkpoint,
                             const tess_checkpoint_rows *sums,
                             const tess_checkpoint_rows *means,
                             tess_checkpoint_own *own, bool *no_room)
{
    tess_status status = TESS_OK;
    const char *folder = checkpoint->opts->folder;
    *no_room = false;
    if (image_bookmark_is_kept(&checkpoint->bookmark)) {
        TESS_TRY(image_bookmark_settle(&checkpoint->bookmark));
        status = tess_checkpoint_write(checkpoint->comm, folder, &checkpoint->state,
                                       sums, means, own, no_room);
        if (status == TESS_OK) checkpoint->bookmark_lacking = false;
        if (status != TESS_ERR_IO || !*no_room) goto cleanup;
        if (tess_comm_rank(checkpoint->comm) == 0 && !checkpoint->bookmark_lacking)
            tess_log_warn("%s: no room for what has been read so far; the checkpoint "
                          "is written without it",
                          folder);
        checkpoint->bookmark_lacking = true;
        tess_error_clear();
        own->bytes = 0;
    }
    status = tess_checkpoint_write(checkpoint->comm, folder, &checkpoint->state, sums,
                                   means, NULL, no_room);
cleanup:
    return status;
}

/* A checkpoint that cannot be written does not end the run: its work would be lost. The
 * exception is the first checkpoint of a run, unless the disk is full: the user has
 * named a wrong folder and learns of it at once. */
static tess_status go_on_without(image_checkpoint *checkpoint, bool no_room)
{
    const bool first = checkpoint->state.generation == 0 && !checkpoint->lacking;
    if (first && !no_room) return TESS_ERR_IO;
    if (tess_comm_rank(checkpoint->comm) == 0 && !checkpoint->lacking)
        tess_log_warn("the run goes on without a new checkpoint: %s",
                      tess_error_message());
    tess_error_clear();
    checkpoint->lacking = checkpoint->unsaved = true;
    return TESS_OK;
}

static void note_saved(image_checkpoint *checkpoint)
{
    if (checkpoint->lacking) tess_log_info("checkpoints can be written again");
    checkpoint->lacking = checkpoint->unsaved = false;
    checkpoint->num_turned = checkpoint->bookmark.turned;
    tess_watch_saved(checkpoint->opts->folder);
}

/* All images of a checkpoint have the same rows on a rank. */
static void note_rows(const tess_rows *rows, tess_checkpoint_rows *means)
{
    means->row_first = rows->row_first;
    means->num_rows = rows->num_rows;
    means->nx = rows->nx;
    means->value_bytes = sizeof(double);
}

/* Adds the images and bytes of the major cycles behind the means. */
static tess_status add_cycle(image_checkpoint *checkpoint, image_cycle *cycle,
                             const void **image, tess_checkpoint_rows *means)
{
    tess_status status = TESS_OK;
    tess_checkpoint_state *state = &checkpoint->state;
    tess_free(state->cycle);
    state->cycle = NULL;
    state->num_cycle = state->cycle_bytes = 0;
    if (checkpoint->save_cycle)
        status = checkpoint->save_cycle(checkpoint->cycle_context, cycle);
    TESS_TRY(tess_comm_agree(checkpoint->comm, status));
    if (!checkpoint->save_cycle) return TESS_OK;
    for (int k = 0; k < cycle->num; ++k) {
        state->mean_weight[means->num] = state->mean_response[means->num] = 0;
        image[means->num++] = cycle->image[k].value;
        note_rows(&cycle->image[k], means);
    }
    state->num_mean = means->num;
    state->num_cycle = cycle->num;
    state->cycle = cycle->bytes;
    state->cycle_bytes = cycle->num_bytes;
    cycle->bytes = NULL;
cleanup:
    return status;
}

static void free_cycle(image_cycle *cycle)
{
    for (int k = 0; k < cycle->num; ++k)
        tess_rows_free(&cycle->image[k]);
    tess_free(cycle->bytes);
}

/* Adds the rows of the means over channels. The caller frees view[], also after a
 * failure. Local. */
static tess_status add_means(image_checkpoint *checkpoint, tess_rows *view,
                             const void **mean, tess_checkpoint_rows *means)
{
    tess_status status = TESS_OK;
    checkpoint->state.num_mean = means->num = checkpoint->num_mean;
    for (int k = 0; k < checkpoint->num_mean; ++k) {
        TESS_TRY(tess_rows_check_whole(&checkpoint->mean[k].rows, "means"));
        TESS_TRY(tess_rows_view(&checkpoint->mean[k].rows, &view[k]));
        mean[k] = view[k].value;
        note_rows(&view[k], means);
        checkpoint->state.mean_weight[k] = checkpoint->mean[k].sum_weights;
        checkpoint->state.mean_response[k] = checkpoint->mean[k].response;
    }
cleanup:
    return status;
}

/* Writes a checkpoint with the present rows of the images; without rows between
 * outputs, and while the images are zero. If it cannot be written, the run goes on
 * without it. Collective. */
static tess_status write_now(image_checkpoint *checkpoint)
{
    tess_status status = TESS_OK;
    const imager_job *job = checkpoint->images.job;
    const int64_t num_done = checkpoint->state.num_done;
    const void *sum[TESS_MAX_IMAGES], *mean[TESS_CHECKPOINT_MEANS];
    void *copy[TESS_MAX_IMAGES] = {NULL};
    tess_rows view[TESS_MAX_IMAGES] = {0};
    image_cycle cycle = {0};
    tess_checkpoint_rows sums = {.image = sum}, means = {.image = mean};
    tess_checkpoint_own own = {image_bookmark_write, &checkpoint->bookmark, 0};
    bool no_room;
    double mark = tess_time_now();
    if (checkpoint->settle) TESS_TRY(checkpoint->settle(checkpoint->settle_context));
    if (count_done(&checkpoint->state) == 0 || checkpoint->save_cycle)
        checkpoint->state.num_done = 0;
    if (checkpoint->state.num_done > 0) status = fetch_sums(job, sum, copy, &sums);
    if (status == TESS_OK) status = add_means(checkpoint, view, mean, &means);
    TESS_TRY(tess_comm_agree(checkpoint->comm, status));
    TESS_TRY(add_cycle(checkpoint, &cycle, mean, &means));
    const double begin = mark;
    status = write_all(checkpoint, &sums, &means, &own, &no_room);
    tess_profile_lap(checkpoint->profile, TESS_STAGE_WRITE, &mark);
    checkpoint->time.written_s = checkpoint->time.looked_s = mark;
    if (status == TESS_ERR_IO) {
        status = go_on_without(checkpoint, no_room);
        goto cleanup;
    }
    TESS_TRY(status);
    note_saved(checkpoint);
    checkpoint->cycle_changed = false;
    note_written(checkpoint, rows_bytes(&sums) + rows_bytes(&means) + own.bytes,
                 mark - begin);
cleanup:
    checkpoint->state.num_done = num_done;
    free_cycle(&cycle);
    for (int k = 0; k < TESS_MAX_IMAGES; ++k) {
        tess_free(copy[k]);
        tess_rows_free(&view[k]);
    }
    return status;
}

/* Finds the checkpoint to continue from, or writes one of nothing: a run that is killed
 * before its next checkpoint then knows its own files. */
static tess_status find(image_checkpoint *checkpoint, const tess_image_opts *image)
{
    tess_status status = TESS_OK;
    const tess_checkpoint_opts *opts = checkpoint->opts;
    const bool overwrite = image->overwrite;
    tess_checkpoint_state *state = &checkpoint->state;
    if (opts->resume || !overwrite)
        TESS_TRY(tess_checkpoint_read(checkpoint->comm, opts->folder, state));
    if (state->generation > 0 && !opts->resume)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: has the checkpoint of a run that did not end; continue it with "
                  "--resume, or begin again with --overwrite",
                  opts->folder);
    if (state->generation > 0) {
        TESS_TRY(compare_identity(image, state));
        if (state->outputs_done > 0 && !image->output)
            TESS_FAIL(
                TESS_ERR_INPUT,
                "%s: the checkpoint counts %lld finished outputs, whose images only "
                "the earlier run had in its memory; begin again with --overwrite, "
                "or name an --output that keeps them",
                opts->folder, (long long)state->outputs_done);
        checkpoint->resumed = true;
        tess_watch_saved(opts->folder);
        tess_checkpoint_tidy(checkpoint->comm, opts->folder, state);
        checkpoint->sums_wait = state->num_done > 0;
        checkpoint->means_wait = state->num_mean > state->num_cycle;
        checkpoint->cycle_waits = state->cycle_bytes > 0;
        tess_log_info("continuing from checkpoint %lld: %lld outputs done",
                      (long long)state->generation, (long long)state->outputs_done);
        TESS_TRY(image_bookmark_open(&checkpoint->bookmark, opts->folder, state));
        return TESS_OK;
    }
    if (opts->resume) tess_log_info("%s: no checkpoint; starting", opts->folder);
    state->identity = tess_strdup(opts->identity);
    TESS_TRY(
        tess_comm_agree(checkpoint->comm, state->identity ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(write_now(checkpoint));
cleanup:
    return status;
}

tess_status image_checkpoint_start(tess_comm *comm, const tess_image_opts *opts,
                                   tess_profile *profile, image_checkpoint *checkpoint)
{
    tess_status status = TESS_OK;
    const double now = tess_time_now();
    *checkpoint = (image_checkpoint){.comm = comm,
                                     .opts = &opts->checkpoint,
                                     .profile = profile,
                                     .time.written_s = now,
                                     .time.looked_s = now,
                                     .time.bytes_s = WRITE_BYTES_S};
    if (!opts->checkpoint.folder) return TESS_OK;
    image_bookmark_start(&checkpoint->bookmark, comm);
    checkpoint->time.deadline_s = opts->checkpoint.max_time_s > 0
                                      ? profile->start_s + opts->checkpoint.max_time_s
                                      : now + batch_seconds();
    if (tess_comm_rank(comm) == 0) {
        status = make_folder(opts->checkpoint.folder);
        if (status == TESS_OK)
            status = tess_checkpoint_check_folder(opts->checkpoint.folder);
    }
    TESS_TRY(tess_comm_agree(comm, status));
    tess_stop_catch(tess_watch_hurry);
    TESS_TRY(find(checkpoint, opts));
cleanup:
    return status;
}

/* ---- the plan ---- */

/* Text of everything that the planes of the sums depend on. A run may go on with
 * another backend unless it is reproducible: results then agree to rounding. */
static char *plan_text(const imager_job *job)
{
    char *text = NULL, targets[32] = "";
    const int num_targets = imager_job_num_targets(job);
    const tess_grid_plan *plan = job->plan;
    const bool exact = job->layout->reproducible;
    if (num_targets > 1)
        snprintf(targets, sizeof targets, " of %d targets", num_targets);
    if (asprintf(&text,
                 "%lld x %lld cells, %d planes from %a by %a, support %d, %s, %d "
                 "images%s%s%s",
                 (long long)plan->nu, (long long)plan->nv, plan->num_planes,
                 plan->w_first_lambda, plan->w_step_lambda, plan->kernel.support,
                 plan->is_double ? "double" : "single", job->num_images, targets,
                 exact ? ", backend " : "", exact ? job->backend->name : "") < 0)
        return NULL;
    return text;
}

tess_status image_checkpoint_plan(image_checkpoint *checkpoint,
                                  const image_checkpoint_makes *images, int num_means)
{
    tess_status status = TESS_OK;
    tess_checkpoint_state *state = &checkpoint->state;
    const imager_job *job = images->job;
    char *plan = plan_text(job);
    checkpoint->images = *images;
    TESS_TRY(tess_comm_agree(checkpoint->comm, plan ? TESS_OK : TESS_ERR_ALLOC));
    if (state->outputs_done > job->ranks.num_outputs ||
        (state->num_mean > state->num_cycle &&
         state->num_mean - state->num_cycle != num_means))
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: the checkpoint has %lld outputs and %lld means, which this run "
                  "has not",
                  checkpoint->opts->folder, (long long)state->outputs_done,
                  (long long)(state->num_mean - state->num_cycle));
    if (checkpoint->resumed && state->plan && *state->plan &&
        strcmp(state->plan, plan) != 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: the checkpoint is of another plan: it had %s, now there are %s",
                  checkpoint->opts->folder, state->plan, plan);
    tess_free(state->plan);
    state->plan = tess_strdup(plan);
    TESS_TRY(tess_comm_agree(checkpoint->comm, state->plan ? TESS_OK : TESS_ERR_ALLOC));
cleanup:
    free(plan); /* from asprintf */
    return status;
}

void image_checkpoint_settles(image_checkpoint *checkpoint,
                              image_checkpoint_settle *settle, void *context)
{
    checkpoint->settle = settle;
    checkpoint->settle_context = context;
}

/* ---- while the work goes on ---- */

enum { GO_ON, SAVE, SAVE_AND_STOP };

/* What the clock of rank 0 and the signals of any rank ask for. Collective. */
static tess_status look(image_checkpoint *checkpoint, bool progressed, int64_t *what)
{
    const double now = tess_time_now(), every = checkpoint->opts->every_s;
    const double marked_s = bookmark_s(checkpoint);
    const double due = fmax(every, marked_s / COST_SHARE);
    const double ahead = LONGER * (checkpoint->time.longest_s +
                                   fmax(checkpoint->time.write_s, marked_s));
    *what = GO_ON;
    if (now - checkpoint->time.looked_s > checkpoint->time.longest_s)
        checkpoint->time.longest_s = now - checkpoint->time.looked_s;
    checkpoint->time.looked_s = now;
    checkpoint->has_worked = checkpoint->has_worked || progressed;
    if (tess_comm_rank(checkpoint->comm) == 0) {
        if (progressed && every > 0 && now - checkpoint->time.written_s >= due)
            *what = SAVE;
        /* a run that is stopped each time before it has advanced would never end */
        if (checkpoint->has_worked && now + ahead > checkpoint->time.deadline_s)
            *what = SAVE_AND_STOP;
    }
    if (tess_stop_told()) *what = SAVE_AND_STOP;
    return tess_comm_allreduce_i64(checkpoint->comm, what, 1, TESS_MAX);
}

/* Whether blocks have been read since the last checkpoint. Sums and means of that
 * checkpoint that have not been taken up cannot be written again, so that nothing is
 * written before they are. */
static bool has_turned(const image_checkpoint *checkpoint)
{
    return !checkpoint->sums_wait && !checkpoint->means_wait &&
           checkpoint->bookmark.turned != checkpoint->num_turned &&
           image_bookmark_is_kept(&checkpoint->bookmark);
}

static tess_status act(image_checkpoint *checkpoint, bool progressed)
{
    tess_status status = TESS_OK;
    int64_t what;
    progressed = progressed || checkpoint->unsaved || has_turned(checkpoint);
    /* the state of major cycles that has not been taken up cannot be written again */
    if (checkpoint->cycle_waits) progressed = false;
    TESS_TRY(look(checkpoint, progressed, &what));
    if (what == GO_ON) return TESS_OK;
    if (progressed) TESS_TRY(write_now(checkpoint));
    checkpoint->num_done = count_done(&checkpoint->state);
    if (what == SAVE) return TESS_OK;
    if (checkpoint->lacking)
        TESS_FAIL(TESS_ERR_IO,
                  "stopped before the end, as asked, but %s could not take a last "
                  "checkpoint; make room there, and --resume continues from the one "
                  "before, if any",
                  checkpoint->opts->folder);
    TESS_FAIL(
        TESS_ERR_STOPPED,
        "stopped before the end, as asked; the same command with --resume continues "
        "from the checkpoint in %s",
        checkpoint->opts->folder);
cleanup:
    return status;
}

static tess_status watch(void *context)
{
    image_checkpoint *checkpoint = context;
    if (checkpoint->save_cycle) return act(checkpoint, checkpoint->cycle_changed);
    return act(checkpoint, count_done(&checkpoint->state) != checkpoint->num_done);
}

tess_status image_checkpoint_look(image_checkpoint *checkpoint, tess_status status)
{
    if (!checkpoint || !checkpoint->opts || !checkpoint->opts->folder) return status;
    TESS_TRY(tess_comm_agree(checkpoint->comm, status));
    TESS_TRY(act(checkpoint, false));
cleanup:
    return status;
}

/* The checkpoint's sums go to the first group of ranks that adds planes; the images of
 * other groups begin with zero. */
static tess_status take_sums(const image_checkpoint *checkpoint, const imager_job *job)
{
    tess_status status = TESS_OK;
    void *copy = NULL;
    tess_checkpoint_rows wanted;
    if (tess_comm_rank(job->comm) >= job->ranks.fft_ranks) return TESS_OK;
    wanted = sums_rows(job);
    for (int k = 0; k < job->num_images; ++k) {
        void *rows;
        TESS_TRY(tess_planes_fetch(job->planes, k, &rows, &copy));
        TESS_TRY(tess_checkpoint_add_sums(checkpoint->opts->folder, &checkpoint->state,
                                          k, &wanted, rows));
        TESS_TRY(tess_planes_put_back(job->planes, k, rows));
        tess_free(copy);
        copy = NULL;
    }
cleanup:
    tess_free(copy);
    return status;
}

/* No plane is done, and which are is noted from here on. */
static tess_status start_list(tess_checkpoint_state *state, int64_t count)
{
    tess_free(state->done);
    state->num_done = 0;
    state->done = tess_alloc(count, 1);
    if (!state->done) return TESS_ERR_ALLOC;
    memset(state->done, '0', (size_t)count);
    state->num_done = count;
    return TESS_OK;
}

tess_status image_checkpoint_begin(image_checkpoint *checkpoint, const imager_job *job)
{
    tess_status status = TESS_OK;
    tess_checkpoint_state *state = &checkpoint->state;
    const int64_t count = (int64_t)job->plan->num_planes * job->num_images;
    if (checkpoint->images.are_joined) {
        tess_steps_watch(job->steps, NULL, job->num_images, watch, checkpoint);
        return TESS_OK;
    }
    if (checkpoint->sums_wait) {
        if (state->num_done != count)
            TESS_FAIL(TESS_ERR_INPUT, "%s: the checkpoint has %lld planes, not %lld",
                      checkpoint->opts->folder, (long long)state->num_done,
                      (long long)count);
        TESS_TRY(tess_comm_agree(job->comm, take_sums(checkpoint, job)));
    } else
        TESS_TRY(tess_comm_agree(job->comm, start_list(state, count)));
    checkpoint->sums_wait = false;
    checkpoint->num_done = count_done(state);
    tess_steps_watch(job->steps, state->done, job->num_images, watch, checkpoint);
cleanup:
    return status;
}

void image_checkpoint_restart(image_checkpoint *checkpoint)
{
    if (!checkpoint || checkpoint->state.num_done == 0) return;
    memset(checkpoint->state.done, '0', (size_t)checkpoint->state.num_done);
    checkpoint->num_done = 0;
}

/* ---- means over channels ---- */

/* Rows of the means that a checkpoint holds. */
static tess_checkpoint_rows mean_rows(const image_checkpoint *checkpoint,
                                      int64_t row_first, int64_t num_rows)
{
    return (tess_checkpoint_rows){.row_first = row_first,
                                  .num_rows = num_rows,
                                  .nx = checkpoint->images.geom->nx,
                                  .value_bytes = sizeof(double),
                                  .num = checkpoint->state.num_mean};
}

tess_status image_checkpoint_mean(const image_checkpoint *checkpoint, int64_t row_first,
                                  int64_t num_rows, imager_product *mean)
{
    tess_status status = TESS_OK;
    const tess_checkpoint_state *state = &checkpoint->state;
    const tess_checkpoint_rows wanted = mean_rows(checkpoint, row_first, num_rows);
    for (int64_t k = 0; k < state->num_mean - state->num_cycle; ++k) {
        mean[k].sum_weights = state->mean_weight[k];
        mean[k].response = state->mean_response[k];
        /* checkpoints do not hold these */
        mean[k].variance = mean[k].effective_vis = (double)NAN;
        mean[k].rows =
            tess_rows_of(checkpoint->images.geom->nx, checkpoint->images.geom->ny,
                         row_first, num_rows, TESS_PIXEL_DOUBLE);
        TESS_TRY(tess_rows_alloc_zero(&mean[k].rows));
        TESS_TRY(tess_checkpoint_add_mean(checkpoint->opts->folder, state, k, &wanted,
                                          mean[k].rows.value));
    }
cleanup:
    return status;
}

/* ---- major cycles ---- */

void image_checkpoint_cycle(image_checkpoint *checkpoint, image_cycle_save *save,
                            void *context)
{
    if (!checkpoint || !checkpoint->opts->folder) return;
    checkpoint->save_cycle = save;
    checkpoint->cycle_context = context;
    checkpoint->cycle_changed = false;
    checkpoint->cycle_waits = false;
}

tess_status image_checkpoint_cleaned(image_checkpoint *checkpoint)
{
    if (!checkpoint || !checkpoint->save_cycle) return TESS_OK;
    checkpoint->cycle_changed = true;
    return act(checkpoint, true);
}

tess_status image_checkpoint_cycle_rows(const image_checkpoint *checkpoint, int k,
                                        const tess_rows *rows)
{
    tess_status status = TESS_OK;
    const tess_checkpoint_state *state = &checkpoint->state;
    const tess_checkpoint_rows wanted =
        mean_rows(checkpoint, rows->row_first, rows->num_rows);
    tess_rows view = {0};
    TESS_TRY(tess_rows_check_whole(rows, "rows of a checkpoint"));
    TESS_TRY(tess_rows_edit(rows, true, &view));
    TESS_TRY(tess_checkpoint_add_mean(checkpoint->opts->folder, state,
                                      state->num_mean - state->num_cycle + k, &wanted,
                                      view.value));
    TESS_TRY(tess_rows_put_back(rows, &view));
cleanup:
    tess_rows_free(&view);
    return status;
}

/* ---- between outputs ---- */

tess_status image_checkpoint_outputs(image_checkpoint *checkpoint, int64_t count)
{
    if (!checkpoint->opts->folder) return TESS_OK;
    checkpoint->state.outputs_done += count;
    checkpoint->state.num_done = checkpoint->num_done = 0;
    checkpoint->unsaved = true;
    return act(checkpoint, true);
}

tess_status image_checkpoint_images(image_checkpoint *checkpoint)
{
    if (!checkpoint->opts->folder || !checkpoint->unsaved) return TESS_OK;
    return write_now(checkpoint);
}

void image_checkpoint_finish(image_checkpoint *checkpoint)
{
    if (!checkpoint->opts->folder) return;
    tess_watch_saved(NULL);
    tess_checkpoint_remove(checkpoint->comm, checkpoint->opts->folder);
}

void image_checkpoint_free(image_checkpoint *checkpoint)
{
    image_bookmark_free(&checkpoint->bookmark);
    tess_checkpoint_free(&checkpoint->state);
}
