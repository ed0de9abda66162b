/* What a session makes beyond dirty and residual images: the beam of an output,
 * restored images, headers, and the cleaning of `tessera image` on the visibilities
 * that the session holds. */
#include <math.h>
#include <string.h>

#include "channel_group.h"
#include "clean_inputs.h"
#include "image_beam.h"
#include "image_meta.h"
#include "image_output.h"
#include "majors.h"
#include "patch_images.h"
#include "session_private.h"
#include "tess_mem.h"

/* ---- the beam ---- */

/* Makes the dirty images and PSFs of an output with data, and measures them; also the
 * roots of the responses of facets, unless NULL. Collective. */
static tess_status make_dirty(image_session *session, int64_t k, imager_product *made,
                              imager_product *roots, struct image_found *found)
{
    tess_status status = TESS_OK;
    session_output *output = &session->output[k];
    const imager_stages no_stages = {.comm = session->run.comm};
    const visset_request request = {.psf = true};
    visset_enter(&output->set);
    status = patch_images_make(&session->run, k, &output->set, &request, &no_stages,
                               made, roots);
    visset_leave(&output->set);
    TESS_TRY(status);
    TESS_TRY(image_measure_made(&session->run, k, output->variance, made, found));
cleanup:
    return status;
}

static void free_images(imager_product *made)
{
    for (int k = 0; k < TESS_MAX_IMAGES; ++k)
        tess_rows_free(&made[k].rows);
}

/* Finds the beam of an output once. Collective. */
static tess_status find_beam(image_session *session, int64_t k)
{
    tess_status status = TESS_OK;
    session_output *output = &session->output[k];
    imager_product made[TESS_MAX_IMAGES] = {0};
    if (output->is_measured || !output->set.job) return TESS_OK;
    TESS_TRY(make_dirty(session, k, made, NULL, output->found));
    for (int p = 0; p < session->run.num_pol; ++p) {
        output->weight[p] = made[p].sum_weights;
        output->effective_vis[p] = made[p].effective_vis;
    }
    output->is_measured = true;
cleanup:
    free_images(made);
    return status;
}

static int64_t number_of(const image_session *session, int64_t interval,
                         int64_t channel)
{
    return interval * session->run.outputs.num_channels + channel;
}

tess_status image_session_beam(image_session *session, int64_t interval,
                               int64_t channel, tess_fits_beam *beam)
{
    tess_status status = TESS_OK;
    session_arrays none = {0};
    const int64_t k = number_of(session, interval, channel);
    TESS_TRY(session_agree(session, interval, channel, &none));
    TESS_TRY(find_beam(session, k));
    *beam = session->output[k].found[0].beam;
cleanup:
    return status;
}

/* ---- restored images ---- */

/* A model as the images show it, times the roots of the responses of facets; free
 * `*shown`, which is NULL without gains. Collective. */
static tess_status show_model(image_session *session, int64_t k, const double *model,
                              double **shown)
{
    tess_status status = TESS_OK;
    const image_session_facts *facts = &session->facts;
    const int64_t pixels = facts->num_pol * facts->num_rows * facts->nx;
    *shown = NULL;
    if (!session_roots(session, &session->output[k])) return TESS_OK;
    *shown = tess_alloc(pixels, sizeof **shown);
    TESS_TRY(tess_comm_agree(session->run.comm, *shown ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(session_take_roots(session, k, *shown));
    for (int64_t i = 0; i < pixels; ++i) {
        const double value = model[i] * (*shown)[i];
        (*shown)[i] = isfinite(value) ? value : 0;
    }
cleanup:
    return status;
}

tess_status image_session_restore(image_session *session, int64_t interval,
                                  int64_t channel, const tess_fits_beam *given,
                                  const session_restored *arrays)
{
    tess_status status = TESS_OK;
    const image_session_facts *facts = &session->facts;
    session_arrays passed = {arrays->model != NULL, arrays->image != NULL, false};
    tess_rows model[2 * TESS_MAX_POL], residual[2 * TESS_MAX_POL],
        image[2 * TESS_MAX_POL];
    tess_fits_beam beam = *given;
    double *shown = NULL;
    TESS_TRY(session_agree(session, interval, channel, &passed));
    if (!passed.model || !passed.image)
        TESS_FAIL(TESS_ERR_USAGE, "no array for the model or the image is given");
    if (!(beam.major_rad > 0))
        TESS_TRY(image_session_beam(session, interval, channel, &beam));
    if (!(beam.major_rad > 0))
        TESS_FAIL(TESS_ERR_USAGE,
                  "no beam can be fitted to the PSF of output channel %lld of interval "
                  "%lld; give one",
                  (long long)channel, (long long)interval);
    TESS_TRY(show_model(session, number_of(session, interval, channel), arrays->model,
                        &shown));
    session_model_rows(session, shown ? shown : arrays->model, model);
    session_model_rows(session, arrays->residual, residual);
    session_model_rows(session, arrays->image, image);
    for (int p = 0; p < facts->num_pol; ++p)
        TESS_TRY(
            majors_restore(&session->run, &beam, &model[p], &residual[p], &image[p]));
cleanup:
    tess_free(shown);
    return status;
}

/* ---- headers ---- */

/* Local. */
static tess_status find_kind(const char *name, image_kind *kind)
{
    tess_status status = TESS_OK;
    for (*kind = 0; *kind < IMAGE_PRIMARY_BEAM; ++*kind)
        if (strcmp(name, image_kind_name(*kind)) == 0) return TESS_OK;
    TESS_FAIL(TESS_ERR_USAGE,
              "'%s' is none of dirty, psf, first-residual, model, residual, image",
              name);
cleanup:
    return status;
}

tess_status image_session_meta(image_session *session, int64_t interval,
                               int64_t channel, const char *kind_name, int pol,
                               tess_image_meta *meta)
{
    tess_status status = TESS_OK;
    image_run *run = &session->run;
    session_arrays none = {0};
    image_kind kind;
    tess_image_meta shared;
    const int64_t k = number_of(session, interval, channel);
    TESS_TRY(session_agree(session, interval, channel, &none));
    if (pol < 0 || pol >= run->num_pol)
        TESS_FAIL(TESS_ERR_USAGE, "the session has no polarisation %d", pol);
    TESS_TRY(find_kind(kind_name, &kind));
    TESS_TRY(find_beam(session, k));
    const session_output *output = &session->output[k];
    const imager_product product = {.sum_weights = output->weight[pol],
                                    .variance = output->variance[pol],
                                    .effective_vis = output->effective_vis[pol]};
    image_meta_fill(&run->output, interval, channel, &run->outputs.extent[k], &shared);
    shared.beam = output->found[0].beam;
    *meta = image_meta_of_kind(&run->output, kind, pol, &product, &shared,
                               &output->found[pol]);
cleanup:
    return status;
}

/* ---- cleaning ---- */

/* Makes and cleans the images of a group, whose channels have the session's sets.
 * Collective. */
static tess_status clean_images(image_session *session, channel_group *group)
{
    tess_status status = TESS_OK;
    image_run *run = &session->run;
    const bool alone = group->num_channels == 1;
    for (int c = 0; c < group->num_channels; ++c) {
        group_channel *channel = &group->channel[c];
        if (!channel->has_data) continue;
        TESS_TRY(make_dirty(session, channel->output, channel->made,
                            channel_group_response(run, channel), channel->found));
        channel->freq_hz = visset_freq_hz(&session->output[channel->output].set);
    }
    for (int c = 0; c < group->num_channels && group->num_with_data == 0; ++c)
        TESS_TRY(image_empty_products(run, group->channel[c].product));
    if (group->num_with_data == 0) return TESS_OK;
    for (int c = 0; c < group->num_channels; ++c) {
        group->channel[c].set = session->output[group->channel[c].output].set;
        if (alone) visset_enter(&group->channel[c].set);
    }
    status = majors_clean(group);
    for (int c = 0; c < group->num_channels; ++c) {
        if (alone) visset_leave(&group->channel[c].set);
        session->output[group->channel[c].output].set = group->channel[c].set;
        group->channel[c].set = (visset){0};
    }
cleanup:
    return status;
}

/* Cleans channels together, and gives their images to the taker. Collective. */
static tess_status clean_group(image_session *session, int64_t first, int num_channels)
{
    tess_status status = TESS_OK;
    image_run *run = &session->run;
    const int64_t channels = run->outputs.num_channels;
    channel_group group = {0};
    TESS_TRY(tess_comm_agree(run->comm,
                             channel_group_create(run, first, num_channels, &group)));
    TESS_TRY(clean_images(session, &group));
    for (int c = 0; c < num_channels; ++c) {
        group_channel *channel = &group.channel[c];
        const int64_t k = channel->output;
        TESS_TRY(image_files_write(&run->output, k / channels, k % channels,
                                   channel->product, &run->outputs.extent[k],
                                   channel->found));
    }
cleanup:
    channel_group_free(&group);
    return status;
}

/* Uses the options of a run that cleans, or the session's own again. Local. */
static void use_options(image_run *run, const tess_image_opts *opts)
{
    run->opts = run->output.opts = run->means.opts = opts;
    run->output.kinds = run->means.kinds =
        image_kinds_of(opts, run->num_pol, image_num_psf(run));
}

/* Local. */
static tess_status check_cleaning(const tess_clean_choice *clean)
{
    tess_status status = TESS_OK;
    if (clean->minor.niter < 1) TESS_FAIL(TESS_ERR_USAGE, "cleaning needs --niter");
    if (clean->continues || clean->update_model || clean->only_model ||
        clean->save_sources || clean->beam.common)
        TESS_FAIL(
            TESS_ERR_USAGE,
            "--continue, --update-model, --predict-models, --save-source-list and "
            "--common-beam are for tessera image, not for a session");
cleanup:
    return status;
}

tess_status image_session_clean(image_session *session, const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    image_run *run = &session->run;
    tess_image_opts used = session->opts;
    TESS_TRY(tess_comm_agree(run->comm, check_cleaning(&opts->clean)));
    used.clean = opts->clean;
    used.no_dirty = opts->no_dirty;
    used.take = opts->take;
    used.take_context = opts->take_context;
    used.beside.command_line = opts->beside.command_line;
    use_options(run, &used);
    TESS_TRY(clean_inputs_check(run));
    const int num_channels =
        image_joins_channels(&used) ? (int)run->outputs.num_channels : 1;
    for (int64_t k = 0; k < run->outputs.num; k += num_channels)
        TESS_TRY(clean_group(session, k, num_channels));
cleanup:
    clean_inputs_free(run);
    use_options(run, &session->opts);
    return status;
}
