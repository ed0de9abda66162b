/** @file tess_log.h
 *  Log lines, progress, and time. Lines go to stderr and, if tess_log_open was called,
 *  to NAME.log. Each line carries the elapsed time and, on ranks other than 0, the
 *  rank.
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

/** What a line is: as of tess_log_info(), tess_log_detail() ... */
typedef enum tess_log_kind {
    TESS_LOG_OF_INFO,
    TESS_LOG_OF_DETAIL,
    TESS_LOG_OF_DEBUG,
    TESS_LOG_OF_WARNING,
    TESS_LOG_OF_ERROR
} tess_log_kind;

/** A program that shows lines and steps itself. Any thread may call; not at a time when
 *  it holds a lock of the log. */
typedef struct tess_log_taker {
    void (*take)(void *context, tess_log_kind kind, const char *text); /**< or NULL */
    void (*step)(void *context, const char *label, double done, double share,
                 bool ends); /**< or NULL; share of the step that is done, 0 to 1 */
    void *context;
} tess_log_taker;

/** Give every line to `taker`, too; warnings and errors go to it instead of the
 * terminal. NULL: to nobody. It is copied. */
void tess_log_give(const tess_log_taker *taker);

/** Set this process's rank, and how much is shown on the terminal. Before this call
 * only warnings and errors are shown. Only rank 0 shows information and progress; any
 * rank may show an error. */
void tess_log_start(int rank, tess_log_level level);

/** Append every line to a file, too, on rank 0. Lines are kept in memory until
 * tess_log_keep. TESS_ERR_IO: it is not a regular file; or it does not begin as a log
 * of tessera does, and `overwrite` does not allow adding to it. Then the file stays as
 * it is. TESS_ERR_RESOURCE: too many files are open. */
tess_status tess_log_open(const char *path, bool overwrite);

/** Write the lines that are kept in memory to the file, and from now on each line as it
 * comes. To be called when the run begins: a run that is refused earlier does not
 * change the file or create it. TESS_ERR_IO; TESS_OK without a file. */
tess_status tess_log_keep(void);

/** Close the file, if there is one. */
void tess_log_close(void);

/** Log one line of information. */
void tess_log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Log one line of rank 0 to the file. The terminal shows it only at TESS_LOG_DEBUG. */
void tess_log_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Log one line of any rank at TESS_LOG_DEBUG only. */
void tess_log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Log one line that the user should see even with --quiet. */
void tess_log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Write "tessera: error: ..." to stderr and to the log file. */
void tess_log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Seconds of a monotonic clock. */
double tess_time_now(void);

/** Seconds that a processor has spent on the code of this thread. Time of the system
 * for the thread, for instance to provide memory, does not count. */
double tess_time_own(void);

/** Progress of one long step. A terminal shows a bar with the rate and the time that is
 * left; a log gets a line after ten seconds without any other. Several threads of rank
 * 0 may update it. The time that is left is never told to be longer than it was before.
 */
typedef struct tess_progress {
    const char *label; /**< what is done, like "gridding" */
    const char *unit;  /**< what is counted, like "vis"; NULL: nothing is */
    double total; /**< number of these in the whole step; 0: unknown, and only the time
                     that has gone by is told */
    double done;
    double share;        /**< share of the work that is done, where the number of what
                            is left is unknown; below 0: done / total */
    double start, shown; /**< times of the start and of the last output */
    double left_s;       /**< time left as told last; INFINITY: not told yet */
    const void *owner;   /**< of a copy: what it is a copy of */
    bool active;
    bool told_of; /**< whether a taker may be told of it */
    double given; /**< time at which a taker was told last */
} tess_progress;

void tess_progress_start(tess_progress *progress, const char *label, const char *unit,
                         double total);
void tess_progress_add(tess_progress *progress, double count);

/** As tess_progress_add for a step without a known total: the count so far, and the
 * share of the work that is done by any other measure. */
void tess_progress_reach(tess_progress *progress, double done, double share);
void tess_progress_finish(tess_progress *progress);

/** A run begins or ends. Until it ends, a thread of rank 0 shows every second on a
 * terminal, and after ten silent seconds in a log, that the work goes on: the step at
 * work, or that there is none to be told of. */
void tess_progress_run(bool begins);

#ifdef __cplusplus
}
#endif
#endif
