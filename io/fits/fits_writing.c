/* Writes images and planes of cubes in three steps: the ranks create the file together,
 * a thread of each rank writes pixels, and the ranks complete the file together. */
#include "fits_writing.h"

#include "tess_mem.h"

tess_status fits_writing_create(const char *path, const tess_image_meta *meta,
                                const tess_fits_rows *rows, int64_t offset,
                                tess_fits_writing **writing)
{
    tess_status status = TESS_OK;
    tess_fits_writing *made = tess_alloc_zero(1, sizeof *made);
    char *own_path = tess_strdup(path);
    if (!made || !own_path) TESS_FAIL(TESS_ERR_ALLOC, "%s: image", path);
    made->path = own_path;
    made->meta = *meta;
    made->file = (fits_output){.path = own_path, .fd = -1};
    made->slab = (fits_slab){.pixels = rows->pixel,
                             .count = rows->num_rows * meta->nx,
                             .offset = offset,
                             .is_double = rows->is_double};
    *writing = made;
    made = NULL;
    own_path = NULL;
cleanup:
    tess_free(own_path);
    tess_free(made);
    return status;
}

void tess_fits_put(tess_fits_writing *writing, int threads)
{
    writing->status = fits_output_write(&writing->file, &writing->slab, threads);
}

tess_status tess_fits_end(tess_comm *comm, tess_fits_writing *writing,
                          tess_held_files *held)
{
    tess_status status = TESS_OK;
    tess_fits_stats stats;
    TESS_TRY(tess_comm_agree(comm, writing->status));
    TESS_TRY(fits_output_sum(comm, &writing->file, &stats));
    TESS_TRY(writing->end(comm, writing, &stats, held));
cleanup:
    return status;
}

void tess_fits_leave(bool root, tess_fits_writing *writing)
{
    if (!writing) return;
    if (!writing->cube) fits_output_leave(root, &writing->file);
    tess_free(writing->path);
    tess_free(writing);
}

/* ---- images ---- */

/* Completes a file of one image. Collective. */
static tess_status end_image(tess_comm *comm, tess_fits_writing *writing,
                             const tess_fits_stats *stats, tess_held_files *held)
{
    tess_status status = TESS_OK;
    const bool root = tess_comm_rank(comm) == 0;
    if (root)
        status = fits_output_end(&writing->file, &writing->meta,
                                 writing->slab.is_double, stats);
    if (status == TESS_OK) status = fits_output_hold(root, &writing->file, held);
    return tess_comm_agree(comm, status);
}

/* Checks that the rows of all ranks are the image. Collective. */
static tess_status check_rows(tess_comm *comm, const char *path,
                              const tess_image_meta *meta, const tess_fits_rows *rows)
{
    tess_status status = TESS_OK;
    int64_t total = rows->num_rows;
    TESS_TRY(tess_comm_agree(
        comm, fits_output_check(path, meta, rows->row_first, rows->num_rows)));
    TESS_TRY(tess_comm_allreduce_i64(comm, &total, 1, TESS_SUM));
    if (total != meta->ny)
        TESS_FAIL(TESS_ERR_INTERNAL, "%s: the ranks hold %lld of %lld rows", path,
                  (long long)total, (long long)meta->ny);
cleanup:
    return status;
}

tess_status tess_fits_begin(tess_comm *comm, const char *path, bool overwrite,
                            const tess_image_meta *meta, const tess_fits_rows *rows,
                            tess_fits_writing **writing)
{
    tess_status status = TESS_OK;
    const bool root = tess_comm_rank(comm) == 0;
    tess_fits_writing *made = NULL;
    TESS_TRY(check_rows(comm, path, meta, rows));
    TESS_TRY(tess_comm_agree(comm, fits_writing_create(path, meta, rows, 0, &made)));
    TESS_TRY(fits_output_begin(comm, meta, rows->is_double, overwrite, &made->file));
    made->end = end_image;
    made->slab.offset = made->file.header_bytes +
                        rows->row_first * meta->nx * (rows->is_double ? 8 : 4);
    if (made->slab.count > 0) status = fits_output_open(&made->file);
    TESS_TRY(tess_comm_agree(comm, status));
    *writing = made;
    made = NULL;
cleanup:
    tess_fits_leave(root, made);
    return status;
}

tess_status tess_fits_hold(tess_comm *comm, const char *path, tess_held_files *held,
                           const tess_image_meta *meta, const tess_fits_rows *rows)
{
    tess_status status = TESS_OK;
    tess_fits_writing *writing = NULL;
    TESS_TRY(tess_fits_begin(comm, path, held->overwrite, meta, rows, &writing));
    tess_fits_put(writing, held->threads);
    TESS_TRY(tess_fits_end(comm, writing, held));
cleanup:
    tess_fits_leave(tess_comm_rank(comm) == 0, writing);
    return status;
}

tess_status tess_fits_write(tess_comm *comm, const char *path, bool overwrite,
                            const tess_image_meta *meta, const tess_fits_rows *rows)
{
    tess_status status = TESS_OK;
    tess_held_files held = {.overwrite = overwrite};
    TESS_TRY(tess_fits_hold(comm, path, &held, meta, rows));
    TESS_TRY(tess_held_publish(comm, &held));
cleanup:
    tess_held_free(&held);
    return status;
}
