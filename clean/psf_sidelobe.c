/* The highest sidelobe of a PSF: what the beam leaves of it. */
#include <math.h>

#include "clean_gaussian.h"
#include "tess_mem.h"
#include "tess_multithresh.h"

typedef struct extremes {
    double lowest, highest; /* of the PSF; of the PSF less the beam */
} extremes;

/* exp() of a beam that is not known is 1 at its centre alone. */
static double beam_at(const tess_clean_beam *beam, const clean_exponent *e, double x,
                      double y)
{
    if (!(beam->minor_px > 0)) return x * x + y * y > 0 ? 0 : 1;
    return exp(-(e->along_x * x * x + e->along_y * y * y + e->across * x * y));
}

static void look(const tess_rows *psf, const tess_clean_beam *beam, double centre,
                 extremes *found)
{
    const clean_widths widths =
        clean_widths_of(beam->major_px, beam->minor_px, beam->angle_rad);
    const clean_exponent e =
        beam->minor_px > 0 ? clean_exponent_of(&widths) : (clean_exponent){0};
    for (int64_t row = 0; row < psf->num_rows; ++row)
        for (int64_t x = 0; x < psf->nx; ++x) {
            const double value = tess_rows_pixel(psf, row * psf->nx + x) / centre;
            if (!isfinite(value)) continue;
            const double left =
                value - beam_at(beam, &e, (double)(x - psf->nx / 2),
                                (double)(psf->row_first + row - psf->ny / 2));
            found->lowest = fmin(found->lowest, value);
            found->highest = fmax(found->highest, left);
        }
}

tess_status tess_psf_sidelobe(tess_comm *comm, const tess_rows *psf,
                              const tess_clean_beam *beam, double *level)
{
    tess_status status = TESS_OK;
    tess_rows view = {0};
    const int64_t row = psf->ny / 2 - psf->row_first;
    double centre = -INFINITY;
    extremes found = {0};
    TESS_TRY(tess_comm_agree(comm, tess_rows_view(psf, &view)));
    if (row >= 0 && row < psf->num_rows)
        centre = tess_rows_pixel(&view, row * psf->nx + psf->nx / 2);
    TESS_TRY(tess_comm_allreduce_f64(comm, &centre, 1, TESS_MAX));
    look(&view, beam, centre, &found);
    double both[2] = {-found.lowest, found.highest};
    TESS_TRY(tess_comm_allreduce_f64(comm, both, 2, TESS_MAX));
    *level = fmax(both[0], both[1]);
cleanup:
    tess_rows_free(&view);
    return status;
}
