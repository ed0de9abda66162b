/* Memory for lines of a plane on the cpu backend, and work memory that stays from plane
 * to plane of an image. */
#include "planes_cpu.h"
#include "tess_mem.h"

void *planes_cpu_work(tess_planes *planes, work_slot slot, int64_t bytes)
{
    if (bytes > planes->cpu->work_bytes[slot]) {
        tess_free(planes->cpu->work[slot]);
        planes->cpu->work[slot] = tess_alloc_fast(bytes, 1);
        planes->cpu->work_bytes[slot] = planes->cpu->work[slot] ? bytes : 0;
    }
    return planes->cpu->work[slot];
}

void planes_cpu_lines_free(line_set *set)
{
    tess_free(set->line);
    tess_free(set->slab);
    tess_free(set->counts);
    *set = (line_set){0};
}

tess_status planes_cpu_lines_create(const tess_planes *planes, int num_slabs,
                                    line_set *set)
{
    tess_status status = TESS_OK;
    set->num_slabs = num_slabs;
    set->slab = tess_alloc_zero(num_slabs, sizeof *set->slab);
    set->counts =
        tess_alloc_zero(planes->batch * (int64_t)num_slabs, sizeof *set->counts);
    if (!set->slab || !set->counts) TESS_FAIL(TESS_ERR_ALLOC, "lines of w-planes");
cleanup:
    return status;
}

/* Distance of lines in memory. It is an odd number of 128-byte groups. Otherwise, if ny
 * is a power of two, the same rows of successive lines would fall into one set of a
 * cache. */
static int64_t padded_rows(const tess_planes *planes, int64_t rows)
{
    const int64_t group = PLANES_CPU_GROUP / planes->value_bytes;
    return ((rows + group - 1) / group | 1) * group;
}

int64_t planes_cpu_most_lines(const line_set *all)
{
    int64_t most = 0;
    for (int f = 0; f < all->num_slabs; ++f)
        if (all->slab[f].num_lines > most) most = all->slab[f].num_lines;
    return most;
}

tess_status planes_cpu_place_lines(tess_planes *planes, int64_t row_count,
                                   int64_t most_lines, line_set *set)
{
    tess_status status = TESS_OK;
    const int64_t stride = padded_rows(planes, row_count);
    const int64_t bytes = set->num_lines * stride * planes->value_bytes;
    void *data = NULL;
    set->row_count = row_count;
    set->stride = stride;
    planes_note_plane(planes, bytes / planes->batch);
    if (planes->opts.fft_ranks > 1)
        TESS_TRY(tess_outbox_same_room(
            planes->lines_box, most_lines * stride * planes->value_bytes, &data));
    if (planes->opts.fft_ranks == 1 || !tess_outbox_is_shared(planes->lines_box))
        data = planes_cpu_work(planes, WORK_LINES, bytes);
    set->slab[0] = (slab_lines){set->num_lines, data};
    if (!data && bytes > 0)
        TESS_FAIL(TESS_ERR_ALLOC, "no memory for %lld lines of a w-plane (%s)",
                  (long long)set->num_lines, tess_mem_text((double)bytes));
cleanup:
    return status;
}
