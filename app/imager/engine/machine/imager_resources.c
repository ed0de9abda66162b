/* Finds what a rank may use of its node: a share of the memory, meters of energy, and
 * the backend, which is the same on all ranks. */
#include "imager_resources.h"

#include <string.h>

#include "tess_backend_choice.h"
#include "tess_keep.h"
#include "tess_log.h"
#include "tess_mem.h"
#include "tess_numa.h"

/* Share of the allowed memory that is planned for. Libraries, buffers of the exchange
 * and the cache of files need the rest. */
static const double MEMORY_SHARE = 0.85;

/* Bounds the memory that is kept of freed arrays: a rank may use so many bytes, and the
 * program and its libraries take a part of them. */
static void keep_within(int64_t bytes)
{
    const int64_t program = tess_mem_resident_bytes();
    tess_keep_limit(-1, bytes > program ? bytes - program : 0);
}

tess_status imager_rank_bytes(tess_comm *comm, const tess_layout *layout,
                              int64_t *bytes)
{
    tess_status status = TESS_OK;
    tess_comm *node = NULL;
    TESS_TRY(tess_comm_node(comm, &node));
    const int64_t node_bytes =
        layout->memory_bytes > 0 ? layout->memory_bytes : tess_mem_node_limit_bytes();
    *bytes = (int64_t)(MEMORY_SHARE * (double)node_bytes / tess_comm_size(node));
    TESS_TRY(tess_comm_allreduce_i64(comm, bytes, 1, TESS_MIN));
    keep_within(*bytes);
cleanup:
    tess_comm_free(node);
    return status;
}

tess_status imager_meter(tess_comm *comm, const tess_backend *backend,
                         tess_profile *profile)
{
    enum { ID_BYTES = 32 };
    tess_status status = TESS_OK;
    tess_comm *node = NULL;
    char own[ID_BYTES] = "", *all = NULL;
    if (!profile->wants_energy) return TESS_OK;
    TESS_TRY(tess_comm_node(comm, &node));
    all = tess_alloc(tess_comm_size(node), ID_BYTES);
    TESS_TRY(tess_comm_agree(node, all ? TESS_OK : TESS_ERR_ALLOC));
    if (backend->bus_id) backend->bus_id(own, ID_BYTES);
    TESS_TRY(tess_comm_allgather(node, own, ID_BYTES, all));
    for (int k = 0; k < tess_comm_rank(node); ++k)
        if (strncmp(all + (size_t)k * ID_BYTES, own, ID_BYTES) == 0) own[0] = '\0';
    tess_profile_start_meter(profile, own, tess_comm_rank(node) == 0);
cleanup:
    tess_free(all);
    tess_comm_free(node);
    return status;
}

/* ---- the backend ---- */

/* Length of the text of a PCI bus id. */
enum { BUS_ID = 32 };

/* Take a device near this rank's processors, and learn how many ranks have taken the
 * same device. Ranks may see different sets of devices, so the number of a device does
 * not identify it, but its bus id does. Collective over the ranks of a node. */
static tess_status take_device(const tess_backend *backend, tess_comm *node,
                               int64_t *sharing)
{
    tess_status status = TESS_OK;
    const int rank = tess_comm_rank(node), size = tess_comm_size(node);
    const int here = tess_numa_here("/sys");
    char own[BUS_ID] = "", *taken = tess_alloc_zero(size, BUS_ID);
    int *numa_node = tess_alloc(size, sizeof *numa_node);
    *sharing = 0;
    TESS_TRY(tess_comm_agree(node, taken && numa_node ? TESS_OK : TESS_ERR_ALLOC));
    TESS_TRY(tess_comm_allgather(node, &here, sizeof here, numa_node));
    TESS_TRY(tess_comm_agree(node, backend->start(numa_node, rank, size)));
    backend->bus_id(own, BUS_ID);
    TESS_TRY(tess_comm_allgather(node, own, BUS_ID, taken));
    for (int k = 0; k < size; ++k)
        *sharing += strcmp(taken + (int64_t)k * BUS_ID, own) == 0;
    TESS_TRY(backend->share((int)*sharing));
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
    int64_t without_device = found->start == NULL, sharing = 0;
    TESS_TRY(tess_comm_allreduce_i64(comm, &without_device, 1, TESS_MAX));
    if (without_device)
        TESS_TRY(tess_comm_agree(comm, tess_backend_find("cpu", &found)));
    if (found->start) {
        TESS_TRY(tess_comm_node(comm, &node));
        TESS_TRY(tess_comm_agree(comm, take_device(found, node, &sharing)));
        TESS_TRY(tess_comm_allreduce_i64(comm, &sharing, 1, TESS_MAX));
    }
    if (sharing > 1)
        tess_log_info("%d ranks share a GPU: they divide its memory, and wait for each "
                      "other; one "
                      "rank for each GPU, with more --threads, is usually faster",
                      (int)sharing);
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
