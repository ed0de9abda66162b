/** @file gcf_wkernel.h  (private to grid/gcf/)
 *  Checks the options of w-kernels.
 */
#ifndef TESS_GCF_WKERNEL_H
#define TESS_GCF_WKERNEL_H

#include "tess_gcf.h"

/** TESS_ERR_USAGE if an option of w-kernels is outside of its limits. */
tess_status gcf_check_opts(const tess_gcf_opts *opts);
#endif
