/** @file planes_device.h  (private to fft/)
 * The plane transforms of a backend with a device: one function for each pass,
 * which is enqueued on tess_device_stream(). All arrays are in device memory unless the
 * function says otherwise, and complex arrays have the shape's precision.
 *
 * *Slots* are the occupied grid lines in ascending order. Nothing of an empty line is
 * stored or transformed; its entry in `slot_of_line[nu]` is −1.
 *
 * All functions are Local, and return TESS_ERR_RESOURCE when the device reports an
 * error. */
#ifndef PLANES_DEVICE_H
#define PLANES_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "planes_object.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Geometry of planes and image rows; see tess_planes_opts. */
typedef struct plane_shape {
    int64_t nx, ny, nu, nv;
    double scale_rad, scale_m_rad; /* neither is 0 */
    double l0, m0, nm1_center;
    bool do_w, is_double;
} plane_shape;

/* ---- transforms of many lines ---- */

typedef struct plane_fft plane_fft;

/** Plan in-place transforms of contiguous lines of `length`, at most `most_lines` at a
 * time. `repeatable`: a line is rounded alike whatever the number of lines is.
 * TESS_ERR_ALLOC: the device has no memory for the work space. */
tess_status plane_fft_create(int64_t length, int64_t most_lines, bool is_double,
                             bool repeatable, plane_fft **fft);
void plane_fft_destroy(plane_fft *fft); /**< NULL is fine */

/** Transform the first `count` lines; more of them, up to most_lines, may be
 *  overwritten. */
tess_status plane_fft_execute(plane_fft *fft, void *lines, int64_t count, bool forward);

/* ---- pieces and lines ---- */

/** lines[num_slots][nv] += the parts of the pieces that lie in the slots
 *  [slot_first, + num_slots). */
tess_status plane_add_pieces(const plane_shape *shape, const tess_piece *piece,
                             int64_t num_pieces, const int32_t *slot_of_line,
                             int64_t slot_first, int64_t num_slots, void *lines);

/** A line and its pieces: `stop` is behind the last piece that may cover it. */
typedef struct plane_line {
    int64_t begin, stop;
    int32_t line;
} plane_line;

/** lines[num_lines][nv] := the sums of their pieces, in the order of the pieces. */
tess_status plane_sum_pieces(const plane_shape *shape, const tess_piece *piece,
                             const plane_line *line, int64_t num_lines, void *lines);

/** The reverse of plane_add_pieces: the parts of the pieces that lie in these slots :=
 * the lines. */
tess_status plane_take_pieces(const plane_shape *shape, const tess_piece *piece,
                              int64_t num_pieces, const int32_t *slot_of_line,
                              int64_t slot_first, int64_t num_slots, const void *lines);

/* ---- lines, rows, columns ---- */

/** rows[ny][row_stride]: the ny values around cell 0 of each line become a column, at
 *  slot_first + its number. */
tess_status plane_crop(const plane_shape *shape, const void *lines, int64_t num_slots,
                       void *rows, int64_t row_stride, int64_t slot_first);

/** The reverse: lines[num_slots][nv] := those columns, 0 elsewhere. */
tess_status plane_pad(const plane_shape *shape, const void *rows, int64_t row_stride,
                      int64_t slot_first, int64_t num_slots, void *lines);

/** columns[count][nu] := rows[count][row_stride], each value on its grid line, 0 on
 *  empty ones. */
tess_status plane_spread(const plane_shape *shape, const void *rows, int64_t row_stride,
                         int64_t count, const int32_t *slot_of_line, void *columns);

/** The reverse: rows[count][row_stride] := columns. `line_of_slot[num_slots]`. */
tess_status plane_gather(const plane_shape *shape, const void *columns, int64_t count,
                         const int32_t *line_of_slot, int64_t num_slots, void *rows,
                         int64_t row_stride);

/* ---- w-screens ---- */

/** image[k][i] += Re{columns[k][(i − nx/2) mod nu] · conj(screen)} for the image rows
 *  first_row + k, k < count; real image of nx a row. */
tess_status plane_accumulate(const plane_shape *shape, double w_lambda,
                             const void *columns, int64_t first_row, int64_t count,
                             void *image);

/** columns[k][(i − nx/2) mod nu] := image[k][i] · screen, 0 elsewhere. */
tess_status plane_unscreen(const plane_shape *shape, double w_lambda, const void *image,
                           int64_t first_row, int64_t count, void *columns);

/* ---- exchange ---- */

/** Copy the values of the parts to (from) `values`, dense: lines of num_cells without
 * gaps. */
tess_status plane_pack(const plane_shape *shape, const plane_part *part, int64_t count,
                       void *values);
tess_status plane_unpack(const plane_shape *shape, const plane_part *part,
                         int64_t count, const void *values);

#ifdef __cplusplus
}
#endif
#endif
