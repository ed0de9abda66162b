/* Gives the built-in costs of the parts of the work, which the planner uses where
 * nothing was measured. */
#include "tess_costs.h"

#include <math.h>

/* Costs of one core of a present server, with 2.5 to 4 GHz and AVX2, measured on runs
 * of 2 to 30 million visibilities. A vector update (load, FMA and store of 32 bytes)
 * takes 0.9 ns. VECTORS of them make one line of a kernel of support w. */
#define SINGLE_VECTORS(w)  ((2 * (w) + 7) / 8)
#define DOUBLE_VECTORS(w)  ((2 * (w) + 3) / 4)
#define UPDATE(vectors, w) (0.9e-9 * (w)*vectors(w))
#define BY_SUPPORT(m)                                                                  \
    {                                                                                  \
        0, 0, 0, 0, m(4), m(5), m(6), m(7), m(8), m(9), m(10), m(11), m(12), m(13),    \
            m(14), m(15), m(16)                                                        \
    }
#define SINGLE_UPDATE(w) UPDATE(SINGLE_VECTORS, w)
#define DOUBLE_UPDATE(w) UPDATE(DOUBLE_VECTORS, w)
#define VIS(w)           25e-9

const tess_costs tess_costs_builtin = {
    .vis_s = {BY_SUPPORT(VIS), BY_SUPPORT(VIS)},
    .update_s = {BY_SUPPORT(SINGLE_UPDATE), BY_SUPPORT(DOUBLE_UPDATE)},
    .cell_s = 0.5e-9,
    .sort_s = 25e-9,
    .fft_flop_s = {0.07e-9, 0.14e-9},
    .pixel_s = {1.5e-9, 1.5e-9},
    .correct_s = 18e-9,
    .touch_bytes_s = 4e9,
    .copy_bytes_s = 10e9};

double tess_costs_vis(const tess_costs *costs, int support, int w_support,
                      bool is_double, int num_pol)
{
    return costs->vis_s[is_double][support] +
           num_pol * w_support * costs->update_s[is_double][support];
}

double tess_costs_plane(const tess_costs *costs, bool is_double, double nu, double nv,
                        double nx, double ny, double occupied)
{
    const double lines = occupied * nu;
    return costs->fft_flop_s[is_double] * 5 *
               (lines * nv * log2(nv) + ny * nu * log2(nu)) +
           costs->line_s[is_double] * lines * (nv + ny) +
           costs->pixel_s[is_double] * nx * ny;
}

int tess_costs_threads(const tess_costs *costs, tess_traffic traffic, int threads)
{
    const int enough = costs->enough_threads[traffic];
    return enough > 0 && enough < threads ? enough : threads;
}
