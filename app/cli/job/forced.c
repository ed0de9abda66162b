/* Reads what tests and scaling studies force upon the planner. */
#define _GNU_SOURCE
#include "tess_forced.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "option_rules.h"
#include "tess_log.h"
#include "tess_parse.h"

enum { MAX_FORCED = 1 << 20, MAX_TEXT = 512 };

#define MAX_WHOLE 9007199254740992.0 /* up to 2^53 a double is exact */

/* `value` is all of the forced choices. */
static tess_status take_w_range(const tess_option_rule *rule, const char *text,
                                void *value)
{
    tess_forced *forced = value;
    (void)rule;
    return tess_parse_uvrange(text, &forced->w_min_lambda, &forced->w_max_lambda);
}

#define AT(member) .offset = offsetof(tess_forced, member)

static const struct {
    const char *name;
    tess_option_rule rule;
} keys[] = {
    {"pw", {.take = tess_take_int, AT(pw), .min = 1, .max = MAX_FORCED}},
    {"fft-ranks", {.take = tess_take_int, AT(fft_ranks), .min = 1, .max = MAX_FORCED}},
    {"teams", {.take = tess_take_int, AT(teams), .min = 1, .max = MAX_FORCED}},
    {"thread-teams",
     {.take = tess_take_int, AT(thread_teams), .min = 1, .max = MAX_FORCED}},
    {"block-planes",
     {.take = tess_take_int, AT(block_planes), .min = 1, .max = MAX_FORCED}},
    {"kernel-planes", {.take = tess_take_int, AT(kernel_planes), .min = 0, .max = 1}},
    {"plane-window",
     {.take = tess_take_int, AT(plane_window), .min = 1, .max = MAX_FORCED}},
    {"batch", {.take = tess_take_int64, AT(batch_vis), .min = -1, .max = MAX_WHOLE}},
    {"chunk", {.take = tess_take_int64, AT(chunk), .min = 1, .max = INT32_MAX}},
    {"split", {.take = tess_take_int, AT(split), .min = 0, .max = 1}},
    {"passes", {.take = tess_take_int, AT(passes), .min = 1, .max = MAX_FORCED}},
    {"scratch", {.take = tess_take_int, AT(scratch), .min = 0, .max = 1}},
    {"w-range", {.take = take_w_range, .offset = 0}},
    {"num-vis", {.take = tess_take_int64, AT(num_vis), .min = 1, .max = MAX_WHOLE}},
    {"device-planes", {.take = tess_take_int, AT(device_planes), .min = 1, .max = 2}},
    {"device-rows", {.take = tess_take_int, AT(device_rows), .min = 0, .max = 2}},
    {"clean-grids", {.take = tess_take_int, AT(clean_grids), .min = 0, .max = 2}},
    {"tracks", {.take = tess_take_int, AT(tracks), .min = 0, .max = 2}},
};

enum { NUM_KEYS = sizeof keys / sizeof *keys };

/* KEY=VALUE. */
static tess_status take_one(char *item, tess_forced *forced)
{
    tess_status status = TESS_OK;
    int key = 0;
    char *value = strchr(item, '='), why[MAX_TEXT];
    if (value) *value++ = '\0';
    while (key < NUM_KEYS && strcmp(item, keys[key].name) != 0)
        ++key;
    if (key == NUM_KEYS)
        TESS_FAIL(TESS_ERR_USAGE, "TESS_FORCE: there is no '%s'", item);
    if (!value) TESS_FAIL(TESS_ERR_USAGE, "TESS_FORCE: %s needs a value", item);
    const tess_option_rule *rule = &keys[key].rule;
    status = rule->take(rule, value, (char *)forced + rule->offset);
    if (status != TESS_OK) {
        snprintf(why, sizeof why, "%s", tess_error_message());
        tess_error_clear();
        TESS_FAIL(status, "TESS_FORCE: %s: %s", item, why);
    }
cleanup:
    return status;
}

tess_status tess_forced_take(tess_comm *comm, tess_layout *layout)
{
    tess_status status = TESS_OK;
    char text[MAX_TEXT] = "";
    const bool first = tess_comm_rank(comm) == 0;
    const char *given = first ? getenv("TESS_FORCE") : NULL;
    if (given && snprintf(text, sizeof text, "%s", given) >= (int)sizeof text)
        status =
            tess_error_record(TESS_ERR_USAGE, __FILE__, __LINE__, __func__,
                              "TESS_FORCE: has more than %d letters", MAX_TEXT - 1);
    TESS_TRY(tess_comm_agree(comm, status));
    TESS_TRY(tess_comm_bcast(comm, text, sizeof text, 0));
    char *rest = NULL;
    for (char *item = strtok_r(text, ",", &rest); item;
         item = strtok_r(NULL, ",", &rest))
        TESS_TRY(take_one(item, &layout->forced));
cleanup:
    return status;
}

const char *tess_forced_page(const char *message)
{
    static const char variable[] = "TESS_FORCE:";
    const bool is_of_it = strncmp(message, variable, sizeof variable - 1) == 0;
    return is_of_it ? "docs/design/forced.md" : NULL;
}

void tess_forced_log(void)
{
    const char *given = getenv("TESS_FORCE");
    if (given && *given)
        tess_log_info("TESS_FORCE=%s: these choices are not the planner's", given);
}
