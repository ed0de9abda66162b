/** @file cpu_work.h  (private to clean/)
 * The rows and spectra that the cpu backend holds of the images of a minor loop, in the
 * precision of the transforms. */
#ifndef TESS_CLEAN_CPU_WORK_H
#define TESS_CLEAN_CPU_WORK_H

#include "clean_ops.h"
#include "cpu_layers.h"
#include "cpu_vector.h"
#include "tess_convolve.h"

typedef struct cpu_window cpu_window; /* cpu_window.h */

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

/** Room for rows that threads make. */
typedef struct cpu_room {
    uint8_t *allowed; /**< [threads][nx] */
    double *joined;   /**< [threads][2][nx] */
} cpu_room;

struct clean_work {
    const clean_setup *setup;
    tess_convolve *plan;
    const cpu_vector *vector;
    bool is_double;
    size_t real_bytes;
    int64_t pixels;    /**< number of pixels of this rank's rows */
    int64_t num_valid; /**< number of these pixels that are not NaN in the residual */
    int64_t columns, length; /**< columns of spectra on this rank, and their length */
    void **psf;              /**< [num_images] spectra */
    cpu_layers layers;
    cpu_mean mean;
    void **kernel;         /**< [num_scales] real spectra; NULL for scale 0 */
    double *psf_peak;      /**< [num_images][num_scales] (PSF ∗ K)(0) */
    cpu_slot slot[2];      /**< a single scale needs only the first */
    int kept, measured;    /**< numbers of slots */
    int64_t version;       /**< counts changes of the residual */
    uint8_t *allowed;      /**< rows of the user's mask, which excludes NaN pixels */
    uint8_t *is_nan;       /**< rows of pixels that are NaN */
    const uint32_t *found; /**< rows of the automatic mask, or NULL */
    cpu_room room;
    void *factor_rows; /**< memory of σmin/σ, or NULL */
    void *factor;      /**< the same memory if σmin/σ is used, or NULL */
    cpu_window *window;
};

/* ---- cpu_slot.c ---- */

/** Whether an image has data. Other images stay 0 and are not transformed. */
static inline bool cpu_has_data(const clean_work *work, int image)
{
    return work->setup->join.weight[image] > 0;
}

/** Whether the mean of several images has a spectrum of its own. A scale is then
 *  measured by one transform. The images are made for the scale that is cleaned. Roots
 *  and squares have no such spectrum. Local. */
bool cpu_has_mean(const clean_setup *setup);

/** The pixels of a row that may have components of a scale: a row of `allowed`, or a
 * row in this thread's scratch memory. Local. */
const uint8_t *cpu_allowed_row(const clean_work *work, int scale, int64_t row);

/** Fill the slot's mean with the numbers by which pixels are chosen, times the factor,
 * and find the peaks of its rows. If the mean is an image, the peaks are found when its
 * rows are made. Local. */
void cpu_slot_mean(const clean_work *work, cpu_slot *slot);

/** The same without the signs of roots, and without peaks. Local. */
void cpu_slot_magnitude(const clean_work *work, cpu_slot *slot);

/** Fill the slot's mean with the linear mean without the factor, in which noise is
 * measured. Local. */
void cpu_slot_linear(const clean_work *work, cpu_slot *slot);

/** Find the peak of a row of the mean, while it is in cache. Local. */
void cpu_row_peak(const clean_work *work, cpu_slot *slot, int64_t row);

/** Find the peaks of all rows of the mean. Local. */
void cpu_slot_peaks(const clean_work *work, cpu_slot *slot);

/* ---- cpu_spectra.c ---- */

/** Make the spectrum of a scale's kernel. Collective. */
tess_status cpu_make_kernel(clean_work *work, int scale);

/** Make the spectrum of a PSF. Collective. */
tess_status cpu_make_psf(clean_work *work, int image, const void *rows);

/** Make the spectra of the residual images in a slot. Collective. */
tess_status cpu_make_residual(clean_work *work, cpu_slot *slot);

/** Make the residual at a scale in a slot. Collective. */
tess_status cpu_make_scale(clean_work *work, int scale, cpu_slot *slot);

/** Make the residual itself in a slot. Collective. */
tess_status cpu_make_plain(clean_work *work, cpu_slot *slot);

/** Make the images of a slot's scale, unless they are there. Collective. */
tess_status cpu_make_images(clean_work *work, cpu_slot *slot);

tess_status cpu_subtract(clean_work *work, int scale, clean_components *merged);

/* ---- cpu_peak.c ---- */

/** The peak of a slot over all ranks. Collective. */
tess_status cpu_slot_peak(const clean_work *work, const cpu_slot *slot,
                          clean_peak *peak);

/* ---- cpu_list.c ---- */

tess_status cpu_count(clean_work *work, int scale, double from, int64_t *pixels);
tess_status cpu_loop(clean_work *work, clean_loop *loop, clean_components *found);

/* ---- cpu_model.c ---- */

tess_status cpu_add(clean_work *work, int scale, const clean_components *merged,
                    double *const *model);

/* ---- cpu_noise.c ---- */

/** The median of a slot's mean over all ranks, and 1.4826 times the median absolute
 * deviation, without NaN pixels. Collective. */
tess_status cpu_deviation(const clean_work *work, const void *rows, clean_noise *noise);

/** The root mean square of the mean residual over all ranks, without NaN pixels.
 * Collective. */
tess_status cpu_rms(const clean_work *work, void *const *residual, double *rms);

/* ---- cpu_channel_noise.c ---- */

/** What is expected of weight · noise² of a channel in a slot's images, for each
 * polarisation, noise[num_pol]; 0 unless logarithms are fitted. Collective. */
tess_status cpu_channel_noise(const clean_work *work, const cpu_slot *slot,
                              double *noise);

/* ---- cpu_local_rms.c ---- */

/** Fill `factor_rows` from the rows of the mean residual; `*least` gets the smallest σ.
 * Collective. */
tess_status cpu_local_rms(clean_work *work, const void *rows, double *least);

/* ---- */

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
