/** @file api_images.h  (private to app/api/)
 *  An imager of the library that gets its images from a session.
 */
#ifndef TESS_API_IMAGES_H
#define TESS_API_IMAGES_H

#include "tess_comm.h"
#include "tess_image_args.h"
#include "tess_imager_session.h"
#include "tessera/tess_images.h"

/** Clean the outputs of a session with the options of `image`, which gets the images.
 *  `opened`: the options of the session. Errors of image_session_clean(), of parsing,
 *  and of tess_image_args_check_call(). Collective. */
tess_status api_images_clean(tess_image *image, tess_comm *comm,
                             const tess_image_args *opened, image_session *session);

#endif
