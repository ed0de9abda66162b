/* Checks that outputs of a run that makes images are none of its inputs. */
#include "tess_image_inputs.h"

#include "tess_out_file.h"
#include "tess_primary_beam.h"

tess_status tess_image_check_output(const tess_image_opts *opts, const char *path,
                                    bool overwrite)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_out_check_target(path, overwrite));
    for (int k = 0; k < opts->num_obs; ++k)
        TESS_TRY(tess_out_check_other(path, opts->obs[k]));
    TESS_TRY(tess_out_check_other(path, opts->subtract.model));
    TESS_TRY(tess_out_check_other(path, opts->gridding.gcf));
    TESS_TRY(tess_out_check_other(path, opts->clean.fits_mask));
    TESS_TRY(tess_out_check_other(path, opts->clean.casa_mask));
    TESS_TRY(tess_out_check_other(
        path, tess_primary_beam_file(opts->beside.primary_beam.model)));
cleanup:
    return status;
}
