/* Chooses the number of teams, forms them, and adds the images that they make to means.
 */
#include <math.h>
#include <string.h>

#include "imager_estimate.h"
#include "imager_job.h"
#include "imager_product.h"
#include "imager_teams.h"
#include "imager_window.h"
#include "output_table.h"
#include "tess_log.h"
#include "tess_mem.h"

/* ---- how many ---- */

/* Share of a rank's memory that samples and images of a team may take. Sums of bricks,
 * whose size is not known yet, need the rest. */
static const double MEMORY_SHARE = 0.6;

/* Teams must be faster by this factor, because the slowest team keeps the others
 * waiting. */
static const double WORTH = 0.9;

/* Assumed number of residual images of each channel that is cleaned together with
 * others. The gain of teams hardly depends on it. */
enum { USUAL_MAJORS = 5 };

/* Time of a residual image, as a multiple of the time of a dirty image: samples are
 * predicted, too. */
static const double RESIDUAL_COST = 2;

/* Time of all rounds of outputs [first, num) by this many teams, and of the longest
 * round [s]. */
static double seconds_of(const imager_job *job, const imager_teams_need *need,
                         int teams, double *longest)
{
    const output_table *outputs = need->outputs;
    const int ranks = tess_comm_size(job->comm);
    double total = 0;
    *longest = 0;
    for (int64_t first = need->first_output; first < outputs->num; first += teams) {
        double round = 0;
        for (int64_t k = first; k < first + teams && k < outputs->num; ++k)
            round = fmax(round, imager_estimate_output(job, ranks / teams,
                                                       outputs->extent[k].num_vis,
                                                       need->vis_bytes));
        *longest = fmax(*longest, round);
        total += round;
    }
    if (teams > 1)
        total += imager_estimate_deal(job, need->outputs, ranks, need->vis_bytes);
    return total;
}

int imager_teams_order(const output_table *outputs, int64_t first, int num, int *order)
{
    int count = 0;
    for (int k = 0; k < num; ++k) {
        const int64_t num_vis = outputs->extent[first + k].num_vis;
        int at = count;
        if (num_vis == 0) continue;
        while (at > 0 && outputs->extent[first + order[at - 1]].num_vis < num_vis)
            --at;
        memmove(order + at + 1, order + at, (size_t)(count - at) * sizeof *order);
        order[at] = k;
        ++count;
    }
    return count;
}

/* Time of all images of an interval's channels that are cleaned together, by this many
 * teams [s]: a round is as long as its longest channel. order[num_channels] is work
 * memory. */
static double joined_seconds(const imager_job *job, const imager_teams_need *need,
                             int teams, int64_t interval, int *order)
{
    const output_table *outputs = need->outputs;
    const int ranks = tess_comm_size(job->comm);
    const int64_t first = interval * outputs->num_channels;
    const int count =
        imager_teams_order(outputs, first, (int)outputs->num_channels, order);
    double seconds = 0;
    for (int k = 0; k < count; k += teams)
        seconds += imager_estimate_output(job, ranks / teams,
                                          outputs->extent[first + order[k]].num_vis,
                                          need->vis_bytes);
    return seconds * (1 + RESIDUAL_COST * USUAL_MAJORS);
}

/* Time of all images of all intervals, and of the exchange of rows if there are several
 * teams. */
static double seconds_of_joined(const imager_job *job, const imager_teams_need *need,
                                int teams, int *order)
{
    const output_table *outputs = need->outputs;
    const int ranks = tess_comm_size(job->comm);
    double total = 0;
    for (int64_t k = 0; k < outputs->num_intervals; ++k)
        total += joined_seconds(job, need, teams, k, order);
    if (teams == 1) return total;
    return total + imager_estimate_deal(job, outputs, ranks, need->vis_bytes) +
           USUAL_MAJORS * imager_estimate_rows(job, outputs, ranks);
}

/* Whether there is memory for the samples of a rank (of all outputs, or of those of a
 * round; those of its team's largest output, sent and received), and for the images
 * that its team makes and cleans. */
static bool fits(const imager_job *job, const imager_teams_need *need, int teams)
{
    const output_table *outputs = need->outputs;
    const int ranks = tess_comm_size(job->comm), members = ranks / teams;
    double all = 0, largest = 0;
    for (int64_t k = 0; k < outputs->num; ++k) {
        all += (double)outputs->extent[k].num_vis;
        largest = fmax(largest, (double)outputs->extent[k].num_vis);
    }
    const double bytes = need->vis_bytes + need->row_bytes;
    /* teams keep the samples of channels that are cleaned together in all rounds */
    const double rounds =
        need->joined ? ceil((double)outputs->num_channels / teams) : 0;
    const double held = need->dealt ? teams * largest : all;
    const double samples =
        bytes * (2 * held / ranks + (2 + rounds) * largest / members);
    /* the base has what cleaning takes if all ranks clean an output */
    const double cleaning = need->joined ? 0 : (teams - 1) * job->memory.clean_bytes;
    return imager_base_bytes(job) + samples + cleaning +
               imager_team_bytes(job, members) <
           MEMORY_SHARE * (double)job->memory.rank_bytes;
}

/* Checks the number of teams that options force. */
static tess_status check_forced(const imager_job *job, const imager_teams_need *need)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(job->comm), forced = job->layout->forced.teams;
    if (forced > 0 && ranks % forced != 0)
        TESS_FAIL(TESS_ERR_USAGE, "TESS_FORCE: teams=%d does not divide %d ranks",
                  forced, ranks);
    if (forced > 1 && need->together)
        TESS_FAIL(TESS_ERR_USAGE,
                  "TESS_FORCE: teams=%d: %s, so all ranks work together", forced,
                  need->together);
cleanup:
    return status;
}

/* Finds whether this number of teams is fast enough between checkpoints, and the time
 * that they take. */
static bool is_allowed(const imager_job *job, const imager_teams_need *need, int teams,
                       int *order, double *seconds)
{
    double longest = 0;
    if (tess_comm_size(job->comm) % teams != 0 || !fits(job, need, teams)) return false;
    *seconds = need->joined ? seconds_of_joined(job, need, teams, order)
                            : seconds_of(job, need, teams, &longest);
    return !need->checkpoints || longest <= IMAGER_CHECKPOINT_ROUND_S;
}

/* Finds the number of teams that is fastest, among those for which there is memory. */
static void choose(const imager_job *job, const imager_teams_need *need, int *order,
                   int *num)
{
    const int ranks = tess_comm_size(job->comm);
    const int64_t most = need->joined ? need->outputs->num_channels
                                      : need->outputs->num - need->first_output;
    double least, longest, seconds;
    least = WORTH * (need->joined ? seconds_of_joined(job, need, 1, order)
                                  : seconds_of(job, need, 1, &longest));
    for (int teams = 2; teams <= ranks && teams <= most; ++teams) {
        if (!is_allowed(job, need, teams, order, &seconds) || seconds >= least)
            continue;
        least = seconds;
        *num = teams;
    }
}

/* Number of outputs [first, end) that have data. */
static int64_t count_full(const output_table *outputs, int64_t first, int64_t end)
{
    int64_t count = 0;
    for (int64_t k = first; k < end; ++k)
        count += outputs->extent[k].num_vis > 0;
    return count;
}

/* Whether teams of one rank write checkpoints often enough. */
static bool rounds_are_short(const imager_job *job, const imager_teams_need *need)
{
    double longest = 0;
    if (need->checkpoints) seconds_of(job, need, tess_comm_size(job->comm), &longest);
    return longest <= IMAGER_CHECKPOINT_ROUND_S;
}

/* Whether each GPU makes the images of whole channels that are cleaned, together or one
 * by one. It then exchanges nothing for a plane, and an image of channels that are
 * cleaned together once over the links. GPUs without a channel in a round wait, which
 * may cost a quarter of the time at most. Channels without data have no place in rounds
 * of channels that are cleaned together. */
static bool each_device_has_one(const imager_job *job, const imager_teams_need *need)
{
    const output_table *outputs = need->outputs;
    const int64_t ranks = tess_comm_size(job->comm);
    const int64_t first = need->joined ? 0 : need->first_output;
    const int64_t end = need->joined ? outputs->num_channels : outputs->num;
    const int64_t full = count_full(outputs, first, end);
    const int64_t dealt = need->joined ? full : end - first;
    const int64_t places = (dealt + ranks - 1) / ranks * ranks;
    return need->cleaned && need->has_room && full >= ranks && 4 * full >= 3 * places &&
           fits(job, need, (int)ranks) && rounds_are_short(job, need);
}

tess_status imager_teams_choose(const imager_job *job, const imager_teams_need *need,
                                int *num)
{
    tess_status status = TESS_OK;
    const int forced = job->layout->forced.teams;
    int *order = NULL;
    *num = 1;
    TESS_TRY(check_forced(job, need));
    if (forced > 0) *num = forced;
    if (forced > 0 || need->together || !(need->kept || need->dealt)) return TESS_OK;
    order = tess_alloc(need->outputs->num_channels, sizeof *order);
    if (!order) TESS_FAIL(TESS_ERR_ALLOC, "channels of teams");
    if (!job->backend->start)
        choose(job, need, order, num);
    else if (each_device_has_one(job, need))
        *num = tess_comm_size(job->comm);
cleanup:
    tess_free(order);
    return status;
}

tess_status imager_teams_form(tess_comm *comm, int num, imager_teams *teams)
{
    tess_status status = TESS_OK;
    const int members = tess_comm_size(comm) / num, rank = tess_comm_rank(comm);
    *teams = (imager_teams){
        .all = comm, .num = num, .members = members, .own = rank / members};
    /* ranks of neighbouring numbers are on one node */
    TESS_TRY(tess_comm_split(comm, teams->own, rank, &teams->team));
cleanup:
    return status;
}

void imager_teams_free(imager_teams *teams)
{
    tess_comm_free(teams->team);
    teams->team = NULL;
}

/* ---- images to the mean ---- */

/* The rows that one rank has of its team's image. */
typedef struct rank_rows {
    int64_t output, row_first, num_rows;
    tess_pixel type[TESS_MAX_IMAGES];
    double sum_weights[TESS_MAX_IMAGES], variance[TESS_MAX_IMAGES],
        effective_vis[TESS_MAX_IMAGES];
} rank_rows;

void imager_teams_mean_rows(const imager_teams *teams, int rank, int64_t ny,
                            int64_t *row_first, int64_t *num_rows)
{
    const int ranks = tess_comm_size(teams->all);
    *row_first = ny * rank / ranks;
    *num_rows = ny * (rank + 1) / ranks - *row_first;
}

static int64_t overlap(int64_t a, int64_t na, int64_t b, int64_t nb)
{
    const int64_t begin = a > b ? a : b, end = a + na < b + nb ? a + na : b + nb;
    return end > begin ? end - begin : 0;
}

/* Adds the rows that have arrived from the ranks of one team. They begin at `*arrived`,
 * which moves to where the next team's rows begin. */
static tess_status add_rows(const imager_teams *teams, int team,
                            const imager_round *round, int image, int threads,
                            const char **arrived, imager_product *mean)
{
    tess_status status = TESS_OK;
    const rank_rows *told = &round->told[team * teams->members];
    const double weight = told->sum_weights[image];
    for (int k = 0; k < teams->members; ++k) {
        const rank_rows *from = &told[k];
        tess_rows like = tess_rows_like(&mean->rows, from->type[image]);
        if (from->row_first > like.row_first) like.row_first = from->row_first;
        like.num_rows = overlap(from->row_first, from->num_rows, mean->rows.row_first,
                                mean->rows.num_rows);
        const tess_rows sent = tess_rows_borrow(&like, *arrived);
        if (weight != 0)
            TESS_TRY(tess_rows_add(&sent, round->are_sums ? 1 : weight, threads,
                                   &mean->rows));
        *arrived += tess_rows_bytes(&sent);
    }
    mean->sum_weights += weight;
    mean->variance += told->variance[image];
    mean->effective_vis += told->effective_vis[image];
cleanup:
    return status;
}

/* Sends the rows of one image of the round's outputs, as they are, to the ranks that
 * keep those of the mean. Collective. */
static tess_status send_rows(const imager_teams *teams, const rank_rows *told,
                             const imager_product *product, int64_t ny, void **arrived)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(teams->all);
    const rank_rows *own = &told[tess_comm_rank(teams->all)];
    tess_rows view = {0};
    int64_t *bytes = tess_alloc_zero(2 * (int64_t)ranks, sizeof *bytes);
    status = bytes ? TESS_OK : TESS_ERR_ALLOC;
    if (bytes && own->num_rows > 0) status = tess_rows_view(&product->rows, &view);
    TESS_TRY(tess_comm_agree(teams->all, status));
    for (int k = 0; k < ranks && own->num_rows > 0; ++k) {
        int64_t first, count;
        imager_teams_mean_rows(teams, k, ny, &first, &count);
        bytes[k] = overlap(own->row_first, own->num_rows, first, count) *
                   (tess_rows_bytes(&view) / own->num_rows);
    }
    TESS_TRY(
        tess_comm_alltoallv(teams->all, view.value, bytes, arrived, bytes + ranks));
cleanup:
    tess_rows_free(&view);
    tess_free(bytes);
    return status;
}

tess_status imager_teams_collect(const imager_teams *teams, int64_t output, int64_t ny,
                                 const imager_product *product, int num_images,
                                 imager_round *round)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(teams->all);
    rank_rows own = {.output = output}, *told = tess_alloc(ranks, sizeof *told);
    round->num_images = num_images;
    if (output >= 0) {
        own.row_first = product[0].rows.row_first;
        own.num_rows = product[0].rows.num_rows;
        for (int k = 0; k < num_images; ++k) {
            own.type[k] = product[k].rows.type;
            own.sum_weights[k] = product[k].sum_weights;
            own.variance[k] = product[k].variance;
            own.effective_vis[k] = product[k].effective_vis;
        }
    }
    TESS_TRY(tess_comm_agree(teams->all, told ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_allgather(teams->all, &own, sizeof own, told));
    for (int k = 0; k < num_images; ++k)
        TESS_TRY(send_rows(teams, told, &product[k], ny, &round->arrived[k]));
    for (int k = 0; k < num_images; ++k)
        round->next[k] = round->arrived[k];
    round->told = told;
    told = NULL;
cleanup:
    tess_free(told);
    return status;
}

tess_status imager_round_add(const imager_teams *teams, imager_round *round, int team,
                             int threads, imager_product *mean)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < round->num_images; ++k)
        TESS_TRY(add_rows(teams, team, round, k, threads, &round->next[k], &mean[k]));
cleanup:
    return status;
}

void imager_round_free(imager_round *round)
{
    for (int k = 0; k < round->num_images; ++k)
        tess_free(round->arrived[k]);
    tess_free(round->told);
    *round = (imager_round){0};
}
