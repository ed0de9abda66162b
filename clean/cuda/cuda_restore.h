/** @file cuda_restore.h  (private to clean/)
 *  Restoring on a device: that of the rank that leads (cuda_work.h).
 */
#ifndef TESS_CLEAN_CUDA_RESTORE_H
#define TESS_CLEAN_CUDA_RESTORE_H

#include "clean_ops.h"

/** `restore` of tess_clean_ops. Collective. */
tess_status cuda_restore(tess_comm *comm, const tess_clean_opts *opts,
                         const clean_exponent *beam, const tess_rows *model,
                         const tess_rows *residual, const tess_rows *image, bool *done);

#endif
