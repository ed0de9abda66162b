/* Primary beams: formulas against published values and against the packages that
 * publish them, files of polynomials, FITS cubes, parallactic angles, and means. */
#define _GNU_SOURCE /* mkdtemp */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fitsio.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "primary_beam.h"
#include "tess_comm.h"
#include "tess_const.h"

#define AMIN (60 * TESS_RAD_PER_ASEC)

static tess_comm *comm;
static char root[] = "/tmp/tess_primary_beam_XXXXXX";

static int set_up(void **state)
{
    return mkdtemp(root) && chdir(root) == 0 && tess_comm_self(&comm) == TESS_OK ? 0
                                                                                 : -1;
}

static int tear_down(void **state)
{
    const char *const files[] = {"a.txt", "cube.fits"};
    for (int k = 0; k < 2; ++k)
        unlink(files[k]);
    tess_comm_free(comm);
    return chdir("/") == 0 && rmdir(root) == 0 ? 0 : -1;
}

static tess_status open_at(const char *model, const char *telescope, double mhz,
                           tess_primary_beam **beam)
{
    const double hz = mhz * 1e6;
    const tess_primary_beam_request request = {model, telescope, 1, &hz};
    return tess_primary_beam_open(comm, &request, beam);
}

static tess_primary_beam *opened(const char *model, double mhz)
{
    tess_primary_beam *beam = NULL;
    if (open_at(model, NULL, mhz, &beam) != TESS_OK)
        fail_msg("%s: %s", model, tess_error_message());
    return beam;
}

static double power_of(const char *model, double mhz, double x, double y)
{
    tess_primary_beam *beam = opened(model, mhz);
    const double power = beam_formula_power(beam, mhz * 1e6, x, y);
    tess_primary_beam_close(beam);
    return power;
}

static void refused(const char *model, double mhz, tess_status expected,
                    const char *reason)
{
    tess_primary_beam *beam = NULL;
    assert_int_equal(open_at(model, "LOFAR", mhz, &beam), expected);
    assert_null(beam);
    if (!strstr(tess_error_message(), reason))
        fail_msg("'%s' does not say '%s'", tess_error_message(), reason);
    tess_error_clear();
}

/* ---- formulas ---- */

/* JimBeam.I(x, y, MHz) of katbeam 0.1 with x and y in degrees, down to a tenth. */
static const struct {
    const char *model;
    double mhz, x_deg, y_deg, power;
} katbeam[] = {
    {"meerkat-l", 900, 0.428000, 0.000000, 0.829402},
    {"meerkat-l", 900, -0.642000, 0.499333, 0.514400},
    {"meerkat-l", 900, 0.000000, -1.383867, 0.119880},
    {"meerkat-l", 1284, 0.300000, 0.000000, 0.815272},
    {"meerkat-l", 1284, -0.450000, 0.350000, 0.472212},
    {"meerkat-l", 1284, 0.200000, 0.620000, 0.386459},
    {"meerkat-l", 1284, 0.000000, -0.970000, 0.103968},
    {"meerkat-l", 1284, 0.700000, -0.650000, 0.098325},
    {"meerkat-l", 1462.5, 0.000000, -0.351179, 0.706877},
    {"meerkat-l", 1462.5, -0.395077, 0.307282, 0.501346},
    {"meerkat-l", 1462.5, 0.834051, 0.000000, 0.087955},
    {"meerkat-l", 1690, 0.151953, 0.471053, 0.453240},
    {"meerkat-l", 1690, 0.531834, -0.493846, 0.135958},
    {"meerkat-uhf", 560, 0.687857, 0.000000, 0.828473},
    {"meerkat-uhf", 560, 1.605000, -1.490357, 0.118411},
    {"meerkat-uhf", 816, -0.708088, 0.550735, 0.482505},
    {"meerkat-uhf", 816, 1.494853, 0.000000, 0.096639},
    {"meerkat-uhf", 1040, 0.246923, 0.765462, 0.412910},
    {"meerkat-uhf", 1040, 0.000000, -1.197577, 0.129456},
};

/* Places and numbers have six decimals. */
static void test_meerkat(void **state)
{
    for (size_t k = 0; k < sizeof katbeam / sizeof *katbeam; ++k) {
        const double x = katbeam[k].x_deg * TESS_RAD_PER_DEG;
        const double y = katbeam[k].y_deg * TESS_RAD_PER_DEG;
        const double power = power_of(katbeam[k].model, katbeam[k].mhz, x, y);
        if (fabs(power - katbeam[k].power) > 3e-6)
            fail_msg("%s at %g MHz: %g, not %g", katbeam[k].model, katbeam[k].mhz,
                     power, katbeam[k].power);
    }
    /* data that begin below the L band are of the UHF band */
    assert_float_equal(power_of("meerkat", 816, 0.01, 0),
                       power_of("meerkat-uhf", 816, 0.01, 0), 0);
    assert_float_equal(power_of("MeerKAT", 900, 0.01, 0),
                       power_of("meerkat-l", 900, 0.01, 0), 0);
    /* Mauch et al. 2020, equation 4: 57.5' at 1.5 GHz; the two are 1 % apart */
    const double at = 0.5 * 57.5 * AMIN;
    assert_float_equal(power_of("meerkat", 1500, at * sqrt(0.5), at * sqrt(0.5)), 0.5,
                       0.01);
}

/* The polynomials with their published coefficients, and what CASA chooses: of the VLA
 * the nearest frequency, of ATCA an interpolation. */
static void test_polynomials(void **state)
{
    static const struct {
        const char *model;
        double mhz, amin, power;
    } published[] = {
        {"vla", 1488, 10, 0.714900007},  {"vla", 1488, 24, 0.094444593},
        {"vla", 1515, 0.0, 1.0},         {"vla", 470, 70, 0.351108885},
        {"atca", 4300, 5, 0.583963792},  {"atca", 9000, 4, 0.233379021},
        {"atca", 5500, 5, 0.420615696},  {"atca", 5500, 8, 0.073627023},
        {"atca", 2100, 15, 0.342607064}, {"atca", 2228, 15, 0.288828322},
        {"gmrt", 400, 30, 0.623653504},  {"gmrt", 400, 60, 0.121929174},
        {"gmrt", 1280, 10, 0.640131570},
    };
    for (size_t k = 0; k < sizeof published / sizeof *published; ++k) {
        const double power = power_of(published[k].model, published[k].mhz, 0,
                                      sin(published[k].amin * AMIN));
        if (fabs(power - published[k].power) > 1e-8)
            fail_msg("%s at %g MHz, %g': %.9f, not %.9f", published[k].model,
                     published[k].mhz, published[k].amin, power, published[k].power);
    }
    /* nearer to 1488 than to 1552 MHz, and the other way round */
    const double x = pow(10 * 1.515, 2), y = pow(10 * 1.525, 2);
    assert_float_equal(power_of("vla", 1515, sin(10 * AMIN), 0),
                       1 - 1.455e-3 * x + 7.92e-7 * x * x - 1.63e-10 * x * x * x, 1e-9);
    assert_float_equal(power_of("vla", 1525, sin(10 * AMIN), 0),
                       1 - 1.435e-3 * y + 7.54e-7 * y * y - 1.49e-10 * y * y * y, 1e-9);
}

/* Beyond the main lobe a polynomial rises without limit. */
static void test_ends(void **state)
{
    for (double at = 0.02; at < 1; at *= 1.1) {
        assert_float_equal(power_of("vla", 1488, at, 0), 0, 0);
        assert_true(power_of("atca", 2100, at, 0) < 0.05);
        assert_true(power_of("gmrt", 700, at, 0) < 0.05);
    }
}

/* Half power of an open disk is at 0.5145 λ/D and its first null at 1.2197 λ/D (Born
 * and Wolf, section 8.5.2). ALMA's Technical Handbook has 1.13 λ/D for the full width
 * of 12 m antennas. */
static void test_airy(void **state)
{
    const double lambda_m = TESS_SPEED_OF_LIGHT_M_S / 1.4e9, unit = lambda_m / 25;
    assert_float_equal(power_of("airy:25", 1400, 0.51450 * unit, 0), 0.5, 1e-4);
    assert_float_equal(power_of("airy:25", 1400, 0, 1.21967 * unit), 0, 1e-9);
    assert_float_equal(power_of("airy:25", 1400, 0, 0), 1, 0);
    assert_true(power_of("airy:25,5", 1400, 0.51450 * unit, 0) < 0.499);
    const double alma = TESS_SPEED_OF_LIGHT_M_S / 100e9 / 12;
    assert_float_equal(power_of("alma", 100e3, 0.5 * 1.13 * alma, 0), 0.5, 0.015);
    const double aca = TESS_SPEED_OF_LIGHT_M_S / 100e9 / 7;
    assert_float_equal(power_of("aca", 100e3, 0.5 * 1.13 * aca, 0), 0.5, 0.015);
}

static void test_ranges(void **state)
{
    refused("meerkat", 2000, TESS_ERR_INPUT,
            "known at 856 to 1712 MHz, not at 2000 MHz");
    refused("meerkat", 500, TESS_ERR_INPUT, "544 to 1088");
    refused("vla", 600, TESS_ERR_INPUT, "224 to 480, 900 to 2026");
    refused("atca", 3800, TESS_ERR_INPUT, "1000 to 3500, 4000 to 12500");
    refused("gmrt", 900.5, TESS_ERR_INPUT, "550 to 900, 980 to 1500");
    refused("auto", 150, TESS_ERR_INPUT, "telescope 'LOFAR'");
    refused("poly:nothing.txt", 150, TESS_ERR_IO, "nothing.txt");
    refused("nothing.fits", 150, TESS_ERR_IO, "nothing.fits");
}

static void test_models(void **state)
{
    static const char *const good[] = {"auto", "VLA",        "airy:12.5,1",
                                       "aca",  "poly:a.txt", "/b/beam.fits"};
    static const char *const bad[] = {"",           "lofar",    "airy:", "airy:-1",
                                      "airy:25,25", "airy:25m", "poly:", "beam.txt"};
    for (size_t k = 0; k < sizeof good / sizeof *good; ++k)
        assert_int_equal(tess_primary_beam_check_model(good[k]), TESS_OK);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; ++k) {
        if (tess_primary_beam_check_model(bad[k]) != TESS_ERR_USAGE)
            fail_msg("'%s' is a model", bad[k]);
        tess_error_clear();
    }
    assert_string_equal(tess_primary_beam_file("poly:a.txt"), "a.txt");
    assert_string_equal(tess_primary_beam_file("b.fits"), "b.fits");
    assert_null(tess_primary_beam_file("vla"));
    assert_null(tess_primary_beam_file(NULL));
}

static void test_telescopes(void **state)
{
    static const char *const known[][2] = {{"MeerKAT", "MeerKAT, L band"},
                                           {"EVLA", "VLA"},
                                           {"ATCA", "ATCA"},
                                           {"uGMRT", "GMRT"}};
    for (size_t k = 0; k < sizeof known / sizeof *known; ++k) {
        tess_primary_beam *beam = NULL;
        assert_int_equal(open_at("auto", known[k][0], 1400, &beam), TESS_OK);
        assert_string_equal(tess_primary_beam_name(beam), known[k][1]);
        tess_primary_beam_close(beam);
    }
}

/* ---- files of polynomials ---- */

static void write_text(const char *text)
{
    FILE *out = fopen("a.txt", "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

static void test_text(void **state)
{
    write_text("# my antenna\n\n"
               "250MHz 0.5GHz poly  2, -6.258e-3 77.632e-7 -43.216e-10 8.966e-13 # x\n"
               "4GHz 7GHz inverse 1 1.08e-3 1.31e-6 -1.17e-9 1.07e-12\r\n");
    assert_float_equal(power_of("poly:a.txt", 400, sin(30 * AMIN), 0), 0.623653504,
                       1e-8);
    assert_float_equal(power_of("poly:a.txt", 5500, 0, sin(5 * AMIN)), 0.414954563,
                       1e-8);
    refused("poly:a.txt", 600, TESS_ERR_INPUT, "250 to 500, 4000 to 7000");
    static const char *const bad[][2] = {
        {"", "no beam in it"},
        {"1GHz", "line 1"},
        {"\n1GHz 2GHz gauss 1 2", "line 2: 'gauss' is neither"},
        {"2GHz 1GHz poly 1 2", "is empty"},
        {"1GHz 2GHz poly 1", "two coefficients"},
        {"1GHz 2GHz poly 0 1", "two coefficients"},
        {"1GHz 2GHz poly 1 x", "'x'"},
        {"1GHz 2GHz poly 1 2 3 4 5 6 7", "more than 6"},
        {"1GHz 2GHz inverse 1 1e306", "c1 is too large"},
        {"1GHz 2GHz poly 1e-300 1 1e9", "c2 is too large"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; ++k) {
        write_text(bad[k][0]);
        refused("poly:a.txt", 1500, TESS_ERR_INPUT, bad[k][1]);
    }
}

static tess_beam_mean *mean_of(const tess_primary_beam *beam,
                               const tess_beam_mean_of *of)
{
    tess_beam_mean *mean = NULL;
    if (tess_beam_mean_create(beam, of, &mean) != TESS_OK)
        fail_msg("%s", tess_error_message());
    return mean;
}

/* ---- cubes ---- */

enum { NX = 64, NY = 60, FREQS = 3, MOST = NX * NY * FREQS * 4 };

/* A beam that is 1.5 times as high as wide and narrows with frequency, off its middle.
 */
static double field_at(double x_deg, double y_deg, double hz)
{
    const double width = 1e9 / hz, x = (x_deg - 0.05) / width,
                 y = y_deg / (1.5 * width);
    return exp(-0.5 * (x * x + y * y)) * (1 + 0.1 * x);
}

static double power_in(double x_deg, double y_deg, double hz)
{
    const double field = field_at(x_deg, y_deg, hz) / field_at(0, 0, hz);
    return field * field;
}

typedef struct cube_axes {
    const char *type[2];
    double sign; /* of x */
    bool is_voltage, has_stokes;
    const char *freq_type, *freq_unit; /* "FREQ" and "Hz" by default */
} cube_axes;

/* A plane has its middle at pixel (30.5, 31), counted from 1. */
static double cube_value(const cube_axes *axes, long i, long j, double hz, int part)
{
    const double x =
        axes->sign * 0.1 * ((double)i - 29.5) * (*axes->type[0] == 'L' ? -1 : 1);
    const double y = 0.1 * ((double)j - 30), phase = 0.3 * x;
    const double field = 3 * field_at(x, y, hz);
    return !axes->is_voltage ? field * field : field * (part ? sin(phase) : cos(phase));
}

static void put_axis(fitsfile *fits, int axis, const char *type, const char *unit,
                     const double value[3], int *failed)
{
    static const char *const names[] = {"CRPIX", "CRVAL", "CDELT"};
    char key[16];
    for (int k = 0; k < 3; ++k) {
        snprintf(key, sizeof key, "%s%d", names[k], axis);
        fits_write_key(fits, TDOUBLE, key, (double *)&value[k], NULL, failed);
    }
    snprintf(key, sizeof key, "CTYPE%d", axis);
    fits_write_key(fits, TSTRING, key, (char *)type, NULL, failed);
    snprintf(key, sizeof key, "CUNIT%d", axis);
    fits_write_key(fits, TSTRING, key, (char *)unit, NULL, failed);
}

static void put_freq(fitsfile *fits, const cube_axes *axes, int *failed)
{
    const char *type = axes->freq_type ? axes->freq_type : "FREQ";
    const char *unit = axes->freq_unit ? axes->freq_unit : "Hz";
    const double hz = strcmp(unit, "MHz") == 0 ? 1e6 : 1;
    put_axis(fits, 4, type, unit, (double[]){2, 1e9 / hz, 0.1e9 / hz}, failed);
}

static void write_cube(const cube_axes *axes)
{
    static double pixel[MOST];
    const int parts = axes->is_voltage ? 2 : 1, stokes = axes->has_stokes ? 2 : 1;
    long lengths[5] = {NX, NY, stokes, FREQS, parts}, at = 0;
    fitsfile *fits = NULL;
    int failed = 0;
    for (int part = 0; part < parts; ++part)
        for (int f = 0; f < FREQS; ++f)
            for (int s = 0; s < stokes; ++s)
                for (long j = 0; j < NY; ++j)
                    for (long i = 0; i < NX; ++i) {
                        const double value =
                            cube_value(axes, i, j, 0.9e9 + 0.1e9 * f, part);
                        const double other = axes->is_voltage ? 7 * value : 7;
                        pixel[at++] = s == 1 ? other : value;
                    }
    unlink("cube.fits");
    fits_create_diskfile(&fits, "cube.fits", &failed);
    fits_create_img(fits, DOUBLE_IMG, 5, lengths, &failed);
    put_axis(fits, 1, axes->type[0], "deg", (double[]){30.5, 0, 0.1 * axes->sign},
             &failed);
    put_axis(fits, 2, axes->type[1], "arcmin", (double[]){31, 0, 6}, &failed);
    put_axis(fits, 3, "STOKES", "", (double[]){1, 1, 1}, &failed);
    put_freq(fits, axes, &failed);
    put_axis(fits, 5, axes->is_voltage ? "COMPLEX" : "X", "", (double[]){1, 1, 1},
             &failed);
    fits_write_img(fits, TDOUBLE, 1, at, pixel, &failed);
    fits_close_file(fits, &failed);
    assert_int_equal(failed, 0);
}

/* In the mean over one channel and one angle, in which East is against azimuth. */
static double cube_power(double mhz, double x, double y)
{
    const double hz = mhz * 1e6, weight = 1, angle = 0;
    const tess_beam_mean_of of = {.num_chan = 1,
                                  .freq_hz = &hz,
                                  .weight = &weight,
                                  .num_angles = 1,
                                  .angle_rad = &angle,
                                  .reach = 0.3};
    tess_primary_beam *beam = opened("cube.fits", mhz);
    tess_beam_mean *mean = mean_of(beam, &of);
    const double power = tess_beam_mean_power(mean, -x, y);
    tess_beam_mean_destroy(mean);
    tess_primary_beam_close(beam);
    return power;
}

/* Between pixels of a tenth of the width cubic interpolation is right to 1e-3. */
static void check_cube(const cube_axes *axes)
{
    write_cube(axes);
    for (double y = -1.2; y < 1.3; y += 0.37)
        for (double x = -1.2; x < 1.3; x += 0.43) {
            const double got =
                cube_power(1000, x * TESS_RAD_PER_DEG, y * TESS_RAD_PER_DEG);
            if (fabs(got - power_in(x, y, 1e9)) > 1e-3)
                fail_msg("%s: %g at %g, %g, not %g", axes->type[0], got, x, y,
                         power_in(x, y, 1e9));
        }
}

static void test_cubes(void **state)
{
    check_cube(&(cube_axes){.type = {"AZ", "EL"}, .sign = 1});
    check_cube(&(cube_axes){.type = {"X", "Y"}, .sign = -1, .is_voltage = true});
    check_cube(&(cube_axes){
        .type = {"L", "M"}, .sign = -1, .is_voltage = true, .has_stokes = true});
    check_cube(
        &(cube_axes){.type = {"AZ---SIN", "EL---SIN"}, .sign = 1, .has_stokes = true});
    check_cube(&(cube_axes){.type = {"AZ", "EL"}, .sign = 1, .freq_unit = "MHz"});
    /* half way between planes */
    const double x = 0.6 * TESS_RAD_PER_DEG;
    assert_float_equal(cube_power(1050, x, 0),
                       0.5 * (power_in(0.6, 0, 1e9) + power_in(0.6, 0, 1.1e9)), 1e-3);
    /* outside of the file, and of the mean's map, too */
    assert_float_equal(cube_power(1000, 0.09, 0), 0, 0);
    assert_float_equal(cube_power(1000, 0.2, 0), 0, 0);
    refused("cube.fits", 880, TESS_ERR_INPUT,
            "known at 900 to 1100 MHz, not at 880 MHz");
    write_cube(&(cube_axes){.type = {"RA---SIN", "DEC--SIN"}, .sign = 1});
    refused("cube.fits", 1000, TESS_ERR_INPUT, "axis 1 of a beam must be AZ, X or L");
    write_cube(&(cube_axes){.type = {"AZ", "FREQ"}, .sign = 1});
    refused("cube.fits", 1000, TESS_ERR_INPUT, "axis 2 of a beam must be EL, Y or M");
    write_cube(&(cube_axes){.type = {"AZ", "EL"}, .sign = 1, .freq_type = "FREQ-LOG"});
    refused("cube.fits", 1000, TESS_ERR_INPUT, "'FREQ-LOG' of the beam is not linear");
    write_cube(&(cube_axes){.type = {"AZ", "EL"}, .sign = 1, .freq_unit = "m"});
    refused("cube.fits", 1000, TESS_ERR_INPUT, "FREQ axis is 'm'; it must be Hz");
}

/* ---- means ---- */

/* A profile is interpolated to a millionth of the peak. */
static void test_round_mean(void **state)
{
    const double hz[3] = {1e9, 1.4e9, 1.9e9}, weight[3] = {1, 0, 3};
    tess_primary_beam *beam = opened("airy:25", 1400);
    const tess_beam_mean_of of = {
        .num_chan = 3, .freq_hz = hz, .weight = weight, .reach = 0.05};
    tess_beam_mean *mean = mean_of(beam, &of);
    for (double l = -0.03; l < 0.031; l += 0.0007) {
        const double a = beam_formula_power(beam, hz[0], l, 0.001);
        const double c = beam_formula_power(beam, hz[2], l, 0.001);
        assert_float_equal(tess_beam_mean_power(mean, l, 0.001), 0.25 * a + 0.75 * c,
                           1e-6);
    }
    assert_float_equal(tess_beam_mean_power(mean, 0, 0), 1, 1e-9);
    assert_float_equal(tess_beam_mean_power(mean, 0.9, 0), 0, 0); /* beyond its reach */
    tess_beam_mean_destroy(mean);
    tess_primary_beam_close(beam);
}

/* The power of a pair is the product of the fields, of which that of a large dish is
 * negative beyond its null. */
static void test_pair(void **state)
{
    const double hz = 1.4e9, weight = 1;
    tess_primary_beam *large = opened("airy:25", 1400),
                      *small = opened("airy:12", 1400);
    tess_beam_mean_of of = {.other = small,
                            .num_chan = 1,
                            .freq_hz = &hz,
                            .weight = &weight,
                            .reach = 0.05};
    tess_beam_mean *mean = mean_of(large, &of);
    for (double l = 0; l < 0.03; l += 0.0007) {
        const double sign = l < 1.21967 * 0.214137 / 25 ? 1 : -1;
        const double power =
            beam_formula_power(large, hz, l, 0) * beam_formula_power(small, hz, l, 0);
        if (l < 0.015)
            assert_float_equal(tess_beam_mean_power(mean, l, 0), sign * sqrt(power),
                               1e-6);
    }
    tess_beam_mean_destroy(mean);
    tess_primary_beam_close(small);
    write_cube(&(cube_axes){.type = {"AZ", "EL"}, .sign = 1});
    small = opened("cube.fits", 1000);
    of.other = small;
    assert_int_equal(tess_beam_mean_create(large, &of, &mean), TESS_ERR_INPUT);
    tess_error_clear();
    tess_primary_beam_close(small);
    tess_primary_beam_close(large);
}

/* The zenith is towards North and East by cos q and sin q; with North up and East left,
 * as for a source in the South, azimuth grows to the right. */
static double turned_power(double l_deg, double m_deg, double q, double hz)
{
    return power_in(-l_deg * cos(q) + m_deg * sin(q), l_deg * sin(q) + m_deg * cos(q),
                    hz);
}

static void test_turning_mean(void **state)
{
    const double hz[2] = {0.95e9, 1.1e9}, weight[2] = {1, 2},
                 angle[3] = {-0.5, 0.3, 2.8};
    write_cube(&(cube_axes){.type = {"AZ", "EL"}, .sign = 1});
    tess_primary_beam *beam = opened("cube.fits", 1000);
    assert_true(tess_primary_beam_turns(beam));
    const tess_beam_mean_of of = {.num_chan = 2,
                                  .freq_hz = hz,
                                  .weight = weight,
                                  .num_angles = 3,
                                  .angle_rad = angle,
                                  .reach = 0.04};
    tess_beam_mean *mean = mean_of(beam, &of);
    for (double l = -0.9; l < 1; l += 0.31)
        for (double m = -0.9; m < 1; m += 0.29) {
            double wanted = 0;
            for (int k = 0; k < 3; ++k)
                wanted += (0.5 * turned_power(l, m, angle[k], 0.9e9) +
                           0.5 * turned_power(l, m, angle[k], 1e9) +
                           2 * turned_power(l, m, angle[k], 1.1e9)) /
                          9;
            const double got =
                tess_beam_mean_power(mean, l * TESS_RAD_PER_DEG, m * TESS_RAD_PER_DEG);
            if (fabs(got - wanted) > 2e-3)
                fail_msg("%g at %g, %g, not %g", got, l, m, wanted);
        }
    tess_beam_mean_destroy(mean);
    tess_primary_beam_close(beam);
}

/* A formula that turns, as katbeam's: a map of it is right to 1e-4 of the peak, and the
 * same on three threads. */
static void test_turning_formula(void **state)
{
    const double hz[2] = {1400e6, 1600e6}, weight[2] = {1, 3};
    const double angle = 0.25 * TESS_PI, c = sqrt(0.5);
    tess_primary_beam *beam = opened("meerkat", 1450);
    tess_beam_mean_of of = {.num_chan = 2,
                            .freq_hz = hz,
                            .weight = weight,
                            .num_angles = 1,
                            .angle_rad = &angle,
                            .reach = 0.05};
    tess_beam_mean *mean = mean_of(beam, &of);
    of.threads = 3;
    tess_beam_mean *threaded = mean_of(beam, &of);
    for (double l = -0.014; l < 0.015; l += 0.0031)
        for (double m = -0.014; m < 0.015; m += 0.0029) {
            double wanted = 0;
            for (int k = 0; k < 2; ++k)
                wanted += weight[k] / 4 *
                          beam_formula_power(beam, hz[k], c * (m - l), c * (m + l));
            assert_float_equal(tess_beam_mean_power(mean, l, m), wanted, 1e-4);
            assert_float_equal(tess_beam_mean_power(threaded, l, m),
                               tess_beam_mean_power(mean, l, m), 0);
        }
    tess_beam_mean_destroy(threaded);
    tess_beam_mean_destroy(mean);
    tess_primary_beam_close(beam);
}

/* ---- parallactic angles ---- */

/* tan q = sin H / (tan φ cos δ − sin δ cos H) for a site at a longitude of 0, at 2000
 * January 1, 12:00 UT: the sidereal time at Greenwich is then 280.4606 degrees, and
 * coordinates of J2000 are those of date. */
static void test_angles(void **state)
{
    const double lat = -0.5, radius_m = 6.37e6, mjd_s = 51544.5 * 86400;
    const double site_m[3] = {radius_m * cos(lat), 0, radius_m * sin(lat)};
    /* geodetic latitude of that geocentric one (f = 1/298.257) */
    const double phi = atan(tan(lat) / pow(1 - 1 / 298.257223563, 2));
    const double lst = 280.4606 * TESS_RAD_PER_DEG;
    for (double hour = -1; hour < 1.1; hour += 0.4)
        for (double dec = -1.2; dec < 0.6; dec += 0.35) {
            double got;
            const double wanted =
                atan2(sin(hour), tan(phi) * cos(dec) - sin(dec) * cos(hour));
            assert_int_equal(
                tess_parallactic_angle(lst - hour, dec, site_m, mjd_s, &got), TESS_OK);
            const double apart = remainder(got - wanted, TESS_TWO_PI);
            if (fabs(apart) > 1e-3)
                fail_msg("hour %g, dec %g: %g, not %g", hour, dec, got, wanted);
        }
    double unused;
    const double nowhere[3] = {0};
    assert_int_equal(tess_parallactic_angle(0, 0, nowhere, mjd_s, &unused),
                     TESS_ERR_INPUT);
    tess_error_clear();
    assert_int_equal(tess_parallactic_angle(0, 0, site_m, NAN, &unused),
                     TESS_ERR_INPUT);
    tess_error_clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meerkat),
        cmocka_unit_test(test_polynomials),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_airy),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_telescopes),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_cubes),
        cmocka_unit_test(test_round_mean),
        cmocka_unit_test(test_pair),
        cmocka_unit_test(test_turning_mean),
        cmocka_unit_test(test_turning_formula),
        cmocka_unit_test(test_angles),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
