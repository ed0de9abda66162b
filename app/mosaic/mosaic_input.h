/** @file mosaic_input.h  (private to app/mosaic/)
 *  An image of the mosaic: its headers, and the file of its primary beam.
 */
#ifndef TESS_MOSAIC_INPUT_H
#define TESS_MOSAIC_INPUT_H

#include "tess_mosaic.h"
#include "tess_primary_beam.h"

typedef struct mosaic_input {
    tess_fits_model image;
    tess_image_meta *plane; /**< [num_planes]; owned */
    int num_planes;
    bool is_corrected;         /**< its pixels have been divided by the beam */
    bool has_beam_file;        /**< its beam is a file, */
    tess_fits_model beam_file; /**< whose pixels are those of the image */
    tess_primary_beam *model;  /**< or a model; NULL: there is none; owned */
} mosaic_input;

/** Read the headers of image `k`, and find its primary beam. `first` is the first image
 *  of the mosaic, which the others have to fit, or NULL. Errors of tess_mosaic(). Zero
 *  the input before, and free it with mosaic_input_free(), also on failure.
 *  Collective. */
tess_status mosaic_input_open(tess_comm *comm, const tess_mosaic_opts *opts, int k,
                              const mosaic_input *first, mosaic_input *input);

void mosaic_input_free(mosaic_input *input); /**< Local. */

/** Whether a plane was made of nothing. Local. */
bool mosaic_input_is_empty(const mosaic_input *input, int plane);

/** A plane of it. */
typedef struct mosaic_image {
    const mosaic_input *input;
    int plane;
} mosaic_image;

/** Rows of it. */
typedef struct mosaic_rows {
    int64_t first, num;
} mosaic_rows;

/** Rows of a plane, image[rows->num][nx] as the telescope saw the sky [flux times
 *  beam], and of its primary beam, beam[rows->num][nx], in the precision of the image's
 *  file. TESS_ERR_IO, TESS_ERR_ALLOC. Local. */
tess_status mosaic_input_read(const tess_mosaic_opts *opts, const mosaic_image *of,
                              const mosaic_rows *rows, void *image, void *beam);

#endif
