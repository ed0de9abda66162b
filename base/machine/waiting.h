/* How it is decided how threads wait, and what shortens it. */
#ifndef WAITING_H
#define WAITING_H

#include <stdbool.h>

/* ---- when processors are shared ---- */

/* What is known of the processors. Zero: nothing yet. */
typedef struct waiting_rule {
    double until_s; /* until then, processors count as shared */
    double hold_s;  /* for how long they do after the last sign of it */
    double delay;   /* of threads, a mean over the last moments */
    double seen_s;  /* when the last delay came */
} waiting_rule;

/* Whether the processors count as shared, at the time `now_s`. `delay` is the time that
 * the threads waited for processors since the last call, over the time since then, as a
 * sum over `threads` threads. Negative: it is unknown. */
bool waiting_rule_decide(waiting_rule *rule, double now_s, double delay, int threads);

/* If the host has no processors to spare, let them count as shared, until the delays
 * tell. */
void waiting_rule_suspect(waiting_rule *rule, double now_s, bool is_full);

/* ---- what shortens waiting ---- */

/* Until the calling thread ends, all threads of OpenMP wait for microseconds only.
 * False if the system has no threads for it; then nothing has changed. */
bool waiting_crowd_gather(void);

#endif
