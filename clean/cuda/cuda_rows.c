/* The caller's rows on the device: see cuda_rows.h. */
#include "cuda_rows.h"

#include <string.h>

#include "tess_device.h"
#include "tess_device_comm.h"
#include "tess_mem.h"

/* Parts of a buffer begin at multiples of this number of bytes. */
enum { ALIGNMENT = 256 };

tess_status cuda_rows_view(const tess_rows *rows, cuda_view *view)
{
    tess_status status = TESS_OK;
    const int64_t bytes = tess_rows_bytes(rows);
    *view = (cuda_view){
        .pixels = {.value = rows->value, .bytes = (int)tess_pixel_bytes(rows->type)}};
    if (rows->place || bytes == 0) return TESS_OK;
    TESS_TRY(tess_device_alloc(bytes, "rows of an image", &view->copy));
    view->pixels.value = view->copy;
    TESS_TRY(tess_device_upload(view->copy, rows->value, bytes));
cleanup:
    return status;
}

tess_status cuda_rows_put_back(const tess_rows *rows, const cuda_view *view)
{
    if (!view->copy) return TESS_OK;
    return tess_device_download(rows->value, view->copy, tess_rows_bytes(rows));
}

void cuda_rows_free(cuda_view *view)
{
    tess_device_free(view->copy);
    *view = (cuda_view){0};
}

/* ---- of several ranks, from device to device ---- */

/* What a rank sends in a round, and where it puts what it gets: [P]. */
typedef struct parts {
    tess_device_part *send;
    tess_device_rows *take;
} parts;

/* The rounds in which rows go to the ranks that hold images, or come from the one that
 * leads. A part of a round has `each` bytes at most. */
typedef struct rounds {
    const clean_work *work;
    char *own, *whole; /* this rank's rows; the image, on ranks that hold it */
    int64_t line, each, done;
} rounds;

/* Bytes of a rank's rows that are moved in this round. */
static int64_t part_of(const rounds *all, int rank)
{
    const int64_t left = all->work->ranks.rows_of[rank] * all->line - all->done;
    return left < 0 ? 0 : left < all->each ? left : all->each;
}

static tess_status copy(void *to, const void *from, int64_t bytes)
{
    return tess_device_copy_rows(to, bytes, from, bytes, bytes, 1);
}

/* Every rank sends a part of its rows to those that hold the image. */
static tess_status fill_gathered(const rounds *all, char *buffer, const parts *set)
{
    const int64_t mine = part_of(all, tess_comm_rank(all->work->setup->comm));
    char *to = all->whole;
    for (int k = 0; k < all->work->ranks.num; ++k) {
        const int64_t bytes = part_of(all, k);
        set->send[k] =
            (tess_device_part){0, k == 0 || all->work->ranks.shares ? mine : 0};
        set->take[k] = (tess_device_rows){0};
        if (!all->work->ranks.holds) continue;
        set->take[k] = (tess_device_rows){to + all->done, bytes, bytes, 1};
        to += all->work->ranks.rows_of[k] * all->line;
    }
    return copy(buffer, all->own + all->done, mine);
}

/* The first rank sends each one a part of its rows. */
static tess_status fill_scattered(const rounds *all, char *buffer, const parts *set)
{
    tess_status status = TESS_OK;
    const int64_t mine = part_of(all, tess_comm_rank(all->work->setup->comm));
    const char *from = all->whole;
    for (int k = 0; k < all->work->ranks.num; ++k) {
        const int64_t bytes = part_of(all, k), at = k * all->each;
        set->take[k] = (tess_device_rows){0};
        set->send[k] = (tess_device_part){0};
        if (!all->work->ranks.leads) continue;
        set->send[k] = (tess_device_part){at, bytes};
        TESS_TRY(copy(buffer + at, from + all->done, bytes));
        from += all->work->ranks.rows_of[k] * all->line;
    }
    set->take[0] = (tess_device_rows){all->own + all->done, mine, mine, 1};
cleanup:
    return status;
}

/* Whether the rows of an image, which live in the same place on all ranks, need not
 * pass through host memory. */
static bool are_linked(const clean_work *work, const tess_rows *rows)
{
    const tess_device_comm *links = work->setup->opts.method.links;
    return links && rows->place &&
           tess_device_comm_room(links) >= (int64_t)work->ranks.num * ALIGNMENT;
}

/* Moves rows of all ranks to `whole`, or from there. Collective. */
static tess_status move_linked(const clean_work *work, const tess_rows *rows,
                               void *whole, bool gathers)
{
    tess_status status = TESS_OK;
    tess_device_comm *links = work->setup->opts.method.links;
    rounds all = {.work = work,
                  .own = rows->value,
                  .whole = whole,
                  .line = rows->nx * tess_pixel_bytes(rows->type)};
    parts set = {tess_alloc_zero(work->ranks.num, sizeof *set.send),
                 tess_alloc_zero(work->ranks.num, sizeof *set.take)};
    int64_t most = 0;
    all.each = tess_device_comm_room(links) / work->ranks.num / ALIGNMENT * ALIGNMENT;
    for (int k = 0; k < work->ranks.num; ++k)
        if (work->ranks.rows_of[k] * all.line > most)
            most = work->ranks.rows_of[k] * all.line;
    if (!set.send || !set.take) status = TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(work->setup->comm, status));
    for (; all.done < most; all.done += all.each) {
        void *buffer = NULL;
        status = tess_device_comm_buffer(links, &buffer);
        if (status == TESS_OK)
            status = (gathers ? fill_gathered : fill_scattered)(&all, buffer, &set);
        TESS_TRY(tess_device_comm_exchange(links, status, set.send, set.take));
    }
    TESS_TRY(tess_comm_agree(work->setup->comm, tess_device_comm_arrive(links)));
cleanup:
    tess_free(set.send);
    tess_free(set.take);
    return status;
}

static tess_status gather_linked(const clean_work *work, const tess_rows *rows,
                                 cuda_view *view)
{
    tess_status status = TESS_OK;
    const int64_t bytes = rows->nx * rows->ny * tess_pixel_bytes(rows->type);
    *view = (cuda_view){.pixels.bytes = (int)tess_pixel_bytes(rows->type)};
    if (work->ranks.holds)
        status = tess_device_alloc(bytes, "rows of an image", &view->copy);
    TESS_TRY(tess_comm_agree(work->setup->comm, status));
    view->pixels.value = view->copy;
    TESS_TRY(move_linked(work, rows, view->copy, true));
cleanup:
    return status;
}

/* ---- of several ranks ---- */

/* The whole image in host memory. */
static tess_rows whole_of(const tess_rows *rows, void *value)
{
    tess_rows whole = tess_rows_of(rows->nx, rows->ny, 0, rows->ny, rows->type);
    whole.value = value;
    return whole;
}

/* The rows of all ranks, on those that hold images. Collective. */
static tess_status gather_here(const clean_work *work, const tess_rows *own, void **all,
                               int64_t *bytes)
{
    tess_comm *comm = work->setup->comm;
    if (work->ranks.shares)
        return tess_comm_allgatherv(comm, own->value, tess_rows_bytes(own), all, bytes);
    return tess_comm_gatherv(comm, own->value, tess_rows_bytes(own), 0, all, bytes);
}

tess_status cuda_rows_gather(const clean_work *work, const tess_rows *rows,
                             cuda_view *view)
{
    tess_status status = TESS_OK;
    tess_comm *comm = work->setup->comm;
    tess_rows own = {0}, whole = {0};
    void *all = NULL;
    int64_t *bytes = NULL;
    *view = (cuda_view){0};
    if (work->ranks.num == 1) return cuda_rows_view(rows, view);
    if (are_linked(work, rows)) return gather_linked(work, rows, view);
    bytes = tess_alloc_zero(work->ranks.num, sizeof *bytes);
    status = bytes ? tess_rows_view(rows, &own) : TESS_ERR_ALLOC;
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(gather_here(work, &own, &all, bytes));
    whole = whole_of(rows, all);
    if (work->ranks.holds) status = cuda_rows_view(&whole, view);
    TESS_TRY(tess_comm_agree(comm, status));
cleanup:
    tess_rows_free(&own);
    tess_free(all);
    tess_free(bytes);
    return status;
}

tess_status cuda_rows_scatter(const clean_work *work, const cuda_view *view,
                              const tess_rows *rows)
{
    tess_status status = TESS_OK;
    tess_comm *comm = work->setup->comm;
    const int size = work->ranks.num;
    const int64_t line = rows->nx * tess_pixel_bytes(rows->type);
    tess_rows whole = whole_of(rows, NULL);
    void *recv = NULL;
    int64_t *bytes = NULL;
    if (size == 1) return cuda_rows_put_back(rows, view);
    if (are_linked(work, rows)) return move_linked(work, rows, view->copy, false);
    bytes = tess_alloc_zero(2 * (int64_t)size, sizeof *bytes);
    if (!bytes) status = TESS_ERR_ALLOC;
    if (status == TESS_OK && work->ranks.leads) {
        status = tess_rows_alloc(&whole);
        if (status == TESS_OK) status = cuda_rows_put_back(&whole, view);
        for (int k = 0; k < size; ++k)
            bytes[k] = work->ranks.rows_of[k] * line;
    }
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_alltoallv(comm, whole.value, bytes, &recv, bytes + size));
    if (rows->place)
        status = rows->place->upload(rows->value, recv, tess_rows_bytes(rows));
    else
        memcpy(rows->value, recv, (size_t)tess_rows_bytes(rows));
    TESS_TRY(tess_comm_agree(comm, status));
cleanup:
    tess_rows_free(&whole);
    tess_free(recv);
    tess_free(bytes);
    return status;
}
