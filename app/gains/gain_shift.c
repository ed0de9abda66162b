/* The phases by which antennas see sources shifted. A source at s that is seen at s'
 * has the visibility of one at s times exp(−2πi b·(s' − s)/λ), which is the product of
 * phases exp(2πi x·(s' − s)/λ) of its two antennas. */
#include <erfa.h>
#include <math.h>
#include <string.h>

#include "gains.h"
#include "tess_const.h"
#include "tess_geom.h"
#include "tess_mem.h"
#include "tess_primary_beam.h"

struct gain_shift {
    double time_mjd_s;      /* at which axes are */
    double axis[3][3];      /* of l, m and n, in the frame of the Earth */
    double (*antenna)[3];   /* [num_antennas] from the first one [m] */
    double (*direction)[2]; /* [num_facets] l, m */
};

/* ---- axes ---- */

/* Precession and nutation are those of the middle of the observation: within a day they
 * turn the axes by less than 1e-6. UT1 − UTC and aberration are left out. They turn the
 * axes by 1e-4, and change the phases of shifts by this part. */
static tess_status find_axes(const tess_vis_meta *meta, gain_shift *shift)
{
    tess_status status = TESS_OK;
    const double time = 0.5 * (meta->time_start_mjd_s + meta->time_end_mjd_s);
    const double ra = meta->field[0].ra_rad, dec = meta->field[0].dec_rad;
    double sky[3][3] = {{-sin(ra), cos(ra), 0},
                        {-sin(dec) * cos(ra), -sin(dec) * sin(ra), cos(dec)},
                        {cos(dec) * cos(ra), cos(dec) * sin(ra), sin(dec)}};
    double to_itrf[3][3];
    TESS_TRY(tess_earth_axes(time, "shifts of sources (dldm) need", to_itrf));
    for (int k = 0; k < 3; ++k)
        eraRxp(to_itrf, sky[k], shift->axis[k]);
    shift->time_mjd_s = time;
cleanup:
    return status;
}

/* ---- creating ---- */

static tess_status take_antennas(const tess_vis_meta *meta, gain_shift *shift)
{
    tess_status status = TESS_OK;
    for (int a = 0; a < meta->num_antennas; ++a) {
        const double *at = meta->antenna[a].xyz_m, *first = meta->antenna[0].xyz_m;
        if (!(sqrt(at[0] * at[0] + at[1] * at[1] + at[2] * at[2]) > 1e6))
            TESS_FAIL(TESS_ERR_INPUT,
                      "antenna %s has no position, which shifts of sources (a-terms of "
                      "the type dldm) need",
                      meta->antenna[a].name);
        for (int k = 0; k < 3; ++k)
            shift->antenna[a][k] = at[k] - first[k];
    }
cleanup:
    return status;
}

tess_status gain_shift_create(const tess_facets *facets, const tess_vis_meta *meta,
                              gain_shift **out)
{
    tess_status status = TESS_OK;
    const double ra0 = meta->field[0].ra_rad, dec0 = meta->field[0].dec_rad;
    gain_shift *shift = tess_alloc_zero(1, sizeof *shift);
    if (!shift) TESS_FAIL(TESS_ERR_ALLOC, "no memory for shifts of sources");
    shift->antenna = tess_alloc(meta->num_antennas, sizeof *shift->antenna);
    shift->direction = tess_alloc(facets->num_facets, sizeof *shift->direction);
    if (!shift->antenna || !shift->direction)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for shifts of sources");
    TESS_TRY(find_axes(meta, shift));
    TESS_TRY(take_antennas(meta, shift));
    for (int64_t f = 0; f < facets->num_facets; ++f) {
        double lmn1[3];
        tess_sky_project(facets->facet[f].ra_rad, facets->facet[f].dec_rad, ra0, dec0,
                         lmn1);
        memcpy(shift->direction[f], lmn1, sizeof *shift->direction);
    }
    *out = shift;
    shift = NULL;
cleanup:
    gain_shift_destroy(shift);
    return status;
}

void gain_shift_destroy(gain_shift *shift)
{
    if (!shift) return;
    tess_free(shift->antenna);
    tess_free(shift->direction);
    tess_free(shift);
}

/* ---- phases ---- */

static double n_of(double l, double m)
{
    return sqrt(fmax(1 - l * l - m * m, 0));
}

double gain_shift_phase(const gain_shift *shift, double time_mjd_s, int64_t antenna,
                        int64_t facet, double freq_hz, const double by[2])
{
    const double turn = TESS_TWO_PI * TESS_TURNS_PER_UT1_DAY / TESS_SECONDS_PER_DAY *
                        (time_mjd_s - shift->time_mjd_s);
    const double c = cos(turn), s = sin(turn);
    const double *x = shift->antenna[antenna], *at = shift->direction[facet];
    /* the Earth has turned the antenna eastwards since the time of the axes */
    const double turned[3] = {c * x[0] - s * x[1], s * x[0] + c * x[1], x[2]};
    const double way[3] = {by[0], by[1],
                           n_of(at[0] + by[0], at[1] + by[1]) - n_of(at[0], at[1])};
    double sum = 0;
    for (int k = 0; k < 3; ++k)
        for (int j = 0; j < 3; ++j)
            sum += way[k] * shift->axis[k][j] * turned[j];
    return TESS_TWO_PI * sum * freq_hz / TESS_SPEED_OF_LIGHT_M_S;
}
