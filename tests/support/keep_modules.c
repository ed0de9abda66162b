/* What lets the leak checker walk stacks by frame pointers, in a fraction of the time that it
 * takes to unwind them. The libraries below MPI have no frame pointers, so that such a stack
 * ends behind the function that called malloc(): this has to be one of a library that
 * tests/lsan.supp names. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int dlclose(void *handle);
EXPORTED int __vasprintf_chk(char **text, int flag, const char *format, va_list args);
EXPORTED int __asprintf_chk(char **text, int flag, const char *format, ...);

/* MPI closes modules at its end. Their functions would have no names by then. */
int dlclose(void *handle)
{
    (void)handle;
    return 0;
}

/* What fortified libraries call as asprintf(), with a frame from which their own is found. */
int __vasprintf_chk(char **text, int flag, const char *format, va_list args)
{
    (void)flag;
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, args);
    *text = length < 0 ? NULL : malloc((size_t)length + 1);
    const int written =
        *text == NULL ? -1 : vsnprintf(*text, (size_t)length + 1, format, again);
    va_end(again);
    return written;
}

int __asprintf_chk(char **text, int flag, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int length = __vasprintf_chk(text, flag, format, args);
    va_end(args);
    return length;
}
