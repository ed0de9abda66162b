/* Reads groups of a UVFITS file: values, and parameters of one group. */
#define _GNU_SOURCE
#include "vis_uvfits.h"

#include <endian.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "tess_const.h"
#include "tess_mem.h"

/* ---- values ---- */

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Returns value number `index` of a group, unscaled. */
double uvfits_value(const unsigned char *group, int64_t index, int bitpix)
{
    if (bitpix == -32 || bitpix == 32) {
        uint32_t bits;
        memcpy(&bits, group + 4 * index, sizeof bits);
        bits = be32toh(bits);
        return bitpix == -32 ? (double)float_of(bits) : (double)(int32_t)bits;
    }
    if (bitpix == -64) {
        uint64_t bits;
        double value;
        memcpy(&bits, group + 8 * index, sizeof bits);
        bits = be64toh(bits);
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    uint16_t bits;
    memcpy(&bits, group + 2 * index, sizeof bits);
    return (int16_t)be16toh(bits);
}

/* ---- parameters of a group ---- */

double uvfits_param_value(const uvfits_layout *layout, const uvfits_param *param,
                          const unsigned char *group)
{
    double value = param->zero;
    for (int k = 0; k < param->num_terms; ++k)
        value += uvfits_value(group, param->index[k], layout->bitpix) * param->scale[k];
    return value;
}

uvfits_param uvfits_mjd_of(const uvfits_layout *layout)
{
    /* The large Julian day is subtracted first, so that no precision is lost. */
    uvfits_param date = layout->param.date;
    date.zero -= TESS_MJD_ZERO_JD;
    return date;
}

double uvfits_group_time(const uvfits_state *state, const unsigned char *group)
{
    const uvfits_param date = uvfits_mjd_of(&state->layout);
    return uvfits_param_value(&state->layout, &date, group) * TESS_SECONDS_PER_DAY -
           state->utc_offset_s;
}

static int64_t whole(double value)
{
    return value > -1e15 && value < 1e15 ? (int64_t)floor(value) : -1;
}

void uvfits_group_antennas(const uvfits_layout *layout, const unsigned char *group,
                           int64_t *antenna1, int64_t *antenna2, int64_t *subarray)
{
    *subarray = 1;
    if (layout->param.baseline.num_terms > 0) {
        /* The number is 256 a + b, or 2048 a + b + 65536. .01 (subarray - 1) is added
         * to it, and survives single precision to within 0.004 while numbers are below
         * 65536. */
        const double value = uvfits_param_value(layout, &layout->param.baseline, group);
        const int64_t number = whole(value + 0.004);
        const bool large = number > 65536;
        *antenna1 = large ? (number - 65536) / 2048 : number / 256;
        *antenna2 = large ? (number - 65536) % 2048 : number % 256;
        if (number < 0) *antenna1 = *antenna2 = -1;
        if (!large) *subarray = 1 + whole((value - (double)number) * 100.0 + 0.5);
    } else {
        *antenna1 =
            whole(uvfits_param_value(layout, &layout->param.antenna1, group) + 0.5);
        *antenna2 =
            whole(uvfits_param_value(layout, &layout->param.antenna2, group) + 0.5);
    }
    if (layout->param.subarray.num_terms > 0)
        *subarray =
            whole(uvfits_param_value(layout, &layout->param.subarray, group) + 0.5);
}

int32_t uvfits_antenna_index(const uvfits_state *state, int64_t subarray,
                             int64_t number)
{
    /* Files with one table use it for every subarray. */
    if (subarray < 1 || subarray > state->num_subarrays) subarray = 1;
    if (state->num_subarrays == 0) return -1;
    const uvfits_subarray *map = &state->subarray[subarray - 1];
    return number >= 0 && number < map->num_numbers ? map->index[number] : -1;
}

/* ---- opening ---- */

void uvfits_release(uvfits_state *state)
{
    if (!state || --state->refs > 0) return;
    if (state->fd >= 0) close(state->fd);
    for (int k = 0; state->subarray && k < state->num_subarrays; ++k)
        tess_free(state->subarray[k].index);
    for (int k = 0; state->setup && k < state->num_setups; ++k) {
        tess_free(state->setup[k].if_freq_hz);
        tess_free(state->setup[k].step_hz);
    }
    for (int k = 0; state->rows && k < state->num_segments; ++k) {
        tess_free(state->rows[k].group);
        tess_free(state->rows[k].chan_offset);
        tess_free(state->rows[k].run);
    }
    tess_free(state->subarray);
    tess_free(state->setup);
    tess_free(state->field_frame);
    tess_free(state->rows);
    tess_free(state);
}

int64_t uvfits_neighbours(const uvfits_rows *rows, int64_t first, int64_t num_rows,
                          int64_t *group)
{
    int64_t count = 1;
    *group = rows->group ? rows->group[first] : first;
    if (!rows->group) return num_rows;
    while (count < num_rows && rows->group[first + count] == *group + count)
        ++count;
    return count;
}
