/** @file image_names.h  (private to app/imager/run/)
 *  Names of the files of a run.
 */
#ifndef TESS_IMAGE_NAMES_H
#define TESS_IMAGE_NAMES_H

#include "image_files.h"

/** NAME[-tNNNN][-NNNN|-MFS][-POL]-KIND.SUFFIX, as WSClean names its images; channel -1:
 *  the mean; `pol` NULL: not named. From malloc(), NULL where memory is short. Local.
 */
char *image_path(const image_files *output, int64_t interval, int64_t channel,
                 const tess_pol *pol, const char *kind, const char *suffix);

/** NAME[-tNNNN]-cube-KIND.fits, as image_path. Local. */
char *image_cube_name(const image_files *output, int64_t interval, const char *kind);

/** The polarisation in the name of image `k` of a kind, or NULL. Local. */
const tess_pol *image_named_pol(const image_files *output, image_kind kind, int k);

/** Whether image `k` of a kind has a file. Local. */
bool image_has_file(const image_files *output, image_kind kind, int k);

/** The kind in the name of each image of a kind, and that of a second file or NULL.
 * Local. */
const char *image_first_name(const tess_image_opts *opts, image_kind kind);
const char *image_second_name(const tess_image_opts *opts, image_kind kind);

/** "terms-0", "terms-0-error", …, "spectral-index": the kind of map `k` of a
 *  polarisation in names of files, in `text`. Local. */
const char *image_map_kind(const tess_image_opts *opts, int k, char *text, size_t size);

/** The name of map `k` of an interval, as image_path. Local. */
char *image_map_name(const image_files *output, int64_t interval, int pol, int k);

/** Whether a list of sources is written with the images of a channel (-1: the mean). It
 * is written with those of each channel and of the mean, or, for channels that are
 * cleaned together, with those of the first. Its name is
 * NAME[-tNNNN][-NNNN]-sources.txt, as image_path, but for the mean without "MFS".
 * Local. */
bool image_has_sources(const tess_image_opts *opts, int64_t channel);
char *image_sources_name(const image_files *output, int64_t interval, int64_t channel);

/** Whether NAME-horizon-mask.fits is written, and its name. Local. */
bool image_has_horizon_mask(const tess_image_opts *opts);
char *image_horizon_name(const tess_image_opts *opts);

/** What the primary beam makes of an image. */
typedef enum image_correction {
    IMAGE_OVER_BEAM,
    IMAGE_BEAM,        /**< the beam itself */
    IMAGE_BEAM_SQUARE, /**< its square */
    IMAGE_BEAM_WEIGHT, /**< of a mosaic, the mean square of its beams; it is not cut */
    IMAGE_BEAM_NOISE   /**< 1.4826 MAD of the image over the beam */
} image_correction;

/** An image that is made of those of a kind by the primary beam. */
typedef struct image_corrected {
    image_kind of;
    const char *name; /**< "image-pb": the kind in names of files */
    image_correction by;
} image_corrected;

enum { IMAGE_MOST_CORRECTED = 6 };

/** List these images of an output; returns their number. Each is made for each
 * polarisation. Local. */
int image_corrected_list(const tess_image_opts *opts,
                         image_corrected list[IMAGE_MOST_CORRECTED]);

enum { IMAGE_MOST_CUBES = NUM_IMAGE_KINDS + IMAGE_MOST_CORRECTED };

/** List the cubes of an interval: those of the kinds that are made, and of the images
 * that the primary beam makes of them; returns their number. Local. */
int image_cube_list(const tess_image_opts *opts, const image_kinds *kinds,
                    image_corrected list[IMAGE_MOST_CUBES]);

/** Whether images of a kind and channel (-1: the mean) have a preview. Planes of cubes
 *  have none where there is a mean. Local. */
bool image_has_preview(const tess_image_opts *opts, image_kind kind, int64_t channel);

/** Whether images of a channel (-1: the mean) are planes of cubes. Local. */
bool image_is_in_cube(const tess_image_opts *opts, int64_t channel);

/** List the names of the files of an output; returns their number. There are at most
 * three for each image, and one more; a name is NULL if memory is short. Of a dirty
 * image there may be four, with a primary beam, of which there are two. Local. */
int image_output_names(const image_files *output, int64_t interval, int64_t channel,
                       char **name);

#endif
