/** @file tess_restore.h
 *  Images of models, without visibilities: a model or a list of sources that is put
 *  onto a residual image with a beam, and lists that are drawn as images.
 */
#ifndef TESS_RESTORE_H
#define TESS_RESTORE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_fits.h"
#include "tess_status.h"

/** What both have. */
typedef struct tess_restore_job {
    const char *output; /**< OUT.fits */
    bool overwrite;
    bool repeatable; /**< sums of any number of ranks and threads are the same; those of
                          drawn sources are in any case */
    int threads;
    const char *command_line; /**< for HISTORY */
    const char *typed;        /**< the command line of WSClean before it, or NULL */
} tess_restore_job;

typedef struct tess_restore_opts {
    const char
        *residual; /**< image or cube; the output has its pixels, planes and header */
    const char *model;   /**< image [Jy/pixel] of its pixels and planes, or a list of
                              sources (io/files/tess_source_list.h) */
    tess_fits_beam beam; /**< zeros: that of the residual's header, or of the table for
                              each plane (tess_fits_planes) */
    bool common; /**< each plane is restored with the smallest beam that contains those
                    of all, and its residual convolved to that */
    tess_restore_job job;
} tess_restore_opts;

/** Where and how a list is drawn. */
typedef struct tess_draw_opts {
    const char *list;
    const char *like; /**< image whose pixels, frequency and Stokes parameter it gets,
                         of several planes the first one's, and whose width of the band
                           where that below is 0; NULL: those of the members that
                           follow */
    int64_t nx, ny;
    double scale_rad, ra_rad, dec_rad, freq_hz, bandwidth_hz;
    const char *obs;   /**< observation whose phase centre takes the place of ra_rad and
                            dec_rad, and its band that of a frequency of 0; or NULL */
    const char *field; /**< of the observation; NULL when it has one */
    int stokes;        /**< FITS code, 1 to 4 */
    int num_terms;     /**< above 0: so many images OUT-term-0.fits … of the spectra's
                            terms in (ν/ν0 − 1)^k, ν0 the frequency; 0: OUT.fits */
    tess_fits_beam beam; /**< in Jy/beam with this beam; zeros: in Jy/pixel */
    tess_restore_job job;
} tess_draw_opts;

/** Write output := model ∗ beam + residual. TESS_ERR_IO; TESS_ERR_INPUT: images do not
 *  fit, no beam is told, the list does not parse; TESS_ERR_ALLOC. Ranks have rows of
 * the image. Collective. */
tess_status tess_restore(tess_comm *comm, const tess_restore_opts *opts);

/** Write images of a list. Errors as above, and of tess_vis_open. Collective. */
tess_status tess_draw(tess_comm *comm, const tess_draw_opts *opts);

#endif
