/* The loops of strategies for comparison, as one writes them, for one precision.
 * study_isa.c includes this file with
 *   REAL     float or double;
 *   TAP      the same, or float for a table's taps in single precision. With
 * TAPS_ALONE, there are only the loops that read tables; NAME(x)  x with the
 * precision's suffix. */

INLINE const TAP *NAME(taps_of)(const gcf_job *job, const gcf_place *at)
{
    return (const TAP *)job->taps +
           2 * gcf_table_offset(job->gcf, at->plane, at->offset_u, at->offset_v);
}

INLINE REAL *NAME(cell_of)(const gcf_job *job, const gcf_place *at, int pol)
{
    return (REAL *)job->cells + 2 * gcf_first_cell(job, at, pol);
}

/* Processors have no atomic addition of floating-point numbers: compare and swap. */
INLINE void NAME(add_atomically)(REAL *to, REAL value)
{
    REAL before, after;
    __atomic_load(to, &before, __ATOMIC_RELAXED);
    do {
        after = before + value;
    } while (!__atomic_compare_exchange(to, &before, &after, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
}

INLINE void NAME(add_to)(REAL *cell, REAL re, REAL im, bool atomic)
{
    if (atomic) {
        NAME(add_atomically)(&cell[0], re);
        NAME(add_atomically)(&cell[1], im);
    } else {
        cell[0] += re;
        cell[1] += im;
    }
}

INLINE void NAME(stamp_plain)(const gcf_job *job, const gcf_place *at, int pol,
                              bool flip_v, bool atomic)
{
    const int support = job->gcf->plane[at->plane].support;
    const TAP *taps = NAME(taps_of)(job, at);
    const REAL *vis = (const REAL *)job->vis + 2 * (at->point * job->num_pol + pol);
    const REAL sign = at->conjugate ? -1 : 1, re = vis[0], im = vis[1];
    for (int i = 0; i < support; ++i) {
        const TAP *tap = taps + 2 * (at->flip_u ? support - 1 - i : i) * support;
        REAL *cell = NAME(cell_of)(job, at, pol) + 2 * i * job->stride;
        for (int j = 0; j < support; ++j) {
            const int k = 2 * (flip_v ? support - 1 - j : j);
            const REAL a = (REAL)tap[k], b = sign * (REAL)tap[k + 1];
            const REAL x = a * re - b * im, y = a * im + b * re;
            NAME(add_to)(&cell[2 * j], x, y, atomic);
        }
    }
}

INLINE void NAME(stamp_all_plain)(const gcf_job *job, bool atomic)
{
    for (int64_t k = 0; k < job->count; ++k)
        for (int pol = 0; pol < job->num_pol; ++pol)
            if (job->place[k].flip_v)
                NAME(stamp_plain)(job, &job->place[k], pol, true, atomic);
            else
                NAME(stamp_plain)(job, &job->place[k], pol, false, atomic);
}

static void NAME(grid_plain)(const gcf_job *job)
{
    NAME(stamp_all_plain)(job, false);
}

static void NAME(grid_atomic)(const gcf_job *job)
{
    NAME(stamp_all_plain)(job, true);
}

INLINE void NAME(read_plain)(const gcf_job *job, const gcf_place *at, int pol,
                             bool flip_v)
{
    const int support = job->gcf->plane[at->plane].support;
    const TAP *taps = NAME(taps_of)(job, at);
    const REAL sign = at->conjugate ? 1 : -1;
    REAL *vis = (REAL *)job->vis + 2 * (at->point * job->num_pol + pol);
    REAL re = 0, im = 0;
    for (int i = 0; i < support; ++i) {
        const TAP *tap = taps + 2 * (at->flip_u ? support - 1 - i : i) * support;
        const REAL *cell = NAME(cell_of)(job, at, pol) + 2 * i * job->stride;
        for (int j = 0; j < support; ++j) {
            const int k = 2 * (flip_v ? support - 1 - j : j);
            const REAL a = (REAL)tap[k], b = sign * (REAL)tap[k + 1];
            re += a * cell[2 * j] - b * cell[2 * j + 1];
            im += a * cell[2 * j + 1] + b * cell[2 * j];
        }
    }
    vis[0] = re;
    vis[1] = im;
}

static void NAME(degrid_plain)(const gcf_job *job)
{
    for (int64_t k = 0; k < job->count; ++k)
        for (int pol = 0; pol < job->num_pol; ++pol)
            if (job->place[k].flip_v)
                NAME(read_plain)(job, &job->place[k], pol, true);
            else
                NAME(read_plain)(job, &job->place[k], pol, false);
}

#ifndef TAPS_ALONE

/* ---- taps of a cube ---- */

/* Taps that are neighbours of a kernel are Q values apart in the cube, and mirrored. */
static void NAME(grid_cube)(const gcf_job *job)
{
    const int q = job->gcf->layout.oversampling;
    const int size = job->gcf->max_support / 2 * q + 1;
    for (int64_t k = 0; k < job->count; ++k)
        for (int pol = 0; pol < job->num_pol; ++pol) {
            const gcf_place *at = &job->place[k];
            const int support = job->gcf->plane[at->plane].support;
            const int off_u = at->flip_u ? q - at->offset_u : at->offset_u;
            const int off_v = at->flip_v ? q - at->offset_v : at->offset_v;
            const REAL *plane =
                (const REAL *)study_cube_of(job) + 2 * (int64_t)at->plane * size * size;
            const REAL *vis =
                (const REAL *)job->vis + 2 * (at->point * job->num_pol + pol);
            const REAL sign = at->conjugate ? -1 : 1, re = vis[0], im = vis[1];
            for (int i = 0; i < support; ++i) {
                const int x = abs((1 - support / 2 + i) * q - off_u);
                REAL *cell = NAME(cell_of)(job, at, pol) + 2 * i * job->stride;
                for (int j = 0; j < support; ++j) {
                    const int y = abs((1 - support / 2 + j) * q - off_v);
                    const REAL *tap = plane + 2 * (x * size + y);
                    const REAL a = tap[0], b = sign * tap[1];
                    cell[2 * j] += a * re - b * im;
                    cell[2 * j + 1] += a * im + b * re;
                }
            }
        }
}

#endif
