/** @file tess_imager_predict.h
 *  Predictions of visibilities at the rows of an observation.
 */
#ifndef TESS_IMAGER_PREDICT_H
#define TESS_IMAGER_PREDICT_H

#include "tess_comm.h"
#include "tess_fits.h"
#include "tess_imager_opts.h"
#include "tess_profile.h"
#include "tess_vis.h"

/** Takes predicted blocks as they are made, in the order of their rows. A block has
 *  positions, times, antennas and visibilities, to be copied. Local. */
typedef tess_status tess_predict_taker(void *context, const tess_vis_meta *meta,
                                       const tess_vis_block *block);

struct predict_models;

/** Predicts blocks of rows without a model image. */
typedef struct tess_block_predictor {
    void *context;
    const char *kind; /**< of the model, for the origin of what is written */
    /** Begin, once the observation is open. Collective. */
    tess_status (*begin)(void *context, tess_comm *comm, const tess_vis_meta *meta);
    /** Fill block->vis of rows of this segment, with as many threads as it likes.
     *  Local. */
    tess_status (*fill)(void *context, const tess_vis_segment *segment,
                        tess_vis_block *block);
} tess_block_predictor;

/** The primary beam through which antennas see a model in true flux. */
typedef struct tess_predict_beam {
    const char *model; /**< --primary-beam; NULL: none */
    double limit;      /**< --pointing-limit: where the beam is below this, it is 0 */
    /** [num_chan] Frequencies of the channels that are imaged, of which the beam is the
     *  mean though more channels are predicted; NULL: all that are predicted. */
    const double *freq_hz;
    int64_t num_chan;
} tess_predict_beam;

typedef struct tess_predict_opts {
    const char *obs;
    const char *model; /**< --model FITS (Stokes I, or a STOKES axis of I,Q,U,V), or
                            the name of a set of these */
    int model_terms;   /**< --fit-spectral-pol; 0: the nearest channel of the model */
    const tess_fits_pixels *pixels;      /**< where that is NULL: a model in memory */
    const struct predict_models *models; /**< or a model of each output; the column's
                                              other visibilities become 0 */
    const tess_block_predictor *blocks;  /**< or no model image at all; else NULL */
    const char *output;                  /**< -o OUT.uvfits, or NULL */
    const char *column;                  /**< --column of the MS, or NULL */
    bool column_per_facet;    /**< --column-per-facet: COLUMN_FACET in its place, one of
                                   each facet */
    tess_predict_taker *take; /**< gets all where there is neither of them */
    void *take_context;
    tess_selection selection;
    tess_predict_beam beam;
    bool model_is_told; /**< what is odd about the model's name has been told: of one
                             pointing of several */
    tess_gridding gridding;
    tess_layout layout;
    bool overwrite;
    const char *command_line;
} tess_predict_opts;

/** TESS_ERR_IO when `path` is one of the files that facets are made from. Local. */
tess_status tess_image_check_facet_files(const tess_facet_choice *facets,
                                         const char *path);

/** Predict visibilities, block after block of rows. Collective. */
tess_status tess_imager_predict(tess_comm *comm, const tess_predict_opts *opts,
                                tess_profile *profile);

/** The same for each pointing of the observation, which sees the model through its
 * beam. The model's middle is that of the prediction. A column is written field after
 * field: a run that is stopped leaves it with fields that are 0. TESS_ERR_USAGE for an
 * output file. Collective. */
tess_status tess_imager_predict_mosaic(tess_comm *comm, const tess_predict_opts *opts,
                                       tess_profile *profile);

#endif
