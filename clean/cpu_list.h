/** @file cpu_list.h  (private to clean/)
 *  The candidates of a sub-minor loop, in the order of pixels. Short lists are whole on
 *  every rank, which then works without sending anything; of long ones a rank holds its
 *  share.
 */
#ifndef TESS_CLEAN_CPU_LIST_H
#define TESS_CLEAN_CPU_LIST_H

#include "cpu_work.h"

typedef struct cpu_list {
    int64_t total; /**< candidates of all ranks */
    int64_t count; /**< here */
    bool divided;  /**< each rank has a share */
    int num_layers;
    int64_t *index; /**< [count] pixel */
    double *value;  /**< [num_layers][count] of the residual at the scale */
    double *factor; /**< [count] σmin/σ, or NULL */
    cpu_run *run;   /**< neighbouring pixels */
    int64_t *block; /**< [num_blocks + 1] first run of each */
    int64_t num_blocks;
} cpu_list;

/** List the pixels of the kept slot with |value| >= `from`. Collective. */
tess_status cpu_list_make(const clean_work *work, int scale, double from,
                          cpu_list *list);
void cpu_list_free(cpu_list *list); /**< Local */

#endif
