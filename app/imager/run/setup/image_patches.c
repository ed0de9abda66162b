/* Lists patches of an image. */
#include "image_patches.h"

#include "tess_mem.h"

tess_status image_patches_create(int64_t most, image_patches *patches)
{
    tess_status status = TESS_OK;
    patches->geom = tess_alloc(most, sizeof *patches->geom);
    patches->first = tess_alloc(most, sizeof *patches->first);
    if (!patches->geom || !patches->first)
        TESS_FAIL(TESS_ERR_ALLOC, "%lld parts of an image", (long long)most);
cleanup:
    return status;
}

void image_patches_free(image_patches *patches)
{
    tess_free(patches->geom);
    tess_free(patches->first);
    *patches = (image_patches){0};
}

static int64_t side_of(const tess_geom *geom)
{
    return geom->nx < geom->ny ? geom->nx : geom->ny;
}

void image_patches_add(image_patches *patches, const tess_geom *image,
                       const tess_facet_box *box)
{
    const int k = patches->num++;
    tess_geom *geom = &patches->geom[k];
    *geom = *image;
    geom->nx = box->x1 - box->x0;
    geom->ny = box->y1 - box->y0;
    geom->l0 = tess_geom_l(image, box->x0 + geom->nx / 2);
    geom->m0 = tess_geom_m(image, box->y0 + geom->ny / 2);
    patches->first[k][0] = box->x0;
    patches->first[k][1] = box->y0;
    if (side_of(geom) > side_of(&patches->geom[patches->largest])) patches->largest = k;
}
