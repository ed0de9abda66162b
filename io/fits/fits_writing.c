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
