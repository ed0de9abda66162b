/* Opens and creates visibility sets: finds the format of a set, and calls its reader or
 * writer. */
#define _GNU_SOURCE
#include "tess_vis.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tess_mem.h"
#include "tess_vis_caller.h"
#include "vis_format.h"

/* ---- blocks ---- */

/* Makes room for what a row has once. TESS_ERR_ALLOC. */
static tess_status grow_rows(tess_vis_block *block, int64_t num_rows)
{
    tess_status status = TESS_OK;
    block->capacity_rows = 0;
    tess_free(block->uvw_m);
    tess_free(block->time_mjd_s);
    tess_free(block->integration_s);
    tess_free(block->antenna1);
    tess_free(block->antenna2);
    block->uvw_m = tess_alloc(num_rows, 3 * sizeof(double));
    block->time_mjd_s = tess_alloc(num_rows, sizeof(double));
    block->integration_s = tess_alloc(num_rows, sizeof(double));
    block->antenna1 = tess_alloc(num_rows, sizeof(int32_t));
    block->antenna2 = tess_alloc(num_rows, sizeof(int32_t));
    if (!block->uvw_m || !block->time_mjd_s || !block->integration_s ||
        !block->antenna1 || !block->antenna2)
        TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for a block of %lld rows",
                  (long long)num_rows);
    block->capacity_rows = num_rows;
cleanup:
    return status;
}

/* Makes room for values and weights of the correlations. TESS_ERR_ALLOC. */
static tess_status grow_vis(tess_vis_block *block, int64_t num_rows, int64_t num_vis)
{
    tess_status status = TESS_OK;
    block->capacity_vis = 0;
    tess_free(block->vis);
    tess_free(block->weight);
    block->vis = tess_alloc(num_vis, 2 * sizeof(float));
    block->weight = tess_alloc(num_vis, sizeof(float));
    if (!block->vis || !block->weight)
        TESS_FAIL(TESS_ERR_ALLOC, "not enough memory for a block of %lld rows",
                  (long long)num_rows);
    block->capacity_vis = num_vis;
cleanup:
    return status;
}

tess_status tess_vis_block_resize(tess_vis_block *block, int64_t num_rows,
                                  int64_t num_chan, int num_corr)
{
    tess_status status = TESS_OK;
    int64_t num_vis = 0;
    if (num_rows < 0 || num_chan < 0 || num_corr < 0 ||
        __builtin_mul_overflow(num_rows, num_chan, &num_vis) ||
        __builtin_mul_overflow(num_vis, num_corr, &num_vis))
        TESS_FAIL(TESS_ERR_ALLOC, "a block of %lld rows is too large",
                  (long long)num_rows);
    if (num_rows > block->capacity_rows || !block->uvw_m)
        TESS_TRY(grow_rows(block, num_rows));
    if (num_vis > block->capacity_vis || !block->vis)
        TESS_TRY(grow_vis(block, num_rows, num_vis));
    block->num_rows = num_rows;
    block->num_chan = num_chan;
    block->num_corr = num_corr;
cleanup:
    return status;
}

void tess_vis_block_free(tess_vis_block *block)
{
    if (!block) return;
    tess_free(block->uvw_m);
    tess_free(block->time_mjd_s);
    tess_free(block->integration_s);
    tess_free(block->antenna1);
    tess_free(block->antenna2);
    tess_free(block->vis);
    tess_free(block->weight);
    *block = (tess_vis_block){0};
}

/* ---- reading ---- */

#define FORMAT(name) &tess_vis_format_##name,
static const tess_vis_format *const formats[] = {TESS_VIS_FORMATS(FORMAT)};
#undef FORMAT

enum { NUM_FORMATS = sizeof formats / sizeof formats[0] };

bool vis_folder_has(const char *path, const struct stat *info, const char *file)
{
    struct stat found;
    char inside[sizeof((tess_vis_meta *)0)->path + 64];
    if (!S_ISDIR(info->st_mode)) return false;
    return snprintf(inside, sizeof inside, "%s/%s", path, file) < (int)sizeof inside &&
           stat(inside, &found) == 0;
}

static tess_status refuse_unknown(const char *path)
{
    tess_status status = TESS_OK;
    char text[256] = "";
    for (int k = 0; k < NUM_FORMATS; ++k) {
        const size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s is %s", k > 0 ? ", " : "",
                 formats[k]->name, formats[k]->sign);
    }
    TESS_FAIL(TESS_ERR_INPUT, "%s: is not a set of visibilities: %s", path, text);
cleanup:
    return status;
}

static tess_status find_format(const char *path, int *which)
{
    tess_status status = TESS_OK;
    struct stat info = {0};
    if (strlen(path) >= sizeof((tess_vis_meta *)0)->path)
        TESS_FAIL(TESS_ERR_IO, "%.200s...: the path is too long", path);
    if (!tess_vis_is_caller(path) && stat(path, &info) != 0)
        TESS_FAIL(TESS_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
    for (int k = 0; k < NUM_FORMATS; ++k)
        if (formats[k]->recognise(path, &info)) {
            *which = k;
            return TESS_OK;
        }
    TESS_TRY(refuse_unknown(path));
cleanup:
    return status;
}

/* State of the process, because all of its sets are treated alike. */
static double lock_timeout_s = TESS_VIS_LOCK_TIMEOUT_S;

void tess_vis_set_lock_timeout(double seconds)
{
    lock_timeout_s = seconds;
}

double vis_lock_timeout_s(void)
{
    return lock_timeout_s;
}

tess_status tess_vis_check(const char *const *paths, int num_paths,
                           const tess_vis_select *select)
{
    tess_status status = TESS_OK;
    int which = 0;
    const char **checked = tess_alloc(num_paths, sizeof *checked);
    if (!checked) TESS_FAIL(TESS_ERR_ALLOC, "list of observations");
    for (int f = 0; f < NUM_FORMATS; ++f) {
        int count = 0;
        for (int k = 0; k < num_paths && formats[f]->check; ++k)
            if (find_format(paths[k], &which) == TESS_OK && which == f)
                checked[count++] = paths[k];
        tess_error_clear(); /* the function that opens the file reports why it cannot
                               be opened */
        if (count > 0) TESS_TRY(formats[f]->check(checked, count, select));
    }
cleanup:
    tess_free(checked);
    return status;
}

/* Refuses an option that names a column of a set that has none. */
static tess_status allow_column(const tess_vis_format *format, const char *path,
                                const char *option, const char *column)
{
    tess_status status = TESS_OK;
    if (column && !format->has_columns)
        TESS_FAIL(TESS_ERR_USAGE, "%s %s: %s is %s, which has no columns", option,
                  column, path, format->name);
cleanup:
    return status;
}

tess_status tess_vis_open(const char *path, const tess_vis_select *select,
                          tess_vis_reader **reader_out)
{
    tess_status status = TESS_OK;
    const tess_vis_select everything = {0};
    int which = 0;
    tess_vis_reader *reader = tess_alloc_zero(1, sizeof *reader);
    if (!reader) TESS_FAIL(TESS_ERR_ALLOC, "not enough memory to open %s", path);
    if (!select) select = &everything;
    TESS_TRY(find_format(path, &which));
    const tess_vis_format *format = reader->format = formats[which];
    TESS_TRY(allow_column(format, path, "--datacolumn", select->data_column));
    TESS_TRY(allow_column(format, path, "--subtract-column", select->subtract_column));
    TESS_TRY(format->open(path, select, reader));
    snprintf(reader->meta.format, sizeof reader->meta.format, "%s", format->name);
    *reader_out = reader;
    reader = NULL;
cleanup:
    tess_vis_close(reader);
    return status;
}

const tess_vis_meta *tess_vis_reader_meta(const tess_vis_reader *reader)
{
    return &reader->meta;
}

bool tess_vis_has_columns(const tess_vis_reader *reader)
{
    return reader->format->has_columns;
}

bool tess_vis_is_copied(const tess_vis_reader *reader)
{
    return reader->format->copies;
}

bool tess_vis_is_without_columns(const char *path)
{
    int which = 0;
    const bool found = find_format(path, &which) == TESS_OK;
    tess_error_clear(); /* the function that opens the set reports what is wrong */
    return found && !formats[which]->has_columns;
}

/* Turns u and v from the North of the file's frame to that of J2000. */
static void turn_uvw(tess_vis_block *block, double north_rad)
{
    const double c = cos(north_rad), s = sin(north_rad);
    for (int64_t row = 0; row < block->num_rows; ++row) {
        double *uvw_m = block->uvw_m + 3 * row;
        const double u_m = uvw_m[0], v_m = uvw_m[1];
        uvw_m[0] = c * u_m + s * v_m;
        uvw_m[1] = c * v_m - s * u_m;
    }
}

/* Returns where v of the file's uvw points to; 0 in the frame of J2000. */
static double north_of(const tess_vis_meta *meta)
{
    return meta->num_fields > 0 ? meta->field[meta->field_selected].north_rad : 0;
}

tess_status tess_vis_read(tess_vis_reader *reader, int segment, int64_t row_first,
                          int64_t num_rows, int num_threads, tess_vis_block *block)
{
    tess_status status = TESS_OK;
    const tess_vis_meta *meta = &reader->meta;
    if (segment < 0 || segment >= meta->num_segments || row_first < 0 || num_rows < 0 ||
        num_rows > meta->segment[segment].num_rows ||
        row_first > meta->segment[segment].num_rows - num_rows)
        TESS_FAIL(TESS_ERR_INTERNAL, "%s: rows %lld + %lld of segment %d do not exist",
                  meta->path, (long long)row_first, (long long)num_rows, segment);
    const tess_vis_segment *table = &meta->segment[segment];
    TESS_TRY(tess_vis_block_resize(block, num_rows, table->num_chan, table->num_corr));
    block->segment = segment;
    block->row_first = row_first;
    if (num_rows > 0)
        TESS_TRY(reader->format->read(reader, segment, row_first, num_rows,
                                      num_threads > 0 ? num_threads : 1, block));
    if (fabs(north_of(meta)) > 0) turn_uvw(block, north_of(meta));
cleanup:
    return status;
}

bool tess_vis_raw_rows(const tess_vis_reader *reader, int segment, tess_vis_raw *raw)
{
    if (fabs(north_of(&reader->meta)) > 0) return false; /* its uvw are to be turned */
    return reader->format->raw_rows && reader->format->raw_rows(reader, segment, raw);
}

tess_status tess_vis_read_raw(const tess_vis_reader *reader, int segment,
                              int64_t row_first, int64_t num_rows, void *to)
{
    return reader->format->read_raw(reader, segment, row_first, num_rows, to);
}

void tess_vis_rest(tess_vis_reader *reader)
{
    if (reader->format->rest) reader->format->rest(reader);
}

void tess_vis_close(tess_vis_reader *reader)
{
    if (!reader) return;
    if (reader->format && reader->state) reader->format->close(reader);
    tess_vis_meta_free(&reader->meta);
    tess_free(reader);
}

/* ---- writing ---- */

static bool has_suffix(const char *path, const char *suffix)
{
    const size_t count = strlen(suffix);
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] == '/')
        --length;
    return length >= count && strncasecmp(path + length - count, suffix, count) == 0;
}

/* Whether a new set of this format may have this name. */
static bool suits(const tess_vis_format *format, const char *path)
{
    if (format->suffix) return has_suffix(path, format->suffix);
    for (int k = 0; k < NUM_FORMATS; ++k)
        if (formats[k]->suffix && has_suffix(path, formats[k]->suffix)) return false;
    return true;
}

/* Finds the format of a new set. There is a format without a suffix, and any other name
 * suits it. */
static const tess_vis_format *format_for(const char *path)
{
    int k = 0;
    while (!suits(formats[k], path))
        ++k;
    return formats[k];
}

void tess_vis_order_corr(const char *path, tess_vis_segment *segment)
{
    const tess_vis_format *format = format_for(path);
    if (format->order_corr) format->order_corr(segment->num_corr, segment->corr);
}

/* What is to be written. */
typedef struct writing {
    const tess_vis_format *format;
    const char *path;
    const tess_vis_meta *meta;
    tess_vis_reader *like;
    const char *const *column; /* [num_columns] */
    int num_columns;
    const tess_vis_origin *origin;
    bool overwrite, by_rows, of_weights;
} writing;

static tess_status begin(tess_comm *comm, const writing *what,
                         tess_vis_writer **writer_out)
{
    tess_status status = TESS_OK;
    tess_vis_writer *writer = tess_alloc_zero(1, sizeof *writer);
    TESS_TRY(tess_comm_agree(comm, writer ? TESS_OK : TESS_ERR_ALLOC));
    writer->format = what->format;
    writer->comm = comm;
    writer->by_rows = what->by_rows;
    writer->of_weights = what->of_weights;
    writer->origin = what->origin;
    if (what->num_columns > 1) {
        writer->more_columns = what->column + 1;
        writer->num_more = what->num_columns - 1;
    }
    TESS_TRY(what->format->create(comm, what->path, what->meta, what->like,
                                  what->num_columns > 0 ? what->column[0] : NULL,
                                  what->overwrite, writer));
    writer->more_columns = NULL;
    *writer_out = writer;
    writer = NULL;
cleanup:
    tess_vis_writer_destroy(writer);
    return status;
}

tess_status tess_vis_create(tess_comm *comm, const char *path,
                            const tess_vis_meta *meta, bool overwrite,
                            tess_vis_writer **writer)
{
    tess_status status = TESS_OK;
    const writing what = {
        .format = format_for(path), .path = path, .meta = meta, .overwrite = overwrite};
    if (meta->num_segments != 1)
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s: a new set holds one spectral window, not %d; choose with --spw",
                  path, meta->num_segments);
    TESS_TRY(begin(comm, &what, writer));
cleanup:
    return status;
}

tess_status tess_vis_create_like(tess_comm *comm, const char *path,
                                 tess_vis_reader *source, const tess_vis_origin *origin,
                                 bool overwrite, tess_vis_writer **writer)
{
    tess_status status = TESS_OK;
    const tess_vis_meta *meta = &source->meta;
    const bool copies = source->format->copies;
    const writing what = {.format = copies ? source->format : format_for(""),
                          .path = path,
                          .meta = meta,
                          .like = copies ? source : NULL,
                          .origin = origin,
                          .overwrite = overwrite};
    if (!suits(what.format, path))
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s: the output is %s, which is not named so; give another name, or "
                  "write into a set that has columns with --column",
                  path, what.format->name);
    if (!copies && meta->num_segments != 1)
        TESS_FAIL(TESS_ERR_USAGE,
                  "%s: has %d spectral windows and a new set holds one; choose with "
                  "--spw, or write into it with --column",
                  meta->path, meta->num_segments);
    TESS_TRY(begin(comm, &what, writer));
cleanup:
    return status;
}

tess_status tess_vis_create_rows(tess_comm *comm, const char *path,
                                 tess_vis_reader *source, const tess_vis_origin *origin,
                                 bool overwrite, tess_vis_writer **writer)
{
    const writing what = {.format = source->format,
                          .path = path,
                          .meta = &source->meta,
                          .like = source,
                          .origin = origin,
                          .overwrite = overwrite,
                          .by_rows = true};
    return begin(comm, &what, writer);
}

/* Begins columns of `source`. `what` comes without its source. */
static tess_status create_columns(tess_comm *comm, tess_vis_reader *source,
                                  writing what, tess_vis_writer **writer)
{
    tess_status status = TESS_OK;
    what.format = source->format;
    what.path = source->meta.path;
    what.meta = &source->meta;
    what.like = source;
    if (!source->format->has_columns)
        TESS_FAIL(TESS_ERR_USAGE, "%s: is %s, which has no columns%s",
                  source->meta.path, source->format->name,
                  what.of_weights ? "" : "; give an output file with -o");
    TESS_TRY(begin(comm, &what, writer));
cleanup:
    return status;
}

tess_status tess_vis_check_column(const tess_vis_reader *source, const char *column,
                                  bool of_weights)
{
    tess_status status = TESS_OK;
    if (!source->format->has_columns)
        TESS_FAIL(TESS_ERR_USAGE, "%s: is %s, which has no columns", source->meta.path,
                  source->format->name);
    TESS_TRY(source->format->check_column(source, column, of_weights));
cleanup:
    return status;
}

tess_status tess_vis_create_column(tess_comm *comm, tess_vis_reader *source,
                                   const char *column, const tess_vis_origin *origin,
                                   bool overwrite, tess_vis_writer **writer)
{
    return tess_vis_create_columns(comm, source, &column, 1, origin, overwrite, writer);
}

tess_status tess_vis_create_columns(tess_comm *comm, tess_vis_reader *source,
                                    const char *const *column, int num_columns,
                                    const tess_vis_origin *origin, bool overwrite,
                                    tess_vis_writer **writer)
{
    return create_columns(comm, source,
                          (writing){.column = column,
                                    .num_columns = num_columns,
                                    .origin = origin,
                                    .overwrite = overwrite},
                          writer);
}

tess_status tess_vis_create_weights(tess_comm *comm, tess_vis_reader *source,
                                    const char *column, const tess_vis_origin *origin,
                                    tess_vis_writer **writer)
{
    return create_columns(comm, source,
                          (writing){.column = &column,
                                    .num_columns = 1,
                                    .origin = origin,
                                    .overwrite = true,
                                    .of_weights = true},
                          writer);
}

tess_status tess_vis_write(tess_vis_writer *writer, const tess_vis_block *block)
{
    return tess_vis_write_column(writer, 0, block);
}

tess_status tess_vis_write_column(tess_vis_writer *writer, int column,
                                  const tess_vis_block *block)
{
    writer->column = column;
    return writer->format->write(writer, block);
}

bool tess_vis_gathers(const tess_vis_writer *writer)
{
    return writer->format->gathers;
}

int tess_vis_raw_writers(const tess_vis_writer *writer, int threads)
{
    const int best = writer->raw_writers;
    return best > 0 && best < threads ? best : threads;
}

tess_status tess_vis_write_raw(tess_vis_writer *writer, int segment, int64_t row_first,
                               int64_t num_rows, const void *from)
{
    return writer->format->write_raw(writer, segment, row_first, num_rows, from);
}

double tess_vis_stored_uvw(const tess_vis_writer *writer, double uvw_m)
{
    return writer->format->stored_uvw ? writer->format->stored_uvw(uvw_m) : uvw_m;
}

tess_status tess_vis_finish(tess_vis_writer *writer)
{
    tess_status status = TESS_OK;
    TESS_TRY(writer->format->finish(writer));
    writer->finished = true;
cleanup:
    return status;
}

void tess_vis_writer_destroy(tess_vis_writer *writer)
{
    if (!writer) return;
    if (writer->format && writer->state) writer->format->destroy(writer);
    tess_free(writer);
}
