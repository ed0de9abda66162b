/** @file preview.h  (private to io/)
 *  The parts of a PNG preview: the reduced image, a canvas with anti-aliased lines and
 *  text, colour maps, and axes. All Local except tess_preview_reduce().
 */
#ifndef TESS_PREVIEW_H
#define TESS_PREVIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_fits.h"
#include "tess_out_file.h"

/* ---- the image, small enough for one rank ---- */

typedef struct preview_image {
    int width, height;      /**< pixels, row 0 southernmost */
    int64_t factor;         /**< image pixels per pixel and axis */
    float *value;           /**< [height][width], NaN where there is none */
    double sigma, min, max; /**< robust noise, extremes; 0 without finite pixels */
    double low;             /**< 0.1 % of the pixels have a lower value */
    double peak; /**< the value of largest size in the image that was reduced;
                      NaN without finite pixels */
    double rms;  /**< its robust noise, measured at one pixel of each block */
} preview_image;

/** Average blocks of pixels so that no side exceeds `max_side`; blocks with a source
 *  that stands out keep its peak, which an average would hide. Rank 0 gets the result
 *  (free `value` with tess_free), the others nothing. Collective. */
tess_status tess_preview_reduce(tess_comm *comm, const tess_image_meta *meta,
                                const tess_fits_rows *rows, int max_side,
                                preview_image *image);

/* ---- colour ---- */

typedef struct preview_colour {
    uint8_t red, green, blue;
} preview_colour;

/** Between two colours: `part` 0 is the first. */
preview_colour tess_colour_mix(preview_colour from, preview_colour to, double part);

/* Finer steps cannot be told apart, and make the file twice as large. */
enum { PREVIEW_COLOURS = 256 };

typedef enum preview_map_kind { PREVIEW_HEAT, PREVIEW_SIGNED } preview_map_kind;

/** Colours of even steps in perceived lightness: dark to bright, or dark in the middle
 *  for values of both signs. */
void tess_preview_map(preview_map_kind kind, preview_colour map[PREVIEW_COLOURS]);

/** How values become colours. */
typedef struct preview_stretch {
    preview_map_kind kind;
    double low, high;
    double soft;     /**< linear below, logarithmic above; 0 = linear */
    double from, to; /**< low and high as they are drawn */
} preview_stretch;

void tess_preview_stretch_choose(const preview_image *image, bool both_signs,
                                 preview_stretch *stretch);

/** Position of a value on the colour bar, 0 to 1 (beyond for values beyond). */
double tess_preview_stretch_at(const preview_stretch *stretch, double value);

/* ---- canvas ---- */

typedef struct preview_canvas {
    int width, height; /**< y counts downwards */
    uint8_t *rgb;      /**< [height][width][3] */
    uint8_t *mask;     /**< [height][width] coverage of what is being drawn */
    int left, top, right,
        bottom;  /**< part of the mask in use, right and bottom beyond */
    int clip[4]; /**< nothing is drawn outside: left, top, right, bottom */
} preview_canvas;

tess_status tess_canvas_create(int width, int height, preview_colour background,
                               preview_canvas *canvas);
void tess_canvas_destroy(preview_canvas *canvas);

/** Draw only inside this rectangle from now on. */
void tess_canvas_clip(preview_canvas *canvas, int left, int top, int right, int bottom);

/** Add a line with round ends to the mask; tess_canvas_paint() shows all of it at once,
 *  so that crossings are not painted twice. */
void tess_canvas_line(preview_canvas *canvas, const double from[2], const double to[2],
                      double thickness);

/** Paint the mask with a colour and empty it. */
void tess_canvas_paint(preview_canvas *canvas, preview_colour colour, double opacity);

/** Fill a rectangle, blending. */
void tess_canvas_fill(preview_canvas *canvas, double left, double top, double right,
                      double bottom, preview_colour colour, double opacity);

/** Frame of one-pixel lines just outside of a rectangle. */
void tess_canvas_frame(preview_canvas *canvas, int left, int top, int right, int bottom,
                       preview_colour colour);

/* ---- text: printable ASCII and these ---- */

#define TEXT_MU     "\001"
#define TEXT_DEGREE "\002"
#define TEXT_PRIME  "\003"
#define TEXT_SECOND "\004"
#define TEXT_DOT    "\005"
#define TEXT_MINUS  "\006"
#define TEXT_TIMES  "\007"
#define TEXT_RAISE  "\016" /* superscript until TEXT_LOWER */
#define TEXT_LOWER  "\017"

typedef struct preview_text {
    double size;   /**< height of capitals, pixels */
    double weight; /**< thickness of strokes, pixels */
    preview_colour colour;
    double align; /**< 0 left, 0.5 centred, 1 right of the given point */
    bool upright; /**< turned by 90 degrees, reading upwards */
} preview_text;

double tess_text_width(const preview_text *style, const char *text);

/** Write text whose baseline goes through (x, y). */
void tess_text_draw(preview_canvas *canvas, const preview_text *style, double x,
                    double y, const char *text);

/* ---- axes ---- */

/** Where things are on the canvas, and the theme. */
typedef struct preview_layout {
    int left, top, right, bottom; /**< of the plot, right and bottom beyond */
    double pixel_x, pixel_y;      /**< canvas pixels per image pixel */
    preview_colour text, muted, line, background, blank;
    double size, weight; /**< of tick labels */
} preview_layout;

/** Canvas position of a direction cosine offset, and back. */
void tess_preview_place(const tess_image_meta *meta, const preview_layout *layout,
                        double l, double m, double at[2]);
void tess_preview_direction(const tess_image_meta *meta, const preview_layout *layout,
                            double x, double y, double *l, double *m);

/** Round steps of 1, 2 or 5 times a power of ten: at most `most` in `range`. */
double tess_preview_step(double range, int most);

/** "1.5", with a true minus sign and as many decimals as `step` needs. */
const char *tess_preview_number(double value, double step, char text[48]);

/** An angle in the unit that suits it ("21.5 uas"): its name and size. */
const char *tess_preview_angle_unit(double rad, double *unit_rad);

enum { PREVIEW_MAX_LABELS = 96 };

typedef enum preview_edge { PREVIEW_BOTTOM, PREVIEW_LEFT, PREVIEW_INSIDE } preview_edge;

/** A labelled tick at an edge, or a label on a line of the graticule. */
typedef struct preview_label {
    preview_edge edge;
    bool across;  /**< of right ascension (or l), not of declination (or m) */
    double value; /**< [rad] */
    double x, y;  /**< where the tick is, or the middle of the text */
    char text[64];
} preview_label;

typedef struct preview_axes {
    preview_label label[PREVIEW_MAX_LABELS];
    int num;
    bool graticule; /**< lines of constant RA and Dec are drawn */
    bool strong;    /**< the lines are strong, as labels inside belong to them */
    char title_x[64], title_y[64];
} preview_axes;

/** Choose labels, of which no two touch. A small field has angular offsets, as its
 *  coordinates would differ in their last digits only. A larger field has RA and Dec at
 *  the bottom and left edges. Near a pole, and where the horizon is in view, lines of
 *  constant RA and Dec meet an edge at a slant, twice or not at all: the labels are
 *  inside then, on the lines. */
void tess_preview_axes_choose(const tess_image_meta *meta, const preview_layout *layout,
                              preview_axes *axes);

void tess_preview_axes_draw(preview_canvas *canvas, const tess_image_meta *meta,
                            const preview_layout *layout, const preview_axes *axes);

/** Add the labels of a graticule (preview_sky.c). False, with nothing added, when there
 * are fewer than two of RA or of Dec. */
bool tess_preview_sky_labels(const tess_image_meta *meta, const preview_layout *layout,
                             preview_axes *axes);

/** Add its lines to the mask. */
void tess_preview_sky_lines(preview_canvas *canvas, const tess_image_meta *meta,
                            const preview_layout *layout);

/** "12h30m49.4s" of a right ascension [rad] and the like of a declination, to a step in
 *  seconds of time or arc. */
void tess_preview_ra_text(double ra_rad, double step_s, char text[64]);
void tess_preview_dec_text(double dec_rad, double step_asec, char text[64]);

/** Colour bar at `left`, as high as the plot, labelled in a unit that suits it. */
void tess_preview_bar(preview_canvas *canvas, const preview_layout *layout, int left,
                      const preview_stretch *stretch, const preview_colour *map,
                      const char *unit);

/** The prefixed unit for values up to `largest` ("mJy/beam"), and its size in `unit`.
 */
double tess_preview_unit(const char *unit, double largest, char text[48]);

/** Draw lines, and points with their texts, inside the plot. */
void tess_preview_marks_draw(preview_canvas *canvas, const preview_layout *layout,
                             const tess_preview_marks *marks);

/* ---- the file ---- */

/** Write pixels of three bytes, rows downwards, to a temporary file of `path`, which
 * the caller publishes or discards. TESS_ERR_IO, TESS_ERR_RESOURCE. */
tess_status tess_preview_png(const char *path, bool overwrite, int64_t width,
                             int64_t height, const uint8_t *rgb,
                             char temp[TESS_OUT_FILE_NAME]);

#endif
