/* A build without devices has none that might share w-planes. */
#include "device_share.h"

tess_status device_share_choose(imager_job *job)
{
    (void)job; /* processors have planes of their own */
    return TESS_OK;
}
