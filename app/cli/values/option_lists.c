/* Rules of options whose value is a list. */
#define _GNU_SOURCE
#include "option_lists.h"

#include <stdint.h>
#include <string.h>

#include "tess_mem.h"

/* Parses one item of a list by the list's rule. */
typedef tess_status item_parser(const tess_option_rule *rule, const char *text,
                                double *value);

static tess_status parse_list(const tess_option_rule *rule, const char *text,
                              item_parser *parse, tess_bench_list *list)
{
    tess_status status = TESS_OK;
    char *copy = tess_strdup(text), *rest = copy;
    tess_bench_list made = {.count = 0};
    if (!copy) TESS_FAIL(TESS_ERR_ALLOC, "list");
    for (char *word; (word = strsep(&rest, ",")) != NULL;) {
        if (made.count == TESS_BENCH_MOST)
            TESS_FAIL(TESS_ERR_USAGE, "'%s' has more than %d entries", text,
                      TESS_BENCH_MOST);
        TESS_TRY(parse(rule, word, &made.value[made.count]));
        ++made.count;
    }
    *list = made;
cleanup:
    tess_free(copy);
    return status;
}

static tess_status parse_integer(const tess_option_rule *rule, const char *text,
                                 double *value)
{
    int64_t number = 0;
    const tess_status status = tess_take_int64(rule, text, &number);
    if (status == TESS_OK) *value = (double)number;
    return status;
}

static tess_status parse_number(const tess_option_rule *rule, const char *text,
                                double *value)
{
    return tess_take_number(rule, text, value);
}

static tess_status parse_word(const tess_option_rule *rule, const char *text,
                              double *value)
{
    int number = 0;
    const tess_status status = tess_take_word(rule, text, &number);
    if (status == TESS_OK) *value = number;
    return status;
}

tess_status tess_bench_take_integers(const tess_option_rule *rule, const char *text,
                                     void *list)
{
    return parse_list(rule, text, parse_integer, list);
}

tess_status tess_bench_take_numbers(const tess_option_rule *rule, const char *text,
                                    void *list)
{
    return parse_list(rule, text, parse_number, list);
}

tess_status tess_bench_take_words(const tess_option_rule *rule, const char *text,
                                  void *list)
{
    return parse_list(rule, text, parse_word, list);
}
