/* Sets the facets of a run up: reads regions and solutions, chooses which correlations
 * samples keep until they are gridded, and makes each facet a target of the job. */
#define _GNU_SOURCE
#include "image_facets.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "facet_regions.h"
#include "facet_sources.h"
#include "image_kinds.h"
#include "imager_targets.h"
#include "source_origins.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_text.h"

/* ---- what goes together ---- */

/* An option, whether it is given, and why facets have none of it. */
typedef struct facet_excluded {
    bool is_given;
    const char *option, *why;
} facet_excluded;

static tess_status check_excluded(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    const tess_facet_choice *facets = &opts->gridding.facets;
    const facet_excluded all[] = {
        {opts->gridding.w_mode == TESS_W_PROJECTION, "--w projection",
         "its kernels are those of a whole image, and facets have few planes of w"},
        {opts->subtract.model || opts->subtract.pixels, "--subtract",
         "write the model into a column with its gains (tessera predict --facets "
         "--column NAME), and give --subtract-column NAME"},
        {opts->clean.update_model && opts->beside.cube &&
             tess_facet_choice_has_gains(facets),
         "--update-model and --cube",
         "models are predicted from NAME-model-pb.fits of each channel; leave out one"},
        {facets->psf_per_facet && opts->clean.join.num_cleaned > 0,
         "--psf-per-facet and --deconvolution-channels",
         "means of channels have one PSF; leave out one"},
        {opts->beside.primary_beam.model, "--primary-beam",
         "facets have the beam at their directions; use --facet-beam MODEL"},
        {opts->beside.dump_stages, "--dump-stages",
         "stages are those of one image, and facets are many; leave out one"}};
    for (size_t k = 0; k < sizeof all / sizeof *all; ++k)
        if (all[k].is_given)
            TESS_FAIL(TESS_ERR_USAGE, "--facets cannot be combined with %s: %s",
                      all[k].option, all[k].why);
cleanup:
    return status;
}

tess_status image_facets_check(const tess_image_opts *opts, bool later)
{
    tess_status status = TESS_OK;
    const tess_facet_choice *facets = &opts->gridding.facets;
    if (!facets->regions) return TESS_OK;
    TESS_TRY(check_excluded(opts));
    if (facets->psf_per_facet && !image_is_cleaned(opts) && !later)
        TESS_FAIL(TESS_ERR_USAGE, "--psf-per-facet is for cleaning; give --niter");
    for (int k = 0; k < opts->num_pol && tess_facet_choice_has_gains(facets); ++k)
        if (opts->pol[k] < 1)
            TESS_FAIL(TESS_ERR_USAGE,
                      "gains of facets make images of Stokes parameters; use "
                      "--stokes I, or IQUV");
cleanup:
    return status;
}

/* ---- regions ---- */

/* 1 % of the side of a square of the image's area. */
static double feather_of(const facet_setup *setup)
{
    const double area = (double)setup->geom.nx * (double)setup->geom.ny;
    return setup->choice->feather >= 0 ? setup->choice->feather
                                       : ceil(0.01 * sqrt(area));
}

/* Collective. */
static tess_status read_regions(const facet_setup *setup, image_facets *to)
{
    tess_status status = TESS_OK;
    const char *path = facet_regions_path(setup);
    const tess_source_info *info = tess_source_info_of(setup->source);
    const tess_facet_image image = {setup->geom, info->ra_rad, info->dec_rad};
    tess_region_list regions = {0};
    TESS_TRY(facet_regions_take(setup, &image, &to->made, &regions));
    TESS_TRY(tess_comm_agree(
        setup->comm,
        tess_facets_create(path, &regions, &image, feather_of(setup), &to->facets)));
    if (to->facets.num_facets > INT16_MAX)
        TESS_FAIL(TESS_ERR_USAGE, "%s: more than %d facets", path, INT16_MAX);
cleanup:
    tess_region_list_free(&regions);
    return status;
}

static void tell(const facet_setup *setup, const image_facets *facets)
{
    const tess_facets *all = &facets->facets;
    const double pixels = (double)setup->geom.nx * (double)setup->geom.ny;
    double in_facets = 0;
    char outside[64] = "", chosen[48] = "";
    for (int k = 0; k < facets->patches.num; ++k)
        in_facets += (double)all->facet[facets->facet[k]].num_pixels;
    if (all->num_outside > 0)
        snprintf(outside, sizeof outside, "; %lld others are outside of the image",
                 (long long)all->num_outside);
    if (facets->patches.num < all->num_facets)
        snprintf(chosen, sizeof chosen, " of %lld", (long long)all->num_facets);
    tess_log_info("%d%s facets, with slopes of %.4g pixels between them%s",
                  facets->patches.num, chosen, all->feather, outside);
    if (in_facets < pixels && !setup->predicts)
        tess_log_info("%.3g %% of the pixels are in no facet, and are not imaged",
                      100 * (1 - in_facets / pixels));
}

/* ---- targets ---- */

static bool has_name(const facet_names *names, const char *name)
{
    for (int k = 0; k < names->num; ++k)
        if (strcmp(names->name[k], name) == 0) return true;
    return names->num == 0;
}

static void add_target(const facet_setup *setup, int facet, image_facets *to)
{
    to->facet[to->patches.num] = facet;
    to->chosen.facet[to->chosen.num_facets++] = to->facets.facet[facet];
    image_patches_add(&to->patches, &setup->geom, &to->facets.facet[facet].box);
}

/* A name that no facet has, or NULL. Several facets may have one name. */
static const char *absent_name(const facet_names *names, const tess_facets *all)
{
    for (int k = 0; k < names->num; ++k) {
        int64_t f = 0;
        while (f < all->num_facets && strcmp(all->facet[f].name, names->name[k]) != 0)
            ++f;
        if (f == all->num_facets) return names->name[k];
    }
    return NULL;
}

/* Makes targets of the facets that are selected. Local. */
static tess_status choose_targets(const facet_setup *setup, image_facets *to)
{
    tess_status status = TESS_OK;
    const tess_facets *all = &to->facets;
    facet_names names = {0};
    to->facet = tess_alloc(all->num_facets, sizeof *to->facet);
    to->chosen = *all;
    to->chosen.num_facets = 0;
    to->chosen.facet = tess_alloc(all->num_facets, sizeof *to->chosen.facet);
    if (!to->facet || !to->chosen.facet) TESS_FAIL(TESS_ERR_ALLOC, "facets");
    TESS_TRY(image_patches_create(all->num_facets, &to->patches));
    TESS_TRY(facet_names_split("--select-facets", setup->choice->selected, &names));
    for (int k = 0; k < all->num_facets; ++k)
        if (has_name(&names, all->facet[k].name)) add_target(setup, k, to);
    const char *absent = absent_name(&names, all);
    if (absent)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--select-facets: %s has no facet '%s' in the image; tessera facets "
                  "shows their names",
                  facet_regions_path(setup), absent);
cleanup:
    tess_free(names.text);
    return status;
}

/* ---- correlations ---- */

static bool is_parallel(tess_corr code)
{
    return (-(int)code - 1) % 4 < 2;
}

/* Whether images need parallel hands alone: with gains that mix no feeds. */
static bool need_parallel(const facet_setup *setup, const image_facets *facets)
{
    const tess_source_info *info = tess_source_info_of(setup->source);
    if (!facets->gains.is_diagonal || setup->predicts) return false;
    for (int p = 0; p < setup->num_pol; ++p) {
        const tess_pol_mix mix =
            tess_pol_mix_of(&setup->pol[p], info->corr, info->num_corr);
        for (int k = 0; k < mix.num; ++k)
            if (!is_parallel(info->corr[mix.index[k]])) return false;
    }
    return true;
}

/* The least number of correlations that samples have to hold. */
static int least_held(const facet_setup *setup, const image_facets *facets,
                      bool parallel)
{
    if (!facets->gains.is_diagonal) return 4;
    return setup->predicts ? 1 : parallel ? 2 : 4;
}

/* The correlations that gains need, held[TESS_MAX_POL], and their number. Local. */
static int list_correlations(const facet_setup *setup, bool parallel, tess_pol *held)
{
    const tess_source_info *info = tess_source_info_of(setup->source);
    int num = 0;
    for (int k = 0; k < info->num_corr; ++k)
        if (!parallel || is_parallel(info->corr[k]))
            held[num++] = (tess_pol){.code = info->corr[k]};
    return num;
}

/* Whether samples hold the polarisations of the images as they are: no gains are
 * applied to correlations, and none will be. Local. */
static bool holds_images(const facet_setup *setup, const image_facets *to)
{
    tess_pol held[TESS_MAX_POL];
    const bool parallel = need_parallel(setup, to);
    if (setup->predicts) return false;
    if (to->gains.is_scalar || to->sources) return to->gains.is_scalar;
    return !setup->changes || setup->pol[0].code < 1 ||
           tess_source_info_of(setup->source)->corr[0] > 0 ||
           list_correlations(setup, parallel, held) < least_held(setup, to, parallel);
}

/* Which polarisations samples keep: correlations for gains, or those of the images.
 * Local. */
static tess_status choose_held(const facet_setup *setup, image_facets *to)
{
    tess_status status = TESS_OK;
    const tess_source_info *info = tess_source_info_of(setup->source);
    char missing[256] = "";
    if (holds_images(setup, to)) {
        to->num_held = setup->num_pol;
        memcpy(to->held, setup->pol, (size_t)setup->num_pol * sizeof *to->held);
        return TESS_OK;
    }
    const bool parallel = need_parallel(setup, to);
    to->num_held = list_correlations(setup, parallel, to->held);
    if (to->num_held < least_held(setup, to, parallel) || info->corr[0] > 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s has %d of the %d correlations that its solutions and images need",
                  info->meta->path, to->num_held, least_held(setup, to, parallel));
    if (!setup->predicts)
        tess_pol_explain(setup->pol, setup->num_pol, info->corr, info->num_corr,
                         missing, sizeof missing);
    if (*missing) TESS_FAIL(TESS_ERR_USAGE, "%s: %s", info->meta->path, missing);
cleanup:
    return status;
}

/* ---- all ---- */

/* Whether minor loops compare gains. Those of beams alone are mostly alike in all
 * facets, which costs a minor loop neither memory nor time then. Collective. */
static tess_status choose_compared(const facet_setup *setup, image_facets *to)
{
    tess_status status = TESS_OK;
    const facets_compared all = {.time_mjd_s = {-INFINITY, INFINITY}};
    double *likeness = NULL;
    to->unlike = to->sources && !setup->predicts && to->patches.num > 1 &&
                 (setup->cleans || setup->changes);
    if (!to->unlike || setup->choice->solutions || setup->choice->aterms)
        return TESS_OK;
    TESS_TRY(image_facets_compare(setup->comm, to, setup->source, &all, &likeness));
    to->unlike = likeness != NULL;
cleanup:
    tess_free(likeness);
    return status;
}

/* Local. */
static tess_status create_gains(const facet_setup *setup, image_facets *to)
{
    tess_status status = TESS_OK;
    const tess_source_info *info = tess_source_info_of(setup->source);
    facet_gains *gains = &to->gains;
    gains->freq_hz = info->freq_hz;
    gains->num_chan = info->num_chan;
    gains->num_threads = setup->threads;
    gains->num_targets = to->patches.num;
    gains->predicts = setup->predicts;
    if (to->num_held == 0) TESS_TRY(choose_held(setup, to));
    TESS_TRY(
        facet_gains_create(setup->pol, setup->num_pol, to->held, to->num_held, gains));
cleanup:
    return status;
}

/* Has the rows of samples keep what gains depend on, or else their baselines and times,
 * by which tracks are made of rows that came from several ranks (tess_tracks.h). Local.
 */
static tess_status keep_origins(const facet_setup *setup)
{
    const bool with_gains =
        setup->changes || tess_facet_choice_has_gains(setup->choice);
    if (!with_gains && setup->predicts) return TESS_OK;
    if (setup->choice->by_set) tess_source_split_antennas(setup->source);
    const tess_status status =
        tess_source_keep_origins(setup->source, facet_sources_interval(setup->source));
    if (with_gains || status != TESS_ERR_USAGE) return status;
    tess_error_clear(); /* more intervals than can be numbered */
    return tess_source_keep_origins(setup->source, 0);
}

tess_status image_facets_create(const facet_setup *setup, image_facets **out)
{
    tess_status status = TESS_OK;
    tess_comm *comm = setup->comm;
    image_facets *facets = tess_alloc_zero(1, sizeof *facets);
    TESS_TRY(tess_comm_agree(comm, facets ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(read_regions(setup, facets));
    facets->hard = facets->facets;
    facets->hard.feather = 0;
    TESS_TRY(tess_comm_agree(comm, choose_targets(setup, facets)));
    if (tess_comm_rank(comm) == 0) tell(setup, facets);
    facet_sources_start(setup, facets);
    TESS_TRY(tess_comm_agree(comm, keep_origins(setup)));
    TESS_TRY(facet_sources_take(setup, facets));
    status = create_gains(setup, facets);
    if (status == TESS_OK && facets->sources && !setup->predicts &&
        tess_comm_rank(comm) == 0)
        status = facet_sources_tell(setup, facets);
    if (status == TESS_OK && !setup->predicts)
        status = tess_facet_work_create(&facets->hard, &facets->work);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(choose_compared(setup, facets));
    *out = facets;
    facets = NULL;
cleanup:
    image_facets_free(facets);
    return status;
}

/* Frees what changes with gains. Local. */
static void free_gains(image_facets *facets)
{
    facet_gains_free(&facets->gains);
    tess_gains_destroy(facets->sources);
}

void image_facets_free(image_facets *facets)
{
    if (!facets) return;
    tess_held_free(&facets->made);
    tess_facet_work_destroy(facets->work);
    free_gains(facets);
    tess_facets_free(&facets->facets);
    tess_free(facets->chosen.facet);
    tess_free(facets->facet);
    image_patches_free(&facets->patches);
    tess_free(facets);
}

/* Whether samples hold what these gains need. Local. */
static tess_status check_held(const facet_setup *setup, const image_facets *to)
{
    tess_status status = TESS_OK;
    const bool is_plain =
        !setup->predicts && !to->gains.is_scalar && to->held[0].code > 0;
    const int least = least_held(setup, to, need_parallel(setup, to));
    if (!to->sources) return TESS_OK;
    if (is_plain || to->num_held < least)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--facet-solutions: these solutions need %d correlations, and the "
                  "samples hold %d; open the session with solutions of this kind",
                  least, is_plain ? 0 : to->num_held);
cleanup:
    return status;
}

tess_status image_facets_change(const facet_setup *setup, image_facets *facets,
                                facets_change *change)
{
    tess_status status = TESS_OK;
    image_facets made = *facets;
    facet_sources_start(setup, &made);
    TESS_TRY(facet_sources_take(setup, &made));
    status = check_held(setup, &made);
    if (status == TESS_OK) status = create_gains(setup, &made);
    TESS_TRY(tess_comm_agree(setup->comm, status));
    TESS_TRY(choose_compared(setup, &made));
    *change = (facets_change){facets, *facets};
    *facets = made;
    made = (image_facets){0};
cleanup:
    free_gains(&made);
    return status;
}

void image_facets_end_change(facets_change *change, bool keeps)
{
    if (!change->facets) return;
    image_facets ended = keeps ? change->before : *change->facets;
    if (!keeps) *change->facets = change->before;
    free_gains(&ended);
    *change = (facets_change){0};
}

imager_view image_facets_view(const image_facets *facets)
{
    return (imager_view){.num_pol = facets->gains.num_pol,
                         .to_target = facet_gains_take,
                         .from_model = facet_gains_make,
                         .response = facet_gains_power,
                         .lacks = facets->sources && tess_gains_lack(facets->sources),
                         .take = facet_gains_give,
                         .prepare = facet_gains_prepare,
                         .num_prepared = facet_gains_num_prepared(&facets->gains),
                         .group = facet_gains_group,
                         .num_groups = facet_gains_num_groups(&facets->gains),
                         .num_chan = facets->gains.num_chan,
                         .context = &facets->gains};
}

/* ---- a run ---- */

/* Memory for images and a PSF that facets are joined to, their responses and which
 * pixels are covered, and for gains. */
static double bytes_of(const image_run *run, const image_facets *facets)
{
    const double pixels = (double)run->opts->nx * (double)run->opts->ny;
    const double value = image_is_double(run) ? 8 : 4;
    const double roots = facets->sources ? value * run->num_pol : 0;
    /* that of a group of channels, and the copy of its minor loop */
    const double likeness = 16.0 * facets->patches.num * facets->patches.num;
    return pixels / tess_comm_size(run->comm) *
               (value * (run->num_pol + run->opts->make_psf) + roots + run->num_pol) +
           facet_gains_bytes(&facets->gains) + (facets->unlike ? likeness : 0);
}

char *image_facets_file(const tess_image_opts *opts)
{
    static const char END[] = "-facets.reg";
    const size_t length = strlen(opts->output);
    char *path = tess_alloc((int64_t)(length + sizeof END), 1);
    if (!path) return NULL;
    memcpy(path, opts->output, length);
    memcpy(path + length, END, sizeof END);
    return path;
}

tess_status image_facets_open(image_run *run)
{
    tess_status status = TESS_OK;
    char *made = NULL;
    facet_setup setup = {.comm = run->comm,
                         .choice = &run->opts->gridding.facets,
                         .geom = run->whole.geom,
                         .source = run->source,
                         .pol = run->pol,
                         .num_pol = run->num_pol,
                         .threads = run->opts->layout.threads,
                         .changes = run->holds.stay,
                         .cleans = image_is_cleaned(run->opts),
                         .overwrite = run->opts->overwrite};
    if (!setup.choice->regions) return TESS_OK;
    if (setup.choice->number > 0 && !setup.choice->sources && !setup.choice->peak)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--facets %lld puts facets in peaks of a first image, which is not "
                  "made here; give --facet-sources LIST",
                  (long long)setup.choice->number);
    if (setup.choice->writes) {
        made = image_facets_file(run->opts);
        TESS_TRY(tess_comm_agree(run->comm, made ? TESS_OK : TESS_ERR_ALLOC));
        setup.made = made;
    }
    TESS_TRY(image_facets_create(&setup, &run->whole.facets));
    const image_facets *facets = run->whole.facets;
    status =
        imager_job_set_targets(&run->job, facets->patches.geom, facets->patches.num);
    TESS_TRY(tess_comm_agree(run->comm, status));
    run->job.view = image_facets_view(facets);
    if (run->job.backend->grid->take && facets->sources && !facets->gains.table)
        tess_log_info("the gains of a facet are too many for a table: they are applied "
                      "in host memory");
    run->whole.patches = &facets->patches;
    run->job.memory.joined_bytes = bytes_of(run, facets);
cleanup:
    tess_free(made);
    return status;
}

tess_status image_facets_publish(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_facet_choice *choice = &run->opts->gridding.facets;
    if (!run->whole.facets || choice->number == 0 || !choice->writes) return TESS_OK;
    TESS_TRY(tess_held_publish(run->comm, &run->whole.facets->made));
    if (tess_comm_rank(run->comm) == 0)
        tess_log_info("wrote %s-facets.reg", run->opts->output);
cleanup:
    return status;
}

const tess_pol *image_held_pols(const image_run *run, int *num)
{
    const image_facets *facets = run->whole.facets;
    *num = facets ? facets->num_held : run->num_pol;
    return facets ? facets->held : run->pol;
}
