/* Convolution functions as `--gcf FILE` reads them. */
#include <math.h>

#include "fuzz_file.h"
#include "tess_fits_kernels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tess_fits_kernels kernels;
    const tess_status status = tess_fits_kernels_read(fuzz_file(data, size), &kernels);
    fuzz_check(status);
    if (status != TESS_OK) return 0;
    const int64_t half = tess_fits_kernels_half(&kernels);
    const int64_t side = kernels.is_uneven ? 2 * half - 1 : half;
    const int64_t last = 2 * kernels.num_planes * side * side - 1;
    fuzz_assert(isfinite(kernels.value[0]) && isfinite(kernels.value[last]),
                "values of kernels are finite");
    tess_fits_kernels_free(&kernels);
    return 0;
}
