/* Borders between places with gains of their own: see clean_borders.h. */
#include "clean_borders.h"

#include <string.h>

#include "tess_mem.h"

tess_status clean_borders_create(const tess_clean_images *images, int threads,
                                 clean_borders *borders)
{
    tess_status status = TESS_OK;
    const tess_clean_places *places = &images->places;
    const int64_t all = (int64_t)places->num * places->num;
    clean_borders made = {.num = places->num};
    if (!places->have_gains || places->num < 2) return TESS_OK;
    made.likeness = tess_alloc(all, sizeof *made.likeness);
    made.place = tess_alloc_zero(images->num_rows * images->nx, sizeof *made.place);
    if (!made.likeness || !made.place) TESS_FAIL(TESS_ERR_ALLOC, "borders of facets");
    memcpy(made.likeness, places->likeness, (size_t)all * sizeof *made.likeness);
    TESS_TRY(places->rows(places->context, images->row_first, images->num_rows, threads,
                          made.place));
    *borders = made;
    made = (clean_borders){0};
cleanup:
    clean_borders_free(&made);
    return status;
}

void clean_borders_free(clean_borders *borders)
{
    tess_free(borders->likeness);
    tess_free(borders->place);
    *borders = (clean_borders){0};
}
