/* Which visibilities an image is made of, and why the others are ignored. */
#include <stdio.h>
#include <string.h>

#include "image_run.h"
#include "tess_log.h"
#include "tess_text.h"

/* So large a share of visibilities beyond the grid is more than the ends of the longest
 * baselines. */
static const double MANY_BEYOND = 0.01;

/* Visibilities that are used, and those that are ignored, by their reasons. */
typedef struct visibility_counts {
    int64_t ignored[TESS_NUM_IGNORED], used, all;
    double beyond_uv_lambda;
} visibility_counts;

/* Counts the visibilities of all ranks. Collective. */
static tess_status count_visibilities(const image_run *run, visibility_counts *counts)
{
    tess_status status = TESS_OK;
    int64_t count[TESS_NUM_IGNORED + 1];
    memcpy(count, run->profile->ignored, sizeof run->profile->ignored);
    count[TESS_NUM_IGNORED] = run->profile->visibilities;
    counts->beyond_uv_lambda = run->profile->beyond_uv_lambda;
    TESS_TRY(tess_comm_allreduce_i64(run->comm, count, TESS_NUM_IGNORED + 1, TESS_SUM));
    TESS_TRY(
        tess_comm_allreduce_f64(run->comm, &counts->beyond_uv_lambda, 1, TESS_MAX));
    memcpy(counts->ignored, count, sizeof counts->ignored);
    counts->used = counts->all = count[TESS_NUM_IGNORED];
    for (int k = 0; k < TESS_NUM_IGNORED; ++k)
        counts->all += count[k];
cleanup:
    return status;
}

/* "--scale 10amin" and the largest that takes in all visibilities that are beyond the
 * grid; false when that is not known, as in a run that goes on from a checkpoint. */
static bool describe_scale(const image_run *run, const visibility_counts *counts,
                           char *text, size_t size)
{
    char scale[32], larger[32];
    if (!(counts->beyond_uv_lambda > 0)) return false;
    tess_text_angle(run->opts->scale_rad, scale, sizeof scale);
    tess_text_angle_below(0.5 / counts->beyond_uv_lambda, larger, sizeof larger);
    snprintf(text, size,
             "--scale %s is too large for their baselines; the largest that takes in "
             "all of them is --scale %s",
             scale, larger);
    return true;
}

static void warn_beyond(const image_run *run, const visibility_counts *counts)
{
    char scale[160];
    const int64_t beyond = counts->ignored[TESS_IGNORED_BEYOND_UV];
    const double share = (double)beyond / ((double)counts->used + (double)beyond);
    if (beyond == 0 || share < MANY_BEYOND || tess_comm_rank(run->comm) != 0) return;
    if (describe_scale(run, counts, scale, sizeof scale))
        tess_log_warn("%.3g %% of the visibilities are ignored: %s", 100 * share,
                      scale);
}

/* Why there is nothing to image: an option that the data do not fit, or the data. */
static tess_status refuse_nothing(const image_run *run, const visibility_counts *counts)
{
    tess_status status = TESS_OK;
    char scale[160];
    const char *path = run->info->meta->path;
    const int64_t *ignored = counts->ignored;
    if (run->info->axis && counts->used > 0)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "%s: nothing to image: %lld visibilities are good, but none lies in "
            "the output channels; choose others with --start, --width and --nchan",
            path, (long long)counts->used);
    if (ignored[TESS_IGNORED_BEYOND_UV] > 0 &&
        describe_scale(run, counts, scale, sizeof scale))
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s: nothing to image: %lld visibilities are good, but %s", path,
                  (long long)ignored[TESS_IGNORED_BEYOND_UV], scale);
    if (ignored[TESS_IGNORED_UVRANGE] > 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s: nothing to image: %lld visibilities are good, but outside "
                  "--uvrange",
                  path, (long long)ignored[TESS_IGNORED_UVRANGE]);
    TESS_FAIL(TESS_ERR_INPUT,
              "%s: nothing to image: of %lld selected visibilities %lld are flagged, "
              "%lld have no weight, %lld are not finite, %lld are autocorrelations",
              path, (long long)counts->all, (long long)ignored[TESS_IGNORED_FLAGGED],
              (long long)ignored[TESS_IGNORED_WEIGHT],
              (long long)ignored[TESS_IGNORED_NOT_FINITE],
              (long long)ignored[TESS_IGNORED_AUTOCORR]);
cleanup:
    return status;
}

static void log_ignored(const visibility_counts *counts)
{
    const int64_t *count = counts->ignored;
    tess_log_detail(
        "visibilities: %lld used; ignored: %lld flagged, %lld of weight <= 0, "
        "%lld not finite, %lld autocorrelations, %lld beyond the grid, %lld "
        "outside --uvrange",
        (long long)counts->used, (long long)count[TESS_IGNORED_FLAGGED],
        (long long)count[TESS_IGNORED_WEIGHT],
        (long long)count[TESS_IGNORED_NOT_FINITE],
        (long long)count[TESS_IGNORED_AUTOCORR],
        (long long)count[TESS_IGNORED_BEYOND_UV],
        (long long)count[TESS_IGNORED_UVRANGE]);
}

/* Tells how many rows have no continuum: once, because a pass over the data flags the
 * same rows as the pass before. Collective. */
static tess_status tell_unfit(const image_run *run)
{
    tess_status status = TESS_OK;
    int64_t count = tess_source_num_unfit(run->source);
    if (!run->opts->selection.continuum.subtracts) return TESS_OK;
    TESS_TRY(tess_comm_allreduce_i64(run->comm, &count, 1, TESS_SUM));
    if (count > 0 && tess_comm_rank(run->comm) == 0)
        tess_log_warn(
            "%lld row%s of a spectral window %s flagged: too few good channels "
            "without lines for --uvcontsub %d",
            (long long)count, count == 1 ? "" : "s", count == 1 ? "is" : "are",
            run->opts->selection.continuum.order);
cleanup:
    return status;
}

tess_status image_check_ignored(image_run *run)
{
    tess_status status = TESS_OK;
    visibility_counts counts;
    TESS_TRY(tell_unfit(run));
    TESS_TRY(count_visibilities(run, &counts));
    log_ignored(&counts);
    run->counts.used = counts.used;
    memcpy(run->counts.ignored, counts.ignored, sizeof run->counts.ignored);
    if (run->job.extent.num_vis == 0) TESS_TRY(refuse_nothing(run, &counts));
    warn_beyond(run, &counts);
cleanup:
    return status;
}
