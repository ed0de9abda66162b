/* Local noise: the root of residual² convolved with a wide Gaussian, and the factor by
 * which the search divides it out. */
#include <math.h>
#include <string.h>

#include "cpu_work.h"
#include "tess_mem.h"
#include "tess_real.h"

tess_status cpu_local_rms(clean_work *work, const void *rows, double *least)
{
    (void)work;
    (void)rows;
    (void)least;
    return TESS_ERR_INTERNAL;
}
