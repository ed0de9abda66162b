/** @file raw_row.h  (private to app/imager/)
 *  From the bytes of a UVFITS row to its position and antennas, as io/ decodes them.
 * One source for the device and for its emulation.
 */
#ifndef TESS_RAW_ROW_H
#define TESS_RAW_ROW_H

#include <math.h>

#include "raw_device.h"
#include "tess_const.h"
#include "tess_shared_code.h"

/** Where a row lies and whose it is. */
typedef struct raw_row {
    double file_w_m; /**< before a rotation */
    double uvw_m[3];
    int reason;                 /**< why all of it is ignored, −1: it is not */
    bool known;                 /**< its antennas are in the file's table */
    int32_t antenna1, antenna2; /**< where they are in it */
} raw_row;

TESS_SHARED_FUNCTION float raw_value(const unsigned char *row, int64_t index)
{
    union {
        uint32_t bits;
        float value;
    } out;
#ifdef TESS_ON_DEVICE /* rows are whole words, and begin at one */
    out.bits = __byte_perm(((const uint32_t *)row)[index], 0, 0x0123);
#else
    const unsigned char *at = row + 4 * index;
    out.bits =
        (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
#endif
    return out.value;
}

TESS_SHARED_FUNCTION double raw_param(const tess_vis_param *param,
                                      const unsigned char *row)
{
    double value = param->zero;
    for (int k = 0; k < param->num_terms; ++k)
        value += (double)raw_value(row, param->index[k]) * param->scale[k];
    return value;
}

TESS_SHARED_FUNCTION int64_t raw_whole(double value)
{
    return value > -1e15 && value < 1e15 ? (int64_t)floor(value) : -1;
}

TESS_SHARED_FUNCTION int32_t raw_antenna(const raw_recipe *recipe, int64_t subarray,
                                         int64_t number)
{
    if (subarray < 1 || subarray > recipe->num_subarrays) subarray = 1;
    if (recipe->num_subarrays == 0) return -1;
    const int64_t first = recipe->map_first[subarray - 1];
    const int64_t count = recipe->map_first[subarray] - first;
    return number >= 0 && number < count ? recipe->map[first + number] : -1;
}

/* io/vis/vis_uvfits.c, uvfits_group_antennas. */
TESS_SHARED_FUNCTION void raw_antennas(const raw_recipe *recipe,
                                       const unsigned char *row, int32_t *antenna1,
                                       int32_t *antenna2)
{
    int64_t a, b, subarray = 1;
    if (recipe->baseline.num_terms > 0) {
        const double value = raw_param(&recipe->baseline, row);
        const int64_t number = raw_whole(value + 0.004);
        const bool large = number > 65536;
        a = large ? (number - 65536) / 2048 : number / 256;
        b = large ? (number - 65536) % 2048 : number % 256;
        if (number < 0) a = b = -1;
        if (!large) subarray = 1 + raw_whole((value - (double)number) * 100.0 + 0.5);
    } else {
        a = raw_whole(raw_param(&recipe->antenna1, row) + 0.5);
        b = raw_whole(raw_param(&recipe->antenna2, row) + 0.5);
    }
    if (recipe->subarray.num_terms > 0)
        subarray = raw_whole(raw_param(&recipe->subarray, row) + 0.5);
    *antenna1 = raw_antenna(recipe, subarray, a);
    *antenna2 = raw_antenna(recipe, subarray, b);
}

/** Where a row lies; all zero and false when it is nowhere: its uvw are not finite. */
TESS_SHARED_FUNCTION bool raw_position_of(const raw_recipe *recipe,
                                          const unsigned char *row, raw_row *out)
{
    const double uvw_m[3] = {TESS_SPEED_OF_LIGHT_M_S * raw_param(&recipe->u_s, row),
                             TESS_SPEED_OF_LIGHT_M_S * raw_param(&recipe->v_s, row),
                             TESS_SPEED_OF_LIGHT_M_S * raw_param(&recipe->w_s, row)};
    out->file_w_m = uvw_m[2];
    for (int i = 0; i < 3; ++i) {
        out->uvw_m[i] = uvw_m[i];
        if (!recipe->rotate) continue;
        out->uvw_m[i] = 0;
        for (int k = 0; k < 3; ++k)
            out->uvw_m[i] += recipe->rotation[i][k] * uvw_m[k];
    }
    if (TESS_IS_BASELINE(out->uvw_m)) return true;
    out->uvw_m[0] = out->uvw_m[1] = out->uvw_m[2] = 0;
    return false;
}

TESS_SHARED_FUNCTION raw_row raw_row_of(const raw_recipe *recipe,
                                        const unsigned char *row)
{
    raw_row out;
    raw_antennas(recipe, row, &out.antenna1, &out.antenna2);
    out.known = out.antenna1 >= 0 && out.antenna2 >= 0;
    out.reason = out.antenna1 == out.antenna2 ? TESS_IGNORED_AUTOCORR : -1;
    if (!raw_position_of(recipe, row, &out)) out.reason = RAW_NO_POSITION;
    return out;
}

/** The number of a row's origin, as origin_of() of prepare.c; 0 for rows that do not
 *  keep it, or have an unknown antenna. */
TESS_SHARED_FUNCTION int32_t raw_origin_of(const raw_recipe *recipe, const raw_row *at,
                                           const unsigned char *row)
{
    const raw_origins *of = &recipe->origins;
    if (!of->antenna || !at->known) return 0;
    const double time_s =
        raw_param(&recipe->date, row) * TESS_SECONDS_PER_DAY - recipe->utc_offset_s;
    const tess_origin origin = {of->antenna[at->antenna1], of->antenna[at->antenna2],
                                tess_origins_interval(&of->all, of->stretch, time_s),
                                of->field};
    return tess_origin_number(&of->all, &origin);
}

#endif
