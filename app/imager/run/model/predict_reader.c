/* Predicts at the rows of one of the observations of a run. */
#include "predict_reader.h"

#include <stdio.h>

#include "source_origins.h"
#include "tess_log.h"

static void add_profile(const tess_profile *from, tess_profile *to)
{
    for (int k = 0; k < TESS_NUM_STAGES; ++k) {
        to->stage_seconds[k] += from->stage_seconds[k];
        to->stage_bytes[k] += from->stage_bytes[k];
        to->stage_mpi_s[k] += from->stage_mpi_s[k];
    }
}

tess_status predict_reader(image_run *run, int k, const tess_predict_opts *all)
{
    tess_status status = TESS_OK;
    tess_predict_opts predict = *all;
    tess_profile profile;
    char field[16];
    const tess_vis_meta *meta =
        tess_vis_reader_meta(tess_source_reader(run->source, k));
    predict.obs = meta->path;
    predict.gridding.facets.first_set = tess_source_set(run->source, k);
    if (tess_source_num_readers(run->source) > run->opts->num_obs) {
        snprintf(field, sizeof field, "#%d", meta->field[meta->field_selected].id);
        predict.selection.field = field;
    }
    tess_profile_start(&profile);
    TESS_TRY(tess_imager_predict(run->teams.all, &predict, &profile));
    add_profile(&profile, run->profile);
    if (predict.column)
        tess_log_info("wrote %s of %s%s%s", predict.column, meta->path,
                      predict.selection.field ? ", field " : "",
                      predict.selection.field ? predict.selection.field : "");
cleanup:
    return status;
}
