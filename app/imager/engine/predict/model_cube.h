/** @file model_cube.h  (private to app/imager/)
 *  Models that differ between channels: the planes of a cube, or a set of images
 *  NAME-0000-model.fits, NAME-0001-model.fits, …
 */
#ifndef TESS_MODEL_CUBE_H
#define TESS_MODEL_CUBE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_fits.h"
#include "tess_status.h"

/** Where a plane of one Stokes parameter is. */
typedef struct model_plane {
    int file, freq, stokes;
} model_plane;

typedef struct model_cube {
    int num_files;
    tess_fits_model *file;     /**< [num_files] files, of the same pixels */
    int num_stokes, stokes[4]; /**< Stokes codes in ascending order */
    int num_planes;
    double *freq_hz; /**< [num_planes] frequencies in ascending order */
    bool *has_data;  /**< [num_planes] */
    model_plane *at; /**< [num_planes][num_stokes] */
    int num_terms;  /**< terms of the polynomial through planes; 0: the nearest plane is
                       used */
    double nu0_hz;  /**< reference frequency: the polynomial is one in ν/ν₀ − 1 */
    double *matrix; /**< [num_terms][num_planes] matrix that makes terms of planes */
} model_cube;

/** What multiplies a model. */
typedef enum model_factor {
    MODEL_AS_IT_IS, /**< nothing */
    MODEL_BY_GAINS, /**< gains of facets, and no primary beam */
    MODEL_BY_BEAMS, /**< primary beams, and perhaps gains */
} model_factor;

/** A model in files, and what its fluxes are. */
typedef struct model_name {
    const char *path;    /**< a FITS file, or the NAME of a run's models */
    int num_terms;       /**< > 0: terms of a polynomial through the channels */
    model_factor factor; /**< by beams or gains: of NAME, the files -model-pb.fits are
                              meant where they are there */
} model_name;

/** Open a model: a FITS file or, where there is none of this name, what a run with
 *  -o NAME has left, NAME = path: the cube NAME-cube-model.fits, else the set
 *  NAME-0000[-POL]-model.fits …, else the images NAME[-POL]-model.fits of one channel.
 *  `*cube` is NULL for one plane: `*single` is its name, tess_strdup(); where `single`
 *  is NULL, one plane is a cube, too. TESS_ERR_INPUT, also for a set that lacks a file,
 *  and for a model that primary beams multiply where there are only models that a beam
 *  has been applied to; TESS_ERR_IO. Local. */
tess_status model_cube_open(const model_name *name, model_cube **cube, char **single);

/** Warn of a file X-model.fits beside which there is X-model-pb.fits, if the model has
 *  to be in true flux, and of a NAME that more than one of a cube, a set and images of
 *  one channel have. Local. */
void model_cube_warn_name(const model_name *name);

/** Open NAME-cube-model.fits or the set NAME-0000[-POL]-model.fits …, also if there is
 * a file NAME. TESS_ERR_INPUT, TESS_ERR_IO. Local. */
tess_status model_cube_open_set(const char *name, model_cube **cube);
void model_cube_free(model_cube *cube); /**< NULL is fine. Local. */

/** The plane that is nearest to a frequency. Local. */
int model_cube_nearest(const model_cube *cube, double freq_hz);

/** The factor of a term at a frequency: (ν/ν₀ − 1)^term. Local. */
double model_cube_factor(const model_cube *cube, int term, double freq_hz);

/** Check that at least one of these frequencies lies in the band of the planes
 * (TESS_ERR_INPUT), and log on the first rank how channels of the model are used.
 * Local. */
tess_status model_cube_check(const model_cube *cube, const double *freq_hz,
                             int64_t num_chan, bool tells);

/** Warn of a model whose channels are narrow, and in another frame than those of the
 *  data. Local. */
void model_cube_warn_frame(const model_cube *cube, tess_spectral_frame frame);

/** As above, for a use of the model's channels other than a prediction. `way` describes
 * it, like "the nearest of the model's"; NULL: nothing is logged. Local. */
tess_status model_cube_check_way(const model_cube *cube, const double *freq_hz,
                                 int64_t num_chan, const char *way);

/** Read rows of a plane or term, `part`, of Stokes parameter `stokes` (index into
 * cube->stokes): out[num_rows][nx]. Pixels of a plane without data count as 0 if they
 * are not finite, others are those of model_pixels_read(). Local, thread-safe. */
tess_status model_cube_read(const model_cube *cube, int part, int stokes,
                            int64_t row_first, int64_t num_rows, double *out);

/** Read rows as tess_fits_read() does. Blank pixels beyond the horizon, where there is
 *  no sky, become 0. TESS_ERR_INPUT: another pixel is not finite. Local, thread-safe.
 */
tess_status model_pixels_read(const tess_fits_model *model, int stokes_index,
                              int freq_index, int64_t row_first, int64_t num_rows,
                              double *out);

#endif
