/** @file majors_private.h  (private to app/imager/run/majors*.c)
 *  The images of an output while they are cleaned.
 */
#ifndef TESS_MAJORS_PRIVATE_H
#define TESS_MAJORS_PRIVATE_H

#include "majors.h"
#include "tess_clean.h"
#include "tess_log.h"

/* One polarisation. */
typedef struct cleaned {
    tess_clean *clean; /* NULL: it has no data */
    imager_rows model; /* in double precision */
    imager_rows residual;
    bool goes_on;
    bool is_done;      /* in the current major iteration */
    double least_peak; /* of those that major iterations of this phase began with */
    int num_stalled;   /* major iterations that did not begin below it, in a row */
    int64_t num_majors, iterations;
    tess_clean_report report; /* of the last minor loop */
    majors_end end;
} cleaned;

typedef struct majors {
    image_run *run;
    visset *set;
    tess_comm *slabs; /* the ranks in the order of their rows */
    int64_t output, num; /* num: of complete major iterations */
    bool has_model;      /* some pixel of some model may not be 0 */
    bool changed;        /* models have changed since the residuals were made */
    tess_clean_images images;
    tess_clean_opts opts;
    cleaned pol[TESS_MAX_POL];
    imager_product *first; /* [num_pol] residuals after the first major iteration … */
    bool has_first;        /* … which has been, and they are wanted */
    tess_progress progress;
    double share; /* of the way to the threshold that progress has told */
} majors;

/** Rows of an image of this precision, with room for nothing yet. */
static inline imager_rows majors_like_rows(const imager_rows *rows, bool is_double)
{
    return (imager_rows){rows->row_first, rows->num_rows, rows->nx, is_double, NULL};
}

/** What a checkpoint keeps (imager_cycle_save). Local. */
tess_status majors_save(void *majors, imager_cycle *cycle);

/** Whether the checkpoint that the run continues from is of this output's major cycles.
 *  Local. */
bool majors_can_continue(const majors *all);

/** Go on from there: models, states and what was counted. Collective. */
tess_status majors_continue(majors *all);

#endif
