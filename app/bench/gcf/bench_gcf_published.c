/* Figures of studies of gridding with tabulated convolution functions, as they were
 * published or, for two codes, as they ran on a GPU of today. */
#include <string.h>

#include "bench_gcf_report.h"
#include "tess_bench_gcf_names.h"

enum {
    RANDOM = TESS_BENCH_GCF_RANDOM,
    SYNTHETIC = TESS_BENCH_GCF_SETS,
    LOW_30,
    LOW_56,
    LOW_82,
    GRID = 0,
    DEGRID = 1
};

static const char TILED[] =
    "NAG for OSKAR, github.com/OxfordSKA/GPU-gridding, README (2018)";
static const char TILED_30[] = "NAG for OSKAR; set EL30-EL56 of "
                               "github.com/OxfordSKA/GPU-gridding (Makefile), which "
                               "its README does not list";
static const char GRIDDING[] =
    "github.com/NVIDIA/SKA-gpu-grid as it is, on an H200: 400 000 visibilities, 4096²";
static const char DEGRIDDING[] =
    "github.com/NVIDIA/SKA-gpu-degrid as it is, on an H200: 4 000 000 points, 8192²";
static const char COARSE[] = "at the most, coarse over window, GTX 980";
static const char MERRY[] = "Merry 2016, arXiv:1605.07023, abstract";

static const tess_bench_gcf_published figures[] = {
    {"sets", SYNTHETIC, GRID, 0, -1, 1, -1, -1, 74, "ms", "P100", TILED},
    {"sets", SYNTHETIC, GRID, 0, -1, 1, -1, -1, 198, "ms", "Xeon, 24 threads", TILED},
    {"sets", SYNTHETIC, GRID, 0, -1, 1, -1, -1, 560, "ms", "Xeon Phi, 136 threads",
     TILED},
    {"sets", LOW_30, GRID, 0, -1, 1, -1, -1, 1410, "ms", "P100", TILED_30},
    {"sets", LOW_56, GRID, 0, -1, 1, -1, -1, 781, "ms", "P100", TILED},
    {"sets", LOW_56, GRID, 0, -1, 1, -1, -1, 2927, "ms", "Xeon, 24 threads", TILED},
    {"sets", LOW_56, GRID, 0, -1, 1, -1, -1, 4948, "ms", "Xeon Phi, 136 threads",
     TILED},
    {"sets", LOW_82, GRID, 0, -1, 1, -1, -1, 553, "ms", "P100", TILED},
    {"sets", LOW_82, GRID, 0, -1, 1, -1, -1, 2211, "ms", "Xeon, 24 threads", TILED},
    {"sets", LOW_82, GRID, 0, -1, 1, -1, -1, 3579, "ms", "Xeon Phi, 136 threads",
     TILED},
    {"size", RANDOM, GRID, 0, 32, 1, 400000, 4096, 2400, "GFLOP/s", "gather", GRIDDING},
    {"size", RANDOM, GRID, 0, 128, 1, 400000, 4096, 3500, "GFLOP/s", "gather",
     GRIDDING},
    {"size", RANDOM, DEGRID, 0, 32, 1, 4000000, 8192, 2650, "GFLOP/s", "gather",
     DEGRIDDING},
    {"size", RANDOM, DEGRID, 0, 128, 1, 4000000, 8192, 2840, "GFLOP/s", "gather",
     DEGRIDDING},
    {"precision", RANDOM, GRID, 0, 32, 1, 400000, 4096, 2400, "GFLOP/s", "gather",
     GRIDDING},
    {"precision", RANDOM, GRID, 0, 128, 1, 400000, 4096, 3500, "GFLOP/s", "gather",
     GRIDDING},
    {"precision", RANDOM, GRID, 1, 128, 1, 400000, 4096, 3300, "GFLOP/s", "gather",
     GRIDDING},
    {"precision", RANDOM, DEGRID, 0, 32, 1, 4000000, 8192, 2650, "GFLOP/s", "gather",
     DEGRIDDING},
    {"precision", RANDOM, DEGRID, 0, 128, 1, 4000000, 8192, 2840, "GFLOP/s", "gather",
     DEGRIDDING},
    {"precision", RANDOM, DEGRID, 1, 32, 1, 4000000, 8192, 1760, "GFLOP/s", "gather",
     DEGRIDDING},
    {"pol", -1, GRID, 0, -1, 1, -1, -1, 3.2, "times", COARSE, MERRY},
    {"pol", -1, GRID, 0, -1, 4, -1, -1, 1.9, "times", COARSE, MERRY},
};

const tess_bench_gcf_published *tess_bench_gcf_published_at(int k)
{
    return k < (int)(sizeof figures / sizeof *figures) ? &figures[k] : NULL;
}

static bool fits(int published, int64_t value)
{
    return published < 0 || published == value;
}

const tess_bench_gcf_published *
tess_bench_gcf_published_for(const tess_bench_gcf_row *row)
{
    const tess_bench_gcf_published *of;
    if (!row->whole) return NULL;
    for (int k = 0; (of = tess_bench_gcf_published_at(k)) != NULL; ++k)
        if (strcmp(of->table, tess_bench_gcf_table_name[row->table]) == 0 &&
            fits(of->order, row->what.order) && fits(of->operation, row->what.degrid) &&
            fits(of->is_double, row->what.is_double) &&
            fits(of->support, row->what.support) &&
            fits(of->num_pol, row->what.num_pol) &&
            fits(of->points, row->what.num_points) && fits(of->size, row->what.size))
            return of;
    return NULL;
}
