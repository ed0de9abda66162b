/** @file cuda_work.h  (private to clean/)
 *  What the cuda backend holds of the images of a minor loop, in the memory of the
 *  device and in the precision of the transforms. The host sees peaks, counts,
 *  components and sums of rows. Of several ranks the first one leads: it holds all, and
 *  tells the others what it finds. If devices are linked and have room for that, all
 *  ranks hold all, and share the scales: the rank that owns a scale measures it, runs
 *  its sub-minor loops, and tells the others. So the components do not depend on the
 *  number of ranks.
 *
 *  Files of the backend call only those that stand above them here:
 *
 *      cuda_kernels, cuda_search, cuda_cycle    passes on the device (.cu)
 *      cuda_work      what is held, and what it takes
 *      cuda_rows      the caller's rows on the device
 *      cuda_noise     medians, sums of rows, local noise
 *      cuda_grids     images of large scales by way of coarser grids
 *      cuda_spectra   transforms: residuals at scales, PSFs, components
 *      cuda_borders   components of places with gains of their own
 *      cuda_slot      images at a scale, their peaks and candidates
 *      cuda_loop      the sub-minor loop, components in models
 *      cuda_backend   all of it, as the order of work calls it (clean_ops.h)
 */
#ifndef TESS_CLEAN_CUDA_WORK_H
#define TESS_CLEAN_CUDA_WORK_H

#include "clean_grids.h"
#include "clean_layers.h"
#include "clean_log_spectrum.h"
#include "clean_ops.h"
#include "cuda_cycle.h"
#include "cuda_kernels.h"
#include "cuda_search.h"
#include "tess_device_fft.h"

/** Rows of the caller on the device (cuda_rows.h). Zeros are none. */
typedef struct cuda_view {
    cuda_pixels pixels;
    void *copy; /**< device, or NULL */
} cuda_view;

/** The residual at one scale. */
typedef struct cuda_slot {
    void **image; /**< [layers] images; slots share them if the mean has a spectrum */
    void **there; /**< device: the same pointers */
    void *mean; /**< the numbers by which pixels are chosen, in memory of their own, or
                   image[0] if that has the same numbers */
    int scale;  /**< −1: nothing */
    int64_t version; /**< of the residual */
} cuda_slot;

/** Logarithmic spectra of components, with arrays on the device. */
typedef struct cuda_logs {
    void *memory; /**< NULL: there are none */
    clean_log_places places;
    double *noise; /**< [num_pol] of a component's values */
} cuda_logs;

/** Layers (clean_layers.h) and the spectra that change in a minor loop. */
typedef struct cuda_layers {
    int count, num_psf;
    bool are_sums;
    double *basis, *weights; /**< host, [count][num_images], if they are sums */
    void **residual;         /**< [count] spectra */
    void **psf; /**< [num_psf] spectra of PSFs between layers, if they are sums */
    void **sum; /**< [count] spectra of the components so far, if they are sums */
    bool has_psf;
    double *fit; /**< device, see cuda_cycle::fit, or NULL */
    cuda_logs logs;
    uint8_t *has_data; /**< device, [count] */
} cuda_layers;

/** Bytes of a number, an image, a plane and a spectrum. */
typedef struct cuda_sizes {
    int64_t real, image, plane, spectrum;
} cuda_sizes;

/** The mean residual of several images, if it has a spectrum of its own. */
typedef struct cuda_mean_residual {
    void *spectrum;  /**< or NULL: scales are measured in each image */
    int scale;       /**< of the images that slots share; −1: nothing */
    int64_t version; /**< of the residual, in these images */
} cuda_mean_residual;

/** What belongs to a scale. */
typedef struct cuda_scale {
    void *kernel; /**< real spectrum; NULL for scale 0 */
    int grid;     /**< a coarser one for its images; −1: that of the pixels */
    cuda_table table;
    cuda_window window; /**< value NULL: not made */
} cuda_scale;

/** A coarser grid. */
typedef struct cuda_grid {
    tess_device_fft *fft; /**< NULL: not needed so far */
    void *weight; /**< device: clean_grid_weights() in the precision of planes */
} cuda_grid;

/** Pixels that may have components, and factors of the search. */
typedef struct cuda_masks {
    uint8_t *allowed, *is_nan;
    cuda_view found;   /**< the automatic mask where it holds: words */
    void *factor_rows; /**< room for σmin/σ, or NULL */
    void *factor;      /**< the same memory if it is used, or NULL */
} cuda_masks;

/** The join, with its arrays on the device. */
typedef struct cuda_joined {
    cuda_join join;
    double *share, *largest;
    double *one; /**< the number 1 */
} cuda_joined;

/** Places with gains of their own, on the device; NULL: there are none. */
typedef struct cuda_borders {
    int16_t *place;   /**< [ny][nx] */
    double *likeness; /**< [num][num] */
} cuda_borders;

/** Room for a record of each row. */
typedef struct cuda_records {
    void *there, *here; /**< device; host */
} cuda_records;

/** The ranks, and what they share. */
typedef struct cuda_ranks {
    int num;
    bool leads;       /**< gives residuals back, and owns scales that are not shared */
    bool shares;      /**< ranks share the scales */
    bool holds;       /**< has images; other ranks have tables alone */
    int64_t *rows_of; /**< [num] number of rows of each rank */
    clean_peak *peak; /**< [num + 1][num_scales] this rank's, then those of each */
} cuda_ranks;

struct clean_work {
    const clean_setup *setup;
    cuda_ranks ranks;
    cuda_shape shape;
    cuda_sizes bytes;
    tess_device_fft *fft;
    double transforms, transform_s;
    void *plane, *product; /**< what transforms are made of, or make */
    void **psf;            /**< [num_images] spectra */
    cuda_layers layers;
    cuda_mean_residual mean;
    cuda_scale *scale; /**< [num_scales] */
    cuda_grid grid[CLEAN_GRIDS];
    bool has_grids;   /**< they have been chosen for these PSFs */
    double *psf_peak; /**< host, [num_images][num_scales] (PSF ∗ K)(0) */
    double
        *psf_square; /**< as psf_peak, (PSF ∗ K ∗ K)(0), if scales are chosen by fit */
    cuda_slot slot[2];  /**< a single scale needs only the first */
    int kept, measured; /**< numbers of slots */
    int64_t version;    /**< counts changes of the residual */
    cuda_masks mask;
    cuda_joined joined;
    cuda_borders borders;
    cuda_records rows;
};

/** Bytes of a row's largest record. */
enum { CUDA_ROW_BYTES = sizeof(cuda_row_sum) };

static inline bool cuda_has_data(const clean_work *work, int image)
{
    return work->setup->join.weight[image] > 0;
}

/** Whether a layer has data. Other layers stay 0 and are not transformed. */
static inline bool cuda_layer_has_data(const clean_work *work, int layer)
{
    return work->layers.are_sums || cuda_has_data(work, layer);
}

/** The rank whose device measures and cleans a scale. */
static inline int cuda_owner_of(const clean_work *work, int scale)
{
    return work->ranks.shares ? scale % work->ranks.num : 0;
}

static inline bool cuda_owns(const clean_work *work, int scale)
{
    return tess_comm_rank(work->setup->comm) == cuda_owner_of(work, scale);
}

static inline int cuda_num_slots(const clean_setup *setup)
{
    return clean_is_multiscale(setup) ? 2 : 1;
}

/** Whether what pixels are chosen by has memory of its own. */
static inline bool cuda_has_own_mean(const clean_setup *setup)
{
    return setup->images.num_images > 1 ||
           setup->opts.local.kind != TESS_CLEAN_GLOBAL_RMS;
}

/** Allocate everything that does not depend on data. TESS_ERR_ALLOC. Collective. */
tess_status cuda_work_create(const clean_setup *setup, clean_work **work);
void cuda_work_destroy(clean_work *work); /**< NULL is fine. Local. */

/** Bytes of device memory: without PSFs of scales, and with those of all scales, which
 * are made anew if they have no room. Local. */
void cuda_work_bytes(const clean_setup *setup, double *least, double *all);

/** Size of a scale's PSFs, without memory; and their bytes. Local. */
cuda_window cuda_window_of(const clean_setup *setup, int scale);
int64_t cuda_window_bytes(const clean_setup *setup, const cuda_window *window);

#endif
