/* Gains of antennas in the directions of facets: opens their sources, and multiplies
 * their matrices. */
#include "gains.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#include "tess_mem.h"
#include "tess_minmax.h"

struct tess_gains {
    gain_sources from;
    gain_intervals intervals;
    tess_gain_shape shape;
    int64_t num_antennas;
    bool lack;
};

/* ---- sources ---- */

/* Names of the antennas of a set. */
static tess_status name_antennas(const tess_vis_meta *meta, const char ***name)
{
    tess_status status = TESS_OK;
    *name = tess_alloc(meta->num_antennas, sizeof **name);
    if (!*name) TESS_FAIL(TESS_ERR_ALLOC, "no memory for names of antennas");
    for (int k = 0; k < meta->num_antennas; ++k)
        (*name)[k] = meta->antenna[k].name;
cleanup:
    return status;
}

/* Collective. */
static tess_status open_solutions(tess_comm *comm, const tess_facets *facets,
                                  const tess_gains_opts *opts, tess_gains *to)
{
    tess_status status = TESS_OK;
    tess_solutions_opts asked = opts->solutions;
    const char **name = NULL;
    if (opts->meta) {
        TESS_TRY(tess_comm_agree(comm, name_antennas(opts->meta, &name)));
        asked.antenna = name;
        asked.num_antennas = opts->meta->num_antennas;
        asked.time_mjd_s[0] = opts->meta->time_start_mjd_s;
        asked.time_mjd_s[1] = opts->meta->time_end_mjd_s;
    }
    for (int64_t c = 0; c < opts->num_chan; ++c) {
        asked.freq_hz[0] =
            c > 0 ? fmin(asked.freq_hz[0], opts->freq_hz[c]) : opts->freq_hz[c];
        asked.freq_hz[1] =
            c > 0 ? fmax(asked.freq_hz[1], opts->freq_hz[c]) : opts->freq_hz[c];
    }
    TESS_TRY(tess_facets_solutions(comm, facets, &asked, &to->from.solutions));
    to->num_antennas = tess_solutions_num_antennas(to->from.solutions);
cleanup:
    tess_free((void *)name);
    return status;
}

/* Whether a direction has a solution that does not count. */
static bool lacks_solutions(const tess_solutions *solutions, int64_t num_directions)
{
    for (int table = 0; table < tess_solutions_num_tables(solutions); ++table)
        for (int64_t k = 0; k < num_directions; ++k)
            if (tess_solutions_range(solutions, table, k).num_bad > 0) return true;
    return false;
}

/* Collective. */
static tess_status open_aterms(tess_comm *comm, const tess_facets *facets,
                               const tess_gains_opts *opts, tess_gains *to)
{
    tess_status status = TESS_OK;
    tess_aterms_opts asked = {.path = opts->aterms,
                              .num_antennas = opts->meta->num_antennas,
                              .num_directions = facets->num_facets};
    double(*direction)[2] = tess_alloc(facets->num_facets, sizeof *direction);
    TESS_TRY(tess_comm_agree(comm, direction ? TESS_OK : TESS_ERR_ALLOC));
    for (int64_t k = 0; k < facets->num_facets; ++k) {
        direction[k][0] = facets->facet[k].ra_rad;
        direction[k][1] = facets->facet[k].dec_rad;
    }
    asked.direction = (const double(*)[2])direction;
    TESS_TRY(tess_aterms_read(comm, &asked, &to->from.aterms));
    if (tess_aterms_have_shifts(to->from.aterms))
        TESS_TRY(tess_comm_agree(
            comm, gain_shift_create(facets, opts->meta, &to->from.shift)));
cleanup:
    tess_free(direction);
    return status;
}

static tess_gain_shape most_general(const gain_sources *from)
{
    tess_gain_shape shape[3] = {TESS_GAIN_SCALAR, TESS_GAIN_SCALAR, TESS_GAIN_SCALAR};
    if (from->solutions) shape[0] = tess_solutions_shape(from->solutions);
    if (from->aterms) shape[1] = tess_aterms_shape(from->aterms);
    if (from->beam) shape[2] = gain_beam_shape(from->beam);
    for (int k = 1; k < 3; ++k)
        shape[0] = shape[k] > shape[0] ? shape[k] : shape[0];
    return shape[0];
}

tess_status tess_gains_create(tess_comm *comm, const tess_facets *facets,
                              const tess_gains_opts *opts, tess_gains **out)
{
    tess_status status = TESS_OK;
    tess_gains *gains = tess_alloc_zero(1, sizeof *gains);
    TESS_TRY(tess_comm_agree(comm, gains ? TESS_OK : TESS_ERR_ALLOC));
    if (opts->solutions.num_files > 0)
        TESS_TRY(open_solutions(comm, facets, opts, gains));
    if (opts->aterms) TESS_TRY(open_aterms(comm, facets, opts, gains));
    if (opts->beam.model)
        TESS_TRY(gain_beam_create(comm, facets, opts, &gains->from.beam));
    gains->shape = most_general(&gains->from);
    gains->lack =
        opts->aterms || (gains->from.solutions &&
                         lacks_solutions(gains->from.solutions, facets->num_facets));
    if (opts->meta) gains->num_antennas = opts->meta->num_antennas;
    TESS_TRY(tess_comm_agree(
        comm, gain_intervals_find(opts, &gains->from, &gains->intervals)));
    *out = gains;
    gains = NULL;
cleanup:
    tess_gains_destroy(gains);
    return status;
}

void tess_gains_destroy(tess_gains *gains)
{
    if (!gains) return;
    tess_solutions_free(gains->from.solutions);
    tess_aterms_free(gains->from.aterms);
    gain_shift_destroy(gains->from.shift);
    gain_beam_destroy(gains->from.beam);
    tess_free(gains->intervals.end_mjd_s);
    tess_free(gains);
}

/* ---- what there is ---- */

tess_gain_shape tess_gains_shape(const tess_gains *gains)
{
    return gains->shape;
}

const tess_solutions *tess_gains_solutions(const tess_gains *gains)
{
    return gains->from.solutions;
}

bool tess_gains_lack(const tess_gains *gains)
{
    return gains->lack;
}

bool tess_gains_turn(const tess_gains *gains)
{
    return gains->from.shift != NULL;
}

int64_t tess_gains_num_antennas(const tess_gains *gains)
{
    return gains->num_antennas;
}

int64_t tess_gains_num_intervals(const tess_gains *gains)
{
    return gains->intervals.num;
}

double tess_gains_interval_end(const tess_gains *gains, int64_t interval)
{
    return gains->intervals.end_mjd_s[interval];
}

int64_t tess_gains_interval(const tess_gains *gains, double time_mjd_s)
{
    const double *end = gains->intervals.end_mjd_s;
    int64_t low = 0, high = gains->intervals.num - 1;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (time_mjd_s <= end[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* ---- matrices ---- */

/* jones ← jones · other */
static void multiply(double jones[4][2], const double other[4][2])
{
    double complex a[4], b[4];
    for (int k = 0; k < 4; ++k) {
        a[k] = CMPLX(jones[k][0], jones[k][1]);
        b[k] = CMPLX(other[k][0], other[k][1]);
    }
    for (int k = 0; k < 4; ++k) {
        const double complex sum =
            a[k & 2] * b[k & 1] + a[(k & 2) + 1] * b[2 + (k & 1)];
        jones[k][0] = creal(sum);
        jones[k][1] = cimag(sum);
    }
}

/* jones ← jones times the phase of a shifted source. */
static bool shift_source(const gain_sources *from, double time_mjd_s, int64_t antenna,
                         int64_t facet, double freq_hz, double jones[4][2])
{
    double by[2], phase[4][2] = {{0}};
    const bool counts = tess_aterms_shift(from->aterms, facet, time_mjd_s, freq_hz, by);
    const double angle =
        counts ? gain_shift_phase(from->shift, time_mjd_s, antenna, facet, freq_hz, by)
               : 0;
    for (int k = 0; counts && k < 4; k += 3) {
        phase[k][0] = cos(angle);
        phase[k][1] = sin(angle);
    }
    multiply(jones, (const double(*)[2])phase); /* by 0 if it does not count */
    return counts;
}

bool tess_gains_jones_at(const tess_gains *gains, double time_mjd_s, int64_t antenna,
                         int64_t facet, double freq_hz, double jones[4][2])
{
    const gain_sources *from = &gains->from;
    double other[4][2];
    memset(jones, 0, 4 * sizeof *jones);
    if (from->solutions && !tess_solutions_jones(from->solutions, antenna, facet,
                                                 time_mjd_s, freq_hz, jones))
        return false;
    if (!from->solutions) jones[0][0] = jones[3][0] = 1;
    if (from->aterms) {
        const bool counts =
            tess_aterms_jones(from->aterms, antenna, facet, time_mjd_s, freq_hz, other);
        multiply(jones, (const double(*)[2])other); /* by 0 if it does not count */
        if (!counts) return false;
    }
    if (from->shift && !shift_source(from, time_mjd_s, antenna, facet, freq_hz, jones))
        return false;
    if (from->beam) {
        gain_beam_jones(from->beam, time_mjd_s, antenna, facet, freq_hz, other);
        multiply(jones, (const double(*)[2])other);
    }
    return true;
}

double gains_middle(const tess_gains *gains, int64_t interval)
{
    return gain_intervals_middle(&gains->intervals, interval);
}

bool tess_gains_jones(const tess_gains *gains, int64_t interval, int64_t antenna,
                      int64_t facet, double freq_hz, double jones[4][2])
{
    return tess_gains_jones_at(gains, gains_middle(gains, interval), antenna, facet,
                               freq_hz, jones);
}
