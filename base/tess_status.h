/** @file tess_status.h
 *  The one error type, the record of what went wrong, and the two macros that
 *  every fallible function is written with.
 *
 *  A function that can fail returns `tess_status`, declares
 *  `tess_status status = TESS_OK;` and has one label `cleanup:`. TESS_FAIL records
 *  a message for the user and jumps there; TESS_TRY passes a failure up silently.
 */
#ifndef TESS_STATUS_H
#define TESS_STATUS_H

#include "tessera/tess_api.h" /* the statuses and their texts */

#ifdef __cplusplus
extern "C" {
#endif

/** Exit status of the program for a status, as README lists them. */
int tess_status_exit(tess_status status);

/** Record why an operation failed. Only the first record since tess_error_clear() is
 * kept, because later failures follow from it. Thread-safe. Returns `status`. */
tess_status tess_error_record(tess_status status, const char *file, int line,
                              const char *function, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/** The recorded message for the user, without source position; "" if there is none. It
 * is valid until tess_error_clear(). */
const char *tess_error_message(void);

/** Where the recorded failure occurred: "file:line function"; "" if there is none. */
const char *tess_error_origin(void);

/** Forget the recorded message. */
void tess_error_clear(void);

/** Begin and end one call of the library. Failures in this thread between the two are
 * recorded separately from those of other threads' calls. The second function returns
 * `status` and, unless it is TESS_OK, keeps the message for tess_last_error(). */
void tess_error_call_begin(void);
tess_status tess_error_call_end(tess_status status);

/** A call that does not begin: keeps the message for tess_last_error(), without a lock,
 * and returns `status`. */
tess_status tess_error_call_refuse(tess_status status, const char *message);

#define TESS_FAIL(code, ...)                                                           \
    do {                                                                               \
        status = tess_error_record((code), __FILE__, __LINE__, __func__, __VA_ARGS__); \
        goto cleanup;                                                                  \
    } while (0)

#define TESS_TRY(call)                                                                 \
    do {                                                                               \
        status = (call);                                                               \
        if (status != TESS_OK) goto cleanup;                                           \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
