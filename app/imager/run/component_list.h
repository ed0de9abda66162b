/** @file component_list.h  (private to app/imager/run/)
 *  The components of major cycles as a list of sources (--save-source-list).
 */
#ifndef TESS_COMPONENT_LIST_H
#define TESS_COMPONENT_LIST_H

#include "majors_private.h"

/** The Stokes I components of all minor loops: points, or Gaussians of a scale's width,
 *  with the spectral terms that were fitted. `*list` gets the text on the first rank,
 *  and what was in it before is freed. Before the products are taken. Collective. */
tess_status component_list_make(const majors *all, image_source_list *list);

#endif
