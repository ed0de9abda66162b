/** @file session_pair.h
 *  Sessions that ranks share, beside sessions of one process with the same options:
 * what both give is compared, bit by bit where sums are reproducible. Functions end the
 * test that calls them when anything differs. A list of options has two strings for
 * each, and ends with NULL.
 */
#ifndef TESS_SESSION_PAIR_H
#define TESS_SESSION_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <mpi.h>

#include "tessera/tessera.h"

enum { POINTS = 7 }; /* of a model */

/** What sessions are opened with. */
extern const char *observation;

/** Add a choice, "force-KEY" and its value, to TESS_FORCE. */
void force(const char *name, const char *value);

/** Make a session of the ranks of `comm` with these options; the second function opens
 * it, too. */
tess_session *shared_session(MPI_Comm comm, const char *const *options);
tess_session *open_shared(MPI_Comm comm, const char *const *options);

/** Open a session of this process alone with these options, except forced choices and
 * limits of memory. */
tess_session *open_alone(const char *const *options);

/** The number of values of an array [num_pol][rows][nx] for the rows of a session, and
 * such an array, which the caller frees. */
int64_t count_of(const tess_session_info *info);
double *array_of(const tess_session_info *info);

/** A session of ranks, the same one of this process alone, and arrays of both. */
typedef struct pair {
    tess_session *shared, *alone;
    const tess_session_info *part, *all;
    bool exact; /**< not a bit differs */
    double *model_part, *model_all, *image_part, *image_all, *psf_part, *psf_all,
        *expected;
} pair;

/** Open both, with arrays for their images; close_pair() frees all. */
pair open_pair(MPI_Comm comm, const char *const *options);
void close_pair(pair *both);

/** Rows of all ranks are those of the image, each once. */
void check_info(const pair *both, MPI_Comm comm);

/** A rank's rows are those of an array of all rows. */
void assert_rows_equal(const pair *both, const double *part, const double *all);

/** Sums of weights and frequencies of an output. */
void compare_weights(const pair *both, int64_t interval, int64_t channel);

/** The dirty image and the PSF, and residuals of two models. */
void compare_images(pair *both, int64_t interval, int64_t channel);

/** Visibilities of the rows of a rank, which follow those of the ranks before it. */
void compare_segments(bool exact, const tess_predicted *part, const tess_predicted *all,
                      MPI_Comm comm);

/** The visibilities that are predicted of a model of points. */
void compare_predictions(pair *both, int64_t interval, int64_t channel, MPI_Comm comm);

#endif
