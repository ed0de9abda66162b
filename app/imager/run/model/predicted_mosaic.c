/* Predicts what the pointings of a mosaic see of a model in true flux, field after
 * field. */
#include <stdio.h>

#include "model_cube.h"
#include "predicted_pointing.h"
#include "tess_imager_predict.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_out_file.h"

/* The fields whose rows are selected. */
typedef struct chosen_fields {
    int *id; /* [num], owned */
    int num;
} chosen_fields;

tess_status predicted_pointing_center(const tess_comm *comm,
                                      const tess_predict_opts *opts,
                                      tess_selection *selection)
{
    tess_status status = TESS_OK;
    tess_fits_model image = {0};
    model_cube *cube = NULL;
    char *single = NULL;
    const model_name name = {opts->model, opts->model_terms, MODEL_BY_BEAMS};
    if (tess_comm_rank(comm) == 0) model_cube_warn_name(&name);
    if (selection->has_center || !opts->model) return TESS_OK;
    TESS_TRY(model_cube_open(&name, &cube, &single));
    if (!cube) TESS_TRY(tess_fits_open(single, &image));
    const tess_fits_model *first = cube ? &cube->file[0] : &image;
    TESS_TRY(tess_fits_check_j2000(first));
    selection->has_center = true;
    selection->center_ra_rad = first->ra_rad;
    selection->center_dec_rad = first->dec_rad;
cleanup:
    model_cube_free(cube);
    tess_free(single);
    return status;
}

/* Lists the fields, and takes the middle of pointings as that of a model in memory.
 * Collective. */
static tess_status list_fields(tess_comm *comm, const tess_predict_opts *opts,
                               tess_selection *selection, chosen_fields *fields)
{
    tess_status status = TESS_OK;
    tess_source *source = NULL;
    selection->wanted.positions_only = true;
    TESS_TRY(tess_source_open(comm, &opts->obs, 1, selection, &source));
    const tess_source_info *info = tess_source_info_of(source);
    const int num = tess_source_num_readers(source);
    fields->id = tess_alloc(num, sizeof *fields->id);
    TESS_TRY(tess_comm_agree(comm, fields->id ? TESS_OK : TESS_ERR_ALLOC));
    for (int k = 0; k < num; ++k) {
        const tess_vis_meta *meta = tess_vis_reader_meta(tess_source_reader(source, k));
        fields->id[k] = meta->field[meta->field_selected].id;
    }
    fields->num = num;
    selection->has_center = true;
    selection->center_ra_rad = info->ra_rad;
    selection->center_dec_rad = info->dec_rad;
cleanup:
    tess_source_close(source);
    return status;
}

static tess_status check(const tess_predict_opts *opts)
{
    tess_status status = TESS_OK;
    if (opts->output)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--mosaic predicts several fields into a column of a MeasurementSet: "
                  "give --column in place of -o, or one --field without --mosaic");
cleanup:
    return status;
}

tess_status tess_imager_predict_mosaic(tess_comm *comm, const tess_predict_opts *opts,
                                       tess_profile *profile)
{
    tess_status status = TESS_OK;
    chosen_fields fields = {0};
    tess_predict_opts one = *opts;
    char number[16];
    TESS_TRY(check(opts));
    TESS_TRY(
        tess_comm_agree(comm, predicted_pointing_center(comm, opts, &one.selection)));
    TESS_TRY(list_fields(comm, opts, &one.selection, &fields));
    one.selection.joins_pointings = false;
    one.model_is_told = true;
    one.selection.field = number;
    for (int k = 0; k < fields.num; ++k) {
        snprintf(number, sizeof number, "#%d", fields.id[k]);
        TESS_TRY(tess_imager_predict(comm, &one, profile));
        one.overwrite = true;          /* of other fields, the column is there by now */
        one.gridding.write_gcf = NULL; /* it is written */
        if (k + 1 < fields.num) tess_out_release_signals();
    }
cleanup:
    tess_free(fields.id);
    return status;
}
