/** @file tess_log.h
 *  Log lines, progress, and time. Lines go to stderr and, when opened, to NAME.log;
 *  each carries the elapsed time and, from ranks other than 0, the rank.
 */
#ifndef TESS_LOG_H
#define TESS_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tess_log_level {
    TESS_LOG_QUIET,
    TESS_LOG_INFO,
    TESS_LOG_DEBUG
} tess_log_level;

/** Say once who is writing and how much is shown on the terminal (before: warnings and
 *  errors only). Only rank 0 shows information and progress; any rank may show an
 *  error. */
void tess_log_start(int rank, tess_log_level level);

/** Also append every line to a file (rank 0), from tess_log_keep on; lines wait until
 *  then. TESS_ERR_IO when it is no regular file, or begins as none of tessera's logs
 *  does and `overwrite` does not say that it may be added to: it stays as it is.
 *  TESS_ERR_RESOURCE when too many files are open. */
tess_status tess_log_open(const char *path, bool overwrite);

/** The run begins: write the lines that have waited, and all others as they come. A run
 *  that is refused before leaves the file, or that there is none, as it was.
 * TESS_ERR_IO; TESS_OK without a file. */
tess_status tess_log_keep(void);

/** Close the file, if any. */
void tess_log_close(void);

/** One line of information. */
void tess_log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** One line of rank 0 that the file gets, and the terminal only at TESS_LOG_DEBUG. */
void tess_log_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** One line shown only at TESS_LOG_DEBUG, on any rank. */
void tess_log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** One line that the user should see even with --quiet. */
void tess_log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** "tessera: error: ..." on stderr, and in the log file. */
void tess_log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Seconds on a monotonic clock. */
double tess_time_now(void);

/** Seconds that a processor has spent on this thread's own code; what the system does
 *  for it, such as providing memory, is not counted. */
double tess_time_own(void);

/** Progress of one long step: a bar with rate and time left on a terminal, a line
 *  every ten seconds in a log. Safe to update from several threads of rank 0. */
typedef struct tess_progress {
    const char *label; /**< what is being done, "gridding" */
    const char *unit;  /**< what is counted, "vis" */
    double total;      /**< how many there are */
    double done;
    double start, shown; /**< times of start and of the last output */
    bool active;
} tess_progress;

void tess_progress_start(tess_progress *progress, const char *label, const char *unit,
                         double total);
void tess_progress_add(tess_progress *progress, double count);
void tess_progress_finish(tess_progress *progress);

#ifdef __cplusplus
}
#endif
#endif
