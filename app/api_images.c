/* The imager within a program: the options of `tessera image`, and its images in
 * memory. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image_args.h"
#include "tess_fits.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_profile.h"
#include "tessera/tess_images.h"

/* A list of strings that belong to it. */
typedef struct text_list {
    char **text;
    int64_t count, capacity;
} text_list;

/* An image and what its description points to. */
typedef struct held_image {
    tess_image_info info;
    char kind[8], polarisation[8];
    void *pixel;
    char *header;
} held_image;

struct tess_image {
    text_list names, values; /* options; a value "" belongs to a switch */
    text_list obs;
    char *log;
    held_image **held; /* [count]: their addresses are given away */
    int64_t count, capacity;
};

/* The log's level and file are the process's, so runs take turns. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static tess_status add_text(text_list *list, const char *text)
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

static void free_texts(text_list *list)
{
    for (int64_t k = 0; k < list->count; ++k)
        tess_free(list->text[k]);
    tess_free(list->text);
    *list = (text_list){0};
}

static void free_held(held_image *held)
{
    if (!held) return;
    tess_free(held->pixel);
    tess_free(held->header);
    tess_free(held);
}

static void forget_images(tess_image *image)
{
    for (int64_t k = 0; k < image->count; ++k)
        free_held(image->held[k]);
    image->count = 0;
}

tess_status tess_image_create(tess_image **image)
{
    tess_status status = TESS_OK;
    tess_error_call_begin();
    tess_image *made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "imager");
    *image = made;
cleanup:
    return tess_error_call_end(status);
}

void tess_image_destroy(tess_image *image)
{
    if (!image) return;
    forget_images(image);
    tess_free(image->held);
    free_texts(&image->names);
    free_texts(&image->values);
    free_texts(&image->obs);
    tess_free(image->log);
    tess_free(image);
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

tess_status tess_image_set(tess_image *image, const char *name, const char *value)
{
    tess_status status = TESS_OK;
    tess_error_call_begin();
    if (!name) TESS_FAIL(TESS_ERR_USAGE, "option without a name");
    if (strcmp(name, "obs") == 0) {
        TESS_TRY(add_text(&image->obs, value ? value : ""));
        goto cleanup;
    }
    if (strcmp(name, "log") == 0) {
        TESS_TRY(replace(&image->log, value ? value : ""));
        goto cleanup;
    }
    for (int64_t k = 0; k < image->names.count; ++k)
        if (strcmp(image->names.text[k], name) == 0) {
            TESS_TRY(replace(&image->values.text[k], value ? value : ""));
            goto cleanup;
        }
    TESS_TRY(add_text(&image->values, value ? value : ""));
    TESS_TRY(add_text(&image->names, name));
cleanup:
    return tess_error_call_end(status);
}

/* ---- a run ---- */

/* --name=value ... -- OBS..., as on a command line. */
static tess_status make_arguments(const tess_image *image, text_list *argv)
{
    tess_status status = TESS_OK;
    char *text = NULL;
    TESS_TRY(add_text(argv, "image"));
    if (!image->log || strcmp(image->log, "quiet") == 0)
        TESS_TRY(add_text(argv, "--quiet"));
    else if (strcmp(image->log, "debug") == 0)
        TESS_TRY(add_text(argv, "--verbose"));
    else if (strcmp(image->log, "info") != 0)
        TESS_FAIL(TESS_ERR_USAGE, "log: '%s' is none of quiet, info, debug",
                  image->log);
    for (int64_t k = 0; k < image->names.count; ++k) {
        const char *value = image->values.text[k];
        if (strcmp(image->names.text[k], "help") == 0)
            TESS_FAIL(TESS_ERR_USAGE, "help is not an option of the library");
        if (asprintf(&text, "--%s%s%s", image->names.text[k], *value ? "=" : "",
                     value) < 0) {
            text = NULL;
            TESS_FAIL(TESS_ERR_ALLOC, "options");
        }
        TESS_TRY(add_text(argv, text));
        free(text); /* from asprintf */
        text = NULL;
    }
    TESS_TRY(add_text(argv, "--"));
    for (int64_t k = 0; k < image->obs.count; ++k)
        TESS_TRY(add_text(argv, image->obs.text[k]));
cleanup:
    free(text);
    return status;
}

static void fill_info(const tess_image_product *product, held_image *held)
{
    const tess_image_meta *meta = product->meta;
    snprintf(held->kind, sizeof held->kind, "%s", product->kind);
    snprintf(held->polarisation, sizeof held->polarisation, "%s",
             product->polarisation);
    held->info = (tess_image_info){.kind = held->kind,
                                   .polarisation = held->polarisation,
                                   .interval = product->interval,
                                   .channel = product->channel,
                                   .nx = meta->nx,
                                   .ny = meta->ny,
                                   .is_double = product->is_double,
                                   .pixel = held->pixel,
                                   .ra_rad = meta->ra_rad,
                                   .dec_rad = meta->dec_rad,
                                   .scale_rad = meta->scale_rad,
                                   .freq_hz = meta->freq_hz,
                                   .bandwidth_hz = meta->bandwidth_hz,
                                   .beam_major_rad = meta->beam_major_rad,
                                   .beam_minor_rad = meta->beam_minor_rad,
                                   .beam_pa_rad = meta->beam_pa_rad,
                                   .sum_weights = meta->sum_weights,
                                   .num_vis = (double)meta->num_vis};
}

static void extremes(const void *pixel, bool is_double, int64_t count, double *min,
                     double *max)
{
    *min = INFINITY;
    *max = -INFINITY;
    for (int64_t k = 0; k < count; ++k) {
        const double value =
            is_double ? ((const double *)pixel)[k] : (double)((const float *)pixel)[k];
        if (!isfinite(value)) continue;
        if (value < *min) *min = value;
        if (value > *max) *max = value;
    }
}

/* A tess_image_taker. */
static tess_status take(void *context, const tess_image_product *product)
{
    tess_status status = TESS_OK;
    tess_image *image = context;
    const int64_t pixels = product->num_rows * product->meta->nx;
    const size_t element = product->is_double ? sizeof(double) : sizeof(float);
    double min, max;
    void *array = image->held;
    held_image *held = tess_alloc_zero(1, sizeof *held);
    if (held) held->pixel = tess_alloc(pixels, element);
    if (!held || !held->pixel ||
        tess_grow(&array, &image->capacity, image->count + 1, sizeof(held_image *)))
        TESS_FAIL(TESS_ERR_ALLOC, "no memory to keep an image of %s",
                  tess_mem_text((double)pixels * (double)element));
    image->held = array;
    memcpy(held->pixel, product->pixel, (size_t)pixels * element);
    fill_info(product, held);
    extremes(held->pixel, product->is_double, pixels, &min, &max);
    TESS_TRY(tess_fits_header_text(product->meta, product->is_double, min, max,
                                   &held->header, &held->info.header_bytes));
    held->info.header = held->header;
    image->held[image->count++] = held;
    held = NULL;
cleanup:
    free_held(held);
    return status;
}

tess_status tess_image_run(tess_image *image)
{
    tess_status status = TESS_OK;
    tess_comm *comm = NULL;
    tess_profile profile;
    tess_image_args args = {.in_memory = true};
    text_list argv = {0};
    tess_error_call_begin();
    pthread_mutex_lock(&turn);
    forget_images(image);
    tess_profile_start(&profile);
    TESS_TRY(tess_comm_self(&comm));
    TESS_TRY(make_arguments(image, &argv));
    TESS_TRY(tess_image_args_parse(comm, "", (int)argv.count, argv.text, &args));
    args.opts.take = take;
    args.opts.take_context = image;
    TESS_TRY(tess_imager_image(comm, &args.opts, &profile));
    TESS_TRY(tess_profile_summary(comm, &profile));
    if (args.profile) TESS_TRY(tess_profile_write(comm, &profile, args.profile, args.overwrite));
cleanup:
    if (status != TESS_OK) forget_images(image);
    tess_log_start(0, TESS_LOG_QUIET);
    tess_image_args_free(&args);
    free_texts(&argv);
    tess_comm_free(comm);
    pthread_mutex_unlock(&turn);
    return tess_error_call_end(status);
}

int64_t tess_image_count(const tess_image *image)
{
    return image->count;
}

const tess_image_info *tess_image_get(const tess_image *image, int64_t k)
{
    return k >= 0 && k < image->count ? &image->held[k]->info : NULL;
}
