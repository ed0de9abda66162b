/* Parses the configuration of a-terms. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "aterms.h"
#include "tess_mem.h"
#include "tess_text.h"

/* Types that are read. */
static const struct {
    const char *type;
    aterm_kind kind;
} known_types[] = {
    {"tec", ATERM_TEC}, {"diagonal", ATERM_DIAGONAL}, {"dldm", ATERM_DLDM}};

/* Types that other programs know, and what to do. */
static const struct {
    const char *type, *instead;
} other_types[] = {
    {"beam", "take the beams of facets: an option for primary beams, or "
             "tessera-station-beams"},
    {"h5parm", "give its files as solutions of facets"},
};

/* A line of the file: texts in it, and its number. */
typedef struct entry {
    char *key, *value;
    int64_t line;
} entry;

/* ---- lines ---- */

/* Cuts a text into lines of a key and a value. There is room for all of them. */
static tess_status cut_lines(const char *path, char *text, entry *to, int64_t *num)
{
    tess_status status = TESS_OK;
    char *next = text;
    *num = 0;
    for (int64_t line = 1; next; ++line) {
        char *row = strsep(&next, "\n");
        row[strcspn(row, "#\r")] = '\0';
        row = tess_text_trim(tess_text_clean(row));
        if (!*row) continue;
        char *value = row;
        const char *key = strsep(&value, "=");
        if (!value || !*key)
            TESS_FAIL(TESS_ERR_INPUT, "%s: line %lld is not of the form key = value",
                      path, (long long)line);
        to[(*num)++] = (entry){tess_text_trim(row), tess_text_trim(value), line};
    }
cleanup:
    return status;
}

/* A value is a word, or a list of words in brackets. Takes the brackets off, in place.
 */
static tess_status open_list(const char *path, entry *of)
{
    tess_status status = TESS_OK;
    char *value = of->value;
    const size_t length = strlen(value);
    const bool has_first = value[0] == '[';
    const bool has_last = length > 0 && value[length - 1] == ']';
    if (has_first != has_last || (has_first && length < 2))
        TESS_FAIL(TESS_ERR_INPUT, "%s: line %lld: a list needs both of its brackets",
                  path, (long long)of->line);
    if (has_first) {
        value[length - 1] = '\0';
        of->value = value + 1;
    }
cleanup:
    return status;
}

/* The next word of a list, whose words are separated by blanks or commas; NULL: there
 * is none. */
static char *next_word(char **rest)
{
    static const char *const between = " \t,";
    *rest += strspn(*rest, between);
    char *word = *rest;
    *rest += strcspn(word, between);
    if (word == *rest) return NULL;
    if (**rest) *(*rest)++ = '\0';
    return word;
}

/* ---- terms ---- */

static aterm_term *find_term(aterm_config *config, const char *name, size_t length)
{
    for (int k = 0; k < config->num_terms; ++k)
        if (strlen(config->term[k].name) == length &&
            strncmp(config->term[k].name, name, length) == 0)
            return &config->term[k];
    return NULL;
}

static tess_status take_terms(const char *path, entry *of, aterm_config *config)
{
    tess_status status = TESS_OK;
    char *word;
    TESS_TRY(open_list(path, of));
    for (char *rest = of->value; (word = next_word(&rest));) {
        if (config->num_terms == ATERM_MOST || find_term(config, word, strlen(word)))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: line %lld: term '%s' comes twice, or there are more than %d",
                      path, (long long)of->line, word, ATERM_MOST);
        config->term[config->num_terms++] = (aterm_term){.name = word, .type = word};
    }
cleanup:
    return status;
}

static tess_status take_images(const char *path, entry *of, aterm_term *term)
{
    tess_status status = TESS_OK;
    char *word;
    TESS_TRY(open_list(path, of));
    if (!term->image)
        term->image = tess_alloc_zero(ATERM_MOST_IMAGES, sizeof *term->image);
    if (!term->image) TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory", path);
    term->num_images = 0;
    for (char *rest = of->value; (word = next_word(&rest));) {
        if (term->num_images == ATERM_MOST_IMAGES)
            TESS_FAIL(TESS_ERR_INPUT, "%s: line %lld: more than %d images", path,
                      (long long)of->line, ATERM_MOST_IMAGES);
        term->image[term->num_images++] = word;
    }
cleanup:
    return status;
}

/* What a line says of a term. */
static tess_status take_key(const char *path, entry *of, aterm_config *config)
{
    tess_status status = TESS_OK;
    const char *dot = strrchr(of->key, '.');
    aterm_term *term = dot ? find_term(config, of->key, (size_t)(dot - of->key)) : NULL;
    if (!term) goto cleanup;
    if (strcmp(dot, ".type") == 0) term->type = of->value;
    if (strcmp(dot, ".images") == 0) TESS_TRY(take_images(path, of, term));
cleanup:
    return status;
}

/* Local. */
static tess_status find_kind(const char *path, aterm_term *term)
{
    tess_status status = TESS_OK;
    const char *instead = "tec, diagonal and dldm are read";
    for (size_t j = 0; j < sizeof known_types / sizeof *known_types; ++j) {
        term->kind = known_types[j].kind;
        if (strcmp(term->type, known_types[j].type) == 0) return TESS_OK;
    }
    for (size_t j = 0; j < sizeof other_types / sizeof *other_types; ++j)
        if (strcmp(term->type, other_types[j].type) == 0)
            instead = other_types[j].instead;
    TESS_FAIL(TESS_ERR_INPUT, "%s: term '%s' is of the type '%s'; %s", path, term->name,
              term->type, instead);
cleanup:
    return status;
}

static tess_status check_terms(const char *path, aterm_config *config)
{
    tess_status status = TESS_OK;
    if (config->num_terms == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: has no line aterms = [...] with a term", path);
    for (int k = 0; k < config->num_terms; ++k) {
        aterm_term *term = &config->term[k];
        TESS_TRY(find_kind(path, term));
        if (term->num_images == 0)
            TESS_FAIL(TESS_ERR_INPUT, "%s: term '%s' has no line %s.images = [...]",
                      path, term->name, term->name);
    }
cleanup:
    return status;
}

tess_status aterm_config_parse(const char *path, char *text, aterm_config *config)
{
    tess_status status = TESS_OK;
    int64_t num = 1;
    for (const char *at = text; *at; ++at)
        num += *at == '\n';
    entry *of = tess_alloc(num, sizeof *of);
    config->term = tess_alloc_zero(ATERM_MOST, sizeof *config->term);
    if (!config->term || !of) TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory", path);
    TESS_TRY(cut_lines(path, text, of, &num));
    for (int64_t k = 0; k < num; ++k)
        if (strcmp(of[k].key, "aterms") == 0)
            TESS_TRY(take_terms(path, &of[k], config));
    for (int64_t k = 0; k < num; ++k)
        TESS_TRY(take_key(path, &of[k], config));
    TESS_TRY(check_terms(path, config));
cleanup:
    tess_free(of);
    return status;
}

void aterm_config_free(aterm_config *config)
{
    for (int k = 0; config->term && k < config->num_terms; ++k)
        tess_free((void *)config->term[k].image);
    tess_free(config->term);
    *config = (aterm_config){0};
}
