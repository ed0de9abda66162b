/** @file option_lists.h  (private to app/cli/)
 *  Rules of options (option_rules.h) whose value is a list of numbers or words.
 */
#ifndef TESS_OPTION_LISTS_H
#define TESS_OPTION_LISTS_H

#include "option_rules.h"
#include "tess_bench_list.h"

/** Rules of options (option_rules.h) whose value is a list, separated by commas, at
 *  most TESS_BENCH_MOST items long: whole numbers, numbers, or words, which become
 * their indices. TESS_ERR_USAGE. */
tess_status tess_bench_take_integers(const tess_option_rule *rule, const char *text,
                                     void *list);
tess_status tess_bench_take_numbers(const tess_option_rule *rule, const char *text,
                                    void *list);
tess_status tess_bench_take_words(const tess_option_rule *rule, const char *text,
                                  void *list);

#endif
