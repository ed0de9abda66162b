/** @file clean_object.h  (private to clean/)
 *  A CLEAN between and inside its minor loops.
 */
#ifndef TESS_CLEAN_OBJECT_H
#define TESS_CLEAN_OBJECT_H

#include "clean_ops.h"

/** What lasts from one major iteration to the next. */
typedef struct clean_major_state {
    int32_t phase;      /**< 1; 2 when auto-masking is over */
    int32_t majors;     /**< major iterations so far */
    int64_t iterations; /**< minor iterations so far, of all these */
    double threshold;   /**< of the last minor loop, if it came down to it; or 0 */
    double depth; /**< most by which minor loops go down, in proportion; 0: mgain */
} clean_major_state;

/** What lasts from one sub-minor loop of a minor loop to the next. */
typedef struct clean_minor_state {
    double sigma, threshold, final_threshold;
    double peak_start;       /**< the largest |biased peak| at the start */
    int64_t peak_index;      /**< its pixel; −1: there is none */
    int64_t iterations;      /**< of this minor loop */
    int32_t loops;           /**< sub-minor loops so far */
    int32_t threshold_loops; /**< those of them that ended at the threshold or found no
                                  component */
    double peak[TESS_CLEAN_MOST_SCALES]; /**< last measured |biased peak| */
    uint8_t active[TESS_CLEAN_MOST_SCALES];
    int64_t scale_iterations[TESS_CLEAN_MOST_SCALES];
} clean_minor_state;

/** A sub-minor loop in the log: its components follow those of the loop before. */
typedef struct clean_logged_loop {
    int64_t scale, count;
} clean_logged_loop;

/** The components of a minor loop, in the order in which they were found. */
typedef struct clean_log {
    int64_t num_loops, room;
    clean_logged_loop *loop;
    clean_components found;
} clean_log;

struct tess_clean {
    clean_setup setup;
    const tess_clean_ops *ops;
    clean_work *work;
    tess_clean_calls calls;
    bool has_mask;
    tess_rows mask;     /* the user's */
    uint32_t *found;    /* rows of the automatic mask, or NULL */
    bool *has_psf;      /* [num_images] whether its PSF is there, or none is needed */
    tess_rows *average; /* [num_images] averaged residuals, and before these averaged
                           PSFs, in host memory, if channels are averaged, or NULL */
    clean_components
        *kept; /* [num_scales] merged components of all earlier minor loops, or NULL */
    clean_major_state major;
    clean_minor_state
        minor; /* valid inside a minor loop, and while log.num_loops > 0 */
    clean_log log;
};

/** Note that a sub-minor loop at `scale` has found the components of the log that no
 * earlier loop has found. TESS_ERR_ALLOC. Local. */
tess_status clean_log_close(clean_log *log, int scale);
void clean_log_clear(clean_log *log); /**< Local */

/** Collect the components of a scale in the log, merged by pixel. TESS_ERR_ALLOC.
 * Local. */
tess_status clean_log_of_scale(const clean_log *log, int scale,
                               clean_components *merged);

/** Collect them with values of the caller's images, wide->num_images, to which the
 * spectrum of each component is spread. TESS_ERR_ALLOC. Local. */
tess_status clean_log_spread(const clean_log *log, int scale, const clean_join *join,
                             clean_components *wide);

/** Keep merged components of a scale, if components are kept. TESS_ERR_ALLOC. Local. */
tess_status clean_keep(tess_clean *clean, int scale, const clean_components *merged);

/** TESS_ERR_USAGE: these are not this rank's rows of an image. Local. */
tess_status clean_check_rows(const tess_clean *clean, const tess_rows *rows);

/** average[] := the averages of the caller's images that are cleaned as one; images
 * without data are 0. TESS_ERR_ALLOC. Local. */
tess_status clean_average_rows(const tess_clean *clean, const tess_rows *rows);

/** Whether the automatic mask is being recorded (phase 1). Local. */
bool clean_records(const tess_clean *clean);

/** Whether components lie inside the automatic mask only (phase 2). Local. */
bool clean_is_masked(const tess_clean *clean);

#endif
