/* Makes outputs side by side, one by each team of threads. */
#include "thread_teams.h"

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

/* Makes an output. All that belongs to the threads of OpenMP in it, such as a thread's
 * number, is that of a region of its own. */
static void make_one(thread_team *team, int number, channel_group *group)
{
#pragma omp parallel num_threads(1)
    {
        tess_profile_start_team(&team->profile,
                                number == 0 ? team->run.output.profile->trace : NULL);
        team->status = make_in_lane(team, number, group);
        imager_job_note_held(&team->run.job);
    }
}

/* Adds what the teams have done to the profile of the rank. While they work side by
 * side, the time that passes is shared among stages as the sum of their times is. */
static void add_profiles(const thread_teams *teams, int num, double passed_s)
{
    double all_s = 0;
    for (int k = 0; k < num; ++k)
        all_s += tess_profile_seconds(&teams->team[k].profile);
    for (int k = 0; k < num; ++k)
        tess_profile_add_team(teams->run->profile, &teams->team[k].profile,
                              all_s > 0 ? passed_s / all_s : 0);
}

/* What the run of the rank has changed since the teams were made. */
static void renew(const thread_teams *teams)
{
    for (int k = 0; k < teams->num; ++k) {
        image_run *own = &teams->team[k].run;
        own->densities = teams->run->densities;
        own->all = teams->run->all;
        own->parts = teams->run->parts;
    }
}

tess_status thread_teams_make(thread_teams *teams, channel_group *groups, int num)
{
    tess_status status = TESS_OK;
    const double start = tess_time_now();
    const tess_lanes *lanes = teams->run->job.backend->lanes;
    if (!teams->team) return group_images_make(groups);
    renew(teams);
    if (lanes) TESS_TRY(lanes->split(teams->num));
    const int levels = tess_omp_nest(2); /* of teams, and of threads of a team */
#pragma omp parallel for num_threads(num) schedule(static, 1)
    for (int k = 0; k < num; ++k)
        make_one(&teams->team[k], k, &groups[k]);
    tess_omp_nest(levels);
    add_profiles(teams, num, tess_time_now() - start);
    for (int k = 0; k < num; ++k)
        TESS_TRY(teams->team[k].status);
cleanup:
    if (lanes) {
        const tess_status joined = lanes->split(1);
        if (status == TESS_OK) status = joined;
    }
    return status;
}
