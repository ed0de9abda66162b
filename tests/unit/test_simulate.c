/* Simulation: layouts, sky files, uvw, noise, the direct sum, and the whole command. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "direct_sum.h"
#include "sim_csv.h"
#include "sim_pointings.h"
#include "sim_predict.h"
#include "sim_sky.h"
#include "sim_uvw.h"
#include "sim_view.h"
#include "tess_const.h"
#include "tess_geom.h"
#include "tess_mem.h"
#include "tess_sim_layout.h"
#include "tess_subcommands.h"
#include "tess_vis.h"

/* MJD 61041.9 = 2026-01-01T21:36 UTC, and the middle of MeerKAT. */
static const double time_mjd_s = 61041.9 * TESS_SECONDS_PER_DAY;
static const double site_m[3] = {5109360.1, 2006852.6, -3238948.1};

/* ---- helpers ---- */

static tess_comm *self(void)
{
    tess_comm *comm = NULL;
    assert_int_equal(tess_comm_self(&comm), TESS_OK);
    return comm;
}

static char folder[] = "/tmp/tess_test_simulate_XXXXXX";

static const char *path_of(const char *name)
{
    static char path[2][256];
    static int turn;
    turn = 1 - turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static const char *write_file(const char *name, const char *text)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
    return path;
}

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53 - 0.5;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

/* ---- layouts ---- */

static void test_builtin_layouts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int count;
    } expected[] = {{"meerkat", 64},   {"vla-a", 27},     {"vla-d", 27}, {"lofar", 60},
                    {"ska1-mid", 197}, {"ska1-low", 512}, {"mwa", 128}};
    tess_comm *comm = self();
    for (size_t k = 0; k < sizeof expected / sizeof expected[0]; ++k) {
        tess_sim_array array = {0};
        assert_int_equal(tess_sim_array_read(comm, expected[k].name, &array), TESS_OK);
        assert_int_equal(array.num_antennas, expected[k].count);
        for (int i = 0; i < array.num_antennas; ++i) {
            const double *x = array.antenna[i].xyz_m;
            const double radius_m = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
            assert_true(radius_m > 6.35e6 && radius_m < 6.38e6);
            assert_true(array.antenna[i].diameter_m > 1.0);
        }
        tess_sim_array_free(&array);
    }
    tess_comm_free(comm);
}

static void test_layout_subset(void **state)
{
    (void)state;
    tess_comm *comm = self();
    tess_sim_array array = {0};
    assert_int_equal(tess_sim_array_read(comm, "ska1-low", &array), TESS_OK);
    assert_int_equal(tess_sim_array_choose(&array, 20e3, 256), TESS_OK);
    assert_int_equal(array.num_antennas, 256);
    assert_int_equal(tess_sim_array_choose(&array, 0.0, 257), TESS_ERR_USAGE);
    assert_int_equal(array.num_antennas, 256);
    tess_error_clear();
    tess_sim_array_free(&array);
    tess_comm_free(comm);
}

/* East-north-up below a reference line gives the geocentric points of the table. */
static void test_layout_file(void **state)
{
    (void)state;
    tess_comm *comm = self();
    const char *path = write_file(
        "enu.csv",
        "# frame: lon=21.443888889 deg E lat=-30.711055556 deg N alt=1086.600 m\n"
        "name,east,north,up\nm000,-8.2640,-207.2900,8.5965\n"
        "m001,1.1205,-171.7620,8.4705\n");
    tess_sim_array file = {0}, builtin = {0};
    assert_int_equal(tess_sim_array_read(comm, path, &file), TESS_OK);
    assert_int_equal(tess_sim_array_read(comm, "meerkat", &builtin), TESS_OK);
    assert_int_equal(file.num_antennas, 2);
    assert_string_equal(file.telescope, "enu");
    for (int i = 0; i < 2; ++i)
        for (int k = 0; k < 3; ++k)
            assert_true(fabs(file.antenna[i].xyz_m[k] - builtin.antenna[i].xyz_m[k]) <
                        2e-3);
    tess_sim_array_free(&file);
    tess_sim_array_free(&builtin);
    tess_comm_free(comm);
}

static void test_bad_layouts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"name,x,y\nA,1,2\n", "header line must name"},
        {"x,y,z\n1,2,3\n4,5,6\n", "Earth's centre"},
        {"x,y,z\n5109271,2006808,-3239130\n5109271,abc,-3239130\n",
         "line 3, column 'y': 'abc'"},
        {"x,y,z\n5109271,2006808,-3239130\n", "at least two"},
        {"x,y,z\n5109271,2006808\n", "line 2 has 2 columns"},
        {"x,y,z\n5109271,,-3239130\n5109271,2,-3\n", "column 'y' is empty"},
        {"east,north,up\n1,2,3\n4,5,6\n", "comment line"},
        {"x,y,z\n", "no rows"},
        {"", "no rows"},
        {"x,x,z\n1,2,3\n", "twice"},
    };
    tess_comm *comm = self();
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k) {
        tess_sim_array array = {0};
        const char *path = write_file("bad.csv", cases[k].text);
        assert_int_equal(tess_sim_array_read(comm, path, &array), TESS_ERR_INPUT);
        assert_non_null(strstr(tess_error_message(), cases[k].says));
        assert_non_null(strstr(tess_error_message(), "bad.csv"));
        assert_null(array.antenna);
        tess_error_clear();
    }
    tess_sim_array array = {0};
    assert_int_equal(tess_sim_array_read(comm, "nosuch", &array), TESS_ERR_USAGE);
    tess_error_clear();
    assert_int_equal(tess_sim_array_read(comm, path_of("nosuch.csv"), &array),
                     TESS_ERR_IO);
    tess_error_clear();
    tess_comm_free(comm);
}

/* ---- sky ---- */

static void test_projection(void **state)
{
    (void)state;
    double lmn1[3];
    assert_true(tess_sky_project(1.0, -0.5, 1.0, -0.5, lmn1));
    for (int k = 0; k < 3; ++k)
        assert_true(lmn1[k] == 0.0);
    /* Larger right ascension is East, l > 0; larger declination North, m > 0. */
    assert_true(tess_sky_project(1.01, -0.49, 1.0, -0.5, lmn1));
    assert_true(lmn1[0] > 0.0 && lmn1[1] > 0.0);
    const double n = 1.0 + lmn1[2];
    assert_true(fabs(lmn1[0] * lmn1[0] + lmn1[1] * lmn1[1] + n * n - 1.0) < 4e-16);
    assert_false(tess_sky_project(1.0 + TESS_PI, 0.0, 1.0, 0.0, lmn1));
}

static void test_sky_file(void **state)
{
    (void)state;
    tess_comm *comm = self();
    const char *path =
        write_file("sky.csv", "\xEF\xBB\xBF# sources\r\n"
                              "name, ra, dec, flux_jy, v, spectral_index, ref_freq, "
                              "major, minor, pa\r\n"
                              "A, 4h00m00s, -30d00m00s, 1.5, , , , , ,\r\n\r\n"
                              "B, 60.1deg, -30deg, 2, 0.1, -0.7, 1.4GHz, 20asec, "
                              "10asec, 90deg\r\n");
    tess_sky sky = {0};
    assert_int_equal(tess_sky_read(comm, path, 60 * TESS_RAD_PER_DEG,
                                   -30 * TESS_RAD_PER_DEG, 1e9, &sky),
                     TESS_OK);
    assert_int_equal(sky.num_sources, 2);
    assert_true(fabs(sky.source[0].l) < 1e-15 && fabs(sky.source[0].m) < 1e-15);
    assert_true(sky.source[0].freq_hz == 1e9 && !sky.source[0].is_gaussian);
    assert_true(sky.source[1].freq_hz == 1.4e9 && sky.source[1].flux_jy[3] == 0.1);
    assert_true(sky.has_stokes[3] && !sky.has_stokes[1]);
    /* At position angle 90 degrees the major axis is along l. */
    assert_true(sky.source[1].is_gaussian);
    assert_true(fabs(sky.source[1].uu / sky.source[1].vv - 4.0) < 1e-9);
    /* A Gaussian falls to half where u = 2 ln 2 / (pi FWHM). */
    const double u = 2.0 * log(2.0) / (TESS_PI * 20.0 * TESS_RAD_PER_ASEC);
    assert_true(fabs(exp(-sky.source[1].uu * u * u) - 0.5) < 1e-9);
    tess_sky_free(&sky);
    tess_comm_free(comm);
}

static void test_bad_skies(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"ra,dec,flux_jy\n60deg,-30deg,one\n", "line 2, column 'flux_jy': 'one'"},
        {"ra,dec,flux_jy\n60deg,-30deg,nan\n", "line 2, column 'flux_jy'"},
        {"ra,dec,flux_jy\n60deg,-30deg,\n", "column 'flux_jy' is empty"},
        {"ra,dec,flux_jy\n60deg,-95deg,1\n", "line 2, column 'dec'"},
        {"ra,dec,flux_jy\n240deg,30deg,1\n", "line 2: the source is 90 degrees"},
        {"l,m,flux_jy\n0.9,0.9,1\n", "line 2: the source is 90 degrees"},
        {"ra,dec,flux\n60deg,-30deg,1\n", "unknown column 'flux'"},
        {"ra,dec\n60deg,-30deg\n", "header line must name"},
        {"ra,dec,l,m,flux_jy\n0,0,0,0,1\n", "either ra and dec, or l and m"},
        {"l,m,flux_jy,ra\n0,0,1,2deg\n", "either ra and dec, or l and m"},
        {"l,m,flux_jy,major,minor,pa\n0,0,1,-1asec,0,0\n", "width is negative"},
        {"l,m,flux_jy,major,minor,pa\n0,0,1,10,0,0\n", "column 'major'"},
        {"l,m,flux_jy,ref_freq\n0,0,1,-1GHz\n", "column 'ref_freq'"},
    };
    tess_comm *comm = self();
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k) {
        tess_sky sky = {0};
        const char *path = write_file("bad_sky.csv", cases[k].text);
        assert_int_equal(tess_sky_read(comm, path, 60 * TESS_RAD_PER_DEG,
                                       -30 * TESS_RAD_PER_DEG, 1e9, &sky),
                         TESS_ERR_INPUT);
        assert_non_null(strstr(tess_error_message(), cases[k].says));
        assert_non_null(strstr(tess_error_message(), "bad_sky.csv"));
        assert_null(sky.source);
        tess_error_clear();
    }
    tess_comm_free(comm);
}

/* ---- uvw ---- */

static tess_uvw_target target_at(double ra_deg, double dec_deg)
{
    tess_uvw_target target = {.ra_rad = ra_deg * TESS_RAD_PER_DEG,
                              .dec_rad = dec_deg * TESS_RAD_PER_DEG};
    memcpy(target.site_m, site_m, sizeof site_m);
    return target;
}

static void test_frame(void **state)
{
    (void)state;
    const tess_uvw_target target = target_at(60, -30);
    tess_uvw_frame frame;
    double transit_mjd_s;
    assert_int_equal(tess_uvw_time_of(&target, 0.0, time_mjd_s, &transit_mjd_s),
                     TESS_OK);
    assert_true(transit_mjd_s >= time_mjd_s && transit_mjd_s < time_mjd_s + 86400);
    assert_int_equal(tess_uvw_frame_at(&target, transit_mjd_s, &frame), TESS_OK);
    assert_true(fabs(frame.hour_angle_rad) < 1e-9);
    /* Latitude -30.71, declination (of date) near -29.93. */
    assert_true(fabs(frame.elevation_rad / TESS_RAD_PER_DEG - 89.2) < 0.1);
    for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b) {
            double dot = 0.0;
            for (int k = 0; k < 3; ++k)
                dot += frame.axis[a][k] * frame.axis[b][k];
            assert_true(fabs(dot - (a == b)) < 1e-14);
        }
    /* At transit u is East at the site, to the angle between the poles of date and
     * J2000 (26 years of precession: 2.5e-3). */
    const double lon = atan2(site_m[1], site_m[0]);
    const double east = -sin(lon) * frame.axis[0][0] + cos(lon) * frame.axis[0][1];
    assert_true(east > 0.99999);
    assert_true(frame.axis[1][2] > 0.8); /* v is North */
}

/* A baseline's u grows and w moves as the textbook rotation by hour angle says; it
 * knows neither precession nor aberration, so agreement is to their size over half an
 * hour: the change of w with time to 1e-4 of the baseline. */
static void test_frame_against_textbook(void **state)
{
    (void)state;
    const tess_uvw_target target = target_at(60, -30);
    const double baseline[3] = {-300.0, 4000.0, 1500.0};
    const double lon = atan2(site_m[1], site_m[0]);
    for (int step = 0; step < 10; ++step) {
        tess_uvw_frame frame;
        assert_int_equal(tess_uvw_frame_at(&target, time_mjd_s + 1800.0 * step, &frame),
                         TESS_OK);
        /* declination of date, from the frame itself */
        const double *ahead = frame.axis[2];
        const double dec = asin(ahead[2]), h = frame.hour_angle_rad;
        const double x = cos(lon) * baseline[0] + sin(lon) * baseline[1];
        const double y = -sin(lon) * baseline[0] + cos(lon) * baseline[1];
        const double w =
            cos(dec) * cos(h) * x - cos(dec) * sin(h) * y + sin(dec) * baseline[2];
        const double u = sin(h) * x + cos(h) * y;
        double uw[2] = {0.0, 0.0};
        for (int k = 0; k < 3; ++k) {
            uw[0] += frame.axis[0][k] * baseline[k];
            uw[1] += frame.axis[2][k] * baseline[k];
        }
        /* lon is the site's; hour_angle uses the geodetic longitude, the same angle */
        assert_true(fabs(uw[1] - w) < 1e-6);
        assert_true(fabs(uw[0] - u) < 4e-3 * 4300.0);
    }
}

static void test_bad_time(void **state)
{
    (void)state;
    const tess_uvw_target target = target_at(60, -30);
    tess_uvw_frame frame;
    assert_int_equal(tess_uvw_frame_at(&target, -1e18, &frame), TESS_ERR_USAGE);
    tess_error_clear();
}

/* ---- noise ---- */

/* Known answers of the Random123 distribution (kat_vectors, philox4x32 10). */
static void test_philox(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k) {
        uint32_t out[4];
        tess_philox(cases[k].counter, cases[k].key, out);
        assert_memory_equal(out, cases[k].out, sizeof out);
    }
}

static void test_noise_moments(void **state)
{
    (void)state;
    double sum = 0.0, squares = 0.0, fourth = 0.0;
    const int64_t count = 200000;
    for (int64_t row = 0; row < count; ++row) {
        double pair[2];
        tess_noise_pair(5, row, row % 7, (int)(row % 4), pair);
        for (int k = 0; k < 2; ++k) {
            sum += pair[k];
            squares += pair[k] * pair[k];
            fourth += pow(pair[k], 4);
        }
    }
    /* Five standard errors of mean, variance and fourth moment of 2 count deviates. */
    const double n = 2.0 * (double)count;
    assert_true(fabs(sum / n) < 5 / sqrt(n));
    assert_true(fabs(squares / n - 1) < 5 * sqrt(2 / n));
    assert_true(fabs(fourth / n - 3) < 5 * sqrt(96 / n));
}

/* ---- the direct sum ---- */

enum { NUM_ROWS = 150, NUM_CHAN = 19, NX = 17, NY = 14 };

static void fill_uvw(double *uvw_m, double *freq_hz)
{
    uint64_t random = 3;
    for (int k = 0; k < 3 * NUM_ROWS; ++k)
        uvw_m[k] = 5000.0 * uniform(&random);
    for (int c = 0; c < NUM_CHAN; ++c)
        freq_hz[c] = 1e9 + 7e6 * c;
}

/* Point sources on pixels: against the tests' own sum. */
static void test_predict_points(void **state)
{
    (void)state;
    double uvw_m[3 * NUM_ROWS], freq_hz[NUM_CHAN], image[NX * NY] = {0};
    static double truth[NUM_ROWS * NUM_CHAN * 2];
    static float vis[NUM_ROWS * NUM_CHAN * 2], single[NUM_CHAN * 2];
    fill_uvw(uvw_m, freq_hz);
    const tess_direct direct = {.num_rows = NUM_ROWS,
                                .uvw_m = uvw_m,
                                .num_chan = NUM_CHAN,
                                .freq_hz = freq_hz,
                                .nx = NX,
                                .ny = NY,
                                .scale_rad = 2e-3};
    tess_sky sky = {0};
    uint64_t random = 11;
    for (int p = 0; p < NX * NY; p += 5) {
        image[p] = uniform(&random);
        const double l = -(p % NX - NX / 2) * 2e-3, m = (p / NX - NY / 2) * 2e-3;
        const double r2 = l * l + m * m;
        const tess_sky_source source = {.l = l,
                                        .m = m,
                                        .flux_jy = {image[p]},
                                        .n_minus_1 = -r2 / (1 + sqrt(1 - r2))};
        assert_int_equal(tess_sky_add(&sky, &source), TESS_OK);
    }
    assert_int_equal(tess_direct_predict(&direct, image, truth), 0);
    const tess_corr corr[1] = {1};
    const tess_sim_channels channels = {NUM_CHAN, freq_hz, 1, corr};
    tess_sim_noise noise = {0};
    tess_sim_rows rows = {.num = NUM_ROWS, .uvw_m = uvw_m};
    tess_sim_predict(&sky, &channels, &noise, &rows, 2, vis);
    /* Sums of 48 sources below 0.5 Jy: float rounding is 6e-8 of values below 8; the
     * phases' own error is 1e-16 of 600 turns. */
    for (int k = 0; k < NUM_ROWS * NUM_CHAN * 2; ++k)
        assert_true(fabs((double)vis[k] - truth[k]) <= 6e-8 * fabs(truth[k]) + 1e-11);
    /* A row alone, and one thread, give the same bits; noise too. */
    noise = (tess_sim_noise){.sigma_jy = 0.1, .seed = 9};
    tess_sim_predict(&sky, &channels, &noise, &rows, 1, vis);
    noise.row_offset = 131;
    rows = (tess_sim_rows){.num = 1, .uvw_m = uvw_m + 3 * 131};
    tess_sim_predict(&sky, &channels, &noise, &rows, 2, single);
    assert_memory_equal(single, vis + 131 * NUM_CHAN * 2, sizeof single);
    tess_sky_free(&sky);
}

static double complex one_source(const tess_sky_source *s, const double *uvw_m,
                                 double freq_hz)
{
    const double per_m = freq_hz / TESS_SPEED_OF_LIGHT_M_S;
    const double u = uvw_m[0] * per_m, v = uvw_m[1] * per_m, w = uvw_m[2] * per_m;
    const double n = 1 + s->n_minus_1, p = u - w * s->l / n, q = v - w * s->m / n;
    return pow(freq_hz / s->freq_hz, s->spectral_index) *
           exp(-(s->uu * p * p + s->uv * p * q + s->vv * q * q)) *
           cexp(2 * TESS_PI * I * (u * s->l + v * s->m + w * s->n_minus_1));
}

/* A polarised Gaussian with a spectrum in all correlations, by Stokes definitions. */
static void test_predict_polarised(void **state)
{
    (void)state;
    double uvw_m[3 * NUM_ROWS], freq_hz[NUM_CHAN];
    static float vis[NUM_ROWS * NUM_CHAN * 8];
    fill_uvw(uvw_m, freq_hz);
    tess_sky_source source = {.l = 0.01,
                              .m = -0.02,
                              .flux_jy = {2, 0.3, -0.2, 0.1},
                              .n_minus_1 = -0.00025003125781435553,
                              .spectral_index = -0.8,
                              .freq_hz = 1.2e9};
    tess_sky_set_gaussian(&source, 1e-4, 4e-5, 0.5);
    tess_sky sky = {0};
    assert_int_equal(tess_sky_add(&sky, &source), TESS_OK);
    static const tess_corr lists[2][4] = {{-5, -6, -7, -8}, {-1, -2, -3, -4}};
    for (int basis = 0; basis < 2; ++basis) {
        const tess_sim_channels channels = {NUM_CHAN, freq_hz, 4, lists[basis]};
        const tess_sim_noise noise = {0};
        const tess_sim_rows rows = {.num = NUM_ROWS, .uvw_m = uvw_m};
        tess_sim_predict(&sky, &channels, &noise, &rows, 2, vis);
        for (int k = 0; k < NUM_ROWS * NUM_CHAN; ++k) {
            double complex c[4];
            for (int p = 0; p < 4; ++p)
                c[p] = (double)vis[8 * k + 2 * p] + I * (double)vis[8 * k + 2 * p + 1];
            const double complex truth =
                one_source(&source, uvw_m + 3 * (k / NUM_CHAN), freq_hz[k % NUM_CHAN]);
            const double complex linear[4] = {(c[0] + c[1]) / 2, (c[0] - c[1]) / 2,
                                              (c[2] + c[3]) / 2,
                                              (c[2] - c[3]) / (2 * I)};
            const double complex circular[4] = {(c[0] + c[1]) / 2, (c[2] + c[3]) / 2,
                                                (c[2] - c[3]) / (2 * I),
                                                (c[0] - c[1]) / 2};
            for (int s = 0; s < 4; ++s) {
                const double complex got = basis == 0 ? linear[s] : circular[s];
                assert_true(cabs(got - source.flux_jy[s] * truth) <
                            3e-7 * cabs(truth) + 1e-12);
            }
        }
    }
    tess_sky_free(&sky);
}

/* ---- pointings ---- */

/* A Gaussian is the same on the sky wherever a pointing is: in the frame of another
 * phase centre, with baselines turned to it, the amplitudes stay. Near a pole the
 * frames differ by many degrees. */
static void test_turned_gaussian(void **state)
{
    (void)state;
    double uvw_m[3 * NUM_ROWS], turned_m[3 * NUM_ROWS], freq_hz[NUM_CHAN];
    static float vis[2][NUM_ROWS * NUM_CHAN * 2];
    fill_uvw(uvw_m, freq_hz);
    tess_vis_field field[2] = {{.ra_rad = 1.0, .dec_rad = 1.45},
                               {.ra_rad = 1.5, .dec_rad = 1.42}};
    const sim_pointings pointings = {field, 2, {1.0, 1.45}};
    const tess_vis_scan scan = {.num_rows = NUM_ROWS};
    tess_vis_segment segment = {
        .num_chan = NUM_CHAN, .freq_hz = freq_hz, .num_scans = 1, .scan = &scan};
    const tess_vis_meta meta = {.num_segments = 1, .segment = &segment};
    tess_sky sky = {0};
    tess_sky_source source = {
        .l = 0.03, .m = -0.02, .flux_jy = {2}, .n_minus_1 = sqrt(1 - 0.0013) - 1};
    tess_sky_set_gaussian(&source, 1e-4, 3e-5, 0.5);
    assert_int_equal(tess_sky_add(&sky, &source), TESS_OK);
    const sim_view_opts of = {
        .sky = &sky, .pointings = &pointings, .meta = &meta, .threads = 1};
    sim_view *view = NULL;
    tess_comm *comm = self();
    assert_int_equal(sim_view_create(comm, &of, &view), TESS_OK);
    assert_true(sim_view_changes(view) && !sim_view_gains(view));
    double rotation[3][3];
    tess_rotation_between(1.0, 1.45, 1.5, 1.42, rotation);
    for (int r = 0; r < NUM_ROWS; ++r)
        for (int k = 0; k < 3; ++k)
            turned_m[3 * r + k] = rotation[k][0] * uvw_m[3 * r] +
                                  rotation[k][1] * uvw_m[3 * r + 1] +
                                  rotation[k][2] * uvw_m[3 * r + 2];
    const tess_corr corr[1] = {1};
    const tess_sim_channels channels = {NUM_CHAN, freq_hz, 1, corr};
    const tess_sim_noise none = {0};
    for (int k = 0; k < 2; ++k) {
        const tess_sim_rows rows = {.num = NUM_ROWS, .uvw_m = k ? turned_m : uvw_m};
        assert_int_equal(sim_view_turn(view, k, time_mjd_s), TESS_OK);
        tess_sim_predict(sim_view_sky(view), &channels, &none, &rows, 1, vis[k]);
    }
    double least = 2, most = 0;
    for (int k = 0; k < NUM_ROWS * NUM_CHAN; ++k) {
        const double here = hypot((double)vis[0][2 * k], (double)vis[0][2 * k + 1]);
        const double there = hypot((double)vis[1][2 * k], (double)vis[1][2 * k + 1]);
        assert_true(fabs(here - there) < 5e-7);
        least = fmin(least, here);
        most = fmax(most, here);
    }
    assert_true(least < 0.5 && most > 1.5); /* else the shape is not seen */
    sim_view_destroy(view);
    tess_comm_free(comm);
    tess_sky_free(&sky);
}

static void test_pairs(void **state)
{
    (void)state;
    static const int number[3][3] = {{0, 1, 3}, {1, 2, 4}, {3, 4, 5}};
    for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b)
            assert_int_equal(tess_sim_pair(a, b), number[a][b]);
}

/* The tests' own sums are adjoint, and see a source where it is. */
static void test_direct_sums(void **state)
{
    (void)state;
    double uvw_m[3 * NUM_ROWS], freq_hz[NUM_CHAN], x[NX * NY], back[NX * NY];
    static double y[NUM_ROWS * NUM_CHAN * 2], forward[NUM_ROWS * NUM_CHAN * 2];
    uint64_t random = 17;
    fill_uvw(uvw_m, freq_hz);
    for (int p = 0; p < NX * NY; ++p)
        x[p] = uniform(&random);
    for (int k = 0; k < NUM_ROWS * NUM_CHAN * 2; ++k)
        y[k] = uniform(&random);
    const tess_direct direct = {.num_rows = NUM_ROWS,
                                .uvw_m = uvw_m,
                                .num_chan = NUM_CHAN,
                                .freq_hz = freq_hz,
                                .nx = NX,
                                .ny = NY,
                                .scale_rad = 5e-3};
    assert_int_equal(tess_direct_predict(&direct, x, forward), 0);
    const double sum = tess_direct_dirty(&direct, y, NULL, back);
    assert_true(sum == NUM_ROWS * NUM_CHAN);
    double left = 0.0, right = 0.0;
    for (int k = 0; k < NUM_ROWS * NUM_CHAN * 2; ++k)
        left += y[k] * forward[k];
    for (int p = 0; p < NX * NY; ++p)
        right += sum * back[p] * x[p];
    assert_true(fabs(left - right) < 1e-10 * fabs(left));
    /* One pixel of 3 Jy comes back as 3 Jy. */
    memset(x, 0, sizeof x);
    x[4 * NX + 3] = 3.0;
    assert_int_equal(tess_direct_predict(&direct, x, forward), 0);
    tess_direct_dirty(&direct, forward, NULL, back);
    assert_true(fabs(back[4 * NX + 3] - 3.0) < 1e-12);
}

/* ---- the command ---- */

enum { MAX_ARGS = 64 };

/* Run "simulate ..." given in words; FOLDER stands for the test's folder. */
static tess_status run(const char *words)
{
    char text[2048], *argv[MAX_ARGS + 1] = {0};
    int argc = 0;
    size_t used = 0;
    for (const char *c = words; *c && used < sizeof text - sizeof folder; ++c) {
        if (strncmp(c, "FOLDER", 6) == 0) {
            memcpy(text + used, folder, sizeof folder - 1);
            used += sizeof folder - 1;
            c += 5;
        } else {
            text[used++] = *c;
        }
    }
    text[used] = '\0';
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word && argc < MAX_ARGS;
         word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    tess_comm *comm = self();
    tess_error_clear();
    const tess_status status = tess_cmd_simulate(comm, argc, argv);
    tess_comm_free(comm);
    return status;
}

#define GOOD                                                                           \
    "simulate --quiet --layout vla-d --sky FOLDER/cmd.csv --ra 60deg --dec 40deg "     \
    "--freq 1.4GHz --chan-width 4MHz --channels 3 --integration 60s --threads 2 "

static void test_command_errors(void **state)
{
    (void)state;
    write_file("cmd.csv", "l,m,flux_jy\n0.002,0.001,1\n-0.004,0.003,2\n");
    static const struct {
        const char *words;
        tess_status status;
    } cases[] = {
        {GOOD "-o FOLDER/x.uvfits", TESS_ERR_USAGE},
        {GOOD "--duration 10min", TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --channels 0", TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --channels 1000", TESS_ERR_USAGE},
        {GOOD "--duration 30s -o FOLDER/x.uvfits", TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --pol XX,RR", TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --pol XX,I", TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --noise -1Jy", TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --sefd 4apples", TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --start yesterday", TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --start 2026-13-01", TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --start 2026-01-01T25:00",
         TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --hour-angle 13h", TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --antennas 1", TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --antennas 99", TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --dut1 5", TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --noise 1Jy --seed -1",
         TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --seed 2", TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --layout atlantis", TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --sky FOLDER/none.csv", TESS_ERR_IO},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --sky FOLDER/none.fits",
         TESS_ERR_IO},
        {GOOD "--duration 10min -o FOLDER/none/x.uvfits", TESS_ERR_IO},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --pointings hex:2,1amin",
         TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --pointings hex:0,1amin",
         TESS_ERR_USAGE},
        {GOOD "--duration 10min -o FOLDER/x.uvfits --pointings FOLDER/none.csv",
         TESS_ERR_IO},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; ++k) {
        const tess_status status = run(cases[k].words);
        if (status != cases[k].status || !*tess_error_message())
            fail_msg("case %zu gave status %d: %s", k, (int)status,
                     tess_error_message());
        assert_int_not_equal(access(path_of("x.uvfits"), F_OK), 0);
    }
    tess_error_clear();
}

/* Coordinates read back point from antenna 2 to antenna 1, East, North and ahead. */
static void check_uvw(const tess_vis_meta *meta, const tess_vis_block *block)
{
    tess_uvw_target target = {.ra_rad = meta->ra_rad, .dec_rad = meta->dec_rad};
    memcpy(target.site_m, meta->antenna[0].xyz_m, sizeof target.site_m);
    for (int64_t r = 0; r < block->num_rows; r += 17) {
        tess_uvw_frame frame;
        const double *p = meta->antenna[block->antenna1[r]].xyz_m;
        const double *q = meta->antenna[block->antenna2[r]].xyz_m;
        assert_int_equal(tess_uvw_frame_at(&target, block->time_mjd_s[r], &frame),
                         TESS_OK);
        for (int k = 0; k < 3; ++k) {
            double expected_m = 0.0;
            for (int x = 0; x < 3; ++x)
                expected_m += frame.axis[k][x] * (p[x] - q[x]);
            /* A millisecond's turn of a kilometre, and positions to the millimetre. */
            assert_true(fabs(block->uvw_m[3 * r + k] - expected_m) < 2e-3);
        }
    }
}

/* What is read back is the sum over the sources at the uvw that are read back. */
static void test_command(void **state)
{
    (void)state;
    write_file("cmd.csv", "l,m,flux_jy\n0.002,0.001,1\n-0.004,0.003,2\n");
    if (run(GOOD "--duration 10min --pol YY,XX --hour-angle -1h -o FOLDER/a.uvfits") !=
        TESS_OK)
        fail_msg("%s", tess_error_message());
    tess_vis_reader *reader = NULL;
    tess_vis_block block = {0};
    const tess_vis_select select = {0};
    assert_int_equal(tess_vis_open(path_of("a.uvfits"), &select, &reader), TESS_OK);
    const tess_vis_meta *meta = tess_vis_reader_meta(reader);
    const tess_vis_segment *segment = meta->segment;
    assert_int_equal(segment->num_rows, 10 * 27 * 26 / 2);
    assert_int_equal(segment->num_chan, 3);
    assert_int_equal(segment->num_corr, 2);
    assert_int_equal(segment->corr[0], -5);
    assert_int_equal(meta->num_antennas, 27);
    assert_true(fabs(segment->freq_hz[1] - 1.4e9) < 1.0);
    assert_int_equal(tess_vis_read(reader, 0, 0, segment->num_rows, 1, &block),
                     TESS_OK);
    check_uvw(meta, &block);
    for (int64_t r = 0; r < block.num_rows; ++r)
        for (int64_t c = 0; c < 3; ++c) {
            static const double lm[2][2] = {{0.002, 0.001}, {-0.004, 0.003}};
            double complex truth = 0.0;
            for (int s = 0; s < 2; ++s) {
                const double r2 = lm[s][0] * lm[s][0] + lm[s][1] * lm[s][1];
                const double path_m = block.uvw_m[3 * r] * lm[s][0] +
                                      block.uvw_m[3 * r + 1] * lm[s][1] +
                                      block.uvw_m[3 * r + 2] * (sqrt(1 - r2) - 1);
                truth += (s + 1) * cexp(2 * TESS_PI * I * path_m * segment->freq_hz[c] /
                                        TESS_SPEED_OF_LIGHT_M_S);
            }
            for (int p = 0; p < 2; ++p) {
                const int64_t k = (r * 3 + c) * 2 + p;
                const double complex got =
                    (double)block.vis[2 * k] + I * (double)block.vis[2 * k + 1];
                assert_true(cabs(got - truth) < 3e-7);
                assert_true(block.weight[k] == 1.0f);
            }
        }
    tess_vis_close(reader);
    tess_vis_block_free(&block);
    /* Not twice without being told. */
    assert_int_equal(run(GOOD "--duration 10min -o FOLDER/a.uvfits"), TESS_ERR_IO);
    tess_error_clear();
    assert_int_equal(run(GOOD "--duration 10min -o FOLDER/a.uvfits --overwrite"),
                     TESS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_builtin_layouts),
        cmocka_unit_test(test_layout_subset),
        cmocka_unit_test(test_layout_file),
        cmocka_unit_test(test_bad_layouts),
        cmocka_unit_test(test_projection),
        cmocka_unit_test(test_sky_file),
        cmocka_unit_test(test_bad_skies),
        cmocka_unit_test(test_frame),
        cmocka_unit_test(test_frame_against_textbook),
        cmocka_unit_test(test_bad_time),
        cmocka_unit_test(test_philox),
        cmocka_unit_test(test_noise_moments),
        cmocka_unit_test(test_predict_points),
        cmocka_unit_test(test_predict_polarised),
        cmocka_unit_test(test_turned_gaussian),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_direct_sums),
        cmocka_unit_test(test_command_errors),
        cmocka_unit_test(test_command),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
