/** @file wsclean_table.h  (private to app/cli/wsclean/)
 *  The options of WSClean: their arguments, and what becomes of each in tessera.
 */
#ifndef TESS_WSCLEAN_TABLE_H
#define TESS_WSCLEAN_TABLE_H

#include <stdbool.h>
#include <stdio.h>

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

#endif
