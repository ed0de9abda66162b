/** @file image_cubes.h  (private to app/imager/run/)
 *  Cubes in place of a file for each output channel and Stokes parameter (--cube).
 */
#ifndef TESS_IMAGE_CUBES_H
#define TESS_IMAGE_CUBES_H

#include "image_names.h"
#include "output_table.h"
#include "tess_fits_cube.h"
#include "tess_imager.h"
#include "tess_polar.h"

/** The cubes of an interval, in the order of image_cube_list(). */
typedef struct image_cube_set {
    bool is_open;
    bool is_unsaved; /**< the tables in the files do not know of all planes */
    tess_fits_cube *cube[IMAGE_MOST_CUBES];
} image_cube_set;

/** The cubes of a run. */
typedef struct image_cubes {
    double *freq_hz, *width_hz; /**< [channels_out] */
    int stokes, stokes_step; /**< STOKES code of the first plane, and step of codes from
                                plane to plane */
    int place[2 * TESS_MAX_POL]; /**< plane of each polarisation */
    char run[20]; /**< name of the run in unfinished cubes; "": unfinished cubes are not
                     kept */
    int64_t outputs_done; /**< outputs that were made before this run continued */
    image_cube_set *set;  /**< [intervals_out] */
    int64_t num_sets;
} image_cubes;

/** Check the polarisations. TESS_ERR_USAGE: no STOKES axis holds them. Local. */
tess_status image_cubes_check(const tess_image_opts *opts, const tess_pol *pol,
                              int num_pol);

/** Find the axes of the run's cubes; opens nothing. TESS_ERR_ALLOC. Local. */
tess_status image_cubes_create(const image_files *output, image_cubes **cubes);
void image_cubes_destroy(image_cubes *cubes); /**< NULL is fine. Local. */

/** Write one line about the size of a cube. Local. */
void image_cube_text(const image_files *output, char *text, size_t size);

/** Open the cubes of the intervals to which outputs [first, end) belong, unless they
 * are open. `output`: of all ranks. Collective. */
tess_status image_cubes_open(const image_files *output, int64_t first, int64_t end);

/** Write a product of polarisation `k` into its plane of the cube of its kind.
 * Collective in the team. */
tess_status image_cubes_write(const image_files *output, int k,
                              const tess_image_product *product);

/** Keep the unfinished cubes of a run with checkpoints when it is stopped.
 * `outputs_done` outputs were made before; `identity` is that of the checkpoints.
 * Local. */
void image_cubes_keep(image_cubes *cubes, const char *identity, int64_t outputs_done);

/** Do the outputs [first, end) complete the cubes of an interval? Local. */
bool image_cubes_end(const image_files *output, int64_t first, int64_t end);

/** Note that outputs [first, end) are written: finish the cubes of the intervals that
 * end with one of them, and give them their names. `output`: of all ranks. Collective.
 */
tess_status image_cubes_close(const image_files *output, int64_t first, int64_t end);

/** Before a checkpoint is written, which counts on all outputs so far: have unfinished
 *  cubes tell on the disk which planes they have. `output`: of all ranks. Collective.
 */
tess_status image_cubes_save(const image_files *output);

#endif
