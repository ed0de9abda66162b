/* Files of solutions. The input chooses what HDF5 writes into an h5parm: names, types,
 * dimensions, attributes, values, and what is left out or cut off. So the errors are
 * those that readers of HDF5 have to expect, and not those of HDF5's own decoding. */
#define _XOPEN_SOURCE 700 /* truncate */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz_file.h"
#include "h5parm_sample.h"
#include "tess_comm.h"
#include "tess_mem.h"
#include "tess_solutions.h"

enum { TABLES = 3, NAMES = 6, LONGEST = 150 };

static const char path[] = "fuzz.h5";

/* ---- choices ---- */

static const uint8_t *choice, *choices_end;

/* A number below `most`; 0 at the end of the input. */
static int choose(int most)
{
    return choice < choices_end ? *choice++ % most : 0;
}

/* A text of the input's bytes, without NUL; mostly the usual one. */
static const char *choose_text(const char *usual, char room[LONGEST + 1], int longest)
{
    if (choose(8) > 0) return usual;
    const int length = choose(longest + 1);
    for (int k = 0; k < length; ++k)
        room[k] = (char)(1 + choose(255));
    room[length] = '\0';
    return room;
}

static double choose_number(double usual)
{
    static const double odd[] = {
        0, -1, 1e30, -1e30, 1e-300, (double)NAN, (double)INFINITY};
    return choose(6) > 0 ? usual + choose(7) : odd[choose(7)];
}

/* ---- the file ---- */

static char axes_room[TABLES][LONGEST + 1], title_room[TABLES][LONGEST + 1];
static char name_room[3][NAMES][LONGEST + 1];
static const char *names[3][NAMES]; /* of directions, antennas, polarisations */
static double numbers[2][NAMES];
static double value_seed;

static double value_of(const int index[SAMPLE_AXES])
{
    double value = value_seed;
    for (int k = 0; k < SAMPLE_AXES; ++k)
        value = 3 * sin(value + index[k]);
    return value_seed > 200 && value > 2.5 ? (double)NAN : value;
}

static double weight_of(const int index[SAMPLE_AXES])
{
    return value_of(index) > 0 ? 1 : 0;
}

static void choose_table(int number, sample_table *table)
{
    static const char *const table_names[TABLES] = {"amplitude000", "phase000",
                                                    "other"};
    static const char *const titles[] = {"amplitude", "phase",    "tec",
                                         "clock",     "rotation", "rotationmeasure"};
    static const char *const axes[] = {"time,freq,ant,dir,pol",
                                       "dir,ant,time",
                                       "pol,freq",
                                       "ant",
                                       "time,time",
                                       "pol, dir ,ant,freq,time",
                                       ","};
    const hid_t types[] = {0,        H5T_NATIVE_DOUBLE, H5T_IEEE_F32BE, H5T_STD_I32LE,
                           H5T_C_S1, H5T_STD_U8BE};
    *table = (sample_table){.name = table_names[number],
                            .value = value_of,
                            .weight = choose(2) ? weight_of : NULL,
                            .type = types[choose(6)],
                            .missing = choose(8) ? 0 : choose(6),
                            .no_values = choose(16) == 1,
                            .no_weight = choose(8) == 1,
                            .stored_axes = choose(8) ? 0 : choose(6)};
    if (choose(16) != 1)
        table->title = choose_text(titles[choose(4) ? number : choose(6)],
                                   title_room[number], LONGEST);
    if (choose(16) != 1)
        table->axes = choose_text(axes[choose(7)], axes_room[number], LONGEST);
    for (int k = 0; k < SAMPLE_AXES; ++k)
        table->length[k] = choose(8) ? 1 + choose(k == 4 ? 4 : NAMES) : choose(NAMES);
    table->text[0] = names[0];
    table->text[1] = names[1];
    table->text[4] = names[2];
    table->number[2] = numbers[0];
    table->number[3] = numbers[1];
    if (choose(16) == 1) table->text[choose(SAMPLE_AXES)] = names[choose(3)];
    if (choose(16) == 1) table->text[choose(SAMPLE_AXES)] = NULL;
}

static void choose_names(void)
{
    static const char *const usual[3][NAMES] = {{"[a]", "[b]", "[c]", "d", "e", "f"},
                                                {"A", "B", "C", "D", "E", "F"},
                                                {"XX", "XY", "YX", "YY", "RR", "LL"}};
    for (int k = 0; k < 3; ++k)
        for (int j = 0; j < NAMES; ++j)
            names[k][j] = choose_text(usual[k][j], name_room[k][j], k ? LONGEST : 127);
    for (int j = 0; j < NAMES; ++j) {
        numbers[0][j] = choose_number(5e9 + 10 * j);
        numbers[1][j] = choose_number(1e8 * (1 + j));
    }
}

static void write_file(void)
{
    static double places[NAMES][2];
    sample_table table[TABLES];
    choose_names();
    value_seed = choose(256);
    for (int k = 0; k < TABLES; ++k)
        choose_table(k, &table[k]);
    for (int k = 0; k < NAMES; ++k) {
        places[k][0] = choose_number(0.1 * k);
        places[k][1] = choose(8) ? 0.1 * choose(7) : choose_number(0);
    }
    sample_write(
        path,
        &(sample_file){.group = choose(16) == 1 ? "other" : NULL,
                       .texts = (sample_text)choose(NUM_SAMPLE_TEXTS),
                       .num_sources = choose(NAMES + 1),
                       .source = names[0],
                       .direction = choose(16) == 1 ? NULL : (const double(*)[2])places,
                       .num_tables = choose(TABLES + 1),
                       .table = table});
    if (choose(32) == 1 && truncate(path, 97 * choose(256)) != 0) abort();
}

/* ---- reading ---- */

static void check_jones(const tess_solutions *solutions, int64_t num_antennas)
{
    for (int k = 0; k < 8; ++k) {
        double jones[4][2];
        const bool counts = tess_solutions_jones(solutions, choose((int)num_antennas),
                                                 choose(2), 5e9 + 7 * choose(20) - 30,
                                                 1e8 * (1 + choose(7)), jones);
        for (int j = 0; j < 4; ++j)
            fuzz_assert(counts ? isfinite(jones[j][0]) && isfinite(jones[j][1])
                               : jones[j][0] == 0 && jones[j][1] == 0,
                        "matrices are finite, or zero");
    }
}

static tess_status read_solutions(void)
{
    tess_status status = TESS_OK;
    static const char *const paths[] = {path, path};
    static const char *const tables[] = {"phase000", "amplitude000", "other", "none",
                                         "../x"};
    static const double directions[][2] = {{0.11, 0.2}, {0.4, -0.3}};
    static const char *const antennas[] = {"B", "A"};
    tess_solutions *solutions = NULL;
    const double late = choose(2) ? 5e9 + choose(200) - 60 : 0;
    const double low = choose(2) ? 1e8 * choose(9) : 0;
    const tess_solutions_opts opts = {.path = paths,
                                      .num_files = 1 + choose(2),
                                      .table = tables + choose(3),
                                      .num_tables = choose(3),
                                      .is_linear = choose(2) != 0,
                                      .antenna = choose(3) ? antennas : NULL,
                                      .num_antennas = 2,
                                      .direction = directions,
                                      .num_directions = 2,
                                      .time_mjd_s = {late, late + choose(30)},
                                      .freq_hz = {low, low + 1e8 * choose(3)}};
    TESS_TRY(tess_solutions_read(fuzz_comm(), &opts, &solutions));
    for (int k = 0; k < tess_solutions_num_tables(solutions); ++k)
        fuzz_assert(tess_solutions_range(solutions, k, 1).num_bad <
                        tess_solutions_range(solutions, k, 1).num_values,
                    "some values count");
    check_jones(solutions, opts.antenna ? 2 : 1);
cleanup:
    tess_solutions_free(solutions);
    return status;
}

static tess_status read_sources(void)
{
    tess_status status = TESS_OK;
    tess_solution_source *source = NULL;
    int64_t num;
    TESS_TRY(tess_solutions_sources(fuzz_comm(), path, &source, &num));
    for (int64_t k = 0; k < num; ++k)
        fuzz_assert(isfinite(source[k].ra_rad) && isfinite(source[k].dec_rad),
                    "directions are finite");
cleanup:
    tess_free(source);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    choice = data;
    choices_end = data + size;
    write_file();
    fuzz_check(read_solutions());
    fuzz_check(read_sources());
    return 0;
}
