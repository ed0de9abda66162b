/* Makes outputs side by side, those of each team of threads one after the other. */
#include "thread_teams.h"

#include <pthread.h>

#include "image_backlog.h"
#include "imager_thread_teams.h"
#include "imager_window.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_omp.h"

/* ---- teams ---- */

/* The job of a team: the plan of the rank's job, and planes and partitions of its own.
 * The log has the plan and warnings from the first team only. */
static void take_job(const image_run *run, int number, thread_team *team)
{
    imager_job *job = &team->run.job;
    const double kept =
        run->mode == DATA_PER_OUTPUT
            ? IMAGE_CACHE_SHARE * (double)run->job.memory.rank_bytes
            : imager_samples_bytes(&run->all) + sample_parts_bytes(&run->parts);
    team->plan = *run->job.plan;
    if (!team->plan.frame) team->plan.frame = run->job.plan; /* owns the tables */
    team->plan.opts.threads = team->opts.layout.threads;
    *job = run->job;
    job->planes = job->model.planes = NULL; /* a team makes its own */
    job->ranks.devices = NULL;              /* links are of all ranks, and the run's */
    job->comm = team->comm;
    job->layout = &team->opts.layout;
    job->gridding = &team->opts.gridding;
    job->profile = &team->profile;
    job->plan = &team->plan;
    job->memory.rank_bytes =
        imager_thread_team_bytes(&run->job, &run->teams.of_threads, kept);
    job->told.plan = job->told.plan || number > 0;
    job->told.need = job->told.need || number > 0;
}

/* The run of a team. Teams of ranks have sent it samples if there are several. */
static tess_status make_team(image_run *run, int number, thread_team *team)
{
    tess_status status = TESS_OK;
    image_run *own = &team->run;
    TESS_TRY(tess_comm_self(&team->comm));
    team->opts = *run->opts;
    team->opts.layout.threads = run->teams.of_threads.threads;
    *own = *run;
    own->teams.of_threads.is_one = true;
    own->opts = &team->opts;
    own->profile = &team->profile;
    own->comm = own->output.comm = team->comm;
    own->output.opts = &team->opts;
    own->output.backlog = NULL;
    if (run->teams.num == 1) own->teams.all = team->comm;
    take_job(run, number, team);
    if (run->output.backlog)
        TESS_TRY(image_backlog_create(1, run->job.memory.backlog_bytes,
                                      &own->output.backlog));
cleanup:
    return status;
}

tess_status thread_teams_create(image_run *run, thread_teams *teams)
{
    tess_status status = TESS_OK;
    const int num = run->teams.of_threads.num > 1 ? run->teams.of_threads.num : 1;
    *teams = (thread_teams){.run = run, .num = num};
    if (num == 1) return TESS_OK;
    teams->team = tess_alloc_zero(num, sizeof *teams->team);
    if (!teams->team) TESS_FAIL(TESS_ERR_ALLOC, "%d teams of threads", num);
    for (int k = 0; k < num; ++k)
        TESS_TRY(make_team(run, k, &teams->team[k]));
cleanup:
    if (status != TESS_OK) thread_teams_free(teams);
    return status;
}

void thread_teams_free(thread_teams *teams)
{
    for (int k = 0; teams->team && k < teams->num; ++k) {
        thread_team *team = &teams->team[k];
        if (!team->comm) continue;
        image_backlog_destroy(true, team->run.output.backlog);
        team->run.job.plan = NULL; /* the rank's job has the tables */
        imager_job_free(&team->run.job);
        tess_free(team->run.output.sources.text);
        tess_comm_free(team->comm);
    }
    tess_free(teams->team);
    *teams = (thread_teams){0};
}

image_run *thread_teams_run(const thread_teams *teams, int k)
{
    return teams->team ? &teams->team[k].run : teams->run;
}

/* ---- work ---- */

/* A team may be ahead of the first group that has not ended by so many groups of each
 * team: the images of all of these are held. */
enum { MOST_AHEAD = 2 };

/* The groups that are left. All but `work` and `teams` changes under the lock. */
typedef struct team_queue {
    const team_work *work;
    thread_teams *teams;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int next;       /* the group that is taken next */
    int ended;      /* groups before this one have ended */
    bool is_ending; /* a thread ends groups */
    bool *made;     /* [num] */
    tess_status status;
} team_queue;

/* Takes the next group when it may be begun; −1: none is left. */
static int take_group(team_queue *queue)
{
    const int ahead = MOST_AHEAD * queue->teams->num;
    int taken = -1;
    pthread_mutex_lock(&queue->lock);
    while (queue->status == TESS_OK && queue->next < queue->work->num &&
           queue->next >= queue->ended + ahead)
        pthread_cond_wait(&queue->changed, &queue->lock);
    if (queue->status == TESS_OK && queue->next < queue->work->num)
        taken = queue->next++;
    pthread_mutex_unlock(&queue->lock);
    return taken;
}

/* Ends groups in their order as far as they are made, unless another thread does so.
 * The lock is open meanwhile. */
static void end_groups(team_queue *queue)
{
    const team_work *work = queue->work;
    if (!work->end || queue->is_ending) return;
    queue->is_ending = true;
    while (queue->status == TESS_OK && queue->ended < work->num &&
           queue->made[queue->ended]) {
        pthread_mutex_unlock(&queue->lock);
        tess_profile_take_over(&queue->teams->ends);
        const tess_status status = work->end(work->context, queue->ended);
        pthread_mutex_lock(&queue->lock);
        if (queue->status == TESS_OK) queue->status = status;
        ++queue->ended;
        pthread_cond_broadcast(&queue->changed);
    }
    queue->is_ending = false;
}

/* Notes that a group is made, or has failed. */
static void note_made(team_queue *queue, int k, tess_status status)
{
    pthread_mutex_lock(&queue->lock);
    queue->made[k] = status == TESS_OK;
    if (queue->status == TESS_OK) queue->status = status;
    end_groups(queue);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

/* Makes an output in a lane of the device, if there is a device. */
static tess_status make_in_lane(const thread_team *team, int lane, channel_group *group)
{
    const tess_lanes *lanes = team->run.job.backend->lanes;
    tess_status status = lanes ? lanes->enter(lane) : TESS_OK;
    if (status != TESS_OK) return status;
    if (group->num_channels > 0) status = group_images_make(group);
    const tess_status left = lanes ? lanes->leave() : TESS_OK;
    return status == TESS_OK ? left : status;
}

static void make_group(team_queue *queue, int number, int k)
{
    thread_team *team = &queue->teams->team[number];
    channel_group *group = &queue->work->group[k];
    group->run = &team->run;
    note_made(queue, k, make_in_lane(team, number, group));
    imager_job_note_held(&team->run.job);
}

/* Makes one output after the other; one only in a round whose groups end behind it,
 * because the run of a team has the list of sources of its latest group. All that
 * belongs to the threads of OpenMP in it, such as a thread's number, is that of a
 * region of its own. */
static void make_as_team(team_queue *queue, int number)
{
    thread_team *team = &queue->teams->team[number];
#pragma omp parallel num_threads(1)
    {
        tess_profile_start_team(&team->profile,
                                number == 0 ? queue->teams->run->profile->trace : NULL);
        if (!queue->work->end) make_group(queue, number, number);
        for (int k; queue->work->end && (k = take_group(queue)) >= 0;)
            make_group(queue, number, k);
    }
}

/* Adds what the teams have done to the profile of the rank. While they work side by
 * side, the time that passes is shared among stages as the sum of their times is. */
static void add_profiles(const thread_teams *teams, int num, double passed_s)
{
    double all_s = tess_profile_seconds(&teams->ends);
    for (int k = 0; k < num; ++k)
        all_s += tess_profile_seconds(&teams->team[k].profile);
    const double share = all_s > 0 ? passed_s / all_s : 0;
    tess_profile_add_team(teams->run->profile, &teams->ends, share);
    for (int k = 0; k < num; ++k)
        tess_profile_add_team(teams->run->profile, &teams->team[k].profile, share);
}

/* What the run of the rank has changed since the teams were made. Files that are
 * written while teams work count in a profile of their own. */
static void renew(thread_teams *teams, bool ends)
{
    tess_profile_start_team(&teams->ends, NULL);
    for (int k = 0; k < teams->num; ++k) {
        image_run *own = &teams->team[k].run;
        own->densities = teams->run->densities;
        own->all = teams->run->all;
        own->parts = teams->run->parts;
        own->output.profile = ends ? &teams->ends : teams->run->output.profile;
    }
}

/* The ranks of the run make one group after the other. */
static tess_status make_in_turn(const team_work *work)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < work->num; ++k) {
        TESS_TRY(group_images_make(&work->group[k]));
        if (work->end) TESS_TRY(work->end(work->context, k));
    }
cleanup:
    return status;
}

/* Lets `num` teams work until no group is left. */
static void let_teams_work(team_queue *queue, int num)
{
    const int levels = tess_omp_nest(2); /* of teams, and of threads of a team */
#pragma omp parallel for num_threads(num) schedule(static, 1)
    for (int k = 0; k < num; ++k)
        make_as_team(queue, k);
    tess_omp_nest(levels);
}

tess_status thread_teams_make(thread_teams *teams, const team_work *work)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    const tess_lanes *lanes = teams->run->job.backend->lanes;
    const int num = work->num < teams->num ? work->num : teams->num;
    bool is_split = false;
    team_queue queue = {.work = work,
                        .teams = teams,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER};
    if (!teams->team) return make_in_turn(work);
    queue.made = tess_alloc_zero(work->num, sizeof *queue.made);
    if (!queue.made) TESS_FAIL(TESS_ERR_ALLOC, "a round of %d outputs", work->num);
    renew(teams, work->end != NULL);
    is_split = lanes != NULL;
    if (lanes) TESS_TRY(lanes->split(teams->num));
    let_teams_work(&queue, num);
    add_profiles(teams, num, tess_time_now() - start);
    status = queue.status;
cleanup:
    if (is_split) {
        const tess_status joined = lanes->split(1);
        if (status == TESS_OK) status = joined;
    }
    /* nothing is being written from the images of groups that have not ended */
    for (int k = queue.ended; work->end && k < work->num; ++k)
        if (work->group[k].run) work->group[k].run = teams->run;
    renew(teams, false);
    tess_free(queue.made);
    return status;
}
