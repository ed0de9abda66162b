/** @file imager.h  (private to app/)
 *  What the parts of the imager share: tess_imager.c (order of work), imager_outputs.c
 *  (which samples make which image), imager_plan.c (what the data need), imager_data.c
 *  (samples, set after set), imager_run.c (one image from them), imager_passes.c
 * (samples that do not fit), imager_window.c (brick sums that do not), imager_teams.c
 * (outputs side by side), imager_checkpoint.c, imager_bookmark.c (what of data that are
 *  being read goes into one), imager_model.c (prediction),
 * imager_output.c (files), imager_summary.c (the last lines of the log),
 * imager_estimate.c (for `plan`).
 */
#ifndef TESS_IMAGER_PRIVATE_H
#define TESS_IMAGER_PRIVATE_H

#include "exchange.h"
#include "source.h"
#include "spool.h"
#include "steps.h"
#include "tess_beam.h"
#include "tess_checkpoint.h"
#include "tess_fits.h"
#include "tess_grid.h"
#include "tess_imager.h"
#include "tess_weight.h"

/** Extent of the visibilities that one image is made of, over all ranks. */
typedef struct imager_extent {
    int64_t num_vis;
    double w_min_lambda, w_max_lambda; /* of |w| */
    double w_span_lambda;  /* of several images: the smallest range of |w| of
                              one; < 0: w_max − w_min */
    double uvw_max_lambda; /* longest baseline */
    double freq_sum, freq_min, freq_max;
    double largest_weight; /* natural */
    double largest_vis_jy; /* real or imaginary part of a polarisation, without sign */
} imager_extent;

/** The images of a run, output channels × intervals, and what each is made of. Output
 *  channel c of interval t has number t · num_channels + c. */
typedef struct imager_outputs {
    int64_t num_channels, num_intervals, num; /* num: all of them */
    int64_t num_chan;                         /* channels of the table */
    int32_t *chan_output;                     /* [num_chan] output channel of each */
    double *interval_begin;                   /* [num_intervals + 1] MJD s */
    double *interval_span; /* [num_intervals][2] start of the first integration and end
                              of the last, MJD s */
    imager_extent *extent; /* [num] of the good samples, in the end over all ranks */
    int64_t *num_held;     /* [num] samples, good or not, of this rank's slice */
    int64_t *row_first, *row_end; /* [num_intervals] rows seen are within this range */
    int64_t rows_seen;
} imager_outputs;

/** Deal channels and times to the outputs. TESS_ERR_USAGE when there are too few of
 *  them. Collective. */
tess_status imager_outputs_create(tess_comm *comm, tess_source *source,
                                  const tess_image_opts *opts, imager_outputs *outputs);
void imager_outputs_free(imager_outputs *outputs); /* Local. */

/** Survey: add what these rows, the next of this rank's slice, bring to each output.
 *  `row_time` may be NULL for a single interval. Local. */
tess_status imager_outputs_add(imager_outputs *outputs, const tess_samples *samples,
                               const double *row_time, const double *freq_hz,
                               int threads);

/** End of the survey: sum extents over ranks. Collective. */
tess_status imager_outputs_sum(tess_comm *comm, imager_outputs *outputs);

/** Warn, on one rank, of outputs that have no visibilities; nothing when all have.
 *  After imager_outputs_sum. Local. */
void imager_outputs_warn(const imager_outputs *outputs);

/** What a plan that serves all outputs must cover; num_vis is the mean of the outputs
 *  that have any. Local. */
imager_extent imager_outputs_union(const imager_outputs *outputs);

/** Append the rows and channels of one output to `out`, from all rows of the survey
 *  with their times, or, without times, from rows that are all of its interval.
 *  Local. */
tess_status imager_outputs_choose(const imager_outputs *outputs, int64_t output,
                                  const tess_samples *from, const double *row_time,
                                  tess_samples *out);

/** Centre and width [Hz] of the band from the lowest to the highest edge of an output
 *  channel's channels, whether they have data or not; of all channels for -1. Local. */
void imager_outputs_band(const imager_outputs *outputs, const tess_source_info *info,
                         int64_t channel, double *centre_hz, double *width_hz);

/** Which channels of the table belong to an output channel, wanted[num_chan]. Local. */
void imager_outputs_channels(const imager_outputs *outputs, int64_t channel,
                             bool *wanted);

/** Ranks that make outputs side by side: P ranks form `num` teams of neighbours, which
 *  in every round make the outputs from a first one on, team g the g-th. */
typedef struct imager_teams {
    tess_comm *all;  /**< borrowed */
    tess_comm *team; /**< of this rank; owned, NULL while there is one of all */
    int num, members, own;
} imager_teams;

/** What the number of teams depends on. */
typedef struct imager_teams_need {
    const imager_outputs *outputs;
    int64_t first_output;        /**< to be made: those before are done */
    double vis_bytes, row_bytes; /**< of a sample, and of a row, a sample */
    bool kept;                   /**< samples are kept in memory */
    bool possible;               /**< nothing needs all ranks for every output */
    bool checkpoints;            /**< are written */
} imager_teams_need;

struct imager_predictor;

/** Samples of one image, as a sequence of sets: one set when they fit in memory. */
typedef struct imager_data {
    tess_source *source;
    tess_samples cached; /* all of them, when `in_memory` */
    tess_samples block;  /* the current set otherwise */
    bool in_memory;
    double kept_bytes;              /* beside these: samples of all outputs */
    int64_t num_sets;               /* the same on all ranks */
    int64_t next_set;               /* that is read without skipping */
    double largest_set_bytes;       /* of the sets so far, on this rank */
    int64_t set_blocks;             /* blocks of the source in a set */
    tess_spool *spool;              /* keeps sets that have been read, or NULL */
    bool force_scratch;             /* keep the spool, be it faster or not */
    int64_t num_vis;                /* of the image, over all ranks */
    int64_t num_runs;               /* formed by imager_count_bricks, on this rank */
    bool with_planes;               /* which it is to tell of each brick, too */
    double vis_scale, weight_scale; /* powers of two: samples are handed out times
                                       these, so that products of very small numbers
                                       are in range */
    bool is_scaled;                 /* `cached` is */
    const tess_density *density;    /* weights that are still to be applied, or NULL */
    struct imager_predictor *subtract; /* model still to be subtracted, or NULL */
    const tess_pol *pol;               /* polarisations of the samples, for the model */
    int threads;
    tess_profile *profile;
} imager_data;

/** The k-th set of samples, scaled, weights applied, model not yet subtracted. Sets
 * must be asked for in order, from any one on. Local. */
tess_status imager_data_get(imager_data *data, int64_t k, tess_samples **samples);

/** Everything between samples and images for one plan. */
typedef struct imager_job {
    tess_comm *comm;
    const tess_layout *layout;
    const tess_gridding *gridding;
    tess_geom geom;
    bool worst_pixel;        /* plan for prediction (tess_grid_opts) */
    int num_pol, num_images; /* grids: polarisations, and PSFs */
    int64_t rank_bytes;      /* memory this rank may use */
    tess_profile *profile;
    imager_extent extent; /* of all that the plan serves */
    int64_t num_outputs;  /* sets of images that share the plan; 0: one */
    double mean_bytes;    /* of this rank's share of means over their channels */
    int num_teams;        /* each of which makes so many; 0: one */
    const tess_backend *backend;
    tess_comm *alone; /* not NULL: every rank makes whole images of the samples it
                         has, which are summed in the end (ingest.h); of this rank
                         only, owned by whoever set it */
    struct tess_device_comm *devices;     /* connects their GPUs, or NULL; likewise */
    struct imager_checkpoint *checkpoint; /* or NULL */
    bool logged, measured; /* the plan, and the error of w-projection, have been told */
    bool need_told;        /* so has memory that a rank needs beyond its share */
    tess_projection_error error; /* of this rank's samples */
    int num_groups, fft_ranks;   /* Pw and F */
    tess_costs costs;            /* what was planned by, when measured; else nothing */
    tess_grid_plan *plan;
    tess_partition *partition;
    tess_planes *planes;
    tess_steps *steps;
} imager_job;

/** The ranks that work on one set of images together. */
tess_comm *imager_team(const imager_job *job);

/** The backend of this name on all ranks, with its device taken. "auto" is the cpu as
 *  soon as one rank has no device. Collective. */
tess_status imager_backend(tess_comm *comm, const char *name,
                           const tess_backend **backend);

/** Log which one was taken for that name and what it computes on. Local. */
void imager_backend_log(const char *name, const tess_backend *backend);

/** Begin to measure energy when the profile wants it: of each GPU by one of its ranks,
 *  of a node's processors by its first. Collective. */
tess_status imager_meter(tess_comm *comm, const tess_backend *backend,
                         tess_profile *profile);

/** Memory that this rank may use [bytes]. Collective. */
tess_status imager_rank_bytes(tess_comm *comm, const tess_layout *layout,
                              int64_t *bytes);

/** Extent of one set of samples, added to `extent`. Ignored samples do not count when
 *  `skip_ignored`; else, for prediction, samples have no values, whose largest is not
 *  looked for. Local. */
void imager_extent_add(const tess_samples *samples, const double *freq_hz,
                       bool skip_ignored, int threads, imager_extent *extent);
imager_extent imager_extent_empty(void);

/** As imager_extent_add, for channels [begin, end) of one row. Local. */
void imager_extent_add_row(const tess_samples *samples, const double *freq_hz,
                           bool skip_ignored, int64_t row, int32_t begin, int32_t end,
                           imager_extent *extent);
void imager_extent_join(imager_extent *total, const imager_extent *extent);

/** Sum extents [count] over ranks. Collective. */
tess_status imager_extent_sum(tess_comm *comm, imager_extent *extent, int64_t count);

/** Gridding plan for the extent, once for all outputs. TESS_ERR_ALLOC with the memory
 *  it would need when it cannot fit. Collective. */
tess_status imager_job_plan(imager_job *job);

/** Anew, how the ranks of job->comm share w-planes and their transforms. Errors as of
 *  imager_job_plan. Local. */
tess_status imager_job_share(imager_job *job);

/** How so many ranks would; and what images and a plane then take on one of them, with
 *  finished rows [bytes]. Local. */
void imager_shares(const imager_job *job, int ranks, int *num_groups, int *fft_ranks);
double imager_team_bytes(const imager_job *job, int ranks);

/** Have the plan's costs be measured ones from here on, for an estimate, whatever it
 * was made by; nothing when the layout does not want that. Collective. */
tess_status imager_job_calibrate(imager_job *job);

/** Threads for sorting: no more than memory allows to be of use, where that is known.
 */
int imager_sort_threads(const imager_job *job);

/** Sort samples to bricks with `in_place`, for the backend to work on as they are; else
 *  only count them by brick, as they will be sent. Local. */
tess_status imager_sort(const imager_job *job, const tess_samples *samples,
                        bool skip_ignored, bool in_place, tess_brick_list *bricks);

/** What images and a plane take on a rank, pieces excepted [bytes]. Local. */
double imager_planes_bytes(const imager_job *job);

/** What a rank holds from the plan to the end of the run: the program and its
 * libraries, tables of w-kernels, and means over channels [bytes]. Local. */
double imager_base_bytes(const imager_job *job);

/** Images, and the rows that they become one after the other [bytes]. Local. */
double imager_finishing_bytes(const imager_job *job);

/** Warn, once for a job, when any rank needs more than it may use. Collective. */
tess_status imager_tell_need(imager_job *job, double bytes);

/** Bytes of samples in memory. Local. */
double imager_samples_bytes(const tess_samples *samples);

/** Sums of this rank's bricks: bytes of all planes of a w-window, and of one plane; how
 *  fast new memory for them is got. */
typedef struct imager_sums_size {
    double all, plane, num_vis;
    double touch_bytes_s;
} imager_sums_size;

/** What of it is held at a time with so many planes, 0: with all. Local. */
double imager_window_bytes(const imager_sums_size *size, int planes_at_once);

/** bricks_of_block[num_blocks] of them, with so many visibilities. Local. */
imager_sums_size imager_sums_size_of(const imager_job *job,
                                     const int64_t *bricks_of_block, double num_vis);

/** Add the bricks of each block to bricks_of_block[num_blocks]; returns what
 * visibilities they have. Local. */
double imager_count_blocks(const imager_job *job, const tess_brick_list *bricks,
                           int64_t *bricks_of_block);

/** Seconds that one more set of planes takes: kernel values of so many visibilities,
 * and their products, are worked out again. Local. */
double imager_set_s(const imager_job *job, double num_vis);

/** Of how many planes the sums are held at a time when they may take `room` bytes; 0:
 *  of all. As many as take the least time: each set of planes works out the kernel
 *  values of visibilities again, and needs less new memory. Local. */
int imager_planes_at_once(const imager_job *job, const imager_sums_size *size,
                          double room);

/** Add to the planes that a brick touches. Local. */
void imager_join_planes(tess_plane_span *planes, tess_plane_span more);

/** Room for the counts of so many bricks in an empty list. TESS_ERR_ALLOC. Local. */
tess_status imager_make_counts(int64_t num_bricks, bool with_planes,
                               tess_brick_list *list);

/** This rank's bricks with what all ranks have counted in them, whole ones by their
 * first owner; free it with tess_brick_list_free(). Collective. */
tess_status imager_owned_bricks(const imager_job *job, const tess_brick_list *counted,
                                tess_brick_list *owned);

/** How data that do not fit into memory are gone over: for each of some windows of
 *  w-planes, in passes that take a share of the bricks each. */
typedef struct imager_passes {
    int planes_at_once; /**< whose sums are held; 0: all that a w-window touches */
    int num_windows;    /**< of planes; 1 when planes_at_once is 0 */
    int *num_shares;    /**< [num_windows] passes for each; owned */
    int num_reads;      /**< passes in all */
    double sums_bytes, sample_bytes; /**< at a time, at most, on a rank */
    bool too_large;                  /**< they do not fit all the same */
} imager_passes;

/** What a rank holds in every pass beside its samples and sums, when samples that are
 *  kept or sent take so much, and blocks of the file are read ahead. Local. */
double imager_held_bytes(const imager_job *job, double sample_bytes,
                         double block_bytes);

/** The fewest passes with which samples of so many bytes, and brick sums, fit beside
 *  what a rank holds otherwise, and none has more than `most_vis` samples on a rank.
 *  Free with imager_passes_free(). Collective. */
tess_status imager_passes_choose(const imager_job *job, const tess_brick_list *owned,
                                 double vis_bytes, double other_bytes, int64_t most_vis,
                                 imager_passes *passes);
void imager_passes_free(imager_passes *passes); /**< Local. */

/** Planes of a window; count 0: all. Local. */
tess_plane_window imager_passes_window(const imager_job *job,
                                       const imager_passes *passes, int window);

/** The same for this rank's bricks, agreed on with the others, when it holds
 *  `other_bytes` beside sums; 0 where steps.h cannot go plane by plane. Collective. */
tess_status imager_plane_window(const imager_job *job, double other_bytes,
                                const tess_brick_list *bricks, int *planes_at_once);

/** Tell (imager_tell_need) of what this rank needs with its sums of so many planes.
 *  Collective. */
tess_status imager_tell_sums(imager_job *job, const tess_brick_list *bricks,
                             int planes_at_once, double other_bytes);

/** Parts of a brick with so many visibilities, each of which has sums of its own: one,
 *  but with --reproducible (imager_part_vis). Local. */
int64_t imager_brick_parts(const imager_job *job, int64_t num_vis);

/** This rank's bricks and their counts; with the data in memory, sorted as imager_sort
 *  does, and this is local; else collective. */
tess_status imager_count_bricks(const imager_job *job, imager_data *data, bool in_place,
                                tess_brick_list *bricks);

/** Partition the bricks of the sorted list (this rank's) and make the steps; set up the
 *  planes, or clear them when an earlier output has used them (a model stays).
 *  Collective. */
tess_status imager_job_partition(imager_job *job, const tess_brick_list *bricks,
                                 bool forward);
void imager_job_free(imager_job *job); /* Collective. */

/** With --reproducible, the samples of a part of a brick that is summed alone, and of
 *  which several ranks may share a brick: all of it where the backend sorts them, and
 *  cuts bricks itself. Local. */
int64_t imager_part_vis(const imager_job *job);

/** Add the error of w-projection at some of these samples (tess_projection_measure) to
 *  the job's. Nothing for other plans. Local. */
tess_status imager_job_measure(imager_job *job, const tess_samples *samples,
                               bool weighted);

/** Sum it over ranks, once for a plan; log it, and keep it in the profile.
 *  TESS_ERR_USAGE when it is too large (tess_projection_accept). Collective. */
tess_status imager_job_tell_error(imager_job *job);

/** Log (rank 0, once) and keep in the profile what was planned. */
void imager_job_log(imager_job *job);

/** After the model images were set, by tess_planes_image: correct them where the
 * backend works, if it wants them uncorrected (tess_grid_ops). Local. */
tess_status imager_place_model(const imager_job *job);

/** Fill samples->vis, sent and returned over the ranks. The model images must be set.
 *  Collective. */
tess_status imager_job_predict(imager_job *job, tess_samples *samples,
                               const tess_brick_list *runs);

/** What a rank reads and keeps, for estimates. */
typedef struct imager_workload {
    int64_t num_vis;  /* of its slice, ignored ones too */
    int64_t num_runs; /* they form, see tess_samples.h */
    int64_t num_outputs;
    int num_reads;                 /* of its slice */
    double file_bytes, read_bytes; /* of its slice, and of a block, as read */
    double block_bytes;            /* of the samples of a set of blocks */
    double sample_bytes;           /* of its slice when it is kept */
    double owned_bytes;            /* of the samples that it grids at a time */
    double vis_bytes;              /* of a sample */
    bool cached;                   /* samples are kept */
    bool scratch;                  /* or else are in a file when read again */
    double copy_bytes; /* of several outputs: of the samples of one, which its team
                          has been sent, or which are copied */
    double deal_s;     /* for sending those and, with output channels, means */
    int num_densities; /* by which samples are weighted; 0: naturally */
    tess_costs costs;  /* that the run goes by; the plan's are its machine's */
} imager_workload;

/** What a run will need. Seconds are for idle cores of the kind that the rates in
 *  imager_estimate.c are from. */
typedef struct imager_estimate {
    double seconds[TESS_NUM_STAGES], total_s;
    double reading, samples, sums, planes; /* bytes of a rank: file buffers, samples and
                                  runs, brick sums, planes with images */
    double peak;                           /* most of it at a time, with the program */
} imager_estimate;

/** Of a partitioned job with this rank's bricks; the largest of all ranks.
 *  Collective. */
tess_status imager_estimate_make(const imager_job *job, const imager_workload *work,
                                 const tess_brick_list *bricks,
                                 imager_estimate *estimate);

/** Seconds that an output of so many samples, of vis_bytes each, would take on a team
 * of this many ranks, and what having several teams adds in all. Local. */
double imager_estimate_output(const imager_job *job, int ranks, int64_t num_vis,
                              double vis_bytes);
double imager_estimate_deal(const imager_job *job, const imager_outputs *outputs,
                            int ranks, double vis_bytes);

/** A model image to predict from. */
typedef struct imager_model {
    tess_fits_model fits;
    tess_geom geom; /* of its pixels, where its header has them */
    int num_stokes;
    int stokes_index[4]; /* plane of I, Q, U, V in the file, or -1 */
    int stokes[4];       /* codes 1..4 of the grids */
    bool per_beam;       /* its header says Jy/beam */
    bool is_checked;     /* what its pixels add up to, and how many are blank */
    double scale; /* a power of two: visibilities are predicted of the model times
                     this, so that products of very small pixels are in range */
} imager_model;

/** Open the model of a file or, where `path` is NULL, of pixels in memory, and check it
 *  against the phase centre and, when `scale_rad` is not 0, against the image's pixels.
 *  Local. */
tess_status imager_model_open(const char *path, const tess_fits_pixels *pixels,
                              double ra_rad, double dec_rad, double scale_rad,
                              imager_model *model);

/** Prediction from a model for one set of samples after the other. Plan, FFT plans and
 *  the corrected model are kept as long as they serve the next set too. */
typedef struct imager_predictor {
    imager_model model;
    imager_job job;
} imager_predictor;

/** A predictor for a model that is open. Nothing is planned yet. Collective. */
tess_status imager_predictor_create(tess_comm *comm, const imager_model *model,
                                    const tess_gridding *gridding,
                                    const tess_layout *layout, tess_profile *profile,
                                    imager_predictor *predictor);
void imager_predictor_free(imager_predictor *predictor); /* Collective. */

/** Predict the Stokes visibilities of the model, times model.scale, at the samples'
 *  positions: samples->num_pol is model.num_stokes. Collective. */
tess_status imager_predictor_run(imager_predictor *predictor, tess_samples *samples);

/** Subtract the model, times `vis_scale`, from samples of these polarisations.
 *  Collective. */
tess_status imager_predictor_subtract(imager_predictor *predictor, const tess_pol *pol,
                                      double vis_scale, tess_samples *samples);

/** Rows of a finished image on this rank. */
typedef struct imager_rows {
    int64_t row_first, num_rows, nx;
    bool is_double; /**< the plan's precision; of means and of nothing, true */
    void *value;    /**< [num_rows][nx] double or float; owned */
} imager_rows;

/** Pixel k of all rows. */
static inline double imager_pixel(const imager_rows *rows, int64_t k)
{
    return rows->is_double ? ((const double *)rows->value)[k]
                           : (double)((const float *)rows->value)[k];
}

/** Pixels [first, first + count) in double precision. */
void imager_pixels(const imager_rows *rows, int64_t first, int64_t count, double *out);

/** Rows of zeros, in double precision. TESS_ERR_ALLOC. Local. */
tess_status imager_rows_zero(int64_t row_first, int64_t num_rows, int64_t nx,
                             imager_rows *rows);

/** Make every pixel NaN: an image without weights is undefined, not zero. Local. */
void imager_rows_blank(const imager_rows *rows);

/** One image (dirty or PSF) of one polarisation. */
typedef struct imager_product {
    imager_rows rows;
    double sum_weights;
    double variance; /**< Σ W²/w with statistical weights w; of PSFs 0, NAN: unknown */
} imager_product;

/** Number of teams for the planned job, whose communicator has all ranks: forced, or
 *  the fastest that memory allows. TESS_ERR_USAGE for a forced one that cannot be.
 *  Local, the same on all ranks. */
tess_status imager_teams_choose(const imager_job *job, const imager_teams_need *need,
                                int *num);

/** Form `num` teams, a divisor of the ranks. Collective. */
tess_status imager_teams_form(tess_comm *comm, int num, imager_teams *teams);
void imager_teams_free(imager_teams *teams); /**< Collective in the team. */

/** Send samples of the round from `first_output` on to the teams that make them; the
 *  team's own come in `to`, in the order of the file on its ranks. `from` is freed in
 *  the last round. Collective. */
tess_status imager_teams_deal(const imager_teams *teams, const imager_outputs *outputs,
                              int64_t first_output, tess_samples *from,
                              const double *row_time, tess_samples *to);

/** Rows of means over channels that a rank keeps. Local. */
void imager_teams_mean_rows(const imager_teams *teams, int rank, int64_t ny,
                            int64_t *row_first, int64_t *num_rows);

/** Images of a round, on the ranks that keep these rows of the mean. */
typedef struct imager_round {
    int num_images;
    void *arrived[4 * TESS_MAX_POL];
    const double *next[4 * TESS_MAX_POL]; /**< what has not been added yet */
    struct rank_rows *told;               /**< [ranks] what each had */
} imager_round;

/** Take in the products of the round; `output` -1: this team has none. Collective. */
tess_status imager_teams_collect(const imager_teams *teams, int64_t output, int64_t ny,
                                 const imager_product *product, int num_images,
                                 imager_round *round);

/** Add the next team's, in order, to the means. Local. */
void imager_round_add(const imager_teams *teams, imager_round *round, int team,
                      imager_product *mean);
void imager_round_free(imager_round *round); /**< Local. */

/** Where --dump-stages puts what the stages of an output made, as images named
 *  STAGE-tINTERVAL-CHANNEL-IMAGE.stage.fits. Samples and sums are in units of the
 * scales of imager_data. */
typedef struct imager_stages {
    tess_comm *comm;
    const char *folder; /**< NULL: nowhere, and all of these do nothing */
    int64_t interval, channel;
} imager_stages;

/** Make the folder, or remove the stages of an earlier run from it; without `overwrite`
 *  such are TESS_ERR_IO. Collective. */
tess_status imager_stages_start(tess_comm *comm, const char *folder, bool overwrite);

/** Write an image of a stage. Collective. */
tess_status imager_stages_write(const imager_stages *to, const char *stage, int image,
                                const tess_geom *geom, const imager_rows *rows);

/** Maps of what is about to be gridded: Σ w and Σ w|V|² of the first polarisation on a
 *  coarse uv-plane, the same for any number of ranks. `*map` stays NULL when nothing is
 *  to be written; free it with tess_free(). Collective. */
tess_status imager_map_create(const imager_stages *to, double **map);

/** Add samples, unless `map` is NULL. Local. */
void imager_map_add(const tess_geom *geom, const tess_samples *samples, double *map);

/** Sum over ranks, and write. Collective. */
tess_status imager_map_write(const imager_stages *to, const tess_geom *geom,
                             double *map);

/** Make the images of one output with the job's plan: products[num_pol] dirty, then
 *  [num_weight] PSFs, in the order of the samples' grids. Collective. */
tess_status imager_run(imager_job *job, imager_data *data, bool psf,
                       imager_product *product, const imager_stages *stages);

/** What is summed over the samples of an output while they are gridded. */
typedef struct imager_sums {
    int num_weight;
    double weight[2 * TESS_MAX_POL];
    struct tess_exact
        *exact;  /**< [num_weight] of the same with --reproducible, or NULL */
    double *map; /**< for --dump-stages, or NULL */
} imager_sums;

/** From the sums of all planes and of the weights to the products, as imager_run; the
 *  scales of the data are undone. Collective. */
tess_status imager_finish(imager_job *job, const imager_data *data,
                          const imager_sums *sums, imager_product *product,
                          const imager_stages *stages);

/** What the survey of the data has found so far, beside imager_outputs. */
typedef struct imager_survey {
    bool weights_differ; /**< the polarisations of some sample have several weights */
    bool summed;         /**< imager_outputs_sum has been called */
} imager_survey;

/** Which samples are on their way: of this window of planes, in this pass for it, from
 *  this set on. */
typedef struct imager_place {
    int64_t window, share, next_set;
} imager_place;

/** What a bookmark has, in the order in which a run comes to it. */
typedef enum imager_section {
    IMAGER_SURVEY,  /**< outputs, and what is counted of the data */
    IMAGER_DENSITY, /**< for weights */
    IMAGER_BRICKS,  /**< counted */
    IMAGER_PASS,    /**< samples that were received, brick sums, sums of weights */
    IMAGER_NUM_SECTIONS
} imager_section;

/** Numbers that tell whether a section is of the same blocks, passes and bricks. The
 *  first is how many blocks or sets there are. */
typedef struct imager_check {
    int64_t number[8];
} imager_check;

/** Which number of a survey's check is that of the rows there are. */
enum { IMAGER_CHECK_ROWS = 4 };

/** How far this rank has come in data that are read in blocks, and what it has made of
 *  them: goes into checkpoints, for as many ranks to continue there. Samples that are
 *  kept in memory are not in it: reading them again takes no longer than reading them
 *  back. Zeros are none; so is NULL where functions say so. What it points to is
 *  borrowed. */
typedef struct imager_bookmark {
    tess_comm *comm;
    bool has[IMAGER_NUM_SECTIONS];
    int64_t next[IMAGER_NUM_SECTIONS]; /**< block or set */
    imager_check check[IMAGER_NUM_SECTIONS];
    int64_t turned;   /**< blocks so far */
    tess_mover *left; /**< what has not been taken up of the run that is continued */
    int64_t left_section; /**< that comes next there */
    imager_survey *survey;
    imager_outputs *outputs;
    tess_profile *profile;
    tess_density *density;
    const tess_grid_plan *plan;
    imager_data *data;
    tess_brick_list *bricks;
    imager_job *job;
    tess_exchange *exchange;
    imager_sums *sums;
    imager_place place;
} imager_bookmark;

void imager_bookmark_start(imager_bookmark *bookmark, tess_comm *comm); /**< Local. */
void imager_bookmark_free(imager_bookmark *bookmark);                   /**< Local. */

/** Open what a checkpoint has for this rank, if it is of as many. Collective. */
tess_status imager_bookmark_open(imager_bookmark *bookmark, const char *folder,
                                 const tess_checkpoint_state *state);

/** From here on the bookmark (but for the survey: or NULL) has this section, made of
 * the objects given; they become what they were where the run was left, if it had come
 * that far with the same numbers, and the next block or set is told: else 0.
 * Collective. */
tess_status imager_bookmark_survey(imager_bookmark *bookmark, const imager_check *check,
                                   imager_survey *survey, imager_outputs *outputs,
                                   tess_profile *profile, int64_t *next_block);
tess_status imager_bookmark_density(imager_bookmark *bookmark,
                                    const imager_check *check, tess_density *density,
                                    int64_t *next_set);
tess_status imager_bookmark_bricks(imager_bookmark *bookmark, const imager_check *check,
                                   const tess_grid_plan *plan, imager_data *data,
                                   tess_brick_list *bricks, int64_t *next_set);
tess_status imager_bookmark_pass(imager_bookmark *bookmark, const imager_check *check,
                                 imager_job *job, tess_exchange *exchange,
                                 imager_sums *sums, imager_place *place);

/** All before this block or set is in the section; NULL is fine. Local. */
void imager_bookmark_at(imager_bookmark *bookmark, imager_section section,
                        int64_t next);

/** This section and those after it are no more; NULL is fine. Local. */
void imager_bookmark_forget(imager_bookmark *bookmark, imager_section from);

/** Whether it has anything; about how many bytes. Local. */
bool imager_bookmark_is_kept(const imager_bookmark *bookmark);
double imager_bookmark_bytes(const imager_bookmark *bookmark);

/** Make it ready to be written. Collective. */
tess_status imager_bookmark_settle(imager_bookmark *bookmark);

/** Write it; of tess_checkpoint_own. Local. */
tess_status imager_bookmark_write(void *bookmark, tess_mover *mover);

/** The checkpoints of a run. */
typedef struct imager_checkpoint {
    tess_comm *comm;
    const tess_checkpoint_opts *opts;
    tess_profile *profile;
    const imager_job *job;
    tess_checkpoint_state state;
    imager_bookmark bookmark;
    int64_t num_turned;         /**< blocks of it when the last one was written */
    bool resumed;               /**< there was one to continue */
    bool sums_wait;             /**< its sums have not been taken yet */
    bool means_wait;            /**< nor its means over channels */
    bool has_worked;            /**< something has been done since the start */
    bool unsaved;               /**< outputs are complete that no checkpoint tells of,
                                     or the last one could not be written */
    bool lacking;               /**< the last one could not be written */
    bool bookmark_lacking;      /**< the last one that was to have it is without it */
    int64_t num_done;           /**< planes done when the last one was written */
    const imager_product *mean; /**< [num_mean] means that have begun; borrowed */
    int num_mean;
    double deadline_s, written_s,
        looked_s;              /**< tess_time_now(): to be at the end by, of
                     the last checkpoint, and of the last look at the clock */
    double longest_s, write_s; /**< time between looks, and of a checkpoint, at most */
    double bytes_s;            /**< at which this rank's were written */
} imager_checkpoint;

/** Make ready to write checkpoints, from SIGUSR1 and SIGTERM on too, or find the one to
 *  continue. Nothing happens without a folder. TESS_ERR_INPUT when there is one of
 *  another run, TESS_ERR_IO. Collective. */
tess_status imager_checkpoint_start(tess_comm *comm, const tess_image_opts *opts,
                                    tess_profile *profile,
                                    imager_checkpoint *checkpoint);

/** Between blocks that are read, with what has become of the last one: saves what is
 * not, and is TESS_ERR_STOPPED, when the run is to end; otherwise what has become of
 * any rank's. Collective, but where there is no folder, or NULL or zeros in place of
 * it: then nothing happens. */
tess_status imager_checkpoint_look(imager_checkpoint *checkpoint, tess_status status);

/** See that the plan is that of the sums there are. Collective. */
tess_status imager_checkpoint_plan(imager_checkpoint *checkpoint,
                                   const imager_job *job);

/** Continue with the sums of the first output that is to be made, and watch its steps.
 *  Collective. */
tess_status imager_checkpoint_begin(imager_checkpoint *checkpoint,
                                    const imager_job *job);

/** Take up these rows of the means over channels that had begun:
 *  mean[state.num_mean]. Local. */
tess_status imager_checkpoint_mean(const imager_checkpoint *checkpoint,
                                   int64_t row_first, int64_t num_rows,
                                   imager_product *mean);

/** So many more outputs are complete, with the means whose last channel is among them.
 *  May end the run with TESS_ERR_STOPPED. Collective. */
tess_status imager_checkpoint_outputs(imager_checkpoint *checkpoint, int64_t count);

/** All is done. Collective. */
void imager_checkpoint_finish(imager_checkpoint *checkpoint);
void imager_checkpoint_free(imager_checkpoint *checkpoint); /**< Local. */

struct imager_summary;

/** Where products go. */
typedef struct imager_output {
    tess_comm *comm;
    const tess_image_opts *opts;
    const tess_source_info *info;
    const imager_outputs *outputs;
    const tess_pol *pol;
    int num_pol;
    tess_profile *profile;
    struct imager_summary *summary; /**< gets what is told of the images in the end */
} imager_output;

/** Check that all files of the run can be written. Collective. */
tess_status imager_output_check(const imager_output *output);

/** Write the products of an output channel (-1: MFS) and interval. `num_psf` of them
 *  are PSFs. Collective. */
tess_status imager_output_write(const imager_output *output, int64_t interval,
                                int64_t channel, const imager_product *product,
                                int num_psf, const imager_extent *extent);

/** Log the names of the files that this has written. Local. */
void imager_output_log(const imager_output *output, int64_t interval, int64_t channel,
                       int num_psf);

/** Names of all images and previews of a run with `num_psf` PSFs of each output, in the
 *  order of intervals, channels, kinds and polarisations. TESS_ERR_ALLOC. Local. */
tess_status imager_output_names(const imager_output *output, int num_psf, char ***names,
                                int64_t *count);
void imager_output_names_free(char **names, int64_t count); /**< Local. */

void imager_rows_free(imager_rows *rows);

#endif
