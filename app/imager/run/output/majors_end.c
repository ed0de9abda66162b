/* Names the reasons why major cycles end, for the log. */
#include "majors_end.h"

const char *majors_end_text(majors_end end)
{
    static const char *const text[] = {
        [MAJORS_THRESHOLD] = "the final threshold",
        [MAJORS_NMITER] = "the number of major iterations (--nmiter)",
        [MAJORS_NITER] = "the number of iterations (--niter)",
        [MAJORS_NEGATIVE] = "a negative component",
        [MAJORS_STALLED] = "a residual that no longer falls",
        [MAJORS_DIVERGED] = "divergence",
        [MAJORS_NOTHING] = "an image without anything to clean"};
    return text[end];
}
