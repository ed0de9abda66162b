/** @file aterms.h  (private to io/)
 *  A configuration of a-terms, its images, and what is taken from them.
 */
#ifndef ATERMS_H
#define ATERMS_H

#include "tess_aterms.h"

typedef enum aterm_kind { ATERM_TEC, ATERM_DIAGONAL, ATERM_DLDM } aterm_kind;

/* ---- aterm_config.c ---- */

enum { ATERM_MOST = 16, ATERM_MOST_IMAGES = 256 };

/** A term of a configuration. Texts point into that of the file. */
typedef struct aterm_term {
    const char *name, *type;
    aterm_kind kind;
    const char **image; /**< [num_images], owned */
    int num_images;
} aterm_term;

typedef struct aterm_config {
    aterm_term *term; /**< [num_terms], owned */
    int num_terms;
} aterm_config;

/** Parse a text, which is changed, and into which the terms point. TESS_ERR_INPUT,
 *  TESS_ERR_ALLOC. Local. */
tess_status aterm_config_parse(const char *path, char *text, aterm_config *config);
void aterm_config_free(aterm_config *config);

/* ---- aterm_image.c ---- */

/** What a term has in the directions. */
typedef struct aterm_values {
    aterm_kind kind;
    int64_t num_times, num_freqs, num_antennas, num_directions;
    double *time_mjd_s; /**< [num_times] */
    double *freq_hz;    /**< [num_freqs] */
    double *value;      /**< [time][freq][antenna][direction][aterm_parts()] */
} aterm_values;

/** Numbers of a value. */
static inline int64_t aterm_parts(aterm_kind kind)
{
    return kind == ATERM_DIAGONAL ? 4 : kind == ATERM_DLDM ? 2 : 1;
}

static inline int64_t aterm_count(const aterm_values *of)
{
    return of->num_times * of->num_freqs * of->num_antennas * of->num_directions *
           aterm_parts(of->kind);
}

/** Append the times of an image. Errors of tess_aterms_read(). Local. */
tess_status aterm_image_take(const char *path, const tess_aterms_opts *opts,
                             aterm_values *values);
void aterm_values_free(aterm_values *values);

#endif
