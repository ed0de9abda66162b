/* Parses the options of `tessera bench gcf` that change how a strategy works. */
#include "bench_gcf_options.h"

#include <stddef.h>

#include "option_rules.h"
#include "tess_bench_gcf_args.h"
#include "tess_bench_gcf_names.h"
#include "tess_cli.h"

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

/* --extra, which implies --formula. `value` is the parser's whole input. */
static tess_status take_extra(const tess_option_rule *rule, const char *text,
                              void *value)
{
    tess_bench_gcf_args *args = value;
    const tess_status status = tess_take_word(rule, text, &args->extra);
    if (status == TESS_OK) args->formula = true;
    return status;
}

/* --narrow: 0 cells are kept as −1, because 0 stands for the default. */
static tess_status take_narrow(const tess_option_rule *rule, const char *text,
                               void *value)
{
    int *narrow = value;
    const tess_status status = tess_take_int(rule, text, narrow);
    if (status == TESS_OK && *narrow == 0) *narrow = -1;
    return status;
}

#define AT(member)    offsetof(tess_bench_gcf_args, member)
#define PROBE(member) AT(opts.probes.member)

static const tess_option_rule rules[] = {
    {OPT_ATOMICS, tess_take_word, .offset = PROBE(atomics),
     .words = tess_bench_gcf_atomics_name},
    {OPT_SORT, tess_take_word, .offset = PROBE(sort), .min = 1,
     .words = tess_bench_gcf_sort_name},
    {OPT_FACTOR, tess_take_number, .offset = PROBE(tile_factor), .max = 1e9},
    {OPT_NARROW, take_narrow, .offset = PROBE(narrow), .max = TESS_GCF_MAX_SUPPORT},
    {OPT_PIECES, tess_take_int, .offset = PROBE(pieces), .min = 1, .max = 65536},
    {OPT_CENTER, tess_take_int, .offset = PROBE(center_radius), .min = 1,
     .max = 1000000},
    {OPT_CUBE, tess_take_flag, .offset = PROBE(cube)},
    {OPT_BOX, tess_take_flag, .offset = PROBE(active_box)},
    {OPT_MANAGED, tess_take_flag, .offset = PROBE(managed)},
    {OPT_ARRAYS, tess_take_flag, .offset = PROBE(arrays)},
    {OPT_DIVERGENT, tess_take_flag, .offset = PROBE(divergent)},
    {OPT_SERIAL_TILES, tess_take_flag, .offset = PROBE(serial_tiles)},
    {OPT_BIN, tess_take_int, .offset = PROBE(bin), .min = 1,
     .max = 2 * TESS_GCF_MAX_SUPPORT},
    {OPT_BLOCK, tess_take_int, .offset = PROBE(block), .min = 1, .max = 1024},
    {OPT_CELLS, tess_take_int, .offset = PROBE(cells), .min = 1, .max = 8},
    {OPT_STRIPES, tess_take_int, .offset = PROBE(stripes), .min = 1, .max = 64},
    {OPT_BOUNDS, tess_take_int, .offset = PROBE(bounds), .min = 1, .max = 64},
    {OPT_POINTS, tess_take_int, .offset = PROBE(points), .min = 1, .max = 65536},
    {OPT_EXTRA, take_extra, .offset = 0, .min = 1, .words = tess_bench_gcf_extra_name},
    {OPT_NORMALISE, tess_take_flag, .offset = AT(normalise)},
    {OPT_INTENSITY, tess_take_text, .offset = AT(intensity)},
    {OPT_ENERGY, tess_take_number, .offset = AT(energy_s), .max = 3600},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    tess_status status = TESS_OK;
    if (!tess_option_take(rules, key, arg, state->input, &status))
        return ARGP_ERR_UNKNOWN;
    return tess_cli_result(state, options, key, arg, status);
}

const struct argp tess_bench_gcf_probes_argp = {.options = options, .parser = parse};
