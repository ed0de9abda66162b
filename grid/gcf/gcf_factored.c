/* Kernels as sums of a few products. A w-kernel is nearly separable (taper and the
 * quadratic part of n are; what is left grows with w·(field)⁴), so that a plane of it
 * is Σ_r a_r(x)·b_r(y) with few terms: kilobytes of one-dimensional tables instead of
 * two-dimensional ones that stream through the caches. Gridding a tile is then a
 * complex matrix product, (cells along u) × (points and terms) times (points and terms)
 * × (cells along v), of which blocks are held in registers. Points that lie on the same
 * cells and offset along v, on one plane, have their columns added first. Degridding a
 * point is a vector-matrix product. No study of tabulated functions does this.
 *
 * Tried on points in random order, and no faster: rows split beforehand, in tables
 * (they begin anywhere in cache lines); 3/4, 3/2 and 2 times FACTOR_BYTES; tiles of 256
 * cells with buffers of twice the size. */
#include <string.h>

#include "gcf_factor.h"

enum {
    POINTS_AHEAD = 8,
    MOST_DIRECT = 4, /* Tiles may go through the grid itself about so often, where a
                        buffer would be cleared and added to it once. */
    FACTOR_BYTES = 512 * 1024 /* of what products are made of, all together: they are
                                 read once for every row of blocks, from the second
                                 level of cache */
};

static int full_offset(const tess_gcf *gcf, int offset, bool flip)
{
    return flip ? gcf->layout.oversampling - offset : offset;
}

/* Computes the bytes of a factor's split taps over `cells` lines or cells, wherever
 * they start, for any number of lanes. */
static int64_t split_bytes(const tess_gcf_plan *plan, int64_t cells)
{
    return (cells + 2 * GCF_BLOCK_CELLS) * 3 * (plan->gcf->layout.is_double ? 8 : 4);
}

/* Computes the bytes of products, of which there is room for those of at least one
 * point. */
static int64_t factor_bytes(const tess_gcf_plan *plan, int64_t lines)
{
    const int64_t least = GCF_MAX_RANK * (split_bytes(plan, lines) +
                                          split_bytes(plan, plan->gcf->max_support));
    return least > FACTOR_BYTES ? least : FACTOR_BYTES;
}

static int64_t rounded(int64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Computes the bytes of the lists of products for each block of a buffer's cells, and
 * of their lengths. */
static int64_t list_bytes(const tess_gcf_plan *plan, int64_t cells)
{
    const int64_t blocks = cells / gcf_table_best()->lanes[plan->gcf->layout.is_double];
    return rounded(blocks * (GCF_MOST_PRODUCTS + 1) * (int64_t)sizeof(uint16_t));
}

int64_t gcf_factored_work_bytes(const tess_gcf_plan *plan, int64_t lines, int64_t cells)
{
    if (!plan->factors) return 0;
    return rounded(factor_bytes(plan, lines)) + list_bytes(plan, cells) +
           rounded(GCF_MOST_PRODUCTS *
                   (int64_t)(sizeof(gcf_product) + sizeof(gcf_met)));
}

/* Returns the taps from one term of a plane to the next. */
static int64_t term_step(const tess_gcf_plan *plan, int plane)
{
    const tess_gcf *gcf = plan->gcf;
    return gcf->layout.oversampling * gcf_factor_line(gcf->plane[plane].support);
}

/* Computes the bytes of the split column of a product, in whole blocks of lanes. */
static int64_t column_bytes(const gcf_product *product, int64_t lanes, int64_t bytes)
{
    const int64_t begin = product->line / lanes;
    return ((product->end_line + lanes - 1) / lanes - begin) * lanes * 3 * bytes / 2;
}

/* Points whose products have the same rows, [0, count) of the places, and the lines
 * [first, end) of their columns, in a buffer. */
typedef struct bundle {
    const gcf_place *place;
    int64_t count;
    int support;
    int64_t first, end;
} bundle;

static bool same_row(const gcf_place *a, const gcf_place *b)
{
    return a->v == b->v && a->plane == b->plane && a->offset_v == b->offset_v &&
           a->flip_v == b->flip_v && a->conjugate == b->conjugate;
}

/* Finds the next points that are taken together. Each of them meets lines of a point
 * before it, so that one long column takes less time than several columns. */
static bundle next_bundle(const tess_gcf_plan *plan, const gcf_job *job, int64_t k)
{
    const gcf_place *at = &job->place[k];
    const int skip = gcf_skip(plan, at->plane);
    const int support = tess_gcf_plan_support(plan, at->plane);
    const int64_t first = at->u + skip - job->u0;
    bundle next = {
        .place = at, .support = support, .first = first, .end = first + support};
    int64_t n = 1;
    for (; k + n < job->count && same_row(at, &at[n]); ++n) {
        const int64_t u = at[n].u + skip - job->u0;
        if (u < next.first || u >= next.end) break; /* places are in order of u */
        next.end = u + support;
    }
    next.count = n;
    return next;
}

/* Prefetches the visibilities of the points that come next, because they lie anywhere.
 */
static void fetch_visibilities(const gcf_job *job, int64_t k)
{
    const int64_t bytes = (int64_t)gcf_value_bytes(job->gcf) * job->num_pol;
    if (k < job->count)
        __builtin_prefetch((const char *)job->vis + job->place[k].point * bytes);
}

/* Counts the cells on each side of a plane's footprints in which a term is 0. */
static int outside_of(const tess_gcf_plan *plan, int plane, int term)
{
    return tess_gcf_plan_support(plan, plane) / 2 - plan->factors[plane].half[term];
}

/* Makes the columns of a bundle, for one of its terms. */
static void add_columns(const tess_gcf_plan *plan, const gcf_job *job, int pol,
                        const bundle *of, int term, const gcf_product *product,
                        void *out)
{
    const bool is_double = plan->gcf->layout.is_double;
    const gcf_table *table = job->table;
    const int64_t bytes = (int64_t)gcf_value_bytes(plan->gcf);
    const int64_t lanes = table->lanes[is_double];
    const int plane = of->place->plane, outside = outside_of(plan, plane, term);
    const int skip = gcf_skip(plan, plane) + outside;
    const int64_t step = term * term_step(plan, plane);
    const int64_t begin = product->line / lanes * lanes;
    const bool add = of->count > 1;
    if (add) memset(out, 0, (size_t)column_bytes(product, lanes, bytes));
    for (int64_t k = 0; k < of->count; ++k) {
        const gcf_place *at = &of->place[k];
        const int64_t line = at->u + skip - job->u0 - begin;
        const int offset = full_offset(plan->gcf, at->offset_u, at->flip_u);
        const gcf_split split = {
            .taps = (const char *)gcf_factor_at(plan, plane, 0, offset) +
                    (step + skip) * bytes,
            .support = of->support - 2 * outside,
            .shift = (int)(line % lanes),
            .conjugate = at->conjugate,
            .vis = (const char *)job->vis + (at->point * job->num_pol + pol) * bytes,
            .out = (char *)out + (line - line % lanes) * 3 * bytes / 2};
        table->split_column[is_double](&split, add);
    }
}

/* Makes the row that a bundle has in common, for one of its terms. */
static void make_row(const tess_gcf_plan *plan, const gcf_job *job, const bundle *of,
                     int term, int64_t v, void *out)
{
    const tess_gcf *gcf = plan->gcf;
    const bool is_double = gcf->layout.is_double;
    const int64_t bytes = (int64_t)gcf_value_bytes(gcf);
    const int plane = of->place->plane, outside = outside_of(plan, plane, term);
    const int offset = full_offset(gcf, of->place->offset_v, of->place->flip_v);
    const gcf_split split = {
        .taps =
            (const char *)gcf_factor_at(plan, plane, 1, offset) +
            (term * term_step(plan, plane) + gcf_skip(plan, plane) + outside) * bytes,
        .support = of->support - 2 * outside,
        .shift = (int)(v % job->table->lanes[is_double]),
        .conjugate = of->place->conjugate,
        .out = out};
    job->table->split_row[is_double](&split);
}

/* Makes the terms of a bundle, each of which is one product. `values` is moved on. */
static void make_products(const tess_gcf_plan *plan, const gcf_job *job, int pol,
                          const bundle *of, char **values, gcf_product *product)
{
    const tess_gcf *gcf = plan->gcf;
    const int64_t bytes = (int64_t)gcf_value_bytes(gcf);
    const int64_t lanes = job->table->lanes[gcf->layout.is_double];
    const int plane = of->place->plane;
    for (int r = 0; r < plan->factors[plane].rank; ++r) {
        const int outside = outside_of(plan, plane, r);
        const int64_t v = of->place->v + gcf_skip(plan, plane) + outside - job->v0;
        const int64_t end = v + of->support - 2 * outside;
        gcf_product *p = &product[r];
        *p = (gcf_product){.column = *values,
                           .line = (int32_t)(of->first + outside),
                           .end_line = (int32_t)(of->end - outside),
                           .first = (int32_t)(v / lanes),
                           .end = (int32_t)((end + lanes - 1) / lanes)};
        add_columns(plan, job, pol, of, r, p, *values);
        *values += column_bytes(p, lanes, bytes);
        p->row = *values;
        make_row(plan, job, of, r, v, *values);
        *values += (p->end - p->first) * lanes * 3 * bytes / 2;
    }
}

bool gcf_factored_direct(const tess_gcf_plan *plan, const gcf_place *place,
                         int64_t count)
{
    int64_t bytes = 0;
    for (int64_t k = 0; k < count && bytes <= MOST_DIRECT * FACTOR_BYTES; ++k)
        for (int r = 0; r < plan->factors[place[k].plane].rank; ++r)
            bytes += 2 * split_bytes(plan, 2 * plan->factors[place[k].plane].half[r]);
    return bytes <= MOST_DIRECT * FACTOR_BYTES;
}

void gcf_factored_grid(const tess_gcf_plan *plan, const gcf_job *job, void *work)
{
    const tess_gcf *gcf = plan->gcf;
    const int64_t bytes = (int64_t)gcf_value_bytes(gcf);
    char *const values = work, *const end = values + factor_bytes(plan, job->lines);
    uint16_t *list =
        (uint16_t *)(void *)(values + rounded(factor_bytes(plan, job->lines)));
    gcf_product *product =
        (gcf_product *)(void *)((char *)list + list_bytes(plan, job->width));
    gcf_product_job multiply = {
        .product = product,
        .job = job,
        .met = (gcf_met *)(void *)(product + GCF_MOST_PRODUCTS),
        .list = list,
        .block_count = list + job->width / job->table->lanes[gcf->layout.is_double] *
                                  GCF_MOST_PRODUCTS};
    for (int pol = 0; pol < job->num_pol; ++pol)
        for (int64_t k = 0; k < job->count;) {
            char *next = values;
            multiply.count = 0;
            multiply.cells = (char *)job->cells + pol * job->pol_stride * bytes;
            while (k < job->count) {
                const bundle of = next_bundle(plan, job, k);
                fetch_visibilities(job, k + POINTS_AHEAD);
                const int rank = plan->factors[of.place->plane].rank;
                if (multiply.count + rank > GCF_MOST_PRODUCTS ||
                    next + rank * (split_bytes(plan, of.end - of.first) +
                                   split_bytes(plan, of.support)) >
                        end)
                    break;
                make_products(plan, job, pol, &of, &next, product + multiply.count);
                multiply.count += rank;
                k += of.count;
            }
            job->table->multiply[gcf->layout.is_double](&multiply);
        }
}

/* Finds the factors of the kernel at a point, for sums over cells that are `stride`
 * apart. */
static gcf_dot_job dot_at(const tess_gcf_plan *plan, const gcf_place *at,
                          int64_t stride)
{
    const tess_gcf *gcf = plan->gcf;
    const int plane = at->plane, skip = gcf_skip(plan, plane);
    const int64_t step = term_step(plan, plane);
    const int64_t skip_bytes = skip * (int64_t)gcf_value_bytes(gcf);
    const char *column =
        gcf_factor_at(plan, plane, 0, full_offset(gcf, at->offset_u, at->flip_u));
    const char *row =
        gcf_factor_at(plan, plane, 1, full_offset(gcf, at->offset_v, at->flip_v));
    return (gcf_dot_job){.rank = plan->factors[plane].rank,
                         .support = gcf->plane[plane].support - 2 * skip,
                         .half = plan->factors[plane].half,
                         .conjugate = at->conjugate,
                         .column = column + skip_bytes,
                         .row = row + skip_bytes,
                         .column_step = step,
                         .row_step = step,
                         .stride = stride};
}

void gcf_factored_degrid(const tess_gcf_plan *plan, const gcf_job *job)
{
    const bool is_double = plan->gcf->layout.is_double;
    const int64_t bytes = (int64_t)gcf_value_bytes(plan->gcf);
    for (int64_t k = 0; k < job->count; ++k) {
        const gcf_place *at = &job->place[k];
        const int skip = gcf_skip(plan, at->plane);
        gcf_dot_job dot = dot_at(plan, at, job->stride);
        for (int pol = 0; pol < job->num_pol; ++pol) {
            const int64_t out = 2 * (at->point * job->num_pol + pol);
            dot.cells =
                (const char *)job->cells +
                (pol * job->pol_stride + (at->u + skip - job->u0) * job->stride +
                 at->v + skip - job->v0) *
                    bytes;
            job->table->dot[is_double](&dot);
            for (int part = 0; part < 2; ++part)
                if (is_double)
                    ((double *)job->vis)[out + part] = dot.value[part];
                else
                    ((float *)job->vis)[out + part] = (float)dot.value[part];
        }
    }
}
