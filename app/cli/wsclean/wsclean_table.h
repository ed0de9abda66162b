/** @file wsclean_table.h  (private to app/cli/wsclean/)
 *  The options of WSClean: their arguments, and what becomes of each in tessera; and a
 *  command line of them, with its observations.
 */
#ifndef TESS_WSCLEAN_TABLE_H
#define TESS_WSCLEAN_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tess_status.h"

/** What becomes of an option. */
typedef enum wsclean_way {
    WSCLEAN_BECOMES, /**< the options of `becomes`, with the arguments put in */
    WSCLEAN_CHOICE,  /**< several options together decide what it becomes */
    WSCLEAN_IGNORED, /**< it is not needed here */
    WSCLEAN_ONLY,    /**< ignored where its argument is that of `only`, else refused */
    WSCLEAN_REFUSED
} wsclean_way;

/** Where an option has an effect, as flags. An option without one has it in images. */
enum {
    WSCLEAN_PREDICT = 1,    /**< with -predict, too */
    WSCLEAN_CLEAN = 2,      /**< only where images are cleaned */
    WSCLEAN_JOINED = 4,     /**< only with -join-channels */
    WSCLEAN_MULTISCALE = 8, /**< only with -multiscale */
    WSCLEAN_NONZERO = 16,   /**< 0 is WSClean's word for none */
    WSCLEAN_RESTORE = 32,   /**< with -restore and -restore-list, too */
    WSCLEAN_DRAW = 64,      /**< with -draw-model, too */
    WSCLEAN_SIGNED = 128,   /**< not where the peaks of squares are searched */
    WSCLEAN_MASKED = 256,   /**< only with -auto-mask */
    WSCLEAN_FITTED = 512,   /**< only where the beam is fitted */
    WSCLEAN_CELLS = 1024,   /**< only where weights are those of cells: by density, with
                                 a taper, or cut */
    WSCLEAN_FOUND = 2048,   /**< not where the beam is given */
    WSCLEAN_BY_BEAM = 4096, /**< not where -multiscale-scales lists the scales */
};

typedef struct wsclean_option {
    const char *name;      /**< without dashes in front; NULL ends the table */
    const char *arguments; /**< "WIDTH HEIGHT": a word for each; "SCALE/deg" is an angle
                                whose unit is deg when it has none; NULL: no argument */
    wsclean_way way;
    const char *becomes; /**< options of tessera; %1 to %3 stand for the arguments.
                            NULL: none */
    const char *remark;  /**< for the manual; why it is ignored or refused, and what to
                            do  instead; or NULL */
    int where;           /**< flags */
    const char *only;    /**< of WSCLEAN_ONLY: a number, or a word */
} wsclean_option;

/** All options, in the order of the manual. */
extern const wsclean_option wsclean_options[];

/** The option that a word of the command line names, with one dash or two, and with the
 *  dashes within that WSClean 2 leaves out ("-channelsout"). NULL if there is none.
 *  Local. */
const wsclean_option *wsclean_find(const char *word);

/** The option whose name is nearest to a word's; NULL if none is near. Local. */
const wsclean_option *wsclean_nearest(const char *word);

/** The number of arguments. Local. */
int wsclean_num_arguments(const wsclean_option *option);

/** The name of argument `k` in `text`, and the unit of its plain number, or NULL.
 * Local.
 */
const char *wsclean_argument(const wsclean_option *option, int k, char *text,
                             size_t size);

/** Print the table for the manual, or for the help. Local. */
void wsclean_print_manual(FILE *out);
void wsclean_print_help(FILE *out);

/* ---- wsclean_line.c ---- */

/** An option of the command line. */
typedef struct wsclean_given {
    const wsclean_option *option;
    char **argument; /**< words of the command line, in number as the option has */
} wsclean_given;

/** An option of the command line that cannot be used. */
typedef struct wsclean_refusal {
    const char *word; /**< as it was typed */
    char text[320];   /**< "WORD: not supported: ..." */
} wsclean_refusal;

/** Zero it before use; end with wsclean_line_free(). */
typedef struct wsclean_line {
    wsclean_given *given; /**< [num_given] */
    int64_t num_given, capacity_given;
    wsclean_refusal *refused; /**< [num_refused] */
    int64_t num_refused, capacity_refused;
    char **obs; /**< [num_obs] */
    int num_obs;
    char *typed;         /**< the whole line, owned; the caller makes it */
    bool no_columns;     /**< no observation has columns, as WSClean's own all have; the
                              caller finds out */
    bool translate_only; /**< -translate-only, -dry-run */
    bool table;          /**< -table, hidden: print the manual's table */
    bool help;           /**< -help */
} wsclean_line;

/** Read argv[1] and what follows. Options that are unknown or not supported are noted
 * in `line->refused`, all of them. TESS_ERR_USAGE for an option that lacks an argument,
 * and for one behind the observations. `line` refers to words of argv. Local. */
tess_status wsclean_line_read(int argc, char **argv, wsclean_line *line);

/** TESS_ERR_USAGE where options are refused: the message names all of them. Local. */
tess_status wsclean_line_check(const wsclean_line *line);

/** The last option of this name, or NULL. Local. */
const wsclean_given *wsclean_line_last(const wsclean_line *line, const char *name);

/** The first argument of the last option of this name, or `otherwise`. Local. */
const char *wsclean_line_value(const wsclean_line *line, const char *name,
                               const char *otherwise);

void wsclean_line_free(wsclean_line *line); /**< Local. */

#endif
