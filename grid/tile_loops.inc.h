/* The loops themselves, for one precision; included by tile_isa.c with
 *   REAL        float or double
 *   NAME(x)     x with the precision's suffix
 *   TAPS, TAP_PAIRS   members of tile_taps
 *
 * A kernel row of W complex cells is updated as whole vectors of (re, im) pairs: tap
 * pairs beyond the support are zero and the buffer's rows have room for them, so no masks
 * are needed. Kernel values in u, v and w are computed once per visibility and serve all
 * its planes and polarisations. */

/* unaligned vector of lanes; loads and stores go through it */
typedef REAL NAME(vector)
    __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

enum {
    NAME(LANES) = VECTOR_BYTES / (int)sizeof(REAL),
    NAME(MAX_VECTORS) = 2 * TESS_MAX_SUPPORT / (VECTOR_BYTES / (int)sizeof(REAL))
};

static inline __attribute__((always_inline)) NAME(vector) NAME(broadcast)(REAL value)
{
    return value - (NAME(vector)){0};
}

/* (re, im, re, im, ...) */
static inline __attribute__((always_inline)) NAME(vector) NAME(pair)(REAL re, REAL im)
{
    NAME(vector) out;
    for (int k = 0; k < NAME(LANES); k += 2) {
        out[k] = re;
        out[k + 1] = im;
    }
    return out;
}

/* Taps of one axis as scalars in memory, for broadcasting. */
static inline __attribute__((always_inline)) void
NAME(scalar_taps)(const tile_taps *taps, const int support, REAL fraction, REAL *out)
{
    const NAME(vector) y = NAME(broadcast)(2 * fraction - 1);
    const int vectors = (support + NAME(LANES) - 1) / NAME(LANES);
    for (int n = 0; n < vectors; ++n) {
        const int lane = n * NAME(LANES);
        NAME(vector) value = *(const NAME(vector) *)&taps->TAPS[taps->degree][lane];
        for (int d = taps->degree - 1; d >= 0; --d)
            value = value * y + *(const NAME(vector) *)&taps->TAPS[d][lane];
        *(NAME(vector) *)(out + lane) = value;
    }
}

/* Taps along v, each twice. */
static inline __attribute__((always_inline)) void
NAME(pair_taps)(const tile_taps *taps, const int vectors, REAL fraction,
                NAME(vector) *out)
{
    const NAME(vector) y = NAME(broadcast)(2 * fraction - 1);
    for (int n = 0; n < vectors; ++n) {
        const int lane = n * NAME(LANES);
        NAME(vector) value = *(const NAME(vector) *)&taps->TAP_PAIRS[taps->degree][lane];
        for (int d = taps->degree - 1; d >= 0; --d)
            value = value * y + *(const NAME(vector) *)&taps->TAP_PAIRS[d][lane];
        out[n] = value;
    }
}

/* Kernel values around one sample, for all its planes and polarisations. */
typedef struct NAME(footprint) {
    REAL tap_u[TESS_MAX_SUPPORT], tap_w[TESS_MAX_SUPPORT];
    NAME(vector) tap_v[NAME(MAX_VECTORS)];
} NAME(footprint);

static inline __attribute__((always_inline)) void
NAME(footprint_of)(const tile_job *job, const batch *at, int c, const int support,
                   NAME(footprint) *out)
{
    const int vectors = (2 * support + NAME(LANES) - 1) / NAME(LANES);
    NAME(scalar_taps)(job->taps, support, (REAL)at->fraction_u[c], out->tap_u);
    if (job->plan->w_support > 1)
        NAME(scalar_taps)(job->taps, support, (REAL)at->fraction_w[c], out->tap_w);
    else
        out->tap_w[0] = 1;
    NAME(pair_taps)(job->taps, vectors, (REAL)at->fraction_v[c], out->tap_v);
}

/* What to add for polarisation `pol` of a sample: weight × visibility × w-phase, or
 * weight × w-phase for the PSF. */
static inline __attribute__((always_inline)) void
NAME(value_of)(const tile_job *job, int64_t sample, int pol, bool conjugate,
               double phase_re, double phase_im, REAL *re, REAL *im)
{
    const tess_samples *s = job->samples;
    const REAL *weight = (const REAL *)s->weight + sample * s->num_weight;
    REAL vis_re = 1, vis_im = 0, w;
    if (pol < s->num_pol) {
        const REAL *vis = (const REAL *)s->vis + 2 * (sample * s->num_pol + pol);
        vis_re = vis[0];
        vis_im = conjugate ? -vis[1] : vis[1];
        w = weight[s->num_weight == 1 ? 0 : pol];
    } else
        w = weight[pol - s->num_pol];
    const REAL pr = (REAL)phase_re, pi = -(REAL)phase_im; /* e^{−2πi w (n_c − 1)} */
    *re = w * (vis_re * pr - vis_im * pi);
    *im = w * (vis_re * pi + vis_im * pr);
}

static inline __attribute__((always_inline)) void
NAME(grid_sample)(const tile_job *job, const batch *at, int c, int64_t sample,
                  bool conjugate, const int support)
{
    const int vectors = (2 * support + NAME(LANES) - 1) / NAME(LANES);
    const int64_t stride = 2 * tess_grid_brick_stride(job->plan);
    const int64_t line_count = TESS_TILE + support - 1;
    const int planes = job->plan->w_support;
    NAME(footprint) f;
    NAME(footprint_of)(job, at, c, support, &f);
    for (int pol = 0; pol < job->num_pol; ++pol) {
        REAL re, im;
        NAME(value_of)(job, sample, pol, conjugate, at->phase_re[c], at->phase_im[c], &re,
                       &im);
        const NAME(vector) value = NAME(pair)(re, im);
        REAL *plane = (REAL *)job->data +
                      (((int64_t)pol * job->num_planes + at->plane[c]) * line_count +
                       at->offset_u[c]) * stride + 2 * at->offset_v[c];
        for (int p = 0; p < planes; ++p, plane += line_count * stride) {
            const NAME(vector) in_plane = value * NAME(broadcast)(f.tap_w[p]);
            REAL *line = plane;
            #pragma GCC unroll 16
            for (int i = 0; i < support; ++i, line += stride) {
                const NAME(vector) in_line = in_plane * NAME(broadcast)(f.tap_u[i]);
                #pragma GCC unroll 16
                for (int n = 0; n < vectors; ++n) {
                    NAME(vector) *cell = (NAME(vector) *)(line + n * NAME(LANES));
                    *cell += in_line * f.tap_v[n];
                }
            }
        }
    }
}

static inline __attribute__((always_inline)) void
NAME(degrid_sample)(const tile_job *job, const batch *at, int c, int64_t sample,
                    bool conjugate, const int support)
{
    const int vectors = (2 * support + NAME(LANES) - 1) / NAME(LANES);
    const int64_t stride = 2 * tess_grid_brick_stride(job->plan);
    const int64_t line_count = TESS_TILE + support - 1;
    const int planes = job->plan->w_support;
    NAME(footprint) f;
    NAME(footprint_of)(job, at, c, support, &f);
    for (int pol = 0; pol < job->num_pol; ++pol) {
        const REAL *plane = (const REAL *)job->data +
                            (((int64_t)pol * job->num_planes + at->plane[c]) * line_count +
                             at->offset_u[c]) * stride + 2 * at->offset_v[c];
        NAME(vector) sum[NAME(MAX_VECTORS)];
        for (int n = 0; n < vectors; ++n) sum[n] = NAME(broadcast)(0);
        for (int p = 0; p < planes; ++p, plane += line_count * stride) {
            NAME(vector) in_plane[NAME(MAX_VECTORS)];
            for (int n = 0; n < vectors; ++n) in_plane[n] = NAME(broadcast)(0);
            const REAL *line = plane;
            #pragma GCC unroll 16
            for (int i = 0; i < support; ++i, line += stride) {
                const NAME(vector) tap = NAME(broadcast)(f.tap_u[i]);
                #pragma GCC unroll 16
                for (int n = 0; n < vectors; ++n)
                    in_plane[n] += tap * *(const NAME(vector) *)(line + n * NAME(LANES));
            }
            for (int n = 0; n < vectors; ++n)
                sum[n] += NAME(broadcast)(f.tap_w[p]) * in_plane[n];
        }
        REAL re = 0, im = 0;
        for (int n = 0; n < vectors; ++n) {
            const NAME(vector) product = sum[n] * f.tap_v[n];
            for (int k = 0; k < NAME(LANES); k += 2) {
                re += product[k];
                im += product[k + 1];
            }
        }
        const REAL pr = (REAL)at->phase_re[c], pi = (REAL)at->phase_im[c];
        REAL *out = (REAL *)job->vis_out + 2 * (sample * job->num_pol + pol);
        out[0] = re * pr - im * pi;
        out[1] = re * pi + im * pr;
        if (conjugate) out[1] = -out[1];
    }
}

/* Is there anything to grid in this sample? */
static inline bool NAME(has_weight)(const tess_samples *samples, int64_t sample)
{
    const REAL *weight = (const REAL *)samples->weight + sample * samples->num_weight;
    for (int k = 0; k < samples->num_weight; ++k)
        if (weight[k] != 0) return true;
    return false;
}

static inline __attribute__((always_inline)) void
NAME(all_samples)(const tile_job *job, const int support, const bool reverse)
{
    batch at;
    const tess_samples *samples = job->samples;
    const tess_run *run = job->run;
    int64_t left = job->count;
    int32_t done = (int32_t)job->skip;
    while (left > 0) {
        const double *uvw_m = samples->uvw_m + 3 * (int64_t)run->row;
        const tess_row_scale row = tess_row_scale_of(job->plan, uvw_m);
        int32_t end = run->count;
        if (end - done > left) end = done + (int32_t)left;
        left -= end - done;
        for (; done < end; done += BATCH) {
            const int n = end - done < BATCH ? end - done : BATCH;
            place_batch(job, &row, samples->inv_lambda + run->chan + done, n, &at);
            for (int c = 0; c < n; ++c) {
                const int64_t sample = run->first + done + c;
                if (reverse)
                    NAME(degrid_sample)(job, &at, c, sample, row.conjugate, support);
                else if (NAME(has_weight)(samples, sample))
                    NAME(grid_sample)(job, &at, c, sample, row.conjugate, support);
            }
        }
        ++run;
        done = 0;
    }
}

#define TILE_PASTE_(a, b) a##_##b
#define TILE_PASTE(a, b)  TILE_PASTE_(a, b)
#define TILE_LOOP(support)                                                           \
    static void TILE_PASTE(NAME(grid), support)(const tile_job *job)                 \
    {                                                                                \
        NAME(all_samples)(job, support, false);                                      \
    }                                                                                \
    static void TILE_PASTE(NAME(degrid), support)(const tile_job *job)               \
    {                                                                                \
        NAME(all_samples)(job, support, true);                                       \
    }
TILE_LOOP(4)
TILE_LOOP(5)
TILE_LOOP(6)
TILE_LOOP(7)
TILE_LOOP(8)
TILE_LOOP(9)
TILE_LOOP(10)
TILE_LOOP(11)
TILE_LOOP(12)
TILE_LOOP(13)
TILE_LOOP(14)
TILE_LOOP(15)
TILE_LOOP(16)
#undef TILE_LOOP
#undef TILE_PASTE
#undef TILE_PASTE_
