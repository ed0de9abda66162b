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

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, exit status of the program, text) */
#define TESS_STATUS_LIST(X)                                                          \
    X(TESS_OK, 0, "success")                                                         \
    X(TESS_ERR_INTERNAL, 1, "internal error")                                        \
    X(TESS_ERR_USAGE, 2, "wrong option or value")                                    \
    X(TESS_ERR_INPUT, 3, "bad input")                                                \
    X(TESS_ERR_IO, 3, "file cannot be read or written")                              \
    X(TESS_ERR_ALLOC, 4, "not enough memory")                                        \
    X(TESS_ERR_RESOURCE, 4, "resource not available")                                \
    X(TESS_ERR_DIFFERENT, 5, "files differ")                                         \
    X(TESS_ERR_PEER, 1, "another rank failed")

typedef enum tess_status {
#define TESS_STATUS_ENUM(name, exit_status, text) name,
    TESS_STATUS_LIST(TESS_STATUS_ENUM)
#undef TESS_STATUS_ENUM
} tess_status;

/** Short English text of a status, never NULL. */
const char *tess_status_text(tess_status status);

/** Exit status of the program for a status, as README lists them. */
int tess_status_exit(tess_status status);

/** Record why an operation failed. The first record since tess_error_clear() is
 *  kept, later ones are consequences. Thread-safe. Returns `status`. */
tess_status tess_error_record(tess_status status, const char *file, int line,
                              const char *function, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/** The recorded message for the user ("" when there is none), without source
 *  position. Valid until tess_error_clear(). */
const char *tess_error_message(void);

/** Where the recorded failure was raised: "file:line function", "" when none. */
const char *tess_error_origin(void);

/** Forget the recorded message. */
void tess_error_clear(void);

#define TESS_FAIL(code, ...)                                                         \
    do {                                                                             \
        status = tess_error_record((code), __FILE__, __LINE__, __func__, __VA_ARGS__); \
        goto cleanup;                                                                \
    } while (0)

#define TESS_TRY(call)                                                               \
    do {                                                                             \
        status = (call);                                                             \
        if (status != TESS_OK) goto cleanup;                                         \
    } while (0)

#ifdef __cplusplus
}
#endif
#endif
