/** @file tess_fits.h
 *  FITS images: 4 axes (RA---SIN, DEC--SIN, FREQ, STOKES), written in parallel by row
 *  slabs to a temporary name, checksummed, then renamed. Models are read from such
 *  files. PNG previews show the same images.
 *
 *  Pixel order is FITS order: image[row j][column i], row 0 southernmost, column 0
 *  easternmost; 0-based pixel (i, j) is at l = -(i - nx/2)·scale, m = (j - ny/2)·scale.
 */
#ifndef TESS_FITS_H
#define TESS_FITS_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_doppler.h"
#include "tess_fits_array.h"
#include "tess_held_files.h"
#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How an image was cleaned: keywords of models, residuals and restored images. */
typedef struct tess_fits_cleaned {
    int64_t majors;      /**< major iterations (NMAJOR); 0: it was not cleaned */
    int64_t iterations;  /**< minor iterations (NITER) */
    double gain, mgain;  /**< CLGAIN, CLMGAIN; mgain 0: not told */
    double threshold_jy; /**< CLTHRESH, final threshold; 0 = there is none */
    double flux_jy;      /**< CLFLUX, sum of the model's pixels */
    int num_scales;      /**< CLSCALES; 1: points only */
    int num_terms;       /**< CLTERMS, of the spectrum that was fitted; 0: none */
    bool log_terms;      /**< CLSPEC: of logarithms */
    double nu0_hz;       /**< CLNU0 */
} tess_fits_cleaned;

/** A Gaussian beam; 0: there is none. */
typedef struct tess_fits_beam {
    double major_rad, minor_rad; /**< FWHM */
    double pa_rad;
} tess_fits_beam;

/** What images of WSClean tell in keywords of its own, for the programs that look for
 *  them. Where they are given, other keywords have WSClean's values, too: BUNIT, BTYPE,
 *  BSCALE, BZERO and DATE-OBS. */
typedef struct tess_fits_wsclean {
    bool given;            /**< the keywords are written */
    double image_weight;   /**< WSCIMGWG and WSCNORMF, ΣW */
    double weight_sum;     /**< WSCVWSUM, Σ of the weights of the visibilities */
    double effective_vis;  /**< WSCENVIS, ΣW over the largest W; NAN: unknown */
    char weighting[32];    /**< WSCWEIGH: "Briggs'(0.5)" */
    double field;          /**< WSCFIELD */
    double time_mjd_s;     /**< DATE-OBS, the middle of the first integration */
    int64_t channels[2];   /**< WSCCHANS and WSCCHANE, [first, end); end 0: all */
    int64_t time_steps[2]; /**< WSCTIMES and WSCTIMEE, likewise */
    int64_t niter;         /**< WSCNITER, most iterations; 0: nothing is cleaned */
    double gain, mgain, threshold_jy; /**< WSCGAIN, WSCMGAIN, WSCTHRES */
    bool no_negative, stop_negative;  /**< WSCNEGCM is that negative ones are allowed;
                                           WSCNEGST */
    bool is_cleaned;                  /**< WSCMAJOR and WSCMINOR are written */
    int64_t majors, iterations;
    const char *typed; /**< the command line of WSClean that it was made of: HISTORY
                            begins with it; NULL: none */
} tess_fits_wsclean;

/** The visibilities that an image was made of. */
typedef struct tess_fits_gridded {
    double sum_weights;   /**< ΣW; written as WSCVWSUM-like keyword SUMWT */
    int64_t num_vis;      /**< NVIS */
    double freq_mean_hz;  /**< FREQMEAN, their mean frequency; 0 = there are none */
    char weighting[32];   /**< "natural", "briggs 0", ... */
    char data_column[64]; /**< DATACOL, of a MeasurementSet; "": there is none */
    tess_fits_wsclean wsclean;
} tess_fits_gridded;

/** TELESCOP, OBSERVER and OBJECT; "": unknown. */
typedef struct tess_fits_names {
    char telescope[64], observer[64], object[64];
} tess_fits_names;

/** The frame of the frequencies of an image. Zeroed: topocentric, as they are. */
typedef struct tess_fits_spectral {
    bool is_chosen; /**< SSYSOBS and VELOSYS are written */
    tess_spectral_frame frame;
    char other[16];         /**< SPECSYS of a header that was read, if it is none of the
                                 frames; "": `frame` */
    double rest_hz;         /**< RESTFRQ; 0 = unknown */
    tess_velocity velocity; /**< the axis is VRAD or VOPT; it needs rest_hz */
    double velosys_m_s;     /**< at the start of the observation */
} tess_fits_spectral;

/** The axes of a cube, whose planes are many. The header's frequency and Stokes
 *  parameter are those of the first plane. */
typedef struct tess_cube_axes {
    int num_freq, num_stokes;
    const double *freq_hz, *width_hz; /**< [num_freq] centres and widths, ascending
                                           or descending */
    int stokes_step;                  /**< from code to code of the STOKES axis */
    bool has_beams;  /**< CASAMBM: a table of beams follows; set by the writer. The beam
                          of an only plane is in the header instead */
    const char *run; /**< keyword RUN of the table of planes, by which a run knows its
                          unfinished cubes; NULL: none */
} tess_cube_axes;

typedef struct tess_image_meta {
    int64_t nx, ny;
    double ra_rad, dec_rad;       /**< of the reference pixel (CRVAL) */
    double scale_rad;             /**< pixel size */
    double l0, m0;                /**< direction cosines of pixel (nx/2, ny/2) from that
                                       position; 0: it is the reference pixel */
    double freq_hz, bandwidth_hz; /**< centre and width of the band (CRVAL3, CDELT3) of
                                       all channels of the image. Flagged channels
                                       count, so that the channels of a cube are
                                       regular */
    tess_fits_spectral spectral;
    int stokes;     /**< FITS code, as in tess_vis.h */
    bool imaginary; /**< the imaginary image of a cross-hand ("XYi") */
    bool is_psf;    /**< a point spread function: BTYPE 'Beam' */
    tess_fits_beam beam;
    tess_fits_gridded gridded;
    double equinox;
    double place_m[3]; /**< geocentric position of the array (OBSGEO-X, -Y, -Z). It is
                            written if it lies on the ground: the centre of an array
                            that spans continents lies below it */
    double time_start_mjd_s; /**< DATE-OBS and DATE-BEG, start of the first integration;
                                0 = unknown */
    double time_end_mjd_s;   /**< DATE-END, end of the last one; 0 = unknown */
    tess_fits_names names;
    char unit[16]; /**< BUNIT: "Jy/beam" */
    tess_fits_cleaned cleaned;
    const tess_cube_axes *cube; /**< NULL: the image has one plane */
    const char *caption;        /**< of previews: "dirty image"; NULL: none */
    const char *history;        /**< command line and plan; lines separated by '\n' */
} tess_image_meta;

/** A model image's header, as read. */
typedef struct tess_fits_model {
    char path[1024];
    int64_t nx, ny;
    int num_freq, num_stokes;
    int stokes[4];           /**< FITS codes of the planes */
    double ra_rad, dec_rad;  /**< CRVAL, in `frame` */
    char frame[16];          /**< "J2000"; "B1950" and others, which nothing here
                                  converts */
    double labelled_rad[2];  /**< CRVAL in the frame that the header names: ICRS
                                  is converted to J2000 */
    double crpix_x, crpix_y; /**< 1-based */
    double scale_x_rad, scale_y_rad; /**< CDELT; x is negative for East to the left */
    double freq_hz;                  /**< of the first frequency plane; 0: unknown */
    int freq_axis; /**< private: number of the FREQ axis, from 0; −1: there is none */
    char unit[32];
    bool is_psf;           /**< BTYPE 'Beam', as of tess_image_meta */
    int bitpix;            /**< of the file: -32, -64, or an integer type */
    tess_fits_array array; /**< private: where the pixels lie */
    int64_t freq_stride, stokes_stride; /**< private: [pixels] from plane to plane */
    const void *pixel; /**< private: the pixels in memory; NULL: they are in the file */
} tess_fits_model;

/** The pixels of a model in memory: [num_stokes][ny][nx] Jy/pixel, the planes of I, Q,
 * U and V in this order. They belong to the caller. */
typedef struct tess_fits_pixels {
    int64_t nx, ny;
    int num_stokes; /**< 1 to 4 */
    bool is_double;
    const void *pixel;
    double scale_rad;
} tess_fits_pixels;

/** The rows of an image that a rank has. The rows of all ranks together are the whole
 * image, in any order; a rank may have none. */
typedef struct tess_fits_rows {
    int64_t row_first, num_rows;
    bool is_double;    /**< so is the file: BITPIX is -64, or else -32 */
    const void *pixel; /**< [num_rows][nx] double or float; they belong to the caller */
} tess_fits_rows;

/** Write one image, of which each rank passes its rows. Adds CHECKSUM and DATASUM
 *  (combined from the ranks' partial sums). Non-finite pixels are stored as NaN. DATE
 *  is now, or the time of the variable SOURCE_DATE_EPOCH (seconds since 1970), which
 *  makes equal images equal files. TESS_ERR_IO when `path` exists and not `overwrite`,
 *  cannot be written, or the disk is full: nothing is then left under the final or
 *  temporary name. > 2 GiB safe. Collective. */
tess_status tess_fits_write(tess_comm *comm, const char *path, bool overwrite,
                            const tess_image_meta *meta, const tess_fits_rows *rows);

/** As tess_fits_write, but the file waits in `held`. Collective. */
tess_status tess_fits_hold(tess_comm *comm, const char *path, tess_held_files *held,
                           const tess_image_meta *meta, const tess_fits_rows *rows);

/** An image whose file exists, and whose pixels are written by a thread of each rank
 *  while the ranks do something else. */
typedef struct tess_fits_writing tess_fits_writing;

/** Create the file of an image under a temporary name. `meta` is copied; what it points
 *  to and the pixels must outlive the writing. Errors of tess_fits_write. Free it with
 *  tess_fits_leave(). Collective. */
tess_status tess_fits_begin(tess_comm *comm, const char *path, bool overwrite,
                            const tess_image_meta *meta, const tess_fits_rows *rows,
                            tess_fits_writing **writing);

/** Write this rank's pixels, by at most `threads` threads. tess_fits_end reports
 * errors. Local, to be called once, by any thread. */
void tess_fits_put(tess_fits_writing *writing, int threads);

/** Complete the file, which waits in `held` from now on. A plane of a cube needs no
 *  `held`. TESS_ERR_IO, TESS_ERR_ALLOC, also of tess_fits_put. Collective. */
tess_status tess_fits_end(tess_comm *comm, tess_fits_writing *writing,
                          tess_held_files *held);

/** Free it; the first rank (`root`) removes a file that has not been completed. NULL is
 *  fine. Local. */
void tess_fits_leave(bool root, tess_fits_writing *writing);

/** The cards that such a file's header would have for an image of these extremes,
 *  without checksums, as 80-character cards up to END: `*text` (tess_alloc, caller
 *  frees) of `*bytes`. min > max: no pixel is finite; NAN: the header says
 *  nothing of them. Local. */
tess_status tess_fits_header_text(const tess_image_meta *meta, bool is_double,
                                  double min, double max, char **text, int64_t *bytes);

/** Read a header. TESS_ERR_IO, TESS_ERR_INPUT (not FITS, truncated, not an image,
 *  projection other than SIN or without celestial axes, scale not finite or zero).
 *  Local. */
tess_status tess_fits_open(const char *path, tess_fits_model *model);

/** As tess_fits_open, but an image whose first two axes have no names is read, too:
 *  `*is_placed` is false, and the model has no position and no scale. Local. */
tess_status tess_fits_open_unplaced(const char *path, bool *is_placed,
                                    tess_fits_model *model);

/** TESS_ERR_INPUT when the positions of an image are not J2000; the message names the
 *  file. Local. */
tess_status tess_fits_check_j2000(const tess_fits_model *model);

/** Take the reference position of an image in ICRS, converted to J2000 or as it is,
 *  that is closer to a place in J2000. The two lie 23 mas apart, and many programs
 * write ICRS into headers of J2000. Local. */
void tess_fits_settle(tess_fits_model *model, double ra_rad, double dec_rad);

/** Read a header of North up, East left and square pixels as what another image's
 * header is made of; of several planes the first one's. What it was cleaned by is not
 * read. Errors of tess_fits_open and tess_fits_frequencies, and TESS_ERR_INPUT for
 * other pixels. Local. */
tess_status tess_fits_meta_read(const char *path, tess_fits_model *image,
                                tess_image_meta *meta);

/** Frequencies of a model's planes, freq_hz[num_freq], and whether each was made of any
 *  data: has_data[num_freq], true where the file does not tell. TESS_ERR_INPUT for a
 *  frequency axis without meaning: not in Hz, not linear and without a table of
 *  frequencies, two planes of one frequency. TESS_ERR_IO. Local. */
tess_status tess_fits_frequencies(const tess_fits_model *model, double *freq_hz,
                                  bool *has_data);

/** A model of pixels in memory, whose pixel (nx/2, ny/2) is at a position. The pixels
 *  must outlive it. Cannot fail. Local. */
void tess_fits_open_pixels(const tess_fits_pixels *pixels, double ra_rad,
                           double dec_rad, tess_fits_model *model);

/** Read rows [row_first, row_first + num_rows) of a Stokes plane (index into
 *  model->stokes) and frequency plane into out[num_rows][nx], in single or double
 *  precision, scaled by BSCALE/BZERO; blanks are NaN. Local, thread-safe. */
tess_status tess_fits_read(const tess_fits_model *model, int stokes_index,
                           int freq_index, int64_t row_first, int64_t num_rows,
                           tess_pixel type, void *out);

/** Draw the image as a PNG, which waits in `held`: linear or asinh stretch chosen from
 * its range, at most about 1024 pixels a side, RA/Dec (or offset) axes with ticks,
 * colour bar with units, beam ellipse when the meta has one, title. Arguments and
 * errors are those of tess_fits_hold. The ranks reduce their own rows; rank 0 draws.
 * Collective. */
tess_status tess_preview_hold(tess_comm *comm, const char *path, tess_held_files *held,
                              const tess_image_meta *meta, const tess_fits_rows *rows);

/** A point with a text beside it, and a line, over an image [pixels, from 0]. */
typedef struct tess_preview_point {
    double at[2]; /**< x, y */
    const char *text;
} tess_preview_point;
typedef struct tess_preview_line {
    double from[2], to[2];
} tess_preview_line;

/** What is drawn over an image. */
typedef struct tess_preview_marks {
    int64_t num_lines, num_points;
    tess_preview_line *line;   /**< [num_lines]; they belong to the caller */
    tess_preview_point *point; /**< [num_points] */
} tess_preview_marks;

/** The same with marks. Collective. */
tess_status tess_preview_hold_marked(tess_comm *comm, const char *path,
                                     tess_held_files *held, const tess_image_meta *meta,
                                     const tess_fits_rows *rows,
                                     const tess_preview_marks *marks);

#ifdef __cplusplus
}
#endif
#endif
