/** @file session_private.h  (private to app/imager/run/session/)
 *  What a session holds, and the functions that its files share.
 */
#ifndef TESS_SESSION_PRIVATE_H
#define TESS_SESSION_PRIVATE_H

#include "image_facets.h"
#include "image_run.h"
#include "sample_sets.h"
#include "session_predict.h"
#include "tess_imager_session.h"
#include "visset.h"

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

/* ---- session_facets.c ---- */

void session_solutions_free(session_solutions *names); /* Local. */

/* What gets the roots of responses when images of an output are made: of facets with
 * gains, or the beam of a mosaic; NULL: all roots are 1. Local. */
imager_product *session_roots(const image_session *session, session_output *output);
void session_forget_roots(session_output *output); /* Local. */

/* As image_session_response(), of output k. Collective. */
tess_status session_take_roots(image_session *session, int64_t k, double *response);

#endif
