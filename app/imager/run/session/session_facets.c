/* The facets of a session: their gains, which may change from call to call, their
 * responses, and their predictions. The samples that the session holds stay as they
 * are. */
#include <string.h>

#include "image_facets.h"
#include "imager_targets.h"
#include "patch_images.h"
#include "session_private.h"
#include "tess_hash.h"
#include "tess_mem.h"

/* ---- facets ---- */

int image_session_num_facets(const image_session *session)
{
    const image_facets *facets = session->run.whole.facets;
    return facets ? facets->patches.num : 0;
}

const char *image_session_facet(const image_session *session, int facet)
{
    const image_facets *facets = session->run.whole.facets;
    if (facet < 0 || facet >= image_session_num_facets(session)) return NULL;
    return facets->facets.facet[facets->facet[facet]].name;
}

/* Local. */
static tess_status check_facets(const image_session *session)
{
    tess_status status = TESS_OK;
    if (!session->run.whole.facets)
        TESS_FAIL(TESS_ERR_USAGE, "the session has no facets: it is opened without "
                                  "--facets");
cleanup:
    return status;
}

tess_status session_refuse_facets(const image_session *session)
{
    tess_status status = TESS_OK;
    if (session->run.whole.facets)
        TESS_FAIL(TESS_ERR_USAGE, "a session with facets takes models as arrays: read "
                                  "the model in files into one first");
cleanup:
    return status;
}

/* ---- gains ---- */

/* Refuses ranks that name different texts. Collective. */
static tess_status agree_on_texts(const image_session *session, const char *first,
                                  const char *second, int64_t number)
{
    tess_status status = TESS_OK;
    uint64_t hash = TESS_HASH_START;
    if (first) hash = tess_hash(hash, first, strlen(first) + 1);
    if (second) hash = tess_hash(hash, second, strlen(second) + 1);
    const int64_t name = (int64_t)(hash >> 2);
    int64_t most[] = {name, -name, number, -number};
    TESS_TRY(tess_comm_allreduce_i64(session->run.comm, most,
                                     sizeof most / sizeof *most, TESS_MAX));
    if (most[0] != -most[1] || most[2] != -most[3])
        TESS_FAIL(TESS_ERR_USAGE, "the ranks pass different arguments");
cleanup:
    return status;
}

static facet_setup setup_of(const image_session *session,
                            const tess_facet_choice *choice)
{
    const image_run *run = &session->run;
    return (facet_setup){.comm = run->comm,
                         .choice = choice,
                         .geom = run->whole.geom,
                         .source = run->source,
                         .pol = run->pol,
                         .num_pol = run->num_pol,
                         .threads = session->opts.layout.threads,
                         .changes = true};
}

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

/* Gives the facets of images and of predictions the gains of a choice. On failure the
 * images keep theirs, and the next prediction begins anew with these. Collective. */
static tess_status change_gains(image_session *session, const tess_facet_choice *choice)
{
    tess_status status = TESS_OK;
    image_run *run = &session->run;
    session_predictor *predictor = &session->predictor;
    facet_setup setup = setup_of(session, choice);
    facet_setup predicts = setup;
    predicts.source = predictor->source;
    predicts.predicts = true;
    if (predictor->facets) TESS_TRY(image_facets_change(&predicts, predictor->facets));
    status = image_facets_change(&setup, run->whole.facets);
    if (status != TESS_OK) session_predictor_free(predictor);
    TESS_TRY(status);
    run->job.view = image_facets_view(run->whole.facets);
    for (int64_t k = 0; k < run->outputs.num; ++k) {
        session_forget_roots(&session->output[k]);
        if (session->output[k].set.job)
            TESS_TRY(visset_count_responses(&session->output[k].set));
    }
cleanup:
    return status;
}

tess_status image_session_solutions(image_session *session, const char *files,
                                    const char *tables)
{
    tess_status status = TESS_OK;
    tess_facet_choice choice = session->opts.gridding.facets;
    session_solutions names = {0};
    TESS_TRY(agree_on_texts(session, files, tables, 0));
    status = check_facets(session);
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

imager_product *session_roots(const image_session *session, session_output *output)
{
    return image_has_solutions(&session->opts) ? output->root : NULL;
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
    if (has_some) TESS_TRY(find_roots(session, k));
    for (int p = 0; p < facts->num_pol && pixels > 0; ++p) {
        if (has_some)
            tess_rows_doubles(&output->root[p].rows, 0, pixels, response + p * pixels);
        for (int64_t i = 0; i < pixels && !has_some; ++i)
            response[p * pixels + i] = 1;
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

/* ---- predictions ---- */

tess_status session_add_facets(image_session *session, session_predictor *to,
                               imager_model *model)
{
    tess_status status = TESS_OK;
    facet_setup setup = setup_of(session, &session->opts.gridding.facets);
    setup.source = to->source;
    setup.predicts = true;
    if (!session->run.whole.facets) return TESS_OK;
    TESS_TRY(image_facets_create(&setup, &to->facets));
    const image_patches *patches = &to->facets->patches;
    model->parts = (imager_parts){.num = patches->num,
                                  .geom = patches->geom,
                                  .first = (const int64_t(*)[2])patches->first,
                                  .weigh = image_facets_weigh,
                                  .context = to->facets};
cleanup:
    return status;
}

/* The first facet of this name. TESS_ERR_USAGE: there is none. Local. */
static tess_status find_facet(const image_session *session, const char *name,
                              int *found)
{
    tess_status status = TESS_OK;
    const int num = image_session_num_facets(session);
    *found = 0;
    while (*found < num && strcmp(image_session_facet(session, *found), name) != 0)
        ++*found;
    if (*found == num) TESS_FAIL(TESS_ERR_USAGE, "the session has no facet '%s'", name);
cleanup:
    return status;
}

tess_status session_choose_part(image_session *session, const image_session_part *part,
                                facet_gains *plain)
{
    tess_status status = TESS_OK;
    session_predictor *predictor = &session->predictor;
    imager_view *view = &predictor->predictor.job.view;
    int facet = 0;
    TESS_TRY(agree_on_texts(session, part->facet, NULL, part->no_gains));
    if (!predictor->facets) return part->facet ? check_facets(session) : TESS_OK;
    *view = image_facets_view(predictor->facets);
    if (part->no_gains) {
        *plain = predictor->facets->gains;
        plain->sources = NULL;
        plain->is_diagonal = true;
        view->context = plain;
    }
    if (!part->facet) return TESS_OK;
    TESS_TRY(find_facet(session, part->facet, &facet));
    view->first_predicted = facet;
    view->num_predicted = 1;
cleanup:
    return status;
}
