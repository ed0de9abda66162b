/* Reads UVFITS: opens files, and decodes blocks of groups. */
#define _GNU_SOURCE
#include "vis_uvfits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fits_guard.h"
#include "tess_const.h"
#include "tess_decode.h"
#include "tess_input.h"
#include "tess_isa.h"
#include "tess_mem.h"

/* Bytes that a thread reads at a time: long enough for a disk, short enough for L2. */
enum { CHUNK_BYTES = 2 << 20 };

static tess_status open_file(uvfits_state *state, const char *path)
{
    tess_status status = TESS_OK;
    struct stat info;
    char start[10] = "";
    snprintf(state->path, sizeof state->path, "%s", path);
    /* without waiting for who writes to a named pipe */
    state->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (state->fd < 0) TESS_TRY(tess_input_check_limit(path));
    if (state->fd < 0 || fstat(state->fd, &info) != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        TESS_FAIL(TESS_ERR_INPUT, "%s: is not a regular file", path);
    state->layout.file_bytes = info.st_size;
    if (info.st_size >= (off_t)sizeof start)
        TESS_TRY(tess_input_read(state->fd, path, start, sizeof start, 0));
    const char *unpacker = tess_input_unpacker(start, sizeof start);
    if (unpacker)
        TESS_FAIL(TESS_ERR_INPUT, "%s: is compressed; run %s on it", path, unpacker);
    if (strncmp(start, "SIMPLE  = ", sizeof start) != 0)
        TESS_FAIL(TESS_ERR_INPUT, "%s: is not a FITS file", path);
cleanup:
    return status;
}

static tess_status open_uvfits(const char *path, const tess_vis_select *select,
                               tess_vis_reader *reader)
{
    tess_status status = TESS_OK;
    fitsfile *fits = NULL;
    int failed = 0;
    uvfits_state *state = tess_alloc_zero(1, sizeof *state);
    if (!state) TESS_FAIL(TESS_ERR_ALLOC, "not enough memory to open %s", path);
    state->refs = 1;
    state->fd = -1;
    state->decode = decode_table_best();
    reader->state = state;
    snprintf(reader->meta.path, sizeof reader->meta.path, "%s", path);
    TESS_TRY(open_file(state, path));
    TESS_TRY(fits_guard_open(state->fd, state->layout.file_bytes, path, &fits));
    TESS_TRY(uvfits_read_header(fits, state, &reader->meta));
    TESS_TRY(uvfits_read_tables(fits, state, &reader->meta));
    TESS_TRY(uvfits_scan(state, select, &reader->meta));
    uvfits_place_fields(state, &reader->meta);
cleanup:
    failed = 0;
    if (fits) fits_close_file(fits, &failed);
    fits_clear_errmsg();
    return status;
}

static void close_uvfits(tess_vis_reader *reader)
{
    uvfits_release(reader->state);
    reader->state = NULL;
}

/* ---- decoding ---- */

const decode_table *decode_table_best(void)
{
    static const decode_table *const table[TESS_NUM_ISA] =
        TESS_ISA_TABLES(decode_table);
    return table[tess_isa_best()];
}

static double data_value(const uvfits_layout *layout, const unsigned char *group,
                         int64_t index)
{
    const double raw = uvfits_value(group, index, layout->bitpix);
    if (layout->has_blank && raw == (double)layout->blank) return NAN;
    return raw * layout->bscale + layout->bzero;
}

static void decode_any(const uvfits_layout *layout, const uvfits_rows *rows,
                       const unsigned char *group, int64_t num_chan, int num_corr,
                       float *vis, float *weight)
{
    for (int64_t chan = 0; chan < num_chan; ++chan)
        for (int corr = 0; corr < num_corr; ++corr) {
            const int64_t at = rows->chan_offset[chan] + corr * layout->stokes.stride;
            const int64_t step = layout->complex.stride;
            double value = 1.0;
            *vis++ = (float)data_value(layout, group, at);
            *vis++ = (float)data_value(layout, group, at + step);
            if (layout->complex.length > 2)
                value = data_value(layout, group, at + 2 * step);
            *weight++ = value <= 0 ? TESS_WEIGHT_FLAGGED : (float)value;
        }
}

/* Reads the antennas of a row. TESS_ERR_INPUT: no table has them. */
static tess_status decode_antennas(const uvfits_state *state,
                                   const unsigned char *group, tess_vis_block *block,
                                   int64_t row)
{
    tess_status status = TESS_OK;
    int64_t number1, number2, subarray;
    uvfits_group_antennas(&state->layout, group, &number1, &number2, &subarray);
    block->antenna1[row] = uvfits_antenna_index(state, subarray, number1);
    block->antenna2[row] = uvfits_antenna_index(state, subarray, number2);
    if (block->antenna1[row] < 0 || block->antenna2[row] < 0)
        TESS_FAIL(TESS_ERR_INPUT,
                  "%s: baseline %lld-%lld of subarray %lld has an antenna that is not "
                  "in its AN table",
                  state->path, (long long)number1, (long long)number2,
                  (long long)subarray);
cleanup:
    return status;
}

static tess_status decode_row(const uvfits_state *state, const uvfits_rows *rows,
                              const unsigned char *group, tess_vis_block *block,
                              int64_t row)
{
    tess_status status = TESS_OK;
    const uvfits_layout *layout = &state->layout;
    const int64_t num_vis = block->num_chan * block->num_corr;
    float *vis = block->vis + 2 * num_vis * row,
          *weight = block->weight + num_vis * row;
    double *uvw_m = block->uvw_m + 3 * row;
    uvw_m[0] =
        TESS_SPEED_OF_LIGHT_M_S * uvfits_param_value(layout, &layout->param.uu, group);
    uvw_m[1] =
        TESS_SPEED_OF_LIGHT_M_S * uvfits_param_value(layout, &layout->param.vv, group);
    uvw_m[2] =
        TESS_SPEED_OF_LIGHT_M_S * uvfits_param_value(layout, &layout->param.ww, group);
    block->time_mjd_s[row] = uvfits_group_time(state, group);
    const double integration_s =
        uvfits_param_value(layout, &layout->param.inttim, group);
    block->integration_s[row] =
        integration_s > 0 && integration_s < 1e5 ? integration_s : state->integration_s;
    TESS_TRY(decode_antennas(state, group, block, row));
    if (rows->num_runs == 0)
        decode_any(layout, rows, group, block->num_chan, block->num_corr, vis, weight);
    /* the usual case: single precision, nothing scaled, a weight beside each value */
    for (int64_t k = 0; k < rows->num_runs; ++k) {
        const uvfits_run *run = &rows->run[k];
        state->decode->triples(group + 4 * run->offset, run->count,
                               vis + 2 * run->first, weight + run->first);
    }
cleanup:
    return status;
}

/* Reads the rows [first, end) of the block through a buffer that holds as many groups.
 */
static tess_status read_chunk(const uvfits_state *state, const uvfits_rows *rows,
                              int64_t first, int64_t end, unsigned char *buffer,
                              tess_vis_block *block)
{
    tess_status status = TESS_OK;
    const uvfits_layout *layout = &state->layout;
    const int64_t bytes = layout->group_bytes;
    for (int64_t row = first; row < end;) {
        int64_t group;
        const int64_t count =
            uvfits_neighbours(rows, block->row_first + row, end - row, &group);
        TESS_TRY(tess_input_read(state->fd, state->path, buffer, count * bytes,
                                 layout->data_offset + group * bytes));
        for (int64_t k = 0; k < count; ++k)
            TESS_TRY(decode_row(state, rows, buffer + k * bytes, block, row + k));
        row += count;
    }
cleanup:
    return status;
}

static tess_status read_uvfits(tess_vis_reader *reader, int segment, int64_t row_first,
                               int64_t num_rows, int num_threads, tess_vis_block *block)
{
    (void)row_first; /* in the block already */
    const uvfits_state *state = reader->state;
    const uvfits_rows *rows = &state->rows[segment];
    const int64_t bytes = state->layout.group_bytes;
    int64_t chunk = (num_rows + num_threads - 1) / num_threads;
    if (chunk > CHUNK_BYTES / bytes) chunk = CHUNK_BYTES / bytes;
    if (chunk < 1) chunk = 1;
    tess_status status = TESS_OK;
#pragma omp parallel num_threads(num_threads)
    {
        unsigned char *buffer = tess_alloc(chunk, (size_t)bytes);
        tess_status mine = TESS_OK;
        if (!buffer)
            mine = tess_error_record(TESS_ERR_ALLOC, __FILE__, __LINE__, __func__,
                                     "not enough memory to read %s", state->path);
#pragma omp for schedule(dynamic)
        for (int64_t first = 0; first < num_rows; first += chunk) {
            const int64_t end = first + chunk < num_rows ? first + chunk : num_rows;
            if (mine == TESS_OK)
                mine = read_chunk(state, rows, first, end, buffer, block);
        }
        if (mine != TESS_OK) {
#pragma omp critical(uvfits_read)
            status = mine;
        }
        tess_free(buffer);
    }
    return status;
}

/* ---- rows as they are ---- */

static bool raw_rows_of(const tess_vis_reader *reader, int segment, tess_vis_raw *raw)
{
    const uvfits_state *state = reader->state;
    const uvfits_layout *layout = &state->layout;
    if (state->rows[segment].num_runs == 0) return false;
    *raw = (tess_vis_raw){.row_bytes = layout->group_bytes,
                          .u_s = layout->param.uu,
                          .v_s = layout->param.vv,
                          .w_s = layout->param.ww,
                          .baseline = layout->param.baseline,
                          .antenna1 = layout->param.antenna1,
                          .antenna2 = layout->param.antenna2,
                          .subarray = layout->param.subarray,
                          .date = uvfits_mjd_of(layout),
                          .utc_offset_s = state->utc_offset_s,
                          .chan_offset = state->rows[segment].chan_offset,
                          .num_subarrays = state->num_subarrays,
                          .subarrays = state->subarray};
    return true;
}

static tess_status read_raw(const tess_vis_reader *reader, int segment,
                            int64_t row_first, int64_t num_rows, void *to)
{
    tess_status status = TESS_OK;
    const uvfits_state *state = reader->state;
    const uvfits_rows *rows = &state->rows[segment];
    const int64_t bytes = state->layout.group_bytes;
    for (int64_t row = 0, count, group; row < num_rows; row += count) {
        count = uvfits_neighbours(rows, row_first + row, num_rows - row, &group);
        TESS_TRY(tess_input_read(state->fd, state->path, (char *)to + row * bytes,
                                 count * bytes,
                                 state->layout.data_offset + group * bytes));
    }
cleanup:
    return status;
}

/* ---- the table ---- */

/* Takes every file for UVFITS. The function that opens it tells why it is not. */
static bool is_file(const char *path, const struct stat *info)
{
    (void)path;
    return !S_ISDIR(info->st_mode);
}

const tess_vis_format tess_vis_format_uvfits = {
    .name = "UVFITS",
    .sign = "a file",
    .copies = true,
    .recognise = is_file,
    .open = open_uvfits,
    .read = read_uvfits,
    .raw_rows = raw_rows_of,
    .read_raw = read_raw,
    .close = close_uvfits,
    .create = uvfits_create,
    .write = uvfits_write,
    .write_raw = uvfits_write_raw,
    .finish = uvfits_finish,
    .destroy = uvfits_destroy,
    .order_corr = uvfits_order_corr,
    .stored_uvw = uvfits_stored_uvw,
};
