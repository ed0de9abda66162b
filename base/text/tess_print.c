/* Prints what commands are asked for. */
#include "tess_print.h"

#include <stdarg.h>

/* State of the process, as standard output is. NULL: that. */
static FILE *out;

void tess_print_to(FILE *stream)
{
    out = stream;
}

void tess_print(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(out ? out : stdout, format, args);
    va_end(args);
}
