/** @file clean_ops.h  (private to clean/)
 *  What a backend does for a minor loop. The order of work (clean_minor.c) sees peaks,
 *  components and thresholds; images, spectra and lists of candidates are the
 * backend's, in memory of its own. It gets the caller's rows as they are, and takes
 * views of those that do not live where it computes.
 */
#ifndef TESS_CLEAN_OPS_H
#define TESS_CLEAN_OPS_H

#include <math.h>

#include "clean_borders.h"
#include "clean_components.h"
#include "clean_gaussian.h"
#include "clean_join.h"
#include "tess_clean.h"

/** What does not change during the life of an object; outlives the backend's memory. */
typedef struct clean_setup {
    tess_comm *comm;
    tess_clean_images
        images; /**< images that are cleaned, after channels have been averaged */
    tess_clean_opts opts;
    clean_join join;
    clean_borders borders; /**< between places; zeroed unless these have gains */
    int num_scales;
    double scale_px[TESS_CLEAN_MOST_SCALES], bias[TESS_CLEAN_MOST_SCALES];
    int64_t border_x, border_y; /**< pixels without components at each edge */
} clean_setup;

/** Whether there are several scales, or one that is not a point. Local. */
static inline bool clean_is_multiscale(const clean_setup *setup)
{
    return setup->num_scales > 1 || setup->scale_px[0] > 0;
}

/** Number of places that have PSFs of their own, 1 or more. Local. */
static inline int clean_num_psf_places(const clean_setup *setup)
{
    const tess_clean_places *places = &setup->images.places;
    return places->num > 1 && places->have_psfs ? places->num : 1;
}

/** Whether places see less of components of one another: see clean_borders.h. Local. */
static inline bool clean_has_borders(const clean_setup *setup)
{
    return setup->images.places.num > 1 && setup->images.places.have_gains;
}

/** The place of a component. Local. */

static inline int clean_place_of(const clean_setup *setup, int64_t index)
{
    const tess_clean_places *places = &setup->images.places;
    return places->num > 1 ? places->of(places->context, index) : 0;
}

/** The place whose PSFs components of a place have. Local. */
static inline int clean_psf_place(const clean_setup *setup, int place)
{
    return setup->images.places.have_psfs ? place : 0;
}

/** The pixels that may have components of a scale: [first, end) of columns and rows,
 * within the user's borders and those of the scale. Local. */
void clean_inside(const clean_setup *setup, int scale, int64_t x_range[2],
                  int64_t y_range[2]);

/** Padding that transforms need beside the image and the PSF, because kernels reach
 *  beyond the border that a scale keeps. Local. */
int64_t clean_reach(const clean_setup *setup);

/** How far the PSF of a scale is needed to each side of its centre [pixels]: as far as
 *  candidates of the scale can lie apart, and as far as it reaches. Local. */
void clean_window_half(const clean_setup *setup, int scale, int64_t *half_x,
                       int64_t *half_y);

/** The best pixel. Its value is multiplied by the local factor, and not by the bias. */
typedef struct clean_peak {
    double value;  /**< signed; 0 without a pixel */
    int64_t index; /**< y·nx + x; −1: no pixel may have components */
} clean_peak;

/** Whether a peak is larger than another, or as large and at an earlier pixel; any peak
 *  is better than none. Local. */
static inline bool clean_peak_is_better(const clean_peak *one, const clean_peak *other)
{
    const double a = fabs(one->value), b = fabs(other->value);
    if (one->index < 0 || other->index < 0) return one->index > other->index;
    return a > b || (a == b && one->index < other->index);
}

/** What the backend needs for a minor loop. */
typedef struct clean_begin {
    const tess_rows *residual; /**< [num_images] the caller's */
    const tess_rows *mask;     /**< the user's mask, or NULL */
    const uint32_t *found; /**< rows of the automatic mask where it holds, or NULL */
    bool local_rms;
} clean_begin;

/** Noise of the image in which pixels are searched. */
typedef struct clean_noise {
    double sigma; /**< 1.4826 · MAD, or the least local one */
    double
        median; /**< median, from which thresholds count; 0 for searches with signs */
} clean_noise;

/** A sub-minor loop. */
typedef struct clean_loop {
    int scale;
    double list_from; /**< least |value| of candidates, without bias */
    double until;     /**< the loop ends at a peak of this or less, without bias */
    double gain;      /**< gain of a component: gain / (PSF ∗ K)(0) of the mean PSF */
    double diverged;  /**< a peak above it ends the loop, without bias */
    int64_t most;     /**< largest number of iterations */
    void (*progress)(void *context, int64_t iterations, double peak); /**< or NULL */
    void *context;
    /* results */
    int64_t iterations;
    clean_peak peak; /**< best candidate of the list at the end */
    double seconds;
} clean_loop;

typedef struct clean_work clean_work; /* the backend's memory */

/** Functions that are Collective unless they say Local. */
struct tess_clean_ops {
    const char *name;
    /** Whether loops of this setup can't run here; `text` says why. NULL: they can.
     *  Local. */
    bool (*lacks)(const clean_setup *setup, char *text, int size);
    tess_status (*create)(const clean_setup *setup, clean_work **work);
    void (*destroy)(clean_work *work);
    /** `number` is place · num_images + image. */
    tess_status (*set_psf)(clean_work *work, int number, const tess_rows *psf);
    /** (PSF ∗ K)(0) of the mean PSF over images that are searched, for each scale.
     *  Local. */
    void (*psf_peaks)(const clean_work *work, double *peak);
    /** (PSF ∗ K ∗ K)(0) of the same mean, for each scale, after begin(). A
     * device does it by itself, processors of all ranks together. */
    tess_status (*psf_squares)(clean_work *work, double *square);
    /** Take the residual images, and measure the noise of their linear mean, or of the
     * roots or squares by which pixels are chosen. */
    tess_status (*begin)(clean_work *work, const clean_begin *begin,
                         clean_noise *noise);
    /** Measure the active scales, which ranks share, and keep the image of the best one
     * where it was measured; measure() then tells the peaks, and keep() does nothing.
     * NULL, or nothing where ranks do not share scales. */
    tess_status (*share_scales)(clean_work *work, const uint8_t *active);
    /** Find the peak of the residual at a scale. */
    tess_status (*measure)(clean_work *work, int scale, clean_peak *peak);
    /** Keep the image of the scale that was measured last, for the sub-minor loop.
     * Local. */
    void (*keep)(clean_work *work);
    /** Count the pixels of the kept scale with |value| >= `from`, over all ranks. */
    tess_status (*count)(clean_work *work, int scale, double from, int64_t *pixels);
    /** Run the sub-minor loop on the kept image, by the algorithm of the options;
     * components are appended to `found`. */
    tess_status (*loop)(clean_work *work, clean_loop *loop, clean_components *found);
    /** Subtract components of a scale from the residual; sorts and merges them. */
    tess_status (*subtract)(clean_work *work, int scale, clean_components *merged);
    /** Give the residual's rows to the caller. NaN pixels stay as they are; `rms` is
     * that of the mean over the others. */
    tess_status (*finish)(clean_work *work, const tess_rows *residual, double *rms);
    /** Add components of all scales, merged[num_scales], to rows of the models,
     *  model[merged->num_images]. Local. */
    tess_status (*add)(clean_work *work, const clean_components *merged,
                       const tess_rows *model);
    /** Number and time of the transforms so far. Local. */
    void (*spent)(const clean_work *work, double *transforms, double *seconds);
    /** Memory that an object would take, as tess_clean_bytes. Local. */
    void (*bytes)(const clean_setup *setup, int num_ranks, double *rank_bytes,
                  double *node_bytes);
    /** Memory of a device that it would take; NULL: none. Local. */
    double (*device_bytes)(const clean_setup *setup);
    /** Do what tess_clean_restore() does, on a device. `*done` becomes false if it has
     * no room for that. NULL: processors do it. */
    tess_status (*restore)(tess_comm *comm, const tess_clean_opts *opts,
                           const clean_exponent *beam, const tess_rows *model,
                           const tess_rows *residual, const tess_rows *image,
                           bool *done);
};

#endif
