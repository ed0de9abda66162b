/* Reads what gains of facets are made of: solutions, a-terms and beams, of all
 * observations together. */
#define _GNU_SOURCE
#include "facet_sources.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "source_origins.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_text.h"

/* Gains are compared at so many times of a run, fewer than by `tessera facets`, so that
 * no run takes noticeably longer. */
enum { MOST_COMPARED = 4 };

/* Pointings that are the same, as for primary beams of images. */
static const double SAME_POINTING_RAD = 1e-6;

tess_status facet_names_split(const char *option, const char *text, facet_names *names)
{
    tess_status status = TESS_OK;
    if (!text) return TESS_OK;
    char *next = names->text = tess_strdup(text);
    if (!next) TESS_FAIL(TESS_ERR_ALLOC, "%s", text);
    while (next) {
        const char *name = strsep(&next, ",");
        if (!*name || names->num == FACET_MOST_NAMES)
            TESS_FAIL(TESS_ERR_USAGE, "%s: '%s' is no list of at most %d names", option,
                      text, FACET_MOST_NAMES);
        names->name[names->num++] = name;
    }
cleanup:
    return status;
}

double facet_sources_interval(tess_source *source)
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

static void widen(double range[2], double low, double high)
{
    range[0] = fmin(range[0], low);
    range[1] = fmax(range[1], high);
}

/* The times of which there are visibilities: period[TESS_ORIGINS_STRETCHES], from the
 * first integration of a stretch to its last one, so that an observation has the same
 * period alone and among others. Returns their number. */
static int find_periods(const facet_setup *setup, double (*period)[2])
{
    const tess_origins *origins = tess_source_samples(setup->source).origins;
    for (int k = 0; k < origins->num_stretches; ++k) {
        period[k][0] = INFINITY;
        period[k][1] = -INFINITY;
    }
    for (int reader = 0; reader < tess_source_num_readers(setup->source); ++reader) {
        const tess_vis_meta *meta =
            tess_vis_reader_meta(tess_source_reader(setup->source, reader));
        widen(period[tess_source_stretch(setup->source, reader)],
              meta->time_start_mjd_s, meta->time_end_mjd_s);
    }
    return origins->num_stretches;
}

/* Which observation's solutions antennas have, and what these have to hold for. */
typedef struct solution_sets {
    int *of_antenna;            /* [num_antennas] */
    tess_solution_reach *reach; /* [num_sets] */
} solution_sets;

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
    facet_names files = {0}, tables = {0};
    solution_sets sets = {0};
    tess_vis_meta meta = {.num_antennas = 0};
    double period_mjd_s[TESS_ORIGINS_STRETCHES][2];
    status = facet_names_split("--facet-solutions", choice->solutions, &files);
    if (status == TESS_OK)
        status = facet_names_split("--soltabs", choice->tables, &tables);
    if (status == TESS_OK) status = describe(setup, num_antennas, &meta);
    if (status == TESS_OK) status = divide_solutions(setup, num_antennas, &sets);
    TESS_TRY(tess_comm_agree(setup->comm, status));
    const tess_gains_opts opts = {
        .meta = &meta,
        .num_periods = find_periods(setup, period_mjd_s),
        .period_mjd_s = (const double(*)[2])period_mjd_s,
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
        .step_s = facet_sources_interval(setup->source),
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

tess_status facet_sources_tell(const facet_setup *setup, const image_facets *facets)
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

void facet_sources_start(const facet_setup *setup, image_facets *to)
{
    to->sources = NULL;
    to->unlike = false;
    to->gains =
        (facet_gains){.is_scalar = setup->choice->is_scalar, .is_diagonal = true};
}

tess_status facet_sources_take(const facet_setup *setup, image_facets *to)
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
