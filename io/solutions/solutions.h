/** @file solutions.h  (private to io/)
 *  Solutions in memory: the values of tables, and how a Jones matrix is made of them.
 */
#ifndef SOLUTIONS_H
#define SOLUTIONS_H

#include "h5parm.h"
#include "tess_solutions.h"

typedef enum solution_kind {
    SOLUTION_AMPLITUDE,
    SOLUTION_PHASE,
    SOLUTION_TEC,
    SOLUTION_CLOCK,
    SOLUTION_ROTATION,
    SOLUTION_ROTATION_MEASURE,
    NUM_SOLUTION_KINDS
} solution_kind;

/** What is held of a table. */
typedef struct solution_values {
    char name[64];
    int file;
    bool is_beam; /**< the file holds beams */
    solution_kind kind;
    int64_t num[H5PARM_AXES]; /**< of values along each axis; 1: there may be no axis */
    double *time_mjd_s;       /**< [num[H5PARM_TIME]], or NULL: no axis */
    double *freq_hz;          /**< [num[H5PARM_FREQ]], or NULL */
    int64_t *held; /**< [num_directions] of the options: which of num[H5PARM_DIR] */
    double *value; /**< [dir][ant][time][freq][pol], NaN: does not count */
} solution_values;

/** A factor of the Jones matrix: an amplitude and a phase, of which one may be −1, or
 *  −1 and one table of another kind. */
typedef struct solution_factor {
    int amplitude, other;
} solution_factor;

/** Where the values of an antenna are: among those of the files of its group. */
typedef struct solution_antenna {
    int group;
    int64_t place;
} solution_antenna;

struct tess_solutions {
    bool is_linear, is_circular;
    int num_files, num_tables, num_factors;
    int num_groups; /**< of files and antennas; 0: all are one */
    int64_t num_antennas, num_directions;
    solution_antenna *antenna;  /**< [num_antennas] with groups, else NULL */
    solution_values *table;     /**< [num_tables] */
    solution_factor *factor;    /**< [num_tables], num_factors are in use */
    tess_solution_match *match; /**< [num_files][num_directions] */
};

/** The group of a file. */
static inline int solution_group(int file, int num_files, int num_groups)
{
    return num_groups > 0 ? file / (num_files / num_groups) : 0;
}

/** Number of the values of a table. */
static inline int64_t solution_values_count(const solution_values *table)
{
    int64_t count = 1;
    for (int k = 0; k < H5PARM_AXES; ++k)
        count *= table->num[k];
    return count;
}

/** Files and tables of the options on one rank. Errors of tess_solutions_read. Local.
 */
tess_status solutions_gather(const tess_solutions_opts *opts,
                             tess_solutions *solutions);

#endif
