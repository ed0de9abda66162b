/* The gains of a session's facets, which may change from call to call, and the
 * responses that images then have. The samples that the session holds stay as they are.
 */
#include <math.h>

#include "image_facets.h"
#include "imager_targets.h"
#include "patch_images.h"
#include "session_private.h"
#include "tess_mem.h"

/* ---- gains ---- */

/* Copies of the names of files and tables, or NULL. Local. */
static tess_status copy_names(const char *files, const char *tables,
                              session_solutions *names)
{
    tess_status status = TESS_OK;
    if (files) names->files = tess_strdup(files);
    if (tables) names->tables = tess_strdup(tables);
    if ((files && !names->files) || (tables && !names->tables))
        TESS_FAIL(TESS_ERR_ALLOC, "names of solutions");
cleanup:
    return status;
}

void session_solutions_free(session_solutions *names)
{
    tess_free(names->files);
    tess_free(names->tables);
    *names = (session_solutions){0};
}

void session_forget_roots(session_output *output)
{
    for (int p = 0; p < TESS_MAX_POL; ++p)
        tess_rows_free(&output->root[p].rows);
    output->has_root = false;
}

/* The responses counted[num_outputs] of images with the gains that facets have now.
 * Collective. */
static tess_status count_responses(image_session *session, imager_responses *counted)
{
    tess_status status = TESS_OK;
    image_run *run = &session->run;
    run->job.view = image_facets_view(run->whole.facets);
    for (int64_t k = 0; k < run->outputs.num; ++k)
        if (session->output[k].set.job)
            TESS_TRY(visset_count_responses(&session->output[k].set, &counted[k]));
cleanup:
    return status;
}

/* Gives outputs their new responses, and the old ones to `counted`. Local. */
static void exchange_responses(image_session *session, imager_responses *counted)
{
    for (int64_t k = 0; k < session->run.outputs.num; ++k) {
        session_output *output = &session->output[k];
        const imager_responses old = output->set.sums.responses;
        output->set.sums.responses = counted[k];
        counted[k] = old;
        session_forget_roots(output);
    }
}

/* Gives the facets of images and of predictions the gains of a choice. On failure both
 * keep those that they have. Collective. */
static tess_status change_gains(image_session *session, const tess_facet_choice *choice)
{
    tess_status status = TESS_OK;
    image_run *run = &session->run;
    session_predictor *predictor = &session->predictor;
    facet_setup setup = session_facet_setup(session, choice);
    facet_setup predicts = setup;
    facets_change of_images = {0}, of_predictions = {0};
    imager_responses *counted = tess_alloc_zero(run->outputs.num, sizeof *counted);
    TESS_TRY(tess_comm_agree(run->comm, counted ? TESS_OK : TESS_ERR_ALLOC));
    predicts.source = predictor->source;
    predicts.predicts = true;
    if (predictor->facets)
        TESS_TRY(image_facets_change(&predicts, predictor->facets, &of_predictions));
    TESS_TRY(image_facets_change(&setup, run->whole.facets, &of_images));
    TESS_TRY(count_responses(session, counted));
    exchange_responses(session, counted);
cleanup:
    image_facets_end_change(&of_predictions, status == TESS_OK);
    image_facets_end_change(&of_images, status == TESS_OK);
    run->job.view = image_facets_view(run->whole.facets);
    for (int64_t k = 0; counted && k < run->outputs.num; ++k)
        imager_responses_free(&counted[k]);
    tess_free(counted);
    return status;
}

tess_status image_session_solutions(image_session *session, const char *files,
                                    const char *tables)
{
    tess_status status = TESS_OK;
    tess_facet_choice choice = session->opts.gridding.facets;
    session_solutions names = {0};
    TESS_TRY(session_agree_on_texts(session, files, tables, 0));
    status = session_check_facets(session);
    if (status == TESS_OK) status = copy_names(files, tables, &names);
    TESS_TRY(tess_comm_agree(session->run.comm, status));
    choice.solutions = names.files;
    choice.tables = names.tables;
    TESS_TRY(change_gains(session, &choice));
    session->opts.gridding.facets = choice;
    session_solutions_free(&session->solutions);
    session->solutions = names;
    names = (session_solutions){0};
cleanup:
    session_solutions_free(&names);
    return status;
}

/* ---- responses ---- */

/* Facets and mosaics have responses. Those of a mosaic are its beam, which does not
 * change. */
imager_product *session_roots(const image_session *session, session_output *output)
{
    return image_has_response(&session->opts) ? output->root : NULL;
}

/* Makes the roots of an output's responses, with an image that nobody wants.
 * Collective. */
static tess_status find_roots(image_session *session, int64_t k)
{
    tess_status status = TESS_OK;
    session_output *output = &session->output[k];
    const imager_stages no_stages = {.comm = session->run.comm};
    const visset_request request = {0};
    imager_product made[TESS_MAX_IMAGES] = {0};
    if (output->has_root) return TESS_OK;
    session_forget_roots(output);
    visset_enter(&output->set);
    status = patch_images_make(&session->run, k, &output->set, &request, &no_stages,
                               made, output->root);
    visset_leave(&output->set);
    TESS_TRY(status);
    output->has_root = true;
cleanup:
    for (int p = 0; p < TESS_MAX_IMAGES; ++p)
        tess_rows_free(&made[p].rows);
    return status;
}

tess_status session_take_roots(image_session *session, int64_t k, double *response)
{
    tess_status status = TESS_OK;
    session_output *output = &session->output[k];
    const image_session_facts *facts = &session->facts;
    const int64_t pixels = facts->num_rows * facts->nx;
    const bool has_some = session_roots(session, output) && output->set.job;
    /* without visibilities there is no mosaic */
    const double other = session->run.whole.mosaic ? (double)NAN : 1;
    if (has_some) TESS_TRY(find_roots(session, k));
    for (int p = 0; p < facts->num_pol && pixels > 0; ++p) {
        if (has_some)
            tess_rows_doubles(&output->root[p].rows, 0, pixels, response + p * pixels);
        for (int64_t i = 0; i < pixels && !has_some; ++i)
            response[p * pixels + i] = other;
    }
cleanup:
    return status;
}

tess_status image_session_response(image_session *session, int64_t interval,
                                   int64_t channel, double *response)
{
    tess_status status = TESS_OK;
    session_arrays given = {.image = response != NULL};
    TESS_TRY(session_agree(session, interval, channel, &given));
    if (!given.image) TESS_FAIL(TESS_ERR_USAGE, "no array for the response is given");
    TESS_TRY(session_take_roots(
        session, interval * session->run.outputs.num_channels + channel, response));
cleanup:
    return status;
}
