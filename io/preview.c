/* PNG previews: the reduced image in colour, with axes, colour bar, beam and title. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "out_file.h"
#include "preview.h"
#include "tess_const.h"
#include "tess_mem.h"
#include "tess_vis.h"

enum {
    MAX_SIDE = 960, /* of the reduced image */
    ENLARGE_BELOW = 600,
    ENLARGE_TO = 880,
    LEAST_SIDE = 160, /* of the plot, also for strips */
    LEFT = 150,
    TOP = 92,
    BOTTOM = 132,
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

/* Keys' cubic convolution (1981), a = -1/2: exact for quadratics, so that the shape of
 * a beam survives enlarging. */
static void cubic_weights(double t, double weight[4])
{
    const double t2 = t * t, t3 = t2 * t;
    weight[0] = 0.5 * (-t3 + 2 * t2 - t);
    weight[1] = 0.5 * (3 * t3 - 5 * t2 + 2);
    weight[2] = 0.5 * (-3 * t3 + 4 * t2 + t);
    weight[3] = 0.5 * (t3 - t2);
}

static int64_t clamp_index(int64_t k, int64_t count)
{
    return k < 0 ? 0 : (k < count ? k : count - 1);
}

/* Value at a position in pixels; the nearest pixel's where a neighbour is blank. */
static double sample(const preview_image *image, double x, double y)
{
    const double fx = floor(x), fy = floor(y);
    double wx[4], wy[4], sum = 0;
    cubic_weights(x - fx, wx);
    cubic_weights(y - fy, wy);
    for (int j = 0; j < 4; ++j)
        for (int i = 0; i < 4; ++i) {
            const int64_t column = clamp_index((int64_t)fx - 1 + i, image->width);
            const int64_t row = clamp_index((int64_t)fy - 1 + j, image->height);
            sum += wx[i] * wy[j] * (double)image->value[row * image->width + column];
        }
    if (isfinite(sum)) return sum;
    return (double)image
        ->value[clamp_index((int64_t)floor(y + 0.5), image->height) * image->width +
                clamp_index((int64_t)floor(x + 0.5), image->width)];
}

static void draw_pixels(preview_canvas *canvas, const preview_layout *layout,
                        const preview_image *image, const preview_stretch *stretch,
                        const preview_colour *map)
{
    const int width = layout->right - layout->left,
              height = layout->bottom - layout->top;
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x) {
            const double column = (x + 0.5) * image->width / width - 0.5;
            const double row = (height - y - 0.5) * image->height / height - 0.5;
            const double value = sample(image, column, row);
            preview_colour colour = layout->blank;
            if (isfinite(value)) {
                const double part = tess_preview_stretch_at(stretch, value);
                colour =
                    map[(int)lround(fmin(fmax(part, 0), 1) * (PREVIEW_COLOURS - 1))];
            }
            uint8_t *rgb =
                &canvas->rgb[3 * ((int64_t)(layout->top + y) * canvas->width +
                                  layout->left + x)];
            rgb[0] = colour.red;
            rgb[1] = colour.green;
            rgb[2] = colour.blue;
        }
}

/* The restoring beam, to scale, in the lower left corner. */
static void draw_beam(preview_canvas *canvas, const preview_layout *layout,
                      const tess_image_meta *meta)
{
    enum { SEGMENTS = 72 };
    const double per_rad = layout->pixel_x / meta->scale_rad;
    const double major = 0.5 * meta->beam_major_rad * per_rad;
    const double minor = 0.5 * meta->beam_minor_rad * per_rad;
    const double pa = meta->beam_pa_rad, margin = 14, pad = 12;
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

/* Append a part to a line, after a dot unless it is the first. */
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
    char title[80], subtitle[256], numbers[384];
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
             meta->object[0] ? meta->object : "Untitled field");
    snprintf(part, sizeof part, "%s%s%s", is_stokes ? "Stokes " : "",
             tess_corr_name(meta->stokes), meta->imaginary ? " (imaginary)" : "");
    append(text->subtitle, size, part);
    frequency_text(meta->freq_hz, part);
    append(text->subtitle, size, part);
    append(text->subtitle, size, meta->weighting);
    append(text->subtitle, size, meta->telescope);
}

static void describe_numbers(const tess_image_meta *meta, const preview_image *image,
                             captions *text)
{
    const size_t size = sizeof text->numbers;
    const bool is_fine = meta->scale_rad < 1e-8; /* milliarcsecond pixels */
    const double peak = fabs(image->max) >= fabs(image->min) ? image->max : image->min;
    char part[192], unit[48], number[48], ra[64], dec[64];
    double unit_size = tess_preview_unit(meta->unit, fabs(peak), unit);
    snprintf(part, sizeof part, "peak %s%.4g %s", peak < 0 ? TEXT_MINUS : "",
             fabs(peak) / unit_size, unit);
    append(text->numbers, size, part);
    unit_size = tess_preview_unit(meta->unit, image->sigma, unit);
    snprintf(part, sizeof part, "robust rms %.3g %s", image->sigma / unit_size, unit);
    append(text->numbers, size, part);
    if (meta->beam_major_rad > 0) {
        double rad;
        const char *name = tess_preview_angle_unit(meta->beam_major_rad, &rad);
        tess_preview_number(meta->beam_pa_rad / TESS_RAD_PER_DEG, 1, number);
        snprintf(part, sizeof part,
                 "beam %.3g " TEXT_TIMES " %.3g %s, PA %s" TEXT_DEGREE,
                 meta->beam_major_rad / rad, meta->beam_minor_rad / rad, name, number);
        append(text->numbers, size, part);
    }
    tess_preview_ra_text(meta->ra_rad, is_fine ? 1e-4 : 0.1, ra);
    tess_preview_dec_text(meta->dec_rad, is_fine ? 1e-3 : 1, dec);
    snprintf(part, sizeof part, "%s  %s", ra, dec);
    append(text->numbers, size, part);
}

static void draw_captions(preview_canvas *canvas, const preview_layout *layout,
                          const captions *text)
{
    tess_text_draw(canvas, &title_style, layout->left, layout->top - 46, text->title);
    tess_text_draw(canvas, &subtitle_style, layout->left, layout->top - 18,
                   text->subtitle);
    tess_text_draw(canvas, &numbers_style, layout->left, layout->bottom + 112,
                   text->numbers);
}

/* Wide enough for the plot, its colour bar, and the text. */
static int canvas_width(const preview_layout *layout, const captions *text)
{
    double width = fmax(tess_text_width(&title_style, text->title),
                        tess_text_width(&subtitle_style, text->subtitle));
    width = fmax(width, tess_text_width(&numbers_style, text->numbers));
    const int for_text = layout->left + (int)width + 30;
    const int for_plot = layout->right + BAR_GAP + RIGHT;
    return for_text > for_plot ? for_text : for_plot;
}

/* Size and place of the plot for a reduced image. */
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

static tess_status draw(const tess_image_meta *meta, const preview_image *image,
                        preview_canvas *canvas)
{
    tess_status status = TESS_OK;
    preview_layout layout = arrange(image);
    preview_colour map[PREVIEW_COLOURS];
    preview_stretch stretch;
    captions text = {"", "", ""};
    describe_observation(meta, &text);
    describe_numbers(meta, image, &text);
    TESS_TRY(tess_canvas_create(canvas_width(&layout, &text), layout.bottom + BOTTOM,
                                layout.background, canvas));
    tess_preview_stretch_choose(image, meta->stokes >= 2 && meta->stokes <= 4,
                                &stretch);
    tess_preview_map(stretch.kind, map);
    draw_pixels(canvas, &layout, image, &stretch, map);
    tess_canvas_frame(canvas, layout.left, layout.top, layout.right, layout.bottom,
                      layout.line);
    tess_preview_axes(canvas, meta, &layout);
    if (meta->beam_major_rad > 0) draw_beam(canvas, &layout, meta);
    tess_preview_bar(canvas, &layout, layout.right + BAR_GAP, &stretch, map,
                     meta->unit);
    draw_captions(canvas, &layout, &text);
cleanup:
    return status;
}

static tess_status write_png(const char *path, const preview_canvas *canvas,
                             tess_held_files *held)
{
    tess_status status = TESS_OK;
    char temp[TESS_OUT_FILE_NAME] = "";
    int fd = -1;
    FILE *file = NULL;
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)canvas->width,
                     .height = (png_uint_32)canvas->height,
                     .format = PNG_FORMAT_RGB};
    TESS_TRY(tess_fits_check_target(path, held->overwrite));
    TESS_TRY(tess_out_file_create(path, temp, &fd));
    file = fdopen(fd, "wb");
    if (!file)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    if (!png_image_write_to_stdio(&png, file, 0, canvas->rgb, 0, NULL))
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", path, png.message);
    const int failed = fclose(file);
    file = NULL;
    fd = -1;
    if (failed)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
    TESS_TRY(tess_held_add(held, temp, path, held->overwrite));
cleanup:
    if (file)
        fclose(file);
    else if (fd >= 0)
        close(fd);
    tess_out_file_discard(temp);
    return status;
}

tess_status tess_preview_hold(tess_comm *comm, const char *path, tess_held_files *held,
                              const tess_image_meta *meta, bool is_double,
                              int64_t row_first, int64_t num_rows, const void *rows)
{
    tess_status status = TESS_OK;
    preview_image image = {0};
    preview_canvas canvas = {0};
    if (meta->nx < 1 || meta->ny < 1 || num_rows < 0 ||
        (num_rows > 0 && (row_first < 0 || row_first > meta->ny - num_rows)) ||
        !(meta->scale_rad > 0))
        status = tess_error_record(TESS_ERR_INTERNAL, __FILE__, __LINE__, __func__,
                                   "%s: rows are not in the image", path);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_preview_reduce(comm, meta, is_double, row_first, num_rows, rows,
                                 MAX_SIDE, &image));
    if (tess_comm_rank(comm) == 0) {
        status = draw(meta, &image, &canvas);
        if (status == TESS_OK) status = write_png(path, &canvas, held);
    }
    TESS_TRY(tess_comm_agree(comm, status));
cleanup:
    tess_free(image.value);
    tess_canvas_destroy(&canvas);
    return status;
}

tess_status tess_preview_write(tess_comm *comm, const char *path, bool overwrite,
                               const tess_image_meta *meta, bool is_double,
                               int64_t row_first, int64_t num_rows, const void *rows)
{
    tess_status status = TESS_OK;
    tess_held_files held = {.overwrite = overwrite};
    TESS_TRY(
        tess_preview_hold(comm, path, &held, meta, is_double, row_first, num_rows, rows));
    TESS_TRY(tess_held_publish(comm, &held));
cleanup:
    tess_held_free(&held);
    return status;
}
