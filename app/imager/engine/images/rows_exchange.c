/* Sends pixels of images from the ranks that have them to those that want them. All
 * ranks know where all parts lie, so that a message has nothing but pixels. */
#include "rows_exchange.h"

#include <string.h>

#include "tess_mem.h"

/* A rectangle of pixels. */
typedef struct patch {
    int64_t x, y, nx, ny;
} patch;

/* What a rank has, and what it wants. */
typedef struct parts {
    patch have, want;
} parts;

static patch patch_of(const tess_rows *rows)
{
    return (patch){rows->col_first, rows->row_first, rows->num_cols, rows->num_rows};
}

/* The begin and the length of what two spans have in common. */
static int64_t common_span(int64_t a, int64_t na, int64_t b, int64_t nb, int64_t *count)
{
    const int64_t first = a > b ? a : b;
    const int64_t end = a + na < b + nb ? a + na : b + nb;
    *count = end > first ? end - first : 0;
    return first;
}

static patch common(const patch *a, const patch *b)
{
    patch both;
    both.x = common_span(a->x, a->nx, b->x, b->nx, &both.nx);
    both.y = common_span(a->y, a->ny, b->y, b->ny, &both.ny);
    return both;
}

/* Address of the pixel in a row and column of the image. */
static void *address(const tess_rows *rows, int64_t x, int64_t y)
{
    return tess_rows_at(rows,
                        (y - rows->row_first) * rows->num_cols + x - rows->col_first);
}

/* Copies the pixels of a patch of rows to memory, or back; returns where the next patch
 * begins there. */
static char *copy(const tess_rows *rows, const patch *of, bool back, char *packed)
{
    const size_t bytes = (size_t)(of->nx * tess_pixel_bytes(rows->type));
    for (int64_t k = 0; k < of->ny && of->nx > 0; ++k, packed += bytes) {
        void *at = address(rows, of->x, of->y + k);
        memcpy(back ? at : packed, back ? packed : at, bytes);
    }
    return packed;
}

/* Packs what every rank wants of this rank's part, counts[ranks] bytes. Local. */
static tess_status pack(const tess_rows *have, const parts *all, int ranks,
                        int64_t *counts, void **packed)
{
    tess_status status = TESS_OK;
    const patch own = patch_of(have);
    tess_rows view = {0};
    int64_t bytes = 0;
    for (int k = 0; k < ranks; ++k) {
        const patch sent = common(&own, &all[k].want);
        bytes += counts[k] = sent.nx * sent.ny * tess_pixel_bytes(have->type);
    }
    char *to = *packed = tess_alloc(bytes, 1);
    if (!to) TESS_FAIL(TESS_ERR_ALLOC, "pixels for other ranks");
    TESS_TRY(tess_rows_view(have, &view));
    for (int k = 0; k < ranks; ++k) {
        const patch sent = common(&own, &all[k].want);
        to = copy(&view, &sent, false, to);
    }
cleanup:
    tess_rows_free(&view);
    return status;
}

/* Puts what has arrived in the order of ranks where it belongs. Local. */
static tess_status unpack(const tess_rows *want, const parts *all, int ranks,
                          char *arrived)
{
    tess_status status = TESS_OK;
    const patch own = patch_of(want);
    tess_rows view = {0};
    TESS_TRY(tess_rows_edit(want, true, &view));
    for (int k = 0; k < ranks; ++k) {
        const patch sent = common(&all[k].have, &own);
        arrived = copy(&view, &sent, true, arrived);
    }
    TESS_TRY(tess_rows_put_back(want, &view));
cleanup:
    return status;
}

/* An only rank copies its pixels. Local. */
static tess_status copy_common(const tess_rows *have, const tess_rows *want)
{
    tess_status status = TESS_OK;
    const patch mine = patch_of(have), wanted = patch_of(want);
    const patch both = common(&mine, &wanted);
    const size_t bytes = (size_t)(both.nx * tess_pixel_bytes(have->type));
    tess_rows from = {0}, to = {0};
    TESS_TRY(tess_rows_view(have, &from));
    TESS_TRY(tess_rows_edit(want, true, &to));
    for (int64_t row = both.y; row < both.y + both.ny && both.nx > 0; ++row)
        memcpy(address(&to, both.x, row), address(&from, both.x, row), bytes);
    TESS_TRY(tess_rows_put_back(want, &to));
cleanup:
    tess_rows_free(&from);
    return status;
}

tess_status imager_rows_exchange(tess_comm *comm, const tess_rows *have,
                                 const tess_rows *want)
{
    tess_status status = TESS_OK;
    const int ranks = tess_comm_size(comm);
    const parts own = {patch_of(have), patch_of(want)};
    parts *all = tess_alloc(ranks, sizeof *all);
    int64_t *counts = tess_alloc_zero(2 * (int64_t)ranks, sizeof *counts);
    void *packed = NULL, *arrived = NULL;
    if (!all || !counts) status = TESS_ERR_ALLOC;
    if (have->type != want->type)
        status = tess_error_record(TESS_ERR_INTERNAL, __FILE__, __LINE__, __func__,
                                   "pixels of two types");
    TESS_TRY(tess_comm_agree(comm, status));
    if (ranks == 1) {
        status = copy_common(have, want);
        goto cleanup;
    }
    TESS_TRY(tess_comm_allgather(comm, &own, sizeof own, all));
    status = pack(have, all, ranks, counts, &packed);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_alltoallv(comm, packed, counts, &arrived, counts + ranks));
    TESS_TRY(tess_comm_agree(comm, unpack(want, all, ranks, arrived)));
cleanup:
    tess_free(packed);
    tess_free(arrived);
    tess_free(counts);
    tess_free(all);
    return status;
}
