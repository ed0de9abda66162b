/* Opens the models that a session reads from files: images, cubes, and sets of images
 * of channels, as `tessera predict` and --subtract read them. The pixels of such a
 * model may differ from those of the images, and each channel of the data may have a
 * model of its own. Therefore the model is predicted on a plan of its own. */
#include "channel_model.h"
#include "pixel_places.h"
#include "session_private.h"

/* Refuses a model whose band has none of the data's channels, because it belongs to
 * another observation. The first call logs how channels of the data use those of the
 * model. Local. */
static tess_status check_channels(image_session *session, const model_cube *cube)
{
    tess_status status = TESS_OK;
    const image_run *run = &session->run;
    const bool tells = !session->has_told && tess_comm_rank(run->comm) == 0;
    TESS_TRY(model_cube_check(cube, run->info->freq_hz, run->info->num_chan, tells));
    session->has_told = true;
cleanup:
    return status;
}

/* Opens a model, whose pixels must have the size `scale_rad` unless it is 0. Local. */
static tess_status open_model(image_session *session, const image_session_file *file,
                              double scale_rad, imager_model *model)
{
    tess_status status = TESS_OK;
    const image_run *run = &session->run;
    const model_name name = {file->path, file->num_terms, MODEL_AS_IT_IS};
    if (!session->has_told && tess_comm_rank(run->comm) == 0)
        model_cube_warn_name(&name);
    TESS_TRY(imager_model_open(&name, NULL, run->info->ra_rad, run->info->dec_rad,
                               scale_rad, model));
    /* the session's images lie in a turned frame, and so does what is predicted */
    model->geom.turned_l = run->whole.geom.turned_l;
    model->geom.turned_m = run->whole.geom.turned_m;
    if (model->cube) status = check_channels(session, model->cube);
    if (status != TESS_OK) imager_model_close(model);
cleanup:
    return status;
}

/* Collective. */
static tess_status open_predictor(image_session *session,
                                  const image_session_file *file, double scale_rad,
                                  imager_predictor *predictor)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = &session->opts;
    tess_comm *comm = session->run.comm;
    imager_model model = {0};
    TESS_TRY(session_agree_on_texts(session, file->path, NULL, file->num_terms));
    TESS_TRY(session_refuse_patches(session));
    status = tess_comm_agree(comm, open_model(session, file, scale_rad, &model));
    if (status != TESS_OK) imager_model_close(&model);
    TESS_TRY(status);
    TESS_TRY(imager_predictor_create(comm, &model, &opts->gridding, &opts->layout,
                                     session->run.profile, predictor));
cleanup:
    return status;
}

tess_status image_session_image_file(image_session *session, int64_t interval,
                                     int64_t channel, const image_session_file *file,
                                     double *image, double *psf)
{
    tess_status status = TESS_OK;
    const image_run *run = &session->run;
    const int64_t output = interval * run->outputs.num_channels + channel;
    imager_predictor predictor = {0};
    session_arrays given = {.image = image != NULL, .psf = psf != NULL};
    TESS_TRY(session_agree(session, interval, channel, &given));
    if (!given.image) TESS_FAIL(TESS_ERR_USAGE, "no array for the image is given");
    TESS_TRY(open_predictor(session, file, session->opts.scale_rad, &predictor));
    predictor.whole = &run->outputs.extent[output];
    imager_model_mix(&predictor.model, run->pol, run->num_pol, &predictor.mix);
    const visset_request request = {.psf = given.psf, .subtract = &predictor};
    TESS_TRY(session_images(session, output, &request, NULL, image, psf));
cleanup:
    imager_predictor_free(&predictor);
    return status;
}

tess_status image_session_predict_file(image_session *session, int64_t interval,
                                       int64_t channel, const image_session_file *file,
                                       image_predictions *predictions)
{
    tess_status status = TESS_OK;
    imager_predictor predictor = {0};
    tess_pol pol[4] = {{0}};
    session_arrays given = {0};
    TESS_TRY(session_agree(session, interval, channel, &given));
    TESS_TRY(open_predictor(session, file, 0, &predictor));
    TESS_TRY(session_open_rows(session));
    const int num_pol = predictor.model.num_stokes;
    for (int p = 0; p < num_pol; ++p)
        pol[p].code = (tess_corr)predictor.model.stokes[p];
    const session_prediction what = {&predictor, pol, num_pol};
    TESS_TRY(session_predict(session, interval, channel, &what, predictions));
cleanup:
    imager_predictor_free(&predictor);
    return status;
}

/* ---- models of outputs ---- */

/* Finds the plane of the model that has this polarisation. */
static tess_status find_stokes(const model_cube *cube, const tess_pol *pol, int *stokes)
{
    tess_status status = TESS_OK;
    char name[8];
    int k = 0;
    while (k < cube->num_stokes && (cube->stokes[k] != pol->code || pol->imaginary))
        ++k;
    tess_pol_name(pol, name);
    if (k == cube->num_stokes)
        TESS_FAIL(TESS_ERR_INPUT, "%s: it has no plane of %s, which the session images",
                  cube->file[0].path, name);
    *stokes = k;
cleanup:
    return status;
}

/* What multiplies models of the session. Gains of facets may have changed since it was
 * opened. */
static model_factor factor_of(const image_run *run)
{
    const image_facets *facets = run->whole.facets;
    if (run->whole.mosaic || run->opts->gridding.facets.beam.model)
        return MODEL_BY_BEAMS;
    return facets && facets->sources ? MODEL_BY_GAINS : MODEL_AS_IT_IS;
}

static tess_status open_cube(image_session *session, const image_session_file *file,
                             model_cube **cube_out)
{
    tess_status status = TESS_OK;
    model_cube *cube = NULL;
    const image_run *run = &session->run;
    const model_name name = {.path = file->path, .factor = factor_of(run)};
    if (tess_comm_rank(run->comm) == 0) model_cube_warn_name(&name);
    TESS_TRY(model_cube_open(&name, &cube, NULL));
    TESS_TRY(pixel_places_check_run(run, &cube->file[0]));
    TESS_TRY(model_cube_check(cube, run->info->freq_hz, run->info->num_chan, false));
    *cube_out = cube;
    cube = NULL;
cleanup:
    model_cube_free(cube);
    return status;
}

/* Local. */
static tess_status read_file(image_session *session, int64_t channel,
                             const image_session_file *file, double *model)
{
    tess_status status = TESS_OK;
    const image_run *run = &session->run;
    const image_session_facts *facts = &session->facts;
    model_cube *cube = NULL;
    int stokes = 0;
    channel_model of = {.spectrum = file->num_terms > 0 ? TESS_CLEAN_POLYNOMIAL
                                                        : TESS_CLEAN_EACH_CHANNEL,
                        .num_terms = file->num_terms,
                        .threads = run->opts->layout.threads};
    output_table_band(&run->outputs, run->info, channel, &of.freq_hz, &of.width_hz);
    TESS_TRY(open_cube(session, file, &cube));
    for (int p = 0; p < run->num_pol; ++p) {
        TESS_TRY(find_stokes(cube, &run->pol[p], &stokes));
        if (facts->num_rows > 0)
            TESS_TRY(channel_model_read(cube, &of, stokes, facts->row_first,
                                        facts->num_rows,
                                        model + p * facts->num_rows * facts->nx));
    }
cleanup:
    model_cube_free(cube);
    return status;
}

tess_status image_session_read_file(image_session *session, int64_t interval,
                                    int64_t channel, const image_session_file *file,
                                    double *model)
{
    tess_status status = TESS_OK;
    session_arrays given = {.model = model != NULL};
    TESS_TRY(session_agree(session, interval, channel, &given));
    if (!given.model) TESS_FAIL(TESS_ERR_USAGE, "no array for the model is given");
    TESS_TRY(session_agree_on_texts(session, file->path, NULL, file->num_terms));
    TESS_TRY(
        tess_comm_agree(session->run.comm, read_file(session, channel, file, model)));
cleanup:
    return status;
}
