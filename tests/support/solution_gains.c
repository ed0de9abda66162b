/* Prints Jones matrices of solutions, for tests that compare with what h5py reads:
 *
 *   solution_gains FILE TABLE,TABLE nearest|linear < QUESTIONS
 *
 * QUESTIONS are numbers of antennas and directions, the names of the antennas, the
 * directions (ra and dec [rad]), and lines "antenna direction time frequency". A line
 * "counts, re, im of XX, XY, YX, YY" answers each of these. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tess_comm.h"
#include "tess_solutions.h"

enum { MOST = 100 };

static int answer(const tess_solutions *solutions)
{
    long long antenna, direction;
    double time_mjd_s, freq_hz, jones[4][2];
    while (scanf("%lld %lld %lf %lf", &antenna, &direction, &time_mjd_s, &freq_hz) ==
           4) {
        printf("%d", tess_solutions_jones(solutions, antenna, direction, time_mjd_s,
                                          freq_hz, jones));
        for (int k = 0; k < 4; ++k)
            printf(" %.17g %.17g", jones[k][0], jones[k][1]);
        puts("");
    }
    return 0;
}

int main(int argc, char **argv)
{
    static char name[MOST][100];
    static double direction[MOST][2];
    const char *antenna[MOST], *table[MOST];
    tess_comm *comm = NULL;
    tess_solutions *solutions = NULL;
    int num_antennas = 0, num_directions = 0, num_tables = 0, read;
    if (argc != 4 || tess_comm_self(&comm) != TESS_OK) return 2;
    for (char *next = argv[2]; next && num_tables < MOST;) {
        table[num_tables++] = next;
        next = strchr(next, ',');
        if (next) *next++ = '\0';
    }
    read = scanf("%d %d", &num_antennas, &num_directions);
    if (read != 2 || num_antennas > MOST || num_directions > MOST) return 2;
    for (int k = 0; k < num_antennas; ++k) {
        if (scanf("%99s", name[k]) != 1) return 2;
        antenna[k] = name[k];
    }
    for (int k = 0; k < num_directions; ++k)
        if (scanf("%lf %lf", &direction[k][0], &direction[k][1]) != 2) return 2;
    const char *const path[] = {argv[1]};
    const tess_solutions_opts opts = {.path = path,
                                      .num_files = 1,
                                      .table = table,
                                      .num_tables = num_tables,
                                      .is_linear = strcmp(argv[3], "linear") == 0,
                                      .antenna = antenna,
                                      .num_antennas = num_antennas,
                                      .direction = (const double(*)[2])direction,
                                      .num_directions = num_directions};
    const tess_status status = tess_solutions_read(comm, &opts, &solutions);
    if (status != TESS_OK) fprintf(stderr, "%s\n", tess_error_message());
    const int result = status == TESS_OK ? answer(solutions) : 1;
    tess_solutions_free(solutions);
    tess_comm_free(comm);
    return result;
}
