/* Transposes lines of a plane between the ranks of a group, on the cpu backend. */
#include <string.h>

#include "planes_cpu.h"
#include "tess_mem.h"

static void slab_rows(const tess_planes *planes, int slab, int64_t *first,
                      int64_t *count)
{
    *first = planes_share(planes->opts.ny, slab, planes->opts.fft_ranks);
    *count = planes_share(planes->opts.ny, slab + 1, planes->opts.fft_ranks) - *first;
}

tess_status planes_cpu_line_numbers(tess_planes *planes, tess_status status,
                                    const line_set *own, line_set *all)
{
    const int slabs = planes->opts.fft_ranks;
    if (status == TESS_OK) status = planes_cpu_lines_create(planes, slabs, all);
    TESS_TRY(planes_gather_lines(planes, status, own->line, own->num_lines, &all->line,
                                 all->counts));
    for (int k = 0; k < planes->batch * slabs; ++k) {
        all->slab[k % slabs].num_lines += all->counts[k];
        all->num_lines += all->counts[k];
    }
cleanup:
    return status;
}

/* Copies a block of `lines` × `count` values between two arrays of different row
 * length. A rank without rows copies nothing, and may have no memory. */
static void copy_block(const tess_planes *planes, char *to, int64_t to_stride,
                       const char *from, int64_t from_stride, int64_t lines,
                       int64_t count)
{
    const int64_t bytes = planes->value_bytes;
    if (count == 0) return;
#pragma omp parallel for num_threads(planes->opts.threads)
    for (int64_t k = 0; k < lines; ++k)
        memcpy(to + k * to_stride * bytes, from + k * from_stride * bytes,
               (size_t)(count * bytes));
}

/* Copies this rank's rows of the lines that lie in the outboxes of the group's other
 * ranks. Collective in the group. */
static tess_status read_in_place(const tess_planes *planes, tess_status status,
                                 const line_set *own, line_set *all)
{
    const int64_t first = planes->row_first * planes->value_bytes;
    const int64_t others = planes->opts.ny - all->row_count;
    TESS_TRY(tess_outbox_meet(planes->lines_box, status,
                              own->num_lines * others * planes->value_bytes));
    all->stride = own->stride;
    for (int f = 0; f < all->num_slabs; ++f)
        all->slab[f].data = (char *)tess_outbox_of(planes->lines_box, f) + first;
cleanup:
    return status;
}

/* Packs the rows of this rank's lines for the ranks of the group that own the rows.
 * counts[F]: their bytes. The outbox has room, because lines have been placed. Local in
 * effect. */
static tess_status pack_rows(tess_planes *planes, const line_set *own,
                             const line_set *all, int64_t *counts)
{
    tess_status status = TESS_OK;
    const int64_t bytes = planes->value_bytes;
    void *room = NULL;
    TESS_TRY(tess_outbox_same_room(planes->lines_box,
                                   planes_cpu_most_lines(all) * planes->opts.ny * bytes,
                                   &room));
    char *at = room;
    for (int f = 0; f < planes->opts.fft_ranks; ++f) {
        int64_t first, count;
        slab_rows(planes, f, &first, &count);
        copy_block(planes, at, count, own->slab[0].data + first * bytes, own->stride,
                   own->num_lines, count);
        counts[f] = own->num_lines * count * bytes;
        at += counts[f];
    }
cleanup:
    return status;
}

/* Sends the rows of this rank's lines to the ranks of the group that own the rows. What
 * arrives is read only. Collective in the group. */
static tess_status send_rows(tess_planes *planes, tess_status status,
                             const line_set *own, line_set *all)
{
    const int slabs = planes->opts.fft_ranks;
    void **part = tess_alloc(slabs, sizeof *part);
    int64_t *counts = tess_alloc(2 * slabs, sizeof *counts);
    if (status == TESS_OK)
        status = part && counts ? pack_rows(planes, own, all, counts) : TESS_ERR_ALLOC;
    TESS_TRY(tess_outbox_send(planes->lines_box, status, counts,
                              counts ? counts + slabs : NULL, part));
    all->stride = all->row_count;
    planes_note_plane(planes, all->num_lines * all->row_count * planes->value_bytes /
                                  planes->batch);
    for (int f = 0; f < slabs; ++f)
        all->slab[f].data = part[f];
cleanup:
    tess_free(part);
    tess_free(counts);
    return status;
}

tess_status planes_cpu_to_rows(tess_planes *planes, tess_status status, line_set *own,
                               line_set *all)
{
    if (planes->opts.fft_ranks == 1) {
        *all = *own;
        *own = (line_set){0};
        return status;
    }
    all->row_count = planes->row_end - planes->row_first;
    status = tess_outbox_is_shared(planes->lines_box)
                 ? read_in_place(planes, status, own, all)
                 : send_rows(planes, status, own, all);
    planes_cpu_lines_free(own);
    return status;
}

tess_status planes_cpu_to_lines(tess_planes *planes, tess_status status,
                                const line_set *all, line_set *own)
{
    const int slabs = planes->opts.fft_ranks;
    const int64_t bytes = planes->value_bytes;
    void **part = tess_alloc(slabs, sizeof *part);
    int64_t *counts = tess_alloc(2 * slabs, sizeof *counts);
    char *data = planes_cpu_work(planes, WORK_OWN_LINES,
                                 own->num_lines * planes->opts.ny * bytes + 1);
    own->row_count = own->stride = planes->opts.ny;
    own->slab[0] = (slab_lines){own->num_lines, data};
    planes_note_plane(planes, own->num_lines * planes->opts.ny * bytes / planes->batch);
    if (status == TESS_OK && !(part && counts && data)) status = TESS_ERR_ALLOC;
    for (int f = 0; f < slabs && status == TESS_OK; ++f)
        counts[f] = all->slab[f].num_lines * all->row_count * bytes;
    TESS_TRY(tess_outbox_send(planes->lines_box, status, counts,
                              counts ? counts + slabs : NULL, part));
    for (int f = 0; f < slabs; ++f) {
        int64_t first, count;
        slab_rows(planes, f, &first, &count);
        copy_block(planes, data + first * bytes, own->stride, part[f], count,
                   own->num_lines, count);
    }
cleanup:
    tess_free(part);
    tess_free(counts);
    return status;
}
