/** @file tess_api.h
 *  Status, error message and version, which all calls of the library share.
 *
 *  A call that can fail returns a tess_status. After a failure its outputs are
 * undefined. Inputs are never changed. The library keeps nothing between calls but
 *  memory (tess_release_memory), prints nothing unless asked to, does not start MPI,
 * and may be called from several threads at once. A process may be forked between
 * calls, and call the library in the child, too. A child that is forked while another
 * thread is in a call has the locks of that call: all calls in it return
 * TESS_ERR_RESOURCE.
 */
#ifndef TESS_API_H
#define TESS_API_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Marks the functions that libtessera exports; all others are hidden. */
#if defined(__GNUC__)
#define TESS_API __attribute__((visibility("default")))
#else
#define TESS_API
#endif

/* X(name, exit status of the program, text) */
#define TESS_STATUS_LIST(X)                                                            \
    X(TESS_OK, 0, "success")                                                           \
    X(TESS_ERR_INTERNAL, 1, "internal error")                                          \
    X(TESS_ERR_USAGE, 2, "wrong option or value")                                      \
    X(TESS_ERR_INPUT, 3, "bad input")                                                  \
    X(TESS_ERR_IO, 3, "file cannot be read or written")                                \
    X(TESS_ERR_ALLOC, 4, "not enough memory")                                          \
    X(TESS_ERR_RESOURCE, 4, "resource not available")                                  \
    X(TESS_ERR_DIFFERENT, 5, "files differ")                                           \
    X(TESS_ERR_STOPPED, 75, "stopped at a checkpoint")                                 \
    X(TESS_ERR_PEER, 1, "another rank failed")

typedef enum tess_status {
#define TESS_STATUS_ENUM(name, exit_status, text) name,
    TESS_STATUS_LIST(TESS_STATUS_ENUM)
#undef TESS_STATUS_ENUM
} tess_status;

/** Short English text of a status, never NULL. */
TESS_API const char *tess_status_text(tess_status status);

/** Why this thread's last failed call of the library failed: one line, "" when none
 *  has. Valid until this thread's next call. */
TESS_API const char *tess_last_error(void);

/** "0.1.0". */
TESS_API const char *tess_version(void);

/** "0.1.0 (git 1a2b3c4)", without the parenthesis when the revision is unknown. */
TESS_API const char *tess_version_full(void);

/** What a message is. */
typedef enum tess_message_kind {
    TESS_MESSAGE_INFO,
    TESS_MESSAGE_DETAIL, /**< what the program writes to its log file alone */
    TESS_MESSAGE_DEBUG,
    TESS_MESSAGE_WARNING,
    TESS_MESSAGE_ERROR
} tess_message_kind;

/** Takes the messages of all calls of the process. Any thread may call these functions,
 *  also one of the library's own. They must not call the library. */
typedef struct tess_messages {
    void (*take)(void *context, int kind,
                 const char *text); /**< one line; NULL: warnings go to stderr */
    void (*step)(void *context, const char *label, double done, double share,
                 bool ends); /**< how far a step has come, at most five times a second:
                                  its count, and the share that is done, 0 to 1; or
                                  NULL */
    void *context;
} tess_messages;

/** Give messages to `messages` from now on, which is copied; NULL: to nobody. "log" of
 * a run still shows its lines on stderr, but warnings come here alone. */
TESS_API void tess_take_messages(const tess_messages *messages);

/** Give memory that the library keeps back to the system; returns its bytes. Calls,
 *  sessions and runs keep the memory of large arrays for the next call, because the
 *  system takes long to provide new memory: an eighth of the memory of the node, or of
 *  its control group or batch job, but at most 4 GiB, and never more than the arrays of
 *  a call, or of calls at the same time, have taken. If a session or a run has the
 * option `memory`, arrays and kept memory are together within that limit. Memory in use
 * stays as it is. It may be called at any time. */
TESS_API int64_t tess_release_memory(void);

#ifdef __cplusplus
}
#endif
#endif
