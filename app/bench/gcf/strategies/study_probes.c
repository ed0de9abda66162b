/* Which other ways of doing its work a strategy has. */
#include <stddef.h>

#include "tess_log.h"
#include "tess_study.h"

#define BIT(strategy) (1u << TESS_STUDY_##strategy)

enum {
    NOTHING = 0,
    LEAST_BLOCK = 32,
    MOST_BLOCK = 512,
    MOST_POINTS = 65536,
    MOST_STRIPES = 8,
    GATHER_TILE = 32, /* of gather: cells along each axis … */
    GATHER_CELLS = 4  /* … and a thread's, unless told otherwise */
};

/* Strategies that take a probe, by backend and direction. */
typedef struct probe {
    const char *name; /* of the switch of tessera bench gcf */
    unsigned takes[2][2];
} probe;

static const unsigned all_gpu = BIT(TILED) | BIT(SCATTER) | BIT(GATHER) | BIT(WINDOW) |
                                BIT(COARSE) | BIT(WARP) | BIT(COMPUTED) | BIT(FACTORED);

static bool takes(const unsigned by[2][2], const tess_study_opts *opts, bool degrid)
{
    return by[opts->backend == TESS_GCF_DEVICE][degrid] >> opts->strategy & 1;
}

static tess_status check(bool wanted, const char *name, const unsigned by[2][2],
                         const tess_study_opts *opts, bool degrid)
{
    tess_status status = TESS_OK;
    if (wanted && !takes(by, opts, degrid))
        TESS_FAIL(TESS_ERR_USAGE, "%s means nothing to '%s', which is to %s on a %s",
                  name, tess_study_name(opts->strategy), degrid ? "degrid" : "grid",
                  opts->backend == TESS_GCF_DEVICE ? "GPU" : "CPU");
cleanup:
    return status;
}

static bool is_power_of_two(int number)
{
    return number > 0 && (number & (number - 1)) == 0;
}

/* How gather cuts its tiles: whole lines of cells for the threads of whole blocks. */
static tess_status check_gather(const tess_study_probes *p)
{
    tess_status status = TESS_OK;
    const int stripes = p->stripes != 0 ? p->stripes : 1;
    const int cells = p->cells > 0 ? p->cells : GATHER_CELLS;
    const int block = p->block > 0 ? p->block : LEAST_BLOCK;
    if (!is_power_of_two(stripes) || stripes > MOST_STRIPES)
        TESS_FAIL(TESS_ERR_USAGE, "%d stripes: 1, 2, 4 or 8", stripes);
    if (!is_power_of_two(block) || block * cells * stripes > GATHER_TILE * GATHER_TILE)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "gather: blocks of %d threads, %d cells each, in %d stripes: powers of "
            "two, at most %d together",
            block, cells, stripes, GATHER_TILE * GATHER_TILE);
cleanup:
    return status;
}

/* Kernels are compiled for the usual ones of the rest. */
static tess_status check_bounds(const tess_study_probes *p)
{
    tess_status status = TESS_OK;
    if (p->bounds != 4 && p->bounds != 8)
        TESS_FAIL(TESS_ERR_USAGE, "%d blocks a multiprocessor: 4 or 8", p->bounds);
    if (p->block > 0 || p->cells > 0 || p->stripes > 0 ||
        p->atomics != TESS_STUDY_NATIVE)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "launch bounds and threads, cells, stripes or ways of adding: one at a "
            "time");
cleanup:
    return status;
}

static tess_status check_limits(const tess_study_opts *opts, bool degrid)
{
    tess_status status = TESS_OK;
    const tess_study_probes *p = &opts->probes;
    const bool few = degrid || opts->strategy == TESS_STUDY_COARSE;
    const bool two_to_eight = p->cells == 2 || p->cells == 4 || p->cells == 8;
    const bool one_to_four = p->cells == 1 || p->cells == 2 || p->cells == 4;
    if (p->block != 0 && (p->block < LEAST_BLOCK || p->block > MOST_BLOCK ||
                          p->block % LEAST_BLOCK != 0))
        TESS_FAIL(TESS_ERR_USAGE, "blocks of %d threads: multiples of %d up to %d",
                  p->block, LEAST_BLOCK, MOST_BLOCK);
    if (p->cells != 0 && !(few ? one_to_four : two_to_eight))
        TESS_FAIL(TESS_ERR_USAGE, "%d cells a thread: %s", p->cells,
                  few ? "1, 2 or 4" : "2, 4 or 8");
    if (p->cells != 0 && p->atomics != TESS_STUDY_NATIVE)
        TESS_FAIL(TESS_ERR_USAGE, "cells a thread and ways of adding: one at a time");
    const bool windows =
        opts->strategy == TESS_STUDY_WINDOW || opts->strategy == TESS_STUDY_COARSE;
    if (windows && p->block != 0 && (p->cells != 0 || p->atomics != TESS_STUDY_NATIVE))
        TESS_FAIL(
            TESS_ERR_USAGE,
            "threads of a block and cells a thread or ways of adding: one at a time");
    if (opts->strategy == TESS_STUDY_GATHER && !degrid) TESS_TRY(check_gather(p));
    if (p->bounds != 0) TESS_TRY(check_bounds(p));
    if (p->points < 0 || p->points > MOST_POINTS)
        TESS_FAIL(TESS_ERR_USAGE, "%d points of a piece: up to %d", p->points,
                  MOST_POINTS);
    if (p->bin < 0 || p->bin > 2 * TESS_GCF_MAX_SUPPORT)
        TESS_FAIL(TESS_ERR_USAGE, "windows of %d cells: up to %d", p->bin,
                  2 * TESS_GCF_MAX_SUPPORT);
    if (!(p->tile_factor >= 0) || p->pieces < 0 || p->center_radius < 0)
        TESS_FAIL(TESS_ERR_USAGE, "tiles: factor %g, %d pieces within %d cells",
                  p->tile_factor, p->pieces, p->center_radius);
    if (p->center_radius > 0 && p->pieces == 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "tiles of a middle are those that are cut: --pieces says into how "
                  "many");
cleanup:
    return status;
}

tess_status tess_study_check_probes(const tess_study_opts *opts, bool degrid)
{
    tess_status status = TESS_OK;
    const tess_study_probes *p = &opts->probes;
    const unsigned windows = BIT(WINDOW) | BIT(COARSE);
    const unsigned tables = BIT(SERIAL) | BIT(ATOMIC) | BIT(TILED) | BIT(PRIVATE);
    const struct {
        bool wanted;
        probe is;
    } list[] = {
        {p->atomics != TESS_STUDY_NATIVE,
         {"--atomics",
          {{BIT(ATOMIC), NOTHING}, {BIT(SCATTER) | BIT(WARP) | windows, NOTHING}}}},
        {p->sort != TESS_GCF_SORT_CHOSEN,
         {"--sort",
          {{BIT(TILED), BIT(TILED)},
           {BIT(GATHER) | BIT(TILED) | windows, BIT(SCATTER) | BIT(TILED)}}}},
        {p->tile_factor > 0,
         {"--tile-factor", {{BIT(TILED), NOTHING}, {BIT(TILED), NOTHING}}}},
        {p->narrow != 0, {"--narrow", {{0}, {BIT(TILED), NOTHING}}}},
        {p->pieces > 0,
         {"--pieces", {{BIT(TILED), BIT(TILED)}, {BIT(TILED), NOTHING}}}},
        {p->cube, {"--cube", {{BIT(SERIAL), NOTHING}, {0}}}},
        {opts->single_taps,
         {"--single-taps",
          {{tables, tables},
           {all_gpu & ~(BIT(COMPUTED) | BIT(FACTORED)),
            all_gpu & ~(BIT(COMPUTED) | BIT(FACTORED))}}}},
        {p->active_box, {"--active-box", {{0}, {all_gpu, all_gpu}}}},
        {p->managed, {"--managed", {{0}, {all_gpu, all_gpu}}}},
        {p->arrays,
         {"--arrays", {{0}, {all_gpu & ~BIT(FACTORED), all_gpu & ~BIT(FACTORED)}}}},
        {p->divergent, {"--divergent", {{0}, {BIT(TILED), NOTHING}}}},
        {p->serial_tiles, {"--serial-tiles", {{0}, {BIT(COARSE), NOTHING}}}},
        {p->bin > 0, {"--bin", {{0}, {windows, BIT(WINDOW)}}}},
        {p->block > 0,
         {"--block",
          {{0},
           {BIT(SCATTER) | BIT(WARP) | BIT(GATHER) | windows,
            BIT(GATHER) | BIT(COMPUTED)}}}},
        {p->stripes != 0, {"--stripes", {{0}, {BIT(GATHER), NOTHING}}}},
        {p->bounds != 0, {"--bounds", {{0}, {BIT(GATHER) | windows, NOTHING}}}},
        {p->cells > 0, {"--cells", {{0}, {BIT(GATHER) | BIT(COARSE), BIT(GATHER)}}}},
        {p->points > 0, {"--points", {{0}, {windows, BIT(WINDOW) | BIT(TILED)}}}},
    };
    for (size_t k = 0; k < sizeof list / sizeof *list; ++k)
        TESS_TRY(
            check(list[k].wanted, list[k].is.name, list[k].is.takes, opts, degrid));
    TESS_TRY(check_limits(opts, degrid));
cleanup:
    return status;
}
