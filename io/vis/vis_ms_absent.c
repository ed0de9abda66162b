/* Stands in for vis_ms.cc in a build without casacore. */
#include "vis_format.h"

static tess_status refuse(const char *path)
{
    tess_status status = TESS_OK;
    TESS_FAIL(TESS_ERR_RESOURCE,
              "%s: this tessera was built without MeasurementSet support; install "
              "casacore and build with TESS_MS=ON, or use UVFITS",
              path);
cleanup:
    return status;
}

static bool is_ms(const char *path, const struct stat *info)
{
    return vis_folder_has(path, info, "table.dat");
}

static tess_status open_ms(const char *path, const tess_vis_select *select,
                           tess_vis_reader *reader)
{
    (void)select;
    (void)reader;
    return refuse(path);
}

static tess_status read_ms(tess_vis_reader *reader, int segment, int64_t row_first,
                           int64_t num_rows, int num_threads, tess_vis_block *block)
{
    (void)segment;
    (void)row_first;
    (void)num_rows;
    (void)num_threads;
    (void)block;
    return refuse(reader->meta.path);
}

static void close_ms(tess_vis_reader *reader)
{
    (void)reader;
}

static tess_status create_ms(tess_comm *comm, const char *path,
                             const tess_vis_meta *meta, tess_vis_reader *like,
                             const char *column, bool overwrite,
                             tess_vis_writer *writer)
{
    (void)comm;
    (void)meta;
    (void)like;
    (void)column;
    (void)overwrite;
    (void)writer;
    return refuse(path);
}

static tess_status write_ms(tess_vis_writer *writer, const tess_vis_block *block)
{
    (void)writer;
    (void)block;
    return refuse("MeasurementSet");
}

static tess_status check_column(const tess_vis_reader *reader, const char *column,
                                bool of_weights)
{
    (void)column;
    (void)of_weights;
    return refuse(reader->meta.path);
}

static tess_status finish_ms(tess_vis_writer *writer)
{
    (void)writer;
    return refuse("MeasurementSet");
}

static void destroy_ms(tess_vis_writer *writer)
{
    (void)writer;
}

const tess_vis_format tess_vis_format_ms = {
    .name = "MS",
    .sign = "a folder with table.dat",
    .suffix = ".ms",
    .has_columns = true,
    .recognise = is_ms,
    .open = open_ms,
    .read = read_ms,
    .close = close_ms,
    .create = create_ms,
    .write = write_ms,
    .finish = finish_ms,
    .destroy = destroy_ms,
    .check_column = check_column,
};

void tess_vis_end_clearly(void)
{
}
