/** @file facet_sources.h  (private to app/imager/run/setup/)
 *  What gains of facets are read from: solutions, a-terms and beams.
 */
#ifndef TESS_FACET_SOURCES_H
#define TESS_FACET_SOURCES_H

#include "image_facets.h"

enum { FACET_MOST_NAMES = 256 };

/** Names that commas separate. */
typedef struct facet_names {
    char *text; /**< owned */
    const char *name[FACET_MOST_NAMES];
    int num;
} facet_names;

/** Split the text of an option; `text` NULL: no names. TESS_ERR_USAGE: empty names, or
 * too many. TESS_ERR_ALLOC. Local. */
tess_status facet_names_split(const char *option, const char *text, facet_names *names);

/** The shortest integration of all observations [s], in which solutions do not change.
 * Local. */
double facet_sources_interval(tess_source *source);

/** Begin with gains of 1. Local. */
void facet_sources_start(const facet_setup *setup, image_facets *to);

/** Read the gains that are asked for, if any. Errors of tess_gains_create().
 * Collective.
 */
tess_status facet_sources_take(const facet_setup *setup, image_facets *to);

/** Tell how far the gains of facets hold, of the facet where they hold least.
 * TESS_ERR_ALLOC. Local. */
tess_status facet_sources_tell(const facet_setup *setup, const image_facets *facets);

#endif
