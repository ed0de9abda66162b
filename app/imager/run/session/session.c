/* A session holds the visibility sets of all outputs of its observations. */
#include "tess_imager_session.h"

#include <math.h>

#include "image_output.h"
#include "image_primary_beam.h"
#include "patch_images.h"
#include "run_samples.h"
#include "session_private.h"
#include "tess_log.h"
#include "tess_mem.h"

/* Makes the visibility set of one output. Collective. */
static tess_status open_output(image_session *session, int64_t k)
{
    tess_status status = TESS_OK;
    image_run *run = &session->run;
    session_output *output = &session->output[k];
    tess_density *density = NULL;
    const imager_stages no_stages = {.comm = run->comm};
    if (run->outputs.extent[k].num_vis == 0) return TESS_OK;
    TESS_TRY(image_weighted_data(run, k, &output->data, output->variance, &density));
    TESS_TRY(visset_create(&run->job, &output->data, false, &no_stages, &output->set));
    if (output->set.over && !output->set.spool)
        TESS_FAIL(TESS_ERR_RESOURCE, "a session cannot take passes over data");
    visset_leave(&output->set);
cleanup:
    tess_density_destroy(density);
    return status;
}

static void note_facts(image_session *session)
{
    const image_run *run = &session->run;
    image_session_facts *facts = &session->facts;
    *facts = (image_session_facts){.num_intervals = run->outputs.num_intervals,
                                   .num_channels = run->outputs.num_channels,
                                   .num_pol = run->num_pol,
                                   .nx = session->opts.nx,
                                   .ny = session->opts.ny,
                                   .scale_rad = session->opts.scale_rad,
                                   .ra_rad = run->info->ra_rad,
                                   .dec_rad = run->info->dec_rad,
                                   .is_double = run->job.plan->is_double};
    for (int p = 0; p < run->num_pol; ++p)
        tess_pol_name(&run->pol[p], facts->pol[p]);
    tess_planes_final_rows(session->opts.ny, run->job.ranks.fft_ranks,
                           tess_comm_rank(run->comm), tess_comm_size(run->comm),
                           &facts->row_first, &facts->num_rows);
}

/* Refuses what only `tessera image` makes. Local. */
static tess_status check_opts(const tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    if (opts->beside.weights)
        TESS_FAIL(TESS_ERR_USAGE, "a session stores no imaging weights: "
                                  "--store-imaging-weights is for tessera image");
    if (opts->beside.primary_beam.model && !opts->selection.joins_pointings)
        TESS_FAIL(TESS_ERR_USAGE,
                  "in a session, --primary-beam needs --mosaic; only tessera image "
                  "makes beams of other images");
    if (opts->channels.axis.given)
        TESS_FAIL(TESS_ERR_USAGE, "a session has the channels of the data: --frame and "
                                  "the options of its axis are for tessera image");
    if (opts->clean.minor.niter > 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "a session is opened without --niter: it cleans when it "
                  "is asked to");
cleanup:
    return status;
}

/* Reads all samples, weights them, sends them to their owners and sorts them.
 * Collective. */
static tess_status open_all(image_session *session)
{
    tess_status status = TESS_OK;
    image_run *run = &session->run;
    TESS_TRY(check_opts(run->opts));
    TESS_TRY(image_set_up(run));
    TESS_TRY(image_primary_beam_open(run));
    TESS_TRY(tess_comm_agree(run->comm, tess_log_keep()));
    imager_model_expect(&run->job, run->pol, run->num_pol);
    TESS_TRY(image_read_and_plan(run, "a session"));
    session->output = tess_alloc_zero(run->outputs.num, sizeof *session->output);
    TESS_TRY(tess_comm_agree(run->comm, session->output ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t k = 0; k < run->outputs.num; ++k) {
        TESS_TRY(image_share_density(run, k / run->outputs.num_channels));
        TESS_TRY(open_output(session, k));
    }
    tess_samples_free(&run->all);
    note_facts(session);
cleanup:
    return status;
}

tess_status image_session_open(tess_comm *comm, const tess_image_opts *opts,
                               tess_profile *profile, image_session **session_out)
{
    tess_status status = TESS_OK;
    image_session *session = tess_alloc_zero(1, sizeof *session);
    TESS_TRY(tess_comm_agree(comm, session ? TESS_OK : TESS_ERR_ALLOC));
    session->opts = *opts;
    session->opts.output = session->opts.subtract.model = NULL;
    session->opts.beside.dump_stages = NULL;
    session->opts.subtract.pixels = NULL;
    session->opts.gridding.facets.writes = false;
    session->opts.checkpoint = (tess_checkpoint_opts){0};
    session->opts.make_psf = true;
    session->run = (image_run){.comm = comm,
                               .opts = &session->opts,
                               .profile = profile,
                               .holds = {.stay = true, .together = true},
                               .teams = {.all = comm, .num = 1}};
    TESS_TRY(open_all(session));
    *session_out = session;
    session = NULL;
cleanup:
    image_session_close(session);
    return status;
}

void image_session_close(image_session *session)
{
    if (!session) return;
    for (int64_t k = 0; session->output && k < session->run.outputs.num; ++k) {
        visset_free(&session->output[k].set);
        session_forget_roots(&session->output[k]);
        image_data_free(&session->output[k].data);
    }
    tess_free(session->output);
    session_predictor_free(&session->predictor);
    session_solutions_free(&session->solutions);
    image_free_run(&session->run);
    tess_free(session);
}

const image_session_facts *image_session_facts_of(const image_session *session)
{
    return &session->facts;
}

void image_session_weights(const image_session *session, int64_t interval,
                           int64_t channel, double *sum, double *freq_hz,
                           int64_t *num_vis)
{
    const output_table *outputs = &session->run.outputs;
    const int64_t k = interval * outputs->num_channels + channel;
    const imager_extent *extent = &outputs->extent[k];
    const visset *set = &session->output[k].set;
    *num_vis = extent->num_vis;
    *freq_hz = extent->num_vis > 0 ? extent->freq_sum / (double)extent->num_vis : 0;
    for (int p = 0; p < session->run.num_pol; ++p)
        sum[p] = set->job ? set->sums.weight[set->sums.num_weight == 1 ? 0 : p] /
                                session->output[k].data.weight_scale
                          : 0;
}

/* ---- images ---- */

/* Puts the rows of a model, which is in true flux, onto the planes of an output.
 * Collective. */
static tess_status set_model(image_session *session, int64_t k, const double *model)
{
    tess_rows rows[2 * TESS_MAX_POL];
    session_model_rows(session, model, rows);
    return patch_images_set_model(&session->run, k, rows, NULL);
}

/* Fills the caller's arrays of an output that has no visibilities. */
static void blank(const image_session *session, double *image, double *psf)
{
    const image_session_facts *facts = &session->facts;
    const int64_t count = facts->num_pol * facts->num_rows * facts->nx;
    for (int64_t k = 0; k < count; ++k)
        image[k] = (double)NAN;
    for (int64_t k = 0; psf && k < count; ++k)
        psf[k] = (double)NAN;
}

/* Copies an image to the caller's array. Local. */
static tess_status take_image(const imager_product *product, double *image)
{
    tess_status status = TESS_OK;
    tess_rows view = {0};
    TESS_TRY(tess_rows_view(&product->rows, &view));
    tess_rows_doubles(&view, 0, tess_rows_count(&view), image);
cleanup:
    tess_rows_free(&view);
    return status;
}

tess_status session_images(image_session *session, int64_t k,
                           const visset_request *request, const double *model,
                           double *image, double *psf)
{
    tess_status status = TESS_OK;
    const image_session_facts *facts = &session->facts;
    const int64_t pixels = facts->num_rows * facts->nx;
    const imager_stages no_stages = {.comm = session->run.comm};
    imager_product product[4 * TESS_MAX_POL] = {0};
    session_output *output = &session->output[k];
    imager_product *roots = session_roots(session, output);
    visset *set = &output->set;
    if (!set->job) {
        blank(session, image, psf);
        return TESS_OK;
    }
    visset_enter(set);
    status = request->less_model ? set_model(session, k, model) : TESS_OK;
    if (roots && output->has_root) roots = NULL;
    if (status == TESS_OK)
        status = patch_images_make(&session->run, k, set, request, &no_stages, product,
                                   roots);
    visset_leave(set);
    if (status != TESS_OK && roots) session_forget_roots(output);
    TESS_TRY(status);
    output->has_root = output->has_root || roots;
    for (int p = 0; p < facts->num_pol && pixels > 0 && status == TESS_OK; ++p) {
        const int weight = facts->num_pol + (set->sums.num_weight == 1 ? 0 : p);
        status = take_image(&product[p], image + p * pixels);
        if (psf && status == TESS_OK)
            status = take_image(&product[weight], psf + p * pixels);
    }
    TESS_TRY(tess_comm_agree(session->run.comm, status));
cleanup:
    for (int i = 0; i < 4 * TESS_MAX_POL; ++i)
        tess_rows_free(&product[i].rows);
    return status;
}

tess_status image_session_image(image_session *session, int64_t interval,
                                int64_t channel, const double *model, double *image,
                                double *psf)
{
    tess_status status = TESS_OK;
    const int64_t output = interval * session->run.outputs.num_channels + channel;
    session_arrays given = {model != NULL, image != NULL, psf != NULL};
    TESS_TRY(session_agree(session, interval, channel, &given));
    if (!given.image) TESS_FAIL(TESS_ERR_USAGE, "no array for the image is given");
    const visset_request request = {.psf = given.psf, .less_model = given.model};
    TESS_TRY(session_images(session, output, &request, model, image, psf));
cleanup:
    return status;
}
