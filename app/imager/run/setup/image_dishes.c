/* Finds which antennas have which primary beams, and numbers the pairs of these. */
#include "image_dishes.h"

#include <string.h>
#include <strings.h>

#include "source_origins.h"
#include "tess_beam_models.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_primary_beam.h"
#include "tess_samples.h"

/* All antennas of the observations. `meta` is zeroed, and gets an array. Local. */
static tess_status list_antennas(const tess_source *source, tess_vis_meta *meta)
{
    tess_status status = TESS_OK;
    const int32_t num = tess_source_samples(source).origins->num_antennas;
    meta->antenna = tess_alloc(num, sizeof *meta->antenna);
    if (!meta->antenna) TESS_FAIL(TESS_ERR_ALLOC, "antennas");
    memcpy(meta->telescope, tess_source_info_of(source)->meta->telescope,
           sizeof meta->telescope);
    meta->num_antennas = num;
    for (int32_t k = 0; k < num; ++k)
        meta->antenna[k] = *tess_source_antenna(source, k);
cleanup:
    return status;
}

/* Finds the models of all antennas, of which several may be unlike. Collective. */
static tess_status find_models(const image_dishes_of *of, tess_beam_models *models)
{
    tess_status status = TESS_OK;
    tess_vis_meta meta = {.num_antennas = 0};
    TESS_TRY(tess_comm_agree(of->comm, list_antennas(of->source, &meta)));
    TESS_TRY(tess_beam_models_find(of->comm, of->model, &meta, models));
cleanup:
    tess_free(meta.antenna);
    return status;
}

/* Whether an observation is of another telescope than the first, of which `auto` takes
 * the beam. */
static bool is_other(const tess_source *source, int k)
{
    const char *first = tess_source_info_of(source)->meta->telescope;
    return strcasecmp(tess_vis_reader_meta(tess_source_reader(source, k))->telescope,
                      first) != 0;
}

/* Checks that the telescopes of all observations have one beam. TESS_ERR_INPUT.
 * Collective. */
static tess_status check_telescopes(const image_dishes_of *of,
                                    const tess_primary_beam_request *request,
                                    const tess_primary_beam *beam)
{
    tess_status status = TESS_OK;
    tess_primary_beam *other = NULL;
    tess_primary_beam_request like = *request;
    if (strcasecmp(request->model, "auto") != 0) return TESS_OK;
    for (int k = 1; k < tess_source_num_readers(of->source); ++k) {
        if (!is_other(of->source, k)) continue;
        like.telescope =
            tess_vis_reader_meta(tess_source_reader(of->source, k))->telescope;
        TESS_TRY(tess_primary_beam_open(of->comm, &like, &other));
        if (strcmp(tess_primary_beam_name(other), tess_primary_beam_name(beam)) != 0)
            TESS_FAIL(TESS_ERR_INPUT,
                      "observations of %s and %s have primary beams of their own: "
                      "image them apart, or as a mosaic with --primary-beam "
                      "antennas:FILE",
                      request->telescope, like.telescope);
        tess_primary_beam_close(other);
        other = NULL;
    }
cleanup:
    tess_primary_beam_close(other);
    return status;
}

/* Collective. */
static tess_status open_beams(const image_dishes_of *of, const tess_beam_models *models,
                              image_dishes *to)
{
    tess_status status = TESS_OK;
    const tess_source_info *info = tess_source_info_of(of->source);
    const int num = models->num > 0 ? models->num : 1;
    to->beam = tess_alloc_zero(num, sizeof *to->beam);
    TESS_TRY(tess_comm_agree(of->comm, to->beam ? TESS_OK : TESS_ERR_ALLOC));
    for (; to->num < num; ++to->num) {
        const tess_primary_beam_request request = {
            .model = models->num > 0 ? models->model[to->num] : of->model,
            .telescope = info->meta->telescope,
            .num_chan = info->num_chan,
            .freq_hz = info->freq_hz};
        TESS_TRY(tess_primary_beam_open(of->comm, &request, &to->beam[to->num]));
        TESS_TRY(check_telescopes(of, &request, to->beam[to->num]));
    }
cleanup:
    return status;
}

tess_status image_dishes_open(const image_dishes_of *of, image_dishes *dishes)
{
    tess_status status = TESS_OK;
    tess_beam_models models = {0};
    if (of->apart) TESS_TRY(find_models(of, &models));
    TESS_TRY(open_beams(of, &models, dishes));
    if (dishes->num == 1) goto cleanup;
    dishes->of_antenna = models.of_antenna;
    models.of_antenna = NULL;
    for (int k = 0; k < dishes->num; ++k)
        tess_log_info("dishes of kind %d: %s", k + 1,
                      tess_primary_beam_name(dishes->beam[k]));
cleanup:
    tess_beam_models_free(&models);
    return status;
}

void image_dishes_free(image_dishes *dishes)
{
    for (int k = 0; k < dishes->num; ++k)
        tess_primary_beam_close(dishes->beam[k]);
    tess_free((void *)dishes->beam);
    tess_free(dishes->of_antenna);
    *dishes = (image_dishes){0};
}

bool image_dishes_turn(const image_dishes *dishes)
{
    for (int k = 0; k < dishes->num; ++k)
        if (tess_primary_beam_turns(dishes->beam[k])) return true;
    return false;
}

int image_dishes_num_pairs(const image_dishes *dishes)
{
    return dishes->num * (dishes->num + 1) / 2;
}

/* Pairs are in the order of their larger kind, and then of the other. */
int image_dishes_pair(const image_dishes *dishes, const tess_origin *origin)
{
    if (!dishes->of_antenna) return 0;
    const int a = dishes->of_antenna[origin->antenna1];
    const int b = dishes->of_antenna[origin->antenna2];
    return a > b ? a * (a + 1) / 2 + b : b * (b + 1) / 2 + a;
}

void image_dishes_beams(const image_dishes *dishes, int pair,
                        const struct tess_primary_beam *beam[2])
{
    int larger = 0;
    while ((larger + 1) * (larger + 2) / 2 <= pair)
        ++larger;
    beam[0] = dishes->beam[larger];
    beam[1] = dishes->beam[pair - larger * (larger + 1) / 2];
}
