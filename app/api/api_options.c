/* Options of the library's calls, between their names and the command line that they
 * become. */
#define _GNU_SOURCE
#include "api_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tess_mem.h"
#include "tess_parse.h"

static tess_status add_text(api_texts *list, const char *text)
{
    tess_status status = TESS_OK;
    char *copy = tess_strdup(text);
    void *array = list->text;
    if (!copy ||
        tess_grow(&array, &list->capacity, list->count + 1, sizeof *list->text)) {
        tess_free(copy);
        TESS_FAIL(TESS_ERR_ALLOC, "options");
    }
    list->text = array;
    list->text[list->count++] = copy;
cleanup:
    return status;
}

void api_texts_free(api_texts *list)
{
    for (int64_t k = 0; k < list->count; ++k)
        tess_free(list->text[k]);
    tess_free(list->text);
    *list = (api_texts){0};
}

void api_options_free(api_options *options)
{
    api_texts_free(&options->names);
    api_texts_free(&options->values);
    api_texts_free(&options->obs);
    tess_free(options->log);
    *options = (api_options){0};
}

static tess_status replace(char **text, const char *with)
{
    tess_status status = TESS_OK;
    char *copy = tess_strdup(with);
    if (!copy) TESS_FAIL(TESS_ERR_ALLOC, "options");
    tess_free(*text);
    *text = copy;
cleanup:
    return status;
}

tess_status api_options_set(api_options *options, const char *name, const char *value)
{
    tess_status status = TESS_OK;
    if (!name) TESS_FAIL(TESS_ERR_USAGE, "option without a name");
    if (!value) value = "";
    if (strcmp(name, options->has_files ? "file" : "obs") == 0) {
        TESS_TRY(add_text(&options->obs, value));
        goto cleanup;
    }
    if (strcmp(name, "log") == 0) {
        TESS_TRY(replace(&options->log, value));
        goto cleanup;
    }
    for (int64_t k = 0; k < options->names.count; ++k)
        if (strcmp(options->names.text[k], name) == 0) {
            TESS_TRY(replace(&options->values.text[k], value));
            goto cleanup;
        }
    TESS_TRY(add_text(&options->values, value));
    TESS_TRY(add_text(&options->names, name));
cleanup:
    return status;
}

static tess_status add_log_switch(const char *log, api_texts *argv)
{
    tess_status status = TESS_OK;
    if (!log || strcmp(log, "quiet") == 0)
        TESS_TRY(add_text(argv, "--quiet"));
    else if (strcmp(log, "debug") == 0)
        TESS_TRY(add_text(argv, "--verbose"));
    else if (strcmp(log, "info") != 0)
        TESS_FAIL(TESS_ERR_USAGE, "log: '%s' is none of quiet, info, debug", log);
cleanup:
    return status;
}

/* Options that print on standard output, which belongs to the caller. */
static tess_status check_name(const char *name)
{
    tess_status status = TESS_OK;
    static const char *const names[] = {"help", "help-all", "version", "list-layouts"};
    for (size_t k = 0; k < sizeof names / sizeof *names; ++k)
        if (strcmp(name, names[k]) == 0)
            TESS_FAIL(TESS_ERR_USAGE, "%s is not an option of the library", name);
cleanup:
    return status;
}

tess_status api_options_arguments(const api_options *options, const char *command,
                                  api_texts *argv)
{
    tess_status status = TESS_OK;
    char *text = NULL;
    TESS_TRY(add_text(argv, command));
    TESS_TRY(add_log_switch(options->log, argv));
    for (int64_t k = 0; k < options->names.count; ++k) {
        const char *name = options->names.text[k], *value = options->values.text[k];
        TESS_TRY(check_name(name));
        if (asprintf(&text, "--%s%s%s", name, *value ? "=" : "", value) < 0) {
            text = NULL;
            TESS_FAIL(TESS_ERR_ALLOC, "options");
        }
        TESS_TRY(add_text(argv, text));
        free(text); /* from asprintf */
        text = NULL;
    }
    TESS_TRY(add_text(argv, "--"));
    for (int64_t k = 0; k < options->obs.count; ++k)
        TESS_TRY(add_text(argv, options->obs.text[k]));
cleanup:
    free(text);
    return status;
}

tess_status api_model_pixels(const tess_model *model, double scale_rad,
                             tess_fits_pixels *pixels)
{
    tess_status status = TESS_OK;
    const int64_t most = INT64_C(1) << 20;
    if (!model->pixel || model->nx < 1 || model->ny < 1 || model->nx > most ||
        model->ny > most || model->num_stokes < 1 || model->num_stokes > 4)
        TESS_FAIL(TESS_ERR_USAGE,
                  "the model in memory has %d planes of %lld x %lld pixels; it needs 1 "
                  "to 4 (I, Q, U, V) of at most %lld x %lld",
                  model->num_stokes, (long long)model->nx, (long long)model->ny,
                  (long long)most, (long long)most);
    if (model->scale) TESS_TRY(tess_parse_scale(model->scale, &scale_rad));
    if (!(scale_rad > 0))
        TESS_FAIL(TESS_ERR_USAGE, "the model in memory has no scale; give one like "
                                  "1.5asec");
    *pixels = (tess_fits_pixels){.nx = model->nx,
                                 .ny = model->ny,
                                 .num_stokes = model->num_stokes,
                                 .is_double = model->is_double,
                                 .pixel = model->pixel,
                                 .scale_rad = scale_rad};
cleanup:
    return status;
}
