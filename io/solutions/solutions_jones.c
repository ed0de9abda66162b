/* Jones matrices of solutions: values between or nearest to a time and a frequency, and
 * what each kind of them does to a signal. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "solutions.h"
#include "tess_const.h"

/* Values around a point: those of two times and two frequencies. */
typedef struct solution_point {
    const double *value[4]; /* of the first polarisation */
    double share[4];        /* of each, 1 in sum */
    int nearest;
} solution_point;

/* Indices of an ascending axis around a place, and the share of the second; the nearest
 * index twice unless `is_linear`. Beyond the ends it is the end. */
static double locate(const double *axis, int64_t num, double at, bool is_linear,
                     int64_t index[2])
{
    int64_t low = 0, high = num - 1;
    index[0] = index[1] = 0;
    if (!axis || num < 2 || !(at > axis[0])) return 0;
    index[0] = index[1] = high;
    if (at >= axis[high]) return 0;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (axis[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    const double below = at - axis[low], above = axis[high] - at;
    if (!is_linear) {
        index[0] = index[1] = below <= above ? low : high;
        return 0;
    }
    index[0] = low;
    index[1] = high;
    return below / (below + above);
}

/* `antenna` is one of the table's. */
static void find_point(const solution_values *table, bool is_linear, int64_t antenna,
                       int64_t direction, double time_mjd_s, double freq_hz,
                       solution_point *point)
{
    const int64_t *num = table->num;
    int64_t time[2], freq[2];
    const double later =
        locate(table->time_mjd_s, num[H5PARM_TIME], time_mjd_s, is_linear, time);
    const double higher =
        locate(table->freq_hz, num[H5PARM_FREQ], freq_hz, is_linear, freq);
    const int64_t of_antenna = num[H5PARM_ANT] > 1 ? antenna : 0;
    const int64_t row = table->held[direction] * num[H5PARM_ANT] + of_antenna;
    for (int k = 0; k < 4; ++k) {
        point->value[k] =
            table->value +
            ((row * num[H5PARM_TIME] + time[k / 2]) * num[H5PARM_FREQ] + freq[k % 2]) *
                num[H5PARM_POL];
        point->share[k] = (k / 2 ? later : 1 - later) * (k % 2 ? higher : 1 - higher);
    }
    point->nearest = (later > 0.5 ? 2 : 0) + (higher > 0.5 ? 1 : 0);
}

/* The value of a polarisation at a point. Phases go the shorter way round. Values that
 * do not count take no part; false if the nearest one does not. */
static bool value_at(const solution_values *table, const solution_point *point,
                     int64_t pol, double *value)
{
    const bool is_angle =
        table->kind == SOLUTION_PHASE || table->kind == SOLUTION_ROTATION;
    const double near = point->value[point->nearest][pol];
    double sum = 0, share = 0;
    *value = near;
    if (isnan(near)) return false;
    for (int k = 0; k < 4; ++k) {
        const double each = point->value[k][pol];
        if (!(point->share[k] > 0) || isnan(each)) continue;
        sum += point->share[k] *
               (is_angle ? remainder(each - near, TESS_TWO_PI) : each - near);
        share += point->share[k];
    }
    *value = near + sum / share;
    return true;
}

/* What a value of a kind other than amplitude does to the phase of a signal. */
static double phase_of(solution_kind kind, double value, double freq_hz)
{
    if (kind == SOLUTION_TEC) return TESS_RAD_HZ_PER_TECU * value / freq_hz;
    if (kind == SOLUTION_CLOCK) return TESS_TWO_PI * freq_hz * value;
    return value;
}

static double complex turn(double phase_rad)
{
    return CMPLX(cos(phase_rad), sin(phase_rad));
}

/* Of R = X + iY and L = X − iY a rotation of X and Y turns the phases. */
static void set_rotation(double angle_rad, bool is_circular, double complex matrix[4])
{
    matrix[1] = matrix[2] = 0;
    if (is_circular) {
        matrix[0] = turn(angle_rad);
        matrix[3] = turn(-angle_rad);
        return;
    }
    matrix[0] = matrix[3] = cos(angle_rad);
    matrix[1] = -sin(angle_rad);
    matrix[2] = sin(angle_rad);
}

/* Where the entry of a matrix is among polarisations: of one for both feeds, of two, or
 * of four; −1: not there, which is zero off the diagonal. */
static int64_t pol_of(int64_t num, int entry)
{
    if (num == 4) return entry;
    if (entry == 1 || entry == 2) return -1;
    return num == 2 ? entry / 3 : 0;
}

/* Multiplies the entries of a matrix by what a table makes of them. False: a value does
 * not count. */
static bool apply_table(const solution_values *table, const solution_point *point,
                        double freq_hz, double complex matrix[4])
{
    const int64_t num = table->num[H5PARM_POL];
    for (int k = 0; k < 4; ++k) {
        const bool is_off = k == 1 || k == 2;
        const int64_t pol = num == 1 ? 0 : pol_of(num, k);
        double value;
        if (pol < 0 || (is_off && matrix[k] == 0)) continue;
        if (!value_at(table, point, pol, &value)) return false;
        if (table->kind == SOLUTION_AMPLITUDE)
            matrix[k] *= value;
        else
            matrix[k] *= turn(phase_of(table->kind, value, freq_hz));
    }
    return true;
}

/* Whether a factor is of the files of an antenna's group. */
static bool is_of_group(const tess_solutions *solutions, const solution_factor *factor,
                        int group)
{
    const int table = factor->amplitude >= 0 ? factor->amplitude : factor->other;
    return solution_group(solutions->table[table].file, solutions->num_files,
                          solutions->num_groups) == group;
}

/* The matrix of a factor. */
static bool factor_matrix(const tess_solutions *solutions,
                          const solution_factor *factor, int64_t antenna,
                          int64_t direction, double time_mjd_s, double freq_hz,
                          double complex matrix[4])
{
    const int tables[] = {factor->amplitude, factor->other};
    bool is_full = false;
    for (int k = 0; k < 2; ++k)
        is_full = is_full ||
                  (tables[k] >= 0 && solutions->table[tables[k]].num[H5PARM_POL] == 4);
    for (int k = 0; k < 4; ++k)
        matrix[k] = is_full || k == 0 || k == 3 ? 1 : 0;
    for (int k = 0; k < 2; ++k) {
        if (tables[k] < 0) continue;
        const solution_values *table = &solutions->table[tables[k]];
        solution_point point;
        double value;
        find_point(table, solutions->is_linear, antenna, direction, time_mjd_s, freq_hz,
                   &point);
        if (table->kind < SOLUTION_ROTATION) {
            if (!apply_table(table, &point, freq_hz, matrix)) return false;
            continue;
        }
        if (!value_at(table, &point, 0, &value)) return false;
        const double wave_m = TESS_SPEED_OF_LIGHT_M_S / freq_hz;
        set_rotation(table->kind == SOLUTION_ROTATION ? value : value * wave_m * wave_m,
                     solutions->is_circular, matrix);
    }
    return true;
}

bool tess_solutions_jones(const tess_solutions *solutions, int64_t antenna,
                          int64_t direction, double time_mjd_s, double freq_hz,
                          double jones[4][2])
{
    double complex all[4] = {1, 0, 0, 1};
    const solution_antenna at = solutions->antenna ? solutions->antenna[antenna]
                                                   : (solution_antenna){0, antenna};
    memset(jones, 0, 4 * sizeof *jones);
    for (int k = 0; k < solutions->num_factors; ++k) {
        double complex own[4], product[4];
        if (!is_of_group(solutions, &solutions->factor[k], at.group)) continue;
        if (!factor_matrix(solutions, &solutions->factor[k], at.place, direction,
                           time_mjd_s, freq_hz, own))
            return false;
        for (int j = 0; j < 4; ++j)
            product[j] = all[j & 2] * own[j & 1] + all[(j & 2) + 1] * own[2 + (j & 1)];
        memcpy(all, product, sizeof all);
    }
    for (int k = 0; k < 4; ++k) {
        jones[k][0] = creal(all[k]);
        jones[k][1] = cimag(all[k]);
    }
    return true;
}
