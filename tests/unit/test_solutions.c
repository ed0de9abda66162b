/* Solutions: h5parm files of all kinds, axes in any order, what a Jones matrix is made
 * of, interpolation, values that do not count, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "h5parm_sample.h"
#include "tess_comm.h"
#include "tess_mem.h"
#include "tess_solutions.h"

#define PI 3.14159265358979323846

static tess_comm *comm;
static char path[] = "solutions-test.h5", other_path[] = "solutions-other.h5";

static const char *const sources[] = {"[a]", "[b]", "[c]"};
static const double places[][2] = {{0.10, 0.5}, {0.12, 0.5}, {0.10, 0.52}};
static const char *const antennas[] = {"A1", "B22", "C3", "D4"};
static const char *const four[] = {"XX", "XY", "YX", "YY"};
static const char *const two[] = {"XX", "YY"};
static const double times[] = {5e9, 5e9 + 10, 5e9 + 30};
static const double freqs[] = {1e8, 1.2e8, 1.3e8, 1.5e8};

/* Values that tell all indices. */
static double amplitude(const int i[])
{
    return 1 + 0.1 * i[0] + 0.02 * i[1] + 0.003 * i[2] + 0.0004 * i[3] + 0.3 * i[4];
}

static double phase(const int i[])
{
    return -1 + 0.5 * i[0] + 0.4 * i[1] + 0.3 * i[2] + 0.2 * i[3] + 0.1 * i[4];
}

static double small(const int i[])
{
    return 0.01 * (1 + i[0] + i[1] + i[2] + i[3]);
}

static double clock_s(const int i[])
{
    return 1e-9 * (1 + i[0] + i[1] + i[2]);
}

static double some(const int i[]) /* antenna 1 at time 1 does not count */
{
    return i[1] == 1 && i[2] == 1 ? 0 : 1;
}

static double none(const int i[])
{
    return i[0] == 1 ? (double)NAN : 1;
}

static double jump(const int i[]) /* 3 to -3 rad: 0.283 the shorter way */
{
    return i[2] == 0 ? 3 : -3;
}

static sample_table table_of(const char *name, const char *title, const char *axes,
                             int num_pols, double (*value)(const int[]))
{
    return (sample_table){
        .name = name,
        .title = title,
        .axes = axes,
        .length = {3, 4, 3, 4, num_pols},
        .text = {sources, antennas, NULL, NULL, num_pols == 4 ? four : two},
        .number = {NULL, NULL, times, freqs, NULL},
        .value = value};
}

static void write_file(const char *to, const sample_table *table, int num,
                       sample_text texts)
{
    sample_write(to, &(sample_file){.texts = texts,
                                    .num_sources = 3,
                                    .source = sources,
                                    .direction = places,
                                    .num_tables = num,
                                    .table = table});
}

/* Two antennas in another order, and two directions, the second near [c]. */
static const char *const asked[] = {"C3", "A1"};
static const double directions[][2] = {{0.1201, 0.5002}, {0.101, 0.519}};
static const int ant_of[] = {2, 0}, dir_of[] = {1, 2};
static const char *const paths[] = {path, other_path};

static tess_solutions_opts opts_of(const char *const *table, int num)
{
    return (tess_solutions_opts){.path = paths,
                                 .num_files = 1,
                                 .table = table,
                                 .num_tables = num,
                                 .antenna = asked,
                                 .num_antennas = 2,
                                 .direction = directions,
                                 .num_directions = 2};
}

static tess_solutions *taken(const tess_solutions_opts *opts)
{
    tess_solutions *solutions = NULL;
    if (tess_solutions_read(comm, opts, &solutions) != TESS_OK)
        fail_msg("%s", tess_error_message());
    return solutions;
}

static void refused(const tess_solutions_opts *opts, const char *word,
                    const char *reason)
{
    tess_solutions *solutions = NULL;
    assert_int_equal(tess_solutions_read(comm, opts, &solutions), TESS_ERR_INPUT);
    assert_null(solutions);
    const char *message = tess_error_message();
    if (!strstr(message, path) || !strstr(message, word) || !strstr(message, reason))
        fail_msg("'%s' does not say '%s' and '%s'", message, word, reason);
    tess_error_clear();
}

static void same(const double got[4][2], double complex xx, double complex xy,
                 double complex yx, double complex yy)
{
    const double complex want[] = {xx, xy, yx, yy};
    for (int k = 0; k < 4; ++k)
        if (!(cabs(got[k][0] + I * got[k][1] - want[k]) < 1e-12))
            fail_msg("entry %d: %g %+gi, not %g %+gi", k, got[k][0], got[k][1],
                     creal(want[k]), cimag(want[k]));
}

/* ---- matrices ---- */

/* Diagonal gains, with axes in several orders and texts of each kind; the nearest time
 * and frequency, and ends beyond them. */
static void test_orders(void **state)
{
    static const char *const orders[] = {
        "time,freq,ant,dir,pol", "pol,dir,ant,freq,time", "ant,time,pol,freq,dir",
        "dir,ant,time,freq,pol"};
    static const double at[][2] = {{5e9 - 100, 1e7},
                                   {5e9 + 5, 1.1e8},
                                   {5e9 + 5.1, 1.26e8},
                                   {5e9 + 21, 1.4e8},
                                   {5e9 + 99, 2e8}};
    static const int time_of[] = {0, 0, 1, 2, 2}, freq_of[] = {0, 0, 2, 2, 3};
    for (int o = 0; o < 4; ++o) {
        const sample_table table[] = {
            table_of("amplitude000", "amplitude", orders[o], 2, amplitude),
            table_of("phase000", "phase", orders[3 - o], 2, phase)};
        write_file(path, table, 2, (sample_text)o);
        const tess_solutions_opts opts = opts_of(NULL, 0);
        tess_solutions *solutions = taken(&opts);
        for (int k = 0; k < 5; ++k)
            for (int a = 0; a < 2; ++a)
                for (int d = 0; d < 2; ++d) {
                    const int x[] = {dir_of[d], ant_of[a], time_of[k], freq_of[k], 0};
                    const int y[] = {dir_of[d], ant_of[a], time_of[k], freq_of[k], 1};
                    double jones[4][2];
                    assert_true(tess_solutions_jones(solutions, a, d, at[k][0],
                                                     at[k][1], jones));
                    same((const double(*)[2])jones, amplitude(x) * cexp(I * phase(x)),
                         0, 0, amplitude(y) * cexp(I * phase(y)));
                }
        assert_string_equal(tess_solutions_match(solutions, 0, 0)->name, "[b]");
        assert_true(fabs(tess_solutions_match(solutions, 0, 0)->separation_rad -
                         hypot(0.0001 * cos(0.5), 0.0002)) < 1e-6);
        const tess_solution_range range = tess_solutions_range(solutions, 1, 1);
        assert_string_equal(range.table, "phase000");
        assert_int_equal(range.num_values, 2 * 3 * 4 * 2);
        assert_true(fabs(range.least) < 1e-15 && fabs(range.most - 2.1) < 1e-15);
        tess_solutions_free(solutions);
    }
    (void)state;
}

/* Each kind of table, without some of the axes, and the product of two files. */
static void test_kinds(void **state)
{
    const sample_table table[] = {
        table_of("amplitude000", "amplitude", "time,ant,dir,pol", 4, amplitude),
        table_of("phase000", "phase", "pol,time,ant,dir", 4, phase),
        table_of("tec000", "tec", "dir,ant,time", 1, small),
        table_of("clock000", "clock", "time,ant", 1, clock_s),
        table_of("rotation000", "rotation", "dir,time,freq", 1, small),
        table_of("rotationmeasure000", "rotationmeasure", "time,ant", 1, small)};
    static const char *const names[] = {"tec000",   "amplitude000",       "rotation000",
                                        "phase000", "rotationmeasure000", "clock000"};
    write_file(path, table, 6, SAMPLE_PADDED);
    const sample_table second[] = {
        table_of("phase000", "phase", "time,freq,dir", 1, phase)};
    write_file(other_path, second, 1, SAMPLE_PADDED);
    tess_solutions_opts opts = opts_of(names, 6);
    opts.num_files = 2;
    tess_solutions *solutions = taken(&opts);
    const double freq = 1.2e8, wave = 299792458.0 / freq;
    for (int a = 0; a < 2; ++a)
        for (int d = 0; d < 2; ++d) {
            double jones[4][2];
            int i[] = {dir_of[d], ant_of[a], 1, 0, 0};
            const double complex tec = cexp(I * -8.44797245e9 * small(i) / freq);
            double complex g[4];
            for (i[4] = 0; i[4] < 4; ++i[4])
                g[i[4]] = amplitude(i) * cexp(I * phase(i));
            const int rotation[] = {dir_of[d], 0, 1, 1, 0},
                      of_time[] = {0, ant_of[a], 1, 0, 0};
            const double angle = small(rotation) + small(of_time) * wave * wave;
            const double complex scalar = tec *
                                          cexp(I * 2 * PI * freq * clock_s(of_time)) *
                                          cexp(I * phase(rotation));
            const double c = cos(angle), s = sin(angle);
            assert_true(tess_solutions_jones(solutions, a, d, times[1], freq, jones));
            same((const double(*)[2])jones, scalar * (g[0] * c + g[1] * s),
                 scalar * (g[1] * c - g[0] * s), scalar * (g[2] * c + g[3] * s),
                 scalar * (g[3] * c - g[2] * s));
        }
    tess_solutions_free(solutions);
    (void)state;
}

/* A rotation turns the phases of circular feeds, and mixes none. */
static void test_circular(void **state)
{
    static const char *const names[] = {"rotation000"};
    const sample_table table =
        table_of("rotation000", "rotation", "dir,time,freq", 1, small);
    write_file(path, &table, 1, SAMPLE_PADDED);
    tess_solutions_opts opts = opts_of(names, 1);
    opts.is_circular = true;
    tess_solutions *solutions = taken(&opts);
    const int at[] = {dir_of[1], 0, 1, 1, 0};
    double jones[4][2];
    assert_int_equal(tess_solutions_shape(solutions), TESS_GAIN_DIAGONAL);
    assert_true(tess_solutions_jones(solutions, 0, 1, times[1], freqs[1], jones));
    same((const double(*)[2])jones, cexp(I * small(at)), 0, 0, cexp(-I * small(at)));
    tess_solutions_free(solutions);
    (void)state;
}

/* A file that is read in several pieces. */
static void test_pieces(void **state)
{
    enum { MANY = 60000 };
    static double many[MANY];
    for (int k = 0; k < MANY; ++k)
        many[k] = 1e8 + 1e3 * k;
    sample_table table =
        table_of("amplitude000", "amplitude", "time,freq,ant,dir,pol", 2, amplitude);
    table.length[3] = MANY;
    table.number[3] = many;
    table.no_weight = true;
    write_file(path, &table, 1, SAMPLE_PADDED);
    tess_solutions_opts opts = opts_of(NULL, 0);
    opts.freq_hz[0] = many[100];
    opts.freq_hz[1] = many[MANY - 100];
    tess_solutions *solutions = taken(&opts);
    for (int k = 0; k < 3; ++k) {
        const int x[] = {dir_of[1], ant_of[0], k, 7000 * k + 150, 0};
        const int y[] = {dir_of[1], ant_of[0], k, 7000 * k + 150, 1};
        double jones[4][2];
        assert_true(tess_solutions_jones(solutions, 0, 1, times[k], many[x[3]], jones));
        same((const double(*)[2])jones, amplitude(x), 0, 0, amplitude(y));
    }
    tess_solutions_free(solutions);
    (void)state;
}

/* Between times and frequencies, and across a turn of the phase. */
static void test_linear(void **state)
{
    const sample_table table[] = {
        table_of("amplitude000", "amplitude", "time,freq,ant,dir,pol", 1, amplitude),
        table_of("phase000", "phase", "time,ant", 1, jump)};
    double jones[4][2];
    write_file(path, table, 2, SAMPLE_PADDED);
    tess_solutions_opts opts = opts_of(NULL, 0);
    opts.is_linear = true;
    tess_solutions *solutions = taken(&opts);
    const int i[] = {dir_of[0], ant_of[0], 0, 2, 0}; /* 2.5 s of 10, ¼ of 20 MHz */
    const double gain = amplitude(i) + 0.25 * 0.003 + 0.25 * 0.0004;
    const double angle = 3 + 0.25 * (2 * PI - 6);
    assert_true(tess_solutions_jones(solutions, 0, 0, 5e9 + 2.5, 1.35e8, jones));
    same((const double(*)[2])jones, gain * cexp(I * angle), 0, 0,
         gain * cexp(I * angle));
    tess_solutions_free(solutions);
    (void)state;
}

/* Weights of 0, and limits to what is read. */
static void test_weights(void **state)
{
    sample_table table = table_of("phase000", "phase", "time,ant,dir", 1, phase);
    double jones[4][2];
    table.weight = some;
    write_file(path, &table, 1, SAMPLE_PADDED);
    tess_solutions_opts opts = opts_of(NULL, 0);
    opts.antenna = NULL; /* those of the table */
    tess_solutions *solutions = taken(&opts);
    assert_true(tess_solutions_jones(solutions, 1, 0, times[0], 1e8, jones));
    assert_false(tess_solutions_jones(solutions, 1, 0, times[1], 1e8, jones));
    assert_true(jones[0][0] == 0 && jones[3][0] == 0);
    assert_true(tess_solutions_jones(solutions, 2, 0, times[1], 1e8, jones));
    assert_int_equal(tess_solutions_range(solutions, 0, 0).num_bad, 1);
    tess_solutions_free(solutions);
    opts.is_linear = true; /* the value that does not count takes no part */
    solutions = taken(&opts);
    const int i[] = {dir_of[0], 1, 0, 0, 0};
    assert_true(tess_solutions_jones(solutions, 1, 0, times[0] + 4, 1e8, jones));
    same((const double(*)[2])jones, cexp(I * phase(i)), 0, 0, cexp(I * phase(i)));
    assert_false(tess_solutions_jones(solutions, 1, 0, times[0] + 6, 1e8, jones));
    tess_solutions_free(solutions);
    opts.is_linear = false;
    opts.time_mjd_s[0] = times[0] + 11;
    opts.time_mjd_s[1] = times[0] + 12;
    solutions = taken(&opts);
    assert_int_equal(tess_solutions_range(solutions, 0, 0).num_values, 4 * 2);
    assert_true(tess_solutions_jones(solutions, 0, 0, times[0] + 12, 1e8, jones));
    const int j[] = {dir_of[0], 0, 1, 0, 0};
    same((const double(*)[2])jones, cexp(I * phase(j)), 0, 0, cexp(I * phase(j)));
    tess_solutions_free(solutions);
    (void)state;
}

/* ---- what is refused ---- */

static void test_refused(void **state)
{
    static const char *const names[] = {"phase000", "phase007"};
    static const char *const odd[] = {"A1", "Z9"};
    sample_table table = table_of("phase000", "phase", "time,freq,ant,dir", 1, phase);
    write_file(path, &table, 1, SAMPLE_PADDED);
    tess_solutions_opts opts = opts_of(names, 2);
    refused(&opts, "phase007", "it has: phase000");
    opts = opts_of(names + 1, 1);
    refused(&opts, "'phase007'", "it has: phase000");
    opts = opts_of(NULL, 0);
    opts.antenna = odd;
    refused(&opts, "phase000", "no antenna 'Z9'");
    opts = opts_of(NULL, 0);
    opts.time_mjd_s[0] = 4e9;
    opts.time_mjd_s[1] = 4e9 + 100;
    refused(&opts, "phase000", "no solutions at the times");
    opts.time_mjd_s[0] = opts.time_mjd_s[1] = times[2] + 19; /* within a step */
    opts.freq_hz[0] = 0.7e8;
    opts.freq_hz[1] = 1e8;
    refused(&opts, "phase000", "no solutions at the frequencies");
    opts.freq_hz[0] = 0.81e8;
    opts.freq_hz[1] = 1.69e8;
    tess_solutions_free(taken(&opts));
    opts = opts_of(NULL, 0);
    table.weight = none;
    write_file(path, &table, 1, SAMPLE_PADDED);
    refused(&opts, "phase000", "no value that counts of direction [b]");
    (void)state;
}

/* A table or a file that is named twice would have its gains applied twice. */
static void test_twice(void **state)
{
    static const char *const names[] = {"phase000", "phase000"};
    const char *const files[] = {path, path};
    tess_solutions *solutions = NULL;
    sample_table table = table_of("phase000", "phase", "time,freq,ant,dir", 1, phase);
    write_file(path, &table, 1, SAMPLE_PADDED);
    tess_solutions_opts opts = opts_of(names, 2);
    assert_int_equal(tess_solutions_read(comm, &opts, &solutions), TESS_ERR_USAGE);
    assert_non_null(strstr(tess_error_message(), "'phase000' is named twice"));
    tess_error_clear();
    opts = opts_of(names, 1);
    opts.path = files;
    opts.num_files = 2;
    assert_int_equal(tess_solutions_read(comm, &opts, &solutions), TESS_ERR_USAGE);
    assert_non_null(strstr(tess_error_message(), path));
    assert_null(solutions);
    tess_error_clear();
    (void)state;
}

/* Each group of antennas has the solutions of its own files alone, which need not have
 * the antennas and times of others; files of groups without antennas are not read. */
static void test_groups(void **state)
{
    static const char *const names[] = {"amplitude000"};
    static const char *const own[] = {"C3", "other", "A1"};
    static const int group[] = {0, 1, 0};
    static const char *const one[] = {"other"};
    static const double late[] = {6e9, 6e9 + 10, 6e9 + 30};
    const tess_solution_reach reach[] = {{{times[0], times[2]}, {freqs[0], freqs[3]}},
                                         {{late[0], late[2]}, {freqs[0], freqs[3]}}};
    sample_table table =
        table_of("amplitude000", "amplitude", "time,freq,ant,dir", 1, amplitude);
    write_file(path, &table, 1, SAMPLE_PADDED);
    table.length[1] = 1;
    table.text[1] = one;
    table.number[2] = late;
    write_file(other_path, &table, 1, SAMPLE_PADDED);
    tess_solutions_opts opts = opts_of(names, 1);
    opts.num_files = opts.num_groups = 2;
    opts.antenna = own;
    opts.num_antennas = 3;
    opts.antenna_group = group;
    opts.reach = reach;
    tess_solutions *solutions = taken(&opts);
    double jones[4][2];
    for (int k = 0; k < 3; ++k) {
        const int at[] = {dir_of[1], k == 1 ? 0 : ant_of[k / 2], 1, 2, 0};
        const double *time = k == 1 ? late : times;
        assert_true(tess_solutions_jones(solutions, k, 1, time[1], freqs[2], jones));
        same((const double(*)[2])jones, amplitude(at), 0, 0, amplitude(at));
    }
    tess_solutions_free(solutions);
    /* a table of one group is not one of another */
    static const char *const both[] = {"amplitude000", "phase000"};
    const sample_table two[] = {
        table_of("amplitude000", "amplitude", "time,freq,ant,dir", 1, amplitude),
        table_of("phase000", "phase", "time,freq,ant,dir", 1, phase)};
    write_file(path, two, 2, SAMPLE_PADDED);
    opts.table = both;
    opts.num_tables = 2;
    assert_int_equal(tess_solutions_read(comm, &opts, &solutions), TESS_ERR_INPUT);
    assert_non_null(strstr(tess_error_message(), other_path));
    tess_error_clear();
    opts.table = names;
    opts.num_tables = 1;
    unlink(other_path);
    opts.antenna = asked;
    opts.num_antennas = 2;
    opts.antenna_group = (const int[]){0, 0};
    tess_solutions_free(taken(&opts));
    opts.num_files = 1;
    assert_int_equal(tess_solutions_read(comm, &opts, &solutions), TESS_ERR_USAGE);
    assert_non_null(strstr(tess_error_message(), "1 files"));
    tess_error_clear();
    (void)state;
}

/* Files that no program should write: each names the table. */
static void test_damaged(void **state)
{
    const sample_table good =
        table_of("phase000", "phase", "time,freq,ant,dir", 1, phase);
    static const double back[] = {2, 1, 3};
    static const char *const renamed[] = {"[x]", "[y]", "[z]"};
    const tess_solutions_opts opts = opts_of(NULL, 0);
    sample_table bad[11];
    const char *reason[] = {"'error'",
                            "no attribute TITLE",
                            "attribute AXES",
                            "'time,freq,ant,sky'",
                            "do not have the axes",
                            "axis 'ant'",
                            "does not ascend",
                            "attribute AXES",
                            "no numbers",
                            "no direction '[b]'",
                            "3 polarisations"};
    for (int k = 0; k < 11; ++k)
        bad[k] = good;
    bad[0].title = "error";
    bad[1].title = NULL;
    bad[2].axes = NULL;
    bad[3].axes = "time,freq,ant,sky";
    bad[4].stored_axes = 3;
    bad[5].missing = 2;
    bad[6].number[2] = back;
    bad[7].no_values = true;
    bad[8].type = H5T_C_S1;
    bad[9].text[0] = renamed;
    bad[10].axes = "time,freq,ant,dir,pol";
    bad[10].length[4] = 3;
    bad[10].text[4] = four;
    for (int k = 0; k < 11; ++k) {
        write_file(path, &bad[k], 1, SAMPLE_PADDED);
        refused(&opts, "phase000", reason[k]);
    }
    const sample_table mixed[] = {
        table_of("amplitude000", "amplitude", "pol,ant", 4, amplitude),
        table_of("phase000", "phase", "pol,ant", 2, phase)};
    write_file(path, mixed, 2, SAMPLE_PADDED);
    refused(&opts, "phase000", "its amplitude has 4");
    sample_write(path, &(sample_file){.group = "other"});
    refused(&opts, "no group of solutions", "sol000");
    sample_write(path, &(sample_file){.num_tables = 1, .table = &good});
    refused(&opts, "sol000/source", "names and directions");
    FILE *text = fopen(path, "w");
    fputs("no h5parm\n", text);
    fclose(text);
    refused(&opts, "no HDF5 file", "");
    (void)state;
}

static void test_sources(void **state)
{
    const sample_table table = table_of("phase000", "phase", "time,ant", 1, phase);
    tess_solution_source *source = NULL;
    int64_t num = 0;
    write_file(path, &table, 1, SAMPLE_PADDED);
    assert_int_equal(tess_solutions_sources(comm, path, &source, &num), TESS_OK);
    assert_int_equal(num, 3);
    assert_string_equal(source[2].name, "[c]");
    assert_true(fabs(source[2].dec_rad - 0.52) < 1e-7);
    tess_free(source);
    /* without an axis of directions, none is looked for */
    const tess_solutions_opts opts = opts_of(NULL, 0);
    tess_solutions *solutions = taken(&opts);
    assert_true(tess_solutions_match(solutions, 0, 0)->is_only);
    assert_string_equal(tess_solutions_match(solutions, 0, 0)->name, "");
    tess_solutions_free(solutions);
    (void)state;
}

static int begin(void **state)
{
    (void)state;
    return tess_comm_self(&comm) != TESS_OK;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    unlink(other_path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),   cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_circular), cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_linear),   cmocka_unit_test(test_weights),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_twice),
        cmocka_unit_test(test_groups),   cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_sources)};
    return cmocka_run_group_tests(tests, begin, end);
}
