/* Corrects the rows of an image for the primary beam, before they are written. */
#include "image_corrected.h"

#include <math.h>
#include <string.h>

tess_status image_corrected_rows(const image_corrected *corrected,
                                 const imager_rows *image, const imager_rows *beam,
                                 double limit, imager_rows *rows)
{
    tess_status status = TESS_OK;
    const bool is_beam = corrected->of == IMAGE_PRIMARY_BEAM;
    const double blank = corrected->of == IMAGE_MODEL ? 0 : (double)NAN;
    const bool is_weight = strncmp(corrected->name, "weight", 6) == 0;
    const int64_t pixels = image->num_rows * image->nx;
    TESS_TRY(imager_rows_zero(image->row_first, image->num_rows, image->nx, rows));
    for (int64_t k = 0; k < pixels; ++k) {
        const double power = imager_pixel(beam, k), value = imager_pixel(image, k);
        ((double *)rows->value)[k] = !(power >= limit) ? blank
                                     : is_weight       ? power * power
                                     : is_beam         ? power
                                                       : value / power;
    }
cleanup:
    return status;
}
