/* What tessera facets prints about solutions: the direction that each facet takes, the
 * range of its values, and how far they hold. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "facets_report.h"
#include "tess_mem.h"
#include "tess_text.h"

/* Gains of facets are compared at so many times. */
enum { RANGE_WIDTH = 25, MOST_INTERVALS = 16 };

/* "0.71 to 1.28 rad, 3 % bad" */
static void range_text(const tess_solution_range *range, char *text, size_t size)
{
    const double bad = 100.0 * (double)range->num_bad / (double)range->num_values;
    const int used = snprintf(text, size, "%.3g to %.3g%s%s", range->least, range->most,
                              *range->unit ? " " : "", range->unit);
    if (range->num_bad > 0 && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, ", %.2g %% bad", bad);
}

/* The width of a column of names of facets. */
static int name_width(const tess_facets *facets, int least)
{
    int width = least;
    for (int64_t k = 0; k < facets->num_facets; ++k) {
        const int length = (int)strlen(facets->facet[k].name);
        width = length > width ? length : width;
    }
    return width;
}

/* The lines of one file. */
static void print_file(const facets_args *args, const tess_facets *facets,
                       const tess_solutions *solutions, int file)
{
    const int num_tables = tess_solutions_num_tables(solutions);
    const int width = name_width(facets, 5);
    char path[256];
    snprintf(path, sizeof path, "%s", args->solutions.name[file]);
    printf("%s\n  %-*s  %-18s %-10s", tess_text_clean(path), width, "facet",
           "direction", "away");
    for (int table = 0; table < num_tables; ++table) {
        const tess_solution_range range = tess_solutions_range(solutions, table, 0);
        if (range.file == file) printf("  %-*s", RANGE_WIDTH, range.table);
    }
    for (int64_t k = 0; k < facets->num_facets; ++k) {
        const tess_solution_match *match = tess_solutions_match(solutions, file, k);
        char away[48] = "";
        if (*match->name) tess_text_angle(match->separation_rad, away, sizeof away);
        printf("\n  %-*s  %-18s %-10s", width, facets->facet[k].name,
               *match->name ? match->name : "(all)", away);
        for (int table = 0; table < num_tables; ++table) {
            const tess_solution_range range = tess_solutions_range(solutions, table, k);
            char text[96];
            range_text(&range, text, sizeof text);
            if (range.file == file) printf("  %-*s", RANGE_WIDTH, text);
        }
    }
    puts("");
}

/* ---- changes ---- */

/* The frequencies of the first table that has some. */
static const double *find_freqs(const tess_solutions *solutions, int64_t *num)
{
    for (int k = 0; k < tess_solutions_num_tables(solutions); ++k) {
        const double *freq_hz = tess_solutions_freqs(solutions, k, num);
        if (freq_hz) return freq_hz;
    }
    *num = 0;
    return NULL;
}

static void percent_text(double share, char *text, size_t size)
{
    const double percent = 100 * share;
    if (percent > 100)
        snprintf(text, size, "over 100 %%");
    else
        snprintf(text, size, percent < 10 ? "%.2g %%" : "%.0f %%", percent);
}

static void print_change(const tess_facets *facets, int64_t k, int width,
                         const tess_gain_change *change)
{
    char away[48], corner[48], within[48] = "";
    tess_text_angle(change->away_rad, away, sizeof away);
    tess_text_angle(change->corner_rad, corner, sizeof corner);
    if (change->error > 0)
        tess_text_angle(0.01 / change->error * change->corner_rad, within,
                        sizeof within);
    char differs[48], error[48];
    percent_text(change->difference, differs, sizeof differs);
    percent_text(change->error, error, sizeof error);
    printf("  %-*s  %-*s  %-10s %-11s %-10s %-11s %s\n", width, facets->facet[k].name,
           width, facets->facet[change->neighbour].name, away, differs, corner, error,
           within);
}

/* How far the gains of a facet's direction hold. */
static tess_status print_changes(const tess_facets *facets, const tess_gains *gains,
                                 double freq_hz)
{
    tess_status status = TESS_OK;
    const int width = name_width(facets, 7);
    int64_t num_freq;
    const double *freqs = find_freqs(tess_gains_solutions(gains), &num_freq);
    tess_gain_change *change = tess_alloc_zero(facets->num_facets, sizeof *change);
    if (!change) TESS_FAIL(TESS_ERR_ALLOC, "no memory to compare gains of facets");
    if (facets->num_facets < 2 || tess_gains_num_antennas(gains) < 2 ||
        (!freqs && !(freq_hz > 0)))
        goto cleanup;
    TESS_TRY(tess_gains_changes(gains, facets, MOST_INTERVALS, freqs ? num_freq : 1,
                                freqs ? freqs : &freq_hz, change));
    puts("error of visibilities of a source in the farthest corner of its facet, if "
         "gains change evenly");
    printf("  %-*s  %-*s  %-10s %-11s %-10s %-11s %s\n", width, "facet", width,
           "towards", "away", "differs by", "corner", "error", "1 % within");
    for (int64_t k = 0; k < facets->num_facets; ++k)
        if (change[k].neighbour >= 0) print_change(facets, k, width, &change[k]);
cleanup:
    tess_free(change);
    return status;
}

tess_status facets_print_gains(const facets_args *args, const tess_facets *facets,
                               const tess_gains *gains, double freq_hz)
{
    for (int file = 0; file < args->solutions.num; ++file)
        print_file(args, facets, tess_gains_solutions(gains), file);
    return print_changes(facets, gains, freq_hz);
}
