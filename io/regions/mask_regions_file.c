/* Reads files of regions for masks: of CASA or of ds9, whichever it is. */
#include "mask_reader.h"

#include <string.h>

#include "tess_mem.h"
#include "tess_text_file.h"

static const char KIND[] = "a file of regions, of CASA (#CRTF) or ds9";

tess_status tess_mask_regions_parse(const char *path, const char *text,
                                    tess_mask_regions *regions)
{
    tess_status status = TESS_OK;
    mask_reader reader = {.path = path};
    char *copy = tess_strdup(text);
    if (!copy) TESS_FAIL(TESS_ERR_ALLOC, "%s: no memory for its regions", path);
    TESS_TRY(strncmp(copy, "#CRTF", 5) == 0 ? mask_read_crtf(&reader, copy)
                                            : mask_read_ds9(&reader, copy));
    if (reader.regions.num == 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: has no region in its %lld lines; it is not %s",
                  path, (long long)reader.line, KIND);
    *regions = reader.regions;
    reader.regions = (tess_mask_regions){0};
cleanup:
    tess_free(copy);
    tess_mask_regions_free(&reader.regions);
    return status;
}

tess_status tess_mask_regions_read(tess_comm *comm, const char *path,
                                   tess_mask_regions *regions)
{
    tess_status status = TESS_OK;
    char *text = NULL;
    TESS_TRY(tess_text_file_read(comm, path, KIND, &text));
    TESS_TRY(tess_comm_agree(comm, tess_mask_regions_parse(path, text, regions)));
cleanup:
    tess_free(text);
    return status;
}

void tess_mask_regions_free(tess_mask_regions *regions)
{
    tess_free(regions->region);
    tess_free(regions->vertex);
    *regions = (tess_mask_regions){0};
}
