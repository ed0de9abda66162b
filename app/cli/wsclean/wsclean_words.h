/** @file wsclean_words.h  (private to app/cli/wsclean/)
 *  The command of tessera that does what a command line of WSClean asks for.
 */
#ifndef TESS_WSCLEAN_WORDS_H
#define TESS_WSCLEAN_WORDS_H

#include "wsclean_table.h"

/** Words, which are owned. Zeroed is empty. */
typedef struct wsclean_words {
    char **word; /**< [num + 1], NULL at the end */
    int64_t num, capacity;
} wsclean_words;

/** Most bytes of a word. */
enum { WSCLEAN_TEXT = 4096 };

/** Add words, the last of which is NULL. TESS_ERR_ALLOC. Local. */
tess_status wsclean_words_add(wsclean_words *words, ...);

/** Argument `k` as tessera reads it: a plain number gets the unit that WSClean means.
 *  Local. */
void wsclean_words_argument(const wsclean_given *given, int k, char text[WSCLEAN_TEXT]);

/** The two arguments of a position as "RA,DEC"; declinations with dots as in
 *  "+45.00.00.0", get colons. Local. */
void wsclean_words_position(const wsclean_given *given, char text[WSCLEAN_TEXT]);

/** Add "--field LIST". Local. */
tess_status wsclean_words_field(const wsclean_line *line, wsclean_words *words);

/** Add the options that the table translates one by one, of a run of the kind `where`,
 *  and notes of those that are left out. Local. */
tess_status wsclean_words_plain(const wsclean_line *line, int where,
                                wsclean_words *words, wsclean_words *notes);

/** "image -o NAME ... OBS..." in `words`; in `notes`, a line for each option that is
 *  left out, and what differs from WSClean. TESS_ERR_USAGE for values that are not
 *  there, and without observations. Local. */
tess_status wsclean_words_image(const wsclean_line *line, wsclean_words *words,
                                wsclean_words *notes);

/** Whether -predict is of several models or fields, which are predicted into all
 * observations at once. Local. */
bool wsclean_words_predicts_several(const wsclean_line *line);

/** "predict OBS --model NAME-model.fits ..." for observation `k`, as above; of several
 *  models "image -o NAME --predict-models ... OBS...". Local. */
tess_status wsclean_words_predict(const wsclean_line *line, int k, wsclean_words *words,
                                  wsclean_words *notes);

/** "restore RESIDUAL MODEL -o IMAGE ..." and "draw LIST -o NAME.fits ...", as above;
 *  TESS_ERR_USAGE also where -size or -scale is missing, or -draw-centre and an
 *  observation. Local. */
tess_status wsclean_words_restore(const wsclean_line *line, wsclean_words *words,
                                  wsclean_words *notes);
tess_status wsclean_words_draw(const wsclean_line *line, wsclean_words *words,
                               wsclean_words *notes);

void wsclean_words_free(wsclean_words *words); /**< Local. */

#endif
