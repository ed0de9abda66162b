/* Reads a parameter file, and puts its options before those of the command line. */
#define _GNU_SOURCE
#include "tess_cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tess_input.h"
#include "tess_mem.h"
#include "tess_text.h"

/* A parameter file is typed by a person: anything larger is not one. */
enum { MAX_FILE_BYTES = 1 << 20, MAX_KEYS = 1000 };

/* The option of argp or its children with this long name. */
static const struct argp_option *find_option(const struct argp *argp, const char *name)
{
    const struct argp_option *option = argp->options;
    for (; option && (option->name || option->key || option->doc || option->group);
         ++option)
        if (option->name && strcmp(option->name, name) == 0) return option;
    for (const struct argp_child *child = argp->children; child && child->argp;
         ++child) {
        option = find_option(child->argp, name);
        if (option) return option;
    }
    return NULL;
}

/* "FILE..." as the name of an argument says that the option may be repeated. */
static bool may_repeat(const struct argp_option *option)
{
    const size_t length = option->arg ? strlen(option->arg) : 0;
    return length > 3 && strcmp(option->arg + length - 3, "...") == 0;
}

/* Cut a comment away: '#' at the start of the line or after a blank, not in quotes. */
static void cut_comment(char *line)
{
    bool quoted = false;
    for (char *c = line; *c; ++c) {
        if (*c == '"') quoted = !quoted;
        if (*c == '#' && !quoted && (c == line || isspace((unsigned char)c[-1]))) {
            *c = '\0';
            return;
        }
    }
}

/* 1 or 0 for yes or no, -1 for neither */
static int read_switch(const char *value)
{
    static const char *const yes[] = {"true", "yes", "on", "1"};
    static const char *const no[] = {"false", "no", "off", "0"};
    for (size_t k = 0; k < sizeof yes / sizeof *yes; ++k) {
        if (strcasecmp(value, yes[k]) == 0) return 1;
        if (strcasecmp(value, no[k]) == 0) return 0;
    }
    return -1;
}

static char *join(const char *prefix, const char *key, const char *middle,
                  const char *value)
{
    const size_t size =
        strlen(prefix) + strlen(key) + strlen(middle) + strlen(value) + 1;
    char *text = tess_alloc((int64_t)size, 1);
    if (text) snprintf(text, size, "%s%s%s%s", prefix, key, middle, value);
    return text;
}

/* Where the text of a file is being read; the keys found so far. */
typedef struct reading {
    const struct argp *argp;
    const char *path;
    int line;
    int num_keys, capacity;
    char *key[MAX_KEYS]; /* into the copy of the text */
    int key_line[MAX_KEYS];
    tess_params *params;
} reading;

static tess_status add_argument(reading *r, const struct argp_option *option,
                                const char *value)
{
    tess_status status = TESS_OK;
    char *argument = NULL;
    if (option->arg)
        argument = join("--", option->name, "=", value);
    else {
        const int on = read_switch(value);
        if (on < 0)
            TESS_FAIL(TESS_ERR_USAGE,
                      "%s:%d: %s is switched by true or false, not '%s'", r->path,
                      r->line, option->name, value);
        if (on == 0) goto cleanup;
        argument = join("--", option->name, "", "");
    }
    if (!argument) TESS_FAIL(TESS_ERR_ALLOC, "%s: parameters", r->path);
    tess_params *params = r->params;
    params->line[params->num_keys++] = r->line;
    params->argv[params->num_keys] = argument;
    params->argc = params->num_keys + 1;
cleanup:
    return status;
}

static tess_status read_line(reading *r, char *text)
{
    tess_status status = TESS_OK;
    cut_comment(text);
    text = tess_text_trim(text);
    if (*text == '\0') goto cleanup;
    char *equals = strchr(text, '=');
    if (!equals)
        TESS_FAIL(TESS_ERR_USAGE, "%s:%d: '%.60s' is not of the form key = value",
                  r->path, r->line, text);
    *equals = '\0';
    char *key = tess_text_trim(text), *value = tess_text_trim(equals + 1);
    const size_t length = strlen(value);
    if (length >= 2 && value[0] == '"' && value[length - 1] == '"') {
        value[length - 1] = '\0';
        ++value;
    }
    const struct argp_option *option = find_option(r->argp, key);
    if (!option || strcmp(key, "config") == 0 || strcmp(key, "help") == 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s:%d: unknown key '%.60s'; keys are the long names of options",
                  r->path, r->line, key);
    if (*value == '\0')
        TESS_FAIL(TESS_ERR_USAGE, "%s:%d: %s has no value", r->path, r->line, key);
    for (int k = 0; k < r->num_keys; ++k)
        if (strcmp(r->key[k], key) == 0 && !may_repeat(option))
            TESS_FAIL(TESS_ERR_USAGE, "%s:%d: %s was already set in line %d", r->path,
                      r->line, key, r->key_line[k]);
    if (r->num_keys == MAX_KEYS)
        TESS_FAIL(TESS_ERR_USAGE, "%s: more than %d keys", r->path, (int)MAX_KEYS);
    r->key[r->num_keys] = key;
    r->key_line[r->num_keys++] = r->line;
    TESS_TRY(add_argument(r, option, value));
cleanup:
    return status;
}

static int64_t count_lines(const char *text)
{
    int64_t lines = 1;
    for (; *text; ++text)
        lines += *text == '\n';
    return lines;
}

/* Append the arguments of the command line, without --config when a file was read. */
static tess_status append_arguments(int argc, char **argv, bool has_config,
                                    tess_params *params)
{
    tess_status status = TESS_OK;
    bool options = true; /* until "--" */
    for (int k = 1; k < argc; ++k) {
        if (strcmp(argv[k], "--") == 0) options = false;
        if (has_config && options && strcmp(argv[k], "--config") == 0) {
            ++k;
            continue;
        }
        if (has_config && options && strncmp(argv[k], "--config=", 9) == 0) continue;
        char *copy = tess_strdup(argv[k]);
        if (!copy) TESS_FAIL(TESS_ERR_ALLOC, "arguments");
        params->argv[params->argc++] = copy;
    }
cleanup:
    return status;
}

tess_status tess_params_expand_text(const struct argp *argp, const char *path,
                                    const char *text, int argc, char **argv,
                                    tess_params *params)
{
    tess_status status = TESS_OK;
    char *copy = NULL;
    reading *r = NULL;
    tess_params made = {0};
    const int64_t capacity = argc + 2 + (text ? count_lines(text) : 0);
    made.argv = tess_alloc_zero(capacity, sizeof *made.argv);
    made.line = tess_alloc_zero(capacity, sizeof *made.line);
    copy = tess_strdup(text ? text : "");
    r = tess_alloc_zero(1, sizeof *r);
    if (!made.argv || !made.line || !copy || !r) TESS_FAIL(TESS_ERR_ALLOC, "arguments");
    made.argv[0] = tess_strdup(argc > 0 ? argv[0] : "tessera");
    if (!made.argv[0]) TESS_FAIL(TESS_ERR_ALLOC, "arguments");
    made.argc = 1;
    if (text) {
        made.path = tess_strdup(path);
        if (!made.path) TESS_FAIL(TESS_ERR_ALLOC, "arguments");
        *r = (reading){.argp = argp, .path = path, .params = &made};
        char *rest = copy;
        while (rest) {
            char *line = strsep(&rest, "\n");
            ++r->line;
            TESS_TRY(read_line(r, line));
        }
    }
    TESS_TRY(append_arguments(argc, argv, text != NULL, &made));
    *params = made;
    made = (tess_params){0};
cleanup:
    tess_params_free(&made);
    tess_free(copy);
    tess_free(r);
    return status;
}

/* The argument of --config, NULL without. */
static tess_status find_config(int argc, char **argv, const char **path)
{
    tess_status status = TESS_OK;
    *path = NULL;
    for (int k = 1; k < argc && strcmp(argv[k], "--") != 0; ++k) {
        const char *found = NULL;
        if (strcmp(argv[k], "--config") == 0) {
            if (k + 1 == argc) TESS_FAIL(TESS_ERR_USAGE, "--config needs a file name");
            found = argv[++k];
        } else if (strncmp(argv[k], "--config=", 9) == 0)
            found = argv[k] + 9;
        if (found && *path)
            TESS_FAIL(TESS_ERR_USAGE, "--config was given twice; put all keys into one "
                                      "file");
        if (found) *path = found;
    }
cleanup:
    return status;
}

/* Opens a file, which may be a pipe that nobody writes to yet. A signal to stop is
 * remembered (tess_stop.h), and on some systems it interrupts the wait for a writer. */
static FILE *open_file(const char *path)
{
    FILE *file;
    do
        file = fopen(path, "r");
    while (!file && errno == EINTR);
    return file;
}

/* Reads as much as there is, whatever signals arrive. */
static size_t read_whole(FILE *file, char *buffer, size_t most)
{
    size_t size = 0;
    do {
        clearerr(file);
        errno = 0;
        size += fread(buffer + size, 1, most - size, file);
    } while (ferror(file) && errno == EINTR);
    return size;
}

/* The file as one string. */
static tess_status read_file(const char *path, char **text, int64_t *length)
{
    tess_status status = TESS_OK;
    char *buffer = NULL;
    /* may be a pipe: one rank reads it, once and in order */
    FILE *file = open_file(path);
    if (!file)
        TESS_FAIL(tess_errno_status(errno), "%s: parameter file cannot be read: %s",
                  path, strerror(errno));
    buffer = tess_alloc(MAX_FILE_BYTES + 1, 1);
    if (!buffer) TESS_FAIL(TESS_ERR_ALLOC, "%s: parameters", path);
    const size_t size = read_whole(file, buffer, MAX_FILE_BYTES);
    if (ferror(file))
        TESS_FAIL(TESS_ERR_IO, "%s: parameter file cannot be read: %s", path,
                  strerror(errno));
    if (!feof(file) || memchr(buffer, 0, size))
        TESS_FAIL(TESS_ERR_INPUT, "%s: not a parameter file (lines key = value)", path);
    buffer[size] = '\0';
    *text = buffer;
    *length = (int64_t)size;
    buffer = NULL;
cleanup:
    if (file) fclose(file);
    tess_free(buffer);
    return status;
}

tess_status tess_params_expand(tess_comm *comm, const struct argp *argp, int argc,
                               char **argv, tess_params *params)
{
    tess_status status = TESS_OK;
    char *text = NULL;
    const char *path = NULL;
    int64_t length = 0;
    TESS_TRY(find_config(argc, argv, &path)); /* the same on every rank */
    if (path) {
        /* only the first rank's node need see the file */
        if (tess_comm_rank(comm) == 0) status = read_file(path, &text, &length);
        TESS_TRY(tess_comm_agree(comm, status));
        TESS_TRY(tess_comm_bcast(comm, &length, sizeof length, 0));
        if (!text) text = tess_alloc_zero(length + 1, 1);
        if (!text)
            status = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                       "%s: parameters", path);
        TESS_TRY(tess_comm_agree(comm, status));
        TESS_TRY(tess_comm_bcast(comm, text, length, 0));
    }
    TESS_TRY(tess_params_expand_text(argp, path, text, argc, argv, params));
cleanup:
    tess_free(text);
    return status;
}

int tess_params_line(const tess_params *params, int index)
{
    return index >= 1 && index <= params->num_keys ? params->line[index - 1] : 0;
}

void tess_params_free(tess_params *params)
{
    for (int k = 0; params->argv && k < params->argc; ++k)
        tess_free(params->argv[k]);
    tess_free(params->argv);
    tess_free(params->line);
    tess_free(params->path);
    *params = (tess_params){0};
}
