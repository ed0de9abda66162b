/* Tables of the user, as `simulate --sky FILE` and `--layout FILE` read them. */
#include <math.h>
#include <stdlib.h>

#include "fuzz_file.h"
#include "sim_sky.h"
#include "tess_comm.h"
#include "tess_sim_layout.h"

static tess_status read_sky(const char *path)
{
    tess_status status = TESS_OK;
    tess_sky sky = {0};
    TESS_TRY(tess_sky_read(fuzz_comm(), path, 1.0, -0.5, 1.4e9, &sky));
    for (int64_t k = 0; k < sky.num_sources; ++k)
        fuzz_assert(isfinite(sky.source[k].l) && isfinite(sky.source[k].m) &&
                        isfinite(sky.source[k].flux_jy[0]),
                    "sources are finite");
cleanup:
    tess_sky_free(&sky);
    return status;
}

static tess_status read_layout(const char *path)
{
    tess_status status = TESS_OK;
    tess_sim_array array = {0};
    TESS_TRY(tess_sim_array_read(fuzz_comm(), path, &array));
    for (int k = 0; k < array.num_antennas; ++k)
        fuzz_assert(isfinite(array.antenna[k].xyz_m[0]), "antennas are finite");
    TESS_TRY(tess_sim_array_choose(&array, 1e3, 2));
cleanup:
    tess_sim_array_free(&array);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    fuzz_check(read_sky(path));
    fuzz_check(read_layout(path));
    return 0;
}
