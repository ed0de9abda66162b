/* Chooses output channels that are regular in frequency or velocity. */
#include "channel_axis.h"

#include <math.h>
#include <stdio.h>

#include "tess_const.h"
#include "tess_doppler.h"
#include "tess_log.h"

enum { MOST_CHANNELS = 1 << 20 };

/* A part of a channel that is not worth another one at the end of the axis. */
static const double ROUNDING = 1e-6;

double channel_axis_freq(const channel_axis *axis, double position)
{
    const double at = axis->start + position * axis->step;
    return axis->is_optical ? tess_velocity_freq(TESS_OPTICAL, axis->rest_hz, at) : at;
}

double channel_axis_position(const channel_axis *axis, double freq_hz)
{
    const double at = axis->is_optical
                          ? tess_velocity_of(TESS_OPTICAL, axis->rest_hz, freq_hz)
                          : freq_hz;
    return (at - axis->start) / axis->step;
}

void channel_axis_band(const channel_axis *axis, int64_t channel, double *centre_hz,
                       double *width_hz)
{
    const double first = channel < 0 ? 0 : (double)channel;
    const double last = channel < 0 ? (double)(axis->num - 1) : first;
    const double one = channel_axis_freq(axis, first - 0.5);
    const double other = channel_axis_freq(axis, last + 0.5);
    *centre_hz =
        channel < 0 ? 0.5 * (one + other) : channel_axis_freq(axis, (double)channel);
    *width_hz = fabs(other - one);
}

static tess_velocity kind_of(const tess_axis_opts *opts)
{
    const bool is_velocity =
        opts->start.unit == TESS_AXIS_M_S || opts->width.unit == TESS_AXIS_M_S;
    return opts->velocity == TESS_NO_VELOCITY && is_velocity ? TESS_RADIO
                                                             : opts->velocity;
}

static tess_status check_kind(tess_velocity kind, double rest_hz,
                              const tess_axis_opts *opts)
{
    tess_status status = TESS_OK;
    if (kind != TESS_NO_VELOCITY && !(rest_hz > 0))
        TESS_FAIL(
            TESS_ERR_USAGE,
            "velocities need the frequency of the line at rest, which the "
            "observation does not tell; give it with --restfreq, as in --restfreq "
            "1420.405752MHz");
    if (kind == TESS_OPTICAL && opts->width.unit != TESS_AXIS_M_S)
        TESS_FAIL(TESS_ERR_USAGE,
                  "--velocity optical: channels of equal width in frequency are not "
                  "equal in optical velocity; give --width in km/s");
cleanup:
    return status;
}

/* Start and step of channels that are equal in optical velocity. Without a start, the
 * first channel begins at the end of the data from which the axis goes. */
static void choose_optical(const tess_axis_opts *opts, const channel_offer *offer,
                           channel_axis *axis)
{
    const tess_axis_value *start = &opts->start;
    const double step = opts->width.value;
    const double skipped =
        start->unit == TESS_AXIS_CHANNEL ? start->value * offer->width_hz : 0;
    const double edge_hz =
        step > 0 ? offer->high_hz - skipped : offer->low_hz + skipped;
    axis->is_optical = true;
    axis->step = step;
    axis->start = tess_velocity_of(TESS_OPTICAL, axis->rest_hz, edge_hz) + 0.5 * step;
    if (start->unit == TESS_AXIS_M_S) axis->start = start->value;
    if (start->unit == TESS_AXIS_HZ)
        axis->start = tess_velocity_of(TESS_OPTICAL, axis->rest_hz, start->value);
}

/* The same of channels that are equal in frequency, and so in radio velocity. Of these,
 * velocities rise unless the width says otherwise. */
static void choose_linear(const tess_axis_opts *opts, tess_velocity kind,
                          const channel_offer *offer, channel_axis *axis)
{
    const tess_axis_value *start = &opts->start, *width = &opts->width;
    const double usual = kind == TESS_RADIO ? -offer->width_hz : offer->width_hz;
    axis->step = usual;
    if (width->unit == TESS_AXIS_CHANNEL) axis->step = width->value * usual;
    if (width->unit == TESS_AXIS_HZ) axis->step = width->value;
    if (width->unit == TESS_AXIS_M_S)
        axis->step = -width->value * axis->rest_hz / TESS_SPEED_OF_LIGHT_M_S;
    axis->start = (axis->step > 0 ? offer->low_hz : offer->high_hz) + 0.5 * axis->step;
    if (start->unit == TESS_AXIS_CHANNEL)
        axis->start += start->value * copysign(offer->width_hz, axis->step);
    if (start->unit == TESS_AXIS_HZ) axis->start = start->value;
    if (start->unit == TESS_AXIS_M_S)
        axis->start = tess_velocity_freq(TESS_RADIO, axis->rest_hz, start->value);
}

/* Chooses the number of channels: to the end of the data if none is given. */
static tess_status choose_number(const tess_axis_opts *opts, const channel_offer *offer,
                                 channel_axis *axis)
{
    tess_status status = TESS_OK;
    const bool rises = channel_axis_freq(axis, 1) > channel_axis_freq(axis, 0);
    const double end_hz = rises ? offer->high_hz : offer->low_hz;
    const double count = ceil(channel_axis_position(axis, end_hz) + 0.5 - ROUNDING);
    axis->num = opts->num_chan;
    if (axis->num > 0) return TESS_OK;
    if (!(count <= MOST_CHANNELS))
        TESS_FAIL(TESS_ERR_USAGE,
                  "--width: there would be %.3g output channels, and there may be %d; "
                  "choose wider ones, or their number with --nchan",
                  count, MOST_CHANNELS);
    axis->num = count < 1 ? 1 : (int64_t)count;
cleanup:
    return status;
}

static tess_status check_place(const channel_axis *axis, const channel_offer *offer)
{
    tess_status status = TESS_OK;
    const double one = channel_axis_freq(axis, -0.5);
    const double other = channel_axis_freq(axis, (double)axis->num - 0.5);
    const double low = fmin(one, other), high = fmax(one, other), mhz = 1e-6;
    if (!(low > 0) || !isfinite(high))
        TESS_FAIL(TESS_ERR_USAGE,
                  "--start, --width and --nchan: the output channels would reach from "
                  "%.9g to %.9g MHz",
                  one * mhz, other * mhz);
    if (!(low < offer->most_hz && high > offer->least_hz))
        TESS_FAIL(TESS_ERR_USAGE,
                  "--start and --width: the output channels, %.9g to %.9g MHz, are "
                  "outside the data, which have %.9g to %.9g MHz in the frame %s",
                  low * mhz, high * mhz, offer->least_hz * mhz, offer->most_hz * mhz,
                  tess_spectral_frame_name(axis->frame));
cleanup:
    return status;
}

tess_status channel_axis_choose(const tess_axis_opts *opts, const channel_offer *offer,
                                channel_axis *axis_out)
{
    tess_status status = TESS_OK;
    channel_axis axis = {.frame = opts->frame,
                         .velocity = opts->velocity,
                         .rest_hz = opts->rest_hz > 0 ? opts->rest_hz : offer->rest_hz};
    const tess_velocity kind = kind_of(opts);
    TESS_TRY(check_kind(kind, axis.rest_hz, opts));
    if (kind == TESS_OPTICAL)
        choose_optical(opts, offer, &axis);
    else
        choose_linear(opts, kind, offer, &axis);
    TESS_TRY(choose_number(opts, offer, &axis));
    TESS_TRY(check_place(&axis, offer));
    *axis_out = axis;
cleanup:
    return status;
}

void channel_axis_text(const channel_axis *axis, char *text, size_t size)
{
    const double first_hz = channel_axis_freq(axis, 0);
    const double last_hz = channel_axis_freq(axis, (double)(axis->num - 1));
    snprintf(text, size, "%lld channel%s in %s, %.9g to %.9g MHz, each %.6g %s wide",
             (long long)axis->num, axis->num == 1 ? "" : "s",
             tess_spectral_frame_specsys(axis->frame), 1e-6 * first_hz, 1e-6 * last_hz,
             1e-3 * fabs(axis->step), axis->is_optical ? "km/s" : "kHz");
}
