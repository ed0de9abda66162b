/* Records signals that ask a run to stop, from the first line of the program on. */
#define _GNU_SOURCE
#include "tess_stop.h"

#include <signal.h>
#include <stddef.h>

#include "out_name.h"

/* A signal handler can only see static variables: they are state of the process, as the
 * handler itself is. */
static volatile sig_atomic_t told;
static struct sigaction terminate_before;
static void (*at_sigterm)(void); /* or NULL */
static bool records;             /* what has been told since the program began counts */
static bool was_ignored;         /* SIGUSR1, when the program began */

/* A second SIGTERM ends the process at once: the old handler is back. */
static void on_signal(int number)
{
    told = 1;
    if (number != SIGTERM) return;
    sigaction(SIGTERM, &terminate_before, NULL);
    if (at_sigterm) at_sigterm();
}

static const struct sigaction stop = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

/* Block SIGUSR1, or let it through. */
static void block(int how)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    (void)sigprocmask(how, &signals, NULL);
}

void tess_stop_hold(void)
{
    struct sigaction before;
    sigaction(SIGUSR1, &stop, &before);
    was_ignored = before.sa_handler == SIG_IGN;
    block(SIG_BLOCK);
}

void tess_stop_record(void)
{
    sigaction(SIGUSR1, &stop, NULL);
    records = true;
    block(SIG_UNBLOCK); /* one that is pending is recorded now */
}

void tess_stop_catch(void (*hurry)(void))
{
    at_sigterm = hurry;
    if (!records) told = 0; /* an earlier run of this process was */
    records = false;
    sigaction(SIGUSR1, &stop, NULL);
    sigaction(SIGTERM, &stop, &terminate_before);
}

bool tess_stop_told(void)
{
    return told != 0;
}

void tess_stop_ends(bool tells)
{
    if (was_ignored)
        (void)signal(SIGUSR1, SIG_IGN);
    else
        out_signal_catch_user(tells);
    if (told && !was_ignored) (void)raise(SIGUSR1);
    told = 0;
    records = false;
}
