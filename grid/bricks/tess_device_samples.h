/** @file tess_device_samples.h
 *  Samples in device memory, which the code that fills them and the backend of the
 *  device share.
 */
#ifndef TESS_DEVICE_SAMPLES_H
#define TESS_DEVICE_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** tess_samples in device memory; same shapes, order and meaning. */
typedef struct tess_device_samples {
    bool is_double; /**< of `vis` and `weight` */
    int num_pol;
    int num_weight;   /**< 1 or num_pol */
    int32_t max_chan; /**< largest num_chan of any row (or more) */
    int64_t num_rows, num_vis;
    const double *uvw_m;      /**< device [num_rows][3] */
    const int32_t *chan_base; /**< device [num_rows] */
    const int32_t *num_chan;  /**< device [num_rows] */
    const int64_t *vis_first; /**< device [num_rows] */
    const int32_t *origin;    /**< device [num_rows], or NULL: tess_samples.origin */
    void *vis;                /**< device [num_vis][num_pol][2] */
    const void *weight;       /**< device [num_vis][num_weight]; not used to degrid */
    const double *inv_lambda; /**< device [channels] */
} tess_device_samples;

/** Device bytes that sorting this many rows and samples takes at most while it runs;
 *  afterwards less than half of it is kept. Local. */
int64_t tess_device_sort_bytes(int64_t num_rows, int64_t num_vis);

#ifdef __cplusplus
}
#endif
#endif
