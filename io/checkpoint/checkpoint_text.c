/* Writes the text of a checkpoint from a state, and reads it back to one. A checksum
 * finds damage, but anybody can compute it, so what is read is checked number by
 * number. */
#define _GNU_SOURCE
#include "checkpoint_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint_names.h"
#include "tess_mem.h"

static const char FIRST_LINE[] = CHECKPOINT_TEXT_BEGINS "4\n";

/* No run writes this many checkpoints, and their names have room for this number. */
static const int64_t MOST_GENERATIONS = INT64_C(100000000000000000);
/* No file is larger; sums of two such sizes do not overflow. */
static const int64_t MOST_BYTES = INT64_C(1) << 60;

/* Extends a checksum by these bytes. It multiplies words of 8 bytes. */
uint64_t checkpoint_checksum(uint64_t sum, const void *data, int64_t bytes)
{
    const char *at = data;
    for (; bytes > 0; at += 8, bytes -= 8) {
        uint64_t word = 0;
        memcpy(&word, at, bytes < 8 ? (size_t)bytes : 8);
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 32;
    }
    return sum;
}

/* ---- writing ---- */

char *checkpoint_text(const tess_checkpoint_state *state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    fputs(FIRST_LINE, out);
    fprintf(out,
            "generation %" PRId64 "\nranks %" PRId64 "\noutputs_done %" PRId64 "\n",
            state->generation, state->num_ranks, state->outputs_done);
    fprintf(out, "means %" PRId64, state->num_mean);
    for (int64_t k = 0; k < state->num_mean; ++k)
        fprintf(out, " %a %a", state->mean_weight[k], state->mean_response[k]);
    fprintf(out, "\ncycle %" PRId64 " %" PRId64 " ", state->num_cycle,
            state->cycle_bytes);
    for (int64_t k = 0; k < state->cycle_bytes; ++k)
        fprintf(out, "%02x", ((const unsigned char *)state->cycle)[k]);
    fprintf(out, "\ndone %" PRId64 " %.*s\n", state->num_done, (int)state->num_done,
            state->num_done > 0 ? state->done : "");
    fprintf(out, "plan %s\n", state->plan ? state->plan : "");
    for (int64_t r = 0; r < state->num_ranks; ++r)
        fprintf(out, "file %" PRId64 " %016" PRIx64 "\n", state->file[r].bytes,
                state->file[r].checksum);
    fprintf(out, "identity %zu\n%s\n", strlen(state->identity), state->identity);
    fflush(out);
    fprintf(out, "checksum %016" PRIx64 "\n",
            checkpoint_checksum(0, text, (int64_t)strlen(text)));
    const bool bad = ferror(out) != 0;
    if (fclose(out) == 0 && !bad) return text;
    free(text); /* from open_memstream */
    return NULL;
}

/* ---- reading ---- */

bool checkpoint_text_is_sound(const char *text)
{
    uint64_t wanted = 0;
    const char *last = NULL;
    for (const char *k = text; (k = strstr(k, "\nchecksum ")); ++k)
        last = k + 1;
    return strncmp(text, FIRST_LINE, strlen(FIRST_LINE)) == 0 && last &&
           sscanf(last, "checksum %" SCNx64, &wanted) == 1 &&
           checkpoint_checksum(0, text, last - text) == wanted;
}

/* A place in a text, which ends with '\0' at `end`. Each function below moves on behind
 * what it takes. If there is something else, it takes nothing and returns false. */
typedef struct reader {
    const char *at, *end;
} reader;

static bool take_word(reader *in, const char *word)
{
    const size_t length = strlen(word);
    if (length > (size_t)(in->end - in->at) || memcmp(in->at, word, length) != 0)
        return false;
    in->at += length;
    return true;
}

/* Takes a number in digits, from `least` to `most`. */
static bool take_number(reader *in, int64_t least, int64_t most, int64_t *number)
{
    const char *at = in->at;
    int64_t value = 0;
    for (; *at >= '0' && *at <= '9'; ++at) {
        if (value > (INT64_MAX - 9) / 10) return false;
        value = 10 * value + (*at - '0');
    }
    if (at == in->at || value < least || value > most) return false;
    in->at = at;
    *number = value;
    return true;
}

/* Reads `count` hexadecimal digits, at most 16. */
static bool take_digits(reader *in, int count, uint64_t *number)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t value = 0;
    if (in->end - in->at < count) return false;
    for (int k = 0; k < count; ++k) {
        const char *digit = memchr(digits, in->at[k], 16);
        if (!digit) return false;
        value = value << 4 | (uint64_t)(digit - digits);
    }
    in->at += count;
    *number = value;
    return true;
}

static bool take_checksum(reader *in, uint64_t *sum)
{
    return take_digits(in, 16, sum);
}

/* Reads a sum of weights. */
static bool take_weight(reader *in, double *weight)
{
    char *end;
    const double value = strtod(in->at, &end);
    if (end == in->at || !isfinite(value) || value < 0) return false;
    in->at = end;
    *weight = value;
    return true;
}

/* Reads `length` characters into a new string; NULL if memory is short. */
static char *take_text(reader *in, int64_t length)
{
    char *text = tess_alloc_zero(length + 1, 1);
    if (!text) return NULL;
    memcpy(text, in->at, (size_t)length);
    in->at += length;
    return text;
}

static bool take_counts(reader *in, tess_checkpoint_state *state)
{
    if (!take_word(in, FIRST_LINE) || !take_word(in, "generation ") ||
        !take_number(in, 1, MOST_GENERATIONS, &state->generation) ||
        !take_word(in, "\nranks ") ||
        !take_number(in, 1, in->end - in->at, &state->num_ranks) ||
        !take_word(in, "\noutputs_done ") ||
        !take_number(in, 0, INT64_MAX, &state->outputs_done) ||
        !take_word(in, "\nmeans ") ||
        !take_number(in, 0, TESS_CHECKPOINT_MEANS, &state->num_mean))
        return false;
    for (int64_t k = 0; k < state->num_mean; ++k)
        if (!take_word(in, " ") || !take_weight(in, &state->mean_weight[k]) ||
            !take_word(in, " ") || !take_weight(in, &state->mean_response[k]))
            return false;
    return take_word(in, "\n");
}

/* Reads the state of major cycles, which is in hexadecimal digits. */
static tess_status take_cycle(reader *in, const char *name,
                              tess_checkpoint_state *state)
{
    tess_status status = TESS_OK;
    unsigned char *bytes = NULL;
    if (!take_word(in, "cycle ") ||
        !take_number(in, 0, state->num_mean, &state->num_cycle) ||
        !take_word(in, " ") ||
        !take_number(in, 0, (in->end - in->at) / 2, &state->cycle_bytes) ||
        !take_word(in, " "))
        TESS_FAIL(TESS_ERR_INPUT, "%s: the state of cleaning is not told", name);
    state->cycle = bytes = tess_alloc_zero(state->cycle_bytes, 1);
    if (!bytes) TESS_FAIL(TESS_ERR_ALLOC, "%s: state of a checkpoint", name);
    for (int64_t k = 0; k < state->cycle_bytes; ++k) {
        uint64_t byte;
        if (!take_digits(in, 2, &byte))
            TESS_FAIL(TESS_ERR_INPUT, "%s: the state of cleaning is damaged", name);
        bytes[k] = (unsigned char)byte;
    }
    if (!take_word(in, "\n"))
        TESS_FAIL(TESS_ERR_INPUT, "%s: the state of cleaning is damaged", name);
cleanup:
    return status;
}

/* Reads which planes are done, and the plan to which they belong. */
static tess_status take_planes(reader *in, const char *name,
                               tess_checkpoint_state *state)
{
    tess_status status = TESS_OK;
    if (!take_word(in, "done ") ||
        !take_number(in, 0, in->end - in->at, &state->num_done) ||
        !take_word(in, " ") || state->num_done > in->end - in->at ||
        (int64_t)strspn(in->at, "01") < state->num_done)
        TESS_FAIL(TESS_ERR_INPUT, "%s: the planes that are done are not told", name);
    state->done = take_text(in, state->num_done);
    if (!state->done) TESS_FAIL(TESS_ERR_ALLOC, "%s: state of a checkpoint", name);
    if (!take_word(in, "\nplan "))
        TESS_FAIL(TESS_ERR_INPUT, "%s: the plan is not told", name);
    state->plan = take_text(in, (int64_t)strcspn(in->at, "\n"));
    if (!state->plan) TESS_FAIL(TESS_ERR_ALLOC, "%s: state of a checkpoint", name);
    if (!take_word(in, "\n"))
        TESS_FAIL(TESS_ERR_INPUT, "%s: ends within the plan", name);
cleanup:
    return status;
}

static tess_status take_files(reader *in, const char *name,
                              tess_checkpoint_state *state)
{
    tess_status status = TESS_OK;
    state->file = tess_alloc(state->num_ranks, sizeof *state->file);
    if (!state->file) TESS_FAIL(TESS_ERR_ALLOC, "%s: state of a checkpoint", name);
    for (int64_t r = 0; r < state->num_ranks; ++r)
        if (!take_word(in, "file ") ||
            !take_number(in, 0, MOST_BYTES, &state->file[r].bytes) ||
            !take_word(in, " ") || !take_checksum(in, &state->file[r].checksum) ||
            !take_word(in, "\n"))
            TESS_FAIL(TESS_ERR_INPUT, "%s: file of rank %" PRId64 " is not told", name,
                      r);
cleanup:
    return status;
}

static tess_status take_identity(reader *in, const char *name,
                                 tess_checkpoint_state *state)
{
    tess_status status = TESS_OK;
    int64_t length;
    uint64_t checksum;
    if (!take_word(in, "identity ") || !take_number(in, 0, in->end - in->at, &length) ||
        !take_word(in, "\n") || length > in->end - in->at)
        TESS_FAIL(TESS_ERR_INPUT, "%s: the run is not told", name);
    state->identity = take_text(in, length);
    if (!state->identity) TESS_FAIL(TESS_ERR_ALLOC, "%s: state of a checkpoint", name);
    if (!take_word(in, "\nchecksum ") || !take_checksum(in, &checksum) ||
        !take_word(in, "\n") || in->at != in->end)
        TESS_FAIL(TESS_ERR_INPUT, "%s: does not end where it should", name);
cleanup:
    return status;
}

tess_status tess_checkpoint_parse(const char *name, const char *text, int64_t bytes,
                                  tess_checkpoint_state *state)
{
    tess_status status = TESS_OK;
    tess_checkpoint_state found = {0};
    reader in = {text, text + bytes};
    if ((int64_t)strlen(text) != bytes || !take_counts(&in, &found))
        TESS_FAIL(TESS_ERR_INPUT, "%s: has numbers that no checkpoint has", name);
    TESS_TRY(take_cycle(&in, name, &found));
    TESS_TRY(take_planes(&in, name, &found));
    TESS_TRY(take_files(&in, name, &found));
    TESS_TRY(take_identity(&in, name, &found));
    *state = found;
    found = (tess_checkpoint_state){0};
cleanup:
    tess_checkpoint_free(&found);
    return status;
}

void tess_checkpoint_free(tess_checkpoint_state *state)
{
    tess_free(state->done);
    tess_free(state->cycle);
    tess_free(state->identity);
    tess_free(state->plan);
    tess_free(state->file);
    *state = (tess_checkpoint_state){0};
}
