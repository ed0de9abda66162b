/** @file simulated.h  (tests)
 *  Observations that `tessera simulate` makes for a test, which includes cmocka.h
 *  first.
 */
#ifndef TESS_SIMULATED_H
#define TESS_SIMULATED_H

#include <stdio.h>

#include "tessera/tessera.h"

static inline void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

/** Run the command with option[num], names and values. */
static inline void simulate_with(const char *const (*option)[2], size_t num)
{
    tess_command *command = NULL;
    assert_int_equal(tess_command_create("simulate", &command), TESS_OK);
    for (size_t k = 0; k < num; ++k)
        assert_int_equal(tess_command_set(command, option[k][0], option[k][1]),
                         TESS_OK);
    if (tess_command_run(command) != TESS_OK) fail_msg("%s", tess_last_error());
    tess_command_destroy(command);
}

#endif
