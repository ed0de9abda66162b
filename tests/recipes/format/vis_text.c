/* Reads visibilities of Stokes I from a text. The first line is
 *
 *     #visibilities RA DEC FREQUENCY
 *
 * with degrees and Hz, and each further line is one visibility:
 *
 *     TIME ANTENNA ANTENNA U V W REAL IMAGINARY WEIGHT
 *
 * with MJD seconds, antennas that are counted from 0, metres and Jy. */
#define _GNU_SOURCE
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tess_const.h"
#include "tess_mem.h"
#include "vis_format.h"

static const char sign[] = "#visibilities";

typedef struct text_row {
    double time_mjd_s, uvw_m[3];
    int antenna[2];
    float vis[2], weight;
} text_row;

typedef struct text_state {
    text_row *row; /* [num] */
    int64_t num, capacity;
} text_state;

static bool recognise(const char *path, const struct stat *info)
{
    char first[sizeof sign] = "";
    FILE *file = S_ISREG(info->st_mode) ? fopen(path, "r") : NULL;
    const bool is_read = file && fgets(first, sizeof first, file);
    if (file) fclose(file);
    return is_read && strcmp(first, sign) == 0;
}

/* Appends the visibility of a line. */
static tess_status add_row(const char *line, text_state *state)
{
    tess_status status = TESS_OK;
    text_row row;
    const int found =
        sscanf(line, "%lf %d %d %lf %lf %lf %f %f %f", &row.time_mjd_s, &row.antenna[0],
               &row.antenna[1], &row.uvw_m[0], &row.uvw_m[1], &row.uvw_m[2],
               &row.vis[0], &row.vis[1], &row.weight);
    if (found != 9 || row.antenna[0] < 0 || row.antenna[1] < 0)
        TESS_FAIL(TESS_ERR_INPUT, "it is not TIME ANTENNA ANTENNA U V W REAL "
                                  "IMAGINARY WEIGHT");
    void *array = state->row;
    if (tess_grow(&array, &state->capacity, state->num + 1, sizeof row))
        TESS_FAIL(TESS_ERR_ALLOC, "visibilities");
    state->row = array;
    state->row[state->num++] = row;
cleanup:
    return status;
}

/* Reads the first line, and all visibilities. */
static tess_status read_text(const char *path, FILE *file, text_state *state,
                             double place[3])
{
    tess_status status = TESS_OK;
    char *line = NULL, why[256];
    size_t bytes = 0;
    if (getline(&line, &bytes, file) < 0 ||
        sscanf(line + strlen(sign), "%lf %lf %lf", &place[0], &place[1], &place[2]) !=
            3 ||
        !(place[2] > 0))
        TESS_FAIL(TESS_ERR_INPUT, "%s: line 1 is not %s RA DEC FREQUENCY", path, sign);
    while (getline(&line, &bytes, file) >= 0)
        if ((status = add_row(line, state)) != TESS_OK) {
            snprintf(why, sizeof why, "%s", tess_error_message());
            tess_error_clear();
            TESS_FAIL(status, "%s: line %lld: %s", path, (long long)state->num + 2,
                      why);
        }
    if (state->num == 0) TESS_FAIL(TESS_ERR_INPUT, "%s: has no visibilities", path);
cleanup:
    free(line); /* from getline */
    return status;
}

/* Describes the one segment and the one field. */
static tess_status describe(const double place[3], tess_vis_meta *meta)
{
    tess_status status = TESS_OK;
    tess_vis_segment *segment = meta->segment = tess_alloc_zero(1, sizeof *segment);
    tess_vis_field *field = meta->field = tess_alloc_zero(1, sizeof *field);
    if (!segment || !field) TESS_FAIL(TESS_ERR_ALLOC, "description of a set");
    meta->num_segments = meta->num_fields = 1;
    segment->freq_hz = tess_alloc_zero(1, sizeof(double));
    segment->chan_width_hz = tess_alloc_zero(1, sizeof(double));
    segment->chan_spw = tess_alloc_zero(1, sizeof(int32_t));
    if (!segment->freq_hz || !segment->chan_width_hz || !segment->chan_spw)
        TESS_FAIL(TESS_ERR_ALLOC, "description of a set");
    segment->num_chan = segment->num_corr = 1;
    segment->corr[0] = tess_corr_parse("I");
    segment->freq_hz[0] = place[2];
    segment->chan_width_hz[0] = 1;
    meta->equinox = 2000;
    meta->ra_rad = field->ra_rad = field->pointing_rad[0] = place[0] * TESS_RAD_PER_DEG;
    meta->dec_rad = field->dec_rad = field->pointing_rad[1] =
        place[1] * TESS_RAD_PER_DEG;
    snprintf(field->frame, sizeof field->frame, "J2000");
    snprintf(field->name, sizeof field->name, "TEXT");
cleanup:
    return status;
}

/* Adds what the rows tell: times, lengths of baselines, and how many antennas. */
static tess_status measure(const text_state *state, tess_vis_meta *meta)
{
    tess_status status = TESS_OK;
    meta->time_start_mjd_s = meta->min_uvw_m = INFINITY;
    for (int64_t k = 0; k < state->num; ++k) {
        const text_row *row = &state->row[k];
        const double *b = row->uvw_m;
        const double length_m = sqrt(b[0] * b[0] + b[1] * b[1] + b[2] * b[2]);
        meta->time_start_mjd_s = fmin(meta->time_start_mjd_s, row->time_mjd_s);
        meta->time_end_mjd_s = fmax(meta->time_end_mjd_s, row->time_mjd_s);
        meta->min_uvw_m = fmin(meta->min_uvw_m, length_m);
        meta->max_uvw_m = fmax(meta->max_uvw_m, length_m);
        for (int a = 0; a < 2; ++a)
            if (row->antenna[a] >= meta->num_antennas)
                meta->num_antennas = row->antenna[a] + 1;
    }
    meta->segment->num_rows = meta->field->num_rows = meta->num_rows_total = state->num;
    meta->antenna = tess_alloc_zero(meta->num_antennas, sizeof *meta->antenna);
    if (!meta->antenna) TESS_FAIL(TESS_ERR_ALLOC, "antennas");
    for (int a = 0; a < meta->num_antennas; ++a)
        snprintf(meta->antenna[a].name, sizeof meta->antenna[a].name, "%d", a);
cleanup:
    return status;
}

static tess_status open_text(const char *path, const tess_vis_select *select,
                             tess_vis_reader *reader)
{
    tess_status status = TESS_OK;
    double place[3];
    FILE *file = NULL;
    text_state *state = reader->state = tess_alloc_zero(1, sizeof *state);
    if (!state) TESS_FAIL(TESS_ERR_ALLOC, "not enough memory to open %s", path);
    if (select->field || select->num_spw > 0 || select->chan_end > 0)
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s: has one field and one channel; leave out "
                  "--field, --spw and --channels",
                  path);
    if (!(file = fopen(path, "r")))
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    snprintf(reader->meta.path, sizeof reader->meta.path, "%s", path);
    TESS_TRY(read_text(path, file, state, place));
    TESS_TRY(describe(place, &reader->meta));
    TESS_TRY(measure(state, &reader->meta));
cleanup:
    if (file) fclose(file);
    return status;
}

static tess_status read_rows(tess_vis_reader *reader, int segment, int64_t row_first,
                             int64_t num_rows, int num_threads, tess_vis_block *block)
{
    const text_row *row = ((const text_state *)reader->state)->row + row_first;
    (void)segment, (void)num_threads;
    for (int64_t k = 0; k < num_rows; ++k) {
        memcpy(block->uvw_m + 3 * k, row[k].uvw_m, sizeof row[k].uvw_m);
        block->time_mjd_s[k] = row[k].time_mjd_s;
        block->integration_s[k] = 0;
        block->antenna1[k] = row[k].antenna[0];
        block->antenna2[k] = row[k].antenna[1];
        memcpy(block->vis + 2 * k, row[k].vis, sizeof row[k].vis);
        block->weight[k] = row[k].weight > 0 ? row[k].weight : TESS_WEIGHT_FLAGGED;
    }
    return TESS_OK;
}

static void close_text(tess_vis_reader *reader)
{
    text_state *state = reader->state;
    tess_free(state->row);
    tess_free(state);
}

/* No text is written. */
static tess_status create(tess_comm *comm, const char *path, const tess_vis_meta *meta,
                          tess_vis_reader *like, const char *column, bool overwrite,
                          tess_vis_writer *writer)
{
    tess_status status = TESS_OK;
    (void)comm, (void)meta, (void)like, (void)column, (void)overwrite, (void)writer;
    TESS_FAIL(TESS_ERR_USAGE, "%s: texts of visibilities are read, and not written",
              path);
cleanup:
    return status;
}

const tess_vis_format tess_vis_format_text = {.name = "text",
                                              .sign = "a text that begins with "
                                                      "#visibilities",
                                              .suffix = ".vis",
                                              .recognise = recognise,
                                              .open = open_text,
                                              .read = read_rows,
                                              .close = close_text,
                                              .create = create};
