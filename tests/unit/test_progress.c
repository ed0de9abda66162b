/* Progress on a terminal: silent work is told of, the time that is left does not grow,
 * and what has no known end is told without one. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tess_log.h"

/* A terminal in place of stderr. */
typedef struct terminal {
    int fd, former;
    char text[8192];
} terminal;

static void open_terminal(terminal *term)
{
    term->fd = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(term->fd >= 0 && grantpt(term->fd) == 0 && unlockpt(term->fd) == 0);
    const int other = open(ptsname(term->fd), O_RDWR | O_NOCTTY);
    term->former = dup(STDERR_FILENO);
    assert_true(other >= 0 && dup2(other, STDERR_FILENO) >= 0);
    close(other);
    fcntl(term->fd, F_SETFL, O_NONBLOCK);
}

/* What was shown since the last call. */
static const char *shown(terminal *term)
{
    size_t used = 0;
    for (ssize_t got; used < sizeof term->text - 1; used += (size_t)got) {
        got = read(term->fd, term->text + used, sizeof term->text - 1 - used);
        if (got <= 0) break;
    }
    term->text[used] = '\0';
    return term->text;
}

static void close_terminal(terminal *term)
{
    dup2(term->former, STDERR_FILENO);
    close(term->former);
    close(term->fd);
}

static void pause_s(double seconds)
{
    usleep((useconds_t)(1e6 * seconds));
}

/* The smallest and the largest of the times left that a text tells, and the last. */
static int times_left(const char *text, double *largest, double *last)
{
    int count = 0;
    *largest = *last = -1;
    for (const char *at = text; (at = strstr(at, " s left")); ++at) {
        const char *begin = at;
        while (begin > text && begin[-1] != ' ')
            --begin;
        *last = strtod(begin, NULL);
        if (*last > *largest) *largest = *last;
        ++count;
    }
    return count;
}

/* Whether a text is shown in the end. A busy machine may be late with it. */
static bool is_shown(terminal *term, const char *text)
{
    const double every_s = 0.05, most_s = 60;
    for (double s = 0; s < most_s; s += every_s) {
        if (strstr(shown(term), text)) return true;
        pause_s(every_s);
    }
    return false;
}

static void silent_work_is_told_of(void **state)
{
    terminal term;
    tess_progress step;
    open_terminal(&term);
    tess_progress_run(true);
    const bool tells_run = is_shown(&term, "working");
    tess_progress_start(&step, "weighting", NULL, 0);
    shown(&term); /* what its start shows */
    const bool tells_step = is_shown(&term, "weighting    ");
    tess_progress_finish(&step);
    tess_progress_run(false);
    shown(&term);
    pause_s(2.2); /* it would be told of each second */
    const bool is_still = shown(&term)[0] == '\0';
    close_terminal(&term);
    assert_true(tells_run);
    assert_true(tells_step);
    assert_true(is_still);
}

static void time_left_does_not_grow(void **state)
{
    terminal term;
    tess_progress step;
    char text[8192];
    double largest, last, first;
    open_terminal(&term);
    tess_progress_start(&step, "gridding", "vis", 1000);
    pause_s(0.25);
    tess_progress_add(&step, 200); /* 1 s left */
    snprintf(text, sizeof text, "%s", shown(&term));
    const int before = times_left(text, &first, &last);
    for (int k = 0; k < 5; ++k) {
        pause_s(0.25);
        tess_progress_add(&step, 1);
    }
    snprintf(text, sizeof text, "%s", shown(&term));
    const int after = times_left(text, &largest, &last);
    tess_progress_finish(&step);
    close_terminal(&term);
    assert_int_equal(before, 1);
    assert_true(after >= 4);
    assert_true(largest <= first);
}

static void shares_are_told_once(void **state)
{
    terminal term;
    tess_progress step;
    open_terminal(&term);
    tess_progress_start(&step, "cleaning", " iterations", 0);
    pause_s(0.25);
    tess_progress_reach(&step, 1234, 0.83);
    const char *text = shown(&term);
    const bool is_told = strstr(text, " 83%  1.2 k iterations, ") != NULL;
    const bool has_time = strstr(text, " left") != NULL;
    tess_progress_finish(&step);
    close_terminal(&term);
    assert_true(is_told);
    assert_false(has_time);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(silent_work_is_told_of),
                                       cmocka_unit_test(time_left_does_not_grow),
                                       cmocka_unit_test(shares_are_told_once)};
    tess_log_start(0, TESS_LOG_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
