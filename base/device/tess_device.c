/* What is the same for all kinds of devices. */
#include "tess_device.h"

#include <stddef.h>

#include "device_pixels.h"
#include "tess_backend.h"

/* This number of threads copies 50 GB/s, which is the rate of the link to a GPU. */
enum { MOST_MOVERS = 16 };

int tess_device_movers(int threads)
{
    const int movers = threads - threads / 4;
    return movers < 1 ? 1 : movers < MOST_MOVERS ? movers : MOST_MOVERS;
}

/* The device's memory as a place for arrays, for the table of a backend. */
extern const tess_place tess_device_place;

const tess_place tess_device_place = {.alloc = tess_device_alloc,
                                      .free = tess_device_free,
                                      .zero = tess_device_zero,
                                      .upload = tess_device_upload,
                                      .download = tess_device_download,
                                      .copy_rows = tess_device_copy_rows,
                                      .mix = device_pixels_mix,
                                      .sum = device_pixels_sum,
                                      .measure = device_pixels_measure,
                                      .count = device_pixels_count};

/* Its lanes, for the table of a backend, too. */
extern const tess_lanes tess_device_lanes;

const tess_lanes tess_device_lanes = {.most = TESS_DEVICE_LANES,
                                      .split = tess_device_split,
                                      .enter = tess_device_enter,
                                      .leave = tess_device_leave};

tess_status tess_device_copy_of(const void *host, int64_t bytes, const char *what,
                                const void **out)
{
    tess_status status = TESS_OK;
    void *made = NULL;
    TESS_TRY(tess_device_alloc(bytes, what, &made));
    TESS_TRY(tess_device_upload(made, host, bytes));
    *out = made;
    made = NULL;
cleanup:
    tess_device_free(made);
    return status;
}
