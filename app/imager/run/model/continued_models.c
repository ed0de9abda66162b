/* Opens the models that images continue, each file once, and reads those of output
 * channels. */
#include "clean_inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "channel_model.h"
#include "model_cube.h"
#include "pixel_places.h"
#include "tess_mem.h"

struct continued_models {
    int64_t num_files, num_sets;
    tess_fits_model *
        *file;        /* [intervals][channels][pol] those that are open, or NULL */
    model_cube **set; /* [intervals] likewise */
};

/* Where the model of an output channel and polarisation is: in a file of its own, or in
 * a set or cube. */
typedef struct model_source {
    const tess_fits_model *file;
    const model_cube *set;
    int stokes; /* of the set */
} model_source;

tess_status continued_models_create(const image_run *run, continued_models **models)
{
    tess_status status = TESS_OK;
    continued_models *made = tess_alloc_zero(1, sizeof *made);
    if (!made) TESS_FAIL(TESS_ERR_ALLOC, "models to continue");
    made->num_sets = run->opts->intervals_out;
    made->num_files = made->num_sets * run->opts->channels_out * run->num_pol;
    made->file = tess_alloc_zero(made->num_files, sizeof *made->file);
    made->set = tess_alloc_zero(made->num_sets, sizeof *made->set);
    if (!made->file || !made->set) TESS_FAIL(TESS_ERR_ALLOC, "models to continue");
    *models = made;
    made = NULL;
cleanup:
    continued_models_free(made);
    return status;
}

void continued_models_free(continued_models *models)
{
    if (!models) return;
    for (int64_t k = 0; models->file && k < models->num_files; ++k)
        tess_free(models->file[k]);
    for (int64_t t = 0; models->set && t < models->num_sets; ++t)
        model_cube_free(models->set[t]);
    tess_free(models->file);
    tess_free(models->set);
    tess_free(models);
}

/* ---- opening ---- */

/* The file of an output channel, which is opened once. */
static tess_status open_file(const image_run *run, const char *path,
                             tess_fits_model **kept)
{
    tess_status status = TESS_OK;
    tess_fits_model *file = NULL;
    if (*kept) return TESS_OK;
    file = tess_alloc_zero(1, sizeof *file);
    if (!file) TESS_FAIL(TESS_ERR_ALLOC, "%s: model", path);
    TESS_TRY(tess_fits_open(path, file));
    TESS_TRY(pixel_places_check_run(run, file));
    *kept = file;
    file = NULL;
cleanup:
    tess_free(file);
    return status;
}

/* The set or cube of an interval, which is opened once. */
static tess_status open_set(const image_run *run, int64_t interval, model_cube **kept)
{
    tess_status status = TESS_OK;
    model_cube *set = NULL;
    char *name = NULL;
    if (*kept) return TESS_OK;
    name = image_files_stem(&run->output, interval);
    if (!name) TESS_FAIL(TESS_ERR_ALLOC, "name of a model");
    TESS_TRY(model_cube_open_set(name, &set));
    TESS_TRY(pixel_places_check_run(run, &set->file[0]));
    *kept = set;
    set = NULL;
cleanup:
    model_cube_free(set);
    free(name); /* from asprintf */
    return status;
}

static channel_model channel_of(const image_run *run, int64_t channel)
{
    const tess_join_choice *join = &run->opts->clean.join;
    channel_model of = {.spectrum = join->spectrum,
                        .num_terms = join->num_terms,
                        .threads = run->opts->layout.threads};
    output_table_band(&run->outputs, run->info, channel, &of.freq_hz, &of.width_hz);
    return of;
}

/* Whether a file is of an output channel by its frequency; one that tells none, is. */
static tess_status is_of_channel(const image_run *run, const tess_fits_model *file,
                                 int64_t channel, bool *is)
{
    tess_status status = TESS_OK;
    double freq_hz = 0;
    bool has_data = true;
    *is = false;
    if (file->num_freq > 1) return TESS_OK;
    const channel_model of = channel_of(run, channel);
    TESS_TRY(tess_fits_frequencies(file, &freq_hz, &has_data));
    *is = !(freq_hz > 0) || channel_model_is(&of, freq_hz);
cleanup:
    return status;
}

/* The file that the run would write, if it is there and of this channel. WSClean has a
 * file for each channel, whatever it tells, and misses one that is not there; a run of
 * one channel does, too. */
static tess_status look_for_file(const image_run *run, continued_models *models,
                                 int64_t interval, int64_t channel, int pol,
                                 const tess_fits_model **file)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    const bool must_be = opts->beside.as_wsclean || opts->channels_out == 1;
    const int64_t at = (interval * opts->channels_out + channel) * run->num_pol + pol;
    bool is = true;
    char *path = image_files_name(&run->output, interval, channel, pol, IMAGE_MODEL);
    if (!path) TESS_FAIL(TESS_ERR_ALLOC, "name of a model");
    *file = NULL;
    if (!must_be && access(path, F_OK) != 0) goto cleanup;
    TESS_TRY(open_file(run, path, &models->file[at]));
    if (!must_be) TESS_TRY(is_of_channel(run, models->file[at], channel, &is));
    if (is) *file = models->file[at];
cleanup:
    free(path); /* from asprintf */
    return status;
}

static tess_status look_in_set(const image_run *run, continued_models *models,
                               int64_t interval, int pol, model_source *source)
{
    tess_status status = TESS_OK;
    TESS_TRY(open_set(run, interval, &models->set[interval]));
    const model_cube *set = models->set[interval];
    while (source->stokes < set->num_stokes &&
           set->stokes[source->stokes] != run->pol[pol].code)
        ++source->stokes;
    if (source->stokes == set->num_stokes)
        TESS_FAIL(TESS_ERR_INPUT, "%s: it lacks a Stokes parameter of the images",
                  set->file[0].path);
    source->set = set;
cleanup:
    return status;
}

static tess_status find(const image_run *run, continued_models *models,
                        int64_t interval, int64_t channel, int pol,
                        model_source *source)
{
    tess_status status = TESS_OK;
    *source = (model_source){0};
    if (!run->opts->beside.cube)
        TESS_TRY(look_for_file(run, models, interval, channel, pol, &source->file));
    if (!source->file) TESS_TRY(look_in_set(run, models, interval, pol, source));
cleanup:
    return status;
}

/* ---- reading ---- */

tess_status continued_models_read(const image_run *run, continued_models *models,
                                  int64_t interval, int64_t channel, int pol,
                                  tess_rows *rows)
{
    tess_status status = TESS_OK;
    model_source source;
    tess_rows view = {0};
    TESS_TRY(find(run, models, interval, channel, pol, &source));
    TESS_TRY(tess_rows_check_whole(rows, "model"));
    TESS_TRY(tess_rows_edit(rows, false, &view));
    if (source.set) {
        const channel_model of = channel_of(run, channel);
        TESS_TRY(channel_model_read(source.set, &of, source.stokes, view.row_first,
                                    view.num_rows, view.value));
    } else {
        TESS_TRY(model_pixels_read(source.file, 0, 0, view.row_first, view.num_rows,
                                   view.value));
    }
    TESS_TRY(tess_rows_put_back(rows, &view));
cleanup:
    tess_rows_free(&view);
    return status;
}

/* ---- before data are read ---- */

/* How output channels that the set lacks are made of its channels. */
static const char *way_of(const tess_join_choice *join, bool lacks, char *text,
                          size_t size)
{
    if (!lacks) return "those of their frequencies of the model's";
    if (join->spectrum == TESS_CLEAN_EACH_CHANNEL) return "the nearest of the model's";
    snprintf(text, size, "a polynomial%s of at most %d term%s through the model's",
             join->spectrum == TESS_CLEAN_LOG_POLYNOMIAL ? " of logarithms" : "",
             join->num_terms, join->num_terms == 1 ? "" : "s");
    return text;
}

/* Say once which channels of a set are continued. */
static tess_status tell(const image_run *run, const model_cube *set)
{
    tess_status status = TESS_OK;
    const int64_t channels = run->opts->channels_out;
    bool lacks = false;
    char text[96];
    double *freq_hz = tess_alloc(channels, sizeof *freq_hz);
    if (!freq_hz) TESS_FAIL(TESS_ERR_ALLOC, "channels");
    for (int64_t c = 0; c < channels; ++c) {
        const channel_model of = channel_of(run, c);
        freq_hz[c] = of.freq_hz;
        lacks = lacks || channel_model_plane(set, &of) < 0;
    }
    TESS_TRY(
        model_cube_check_way(set, freq_hz, channels,
                             way_of(&run->opts->clean.join, lacks, text, sizeof text)));
cleanup:
    tess_free(freq_hz);
    return status;
}

tess_status continued_models_check(const image_run *run, continued_models *models)
{
    tess_status status = TESS_OK;
    const tess_image_opts *opts = run->opts;
    model_source source;
    for (int64_t t = 0; t < opts->intervals_out; ++t)
        for (int64_t c = 0; c < opts->channels_out; ++c)
            for (int p = 0; p < run->num_pol; ++p)
                TESS_TRY(find(run, models, t, c, p, &source));
    if (models->set[0]) TESS_TRY(tell(run, models->set[0]));
cleanup:
    return status;
}

/* ---- their size ---- */

/* The size and scale of the first model. Local. */
static tess_status read_size(const tess_image_opts *opts, tess_fits_model *file)
{
    tess_status status = TESS_OK;
    tess_pol pol[2 * TESS_MAX_POL];
    const image_files output = {
        .opts = opts, .pol = pol, .num_pol = image_files_pols(opts, pol)};
    char *path = image_files_name(&output, 0, 0, 0, IMAGE_MODEL);
    if (!path) TESS_FAIL(TESS_ERR_ALLOC, "name of a model");
    TESS_TRY(tess_fits_open(path, file));
cleanup:
    free(path); /* from asprintf */
    return status;
}

tess_status tess_imager_take_model_size(tess_comm *comm, tess_image_opts *opts)
{
    tess_status status = TESS_OK;
    tess_fits_model file = {0};
    if (opts->nx > 0 && opts->scale_rad > 0) return TESS_OK;
    if (tess_comm_rank(comm) == 0) status = read_size(opts, &file);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_bcast(comm, &file, sizeof file, 0));
    if (opts->nx == 0) {
        opts->nx = file.nx;
        opts->ny = file.ny;
    }
    if (!(opts->scale_rad > 0)) opts->scale_rad = file.scale_y_rad;
cleanup:
    return status;
}
