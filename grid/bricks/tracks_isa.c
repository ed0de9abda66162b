/* Adds samples to the nodes of their tracks with one instruction set; see tracks.h. */
#include "tracks.h"

#include <string.h>

#include "tess_sincos.h"

#ifndef TRACKS_TABLE /* the portable loops, and the choice for this processor */
#define TRACKS_TABLE tracks_table_portable
#include "tess_isa.h"

const tracks_table *tracks_table_best(void)
{
    static const tracks_table *const table[TESS_NUM_ISA] =
        TESS_ISA_TABLES(tracks_table);
    return table[tess_isa_best()];
}

int64_t tracks_work_bytes(const tess_tracks *tracks, int num_images)
{
    const int pols = tracks->opts.num_pol, corrs = tracks->from->num_pol;
    const int64_t values = (pols * corrs + TRACK_NODES * pols) * 2 * TRACK_CHANS;
    const int64_t bytes = values * (tracks->from->is_double ? 8 : 4);
    return (bytes * num_images + 63) / 64 * 64; /* threads share no cache line */
}
#endif

/* The channels of one row that become nodes together. */
typedef struct piece {
    int64_t row, first; /* of the samples */
    int32_t chan, count;
} piece;

static piece piece_of(const tess_samples *from, int64_t row, int32_t chan,
                      int32_t count)
{
    const int64_t first = from->vis_first[row] + chan - from->chan_base[row];
    return (piece){row, first, chan, count};
}

/* Asks for the factors of a piece. */
static void ask_factors(const tess_samples *from, const tess_tracks_view *view,
                        const piece *at, double complex *factor)
{
    int64_t first = at->first;
    int32_t chan = at->chan, count = at->count;
    tess_samples row = *from;
    row.num_rows = 1;
    row.num_vis = count;
    row.uvw_m = from->uvw_m + 3 * at->row;
    row.chan_base = &chan;
    row.num_chan = &count;
    row.vis_first = &first;
    row.origin = from->origin + at->row;
    view->factors(view->context, view->image, &row, factor);
}

static double path_of(const double uvw_m[3], const double phase[3])
{
    return uvw_m[0] * phase[0] + uvw_m[1] * phase[1] + uvw_m[2] * phase[2];
}

#define ALWAYS static inline __attribute__((always_inline))

static inline void sincos_single(double turns, float *sine, float *cosine)
{
    tess_sincos_turns_single((float)(turns - tess_nearest(turns)), sine, cosine);
}

static inline void sincos_double(double turns, double *sine, double *cosine)
{
    tess_sincos_turns(turns - tess_nearest(turns), sine, cosine);
}

#define REAL    float
#define NAME(x) x##_single
#include "tracks_loops.inc.h"
#undef REAL
#undef NAME
#define REAL    double
#define NAME(x) x##_double
#include "tracks_loops.inc.h"

const tracks_table TRACKS_TABLE = {take_single, take_double};
