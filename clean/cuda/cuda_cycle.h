/** @file cuda_cycle.h  (private to clean/)
 *  A sub-minor loop as one launch: blocks that run at the same time, each with a share
 *  of the candidates, and agree on each component through device memory.
 */
#ifndef TESS_CLEAN_CUDA_CYCLE_H
#define TESS_CLEAN_CUDA_CYCLE_H

#include "clean_log_fit.h"
#include "cuda_search.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Most layers of a loop: their values are in the shared memory of a block, twice. */
enum { CUDA_MOST_LAYERS = 4096 };

/** The loop, its candidates and PSFs. Arrays are in device memory. */
typedef struct cuda_cycle {
    cuda_list list;     /**< values are changed */
    cuda_window window; /**< PSFs of layers, or of pairs of layers that are sums */
    bool is_double;     /**< the window is */
    bool sums;          /**< layers are sums of images; the first is searched */
    cuda_join join;
    const double *fit; /**< [num_layers][num_layers] values of a component times this
                          are its spectrum; NULL: 1 */
    clean_log_places logs;   /**< the function of logarithms that is fitted instead */
    const double *noise;     /**< [num_pol] of a component's values; NULL: there is none
                              */
    const uint8_t *has_data; /**< [num_layers] other layers stay 0 */
    const double *likeness;  /**< [num_places][num_places] where the list has places */
    int num_places;
    bool positive, stop_negative;
    double gain, until, diverged;
    int64_t most; /**< components of this launch */
    /* results */
    int32_t *place; /**< [most] candidates in the order in which they were found */
    double *value;  /**< [most][num_layers] values of their components */
} cuda_cycle;

/** How a launch ended. */
typedef struct cuda_cycle_end {
    int64_t iterations;
    double peak;   /**< the best candidate that is left */
    int64_t place; /**< −1: none */
    bool done;     /**< false: `most` components were found */
} cuda_cycle_end;

/** Run it, and wait. TESS_ERR_ALLOC. */
tess_status cuda_cycle_run(const cuda_cycle *cycle, cuda_cycle_end *end);

#ifdef __cplusplus
}
#endif
#endif
