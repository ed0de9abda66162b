/* Doppler factors of a field as a function of time. Rows ask for them in any order, and
 * one costs tens of microseconds, so that few are computed and others interpolated. */
#include "doppler_track.h"

#include <math.h>

#include "tess_log.h"
#include "tess_mem.h"

/* Distance of nodes [s]. The error of a cubic through four of them is below v (wh)^4 /
 * 43 = 4e-5 m/s, with v = 465 m/s and w = 7.3e-5 rad/s of the Earth's rotation. */
static const double STEP_S = 600;

/* Each how many nodes bounds are looked for, and how far a factor may go beyond, in
 * between: v (w 3 STEP_S)^2 / 2 = 4 m/s. */
enum { BOUND_NODES = 6 };
static const double BEYOND = 2e-8;

/* Times that are farther apart than this are damaged, and have no nodes [s]. The
 * factors are within these bounds at any time: the Sun moves by less than 300 km/s. */
static const double LONGEST_S = 1.6e9, FARTHEST = 1.2e-3;

tess_status doppler_track_create(tess_spectral_frame frame,
                                 const tess_doppler_view *view, double first_s,
                                 double last_s, doppler_track *track)
{
    tess_status status = TESS_OK;
    double unused;
    *track =
        (doppler_track){.frame = frame, .view = *view, .first_s = first_s - STEP_S};
    TESS_TRY(tess_doppler_factor(frame, view, first_s, &unused));
    TESS_TRY(tess_doppler_factor(frame, view, last_s, &unused));
    if (frame == TESS_TOPO || !(last_s - first_s < LONGEST_S)) return TESS_OK;
    track->num = 4 + (int64_t)ceil((last_s - first_s) / STEP_S);
    track->node = tess_alloc(track->num, sizeof *track->node);
    if (!track->node) TESS_FAIL(TESS_ERR_ALLOC, "Doppler factors");
    for (int64_t k = 0; k < track->num; ++k)
        track->node[k] = (double)NAN;
cleanup:
    return status;
}

void doppler_track_free(doppler_track *track)
{
    tess_free(track->node);
    *track = (doppler_track){0};
}

static tess_status find_node(doppler_track *track, int64_t k)
{
    if (!isnan(track->node[k])) return TESS_OK;
    return tess_doppler_factor(track->frame, &track->view,
                               track->first_s + (double)k * STEP_S, &track->node[k]);
}

tess_status doppler_track_at(doppler_track *track, double time_mjd_s, double *factor)
{
    tess_status status = TESS_OK;
    const double at = (time_mjd_s - track->first_s) / STEP_S;
    if (!track->node || !(at >= 1 && at <= (double)(track->num - 2)))
        return tess_doppler_factor(track->frame, &track->view, time_mjd_s, factor);
    const int64_t k = (int64_t)at - (at >= (double)(track->num - 2));
    const double t = at - (double)k;
    for (int64_t j = k - 1; j <= k + 2; ++j)
        TESS_TRY(find_node(track, j));
    const double *y = track->node + k;
    *factor = y[0] * (1 - t) * (1 + t) * (2 - t) / 2 +
              y[1] * t * (1 + t) * (2 - t) / 2 - y[-1] * t * (1 - t) * (2 - t) / 6 -
              y[2] * t * (1 - t) * (1 + t) / 6;
cleanup:
    return status;
}

tess_status doppler_track_bounds(doppler_track *track, double *least, double *most)
{
    tess_status status = TESS_OK;
    if (!track->node) {
        const double farthest = track->frame == TESS_TOPO ? 0 : FARTHEST;
        *least = 1 - farthest;
        *most = 1 + farthest;
        return TESS_OK;
    }
    *least = INFINITY;
    *most = -INFINITY;
    for (int64_t k = 0; k < track->num; k += BOUND_NODES) {
        TESS_TRY(find_node(track, k));
        *least = fmin(*least, track->node[k] - BEYOND);
        *most = fmax(*most, track->node[k] + BEYOND);
    }
    TESS_TRY(find_node(track, track->num - 1));
    *least = fmin(*least, track->node[track->num - 1] - BEYOND);
    *most = fmax(*most, track->node[track->num - 1] + BEYOND);
cleanup:
    return status;
}
