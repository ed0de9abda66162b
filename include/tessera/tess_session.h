/** @file tess_session.h
 *  Observations that stay open, for deconvolution and other iterative imaging: they are
 *  read, weighted and sorted once, and imaged as often as asked, less one model after
 *  another. Arrays go in and come out; there are no files.
 *
 *      tess_session *session = NULL;
 *      tess_session_create(&session);
 *      tess_session_set(session, "obs", "m87.uvfits");
 *      tess_session_set(session, "size", "256");
 *      tess_session_set(session, "scale", "1uas");
 *      if (tess_session_open(session) == TESS_OK) {
 *          tess_session_image(session, 0, 0, NULL, dirty, psf);
 *          while (improve(model, residual))
 *              tess_session_image(session, 0, 0, model, residual, NULL);
 *      }
 *      tess_session_destroy(session);
 *
 *  One process images, whatever MPI does around it. Sessions in several threads wait
 * for one another, because the log is the process's.
 */
#ifndef TESS_SESSION_H
#define TESS_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_api.h"
#include "tess_command.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_session tess_session;

/** What the images of an open session are. */
typedef struct tess_session_info {
    int64_t num_intervals, num_channels; /**< outputs */
    int num_pol;                         /**< images of each */
    int64_t nx, ny;                      /**< pixels */
    double scale_rad;                    /**< pixel size */
    double ra_rad, dec_rad; /**< of pixel (⌊nx/2⌋, ⌊ny/2⌋), 0-based */
    bool is_double;         /**< precision of the grid: double for ε < 1e-5 */
} tess_session_info;

/** What one output is made of. */
typedef struct tess_session_weights {
    double sum;      /**< ΣW of the imaging weights */
    double freq_hz;  /**< mean frequency of the visibilities; 0 without any */
    int64_t num_vis; /**< visibilities that are imaged */
} tess_session_weights;

/** A session without options. Free with tess_session_destroy(). TESS_ERR_ALLOC. */
TESS_API tess_status tess_session_create(tess_session **session);

/** Set an option of `tessera image`, as tess_image_set() does. Options of files
 *  ("output", "subtract", "checkpoint", "scratch") play no part. Before
 *  tess_session_open(). */
TESS_API tess_status tess_session_set(tess_session *session, const char *name,
                                      const char *value);

/** Read, weight and sort the observations, once. Errors as of tess_image_run();
 *  TESS_ERR_RESOURCE when they do not fit in memory. */
TESS_API tess_status tess_session_open(tess_session *session);

/** NULL before tess_session_open(); valid until the session is destroyed. */
TESS_API const tess_session_info *tess_session_info_of(const tess_session *session);

/** Name of a polarisation, "I", "XX", "XYi" (imaginary part of a cross-hand), or NULL
 *  where there is none. */
TESS_API const char *tess_session_polarisation(const tess_session *session, int pol);

/** What an output is made of, for one polarisation. TESS_ERR_USAGE for one that is not
 *  there, and when the session is not open. */
TESS_API tess_status tess_session_weights_of(tess_session *session, int64_t interval,
                                             int64_t channel, int pol,
                                             tess_session_weights *weights);

/** Images of an output. `image` [num_pol][ny][nx], the caller's, gets the dirty images
 * in Jy/beam, or, with `model` [num_pol][ny][nx] in Jy/pixel, the residual ones: those
 * of the data less the model's visibilities. `psf` [num_pol][ny][nx], unless NULL, gets
 * the PSFs. Row 0 is South, column 0 East. Images are NaN beyond the horizon, and all
 * of them without visibilities; pixels of the model that are not finite count as 0.
 * Each call starts from the data: nothing accumulates from call to call. TESS_ERR_USAGE
 * for an output that is not there, and when the session is not open; TESS_ERR_ALLOC. */
TESS_API tess_status tess_session_image(tess_session *session, int64_t interval,
                                        int64_t channel, const double *model,
                                        double *image, double *psf);

/** Predicted visibilities of an output. */
typedef struct tess_predictions tess_predictions;

/** Visibilities of a model [num_pol][ny][nx] in Jy/pixel at all rows that the
 *  observations have in the output's interval, flagged or not, and in its channels:
 * what `tessera predict` makes of the same model, rows and channels. The option
 *  "reproducible" makes them the same for any number of threads and any order of calls.
 *  Where the session images Stokes parameters, every correlation of the observation is
 *  predicted from them. Where it images correlations, each is predicted from its own
 *  image, and the others are 0. Pixels that are not finite count as 0. The session
 * holds good samples only: the first call reads the positions of all rows once more,
 * and keeps them, with a plan and planes of their own. Free the result with
 *  tess_predictions_destroy(); it outlives the session. TESS_ERR_USAGE for an output
 *  that is not there, when the session is not open, and with Stokes parameters and
 *  correlations together; TESS_ERR_ALLOC; errors of reading. */
TESS_API tess_status tess_session_predict(tess_session *session, int64_t interval,
                                          int64_t channel, const double *model,
                                          tess_predictions **predictions);

/** Number of segments, spectral windows of each observation, that have channels of the
 *  output; and the k-th of them, or NULL, which belongs to the predictions. */
TESS_API int64_t tess_predictions_count(const tess_predictions *predictions);
TESS_API const tess_predicted *tess_predictions_get(const tess_predictions *predictions,
                                                    int64_t k);

TESS_API void
tess_predictions_destroy(tess_predictions *predictions); /**< NULL is fine. */

TESS_API void tess_session_destroy(tess_session *session); /**< NULL is fine. */

#ifdef __cplusplus
}
#endif
#endif
