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
    int64_t *index;     /**< [count] pixel */
    double *value;      /**< of the residual at the scale, of a candidate in a layer:
                             cpu_list_value() */
    int64_t layer_step; /**< from layer to layer: 1 where layers are sums, else count */
    int64_t step;       /**< from candidate to candidate: num_layers, or 1 */
    double *factor;     /**< [count] σmin/σ, or NULL */
    cpu_run *run;       /**< neighbouring pixels */
    int64_t *block;     /**< [num_blocks + 1] first run of each */
    int64_t num_blocks;
} cpu_list;

/** Where the value of a candidate in a layer is. */
static inline double *cpu_list_value(const cpu_list *list, int layer, int64_t candidate)
{
    return list->value + layer * list->layer_step + candidate * list->step;
}

/** List the pixels of the kept slot with |value| >= `from`. Collective. */
tess_status cpu_list_make(const clean_work *work, int scale, double from,
                          cpu_list *list);
void cpu_list_free(cpu_list *list); /**< Local */

#endif
