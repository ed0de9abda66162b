/* Names the statuses, and keeps the record of an error. */
#include "tess_status.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef struct error_record {
    char message[1024];
    char origin[256];
} error_record;

/* The record is state of the process, unlike errno: an error in a worker thread must
 * reach the thread that reports it. */
static error_record process_record;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Calls of the library from several threads do not share a record: each such thread has
 * a record of its own while `in_call`. Worker threads of a call have none, and use the
 * process's. */
static _Thread_local error_record call_record;
static _Thread_local bool in_call;

static error_record *current_record(void)
{
    return in_call ? &call_record : &process_record;
}

const char *tess_status_text(tess_status status)
{
    switch (status) {
#define TESS_STATUS_TEXT(name, exit_status, text)                                      \
    case name:                                                                         \
        return text;
        TESS_STATUS_LIST(TESS_STATUS_TEXT)
#undef TESS_STATUS_TEXT
    }
    return "unknown status";
}

int tess_status_exit(tess_status status)
{
    switch (status) {
#define TESS_STATUS_EXIT(name, exit_status, text)                                      \
    case name:                                                                         \
        return exit_status;
        TESS_STATUS_LIST(TESS_STATUS_EXIT)
#undef TESS_STATUS_EXIT
    }
    return 1;
}

tess_status tess_error_record(tess_status status, const char *file, int line,
                              const char *function, const char *format, ...)
{
    error_record *record = current_record();
    pthread_mutex_lock(&lock);
    if (record->message[0] == '\0') {
        va_list args;
        va_start(args, format);
        vsnprintf(record->message, sizeof record->message, format, args);
        va_end(args);
        /* the message is one line, even if the text of a library has several */
        for (char *c = record->message; *c; ++c)
            if (*c == '\n' || *c == '\r') *c = ' ';
        const char *base = strrchr(file, '/');
        snprintf(record->origin, sizeof record->origin, "%s:%d %s",
                 base ? base + 1 : file, line, function);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

const char *tess_error_message(void)
{
    return current_record()->message;
}

const char *tess_error_origin(void)
{
    return current_record()->origin;
}

static void clear(error_record *record)
{
    pthread_mutex_lock(&lock);
    record->message[0] = '\0';
    record->origin[0] = '\0';
    pthread_mutex_unlock(&lock);
}

void tess_error_clear(void)
{
    clear(current_record());
}

void tess_error_call_begin(void)
{
    clear(&call_record);
    in_call = true;
}

tess_status tess_error_call_end(tess_status status)
{
    in_call = false;
    if (status == TESS_OK) return status;
    if (call_record.message[0] ==
        '\0') { /* recorded by a worker thread, or by nobody */
        pthread_mutex_lock(&lock);
        call_record = process_record;
        pthread_mutex_unlock(&lock);
        clear(&process_record);
    }
    if (call_record.message[0] == '\0')
        snprintf(call_record.message, sizeof call_record.message, "%s",
                 tess_status_text(status));
    return status;
}

tess_status tess_error_call_refuse(tess_status status, const char *message)
{
    snprintf(call_record.message, sizeof call_record.message, "%s", message);
    call_record.origin[0] = '\0';
    return status;
}

const char *tess_last_error(void)
{
    return call_record.message;
}
