/* Chooses the backend that all ranks use, and logs it. */
#include <string.h>

#include "tess_backend_choice.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_numa.h"

/* Length of the text of a PCI bus id. */
enum { BUS_ID = 32 };

/* Take a device near this rank's processors, and learn how many ranks have taken the
 * same device. Ranks may see different sets of devices, so the number of a device does
 * not identify it, but its bus id does. Collective over the ranks of a node. */
static tess_status take_device(const tess_backend *backend, tess_comm *node)
{
    tess_status status = TESS_OK;
    const int rank = tess_comm_rank(node), size = tess_comm_size(node);
    const int here = tess_numa_here("/sys");
    char own[BUS_ID] = "", *taken = tess_alloc_zero(size, BUS_ID);
    int *numa_node = tess_alloc(size, sizeof *numa_node), sharing = 0;
    TESS_TRY(tess_comm_agree(node, taken && numa_node ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_allgather(node, &here, sizeof here, numa_node));
    TESS_TRY(tess_comm_agree(node, backend->start(numa_node, rank, size)));
    backend->bus_id(own, BUS_ID);
    TESS_TRY(tess_comm_allgather(node, own, BUS_ID, taken));
    for (int k = 0; k < size; ++k)
        sharing += strcmp(taken + (int64_t)k * BUS_ID, own) == 0;
    backend->share(sharing);
cleanup:
    tess_free(taken);
    tess_free(numa_node);
    return status;
}

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
        TESS_TRY(tess_comm_agree(comm, take_device(found, node)));
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
    } else if (strcmp(name, "auto") == 0 && tess_backend_built(TESS_BACKEND_DEVICE))
        tess_log_info("backend %s: no GPU, or no driver for it, on every rank",
                      backend->name);
}
