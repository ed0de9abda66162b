/* `tessera plan`: estimates time and memory that an image will take. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_share.h"
#include "image_cubes.h"
#include "image_output.h"
#include "image_place.h"
#include "image_run.h"
#include "image_teams.h"
#include "imager_estimate.h"
#include "imager_passes.h"
#include "imager_targets.h"
#include "imager_window.h"
#include "plan_clean.h"
#include "run_samples.h"
#include "sample_sets.h"
#include "tess_device_comm.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_print.h"
#include "tess_words.h"

/* Of data that do not fit, the run holds the samples of as many outputs as fit, and
 * reads again for the next ones, if those of an output fit and no group needs others
 * (image_first_pass). Collective. */
static tess_status reads_again(const image_run *run, bool kept, bool *again)
{
    *again = false;
    if (kept || run->outputs.num == 1 || run->holds.together) return TESS_OK;
    return image_fits_all(run, image_largest_output_bytes(run), again);
}

/* Readings of data, of which those after the first one serve some outputs each. Samples
 * that are parted on scratch are written once and read once, and have about as many
 * bytes as the data. */
enum { PARTED_READS = 3 };

/* The samples that are held at a time, and what reading them takes. */
static void count_again(const image_run *run, int at_once, imager_workload *work)
{
    const double all = work->sample_bytes;
    const double room = IMAGE_CACHE_SHARE * (double)run->job.memory.rank_bytes -
                        at_once * image_largest_output_bytes(run);
    work->cached = true;
    work->copy_bytes = work->owned_bytes;
    work->sample_bytes = fmin(all, fmax(room, at_once * work->owned_bytes));
    work->num_reads =
        1 + (int)fmin(ceil(all / work->sample_bytes), (double)work->num_outputs);
    if (run->holds.parts && work->num_reads > PARTED_READS)
        work->num_reads = PARTED_READS;
}

/* Bytes of the images of an output on this rank, while teams add them to means over
 * channels, and of what is sent of them: the images, or the sums of a team's own. */
static double adding_bytes(const image_run *run)
{
    const imager_job *job = &run->job;
    const double value = job->plan->is_double ? 8 : 4;
    const double sent = run->teams.sums_means ? sizeof(double) : value;
    const double pixels = (double)run->whole.geom.nx * (double)run->whole.geom.ny;
    if (run->teams.num == 1 || run->outputs.num_channels == 1) return 0;
    return image_kinds_all(&run->output.kinds) * (value + sent) * pixels /
           tess_comm_size(job->comm);
}

/* The work that this rank would have with its slice. Collective. */
static tess_status workload_of(const image_run *run, bool kept, const sample_sets *data,
                               imager_workload *work)
{
    tess_status status = TESS_OK;
    const tess_samples like = tess_source_samples(run->source);
    const double vis_bytes = (double)tess_samples_vis_bytes(&like);
    const int beside = imager_teams_at_once(&run->teams);
    const int64_t at_once = (int64_t)run->teams.num * beside;
    bool again;
    int64_t num_rows, num_vis;
    tess_source_slice(run->source, &num_rows, &num_vis);
    /* the slice is that of a team: all ranks read a slice each, and keep it */
    num_rows /= run->teams.num;
    num_vis /= run->teams.num;
    *work = (imager_workload){
        .num_vis = num_vis,
        .num_runs = data->num_runs,
        .num_rows = num_rows / run->outputs.num_intervals,
        .num_outputs = (run->outputs.num + at_once - 1) / at_once,
        .num_reads = kept ? 1 : 3,
        .vis_bytes = vis_bytes,
        .adding_bytes = adding_bytes(run),
        .kind = like,
        .makes_sources = run->whole.patches && run->opts->make_psf,
        .cached = kept,
        .file_bytes =
            64.0 * (double)num_rows + 12.0 * run->info->num_corr * (double)num_vis,
        .read_bytes = (double)tess_source_block_bytes(run->source),
        .block_bytes = (double)run->block_bytes,
        .sample_bytes =
            vis_bytes * (double)num_vis + IMAGE_ROW_BYTES * (double)num_rows,
        .owned_bytes =
            vis_bytes * (double)data->num_vis / tess_comm_size(run->job.comm) +
            IMAGE_ROW_BYTES * (double)num_rows / (double)run->outputs.num_intervals};
    if (kept && run->outputs.num > 1) work->copy_bytes = work->owned_bytes;
    if (kept && run->holds.together) /* samples of the team's other channels stay */
        work->copy_bytes *=
            ceil((double)run->outputs.num_channels / (double)run->teams.num);
    TESS_TRY(reads_again(run, kept, &again));
    if (again) count_again(run, beside, work);
    if (run->teams.num > 1)
        work->deal_s = imager_estimate_deal(&run->job, &run->outputs,
                                            tess_comm_size(run->teams.all), vis_bytes);
cleanup:
    return status;
}

static void print_seconds(const imager_estimate *estimate)
{
    static const tess_stage shown[] = {
        TESS_STAGE_READ,    TESS_STAGE_WEIGHT, TESS_STAGE_PLAN,   TESS_STAGE_EXCHANGE,
        TESS_STAGE_SORT,    TESS_STAGE_GRID,   TESS_STAGE_REDUCE, TESS_STAGE_FFT,
        TESS_STAGE_CORRECT, TESS_STAGE_CLEAN,  TESS_STAGE_WRITE};
    tess_print("time          about %.2g s:", estimate->total_s);
    for (size_t k = 0; k < sizeof shown / sizeof *shown; ++k)
        if (estimate->seconds[shown[k]] > 0)
            tess_print("%s %s %.2g s", k ? "," : "", tess_stage_name(shown[k]),
                       estimate->seconds[shown[k]]);
    tess_print("\n");
}

/* The output channels of --frame. */
static void print_axis(const channel_axis *axis)
{
    char text[128];
    channel_axis_text(axis, text, sizeof text);
    tess_print("axis          %s\n", text);
}

static void print_work(const image_run *run, const imager_job *job)
{
    char text[512];
    const int ranks = tess_comm_size(run->teams.all);
    tess_grid_plan_text(job->plan, text, sizeof text);
    tess_print("visibilities  %lld of %lld%s, |w| %.4g to %.4g wavelengths\n",
               (long long)job->extent.num_vis, (long long)run->info->num_vis,
               run->outputs.num > 1 ? " in an image" : "", job->extent.w_min_lambda,
               job->extent.w_max_lambda);
    tess_print("grid          %s\n", text);
    if (run->outputs.num > 1)
        tess_print("outputs       %lld sets of images by %d team%s of %d rank%s\n",
                   (long long)run->outputs.num, run->teams.num,
                   run->teams.num == 1 ? "" : "s", ranks / run->teams.num,
                   ranks == run->teams.num ? "" : "s");
    if (run->teams.of_threads.num > 1)
        tess_print("at a time     %d sets on a rank, by teams of %d thread%s%s\n",
                   run->teams.of_threads.num, run->teams.of_threads.threads,
                   run->teams.of_threads.threads == 1 ? "" : "s",
                   job->backend->lanes ? ", each with a lane of the GPU" : "");
    if (run->opts->beside.cube) {
        image_cube_text(&run->output, text, sizeof text);
        tess_print("cubes         %s, of each kind of image\n", text);
    }
    if (run->info->axis) print_axis(run->info->axis);
}

static void print_ranks(const image_run *run, const imager_job *job)
{
    double largest, mean;
    int64_t split;
    const int ranks = tess_comm_size(run->teams.all);
    tess_partition_balance(job->partition, &largest, &mean, &split);
    tess_print(
        "partition     %d rank%s x %d threads: %d w-group%s, planes transformed by "
        "groups of %d\n",
        ranks, ranks == 1 ? "" : "s", run->opts->layout.threads, job->ranks.num_groups,
        job->ranks.num_groups == 1 ? "" : "s", job->ranks.fft_ranks);
    if (job->ranks.shares_planes)
        tess_print("devices       share w-planes %s\n",
                   tess_device_comm_text(job->ranks.devices));
    tess_print(
        "balance       gridding %.1f %% above the mean on the busiest rank, %lld split "
        "bricks, no visibility sent twice\n",
        mean > 0 ? 100 * (largest / mean - 1) : 0.0, (long long)split);
}

static void print_memory(const image_run *run, const imager_job *job,
                         const imager_estimate *estimate)
{
    tess_print(
        "memory a rank about %.0f MiB of %s: %.0f MiB reading, %.0f MiB samples, "
        "%.0f MiB sums of bricks, %.0f MiB planes and images\n",
        estimate->peak / (1 << 20), tess_mem_text((double)run->job.memory.rank_bytes),
        estimate->reading / (1 << 20), estimate->samples / (1 << 20),
        estimate->sums / (1 << 20), estimate->planes / (1 << 20));
    if (image_is_cleaned(run->opts))
        tess_print("cleaning      %.0f MiB of these\n",
                   job->memory.clean_bytes / (1 << 20));
}

/* How often data are read that do not fit into memory. */
static void print_reads(const image_run *run, const imager_estimate *estimate)
{
    const bool several = run->outputs.num > 1;
    if (estimate->num_reads == 1) return;
    if (several && run->opts->scratch)
        tess_print("data          do not fit into memory: read once, and parted by "
                   "output on scratch\n");
    else
        tess_print("data          do not fit into memory: read %d times%s\n",
                   estimate->num_reads,
                   several ? "; with --scratch DIR once, to be parted by output there"
                           : "");
}

/* What a run of images that are cleaned holds on each GPU. */
static void print_device(const image_run *run, const imager_job *job)
{
    const tess_samples like = tess_source_samples(run->source);
    const double vis = (double)run->info->num_vis / tess_comm_size(run->teams.all);
    const double samples = vis * (double)tess_samples_vis_bytes(&like);
    const double images = image_place_bytes(run);
    if (!(images > 0)) return;
    tess_print(
        "GPU memory    about %.0f MiB of %s: %.0f MiB images and minor loops, %.0f MiB "
        "visibilities and their residuals, beside planes\n",
        (images + 2 * samples) / (1 << 20), tess_mem_text((double)job->backend->room()),
        images / (1 << 20), 2 * samples / (1 << 20));
}

/* What planes of facets or pointings take of each GPU. */
static void print_targets(const imager_job *job)
{
    const int num = imager_job_num_targets(job);
    const bool in_turn = imager_job_in_turn(job);
    if (!job->backend->room || num == 1) return;
    tess_print("planes        about %.0f MiB of a GPU for %d facets or pointings, %s\n",
               imager_device_planes_bytes(job, in_turn) / (1 << 20), num,
               in_turn ? "one after the other" : "held together");
}

/* What is guessed is called a guess: `jobs/submit.sh` then asks for more time. */
static void print_guess(const plan_clean *guess)
{
    char peak[48], noise[48];
    if (!(guess->majors > 0)) return;
    tess_words_flux(guess->peak_jy, 3, peak, sizeof peak);
    tess_words_flux(guess->noise_jy, 3, noise, sizeof noise);
    tess_print("guess         from sources up to about %s and noise of %s: %.0f major "
               "iterations, %.2g s of residual images; %.2g minor ones, %.2g s. Nobody "
               "knows how many sources there are\n",
               peak, noise, guess->majors, guess->major_s, guess->iterations,
               guess->minor_s);
    if (guess->need.device_bytes > 0)
        tess_print("minor loops   on the device, with %.0f MiB of its memory\n",
                   guess->need.device_bytes / (1 << 20));
}

static void print_costs(const image_run *run, const imager_job *job)
{
    const int threads = run->opts->layout.threads;
    if (job->costs.measured)
        tess_print(
            "costs         measured on this machine, whose memory has work for %d "
            "threads that copy, %d that sort and %d that read\n",
            tess_costs_threads(&job->costs, TESS_TRAFFIC_COPY, threads),
            tess_costs_threads(&job->costs, TESS_TRAFFIC_SORT, threads),
            tess_costs_threads(&job->costs, TESS_TRAFFIC_READ, threads));
    else
        tess_print("costs         built in, not measured on this machine%s\n",
                   job->backend->start ? ": those of an H200" : "");
}

static void print_plan(const image_run *run, const imager_job *job,
                       const imager_estimate *estimate, const plan_clean *guess)
{
    print_work(run, job);
    print_ranks(run, job);
    print_memory(run, job, estimate);
    print_reads(run, estimate);
    print_device(run, job);
    print_targets(job);
    print_costs(run, job);
    print_guess(guess);
    print_seconds(estimate);
}

/* Counts the bricks that samples of an output, or of all outputs (ALL_OUTPUTS), have on
 * a job's plan, and the work with them. Collective. */
enum { ALL_OUTPUTS = -1 };
static tess_status count_output(image_run *run, const imager_job *job, int64_t output,
                                bool kept, tess_brick_list *bricks,
                                imager_workload *work)
{
    tess_status status = TESS_OK;
    sample_sets data = {0};
    TESS_TRY(image_data_for(run, output == ALL_OUTPUTS ? 0 : output, &data));
    if (output == ALL_OUTPUTS) image_want_all(run);
    data.with_planes = true;
    data.subtract = NULL; /* values do not matter */
    status = imager_count_bricks(job, &data, false, bricks);
    TESS_TRY(tess_comm_agree(run->comm, status));
    TESS_TRY(workload_of(run, kept, &data, work));
cleanup:
    image_data_free(&data);
    return status;
}

/* Estimates what one output takes, partitioned as the run would partition it.
 * Collective. */
static tess_status estimate_output(image_run *run, const tess_image_opts *opts,
                                   const tess_costs *costs, int64_t output, bool kept,
                                   imager_estimate *estimate)
{
    tess_status status = TESS_OK;
    tess_brick_list bricks = {0};
    imager_workload work;
    TESS_TRY(count_output(run, &run->job, output, kept, &bricks, &work));
    TESS_TRY(imager_job_partition(&run->job, &bricks, true));
    work.costs = *costs;
    work.scratch = opts->scratch != NULL;
    if (work.scratch && !work.cached) work.num_reads = 2;
    if (image_has_density(&opts->weights))
        work.num_densities = tess_source_samples(run->source).num_weight;
    TESS_TRY(imager_estimate_make(&run->job, &work, &bricks, estimate));
cleanup:
    tess_brick_list_free(&bricks);
    return status;
}

/* Takes over the memory of the other output if that needs more; times stay. */
static void keep_larger_memory(imager_estimate *estimate, const imager_estimate *other)
{
    if (other->peak <= estimate->peak) return;
    estimate->peak = other->peak;
    estimate->reading = other->reading;
    estimate->samples = other->samples;
    estimate->sums = other->sums;
    estimate->planes = other->planes;
}

/* A model of other pixels than the images'. It is predicted on a plan of its own, and
 * subtracted where samples are read. */
typedef struct early_model {
    imager_estimate
        estimate;  /* estimate of a prediction for all samples that are in memory */
    double planes; /* bytes of the model that stay while images are made; 0: there is no
                      model */
    double predicted; /* bytes of predicted visibilities */
} early_model;

/* Estimates the prediction of that model before teams are formed, because all ranks
 * predict together. Collective. */
static tess_status estimate_early(image_run *run, const tess_costs *costs, bool kept,
                                  early_model *early)
{
    tess_status status = TESS_OK;
    imager_job *job = &run->less.predictor.job;
    tess_layout layout = run->opts->layout;
    tess_brick_list bricks = {0};
    imager_workload work;
    *early = (early_model){0};
    if (!image_subtracts_early(run)) return TESS_OK;
    /* as imager_predict_window() has it */
    if (layout.reproducible) layout.forced.plane_window = -1;
    job->layout = &layout;
    job->extent = run->job.extent;
    TESS_TRY(imager_job_plan(job));
    TESS_TRY(device_share_choose(job));
    TESS_TRY(count_output(run, job, ALL_OUTPUTS, kept, &bricks, &work));
    TESS_TRY(imager_job_partition(job, &bricks, false));
    work.costs = *costs;
    work.num_outputs = 1;
    work.copy_bytes = 0;
    TESS_TRY(imager_estimate_make(job, &work, &bricks, &early->estimate));
    const double samples = work.cached ? work.sample_bytes : work.block_bytes;
    /* planes at rest have images alone */
    early->planes = job->num_images * imager_target_pixels(job) *
                    (job->plan->is_double ? 8 : 4) / job->ranks.fft_ranks;
    early->predicted =
        samples / work.vis_bytes * job->num_images * (image_is_double(run) ? 16 : 8);
cleanup:
    job->layout = &run->opts->layout;
    tess_brick_list_free(&bricks);
    return status;
}

/* Adds the estimate of that prediction to the one of images. Samples that are not kept
 * are predicted while planes and sums of images are in memory. */
static void add_early(const early_model *early, bool kept, imager_estimate *estimate)
{
    static const tess_stage stages[] = {TESS_STAGE_SORT, TESS_STAGE_EXCHANGE,
                                        TESS_STAGE_GRID, TESS_STAGE_REDUCE,
                                        TESS_STAGE_FFT};
    const double images = kept ? 0 : estimate->sums + estimate->planes;
    if (early->planes == 0) return;
    estimate->peak = fmax(estimate->peak + early->planes,
                          early->estimate.peak + early->predicted + images);
    estimate->planes += early->planes;
    for (size_t k = 0; k < sizeof stages / sizeof *stages; ++k) {
        estimate->seconds[stages[k]] += early->estimate.seconds[stages[k]];
        estimate->total_s += early->estimate.seconds[stages[k]];
    }
}

/* --common-beam makes the images of all channels once more, unless these are cleaned
 * together. */
static void add_beams(const image_run *run, bool kept, imager_estimate *estimate)
{
    static const tess_stage stages[] = {
        TESS_STAGE_WEIGHT, TESS_STAGE_EXCHANGE, TESS_STAGE_SORT,    TESS_STAGE_GRID,
        TESS_STAGE_REDUCE, TESS_STAGE_FFT,      TESS_STAGE_CORRECT, TESS_STAGE_READ};
    const int count = (int)(sizeof stages / sizeof *stages) - kept;
    if (!run->opts->clean.beam.common || run->outputs.num_channels == 1 ||
        image_joins_channels(run->opts))
        return;
    for (int k = 0; k < count; ++k) {
        estimate->total_s += estimate->seconds[stages[k]];
        estimate->seconds[stages[k]] *= 2;
    }
}

/* Adds the memory of further outputs that a rank makes at a time. */
static void add_thread_teams(const image_run *run, imager_estimate *estimate)
{
    const imager_thread_teams *teams = &run->teams.of_threads;
    const double more = teams->num - 1, samples = teams->sample_bytes;
    if (!(more > 0)) return;
    if (run->teams.turns > 1) /* images that wait for earlier outputs */
        estimate->peak += teams->num * run->job.memory.backlog_bytes;
    estimate->peak +=
        more * (samples + estimate->sums + estimate->planes +
                run->job.memory.clean_bytes + run->job.memory.backlog_bytes);
    estimate->samples += more * samples;
    estimate->sums *= teams->num;
    estimate->planes *= teams->num;
}

/* Times are those of the largest output. Outputs of as many visibilities differ in the
 * lines of the grid that they cover, and thus in memory: the Earth turns between
 * intervals, and the uv plane grows with the channel. The last, the first and the
 * middle output show the range of memory. Each costs another reading of data that do
 * not fit in memory; of such data only the last and the largest output are estimated.
 */
static tess_status estimate_outputs(image_run *run, const tess_image_opts *opts,
                                    const tess_costs *costs, bool kept,
                                    imager_estimate *estimate)
{
    tess_status status = TESS_OK;
    const output_table *outputs = &run->outputs;
    const int64_t shown[] = {outputs->num - 1, 0, outputs->num / 2};
    const int num_shown = kept ? 3 : 1;
    imager_estimate other[3] = {0};
    int64_t largest = 0;
    for (int64_t k = 1; k < outputs->num; ++k)
        if (outputs->extent[k].num_vis > outputs->extent[largest].num_vis) largest = k;
    for (int k = 0; k < num_shown; ++k)
        if (shown[k] != largest && outputs->extent[shown[k]].num_vis > 0)
            TESS_TRY(estimate_output(run, opts, costs, shown[k], kept, &other[k]));
    /* the plan that is printed is that of the last output that is partitioned */
    TESS_TRY(estimate_output(run, opts, costs, largest, kept, estimate));
    for (int k = 0; k < num_shown; ++k)
        keep_larger_memory(estimate, &other[k]);
cleanup:
    return status;
}

/* Forms the teams as the run will, which decides by the costs of its plan and not by
 * those that were measured for the estimate. Collective. */
static tess_status form_teams(image_run *run, const tess_costs *costs, bool kept)
{
    const tess_costs measured = run->job.plan->costs;
    run->job.plan->costs = *costs;
    const tess_status status = image_form_teams(run, kept);
    run->job.plan->costs = measured;
    return status;
}

/* Refuses what the run will refuse, and finds whether the run will part samples on
 * scratch and hold those of some outputs at a time. Collective. */
static tess_status expect_holding(image_run *run, const tess_image_opts *opts,
                                  bool kept)
{
    tess_status status = TESS_OK;
    if (run->holds.together && !opts->scratch)
        TESS_TRY(image_check_kept(run, kept, "cleaning channels together"));
    TESS_TRY(reads_again(run, kept, &run->holds.parts));
    run->holds.parts = run->holds.parts && opts->scratch;
cleanup:
    return status;
}

/* Makes the plan of the images, by the costs of which the run makes it too. Devices are
 * connected as they will be, and their links measured. Collective. */
static tess_status plan_job(imager_job *job, tess_costs *costs)
{
    tess_status status = TESS_OK;
    TESS_TRY(imager_job_plan(job));
    TESS_TRY(device_share_choose(job));
    TESS_TRY(imager_job_choose_turns(job));
    *costs = job->plan->costs;
    TESS_TRY(imager_job_calibrate(job));
cleanup:
    return status;
}

/* The steps of tess_imager_image up to the partition of the work. */
tess_status tess_imager_plan(tess_comm *comm, const tess_image_opts *opts,
                             tess_profile *profile)
{
    tess_status status = TESS_OK;
    tess_image_opts natural = *opts; /* weights do not change the plan */
    image_run run = {.comm = comm,
                     .opts = &natural,
                     .profile = profile,
                     .holds = {.together = image_joins_channels(opts)},
                     .teams = {.all = comm, .num = 1}};
    imager_estimate estimate;
    early_model early;
    image_power power = {0};
    plan_clean guess;
    tess_costs costs;
    tess_layout team;
    bool kept;
    natural.weights.weighting = TESS_NATURAL;
    natural.weights.taper = (tess_taper){0};
    natural.scratch = NULL; /* nothing is read a second time */
    tess_progress_run(true);
    TESS_TRY(image_set_up(&run));
    run.mode = DATA_STREAMED;
    TESS_TRY(image_survey_blocks(&run, image_is_cleaned(opts) ? &power : NULL));
    TESS_TRY(image_finish_survey(&run));
    if (run.job.extent.num_vis == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: nothing to image", run.info->meta->path);
    TESS_TRY(plan_job(&run.job, &costs));
    TESS_TRY(image_fits_all(&run, image_cached_bytes(&run), &kept));
    TESS_TRY(expect_holding(&run, opts, kept));
    TESS_TRY(estimate_early(&run, &costs, kept, &early));
    TESS_TRY(form_teams(&run, &costs, kept));
    team = natural.layout;
    team.threads = run.teams.of_threads.threads;
    run.job.layout = &team;
    TESS_TRY(estimate_outputs(&run, opts, &costs, kept, &estimate));
    add_thread_teams(&run, &estimate);
    add_beams(&run, kept, &estimate);
    add_early(&early, kept, &estimate);
    run.opts = opts;
    image_place_expect(&run);
    TESS_TRY(plan_clean_guess(&run, &power, kept, &estimate, &guess));
    run.opts = &natural;
    natural.scratch = opts->scratch; /* for what is printed */
    imager_job_warn_of_w(&run.job);
    if (tess_comm_rank(comm) == 0) print_plan(&run, &run.job, &estimate, &guess);
    TESS_TRY(imager_tell_need(&run.job, estimate.peak));
cleanup:
    tess_progress_run(false);
    image_free_run(&run);
    return status;
}
