/* The cuda backend: a GPU for every rank. Its parts live in base/, grid/, degrid/ and
 * fft/; this folder sees all. */
#include "tess_degrid.h"
#include "tess_device.h"

extern const tess_grid_ops tess_grid_ops_cuda;
extern const tess_degrid_ops tess_degrid_ops_cuda;
extern const tess_planes_ops tess_planes_ops_cuda;
extern const tess_backend tess_backend_cuda;

const tess_backend tess_backend_cuda = {.name = "cuda",
                                        .available = tess_device_present,
                                        .lacks = "no GPU of compute capability 8.0 or "
                                                 "more, or no driver",
                                        .start = tess_device_start,
                                        .share = tess_device_share,
                                        .text = tess_device_text,
                                        .bus_id = tess_device_bus_id,
                                        .room = tess_device_room,
                                        .held = tess_device_held,
                                        .grid = &tess_grid_ops_cuda,
                                        .degrid = &tess_degrid_ops_cuda,
                                        .planes = &tess_planes_ops_cuda};
