/** @file facet_regions.h  (private to app/imager/run/)
 *  The regions of facets: those of a file, or made around sources and written to one.
 */
#ifndef FACET_REGIONS_H
#define FACET_REGIONS_H

#include "image_facets.h"

/** The regions of the facets that are asked for. Those that are made are what would be
 * read from setup->made, a file that `held` gets. TESS_ERR_INPUT: no source is in the
 * image. Errors of tess_region_file_read(), tess_source_list_read() and
 * tess_facets_tessellate(). Collective. */
tess_status facet_regions_take(const facet_setup *setup, const tess_facet_image *image,
                               tess_held_files *held, tess_region_list *regions);

/** The file of the regions, for messages. Local. */
const char *facet_regions_path(const facet_setup *setup);

#endif
