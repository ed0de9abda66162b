/* The commands of tessera for WSClean's -restore, -restore-list and -draw-model, which
 * need no observation. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>

#include "wsclean_words.h"

tess_status wsclean_words_restore(const wsclean_line *line, wsclean_words *words,
                                  wsclean_words *notes)
{
    tess_status status = TESS_OK;
    const wsclean_given *given = wsclean_line_last(line, "restore");
    if (!given) given = wsclean_line_last(line, "restore-list");
    TESS_TRY(wsclean_words_add(words, "restore", given->argument[0], given->argument[1],
                               "-o", given->argument[2], "--overwrite", NULL));
    TESS_TRY(wsclean_words_plain(line, WSCLEAN_RESTORE, words, notes));
cleanup:
    return status;
}

/* An argument that has to be there. */
static tess_status need(const wsclean_line *line, const char *name,
                        const wsclean_given **given)
{
    tess_status status = TESS_OK;
    *given = wsclean_line_last(line, name);
    if (!*given)
        TESS_FAIL(TESS_ERR_USAGE,
                  "-draw-model needs -%s; observations are not read for it", name);
cleanup:
    return status;
}

tess_status wsclean_words_draw(const wsclean_line *line, wsclean_words *words,
                               wsclean_words *notes)
{
    tess_status status = TESS_OK;
    const wsclean_given *list, *size, *scale, *centre;
    const wsclean_given *band = wsclean_line_last(line, "draw-frequencies");
    char name[WSCLEAN_TEXT], pixels[WSCLEAN_TEXT], angle[WSCLEAN_TEXT];
    char place[WSCLEAN_TEXT];
    TESS_TRY(need(line, "draw-model", &list));
    TESS_TRY(need(line, "size", &size));
    TESS_TRY(need(line, "scale", &scale));
    TESS_TRY(need(line, "draw-centre", &centre));
    snprintf(name, sizeof name, "%s.fits", wsclean_line_value(line, "name", "wsclean"));
    snprintf(pixels, sizeof pixels, "%s,%s", size->argument[0], size->argument[1]);
    wsclean_words_argument(scale, 0, angle);
    wsclean_words_position(centre, place);
    TESS_TRY(wsclean_words_add(
        words, "draw", list->argument[0], "-o", name, "--overwrite", "--size", pixels,
        "--scale", angle, "--center", place, "--terms",
        wsclean_line_value(line, "draw-spectral-terms", "1"), NULL));
    if (band)
        TESS_TRY(wsclean_words_add(words, "--freq", band->argument[0], "--bandwidth",
                                   band->argument[1], NULL));
    TESS_TRY(wsclean_words_plain(line, WSCLEAN_RESTORE, words, notes));
cleanup:
    return status;
}
