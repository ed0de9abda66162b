/* Kernels as sums of a few products. A w-kernel is nearly separable (taper and the
 * quadratic part of n are; what is left grows with w·(field)⁴), so that a plane of it
 * is Σ_r a_r(x)·b_r(y) with few terms: kilobytes of one-dimensional tables instead of
 * two-dimensional ones that stream through the caches. Gridding a tile is then a
 * complex matrix product, (cells along u) × (points and terms) times (points and terms)
 * × (cells along v), of which blocks are held in registers; degridding a point is a
 * vector-matrix product. Ours; no study of tabulated functions does it. */
#include <string.h>

#include "gcf_grid.h"

enum {
    MOST_PRODUCTS = 256,
    COLUMN_BYTES = 384 * 1024 /* of all columns together: they are read once for every
                                 block of cells, from the second level of cache */
};

static int full_offset(const tess_gcf *gcf, int offset, bool flip)
{
    return flip ? gcf->layout.oversampling - offset : offset;
}

/* Products worked on together, for so many lines. */
static int64_t products_of(const tess_gcf_plan *plan, int64_t lines)
{
    const int64_t most = COLUMN_BYTES / (lines * (int64_t)gcf_value_bytes(plan->gcf));
    return most < GCF_MAX_RANK    ? GCF_MAX_RANK
           : most > MOST_PRODUCTS ? MOST_PRODUCTS
                                  : most;
}

int64_t gcf_factored_work_bytes(const tess_gcf_plan *plan, int64_t lines)
{
    if (!plan->factors) return 0;
    /* fewer lines have more products, up to COLUMN_BYTES */
    const int64_t value = (int64_t)gcf_value_bytes(plan->gcf);
    const int64_t columns = products_of(plan, lines) * lines * value;
    const int64_t bytes =
        (columns > COLUMN_BYTES ? columns : COLUMN_BYTES) +
        MOST_PRODUCTS * (int64_t)(sizeof(gcf_product) + 2 * sizeof(gcf_product *));
    return (bytes + 63) / 64 * 64;
}

/* A column's taps times a visibility; the taps conjugated where w < 0. */
static void scale_column(bool is_double, const void *taps, int support, bool conjugate,
                         const void *vis, void *out)
{
    if (is_double) {
        const double *t = taps, *v = vis, sign = conjugate ? -1 : 1;
        double *o = out;
        for (int k = 0; k < 2 * support; k += 2) {
            o[k] = t[k] * v[0] - sign * t[k + 1] * v[1];
            o[k + 1] = t[k] * v[1] + sign * t[k + 1] * v[0];
        }
    } else {
        const float *t = taps, *v = vis, sign = conjugate ? -1 : 1;
        float *o = out;
        for (int k = 0; k < 2 * support; k += 2) {
            o[k] = t[k] * v[0] - sign * t[k + 1] * v[1];
            o[k + 1] = t[k] * v[1] + sign * t[k + 1] * v[0];
        }
    }
}

/* The terms of a point as products, columns cleared and filled. */
static void make_products(const tess_gcf_plan *plan, const gcf_job *job,
                          const gcf_place *at, int pol, int64_t lines, char *columns,
                          gcf_product *product)
{
    const tess_gcf *gcf = plan->gcf;
    const int64_t bytes = (int64_t)gcf_value_bytes(gcf);
    const int support = gcf->plane[at->plane].support, q = gcf->layout.oversampling;
    const int64_t step = q * gcf_factor_line(support) * bytes;
    const char *column =
        gcf_factor_at(plan, at->plane, 0, full_offset(gcf, at->offset_u, at->flip_u));
    const char *row = gcf_factor_at(plan, at->plane, at->conjugate ? 2 : 1,
                                    full_offset(gcf, at->offset_v, at->flip_v));
    const char *vis = (const char *)job->vis + (at->point * job->num_pol + pol) * bytes;
    const int64_t first = at->u - job->u0;
    for (int r = 0; r < plan->factors[at->plane].rank; ++r) {
        memset(columns, 0, (size_t)(lines * bytes));
        scale_column(gcf->layout.is_double, column + r * step, support, at->conjugate,
                     vis, columns + first * bytes);
        product[r] = (gcf_product){.column = columns,
                                   .row = row + r * step,
                                   .u = (int32_t)first,
                                   .v = (int32_t)(at->v - job->v0),
                                   .support = support};
        columns += lines * bytes;
    }
}

void gcf_factored_grid(const tess_gcf_plan *plan, const gcf_job *job, int64_t lines,
                       void *work)
{
    const tess_gcf *gcf = plan->gcf;
    const int64_t bytes = (int64_t)gcf_value_bytes(gcf),
                  room = products_of(plan, lines);
    gcf_product *product = work;
    const gcf_product **list = (const gcf_product **)(void *)(product + MOST_PRODUCTS);
    char *columns = (char *)(list + 2 * MOST_PRODUCTS);
    gcf_product_job multiply = {.product = product,
                                .lines = lines,
                                .stride = job->stride,
                                .met = list,
                                .near = list + MOST_PRODUCTS};
    for (int pol = 0; pol < job->num_pol; ++pol)
        for (int64_t k = 0; k < job->count;) {
            multiply.count = 0;
            multiply.max_support = 0;
            multiply.all_alike = true;
            multiply.cells = (char *)job->cells + pol * job->pol_stride * bytes;
            for (; k < job->count; ++k) {
                const gcf_place *at = &job->place[k];
                const int rank = plan->factors[at->plane].rank;
                const int support = gcf->plane[at->plane].support;
                if (multiply.count + rank > room) break;
                make_products(plan, job, at, pol, lines,
                              columns + multiply.count * lines * bytes,
                              product + multiply.count);
                multiply.count += rank;
                if (multiply.max_support > 0 && support != multiply.max_support)
                    multiply.all_alike = false;
                if (support > multiply.max_support) multiply.max_support = support;
            }
            gcf_table_best()->multiply[gcf->layout.is_double](&multiply);
        }
}

void gcf_factored_degrid(const tess_gcf_plan *plan, const gcf_job *job)
{
    const tess_gcf *gcf = plan->gcf;
    const bool is_double = gcf->layout.is_double;
    const int64_t bytes = (int64_t)gcf_value_bytes(gcf);
    const gcf_table *table = gcf_table_best();
    for (int64_t k = 0; k < job->count; ++k) {
        const gcf_place *at = &job->place[k];
        const int support = gcf->plane[at->plane].support;
        const int64_t step = gcf->layout.oversampling * gcf_factor_line(support);
        gcf_dot_job dot = {
            .rank = plan->factors[at->plane].rank,
            .support = support,
            .conjugate = at->conjugate,
            .column = gcf_factor_at(plan, at->plane, 0,
                                    full_offset(gcf, at->offset_u, at->flip_u)),
            .row = gcf_factor_at(plan, at->plane, 1,
                                 full_offset(gcf, at->offset_v, at->flip_v)),
            .column_step = step,
            .row_step = step,
            .stride = job->stride};
        for (int pol = 0; pol < job->num_pol; ++pol) {
            const int64_t out = 2 * (at->point * job->num_pol + pol);
            dot.cells = (const char *)job->cells +
                        (pol * job->pol_stride + (at->u - job->u0) * job->stride +
                         at->v - job->v0) *
                            bytes;
            table->dot[is_double](&dot);
            for (int part = 0; part < 2; ++part)
                if (is_double)
                    ((double *)job->vis)[out + part] = dot.value[part];
                else
                    ((float *)job->vis)[out + part] = (float)dot.value[part];
        }
    }
}
