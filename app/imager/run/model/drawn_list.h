/** @file drawn_list.h  (private to app/imager/run/)
 *  The sources of a list, at the pixels of an image.
 */
#ifndef TESS_DRAWN_LIST_H
#define TESS_DRAWN_LIST_H

#include "tess_draw.h"
#include "tess_fits.h"
#include "tess_source_list.h"

/** Zeroed is empty; drawn_list_free. */
typedef struct drawn_list {
    const char *path;
    tess_source_list list;
    tess_drawn_source
        *source;     /**< [num] sources less than 90 degrees from the centre */
    int64_t *number; /**< [num] their numbers in the list */
    int64_t num;
} drawn_list;

/** Read a list, and place its sources in an image. TESS_ERR_IO; TESS_ERR_INPUT: it does
 *  not parse, or has no sources. Collective. */
tess_status drawn_list_read(tess_comm *comm, const char *path,
                            const tess_image_meta *image, drawn_list *drawn);

/** Find the fluxes of the sources in the image's polarisation: the mean over the
 * image's band or, with `num_terms` above 0, term `term` of their spectra
 * (tess_source_taylor) at the image's frequency. TESS_ERR_INPUT: there are spectra and
 * no frequency, or the polarisation is a cross-hand. Local. */
tess_status drawn_list_take_flux(drawn_list *drawn, const tess_image_meta *image,
                                 int term, int num_terms);

void drawn_list_free(drawn_list *drawn); /**< Local. */

#endif
