/* Sessions within a program: the options of `tessera image`, and images of open
 * observations in the caller's arrays. */
#include "api_options.h"
#include "tess_image_args.h"
#include "tess_imager_session.h"
#include "tess_mem.h"
#include "tessera/tess_session.h"

struct tess_session {
    api_options options;
    tess_comm *comm;
    tess_profile profile;
    tess_image_args args; /* while it is open */
    imager_session *open; /* or NULL */
    tess_session_info info;
};

tess_status tess_session_create(tess_session **session)
{
    tess_status status = TESS_OK;
    tess_error_call_begin();
    tess_session *made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "session");
    *session = made;
cleanup:
    return tess_error_call_end(status);
}

static void close(tess_session *session)
{
    imager_session_close(session->open);
    session->open = NULL;
    tess_image_args_free(&session->args);
    tess_comm_free(session->comm);
    session->comm = NULL;
}

void tess_session_destroy(tess_session *session)
{
    if (!session) return;
    close(session);
    api_options_free(&session->options);
    tess_free(session);
}

tess_status tess_session_set(tess_session *session, const char *name, const char *value)
{
    tess_error_call_begin();
    return tess_error_call_end(api_options_set(&session->options, name, value));
}

static void fill_info(tess_session *session)
{
    const imager_session_facts *facts = imager_session_facts_of(session->open);
    session->info = (tess_session_info){.num_intervals = facts->num_intervals,
                                        .num_channels = facts->num_channels,
                                        .num_pol = facts->num_pol,
                                        .nx = facts->nx,
                                        .ny = facts->ny,
                                        .scale_rad = facts->scale_rad,
                                        .ra_rad = facts->ra_rad,
                                        .dec_rad = facts->dec_rad,
                                        .is_double = facts->is_double};
}

tess_status tess_session_open(tess_session *session)
{
    tess_status status = TESS_OK;
    api_texts argv = {0};
    tess_error_call_begin();
    api_turn_begin();
    if (session->open) TESS_FAIL(TESS_ERR_USAGE, "the session is open already");
    session->args = (tess_image_args){.in_memory = true};
    tess_profile_start(&session->profile);
    TESS_TRY(tess_comm_self(&session->comm));
    TESS_TRY(api_options_arguments(&session->options, "image", &argv));
    TESS_TRY(tess_image_args_parse(session->comm, "", (int)argv.count, argv.text,
                                   &session->args));
    TESS_TRY(imager_session_open(session->comm, &session->args.opts, &session->profile,
                                 &session->open));
    fill_info(session);
cleanup:
    if (status != TESS_OK && !session->open) close(session);
    api_texts_free(&argv);
    api_turn_end();
    return tess_error_call_end(status);
}

const tess_session_info *tess_session_info_of(const tess_session *session)
{
    return session->open ? &session->info : NULL;
}

const char *tess_session_polarisation(const tess_session *session, int pol)
{
    if (!session->open || pol < 0 || pol >= session->info.num_pol) return NULL;
    return imager_session_facts_of(session->open)->pol[pol];
}

static tess_status check_open(const tess_session *session)
{
    tess_status status = TESS_OK;
    if (!session->open)
        TESS_FAIL(TESS_ERR_USAGE, "the session is not open; call tess_session_open()");
cleanup:
    return status;
}

tess_status tess_session_weights_of(tess_session *session, int64_t interval,
                                    int64_t channel, int pol,
                                    tess_session_weights *weights)
{
    tess_status status = TESS_OK;
    double sum[2 * TESS_MAX_POL];
    const tess_session_info *info = &session->info;
    tess_error_call_begin();
    TESS_TRY(check_open(session));
    if (interval < 0 || interval >= info->num_intervals || channel < 0 ||
        channel >= info->num_channels || pol < 0 || pol >= info->num_pol)
        TESS_FAIL(TESS_ERR_USAGE,
                  "the session has no polarisation %d of output channel %lld in "
                  "interval %lld",
                  pol, (long long)channel, (long long)interval);
    imager_session_weights(session->open, interval, channel, sum, &weights->freq_hz,
                           &weights->num_vis);
    weights->sum = sum[pol];
cleanup:
    return tess_error_call_end(status);
}

tess_status tess_session_image(tess_session *session, int64_t interval, int64_t channel,
                               const double *model, double *image, double *psf)
{
    tess_status status = TESS_OK;
    tess_error_call_begin();
    api_turn_begin();
    TESS_TRY(check_open(session));
    TESS_TRY(imager_session_image(session->open, interval, channel, model, image, psf));
cleanup:
    api_turn_end();
    return tess_error_call_end(status);
}
