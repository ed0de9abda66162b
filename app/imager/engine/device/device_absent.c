/* A build without devices makes no samples and predicts no rows on devices. */
#include "device_predict.h"
#include "device_read.h"

bool device_read_possible(const imager_job *job, const tess_source *source)
{
    (void)job;
    (void)source;
    return false;
}

bool device_read_fits(const imager_job *job, const tess_source *source, int num_images)
{
    (void)job;
    (void)source;
    (void)num_images;
    return false;
}

bool device_predict_possible(const imager_predictor *predictor,
                             const tess_source *source)
{
    (void)predictor;
    (void)source;
    return false;
}

static tess_status fail(void)
{
    tess_status status = TESS_OK;
    TESS_FAIL(TESS_ERR_INTERNAL, "this build has no device");
cleanup:
    return status;
}

tess_status device_read_samples(const imager_job *job, tess_source *source,
                                tess_samples *samples, imager_extent *extent,
                                bool *weights_agree)
{
    (void)job;
    (void)source;
    (void)samples;
    (void)extent;
    (void)weights_agree;
    return fail();
}

tess_status device_read_share_weights(tess_samples *samples)
{
    (void)samples;
    return fail();
}

tess_status device_predict_rows(imager_predictor *predictor, tess_source *source,
                                tess_vis_writer *writer)
{
    (void)predictor;
    (void)source;
    (void)writer;
    return fail();
}
