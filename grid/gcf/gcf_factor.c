/* Takes kernels apart, by truncated singular value decompositions of planes that are
 * sampled in steps of 1/Q cell; a quarter of a plane is enough. A handful of the
 * largest of up to 2049 singular values is wanted. So the plane is first projected on
 * the range of its product with a few random vectors, which power iterations improve
 * (Halko, Martinsson & Tropp 2011, doi:10.1137/090771806, algorithms 4.4 and 5.1). What
 * is left is decomposed by one-sided Jacobi rotations (Hestenes 1958,
 * doi:10.1137/0106005), which need 40 lines and no library. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "gcf_factor.h"
#include "tess_mem.h"

enum {
    SPARE = 4,  /* vectors beyond the most terms wanted */
    POWERS = 2, /* the spectra fall fast: by powers of ten a term */
    SWEEPS = 30
};

typedef double complex value;

/* A plane and vectors of it. All are [size][width], and width is the fastest index. */
typedef struct parts {
    int size, width;
    value *matrix;       /* [size][size] */
    value *left, *right; /* matrix ≈ left · rightᴴ */
} parts;

static void matrix_times(const parts *of, const value *in, value *out)
{
    const int width = of->width;
    for (int i = 0; i < of->size; ++i) {
        value *to = out + (int64_t)i * width;
        for (int k = 0; k < width; ++k)
            to[k] = 0;
        for (int j = 0; j < of->size; ++j) {
            const value m = of->matrix[(int64_t)i * of->size + j];
            const double a = creal(m), b = cimag(m);
            const double *from = (const double *)(in + (int64_t)j * width);
            double *sum = (double *)to;
            for (int k = 0; k < 2 * width; k += 2) {
                sum[k] += a * from[k] - b * from[k + 1];
                sum[k + 1] += a * from[k + 1] + b * from[k];
            }
        }
    }
}

/* Multiplies by the matrix, conjugated and transposed. */
static void adjoint_times(const parts *of, const value *in, value *out)
{
    const int width = of->width;
    memset(out, 0, (size_t)of->size * (size_t)width * sizeof *out);
    for (int i = 0; i < of->size; ++i) {
        const double *from = (const double *)(in + (int64_t)i * width);
        for (int j = 0; j < of->size; ++j) {
            const value m = of->matrix[(int64_t)i * of->size + j];
            const double a = creal(m), b = -cimag(m);
            double *sum = (double *)(out + (int64_t)j * width);
            for (int k = 0; k < 2 * width; k += 2) {
                sum[k] += a * from[k] - b * from[k + 1];
                sum[k + 1] += a * from[k + 1] + b * from[k];
            }
        }
    }
}

/* Computes Σ conj(x_a)·x_b of two columns. */
static value product_of(const parts *of, const value *x, int a, int b)
{
    value sum = 0;
    for (int i = 0; i < of->size; ++i)
        sum += conj(x[(int64_t)i * of->width + a]) * x[(int64_t)i * of->width + b];
    return sum;
}

/* Makes columns orthogonal by Gram and Schmidt, twice, which is enough. Columns that
 * vanish become zeros. */
static void orthonormalise(const parts *of, value *x)
{
    for (int b = 0; b < of->width; ++b) {
        const double before = sqrt(creal(product_of(of, x, b, b)));
        for (int pass = 0; pass < 2; ++pass)
            for (int a = 0; a < b; ++a) {
                const value share = product_of(of, x, a, b);
                for (int i = 0; i < of->size; ++i)
                    x[(int64_t)i * of->width + b] -=
                        share * x[(int64_t)i * of->width + a];
            }
        const double after = sqrt(creal(product_of(of, x, b, b)));
        const double scale = after > 1e-14 * before ? 1 / after : 0;
        for (int i = 0; i < of->size; ++i)
            x[(int64_t)i * of->width + b] *= scale;
    }
}

static void rotate(const parts *of, value *x, int a, int b, double c, value s)
{
    for (int i = 0; i < of->size; ++i) {
        value *row = x + (int64_t)i * of->width;
        const value xa = row[a], xb = row[b];
        row[a] = c * xa - conj(s) * xb;
        row[b] = s * xa + c * xb;
    }
}

/* Makes the columns of `right` orthogonal. `left` is turned with them. */
static void jacobi(const parts *of)
{
    for (int sweep = 0; sweep < SWEEPS; ++sweep) {
        double worst = 0;
        for (int a = 0; a < of->width; ++a)
            for (int b = a + 1; b < of->width; ++b) {
                const double aa = creal(product_of(of, of->right, a, a));
                const double bb = creal(product_of(of, of->right, b, b));
                const value ab = product_of(of, of->right, a, b);
                const double size = cabs(ab);
                if (size <= 1e-15 * sqrt(aa * bb) || size == 0) continue;
                worst = fmax(worst, size / sqrt(aa * bb));
                const double zeta = (bb - aa) / (2 * size);
                const double t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + hypot(1, zeta));
                const double c = 1 / hypot(1, t);
                const value s = c * t * (ab / size);
                rotate(of, of->right, a, b, c, s);
                rotate(of, of->left, a, b, c, s);
            }
        if (worst < 1e-14) return;
    }
}

/* Finds singular vectors and values. The values, squared, end in `power`. */
static void decompose(parts *of, double *power)
{
    uint64_t random = 20;
    for (int64_t k = 0; k < (int64_t)of->size * of->width; ++k) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        of->right[k] = (double)(int64_t)random * 0x1p-63;
    }
    for (int k = 0; k <= POWERS; ++k) {
        matrix_times(of, of->right, of->left);
        orthonormalise(of, of->left);
        adjoint_times(of, of->left, of->right);
        if (k < POWERS) orthonormalise(of, of->right);
    }
    jacobi(of);
    for (int k = 0; k < of->width; ++k)
        power[k] = creal(product_of(of, of->right, k, k));
}

/* Puts terms in the order of falling power. Finds how many of them leave no more than
 * `error` of the plane, and what they leave. 0: more than max_rank would be needed. */
static int choose(const double *power, int width, double total, double error,
                  int max_rank, int *order, double *left)
{
    double rest = total;
    for (int k = 0; k < width; ++k) {
        int at = k;
        for (; at > 0 && power[order[at - 1]] < power[k]; --at)
            order[at] = order[at - 1];
        order[at] = k;
    }
    for (int k = 0; k < max_rank && k < width; ++k) {
        rest -= power[order[k]];
        *left = total > 0 ? sqrt(fmax(rest, 0) / total) : 0;
        if (*left <= error) return k + 1;
    }
    return 0;
}

/* Finds how many taps at either end of all lines are left out, so that what they hold
 * is no more than `error` of the plane. Kernels of small w are narrow, whatever support
 * their table has. Lines at an offset lean to one side by up to a cell, so one cell
 * more is kept. What is left out is added to `*left`. */
static int narrow(const tess_gcf *gcf, int plane, const parts *of, double total,
                  double error, double *left)
{
    const int q = gcf->layout.oversampling, half = gcf->plane[plane].support / 2;
    const int step = TESS_GCF_STEP / 2;
    const double most = (error * error - *left * *left) * total;
    double outside = 0;
    int skip = 0;
    for (; half - skip > step; skip += step) {
        double more = 0;
        const int end = (half - skip) * q - (skip == 0 ? 0 : q);
        const int from = (half - skip - step - 1) * q;
        for (int x = 0; x <= end; ++x)
            for (int y = x > from ? 0 : from + 1; y <= end; ++y) {
                const value g = of->matrix[(int64_t)x * of->size + y];
                more += creal(g) * creal(g) + cimag(g) * cimag(g);
            }
        if (outside + more > most) break;
        outside += more;
    }
    if (total > 0) *left = sqrt(*left * *left + outside / total);
    return skip;
}

/* Finds the first sample of a term that is 0 if the term is `half` cells wide on either
 * side. */
static int end_of(const tess_gcf *gcf, int plane, const parts *of, int half)
{
    return half < gcf->plane[plane].support / 2 ? half * gcf->layout.oversampling
                                                : of->size;
}

/* Computes Σ |column|² · Σ |row|² of a term, over so many cells on either side of the
 * middle. */
static double power_within(const tess_gcf *gcf, int plane, const parts *of, int term,
                           int half)
{
    const int end = end_of(gcf, plane, of, half);
    double sum[2] = {0};
    for (int x = 0; x < end; ++x) {
        const value a = of->left[(int64_t)x * of->width + term];
        const value b = of->right[(int64_t)x * of->width + term];
        sum[0] += creal(a) * creal(a) + cimag(a) * cimag(a);
        sum[1] += creal(b) * creal(b) + cimag(b) * cimag(b);
    }
    return sum[0] * sum[1];
}

/* Computes the power of the plane less the terms, which are cut to half[rank] cells. */
static double power_left(const tess_gcf *gcf, int plane, const parts *of,
                         const int *order, int rank, const uint16_t *half)
{
    int end[GCF_MAX_RANK];
    double sum = 0;
    for (int r = 0; r < rank; ++r)
        end[r] = end_of(gcf, plane, of, half[r]);
    for (int x = 0; x < of->size; ++x)
        for (int y = 0; y < of->size; ++y) {
            value left = of->matrix[(int64_t)x * of->size + y];
            for (int r = 0; r < rank; ++r)
                if (x < end[r] && y < end[r])
                    left -= of->left[(int64_t)x * of->width + order[r]] *
                            conj(of->right[(int64_t)y * of->width + order[r]]);
            sum += creal(left) * creal(left) + cimag(left) * cimag(left);
        }
    return sum;
}

/* Estimates the cells that blocks have for a term. */
static int64_t block_cells(int half)
{
    return (2 * half + GCF_BLOCK_LINES - 1) * (2 * half + GCF_BLOCK_CELLS - 1);
}

/* Takes cells off the terms, as long as these cells hold no more than `most` together.
 * Each time, cells are taken off that term whose outermost cells hold the least for
 * their number. No term is left wider than a term before it. */
static void take_off(const tess_gcf *gcf, int plane, const parts *of, const int *order,
                     int rank, double most, uint16_t *half)
{
    double within[GCF_MAX_RANK], less[GCF_MAX_RANK], taken = 0;
    for (int r = 0; r < rank; ++r) {
        half[r] = (uint16_t)(gcf->plane[plane].support / 2);
        within[r] = power_within(gcf, plane, of, order[r], half[r]);
        less[r] = power_within(gcf, plane, of, order[r], half[r] - 1);
    }
    for (;;) {
        int best = -1;
        double best_rate = 0;
        for (int r = 0; r < rank; ++r) {
            const double more = fmax(within[r] - less[r], 1e-300);
            const double rate =
                (double)(block_cells(half[r]) - block_cells(half[r] - 1)) / more;
            const int least = r + 1 < rank ? half[r + 1] : 1;
            if (half[r] == least || taken + more > most || rate <= best_rate) continue;
            best = r;
            best_rate = rate;
        }
        if (best < 0) return;
        taken += within[best] - less[best];
        --half[best];
        within[best] = less[best];
        less[best] = power_within(gcf, plane, of, order[best], half[best] - 1);
    }
}

/* Finds how many cells of each term are kept, so that what is left of the plane is no
 * more than `error` of it. Kernels of small w are narrow, whatever support their table
 * has, and terms beyond the first need not be whole. Parts of terms are not as
 * orthogonal as whole terms are, so what is left is computed. */
static void cut_terms(const tess_gcf *gcf, int plane, const parts *of, const int *order,
                      double total, double error, gcf_factors *factors)
{
    enum { TRIES = 8 };
    const int whole = gcf->plane[plane].support / 2;
    double most = (error * error - factors->error * factors->error) * total, left = 0;
    int widest = 0, tries = 0;
    do {
        if (++tries > TRIES) most = 0;
        take_off(gcf, plane, of, order, factors->rank, most, factors->half);
        left = power_left(gcf, plane, of, order, factors->rank, factors->half);
        most *= 0.8;
    } while (left > error * error * total && tries <= TRIES);
    for (int r = 0; r < factors->rank; ++r)
        if (factors->half[r] > widest) widest = factors->half[r];
    if (total > 0) factors->error = sqrt(left / total);
    factors->skip = (whole - widest) / (TESS_GCF_STEP / 2) * (TESS_GCF_STEP / 2);
}

static tess_status parts_alloc(const tess_gcf_plan *plan, int plane, parts *of)
{
    tess_status status = TESS_OK;
    const tess_gcf *gcf = plan->gcf;
    of->size = gcf->plane[plane].support / 2 * gcf->layout.oversampling + 1;
    of->width = plan->opts.max_rank + SPARE;
    if (of->width > of->size) of->width = of->size;
    of->matrix = tess_alloc((int64_t)of->size * of->size, sizeof *of->matrix);
    of->left = tess_alloc((int64_t)of->size * of->width, sizeof *of->left);
    of->right = tess_alloc((int64_t)of->size * of->width, sizeof *of->right);
    if (!of->matrix || !of->left || !of->right)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to take a kernel apart");
cleanup:
    return status;
}

static void parts_free(parts *of)
{
    tess_free(of->matrix);
    tess_free(of->left);
    tess_free(of->right);
}

static int64_t values_of(const tess_gcf *gcf, int plane, int rank)
{
    return 2 * (int64_t)rank * gcf->layout.oversampling *
           gcf_factor_line(gcf->plane[plane].support);
}

/* Returns the index of the first tap of a line. `which` is 0 of columns, 1 of rows. */
static int64_t line_at(const tess_gcf_plan *plan, int plane, int which, int term,
                       int offset)
{
    const tess_gcf *gcf = plan->gcf;
    return GCF_BLOCK_CELLS + (((int64_t)which * plan->factors[plane].rank + term) *
                                  gcf->layout.oversampling +
                              offset) *
                                 gcf_factor_line(gcf->plane[plane].support);
}

const void *gcf_factor_at(const tess_gcf_plan *plan, int plane, int which, int offset)
{
    return (const char *)plan->factors[plane].data +
           (size_t)line_at(plan, plane, which, 0, offset) * gcf_value_bytes(plan->gcf);
}

int64_t tess_gcf_plan_factor_bytes(const tess_gcf_plan *plan)
{
    int64_t values = 0;
    for (int p = 0; plan->factors && p < plan->gcf->layout.num_planes; ++p)
        values += values_of(plan->gcf, p, plan->factors[p].rank);
    return values * (int64_t)gcf_value_bytes(plan->gcf);
}

static void set_value(const tess_gcf_plan *plan, int plane, int64_t at, value x)
{
    if (plan->gcf->layout.is_double)
        ((value *)plan->factors[plane].data)[at] = x;
    else
        ((float complex *)plan->factors[plane].data)[at] = (float complex)x;
}

/* Makes lines of all offsets from the singular vectors. */
static void fill_lines(const tess_gcf_plan *plan, int plane, const parts *of,
                       const int *order)
{
    const int support = plan->gcf->plane[plane].support;
    const int skip = plan->factors[plane].skip;
    const int q = plan->gcf->layout.oversampling;
    for (int r = 0; r < plan->factors[plane].rank; ++r) {
        const int end = end_of(plan->gcf, plane, of, plan->factors[plane].half[r]);
        for (int o = 0; o < q; ++o)
            for (int j = skip; j < support - skip; ++j) {
                const int x = abs((1 - support / 2 + j) * q - o);
                if (x >= end) continue; /* they are 0 */
                const int64_t at = (int64_t)x * of->width + order[r];
                const value row = conj(of->right[at]);
                set_value(plan, plane, line_at(plan, plane, 0, r, o) + j, of->left[at]);
                set_value(plan, plane, line_at(plan, plane, 1, r, o) + j, row);
            }
    }
}

static tess_status factor_plane(const tess_gcf_plan *plan, int plane)
{
    tess_status status = TESS_OK;
    const tess_gcf *gcf = plan->gcf;
    gcf_factors *factors = &plan->factors[plane];
    double power[GCF_MAX_RANK + SPARE], total = 0;
    int order[GCF_MAX_RANK + SPARE];
    parts of = {0};
    if (gcf->layout.is_uneven || gcf->plane[plane].support < plan->opts.least_cells)
        return TESS_OK;
    TESS_TRY(parts_alloc(plan, plane, &of));
    for (int x = 0; x < of.size; ++x)
        for (int y = 0; y < of.size; ++y) {
            double found[2];
            tess_gcf_value(gcf, plane, x, y, found);
            of.matrix[(int64_t)x * of.size + y] = CMPLX(found[0], found[1]);
            total += found[0] * found[0] + found[1] * found[1];
        }
    decompose(&of, power);
    const int rank = choose(power, of.width, total, plan->opts.factor_error,
                            plan->opts.max_rank, order, &factors->error);
    if (rank == 0 || gcf->plane[plane].support < rank * plan->opts.least_cells)
        goto cleanup;
    factors->data = tess_alloc_zero(values_of(gcf, plane, rank), gcf_value_bytes(gcf));
    if (!factors->data) TESS_FAIL(TESS_ERR_ALLOC, "factors of a kernel");
    factors->rank = rank;
    if (plan->opts.backend == TESS_GCF_CPU)
        cut_terms(gcf, plane, &of, order, total, plan->opts.factor_error, factors);
    else {
        factors->skip =
            narrow(gcf, plane, &of, total, plan->opts.factor_error, &factors->error);
        for (int r = 0; r < rank; ++r)
            factors->half[r] = (uint16_t)(gcf->plane[plane].support / 2);
    }
    fill_lines(plan, plane, &of, order);
cleanup:
    parts_free(&of);
    return status;
}

tess_status gcf_factor_planes(tess_gcf_plan *plan)
{
    tess_status status = TESS_OK, failed = TESS_OK;
    const int planes = plan->gcf->layout.num_planes;
    plan->factors = tess_alloc_zero(planes, sizeof *plan->factors);
    if (!plan->factors) TESS_FAIL(TESS_ERR_ALLOC, "factors of kernels");
#pragma omp parallel for num_threads(plan->opts.threads) schedule(dynamic, 1)
    for (int k = 0; k < planes; ++k) {
        const tess_status one = factor_plane(plan, planes - 1 - k);
        if (one != TESS_OK) {
#pragma omp critical(tess_gcf_failed)
            failed = one;
        }
    }
    TESS_TRY(failed);
cleanup:
    return status;
}
