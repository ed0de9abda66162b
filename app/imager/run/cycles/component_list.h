/** @file component_list.h  (private to app/imager/run/)
 *  The components of major cycles as a list of sources (--save-source-list).
 */
#ifndef TESS_COMPONENT_LIST_H
#define TESS_COMPONENT_LIST_H

#include "majors_private.h"

/** List the Stokes I components of all minor loops as points, or Gaussians of a scale's
 * width, with the spectral terms that were fitted. `*list` gets the text on the first
 * rank; its former text is freed. To be called before the products are taken.
 * Collective. */
tess_status component_list_make(const majors *all, image_source_list *list);

#endif
