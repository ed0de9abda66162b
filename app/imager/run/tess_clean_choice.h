/** @file tess_clean_choice.h
 *  How images are to be cleaned: the options of `tessera image` for major cycles, masks
 *  and restoring beams, around those of minor loops (tess_clean.h).
 */
#ifndef TESS_CLEAN_CHOICE_H
#define TESS_CLEAN_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_clean.h"
#include "tess_imager_opts.h"
#include "tess_multithresh.h"
#include "tess_vis.h"

/** The restoring beam; zeros: fitted to the PSF. */
typedef struct tess_beam_choice {
    double major_rad, minor_rad; /**< --beam-size, --beam-shape (FWHM) */
    double pa_rad;               /**< from North through East */
    bool circular;               /**< --circular-beam */
    bool theoretic;              /**< --theoretic-beam, not fitted */
    bool of_lobe;     /**< --lobe-beam: fitted to the main lobe of the PSF alone */
    double box_beams; /**< --beam-fitting-size; 0: 10 */
    bool common;      /**< --common-beam: one for all channels of an interval */
} tess_beam_choice;

/** What is cleaned together. */
typedef struct tess_join_choice {
    bool channels;      /**< --join-channels */
    bool polarizations; /**< --join-polarizations */
    int num_linked;     /**< --link-polarizations: these are searched; 0: all */
    tess_corr linked[TESS_MAX_POL];
    bool squared; /**< --squared-channel-joining */
    tess_clean_spectrum spectrum;
    int num_terms;       /**< --fit-spectral-pol, --fit-spectral-log-pol */
    int num_cleaned;     /**< --deconvolution-channels; 0: all */
    double reference_hz; /**< --reference-freq; 0: the mean of the channels by weight,
                            below 0: the middle of their bands */
} tess_join_choice;

/** When a minor loop of CASA's tclean ends: at `factor` times the highest sidelobe of
 *  the PSF, within these limits, of the peak. */
typedef struct tess_cycle_choice {
    double factor;                     /**< --cyclefactor; 0: --mgain says it */
    double min_fraction, max_fraction; /**< --min-psf-fraction, --max-psf-fraction */
    bool has_limits;                   /**< one of these two is given */
    bool mgain_given;                  /**< --mgain */
} tess_cycle_choice;

/** --auto-multithresh, and its options. */
typedef struct tess_multithresh_choice {
    bool finds;
    tess_multithresh_opts opts;
    const char *needs; /**< an option given that is of use with it alone, or NULL */
} tess_multithresh_choice;

/** What a minor loop has done, for those who watch. Strings live for the call only. */
typedef struct tess_clean_told {
    int64_t interval, channel; /**< −1: channels that are cleaned together */
    const char *polarisation;  /**< the first of those that are cleaned together */
    int64_t major;             /**< from 1 */
    int64_t minor_iterations, iterations; /**< of this minor loop, and of all so far */
    double peak_start, peak_end, threshold; /**< Jy/beam */
    double rms_jy, flux_jy; /**< of the residual; of this loop's components */
    const char *end; /**< why cleaning ends here, like "threshold"; "": it goes on */
} tess_clean_told;

/** Who is told of each minor loop, on the first rank; a team of threads may call. False
 *  ends cleaning after this loop. `tell` NULL: nobody. */
typedef struct tess_clean_watch {
    bool (*tell)(void *context, const tess_clean_told *told);
    void *context;
} tess_clean_watch;

typedef struct tess_clean_choice {
    tess_clean_opts minor; /**< niter 0: nothing is cleaned. The beam is the image's,
                              and scales are in `scale_px` */
    double scale_px[TESS_CLEAN_MOST_SCALES]; /**< --multiscale-scales */
    int64_t nmiter;        /**< --nmiter, most major iterations; 0: no limit */
    int64_t mask_nmiter;   /**< --auto-mask-nmiter, most of these inside the automatic
                              mask; 0: no limit */
    const char *fits_mask; /**< --fits-mask, or NULL */
    const char *casa_mask; /**< --casa-mask, or NULL */
    const char *mask;      /**< --mask: an image or regions, or NULL */
    double pb_mask;        /**< --pb-mask, a level of the primary beam; 0: none */
    tess_multithresh_choice multithresh;
    tess_cycle_choice cycle;
    const char *channel_mask; /**< --channel-mask: output channels that are cleaned
                                 (tess_channels.h); NULL: all */
    double horizon_rad;  /**< --horizon-mask: no components so close to the horizon */
    bool continues;      /**< --continue: from NAME-model.fits */
    bool first_residual; /**< --save-first-residual */
    bool local_rms;      /**< --local-rms, whatever its method */
    const char *needs_niter;  /**< an option given that says how to clean, or NULL */
    bool update_model;        /**< --update-model */
    bool only_model;          /**< --predict-models: that alone, from NAME-model.fits */
    const char *model_column; /**< --model-column; NULL: MODEL_DATA */
    bool save_sources;        /**< --save-source-list: NAME-sources.txt */
    bool shape_given;         /**< --multiscale-shape */
    bool rounds_given;        /**< --force-mask-rounds */
    tess_join_choice join;
    tess_beam_choice beam;
    tess_clean_watch watch;
} tess_clean_choice;

#endif
