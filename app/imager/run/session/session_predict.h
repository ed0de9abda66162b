/** @file session_predict.h  (private to app/imager/run/session/session*.c)
 *  Predictions of a session: the rows that it keeps for them, and what predicts there.
 */
#ifndef TESS_SESSION_PREDICT_H
#define TESS_SESSION_PREDICT_H

#include "facet_gains.h"
#include "predicted_pointing.h"
#include "predictor.h"
#include "source.h"
#include "tess_imager_session.h"

/* Rows of one segment of an observation, of this rank's slice, for prediction. */
typedef struct session_rows {
    const tess_recipe *recipe;
    int reader;    /* of the source */
    int32_t field; /* of a mosaic: its number in the file; else −1 */
    const tess_vis_segment *segment;
    int64_t num_rows, capacity;
    double *uvw_m; /* [num_rows][3] as in the file */
    double *time_mjd_s;
    int32_t *antenna1, *antenna2;
} session_rows;

/* What prediction needs beside the sets: rows that are flagged have no samples there.
 */
typedef struct session_predictor {
    tess_source *source; /* of positions, opened by the first prediction, or NULL */
    predicted_pointing **pointing; /* of a mosaic, [readers of the source]; or NULL */
    int num_segments;
    session_rows *rows; /* [num_segments] */
    tess_layout layout; /* rows of a model lie as those of the session's images do */
    struct image_facets *facets; /* parts of models, or NULL */
    imager_predictor predictor;  /* unless there are pointings */
} session_predictor;

/* ---- session_predict.c ---- */

/* Before the first prediction: read the positions of all rows. Collective. */
tess_status session_open_rows(struct image_session *session);

/* Zeros are fine. Collective. */
void session_predictor_free(session_predictor *predictor);

/* ---- session_batch.c ---- */

/* A model to predict visibilities from, and what its images are. */
typedef struct session_prediction {
    imager_predictor *predictor;
    const tess_pol *pol; /* [num_pol] */
    int num_pol;
} session_prediction;

enum { SESSION_ALL_READERS = -1 };

/* Copy the rows of an output, whose visibilities are 0. Local. */
tess_status session_copy_rows(const struct image_session *session, int64_t interval,
                              int64_t channel, image_predictions *predictions);

/* Predict at the rows and channels of an output, which have been copied, those of one
 * reader of the source, or of all. Collective. */
tess_status session_predict_rows(const struct image_session *session, int64_t channel,
                                 int reader, const session_prediction *what,
                                 image_predictions *predictions);

/* Predict at the rows and channels of an output, once rows are there. Collective. */
tess_status session_predict(struct image_session *session, int64_t interval,
                            int64_t channel, const session_prediction *what,
                            image_predictions *predictions);

/* ---- session_mosaic.c ---- */

/* Opens the pointings of predictions, whose source is set up and keeps the origins of
 * rows. Collective. */
tess_status session_open_pointings(const struct image_session *session,
                                   session_predictor *to);
void session_free_pointings(session_predictor *predictor); /* Local. */

/* Predicts what pointings see of a model, rows[num_pol], one after the other, at the
 * rows of an output. Collective. */
tess_status session_predict_pointings(const struct image_session *session,
                                      int64_t interval, int64_t channel,
                                      const tess_rows *rows,
                                      image_predictions *predictions);

/* ---- session_parts.c ---- */

/* Makes the facets of predictions, whose source is open and not set up, and the model's
 * parts of them, if the session has facets. Collective. */
tess_status session_add_facets(const struct image_session *session,
                               session_predictor *to, imager_model *model);

/* Has the predictor predict this part; `plain`, which lasts as long as that, holds
 * gains of 1 where these are asked for. Collective. */
tess_status session_choose_part(struct image_session *session,
                                const image_session_part *part, facet_gains *plain);

#endif
