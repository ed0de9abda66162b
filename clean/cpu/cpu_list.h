/** @file cpu_list.h  (private to clean/)
 * The candidates of a sub-minor loop, in the order of pixels. Every rank has the whole
 * of a short list, and works without sending anything. Of a long list each rank has a
 * share. */
#ifndef TESS_CLEAN_CPU_LIST_H
#define TESS_CLEAN_CPU_LIST_H

#include "cpu_work.h"

typedef struct cpu_list {
    int64_t total; /**< number of candidates of all ranks */
    int64_t count; /**< number of candidates of this rank */
    bool divided;  /**< whether each rank has a share of the list */
    int num_layers;
    int64_t *index;     /**< [count] pixel number */
    double *value;      /**< values of the residual at the scale: cpu_list_value() */
    int64_t layer_step; /**< distance of the values of two layers: 1 if layers are sums,
                           else count */
    int64_t step;   /**< distance of the values of two candidates: num_layers, or 1 */
    double *factor; /**< [count] σmin/σ, or NULL */
    cpu_run *run;   /**< runs of neighbouring pixels */
    int64_t *block; /**< [num_blocks + 1] first run of each block */
    int64_t num_blocks;
} cpu_list;

/** The value of a candidate in a layer. */
static inline double *cpu_list_value(const cpu_list *list, int layer, int64_t candidate)
{
    return list->value + layer * list->layer_step + candidate * list->step;
}

/** Count the pixels of the kept slot with |value| >= `from`. Collective. */
tess_status cpu_count(clean_work *work, int scale, double from, int64_t *pixels);

/** List the pixels of the kept slot with |value| >= `from`. Collective. */
tess_status cpu_list_make(const clean_work *work, int scale, double from,
                          cpu_list *list);
void cpu_list_free(cpu_list *list); /**< Local */

#endif
