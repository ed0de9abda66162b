/** @file cpu_columns.h  (private to clean/)
 *  Products and sums of columns of spectra, in the precision of the transforms. Local
 *  throughout.
 */
#ifndef TESS_CLEAN_CPU_COLUMNS_H
#define TESS_CLEAN_CPU_COLUMNS_H

#include "cpu_work.h"

/** line[k] := a[k] · b[k]^power for complex a and real b (NULL: 1). */
void cpu_times_kernel(const clean_work *work, const void *a, const void *b, int power,
                      int64_t column, void *line);

/** line[k] := factor · a[k] · b[k] for the part of a column: its first element,
 * and how many. The first of them goes to line[0]. */
void cpu_times_part(const clean_work *work, const void *a, const void *b,
                    int64_t column, const int64_t part[2], double factor, void *line);

/** line := line · psf · kernel, for a complex and a real column; NULL is 1. */
void cpu_column_times(const clean_work *work, const void *psf, const void *kernel,
                      void *line);

/** to −= line · psf. */
void cpu_column_less_product(const clean_work *work, const void *line, const void *psf,
                             void *to);

/** sum += by · line. */
void cpu_column_add(const clean_work *work, const void *line, double by, void *sum);

/** The real parts of a column. */
void cpu_column_real(const clean_work *work, const void *line, void *to);

/** from −= line, for `count` reals. */
void cpu_less(const clean_work *work, const void *line, int64_t count, void *from);

#endif
