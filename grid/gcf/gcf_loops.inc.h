/* The loops themselves, for one precision. gcf_isa.c includes this file with
 *   REAL        float or double;
 *   TAP         the same, or float for a table's taps in single precision. With
 *               TAPS_ALONE, there are only the loops that read tables;
 *   NAME(x)     x with the precision's suffix;
 *   LIST(name)  a list of lanes of gcf_isa.c, for its vectors. */

typedef REAL NAME(vector)
    __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

/* As many taps. */
typedef TAP NAME(taps)
    __attribute__((vector_size(VECTOR_BYTES / sizeof(REAL) * sizeof(TAP)),
                   aligned(sizeof(TAP)), may_alias));

enum { NAME(LANES) = VECTOR_BYTES / (int)sizeof(REAL), NAME(PAIRS) = NAME(LANES) / 2 };

INLINE NAME(vector) NAME(all)(REAL value)
{
    return value - (NAME(vector)){0};
}

/* (even, odd) all over. */
INLINE NAME(vector) NAME(alternate)(REAL even, REAL odd)
{
    NAME(vector) x;
    for (int k = 0; k < NAME(LANES); k += 2) {
        x[k] = even;
        x[k + 1] = odd;
    }
    return x;
}

INLINE const TAP *NAME(taps_of)(const gcf_job *job, const gcf_place *at)
{
    return (const TAP *)job->taps +
           2 * gcf_table_offset(job->gcf, at->plane, at->offset_u, at->offset_v);
}

INLINE REAL *NAME(cell_of)(const gcf_job *job, const gcf_place *at, int pol)
{
    return (REAL *)job->cells + 2 * gcf_first_cell(job, at, pol);
}

/* ---- vectors of cells ---- */

/* Taps of a few lines on: the processor's own prefetching ends with a page of memory,
 * which four lines of a wide kernel fill. */
INLINE void NAME(fetch)(const TAP *line, int64_t next, int j)
{
    enum { LINES_AHEAD = 4 };
    __builtin_prefetch(line + LINES_AHEAD * next + 2 * j);
}

/* A vector of a line's taps, forwards or backwards. */
INLINE NAME(vector) NAME(taps_at)(const TAP *line, int support, int j, bool flip)
{
    const TAP *from = line + 2 * (flip ? support - NAME(PAIRS) - j : j);
    const NAME(vector) x =
        __builtin_convertvector(*(const NAME(taps) *)from, NAME(vector));
    if (!flip) return x;
    return REVERSE(x);
}

/* (re + i im)(a ± ib): taps (a, b) times (re, ±re) and exchanged ones (b, a) times
 * (∓im, im). A tap is loaded once for all pols. */
INLINE void NAME(stamp)(const gcf_job *job, const gcf_place *at, int num_pol, bool flip)
{
    const int support = job->gcf->plane[at->plane].support;
    const TAP *taps = NAME(taps_of)(job, at);
    const REAL *vis = (const REAL *)job->vis + 2 * at->point * num_pol;
    const int64_t pol_step = 2 * job->pol_stride;
    REAL *cells = NAME(cell_of)(job, at, 0);
    NAME(vector) straight[TESS_GCF_MAX_POL], crossed[TESS_GCF_MAX_POL];
    for (int p = 0; p < num_pol; ++p) {
        const REAL re = vis[2 * p], im = vis[2 * p + 1], sign = at->conjugate ? -1 : 1;
        straight[p] = NAME(alternate)(re, sign * re);
        crossed[p] = NAME(alternate)(-sign * im, im);
    }
    for (int i = 0; i < support; ++i, cells += 2 * job->stride) {
        const TAP *line = taps + 2 * (at->flip_u ? support - 1 - i : i) * support;
        const int64_t next = at->flip_u ? -2 * support : 2 * support;
        for (int j = 0; j < support; j += NAME(PAIRS)) {
            const NAME(vector) tap = NAME(taps_at)(line, support, j, flip);
            const NAME(vector) swapped = SWAP(tap);
            if (support >= FETCH_FROM) NAME(fetch)(line, next, j);
            for (int p = 0; p < num_pol; ++p) {
                NAME(vector) *cell = (NAME(vector) *)(cells + p * pol_step + 2 * j);
                *cell = (*cell + tap * straight[p]) + swapped * crossed[p];
            }
        }
    }
}

INLINE void NAME(stamp_all)(const gcf_job *job, int num_pol)
{
    for (int64_t k = 0; k < job->count; ++k)
        if (job->place[k].flip_v)
            NAME(stamp)(job, &job->place[k], num_pol, true);
        else
            NAME(stamp)(job, &job->place[k], num_pol, false);
}

static void NAME(grid_vectors)(const gcf_job *job)
{
    if (job->num_pol == 1)
        NAME(stamp_all)(job, 1);
    else if (job->num_pol == 2)
        NAME(stamp_all)(job, 2);
    else
        NAME(stamp_all)(job, 4);
}

/* Σ of even and of odd lanes. */
INLINE void NAME(sum_lanes)(NAME(vector) x, REAL *even, REAL *odd)
{
    *even = *odd = 0;
    for (int k = 0; k < NAME(LANES); k += 2) {
        *even += x[k];
        *odd += x[k + 1];
    }
}

/* From Σ tap·cell and Σ swapped tap·cell, lane by lane: with tap (a, b), cell (x, y)
 * the lanes are (ax, by) and (bx, ay). conj(tap)·cell = (ax + by, ay − bx), tap·cell =
 * (ax − by, ay + bx). */
INLINE void NAME(finish)(NAME(vector) straight, NAME(vector) crossed, bool conjugate,
                         REAL value[2])
{
    REAL ax, by, bx, ay;
    NAME(sum_lanes)(straight, &ax, &by);
    NAME(sum_lanes)(crossed, &bx, &ay);
    value[0] = conjugate ? ax - by : ax + by;
    value[1] = conjugate ? ay + bx : ay - bx;
}

/* Two lines at a time: sums that do not wait for one another. */
INLINE void NAME(read)(const gcf_job *job, const gcf_place *at, int num_pol, bool flip)
{
    enum { TURNS = 2 };
    const int support = job->gcf->plane[at->plane].support;
    const TAP *taps = NAME(taps_of)(job, at);
    const REAL *cells = NAME(cell_of)(job, at, 0);
    const int64_t pol_step = 2 * job->pol_stride;
    REAL *vis = (REAL *)job->vis + 2 * at->point * num_pol;
    NAME(vector) straight[TURNS][TESS_GCF_MAX_POL] = {{{0}}};
    NAME(vector) crossed[TURNS][TESS_GCF_MAX_POL] = {{{0}}};
    for (int i = 0; i < support; i += TURNS, cells += 2 * TURNS * job->stride) {
        const TAP *line = taps + 2 * (at->flip_u ? support - 1 - i : i) * support;
        const int64_t next = at->flip_u ? -2 * support : 2 * support;
        for (int j = 0; j < support; j += NAME(PAIRS))
            for (int t = 0; t < TURNS; ++t) {
                const NAME(vector) tap =
                    NAME(taps_at)(line + t * next, support, j, flip);
                const NAME(vector) swapped = SWAP(tap);
                if (support >= FETCH_FROM) NAME(fetch)(line + t * next, next, j);
                for (int p = 0; p < num_pol; ++p) {
                    const NAME(vector) cell = *(const NAME(
                        vector) *)(cells + p * pol_step + 2 * (t * job->stride + j));
                    straight[t][p] += tap * cell;
                    crossed[t][p] += swapped * cell;
                }
            }
    }
    for (int p = 0; p < num_pol; ++p)
        NAME(finish)
    (straight[0][p] + straight[1][p], crossed[0][p] + crossed[1][p], at->conjugate,
     vis + 2 * p);
}

INLINE void NAME(read_all)(const gcf_job *job, int num_pol)
{
    for (int64_t k = 0; k < job->count; ++k)
        if (job->place[k].flip_v)
            NAME(read)(job, &job->place[k], num_pol, true);
        else
            NAME(read)(job, &job->place[k], num_pol, false);
}

static void NAME(degrid_vectors)(const gcf_job *job)
{
    if (job->num_pol == 1)
        NAME(read_all)(job, 1);
    else if (job->num_pol == 2)
        NAME(read_all)(job, 2);
    else
        NAME(read_all)(job, 4);
}

#ifndef TAPS_ALONE

/* ---- products ---- */

INLINE NAME(vector) NAME(load)(const REAL *from)
{
    return *(const NAME(vector) *)from;
}

/* Taps times (re, im), the taps conjugated with `sign` −1, and what is there if they
 * are to be added. */
INLINE void NAME(split)(const gcf_split *split, bool add, REAL re, REAL im)
{
    const REAL *taps = (const REAL *)split->taps - 2 * split->shift;
    const REAL sign = split->conjugate ? -1 : 1;
    const NAME(vector) along_a = NAME(all)(re), cross_a = NAME(all)(im);
    const NAME(vector) along_b = NAME(all)(sign * re), cross_b = NAME(all)(sign * im);
    NAME(vector) *out = split->out;
    for (int k = 0; k < split->shift + split->support; k += NAME(LANES), out += 3) {
        const NAME(vector) x = NAME(load)(taps + 2 * k);
        const NAME(vector) y = NAME(load)(taps + 2 * k + NAME(LANES));
        const NAME(vector) a = EVEN(x, y), b = ODD(x, y);
        NAME(vector) c = a * along_a - b * cross_b, s = a * cross_a + b * along_b;
        if (add) {
            c += out[0];
            s += out[1];
        }
        out[0] = c;
        out[1] = s;
        out[2] = c + s;
    }
}

static void NAME(split_column)(const gcf_split *split, bool add)
{
    const REAL *vis = split->vis;
    if (add)
        NAME(split)(split, true, vis[0], vis[1]);
    else
        NAME(split)(split, false, vis[0], vis[1]);
}

static void NAME(split_row)(const gcf_split *split)
{
    NAME(split)(split, false, 1, 0);
}

/* A block of BLOCK_ROWS lines and LANES cells, held in registers while products pass
 * by. Three real products make a complex one: with p = Σ ac, q = Σ bd, r = Σ (a+b)(c+d)
 * it is p − q + i(r − p − q). */
INLINE void NAME(block)(const gcf_product_job *products, int64_t line, int64_t block)
{
    const gcf_job *job = products->job;
    const gcf_met *met = products->met;
    const uint16_t *list = products->list + block * GCF_MOST_PRODUCTS;
    const int64_t count = products->block_count[block];
    REAL *cells =
        (REAL *)products->cells + 2 * (line * job->stride + block * NAME(LANES));
    NAME(vector) p[BLOCK_ROWS] = {{0}}, q[BLOCK_ROWS] = {{0}}, r[BLOCK_ROWS] = {{0}};
    for (int a = 0; a < BLOCK_ROWS; ++a) {
        __builtin_prefetch(cells + 2 * a * job->stride, 1);
        __builtin_prefetch(cells + 2 * a * job->stride + NAME(LANES), 1);
    }
    for (int64_t k = 0; k < count; ++k) {
        const gcf_met *one = &met[list[k]];
        const REAL *column = one->column;
        const REAL *row =
            (const REAL *)one->row + 3 * NAME(LANES) * (block - one->first);
        const NAME(vector) x = NAME(load)(row), y = NAME(load)(row + NAME(LANES));
        const NAME(vector) z = NAME(load)(row + 2 * NAME(LANES));
        for (int a = 0; a < BLOCK_ROWS; ++a) {
            p[a] += NAME(all)(column[a]) * x;
            q[a] += NAME(all)(column[NAME(LANES) + a]) * y;
            r[a] += NAME(all)(column[2 * NAME(LANES) + a]) * z;
        }
    }
    const int64_t u = job->u0 + line, v = job->v0 + block * NAME(LANES);
    if (job->guard) job->guard(job->locks, u, v, true);
    for (int a = 0; a < BLOCK_ROWS; ++a) {
        const NAME(vector) re = p[a] - q[a], im = r[a] - p[a] - q[a];
        REAL *to = cells + 2 * a * job->stride;
        *(NAME(vector) *)to += FIRST(re, im);
        *(NAME(vector) *)(to + NAME(LANES)) += LAST(re, im);
    }
    if (job->guard) job->guard(job->locks, u, v, false);
}

/* Products that meet the lines from `line` on, and those of them that meet each block
 * of cells. */
INLINE void NAME(meet)(const gcf_product_job *job, int64_t line)
{
    uint16_t n = 0;
    for (int64_t b = 0; b < job->job->width / NAME(LANES); ++b)
        job->block_count[b] = 0;
    for (int64_t k = 0; k < job->count; ++k) {
        const gcf_product *p = &job->product[k];
        if (p->line >= line + BLOCK_ROWS || p->end_line <= line) continue;
        const int64_t at = line - p->line / NAME(LANES) * NAME(LANES);
        const int64_t lane = at % NAME(LANES);
        job->met[n] =
            (gcf_met){.column = (const REAL *)p->column + 3 * (at - lane) + lane,
                      .row = p->row,
                      .first = p->first};
        for (int64_t b = p->first; b < p->end; ++b)
            job->list[b * GCF_MOST_PRODUCTS + job->block_count[b]++] = n;
        ++n;
    }
}

static void NAME(multiply)(const gcf_product_job *job)
{
    for (int64_t line = 0; line < job->job->lines; line += BLOCK_ROWS) {
        NAME(meet)(job, line);
        for (int64_t b = 0; b < job->job->width / NAME(LANES); ++b)
            if (job->block_count[b] > 0) NAME(block)(job, line, b);
    }
}

/* ---- dot products with factors ---- */

/* Lines [begin, end) of terms (constant) from `term` on, cells [j, j + vectors·PAIRS):
 * times columns. */
INLINE void NAME(dot_lines)(const gcf_dot_job *job, int term, int terms, int begin,
                            int end, int j, int vectors,
                            NAME(vector) re[2][DOT_VECTORS],
                            NAME(vector) im[2][DOT_VECTORS])
{
    const REAL *cells = (const REAL *)job->cells + 2 * (begin * job->stride + j);
    const REAL *column =
        (const REAL *)job->column + 2 * (term * job->column_step + begin);
    for (int i = begin; i < end; ++i, cells += 2 * job->stride, column += 2)
        for (int b = 0; b < vectors; ++b) {
            const NAME(vector) x = *(const NAME(vector) *)(cells + b * NAME(LANES));
            for (int t = 0; t < terms; ++t) {
                const REAL *c = column + 2 * t * job->column_step;
                re[t][b] += NAME(all)(c[0]) * x;
                im[t][b] += NAME(all)(c[1]) * x;
            }
        }
}

/* Terms (constant) from `term` on, cells [j, j + vectors·PAIRS) of all lines that they
 * have: first along the columns, a line of sums for each term staying in registers,
 * then along the rows. A second term, of fewer lines, shares what is loaded. */
INLINE void NAME(dot_block)(const gcf_dot_job *job, int term, int terms, int j,
                            int vectors, NAME(vector) * straight,
                            NAME(vector) * crossed)
{
    NAME(vector) re[2][DOT_VECTORS] = {{{0}}}, im[2][DOT_VECTORS] = {{{0}}};
    const REAL *row = (const REAL *)job->row + 2 * (term * job->row_step + j);
    const int middle = job->support / 2;
    const int first = middle - job->half[term], last = middle + job->half[term];
    if (terms == 1)
        NAME(dot_lines)(job, term, 1, first, last, j, vectors, re, im);
    else {
        const int half = job->half[term + 1];
        NAME(dot_lines)(job, term, 1, first, middle - half, j, vectors, re, im);
        NAME(dot_lines)(job, term, 2, middle - half, middle + half, j, vectors, re, im);
        NAME(dot_lines)(job, term, 1, middle + half, last, j, vectors, re, im);
    }
    const REAL sign = job->conjugate ? 1 : -1;
    const NAME(vector) i = NAME(alternate)(-sign, sign);
    for (int t = 0; t < terms; ++t)
        for (int b = 0; b < vectors; ++b) {
            const NAME(vector) sum = re[t][b] + i * SWAP(im[t][b]);
            const NAME(vector) x =
                *(const NAME(vector) *)(row + 2 * t * job->row_step + b * NAME(LANES));
            *straight += x * sum;
            *crossed += SWAP(x) * sum;
        }
}

INLINE void NAME(dot_terms)(const gcf_dot_job *job, int term, int terms, int j,
                            int vectors, NAME(vector) * straight,
                            NAME(vector) * crossed)
{
    if (terms == 2)
        NAME(dot_block)(job, term, 2, j, vectors, straight, crossed);
    else
        NAME(dot_block)(job, term, 1, j, vectors, straight, crossed);
}

static void NAME(dot)(gcf_dot_job *job)
{
    enum { STEP = TESS_GCF_STEP / 2, WIDE = DOT_VECTORS * NAME(PAIRS) };
    NAME(vector) straight = {0}, crossed = {0};
    REAL value[2];
    for (int term = 0; term < job->rank; term += 2) {
        const int terms = job->rank - term > 1 ? 2 : 1;
        const int skip = (job->support / 2 - job->half[term]) / STEP * STEP;
        const int end = job->support - skip;
        int j = skip;
        for (; j + WIDE <= end; j += WIDE)
            NAME(dot_terms)(job, term, terms, j, DOT_VECTORS, &straight, &crossed);
        for (; j < end; j += NAME(PAIRS))
            NAME(dot_terms)(job, term, terms, j, 1, &straight, &crossed);
    }
    NAME(finish)(straight, crossed, job->conjugate, value);
    job->value[0] = (double)value[0];
    job->value[1] = (double)value[1];
}

#endif
