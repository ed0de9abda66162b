/** @file tess_session_facets.h
 *  The facets of a session, and their gains, which may change from call to call.
 */
#ifndef TESS_SESSION_FACETS_H
#define TESS_SESSION_FACETS_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

struct image_session;

/** Facets of the session, and the name of one; 0 and NULL: there are none. Local. */
int image_session_num_facets(const struct image_session *session);
const char *image_session_facet(const struct image_session *session, int facet);

/** Give facets the solutions of these h5parm files ("FILE,FILE"; NULL: none) and tables
 * ("NAME,NAME"; NULL: as tess_solutions_opts), in place of those that they have. The
 * samples stay as they are. TESS_ERR_USAGE: the session has no facets, samples do not
 * hold the correlations that these solutions need, ranks pass different names; errors
 * of image_facets_create(). On failure facets keep their gains. Collective. */
tess_status image_session_solutions(struct image_session *session, const char *files,
                                    const char *tables);

/** What images of an output are over to be in true flux, response[num_pol][num_rows]
 * [nx]: the root of the response of facets, NaN in none of them, or the beam of a
 * mosaic, not cut; 1 without gains. Errors of image_session_image(). Collective. */
tess_status image_session_response(struct image_session *session, int64_t interval,
                                   int64_t channel, double *response);

/** Which part of a model is predicted. */
typedef struct image_session_part {
    const char *facet; /**< what lies in the facet of this name; NULL: in any */
    bool no_gains;     /**< with gains of 1 in place of those of facets */
} image_session_part;

#endif
