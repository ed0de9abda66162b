/** @file compare.h  (private to app/cli/)
 *  The comparison behind `tessera compare`: two FITS images, or two folders of stage
 *  dumps (--dump-stages), whose images of equal name are compared in the order of their
 *  names, which is the order of the stages.
 *
 *  A pixel passes when
 *      |a - b| <= rtol * max(|a|, |b|)   or   |a - b| <= floor,
 *  relative where values are large, absolute where both are near zero. Rounding spreads
 *  over an image through its FFT, in proportion to the rms of all pixels rather than to
 *  the pixel itself; so what counts as near zero is the rms, and floor = rtol * rms of
 *  image A's finite pixels. Given `atol`, floor = atol * peak of A: with atol = rtol,
 *  images agree "to rtol of the peak". NaN equals NaN only; an infinity equals itself.
 *
 *  Headers differ where it matters: the number of pixels along an axis, what an axis
 *  is, where the reference position lies (to 1e-3 pixel) and the step (to 1e-3 pixel
 *  over the image), frequency and Stokes of the planes, and the unit of the pixels.
 */
#ifndef TESS_COMPARE_H
#define TESS_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

enum { TESS_COMPARE_TEXT = 512 };

/** What came out of one pair of images. */
typedef struct tess_compare_result {
    int num_pairs;  /**< pairs compared so far; 1 for two files */
    char name[256]; /**< of the pair, the file's name in its folder */
    bool differs;
    char header[TESS_COMPARE_TEXT]; /**< first difference of the headers, "" for none;
                                         if sizes differ, nothing below is set */
    int64_t num_pixels;             /**< in each image */
    int64_t num_different;          /**< pixels that do not pass */
    int64_t num_blank;              /**< of these, blank in one image only */
    double max_abs;                 /**< largest |a - b| of finite pixels */
    int64_t max_pixel[4];           /**< 0-based, where it is: x, y, and planes */
    double max_a, max_b;            /**< the values there */
    double l2_relative;             /**< sqrt(sum (a - b)^2 / sum a^2) */
    double rms, peak; /**< of A's finite pixels; peak is the largest |a| */
} tess_compare_result;

typedef struct tess_compare_opts {
    double rtol;      /**< default 1e-5 */
    double atol;      /**< as a fraction of A's peak; negative: from the rms */
    bool pixels_only; /**< ignore axes and unit; sizes still count */
    /** Called after each pair, e.g. to print a line per stage; may be NULL. */
    void (*report)(const tess_compare_result *result, void *context);
    void *context;
} tess_compare_opts;

void tess_compare_opts_default(tess_compare_opts *opts);

/** Compare. `*result` is the first pair that differs; if none does, the pair with the
 *  largest l2_relative. In folders, an image that is in one only is a difference, in
 *  the place of its name. TESS_OK when all agree; TESS_ERR_DIFFERENT past the
 *  tolerance, with the difference as message and `*result` set; TESS_ERR_USAGE for a
 *  tolerance that is negative or not finite, or a folder against a file; TESS_ERR_IO,
 *  TESS_ERR_INPUT when a file cannot be read or is no FITS image, or a folder holds
 *  none. Local. */
tess_status tess_compare_files(const char *a, const char *b,
                               const tess_compare_opts *opts,
                               tess_compare_result *result);

#endif
