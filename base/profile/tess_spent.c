/* Adds up what this process spends on communication. */
#include "tess_spent.h"

static tess_spent spent;

void tess_spent_add(const tess_spent *more)
{
    spent.bytes_sent += more->bytes_sent;
    spent.bytes_between += more->bytes_between;
    spent.seconds += more->seconds;
}

tess_spent tess_spent_so_far(void)
{
    return spent;
}
