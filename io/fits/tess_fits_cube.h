/** @file tess_fits_cube.h
 *  Cubes: FITS files with a FREQ and a STOKES axis, whose planes are written as they
 * are made, in any order, by the ranks that have their rows. Tables behind the pixels
 * tell the beam of each plane (BEAMS, by CASA's convention) and what else differs
 * between planes (PLANES).
 */
#ifndef TESS_FITS_CUBE_H
#define TESS_FITS_CUBE_H

#include "tess_comm.h"
#include "tess_fits.h"
#include "tess_held_files.h"
#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Table and column of the frequencies that are not equidistant. */
#define TESS_CUBE_FREQ_TABLE  "FREQUENCIES"
#define TESS_CUBE_FREQ_COLUMN "FREQ"

typedef struct tess_fits_cube tess_fits_cube;

/** A plane, and the rows of it that this rank has. */
typedef struct tess_cube_plane {
    int freq, stokes;            /**< counted from 0 */
    const tess_image_meta *meta; /**< beam, weights and cleaning of this plane */
    int64_t row_first, num_rows;
    const void *rows; /**< [num_rows][nx] of the cube's precision */
} tess_cube_plane;

/** The distance of neighbouring frequencies, or 0 where they are not equidistant.
 * Local.
 */
double tess_cube_step_hz(const tess_cube_axes *cube);

/** Whether the header of a cube tells its frequencies: they are equidistant, or the
 * axis is of optical velocity, in which they are. Local. */
bool tess_cube_is_linear(const tess_image_meta *meta);

/** Create the file under a temporary name, and reserve its pixels. meta->cube has the
 *  axes; both are copied, and what they point to must outlive the cube. TESS_ERR_IO as
 *  of tess_fits_write.
 *
 *  With axes of a `run`, the file is PATH.unfinished, which stays when the run is
 *  stopped or killed: tess_fits_cube_save() makes it complete but for planes that are
 *  not written yet. `num_done` > 0: go on with it, or with a finished PATH of the same
 *  run, whose first so many channels are kept. TESS_ERR_IO where no file is in its
 * place, or one that another run writes; TESS_ERR_INPUT where the file is of another
 * run. Collective. */
tess_status tess_fits_cube_create(tess_comm *comm, const char *path, bool overwrite,
                                  const tess_image_meta *meta, int num_done,
                                  bool is_double, tess_fits_cube **cube);

/** Write a plane, by these ranks, which may be a part of those of the cube; other parts
 *  may write other planes at the same time. TESS_ERR_IO. Collective. */
tess_status tess_fits_cube_write(tess_comm *comm, const tess_cube_plane *plane,
                                 int threads, tess_fits_cube *cube);

/** As tess_fits_cube_write, in the steps of tess_fits_begin: tess_fits_put and
 *  tess_fits_end follow, on these ranks and before the cube is saved or finished.
 *  Collective. */
tess_status tess_fits_cube_begin(tess_comm *comm, const tess_cube_plane *plane,
                                 tess_fits_cube *cube, tess_fits_writing **writing);

/** Put what is known of the planes so far into the file of a `run`, on all disks.
 * `comm`: all ranks of the cube. Collective. */
tess_status tess_fits_cube_save(tess_comm *comm, tess_fits_cube *cube);

/** All planes are written: add the tables, and have the file wait in `held`. `comm`:
 * all ranks of the cube. Collective. */
tess_status tess_fits_cube_finish(tess_comm *comm, tess_held_files *held,
                                  tess_fits_cube *cube);

/** What the tables of a cube, or else its header, tell of its planes,
 *  plane[num_stokes][num_freq]: `header` (tess_fits_meta_read) with the frequency,
 *  width, Stokes parameter, beam and weights of each. A plane without data has ΣW 0 and
 *  no beam; ΣW is NAN where the file does not tell it. TESS_ERR_INPUT: the frequency
 * axis is not usable, or a table is damaged; TESS_ERR_IO, TESS_ERR_ALLOC. Local. */
tess_status tess_fits_planes(const tess_fits_model *cube, const tess_image_meta *header,
                             tess_image_meta *plane);

/** Whether the planes plane[num_freq] of a cube (tess_fits_planes) have falling
 *  frequencies, and no velocities, so that a cube with rising ones is made of them in
 *  the reverse order. Local. */
bool tess_fits_frequencies_fall(const tess_fits_model *cube,
                                const tess_image_meta *plane);

/** The axes of a cube that is made of another's planes, with rising frequencies unless
 *  the axis is of velocities: freq_hz[2 * num_freq] of the caller, which the axes point
 *  to, gets frequencies and widths. Returns tess_fits_frequencies_fall(). Local. */
bool tess_fits_axes_of(const tess_fits_model *cube, const tess_image_meta *plane,
                       double *freq_hz, tess_cube_axes *axes);

/** Free it. A file that is not finished is removed, unless it is of a `run`. NULL is
 *  fine. Local. */
void tess_fits_cube_destroy(tess_fits_cube *cube);

#ifdef __cplusplus
}
#endif
#endif
