/* The images that are made of one set of samples. One of them is the target at work,
 * which all of the engine finds in the job. */
#include "imager_targets.h"

#include "tess_mem.h"

tess_status imager_job_set_targets(imager_job *job, const tess_geom *geom,
                                   int num_targets)
{
    tess_status status = TESS_OK;
    job->geom = geom[0];
    if (num_targets == 1) return TESS_OK;
    job->targets.target = tess_alloc_zero(num_targets, sizeof *job->targets.target);
    if (!job->targets.target)
        TESS_FAIL(TESS_ERR_ALLOC, "%d images of a set", num_targets);
    job->targets.num = num_targets;
    for (int k = 0; k < num_targets; ++k)
        job->targets.target[k].geom = geom[k];
cleanup:
    return status;
}

int imager_job_num_targets(const imager_job *job)
{
    return job->targets.num > 1 ? job->targets.num : 1;
}

const tess_geom *imager_job_geom(const imager_job *job, int target)
{
    return target == job->targets.aim ? &job->geom : &job->targets.target[target].geom;
}

const tess_grid_plan *imager_job_plan_of(const imager_job *job, int target)
{
    return target == job->targets.aim ? job->plan : job->targets.target[target].plan;
}

void imager_job_aim(imager_job *job, int target)
{
    if (target == job->targets.aim || !job->targets.target) return;
    const imager_target *next = &job->targets.target[target];
    job->targets.target[job->targets.aim] = (imager_target){
        job->geom, job->plan, job->planes, job->model.planes, job->model.scale};
    job->geom = next->geom;
    job->plan = next->plan;
    job->planes = next->planes;
    job->model.planes = next->model_planes;
    job->model.scale = next->model_scale;
    job->targets.aim = target;
    if (job->steps) tess_steps_aim(job->steps, job->plan, job->planes);
    if (job->model.steps)
        tess_steps_aim(job->model.steps, job->plan, job->model.planes);
}

void imager_job_drop_planes(const imager_job *job, tess_planes *planes)
{
    if (imager_job_in_turn(job) && planes) tess_planes_drop(planes);
}

static void free_plans(imager_job *job)
{
    imager_job_aim(job, 0); /* whose plan owns the tables of the others */
    for (int k = 1; k < job->targets.num; ++k) {
        tess_grid_plan_destroy(job->targets.target[k].plan);
        job->targets.target[k].plan = NULL;
    }
    tess_grid_plan_destroy(job->plan);
    job->plan = NULL;
}

tess_status imager_job_create_plans(imager_job *job, const tess_grid_opts *opts)
{
    tess_status status = TESS_OK;
    const int num = imager_job_num_targets(job);
    tess_geom *geom = tess_alloc(num, sizeof *geom);
    tess_grid_plan **plan = tess_alloc(num, sizeof *plan);
    if (!geom || !plan) TESS_FAIL(TESS_ERR_ALLOC, "plans of %d images", num);
    free_plans(job);
    for (int k = 0; k < num; ++k)
        geom[k] = *imager_job_geom(job, k);
    TESS_TRY(tess_grid_plan_create_targets(geom, num, opts, job->backend, plan));
    for (int k = 0; k < num; ++k)
        *(k == job->targets.aim ? &job->plan : &job->targets.target[k].plan) = plan[k];
cleanup:
    tess_free(geom);
    tess_free(plan);
    return status;
}

void imager_job_free_targets(imager_job *job)
{
    free_plans(job);
    for (int k = 1; k < job->targets.num; ++k) {
        tess_planes_destroy(job->targets.target[k].planes);
        tess_planes_destroy(job->targets.target[k].model_planes);
    }
    tess_free(job->targets.target);
    job->targets = (imager_targets){0};
}
