/* Arrays of images and spectra. */
#include "cpu_arrays.h"

#include <stdbool.h>

#include "tess_mem.h"

void **cpu_arrays_create(int count, int64_t elements, size_t bytes)
{
    void **array = tess_alloc_zero(count, sizeof *array);
    bool failed = !array;
    for (int k = 0; !failed && k < count; ++k) {
        array[k] = tess_alloc_zero(elements, bytes);
        failed = !array[k];
    }
    for (int k = 0; array && failed && k < count; ++k)
        tess_free(array[k]);
    if (failed) tess_free(array);
    return failed ? NULL : array;
}

void cpu_arrays_free(void **array, int count)
{
    for (int k = 0; array && k < count; ++k)
        tess_free(array[k]);
    tess_free(array);
}
