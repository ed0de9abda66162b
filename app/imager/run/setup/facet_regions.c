/* Takes the regions of facets from a file, or makes them around the brightest sources
 * of a list, or around peaks that have been found. */
#include "facet_regions.h"

#include <string.h>

#include "tess_log.h"
#include "tess_mem.h"

const char *facet_regions_path(const facet_setup *setup)
{
    return setup->made ? setup->made : setup->choice->regions;
}

/* The sources that get facets; free `*direction`. Local. */
static tess_status choose_sources(const facet_setup *setup,
                                  const tess_facet_image *image,
                                  const tess_source_list *list, tess_region **direction,
                                  int64_t *num)
{
    tess_status status = TESS_OK;
    const tess_facet_choice *choice = setup->choice;
    double separation_rad = choice->separation_rad;
    if (!(separation_rad > 0))
        separation_rad = tess_facets_separation(&image->geom, choice->number);
    if (choice->sources)
        return tess_facets_brightest(image, list, choice->number, separation_rad,
                                     direction, num);
    *direction = tess_alloc(choice->num_peaks, sizeof **direction);
    if (!*direction) TESS_FAIL(TESS_ERR_ALLOC, "directions of facets");
    *num = choice->num_peaks;
    if (*num > 0) memcpy(*direction, choice->peak, (size_t)*num * sizeof **direction);
cleanup:
    return status;
}

/* The text of a region file of facets around sources; free it with tess_free(). Local.
 */
static tess_status make_text(const facet_setup *setup, const tess_facet_image *image,
                             const tess_source_list *list, char **text)
{
    tess_status status = TESS_OK;
    const tess_facet_choice *choice = setup->choice;
    const char *from = choice->sources ? choice->sources : "the first image";
    tess_region *direction = NULL;
    tess_region_list cells = {0};
    int64_t num = 0;
    TESS_TRY(choose_sources(setup, image, list, &direction, &num));
    if (num == 0)
        TESS_FAIL(TESS_ERR_INPUT, "--facets %lld: %s has no source in the image",
                  (long long)choice->number, from);
    if (num < choice->number && tess_comm_rank(setup->comm) == 0)
        tess_log_warn("--facets %lld: only %lld sources of %s are in the image and far "
                      "enough from brighter ones (--facet-separation)",
                      (long long)choice->number, (long long)num, from);
    TESS_TRY(tess_facets_tessellate(from, image, direction, num, &cells));
    TESS_TRY(tess_region_file_text(&cells, text));
cleanup:
    tess_free(direction);
    tess_region_list_free(&cells);
    return status;
}

/* Local. */
static tess_status hold_text(const facet_setup *setup, const char *text,
                             tess_held_files *held)
{
    const bool writes = setup->made && tess_comm_rank(setup->comm) == 0;
    held->overwrite = setup->overwrite;
    return writes ? tess_held_text(held, setup->made, text) : TESS_OK;
}

tess_status facet_regions_take(const facet_setup *setup, const tess_facet_image *image,
                               tess_held_files *held, tess_region_list *regions)
{
    tess_status status = TESS_OK;
    const tess_facet_choice *choice = setup->choice;
    tess_source_list list = {0};
    char *text = NULL;
    if (choice->number == 0)
        return tess_region_file_read(setup->comm, choice->regions, regions);
    if (choice->sources)
        TESS_TRY(tess_source_list_read(setup->comm, choice->sources, &list));
    status = make_text(setup, image, &list, &text);
    if (status == TESS_OK) status = hold_text(setup, text, held);
    TESS_TRY(tess_comm_agree(setup->comm, status));
    status = tess_region_file_parse(facet_regions_path(setup), text, regions);
    TESS_TRY(tess_comm_agree(setup->comm, status));
cleanup:
    tess_source_list_free(&list);
    tess_free(text);
    return status;
}
