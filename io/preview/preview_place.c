/* Where directions lie on the canvas, and round steps between ticks. */
#include <math.h>

#include "preview.h"

void tess_preview_place(const tess_image_meta *meta, const preview_layout *layout,
                        double l, double m, double at[2])
{
    /* pixel i covers [i, i + 1) pixel widths from the plot's left edge */
    const double i = (double)(meta->nx / 2) + 0.5 - (l - meta->l0) / meta->scale_rad;
    const double j = (double)(meta->ny / 2) + 0.5 + (m - meta->m0) / meta->scale_rad;
    at[0] = layout->left + i * layout->pixel_x;
    at[1] = layout->bottom - j * layout->pixel_y;
}

void tess_preview_direction(const tess_image_meta *meta, const preview_layout *layout,
                            double x, double y, double *l, double *m)
{
    const double i = (x - layout->left) / layout->pixel_x - 0.5;
    const double j = (layout->bottom - y) / layout->pixel_y - 0.5;
    *l = meta->l0 + ((double)(meta->nx / 2) - i) * meta->scale_rad;
    *m = meta->m0 + (j - (double)(meta->ny / 2)) * meta->scale_rad;
}

double tess_preview_step(double range, int most)
{
    static const double round_numbers[] = {1, 2, 5, 10};
    const double least = range / most;
    if (!(least > 0) || !isfinite(least)) return 1;
    const double decade = pow(10, floor(log10(least)));
    for (size_t k = 0; k < 4; ++k)
        if (round_numbers[k] * decade >= least * (1 - 1e-9))
            return round_numbers[k] * decade;
    return 10 * decade;
}
