/** @file first_facets.h  (private to app/imager/run/)
 *  A dirty image that is made before all others, and whose peaks are the middles of
 *  facets.
 */
#ifndef FIRST_FACETS_H
#define FIRST_FACETS_H

#include "tess_imager.h"
#include "tess_region_file.h"

/** tess_imager_image(). */
typedef tess_status first_facets_maker(tess_comm *comm, const tess_image_opts *opts,
                                       tess_profile *profile);

/** What the options of facets borrow. A zeroed one holds nothing. */
typedef struct first_facets {
    tess_region *peak;
    char *regions; /**< name of the file of an earlier run */
} first_facets;

/** Where facets are to be made around peaks, find these in an image that `make` makes:
 * opts->gridding.facets.peak borrows them. The file of facets is checked, too:
 * TESS_ERR_IO. A run that goes on from a checkpoint takes the facets that it had
 * written before. Errors of tess_imager_image(). Collective. */
tess_status first_facets_find(tess_comm *comm, tess_image_opts *opts,
                              first_facets_maker *make, first_facets *first);
void first_facets_free(first_facets *first); /**< Local. */

#endif
