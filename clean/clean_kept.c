/* Keeps the components of all minor loops, by scale, for lists of sources. */
#include <string.h>

#include "clean_object.h"
#include "tess_mem.h"

tess_status clean_keep(tess_clean *clean, int scale, const clean_components *merged)
{
    tess_status status = TESS_OK;
    if (!clean->kept) return TESS_OK;
    TESS_TRY(clean_components_copy(&clean->kept[scale], merged, 0, merged->count));
    TESS_TRY(clean_components_merge(&clean->kept[scale]));
cleanup:
    return status;
}

tess_status tess_clean_keep_components(tess_clean *clean)
{
    tess_status status = TESS_OK;
    const clean_setup *setup = &clean->setup;
    if (clean->kept) return TESS_OK;
    clean->kept = tess_alloc_zero(setup->num_scales, sizeof *clean->kept);
    if (!clean->kept) TESS_FAIL(TESS_ERR_ALLOC, "components");
    for (int s = 0; s < setup->num_scales; ++s)
        clean->kept[s].num_images = setup->images.num_images;
cleanup:
    return status;
}

tess_status tess_clean_components(const tess_clean *clean, int scale, int pol,
                                  tess_clean_list *list_out)
{
    tess_status status = TESS_OK;
    const clean_join *join = &clean->setup.join;
    const tess_clean_images *images = &clean->setup.images;
    const bool fits = join->spectrum.kind != TESS_CLEAN_EACH_CHANNEL;
    const int64_t begin = images->row_first * images->nx;
    tess_clean_list list = {.num_terms = fits ? join->spectrum.num_terms : 1};
    if (!clean->kept) TESS_FAIL(TESS_ERR_USAGE, "components are not kept");
    const clean_components *kept = &clean->kept[scale];
    const int64_t first = clean_components_from(kept, begin);
    list.count =
        clean_components_from(kept, begin + images->num_rows * images->nx) - first;
    list.index = tess_alloc(list.count, sizeof *list.index);
    list.term = tess_alloc(list.count * list.num_terms, sizeof *list.term);
    if (!list.index || !list.term)
        TESS_FAIL(TESS_ERR_ALLOC, "%lld components", (long long)list.count);
    for (int64_t k = 0; k < list.count; ++k) {
        const double *flux = kept->flux + (first + k) * kept->num_images;
        double *term = list.term + k * list.num_terms;
        list.index[k] = kept->index[first + k];
        if (fits)
            clean_spectrum_terms(&join->spectrum, flux, pol, term);
        else
            *term = clean_join_mean_of_pol(join, flux, pol);
    }
    *list_out = list;
    list = (tess_clean_list){0};
cleanup:
    tess_clean_list_free(&list);
    return status;
}

void tess_clean_list_free(tess_clean_list *list)
{
    tess_free(list->index);
    tess_free(list->term);
    *list = (tess_clean_list){0};
}
