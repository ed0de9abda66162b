/* The loops themselves, for one precision; included by tile_isa.c with
 *   REAL        float or double
 *   NAME(x)     x with the precision's suffix
 *   TAPS        member of tile_taps
 *   PAIRS(p)    vector of p[0], p[1], p[0], p[1], …
 *   SINCOS      sine and cosine of turns in this precision
 *   FOLD        sums of neighbouring pairs of two vectors
 *
 * The samples of a job are placed (position, kernel fraction, w-phase: place_*), sorted by
 * the cell and plane at which their footprints start, and worked on in parts (part_*).
 * What starts at the same cell and plane is a group: the lines of as many planes of the
 * buffer as the registers hold stay there while the samples of the group pass by, so that
 * a cell is loaded and stored once a group instead of once a sample, no store waits for
 * the one before, and a tap along u is loaded once for all these planes. Kernel rows are
 * whole vectors of (re, im) pairs. Where a row has lanes to spare, starts a few cells
 * apart share a group, their taps being moved along the vector. Samples whose kernel
 * values are all the same are summed before (merge_block).
 *
 * Taps are even and odd polynomials of which both ends of the kernel share one; along u
 * and w they are worked out for a vector of samples at a time and kept tap by tap, along
 * v for some samples at a time as the vectors of pairs that are needed. */

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

/* Vectors of a kernel row. */
#define VECTORS(support) (((support) + NAME(CELLS) - 1) / NAME(CELLS))

/* Reals from a line of a buffer to the next, as tess_grid_brick_stride() says, and from a
 * plane to the next: known to the compiler, so that cells have fixed addresses. */
static inline __attribute__((always_inline)) int NAME(stride)(const int support)
{
    const int cells = 64 / (2 * (int)sizeof(REAL));
    const int vectors = (support + cells - 1) / cells + (TESS_TILE + cells - 2) / cells;
    return 2 * vectors * cells;
}

static inline __attribute__((always_inline)) int NAME(plane_reals)(const int support)
{
    return (TESS_TILE + support - 1) * NAME(stride)(support);
}

/* Vector number `at` of `planes` planes of `lines` lines of a buffer. */
#define PLANE_OF(at) ((at) / vectors / lines)
#define LINE_OF(at)  ((at) / vectors % lines)
#define REAL_OF(at)                                                                  \
    (PLANE_OF(at) * NAME(plane_reals)(support) +                                     \
     LINE_OF(at) * NAME(stride)(support) + (at) % vectors * NAME(LANES))

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

/* Whether this sample has a value or a weight to grid. */
static inline bool NAME(has_weight)(const tile_samples *samples, int64_t sample)
{
    const REAL *weight = (const REAL *)samples->weight + sample * samples->num_weight;
    for (int k = 0; k < samples->num_weight; ++k)
        if (weight[k] != 0) return true;
    return samples->num_weight == 0;
}

/* Prefetches what the runs ahead will need. They lie anywhere in the samples. */
static inline void NAME(look_ahead)(const tile_samples *samples, bool reverse, cursor *at)
{
    enum { LINE = 64 / (int)sizeof(REAL) };
    for (; at->ahead_left > 0 && at->ahead - at->run < RUNS_AHEAD; ++at->ahead) {
        const tess_run *run = at->ahead;
        const REAL *weight = (const REAL *)samples->weight + run->first * samples->num_weight;
        const REAL *vis = (const REAL *)samples->vis + 2 * run->first * samples->num_pol;
        at->ahead_left -= run->count;
        const int64_t num_vis = 2 * (int64_t)run->count * samples->num_pol;
        const int64_t num_weight = (int64_t)run->count * samples->num_weight;
        /* each to its end, which may lie in a line more */
        __builtin_prefetch(samples->uvw_m + 3 * (int64_t)run->row);
        __builtin_prefetch(samples->uvw_m + 3 * (int64_t)run->row + 2);
        for (int64_t k = 0; k < num_vis; k += LINE) __builtin_prefetch(vis + k);
        __builtin_prefetch(vis + num_vis - 1);
        if (reverse || num_weight == 0) continue;
        for (int64_t k = 0; k < num_weight; k += LINE) __builtin_prefetch(weight + k);
        __builtin_prefetch(weight + num_weight - 1);
    }
}

/* Finds up to `room` further samples of the job: their grid coordinates and indices. */
static int NAME(take_samples)(const tile_job *job, bool reverse, int room, cursor *at,
                              coordinates *out, int64_t *sample)
{
    const tile_samples *samples = &job->samples;
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

/* Computes first cells, kernel fractions and w-phases of n samples, which are written
 * from `at` on. */
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

/* Takes the next samples of the job, as many as the block holds. */
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

/* Orders the samples by cell u, group of cells v, and plane, by a stable counting sort.
 * Planes share slots if there are many. The order inside a group then ends early now
 * and then, which only costs speed. */
static void NAME(sort_block)(const tile_job *job, int range, NAME(block) *block)
{
    uint16_t place_of[KEYS + 1];
    const int starts = job->num_planes - job->plan->w_support + 1;
    int coarse = 0;
    while (((starts - 1) >> coarse) >= PLANE_SLOTS) ++coarse;
    const uint32_t slots = (uint32_t)((starts - 1) >> coarse) + 1;
    const uint32_t share = share_of(range);
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

/* ---- samples at one position: redundant baselines, rows that come twice ---- */

/* Whether all kernel values of two samples are equal. If so, the sum of their values is
 * gridded in place of both, and one is degridded for both. */
static inline bool NAME(same_position)(const NAME(block) *block, bool has_w, int a, int b)
{
    return block->place[a] == block->place[b] && block->y_u[a] == block->y_u[b] &&
           block->y_v[a] == block->y_v[b] &&
           (!has_w || block->y_w[a] == block->y_w[b]);
}

static inline uint32_t NAME(slot_of)(const NAME(block) *block, int k)
{
    uint64_t u = 0, v = 0; /* multiplied by odd numbers as Knuth's hashing does */
    memcpy(&u, &block->y_u[k], sizeof(REAL));
    memcpy(&v, &block->y_v[k], sizeof(REAL));
    u = (u ^ block->place[k]) * 0x9e3779b97f4a7c15u ^ v * 0xc2b2ae3d27d4eb4fu;
    return (uint32_t)(u * 0x9e3779b97f4a7c15u >> (64 - SLOT_BITS));
}

/* Looks through the samples [first, end) in their order. Each is put behind the last
 * sample before it at its position that its slot still knows, `next`, and is marked.
 * Returns how many are marked. */
static int NAME(find_same)(const NAME(block) *block, bool has_w, int first, int end,
                           uint16_t *slot, uint16_t *next)
{
    int found = 0;
    for (int k = first; k < end; ++k) {
        const uint16_t own = block->order[k];
        uint16_t *last = &slot[NAME(slot_of)(block, own)];
        next[own] = NO_SAMPLE;
        if (*last != NO_SAMPLE && NAME(same_position)(block, has_w, *last, own)) {
            next[*last] = own;
            block->order[k] |= SAME;
            ++found;
        }
        *last = own;
    }
    return found;
}

/* Puts samples of one position one behind the other; all but the first of them are
 * marked. The order is by cell, so a share of the samples tells whether there are any
 * such samples. If there are none, looking for them costs a sixteenth of what it would.
 * Returns how many samples are marked. */
static int NAME(merge_block)(bool has_w, NAME(block) *block)
{
    uint16_t slot[1 << SLOT_BITS], sorted[TILE_SORTED];
    uint16_t *next = block->key; /* of no further use */
    const int count = block->count, probed = count / PROBED_SHARE;
    if (probed < FEWEST_PROBED) return 0;
    memset(slot, 0xff, sizeof slot);
    int found = NAME(find_same)(block, has_w, 0, probed, slot, next);
    if (found >= probed / WORTH_SHARE)
        found += NAME(find_same)(block, has_w, probed, count, slot, next);
    else
        for (int k = probed; k < count; ++k) next[block->order[k]] = NO_SAMPLE;
    if (found == 0) return 0;
    memcpy(sorted, block->order, (size_t)count * sizeof *sorted);
    for (int k = 0, to = 0; k < count; ++k) {
        if (sorted[k] & SAME) continue;
        block->order[to++] = sorted[k];
        for (uint16_t more = next[sorted[k]]; more != NO_SAMPLE; more = next[more])
            block->order[to++] = more | SAME;
    }
    return found;
}

/* ---- parts: kernel values of some samples in sorted order ---- */

typedef struct NAME(part) {
    int num_samples, count; /* samples, and positions that they have */
    uint8_t position[PART]; /* of each sample */
    int64_t sample[PART];
    _Alignas(64) REAL phase_re[PART], phase_im[PART];
    /* by position */
    uint32_t group[PART]; /* plane << 8 | u << 4 | v of the first cell of its lines */
    int shift[PART];      /* cells from there to the sample's */
    _Alignas(64) REAL y_u[PART], y_v[PART], y_w[PART];
    _Alignas(64) REAL tap_u[TESS_MAX_SUPPORT][PART], tap_w[TESS_MAX_SUPPORT][PART];
    /* [sample][VECTORS(support)]: taps along v; those times a polarisation's value */
    _Alignas(64) NAME(vector) tap_v[PART * NAME(MAX_VECTORS) + 1];
    _Alignas(64) NAME(vector) value[PART * NAME(MAX_VECTORS)];
} NAME(part);

static void NAME(part_take)(const NAME(block) *block, int first, int range, bool has_w,
                            NAME(part) *part)
{
    const int rest = block->count - first, n = rest < PART ? rest : PART;
    const uint32_t share = share_of(range);
    int at = -1;
    for (int k = 0; k < n; ++k) {
        const int order = block->order[first + k], from = order & ~SAME;
        const uint32_t place = block->place[from];
        const uint32_t v = place & 15;
        const uint32_t shift = v - (v * share >> 16) * (uint32_t)range;
        at += k == 0 || order == from;
        part->position[k] = (uint8_t)at;
        part->group[at] = place - shift;
        part->shift[at] = (int)shift;
        part->sample[k] = block->sample[from];
        part->y_u[at] = block->y_u[from];
        part->y_v[at] = block->y_v[from];
        if (has_w) part->y_w[at] = block->y_w[from];
        part->phase_re[k] = block->phase_re[from];
        part->phase_im[k] = block->phase_im[from];
    }
    part->num_samples = n;
    part->count = at + 1;
    /* the vectors' rest */
    for (int k = part->count; k < PART && k % WHOLE != 0; ++k) {
        part->y_u[k] = part->y_v[k] = part->y_w[k] = 0;
        part->shift[k] = 0;
    }
}

/* Computes the taps of one axis of all samples of a part. */
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

/* The same along w where another number of planes is touched than of lines: one loop for
 * any number of them. */
static void NAME(taps_between_planes)(const tile_job *job, NAME(part) *part)
{
    const tile_taps *taps = &job->taps[1];
    for (int j = 0; j < job->plan->w_support; ++j)
        for (int k = 0; k < part->count; k += NAME(LANES)) {
            const NAME(vector) y = *(const NAME(vector) *)(part->y_w + k);
            NAME(vector) tap = NAME(broadcast)(taps->TAPS.pairs[taps->degree][2 * j]);
            for (int d = taps->degree - 1; d >= 0; --d)
                tap = tap * y + NAME(broadcast)(taps->TAPS.pairs[d][2 * j]);
            *(NAME(vector) *)&part->tap_w[j][k] = tap;
        }
}

static inline __attribute__((always_inline)) const NAME(vector) *
NAME(terms)(const tile_taps *taps, int d, int n)
{
    return (const NAME(vector) *)&taps->TAPS.pairs[d][n * NAME(LANES)];
}

/* Computes the taps along v of all samples of a part, each twice, and moves them by the
 * sample's shift. A store leaves zeros behind a row, and the taps of the next sample
 * begin there. */
static inline __attribute__((always_inline)) void
NAME(pair_taps)(const tile_taps *taps, const int vectors, NAME(part) *part)
{
    const int together = vectors > 4 ? 2 : 8 / vectors;
    for (int first = 0; first < part->count; first += together) {
        NAME(vector) y[8], tap[8][NAME(MAX_VECTORS)];
        #pragma GCC unroll 8
        for (int k = 0; k < together; ++k) {
            y[k] = NAME(broadcast)(part->y_v[first + k]);
            #pragma GCC unroll 16
            for (int n = 0; n < vectors; ++n)
                tap[k][n] = *NAME(terms)(taps, taps->degree, n);
        }
        for (int d = taps->degree - 1; d >= 0; --d)
            #pragma GCC unroll 16
            for (int n = 0; n < vectors; ++n) {
                const NAME(vector) term = *NAME(terms)(taps, d, n);
                #pragma GCC unroll 8
                for (int k = 0; k < together; ++k) tap[k][n] = tap[k][n] * y[k] + term;
            }
        #pragma GCC unroll 8
        for (int k = 0; k < together; ++k) {
            NAME(vector) *row = part->tap_v + (first + k) * vectors;
            REAL *to = (REAL *)row + 2 * part->shift[first + k];
            *row = NAME(broadcast)(0);
            #pragma GCC unroll 16
            for (int n = 0; n < vectors; ++n)
                *(NAME(vector) *)(to + n * NAME(LANES)) = tap[k][n];
        }
    }
}

static inline __attribute__((always_inline)) void
NAME(part_taps)(const tile_job *job, const int support, NAME(part) *part)
{
    NAME(scalar_taps)(job->taps, support, part->count, part->y_u, part->tap_u);
    if (job->plan->w_support == support)
        NAME(scalar_taps)(&job->taps[1], support, part->count, part->y_w, part->tap_w);
    else if (job->plan->w_support > 1)
        NAME(taps_between_planes)(job, part);
    else
        for (int k = 0; k < PART; ++k) part->tap_w[0][k] = 1;
    NAME(pair_taps)(job->taps, VECTORS(support), part);
}

/* The samples [first, end) of a part, whose footprints start in one group. */
static inline int NAME(group_end)(const NAME(part) *part, int first)
{
    int end = first + 1;
    while (end < part->count && part->group[end] == part->group[first]) ++end;
    return end;
}

/* ---- gridding ---- */

/* Adds the values of samples to those of their positions. */
static inline void NAME(add_same)(const NAME(part) *part, REAL *pair)
{
    for (int k = 1; k < part->num_samples; ++k) {
        const int to = part->position[k];
        const bool first = to != part->position[k - 1];
        pair[2 * to] = pair[2 * k] + (first ? 0 : pair[2 * to]);
        pair[2 * to + 1] = pair[2 * k + 1] + (first ? 0 : pair[2 * to + 1]);
    }
}

/* Copies the values of positions to all their samples. */
static inline void NAME(copy_same)(const NAME(part) *part, REAL *pair)
{
    for (int k = part->num_samples - 1; k > 0; --k) {
        pair[2 * k] = pair[2 * part->position[k]];
        pair[2 * k + 1] = pair[2 * part->position[k] + 1];
    }
}

/* Computes weight × visibility of the samples of a part, or takes weights for the PSF.
 */
static inline __attribute__((always_inline)) void
NAME(part_weigh)(const tile_job *job, int pol, const NAME(part) *part, REAL *re, REAL *im)
{
    const tile_samples *s = &job->samples;
    const bool is_psf = pol >= s->num_pol;
    const int which = is_psf ? pol - s->num_pol : s->num_weight <= 1 ? 0 : pol;
    const REAL one = 1, *weight = s->num_weight > 0 ? s->weight : &one;
    for (int k = 0; k < part->num_samples; ++k) {
        const int64_t conjugate = part->sample[k] >> 63; /* −1 or 0 */
        const int64_t sample = part->sample[k] ^ conjugate;
        const REAL w = weight[sample * s->num_weight + which];
        const REAL *vis = (const REAL *)s->vis + 2 * (sample * s->num_pol + pol);
        re[k] = is_psf ? w : w * vis[0];
        im[k] = is_psf ? 0 : w * vis[1] * (REAL)(2 * conjugate + 1);
    }
}

/* Computes what is added for polarisation `pol` at each position: these values times
 * the w-phase, exp(−2πi w (n_c−1)), and times the taps along v. */
static inline __attribute__((always_inline)) void
NAME(part_values)(const tile_job *job, int pol, const int vectors, NAME(part) *part)
{
    REAL re[PART], im[PART], pair[2 * PART];
    NAME(part_weigh)(job, pol, part, re, im);
    for (int k = 0; k < part->num_samples; ++k) {
        const REAL pr = part->phase_re[k], pi = part->phase_im[k];
        pair[2 * k] = re[k] * pr + im[k] * pi;
        pair[2 * k + 1] = im[k] * pr - re[k] * pi;
    }
    if (part->count < part->num_samples) NAME(add_same)(part, pair);
    for (int k = 0; k < part->count; ++k) {
        const NAME(vector) value = NAME(broadcast_pair)(&pair[2 * k]);
        for (int n = 0; n < vectors; ++n) 
            part->value[k * vectors + n] = part->tap_v[k * vectors + n] * value;
    }
}

/* Adds the samples [first, end) of a group to `lines` lines of `planes` planes, of
 * which the first is line i of the footprint in plane w. */
static inline __attribute__((always_inline)) void
NAME(add_lines)(const NAME(part) *part, int first, int end, const int support, int w,
                const int planes, const int i, const int lines, REAL *data)
{
    const int vectors = VECTORS(support);
    NAME(vector) sum[MAX_PLANES][MAX_SUMS][NAME(MAX_VECTORS)];
    REAL *const to = data + i * NAME(stride)(support);
    #pragma GCC unroll 32
    for (int at = 0; at < planes * lines * vectors; ++at)
        sum[PLANE_OF(at)][LINE_OF(at)][at % vectors] =
            *(NAME(vector) *)(to + REAL_OF(at));
    for (int k = first; k < end; ++k) {
        NAME(vector) value[MAX_PLANES][NAME(MAX_VECTORS)];
        #pragma GCC unroll 16
        for (int at = 0; at < planes * vectors; ++at)
            value[at / vectors][at % vectors] =
                part->value[k * vectors + at % vectors] *
                NAME(broadcast)(part->tap_w[w + at / vectors][k]);
        #pragma GCC unroll 16
        for (int l = 0; l < lines; ++l) {
            const NAME(vector) tap_u = NAME(broadcast)(part->tap_u[i + l][k]);
            #pragma GCC unroll 16
            for (int at = 0; at < planes * vectors; ++at)
                sum[at / vectors][l][at % vectors] +=
                    value[at / vectors][at % vectors] * tap_u;
        }
    }
    #pragma GCC unroll 32
    for (int at = 0; at < planes * lines * vectors; ++at)
        *(NAME(vector) *)(to + REAL_OF(at)) = sum[PLANE_OF(at)][LINE_OF(at)][at % vectors];
}

/* ---- degridding ---- */

/* Reads `lines` lines of `planes` planes for the samples [first, end) of a group. */
static inline __attribute__((always_inline)) void
NAME(read_lines)(NAME(part) *part, int first, int end, const int support, int w,
                 const int planes, const int i, const int lines, const REAL *data)
{
    const int vectors = VECTORS(support);
    NAME(vector) cell[MAX_PLANES][MAX_SUMS][NAME(MAX_VECTORS)];
    const REAL *const from = data + i * NAME(stride)(support);
    #pragma GCC unroll 32
    for (int at = 0; at < planes * lines * vectors; ++at)
        cell[PLANE_OF(at)][LINE_OF(at)][at % vectors] =
            *(const NAME(vector) *)(from + REAL_OF(at));
    for (int k = first; k < end; ++k) {
        NAME(vector) sum[MAX_PLANES][NAME(MAX_VECTORS)];
        const NAME(vector) first_u = NAME(broadcast)(part->tap_u[i][k]);
        #pragma GCC unroll 16
        for (int at = 0; at < planes * vectors; ++at)
            sum[at / vectors][at % vectors] = cell[at / vectors][0][at % vectors] * first_u;
        #pragma GCC unroll 16
        for (int l = 1; l < lines; ++l) {
            const NAME(vector) tap_u = NAME(broadcast)(part->tap_u[i + l][k]);
            #pragma GCC unroll 16
            for (int at = 0; at < planes * vectors; ++at)
                sum[at / vectors][at % vectors] +=
                    cell[at / vectors][l][at % vectors] * tap_u;
        }
        #pragma GCC unroll 16
        for (int at = 0; at < planes * vectors; ++at)
            part->value[k * vectors + at % vectors] +=
                sum[at / vectors][at % vectors] *
                NAME(broadcast)(part->tap_w[w + at / vectors][k]);
    }
}

/* Folds sums of one polarisation times taps along v to (re, im). As many samples at a
 * time as a vector has pairs take one addition less than there are of them. */
static inline __attribute__((always_inline)) void
NAME(part_fold)(const int vectors, const NAME(part) *part, REAL *pair)
{
    enum { TOGETHER = NAME(CELLS) };
    for (int first = 0; first < part->count; first += TOGETHER) {
        NAME(vector) sum[TOGETHER];
        #pragma GCC unroll 8
        for (int k = 0; k < TOGETHER; ++k) {
            const NAME(vector) *value = part->value + (first + k) * vectors;
            const NAME(vector) *tap_v = part->tap_v + (first + k) * vectors;
            sum[k] = value[0] * tap_v[0];
            #pragma GCC unroll 16
            for (int n = 1; n < vectors; ++n) sum[k] += value[n] * tap_v[n];
        }
        #pragma GCC unroll 4
        for (int left = TOGETHER; left > 1; left /= 2)
            #pragma GCC unroll 4
            for (int k = 0; k < left / 2; ++k)
                sum[k] = FOLD(left == TOGETHER, sum[2 * k], sum[2 * k + 1]);
        *(NAME(vector) *)(pair + 2 * first) = sum[0];
    }
}

/* Gives the folded sums of one polarisation, times the w-phase, to the samples. */
static inline __attribute__((always_inline)) void
NAME(part_store)(const tile_job *job, int pol, const int vectors, const NAME(part) *part)
{
    REAL pair[2 * PART], re[PART], im[PART];
    NAME(part_fold)(vectors, part, pair);
    if (part->count < part->num_samples) NAME(copy_same)(part, pair);
    for (int k = 0; k < part->num_samples; ++k) {
        const REAL pr = part->phase_re[k], pi = part->phase_im[k];
        re[k] = pair[2 * k] * pr - pair[2 * k + 1] * pi;
        im[k] = pair[2 * k] * pi + pair[2 * k + 1] * pr;
    }
    for (int k = 0; k < part->num_samples; ++k) {
        const int64_t conjugate = part->sample[k] >> 63; /* −1 or 0 */
        const int64_t sample = part->sample[k] ^ conjugate;
        const REAL imaginary = im[k] * (REAL)(2 * conjugate + 1);
        REAL *out = (REAL *)job->vis_out + 2 * (sample * job->num_pol + pol);
        out[0] = job->add ? out[0] + re[k] : re[k];
        out[1] = job->add ? out[1] + imaginary : imaginary;
    }
}

/* ---- both ---- */

/* This many lines have sums that fit into the registers together. */
#define LINES_AT_ONCE(vectors) ((vectors) > MAX_SUMS / 2 ? 1 : MAX_SUMS / (vectors))

/* Works on all lines of `planes` planes for a group. w is the tap of the first plane.
 */
static inline __attribute__((always_inline)) void
NAME(pass_planes)(NAME(part) *part, int first, int end, const int support, int w,
                  const int planes, REAL *data, const bool reverse)
{
    const int at_once = planes > 1 ? support : LINES_AT_ONCE(VECTORS(support));
    const int steps = (support + at_once - 1) / at_once;
    #pragma GCC unroll 16
    for (int step = 0; step < steps; ++step) {
        const int i = support * step / steps, lines = support * (step + 1) / steps - i;
        if (reverse)
            NAME(read_lines)(part, first, end, support, w, planes, i, lines, data);
        else
            NAME(add_lines)(part, first, end, support, w, planes, i, lines, data);
    }
}

/* Works on one polarisation of a group, with as many planes at a time as the registers
 * have room for. */
static inline __attribute__((always_inline)) void
NAME(pass_group)(const tile_job *job, NAME(part) *part, int first, int end, int pol,
                 const int support, const bool reverse)
{
    const int at_once = planes_at_once(support * VECTORS(support));
    const int plane = (int)(part->group[first] >> 8);
    const int start = plane > job->kept_first ? plane : job->kept_first;
    const int touched_end = plane + job->plan->w_support;
    const int kept_end = job->kept_first + job->kept_planes;
    const int planes = (touched_end < kept_end ? touched_end : kept_end) - start;
    const int64_t layer = (int64_t)pol * job->kept_planes + start - job->kept_first;
    REAL *data = (REAL *)job->data + layer * NAME(plane_reals)(support) +
                 (int)(part->group[first] >> 4 & 15) * NAME(stride)(support) +
                 2 * (part->group[first] & 15);
    for (int done = 0, now; done < planes; done += now) {
        const int w = start - plane + done;
        now = balanced(planes - done, at_once);
        if (at_once >= 4 && now == 4)
            NAME(pass_planes)(part, first, end, support, w, 4, data, reverse);
        else if (at_once >= 3 && now == 3)
            NAME(pass_planes)(part, first, end, support, w, 3, data, reverse);
        else if (at_once >= 2 && now == 2)
            NAME(pass_planes)(part, first, end, support, w, 2, data, reverse);
        else
            NAME(pass_planes)(part, first, end, support, w, 1, data, reverse);
        data += now * NAME(plane_reals)(support);
    }
}

/* ---- all of a job ---- */

static inline __attribute__((always_inline)) void
NAME(grid_part)(const tile_job *job, const int support, cursor *at, NAME(part) *part)
{
    const int vectors = VECTORS(support);
    for (int pol = 0; pol < job->num_pol; ++pol) {
        NAME(part_values)(job, pol, vectors, part);
        for (int first = 0; first < part->count;) {
            const int end = NAME(group_end)(part, first);
            NAME(pass_group)(job, part, first, end, pol, support, false);
            if (pol == 0) look_at_next(at, end - first);
            first = end;
        }
    }
}

static inline __attribute__((always_inline)) void
NAME(degrid_part)(const tile_job *job, const int support, cursor *at, NAME(part) *part)
{
    const int vectors = VECTORS(support);
    for (int pol = 0; pol < job->num_pol; ++pol) {
        for (int k = 0; k < part->count * vectors; ++k) part->value[k] = NAME(broadcast)(0);
        for (int first = 0; first < part->count;) {
            const int end = NAME(group_end)(part, first);
            NAME(pass_group)(job, part, first, end, pol, support, true);
            if (pol == 0) look_at_next(at, end - first);
            first = end;
        }
        NAME(part_store)(job, pol, vectors, part);
    }
}

static inline __attribute__((always_inline)) void
NAME(all_samples)(const tile_job *job, const int support, const bool reverse)
{
    enum { SPARE = FEW * (int)(sizeof(int64_t) + 5 * sizeof(REAL) + 8) };
    const int range = VECTORS(support) * NAME(CELLS) - support + 1;
    const int capacity = job->work ? TILE_SORTED : FEW;
    _Alignas(64) char spare[SPARE];
    NAME(block) block;
    NAME(part) part;
    cursor at = {.run = job->run,
                 .done = (int32_t)job->skip,
                 .left = job->count,
                 .ahead = job->run,
                 .ahead_left = job->count + job->skip};
    if (job->next && job->count > 0) {
        at.next = job->next;
        at.next_end = at.next + job->next_bytes;
        at.next_each = (job->next_bytes / job->count / 64 + 1) * 64;
    }
    NAME(block_divide)(job->work ? job->work : spare, capacity, &block);
    while (at.left > 0) {
        NAME(fill_block)(job, reverse, capacity, &at, &block);
        NAME(sort_block)(job, range, &block);
        const int merged = NAME(merge_block)(job->plan->opts.do_w, &block);
        if (job->merged) *job->merged += merged;
        for (int first = 0; first < block.count; first += part.num_samples) {
            NAME(part_take)(&block, first, range, job->plan->opts.do_w, &part);
            NAME(part_taps)(job, support, &part);
            if (reverse)
                NAME(degrid_part)(job, support, &at, &part);
            else
                NAME(grid_part)(job, support, &at, &part);
        }
    }
}

#undef VECTORS
#undef LINES_AT_ONCE
#undef PLANE_OF
#undef LINE_OF
#undef REAL_OF
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
