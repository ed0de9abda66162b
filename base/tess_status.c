#include "tess_status.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Like errno, the record is process state: an error raised in a worker thread must
 * reach the thread that reports it. */
static struct {
    pthread_mutex_t lock;
    char message[1024];
    char origin[256];
} record = {.lock = PTHREAD_MUTEX_INITIALIZER};

const char *tess_status_text(tess_status status)
{
    switch (status) {
#define TESS_STATUS_TEXT(name, exit_status, text)                                    \
    case name: return text;
        TESS_STATUS_LIST(TESS_STATUS_TEXT)
#undef TESS_STATUS_TEXT
    }
    return "unknown status";
}

int tess_status_exit(tess_status status)
{
    switch (status) {
#define TESS_STATUS_EXIT(name, exit_status, text)                                    \
    case name: return exit_status;
        TESS_STATUS_LIST(TESS_STATUS_EXIT)
#undef TESS_STATUS_EXIT
    }
    return 1;
}

tess_status tess_error_record(tess_status status, const char *file, int line,
                              const char *function, const char *format, ...)
{
    pthread_mutex_lock(&record.lock);
    if (record.message[0] == '\0') {
        va_list args;
        va_start(args, format);
        vsnprintf(record.message, sizeof record.message, format, args);
        va_end(args);
        /* one line, whatever a library put into its text */
        for (char *c = record.message; *c; ++c)
            if (*c == '\n' || *c == '\r') *c = ' ';
        const char *base = strrchr(file, '/');
        snprintf(record.origin, sizeof record.origin, "%s:%d %s",
                 base ? base + 1 : file, line, function);
    }
    pthread_mutex_unlock(&record.lock);
    return status;
}

const char *tess_error_message(void)
{
    return record.message;
}

const char *tess_error_origin(void)
{
    return record.origin;
}

void tess_error_clear(void)
{
    pthread_mutex_lock(&record.lock);
    record.message[0] = '\0';
    record.origin[0] = '\0';
    pthread_mutex_unlock(&record.lock);
}
