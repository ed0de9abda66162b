/* Writes images as FITS files: each rank writes the rows that it has. */
#include "fits_output.h"
#include "tess_fits.h"

tess_status tess_fits_hold(tess_comm *comm, const char *path, tess_held_files *held,
                           const tess_image_meta *meta, const tess_fits_rows *rows)
{
    tess_status status = TESS_OK;
    const bool root = tess_comm_rank(comm) == 0;
    tess_fits_stats stats = {0};
    int64_t total = rows->num_rows;
    const int64_t pixel_bytes = rows->is_double ? 8 : 4;
    fits_output file = {.path = path, .fd = -1};
    TESS_TRY(tess_comm_agree(
        comm, fits_output_check(path, meta, rows->row_first, rows->num_rows)));
    TESS_TRY(tess_comm_allreduce_i64(comm, &total, 1, TESS_SUM));
    if (total != meta->ny)
        TESS_FAIL(TESS_ERR_INTERNAL, "%s: the ranks hold %lld of %lld rows", path,
                  (long long)total, (long long)meta->ny);
    TESS_TRY(fits_output_begin(comm, meta, rows->is_double, held->overwrite, &file));
    const fits_slab mine = {.pixels = rows->pixel,
                            .count = rows->num_rows * meta->nx,
                            .offset = file.header_bytes +
                                      rows->row_first * meta->nx * pixel_bytes,
                            .is_double = rows->is_double};
    TESS_TRY(tess_comm_agree(comm, fits_output_write(&file, &mine, held->threads)));
    TESS_TRY(fits_output_sum(comm, &file, &stats));
    if (root) status = fits_output_end(&file, meta, rows->is_double, &stats);
    if (status == TESS_OK) status = fits_output_hold(root, &file, held);
    TESS_TRY(tess_comm_agree(comm, status));
cleanup:
    fits_output_leave(root, &file);
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
