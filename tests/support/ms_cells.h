/** @file ms_cells.h
 *  Cells of a MeasurementSet that tessera itself does not write, set by casacore.
 */
#ifndef MS_CELLS_H
#define MS_CELLS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Set FLAG_ROW of these rows and of no others, leaving FLAG as it is. NULL in a build
 *  without casacore. */
__attribute__((weak)) void ms_set_flag_row(const char *path, const int64_t *rows,
                                           int num_rows);

#ifdef __cplusplus
}
#endif
#endif
