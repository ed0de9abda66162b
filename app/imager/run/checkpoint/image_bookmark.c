/* A bookmark in data that are read in blocks. A checkpoint holds what a rank has made
 * of the blocks that it has read, in sections, in the order in which a run reaches
 * them. Each section begins with numbers that tell whether it belongs to the same
 * blocks, passes and bricks. A run that continues takes up one section after the other.
 * At the first section that does not match on some rank, all ranks go back to reading
 * from the beginning. This costs time only: the planes that the images hold stay. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "image_bookmark.h"
#include "imager_job.h"
#include "imager_passes.h"
#include "output_table.h"
#include "sample_sets.h"
#include "tess_exact.h"
#include "tess_log.h"

/* Ends the sections of a rank. */
enum { END = BOOKMARK_NUM_SECTIONS };

/* Bytes of a counted brick: its key, samples and runs. */
static const double COUNT_BYTES = 24;

/* ---- contents ---- */

void image_bookmark_start(image_bookmark *bookmark, tess_comm *comm)
{
    *bookmark = (image_bookmark){.comm = comm};
}

bool image_bookmark_is_kept(const image_bookmark *bookmark)
{
    for (int k = 0; k < BOOKMARK_NUM_SECTIONS; ++k)
        if (bookmark->comm && bookmark->has[k]) return true;
    return false;
}

void image_bookmark_forget(image_bookmark *bookmark, bookmark_section from)
{
    for (int k = (int)from; bookmark && k < BOOKMARK_NUM_SECTIONS; ++k)
        bookmark->has[k] = false;
}

void image_bookmark_at(image_bookmark *bookmark, bookmark_section section, int64_t next)
{
    if (!bookmark || !bookmark->has[section]) return;
    bookmark->next[section] = next;
    ++bookmark->turned;
}

/* A place that was noted before is no progress. */
void image_bookmark_sent(image_bookmark *bookmark, const imager_place *place)
{
    imager_place *at = &bookmark->place;
    if (at->window == place->window && at->share == place->share &&
        bookmark->next[BOOKMARK_PASS] == place->next_set)
        return;
    *at = (imager_place){.window = place->window, .share = place->share};
    image_bookmark_at(bookmark, BOOKMARK_PASS, place->next_set);
}

double image_bookmark_bytes(const image_bookmark *bookmark)
{
    double bytes = 0;
    if (bookmark->has[BOOKMARK_DENSITY])
        bytes += (double)tess_density_bytes(bookmark->density);
    if (bookmark->has[BOOKMARK_BRICKS])
        bytes += (double)bookmark->bricks->num_bricks * COUNT_BYTES;
    if (bookmark->has[BOOKMARK_PASS])
        bytes += (double)tess_exchange_bytes(bookmark->exchange) +
                 (double)tess_steps_bytes(bookmark->job->steps);
    return bytes;
}

tess_status image_bookmark_settle(image_bookmark *bookmark)
{
    return bookmark->has[BOOKMARK_PASS] ? tess_exchange_drain(bookmark->exchange)
                                        : TESS_OK;
}

/* ---- sections, to a checkpoint and from it ---- */

/* Anybody may have written a checkpoint: each number is checked before it is used. */

/* Moves the bytes of a survey. A bool of a damaged file may be neither true nor false.
 */
static tess_status move_found(image_survey *survey, tess_mover *mover)
{
    tess_status status = TESS_OK;
    unsigned char bytes[sizeof *survey];
    memcpy(bytes, survey, sizeof *survey);
    TESS_TRY(tess_move(mover, bytes, sizeof bytes));
    if (bytes[offsetof(image_survey, weights_differ)] > 1 ||
        bytes[offsetof(image_survey, summed)] > 1)
        TESS_FAIL(TESS_ERR_INPUT, "checkpoint: what a survey found");
    memcpy(survey, bytes, sizeof *survey);
cleanup:
    return status;
}

static bool extent_is_sound(const imager_extent *extent)
{
    return extent->num_vis == 0 ||
           (extent->num_vis > 0 && extent->w_min_lambda >= 0 &&
            extent->w_max_lambda >= extent->w_min_lambda &&
            isfinite(extent->w_max_lambda) && isfinite(extent->w_span_lambda) &&
            extent->uvw_max_lambda >= 0 && isfinite(extent->uvw_max_lambda) &&
            extent->weight_sum >= 0 && isfinite(extent->weight_sum) &&
            extent->largest_weight >= 0 && isfinite(extent->largest_weight) &&
            extent->largest_vis_jy >= 0 && isfinite(extent->largest_vis_jy) &&
            extent->freq_min > 0 && extent->freq_max >= extent->freq_min &&
            isfinite(extent->freq_max) && isfinite(extent->freq_sum));
}

/* Whether a table of outputs is possible for `num_rows` rows. */
static bool outputs_are_sound(const output_table *outputs, int64_t num_rows)
{
    for (int64_t k = 0; k < outputs->num; ++k)
        if (!extent_is_sound(&outputs->extent[k]) || outputs->num_held[k] < 0 ||
            outputs->num_held[k] > num_rows * outputs->num_chan)
            return false;
    return true;
}

static bool counts_are_sound(const tess_profile *profile)
{
    for (int k = 0; k < TESS_NUM_IGNORED; ++k)
        if (profile->ignored[k] < 0) return false;
    return profile->visibilities >= 0;
}

static tess_status move_survey(const image_bookmark *bookmark, tess_mover *mover)
{
    tess_status status = TESS_OK;
    const output_table *outputs = bookmark->outputs;
    tess_profile *profile = bookmark->profile;
    const int64_t num = outputs->num;
    TESS_TRY(move_found(bookmark->survey, mover));
    TESS_TRY(tess_move(mover, outputs->extent, num * (int64_t)sizeof *outputs->extent));
    TESS_TRY(
        tess_move(mover, outputs->num_held, num * (int64_t)sizeof *outputs->num_held));
    TESS_TRY(tess_move(mover, &profile->visibilities, sizeof profile->visibilities));
    TESS_TRY(tess_move(mover, profile->ignored, sizeof profile->ignored));
    if (mover->reads &&
        (!outputs_are_sound(
             outputs, bookmark->check[BOOKMARK_SURVEY].number[BOOKMARK_CHECK_ROWS]) ||
         !counts_are_sound(profile)))
        TESS_FAIL(TESS_ERR_INPUT, "checkpoint: numbers of a survey");
cleanup:
    return status;
}

/* Keys ascend, and are of blocks and tiles that the plan has; runs are counted up. */
static bool bricks_are_sound(const tess_brick_list *bricks, const tess_grid_plan *plan)
{
    const int64_t num_keys = tess_grid_brick_key(plan, (int64_t)plan->num_blocks, 0, 0);
    int64_t key = -1, run = 0;
    for (int64_t k = 0; k < bricks->num_bricks; ++k) {
        if (bricks->key[k] <= key || bricks->key[k] >= num_keys ||
            bricks->num_vis[k] < 0 || bricks->num_vis[k] > INT64_MAX >> 20 ||
            bricks->first_run[k] < run)
            return false;
        if (bricks->planes &&
            (bricks->planes[k].first < 0 || bricks->planes[k].end < 0 ||
             bricks->planes[k].end > plan->num_planes))
            return false;
        key = bricks->key[k];
        run = bricks->first_run[k];
    }
    return bricks->first_run[bricks->num_bricks] >= run &&
           bricks->first_run[bricks->num_bricks] <= bricks->num_runs;
}

static tess_status move_bricks(const image_bookmark *bookmark, tess_mover *mover)
{
    tess_status status = TESS_OK;
    tess_brick_list *bricks = bookmark->bricks;
    int64_t with_planes = bricks->planes != NULL;
    TESS_TRY(tess_move(mover, &bookmark->data->num_runs, sizeof(int64_t)));
    TESS_TRY(tess_move(mover, &bookmark->data->largest_set_bytes, sizeof(double)));
    TESS_TRY(tess_move(mover, &bricks->num_runs, sizeof bricks->num_runs));
    TESS_TRY(tess_move(mover, &bricks->num_bricks, sizeof bricks->num_bricks));
    TESS_TRY(tess_move(mover, &with_planes, sizeof with_planes));
    const int64_t num = bricks->num_bricks;
    if (mover->reads &&
        (bookmark->data->num_runs < 0 || !(bookmark->data->largest_set_bytes >= 0) ||
         bricks->num_runs < 0 || bricks->num_runs > INT64_MAX >> 20 || num < 0 ||
         (num > 0 && (with_planes != 0) != bookmark->data->with_planes))) {
        bricks->num_bricks = 0;
        TESS_FAIL(TESS_ERR_INPUT, "checkpoint: numbers of bricks");
    }
    if (num == 0) return TESS_OK; /* nor arrays */
    if (mover->reads)
        TESS_TRY(tess_brick_list_make_counts(num, with_planes != 0, bricks));
    TESS_TRY(tess_move(mover, bricks->key, num * (int64_t)sizeof *bricks->key));
    TESS_TRY(tess_move(mover, bricks->num_vis, num * (int64_t)sizeof *bricks->num_vis));
    TESS_TRY(tess_move(mover, bricks->first_run,
                       (num + 1) * (int64_t)sizeof *bricks->first_run));
    if (with_planes)
        TESS_TRY(
            tess_move(mover, bricks->planes, num * (int64_t)sizeof *bricks->planes));
    if (mover->reads && !bricks_are_sound(bricks, bookmark->plan))
        TESS_FAIL(TESS_ERR_INPUT, "checkpoint: bricks of another plan");
cleanup:
    return status;
}

/* More can be added to them. */
static bool exact_sums_are_sound(const imager_sums *sums)
{
    const int64_t most = INT64_MAX / 2;
    for (int k = 0; sums->exact && k < sums->num_weight; ++k)
        for (int w = 0; w < TESS_EXACT_WORDS; ++w)
            if (sums->exact[k].word[w] > most || sums->exact[k].word[w] < -most)
                return false;
    return true;
}

static tess_status move_pass(image_bookmark *bookmark, tess_mover *mover)
{
    tess_status status = TESS_OK;
    imager_job *job = bookmark->job;
    imager_sums *sums = bookmark->sums;
    TESS_TRY(tess_move(mover, &bookmark->place, sizeof bookmark->place));
    TESS_TRY(tess_move(mover, sums->weight, sizeof sums->weight));
    TESS_TRY(tess_move(mover, sums->largest, sizeof sums->largest));
    if (sums->exact)
        TESS_TRY(tess_move(mover, sums->exact,
                           sums->num_weight * (int64_t)sizeof *sums->exact));
    TESS_TRY(tess_move(mover, &job->told.error, sizeof job->told.error));
    if (mover->reads && !exact_sums_are_sound(sums))
        TESS_FAIL(TESS_ERR_INPUT, "checkpoint: sums of weights");
    TESS_TRY(
        tess_exchange_move(bookmark->exchange, bookmark->outputs->num_chan, mover));
    TESS_TRY(tess_steps_move(job->steps, mover));
cleanup:
    return status;
}

static tess_status move_section(image_bookmark *bookmark, int section,
                                tess_mover *mover)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_move(mover, &bookmark->next[section], sizeof *bookmark->next));
    if (bookmark->next[section] < 0 ||
        bookmark->next[section] > bookmark->check[section].number[0])
        TESS_FAIL(TESS_ERR_INPUT, "checkpoint: a block that the data do not have");
    switch ((bookmark_section)section) {
    case BOOKMARK_SURVEY:
        return move_survey(bookmark, mover);
    case BOOKMARK_DENSITY:
        return tess_density_move(bookmark->density, mover);
    case BOOKMARK_BRICKS:
        return move_bricks(bookmark, mover);
    default:
        return move_pass(bookmark, mover);
    }
cleanup:
    return status;
}

tess_status image_bookmark_write(void *context, tess_mover *mover)
{
    tess_status status = TESS_OK;
    image_bookmark *bookmark = context;
    for (int64_t k = 0; k < BOOKMARK_NUM_SECTIONS; ++k) {
        if (!bookmark->has[k]) continue;
        TESS_TRY(tess_move(mover, &k, sizeof k));
        TESS_TRY(tess_move(mover, &bookmark->check[k], sizeof bookmark->check[k]));
        TESS_TRY(move_section(bookmark, (int)k, mover));
    }
    int64_t end = END;
    TESS_TRY(tess_move(mover, &end, sizeof end));
cleanup:
    return status;
}

/* ---- continuing ---- */

static void close_left(image_bookmark *bookmark)
{
    tess_checkpoint_close_own(bookmark->left);
    bookmark->left = NULL;
}

static tess_status next_section(image_bookmark *bookmark)
{
    return tess_move(bookmark->left, &bookmark->left_section,
                     sizeof bookmark->left_section);
}

tess_status image_bookmark_open(image_bookmark *bookmark, const char *folder,
                                const tess_checkpoint_state *state)
{
    tess_status status = TESS_OK;
    const int rank = tess_comm_rank(bookmark->comm);
    if (state->num_ranks != tess_comm_size(bookmark->comm)) {
        tess_log_info("the checkpoint is of %lld ranks: what they had read is read "
                      "again",
                      (long long)state->num_ranks);
        return TESS_OK;
    }
    status = tess_checkpoint_open_own(folder, state, rank, &bookmark->left);
    if (status == TESS_OK && bookmark->left) status = next_section(bookmark);
    return tess_comm_agree(bookmark->comm, status);
}

/* How the next section in the checkpoint compares with the one that the run has
 * reached: it is another one, the checkpoint has none, or it is this one. */
enum { NOT_THIS, NOT_THERE, THIS };

static tess_status compare(image_bookmark *bookmark, bookmark_section section,
                           int64_t *suits)
{
    tess_status status = TESS_OK;
    imager_check was;
    *suits = NOT_THIS;
    if (!bookmark->left || bookmark->left_section < (int64_t)section) return TESS_OK;
    *suits = NOT_THERE;
    if (bookmark->left_section > (int64_t)section) return TESS_OK;
    TESS_TRY(tess_move(bookmark->left, &was, sizeof was));
    const bool same = memcmp(&was, &bookmark->check[section], sizeof was) == 0;
    *suits = same ? THIS : NOT_THIS;
cleanup:
    return status;
}

/* A section is of use only if all ranks have it. Collective. */
static tess_status all_suit(image_bookmark *bookmark, bookmark_section section,
                            bool *found)
{
    tess_status status = TESS_OK;
    int64_t least, most, open = bookmark->left != NULL;
    TESS_TRY(tess_comm_agree(bookmark->comm, compare(bookmark, section, &least)));
    most = least;
    TESS_TRY(tess_comm_allreduce_i64(bookmark->comm, &least, 1, TESS_MIN));
    TESS_TRY(tess_comm_allreduce_i64(bookmark->comm, &most, 1, TESS_MAX));
    TESS_TRY(tess_comm_allreduce_i64(bookmark->comm, &open, 1, TESS_MAX));
    *found = least == THIS;
    if (*found || (least == NOT_THERE && most == NOT_THERE)) return TESS_OK;
    if (open)
        tess_log_info("blocks, passes or bricks are not those of the checkpoint: what "
                      "had been read after its images is read again");
    close_left(bookmark);
cleanup:
    return status;
}

/* Ranks continue together: the numbers that decide about the next collective call are
 * the same on all of them. Collective. */
static tess_status check_together(image_bookmark *bookmark, bookmark_section section)
{
    enum { NUM = 4 };
    tess_status status = TESS_OK;
    int64_t least[NUM] = {bookmark->next[section]}, most[NUM];
    if (section == BOOKMARK_SURVEY) least[1] = bookmark->survey->summed;
    if (section == BOOKMARK_DENSITY)
        least[1] = tess_density_is_finished(bookmark->density);
    if (section == BOOKMARK_PASS) {
        least[2] = bookmark->place.window;
        least[3] = bookmark->place.share;
    }
    memcpy(most, least, sizeof most);
    TESS_TRY(tess_comm_allreduce_i64(bookmark->comm, least, NUM, TESS_MIN));
    TESS_TRY(tess_comm_allreduce_i64(bookmark->comm, most, NUM, TESS_MAX));
    if (memcmp(least, most, sizeof most) != 0)
        TESS_FAIL(TESS_ERR_INPUT, "checkpoint: its ranks were not at one place");
cleanup:
    return status;
}

/* Registers a section, and takes it up from the checkpoint if it is there. Collective.
 */
static tess_status take(image_bookmark *bookmark, bookmark_section section,
                        const imager_check *check, int64_t *next, bool *found)
{
    tess_status status = TESS_OK;
    bookmark->check[section] = *check;
    bookmark->next[section] = 0;
    TESS_TRY(all_suit(bookmark, section, found));
    if (*found) {
        status = move_section(bookmark, (int)section, bookmark->left);
        if (status == TESS_OK) status = next_section(bookmark);
        TESS_TRY(tess_comm_agree(bookmark->comm, status));
        TESS_TRY(check_together(bookmark, section));
        if (bookmark->left_section == END) close_left(bookmark);
    }
    bookmark->has[section] = true;
    *next = bookmark->next[section];
cleanup:
    return status;
}

tess_status image_bookmark_survey(image_bookmark *bookmark, const imager_check *check,
                                  image_survey *survey, output_table *outputs,
                                  tess_profile *profile, int64_t *next_block)
{
    tess_status status = TESS_OK;
    bool found;
    *next_block = 0;
    if (!bookmark->comm) return TESS_OK;
    bookmark->survey = survey;
    bookmark->outputs = outputs;
    bookmark->profile = profile;
    TESS_TRY(take(bookmark, BOOKMARK_SURVEY, check, next_block, &found));
    if (found)
        tess_log_info("the survey of the data goes on after %lld of %lld blocks",
                      (long long)*next_block, (long long)check->number[0]);
cleanup:
    return status;
}

tess_status image_bookmark_density(image_bookmark *bookmark, const imager_check *check,
                                   tess_density *density, int64_t *next_set)
{
    bool found;
    *next_set = 0;
    if (!bookmark || !bookmark->comm) return TESS_OK;
    bookmark->density = density;
    return take(bookmark, BOOKMARK_DENSITY, check, next_set, &found);
}

tess_status image_bookmark_bricks(image_bookmark *bookmark, const imager_check *check,
                                  const tess_grid_plan *plan, sample_sets *data,
                                  tess_brick_list *bricks, int64_t *next_set)
{
    bool found;
    *next_set = 0;
    if (!bookmark || !bookmark->comm) return TESS_OK;
    bookmark->plan = plan;
    bookmark->data = data;
    bookmark->bricks = bricks;
    return take(bookmark, BOOKMARK_BRICKS, check, next_set, &found);
}

tess_status image_bookmark_pass(image_bookmark *bookmark, const imager_check *check,
                                imager_job *job, tess_exchange *exchange,
                                imager_sums *sums, imager_place *place)
{
    tess_status status = TESS_OK;
    bool found;
    int64_t next_set;
    *place = (imager_place){0, 0, 0};
    if (!bookmark || !bookmark->comm) return TESS_OK;
    bookmark->job = job;
    bookmark->exchange = exchange;
    bookmark->sums = sums;
    bookmark->place = *place;
    TESS_TRY(take(bookmark, BOOKMARK_PASS, check, &next_set, &found));
    *place = bookmark->place;
    place->next_set = next_set;
    if (found)
        tess_log_info("going on in pass %lld over the data, after %lld of %lld blocks",
                      (long long)place->share + 1, (long long)place->next_set,
                      (long long)check->number[0]);
cleanup:
    return status;
}

void image_bookmark_free(image_bookmark *bookmark)
{
    close_left(bookmark);
    *bookmark = (image_bookmark){0};
}
