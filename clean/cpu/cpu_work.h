/** @file cpu_work.h  (private to clean/)
 *  The rows and spectra that the cpu backend holds of the images of a minor loop, in
 *  the precision of the transforms.
 *
 *  Files of the backend call only those that stand above them here:
 *
 *      cpu_vector    inner loops          cpu_join      what pixels are chosen by
 *      cpu_work      what is held
 *      cpu_columns   columns of spectra
 *      cpu_layers    images, or sums of them
 *      cpu_grids     images of spectra, large scales by way of coarser grids
 *      cpu_slot      images at a scale, their peaks
 *      cpu_noise, cpu_local_rms           cpu_window    PSFs of a scale
 *      cpu_list      candidates           cpu_spectra   transforms
 *      cpu_loop      the sub-minor loop
 *      cpu_borders   components of places with gains of their own
 *      cpu_backend   all of it, as the order of work calls it (clean_ops.h)
 */
#ifndef TESS_CLEAN_CPU_WORK_H
#define TESS_CLEAN_CPU_WORK_H

#include "clean_ops.h"
#include "cpu_vector.h"
#include "tess_convolve.h"

typedef struct cpu_window cpu_window; /* cpu_window.h */
typedef struct cpu_grids cpu_grids;   /* cpu_grids.h */

/** What images and spectra are held of: see cpu_layers.h. */
typedef struct cpu_layers {
    int count;
    double *basis;   /**< [count][num_images] b_tc; NULL: layers are images */
    double *weights; /**< [count][num_images] w_c b_tc */
    void **residual; /**< [count] spectra of the residuals; with one scale, memory of
                        products */
    int num_psf;
    void **psf; /**< with `basis`: [num_psf] spectra of the PSFs by which layers change
                   one another */
    bool has_psf;
    void **sum; /**< with `basis`: [count] spectra of the components that this minor
                   loop has found */
} cpu_layers;

/** The residual at one scale: this rank's rows of each image, and of their mean times
 * the local factor. */
typedef struct cpu_slot {
    void **image; /**< [layers]; slots share them if the mean has a spectrum */
    void *mean; /**< the numbers by which pixels are chosen, in memory of their own, or
                   image[0] if that has the same numbers */
    double *row_peak; /**< [rows] largest |value| of the mean in a row where components
                         of the scale may be, or largest value without negative
                         components; −1: no pixel of the row may have any */
    int scale;        /**< −1: nothing */
    int64_t version;  /**< of the residual */
} cpu_slot;

/** The mean residual of several images, if it has a spectrum of its own. */
typedef struct cpu_mean {
    void *spectrum;  /**< or NULL: scales are measured in each image */
    int scale;       /**< of the images that slots share; −1: nothing */
    int64_t version; /**< of the residual, in these images */
} cpu_mean;

/** Room for rows that threads make, and views of the caller's. */
typedef struct cpu_room {
    uint8_t *allowed; /**< [threads][nx] */
    double *joined;   /**< [threads][2][nx] */
    tess_rows *view;  /**< [num_images] views of the residuals with data, while they are
                         taken or given back */
} cpu_room;

/** σmin/σ by rows, by which the search multiplies. */
typedef struct cpu_factor {
    void *rows; /**< memory, or NULL */
    void *used; /**< the same memory if it is used, or NULL */
} cpu_factor;

struct clean_work {
    const clean_setup *setup;
    tess_convolve *plan;
    cpu_grids *grids; /**< NULL with one scale */
    const cpu_vector *vector;
    bool is_double;
    size_t real_bytes;
    int64_t pixels;    /**< number of pixels of this rank's rows */
    int64_t num_valid; /**< number of these pixels that are not NaN in the residual */
    int64_t columns, length; /**< columns of spectra on this rank, and their length */
    void **psf;              /**< [places][num_images] spectra */
    cpu_layers layers;
    cpu_mean mean;
    void **kernel;         /**< [num_scales] real spectra; NULL for scale 0 */
    double *psf_peak;      /**< [places][num_images][num_scales] (PSF ∗ K)(0) */
    cpu_slot slot[2];      /**< a single scale needs only the first */
    int kept, measured;    /**< numbers of slots */
    int64_t version;       /**< counts changes of the residual */
    uint8_t *allowed;      /**< rows of the user's mask, which excludes NaN pixels */
    uint8_t *is_nan;       /**< rows of pixels that are NaN */
    const uint32_t *found; /**< rows of the automatic mask, or NULL */
    cpu_room room;
    cpu_factor factor;
    cpu_window *window;
};

/** Whether an image has data. Other images stay 0 and are not transformed. */
static inline bool cpu_has_data(const clean_work *work, int image)
{
    return work->setup->join.weight[image] > 0;
}

static inline size_t cpu_line_bytes(const clean_work *work)
{
    return (size_t)work->length * 2 * work->real_bytes;
}

static inline void *cpu_column(const clean_work *work, void *spectrum, int64_t column)
{
    return (char *)spectrum + (size_t)column * cpu_line_bytes(work);
}

static inline void *cpu_row(const clean_work *work, void *rows, int64_t row)
{
    return (char *)rows + (size_t)(row * work->setup->images.nx) * work->real_bytes;
}

#endif
