/* Finds a backend by its name, or the best one that this machine has. */
#include "tess_backend.h"

#include <stddef.h>
#include <string.h>

#define TESS_BACKEND(name) extern const tess_backend tess_backend_##name;
#include "tess_backend_list.h"
#undef TESS_BACKEND

static const tess_backend *const registry[] = {
#define TESS_BACKEND(name) &tess_backend_##name,
#include "tess_backend_list.h"
#undef TESS_BACKEND
};

bool tess_backend_built(const char *name)
{
    for (size_t k = 0; k < sizeof registry / sizeof *registry; ++k)
        if (strcmp(name, registry[k]->name) == 0) return true;
    return false;
}

tess_status tess_backend_find(const char *name, const tess_backend **backend)
{
    tess_status status = TESS_OK;
    const bool any = !name || strcmp(name, "auto") == 0;
    for (size_t k = 0; k < sizeof registry / sizeof *registry; ++k) {
        const bool named = !any && strcmp(name, registry[k]->name) == 0;
        if (!(any || named)) continue;
        if (registry[k]->available()) {
            *backend = registry[k];
            return TESS_OK;
        }
        if (named)
            TESS_FAIL(TESS_ERR_RESOURCE,
                      "backend %s has no device here (%s); use --backend cpu or auto",
                      name, registry[k]->lacks);
    }
    if (!any && strcmp(name, TESS_BACKEND_DEVICE) == 0)
        TESS_FAIL(TESS_ERR_RESOURCE,
                  "backend %s is not built in; use --backend cpu or auto", name);
    TESS_FAIL(TESS_ERR_USAGE, "unknown backend '%s'; there are " TESS_BACKEND_WORDS,
              name ? name : "auto");
cleanup:
    return status;
}
