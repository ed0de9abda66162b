/** @file image_patches.h  (private to app/imager/run/)
 *  Patches of an image: parts of its pixels, each of which is a target of the job with
 *  a middle of its own. Facets are patches, and what pointings of a mosaic see.
 */
#ifndef IMAGE_PATCHES_H
#define IMAGE_PATCHES_H

#include <stdint.h>

#include "tess_facets.h"
#include "tess_geom.h"
#include "tess_status.h"

/** Zeroed is empty; image_patches_free. */
typedef struct image_patches {
    int num;
    tess_geom *geom;     /**< [num] their pixels */
    int64_t (*first)[2]; /**< [num] column and row of the image where they begin */
    int largest;         /**< that with the longest of the shorter sides, whose PSF is
                              that of the image */
} image_patches;

/** Make room for at most `most` patches. TESS_ERR_ALLOC. Local. */
tess_status image_patches_create(int64_t most, image_patches *patches);
void image_patches_free(image_patches *patches); /**< Local. */

/** Add the pixels of an image in a box. Local. */
void image_patches_add(image_patches *patches, const tess_geom *image,
                       const tess_facet_box *box);

/** The box of a patch in the image. Local. */
static inline tess_facet_box image_patches_box(const image_patches *patches, int patch)
{
    const int64_t *first = patches->first[patch];
    const tess_geom *geom = &patches->geom[patch];
    return (tess_facet_box){first[0], first[1], first[0] + geom->nx,
                            first[1] + geom->ny};
}

/** How the pixels of a patch are weighted. Several threads may use it at a time. */
typedef struct patch_weigher patch_weigher;
struct patch_weigher {
    /** Begin the work of a thread. NULL: there is none. TESS_ERR_ALLOC. */
    tess_status (*begin)(const patch_weigher *weigher, void **work);
    void (*end)(void *work);
    /** Set weight[x1 - x0] of pixels in columns [x0, x1) of a row of the image. */
    void (*weigh)(const patch_weigher *weigher, void *work, int64_t row, int64_t x0,
                  int64_t x1, double *weight);
    const void *context; /**< borrowed */
    int patch;           /**< its number in the context */
};

#endif
