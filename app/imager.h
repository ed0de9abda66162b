/** @file imager.h  (private to app/)
 *  What the parts of the imager share: tess_imager.c (order of work), imager_plan.c (what
 *  the data need), imager_run.c (one image from samples), imager_model.c (prediction),
 *  imager_output.c (files).
 */
#ifndef TESS_IMAGER_PRIVATE_H
#define TESS_IMAGER_PRIVATE_H

#include "exchange.h"
#include "source.h"
#include "steps.h"
#include "tess_beam.h"
#include "tess_fits.h"
#include "tess_grid.h"
#include "tess_imager.h"
#include "tess_weight.h"

/** Extent of the visibilities that one image is made of, over all ranks. */
typedef struct imager_extent {
    int64_t num_vis;
    double w_min_lambda, w_max_lambda; /* of |w| */
    double uvw_max_lambda;             /* longest baseline */
    double freq_sum, freq_min, freq_max;
} imager_extent;

/** Samples of one image, as a sequence of sets: one set when they fit in memory. */
typedef struct imager_data {
    tess_source *source;
    tess_samples cached;      /* all of them, when `in_memory` */
    tess_samples block;       /* the current block otherwise */
    double *row_time;         /* [rows] of the cached samples, or NULL */
    bool in_memory;
    int64_t num_sets;         /* the same on all ranks */
    const tess_density *density; /* weights that are still to be applied, or NULL */
    int threads;
    tess_profile *profile;
} imager_data;

/** The k-th set of samples, weights applied. Sets must be asked for in order. Local. */
tess_status imager_data_get(imager_data *data, int64_t k, bool count,
                            tess_samples **samples);

/** Everything between samples and images for one plan. */
typedef struct imager_job {
    tess_comm *comm;
    const tess_layout *layout;
    const tess_gridding *gridding;
    tess_geom geom;
    int num_pol, num_images;   /* grids: polarisations, and PSFs */
    int64_t rank_bytes;        /* memory this rank may use */
    tess_profile *profile;
    imager_extent extent;
    const tess_backend *backend;
    int num_groups, fft_ranks; /* Pw and F */
    tess_grid_plan *plan;
    tess_partition *partition;
    tess_planes *planes;
    tess_steps *steps;
} imager_job;

/** Memory that this rank may use [bytes]. Collective. */
tess_status imager_rank_bytes(tess_comm *comm, const tess_layout *layout, int64_t *bytes);

/** Extent of one set of samples, added to `extent`. Ignored samples do not count when
 *  `skip_ignored`. Local. */
void imager_extent_add(const tess_samples *samples, const double *freq_hz,
                       bool skip_ignored, int threads, imager_extent *extent);
imager_extent imager_extent_empty(void);
tess_status imager_extent_sum(tess_comm *comm, imager_extent *extent);

/** Gridding plan for the extent. TESS_ERR_ALLOC with the memory it would need when it
 *  cannot fit. Collective. */
tess_status imager_job_plan(imager_job *job);

/** This rank's bricks and their counts; with the data in memory, also the sorted runs.
 *  Local. */
tess_status imager_count_bricks(const imager_job *job, imager_data *data,
                                tess_brick_list *bricks);

/** Partition the bricks of the sorted list (this rank's) and set up planes and steps.
 *  Collective. */
tess_status imager_job_partition(imager_job *job, const tess_brick_list *bricks,
                                 bool forward);
void imager_job_free(imager_job *job); /* Collective. */

/** Log (rank 0) and keep in the profile what was planned. */
void imager_job_log(const imager_job *job);

/** Fill samples->vis, sent and returned over the ranks. The model images must be set.
 *  Collective. */
tess_status imager_job_predict(imager_job *job, tess_samples *samples,
                               const tess_brick_list *runs);

/** A model image to predict from. */
typedef struct imager_model {
    tess_fits_model fits;
    tess_geom geom;            /* with the reference pixel in the middle */
    int64_t offset_x, offset_y; /* of the file's first pixel in that geometry */
    int num_stokes;
    int stokes_index[4];       /* plane of I, Q, U, V in the file, or -1 */
    int stokes[4];             /* codes 1..4 of the grids */
} imager_model;

/** Open a model and check it against the phase centre and, when `scale_rad` is not 0,
 *  against the image's pixels. Local. */
tess_status imager_model_open(const char *path, double ra_rad, double dec_rad,
                              double scale_rad, imager_model *model);

/** Predict the Stokes visibilities of a model at the samples' positions: samples->num_pol
 *  is model->num_stokes. Collective. */
tess_status imager_model_predict(tess_comm *comm, const imager_model *model,
                                 const tess_gridding *gridding, const tess_layout *layout,
                                 tess_profile *profile, tess_samples *samples);

/** Subtract a model from samples of these polarisations. Collective. */
tess_status imager_model_subtract(tess_comm *comm, const imager_model *model,
                                  const tess_gridding *gridding, const tess_layout *layout,
                                  tess_profile *profile, const tess_pol *pol,
                                  tess_samples *samples);

/** Rows of a finished image on this rank. */
typedef struct imager_rows {
    int64_t row_first, num_rows, nx;
    double *value;             /* [num_rows][nx]; owned */
} imager_rows;

/** One image (dirty or PSF) of one polarisation. */
typedef struct imager_product {
    imager_rows rows;
    double sum_weights;
} imager_product;

/** Make the images of one output: products[num_pol] dirty, then [num_weight] PSFs, in
 *  the order of the samples' grids; extent of the data. Collective. */
tess_status imager_run(imager_job *job, imager_data *data, bool psf,
                       imager_product *product, const char *dump_stages);

/** Where products go. */
typedef struct imager_output {
    tess_comm *comm;
    const tess_image_opts *opts;
    const tess_source_info *info;
    const tess_pol *pol;
    int num_pol;
    tess_profile *profile;
} imager_output;

/** Check that all files of the run can be written. Collective. */
tess_status imager_output_check(const imager_output *output);

/** Write the products of an output channel (-1: MFS) and interval. `num_psf` of them are
 *  PSFs. Collective. */
tess_status imager_output_write(const imager_output *output, int64_t interval,
                                int64_t channel, const imager_product *product,
                                int num_psf, const imager_extent *extent);

/** Write an image of a stage into the --dump-stages folder. Collective. */
tess_status imager_dump(tess_comm *comm, const char *folder, const char *stage, int image,
                        const tess_geom *geom, const imager_rows *rows);

void imager_rows_free(imager_rows *rows);

#endif
