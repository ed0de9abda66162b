/* Lists of sources, as `simulate --sky FILE` and `predict --model FILE` read them. What
 * is read can be written, and is read again as it was. */
#include <math.h>
#include <stdlib.h>

#include "fuzz_file.h"
#include "sim_sky.h"
#include "tess_comm.h"
#include "tess_mem.h"
#include "tess_source_list.h"

static void check_source(const tess_source_list *list, const tess_listed_source *source)
{
    fuzz_assert(isfinite(source->ra_rad) && isfinite(source->dec_rad) &&
                    isfinite(source->flux_jy[0]) && isfinite(source->ref_hz) &&
                    isfinite(source->major_rad) && isfinite(source->minor_rad) &&
                    isfinite(source->pa_rad),
                "sources are finite");
    fuzz_assert(source->num_terms == 0 || source->ref_hz > 0,
                "spectra have a reference frequency");
    for (int k = 0; k < source->num_terms; ++k)
        fuzz_assert(isfinite(list->term[source->first_term + k]), "terms are finite");
}

static tess_status write_again(const tess_source_list *list)
{
    tess_status status = TESS_OK;
    tess_source_list again = {0};
    char *text = NULL;
    TESS_TRY(tess_source_list_text(list, 1e9, &text));
    fuzz_assert(tess_source_list_parse("again", text, &again, NULL, 0) == TESS_OK,
                "what was written can be read");
    fuzz_assert(again.num_sources == list->num_sources, "no source is lost");
    for (int64_t k = 0; k < again.num_sources; ++k)
        fuzz_assert(fabs(again.source[k].dec_rad - list->source[k].dec_rad) < 1e-13,
                    "positions are kept");
cleanup:
    tess_free(text);
    tess_source_list_free(&again);
    return status;
}

static tess_status read_list(const char *path)
{
    tess_status status = TESS_OK;
    tess_source_list list = {0};
    TESS_TRY(tess_source_list_read(fuzz_comm(), path, &list));
    for (int64_t k = 0; k < list.num_sources; ++k)
        check_source(&list, &list.source[k]);
    TESS_TRY(write_again(&list));
cleanup:
    tess_source_list_free(&list);
    return status;
}

static tess_status read_sky(const char *path)
{
    tess_status status = TESS_OK;
    tess_sky sky = {0};
    double flux[4];
    TESS_TRY(tess_sky_read(fuzz_comm(), path, 1.0, -0.5, 1.4e9, &sky));
    for (int64_t k = 0; k < sky.num_sources; ++k)
        tess_sky_flux(&sky, &sky.source[k], 1.5e9, flux);
cleanup:
    tess_sky_free(&sky);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file(data, size);
    fuzz_check(read_list(path));
    fuzz_check(read_sky(path));
    return 0;
}
