/* Shares the rows of a segment over ranks, and cuts them into blocks. */
#include "sim_rows.h"

/* Visibilities of one block: large enough for fast writing, small beside any node's
 * memory, also where one rank gathers the blocks of all. */
static const int64_t BLOCK_BYTES = 32 << 20, MIN_BLOCK_BYTES = 256 << 10;

static int64_t block_rows(const tess_vis_segment *segment, int64_t num_gathered)
{
    const int64_t row_bytes =
        segment->num_chan * segment->num_corr * (int64_t)(3 * sizeof(float)) + 64;
    int64_t bytes = BLOCK_BYTES / num_gathered;
    if (bytes < MIN_BLOCK_BYTES) bytes = MIN_BLOCK_BYTES;
    const int64_t rows = bytes / row_bytes;
    return rows < 1 ? 1 : rows;
}

tess_sim_rows tess_sim_rows_of(const tess_comm *comm, const tess_vis_segment *segment,
                               bool gathered)
{
    const int64_t rank = tess_comm_rank(comm), size = tess_comm_size(comm);
    const int64_t share = segment->num_rows / size, extra = segment->num_rows % size;
    tess_sim_rows rows = {.first = rank * share + (rank < extra ? rank : extra),
                          .step = block_rows(segment, gathered ? size : 1)};
    rows.end = rows.first + share + (rank < extra ? 1 : 0);
    const int64_t most = share + (extra > 0 ? 1 : 0);
    rows.num_blocks = (most + rows.step - 1) / rows.step;
    return rows;
}
