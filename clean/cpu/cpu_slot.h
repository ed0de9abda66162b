/** @file cpu_slot.h  (private to clean/)
 *  Slots of the cpu backend. A slot holds the mean of the images at a scale, by rows,
 *  with the peaks of those rows.
 */
#ifndef TESS_CLEAN_CPU_SLOT_H
#define TESS_CLEAN_CPU_SLOT_H

#include "cpu_work.h"

/** The pixels of a row that may have components of a scale: a row of `allowed`, or a
 * row in this thread's scratch memory. Local. */
const uint8_t *cpu_allowed_row(const clean_work *work, int scale, int64_t row);

/** Fill the slot's mean with the numbers by which pixels are chosen, times the factor,
 * and find the peaks of its rows. If the mean is an image, the peaks are found when its
 * rows are made. Local. */
void cpu_slot_mean(const clean_work *work, cpu_slot *slot);

/** The same without the signs of roots, and without peaks. Local. */
void cpu_slot_magnitude(const clean_work *work, cpu_slot *slot);

/** Fill the slot's mean with the linear mean without the factor, in which noise is
 * measured. Local. */
void cpu_slot_linear(const clean_work *work, cpu_slot *slot);

/** Find the peak of a row of the mean, while it is in cache. Local. */
void cpu_row_peak(const clean_work *work, cpu_slot *slot, int64_t row);

/** Find the peaks of all rows of the mean. Local. */
void cpu_slot_peaks(const clean_work *work, cpu_slot *slot);

/** The peak of a slot over all ranks. Collective. */
tess_status cpu_slot_peak(const clean_work *work, const cpu_slot *slot,
                          clean_peak *peak);

#endif
