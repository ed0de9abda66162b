/* Gains of facets: which antenna has which beam, voltages of beams, intervals of time,
 * and products of solutions and beams. */
#define _GNU_SOURCE /* mkdtemp */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <complex.h>
#include <erfa.h>
#include <fitsio.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gains.h"
#include "h5parm_sample.h"
#include "primary_beam.h"
#include "tess_beam_models.h"
#include "tess_comm.h"
#include "tess_const.h"

enum { ANTENNAS = 4, FACETS = 3 };

static tess_comm *comm;
static char root[] = "/tmp/tess_gains_XXXXXX";

static const double START = 5.0e9, HZ[] = {9.5e8, 1.0e9, 1.05e9};

/* MeerKAT's place, with antennas a kilometre apart. */
static tess_vis_antenna antennas[ANTENNAS] = {
    {"m000", {5109271.5, 2006808.9, -3239130.7}, 13.5},
    {"m001", {5109284.8, 2006824.2, -3239100.1}, 13.5},
    {"s0002", {5109272.1, 2006783.5, -3239145.3}, 15},
    {"CM03", {5109294.7, 2006432.5, -3239332.2}, 7}};
static tess_vis_field field = {.pointing_rad = {0.5, -0.6}};
static const tess_vis_meta meta = {.telescope = "MeerKAT",
                                   .num_fields = 1,
                                   .field = &field,
                                   .num_antennas = ANTENNAS,
                                   .antenna = antennas,
                                   .time_start_mjd_s = 5.0e9,
                                   .time_end_mjd_s = 5.0e9 + 3600};

/* At the pointing centre, beside it, and behind the Earth. */
static tess_facet facet[FACETS] = {
    {.name = "a", .ra_rad = 0.5, .dec_rad = -0.6, .num_pixels = 10000},
    {.name = "b", .ra_rad = 0.512, .dec_rad = -0.595, .num_pixels = 10000},
    {.name = "c", .ra_rad = 0.5 + TESS_PI, .dec_rad = 0.6, .num_pixels = 10000}};
static const tess_facets facets = {
    .image = {.geom = {.nx = 512, .ny = 512, .scale_rad = 1e-4}},
    .facet = facet,
    .num_facets = FACETS};

static int set_up(void **state)
{
    return mkdtemp(root) && chdir(root) == 0 && tess_comm_self(&comm) == TESS_OK ? 0
                                                                                 : -1;
}

static int tear_down(void **state)
{
    const char *const files[] = {"a.txt",  "cube.fits", "g.h5",      "e.h5",
                                 "g.fits", "h.fits",    "shift.fits"};
    for (int k = 0; k < 7; ++k)
        unlink(files[k]);
    tess_comm_free(comm);
    return chdir("/") == 0 && rmdir(root) == 0 ? 0 : -1;
}

static tess_gains_opts beam_opts(const char *model, double update_s)
{
    return (tess_gains_opts){.meta = &meta,
                             .num_chan = 3,
                             .freq_hz = HZ,
                             .beam = {.model = model, .update_s = update_s}};
}

static tess_gains *made(const tess_gains_opts *opts)
{
    tess_gains *gains = NULL;
    if (tess_gains_create(comm, &facets, opts, &gains) != TESS_OK)
        fail_msg("%s", tess_error_message());
    return gains;
}

static void refused(const tess_gains_opts *opts, tess_status expected,
                    const char *reason)
{
    tess_gains *gains = NULL;
    assert_int_equal(tess_gains_create(comm, &facets, opts, &gains), expected);
    assert_null(gains);
    if (!strstr(tess_error_message(), reason))
        fail_msg("'%s' does not say '%s'", tess_error_message(), reason);
    tess_error_clear();
}

static double complex entry(const tess_gains *gains, int64_t interval, int antenna,
                            int at, double hz, int k)
{
    double jones[4][2];
    assert_true(tess_gains_jones(gains, interval, antenna, at, hz, jones));
    return CMPLX(jones[k][0], jones[k][1]);
}

static void write_text(const char *text)
{
    FILE *file = fopen("a.txt", "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

/* ---- beams ---- */

/* Round beams do not turn, and are the field of their formula. */
static void test_round(void **state)
{
    const tess_gains_opts opts = beam_opts("airy:13.5", 60);
    tess_gains *gains = made(&opts);
    assert_int_equal(tess_gains_shape(gains), TESS_GAIN_SCALAR);
    assert_int_equal(tess_gains_num_intervals(gains), 1);
    assert_int_equal(tess_gains_num_antennas(gains), ANTENNAS);
    const double d_ra = 0.012, s = sin(-0.595), c = cos(-0.595);
    const double l = c * sin(d_ra), m = s * cos(0.6) + c * sin(0.6) * cos(d_ra);
    const double u = TESS_PI * 13.5 * hypot(l, m) * HZ[1] / TESS_SPEED_OF_LIGHT_M_S;
    assert_float_equal(creal(entry(gains, 0, 0, 0, HZ[1], 0)), 1, 1e-9);
    assert_float_equal(creal(entry(gains, 0, 2, 1, HZ[1], 3)), 2 * j1(u) / u, 1e-9);
    assert_float_equal(cabs(entry(gains, 0, 2, 1, HZ[1], 1)), 0, 0);
    assert_float_equal(creal(entry(gains, 0, 2, 2, HZ[1], 0)), 0, 0);
    tess_gains_destroy(gains);
    (void)state;
}

/* MeerKAT's: the feeds differ, and the mean of their squares over an hour is the power
 * that images are divided by. */
static void test_turning(void **state)
{
    enum { UPDATES = 30 };
    const tess_gains_opts opts = beam_opts("auto", 120);
    tess_gains *gains = made(&opts);
    assert_int_equal(tess_gains_shape(gains), TESS_GAIN_DIAGONAL);
    assert_int_equal(tess_gains_num_intervals(gains), UPDATES);
    assert_float_equal(tess_gains_interval_end(gains, 0), START + 120, 1e-6);
    assert_int_equal(tess_gains_interval(gains, START + 120), 0);
    assert_int_equal(tess_gains_interval(gains, START + 121), 1);
    assert_int_equal(tess_gains_interval(gains, START + 1e9), UPDATES - 1);
    double angle_rad[UPDATES], sum = 0, differs = 0, site[3];
    const double one = 1;
    tess_vis_site(&meta, site);
    for (int k = 0; k < UPDATES; ++k) {
        const double x = cabs(entry(gains, k, 1, 1, HZ[0], 0));
        const double y = cabs(entry(gains, k, 1, 1, HZ[0], 3));
        differs = fmax(differs, fabs(x - y));
        sum += 0.5 * (x * x + y * y) / UPDATES;
        assert_int_equal(tess_parallactic_angle(0.5, -0.6, site, START + 120 * k + 60,
                                                &angle_rad[k]),
                         TESS_OK);
    }
    assert_true(differs > 1e-3);
    tess_primary_beam *beam = NULL;
    tess_beam_mean *mean = NULL;
    const tess_primary_beam_request request = {"meerkat", NULL, 1, &HZ[0]};
    const tess_beam_mean_of of = {.num_chan = 1,
                                  .freq_hz = &HZ[0],
                                  .weight = &one,
                                  .num_angles = UPDATES,
                                  .angle_rad = angle_rad,
                                  .reach = 0.1};
    assert_int_equal(tess_primary_beam_open(comm, &request, &beam), TESS_OK);
    assert_int_equal(tess_beam_mean_create(beam, &of, &mean), TESS_OK);
    const double d_ra = 0.012, s = sin(-0.595), c = cos(-0.595);
    const double l = c * sin(d_ra), m = s * cos(0.6) + c * sin(0.6) * cos(d_ra);
    assert_float_equal(sum, tess_beam_mean_power(mean, l, m), 2e-4);
    tess_beam_mean_destroy(mean);
    tess_primary_beam_close(beam);
    tess_gains_destroy(gains);
    (void)state;
}

/* Observations a year apart: beams are updated while there are visibilities. */
static void test_periods(void **state)
{
    enum { UPDATES = 30 };
    const double later = 31557600;
    const double period[2][2] = {{START, START + 3600},
                                 {START + later, START + later + 3600}};
    tess_vis_meta both = meta, second = meta;
    both.time_end_mjd_s = second.time_end_mjd_s = period[1][1];
    second.time_start_mjd_s = period[1][0];
    tess_gains_opts opts = beam_opts("auto", 120);
    tess_gains *first = made(&opts);
    opts.meta = &second;
    tess_gains *other = made(&opts);
    opts.meta = &both;
    opts.num_periods = 2;
    opts.period_mjd_s = period;
    tess_gains *gains = made(&opts);
    assert_int_equal(tess_gains_num_intervals(gains), 2 * UPDATES);
    assert_int_equal(tess_gains_interval(gains, period[1][0]), UPDATES);
    for (int k = 0; k < UPDATES; ++k) {
        const double time = START + 120 * k + 50;
        assert_int_equal(tess_gains_interval(gains, time), k);
        assert_int_equal(tess_gains_interval(gains, time + later), UPDATES + k);
        assert_true(entry(gains, k, 1, 1, HZ[0], 0) == entry(first, k, 1, 1, HZ[0], 0));
        assert_true(entry(gains, UPDATES + k, 1, 1, HZ[0], 0) ==
                    entry(other, k, 1, 1, HZ[0], 0));
    }
    tess_gains_destroy(first);
    tess_gains_destroy(other);
    tess_gains_destroy(gains);
    (void)state;
}

/* Antennas whose beams differ: by a file of patterns, and those of ALMA by diameter or
 * name. */
static void test_antennas(void **state)
{
    write_text("# names  beam\n m00? airy:10\n\ns* airy:15 # wider\n*  airy:7\n");
    tess_gains_opts opts = beam_opts("antennas:a.txt", 60);
    tess_gains *gains = made(&opts);
    const double first = creal(entry(gains, 0, 0, 1, HZ[0], 0));
    assert_true(creal(entry(gains, 0, 1, 1, HZ[0], 0)) == first);
    assert_true(creal(entry(gains, 0, 2, 1, HZ[0], 0)) < first);
    assert_true(creal(entry(gains, 0, 3, 1, HZ[0], 0)) > first);
    tess_gains_destroy(gains);
    tess_vis_meta alma = meta;
    strcpy(alma.telescope, "ALMA");
    opts = beam_opts("auto", 60);
    opts.meta = &alma;
    for (int k = 0; k < 2; ++k) {
        antennas[3].diameter_m = k ? 0 : 7;
        gains = made(&opts);
        assert_true(creal(entry(gains, 0, 3, 1, HZ[0], 0)) >
                    creal(entry(gains, 0, 1, 1, HZ[0], 0)) + 0.01);
        tess_gains_destroy(gains);
    }
    opts = beam_opts("antennas:a.txt", 60);
    write_text("m* airy:10\nCM* airy:7");
    refused(&opts, TESS_ERR_INPUT, "a.txt: no line is of antenna 's0002'");
    write_text("m* airy:10\n* airy:-1");
    refused(&opts, TESS_ERR_INPUT, "a.txt: line 2 is not a pattern");
    write_text("m*\n");
    refused(&opts, TESS_ERR_INPUT, "line 1");
    opts = beam_opts("antennas:none.txt", 60);
    refused(&opts, TESS_ERR_IO, "none.txt");
    assert_int_equal(tess_beam_models_check("antennas:"), TESS_ERR_USAGE);
    assert_int_equal(tess_beam_models_check("antennas:a.txt"), TESS_OK);
    assert_string_equal(tess_beam_models_file("antennas:a.txt"), "a.txt");
    assert_string_equal(tess_beam_models_file("poly:p.txt"), "p.txt");
    tess_error_clear();
    (void)state;
}

/* A cube of voltages: `num` planes along STOKES, whose codes begin at `code`. Entry k
 * at frequency f is (1 + k) (1 + f / 10) (1 + i k / 2) (1 − 2 x + y). */
static void write_cube(int num, double code)
{
    enum { SIDE = 21, FREQS = 3 };
    fitsfile *file;
    int status = 0;
    long axes[] = {SIDE, SIDE, num, 2, FREQS};
    fits_create_file(&file, "!cube.fits", &status);
    fits_create_img(file, DOUBLE_IMG, 5, axes, &status);
    const char *const types[] = {"X", "Y", "STOKES", "COMPLEX", "FREQ"};
    const char *const units[] = {"deg", "deg", "", "", "Hz"};
    const double value[] = {0, 0, code, 1, 9e8}, step[] = {.2, .2, -1, 1, 1e8};
    for (int k = 0; k < 5; ++k) {
        char key[16];
        double pixel = k < 2 ? 11 : 1, number = value[k], width = step[k];
        snprintf(key, sizeof key, "CTYPE%d", k + 1);
        fits_update_key_str(file, key, types[k], NULL, &status);
        snprintf(key, sizeof key, "CUNIT%d", k + 1);
        fits_update_key_str(file, key, units[k], NULL, &status);
        snprintf(key, sizeof key, "CRVAL%d", k + 1);
        fits_update_key_dbl(file, key, number, -15, NULL, &status);
        snprintf(key, sizeof key, "CDELT%d", k + 1);
        fits_update_key_dbl(file, key, width, -15, NULL, &status);
        snprintf(key, sizeof key, "CRPIX%d", k + 1);
        fits_update_key_dbl(file, key, pixel, -15, NULL, &status);
    }
    long next = 1;
    for (int f = 0; f < FREQS; ++f)
        for (int part = 0; part < 2; ++part)
            for (int k = 0; k < num; ++k)
                for (int y = 0; y < SIDE; ++y)
                    for (int x = 0; x < SIDE; ++x) {
                        const double of =
                            (1 + k) * (1 + 0.1 * f) * (part ? 0.5 * k : 1);
                        double pixel =
                            of * (1 - 0.2 * (x - 10) * 0.2 + 0.1 * (y - 10) * 0.2);
                        /* off the diagonal nothing at the middle */
                        if (num == 4 && k >= 2) pixel -= of;
                        fits_write_img(file, TDOUBLE, next++, 1, &pixel, &status);
                    }
    fits_close_file(file, &status);
    assert_int_equal(status, 0);
}

/* Voltages of a file: in proportion to the middle, of two feeds and of four entries in
 * the order of codes. */
static void test_cube(void **state)
{
    tess_primary_beam *beam = NULL;
    const tess_primary_beam_request request = {"cube.fits", NULL, 3, HZ};
    const double place[][2] = {{0, 0}, {0.01, -0.005}, {(double)NAN, 0}};
    const double deg[] = {0.01 / TESS_RAD_PER_DEG, -0.005 / TESS_RAD_PER_DEG};
    const double slope = -0.2 * deg[0] + 0.1 * deg[1];
    const tess_beam_places at = {3, place, {HZ[0], HZ[2]}};
    static const int of_code[] = {0, 3, 1, 2};
    for (int num = 1; num <= 4; num *= 2) {
        tess_beam_voltages *voltages = NULL;
        double jones[4][2];
        write_cube(num, -5);
        assert_int_equal(tess_primary_beam_open(comm, &request, &beam), TESS_OK);
        if (tess_beam_voltages_create(beam, &at, &voltages) != TESS_OK)
            fail_msg("%s", tess_error_message());
        assert_int_equal(tess_beam_voltages_entries(voltages), num);
        tess_beam_voltages_jones(voltages, 0, HZ[0], jones);
        assert_float_equal(jones[0][0], 1, 1e-12);
        assert_float_equal(jones[3][0], 1, 1e-12);
        tess_beam_voltages_jones(voltages, 1, HZ[0], jones);
        for (int k = 0; k < 4; ++k) {
            double complex want = k == 0 || k == 3 ? 1 + slope : 0;
            if (num == 4 && k > 0 && k < 3) { /* planes 2 and 3 are XY and YX */
                const int plane = k + 1, row = k == 1 ? 0 : 1;
                want = (1 + plane) * CMPLX(1, 0.5 * plane) * slope /
                       ((1 + row) * CMPLX(1, 0.5 * row));
                assert_int_equal(of_code[plane], k);
            }
            if (cabs(CMPLX(jones[k][0], jones[k][1]) - want) > 1e-9)
                fail_msg("entry %d of %d: %g %+gi", k, num, jones[k][0], jones[k][1]);
        }
        tess_beam_voltages_jones(voltages, 2, HZ[2], jones);
        assert_float_equal(jones[0][0], 0, 0);
        tess_beam_voltages_destroy(voltages);
        tess_primary_beam_close(beam);
    }
    write_cube(3, -5);
    const tess_gains_opts opts = beam_opts("cube.fits", 60);
    refused(&opts, TESS_ERR_INPUT, "1, 2 or 4 planes");
    (void)state;
}

/* ---- products ---- */

static const char *const names[] = {"m000", "m001", "s0002", "CM03"};
static const char *const sources[] = {"[a]", "[b]", "[c]"};
static const double places[][2] = {{0.5, -0.6}, {0.512, -0.595}, {0.5 - TESS_PI, 0.6}};
static const double times[] = {5.0e9 + 300, 5.0e9 + 900, 5.0e9 + 1800};
static const double beam_times[] = {5.0e9, 5.0e9 + 1200, 5.0e9 + 7200};
static const double freqs[] = {9.4e8, 1.0e9, 1.06e9};
static const char *const two[] = {"XX", "YY"};
static const char *const four[] = {"XX", "XY", "YX", "YY"};

static double phase(const int i[])
{
    return 0.5 * i[0] + 0.4 * i[1] + 0.3 * i[2] + 0.2 * i[3] + 0.1 * i[4];
}

static double amplitude(const int i[])
{
    return 1 + 0.1 * i[0] + 0.02 * i[1] + 0.003 * i[2] + 0.3 * i[4];
}

static double weight(const int i[]) /* antenna 3 does not count at the first time */
{
    return i[1] == 3 && i[2] == 0 ? 0 : 1;
}

static void write_solutions(const char *path, const char *kind,
                            const sample_table *table, int num)
{
    sample_write(path, &(sample_file){.kind = kind,
                                      .num_sources = FACETS,
                                      .source = sources,
                                      .direction = places,
                                      .num_tables = num,
                                      .table = table});
}

static void write_both(int num_pols)
{
    sample_table table = {.name = "phase000",
                          .title = "phase",
                          .axes = "time,freq,ant,dir,pol",
                          .length = {FACETS, ANTENNAS, 3, 3, num_pols},
                          .text = {sources, names, NULL, NULL, two},
                          .number = {NULL, NULL, times, freqs, NULL},
                          .value = phase,
                          .weight = weight};
    write_solutions("g.h5", NULL, &table, 1);
    table.name = "amplitude000";
    table.title = "amplitude";
    table.value = amplitude;
    table.weight = NULL;
    table.length[4] = 4;
    table.text[4] = four;
    table.number[2] = beam_times;
    write_solutions("e.h5", "beam", &table, 1);
}

static const char *const paths[] = {"g.h5", "e.h5", "g.h5"};

/* Calibration, station beam and primary beam, with the intervals of all of them. The
 * beam is the last factor wherever its file stands. */
static void check_product(const char *const *path)
{
    static const int g_time[] = {0, 1, 2}, e_time[] = {0, 1, 1};
    double jones[4][2], own[4][2];
    const tess_gains_opts alone = beam_opts("airy:13.5", 60);
    tess_gains_opts opts = alone;
    opts.solutions = (tess_solutions_opts){.path = path, .num_files = 2};
    tess_gains *gains = made(&opts), *beam = made(&alone);
    assert_true(tess_gains_jones(beam, 0, 2, 1, HZ[1], own));
    assert_int_equal(tess_gains_shape(gains), TESS_GAIN_FULL);
    /* 600 s of both files, 1350 s of the first */
    assert_int_equal(tess_gains_num_intervals(gains), 3);
    assert_int_equal(tess_gains_interval(gains, START + 600), 0);
    assert_int_equal(tess_gains_interval(gains, START + 700), 1);
    assert_float_equal(tess_gains_interval_end(gains, 1), START + 1350, 1e-6);
    for (int t = 0; t < 3; ++t) {
        assert_true(tess_gains_jones(gains, t, 2, 1, HZ[1], jones));
        for (int k = 0; k < 4; ++k) {
            const int g[] = {1, 2, g_time[t], 1, k / 2}, e[] = {1, 2, e_time[t], 1, k};
            const double complex want = cexp(I * phase(g)) * amplitude(e) * own[0][0];
            assert_true(cabs(CMPLX(jones[k][0], jones[k][1]) - want) < 1e-12);
        }
    }
    assert_false(tess_gains_jones(gains, 0, 3, 1, HZ[1], jones));
    assert_float_equal(fabs(jones[0][0]) + fabs(jones[3][1]), 0, 0);
    assert_true(tess_gains_jones(gains, 1, 3, 1, HZ[1], jones));
    tess_gains_destroy(gains);
    tess_gains_destroy(beam);
}

static void test_product(void **state)
{
    write_both(2);
    check_product(paths);
    check_product(paths + 1);
    (void)state;
}

/* With linear interpolation, steps between values; without a set, the solutions' own
 * antennas and times. */
static void test_intervals(void **state)
{
    tess_gains_opts opts = {.step_s = 250,
                            .solutions = {.path = paths, .num_files = 1}};
    write_both(1);
    tess_gains *gains = made(&opts);
    assert_int_equal(tess_gains_shape(gains), TESS_GAIN_SCALAR);
    assert_int_equal(tess_gains_num_antennas(gains), ANTENNAS);
    assert_int_equal(tess_gains_num_intervals(gains), 3);
    tess_gains_destroy(gains);
    opts.solutions.is_linear = true;
    gains = made(&opts);
    /* 600 s are cut into three, and 900 s into four */
    assert_int_equal(tess_gains_num_intervals(gains), 7);
    assert_float_equal(tess_gains_interval_end(gains, 0), START + 500, 1e-6);
    const int low[] = {1, 2, 0, 1, 0}, high[] = {1, 2, 1, 1, 0};
    const double want = phase(low) + (phase(high) - phase(low)) / 6;
    assert_float_equal(carg(entry(gains, 0, 2, 1, HZ[1], 0)),
                       remainder(want, TESS_TWO_PI), 1e-9);
    tess_gains_destroy(gains);
    (void)state;
}

/* ---- a-terms ---- */

enum { SIDE = 5, TIMES = 3, PLANES = 2 };

/* Values along the axes: a slope in x and y, and what antenna, frequency and time are.
 */
static double aterm(int part, int x, int y, int antenna, int f, int time)
{
    return 1 + 0.1 * x - 0.2 * y + 0.5 * antenna + 0.03 * f + 2 * time + 0.7 * part;
}

static double pixel_of(const int i[6]) /* antenna 3 does not count at the first time */
{
    if (i[3] == 3 && i[5] == 0) return (double)NAN;
    return aterm(i[2], i[0], i[1], i[3], i[4], i[5]);
}

/* An image of a-terms with the phase centre at the pixel `centre`. axes, value and
 * step: [num_axes] of the header. */
static fitsfile *create_aterms(const char *path, int num_axes, long *axes,
                               double centre, const double *value, const double *step)
{
    fitsfile *file = NULL;
    int status = 0;
    static const char *const types[] = {"RA---SIN", "DEC--SIN", "MATRIX",
                                        "ANTENNA",  "FREQ",     "TIME"};
    char name[32];
    snprintf(name, sizeof name, "!%s", path);
    fits_create_file(&file, name, &status);
    fits_create_img(file, DOUBLE_IMG, num_axes, axes, &status);
    for (int k = 0; k < num_axes; ++k) {
        snprintf(name, sizeof name, "CTYPE%d", k + 1);
        fits_update_key_str(file, name, types[k], NULL, &status);
        snprintf(name, sizeof name, "CRVAL%d", k + 1);
        fits_update_key_dbl(file, name, value[k], -15, NULL, &status);
        snprintf(name, sizeof name, "CDELT%d", k + 1);
        fits_update_key_dbl(file, name, step[k], -15, NULL, &status);
        snprintf(name, sizeof name, "CRPIX%d", k + 1);
        fits_update_key_dbl(file, name, k < 2 ? centre : 1, -15, NULL, &status);
    }
    assert_int_equal(status, 0);
    return file;
}

/* Images of 0.5 degrees a pixel around the first facet, whose times begin at `first`.
 */
static void write_aterms(const char *path, int parts, double first)
{
    int status = 0;
    long axes[] = {SIDE, SIDE, parts, ANTENNAS, PLANES, TIMES}, next = 1;
    const double value[] = {
        0.5 / TESS_RAD_PER_DEG, -0.6 / TESS_RAD_PER_DEG, 0, 0, 9.5e8, first};
    const double step[] = {-0.5, 0.5, 1, 1, 1e8, 600};
    fitsfile *file = create_aterms(path, 6, axes, 3, value, step);
    for (int k = 0; k < TIMES * PLANES * ANTENNAS * parts * SIDE * SIDE; ++k) {
        int rest = k, i[6];
        for (int j = 0; j < 6; ++j) {
            i[j] = rest % (int)axes[j];
            rest /= (int)axes[j];
        }
        double pixel = pixel_of(i);
        fits_write_img(file, TDOUBLE, next++, 1, &pixel, &status);
    }
    fits_close_file(file, &status);
    assert_int_equal(status, 0);
}

static const char *const config =
    "# corrections\naterms = [ first, tec ]\n"
    "first.images=[cube.fits]\nfirst.type = diagonal # two\n"
    "tec.window = tukey\ntec.images = g.fits, h.fits\n";

/* The product of a diagonal and a TEC, between pixels, at the nearest times and
 * frequencies. */
static void test_aterms(void **state)
{
    tess_facets two_of = facets;
    const tess_gains_opts opts = {
        .meta = &meta, .num_chan = 3, .freq_hz = HZ, .aterms = "a.txt"};
    double jones[4][2];
    two_of.num_facets = 2;
    write_aterms("cube.fits", 4, START);
    write_aterms("g.fits", 1, START + 100);
    write_aterms("h.fits", 1, START + 2500);
    write_text(config);
    tess_gains *gains = NULL;
    if (tess_gains_create(comm, &two_of, &opts, &gains) != TESS_OK)
        fail_msg("%s", tess_error_message());
    assert_int_equal(tess_gains_shape(gains), TESS_GAIN_DIAGONAL);
    /* ends: 300 and 900 of the first, 400, 1000, 1900, 2800 and 3400 of the others */
    assert_int_equal(tess_gains_num_intervals(gains), 8);
    const int64_t interval = tess_gains_interval(gains, START + 950);
    assert_true(tess_gains_jones(gains, interval, 1, 1, HZ[2], jones));
    const double s = sin(-0.595), c = cos(-0.595), deg = TESS_RAD_PER_DEG;
    const double x = 2 - 2 * c * sin(0.012) / deg;
    const double y = 2 + 2 * (s * cos(0.6) + c * sin(0.6) * cos(0.012)) / deg;
    const double away = 0.1 * x - 0.2 * y;
    const double turned =
        TESS_RAD_HZ_PER_TECU * (aterm(0, 0, 0, 1, 1, 1) + away) / HZ[2];
    for (int k = 0; k < 2; ++k) {
        const double complex want =
            cexp(I * turned) * CMPLX(aterm(2 * k, 0, 0, 1, 1, 2) + away,
                                     aterm(2 * k + 1, 0, 0, 1, 1, 2) + away);
        assert_true(cabs(CMPLX(jones[3 * k][0], jones[3 * k][1]) - want) < 1e-6);
    }
    assert_false(tess_gains_jones(gains, 0, 3, 1, HZ[1], jones));
    assert_float_equal(jones[0][0], 0, 0);
    tess_gains_destroy(gains);
    (void)state;
}

/* The phase of an antenna that sees a source shifted, by axes of the very time. */
static double shifted_phase(const tess_vis_meta *of, int antenna, int facet,
                            double time_mjd_s, double freq_hz, const double by[2])
{
    const double ra0 = of->field[0].ra_rad, dec0 = of->field[0].dec_rad;
    const double ra = facets.facet[facet].ra_rad, dec = facets.facet[facet].dec_rad;
    const double l = cos(dec) * sin(ra - ra0);
    const double m = sin(dec) * cos(dec0) - cos(dec) * sin(dec0) * cos(ra - ra0);
    const double way[3] = {by[0], by[1],
                           sqrt(1 - pow(l + by[0], 2) - pow(m + by[1], 2)) -
                               sqrt(1 - l * l - m * m)};
    const double day = floor(time_mjd_s / 86400), rest = time_mjd_s / 86400 - day;
    double to_itrf[3][3], axis[3], sum = 0, tai1, tai2, tt1, tt2;
    double sky[3][3] = {{-sin(ra0), cos(ra0), 0},
                        {-sin(dec0) * cos(ra0), -sin(dec0) * sin(ra0), cos(dec0)},
                        {cos(dec0) * cos(ra0), cos(dec0) * sin(ra0), sin(dec0)}};
    eraUtctai(2400000.5 + day, rest, &tai1, &tai2);
    eraTaitt(tai1, tai2, &tt1, &tt2);
    eraC2t06a(tt1, tt2, 2400000.5 + day, rest, 0, 0, to_itrf);
    for (int k = 0; k < 3; ++k) {
        eraRxp(to_itrf, sky[k], axis);
        for (int j = 0; j < 3; ++j)
            sum += way[k] * axis[j] *
                   (of->antenna[antenna].xyz_m[j] - of->antenna[0].xyz_m[j]);
    }
    return 2 * acos(-1) * sum * freq_hz / 299792458.0;
}

/* The same shift of all sources, in an image around the phase centre. */
static void write_shifts(const char *path, const double by[2])
{
    int status = 0;
    long axes[] = {3, 3, 2};
    const double value[] = {0.5 / TESS_RAD_PER_DEG, -0.6 / TESS_RAD_PER_DEG, 0};
    const double step[] = {-2, 2, 1};
    fitsfile *file = create_aterms(path, 3, axes, 2, value, step);
    for (int k = 0; k < 18; ++k) {
        double pixel = by[k / 9];
        fits_write_img(file, TDOUBLE, k + 1, 1, &pixel, &status);
    }
    fits_close_file(file, &status);
    assert_int_equal(status, 0);
}

/* Shifts of sources are phases of antennas, which turn with the Earth. */
static void test_shifts(void **state)
{
    tess_facets two_of = facets;
    tess_vis_field centre = field;
    tess_vis_meta own = meta;
    const tess_gains_opts opts = {
        .meta = &own, .num_chan = 3, .freq_hz = HZ, .aterms = "a.txt"};
    const double by[2] = {2e-4, -3e-4};
    double jones[4][2];
    two_of.num_facets = 2;
    centre.ra_rad = 0.5;
    centre.dec_rad = -0.6;
    own.field = &centre;
    write_shifts("shift.fits", by);
    write_text("aterms=[s]\ns.type=dldm\ns.images=shift.fits\ns.update_interval=30\n");
    tess_gains *gains = NULL;
    if (tess_gains_create(comm, &two_of, &opts, &gains) != TESS_OK)
        fail_msg("%s", tess_error_message());
    assert_true(tess_gains_turn(gains));
    assert_int_equal(tess_gains_shape(gains), TESS_GAIN_SCALAR);
    for (int k = 0; k < 4; ++k) {
        const double time = START + 5000.0 * k;
        const double turn = shifted_phase(&own, k, k & 1, time, HZ[1], by);
        assert_true(tess_gains_jones_at(gains, time, k, k & 1, HZ[1], jones));
        for (int j = 0; j < 4; j += 3)
            assert_true(cabs(CMPLX(jones[j][0], jones[j][1]) - cexp(I * turn)) < 1e-5);
        assert_true(k == 0 || fabs(turn) > 1e-3);
    }
    tess_gains_destroy(gains);
    (void)state;
}

static void test_bad_aterms(void **state)
{
    static const char *const bad[][2] = {
        {"aterms = [tec]\n", "no line tec.images"},
        {"aterms = [beam]\n", "a.txt: term 'beam'"},
        {"\naterms = [tec\n", "line 2"},
        {"aterms [tec]", "line 1"},
        {"aterms = tec, tec", "twice"},
        {"x = 3", "no line aterms"},
        {"aterms=tec\ntec.images=cube.fits", "MATRIX"},
        {"aterms=tec\ntec.images=g.fits", "outside of this image"}};
    tess_vis_meta other = meta;
    tess_gains_opts opts = {
        .meta = &meta, .num_chan = 3, .freq_hz = HZ, .aterms = "a.txt"};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; ++k) {
        write_text(bad[k][0]);
        refused(&opts, TESS_ERR_INPUT, bad[k][1]);
    }
    other.num_antennas = 3;
    opts.meta = &other;
    refused(&opts, TESS_ERR_INPUT, "g.fits: has 4 antennas");
    (void)state;
}

/* ---- changes ---- */

/* The phase of antenna k grows by k · 0.01 from the first facet to the second. */
static double slope(const int i[])
{
    return 0.01 * i[0] * i[1] + i[2] + 0.5 * i[3];
}

/* The mean cosine of the differences of baselines. */
static void check_likeness(const tess_gains *gains)
{
    static const int32_t halves[] = {0, 1, 2, 3};
    const double want = (3 * cos(0.01) + 2 * cos(0.02) + cos(0.03)) / 6;
    tess_gain_part part[] = {
        {.time_mjd_s = {0, 10}, .num_freq = 3, .freq_hz = freqs, .num_vis = 5},
        {.time_mjd_s = {0, 10}, .num_freq = 3, .freq_hz = freqs, .num_vis = 5}};
    double likeness[4];
    assert_int_equal(tess_gains_likeness(gains, 2, 1, part, likeness), TESS_OK);
    assert_true(likeness[0] == 1 && likeness[3] == 1 && likeness[1] == likeness[2]);
    assert_float_equal(likeness[1], want, 1e-9);
    /* two pairs of antennas are two baselines, and both differ by 0.01 */
    for (int k = 0; k < 2; ++k) {
        part[k].num_antennas = 2;
        part[k].antenna = halves + 2 * k;
    }
    assert_int_equal(tess_gains_likeness(gains, 2, 2, part, likeness), TESS_OK);
    assert_float_equal(likeness[1], cos(0.01), 1e-9);
    assert_int_equal(tess_gains_likeness(gains, 2, 0, part, likeness), TESS_OK);
    assert_true(likeness[1] == 1);
}

static void test_changes(void **state)
{
    const sample_table table = {.name = "phase000",
                                .title = "phase",
                                .axes = "time,freq,ant,dir",
                                .length = {FACETS, ANTENNAS, 3, 3, 1},
                                .text = {sources, names, NULL, NULL, NULL},
                                .number = {NULL, NULL, times, freqs, NULL},
                                .value = slope};
    write_solutions("g.h5", NULL, &table, 1);
    /* the first facet is a square of 100 pixels of 1e-4 around its direction */
    tess_facet_edge edge[] = {{{200, 206}, {200, 306}}, {{300, 206}, {300, 306}}};
    tess_facet two_facets[] = {facet[0], facet[1]};
    for (int k = 0; k < 2; ++k) {
        two_facets[k].box = (tess_facet_box){200, 206, 300, 306};
        two_facets[k].end_edge = 2;
    }
    tess_facets two_of = facets;
    two_of.image =
        (tess_facet_image){{.nx = 512, .ny = 512, .scale_rad = 1e-4}, 0.5, -0.6};
    two_of.facet = two_facets;
    two_of.num_facets = 2;
    two_of.edge = edge;
    const tess_gains_opts opts = {.solutions = {.path = paths, .num_files = 1}};
    tess_gains *gains = NULL;
    tess_gain_change change[2];
    assert_int_equal(tess_gains_create(comm, &two_of, &opts, &gains), TESS_OK);
    assert_int_equal(tess_gains_changes(gains, &two_of, 16, 3, freqs, change), TESS_OK);
    /* of baselines p < q: differences of 0.01 (q − p), three of 1, two of 2, one of 3
     */
    const double want = sqrt(
        (3 * (2 - 2 * cos(0.01)) + 2 * (2 - 2 * cos(0.02)) + 2 - 2 * cos(0.03)) / 6);
    assert_int_equal(change[0].neighbour, 1);
    assert_float_equal(change[0].difference, want, 1e-9);
    const double away = tess_facets_angle(0.5, -0.6, 0.512, -0.595);
    assert_float_equal(change[0].away_rad, away, 1e-12);
    assert_float_equal(change[0].corner_rad, 1e-4 * hypot(56, 50), 1e-9);
    assert_float_equal(change[0].error, want * change[0].corner_rad / away, 1e-9);
    assert_int_equal(change[1].neighbour, 0);
    check_likeness(gains);
    tess_gains_destroy(gains);
    (void)state;
}

enum { MOMENTS = 40 };

/* The phases of the second facet are those of the first in the first half of the times,
 * and of antennas 0.5 k in the other half. */
static double later_slope(const int i[])
{
    return i[2] < MOMENTS / 2 ? 0 : 0.5 * i[0] * i[1];
}

static double likeness_of(const tess_gains *gains, int num_parts,
                          const tess_gain_part *part)
{
    double likeness[4];
    assert_int_equal(tess_gains_likeness(gains, 2, num_parts, part, likeness), TESS_OK);
    return likeness[1];
}

/* Parts that have an interval after the change, and half a millisecond of both
 * neighbours: these are not looked at, though three intervals of eight parts would be
 * more than all that are. */
static void check_slivers(const tess_gains *gains, double begin_mjd_s, double unlike)
{
    static const double number[] = {1e9};
    tess_gain_part part[8];
    for (int k = 0; k < 8; ++k)
        part[k] = (tess_gain_part){
            .time_mjd_s = {begin_mjd_s - 5e-4, begin_mjd_s + 60 + 5e-4},
            .num_freq = 1,
            .freq_hz = number,
            .num_vis = 1};
    assert_float_equal(likeness_of(gains, 8, part), unlike, 1e-9);
}

/* Of more intervals than are looked at, each part counts by its visibilities, and times
 * that are taken are spread over all of it. */
static void test_parts(void **state)
{
    static const double number[] = {1e9};
    double moments[MOMENTS];
    for (int k = 0; k < MOMENTS; ++k)
        moments[k] = START + 60 * k;
    const sample_table table = {.name = "phase000",
                                .title = "phase",
                                .axes = "time,freq,ant,dir",
                                .length = {FACETS, ANTENNAS, MOMENTS, 1, 1},
                                .text = {sources, names, NULL, NULL, NULL},
                                .number = {NULL, NULL, moments, number, NULL},
                                .value = later_slope};
    const tess_gains_opts opts = {.solutions = {.path = paths, .num_files = 1}};
    const double unlike = (3 * cos(0.5) + 2 * cos(1.0) + cos(1.5)) / 6;
    const double middle = moments[MOMENTS / 2] - 30, end = moments[MOMENTS - 1];
    const tess_gain_part part[] = {
        {.time_mjd_s = {START, middle - 1},
         .num_freq = 1,
         .freq_hz = number,
         .num_vis = 5},
        {.time_mjd_s = {middle + 1, end},
         .num_freq = 1,
         .freq_hz = number,
         .num_vis = 15},
        {.time_mjd_s = {START, end}, .num_freq = 1, .freq_hz = number, .num_vis = 1},
        {.time_mjd_s = {middle - 15, middle + 45},
         .num_freq = 1,
         .freq_hz = number,
         .num_vis = 1}};
    tess_facets two_of = facets;
    tess_gains *gains = NULL;
    two_of.num_facets = 2;
    write_solutions("g.h5", NULL, &table, 1);
    assert_int_equal(tess_gains_create(comm, &two_of, &opts, &gains), TESS_OK);
    assert_float_equal(likeness_of(gains, 1, &part[0]), 1, 1e-9);
    assert_float_equal(likeness_of(gains, 1, &part[1]), unlike, 1e-9);
    assert_float_equal(likeness_of(gains, 2, part), 0.25 + 0.75 * unlike, 1e-9);
    /* one of 16 times more or less in either half */
    assert_float_equal(likeness_of(gains, 1, &part[2]), 0.5 + 0.5 * unlike, 0.07);
    /* few intervals count by their lengths: a quarter is before the change */
    assert_float_equal(likeness_of(gains, 1, &part[3]), 0.25 + 0.75 * unlike, 1e-6);
    check_slivers(gains, middle, unlike);
    tess_gains_destroy(gains);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),   cmocka_unit_test(test_round),
        cmocka_unit_test(test_turning), cmocka_unit_test(test_antennas),
        cmocka_unit_test(test_periods), cmocka_unit_test(test_cube),
        cmocka_unit_test(test_product), cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_changes), cmocka_unit_test(test_aterms),
        cmocka_unit_test(test_shifts),  cmocka_unit_test(test_bad_aterms),
    };
    return cmocka_run_group_tests_name("gains", tests, set_up, tear_down);
}
