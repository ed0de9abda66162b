/* The facets of a session, and its predictions of what lies in one of them. */
#include <string.h>

#include "image_facets.h"
#include "session_private.h"
#include "tess_hash.h"

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

tess_status session_check_facets(const image_session *session)
{
    tess_status status = TESS_OK;
    if (!session->run.whole.facets)
        TESS_FAIL(TESS_ERR_USAGE, "the session has no facets: it is opened without "
                                  "--facets");
cleanup:
    return status;
}

tess_status session_refuse_patches(const image_session *session)
{
    tess_status status = TESS_OK;
    if (session->run.whole.patches)
        TESS_FAIL(TESS_ERR_USAGE,
                  "a session with facets or of a mosaic takes models as arrays: read "
                  "the model in files into one first");
cleanup:
    return status;
}

tess_status session_agree_on_texts(const image_session *session, const char *first,
                                   const char *second, int64_t number)
{
    tess_status status = TESS_OK;
    const char *const text[] = {first, second};
    uint64_t hash = TESS_HASH_START;
    for (size_t k = 0; k < sizeof text / sizeof *text; ++k) {
        const int64_t length = text[k] ? (int64_t)strlen(text[k]) : -1;
        hash = tess_hash(hash, &length, sizeof length);
        if (text[k]) hash = tess_hash(hash, text[k], (size_t)length);
    }
    const int64_t name = (int64_t)(hash >> 2); /* −name is a number, too */
    int64_t most[] = {name, -name, number, -number};
    TESS_TRY(tess_comm_allreduce_i64(session->run.comm, most,
                                     sizeof most / sizeof *most, TESS_MAX));
    if (most[0] != -most[1] || most[2] != -most[3])
        TESS_FAIL(TESS_ERR_USAGE, "the ranks pass different arguments");
cleanup:
    return status;
}

facet_setup session_facet_setup(const image_session *session,
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

/* ---- predictions ---- */

tess_status session_add_facets(const image_session *session, session_predictor *to,
                               imager_model *model)
{
    tess_status status = TESS_OK;
    facet_setup setup = session_facet_setup(session, &session->opts.gridding.facets);
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
    TESS_TRY(session_agree_on_texts(session, part->facet, NULL, part->no_gains));
    if (!predictor->facets)
        return part->facet ? session_check_facets(session) : TESS_OK;
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
