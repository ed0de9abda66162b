/* Parses the values of options by tables of rules. */
#define _GNU_SOURCE
#include "option_rules.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tess_mem.h"
#include "tess_parse.h"

bool tess_option_take(const tess_option_rule *rules, int key, const char *text,
                      void *input, tess_status *status)
{
    const tess_option_rule *rule = rules;
    while (rule->take && rule->key != key)
        ++rule;
    if (!rule->take) return false;
    char *bytes = input;
    *status = rule->take(rule, text, bytes + rule->offset);
    if (rule->given > 0 && *status == TESS_OK)
        memcpy(bytes + rule->given, &(bool){true}, sizeof(bool));
    return true;
}

tess_status tess_take_text(const tess_option_rule *rule, const char *text, void *value)
{
    (void)rule;
    memcpy(value, &text, sizeof text);
    return TESS_OK;
}

tess_status tess_take_flag(const tess_option_rule *rule, const char *text, void *value)
{
    (void)rule, (void)text;
    memcpy(value, &(bool){true}, sizeof(bool));
    return TESS_OK;
}

tess_status tess_take_int64(const tess_option_rule *rule, const char *text, void *value)
{
    return tess_parse_integer(text, (int64_t)rule->min, (int64_t)rule->max, value);
}

tess_status tess_take_int(const tess_option_rule *rule, const char *text, void *value)
{
    int64_t number = 0;
    const tess_status status = tess_take_int64(rule, text, &number);
    if (status == TESS_OK) memcpy(value, &(int){(int)number}, sizeof(int));
    return status;
}

tess_status tess_take_number(const tess_option_rule *rule, const char *text,
                             void *value)
{
    return tess_parse_number(text, rule->min, rule->max, value);
}

tess_status tess_take_scale(const tess_option_rule *rule, const char *text, void *value)
{
    (void)rule;
    return tess_parse_scale(text, value);
}

/* "a, b or c" of the words from number `first` on. */
static void list_words(const char *const *words, int first, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int k = first; words[k] && used < size; ++k) {
        const char *before = k == first ? "" : words[k + 1] ? ", " : " or ";
        used += (size_t)snprintf(text + used, size - used, "%s%s", before, words[k]);
    }
}

tess_status tess_take_word(const tess_option_rule *rule, const char *text, void *value)
{
    tess_status status = TESS_OK;
    char valid[256];
    int k = (int)rule->min;
    while (rule->words[k] && strcmp(text, rule->words[k]) != 0)
        ++k;
    if (!rule->words[k]) {
        list_words(rule->words, (int)rule->min, valid, sizeof valid);
        TESS_FAIL(TESS_ERR_USAGE, "'%s' is not valid; write %s", text, valid);
    }
    memcpy(value, &k, sizeof k);
cleanup:
    return status;
}

/* ---- lists ---- */

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
