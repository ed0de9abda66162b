/* What tessera facets prints about solutions: the direction that each facet takes, and
 * the range of its values. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "facets_report.h"
#include "tess_text.h"

enum { RANGE_WIDTH = 25 };

/* "0.71 to 1.28 rad, 3 % bad" */
static void range_text(const tess_solution_range *range, char *text, size_t size)
{
    const double bad = 100.0 * (double)range->num_bad / (double)range->num_values;
    const int used = snprintf(text, size, "%.3g to %.3g%s%s", range->least, range->most,
                              *range->unit ? " " : "", range->unit);
    if (range->num_bad > 0 && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, ", %.2g %% bad", bad);
}

/* The lines of one file. */
static void print_file(const facets_args *args, const tess_facets *facets,
                       const tess_solutions *solutions, int file)
{
    const int num_tables = tess_solutions_num_tables(solutions);
    int width = 5;
    char path[256];
    for (int64_t k = 0; k < facets->num_facets; ++k) {
        const int length = (int)strlen(facets->facet[k].name);
        width = length > width ? length : width;
    }
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

void facets_print_solutions(const facets_args *args, const tess_facets *facets,
                            const tess_solutions *solutions)
{
    for (int file = 0; file < args->solutions.num; ++file)
        print_file(args, facets, solutions, file);
}
