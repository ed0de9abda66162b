/* Images an observation in memory and prints the brightest pixel of each image.
 *
 * usage: image_observation OBS SIZE SCALE, for example obs.uvfits 1024 1.5asec */
#include <stdint.h>
#include <stdio.h>

#include <tessera/tessera.h>

static double pixel_at(const tess_image_info *info, int64_t k)
{
    return info->is_double ? ((const double *)info->pixel)[k]
                           : (double)((const float *)info->pixel)[k];
}

static void print_brightest(const tess_image_info *info)
{
    int64_t best = 0;
    for (int64_t k = 1; k < info->nx * info->ny; ++k)
        if (pixel_at(info, k) > pixel_at(info, best)) best = k;
    printf("%s, Stokes %s: %g Jy/beam at pixel (%lld, %lld)\n", info->kind,
           info->polarisation, pixel_at(info, best), (long long)(best % info->nx),
           (long long)(best / info->nx));
}

int main(int argc, char **argv)
{
    tess_image *image = NULL;
    tess_status status = TESS_ERR_USAGE;
    if (argc != 4) {
        fprintf(stderr, "usage: %s OBS SIZE SCALE\n", argv[0]);
        return 2;
    }
    status = tess_image_create(&image);
    if (status == TESS_OK) status = tess_image_set(image, "obs", argv[1]);
    if (status == TESS_OK) status = tess_image_set(image, "size", argv[2]);
    if (status == TESS_OK) status = tess_image_set(image, "scale", argv[3]);
    if (status == TESS_OK) status = tess_image_run(image);
    if (status != TESS_OK) fprintf(stderr, "%s\n", tess_last_error());
    for (int64_t k = 0; status == TESS_OK && k < tess_image_count(image); ++k)
        print_brightest(tess_image_get(image, k));
    tess_image_destroy(image);
    return status == TESS_OK ? 0 : 1;
}
