/* The backend that all ranks take, and what the log says of it. */
#include <string.h>

#include "tess_backend_choice.h"
#include "tess_log.h"

tess_status imager_backend(tess_comm *comm, const char *name,
                           const tess_backend **backend)
{
    tess_status status = TESS_OK;
    tess_comm *node = NULL;
    const tess_backend *found = NULL;
    TESS_TRY(tess_comm_agree(comm, tess_backend_find(name, &found)));
    int64_t without_device = found->start == NULL;
    TESS_TRY(tess_comm_allreduce_i64(comm, &without_device, 1, TESS_MAX));
    if (without_device)
        TESS_TRY(tess_comm_agree(comm, tess_backend_find("cpu", &found)));
    if (found->start) {
        TESS_TRY(tess_comm_node(comm, &node));
        status = found->start(tess_comm_rank(node), tess_comm_size(node));
        TESS_TRY(tess_comm_agree(comm, status));
    }
    *backend = found;
cleanup:
    tess_comm_free(node);
    return status;
}

void imager_backend_log(const char *name, const tess_backend *backend)
{
    char text[256];
    if (backend->text) {
        backend->text(text, sizeof text);
        tess_log_info("backend %s: %s", backend->name, text);
    } else if (strcmp(name, "auto") == 0 && tess_backend_built("cuda"))
        tess_log_info("backend %s: no GPU, or no driver for it, on every rank",
                      backend->name);
}
