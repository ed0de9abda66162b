/* Writes cubes: planes in any order, tables of them, and the header in the end. */
#define _GNU_SOURCE
#include "tess_fits_cube.h"

#include <math.h>
#include <string.h>

#include "fits_cube.h"
#include "fits_output.h"
#include "tess_const.h"
#include "tess_mem.h"

struct tess_fits_cube {
    fits_output file;
    char *path; /* owned */
    bool root, is_double;
    tess_image_meta meta;
    tess_cube_axes axes;
    int num_planes;
    fits_plane *plane; /* [num_planes] Stokes by Stokes; each on one rank, else zeros */
};

double tess_cube_bytes(const tess_image_meta *meta, bool is_double)
{
    return (double)meta->nx * (double)meta->ny * meta->cube->num_freq *
           meta->cube->num_stokes * (is_double ? 8 : 4);
}

/* Local. */
static tess_status allocate(const char *path, const tess_image_meta *meta,
                            bool is_double, tess_fits_cube **cube_out)
{
    tess_status status = TESS_OK;
    tess_fits_cube *cube = tess_alloc_zero(1, sizeof *cube);
    if (!cube) TESS_FAIL(TESS_ERR_ALLOC, "%s: cube", path);
    cube->file.fd = -1;
    cube->is_double = is_double;
    cube->meta = *meta;
    cube->axes = *meta->cube;
    cube->meta.cube = &cube->axes;
    cube->num_planes = meta->cube->num_freq * meta->cube->num_stokes;
    cube->plane = tess_alloc_zero(cube->num_planes, sizeof *cube->plane);
    cube->path = tess_strdup(path);
    if (!cube->plane || !cube->path) TESS_FAIL(TESS_ERR_ALLOC, "%s: planes", path);
    cube->file.path = cube->path;
    *cube_out = cube;
    cube = NULL;
cleanup:
    tess_fits_cube_destroy(cube);
    return status;
}

tess_status tess_fits_cube_create(tess_comm *comm, const char *path, bool overwrite,
                                  const tess_image_meta *meta, bool is_double,
                                  tess_fits_cube **cube_out)
{
    tess_status status = TESS_OK;
    tess_fits_cube *cube = NULL;
    TESS_TRY(tess_comm_agree(comm, fits_output_check(path, meta, 0, meta->ny)));
    TESS_TRY(tess_comm_agree(comm, allocate(path, meta, is_double, &cube)));
    cube->root = tess_comm_rank(comm) == 0;
    TESS_TRY(fits_output_begin(comm, &cube->meta, is_double, overwrite, &cube->file));
    *cube_out = cube;
    cube = NULL;
cleanup:
    tess_fits_cube_destroy(cube);
    return status;
}

/* ---- planes ---- */

static fits_plane plane_of(const tess_image_meta *meta, const tess_fits_stats *stats)
{
    const tess_fits_cleaned *cleaned = &meta->cleaned;
    return (fits_plane){.written = 1,
                        .beam_deg = {meta->beam.major_rad / TESS_RAD_PER_DEG,
                                     meta->beam.minor_rad / TESS_RAD_PER_DEG,
                                     meta->beam.pa_rad / TESS_RAD_PER_DEG},
                        .freq_mean_hz = meta->gridded.freq_mean_hz,
                        .sum_weights = meta->gridded.sum_weights,
                        .num_vis = (double)meta->gridded.num_vis,
                        .min = stats->min,
                        .max = stats->max,
                        .data_sum = stats->data_sum,
                        .iterations = (double)cleaned->iterations,
                        .majors = (double)cleaned->majors,
                        .threshold_jy = cleaned->threshold_jy,
                        .flux_jy = cleaned->flux_jy};
}

/* Rows of one image, without sums of others before it. */
static void start_sums(fits_output *file)
{
    file->sum = 0;
    file->min = INFINITY;
    file->max = -INFINITY;
}

tess_status tess_fits_cube_write(tess_comm *comm, const tess_cube_plane *plane,
                                 int threads, tess_fits_cube *cube)
{
    tess_status status = TESS_OK;
    fits_output *file = &cube->file;
    const int64_t nx = cube->meta.nx, size = cube->is_double ? 8 : 4;
    const int64_t at = (int64_t)plane->stokes * cube->axes.num_freq + plane->freq;
    const fits_slab mine = {.pixels = plane->rows,
                            .count = plane->num_rows * nx,
                            .offset =
                                file->header_bytes +
                                (at * cube->meta.ny + plane->row_first) * nx * size,
                            .is_double = cube->is_double};
    tess_fits_stats stats;
    TESS_TRY(
        tess_comm_agree(comm, fits_output_check(cube->path, &cube->meta,
                                                plane->row_first, plane->num_rows)));
    start_sums(file);
    TESS_TRY(tess_comm_agree(comm, fits_output_write(file, &mine, threads)));
    TESS_TRY(fits_output_sum(comm, file, &stats));
    if (tess_comm_rank(comm) == 0) cube->plane[at] = plane_of(plane->meta, &stats);
cleanup:
    return status;
}

/* ---- the end ---- */

/* All ranks get to know all planes, and that none is missing. Collective. */
static tess_status gather(tess_comm *comm, tess_fits_cube *cube)
{
    tess_status status = TESS_OK;
    const int64_t numbers = (int64_t)(sizeof *cube->plane / sizeof(double));
    TESS_TRY(tess_comm_allreduce_f64(comm, (double *)cube->plane,
                                     numbers * cube->num_planes, TESS_SUM));
    for (int k = 0; k < cube->num_planes; ++k)
        if (!(cube->plane[k].written > 0))
            TESS_FAIL(TESS_ERR_INTERNAL, "%s: plane %d has not been written",
                      cube->path, k);
cleanup:
    return status;
}

/* Range and checksum of all planes. Each begins at a whole word of the sum. */
static tess_fits_stats sum_of(const tess_fits_cube *cube)
{
    uint64_t sum = 0;
    tess_fits_stats all = {.min = INFINITY, .max = -INFINITY};
    for (int k = 0; k < cube->num_planes; ++k) {
        sum += (uint64_t)cube->plane[k].data_sum;
        all.min = fmin(all.min, cube->plane[k].min);
        all.max = fmax(all.max, cube->plane[k].max);
    }
    all.data_sum = tess_fits_fold(sum);
    return all;
}

/* Rank 0: the tables, then the header. */
static tess_status complete(tess_fits_cube *cube)
{
    tess_status status = TESS_OK;
    const tess_fits_stats stats = sum_of(cube);
    const int64_t used = fits_output_bytes(&cube->meta, cube->is_double);
    const int64_t behind = cube->file.header_bytes + (used + TESS_FITS_BLOCK - 1) /
                                                         TESS_FITS_BLOCK *
                                                         TESS_FITS_BLOCK;
    char *tables = NULL;
    int64_t bytes;
    for (int k = 0; k < cube->num_planes; ++k)
        if (cube->plane[k].beam_deg[0] > 0) cube->axes.has_beams = true;
    TESS_TRY(fits_cube_tables(&cube->meta, cube->plane, &tables, &bytes));
    TESS_TRY(tess_out_file_write(cube->file.fd, cube->path, tables, bytes, behind));
    TESS_TRY(fits_output_end(&cube->file, &cube->meta, cube->is_double, &stats));
cleanup:
    tess_free(tables);
    return status;
}

tess_status tess_fits_cube_finish(tess_comm *comm, tess_held_files *held,
                                  tess_fits_cube *cube)
{
    tess_status status = TESS_OK;
    TESS_TRY(gather(comm, cube));
    if (cube->root) status = complete(cube);
    if (status == TESS_OK) status = fits_output_hold(cube->root, &cube->file, held);
    TESS_TRY(tess_comm_agree(comm, status));
cleanup:
    return status;
}

void tess_fits_cube_destroy(tess_fits_cube *cube)
{
    if (!cube) return;
    fits_output_leave(cube->root, &cube->file);
    tess_free(cube->plane);
    tess_free(cube->path);
    tess_free(cube);
}
