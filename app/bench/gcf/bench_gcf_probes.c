/* Options of bench gcf for other ways to do the same, as studies have compared them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench_gcf_options.h"
#include "cli.h"
#include "options.h"

enum {
    OPT_ATOMICS = 0x200,
    OPT_SORT,
    OPT_FACTOR,
    OPT_NARROW,
    OPT_PIECES,
    OPT_CENTER,
    OPT_CUBE,
    OPT_BOX,
    OPT_MANAGED,
    OPT_ARRAYS,
    OPT_DIVERGENT,
    OPT_SERIAL_TILES,
    OPT_BIN,
    OPT_BLOCK,
    OPT_CELLS,
    OPT_STRIPES,
    OPT_BOUNDS,
    OPT_POINTS,
    OPT_EXTRA,
    OPT_NORMALISE,
    OPT_INTENSITY,
    OPT_ENERGY
};

static const struct argp_option options[] = {
    {"atomics", OPT_ATOMICS, "native|cas|plain", 0,
     "How cells are added to by scatter, warp, window and coarse, and atomic on a CPU: "
     "plain is WRONG, and there for its time",
     0},
    {"sort", OPT_SORT, "tile|layer|kernel", 0,
     "Strategies by tile: sort points by tile alone, by plane in a tile, or by kernel",
     0},
    {"tile-factor", OPT_FACTOR, "F", 0,
     "tiled: tiles with less than F times the mean number of points go by atomics", 0},
    {"narrow", OPT_NARROW, "CELLS", 0,
     "tiled on a GPU: kernels of up to so many cells go by atomics, a warp each, as in "
     "'warp' (0: none; default: those, and calls of few points, that are faster so)",
     0},
    {"pieces", OPT_PIECES, "N", 0,
     "tiled: cut tiles into N pieces, a block or a turn of a thread each", 0},
    {"center-radius", OPT_CENTER, "CELLS", 0,
     "tiled: cut only tiles so near to the middle of the grid", 0},
    {"cube", OPT_CUBE, NULL, 0,
     "serial: taps from a cube of quarters of kernels, Q values apart, as before they "
     "were "
     "reordered",
     0},
    {"active-box", OPT_BOX, NULL, 0,
     "On a GPU: clear and copy only the box of all footprints ('box'; 'saved_s': "
     "copies "
     "that this saves)",
     0},
    {"managed", OPT_MANAGED, NULL, 0,
     "On a GPU: visibilities and grid in managed memory, up to half of what is free",
     0},
    {"arrays", OPT_ARRAYS, NULL, 0,
     "On a GPU: points and visibilities as arrays, not as structs", 0},
    {"divergent", OPT_DIVERGENT, NULL, 0,
     "tiled on a GPU: branch around taps outside of footprints (shape 4, see --shape)",
     0},
    {"serial-tiles", OPT_SERIAL_TILES, NULL, 0,
     "coarse: a block does all tiles of its window in turn", 0},
    {"bin", OPT_BIN, "CELLS", 0, "window, coarse: a window wider than the kernels", 0},
    {"block", OPT_BLOCK, "N", 0,
     "Threads of a block, 32 to 512: scatter, warp, window, coarse, gather; gather and "
     "computed to degrid",
     0},
    {"cells", OPT_CELLS, "N", 0,
     "Cells a thread: gather 2, 4 or 8 of a column, to degrid 1, 2 or 4 at a time; "
     "coarse 1, 2 or 4 squared",
     0},
    {"stripes", OPT_STRIPES, "N", 0,
     "gather: tiles in 2, 4 or 8 stripes, one after another, with fewer threads a "
     "block",
     0},
    {"bounds", OPT_BOUNDS, "N", 0,
     "gather, window, coarse: launch bounds of 4 or 8 blocks a multiprocessor (tiled: "
     "--shape)",
     0},
    {"points", OPT_POINTS, "N", 0,
     "Points a block: window, coarse; window and tiled to degrid", 0},
    {"extra", OPT_EXTRA, "phase|sine|both", 0,
     "--formula: one more phase that turns with r squared, one more factor with a sine "
     "of r",
     0},
    {"normalise", OPT_NORMALISE, NULL, 0,
     "Scale the taps of every plane and offset to a sum of 1", 0},
    {"intensity", OPT_INTENSITY, "NAME", 0,
     "Write how often each cell is added to as NAME.fits and NAME.png", 0},
    {"energy", OPT_ENERGY, "SECONDS", 0,
     "Repeat each strategy for so long to read its joules, where there is a meter "
     "(default 0.5; 0: not); at most so long in a study",
     0},
    {0},
};

static const char *const atomics_name[TESS_GCF_NUM_ATOMICS] = {"native", "cas",
                                                               "plain"};
static const char *const sort_name[TESS_GCF_NUM_SORTS] = {"chosen", "tile", "layer",
                                                          "kernel"};
static const char *const extra_name[] = {"none", "phase", "sine", "both"};

/* Words from number `first` on. */
static tess_status parse_name(const char *text, const char *const *name, int first,
                              int end, int *value)
{
    tess_status status = TESS_OK;
    int k = first;
    while (k < end && strcmp(text, name[k]) != 0)
        ++k;
    if (k == end) TESS_FAIL(TESS_ERR_USAGE, "'%s' is none of its words", text);
    *value = k;
cleanup:
    return status;
}

static tess_status parse_count(const char *text, int64_t most, int *value)
{
    int64_t number = 0;
    const tess_status status = tess_parse_integer(text, 1, most, &number);
    if (status == TESS_OK) *value = (int)number;
    return status;
}

/* Options with a value. */
static tess_status parse_value(int key, char *arg, tess_bench_gcf_args *args)
{
    tess_gcf_probes *probes = &args->opts.probes;
    tess_status status = TESS_OK;
    int64_t cells = 0;
    int word = 0;
    switch (key) {
    case OPT_ATOMICS:
        status = parse_name(arg, atomics_name, 0, TESS_GCF_NUM_ATOMICS, &word);
        probes->atomics = (tess_gcf_atomics)word;
        return status;
    case OPT_SORT:
        status = parse_name(arg, sort_name, 1, TESS_GCF_NUM_SORTS, &word);
        probes->sort = (tess_gcf_sort)word;
        return status;
    case OPT_EXTRA:
        status = parse_name(arg, extra_name, 1, 4, &args->extra);
        args->formula = true;
        return status;
    case OPT_FACTOR:
        return tess_parse_number(arg, 0, 1e9, &probes->tile_factor);
    case OPT_NARROW:
        status = tess_parse_integer(arg, 0, TESS_GCF_MAX_SUPPORT, &cells);
        probes->narrow = cells > 0 ? (int)cells : -1;
        return status;
    case OPT_ENERGY:
        return tess_parse_number(arg, 0, 3600, &args->energy_s);
    case OPT_PIECES:
        return parse_count(arg, 65536, &probes->pieces);
    case OPT_CENTER:
        return parse_count(arg, 1000000, &probes->center_radius);
    case OPT_BIN:
        return parse_count(arg, 2 * TESS_GCF_MAX_SUPPORT, &probes->bin);
    case OPT_BLOCK:
        return parse_count(arg, 1024, &probes->block);
    case OPT_CELLS:
        return parse_count(arg, 8, &probes->cells);
    case OPT_STRIPES:
        return parse_count(arg, 64, &probes->stripes);
    case OPT_BOUNDS:
        return parse_count(arg, 64, &probes->bounds);
    default:
        return parse_count(arg, 65536, &probes->points);
    }
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    tess_bench_gcf_args *args = state->input;
    tess_gcf_probes *probes = &args->opts.probes;
    tess_status status = TESS_OK;
    switch (key) {
    case OPT_CUBE:
        probes->cube = true;
        break;
    case OPT_BOX:
        probes->active_box = true;
        break;
    case OPT_MANAGED:
        probes->managed = true;
        break;
    case OPT_ARRAYS:
        probes->arrays = true;
        break;
    case OPT_DIVERGENT:
        probes->divergent = true;
        break;
    case OPT_SERIAL_TILES:
        probes->serial_tiles = true;
        break;
    case OPT_NORMALISE:
        args->normalise = true;
        break;
    case OPT_INTENSITY:
        args->intensity = arg;
        break;
    default:
        if (key < OPT_ATOMICS || key > OPT_ENERGY) return ARGP_ERR_UNKNOWN;
        status = parse_value(key, arg, args);
    }
    return tess_cli_result(state, options, key, arg, status);
}

const struct argp tess_bench_gcf_probes_argp = {options, parse, NULL, NULL,
                                                NULL,    NULL,  NULL};

/* ---- what was switched, as text ---- */

void tess_bench_gcf_switches(const tess_bench_gcf_case *what, char *text, size_t size)
{
    const tess_gcf_grid_opts *opts = &what->opts;
    const tess_gcf_probes *probes = &opts->probes;
    const bool plain = probes->atomics == TESS_GCF_PLAIN;
    const struct {
        const char *name, *word; /* with a word, */
        double number;           /* or a number; unless 0 */
    } list[] = {
        {"atomics", plain ? "plain(WRONG)" : atomics_name[probes->atomics],
         probes->atomics != TESS_GCF_NATIVE},
        {"sort", sort_name[probes->sort], probes->sort != TESS_GCF_SORT_CHOSEN},
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
        {"extra", extra_name[what->extra], what->extra},
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
