/** @file tess_session.h
 *  Observations that stay open, for deconvolution and other iterative imaging: they are
 *  read, weighted and sorted once, and imaged as often as asked, less one model after
 *  another. Arrays go in and come out; only models may be files.
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
 *  A session of tess_session_create() uses the calling process only, also in an MPI
 *  program. A session of tess_session_create_mpi() is shared by the ranks of a
 *  communicator: calls marked Collective are made on all of them, in the same order,
 * and with the same arguments but for arrays. Each rank has rows of the images,
 * `num_rows` of them from row `row_first`, which may be none. A rank passes and gets
 * these rows of every array. When a collective call fails on one rank, it returns on
 * all: with the reason on the rank that failed, and TESS_ERR_PEER on the others.
 *
 *  Sessions in several threads wait for one another, because the log is the process's;
 *  sessions of several ranks belong in one thread, the one that may call MPI. A session
 *  belongs to the process that created it: in a process that is forked from it, calls
 *  return TESS_ERR_USAGE, and tess_session_destroy() does nothing.
 */
#ifndef TESS_SESSION_H
#define TESS_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_api.h"
#include "tess_command.h"
#include "tess_images.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_session tess_session;

/** What the images of an open session are. */
typedef struct tess_session_info {
    int64_t num_intervals, num_channels; /**< outputs */
    int num_pol;                         /**< images of each */
    int64_t nx, ny;                      /**< pixels */
    int64_t row_first, num_rows;         /**< rows on this rank; of one process, all */
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

/** A session of the ranks of a communicator, `MPI_Comm_c2f(communicator)`, which is
 *  duplicated. MPI must have been started with MPI_Init_thread() and at least
 *  MPI_THREAD_FUNNELED, and be the library that tessera was built with. Free with
 *  tess_session_destroy() before MPI_Finalize(). TESS_ERR_RESOURCE when MPI does not
 *  run, or tessera was built without; TESS_ERR_USAGE for MPI_COMM_NULL; TESS_ERR_ALLOC.
 *  Collective. */
TESS_API tess_status tess_session_create_mpi(int64_t communicator,
                                             tess_session **session);

/** Set an option of `tessera image`, as tess_image_set() does; the same ones on all
 *  ranks. Options of files ("output", "subtract", "checkpoint") play no part, but
 *  "scratch" does. tess_session_open() refuses "niter", "store-imaging-weights" and,
 *  without "mosaic", "primary-beam", which are for tess_image_run();
 * tess_session_clean() cleans. Before it. */
TESS_API tess_status tess_session_set(tess_session *session, const char *name,
                                      const char *value);

/** Read, weight and sort the observations, once. Errors as of tess_image_run();
 *  TESS_ERR_RESOURCE when they do not fit in memory, unless the option "scratch" names
 *  a folder in which each rank may keep them (not on a GPU); TESS_ERR_IO when its disk
 *  is full; TESS_ERR_USAGE for options that ranks do not share. Collective. */
TESS_API tess_status tess_session_open(tess_session *session);

/** NULL before tess_session_open(); valid until the session is destroyed. */
TESS_API const tess_session_info *tess_session_info_of(const tess_session *session);

/** Name of a polarisation, "I", "XX", "XYi" (imaginary part of a cross-hand), or NULL
 *  where there is none. */
TESS_API const char *tess_session_polarisation(const tess_session *session, int pol);

/** What an output is made of on all ranks, for one polarisation. TESS_ERR_USAGE for one
 * that is not there, and when the session is not open. */
TESS_API tess_status tess_session_weights_of(tess_session *session, int64_t interval,
                                             int64_t channel, int pol,
                                             tess_session_weights *weights);

/** Facets of a session that is opened with the option "facets", and the name of one; 0
 *  and NULL where there are none. */
TESS_API int tess_session_num_facets(const tess_session *session);
TESS_API const char *tess_session_facet(const tess_session *session, int facet);

/** Give facets the solutions of h5parm files, `files` "FILE,FILE" with `tables`
 *  "NAME,NAME", as the options "facet-solutions" and "soltabs" do (NULL: no solutions;
 *  the usual tables), in place of those that they have. Nothing is read but these
 *  files. The samples hold the correlations that solutions for both feeds need; for
 *  solutions that mix feeds, the session is opened with such, or with "stokes" "IQUV".
 *  TESS_ERR_USAGE: no facets, correlations that are not held, ranks that pass different
 *  names; TESS_ERR_IO, TESS_ERR_INPUT as of tess_session_open(). On failure facets keep
 *  the solutions that they have. Collective. */
TESS_API tess_status tess_session_solutions(tess_session *session, const char *files,
                                            const char *tables);

/** What images are over to be in true flux, for an output:
 *  response[num_pol][num_rows][nx]. Of facets with gains it is the root of the mean of
 * |g1 g2|² by weight, and NaN in no facet. With the option "mosaic" it is the beam of
 * the mosaic, √(P / max P) with P = Σ W B² over pointings, which is not cut: 0 where
 * none sees anything, NaN without visibilities. It is 1 everywhere in other sessions.
 * Models of sessions are in true flux. Errors of tess_session_image(). Collective. */
TESS_API tess_status tess_session_response(tess_session *session, int64_t interval,
                                           int64_t channel, double *response);

/** Images of an output. `image` [num_pol][num_rows][nx], the caller's, gets the dirty
 * images in Jy/beam, or, with `model` [num_pol][num_rows][nx] in Jy/pixel, the residual
 * ones: those of the data less the model's visibilities. `psf` [num_pol][num_rows][nx],
 * unless NULL, gets the PSFs. Row 0 of the image is South, column 0 East. Images are
 * NaN beyond the horizon, and all of them without visibilities; pixels of the model
 * that are not finite count as 0. With gains of facets, the model is in true flux, and
 * images are as the data see them (tess_session_response). With the option "mosaic",
 * images have even noise and are NaN where the beam of the mosaic is below "pb-limit",
 * and each pointing sees the model, in true flux, through its beam. Each call starts
 * from the data: nothing accumulates from call to call. A rank without rows may pass
 * NULL for any array. With the option "reproducible", images are the same on any number
 * of ranks and threads. TESS_ERR_USAGE for an output that is not there, when the
 * session is not open, and when ranks ask for different outputs or only some pass an
 * array; TESS_ERR_ALLOC. Collective. */
TESS_API tess_status tess_session_image(tess_session *session, int64_t interval,
                                        int64_t channel, const double *model,
                                        double *image, double *psf);

/** Predicted visibilities of an output. */
typedef struct tess_predictions tess_predictions;

/** Visibilities of a model [num_pol][num_rows][nx] in Jy/pixel at all rows that the
 *  observations have in the output's interval, flagged or not, and in its channels:
 * what `tessera predict` makes of the same model, rows and channels. The option
 *  "reproducible" makes them the same for any number of ranks and threads and any order
 *  of calls. Without it the plan grows when an output has other |w| than those before:
 *  of several outputs, the same call may differ within the option "accuracy" from one
 *  before another output was predicted. Of several ranks each gets the visibilities of
 * a contiguous part of the observations' rows, which may be empty: the rows of rank 0,
 * then those of rank 1, and so on, are the rows of one process, segment by segment, in
 * the file's order. They have nothing to do with rows of images. All ranks have the
 * same segments. Where the session images Stokes parameters, every correlation of the
 * observation is predicted from them. Where it images correlations, each is predicted
 * from its own image, and the others are 0. Pixels that are not finite count as 0. The
 * session holds good samples only: the first call reads the positions of all rows once
 * more, and keeps them, with a plan and planes of their own. With the option "mosaic"
 * each field has segments of its own, of what its pointing sees of the model:
 * visibilities of `tessera predict --mosaic`, with beams that are means over the
 * channels of the output and the integrations of its interval, and each call plans each
 * field anew; rows are kept. Free the result with tess_predictions_destroy(); it
 * outlives the session. TESS_ERR_USAGE as of tess_session_image(), and with Stokes
 * parameters and correlations together; TESS_ERR_ALLOC; errors of reading. Collective.
 */
TESS_API tess_status tess_session_predict(tess_session *session, int64_t interval,
                                          int64_t channel, const double *model,
                                          tess_predictions **predictions);

/** As tess_session_predict(), what lies in the facet of this name (NULL: in any), with
 *  the gains of the facets or, without `with_gains`, with gains of 1: what a
 * calibration of each direction solves with. TESS_ERR_USAGE also for a facet that is
 * not there. Collective. */
TESS_API tess_status tess_session_predict_facet(tess_session *session, int64_t interval,
                                                int64_t channel, const double *model,
                                                const char *facet, bool with_gains,
                                                tess_predictions **predictions);

/** A model in files: a FITS image, a cube with a FREQ axis, or the NAME of the files
 *  NAME-cube-model.fits, or NAME-0000-model.fits, NAME-0001-model.fits …, or
 *  NAME-model.fits (with several Stokes parameters NAME-0000-I-model.fits …), as
 * `tessera predict --model` and `tessera image --subtract` read it, of Stokes I, Q, U
 * and V in Jy/pixel. Where it has several channels, each channel of the data takes the
 * nearest of them in frequency, or, with `num_terms` from 1 to 16, the value of the
 * polynomial of so many terms in ν/ν₀ − 1 that is fitted to each pixel by least squares
 * through the model's channels. All of it belongs to the caller. */
typedef struct tess_model_file {
    const char *path;
    int num_terms; /**< 0: the nearest channel */
} tess_model_file;

/** As tess_session_image(), the residual images of a model in files: those of
 *  `tessera image --subtract`. Its pixels have the size of the images' pixels; there
 * may be more or fewer of them. On other numbers of ranks they agree to rounding, with
 * the option "reproducible", too. Errors of tess_session_image(); TESS_ERR_USAGE where
 * the ranks name different models, for `num_terms` out of range, and in sessions with
 * facets or of mosaics, whose models are arrays; TESS_ERR_IO for a
 * file that is not there; TESS_ERR_INPUT for one that is no such model: other pixels or
 *  another phase centre, a frequency axis that cannot be used, no channel within the
 *  data's band, fewer channels than terms, a set that lacks a file. Collective. */
TESS_API tess_status tess_session_image_file(tess_session *session, int64_t interval,
                                             int64_t channel,
                                             const tess_model_file *model,
                                             double *image, double *psf);

/** As tess_session_predict(), of a model in files, whose pixels may be any around the
 *  phase centre: what `tessera predict` makes of it at the output's rows and channels.
 *  Every correlation is predicted from the model's Stokes parameters, whatever the
 *  session images. Errors as of tess_session_image_file(). Collective. */
TESS_API tess_status tess_session_predict_file(tess_session *session, int64_t interval,
                                               int64_t channel,
                                               const tess_model_file *model,
                                               tess_predictions **predictions);

/** Read a model in files for an output, to go on from it: model[num_pol][num_rows][nx]
 * in Jy/pixel, as tess_session_image() takes it, and as `tessera image --continue`
 * begins. The model's pixels are the images'. An output channel gets the model's
 * channel of its own frequency. Where the model has none, it gets the nearest one, or
 * with file->num_terms the value of the polynomial at its centre; `path` and
 * `num_terms` are as above, and fewer channels with data have as many terms. With
 * gains of facets or the option "mosaic", NAME means the models in true flux,
 * NAME-0000-model-pb.fits …, where they are there. Blank pixels become 0. Errors as of
 * tess_session_image_file(); TESS_ERR_INPUT for a polarisation of the session that the
 * model lacks, and with the option "mosaic" or "facet-beam" for a NAME whose models
 * have all been multiplied by a primary beam, NAME-pb.fits: it would act twice. A rank
 * without rows may pass NULL. Collective. */
TESS_API tess_status tess_session_read_model(tess_session *session, int64_t interval,
                                             int64_t channel,
                                             const tess_model_file *file,
                                             double *model);

/** The beam that is fitted to the PSF of an output [rad]: FWHM of both axes, and the
 *  position angle from North through East; zeros: there is none. The first call makes
 * the PSF. TESS_ERR_USAGE as of tess_session_image(); TESS_ERR_ALLOC. Collective. */
TESS_API tess_status tess_session_beam(tess_session *session, int64_t interval,
                                       int64_t channel, double beam_rad[3]);

/** Arrays [num_pol][num_rows][nx] of a restored image, and its beam. */
typedef struct tess_restored {
    const double *model;    /**< Jy/pixel */
    const double *residual; /**< Jy/beam; may be `image` */
    double *image;          /**< gets model ∗ beam + residual */
    double beam_rad[3];     /**< as of tess_session_beam(); zeros: that of the output */
} tess_restored;

/** Restore an output. TESS_ERR_USAGE as of tess_session_image(), and where the output
 * has no beam and none is given; TESS_ERR_ALLOC. Collective. */
TESS_API tess_status tess_session_restore(tess_session *session, int64_t interval,
                                          int64_t channel, const tess_restored *arrays);

/** The header that `tessera image` would write for an image of a kind ("dirty", "psf",
 *  "model", "residual", "image") and polarisation: cards of 80 characters up to END.
 *  They belong to the session until the next call of it. TESS_ERR_USAGE as of
 *  tess_session_image(), and for another kind; TESS_ERR_ALLOC. Collective. */
TESS_API tess_status tess_session_header(tess_session *session, int64_t interval,
                                         int64_t channel, const char *kind, int pol,
                                         const char **header, int64_t *header_bytes);

/** Clean all outputs with the visibilities that the session holds. `image` is an imager
 *  of tess_image_create() with the options of the session and those of cleaning; it
 * gets the images, as of tess_image_run(), and its watcher is told. Means over channels
 * are not made. A session of one process. TESS_ERR_USAGE: no "niter", or an option that
 * does not say how to clean, like "mosaic" or "output", and is not the session's;
 * errors of tess_image_run(). "facet-solutions" and "soltabs" are not looked at: facets
 * have those of the session, which tess_session_solutions() changes. */
TESS_API tess_status tess_session_clean(tess_session *session, tess_image *image);

/** Number of segments, spectral windows of each observation, that have channels of the
 *  output; and the k-th of them, or NULL, which belongs to the predictions. */
TESS_API int64_t tess_predictions_count(const tess_predictions *predictions);
TESS_API const tess_predicted *tess_predictions_get(const tess_predictions *predictions,
                                                    int64_t k);

TESS_API void
tess_predictions_destroy(tess_predictions *predictions); /**< NULL is fine. */

/** Waits for a call of the session that another thread is in. Calls that wait for their
 *  turn then return TESS_ERR_USAGE, and none may begin any more. NULL is fine.
 *  Collective. */
TESS_API void tess_session_destroy(tess_session *session);

#ifdef __cplusplus
}
#endif
#endif
