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
    if (!*given) TESS_FAIL(TESS_ERR_USAGE, "-draw-model needs -%s", name);
cleanup:
    return status;
}

/* Where the image lies: at a given place, or where an observation points. */
static tess_status add_place(const wsclean_line *line, wsclean_words *words)
{
    tess_status status = TESS_OK;
    const wsclean_given *centre = wsclean_line_last(line, "draw-centre");
    char place[WSCLEAN_TEXT];
    if (!centre && line->num_obs == 0)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "-draw-model needs -draw-centre, or an observation, whose phase centre "
            "it takes");
    if (centre) {
        wsclean_words_position(centre, place);
        return wsclean_words_add(words, "--center", place, NULL);
    }
    TESS_TRY(wsclean_words_add(words, "--obs", line->obs[0], NULL));
    TESS_TRY(wsclean_words_field(line, words));
cleanup:
    return status;
}

tess_status wsclean_words_draw(const wsclean_line *line, wsclean_words *words,
                               wsclean_words *notes)
{
    tess_status status = TESS_OK;
    const wsclean_given *list, *size, *scale;
    const wsclean_given *band = wsclean_line_last(line, "draw-frequencies");
    char name[WSCLEAN_TEXT], angle[WSCLEAN_TEXT];
    TESS_TRY(need(line, "draw-model", &list));
    TESS_TRY(need(line, "size", &size));
    TESS_TRY(need(line, "scale", &scale));
    snprintf(name, sizeof name, "%s.fits", wsclean_line_value(line, "name", "wsclean"));
    wsclean_words_argument(scale, 0, angle);
    TESS_TRY(wsclean_words_add(
        words, "draw", list->argument[0], "-o", name, "--overwrite", "--scale", angle,
        "--terms", wsclean_line_value(line, "draw-spectral-terms", "1"), NULL));
    TESS_TRY(add_place(line, words));
    if (band)
        TESS_TRY(wsclean_words_add(words, "--freq", band->argument[0], "--bandwidth",
                                   band->argument[1], NULL));
    TESS_TRY(wsclean_words_plain(line, WSCLEAN_DRAW, words, notes));
cleanup:
    return status;
}
