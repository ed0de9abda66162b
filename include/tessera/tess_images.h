/** @file tess_images.h
 *  The imager of `tessera image` within a program: observations in files to images in
 *  memory, with the header that the FITS file would have.
 *
 *      tess_image *image = NULL;
 *      tess_image_create(&image);
 *      tess_image_set(image, "obs", "m87.uvfits");
 *      tess_image_set(image, "size", "256");
 *      tess_image_set(image, "scale", "1uas");
 *      if (tess_image_run(image) == TESS_OK)
 *          for (int64_t k = 0; k < tess_image_count(image); ++k)
 *              use(tess_image_get(image, k));
 *      tess_image_destroy(image);
 *
 *  A run uses the calling process only, also in an MPI program. Runs in several threads
 *  wait for one another, because the process has one log.
 */
#ifndef TESS_IMAGES_H
#define TESS_IMAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_api.h"
#include "tess_model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_image tess_image;

/** One image of a run. Everything belongs to the run. */
typedef struct tess_image_info {
    const char *kind;         /**< "dirty", "psf"; with "niter" "model", "residual",
                                   "image" and "first-residual", too; of the mean of
                                   channels whose spectra were fitted "terms-0",
                                   "terms-0-error" …, "spectral-index" and
                                   "spectral-index-error" */
    const char *polarisation; /**< "I", "XX", "XYi" (imaginary part of a cross-hand) */
    int64_t interval;         /**< of --intervals-out */
    int64_t channel;          /**< of --channels-out; −1: mean of all */
    int64_t nx, ny;
    bool is_double;    /**< precision of the pixels: double for ε < 1e-6 */
    const void *pixel; /**< [ny][nx] Jy/beam, models Jy/pixel; row 0 is South, column 0
                          East, as in FITS; NaN beyond the horizon, and all of it
                          without visibilities */
    double ra_rad, dec_rad;       /**< of pixel (⌊nx/2⌋, ⌊ny/2⌋), 0-based */
    double scale_rad;             /**< pixel size */
    double freq_hz, bandwidth_hz; /**< centre and width of the channels' band; FREQMEAN
                                       in the header is the mean of the visibilities */
    double beam_major_rad, beam_minor_rad, beam_pa_rad; /**< FWHM; 0: no beam */
    double sum_weights;                                 /**< ΣW */
    double num_vis;                                     /**< visibilities imaged */
    const char *header; /**< cards of 80 characters up to END; without checksums */
    int64_t header_bytes;
} tess_image_info;

/** An imager without options. Free with tess_image_destroy(). */
TESS_API tess_status tess_image_create(tess_image **image);

/** Set an option of `tessera image` by its long name without dashes ("size",
 *  "channels-out", see tessera image --help); `value` is NULL for a switch ("no-psf").
 *  "obs" adds an observation. A name given again replaces the earlier value. Files are
 *  only written with "output". "log" is "quiet" (the default), "info" or "debug": what
 *  is shown on stderr. Names and values are checked by tess_image_run(). With
 *  "checkpoint", SIGUSR1, SIGTERM and "max-time" end a run with TESS_ERR_STOPPED, and
 *  "resume" continues it: images of outputs that were finished before are in the files
 *  of "output", not among those of tess_image_get(). Errors: TESS_ERR_ALLOC. */
TESS_API tess_status tess_image_set(tess_image *image, const char *name,
                                    const char *value);

/** Subtract the visibilities of a model in memory, in place of the option "subtract".
 *  The model has the pixel scale of the image, but may have another size. `model`, and
 *  the arrays that it points to, must exist until the last run has ended. NULL: nothing
 *  is subtracted. */
TESS_API void tess_image_subtract(tess_image *image, const tess_model *model);

/** What a minor loop of cleaning has done. Strings live for the call only. */
typedef struct tess_major {
    int64_t interval;         /**< of --intervals-out */
    int64_t channel;          /**< of --channels-out; −1: all, cleaned together */
    const char *polarisation; /**< "I"; the first of those that are cleaned together */
    int64_t major;            /**< major iteration, from 1 */
    int64_t minor_iterations, /**< of this minor loop */
        iterations;           /**< of all so far */
    double peak_start, peak_end, threshold; /**< of the residual [Jy/beam] */
    double rms;      /**< of the residual at the end of the loop [Jy/beam] */
    double flux_jy;  /**< of this loop's components */
    const char *end; /**< why cleaning ends here: "threshold", "niter", "nmiter",
                          "mask-nmiter", "negative", "stalled", "diverged", "nothing";
                          "": it goes on */
} tess_major;

/** Is told of each minor loop, and returns whether to go on: false ends the cleaning of
 *  these images, which are then restored with what has been found. It may be called by
 *  another thread than the one that runs, and by several at a time where images are
 *  made side by side. It must not call the library. */
typedef bool tess_major_watcher(void *context, const tess_major *major);

/** Have cleaning watched from now on; NULL: by nobody. */
TESS_API void tess_image_watch(tess_image *image, tess_major_watcher *watcher,
                               void *context);

/** Make the images, after freeing those of an earlier run. Errors as in the manual's
 *  table of exit statuses: TESS_ERR_USAGE (option), TESS_ERR_INPUT, TESS_ERR_IO,
 *  TESS_ERR_ALLOC, TESS_ERR_RESOURCE. */
TESS_API tess_status tess_image_run(tess_image *image);

/** Images of the last run, in the order in which the program writes them. */
TESS_API int64_t tess_image_count(const tess_image *image);

/** The k-th image, or NULL; valid until the next run or destroy. */
TESS_API const tess_image_info *tess_image_get(const tess_image *image, int64_t k);

TESS_API void tess_image_destroy(tess_image *image); /**< NULL is fine. */

#ifdef __cplusplus
}
#endif
#endif
