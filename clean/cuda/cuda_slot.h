/** @file cuda_slot.h  (private to clean/)
 *  Slots of the cuda backend: the images at a scale, their peaks and candidates. Local
 *  throughout.
 */
#ifndef TESS_CLEAN_CUDA_SLOT_H
#define TESS_CLEAN_CUDA_SLOT_H

#include "cuda_work.h"

/** Make the residual at a scale in a slot. */
tess_status cuda_make_scale(clean_work *work, int scale, cuda_slot *slot);

/** Fill the slot's mean with the numbers by which pixels are chosen, times the factor.
 */
tess_status cuda_slot_mean(const clean_work *work, cuda_slot *slot);

/** The same without the signs of roots; and the linear mean without the factor. */
tess_status cuda_slot_magnitude(const clean_work *work, cuda_slot *slot);
tess_status cuda_slot_linear(const clean_work *work, cuda_slot *slot);

/** The peak of a slot. Waits. */
tess_status cuda_slot_peak(clean_work *work, const cuda_slot *slot, clean_peak *peak);

/** Count the pixels of a slot with |value| >= `from`. Waits. */
tess_status cuda_slot_count(clean_work *work, const cuda_slot *slot, double from,
                            int64_t *pixels);

/** List these pixels. TESS_ERR_ALLOC. */
tess_status cuda_list_make(clean_work *work, const cuda_slot *slot, double from,
                           cuda_list *list);
void cuda_list_free(cuda_list *list);

#endif
