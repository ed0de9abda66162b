/* Places the sources of a list in an image, and finds their fluxes there. */
#include "drawn_list.h"

#include <math.h>

#include "tess_geom.h"
#include "tess_mem.h"

/* ---- places ---- */

/* False: it is 90 degrees or more from the image's centre. */
static bool place(const tess_image_meta *image, const tess_listed_source *listed,
                  tess_drawn_source *source)
{
    double lmn1[3];
    if (!tess_sky_project(listed->ra_rad, listed->dec_rad, image->ra_rad,
                          image->dec_rad, lmn1))
        return false;
    *source = (tess_drawn_source){
        .x = (double)(image->nx / 2) - (lmn1[0] - image->l0) / image->scale_rad,
        .y = (double)(image->ny / 2) + (lmn1[1] - image->m0) / image->scale_rad,
        .is_gaussian = listed->is_gaussian,
        .major_px = listed->major_rad / image->scale_rad,
        .minor_px = listed->minor_rad / image->scale_rad,
        .angle_rad = listed->pa_rad};
    return true;
}

/* Local. */
static tess_status place_all(const tess_image_meta *image, drawn_list *drawn)
{
    tess_status status = TESS_OK;
    const tess_source_list *list = &drawn->list;
    if (list->num_sources == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: a list without sources", drawn->path);
    drawn->source = tess_alloc(list->num_sources, sizeof *drawn->source);
    drawn->number = tess_alloc(list->num_sources, sizeof *drawn->number);
    if (!drawn->source || !drawn->number)
        TESS_FAIL(TESS_ERR_ALLOC, "%lld sources", (long long)list->num_sources);
    for (int64_t k = 0; k < list->num_sources; ++k) {
        if (!place(image, &list->source[k], &drawn->source[drawn->num])) continue;
        drawn->number[drawn->num++] = k;
    }
cleanup:
    return status;
}

tess_status drawn_list_read(tess_comm *comm, const char *path,
                            const tess_image_meta *image, drawn_list *drawn)
{
    tess_status status = TESS_OK;
    drawn->path = path;
    TESS_TRY(tess_source_list_read(comm, path, &drawn->list));
    TESS_TRY(tess_comm_agree(comm, place_all(image, drawn)));
cleanup:
    return status;
}

/* ---- fluxes ---- */

/* What of Stokes I, Q, U and V a parallel hand or Stokes parameter has. */
static tess_status mix_of(const drawn_list *drawn, const tess_image_meta *image,
                          double mix[4])
{
    tess_status status = TESS_OK;
    static const struct {
        int code;
        double mix[4];
    } known[] = {{1, {1, 0, 0, 0}},  {2, {0, 1, 0, 0}},  {3, {0, 0, 1, 0}},
                 {4, {0, 0, 0, 1}},  {-1, {1, 0, 0, 1}}, {-2, {1, 0, 0, -1}},
                 {-5, {1, 1, 0, 0}}, {-6, {1, -1, 0, 0}}};
    for (size_t k = 0; k < sizeof known / sizeof *known; ++k) {
        if (known[k].code != image->stokes) continue;
        for (int s = 0; s < 4; ++s)
            mix[s] = known[k].mix[s];
        return TESS_OK;
    }
    TESS_FAIL(TESS_ERR_INPUT,
              "%s: its sources have Stokes parameters, which make no cross-hand (code "
              "%d of the STOKES axis)",
              drawn->path, image->stokes);
cleanup:
    return status;
}

static tess_status check_frequency(const drawn_list *drawn,
                                   const tess_image_meta *image)
{
    tess_status status = TESS_OK;
    for (int64_t k = 0; k < drawn->num; ++k) {
        const tess_listed_source *listed = &drawn->list.source[drawn->number[k]];
        if (listed->num_terms > 0 && !(image->freq_hz > 0))
            TESS_FAIL(TESS_ERR_INPUT,
                      "%s: line %lld: the source has a spectrum, and the image no "
                      "frequency",
                      drawn->path, (long long)listed->line);
    }
cleanup:
    return status;
}

/* The mean over the image's band, or a term. */
static double flux_of(const tess_source_spectrum *spectrum,
                      const tess_image_meta *image, const double mix[4], int term,
                      int num_terms)
{
    double flux_jy[4] = {0}, taylor[TESS_SOURCE_LIST_TERMS], sum = 0;
    if (num_terms == 0)
        tess_source_band_flux(spectrum, image->freq_hz, image->bandwidth_hz, flux_jy);
    for (int s = 0; s < 4; ++s) {
        if (num_terms > 0) {
            tess_source_taylor(spectrum, image->freq_hz, s, num_terms, taylor);
            flux_jy[s] = taylor[term];
        }
        sum += mix[s] * flux_jy[s];
    }
    return sum;
}

tess_status drawn_list_take_flux(drawn_list *drawn, const tess_image_meta *image,
                                 int term, int num_terms)
{
    tess_status status = TESS_OK;
    double mix[4];
    TESS_TRY(mix_of(drawn, image, mix));
    TESS_TRY(check_frequency(drawn, image));
    for (int64_t k = 0; k < drawn->num; ++k) {
        const tess_source_spectrum spectrum = tess_source_list_spectrum(
            &drawn->list, &drawn->list.source[drawn->number[k]]);
        drawn->source[k].flux_jy = flux_of(&spectrum, image, mix, term, num_terms);
    }
cleanup:
    return status;
}

void drawn_list_free(drawn_list *drawn)
{
    tess_source_list_free(&drawn->list);
    tess_free(drawn->source);
    tess_free(drawn->number);
    *drawn = (drawn_list){0};
}
