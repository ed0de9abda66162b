/* Finds what a rank may use of its node: a share of the memory, and meters of energy.
 */
#include "imager_resources.h"

#include <string.h>

#include "tess_keep.h"
#include "tess_mem.h"

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
