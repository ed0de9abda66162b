/** @file majors_end.h  (private to app/imager/run/)
 *  Why major cycles end.
 */
#ifndef TESS_MAJORS_END_H
#define TESS_MAJORS_END_H

/** Why an image is cleaned no further. */
typedef enum majors_end {
    MAJORS_THRESHOLD,
    MAJORS_NMITER,
    MAJORS_NITER,
    MAJORS_NEGATIVE,
    MAJORS_STALLED,
    MAJORS_DIVERGED,
    MAJORS_NOTHING
} majors_end;

/** "the final threshold": for the log. Local. */
const char *majors_end_text(majors_end end);

#endif
