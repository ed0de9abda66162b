/* Draws PNG previews: the reduced image in colour, with axes, colour bar, beam and
 * title. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fits_header.h"
#include "held_files.h"
#include "preview.h"
#include "tess_const.h"
#include "tess_cubic.h"
#include "tess_mem.h"
#include "tess_minmax.h"
#include "tess_vis.h"

enum {
    MAX_SIDE = 960, /* of the reduced image */
    ENLARGE_BELOW = 512,
    ENLARGE_TO = 720,
    LEAST_SIDE = 160, /* of the plot, also for strips */
    LEFT = 150,
    TOP = 92,
    BOTTOM = 152,
    BAR_GAP = 26,
    RIGHT = 176
};

static const preview_layout theme = {.text = {226, 228, 233},
                                     .muted = {150, 156, 168},
                                     .line = {98, 104, 117},
                                     .background = {16, 17, 21},
                                     .blank = {70, 71, 75},
                                     .size = 13,
                                     .weight = 1.55};

/* What is drawn, and how. */
typedef struct picture {
    const tess_image_meta *meta;
    const preview_layout *layout;
    const preview_image *image;
    const preview_stretch *stretch;
    preview_colour map[PREVIEW_COLOURS];
    bool has_horizon; /* in view */
} picture;

/* Computes the distance from the horizon, in canvas pixels. It is positive on the sky.
 */
static double above_horizon(const tess_image_meta *meta, const preview_layout *layout,
                            double x, double y)
{
    double l, m;
    tess_preview_direction(meta, layout, x, y, &l, &m);
    return (1 - hypot(l, m)) / meta->scale_rad * layout->pixel_x;
}

static bool horizon_in_view(const tess_image_meta *meta, const preview_layout *layout)
{
    return above_horizon(meta, layout, layout->left, layout->top) < 0 ||
           above_horizon(meta, layout, layout->right, layout->top) < 0 ||
           above_horizon(meta, layout, layout->left, layout->bottom) < 0 ||
           above_horizon(meta, layout, layout->right, layout->bottom) < 0;
}

static double mean_of_neighbours(const preview_image *image, const float *value,
                                 int column, int row)
{
    double sum = 0;
    int count = 0;
    for (int j = row - 1; j <= row + 1; ++j)
        for (int i = column - 1; i <= column + 1; ++i) {
            if (i < 0 || j < 0 || i >= image->width || j >= image->height) continue;
            const double each = (double)value[(int64_t)j * image->width + i];
            if (!isfinite(each)) continue;
            sum += each;
            ++count;
        }
    return count > 0 ? sum / count : (double)NAN;
}

/* Continues the image by two pixels beyond the horizon, so that what is drawn reaches
 * the horizon itself and not the last pixel before it. */
static tess_status continue_image(const tess_image_meta *meta,
                                  const preview_layout *layout, preview_image *image)
{
    tess_status status = TESS_OK;
    const int64_t count = (int64_t)image->width * image->height;
    const double per_column = (double)(layout->right - layout->left) / image->width;
    const double per_row = (double)(layout->bottom - layout->top) / image->height;
    float *before = tess_alloc(count, sizeof *before);
    if (!before) TESS_FAIL(TESS_ERR_ALLOC, "no memory for a preview");
    for (int pass = 0; pass < 2; ++pass) {
        memcpy(before, image->value, (size_t)count * sizeof *before);
        for (int64_t k = 0; k < count; ++k) {
            const int column = (int)(k % image->width), row = (int)(k / image->width);
            if (isfinite(before[k]) ||
                above_horizon(meta, layout, layout->left + (column + 0.5) * per_column,
                              layout->bottom - (row + 0.5) * per_row) >
                    1.5 * per_column)
                continue;
            image->value[k] = (float)mean_of_neighbours(image, before, column, row);
        }
    }
cleanup:
    tess_free(before);
    return status;
}

/* Computes a line of the image at a height in pixels, which may lie between two. Cubic
 * interpolation is exact for quadratics, so that the shape of a beam survives
 * enlarging. */
static void interpolate_line(const preview_image *image, double at, double *line)
{
    const double below = floor(at);
    const float *row[4];
    double weight[4];
    tess_cubic_weights(at - below, weight);
    for (int j = 0; j < 4; ++j)
        row[j] =
            image->value +
            tess_clamp_i64((int64_t)below - 1 + j, 0, image->height - 1) * image->width;
    for (int i = 0; i < image->width; ++i)
        line[i] = weight[0] * (double)row[0][i] + weight[1] * (double)row[1][i] +
                  weight[2] * (double)row[2][i] + weight[3] * (double)row[3][i];
}

static double interpolate(const double *line, int count, double at)
{
    const double below = floor(at);
    double weight[4], sum = 0;
    tess_cubic_weights(at - below, weight);
    for (int i = 0; i < 4; ++i)
        sum += weight[i] * line[tess_clamp_i64((int64_t)below - 1 + i, 0, count - 1)];
    return sum;
}

static preview_colour colour_of_pixel(const picture *what, double value, int x, int y)
{
    const preview_layout *layout = what->layout;
    preview_colour colour = layout->blank;
    if (isfinite(value)) {
        const double part = tess_preview_stretch_at(what->stretch, value);
        colour = what->map[(int)(fmin(fmax(part, 0), 1) * (PREVIEW_COLOURS - 1) + 0.5)];
    }
    if (!what->has_horizon) return colour;
    const double above = above_horizon(what->meta, layout, x + 0.5, y + 0.5) + 0.5;
    return tess_colour_mix(layout->background, colour, fmin(fmax(above, 0), 1));
}

/* Draws the image, enlarged or as it is. Where a neighbour is blank, the value is that
 * of the nearest pixel. */
static void draw_pixels(preview_canvas *canvas, const picture *what)
{
    const preview_layout *layout = what->layout;
    const preview_image *image = what->image;
    const int width = layout->right - layout->left,
              height = layout->bottom - layout->top;
    const bool as_it_is = width == image->width && height == image->height;
    double line[MAX_SIDE];
    for (int y = 0; y < height; ++y) {
        const double row = (height - y - 0.5) * image->height / height - 0.5;
        const float *nearest = image->value + tess_clamp_i64((int64_t)floor(row + 0.5),
                                                             0, image->height - 1) *
                                                  image->width;
        uint8_t *rgb =
            &canvas
                 ->rgb[3 * ((int64_t)(layout->top + y) * canvas->width + layout->left)];
        if (!as_it_is) interpolate_line(image, row, line);
        for (int x = 0; x < width; ++x, rgb += 3) {
            const double column = (x + 0.5) * image->width / width - 0.5;
            double value =
                as_it_is ? (double)NAN : interpolate(line, image->width, column);
            if (!isfinite(value))
                value = (double)nearest[tess_clamp_i64((int64_t)floor(column + 0.5), 0,
                                                       image->width - 1)];
            const preview_colour colour =
                colour_of_pixel(what, value, layout->left + x, layout->top + y);
            rgb[0] = colour.red;
            rgb[1] = colour.green;
            rgb[2] = colour.blue;
        }
    }
}

/* Draws the restoring beam, to scale, in the lower left corner. */
static void draw_beam(preview_canvas *canvas, const preview_layout *layout,
                      const tess_image_meta *meta)
{
    enum { SEGMENTS = 72 };
    const double per_rad = layout->pixel_x / meta->scale_rad;
    const double major = 0.5 * meta->beam.major_rad * per_rad;
    const double minor = 0.5 * meta->beam.minor_rad * per_rad;
    const double pa = meta->beam.pa_rad, margin = 14, pad = 9;
    const double half = fmax(major, 6) + pad;
    if (!(major > 1.2) || 2 * (half + margin) > 0.5 * (layout->bottom - layout->top) ||
        2 * (half + margin) > 0.5 * (layout->right - layout->left))
        return;
    const double x = layout->left + margin + half, y = layout->bottom - margin - half;
    tess_canvas_fill(canvas, x - half, y - half, x + half, y + half, layout->background,
                     0.62);
    tess_canvas_frame(canvas, (int)round(x - half), (int)round(y - half),
                      (int)round(x + half), (int)round(y + half), layout->line);
    double outline[SEGMENTS + 1][2];
    for (int k = 0; k <= SEGMENTS; ++k) {
        /* position angle from North (up) through East (left) */
        const double t = TESS_TWO_PI * k / SEGMENTS, a = major * cos(t),
                     b = minor * sin(t);
        outline[k][0] = x - (a * sin(pa) + b * cos(pa));
        outline[k][1] = y - (a * cos(pa) - b * sin(pa));
    }
    for (double a = -major; a <= major; a += 0.5) { /* filled by chords across */
        const double b = minor * sqrt(fmax(0, 1 - a * a / (major * major)));
        const double from[2] = {x - (a * sin(pa) + b * cos(pa)),
                                y - (a * cos(pa) - b * sin(pa))};
        const double to[2] = {x - (a * sin(pa) - b * cos(pa)),
                              y - (a * cos(pa) + b * sin(pa))};
        tess_canvas_line(canvas, from, to, 1.7);
    }
    tess_canvas_paint(canvas, layout->text, 0.32);
    for (int k = 0; k < SEGMENTS; ++k)
        tess_canvas_line(canvas, outline[k], outline[k + 1], 1.6);
    tess_canvas_paint(canvas, layout->text, 1);
}

/* Appends a part to a line, after a dot unless it is the first one. */
static void append(char *line, size_t size, const char *part)
{
    const size_t used = strlen(line);
    if (!part[0]) return;
    snprintf(line + used, size - used, "%s%s", used ? "  " TEXT_DOT "  " : "", part);
}

static void frequency_text(double freq_hz, char text[48])
{
    if (!(freq_hz > 0) || !isfinite(freq_hz))
        text[0] = '\0';
    else if (freq_hz >= 1e9)
        snprintf(text, 48, "%.5g GHz", 1e-9 * freq_hz);
    else
        snprintf(text, 48, "%.5g MHz", 1e-6 * freq_hz);
}

/* The lines of text above and below the picture. */
typedef struct captions {
    char title[80], subtitle[256], numbers[2][384];
    double
        width; /* of the plot and its colour bar: longer lines of numbers are broken */
} captions;

static const preview_text title_style = {20, 2.1, {226, 228, 233}, 0, false};
static const preview_text subtitle_style = {13, 1.5, {150, 156, 168}, 0, false};
static const preview_text numbers_style = {12, 1.4, {150, 156, 168}, 0, false};

static void describe_observation(const tess_image_meta *meta, captions *text)
{
    const bool is_stokes = meta->stokes >= 1 && meta->stokes <= 4;
    const size_t size = sizeof text->subtitle;
    char part[64];
    snprintf(text->title, sizeof text->title, "%s",
             meta->names.object[0] ? meta->names.object : "Untitled field");
    snprintf(part, sizeof part, "%s%s%s", is_stokes ? "Stokes " : "",
             tess_corr_name(meta->stokes), meta->imaginary ? " (imaginary)" : "");
    append(text->subtitle, size, part);
    append(text->subtitle, size, meta->caption ? meta->caption : "");
    frequency_text(meta->freq_hz, part);
    append(text->subtitle, size, part);
    if (meta->gridded.weighting[0]) {
        snprintf(part, sizeof part, "%s weighting", meta->gridded.weighting);
        if (strncmp(part, "briggs", 6) == 0) part[0] = 'B'; /* a name */
        append(text->subtitle, size, part);
    }
    append(text->subtitle, size, meta->names.telescope);
    if (tess_fits_is_time(meta->time_start_mjd_s)) {
        tess_fits_date(meta->time_start_mjd_s, part);
        part[10] = '\0'; /* the day */
        append(text->subtitle, size, part);
    }
}

/* Appends a number to the first line that has room. */
static void append_number(captions *text, const char *part)
{
    char line[sizeof text->numbers[0]];
    snprintf(line, sizeof line, "%s", text->numbers[0]);
    append(line, sizeof line, part);
    const bool fits =
        !text->numbers[1][0] &&
        (!text->numbers[0][0] || tess_text_width(&numbers_style, line) <= text->width);
    append(text->numbers[fits ? 0 : 1], sizeof text->numbers[0], part);
}

static void describe_numbers(const tess_image_meta *meta, const preview_image *image,
                             captions *text)
{
    const bool is_fine = meta->scale_rad < 1e-8; /* milliarcsecond pixels */
    const double peak = image->peak;
    char part[192], unit[48], number[48], ra[64], dec[64];
    double unit_size = tess_preview_unit(meta->unit, fabs(peak), unit);
    if (isnan(peak)) {
        append_number(text, "no data");
    } else {
        snprintf(part, sizeof part, "peak %s%.4g %s", peak < 0 ? TEXT_MINUS : "",
                 fabs(peak) / unit_size, unit);
        append_number(text, part);
        unit_size = tess_preview_unit(meta->unit, image->rms, unit);
        snprintf(part, sizeof part, "robust rms %.3g %s", image->rms / unit_size, unit);
        append_number(text, part);
    }
    if (meta->beam.major_rad > 0) {
        double rad;
        const char *name = tess_preview_angle_unit(meta->beam.major_rad, &rad);
        tess_preview_number(meta->beam.pa_rad / TESS_RAD_PER_DEG, 1, number);
        snprintf(part, sizeof part,
                 "beam %.3g " TEXT_TIMES " %.3g %s, PA %s" TEXT_DEGREE,
                 meta->beam.major_rad / rad, meta->beam.minor_rad / rad, name, number);
        append_number(text, part);
    }
    tess_preview_ra_text(meta->ra_rad, is_fine ? 1e-4 : 0.1, ra);
    tess_preview_dec_text(meta->dec_rad, is_fine ? 1e-3 : 1, dec);
    snprintf(part, sizeof part, "centre %s  %s", ra, dec);
    append_number(text, part);
}

static void draw_captions(preview_canvas *canvas, const preview_layout *layout,
                          const captions *text)
{
    tess_text_draw(canvas, &title_style, layout->left, layout->top - 46, text->title);
    tess_text_draw(canvas, &subtitle_style, layout->left, layout->top - 18,
                   text->subtitle);
    for (int k = 0; k < 2; ++k)
        tess_text_draw(canvas, &numbers_style, layout->left,
                       layout->bottom + 106 + 24 * k, text->numbers[k]);
}

/* Makes the canvas wide enough for the plot, its colour bar, and the text. */
static int canvas_width(const preview_layout *layout, const captions *text)
{
    double width = fmax(tess_text_width(&title_style, text->title),
                        tess_text_width(&subtitle_style, text->subtitle));
    for (int k = 0; k < 2; ++k)
        width = fmax(width, tess_text_width(&numbers_style, text->numbers[k]));
    const int for_text = layout->left + (int)width + 30;
    const int for_plot = layout->right + BAR_GAP + RIGHT;
    return for_text > for_plot ? for_text : for_plot;
}

/* Chooses the size and place of the plot for a reduced image. */
static preview_layout arrange(const preview_image *image)
{
    preview_layout layout = theme;
    const int longest = image->width > image->height ? image->width : image->height;
    const double enlarge = longest < ENLARGE_BELOW ? (double)ENLARGE_TO / longest : 1.0;
    int width = (int)lround(image->width * enlarge);
    int height = (int)lround(image->height * enlarge);
    width = width < LEAST_SIDE ? LEAST_SIDE : width;
    height = height < LEAST_SIDE ? LEAST_SIDE : height;
    layout.left = LEFT;
    layout.top = TOP;
    layout.right = LEFT + width;
    layout.bottom = TOP + height;
    layout.pixel_x = (double)width / image->width / (double)image->factor;
    layout.pixel_y = (double)height / image->height / (double)image->factor;
    return layout;
}

static tess_status draw(const tess_image_meta *meta, preview_image *image,
                        const tess_preview_marks *marks, preview_canvas *canvas)
{
    tess_status status = TESS_OK;
    preview_layout layout = arrange(image);
    preview_stretch stretch;
    preview_axes axes;
    picture what = {.meta = meta,
                    .layout = &layout,
                    .image = image,
                    .stretch = &stretch,
                    .has_horizon = horizon_in_view(meta, &layout)};
    captions text = {.width = layout.right - layout.left + BAR_GAP + RIGHT - 30};
    describe_observation(meta, &text);
    describe_numbers(meta, image, &text);
    TESS_TRY(tess_canvas_create(canvas_width(&layout, &text), layout.bottom + BOTTOM,
                                layout.background, canvas));
    /* PSFs of Stokes Q, U and V have a positive peak like that of I */
    tess_preview_stretch_choose(
        image, !meta->is_psf && meta->stokes >= 2 && meta->stokes <= 4, &stretch);
    tess_preview_map(stretch.kind, what.map);
    if (what.has_horizon) TESS_TRY(continue_image(meta, &layout, image));
    draw_pixels(canvas, &what);
    if (marks) tess_preview_marks_draw(canvas, &layout, marks);
    tess_canvas_frame(canvas, layout.left, layout.top, layout.right, layout.bottom,
                      layout.line);
    tess_preview_axes_choose(meta, &layout, &axes);
    tess_preview_axes_draw(canvas, meta, &layout, &axes);
    if (meta->beam.major_rad > 0) draw_beam(canvas, &layout, meta);
    tess_preview_bar(canvas, &layout, layout.right + BAR_GAP, &stretch, what.map,
                     meta->unit);
    draw_captions(canvas, &layout, &text);
cleanup:
    return status;
}

tess_status tess_preview_png(const char *path, bool overwrite, int64_t width,
                             int64_t height, const uint8_t *rgb,
                             char temp[TESS_OUT_FILE_NAME])
{
    tess_status status = TESS_OK;
    int fd = -1;
    FILE *file = NULL;
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)width,
                     .height = (png_uint_32)height,
                     .format = PNG_FORMAT_RGB,
                     /* no filters: few colours pack better, and faster, without */
                     .flags = PNG_IMAGE_FLAG_FAST};
    TESS_TRY(tess_out_file_begin(path, overwrite, temp, &fd));
    file = fdopen(fd, "wb");
    if (!file)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    fd = -1; /* closed with it */
    if (!png_image_write_to_stdio(&png, file, 0, rgb, 0, NULL))
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", path, png.message);
    const int failed = fclose(file);
    file = NULL;
    if (failed)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
cleanup:
    if (file) fclose(file);
    if (fd >= 0) close(fd);
    return status;
}

static tess_status write_png(const char *path, const preview_canvas *canvas,
                             tess_held_files *held)
{
    tess_status status = TESS_OK;
    char temp[TESS_OUT_FILE_NAME] = "";
    TESS_TRY(tess_preview_png(path, held->overwrite, canvas->width, canvas->height,
                              canvas->rgb, temp));
    TESS_TRY(tess_held_add(held, temp, path, held->overwrite, -1));
cleanup:
    tess_out_file_discard(temp);
    return status;
}

tess_status tess_preview_hold(tess_comm *comm, const char *path, tess_held_files *held,
                              const tess_image_meta *meta, const tess_fits_rows *rows)
{
    return tess_preview_hold_marked(comm, path, held, meta, rows, NULL);
}

tess_status tess_preview_hold_marked(tess_comm *comm, const char *path,
                                     tess_held_files *held, const tess_image_meta *meta,
                                     const tess_fits_rows *rows,
                                     const tess_preview_marks *marks)
{
    tess_status status = TESS_OK;
    preview_image image = {0};
    preview_canvas canvas = {0};
    if (meta->nx < 1 || meta->ny < 1 || rows->num_rows < 0 ||
        (rows->num_rows > 0 &&
         (rows->row_first < 0 || rows->row_first > meta->ny - rows->num_rows)) ||
        !(meta->scale_rad > 0))
        status = tess_error_record(TESS_ERR_INTERNAL, __FILE__, __LINE__, __func__,
                                   "%s: rows are not in the image", path);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_preview_reduce(comm, meta, rows, MAX_SIDE, &image));
    if (tess_comm_rank(comm) == 0) {
        status = draw(meta, &image, marks, &canvas);
        if (status == TESS_OK) status = write_png(path, &canvas, held);
    }
    TESS_TRY(tess_comm_agree(comm, status));
cleanup:
    tess_free(image.value);
    tess_canvas_destroy(&canvas);
    return status;
}
