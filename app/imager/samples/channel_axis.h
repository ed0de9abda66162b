/** @file channel_axis.h  (private to app/imager/)
 *  Output channels that are regular in frequency or in velocity.
 */
#ifndef TESS_CHANNEL_AXIS_H
#define TESS_CHANNEL_AXIS_H

#include <stddef.h>

#include "tess_channel_opts.h"
#include "tess_status.h"

/** What the data offer to an axis, in its frame. */
typedef struct channel_offer {
    double low_hz, high_hz;   /**< ends of all channels, at the start of the first
                                   observation */
    double least_hz, most_hz; /**< the same, at any time */
    double width_hz;          /**< of the first channel, > 0 */
    double rest_hz;           /**< of the observation; 0: unknown */
} channel_offer;

/** Channels 0 to num - 1. Positions on the axis count them: k is the middle of channel
 *  k, which reaches from k - 1/2 to k + 1/2. */
typedef struct channel_axis {
    tess_spectral_frame frame;
    tess_velocity velocity; /**< in which files have the axis */
    double rest_hz;         /**< 0: unknown */
    int64_t num;
    bool is_optical;    /**< equal channels in optical velocity: start and step are
                             [m/s]; else in frequency [Hz] */
    double start, step; /**< of channel 0, and from one to the next, not 0 */
    double doppler;     /**< frequency in the frame over that at the array, at the start
                             of the first observation; NAN: unknown */
    const int32_t *of_chan; /**< the channel that each channel of the source's table is
                               a part of */
} channel_axis;

/** Choose the axis. TESS_ERR_USAGE: no rest frequency where one is needed, an axis that
 *  would not be regular, or one beside the data. Local. */
tess_status channel_axis_choose(const tess_axis_opts *opts, const channel_offer *offer,
                                channel_axis *axis);

/** The frequency of a position, and the position of a frequency. Local. */
double channel_axis_freq(const channel_axis *axis, double position);
double channel_axis_position(const channel_axis *axis, double freq_hz);

/** "32 channels in LSRK, 1420.1 to 1420.7 MHz, each 20 kHz wide". Local. */
void channel_axis_text(const channel_axis *axis, char *text, size_t size);

/** Middle and width of a channel, or with -1 of all of them [Hz]. Local. */
void channel_axis_band(const channel_axis *axis, int64_t channel, double *centre_hz,
                       double *width_hz);

#endif
