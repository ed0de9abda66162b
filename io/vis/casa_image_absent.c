/* Stands in for casa_image.cc in a build without casacore. */
#include "tess_casa_image.h"

tess_status tess_casa_image_open(const char *path, tess_fits_model *header,
                                 tess_casa_image **image)
{
    tess_status status = TESS_OK;
    (void)header, (void)image;
    TESS_FAIL(TESS_ERR_RESOURCE,
              "%s: this tessera was built without casacore, which reads images of CASA; "
              "give the mask as FITS",
              path);
cleanup:
    return status;
}

tess_status tess_casa_image_read(const tess_casa_image *image, int stokes_index,
                                 int freq_index, int64_t row_first, int64_t num_rows,
                                 double *out)
{
    (void)image, (void)stokes_index, (void)freq_index, (void)row_first, (void)num_rows;
    (void)out;
    return TESS_ERR_INTERNAL;
}

void tess_casa_image_close(tess_casa_image *image)
{
    (void)image;
}
