/* A build without devices has none that might share w-planes. */
#include "device_share.h"

double device_share_bytes(double pixels, int num_images, double value_bytes,
                          int sharers)
{
    (void)pixels; /* there is no memory of a device that it could take */
    (void)num_images;
    (void)value_bytes;
    (void)sharers;
    return 0;
}

double device_share_buffers(double pixels, double value_bytes, int sharers)
{
    (void)pixels;
    (void)value_bytes;
    (void)sharers;
    return 0;
}

tess_status device_share_choose(imager_job *job)
{
    (void)job; /* processors have planes of their own */
    return TESS_OK;
}
