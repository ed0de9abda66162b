/** @file preview_file.h  (tests)
 *  Previews that do not wait for other files.
 */
#ifndef TESS_TEST_PREVIEW_FILE_H
#define TESS_TEST_PREVIEW_FILE_H

#include "tess_fits.h"

/** Write a preview, and give it its name at once. Collective. */
static inline tess_status write_preview(tess_comm *comm, const char *path,
                                        bool overwrite, const tess_image_meta *meta,
                                        const tess_fits_rows *rows)
{
    tess_held_files held = {.overwrite = overwrite};
    tess_status status = tess_preview_hold(comm, path, &held, meta, rows);
    if (status == TESS_OK) status = tess_held_publish(comm, &held);
    tess_held_free(&held);
    return status;
}

#endif
