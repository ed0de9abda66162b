/** @file tess_text.h
 *  Text of files and users on its way to a terminal, and angles as text.
 */
#ifndef TESS_TEXT_H
#define TESS_TEXT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Replace by '?' what a terminal would act upon or could not show: control characters,
 *  also those above 0x7F, and bytes that are no UTF-8. Letters of all languages stay.
 *  Returns `text`. Local. */
char *tess_text_clean(char *text);

/** Cut the blanks of both ends away, in place: returns the first byte that is none.
 *  Local. */
char *tess_text_trim(char *text);

/** An angle in the largest unit of the command line's that keeps it at least 1,
 *  "4.1uas". Local. */
void tess_text_angle(double rad, char *text, size_t size);

/** Likewise an angle of three digits that is below `rad`, and next to it. Local. */
void tess_text_angle_below(double rad, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
