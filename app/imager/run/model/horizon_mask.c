/* Writes the mask that keeps components from the horizon, when all images are there. */
#include "horizon_mask.h"

#include <stdlib.h>

#include "clean_inputs.h"
#include "image_meta.h"
#include "image_names.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Makes this rank's rows. Collective over the run's ranks. */
static tess_status make_rows(const image_run *run, tess_fits_rows *rows, float **out)
{
    tess_status status = TESS_OK;
    const int64_t pixels = rows->num_rows * run->opts->nx;
    uint8_t *mask = NULL;
    TESS_TRY(clean_inputs_mask(run, 0, 0, rows->row_first, rows->num_rows, &mask));
    float *value = tess_alloc(pixels, sizeof *value);
    if (!value) TESS_FAIL(TESS_ERR_ALLOC, "rows of a mask");
    for (int64_t k = 0; k < pixels; ++k)
        value[k] = mask[k] ? 1 : 0;
    rows->pixel = *out = value;
cleanup:
    tess_free(mask);
    return status;
}

tess_status horizon_mask_write(const image_run *run)
{
    tess_status status = TESS_OK;
    tess_comm *all = run->teams.all;
    const int64_t ny = run->opts->ny, rank = tess_comm_rank(all),
                  size = tess_comm_size(all), first = ny * rank / size;
    const imager_extent none = imager_extent_empty();
    tess_fits_rows rows = {.row_first = first,
                           .num_rows = ny * (rank + 1) / size - first};
    tess_image_meta meta;
    float *value = NULL;
    char *path = NULL;
    if (!image_has_horizon_mask(run->opts)) return TESS_OK;
    TESS_TRY(tess_comm_agree(all, make_rows(run, &rows, &value)));
    path = image_horizon_name(run->opts);
    TESS_TRY(tess_comm_agree(all, path ? TESS_OK : TESS_ERR_ALLOC));
    image_meta_fill(&run->means, 0, -1, &none, &meta);
    meta.gridded = (tess_fits_gridded){0};
    meta.stokes = run->pol[0].code;
    TESS_TRY(tess_fits_write(all, path, run->opts->overwrite, &meta, &rows));
    if (rank == 0) tess_log_detail("wrote %s", path);
cleanup:
    free(path); /* from asprintf */
    tess_free(value);
    return status;
}
