/* The loops themselves, for one precision; included by tile_isa.c with
 *   REAL        float or double
 *   NAME(x)     x with the precision's suffix
 *   TAPS        member of tile_taps
 *   PAIRS(p)    vector of p[0], p[1], p[0], p[1], …
 *   SINCOS      sine and cosine of turns in this precision
 *
 * The samples of a job are placed (position, kernel fraction, w-phase: place_*), sorted by
 * the cell and plane at which their footprints start, and worked on in parts (part_*).
 * What starts at the same cell is a group: for one plane of the buffer at a time, its
 * lines are held in registers while the samples of the group pass by, so that a cell is
 * loaded and stored once a group instead of once a sample, and no store waits for the one
 * before. Kernel rows are whole vectors of (re, im) pairs. Where a row has lanes to spare,
 * starts a few cells apart share a group, their taps being moved along the vector.
 *
 * Taps are even and odd polynomials of which both ends of the kernel share one; along u
 * and w they are worked out for a vector of samples at a time and kept tap by tap, along
 * v for one sample as the vector of pairs that is needed. */

/* unaligned vector of lanes; loads and stores go through it */
typedef REAL NAME(vector)
    __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

enum {
    NAME(LANES) = VECTOR_BYTES / (int)sizeof(REAL),
    NAME(CELLS) = NAME(LANES) / 2,
    NAME(MAX_VECTORS) = TESS_MAX_SUPPORT / NAME(CELLS)
};

static inline __attribute__((always_inline)) NAME(vector) NAME(broadcast)(REAL value)
{
    return value - (NAME(vector)){0};
}

static inline __attribute__((always_inline)) NAME(vector)
NAME(broadcast_pair)(const REAL *pair)
{
    return (NAME(vector))PAIRS(pair);
}

/* ---- placing ---- */

/* Samples of a job in order of row and channel; arrays of `capacity`. */
typedef struct NAME(block) {
    int count;
    REAL *y_u, *y_v, *y_w;     /* 2 × kernel fraction − 1 */
    REAL *phase_re, *phase_im;
    int64_t *sample;           /* index in the samples; ~index: to be conjugated */
    uint32_t *place;           /* plane << 8 | u << 4 | v of the first cell */
    uint16_t *key, *order;
} NAME(block);

static inline void NAME(block_divide)(char *work, int64_t capacity, NAME(block) *block)
{
    const int64_t reals = capacity * (int64_t)sizeof(REAL);
    REAL **const array[] = {&block->y_u, &block->y_v, &block->y_w, &block->phase_re,
                            &block->phase_im};
    block->sample = (int64_t *)(void *)work;
    work += capacity * (int64_t)sizeof *block->sample;
    for (int k = 0; k < 5; ++k, work += reals) *array[k] = (REAL *)(void *)work;
    block->place = (uint32_t *)(void *)work;
    work += capacity * (int64_t)sizeof *block->place;
    block->key = (uint16_t *)(void *)work;
    block->order = block->key + capacity;
}

/* Is there anything to grid in this sample? */
static inline bool NAME(has_weight)(const tess_samples *samples, int64_t sample)
{
    const REAL *weight = (const REAL *)samples->weight + sample * samples->num_weight;
    for (int k = 0; k < samples->num_weight; ++k)
        if (weight[k] != 0) return true;
    return false;
}

/* Touch what the runs ahead will need: they lie anywhere in the samples. */
static inline void NAME(look_ahead)(const tess_samples *samples, bool reverse, cursor *at)
{
    enum { LINE = 64 / (int)sizeof(REAL) };
    for (; at->ahead_left > 0 && at->ahead - at->run < RUNS_AHEAD; ++at->ahead) {
        const tess_run *run = at->ahead;
        const REAL *weight = (const REAL *)samples->weight + run->first * samples->num_weight;
        const REAL *vis = (const REAL *)samples->vis + 2 * run->first * samples->num_pol;
        at->ahead_left -= run->count;
        __builtin_prefetch(samples->uvw_m + 3 * (int64_t)run->row);
        for (int64_t k = 0; k < 2 * (int64_t)run->count * samples->num_pol; k += LINE)
            __builtin_prefetch(vis + k, 0);
        for (int64_t k = 0; !reverse && k < (int64_t)run->count * samples->num_weight;
             k += LINE)
            __builtin_prefetch(weight + k);
    }
}

/* Up to `room` further samples of the job: grid coordinates and index. */
static int NAME(take_samples)(const tile_job *job, bool reverse, int room, cursor *at,
                              coordinates *out, int64_t *sample)
{
    const tess_samples *samples = job->samples;
    int n = 0;
    while (n < room && at->left > 0) {
        const tess_run *run = at->run;
        const tess_row_scale row =
            tess_row_scale_of(job->plan, samples->uvw_m + 3 * (int64_t)run->row);
        const double *inv_lambda = samples->inv_lambda + run->chan;
        const int64_t conjugate = row.conjugate ? -1 : 0;
        int32_t end = run->count;
        if (end - at->done > at->left) end = at->done + (int32_t)at->left;
        if (end - at->done > room - n) end = at->done + room - n;
        at->left -= end - at->done;
        NAME(look_ahead)(samples, reverse, at);
        for (int32_t c = at->done; c < end; ++c) {
            out->u[n] = row.a * inv_lambda[c];
            out->v[n] = row.b * inv_lambda[c];
            out->w[n] = row.w * inv_lambda[c];
            out->turns[n] = row.turns * inv_lambda[c];
            sample[n] = (run->first + c) ^ conjugate;
            n += reverse || NAME(has_weight)(samples, run->first + c);
        }
        at->done = end;
        if (end == run->count) {
            ++at->run;
            at->done = 0;
        }
    }
    return n;
}

/* First cells, kernel fractions and w-phases of n samples, written from `at` on. */
static void NAME(place_samples)(const tile_job *job, const coordinates *in, int n,
                                const NAME(block) *block, int at)
{
    const tess_grid_plan *plan = job->plan;
    const axis u = axis_of((double)job->cell_u, plan->kernel.support, (double)plan->nu,
                           TESS_TILE - 1);
    const axis v = axis_of((double)job->cell_v, plan->kernel.support, (double)plan->nv,
                           TESS_TILE - 1);
    REAL *restrict y_u = block->y_u + at, *restrict y_v = block->y_v + at;
    uint32_t *restrict place = block->place + at;
    for (int k = 0; k < n; ++k) {
        double y[2];
        const int32_t cell_u = axis_place(&u, in->u[k], &y[0]);
        const int32_t cell_v = axis_place(&v, in->v[k], &y[1]);
        y_u[k] = (REAL)y[0];
        y_v[k] = (REAL)y[1];
        place[k] = (uint32_t)(cell_u << 4 | cell_v);
    }
    REAL *restrict phase_re = block->phase_re + at, *restrict phase_im = block->phase_im + at;
    if (tess_has_phase(plan))
        for (int k = 0; k < n; ++k)
            SINCOS(fraction_of_turns(in->turns[k]), &phase_im[k], &phase_re[k]);
    else
        for (int k = 0; k < n; ++k) {
            phase_im[k] = 0;
            phase_re[k] = 1;
        }
    if (!plan->opts.do_w) return; /* all in plane 0; y_w is not looked at */
    const double first = plan->w_first_lambda, per_plane = 1.0 / plan->w_step_lambda;
    const axis w = axis_of(job->plane_first, plan->w_support, 4.0 * plan->num_planes + 64,
                           job->num_planes - plan->w_support);
    REAL *restrict y_w = block->y_w + at;
    for (int k = 0; k < n; ++k) {
        double y;
        place[k] |= (uint32_t)axis_place(&w, (in->w[k] - first) * per_plane, &y) << 8;
        y_w[k] = (REAL)y;
    }
}

/* The next samples of the job, as many as the block holds. */
static void NAME(fill_block)(const tile_job *job, bool reverse, int capacity, cursor *at,
                             NAME(block) *block)
{
    coordinates where;
    block->count = 0;
    while (at->left > 0 && block->count < capacity) {
        const int room = capacity - block->count;
        const int n = NAME(take_samples)(job, reverse, room < PLACED ? room : PLACED, at,
                                         &where, block->sample + block->count);
        NAME(place_samples)(job, &where, n, block, block->count);
        block->count += n;
    }
}

/* Order of the samples by cell u, group of cells v, plane; stable (counting sort). Planes
 * share slots when there are many: the order inside a group then ends early now and then,
 * which only costs speed. */
static void NAME(sort_block)(const tile_job *job, int range, NAME(block) *block)
{
    uint16_t place_of[KEYS + 1];
    const int starts = job->num_planes - job->plan->w_support + 1;
    int coarse = 0;
    while (((starts - 1) >> coarse) >= PLANE_SLOTS) ++coarse;
    const uint32_t slots = (uint32_t)((starts - 1) >> coarse) + 1;
    const uint32_t share = (uint32_t)(65536 / range + 1); /* v / range = v · share / 2^16 */
    const uint32_t groups = (TESS_TILE - 1) * share / 65536 + 1;
    const uint32_t *restrict place = block->place;
    uint16_t *restrict key = block->key;
    for (int k = 0; k < block->count; ++k) {
        const uint32_t u = place[k] >> 4 & 15, group = (place[k] & 15) * share >> 16;
        key[k] = (uint16_t)((u * groups + group) * slots + (place[k] >> (8 + coarse)));
    }
    const int keys = (int)(TESS_TILE * groups * slots);
    memset(place_of, 0, (size_t)(keys + 1) * sizeof *place_of);
    for (int k = 0; k < block->count; ++k) ++place_of[key[k] + 1];
    for (int k = 1; k < keys; ++k) place_of[k] = (uint16_t)(place_of[k] + place_of[k - 1]);
    for (int k = 0; k < block->count; ++k)
        block->order[place_of[key[k]]++] = (uint16_t)k;
}

/* ---- parts: kernel values of some samples in sorted order ---- */

typedef struct NAME(part) {
    int count;
    int cell_u[PART], cell_v[PART], plane[PART]; /* of the group's lines; of the sample */
    int shift[PART];                             /* cells from there to the sample's */
    int64_t sample[PART];
    _Alignas(64) REAL y_u[PART], y_v[PART], y_w[PART], phase_re[PART], phase_im[PART];
    _Alignas(64) REAL tap_u[TESS_MAX_SUPPORT][PART], tap_w[TESS_MAX_SUPPORT][PART];
    _Alignas(64) NAME(vector) tap_v[PART][NAME(MAX_VECTORS)];
    _Alignas(64) NAME(vector) value[PART][NAME(MAX_VECTORS)]; /* of one polarisation, times tap_v */
} NAME(part);

static void NAME(part_take)(const NAME(block) *block, int first, int range, bool has_w,
                            NAME(part) *part)
{
    const int rest = block->count - first, n = rest < PART ? rest : PART;
    part->count = n;
    for (int k = 0; k < n; ++k) {
        const int from = block->order[first + k];
        const uint32_t place = block->place[from];
        const int v = (int)(place & 15);
        part->cell_u[k] = (int)(place >> 4 & 15);
        part->cell_v[k] = v / range * range;
        part->shift[k] = v % range;
        part->plane[k] = (int)(place >> 8);
        part->sample[k] = block->sample[from];
        part->y_u[k] = block->y_u[from];
        part->y_v[k] = block->y_v[from];
        if (has_w) part->y_w[k] = block->y_w[from];
        part->phase_re[k] = block->phase_re[from];
        part->phase_im[k] = block->phase_im[from];
    }
    /* the vectors' rest */
    for (int k = n; k < PART && k % NAME(LANES) != 0; ++k)
        part->y_u[k] = part->y_w[k] = 0;
}

/* Taps of one axis of all samples of a part. */
static inline __attribute__((always_inline)) void
NAME(scalar_taps)(const tile_taps *taps, const int support, int count, const REAL *y,
                  REAL (*out)[PART])
{
    const int half = (support + 1) / 2, terms = taps->half_terms;
    for (int k = 0; k < count; k += NAME(LANES)) {
        const NAME(vector) at = *(const NAME(vector) *)(y + k), square = at * at;
        NAME(vector) even[TESS_MAX_SUPPORT / 2], odd[TESS_MAX_SUPPORT / 2];
        #pragma GCC unroll 8
        for (int j = 0; j < half; ++j) {
            even[j] = NAME(broadcast)(taps->TAPS.even[terms - 1][j]);
            odd[j] = NAME(broadcast)(taps->TAPS.odd[terms - 1][j]);
        }
        for (int d = terms - 2; d >= 0; --d) {
            #pragma GCC unroll 8
            for (int j = 0; j < half; ++j) {
                even[j] = even[j] * square + NAME(broadcast)(taps->TAPS.even[d][j]);
                odd[j] = odd[j] * square + NAME(broadcast)(taps->TAPS.odd[d][j]);
            }
        }
        #pragma GCC unroll 8
        for (int j = 0; j < half; ++j) {
            *(NAME(vector) *)&out[support - 1 - j][k] = even[j] - at * odd[j];
            *(NAME(vector) *)&out[j][k] = even[j] + at * odd[j];
        }
    }
}

/* Taps along v of one sample, each twice, moved by `shift` cells. */
static inline __attribute__((always_inline)) void
NAME(pair_taps)(const tile_taps *taps, const int vectors, int shift, REAL y_of_sample,
                NAME(vector) *out)
{
    const NAME(vector) y = NAME(broadcast)(y_of_sample);
    for (int n = 0; n < vectors; ++n) {
        const int lane = n * NAME(LANES);
        NAME(vector) value =
            *(const NAME(vector) *)&taps->TAPS.pairs[shift][taps->degree][lane];
        for (int d = taps->degree - 1; d >= 0; --d)
            value = value * y + *(const NAME(vector) *)&taps->TAPS.pairs[shift][d][lane];
        out[n] = value;
    }
}

static inline __attribute__((always_inline)) void
NAME(part_taps)(const tile_job *job, const int support, NAME(part) *part)
{
    const int vectors = (support + NAME(CELLS) - 1) / NAME(CELLS);
    NAME(scalar_taps)(job->taps, support, part->count, part->y_u, part->tap_u);
    if (job->plan->w_support > 1)
        NAME(scalar_taps)(job->taps, support, part->count, part->y_w, part->tap_w);
    else
        for (int k = 0; k < PART; ++k) part->tap_w[0][k] = 1;
    for (int k = 0; k < part->count; ++k)
        NAME(pair_taps)(job->taps, vectors, part->shift[k], part->y_v[k], part->tap_v[k]);
}

/* Samples [first, end) of a part whose footprints start in one group, planes ascending. */
static inline int NAME(group_end)(const NAME(part) *part, int first)
{
    int end = first + 1;
    while (end < part->count && part->cell_u[end] == part->cell_u[first] &&
           part->cell_v[end] == part->cell_v[first] && part->plane[end] >= part->plane[end - 1])
        ++end;
    return end;
}

/* Planes of the buffer that a group of samples [first, end) touches. */
static inline plane_range NAME(kept_range)(const tile_job *job, const NAME(part) *part,
                                           int first, int end)
{
    const int kept_last = job->kept_first + job->kept_planes - 1;
    const int touched_last = part->plane[end - 1] + job->plan->w_support - 1;
    return (plane_range){
        part->plane[first] > job->kept_first ? part->plane[first] : job->kept_first,
        touched_last < kept_last ? touched_last : kept_last};
}

/* ---- gridding ---- */

/* Weight × visibility of the samples of a part, or weights for the PSF. */
static inline __attribute__((always_inline)) void
NAME(part_weigh)(const tile_job *job, int pol, const NAME(part) *part, REAL *re, REAL *im)
{
    const tess_samples *s = job->samples;
    const bool is_psf = pol >= s->num_pol;
    const int which = is_psf ? pol - s->num_pol : s->num_weight == 1 ? 0 : pol;
    for (int k = 0; k < part->count; ++k) {
        const int64_t conjugate = part->sample[k] >> 63; /* −1 or 0 */
        const int64_t sample = part->sample[k] ^ conjugate;
        const REAL w = ((const REAL *)s->weight)[sample * s->num_weight + which];
        const REAL *vis = (const REAL *)s->vis + 2 * (sample * s->num_pol + pol);
        re[k] = is_psf ? w : w * vis[0];
        im[k] = is_psf ? 0 : w * vis[1] * (REAL)(2 * conjugate + 1);
    }
}

/* What to add for polarisation `pol` of each sample: that times the w-phase,
 * exp(−2πi w (n_c−1)), times the taps along v. */
static inline __attribute__((always_inline)) void
NAME(part_values)(const tile_job *job, int pol, const int vectors, NAME(part) *part)
{
    REAL re[PART], im[PART], pair[2 * PART];
    NAME(part_weigh)(job, pol, part, re, im);
    for (int k = 0; k < part->count; ++k) {
        const REAL pr = part->phase_re[k], pi = part->phase_im[k];
        pair[2 * k] = re[k] * pr + im[k] * pi;
        pair[2 * k + 1] = im[k] * pr - re[k] * pi;
    }
    for (int k = 0; k < part->count; ++k) {
        const NAME(vector) value = NAME(broadcast_pair)(&pair[2 * k]);
        for (int n = 0; n < vectors; ++n) part->value[k][n] = part->tap_v[k][n] * value;
    }
}

/* Add samples [first, end) of a group to `lines` lines of one plane, the first being the
 * footprint's line i. */
static inline __attribute__((always_inline)) void
NAME(add_lines)(const NAME(part) *part, int plane, int first, int end, const int vectors,
                const int i, const int lines, REAL *data, int64_t stride)
{
    NAME(vector) sum[MAX_SUMS][NAME(MAX_VECTORS)];
    #pragma GCC unroll 16
    for (int l = 0; l < lines; ++l)
        #pragma GCC unroll 16
        for (int n = 0; n < vectors; ++n)
            sum[l][n] = *(const NAME(vector) *)(data + l * stride + n * NAME(LANES));
    for (int k = first; k < end; ++k) {
        NAME(vector) value[NAME(MAX_VECTORS)];
        const NAME(vector) tap_w = NAME(broadcast)(part->tap_w[plane - part->plane[k]][k]);
        #pragma GCC unroll 16
        for (int n = 0; n < vectors; ++n) value[n] = part->value[k][n] * tap_w;
        #pragma GCC unroll 16
        for (int l = 0; l < lines; ++l) {
            const NAME(vector) tap_u = NAME(broadcast)(part->tap_u[i + l][k]);
            #pragma GCC unroll 16
            for (int n = 0; n < vectors; ++n) sum[l][n] += value[n] * tap_u;
        }
    }
    #pragma GCC unroll 16
    for (int l = 0; l < lines; ++l)
        #pragma GCC unroll 16
        for (int n = 0; n < vectors; ++n)
            *(NAME(vector) *)(data + l * stride + n * NAME(LANES)) = sum[l][n];
}

/* Lines whose sums fit into the registers together. */
#define LINES_AT_ONCE(vectors) ((vectors) > MAX_SUMS / 2 ? 1 : MAX_SUMS / (vectors))

static inline __attribute__((always_inline)) void
NAME(grid_group)(const tile_job *job, const NAME(part) *part, int first, int end, int pol,
                 const int support)
{
    const int vectors = (support + NAME(CELLS) - 1) / NAME(CELLS);
    const int at_once = LINES_AT_ONCE(vectors);
    const int planes = job->plan->w_support;
    const int64_t stride = 2 * tess_grid_brick_stride(job->plan);
    const int64_t plane_reals = (TESS_TILE + support - 1) * stride;
    const plane_range range = NAME(kept_range)(job, part, first, end);
    int begin = first, stop = first;
    REAL *data =
        (REAL *)job->data +
        ((int64_t)pol * job->kept_planes + range.first - job->kept_first) * plane_reals +
        part->cell_u[first] * stride + 2 * part->cell_v[first];
    for (int p = range.first; p <= range.last; ++p, data += plane_reals) {
        while (stop < end && part->plane[stop] <= p) ++stop;
        while (begin < stop && part->plane[begin] + planes <= p) ++begin;
        if (begin == stop) continue;
        #pragma GCC unroll 16
        for (int i = 0; i < support; i += at_once)
            NAME(add_lines)(part, p, begin, stop, vectors, i,
                            support - i < at_once ? support - i : at_once,
                            data + i * stride, stride);
    }
}

/* ---- degridding ---- */

/* Read `lines` lines of one plane for samples [first, end) of a group. */
static inline __attribute__((always_inline)) void
NAME(read_lines)(NAME(part) *part, int plane, int first, int end, const int vectors,
                 const int i, const int lines, const REAL *data, int64_t stride)
{
    NAME(vector) cell[MAX_SUMS][NAME(MAX_VECTORS)];
    #pragma GCC unroll 16
    for (int l = 0; l < lines; ++l)
        #pragma GCC unroll 16
        for (int n = 0; n < vectors; ++n)
            cell[l][n] = *(const NAME(vector) *)(data + l * stride + n * NAME(LANES));
    for (int k = first; k < end; ++k) {
        NAME(vector) sum[NAME(MAX_VECTORS)];
        #pragma GCC unroll 16
        for (int l = 0; l < lines; ++l) {
            const NAME(vector) tap_u = NAME(broadcast)(part->tap_u[i + l][k]);
            #pragma GCC unroll 16
            for (int n = 0; n < vectors; ++n)
                sum[n] = l == 0 ? cell[l][n] * tap_u : sum[n] + cell[l][n] * tap_u;
        }
        const NAME(vector) tap_w = NAME(broadcast)(part->tap_w[plane - part->plane[k]][k]);
        #pragma GCC unroll 16
        for (int n = 0; n < vectors; ++n) part->value[k][n] += sum[n] * tap_w;
    }
}

static inline __attribute__((always_inline)) void
NAME(degrid_group)(const tile_job *job, NAME(part) *part, int first, int end, int pol,
                   const int support)
{
    const int vectors = (support + NAME(CELLS) - 1) / NAME(CELLS);
    const int at_once = LINES_AT_ONCE(vectors);
    const int planes = job->plan->w_support;
    const int64_t stride = 2 * tess_grid_brick_stride(job->plan);
    const int64_t plane_reals = (TESS_TILE + support - 1) * stride;
    const plane_range range = NAME(kept_range)(job, part, first, end);
    int begin = first, stop = first;
    const REAL *data =
        (const REAL *)job->data +
        ((int64_t)pol * job->kept_planes + range.first - job->kept_first) * plane_reals +
        part->cell_u[first] * stride + 2 * part->cell_v[first];
    for (int p = range.first; p <= range.last; ++p, data += plane_reals) {
        while (stop < end && part->plane[stop] <= p) ++stop;
        while (begin < stop && part->plane[begin] + planes <= p) ++begin;
        if (begin == stop) continue;
        #pragma GCC unroll 16
        for (int i = 0; i < support; i += at_once)
            NAME(read_lines)(part, p, begin, stop, vectors, i,
                             support - i < at_once ? support - i : at_once,
                             data + i * stride, stride);
    }
}

/* Sums of one polarisation, folded over the taps along v, to the samples. */
static inline __attribute__((always_inline)) void
NAME(part_store)(const tile_job *job, int pol, const int vectors, const NAME(part) *part)
{
    for (int k = 0; k < part->count; ++k) {
        const bool conjugate = part->sample[k] < 0;
        const int64_t sample = conjugate ? ~part->sample[k] : part->sample[k];
        NAME(vector) product = part->value[k][0] * part->tap_v[k][0];
        for (int n = 1; n < vectors; ++n)
            product += part->value[k][n] * part->tap_v[k][n];
        REAL fold[NAME(LANES)];
        *(NAME(vector) *)fold = product;
        #pragma GCC unroll 8
        for (int width = NAME(LANES) / 2; width >= 2; width /= 2)
            #pragma GCC unroll 16
            for (int l = 0; l < width; ++l) fold[l] += fold[l + width];
        const REAL pr = part->phase_re[k], pi = part->phase_im[k];
        REAL *out = (REAL *)job->vis_out + 2 * (sample * job->num_pol + pol);
        const REAL re = fold[0] * pr - fold[1] * pi, im = fold[0] * pi + fold[1] * pr;
        out[0] = job->add ? out[0] + re : re;
        out[1] = job->add ? out[1] + (conjugate ? -im : im) : conjugate ? -im : im;
    }
}

/* ---- all of a job ---- */

static inline __attribute__((always_inline)) void
NAME(grid_part)(const tile_job *job, const int support, NAME(part) *part)
{
    const int vectors = (support + NAME(CELLS) - 1) / NAME(CELLS);
    for (int pol = 0; pol < job->num_pol; ++pol) {
        NAME(part_values)(job, pol, vectors, part);
        for (int first = 0; first < part->count;) {
            const int end = NAME(group_end)(part, first);
            NAME(grid_group)(job, part, first, end, pol, support);
            first = end;
        }
    }
}

static inline __attribute__((always_inline)) void
NAME(degrid_part)(const tile_job *job, const int support, NAME(part) *part)
{
    const int vectors = (support + NAME(CELLS) - 1) / NAME(CELLS);
    for (int pol = 0; pol < job->num_pol; ++pol) {
        for (int k = 0; k < part->count; ++k)
            for (int n = 0; n < vectors; ++n) part->value[k][n] = NAME(broadcast)(0);
        for (int first = 0; first < part->count;) {
            const int end = NAME(group_end)(part, first);
            NAME(degrid_group)(job, part, first, end, pol, support);
            first = end;
        }
        NAME(part_store)(job, pol, vectors, part);
    }
}

static inline __attribute__((always_inline)) void
NAME(all_samples)(const tile_job *job, const int support, const bool reverse)
{
    enum { SPARE = FEW * (int)(sizeof(int64_t) + 5 * sizeof(REAL) + 8) };
    const int range = (support + NAME(CELLS) - 1) / NAME(CELLS) * NAME(CELLS) - support + 1;
    const int capacity = job->work ? TILE_SORTED : FEW;
    _Alignas(64) char spare[SPARE];
    NAME(block) block;
    NAME(part) part;
    cursor at = {.run = job->run,
                 .done = (int32_t)job->skip,
                 .left = job->count,
                 .ahead = job->run,
                 .ahead_left = job->count + job->skip};
    NAME(block_divide)(job->work ? job->work : spare, capacity, &block);
    while (at.left > 0) {
        NAME(fill_block)(job, reverse, capacity, &at, &block);
        NAME(sort_block)(job, range, &block);
        for (int first = 0; first < block.count; first += part.count) {
            NAME(part_take)(&block, first, range, job->plan->opts.do_w, &part);
            NAME(part_taps)(job, support, &part);
            if (reverse)
                NAME(degrid_part)(job, support, &part);
            else
                NAME(grid_part)(job, support, &part);
        }
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
#undef LINES_AT_ONCE
