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
    uint8_t *mask;   /* rows of the user's, or NULL */
    uint32_t *found; /* rows of the automatic mask, or NULL */
    bool *has_psf;   /* [num_images], true where none is needed */
    void **average;  /* [num_images] rows of averaged residuals, and of PSFs before,
                        where channels are averaged, or NULL */
    clean_components
        *kept; /* [num_scales] of all minor loops before, merged, or NULL */
    clean_major_state major;
    clean_minor_state minor; /* with log.num_loops > 0, or inside a minor loop */
    clean_log log;
};

/** A sub-minor loop has found those components of the log that no loop has. Local. */
tess_status clean_log_close(clean_log *log, int scale);
void clean_log_clear(clean_log *log); /**< Local */

/** Components of a scale in the log, merged by pixel. Local. */
tess_status clean_log_of_scale(const clean_log *log, int scale,
                               clean_components *merged);

/** The same with values of the caller's images, wide->num_images, to which the spectrum
 *  of each component is spread. Local. */
tess_status clean_log_spread(const clean_log *log, int scale, const clean_join *join,
                             clean_components *wide);

/** Components of a scale are kept; merged. Nothing where none are. Local. */
tess_status clean_keep(tess_clean *clean, int scale, const clean_components *merged);

/** average[] := the averages of the caller's images where there are several to a
 *  cleaned one; images without data are 0. Local. */
void clean_average_rows(const tess_clean *clean, void *const *rows);

/** Whether the automatic mask is being recorded, and whether it holds. Local. */
bool clean_records(const tess_clean *clean);
bool clean_is_masked(const tess_clean *clean);

#endif
