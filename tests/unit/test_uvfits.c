/* UVFITS: files of every layout decode to the values put in, new files and copies come
 * back unchanged, bad files are refused with the documented status. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fitsio.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tess_const.h"
#include "tess_mem.h"
#include "tess_vis.h"
#include "uvfits_sample.h"

#define FOLDER "test_uvfits.tmp"
#define FILE_A FOLDER "/a.uvfits"
#define FILE_B FOLDER "/b.uvfits"

/* ---- helpers ---- */

static int set_up(void **state)
{
    (void)state;
    mkdir(FOLDER, 0777);
    return 0;
}

/* Removes what is in the folder and returns how many files there were. */
static int empty_folder(void)
{
    int count = 0;
    DIR *folder = opendir(FOLDER);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char path[512];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, FOLDER "/%s", entry->d_name);
        assert_int_equal(unlink(path), 0);
        ++count;
    }
    if (folder) closedir(folder);
    return count;
}

static int tear_down(void **state)
{
    (void)state;
    empty_folder();
    rmdir(FOLDER);
    tess_error_clear();
    return 0;
}

static tess_vis_reader *open_ok(const char *path, const tess_vis_select *select)
{
    tess_vis_reader *reader = NULL;
    if (tess_vis_open(path, select, &reader) != TESS_OK)
        fail_msg("%s", tess_error_message());
    return reader;
}

static void refuse(const char *path, const tess_vis_select *select,
                   tess_status expected, const char *word)
{
    tess_vis_reader *reader = NULL;
    tess_error_clear();
    assert_int_equal(tess_vis_open(path, select, &reader), expected);
    assert_null(reader);
    if (!strstr(tess_error_message(), word)) fail_msg("%s", tess_error_message());
    assert_non_null(strstr(tess_error_message(), path));
    tess_error_clear();
}

/* All of a segment in one block, against the description. `group_of` lists the groups,
 * or is NULL for all; sign multiplies the visibilities. */
static void check_rows(const sample *s, tess_vis_reader *reader, int segment,
                       const int *group_of, double sign)
{
    tess_vis_block block = {0};
    const tess_vis_segment *table = &tess_vis_reader_meta(reader)->segment[segment];
    const int num_corr = table->num_corr;
    assert_int_equal(tess_vis_read(reader, segment, 0, table->num_rows, 3, &block),
                     TESS_OK);
    for (int row = 0; row < table->num_rows; ++row) {
        const int group = group_of ? group_of[row] : row;
        int a, b;
        antennas_of(s, group, &a, &b);
        const int first = group % s->num_subarrays * s->num_antennas;
        assert_int_equal(block.antenna1[row], first + a);
        assert_int_equal(block.antenna2[row], first + b);
        if (s->bitpix < 0) {
            const double u_m = TESS_SPEED_OF_LIGHT_M_S * 1e-6 * (group + 1);
            assert_true(fabs(block.uvw_m[3 * row] - u_m) < 1e-6 * u_m);
            assert_true(fabs(block.uvw_m[3 * row + 1] + 2 * u_m) < 2e-6 * u_m);
            const double mjd = 2450002.5 - 2400000.5 + group / 1024.0;
            assert_true(fabs(block.time_mjd_s[row] - mjd * 86400) < 1e-5);
        }
        for (int chan = 0; chan < table->num_chan; ++chan)
            for (int corr = 0; corr < num_corr; ++corr) {
                const int64_t at =
                    ((int64_t)row * table->num_chan + chan) * num_corr + corr;
                const int chan_if = chan / s->num_chan, in_if = chan % s->num_chan;
                const double weight =
                    s->num_complex > 2 ? value_at(group, chan_if, in_if, corr, 2) : 1.0;
                for (int part = 0; part < 2; ++part)
                    assert_true(
                        block.vis[2 * at + part] ==
                        (float)(sign * value_at(group, chan_if, in_if, corr, part)));
                assert_true(block.weight[at] ==
                            (weight > 0 ? (float)weight : TESS_WEIGHT_FLAGGED));
            }
    }
    tess_vis_block_free(&block);
}

/* ---- tests ---- */

static void every_layout_is_read_and_copied(void **state)
{
    (void)state;
    static const char *const orders[] = {"CSFIRD", "DRIFSC", "SCIFRD", "FCSIRD"};
    static const int bitpixes[] = {-32, -64, 32, 16};
    tess_comm *comm = NULL;
    assert_int_equal(tess_comm_self(&comm), TESS_OK);
    for (int k = 0; k < 4 * 4 * 2 * 2; ++k) {
        sample s = plain;
        s.axes = orders[k % 4];
        s.bitpix = bitpixes[k / 4 % 4];
        s.num_complex = 2 + k / 16 % 2;
        if (k / 32) s.bscale = 0.25, s.bzero = 3;
        make(&s, FILE_A);
        tess_vis_reader *reader = open_ok(FILE_A, NULL);
        const tess_vis_meta *meta = tess_vis_reader_meta(reader);
        assert_int_equal(meta->num_segments, 1);
        assert_int_equal(meta->segment[0].num_chan, 6);
        assert_int_equal(meta->segment[0].corr[3], -8);
        assert_true(meta->segment[0].freq_hz[5] == 1.4e9 + 2e6 + 1e8);
        assert_int_equal(meta->segment[0].chan_spw[5], 1);
        assert_true(fabs(meta->ra_rad - 123.5 * TESS_RAD_PER_DEG) < 1e-12);
        check_rows(&s, reader, 0, NULL, 1);
        /* a copy with the visibilities negated */
        tess_vis_writer *writer = NULL;
        tess_vis_block block = {0};
        assert_int_equal(
            tess_vis_create_like(comm, FILE_B, reader, NULL, true, &writer), 0);
        for (int row = 0; row < s.num_groups; row += 5) {
            const int count = s.num_groups - row < 5 ? s.num_groups - row : 5;
            assert_int_equal(tess_vis_read(reader, 0, row, count, 1, &block), TESS_OK);
            for (int j = 0; j < count * 6 * 4 * 2; ++j)
                block.vis[j] = -block.vis[j];
            assert_int_equal(tess_vis_write(writer, &block), TESS_OK);
        }
        tess_vis_close(reader); /* the writer does not need it */
        assert_int_equal(tess_vis_finish(writer), TESS_OK);
        tess_vis_writer_destroy(writer);
        tess_vis_block_free(&block);
        reader = open_ok(FILE_B, NULL);
        check_rows(&s, reader, 0, NULL, -1);
        tess_vis_close(reader);
        assert_int_equal(empty_folder(), 2);
    }
    tess_comm_free(comm);
}

static void fields_and_setups_are_chosen(void **state)
{
    (void)state;
    sample s = plain;
    s.params = "UU,VV,WW,BASELINE,DATE,DATE,SOURCE,FREQSEL,INTTIM";
    s.num_sources = 3;
    s.num_setups = 2;
    s.num_groups = 24;
    make(&s, FILE_A);
    refuse(FILE_A, NULL, TESS_ERR_USAGE, "SRCB (8)");
    refuse(FILE_A, &(tess_vis_select){.field = "OTHER"}, TESS_ERR_USAGE, "SRCC");
    static const char *const names[] = {"srcb", "8"};
    for (int k = 0; k < 2; ++k) {
        tess_vis_reader *reader =
            open_ok(FILE_A, &(tess_vis_select){.field = names[k]});
        const tess_vis_meta *meta = tess_vis_reader_meta(reader);
        assert_int_equal(meta->num_fields, 3);
        assert_int_equal(meta->field[1].num_rows, 8);
        assert_true(fabs(meta->ra_rad - 11.0 * TESS_RAD_PER_DEG) < 1e-12);
        assert_true(fabs(meta->dec_rad + 21.0 * TESS_RAD_PER_DEG) < 1e-12);
        assert_true(meta->integration_s == 4.0);
        assert_int_equal(meta->num_segments, 2);
        for (int segment = 0; segment < 2; ++segment) {
            int groups[24], count = 0;
            for (int g = 0; g < 24; ++g)
                if (g % 3 == 1 && g / 2 % 2 == segment) groups[count++] = g;
            assert_int_equal(meta->segment[segment].num_rows, count);
            assert_true(meta->segment[segment].freq_hz[0] == 1.4e9 + 1e9 * segment);
            check_rows(&s, reader, segment, groups, 1);
        }
        tess_vis_close(reader);
    }
    const int spw = 3; /* IF 1 of the second set-up */
    tess_vis_reader *reader = open_ok(
        FILE_A,
        &(tess_vis_select){
            .field = "7", .spw = &spw, .num_spw = 1, .chan_first = 1, .chan_end = 2});
    const tess_vis_meta *meta = tess_vis_reader_meta(reader);
    assert_int_equal(meta->num_segments, 1);
    assert_int_equal(meta->segment[0].num_chan, 1);
    assert_true(meta->segment[0].freq_hz[0] == 1.4e9 + 1e9 + 1e8 + 1e6);
    tess_vis_close(reader);
    refuse(FILE_A, &(tess_vis_select){.field = "7", .chan_first = 3}, TESS_ERR_USAGE,
           "channels");
    const int absent = 4;
    refuse(FILE_A, &(tess_vis_select){.field = "7", .spw = &absent, .num_spw = 1},
           TESS_ERR_USAGE, "spectral window");
}

static void antennas_are_found_by_number(void **state)
{
    (void)state;
    sample s = plain;
    s.num_subarrays = 2;
    make(&s, FILE_A);
    tess_vis_reader *reader = open_ok(FILE_A, NULL);
    assert_int_equal(tess_vis_reader_meta(reader)->num_antennas, 8);
    assert_string_equal(tess_vis_reader_meta(reader)->antenna[5].name, "S2A1");
    check_rows(&s, reader, 0, NULL, 1);
    tess_vis_close(reader);
    s.params = "UU,VV,WW,DATE,ANTENNA1,ANTENNA2,SUBARRAY";
    s.bitpix = 32;
    make(&s, FILE_A);
    reader = open_ok(FILE_A, NULL);
    check_rows(&s, reader, 0, NULL, 1);
    tess_vis_close(reader);
    s = plain;
    s.num_antennas = 300;
    s.num_groups = 299;
    make(&s, FILE_A);
    reader = open_ok(FILE_A, NULL);
    check_rows(&s, reader, 0, NULL, 1);
    tess_vis_close(reader);
    s = plain; /* no tables: numbers become names */
    s.no_tables = true;
    s.num_if = 1;
    make(&s, FILE_A);
    reader = open_ok(FILE_A, NULL);
    assert_int_equal(tess_vis_reader_meta(reader)->num_antennas, 4);
    assert_string_equal(tess_vis_reader_meta(reader)->antenna[0].name, "ANT14");
    tess_vis_close(reader);
}

/* Some of the numbers 256 a + b + 0.01 (subarray - 1) become smaller in single
 * precision, so that their fraction has to be rounded. */
static void subarrays_are_rounded(void **state)
{
    (void)state;
    sample s = plain;
    s.num_subarrays = 3;
    s.num_antennas = 30;
    s.num_groups = 29;
    int num_smaller = 0;
    for (int group = 0; group < s.num_groups; ++group) {
        const double number = param_at(&s, "BASELINE", group, 0);
        num_smaller += (double)(float)number < number;
    }
    assert_true(num_smaller > 3);
    make(&s, FILE_A);
    tess_vis_reader *reader = open_ok(FILE_A, NULL);
    check_rows(&s, reader, 0, NULL, 1);
    tess_vis_close(reader);
}

static double first_time(const sample *s)
{
    make(s, FILE_A);
    tess_vis_block block = {0};
    tess_vis_reader *reader = open_ok(FILE_A, NULL);
    assert_int_equal(tess_vis_read(reader, 0, 0, 1, 1, &block), TESS_OK);
    const double time_mjd_s = block.time_mjd_s[0];
    assert_true(fabs(tess_vis_reader_meta(reader)->time_start_mjd_s - time_mjd_s) <
                1e-5);
    tess_vis_block_free(&block);
    tess_vis_close(reader);
    return time_mjd_s;
}

/* Times are given in UTC: the offset of IAT is taken off, by either keyword. */
static void atomic_time_becomes_utc(void **state)
{
    (void)state;
    sample s = plain;
    const double utc_s = first_time(&s), close_s = 1e-5;
    s.iat_utc_s = 34;
    s.time_system = "UTC";
    assert_true(fabs(first_time(&s) - utc_s) < close_s);
    s.time_system = "IAT";
    assert_true(fabs(first_time(&s) - (utc_s - 34)) < close_s);
    s.time_system = "TAI";
    assert_true(fabs(first_time(&s) - (utc_s - 34)) < close_s);
    s.iat_utc_s = 0;
    s.dat_utc_s = 33;
    assert_true(fabs(first_time(&s) - (utc_s - 33)) < close_s);
}

/* Parameters of one name add, each with its own PSCAL. */
static void each_date_has_its_scale(void **state)
{
    (void)state;
    sample s = plain;
    s.second_date_scale = 0.125;
    make(&s, FILE_A);
    tess_vis_reader *reader = open_ok(FILE_A, NULL);
    check_rows(&s, reader, 0, NULL, 1);
    tess_vis_close(reader);
}

/* BLANK is an integer as stored, before BSCALE; beside floating point it means nothing,
 * whatever it holds. */
static void blanks_are_no_numbers(void **state)
{
    (void)state;
    sample s = plain;
    static const char *const long_text = "BLANK   = 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'";
    for (int bitpix = 16; bitpix <= 32; bitpix += 16) {
        tess_vis_block block = {0};
        s.bitpix = bitpix;
        s.bscale = 0.25;
        s.bzero = 3;
        s.card = "BLANK   =                  388"; /* (100 - BZERO) / BSCALE */
        make(&s, FILE_A);
        tess_vis_reader *reader = open_ok(FILE_A, NULL);
        assert_int_equal(tess_vis_read(reader, 0, 0, s.num_groups, 1, &block), TESS_OK);
        const int64_t count = block.num_rows * block.num_chan * block.num_corr;
        int num_blank = 0;
        for (int64_t k = 0; k < 2 * count; ++k)
            num_blank += isnan(block.vis[k]);
        /* the parts are 0, 1, 2 ... and -1, -2, -3 ... of groups, IFs, channels, Stokes
         */
        assert_int_equal(num_blank, 1);
        assert_true(isnan(block.vis[2 * 100]));
        tess_vis_close(reader);
        tess_vis_block_free(&block);
        s.card = long_text;
        make(&s, FILE_A);
        refuse(FILE_A, NULL, TESS_ERR_INPUT, "BLANK");
    }
    s = plain;
    static const char *const ignored[] = {"BLANK   =                  100", long_text};
    for (int k = 0; k < 2; ++k) {
        s.card = ignored[k];
        make(&s, FILE_A);
        tess_vis_reader *reader = open_ok(FILE_A, NULL);
        check_rows(&s, reader, 0, NULL, 1);
        tess_vis_close(reader);
    }
}

/* Zero, negative, fractional and missing ones, which are 0 (FITS standard 4.0, section
 * 8.2). */
static void reference_pixels_may_be_anywhere(void **state)
{
    (void)state;
    static const double pixels[][2] = {
        {0, 0}, {-2, -1}, {3, 2.5}, {1, -0.25}, {NAN, NAN}};
    for (size_t k = 0; k < sizeof pixels / sizeof *pixels; ++k) {
        sample s = plain;
        const double stokes = isnan(pixels[k][0]) ? 0 : pixels[k][0];
        const double freq = isnan(pixels[k][1]) ? 0 : pixels[k][1];
        s.crpix = pixels[k];
        s.stokes_first = -5 - (stokes - 1);
        make(&s, FILE_A);
        tess_vis_reader *reader = open_ok(FILE_A, NULL);
        const tess_vis_segment *segment = &tess_vis_reader_meta(reader)->segment[0];
        for (int corr = 0; corr < 4; ++corr)
            assert_int_equal(segment->corr[corr], -5 - corr);
        for (int chan = 0; chan < s.num_chan; ++chan) {
            const double wanted = s.freq_hz + (chan + 1 - freq) * s.step_hz;
            assert_true(fabs(segment->freq_hz[chan] - wanted) < 1e-3);
        }
        tess_vis_close(reader);
    }
}

/* Against casacore's conversion of 123.5, -45.25 deg on MJD 50002: places within 1e-9
 * deg, and the position angle of North, to which v is turned. */
static void frames_become_j2000(void **state)
{
    (void)state;
    static const struct {
        const char *card, *frame;
        double ra_deg, dec_deg, north_rad;
    } cases[] = {{"EPOCH   =               1950.0", "B1950", 123.9063467400433,
                  -45.40447357034712, 0.0057501638},
                 {"RADESYS = 'ICRS    '", "ICRS", 123.50000899305809,
                  -45.24999903189379, -1.213e-7},
                 {"EQUINOX =               2000.0", "J2000", 123.5, -45.25, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        sample s = plain;
        tess_vis_block block = {0};
        s.card = cases[k].card;
        make(&s, FILE_A);
        tess_vis_reader *reader = open_ok(FILE_A, NULL);
        const tess_vis_meta *meta = tess_vis_reader_meta(reader);
        const double ra_deg = meta->ra_rad / TESS_RAD_PER_DEG;
        const double dec_deg = meta->dec_rad / TESS_RAD_PER_DEG;
        const double c = cos(cases[k].north_rad), n = sin(cases[k].north_rad);
        assert_string_equal(meta->field[0].frame, cases[k].frame);
        assert_true(fabs(ra_deg - cases[k].ra_deg) < 1e-9);
        assert_true(fabs(dec_deg - cases[k].dec_deg) < 1e-9);
        assert_int_equal(tess_vis_read(reader, 0, 0, 1, 1, &block), TESS_OK);
        const double u_m = TESS_SPEED_OF_LIGHT_M_S * 1e-6, v_m = -2 * u_m;
        assert_true(fabs(block.uvw_m[0] - (c * u_m + n * v_m)) < 1e-6 * u_m);
        assert_true(fabs(block.uvw_m[1] - (c * v_m - n * u_m)) < 2e-6 * u_m);
        tess_vis_block_free(&block);
        tess_vis_close(reader);
    }
    sample s = plain;
    s.card = "EPOCH   =               1975.0";
    make(&s, FILE_A);
    refuse(FILE_A, NULL, TESS_ERR_INPUT, "FK4 of equinox 1975");
}

/* Neighbouring channels are read as one run, however many there are. */
static void runs_are_as_long_as_the_band(void **state)
{
    (void)state;
    sample s = plain;
    s.num_chan = 70000;
    s.num_if = s.num_stokes = 1;
    s.num_groups = 2;
    s.step_hz = 1e3;
    make(&s, FILE_A);
    tess_vis_reader *reader = open_ok(FILE_A, NULL);
    assert_int_equal(tess_vis_reader_meta(reader)->segment[0].num_chan, 70000);
    check_rows(&s, reader, 0, NULL, 1);
    tess_vis_close(reader);
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    sample s = plain;
    refuse(FILE_A, NULL, TESS_ERR_IO, "No such file");
    refuse(FOLDER, NULL, TESS_ERR_INPUT, "table.dat");
    FILE *file = fopen(FILE_A, "w");
    fputs("not a FITS file at all\n", file);
    fclose(file);
    refuse(FILE_A, NULL, TESS_ERR_INPUT, "not a FITS");
    make(&s, FILE_A);
    assert_int_equal(truncate(FILE_A, 7000), 0);
    refuse(FILE_A, NULL, TESS_ERR_INPUT, "truncated");
    make(&s, FILE_A);
    struct stat info;
    stat(FILE_A, &info);
    assert_int_equal(truncate(FILE_A, info.st_size - 2880), 0);
    refuse(FILE_A, NULL, TESS_ERR_INPUT, "AN table");
    assert_int_equal(truncate(FILE_A, info.st_size - 2880 - 100), 0);
    refuse(FILE_A, NULL, TESS_ERR_INPUT, "truncated");
    s.num_groups = 0;
    s.no_tables = true;
    make(&s, FILE_A);
    refuse(FILE_A, NULL, TESS_ERR_INPUT, "GCOUNT = 0");
    s = plain;
    s.freq_hz = 0;
    make(&s, FILE_A);
    refuse(FILE_A, NULL, TESS_ERR_INPUT, "frequency 0");
    s = plain;
    s.freq_hz = NAN;
    s.no_tables = true;
    s.num_if = 1;
    make(&s, FILE_A);
    refuse(FILE_A, NULL, TESS_ERR_INPUT, "");
    s = plain;
    s.no_tables = true;
    make(&s, FILE_A);
    refuse(FILE_A, NULL, TESS_ERR_INPUT, "FQ");
    s = plain;
    s.num_complex = 4;
    make(&s, FILE_A);
    refuse(FILE_A, NULL, TESS_ERR_INPUT, "COMPLEX");
    s = plain;
    s.stokes_first = 3;
    s.stokes_step = 1;
    make(&s, FILE_A);
    refuse(FILE_A, NULL, TESS_ERR_INPUT, "STOKES");
    s = plain;
    s.crpix = (const double[]){0.5, 1};
    make(&s, FILE_A);
    refuse(FILE_A, NULL, TESS_ERR_INPUT, "STOKES");
    fitsfile *fits = NULL;
    int failed = 0;
    long lengths[] = {4, 4};
    fits_create_diskfile(&fits, FILE_B, &failed);
    fits_create_img(fits, FLOAT_IMG, 2, lengths, &failed);
    fits_close_file(fits, &failed);
    assert_int_equal(failed, 0);
    refuse(FILE_B, NULL, TESS_ERR_INPUT, "random groups");
}

/* ---- new files ---- */

enum { NEW_ROWS = 40, NEW_CHAN = 6, NEW_CORR = 4 };

typedef struct new_set {
    double freq_hz[NEW_CHAN], width_hz[NEW_CHAN];
    int32_t spw[NEW_CHAN];
    tess_vis_segment segment;
    tess_vis_antenna antenna[300];
    tess_vis_field field;
    tess_vis_meta meta;
} new_set;

static void describe(new_set *set, int num_antennas)
{
    *set = (new_set){.segment = {.num_rows = NEW_ROWS,
                                 .num_chan = NEW_CHAN,
                                 .num_corr = NEW_CORR,
                                 .corr = {-5, -7, -8, -6}}}; /* as an MS orders them */
    for (int k = 0; k < NEW_CHAN; ++k) {
        set->freq_hz[k] = 1.1e9 + 123.456 + 1e5 * k;
        set->width_hz[k] = 1e5;
    }
    for (int k = 0; k < num_antennas; ++k) {
        set->antenna[k] = (tess_vis_antenna){
            .xyz_m = {5.1e6 + 3 * k, 2.0e6 - k, -3.2e6 + k}, .diameter_m = 13.5};
        snprintf(set->antenna[k].name, sizeof set->antenna[k].name, "antenna%d", k);
    }
    set->segment.freq_hz = set->freq_hz;
    set->segment.chan_width_hz = set->width_hz;
    set->segment.chan_spw = set->spw;
    set->meta = (tess_vis_meta){.telescope = "MeerKAT",
                                .object = "FIELD",
                                .equinox = 2000,
                                .ra_rad = 1.25,
                                .dec_rad = -0.5,
                                .time_start_mjd_s = 59000.9 * 86400,
                                .num_segments = 1,
                                .segment = &set->segment,
                                .num_fields = 1,
                                .field = &set->field,
                                .num_antennas = num_antennas,
                                .antenna = set->antenna};
}

/* Single-precision seconds of light, kept in memory that the compiler must respect. */
static double stored(double uvw_m)
{
    const volatile float uvw_s = (float)(uvw_m / TESS_SPEED_OF_LIGHT_M_S);
    return TESS_SPEED_OF_LIGHT_M_S * (double)uvw_s;
}

static void fill_block(tess_vis_block *block, int row_first, int num_rows,
                       int num_antennas)
{
    assert_int_equal(tess_vis_block_resize(block, num_rows, NEW_CHAN, NEW_CORR),
                     TESS_OK);
    block->segment = 0;
    block->row_first = row_first;
    for (int k = 0; k < num_rows; ++k) {
        const int row = row_first + k;
        for (int j = 0; j < 3; ++j)
            block->uvw_m[3 * k + j] = stored(37.5 * (row + 1) * (j - 1.3));
        block->time_mjd_s[k] = 59000.9 * 86400 + 1000.123 * row; /* over midnight */
        block->integration_s[k] = 8;
        block->antenna1[k] = row % (num_antennas - 1);
        block->antenna2[k] = num_antennas - 1;
        for (int j = 0; j < NEW_CHAN * NEW_CORR; ++j) {
            const int at = k * NEW_CHAN * NEW_CORR + j;
            block->vis[2 * at] = 0.1f * (float)row + (float)j;
            block->vis[2 * at + 1] = -1e-3f * (float)j;
            block->weight[at] = 1.0f + 0.1f * (float)j;
            if (j == 3) block->weight[at] = TESS_WEIGHT_FLAGGED;
            if (j == 5) block->vis[2 * at] = NAN;
            if (j == 7) block->weight[at] = NAN;
        }
    }
}

static bool same(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void round_trip(new_set *set)
{
    tess_comm *comm = NULL;
    tess_vis_writer *writer = NULL;
    tess_vis_block block = {0}, back = {0};
    const int num_antennas = set->meta.num_antennas;
    assert_int_equal(tess_comm_self(&comm), TESS_OK);
    if (tess_vis_create(comm, FILE_A, &set->meta, true, &writer) != TESS_OK)
        fail_msg("%s", tess_error_message());
    for (int row = NEW_ROWS - 10; row >= 0; row -= 10) { /* any order */
        fill_block(&block, row, 10, num_antennas);
        assert_int_equal(tess_vis_write(writer, &block), TESS_OK);
    }
    assert_true(tess_vis_stored_uvw(writer, 1e5 / 3) == stored(1e5 / 3));
    assert_int_equal(access(FILE_A, F_OK), -1);
    assert_int_equal(tess_vis_finish(writer), TESS_OK);
    tess_vis_writer_destroy(writer);
    tess_vis_reader *reader = open_ok(FILE_A, NULL);
    const tess_vis_meta *meta = tess_vis_reader_meta(reader);
    const tess_vis_segment *segment = &meta->segment[0];
    assert_int_equal(segment->num_chan, NEW_CHAN);
    assert_int_equal(segment->num_corr, NEW_CORR);
    assert_int_equal(meta->num_antennas, num_antennas);
    assert_true(fabs(meta->ra_rad - 1.25) < 1e-14 && fabs(meta->dec_rad + 0.5) < 1e-14);
    for (int k = 0; k < NEW_CHAN; ++k)
        assert_true(fabs(segment->freq_hz[k] - set->freq_hz[k]) < 1e-6);
    for (int k = 0; k < num_antennas; ++k)
        for (int j = 0; j < 3; ++j)
            assert_true(fabs(meta->antenna[k].xyz_m[j] - set->antenna[k].xyz_m[j]) <
                        1e-6);
    static const int order[] = {0, 3, 1, 2}; /* XX YY XY YX of XX XY YX YY */
    fill_block(&block, 0, NEW_ROWS, num_antennas);
    assert_int_equal(tess_vis_read(reader, 0, 0, NEW_ROWS, 2, &back), TESS_OK);
    for (int row = 0; row < NEW_ROWS; ++row) {
        for (int j = 0; j < 3; ++j)
            assert_true(back.uvw_m[3 * row + j] == block.uvw_m[3 * row + j]);
        assert_true(fabs(back.time_mjd_s[row] - block.time_mjd_s[row]) < 1e-5);
        assert_true(back.integration_s[row] == 8);
        assert_int_equal(back.antenna1[row], block.antenna1[row]);
        assert_int_equal(back.antenna2[row], block.antenna2[row]);
        for (int chan = 0; chan < NEW_CHAN; ++chan)
            for (int corr = 0; corr < NEW_CORR; ++corr) {
                const int first = (row * NEW_CHAN + chan) * NEW_CORR;
                const int at = first + corr, from = first + order[corr];
                assert_true(same(back.vis[2 * at], block.vis[2 * from]));
                assert_true(same(back.vis[2 * at + 1], block.vis[2 * from + 1]));
                assert_true(same(back.weight[at], block.weight[from]));
            }
    }
    tess_vis_close(reader);
    tess_vis_block_free(&block);
    tess_vis_block_free(&back);
    tess_comm_free(comm);
    assert_int_equal(empty_folder(), 1);
}

static void new_files_come_back(void **state)
{
    (void)state;
    new_set *set = tess_alloc(1, sizeof *set);
    describe(set, 5);
    round_trip(set);
    describe(set, 300);
    round_trip(set);
    describe(set, 5);
    for (int k = 0; k < NEW_CHAN; ++k)
        set->freq_hz[k] = 2e9 - 1e5 * k; /* falling */
    round_trip(set);
    describe(set, 5);
    for (int k = 3; k < NEW_CHAN; ++k)
        set->freq_hz[k] += 7.77e7; /* two IFs */
    round_trip(set);
    describe(set, 5);
    for (int k = 0; k < NEW_CHAN; ++k)
        set->freq_hz[k] *= 1 + 0.01 * k; /* six IFs */
    round_trip(set);
    tess_free(set);
}

static void refuse_new(tess_comm *comm, const char *path, const tess_vis_meta *meta,
                       bool overwrite, tess_status expected)
{
    tess_vis_writer *writer = NULL;
    tess_error_clear();
    assert_int_equal(tess_vis_create(comm, path, meta, overwrite, &writer), expected);
    assert_null(writer);
    assert_non_null(strstr(tess_error_message(), path));
    tess_error_clear();
}

static void unfinished_files_vanish(void **state)
{
    (void)state;
    tess_comm *comm = NULL;
    tess_vis_writer *writer = NULL;
    tess_vis_block block = {0};
    new_set *set = tess_alloc(1, sizeof *set);
    describe(set, 5);
    assert_int_equal(tess_comm_self(&comm), TESS_OK);
    assert_int_equal(tess_vis_create(comm, FILE_A, &set->meta, false, &writer),
                     TESS_OK);
    fill_block(&block, 0, 10, 5);
    assert_int_equal(tess_vis_write(writer, &block), TESS_OK);
    tess_vis_writer_destroy(writer);
    assert_int_equal(empty_folder(), 0);
    refuse_new(comm, FOLDER "/none/a.uvfits", &set->meta, false, TESS_ERR_IO);
    make(&plain, FILE_A);
    refuse_new(comm, FILE_A, &set->meta, false, TESS_ERR_IO);
    set->segment.corr[1] = 1; /* Stokes among correlations */
    refuse_new(comm, FILE_A, &set->meta, true, TESS_ERR_USAGE);
    tess_vis_reader *reader = open_ok(FILE_A, NULL);
    check_rows(&plain, reader, 0, NULL, 1);
    assert_int_equal(
        tess_vis_create_column(comm, reader, "MODEL_DATA", NULL, false, &writer),
        TESS_ERR_USAGE);
    tess_vis_close(reader);
    assert_int_equal(empty_folder(), 1);
    tess_vis_block_free(&block);
    tess_comm_free(comm);
    tess_free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_layout_is_read_and_copied, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(fields_and_setups_are_chosen, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(antennas_are_found_by_number, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(subarrays_are_rounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(atomic_time_becomes_utc, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_date_has_its_scale, set_up, tear_down),
        cmocka_unit_test_setup_teardown(blanks_are_no_numbers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(reference_pixels_may_be_anywhere, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(frames_become_j2000, set_up, tear_down),
        cmocka_unit_test_setup_teardown(runs_are_as_long_as_the_band, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(bad_files_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(new_files_come_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unfinished_files_vanish, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
