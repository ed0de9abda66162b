/* Sets the facets of a run up: reads regions and solutions, chooses which correlations
 * samples keep until they are gridded, and makes each facet a target of the job. */
#define _GNU_SOURCE
#include "image_facets.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "facet_regions.h"
#include "image_kinds.h"

#include "imager_targets.h"
#include "source_origins.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_text.h"

/* Gains are compared at so many times of a run, fewer than by `tessera facets`, so that
 * no run takes noticeably longer. */
enum { MOST_NAMES = 256, MOST_COMPARED = 4 };

/* Pointings that are the same, as for primary beams of images. */
static const double SAME_POINTING_RAD = 1e-6;

/* Gains of facets are alike if their likeness is within this of 1. */
static const double ALIKE = 1e-3;

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

/* Names that commas separate. */
typedef struct name_list {
    char *text; /* owned */
    const char *name[MOST_NAMES];
    int num;
} name_list;

/* Local. */
static tess_status split_names(const char *option, const char *text, name_list *names)
{
    tess_status status = TESS_OK;
    if (!text) return TESS_OK;
    char *next = names->text = tess_strdup(text);
    if (!next) TESS_FAIL(TESS_ERR_ALLOC, "%s", text);
    while (next) {
        const char *name = strsep(&next, ",");
        if (!*name || names->num == MOST_NAMES)
            TESS_FAIL(TESS_ERR_USAGE, "%s: '%s' is no list of at most %d names", option,
                      text, MOST_NAMES);
        names->name[names->num++] = name;
    }
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

static bool has_name(const name_list *names, const char *name)
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
static const char *absent_name(const name_list *names, const tess_facets *all)
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
    name_list names = {0};
    to->facet = tess_alloc(all->num_facets, sizeof *to->facet);
    to->chosen = *all;
    to->chosen.num_facets = 0;
    to->chosen.facet = tess_alloc(all->num_facets, sizeof *to->chosen.facet);
    if (!to->facet || !to->chosen.facet) TESS_FAIL(TESS_ERR_ALLOC, "facets");
    TESS_TRY(image_patches_create(all->num_facets, &to->patches));
    TESS_TRY(split_names("--select-facets", setup->choice->selected, &names));
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

/* ---- gains ---- */

/* The shortest integration of all observations, in which solutions do not change. */
static double interval_of(tess_source *source)
{
    double interval_s = 0;
    for (int k = 0; k < tess_source_num_readers(source); ++k) {
        const double own =
            tess_vis_reader_meta(tess_source_reader(source, k))->integration_s;
        if (own > 0 && (!(interval_s > 0) || own < interval_s)) interval_s = own;
    }
    return interval_s > 0 ? interval_s : 1;
}

/* What gains depend on of all observations together: `meta` is zeroed, and gets arrays.
 * Local. */
static tess_status describe(const facet_setup *setup, int32_t num_antennas,
                            tess_vis_meta *meta)
{
    tess_status status = TESS_OK;
    const tess_source_info *info = tess_source_info_of(setup->source);
    meta->antenna = tess_alloc(num_antennas, sizeof *meta->antenna);
    meta->field = tess_alloc(1, sizeof *meta->field);
    if (!meta->antenna || !meta->field) TESS_FAIL(TESS_ERR_ALLOC, "gains of facets");
    memcpy(meta->telescope, info->meta->telescope, sizeof meta->telescope);
    meta->num_antennas = num_antennas;
    for (int32_t k = 0; k < num_antennas; ++k)
        meta->antenna[k] = *tess_source_antenna(setup->source, k);
    meta->field[0] = *tess_source_field(setup->source, 0);
    meta->num_fields = 1;
    meta->time_start_mjd_s = info->time_first;
    meta->time_end_mjd_s = info->time_end;
    for (int k = 1; setup->choice->beam.model && tess_source_field(setup->source, k);
         ++k) {
        const double *first = meta->field[0].pointing_rad;
        const double *other = tess_source_field(setup->source, k)->pointing_rad;
        if (tess_facets_angle(first[0], first[1], other[0], other[1]) >
            SAME_POINTING_RAD)
            TESS_FAIL(TESS_ERR_INPUT,
                      "--facet-beam: field %s points elsewhere than field %s; image "
                      "each alone (--field)",
                      tess_source_field(setup->source, k)->name, meta->field[0].name);
    }
cleanup:
    return status;
}

/* Which observation's solutions antennas have, and what these have to hold for. */
typedef struct solution_sets {
    int *of_antenna;            /* [num_antennas] */
    tess_solution_reach *reach; /* [num_sets] */
} solution_sets;

static void widen(double range[2], double low, double high)
{
    range[0] = fmin(range[0], low);
    range[1] = fmax(range[1], high);
}

/* The times and frequencies of each observation; none of those that are no part of the
 * source, whose files then are read in full. */
static void find_reaches(const facet_setup *setup, tess_solution_reach *reach)
{
    tess_source *source = setup->source;
    const tess_facet_choice *choice = setup->choice;
    const tess_recipe *recipe;
    for (int k = 0; k < choice->num_sets; ++k)
        reach[k] = (tess_solution_reach){{INFINITY, -INFINITY}, {INFINITY, -INFINITY}};
    for (int k = 0; k < tess_source_num_segments(source); ++k) {
        const tess_vis_segment *segment = tess_source_segment(source, k, &recipe);
        const int reader = tess_source_segment_reader(source, k);
        const tess_vis_meta *meta =
            tess_vis_reader_meta(tess_source_reader(source, reader));
        tess_solution_reach *own =
            &reach[choice->first_set + tess_source_set(source, reader)];
        widen(own->time_mjd_s, meta->time_start_mjd_s, meta->time_end_mjd_s);
        for (int64_t c = 0; c < segment->num_chan; ++c)
            widen(own->freq_hz, segment->freq_hz[c], segment->freq_hz[c]);
    }
    for (int k = 0; k < choice->num_sets; ++k)
        if (!(reach[k].time_mjd_s[0] <= reach[k].time_mjd_s[1]))
            reach[k] = (tess_solution_reach){{0, 0}, {0, 0}};
}

/* Local. */
static tess_status divide_solutions(const facet_setup *setup, int32_t num_antennas,
                                    solution_sets *sets)
{
    tess_status status = TESS_OK;
    const tess_facet_choice *choice = setup->choice;
    if (!choice->by_set) return TESS_OK;
    sets->of_antenna = tess_alloc(num_antennas, sizeof *sets->of_antenna);
    sets->reach = tess_alloc(choice->num_sets, sizeof *sets->reach);
    if (!sets->of_antenna || !sets->reach)
        TESS_FAIL(TESS_ERR_ALLOC, "solutions of %d observations", choice->num_sets);
    for (int32_t k = 0; k < num_antennas; ++k)
        sets->of_antenna[k] =
            choice->first_set + tess_source_antenna_set(setup->source, k);
    find_reaches(setup, sets->reach);
cleanup:
    return status;
}

/* Whether a correlation is of circular feeds: RR, LL, RL or LR. */
static bool is_circular(tess_corr code)
{
    return code < 0 && code >= -4;
}

/* Collective. */
static tess_status read_gains(const facet_setup *setup, int32_t num_antennas,
                              image_facets *to)
{
    tess_status status = TESS_OK;
    const tess_facet_choice *choice = setup->choice;
    const tess_source_info *info = tess_source_info_of(setup->source);
    name_list files = {0}, tables = {0};
    solution_sets sets = {0};
    tess_vis_meta meta = {.num_antennas = 0};
    status = split_names("--facet-solutions", choice->solutions, &files);
    if (status == TESS_OK) status = split_names("--soltabs", choice->tables, &tables);
    if (status == TESS_OK) status = describe(setup, num_antennas, &meta);
    if (status == TESS_OK) status = divide_solutions(setup, num_antennas, &sets);
    TESS_TRY(tess_comm_agree(setup->comm, status));
    const tess_gains_opts opts = {
        .meta = &meta,
        .num_chan = info->num_chan,
        .freq_hz = info->freq_hz,
        .solutions = {.path = files.name,
                      .num_files = files.num,
                      .table = tables.name,
                      .num_tables = tables.num,
                      .num_groups = choice->by_set ? choice->num_sets : 0,
                      .antenna_group = sets.of_antenna,
                      .reach = sets.reach,
                      .is_linear = choice->is_linear,
                      .any_direction = choice->any_direction,
                      .is_circular = is_circular(info->corr[0])},
        .step_s = interval_of(setup->source),
        .aterms = choice->aterms,
        .beam = choice->beam};
    TESS_TRY(tess_gains_create(setup->comm, &to->chosen, &opts, &to->sources));
cleanup:
    tess_free(files.text);
    tess_free(tables.text);
    tess_free(sets.of_antenna);
    tess_free(sets.reach);
    tess_free(meta.antenna);
    tess_free(meta.field);
    return status;
}

/* Tells how far the gains of facets hold, of the facet where they hold least. Local. */
static tess_status tell_changes(const facet_setup *setup, const image_facets *facets)
{
    tess_status status = TESS_OK;
    const tess_facets *all = &facets->chosen;
    const tess_source_info *info = tess_source_info_of(setup->source);
    const double ends_hz[] = {info->freq_hz[0], info->freq_hz[info->num_chan - 1]};
    const tess_gain_change *worst = NULL;
    const char *name = "";
    char error[32] = "over 100 %", within[48];
    tess_gain_change *change = tess_alloc_zero(all->num_facets, sizeof *change);
    if (!change) TESS_FAIL(TESS_ERR_ALLOC, "gains of facets");
    TESS_TRY(tess_gains_changes(facets->sources, all, MOST_COMPARED,
                                info->num_chan > 1 ? 2 : 1, ends_hz, change));
    for (int64_t k = 0; k < all->num_facets; ++k) {
        const tess_gain_change *own = &change[k];
        if (own->neighbour < 0 || (worst && !(own->error > worst->error))) continue;
        worst = own;
        name = all->facet[k].name;
    }
    if (!worst || !(worst->error > 1e-6)) goto cleanup; /* more than rounding */
    if (worst->error < 1) snprintf(error, sizeof error, "%.2g %%", 100 * worst->error);
    tess_text_angle(0.01 / worst->error * worst->corner_rad, within, sizeof within);
    tess_log_info("if gains change evenly between facets, visibilities of a source in "
                  "the farthest corner of facet %s are wrong by %s, and by 1 %% within "
                  "%s of its direction",
                  name, error, within);
cleanup:
    tess_free(change);
    return status;
}

void image_facets_warn_of_lacks(const image_facets *facets)
{
    const tess_solutions *solutions =
        facets->sources ? tess_gains_solutions(facets->sources) : NULL;
    char text[400] = "";
    size_t used = 0;
    for (int k = 0; solutions && k < facets->patches.num; ++k) {
        double share = 0;
        for (int table = 0; table < tess_solutions_num_tables(solutions); ++table) {
            const tess_solution_range range = tess_solutions_range(solutions, table, k);
            share = fmax(share, (double)range.num_bad / (double)range.num_values);
        }
        if (share > 0 && used < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "%s facet %s (%.3g %% of its solutions)",
                                     used ? "," : "", facets->chosen.facet[k].name,
                                     100 * share);
    }
    if (used > 0)
        tess_log_warn("visibilities without a solution are predicted without the "
                      "facets that lack it:%s",
                      text);
}

/* Begins with gains of 1. Local. */
static void start_gains(const facet_setup *setup, image_facets *to)
{
    to->sources = NULL;
    to->likeness = NULL;
    to->antenna_set = NULL;
    to->gains =
        (facet_gains){.is_scalar = setup->choice->is_scalar, .is_diagonal = true};
}

/* Reads the gains that are asked for, if any. Collective. */
static tess_status take_gains(const facet_setup *setup, image_facets *to)
{
    tess_status status = TESS_OK;
    const tess_origins *origins = tess_source_samples(setup->source).origins;
    if (!tess_facet_choice_has_gains(setup->choice)) return TESS_OK;
    TESS_TRY(read_gains(setup, origins->num_antennas, to));
    to->gains.sources = to->sources;
    to->gains.origins = origins;
    to->gains.is_linear = setup->choice->is_linear || tess_gains_turn(to->sources);
    to->gains.num_antennas = origins->num_antennas;
    to->gains.is_diagonal = tess_gains_shape(to->sources) < TESS_GAIN_FULL;
    if (to->gains.is_scalar && !to->gains.is_diagonal)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--scalar-visibilities is for gains that do not mix feeds, and these "
                  "do: leave it out, or give -diagonal-visibilities where the command "
                  "line is WSClean's");
cleanup:
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

tess_status image_facets_likeness(const image_facets *facets, int64_t num_freq,
                                  const double *freq_hz, double *likeness)
{
    return tess_gains_likeness(facets->sources, facets->patches.num,
                               facets->antenna_set, facets->num_sets, num_freq, freq_hz,
                               likeness);
}

/* For minor loops. Antennas of observations with solutions of their own have baselines
 * among themselves. Local. */
static tess_status compare_gains(const facet_setup *setup, image_facets *to)
{
    tess_status status = TESS_OK;
    const int num = to->patches.num;
    if (!to->sources || setup->predicts || num < 2) return TESS_OK;
    if (!setup->cleans && !setup->changes) return TESS_OK;
    to->likeness = tess_alloc((int64_t)num * num, sizeof *to->likeness);
    if (!to->likeness) TESS_FAIL(TESS_ERR_ALLOC, "gains of facets");
    const int64_t num_antennas = tess_gains_num_antennas(to->sources);
    if (setup->choice->by_set && num_antennas > 0) {
        to->antenna_set = tess_alloc(num_antennas, sizeof *to->antenna_set);
        if (!to->antenna_set) TESS_FAIL(TESS_ERR_ALLOC, "gains of facets");
        for (int64_t k = 0; k < num_antennas; ++k)
            to->antenna_set[k] = setup->choice->first_set +
                                 tess_source_antenna_set(setup->source, (int32_t)k);
        to->num_sets = setup->choice->num_sets;
    }
    TESS_TRY(
        image_facets_likeness(to, to->gains.num_chan, to->gains.freq_hz, to->likeness));
cleanup:
    return status;
}

/* Gains that are alike in all facets, such as those of beams alone, are no matter of
 * minor loops. Collective. */
static tess_status forget_alike(tess_comm *comm, image_facets *to)
{
    tess_status status = TESS_OK;
    const int64_t count = (int64_t)to->patches.num * to->patches.num;
    double unlike = 0;
    for (int64_t k = 0; to->likeness && k < count; ++k)
        unlike = fmax(unlike, 1 - to->likeness[k]);
    TESS_TRY(tess_comm_allreduce_f64(comm, &unlike, 1, TESS_MAX));
    if (unlike >= ALIKE) return TESS_OK;
    tess_free(to->likeness);
    to->likeness = NULL;
cleanup:
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
    TESS_TRY(compare_gains(setup, to));
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
        tess_source_keep_origins(setup->source, interval_of(setup->source));
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
    start_gains(setup, facets);
    TESS_TRY(tess_comm_agree(comm, keep_origins(setup)));
    TESS_TRY(take_gains(setup, facets));
    status = create_gains(setup, facets);
    if (status == TESS_OK && facets->sources && !setup->predicts &&
        tess_comm_rank(comm) == 0)
        status = tell_changes(setup, facets);
    if (status == TESS_OK && !setup->predicts)
        status = tess_facet_work_create(&facets->hard, &facets->work);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(forget_alike(comm, facets));
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
    tess_free(facets->likeness);
    tess_free(facets->antenna_set);
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
    start_gains(setup, &made);
    TESS_TRY(take_gains(setup, &made));
    status = check_held(setup, &made);
    if (status == TESS_OK) status = create_gains(setup, &made);
    TESS_TRY(tess_comm_agree(setup->comm, status));
    TESS_TRY(forget_alike(setup->comm, &made));
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

/* ---- weights ---- */

static tess_status begin_weights(const patch_weigher *weigher, void **work)
{
    tess_status status = TESS_OK;
    tess_facet_work *begun = NULL;
    TESS_TRY(tess_facet_work_create(weigher->context, &begun));
    *work = begun;
cleanup:
    return status;
}

static void end_weights(void *work)
{
    tess_facet_work_destroy(work);
}

static void weigh(const patch_weigher *weigher, void *work, int64_t row, int64_t x0,
                  int64_t x1, double *weight)
{
    tess_facets_weights(weigher->context, work, weigher->patch, row, x0, x1, weight);
}

patch_weigher image_facets_weigher(const image_facets *facets, int target,
                                   bool of_model)
{
    return (patch_weigher){.begin = begin_weights,
                           .end = end_weights,
                           .weigh = weigh,
                           .context = of_model ? &facets->hard : &facets->facets,
                           .patch = facets->facet[target]};
}

tess_status image_facets_weigh(const void *context, int target, int64_t row,
                               double *weight)
{
    tess_status status = TESS_OK;
    const image_facets *facets = context;
    const tess_facet_box box = image_patches_box(&facets->patches, target);
    const patch_weigher weigher = image_facets_weigher(facets, target, true);
    void *work = NULL;
    TESS_TRY(begin_weights(&weigher, &work));
    weigh(&weigher, work, box.y0 + row, box.x0, box.x1, weight);
cleanup:
    end_weights(work);
    return status;
}

/* The last facet where borders overlap by less than a pixel, as find_row() has it. */
int image_facets_place(void *context, int64_t index)
{
    const image_facets *facets = context;
    int place = 0;
    const int64_t nx = facets->hard.image.geom.nx;
    const int64_t x = index % nx, y = index / nx;
    for (int k = 0; k < facets->patches.num; ++k) {
        const tess_facet_box *box = &facets->hard.facet[facets->facet[k]].box;
        double weight = 0;
        if (x < box->x0 || x >= box->x1 || y < box->y0 || y >= box->y1) continue;
        tess_facets_weights(&facets->hard, facets->work, facets->facet[k], y, x, x + 1,
                            &weight);
        if (weight > 0) place = k;
    }
    return place;
}

/* Sets the places of a row's pixels. `weight` has room for a row. */
static void find_row(const image_facets *facets, tess_facet_work *work, int64_t row,
                     double *weight, int16_t *place)
{
    memset(place, 0, (size_t)facets->hard.image.geom.nx * sizeof *place);
    for (int k = 0; k < facets->patches.num; ++k) {
        const tess_facet_box *box = &facets->hard.facet[facets->facet[k]].box;
        if (row < box->y0 || row >= box->y1) continue;
        tess_facets_weights(&facets->hard, work, facets->facet[k], row, box->x0,
                            box->x1, weight);
        for (int64_t x = box->x0; x < box->x1; ++x)
            if (weight[x - box->x0] > 0) place[x] = (int16_t)k;
    }
}

tess_status image_facets_places(void *context, int64_t row_first, int64_t num_rows,
                                int threads, int16_t *place)
{
    tess_status status = TESS_OK;
    const image_facets *facets = context;
    const int64_t nx = facets->hard.image.geom.nx;
    bool complete = true;
#pragma omp parallel num_threads(threads) reduction(&& : complete)
    {
        tess_facet_work *work = NULL;
        double *weight = tess_alloc(nx, sizeof *weight);
        complete = weight && tess_facet_work_create(&facets->hard, &work) == TESS_OK;
#pragma omp for schedule(dynamic, 16)
        for (int64_t k = 0; k < num_rows; ++k)
            if (complete) find_row(facets, work, row_first + k, weight, place + k * nx);
        tess_facet_work_destroy(work);
        tess_free(weight);
    }
    if (!complete) TESS_FAIL(TESS_ERR_ALLOC, "places of pixels");
cleanup:
    return status;
}

/* Memory for images and a PSF that facets are joined to, their responses and which
 * pixels are covered, and for gains. */
static double bytes_of(const image_run *run, const image_facets *facets)
{
    const double pixels = (double)run->opts->nx * (double)run->opts->ny;
    const double value = image_is_double(run) ? 8 : 4;
    const double roots = facets->sources ? value * run->num_pol : 0;
    const double likeness = 16.0 * facets->patches.num * facets->patches.num;
    return pixels / tess_comm_size(run->comm) *
               (value * (run->num_pol + run->opts->make_psf) + roots + run->num_pol) +
           facet_gains_bytes(&facets->gains) + (facets->likeness ? likeness : 0);
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
