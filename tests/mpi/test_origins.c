/* Rows that keep where they come from: the antennas, times and fields of two sets of
 * visibilities, which share some antennas, are told from the rows of samples, from the
 * runs that the owners of bricks have received and sorted, from a scratch file, and by
 * teams. The second set is a UVFITS file, as the first, and then a MeasurementSet. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exchange.h"
#include "imager_targets.h"
#include "rank_tests.h"
#include "source_origins.h"
#include "spool.h"
#include "team_parcel.h"
#include "tess_geom.h"
#include "tess_mem.h"
#include "tess_vis_caller.h"

enum {
    SETS = 2,
    ANTENNAS = 5, /* of a set, at most */
    NAMES = 6,    /* of antennas, "A" to "F" */
    TIMES = 6,
    CHANS = 3,
    CORRS = 2,
    MOST_ROWS = TIMES * ANTENNAS * (ANTENNAS - 1) / 2
};

static const double START_S = 5.0e9, STEP_S = 10, FREQ_HZ = 1e9;
/* steps of time before a set begins, its antennas, and its phase centre */
static int late[SETS] = {0, 3};
static const char *const antennas[SETS] = {"ABCDE", "DFA"};
static const double centre_rad[SETS][2] = {{1, -0.5}, {1.01, -0.49}};
static const double position_m[NAMES][3] = {{0, 0, 0},      {40, 11, 3},
                                            {-70, 25, 9},   {16, -90, 30},
                                            {120, 60, -20}, {-33, -51, 70}};

static tess_comm *world;
static const char *format_of[SETS] = {"uvfits", "uvfits"};

/* The uvw of two antennas at a step of time, for a set: they turn with time. */
static void uvw_of(int set, int first, int second, int step, double uvw_m[3])
{
    const double angle = 0.1 * step, factor = 1 + 0.3 * set;
    double b[3];
    for (int k = 0; k < 3; ++k)
        b[k] = factor * (position_m[second][k] - position_m[first][k]);
    uvw_m[0] = cos(angle) * b[0] - sin(angle) * b[1];
    uvw_m[1] = sin(angle) * b[0] + cos(angle) * b[1];
    uvw_m[2] = b[2];
}

/* A row as it is written: its antennas in the list of the set. Every second step has
 * the antennas of each pair the other way round. */
typedef struct row_of_set {
    int first, second, step;
} row_of_set;

static int list_rows(int set, row_of_set rows[MOST_ROWS])
{
    const int count = (int)strlen(antennas[set]);
    int num = 0;
    for (int t = 0; t < TIMES; ++t)
        for (int p = 0; p < count; ++p)
            for (int q = p + 1; q < count; ++q)
                rows[num++] = (row_of_set){t % 2 ? q : p, t % 2 ? p : q, t + late[set]};
    return num;
}

static bool is_flagged(int row)
{
    return row % 7 == 3;
}

/* The weight of a row tells which one it is, also after the samples have moved. */
static float weight_of(int set, int row)
{
    return (float)(1 + MOST_ROWS * set + row);
}

static void fill_block(int set, tess_vis_block *block)
{
    row_of_set rows[MOST_ROWS];
    const int num = list_rows(set, rows);
    assert_int_equal(tess_vis_block_resize(block, num, CHANS, CORRS), TESS_OK);
    block->segment = 0;
    block->row_first = 0;
    for (int k = 0; k < num; ++k) {
        const row_of_set *row = &rows[k];
        uvw_of(set, antennas[set][row->first] - 'A', antennas[set][row->second] - 'A',
               row->step, block->uvw_m + 3 * k);
        block->time_mjd_s[k] = START_S + STEP_S * row->step;
        block->integration_s[k] = STEP_S;
        block->antenna1[k] = row->first;
        block->antenna2[k] = row->second;
        for (int64_t at = k * CHANS * CORRS; at < (k + 1) * CHANS * CORRS; ++at) {
            block->vis[2 * at] = (float)(k + at % 5);
            block->vis[2 * at + 1] = (float)(at % 3);
            block->weight[at] = is_flagged(k) ? TESS_WEIGHT_FLAGGED : weight_of(set, k);
        }
    }
}

typedef struct path {
    char text[64];
} path;

static path path_of(int set)
{
    path name;
    snprintf(name.text, sizeof name.text, "origins_np%d_%d.%s", tess_comm_size(world),
             set, format_of[set]);
    return name;
}

/* Writes a set; the first rank writes all rows. */
static void write_set(int set)
{
    double freq_hz[CHANS], width_hz[CHANS];
    int32_t spw[CHANS] = {0};
    row_of_set rows[MOST_ROWS];
    tess_vis_block block = {0};
    tess_vis_antenna antenna[ANTENNAS] = {{.name = ""}};
    tess_vis_writer *writer = NULL;
    tess_vis_field field = {.name = "there", .id = 1, .frame = "J2000"};
    for (int c = 0; c < CHANS; ++c) {
        freq_hz[c] = FREQ_HZ * (1 + 0.01 * c);
        width_hz[c] = 0.01 * FREQ_HZ;
    }
    tess_vis_segment segment = {.num_rows = list_rows(set, rows),
                                .num_chan = CHANS,
                                .freq_hz = freq_hz,
                                .chan_width_hz = width_hz,
                                .chan_spw = spw,
                                .num_corr = CORRS,
                                .corr = {-5, -6}};
    tess_vis_meta meta = {.telescope = "VLA",
                          .equinox = 2000,
                          .ra_rad = centre_rad[set][0],
                          .dec_rad = centre_rad[set][1],
                          .integration_s = STEP_S,
                          .num_segments = 1,
                          .segment = &segment,
                          .num_fields = 1,
                          .field = &field,
                          .num_antennas = (int)strlen(antennas[set]),
                          .antenna = antenna};
    field.ra_rad = meta.ra_rad;
    field.dec_rad = meta.dec_rad;
    for (int k = 0; k < meta.num_antennas; ++k)
        antenna[k].name[0] = antennas[set][k];
    assert_int_equal(tess_vis_create(world, path_of(set).text, &meta, true, &writer),
                     TESS_OK);
    fill_block(set, &block);
    if (tess_comm_rank(world) > 0) block.num_rows = 0;
    assert_int_equal(tess_vis_write(writer, &block), TESS_OK);
    assert_int_equal(tess_vis_finish(writer), TESS_OK);
    tess_vis_writer_destroy(writer);
    tess_vis_block_free(&block);
}

/* Opens both sets, whose rows keep origins of this interval, for these polarisations.
 */
static tess_source *open_sets_for(double interval_s, const tess_pol *pol, int num_pol)
{
    const path path[SETS] = {path_of(0), path_of(1)};
    const char *paths[SETS] = {path[0].text, path[1].text};
    tess_source *source = NULL;
    const tess_selection selection = {.has_center = true,
                                      .center_ra_rad = centre_rad[0][0],
                                      .center_dec_rad = centre_rad[0][1]};
    assert_int_equal(tess_source_open(world, paths, SETS, &selection, &source),
                     TESS_OK);
    assert_int_equal(tess_source_keep_origins(source, interval_s), TESS_OK);
    assert_int_equal(tess_source_setup(source, pol, num_pol, 0, true, 1, 3000),
                     TESS_OK);
    return source;
}

static tess_source *open_sets(double interval_s)
{
    const tess_pol stokes_i = {.code = 1};
    return open_sets_for(interval_s, &stokes_i, 1);
}

static tess_samples read_all(tess_source *source)
{
    tess_samples samples = tess_source_samples(source);
    int64_t blocks;
    assert_int_equal(tess_source_num_blocks(source, &blocks), TESS_OK);
    tess_source_rewind(source);
    for (int64_t k = 0; k < blocks; ++k)
        assert_int_equal(tess_source_next(source, &samples, NULL, NULL), TESS_OK);
    return samples;
}

/* The row as it was written, of which one sample is `sample`; its weight is the row's
 * number. */
static row_of_set written_row(const tess_samples *samples, int64_t sample, int *set)
{
    const int number = (int)tess_samples_weight(samples, sample) - 1;
    row_of_set rows[MOST_ROWS];
    *set = number / MOST_ROWS;
    assert_true(number >= 0 && *set < SETS &&
                number % MOST_ROWS < list_rows(*set, rows));
    return rows[number % MOST_ROWS];
}

/* Checks the origin of a row of which one sample is `sample`; counts the row's channels
 * in seen[set][row]. */
static void check_row(const tess_source *source, const tess_samples *samples,
                      int64_t row, int64_t sample, int32_t count, int64_t *seen)
{
    const tess_origin origin = tess_origin_of(samples->origins, samples->origin[row]);
    const int number = (int)tess_samples_weight(samples, sample) - 1;
    int set;
    const row_of_set written = written_row(samples, sample, &set);
    const char first = antennas[set][written.first],
               second = antennas[set][written.second];
    assert_int_equal(tess_source_antenna(source, origin.antenna1)->name[0], first);
    assert_int_equal(tess_source_antenna(source, origin.antenna2)->name[0], second);
    assert_int_equal(origin.field, set);
    assert_int_equal(origin.interval, (int)((written.step + 0.5) * STEP_S /
                                            samples->origins->interval_s));
    assert_int_equal(tess_origin_number(samples->origins, &origin),
                     samples->origin[row]);
    seen[number] += count;
}

/* Checks that the uvw of a row are those of its origin, if intervals are steps. */
static void check_uvw(const tess_source *source, const tess_samples *samples,
                      int64_t row)
{
    const tess_origin origin = tess_origin_of(samples->origins, samples->origin[row]);
    const tess_vis_field *field = tess_source_field(source, origin.field);
    const tess_source_info *info = tess_source_info_of(source);
    double uvw_m[3], rotation[3][3];
    uvw_of(origin.field, tess_source_antenna(source, origin.antenna1)->name[0] - 'A',
           tess_source_antenna(source, origin.antenna2)->name[0] - 'A', origin.interval,
           uvw_m);
    tess_rotation_between(field->ra_rad, field->dec_rad, info->ra_rad, info->dec_rad,
                          rotation);
    for (int i = 0; i < 3; ++i) {
        double moved_m = 0;
        for (int k = 0; k < 3; ++k)
            moved_m += rotation[i][k] * uvw_m[k];
        /* files store single precision */
        assert_true(fabs(samples->uvw_m[3 * row + i] - moved_m) < 1e-4);
    }
}

static void check_all_seen(int64_t *seen)
{
    assert_int_equal(tess_comm_allreduce_i64(world, seen, SETS * MOST_ROWS, TESS_SUM),
                     TESS_OK);
    for (int set = 0; set < SETS; ++set) {
        row_of_set rows[MOST_ROWS];
        const int num = list_rows(set, rows);
        for (int k = 0; k < num; ++k)
            assert_int_equal(seen[MOST_ROWS * set + k], is_flagged(k) ? 0 : CHANS);
    }
}

static void test_rows(void **state)
{
    static const double interval_s[] = {10, 20, 1e6};
    for (int k = 0; k < 3; ++k) {
        int64_t seen[SETS * MOST_ROWS] = {0};
        tess_source *source = open_sets(interval_s[k]);
        tess_samples samples = read_all(source);
        assert_int_equal(samples.origins->num_antennas, NAMES);
        assert_int_equal(samples.origins->num_fields, SETS);
        assert_int_equal(samples.origins->num_intervals, k == 0   ? TIMES + 3
                                                         : k == 1 ? (TIMES + 4) / 2
                                                                  : 1);
        for (int64_t row = 0; row < samples.num_rows; ++row) {
            check_row(source, &samples, row, samples.vis_first[row],
                      samples.num_chan[row], seen);
            if (k == 0) check_uvw(source, &samples, row);
        }
        check_all_seen(seen);
        tess_samples_free(&samples);
        tess_source_close(source);
    }
}

/* Antennas of one name share a number, unless each set is to have its own. */
static void test_split(void **state)
{
    static const char all[] = "ABCDEDFA"; /* of both sets, one behind the other */
    tess_source *source = open_sets(10);
    assert_int_equal(tess_source_samples(source).origins->num_antennas, 6);
    assert_int_equal(tess_source_antenna_set(source, 5), 1); /* F */
    assert_int_equal(tess_source_antenna_set(source, 6), -1);
    tess_source_split_antennas(source);
    assert_int_equal(tess_source_keep_origins(source, 10), TESS_OK);
    assert_int_equal(tess_source_samples(source).origins->num_antennas, 8);
    for (int32_t k = 0; k < 8; ++k) {
        assert_int_equal(tess_source_antenna_set(source, k), k / ANTENNAS);
        assert_int_equal(tess_source_antenna(source, k)->name[0], all[k]);
    }
    tess_source_close(source);
    (void)state;
}

/* Intervals that are too many for a row's number are refused; one interval is not. */
static void test_too_many(void **state)
{
    tess_source *source = open_sets(10);
    tess_error_clear();
    assert_int_equal(tess_source_keep_origins(source, 1e-7), TESS_ERR_USAGE);
    assert_non_null(strstr(tess_error_message(), "fewer times"));
    tess_error_clear();
    assert_null(tess_source_samples(source).origins);
    assert_int_equal(tess_source_keep_origins(source, 0), TESS_OK);
    assert_int_equal(tess_source_samples(source).origins->num_intervals, 1);
    tess_source_close(source);
}

/* The weeks between two nights have no intervals, and each night has its own from its
 * first integration on. So even short intervals can be numbered, of which all weeks
 * would have too many. */
static void test_nights(void **state)
{
    enum { WEEKS_OF_STEPS = 4 * 7 * 8640 + 1 };
    late[1] = WEEKS_OF_STEPS;
    write_set(1);
    tess_source *source = open_sets(10);
    tess_samples samples = read_all(source);
    assert_int_equal(samples.origins->num_intervals, SETS * TIMES);
    for (int64_t row = 0; row < samples.num_rows; ++row) {
        const tess_origin origin = tess_origin_of(samples.origins, samples.origin[row]);
        int set;
        const row_of_set written = written_row(&samples, samples.vis_first[row], &set);
        const int step = written.step;
        assert_int_equal(origin.interval, set * TIMES + step - late[set]);
        /* dates of UVFITS are rounded to some 10 µs */
        assert_true(fabs(tess_origins_begin_s(samples.origins, origin.interval) -
                         (START_S + STEP_S * (step - 0.5))) < 1e-3);
    }
    tess_samples_free(&samples);
    tess_source_close(source);
    tess_source_close(open_sets(1e-3));
    late[1] = 3;
    write_set(1);
    (void)state;
}

/* Nights that have antennas of their own need no numbers of pairs between nights. */
static void test_split_nights(void **state)
{
    late[1] = 8640;
    write_set(1);
    tess_source *source = open_sets(10);
    const tess_pol stokes_i = {.code = 1};
    tess_source_split_antennas(source);
    assert_int_equal(tess_source_keep_origins(source, 10), TESS_OK);
    assert_int_equal(tess_source_setup(source, &stokes_i, 1, 0, true, 1, 3000),
                     TESS_OK);
    tess_samples samples = read_all(source);
    assert_int_equal(samples.origins->num_antennas, 8);
    assert_int_equal(samples.origins->most_antennas, ANTENNAS);
    for (int64_t row = 0; row < samples.num_rows; ++row) {
        const tess_origin origin = tess_origin_of(samples.origins, samples.origin[row]);
        int set;
        const row_of_set written = written_row(&samples, samples.vis_first[row], &set);
        assert_int_equal(origin.antenna1, ANTENNAS * set + written.first);
        assert_int_equal(origin.antenna2, ANTENNAS * set + written.second);
    }
    tess_samples_free(&samples);
    tess_source_close(source);
    late[1] = 3;
    write_set(1);
    (void)state;
}

/* ---- many nights ---- */

enum { NIGHTS = TESS_ORIGINS_STRETCHES + 2, SHORT_A = 10, SHORT_B = 20 };

static bool read_nothing(void *context, const tess_vis_caller_rows *rows)
{
    (void)context;
    (void)rows;
    return false;
}

/* A set in memory that lasts for an hour, of which nothing is read. */
static void add_night(double start_s, char name[32])
{
    tess_vis_caller_set set = {.read = read_nothing};
    tess_vis_meta *meta = &set.meta;
    meta->num_segments = meta->num_fields = 1;
    meta->num_antennas = 2;
    meta->equinox = 2000;
    meta->time_start_mjd_s = start_s;
    meta->time_end_mjd_s = start_s + 3600;
    meta->segment = tess_alloc_zero(1, sizeof *meta->segment);
    meta->field = tess_alloc_zero(1, sizeof *meta->field);
    meta->antenna = tess_alloc_zero(2, sizeof *meta->antenna);
    tess_vis_segment *segment = meta->segment;
    *segment = (tess_vis_segment){.num_rows = 1, .num_chan = 1, .num_corr = 1};
    segment->corr[0] = tess_corr_parse("XX");
    segment->freq_hz = tess_alloc(1, sizeof *segment->freq_hz);
    segment->chan_width_hz = tess_alloc(1, sizeof *segment->chan_width_hz);
    segment->chan_spw = tess_alloc_zero(1, sizeof *segment->chan_spw);
    segment->freq_hz[0] = FREQ_HZ;
    segment->chan_width_hz[0] = 1e6;
    strcpy(meta->antenna[0].name, "A");
    strcpy(meta->antenna[1].name, "B");
    strcpy(meta->field->frame, "J2000");
    assert_int_equal(tess_vis_caller_add(&set, name), TESS_OK);
}

/* Of more nights than there are stretches, those with the shortest pauses between them
 * are one stretch, and so have intervals for these pauses. */
static void test_many_nights(void **state)
{
    static char name[NIGHTS][32];
    const char *paths[NIGHTS];
    double start_s[NIGHTS] = {START_S};
    const tess_selection selection = {.has_center = true};
    tess_source *source = NULL;
    for (int k = 1; k < NIGHTS; ++k)
        start_s[k] = start_s[k - 1] + 3600 +
                     (k == SHORT_A + 1 || k == SHORT_B + 1 ? 7200 : 86400 + 60 * k);
    for (int k = 0; k < NIGHTS; ++k) {
        add_night(start_s[k], name[k]);
        paths[NIGHTS - 1 - k] = name[k];
    }
    assert_int_equal(tess_source_open(world, paths, NIGHTS, &selection, &source),
                     TESS_OK);
    assert_int_equal(tess_source_keep_origins(source, 600), TESS_OK);
    const tess_origins *origins = tess_source_samples(source).origins;
    assert_int_equal(origins->num_stretches, TESS_ORIGINS_STRETCHES);
    assert_int_equal(origins->num_intervals, 7 * NIGHTS + 2 * (12 - 1));
    for (int k = 0; k < NIGHTS; ++k) {
        const int stretch = k - (k > SHORT_A) - (k > SHORT_B);
        const int32_t at = tess_origins_interval(origins, stretch, start_s[k] + 1234);
        const double begin_s = tess_origins_begin_s(origins, at);
        assert_int_equal(tess_origins_stretch_of(origins, at), stretch);
        assert_int_equal(tess_source_stretch(source, NIGHTS - 1 - k), stretch);
        assert_true(begin_s <= start_s[k] + 1234 && begin_s + 600 > start_s[k] + 1234);
    }
    tess_source_close(source);
    for (int k = 0; k < NIGHTS; ++k)
        tess_vis_caller_remove(name[k]);
    (void)state;
}

/* Times beyond those of a stretch belong to its interval at that end. */
static void test_times_beyond(void **state)
{
    const tess_origins origins = {.num_antennas = 3,
                                  .num_intervals = 7,
                                  .num_fields = 1,
                                  .most_antennas = 3,
                                  .interval_s = 5,
                                  .num_stretches = 3,
                                  .stretch = {{100, 0, 0}, {1002, 2, 0}, {2001, 6, 0}}};
    const struct {
        double time_s;
        int32_t stretch, interval;
    } expected[] = {{-1e30, 0, 0}, {104.9, 0, 0}, {105, 0, 1},        {1001, 0, 1},
                    {1001, 1, 2},  {1007, 1, 3},  {1990, 1, 5},       {2001, 2, 6},
                    {1e30, 2, 6},  {1e30, 0, 1},  {(double)NAN, 1, 2}};
    const double begin_s[] = {100, 105, 1002, 1007, 1012, 1017, 2001};
    for (size_t k = 0; k < sizeof expected / sizeof *expected; ++k)
        assert_int_equal(
            tess_origins_interval(&origins, expected[k].stretch, expected[k].time_s),
            expected[k].interval);
    for (int32_t k = 0; k < origins.num_intervals; ++k)
        assert_true(tess_origins_begin_s(&origins, k) == begin_s[k]);
    (void)state;
}

/* ---- correlations ---- */

/* The factors that make Stokes I of XX and YY, with gains of 2 at the first antenna and
 * 1/2 at the others. */
static void make_i(const void *context, int target, const tess_samples *samples,
                   int64_t row, double complex *factor)
{
    const tess_origin origin = tess_origin_of(samples->origins, samples->origin[row]);
    const tess_pol_mix *mix = context;
    for (int32_t c = 0; c < samples->num_chan[row]; ++c)
        for (int k = 0; k < CORRS; ++k)
            *factor++ = mix->coefficient[k] * (origin.antenna1 == 0 ? 2 : 0.5) *
                        (origin.antenna2 == 0 ? 2 : 0.5);
}

/* Correlations that are kept apart make the Stokes parameter that is made of them
 * otherwise when they are read, times the gains of their rows. */
static void test_correlations(void **state)
{
    static const tess_corr codes[CORRS] = {-5, -6};
    const tess_pol stokes_i = {.code = 1}, corr[CORRS] = {{.code = -5}, {.code = -6}};
    const tess_pol_mix mix = tess_pol_mix_of(&stokes_i, codes, CORRS);
    const tess_layout layout = {.threads = 2};
    const imager_job job = {.layout = &layout, .view = {1, make_i, .context = &mix}};
    tess_source *source = open_sets(10), *apart = open_sets_for(10, corr, CORRS);
    tess_source_share_weights(apart);
    tess_samples early = read_all(source), late = read_all(apart);
    tess_samples mixed = late;
    assert_int_equal(late.num_pol, CORRS);
    assert_true(late.num_weight == 1 && late.num_vis == early.num_vis);
    mixed.num_pol = 1;
    mixed.vis = tess_alloc(late.num_vis, 2 * sizeof(double));
    assert_non_null(mixed.vis);
    assert_int_equal(imager_view_apply(&job, make_i, &late, NULL, 1, &mixed), TESS_OK);
    for (int64_t row = 0; row < early.num_rows; ++row) {
        const tess_origin origin = tess_origin_of(early.origins, early.origin[row]);
        const double gain =
            (origin.antenna1 == 0 ? 2 : 0.5) * (origin.antenna2 == 0 ? 2 : 0.5);
        for (int64_t k = 2 * CHANS * row; k < 2 * CHANS * (row + 1); ++k)
            assert_true(fabs(((double *)mixed.vis)[k] -
                             gain * ((double *)early.vis)[k]) < 1e-12 * MOST_ROWS);
    }
    assert_memory_equal(early.weight, late.weight,
                        (size_t)early.num_vis * sizeof(double));
    tess_free(mixed.vis);
    tess_samples_free(&late);
    tess_samples_free(&early);
    tess_source_close(apart);
    tess_source_close(source);
}

/* ---- at the owners of bricks ---- */

static tess_grid_plan *make_plan(void)
{
    const tess_geom geom = {.nx = 64, .ny = 64, .scale_rad = 0.0005};
    const tess_backend *backend;
    tess_grid_plan *plan = NULL;
    tess_grid_opts opts;
    tess_grid_opts_default(&opts);
    opts.accuracy = 1e-6;
    opts.w_max_lambda = 700;
    opts.num_vis = SETS * MOST_ROWS * CHANS;
    opts.num_pol = 1;
    opts.chunk = 8;
    assert_int_equal(tess_backend_find("cpu", &backend), TESS_OK);
    assert_int_equal(tess_grid_plan_create(&geom, &opts, backend, &plan), TESS_OK);
    return plan;
}

static tess_partition *make_partition(const tess_grid_plan *plan,
                                      const tess_samples *samples)
{
    const tess_partition_opts opts = {.num_blocks = plan->num_blocks,
                                      .bricks_per_block = plan->tiles_u * plan->tiles_v,
                                      .num_groups = 1,
                                      .chunk = plan->opts.chunk,
                                      .cost_vis_s = 1e-7,
                                      .cost_brick_s = 1e-9,
                                      .always_split = true};
    tess_partition *partition = NULL;
    tess_brick_list counts = {0};
    assert_int_equal(tess_brick_list_count(plan, samples, true, 1, &counts), TESS_OK);
    assert_int_equal(tess_partition_create(world, &opts, counts.key, counts.num_vis,
                                           counts.first_run, counts.num_bricks,
                                           &partition),
                     TESS_OK);
    tess_brick_list_free(&counts);
    return partition;
}

/* Each run of the bricks still knows the origin of its row. */
static void check_runs(const tess_source *source, const tess_samples *samples,
                       const tess_brick_list *bricks)
{
    int64_t seen[SETS * MOST_ROWS] = {0};
    for (int64_t r = 0; r < bricks->num_runs; ++r) {
        const tess_run *run = &bricks->run[r];
        check_row(source, samples, run->row, run->first, run->count, seen);
        check_uvw(source, samples, run->row);
    }
    check_all_seen(seen);
}

static void test_owners(void **state)
{
    tess_source *source = open_sets(10);
    tess_samples samples = read_all(source), *owned, kept;
    tess_brick_list *bricks, kept_bricks = {0};
    tess_grid_plan *plan = make_plan();
    tess_partition *partition = make_partition(plan, &samples);
    tess_exchange *exchange = NULL;
    tess_spool *spool = NULL;
    assert_int_equal(
        tess_exchange_create(world, plan, partition, true, &samples, 500, &exchange),
        TESS_OK);
    assert_int_equal(tess_exchange_send(exchange, &samples, true, NULL, NULL), TESS_OK);
    tess_samples_free(&samples);
    assert_int_equal(tess_exchange_complete(exchange, 1, &owned, &bricks), TESS_OK);
    check_runs(source, owned, bricks);
    assert_int_equal(tess_spool_create(".", &spool), TESS_OK);
    assert_int_equal(tess_spool_write(spool, owned, bricks), TESS_OK);
    tess_exchange_destroy(exchange);
    kept = tess_spool_samples(spool);
    assert_int_equal(tess_spool_read(spool, 0, &kept, &kept_bricks), TESS_OK);
    check_runs(source, &kept, &kept_bricks);
    tess_samples_free(&kept);
    tess_brick_list_free(&kept_bricks);
    tess_spool_destroy(spool);
    tess_partition_destroy(partition);
    tess_grid_plan_destroy(plan);
    tess_source_close(source);
}

/* Appends copies of the rows first, first + step, ... */
static void copy_rows(const tess_samples *from, int64_t first, int64_t step,
                      tess_samples *to)
{
    *to = tess_samples_like(from);
    assert_int_equal(tess_samples_reserve(to, from->num_rows, from->num_vis), TESS_OK);
    for (int64_t row = first; row < from->num_rows; row += step) {
        const int64_t at = to->num_rows++, vis = from->vis_first[row];
        const size_t count = (size_t)from->num_chan[row];
        memcpy(to->uvw_m + 3 * at, from->uvw_m + 3 * row, 3 * sizeof *to->uvw_m);
        to->chan_base[at] = from->chan_base[row];
        to->num_chan[at] = from->num_chan[row];
        to->origin[at] = from->origin[row];
        memcpy((double *)to->vis + 2 * to->num_vis, (const double *)from->vis + 2 * vis,
               count * 2 * sizeof(double));
        memcpy((double *)to->weight + to->num_vis, (const double *)from->weight + vis,
               count * sizeof(double));
        to->num_vis += from->num_chan[row];
    }
}

/* Rows are dealt to teams, here one for each rank, as two outputs of each. They arrive
 * with their origins. */
static void test_teams(void **state)
{
    const int num = tess_comm_size(world);
    const imager_teams teams = {.all = world, .num = num, .members = 1};
    tess_source *source = open_sets(10);
    tess_samples samples = read_all(source), dealt[2] = {{0}}, one;
    team_parcel parcel = {0};
    int64_t seen[SETS * MOST_ROWS] = {0};
    assert_int_equal(team_parcel_create(&teams, &samples, 0, &parcel), TESS_OK);
    for (int team = 0; team < num; ++team, team_parcel_end_team(&parcel))
        for (int k = 0; k < 2; ++k) {
            copy_rows(&samples, 2 * team + k, 2 * num, &one);
            assert_int_equal(team_parcel_add(&parcel, &one), TESS_OK);
            assert_null(one.vis);
        }
    tess_samples_free(&samples);
    assert_int_equal(imager_teams_send(&teams, TESS_OK, &parcel, 2, dealt), TESS_OK);
    for (int k = 0; k < 2; ++k)
        for (int64_t row = 0; row < dealt[k].num_rows; ++row) {
            check_row(source, &dealt[k], row, dealt[k].vis_first[row],
                      dealt[k].num_chan[row], seen);
            check_uvw(source, &dealt[k], row);
        }
    check_all_seen(seen);
    team_parcel_free(&parcel);
    tess_samples_free(&dealt[0]);
    tess_samples_free(&dealt[1]);
    tess_source_close(source);
}

/* Outputs of the same rows are sent with these rows once, and arrive with them. The
 * room that they take is known before. The first team, the first rank, gets those of
 * all ranks. */
static void test_same_rows(void **state)
{
    enum { OUTPUTS = 3 };
    const int own = tess_comm_rank(world) == 0 ? OUTPUTS : 0;
    const imager_teams teams = {
        .all = world, .num = tess_comm_size(world), .members = 1};
    tess_source *source = open_sets(10);
    tess_samples samples = read_all(source), dealt[OUTPUTS] = {{0}}, copy;
    team_parcel parcel = {0};
    int64_t bytes = 0, room = 0;
    for (int k = 0; k < OUTPUTS; ++k)
        room +=
            team_parcel_bytes_of(&samples, samples.num_rows, samples.num_vis, k > 0);
    assert_int_equal(team_parcel_create(&teams, &samples, room, &parcel), TESS_OK);
    room = parcel.capacity;
    for (int k = 0; k < OUTPUTS; ++k) {
        const int64_t before = parcel.bytes;
        copy_rows(&samples, 0, 1, &copy);
        for (int64_t v = 0; v < 2 * copy.num_vis; ++v)
            ((double *)copy.vis)[v] += k;
        assert_int_equal(team_parcel_add(&parcel, &copy), TESS_OK);
        if (k == 1) bytes = parcel.bytes - before;
        if (k == 1 && samples.num_rows > 0)
            assert_true(bytes < before - 24 * samples.num_rows);
        if (k == 2) assert_int_equal(parcel.bytes - before, bytes);
    }
    assert_int_equal(parcel.capacity, room);
    assert_int_equal(imager_teams_send(&teams, TESS_OK, &parcel, own, dealt), TESS_OK);
    for (int k = 1; k < own; ++k) {
        const size_t rows = (size_t)dealt[0].num_rows;
        assert_int_equal(dealt[k].num_rows, dealt[0].num_rows);
        assert_int_equal(dealt[k].num_vis, dealt[0].num_vis);
        assert_memory_equal(dealt[k].uvw_m, dealt[0].uvw_m, rows * 3 * sizeof(double));
        assert_memory_equal(dealt[k].origin, dealt[0].origin, rows * sizeof(int32_t));
        for (int64_t v = 0; v < 2 * dealt[0].num_vis; ++v)
            assert_true(((double *)dealt[k].vis)[v] == ((double *)dealt[0].vis)[v] + k);
    }
    for (int k = 0; k < OUTPUTS; ++k)
        tess_samples_free(&dealt[k]);
    team_parcel_free(&parcel);
    tess_samples_free(&samples);
    tess_source_close(source);
}

/* A rank that could not pack its samples makes all fail, and nothing arrives. */
static void test_failed_parcel(void **state)
{
    const int last = tess_comm_size(world) - 1, rank = tess_comm_rank(world);
    const imager_teams teams = {.all = world, .num = 1, .members = last + 1};
    tess_samples dealt = {0};
    team_parcel parcel = {0};
    assert_int_equal(imager_teams_send(&teams, rank == last ? TESS_ERR_ALLOC : TESS_OK,
                                       &parcel, 1, &dealt),
                     rank == last ? TESS_ERR_ALLOC : TESS_ERR_PEER);
    assert_null(dealt.vis);
}

static int remove_entry(const char *path, const struct stat *info, int type,
                        struct FTW *where)
{
    return remove(path);
}

static void write_sets(void **state)
{
    for (int k = 0; k < SETS; ++k)
        write_set(k);
}

static void remove_sets(void **state)
{
    assert_int_equal(tess_comm_barrier(world), TESS_OK);
    for (int k = 0; k < SETS && tess_comm_rank(world) == 0; ++k)
        nftw(path_of(k).text, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

#ifdef TESS_TEST_MS
/* What follows sees a MeasurementSet. */
static void second_is_ms(void **state)
{
    format_of[1] = "ms";
}
#define AGAIN_OF_MS                                                                    \
    cmocka_unit_test(second_is_ms), cmocka_unit_test(write_sets),                      \
        cmocka_unit_test(test_rows), cmocka_unit_test(test_owners),                    \
        cmocka_unit_test(remove_sets),
#else
#define AGAIN_OF_MS
#endif

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(write_sets),
                                       cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_split),
                                       cmocka_unit_test(test_too_many),
                                       cmocka_unit_test(test_times_beyond),
                                       cmocka_unit_test(test_split_nights),
                                       cmocka_unit_test(test_nights),
                                       cmocka_unit_test(test_correlations),
                                       cmocka_unit_test(test_owners),
                                       cmocka_unit_test(test_teams),
                                       cmocka_unit_test(test_same_rows),
                                       cmocka_unit_test(test_failed_parcel),
                                       cmocka_unit_test(test_many_nights),
                                       cmocka_unit_test(remove_sets),
                                       AGAIN_OF_MS};
    if (tess_comm_start(&argc, &argv, &world) != TESS_OK) return 1;
    TEST_ON_RANKS(world, tests);
    tess_comm_finish(world);
    return 0;
}
