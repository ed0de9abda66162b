/* The imager within a program: the options of `tessera image`, and its images in
 * memory. */
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "api_calls.h"
#include "api_images.h"
#include "api_options.h"
#include "tess_fits.h"
#include "tess_image_args.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_real.h"
#include "tessera/tess_images.h"

/* An image and what its description points to. */
typedef struct held_image {
    tess_image_info info;
    char kind[32], polarisation[8];
    void *pixel;
    char *header;
} held_image;

struct tess_image {
    api_options options;
    const tess_model *subtract;  /* the caller's, or NULL */
    tess_major_watcher *watcher; /* or NULL */
    void *watcher_context;
    held_image **held; /* [count]: their addresses are given away */
    int64_t count, capacity;
};

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
    tess_status status = api_call_begin();
    if (status != TESS_OK) return status;
    tess_image *made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "imager");
    *image = made;
cleanup:
    return api_call_end(status);
}

void tess_image_destroy(tess_image *image)
{
    if (!image) return;
    forget_images(image);
    tess_free(image->held);
    api_options_free(&image->options);
    tess_free(image);
}

tess_status tess_image_set(tess_image *image, const char *name, const char *value)
{
    tess_status status = api_call_begin();
    if (status != TESS_OK) return status;
    status = api_options_set(&image->options, name, value);
    return api_call_end(status);
}

void tess_image_subtract(tess_image *image, const tess_model *model)
{
    image->subtract = model;
}

void tess_image_watch(tess_image *image, tess_major_watcher *watcher, void *context)
{
    image->watcher = watcher;
    image->watcher_context = context;
}

/* ---- a run ---- */

/* As of tess_clean_watch: tells the caller's watcher. */
static bool tell(void *context, const tess_clean_told *told)
{
    const tess_image *image = context;
    const tess_major major = {.interval = told->interval,
                              .channel = told->channel,
                              .polarisation = told->polarisation,
                              .major = told->major,
                              .minor_iterations = told->minor_iterations,
                              .iterations = told->iterations,
                              .peak_start = told->peak_start,
                              .peak_end = told->peak_end,
                              .threshold = told->threshold,
                              .rms = told->rms_jy,
                              .flux_jy = told->flux_jy,
                              .end = told->end};
    return image->watcher(image->watcher_context, &major);
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
                                   .beam_major_rad = meta->beam.major_rad,
                                   .beam_minor_rad = meta->beam.minor_rad,
                                   .beam_pa_rad = meta->beam.pa_rad,
                                   .sum_weights = meta->gridded.sum_weights,
                                   .num_vis = (double)meta->gridded.num_vis};
}

static void extremes(const void *pixel, bool is_double, int64_t count, double *min,
                     double *max)
{
    *min = INFINITY;
    *max = -INFINITY;
    for (int64_t k = 0; k < count; ++k) {
        const double value = tess_real_at(pixel, is_double, k);
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

/* What SIGUSR1 and SIGTERM do is the caller's: a run with checkpoints, which they stop,
 * borrows them. */
typedef struct borrowed_signals {
    struct sigaction user, terminate;
} borrowed_signals;

static void borrow_signals(borrowed_signals *before)
{
    sigaction(SIGUSR1, NULL, &before->user);
    sigaction(SIGTERM, NULL, &before->terminate);
}

static void give_signals_back(const borrowed_signals *before)
{
    sigaction(SIGUSR1, &before->user, NULL);
    sigaction(SIGTERM, &before->terminate, NULL);
}

/* Parses the options of an imager, for a run that gives it its images. Collective. */
static tess_status parse(tess_comm *comm, tess_image *image, api_texts *argv,
                         tess_image_args *args)
{
    tess_status status = TESS_OK;
    TESS_TRY(api_options_arguments(&image->options, "image", argv));
    TESS_TRY(tess_image_args_parse(comm, "", (int)argv->count, argv->text, args));
    args->opts.take = take;
    args->opts.take_context = image;
    if (image->watcher) args->opts.clean.watch = (tess_clean_watch){tell, image};
cleanup:
    return status;
}

tess_status tess_image_run(tess_image *image)
{
    tess_status status = api_call_begin();
    tess_comm *comm = NULL;
    tess_profile profile;
    tess_image_args args = {.in_memory = true};
    api_texts argv = {0};
    tess_fits_pixels pixels;
    borrowed_signals signals;
    if (status != TESS_OK) return status;
    api_turn_begin();
    borrow_signals(&signals);
    forget_images(image);
    tess_profile_start(&profile);
    TESS_TRY(tess_comm_self(&comm));
    TESS_TRY(parse(comm, image, &argv, &args));
    if (image->subtract) {
        if (args.opts.subtract.model)
            TESS_FAIL(TESS_ERR_USAGE,
                      "--subtract and a model in memory exclude each other");
        TESS_TRY(api_model_pixels(image->subtract, args.opts.scale_rad, &pixels));
        args.opts.subtract.pixels = &pixels;
    }
    TESS_TRY(tess_image_args_run(comm, &args, &profile));
cleanup:
    if (status != TESS_OK) forget_images(image);
    if (args.opts.checkpoint.folder) give_signals_back(&signals);
    tess_image_args_free(&args);
    api_texts_free(&argv);
    tess_comm_free(comm);
    api_turn_end();
    return api_call_end(status);
}

tess_status api_images_clean(tess_image *image, tess_comm *comm,
                             const tess_image_args *opened, image_session *session)
{
    tess_status status = TESS_OK;
    tess_image_args args = {.in_memory = true, .in_session = true};
    api_texts argv = {0};
    forget_images(image);
    TESS_TRY(parse(comm, image, &argv, &args));
    TESS_TRY(tess_comm_agree(comm, tess_image_args_check_call(opened, &args)));
    TESS_TRY(image_session_clean(session, &args.opts));
cleanup:
    if (status != TESS_OK) forget_images(image);
    tess_image_args_free(&args);
    api_texts_free(&argv);
    return status;
}

int64_t tess_image_count(const tess_image *image)
{
    return image->count;
}

const tess_image_info *tess_image_get(const tess_image *image, int64_t k)
{
    return k >= 0 && k < image->count ? &image->held[k]->info : NULL;
}
