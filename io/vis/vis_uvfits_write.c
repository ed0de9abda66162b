/* Writes UVFITS: a new file, or a copy of one with other visibilities. Rank 0 makes the
 * file; then every rank writes its own rows at their offsets. */
#define _GNU_SOURCE
#include "vis_uvfits.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fits_header.h"
#include "mapped_file.h"
#include "tess_const.h"
#include "tess_fits.h"
#include "tess_input.h"
#include "tess_mem.h"
#include "tess_out_file.h"

/* So many bytes are encoded, or copied, at a time. */
enum { CHUNK_BYTES = 4 << 20 };

/* The kernel lets one thread at a time write to a file on a disk. A second one is there
 * when it is done; more of them only wait, which takes processor time. */
enum { FILE_WRITERS = 2 };

typedef struct uvfits_output {
    char path[UVFITS_MAX_PATH], temporary[TESS_OUT_FILE_NAME];
    bool overwrite;
    int fd;
    mapped_file *map;     /* of a copy by rows that lies in memory, or NULL */
    bool is_maker;        /* the rank that made the temporary file */
    uvfits_state *source; /* of a copy; NULL for a new file */
    tess_vis_segment
        *shape;       /* of a copy: [num_segments] rows, channels, correlations */
    uvfits_plan plan; /* of a new file */
    char *header;     /* on the maker */
    int64_t header_bytes;
    int64_t data_offset;
    int64_t shift; /* bytes by which the header of a copy is longer */
    int num_antennas;
    unsigned char *buffer;
    int64_t buffer_bytes;
} uvfits_output;

/* ---- making the file ---- */

/* Makes lines for HISTORY. `*lines` (tess_free) stays NULL without an origin. */
static tess_status history_lines(const char *path, const tess_vis_origin *origin,
                                 char **lines)
{
    tess_status status = TESS_OK;
    char *text = NULL;
    if (!origin) return TESS_OK;
    const char *command = origin->command_line ? origin->command_line : "";
    const char *message = origin->message ? origin->message : "";
    if (asprintf(&text, "%s%s%s", command, *command && *message ? "\n" : "", message) <
        0) {
        text = NULL;
        TESS_FAIL(TESS_ERR_ALLOC, "not enough memory to write %s", path);
    }
    *lines = tess_strdup(text);
    if (!*lines) TESS_FAIL(TESS_ERR_ALLOC, "not enough memory to write %s", path);
cleanup:
    free(text); /* from asprintf */
    return status;
}

/* Puts HISTORY into a header of `bytes`: output->header. */
static tess_status extend_header(uvfits_output *output, const char *header,
                                 int64_t bytes, const tess_vis_origin *origin)
{
    tess_status status = TESS_OK;
    char *lines = NULL;
    TESS_TRY(history_lines(output->path, origin, &lines));
    TESS_TRY(tess_fits_header_extend(output->path, header, bytes, lines,
                                     &output->header, &output->header_bytes));
cleanup:
    tess_free(lines);
    return status;
}

static tess_status make_new(uvfits_output *output, const tess_vis_meta *meta,
                            const tess_vis_origin *origin)
{
    tess_status status = TESS_OK;
    void *bytes = NULL;
    int64_t header_bytes = 0, total_bytes = 0, shift = 0;
    const uvfits_plan *plan = &output->plan;
    const char *path = output->path;
    TESS_TRY(uvfits_make(path, meta, plan, &bytes, &header_bytes, &total_bytes));
    const char *header = bytes;
    if (origin) {
        TESS_TRY(extend_header(output, bytes, header_bytes, origin));
        header = output->header;
        shift = output->header_bytes - header_bytes;
    }
    const int64_t data_bytes = plan->num_rows * plan->group_bytes;
    /* the data unit is filled up to whole blocks with the zeros of the reserved space
     */
    const int64_t blocks = (data_bytes + 2879) / 2880;
    output->data_offset = header_bytes + shift;
    TESS_TRY(
        tess_out_file_reserve(output->fd, path, total_bytes + shift + 2880 * blocks));
    TESS_TRY(tess_out_file_write(output->fd, path, header, output->data_offset, 0));
    TESS_TRY(tess_out_file_write(output->fd, path, (char *)bytes + header_bytes,
                                 total_bytes - header_bytes,
                                 output->data_offset + 2880 * blocks));
cleanup:
    free(bytes);
    return status;
}

/* Writes the header of a copy, and makes room for the rest. */
static tess_status begin_copy(uvfits_output *output, const tess_vis_origin *origin,
                              bool by_rows)
{
    tess_status status = TESS_OK;
    const uvfits_state *source = output->source;
    const int64_t header_bytes = source->layout.data_offset;
    char *header = tess_alloc(header_bytes, 1);
    if (!header)
        TESS_FAIL(TESS_ERR_ALLOC, "not enough memory to copy %s", source->path);
    TESS_TRY(tess_input_read(source->fd, source->path, header, header_bytes, 0));
    if (origin) {
        TESS_TRY(extend_header(output, header, header_bytes, origin));
        output->shift = output->header_bytes - header_bytes;
    }
    const int64_t bytes = source->layout.file_bytes + output->shift;
    if (by_rows)
        TESS_TRY(mapped_file_create(output->fd, output->path, bytes, &output->map));
    if (!output->map) TESS_TRY(tess_out_file_reserve(output->fd, output->path, bytes));
    TESS_TRY(tess_out_file_write(output->fd, output->path,
                                 origin ? output->header : header,
                                 header_bytes + output->shift, 0));
cleanup:
    tess_free(header);
    return status;
}

/* Rank 0 checks the target, creates the file and, for a new set, writes all but its
 * rows. */
static tess_status make_file(uvfits_output *output, const tess_vis_meta *meta,
                             const tess_vis_writer *writer)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_out_file_begin(output->path, output->overwrite, output->temporary,
                                 &output->fd));
    if (output->source)
        TESS_TRY(begin_copy(output, writer->origin, writer->by_rows));
    else
        TESS_TRY(make_new(output, meta, writer->origin));
cleanup:
    return status;
}

/* The other ranks open what rank 0 has made. */
static tess_status join_file(uvfits_output *output)
{
    tess_status status = TESS_OK;
    output->fd = open(output->temporary, O_RDWR | O_CLOEXEC);
    if (output->fd < 0)
        TESS_FAIL(TESS_ERR_IO,
                  "%s: the file made by rank 0 cannot be opened here: %s; write to a "
                  "folder that all nodes share",
                  output->path, strerror(errno));
cleanup:
    return status;
}

/* Copies the bytes [first, end) of the source, behind its header, inside the kernel if
 * that is possible. */
static tess_status copy_range(const uvfits_output *output, int64_t first, int64_t end)
{
    tess_status status = TESS_OK;
    const uvfits_state *source = output->source;
    unsigned char *buffer = NULL;
    off_t from = first, to = first + output->shift;
    while (from < end) {
        const ssize_t done = copy_file_range(source->fd, &from, output->fd, &to,
                                             (size_t)(end - from), 0);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) break; /* across file systems, old kernels, and true errors */
    }
    if (from < end) {
        buffer = tess_alloc(CHUNK_BYTES, 1);
        if (!buffer)
            TESS_FAIL(TESS_ERR_ALLOC, "not enough memory to copy %s", source->path);
    }
    while (from < end) {
        const int64_t count = end - from < CHUNK_BYTES ? end - from : CHUNK_BYTES;
        TESS_TRY(tess_input_read(source->fd, source->path, buffer, count, from));
        TESS_TRY(tess_out_file_write(output->fd, output->path, buffer, count,
                                     from + output->shift));
        from += count;
    }
cleanup:
    tess_free(buffer);
    return status;
}

/* Copies all that is behind the groups. */
static tess_status copy_frame(tess_comm *comm, const uvfits_output *output)
{
    const uvfits_layout *layout = &output->source->layout;
    const int64_t end = layout->data_offset + layout->num_groups * layout->group_bytes;
    if (tess_comm_rank(comm) > 0) return TESS_OK;
    return copy_range(output, end, layout->file_bytes);
}

static tess_status copy_share(tess_comm *comm, const uvfits_output *output)
{
    const uvfits_layout *layout = &output->source->layout;
    const int64_t size = tess_comm_size(comm), rank = tess_comm_rank(comm);
    const int64_t bytes = layout->file_bytes - layout->data_offset;
    const int64_t share = (bytes / size / 4096 + 1) * 4096; /* whole pages */
    const int64_t first = share * rank < bytes ? share * rank : bytes;
    const int64_t end = bytes - first < share ? bytes : first + share;
    return copy_range(output, layout->data_offset + first, layout->data_offset + end);
}

/* Row counts and channel counts outlive the reader. */
static tess_status keep_shape(uvfits_output *output, const tess_vis_meta *meta)
{
    tess_status status = TESS_OK;
    output->shape = tess_alloc_zero(meta->num_segments, sizeof *output->shape);
    if (!output->shape)
        TESS_FAIL(TESS_ERR_ALLOC, "not enough memory to write %s", output->path);
    for (int k = 0; k < meta->num_segments; ++k)
        output->shape[k] = (tess_vis_segment){.num_rows = meta->segment[k].num_rows,
                                              .num_chan = meta->segment[k].num_chan,
                                              .num_corr = meta->segment[k].num_corr};
cleanup:
    return status;
}

static tess_status prepare(uvfits_output *output, const tess_vis_meta *meta,
                           tess_vis_reader *like)
{
    tess_status status = TESS_OK;
    int64_t row_bytes = 0;
    if (like) {
        output->source = like->state;
        ++output->source->refs;
        row_bytes = output->source->layout.group_bytes;
        TESS_TRY(keep_shape(output, meta));
    } else {
        TESS_TRY(uvfits_plan_new(output->path, meta, &output->plan));
        row_bytes = output->plan.group_bytes;
        output->num_antennas = meta->num_antennas;
    }
    output->buffer_bytes = row_bytes > CHUNK_BYTES ? row_bytes : CHUNK_BYTES;
    output->buffer = tess_alloc(output->buffer_bytes, 1);
    if (!output->buffer)
        TESS_FAIL(TESS_ERR_ALLOC, "not enough memory to write %s", output->path);
cleanup:
    return status;
}

tess_status uvfits_create(tess_comm *comm, const char *path, const tess_vis_meta *meta,
                          tess_vis_reader *like, const char *column, bool overwrite,
                          tess_vis_writer *writer)
{
    (void)column; /* has none */
    tess_status status = TESS_OK;
    uvfits_output *output = tess_alloc_zero(1, sizeof *output);
    writer->state = output;
    if (output) output->fd = -1;
    TESS_TRY(tess_comm_agree(comm, output ? TESS_OK : TESS_ERR_ALLOC));
    output->overwrite = overwrite;
    output->is_maker = tess_comm_rank(comm) == 0;
    if (snprintf(output->path, sizeof output->path, "%s", path) >=
        (int)sizeof output->path)
        status = tess_error_record(TESS_ERR_IO, __FILE__, __LINE__, __func__,
                                   "%.100s...: the path is too long", path);
    if (status == TESS_OK) status = prepare(output, meta, like);
    TESS_TRY(tess_comm_agree(comm, status));
    if (output->is_maker) status = make_file(output, meta, writer);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_bcast(comm, output->temporary, sizeof output->temporary, 0));
    TESS_TRY(
        tess_comm_bcast(comm, &output->data_offset, sizeof output->data_offset, 0));
    TESS_TRY(tess_comm_bcast(comm, &output->shift, sizeof output->shift, 0));
    if (!output->is_maker) status = join_file(output);
    writer->raw_writers = output->map ? 0 : FILE_WRITERS;
    /* whether rows that will be written are all there are */
    const bool rows_follow =
        writer->by_rows && meta->num_segments == 1 && !output->source->rows[0].group;
    if (status == TESS_OK && output->source)
        status = rows_follow ? copy_frame(comm, output) : copy_share(comm, output);
    /* rows of one rank may lie in what another copied */
    TESS_TRY(tess_comm_agree(comm, status));
cleanup:
    return status;
}

/* Writes rows to the file. The disk begins with them at once, so that little is left
 * for the end. */
static tess_status write_rows_at(const uvfits_output *output, const void *rows,
                                 int64_t bytes, int64_t offset)
{
    tess_status status = TESS_OK;
    TESS_TRY(tess_out_file_write(output->fd, output->path, rows, bytes, offset));
    tess_out_file_start(output->fd, offset, bytes);
cleanup:
    return status;
}

/* ---- rows of a new file ---- */

static void put_float(unsigned char **to, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = htobe32(bits);
    memcpy(*to, &bits, sizeof bits);
    *to += sizeof bits;
}

static float stored_uvw_s(double uvw_m)
{
    return (float)(uvw_m / TESS_SPEED_OF_LIGHT_M_S);
}

/* The float goes through memory that the compiler must respect: GCC 12 drops a
 * conversion to float and back when it vectorises several of them. */
double uvfits_stored_uvw(double uvw_m)
{
    const volatile float uvw_s = stored_uvw_s(uvw_m);
    return TESS_SPEED_OF_LIGHT_M_S * (double)uvw_s;
}

/* Numbers the antennas in the order of the file's numbers, from 1. */
static float baseline_number(const uvfits_plan *plan, int32_t antenna1,
                             int32_t antenna2)
{
    const int a = antenna1 + 1, b = antenna2 + 1;
    return (float)(plan->wide_baselines ? 2048 * a + b + 65536 : 256 * a + b);
}

/* The first DATE takes what a float holds exactly, in 1/256 d, the second the rest:
 * times come back to within 10 µs. */
static void put_date(unsigned char **to, const uvfits_plan *plan, double time_mjd_s)
{
    const double days = time_mjd_s / TESS_SECONDS_PER_DAY - (double)plan->zero_mjd;
    const double coarse = floor(days * 256.0 + 0.5) / 256.0;
    put_float(to, (float)coarse);
    put_float(to, (float)(days - coarse));
}

static tess_status encode_row(const uvfits_output *output, const tess_vis_block *block,
                              int64_t row, unsigned char *to)
{
    tess_status status = TESS_OK;
    const uvfits_plan *plan = &output->plan;
    const int num_corr = plan->num_corr;
    const int64_t num_vis = plan->num_chan * num_corr;
    const float *vis = block->vis + 2 * num_vis * row;
    const float *weight = block->weight + num_vis * row;
    const int32_t antenna1 = block->antenna1[row], antenna2 = block->antenna2[row];
    if (antenna1 < 0 || antenna1 >= output->num_antennas || antenna2 < 0 ||
        antenna2 >= output->num_antennas)
        TESS_FAIL(TESS_ERR_INTERNAL, "%s: antennas %d and %d of %d do not exist",
                  output->path, antenna1, antenna2, output->num_antennas);
    for (int k = 0; k < 3; ++k)
        put_float(&to, stored_uvw_s(block->uvw_m[3 * row + k]));
    put_float(&to, baseline_number(plan, antenna1, antenna2));
    put_date(&to, plan, block->time_mjd_s[row]);
    put_float(&to, (float)block->integration_s[row]);
    for (int64_t chan = 0; chan < plan->num_chan; ++chan)
        for (int k = 0; k < num_corr; ++k) {
            const int64_t at = chan * num_corr + plan->corr_at[k];
            put_float(&to, vis[2 * at]);
            put_float(&to, vis[2 * at + 1]);
            put_float(&to, weight[at] == TESS_WEIGHT_FLAGGED ? -1.0f : weight[at]);
        }
cleanup:
    return status;
}

static tess_status write_new(uvfits_output *output, const tess_vis_block *block)
{
    tess_status status = TESS_OK;
    const uvfits_plan *plan = &output->plan;
    if (block->segment != 0 || block->num_chan != plan->num_chan ||
        block->num_corr != plan->num_corr || block->row_first < 0 ||
        block->num_rows > plan->num_rows - block->row_first)
        TESS_FAIL(TESS_ERR_INTERNAL, "%s: a block does not fit its description",
                  output->path);
    const int64_t at_once = output->buffer_bytes / plan->group_bytes;
    for (int64_t row = 0; row < block->num_rows; row += at_once) {
        const int64_t left = block->num_rows - row;
        const int64_t count = left < at_once ? left : at_once;
        for (int64_t k = 0; k < count; ++k)
            TESS_TRY(encode_row(output, block, row + k,
                                output->buffer + k * plan->group_bytes));
        const int64_t offset =
            output->data_offset + (block->row_first + row) * plan->group_bytes;
        TESS_TRY(
            write_rows_at(output, output->buffer, count * plan->group_bytes, offset));
    }
cleanup:
    return status;
}

/* ---- rows of a copy ---- */

/* Encodes one value as the source stores it: unscaled, integers rounded and kept in
 * range. */
static void store_value(const uvfits_layout *layout, unsigned char *group,
                        int64_t index, float value)
{
    unsigned char *to = group + index * layout->value_bytes;
    if (layout->bitpix == -32 && layout->bscale == 1 && layout->bzero == 0) {
        put_float(&to, value);
        return;
    }
    const double raw = ((double)value - layout->bzero) / layout->bscale;
    if (layout->bitpix == -32) {
        put_float(&to, (float)raw);
    } else if (layout->bitpix == -64) {
        uint64_t bits;
        memcpy(&bits, &raw, sizeof bits);
        bits = htobe64(bits);
        memcpy(to, &bits, sizeof bits);
    } else {
        const double limit = layout->bitpix == 16 ? INT16_MAX : INT32_MAX;
        const double bounded = isnan(raw) ? 0 : fmax(-limit, fmin(limit, raw));
        const int64_t whole = lrint(bounded);
        if (layout->bitpix == 16) {
            const uint16_t bits = htobe16((uint16_t)whole);
            memcpy(to, &bits, sizeof bits);
        } else {
            const uint32_t bits = htobe32((uint32_t)whole);
            memcpy(to, &bits, sizeof bits);
        }
    }
}

static void replace_row(const uvfits_output *output, const tess_vis_block *block,
                        int64_t row, unsigned char *group)
{
    const uvfits_layout *layout = &output->source->layout;
    const uvfits_rows *rows = &output->source->rows[block->segment];
    const float *vis = block->vis + 2 * block->num_chan * block->num_corr * row;
    for (int64_t chan = 0; chan < block->num_chan; ++chan)
        for (int corr = 0; corr < block->num_corr; ++corr) {
            const int64_t at = rows->chan_offset[chan] + corr * layout->stokes.stride;
            store_value(layout, group, at, *vis++);
            store_value(layout, group, at + layout->complex.stride, *vis++);
        }
}

static tess_status write_copy(uvfits_output *output, const tess_vis_block *block)
{
    tess_status status = TESS_OK;
    const uvfits_layout *layout = &output->source->layout;
    const int64_t bytes = layout->group_bytes;
    if (block->segment < 0 || block->segment >= output->source->num_segments)
        TESS_FAIL(TESS_ERR_INTERNAL, "%s: has no segment %d", output->path,
                  block->segment);
    const tess_vis_segment *shape = &output->shape[block->segment];
    const uvfits_rows *rows = &output->source->rows[block->segment];
    if (block->num_chan != shape->num_chan || block->num_corr != shape->num_corr ||
        block->row_first < 0 || block->num_rows > shape->num_rows - block->row_first)
        TESS_FAIL(TESS_ERR_INTERNAL, "%s: a block does not fit its description",
                  output->path);
    const int64_t at_once = output->buffer_bytes / bytes;
    for (int64_t row = 0; row < block->num_rows;) {
        const int64_t left = block->num_rows - row;
        int64_t group;
        const int64_t count = uvfits_neighbours(
            rows, block->row_first + row, left < at_once ? left : at_once, &group);
        const int64_t offset = layout->data_offset + output->shift + group * bytes;
        TESS_TRY(tess_input_read(output->fd, output->path, output->buffer,
                                 count * bytes, offset));
        for (int64_t k = 0; k < count; ++k)
            replace_row(output, block, row + k, output->buffer + k * bytes);
        TESS_TRY(write_rows_at(output, output->buffer, count * bytes, offset));
        row += count;
    }
cleanup:
    return status;
}

tess_status uvfits_write(tess_vis_writer *writer, const tess_vis_block *block)
{
    tess_status status = TESS_OK;
    uvfits_output *output = writer->state;
    if (block->num_rows > 0)
        status = output->source ? write_copy(output, block) : write_new(output, block);
    return tess_comm_agree(writer->comm, status);
}

tess_status uvfits_write_raw(tess_vis_writer *writer, int segment, int64_t row_first,
                             int64_t num_rows, const void *from)
{
    tess_status status = TESS_OK;
    const uvfits_output *output = writer->state;
    const uvfits_rows *rows = &output->source->rows[segment];
    const uvfits_layout *layout = &output->source->layout;
    const int64_t bytes = layout->group_bytes;
    for (int64_t row = 0, count, group; row < num_rows; row += count) {
        count = uvfits_neighbours(rows, row_first + row, num_rows - row, &group);
        const char *data = (const char *)from + row * bytes;
        const int64_t offset = layout->data_offset + output->shift + group * bytes;
        if (output->map)
            TESS_TRY(mapped_file_write(output->map, data, count * bytes, offset));
        else
            TESS_TRY(write_rows_at(output, data, count * bytes, offset));
    }
cleanup:
    return status;
}

/* ---- the end ---- */

/* A full disk may show only now. */
static tess_status flush(uvfits_output *output)
{
    tess_status status = TESS_OK;
    if (output->map) TESS_TRY(mapped_file_finish(output->map));
    mapped_file_destroy(output->map);
    output->map = NULL;
    const int synced = tess_out_file_sync(output->fd), sync_error = errno;
    const int closed = close(output->fd), close_error = errno;
    output->fd = -1;
    if (synced != 0 || closed != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be written: %s", output->path,
                  strerror(synced != 0 ? sync_error : close_error));
cleanup:
    return status;
}

tess_status uvfits_finish(tess_vis_writer *writer)
{
    tess_status status = TESS_OK;
    uvfits_output *output = writer->state;
    TESS_TRY(tess_comm_agree(writer->comm, flush(output)));
    /* for good: the set is all that its run makes. A signal still ends the rank that
     * names it while it waits for the others. */
    if (!output->is_maker) tess_out_hold_signals();
    TESS_TRY(tess_comm_agree(writer->comm, TESS_OK));
    tess_out_hold_signals();
    if (output->is_maker)
        status =
            tess_out_file_publish(output->temporary, output->path, output->overwrite);
    TESS_TRY(tess_comm_agree(writer->comm, status));
cleanup:
    if (status != TESS_OK) tess_out_release_signals();
    return status;
}

void uvfits_destroy(tess_vis_writer *writer)
{
    uvfits_output *output = writer->state;
    writer->state = NULL;
    if (!output) return;
    mapped_file_destroy(output->map);
    if (output->fd >= 0) close(output->fd);
    if (output->is_maker && !writer->finished) tess_out_file_discard(output->temporary);
    uvfits_release(output->source);
    tess_free(output->header);
    tess_free(output->shape);
    tess_free(output->buffer);
    tess_free(output);
}
