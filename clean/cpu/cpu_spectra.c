/* Transforms between rows and spectra for the cpu backend: residuals at scales, PSFs,
 * and the changes that components make in them. */
#include "cpu_spectra.h"

#include <math.h>
#include <string.h>

#include "clean_scales.h"
#include "cpu_columns.h"
#include "cpu_grids.h"
#include "cpu_layers.h"
#include "cpu_slot.h"
#include "tess_mem.h"
#include "tess_real.h"

/* Adds factor · share of the image · its column to the column of the mean. Nothing is
 * to be added if the first layer is the mean. */
static void add_to_mean(const clean_work *work, int image, double factor,
                        int64_t column, const void *line)
{
    if (!work->mean.spectrum || work->layers.basis) return;
    const double share = factor * work->setup->join.share[image];
    if (share != 0)
        cpu_column_add(work, line, share,
                       cpu_column(work, work->mean.spectrum, column));
}

/* The context of one transform. */
typedef struct transform {
    clean_work *work;
    int image; /* number of the image, or of the layer */
    int scale;
    const tess_rows *rows; /* a view of the caller's image */
    cpu_slot *slot;
    const clean_components *found;
    const int *place_of;  /* [found->count] their places, or NULL: all have the same */
    int place;            /* of the components that are transformed */
    bool adds;            /* to the product of another place */
    const double *kernel; /* [2·half + 1][2·half + 1] */
    int64_t half;
} transform;

static const void *kernel_of(const transform *job)
{
    return job->work->kernel ? job->work->kernel[job->scale] : NULL;
}

/* ---- kernels and PSFs ---- */

static bool give_kernel_row(void *context, int64_t row, void *line)
{
    const transform *job = context;
    const clean_work *work = job->work;
    const tess_clean_images *images = &work->setup->images;
    const int64_t dy = images->row_first + row - images->ny / 2, half = job->half;
    if (dy < -half || dy > half) return false;
    memset(line, 0, (size_t)images->nx * work->real_bytes);
    for (int64_t dx = -half; dx <= half; ++dx) {
        const int64_t x = images->nx / 2 + dx;
        if (x < 0 || x >= images->nx) continue;
        tess_real_set(line, work->is_double, x,
                      job->kernel[(dy + half) * (2 * half + 1) + dx + half]);
    }
    return true;
}

static void take_kernel(void *context, int64_t column, void *line)
{
    const transform *job = context;
    const clean_work *work = job->work;
    cpu_column_real(work, line,
                    (char *)work->kernel[job->scale] +
                        (size_t)column * cpu_line_bytes(work) / 2);
}

tess_status cpu_make_kernel(clean_work *work, int scale)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    const double alpha = setup->scale_px[scale];
    const int64_t half = clean_kernel_half(setup->opts.shape, alpha);
    transform job = {.work = work, .scale = scale, .half = half};
    double *kernel = NULL;
    if (!(alpha > 0)) return TESS_OK;
    kernel = tess_alloc((2 * half + 1) * (2 * half + 1), sizeof *kernel);
    work->kernel[scale] = tess_alloc(work->columns, cpu_line_bytes(work) / 2);
    TESS_TRY(tess_comm_agree(setup->comm,
                             kernel && work->kernel[scale] ? TESS_OK : TESS_ERR_ALLOC));
    clean_kernel_fill(setup->opts.shape, alpha, kernel);
    job.kernel = kernel;
    TESS_TRY(
        tess_convolve_forward(work->plan, true, give_kernel_row, take_kernel, &job));
cleanup:
    tess_free(kernel);
    return status;
}

/* A value of the caller's rows. NaN counts as 0. */
static double value_at(const tess_rows *rows, int64_t k)
{
    const double value = tess_rows_pixel(rows, k);
    return isfinite(value) ? value : 0;
}

static bool give_caller_row(void *context, int64_t row, void *line)
{
    const transform *job = context;
    const int64_t nx = job->work->setup->images.nx;
    for (int64_t x = 0; x < nx; ++x)
        tess_real_set(line, job->work->is_double, x, value_at(job->rows, row * nx + x));
    return true;
}

static void take_psf(void *context, int64_t column, void *line)
{
    const transform *job = context;
    memcpy(cpu_column(job->work, job->work->psf[job->image], column), line,
           cpu_line_bytes(job->work));
}

tess_status cpu_make_psf(clean_work *work, int number, const tess_rows *psf)
{
    transform job = {.work = work, .image = number, .rows = psf};
    return tess_convolve_forward(work->plan, true, give_caller_row, take_psf, &job);
}

/* ---- residuals ---- */

static bool give_slot_row(void *context, int64_t row, void *line)
{
    const transform *job = context;
    memcpy(line, cpu_row(job->work, job->slot->image[job->image], row),
           (size_t)job->work->setup->images.nx * job->work->real_bytes);
    return true;
}

static void take_residual(void *context, int64_t column, void *line)
{
    const transform *job = context;
    memcpy(cpu_column(job->work, job->work->layers.residual[job->image], column), line,
           cpu_line_bytes(job->work));
    add_to_mean(job->work, job->image, 1, column, line);
}

tess_status cpu_make_residual(clean_work *work, cpu_slot *slot)
{
    tess_status status = TESS_OK;
    if (work->mean.spectrum && !work->layers.basis)
        memset(work->mean.spectrum, 0, (size_t)work->columns * cpu_line_bytes(work));
    for (int k = 0; k < work->layers.count; ++k) {
        if (!cpu_layer_has_data(work, k)) continue;
        transform job = {.work = work, .image = k, .slot = slot};
        TESS_TRY(tess_convolve_forward(work->plan, false, give_slot_row, take_residual,
                                       &job));
    }
cleanup:
    return status;
}

/* Finds the peak of a row of the mean now, while the row is in the cache. */
static void note_row(const transform *job, int64_t row)
{
    if (job->slot->mean == job->slot->image[job->image])
        cpu_row_peak(job->work, job->slot, row);
}

static void take_slot_row(void *context, int64_t row, void *line)
{
    const transform *job = context;
    memcpy(cpu_row(job->work, job->slot->image[job->image], row), line,
           (size_t)job->work->setup->images.nx * job->work->real_bytes);
    note_row(job, row);
}

/* Makes the images of a slot's scale. */
static tess_status make_images(clean_work *work, cpu_slot *slot)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < work->layers.count; ++k) {
        if (!cpu_layer_has_data(work, k)) continue;
        transform job = {.work = work, .image = k, .slot = slot};
        TESS_TRY(cpu_inverse(work, slot->scale, work->layers.residual[k], take_slot_row,
                             &job));
    }
cleanup:
    return status;
}

tess_status cpu_make_images(clean_work *work, cpu_slot *slot)
{
    tess_status status = TESS_OK;
    if (!work->mean.spectrum) return TESS_OK;
    if (work->mean.scale == slot->scale && work->mean.version == slot->version)
        return TESS_OK;
    TESS_TRY(make_images(work, slot));
    work->mean.scale = slot->scale;
    work->mean.version = slot->version;
cleanup:
    return status;
}

static void take_mean_row(void *context, int64_t row, void *line)
{
    const transform *job = context;
    const clean_work *work = job->work;
    const int64_t nx = work->setup->images.nx;
    void *to = cpu_row(work, job->slot->mean, row);
    memcpy(to, line, (size_t)nx * work->real_bytes);
    for (int64_t x = 0; work->factor.used && x < nx; ++x)
        tess_real_set(
            to, work->is_double, x,
            tess_real_at(line, work->is_double, x) *
                tess_real_at(work->factor.used, work->is_double, row * nx + x));
    cpu_row_peak(work, job->slot, row);
}

tess_status cpu_make_scale(clean_work *work, int scale, cpu_slot *slot)
{
    tess_status status = TESS_OK;
    transform job = {.work = work, .slot = slot};
    slot->scale = scale;
    slot->version = work->version;
    if (work->mean.spectrum)
        return cpu_inverse(work, scale, work->mean.spectrum, take_mean_row, &job);
    TESS_TRY(make_images(work, slot));
    cpu_slot_mean(work, slot);
cleanup:
    return status;
}

tess_status cpu_make_plain(clean_work *work, cpu_slot *slot)
{
    tess_status status = TESS_OK;
    slot->scale = -1;
    work->mean.scale = -1;
    for (int k = 0; k < work->layers.count; ++k) {
        if (!cpu_layer_has_data(work, k)) continue;
        transform job = {.work = work, .image = k, .slot = slot};
        TESS_TRY(cpu_inverse(work, -1, work->layers.residual[k], take_slot_row, &job));
    }
cleanup:
    return status;
}

/* ---- components ---- */

static bool give_component_row(void *context, int64_t row, void *line)
{
    const transform *job = context;
    const clean_work *work = job->work;
    const tess_clean_images *images = &work->setup->images;
    const int64_t begin = (images->row_first + row) * images->nx;
    const clean_components *found = job->found;
    int64_t k = clean_components_from(found, begin);
    if (k == found->count || found->index[k] >= begin + images->nx) return false;
    memset(line, 0, (size_t)images->nx * work->real_bytes);
    for (; k < found->count && found->index[k] < begin + images->nx; ++k)
        if (!job->place_of || job->place_of[k] == job->place)
            tess_real_set(
                line, work->is_double, found->index[k] - begin,
                cpu_layer_value(work, job->image, found->flux + k * found->num_images));
    return true;
}

static const void *kernel_column(const transform *job, int64_t column)
{
    const char *kernel = kernel_of(job);
    return kernel ? kernel + (size_t)column * cpu_line_bytes(job->work) / 2 : NULL;
}

static void times_psf(const transform *job, int64_t column, void *line)
{
    const clean_work *work = job->work;
    void *psf = work->psf[job->place * work->setup->images.num_images + job->image];
    cpu_column_times(work, cpu_column(work, psf, column), kernel_column(job, column),
                     line);
}

/* With several scales, the product is subtracted from the spectrum of the residual. */
static void take_less(void *context, int64_t column, void *line)
{
    const transform *job = context;
    const clean_work *work = job->work;
    if (work->layers.basis) {
        cpu_layers_less(job->work, job->image, kernel_column(job, column), column,
                        line);
        return;
    }
    times_psf(job, column, line);
    cpu_less(work, line, 2 * work->length,
             cpu_column(work, work->layers.residual[job->image], column));
    add_to_mean(work, job->image, -1, column, line);
}

/* With one scale, the product becomes an image at once. */
static void take_product(void *context, int64_t column, void *line)
{
    const transform *job = context;
    const clean_work *work = job->work;
    times_psf(job, column, line);
    if (job->adds)
        cpu_column_add(work, line, 1,
                       cpu_column(work, work->layers.residual[job->image], column));
    else
        take_residual(context, column, line);
}

static void take_less_row(void *context, int64_t row, void *line)
{
    const transform *job = context;
    const clean_work *work = job->work;
    cpu_less(work, line, work->setup->images.nx,
             cpu_row(work, job->slot->image[job->image], row));
    note_row(job, row);
}

/* Whether any component lies in a place. */
static bool is_used(const transform *job, int place)
{
    for (int64_t k = 0; job->place_of && k < job->found->count; ++k)
        if (job->place_of[k] == place) return true;
    return !job->place_of;
}

static tess_status subtract_image(clean_work *work, transform *job)
{
    tess_status status = TESS_OK;
    const bool multiscale = clean_is_multiscale(work->setup);
    const int num = job->place_of ? clean_num_psf_places(work->setup) : 1;
    for (job->place = 0; job->place < num; ++job->place) {
        if (!is_used(job, job->place)) continue;
        TESS_TRY(tess_convolve_forward(work->plan, false, give_component_row,
                                       multiscale ? take_less : take_product, job));
        job->adds = true;
    }
    if (!multiscale)
        TESS_TRY(cpu_inverse(work, 0, work->layers.residual[job->image], take_less_row,
                             job));
cleanup:
    return status;
}

/* The places of components, [merged->count]; NULL: there is one. Local. */
static tess_status find_places(const clean_work *work, const clean_components *merged,
                               int **place_of)
{
    tess_status status = TESS_OK;
    if (clean_num_psf_places(work->setup) == 1) return TESS_OK;
    *place_of = tess_alloc(merged->count, sizeof **place_of);
    if (!*place_of) TESS_FAIL(TESS_ERR_ALLOC, "places of components");
    for (int64_t k = 0; k < merged->count; ++k)
        (*place_of)[k] = clean_place_of(work->setup, merged->index[k]);
cleanup:
    return status;
}

tess_status cpu_subtract(clean_work *work, int scale, clean_components *merged)
{
    int *place_of = NULL;
    tess_status status = clean_components_merge(merged);
    if (status == TESS_OK) status = find_places(work, merged, &place_of);
    TESS_TRY(tess_comm_agree(work->setup->comm, status));
    for (int k = 0; k < work->layers.count; ++k) {
        if (!cpu_layer_has_data(work, k)) continue;
        transform job = {.work = work,
                         .image = k,
                         .scale = scale,
                         .found = merged,
                         .place_of = place_of,
                         .slot = &work->slot[0]};
        if (merged->count > 0) TESS_TRY(subtract_image(work, &job));
    }
    ++work->version;
    if (!clean_is_multiscale(work->setup)) {
        work->slot[0].version = work->version;
        cpu_slot_mean(work, &work->slot[0]);
    }
cleanup:
    tess_free(place_of);
    return status;
}
