/* Reads masks and models of earlier runs, whose pixels must be the images', and writes
 * the mask that keeps components from the horizon. */
#include "clean_inputs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "image_meta.h"
#include "image_names.h"
#include "image_primary_beam.h"
#include "mask_shapes.h"
#include "pixel_places.h"
#include "tess_casa_image.h"
#include "tess_channels.h"
#include "tess_log.h"
#include "tess_mem.h"

/* An output channel has the plane of a cube whose frequency is its own, to this share
 * of its width. */
static const double SAME_CHANNEL = 0.1;

/* Rows of a mask that are read at a time: about a tile of an image of CASA. */
enum { ROWS_AT_ONCE = 64 };

/* ---- masks ---- */

/* What the mask of a run is. */
typedef enum mask_kind { NO_MASK, FITS_MASK, CASA_MASK, REGIONS_MASK } mask_kind;

/* What --mask names: a folder is an image of CASA, and FITS files begin alike. A file
 * that cannot be read is taken for regions, whose reader says so. */
static mask_kind kind_of_file(const char *path)
{
    static const char fits[] = "SIMPLE  =";
    char begin[sizeof fits - 1] = "";
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return CASA_MASK;
    FILE *file = fopen(path, "rb");
    const size_t count = file ? fread(begin, 1, sizeof begin, file) : 0;
    if (file) fclose(file);
    return count == sizeof begin && memcmp(begin, fits, sizeof begin) == 0
               ? FITS_MASK
               : REGIONS_MASK;
}

static mask_kind kind_of(const tess_clean_choice *choice)
{
    if (choice->mask) return kind_of_file(choice->mask);
    if (choice->casa_mask) return CASA_MASK;
    return choice->fits_mask ? FITS_MASK : NO_MASK;
}

/* An image in a file of either format. */
typedef struct mask_file {
    tess_fits_model header;
    tess_casa_image *casa; /* NULL: FITS */
    bool is_placed;        /* whether the header tells where its pixels lie */
    int *plane;            /* [channels_out] frequency plane of each output channel */
} mask_file;

static void close_mask(mask_file *mask)
{
    tess_casa_image_close(mask->casa);
    tess_free(mask->plane);
}

/* The plane whose frequency is that of an output channel; −1: there is none. */
static int plane_at(const image_run *run, int64_t channel, const double *freq_hz,
                    int num_freq)
{
    double centre_hz, width_hz;
    int nearest = 0;
    output_table_band(&run->outputs, run->info, channel, &centre_hz, &width_hz);
    for (int k = 1; k < num_freq; ++k)
        if (fabs(freq_hz[k] - centre_hz) < fabs(freq_hz[nearest] - centre_hz))
            nearest = k;
    return fabs(freq_hz[nearest] - centre_hz) <= SAME_CHANNEL * width_hz ? nearest : -1;
}

/* Finds the planes of all output channels by their frequencies; leaves plane[channels]
 * as it is, and `*found` false, where a channel has none, or the file does not tell
 * frequencies. Local. */
static tess_status find_planes(const image_run *run, const mask_file *mask, int *plane,
                               bool *found)
{
    tess_status status = TESS_OK;
    const int64_t channels = run->opts->channels_out;
    const int num = mask->header.num_freq;
    double *freq_hz = tess_alloc(num, sizeof *freq_hz);
    bool *has_data = tess_alloc(num, sizeof *has_data);
    if (!freq_hz || !has_data) TESS_FAIL(TESS_ERR_ALLOC, "planes of a mask");
    *found = !mask->casa &&
             tess_fits_frequencies(&mask->header, freq_hz, has_data) == TESS_OK;
    if (!*found) tess_error_clear();
    for (int64_t c = 0; c < channels && *found; ++c)
        *found = plane_at(run, c, freq_hz, num) >= 0;
    for (int64_t c = 0; c < channels && *found; ++c)
        plane[c] = plane_at(run, c, freq_hz, num);
cleanup:
    tess_free(freq_hz);
    tess_free(has_data);
    return status;
}

/* Finds the plane of each output channel: the only one, the one of its frequency, or
 * the one of its number. TESS_ERR_INPUT. Local. */
static tess_status choose_planes(const image_run *run, mask_file *mask)
{
    tess_status status = TESS_OK;
    const int64_t channels = run->opts->channels_out;
    const int num = mask->header.num_freq;
    bool found = false;
    mask->plane = tess_alloc_zero(channels, sizeof *mask->plane);
    if (!mask->plane) TESS_FAIL(TESS_ERR_ALLOC, "planes of a mask");
    if (num == 1) return TESS_OK;
    if (num != channels)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: it has %d frequency planes; give one, or one for each of the "
                  "%lld output channels",
                  mask->header.path, num, (long long)channels);
    TESS_TRY(find_planes(run, mask, mask->plane, &found));
    for (int64_t c = 0; c < channels && !found; ++c)
        mask->plane[c] = (int)c;
cleanup:
    return status;
}

/* Checks that pixels are those of the image. Pixels of a header that does not tell, or
 * has East to the right as no image here, are taken by their number if there are as
 * many. Local. */
static tess_status check_place(const image_run *run, const mask_file *mask, bool tells)
{
    tess_status status = TESS_OK;
    const tess_fits_model *header = &mask->header;
    const long long nx = run->opts->nx, ny = run->opts->ny;
    if (mask->is_placed && !(header->scale_x_rad > 0))
        return pixel_places_check_run(run, header);
    if (header->nx != nx || header->ny != ny)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: it has %lld x %lld pixels, the image %lld x %lld", header->path,
                  (long long)header->nx, (long long)header->ny, nx, ny);
    if (tells)
        tess_log_warn("%s: its header %s; its pixels are taken for those of the image, "
                      "which has as many",
                      header->path,
                      mask->is_placed ? "has East to the right (CDELT1 > 0)"
                                      : "does not tell where they lie (no RA and DEC)");
cleanup:
    return status;
}

/* `tells`: warn of a mask without positions. Local. */
static tess_status open_mask(const image_run *run, bool tells, mask_file *mask)
{
    tess_status status = TESS_OK;
    const tess_clean_choice *choice = &run->opts->clean;
    const char *path = choice->mask        ? choice->mask
                       : choice->casa_mask ? choice->casa_mask
                                           : choice->fits_mask;
    *mask = (mask_file){.is_placed = true};
    TESS_TRY(kind_of(choice) == CASA_MASK
                 ? tess_casa_image_open(path, &mask->header, &mask->casa)
                 : tess_fits_open_unplaced(path, &mask->is_placed, &mask->header));
    TESS_TRY(check_place(run, mask, tells));
    TESS_TRY(choose_planes(run, mask));
cleanup:
    return status;
}

static tess_status read_rows(const mask_file *mask, int stokes, int freq, int64_t first,
                             int64_t count, double *out)
{
    return mask->casa
               ? tess_casa_image_read(mask->casa, stokes, freq, first, count, out)
               : tess_fits_read(&mask->header, stokes, freq, first, count,
                                TESS_PIXEL_DOUBLE, out);
}

/* The plane of a polarisation, or the first one. */
static int plane_of(const tess_fits_model *fits, int stokes)
{
    for (int k = 0; k < fits->num_stokes && k < 4; ++k)
        if (fits->stokes[k] == stokes) return k;
    return 0;
}

/* Whether anything is set in a plane of a mask. Local. */
static tess_status find_set(const mask_file *mask, int stokes, int freq, double *rows,
                            bool *is_set)
{
    tess_status status = TESS_OK;
    const int64_t nx = mask->header.nx, ny = mask->header.ny;
    for (int64_t j = 0; j < ny && !*is_set; j += ROWS_AT_ONCE) {
        const int64_t count = j + ROWS_AT_ONCE < ny ? ROWS_AT_ONCE : ny - j;
        TESS_TRY(read_rows(mask, stokes, freq, j, count, rows));
        for (int64_t k = 0; k < count * nx && !*is_set; ++k)
            *is_set = rows[k] != 0;
    }
cleanup:
    return status;
}

/* Some planes may be empty, whose channels are not cleaned. TESS_ERR_INPUT: all are.
 * Local. */
static tess_status check_set(const mask_file *mask)
{
    tess_status status = TESS_OK;
    bool is_set = false;
    const tess_fits_model *header = &mask->header;
    const int num_stokes = header->num_stokes > 1 ? header->num_stokes : 1;
    double *rows = tess_alloc(ROWS_AT_ONCE * header->nx, sizeof *rows);
    if (!rows) TESS_FAIL(TESS_ERR_ALLOC, "rows of a mask");
    for (int k = 0; k < header->num_freq * num_stokes && !is_set; ++k)
        TESS_TRY(find_set(mask, k % num_stokes, k / num_stokes, rows, &is_set));
    if (!is_set)
        TESS_FAIL(TESS_ERR_INPUT, "%s: nothing is set in this mask", header->path);
cleanup:
    tess_free(rows);
    return status;
}

/* Local. */
static tess_status read_mask(const image_run *run, int64_t channel, int pol,
                             const tess_rows *set)
{
    tess_status status = TESS_OK;
    mask_file mask = {0};
    const int64_t nx = set->nx, num_rows = set->num_rows;
    double *rows = tess_alloc(ROWS_AT_ONCE * nx, sizeof *rows);
    if (!rows) TESS_FAIL(TESS_ERR_ALLOC, "rows of a mask");
    TESS_TRY(open_mask(run, false, &mask));
    const int plane = plane_of(&mask.header, run->pol[pol].code);
    for (int64_t j = 0; j < num_rows; j += ROWS_AT_ONCE) {
        const int64_t count = j + ROWS_AT_ONCE < num_rows ? ROWS_AT_ONCE : num_rows - j;
        TESS_TRY(read_rows(&mask, plane, mask.plane[channel], set->row_first + j, count,
                           rows));
        for (int64_t k = 0; k < count * nx; ++k)
            tess_rows_set(set, j * nx + k, rows[k]);
    }
cleanup:
    close_mask(&mask);
    tess_free(rows);
    return status;
}

static bool has_mask(const image_run *run)
{
    const tess_clean_choice *choice = &run->opts->clean;
    return choice->mask || choice->fits_mask || choice->casa_mask;
}

/* Takes pixels out of a mask where the primary beam is not above the level of
 * --pb-mask. Local. */
static tess_status leave_beam(const image_run *run, int64_t output, int pol,
                              const tess_rows *mask)
{
    tess_status status = TESS_OK;
    const double level = run->opts->clean.pb_mask;
    tess_rows beam = tess_rows_like(mask, TESS_PIXEL_DOUBLE);
    if (run->outputs.extent[output].num_vis == 0) return TESS_OK;
    TESS_TRY(image_primary_beam_rows(run, output, pol, &beam));
    for (int64_t k = 0; k < tess_rows_count(mask); ++k)
        if (!(tess_rows_pixel(&beam, k) > level)) tess_rows_set(mask, k, 0);
cleanup:
    tess_rows_free(&beam);
    return status;
}

/* Takes pixels near the horizon out of a mask: pixels whose angle from the phase centre
 * is at least 90 degrees less the angle of --horizon-mask. */
static void leave_horizon(const image_run *run, const tess_rows *mask)
{
    const tess_geom *geom = &run->whole.geom;
    const double most = cos(run->opts->clean.horizon_rad);
    for (int64_t j = 0; j < mask->num_rows; ++j) {
        const double m = tess_geom_m(geom, mask->row_first + j);
        for (int64_t i = 0; i < geom->nx; ++i) {
            const double l = tess_geom_l(geom, i);
            if (l * l + m * m >= most * most) tess_rows_set(mask, j * geom->nx + i, 0);
        }
    }
}

/* Rows of a mask that leaves nothing out. Local. */
static tess_status open_rows(tess_rows *mask)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_rows_alloc(mask));
    if (tess_rows_count(mask) > 0)
        memset(mask->value, 1, (size_t)tess_rows_bytes(mask));
cleanup:
    return status;
}

/* `regions`: those of --mask; there may be none. Local. */
static tess_status make_mask(const image_run *run, const tess_mask_regions *regions,
                             int64_t output, int pol, tess_rows *mask)
{
    tess_status status = TESS_OK;
    const tess_clean_choice *choice = &run->opts->clean;
    const int64_t channel = output % run->outputs.num_channels;
    tess_rows made = tess_rows_like(mask, TESS_PIXEL_MASK);
    TESS_TRY(tess_rows_check_whole(&made, "mask"));
    TESS_TRY(open_rows(&made));
    if (regions->num > 0)
        TESS_TRY(mask_shapes_draw(run, regions, channel, &made));
    else if (has_mask(run))
        TESS_TRY(read_mask(run, channel, pol, &made));
    if (choice->horizon_rad > 0) leave_horizon(run, &made);
    if (choice->pb_mask > 0) TESS_TRY(leave_beam(run, output, pol, &made));
    *mask = made;
    made = (tess_rows){0};
cleanup:
    tess_rows_free(&made);
    return status;
}

bool clean_inputs_have_mask(const image_run *run)
{
    const tess_clean_choice *choice = &run->opts->clean;
    return has_mask(run) || choice->horizon_rad > 0 || choice->pb_mask > 0;
}

tess_status clean_inputs_mask(const image_run *run, int64_t output, int pol,
                              tess_rows *mask)
{
    tess_status status = TESS_OK;
    tess_mask_regions regions = {0};
    const char *path = run->opts->clean.mask;
    int64_t has_regions =
        path && tess_comm_rank(run->comm) == 0 && kind_of_file(path) == REGIONS_MASK;
    if (!clean_inputs_have_mask(run)) return TESS_OK;
    TESS_TRY(tess_comm_bcast(run->comm, &has_regions, sizeof has_regions, 0));
    if (has_regions) TESS_TRY(tess_mask_regions_read(run->comm, path, &regions));
        /* libraries read files for one thread at a time */
#pragma omp critical(clean_inputs)
    status = make_mask(run, &regions, output, pol, mask);
    TESS_TRY(tess_comm_agree(run->comm, status));
cleanup:
    tess_mask_regions_free(&regions);
    return status;
}

tess_status clean_inputs_beam(const image_run *run, int64_t output, int pol,
                              tess_rows *region)
{
    tess_status status = TESS_OK;
    if (!(run->opts->clean.pb_mask > 0)) return TESS_OK;
    status = open_rows(region);
    if (status == TESS_OK) status = leave_beam(run, output, pol, region);
    return tess_comm_agree(run->comm, status);
}

/* ---- channels that are cleaned ---- */

static tess_channel channel_of(const image_run *run, int64_t channel)
{
    tess_channel out = {.number = channel};
    output_table_band(&run->outputs, run->info, channel, &out.freq_hz, &out.width_hz);
    return out;
}

bool clean_inputs_cleans(const image_run *run, int64_t channel)
{
    return !run->means.cleans || run->means.cleans[channel];
}

/* Notes which channels --channel-mask has. TESS_ERR_USAGE for channels that are not
 * made. Local. */
static tess_status choose_channels(image_run *run)
{
    tess_status status = TESS_OK;
    const int64_t channels = run->opts->channels_out;
    tess_channel_list list;
    bool found[TESS_MAX_CHANNEL_SPANS] = {false};
    char text[128];
    if (!run->opts->clean.channel_mask) return TESS_OK;
    TESS_TRY(tess_parse_channels(run->opts->clean.channel_mask, &list));
    run->means.cleans = tess_alloc(channels, sizeof *run->means.cleans);
    if (!run->means.cleans) TESS_FAIL(TESS_ERR_ALLOC, "channels that are cleaned");
    for (int64_t c = 0; c < channels; ++c) {
        const tess_channel channel = channel_of(run, c);
        run->means.cleans[c] = tess_channels_have(&list, &channel, found);
    }
    for (int k = 0; k < list.num; ++k) {
        if (found[k]) continue;
        tess_channel_span_text(&list.span[k], text, sizeof text);
        TESS_FAIL(TESS_ERR_USAGE,
                  "--channel-mask: the %lld output channels, from 0, have no %s",
                  (long long)channels, text);
    }
cleanup:
    return status;
}

/* ---- models ---- */

/* Files are opened when they are needed for the first time. Local. */
static tess_status read_model(image_run *run, int64_t interval, int64_t channel,
                              int pol, tess_rows *rows)
{
    tess_status status = TESS_OK;
    if (!run->means.continued)
        TESS_TRY(continued_models_create(run, &run->means.continued));
    TESS_TRY(
        continued_models_read(run, run->means.continued, interval, channel, pol, rows));
cleanup:
    return status;
}

tess_status clean_inputs_model(image_run *run, tess_comm *comm, int64_t interval,
                               int64_t channel, int pol, tess_rows *rows)
{
    tess_status status;
#pragma omp critical(clean_inputs)
    status = read_model(run, interval, channel, pol, rows);
    return tess_comm_agree(comm, status);
}

/* ---- before data are read ---- */

/* Whether regions have a pixel of the image, whatever their channels. Local. */
static tess_status find_drawn(const image_run *run, const tess_mask_regions *regions,
                              bool *is_set)
{
    tess_status status = TESS_OK;
    const int64_t nx = run->opts->nx, ny = run->opts->ny;
    tess_rows rows = tess_rows_of(nx, ny, 0, ROWS_AT_ONCE, TESS_PIXEL_MASK);
    TESS_TRY(tess_rows_alloc(&rows));
    for (; rows.row_first < ny && !*is_set; rows.row_first += ROWS_AT_ONCE) {
        if (rows.row_first + ROWS_AT_ONCE > ny) rows.num_rows = ny - rows.row_first;
        TESS_TRY(mask_shapes_draw(run, regions, MASK_ANY_CHANNEL, &rows));
        for (int64_t k = 0; k < tess_rows_count(&rows) && !*is_set; ++k)
            *is_set = tess_rows_pixel(&rows, k) != 0;
    }
cleanup:
    tess_rows_free(&rows);
    return status;
}

/* Local. */
static tess_status check_regions(const image_run *run, const char *path)
{
    tess_status status = TESS_OK;
    bool is_set = false;
    tess_comm *alone = NULL;
    tess_mask_regions regions = {0};
    TESS_TRY(tess_comm_self(&alone));
    TESS_TRY(tess_mask_regions_read(alone, path, &regions));
    TESS_TRY(mask_shapes_check(run, &regions, path));
    TESS_TRY(find_drawn(run, &regions, &is_set));
    if (!is_set)
        TESS_FAIL(TESS_ERR_INPUT, "%s: no region has a pixel of the image", path);
cleanup:
    tess_mask_regions_free(&regions);
    tess_comm_free(alone);
    return status;
}

static tess_status check_all(image_run *run)
{
    tess_status status = TESS_OK;
    const tess_clean_choice *choice = &run->opts->clean;
    mask_file mask = {0};
    if (kind_of(choice) == REGIONS_MASK) {
        TESS_TRY(check_regions(run, choice->mask));
    } else if (has_mask(run)) {
        TESS_TRY(open_mask(run, true, &mask));
        TESS_TRY(check_set(&mask));
    }
    if (!choice->continues && !choice->only_model) goto cleanup;
    TESS_TRY(continued_models_check(run, run->means.continued));
cleanup:
    close_mask(&mask);
    return status;
}

tess_status clean_inputs_check(image_run *run)
{
    const bool first = tess_comm_rank(run->comm) == 0;
    const tess_clean_choice *choice = &run->opts->clean;
    tess_status status = choose_channels(run);
    if (status == TESS_OK && (choice->continues || choice->only_model))
        status = continued_models_create(run, &run->means.continued);
    if (status == TESS_OK && first) status = check_all(run);
    return tess_comm_agree(run->comm, status);
}

/* Local. */
static tess_status check_beam(const image_run *run)
{
    tess_status status = TESS_OK;
    const double level = run->opts->clean.pb_mask;
    double largest = 0;
    for (int64_t c = 0; c < run->outputs.num_channels && !(largest > level); ++c)
        if (clean_inputs_cleans(run, c))
            TESS_TRY(image_primary_beam_largest(run, c, level, &largest));
    if (!(largest > level))
        TESS_FAIL(TESS_ERR_INPUT,
                  "--pb-mask %g leaves nothing to clean: the primary beam is at most "
                  "%.3g in these images",
                  level, largest);
cleanup:
    return status;
}

tess_status clean_inputs_check_beam(const image_run *run)
{
    const bool looks = run->opts->clean.pb_mask > 0 && tess_comm_rank(run->comm) == 0;
    return tess_comm_agree(run->comm, looks ? check_beam(run) : TESS_OK);
}

void clean_inputs_free(image_run *run)
{
    continued_models_free(run->means.continued);
    run->means.continued = NULL;
    tess_free(run->means.cleans);
    run->means.cleans = NULL;
}

/* ---- the mask of the horizon, as a file ---- */

/* Makes this rank's rows. Collective over the run's ranks. */
static tess_status make_rows(const image_run *run, tess_fits_rows *rows, tess_rows *out)
{
    tess_status status = TESS_OK;
    tess_rows mask = tess_rows_of(run->opts->nx, run->opts->ny, rows->row_first,
                                  rows->num_rows, TESS_PIXEL_MASK);
    TESS_TRY(clean_inputs_mask(run, 0, 0, &mask));
    TESS_TRY(tess_rows_view_as(&mask, TESS_PIXEL_SINGLE, 1, out));
    rows->pixel = out->value;
cleanup:
    tess_rows_free(&mask);
    return status;
}

tess_status horizon_mask_write(const image_run *run)
{
    tess_status status = TESS_OK;
    tess_comm *all = run->teams.all;
    const int64_t ny = run->opts->ny, rank = tess_comm_rank(all),
                  size = tess_comm_size(all), first = ny * rank / size;
    const imager_extent none = imager_extent_empty();
    tess_fits_rows rows = {.row_first = first,
                           .num_rows = ny * (rank + 1) / size - first};
    tess_image_meta meta;
    tess_rows value = {0};
    char *path = NULL;
    if (!image_has_horizon_mask(run->opts)) return TESS_OK;
    TESS_TRY(tess_comm_agree(all, make_rows(run, &rows, &value)));
    path = image_horizon_name(run->opts);
    TESS_TRY(tess_comm_agree(all, path ? TESS_OK : TESS_ERR_ALLOC));
    image_meta_fill(&run->means, 0, -1, &none, &meta);
    meta.gridded = (tess_fits_gridded){0};
    meta.stokes = run->pol[0].code;
    TESS_TRY(tess_fits_write(all, path, run->opts->overwrite, &meta, &rows));
    if (rank == 0) tess_log_detail("wrote %s", path);
cleanup:
    free(path); /* from asprintf */
    tess_rows_free(&value);
    return status;
}
