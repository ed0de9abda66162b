/* MeasurementSets: what is written is what is read, selections and columns, and every
 * documented refusal. Skipped when the build has no casacore. */
#define _GNU_SOURCE
#include <dirent.h>
#include <ftw.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ms_cells.h"
#include "tess_vis.h"

enum { NUM_ROWS = 90, NUM_CHAN = 5, NUM_CORR = 4, NUM_ANT = 6, SKIP = 77 };

typedef struct fixture {
    tess_comm *comm;
    char folder[64];
    char path[128];
    /* what the set holds */
    tess_vis_meta meta;
    tess_vis_segment segment;
    tess_vis_antenna antenna[NUM_ANT];
    double freq_hz[NUM_CHAN], width_hz[NUM_CHAN];
    int32_t spw[NUM_CHAN];
    tess_vis_block block;
} fixture;

static int remove_entry(const char *path, const struct stat *info, int type,
                        struct FTW *where)
{
    (void)info, (void)type, (void)where;
    return remove(path);
}

static void remove_tree(const char *path)
{
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int num_entries(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            ++count;
    if (folder) closedir(folder);
    return count;
}

/* ---- the set that is written ---- */

static void describe(fixture *with)
{
    with->segment = (tess_vis_segment){.num_rows = NUM_ROWS,
                                       .num_chan = NUM_CHAN,
                                       .freq_hz = with->freq_hz,
                                       .chan_width_hz = with->width_hz,
                                       .chan_spw = with->spw,
                                       .num_corr = NUM_CORR,
                                       .corr = {-5, -7, -8, -6}};
    for (int k = 0; k < NUM_CHAN; ++k) {
        with->freq_hz[k] = 1.4e9 + 1e6 * k;
        with->width_hz[k] = 1e6;
    }
    for (int k = 0; k < NUM_ANT; ++k) {
        snprintf(with->antenna[k].name, sizeof with->antenna[k].name, "ant%d", k);
        with->antenna[k].xyz_m[0] = 1000.0 * k;
        with->antenna[k].xyz_m[2] = 6.3e6;
        with->antenna[k].diameter_m = 25.0;
    }
    with->meta = (tess_vis_meta){.telescope = "VLA",
                                 .observer = "somebody",
                                 .object = "3C48",
                                 .project = "P1",
                                 .equinox = 2000.0,
                                 .ra_rad = 0.4,
                                 .dec_rad = 0.6,
                                 .time_start_mjd_s = 5.0e9,
                                 .time_end_mjd_s = 5.0e9 + 80.0,
                                 .integration_s = 10.0,
                                 .num_segments = 1,
                                 .segment = &with->segment,
                                 .num_antennas = NUM_ANT,
                                 .antenna = with->antenna};
}

static float weight_of(int64_t row, int64_t cell)
{
    if (row == 7 || (row + cell) % 5 == 0) return TESS_WEIGHT_FLAGGED;
    return row == 8 && cell == 3 ? NAN : 0.5F + (float)(cell % 3);
}

static void fill_block(tess_vis_block *block, int64_t row_first, int64_t num_rows)
{
    const int64_t per_row = NUM_CHAN * NUM_CORR;
    assert_int_equal(tess_vis_block_resize(block, num_rows, NUM_CHAN, NUM_CORR),
                     TESS_OK);
    block->segment = 0;
    block->row_first = row_first;
    for (int64_t k = 0; k < num_rows; ++k) {
        const int64_t row = row_first + k;
        for (int axis = 0; axis < 3; ++axis)
            block->uvw_m[3 * k + axis] = 100.0 * sin((double)(row * (axis + 1)));
        block->time_mjd_s[k] = 5.0e9 + 10.0 * (double)(row / 10);
        block->integration_s[k] = 10.0;
        block->antenna1[k] = (int32_t)(row % (NUM_ANT - 1));
        block->antenna2[k] = block->antenna1[k] + 1;
        for (int64_t cell = 0; cell < per_row; ++cell) {
            block->vis[2 * (k * per_row + cell)] =
                row == 6 && cell == 3 ? NAN : (float)row + 0.125F * (float)cell;
            block->vis[2 * (k * per_row + cell) + 1] = (float)-cell;
            block->weight[k * per_row + cell] = weight_of(row, cell);
        }
    }
}

static tess_status write_set(fixture *with, const char *path, bool overwrite)
{
    tess_vis_writer *writer = NULL;
    tess_status status =
        tess_vis_create(with->comm, path, &with->meta, overwrite, &writer);
    for (int64_t row = 0; status == TESS_OK && row < with->segment.num_rows;
         row += 40) {
        const int64_t left = with->segment.num_rows - row;
        fill_block(&with->block, row, left < 40 ? left : 40);
        status = tess_vis_write(writer, &with->block);
    }
    if (status == TESS_OK) status = tess_vis_finish(writer);
    tess_vis_writer_destroy(writer);
    return status;
}

static tess_status open_set(const fixture *with, const tess_vis_select *select,
                            tess_vis_reader **reader)
{
    tess_error_clear();
    return tess_vis_open(with->path, select, reader);
}

/* Open and read all rows; the first failure. */
static tess_status read_all(const fixture *with)
{
    tess_vis_reader *reader = NULL;
    tess_vis_block block = {0};
    tess_status status = open_set(with, NULL, &reader);
    if (status == TESS_OK) {
        const int64_t num_rows = tess_vis_reader_meta(reader)->segment[0].num_rows;
        status = tess_vis_read(reader, 0, 0, num_rows, 1, &block);
    }
    tess_vis_block_free(&block);
    tess_vis_close(reader);
    return status;
}

static int set_up(void **state)
{
    fixture *with = calloc(1, sizeof *with);
    *state = with;
    strcpy(with->folder, "test_ms_XXXXXX");
    if (!with || !mkdtemp(with->folder)) return -1;
    snprintf(with->path, sizeof with->path, "%s/set.ms", with->folder);
    tess_error_clear();
    describe(with);
    if (tess_comm_self(&with->comm) != TESS_OK) return -1;
    return write_set(with, with->path, false) == TESS_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    fixture *with = *state;
    remove_tree(with->folder);
    tess_vis_block_free(&with->block);
    tess_comm_free(with->comm);
    free(with);
    return 0;
}

/* ---- reading what was written ---- */

static void same_floats(const float *a, const float *b, int64_t count)
{
    for (int64_t k = 0; k < count; ++k)
        if (!(isnan(a[k]) && isnan(b[k]))) assert_true(a[k] == b[k]);
}

static void round_trip(void **state)
{
    fixture *with = *state;
    tess_vis_reader *reader = NULL;
    tess_vis_block block = {0};
    assert_int_equal(open_set(with, NULL, &reader), TESS_OK);
    const tess_vis_meta *meta = tess_vis_reader_meta(reader);
    assert_string_equal(meta->format, "MS");
    assert_string_equal(meta->telescope, "VLA");
    assert_string_equal(meta->observer, "somebody");
    assert_string_equal(meta->project, "P1");
    assert_string_equal(meta->object, "3C48");
    assert_true(meta->ra_rad == 0.4 && meta->dec_rad == 0.6 && meta->equinox == 2000.0);
    assert_true(meta->time_start_mjd_s == 5.0e9 &&
                meta->time_end_mjd_s == 5.0e9 + 80.0);
    assert_true(meta->integration_s == 10.0);
    assert_int_equal(meta->num_rows_total, NUM_ROWS);
    assert_int_equal(meta->num_antennas, NUM_ANT);
    assert_memory_equal(meta->antenna, with->antenna, sizeof with->antenna);
    assert_int_equal(meta->num_segments, 1);
    const tess_vis_segment *segment = meta->segment;
    assert_int_equal(segment->num_rows, NUM_ROWS);
    assert_int_equal(segment->num_chan, NUM_CHAN);
    assert_memory_equal(segment->freq_hz, with->freq_hz, sizeof with->freq_hz);
    assert_memory_equal(segment->chan_width_hz, with->width_hz, sizeof with->width_hz);
    assert_int_equal(segment->num_corr, NUM_CORR);
    assert_memory_equal(segment->corr, with->segment.corr, sizeof segment->corr);
    for (int64_t row = 0; row < NUM_ROWS; row += 40) {
        const int64_t count = NUM_ROWS - row < 40 ? NUM_ROWS - row : 40;
        const int64_t cells = count * NUM_CHAN * NUM_CORR;
        const size_t rows = (size_t)count;
        fill_block(&with->block, row, count);
        assert_int_equal(tess_vis_read(reader, 0, row, count, 1, &block), TESS_OK);
        assert_memory_equal(block.uvw_m, with->block.uvw_m, rows * 3 * sizeof(double));
        assert_memory_equal(block.time_mjd_s, with->block.time_mjd_s,
                            rows * sizeof(double));
        assert_memory_equal(block.integration_s, with->block.integration_s,
                            rows * sizeof(double));
        assert_memory_equal(block.antenna1, with->block.antenna1,
                            rows * sizeof(int32_t));
        assert_memory_equal(block.antenna2, with->block.antenna2,
                            rows * sizeof(int32_t));
        same_floats(block.vis, with->block.vis, 2 * cells);
        same_floats(block.weight, with->block.weight, cells);
    }
    tess_vis_block_free(&block);
    tess_vis_close(reader);
}

/* Rows that FLAG_ROW flags and FLAG does not, the first and the last of a block among
 * them. */
static void flagged_rows_have_no_weight(void **state)
{
    enum { BLOCK_ROWS = 40 };
    static const int64_t flagged[] = {0, 39, 40, 51, 89};
    const int num_flagged = sizeof flagged / sizeof *flagged;
    fixture *with = *state;
    tess_vis_reader *reader = NULL;
    tess_vis_block block = {0};
    if (!ms_set_flag_row) skip();
    ms_set_flag_row(with->path, flagged, num_flagged);
    assert_int_equal(open_set(with, NULL, &reader), TESS_OK);
    for (int64_t first = 0; first < NUM_ROWS; first += BLOCK_ROWS) {
        const int64_t left = NUM_ROWS - first;
        const int64_t count = left < BLOCK_ROWS ? left : BLOCK_ROWS;
        assert_int_equal(tess_vis_read(reader, 0, first, count, 1, &block), TESS_OK);
        for (int64_t k = 0; k < count * NUM_CHAN * NUM_CORR; ++k) {
            const int64_t row = first + k / (NUM_CHAN * NUM_CORR);
            float weight = weight_of(row, k % (NUM_CHAN * NUM_CORR));
            for (int j = 0; j < num_flagged; ++j)
                if (flagged[j] == row) weight = TESS_WEIGHT_FLAGGED;
            same_floats(&block.weight[k], &weight, 1);
        }
    }
    tess_vis_block_free(&block);
    tess_vis_close(reader);
}

static void selects_channels(void **state)
{
    fixture *with = *state;
    const tess_vis_select select = {.chan_first = 1, .chan_end = 3};
    tess_vis_reader *reader = NULL;
    tess_vis_block block = {0};
    assert_int_equal(open_set(with, &select, &reader), TESS_OK);
    const tess_vis_segment *segment = tess_vis_reader_meta(reader)->segment;
    assert_int_equal(segment->num_chan, 2);
    assert_true(segment->freq_hz[0] == with->freq_hz[1]);
    assert_int_equal(tess_vis_read(reader, 0, 50, 40, 1, &block), TESS_OK);
    fill_block(&with->block, 50, 40);
    for (int64_t row = 0; row < 40; ++row) {
        const int64_t got = row * 2 * NUM_CORR, put = (row * NUM_CHAN + 1) * NUM_CORR;
        same_floats(block.vis + 2 * got, with->block.vis + 2 * put, 4 * NUM_CORR);
        same_floats(block.weight + got, with->block.weight + put, 2 * NUM_CORR);
    }
    tess_vis_block_free(&block);
    tess_vis_close(reader);
}

/* Files of this name that the process has open. */
static int num_open(const char *name)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char link[300], target[PATH_MAX];
        snprintf(link, sizeof link, "/proc/self/fd/%s", entry->d_name);
        const ssize_t length = readlink(link, target, sizeof target - 1);
        if (length <= 0) continue;
        target[length] = '\0';
        const char *last = strrchr(target, '/');
        count += last && strcmp(last + 1, name) == 0;
    }
    if (folder) closedir(folder);
    return count;
}

/* Rows that the threads of a team share, each with the table to itself. */
static void teams_read_what_one_thread_does(void **state)
{
    enum { MANY_ROWS = 5000, TEAM = 4 };
    fixture *with = *state;
    tess_vis_reader *reader = NULL;
    tess_vis_block block = {0}, other = {0};
    with->segment.num_rows = MANY_ROWS;
    assert_int_equal(write_set(with, with->path, true), TESS_OK);
    for (int channels = 0; channels < 2; ++channels) {
        const tess_vis_select select = {.chan_end = channels ? 3 : 0};
        const int64_t per_row = (channels ? 3 : NUM_CHAN) * NUM_CORR;
        assert_int_equal(open_set(with, &select, &reader), TESS_OK);
        for (int64_t first = 0; first < 2; ++first) {
            const int64_t count = MANY_ROWS - 7 * first;
            const size_t rows = (size_t)count;
            assert_int_equal(tess_vis_read(reader, 0, first, count, 1, &block),
                             TESS_OK);
            assert_int_equal(tess_vis_read(reader, 0, first, count, TEAM, &other),
                             TESS_OK);
            assert_memory_equal(block.uvw_m, other.uvw_m, rows * 3 * sizeof(double));
            assert_memory_equal(block.time_mjd_s, other.time_mjd_s,
                                rows * sizeof(double));
            assert_memory_equal(block.antenna2, other.antenna2, rows * sizeof(int32_t));
            same_floats(block.vis, other.vis, 2 * count * per_row);
            same_floats(block.weight, other.weight, count * per_row);
        }
        assert_int_equal(num_open("table.f0"), TEAM);
        tess_vis_rest(reader);
        assert_int_equal(num_open("table.f0"), 1);
        assert_int_equal(tess_vis_read(reader, 0, 0, MANY_ROWS, 2, &block), TESS_OK);
        assert_int_equal(num_open("table.f0"), 2);
        tess_vis_close(reader);
        assert_int_equal(num_open("table.f0"), 0);
    }
    with->meta.num_antennas = NUM_ANT - 1; /* rows of each share name one more */
    assert_int_equal(write_set(with, with->path, true), TESS_OK);
    assert_int_equal(open_set(with, NULL, &reader), TESS_OK);
    assert_int_equal(tess_vis_read(reader, 0, 0, MANY_ROWS, TEAM, &block),
                     TESS_ERR_INPUT);
    assert_non_null(strstr(tess_error_message(), "has antennas 4 and 5 of 5"));
    tess_vis_close(reader);
    tess_vis_block_free(&block);
    tess_vis_block_free(&other);
}

static void refuses_empty_selections(void **state)
{
    static const int absent[] = {3};
    const tess_vis_select select[] = {{.chan_first = 10, .chan_end = 20},
                                      {.spw = absent, .num_spw = 1},
                                      {.field = "elsewhere"},
                                      {.data_column = "CORRECTED_DATA"},
                                      {.data_column = "WEIGHT"}};
    for (size_t k = 0; k < sizeof select / sizeof select[0]; ++k) {
        tess_vis_reader *reader = NULL;
        assert_int_equal(open_set(*state, &select[k], &reader), TESS_ERR_USAGE);
        assert_null(reader);
        assert_non_null(strstr(tess_error_message(), "set.ms"));
    }
    assert_non_null(strstr(tess_error_message(), "DATA"));
}

static void finds_fields_by_name_or_number(void **state)
{
    const tess_vis_select select[] = {
        {.field = "3C48"}, {.field = "0"}, {.any_field = true}};
    for (size_t k = 0; k < sizeof select / sizeof select[0]; ++k) {
        tess_vis_reader *reader = NULL;
        assert_int_equal(open_set(*state, &select[k], &reader), TESS_OK);
        assert_int_equal(tess_vis_reader_meta(reader)->field_selected, 0);
        tess_vis_close(reader);
    }
}

/* ---- making sets ---- */

static void keeps_what_exists(void **state)
{
    fixture *with = *state;
    char other[128];
    snprintf(other, sizeof other, "%s/folder.ms", with->folder);
    assert_int_equal(mkdir(other, 0777), 0);
    assert_int_equal(write_set(with, with->path, false), TESS_ERR_IO);
    assert_int_equal(write_set(with, other, true), TESS_ERR_IO); /* not an MS */
    assert_int_equal(write_set(with, with->path, true), TESS_OK);
    assert_int_equal(read_all(with), TESS_OK);
    assert_int_equal(num_entries(with->folder), 2);
}

static void unfinished_leaves_nothing(void **state)
{
    fixture *with = *state;
    tess_vis_writer *writer = NULL;
    char path[128];
    snprintf(path, sizeof path, "%s/new.ms", with->folder);
    assert_int_equal(tess_vis_create(with->comm, path, &with->meta, false, &writer),
                     TESS_OK);
    fill_block(&with->block, 0, 40);
    assert_int_equal(tess_vis_write(writer, &with->block), TESS_OK);
    tess_vis_writer_destroy(writer);
    assert_int_equal(num_entries(with->folder), 1);
}

static void unwritable_is_reported(void **state)
{
    fixture *with = *state;
    char path[128];
    snprintf(path, sizeof path, "%s/no/such/folder/new.ms", with->folder);
    assert_int_equal(write_set(with, path, false), TESS_ERR_IO);
    snprintf(path, sizeof path, "%s/set.ms/table.dat/new.ms", with->folder);
    assert_int_equal(write_set(with, path, false), TESS_ERR_IO);
}

/* A limit on the size of files stands for a disk that is full. */
static void full_disk_leaves_nothing(void **state)
{
    static const rlim_t limit_bytes[] = {100, 3000, 50000, 1000000};
    fixture *with = *state;
    struct rlimit before;
    char path[128];
    snprintf(path, sizeof path, "%s/new.ms", with->folder);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t k = 0; k < sizeof limit_bytes / sizeof limit_bytes[0]; ++k) {
        const struct rlimit limit = {limit_bytes[k], before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
        const tess_status status = write_set(with, path, false);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        assert_int_equal(status, TESS_ERR_IO);
        assert_int_equal(num_entries(with->folder), 1);
    }
}

/* ---- columns ---- */

/* Write -1 times the data into a column, in the channels selected. */
static tess_status write_column(fixture *with, const char *column,
                                const tess_vis_select *select, bool finish)
{
    tess_vis_reader *reader = NULL;
    tess_vis_writer *writer = NULL;
    tess_vis_block block = {0};
    assert_int_equal(open_set(with, select, &reader), TESS_OK);
    tess_status status =
        tess_vis_create_column(with->comm, reader, column, NULL, true, &writer);
    for (int64_t row = 0; status == TESS_OK && row < NUM_ROWS; row += 30) {
        assert_int_equal(tess_vis_read(reader, 0, row, 30, 1, &block), TESS_OK);
        for (int64_t k = 0; k < 2 * 30 * block.num_chan * NUM_CORR; ++k)
            block.vis[k] = -block.vis[k];
        status = tess_vis_write(writer, &block);
    }
    if (status == TESS_OK && finish) status = tess_vis_finish(writer);
    tess_vis_writer_destroy(writer);
    tess_vis_block_free(&block);
    tess_vis_close(reader);
    return status;
}

/* The column is -DATA in channels [first, end) and zero elsewhere. */
static void check_column(fixture *with, const char *column, int64_t first, int64_t end)
{
    const tess_vis_select select = {.data_column = column};
    tess_vis_reader *reader = NULL;
    tess_vis_block block = {0};
    assert_int_equal(open_set(with, &select, &reader), TESS_OK);
    assert_int_equal(tess_vis_read(reader, 0, 41, 40, 1, &block), TESS_OK);
    fill_block(&with->block, 41, 40);
    for (int64_t k = 0; k < 40 * NUM_CHAN * NUM_CORR * 2; ++k) {
        const int64_t chan = k / (2 * NUM_CORR) % NUM_CHAN;
        const bool inside = chan >= first && chan < end;
        assert_true(block.vis[k] == (inside ? -with->block.vis[k] : 0.0F));
    }
    tess_vis_block_free(&block);
    tess_vis_close(reader);
}

static void column_is_added_and_replaced(void **state)
{
    fixture *with = *state;
    const tess_vis_select some = {.chan_first = 1, .chan_end = 3};
    const tess_vis_select more = {.chan_first = 2, .chan_end = 5};
    assert_int_equal(write_column(with, "MODEL_DATA", &some, true), TESS_OK);
    check_column(with, "MODEL_DATA", 1, 3);
    assert_int_equal(write_column(with, "MODEL_DATA", &more, true), TESS_OK);
    check_column(with, "MODEL_DATA", 1, 5);
}

static void column_is_kept_unless_asked(void **state)
{
    fixture *with = *state;
    static const char *const column[] = {"DATA", "MODEL_DATA"};
    tess_vis_reader *reader = NULL;
    tess_vis_writer *writer = NULL;
    assert_int_equal(write_column(with, "MODEL_DATA", NULL, true), TESS_OK);
    assert_int_equal(open_set(with, NULL, &reader), TESS_OK);
    for (int k = 0; k < 2; ++k) {
        assert_int_equal(
            tess_vis_create_column(with->comm, reader, column[k], NULL, false, &writer),
            TESS_ERR_IO);
        assert_non_null(strstr(tess_error_message(), "--overwrite"));
        tess_error_clear();
    }
    tess_vis_close(reader);
    check_column(with, "MODEL_DATA", 0, NUM_CHAN);
}

static void unfinished_column_is_removed(void **state)
{
    fixture *with = *state;
    const tess_vis_select select = {.data_column = "MODEL_DATA"};
    tess_vis_reader *reader = NULL;
    assert_int_equal(write_column(with, "MODEL_DATA", NULL, false), TESS_OK);
    assert_int_equal(open_set(with, &select, &reader), TESS_ERR_USAGE);
    assert_int_equal(read_all(with), TESS_OK);
}

static void refuses_bad_columns(void **state)
{
    assert_int_equal(write_column(*state, "A B", NULL, true), TESS_ERR_USAGE);
    assert_int_equal(write_column(*state, "", NULL, true), TESS_ERR_USAGE);
    assert_int_equal(write_column(*state, "UVW", NULL, true), TESS_ERR_USAGE);
    assert_int_equal(write_column(*state, "TIME", NULL, true), TESS_ERR_USAGE);
    assert_int_equal(read_all(*state), TESS_OK);
}

static void data_column_may_be_absent(void **state)
{
    const tess_vis_select select = {.data_column = "ABSENT", .model_only = true};
    tess_vis_reader *reader = NULL;
    tess_vis_block block = {0};
    assert_int_equal(open_set(*state, &select, &reader), TESS_OK);
    assert_int_equal(tess_vis_read(reader, 0, 0, 10, 1, &block), TESS_OK);
    for (int k = 0; k < 2 * 10 * NUM_CHAN * NUM_CORR; ++k)
        assert_true(block.vis[k] == 0.0F);
    tess_vis_block_free(&block);
    tess_vis_close(reader);
}

/* Other columns cost many times as much as uvw, and so would memory for cells. */
static void uvw_alone_may_be_read(void **state)
{
    enum { ROWS = 10, CELLS = ROWS * NUM_CHAN * NUM_CORR };
    const fixture *with = *state;
    const tess_vis_select select = {.data_column = "ABSENT", .uvw_only = true};
    tess_vis_reader *reader = NULL;
    tess_vis_block expected = {0}, block = {0};
    fill_block(&expected, 20, ROWS);
    fill_block(&block, 0, ROWS);
    for (int k = 0; k < CELLS; ++k)
        block.vis[2 * k] = block.weight[k] = 42.0F;
    assert_int_equal(open_set(with, &select, &reader), TESS_OK);
    assert_int_equal(tess_vis_read(reader, 0, 20, ROWS, 1, &block), TESS_OK);
    assert_memory_equal(block.uvw_m, expected.uvw_m, ROWS * 3 * sizeof(double));
    for (int k = 0; k < ROWS; ++k) {
        assert_true(block.time_mjd_s[k] == 0.0 && block.integration_s[k] == 0.0);
        assert_true(block.antenna1[k] == 0 && block.antenna2[k] == 0);
    }
    for (int k = 0; k < CELLS; ++k)
        assert_true(block.vis[2 * k] == 42.0F && block.weight[k] == 42.0F);
    tess_vis_block_free(&expected);
    tess_vis_block_free(&block);
    tess_vis_close(reader);
}

/* ---- bad sets ---- */

static void bad_values_are_refused(void **state)
{
    fixture *with = *state;
    static const double bad_hz[] = {0.0, -1e9, NAN, INFINITY};
    for (size_t k = 0; k < sizeof bad_hz / sizeof bad_hz[0]; ++k) {
        with->freq_hz[2] = bad_hz[k];
        assert_int_equal(write_set(with, with->path, true), TESS_OK);
        assert_int_equal(read_all(with), TESS_ERR_INPUT);
    }
    describe(with);
    with->meta.dec_rad = NAN;
    assert_int_equal(write_set(with, with->path, true), TESS_OK);
    assert_int_equal(read_all(with), TESS_ERR_INPUT);
    describe(with);
    with->meta.num_antennas = 2; /* rows name more */
    assert_int_equal(write_set(with, with->path, true), TESS_OK);
    assert_int_equal(read_all(with), TESS_ERR_INPUT);
    with->segment.num_rows = 0;
    assert_int_equal(write_set(with, with->path, true), TESS_ERR_INPUT);
}

/* Every file that reading needs, cut in half and then missing. */
static void damaged_sets_are_refused(void **state)
{
    static const char *const file[] = {"table.dat",
                                       "table.f0",
                                       "table.f1",
                                       "SPECTRAL_WINDOW/table.dat",
                                       "FIELD/table.dat",
                                       "ANTENNA/table.dat",
                                       "POLARIZATION/table.dat",
                                       "DATA_DESCRIPTION/table.dat",
                                       "OBSERVATION/table.dat"};
    fixture *with = *state;
    for (size_t k = 0; k < 2 * sizeof file / sizeof file[0]; ++k) {
        char path[300];
        struct stat info;
        remove_tree(with->path);
        assert_int_equal(write_set(with, with->path, false), TESS_OK);
        snprintf(path, sizeof path, "%s/%s", with->path, file[k / 2]);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(k % 2 ? unlink(path) : truncate(path, info.st_size / 2), 0);
        assert_int_equal(read_all(with), TESS_ERR_INPUT);
        assert_null(strchr(tess_error_message(), '\n'));
    }
}

/* ---- real sets, where TESS_TEST_DATA or else the build says they are ---- */

static const char *real_set(const char *name, char path[1024])
{
    const char *base = getenv("TESS_TEST_DATA");
    struct stat info;
    snprintf(path, 1024, "%s/data/ms/%s", base ? base : TESS_TEST_SHARED, name);
    return stat(path, &info) == 0 ? path : NULL;
}

/* Averaged by baseline length: four spectral windows of 3, 4, 1 and 8 channels, their
 * rows interleaved. */
static void several_spectral_windows(void **state)
{
    (void)state;
    static const int64_t num_rows[] = {6, 12, 3, 132}, num_chan[] = {3, 4, 1, 8};
    static const int last[] = {3};
    const tess_vis_select select = {.spw = last, .num_spw = 1};
    const tess_vis_select second = {.chan_first = 1};
    tess_vis_reader *reader = NULL;
    tess_vis_block block = {0};
    char path[1024];
    if (!real_set("lofar-bda.ms", path)) skip();
    assert_int_equal(tess_vis_open(path, NULL, &reader), TESS_OK);
    assert_int_equal(tess_vis_reader_meta(reader)->num_segments, 4);
    for (int k = 0; k < 4; ++k) {
        const tess_vis_segment *segment = tess_vis_reader_meta(reader)->segment + k;
        assert_int_equal(segment->num_rows, num_rows[k]);
        assert_int_equal(segment->num_chan, num_chan[k]);
        assert_int_equal(segment->chan_spw[0], k);
        assert_int_equal(tess_vis_read(reader, k, 0, num_rows[k], 1, &block), TESS_OK);
    }
    /* blocks of any size hold the same rows */
    tess_vis_block part = {0};
    assert_int_equal(tess_vis_read(reader, 3, 57, 31, 1, &part), TESS_OK);
    assert_memory_equal(part.uvw_m, block.uvw_m + 3 * 57, 31 * 3 * sizeof(double));
    same_floats(part.vis, block.vis + 57 * 8 * 4 * 2, 31 * 8 * 4 * 2);
    tess_vis_close(reader);
    reader = NULL;
    assert_int_equal(tess_vis_open(path, &select, &reader), TESS_OK);
    assert_int_equal(tess_vis_reader_meta(reader)->num_segments, 1);
    assert_int_equal(tess_vis_reader_meta(reader)->segment->num_chan, 8);
    tess_vis_close(reader);
    reader = NULL;
    assert_int_equal(tess_vis_open(path, &second, &reader), TESS_OK);
    assert_int_equal(tess_vis_reader_meta(reader)->num_segments, 3); /* one had 1 */
    tess_vis_close(reader);
    tess_vis_block_free(&part);
    tess_vis_block_free(&block);
}

/* Two fields, and a WEIGHT_SPECTRUM column without a filled cell. */
static void empty_weight_spectrum_and_two_fields(void **state)
{
    const fixture *with = *state;
    const tess_vis_select second = {.field = "1"}, all = {.any_field = true};
    tess_vis_reader *reader = NULL;
    tess_vis_block block = {0};
    char path[1024], command[1400];
    if (!real_set("alma-mssel-small.ms.tgz", path)) skip();
    snprintf(command, sizeof command, "tar -xzf '%s' -C '%s'", path, with->folder);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s/alma-mssel-small.ms", with->folder);
    assert_int_equal(tess_vis_open(path, NULL, &reader), TESS_ERR_USAGE);
    assert_non_null(strstr(tess_error_message(), "J1617-7717 (0), J1423-7829 (1)"));
    assert_int_equal(tess_vis_open(path, &all, &reader), TESS_OK);
    assert_int_equal(tess_vis_reader_meta(reader)->segment[0].num_rows, 529);
    tess_vis_close(reader);
    reader = NULL;
    assert_int_equal(tess_vis_open(path, &second, &reader), TESS_OK);
    const tess_vis_meta *meta = tess_vis_reader_meta(reader);
    assert_string_equal(meta->object, "J1423-7829");
    assert_int_equal(meta->num_segments, 2);
    assert_int_equal(meta->segment[0].num_rows, 368);
    assert_int_equal(tess_vis_read(reader, 0, 0, 368, 1, &block), TESS_OK);
    int64_t num_good = 0;
    const int64_t cells = block.num_rows * block.num_chan * block.num_corr;
    for (int64_t k = 0; k < cells; ++k)
        num_good += block.weight[k] > 0.0F;
    /* 6.25 % are flagged (python3-casacore counts the same) */
    assert_true(num_good > cells * 93 / 100 && num_good < cells * 94 / 100);
    tess_vis_close(reader);
    tess_vis_block_free(&block);
}

/* Whether the build reads MeasurementSets at all. */
static bool has_casacore(void)
{
    tess_vis_reader *reader = NULL;
    char folder[] = "test_ms_XXXXXX", table[64];
    if (!mkdtemp(folder)) return false;
    snprintf(table, sizeof table, "%s/table.dat", folder);
    fclose(fopen(table, "w"));
    const tess_status status = tess_vis_open(folder, NULL, &reader);
    remove_tree(folder);
    return status != TESS_ERR_RESOURCE;
}

#define MS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        MS_TEST(round_trip),
        MS_TEST(flagged_rows_have_no_weight),
        MS_TEST(selects_channels),
        MS_TEST(teams_read_what_one_thread_does),
        MS_TEST(refuses_empty_selections),
        MS_TEST(finds_fields_by_name_or_number),
        MS_TEST(keeps_what_exists),
        MS_TEST(unfinished_leaves_nothing),
        MS_TEST(unwritable_is_reported),
        MS_TEST(full_disk_leaves_nothing),
        MS_TEST(column_is_added_and_replaced),
        MS_TEST(column_is_kept_unless_asked),
        MS_TEST(unfinished_column_is_removed),
        MS_TEST(refuses_bad_columns),
        MS_TEST(data_column_may_be_absent),
        MS_TEST(uvw_alone_may_be_read),
        MS_TEST(bad_values_are_refused),
        MS_TEST(damaged_sets_are_refused),
        MS_TEST(several_spectral_windows),
        MS_TEST(empty_weight_spectrum_and_two_fields),
    };
    if (!has_casacore()) {
        puts("skipped: built without casacore");
        return SKIP;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
