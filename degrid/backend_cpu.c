/* The cpu backend: always there. Its parts live in grid/, degrid/, fft/ and clean/;
 * this folder sees all. */
#include "tess_clean.h"
#include "tess_degrid.h"

extern const tess_grid_ops tess_grid_ops_cpu;
extern const tess_degrid_ops tess_degrid_ops_cpu;
extern const tess_planes_ops tess_planes_ops_cpu;
extern const tess_backend tess_backend_cpu;

static bool always(void)
{
    return true;
}

const tess_backend tess_backend_cpu = {.name = "cpu",
                                       .available = always,
                                       .grid = &tess_grid_ops_cpu,
                                       .degrid = &tess_degrid_ops_cpu,
                                       .planes = &tess_planes_ops_cpu,
                                       .clean = &tess_clean_ops_cpu};
