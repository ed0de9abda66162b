/* The memory of the cuda backend. */
#include "cuda_work.h"

#include <string.h>

#include "clean_scales.h"
#include "tess_convolve.h"
#include "tess_device.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_minmax.h"

/* Rows whose places are found at a time, so that the host never has all of them. */
enum { ROWS_AT_ONCE = 256 };

/* ---- sizes ---- */

static cuda_shape shape_of(const clean_setup *setup)
{
    const tess_clean_images *images = &setup->images;
    const tess_convolve_opts padded = {.nx = images->nx,
                                       .ny = images->ny,
                                       .num_rows = images->ny,
                                       .reach = clean_reach(setup),
                                       .is_double = setup->opts.is_double};
    cuda_shape shape = {
        .nx = images->nx, .ny = images->ny, .is_double = setup->opts.is_double};
    tess_convolve_lengths(&padded, &shape.lx, &shape.ly);
    shape.half = shape.lx / 2 + 1;
    return shape;
}

static void find_sizes(clean_work *work)
{
    const cuda_shape *shape = &work->shape;
    work->bytes.real = shape->is_double ? 8 : 4;
    work->bytes.image = shape->nx * shape->ny * work->bytes.real;
    work->bytes.plane = shape->lx * shape->ly * work->bytes.real;
    work->bytes.spectrum = 2 * shape->half * shape->ly * work->bytes.real;
}

cuda_window cuda_window_of(const clean_setup *setup, int scale)
{
    cuda_window window = {.width = clean_layers_psfs(setup)};
    clean_window_half(setup, scale, &window.half_x, &window.half_y);
    window.stride = 2 * window.half_x + 1;
    return window;
}

int64_t cuda_window_bytes(const clean_setup *setup, const cuda_window *window)
{
    return (2 * window->half_y + 1) * window->stride * window->width *
           (setup->opts.is_double ? 8 : 4);
}

static double table_bytes(const clean_setup *setup, int scale)
{
    const double width =
        2 * (double)clean_kernel_half(setup->opts.shape, setup->scale_px[scale]) + 1;
    return width * width * sizeof(double);
}

/* Bytes of the plans of coarser grids. */
static double grid_bytes(const clean_setup *setup, const cuda_shape *shape)
{
    double bytes = 0;
    for (int g = 0; g < CLEAN_GRIDS; ++g)
        if (clean_grid_fits(setup, g, shape->lx, shape->ly))
            bytes +=
                tess_device_fft_bytes(shape->lx / clean_grid_cell(g),
                                      shape->ly / clean_grid_cell(g), shape->is_double);
    return bytes;
}

void cuda_work_bytes(const clean_setup *setup, double *least, double *all)
{
    clean_work like = {.setup = setup, .shape = shape_of(setup)};
    const double images = setup->images.num_images;
    const double layers = clean_layers_count(setup);
    const bool sums = clean_layers_are_sums(setup), mean = clean_has_mean(setup);
    find_sizes(&like);
    const double means = cuda_has_own_mean(setup) ? cuda_num_slots(setup) : 0;
    const double sets = mean ? 1 : cuda_num_slots(setup);
    double spectra = images + layers + 1 /* product */;
    if (sums)
        spectra += layers + clean_layers_psfs(setup) + 1 /* change of an image */;
    else if (mean)
        spectra += 1;
    double bytes = 0, windows = 0, largest = 0;
    for (int s = 0; s < setup->num_scales; ++s) {
        const cuda_window window = cuda_window_of(setup, s);
        const double own = (double)cuda_window_bytes(setup, &window);
        spectra += setup->scale_px[s] > 0 ? 0.5 : 0;
        bytes += table_bytes(setup, s);
        windows += own;
        largest = own > largest ? own : largest;
    }
    const double pixels = (double)setup->images.nx * (double)setup->images.ny;
    const bool local = setup->opts.local.kind != TESS_CLEAN_GLOBAL_RMS;
    bytes += tess_device_fft_bytes(like.shape.lx, like.shape.ly, like.shape.is_double);
    bytes += grid_bytes(setup, &like.shape);
    bytes += spectra * (double)like.bytes.spectrum + (double)like.bytes.plane;
    bytes += (sets * layers + means + local) * (double)like.bytes.image;
    bytes += pixels * (2 + (setup->opts.auto_mask > 0 ? 4 : 0));
    if (clean_has_borders(setup)) /* places, and a model for a while */
        bytes += pixels * (sizeof(int16_t) + sizeof(double));
    bytes += pixels * 16; /* rows of the caller, and a mean, for a while */
    *least = bytes + largest;
    *all = bytes + windows;
}

/* ---- memory ---- */

/* `count` arrays of device memory, of zeros. */
static tess_status make_arrays(int count, int64_t bytes, const char *what,
                               void ***array)
{
    tess_status status = TESS_OK;
    *array = tess_alloc_zero(count, sizeof **array);
    if (!*array) TESS_FAIL(TESS_ERR_ALLOC, "%s", what);
    for (int k = 0; k < count; ++k) {
        TESS_TRY(tess_device_alloc(bytes, what, &(*array)[k]));
        TESS_TRY(tess_device_zero((*array)[k], bytes));
    }
cleanup:
    return status;
}

static void free_arrays(void **array, int count)
{
    for (int k = 0; array && k < count; ++k)
        tess_device_free(array[k]);
    tess_free(array);
}

static tess_status upload(const void *from, int64_t bytes, void **to)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_device_alloc(bytes, "images to clean", to));
    TESS_TRY(tess_device_upload(*to, from, bytes));
cleanup:
    return status;
}

static tess_status make_slot(clean_work *work, int number)
{
    tess_status status = TESS_OK;
    cuda_slot *slot = &work->slot[number];
    const int layers = work->layers.count;
    slot->scale = -1;
    if (number > 0 && clean_has_mean(work->setup)) {
        slot->image = work->slot[0].image;
        slot->there = work->slot[0].there;
    } else {
        void *there = NULL;
        TESS_TRY(
            make_arrays(layers, work->bytes.image, "images to clean", &slot->image));
        TESS_TRY(upload(slot->image, layers * (int64_t)sizeof(void *), &there));
        slot->there = there;
    }
    slot->mean = slot->image[0];
    if (cuda_has_own_mean(work->setup)) {
        slot->mean = NULL;
        TESS_TRY(
            tess_device_alloc(work->bytes.image, "mean image to clean", &slot->mean));
    }
cleanup:
    return status;
}

static void free_slot(clean_work *work, int number)
{
    cuda_slot *slot = &work->slot[number];
    if (cuda_has_own_mean(work->setup)) tess_device_free(slot->mean);
    if (number > 0 && clean_has_mean(work->setup)) return;
    free_arrays(slot->image, work->layers.count);
    tess_device_free((void *)slot->there);
}

/* The matrix by which the values of a component are fitted, column by column. */
static tess_status make_fit(clean_work *work)
{
    tess_status status = TESS_OK;
    const clean_spectrum *spectrum = &work->setup->join.spectrum;
    const int layers = work->layers.count;
    void *there = NULL;
    double *fit = NULL, *value = NULL;
    if (work->layers.are_sums || spectrum->kind != TESS_CLEAN_POLYNOMIAL)
        return TESS_OK;
    fit = tess_alloc_zero((int64_t)layers * layers, sizeof *fit);
    value = tess_alloc_zero(layers, sizeof *value);
    if (!fit || !value) TESS_FAIL(TESS_ERR_ALLOC, "fits of spectra");
    for (int k = 0; k < layers; ++k) {
        memset(value, 0, (size_t)layers * sizeof *value);
        value[k] = 1;
        clean_spectrum_fit(spectrum, NULL, value);
        for (int l = 0; l < layers; ++l)
            fit[l * layers + k] = value[l];
    }
    TESS_TRY(upload(fit, (int64_t)layers * layers * (int64_t)sizeof *fit, &there));
    work->layers.fit = there;
cleanup:
    tess_free(fit);
    tess_free(value);
    return status;
}

/* Brings what the fit of logarithms needs to the device: numbers, and then counts. */
static tess_status make_logs(clean_work *work)
{
    tess_status status = TESS_OK;
    const clean_spectrum *spectrum = &work->setup->join.spectrum;
    cuda_logs *logs = &work->layers.logs;
    clean_log_places *places = &logs->places;
    *places = clean_log_places_of(spectrum);
    const int64_t channels = places->num_channels, pols = places->num_pol;
    const int64_t numbers[] = {channels, places->num_out, channels * pols, pols};
    const double *const from[] = {places->at, places->at_out, places->weight, NULL};
    const int64_t counts = pols * (int64_t)sizeof *places->own_terms;
    int64_t all = 0;
    double *there[4];
    if (spectrum->kind != TESS_CLEAN_LOG_POLYNOMIAL) return TESS_OK;
    for (int k = 0; k < 4; ++k)
        all += numbers[k] * (int64_t)sizeof(double);
    TESS_TRY(
        tess_device_alloc(all + 2 * counts, "spectra of components", &logs->memory));
    there[0] = logs->memory;
    for (int k = 0; k < 4; ++k) {
        if (k > 0) there[k] = there[k - 1] + numbers[k - 1];
        if (from[k])
            TESS_TRY(tess_device_upload(there[k], from[k],
                                        numbers[k] * (int64_t)sizeof(double)));
    }
    int *const own_terms = (int *)(there[3] + pols), *const known = own_terms + pols;
    TESS_TRY(tess_device_upload(own_terms, places->own_terms, counts));
    TESS_TRY(tess_device_upload(known, places->num_known, counts));
    places->at = there[0];
    places->at_out = there[1];
    places->weight = there[2];
    logs->noise = there[3];
    places->own_terms = own_terms;
    places->num_known = known;
cleanup:
    return status;
}

/* Tells the device which layers have data. */
static tess_status make_has_data(clean_work *work)
{
    tess_status status = TESS_OK;
    cuda_layers *layers = &work->layers;
    void *there = NULL;
    uint8_t *has_data = tess_alloc(layers->count, 1);
    if (!has_data) TESS_FAIL(TESS_ERR_ALLOC, "images to clean");
    for (int l = 0; l < layers->count; ++l)
        has_data[l] = cuda_layer_has_data(work, l);
    TESS_TRY(upload(has_data, layers->count, &there));
    layers->has_data = there;
cleanup:
    tess_free(has_data);
    return status;
}

static tess_status make_layers(clean_work *work)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    cuda_layers *layers = &work->layers;
    const int64_t bytes = work->bytes.spectrum;
    const int64_t values = (int64_t)layers->count * setup->images.num_images;
    TESS_TRY(make_arrays(layers->count, bytes, "spectra of images to clean",
                         &layers->residual));
    TESS_TRY(make_has_data(work));
    TESS_TRY(make_fit(work));
    TESS_TRY(make_logs(work));
    if (!layers->are_sums) return TESS_OK;
    TESS_TRY(make_arrays(layers->num_psf, bytes, "spectra of PSFs", &layers->psf));
    TESS_TRY(make_arrays(layers->count, bytes, "spectra of models", &layers->sum));
    layers->basis = tess_alloc_zero(values, sizeof *layers->basis);
    layers->weights = tess_alloc_zero(values, sizeof *layers->weights);
    if (!layers->basis || !layers->weights)
        TESS_FAIL(TESS_ERR_ALLOC, "spectra of images to clean");
    clean_layers_basis(setup, layers->basis, layers->weights);
cleanup:
    return status;
}

static tess_status make_join(clean_work *work)
{
    tess_status status = TESS_OK;
    const clean_join *join = &work->setup->join;
    const double one = 1;
    void *there = NULL;
    double *largest = tess_alloc_zero(join->num_channels, sizeof *largest);
    if (!largest) TESS_FAIL(TESS_ERR_ALLOC, "weights of images to clean");
    for (int c = 0; c < join->num_channels; ++c)
        largest[c] = clean_join_largest_weight(join, c);
    TESS_TRY(
        upload(join->share,
               (int64_t)(join->num_channels * join->num_pol) * (int64_t)sizeof(double),
               &there));
    work->joined.share = there;
    TESS_TRY(upload(&one, (int64_t)sizeof one, &there));
    work->joined.one = there;
    TESS_TRY(upload(largest, join->num_channels * (int64_t)sizeof(double), &there));
    work->joined.largest = there;
    work->joined.join = (cuda_join){.roots = join->search == CLEAN_ROOTS,
                                    .squares = join->search == CLEAN_SQUARES,
                                    .is_signed = join->is_signed,
                                    .num_pol = join->num_pol,
                                    .num_channels = join->num_channels,
                                    .share = work->joined.share,
                                    .largest = work->joined.largest};
cleanup:
    tess_free(largest);
    return status;
}

/* Images of pixels that may have components. */
static tess_status make_masks(clean_work *work)
{
    tess_status status = TESS_OK;
    const tess_clean_opts *opts = &work->setup->opts;
    const int64_t pixels = work->shape.nx * work->shape.ny;
    void *there = NULL;
    TESS_TRY(tess_device_alloc(pixels, "mask", &there));
    work->mask.allowed = there;
    TESS_TRY(tess_device_alloc(pixels, "mask", &there));
    work->mask.is_nan = there;
    if (opts->local.kind != TESS_CLEAN_GLOBAL_RMS)
        TESS_TRY(tess_device_alloc(work->bytes.image, "local rms of images to clean",
                                   &work->mask.factor_rows));
cleanup:
    return status;
}

static tess_status make_places(clean_work *work)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    const tess_clean_places *places = &setup->images.places;
    const int64_t nx = work->shape.nx, ny = work->shape.ny;
    void *there = NULL;
    int16_t *here = tess_alloc(tess_min_i64(ny, ROWS_AT_ONCE) * nx, sizeof *here);
    if (!here) TESS_FAIL(TESS_ERR_ALLOC, "borders of facets");
    TESS_TRY(tess_device_alloc(nx * ny * (int64_t)sizeof *here, "borders of facets",
                               &there));
    work->borders.place = there;
    for (int64_t y = 0; y < ny; y += ROWS_AT_ONCE) {
        const int64_t rows = tess_min_i64(ny - y, ROWS_AT_ONCE);
        TESS_TRY(places->rows(places->context, y, rows, setup->opts.threads, here));
        TESS_TRY(tess_device_upload(work->borders.place + y * nx, here,
                                    rows * nx * (int64_t)sizeof *here));
        TESS_TRY(tess_device_wait());
    }
cleanup:
    tess_free(here);
    return status;
}

/* Brings the places of all pixels, and their likeness, to the device. */
static tess_status make_borders(clean_work *work)
{
    tess_status status = TESS_OK;
    const clean_borders *borders = &work->setup->borders;
    const int64_t bytes =
        (int64_t)borders->num * borders->num * (int64_t)sizeof(double);
    void *there = NULL;
    TESS_TRY(make_places(work));
    TESS_TRY(tess_device_alloc(bytes, "borders of facets", &there));
    work->borders.likeness = there;
    TESS_TRY(tess_device_upload(there, borders->likeness, bytes));
cleanup:
    return status;
}

static tess_status make_arrays_of_scales(clean_work *work)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    const int64_t scales = setup->num_scales;
    work->scale = tess_alloc_zero(scales, sizeof *work->scale);
    work->psf_peak =
        tess_alloc_zero(scales * setup->images.num_images, sizeof *work->psf_peak);
    work->psf_square =
        tess_alloc_zero(scales * setup->images.num_images, sizeof *work->psf_square);
    work->rows.here = tess_alloc_zero(work->shape.ny, CUDA_ROW_BYTES);
    work->ranks.rows_of = tess_alloc_zero(work->ranks.num, sizeof *work->ranks.rows_of);
    work->ranks.peak =
        tess_alloc_zero((work->ranks.num + 1) * scales, sizeof *work->ranks.peak);
    if (!work->ranks.rows_of || !work->scale || !work->psf_peak || !work->psf_square ||
        !work->rows.here || !work->ranks.peak)
        TESS_FAIL(TESS_ERR_ALLOC, "scales to clean");
    for (int64_t s = 0; s < scales; ++s)
        work->scale[s].grid = -1;
cleanup:
    return status;
}

static tess_status make(clean_work *work)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    TESS_TRY(tess_device_alloc(work->bytes.plane, "images to clean", &work->plane));
    TESS_TRY(tess_device_alloc(work->bytes.spectrum, "spectra of images to clean",
                               &work->product));
    TESS_TRY(
        tess_device_alloc(work->shape.ny * CUDA_ROW_BYTES, "rows", &work->rows.there));
    TESS_TRY(make_arrays(setup->images.num_images, work->bytes.spectrum,
                         "spectra of PSFs", &work->psf));
    TESS_TRY(make_layers(work));
    TESS_TRY(make_join(work));
    for (int k = 0; k < cuda_num_slots(setup); ++k)
        TESS_TRY(make_slot(work, k));
    if (work->layers.are_sums)
        work->mean.spectrum = work->layers.residual[0];
    else if (clean_has_mean(setup))
        TESS_TRY(tess_device_alloc(work->bytes.spectrum, "spectra of images to clean",
                                   &work->mean.spectrum));
    TESS_TRY(make_masks(work));
    if (clean_has_borders(setup)) TESS_TRY(make_borders(work));
cleanup:
    return status;
}

/* Everything of a rank that holds images. */
static tess_status make_all(clean_work *work)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_device_fft_create(work->shape.lx, work->shape.ly,
                                    work->shape.is_double, &work->fft));
    TESS_TRY(make(work));
cleanup:
    return status;
}

/* Whether ranks share the scales: their devices are linked, and each rank has room for
 * the whole image. Of a device that several ranks have, each has its part
 * (tess_device_share). Collective. */
static tess_status find_shares(clean_work *work)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    double least, all;
    cuda_work_bytes(setup, &least, &all);
    int64_t shares = work->ranks.num > 1 && setup->opts.method.links &&
                     setup->num_scales > 1 && all <= (double)tess_device_room();
    TESS_TRY(tess_comm_allreduce_i64(setup->comm, &shares, 1, TESS_MIN));
    work->ranks.shares = shares != 0;
    work->ranks.holds = work->ranks.leads || work->ranks.shares;
    if (work->ranks.leads && work->ranks.shares)
        tess_log_debug("%d devices share the scales of minor loops", work->ranks.num);
cleanup:
    return status;
}

tess_status cuda_work_create(const clean_setup *setup, clean_work **work_out)
{
    tess_status status = TESS_OK;
    tess_comm *comm = setup->comm;
    clean_work *work = tess_alloc_zero(1, sizeof *work);
    TESS_TRY(tess_comm_agree(comm, work ? TESS_OK : TESS_ERR_ALLOC));
    work->setup = setup;
    work->shape = shape_of(setup);
    work->ranks.num = tess_comm_size(comm);
    work->ranks.leads = tess_comm_rank(comm) == 0;
    find_sizes(work);
    work->layers.count = clean_layers_count(setup);
    work->layers.num_psf = clean_layers_psfs(setup);
    work->layers.are_sums = clean_layers_are_sums(setup);
    TESS_TRY(find_shares(work));
    status = make_arrays_of_scales(work);
    if (status == TESS_OK && work->ranks.holds) status = make_all(work);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_allgather(comm, &setup->images.num_rows,
                                 sizeof *work->ranks.rows_of, work->ranks.rows_of));
    *work_out = work;
    work = NULL;
cleanup:
    cuda_work_destroy(work);
    return status;
}

static void free_layers(clean_work *work)
{
    cuda_layers *layers = &work->layers;
    free_arrays(layers->residual, layers->count);
    free_arrays(layers->psf, layers->num_psf);
    free_arrays(layers->sum, layers->count);
    tess_free(layers->basis);
    tess_free(layers->weights);
    tess_device_free(layers->fit);
    tess_device_free(layers->logs.memory);
    tess_device_free(layers->has_data);
}

void cuda_work_destroy(clean_work *work)
{
    if (!work) return;
    const int scales = work->setup->num_scales;
    for (int k = 0; k < cuda_num_slots(work->setup); ++k)
        free_slot(work, k);
    if (!work->layers.are_sums) tess_device_free(work->mean.spectrum);
    free_layers(work);
    tess_device_free(work->borders.place);
    tess_device_free(work->borders.likeness);
    free_arrays(work->psf, work->setup->images.num_images);
    for (int s = 0; work->scale && s < scales; ++s) {
        tess_device_free(work->scale[s].kernel);
        tess_device_free(work->scale[s].table.value);
        tess_device_free(work->scale[s].window.value);
    }
    for (int g = 0; g < CLEAN_GRIDS; ++g) {
        tess_device_fft_destroy(work->grid[g].fft);
        tess_device_free(work->grid[g].weight);
    }
    tess_free(work->scale);
    tess_free(work->psf_peak);
    tess_free(work->psf_square);
    tess_free(work->rows.here);
    tess_free(work->ranks.rows_of);
    tess_free(work->ranks.peak);
    tess_device_free(work->rows.there);
    tess_device_free(work->plane);
    tess_device_free(work->product);
    tess_device_free(work->mask.allowed);
    tess_device_free(work->mask.is_nan);
    tess_device_free(work->mask.found.copy);
    tess_device_free(work->mask.factor_rows);
    tess_device_free(work->joined.share);
    tess_device_free(work->joined.largest);
    tess_device_free(work->joined.one);
    tess_device_fft_destroy(work->fft);
    tess_free(work);
}
