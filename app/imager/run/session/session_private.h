/** @file session_private.h  (private to app/imager/run/session/)
 *  What a session holds, and the functions that its files share.
 */
#ifndef TESS_SESSION_PRIVATE_H
#define TESS_SESSION_PRIVATE_H

#include "facet_gains.h"
#include "image_facets.h"
#include "image_run.h"
#include "predicted_pointing.h"
#include "predictor.h"
#include "sample_sets.h"
#include "tess_imager_session.h"
#include "visset.h"

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

/* An output's samples and what was made of them. */
typedef struct session_output {
    sample_sets data;
    visset set;                        /* zeros: there are no visibilities */
    double variance[2 * TESS_MAX_POL]; /* as of image_weighted_data() */
    bool is_measured;                  /* the rest is known */
    struct image_found found[TESS_MAX_POL];
    double weight[2 * TESS_MAX_POL], effective_vis[2 * TESS_MAX_POL];
    imager_product root[TESS_MAX_POL]; /* [num_pol] roots of the responses of facets, or
                                          the beam of a mosaic */
    bool has_root;                     /* they are those of the present gains */
} session_output;

/* Names of solutions that have replaced those of the options; owned, or NULL. */
typedef struct session_solutions {
    char *files, *tables;
} session_solutions;

struct image_session {
    image_run run;
    tess_image_opts opts;
    session_output *output; /* [run.outputs.num] */
    image_session_facts facts;
    session_predictor predictor;
    session_solutions solutions;
    bool has_told; /* how channels take those of a model, in the log */
};

/* The images of output k that are asked for, into the caller's arrays as of
 * image_session_image(); `model` where they are less the job's. Collective. */
tess_status session_images(image_session *session, int64_t k,
                           const visset_request *request, const double *model,
                           double *image, double *psf);

/* A model to predict visibilities from, and what its images are. */
typedef struct session_prediction {
    imager_predictor *predictor;
    const tess_pol *pol; /* [num_pol] */
    int num_pol;
} session_prediction;

enum { SESSION_ALL_READERS = -1 };

/* Before the first prediction: read the positions of all rows. Collective. */
tess_status session_open_rows(image_session *session);

/* Copy the rows of an output, whose visibilities are 0. Local. */
tess_status session_copy_rows(const image_session *session, int64_t interval,
                              int64_t channel, image_predictions *predictions);

/* Predict at the rows and channels of an output, which have been copied, those of one
 * reader of the source, or of all. Collective. */
tess_status session_predict_rows(const image_session *session, int64_t channel,
                                 int reader, const session_prediction *what,
                                 image_predictions *predictions);

/* Predict at the rows and channels of an output, once rows are there. Collective. */
tess_status session_predict(image_session *session, int64_t interval, int64_t channel,
                            const session_prediction *what,
                            image_predictions *predictions);

/* A model's rows on this rank, rows[num_pol]: the caller's pixels. Local. */
void session_model_rows(const image_session *session, const double *model,
                        tess_rows *rows);

/* Which arrays a call passes. */
typedef struct session_arrays {
    bool model, image, psf;
} session_arrays;

/* Check that all ranks ask for the same output, and that those with rows of images pass
 * the same arrays. A rank without rows learns what the others pass. TESS_ERR_USAGE,
 * also for an output that is not there. Collective. */
tess_status session_agree(const image_session *session, int64_t interval,
                          int64_t channel, session_arrays *arrays);

/* Zeros are fine. Collective. */
void session_predictor_free(session_predictor *predictor);

/* ---- session_parts.c ---- */

/* TESS_ERR_USAGE: the session has none. Local. */
tess_status session_check_facets(const image_session *session);

/* TESS_ERR_USAGE for a session with facets or of a mosaic. Local. */
tess_status session_refuse_patches(const image_session *session);

/* Refuses ranks that pass different texts, which may be NULL, or numbers: they would
 * take part in different collective calls and wait for one another. TESS_ERR_USAGE.
 * Collective. */
tess_status session_agree_on_texts(const image_session *session, const char *first,
                                   const char *second, int64_t number);

/* What the facets of the session's images are made for, with gains of a choice. Local.
 */
facet_setup session_facet_setup(const image_session *session,
                                const tess_facet_choice *choice);

/* Makes the facets of predictions, whose source is open and not set up, and the model's
 * parts of them, if the session has facets. Collective. */
tess_status session_add_facets(const image_session *session, session_predictor *to,
                               imager_model *model);

/* Has the predictor predict this part; `plain`, which lasts as long as that, holds
 * gains of 1 where these are asked for. Collective. */
tess_status session_choose_part(image_session *session, const image_session_part *part,
                                facet_gains *plain);

/* ---- session_mosaic.c ---- */

/* Opens the pointings of predictions, whose source is set up and keeps the origins of
 * rows. Collective. */
tess_status session_open_pointings(const image_session *session, session_predictor *to);
void session_free_pointings(session_predictor *predictor); /* Local. */

/* Predicts what pointings see of a model, rows[num_pol], one after the other, at the
 * rows of an output. Collective. */
tess_status session_predict_pointings(const image_session *session, int64_t interval,
                                      int64_t channel, const tess_rows *rows,
                                      image_predictions *predictions);

/* ---- session_facets.c ---- */

void session_solutions_free(session_solutions *names); /* Local. */

/* What gets the roots of responses when images of an output are made: of facets with
 * gains, or the beam of a mosaic; NULL: all roots are 1. Local. */
imager_product *session_roots(const image_session *session, session_output *output);
void session_forget_roots(session_output *output); /* Local. */

/* As image_session_response(), of output k. Collective. */
tess_status session_take_roots(image_session *session, int64_t k, double *response);

#endif
