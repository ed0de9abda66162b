/** @file api_images.h  (private to app/api/)
 *  An imager of the library that gets its images from a session.
 */
#ifndef TESS_API_IMAGES_H
#define TESS_API_IMAGES_H

#include "tess_comm.h"
#include "tess_imager_session.h"
#include "tessera/tess_images.h"

/** Clean the outputs of a session with the options of `image`, which gets the images.
 *  Errors of image_session_clean(), and of parsing. Collective. */
tess_status api_images_clean(tess_image *image, tess_comm *comm,
                             image_session *session);

#endif
