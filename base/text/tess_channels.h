/** @file tess_channels.h
 *  Lists of channels in the text of an option: `0:10~20;30~40,1:5~9`. Items are
 *  separated by commas. An item is spans of channels, separated by semicolons; in front
 *  of a colon it names the spectral windows that they belong to, `0`, `0~3` or `*`, and
 *  without a colon it holds for every window. A span is channel numbers of the window,
 *  counted from 0, with both ends, `10~20` or `7`; or frequencies with a unit,
 *  `1420.1~1420.9MHz`, which stand for all channels that reach into them.
 */
#ifndef TESS_CHANNELS_H
#define TESS_CHANNELS_H

#include <stdbool.h>
#include <stdint.h>

#include "tess_status.h"

enum { TESS_MAX_CHANNEL_SPANS = 256 };

/** Channels of some spectral windows. */
typedef struct tess_channel_span {
    int64_t window_first, window_last; /**< numbers of windows, both included */
    bool by_frequency;
    double low_hz, high_hz; /**< with `by_frequency` */
    int64_t first, last;    /**< otherwise: numbers in the window, both included */
} tess_channel_span;

typedef struct tess_channel_list {
    int num;
    tess_channel_span span[TESS_MAX_CHANNEL_SPANS];
} tess_channel_list;

/** A channel of data, or of images. */
typedef struct tess_channel {
    int64_t window, number;   /**< spectral window, and place in it */
    double freq_hz, width_hz; /**< centre, width */
} tess_channel;

/** Parse such a list, or `none`, which has no spans. TESS_ERR_USAGE. Local. */
tess_status tess_parse_channels(const char *text, tess_channel_list *list);

/** Whether the channel is in the span. Local. */
bool tess_channel_is_in(const tess_channel_span *span, const tess_channel *channel);

/** Whether the channel is in the list; spans that have it become true in found[num]
 *  (NULL: nobody asks). Local. */
bool tess_channels_have(const tess_channel_list *list, const tess_channel *channel,
                        bool *found);

/** The span in words for messages, "channels 10~20 of spectral window 3". Local. */
void tess_channel_span_text(const tess_channel_span *span, char *text, int size);

#endif
