/** @file tess_print.h
 *  What commands print because they were asked for it: on standard output, or, in a
 *  program that calls the library, into its text.
 */
#ifndef TESS_PRINT_H
#define TESS_PRINT_H

#include <stdio.h>

/** Print text. Errors of writing show in the stream. */
void tess_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Print to this stream from now on; NULL: standard output. State of the process, as
 *  that is: callers take turns. */
void tess_print_to(FILE *stream);

#endif
