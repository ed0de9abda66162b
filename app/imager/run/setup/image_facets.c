/* Sets the facets of a run up: reads regions and solutions, chooses which correlations
 * samples keep until they are gridded, and makes each facet a target of the job. */
#define _GNU_SOURCE
#include "image_facets.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "image_kinds.h"

#include "imager_targets.h"
#include "source_origins.h"
#include "tess_log.h"
#include "tess_mem.h"

/* ---- what goes together ---- */

tess_status image_facets_check(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    const tess_facet_choice *facets = &opts->gridding.facets;
    const char *other = NULL;
    if (!facets->regions) return TESS_OK;
    if (opts->gridding.w_mode == TESS_W_PROJECTION) other = "--w projection";
    if (opts->checkpoint.folder) other = "--checkpoint";
    if (opts->subtract.model || opts->subtract.pixels) other = "--subtract";
    if (opts->clean.update_model) other = "--update-model";
    if (opts->clean.only_model) other = "--predict-models";
    if (opts->clean.save_sources) other = "--save-source-list";
    if (opts->beside.primary_beam.model) other = "--primary-beam";
    if (opts->beside.dump_stages) other = "--dump-stages";
    if (other)
        TESS_FAIL(TESS_ERR_USAGE, "--facets cannot be combined with %s yet", other);
    for (int k = 0; k < opts->num_pol && facets->solutions; ++k)
        if (opts->pol[k] < 1)
            TESS_FAIL(TESS_ERR_USAGE,
                      "--facet-solutions make images of Stokes parameters; use "
                      "--stokes I, or IQUV");
cleanup:
    return status;
}

/* ---- regions ---- */

/* 1 % of the side of a square of the image's area. */
static double feather_of(const tess_image_opts *opts)
{
    const double feather = opts->gridding.facets.feather;
    return feather >= 0 ? feather
                        : ceil(0.01 * sqrt((double)opts->nx * (double)opts->ny));
}

/* The facet of the largest square, and then of the most pixels. */
static int largest_facet(const tess_facets *facets)
{
    int best = 0;
    int64_t side_of_best = 0;
    for (int k = 0; k < facets->num_facets; ++k) {
        const tess_facet_box *box = &facets->facet[k].box;
        const int64_t nx = box->x1 - box->x0, ny = box->y1 - box->y0;
        const int64_t side = nx < ny ? nx : ny;
        if (side < side_of_best ||
            (side == side_of_best &&
             facets->facet[k].num_pixels <= facets->facet[best].num_pixels))
            continue;
        best = k;
        side_of_best = side;
    }
    return best;
}

/* Collective. */
static tess_status read_regions(const image_run *run, image_facets *to)
{
    tess_status status = TESS_OK;
    const char *path = run->opts->gridding.facets.regions;
    const tess_facet_image image = {run->whole.geom, run->info->ra_rad,
                                    run->info->dec_rad};
    tess_region_list regions = {0};
    TESS_TRY(tess_region_file_read(run->comm, path, &regions));
    TESS_TRY(tess_comm_agree(run->comm,
                             tess_facets_create(path, &regions, &image,
                                                feather_of(run->opts), &to->facets)));
    if (to->facets.num_facets > INT16_MAX)
        TESS_FAIL(TESS_ERR_USAGE, "%s: more than %d facets", path, INT16_MAX);
    to->psf_facet = largest_facet(&to->facets);
cleanup:
    tess_region_list_free(&regions);
    return status;
}

static void tell(const image_run *run, const image_facets *facets)
{
    const tess_facets *all = &facets->facets;
    const double pixels = (double)run->opts->nx * (double)run->opts->ny;
    double in_facets = 0;
    char text[64] = "";
    for (int64_t k = 0; k < all->num_facets; ++k)
        in_facets += (double)all->facet[k].num_pixels;
    if (all->num_outside > 0)
        snprintf(text, sizeof text, "; %lld others are outside of the image",
                 (long long)all->num_outside);
    tess_log_info("%lld facets, with slopes of %.4g pixels between them%s",
                  (long long)all->num_facets, all->feather, text);
    if (in_facets < pixels)
        tess_log_info("%.3g %% of the pixels are in no facet, and are not imaged",
                      100 * (1 - in_facets / pixels));
}

/* ---- solutions ---- */

/* The shortest integration of all observations, in which solutions do not change. */
static double interval_of(const image_run *run)
{
    double interval_s = 0;
    for (int k = 0; k < tess_source_num_readers(run->source); ++k) {
        const double own =
            tess_vis_reader_meta(tess_source_reader(run->source, k))->integration_s;
        if (own > 0 && (!(interval_s > 0) || own < interval_s)) interval_s = own;
    }
    return interval_s > 0 ? interval_s : 1;
}

/* The lowest and the highest frequency of the data. */
static void find_band(const tess_source_info *info, double freq_hz[2])
{
    freq_hz[0] = freq_hz[1] = info->freq_hz[0];
    for (int64_t k = 1; k < info->num_chan; ++k) {
        freq_hz[0] = fmin(freq_hz[0], info->freq_hz[k]);
        freq_hz[1] = fmax(freq_hz[1], info->freq_hz[k]);
    }
}

/* Names that commas separate. */
typedef struct name_list {
    char *text; /* owned */
    const char *name[16];
    int num;
} name_list;

/* Local. */
static tess_status split_names(const char *option, const char *text, name_list *names)
{
    tess_status status = TESS_OK;
    enum { MOST = sizeof names->name / sizeof *names->name };
    if (!text) return TESS_OK;
    char *next = names->text = tess_strdup(text);
    if (!next) TESS_FAIL(TESS_ERR_ALLOC, "%s", text);
    while (next) {
        const char *name = strsep(&next, ",");
        if (!*name || names->num == MOST)
            TESS_FAIL(TESS_ERR_USAGE, "%s: '%s' is no list of at most %d names", option,
                      text, MOST);
        names->name[names->num++] = name;
    }
cleanup:
    return status;
}

/* Collective. */
static tess_status read_solutions(const image_run *run, const tess_origins *origins,
                                  image_facets *to)
{
    tess_status status = TESS_OK;
    const tess_facet_choice *choice = &run->opts->gridding.facets;
    name_list files = {0}, tables = {0};
    const char **antenna = tess_alloc(origins->num_antennas, sizeof *antenna);
    status = antenna ? split_names("--facet-solutions", choice->solutions, &files)
                     : TESS_ERR_ALLOC;
    if (status == TESS_OK) status = split_names("--soltabs", choice->tables, &tables);
    TESS_TRY(tess_comm_agree(run->comm, status));
    for (int32_t k = 0; k < origins->num_antennas; ++k)
        antenna[k] = tess_source_antenna(run->source, k)->name;
    tess_solutions_opts opts = {
        .path = files.name,
        .num_files = files.num,
        .table = tables.name,
        .num_tables = tables.num,
        .is_linear = choice->is_linear,
        .antenna = antenna,
        .num_antennas = origins->num_antennas,
        .time_mjd_s = {run->info->time_first, run->info->time_end}};
    find_band(run->info, opts.freq_hz);
    TESS_TRY(tess_facets_solutions(run->comm, &to->facets, &opts, &to->solutions));
cleanup:
    tess_free(files.text);
    tess_free(tables.text);
    tess_free(antenna);
    return status;
}

/* ---- correlations ---- */

static bool is_parallel(tess_corr code)
{
    return (-(int)code - 1) % 4 < 2;
}

/* Whether images need parallel hands alone: with gains that mix no feeds. */
static bool need_parallel(const image_run *run, const image_facets *facets)
{
    if (!facets->gains.is_diagonal) return false;
    for (int p = 0; p < run->num_pol; ++p) {
        const tess_pol_mix mix =
            tess_pol_mix_of(&run->pol[p], run->info->corr, run->info->num_corr);
        for (int k = 0; k < mix.num; ++k)
            if (!is_parallel(run->info->corr[mix.index[k]])) return false;
    }
    return true;
}

/* Which polarisations samples keep: correlations for gains, or those of the images.
 * Local. */
static tess_status choose_held(const image_run *run, image_facets *to)
{
    tess_status status = TESS_OK;
    const tess_source_info *info = run->info;
    if (!to->solutions || to->gains.is_scalar) {
        to->num_held = run->num_pol;
        memcpy(to->held, run->pol, (size_t)run->num_pol * sizeof *to->held);
        return TESS_OK;
    }
    const bool parallel = need_parallel(run, to);
    for (int k = 0; k < info->num_corr; ++k)
        if (!parallel || is_parallel(info->corr[k]))
            to->held[to->num_held++] = (tess_pol){.code = info->corr[k]};
    if (to->num_held < (parallel ? 2 : 4) || info->corr[0] > 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s has %d of the %d correlations that its solutions and images need",
                  info->meta->path, to->num_held, parallel ? 2 : 4);
cleanup:
    return status;
}

/* ---- targets ---- */

/* The pixels of a facet: those of the image in its box. */
static tess_geom geom_of(const tess_geom *image, const tess_facet_box *box)
{
    tess_geom geom = *image;
    geom.nx = box->x1 - box->x0;
    geom.ny = box->y1 - box->y0;
    geom.l0 = tess_geom_l(image, box->x0 + geom.nx / 2);
    geom.m0 = tess_geom_m(image, box->y0 + geom.ny / 2);
    return geom;
}

/* Local. */
static tess_status set_targets(image_run *run, image_facets *facets)
{
    tess_status status = TESS_OK;
    const tess_facets *all = &facets->facets;
    tess_geom *geom = tess_alloc(all->num_facets, sizeof *geom);
    if (!geom) TESS_FAIL(TESS_ERR_ALLOC, "facets");
    for (int64_t k = 0; k < all->num_facets; ++k)
        geom[k] = geom_of(&run->whole.geom, &all->facet[k].box);
    TESS_TRY(imager_job_set_targets(&run->job, geom, (int)all->num_facets));
    TESS_TRY(facet_gains_create(run->pol, run->num_pol, facets->held, facets->num_held,
                                &facets->gains));
    run->job.view = (imager_view){.num_pol = run->num_pol,
                                  .to_target = facet_gains_take,
                                  .from_model = facet_gains_make,
                                  .context = &facets->gains};
cleanup:
    tess_free(geom);
    return status;
}

/* Collective. */
static tess_status take_solutions(image_run *run, image_facets *to)
{
    tess_status status = TESS_OK;
    tess_comm *comm = run->comm;
    TESS_TRY(
        tess_comm_agree(comm, tess_source_keep_origins(run->source, interval_of(run))));
    const tess_origins *origins = tess_source_samples(run->source).origins;
    TESS_TRY(read_solutions(run, origins, to));
    to->gains.solutions = to->solutions;
    to->gains.num_antennas = origins->num_antennas;
cleanup:
    return status;
}

tess_status image_facets_open(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_facet_choice *choice = &run->opts->gridding.facets;
    image_facets *facets = NULL;
    if (!choice->regions) return TESS_OK;
    facets = tess_alloc_zero(1, sizeof *facets);
    TESS_TRY(tess_comm_agree(run->comm, facets ? TESS_OK : TESS_ERR_ALLOC));
    run->whole.facets = facets; /* which owns it from here on */
    TESS_TRY(read_regions(run, facets));
    if (tess_comm_rank(run->comm) == 0) tell(run, facets);
    if (choice->solutions) TESS_TRY(take_solutions(run, facets));
    facets->gains.freq_hz = run->info->freq_hz;
    facets->gains.num_chan = run->info->num_chan;
    facets->gains.num_threads = run->opts->layout.threads;
    facets->gains.is_scalar = choice->is_scalar;
    facets->gains.is_diagonal =
        !facets->solutions || tess_solutions_are_diagonal(facets->solutions);
    if (choice->is_scalar && !facets->gains.is_diagonal)
        TESS_FAIL(TESS_ERR_USAGE, "--scalar-visibilities is for solutions that do not "
                                  "mix feeds; leave it out");
    status = choose_held(run, facets);
    if (status == TESS_OK) status = set_targets(run, facets);
    TESS_TRY(tess_comm_agree(run->comm, status));
cleanup:
    return status;
}

void image_facets_free(image_facets *facets)
{
    if (!facets) return;
    facet_gains_free(&facets->gains);
    tess_solutions_free(facets->solutions);
    tess_facets_free(&facets->facets);
    tess_free(facets);
}

const tess_pol *image_held_pols(const image_run *run, int *num)
{
    const image_facets *facets = run->whole.facets;
    *num = facets ? facets->num_held : run->num_pol;
    return facets ? facets->held : run->pol;
}
