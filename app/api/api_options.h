/** @file api_options.h  (private to app/api/)
 *  What the library's calls with options share: the options, the arguments that they
 *  become, and a model in the caller's memory.
 */
#ifndef TESS_API_OPTIONS_H
#define TESS_API_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_fits.h"
#include "tess_status.h"
#include "tessera/tess_model.h"

/** A list of strings that belong to it. Zero it before use. */
typedef struct api_texts {
    char **text;
    int64_t count, capacity;
} api_texts;

void api_texts_free(api_texts *list);

/** Options by name. Zero it before use; end with api_options_free(). */
typedef struct api_options {
    api_texts names, values; /**< a value "" belongs to a switch */
    api_texts obs;
    bool has_files; /* what has no name on the command line is set as "file", not "obs"
                     */
    char *log;
} api_options;

/** As tess_image_set() says. */
tess_status api_options_set(api_options *options, const char *name, const char *value);

/** COMMAND --name=value ... -- OBS..., as on a command line. TESS_ERR_USAGE: an option
 *  that a library does not have. */
tess_status api_options_arguments(const api_options *options, const char *command,
                                  api_texts *argv);

void api_options_free(api_options *options);

/** The pixels of a caller's model. `scale_rad` is what a model without a scale has, or
 *  0. TESS_ERR_USAGE: sizes or scale are out of range. */
tess_status api_model_pixels(const tess_model *model, double scale_rad,
                             tess_fits_pixels *pixels);

#endif
