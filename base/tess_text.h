/** @file tess_text.h
 *  Text of files and users on its way to a terminal.
 */
#ifndef TESS_TEXT_H
#define TESS_TEXT_H

#ifdef __cplusplus
extern "C" {
#endif

/** Replace by '?' what a terminal would act upon or could not show: control characters,
 *  also those above 0x7F, and bytes that are no UTF-8. Letters of all languages stay.
 *  Returns `text`. Local. */
char *tess_text_clean(char *text);

#ifdef __cplusplus
}
#endif

#endif
