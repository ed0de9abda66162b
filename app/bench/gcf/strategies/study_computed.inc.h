/* Kernels of a formula (tess_gcf_formula), computed instead of read; included by
 * study_isa.c with REAL and NAME as study_loops.inc.h has them. */

/* The formula for a point, in its precision: phases turn the other way where w < 0. */
typedef struct NAME(formula) {
    REAL log_peak, decay, step, w, turns, ripple;
} NAME(formula);

/* Taps of a line. */
typedef struct NAME(line) {
    REAL re[TESS_GCF_MAX_SUPPORT], im[TESS_GCF_MAX_SUPPORT];
} NAME(line);

INLINE NAME(formula) NAME(formula_of)(const gcf_job *job, const gcf_place *at)
{
    const tess_gcf_formula *of = &job->gcf->formula;
    const REAL way = at->conjugate ? -1 : 1;
    return (NAME(formula)){.log_peak = (REAL)of->log_peak,
                           .decay = (REAL)of->decay,
                           .step = (REAL)of->step,
                           .w = way * (REAL)job->gcf->plane[at->plane].w_lambda,
                           .turns = way * (REAL)of->turns,
                           .ripple = (REAL)of->ripple};
}

/* The distance of a footprint's first tap from the point, along an axis [cells]. */
INLINE REAL NAME(first_tap)(const gcf_job *job, const gcf_place *at, int offset,
                            bool flip)
{
    const int q = job->gcf->layout.oversampling;
    const int full = flip ? q - offset : offset;
    return (REAL)(1 - job->gcf->plane[at->plane].support / 2 - (double)full / q);
}

INLINE REAL NAME(exponential)(REAL x, bool fast)
{
    return fast ? (REAL)fast_exponential((float)x) : exp(x);
}

/* (cos, sin) of 2π·turns. */
INLINE void NAME(circle)(REAL turns, bool fast, REAL *c, REAL *s)
{
    const REAL part = turns - rint(turns);
    if (fast) {
        float x, y;
        fast_circle((float)part, &x, &y);
        *c = (REAL)x;
        *s = (REAL)y;
    } else {
        *c = cos((REAL)TESS_TWO_PI * part);
        *s = sin((REAL)TESS_TWO_PI * part);
    }
}

/* Taps of the line at x [cells], from y on; constants tell what the formula has
 * besides.
 */
INLINE void NAME(compute_line)(const NAME(formula) * of, REAL x, REAL y, int support,
                               bool fast, bool phase, bool sine, NAME(line) * out)
{
    for (int j = 0; j < support; ++j) {
        const REAL at = y + (REAL)j, r2 = x * x + at * at, r = sqrt(r2);
        const REAL l2 = of->step * of->step * r2;
        REAL size = NAME(exponential)(of->log_peak - of->decay * r, fast), c, s;
        NAME(circle)(of->w * (l2 / (1 + sqrt(1 - l2))), fast, &c, &s);
        if (phase) {
            REAL more_c, more_s;
            NAME(circle)(of->turns * r2, fast, &more_c, &more_s);
            const REAL before = c;
            c = before * more_c - s * more_s;
            s = before * more_s + s * more_c;
        }
        if (sine) {
            REAL unused, wave;
            NAME(circle)(of->ripple * r, fast, &unused, &wave);
            size *= 1 + (REAL)0.5 * wave;
        }
        out->re[j] = size * c;
        out->im[j] = size * s;
    }
}

INLINE void NAME(compute)(const NAME(formula) * of, REAL x, REAL y, int support,
                          bool fast, NAME(line) * out)
{
    const bool phase = of->turns != 0, sine = of->ripple != 0;
    if (!phase && !sine)
        NAME(compute_line)(of, x, y, support, fast, false, false, out);
    else if (phase && !sine)
        NAME(compute_line)(of, x, y, support, fast, true, false, out);
    else if (!phase)
        NAME(compute_line)(of, x, y, support, fast, false, true, out);
    else
        NAME(compute_line)(of, x, y, support, fast, true, true, out);
}

INLINE void NAME(add_line)(const NAME(line) * line, int support, const REAL *vis,
                           bool atomic, REAL *cell)
{
    for (int j = 0; j < support; ++j) {
        const REAL x = line->re[j] * vis[0] - line->im[j] * vis[1];
        const REAL y = line->re[j] * vis[1] + line->im[j] * vis[0];
        NAME(add_to)(&cell[2 * j], x, y, atomic);
    }
}

/* sum += Σ conj(tap)·cell */
INLINE void NAME(read_line)(const NAME(line) * line, int support, const REAL *cell,
                            REAL sum[2])
{
    REAL re = 0, im = 0;
    for (int j = 0; j < support; ++j) {
        re += line->re[j] * cell[2 * j] + line->im[j] * cell[2 * j + 1];
        im += line->re[j] * cell[2 * j + 1] - line->im[j] * cell[2 * j];
    }
    sum[0] += re;
    sum[1] += im;
}

/* A point, line by line: its taps serve all polarisations. */
INLINE void NAME(do_computed)(const gcf_job *job, const gcf_place *at, bool degrid,
                              bool atomic, bool fast)
{
    const int support = job->gcf->plane[at->plane].support;
    const NAME(formula) of = NAME(formula_of)(job, at);
    const REAL x = NAME(first_tap)(job, at, at->offset_u, at->flip_u);
    const REAL y = NAME(first_tap)(job, at, at->offset_v, at->flip_v);
    REAL *vis = (REAL *)job->vis + 2 * at->point * job->num_pol;
    NAME(line) line;
    if (degrid) memset(vis, 0, 2 * (size_t)job->num_pol * sizeof *vis);
    for (int i = 0; i < support; ++i) {
        NAME(compute)(&of, x + (REAL)i, y, support, fast, &line);
        for (int pol = 0; pol < job->num_pol; ++pol) {
            REAL *cell = NAME(cell_of)(job, at, pol) + 2 * i * job->stride;
            if (degrid)
                NAME(read_line)(&line, support, cell, vis + 2 * pol);
            else
                NAME(add_line)(&line, support, vis + 2 * pol, atomic, cell);
        }
    }
}

#define COMPUTED(name, degrid, atomic, fast)                                           \
    static void NAME(name)(const gcf_job *job)                                         \
    {                                                                                  \
        for (int64_t k = 0; k < job->count; ++k)                                       \
            NAME(do_computed)(job, &job->place[k], degrid, atomic, fast);              \
    }
COMPUTED(grid_computed, false, false, false)
COMPUTED(grid_computed_atomic, false, true, false)
COMPUTED(degrid_computed, true, false, false)
COMPUTED(grid_computed_fast, false, false, HAS_FAST)
COMPUTED(grid_computed_fast_atomic, false, true, HAS_FAST)
COMPUTED(degrid_computed_fast, true, false, HAS_FAST)
#undef COMPUTED
