/* Subtracts components from residuals whose places have gains of their own. Of each
 * place, the pixels of its components are transformed, multiplied by the spectrum of
 * their PSF, and transformed back; and each pixel of the residual loses the share that
 * its place sees. */
#include "cpu_borders.h"

#include <string.h>

#include "cpu_columns.h"
#include "cpu_grids.h"
#include "cpu_layers.h"
#include "cpu_loop.h"
#include "cpu_slot.h"
#include "cpu_spectra.h"
#include "tess_mem.h"
#include "tess_real.h"

/* The components of a place in one image. */
typedef struct place_pass {
    clean_work *work;
    int image, place;
    const tess_rows *model; /* of the components of all places */
} place_pass;

double cpu_borders_bytes(const clean_setup *setup)
{
    const tess_clean_images *images = &setup->images;
    return clean_has_borders(setup) ? 8.0 * (double)(images->num_rows * images->nx) : 0;
}

/* Gives the pixels of the place; false: there are none. */
static bool give_place_row(void *context, int64_t row, void *line)
{
    const place_pass *pass = context;
    const clean_work *work = pass->work;
    const int64_t nx = work->setup->images.nx;
    const double *from = (const double *)pass->model->value + row * nx;
    const int16_t *place = work->setup->borders.place + row * nx;
    bool any = false;
    for (int64_t x = 0; x < nx; ++x)
        any = any || (place[x] == pass->place && from[x] != 0);
    for (int64_t x = 0; any && x < nx; ++x)
        tess_real_set(line, work->is_double, x, place[x] == pass->place ? from[x] : 0);
    return any;
}

static void take_product(void *context, int64_t column, void *line)
{
    const place_pass *pass = context;
    const clean_work *work = pass->work;
    const int psf_place = clean_psf_place(work->setup, pass->place);
    void *psf = work->psf[psf_place * work->setup->images.num_images + pass->image];
    cpu_column_times(work, cpu_column(work, psf, column), NULL, line);
    memcpy(cpu_column(work, work->layers.residual[pass->image], column), line,
           cpu_line_bytes(work));
}

/* Subtracts what pixels see of it. */
static void take_seen_row(void *context, int64_t row, void *line)
{
    const place_pass *pass = context;
    const clean_work *work = pass->work;
    const clean_borders *borders = &work->setup->borders;
    const int64_t nx = work->setup->images.nx;
    const double *seen = clean_borders_seen(borders, pass->place);
    const int16_t *place = borders->place + row * nx;
    void *to = cpu_row(work, work->slot[0].image[pass->image], row);
    for (int64_t x = 0; x < nx; ++x)
        tess_real_set(to, work->is_double, x,
                      tess_real_at(to, work->is_double, x) -
                          seen[place[x]] * tess_real_at(line, work->is_double, x));
}

/* used[place] := whether any component is in it. A kernel may reach other places than
 * that of its middle. Collective. */
static tess_status find_used(const clean_work *work, const tess_rows *model,
                             int64_t *used)
{
    const clean_borders *borders = &work->setup->borders;
    const double *value = model->value;
    for (int64_t k = 0; k < work->pixels; ++k)
        if (value[k] != 0) used[borders->place[k]] = 1;
    return tess_comm_allreduce_i64(work->setup->comm, used, borders->num, TESS_MAX);
}

/* Subtracts the components of an image; its spectrum is lost. Collective. */
static tess_status subtract_image(clean_work *work, int scale, int image,
                                  const clean_components *merged)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = work->setup;
    const tess_clean_images *images = &setup->images;
    tess_rows model = tess_rows_of(images->nx, images->ny, images->row_first,
                                   images->num_rows, TESS_PIXEL_DOUBLE);
    place_pass pass = {.work = work, .image = image, .model = &model};
    int64_t *used = tess_alloc_zero(setup->borders.num, sizeof *used);
    status = used ? tess_rows_alloc_zero(&model) : TESS_ERR_ALLOC;
    if (status == TESS_OK)
        status = cpu_add_scale(setup, scale, merged, image, 1, &model);
    TESS_TRY(tess_comm_agree(setup->comm, status));
    TESS_TRY(find_used(work, &model, used));
    for (pass.place = 0; pass.place < setup->borders.num; ++pass.place) {
        if (!used[pass.place]) continue;
        TESS_TRY(tess_convolve_forward(work->plan, false, give_place_row, take_product,
                                       &pass));
        TESS_TRY(
            cpu_inverse(work, -1, work->layers.residual[image], take_seen_row, &pass));
    }
cleanup:
    tess_free(used);
    tess_rows_free(&model);
    return status;
}

tess_status cpu_borders_subtract(clean_work *work, int scale, clean_components *merged)
{
    tess_status status = TESS_OK;
    const bool multiscale = clean_is_multiscale(work->setup);
    cpu_slot *slot = &work->slot[0];
    TESS_TRY(tess_comm_agree(work->setup->comm, clean_components_merge(merged)));
    if (multiscale) TESS_TRY(cpu_make_plain(work, slot));
    for (int k = 0; k < work->layers.count; ++k)
        if (cpu_layer_has_data(work, k) && merged->count > 0)
            TESS_TRY(subtract_image(work, scale, k, merged));
    ++work->version;
    if (multiscale) return cpu_make_residual(work, slot);
    slot->version = work->version;
    if (slot->mean == slot->image[0])
        cpu_slot_peaks(work, slot);
    else
        cpu_slot_mean(work, slot);
cleanup:
    return status;
}
