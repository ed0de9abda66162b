/* Writes cubes: their planes in any order, tables of the planes, and the header in the
 * end. */
#define _GNU_SOURCE
#include "tess_fits_cube.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "fits_cube.h"
#include "fits_output.h"
#include "fits_writing.h"
#include "held_files.h"
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
    fits_plane *all;   /* [num_planes] those of all ranks, once they are gathered */
};

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
    cube->all = tess_alloc_zero(cube->num_planes, sizeof *cube->all);
    cube->path = tess_strdup(path);
    if (!cube->plane || !cube->all || !cube->path)
        TESS_FAIL(TESS_ERR_ALLOC, "%s: planes", path);
    cube->file.path = cube->path;
    *cube_out = cube;
    cube = NULL;
cleanup:
    tess_fits_cube_destroy(cube);
    return status;
}

/* ---- tables and header ---- */

/* Computes the range and the checksum of all planes. Each plane begins at a whole word
 * of the sum. */
static tess_fits_stats sum_of(const tess_fits_cube *cube)
{
    uint64_t sum = 0;
    tess_fits_stats all = {.min = INFINITY, .max = -INFINITY};
    for (int k = 0; k < cube->num_planes; ++k) {
        if (!(cube->all[k].written > 0)) continue; /* its pixels are 0 */
        sum += (uint64_t)cube->all[k].data_sum;
        all.min = fmin(all.min, cube->all[k].min);
        all.max = fmax(all.max, cube->all[k].max);
    }
    all.data_sum = tess_fits_fold(sum);
    return all;
}

/* Finds the byte behind the pixels. */
static int64_t tables_at(const tess_fits_cube *cube)
{
    const int64_t used = fits_output_bytes(&cube->meta, cube->is_double);
    return cube->file.header_bytes +
           (used + TESS_FITS_BLOCK - 1) / TESS_FITS_BLOCK * TESS_FITS_BLOCK;
}

/* Says where the beams are: in a table or, if there is one plane, in the header. */
static void place_beams(tess_fits_cube *cube)
{
    const double *beam_deg = cube->all[0].beam_deg;
    if (cube->num_planes == 1)
        cube->meta.beam = (tess_fits_beam){.major_rad = beam_deg[0] * TESS_RAD_PER_DEG,
                                           .minor_rad = beam_deg[1] * TESS_RAD_PER_DEG,
                                           .pa_rad = beam_deg[2] * TESS_RAD_PER_DEG};
    else
        for (int k = 0; k < cube->num_planes; ++k)
            if (cube->all[k].beam_deg[0] > 0) cube->axes.has_beams = true;
}

/* Rank 0 writes the tables, and then the header. */
static tess_status complete(tess_fits_cube *cube)
{
    tess_status status = TESS_OK;
    const tess_fits_stats stats = sum_of(cube);
    char *tables = NULL;
    int64_t bytes;
    place_beams(cube);
    TESS_TRY(fits_cube_tables(&cube->meta, cube->all, &tables, &bytes));
    TESS_TRY(
        tess_out_file_write(cube->file.fd, cube->path, tables, bytes, tables_at(cube)));
    TESS_TRY(fits_output_end(&cube->file, &cube->meta, cube->is_double, &stats));
cleanup:
    tess_free(tables);
    return status;
}

/* ---- the file of a run ---- */

/* Rank 0 reads what the first channels have from the table of the file. */
static tess_status take_planes(int num_done, tess_fits_cube *cube)
{
    tess_status status = TESS_OK;
    TESS_TRY(fits_cube_read_planes(cube->file.temp, cube->num_planes, cube->plane));
    for (int k = 0; k < cube->num_planes; ++k)
        if (k % cube->axes.num_freq >= num_done) cube->plane[k] = (fits_plane){0};
cleanup:
    return status;
}

/* Locks the file on rank 0, so that no other run writes it meanwhile. Not all file
 * systems can lock files. */
static tess_status lock(int fd, const char *path)
{
    tess_status status = TESS_OK;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        TESS_FAIL(TESS_ERR_IO, "%s: another run is writing it", path);
cleanup:
    return status;
}

/* Rank 0 opens the file that the run had begun. If the file got its name before the
 * checkpoint knew, it is unfinished again. */
static tess_status go_on(int num_done, tess_fits_cube *cube)
{
    tess_status status = TESS_OK;
    fits_output *file = &cube->file;
    char run[FITS_CUBE_RUN];
    const char *found = access(file->temp, F_OK) == 0 ? file->temp : cube->path;
    if (access(found, F_OK) != 0)
        TESS_FAIL(TESS_ERR_IO,
                  "%s: is not there, and the checkpoint needs it; start the run anew",
                  file->temp);
    TESS_TRY(fits_cube_run_of(found, run));
    if (strcmp(run, cube->axes.run) != 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: is of another run than the checkpoint", found);
    if (found == cube->path && rename(found, file->temp) != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be renamed: %s", found, strerror(errno));
    file->fd = open(file->temp, O_RDWR | O_CLOEXEC);
    if (file->fd < 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", file->temp,
                  strerror(errno));
    TESS_TRY(lock(file->fd, file->temp));
    TESS_TRY(take_planes(num_done, cube));
cleanup:
    return status;
}

/* Rank 0 removes what an earlier run has left and nobody needs any more. */
static tess_status remove_left(const char *path)
{
    tess_status status = TESS_OK;
    char run[FITS_CUBE_RUN] = "";
    int fd = -1;
    if (access(path, F_OK) != 0) return TESS_OK;
    TESS_TRY(fits_cube_run_of(path, run));
    if (!*run) TESS_FAIL(TESS_ERR_IO, "%s: exists, and tessera did not make it", path);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0) TESS_TRY(lock(fd, path));
    unlink(path);
cleanup:
    if (fd >= 0) close(fd);
    return status;
}

/* Rank 0 makes a new file. It gets its name when it can tell whose it is: the file of a
 * run that is killed before would be one that the next run dares neither to replace nor
 * to continue. */
static tess_status start_anew(tess_fits_cube *cube)
{
    tess_status status = TESS_OK;
    fits_output *file = &cube->file;
    char temp[TESS_OUT_FILE_NAME] = "";
    TESS_TRY(remove_left(file->temp));
    tess_out_file_remove_left(cube->path);
    TESS_TRY(tess_out_file_create(cube->path, temp, &file->fd));
    TESS_TRY(lock(file->fd, file->temp));
    TESS_TRY(tess_out_file_reserve(file->fd, cube->path, tables_at(cube)));
    TESS_TRY(complete(cube));
    TESS_TRY(tess_out_file_publish(temp, file->temp, false));
    temp[0] = '\0';
cleanup:
    tess_out_file_discard(temp);
    return status;
}

/* Rank 0 finds the size of the header, and makes the file. */
static tess_status open_kept(bool overwrite, int num_done, tess_fits_cube *cube)
{
    tess_status status = TESS_OK;
    fits_output *file = &cube->file;
    const tess_fits_stats none = {0};
    char *header = NULL;
    if (snprintf(file->temp, sizeof file->temp, "%s.unfinished", cube->path) >=
        (int)sizeof file->temp)
        TESS_FAIL(TESS_ERR_INPUT, "%s: the name is too long", cube->path);
    TESS_TRY(tess_fits_header_build(cube->path, &cube->meta, cube->is_double, &none,
                                    &header, &file->header_bytes));
    TESS_TRY(tess_out_check_target(cube->path, overwrite));
    TESS_TRY(num_done > 0 ? go_on(num_done, cube) : start_anew(cube));
cleanup:
    tess_free(header);
    return status;
}

/* Begins a file as fits_output_begin does, but one that stays. Collective. */
static tess_status begin_kept(tess_comm *comm, bool overwrite, int num_done,
                              tess_fits_cube *cube)
{
    tess_status status = TESS_OK;
    fits_output *file = &cube->file;
    file->fd = -1;
    if (cube->root) status = open_kept(overwrite, num_done, cube);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_bcast(comm, file->temp, sizeof file->temp, 0));
    TESS_TRY(tess_comm_bcast(comm, &file->header_bytes, sizeof file->header_bytes, 0));
cleanup:
    return status;
}

tess_status tess_fits_cube_create(tess_comm *comm, const char *path, bool overwrite,
                                  const tess_image_meta *meta, int num_done,
                                  bool is_double, tess_fits_cube **cube_out)
{
    tess_status status = TESS_OK;
    tess_fits_cube *cube = NULL;
    TESS_TRY(tess_comm_agree(comm, fits_output_check(path, meta, 0, meta->ny)));
    TESS_TRY(tess_comm_agree(comm, allocate(path, meta, is_double, &cube)));
    cube->root = tess_comm_rank(comm) == 0;
    TESS_TRY(cube->axes.run ? begin_kept(comm, overwrite, num_done, cube)
                            : fits_output_begin(comm, &cube->meta, is_double, overwrite,
                                                &cube->file));
    *cube_out = cube;
    cube = NULL;
cleanup:
    tess_fits_cube_destroy(cube);
    return status;
}

/* ---- planes ---- */

/* Notes what is known of a plane that has been written. */
static tess_status end_plane(tess_comm *comm, tess_fits_writing *writing,
                             const tess_fits_stats *stats, tess_held_files *held)
{
    const tess_image_meta *meta = &writing->meta;
    const tess_fits_cleaned *cleaned = &meta->cleaned;
    tess_fits_cube *cube = writing->cube;
    (void)held; /* the cube is not complete */
    if (tess_comm_rank(comm) != 0) return TESS_OK;
    cube->plane[writing->plane] =
        (fits_plane){.written = 1,
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
    return TESS_OK;
}

/* Has a writing write to the cube's file, with a sum and a range of its own. */
static void write_to(tess_fits_cube *cube, int64_t plane, tess_fits_writing *writing)
{
    writing->end = end_plane;
    writing->cube = cube;
    writing->plane = plane;
    writing->file.fd = cube->file.fd;
    fits_output_clear(&writing->file);
}

tess_status tess_fits_cube_begin(tess_comm *comm, const tess_cube_plane *plane,
                                 tess_fits_cube *cube, tess_fits_writing **writing)
{
    tess_status status = TESS_OK;
    const int64_t row_bytes = cube->meta.nx * (cube->is_double ? 8 : 4);
    const int64_t at = (int64_t)plane->stokes * cube->axes.num_freq + plane->freq;
    const int64_t row = at * cube->meta.ny + plane->row_first;
    const tess_fits_rows rows = {.row_first = plane->row_first,
                                 .num_rows = plane->num_rows,
                                 .is_double = cube->is_double,
                                 .pixel = plane->rows};
    tess_fits_writing *made = NULL;
    status =
        fits_output_check(cube->path, &cube->meta, plane->row_first, plane->num_rows);
    if (status == TESS_OK)
        status = fits_writing_create(cube->path, plane->meta, &rows,
                                     cube->file.header_bytes + row * row_bytes, &made);
    if (status == TESS_OK && plane->num_rows > 0)
        status = fits_output_open(&cube->file);
    if (made) write_to(cube, at, made);
    TESS_TRY(tess_comm_agree(comm, status));
    *writing = made;
    made = NULL;
cleanup:
    tess_fits_leave(false, made);
    return status;
}

tess_status tess_fits_cube_write(tess_comm *comm, const tess_cube_plane *plane,
                                 int threads, tess_fits_cube *cube)
{
    tess_status status = TESS_OK;
    tess_fits_writing *writing = NULL;
    TESS_TRY(tess_fits_cube_begin(comm, plane, cube, &writing));
    tess_fits_put(writing, threads);
    TESS_TRY(tess_fits_end(comm, writing, NULL));
cleanup:
    tess_fits_leave(false, writing);
    return status;
}

/* ---- the end ---- */

/* Gives the facts about all planes to all ranks. Collective. */
static tess_status gather(tess_comm *comm, tess_fits_cube *cube)
{
    const int64_t numbers = (int64_t)(sizeof *cube->plane / sizeof(double));
    memcpy(cube->all, cube->plane, (size_t)cube->num_planes * sizeof *cube->plane);
    return tess_comm_allreduce_f64(comm, (double *)cube->all,
                                   numbers * cube->num_planes, TESS_SUM);
}

static tess_status check_planes(const tess_fits_cube *cube)
{
    tess_status status = TESS_OK;
    for (int k = 0; k < cube->num_planes; ++k)
        if (!(cube->all[k].written > 0))
            TESS_FAIL(TESS_ERR_INTERNAL, "%s: plane %d has not been written",
                      cube->path, k);
cleanup:
    return status;
}

tess_status tess_fits_cube_save(tess_comm *comm, tess_fits_cube *cube)
{
    tess_status status = TESS_OK;
    const int fd = cube->file.fd;
    TESS_TRY(gather(comm, cube));
    if (cube->root) status = complete(cube);
    if (status == TESS_OK && fd >= 0 && tess_out_file_sync(fd) != 0)
        status =
            tess_error_record(TESS_ERR_IO, __FILE__, __LINE__, __func__,
                              "%s: cannot be written: %s", cube->path, strerror(errno));
    TESS_TRY(tess_comm_agree(comm, status));
cleanup:
    return status;
}

/* A run can go on with a file of its own whatever happens to the others. */
static tess_status hold(tess_fits_cube *cube, tess_held_files *held)
{
    tess_status status = TESS_OK;
    const bool is_open = cube->file.fd >= 0;
    TESS_TRY(fits_output_hold(cube->root, &cube->file, held));
    if (cube->axes.run && is_open) tess_held_keep(held);
cleanup:
    return status;
}

tess_status tess_fits_cube_finish(tess_comm *comm, tess_held_files *held,
                                  tess_fits_cube *cube)
{
    tess_status status = TESS_OK;
    TESS_TRY(gather(comm, cube));
    TESS_TRY(check_planes(cube));
    if (cube->root) status = complete(cube);
    if (status == TESS_OK) status = hold(cube, held);
    TESS_TRY(tess_comm_agree(comm, status));
cleanup:
    return status;
}

void tess_fits_cube_destroy(tess_fits_cube *cube)
{
    if (!cube) return;
    fits_output_leave(cube->root && !cube->axes.run, &cube->file);
    tess_free(cube->plane);
    tess_free(cube->all);
    tess_free(cube->path);
    tess_free(cube);
}
