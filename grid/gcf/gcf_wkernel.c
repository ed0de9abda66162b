/* Computes w-kernels by transforms. Taper × exp(−2πi w(n − 1)) is sampled in the image,
 * where it is even in both directions, and padded with zeros to Q samples for each
 * cell. The trapezoidal rule is exact for what does not alias: M samples of a field
 * repeat G every M cells, and M is made wider than the screen's fastest fringe reaches.
 */
#include <math.h>
#include <string.h>

#include "gcf_table.h"
#include "tess_const.h"
#include "tess_fft.h"
#include "tess_geom.h"
#include "tess_kernel.h"
#include "tess_mem.h"

/* Points of the rule for T: the kernel is smooth but for the root at its edge, where it
 * has fallen to exp(−β). */
enum { TAPER_POINTS = 512 };

/* Cells beyond the fastest fringe and the taper's kernel, over which the rest fades
 * out. */
enum { MARGIN = 16 };

/* A plane that is being computed. */
typedef struct screen {
    double w_lambda, field_l, field_m;
    int64_t size;        /* M: samples over the grid's field */
    const double *taper; /* [M + 1] from the centre to |p| = 1 */
} screen;

static double taper_of(const tess_kernel *kernel, double p)
{
    double sum = 0;
    for (int k = 0; k < TAPER_POINTS; ++k) {
        const double z = (k + 0.5) / TAPER_POINTS;
        sum += tess_kernel_value(kernel, z) * cos(TESS_PI * p * kernel->support * z);
    }
    return kernel->support * sum / TAPER_POINTS;
}

void tess_gcf_taper(int taper_support, double padding, int64_t count, const double *p,
                    double *taper)
{
    tess_kernel kernel;
    tess_kernel_create(taper_support, padding, &kernel);
    for (int64_t k = 0; k < count; ++k)
        taper[k] = taper_of(&kernel, p[k]);
}

void tess_gcf_opts_default(tess_gcf_opts *opts)
{
    *opts = (tess_gcf_opts){.layout = {.num_planes = 1,
                                       .w_max_lambda = 32,
                                       .spacing = TESS_GCF_SQRT,
                                       .oversampling = 8,
                                       .threads = 1},
                            .taper_support = 6,
                            .padding = 2,
                            .cut = 1e-3,
                            .min_support = 8,
                            .max_support = 512};
}

tess_status gcf_check_opts(const tess_gcf_opts *opts)
{
    tess_status status = TESS_OK;
    TESS_TRY(gcf_check_layout(&opts->layout));
    if (opts->layout.is_uneven) TESS_FAIL(TESS_ERR_USAGE, "w-kernels are even");
    if (!(opts->field_l > 0 && opts->field_l <= 2 && opts->field_m > 0 &&
          opts->field_m <= 2))
        TESS_FAIL(TESS_ERR_USAGE, "a field of %g × %g direction cosines: up to 2",
                  opts->field_l, opts->field_m);
    if (opts->taper_support < TESS_MIN_SUPPORT ||
        opts->taper_support > TESS_MAX_SUPPORT)
        TESS_FAIL(TESS_ERR_USAGE, "a taper of %d cells: from %d to %d",
                  opts->taper_support, TESS_MIN_SUPPORT, TESS_MAX_SUPPORT);
    if (!(opts->padding >= 1.1 && opts->padding <= 8))
        TESS_FAIL(TESS_ERR_USAGE, "padding of %g: from 1.1 to 8", opts->padding);
    if (!(opts->cut > 0 && opts->cut < 1))
        TESS_FAIL(TESS_ERR_USAGE,
                  "kernels cut at %g of their maximum: above 0, below 1", opts->cut);
    if (opts->min_support < 1 || opts->min_support > opts->max_support ||
        opts->max_support > TESS_GCF_MAX_SUPPORT)
        TESS_FAIL(TESS_ERR_USAGE, "supports of %d to %d cells: from 1 to %d",
                  opts->min_support, opts->max_support, TESS_GCF_MAX_SUPPORT);
    for (int p = 0; opts->support && p < opts->layout.num_planes; ++p)
        TESS_TRY(gcf_check_support(opts->support[p]));
cleanup:
    return status;
}

static int round_up(int64_t cells)
{
    return (int)((cells + TESS_GCF_STEP - 1) / TESS_GCF_STEP * TESS_GCF_STEP);
}

/* Computes half the cells that a plane reaches: w times the largest gradient of n where
 * the taper has not fallen to its stop band, which is |p| ≤ ¾ for padding 2. Towards
 * the horizon n becomes steeper without end, but few samples see that. */
static int64_t reach(const tess_gcf_opts *opts, double w_lambda)
{
    const double edge = 1 - 0.5 / opts->padding;
    const double l = edge * opts->field_l, m = edge * opts->field_m;
    const double wider = fmax(opts->field_l, opts->field_m);
    const double n = sqrt(fmax(1 - l * l - m * m, 0.04));
    return (int64_t)ceil(w_lambda * wider * edge * wider / n) +
           opts->taper_support / 2 + MARGIN;
}

/* The number of samples of a plane that is at least `support` cells wide. */
static int64_t samples_of(const tess_gcf_opts *opts, double w_lambda, int support)
{
    const int64_t cells = 2 * reach(opts, w_lambda);
    const int64_t least = round_up(support) + 2 * MARGIN;
    return tess_geom_fft_size(cells > least ? cells : least);
}

/* Computes the samples of half a line of the image, from m = 0 to the end of the
 * integral, where they count half. */
static void sample_line(const screen *of, int64_t i, double *half_line)
{
    const double p = (double)i / (double)of->size, l = p * of->field_l;
    const double edge = i == of->size ? 0.5 : 1;
    for (int64_t j = 0; j <= of->size; ++j) {
        const double m = (double)j / (double)of->size * of->field_m, r2 = l * l + m * m;
        const double weight = r2 < 1 ? edge * (j == of->size ? 0.5 : 1) * of->taper[i] *
                                           of->taper[j] /
                                           ((double)of->size * (double)of->size)
                                     : 0;
        const double phase = -TESS_TWO_PI * of->w_lambda * tess_geom_nm1(r2);
        half_line[2 * j] = weight * cos(phase);
        half_line[2 * j + 1] = weight * sin(phase);
    }
}

/* Plans transforms of even lines. Only the first half of a line is given, `num_half`
 * complex values, and only the first `wanted` values of its transform are kept. */
typedef struct even_transform {
    tess_fft *fft;
    int64_t length, num_half, wanted;
    double *line, *work; /* [length] complex */
} even_transform;

static void even_transform_end(even_transform *by)
{
    tess_fft_destroy(by->fft);
    tess_free(by->work);
    tess_free(by->line);
}

static tess_status even_transform_begin(even_transform *by)
{
    tess_status status = TESS_OK;
    by->line = tess_alloc(by->length, 2 * sizeof *by->line);
    by->work = tess_alloc(by->length, 2 * sizeof *by->work);
    if (!by->line || !by->work)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to compute a w-kernel");
    TESS_TRY(tess_fft_create(by->length, true, true, 0, &by->fft));
cleanup:
    return status;
}

/* Transforms one line, which is padded with zeros to the length, or folded where the
 * length is shorter. The values lie `step` complex values apart in `out`. */
static void transform_even(const even_transform *by, const double *half, double *out,
                           int64_t step)
{
    const int64_t length = by->length;
    double *line = by->line;
    memset(line, 0, 2 * (size_t)length * sizeof *line);
    for (int64_t k = 0; k < by->num_half; ++k)
        for (int part = 0; part < 2; ++part) {
            line[2 * (k % length) + part] += half[2 * k + part];
            if (k > 0) line[2 * ((length - k) % length) + part] += half[2 * k + part];
        }
    tess_fft_execute(by->fft, line, by->work);
    for (int64_t k = 0; k < by->wanted; ++k) {
        out[2 * k * step] = by->work[2 * k];
        out[2 * k * step + 1] = by->work[2 * k + 1];
    }
}

/* Computes a quarter of G in steps of 1/q cell: quarter[x][y], x, y < wanted. */
static tess_status quarter_of(const screen *of, int q, int64_t wanted, double *quarter)
{
    tess_status status = TESS_OK;
    const int64_t half = of->size + 1;
    even_transform by = {.length = q * of->size, .num_half = half, .wanted = wanted};
    double *lines = tess_alloc(half * wanted, 2 * sizeof *lines); /* [y][i] */
    double *half_line = tess_alloc(half, 2 * sizeof *half_line);
    if (!lines || !half_line)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to compute a w-kernel");
    TESS_TRY(even_transform_begin(&by));
    for (int64_t i = 0; i < half; ++i) {
        sample_line(of, i, half_line);
        transform_even(&by, half_line, lines + 2 * i, half);
    }
    for (int64_t y = 0; y < wanted; ++y)
        transform_even(&by, lines + 2 * y * half, quarter + 2 * y, wanted);
cleanup:
    even_transform_end(&by);
    tess_free(half_line);
    tess_free(lines);
    return status;
}

static tess_status screen_begin(const tess_gcf_opts *opts, const tess_kernel *kernel,
                                double w_lambda, int support, screen *of,
                                double **taper)
{
    tess_status status = TESS_OK;
    const int64_t size = samples_of(opts, w_lambda, support);
    double *made = tess_alloc(size + 1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "taper");
    for (int64_t k = 0; k <= size; ++k)
        made[k] = taper_of(kernel, (double)k / (double)size);
    *of = (screen){.w_lambda = w_lambda,
                   .field_l = opts->field_l,
                   .field_m = opts->field_m,
                   .size = size,
                   .taper = made};
    *taper = made;
cleanup:
    return status;
}

/* Finds the support at which |G|, at whole cells, stays below the cut. */
static tess_status find_support(const tess_gcf_opts *opts, const tess_kernel *kernel,
                                tess_gcf_plane *plane)
{
    tess_status status = TESS_OK;
    screen of = {0};
    double *taper = NULL, *quarter = NULL, most = 0;
    int64_t outermost = 0;
    const int least = round_up(opts->min_support),
              largest = round_up(opts->max_support);
    TESS_TRY(
        screen_begin(opts, kernel, plane->w_lambda, opts->min_support, &of, &taper));
    const int64_t half = of.size / 2;
    quarter = tess_alloc(half * half, 2 * sizeof *quarter);
    if (!quarter) TESS_FAIL(TESS_ERR_ALLOC, "no memory to find a w-kernel's support");
    TESS_TRY(quarter_of(&of, 1, half, quarter));
    for (int64_t k = 0; k < half * half; ++k)
        most = fmax(most, hypot(quarter[2 * k], quarter[2 * k + 1]));
    for (int64_t k = 0; k < half * half; ++k) {
        const int64_t ring = k / half > k % half ? k / half : k % half;
        if (ring > outermost &&
            hypot(quarter[2 * k], quarter[2 * k + 1]) >= opts->cut * most)
            outermost = ring;
    }
    /* taps reach from −S/2 + 1 to S/2, moved by less than a cell */
    const int wanted = round_up(2 * (outermost + 1));
    plane->support = wanted < least ? least : wanted > largest ? largest : wanted;
    plane->is_cut = wanted > largest;
cleanup:
    tess_free(quarter);
    tess_free(taper);
    return status;
}

static tess_status compute_plane(const tess_gcf_opts *opts, const tess_kernel *kernel,
                                 int plane, tess_gcf *gcf)
{
    tess_status status = TESS_OK;
    screen of = {0};
    double *taper = NULL, *quarter = NULL;
    const int q = opts->layout.oversampling, support = gcf->plane[plane].support;
    const int64_t wanted = (int64_t)support / 2 * q + 1;
    TESS_TRY(screen_begin(opts, kernel, gcf->plane[plane].w_lambda,
                          opts->support ? support : opts->min_support, &of, &taper));
    quarter = tess_alloc(wanted * wanted, 2 * sizeof *quarter);
    if (!quarter) TESS_FAIL(TESS_ERR_ALLOC, "no memory for a w-kernel");
    TESS_TRY(quarter_of(&of, q, wanted, quarter));
    gcf_fill_plane(gcf, plane, quarter);
cleanup:
    tess_free(quarter);
    tess_free(taper);
    return status;
}

tess_status tess_gcf_create(const tess_gcf_opts *opts, tess_gcf **gcf)
{
    tess_status status = TESS_OK, failed = TESS_OK;
    tess_gcf *made = NULL;
    tess_kernel kernel;
    TESS_TRY(gcf_check_opts(opts));
    TESS_TRY(gcf_begin(&opts->layout, &made));
    tess_kernel_create(opts->taper_support, opts->padding, &kernel);
    const int planes = opts->layout.num_planes;
    /* the last planes are the widest; they go first, so that threads end together */
#pragma omp parallel for num_threads(opts->layout.threads) schedule(dynamic, 1)
    for (int k = 0; k < planes; ++k) {
        tess_gcf_plane *plane = &made->plane[planes - 1 - k];
        if (opts->support) {
            plane->support = opts->support[planes - 1 - k];
            continue;
        }
        const tess_status one = find_support(opts, &kernel, plane);
        if (one != TESS_OK) {
#pragma omp critical(tess_gcf_failed)
            failed = one;
        }
    }
    TESS_TRY(failed);
    TESS_TRY(gcf_reserve(made));
#pragma omp parallel for num_threads(opts->layout.threads) schedule(dynamic, 1)
    for (int k = 0; k < planes; ++k) {
        const tess_status one = compute_plane(opts, &kernel, planes - 1 - k, made);
        if (one != TESS_OK) {
#pragma omp critical(tess_gcf_failed)
            failed = one;
        }
    }
    TESS_TRY(failed);
    *gcf = made;
    made = NULL;
cleanup:
    tess_gcf_destroy(made);
    return status;
}
