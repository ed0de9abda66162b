/* The words of `tessera bench gcf`, as options take them and tables have them. */
#include "tess_bench_gcf_names.h"

#include <stdio.h>

#include "tess_backend.h"

const char *const tess_bench_gcf_backend_name[] = {"cpu", TESS_BACKEND_DEVICE, NULL};
const char *const tess_bench_gcf_operation_name[] = {"grid", "degrid", NULL};
const char *const tess_bench_gcf_precision_name[] = {"single", "double", NULL};
const char *const tess_bench_gcf_order_name[] = {"random",    "sorted",    "tracks",
                                                 "baselines", "synthetic", "low-30",
                                                 "low-56",    "low-82",    NULL};
const char *const tess_bench_gcf_atomics_name[] = {"native", "cas", "plain", NULL};
const char *const tess_bench_gcf_sort_name[] = {"chosen", "tile", "layer", "kernel",
                                                NULL};
const char *const tess_bench_gcf_extra_name[] = {"none", "phase", "sine", "both", NULL};

const char *const tess_bench_gcf_table_name[] = {
    "size", "points", "image", "pol", "precision", "atomics", "computed", "sets", NULL};
const char *const tess_bench_gcf_table_title[] = {
    "Size of the convolution function, random and sorted points",
    "Number of points",
    "Size of the grid",
    "Polarisations in one pass, tracks",
    "Single and double precision",
    "Atomic additions: native, or by compare-and-swap",
    "Kernels of a formula: computed, or read from a table",
    "The four data sets of the tiled study"};

void tess_bench_gcf_switches(const tess_bench_gcf_case *what, char *text, size_t size)
{
    const tess_study_opts *opts = &what->opts;
    const tess_study_probes *probes = &opts->probes;
    const bool plain = probes->atomics == TESS_STUDY_PLAIN;
    const struct {
        const char *name, *word; /* with a word, */
        double number;           /* or a number; unless 0 */
    } list[] = {
        {"atomics",
         plain ? "plain(WRONG)" : tess_bench_gcf_atomics_name[probes->atomics],
         probes->atomics != TESS_STUDY_NATIVE},
        {"sort", tess_bench_gcf_sort_name[probes->sort],
         probes->sort != TESS_GCF_SORT_CHOSEN},
        {"tile-factor", NULL, probes->tile_factor},
        {"narrow", probes->narrow < 0 ? "0" : NULL, probes->narrow},
        {"pieces", NULL, probes->pieces},
        {"center-radius", NULL, probes->center_radius},
        {"cube", "", probes->cube},
        {"active-box", "", probes->active_box},
        {"managed", "", probes->managed},
        {"arrays", "", probes->arrays},
        {"divergent", "", probes->divergent},
        {"serial-tiles", "", probes->serial_tiles},
        {"bin", NULL, probes->bin},
        {"block", NULL, probes->block},
        {"cells", NULL, probes->cells},
        {"stripes", NULL, probes->stripes},
        {"bounds", NULL, probes->bounds},
        {"points", NULL, probes->points},
        {"shape", NULL, opts->shape},
        {"single-taps", "", opts->single_taps},
        {"merge", "", opts->merge},
        {"formula", "", what->is_formula},
        {"fast-math", "", opts->fast_math},
        {"extra", tess_bench_gcf_extra_name[what->extra], what->extra},
        {"normalise", "", what->normalise},
    };
    size_t used = 0;
    text[0] = '\0';
    for (size_t k = 0; k < sizeof list / sizeof *list && used < size; ++k) {
        char number[32];
        snprintf(number, sizeof number, "%g", list[k].number);
        const char *value = list[k].word ? list[k].word : number;
        if (list[k].number != 0)
            used += (size_t)snprintf(text + used, size - used, "%s%s%s%s",
                                     used > 0 ? " " : "", list[k].name,
                                     *value ? "=" : "", value);
    }
}
