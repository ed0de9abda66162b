/** @file tess_clean.h
 *  CLEAN of images that are distributed by rows: the minor cycles between two residual
 *  images that a caller makes from the visibilities (Högbom 1974; Clark 1980; Cornwell
 *  2008, arXiv:0806.2228; Offringa & Smirnov 2017, arXiv:1706.06786), and restoring.
 *
 *  Rows of images may live in host memory or on a device (tess_rows.h), with pixels of
 *  any type. They are this rank's slab of each image with all of its columns; else
 *  TESS_ERR_USAGE is returned. The backend takes them where they are.
 *
 *  A rank holds, for P ranks: its rows of the images that the caller gives, 1/P of a
 * few padded spectra (the residual's and the PSF's of each image, the kernels' where a
 *  kernel is not negligible), 1/P of the image at each scale that is measured, and the
 *  list of candidates with its values. The ranks of a node share one copy of the
 * current scale's PSF, convolved twice with the kernel, for each image. A rank sends:
 * its part of a spectrum once for each transform; its candidates once for each
 * sub-minor loop; its best candidate in each iteration where lists are long enough to
 * be divided, and nothing where they are short; its rows of the shared PSF once for
 *  each change of scale.
 *
 *  Components are chosen by (largest |value|, then lowest pixel index) over all ranks.
 *  The sequence of components does not depend on the number of ranks or threads.
 *
 *  Order of calls: create, set_psf for each image, set_mask and state_put where needed,
 *  then minor for each residual image. docs/design/clean.md tells what they do.
 */
#ifndef TESS_CLEAN_H
#define TESS_CLEAN_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_backend.h"
#include "tess_comm.h"
#include "tess_rows.h"
#include "tess_status.h"

typedef struct tess_clean tess_clean;

/** Most scales of a multiscale CLEAN, scale 0 included. */
enum { TESS_CLEAN_MOST_SCALES = 32 };

typedef enum tess_clean_shape {
    TESS_CLEAN_TAPERED_QUADRATIC, /**< ½(1 + cos(2πr/(n+1))) (1 − (r/α)²) */
    TESS_CLEAN_GAUSSIAN           /**< of standard deviation 3α/16 */
} tess_clean_shape;

typedef enum tess_clean_local_rms {
    TESS_CLEAN_GLOBAL_RMS,
    TESS_CLEAN_LOCAL_RMS,         /**< sqrt(Gaussian ∗ residual²) */
    TESS_CLEAN_LOCAL_RMS_WITH_MIN /**< at least .3 × |minimum| within the window */
} tess_clean_local_rms;

/** Most terms of a spectrum. */
enum { TESS_CLEAN_MOST_TERMS = 16 };

/** How a component depends on frequency ν. */
typedef enum tess_clean_spectrum {
    TESS_CLEAN_EACH_CHANNEL,  /**< each channel has its own value */
    TESS_CLEAN_POLYNOMIAL,    /**< Σ a_k (ν/ν0 − 1)^k */
    TESS_CLEAN_LOG_POLYNOMIAL /**< a_0 · 10^(Σ a_k log10(ν/ν0)^k), k >= 1 */
} tess_clean_spectrum;

/** How several images are cleaned together. If all members are 0, peaks are found in
 * the mean of the images. */
typedef struct tess_clean_join {
    int num_pol; /**< number of polarisations; images are [channels][num_pol]; 0 means 1
                  */
    const bool
        *linked; /**< [num_pol] which polarisations are searched for peaks; NULL: all;
                    copied. If several are, the peak is that of sqrt(pol_share · Σ S²)
                    of a channel, averaged over channels */
    double pol_share; /**< 0 means 1 */
    bool is_signed;   /**< such a peak has the sign of the linear mean */
    bool squared; /**< peaks are those of the root of the mean square over channels */
    tess_clean_spectrum
        spectrum; /**< the function that is fitted to the values of each component */
    int num_terms;
    const double *freq_hz; /**< [channels] mean frequencies, needed with a spectrum;
                              copied. Channels without data take the fitted values */
    double nu0_hz; /**< ν0 of the spectrum; 0: the mean of the channels' frequencies by
                      weight */
    int num_cleaned; /**< channels are averaged to this many, which are cleaned; all
                        channels get the fitted values. 0: each channel is cleaned */
} tess_clean_join;

/** The algorithms that find components, CYCLE(name) for each. A backend runs them: of
 *  the cpu backend, cpu_cycle_NAME() is one. docs/manual/clean.md describes them. */
#define TESS_CLEAN_CYCLES(CYCLE) CYCLE(list)

#define TESS_CLEAN_CYCLE_NUMBER(name) TESS_CLEAN_CYCLE_##name,
typedef enum tess_clean_cycle {
    TESS_CLEAN_CYCLES(TESS_CLEAN_CYCLE_NUMBER)
} tess_clean_cycle;
#undef TESS_CLEAN_CYCLE_NUMBER

/** Parts of the images that have PSFs or gains of their own. Zeros: there are none. The
 * backend of processors alone has PSFs of places. */
typedef struct tess_clean_places {
    int num; /**< at most INT16_MAX */
    /** The place in [0, num) of a component at pixel y·nx + x, the same on all ranks.
     * Called by one thread of a rank. Local. */
    int (*of)(void *context, int64_t index);
    bool
        have_psfs; /**< each place has PSFs of its own, else all have that of place 0 */
    bool have_gains; /**< each place has gains of its own, and what follows is given;
                          for tess_clean_bytes() it need not be */
    const double *likeness; /**< [num][num] how much of a component of one place is
                                 seen in the pixels of another one, in proportion to the
                                 PSF: symmetric without negative eigenvalues, and 1 on
                                 the diagonal. Copied */
    /** Find place[num_rows][nx] of the pixels of rows; by threads of its own.
     * TESS_ERR_ALLOC. Local. */
    tess_status (*rows)(void *context, int64_t row_first, int64_t num_rows, int threads,
                        int16_t *place);
    void *context; /**< borrowed */
} tess_clean_places;

/** The images that are cleaned jointly, and this rank's rows of them. Ranks have slabs
 * of consecutive rows in the order of ranks; a rank may have none. */
typedef struct tess_clean_images {
    int64_t nx, ny;
    int64_t row_first, num_rows;
    int num_images; /**< each has a model, a residual and a PSF; 1 unless images are
                       joined */
    const double
        *weight; /**< [num_images] weights >= 0 in the mean in which peaks are found;
                    NULL: all are 1; copied. An image of weight 0 has no data, and gets
                    only components that are fitted to other images */
    tess_clean_join join;
    tess_clean_places places;
    bool averages_are_double; /**< averages of channels are kept in double, not float */
} tess_clean_images;

/** A Gaussian beam: FWHM along both axes [pixels, which are square], and position angle
 *  from North through East [rad]. */
typedef struct tess_clean_beam {
    double major_px, minor_px, angle_rad;
} tess_clean_beam;

/** Grids of which the residual at large scales is made: see clean_grids.h. */
typedef enum tess_clean_grids {
    TESS_CLEAN_OWN_GRIDS,    /**< coarser ones where that pays, in single precision */
    TESS_CLEAN_COARSE_GRIDS, /**< coarser ones wherever they are good enough */
    TESS_CLEAN_FINE_GRIDS    /**< that of the pixels */
} tess_clean_grids;

/** Which scale has the next components: the one of the largest |R ∗ K| · bias, for the
 *  residual R and the scale's kernel K. */
typedef enum tess_clean_scale_rule {
    TESS_CLEAN_BY_BIAS, /**< biases are those of `scale_bias` */
    TESS_CLEAN_BY_FIT /**< bias 1/√(PSF ∗ K ∗ K)(0): a component lowers the weighted sum
                         of squares of the residual visibilities by up to
                         (R ∗ K)² / (PSF ∗ K ∗ K)(0), and by most at this scale */
} tess_clean_scale_rule;

/** Who finds components, and how. */
typedef struct tess_clean_method {
    const tess_clean_ops *ops; /**< functions of a backend; NULL: tess_clean_ops_cpu,
                                    which runs what another backend can't */
    struct tess_device_comm *links; /**< connects the devices of the ranks, in the same
                                       order; or NULL. Borrowed */
    tess_clean_cycle cycle;         /**< zero is the first one of the list */
    int64_t most; /**< iterations of a minor loop; 0: no limit but those of all */
    bool repeats; /**< a single scale, too, has sub-minor loops until its peak is at the
                       threshold, or they have been repeated too often */
    tess_clean_scale_rule scale_rule;
    tess_clean_grids grids;
} tess_clean_method;

/** The noise around each pixel. A number alone behind a semicolon is a default. */
typedef struct tess_clean_local {
    tess_clean_local_rms kind;
    double window_beams; /**< width of the window; 25 */
    double strength;     /**< power of σmin/σ(x) in the search; 1 */
} tess_clean_local;

/** Options of an object. A number alone behind a semicolon is a default. Thresholds are
 * those of |peak| or, with several scales, of the biased peak. */
typedef struct tess_clean_opts {
    double gain;           /**< (0, 1]; .1 */
    double mgain;          /**< (0, 1]; .8 */
    double first_mgain;    /**< mgain of the first major iteration; 0: mgain */
    double threshold_jy;   /**< [Jy/beam]; 0: none */
    double auto_threshold; /**< in σ; 0: none */
    double auto_mask;      /**< in σ; 0: no automatic mask */
    int mask_rounds; /**< the automatic mask is recorded in so many minor loops, if they
                        find components; 1: until one has reached its threshold */
    int64_t niter;   /**< largest number of minor iterations, with those of the run that
                        this one continues */
    bool no_negative, stop_negative;
    double border_percent; /**< share of width and height at each edge where no
                              components may be */

    bool multiscale;
    int num_scales; /**< number of `scale_px`; 0: scales are chosen by the beam */
    const double *scale_px; /**< α [pixels], ascending from >= 0; copied */
    int most_scales;        /**< largest number of scales by the beam; 0: no limit */
    double scale_beam_px;   /**< width of the beam [pixels], which determines scales,
                               their biases and the window of the local rms; 0: the major
                               axis of `beam` */
    double scale_bias;      /**< β in (0, 1]; .6 */
    double scale_gain;      /**< (0, 1]; .2: sub-minor loops end at .8 × the peak */
    tess_clean_shape shape;

    tess_clean_local local;
    tess_clean_beam beam; /**< the beam that was fitted to the PSF */

    bool is_double;  /**< transforms are in double precision (ε below 1e-6) */
    bool repeatable; /**< results have the same bits on any number of ranks and threads
                      */
    int threads;     /**< threads of this rank; 1 */
    tess_clean_method method;
} tess_clean_opts;

extern const tess_clean_ops tess_clean_ops_cpu;

/** Why a minor loop ended. */
typedef enum tess_clean_end {
    TESS_CLEAN_MAJOR_THRESHOLD, /**< the threshold of `mgain`: a new residual image is
                                   due */
    TESS_CLEAN_FINAL_THRESHOLD, /**< the threshold of the options, or that of
                                   auto-masking */
    TESS_CLEAN_LOOPS,    /**< multiscale: the allowed number of sub-minor loops at the
                            major threshold is used up; a new residual image is due */
    TESS_CLEAN_MOST,     /**< `method.most` iterations; a new residual image is due */
    TESS_CLEAN_NITER,    /**< the allowed number of iterations is used up */
    TESS_CLEAN_NEGATIVE, /**< stop_negative is set, and the next component is negative
                          */
    TESS_CLEAN_DIVERGED, /**< a peak has reached 4 × the first; nothing has been changed
                          */
    TESS_CLEAN_NOTHING,  /**< no pixel may have components, or all pixels that may are 0
                          */
    TESS_CLEAN_STOPPED   /**< `look` asked for it; nothing has been changed */
} tess_clean_end;

/** "the major threshold", "the final threshold", …: for logs. Local. */
const char *tess_clean_end_text(tess_clean_end end);

/** What a minor loop has done; the same on all ranks. Values in Jy/beam. */
typedef struct tess_clean_report {
    tess_clean_end end;
    bool again; /**< a new residual image and another minor loop make sense: the end is
                     the major threshold, `loops` or `most`, or auto-masking is over */
    int phase;  /**< phase of this loop: 1, or 2 inside the automatic mask */
    int64_t iterations;       /**< iterations of this loop */
    int64_t total_iterations; /**< iterations of all loops so far */
    int loops;                /**< number of sub-minor loops */
    int num_scales;
    double scale_px[TESS_CLEAN_MOST_SCALES];
    int64_t scale_iterations[TESS_CLEAN_MOST_SCALES];
    double scale_flux_jy[TESS_CLEAN_MOST_SCALES]; /**< flux of this loop's components at
                                                     each scale, summed over images by
                                                     weight */
    double flux_jy;    /**< flux of all components of this loop */
    double peak_start; /**< largest |biased value| where components may be */
    double peak_end;
    int64_t peak_index; /**< y·nx + x of peak_start's pixel; −1: none */
    double sigma;       /**< 1.4826 · MAD at the start: of the mean residual, or of
                             the roots and squares by which pixels are chosen, from
                             whose median thresholds count then */
    double
        rms; /**< rms of the mean residual at the end, over pixels that are not NaN */
    double threshold;       /**< the threshold at which this loop was to end */
    double final_threshold; /**< the final threshold of this phase */
    double transforms; /**< number of transforms of the padded size in one direction;
                          parts of a transform count as parts */
    double transform_s, list_s, total_s; /**< seconds of this rank */
} tess_clean_report;

/** The progress of a loop. */
typedef struct tess_clean_progress {
    int64_t iterations, total_iterations;
    double peak, peak_start, threshold;
    double scale_px; /**< scale of the current sub-minor loop */
} tess_clean_progress;

/** What the caller is told between sub-minor loops. Either may be NULL. */
typedef struct tess_clean_calls {
    void (*progress)(void *context, const tess_clean_progress *progress); /**< Local */
    /** Collective. `*stop`, the same on all ranks: end now, as
     *  TESS_CLEAN_STOPPED. tess_clean_state_get may be called from here, and gives the
     *  state from which the loop goes on. */
    tess_status (*look)(void *context, bool *stop);
    void *context;
} tess_clean_calls;

/** Set the defaults, which are told beside the options; niter is 0. Local. */
void tess_clean_opts_default(tess_clean_opts *opts);

/** The scales [pixels] and biases that an object with these options has, 1 where they
 *  are those of a fit, which PSFs determine; returns their number. Arrays of
 * TESS_CLEAN_MOST_SCALES; either may be NULL. Local. */
int tess_clean_scales(const tess_clean_images *images, const tess_clean_opts *opts,
                      double *scale_px, double *bias);

/** What an object will need beside the caller's arrays. */
typedef struct tess_clean_need {
    const char *backend;
    double rank_bytes;   /**< bytes of this rank */
    double node_bytes;   /**< bytes that the ranks of a node share, per node */
    double device_bytes; /**< bytes of its device, if it has room for all of them */
} tess_clean_need;

/** Find it. Local. */
void tess_clean_bytes(const tess_clean_images *images, const tess_clean_opts *opts,
                      int num_ranks, tess_clean_need *need);

/** Check everything and allocate what does not depend on data. Arguments are copied but
 *  for `comm`, which is borrowed. TESS_ERR_USAGE: a gain or mgain outside (0, 1], a
 *  threshold or border below 0, scales not ascending or too many, rows that do not
 * cover the image. TESS_ERR_ALLOC. Collective. */
tess_status tess_clean_create(tess_comm *comm, const tess_clean_images *images,
                              const tess_clean_opts *opts, tess_clean **clean);
void tess_clean_destroy(tess_clean *clean); /**< NULL is fine. Collective. */

/** Take the PSF of an image, its centre at pixel
 *  (⌊nx/2⌋, ⌊ny/2⌋); NaN counts as 0. The rows may be freed afterwards. To be called
 *  again when the PSF changes. Where channels are averaged, the PSFs of a channel that
 *  is cleaned follow one another, and all are given again. An image of weight 0 needs
 *  none. TESS_ERR_INPUT: its value at the centre is not positive. Collective. */
tess_status tess_clean_set_psf(tess_clean *clean, int image, const tess_rows *psf);

/** The same for components of one place, where these have PSFs of their own; the gain
 * of a component is that of place 0. */
tess_status tess_clean_set_psf_of(tess_clean *clean, int image, int place,
                                  const tess_rows *psf);

/** The user's mask, not 0 where components may be; copied; NULL: everywhere.
 *  TESS_ERR_INPUT: nothing is set in it. Collective. */
tess_status tess_clean_set_mask(tess_clean *clean, const tess_rows *mask);

/** ν0 [Hz] of the spectrum that is fitted; 0: none is. Local. */
double tess_clean_reference_hz(const tess_clean *clean);

/** For single-scale auto-masking of a continued model: its non-zero pixels count as
 *  found. model[num_images]. TESS_ERR_ALLOC. Local. */
tess_status tess_clean_mark_model(tess_clean *clean, const tess_rows *model);

void tess_clean_set_calls(tess_clean *clean,
                          const tess_clean_calls *calls); /**< Local */

/** Components of a scale, merged by pixel. Each is a kernel of the scale's shape at its
 * pixel. */
typedef struct tess_clean_list {
    int64_t count;
    int num_terms;  /**< number of terms of the spectrum; 1 if there is none */
    int64_t *index; /**< [count] y·nx + x, ascending */
    double *term;   /**< [count][num_terms] as told beside tess_clean_spectrum [Jy];
                         without a spectrum the mean over channels by weight */
} tess_clean_list;

/** Keep the components of all minor loops, for tess_clean_components: before the first
 *  one, and before a state is put. TESS_ERR_ALLOC. Local. */
tess_status tess_clean_keep_components(tess_clean *clean);

/** Collect the components of a scale and polarisation that minor loops of this object
 * have added to this rank's rows of the models. Loops before a state that was put
 * count, too. A model that was continued has components beside these. To be freed by
 * tess_clean_list_free. TESS_ERR_USAGE: components are not kept. TESS_ERR_ALLOC. Local.
 */
tess_status tess_clean_components(const tess_clean *clean, int scale, int pol,
                                  tess_clean_list *list);
void tess_clean_list_free(tess_clean_list *list); /**< Local. */

/** Run one minor loop.
 * residual[num_images]: Jy/beam, NaN beyond the horizon. What the model gains,
 * convolved with the PSF, is subtracted in place, unless channels are averaged. The
 * residual of an image of weight 0 is not looked at. model[num_images]: Jy/pixel, in
 * double precision, to which components are added. Pixels that are NaN in the residual
 * get none. Images are untouched when the loop diverged or was stopped, and after a
 * failure. TESS_ERR_USAGE: a PSF is missing. TESS_ERR_RESOURCE: the ranks of a node
 * cannot share memory. Collective. */
tess_status tess_clean_minor(tess_clean *clean, const tess_rows *residual,
                             const tess_rows *model, tess_clean_report *report);

/** What a checkpoint keeps beside the model. */
typedef struct tess_clean_state {
    void *bytes; /**< phase, counts and, inside a loop, its components so far: the same
                      on all ranks, in this machine's byte order */
    int64_t num_bytes;
    uint32_t *found; /**< this rank's rows [num_rows][nx]: bit s is set where
                          auto-masking found a component of scale s; NULL without it */
} tess_clean_state;

/** Fill `state` with copies (tess_clean_state_free). Inside `look` it is the state to
 * go on from with the residual and the model with which tess_clean_minor was called:
 * the components found so far are in it. Local. */
tess_status tess_clean_state_get(const tess_clean *clean, tess_clean_state *state);

/** Go on from a state, before tess_clean_minor, on any number of ranks, with the same
 * images and options. If the state was taken inside a loop, the next tess_clean_minor
 * begins with its components. TESS_ERR_INPUT: the bytes belong to other options or are
 * damaged. Collective. */
tess_status tess_clean_state_put(tess_clean *clean, const tess_clean_state *state);
void tess_clean_state_free(tess_clean_state *state);

/** image := model ∗ beam + residual. The Gaussian has height 1, so that Jy/pixel become
 *  Jy/beam. `residual` and `image` may be the same rows; NaN in the residual stays NaN.
 *  A beam of zero size: the residual alone. TESS_ERR_ALLOC; TESS_ERR_USAGE: the rows
 * are not the same ones of each image, with all columns. Collective. */
tess_status tess_clean_restore(tess_comm *comm, const tess_clean_opts *opts,
                               const tess_clean_beam *beam, const tess_rows *model,
                               const tess_rows *residual, const tess_rows *image);

#endif
