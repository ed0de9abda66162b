/* Lays out a table of convolution functions, and reads it. */
#include <math.h>

#include "gcf_table.h"
#include "tess_const.h"
#include "tess_mem.h"
#include "tess_real.h"

tess_status gcf_check_layout(const tess_gcf_layout *layout)
{
    tess_status status = TESS_OK;
    if (layout->num_planes < 1 || layout->num_planes > TESS_GCF_MAX_PLANES)
        TESS_FAIL(TESS_ERR_USAGE, "%d planes of w-kernels: from 1 to %d",
                  layout->num_planes, TESS_GCF_MAX_PLANES);
    if (layout->oversampling < 1 || layout->oversampling > TESS_GCF_MAX_OVERSAMPLING)
        TESS_FAIL(TESS_ERR_USAGE, "oversampling of %d: from 1 to %d",
                  layout->oversampling, TESS_GCF_MAX_OVERSAMPLING);
    if (layout->is_uneven && layout->oversampling > TESS_GCF_MAX_UNEVEN)
        TESS_FAIL(TESS_ERR_USAGE,
                  "oversampling of %d: from 1 to %d where kernels are not even",
                  layout->oversampling, TESS_GCF_MAX_UNEVEN);
    if (!(layout->w_max_lambda >= 0 && isfinite(layout->w_max_lambda)))
        TESS_FAIL(TESS_ERR_USAGE, "largest w of %g wavelengths", layout->w_max_lambda);
    if (layout->threads < 1) TESS_FAIL(TESS_ERR_USAGE, "%d threads", layout->threads);
cleanup:
    return status;
}

tess_status gcf_check_support(int support)
{
    tess_status status = TESS_OK;
    if (support < TESS_GCF_STEP || support > TESS_GCF_MAX_SUPPORT ||
        support % TESS_GCF_STEP != 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "convolution function of %d cells: multiples of %d up to %d", support,
                  TESS_GCF_STEP, TESS_GCF_MAX_SUPPORT);
cleanup:
    return status;
}

tess_status gcf_begin(const tess_gcf_layout *layout, tess_gcf **gcf)
{
    tess_status status = TESS_OK;
    const int last = layout->num_planes - 1;
    tess_gcf *made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "table of convolution functions");
    made->layout = *layout;
    made->half_offsets =
        (layout->is_uneven ? layout->oversampling : layout->oversampling / 2) + 1;
    made->plane = tess_alloc_zero(layout->num_planes, sizeof *made->plane);
    if (!made->plane) TESS_FAIL(TESS_ERR_ALLOC, "%d planes", layout->num_planes);
    if (last > 0 && layout->w_max_lambda > 0)
        made->scale = (layout->spacing == TESS_GCF_SQRT ? (double)last * last : last) /
                      layout->w_max_lambda;
    for (int p = 0; p <= last && made->scale > 0; ++p)
        made->plane[p].w_lambda =
            (layout->spacing == TESS_GCF_SQRT ? (double)p * p : p) / made->scale;
    *gcf = made;
    made = NULL;
cleanup:
    tess_gcf_destroy(made);
    return status;
}

tess_status gcf_reserve(tess_gcf *gcf)
{
    tess_status status = TESS_OK;
    const int64_t tables = (int64_t)gcf->half_offsets * gcf->half_offsets;
    gcf->num_values = 0;
    gcf->max_support = 0;
    for (int p = 0; p < gcf->layout.num_planes; ++p) {
        tess_gcf_plane *plane = &gcf->plane[p];
        plane->offset = gcf->num_values;
        gcf->num_values += tables * plane->support * plane->support;
        if (plane->support > gcf->max_support) gcf->max_support = plane->support;
    }
    gcf->data = tess_alloc(gcf->num_values, gcf_value_bytes(gcf));
    if (!gcf->data)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for convolution functions (%s)",
                  tess_mem_text((double)tess_gcf_bytes(gcf)));
cleanup:
    return status;
}

static void set_value(tess_gcf *gcf, int64_t at, const double *value)
{
    for (int k = 0; k < 2; ++k)
        if (gcf->layout.is_double)
            ((double *)gcf->data)[2 * at + k] = value[k];
        else
            ((float *)gcf->data)[2 * at + k] = (float)value[k];
}

/* Returns the samples of a plane along each axis, and the number of the sample at 0. */
static int64_t line_of(const tess_gcf_layout *layout, int support, int64_t *middle)
{
    const int64_t half = (int64_t)support / 2 * layout->oversampling;
    *middle = layout->is_uneven ? half : 0;
    return *middle + half + 1;
}

static int64_t index_of(const tess_gcf_layout *layout, int64_t middle, int x)
{
    return layout->is_uneven ? middle + x : abs(x);
}

void gcf_fill_plane(tess_gcf *gcf, int plane, const double *quarter)
{
    const tess_gcf_layout *layout = &gcf->layout;
    const int support = gcf->plane[plane].support, q = layout->oversampling;
    const int first = 1 - support / 2; /* cell of tap 0, the visibility's own being 0 */
    int64_t middle;
    const int64_t line = line_of(layout, support, &middle);
    for (int ou = 0; ou < gcf->half_offsets; ++ou)
        for (int ov = 0; ov < gcf->half_offsets; ++ov) {
            int64_t at = gcf_table_offset(gcf, plane, ou, ov);
            for (int i = 0; i < support; ++i) {
                const double *from =
                    quarter + 2 * line * index_of(layout, middle, (first + i) * q - ou);
                for (int j = 0; j < support; ++j, ++at)
                    set_value(gcf, at,
                              from +
                                  2 * index_of(layout, middle, (first + j) * q - ov));
            }
        }
}

static void evaluate(const tess_gcf *gcf, int plane, tess_gcf_function *function,
                     const void *context, double *quarter)
{
    const double step = 1.0 / gcf->layout.oversampling;
    int64_t middle;
    const int64_t line = line_of(&gcf->layout, gcf->plane[plane].support, &middle);
    for (int64_t x = -middle; x < line - middle; ++x)
        for (int64_t y = -middle; y < line - middle; ++y, quarter += 2)
            function(context, plane, (double)x * step, (double)y * step, quarter);
}

tess_status tess_gcf_create_from(const tess_gcf_layout *layout, const int *support,
                                 tess_gcf_function *function, const void *context,
                                 tess_gcf **gcf)
{
    tess_status status = TESS_OK;
    tess_gcf *made = NULL;
    double *quarter = NULL;
    int64_t values = 0;
    TESS_TRY(gcf_check_layout(layout));
    TESS_TRY(gcf_begin(layout, &made));
    for (int p = 0; p < layout->num_planes; ++p) {
        TESS_TRY(gcf_check_support(support[p]));
        made->plane[p].support = support[p];
        int64_t middle;
        const int64_t line = line_of(layout, support[p], &middle);
        if (line * line > values) values = line * line;
    }
    TESS_TRY(gcf_reserve(made));
    quarter = tess_alloc(values, 2 * sizeof *quarter);
    if (!quarter) TESS_FAIL(TESS_ERR_ALLOC, "no memory for a convolution function");
    for (int p = 0; p < layout->num_planes; ++p) {
        evaluate(made, p, function, context, quarter);
        gcf_fill_plane(made, p, quarter);
    }
    *gcf = made;
    made = NULL;
cleanup:
    tess_free(quarter);
    tess_gcf_destroy(made);
    return status;
}

/* What tess_gcf_create_from() passes on. */
typedef struct formula_of {
    const tess_gcf_formula *formula;
    const tess_gcf *planes; /* for their w */
} formula_of;

static void formula_value(const void *context, int plane, double x, double y,
                          double value[2])
{
    const formula_of *of = context;
    const double r = sqrt(x * x + y * y), l = of->formula->step * r;
    const double size = exp(of->formula->log_peak - of->formula->decay * r);
    /* 1 − √(1 − l²), without cancellation */
    const double turns =
        of->planes->plane[plane].w_lambda * (l * l / (1 + sqrt(1 - l * l)));
    const double extra = of->formula->turns * r * r;
    const double sine = 1 + 0.5 * sin(TESS_TWO_PI * of->formula->ripple * r);
    value[0] = size * sine * cos(TESS_TWO_PI * (turns + extra));
    value[1] = size * sine * sin(TESS_TWO_PI * (turns + extra));
}

tess_status tess_gcf_create_formula(const tess_gcf_layout *layout, const int *support,
                                    const tess_gcf_formula *formula, tess_gcf **gcf)
{
    tess_status status = TESS_OK;
    tess_gcf *planes = NULL, *made = NULL;
    TESS_TRY(gcf_check_layout(layout));
    if (layout->is_uneven) TESS_FAIL(TESS_ERR_USAGE, "kernels of a formula are even");
    TESS_TRY(gcf_begin(layout, &planes));
    for (int p = 0; p < layout->num_planes; ++p) {
        /* taps lie up to S/2 cells away along each axis */
        const double corner = fabs(formula->step) * support[p] / sqrt(2);
        if (!(corner < 1))
            TESS_FAIL(TESS_ERR_USAGE,
                      "a formula's kernels of %d cells, %g direction cosines each: "
                      "beyond the horizon",
                      support[p], formula->step);
    }
    const formula_of of = {.formula = formula, .planes = planes};
    TESS_TRY(tess_gcf_create_from(layout, support, formula_value, &of, &made));
    made->is_formula = true;
    made->formula = *formula;
    *gcf = made;
cleanup:
    tess_gcf_destroy(planes);
    return status;
}

void tess_gcf_destroy(tess_gcf *gcf)
{
    if (!gcf) return;
    tess_free(gcf->plane);
    tess_free(gcf->data);
    tess_free(gcf);
}

int tess_gcf_plane_of(const tess_gcf *gcf, double w_lambda)
{
    const double scaled = fabs(w_lambda) * gcf->scale;
    const double plane =
        floor((gcf->layout.spacing == TESS_GCF_SQRT ? sqrt(scaled) : scaled) + 0.5);
    const int last = gcf->layout.num_planes - 1;
    return plane < last ? (int)plane : last;
}

void tess_gcf_value(const tess_gcf *gcf, int plane, int x, int y, double value[2])
{
    /* |x| as tap i of an offset o: |x| = (1 − S/2 + i) Q − o, 0 ≤ o < Q, or mirrored;
     * of uneven kernels x itself, from offset Q where it is the first */
    const int q = gcf->layout.oversampling, support = gcf->plane[plane].support;
    int tap[2], offset[2];
    const bool uneven = gcf->layout.is_uneven;
    const int asked[2] = {uneven ? x : abs(x), uneven ? y : abs(y)};
    for (int k = 0; k < 2; ++k) {
        /* whole numbers are rounded towards 0: up, if first made negative */
        int cell = asked[k] > 0 ? (asked[k] + q - 1) / q : asked[k] / q;
        if (cell < 1 - support / 2) cell = 1 - support / 2;
        offset[k] = cell * q - asked[k];
        tap[k] = cell - 1 + support / 2;
        if (offset[k] >= gcf->half_offsets) {
            offset[k] = q - offset[k];
            tap[k] = support - 1 - tap[k];
        }
    }
    const int64_t at = gcf_table_offset(gcf, plane, offset[0], offset[1]) +
                       (int64_t)tap[0] * support + tap[1];
    for (int k = 0; k < 2; ++k)
        value[k] = tess_real_at(gcf->data, gcf->layout.is_double, 2 * at + k);
}

int64_t tess_gcf_bytes(const tess_gcf *gcf)
{
    return gcf->num_values * (int64_t)gcf_value_bytes(gcf);
}
