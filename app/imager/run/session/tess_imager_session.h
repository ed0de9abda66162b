/** @file tess_imager_session.h
 *  Observations that stay open: read, weighted, sent and sorted once, then imaged as
 * often as asked, less one model after another. Each output, an output channel of an
 * interval, has a visibility set. A rank holds the samples of its bricks of all sets.
 */
#ifndef TESS_IMAGER_SESSION_H
#define TESS_IMAGER_SESSION_H

#include "tess_fits.h"
#include "tess_imager.h"
#include "tess_session_facets.h"

typedef struct image_session image_session;

/** What the images of a session are. */
typedef struct image_session_facts {
    int64_t num_intervals, num_channels;
    int num_pol;                   /**< images of an output */
    char pol[2 * TESS_MAX_POL][8]; /**< "I", "XX", "XYi" */
    int64_t nx, ny;                /**< pixels */
    int64_t row_first, num_rows;   /**< of images on this rank */
    double scale_rad, ra_rad, dec_rad;
    bool is_double; /**< precision of what is gridded */
} image_session_facts;

/** Open observations with the options of an image. Files, means over channels, models
 *  and checkpoints of the options play no part. Errors as of tess_imager_image();
 *  TESS_ERR_RESOURCE when the samples do not fit in memory. `comm`, `opts` and
 * `profile` are borrowed. Collective. */
tess_status image_session_open(tess_comm *comm, const tess_image_opts *opts,
                               tess_profile *profile, image_session **session);
void image_session_close(image_session *session); /**< NULL is fine. Collective. */

/** Facts; valid until the session is closed. Local. */
const image_session_facts *image_session_facts_of(const image_session *session);

/** ΣW of each polarisation of an output, and its PSF's, into sum[num_pol]; the mean
 *  frequency [Hz] of its visibilities and their number. Local. */
void image_session_weights(const image_session *session, int64_t interval,
                           int64_t channel, double *sum, double *freq_hz,
                           int64_t *num_vis);

/** Images of an output, this rank's rows of them, less the model's visibilities:
 *  image[num_pol][num_rows][nx] in Jy/beam, NaN beyond the horizon and in no facet,
 *  from model[num_pol][num_rows][nx] in Jy/pixel and true flux (NULL: nothing is
 * subtracted; pixels that are not finite count as 0), and PSFs
 * psf[num_pol][num_rows][nx], unless NULL. A rank without rows may pass NULL for any
 * array. TESS_ERR_USAGE for an output that is not there, and where ranks ask for
 * different outputs or only some pass an array. Collective. */
tess_status image_session_image(image_session *session, int64_t interval,
                                int64_t channel, const double *model, double *image,
                                double *psf);

/** Predicted visibilities of this rank's rows of a segment, flagged or not. Ranks own
 * contiguous parts of the rows: one rank after another they are those of the file. */
typedef struct image_predicted {
    int32_t field;              /**< of a mosaic: number of their field; else −1 */
    int64_t num_rows, num_chan; /**< channels of the output */
    int num_corr;
    tess_corr corr[TESS_MAX_CORR];
    double *freq_hz;              /**< [num_chan] */
    double *uvw_m;                /**< [num_rows][3] as in the file */
    double *time_mjd_s;           /**< [num_rows] */
    int32_t *antenna1, *antenna2; /**< [num_rows] */
    float *vis; /**< [num_rows][num_chan][num_corr][2] Jy; 0 without finite uvw */
} image_predicted;

/** Those of all segments that have channels of an output. */
typedef struct image_predictions {
    int64_t count;
    image_predicted *part; /**< [count], the same segments on all ranks */
} image_predictions;

/** Predict the model[num_pol][num_rows][nx] of an output, in Jy/pixel and true flux, at
 *  the rows of its interval. Stokes parameters become all correlations; of
 * polarisations that are correlations each becomes itself, and the others are 0. Of a
 * mosaic, each field gets what its pointing sees. The first call reads positions once
 * more and keeps them. The caller frees the result. TESS_ERR_USAGE as of
 *  image_session_image(), and for Stokes parameters and correlations. Collective. */
tess_status image_session_predict(image_session *session, int64_t interval,
                                  int64_t channel, const double *model,
                                  const image_session_part *part,
                                  image_predictions *predictions);

/** A model that is read from files, as `predict --model` and `--subtract` read it: an
 *  image, a cube with a FREQ axis, or the NAME of a set NAME-0000-model.fits … Each
 *  channel of the data takes the model's nearest channel, or, with num_terms > 0, the
 *  value of the polynomial of so many terms in ν/ν₀ − 1 through the model's channels
 *  (model_cube.h). */
typedef struct image_session_file {
    const char *path;
    int num_terms;
} image_session_file;

/** As image_session_image(), less a model of files, whose pixels have the size of the
 *  images'. The model is predicted on a plan of its own. Errors of
 *  image_session_image(); TESS_ERR_USAGE where ranks name different models;
 *  TESS_ERR_IO and TESS_ERR_INPUT as of `--subtract`. Collective. */
tess_status image_session_image_file(image_session *session, int64_t interval,
                                     int64_t channel, const image_session_file *file,
                                     double *image, double *psf);

/** As image_session_predict(), of a model of files, whose pixels may be any: all
 *  correlations of the observations are made from its Stokes parameters. Errors as
 *  above. Collective. */
tess_status image_session_predict_file(image_session *session, int64_t interval,
                                       int64_t channel, const image_session_file *file,
                                       image_predictions *predictions);

/** The model of files for an output: model[num_pol][num_rows][nx], as `--continue`
 * takes it. Its pixels are the images'. An output channel gets the model's channel of
 * its frequency; where there is none, the nearest one, or the polynomial's value at its
 *  centre. Blank pixels become 0. TESS_ERR_INPUT, also for a Stokes parameter or
 *  correlation of the session that the model lacks; errors as above. Collective. */
tess_status image_session_read_file(image_session *session, int64_t interval,
                                    int64_t channel, const image_session_file *file,
                                    double *model);

/** The beam that is fitted to the first PSF of an output; zeros: there is none. The
 *  first call makes the PSF. Errors of image_session_image(). Collective. */
tess_status image_session_beam(image_session *session, int64_t interval,
                               int64_t channel, tess_fits_beam *beam);

/** Arrays [num_pol][num_rows][nx] of a restored image. */
typedef struct session_restored {
    const double *model, *residual; /**< Jy/pixel, Jy/beam */
    double *image;                  /**< model ∗ beam + residual */
} session_restored;

/** Restore an output with `beam`, or with that of the output if it is zeros.
 *  TESS_ERR_USAGE also where there is none. Collective. */
tess_status image_session_restore(image_session *session, int64_t interval,
                                  int64_t channel, const tess_fits_beam *beam,
                                  const session_restored *arrays);

/** What the header of an image of a kind ("image", "model" ...) and polarisation says.
 *  Errors of image_session_beam(); TESS_ERR_USAGE for other kinds. Collective. */
tess_status image_session_meta(image_session *session, int64_t interval,
                               int64_t channel, const char *kind, int pol,
                               tess_image_meta *meta);

/** Clean all outputs with opts->clean, on the samples of the session, and give their
 *  images to opts->take. Other options are the session's. Means over channels are not
 *  made. TESS_ERR_USAGE: the options say not how to clean, or need files. Collective.
 */
tess_status image_session_clean(image_session *session, const tess_image_opts *opts);

void image_predictions_free(image_predictions *predictions); /**< Local. */

#endif
