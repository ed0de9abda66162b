/** @file tess_command.h
 *  The commands `tessera predict`, `simulate`, `info`, `restore`, `draw`, `compare`,
 *  `stats` and `plan` within a program, with their options by name as tess_images.h has
 * those of `tessera image`.
 *
 *      tess_command *command = NULL;
 *      tess_command_create("predict", &command);
 *      tess_command_set(command, "obs", "m87.uvfits");
 *      tess_command_set(command, "model", "m87-model.fits");
 *      if (tess_command_run(command) == TESS_OK)
 *          use(tess_command_predicted(command, 0));
 *      tess_command_destroy(command);
 *
 *  A run uses the calling process only, also in an MPI program. Runs in several threads
 *  wait for one another, because the process has one log.
 */
#ifndef TESS_COMMAND_H
#define TESS_COMMAND_H

#include <stdint.h>

#include "tess_api.h"
#include "tess_model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tess_command tess_command;

/** Predicted visibilities of a segment of an observation: rows that share their
 *  channels and correlations (a spectral window of a MeasurementSet; a whole UVFITS
 *  file). Everything belongs to the command. Rows are in the file's order, flagged or
 *  not; those whose uvw is not finite have visibilities of 0. */
typedef struct tess_predicted {
    int64_t num_rows, num_chan;
    int num_corr;
    const float *vis;         /**< [num_rows][num_chan][num_corr][2] re, im [Jy] */
    const double *uvw_m;      /**< [num_rows][3] metres, as in the file */
    const double *time_mjd_s; /**< [num_rows] UTC, centre of the integration */
    const int32_t *antenna1,  /**< [num_rows] */
        *antenna2;            /**< [num_rows] */
    const double *freq_hz;    /**< [num_chan] */
    const char *const *corr;  /**< [num_corr] "XX", "RR", "I" ... */
    int32_t field; /**< of a mosaic, the number of the rows' field in the file, as
                        FIELD_ID has it; else −1 */
} tess_predicted;

/** A command without options: its name is that of the program's. Free it with
 *  tess_command_destroy(). Errors: TESS_ERR_USAGE (another name), TESS_ERR_ALLOC. */
TESS_API tess_status tess_command_create(const char *name, tess_command **command);

/** Set an option by its long name without dashes ("model", "chan-width"; see
 *  tessera predict --help); `value` is NULL for a switch ("overwrite"). "obs" names the
 *  observation; of restore, draw, compare and stats "file" names the files of the
 * command line, one after the other. A name given again replaces the earlier value.
 * "log" is "quiet" (the default), "info" or "debug": what is shown on stderr. Names and
 * values are checked by tess_command_run(). Errors: TESS_ERR_ALLOC. */
TESS_API tess_status tess_command_set(tess_command *command, const char *name,
                                      const char *value);

/** Of `predict`: use a model in memory, in place of the option "model". `model`, and
 *  the arrays that it points to, must exist until the last run has ended. NULL: the
 *  model is in a file. */
TESS_API void tess_command_model(tess_command *command, const tess_model *model);

/** Run the command, after freeing the results of an earlier run.
 *    predict   writes the "output" or the "column"; without either keeps the
 *              visibilities for tess_command_predicted();
 *    simulate  writes the "output";
 *    info      keeps a description for tess_command_text();
 *    restore, draw   write the "output";
 *    compare, stats, plan   keep what the program prints for tess_command_text().
 * Images that differ are TESS_ERR_DIFFERENT. Errors as the manual's table of exit
 * statuses: TESS_ERR_USAGE (option), TESS_ERR_INPUT, TESS_ERR_IO, TESS_ERR_ALLOC,
 * TESS_ERR_RESOURCE. */
TESS_API tess_status tess_command_run(tess_command *command);

/** What `tessera info --json`, `compare`, `stats` or `plan` prints; "" before a run and
 *  for other commands.
 *  Valid until the next run or destroy. */
TESS_API const char *tess_command_text(const tess_command *command);

/** predict: segments of the last run, 0 when it wrote them to a file. */
TESS_API int64_t tess_command_count(const tess_command *command);

/** The k-th segment, or NULL; valid until the next run or destroy. */
TESS_API const tess_predicted *tess_command_predicted(const tess_command *command,
                                                      int64_t k);

TESS_API void tess_command_destroy(tess_command *command); /**< NULL is fine. */

#ifdef __cplusplus
}
#endif
#endif
