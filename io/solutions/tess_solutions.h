/** @file tess_solutions.h
 *  Gains of antennas, by direction, time and frequency: solutions of calibrations in
 *  files of the format h5parm.
 *
 *  A file has a group `sol000` with directions (`source`) and solution tables, each of
 * a type: amplitude, phase [rad], tec [1e16 / m²], clock [s], rotation [rad],
 *  rotationmeasure [rad/m²]. Their axes may be in any order, and may be absent. Values
 *  of weight 0, and those that are not finite, do not count.
 *
 *  The Jones matrix of a direction is the product of those of the files, in their
 * order, and within a file of its tables, in the order in which they are asked for. An
 *  amplitude and a phase of one file are one matrix: of one value (scalar), two
 *  (diagonal) or four. With frequency ν and wavelength λ, the phase of a TEC is
 *  −8.44797245e9 TEC / ν and that of a clock 2π ν t, and a rotation measure rotates by
 *  λ² RM. A rotation by χ is (cos χ, −sin χ; sin χ, cos χ) of linear feeds, and
 *  (exp iχ, 0; 0, exp −iχ) of circular ones, where R is X + iY. Beams stand
 *  between the sky and all other gains: files whose group has the attribute KIND with
 *  the text "beam" come behind the others.
 *
 *  Every rank holds the values of the antennas, directions, times and frequencies that
 *  are asked for, 8 bytes each; no rank holds more but for the first, which reads the
 *  file in pieces of 8 MiB.
 */
#ifndef TESS_SOLUTIONS_H
#define TESS_SOLUTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_comm.h"
#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Phase of a TEC unit at 1 Hz, −e² / (4π ε0 me c) · 1e16 [rad Hz]. */
#define TESS_RAD_HZ_PER_TECU (-8.44797245e9)

/** Names of directions and antennas, which end with NUL. */
typedef char tess_solution_name[129];

/** A direction of a file. */
typedef struct tess_solution_source {
    tess_solution_name name;
    double ra_rad, dec_rad; /**< J2000 */
} tess_solution_source;

/** First and last time (MJD) [s], lowest and highest frequency [Hz]. */
typedef struct tess_solution_reach {
    double time_mjd_s[2], freq_hz[2];
} tess_solution_reach;

/** Which files and tables, and for what. Texts and arrays belong to the caller. */
typedef struct tess_solutions_opts {
    const char *const *path; /**< [num_files] */
    int num_files;
    const char *const *table; /**< [num_tables], each in at least one file; none:
                                   amplitude000 and phase000, those that are there */
    int num_tables;
    bool is_circular; /**< feeds, for rotations; else they are linear */
    bool is_linear;   /**< between values in time and frequency; else the nearest */
    const char *const *antenna; /**< [num_antennas] by name; NULL: those of the first
                                     table */
    int64_t num_antennas;
    int num_groups; /**< of files, each of equally many, in their order; antennas have
                         the product of those of their group. 0: of all files */
    const int *antenna_group; /**< [num_antennas], with groups */
    const double (
        *direction)[2]; /**< [num_directions] right ascension and declination
                             [rad], for which the nearest of a file is taken */
    int64_t num_directions;
    bool any_direction;   /**< tess_facets_solutions() warns of one that is far away */
    double time_mjd_s[2]; /**< first and last; 0: all times of the files */
    double freq_hz[2];    /**< lowest and highest; 0: all frequencies */
    const tess_solution_reach
        *reach; /**< [num_groups] in place of these, with groups */
} tess_solutions_opts;

typedef struct tess_solutions tess_solutions;

/** The directions of a file; freed with tess_free(). Errors of tess_solutions_read().
 *  Collective. */
tess_status tess_solutions_sources(tess_comm *comm, const char *path,
                                   tess_solution_source **source, int64_t *num);

/** Read on rank 0, and send to all. TESS_ERR_IO; TESS_ERR_INPUT naming file and table:
 *  no such table, a type that is not known, an antenna or a direction that it lacks,
 *  times or frequencies without a solution (outside of the file's by more than one of
 *  its steps, unless it has only one), no value of a direction that counts.
 *  TESS_ERR_USAGE: a file or a table is named twice, groups have no
 *  equal numbers of files. TESS_ERR_RESOURCE: without HDF5,
 * or for lack of memory. Collective. */
tess_status tess_solutions_read(tess_comm *comm, const tess_solutions_opts *opts,
                                tess_solutions **solutions);
void tess_solutions_free(tess_solutions *solutions); /**< NULL is fine. Local. */

/** The Jones matrix (XX, XY, YX, YY: real and imaginary parts) of an antenna and a
 *  direction, as numbered in the options, at a time and a frequency: times and
 *  frequencies outside take the ends. False, and a matrix of zeros: the value that is
 *  nearest does not count, nor do visibilities of this antenna. Local, thread-safe. */
bool tess_solutions_jones(const tess_solutions *solutions, int64_t antenna,
                          int64_t direction, double time_mjd_s, double freq_hz,
                          double jones[4][2]);

/** How general matrices are: one factor for both feeds, one for each, four numbers. */
typedef enum tess_gain_shape {
    TESS_GAIN_SCALAR,
    TESS_GAIN_DIAGONAL,
    TESS_GAIN_FULL
} tess_gain_shape;

/** The most general matrix that tess_solutions_jones() gives. Local. */
tess_gain_shape tess_solutions_shape(const tess_solutions *solutions);

/** Number of antennas; 0 where no table has several. Local. */
int64_t tess_solutions_num_antennas(const tess_solutions *solutions);

/** The ascending times (MJD) [s] of a table, which belong to `solutions`; NULL: it does
 *  not depend on time. Local. */
const double *tess_solutions_times(const tess_solutions *solutions, int table,
                                   int64_t *num);

/** The same of frequencies [Hz]. Local. */
const double *tess_solutions_freqs(const tess_solutions *solutions, int table,
                                   int64_t *num);

/** The direction of a file that a direction of the options takes. */
typedef struct tess_solution_match {
    tess_solution_name name;
    double separation_rad; /**< from it */
    bool is_only;          /**< the file has only this one, or depends on none (then the
                                name is "") */
} tess_solution_match;

/** Of a file and a direction, as numbered in the options. Local. */
const tess_solution_match *tess_solutions_match(const tess_solutions *solutions,
                                                int file, int64_t direction);

/** What the values of a table are, of one direction. */
typedef struct tess_solution_range {
    int file;                 /**< of the options */
    const char *table, *unit; /**< "phase000", "rad" */
    double least, most;
    int64_t num_values, num_bad; /**< those that do not count are bad */
} tess_solution_range;

/** Number of tables that were read, of all files; and the range of one. Local. */
int tess_solutions_num_tables(const tess_solutions *solutions);
tess_solution_range tess_solutions_range(const tess_solutions *solutions, int table,
                                         int64_t direction);

#ifdef __cplusplus
}
#endif
#endif
