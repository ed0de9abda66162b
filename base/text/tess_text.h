/** @file tess_text.h
 *  Makes text of files and users safe for a terminal, and writes angles as text.
 */
#ifndef TESS_TEXT_H
#define TESS_TEXT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Replace characters that a terminal would obey or could not show by '?': control
 * characters, including those above 0x7F, and bytes that are not UTF-8. Letters of all
 * languages stay. Returns `text`. Local. */
char *tess_text_clean(char *text);

/** Cut off the blanks at both ends, in place. Returns the first byte that is not blank.
 * Local. */
char *tess_text_trim(char *text);

/** Write an angle like "4.1uas", in the largest unit of the command line in which it is
 * at least 1. Local. */
void tess_text_angle(double rad, char *text, size_t size);

/** Write the largest angle of three digits that is below `rad`, in the same way. Local.
 */
void tess_text_angle_below(double rad, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
