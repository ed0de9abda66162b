/** @file option_rules.h  (private to app/cli/)
 *  Tables that say how the values of options are parsed, and where they are kept. A
 *  parser of argp looks an option up in its table in place of a case for each option:
 *
 *      static const tess_option_rule rules[] = {
 *          {OPT_REPEAT, tess_take_int, .offset = AT(repeat), .min = 1, .max = 9},
 *          {OPT_QUIET, tess_take_flag, .offset = AT(quiet)},
 *          {0}};
 *      ...
 *      if (!tess_option_take(rules, key, arg, args, &status)) return ARGP_ERR_UNKNOWN;
 *      return tess_cli_result(state, options, key, arg, status);
 *
 *  AT(member) is offsetof() of a member of the parser's input. All functions are Local.
 */
#ifndef TESS_OPTION_RULES_H
#define TESS_OPTION_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "tess_bench_list.h"
#include "tess_status.h"

/** How the value of one option is parsed. */
typedef struct tess_option_rule {
    int key; /**< of the struct argp_option */
    /** Parses `text` and sets `value`. Where the text is not valid, `value` stays
     *  untouched, and the result is TESS_ERR_USAGE. NULL ends a table. */
    tess_status (*take)(const struct tess_option_rule *rule, const char *text,
                        void *value);
    size_t offset;            /**< of the value in the parser's input [bytes] */
    double min, max;          /**< least and greatest valid number */
    const char *const *words; /**< valid words; NULL ends them. The first `min` words
                                   are names of values that no option sets. */
    size_t given; /**< offset of a bool that becomes true with the option; 0: none */
} tess_option_rule;

/** If a rule of the table has this key, parse `text` by it into `input`, set `*status`
 *  to the result and return true; otherwise return false. */
bool tess_option_take(const tess_option_rule *rules, int key, const char *text,
                      void *input, tess_status *status);

/** The text itself, a const char *, which is not copied. */
tess_status tess_take_text(const tess_option_rule *rule, const char *text, void *value);

/** An option without a value: sets a bool. */
tess_status tess_take_flag(const tess_option_rule *rule, const char *text, void *value);

/** A whole number in [min, max]: an int, or an int64_t. */
tess_status tess_take_int(const tess_option_rule *rule, const char *text, void *value);
tess_status tess_take_int64(const tess_option_rule *rule, const char *text,
                            void *value);

/** A number in [min, max]: a double. */
tess_status tess_take_number(const tess_option_rule *rule, const char *text,
                             void *value);

/** An angle above zero with its unit: a double [rad]. */
tess_status tess_take_scale(const tess_option_rule *rule, const char *text,
                            void *value);

/** One of the rule's words: its index, an int or an enumeration. */
tess_status tess_take_word(const tess_option_rule *rule, const char *text, void *value);

/* ---- lists ---- */

/** Rules of options whose value is a list, separated by commas, at
 *  most TESS_BENCH_MOST items long: whole numbers, numbers, or words, which become
 * their indices. TESS_ERR_USAGE. */
tess_status tess_bench_take_integers(const tess_option_rule *rule, const char *text,
                                     void *list);
tess_status tess_bench_take_numbers(const tess_option_rule *rule, const char *text,
                                    void *list);
tess_status tess_bench_take_words(const tess_option_rule *rule, const char *text,
                                  void *list);

#endif
