/* Makes factors of samples from the Jones matrices of a facet. Rows come in the order
 * of time, so that the matrices of an antenna serve all rows of an integration. */
#include "facet_gains.h"

#include <string.h>

#include "tess_mem.h"
#include "tess_omp.h"

/* What is known of a Jones matrix. */
enum { GAIN_UNKNOWN, GAIN_GOOD, GAIN_BAD };

/* Jones matrices of an antenna in one facet and interval of time. */
typedef struct gain_slot {
    int target, interval;
    double (*jones)[4][2];     /* [num_chan], or NULL */
    unsigned char *what_known; /* [num_chan] */
} gain_slot;

/* What a thread keeps of the rows before. */
typedef struct gain_cache {
    gain_slot *slot; /* [num_antennas] */
} gain_cache;

/* ---- how images and correlations make up each other ---- */

/* The feeds of a correlation, whose FITS code is −1 to −4 for circular feeds, and −5 to
 * −8 for linear ones: RR, LL, RL, LR. */
static void set_feeds(tess_corr code, int feed[2])
{
    static const int of_code[4][2] = {{0, 0}, {1, 1}, {0, 1}, {1, 0}};
    memcpy(feed, of_code[(-(int)code - 1) % 4], 2 * sizeof *feed);
}

/* Samples hold the polarisations of images as they are. */
static void set_plain(facet_gains *gains)
{
    for (int k = 0; k < gains->num_pol; ++k)
        gains->taken[k][k] = gains->made[k][k] = 1;
}

static tess_status set_mixes(const tess_pol *pol, const tess_pol *corr,
                             facet_gains *gains)
{
    tess_status status = TESS_OK;
    tess_corr code[TESS_MAX_POL];
    for (int q = 0; q < gains->num_corr; ++q) {
        double complex stokes[4];
        code[q] = corr[q].code;
        set_feeds(code[q], gains->feed[q]);
        tess_pol_from_stokes(code[q], stokes);
        for (int p = 0; p < gains->num_pol; ++p)
            gains->made[q][p] = stokes[pol[p].code - 1];
    }
    for (int p = 0; p < gains->num_pol && !gains->predicts; ++p) {
        const tess_pol_mix mix = tess_pol_mix_of(&pol[p], code, gains->num_corr);
        if (mix.num == 0)
            TESS_FAIL(TESS_ERR_INTERNAL, "an image of other correlations");
        for (int k = 0; k < mix.num; ++k)
            gains->taken[p][mix.index[k]] = mix.coefficient[k];
    }
cleanup:
    return status;
}

tess_status facet_gains_create(const tess_pol *pol, int num_pol, const tess_pol *corr,
                               int num_corr, facet_gains *gains)
{
    tess_status status = TESS_OK;
    gains->num_pol = num_pol;
    gains->num_corr = num_corr;
    if ((gains->is_scalar || !gains->solutions) && !gains->predicts)
        set_plain(gains);
    else
        TESS_TRY(set_mixes(pol, corr, gains));
    if (!gains->solutions) return TESS_OK;
    gains->cache = tess_alloc_zero(gains->num_threads, sizeof *gains->cache);
    if (!gains->cache) TESS_FAIL(TESS_ERR_ALLOC, "gains of facets");
    for (int k = 0; k < gains->num_threads; ++k) {
        gains->cache[k].slot =
            tess_alloc_zero(gains->num_antennas, sizeof *gains->cache[k].slot);
        if (!gains->cache[k].slot) TESS_FAIL(TESS_ERR_ALLOC, "gains of facets");
    }
cleanup:
    return status;
}

void facet_gains_free(facet_gains *gains)
{
    for (int t = 0; gains->cache && t < gains->num_threads; ++t) {
        for (int k = 0; gains->cache[t].slot && k < gains->num_antennas; ++k) {
            tess_free(gains->cache[t].slot[k].jones);
            tess_free(gains->cache[t].slot[k].what_known);
        }
        tess_free(gains->cache[t].slot);
    }
    tess_free(gains->cache);
    *gains = (facet_gains){0};
}

/* ---- Jones matrices ---- */

/* A row of samples, and where it comes from. */
typedef struct gain_row {
    const facet_gains *gains;
    int target;
    tess_origin origin;
    double time_mjd_s; /* the middle of its interval */
    gain_slot *slot[2];
} gain_row;

/* The slot of an antenna, which then is that of this facet and interval; NULL: there is
 * no memory for one. */
static gain_slot *slot_for(const facet_gains *gains, int target, int32_t antenna,
                           int32_t interval)
{
    gain_slot *slot =
        &gains->cache[tess_omp_thread() % gains->num_threads].slot[antenna];
    if (!slot->jones) {
        slot->jones = tess_alloc(gains->num_chan, sizeof *slot->jones);
        slot->what_known = tess_alloc_zero(gains->num_chan, 1);
        if (!slot->jones || !slot->what_known) {
            tess_free(slot->jones);
            tess_free(slot->what_known);
            *slot = (gain_slot){0};
            return NULL;
        }
    } else if (slot->target != target || slot->interval != interval) {
        memset(slot->what_known, GAIN_UNKNOWN, (size_t)gains->num_chan);
    }
    slot->target = target;
    slot->interval = interval;
    return slot;
}

static gain_row row_of(const facet_gains *gains, int target,
                       const tess_samples *samples, int64_t row)
{
    const tess_origins *origins = samples->origins;
    gain_row out = {.gains = gains, .target = target};
    if (!gains->solutions) return out;
    out.origin = tess_origin_of(origins, samples->origin[row]);
    out.time_mjd_s = origins->time_first_s;
    if (origins->num_intervals > 1)
        out.time_mjd_s += (out.origin.interval + 0.5) * origins->interval_s;
    out.slot[0] = slot_for(gains, target, out.origin.antenna1, out.origin.interval);
    out.slot[1] = slot_for(gains, target, out.origin.antenna2, out.origin.interval);
    return out;
}

/* The matrix of antenna 1 or 2 in a channel; false: there is no solution. */
static bool find_jones(const gain_row *row, int which, int64_t chan, double jones[4][2])
{
    const facet_gains *gains = row->gains;
    gain_slot *slot = row->slot[which];
    const int32_t antenna = which ? row->origin.antenna2 : row->origin.antenna1;
    if (slot && slot->what_known[chan] != GAIN_UNKNOWN) {
        memcpy(jones, slot->jones[chan], sizeof slot->jones[chan]);
        return slot->what_known[chan] == GAIN_GOOD;
    }
    const bool good =
        tess_solutions_jones(gains->solutions, antenna, gains->direction[row->target],
                             row->time_mjd_s, gains->freq_hz[chan], jones);
    if (slot) {
        memcpy(slot->jones[chan], jones, sizeof slot->jones[chan]);
        slot->what_known[chan] = good ? GAIN_GOOD : GAIN_BAD;
    }
    return good;
}

/* ---- factors ---- */

/* Without the treatment of infinite parts that C's product has. */
static inline double complex times(double complex a, double complex b)
{
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b),
                 creal(a) * cimag(b) + cimag(a) * creal(b));
}

static double complex entry(double jones[4][2], int k)
{
    return CMPLX(jones[k][0], jones[k][1]);
}

/* Sets pair[to][from], how much of a correlation `from` of a source is in a correlation
 * `to` of the sample: an entry of the Kronecker product of the matrix of antenna 1 and
 * the conjugate of that of antenna 2. */
static void set_pairs(const gain_row *row, int64_t chan,
                      double complex pair[TESS_MAX_POL][TESS_MAX_POL])
{
    const facet_gains *gains = row->gains;
    double first[4][2], second[4][2];
    double complex both = 1; /* the gain of all values, without correlations */
    const bool has = gains->solutions && find_jones(row, 0, chan, first) &&
                     find_jones(row, 1, chan, second);
    if (gains->solutions && gains->is_scalar)
        both = has ? (times(entry(first, 0), conj(entry(second, 0))) +
                      times(entry(first, 3), conj(entry(second, 3)))) /
                         2
                   : 0;
    for (int to = 0; to < gains->num_corr; ++to)
        for (int from = 0; from < gains->num_corr; ++from) {
            const int *a = gains->feed[to], *b = gains->feed[from];
            if (gains->is_diagonal && to != from)
                pair[to][from] = 0;
            else if (!gains->solutions || gains->is_scalar)
                pair[to][from] = both;
            else
                pair[to][from] = has ? times(entry(first, 2 * a[0] + b[0]),
                                             conj(entry(second, 2 * a[1] + b[1])))
                                     : 0;
        }
}

void facet_gains_take(const void *context, int target, const tess_samples *samples,
                      int64_t row, double complex *factor)
{
    const facet_gains *gains = context;
    const gain_row of = row_of(gains, target, samples, row);
    double complex pair[TESS_MAX_POL][TESS_MAX_POL];
    for (int32_t c = 0; c < samples->num_chan[row]; ++c) {
        set_pairs(&of, samples->chan_base[row] + c, pair);
        for (int p = 0; p < gains->num_pol; ++p)
            for (int q = 0; q < gains->num_corr; ++q, ++factor) {
                *factor = 0;
                for (int k = 0; k < gains->num_corr; ++k)
                    *factor += times(gains->taken[p][k], conj(pair[q][k]));
            }
    }
}

void facet_gains_make(const void *context, int target, const tess_samples *samples,
                      int64_t row, double complex *factor)
{
    const facet_gains *gains = context;
    const gain_row of = row_of(gains, target, samples, row);
    double complex pair[TESS_MAX_POL][TESS_MAX_POL];
    for (int32_t c = 0; c < samples->num_chan[row]; ++c) {
        set_pairs(&of, samples->chan_base[row] + c, pair);
        for (int q = 0; q < gains->num_corr; ++q)
            for (int p = 0; p < gains->num_pol; ++p, ++factor) {
                *factor = 0;
                for (int k = 0; k < gains->num_corr; ++k)
                    *factor += times(pair[q][k], gains->made[k][p]);
            }
    }
}
