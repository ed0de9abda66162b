/* Keeps sums of residual images, from which the components of all images follow: see
 * cpu_layers.h. */
#include "cpu_layers.h"

#include <math.h>
#include <string.h>

#include "cpu_columns.h"
#include "tess_mem.h"
#include "tess_real.h"

void **cpu_arrays_create(int count, int64_t elements, size_t bytes)
{
    void **array = tess_alloc_zero(count, sizeof *array);
    bool failed = !array;
    for (int k = 0; !failed && k < count; ++k) {
        array[k] = tess_alloc_zero(elements, bytes);
        failed = !array[k];
    }
    for (int k = 0; array && failed && k < count; ++k)
        tess_free(array[k]);
    if (failed) tess_free(array);
    return failed ? NULL : array;
}

void cpu_arrays_free(void **array, int count)
{
    for (int k = 0; array && k < count; ++k)
        tess_free(array[k]);
    tess_free(array);
}

static tess_status create_sums(clean_work *work)
{
    tess_status status = TESS_OK;
    cpu_layers *layers = &work->layers;
    const size_t line = cpu_line_bytes(work);
    const int64_t values = (int64_t)layers->count * work->setup->images.num_images;
    layers->psf = cpu_arrays_create(layers->num_psf, work->columns, line);
    layers->sum = cpu_arrays_create(layers->count, work->columns, line);
    layers->basis = tess_alloc_zero(values, sizeof *layers->basis);
    layers->weights = tess_alloc_zero(values, sizeof *layers->weights);
    if (!layers->psf || !layers->sum || !layers->basis || !layers->weights)
        TESS_FAIL(TESS_ERR_ALLOC, "spectra of images to clean");
    clean_layers_basis(work->setup, layers->basis, layers->weights);
cleanup:
    return status;
}

tess_status cpu_layers_create(clean_work *work)
{
    tess_status status = TESS_OK;
    cpu_layers *layers = &work->layers;
    layers->count = clean_layers_count(work->setup);
    layers->num_psf = clean_layers_psfs(work->setup);
    layers->residual =
        cpu_arrays_create(layers->count, work->columns, cpu_line_bytes(work));
    if (!layers->residual) TESS_FAIL(TESS_ERR_ALLOC, "spectra of images to clean");
    if (clean_layers_are_sums(work->setup)) TESS_TRY(create_sums(work));
cleanup:
    return status;
}

void cpu_layers_free(clean_work *work)
{
    cpu_layers *layers = &work->layers;
    cpu_arrays_free(layers->residual, layers->count);
    cpu_arrays_free(layers->psf, layers->num_psf);
    cpu_arrays_free(layers->sum, layers->count);
    tess_free(layers->basis);
    tess_free(layers->weights);
    *layers = (cpu_layers){0};
}

bool cpu_layer_has_data(const clean_work *work, int layer)
{
    return work->layers.basis || cpu_has_data(work, layer);
}

double cpu_layer_value(const clean_work *work, int layer, const double *flux)
{
    const int images = work->setup->images.num_images;
    double sum = 0;
    if (!work->layers.basis) return flux[layer];
    for (int c = 0; c < images; ++c)
        sum += work->layers.weights[layer * images + c] * flux[c];
    return sum;
}

void cpu_layers_flux(const clean_work *work, const double *noise, double *value,
                     double *flux)
{
    const int images = work->setup->images.num_images;
    const cpu_layers *layers = &work->layers;
    if (!layers->basis) {
        clean_spectrum_fit(&work->setup->join.spectrum, noise, value);
        memcpy(flux, value, (size_t)images * sizeof *flux);
        return;
    }
    for (int c = 0; c < images; ++c) {
        flux[c] = 0;
        for (int t = 0; t < layers->count; ++t)
            flux[c] += layers->basis[t * images + c] * value[t];
    }
}

/* ---- spectra ---- */

/* Makes columns of the PSFs between layers. */
static void make_psfs(const clean_work *work, int64_t column)
{
    const cpu_layers *layers = &work->layers;
    const int images = work->setup->images.num_images;
    for (int t = 0; t < layers->count; ++t)
        for (int u = 0; u <= t; ++u) {
            void *to = cpu_column(work, layers->psf[clean_layers_psf(t, u)], column);
            memset(to, 0, cpu_line_bytes(work));
            for (int c = 0; c < images; ++c)
                if (cpu_has_data(work, c))
                    cpu_column_add(work, cpu_column(work, work->psf[c], column),
                                   layers->weights[t * images + c] *
                                       layers->basis[u * images + c],
                                   to);
        }
}

void cpu_layers_begin(clean_work *work)
{
    cpu_layers *layers = &work->layers;
    if (!layers->basis) return;
#pragma omp parallel for schedule(static) num_threads(work->setup->opts.threads)
    for (int64_t column = 0; column < work->columns; ++column) {
        if (!layers->has_psf) make_psfs(work, column);
        for (int t = 0; t < layers->count; ++t)
            memset(cpu_column(work, layers->sum[t], column), 0, cpu_line_bytes(work));
    }
    layers->has_psf = true;
}

void cpu_layers_less(clean_work *work, int layer, const void *kernel, int64_t column,
                     void *line)
{
    const cpu_layers *layers = &work->layers;
    if (kernel) cpu_column_times(work, NULL, kernel, line);
    cpu_column_add(work, line, 1, cpu_column(work, layers->sum[layer], column));
    for (int u = 0; u < layers->count; ++u)
        cpu_column_less_product(
            work, line,
            cpu_column(work, layers->psf[clean_layers_psf(layer, u)], column),
            cpu_column(work, layers->residual[u], column));
}

/* ---- residuals of the images ---- */

typedef struct change {
    clean_work *work;
    int image;
    const tess_rows *rows;
} change;

static bool give_change_column(void *context, int64_t column, void *line)
{
    const change *job = context;
    const clean_work *work = job->work;
    const cpu_layers *layers = &work->layers;
    const int images = work->setup->images.num_images;
    memset(line, 0, cpu_line_bytes(work));
    for (int t = 0; t < layers->count; ++t)
        cpu_column_add(work, cpu_column(work, layers->sum[t], column),
                       layers->basis[t * images + job->image], line);
    cpu_column_times(work, cpu_column(work, work->psf[job->image], column), NULL, line);
    return true;
}

static void take_change_row(void *context, int64_t row, void *line)
{
    const change *job = context;
    const clean_work *work = job->work;
    const tess_clean_images *images = &work->setup->images;
    for (int64_t x = 0; x < images->nx; ++x) {
        const int64_t at = row * images->nx + x;
        const double value = tess_rows_pixel(job->rows, at);
        if (isfinite(value))
            tess_rows_set(job->rows, at,
                          value - tess_real_at(line, work->is_double, x));
    }
}

tess_status cpu_layers_finish(clean_work *work)
{
    tess_status status = TESS_OK;
    for (int c = 0; c < work->setup->images.num_images; ++c) {
        change job = {work, c, &work->room.view[c]};
        if (!cpu_has_data(work, c)) continue;
        TESS_TRY(tess_convolve_inverse(work->plan, NULL, give_change_column,
                                       take_change_row, &job));
    }
cleanup:
    return status;
}
