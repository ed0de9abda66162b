/* Parses the values of options by tables of rules. */
#include "option_rules.h"

#include <stdio.h>
#include <string.h>

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
