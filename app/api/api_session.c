/* Sessions within a program: the options of `tessera image`, and images of open
 * observations in the caller's arrays. */
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "api_calls.h"
#include "api_images.h"
#include "api_options.h"
#include "tess_image_args.h"
#include "tess_imager_session.h"
#include "tess_mem.h"
#include "tessera/tess_session.h"

struct tess_session {
    api_options options;
    tess_comm *comm; /* ranks that share the session; owned */
    tess_profile profile;
    tess_image_args args; /* while it is open */
    image_session *open;  /* or NULL */
    tess_session_info info;
    pid_t process; /* that created it */
    pthread_mutex_t lock;
    pthread_cond_t left; /* signals that a call has ended */
    int num_calls;       /* calls that have begun and not ended */
    bool ending;         /* no other call begins its work */
    char *header;        /* that was asked for last, or NULL */
};

/* ---- calls of several threads ---- */

/* Begins a call. A child of the process would read through the file positions that it
 * shares with it, and has none of its threads. Followed by leave() if it succeeds. */
static tess_status enter(tess_session *session)
{
    tess_status status = api_call_begin();
    if (status != TESS_OK) return status;
    if (session->process != getpid())
        TESS_FAIL(
            TESS_ERR_USAGE,
            "the session belongs to process %lld, which this one was forked from; "
            "open a session in this process",
            (long long)session->process);
    pthread_mutex_lock(&session->lock);
    ++session->num_calls;
    pthread_mutex_unlock(&session->lock);
cleanup:
    return status == TESS_OK ? status : api_call_end(status);
}

static tess_status leave(tess_session *session, tess_status status)
{
    status = api_call_end(status);
    pthread_mutex_lock(&session->lock);
    --session->num_calls;
    pthread_cond_broadcast(&session->left);
    pthread_mutex_unlock(&session->lock);
    return status;
}

/* Waits for the calls of other threads. Those that wait for their turn find that the
 * session ends. */
static void wait_for_calls(tess_session *session)
{
    pthread_mutex_lock(&session->lock);
    session->ending = true;
    while (session->num_calls > 0)
        pthread_cond_wait(&session->left, &session->lock);
    pthread_mutex_unlock(&session->lock);
}

/* TESS_ERR_USAGE once another thread is about to destroy the session. */
static tess_status check_stays(tess_session *session)
{
    tess_status status = TESS_OK;
    pthread_mutex_lock(&session->lock);
    const bool ending = session->ending;
    pthread_mutex_unlock(&session->lock);
    if (ending) TESS_FAIL(TESS_ERR_USAGE, "the session is closed by another thread");
cleanup:
    return status;
}

/* ---- opening and closing ---- */

/* A session of these ranks, which owns `comm` from here on, also when this fails.
 * Collective. */
static tess_status create(tess_comm *comm, tess_session **session)
{
    tess_status status = TESS_OK;
    tess_session *made = tess_alloc_zero(1, sizeof *made);
    if (!made)
        status =
            tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__, "session");
    TESS_TRY(tess_comm_agree(comm, status));
    made->comm = comm;
    made->process = getpid();
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->left, NULL);
    *session = made;
    made = NULL;
    comm = NULL;
cleanup:
    tess_free(made);
    tess_comm_free(comm);
    return status;
}

tess_status tess_session_create(tess_session **session)
{
    tess_status status = api_call_begin();
    tess_comm *comm;
    if (status != TESS_OK) return status;
    TESS_TRY(tess_comm_self(&comm));
    TESS_TRY(create(comm, session));
cleanup:
    return api_call_end(status);
}

tess_status tess_session_create_mpi(int64_t comm, tess_session **session)
{
    tess_status status = api_call_begin();
    tess_comm *ranks;
    if (status != TESS_OK) return status;
    TESS_TRY(tess_comm_of(comm, &ranks));
    TESS_TRY(create(ranks, session));
cleanup:
    return api_call_end(status);
}

static void close_all(tess_session *session)
{
    image_session_close(session->open);
    session->open = NULL;
    tess_image_args_free(&session->args);
}

void tess_session_destroy(tess_session *session)
{
    /* a child has a copy of the session's memory and nothing else of it */
    if (!session || session->process != getpid()) return;
    wait_for_calls(session);
    close_all(session);
    pthread_cond_destroy(&session->left);
    pthread_mutex_destroy(&session->lock);
    tess_comm_free(session->comm);
    api_options_free(&session->options);
    tess_free(session->header);
    tess_free(session);
}

tess_status tess_session_set(tess_session *session, const char *name, const char *value)
{
    tess_status status = enter(session);
    if (status != TESS_OK) return status;
    status = api_options_set(&session->options, name, value);
    return leave(session, status);
}

static void fill_info(tess_session *session)
{
    const image_session_facts *facts = image_session_facts_of(session->open);
    session->info = (tess_session_info){.num_intervals = facts->num_intervals,
                                        .num_channels = facts->num_channels,
                                        .num_pol = facts->num_pol,
                                        .nx = facts->nx,
                                        .ny = facts->ny,
                                        .row_first = facts->row_first,
                                        .num_rows = facts->num_rows,
                                        .scale_rad = facts->scale_rad,
                                        .ra_rad = facts->ra_rad,
                                        .dec_rad = facts->dec_rad,
                                        .is_double = facts->is_double};
}

/* All arguments behind one another, each with its end. */
static char *join(const api_texts *argv, int64_t *bytes)
{
    *bytes = 0;
    for (int64_t k = 0; k < argv->count; ++k)
        *bytes += (int64_t)strlen(argv->text[k]) + 1;
    char *all = tess_alloc(*bytes, 1), *to = all;
    for (int64_t k = 0; all && k < argv->count; ++k) {
        const size_t length = strlen(argv->text[k]) + 1;
        memcpy(to, argv->text[k], length);
        to += length;
    }
    return all;
}

/* TESS_ERR_USAGE on a rank whose arguments are not those of rank 0: ranks with options
 * of their own would wait for one another in different places. Collective. */
static tess_status check_same(tess_comm *comm, const api_texts *argv)
{
    tess_status status = TESS_OK;
    int64_t bytes, first_bytes;
    char *own = join(argv, &bytes), *first = NULL;
    first_bytes = bytes;
    TESS_TRY(tess_comm_bcast(comm, &first_bytes, sizeof first_bytes, 0));
    first = tess_alloc(first_bytes, 1);
    if (!own || !first)
        status =
            tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__, "options");
    TESS_TRY(tess_comm_agree(comm, status));
    if (tess_comm_rank(comm) == 0) memcpy(first, own, (size_t)bytes);
    TESS_TRY(tess_comm_bcast(comm, first, first_bytes, 0));
    if (bytes != first_bytes || memcmp(own, first, (size_t)bytes) != 0)
        status = tess_error_record(TESS_ERR_USAGE, __FILE__, __LINE__, __func__,
                                   "rank %d has other options than rank 0",
                                   tess_comm_rank(comm));
    TESS_TRY(tess_comm_agree(comm, status));
cleanup:
    tess_free(own);
    tess_free(first);
    return status;
}

tess_status tess_session_open(tess_session *session)
{
    tess_status status = enter(session);
    api_texts argv = {0};
    if (status != TESS_OK) return status;
    api_turn_begin();
    TESS_TRY(tess_comm_agree(session->comm, check_stays(session)));
    if (session->open) TESS_FAIL(TESS_ERR_USAGE, "the session is open already");
    session->args = (tess_image_args){.in_memory = true, .in_session = true};
    tess_profile_start(&session->profile);
    status = api_options_arguments(&session->options, "image", &argv);
    TESS_TRY(tess_comm_agree(session->comm, status));
    TESS_TRY(check_same(session->comm, &argv));
    TESS_TRY(tess_image_args_parse(session->comm, "", (int)argv.count, argv.text,
                                   &session->args));
    TESS_TRY(image_session_open(session->comm, &session->args.opts, &session->profile,
                                &session->open));
    fill_info(session);
cleanup:
    if (status != TESS_OK && !session->open) close_all(session);
    api_texts_free(&argv);
    api_turn_end();
    return leave(session, status);
}

const tess_session_info *tess_session_info_of(const tess_session *session)
{
    return session->open ? &session->info : NULL;
}

const char *tess_session_polarisation(const tess_session *session, int pol)
{
    if (!session->open || pol < 0 || pol >= session->info.num_pol) return NULL;
    return image_session_facts_of(session->open)->pol[pol];
}

static tess_status check_open(tess_session *session)
{
    tess_status status = TESS_OK;
    TESS_TRY(check_stays(session));
    if (!session->open)
        TESS_FAIL(TESS_ERR_USAGE, "the session is not open; call tess_session_open()");
cleanup:
    return status;
}

/* Ends the turn of a call, and the call. */
static tess_status end_turn(tess_session *session, tess_status status)
{
    api_turn_end();
    return leave(session, status);
}

/* Begins a call to the open session, in its turn. Followed by end_turn() if that
 * succeeds. */
static tess_status begin_turn(tess_session *session)
{
    tess_status status = enter(session);
    if (status != TESS_OK) return status;
    api_turn_begin();
    status = check_open(session);
    return status == TESS_OK ? status : end_turn(session, status);
}

tess_status tess_session_weights_of(tess_session *session, int64_t interval,
                                    int64_t channel, int pol,
                                    tess_session_weights *weights)
{
    tess_status status = enter(session);
    double sum[2 * TESS_MAX_POL];
    const tess_session_info *info = &session->info;
    if (status != TESS_OK) return status;
    TESS_TRY(check_open(session));
    if (interval < 0 || interval >= info->num_intervals || channel < 0 ||
        channel >= info->num_channels || pol < 0 || pol >= info->num_pol)
        TESS_FAIL(TESS_ERR_USAGE,
                  "the session has no polarisation %d of output channel %lld in "
                  "interval %lld",
                  pol, (long long)channel, (long long)interval);
    image_session_weights(session->open, interval, channel, sum, &weights->freq_hz,
                          &weights->num_vis);
    weights->sum = sum[pol];
cleanup:
    return leave(session, status);
}

tess_status tess_session_image(tess_session *session, int64_t interval, int64_t channel,
                               const double *model, double *image, double *psf)
{
    tess_status status = begin_turn(session);
    if (status != TESS_OK) return status;
    status = image_session_image(session->open, interval, channel, model, image, psf);
    return end_turn(session, status);
}

/* ---- facets ---- */

int tess_session_num_facets(const tess_session *session)
{
    return session->open ? image_session_num_facets(session->open) : 0;
}

const char *tess_session_facet(const tess_session *session, int facet)
{
    return session->open ? image_session_facet(session->open, facet) : NULL;
}

tess_status tess_session_solutions(tess_session *session, const char *files,
                                   const char *tables)
{
    tess_status status = begin_turn(session);
    if (status != TESS_OK) return status;
    status = image_session_solutions(session->open, files, tables);
    return end_turn(session, status);
}

tess_status tess_session_response(tess_session *session, int64_t interval,
                                  int64_t channel, double *response)
{
    tess_status status = begin_turn(session);
    if (status != TESS_OK) return status;
    status = image_session_response(session->open, interval, channel, response);
    return end_turn(session, status);
}

/* ---- beams, restored images, headers, cleaning ---- */

static void show_beam(const tess_fits_beam *beam, double beam_rad[3])
{
    beam_rad[0] = beam->major_rad;
    beam_rad[1] = beam->minor_rad;
    beam_rad[2] = beam->pa_rad;
}

tess_status tess_session_beam(tess_session *session, int64_t interval, int64_t channel,
                              double beam_rad[3])
{
    tess_status status = begin_turn(session);
    tess_fits_beam beam = {0};
    if (status != TESS_OK) return status;
    TESS_TRY(image_session_beam(session->open, interval, channel, &beam));
    show_beam(&beam, beam_rad);
cleanup:
    return end_turn(session, status);
}

tess_status tess_session_restore(tess_session *session, int64_t interval,
                                 int64_t channel, const tess_restored *arrays)
{
    tess_status status = begin_turn(session);
    if (status != TESS_OK) return status;
    const tess_fits_beam beam = {.major_rad = arrays->beam_rad[0],
                                 .minor_rad = arrays->beam_rad[1],
                                 .pa_rad = arrays->beam_rad[2]};
    const session_restored images = {
        .model = arrays->model, .residual = arrays->residual, .image = arrays->image};
    status = image_session_restore(session->open, interval, channel, &beam, &images);
    return end_turn(session, status);
}

tess_status tess_session_header(tess_session *session, int64_t interval,
                                int64_t channel, const char *kind, int pol,
                                const char **header, int64_t *header_bytes)
{
    tess_status status = begin_turn(session);
    tess_image_meta meta;
    if (status != TESS_OK) return status;
    TESS_TRY(image_session_meta(session->open, interval, channel, kind, pol, &meta));
    tess_free(session->header);
    session->header = NULL;
    TESS_TRY(tess_fits_header_text(&meta, true, (double)NAN, (double)NAN,
                                   &session->header, header_bytes));
    *header = session->header;
cleanup:
    return end_turn(session, status);
}

tess_status tess_session_clean(tess_session *session, tess_image *image)
{
    tess_status status = begin_turn(session);
    if (status != TESS_OK) return status;
    status = api_images_clean(image, session->comm, &session->args, session->open);
    return end_turn(session, status);
}

/* ---- predictions ---- */

/* A segment's description, and the names that it points to. */
typedef struct shown_segment {
    tess_predicted info;
    const char *corr[TESS_MAX_CORR];
} shown_segment;

struct tess_predictions {
    image_predictions made;
    shown_segment *shown; /* [made.count] */
};

static void show_segment(const image_predicted *part, shown_segment *shown)
{
    for (int c = 0; c < part->num_corr; ++c)
        shown->corr[c] = tess_corr_name(part->corr[c]);
    shown->info = (tess_predicted){.num_rows = part->num_rows,
                                   .num_chan = part->num_chan,
                                   .num_corr = part->num_corr,
                                   .vis = part->vis,
                                   .uvw_m = part->uvw_m,
                                   .time_mjd_s = part->time_mjd_s,
                                   .antenna1 = part->antenna1,
                                   .antenna2 = part->antenna2,
                                   .freq_hz = part->freq_hz,
                                   .corr = shown->corr,
                                   .field = part->field};
}

static tess_status show_segments(tess_predictions *predictions)
{
    tess_status status = TESS_OK;
    const int64_t count = predictions->made.count;
    predictions->shown = tess_alloc_zero(count, sizeof *predictions->shown);
    if (!predictions->shown) TESS_FAIL(TESS_ERR_ALLOC, "predictions");
    for (int64_t k = 0; k < count; ++k)
        show_segment(&predictions->made.part[k], &predictions->shown[k]);
cleanup:
    return status;
}

/* TESS_ERR_USAGE for a model that no file could be. Local. */
static tess_status check_file(const tess_model_file *model)
{
    tess_status status = TESS_OK;
    enum { MOST_TERMS = 16 };
    if (!model || !model->path) TESS_FAIL(TESS_ERR_USAGE, "no model is given");
    if (model->num_terms < 0 || model->num_terms > MOST_TERMS)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "a polynomial of %d terms: there may be 1 to %d, or 0 for the nearest "
            "channel",
            model->num_terms, (int)MOST_TERMS);
cleanup:
    return status;
}

/* Begins a call about a model of files, which all ranks name. Followed by end_turn() if
 * that succeeds. Collective. */
static tess_status begin_file(tess_session *session, const tess_model_file *model,
                              image_session_file *file)
{
    tess_status status = begin_turn(session);
    if (status != TESS_OK) return status;
    status = tess_comm_agree(session->comm, check_file(model));
    if (status != TESS_OK) return end_turn(session, status);
    *file = (image_session_file){model->path, model->num_terms};
    return TESS_OK;
}

tess_status tess_session_image_file(tess_session *session, int64_t interval,
                                    int64_t channel, const tess_model_file *model,
                                    double *image, double *psf)
{
    image_session_file file;
    tess_status status = begin_file(session, model, &file);
    if (status != TESS_OK) return status;
    status =
        image_session_image_file(session->open, interval, channel, &file, image, psf);
    return end_turn(session, status);
}

tess_status tess_session_read_model(tess_session *session, int64_t interval,
                                    int64_t channel, const tess_model_file *model_file,
                                    double *model)
{
    image_session_file file;
    tess_status status = begin_file(session, model_file, &file);
    if (status != TESS_OK) return status;
    status = image_session_read_file(session->open, interval, channel, &file, model);
    return end_turn(session, status);
}

/* Predictions of an array, or else of a file. Collective. */
static tess_status predict(tess_session *session, int64_t interval, int64_t channel,
                           const double *model, const image_session_file *file,
                           const image_session_part *part,
                           tess_predictions **predictions)
{
    tess_status status = TESS_OK;
    tess_predictions *made = tess_alloc_zero(1, sizeof *made);
    TESS_TRY(tess_comm_agree(session->comm, made ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(file ? image_session_predict_file(session->open, interval, channel, file,
                                               &made->made)
                  : image_session_predict(session->open, interval, channel, model, part,
                                          &made->made));
    TESS_TRY(tess_comm_agree(session->comm, show_segments(made)));
    *predictions = made;
    made = NULL;
cleanup:
    tess_predictions_destroy(made);
    return status;
}

tess_status tess_session_predict(tess_session *session, int64_t interval,
                                 int64_t channel, const double *model,
                                 tess_predictions **predictions)
{
    return tess_session_predict_facet(session, interval, channel, model, NULL, true,
                                      predictions);
}

tess_status tess_session_predict_facet(tess_session *session, int64_t interval,
                                       int64_t channel, const double *model,
                                       const char *facet, bool with_gains,
                                       tess_predictions **predictions)
{
    tess_status status = begin_turn(session);
    if (status != TESS_OK) return status;
    const image_session_part part = {facet, !with_gains};
    status = predict(session, interval, channel, model, NULL, &part, predictions);
    return end_turn(session, status);
}

tess_status tess_session_predict_file(tess_session *session, int64_t interval,
                                      int64_t channel, const tess_model_file *model,
                                      tess_predictions **predictions)
{
    image_session_file file;
    tess_status status = begin_file(session, model, &file);
    if (status != TESS_OK) return status;
    status = predict(session, interval, channel, NULL, &file, NULL, predictions);
    return end_turn(session, status);
}

int64_t tess_predictions_count(const tess_predictions *predictions)
{
    return predictions->made.count;
}

const tess_predicted *tess_predictions_get(const tess_predictions *predictions,
                                           int64_t k)
{
    return k >= 0 && k < predictions->made.count ? &predictions->shown[k].info : NULL;
}

void tess_predictions_destroy(tess_predictions *predictions)
{
    if (!predictions) return;
    image_predictions_free(&predictions->made);
    tess_free(predictions->shown);
    tess_free(predictions);
}
