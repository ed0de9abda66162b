/* Parses lists of channels, and tells which channels are in them. */
#include "tess_channels.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tess_parse.h"

/* A part of the text, without what ends it. */
typedef struct word {
    char text[64];
    const char *rest; /* behind the word */
} word;

/* Takes the text up to one of `ends`. A word that is too long is left empty, which no
 * parser accepts. */
static word take_word(const char *text, const char *ends)
{
    word out = {.rest = text + strcspn(text, ends)};
    const size_t length = (size_t)(out.rest - text);
    if (length < sizeof out.text) memcpy(out.text, text, length);
    return out;
}

static bool is_number(const char *text)
{
    const size_t length = strlen(text);
    return length > 0 && length < 10 && strspn(text, "0123456789") == length;
}

static bool read_number(const char *text, int64_t *value)
{
    return is_number(text) && sscanf(text, "%" SCNd64, value) == 1;
}

/* Reads "10~20", "10-20" or "7". */
static bool read_numbers(const char *text, int64_t *first, int64_t *last)
{
    const word begin = take_word(text, "~-");
    if (!read_number(begin.text, first)) return false;
    *last = *first;
    return *begin.rest == '\0' ||
           (read_number(begin.rest + 1, last) && *last >= *first);
}

static bool read_frequency(const char *text, double *hz)
{
    const bool good = tess_parse_frequency(text, hz) == TESS_OK;
    if (!good) tess_error_clear(); /* the whole list is quoted */
    return good;
}

/* The unit at the end of a frequency. */
static const char *unit_of(const char *text)
{
    size_t length = strlen(text);
    while (length > 0 && isalpha((unsigned char)text[length - 1]))
        --length;
    return text + length;
}

/* Reads "1420.1~1420.9MHz", "1.42GHz~1.43GHz" or "1420.4MHz". The unit of the end is
 * that of the beginning, too, unless this has its own. */
static bool read_frequencies(const char *text, double *low_hz, double *high_hz)
{
    char begin[96];
    const word first = take_word(text, "~");
    const char *last = *first.rest ? first.rest + 1 : first.text;
    const char *unit = unit_of(last);
    if (*unit == '\0') return false;
    snprintf(begin, sizeof begin, "%s%s", first.text, *unit_of(first.text) ? "" : unit);
    return read_frequency(begin, low_hz) && read_frequency(last, high_hz) &&
           *high_hz >= *low_hz;
}

static bool read_span(const char *text, tess_channel_span *span)
{
    if (read_numbers(text, &span->first, &span->last)) return true;
    span->by_frequency = true;
    return read_frequencies(text, &span->low_hz, &span->high_hz);
}

/* Reads the windows in front of a colon. */
static bool read_windows(const char *text, tess_channel_span *span)
{
    return strcmp(text, "*") == 0 ||
           read_numbers(text, &span->window_first, &span->window_last);
}

/* Reads the spans of an item, "0:10~20;30~40". `named`: 1 if items name windows, 0 if
 * they do not, −1 before the first one. */
static bool read_item(const char *text, int *named, tess_channel_list *list)
{
    tess_channel_span windows = {.window_last = INT64_MAX};
    const char *colon = strchr(text, ':'), *rest = text;
    if (*named >= 0 && *named != (colon != NULL)) return false;
    *named = colon != NULL;
    if (colon) {
        const word front = take_word(text, ":");
        if (!read_windows(front.text, &windows)) return false;
        rest = colon + 1;
    }
    for (;;) {
        const word span = take_word(rest, ";");
        if (list->num == TESS_MAX_CHANNEL_SPANS) return false;
        list->span[list->num] = windows;
        if (!read_span(span.text, &list->span[list->num++])) return false;
        if (*span.rest == '\0') return true;
        rest = span.rest + 1;
    }
}

tess_status tess_parse_channels(const char *text, tess_channel_list *list)
{
    tess_status status = TESS_OK;
    int named = -1;
    const char *rest = text;
    bool good = true;
    *list = (tess_channel_list){0};
    if (strcmp(text, "none") == 0) return TESS_OK;
    while (good) {
        char item[1024] = "";
        const size_t length = strcspn(rest, ",");
        good = length < sizeof item;
        if (good) memcpy(item, rest, length);
        good = good && read_item(item, &named, list);
        if (rest[length] == '\0') break;
        rest += length + 1;
    }
    if (!good)
        TESS_FAIL(TESS_ERR_USAGE,
                  "'%s' is not a list of channels; write it like 10~20;30~40 for all "
                  "spectral windows, 0:10~20;30~40,1:5~9 for some, with frequencies "
                  "like 1420.1~1420.9MHz, or none",
                  text);
cleanup:
    return status;
}

bool tess_channel_is_in(const tess_channel_span *span, const tess_channel *channel)
{
    const double half_hz = 0.5 * channel->width_hz;
    if (channel->window < span->window_first || channel->window > span->window_last)
        return false;
    if (span->by_frequency)
        return channel->freq_hz - half_hz < span->high_hz &&
               channel->freq_hz + half_hz > span->low_hz;
    return channel->number >= span->first && channel->number <= span->last;
}

bool tess_channels_have(const tess_channel_list *list, const tess_channel *channel,
                        bool *found)
{
    bool any = false;
    for (int k = 0; k < list->num; ++k)
        if (tess_channel_is_in(&list->span[k], channel)) {
            any = true;
            if (found) found[k] = true;
        }
    return any;
}

void tess_channel_span_text(const tess_channel_span *span, char *text, int size)
{
    const size_t room = (size_t)size;
    const int64_t window = span->window_first;
    if (span->by_frequency)
        snprintf(text, room, "channel between %.9g and %.9g MHz", 1e-6 * span->low_hz,
                 1e-6 * span->high_hz);
    else if (span->first == span->last)
        snprintf(text, room, "channel %" PRId64, span->first);
    else
        snprintf(text, room, "channels %" PRId64 "~%" PRId64, span->first, span->last);
    const size_t used = strlen(text);
    if (span->window_last == INT64_MAX) return;
    if (span->window_last == window)
        snprintf(text + used, room - used, " in spectral window %" PRId64, window);
    else
        snprintf(text + used, room - used, " in spectral windows %" PRId64 "~%" PRId64,
                 window, span->window_last);
}
